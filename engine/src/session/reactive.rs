//! Dependent cells: which cells run for a request, which names are deleted, and clean runs of a whole note.

use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{CleanRun, CleanRunReport};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use crate::staleness::{HeldName, Reactivity};
use std::collections::BTreeSet;
use store::{BlockId, DocId, ExecutionId};
use text::{outline, properties};

impl Note {
    /// Returns the number of clean runs so far and the result of the last one.
    pub fn clean_run_report(&self) -> Option<(u64, &CleanRunReport)> {
        self.verdict.as_ref().map(|(count, verdict)| (*count, verdict))
    }

    /// Describes the report for the user.
    pub fn clean_run_summary(&self) -> Option<String> {
        self.verdict.as_ref().map(|(_, report)| report.summary(self.cells()))
    }

    /// Returns whether a kernel is being stopped for a clean run.
    pub fn is_restarting(&self) -> bool {
        self.clean.as_ref().is_some_and(|clean| clean.awaits_kernel)
    }

    /// Returns the cells that run when this one is requested.
    pub(in crate::session) fn cells_run_with(&self, cell: BlockId) -> Vec<BlockId> {
        match self.reactivity {
            Reactivity::Automatic => self.plan_cells(&[cell]),
            Reactivity::Manual | Reactivity::Marks => vec![cell],
        }
    }

    /// Returns the cells to run after a widget's value changed: its own, and its dependents unless the note forbids it.
    pub fn cells_after_change(&self, widget: BlockId) -> Vec<BlockId> {
        match self.reactivity {
            Reactivity::Manual => vec![widget],
            Reactivity::Marks | Reactivity::Automatic => self.plan_cells(&[widget]),
        }
    }

    /// Returns the running cell and the queued ones, in order.
    pub fn pending_cells(&self) -> Vec<BlockId> {
        let now = match self.kernel {
            KernelPhase::Busy(execution) => {
                self.executions.values().find(|run| run.id == execution).map(|run| run.cell)
            }
            KernelPhase::Off | KernelPhase::Idle => None,
        };
        now.into_iter().chain(self.queue.iter().copied()).collect()
    }

    /// Assigns the names that a cell binds to its execution, after the kernel ran it, whether to its end or not.
    pub(in crate::session) fn bind_results(&mut self, execution: ExecutionId) {
        let ended = self.running.take().filter(|(running, _, _)| *running == execution);
        let Some((_, cell, writes)) = ended.filter(|_| !self.branches.contains_key(&execution)) else { return };
        for (name, surely) in writes {
            let held = self.held.entry(name).or_insert_with(|| HeldName { by: Vec::new(), cell });
            if surely {
                held.by.clear();
            }
            held.by.insert(0, execution);
            held.cell = cell;
        }
    }

    /// Prepares an execution: records its input values, and returns the names to delete first.
    pub(in crate::session) fn prepare_execution(&mut self, execution: ExecutionId, cell: BlockId) -> Vec<String> {
        let fresh = self.cell_staleness();
        let Some(at) = fresh.cells.iter().position(|other| *other == cell) else { return Vec::new() };
        let forget = match self.reactivity {
            Reactivity::Manual => Vec::new(),
            Reactivity::Marks | Reactivity::Automatic => self.outdated_names(&fresh, at),
        };
        // What the user's state holds stays, and isn't what a cell on another branch sees.
        let others = self.branches.contains_key(&execution).then(|| std::mem::take(&mut self.held));
        forget.iter().for_each(|name| _ = self.held.remove(name));
        let inputs = self.cell_inputs(&fresh, at);
        self.held.extend(others.into_iter().flatten());
        if let Some(run) = self.executions.get_mut(&cell) {
            run.inputs = Some(inputs);
        }
        self.running = Some((execution, cell, fresh.flow.nodes[at].writes.clone()));
        self.runs += 1;
        forget
    }
}

impl FilesState {
    /// Runs cells and, if the note's reactivity says so, their dependents and what they need.
    pub(super) fn run_reactively(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        asked: Vec<BlockId>,
    ) -> Result<(), CommandError> {
        let automatic = self.notes.open.get(&id).filter(|note| {
            note.reactivity == Reactivity::Automatic && asked.iter().all(|cell| note.cell_parts(*cell).is_some())
        });
        let cells = automatic.map_or_else(|| asked.clone(), |note| note.plan_cells(&asked));
        self.queue_cells(turn, kernels, sync, workspace, id, cells)
    }

    /// Runs the stale cells and the cells that they need.
    pub(super) fn run_stale(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        let Some(note) = self.notes.open.get(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        let stale: Vec<BlockId> = note.cells().filter(|cell| note.stale_reason(*cell).is_some()).collect();
        if stale.is_empty() {
            return Err(CommandError("nothing is stale in this note".to_owned()));
        }
        let cells = note.plan_cells(&stale);
        self.queue_cells(turn, kernels, sync, workspace, id, cells)
    }

    /// Runs all cells in a fresh kernel and compares the results with the earlier ones.
    pub(super) fn run_clean(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) -> Result<(), CommandError> {
        let Some(note) = self.notes.open.get_mut(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if note.cells().next().is_none() {
            return Err(CommandError("the note has no Python cell; start one with ```python".to_owned()));
        }
        let ended = note.executions.values().filter(|run| run.status.is_final());
        let before = ended.map(|run| (run.cell, run.comparable_result())).collect();
        let waits = note.kernel != KernelPhase::Off;
        note.clean = Some(CleanRun { awaits_kernel: waits, previous_results: before });
        note.ignore_announced_state();
        if waits { self.notes.restart_kernel(turn, id) } else { self.run_all(turn, kernels, sync, workspace, id) }
    }

    /// Starts a clean run that waited for the old kernel to end.
    pub(super) fn step_clean_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let Some(clean) = self.notes.open.get_mut(&id).and_then(|note| note.clean.as_mut()) else { return };
        if std::mem::take(&mut clean.awaits_kernel) {
            // Fails only if nothing can run.
            let _ = self.run_all(turn, kernels, sync, workspace, id);
        }
        self.notes.finish_clean_run(id);
    }

    /// Runs again the cells that were requested while they were running.
    pub(super) fn rerun_requested_cells(
        &mut self,
        turn: &mut ApplyContext<'_>,
        kernels: &KernelsState,
        sync: &SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        let again: BTreeSet<BlockId> =
            self.notes.open.get_mut(&id).map(|note| std::mem::take(&mut note.again)).unwrap_or_default();
        if !again.is_empty() {
            // Fails for a cell that was deleted meanwhile.
            let _ = self.run_reactively(turn, kernels, sync, workspace, id, again.into_iter().collect());
        }
    }
}

impl NotesState {
    /// Stores the result of a finished clean run.
    pub(super) fn finish_clean_run(&mut self, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        let over = note.queue.is_empty() && !matches!(note.kernel, KernelPhase::Busy(_)) && !note.stopping;
        let Some(CleanRun { previous_results: before, .. }) = note.clean.take_if(|clean| over && !clean.awaits_kernel)
        else {
            return;
        };
        let verdict = CleanRunReport::compare(note.cells(), &note.executions, &before);
        let count = note.verdict.as_ref().map_or(0, |(count, _)| *count) + 1;
        note.verdict = Some((count, verdict));
    }

    /// Sets the note's reactivity in its properties.
    pub(super) fn set_reactivity(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        mode: Reactivity,
    ) -> Result<(), CommandError> {
        let Some(note) = self.open.get(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        if note.reactivity() == mode {
            return Ok(());
        }
        let text = note.text();
        let has_returns = text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"));
        let end = if has_returns { "\r\n" } else { "\n" };
        let line = format!("{}: {}{end}", Reactivity::REACTIVITY_PROPERTY, mode.as_str());
        let Some(range) = outline::front_matter_range(&text) else {
            let at = outline::byte_order_mark_len(&text);
            return self.edit_note(turn, sync, id, at, 0, &format!("---{end}{line}---{end}{end}"));
        };
        let properties = match properties::read(&text) {
            Some(Ok(properties)) => properties,
            Some(Err(why)) => return Err(CommandError(format!("the note's properties cannot be read: {why}"))),
            None => Vec::new(),
        };
        match properties.iter().find(|property| property.key == Reactivity::REACTIVITY_PROPERTY) {
            Some(old) => {
                let lines = old.lines.clone();
                self.edit_note(turn, sync, id, lines.start, lines.len(), &line)
            }
            None => self.edit_note(turn, sync, id, range.end, 0, &line),
        }
    }
}
