//! What has changed in a folder from GitHub, for those who show it. Reads take no lock and ask nobody.

use crate::api_error::GitHubError;
use crate::folder_record::{FolderRecord, is_pull_unfinished, read_record, state_files};
use crate::local_files::{LocalChange, list_changes};
use std::path::{Path, PathBuf};
use vcs::{BranchState, MAX_STATUS_FILES};

/// State of a part of a folder from GitHub.
#[derive(Clone, Debug)]
pub struct FolderStatus {
    /// `OWNER/NAME` of the repository.
    pub repository: String,
    /// The branch.
    pub branch: BranchState,
    /// Files that differ from the last pull or commit, by their path in the part.
    pub changes: Vec<LocalChange>,
    /// Whether these are all.
    pub is_complete: bool,
    /// Files that change with every pull and commit.
    pub state_files: Vec<PathBuf>,
}

/// Reads the state of the folder that [`find_folder`](crate::find_folder) has found, as far as it's in `part`.
///
/// # Errors
/// Returns [`GitHubError::Record`] if its record can't be used, and an error if a file can't be read.
pub fn read_status(root: &Path, part: &str) -> Result<FolderStatus, GitHubError> {
    let (record, _) = read_record(root)?;
    let in_part = |change: LocalChange| {
        let path = match part {
            "" => change.path.as_str(),
            part => change.path.strip_prefix(part)?.strip_prefix('/')?,
        };
        Some(LocalChange { path: path.to_owned(), kind: change.kind })
    };
    let mut changes: Vec<LocalChange> = list_changes(root, &record)?.into_iter().filter_map(in_part).collect();
    let is_complete = changes.len() <= MAX_STATUS_FILES;
    changes.truncate(MAX_STATUS_FILES);
    Ok(FolderStatus {
        repository: record.repository_text(),
        branch: branch_state(&record, is_pull_unfinished(root)),
        changes,
        is_complete,
        state_files: state_files(root),
    })
}

/// Returns where the folder's branch is. It has no count of commits: only a fetch would know.
pub fn branch_state(record: &FolderRecord, is_pulling: bool) -> BranchState {
    BranchState {
        branch: Some(record.branch.clone()),
        head: Some(record.commit.clone()),
        upstream: Some(record.repository_text()),
        under_way: is_pulling.then_some("pull"),
        ..BranchState::default()
    }
}
