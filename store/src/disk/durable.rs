//! Files and folders that survive a power cut: the steps of every durable write. A file gets its name only after its
//! bytes are on disk.

use crate::disk::error::DiskError;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

impl DiskError {
    /// The system's error in our words: `what` was tried on `path`.
    pub fn from_io(what: &'static str, path: &Path, error: &io::Error) -> DiskError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => DiskError::ReadOnly { path },
            _ => DiskError::Io { what, why: error.to_string(), path },
        }
    }
}

/// Makes the names in `folder` durable. A name that was given by a rename is lost by a power cut without this.
///
/// # Errors
/// The system's.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
    } else {
        Ok(()) // Elsewhere a folder cannot be opened; the file system journals names by itself.
    }
}

/// Makes `folder` and those above it that do not exist, durably.
///
/// # Errors
/// The system's.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    if !parent.as_os_str().is_empty() {
        create_folder(parent)?;
    }
    match std::fs::create_dir(folder) {
        Ok(()) => sync_folder(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes `bytes` to a new file next to `path`, on disk, and returns its name. No conflict is possible: only this
/// crate's temporary files start with `.tracebook-`.
///
/// # Errors
/// The system's; nothing is left behind then.
pub(crate) fn write_temporary_beside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut number = 0_u32;
    let (temporary, mut file) = loop {
        let temporary = folder.join(format!(".tracebook-{}-{number}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => break (temporary, file),
            // Another thread's, or the leftover of a process that had our number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => number += 1,
            Err(error) => return Err(error),
        }
    };
    match file.write_all(bytes).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(temporary),
        Err(error) => {
            let _ = std::fs::remove_file(&temporary); // the first error is the one to tell
            Err(error)
        }
    }
}

/// Gives `path` these bytes: all of them or, after any accident, what it had before.
///
/// # Errors
/// The system's; the old bytes are there then.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary_beside(path, bytes)?;
    if let Err(error) = std::fs::rename(&temporary, path) {
        let _ = std::fs::remove_file(&temporary); // the first error is the one to tell
        return Err(error);
    }
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Why `folder` cannot be written to just now, found by trying. SQLite keeps the system's reason to itself.
pub(crate) fn probe_writable(folder: &Path) -> io::Result<()> {
    // More than what a full disk may have left in a file's last block.
    let temporary = write_temporary_beside(&folder.join("probe"), &[0; 64 * 1024])?;
    std::fs::remove_file(temporary)
}
