//! The commit of an adoption in the user's repository, by the user's own `git`.

use crate::fork_error::ForkError;
use crate::fork_record::AdoptionStep;
use git_program::{GitCaller, GitOperation};
use std::path::Path;
use vcs::{RepositoryFolder, VcsError};

/// Maximum number of files that an adoption commits, since their names are arguments.
const MAX_COMMITTED_FILES: usize = 1_000;

/// What became of an adoption's commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectCommit {
    /// It was made, with this hash.
    Made(String),
    /// It wasn't made, with the reason. The changes are in the files.
    NotMade(String),
    /// The project isn't in a repository.
    NoRepository,
}

/// Returns why these files can't be committed on their own; `None` if they can.
pub(crate) fn commit_obstacle(project: &Path, steps: &[AdoptionStep]) -> Option<ProjectCommit> {
    let refuse = |why: String| Some(ProjectCommit::NotMade(why));
    let repository = match RepositoryFolder::open(project) {
        Ok(repository) => repository,
        Err(VcsError::None(_)) => return Some(ProjectCommit::NoRepository),
        Err(error) => return refuse(error.to_string()),
    };
    if repository.is_ignored_folder().unwrap_or(false) {
        return Some(ProjectCommit::NoRepository);
    }
    let state = match repository.branch_state() {
        Ok(state) => state,
        Err(error) => return refuse(error.to_string()),
    };
    if let Some(under_way) = state.under_way {
        return refuse(format!("a {under_way} is under way in the repository"));
    }
    if state.branch.is_none() {
        return refuse("no branch is checked out in the repository".to_owned());
    }
    if steps.len() > MAX_COMMITTED_FILES {
        return refuse(format!("more than {MAX_COMMITTED_FILES} files are changed"));
    }
    match changed_paths(&repository, steps) {
        Err(error) => refuse(error.to_string()),
        Ok(changed) => match changed.first() {
            Some(path) if changed.len() == 1 => refuse(format!("{path} has uncommitted changes of yours")),
            Some(path) => refuse(format!("{path} and {} more have uncommitted changes of yours", changed.len() - 1)),
            None => None,
        },
    }
}

/// Returns which of these files differ from the last commit.
fn changed_paths(repository: &RepositoryFolder, steps: &[AdoptionStep]) -> Result<Vec<String>, VcsError> {
    let (changes, is_whole) = repository.changes()?;
    if !is_whole {
        return Err(VcsError::Refused("the repository has too many changed files to tell which are yours".to_owned()));
    }
    let is_written = |path: &str| steps.iter().any(|step| step.path == path);
    Ok(changes.into_iter().map(|change| change.path).filter(|path| is_written(path)).collect())
}

/// Commits the files of an adoption and nothing else. After a crash, an existing commit is found.
pub(crate) fn commit_files(project: &Path, steps: &[AdoptionStep], message: &str, caller: GitCaller) -> ProjectCommit {
    let head = |repository: &RepositoryFolder| {
        let newest = repository.log(1)?.into_iter().next();
        Ok::<_, VcsError>(newest.map(|commit| commit.id).unwrap_or_default())
    };
    let made = || -> Result<ProjectCommit, ForkError> {
        let repository = RepositoryFolder::open(project)?;
        let files = changed_paths(&repository, steps)?;
        if files.is_empty() {
            return Ok(ProjectCommit::Made(head(&repository)?));
        }
        let run = |operation: GitOperation| git_program::run(project, &operation, caller, &mut |_| {}, &|| false);
        run(GitOperation::Add { files: files.clone() })?;
        let commit = GitOperation::Commit {
            message: message.to_owned(),
            files: files.clone(),
            all: false,
            amend: false,
            signoff: false,
        };
        if let Err(error) = run(commit) {
            // The files stay written. If this fails, too, they're staged in addition, which the user sees.
            let _ = run(GitOperation::Unstage { files });
            return Err(error.into());
        }
        Ok(ProjectCommit::Made(head(&repository)?))
    };
    made().unwrap_or_else(|error| ProjectCommit::NotMade(error.to_string()))
}
