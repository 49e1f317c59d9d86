//! The saved states of a note's kernel, read from the disk, and compared by a process of their own.

use crate::kernel::science::{self, states_folder};
pub use crate::kernel::state_budget::{StateBudget, workspace_state_bytes};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::DocId;

/// How long a comparison may take, which includes code of the note that says what its values are.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often it's looked whether it has ended.
const COMPARE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The longest answer that is read.
const MAX_COMPARISON_BYTES: u64 = 16 << 20;

/// A variable's value in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedValue {
    /// Name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its shape or length; empty if it has none.
    pub size: String,
    /// Its text in short.
    pub value: String,
}

impl ComparedValue {
    /// It in a line, which isn't escaped.
    pub fn describe(&self) -> String {
        let ComparedValue { kind, size, value } = self;
        let size = if size.is_empty() { String::new() } else { format!(" ({size})") };
        format!("{kind}{size} {value}")
    }
}

/// A variable that one of two states has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoneVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ComparedValue,
}

/// A variable that has another value in each of two states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DifferingVariable {
    /// Its name.
    pub name: String,
    /// Its value in the first state.
    pub a: ComparedValue,
    /// Its value in the second state.
    pub b: ComparedValue,
}

/// How the variables of two states differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateComparison {
    /// Those of the first state alone.
    pub only_a: Vec<LoneVariable>,
    /// Those of the second state alone.
    pub only_b: Vec<LoneVariable>,
    /// Those with other values.
    pub differ: Vec<DifferingVariable>,
    /// Names of those with the same value.
    pub equal: Vec<String>,
    /// Names of those whose values can't be compared.
    pub unclear: Vec<String>,
    /// Why it can't be said.
    #[serde(skip_serializing)]
    why: Option<String>,
}

/// Compares the variables of two saved states in a process that is as confined as a kernel, and sees no note. The
/// note's own kernel isn't disturbed. `program` is started as `PROGRAM kernel`; it's ended once `is_stopped`.
///
/// # Errors
/// The pack isn't installed, a state is damaged or of another pack, it takes too long, or it was stopped.
pub fn compare_states(
    program: &Path,
    workspace: &Path,
    note: DocId,
    (a, b): (&str, &str),
    is_stopped: &AtomicBool,
) -> anyhow::Result<StateComparison> {
    let room = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.arg("kernel");
    science::add_arguments(&mut command, workspace, Some((note, true)))?;
    command.arg("--compare").arg(a).arg(b).arg("--shut").arg(workspace);
    command.env_clear().current_dir(room.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut out = child.stdout.take().context("no pipe")?.take(MAX_COMPARISON_BYTES);
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        let stops = is_stopped.load(Ordering::Acquire);
        if stops || began.elapsed() > COMPARE_TIMEOUT {
            child.kill()?;
            child.wait()?;
            if stops {
                bail!("it was stopped");
            }
            bail!("it took longer than {} seconds", COMPARE_TIMEOUT.as_secs());
        }
        std::thread::sleep(COMPARE_CHECK_INTERVAL);
    }
    let text = reader.join().ok().context("the reading thread ended")??;
    let said: StateComparison = serde_json::from_str(text.trim()).context("the kernel ended without an answer")?;
    match &said.why {
        Some(why) => bail!("{why}"),
        None => Ok(said),
    }
}

/// A state that can be gone back to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SavedState {
    /// Its id.
    pub state: String,
    /// The state that it came from.
    pub parent: Option<String>,
    /// The cell that made it.
    pub cell: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Names that existed and that the cell changed.
    pub changed: Vec<String>,
    /// Bytes that it added to the disk.
    pub bytes: u64,
    /// When it was saved, in milliseconds since 1970.
    pub time: u64,
    /// The execution that made it.
    pub execution: String,
    /// The code that ran.
    pub code: String,
    /// Whether it is never thinned.
    pub pinned: bool,
    /// What it is called, where it is pinned.
    pub name: Option<String>,
}

/// The saved states of a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteStates {
    /// The states, oldest first.
    pub states: Vec<SavedState>,
    /// The current one.
    pub current: Option<String>,
    /// The current branch.
    pub branch: String,
    /// Each branch's state.
    pub branches: BTreeMap<String, Option<String>>,
    /// How many can't be read.
    pub damaged: usize,
    /// How many were thinned: their cells run again when one goes back to them.
    pub thinned: usize,
    /// Bytes of the note's files.
    pub used_bytes: u64,
    /// Why there is nothing to say.
    pub problem: Option<String>,
}

/// Lists a note's saved states. Reads a file for each; not for the thread that draws.
pub fn list_states(workspace: &Path, note: DocId) -> NoteStates {
    let folder = states_folder(workspace, note);
    let listed = ::kernel_states::list_states(&folder);
    let (heads, problem) = match ::kernel_states::read_heads(&folder) {
        Ok(heads) => (heads, None),
        Err(why) => (::kernel_states::StateHeads::default(), Some(why.to_string())),
    };
    let states = listed.kept.into_iter().map(|record| SavedState {
        pinned: heads.pinned.contains(&record.state),
        name: heads.names.get(&record.state).cloned(),
        state: record.state,
        parent: record.parent,
        cell: record.cell,
        defined: record.defined,
        changed: record.changed,
        bytes: record.bytes,
        time: record.time,
        execution: record.execution,
        code: record.code,
    });
    NoteStates {
        states: states.collect(),
        current: heads.current().map(ToOwned::to_owned),
        branch: heads.branch,
        branches: heads.branches,
        damaged: listed.damaged,
        thinned: listed.thinned,
        used_bytes: listed.used_bytes,
        problem,
    }
}
