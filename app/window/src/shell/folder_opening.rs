//! Folders that are being opened, and what to show of each once its files are known.

use std::path::PathBuf;
use store::DocId;

/// A folder that is being opened.
pub(crate) struct FolderOpening {
    /// The folder of the volume.
    pub(crate) root: PathBuf,
    /// The scan whose end is awaited.
    pub(crate) scan: u64,
    pub(crate) target: OpeningTarget,
}

/// What to show of an opened folder.
pub(crate) enum OpeningTarget {
    /// The note with which a folder begins. The path is that of a folder in the volume, with a `/` behind, or empty.
    Start(String),
    /// A file of the volume.
    File(String),
    /// What was shown before the volume was closed.
    Note(Option<DocId>),
}
