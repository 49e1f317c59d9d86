//! Saved states of a note's kernel: switching between them, and running a cell in the state that the cells above left.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{KernelKind, KernelStateMove, KernelStateReport};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use std::collections::HashSet;
use store::{BlockId, DocId, Execution, ExecutionId, ExecutionStatus};

/// Prefix of problems that report unsaved variables.
const NOT_SAVED: &str = "the variables after the last cell aren't saved";

impl Note {
    /// Returns why the note's variables couldn't be saved; `None` if there was no problem.
    pub fn unsaved_state_problem(&self) -> Option<&str> {
        self.problems.iter().map(String::as_str).find(|problem| problem.starts_with(NOT_SAVED))
    }

    /// Returns the result of the last move between the kernel's saved states.
    pub fn state_move(&self) -> &KernelStateReport {
        &self.state_move
    }

    /// Returns why the note's last kernel ended by itself while it ran no cell, if it did.
    pub fn kernel_trouble(&self) -> Option<&str> {
        self.kernel_trouble.as_deref()
    }

    /// Returns whether the note's kernel saves states.
    pub fn saves_states(&self) -> bool {
        KernelKind::of(self.kernel_name()).saves_state() && self.may_save_states
    }

    /// Returns whether the note's properties allow its variables to be saved.
    pub fn may_save_states(&self) -> bool {
        self.may_save_states
    }

    /// Returns whether undoing the last run undoes this one: it left a state, and no other run did so after it.
    pub fn is_last_saved_run(&self, run: &Execution) -> bool {
        let is_held = |one: &Execution| self.kernel_executions.contains(&one.id) && self.saved_states.contains(&one.id);
        is_held(run) && !self.executions.values().any(|other| other.started > run.started && is_held(other))
    }

    /// Returns an error that says why the note's variables aren't saved, if they aren't.
    pub(in crate::session) fn ensure_states_are_saved(&self) -> Result<(), CommandError> {
        if self.saves_states() {
            return Ok(());
        }
        let why = match self.may_save_states {
            true => "only the kernel science saves its variables; choose it for this note (Choose kernel)",
            false => "this note's variables aren't saved, since its properties say `state: off`; remove that line",
        };
        Err(CommandError(why.to_owned()))
    }

    /// Returns whether each cell runs in the state that the cells above it left.
    pub(crate) fn runs_cells_in_order(&self) -> bool {
        self.saves_states() && self.faithful
    }

    /// Returns the executions in whose state a cell runs: those of the cells above it. `None` means the current state.
    /// `is_apart`: on a branch, whose runs the user's own state doesn't have.
    pub(in crate::session) fn executions_above(&self, cell: BlockId, is_apart: bool) -> Option<Vec<ExecutionId>> {
        if !self.runs_cells_in_order() {
            return None;
        }
        let run = |above: BlockId| {
            let latest = self.executions.get(&above)?.id;
            let is_other = !is_apart && self.branches.contains_key(&latest);
            if is_other { self.own_runs.get(&above).copied() } else { Some(latest) }
        };
        Some(self.cells().take_while(|other| *other != cell).filter_map(run).collect())
    }

    /// Records that an execution, which replaces the cell's latest one, is to run on a branch of the saved states.
    pub(in crate::session) fn put_on_branch(&mut self, execution: &Execution, branch: &str) {
        let latest = self.executions.get(&execution.cell).map(|run| run.id);
        if let Some(own) = latest.filter(|latest| !self.branches.contains_key(latest)) {
            self.own_runs.insert(execution.cell, own);
        }
        self.branches.insert(execution.id, branch.to_owned());
    }

    /// Returns the branch of saved states in which an execution begins. `None`: in the user's own state, which is known
    /// to have its results from now on.
    pub(in crate::session) fn begin_on_branch(&mut self, execution: ExecutionId) -> Option<String> {
        if !self.saves_states() {
            self.branches.remove(&execution); // its kernel has only one state
        }
        let branch = self.branches.get(&execution).cloned();
        if branch.is_none() {
            self.kernel_executions.insert(execution);
        }
        branch
    }

    /// Removes the variables that these executions bound.
    fn forget_executions(&mut self, undone: &[ExecutionId]) {
        for execution in undone {
            self.kernel_executions.remove(execution);
            self.held.retain(|_, held| {
                held.by.retain(|by| by != execution);
                !held.by.is_empty()
            });
        }
        self.runs += 1;
    }

    /// Forgets on which branches earlier executions ran, because the user has moved, perhaps to one of these branches.
    fn forget_branches(&mut self) {
        let pending = self.executions.values().filter(|run| !run.status.is_final()).map(|run| run.id);
        let pending: HashSet<ExecutionId> = pending.collect();
        self.branches.retain(|run, _| pending.contains(run));
        self.own_runs.clear();
    }

    /// Keeps only saved results: the kernel's process is gone, and with it everything that it hadn't saved.
    pub(in crate::session) fn keep_saved_results(&mut self) {
        let unsaved: Vec<ExecutionId> = self.kernel_executions.difference(&self.saved_states).copied().collect();
        self.forget_executions(&unsaved);
    }
}

impl NotesState {
    pub(super) fn on_state_saved(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        execution: ExecutionId,
        problem: Option<String>,
    ) {
        let Some(note) = self.open.get_mut(&id) else { return };
        match problem {
            None => {
                note.saved_states.insert(execution);
                // This state includes what couldn't be saved before.
                note.problems.retain(|problem| !problem.starts_with(NOT_SAVED));
                self.announce_saved_state(turn, sync, id);
            }
            Some(why) => {
                note.shared_state.is_due = false;
                let said = format!("{NOT_SAVED}: {why}");
                if !note.problems.contains(&said) {
                    note.problems.push(said);
                }
            }
        }
    }

    /// Announces the states before the one that was expected, if they still have to be.
    pub(super) fn on_state_unchanged(&mut self, turn: &mut ApplyContext<'_>, sync: &SyncState, id: DocId) {
        if self.open.get(&id).is_some_and(Note::is_announcing_state) {
            self.announce_saved_state(turn, sync, id);
        }
    }

    /// Announces what the kernel has saved by now, if the note is still shared.
    fn announce_saved_state(&mut self, turn: &mut ApplyContext<'_>, sync: &SyncState, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        match sync.is_shared(note.volume) {
            true => note.announce_state(turn),
            false => note.shared_state.drop_announcement(), // it was shared when the cell ended
        }
    }
}

impl FilesState {
    /// Switches to another saved state at the user's request.
    pub(super) fn move_kernel_state(
        &mut self,
        turn: &mut ApplyContext<'_>,
        workspace: &WorkspaceState,
        id: DocId,
        to: KernelStateMove,
    ) -> Result<(), CommandError> {
        let folder = self.volumes.note_file_path(id).and_then(|file| file.parent().map(ToOwned::to_owned));
        let note = self.notes.open.get_mut(&id).filter(|note| note.phase == NotePhase::Ready);
        let (Some(note), Some(folder)) = (note, folder) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        note.ensure_states_are_saved()?;
        if matches!(note.kernel, KernelPhase::Busy(_)) || note.stopping {
            return Err(CommandError("a cell is running; stop it first".to_owned()));
        }
        if to == KernelStateMove::Receive {
            return self.fetch_shared_state(turn, id);
        }
        note.send_state_move(turn, folder, self.volumes.note_grant(workspace, id), to);
        Ok(())
    }

    /// Applies a finished move to another saved state.
    pub(super) fn on_state_moved(
        &mut self,
        turn: &mut ApplyContext<'_>,
        (kernels, sync, workspace): (&KernelsState, &SyncState, &WorkspaceState),
        id: DocId,
        report: KernelStateReport,
        (undone, rerun): (&[ExecutionId], bool),
    ) {
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        let branch = match note.kernel {
            KernelPhase::Busy(running) if rerun => note.branches.get(&running).cloned(),
            KernelPhase::Busy(_) | KernelPhase::Idle | KernelPhase::Off => None,
        };
        if branch.is_none() {
            note.forget_executions(undone);
        }
        if !rerun {
            note.forget_branches();
        }
        let gone: HashSet<ExecutionId> = undone.iter().copied().collect();
        let cells: Vec<BlockId> =
            note.cells().filter(|cell| note.executions.get(cell).is_some_and(|run| gone.contains(&run.id))).collect();
        let has_moved = report.problem.is_none() && !rerun;
        if branch.is_none() {
            let count = note.state_move.count + 1;
            note.state_move = KernelStateReport { count, undone: cells.clone(), ..report };
        }
        if has_moved && sync.is_shared(note.volume) {
            note.announce_state(turn);
        }
        if !rerun {
            return;
        }
        // The running cell undid the cells below it, so their results show variables that no longer exist.
        let KernelPhase::Busy(running) = note.kernel else { return };
        let order: Vec<BlockId> = note.cells().collect();
        let Some(at) = order.iter().position(|cell| note.executions.get(cell).is_some_and(|run| run.id == running))
        else {
            return;
        };
        let again: Vec<BlockId> = order[at + 1..]
            .iter()
            .filter(|cell| cells.contains(cell) && !note.queue.contains(cell))
            .filter(|cell| note.executions.get(cell).is_some_and(|run| run.status == ExecutionStatus::Ok))
            .copied()
            .collect();
        if !again.is_empty() {
            if let Some(note) = self.notes.open.get_mut(&id) {
                note.next_branch = branch;
            }
            // Fails if the note can no longer run cells; nothing needs to run in that case.
            let _ = self.queue_cells(turn, kernels, sync, workspace, id, again);
        }
    }
}

impl Note {
    /// Sends a move to the kernel; the host starts a kernel if none is running.
    pub(in crate::session) fn send_state_move(
        &mut self,
        turn: &mut ApplyContext<'_>,
        folder: std::path::PathBuf,
        grant: crate::records::kernels::KernelGrant,
        to: KernelStateMove,
    ) {
        if self.kernel == KernelPhase::Off {
            // A running kernel reaches what it was started with, until the next cell finds that stale.
            self.grant_is.clone_from(&grant);
        }
        self.kernel = KernelPhase::Idle;
        self.kernel_is = self.kernel_name().map(ToOwned::to_owned);
        self.kernel_saves = true;
        self.runs += 1;
        turn.effects.push(Effect::MoveState { note: self.id, folder, grant, to });
    }
}
