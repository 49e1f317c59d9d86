//! What differs between two commits, or between a commit and the files as they are now.

use crate::changes::is_left_out;
use crate::diff_text::{MAX_DIFF_BYTES, format_some};
use crate::errors::VcsError;
use crate::hunks::{FileHunk, read_hunks};
use crate::ignore_rules::follow_rules;
use crate::lfs_pointers::find_unchanged;
use crate::repository_folder::RepositoryFolder;
use crate::revisions::split_range;
use git2::{Delta, Diff, DiffDelta, DiffOptions, Oid, Patch, Tree};
use std::path::Path;

/// Maximum number of files whose hunks are listed at once.
const MAX_HUNK_FILES: usize = 200;

/// Returns whether a file's change is listed.
type ChangeFilter = Box<dyn Fn(&DiffDelta<'_>) -> bool>;

/// Which versions a diff compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionDiff {
    old: Oid,
    new: ComparedSide,
}

/// The newer side of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparedSide {
    Commit(Oid),
    Index,
    WorkingTree,
}

/// What differs between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedVersions {
    /// A unified diff, in which renamed files are marked.
    pub text: String,
    /// Whether the diff is complete.
    pub is_complete: bool,
    /// The hunks of files by path; empty if nobody wants them.
    pub files: Vec<(String, Vec<FileHunk>)>,
}

impl RepositoryFolder {
    /// Reads revisions as `git diff` does: `A` for what has changed since a commit, `A B` or `A..B` for what differs
    /// between two, and `A...B` for what has changed in B since it parted from A. Returns `None` if there are none.
    ///
    /// `is_staged`: a single commit is compared with what is staged.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if one names no commit, or if they are too many.
    pub fn revision_diff(&self, revisions: &[String], is_staged: bool) -> Result<Option<RevisionDiff>, VcsError> {
        let refuse = |why: &str| Err(VcsError::Refused(why.to_owned()));
        let id = |name: &str| -> Result<Oid, VcsError> { Ok(self.find_revision(name)?.id()) };
        let [first, rest @ ..] = revisions else { return Ok(None) };
        let (old, new) = match (split_range(first), rest) {
            (Some((left, right, false)), []) => (id(left)?, Some(id(right)?)),
            (Some((left, right, true)), []) => {
                let new = id(right)?;
                let Some(base) = self.common_ancestors(id(left)?, new)?.first().copied() else {
                    return refuse(&format!("{left} and {right} have no commit in common"));
                };
                (base, Some(new))
            }
            (None, []) => (id(first)?, None),
            (None, [second]) if split_range(second).is_none() => (id(first)?, Some(id(second)?)),
            _ => return refuse("a diff compares two commits, or one with the files as they are now"),
        };
        let new = match (new, is_staged) {
            (Some(_), true) => return refuse("what is staged can be compared with one commit only"),
            (Some(new), false) => ComparedSide::Commit(new),
            (None, true) => ComparedSide::Index,
            (None, false) => ComparedSide::WorkingTree,
        };
        Ok(Some(RevisionDiff { old, new }))
    }

    /// Compares two versions: in files and folders, or in all of the folder if none are named.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if a path leads out of the folder, or is in neither version.
    pub fn compare_versions(
        &self,
        what: &RevisionDiff,
        paths: &[String],
        has_hunks: bool,
    ) -> Result<ComparedVersions, VcsError> {
        let old = self.repository.find_commit(what.old)?.tree()?;
        let new = match what.new {
            ComparedSide::Commit(id) => Some(self.repository.find_commit(id)?.tree()?),
            ComparedSide::Index | ComparedSide::WorkingTree => None,
        };
        let mut options = self.diff_options(paths)?;
        self.refuse_unknown(&old, new.as_ref(), paths)?;
        options.indent_heuristic(true);
        let everything = || -> ChangeFilter { Box::new(|_: &DiffDelta<'_>| true) };
        let (mut diff, is_shown) = match what.new {
            ComparedSide::Commit(_) => {
                let diff = self.repository.diff_tree_to_tree(Some(&old), new.as_ref(), Some(&mut options))?;
                (diff, everything())
            }
            ComparedSide::Index => {
                let diff = self.repository.diff_tree_to_index(Some(&old), None, Some(&mut options))?;
                (diff, everything())
            }
            ComparedSide::WorkingTree => {
                let diff = self.working_tree_diff(Some(&old), &mut options)?;
                let is_shown = self.working_tree_filter(&diff)?;
                (diff, is_shown)
            }
        };
        self.mark_renames(&mut diff)?;
        let (text, is_complete) = format_some(&diff, &*is_shown)?;
        let files = if has_hunks { self.compared_hunks(&diff, &*is_shown)? } else { Vec::new() };
        Ok(ComparedVersions { text, is_complete, files })
    }

    /// Returns the hunks of a diff's files. Files without any, such as pictures, are left out.
    fn compared_hunks(
        &self,
        diff: &Diff<'_>,
        is_shown: &dyn Fn(&DiffDelta<'_>) -> bool,
    ) -> Result<Vec<(String, Vec<FileHunk>)>, VcsError> {
        let mut files = Vec::new();
        let mut bytes = 0_usize;
        for at in 0..diff.deltas().len() {
            if files.len() >= MAX_HUNK_FILES || bytes > MAX_DIFF_BYTES {
                break;
            }
            let Some(delta) = diff.get_delta(at) else { continue };
            if delta.status() == Delta::Unreadable || !is_shown(&delta) {
                continue;
            }
            let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()).unwrap_or_default();
            let path = String::from_utf8_lossy(path).into_owned();
            let Some(patch) = Patch::from_diff(diff, at)? else { continue };
            let hunks = read_hunks(&patch)?;
            if !hunks.is_empty() {
                bytes += hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.text.len()).sum::<usize>();
                files.push((self.folder_path(&path).to_owned(), hunks));
            }
        }
        Ok(files)
    }

    fn refuse_unknown(&self, old: &Tree<'_>, new: Option<&Tree<'_>>, paths: &[String]) -> Result<(), VcsError> {
        for path in paths {
            let inside = self.repository_path(path)?;
            let inside = Path::new(&inside);
            let is_committed = old.get_path(inside).is_ok() || new.is_some_and(|new| new.get_path(inside).is_ok());
            if !is_committed && self.is_known_folder(path).is_err() {
                return Err(VcsError::Missing(format!("no file or folder {path}, neither in these commits nor here")));
            }
        }
        Ok(())
    }

    /// Returns options for a diff of files and folders, or of all of the folder if none are named.
    pub(crate) fn diff_options(&self, paths: &[String]) -> Result<DiffOptions, VcsError> {
        let mut options = DiffOptions::new();
        options.disable_pathspec_match(true).max_size(10 << 20);
        let mut within = paths.iter().map(|path| self.repository_path(path)).collect::<Result<Vec<_>, _>>()?;
        if within.is_empty() {
            within.push(self.prefix.clone());
        }
        // All of the repository is limited by nothing.
        if within.iter().all(|path| !path.is_empty()) {
            for path in &within {
                options.pathspec(path);
            }
        }
        Ok(options)
    }

    /// Compares a commit's files with those of the folder, also with new ones.
    pub(crate) fn working_tree_diff(
        &self,
        tree: Option<&Tree<'_>>,
        options: &mut DiffOptions,
    ) -> Result<Diff<'_>, VcsError> {
        options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
        options.ignore_submodules(true);
        follow_rules(&self.repository, &self.prefix)?;
        Ok(self.repository.diff_tree_to_workdir_with_index(tree, Some(options))?)
    }

    /// Returns which changes between a commit and the folder are listed: not those of files that a sparse checkout
    /// leaves out, and of files in Git LFS that are as their pointers say.
    pub(crate) fn working_tree_filter(&self, diff: &Diff<'_>) -> Result<ChangeFilter, VcsError> {
        let index = self.repository.index()?;
        let same = find_unchanged(&self.repository, &index, diff);
        Ok(Box::new(move |delta: &DiffDelta<'_>| {
            let Some(path) = delta.old_file().path() else { return true };
            let is_gone = delta.status() == Delta::Deleted;
            !(is_gone && is_left_out(&index, path) || same.contains(path))
        }))
    }
}
