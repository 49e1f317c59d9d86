//! Git status, diff, log, blame, branches and commit for one folder of a repository.
//!
//! It runs no hook, filter or other program, uses no network, and touches nothing outside the folder except the
//! repository's own store.

mod changes;
mod commit_choice;
mod commit_heads;
mod comparisons;
mod conflict_versions;
mod conflicts;
mod diff_text;
mod encodings;
mod errors;
mod file_history;
mod file_walk;
mod fork_snapshot;
mod graph;
mod hidden_files;
mod hunks;
mod ignore_rules;
mod lfs_pointers;
mod line_blame;
mod note_choices;
mod plain_folder;
mod program_settings;
mod project_files;
mod racy_entries;
mod range_walk;
mod reads;
mod renames;
mod repository_folder;
mod revisions;
mod shell_word;
mod staged_changes;
mod text_merge;
mod tool_text;
mod trusted_owners;

pub use changes::{FileChange, FileChangeKind, StatusEntry};
pub use commit_choice::CommitChoice;
pub use comparisons::{ComparedVersions, RevisionDiff};
pub use conflict_versions::{ConflictVersion, ConflictVersions};
pub use conflicts::{
    ConflictChoice, ConflictKind, ConflictRegion, ConflictSide, ConflictSides, FileConflict, MAX_CONFLICT_FILE_BYTES,
    MAX_CONFLICT_FILES, MAX_CONFLICT_REGIONS,
};
pub use diff_text::MAX_DIFF_BYTES;
pub use errors::VcsError;
pub use file_history::{
    FILE_LOG_TIMEOUT, FileArrival, FileCommit, FileVersion, MAX_ARRIVED_BYTES, MAX_ARRIVED_COMMITS,
    MAX_FILE_LOG_COMMITS, git_folder, is_content, is_in_repository, is_index_locked,
};
pub use fork_snapshot::FORK_SNAPSHOT_TRAILER;
pub use graph::{GraphRow, MAX_GRAPH_COMMITS, MAX_GRAPH_LANES, graph_text};
pub use hunks::{FileHunk, FileHunkLine, HunkAction, HunkChoice, IndexUpdate};
pub use note_choices::{MarkedNote, ResolvedText};
pub use plain_folder::{blob_id, unignored_files};
pub use project_files::ProjectFiles;
pub use reads::{
    BlameLine, BlameSpan, BranchInfo, BranchState, MAX_BLAME_FILE_BYTES, MAX_LISTED_REFERENCES, PullMode, StashInfo,
    TagInfo,
};
pub use repository_folder::{
    Commit, MAX_COMMIT_FILE_BYTES, MAX_COMMIT_MESSAGE_BYTES, MAX_STATUS_FILES, RepositoryFolder,
};
pub use revisions::CommitRange;
pub use shell_word::shell_word;
pub use text_merge::{MergeSide, TextConflict, merge_texts};
pub use tool_text::describe_branch;

use changes::is_left_out;
use diff_text::format_some;
use git2::{
    AttrCheckFlags, AttrValue, ErrorCode, Index, IndexEntry, IndexTime, Oid, Repository, RepositoryOpenFlags, Status,
    StatusOptions, Tree,
};
use ignore_rules::list_statuses;
use lfs_pointers::LfsComparison;
use racy_entries::write_index;
use range_walk::WalkedCommit;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};
use trusted_owners::open_checked;

/// Maximum number of commits in a log.
pub const MAX_LOG_COMMITS: usize = 200_000;
/// Git's attribute for files that have another encoding in the folder than in the store.
const ENCODING: &str = "working-tree-encoding";
/// How long the last commits are searched.
const LOG_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns whether a repository says by `core.worktree` that its files are in a folder that isn't its own, such as the
/// one above it: Git would write there what is in its branches. A submodule's folder names its repository itself.
fn has_foreign_files(repository: &Repository, top: &Path) -> bool {
    let is_set = repository.config().is_ok_and(|config| config.get_entry("core.worktree").is_ok());
    let path_of = |repository: &Repository| repository.path().canonicalize().ok();
    let own = open_checked(top, top, RepositoryOpenFlags::NO_SEARCH);
    is_set && own.ok().and_then(|own| path_of(&own)) != path_of(repository)
}

/// Returns whether a folder leads to a repository elsewhere that isn't its own. Those of worktrees and submodules name
/// their folder.
fn is_borrowed(repository: &Repository, top: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    if top.join(".git").symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return real(repository.commondir()) != real(repository.path());
    }
    // Where `.git` is a link, the repository's path isn't the real one, and its parent is the folder.
    let named = std::fs::read_to_string(repository.path().join("gitdir")).ok();
    let named = named.map(|named| repository.path().join(named.trim()));
    let is_named = named.is_some_and(|named| named.parent().and_then(real).is_some_and(|folder| folder == top));
    !is_named && repository.config().map_or(true, |config| config.get_entry("core.worktree").is_err())
}

impl RepositoryFolder {
    /// Opens the repository that contains a folder.
    ///
    /// # Errors
    /// Returns [`VcsError::None`] if there's none, and [`VcsError::Refused`] if it belongs to another user, is bare, or
    /// has its files elsewhere.
    pub fn open(folder: &Path) -> Result<RepositoryFolder, VcsError> {
        let folder = folder.canonicalize().map_err(|error| VcsError::Git(format!("{error}: {}", folder.display())))?;
        // libgit2's own search forgets which `.git` led to the repository, and with it the folder of its files.
        let opened = open_checked(&folder, trusted_folder(&folder), RepositoryOpenFlags::CROSS_FS);
        let repository = opened.map_err(|error| match error.code() {
            ErrorCode::NotFound => VcsError::None(folder.clone()),
            ErrorCode::Owner => VcsError::Refused(format!(
                "the repository belongs to another user; `git config --global --add safe.directory {}` trusts it",
                shell_word(&trusted_folder(&folder).display().to_string())
            )),
            _ => VcsError::from(error),
        })?;
        let top = repository.workdir().and_then(|top| top.canonicalize().ok());
        let top =
            top.ok_or_else(|| VcsError::Refused("the repository has no files of its own (it is bare)".to_owned()))?;
        let inside = folder.strip_prefix(&top).ok().and_then(slash_path);
        let prefix = inside
            .filter(|_| !has_foreign_files(&repository, &top))
            .ok_or_else(|| VcsError::Refused(format!("the repository's files are elsewhere: {}", top.display())))?;
        Ok(RepositoryFolder { repository, prefix, top })
    }

    /// Opens a repository as [`RepositoryFolder::open`] does, but none elsewhere that doesn't name this folder: a
    /// folder of someone else could have an agent read any repository of this computer.
    ///
    /// # Errors
    /// Returns those of [`RepositoryFolder::open`], and [`VcsError::Refused`] for such a repository.
    pub fn open_own(folder: &Path) -> Result<RepositoryFolder, VcsError> {
        let opened = RepositoryFolder::open(folder)?;
        match is_borrowed(&opened.repository, &opened.top) {
            true => Err(VcsError::Refused(format!(
                "the repository is elsewhere and doesn't name this folder, so agents don't use it: {}",
                opened.repository.commondir().display()
            ))),
            false => Ok(opened),
        }
    }

    /// Lists changes since the last commit, one line per file in the format of `git status --short`.
    ///
    /// Also returns whether the list is complete.
    ///
    /// # Errors
    /// Returns libgit2's error, here and in the methods below.
    pub fn status(&self) -> Result<(Vec<String>, bool), VcsError> {
        let changed = self.differences(false)?;
        let index = self.repository.index()?;
        let line = |(path, (_, status)): (&String, &(Option<String>, Status))| {
            let (letters, path) = (status_letters(*status, &index, path), self.folder_path(path));
            // As in Git, a name with a line end is quoted.
            if path.contains(char::is_control) { format!("{letters} {path:?}") } else { format!("{letters} {path}") }
        };
        Ok((changed.iter().take(MAX_STATUS_FILES).map(line).collect(), changed.len() <= MAX_STATUS_FILES))
    }

    /// Returns the changes in the working tree since the last commit as a unified diff, and whether it's complete.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn diff(&self, path: Option<&str>) -> Result<(String, bool), VcsError> {
        self.diff_paths(&path.map(ToOwned::to_owned).into_iter().collect::<Vec<_>>())
    }

    /// Returns what differs from the last commit in files and folders, or in all of the folder if none are named.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if a path leads out of the folder.
    pub fn diff_paths(&self, paths: &[String]) -> Result<(String, bool), VcsError> {
        let diff = self.working_tree_diff(self.head_tree()?.as_ref(), &mut self.diff_options(paths)?)?;
        format_some(&diff, &*self.working_tree_filter(&diff)?)
    }

    /// Returns the last commits, newest first and each before its parents: at most `limit` and [`MAX_LOG_COMMITS`].
    ///
    /// A repository without commits has an empty log. If it takes long, there are fewer.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn log(&self, limit: usize) -> Result<Vec<Commit>, VcsError> {
        Ok(self.log_range(&self.commit_range(&[])?, limit, LOG_TIMEOUT)?.0)
    }

    /// Returns the commits of a range as [`RepositoryFolder::log`] does, and whether all that are wanted were found in
    /// time: if not, these are the newest.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn log_range(
        &self,
        range: &CommitRange,
        limit: usize,
        time: Duration,
    ) -> Result<(Vec<Commit>, bool), VcsError> {
        let limit = limit.min(MAX_LOG_COMMITS);
        let (commits, is_in_time) = self.walk_range(range, limit, Instant::now() + time)?;
        let is_complete = is_in_time || commits.len() >= limit;
        let describe = |commit: &WalkedCommit| Ok(reads::describe(&self.repository.find_commit(commit.id)?));
        let found: Result<Vec<Commit>, VcsError> = commits.iter().take(limit).map(describe).collect();
        Ok((found?, is_complete))
    }

    /// Commits the current content of the named files, or of all changed files in the folder if none are named.
    ///
    /// Other staged changes stay staged. Returns the commit and its files.
    ///
    /// # Errors
    /// Returns [`VcsError::Nobody`] if the user isn't configured in Git, and [`VcsError::Filtered`] if only Git itself
    /// can commit a file; nothing is changed then. Returns [`VcsError::Refused`] in these cases: nothing has changed, a
    /// file is invalid or outside the folder, the message is empty or too long, or a merge is in progress.
    pub fn commit(&self, message: &str, files: &[String]) -> Result<(Commit, Vec<String>), VcsError> {
        let refuse = |why: String| Err(VcsError::Refused(why));
        self.check_commit(message)?;
        let message = message.trim();
        let signature = self.author()?;
        let paths: Vec<String> = self.chosen_files(files)?.into_iter().map(|(path, _)| path).collect();
        // Commit a separate tree: the last commit's tree plus these files. The user's index may contain other changes.
        let head = self.head_tree()?;
        let mut tree = Index::new()?;
        if let Some(head) = &head {
            tree.read_tree(head)?;
        }
        let mut index = self.repository.index()?;
        for path in &paths {
            self.stage_file(path, Some(&mut tree), &mut index)?;
        }
        let written = tree.write_tree_to(&self.repository)?;
        if head.as_ref().map_or(paths.is_empty(), |head| head.id() == written) {
            return refuse("nothing has changed since the last commit".to_owned());
        }
        let commit = self.write_commit(&signature, message, written)?;
        write_index(&self.repository, &mut index)?;
        Ok((commit, paths.iter().map(|path| self.folder_path(path).to_owned()).collect()))
    }

    /// Adds a file's current content to the index, and to that of a commit if there's one, or removes it if it's gone.
    fn stage_file(&self, path: &str, tree: Option<&mut Index>, index: &mut Index) -> Result<(), VcsError> {
        let refuse = |why: &str| Err(VcsError::Refused(format!("{why}: {}", self.folder_path(path))));
        let file = self.top.join(path);
        let mut above = PathBuf::new();
        for part in Path::new(path).parent().into_iter().flat_map(Path::components) {
            above.push(part);
            if self.top.join(&above).symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
                return refuse("a link on the way leads elsewhere");
            }
        }
        let Ok(meta) = file.symlink_metadata() else {
            let gone = Path::new(path);
            if let Some(tree) = tree {
                tree.remove_path(gone)?;
            }
            return match index.remove_path(gone) {
                Err(error) if error.code() != ErrorCode::NotFound => Err(error.into()),
                _ => Ok(()), // it may be staged as gone already
            };
        };
        if let Some(filter) = self.required_filter(path)? {
            return Err(VcsError::Filtered { file: self.folder_path(path).to_owned(), filter });
        }
        if !(meta.is_file() || meta.is_symlink()) || meta.len() > MAX_COMMIT_FILE_BYTES {
            return refuse("it isn't a regular file of at most 100 MB");
        }
        if let Some(tree) = tree {
            let id = if meta.is_symlink() {
                let to = std::fs::read_link(&file).map_err(|error| VcsError::Git(error.to_string()))?;
                self.repository.blob(to.as_os_str().as_encoded_bytes())?
            } else {
                // Like Git, this converts line endings as the repository's attributes specify.
                self.repository.blob_path(&file)?
            };
            tree.add(&index_entry(path, id, &meta))?;
        }
        index.add_path(Path::new(path)).map_err(VcsError::from)
    }

    /// Returns the filter that Git puts a file's bytes through, and whether Git's settings have it here. A change of
    /// the encoding counts, since libgit2 has none: Git's store has the file in UTF-8.
    fn filter_of(&self, path: &str) -> Result<Option<(String, bool)>, VcsError> {
        let encoding = self.repository.get_attr(Path::new(path), ENCODING, AttrCheckFlags::default())?;
        if let AttrValue::String(name) = AttrValue::from_string(encoding)
            && !["utf-8", "utf8"].iter().any(|utf8| name.eq_ignore_ascii_case(utf8))
        {
            return Ok(Some((ENCODING.to_owned(), true)));
        }
        let value = self.repository.get_attr(Path::new(path), "filter", AttrCheckFlags::default())?;
        let AttrValue::String(name) = AttrValue::from_string(value) else { return Ok(None) };
        let config = self.repository.config()?;
        let is_set = |kind: &&str| config.get_string(&format!("filter.{name}.{kind}")).is_ok_and(|run| !run.is_empty());
        Ok(Some((name.to_owned(), ["clean", "process"].iter().any(is_set))))
    }

    /// Returns the filter that Git puts a file's bytes through. Refuses the file if Git's settings don't have it here,
    /// since Git would then take the bytes as they are.
    fn required_filter(&self, path: &str) -> Result<Option<String>, VcsError> {
        match self.filter_of(path)? {
            None => Ok(None),
            Some((filter, true)) => Ok(Some(filter)),
            Some((filter, false)) => Err(VcsError::Refused(format!(
                "its bytes go through the filter {filter}, which Git's settings don't have here (`git lfs install` \
                 adds lfs): {}",
                self.folder_path(path)
            ))),
        }
    }

    /// Returns the files in the folder that differ from the last commit, by their path in the repository.
    fn changed_files(&self) -> Result<Vec<(String, Status)>, VcsError> {
        let mut options = StatusOptions::new();
        options
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .exclude_submodules(true)
            .disable_pathspec_match(true);
        if !self.prefix.is_empty() {
            options.pathspec(&self.prefix);
        }
        let (found, mut ignored) = list_statuses(&self.repository, &self.prefix, &mut options)?;
        let index = self.repository.index()?;
        let mut comparison = LfsComparison::new(&self.repository, &index);
        let named = found.iter().filter(|entry| entry.status() != Status::CURRENT);
        // File names that aren't valid UTF-8 can't be passed to a tool.
        Ok(named
            .filter_map(|entry| {
                let path = String::from_utf8(entry.path_bytes().to_vec()).ok()?;
                let is_gone = entry.status().contains(Status::WT_DELETED);
                let is_absent = is_gone && is_left_out(&index, Path::new(&path));
                let is_same = entry.status() == Status::WT_MODIFIED && comparison.is_unchanged(Path::new(&path));
                let is_ignored = entry.status() == Status::WT_NEW && ignored.contain(&path);
                (!is_absent && !is_same && !is_ignored).then_some((path, entry.status()))
            })
            .collect())
    }

    fn head_tree(&self) -> Result<Option<Tree<'_>>, VcsError> {
        match self.repository.head() {
            Ok(head) => Ok(Some(head.peel_to_tree()?)),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Converts a path in the folder to a path in the repository.
    fn repository_path(&self, path: &str) -> Result<String, VcsError> {
        let inside = slash_path(Path::new(path))
            .filter(|inside| !inside.split('/').any(|part| part.eq_ignore_ascii_case(".git")));
        let inside = inside.filter(|inside| !inside.contains('\0'));
        let Some(inside) = inside else {
            return Err(VcsError::Refused(format!("the path leads out of the volume: {path}")));
        };
        Ok(match (self.prefix.as_str(), inside.as_str()) {
            ("", _) => inside,
            (prefix, "") => prefix.to_owned(),
            (prefix, inside) => format!("{prefix}/{inside}"),
        })
    }

    /// Converts a path in the repository to a path in the folder.
    fn folder_path<'a>(&self, path: &'a str) -> &'a str {
        path.strip_prefix(&self.prefix).map_or(path, |path| path.trim_start_matches('/'))
    }
}

/// Returns the folder that Git's setting `safe.directory` names for a repository: its own, not one below it.
fn trusted_folder(folder: &Path) -> &Path {
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok()).unwrap_or(folder)
}

/// Returns a relative path with `/` separators; `None` if it contains anything but names below the folder.
fn slash_path(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn index_entry(path: &str, id: Oid, meta: &std::fs::Metadata) -> IndexEntry {
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    let runs = false;
    let mode = if meta.is_symlink() {
        0o120_000
    } else if runs {
        0o100_755
    } else {
        0o100_644
    };
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

/// Returns the status letters for the index and for the working tree.
fn status_letters(status: Status, index: &Index, path: &str) -> String {
    if status.contains(Status::CONFLICTED) {
        return conflict_letters(|side| index.get_path(Path::new(path), side).is_some()).to_owned();
    } else if status.contains(Status::WT_NEW) {
        return "??".to_owned();
    }
    let letter = |table: &[(Status, char)]| {
        table.iter().find(|(flag, _)| status.contains(*flag)).map_or(' ', |(_, letter)| *letter)
    };
    let index = letter(&[
        (Status::INDEX_NEW, 'A'),
        (Status::INDEX_RENAMED, 'R'), // also if it was changed
        (Status::INDEX_MODIFIED, 'M'),
        (Status::INDEX_DELETED, 'D'),
        (Status::INDEX_TYPECHANGE, 'T'),
    ]);
    let tree = letter(&[
        (Status::WT_MODIFIED, 'M'),
        (Status::WT_DELETED, 'D'),
        (Status::WT_RENAMED, 'R'),
        (Status::WT_TYPECHANGE, 'T'),
    ]);
    format!("{index}{tree}")
}

/// Returns Git's letters for a conflict in which these versions are there: 1 is the common one, 2 ours and 3 theirs.
fn conflict_letters(has: impl Fn(i32) -> bool) -> &'static str {
    match (has(1), has(2), has(3)) {
        (true, false, false) => "DD",
        (false, true, false) => "AU",
        (true, true, false) => "UD",
        (false, false, true) => "UA",
        (true, false, true) => "DU",
        (false, true, true) => "AA",
        (true, true, true) | (false, false, false) => "UU",
    }
}

#[cfg(test)]
mod tests;
