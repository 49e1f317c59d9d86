//! Notes that another device deleted. One that was edited here since stays, and comes back there; one that was not, or
//! whose text never came, goes to the trash here, too. Which of both it is its document knows: whoever deletes a note
//! says which heads it had.

use super::super::{Session, Turn};
use super::Reach;
use super::files::heads_text;
use super::merges::{Merged, read_heads};
use crate::note::{DocPhase, Phase};
use store::{DocId, FileEntry};

/// What is known of a deletion.
enum Weight {
    /// It is done here, too.
    Goes,
    /// The note was edited here.
    Stays,
    /// That is not known yet.
    Waits,
    /// It is not deleted any more.
    Over,
}

impl Session {
    pub(super) fn deleted_elsewhere(&mut self, file: DocId) {
        self.sync.renames.remove(&file);
        self.sync.restored.remove(&file);
        if self.sync.coming.remove(&file).is_some() {
            self.sync.touch();
        }
        if self.places.contains_key(&file) {
            self.sync.doubted.entry(file).or_default();
        }
    }

    /// A file is there on other devices.
    pub(super) fn not_deleted(&mut self, turn: &mut Turn<'_>, file: DocId) {
        self.sync.deleted.remove(&file);
        self.weighed(turn, file);
    }

    fn weighed(&mut self, turn: &mut Turn<'_>, file: DocId) {
        if self.sync.doubted.remove(&file) == Some(true) {
            let _ = self.hold_note(turn, file, false); // it was held for this
        }
    }

    /// Finds out which of the notes that others deleted were edited here.
    pub(super) fn weigh_deletions(&mut self, turn: &mut Turn<'_>) {
        let doubted: Vec<DocId> = self.sync.doubted.keys().copied().collect();
        for file in doubted {
            match self.weigh(file) {
                Weight::Goes => {
                    self.weighed(turn, file);
                    self.sync.deleted.insert(file);
                }
                Weight::Stays => {
                    self.weighed(turn, file);
                    self.stays(turn, file);
                }
                Weight::Over => self.weighed(turn, file),
                Weight::Waits => {
                    let held = self.sync.doubted.get(&file).copied().unwrap_or_default();
                    if !held && self.hold_note(turn, file, true).is_ok() {
                        self.sync.doubted.insert(file, true);
                    }
                    if self.notes.get(&file).is_some_and(|note| note.phase == Phase::Ready && note.adopted) {
                        self.load_doc(turn, file);
                    }
                }
            }
        }
    }

    fn weigh(&self, file: DocId) -> Weight {
        let place = self.place(file).and_then(|(id, path)| {
            let volume = self.volumes.get(&id)?;
            Some((id, volume.doc.as_ref()?, volume.files.get(path)?))
        });
        let Some((volume, doc, row)) = place else { return Weight::Over };
        if doc.entry(file).is_some() {
            return Weight::Over;
        }
        let last = doc.last_heads(file);
        let is_last = |heads: &[[u8; 32]]| last.as_ref().is_none_or(|last| *last == heads_text(heads));
        // Its text has never come.
        let bare = row.size == 0 && row.heads.is_empty();
        let Some(note) = self.notes.get(&file) else {
            // Or it is as it was there.
            return if bare || !row.kind.is_text() || is_last(&row.heads) { Weight::Goes } else { Weight::Waits };
        };
        let busy = note.is_loading() || note.file.unmerged.is_some() || !note.remote.is_empty();
        match (&note.phase, &note.doc) {
            (Phase::Reading, _) => Weight::Waits,
            // What it holds is not known.
            (Phase::Failed(_), _) | (_, DocPhase::Failed(_)) => {
                if (bare && !note.adopted) || is_last(&row.heads) {
                    Weight::Goes
                } else {
                    Weight::Stays
                }
            }
            (Phase::Ready, _) if busy => Weight::Waits,
            (Phase::Ready, _) if !note.pending.is_empty() => Weight::Stays,
            (Phase::Ready, DocPhase::Loaded(doc)) => {
                let heads: Vec<[u8; 32]> = doc.heads().into_iter().map(|head| head.0).collect();
                let theirs = read_heads(last.as_deref().unwrap_or_default());
                if is_last(&heads) || doc.is_untouched() {
                    Weight::Goes
                } else if theirs.iter().all(|head| doc.knows(head)) {
                    Weight::Stays
                } else if self.more_comes(volume, file) {
                    Weight::Waits
                } else {
                    Weight::Stays
                }
            }
            (Phase::Ready, DocPhase::None | DocPhase::Loading) => {
                if note.adopted {
                    Weight::Waits
                } else {
                    Weight::Goes
                }
            }
        }
    }

    /// Whether changes of a note may still come, among them those that whoever deleted it knew.
    fn more_comes(&self, volume: DocId, file: DocId) -> bool {
        let hubs = self.sync.shares.hubs.iter().filter(|hub| hub.volumes.contains(&volume));
        let states: Vec<_> = hubs.filter_map(|hub| self.sync.states.get(&hub.url)).collect();
        let online = |reach: &Reach| *reach == Reach::Online;
        !states.iter().any(|state| online(&state.reach))
            || states.iter().any(|state| online(&state.reach) && state.behind.contains(&file))
    }

    /// Edited since the other device saw it: it stays, and comes back there.
    fn stays(&mut self, turn: &mut Turn<'_>, file: DocId) {
        let Some((volume, path)) = self.place(file).map(|(volume, path)| (volume, path.to_owned())) else { return };
        let Some(known) = self.volumes.get_mut(&volume) else { return };
        let Some(kind) = known.files.get(&path).map(|row| row.kind) else { return };
        known.doc_pending.push_back((file, Some(FileEntry { path: path.clone(), kind })));
        self.sync.say(turn.now, format!("{path} was deleted on another device and edited on this one: it stays"));
        self.report_file(turn, file, &path, Merged::Kept);
        self.write_volume_doc(turn, volume);
    }
}
