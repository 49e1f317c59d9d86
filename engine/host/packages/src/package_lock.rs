//! The file `packages.lock` in a workspace: which packages are installed, from where, and which files are theirs.

use crate::{PackageError, PackagePart, PackagePermissions, PackageSource, is_package_name};
use host::fs::copy;
use semver::Version;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::BlobHash;

/// Name of the file in the workspace's folder.
pub(crate) const LOCK_FILE: &str = "packages.lock";
/// Version of the file's format.
const LOCK_FORMAT: u32 = 1;
/// Maximum size of the file in bytes.
const MAX_LOCK_BYTES: u64 = 16 << 20;

/// An installed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledFile {
    /// Its kind.
    pub part: PackagePart,
    /// Its path: in the workspace, or for notes in the package's volume.
    pub path: String,
    /// Hash of what the package has.
    pub hash: BlobHash,
}

/// The volume that has the notes of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledVolume {
    /// Id of the volume.
    pub id: String,
    /// Its name when the package was installed.
    pub name: String,
}

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The folder, archive or address that it was installed from.
    pub source: PackageSource,
    /// Hash of the package.
    pub hash: BlobHash,
    /// The public key that has signed it.
    pub signer: Option<String>,
    /// The permissions that the user has approved.
    pub permissions: PackagePermissions,
    /// The volume that has its notes; `None` if it has none.
    pub volume: Option<InstalledVolume>,
    /// Its files.
    pub files: Vec<InstalledFile>,
    /// Its tools by name, with the paths of their files.
    pub tools: BTreeMap<String, String>,
}

impl InstalledPackage {
    /// Returns the version.
    ///
    /// # Errors
    /// Returns an error if the lock file was changed to something else.
    pub fn read_version(&self) -> Result<Version, PackageError> {
        Version::parse(&self.version)
            .map_err(|_| PackageError::Lock(format!("{LOCK_FILE} has no version of {}", self.name)))
    }
}

/// What is installed in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageLock {
    format: u32,
    /// The packages by name.
    pub packages: BTreeMap<String, InstalledPackage>,
    /// Folders that were made for packages, so that the last file's removal removes them: the volume's id, or nothing
    /// for the workspace, and the path.
    pub(crate) made_folders: BTreeSet<(Option<String>, String)>,
}

impl Default for PackageLock {
    fn default() -> PackageLock {
        PackageLock { format: LOCK_FORMAT, packages: BTreeMap::new(), made_folders: BTreeSet::new() }
    }
}

impl PackageLock {
    /// Reads the lock file of a workspace. Returns it, and the hash of its bytes if there is one.
    pub(crate) fn read(workspace: &Path) -> Result<(PackageLock, Option<BlobHash>), PackageError> {
        let path = workspace.join(LOCK_FILE);
        if !copy::exists(&path) {
            return Ok((PackageLock::default(), None));
        }
        let refuse = |why: String| {
            let path = path.display();
            PackageError::Lock(format!("{path} can't be used: {why}. Nothing was changed; restore it from a backup"))
        };
        let bytes = copy::read(&path, MAX_LOCK_BYTES)
            .ok_or_else(|| refuse(format!("it can't be read, or has more than {} MB", MAX_LOCK_BYTES >> 20)))?;
        let lock: PackageLock = serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
        if lock.format != LOCK_FORMAT {
            return Err(refuse(format!("its format is {}, and this Tracebook knows {LOCK_FORMAT}", lock.format)));
        }
        let is_named = |(name, package): (&String, &InstalledPackage)| is_package_name(name) && *name == package.name;
        match lock.packages.iter().all(is_named) {
            true => Ok((lock, Some(BlobHash::of(&bytes)))),
            false => Err(refuse("a package in it has another name".to_owned())),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text.into_bytes()
    }

    /// Returns an installed package.
    ///
    /// # Errors
    /// Returns an error if none has this name.
    pub fn package(&self, name: &str) -> Result<&InstalledPackage, PackageError> {
        let shown: String = name.chars().take(60).collect();
        self.packages.get(name).ok_or(PackageError::NotInstalled(shown))
    }
}
