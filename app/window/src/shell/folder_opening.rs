//! Folders that are being opened, and what to show from each once its files are known.

use std::path::PathBuf;
use store::DocId;

/// A folder that is being opened.
pub(crate) struct FolderOpening {
    /// The volume's folder.
    pub(crate) root: PathBuf,
    /// The number of the scan whose end is awaited.
    pub(crate) scan: u64,
    pub(crate) target: OpeningTarget,
}

/// What to show from an opened folder.
pub(crate) enum OpeningTarget {
    /// The start note of a folder. The path is that of a folder in the volume, with a trailing `/`, or empty.
    Start(String),
    /// A file of the volume, by its path.
    File(String),
    /// The note that was visible before the volume was closed.
    Note(Option<DocId>),
}
