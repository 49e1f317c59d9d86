//! Changed files for a page of source control: what is staged and what isn't, and the diff of each.

use crate::diff_text::format_some;
use crate::ignore_rules::{IgnoredFolders, follow_rules_of, list_statuses};
use crate::lfs_pointers::{LfsComparison, find_unchanged};
use crate::renames::{MAX_RENAME_FILES, are_comparable};
use crate::trusted_owners::open_checked;
use crate::{MAX_STATUS_FILES, RepositoryFolder, VcsError, status_letters};
use git2::{
    Delta, DiffOptions, Index, IndexEntryExtendedFlag, ObjectType, Oid, Repository, RepositoryOpenFlags,
    RepositoryState, Status, StatusOptions, StatusShow, Statuses,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of files outside of the folder that a refusal names.
const MAX_NAMED_FILES: usize = 3;

/// Files that differ by their path in the repository: the old path of a renamed one, and the status.
type Differences = BTreeMap<String, (Option<String>, Status)>;

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

/// A changed file, in the letters of `git status --short`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct StatusEntry {
    /// How what is staged differs from the last commit, and how the file differs from what is staged.
    pub status: String,
    /// Path relative to the folder, with `/` separators.
    pub path: String,
    /// The path in the last commit, if the file was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// Whether `path` only resembles the name, which isn't UTF-8 text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_inexact: bool,
}

/// A file that libgit2 lists as changed.
struct ListedDifference {
    path: String,
    old_path: Option<String>,
    status: Status,
    is_inexact: bool,
}

impl RepositoryFolder {
    /// Lists the changed files in the folder by path as a status does, at most [`MAX_STATUS_FILES`], with those whose
    /// names aren't UTF-8 text at the end. Returns whether the list is complete.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn status_entries(&self) -> Result<(Vec<StatusEntry>, bool), VcsError> {
        let (named, inexact) = self.all_differences(true)?;
        let index = self.repository.index()?;
        let entry = |path: &str, old_path: Option<&str>, status: Status, is_inexact: bool| StatusEntry {
            status: status_letters(status, &index, path),
            path: self.folder_path(path).to_owned(),
            old_path: old_path.map(|old| self.folder_path(old).to_owned()),
            is_inexact,
        };
        let named_entries = named.iter().map(|(path, (old, status))| entry(path, old.as_deref(), *status, false));
        let inexact_entries = inexact.iter().map(|(path, status)| entry(path, None, *status, true));
        let entries = named_entries.chain(inexact_entries).take(MAX_STATUS_FILES).collect();
        Ok((entries, named.len() + inexact.len() <= MAX_STATUS_FILES))
    }

    /// Lists the changed files in the folder by path, at most [`MAX_STATUS_FILES`]. Returns whether the list is
    /// complete.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn changes(&self) -> Result<(Vec<FileChange>, bool), VcsError> {
        let mut changes = Vec::new();
        for (path, (old_path, status)) in self.differences(true)? {
            let (staged, unstaged) = change_kinds(status);
            let old_path = old_path.map(|old| self.folder_path(&old).to_owned());
            changes.push(FileChange { path: self.folder_path(&path).to_owned(), old_path, staged, unstaged });
        }
        let whole = changes.len() <= MAX_STATUS_FILES;
        changes.truncate(MAX_STATUS_FILES);
        Ok((changes, whole))
    }

    /// Lists the files in the folder that differ. Of submodules, only what is staged is listed: to know the rest, Git
    /// opens their repositories, with settings that nobody has looked at.
    pub(crate) fn differences(&self, finds_renames: bool) -> Result<Differences, VcsError> {
        Ok(self.all_differences(finds_renames)?.0)
    }

    /// Lists the files in the folder that differ, and apart from them those whose names aren't UTF-8 text.
    fn all_differences(&self, finds_renames: bool) -> Result<(Differences, BTreeMap<String, Status>), VcsError> {
        // In a large repository, comparing the commit with the index takes as long as looking at all files.
        let (own, top, prefix) = (self.repository.path(), &self.top, self.prefix.as_str());
        let (staged, unstaged) = std::thread::scope(|scope| {
            let list_staged = move || {
                let repository = open_checked(own, top, RepositoryOpenFlags::NO_SEARCH)?;
                list_differences(&repository, prefix, StatusShow::Index, finds_renames)
            };
            let staged = scope.spawn(list_staged);
            let unstaged = list_differences(&self.repository, prefix, StatusShow::Workdir, finds_renames);
            (staged.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), unstaged)
        });
        let (mut found, mut inexact) = (Differences::new(), BTreeMap::new());
        for one in staged?.into_iter().chain(unstaged?) {
            if one.is_inexact {
                *inexact.entry(one.path).or_insert(Status::CURRENT) |= one.status;
                continue;
            }
            let (old, all) = found.entry(one.path).or_insert((None, Status::CURRENT));
            *old = old.take().or(one.old_path);
            *all |= one.status;
        }
        Ok((found, inexact))
    }

    /// Returns the changed files that names mean, and how each differs from what is staged. A folder means the changed
    /// files in it, but not the new ones: as with Git, these are discarded only by their own names.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] with a sentence if a name means no changed file.
    pub fn find_unstaged(&self, names: &[String]) -> Result<Vec<(String, FileChangeKind)>, VcsError> {
        let (changes, is_complete) = self.changes()?;
        let refuse = |why: String| Err(VcsError::Refused(why));
        let mut found: Vec<(String, FileChangeKind)> = Vec::new();
        for name in names {
            let path = name.trim_start_matches("./").trim_end_matches('/');
            let is_whole = matches!(name.as_str(), "." | "./");
            let is_below = |change: &FileChange| {
                let rest = change.path.strip_prefix(path).filter(|_| !path.is_empty());
                is_whole || rest.is_some_and(|rest| rest.starts_with('/'))
            };
            let file = changes.iter().find(|change| change.path == *name || change.path == path);
            let is_meant = |change: &FileChange| match file {
                Some(file) => file == change,
                None => is_below(change),
            };
            let mut meant: Vec<(String, FileChangeKind)> = Vec::new();
            for change in changes.iter().filter(|change| is_meant(change)) {
                meant.extend(change.unstaged.map(|kind| (change.path.clone(), kind)));
            }
            let has_new = !meant.is_empty();
            if file.is_none() {
                meant.retain(|(_, kind)| *kind != FileChangeKind::Untracked);
            }
            match (meant.is_empty(), has_new) {
                (true, true) => {
                    return refuse(format!(
                        "{name} has no changes to discard, only new files. Name the files that are to be deleted."
                    ));
                }
                (true, false) => return refuse(format!("{name} no longer has changes to discard.")),
                (false, _) => {}
            }
            if file.is_none() && !is_complete {
                return refuse(format!("Too many files have changed to know all of those in {name}. Name the files."));
            }
            meant.retain(|one| !found.contains(one));
            found.append(&mut meant);
        }
        Ok(found)
    }

    /// Returns whether the folder is one below the repository's own.
    pub fn is_below_top(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Returns whether a commit is limited to the folder: it's below the repository's own, and no merge or the like is
    /// under way, which can only be committed as a whole.
    pub fn is_committed_apart(&self) -> bool {
        self.is_below_top() && matches!(self.repository.state(), RepositoryState::Clean | RepositoryState::Bisect)
    }

    /// Refuses a commit of what is staged if that includes files outside of the folder, which no list shows.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] with names of such files.
    pub fn refuse_staged_outside(&self) -> Result<(), VcsError> {
        if !self.is_committed_apart() {
            return Ok(());
        }
        let below = format!("{}/", self.prefix);
        let head = self.head_tree()?;
        let diff = self.repository.diff_tree_to_index(head.as_ref(), None, Some(&mut DiffOptions::new()))?;
        let mut outside: Vec<String> = Vec::new();
        for delta in diff.deltas().filter(|delta| delta.status() != Delta::Conflicted) {
            let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()).unwrap_or_default();
            if !path.starts_with(below.as_bytes()) {
                outside.push(String::from_utf8_lossy(path).into_owned());
            }
        }
        let named = outside.iter().take(MAX_NAMED_FILES).cloned().collect::<Vec<_>>().join(", ");
        let named = match outside.len() {
            0 => return Ok(()),
            count if count > MAX_NAMED_FILES => format!("{named} and {} more", count - MAX_NAMED_FILES),
            _ => named,
        };
        Err(VcsError::Refused(format!(
            "files outside of this folder are staged, and this commit would contain them: {named}; commit or unstage \
             them with Git itself first"
        )))
    }

    /// Returns whether a name is a folder's, and not a file's. It may be gone from the folder, but not from the index
    /// and the last commit.
    ///
    /// # Errors
    /// Returns [`VcsError::Missing`] if there's nothing of this name, and [`VcsError::Refused`] if the path leads out
    /// of the folder.
    pub fn is_known_folder(&self, path: &str) -> Result<bool, VcsError> {
        let inside = self.repository_path(path)?;
        if inside == self.prefix {
            return Ok(true);
        }
        let at = Path::new(&inside);
        if let Ok(meta) = self.top.join(at).symlink_metadata() {
            return Ok(meta.is_dir());
        }
        let index = self.repository.index()?;
        if (0..=3).any(|stage| index.get_path(at, stage).is_some()) {
            return Ok(false);
        }
        let below = format!("{inside}/");
        if index.iter().any(|entry| entry.path.starts_with(below.as_bytes())) {
            return Ok(true);
        }
        let committed = self.head_tree()?.and_then(|tree| tree.get_path(at).ok());
        let committed = committed.ok_or_else(|| {
            VcsError::Missing(format!("no file or folder {path} here, in what is staged or in the last commit"))
        })?;
        Ok(committed.kind() == Some(ObjectType::Tree))
    }

    /// Returns how a file differs from what is staged as a unified diff, and whether it's complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn unstaged_diff(&self, path: &str) -> Result<(String, bool), VcsError> {
        let mut options = DiffOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
        options.disable_pathspec_match(true).ignore_submodules(true).max_size(10 << 20);
        let inside = self.repository_path(path)?;
        options.pathspec(&inside);
        follow_rules_of(&self.repository, &inside)?;
        let diff = self.repository.diff_index_to_workdir(None, Some(&mut options))?;
        let same = find_unchanged(&self.repository, &self.repository.index()?, &diff);
        format_some(&diff, &|delta| !delta.old_file().path().is_some_and(|path| same.contains(path)))
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
        if meta.is_symlink() {
            return refuse("it's a link, and these are changed only with Git itself");
        }
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
    /// Returns [`VcsError::Refused`] if Git has removed them.
    pub fn kept_bytes(&self, id: &str) -> Result<Vec<u8>, VcsError> {
        let kept = self.repository.find_blob(git2::Oid::from_str(id)?).map_err(|error| match error.code() {
            git2::ErrorCode::NotFound => VcsError::Refused(format!("the repository doesn't keep {id}, or no longer")),
            _ => VcsError::from(error),
        })?;
        Ok(kept.content().to_vec())
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

/// Lists the files of the folder `prefix` that differ.
fn list_differences(
    repository: &Repository,
    prefix: &str,
    show: StatusShow,
    finds_renames: bool,
) -> Result<Vec<ListedDifference>, git2::Error> {
    let mut options = StatusOptions::new();
    options.show(show).include_untracked(true).recurse_untracked_dirs(true);
    // Comparing the last commit with the index opens no submodule.
    options.exclude_submodules(!matches!(show, StatusShow::Index));
    options.disable_pathspec_match(true);
    if !prefix.is_empty() {
        options.pathspec(prefix);
    }
    let (mut found, mut ignored) = match matches!(show, StatusShow::Index) {
        true => (repository.statuses(Some(&mut options))?, IgnoredFolders::none(repository)),
        false => list_statuses(repository, prefix, &mut options)?,
    };
    let mut moved = BTreeMap::new();
    if finds_renames && matches!(show, StatusShow::Index) {
        let moves = find_moved(&found);
        let are_few = (1..=MAX_RENAME_FILES).contains(&moves.candidates);
        // libgit2 compares contents of any size.
        if are_few && are_comparable(repository, found.iter().filter_map(|entry| entry.head_to_index()))? {
            options.renames_head_to_index(true);
            found = repository.statuses(Some(&mut options))?;
        } else {
            moved = moves.same;
        }
    }
    let moved_from: BTreeSet<&String> = moved.values().collect();
    let index = repository.index()?;
    let mut comparison = LfsComparison::new(repository, &index);
    let differing = found.iter().filter_map(|entry| {
        let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
        let is_inexact = std::str::from_utf8(entry.path_bytes()).is_err();
        let mut status = entry.status();
        if status.contains(Status::WT_DELETED) && is_left_out(&index, Path::new(&path)) {
            status.remove(Status::WT_DELETED);
        }
        if status.contains(Status::WT_MODIFIED) && comparison.is_unchanged(Path::new(&path)) {
            status.remove(Status::WT_MODIFIED);
        }
        if status.contains(Status::WT_NEW) && ignored.contain(&path) {
            status.remove(Status::WT_NEW);
        }
        if status == Status::CURRENT || moved_from.contains(&path) {
            return None;
        }
        if let Some(old) = moved.get(&path) {
            status.remove(Status::INDEX_NEW);
            status.insert(Status::INDEX_RENAMED);
            return Some(ListedDifference { path, old_path: Some(old.clone()), status, is_inexact });
        }
        let new_path = entry.head_to_index().and_then(|delta| delta.new_file().path_bytes().map(<[u8]>::to_vec));
        let new_path = new_path.and_then(|path| String::from_utf8(path).ok());
        let is_renamed = status.contains(Status::INDEX_RENAMED);
        let renamed = new_path.filter(|new| is_renamed && !is_inexact && *new != path);
        let (path, old_path) = match renamed {
            Some(new) => (new, Some(path)),
            None => (path, None),
        };
        Some(ListedDifference { path, old_path, status, is_inexact })
    });
    Ok(differing.collect())
}

/// Files that were renamed, of those that are staged.
struct StagedMoves {
    /// The old paths of files with the same content, by their new ones.
    same: BTreeMap<String, String>,
    /// Number of files that may be renamed; 0 unless some are new and others deleted.
    candidates: usize,
}

/// Finds the staged files that have the content of a deleted one.
fn find_moved(found: &Statuses<'_>) -> StagedMoves {
    let mut gone: BTreeMap<Oid, Vec<String>> = BTreeMap::new();
    let mut new = Vec::new();
    for delta in found.iter().filter_map(|entry| entry.head_to_index()) {
        let text = |path: Option<&[u8]>| path.and_then(|path| String::from_utf8(path.to_vec()).ok());
        if delta.status() == Delta::Deleted {
            let file = delta.old_file();
            gone.entry(file.id()).or_default().extend(text(file.path_bytes()));
        } else if delta.status() == Delta::Added {
            let file = delta.new_file();
            new.extend(text(file.path_bytes()).map(|path| (file.id(), path)));
        }
    }
    let candidates = if gone.is_empty() { 0 } else { new.len() };
    // Of several that are the same, the first one counts.
    gone.values_mut().for_each(|paths| paths.reverse());
    let same = new.into_iter().filter_map(|(id, path)| Some((path, gone.get_mut(&id)?.pop()?))).collect();
    StagedMoves { same, candidates }
}

/// Returns whether a sparse checkout leaves a file out of the folder, so that its absence is no change.
pub(crate) fn is_left_out(index: &Index, path: &Path) -> bool {
    let skips = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    index.get_path(path, 0).is_some_and(|entry| entry.flags_extended & skips != 0)
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
