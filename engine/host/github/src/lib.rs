//! Repositories of GitHub without Git: a folder with a branch's files, pulls and commits, all over GitHub's REST API.
//!
//! A hidden folder beside the files ([`STATE_FOLDER`]) records where they are from and the hash of each at the last
//! pull. Everything that GitHub sends is untrusted: paths are checked, sizes are bounded, and each file's hash must be
//! that of the tree. A user's file is only replaced if it is unchanged since the last pull, or if both changes can be
//! merged.

mod address;
mod agent_operations;
mod answer_cache;
mod api_client;
mod api_error;
mod archive;
mod blob_download;
mod clone_folder;
mod commit;
mod endpoints;
mod folder_record;
mod folder_status;
mod limits;
mod local_files;
mod pull;
mod remote_tree;
mod wire;

pub use address::{API_ADDRESS_VARIABLE, ApiAddress, GitHubRepository};
pub use agent_operations::{AgentOperation, describe_pull, describe_status, perform_for_agent};
pub use answer_cache::{AnswerCache, CacheLimits};
pub use api_client::{ApiClient, ApiControl, ApiToken};
pub use api_error::{GitHubError, TOKEN_NAME};
pub use clone_folder::{CloneSummary, clone_repository};
pub use commit::{CommitSummary, commit_files};
pub use folder_record::{FolderRecord, FolderState, STATE_FOLDER, find_folder};
pub use folder_status::{FolderStatus, branch_state, read_status};
pub use limits::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES};
pub use local_files::{LocalChange, LocalChangeKind, list_changes, path_in_folder};
pub use pull::{PullSummary, has_newer_commits, list_commits, pull};
