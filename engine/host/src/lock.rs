//! The lock file of a workspace: one process owns it at a time, and publishes there how others reach it.

use crate::error::OpenError;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use store::disk::DiskError;

/// Name of the lock file. The system releases its lock when the owner ends for any reason.
const WORKSPACE_LOCK_FILE: &str = "lock";

/// The owner's entry in the lock file.
#[derive(Serialize, Deserialize)]
struct LockOwner {
    pid: u32,
    socket: Option<String>,
}

/// Exclusive ownership of a workspace, until dropped.
#[derive(Debug)]
pub struct WorkspaceLock {
    lock: File,
    folder: PathBuf,
}

impl WorkspaceLock {
    /// Takes ownership of a workspace.
    ///
    /// # Errors
    /// Returns [`OpenError::Owned`] if another process owns it, or the disk's error.
    pub fn acquire(folder: &Path) -> Result<WorkspaceLock, OpenError> {
        let path = folder.join(WORKSPACE_LOCK_FILE);
        let fail = |error: &std::io::Error| OpenError::Disk(DiskError::from_io("opening", &path, error));
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(&path).map_err(|error| fail(&error))?;
        match lock.try_lock() {
            Ok(()) => {
                let owned = WorkspaceLock { lock, folder: folder.to_owned() };
                match owned.publish_socket(None) {
                    // On a full disk the entry can't be written, but the lock itself needs no space.
                    Ok(()) | Err(OpenError::Disk(DiskError::Full { .. })) => Ok(owned),
                    Err(error) => Err(error),
                }
            }
            Err(TryLockError::WouldBlock) => Err(read_owner(&mut lock)),
            Err(TryLockError::Error(error)) => Err(fail(&error)),
        }
    }

    /// Takes ownership while a workspace is copied because nothing can be written; `None` if it has no lock file.
    pub(crate) fn acquire_for_copy(folder: &Path) -> Result<Option<File>, OpenError> {
        let path = folder.join(WORKSPACE_LOCK_FILE);
        let fail = |error: &std::io::Error| OpenError::Disk(DiskError::from_io("opening", &path, error));
        let mut lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(&error)),
        };
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Err(read_owner(&mut lock)),
            Err(TryLockError::Error(error)) => Err(fail(&error)),
        }
    }

    /// Publishes how other processes reach this one.
    pub(crate) fn publish_socket(&self, socket: Option<&str>) -> Result<(), OpenError> {
        let owner = LockOwner { pid: std::process::id(), socket: socket.map(ToOwned::to_owned) };
        let text = serde_json::to_vec(&owner).unwrap_or_default();
        let mut file = &self.lock;
        // Overwrite before truncating: on a full disk, truncated space might not be available again.
        file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64)).map_err(
            |error| OpenError::Disk(DiskError::from_io("writing", &self.folder.join(WORKSPACE_LOCK_FILE), &error)),
        )
    }

    /// Returns the workspace's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns the error that names the process that owns the workspace.
fn read_owner(lock: &mut File) -> OpenError {
    let mut text = String::new();
    // An unreadable entry leaves the owner unknown, and the message shows it that way.
    let _ = lock.read_to_string(&mut text);
    let owner: Option<LockOwner> = serde_json::from_str(&text).ok();
    let (pid, socket) = owner.map_or((None, None), |owner| (Some(owner.pid), owner.socket));
    OpenError::Owned { socket, pid }
}

/// Returns the socket of the process that has the workspace open; `None` if no process has.
///
/// # Errors
/// Returns the errors of [`WorkspaceLock::acquire`], including [`OpenError::Owned`] if the owner has no socket yet.
pub fn owner_socket(folder: &Path) -> Result<Option<String>, OpenError> {
    match WorkspaceLock::acquire(folder) {
        Ok(_) => Ok(None),
        Err(OpenError::Owned { socket: Some(socket), .. }) => Ok(Some(socket)),
        Err(error) => Err(error),
    }
}
