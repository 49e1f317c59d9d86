//! Packages of agents, tools, templates, snippets, themes and prompts: reads them from folders, archives, Git
//! repositories and indexes, checks their signatures, and installs their files where the program reads such files.
//!
//! Nothing of a package is run here, and nothing is installed that the caller hasn't approved by its hash.

mod archive_files;
mod error;
mod manifest;
mod open_packages;
mod package_content;
mod package_index;
mod package_lock;
mod package_signature;
mod package_source;
mod package_store;
mod publishing;

pub use error::PackageError;
pub use manifest::{PackageManifest, PackagePermissions, is_package_name};
pub use open_packages::{OpenPackages, configured_indexes, search_index, tool_names};
pub use package_content::{PackageContent, PackagePart};
pub use package_index::{IndexEntry, IndexLocation, OpenedIndex};
pub use package_lock::{InstalledFile, InstalledPackage, InstalledVolume, PackageLock};
pub use package_signature::PackageSigningKey;
pub use package_source::{PackageSource, fetch_package, fetch_update};
pub use package_store::{InstallTargets, PackageStore, PlannedChange, SettledChange};
pub use publishing::{PublishedPackage, publish_package, sign_folder};
