//! The science kernel: CPython with numpy, pandas, scipy, scikit-learn and matplotlib in WebAssembly, whose state is
//! saved after each cell.
//!
//! `machine` runs the pack's program, `kernel` is the body of the process, `states` keeps what a cell changed. Nothing
//! here knows of notes.

mod kernel;
pub mod machine;
pub mod states;

pub use kernel::run_science_kernel;
pub use machine::compile_installed;

use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ScienceError {
    /// The WebAssembly machine refused.
    #[error("the WebAssembly machine failed: {0}")]
    Machine(String),
    /// It's no program of the pack.
    #[error("this isn't the science pack's Python, or the pack is damaged; install it again")]
    OtherProgram,
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
    /// A thread can't be started.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// No states are saved for this note.
    #[error("no states are saved for this note")]
    NoStates,
    /// There is no such state.
    #[error("there is no such state; `tracebook kernels states NOTE` lists them")]
    NoSuchState,
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

impl ScienceError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Write { path: path.to_owned(), source }
    }
}
