//! Restores a backup.
//!
//! All bytes are verified before the first is written, and an interrupted restore can be resumed.

use super::{
    BACKUP_FORMAT, BACKUP_VOLUMES_FOLDER, BackupEntryKind, BackupError, BackupJob, BackupManifest, BackupProgress,
    MANIFEST_FILE, sync_all_below,
};
use crate::fs::confined_dir::{ConfinedFolder, OpenRefusal};
use crate::maintenance::configuration;
use engine::{POLICY_RULES_KEY, SCHEDULE_KEY_PREFIX, TRASH_FOLDER};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use store::DocId;
use store::disk::{
    BLOBS_FOLDER, DATABASE_FILE, Disk, DiskError, MARKER_FILE, MOUNTS_META_KEY, RowWrite, SqliteDisk, VolumeMount,
    create_folder, sync_folder, write_marker,
};

/// Name of the folder of an unfinished restore.
const RESTORE_STATE_FILE: &str = "restore.part";

/// Name under which another person's configuration is set aside.
const SET_ASIDE_CONFIG_FILE: &str = "config.yaml.from-backup";
/// Database key of the settings.
const SETTINGS_KEY: &str = "settings";

/// Summary of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreSummary {
    /// The volumes and their new folders.
    pub volumes: Vec<VolumeMount>,
    /// Number of files written.
    pub files: usize,
    /// Problems: parts that were missing from the backup already, and symlinks that were left out or lead outside.
    pub problems: Vec<String>,
}

/// Whose backup is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupTrust {
    /// The user's own backup. Volumes are restored to their old folders if those are free, and approvals stay valid.
    Own,
    /// Another person's backup. Nothing is written outside the workspace's folder, and it grants nothing.
    Foreign,
}

/// Creates a workspace in `dir`, which must not contain one, from the backup in `src`.
///
/// Volumes' files go into the workspace's folder `volumes`, or for the user's own backup to their old folders if those
/// are free.
///
/// # Errors
/// Returns a [`BackupError`]. The files written until then are used when the restore is repeated.
pub fn restore_backup(
    src: &Path,
    dir: &Path,
    trust: BackupTrust,
    progress: &mut dyn FnMut(BackupProgress),
    cancel: &AtomicBool,
) -> Result<RestoreSummary, BackupError> {
    let manifest = read_manifest(src)?;
    let sizes =
        manifest.files.iter().map(|entry| if let BackupEntryKind::File { size, .. } = entry.kind { size } else { 0 });
    let mut job = BackupJob { progress, cancel, at: BackupProgress { done: 0, total: 2 * sizes.sum::<u64>() } };
    let source = ConfinedFolder::open_chosen(src).map_err(refusal_error)?;
    verify_backup(&source, &manifest, &mut job)?;
    let part = dir.join(RESTORE_STATE_FILE);
    let holds = [DATABASE_FILE, MARKER_FILE, BLOBS_FOLDER, BACKUP_VOLUMES_FOLDER, store::disk::DAMAGED_FOLDER];
    if !part.exists() && holds.iter().any(|name| dir.join(name).exists()) {
        return Err(BackupError::Refused(format!("there is a workspace already: {}", dir.display())));
    }
    create_folder(&part).map_err(|error| DiskError::from_io("making", &part, &error))?;
    let dir = std::fs::canonicalize(dir).map_err(|error| DiskError::from_io("opening", dir, &error))?;
    let part = dir.join(RESTORE_STATE_FILE);

    let places = choose_volume_folders(&manifest, &dir, &part, trust)?;
    let mut problems = manifest.problems.clone();
    let mut files = 0;
    for entry in &manifest.files {
        let Some((root, inside)) = restore_target(&entry.path, &dir, &places, trust) else { continue };
        let to = root.join(&inside);
        create_folder(&root).map_err(|error| DiskError::from_io("writing", &root, &error))?;
        // The folder is confined, so nothing leads out of it, such as a symlink that the backup placed there before.
        let held = ConfinedFolder::open_chosen(&root).map_err(refusal_error)?;
        match &entry.kind {
            BackupEntryKind::Folder => held.open_or_create_folder(&inside).map(drop).map_err(refusal_error)?,
            BackupEntryKind::File { hash, .. } => {
                let (from, name) = source.open_parent(&entry.path, false).map_err(refusal_error)?;
                let (folder, own) = held.open_parent(&inside, true).map_err(refusal_error)?;
                restore_file(&mut job, &from.join(&name), (&folder, &own), &to, *hash)?;
                files += 1;
            }
            // The workspace's own data consists only of files.
            BackupEntryKind::Link { .. } if root == dir => {
                problems.push(format!("a symlink among the workspace's own files was left out: {}", to.display()));
            }
            BackupEntryKind::Link { to: target } => {
                let (folder, own) = held.open_parent(&inside, true).map_err(refusal_error)?;
                restore_symlink(target, &folder.join(&own))
                    .map_err(|error| DiskError::from_io("writing", &to, &error))?;
                if held.open_file(&inside).is_err_and(|refused| refused.is_outside()) {
                    problems.push(format!("it is a symlink that leads out of its volume: {}", to.display()));
                }
            }
        }
    }
    if trust == BackupTrust::Foreign
        && manifest.files.iter().any(|entry| entry.path == Path::new(configuration::CONFIG_FILE))
    {
        let aside = dir.join(SET_ASIDE_CONFIG_FILE);
        problems.push(format!("the configuration may start programs, so it is put aside: {}", aside.display()));
    }
    let placed = |mount: &VolumeMount| match (places.get(&mount.id), trust) {
        (Some(place), _) => Some(VolumeMount { path: place.clone(), ..mount.clone() }),
        (None, BackupTrust::Own) => Some(mount.clone()),
        // Its files aren't in the backup, and its recorded folder could belong to anyone.
        (None, BackupTrust::Foreign) => None,
    };
    let volumes: Vec<VolumeMount> = manifest.mounts.iter().filter_map(placed).collect();
    for place in places.values().filter(|place| place.is_dir()) {
        sync_all_below(place)?;
    }
    restore_database(&source, &manifest, &part, &volumes, trust, &mut job)?;
    sync_all_below(&dir)?;
    let database = dir.join(DATABASE_FILE);
    let moved = std::fs::rename(part.join(DATABASE_FILE), &database).and_then(|()| sync_folder(&dir));
    moved.map_err(|error| DiskError::from_io("writing", &database, &error))?;
    write_marker(&dir, &volumes)?;
    // The restore is complete, so remains of this folder are harmless.
    let _ = std::fs::remove_dir_all(&part);
    Ok(RestoreSummary { volumes, files, problems })
}

fn refusal_error(refused: OpenRefusal) -> BackupError {
    BackupError::Refused(format!("nothing is written there: {refused}"))
}

fn read_manifest(src: &Path) -> Result<BackupManifest, BackupError> {
    let path = src.join(MANIFEST_FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = "it isn't a complete backup (manifest.json is missing)";
            return Err(BackupError::Refused(format!("{why}: {}", src.display())));
        }
        Err(error) => return Err(DiskError::from_io("reading", &path, &error).into()),
    };
    let damaged = |why: String| BackupError::Refused(format!("the backup is damaged ({why}): {}", path.display()));
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if let Some(found) = manifest["format"].as_i64().filter(|format| *format > BACKUP_FORMAT) {
        return Err(DiskError::Newer { found, known: BACKUP_FORMAT, path }.into());
    }
    let manifest: BackupManifest = serde_json::from_value(manifest).map_err(|error| damaged(error.to_string()))?;
    let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    if let Some(entry) = manifest.files.iter().find(|entry| !inside(&entry.path)) {
        return Err(damaged(format!("{} leads out of it", entry.path.display())));
    }
    if !manifest.files.iter().any(|entry| entry.path == Path::new(DATABASE_FILE)) {
        return Err(damaged("it has no database".to_owned()));
    }
    Ok(manifest)
}

fn verify_backup(
    source: &ConfinedFolder,
    manifest: &BackupManifest,
    job: &mut BackupJob<'_>,
) -> Result<(), BackupError> {
    let mut wrong = Vec::new();
    for entry in &manifest.files {
        let BackupEntryKind::File { size, hash } = &entry.kind else { continue };
        // A symlink at the path or on the way could lead anywhere.
        let read = match source.open_parent(&entry.path, false) {
            Ok((folder, name)) => job.read_file(&folder.join(&name), &entry.path, |_| Ok(())),
            Err(why) => Err(refusal_error(why)),
        };
        match read {
            Ok(read) if read == (*size, *hash) => {}
            Err(BackupError::Cancelled) => return Err(BackupError::Cancelled),
            Ok(_) | Err(_) => wrong.push(entry.path.display().to_string()),
        }
    }
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(BackupError::Refused(format!(
            "the backup is damaged: {} of {} files are missing or not as they were, such as {first}: {}",
            wrong.len(),
            manifest.files.len(),
            source.original_path().display()
        ))),
    }
}

/// Chooses the folder of each volume in the backup. The choice is stored, so that a resumed restore continues there.
fn choose_volume_folders(
    manifest: &BackupManifest,
    dir: &Path,
    part: &Path,
    trust: BackupTrust,
) -> Result<BTreeMap<DocId, PathBuf>, BackupError> {
    let decided = part.join("places.json");
    let read = std::fs::read(&decided).ok().and_then(|bytes| serde_json::from_slice::<Vec<VolumeMount>>(&bytes).ok());
    if let Some(mounts) = read {
        return Ok(mounts.into_iter().map(|mount| (mount.id, mount.path)).collect());
    }
    let mut mounts: Vec<VolumeMount> = Vec::new();
    for mount in &manifest.mounts {
        let stored = Path::new(BACKUP_VOLUMES_FOLDER).join(mount.id.to_string());
        if !manifest.files.iter().any(|entry| entry.path.starts_with(&stored)) {
            continue;
        }
        let free =
            |path: &Path| std::fs::symlink_metadata(path).is_err() && mounts.iter().all(|mount| mount.path != path);
        let old = mount.path.clone();
        let usable = trust == BackupTrust::Own
            && old.is_absolute()
            && free(&old)
            && old.parent().is_some_and(|parent| create_folder(parent).is_ok());
        let path = if usable && std::fs::create_dir(&old).is_ok() {
            old
        } else {
            let name: String =
                mount.name.chars().map(|c| if c.is_control() || "/\\:".contains(c) { '-' } else { c }).collect();
            let name = if name.trim_matches(['.', ' ']).is_empty() { mount.id.to_string() } else { name };
            let mut names = (2..).map(|number| format!("{name} {number}"));
            let mut path = dir.join(BACKUP_VOLUMES_FOLDER).join(&name);
            while !free(&path) {
                path = dir.join(BACKUP_VOLUMES_FOLDER).join(names.next().unwrap_or_default());
            }
            path
        };
        mounts.push(VolumeMount { path, ..mount.clone() });
    }
    let bytes = serde_json::to_vec(&mounts).map_err(io::Error::other);
    let written = bytes.and_then(|bytes| {
        let new = part.join("places.new");
        std::fs::write(&new, bytes)?;
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, &decided)?;
        sync_folder(part)
    });
    written.map_err(|error| DiskError::from_io("writing", &decided, &error))?;
    Ok(mounts.into_iter().map(|mount| (mount.id, mount.path)).collect())
}

/// Returns where a file of the backup goes: the folder it's confined to, and the path inside it.
///
/// It's `None` unless the file is a blob, a volume's file, the configuration, or in the trash.
fn restore_target(
    path: &Path,
    dir: &Path,
    places: &BTreeMap<DocId, PathBuf>,
    trust: BackupTrust,
) -> Option<(PathBuf, PathBuf)> {
    if path == Path::new(configuration::CONFIG_FILE) {
        let name = if trust == BackupTrust::Own { configuration::CONFIG_FILE } else { SET_ASIDE_CONFIG_FILE };
        return Some((dir.to_owned(), PathBuf::from(name)));
    }
    if path.starts_with(BLOBS_FOLDER) || path.starts_with(TRASH_FOLDER) {
        return Some((dir.to_owned(), path.to_owned()));
    }
    let inside = path.strip_prefix(BACKUP_VOLUMES_FOLDER).ok()?;
    let id = inside.components().next()?.as_os_str().to_str()?.parse().ok()?;
    Some((places.get(&id)?.clone(), inside.components().skip(1).collect()))
}

/// Restores a file to its path, which must be free or hold the same bytes from an earlier attempt. `to` is for
/// messages.
fn restore_file(
    job: &mut BackupJob<'_>,
    from: &Path,
    (folder, name): (&ConfinedFolder, &OsStr),
    to: &Path,
    hash: store::BlobHash,
) -> Result<(), BackupError> {
    let fail = |error: io::Error| DiskError::from_io("writing", to, &error);
    let place = folder.join(name);
    if folder.has_entry(name) {
        return match job.read_file(&place, to, |_| Ok(()))? {
            (_, there) if there == hash => Ok(()),
            _ => Err(BackupError::Refused(format!("there is another file already: {}", to.display()))),
        };
    }
    // The temporary name ensures that a partial file never has the final name.
    let half = folder.join(OsStr::new(".tracebook-restore.tmp"));
    let _ = std::fs::remove_file(&half); // of an earlier attempt
    let copied = job.copy_file(from, to, &half).and_then(|(_, copied)| {
        if copied == hash {
            Ok(())
        } else {
            Err(BackupError::Refused(format!("it changed just now: {}", to.display())))
        }
    });
    let named = copied.and_then(|()| Ok(std::fs::rename(&half, &place).map_err(fail)?));
    if named.is_err() {
        let _ = std::fs::remove_file(&half); // the first error is the one to tell
    }
    named
}

fn restore_symlink(target: &Path, to: &Path) -> io::Result<()> {
    if std::fs::read_link(to).is_ok_and(|there| there == target) {
        return Ok(());
    }
    #[cfg(unix)]
    return std::os::unix::fs::symlink(target, to);
    #[cfg(not(unix))]
    Ok(()) // links need a right there that most users do not have
}

/// Copies the database next to its final path and sets the volumes' folders, before any process can open it.
fn restore_database(
    source: &ConfinedFolder,
    manifest: &BackupManifest,
    part: &Path,
    volumes: &[VolumeMount],
    trust: BackupTrust,
    job: &mut BackupJob<'_>,
) -> Result<(), BackupError> {
    let path = part.join(DATABASE_FILE);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(part.join(format!("{DATABASE_FILE}{end}"))); // of an earlier attempt
    }
    let known = manifest.files.iter().find(|entry| entry.path == Path::new(DATABASE_FILE));
    let Some(BackupEntryKind::File { hash, .. }) = known.map(|entry| &entry.kind) else {
        return Err(BackupError::Refused(format!("the backup has no database: {}", source.original_path().display())));
    };
    let (from, name) = source.open_parent(DATABASE_FILE, false).map_err(refusal_error)?;
    let own = ConfinedFolder::open_chosen(part).map_err(refusal_error)?;
    restore_file(job, &from.join(&name), (&own, OsStr::new(DATABASE_FILE)), &path, *hash)?;
    let fail = |error: io::Error| DiskError::from_io("writing", &path, &error);
    let mut mode = std::fs::metadata(&path).map_err(fail)?.permissions();
    if mode.readonly() {
        // The backup may be write-protected.
        #[cfg(unix)]
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
        #[cfg(not(unix))]
        mode.set_readonly(false);
        std::fs::set_permissions(&path, mode).map_err(fail)?;
    }
    let mounts: BTreeMap<DocId, &PathBuf> = volumes.iter().map(|mount| (mount.id, &mount.path)).collect();
    let value = serde_json::to_vec(&mounts).map_err(|error| fail(io::Error::other(error)))?;
    let mut disk = SqliteDisk::open(part, false)?;
    let mut writes = vec![RowWrite::Meta { key: MOUNTS_META_KEY.to_owned(), value: Some(value) }];
    if trust == BackupTrust::Foreign {
        writes.extend(revoked_permissions(&disk)?);
    }
    disk.commit(&writes)?;
    drop(disk); // folds its log in: the database is one file again
    if part.join(format!("{DATABASE_FILE}-wal")).exists() {
        return Err(BackupError::Refused(format!("the database could not be closed: {}", path.display())));
    }
    Ok(())
}

/// Returns writes that revoke all that the workspace grants to agents, schedules, kernels, cells, programs and devices.
fn revoked_permissions(disk: &SqliteDisk) -> Result<Vec<RowWrite>, DiskError> {
    let reader = disk.open_reader()?;
    let mut writes = vec![RowWrite::Meta { key: POLICY_RULES_KEY.to_owned(), value: None }];
    let schedules = reader.metas_with_prefix(SCHEDULE_KEY_PREFIX)?;
    writes.extend(schedules.into_iter().map(|(key, _)| RowWrite::Meta { key, value: None }));
    let settings = reader.meta(SETTINGS_KEY)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(serde_json::Value::Object(mut settings)) = settings {
        let granting = "grants kernels kernel_prints pinned_traces trusted_volumes carries_out_runs_of serves_programs";
        settings.retain(|name, _| !granting.split(' ').any(|one| one == name));
        writes.push(RowWrite::Meta { key: SETTINGS_KEY.to_owned(), value: serde_json::to_vec(&settings).ok() });
    }
    Ok(writes)
}
