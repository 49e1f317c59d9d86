//! Saved states of a note's kernel: pages of memory by their hash, and one file for each state.
//!
//! A folder for each note:
//! - `segments/HASH`: pages that were new with one state. Header, a hash for each page, then the pages, compressed with
//!   zstd, a frame for every 32. The name is the hash of the file.
//! - `states/ID`: one state, compressed JSON behind its own hash: parent, code, names, and where each page lies.
//! - `heads`: which state is current, on which branch, what can be done again, and what is pinned.
//! - `index`: what states say of themselves, so that a line of states is read at once. A state of the index without a
//!   file was thinned: its variables are made again from the state before it, by running its cells.
//!
//! All files are written beside their name, flushed to the disk and renamed: a crash leaves the state before. Files are
//! read as untrusted input: bounded, and checked by hash.

mod files;
mod folder;
mod moves;
mod retention;

pub use files::{ListedStates, folder_bytes, list_states, read_heads, write_heads};
pub use folder::{ReplayPlan, StateFolder};
pub use moves::StateMove;
pub use retention::thin_folder;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a kernel may use of memory.
pub const MAX_GUEST_MEMORY_BYTES: usize = 2 << 30;
/// Memory is compared and kept in pieces of this size.
pub const PAGE_BYTES: usize = 4096;
/// The branch on which a note begins.
pub const MAIN_BRANCH: &str = "main";
/// Longest name of a branch, in bytes.
const MAX_BRANCH_BYTES: usize = 100;

/// Why a state can't be saved, read or made the current one.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A state can't be described.
    #[error("the state can't be described: {0}")]
    Encode(String),
    /// There is no memory to decompress with.
    #[error("nothing can be decompressed: {0}")]
    Decompressor(std::io::Error),
    /// A state was saved by another pack.
    #[error("they were saved by another version of the science pack")]
    OtherPack,
    /// A file can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file's content isn't what it was when it was written.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Another kernel writes there.
    #[error("another program uses {path}; close it and run the cell again")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// There is no such state.
    #[error("this state is not there; `tracebook kernels states NOTE` lists them")]
    NoSuchState,
    /// The state was thinned, and what it was made from is gone.
    #[error("this state was thinned, and the states before it are gone")]
    LostLineage,
    /// The name of a pinned state can't be used.
    #[error("{name:?} can't name a state: use up to 100 letters, digits, spaces, dots, - and _")]
    PinName {
        /// The name.
        name: String,
    },
    /// The state isn't pinned.
    #[error("this state isn't pinned; `tracebook kernels states NOTE` lists them")]
    NotPinned,
    /// No cell has run.
    #[error("there is no run to undo")]
    NothingToUndo,
    /// No run was undone.
    #[error("there is no undone run to redo")]
    NothingToRedo,
    /// The name of a branch can't be used.
    #[error("{name:?} can't name a fork: use up to 100 letters, digits, spaces, dots, - and _")]
    BranchName {
        /// The name.
        name: String,
    },
    /// A branch has this name already.
    #[error("there is a fork {name:?} already; choose another name")]
    BranchExists {
        /// The name.
        name: String,
    },
    /// No branch has this name.
    #[error("there is no fork {name:?}; `tracebook kernels states NOTE` lists them")]
    NoSuchBranch {
        /// The name.
        name: String,
    },
    /// The current branch can't go.
    #[error("{name:?} is the current fork; switch to another one first")]
    CurrentBranch {
        /// The name.
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

/// Where a page of memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePlace {
    /// As in an instance that has run nothing.
    Fresh,
    /// All zeros.
    Zero,
    /// In a segment: its number in `StateFolder::segments`, and the page's place in it.
    Segment(u32, u32),
}

/// What a state says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// Its id: what it is by content, 32 hexadecimal digits.
    pub state: String,
    /// The state that it came from; `None`: a fresh kernel.
    pub parent: Option<String>,
    /// The cell that made it, as tracebacks call it.
    pub cell: String,
    /// The execution that made it.
    pub execution: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Names that existed and that the cell changed.
    pub changed: Vec<String>,
    /// Bytes that it added to the disk.
    pub bytes: u64,
    /// When it was saved, in milliseconds since 1970.
    pub time: u64,
    /// The code of the cell.
    pub code: String,
    /// How many cells had run.
    pub count: u64,
    /// Names that were forgotten before the cell ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
}

/// Which states are current.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHeads {
    /// The current branch.
    pub branch: String,
    /// Each branch's state; `None` is a fresh kernel.
    pub branches: BTreeMap<String, Option<String>>,
    /// States that an undo left, the last one last, by branch.
    pub redo: BTreeMap<String, Vec<String>>,
    /// States that are never thinned.
    pub pinned: BTreeSet<String>,
    /// What pinned states are called.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

impl StateHeads {
    /// The current state.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.branches.get(&self.branch)?.as_deref()
    }
}

/// What memory was when it was saved last.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, in whole pages.
    pub bytes: Vec<u8>,
    /// Where each page lies.
    pub places: Vec<PagePlace>,
}

/// Pages that differ from what was saved last.
pub struct ChangedPages {
    /// Bytes of memory now.
    pub memory: usize,
    /// Their numbers, ascending.
    pub numbers: Vec<u32>,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
}

impl SavedMemory {
    /// The memory of an instance that has run nothing.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        SavedMemory { bytes: memory.to_vec(), places: vec![PagePlace::Fresh; memory.len() / PAGE_BYTES] }
    }

    /// Takes over the pages that are as in an instance that has run nothing.
    ///
    /// # Errors
    /// A fresh instance has more memory than this.
    pub fn fill_fresh(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        if self.bytes.len() < fresh.len() {
            return Err(FreshIsLarger);
        }
        let pages = self.bytes.chunks_exact_mut(PAGE_BYTES).zip(fresh.chunks_exact(PAGE_BYTES));
        for (_, (page, fresh)) in self.places.iter().zip(pages).filter(|(place, _)| **place == PagePlace::Fresh) {
            page.copy_from_slice(fresh);
        }
        // What a fresh instance doesn't have is zero in one that has grown.
        for place in self.places.iter_mut().skip(fresh.len() / PAGE_BYTES).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        Ok(())
    }

    /// Writes what was saved over the memory of an instance that has run nothing: only pages that differ are touched.
    pub fn write_over(&self, memory: &mut [u8], fresh_bytes: usize) {
        let pages = memory.chunks_exact_mut(PAGE_BYTES).zip(self.bytes.chunks_exact(PAGE_BYTES));
        for (number, (page, saved)) in pages.enumerate() {
            // What memory has grown by is zero, and isn't looked at: that alone would make it real.
            let is_same = match number * PAGE_BYTES < fresh_bytes {
                true => *page == *saved,
                false => is_zero(saved),
            };
            if !is_same {
                page.copy_from_slice(saved);
            }
        }
    }

    /// Compares memory with what was saved, and takes over what differs.
    #[must_use]
    pub fn take_changes(&mut self, memory: &[u8]) -> ChangedPages {
        let mut changed = ChangedPages { memory: memory.len(), numbers: Vec::new(), bytes: Vec::new() };
        if self.bytes.len() < memory.len() {
            self.bytes.resize(memory.len(), 0);
            // What memory grows by is zero.
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

/// A fresh instance has more memory than a state says that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fresh instance has more memory than the state")]
pub struct FreshIsLarger;

fn is_zero(page: &[u8]) -> bool {
    page.iter().fold(0, |all, byte| all | byte) == 0
}

/// The numbers of the pages that differ, ascending. The next cell waits for it, so two threads look.
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

/// Whether a branch may be called so.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty() && name.len() <= MAX_BRANCH_BYTES && name.chars().all(plain) && name.trim() == name
}
