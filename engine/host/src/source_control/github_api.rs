//! GitHub's API as this user has set it up: its address from the environment, and the token from the secrets.

use super::{FileChange, FileChangeKind, GitOutcome, GitRequest, ReadRepository, RepositoryStatus};
use super::{file_times, roll_up};
use crate::agents::model_setup::user_secrets;
use anyhow::bail;
use git_program::RepositoryAddress;
use github::{API_ADDRESS_VARIABLE, ApiAddress, ApiClient, ApiControl, ApiToken, CloneSummary, GitHubError};
use github::{FolderState, GitHubRepository, LocalChange, LocalChangeKind, TOKEN_NAME, clone_repository};
use std::path::Path;

/// Returns a client with the user's token, if there's one.
///
/// # Errors
/// Returns an error if the address isn't one, or the token is stored but can't be read now.
pub fn github_client() -> Result<ApiClient, GitHubError> {
    let refuse =
        |why: &dyn std::fmt::Display| GitHubError::Refused(format!("The token {TOKEN_NAME} can't be read: {why}."));
    let token = user_secrets().map_err(|why| refuse(&why))?.get(TOKEN_NAME).map_err(|why| refuse(&why))?;
    Ok(ApiClient::new(api_address()?, token.map(|(token, _)| ApiToken::new(token.expose()))))
}

fn api_address() -> Result<ApiAddress, GitHubError> {
    ApiAddress::read(std::env::var(API_ADDRESS_VARIABLE).ok().as_deref())
}

/// Returns whether an address that Git would clone is a repository of the API's host, so that its files can come
/// without Git.
pub fn is_github_address(given: &str, address: &RepositoryAddress) -> bool {
    address.host().is_some() && api_address().is_ok_and(|api| GitHubRepository::read(given, &api).is_ok())
}

/// Gets the files of a repository's default branch into a new folder, without Git.
///
/// # Errors
/// Returns a [`GitHubError`]; then there's no folder.
pub fn clone_over_api(given: &str, folder: &Path, control: &ApiControl<'_>) -> Result<CloneSummary, GitHubError> {
    let client = github_client()?;
    let repository = GitHubRepository::read(given, client.address())?;
    clone_repository(&client, &repository, folder, control)
}

/// Reads the state of a folder from GitHub, or of a part of one.
pub(super) fn read_folder(root: &Path, part: &str, number: u64) -> Result<ReadRepository, GitHubError> {
    let read = github::read_status(root, part)?;
    let stamps = file_times(&read.state_files);
    let change = |change: LocalChange| {
        let kind = match change.kind {
            LocalChangeKind::Modified | LocalChangeKind::Replaced => FileChangeKind::Modified,
            LocalChangeKind::Deleted => FileChangeKind::Deleted,
            LocalChangeKind::New => FileChangeKind::Untracked,
        };
        FileChange { path: change.path, old_path: None, staged: None, unstaged: Some(kind) }
    };
    let changes: Vec<FileChange> = read.changes.into_iter().map(change).collect();
    let mut branch = read.branch;
    // How far it's behind isn't known without asking.
    branch.upstream = None;
    let status = RepositoryStatus {
        number,
        branch,
        badges: roll_up(&changes),
        changes,
        is_complete: read.is_complete,
        has_remote: true,
        github: Some(read.repository),
        ..RepositoryStatus::default()
    };
    Ok((status, read.state_files, stamps))
}

/// Performs a request in a folder from GitHub, or in a part of one.
///
/// # Errors
/// Returns an error for the user.
pub(super) fn perform(
    root: &Path,
    part: &str,
    request: &GitRequest,
    control: &ApiControl<'_>,
) -> anyhow::Result<GitOutcome> {
    let (request, keeps_conflicts) = match request {
        GitRequest::KeepConflicts(request) => (request.as_ref(), true),
        request => (request, false), // tidy: open because every other request is performed as it is
    };
    let client = github_client()?;
    let mut state = FolderState::open(root, &client)?;
    let text = match request {
        GitRequest::Fetch => {
            let is_behind = github::has_newer_commits(&state, &client, control)?;
            state.write_cache(&client);
            let said = if is_behind { "There are new commits to pull." } else { "There's nothing new." };
            said.to_owned()
        }
        GitRequest::Pull => github::describe_pull(&github::pull(&mut state, &client, control, keeps_conflicts)?),
        GitRequest::Commit { message, amend: false, signoff: false } => {
            let files: Vec<String> = Some(part.to_owned()).filter(|part| !part.is_empty()).into_iter().collect();
            let made = github::commit_files(&mut state, &client, control, message, &files)?;
            let id = &made.commit.id;
            format!("Committed and pushed {}: {}", id.get(..8).unwrap_or(id), made.commit.summary)
        }
        _ => bail!("This needs Git, and these files came from GitHub without it."), // tidy: open because all else does
    };
    Ok(GitOutcome { text, undo: None })
}
