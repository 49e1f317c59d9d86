//! Commits: changed files become blobs, a tree and a commit, and then the branch's last commit, if nobody was faster.

use crate::api_client::{ApiClient, ApiControl};
use crate::api_error::{GitHubError, quoted};
use crate::endpoints::{RepositoryApi, TreeChange};
use crate::folder_record::FolderState;
use crate::local_files::{LocalChange, LocalChangeKind, LocalState, list_changes, open_root, read_local};
use crate::remote_tree::{TreeFile, check_path, folders_above};
use vcs::{Commit, MAX_COMMIT_MESSAGE_BYTES};

/// Maximum number of files of a commit. Each takes a request.
const MAX_COMMIT_FILES: usize = 500;

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitSummary {
    /// The commit.
    pub commit: Commit,
    /// Its files.
    pub files: Vec<String>,
}

/// Commits the current content of the named files and folders, or of all changed files, to the branch.
///
/// # Errors
/// Returns [`GitHubError::BranchMoved`] if the branch has other commits, [`GitHubError::NothingChanged`],
/// [`GitHubError::UnfinishedPull`], or why it failed. Then the branch is as it was.
pub fn commit_files(
    state: &mut FolderState,
    client: &ApiClient,
    control: &ApiControl<'_>,
    message: &str,
    files: &[String],
) -> Result<CommitSummary, GitHubError> {
    let message = message.trim();
    if message.is_empty() || message.len() > MAX_COMMIT_MESSAGE_BYTES {
        let most = MAX_COMMIT_MESSAGE_BYTES >> 10;
        return Err(GitHubError::Refused(format!("A commit needs a message of at most {most} kB.")));
    }
    if state.unfinished_pull().is_some() {
        return Err(GitHubError::UnfinishedPull);
    }
    let changes = chosen_changes(state, files)?;
    let repository = state.record.repository();
    let api = RepositoryApi { client, repository: &repository, control };
    let branch = state.record.branch.clone();
    if api.branch_commit(&branch)? != state.record.commit {
        return Err(GitHubError::BranchMoved(branch));
    }
    let (mut entries, mut recorded) = (Vec::new(), Vec::new());
    for (number, change) in changes.iter().enumerate() {
        control.report(&format!("Uploading files: {} of {}", number + 1, changes.len()));
        let file = upload(state, &api, change)?;
        let content = file.as_ref().map(|file| (file.mode().to_owned(), file.hash.clone()));
        entries.push(TreeChange { path: change.path.clone(), content });
        recorded.push((change.path.clone(), file));
    }
    let tree = api.create_tree(&state.record.tree, &entries)?;
    if tree == state.record.tree {
        return Err(GitHubError::NothingChanged);
    }
    let commit = api.create_commit(message, &tree, &state.record.commit)?;
    if let Err(error) = api.advance_branch(&branch, &commit.id) {
        // The answer may have been lost after the branch was changed.
        let is_unknown = matches!(error, GitHubError::Unreachable { .. } | GitHubError::Server { .. });
        if !is_unknown || api.branch_commit(&branch).ok().as_ref() != Some(&commit.id) {
            return Err(error);
        }
    }
    for (path, file) in recorded {
        match file {
            Some(file) => _ = state.record.files.insert(path, file),
            None => _ = state.record.files.remove(&path),
        }
    }
    state.record.commit.clone_from(&commit.id);
    state.record.tree = tree;
    state.write_record()?;
    state.write_cache(client);
    Ok(CommitSummary { commit, files: changes.into_iter().map(|change| change.path).collect() })
}

/// Returns the changes of the named files and folders, or all of them, if each can be committed.
fn chosen_changes(state: &FolderState, files: &[String]) -> Result<Vec<LocalChange>, GitHubError> {
    let mut changes = list_changes(state.root(), &state.record)?;
    if !files.is_empty() {
        let is_below = |path: &str, file: &str| {
            file.is_empty() || path.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for file in files {
            if !changes.iter().any(|change| is_below(&change.path, file)) {
                return Err(GitHubError::Refused(format!(
                    "Nothing has changed there, or a rule in .gitignore leaves it out: {}.",
                    quoted(file)
                )));
            }
        }
        changes.retain(|change| files.iter().any(|file| is_below(&change.path, file)));
    }
    if changes.is_empty() {
        return Err(GitHubError::NothingChanged);
    }
    if changes.len() > MAX_COMMIT_FILES {
        return Err(GitHubError::TooLarge(format!("{} files have changed", changes.len())));
    }
    for change in &changes {
        let path = quoted(&change.path);
        if change.kind == LocalChangeKind::Replaced {
            return Err(GitHubError::Refused(format!(
                "{path} isn't an ordinary file of at most 100 MB now, so it can't be committed. Name the files to \
                 commit, or put it back."
            )));
        }
        check_path(&change.path)?;
        if folders_above(&change.path).any(|above| state.record.left_out.contains_key(above)) {
            return Err(GitHubError::Refused(format!("{path} is in a submodule, so it can't be committed from here.")));
        }
    }
    Ok(changes)
}

/// Stores the file of a change at GitHub; `None` if it's deleted.
fn upload(state: &FolderState, api: &RepositoryApi<'_>, change: &LocalChange) -> Result<Option<TreeFile>, GitHubError> {
    let folder = open_root(state.root())?;
    let file = match (read_local(&folder, &change.path)?, change.kind) {
        (LocalState::Missing, LocalChangeKind::Deleted) => return Ok(None),
        (LocalState::File(file), _) => file,
        (LocalState::Missing | LocalState::Other, _) => {
            return Err(GitHubError::Refused(format!(
                "{} has changed while it was committed. Commit again.",
                quoted(&change.path)
            )));
        }
    };
    let recorded = state.record.files.get(&change.path);
    let is_program = if cfg!(unix) { file.is_program } else { recorded.is_some_and(|known| known.is_program) };
    // Only the permission has changed.
    let is_known = recorded.is_some_and(|known| known.hash == file.blob);
    if !is_known && api.create_blob(&file.bytes)? != file.blob {
        return Err(api.client.malformed("another hash than the file has"));
    }
    Ok(Some(TreeFile { hash: file.blob, is_program }))
}
