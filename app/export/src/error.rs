//! Errors of workspace operations such as exports.

use std::fmt::Display;

/// An error as a sentence with what to do, by who can fix it.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The request is wrong.
    #[error("{0}")]
    Usage(String),
    /// The workspace or its disk rejects it.
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
