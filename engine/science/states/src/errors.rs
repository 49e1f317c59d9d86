//! Why a state can't be saved, read or made current.

use std::path::{Path, PathBuf};

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
    /// The system gives no more memory for a state's pages.
    #[error("memory can't be written: {0}")]
    SlotFull(std::io::Error),
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
    /// The current variables aren't saved, so they would be lost if other ones were loaded.
    #[error("the note's own variables aren't saved; free space on the disk, and run one of its cells")]
    UnsavedVariables,
    /// The current branch can't be discarded.
    #[error("{name:?} is the current fork; switch to another one first")]
    CurrentBranch {
        /// Name of the branch.
        name: String,
    },
}

impl StateError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> StateError {
        StateError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: std::io::Error) -> StateError {
        StateError::Write { path: path.to_owned(), source }
    }
}
