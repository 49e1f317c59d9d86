//! State of moves: the pending one, those that can be undone, the trash, and renames by other programs.

use crate::records::moves::{
    CompletedMove, EXTERNAL_RENAMES_KEY, ExternalRename, FileLocation, FileMove, GONE_FILES_KEY, PendingMove,
    TrashedFile,
};
use crate::session::apply_context::CommandError;
use std::collections::{BTreeMap, BTreeSet};
use store::DocId;
use store::disk::{FileRow, RowWrite};

/// Maximum number of deleted files that are remembered.
const MAX_GONE_FILES: usize = 5_000;

/// State of file moves.
#[derive(Debug, Default)]
pub(in crate::session) struct MovesState {
    pub(in crate::session) pending: Option<PendingMove>,
    pub(in crate::session) undoable: Vec<CompletedMove>,
    pub(in crate::session) trash: BTreeMap<DocId, TrashedFile>,
    /// Files in the trash that are being deleted permanently.
    pub(in crate::session) deleting: BTreeSet<DocId>,
    pub(in crate::session) external_renames: Vec<ExternalRename>,
    pub(in crate::session) outdated_link_notes: usize,
    /// Notes that other programs deleted, by volume and path. Their documents are still on disk.
    pub(in crate::session) gone: BTreeMap<(DocId, String), FileRow>,
    /// Whether the disk doesn't have all of that.
    pub(in crate::session) is_gone_changed: bool,
}

impl MovesState {
    pub(in crate::session) fn external_renames_write(&self) -> RowWrite {
        let value =
            (!self.external_renames.is_empty()).then(|| serde_json::to_vec(&self.external_renames).unwrap_or_default());
        RowWrite::Meta { key: EXTERNAL_RENAMES_KEY.to_owned(), value }
    }

    /// Remembers notes that other programs deleted, so that they are the same ones if their files come back.
    pub(in crate::session) fn remember_gone(&mut self, rows: Vec<FileRow>) {
        for row in rows.into_iter().filter(|row| row.kind.is_text()) {
            self.is_gone_changed = true;
            self.gone.insert((row.volume, row.path.clone()), row);
        }
        while self.gone.len() > MAX_GONE_FILES {
            self.gone.pop_first();
        }
    }

    /// Returns the note that had this path before another program deleted it, and forgets that it was deleted.
    pub(in crate::session) fn take_returned(&mut self, volume: DocId, path: &str) -> Option<FileRow> {
        if self.gone.is_empty() {
            return None;
        }
        let row = self.gone.remove(&(volume, path.to_owned()))?;
        self.is_gone_changed = true;
        Some(row)
    }

    /// Returns the write that is due since deleted notes were remembered or came back.
    pub(in crate::session) fn take_gone_write(&mut self) -> Option<RowWrite> {
        if !std::mem::take(&mut self.is_gone_changed) {
            return None;
        }
        let rows: Vec<&FileRow> = self.gone.values().collect();
        let value = (!rows.is_empty()).then(|| serde_json::to_vec(&rows).unwrap_or_default());
        Some(RowWrite::Meta { key: GONE_FILES_KEY.to_owned(), value })
    }

    /// Returns the number of notes with links to files that other programs renamed.
    pub(in crate::session) fn count_outdated_link_notes(&self) -> usize {
        self.outdated_link_notes
    }

    pub(in crate::session) fn ensure_no_pending_move(&self) -> Result<(), CommandError> {
        match &self.pending {
            Some(_) => Err(CommandError("other files are being moved; try again in a moment".to_owned())),
            None => Ok(()),
        }
    }

    /// Returns whether a file is on its way to the trash.
    pub(in crate::session) fn is_leaving(&self, file: DocId) -> bool {
        let files = self.pending.iter().flat_map(|moving| &moving.files);
        files.filter(|one| one.row.id == file).any(|one| one.to == FileLocation::Trash)
    }

    /// Returns whether a file is being moved right now and must not be touched.
    pub(in crate::session) fn is_moving(&self, file: DocId) -> bool {
        let moving = self.pending.as_ref().filter(|moving| moving.has_started());
        moving.is_some_and(|moving| moving.files.iter().any(|one| one.row.id == file))
    }

    /// Returns whether a scan's result for this path is or will be outdated, because a file is being moved from or to
    /// it.
    pub(in crate::session) fn is_in_motion(&self, volume: DocId, path: &str) -> bool {
        let here = |spot: &FileLocation| matches!(spot, FileLocation::Path(at) if at == path);
        let meant = |one: &FileMove| one.row.volume == volume && (here(&one.from) || here(&one.to));
        self.pending.as_ref().is_some_and(|moving| moving.files.iter().any(meant))
    }

    /// Returns the pending move, which moves files first and then updates links.
    pub(in crate::session) fn pending_move(&self) -> Option<&PendingMove> {
        self.pending.as_ref()
    }

    /// Returns the files in the trash.
    pub(in crate::session) fn trash(&self) -> impl Iterator<Item = (DocId, &TrashedFile)> {
        self.trash.iter().map(|(file, trashed)| (*file, trashed))
    }

    /// Returns whether a move can be undone.
    pub(in crate::session) fn can_undo_move(&self) -> bool {
        self.pending.is_none() && !self.undoable.is_empty()
    }

    /// Returns whether files are being deleted permanently.
    pub(in crate::session) fn is_deleting_trash(&self) -> bool {
        !self.deleting.is_empty()
    }
}
