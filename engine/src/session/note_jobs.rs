//! Small edits of notes that may be closed: the note is opened, edited, saved and closed.

use crate::note::NotePhase;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::notes::{NoteJob, NoteJobKind, NotesState};
use crate::session::state::sync::SyncState;
use agent::memory::experience::{self, Experience};
use agent::memory::task_log;
use agent::memory::trace;
use agent::memory::trace_update::{self, TraceUpdate};
use agent::task_block::{self, TaskStatus};
use serde_json::Value;
use store::DocId;
use text::properties;
use text::task::{self, CalendarDay, NoteTask};
use text::text_edit::{self, TextEdit};
use text::undo::UndoChange;

impl NoteJobKind {
    /// Finds the place of the change in a text: position, old text and new text.
    fn locate_change(&self, text: &str, at: usize) -> Option<UndoChange> {
        match self {
            NoteJobKind::ReplaceText { old, new } => {
                let at = find_nearest(text, at, old)?;
                Some(UndoChange { at, removed: old.clone(), inserted: new.clone() })
            }
            NoteJobKind::ApplyHunk { before, old, new } => {
                let whole = format!("{before}{old}");
                let start =
                    find_nearest(text, at.saturating_sub(before.len()), &whole).map(|start| start + before.len());
                let at = start.or_else(|| (!old.is_empty()).then(|| find_nearest(text, at, old)).flatten())?;
                Some(UndoChange { at, removed: old.clone(), inserted: new.clone() })
            }
            NoteJobKind::ToggleTask { words, today } => {
                let mut start = 0;
                let mut found: Option<(usize, &str)> = None;
                for line in text.split_inclusive('\n') {
                    let body = line.trim_end_matches(['\n', '\r']);
                    let meant = NoteTask::parse_line(body, start).is_some_and(|task| task.text == *words);
                    if meant && found.is_none_or(|(other, _)| start.abs_diff(at) < other.abs_diff(at)) {
                        found = Some((start, body));
                    }
                    start += line.len();
                }
                let (at, line) = found?;
                let (changed, next) = task::toggle_line(line, *today)?;
                let end = if text[at + line.len()..].starts_with("\r\n") { "\r\n" } else { "\n" };
                let inserted = next.map_or(changed.clone(), |next| format!("{next}{end}{changed}"));
                Some(UndoChange { at, removed: line.to_owned(), inserted })
            }
            NoteJobKind::SetProperty { key, value } => {
                let new = properties::set_property(text, key, value.as_ref()).ok()?;
                let (from, to) = text_edit::trim_common(text, &new);
                Some(UndoChange { at: from.start, removed: text[from].to_owned(), inserted: new[to].to_owned() })
            }
            NoteJobKind::AddExperience(one) => {
                // A rejected experience leaves the text unchanged.
                let new = experience::with_experience(text, (**one).clone()).unwrap_or_else(|| text.to_owned());
                Some(full_text_change(text, &new))
            }
            NoteJobKind::LogTask(task) => Some(full_text_change(text, &task_log::with_logged_task(text, task))),
            NoteJobKind::ReplaceNote(new) => Some(full_text_change(text, new)),
            NoteJobKind::SetTaskStatus { task, standing } => {
                let new = task_block::with_task_status(text, task, *standing).unwrap_or_else(|| text.to_owned());
                Some(full_text_change(text, &new))
            }
            NoteJobKind::UpdateTrace { update, at } => {
                Some(full_text_change(text, &trace_update::updated_note(text, update, at)?))
            }
            NoteJobKind::RemoveExperiences(names) => {
                Some(full_text_change(text, &experience::without_entries(text, names)))
            }
        }
    }

    /// Returns a message that says why the job can't be done.
    fn failure_message(&self) -> String {
        let (NoteJobKind::ReplaceText { old: words, .. }
        | NoteJobKind::ApplyHunk { old: words, .. }
        | NoteJobKind::ToggleTask { words, .. }) = self
        else {
            return "the note's properties cannot be edited piece by piece; edit its text".to_owned();
        };
        let first = words.lines().next().unwrap_or(words);
        format!("the text has changed since, so it was left alone: {}", first.trim())
    }
}

impl FilesState {
    /// Replaces text in a note: the occurrence of `old` closest to `at`.
    pub(super) fn replace_note_text(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        at: usize,
        old: String,
        new: String,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, at, NoteJobKind::ReplaceText { old, new })
    }

    /// Reverts or reapplies a hunk: the text after `before`, or else the occurrence closest to `at`.
    pub(super) fn apply_hunk(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        hunk: &store::TextHunk,
        again: bool,
    ) -> Result<(), CommandError> {
        let (removed, inserted) = (hunk.removed.clone(), hunk.inserted.clone());
        let (old, new) = if again { (removed, inserted) } else { (inserted, removed) };
        self.queue_note_job(turn, sync, note, hunk.at, NoteJobKind::ApplyHunk { before: hunk.before.clone(), old, new })
    }

    /// Toggles the checkbox of a task.
    pub(super) fn toggle_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        at: usize,
        words: String,
        today: CalendarDay,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, at, NoteJobKind::ToggleTask { words, today })
    }

    /// Sets a property of a note.
    pub(super) fn set_property(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        key: String,
        value: Option<Value>,
    ) -> Result<(), CommandError> {
        if key.trim().is_empty() || key.contains(['\n', '\r']) {
            return Err(CommandError("a property needs a name of one line".to_owned()));
        }
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::SetProperty { key, value })
    }

    /// Adds an experience to its note, subject to the checks for new experiences.
    pub(super) fn add_experience(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        one: Experience,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::AddExperience(Box::new(one)))
    }

    /// Adds a task to its log.
    pub(super) fn log_task(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        task: String,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::LogTask(task))
    }

    /// Replaces the text of a note with minimal edits.
    pub(super) fn rewrite_note(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        text: String,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::ReplaceNote(text))
    }

    /// Removes experiences from their note.
    pub(super) fn remove_experiences(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        names: Vec<String>,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::RemoveExperiences(names))
    }

    /// Changes the trace at a path, if it's there.
    pub(super) fn update_trace(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        (volume, path): (DocId, &str),
        update: TraceUpdate,
    ) {
        let Some(note) = self.volumes.find_file(volume, path) else { return };
        let job = NoteJobKind::UpdateTrace { update: Box::new(update), at: trace::iso_timestamp(turn.now.0) };
        if let Err(CommandError(why)) = self.queue_note_job(turn, sync, note, 0, job) {
            turn.journal.problems.push(format!("what is known of a trace could not be kept ({why}): {path}"));
        }
    }

    /// Sets the status of a task in a plan.
    pub(super) fn set_task_status(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        task: String,
        standing: TaskStatus,
    ) -> Result<(), CommandError> {
        self.queue_note_job(turn, sync, note, 0, NoteJobKind::SetTaskStatus { task, standing })
    }

    fn queue_note_job(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        note: DocId,
        at: usize,
        what: NoteJobKind,
    ) -> Result<(), CommandError> {
        if let Some((volume, _)) = self.volumes.locate_file(note) {
            self.volumes.ensure_writable(volume)?;
        }
        let open = self.notes.open.get(&note).filter(|open| open.is_settled());
        match open.map(|open| (open.read_only().map(ToOwned::to_owned), what.locate_change(&open.text(), at).is_some()))
        {
            Some((Some(why), _)) => return Err(CommandError(format!("the note can only be read: {why}"))),
            Some((None, false)) => return Err(CommandError(what.failure_message())),
            Some((None, true)) => {
                self.notes.perform_note_job(turn, sync, &NoteJob { note, at, what, held: false });
            }
            None => {
                self.hold_note(turn, sync, note, true)?;
                self.notes.jobs.push(NoteJob { note, at, what, held: true });
            }
        }
        Ok(())
    }

    /// Performs the jobs whose notes are ready.
    pub(super) fn step_note_jobs(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState) {
        if self.notes.jobs.is_empty() {
            return;
        }
        for errand in std::mem::take(&mut self.notes.jobs) {
            match self.notes.open.get(&errand.note) {
                Some(note) if matches!(note.phase, NotePhase::Failed(_)) || note.is_settled() => {
                    self.notes.perform_note_job(turn, sync, &errand);
                    if errand.held {
                        let _ = self.hold_note(turn, sync, errand.note, false); // it was held for this
                    }
                }
                Some(_) => self.notes.jobs.push(errand),
                None => turn.journal.problems.push("a note was closed before it could be edited; try again".to_owned()),
            }
        }
    }
}

impl NotesState {
    fn perform_note_job(&mut self, turn: &mut ApplyContext<'_>, sync: &SyncState, errand: &NoteJob) {
        let NoteJob { note: id, at, what, .. } = errand;
        let note = self.open.get(id).filter(|note| note.phase == NotePhase::Ready && note.read_only().is_none());
        let Some(change) = note.and_then(|note| what.locate_change(&note.text(), *at)) else {
            turn.journal.problems.push(what.failure_message());
            return;
        };
        self.create_note_document(turn, *id);
        let mut splices: Vec<TextEdit> = text_edit::compute_edits(&change.removed, &change.inserted);
        splices.iter_mut().for_each(|splice| splice.at += change.at);
        self.splice_note(turn, sync, *id, &splices, true, Vec::new());
        // An empty edit only creates the note's document; there is nothing to undo.
        let changes = change.removed != change.inserted;
        if let Some(note) = self.open.get_mut(id).filter(|_| changes) {
            note.undo.push_step(change);
        }
    }
}

/// Returns the change that turns one text into another.
fn full_text_change(text: &str, new: &str) -> UndoChange {
    let (from, to) = text_edit::trim_common(text, new);
    UndoChange { at: from.start, removed: text[from].to_owned(), inserted: new[to].to_owned() }
}

/// Returns the occurrence of a piece of text that's closest to a position.
fn find_nearest(text: &str, at: usize, piece: &str) -> Option<usize> {
    if text.get(at..).is_some_and(|rest| rest.starts_with(piece)) {
        return Some(at);
    }
    text.match_indices(piece).map(|(found, _)| found).min_by_key(|found| found.abs_diff(at))
}
