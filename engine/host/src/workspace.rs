//! Opening a workspace: one process owns it at a time; others talk to that one.

use crate::driver::{Driver, unix_now};
use crate::loader;
use crate::socket;
use rand::SeedableRng;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use store::disk::{DiskError, SqliteDisk};

/// The file whose lock says that the workspace is owned. The system releases it when the owner dies, however it dies.
const WORKSPACE_LOCK_FILE: &str = "lock";

/// How to open a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceOptions {
    /// The program that is started as `PROGRAM kernel` to run cells.
    pub program: PathBuf,
    /// Make the workspace if there is none.
    pub create: bool,
}

/// Why a workspace cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process owns the workspace; commands go through its socket, if it has announced one.
    Owned {
        /// Name of the owner's socket.
        socket: Option<String>,
        /// The owner's process id, if it has announced it.
        pid: Option<u32>,
    },
    /// The disk refuses, or what is on it does not hold together.
    Disk(DiskError),
    /// Anything else, as a sentence.
    Other(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Owned { pid: Some(pid), .. } => {
                write!(f, "another Tracebook (process {pid}) has the workspace open; close it or use its window")
            }
            OpenError::Owned { pid: None, .. } => {
                write!(f, "another Tracebook has the workspace open; close it or use its window")
            }
            OpenError::Disk(error) => error.fmt(f),
            OpenError::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        OpenError::Disk(error)
    }
}

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
    fn acquire_for_copy(folder: &Path) -> Result<Option<File>, OpenError> {
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

/// Returns the default workspace folder: from the user's configuration, otherwise the platform's data folder.
pub fn default_folder() -> Option<PathBuf> {
    if let Some(folder) = crate::maintenance::configuration::configured_workspace() {
        return Some(folder);
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local").join("share"));
    let windows = || std::env::var_os("LOCALAPPDATA").map(PathBuf::from);
    Some(data.or_else(windows).or_else(home)?.join("tracebook"))
}

/// Whether there is a workspace in this folder.
pub fn workspace_exists(folder: &Path) -> bool {
    folder.join(store::disk::DATABASE_FILE).exists() || folder.join(store::disk::MARKER_FILE).exists()
}

/// Notes are private: no other user may read a new workspace.
#[cfg(unix)]
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn create_private_folder(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Opens a workspace and everything that works for it.
///
/// # Errors
/// [`OpenError`].
pub fn open_workspace(folder: &Path, options: WorkspaceOptions) -> Result<Driver, OpenError> {
    if !options.create && !workspace_exists(folder) {
        return Err(OpenError::Disk(DiskError::Missing { path: folder.to_owned() }));
    }
    if options.create {
        let fresh = !folder.exists();
        let say = |error: std::io::Error| OpenError::Disk(DiskError::from_io("making", folder, &error));
        store::disk::create_folder(folder).map_err(say)?;
        if fresh {
            create_private_folder(folder).map_err(say)?;
        }
    }
    let folder = std::fs::canonicalize(folder)
        .map_err(|error| OpenError::Disk(DiskError::from_io("opening", folder, &error)))?;
    let owned = WorkspaceLock::acquire(&folder)?;
    let mut disk = SqliteDisk::open(&folder, options.create)?;
    let started = loader::load_workspace_start(&mut disk, &folder, &mut rand::rngs::StdRng::from_os_rng())?;
    crate::renderer::set_worker_program(&options.program);
    Driver::start(Box::new(disk), folder, options.program, started, Some(owned)).map_err(OpenError::Other)
}

/// Bytes without which nothing is written that only helps to be fast: room for a few pages of the database and its log.
const MIN_FREE_BYTES: u64 = 512 << 10;

/// Why nothing can be written into a folder, as far as that is known without trying.
#[cfg(unix)]
fn missing_space_error(folder: &Path) -> Option<DiskError> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let path = folder.join(store::disk::DATABASE_FILE);
    if found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        return Some(DiskError::ReadOnly { path });
    }
    (found.f_bavail.saturating_mul(found.f_frsize) < MIN_FREE_BYTES).then_some(DiskError::Full { path })
}

#[cfg(not(unix))]
fn missing_space_error(_folder: &Path) -> Option<DiskError> {
    None
}

/// Opens a workspace for a read-only command. If nothing can be written, it uses a copy in memory and writes nothing:
/// [`Driver::reads_only`] says why.
///
/// # Errors
/// [`OpenError`], as for [`open_workspace`].
pub fn open_workspace_read_only(folder: &Path, options: WorkspaceOptions) -> Result<Driver, OpenError> {
    if options.create || !workspace_exists(folder) {
        return open_workspace(folder, options);
    }
    let program = options.program.clone();
    let why = match missing_space_error(folder) {
        Some(why) => why,
        None => match open_workspace(folder, options) {
            Err(OpenError::Disk(why @ (DiskError::Full { .. } | DiskError::ReadOnly { .. }))) => why,
            opened => return opened,
        },
    };
    let folder = std::fs::canonicalize(folder)
        .map_err(|error| OpenError::Disk(DiskError::from_io("opening", folder, &error)))?;
    let lock = WorkspaceLock::acquire_for_copy(&folder)?;
    let mut disk = SqliteDisk::copy_in_memory(&folder)?;
    drop(lock);
    let started = loader::load_workspace_start(&mut disk, &folder, &mut rand::rngs::StdRng::from_os_rng())?;
    Driver::start_read_only(Box::new(disk), folder, program, started, why.to_string()).map_err(OpenError::Other)
}

impl Driver {
    /// Lets other processes of the same user talk to this one. Gives those that do.
    ///
    /// # Errors
    /// A sentence: the socket could not be made. The workspace works without.
    pub fn serve_requests(&self, serve: socket::RequestHandler) -> Result<socket::GuestRequests, String> {
        let Some(owned) = self.workspace_lock() else { return Err("the workspace is not owned".to_owned()) };
        let (name, guests) = socket::listen(owned.folder(), self.handle(), serve)?;
        owned.publish_socket(Some(&name)).map_err(|error| error.to_string())?;
        Ok(guests)
    }
}

/// Milliseconds since 1970, for what stands outside a session (fsck, backup).
pub fn unix_millis_now() -> i64 {
    unix_now().0
}
