//! GitHub's API as this user has set it up: its address from the environment, and the token from the secrets.

use crate::agents::model_setup::user_secrets;
use git_program::RepositoryAddress;
use github::{API_ADDRESS_VARIABLE, ApiAddress, ApiClient, ApiControl, ApiToken, CloneSummary, GitHubError};
use github::{GitHubRepository, TOKEN_NAME, clone_repository};
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
