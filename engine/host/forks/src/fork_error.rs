//! Why something with a fork couldn't be done.

use crate::merge_plan::AdoptConflict;
use engine::CommandError;
use git_program::GitProgramError;
use host::kernel_states::StateError;
use host::{OwnerGone, SaveError, WaitError};
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
    /// The fork has other changes than the user has seen. Nothing was adopted.
    #[error("the fork has changed since it was shown; look at its changes again")]
    ChangedSinceSeen,
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
    /// The session refused a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The program that has the workspace open is closing.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
    /// Not everything that was typed is in the files yet.
    #[error(transparent)]
    Unsaved(#[from] SaveError),
    /// A fork or a run can't be read, with the reason.
    #[error("{0}")]
    Unreadable(String),
    /// An error of the user's `git`.
    #[error(transparent)]
    Git(#[from] GitProgramError),
    /// Saved variables can't be copied or deleted.
    #[error(transparent)]
    Variables(#[from] StateError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl From<WaitError> for ForkError {
    fn from(error: WaitError) -> ForkError {
        match error {
            WaitError::Gone => OwnerGone.into(),
            WaitError::Refused(why) => ForkError::Unreadable(format!("it could not be done: {why}")),
        }
    }
}

impl ForkError {
    pub(crate) fn io(what: &'static str, path: &std::path::Path, error: &std::io::Error) -> ForkError {
        ForkError::Disk(DiskError::from_io(what, path, error))
    }
}

fn conflict_list(conflicts: &[AdoptConflict]) -> String {
    conflicts.iter().map(|conflict| format!("{} ({})", conflict.path, conflict.why)).collect::<Vec<_>>().join(", ")
}
