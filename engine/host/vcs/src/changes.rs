//! Changed files for a page of source control: what is staged and what isn't, and the diff of each.

use crate::{MAX_STATUS_FILES, RepositoryFolder, VcsError, format_diff};
use git2::{DiffOptions, Repository, Status, StatusOptions, StatusShow};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChangeKind {
    /// Its content or type has changed.
    Modified,
    /// It's new, and staged.
    Added,
    /// It has another name.
    Renamed,
    /// It's gone.
    Deleted,
    /// It's new, and Git doesn't know it yet.
    Untracked,
    /// Both sides of a merge have changed it.
    Conflicted,
}

impl FileChangeKind {
    /// Returns the letter that marks the change in lists.
    pub fn letter(self) -> &'static str {
        match self {
            FileChangeKind::Modified => "M",
            FileChangeKind::Added => "A",
            FileChangeKind::Renamed => "R",
            FileChangeKind::Deleted => "D",
            FileChangeKind::Untracked => "?",
            FileChangeKind::Conflicted => "!",
        }
    }

    /// Returns the change as a word.
    pub fn word(self) -> &'static str {
        match self {
            FileChangeKind::Modified => "modified",
            FileChangeKind::Added => "added",
            FileChangeKind::Renamed => "renamed",
            FileChangeKind::Deleted => "deleted",
            FileChangeKind::Untracked => "untracked",
            FileChangeKind::Conflicted => "in conflict",
        }
    }
}

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the folder, with `/` separators.
    pub path: String,
    /// The path in the last commit, if the file was renamed.
    pub old_path: Option<String>,
    /// How what is staged differs from the last commit.
    pub staged: Option<FileChangeKind>,
    /// How the file differs from what is staged.
    pub unstaged: Option<FileChangeKind>,
}

impl RepositoryFolder {
    /// Lists the changed files in the folder by path, at most [`MAX_STATUS_FILES`]. Returns whether the list is
    /// complete.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn changes(&self) -> Result<(Vec<FileChange>, bool), VcsError> {
        // In a large repository, comparing the commit with the index takes as long as looking at all files.
        let (own, prefix) = (self.repository.path(), self.prefix.as_str());
        let (staged, unstaged) = std::thread::scope(|scope| {
            let staged = scope.spawn(|| list_differences(&Repository::open(own)?, prefix, StatusShow::Index));
            let unstaged = list_differences(&self.repository, prefix, StatusShow::Workdir);
            (staged.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), unstaged)
        });
        let mut found: BTreeMap<String, (Option<String>, Status)> = BTreeMap::new();
        for (path, old_path, status) in staged?.into_iter().chain(unstaged?) {
            let (old, all) = found.entry(path).or_insert((None, Status::CURRENT));
            *old = old.take().or(old_path);
            *all |= status;
        }
        let mut changes = Vec::new();
        for (path, (old_path, status)) in found {
            let (staged, unstaged) = change_kinds(status);
            let old_path = old_path.map(|old| self.folder_path(&old).to_owned());
            changes.push(FileChange { path: self.folder_path(&path).to_owned(), old_path, staged, unstaged });
        }
        let whole = changes.len() <= MAX_STATUS_FILES;
        changes.truncate(MAX_STATUS_FILES);
        Ok((changes, whole))
    }

    /// Returns how a file differs from what is staged as a unified diff, and whether it's complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn unstaged_diff(&self, path: &str) -> Result<(String, bool), VcsError> {
        let mut options = DiffOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
        options.disable_pathspec_match(true).ignore_submodules(true).max_size(10 << 20);
        options.pathspec(self.repository_path(path)?);
        format_diff(&self.repository.diff_index_to_workdir(None, Some(&mut options))?)
    }

    /// Keeps the bytes of a file in the repository's store, where Git's own cleaning removes them after weeks. Returns
    /// their hash, or `None` if there's no such file.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder, also through a link, or isn't a regular file
    /// of at most 100 MB.
    pub fn keep_file(&self, path: &str) -> Result<Option<String>, VcsError> {
        let file = self.top.join(self.repository_path(path)?);
        let refuse = |why: &str| Err(VcsError::Refused(format!("{why}: {path}")));
        let Ok(meta) = file.symlink_metadata() else { return Ok(None) };
        if !meta.is_file() || meta.len() > crate::MAX_COMMIT_FILE_BYTES {
            return refuse("it isn't a regular file of at most 100 MB");
        }
        if !file.canonicalize().is_ok_and(|real| real.starts_with(&self.top)) {
            return refuse("a link on the way leads elsewhere");
        }
        let bytes = std::fs::read(&file).map_err(|error| VcsError::Refused(format!("{error}: {path}")))?;
        Ok(Some(self.repository.blob(&bytes)?.to_string()))
    }

    /// Returns bytes that [`RepositoryFolder::keep_file`] has kept.
    ///
    /// # Errors
    /// Returns libgit2's error, for instance because Git has removed them.
    pub fn kept_bytes(&self, id: &str) -> Result<Vec<u8>, VcsError> {
        Ok(self.repository.find_blob(git2::Oid::from_str(id)?)?.content().to_vec())
    }

    /// Returns the files of the repository's store that change with a commit, a fetch, a switch or staging.
    pub fn state_files(&self) -> Vec<PathBuf> {
        let (own, shared) = (self.repository.path(), self.repository.commondir());
        let mut files: Vec<PathBuf> =
            ["HEAD", "index", "logs/HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge"]
                .map(|name| own.join(name))
                .into();
        files.extend(
            ["packed-refs", "FETCH_HEAD", "config", "refs/heads", "refs/tags", "logs/refs/stash"]
                .map(|name| shared.join(name)),
        );
        if let Some(name) = self.repository.head().ok().and_then(|head| head.name().ok().map(ToOwned::to_owned)) {
            let remote = self.repository.branch_upstream_name(&name).ok();
            files.extend(remote.and_then(|remote| remote.as_str().ok().map(|remote| shared.join(remote))));
            files.push(shared.join(name));
        }
        files
    }
}

/// Lists the files of the folder `prefix` that differ: path, old path if renamed, and status.
fn list_differences(
    repository: &Repository,
    prefix: &str,
    show: StatusShow,
) -> Result<Vec<(String, Option<String>, Status)>, git2::Error> {
    let mut options = StatusOptions::new();
    options.show(show).include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    options.disable_pathspec_match(true).renames_head_to_index(true);
    if !prefix.is_empty() {
        options.pathspec(prefix);
    }
    let found = repository.statuses(Some(&mut options))?;
    let differing = found.iter().filter(|entry| entry.status() != Status::CURRENT);
    // File names that aren't valid UTF-8 can't be shown or passed on.
    let differing = differing.filter_map(|entry| {
        let path = String::from_utf8(entry.path_bytes().to_vec()).ok()?;
        let new_path = entry.head_to_index().and_then(|delta| delta.new_file().path_bytes().map(<[u8]>::to_vec));
        let new_path = new_path.and_then(|path| String::from_utf8(path).ok());
        let is_renamed = entry.status().contains(Status::INDEX_RENAMED);
        Some(match new_path.filter(|new| is_renamed && *new != path) {
            Some(new) => (new, Some(path), entry.status()),
            None => (path, None, entry.status()),
        })
    });
    Ok(differing.collect())
}

/// Returns the kinds of the staged and the unstaged change.
fn change_kinds(status: Status) -> (Option<FileChangeKind>, Option<FileChangeKind>) {
    if status.contains(Status::CONFLICTED) {
        return (None, Some(FileChangeKind::Conflicted));
    }
    let kind = |table: &[(Status, FileChangeKind)]| {
        table.iter().find(|(flags, _)| status.intersects(*flags)).map(|(_, kind)| *kind)
    };
    let staged = kind(&[
        (Status::INDEX_NEW, FileChangeKind::Added),
        (Status::INDEX_DELETED, FileChangeKind::Deleted),
        (Status::INDEX_RENAMED, FileChangeKind::Renamed),
        (Status::INDEX_MODIFIED | Status::INDEX_TYPECHANGE, FileChangeKind::Modified),
    ]);
    let unstaged = kind(&[
        (Status::WT_NEW, FileChangeKind::Untracked),
        (Status::WT_DELETED, FileChangeKind::Deleted),
        (Status::WT_MODIFIED | Status::WT_TYPECHANGE | Status::WT_RENAMED, FileChangeKind::Modified),
    ]);
    (staged, unstaged)
}
