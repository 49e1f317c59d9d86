//! Files that are moved, deleted or renamed, as the disk keeps it until that is over.

use crate::records::saving::BatchNumber;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::DocId;
use store::disk::FileRow;
use text::links::LinkRewrite;

/// Under which name the disk keeps what can be taken back.
pub const UNDO_MOVES_KEY: &str = "moved";
/// Key under which the disk keeps the pending move.
pub const PENDING_MOVE_KEY: &str = "moving";
/// The beginning of the names under which it keeps what is to be written into which notes.
pub const RELINK_KEY_PREFIX: &str = "relink/";
/// Prefix of the keys under which the disk keeps files in the trash.
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

/// A file on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    /// The file's row at its old path.
    pub row: FileRow,
    /// The file's current place.
    pub from: FileLocation,
    /// The file's new place.
    pub to: FileLocation,
    /// Whether this only repeats here what the volume's document says already: to say it again could undo what another
    /// device did next.
    #[serde(default)]
    pub echo: bool,
    /// Once it goes there: whether there is a file at all. Of a note whose text has not come yet there is only the
    /// name.
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
    /// What was known of it; with the path at which it lay.
    pub row: FileRow,
    /// When it was deleted, milliseconds since 1970.
    pub at: i64,
}

/// A move of files that hasn't finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingMove {
    /// The files, until they are where they belong.
    pub files: Vec<FileMove>,
    /// What is still to be written into which notes.
    pub relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
    /// The batch that says on disk that they go there now, if that is on its way.
    pub(crate) awaited_batch: Option<BatchNumber>,
    /// Whether the host was asked to do it.
    pub(crate) is_sent: bool,
    /// Whether other devices' doing led to it.
    pub(crate) is_remote: bool,
    /// Whether this takes back an earlier one.
    pub(crate) is_undo: bool,
    /// Notes that are kept open to be written to.
    pub(crate) held_notes: Vec<DocId>,
    /// All that is written, to be taken back.
    pub(crate) all_relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
}

impl PendingMove {
    /// Whether files have started to move; before that they're at their old paths.
    pub(crate) fn has_started(&self) -> bool {
        self.files.iter().any(|file| file.made.is_some())
    }

    /// What is to be written into a note, once the files are where they belong.
    pub(crate) fn relinks_of(&self, note: DocId) -> Option<&[LinkRewrite]> {
        self.relinks.get(&note).map(Vec::as_slice)
    }

    /// What the disk knew of a move when the last process ended.
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

/// A move that is over and can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedMove {
    pub(crate) files: Vec<FileMove>,
    pub(crate) relinks: BTreeMap<DocId, Vec<LinkRewrite>>,
}

/// Under which name the disk keeps which files other programs renamed.
pub const EXTERNAL_RENAMES_KEY: &str = "renamed";

/// A file that another program renamed, and that links may still mean by its old name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalRename {
    pub(crate) volume: DocId,
    pub(crate) file: DocId,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether the scan is over that says that no other file could be meant.
    pub(crate) sure: bool,
}
