//! Packages of agents, tools, templates, snippets, themes and prompts: reads them from folders, archives, Git
//! repositories and indexes, checks their signatures, and installs their files where the program reads such files.
//!
//! Nothing of a package is run here, and nothing is installed that the caller hasn't approved by its hash.

mod archive_files;
mod manifest;
mod package_content;
mod package_index;
mod package_lock;
mod package_signature;
mod package_source;
mod package_store;
mod publishing;

pub use manifest::{PackageManifest, PackagePermissions, is_package_name};
pub use package_content::{PackageContent, PackagePart};
pub use package_index::{IndexEntry, IndexLocation, OpenedIndex};
pub use package_lock::{InstalledFile, InstalledPackage, InstalledVolume, PackageLock};
pub use package_signature::PackageSigningKey;
pub use package_source::{PackageSource, fetch_package, fetch_update};
pub use package_store::{InstallTargets, PackageStore, PlannedChange, SettledChange};
pub use publishing::{PublishedPackage, publish_package, sign_folder};

use git_program::{GitProgramError, RepositoryAddressError};
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
}

impl PackageError {
    fn io(what: &'static str, path: &std::path::Path, error: &std::io::Error) -> PackageError {
        PackageError::Disk(DiskError::from_io(what, path, error))
    }
}
