//! Opens workspaces. One process owns a workspace at a time; other processes send commands to it.

use crate::driver::Driver;
use crate::error::OpenError;
use crate::fs::file_rights::make_folder_private;
use crate::loader;
use crate::lock::WorkspaceLock;
use crate::socket;
use anyhow::bail;
use rand::SeedableRng;
use std::path::{Path, PathBuf};
use store::disk::{DiskError, SqliteDisk};

/// Options for opening a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceOptions {
    /// Path of the program that's started as `PROGRAM kernel` to run cells.
    pub program: PathBuf,
    /// Whether to create the workspace if there's none.
    pub create: bool,
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

/// Returns whether this folder contains a workspace.
pub fn workspace_exists(folder: &Path) -> bool {
    folder.join(store::disk::DATABASE_FILE).exists() || folder.join(store::disk::MARKER_FILE).exists()
}

/// Opens a workspace and starts everything that works for it.
///
/// # Errors
/// Returns an [`OpenError`] if there's no workspace, another process owns it, or it can't be read.
pub fn open_workspace(folder: &Path, options: WorkspaceOptions) -> Result<Driver, OpenError> {
    if !options.create && !workspace_exists(folder) {
        return Err(OpenError::Disk(DiskError::Missing { path: folder.to_owned() }));
    }
    if options.create {
        let fresh = !folder.exists();
        let say = |error: std::io::Error| OpenError::Disk(DiskError::from_io("making", folder, &error));
        store::disk::create_folder(folder).map_err(say)?;
        if fresh {
            // Notes are private.
            make_folder_private(folder).map_err(say)?;
        }
    }
    let folder = std::fs::canonicalize(folder)
        .map_err(|error| OpenError::Disk(DiskError::from_io("opening", folder, &error)))?;
    let owned = WorkspaceLock::acquire(&folder)?;
    crate::logging::start(&folder);
    let mut disk = SqliteDisk::open(&folder, options.create)?;
    let started = load_start(&mut disk, &folder)?;
    crate::renderer::set_worker_program(&options.program);
    Ok(Driver::start(Box::new(disk), folder, options.program, started, Some(owned))?)
}

/// Reads what the session needs to start, and from the configuration the location of memory and settings of volumes.
fn load_start(disk: &mut SqliteDisk, folder: &Path) -> Result<engine::event::WorkspaceStart, OpenError> {
    let mut started = loader::load_workspace_start(disk, folder, &mut rand::rngs::StdRng::from_os_rng())?;
    if let Ok(config) = crate::maintenance::configuration::load_config(folder) {
        started.memory_place = config.memory.place;
        started.volume_settings = config.volumes;
    }
    Ok(started)
}

/// Minimum free space in bytes for optional writes: a few pages of the database and its log.
const MIN_FREE_BYTES: u64 = 512 << 10;

/// Returns why nothing can be written to a folder, if that's known without trying.
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

/// Opens a workspace for a read-only command.
///
/// If nothing can be written, it uses a copy in memory and writes nothing. [`Driver::read_only_reason`] then says why.
///
/// # Errors
/// Returns an [`OpenError`] as [`open_workspace`] does.
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
    let started = load_start(&mut disk, &folder)?;
    Ok(Driver::start_read_only(Box::new(disk), folder, program, started, why.to_string())?)
}

impl Driver {
    /// Accepts commands from the same user's other processes. Returns the counter of their running requests.
    ///
    /// # Errors
    /// Returns an error if the socket can't be created. The workspace works without it.
    pub fn serve_requests(&self, serve: socket::RequestHandler) -> anyhow::Result<socket::GuestRequests> {
        let Some(owned) = self.workspace_lock() else { bail!("the workspace is not owned") };
        let (name, guests) = socket::listen(owned.folder(), self.handle(), serve)?;
        owned.publish_socket(Some(&name))?;
        Ok(guests)
    }
}
