//! The science kernel.
pub mod machine;
use std::path::{Path, PathBuf};
/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ScienceError {
    /// The WebAssembly machine refused.
    #[error("the WebAssembly machine failed: {0}")]
    Machine(String),
    /// It's no program of the pack.
    #[error("this isn't the science pack's Python: it lacks the functions that run cells")]
    OtherProgram,
    /// A file can't be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// A file can't be written.
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
}
impl ScienceError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Read { path: path.to_owned(), source }
    }
    pub(crate) fn write(path: &Path, source: std::io::Error) -> ScienceError {
        ScienceError::Write { path: path.to_owned(), source }
    }
}
