//! The files of the folder as they are now, against what is recorded of them.

use crate::api_error::GitHubError;
use crate::folder_record::{FolderRecord, STATE_FOLDER};
use crate::limits::MAX_FILE_BYTES;
use crate::remote_tree::folders_above;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use store::BlobHash;
use user_files::atomic_write::is_temporary_file;
use user_files::confined_dir::{ConfinedFolder, normalize_path};
use user_files::file_rights::is_executable;

/// How a file differs from the last pull or commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalChangeKind {
    /// Its text or bytes, or whether it's a program.
    Modified,
    /// It's gone.
    Deleted,
    /// It's new.
    New,
    /// It isn't an ordinary file now, or too large.
    Replaced,
}

impl LocalChangeKind {
    /// Returns the letters of `git status --short`.
    pub fn letters(self) -> &'static str {
        match self {
            LocalChangeKind::Modified => " M",
            LocalChangeKind::Deleted => " D",
            LocalChangeKind::New => "??",
            LocalChangeKind::Replaced => " T",
        }
    }
}

/// A file that differs from the last pull or commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalChange {
    /// Path in the folder.
    pub path: String,
    /// How it differs.
    pub kind: LocalChangeKind,
}

/// What is at a path now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocalState {
    Missing,
    File(LocalFile),
    /// A folder, a link, or a file that is too large.
    Other,
}

/// A file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalFile {
    /// The hash that Git gives it.
    pub(crate) blob: String,
    /// The hash by which it's replaced.
    pub(crate) hash: BlobHash,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_program: bool,
}

/// Reads what is at a path.
pub(crate) fn read_local(folder: &ConfinedFolder, path: &str) -> Result<LocalState, GitHubError> {
    if is_through_link(folder, path) {
        return Ok(LocalState::Other);
    }
    let (file, found) = match folder.open_regular_file(path) {
        Ok(opened) => opened,
        Err(refusal) if refusal.is_missing() => return Ok(LocalState::Missing),
        Err(_) => return Ok(LocalState::Other),
    };
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| GitHubError::io("read", &folder.original_path().join(path), error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Ok(LocalState::Other);
    }
    let (blob, hash) = (vcs::blob_id(&bytes)?, BlobHash::of(&bytes));
    Ok(LocalState::File(LocalFile { blob, hash, bytes, is_program: is_executable(&found) }))
}

/// Returns whether a path is a symbolic link, or leads through one. What a link leads to belongs to another path.
fn is_through_link(folder: &ConfinedFolder, path: &str) -> bool {
    let is_link = |path: &str| {
        folder.original_path().join(path).symlink_metadata().is_ok_and(|found| found.file_type().is_symlink())
    };
    is_link(path) || folders_above(path).any(is_link)
}

pub(crate) fn open_root(root: &Path) -> Result<ConfinedFolder, GitHubError> {
    ConfinedFolder::open_root(root).map_err(|refusal| GitHubError::Refused(format!("{refusal}.")))
}

/// Returns the path in a folder of a name that a user gave in a part of it.
///
/// # Errors
/// Returns [`GitHubError::Refused`] if it leads out of the folder.
pub fn path_in_folder(part: &str, name: &str) -> Result<String, GitHubError> {
    let name = normalize_path(name).map_err(|refusal| GitHubError::Refused(format!("{refusal}.")))?;
    Ok(match (part.is_empty(), name.is_empty()) {
        (true, _) => name,
        (false, true) => part.to_owned(),
        (false, false) => format!("{part}/{name}"),
    })
}

/// Lists what differs from the last pull or commit, by path. Asks nobody.
///
/// # Errors
/// Returns an error if a file can't be read.
pub fn list_changes(root: &Path, record: &FolderRecord) -> Result<Vec<LocalChange>, GitHubError> {
    let folder = open_root(root)?;
    let mut changes = Vec::new();
    for (path, recorded) in &record.files {
        let kind = match read_local(&folder, path)? {
            LocalState::Missing => LocalChangeKind::Deleted,
            LocalState::Other => LocalChangeKind::Replaced,
            LocalState::File(file) => {
                let is_same_mode = !cfg!(unix) || file.is_program == recorded.is_program;
                match file.blob == recorded.hash && is_same_mode {
                    true => continue,
                    false => LocalChangeKind::Modified,
                }
            }
        };
        changes.push(LocalChange { path: path.clone(), kind });
    }
    let new = new_files(root, record)?.into_iter().map(|path| LocalChange { path, kind: LocalChangeKind::New });
    changes.extend(new);
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

/// Returns files that the repository doesn't have and no rule ignores.
fn new_files(root: &Path, record: &FolderRecord) -> Result<BTreeSet<String>, GitHubError> {
    let scratch = tempfile::tempdir().map_err(|error| GitHubError::io("created", &std::env::temp_dir(), error))?;
    let found = vcs::unignored_files(root, scratch.path())?;
    let is_own = |path: &str| path.split('/').next() == Some(STATE_FOLDER);
    let is_temporary = |path: &str| path.rsplit('/').next().is_some_and(|name| is_temporary_file(name.as_ref()));
    let is_new = |path: &String| {
        !is_own(path) && !is_temporary(path) && !record.files.contains_key(path) && !record.left_out.contains_key(path)
    };
    Ok(found.into_iter().filter(is_new).collect())
}
