//! Notes: reading, typing, edit bursts that become changes, undo, and changes from other replicas.

use crate::derived_ids::DerivedIds;
use crate::effect::Effect;
use crate::event::{DocumentLoadError, FileMark, FileReadError, FileText, NoteContent, NoteDocs};
use crate::note::{DocPhase, Note, NotePhase, code_hash};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use rand_core::RngCore;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::disk::{FileRow, RowWrite};
use store::{BlobHash, BlockId, ChangeParcel, DocId, FileKind, JournalRecord, NoteOp, import_blocks};
use text::block_edits::{self, BlockEdits};
use text::repeated_commits;
use text::text_edit::{self, TextEdit};
use text::time::UnixMillis;
use text::undo::UndoChange;
use text::{markdown, text_edit::trim_common};

/// Pause in milliseconds after which an edit burst ends.
const BURST_PAUSE_MS: i64 = 500;
/// Maximum duration of an edit burst in milliseconds.
const MAX_BURST_MS: i64 = 2_000;
/// Maximum number of operations in an edit burst.
const MAX_BURST_OPERATIONS: usize = 4_000;
/// Maximum size of a note in bytes.
const MAX_NOTE_BYTES: usize = 64 << 20;

impl FilesState {
    pub(super) fn open_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &mut KernelsState,
        workspace: &mut WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        self.volumes.note_row(id)?;
        self.read_note(turn, id);
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.shown = true;
        }
        kernels.pool.note = Some(id);
        let mut settings = workspace.settings.clone();
        settings.recent.retain(|recent| *recent != id);
        settings.recent.insert(0, id);
        settings.last_note = Some(id);
        workspace.set_settings(turn, settings);
        Ok(())
    }

    pub(super) fn hold_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        hold: bool,
    ) -> Result<(), CommandError> {
        if hold {
            self.volumes.note_row(id)?;
            self.read_note(turn, id);
        }
        let Some(note) = self.notes.open.get_mut(&id) else {
            return Err(CommandError("the note is not open".to_owned()));
        };
        note.holds = if hold { note.holds + 1 } else { note.holds.saturating_sub(1) };
        if !hold {
            self.notes.end_burst(turn, id);
            self.release_note(turn, sync, id);
        }
        Ok(())
    }

    pub(super) fn close_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
    ) -> Result<(), CommandError> {
        let Some(note) = self.notes.open.get_mut(&id) else {
            return Err(CommandError("the note is not open".to_owned()));
        };
        note.shown = false;
        self.notes.end_burst(turn, id);
        self.notes.save_outputs(turn, id);
        self.release_note(turn, sync, id);
        Ok(())
    }

    /// Closes a note that isn't shown and has no work in progress.
    pub(super) fn release_note(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        self.notes.withdraw_excluded_state(turn, id);
        let Some(note) = self.notes.open.get(&id) else { return };
        if note.shown || note.holds > 0 || !note.is_idle() {
            return;
        }
        let (volume, gone) = (note.volume, note.file.gone);
        // While others are typing, keep the note open for the next keystroke, and don't write its file for each one.
        let next = note.file.written.filter(|_| note.others && !gone).map(|written| written.plus_ms(BURST_PAUSE_MS));
        if let Some(next) = next.filter(|next| turn.now < *next) {
            turn.wake_at(next);
            return;
        }
        if gone && self.volumes.by_id.get(&volume).is_some_and(|volume| !volume.is_read()) {
            return; // it could not be said yet
        }
        if !matches!(note.kernel, crate::note::KernelPhase::Off) {
            turn.effects.push(Effect::KillKernel { note: id });
        }
        self.notes.open.remove(&id);
        // Whether the folder is there at all is known once it was looked through.
        let is_known = self.volumes.by_id.get(&volume).is_some_and(|volume| volume.scans > 0 && !volume.is_unreachable);
        if gone
            && is_known
            && let Some((_, path)) = self.volumes.locate_file(id)
        {
            let (path, mut writes) = (path.to_owned(), Vec::new());
            let row = self.volumes.by_id.get(&volume).and_then(|volume| volume.files.get(&path)).cloned();
            self.remember_gone(sync, volume, row.into_iter().collect());
            writes.extend(self.moves.take_gone_write());
            self.volumes.forget_file(sync, volume, &path, &mut writes);
            writes.extend(self.volumes.volume_doc_writes(turn, sync, volume));
            turn.append_writes(writes, None);
        }
    }

    /// Starts reading a note, unless it's open already.
    pub(super) fn read_note(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        if self.notes.open.get(&id).is_some_and(|note| !matches!(note.phase, NotePhase::Failed(_))) {
            return;
        }
        let Some((volume, path)) = self.volumes.locate_file(id).map(|(volume, path)| (volume, path.to_owned())) else {
            return;
        };
        let Some(root) = self.volumes.by_id.get(&volume).and_then(|volume| volume.root.clone()) else { return };
        let file = root.join(&path);
        let locked = self.volumes.read_only_reason(volume);
        self.notes.open.insert(id, Note { locked, ..Note::new(id, volume, FileKind::from_path(&path)) });
        if self.moves.is_moving(id) {
            return; // read at its new place
        }
        turn.effects.push(Effect::ReadNote { note: id, volume, path, file });
    }

    pub(super) fn create_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        volume: DocId,
        row: FileRow,
        text: &str,
    ) {
        let mut note = Note::new(id, volume, row.kind);
        note.phase = NotePhase::Ready;
        note.shown = true;
        note.set_blocks(import_blocks(markdown::split_file(row.kind, text).into_iter()));
        note.file.due = Some(turn.now);
        note.file.base = Some(Arc::from(""));
        self.notes.open.insert(id, note);
        // In one commit, because all devices would wait for the text of a name that has none.
        let mut with = self.volumes.volume_doc_writes(turn, sync, volume);
        with.push(RowWrite::File(row));
        self.notes.create_note_document_with(turn, id, with);
    }

    pub(super) fn note_read(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        content: Result<Box<NoteContent>, DocumentLoadError>,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if note.phase != NotePhase::Reading {
            return;
        }
        let content = match content {
            Ok(content) => *content,
            Err(DocumentLoadError(why)) => {
                note.phase = NotePhase::Failed(why);
                return;
            }
        };
        let row = content.row;
        note.adopted = content.adopted;
        note.problems = content.problems;
        note.file.ahead_stored = content.ahead || !content.records.is_empty();
        note.file.heads = row.as_ref().map(|row| row.heads.clone()).unwrap_or_default();
        let file = match content.file {
            Ok(file) => file,
            Err(FileReadError(why)) if note.adopted => {
                note.file.trouble = Some(why);
                None
            }
            Err(FileReadError(why)) => {
                note.phase = NotePhase::Failed(why);
                return;
            }
        };
        let lost = row.as_ref().is_some_and(|row| !row.heads.is_empty() && row.size > 0);
        if lost && content.blocks.is_empty() && !note.file.ahead_stored {
            // A note shown as empty would be saved as empty.
            note.phase = NotePhase::Failed("its stored text is missing; run `tracebook fsck`".to_owned());
            return;
        }
        note.phase = NotePhase::Ready;
        if !note.adopted {
            let Some(file) = file else {
                note.phase = NotePhase::Failed("its file is gone".to_owned());
                return;
            };
            note.set_blocks(content.blocks);
            note.file.known = Some(file.stamp.hash);
            note.file.base = Some(Arc::from(file.text));
            let waits = !note.remote.is_empty();
            self.remember_file_stamp(turn, sync, id, file.stamp);
            if waits {
                self.notes.create_note_document(turn, id); // changes from elsewhere need a document
            }
            return;
        }
        note.set_blocks(content.blocks);
        for record in content.records {
            note.pending_upto = record.seq;
            note.pending.extend(record.ops);
        }
        let hash = row.as_ref().map(|row| row.hash);
        note.file.known = hash;
        note.file.marks = content.marks;
        // The file is from the trash and lacks text that was typed while it was being deleted.
        let is_older = |file: &FileText| Some(file.stamp.hash) == hash && file.text != note.text();
        if !note.file.ahead_stored && file.as_ref().is_some_and(is_older) {
            note.file.ahead_stored = true;
            let ahead = RowWrite::NoteAhead { note: id, ahead: true };
            turn.append_writes(vec![ahead], None);
        }
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        match file {
            Some(file) if Some(file.stamp.hash) == hash => {
                note.file.stamp = Some(file.stamp);
                note.file.base = Some(Arc::from(file.text));
            }
            // Written or merged just before a crash: all of it is part of the note.
            Some(file) if note.file.marks.iter().any(|mark| mark.hash == file.stamp.hash) => {
                note.file.stamp = Some(file.stamp);
                note.file.base = Some(Arc::from(file.text));
            }
            // Not ahead: the note's text is the last common text.
            Some(file) if !note.file.ahead_stored => {
                note.file.base = Some(Arc::from(note.text()));
                note.file.stamp = row.map(|row| crate::records::files::FileStamp { hash: row.hash, ..file.stamp });
                self.notes.load_doc(turn, id);
                match self.notes.open.get_mut(&id).filter(|note| note.awaits_document(&file)) {
                    Some(note) => note.file.unmerged = Some(file),
                    None => self.merge_file(turn, sync, id, file),
                }
                return;
            }
            // Ahead, and the file changed too: the document knows the last common text.
            Some(file) => note.file.unmerged = Some(file),
            // Never written, or removed: it's created again because the note is ahead.
            None if note.file.ahead_stored => {}
            None => {
                note.file.base = Some(Arc::from(note.text()));
                note.file.gone = note.file.trouble.is_none();
            }
        }
        if note.file.ahead_stored {
            note.file.due = Some(turn.now);
            note.burst = Some(turn.now);
        }
        if let Some(stamp) = note.file.stamp {
            self.remember_file_stamp(turn, sync, id, stamp);
        }
        self.notes.load_doc(turn, id);
        turn.wake_at(turn.now);
    }

    pub(super) fn note_loaded(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        docs: Result<Box<NoteDocs>, DocumentLoadError>,
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let docs = match docs {
            Ok(docs) => *docs,
            Err(DocumentLoadError(why)) => {
                note.problems.push(why.clone());
                note.doc = DocPhase::Failed(why);
                note.file.unmerged = None; // what stands in the file is not known to be ours
                return;
            }
        };
        note.problems.extend(docs.problems);
        // The document was just created from the file, so its current heads match that text.
        let fresh = note.file.heads.is_empty() && docs.chunks.len() == 1;
        let imported: Vec<[u8; 32]> = docs.doc.heads().into_iter().map(|hash| hash.0).collect();
        let from_file = note.file.known.is_some_and(|hash| hash != BlobHash::of(b""));
        if fresh && from_file {
            note.file.heads = imported;
        }
        // A note restored by another device starts without text; its document knows the last text.
        if note.blocks.is_empty() && note.pending.is_empty() && sync.is_shared(note.volume) {
            note.set_blocks(docs.doc.blocks());
        }
        note.doc = DocPhase::Loaded(docs.doc);
        match docs.outputs {
            Ok(outputs) => {
                for execution in outputs.latest_executions() {
                    // Executions since then are newer than the stored ones.
                    note.executions.entry(execution.cell).or_insert(execution);
                }
                note.outputs = Some(outputs);
                note.runs += 1;
                note.outputs_new = docs.outputs_new;
            }
            Err(why) => note.problems.push(why.0),
        }
        let mut chunks: Vec<RowWrite> =
            docs.chunks.into_iter().map(|bytes| RowWrite::Chunk { doc: id, bytes }).collect();
        if fresh && from_file {
            // In one commit, so that the last common text of file and note is known after a crash.
            chunks.extend(self.row_with_heads(sync, id).map(RowWrite::File));
        }
        if !chunks.is_empty() {
            turn.append_writes(chunks, None);
        }
        if let Some((bytes, covers)) = docs.snapshot {
            let then = vec![RowWrite::DropChunks { doc: id, upto: covers }];
            turn.append_writes_then(vec![RowWrite::Snapshot { doc: id, bytes, covers }], None, then);
        }
        if let Some(note) = self.notes.open.get_mut(&id)
            && note.file.base.is_none()
        {
            let base = note.common_text(note.file.unmerged.as_ref().map(|file| file.text.as_str()));
            note.file.base = Some(Arc::from(base));
            // A file that neither the row nor a mark knows may be newer than the database.
            note.file.unsure = note.file.unmerged.is_some();
        }
        self.notes.end_burst(turn, id);
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let remote = std::mem::take(&mut note.remote);
        for parcel in remote {
            self.apply_remote_changes(turn, sync, id, parcel);
        }
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        if let Some(file) = note.file.unmerged.take() {
            self.merge_file(turn, sync, id, file);
        }
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.file.unsure = false;
        }
        self.notes.save_outputs(turn, id);
        self.notes.save_view_decisions(turn, id);
        if self.notes.open.get(&id).is_some_and(|note| note.file.due.is_some()) {
            self.write_file(turn, sync, id);
        }
    }

    pub(super) fn tick_note(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) {
        let Some(note) = self.notes.open.get(&id) else { return };
        if let Some(burst) = note.burst {
            let end = note.last_edit.plus_ms(BURST_PAUSE_MS).min(burst.plus_ms(MAX_BURST_MS));
            if turn.now >= end {
                self.notes.end_burst(turn, id);
            } else {
                turn.wake_at(end);
            }
        }
        self.notes.tick_outputs(turn, id);
        if let Some(due) = self.notes.open.get(&id).and_then(|note| note.file.due) {
            if turn.now >= due {
                self.write_file(turn, sync, id);
            } else {
                turn.wake_at(due);
            }
        }
        self.release_note(turn, sync, id);
    }

    /// Merges changes from another replica into a note.
    pub(super) fn apply_remote_changes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        mut parcel: ChangeParcel,
    ) {
        if !self.notes.open.contains_key(&id) {
            self.read_note(turn, id);
        }
        self.notes.end_burst(turn, id);
        self.notes.keep_known_texts(turn, id);
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let DocPhase::Loaded(doc) = &mut note.doc else {
            note.remote.push(parcel);
            if note.phase == NotePhase::Ready {
                self.notes.create_note_document(turn, id);
            }
            return;
        };
        let before = doc.heads();
        let mut touched = match doc.merge_parcel(&mut parcel) {
            Ok(touched) => touched,
            Err(error) => {
                note.problems.push(error.to_string());
                return;
            }
        };
        let mut writes = vec![RowWrite::Chunk { doc: id, bytes: parcel.bytes }];
        if touched.is_concurrent {
            match repeated_commits::delete_repeated_text(doc, &before, turn.now, (&mut touched, &note.blocks)) {
                Ok(change) => writes.extend(change.map(|bytes| RowWrite::Chunk { doc: id, bytes })),
                Err(error) => note.problems.push(error.to_string()),
            }
        }
        // A change may name blocks that it leaves unchanged, for example if another one deleted the same text before.
        touched.blocks.retain(|block| !note.blocks.contains(block));
        note.others |= note.file.stamp.is_some();
        // A note that arrived without text still gets its file.
        let unmade = note.file.stamp.is_none() && !note.file.gone && !note.file.ahead_stored;
        if touched.blocks.is_empty() && !unmade {
            turn.append_writes(writes, None);
            return;
        }
        if note.blocks.iter().any(|block| !block.text.is_empty())
            && let Some((_, path)) = self.volumes.locations.get(&id)
        {
            sync.add_text_merge(turn.now, (id, path.clone()), &before, &doc.heads());
        }
        for block in touched.blocks {
            let known = note.blocks.iter().position(|known| known.id == block.id);
            let old = known.map(|at| note.blocks.remove(at));
            let start = |note: &Note, block: &store::Block| -> (usize, usize) {
                let at = note.blocks.partition_point(|other| (&other.pos, other.id) < (&block.pos, block.id));
                (at, note.blocks[..at].iter().map(|other| other.text.len()).sum())
            };
            let (at, offset) = start(note, &block);
            match old {
                Some(old) if old.pos == block.pos => {
                    let (from, to) = trim_common(&old.text, &block.text);
                    note.undo.rebase_steps(offset + from.start, from.len(), to.len());
                    note.record_shift(offset + from.start, from.len(), to.len(), true);
                }
                old => {
                    if let Some(old) = old {
                        let (_, offset) = start(note, &old);
                        note.undo.rebase_steps(offset, old.text.len(), 0);
                        note.record_shift(offset, old.text.len(), 0, true);
                    }
                    note.undo.rebase_steps(offset, 0, block.text.len());
                    note.record_shift(offset, 0, block.text.len(), true);
                }
            }
            let changed = block.id;
            writes.push(RowWrite::Block { note: id, block: block.clone() });
            note.blocks.insert(at, block);
            note.refresh_blocks([changed]);
        }
        if !std::mem::replace(&mut note.file.ahead_stored, true) {
            writes.push(RowWrite::NoteAhead { note: id, ahead: true });
        }
        // Due at once, unless the file was just written: while others are typing, it's written at the same pace as for
        // local typing.
        let due = note.file.written.map_or(turn.now, |written| {
            written.plus_ms(BURST_PAUSE_MS).clamp(turn.now, turn.now.plus_ms(BURST_PAUSE_MS))
        });
        let due = *note.file.due.get_or_insert(due);
        if due <= turn.now {
            writes.extend(self.notes.mark_current_text(id));
        } else {
            turn.wake_at(due);
        }
        turn.append_writes(writes, Some(id));
        sync.place_remote_carets(&self.notes, id);
    }
}

impl NotesState {
    /// Gives a note that was only read rows on disk and a document.
    pub(super) fn create_note_document(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        self.create_note_document_with(turn, id, Vec::new());
    }

    fn create_note_document_with(&mut self, turn: &mut ApplyContext<'_>, id: DocId, with: Vec<RowWrite>) {
        let Some(note) = self.open.get_mut(&id) else { return };
        if !note.adopted {
            note.adopted = true;
            note.file.ahead_stored = true;
            let mut writes = with;
            writes.extend(note.blocks().map(|block| RowWrite::Block { note: id, block: block.clone() }));
            writes.push(RowWrite::NoteAhead { note: id, ahead: true });
            note.file.due.get_or_insert(turn.now);
            turn.append_writes(writes, None);
            // The document is made from the rows, so they must be on disk. The worker runs after these batches.
            self.load_doc(turn, id);
            turn.wake_at(turn.now.plus_ms(BURST_PAUSE_MS));
        }
        self.load_doc(turn, id);
    }

    pub(super) fn edit_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        at: usize,
        delete: usize,
        insert: &str,
    ) -> Result<(), CommandError> {
        let note = self.ready_note(id)?;
        if let Some(why) = note.edit_refusal() {
            return Err(CommandError(why));
        }
        let length = note.length();
        let Some(removed) = note.slice(at, delete) else {
            let end = at.saturating_add(delete);
            return Err(CommandError(format!(
                "the edit does not fit: bytes {at} to {end} of a note of {length} bytes, or not between characters"
            )));
        };
        if length - delete + insert.len() > MAX_NOTE_BYTES {
            return Err(CommandError(format!("a note has at most {} MiB; split it", MAX_NOTE_BYTES >> 20)));
        }
        if delete == 0 && insert.is_empty() {
            return Ok(());
        }
        let change = UndoChange { at, removed, inserted: insert.to_owned() };
        self.create_note_document(turn, id);
        self.splice_note(turn, sync, id, &[TextEdit { at, delete, insert: insert.to_owned() }], false, Vec::new());
        if let Some(note) = self.open.get_mut(&id) {
            note.undo.record(turn.now, change);
        }
        Ok(())
    }

    /// Rejects a change that was made for another text of the note.
    pub(super) fn ensure_text(&self, id: DocId, expected: BlobHash) -> Result<(), CommandError> {
        if BlobHash::of(self.ready_note(id)?.text().as_bytes()) == expected {
            return Ok(());
        }
        Err(CommandError("the note has changed since it was read; read it again".to_owned()))
    }

    pub(super) fn apply_edits(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        edits: Vec<TextEdit>,
    ) -> Result<(), CommandError> {
        let note = self.ready_note(id)?;
        if let Some(why) = note.edit_refusal() {
            return Err(CommandError(why));
        }
        let apart = edits.windows(2).all(|pair| pair[0].at.saturating_add(pair[0].delete) <= pair[1].at);
        let changes: Option<Vec<UndoChange>> = edits
            .iter()
            .rev()
            .map(|edit| {
                let removed = note.slice(edit.at, edit.delete)?;
                Some(UndoChange { at: edit.at, removed, inserted: edit.insert.clone() })
            })
            .collect();
        let Some(changes) = changes.filter(|_| apart) else {
            return Err(CommandError("the edits do not fit the note as it is, so none of them was made".to_owned()));
        };
        let grown: usize = edits.iter().map(|edit| edit.insert.len()).sum();
        if note.length().saturating_add(grown) > MAX_NOTE_BYTES {
            return Err(CommandError(format!("a note has at most {} MiB; split it", MAX_NOTE_BYTES >> 20)));
        }
        if edits.iter().all(|edit| edit.delete == 0 && edit.insert.is_empty()) {
            return Ok(());
        }
        self.create_note_document(turn, id);
        self.splice_note(turn, sync, id, &edits, false, Vec::new());
        if let Some(note) = self.open.get_mut(&id) {
            note.undo.record_all(turn.now, changes);
        }
        Ok(())
    }

    /// Undoes the last step and the steps grouped with it; with `redo`, redoes them.
    pub(super) fn undo(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        redo: bool,
    ) -> Result<(), CommandError> {
        self.undo_step(turn, sync, id, redo)?;
        while self.open.get(&id).is_some_and(|note| note.undo.has_more_in_group(redo)) {
            self.undo_step(turn, sync, id, redo)?;
        }
        Ok(())
    }

    fn undo_step(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        redo: bool,
    ) -> Result<(), CommandError> {
        if let Some(why) = self.ready_note(id)?.edit_refusal() {
            return Err(CommandError(why));
        }
        let Some(note) = self.open.get_mut(&id) else { return Ok(()) };
        let Some(change) = note.undo.next_change(redo) else {
            return Err(CommandError(if redo { "nothing to redo" } else { "nothing to undo" }.to_owned()));
        };
        let fits = note.slice(change.at, change.removed.len()).as_ref() == Some(&change.removed);
        note.undo.confirm_change(redo, fits);
        if !fits {
            return Err(CommandError("what was written there has changed since, so it was left alone".to_owned()));
        }
        self.create_note_document(turn, id);
        let mut splices = text_edit::compute_edits(&change.removed, &change.inserted);
        splices.iter_mut().for_each(|splice| splice.at += change.at);
        self.splice_note(turn, sync, id, &splices, false, Vec::new());
        Ok(())
    }

    /// Applies splices (in ascending order, at offsets of the current text) and sends them to the journal. `foreign`:
    /// the edit is from outside, so the whole structure is checked. `with`: writes to commit together with it.
    pub(super) fn splice_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        splices: &[TextEdit],
        foreign: bool,
        with: Vec<RowWrite>,
    ) {
        self.keep_known_texts(turn, id);
        let Some(note) = self.open.get_mut(&id) else { return };
        let (loaded, executions) = (note.outputs.is_some(), &note.executions);
        let grown = if sync.is_shared(note.volume) {
            block_edits::MAX_SHARED_BLOCK_BYTES
        } else {
            block_edits::MAX_BLOCK_BYTES
        };
        // Two devices that take over the same commit at the same state make the same blocks.
        let mut commit_ids = note.by_commit.as_ref().zip(note.document()).map(|((message, _), doc)| {
            let heads = doc.heads().iter().map(ToString::to_string).collect::<String>();
            DerivedIds::new(format!("{message} {heads}"))
        });
        let rng: &mut dyn RngCore = match &mut commit_ids {
            Some(ids) => ids,
            None => turn.rng,
        };
        let mut plan = BlockEdits::new(&mut note.blocks, note.kind == FileKind::Script, grown, rng);
        plan.apply_edits(splices);
        plan.restore_deleted_cells(|id, code| {
            if executions.is_empty() || executions.contains_key(&id) {
                return Vec::new();
            }
            let code = code_hash(code);
            let same = executions.values().filter(|run| run.status.is_final() && run.code == code);
            same.map(|run| run.cell).collect()
        });
        if foreign {
            plan.normalize_cells(|cell| !loaded || executions.contains_key(&cell));
        }
        let ops = plan.finish();
        for splice in splices.iter().rev() {
            note.record_shift(splice.at, splice.delete, splice.insert.len(), foreign);
        }
        let touched: BTreeSet<BlockId> = ops.iter().map(NoteOp::block_id).collect();
        note.refresh_blocks(touched);
        if !note.adopted {
            return;
        }
        note.outside &= foreign;
        note.last_edit = turn.now;
        note.burst.get_or_insert(turn.now);
        turn.journal.saving.last += 1;
        let seq = turn.journal.saving.last;
        note.pending_upto = seq;
        let record = JournalRecord { seq, note: id, ops };
        let mut writes = vec![RowWrite::Journal { seq, note: id, record: record.encode() }];
        writes.extend(with);
        note.pending.extend(record.ops);
        if !std::mem::replace(&mut note.file.ahead_stored, true) {
            writes.push(RowWrite::NoteAhead { note: id, ahead: true });
        }
        // If others may have the note open, each keystroke becomes a change; the file is written later.
        let live = sync.is_hub_online(note.volume);
        note.file.due.get_or_insert(if live { turn.now.plus_ms(BURST_PAUSE_MS) } else { turn.now });
        let full = note.pending.len() >= MAX_BURST_OPERATIONS;
        turn.append_writes(writes, None);
        if full {
            self.end_burst(turn, id);
        } else if live {
            self.end_burst(turn, id);
            turn.wake_at(turn.now.plus_ms(BURST_PAUSE_MS));
        } else {
            turn.wake_at(turn.now.plus_ms(BURST_PAUSE_MS));
        }
    }

    /// Commits everything typed since the last change as one change and sends it to the disk; the file follows.
    pub(super) fn end_burst(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        let DocPhase::Loaded(doc) = &mut note.doc else { return };
        note.burst = None;
        if note.pending.is_empty() {
            return;
        }
        let agent = std::mem::take(&mut note.by_agent).then_some(text::history::AGENT_CHANGE_MESSAGE);
        let message = agent.or(note.outside.then_some(text::history::EXTERNAL_CHANGE_MESSAGE));
        let done = match &note.by_commit {
            Some((message, time)) => doc.commit_reproducibly(&note.pending, *time, message),
            None => doc.commit(&note.pending, turn.now.as_seconds(), message),
        };
        match done {
            Ok(bytes) => {
                note.outside = false;
                let touched: BTreeSet<BlockId> = note.pending.iter().map(NoteOp::block_id).collect();
                note.pending.clear();
                let mut writes = vec![RowWrite::Chunk { doc: id, bytes }];
                for block in note.blocks.iter().filter(|block| touched.contains(&block.id)) {
                    writes.push(RowWrite::Block { note: id, block: block.clone() });
                }
                writes.push(RowWrite::JournalDone { note: id, upto: note.pending_upto });
                writes.extend(self.mark_current_text(id));
                turn.append_writes(writes, Some(id));
            }
            // The journal keeps the typed text; fsck checks the document.
            Err(error) => note.problems.push(error.to_string()),
        }
    }

    /// Merges what another program wrote to the file into the note's text.
    pub(super) fn merge_text(&mut self, turn: &mut ApplyContext<'_>, sync: &SyncState, id: DocId, theirs: &str) {
        let Some(note) = self.open.get(&id) else { return };
        if note.read_only().is_some() {
            return;
        }
        let base = note.file.base.clone().unwrap_or_else(|| Arc::from(""));
        let ours = note.text();
        let unsure = note.file.unsure && *base != *ours;
        let splices = if unsure {
            text_edit::compute_edits(&ours, &text_edit::merge_uncertain_base(&base, &ours, theirs))
        } else {
            let splices = text_edit::compute_edits(&base, theirs);
            if *base == *ours {
                splices
            } else {
                text_edit::rebase_edits(&splices, &text_edit::compute_edits(&base, &ours))
            }
        };
        let mark = FileMark { hash: BlobHash::of(theirs.as_bytes()), heads: Vec::new(), text: Some(theirs.to_owned()) };
        let with: Vec<RowWrite> =
            if note.adopted { self.add_file_mark(id, mark).into_iter().collect() } else { Vec::new() };
        let (Some(first), Some(last)) = (splices.first(), splices.last()) else {
            if !with.is_empty() {
                turn.append_writes(with, None);
            }
            return;
        };
        let Some(note) = self.open.get_mut(&id) else { return };
        if splices.iter().all(|splice| splice.delete == 0) {
            for splice in splices.iter().rev() {
                note.undo.rebase_steps(splice.at, 0, splice.insert.len());
            }
        } else {
            // Text removed by another program can be restored: its removal is an undo step of its own.
            let at = first.at;
            let removed = note.slice(at, last.at + last.delete - at).unwrap_or_default();
            let moved: Vec<TextEdit> =
                splices.iter().map(|splice| TextEdit { at: splice.at - at, ..splice.clone() }).collect();
            let inserted = text_edit::apply_edits(&removed, &moved);
            note.undo.push_step(UndoChange { at, removed, inserted });
        }
        note.outside |= note.pending.is_empty();
        self.splice_note(turn, sync, id, &splices, true, with);
    }

    pub(super) fn burst_due(now: UnixMillis) -> UnixMillis {
        now.plus_ms(BURST_PAUSE_MS)
    }
}
