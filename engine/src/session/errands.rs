//! Small edits of notes that need not be open: they are opened, edited, saved and let go.

use super::{Reject, Session, Turn};
use crate::note::Phase;
use crate::undo::Change;
use agent::block::{self, Standing};
use agent::memory::experience::{self, Experience};
use agent::memory::log;
use agent::memory::trace::{self, Trace};
use serde_json::{Value, json};
use store::DocId;
use text::properties;
use text::splice::{self, Splice};
use text::task::{self, Day, Task};

/// An edit that waits until its note can be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errand {
    note: DocId,
    at: usize,
    what: What,
    held: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// One piece of text becomes another.
    Piece { old: String, new: String },
    /// One piece of text becomes another, behind these words if they are still there.
    Hunk { before: String, old: String, new: String },
    /// The box of a task of these words is clicked.
    Check { words: String, today: Day },
    /// A property gets a value, or with `None` is taken out.
    Property { key: String, value: Option<Value> },
    /// An experience comes through the gate.
    Experience(Box<Experience>),
    /// A task comes into the log.
    Task(String),
    /// The whole note becomes this text.
    Whole(String),
    /// The experiences of these names go.
    Without(Vec<String>),
    /// One replay more of a trace was good, or one less.
    Proof { good: bool },
    /// A task of a plan stands so.
    Mark { task: String, standing: Standing },
}

impl What {
    /// Where it is to be done in a text, what stands there and what comes.
    fn place(&self, text: &str, at: usize) -> Option<Change> {
        match self {
            What::Piece { old, new } => {
                let at = nearest(text, at, old)?;
                Some(Change { at, removed: old.clone(), inserted: new.clone() })
            }
            What::Hunk { before, old, new } => {
                let whole = format!("{before}{old}");
                let start = nearest(text, at.saturating_sub(before.len()), &whole).map(|start| start + before.len());
                let at = start.or_else(|| (!old.is_empty()).then(|| nearest(text, at, old)).flatten())?;
                Some(Change { at, removed: old.clone(), inserted: new.clone() })
            }
            What::Check { words, today } => {
                let mut start = 0;
                let mut found: Option<(usize, &str)> = None;
                for line in text.split_inclusive('\n') {
                    let body = line.trim_end_matches(['\n', '\r']);
                    let meant = Task::of(body, start).is_some_and(|task| task.text == *words);
                    if meant && found.is_none_or(|(other, _)| start.abs_diff(at) < other.abs_diff(at)) {
                        found = Some((start, body));
                    }
                    start += line.len();
                }
                let (at, line) = found?;
                let (changed, next) = task::toggled(line, *today)?;
                let end = if text[at + line.len()..].starts_with("\r\n") { "\r\n" } else { "\n" };
                let inserted = next.map_or(changed.clone(), |next| format!("{next}{end}{changed}"));
                Some(Change { at, removed: line.to_owned(), inserted })
            }
            What::Property { key, value } => {
                let new = properties::set(text, key, value.as_ref()).ok()?;
                let (from, to) = splice::trim(text, &new);
                Some(Change { at: from.start, removed: text[from].to_owned(), inserted: new[to].to_owned() })
            }
            What::Experience(one) => {
                // What is refused changes nothing.
                let new = experience::admitted(text, (**one).clone()).unwrap_or_else(|| text.to_owned());
                Some(whole(text, &new))
            }
            What::Task(task) => Some(whole(text, &log::logged(text, task))),
            What::Whole(new) => Some(whole(text, new)),
            What::Mark { task, standing } => {
                let new = block::marked(text, task, *standing).unwrap_or_else(|| text.to_owned());
                Some(whole(text, &new))
            }
            What::Proof { good } => {
                let known = Trace::parse(text).ok()?.known;
                let verified = known.verified_count;
                let verified = if *good { verified.saturating_add(1) } else { verified.saturating_sub(1) };
                let verified = verified.min(known.usage_count);
                let new = properties::set(text, "verified_count", Some(&json!(verified))).ok()?;
                let rating = json!(trace::rating(verified, known.usage_count));
                let new = properties::set(&new, "success_rating", Some(&rating)).ok()?;
                Some(whole(text, &new))
            }
            What::Without(names) => Some(whole(text, &experience::without(text, names))),
        }
    }

    /// Why it cannot be done.
    fn missed(&self) -> String {
        let (What::Piece { old: words, .. } | What::Hunk { old: words, .. } | What::Check { words, .. }) = self else {
            return "the note's properties cannot be edited piece by piece; edit its text".to_owned();
        };
        let first = words.lines().next().unwrap_or(words);
        format!("the text has changed since, so it was left alone: {}", first.trim())
    }
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
        self.errand(turn, note, at, What::Piece { old, new })
    }

    /// Takes a hunk back or makes it again: what stands behind `before`, or else nearest to `at`.
    pub(super) fn swap(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        hunk: &store::Hunk,
        again: bool,
    ) -> Result<(), Reject> {
        let (removed, inserted) = (hunk.removed.clone(), hunk.inserted.clone());
        let (old, new) = if again { (removed, inserted) } else { (inserted, removed) };
        self.errand(turn, note, hunk.at, What::Hunk { before: hunk.before.clone(), old, new })
    }

    /// Clicks the box of a task.
    pub(super) fn check(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        at: usize,
        words: String,
        today: Day,
    ) -> Result<(), Reject> {
        self.errand(turn, note, at, What::Check { words, today })
    }

    /// Sets a property of a note.
    pub(super) fn set_property(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        key: String,
        value: Option<Value>,
    ) -> Result<(), Reject> {
        if key.trim().is_empty() || key.contains(['\n', '\r']) {
            return Err(Reject("a property needs a name of one line".to_owned()));
        }
        self.errand(turn, note, 0, What::Property { key, value })
    }

    /// Brings an experience into its note, through the gate.
    pub(super) fn remember(&mut self, turn: &mut Turn<'_>, note: DocId, one: Experience) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Experience(Box::new(one)))
    }

    /// Brings a task into its log.
    pub(super) fn log_task(&mut self, turn: &mut Turn<'_>, note: DocId, task: String) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Task(task))
    }

    /// A note becomes another text, in the smallest steps.
    pub(super) fn retext(&mut self, turn: &mut Turn<'_>, note: DocId, text: String) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Whole(text))
    }

    /// Takes experiences out of their note.
    pub(super) fn forget_entries(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        names: Vec<String>,
    ) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Without(names))
    }

    /// Counts one replay more of a trace as good, or one less.
    pub(super) fn prove(&mut self, turn: &mut Turn<'_>, note: DocId, good: bool) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Proof { good })
    }

    /// Has a task of a plan stand so.
    pub(super) fn mark_task(
        &mut self,
        turn: &mut Turn<'_>,
        note: DocId,
        task: String,
        standing: Standing,
    ) -> Result<(), Reject> {
        self.errand(turn, note, 0, What::Mark { task, standing })
    }

    fn errand(&mut self, turn: &mut Turn<'_>, note: DocId, at: usize, what: What) -> Result<(), Reject> {
        let open = self.notes.get(&note).filter(|open| open.is_settled());
        match open.map(|open| (open.read_only().map(ToOwned::to_owned), what.place(&open.text(), at).is_some())) {
            Some((Some(why), _)) => return Err(Reject(format!("the note can only be read: {why}"))),
            Some((None, false)) => return Err(Reject(what.missed())),
            Some((None, true)) => {
                self.perform_errand(turn, &Errand { note, at, what, held: false });
            }
            None => {
                self.hold_note(turn, note, true)?;
                self.errands.push(Errand { note, at, what, held: true });
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
        let Errand { note: id, at, what, .. } = errand;
        let note = self.notes.get(id).filter(|note| note.phase == Phase::Ready && note.read_only().is_none());
        let Some(change) = note.and_then(|note| what.place(&note.text(), *at)) else {
            self.problems.push(what.missed());
            return;
        };
        self.adopt(turn, *id);
        let mut splices: Vec<Splice> = splice::difference(&change.removed, &change.inserted);
        splices.iter_mut().for_each(|splice| splice.at += change.at);
        self.splice_note(turn, *id, &splices, true, Vec::new());
        // An edit of nothing gives the note its document, and there is nothing to undo.
        let changes = change.removed != change.inserted;
        if let Some(note) = self.notes.get_mut(id).filter(|_| changes) {
            note.undo.push(change);
        }
    }

    /// How many edits wait for their notes to be read.
    pub fn errands(&self) -> usize {
        self.errands.len()
    }
}

/// The change that makes one text another.
fn whole(text: &str, new: &str) -> Change {
    let (from, to) = splice::trim(text, new);
    Change { at: from.start, removed: text[from].to_owned(), inserted: new[to].to_owned() }
}

/// Where this piece of text stands, nearest to a place.
fn nearest(text: &str, at: usize, piece: &str) -> Option<usize> {
    if text.get(at..).is_some_and(|rest| rest.starts_with(piece)) {
        return Some(at);
    }
    text.match_indices(piece).map(|(found, _)| found).min_by_key(|found| found.abs_diff(at))
}
