//! Tracks changes that a program makes in a volume: files are compared before and after, so that changes can be shown
//! and undone. Anything that Git would run as the user, outside every sandbox, is restored.

mod program_baselines;

use crate::fs::atomic_write::is_temporary_file;
use crate::fs::confined_dir::ConfinedFolder;
use agent::tool_job::FileChange;
use anyhow::anyhow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use store::disk::BlobStore;
use walkdir::WalkDir;

pub(crate) use program_baselines::{ProgramBaselines, ProgramChanges};

/// Maximum number of files compared; others aren't tracked.
const MAX_SNAPSHOT_FILES: usize = 20_000;
/// Maximum size of a file whose content is kept; `MAX_SNAPSHOT_BYTES` limits all of them together.
const MAX_SNAPSHOT_FILE_BYTES: u64 = 1 << 20;
const MAX_SNAPSHOT_BYTES: u64 = 48 << 20;
/// Maximum size of a changed file that is kept for undo.
const MAX_CHANGED_FILE_BYTES: u64 = 10 << 20;
/// Maximum number of changes kept for undo.
const MAX_KEPT_CHANGES: usize = 100;
/// Maximum number of files named in a remark.
const MAX_NAMED_FILES: usize = 10;
/// Maximum depth of compared folders.
const MAX_SNAPSHOT_DEPTH: usize = 16;
/// Paths below `.git` that may name programs to run.
const GIT_PROGRAM_PATHS: [&str; 2] = ["config", "hooks"];

/// A file at the time of the snapshot.
struct SeenFile {
    stamp: ContentStamp,
    /// The file's content; `None` if it was too large.
    bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct ContentStamp {
    size: u64,
    modified: i64,
    /// On Unix: change time in seconds and nanoseconds, and inode; 0 elsewhere.
    own: (i64, i64, u64),
}

impl ContentStamp {
    fn from_metadata(meta: &Metadata) -> ContentStamp {
        #[cfg(unix)]
        let own = {
            use std::os::unix::fs::MetadataExt;
            (meta.ctime(), meta.ctime_nsec(), meta.ino())
        };
        #[cfg(not(unix))]
        let own = (0, 0, 0);
        ContentStamp { size: meta.len(), modified: crate::fs::atomic_write::modified_nanos(meta), own }
    }
}

/// Snapshot of a volume before a program runs in it.
pub(crate) struct VolumeSnapshot {
    files: BTreeMap<String, SeenFile>,
    /// Whether all files are included.
    whole: bool,
    /// Files with programs that Git runs, by path; `None` without a repository.
    git: Option<BTreeMap<String, Vec<u8>>>,
    apart: PathBuf,
}

impl VolumeSnapshot {
    /// Takes a snapshot of everything except the folder `apart`, the workspace.
    pub(crate) fn capture(root: &ConfinedFolder, apart: &Path) -> VolumeSnapshot {
        let (stamps, whole) = file_stamps(root.original_path(), apart);
        let mut room = MAX_SNAPSHOT_BYTES;
        let files = stamps.into_iter().map(|(path, stamp)| {
            let fits = stamp.size <= MAX_SNAPSHOT_FILE_BYTES.min(room);
            let bytes = if fits { read_file(root, &path, MAX_SNAPSHOT_FILE_BYTES) } else { None };
            room -= bytes.as_ref().map_or(0, |bytes| (bytes.len() as u64).min(room));
            (path, SeenFile { stamp, bytes })
        });
        VolumeSnapshot { files: files.collect(), whole, git: read_git_programs(root), apart: apart.to_owned() }
    }

    /// Returns the changes since the snapshot, and remarks about them.
    pub(crate) fn changes_since(
        &self,
        root: &ConfinedFolder,
        blobs: &BlobStore,
    ) -> anyhow::Result<(Vec<FileChange>, Vec<String>)> {
        let mut remarks = Vec::new();
        if let Some(before) = &self.git
            && let Some(remark) = restore_git_programs(root, before)?
        {
            remarks.push(remark);
        }
        let (now, whole) = file_stamps(root.original_path(), &self.apart);
        let (mut changed, mut lost) = (Vec::new(), Vec::new());
        let paths: BTreeSet<&String> = self.files.keys().chain(now.keys()).collect();
        for path in paths {
            let (before, after) = (self.files.get(path), now.get(path));
            if before.map(|seen| seen.stamp) == after.copied() {
                continue;
            }
            let known = before.is_none_or(|seen| seen.bytes.is_some());
            let bytes = after.and_then(|_| read_file(root, path, MAX_CHANGED_FILE_BYTES));
            if !known
                || (after.is_some() && bytes.is_none())
                || changed.len() >= MAX_KEPT_CHANGES
                || !(self.whole && whole)
            {
                lost.push(path.as_str());
                continue;
            }
            let old = before.and_then(|seen| seen.bytes.as_deref());
            if old == bytes.as_deref() {
                continue; // only touched
            }
            let before = old.map(|old| blobs.put(old)).transpose()?;
            let after = bytes.map(|bytes| blobs.put(&bytes)).transpose()?;
            changed.push(FileChange { path: path.clone(), before, after, hunks: Vec::new() });
        }
        if let Some((count, names)) = count_and_names(&lost) {
            remarks.push(format!("(changed, and not kept for undo: {count} files, among them {names})"));
        } else if !(self.whole && whole) {
            remarks.push(format!(
                "(there are more than {MAX_SNAPSHOT_FILES} files here: what changed is not kept for undo)"
            ));
        }
        Ok((changed, remarks))
    }
}

fn count_and_names(paths: &[&str]) -> Option<(usize, String)> {
    let names = paths.iter().take(MAX_NAMED_FILES).copied().collect::<Vec<_>>().join(", ");
    (!paths.is_empty()).then_some((paths.len(), names))
}

/// Lists the ordinary, visible files below a folder; false if there are too many.
fn file_stamps(place: &Path, apart: &Path) -> (BTreeMap<String, ContentStamp>, bool) {
    let mut found = BTreeMap::new();
    let shown = |entry: &walkdir::DirEntry| {
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".") || is_temporary_file(name) || entry.path() == apart;
        entry.depth() == 0 || !hidden
    };
    for entry in WalkDir::new(place).max_depth(MAX_SNAPSHOT_DEPTH).into_iter().filter_entry(shown).flatten() {
        if !entry.file_type().is_file() {
            continue;
        }
        if found.len() >= MAX_SNAPSHOT_FILES {
            return (found, false);
        }
        let path = entry.path().strip_prefix(place).ok().and_then(Path::to_str);
        if let Some((path, meta)) = path.zip(entry.metadata().ok()) {
            found.insert(path.to_owned(), ContentStamp::from_metadata(&meta));
        }
    }
    (found, true)
}

fn read_file(root: &ConfinedFolder, path: &str, most: u64) -> Option<Vec<u8>> {
    let file = root.open_file(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Returns what Git runs in this folder's repository, by path below `.git`. `None` if there's no repository.
fn read_git_programs(root: &ConfinedFolder) -> Option<BTreeMap<String, Vec<u8>>> {
    let git = root.open_folder(".git").ok()?;
    let mut found = BTreeMap::new();
    for name in GIT_PROGRAM_PATHS {
        if let Some(bytes) = read_file(&git, name, MAX_SNAPSHOT_FILE_BYTES) {
            found.insert(name.to_owned(), bytes);
        } else if let Ok(folder) = git.open_folder(name) {
            let entries = std::fs::read_dir(folder.stable_path())
                .into_iter()
                .flatten()
                .flatten()
                .take(MAX_NAMED_FILES * MAX_NAMED_FILES);
            for entry in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
                let bytes = read_file(&folder, &entry, MAX_SNAPSHOT_FILE_BYTES).unwrap_or_default();
                found.insert(format!("{name}/{entry}"), bytes);
            }
        }
    }
    Some(found)
}

/// Restores the programs that Git runs; returns a remark if any of them had changed.
fn restore_git_programs(root: &ConfinedFolder, before: &BTreeMap<String, Vec<u8>>) -> anyhow::Result<Option<String>> {
    let fail = |error: std::io::Error| anyhow!("git's own files were changed and could not be put back ({error})");
    // Without the repository, Git would run nothing.
    let Some(after) = read_git_programs(root) else { return Ok(Some("(the repository .git is gone)".to_owned())) };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs: Vec<&String> = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).collect();
    for name in &differs {
        let (folder, file) = root.open_parent(format!(".git/{name}"), true)?;
        let path = folder.stable_path().join(&file);
        // Remove whatever is there now, even a link.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        if let Some(bytes) = before.get(*name) {
            std::fs::write(&path, bytes).map_err(fail)?;
            #[cfg(unix)]
            if name.starts_with("hooks/") {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(&path, mode).map_err(fail)?;
            }
        }
    }
    let names = differs.iter().map(|name| format!(".git/{name}")).collect::<Vec<_>>().join(", ");
    let remark = || format!("(put back, since git would run it outside of the sandbox: {names})");
    Ok((!differs.is_empty()).then(remark))
}
