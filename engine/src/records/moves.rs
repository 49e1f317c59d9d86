//! Moves, deletions and renames of files, in the form stored on disk until they're finished.

use crate::records::saving::BatchNumber;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::DocId;
use store::disk::FileRow;
use text::links::LinkRewrite;

/// Key under which the disk stores the moves that can be undone.
pub const UNDO_MOVES_KEY: &str = "moved";
/// Key under which the disk stores the pending move.
pub const PENDING_MOVE_KEY: &str = "moving";
/// Prefix of the keys under which the disk stores the link rewrites of each note.
pub const RELINK_KEY_PREFIX: &str = "relink/";
/// Prefix of the keys under which the disk stores files in the trash.
pub const TRASH_KEY_PREFIX: &str = "trash/";
/// Folder in the workspace that holds deleted files.
pub const TRASH_FOLDER: &str = "trash";

/// Location of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileLocation {
    /// At this path of its volume.
    Path(String),
    /// In the workspace's trash.
    Trash,
}

/// A file to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    /// The file's row at its old path.
    pub row: FileRow,
    /// The file's current location.
    pub from: FileLocation,
    /// The file's new location.
    pub to: FileLocation,
    /// Whether the move only repeats what the volume's document already says. It isn't recorded in the document again,
    /// because that could undo a later change by another device.
    #[serde(default)]
    pub echo: bool,
    /// `None` until the move has started, then whether a file exists at all. A note whose text hasn't arrived yet is
    /// only a name.
    #[serde(default)]
    pub(crate) made: Option<bool>,
}

impl FileMove {
    pub(crate) fn new(row: FileRow, from: FileLocation, to: FileLocation) -> FileMove {
        FileMove { row, from, to, echo: false, made: None }
    }
}

/// A file in the trash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashedFile {
    /// The file's last known row, with its original path.
    pub row: FileRow,
    /// When it was deleted, milliseconds since 1970.
    pub at: i64,
}

/// A move of files that hasn't finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingMove {
    /// The files that aren't at their new location yet.
    pub files: Vec<FileMove>,
    /// Link rewrites that remain to be made, by note.
    pub relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
    /// The batch that records the new locations on disk, while it's in progress.
    pub(crate) awaited_batch: Option<BatchNumber>,
    /// Whether the move was sent to the host.
    pub(crate) is_sent: bool,
    /// Whether changes from other devices caused the move.
    pub(crate) is_remote: bool,
    /// Whether the move undoes an earlier one.
    pub(crate) is_undo: bool,
    /// Notes that are kept open to rewrite their links.
    pub(crate) held_notes: Vec<DocId>,
    /// All link rewrites of the move, kept for undo.
    pub(crate) all_relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
}

impl PendingMove {
    /// Returns whether files have started to move. Before that they're at their old paths.
    pub(crate) fn has_started(&self) -> bool {
        self.files.iter().any(|file| file.made.is_some())
    }

    /// Returns the link rewrites to make in a note once the files are at their new locations.
    pub(crate) fn relinks_of(&self, note: DocId) -> Option<&[LinkRewrite]> {
        self.relinks.get(&note).map(Vec::as_slice)
    }

    /// Returns the move that was unfinished on disk when the last process ended; `None` if there was none.
    pub fn unfinished(files: Vec<FileMove>, relinks: BTreeMap<DocId, Vec<LinkRewrite>>) -> Option<PendingMove> {
        let all = relinks.clone();
        (!files.is_empty() || !relinks.is_empty()).then(|| PendingMove {
            files,
            relinks,
            all_relinks: all,
            ..PendingMove::default()
        })
    }
}

/// A finished move that can be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedMove {
    pub(crate) files: Vec<FileMove>,
    pub(crate) relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
}

/// Key under which the disk stores the files that other programs deleted.
pub const GONE_FILES_KEY: &str = "gone";

/// Key under which the disk stores the files that other programs renamed.
pub const EXTERNAL_RENAMES_KEY: &str = "renamed";

/// A file that another program renamed, and whose old name may still be used in links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalRename {
    pub(crate) volume: DocId,
    pub(crate) file: DocId,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether a finished scan has confirmed that no other file could be meant.
    pub(crate) sure: bool,
}
