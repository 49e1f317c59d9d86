//! Small edits of notes that need not be open: they are opened, edited, saved and let go.

use super::{Reject, Session, Turn};
use crate::note::Phase;
use crate::splice::{self, Splice};
use crate::undo::Change;
use store::DocId;

/// An edit that waits until its note can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Errand {
    note: DocId,
    at: usize,
    old: String,
    new: String,
    held: bool,
}

impl Session {
    /// Replaces a piece of a note, the one of this text that is nearest to `at`.
    pub(super) fn amend(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        at: usize,
        old: String,
        new: String,
    ) -> Result<(), Reject> {
        let open = self.notes.get(&note).filter(|open| open.is_settled());
        match open.map(|open| (open.read_only().map(ToOwned::to_owned), nearest(&open.text(), at, &old))) {
            Some((Some(why), _)) => return Err(Reject(format!("the note can only be read: {why}"))),
            Some((None, None)) => return Err(Reject(changed(&old))),
            Some((None, Some(_))) => {
                self.perform_errand(turn, &Errand { note, at, old, new, held: false });
            }
            None => {
                self.hold_note(turn, note, true)?;
                self.errands.push(Errand { note, at, old, new, held: true });
            }
        }
        Ok(())
    }

    /// Does what can be done by now.
    pub(super) fn errand_step(&mut self, turn: &mut Turn<'_>) {
        if self.errands.is_empty() {
            return;
        }
        for errand in std::mem::take(&mut self.errands) {
            match self.notes.get(&errand.note) {
                Some(note) if matches!(note.phase, Phase::Failed(_)) || note.is_settled() => {
                    self.perform_errand(turn, &errand);
                    if errand.held {
                        let _ = self.hold_note(turn, errand.note, false); // it was held for this
                    }
                }
                Some(_) => self.errands.push(errand),
                None => self.problems.push("a note was closed before it could be edited; try again".to_owned()),
            }
        }
    }

    fn perform_errand(&mut self, turn: &mut Turn<'_>, errand: &Errand) {
        let Errand { note: id, at, old, new, .. } = errand;
        let note = self.notes.get(id).filter(|note| note.phase == Phase::Ready && note.read_only().is_none());
        let Some(at) = note.and_then(|note| nearest(&note.text(), *at, old)) else {
            self.problems.push(changed(old));
            return;
        };
        self.adopt(turn, *id);
        let mut splices: Vec<Splice> = splice::difference(old, new);
        splices.iter_mut().for_each(|splice| splice.at += at);
        self.splice_note(turn, *id, &splices, true, Vec::new());
        if let Some(note) = self.notes.get_mut(id) {
            note.undo.push(Change { at, removed: old.clone(), inserted: new.clone() });
        }
    }

    /// How many edits wait for their notes to be read.
    pub fn errands(&self) -> usize {
        self.errands.len()
    }
}

fn changed(old: &str) -> String {
    let first = old.lines().next().unwrap_or(old);
    format!("the text has changed since, so it was left alone: {}", first.trim())
}

/// Where this piece of text stands, nearest to a place.
fn nearest(text: &str, at: usize, piece: &str) -> Option<usize> {
    if text.get(at..).is_some_and(|rest| rest.starts_with(piece)) {
        return Some(at);
    }
    text.match_indices(piece).map(|(found, _)| found).min_by_key(|found| found.abs_diff(at))
}
