//! The way back from a backup. Every byte is checked before the first is written; an interrupted restore is taken up
//! again where it was.

use super::{BackupError, FORMAT, Job, Kind, MANIFEST, Manifest, Progress, VOLUMES, sync_all_below};
use engine::TRASH_FOLDER;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use store::DocId;
use store::disk::{
    BLOBS, DATABASE, Disk, DiskError, MARKER, MOUNTS, Mount, SqliteDisk, Write, create_folder, sync_folder,
    write_marker,
};

/// Where a restore keeps what it is about until it is done.
const PART: &str = "restore.part";

/// What was restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The volumes and where they lie now.
    pub volumes: Vec<Mount>,
    /// How many files were written.
    pub files: usize,
    /// What the backup did not hold in the first place.
    pub problems: Vec<String>,
}

/// Makes a workspace in `dir`, which must not hold one, from the backup in `src`. A volume's files go to where they
/// were if nothing is there, and else into the workspace's folder `volumes`.
///
/// # Errors
/// [`BackupError`]. What was written by then is used when it is done again.
pub fn restore(
    src: &Path,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<Restored, BackupError> {
    let manifest = read_manifest(src)?;
    let sizes = manifest.files.iter().map(|entry| if let Kind::File { size, .. } = entry.kind { size } else { 0 });
    let mut job = Job { progress, cancel, at: Progress { done: 0, total: 2 * sizes.sum::<u64>() } };
    verify(src, &manifest, &mut job)?;
    let part = dir.join(PART);
    let holds = [DATABASE, MARKER, BLOBS, VOLUMES, store::disk::DAMAGED];
    if !part.exists() && holds.iter().any(|name| dir.join(name).exists()) {
        return Err(BackupError::Refused(format!("there is a workspace already: {}", dir.display())));
    }
    create_folder(&part).map_err(|error| DiskError::io("making", &part, &error))?;
    let dir = std::fs::canonicalize(dir).map_err(|error| DiskError::io("opening", dir, &error))?;
    let part = dir.join(PART);

    let places = places(&manifest, &dir, &part)?;
    let mut files = 0;
    for entry in &manifest.files {
        let Some(to) = place(&entry.path, &dir, &places) else { continue };
        let fail = |error: io::Error| DiskError::io("writing", &to, &error);
        match &entry.kind {
            Kind::Folder => std::fs::create_dir_all(&to).map_err(fail)?,
            Kind::File { hash, .. } => {
                put(&mut job, &src.join(&entry.path), &to, *hash)?;
                files += 1;
            }
            Kind::Link { to: target } => link(target, &to).map_err(fail)?,
        }
    }
    let volumes: Vec<Mount> = manifest
        .mounts
        .iter()
        .map(|mount| Mount { path: places.get(&mount.id).unwrap_or(&mount.path).clone(), ..mount.clone() })
        .collect();
    for place in places.values().filter(|place| place.is_dir()) {
        sync_all_below(place)?;
    }
    database(src, &manifest, &part, &volumes, &mut job)?;
    sync_all_below(&dir)?;
    let database = dir.join(DATABASE);
    let moved = std::fs::rename(part.join(DATABASE), &database).and_then(|()| sync_folder(&dir));
    moved.map_err(|error| DiskError::io("writing", &database, &error))?;
    write_marker(&dir, &volumes)?;
    // It is whole now; what is left of this folder is in nobody's way.
    let _ = std::fs::remove_dir_all(&part);
    Ok(Restored { volumes, files, problems: manifest.problems })
}

fn read_manifest(src: &Path) -> Result<Manifest, BackupError> {
    let path = src.join(MANIFEST);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = "it is no finished backup (there is no manifest.json)";
            return Err(BackupError::Refused(format!("{why}: {}", src.display())));
        }
        Err(error) => return Err(DiskError::io("reading", &path, &error).into()),
    };
    let damaged = |why: String| BackupError::Refused(format!("the backup is damaged ({why}): {}", path.display()));
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if let Some(found) = manifest["format"].as_i64().filter(|format| *format > FORMAT) {
        return Err(DiskError::Newer { found, known: FORMAT, path }.into());
    }
    let manifest: Manifest = serde_json::from_value(manifest).map_err(|error| damaged(error.to_string()))?;
    let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    if let Some(entry) = manifest.files.iter().find(|entry| !inside(&entry.path)) {
        return Err(damaged(format!("{} leads out of it", entry.path.display())));
    }
    if !manifest.files.iter().any(|entry| entry.path == Path::new(DATABASE)) {
        return Err(damaged("it has no database".to_owned()));
    }
    Ok(manifest)
}

fn verify(src: &Path, manifest: &Manifest, job: &mut Job<'_>) -> Result<(), BackupError> {
    let mut wrong = Vec::new();
    for entry in &manifest.files {
        let Kind::File { size, hash } = &entry.kind else { continue };
        let path = src.join(&entry.path);
        // A link in its place could lead anywhere.
        let plain = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_file());
        match if plain { job.read(&path, |_| Ok(())) } else { Ok((0, store::BlobHash([0; 32]))) } {
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
            src.display()
        ))),
    }
}

/// Where each volume that the backup holds is to lie. Decided once: a restore that is taken up again goes on there.
fn places(manifest: &Manifest, dir: &Path, part: &Path) -> Result<BTreeMap<DocId, PathBuf>, BackupError> {
    let decided = part.join("places.json");
    let read = std::fs::read(&decided).ok().and_then(|bytes| serde_json::from_slice::<Vec<Mount>>(&bytes).ok());
    if let Some(mounts) = read {
        return Ok(mounts.into_iter().map(|mount| (mount.id, mount.path)).collect());
    }
    let mut mounts: Vec<Mount> = Vec::new();
    for mount in &manifest.mounts {
        let stored = Path::new(VOLUMES).join(mount.id.to_string());
        if !manifest.files.iter().any(|entry| entry.path.starts_with(&stored)) {
            continue;
        }
        let free =
            |path: &Path| std::fs::symlink_metadata(path).is_err() && mounts.iter().all(|mount| mount.path != path);
        let old = mount.path.clone();
        let usable =
            old.is_absolute() && free(&old) && old.parent().is_some_and(|parent| create_folder(parent).is_ok());
        let path = if usable && std::fs::create_dir(&old).is_ok() {
            old
        } else {
            let name: String =
                mount.name.chars().map(|c| if c.is_control() || "/\\:".contains(c) { '-' } else { c }).collect();
            let name = if name.trim_matches(['.', ' ']).is_empty() { mount.id.to_string() } else { name };
            let mut names = (2..).map(|number| format!("{name} {number}"));
            let mut path = dir.join(VOLUMES).join(&name);
            while !free(&path) {
                path = dir.join(VOLUMES).join(names.next().unwrap_or_default());
            }
            path
        };
        mounts.push(Mount { path, ..mount.clone() });
    }
    let bytes = serde_json::to_vec(&mounts).map_err(io::Error::other);
    let written = bytes.and_then(|bytes| {
        let new = part.join("places.new");
        std::fs::write(&new, bytes)?;
        std::fs::File::open(&new)?.sync_all()?;
        std::fs::rename(&new, &decided)?;
        sync_folder(part)
    });
    written.map_err(|error| DiskError::io("writing", &decided, &error))?;
    Ok(mounts.into_iter().map(|mount| (mount.id, mount.path)).collect())
}

/// Where a file of the backup goes, if it is a blob's, a volume's, the configuration, or lay in the trash.
fn place(path: &Path, dir: &Path, places: &BTreeMap<DocId, PathBuf>) -> Option<PathBuf> {
    let own = path == Path::new(crate::configuration::FILE);
    if own || path.starts_with(BLOBS) || path.starts_with(TRASH_FOLDER) {
        return Some(dir.join(path));
    }
    let inside = path.strip_prefix(VOLUMES).ok()?;
    let id = inside.components().next()?.as_os_str().to_str()?.parse().ok()?;
    let inside: PathBuf = inside.components().skip(1).collect();
    Some(if inside.as_os_str().is_empty() { places.get(&id)?.clone() } else { places.get(&id)?.join(inside) })
}

/// Puts a file in its place, which must be free, or hold the same bytes from an earlier attempt.
fn put(job: &mut Job<'_>, from: &Path, to: &Path, hash: store::BlobHash) -> Result<(), BackupError> {
    let fail = |error: io::Error| DiskError::io("writing", to, &error);
    if std::fs::symlink_metadata(to).is_ok() {
        return match job.read(to, |_| Ok(()))? {
            (_, there) if there == hash => Ok(()),
            _ => Err(BackupError::Refused(format!("there is another file already: {}", to.display()))),
        };
    }
    let folder = to.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(fail)?;
    // Half a file never has its name.
    let half = folder.join(".tracebook-restore.tmp");
    let _ = std::fs::remove_file(&half); // of an earlier attempt
    let copied = job.copy(from, &half).and_then(|(_, copied)| {
        if copied == hash {
            Ok(())
        } else {
            Err(BackupError::Refused(format!("it changed just now: {}", from.display())))
        }
    });
    let named = copied.and_then(|()| Ok(std::fs::rename(&half, to).map_err(fail)?));
    if named.is_err() {
        let _ = std::fs::remove_file(&half); // the first error is the one to tell
    }
    named
}

fn link(target: &Path, to: &Path) -> io::Result<()> {
    if std::fs::read_link(to).is_ok_and(|there| there == target) {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    #[cfg(unix)]
    return std::os::unix::fs::symlink(target, to);
    #[cfg(not(unix))]
    Ok(()) // links need a right there that most users do not have
}

/// Copies the database beside its place and tells it where the volumes lie now, before anyone can open it.
fn database(
    src: &Path,
    manifest: &Manifest,
    part: &Path,
    volumes: &[Mount],
    job: &mut Job<'_>,
) -> Result<(), BackupError> {
    let path = part.join(DATABASE);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(part.join(format!("{DATABASE}{end}"))); // of an earlier attempt
    }
    let known = manifest.files.iter().find(|entry| entry.path == Path::new(DATABASE));
    let Some(Kind::File { hash, .. }) = known.map(|entry| &entry.kind) else {
        return Err(BackupError::Refused(format!("the backup has no database: {}", src.display())));
    };
    put(job, &src.join(DATABASE), &path, *hash)?;
    let fail = |error: io::Error| DiskError::io("writing", &path, &error);
    let mut mode = std::fs::metadata(&path).map_err(fail)?.permissions();
    if mode.readonly() {
        // A backup may be kept write-protected.
        #[cfg(unix)]
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o600);
        #[cfg(not(unix))]
        mode.set_readonly(false);
        std::fs::set_permissions(&path, mode).map_err(fail)?;
    }
    let mounts: BTreeMap<DocId, &PathBuf> = volumes.iter().map(|mount| (mount.id, &mount.path)).collect();
    let value = serde_json::to_vec(&mounts).map_err(|error| fail(io::Error::other(error)))?;
    let mut disk = SqliteDisk::open(part, false)?;
    disk.commit(&[Write::Meta { key: MOUNTS.to_owned(), value: Some(value) }])?;
    drop(disk); // folds its log in: the database is one file again
    if part.join(format!("{DATABASE}-wal")).exists() {
        return Err(BackupError::Refused(format!("the database could not be closed: {}", path.display())));
    }
    Ok(())
}
