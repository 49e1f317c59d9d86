//! Cells: requests to a note's kernel, the kernel's answers, and how they're stored.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase, code_hash};
use crate::records::kernels::{KernelKind, KernelStateMove};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::grants::end_kernel_with_stale_grant;
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use crate::staleness::Reactivity;
use store::disk::RowWrite;
use store::{
    BlobHash, BlobRef, BlockId, CellOutput, DocId, Execution, ExecutionId, ExecutionStatus, FileKind, OutputBody,
};
use text::cell_form::CellForm;
use text::kernel_properties::kernel_not_allowed_message;
use text::markdown;

/// Milliseconds after an interrupt until a kernel that hasn't stopped is killed, so that one click takes at most a
/// second.
const INTERRUPT_GRACE_MS: i64 = 700;
/// Same as [`INTERRUPT_GRACE_MS`] for the science kernel, which force-stops a cell after two seconds and keeps its
/// process.
const SCIENCE_INTERRUPT_GRACE_MS: i64 = 3_500;
/// Same as [`INTERRUPT_GRACE_MS`] for the user's Jupyter kernels. They get longer because they may hold hours of work;
/// a second request to stop kills them at once.
const JUPYTER_INTERRUPT_GRACE_MS: i64 = 5_000;
/// Default time limit of a cell, in seconds.
const DEFAULT_CELL_TIMEOUT_SECS: u64 = 30;
/// Minimum interval between saves of a running cell's outputs, in milliseconds.
pub(super) const OUTPUT_SAVE_INTERVAL_MS: i64 = 1_000;
/// Maximum number of bytes of a stream kept in the note; the whole stream becomes a blob.
const MAX_INLINE_STREAM_BYTES: usize = 65_536;
/// Maximum number of outputs kept for a cell.
const MAX_CELL_OUTPUTS: usize = 1_000;

/// How an execution ended: its status, whether its result came from the cache, and how long it took, in milliseconds.
type ExecutionEnd = (ExecutionStatus, bool, Option<u64>);

impl NotesState {
    pub(super) fn import_notebook(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        notebook: &BlobRef,
        executions: Vec<Execution>,
    ) -> Result<(), CommandError> {
        let Some(note) = self.open.get_mut(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        let Some(doc) = &mut note.outputs else {
            return Err(CommandError("the note's outputs are not loaded yet; try again in a moment".to_owned()));
        };
        let kept =
            doc.set_notebook_blob(notebook, turn.now.as_seconds()).map_err(|error| CommandError(error.to_string()))?;
        let bytes = if std::mem::take(&mut note.outputs_new) { doc.save() } else { kept };
        for execution in executions {
            let Some(code) = note.cell_code(execution.cell).map(code_hash) else { continue };
            note.unsaved_outputs.insert(execution.cell);
            note.executions.insert(execution.cell, Execution { code, started: turn.now.0, ..execution });
            note.runs += 1;
        }
        turn.append_writes(vec![RowWrite::Chunk { doc: id.outputs_id(), bytes }], None);
        self.save_outputs(turn, id);
        Ok(())
    }

    pub(super) fn take_executions(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        executions: Vec<Execution>,
    ) -> Result<(), CommandError> {
        self.ready_note(id)?;
        self.create_note_document(turn, id);
        let Some(note) = self.open.get_mut(&id) else { return Ok(()) };
        for execution in executions {
            if note.cell_code(execution.cell).is_some() && !note.executions.contains_key(&execution.cell) {
                note.unsaved_outputs.insert(execution.cell);
                note.executions.insert(execution.cell, execution);
            }
        }
        note.runs += 1;
        self.save_outputs(turn, id);
        Ok(())
    }

    pub(super) fn interrupt_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let Some(note) = self.open.get_mut(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        let KernelPhase::Busy(execution) = note.kernel else {
            if note.shared_state.is_fetching && !note.queue.is_empty() {
                cancel_queue(note); // the cells wait for the variables of another device
                return Ok(());
            }
            return Err(CommandError("nothing is running in this note".to_owned()));
        };
        cancel_queue(note);
        let asked = note.kill.is_some_and(|(_, asked)| asked == execution);
        let grace = match (KernelKind::of(note.kernel_is.as_deref()), asked) {
            (KernelKind::BuiltIn, _) => INTERRUPT_GRACE_MS,
            (KernelKind::Science, _) => SCIENCE_INTERRUPT_GRACE_MS,
            (KernelKind::Environment | KernelKind::Jupyter, false) => JUPYTER_INTERRUPT_GRACE_MS,
            (KernelKind::Environment | KernelKind::Jupyter, true) => 0,
        };
        let at = turn.now.plus_ms(grace);
        note.kill = Some((at, execution));
        turn.effects.push(Effect::Interrupt { note: id });
        turn.wake_at(at);
        Ok(())
    }

    pub(super) fn restart_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let Some(note) = self.open.get_mut(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        if note.kernel == KernelPhase::Off {
            return Err(CommandError("no kernel is running in this note".to_owned()));
        }
        cancel_queue(note);
        note.stopping = true;
        note.starts_fresh = note.saves_states();
        turn.effects.push(Effect::KillKernel { note: id });
        Ok(())
    }

    pub(super) fn tick_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        self.tick_cell_timeout(turn, id);
        let Some(note) = self.open.get_mut(&id) else { return };
        if note.shared_state.is_delayed {
            note.announce_state(turn);
        }
        let Some((at, execution)) = note.kill else { return };
        if note.kernel != KernelPhase::Busy(execution) {
            note.kill = None;
        } else if turn.now >= at {
            note.kill = None;
            note.stopping = true;
            turn.effects.push(Effect::KillKernel { note: id });
        } else {
            turn.wake_at(at);
        }
    }

    /// Interrupts a cell whose time limit has passed, as a user would.
    fn tick_cell_timeout(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        let Some((at, execution, seconds)) = note.limit else { return };
        if note.kernel != KernelPhase::Busy(execution) {
            note.limit = None;
        } else if turn.now >= at {
            note.limit = None;
            note.overran = Some((execution, seconds));
            // Fails only if nothing is running.
            let _ = self.interrupt_kernel(turn, id);
        } else {
            turn.wake_at(at);
        }
    }

    pub(super) fn on_execution_started(&mut self, turn: &mut ApplyContext<'_>, id: DocId, execution: ExecutionId) {
        let now = turn.now.0;
        let Some(current) = self.current_execution(id, execution) else { return };
        current.status = ExecutionStatus::Running;
        current.started = now;
        let cell = current.cell;
        if let Some(note) = self.open.get_mut(&id) {
            note.unsaved_outputs.insert(cell);
            let marked = note.kind == FileKind::Note;
            let stated = note.block(cell).filter(|_| marked).and_then(|block| markdown::cell_time_limit(&block.text));
            let seconds = note.limits.remove(&cell).or(stated).unwrap_or(DEFAULT_CELL_TIMEOUT_SECS);
            let at = turn.now.plus_ms(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2));
            note.limit = (seconds > 0).then_some((at, execution, seconds));
            if seconds > 0 {
                turn.wake_at(at);
            }
        }
        self.save_outputs(turn, id);
    }

    pub(super) fn on_output(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        execution: ExecutionId,
        mut output: CellOutput,
    ) {
        let overran = self.open.get(&id).and_then(|note| note.overran).filter(|(over, _)| *over == execution);
        let Some(cell) = self.current_execution(id, execution).map(|run| run.cell) else { return };
        let form = self.open.get(&id).and_then(|note| note.cell_parts(cell)).map(|parts| parts.form);
        let timeout = overran.map(|(_, seconds)| timeout_message(self.open.get(&id), cell, seconds));
        let Some(current) = self.current_execution(id, execution) else { return };
        if let (Some(CellForm::Query | CellForm::Widget), OutputBody::Error { ename, evalue, traceback }) =
            (form, &mut output.body)
        {
            // The traceback's lines refer to code that the engine generated.
            *traceback = vec![format!("{ename}: {evalue}")];
        }
        if let (Some(timeout), OutputBody::Error { ename, evalue, traceback }) = (timeout, &mut output.body)
            && ename == "KeyboardInterrupt"
        {
            *ename = TIME_LIMIT_ERROR.to_owned();
            *evalue = timeout;
            traceback.pop();
            traceback.push(format!("{TIME_LIMIT_ERROR}: {evalue}"));
        }
        if let (
            Some(CellOutput { body: OutputBody::Stream { name, text }, .. }),
            OutputBody::Stream { name: new, text: more },
        ) = (current.outputs.last_mut(), &output.body)
            && name == new
        {
            text.push_str(&more[..more.floor_char_boundary(MAX_INLINE_STREAM_BYTES.saturating_sub(text.len()))]);
        } else if current.outputs.len() < MAX_CELL_OUTPUTS {
            if let OutputBody::Stream { text, .. } = &mut output.body {
                text.truncate(text.floor_char_boundary(MAX_INLINE_STREAM_BYTES));
            }
            current.outputs.push(output);
        }
        if let Some(note) = self.open.get_mut(&id) {
            note.unsaved_outputs.insert(cell);
        }
        turn.wake_at(turn.now.plus_ms(OUTPUT_SAVE_INTERVAL_MS));
    }

    /// Saves outputs of a running cell: at intervals, and only once they have doubled, so that the document's history
    /// doesn't hold every line twice.
    pub(super) fn tick_outputs(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        self.withdraw_excluded_state(turn, id);
        let Some(note) = self.open.get(&id) else { return };
        if note.unsaved_outputs.is_empty() {
            return;
        }
        let (at, bytes) = note.outputs_saved;
        let now_bytes = unsaved_bytes(note);
        let running = matches!(note.kernel, KernelPhase::Busy(_));
        if !running || (turn.now.ms_since(at) >= OUTPUT_SAVE_INTERVAL_MS && now_bytes >= bytes * 2) {
            self.save_outputs(turn, id);
        } else {
            turn.wake_at(turn.now.plus_ms(OUTPUT_SAVE_INTERVAL_MS));
        }
    }

    /// Saves the outputs that aren't on disk yet.
    pub(super) fn save_outputs(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        note.outputs_saved = (turn.now, unsaved_bytes(note));
        let Some(doc) = &mut note.outputs else { return };
        if note.unsaved_outputs.is_empty() {
            return;
        }
        let unsaved = std::mem::take(&mut note.unsaved_outputs);
        let executions: Vec<&Execution> = unsaved.iter().filter_map(|cell| note.executions.get(cell)).collect();
        match doc.commit(&executions, turn.now.as_seconds()) {
            Ok(bytes) => {
                let bytes = if std::mem::take(&mut note.outputs_new) { doc.save() } else { bytes };
                turn.append_writes(vec![RowWrite::Chunk { doc: id.outputs_id(), bytes }], None);
            }
            Err(error) => note.problems.push(error.to_string()),
        }
    }
}

impl FilesState {
    pub(super) fn run_cell(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        cell: BlockId,
    ) -> Result<(), CommandError> {
        self.run_reactively(turn, kernels, sync, workspace, id, vec![cell])
    }

    pub(super) fn run_cell_with_timeout(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (cell, seconds): (BlockId, u64),
    ) -> Result<(), CommandError> {
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.limits.insert(cell, seconds);
        }
        self.queue_cells(turn, kernels, sync, workspace, id, vec![cell])
    }

    pub(super) fn run_all(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        let Some(note) = self.notes.open.get(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        let mut cells: Vec<BlockId> = note.cells().collect();
        if cells.is_empty() {
            return Err(CommandError("the note has no Python cell; start one with ```python".to_owned()));
        }
        // A note may hold cells of several languages; only those that its kernel can run are run.
        if cells.iter().any(|cell| kernels.other_language_reason(note, *cell).is_none()) {
            cells.retain(|cell| kernels.other_language_reason(note, *cell).is_none());
        }
        self.queue_cells(turn, kernels, sync, workspace, id, cells)
    }

    /// Runs exactly these cells.
    pub(super) fn queue_cells(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        cells: Vec<BlockId>,
    ) -> Result<(), CommandError> {
        let branch = self.notes.open.get_mut(&id).and_then(|note| note.next_branch.take());
        let Some(note) = self.notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if let Some(why) = note.read_only() {
            return Err(CommandError(format!("the note can only be read: {why}")));
        }
        sync.ensure_not_running_remotely(id, &cells)?;
        if let Some(kernel) = note.kernel_name().filter(|_| !workspace.allows_kernel(note)) {
            return Err(CommandError(kernel_not_allowed_message(kernel)));
        }
        if let Some(why) = cells.iter().find_map(|cell| kernels.other_language_reason(note, *cell)) {
            return Err(CommandError(why));
        }
        if cells.iter().any(|cell| note.cell_code(*cell).is_none()) {
            return Err(CommandError("there is no Python cell here; start one with ```python".to_owned()));
        }
        self.notes.create_note_document(turn, id);
        self.notes.end_burst(turn, id);
        let alone = cells.len();
        for cell in cells {
            let Some(note) = self.notes.open.get_mut(&id) else { break };
            let Some(code) = note.cell_code(cell).map(code_hash) else { continue };
            let running = matches!(note.kernel, KernelPhase::Busy(now)
                if note.executions.get(&cell).is_some_and(|execution| execution.id == now));
            let pending = note.executions.get(&cell).map(|run| run.id).filter(|_| branch.is_none());
            let is_apart = pending.is_some_and(|run| note.branches.contains_key(&run));
            if running && branch.is_none() && (is_apart || note.reactivity == Reactivity::Automatic && alone > 1) {
                note.again.insert(cell); // what it needs runs anew, so it does, too; or it runs for an agent
            }
            if running || note.queue.contains(&cell) {
                if let Some(queued) = pending.filter(|_| !running) {
                    note.branches.remove(&queued); // the user requests it, too
                }
                continue; // one at a time; it runs already
            }
            let execution = Execution {
                id: ExecutionId(turn.rng.next_u64()),
                cell,
                code,
                started: turn.now.0,
                duration: None,
                waited: 0,
                status: ExecutionStatus::Queued,
                count: None,
                outputs: Vec::new(),
                cached: false,
                inputs: None,
            };
            if let Some(branch) = &branch {
                note.put_on_branch(&execution, branch);
            }
            note.executions.insert(cell, execution);
            note.queue.push_back(cell);
            note.runs += 1;
        }
        if let Some(note) = self.notes.open.get_mut(&id).filter(|note| note.reactivity == Reactivity::Automatic) {
            let order: Vec<BlockId> = note.cells().collect();
            let mut waiting: Vec<BlockId> = std::mem::take(&mut note.queue).into();
            waiting.sort_by_key(|cell| order.iter().position(|other| other == cell));
            note.queue = waiting.into();
        }
        self.start_next_cell(turn, workspace, id);
        Ok(())
    }

    /// Sends the next cell to the kernel if the kernel is free.
    pub(super) fn start_next_cell(&mut self, turn: &mut ApplyContext<'_>, workspace: &WorkspaceState, id: DocId) {
        let Some(path) = self.volumes.note_file_path(id) else { return };
        let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else { return };
        let (folder, file) = (folder.to_owned(), file.into());
        if self.notes.open.get(&id).is_some_and(|note| note.queue.is_empty()) || self.notes.change_kernel(turn, id) {
            return;
        }
        let grant = self.volumes.note_grant(workspace, id);
        if end_kernel_with_stale_grant(turn, &mut self.notes, id, &grant) {
            return;
        }
        let allowed = self.notes.open.get(&id).and_then(|note| workspace.allowed_kernel(note));
        if self.notes.open.get(&id).is_some_and(|note| !workspace.allows_kernel(note)) {
            self.notes.open.get_mut(&id).into_iter().for_each(cancel_queue); // it was changed while they waited
            return;
        }
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        // A kernel that is being stopped accepts nothing more; `KernelDied` leads back here.
        if matches!(note.kernel, KernelPhase::Busy(_)) || note.stopping {
            return;
        }
        // Which states the cells above left stands in the stored outputs; once they are read, this is called again.
        if note.is_document_loading() && note.saves_states() || note.awaits_shared_state(turn) {
            return;
        }
        while let Some(cell) = note.queue.pop_front() {
            let Some(code) = note.cell_code(cell).map(ToOwned::to_owned) else {
                note.executions.remove(&cell); // the cell was deleted while it waited
                continue;
            };
            if let Some(allowed) = note.bound.remove(&cell)
                && allowed != BlobHash::of(code.as_bytes()).to_string()
            {
                // The agent's approval was for other code; later cells don't run either.
                note.queue.push_front(cell);
                cancel_queue(note);
                return;
            }
            let place = note.cells().position(|other| other == cell).unwrap_or(0) + 1;
            let form = note.cell_parts(cell).map_or(CellForm::Code, |parts| parts.form);
            let Some(execution) = note.executions.get_mut(&cell) else { continue };
            execution.code = code_hash(&code);
            let query = form.reads_collections(&code).then(|| code.clone());
            let code = match form.kernel_code(&code) {
                Ok(code) => code.into_owned(),
                Err(why) => {
                    // Nothing is sent to the kernel. The cells that follow are canceled, because they'd miss its value.
                    let (ename, evalue) = (CELL_FORM_ERROR.to_owned(), why.to_string());
                    let traceback = vec![format!("{ename}: {evalue}")];
                    let body = OutputBody::Error { ename, evalue, traceback };
                    execution.outputs.push(CellOutput { body, whole: None });
                    execution.status = ExecutionStatus::Error;
                    note.unsaved_outputs.insert(cell);
                    cancel_queue(note);
                    self.notes.save_outputs(turn, id);
                    self.notes.finish_clean_run(id);
                    return;
                }
            };
            let execution = execution.id;
            note.kernel = KernelPhase::Busy(execution);
            let branch = note.begin_on_branch(execution);
            let forget = note.prepare_execution(execution, cell);
            let pure = note.pure_names(cell);
            let after = note.executions_above(cell, branch.is_some());
            let label = format!("cell {place}");
            let kernel = note.kernel_name().map(ToOwned::to_owned);
            let packages = note.packages.clone().map(Box::new);
            note.kernel_is.clone_from(&kernel);
            note.kernel_saves = note.saves_states();
            let saves_states = note.kernel_saves;
            note.grant_is.clone_from(&grant);
            turn.effects.push(Effect::Eval {
                note: id,
                folder,
                file,
                kernel,
                allowed,
                packages,
                grant,
                execution,
                code,
                query,
                label,
                forget,
                pure,
                after,
                branch,
                saves_states,
            });
            return;
        }
    }

    pub(super) fn on_execution_finished(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        (id, execution): (DocId, ExecutionId),
        ((status, cached, took), count, whole): (ExecutionEnd, Option<u64>, Vec<(usize, BlobRef)>),
    ) {
        let now = turn.now;
        let Some(current) = self.notes.current_execution(id, execution) else { return };
        (current.status, current.cached) = (status, cached);
        current.count = count;
        let whole_ms = took.or_else(|| u64::try_from(now.0.saturating_sub(current.started)).ok());
        current.duration = whole_ms.map(|ms| ms.saturating_sub(current.waited));
        for (at, blob) in whole {
            if let Some(output) = current.outputs.get_mut(at) {
                output.whole = Some(blob);
            }
        }
        let cell = current.cell;
        if let Some(note) = self.notes.open.get_mut(&id) {
            note.kernel = KernelPhase::Idle;
            note.question = None;
            note.unsaved_outputs.insert(cell);
            // The kernel reports a saved or an unchanged state after each cell, even after one that was stopped.
            note.shared_state.is_due = note.kernel_saves && note.saves_states() && sync.is_shared(note.volume);
            note.bind_results(execution);
            note.runs += 1;
            if status != ExecutionStatus::Ok {
                cancel_queue(note); // the first error stops what was to follow
            }
        }
        self.notes.save_outputs(turn, id);
        self.rerun_requested_cells(turn, kernels, sync, workspace, id);
        self.start_next_cell(turn, workspace, id);
        self.notes.finish_clean_run(id);
    }

    pub(super) fn on_kernel_died(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        why: &str,
    ) {
        let now = turn.now;
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let asked = std::mem::take(&mut note.stopping);
        let saves_states = note.kernel_saves && KernelKind::of(note.kernel_is.as_deref()).saves_state();
        note.kernel_trouble = (!asked && note.kernel == KernelPhase::Idle).then(|| why.to_owned());
        if let KernelPhase::Busy(execution) = note.kernel {
            let timeout = note.overran.filter(|(over, _)| asked && *over == execution).map(|(_, seconds)| {
                let running = note.executions.values().find(|known| known.id == execution);
                running.map(|running| timeout_message(Some(note), running.cell, seconds)).unwrap_or_default()
            });
            if let Some(current) = note.executions.values_mut().find(|known| known.id == execution) {
                current.status = if asked { ExecutionStatus::Interrupted } else { ExecutionStatus::Died };
                current.duration = u64::try_from(now.0.saturating_sub(current.started)).ok();
                let variables = match saves_states {
                    true => "variables are as they were before the cell",
                    false => "variables are gone",
                };
                let (ename, evalue) = if let Some(timeout) = timeout {
                    (TIME_LIMIT_ERROR.to_owned(), format!("{timeout}; {variables}"))
                } else if asked {
                    ("KernelStopped".to_owned(), format!("stopped by force; {variables}, text and outputs stay"))
                } else {
                    ("KernelDied".to_owned(), why.to_owned())
                };
                let traceback = vec![format!("{ename}: {evalue}")];
                current.outputs.push(CellOutput { body: OutputBody::Error { ename, evalue, traceback }, whole: None });
                note.unsaved_outputs.insert(current.cell);
            }
            cancel_queue(note);
        }
        note.kernel = KernelPhase::Off;
        if note.shared_state.is_due {
            note.shared_state.may_announce_at = None; // what the kernel saved before it ended isn't left to later
            note.announce_state(turn);
        }
        note.question = None;
        note.kill = None;
        if saves_states && !note.starts_fresh {
            note.keep_saved_results();
        } else {
            note.held.clear();
            note.kernel_executions.clear();
        }
        if note.starts_fresh {
            note.ignore_announced_state();
        }
        if std::mem::take(&mut note.starts_fresh)
            && let Some(folder) = self.volumes.note_file_path(id).and_then(|file| file.parent().map(ToOwned::to_owned))
        {
            note.send_state_move(turn, folder, self.volumes.note_grant(workspace, id), KernelStateMove::Fresh);
        }
        note.running = None;
        note.again.clear();
        note.runs += 1;
        self.notes.save_outputs(turn, id);
        self.start_next_cell(turn, workspace, id);
        self.step_clean_run(turn, kernels, sync, workspace, id);
        self.release_note(turn, sync, id);
    }
}

/// Error class of a widget or query cell that can't be run.
const CELL_FORM_ERROR: &str = "CellError";
/// Error class of a cell that was stopped at its time limit.
const TIME_LIMIT_ERROR: &str = "TimeLimit";

fn timeout_message(note: Option<&Note>, cell: BlockId, seconds: u64) -> String {
    let form = note.and_then(|note| note.cell_parts(cell)).map(|parts| parts.form);
    let language = match form {
        Some(CellForm::Query) => Some("sql".to_owned()),
        Some(CellForm::Widget) => Some("widget".to_owned()),
        Some(CellForm::Code) | None => note.and_then(|note| note.cell_language(cell)),
    };
    let word = language.as_deref().unwrap_or("python");
    format!("stopped after {seconds} s; write `timeout=0` behind `{word}` in the cell's first line to let it run")
}

fn unsaved_bytes(note: &Note) -> usize {
    let outputs = note.unsaved_outputs.iter().filter_map(|cell| note.executions.get(cell));
    outputs.map(Execution::output_bytes).sum()
}

/// Cancels the queued cells and marks them as interrupted.
fn cancel_queue(note: &mut Note) {
    for cell in std::mem::take(&mut note.queue) {
        if let Some(execution) = note.executions.get_mut(&cell) {
            execution.status = ExecutionStatus::Interrupted;
            note.unsaved_outputs.insert(cell);
        }
    }
    note.again.clear();
    note.bound.clear();
    note.runs += 1;
}
