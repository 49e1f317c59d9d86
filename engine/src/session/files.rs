//! The way between a note and its file: what another program wrote becomes splices, what was typed here is written.

use super::{Session, Turn};
use crate::effect::Effect;
use crate::event::{FileStamp, FileText};
use crate::note::DocPhase;
use std::path::PathBuf;
use std::sync::Arc;
use store::DocId;
use store::disk::{FileRow, Write};

/// A file that cannot be written is tried again after this many milliseconds.
const RETRY: i64 = 3_000;

impl Session {
    pub(super) fn file(&self, id: DocId) -> Option<PathBuf> {
        let (volume, path) = self.place(id)?;
        Some(self.volumes.get(&volume)?.root.as_ref()?.join(path))
    }

    pub(super) fn read_file(&mut self, turn: &mut Turn<'_>, id: DocId) {
        if let Some(file) = self.file(id) {
            turn.effects.push(Effect::ReadFile { note: id, file });
        }
    }

    pub(super) fn file_read(&mut self, turn: &mut Turn<'_>, id: DocId, file: Result<Option<FileText>, String>) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        match file {
            Ok(Some(file)) => {
                note.file.gone = false;
                let same = note.file.stamp.is_some_and(|stamp| stamp.hash == file.stamp.hash);
                if same {
                    note.file.stamp = Some(file.stamp);
                } else if note.file.unmerged.is_some() || note.file.base.is_none() {
                    note.file.unmerged = Some(file);
                } else if note.file.writing.is_none() {
                    self.merge_file(turn, id, file);
                }
                // While we write, the writer itself sees what somebody else put there, and says so.
            }
            Ok(None) => {
                // Removed by another program: the note keeps its text, and typing makes the file again.
                if note.file.stamp.is_some() && note.file.writing.is_none() {
                    note.file.gone = true;
                    note.file.stamp = None;
                    note.file.base = Some(Arc::from(""));
                    self.let_go(turn, id);
                }
            }
            Err(why) => note.file.trouble = Some(why),
        }
    }

    /// Takes the file's text over into the note; afterwards that text is what both have in common.
    pub(super) fn merge_file(&mut self, turn: &mut Turn<'_>, id: DocId, file: FileText) {
        self.merge_text(turn, id, &file.text);
        let Some(note) = self.notes.get_mut(&id) else { return };
        let same = note.text() == file.text;
        note.file.base = Some(Arc::from(file.text));
        note.file.stamp = Some(file.stamp);
        if note.adopted {
            self.end_burst(turn, id);
            let Some(note) = self.notes.get_mut(&id) else { return };
            if same && note.pending.is_empty() {
                note.file.due = None;
                note.file.heads = heads(&note.doc);
                note.file.ahead_stored = false;
                let row = self.file_row(id, file.stamp);
                let mut writes: Vec<Write> = row.into_iter().map(Write::File).collect();
                writes.push(Write::Ahead { note: id, ahead: false });
                self.append(turn, writes, None);
            } else if let Some(note) = self.notes.get_mut(&id) {
                note.file.due.get_or_insert(turn.now);
                self.wake_at(turn, Self::burst_due(turn.now));
            }
        } else if let Some(row) = self.file_row(id, file.stamp) {
            self.append(turn, vec![Write::File(row)], None);
        }
    }

    /// The file's row as it is, with the heads that stand for it.
    pub(super) fn row_with_heads(&mut self, id: DocId) -> Option<FileRow> {
        let (volume, path) = self.places.get(&id)?;
        let note = self.notes.get(&id)?;
        let row = self.volumes.get_mut(volume)?.files.get_mut(path)?;
        row.heads.clone_from(&note.file.heads);
        Some(row.clone())
    }

    /// What is known of the note's file now, entered into its volume.
    fn file_row(&mut self, id: DocId, stamp: FileStamp) -> Option<FileRow> {
        let (volume, path) = self.places.get(&id)?;
        let note = self.notes.get(&id)?;
        let row = self.volumes.get_mut(volume)?.files.get_mut(path)?;
        (row.size, row.mtime, row.hash) = (stamp.size, stamp.mtime, stamp.hash);
        row.blocks = u32::try_from(note.blocks().count()).unwrap_or(u32::MAX);
        row.cells = u32::try_from(note.cells().count()).unwrap_or(u32::MAX);
        row.heads.clone_from(&note.file.heads);
        Some(row.clone())
    }

    /// Has the note's text written into its file, if it is ahead, all of it is part of a durable change, and no other
    /// write is under way.
    pub(super) fn write_file(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(file) = self.file(id) else { return };
        let Some(note) = self.notes.get_mut(&id) else { return };
        if note.file.due.is_none_or(|due| due > turn.now) || note.file.writing.is_some() {
            return;
        }
        let waits = self.in_flight.iter().any(|flight| flight.mirror == Some(id));
        if waits || !note.pending.is_empty() || note.file.unmerged.is_some() {
            return;
        }
        let DocPhase::Loaded(_) = &note.doc else { return };
        let text: Arc<str> = Arc::from(note.text());
        note.file.due = None;
        if !note.file.gone && note.file.stamp.is_some() && note.file.base.as_deref() == Some(&*text) {
            self.agreed(turn, id);
            return;
        }
        let expected = note.file.stamp.map(|stamp| stamp.hash);
        note.file.writing = Some((text.clone(), heads(&note.doc)));
        turn.effects.push(Effect::WriteFile { note: id, file, expected, text });
    }

    /// File and note are the same again: says so on disk.
    fn agreed(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        let Some(stamp) = note.file.stamp else { return };
        note.file.heads = heads(&note.doc);
        let still = note.pending.is_empty() && note.file.due.is_none();
        if still {
            note.file.ahead_stored = false;
        }
        let mut writes: Vec<Write> = self.file_row(id, stamp).into_iter().map(Write::File).collect();
        if still {
            writes.push(Write::Ahead { note: id, ahead: false });
        }
        self.append(turn, writes, None);
    }

    pub(super) fn file_written(&mut self, turn: &mut Turn<'_>, id: DocId, stamp: FileStamp) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        let Some((text, heads)) = note.file.writing.take() else { return };
        note.file.gone = false;
        note.file.trouble = None;
        note.file.base = Some(text);
        note.file.stamp = Some(stamp);
        note.file.heads = heads;
        let still = note.pending.is_empty() && note.file.due.is_none();
        if still {
            note.file.ahead_stored = false;
        }
        let mut writes: Vec<Write> = self.file_row(id, stamp).into_iter().map(Write::File).collect();
        if still {
            writes.push(Write::Ahead { note: id, ahead: false });
        } else {
            self.wake_at(turn, turn.now);
        }
        self.append(turn, writes, None);
        self.let_go(turn, id);
    }

    pub(super) fn file_raced(&mut self, turn: &mut Turn<'_>, id: DocId, theirs: FileText) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        // Their text grew from what both had before: merge on that base, then write the result.
        note.file.writing = None;
        note.file.gone = false;
        note.file.due = Some(turn.now);
        self.merge_file(turn, id, theirs);
        self.wake_at(turn, turn.now);
    }

    /// The file vanished under our hands: what was typed must not vanish with it, so it is made again.
    pub(super) fn file_gone(&mut self, turn: &mut Turn<'_>, id: DocId) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        note.file.writing = None;
        note.file.stamp = None;
        note.file.base = Some(Arc::from(""));
        note.file.due = Some(turn.now);
        self.wake_at(turn, turn.now);
    }

    pub(super) fn file_failed(&mut self, turn: &mut Turn<'_>, id: DocId, why: String) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        note.file.writing = None;
        note.file.trouble = Some(why);
        let due = turn.now.plus(RETRY);
        note.file.due = Some(due);
        self.wake_at(turn, due);
    }
}

fn heads(doc: &DocPhase) -> Vec<[u8; 32]> {
    match doc {
        DocPhase::Loaded(doc) => doc.heads().into_iter().map(|hash| hash.0).collect(),
        DocPhase::None | DocPhase::Loading | DocPhase::Failed(_) => Vec::new(),
    }
}
