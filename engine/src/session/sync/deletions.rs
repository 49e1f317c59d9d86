//! Notes deleted by another device. A note that was edited here since is kept and restored there. A note that wasn't
//! edited, or whose text never arrived, is moved to the trash here too. The document decides: a deletion records the
//! heads that the deleting device knew.

use crate::note::{DocPhase, NotePhase};
use crate::records::sync::MergeKind;
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::sync::heads::{format_heads, parse_heads};
use store::{DocId, FileEntry};

/// What to do about a deletion.
enum DeletionDecision {
    /// Delete the note here, too.
    Delete,
    /// Keep the note, because it was edited here.
    Keep,
    /// Not known yet.
    Undecided,
    /// The deletion was canceled.
    Cancelled,
}

impl SyncState {
    pub(super) fn on_remote_deletion(&mut self, volumes: &VolumesState, file: DocId) {
        self.renames.remove(&file);
        self.restored.remove(&file);
        if self.expected_notes.remove(&file).is_some() {
            self.mark_stale();
        }
        if volumes.locations.contains_key(&file) {
            self.remote_deletions.entry(file).or_default();
        }
    }

    /// Cancels the deletion of a file that exists on other devices after all.
    pub(super) fn cancel_remote_deletion(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState, file: DocId) {
        self.deleted.remove(&file);
        self.finish_deletion_check(turn, files, file);
    }

    fn finish_deletion_check(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState, file: DocId) {
        if self.remote_deletions.remove(&file) == Some(true) {
            let _ = files.hold_note(turn, self, file, false); // it was held for this
        }
    }

    /// Decides about notes deleted by others, depending on whether they were edited here.
    pub(super) fn decide_deletions(&mut self, turn: &mut ApplyContext<'_>, files: &mut FilesState) {
        let doubted: Vec<DocId> = self.remote_deletions.keys().copied().collect();
        for file in doubted {
            match self.decide_deletion(files, file) {
                DeletionDecision::Delete => {
                    self.finish_deletion_check(turn, files, file);
                    self.deleted.insert(file);
                }
                DeletionDecision::Keep => {
                    self.finish_deletion_check(turn, files, file);
                    self.keep_edited_note(turn, &mut files.volumes, file);
                }
                DeletionDecision::Cancelled => self.finish_deletion_check(turn, files, file),
                DeletionDecision::Undecided => {
                    let held = self.remote_deletions.get(&file).copied().unwrap_or_default();
                    if !held && files.hold_note(turn, self, file, true).is_ok() {
                        self.remote_deletions.insert(file, true);
                    }
                    if files.notes.open.get(&file).is_some_and(|note| note.phase == NotePhase::Ready && note.adopted) {
                        files.notes.load_doc(turn, file);
                    }
                }
            }
        }
    }

    fn decide_deletion(&self, files: &FilesState, file: DocId) -> DeletionDecision {
        let place = files.volumes.locate_file(file).and_then(|(id, path)| {
            let volume = files.volumes.by_id.get(&id)?;
            Some((id, volume.doc.as_ref()?, volume.files.get(path)?))
        });
        let Some((volume, doc, row)) = place else { return DeletionDecision::Cancelled };
        if doc.file_entry(file).is_some() {
            return DeletionDecision::Cancelled;
        }
        let last = doc.last_heads(file);
        let is_last = |heads: &[[u8; 32]]| last.as_ref().is_none_or(|last| *last == format_heads(heads));
        // The note's text has never arrived.
        let bare = row.size == 0 && row.heads.is_empty();
        let Some(note) = files.notes.open.get(&file) else {
            // Or the note is as it was on the deleting device.
            return if bare || !row.kind.is_text() || is_last(&row.heads) {
                DeletionDecision::Delete
            } else {
                DeletionDecision::Undecided
            };
        };
        let busy = note.is_document_loading() || note.file.unmerged.is_some() || !note.remote.is_empty();
        match (&note.phase, &note.doc) {
            (NotePhase::Reading, _) => DeletionDecision::Undecided,
            // The note's content is unknown.
            (NotePhase::Failed(_), _) | (_, DocPhase::Failed(_)) => {
                if (bare && !note.adopted) || is_last(&row.heads) {
                    DeletionDecision::Delete
                } else {
                    DeletionDecision::Keep
                }
            }
            (NotePhase::Ready, _) if busy => DeletionDecision::Undecided,
            (NotePhase::Ready, _) if !note.pending.is_empty() => DeletionDecision::Keep,
            (NotePhase::Ready, DocPhase::Loaded(doc)) => {
                let heads: Vec<[u8; 32]> = doc.heads().into_iter().map(|head| head.0).collect();
                let theirs = parse_heads(last.as_deref().unwrap_or_default());
                if is_last(&heads) || doc.is_untouched() {
                    DeletionDecision::Delete
                } else if theirs.iter().all(|head| doc.contains_change(head)) {
                    DeletionDecision::Keep
                } else if self.may_receive_more(volume, file) {
                    DeletionDecision::Undecided
                } else {
                    DeletionDecision::Keep
                }
            }
            (NotePhase::Ready, DocPhase::None | DocPhase::Loading) => {
                if note.adopted {
                    DeletionDecision::Undecided
                } else {
                    DeletionDecision::Delete
                }
            }
        }
    }

    /// Keeps a note that was edited since the other device saw it, and restores it there.
    fn keep_edited_note(&mut self, turn: &mut ApplyContext<'_>, volumes: &mut VolumesState, file: DocId) {
        let Some((volume, path)) = volumes.locate_file(file).map(|(volume, path)| (volume, path.to_owned())) else {
            return;
        };
        let Some(known) = volumes.by_id.get_mut(&volume) else { return };
        let Some(kind) = known.files.get(&path).map(|row| row.kind) else { return };
        known.doc_pending.push_back((file, Some(FileEntry { path: path.clone(), kind })));
        self.log_line(turn.now, format!("{path} was deleted on another device and edited on this one: it stays"));
        self.add_file_merge(turn, file, &path, MergeKind::Kept);
        volumes.write_volume_doc(turn, self, volume);
    }
}
