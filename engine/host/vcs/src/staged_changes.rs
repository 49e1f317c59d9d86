//! Stages files in process, and commits exactly what is staged.

use crate::racy_entries::write_index;
use crate::{Commit, RepositoryFolder, VcsError};
use git2::{ErrorCode, Oid, Signature, Status};

impl RepositoryFolder {
    /// Stages the current content of the named files, or of all changed files in the folder if none are named. Returns
    /// their paths.
    ///
    /// # Errors
    /// Returns [`VcsError::Filtered`] if only Git itself can stage a file, and [`VcsError::Refused`] if nothing has
    /// changed, a file is invalid or outside the folder, or files are in conflict. Nothing is staged then.
    pub fn stage(&self, files: &[String]) -> Result<Vec<String>, VcsError> {
        let chosen = self.choose_to_stage(files)?;
        let mut index = self.repository.index()?;
        for file in &chosen {
            self.stage_file(&self.repository_path(file)?, None, &mut index)?;
        }
        write_index(&self.repository, &mut index)?;
        Ok(chosen)
    }

    /// Returns the paths of the changed files among the named ones, or of all in the folder if none are named, for
    /// staging by Git itself.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] as [`RepositoryFolder::stage`] does.
    pub fn choose_to_stage(&self, files: &[String]) -> Result<Vec<String>, VcsError> {
        // Staging a file in conflict would make its markers text.
        self.check_settled()?;
        let mut chosen = Vec::new();
        for (path, _) in self.chosen_files(files)? {
            self.check_filter(&path)?;
            chosen.push(self.folder_path(&path).to_owned());
        }
        match chosen.is_empty() {
            true => Err(VcsError::Refused("nothing has changed since the last commit".to_owned())),
            false => Ok(chosen),
        }
    }

    /// Commits what is staged. Returns the commit and its files.
    ///
    /// # Errors
    /// Returns an error as [`RepositoryFolder::commit`] does, and [`VcsError::Refused`] if nothing is staged, or files
    /// outside of the folder are.
    pub fn commit_staged(&self, message: &str) -> Result<(Commit, Vec<String>), VcsError> {
        let files = self.staged_files(message)?;
        let signature = self.author()?;
        let tree = self.repository.index()?.write_tree()?;
        Ok((self.write_commit(&signature, message.trim(), tree)?, files))
    }

    /// Returns the paths of the staged files, for a commit with this message.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] as [`RepositoryFolder::commit_staged`] does.
    pub fn staged_files(&self, message: &str) -> Result<Vec<String>, VcsError> {
        let staged = Status::INDEX_NEW
            | Status::INDEX_MODIFIED
            | Status::INDEX_DELETED
            | Status::INDEX_RENAMED
            | Status::INDEX_TYPECHANGE;
        self.check_commit(message)?;
        self.refuse_staged_outside()?;
        let differing = self.differences(true)?.into_iter().filter(|(_, (_, status))| status.intersects(staged));
        let files: Vec<String> = differing.map(|(path, _)| self.folder_path(&path).to_owned()).collect();
        match files.is_empty() {
            true => Err(VcsError::Refused("nothing is staged".to_owned())),
            false => Ok(files),
        }
    }

    /// Returns the user as the author of a commit.
    pub(crate) fn author(&self) -> Result<Signature<'static>, VcsError> {
        self.repository.signature().map_err(|error| match error.code() {
            ErrorCode::NotFound => VcsError::Nobody,
            _ => VcsError::from(error),
        })
    }

    /// Commits a tree on the current branch.
    pub(crate) fn write_commit(&self, signature: &Signature<'_>, message: &str, tree: Oid) -> Result<Commit, VcsError> {
        let parent = match self.repository.head() {
            Ok(head) => Some(head.peel_to_commit()?),
            Err(error) if error.code() == ErrorCode::UnbornBranch => None,
            Err(error) => return Err(error.into()),
        };
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let tree = self.repository.find_tree(tree)?;
        let id = self.repository.commit(Some("HEAD"), signature, signature, message, &tree, &parents)?;
        Ok(Commit {
            id: id.to_string(),
            author_time: signature.when().seconds(),
            commit_time: signature.when().seconds(),
            author: String::from_utf8_lossy(signature.name_bytes()).into_owned(),
            summary: message.lines().next().unwrap_or_default().to_owned(),
        })
    }
}
