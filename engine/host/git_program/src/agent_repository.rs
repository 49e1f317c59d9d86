//! What an agent does in a repository: in process where that is enough, and otherwise by the user's own `git`, without
//! the repository's hooks, and never where the repository's own settings name programs.

use crate::{GitCaller, GitOperation, GitProgramError, MERGE_DRIVER_SETTING, commit_chosen, merge_driver_command, run};
use std::path::Path;
use vcs::{Commit, RepositoryFolder, VcsError, describe_branch};

/// Maximum number of files in the arguments of one process.
const MAX_NAMED_FILES: usize = 200;
/// Number of digits of a hash in texts.
const SHORT_ID_DIGITS: usize = 8;

/// Why an agent can't do something with Git.
#[derive(Debug, thiserror::Error)]
pub enum AgentGitError {
    /// The repository's own configuration makes Git run programs: it could attack through an agent.
    #[error(
        "The repository's own .git/config names programs or other places ({}), so agents don't run Git in it. Do it \
         yourself with `tracebook git`, or move these settings to your own Git configuration.",
        .0.join(", ")
    )]
    NamesPrograms(Vec<String>),
    /// Git has made no signed commit.
    #[error("The settings of Git want signed commits, and this one failed. {0}")]
    NotSigned(GitProgramError),
    /// Git has made no commit of a file that goes through a filter.
    #[error("Only Git itself commits {file}, because of its filter {filter}, and that failed. {why}")]
    NotFiltered {
        /// Path of the file in the folder.
        file: String,
        /// Name of the filter.
        filter: String,
        /// Git's error.
        why: GitProgramError,
    },
    /// An error of the repository.
    #[error(transparent)]
    Repository(#[from] VcsError),
    /// An error of the user's Git.
    #[error(transparent)]
    Program(#[from] GitProgramError),
}

/// Returns whether an error says that nothing has the name that was given.
pub fn is_missing_name(error: &(dyn std::error::Error + 'static)) -> bool {
    match error.downcast_ref::<AgentGitError>() {
        Some(AgentGitError::Repository(why)) => why.is_missing(),
        Some(_) | None => error.downcast_ref::<VcsError>().is_some_and(VcsError::is_missing),
    }
}

/// The repository in which an agent works.
#[derive(Clone, Copy)]
pub struct AgentRepository<'a> {
    /// The volume's folder.
    pub folder: &'a Path,
    /// Path of this program, which may be the repository's merge driver.
    pub program: &'a Path,
    /// Returns whether the work was canceled; asked often.
    pub is_canceled: &'a dyn Fn() -> bool,
}

impl AgentRepository<'_> {
    /// Opens the repository for the user's `git`.
    ///
    /// # Errors
    /// Returns [`AgentGitError::NamesPrograms`] if its own configuration makes Git run programs.
    pub fn check_settings(&self) -> Result<RepositoryFolder, AgentGitError> {
        let repository = RepositoryFolder::open_own(self.folder)?;
        let mut settings = repository.program_settings()?;
        // This program as a merge driver, exactly as it installs itself, starts nothing else.
        if repository.setting(MERGE_DRIVER_SETTING)? == merge_driver_command(self.program) {
            settings.retain(|name| name != MERGE_DRIVER_SETTING);
        }
        match settings.is_empty() {
            true => Ok(repository),
            false => Err(AgentGitError::NamesPrograms(settings)),
        }
    }

    /// Commits the named files, or all changed ones if none are named. If the user's settings want signed commits, or a
    /// file goes through a filter such as that of Git LFS, the user's own `git` does it. Returns what it has committed.
    ///
    /// # Errors
    /// Returns an error as [`RepositoryFolder::commit`] does, and Git's own.
    pub fn commit(&self, message: &str, files: &[String]) -> Result<String, AgentGitError> {
        let repository = RepositoryFolder::open(self.folder)?;
        let filtered = match repository.signs_commits()? {
            true => None,
            false => match repository.commit(message, files) {
                Err(VcsError::Filtered { file, filter }) => Some((file, filter)),
                done => return Ok(describe_commit(done?)),
            },
        };
        let repository = self.check_settings()?;
        let choice = repository.choose_for_commit(message, files)?;
        let named = (files, choice.new.as_slice());
        commit_chosen(self.folder, message.trim(), named, GitCaller::Agent, self.is_canceled).map_err(|why| {
            match filtered {
                Some((file, filter)) => AgentGitError::NotFiltered { file, filter, why },
                None => AgentGitError::NotSigned(why),
            }
        })?;
        self.describe_last_commit(choice.files)
    }

    /// Commits exactly what is staged. Returns what it has committed.
    ///
    /// # Errors
    /// Returns an error as [`RepositoryFolder::commit_staged`] does, and Git's own.
    pub fn commit_staged(&self, message: &str) -> Result<String, AgentGitError> {
        let repository = RepositoryFolder::open(self.folder)?;
        if !repository.signs_commits()? {
            return Ok(describe_commit(repository.commit_staged(message)?));
        }
        let files = self.check_settings()?.staged_files(message)?;
        let message = message.trim().to_owned();
        let commit = GitOperation::Commit { message, files: Vec::new(), all: false, amend: false, signoff: false };
        self.run(&commit).map_err(AgentGitError::NotSigned)?;
        self.describe_last_commit(files)
    }

    /// Stages the named files, or all changed ones if none are named. Returns which.
    ///
    /// # Errors
    /// Returns an error as [`RepositoryFolder::stage`] does, and Git's own.
    pub fn stage(&self, files: &[String]) -> Result<String, AgentGitError> {
        let staged = match RepositoryFolder::open(self.folder)?.stage(files) {
            Err(VcsError::Filtered { .. }) => {
                let chosen = self.check_settings()?.choose_to_stage(files)?;
                for files in chosen.chunks(MAX_NAMED_FILES) {
                    self.run(&GitOperation::Add { files: files.to_vec() })?;
                }
                chosen
            }
            staged => staged?,
        };
        Ok(format!("staged\n{}", staged.join("\n")))
    }

    /// Merges a branch into the current one. A conflict is taken back. Returns how the branch then is.
    ///
    /// # Errors
    /// Returns Git's error, or [`VcsError::Refused`] for the branch of a fork with changes of the user.
    pub fn merge(&self, branch: &str) -> Result<String, AgentGitError> {
        self.check_settings()?.refuse_merged_snapshot(branch)?;
        let said = self.run(&GitOperation::Merge { branch: branch.to_owned() })?;
        Ok(format!("{}\n{said}", describe_branch(&RepositoryFolder::open(self.folder)?.branch_state()?)))
    }

    /// Lists the stashes.
    ///
    /// # Errors
    /// Returns the repository's error.
    pub fn list_stashes(&self) -> Result<String, AgentGitError> {
        Ok(RepositoryFolder::open(self.folder)?.stashes_text()?)
    }

    /// Puts all changes in the folder that aren't committed aside. Returns what Git says.
    ///
    /// # Errors
    /// Returns Git's error.
    pub fn push_stash(&self, message: &str) -> Result<String, AgentGitError> {
        let is_within_folder = self.check_settings()?.is_below_top();
        Ok(self.run(&GitOperation::StashPush { message: message.trim().to_owned(), is_within_folder })?)
    }

    /// Takes a stash back, and with `pop` deletes it then. Returns what Git says.
    ///
    /// # Errors
    /// Returns Git's error.
    pub fn apply_stash(&self, number: usize, pop: bool) -> Result<String, AgentGitError> {
        self.check_settings()?;
        self.run(&GitOperation::StashApply { number, pop }).map_err(|why| match why {
            GitProgramError::Conflict { files, is_undone: false } => {
                let files = files.join(", ");
                let why = format!("the stash conflicts with {files}; it is kept, and the user has to choose the sides");
                AgentGitError::from(VcsError::Refused(why))
            }
            other => AgentGitError::from(other),
        })
    }

    fn run(&self, operation: &GitOperation) -> Result<String, GitProgramError> {
        run(self.folder, operation, GitCaller::Agent, &mut |_| {}, self.is_canceled)
    }

    fn describe_last_commit(&self, files: Vec<String>) -> Result<String, AgentGitError> {
        let made = RepositoryFolder::open(self.folder)?.log(1)?.into_iter().next();
        let made = made.ok_or_else(|| VcsError::Refused("Git made no commit".to_owned()))?;
        Ok(describe_commit((made, files)))
    }
}

fn describe_commit((commit, files): (Commit, Vec<String>)) -> String {
    let id = commit.id.get(..SHORT_ID_DIGITS).unwrap_or(&commit.id);
    format!("committed {id} “{}”\n{}", commit.summary, files.join("\n"))
}
