//! The saved states of a note's kernel: lists them from disk, and compares two of them in a separate process.

use crate::kernel::science::{self, states_folder};
pub use crate::kernel::state_budget::{StateBudget, workspace_state_bytes};
pub use ::kernel_states::{NoteStates, SavedState};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::DocId;

/// Time limit for a comparison, which may run the note's own code to compare its values.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval for checking whether the comparison has ended.
const COMPARE_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum size of the comparison's answer in bytes.
const MAX_COMPARISON_BYTES: u64 = 16 << 20;

/// A short form of a variable's value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ComparedValue {
    /// Name of the value's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value's shape or length; empty if it has none.
    pub size: String,
    /// The value's text in short form.
    pub value: String,
}

impl ComparedValue {
    /// Formats the value as one line, without escaping.
    pub fn describe(&self) -> String {
        let ComparedValue { kind, size, value } = self;
        let size = if size.is_empty() { String::new() } else { format!(" ({size})") };
        format!("{kind}{size} {value}")
    }
}

/// A variable that only one of two states has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoneVariable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: ComparedValue,
}

/// A variable whose values differ between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DifferingVariable {
    /// Name of the variable.
    pub name: String,
    /// Its value in the first state.
    pub a: ComparedValue,
    /// Its value in the second state.
    pub b: ComparedValue,
}

/// Differences between the variables of two states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateComparison {
    /// Variables that only the first state has.
    pub only_a: Vec<LoneVariable>,
    /// Variables that only the second state has.
    pub only_b: Vec<LoneVariable>,
    /// Variables whose values differ.
    pub differ: Vec<DifferingVariable>,
    /// Names of the variables with equal values.
    pub equal: Vec<String>,
    /// Names of the variables whose values can't be compared.
    pub unclear: Vec<String>,
    /// The reason why the comparison failed, if it did.
    #[serde(skip_serializing)]
    why: Option<String>,
}

/// Compares the variables of two saved states in a process that is as confined as a kernel, and sees no note. The
/// note's own kernel isn't disturbed. `program` is started as `PROGRAM kernel`; it's killed once `is_stopped` is set.
///
/// # Errors
/// Returns an error if the pack isn't installed, a state is damaged or from another pack, it takes too long, or it was
/// stopped.
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

/// Lists a note's saved states. Reads a file for each, so don't call it on the UI thread.
pub fn list_states(workspace: &Path, note: DocId) -> NoteStates {
    ::kernel_states::list_note_states(&states_folder(workspace, note))
}
