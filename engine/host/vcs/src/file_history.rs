//! A file's versions in the commits of a repository: which commits brought its present text, and its text in any of
//! them. Reads only objects of the repository's store.

use crate::errors::{MISSING_OBJECT, VcsError};
use crate::reads::describe;
use crate::repository_folder::{Commit, RepositoryFolder};
use git2::{ErrorCode, ObjectType, Oid};
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum number of commits that are told apart when a file's text arrives.
pub const MAX_ARRIVED_COMMITS: usize = 50;
/// Maximum total size in bytes of the texts of arrived commits.
pub const MAX_ARRIVED_BYTES: usize = 5 << 20;
/// Maximum number of commits in a note's history.
pub const MAX_FILE_LOG_COMMITS: usize = 1_000;
/// How long finding the commits for a note's history may take.
pub const FILE_LOG_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size in bytes of a file's text that is read from a commit.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Maximum number of commits that are visited to find a file's versions.
const MAX_VISITED_COMMITS: usize = 20_000;
/// How long finding a file's versions may take.
const WALK_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of moves of HEAD that are compared.
const MAX_HEAD_MOVES: usize = 100;
/// Age at which a lock of the index is one that a killed Git has left.
const MAX_LOCK_AGE: Duration = Duration::from_secs(10);
/// Maximum size in bytes of the file `.git` of a worktree.
const MAX_GIT_FILE_BYTES: u64 = 8 << 10;
/// Time between writing the index and moving HEAD to its commit.
const MAX_HEAD_DELAY: Duration = Duration::from_millis(500);

/// A commit that changed a file, and what it made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCommit {
    /// The commit.
    pub commit: Commit,
    /// Hash of the file's content in it, 40 hexadecimal digits.
    pub blob: String,
}

/// A file's text in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// The commit that made this text, and its content's hash.
    pub of: FileCommit,
    /// The text, with line ends as in the folder.
    pub text: String,
    /// If the commit merged two changed versions: the text that both began with.
    pub merge_base: Option<String>,
    /// If the commit merged two changed versions: those of the other side since the text that both began with, oldest
    /// first.
    pub merged: Vec<FileVersion>,
}

/// How the present text of a file came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileArrival {
    /// The versions since the known one, oldest first. The last is the present text. If HEAD has left the commit with
    /// the known version, there's one, which has merged what is new since the common version.
    pub versions: Vec<FileVersion>,
    /// Whether the version before the first is the known one. If not, there's one version: that of the last commit
    /// that changed the file.
    pub begins_at_known: bool,
}

/// What finding a file's versions may still cost.
struct WalkBudget {
    commits: usize,
    bytes: usize,
    until: Instant,
}

impl WalkBudget {
    fn new(bytes: usize) -> WalkBudget {
        WalkBudget { commits: MAX_VISITED_COMMITS, bytes, until: Instant::now() + WALK_TIMEOUT }
    }

    /// Counts a visited commit. Returns whether it's within the budget.
    fn visit(&mut self) -> bool {
        self.commits = self.commits.saturating_sub(1);
        self.commits > 0 && Instant::now() < self.until
    }
}

/// A file whose versions are read: its path in the repository, and whether the folder has it with CRLF.
struct ReadFile<'a> {
    path: &'a Path,
    has_crlf: bool,
}

impl RepositoryFolder {
    /// Returns the commits that brought a file's present text, since the version that `is_known` accepts; `None` if the
    /// text isn't that of the last commit.
    ///
    /// Where one parent of a commit has the same text, the text came from there, as in `git log FILE`.
    ///
    /// # Errors
    /// Returns libgit2's error, here and in the methods below. A missing old commit, as in a shallow clone, only ends
    /// the search.
    pub fn arrival(
        &self,
        path: &str,
        now: &str,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<Option<FileArrival>, VcsError> {
        let inside = self.repository_path(path)?;
        let file = ReadFile { path: Path::new(&inside), has_crlf: now.contains("\r\n") };
        let mut budget = WalkBudget::new(MAX_ARRIVED_BYTES.max(now.len()));
        let Some(head) = self.head_commit()? else { return Ok(None) };
        let Some(blob) = blob_at(&head, file.path) else { return Ok(None) };
        if self.text_of(blob, &file, &mut budget).is_none_or(|text| text != now) {
            return Ok(None);
        }
        let mut versions: Vec<FileVersion> = Vec::new();
        let mut last_change: Option<FileVersion> = None;
        let (mut at, mut at_blob, mut text) = (head, blob, now.to_owned());
        let begins_at_known = loop {
            if is_known(&text) {
                break true;
            }
            if !budget.visit() {
                break false;
            }
            // In a shallow clone, the oldest commit has made all of the file.
            let (parents, same) = self.parents(&at, at_blob, file.path).unwrap_or_default();
            if let Some(same) = same {
                at = same;
                continue;
            }
            let of = FileCommit { commit: describe(&at), blob: at_blob.to_string() };
            let mut version = FileVersion { of, text, merge_base: None, merged: Vec::new() };
            let mut sides: Vec<(git2::Commit<'_>, Oid, String)> = Vec::new();
            for parent in parents {
                let blob = blob_at(&parent, file.path);
                let read = blob.and_then(|blob| Some((blob, self.text_of(blob, &file, &mut budget)?)));
                sides.extend(read.map(|(blob, text)| (parent, blob, text)));
            }
            let own = sides.iter().position(|(_, _, text)| is_known(text)).unwrap_or(0);
            if sides.len() == 2 {
                let other = &sides[1 - own];
                if let Some((base, merged)) = self.other_side(&sides[own].0, (&other.0, other.1), &file, &mut budget) {
                    (version.merge_base, version.merged) = (Some(base), merged);
                }
            }
            last_change.get_or_insert_with(|| version.clone());
            versions.push(version);
            if own >= sides.len() || versions.len() >= MAX_ARRIVED_COMMITS {
                break false;
            }
            (at, at_blob, text) = sides.swap_remove(own);
        };
        versions.reverse();
        if begins_at_known {
            return Ok(Some(FileArrival { versions, begins_at_known }));
        }
        // A rebase, reset or switch: the known version was at another tip, which HEAD has left.
        let left = last_change.as_ref().and_then(|_| self.left_tip(&file, is_known));
        let since = left.and_then(|left| {
            let head = self.head_commit().ok()??;
            self.other_side(&left, (&head, blob), &file, &mut WalkBudget::new(MAX_ARRIVED_BYTES))
        });
        let begins_at_known = since.is_some();
        if let (Some(version), Some((base, merged))) = (&mut last_change, since) {
            (version.merge_base, version.merged) = (Some(base), merged);
        }
        Ok(Some(FileArrival { versions: last_change.into_iter().collect(), begins_at_known }))
    }

    /// Returns the last commit that HEAD has left and that has the known version of a file.
    fn left_tip(&self, file: &ReadFile<'_>, is_known: &dyn Fn(&str) -> bool) -> Option<git2::Commit<'_>> {
        let moves = self.repository.reflog("HEAD").ok()?;
        let mut budget = WalkBudget::new(MAX_ARRIVED_BYTES);
        let mut seen = BTreeSet::new();
        moves.iter().take(MAX_HEAD_MOVES).find_map(|one| {
            let commit = self.repository.find_commit(one.id_old()).ok()?;
            let blob = blob_at(&commit, file.path).filter(|blob| seen.insert(*blob))?;
            is_known(&self.text_of(blob, file, &mut budget)?).then_some(commit)
        })
    }

    /// Returns what the other side of a merge made of a file, oldest first, and the text that both sides began with.
    fn other_side(
        &self,
        own: &git2::Commit<'_>,
        (other, other_blob): (&git2::Commit<'_>, Oid),
        file: &ReadFile<'_>,
        budget: &mut WalkBudget,
    ) -> Option<(String, Vec<FileVersion>)> {
        let base = self.repository.merge_base(own.id(), other.id()).ok()?;
        let base_blob = blob_at(&self.repository.find_commit(base).ok()?, file.path)?;
        let base_text = self.text_of(base_blob, file, budget)?;
        let mut found = Vec::new();
        let (mut at, mut at_blob) = (other.clone(), other_blob);
        while at_blob != base_blob && at.id() != base {
            let (parents, same) = self.parents(&at, at_blob, file.path).filter(|_| budget.visit())?;
            if let Some(same) = same {
                at = same;
                continue;
            }
            let text = self.text_of(at_blob, file, budget)?;
            let of = FileCommit { commit: describe(&at), blob: at_blob.to_string() };
            found.push(FileVersion { of, text, merge_base: None, merged: Vec::new() });
            if found.len() >= MAX_ARRIVED_COMMITS {
                return None;
            }
            at = parents.into_iter().next()?;
            at_blob = blob_at(&at, file.path)?;
        }
        found.reverse();
        Some((base_text, found))
    }

    /// Returns whether HEAD moved at or after a time in seconds since 1970 between commits with different versions of
    /// a file. What another program only writes, or takes back, moves nothing.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn has_head_moved(&self, path: &str, since: i64) -> Result<bool, VcsError> {
        let inside = self.repository_path(path)?;
        let moves = self.repository.reflog("HEAD")?;
        let blob = |id: Oid| Some(blob_at(&self.repository.find_commit(id).ok()?, Path::new(&inside)));
        let recent = moves.iter().take(MAX_HEAD_MOVES).take_while(|one| one.committer().when().seconds() >= since);
        Ok(recent.into_iter().any(|one| match (blob(one.id_old()), blob(one.id_new())) {
            (Some(old), Some(new)) => old != new,
            (None, _) | (_, None) => true, // the commit is gone
        }))
    }

    /// Returns whether Git is just changing the folder, so that HEAD may soon be the commit of a file's present text,
    /// or has just stopped at a conflict in it.
    pub fn is_head_about_to_move(&self, path: &str, now: &str) -> bool {
        let age = |name: &str| {
            let meta = std::fs::metadata(self.repository.path().join(name)).ok()?;
            meta.modified().ok()?.elapsed().ok().or(Some(Duration::ZERO)) // the clock was set back
        };
        if age("index.lock").is_some_and(|age| age < MAX_LOCK_AGE) {
            return true;
        }
        if age("index").is_none_or(|age| age > MAX_HEAD_DELAY) {
            return false;
        }
        let Ok(inside) = self.repository_path(path) else { return false };
        let file = ReadFile { path: Path::new(&inside), has_crlf: now.contains("\r\n") };
        let Ok(index) = self.repository.index() else { return false };
        // Git's markers are being taken out of a note in conflict.
        if index.get_path(file.path, 2).is_some() {
            return true;
        }
        let staged = index.get_path(file.path, 0).map(|entry| entry.id);
        let text = staged.and_then(|blob| self.text_of(blob, &file, &mut WalkBudget::new(MAX_TEXT_BYTES)));
        text.is_some_and(|text| text == now)
    }

    /// Returns the commits that changed a file, newest first, at most `limit`, and whether the search for them came to
    /// an end in time. The file is followed where it was renamed.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn file_log(&self, path: &str, limit: usize, time: Duration) -> Result<(Vec<FileCommit>, bool), VcsError> {
        let inside = self.repository_path(path)?;
        let mut found = Vec::new();
        let mut visit = |commit: &git2::Commit<'_>, blob: Option<Oid>| {
            found.extend(blob.map(|blob| FileCommit { commit: describe(commit), blob: blob.to_string() }));
            found.len() < limit
        };
        let range = self.commit_range(&[])?;
        let is_complete = self.walk_file(Path::new(&inside), &range, Instant::now() + time, &mut visit)?;
        Ok((found, is_complete))
    }

    /// Returns a commit by its name, such as a hash, a branch or `HEAD~2`, and a file's text in it.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if there's no such commit, or if it has no such file that is UTF-8 text.
    pub fn file_at(&self, name: &str, path: &str) -> Result<(FileCommit, String), VcsError> {
        let refuse = |why: String| VcsError::Refused(why);
        let unknown = || refuse(format!("no such commit, or more than one: {name}"));
        let object = self.repository.revparse_single(name).map_err(|_| unknown())?;
        let object = object.peel(ObjectType::Commit).map_err(|_| unknown())?;
        let commit = self.repository.find_commit(object.id())?;
        let inside = self.repository_path(path)?;
        // The file may have had another name.
        let old_blob = || blob_at(&commit, &self.old_path(Path::new(&inside), &commit)?);
        let blob = blob_at(&commit, Path::new(&inside)).or_else(old_blob);
        let blob = blob.ok_or_else(|| refuse(format!("the commit {name} has no file {path}")))?;
        let file = std::fs::read(self.top.join(&inside)).unwrap_or_default();
        let file = ReadFile { path: Path::new(&inside), has_crlf: file.windows(2).any(|two| two == b"\r\n") };
        if !self.repository.odb()?.exists(blob) {
            return Err(refuse(MISSING_OBJECT.to_owned()));
        }
        let text = self.text_of(blob, &file, &mut WalkBudget::new(MAX_TEXT_BYTES));
        let text = text.ok_or_else(|| refuse(format!("in the commit {name}, it isn't UTF-8 text: {path}")))?;
        Ok((FileCommit { commit: describe(&commit), blob: blob.to_string() }, text))
    }

    /// Returns the path that a file of the last commit had in an older one.
    fn old_path(&self, path: &Path, commit: &git2::Commit<'_>) -> Option<PathBuf> {
        let head = self.head_commit().ok()??;
        blob_at(&head, path)?;
        let mut budget = WalkBudget::new(0);
        let mut seen = HashSet::from([head.id()]);
        let mut next = BinaryHeap::from([(head.time().seconds(), head.id(), path.to_owned())]);
        while let Some((_, id, path)) = next.pop() {
            if id == commit.id() {
                return Some(path);
            }
            if !budget.visit() {
                return None;
            }
            let Ok(at) = self.repository.find_commit(id) else { continue };
            for parent in at.parents() {
                if seen.insert(parent.id()) {
                    let path = self.path_in_parent(&path, &at, &parent, Some(budget.until));
                    next.push((parent.time().seconds(), parent.id(), path));
                }
            }
        }
        None
    }

    pub(crate) fn head_commit(&self) -> Result<Option<git2::Commit<'_>>, VcsError> {
        match self.repository.head() {
            Ok(head) => Ok(Some(head.peel_to_commit()?)),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a commit's parents, and the first of them in which the file is the same; `None` if a parent is missing.
    #[allow(clippy::type_complexity, reason = "two results of one look at the parents")]
    fn parents<'a>(
        &'a self,
        of: &git2::Commit<'a>,
        blob: Oid,
        path: &Path,
    ) -> Option<(Vec<git2::Commit<'a>>, Option<git2::Commit<'a>>)> {
        let parents: Vec<git2::Commit<'a>> =
            of.parent_ids().map(|id| self.repository.find_commit(id).ok()).collect::<Option<_>>()?;
        let same = parents.iter().find(|parent| blob_at(parent, path) == Some(blob)).cloned();
        Some((parents, same))
    }

    /// Returns a text as it stands in the folder; `None` if it isn't UTF-8, or too large.
    fn text_of(&self, blob: Oid, file: &ReadFile<'_>, budget: &mut WalkBudget) -> Option<String> {
        let (size, kind) = self.repository.odb().ok()?.read_header(blob).ok()?;
        if kind != ObjectType::Blob || size > budget.bytes {
            return None;
        }
        budget.bytes -= size;
        let blob = self.repository.find_blob(blob).ok()?;
        let text = std::str::from_utf8(blob.content()).ok()?;
        // Git keeps LF where it's told to write CRLF (core.autocrlf, eol=crlf).
        Some(if file.has_crlf && !text.contains('\r') { text.replace('\n', "\r\n") } else { text.to_owned() })
    }
}

/// Returns whether a folder, or one above it, has a repository.
pub fn is_in_repository(folder: &Path) -> bool {
    folder.ancestors().any(|above| above.join(".git").exists())
}

/// Returns the folder of Git's own files for the repository or worktree that has a folder.
pub fn git_folder(folder: &Path) -> Option<PathBuf> {
    let mut named = folder.ancestors().map(|above| above.join(".git"));
    let (git, meta) = named.find_map(|git| git.symlink_metadata().ok().map(|meta| (git, meta)))?;
    // In a worktree, a file names the folder.
    match meta.is_file() && meta.len() < MAX_GIT_FILE_BYTES {
        true => std::fs::read_to_string(&git).ok().and_then(|text| {
            let path = text.strip_prefix("gitdir:")?.trim().to_owned();
            Some(git.parent()?.join(path))
        }),
        false => Some(git),
    }
}

/// Returns whether Git holds the lock of the index of a folder's repository, as it does while it writes files. A lock
/// that a killed Git has left doesn't count for long.
pub fn is_index_locked(folder: &Path) -> bool {
    let written = git_folder(folder).and_then(|own| own.join("index.lock").symlink_metadata().ok()?.modified().ok());
    written.is_some_and(|time| time.elapsed().is_ok_and(|age| age < MAX_LOCK_AGE))
}

/// Returns whether a text is a file's content with this hash, with LF or CRLF.
pub fn is_content(blob: &str, text: &str) -> bool {
    let is_same =
        |text: &str| Oid::hash_object(ObjectType::Blob, text.as_bytes()).is_ok_and(|id| id.to_string() == blob);
    is_same(text) || text.contains("\r\n") && is_same(&text.replace("\r\n", "\n"))
}

/// Returns the hash of a file's content in a commit.
pub(crate) fn blob_at(commit: &git2::Commit<'_>, path: &Path) -> Option<Oid> {
    let entry = commit.tree().ok()?.get_path(path).ok()?;
    (entry.kind() == Some(ObjectType::Blob)).then(|| entry.id())
}
