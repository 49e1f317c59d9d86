//! Syncs a note with its file: what another program wrote becomes edits, and edits made here are written to the file.

use crate::effect::Effect;
use crate::event::{ArrivedCommit, FileMark, FileReadError, FileText, file_marks_key};
use crate::note::DocPhase;
use crate::records::files::FileStamp;
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::{BlobHash, DocId, FileKind};

/// Delay in milliseconds before retrying to write a file that couldn't be written.
const FILE_WRITE_RETRY_MS: i64 = 3_000;
/// Delay in milliseconds before a file that vanished is created again.
const VANISHED_FILE_DELAY_MS: i64 = 1_000;

impl FilesState {
    /// Requests the note's file from the host. Only one read at a time: if something happens during a read, its result
    /// is outdated and the file is read again.
    pub(super) fn read_file(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let moving = self.moves.is_moving(id);
        let Some(file) = self.volumes.note_file_path(id) else { return };
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if note.file.reading || moving {
            note.file.reread = true;
        } else {
            note.file.reading = true;
            turn.effects.push(Effect::ReadFile { note: id, file, known: note.file.stamp });
        }
    }

    pub(super) fn file_read(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        file: Result<Option<FileText>, FileReadError>,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if !std::mem::take(&mut note.file.reading) {
            return; // asked for by one who has closed the note since
        }
        if note.file.writing.is_some() {
            note.file.reread = true; // once that is over
            return;
        }
        if std::mem::take(&mut note.file.reread) {
            self.read_file(turn, id);
            return;
        }
        match file {
            Ok(Some(_)) if note.read_only().is_some() => {} // what of it is ours is not known
            Ok(Some(file)) => {
                note.file.gone = false;
                if !note.is_ahead_of_file() {
                    note.file.trouble = None;
                }
                let Some(note) = self.notes.open.get_mut(&id) else { return };
                if note.file.stamp.is_some_and(|stamp| stamp.hash == file.stamp.hash) {
                    self.remember_file_stamp(turn, sync, id, file.stamp);
                } else if note.file.unmerged.is_some() || note.file.base.is_none() || note.awaits_document(&file) {
                    note.file.unmerged = Some(file);
                } else {
                    self.merge_file(turn, sync, id, file);
                }
            }
            Ok(None) => {
                // Another program removed the file: the note keeps its text, and typing creates the file again. If the
                // file comes back, the last common text still shows what has changed in it.
                if note.file.stamp.take().is_some() {
                    note.file.gone = true;
                }
            }
            Err(why) => note.file.trouble = Some(why.0),
        }
        self.release_note(turn, sync, id);
    }

    /// Stores the stamp of a file whose bytes the note knows but whose time may have changed, so that the next scan
    /// needn't read it.
    pub(super) fn remember_file_stamp(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        stamp: FileStamp,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        note.file.stamp = Some(stamp);
        let row =
            self.volumes.locations.get(&id).and_then(|(volume, path)| self.volumes.by_id.get(volume)?.files.get(path));
        let known = row.map(|row| (row.hash, row.size, row.mtime));
        let ours = note.adopted && known.is_some_and(|(hash, ..)| hash != stamp.hash); // said once all of it is there
        if !ours
            && known != Some((stamp.hash, stamp.size, stamp.mtime))
            && let Some(row) = self.file_row(sync, id, stamp)
        {
            turn.append_writes(vec![RowWrite::File(row)], None);
        }
    }

    /// Merges the file's text into the note. Afterwards that text is the last common text.
    pub(super) fn merge_file(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId, file: FileText) {
        // Text typed so far becomes a separate change, so that the history can tell it from the other program's.
        self.notes.end_burst(turn, id);
        for commit in &file.commits {
            self.merge_commit(turn, sync, id, commit);
        }
        // Who shows what has changed in the folder reads it again.
        let volume = self.volumes.locations.get(&id).and_then(|(volume, _)| self.volumes.by_id.get_mut(volume));
        volume.into_iter().for_each(|volume| volume.revision += 1);
        // Set first, so that the mark of this file version isn't dropped with the next change.
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.file.stamp = Some(file.stamp);
            (note.file.saved, note.file.merged) = (None, Some(turn.now));
        }
        self.notes.merge_text(turn, sync, id, &file.text);
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let same = note.text() == file.text;
        note.file.base = Some(Arc::from(file.text));
        if note.adopted {
            self.notes.end_burst(turn, id);
            let Some(note) = self.notes.open.get_mut(&id) else { return };
            if same && note.pending.is_empty() {
                note.file.due = None;
                note.file.heads = doc_heads(&note.doc);
                self.confirm_file_text(turn, sync, id, file.stamp);
            } else {
                note.file.due.get_or_insert(turn.now);
                turn.wake_at(NotesState::burst_due(turn.now));
            }
        } else {
            note.file.known = Some(file.stamp.hash);
            self.request_indexing(turn, id);
            if let Some(row) = self.file_row(sync, id, file.stamp) {
                turn.append_writes(vec![RowWrite::File(row)], None);
            }
        }
    }

    /// Merges a version of the file that a commit of Git brought, as one change by the commit's author. Afterwards that
    /// text is the last common text.
    fn merge_commit(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId, commit: &ArrivedCommit) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        // Without a document there's no history. What can't become a change now isn't told apart, either.
        if note.document().is_none() || !note.pending.is_empty() || note.file.unsure {
            return;
        }
        let time = commit.time.clamp(1, turn.now.as_seconds().max(1));
        note.by_commit = Some((commit.mark.to_message(), time));
        self.notes.merge_text(turn, sync, id, &commit.text);
        self.notes.end_burst(turn, id);
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.by_commit = None;
            note.file.base = Some(commit.text.clone());
        }
    }

    /// Returns the file's row with the document's heads at that text.
    pub(super) fn row_with_heads(&mut self, sync: &mut SyncState, id: DocId) -> Option<FileRow> {
        let (volume, path) = self.volumes.locations.get(&id)?;
        let note = self.notes.open.get(&id)?;
        let row = self.volumes.by_id.get_mut(volume)?.files.get_mut(path)?;
        if row.heads.is_empty() {
            sync.mark_stale(); // from now on it is synced
        }
        row.heads.clone_from(&note.file.heads);
        Some(row.clone())
    }

    /// Updates the file's row in its volume.
    fn file_row(&mut self, sync: &mut SyncState, id: DocId, stamp: FileStamp) -> Option<FileRow> {
        let (volume, path) = self.volumes.locations.get(&id)?;
        let note = self.notes.open.get(&id)?;
        let volume = self.volumes.by_id.get_mut(volume)?;
        volume.links.mark_changed(id);
        let row = volume.files.get_mut(path)?;
        (row.size, row.mtime, row.hash) = (stamp.size, stamp.mtime, stamp.hash);
        row.blocks = u32::try_from(note.blocks().count()).unwrap_or(u32::MAX);
        let cells = u32::try_from(note.cells().count()).unwrap_or(u32::MAX);
        if (cells == 0) != (row.cells == 0) {
            sync.mark_stale(); // outputs are synced where there are cells
        }
        row.cells = cells;
        if row.heads.is_empty() && !note.file.heads.is_empty() {
            sync.mark_stale(); // from now on it is synced
        }
        row.heads.clone_from(&note.file.heads);
        Some(row.clone())
    }

    /// Writes the note's file if the note is ahead of it and all of its text is in a durable change. Does nothing while
    /// another write is in progress.
    pub(super) fn write_file(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        if self.moves.is_moving(id) {
            return;
        }
        let Some(file) = self.volumes.note_file_path(id) else { return };
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if note.file.due.is_none_or(|due| due > turn.now) || note.file.writing.is_some() {
            return;
        }
        if let Some(why) = self.volumes.unreachable_reason(note.volume) {
            let due = turn.now.plus_ms(FILE_WRITE_RETRY_MS);
            (note.file.trouble, note.file.due) = (Some(why), Some(due));
            return turn.wake_at(due);
        }
        if note.file.stamp.is_none() && self.volumes.awaits_first_scan(id) {
            let due = turn.now.plus_ms(VANISHED_FILE_DELAY_MS);
            note.file.due = Some(due);
            return turn.wake_at(due);
        }
        let waits = turn.journal.in_flight.iter().any(|flight| flight.mirror == Some(id));
        if waits || !note.pending.is_empty() || note.file.unmerged.is_some() {
            return;
        }
        let DocPhase::Loaded(_) = &note.doc else { return };
        let text: Arc<str> = Arc::from(note.text());
        if !note.file.gone && note.file.stamp.is_some() && note.file.base.as_deref() == Some(&*text) {
            note.file.due = None;
            note.file.heads = doc_heads(&note.doc);
            if let Some(stamp) = note.file.stamp {
                self.confirm_file_text(turn, sync, id, stamp);
            }
            return;
        }
        let hash = BlobHash::of(text.as_bytes());
        if !note.file.marks.iter().any(|mark| mark.hash == hash) {
            // Record the expected content on disk first; this function is then called again.
            if let Some(write) = self.notes.mark_current_text(id) {
                turn.append_writes(vec![write], Some(id));
            }
            return;
        }
        (note.file.due, note.file.written) = (None, Some(turn.now));
        note.file.reread |= note.file.reading;
        let expected = note.file.stamp.map(|stamp| stamp.hash);
        note.file.writing = Some((text.clone(), doc_heads(&note.doc)));
        note.file.saved = Some(hash);
        turn.effects.push(Effect::WriteFile { note: id, file, expected, text });
    }

    /// Records on disk that the file holds text that is part of the note, and whether the note is ahead of it.
    fn confirm_file_text(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId, stamp: FileStamp) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let still = note.pending.is_empty() && note.file.due.is_none();
        self.request_indexing(turn, id);
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let mut writes = Vec::new();
        if let Some(at) = note.file.marks.iter().position(|mark| mark.hash == stamp.hash) {
            note.file.marks.drain(..=at);
            writes.push(marks_write(id, &note.file.marks));
        }
        if still {
            note.file.ahead_stored = false;
            writes.push(RowWrite::NoteAhead { note: id, ahead: false });
        }
        writes.extend(self.file_row(sync, id, stamp).map(RowWrite::File));
        turn.append_writes(writes, None);
        if !still {
            turn.wake_at(turn.now);
        }
    }

    /// Requests the index of the note's file.
    fn request_indexing(&self, turn: &mut ApplyContext<'_>, id: DocId) {
        // Collections and scripts contain no links or tasks, even if text looks like one.
        if self.volumes.locate_file(id).is_some_and(|(_, path)| FileKind::from_path(path) != FileKind::Note) {
            return;
        }
        if let Some((note, text)) = self.notes.open.get(&id).and_then(|note| Some((note, note.file.base.clone()?))) {
            turn.effects.push(Effect::Index { volume: note.volume, note: id, text });
        }
    }

    /// Handles what arrived while a write was in progress.
    fn finish_file_write(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if note.file.reread && !note.file.reading {
            note.file.reread = false;
            self.read_file(turn, id);
        }
    }

    pub(super) fn file_written(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        stamp: FileStamp,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let Some((text, heads)) = note.file.writing.take() else { return };
        note.file.gone = false;
        note.file.trouble = None;
        note.file.base = Some(text);
        note.file.stamp = Some(stamp);
        note.file.heads = heads;
        self.confirm_file_text(turn, sync, id, stamp);
        self.finish_file_write(turn, id);
        self.release_note(turn, sync, id);
    }

    pub(super) fn file_raced(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        theirs: FileText,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        // Their text is based on the last common text: merge on that base, then write the result.
        note.file.writing = None;
        note.file.gone = false;
        note.file.due = Some(turn.now);
        self.merge_file(turn, sync, id, theirs);
        turn.wake_at(turn.now);
        self.finish_file_write(turn, id);
    }

    /// Schedules the file to be created again after it vanished before a write, so that what was typed isn't lost. The
    /// delay is there because the file may turn out to have been renamed.
    pub(super) fn file_gone(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        note.file.writing = None;
        note.file.stamp = None;
        let due = turn.now.plus_ms(VANISHED_FILE_DELAY_MS);
        note.file.due = Some(due);
        turn.wake_at(due);
        self.finish_file_write(turn, id);
    }

    pub(super) fn file_failed(&mut self, turn: &mut ApplyContext<'_>, id: DocId, why: String) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        note.file.writing = None;
        note.file.trouble = Some(why);
        let due = turn.now.plus_ms(FILE_WRITE_RETRY_MS);
        note.file.due = Some(due);
        turn.wake_at(due);
        self.finish_file_write(turn, id);
    }
}

impl NotesState {
    /// Records that this version of the file is part of the note. The returned write is committed together with the
    /// change that makes it so. Older marks are dropped, except those of versions that are in the file or may be at any
    /// moment.
    pub(super) fn add_file_mark(&mut self, id: DocId, mark: FileMark) -> Option<RowWrite> {
        let side = &mut self.open.get_mut(&id)?.file;
        let there = side.stamp.map(|stamp| stamp.hash);
        let coming = side.writing.as_ref().map(|(text, _)| BlobHash::of(text.as_bytes()));
        let unknown = side.unmerged.is_some();
        side.marks.retain(|known| {
            let needed = unknown || Some(known.hash) == there || Some(known.hash) == coming;
            needed && known.hash != mark.hash
        });
        side.marks.push(mark);
        Some(marks_write(id, &side.marks))
    }

    /// Marks the note's current text as known; all of it is in the document.
    pub(super) fn mark_current_text(&mut self, id: DocId) -> Option<RowWrite> {
        let note = self.open.get(&id)?;
        let mark = FileMark { hash: BlobHash::of(note.text().as_bytes()), heads: doc_heads(&note.doc), text: None };
        self.add_file_mark(id, mark)
    }
}

fn marks_write(id: DocId, marks: &[FileMark]) -> RowWrite {
    let value = (!marks.is_empty()).then(|| serde_json::to_vec(marks).unwrap_or_default());
    RowWrite::Meta { key: file_marks_key(id), value }
}

fn doc_heads(doc: &DocPhase) -> Vec<[u8; 32]> {
    match doc {
        DocPhase::Loaded(doc) => doc.heads().into_iter().map(|hash| hash.0).collect(),
        DocPhase::None | DocPhase::Loading | DocPhase::Failed(_) => Vec::new(),
    }
}
