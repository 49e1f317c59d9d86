//! Forks of projects: copies in which agents work while the user's folder stays as it is, until a fork is adopted.
//!
//! A fork is a folder in the workspace's folder. In a Git repository it's a worktree on a branch of its own. What it
//! was made from is kept beside it, so that an adoption is a three-way merge. Each adoption is written down before the
//! first file changes: after a crash it's finished or taken back.

mod adoption;
mod change_makers;
mod create_fork;
mod discard_fork;
mod file_versions;
mod fork_changes;
mod fork_error;
mod fork_record;
mod fork_variables;
mod merge_plan;
mod open_forks;
mod project_commit;
mod project_walk;

pub use adoption::{AdoptRequest, AdoptedVariables, AdoptionReport};
pub use change_makers::{ChangeMaker, FileMakers};
pub use create_fork::{DEFAULT_FORK_LIMIT_BYTES, ForkRequest};
pub use fork_changes::{ChangedForkFile, ForkChanges, ForkFileChange, ForkHunk};
pub use fork_error::ForkError;
pub use fork_record::{
    AdoptionKind, AdoptionPhase, AdoptionRecord, AdoptionStep, ForkBranch, ForkPhase, ForkRecord, ForkStore,
    ForkedVariables, LeftOutFiles,
};
pub use git_program::GitCaller;
pub use merge_plan::{AdoptConflict, ChangeSelection, ConflictPreference};
pub use open_forks::{AdoptionChoice, ForkOverview, ForkState, ForkWish, OpenForks, PreparedFork};
pub use project_commit::ProjectCommit;
