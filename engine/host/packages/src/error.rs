//! Errors of packages.

use agent::config::ConfigError;
use engine::CommandError;
use git_program::{GitProgramError, RepositoryAddressError};
use host::{OwnerGone, SaveError};
use store::disk::DiskError;

/// Why something with a package couldn't be done.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The manifest, a file or a name isn't as packages have it.
    #[error("this isn't a valid package: {0}")]
    Malformed(String),
    /// It's larger than a package may be.
    #[error("this is no package: {0}")]
    TooLarge(String),
    /// The archive can't be read.
    #[error("the archive can't be read: {0}")]
    Archive(String),
    /// The signature doesn't fit, or a key can't be used.
    #[error("{0}")]
    Signature(String),
    /// The index isn't one, or doesn't have the package.
    #[error("{0}")]
    Index(String),
    /// The source can't be reached or read.
    #[error("can't get {what}: {why}")]
    Unreachable {
        /// What was asked for, for people.
        what: String,
        /// Why it can't be reached.
        why: String,
    },
    /// Installing it would replace something that isn't the package's.
    #[error("{0}")]
    Conflict(String),
    /// No installed package has this name.
    #[error("no package {0} is installed; `tracebook packages list` lists them")]
    NotInstalled(String),
    /// The file of installed packages can't be used.
    #[error("{0}")]
    Lock(String),
    /// The address isn't one of a repository.
    #[error(transparent)]
    Address(#[from] RepositoryAddressError),
    /// An error of the user's `git`.
    #[error(transparent)]
    Git(#[from] GitProgramError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The configuration can't be read.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// The session refused a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The program that has the workspace open is closing.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
    /// Not everything could be saved.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The disk rejects writes, with the reason.
    #[error("it could not be done: {0}")]
    Unsaved(String),
    /// Something took longer than it should.
    #[error("{0}")]
    Slow(&'static str),
}

impl PackageError {
    pub(crate) fn io(what: &'static str, path: &std::path::Path, error: &std::io::Error) -> PackageError {
        PackageError::Disk(DiskError::from_io(what, path, error))
    }
}
