//! The lock file of a workspace: one process owns it at a time, and says there how others reach it.

use crate::error::OpenError;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use store::disk::DiskError;

/// The file whose lock says that the workspace is owned. The system releases it when the owner dies, however it dies.
const WORKSPACE_LOCK_FILE: &str = "lock";

/// What the owner writes into the lock file.
#[derive(Serialize, Deserialize)]
struct LockOwner {
    pid: u32,
    socket: Option<String>,
}

/// The right to use a workspace, until dropped.
#[derive(Debug)]
pub struct WorkspaceLock {
    lock: File,
    folder: PathBuf,
}

impl WorkspaceLock {
    /// Takes the right.
    ///
    /// # Errors
    /// [`OpenError::Owned`] when another process has it; the disk's refusal.
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
                    // The lock itself needs no room.
                    Ok(()) | Err(OpenError::Disk(DiskError::Full { .. })) => Ok(owned),
                    Err(error) => Err(error),
                }
            }
            Err(TryLockError::WouldBlock) => Err(read_owner(&mut lock)),
            Err(TryLockError::Error(error)) => Err(fail(&error)),
        }
    }

    /// Takes the right for as long as it takes to copy the workspace, where nothing can be written.
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

    /// Announces how to reach this process.
    pub(crate) fn publish_socket(&self, socket: Option<&str>) -> Result<(), OpenError> {
        let owner = LockOwner { pid: std::process::id(), socket: socket.map(ToOwned::to_owned) };
        let text = serde_json::to_vec(&owner).unwrap_or_default();
        let mut file = &self.lock;
        // Written over before it is cut: what is cut first may not be given back on a full disk.
        file.rewind().and_then(|()| file.write_all(&text)).and_then(|()| file.set_len(text.len() as u64)).map_err(
            |error| OpenError::Disk(DiskError::from_io("writing", &self.folder.join(WORKSPACE_LOCK_FILE), &error)),
        )
    }

    /// Returns the workspace's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads which process owns the workspace.
fn read_owner(lock: &mut File) -> OpenError {
    let mut text = String::new();
    // What can't be read says nothing about the owner, and is shown that way.
    let _ = lock.read_to_string(&mut text);
    let owner: Option<LockOwner> = serde_json::from_str(&text).ok();
    let (pid, socket) = owner.map_or((None, None), |owner| (Some(owner.pid), owner.socket));
    OpenError::Owned { socket, pid }
}

/// The socket of the process that has the workspace open, if one has.
///
/// # Errors
/// Like [`WorkspaceLock::acquire`], but for being owned.
pub fn owner_socket(folder: &Path) -> Result<Option<String>, OpenError> {
    match WorkspaceLock::acquire(folder) {
        Ok(_) => Ok(None),
        Err(OpenError::Owned { socket: Some(socket), .. }) => Ok(Some(socket)),
        Err(error) => Err(error),
    }
}
