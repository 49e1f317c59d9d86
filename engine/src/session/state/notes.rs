//! State of open notes, and edits that wait for their note.

use crate::effect::Effect;
use crate::note::{DocPhase, KernelPhase, Note, NotePhase};
use crate::records::kernels::StdinRequest;
use crate::records::moves::{FileLocation, FileMove};
use crate::session::apply_context::{ApplyContext, CommandError, RemoteChangeError};
use agent::known_texts::{KnownTexts, known_text_key};
use agent::memory::experience::Experience;
use agent::memory::trace_update::TraceUpdate;
use agent::task_block::TaskStatus;
use serde_json::Value;
use std::collections::BTreeMap;
use store::DocId;
use store::Execution;
use store::ExecutionId;
use store::disk::RowWrite;
use text::task::CalendarDay;

/// State of open notes.
#[derive(Debug, Default)]
pub(in crate::session) struct NotesState {
    pub(in crate::session) open: BTreeMap<DocId, Note>,
    /// What each active run knows of the notes that it has read.
    pub(in crate::session) known_texts: BTreeMap<DocId, KnownTexts>,
    /// Notes whose files were behind when the last process ended.
    pub(in crate::session) unfinished: Vec<DocId>,
    /// Edits that wait until their note has been read.
    pub(in crate::session) jobs: Vec<NoteJob>,
}

impl NotesState {
    /// Keeps a note's text, which is about to change, for the runs that have read it.
    pub(in crate::session) fn keep_known_texts(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get(&id) else { return };
        let mut changed = Vec::new();
        for (run, known) in self.known_texts.iter_mut().filter(|(_, known)| known.knows_current(id)) {
            known.record_change_by_other(id, &note.text());
            changed.push(*run);
        }
        changed.into_iter().for_each(|run| self.save_known_texts(turn, run, &[id]));
    }

    /// Records that a run knows the current texts of notes.
    pub(in crate::session) fn record_notes_read(&mut self, turn: &mut ApplyContext<'_>, run: DocId, notes: &[DocId]) {
        let known = self.known_texts.entry(run).or_default();
        let new: Vec<DocId> = notes.iter().copied().filter(|note| known.record_read(*note)).collect();
        self.save_known_texts(turn, run, &new);
    }

    /// Stores what a run knows of these notes, so that it's known after a restart; or removes that, once it's over.
    pub(in crate::session) fn save_known_texts(&self, turn: &mut ApplyContext<'_>, run: DocId, notes: &[DocId]) {
        let value = |note: DocId| self.known_texts.get(&run).and_then(|known| known.row_value(note));
        let row = |note: &DocId| RowWrite::Meta { key: known_text_key(run, *note), value: value(*note) };
        if !notes.is_empty() {
            turn.append_writes(notes.iter().map(row).collect(), None);
        }
    }

    /// Forgets what these runs, which are over, know of notes.
    pub(in crate::session) fn forget_known_texts(
        &mut self,
        turn: &mut ApplyContext<'_>,
        is_over: impl Fn(&DocId) -> bool,
    ) {
        for (run, known) in self.known_texts.extract_if(.., |run, _| is_over(run)).collect::<Vec<_>>() {
            self.save_known_texts(turn, run, &known.notes().collect::<Vec<_>>());
        }
    }

    /// Returns the note if it's open.
    pub(in crate::session) fn note(&self, id: DocId) -> Option<&Note> {
        self.open.get(&id)
    }

    /// Returns all open notes.
    pub(in crate::session) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.open.values()
    }

    pub(in crate::session) fn on_kernel_ready(&mut self, id: DocId) {
        if let Some(note) = self.open.get_mut(&id)
            && note.kernel == KernelPhase::Off
        {
            note.kernel = KernelPhase::Idle;
        }
    }

    /// Returns the execution that the kernel is running if it's this one, so that output of a superseded execution is
    /// dropped.
    pub(in crate::session) fn current_execution(
        &mut self,
        id: DocId,
        execution: ExecutionId,
    ) -> Option<&mut Execution> {
        let note = self.open.get_mut(&id)?;
        if note.kernel != KernelPhase::Busy(execution) {
            return None;
        }
        note.executions.values_mut().find(|known| known.id == execution)
    }

    /// Stops the kernel if it isn't the one that the note names. Returns whether it does; queued cells run once the
    /// kernel has ended.
    pub(in crate::session) fn change_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> bool {
        let Some(note) = self.open.get_mut(&id) else { return false };
        let is_other = note.kernel_is.as_deref() != note.kernel_name() || note.kernel_saves != note.saves_states();
        let other = note.kernel == KernelPhase::Idle && is_other;
        if other && !note.stopping {
            note.stopping = true;
            turn.effects.push(Effect::KillKernel { note: id });
        }
        other
    }

    pub(in crate::session) fn on_stdin_request(
        &mut self,
        turn: &ApplyContext<'_>,
        id: DocId,
        execution: ExecutionId,
        prompt: String,
        password: bool,
    ) {
        let Some(note) = self.open.get_mut(&id) else { return };
        if note.kernel == KernelPhase::Busy(execution) {
            let limit = note.limit.take().map(|(_, _, seconds)| seconds);
            note.question = Some(StdinRequest { execution, prompt, password, since: turn.now, limit });
        }
    }

    /// Sends the user's answer to the running cell.
    pub(in crate::session) fn answer_stdin(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        text: String,
    ) -> Result<(), CommandError> {
        let Some(note) = self.open.get_mut(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        let Some(question) = note.question.take() else {
            return Err(CommandError("no cell of this note asks for anything".to_owned()));
        };
        turn.effects.push(Effect::Answer { note: id, text });
        if let Some(current) = note.executions.values_mut().find(|known| known.id == question.execution) {
            current.waited += u64::try_from(turn.now.ms_since(question.since)).unwrap_or(0);
        }
        if let Some(seconds) = question.limit {
            let at = turn.now.plus_ms(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2));
            note.limit = Some((at, question.execution, seconds));
            turn.wake_at(at);
        }
        Ok(())
    }

    /// Clears the outputs of a running cell.
    pub(in crate::session) fn clear_outputs(&mut self, id: DocId, execution: ExecutionId) {
        if let Some(current) = self.current_execution(id, execution) {
            current.outputs.clear();
            let cell = current.cell;
            self.output_changed(id, cell);
        }
    }

    pub(in crate::session) fn output_changed(&mut self, id: DocId, cell: store::BlockId) {
        if let Some(note) = self.open.get_mut(&id) {
            note.unsaved_outputs.insert(cell);
            note.outputs_changed += 1;
        }
    }

    /// Returns why a file can't become idle: it must be written before it's deleted, and it can't be written. `None` if
    /// nothing prevents it.
    pub(in crate::session) fn blocked_reason(&self, file: &FileMove) -> Option<String> {
        let note =
            self.open.get(&file.row.id).filter(|note| file.to == FileLocation::Trash && note.is_ahead_of_file())?;
        let why = note.file.trouble.as_ref().filter(|_| note.read_only().is_none() && !note.file.gone)?;
        Some(format!("its last edits cannot be saved, so it was not deleted: {why}"))
    }

    /// Returns whether no work is in progress on a file that must be moved.
    pub(in crate::session) fn is_idle(&self, file: &FileMove) -> bool {
        let Some(note) = self.open.get(&file.row.id) else { return true };
        let busy = note.phase == NotePhase::Reading
            || note.file.reading
            || note.file.writing.is_some()
            || self.has_note_job(file.row.id);
        let unsaved = note.is_ahead_of_file()
            || note.is_document_loading()
            || note.file.unmerged.is_some()
            || !note.remote.is_empty();
        let coming = note.is_document_loading() || !note.remote.is_empty();
        let unmade = note.file.stamp.is_none() && !note.file.gone && (coming || note.file.is_new_file());
        let unmade = unmade && note.file.trouble.is_none() && note.read_only().is_none();
        !busy && !unmade && (file.to != FileLocation::Trash || note.file.gone || !unsaved || note.read_only().is_some())
    }

    /// Returns the number of edits that wait for their notes to be read.
    pub(in crate::session) fn pending_note_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether an edit of this note waits for it to be read.
    pub(in crate::session) fn has_note_job(&self, note: DocId) -> bool {
        self.jobs.iter().any(|job| job.note == note)
    }

    /// Requests that a worker loads (or creates) the note's documents.
    pub(in crate::session) fn load_doc(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        if matches!(note.doc, DocPhase::None) {
            note.doc = DocPhase::Loading;
            turn.effects.push(Effect::LoadNote { note: id });
        }
    }

    pub(in crate::session) fn ready_note(&self, id: DocId) -> Result<&Note, CommandError> {
        let Some(note) = self.open.get(&id) else {
            return Err(CommandError("the note is not open".to_owned()));
        };
        match &note.phase {
            NotePhase::Ready => Ok(note),
            NotePhase::Reading => Err(CommandError("the note is still being read; try again in a moment".to_owned())),
            NotePhase::Failed(why) => Err(CommandError(format!("the note cannot be read: {why}"))),
        }
    }

    /// Unbinds cells that weren't queued after all, so that the user can run them with any code.
    pub(in crate::session) fn unbind_cells(&mut self, note: DocId) {
        let Some(note) = self.open.get_mut(&note) else { return };
        // A clean run queues them once the old kernel has ended.
        if !note.is_restarting() {
            note.bound.retain(|cell, _| note.queue.contains(cell));
        }
    }

    /// Returns whether a note that a call waits for is loaded or can't be read.
    pub(in crate::session) fn is_note_read_settled(&self, note: DocId) -> bool {
        self.open.get(&note).is_none_or(|note| note.is_settled() || matches!(note.phase, NotePhase::Failed(_)))
    }

    pub(in crate::session) fn open_text(&self, note: DocId) -> Option<String> {
        self.open.get(&note).filter(|note| note.phase == NotePhase::Ready).map(Note::text)
    }

    /// Stores decisions about generated views once the note's outputs document is loaded.
    pub(in crate::session) fn save_view_decisions(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id).filter(|note| !note.views.is_empty()) else { return };
        let Some(doc) = &mut note.outputs else { return };
        let time = turn.now.as_seconds();
        let mut writes = Vec::new();
        for (name, shown) in std::mem::take(&mut note.views) {
            match doc.set_view_shown(name, shown, time) {
                Ok(bytes) => writes.push(RowWrite::Chunk { doc: id.outputs_id(), bytes }),
                Err(error) => note.problems.push(error.to_string()),
            }
        }
        if std::mem::take(&mut note.outputs_new) {
            writes = vec![RowWrite::Chunk { doc: id.outputs_id(), bytes: doc.save() }];
        }
        turn.append_writes(writes, None);
    }

    pub(in crate::session) fn outputs_received(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        bytes: Vec<u8>,
    ) -> Result<(), RemoteChangeError> {
        if let Some(note) = self.open.get_mut(&id)
            && let Some(outputs) = &mut note.outputs
        {
            outputs.merge(id.outputs_id(), &bytes)?;
            note.outputs_new = false;
            for execution in outputs.latest_executions() {
                let known = note.executions.get(&execution.cell);
                // Local runs, and results that are being written to disk, are newer.
                let ours = note.unsaved_outputs.contains(&execution.cell)
                    || note.is_running_here(execution.cell)
                    || known.is_some_and(|known| known.started > execution.started);
                if !ours {
                    note.executions.insert(execution.cell, execution);
                }
            }
            note.runs += 1;
            note.outputs_changed += 1;
            note.cells_revision += 1;
        }
        turn.append_writes(vec![RowWrite::Chunk { doc: id.outputs_id(), bytes }], None);
        Ok(())
    }
}

/// An edit that waits until its note has been read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct NoteJob {
    pub(in crate::session) note: DocId,
    pub(in crate::session) at: usize,
    pub(in crate::session) what: NoteJobKind,
    pub(in crate::session) held: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) enum NoteJobKind {
    /// Replaces one occurrence of a text.
    ReplaceText { old: String, new: String },
    /// Replaces one occurrence of a text, preferably the one that follows `before`.
    ApplyHunk { before: String, old: String, new: String },
    /// Toggles the checkbox of the task with this text.
    ToggleTask { words: String, today: CalendarDay },
    /// Sets a property, or removes it if the value is `None`.
    SetProperty { key: String, value: Option<Value> },
    /// Adds an experience, subject to the checks for new experiences.
    AddExperience(Box<Experience>),
    /// Adds a task to the log.
    LogTask(String),
    /// Replaces the text of the whole note.
    ReplaceNote(String),
    /// Removes the experiences with these names.
    RemoveExperiences(Vec<String>),
    /// Changes a trace, at this time.
    UpdateTrace { update: Box<TraceUpdate>, at: String },
    /// Sets the status of a task in a plan.
    SetTaskStatus { task: String, standing: TaskStatus },
}
