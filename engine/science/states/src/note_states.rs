//! The list of a note's states, as shown to the user.

use crate::files::{list_states, read_heads};
use crate::records::StateHeads;
use crate::shared_state::MARKER_FILE;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A saved state that the note can return to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SavedState {
    /// The state's id.
    pub state: String,
    /// The id of the state before it.
    pub parent: Option<String>,
    /// The nearest state before it that isn't thinned.
    #[serde(skip)]
    pub kept_ancestor: Option<String>,
    /// The cell that created it.
    pub cell: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Names that existed and that the cell changed.
    pub changed: Vec<String>,
    /// Number of bytes that it added on disk.
    pub bytes: u64,
    /// When it was saved, in milliseconds since 1970.
    pub time: u64,
    /// The execution that created it.
    pub execution: String,
    /// The code that ran.
    pub code: String,
    /// Whether the state is pinned, so that it's never thinned.
    pub pinned: bool,
    /// The state's name, if it's pinned.
    pub name: Option<String>,
}

/// The saved states of a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteStates {
    /// The states, oldest first.
    pub states: Vec<SavedState>,
    /// The current state.
    pub current: Option<String>,
    /// The current branch.
    pub branch: String,
    /// The state of each branch.
    pub branches: BTreeMap<String, Option<String>>,
    /// Number of states that can't be read.
    pub damaged: usize,
    /// Number of thinned states: returning to one runs its cells again.
    pub thinned: usize,
    /// Whether this device shares them with the devices of a volume.
    pub is_shared: bool,
    /// Size of the note's state files in bytes.
    pub used_bytes: u64,
    /// The reason why nothing can be listed, if so.
    pub problem: Option<String>,
}

/// Lists the states in a note's folder. Reads a file for each.
#[must_use]
pub fn list_note_states(folder: &Path) -> NoteStates {
    let listed = list_states(folder);
    let (heads, problem) = match read_heads(folder) {
        Ok(heads) => (heads, None),
        Err(why) => (StateHeads::default(), Some(why.to_string())),
    };
    let ancestors = listed.kept_ancestors();
    let states = listed.kept.into_iter().zip(ancestors).map(|(record, kept_ancestor)| SavedState {
        kept_ancestor,
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
        is_shared: folder.join(MARKER_FILE).is_file(),
        used_bytes: listed.used_bytes,
        problem,
    }
}
