//! Errors of opening a workspace.

use store::disk::DiskError;

/// Why a workspace can't be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process owns the workspace. Commands go through its socket, if it has published one.
    Owned {
        /// Name of the owner's socket.
        socket: Option<String>,
        /// The owner's process id, if it has published it.
        pid: Option<u32>,
    },
    /// The disk fails, or its data is inconsistent.
    Disk(DiskError),
    /// Any other reason, as a sentence.
    Other(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Owned { pid: Some(pid), .. } => {
                write!(f, "another Tracebook (process {pid}) has the workspace open; close it or use its window")
            }
            OpenError::Owned { pid: None, .. } => {
                write!(f, "another Tracebook has the workspace open; close it or use its window")
            }
            OpenError::Disk(error) => error.fmt(f),
            OpenError::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        OpenError::Disk(error)
    }
}
