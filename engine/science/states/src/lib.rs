//! Saved states of a note's kernel: pages of memory by their hash, and one file for each state.
//!
//! Each note has a folder:
//! - `segments/HASH`: pages that were new in one state. Header, a hash for each page, then the pages, compressed with
//!   zstd, a frame for every 32. The name is the hash of the file.
//! - `states/ID`: one state, its hash and compressed JSON: parent, code, names, and the place of each page.
//! - `heads`: the current state and branch, undone states that can be redone, and pinned states.
//! - `shared`: says that the note's states go to other devices, and what was announced last. `incoming` holds what came
//!   from another device until a kernel has checked it. `withdrawn` names files that hubs have to delete, because they
//!   aren't shared any more.
//! - `index`: the records of states, so that a lineage is read at once. A state in the index without a file was
//!   thinned: its variables are recreated from the previous state, by running its cells.
//!
//! All files are written to a temporary file, flushed to the disk and renamed, so that a crash leaves the previous
//! state. Files are read as untrusted input: bounded, and checked by hash.

mod all_folders;
mod comparison;
mod copied_states;
mod files;
mod folder;
mod moves;
mod note_states;
mod page_hasher;
mod pages;
mod received_state;
mod retention;
mod saved_memory;
mod shared_state;
mod state_graph;
mod withdrawn_files;

pub use all_folders::{all_folders_bytes, thin_least_used};
pub use comparison::{
    ComparedValue, ComparisonError, DifferingVariable, LoneVariable, StateComparison, run_comparison,
};
pub use files::{ListedStates, folder_bytes, list_states, read_heads, write_heads};
pub use folder::{ReplayPlan, StateFolder};
pub use moves::StateMove;
pub use note_states::{NoteStates, SavedState, list_note_states};
pub use pages::{PAGE_BYTES, PagePlace};
pub use received_state::{incoming_file, plan_receiving};
pub use retention::thin_folder;
pub use saved_memory::{ChangedPages, FreshIsLarger, SavedMemory};
pub use shared_state::{
    MAX_ANNOUNCEMENT_BYTES, SharedState, SharedStateFile, announce_state, begin_sharing, end_sharing, offered_files,
};
pub use state_graph::{MAX_STATE_LANES, StateGraphRow, state_graph};
pub use withdrawn_files::{WithdrawnFile, remove_withdrawn, withdrawn_files};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Maximum memory of a kernel.
pub const MAX_GUEST_MEMORY_BYTES: usize = 2 << 30;
/// Name of a note's first branch.
pub const MAIN_BRANCH: &str = "main";
/// Maximum length of a branch's name.
const MAX_BRANCH_BYTES: usize = 100;

/// Error of saving or reading a state, or making it current.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A state can't be encoded as JSON.
    #[error("the state can't be described: {0}")]
    Encode(String),
    /// The decompressor can't be created, for lack of memory.
    #[error("nothing can be decompressed: {0}")]
    Decompressor(std::io::Error),
    /// A state was saved by another pack.
    #[error("they were saved by another version of the science pack")]
    OtherPack,
    /// A file can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file's content has changed since it was written.
    #[error("{path} is damaged")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another kernel uses the folder.
    #[error("another program uses {path}; close it and run the cell again")]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The state doesn't exist.
    #[error("this state is not there; `tracebook kernels states NOTE` lists them")]
    NoSuchState,
    /// The state was thinned, and the states it was made from are lost.
    #[error("this state was thinned, and the states before it are gone")]
    LostLineage,
    /// The name for a pinned state is invalid.
    #[error("{name:?} can't name a state: use up to 100 letters, digits, spaces, dots, - and _")]
    PinName {
        /// The invalid name.
        name: String,
    },
    /// The state isn't pinned.
    #[error("this state isn't pinned; `tracebook kernels states NOTE` lists them")]
    NotPinned,
    /// No cell has run, so there is nothing to undo.
    #[error("there is no run to undo")]
    NothingToUndo,
    /// No run was undone, so there is nothing to redo.
    #[error("there is no undone run to redo")]
    NothingToRedo,
    /// The name for a branch is invalid.
    #[error("{name:?} can't name a fork: use up to 100 letters, digits, spaces, dots, - and _")]
    BranchName {
        /// The invalid name.
        name: String,
    },
    /// A branch with this name exists already.
    #[error("there is a fork {name:?} already; choose another name")]
    BranchExists {
        /// Name of the branch.
        name: String,
    },
    /// No branch has this name.
    #[error("there is no fork {name:?}; `tracebook kernels states NOTE` lists them")]
    NoSuchBranch {
        /// Name of the branch.
        name: String,
    },
    /// What another device announced isn't the description of a state.
    #[error("their description can't be read")]
    BadAnnouncement,
    /// Not all files of another device's state have arrived.
    #[error("not all of them came from the other device; it or a hub that has them must be connected")]
    NotReceived,
    /// A state has too many bytes to be shared.
    #[error("they take {megabytes} MB; at most {most} MB can be shared")]
    TooLargeToShare {
        /// Size of the state's files.
        megabytes: u64,
        /// Their maximum size.
        most: u64,
    },
    /// A state has too many bytes to be copied.
    #[error("they take {megabytes} MB, and at most {most} MB can be copied")]
    TooLargeToCopy {
        /// Size of the state's files.
        megabytes: u64,
        /// Their maximum size.
        most: u64,
    },
    /// The current branch can't be discarded.
    #[error("{name:?} is the current fork; switch to another one first")]
    CurrentBranch {
        /// Name of the branch.
        name: String,
    },
}

impl StateError {
    fn read(path: &Path, source: std::io::Error) -> StateError {
        StateError::Read { path: path.to_owned(), source }
    }

    fn write(path: &Path, source: std::io::Error) -> StateError {
        StateError::Write { path: path.to_owned(), source }
    }
}

/// Metadata of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// ID of the state, a hash of its content: 32 hexadecimal digits.
    pub state: String,
    /// The previous state; `None` is a fresh kernel.
    pub parent: Option<String>,
    /// Label of the cell that made it, as in tracebacks.
    pub cell: String,
    /// ID of the execution that made it.
    pub execution: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Existing names that the cell changed.
    pub changed: Vec<String>,
    /// Number of bytes that the state added to the disk.
    pub bytes: u64,
    /// Time of saving, in milliseconds since 1970.
    pub time: u64,
    /// Code of the cell.
    pub code: String,
    /// Number of cells that had run.
    pub count: u64,
    /// Names that were removed before the cell ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// Path of the script that the cell is, as the guest sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Current branch and states, undone states and pins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHeads {
    /// The current branch.
    pub branch: String,
    /// Each branch's state; `None` is a fresh kernel.
    pub branches: BTreeMap<String, Option<String>>,
    /// Undone states by branch, the last undone one last.
    pub redo: BTreeMap<String, Vec<String>>,
    /// States that are never thinned.
    pub pinned: BTreeSet<String>,
    /// Names of pinned states, by ID.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

impl StateHeads {
    /// Returns the current state; `None` is a fresh kernel.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.branches.get(&self.branch)?.as_deref()
    }
}

/// Returns whether `name` is a valid name for a branch.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty() && name.len() <= MAX_BRANCH_BYTES && name.chars().all(plain) && name.trim() == name
}
