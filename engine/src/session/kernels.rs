//! Selects the kernel that runs a note's cells: the built-in one or one of the user's Jupyter kernels. Also handles the
//! input that running cells request from the user.

use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{
    ENVIRONMENT_KERNEL, INSTANT_KERNEL, KERNEL_PROPERTY, KernelKind, NotePackages, StdinRequest,
};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use store::{CellOutput, DocId, ExecutionId};

/// Maximum number of notes whose kernel approvals are kept.
const MAX_REMEMBERED_KERNELS: usize = 1_000;

impl Note {
    /// Returns the name of the kernel that runs the note's cells; `None` for the built-in one.
    pub fn kernel_name(&self) -> Option<&str> {
        match &self.kernel_once {
            Some(once) => once.as_deref(),
            None if self.names_kernel || self.kernel_stated.is_some() => self.kernel_stated.as_deref(),
            None => self.kernel_default.as_deref(),
        }
    }

    /// Returns the packages that the note's cells need, as declared in its properties.
    pub fn packages(&self) -> Option<&NotePackages> {
        self.packages.as_ref()
    }

    /// Returns whether the running kernel ran this execution, so that it holds the resulting variables.
    pub fn is_of_running_kernel(&self, execution: ExecutionId) -> bool {
        self.kernel_executions.contains(&execution)
    }

    /// Returns the running cell's request for input from the user, if any.
    pub fn stdin_request(&self) -> Option<&StdinRequest> {
        self.question.as_ref()
    }

    /// Returns the number of changes so far to existing outputs.
    pub fn outputs_changed(&self) -> u64 {
        self.outputs_changed
    }
}

impl KernelsState {
    /// Searches for the Jupyter kernel that a note names, because its language decides which cells it runs.
    pub(super) fn find_named_kernel(&self, turn: &mut ApplyContext<'_>, files: &FilesState, id: DocId) {
        let note = files.notes.open.get(&id);
        let named = note.is_some_and(|note| KernelKind::of(note.kernel_name()) == KernelKind::Jupyter);
        if named && self.searches == 0 {
            // Fails only if the note no longer exists.
            let _ = files.volumes.find_kernels(turn, id);
        }
    }

    /// Passes the default kernel to open notes, for those that don't name one.
    pub(super) fn step_default_kernel(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        default: Option<&str>,
    ) {
        let others = files.notes.open.iter().filter(|(_, note)| note.kernel_default.as_deref() != default);
        let others: Vec<DocId> = others.map(|(id, _)| *id).collect();
        for id in others {
            if let Some(note) = files.notes.open.get_mut(&id) {
                note.kernel_default = default.map(ToOwned::to_owned);
                note.runs += 1;
            }
            files.notes.change_kernel(turn, id);
        }
    }

    /// Sets a note's kernel at the user's choice, which also allows it to run. `keep`: whether to write it into the
    /// note. `seen`: fingerprint of the kernel whose file and command the user has seen.
    pub(super) fn use_kernel(
        &self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &mut WorkspaceState,
        (id, kernel): (DocId, Option<String>),
        (keep, seen): (bool, Option<&str>),
    ) -> Result<(), CommandError> {
        let kernel = kernel.filter(|name| KernelKind::of(Some(name)) != KernelKind::BuiltIn);
        let spec = kernel.as_ref().and_then(|name| self.specs.iter().find(|spec| spec.name == *name));
        if let Some(spec) = spec.filter(|spec| spec.doubt.is_some() && seen != Some(&spec.print)) {
            let kept = workspace.settings.kernel_prints.iter().any(|(of, print)| *of == id && *print == spec.print);
            if !kept {
                return Err(CommandError(spec.approval_question()));
            }
        }
        let print = spec.map(|spec| spec.print.clone());
        let Some(note) = files.notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if matches!(note.kernel, KernelPhase::Busy(_)) {
            return Err(CommandError("a cell is running; stop it before another kernel is chosen".to_owned()));
        }
        let default = match note.packages {
            Some(_) => Some(ENVIRONMENT_KERNEL),
            None => note.kernel_default.as_deref(),
        };
        let is_default = default == kernel.as_deref();
        if keep && (note.kernel_stated != kernel || note.names_kernel == is_default) {
            // The built-in kernel is named only if another one is the default.
            let named = kernel.as_deref().or_else(|| (!is_default).then_some(INSTANT_KERNEL));
            let named = named.map(Into::into);
            files.set_property(turn, sync, id, KERNEL_PROPERTY.to_owned(), named)?;
        }
        if keep {
            let mut settings = workspace.settings.clone();
            settings.kernels.retain(|(other, _)| *other != id);
            let asks = |name: &String| !KernelKind::of(Some(name)).is_confined();
            settings.kernels.extend(kernel.clone().filter(asks).map(|kernel| (id, kernel)));
            let over = settings.kernels.len().saturating_sub(MAX_REMEMBERED_KERNELS);
            settings.kernels.drain(..over);
            settings.kernel_prints.retain(|(other, _)| *other != id);
            settings.kernel_prints.extend(print.clone().map(|print| (id, print)));
            let over = settings.kernel_prints.len().saturating_sub(MAX_REMEMBERED_KERNELS);
            settings.kernel_prints.drain(..over);
            workspace.set_settings(turn, settings);
        }
        let Some(note) = files.notes.open.get_mut(&id) else { return Ok(()) };
        note.kernel_once = (!keep).then_some(kernel);
        note.kernel_print = print;
        note.runs += 1;
        files.notes.change_kernel(turn, id);
        Ok(())
    }
}

impl NotesState {
    /// Replaces an existing output, even if its cell has ended.
    pub(super) fn update_output(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        execution: ExecutionId,
        at: usize,
        output: CellOutput,
    ) {
        let Some(note) = self.open.get_mut(&id) else { return };
        let Some(run) = note.executions.values_mut().find(|run| run.id == execution) else { return };
        let Some(shown) = run.outputs.get_mut(at) else { return };
        *shown = output;
        let cell = run.cell;
        self.output_changed(id, cell);
        turn.wake_at(turn.now.plus_ms(super::cells::OUTPUT_SAVE_INTERVAL_MS));
    }
}
