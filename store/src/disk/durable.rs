//! Durable file writes that survive a power cut. A file gets its name only after its bytes are on disk.

use crate::disk::error::{DiskError, io_reason};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

impl DiskError {
    /// Converts an I/O error: `what` was attempted on `path`.
    pub fn from_io(what: &'static str, path: &Path, error: &io::Error) -> DiskError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => DiskError::ReadOnly { path },
            _ => DiskError::Io { what, why: io_reason(error), path },
        }
    }
}

/// Makes the names in `folder` durable. Without this, a power cut can undo a rename.
///
/// # Errors
/// Returns the I/O error if the folder can't be synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
    } else {
        Ok(()) // Elsewhere a folder cannot be opened; the file system journals names by itself.
    }
}

/// Creates `folder` and its missing parents durably.
///
/// # Errors
/// Returns the I/O error if a folder can't be created or synced.
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

/// Writes `bytes` durably to a new file next to `path`, and returns the new file's path. Names can't conflict: only
/// this crate's temporary files start with `.tracebook-`.
///
/// # Errors
/// Returns the I/O error if the file can't be written. No file is left behind then.
pub(crate) fn write_temporary_beside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut number = 0_u32;
    let (temporary, mut file) = loop {
        let temporary = folder.join(format!(".tracebook-{}-{number}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => break (temporary, file),
            // A file of another thread, or the leftover of a process that had the same process id.
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

/// Replaces the content of `path` atomically: after a crash it has either the old or the new bytes.
///
/// # Errors
/// Returns the I/O error if writing fails. The old bytes stay then.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary_beside(path, bytes)?;
    if let Err(error) = std::fs::rename(&temporary, path) {
        let _ = std::fs::remove_file(&temporary); // the first error is the one to tell
        return Err(error);
    }
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Checks whether `folder` is writable by writing a file. SQLite doesn't report the system's reason for a failed write.
pub(crate) fn probe_writable(folder: &Path) -> io::Result<()> {
    // Larger than the space that may be left in the last block of a file on a full disk.
    let temporary = write_temporary_beside(&folder.join("probe"), &[0; 64 * 1024])?;
    std::fs::remove_file(temporary)
}
