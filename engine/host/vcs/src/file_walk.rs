//! A walk over the commits that changed a file, through all its names.

use crate::file_history::blob_at;
use crate::reads::describe;
use crate::renames::NewFile;
use crate::{Commit, CommitRange, RepositoryFolder, VcsError};
use git2::Oid;
use std::collections::{BinaryHeap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

impl RepositoryFolder {
    /// Returns the commits of a range that changed a file, also those that deleted it: newest first, at most `limit`.
    /// Also returns whether the search for them came to an end in time.
    ///
    /// As in `git log FILE`, a merge is in it only if the file differs from that of all its parents. As in `git log
    /// --follow`, the file is followed where it was renamed.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder, and libgit2's error.
    pub fn file_commits(
        &self,
        path: &str,
        range: &CommitRange,
        limit: usize,
        time: Duration,
    ) -> Result<(Vec<Commit>, bool), VcsError> {
        let inside = self.repository_path(path)?;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok((found, true));
        }
        let mut visit = |commit: &git2::Commit<'_>, _: Option<Oid>| {
            found.push(describe(commit));
            found.len() < limit
        };
        let is_complete = self.walk_file(Path::new(&inside), range, Instant::now() + time, &mut visit)?;
        Ok((found, is_complete))
    }

    /// Visits the commits of a range that changed a file, newest first. Returns whether the walk ended in time.
    ///
    /// `visit` gets a commit with the hash of the file's content, which is `None` if the commit deleted it, and returns
    /// whether to go on.
    pub(crate) fn walk_file(
        &self,
        path: &Path,
        range: &CommitRange,
        until: Instant,
        visit: &mut dyn FnMut(&git2::Commit<'_>, Option<Oid>) -> bool,
    ) -> Result<bool, VcsError> {
        let (included, is_in_time) = self.included_commits(range, until)?;
        if !is_in_time {
            return Ok(false);
        }
        let is_included = |id: &Oid| included.as_ref().is_none_or(|included| included.contains(id));
        let (mut next, mut seen) = (BinaryHeap::new(), HashSet::new());
        let first: Rc<Path> = Rc::from(path);
        for tip in range.tips.iter().filter(|tip| is_included(tip)) {
            if seen.insert((*tip, first.clone())) {
                next.push((self.repository.find_commit(*tip)?.time().seconds(), *tip, first.clone()));
            }
        }
        while let Some((_, id, path)) = next.pop() {
            if Instant::now() >= until {
                return Ok(false);
            }
            // The oldest commits of a shallow clone have parents that aren't there.
            let Ok(commit) = self.repository.find_commit(id) else { continue };
            let blob = blob_at(&commit, &path);
            let parents: Vec<git2::Commit<'_>> = commit.parents().collect();
            let same = parents.iter().position(|parent| blob_at(parent, &path) == blob);
            let is_change = same.is_none() && (blob.is_some() || !parents.is_empty());
            if is_change && !visit(&commit, blob) {
                return Ok(true);
            }
            for (at, parent) in parents.iter().enumerate() {
                if same.is_some_and(|same| same != at) || !is_included(&parent.id()) {
                    continue;
                }
                let path: Rc<Path> = match same.is_none() && blob.is_some() && blob_at(parent, &path).is_none() {
                    true => Rc::from(self.path_in_parent(&path, &commit, parent, Some(until))),
                    false => path.clone(),
                };
                if seen.insert((parent.id(), path.clone())) {
                    next.push((parent.time().seconds(), parent.id(), path));
                }
            }
        }
        Ok(true)
    }

    /// Returns the path that a commit's file has in a parent: another one if it was renamed in between. What isn't
    /// known, as in a clone without old contents, is no rename.
    pub(crate) fn path_in_parent(
        &self,
        path: &Path,
        commit: &git2::Commit<'_>,
        parent: &git2::Commit<'_>,
        until: Option<Instant>,
    ) -> PathBuf {
        let same = || path.to_owned();
        let Some(blob) = blob_at(commit, path) else { return same() };
        if blob_at(parent, path).is_some() {
            return same();
        }
        let (Ok(old), Ok(new)) = (parent.tree(), commit.tree()) else { return same() };
        let file = NewFile { path, blob, content: None };
        self.find_old_path(&old, &new, &file, until).ok().flatten().unwrap_or_else(same)
    }
}
