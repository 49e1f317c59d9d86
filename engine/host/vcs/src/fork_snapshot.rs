//! The commit that a fork's branch begins with: what wasn't committed in the project. It belongs to the fork alone.

use crate::errors::VcsError;
use crate::racy_entries::write_index;
use crate::repository_folder::RepositoryFolder;
use crate::tool_text::short_id;
use git2::{Index, Oid, Revwalk, Signature};
use std::path::Path;

/// Begins the last line of the message of a commit that keeps what wasn't committed when a fork was made. The name of
/// the fork follows.
pub const FORK_SNAPSHOT_TRAILER: &str = "Tracebook-Fork-Snapshot: ";
/// Maximum number of commits that are searched for such a commit.
const MAX_SEARCHED_COMMITS: usize = 10_000;

impl RepositoryFolder {
    /// Commits all changed files of the folder on the current branch. No hook runs, and nothing is signed. Returns the
    /// commit; `None` if nothing has changed.
    ///
    /// `stage_filtered` gets the paths of files whose bytes go through a filter, which only Git runs. Those that it
    /// doesn't stage stay changed, and so does what can't be committed, such as files that are too large.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub fn commit_snapshot(
        &self,
        message: &str,
        stage_filtered: &mut dyn FnMut(&[String]),
    ) -> Result<Option<String>, VcsError> {
        let (mut plain, mut filtered, mut to_stage) = (Vec::new(), Vec::new(), Vec::new());
        for (path, _) in self.changed_files()? {
            match self.filter_of(&path)?.filter(|_| self.top.join(&path).symlink_metadata().is_ok()) {
                None => plain.push(path),
                Some((_, false)) => {} // Git would take its bytes as they are
                Some((_, true)) => {
                    to_stage.push(self.folder_path(&path).to_owned());
                    filtered.push(path);
                }
            }
        }
        if !to_stage.is_empty() {
            stage_filtered(&to_stage);
        }
        let Some(head) = self.head_tree()? else { return Ok(None) };
        let mut tree = Index::new()?;
        tree.read_tree(&head)?;
        let mut index = self.repository.index()?;
        index.read(true)?; // Git may have written it
        for path in &plain {
            match self.stage_file(path, Some(&mut tree), &mut index) {
                Ok(()) | Err(VcsError::Refused(_) | VcsError::Filtered { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for path in &filtered {
            if let Some(staged) = index.get_path(Path::new(path), 0) {
                tree.add(&staged)?;
            }
        }
        let written = tree.write_tree_to(&self.repository)?;
        write_index(&self.repository, &mut index)?;
        if written == head.id() {
            return Ok(None);
        }
        let signature = match self.repository.signature() {
            Ok(signature) => signature,
            // Git doesn't know the user, who needn't be known for what stays here.
            Err(_) => Signature::now("Tracebook", "tracebook@localhost")?,
        };
        let parent = self.repository.head()?.peel_to_commit()?;
        let written = self.repository.find_tree(written)?;
        let id = self.repository.commit(Some("HEAD"), &signature, &signature, message, &written, &[&parent])?;
        Ok(Some(id.to_string()))
    }

    /// Refuses a push that would take along what wasn't committed when a fork was made.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] with the commit and the fork.
    pub fn refuse_pushed_snapshot(&self) -> Result<(), VcsError> {
        if self.head_tree()?.is_none() {
            return Ok(());
        }
        let mut walk = self.repository.revwalk()?;
        walk.push_head()?;
        walk.hide_glob("refs/remotes/*")?;
        match self.find_snapshot(walk)? {
            Some((id, fork)) => Err(VcsError::Refused(format!(
                "commit {id} of this branch is what wasn't committed when the fork {fork} began, so it isn't pushed; \
                 adopt the fork's changes, and push from its project: `tracebook forks adopt {fork}`; if you have \
                 merged it on purpose, push with Git itself"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a merge of a branch that would take along what wasn't committed when a fork was made.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] with the commit and the fork.
    pub fn refuse_merged_snapshot(&self, branch: &str) -> Result<(), VcsError> {
        let found = self.repository.revparse_single(branch).and_then(|object| object.peel_to_commit());
        let Ok(commit) = found else { return Ok(()) }; // Git says what is wrong with the name
        let mut walk = self.repository.revwalk()?;
        walk.push(commit.id())?;
        if self.head_tree()?.is_some() {
            walk.hide_head()?;
        }
        match self.find_snapshot(walk)? {
            Some((id, fork)) => Err(VcsError::Refused(format!(
                "commit {id} of {branch} is what wasn't committed when the fork {fork} began, so it isn't merged; \
                 adopt the fork's changes instead: `tracebook forks adopt {fork}`"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the short hash of the newest such commit and the name of its fork.
    fn find_snapshot(&self, walk: Revwalk<'_>) -> Result<Option<(String, String)>, VcsError> {
        for id in walk.take(MAX_SEARCHED_COMMITS) {
            let id: Oid = id?;
            let commit = self.repository.find_commit(id)?;
            let message = String::from_utf8_lossy(commit.message_bytes());
            if let Some(fork) = message.lines().rev().find_map(|line| line.strip_prefix(FORK_SNAPSHOT_TRAILER)) {
                return Ok(Some((short_id(&id.to_string()).to_owned(), fork.trim().to_owned())));
            }
        }
        Ok(None)
    }
}
