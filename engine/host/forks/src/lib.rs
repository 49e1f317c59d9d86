//! Forks of projects: copies in which agents work while the user's folder stays as it is, until a fork is adopted.
//!
//! A fork is a folder in the workspace's folder. In a Git repository it's a worktree on a branch of its own. What it
//! was made from is kept beside it, so that an adoption is a three-way merge. Each adoption is written down before the
//! first file changes: after a crash it's finished or taken back.

mod adoption;
mod create_fork;
mod discard_fork;
mod file_versions;
mod fork_changes;
mod fork_record;
mod merge_plan;
mod project_commit;
mod project_walk;

pub use adoption::{AdoptRequest, AdoptionReport};
pub use create_fork::{DEFAULT_FORK_LIMIT_BYTES, ForkRequest};
pub use fork_changes::{ChangedForkFile, ForkChanges, ForkFileChange, ForkHunk};
pub use fork_record::{
    AdoptionKind, AdoptionPhase, AdoptionRecord, AdoptionStep, ForkBranch, ForkPhase, ForkRecord, ForkStore,
    LeftOutFiles,
};
pub use merge_plan::{AdoptConflict, ChangeSelection, ConflictPreference};
pub use project_commit::ProjectCommit;

use git_program::GitProgramError;
use store::disk::DiskError;
use vcs::VcsError;

/// Why something with a fork couldn't be done.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// It was refused, with the reason.
    #[error("{0}")]
    Refused(String),
    /// The project is larger than a fork may be.
    #[error(
        "the project has {} MB in {files} files, and a fork may have {} MB; `--fork-limit {}` allows it",
        bytes.div_ceil(1_000_000), limit / 1_000_000, bytes.div_ceil(1_000_000)
    )]
    TooLarge {
        /// Size of the files that would be copied, in bytes.
        bytes: u64,
        /// Number of these files.
        files: usize,
        /// The limit in bytes.
        limit: u64,
    },
    /// Both the project and the fork have changed the same lines or files. Nothing was adopted.
    #[error("the project has changed where the fork has, so nothing was adopted: {}", conflict_list(.0))]
    Conflicts(Vec<AdoptConflict>),
    /// An adoption was interrupted, by a crash for instance.
    #[error(
        "an earlier change of the project by this fork was interrupted; `tracebook forks adopt {0}` finishes it, and \
         `tracebook forks undo {0}` takes it back"
    )]
    Interrupted(String),
    /// An error while reading the repository.
    #[error(transparent)]
    Repository(#[from] VcsError),
    /// An error of the user's `git`.
    #[error(transparent)]
    Git(#[from] GitProgramError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl ForkError {
    fn io(what: &'static str, path: &std::path::Path, error: &std::io::Error) -> ForkError {
        ForkError::Disk(DiskError::from_io(what, path, error))
    }
}

fn conflict_list(conflicts: &[AdoptConflict]) -> String {
    conflicts.iter().map(|conflict| format!("{} ({})", conflict.path, conflict.why)).collect::<Vec<_>>().join(", ")
}
