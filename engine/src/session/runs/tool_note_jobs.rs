//! Tool work on notes that may be closed: the notes are opened, changed or run as by a user, and closed.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::runs::{RunRecord, RunsState, ToolNoteJob, ToolNoteJobKind};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::agent_definition::BUTTON_AGENT;
use agent::known_texts::MERGED_WRITE_REMARK;
use agent::text_hunks::line_hunks;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::{failed_outcome, successful_outcome};
use commands::CommandId;
use store::{ChangeKind, DocId, ExecutionStatus, RunChange, RunOrigin, StepId};
use text::text_edit;
use text::undo::UndoChange as Undoable;
use text::{ansi, diff};

impl RunsState {
    pub(super) fn begin_tool_note_job(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        chore: ToolNoteJob,
    ) -> Option<ToolOutcome> {
        if let Err(CommandError(why)) = files.hold_note(turn, sync, chore.note, true) {
            return Some(failed_outcome(why));
        }
        self.tool_note_jobs.push(chore);
        None
    }

    /// Cancels a run's work on notes, and closes notes that were only opened for it.
    pub(super) fn drop_tool_note_jobs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        run: DocId,
    ) {
        let all = std::mem::take(&mut self.tool_note_jobs);
        let (own, others): (Vec<ToolNoteJob>, Vec<ToolNoteJob>) = all.into_iter().partition(|chore| chore.run == run);
        self.tool_note_jobs = others;
        for chore in own.into_iter().filter(|chore| matches!(chore.what, ToolNoteJobKind::ReadForCheck { .. })) {
            let _ = files.hold_note(turn, sync, chore.note, false); // it was held for this
        }
    }

    /// Continues the work on notes whose notes are ready.
    pub(in crate::session) fn step_tool_note_jobs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        kernels: &KernelsState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        if self.tool_note_jobs.is_empty() {
            return;
        }
        for mut chore in std::mem::take(&mut self.tool_note_jobs) {
            if self.recheck_tool_note_job(turn, files, sync, workspace, &chore) {
                let _ = files.hold_note(turn, sync, chore.note, false); // it was held for this
                continue;
            }
            match self.perform_tool_note_job(turn, files, kernels, sync, workspace, &mut chore) {
                None => self.tool_note_jobs.push(chore),
                Some(outcome) => {
                    if chore.what != ToolNoteJobKind::Delete {
                        let _ = files.hold_note(turn, sync, chore.note, false); // it was held for this
                    }
                    self.on_tool_done(turn, files, sync, workspace, (chore.run, &chore.call), outcome);
                }
            }
        }
    }

    /// Checks a call again if the code that it would run is now known, or is no longer what was allowed. Returns
    /// whether it did, which ends the job.
    fn recheck_tool_note_job(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        chore: &ToolNoteJob,
    ) -> bool {
        let ToolNoteJob { run, call, note, what, begun } = chore;
        if *begun || !files.notes.is_note_read_settled(*note) {
            return false;
        }
        match what {
            ToolNoteJobKind::ReadForCheck { again } => {
                self.recheck_call(turn, files, sync, workspace, (*run, call), (&[], again.clone()));
                true
            }
            ToolNoteJobKind::RunCell { execution: None, .. } | ToolNoteJobKind::RunCommand(_) => {
                match self.changed_since_approval(files, *run, call) {
                    Some(why) => {
                        self.recheck_call(turn, files, sync, workspace, (*run, call), (&[], Some(why)));
                        true
                    }
                    None => {
                        self.bind_cells(&mut files.notes, *run, call, *note);
                        false
                    }
                }
            }
            ToolNoteJobKind::RunCell { .. }
            | ToolNoteJobKind::Write(_)
            | ToolNoteJobKind::Append(_)
            | ToolNoteJobKind::Edit { .. }
            | ToolNoteJobKind::Delete => false,
        }
    }

    fn perform_tool_note_job(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        kernels: &KernelsState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        chore: &mut ToolNoteJob,
    ) -> Option<ToolOutcome> {
        let ToolNoteJob { run, call, note: id, what, begun } = chore;
        if let ToolNoteJobKind::Delete = what {
            if !*begun {
                if files.moves.ensure_no_pending_move().is_err() {
                    return None; // after what is being moved
                }
                if let Err(CommandError(why)) = files.delete_files(turn, sync, &[*id]) {
                    return Some(failed_outcome(why));
                }
                *begun = true;
                return None;
            }
            if files.moves.trash.contains_key(id) {
                let path = files.moves.trash.get(id).map(|trashed| trashed.row.path.clone()).unwrap_or_default();
                self.record_note_change(turn, files, sync, (*run, call), *id, ChangeKind::Deleted);
                return Some(successful_outcome(format!("Put {path} into the trash.")));
            }
            return files
                .moves
                .ensure_no_pending_move()
                .is_ok()
                .then(|| failed_outcome("the file could not be moved into the trash"));
        }
        let note = files.notes.open.get(id)?;
        match &note.phase {
            NotePhase::Failed(why) => return Some(failed_outcome(format!("the note cannot be read: {why}"))),
            NotePhase::Ready if note.is_settled() => {}
            NotePhase::Reading | NotePhase::Ready => return None,
        }
        let writes =
            matches!(what, ToolNoteJobKind::Write(_) | ToolNoteJobKind::Append(_) | ToolNoteJobKind::Edit { .. });
        if let Some(why) = note.edit_refusal().filter(|_| writes || note.read_only().is_some()) {
            return Some(failed_outcome(why));
        }
        let text = match what {
            ToolNoteJobKind::RunCell { .. } | ToolNoteJobKind::RunCommand(_) | ToolNoteJobKind::ReadForCheck { .. } => {
                String::new()
            }
            ToolNoteJobKind::Write(_)
            | ToolNoteJobKind::Append(_)
            | ToolNoteJobKind::Edit { .. }
            | ToolNoteJobKind::Delete => note.text(),
        };
        match what.clone() {
            ToolNoteJobKind::Write(new) => {
                let path = files.volumes.locate_file(*id).map_or("", |(_, path)| path);
                let known = files.notes.known_texts.entry(*run).or_default();
                let was_known = known.knows_current(*id);
                let merged = known.merge_write(*id, path, &new, &text);
                if !was_known {
                    files.notes.save_known_texts(turn, *run, &[*id]);
                }
                let merged = match merged {
                    Ok(merged) => merged,
                    Err(why) => return Some(failed_outcome(why.0)),
                };
                let changed = self.rewrite_note_for_call(turn, files, sync, (*run, call), *id, (&text, &merged.text));
                let remark = if merged.is_merged { format!("{MERGED_WRITE_REMARK}\n") } else { String::new() };
                Some(ToolOutcome { text: format!("{remark}{}", changed.text), ..changed })
            }
            ToolNoteJobKind::Append(more) => {
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                Some(self.rewrite_note_for_call(
                    turn,
                    files,
                    sync,
                    (*run, call),
                    *id,
                    (&text, &format!("{text}{gap}{more}")),
                ))
            }
            ToolNoteJobKind::Edit { old, new } => Some(match text.matches(&old).count() {
                0 => {
                    failed_outcome("old_content does not stand in the note; read it again and copy the passage exactly")
                }
                1 => {
                    let changed = text.replacen(&old, &new, 1);
                    self.rewrite_note_for_call(turn, files, sync, (*run, call), *id, (&text, &changed))
                }
                count => failed_outcome(format!(
                    "old_content is in the note {count} times; include more of the text around it"
                )),
            }),
            ToolNoteJobKind::RunCell { number, execution: None } => {
                let cell = note.cells().nth(number.saturating_sub(1));
                let Some(cell) = cell else {
                    let count = note.cells().count();
                    return Some(failed_outcome(format!("there is no cell {number}; the note has {count}")));
                };
                let branch = self.state_branch(&files.volumes, *run, note);
                files.notes.open.get_mut(id)?.next_branch = branch;
                if let Err(CommandError(why)) = files.run_cell(turn, kernels, sync, workspace, *id, cell) {
                    files.notes.unbind_cells(*id);
                    return Some(failed_outcome(why));
                }
                files.notes.unbind_cells(*id);
                let execution =
                    files.notes.open.get(id).and_then(|note| note.latest_execution(cell)).map(|execution| execution.id);
                *what = ToolNoteJobKind::RunCell { number, execution };
                None
            }
            ToolNoteJobKind::RunCell { number, execution: Some(execution) } => {
                let cell = note.cells().nth(number.saturating_sub(1))?;
                let Some(known) = note.latest_execution(cell).filter(|known| known.id == execution) else {
                    return Some(failed_outcome("the cell was changed or run again meanwhile"));
                };
                // The cells below it that run again are part of it.
                let reruns = note.runs_cells_in_order() && !note.pending_cells().is_empty();
                if !known.status.is_final() || reruns {
                    return None;
                }
                if known.status == ExecutionStatus::Interrupted && known.outputs.is_empty() {
                    return Some(failed_outcome(
                        "the cell was stopped before it ran, or was changed after it was allowed",
                    ));
                }
                let words = ansi::outputs_text(&known.outputs);
                let words = if words.is_empty() { "The cell printed nothing.".to_owned() } else { words };
                let (success, execution) = (known.status == ExecutionStatus::Ok, Some(execution));
                Some(ToolOutcome { success, execution, ..successful_outcome(words) })
            }
            ToolNoteJobKind::RunCommand(command) if *begun => {
                if matches!(note.kernel, KernelPhase::Busy(_)) || !note.queue.is_empty() {
                    return None;
                }
                let ran: Vec<ExecutionStatus> = note
                    .cells()
                    .filter_map(|cell| note.latest_execution(cell))
                    .map(|execution| execution.status)
                    .collect();
                let good = ran.iter().filter(|status| **status == ExecutionStatus::Ok).count();
                let words = format!("{}: {good} of {} cells ran well.", command.title(), ran.len());
                Some(ToolOutcome { success: good == ran.len(), ..successful_outcome(words) })
            }
            ToolNoteJobKind::RunCommand(command) => {
                let origin = self.runs.get(run).map(|run| run.about.origin);
                let asked = match command {
                    CommandId::NoteRunAll => files.run_all(turn, kernels, sync, workspace, *id),
                    CommandId::NoteRunStale => files.run_stale(turn, kernels, sync, workspace, *id),
                    CommandId::NoteRunClean => files.run_clean(turn, kernels, sync, workspace, *id),
                    _ => files.notes.restart_kernel(turn, *id),
                };
                files.notes.unbind_cells(*id);
                if asked.is_ok() && matches!(origin, Some(RunOrigin::Schedule { .. })) {
                    *begun = true; // nobody looks at the note: what comes of it is waited for
                    return None;
                }
                Some(asked.map_or_else(
                    |CommandError(why)| failed_outcome(why),
                    |()| successful_outcome(format!("{}: begun.", command.title())),
                ))
            }
            ToolNoteJobKind::Delete | ToolNoteJobKind::ReadForCheck { .. } => None,
        }
    }

    /// Returns the branch of a note's saved states in which the cells of a run's agent run, which is the same for all
    /// runs of its session. `None`: the note's own, for buttons and schedules of the user and in a copy of a project.
    fn state_branch(&self, volumes: &VolumesState, run: DocId, note: &Note) -> Option<String> {
        let asked = self.runs.get(&run)?;
        let first = self.ancestors(run).last().and_then(|first| self.runs.get(first)).unwrap_or(asked);
        let is_own = asked.about.agent == BUTTON_AGENT || volumes.project_of(note.volume) != note.volume;
        (!is_own && note.saves_states()).then(|| format!("session-{}", &first.about.session.to_string()[..8]))
    }

    /// Replaces the text of a note with minimal edits, and records the change in the run.
    fn rewrite_note_for_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        (run, call): (DocId, &str),
        id: DocId,
        (old, new): (&str, &str),
    ) -> ToolOutcome {
        let splices = text_edit::compute_edits(old, new);
        if splices.is_empty() {
            return successful_outcome("Nothing had to be changed: the text is there already.");
        }
        let path = files.volumes.locate_file(id).map(|(_, path)| path.to_owned()).unwrap_or_default();
        // The run itself knows what it writes.
        let own = files.notes.known_texts.remove(&run);
        // Text that the user was typing becomes a separate change, so that authors can be distinguished.
        files.notes.end_burst(turn, id);
        files.notes.create_note_document(turn, id);
        let hunks = line_hunks(old, new);
        files.notes.splice_note(turn, sync, id, &splices, true, Vec::new());
        files.notes.known_texts.extend(own.map(|own| (run, own)));
        if let Some(note) = files.notes.open.get_mut(&id) {
            let undoable = splices.iter().rev().map(|splice| Undoable {
                at: splice.at,
                removed: old.get(splice.at..splice.at + splice.delete).unwrap_or_default().to_owned(),
                inserted: splice.insert.clone(),
            });
            note.undo.record_all(turn.now, undoable.collect());
            note.by_agent = true;
        }
        files.notes.end_burst(turn, id);
        self.record_note_change(turn, files, sync, (run, call), id, ChangeKind::Edited { hunks });
        successful_outcome(format!("Changed {path}.\n{}", diff::unified_diff(&path, Some(old), Some(new))))
    }

    /// Records what a call changed.
    pub(super) fn record_note_change(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        sync: &mut SyncState,
        (run, call): (DocId, &str),
        file: DocId,
        what: ChangeKind,
    ) {
        let place = files.volumes.locate_file(file).map(|(volume, path)| (volume, path.to_owned()));
        let trashed = || files.moves.trash.get(&file).map(|trashed| (trashed.row.volume, trashed.row.path.clone()));
        let Some((volume, path)) = place.or_else(trashed) else { return };
        self.record_change(turn, sync, run, call, (volume, Some(file), path), what);
    }

    pub(super) fn record_change(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        call: &str,
        (volume, file, path): (DocId, Option<DocId>, String),
        what: ChangeKind,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let Some(pending) = run.calls.iter().find(|pending| pending.call.id == call) else { return };
        let step = pending.step;
        self.record_change_in_step(turn, sync, id, step, (volume, file, path), what);
    }

    /// Records what a step changed.
    pub(super) fn record_change_in_step(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        step: StepId,
        (volume, file, path): (DocId, Option<DocId>, String),
        what: ChangeKind,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let (number, at) = (run.changes.last().map_or(0, |change| change.number + 1), turn.now.0);
        let change = RunChange { number, step, volume, file, path, at, what, undone: Vec::new() };
        self.record_run(turn, sync, id, RunRecord { changes: vec![change], ..RunRecord::default() });
    }

    /// Stops what a call has started.
    pub(super) fn stop_tool_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        id: DocId,
        call: &str,
    ) {
        if self.children.values().any(|(asker, asked)| *asker == id && asked == call) {
            return; // what was handed on ends with the run
        }
        if self.runs.get_mut(&id).is_some_and(|run| run.stop_server_request(turn, call)) {
            return;
        }
        self.waiting_jobs.retain(|(run, waiting, _)| *run != id || waiting != call);
        let Some(at) = self.tool_note_jobs.iter().position(|chore| chore.run == id && chore.call == call) else {
            turn.effects.push(Effect::CancelTool { run: id, call: call.to_owned() });
            return;
        };
        let chore = self.tool_note_jobs.remove(at);
        if let ToolNoteJobKind::RunCell { execution: Some(_), .. } = chore.what {
            let _ = files.notes.interrupt_kernel(turn, chore.note); // it refuses only where nothing runs
        }
        if chore.what != ToolNoteJobKind::Delete {
            let _ = files.hold_note(turn, sync, chore.note, false); // it was held for this
        }
    }
}
