//! The science kernel: CPython with numpy, pandas, scipy, scikit-learn and matplotlib in WebAssembly, whose state is
//! saved after each cell.
//!
//! `machine` runs the pack's program, `kernel` is the body of the process; crate `kernel_states` stores a cell's
//! changes. This crate knows nothing about notes.

mod compare;
mod interrupt;
mod kernel;
pub mod machine;
mod saver;

pub use kernel::run_science_kernel;
pub use machine::compile_installed;

use std::path::{Path, PathBuf};

/// Error of the science kernel.
#[derive(Debug, thiserror::Error)]
pub enum ScienceError {
    /// Error of the WebAssembly engine.
    #[error("the WebAssembly machine failed: {0}")]
    Machine(String),
    /// The program isn't the pack's.
    #[error("this isn't the science pack's Python, or the pack is damaged; install it again")]
    OtherProgram,
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
    /// A state can't be saved or read.
    #[error(transparent)]
    State(#[from] kernel_states::StateError),
    /// A thread can't be started.
    #[error("cannot start a thread: {source}")]
    Thread {
        /// The I/O error.
        source: std::io::Error,
    },
    /// No states are saved for this note.
    #[error("no states are saved for this note")]
    NoStates,
}

impl ScienceError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Write { path: path.to_owned(), source }
    }
}
