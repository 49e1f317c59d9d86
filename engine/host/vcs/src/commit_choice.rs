//! Which files a commit takes, and whether Git's settings want it to be signed.

use crate::errors::VcsError;
use crate::repository_folder::{MAX_COMMIT_MESSAGE_BYTES, RepositoryFolder};
use git2::{ErrorCode, RepositoryState, Status};

/// The files that a commit takes, by their paths in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitChoice {
    /// All of them.
    pub files: Vec<String>,
    /// Those that Git doesn't follow yet.
    pub new: Vec<String>,
}

impl RepositoryFolder {
    /// Returns whether Git's settings want commits to be signed. Signing runs a program, so only Git itself does it.
    ///
    /// # Errors
    /// Returns libgit2's error, such as for a value that is neither true nor false.
    pub fn signs_commits(&self) -> Result<bool, VcsError> {
        match self.repository.config()?.get_bool("commit.gpgsign") {
            Ok(is_set) => Ok(is_set),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the files that a commit of the named files would take, or of all changed files in the folder if none are
    /// named, for a commit by Git itself.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] as [`RepositoryFolder::commit`] does.
    pub fn choose_for_commit(&self, message: &str, files: &[String]) -> Result<CommitChoice, VcsError> {
        self.check_commit(message)?;
        let chosen = self.chosen_files(files)?;
        if chosen.is_empty() {
            return Err(VcsError::Refused("nothing has changed since the last commit".to_owned()));
        }
        let mut choice = CommitChoice::default();
        for (path, status) in chosen {
            self.check_filter(&path)?;
            let path = self.folder_path(&path).to_owned();
            if status.contains(Status::WT_NEW) {
                choice.new.push(path.clone());
            }
            choice.files.push(path);
        }
        Ok(choice)
    }

    /// Refuses a file whose filter Git's settings don't have here.
    pub(crate) fn check_filter(&self, path: &str) -> Result<(), VcsError> {
        let is_there = self.top.join(path).symlink_metadata().is_ok();
        if is_there {
            self.required_filter(path)?;
        }
        Ok(())
    }

    /// Refuses a commit with this message, or one in the middle of something else.
    pub(crate) fn check_commit(&self, message: &str) -> Result<(), VcsError> {
        let refuse = |why: String| Err(VcsError::Refused(why));
        let message = message.trim();
        if message.is_empty() || message.len() > MAX_COMMIT_MESSAGE_BYTES {
            return refuse(format!("a commit wants a message of at most {} kB", MAX_COMMIT_MESSAGE_BYTES >> 10));
        }
        self.check_settled()
    }

    /// Refuses a change of the index in the middle of a merge or the like.
    pub(crate) fn check_settled(&self) -> Result<(), VcsError> {
        let refuse = |why: &str| Err(VcsError::Refused(why.to_owned()));
        if self.repository.state() != RepositoryState::Clean {
            return refuse("a merge, rebase or the like is under way in this repository; end it first");
        }
        // A stash that was applied can leave conflicts, too.
        if self.repository.index()?.has_conflicts() {
            return refuse("files are in conflict in this repository; resolve them first");
        }
        Ok(())
    }

    /// Returns the changed files among the named ones, or all in the folder if none are named, by their paths in the
    /// repository.
    pub(crate) fn chosen_files(&self, files: &[String]) -> Result<Vec<(String, Status)>, VcsError> {
        let changed = self.changed_files()?;
        if files.is_empty() {
            return Ok(changed);
        }
        let mut chosen = Vec::new();
        for file in files {
            let path = self.repository_path(file)?;
            let below = format!("{path}/");
            let before = chosen.len();
            let fits = |(known, _): &&(String, Status)| *known == path || known.starts_with(&below);
            chosen.extend(changed.iter().filter(fits).cloned());
            if chosen.len() == before {
                self.is_known_folder(file)?;
                return Err(VcsError::Refused(format!("nothing has changed there, or git ignores it: {file}")));
            }
        }
        chosen.sort_by(|one, other| one.0.cmp(&other.0));
        chosen.dedup_by(|one, other| one.0 == other.0);
        Ok(chosen)
    }
}
