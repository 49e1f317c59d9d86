//! Undo history of a note: invertible edits in byte offsets of the whole note, rebased over edits of other authors.

use crate::text_edit::shift_offset;
use crate::time::UnixMillis;

/// An edit with all data needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoChange {
    /// Byte offset in the note.
    pub at: usize,
    /// The deleted text.
    pub removed: String,
    /// The inserted text.
    pub inserted: String,
}

/// An undo step: an edit, extended by further typing without a pause.
#[derive(Clone, Debug)]
struct UndoStep {
    change: UndoChange,
    last: UnixMillis,
    /// Whether the edit was made together with the previous step, and is undone with it.
    joined: bool,
}

/// Pause in typing after which a new step starts.
const TYPING_PAUSE_MS: i64 = 1_000;
/// Maximum number of undo steps per note.
const MAX_UNDO_STEPS: usize = 10_000;

/// Steps that can be undone and redone.
#[derive(Clone, Debug, Default)]
pub struct UndoHistory {
    done: Vec<UndoStep>,
    undone: Vec<UndoStep>,
}

impl UndoHistory {
    /// Records an edit made by the user.
    pub fn record(&mut self, now: UnixMillis, change: UndoChange) {
        self.undone.clear();
        if let Some(UndoStep { change: last, last: when, joined: false }) = self.done.last_mut()
            && now.ms_since(*when) < TYPING_PAUSE_MS
            && is_continuation(last, &change)
        {
            *when = now;
            if change.removed.is_empty() {
                last.inserted.push_str(&change.inserted);
            } else if change.at == last.at {
                last.removed.push_str(&change.removed);
            } else {
                last.at = change.at;
                last.removed.insert_str(0, &change.removed);
            }
            return;
        }
        self.done.push(UndoStep { change, last: now, joined: false });
        if self.done.len() > MAX_UNDO_STEPS {
            self.done.remove(0);
        }
    }

    /// Records simultaneous edits, from the last place in the note to the first. Further typing in all of these places
    /// extends the same step.
    pub fn record_all(&mut self, now: UnixMillis, changes: Vec<UndoChange>) {
        let count = changes.len();
        if count == 1 {
            changes.into_iter().for_each(|change| self.record(now, change));
            return;
        }
        self.undone.clear();
        let from = self.done.len().saturating_sub(count);
        let last = &mut self.done[from..];
        let one_group = last.len() == count
            && last.iter().enumerate().all(|(index, step)| step.joined == (index > 0))
            && last.iter().all(|step| now.ms_since(step.last) < TYPING_PAUSE_MS && step.change.removed.is_empty());
        // Text typed further up has moved the text typed further down.
        let mut above = 0;
        let mut places = Vec::with_capacity(count);
        for step in last.iter().rev() {
            places.push(step.change.at + above);
            above += step.change.inserted.len();
        }
        places.reverse();
        let goes_on = one_group
            && last.iter().zip(&changes).zip(places).all(|((step, next), at)| {
                let moved = UndoChange { at, removed: String::new(), inserted: step.change.inserted.clone() };
                next.removed.is_empty() && is_continuation(&moved, next)
            });
        if goes_on {
            for (step, change) in last.iter_mut().zip(changes) {
                step.change.inserted.push_str(&change.inserted);
                step.last = now;
            }
            return;
        }
        let steps = changes.into_iter().enumerate();
        self.done.extend(steps.map(|(index, change)| UndoStep { change, last: now, joined: index > 0 }));
        let most = self.done.len().saturating_sub(MAX_UNDO_STEPS);
        self.done.drain(..most);
    }

    /// Returns whether the step that was just undone (or redone) has more edits that belong to it.
    pub fn has_more_in_group(&self, redo: bool) -> bool {
        match redo {
            false => self.undone.last().is_some_and(|step| step.joined) && !self.done.is_empty(),
            true => self.undone.last().is_some_and(|step| step.joined),
        }
    }

    /// Returns the number of steps that can be undone. Simultaneous edits count as one.
    pub fn step_count(&self) -> usize {
        self.done.iter().filter(|step| !step.joined).count()
    }

    /// Records an edit as a separate step.
    pub fn push_step(&mut self, change: UndoChange) {
        self.undone.clear();
        self.done.push(UndoStep { change, last: UnixMillis::default(), joined: false });
        if self.done.len() > MAX_UNDO_STEPS {
            self.done.remove(0);
        }
    }

    /// Returns the edit that undoes the last step, or redoes the last undone one.
    pub fn next_change(&self, redo: bool) -> Option<UndoChange> {
        match redo {
            false => self.done.last().map(|step| inverse(&step.change)),
            true => self.undone.last().map(|step| step.change.clone()),
        }
    }

    /// Confirms that the edit of [`UndoHistory::next_change`] was made. If it couldn't be made, the step is dropped.
    pub fn confirm_change(&mut self, redo: bool, made: bool) {
        let (from, to) = if redo { (&mut self.undone, &mut self.done) } else { (&mut self.done, &mut self.undone) };
        if let Some(step) = from.pop()
            && made
        {
            to.push(UndoStep { last: UnixMillis::default(), ..step });
        }
    }

    /// Rebases all steps over an edit of another author. A step that the edit cuts into can't be undone exactly and is
    /// dropped, with all older ones.
    pub fn rebase_steps(&mut self, at: usize, delete: usize, insert: usize) {
        for (list, redo) in [(&mut self.done, false), (&mut self.undone, true)] {
            // From the newest to the oldest, the other author's edit is mapped to the text before each step.
            let mut edit_at = at;
            let mut keep_from = 0;
            for index in (0..list.len()).rev() {
                let change = &mut list[index].change;
                let (now_there, was_there) = match redo {
                    false => (change.inserted.len(), change.removed.len()),
                    true => (change.removed.len(), change.inserted.len()),
                };
                if edit_at >= change.at + now_there && !(edit_at == change.at && delete == 0) {
                    edit_at = edit_at - now_there + was_there;
                } else if edit_at + delete <= change.at {
                    change.at = shift_offset(change.at, edit_at, delete, insert, true);
                } else {
                    keep_from = index + 1;
                    break;
                }
            }
            list.drain(..keep_from);
        }
    }
}

fn inverse(change: &UndoChange) -> UndoChange {
    UndoChange { at: change.at, removed: change.inserted.clone(), inserted: change.removed.clone() }
}

/// Returns whether `next` extends `last`: typing without a new line, or deleting in sequence.
fn is_continuation(last: &UndoChange, next: &UndoChange) -> bool {
    if next.removed.is_empty() {
        last.removed.is_empty()
            && next.at == last.at + last.inserted.len()
            && !next.inserted.contains('\n')
            && next.inserted.chars().count() == 1
            && !last.inserted.ends_with('\n')
    } else {
        next.inserted.is_empty()
            && last.inserted.is_empty()
            && (next.at == last.at || next.at + next.removed.len() == last.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(at: usize, text: &str) -> UndoChange {
        UndoChange { at, removed: String::new(), inserted: text.to_owned() }
    }

    #[test]
    fn typing_in_two_places_is_one_step() {
        let mut undo = UndoHistory::default();
        undo.record_all(UnixMillis(0), vec![typed(4, "x"), typed(1, "x")]);
        undo.record_all(UnixMillis(9), vec![typed(6, "y"), typed(2, "y")]);
        assert_eq!(undo.next_change(false).map(|change| change.removed), Some("xy".to_owned()));
        assert_eq!(undo.done.len(), 2);
        undo.record_all(UnixMillis(10), vec![typed(9, "z"), typed(3, "z")]);
        assert_eq!(undo.done.len(), 4, "the last place does not go on");
    }
}
