//! Saved states of a note's kernel: pages of memory by their hash, and one file for each state.
//!
//! Each note has a folder:
//! - `segments/HASH`: pages that were new in one state. Header, a hash for each page, then the pages, compressed with
//!   zstd, a frame for every 32. The name is the hash of the file.
//! - `states/ID`: one state, its hash and compressed JSON: parent, code, names, and the place of each page.
//! - `heads`: the current state and branch, undone states that can be redone, and pinned states.
//! - `shared`: says that the note's states go to other devices, and what was announced last. `incoming` holds what came
//!   from another device until a kernel has checked it.
//! - `index`: the records of states, so that a lineage is read at once. A state in the index without a file was
//!   thinned: its variables are recreated from the previous state, by running its cells.
//!
//! All files are written to a temporary file, flushed to the disk and renamed, so that a crash leaves the previous
//! state. Files are read as untrusted input: bounded, and checked by hash.

mod all_folders;
mod comparison;
mod files;
mod folder;
mod moves;
mod note_states;
mod received_state;
mod retention;
mod shared_state;
mod state_graph;

pub use all_folders::{all_folders_bytes, thin_least_used};
pub use comparison::{
    ComparedValue, ComparisonError, DifferingVariable, LoneVariable, StateComparison, run_comparison,
};
pub use files::{ListedStates, folder_bytes, list_states, read_heads, write_heads};
pub use folder::{ReplayPlan, StateFolder};
pub use moves::StateMove;
pub use note_states::{NoteStates, SavedState, list_note_states};
pub use received_state::{incoming_file, plan_receiving};
pub use retention::thin_folder;
pub use shared_state::{
    MAX_ANNOUNCEMENT_BYTES, SharedState, SharedStateFile, announce_state, begin_sharing, end_sharing, offered_files,
};
pub use state_graph::{MAX_STATE_LANES, StateGraphRow, state_graph};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Maximum memory of a kernel.
pub const MAX_GUEST_MEMORY_BYTES: usize = 2 << 30;
/// Size of the pages in which memory is compared and stored.
pub const PAGE_BYTES: usize = 4096;
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
    #[error("what the other device says of them can't be read")]
    BadAnnouncement,
    /// Not all files of another device's state have arrived.
    #[error("not all of them came from the other device; it or a hub that has them must be connected")]
    NotReceived,
    /// A state has too many bytes to be shared.
    #[error("they take {megabytes} MB, and at most {most} MB go to other devices")]
    TooLargeToShare {
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

/// Place where a page of memory is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePlace {
    /// The page is as in an instance that has run nothing.
    Fresh,
    /// The page is all zeros.
    Zero,
    /// The page is in a segment: its number in `StateFolder::segments`, and the page's index in it.
    Segment(u32, u32),
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

/// Memory as of the last saved state.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, a multiple of the page size.
    pub bytes: Vec<u8>,
    /// Place of each page.
    pub places: Vec<PagePlace>,
}

/// Pages that differ from the last saved state.
pub struct ChangedPages {
    /// Current size of the memory in bytes.
    pub memory: usize,
    /// Numbers of the pages, ascending.
    pub numbers: Vec<u32>,
    /// Content of the pages, concatenated.
    pub bytes: Vec<u8>,
}

impl SavedMemory {
    /// Returns the memory of an instance that has run nothing.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        SavedMemory { bytes: memory.to_vec(), places: vec![PagePlace::Fresh; memory.len() / PAGE_BYTES] }
    }

    /// Fills in the pages that are the same as in an instance that has run nothing.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this.
    pub fn fill_fresh(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        if self.bytes.len() < fresh.len() {
            return Err(FreshIsLarger);
        }
        let pages = self.bytes.chunks_exact_mut(PAGE_BYTES).zip(fresh.chunks_exact(PAGE_BYTES));
        for (_, (page, fresh)) in self.places.iter().zip(pages).filter(|(place, _)| **place == PagePlace::Fresh) {
            page.copy_from_slice(fresh);
        }
        // Pages beyond the fresh instance's memory are zero when memory grows.
        for place in self.places.iter_mut().skip(fresh.len() / PAGE_BYTES).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        Ok(())
    }

    /// Writes the saved memory over that of an instance that has run nothing. Only pages that differ are touched.
    pub fn write_over(&self, memory: &mut [u8], fresh_bytes: usize) {
        let write = |memory: &mut [u8], saved: &[u8], fresh_bytes: usize| {
            let pages = memory.chunks_exact_mut(PAGE_BYTES).zip(saved.chunks_exact(PAGE_BYTES));
            for (number, (page, saved)) in pages.enumerate() {
                // Memory that was added by growing is zero. It isn't read, since reading alone would allocate it.
                let is_same = match number * PAGE_BYTES < fresh_bytes {
                    true => *page == *saved,
                    false => is_zero(saved),
                };
                if !is_same {
                    page.copy_from_slice(saved);
                }
            }
        };
        // Most of the time goes into the system's allocation of pages, which two threads do faster.
        let half = memory.len().min(self.bytes.len()) / PAGE_BYTES / 2 * PAGE_BYTES;
        let ((low, high), (saved_low, saved_high)) = (memory.split_at_mut(half), self.bytes.split_at(half));
        let high = Mutex::new(Some(high));
        let write_high = || {
            let high = high.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(high) = high {
                write(high, saved_high, fresh_bytes.saturating_sub(half));
            }
        };
        std::thread::scope(|scope| {
            // If no thread is to be had, this one writes both halves.
            let _ = std::thread::Builder::new().spawn_scoped(scope, write_high);
            write(low, saved_low, fresh_bytes);
            write_high();
        });
    }

    /// Compares memory with the saved memory, copies the differing pages into it and returns them.
    #[must_use]
    pub fn take_changes(&mut self, memory: &[u8]) -> ChangedPages {
        let mut changed = ChangedPages { memory: memory.len(), numbers: Vec::new(), bytes: Vec::new() };
        if self.bytes.len() < memory.len() {
            self.bytes.resize(memory.len(), 0);
            // Memory that is added by growing is zero.
            self.places.resize(memory.len() / PAGE_BYTES, PagePlace::Zero);
        }
        changed.numbers = differing_pages(memory, &self.bytes);
        for number in &changed.numbers {
            let at = *number as usize * PAGE_BYTES;
            let now = &memory[at..at + PAGE_BYTES];
            self.bytes[at..at + PAGE_BYTES].copy_from_slice(now);
            changed.bytes.extend_from_slice(now);
        }
        changed
    }
}

/// Error: a fresh instance has more memory than a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fresh instance has more memory than the state")]
pub struct FreshIsLarger;

fn is_zero(page: &[u8]) -> bool {
    page.iter().fold(0, |all, byte| all | byte) == 0
}

/// Returns the numbers of the differing pages, ascending. The next cell waits for this, so two threads compare.
fn differing_pages(now: &[u8], before: &[u8]) -> Vec<u32> {
    let compare = |now: &[u8], before: &[u8], first: usize| {
        let pages = now.chunks_exact(PAGE_BYTES).zip(before.chunks_exact(PAGE_BYTES));
        let differ = pages.enumerate().filter(|(_, (now, before))| now != before);
        differ.filter_map(|(number, _)| u32::try_from(first + number).ok()).collect::<Vec<u32>>()
    };
    let half = now.len().min(before.len()) / PAGE_BYTES / 2;
    let ((now_low, now_high), (low, high)) = (now.split_at(half * PAGE_BYTES), before.split_at(half * PAGE_BYTES));
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, || compare(now_high, high, half));
        let mut numbers = compare(now_low, low, 0);
        match other.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => numbers.extend(more),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => numbers.extend(compare(now_high, high, half)), // no thread is to be had
        }
        numbers
    })
}

/// Returns whether `name` is a valid name for a branch.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty() && name.len() <= MAX_BRANCH_BYTES && name.chars().all(plain) && name.trim() == name
}
