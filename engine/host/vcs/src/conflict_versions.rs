//! The versions of notes in conflict, with what is known of the commits that they are from: a note's document may know
//! them, too.

use crate::conflicts::{MAX_CONFLICT_FILE_BYTES, MAX_CONFLICT_FILES, conflict_path};
use crate::errors::VcsError;
use crate::file_history::blob_at;
use crate::note_choices::{STOP_REFERENCES, is_note_path};
use crate::repository_folder::RepositoryFolder;
use git2::{Commit, IndexConflict, Oid, RepositoryState};
use std::path::Path;

/// Maximum number of commits that are passed to find the one that changed a note.
const MAX_PASSED_COMMITS: usize = 1_000;

/// A version of a note in conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictVersion {
    /// The text.
    pub text: String,
    /// The heads that are recorded for it, as hexadecimal numbers separated by commas.
    pub heads: Option<String>,
    /// When it was committed, in seconds since 1970; the largest number if the commit isn't known.
    pub time: i64,
}

/// The versions of a note in conflict that both sides have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictVersions {
    /// Path relative to the folder, with `/` separators.
    pub path: String,
    /// Path in the repository.
    pub name: String,
    /// The common version; `None` if both sides have added the note.
    pub base: Option<ConflictVersion>,
    /// Git's ours.
    pub ours: ConflictVersion,
    /// Git's theirs.
    pub theirs: ConflictVersion,
}

/// The commits of the common version, ours and theirs.
struct StoppedCommits<'a> {
    base: Option<Commit<'a>>,
    ours: Option<Commit<'a>>,
    theirs: Option<Commit<'a>>,
}

impl RepositoryFolder {
    /// Returns the versions of the folder's notes in conflict, and the number of all files in conflict. Leaves out
    /// notes that aren't text on both sides, and those whose bytes Git converts.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn conflict_versions(&self) -> Result<(Vec<ConflictVersions>, usize), VcsError> {
        let commits = self.stopped_commits();
        let (mut found, mut count) = (Vec::new(), 0);
        for conflict in self.repository.index()?.conflicts()? {
            let conflict = conflict?;
            count += 1;
            let is_wanted = |path: &String| self.has_path(path) && is_note_path(path);
            let Some(inside) = conflict_path(&conflict).filter(is_wanted) else { continue };
            if found.len() < MAX_CONFLICT_FILES && !self.is_converted(&inside)? {
                found.extend(self.versions_of(&conflict, &inside, &commits)?);
            }
        }
        Ok((found, count))
    }

    fn versions_of(
        &self,
        conflict: &IndexConflict,
        inside: &str,
        commits: &StoppedCommits<'_>,
    ) -> Result<Option<ConflictVersions>, VcsError> {
        let (Ok(texts), Some(our), Some(their)) = (self.side_texts(conflict)?, &conflict.our, &conflict.their) else {
            return Ok(None);
        };
        let version = |text: Vec<u8>, blob: Oid, commit: &Option<Commit<'_>>| {
            Some(self.committed_version(String::from_utf8(text).ok()?, blob, commit.as_ref(), inside))
        };
        let base = match &conflict.ancestor {
            None => None,
            Some(entry) if self.repository.odb()?.read_header(entry.id)?.0 as u64 > MAX_CONFLICT_FILE_BYTES => {
                return Ok(None);
            }
            Some(entry) => {
                let bytes = self.repository.find_blob(entry.id)?.content().to_vec();
                let Some(base) = version(bytes, entry.id, &commits.base) else { return Ok(None) };
                Some(base)
            }
        };
        let sides = (version(texts.ours, our.id, &commits.ours), version(texts.theirs, their.id, &commits.theirs));
        let (Some(ours), Some(theirs)) = sides else { return Ok(None) };
        let (path, name) = (self.folder_path(inside).to_owned(), inside.to_owned());
        Ok(Some(ConflictVersions { path, name, base, ours, theirs }))
    }

    /// Describes a version by the commit that changed the note to it, which is this one or an earlier one.
    fn committed_version(&self, text: String, blob: Oid, tip: Option<&Commit<'_>>, inside: &str) -> ConflictVersion {
        let has_it = |commit: &Commit<'_>| blob_at(commit, Path::new(inside)) == Some(blob);
        let Some(mut commit) = tip.filter(|commit| has_it(commit)).cloned() else {
            return ConflictVersion { text, heads: None, time: i64::MAX };
        };
        for _ in 0..MAX_PASSED_COMMITS {
            let Some(parent) = commit.parents().find(has_it) else { break };
            commit = parent;
        }
        let heads = self.recorded_heads(&commit.id().to_string(), self.folder_path(inside));
        ConflictVersion { text, heads, time: commit.time().seconds() }
    }

    /// Returns the commits that a merge, rebase, cherry-pick, revert or stash has stopped at. They may have other
    /// versions of a note than those in the index.
    fn stopped_commits(&self) -> StoppedCommits<'_> {
        let commit = |id: Oid| self.repository.find_commit(id).ok();
        let named = |name: &str| self.repository.refname_to_id(name).ok().and_then(commit);
        let ours = named("HEAD");
        let theirs = STOP_REFERENCES.into_iter().chain(["refs/stash"]).find_map(named);
        let base = match (&ours, &theirs) {
            (Some(ours), Some(theirs)) if self.repository.state() == RepositoryState::Merge => {
                self.repository.merge_base(ours.id(), theirs.id()).ok().and_then(commit)
            }
            (_, theirs) => theirs.as_ref().and_then(|theirs| theirs.parent(0).ok()),
        };
        StoppedCommits { base, ours, theirs }
    }
}
