//! Backups: consistent copies of a workspace and its volumes, made while the program runs, and their restoration.
//!
//! A backup never overwrites a file, and unfinished or modified backups are rejected.
//!
//! The order of copying makes it consistent:
//!
//! 1. the database
//! 2. the blobs; all blobs that the database refers to exist by then, because blobs are only added
//! 3. the files; a file newer than its row is merged like any outside edit
//! 4. the manifest

mod restore;

pub use restore::{BackupTrust, RestoreSummary, restore_backup};

use crate::fs::atomic_write::{is_temporary_file, open_regular_file};
use crate::fs::confined_dir::ConfinedFolder;
use engine::TRASH_FOLDER;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, FileTimes, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::BlobHash;
use store::disk::{
    BLOBS_FOLDER, BlobHasher, DATABASE_FILE, DiskError, MARKER_FILE, SqliteReader, VolumeMount, create_folder,
    path_form, sync_folder, write_marker,
};

/// Name of the file that lists all files of a backup. A folder without it isn't a complete backup.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the folder for the volumes' files inside a backup.
const BACKUP_VOLUMES_FOLDER: &str = "volumes";
const BACKUP_FORMAT: i64 = 1;

/// Why a backup or restore failed.
#[derive(Debug)]
pub enum BackupError {
    /// An error of the workspace's disk.
    Disk(DiskError),
    /// The operation would do harm, or isn't possible.
    Refused(String),
    /// A file that belongs to the backup can't be read.
    Unreadable {
        /// The message of the operating system.
        why: String,
        /// Path of the file.
        path: PathBuf,
    },
    /// The user canceled. Nothing of the backup is left.
    Cancelled,
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Disk(error) => error.fmt(f),
            BackupError::Refused(why) => why.fmt(f),
            BackupError::Unreadable { why, path } => write!(f, "it cannot be read ({why}): {}", path.display()),
            BackupError::Cancelled => write!(f, "cancelled"),
        }
    }
}

impl std::error::Error for BackupError {}

impl From<DiskError> for BackupError {
    fn from(error: DiskError) -> BackupError {
        BackupError::Disk(error)
    }
}

/// Progress of a backup or restore, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProgress {
    /// Bytes copied or checked so far.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
}

/// Summary of a backup.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BackupSummary {
    /// Number of files.
    pub files: usize,
    /// Total size in bytes.
    pub bytes: u64,
    /// Problems: files that couldn't be copied, and damage that existed before.
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct BackupManifest {
    format: i64,
    /// When the backup was made, in milliseconds since 1970.
    made: i64,
    mounts: Vec<VolumeMount>,
    problems: Vec<String>,
    files: Vec<BackupEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct BackupEntry {
    /// Path relative to the backup's folder.
    #[serde(with = "path_form")]
    path: PathBuf,
    #[serde(flatten)]
    kind: BackupEntryKind,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum BackupEntryKind {
    File {
        size: u64,
        hash: BlobHash,
    },
    Folder,
    Link {
        #[serde(with = "path_form")]
        to: PathBuf,
    },
}

/// State of a running backup.
struct BackupJob<'a> {
    progress: &'a mut dyn FnMut(BackupProgress),
    cancel: &'a AtomicBool,
    at: BackupProgress,
}

impl BackupJob<'_> {
    fn add_progress(&mut self, bytes: u64) -> Result<(), BackupError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(BackupError::Cancelled);
        }
        self.at.done += bytes;
        self.at.total = self.at.total.max(self.at.done); // a file may have grown since it was listed
        (self.progress)(self.at);
        Ok(())
    }

    /// Reads a regular file, passes its bytes to `take`, and returns its size and hash. `shown` is its path for
    /// messages.
    fn read_file(
        &mut self,
        from: &Path,
        shown: &Path,
        mut take: impl FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<(u64, BlobHash), BackupError> {
        let mut file = open_regular_file(from).map_err(|error| unreadable_error(shown, &error))?;
        let mut piece = vec![0; 1 << 20];
        let (mut hasher, mut size) = (BlobHasher::default(), 0);
        loop {
            let read = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable_error(shown, &error)),
            };
            hasher.update(&piece[..read]);
            take(&piece[..read])?;
            size += read as u64;
            self.add_progress(read as u64)?;
        }
        Ok((size, hasher.finish()))
    }

    /// Copies a file to an unused path, with its mode and modification time. The copy isn't durable yet.
    fn copy_file(&mut self, from: &Path, shown: &Path, to: &Path) -> Result<(u64, BlobHash), BackupError> {
        let fail = |error: io::Error| DiskError::from_io("writing", to, &error);
        let like = open_regular_file(from)
            .and_then(|file| file.metadata())
            .map_err(|error| unreadable_error(shown, &error))?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(to).map_err(fail)?;
        let copied = self.read_file(from, shown, |piece| Ok(file.write_all(piece).map_err(fail)?)).and_then(|copied| {
            if let Ok(time) = like.modified() {
                file.set_times(FileTimes::new().set_modified(time)).map_err(fail)?;
            }
            file.set_permissions(like.permissions()).map_err(fail)?;
            if cfg!(not(target_os = "linux")) {
                file.sync_all().map_err(fail)?; // elsewhere there is no way to wait for all of them at once
            }
            Ok(copied)
        });
        if copied.is_err() {
            let _ = std::fs::remove_file(to); // the first error is the one to tell
        }
        copied
    }
}

fn unreadable_error(path: &Path, error: &io::Error) -> BackupError {
    BackupError::Unreadable { why: store::disk::io_reason(error), path: path.to_owned() }
}

/// Makes everything written below `folder` durable at once.
fn sync_all_below(folder: &Path) -> Result<(), DiskError> {
    let sync = || {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(File::open(folder)?)?;
        sync_folder(folder)
    };
    sync().map_err(|error| DiskError::from_io("writing", folder, &error))
}

/// Copies the workspace in `dir` and its volumes into the new folder `dest`.
///
/// `now` is milliseconds since 1970. Other processes may keep using the workspace.
///
/// # Errors
/// Returns a [`BackupError`] if something can't be copied; the copied files are then removed.
pub fn create_backup(
    dir: &Path,
    dest: &Path,
    now: i64,
    progress: &mut dyn FnMut(BackupProgress),
    cancel: &AtomicBool,
) -> Result<BackupSummary, BackupError> {
    let reader = SqliteReader::open(dir)?;
    match std::fs::read_dir(dest).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => return Err(BackupError::Refused(format!("a backup needs a new folder: {}", dest.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(DiskError::from_io("writing", dest, &error).into()),
    }
    create_folder(dest).map_err(|error| DiskError::from_io("making", dest, &error))?;
    let mut job = BackupJob { progress, cancel, at: BackupProgress { done: 0, total: 0 } };
    let made = write_backup(dir, dest, now, &reader, &mut job);
    if made.is_err() {
        // A partial backup is useless and takes up space. The folder was empty or created just now, so removing it is
        // safe.
        let _ = std::fs::remove_dir_all(dest);
    }
    made
}

fn write_backup(
    dir: &Path,
    dest: &Path,
    now: i64,
    reader: &SqliteReader,
    job: &mut BackupJob<'_>,
) -> Result<BackupSummary, BackupError> {
    let copy = dest.join(DATABASE_FILE);
    reader.copy_to(&copy)?;
    let copied = SqliteReader::open_immutable(dest)?;
    let inspected = copied.inspect()?;
    drop(copied);
    let mut problems = inspected.pages;
    problems.extend(inspected.rows.into_iter().map(|row| format!("a damaged row of {}: {}", row.table, row.key)));
    let mounts = reader.mounts();
    write_marker(dest, &mounts)?;

    let mut found = Vec::new();
    list_entries(&dir.join(BLOBS_FOLDER), Path::new(BLOBS_FOLDER), &[], &mut found, &mut problems);
    let trash = dir.join(TRASH_FOLDER);
    if trash.is_dir() {
        list_entries(&trash, Path::new(TRASH_FOLDER), &[], &mut found, &mut problems);
    }
    if dir.join(crate::maintenance::configuration::CONFIG_FILE).is_file() {
        found.push((
            BackupSource::of(dir, crate::maintenance::configuration::CONFIG_FILE),
            PathBuf::from(crate::maintenance::configuration::CONFIG_FILE),
        ));
    }
    // Neither the workspace nor the backup counts as part of a volume that contains it.
    let apart: Vec<PathBuf> = [dir, dest].iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
    for mount in &mounts {
        // The volume's folder itself may be a symlink.
        match std::fs::canonicalize(&mount.path) {
            Ok(root) if root.is_dir() => {
                let to = Path::new(BACKUP_VOLUMES_FOLDER).join(mount.id.to_string());
                list_entries(&root, &to, &apart, &mut found, &mut problems);
            }
            Ok(_) | Err(_) => {
                problems.push(format!("the folder of the volume is not there: {}", mount.path.display()));
            }
        }
    }
    for own in [DATABASE_FILE, MARKER_FILE] {
        found.push((BackupSource::of(dest, own), PathBuf::from(own)));
    }
    let sizes = found.iter().filter_map(|(from, _)| std::fs::symlink_metadata(from.path()).ok());
    job.at.total = sizes.filter(std::fs::Metadata::is_file).map(|file| file.len()).sum();

    let mut files = Vec::new();
    for (from, path) in found {
        let to = dest.join(&path);
        match copy_entry(job, &from, &to) {
            Ok(Some(kind)) => files.push(BackupEntry { path, kind }),
            Ok(None) => problems.push(format!("not a file: {}", from.path().display())),
            // An unreadable or deleted user file is reported.
            Err(error @ BackupError::Unreadable { .. })
                if path.starts_with(BACKUP_VOLUMES_FOLDER) || path.starts_with(TRASH_FOLDER) =>
            {
                problems.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    let sizes = files.iter().map(|entry| if let BackupEntryKind::File { size, .. } = entry.kind { size } else { 0 });
    let made = BackupSummary { files: files.len(), bytes: sizes.sum(), problems: problems.clone() };
    sync_all_below(dest)?;
    let manifest = BackupManifest { format: BACKUP_FORMAT, made: now, mounts, problems, files };
    write_manifest(dest, &manifest)?;
    Ok(made)
}

fn write_manifest(dest: &Path, manifest: &BackupManifest) -> Result<(), DiskError> {
    let path = dest.join(MANIFEST_FILE);
    let write = || {
        let bytes = serde_json::to_vec_pretty(manifest)?;
        let part = dest.join("manifest.json.part");
        let mut file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, &path)?;
        sync_folder(dest)
    };
    write().map_err(|error| DiskError::from_io("writing", &path, &error))
}

/// A file to copy, as its root folder and its path inside it.
struct BackupSource {
    root: PathBuf,
    inside: PathBuf,
}

impl BackupSource {
    fn of(root: &Path, inside: &str) -> BackupSource {
        BackupSource { root: root.to_owned(), inside: PathBuf::from(inside) }
    }

    /// Returns the full path for messages. The file is opened through its root folder.
    fn path(&self) -> PathBuf {
        self.root.join(&self.inside)
    }
}

/// Lists what to copy from a folder, and the paths inside the backup. Symlinks aren't followed.
fn list_entries(
    from: &Path,
    to: &Path,
    apart: &[PathBuf],
    found: &mut Vec<(BackupSource, PathBuf)>,
    problems: &mut Vec<String>,
) {
    let walk = walkdir::WalkDir::new(from).sort_by_file_name().into_iter().filter_entry(|entry| {
        let known =
            entry.file_type().is_dir() && std::fs::canonicalize(entry.path()).is_ok_and(|path| apart.contains(&path));
        !known && !is_temporary_file(entry.file_name())
    });
    for entry in walk {
        match entry {
            Ok(entry) => {
                let inside = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
                found.push((BackupSource { root: from.to_owned(), inside: inside.to_owned() }, to.join(inside)));
            }
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {}
            Err(error) => problems.push(error.to_string()),
        }
    }
}

/// Copies a file, creates a folder or records a symlink; `None` if it's anything else.
fn copy_entry(job: &mut BackupJob<'_>, from: &BackupSource, to: &Path) -> Result<Option<BackupEntryKind>, BackupError> {
    let shown = from.path();
    let fail = |error: io::Error| DiskError::from_io("writing", to, &error);
    if from.inside.as_os_str().is_empty() {
        std::fs::create_dir_all(to).map_err(fail)?;
        return Ok(Some(BackupEntryKind::Folder));
    }
    let above = ConfinedFolder::open_chosen(&from.root).and_then(|root| root.open_parent(&from.inside, false));
    let (folder, name) = above.map_err(|refused| unreadable_error(&shown, &io::Error::other(refused)))?;
    let what = folder.metadata(&name).map_err(|error| unreadable_error(&shown, &error))?;
    if what.is_dir() {
        std::fs::create_dir_all(to).map_err(fail)?;
        return Ok(Some(BackupEntryKind::Folder));
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    if what.is_symlink() {
        let target = std::fs::read_link(folder.join(&name)).map_err(|error| unreadable_error(&shown, &error))?;
        // As a symlink it could lead out of the backup, so only its target is recorded.
        return Ok(Some(BackupEntryKind::Link { to: target }));
    }
    if !what.is_file() {
        return Ok(None);
    }
    // The database and the marker are already at their destination.
    let path = folder.join(&name);
    let (size, hash) =
        if shown == to { job.read_file(&path, &shown, |_| Ok(()))? } else { job.copy_file(&path, &shown, to)? };
    Ok(Some(BackupEntryKind::File { size, hash }))
}
