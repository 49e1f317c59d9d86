//! The saved states of a note's kernel, read from the disk.

use crate::kernel::science::states_folder;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use store::DocId;

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
    /// Why there is nothing to say.
    pub problem: Option<String>,
}

/// Lists a note's saved states. Reads a file for each; not for the thread that draws.
pub fn list_states(workspace: &Path, note: DocId) -> NoteStates {
    let folder = states_folder(workspace, note);
    let (records, damaged) = ::kernel_states::list_states(&folder);
    let (heads, problem) = match ::kernel_states::read_heads(&folder) {
        Ok(heads) => (heads, None),
        Err(why) => (::kernel_states::StateHeads::default(), Some(why.to_string())),
    };
    let states = records.into_iter().map(|record| SavedState {
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
        damaged,
        problem,
    }
}
