//! Why something that was asked of a workspace was not done.

use std::fmt::Display;

/// Why something was not done: a sentence with what to do, by whose turn it is.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What was asked does not fit.
    #[error("{0}")]
    Usage(String),
    /// The workspace, or its disk, refuses.
    #[error("{0}")]
    Workspace(String),
}

impl ExportError {
    pub(crate) fn usage(why: impl Display) -> ExportError {
        ExportError::Usage(why.to_string())
    }

    pub(crate) fn workspace(why: impl Display) -> ExportError {
        ExportError::Workspace(why.to_string())
    }
}

impl From<engine::CommandError> for ExportError {
    fn from(reject: engine::CommandError) -> Self {
        ExportError::usage(reject.0)
    }
}

impl From<host::OwnerGone> for ExportError {
    fn from(gone: host::OwnerGone) -> Self {
        ExportError::workspace(gone.to_string())
    }
}
