//! Which kernel runs a note's cells: the embedded one, or one of the user's own Jupyter kernels; and what a running
//! cell asks of the user.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{EMBEDDED_KERNEL, KERNEL_PROPERTY, KernelSpec, StdinRequest};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::Session;
use store::{CellOutput, DocId, ExecutionId};

/// Maximum number of notes whose kernel approvals are kept.
const MAX_REMEMBERED_KERNELS: usize = 1_000;

impl Note {
    /// The Jupyter kernel that runs its cells; `None`: the embedded one.
    pub fn kernel_name(&self) -> Option<&str> {
        match &self.kernel_once {
            Some(once) => once.as_deref(),
            None => self.kernel_stated.as_deref(),
        }
    }

    /// What the running cell asks of the user.
    pub fn stdin_request(&self) -> Option<&StdinRequest> {
        self.question.as_ref()
    }

    /// Counts changes of outputs that were there before.
    pub fn outputs_changed(&self) -> u64 {
        self.outputs_changed
    }
}

impl Session {
    /// The Jupyter kernels that were found when that was asked last.
    pub fn kernels(&self) -> &[KernelSpec] {
        &self.kernels
    }

    /// Returns how often kernels were searched.
    pub fn kernel_searches(&self) -> u64 {
        self.kernel_searches
    }

    pub(super) fn kernels_found(&mut self, kernels: Vec<KernelSpec>) {
        self.kernels = kernels;
        self.kernel_searches += 1;
    }

    /// Searches for the Jupyter kernel that a note names, because its language decides which cells it runs.
    pub(super) fn find_named_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let named = self.notes.get(&id).is_some_and(|note| note.kernel_name().is_some());
        if named && self.kernel_searches == 0 {
            // It refuses only where the note is gone.
            let _ = self.find_kernels(turn, id);
        }
    }

    pub(super) fn find_kernels(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let folder = self.note_file_path(id).and_then(|file| file.parent().map(ToOwned::to_owned));
        let Some(folder) = folder else { return Err(CommandError("the note is not open".to_owned())) };
        turn.effects.push(Effect::FindKernels { folder });
        Ok(())
    }

    /// Whether the user has allowed that this note's cells run in the kernel that it names.
    pub fn allows_kernel(&self, note: &Note) -> bool {
        let Some(name) = note.kernel_name() else { return true };
        let kept = &self.settings.kernels;
        note.kernel_once.is_some() || kept.iter().any(|(id, allowed)| *id == note.id && allowed == name)
    }

    /// Which kernel the user has allowed to run a note's cells, by its print. `None`: by its name alone, as it was kept
    /// before there were prints; that holds for no kernel that others can change.
    pub(super) fn allowed_kernel(&self, note: &Note) -> Option<String> {
        if note.kernel_once.is_some() {
            return note.kernel_print.clone();
        }
        self.settings.kernel_prints.iter().find(|(id, _)| *id == note.id).map(|(_, print)| print.clone())
    }

    /// The user chooses the kernel of a note, and with it allows that it runs. `keep`: the note says so from now on.
    /// `seen`: the print of the kernel whose file and command the user has seen.
    pub(super) fn use_kernel(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        kernel: Option<String>,
        keep: bool,
        seen: Option<&str>,
    ) -> Result<(), CommandError> {
        let kernel = kernel.filter(|name| name != EMBEDDED_KERNEL);
        let spec = kernel.as_ref().and_then(|name| self.kernels.iter().find(|spec| spec.name == *name));
        if let Some(spec) = spec.filter(|spec| spec.doubt.is_some() && seen != Some(&spec.print)) {
            let kept = self.settings.kernel_prints.iter().any(|(of, print)| *of == id && *print == spec.print);
            if !kept {
                return Err(CommandError(spec.approval_question()));
            }
        }
        let print = spec.map(|spec| spec.print.clone());
        let Some(note) = self.notes.get(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if matches!(note.kernel, KernelPhase::Busy(_)) {
            return Err(CommandError("a cell is running; stop it before another kernel is chosen".to_owned()));
        }
        if keep && note.kernel_stated != kernel {
            self.set_property(turn, id, KERNEL_PROPERTY.to_owned(), kernel.clone().map(Into::into))?;
        }
        if keep {
            let mut settings = self.settings.clone();
            settings.kernels.retain(|(other, _)| *other != id);
            settings.kernels.extend(kernel.clone().map(|kernel| (id, kernel)));
            let over = settings.kernels.len().saturating_sub(MAX_REMEMBERED_KERNELS);
            settings.kernels.drain(..over);
            settings.kernel_prints.retain(|(other, _)| *other != id);
            settings.kernel_prints.extend(print.clone().map(|print| (id, print)));
            let over = settings.kernel_prints.len().saturating_sub(MAX_REMEMBERED_KERNELS);
            settings.kernel_prints.drain(..over);
            self.set_settings(turn, settings);
        }
        let Some(note) = self.notes.get_mut(&id) else { return Ok(()) };
        note.kernel_once = (!keep).then_some(kernel);
        note.kernel_print = print;
        note.runs += 1;
        self.change_kernel(turn, id);
        Ok(())
    }

    /// Ends a kernel that isn't the one the note names. Returns whether it does; then waiting cells run once it has
    /// ended.
    pub(super) fn change_kernel(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> bool {
        let Some(note) = self.notes.get_mut(&id) else { return false };
        let other = note.kernel == KernelPhase::Idle && note.kernel_is.as_deref() != note.kernel_name();
        if other && !note.stopping {
            note.stopping = true;
            turn.effects.push(Effect::KillKernel { note: id });
        }
        other
    }

    pub(super) fn on_stdin_request(&mut self, id: DocId, execution: ExecutionId, prompt: String, password: bool) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        if note.kernel == KernelPhase::Busy(execution) {
            let limit = note.limit.take().map(|(_, _, seconds)| seconds);
            note.question = Some(StdinRequest { execution, prompt, password, limit });
        }
    }

    /// The user answers what the running cell asked.
    pub(super) fn answer_stdin(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        text: String,
    ) -> Result<(), CommandError> {
        let Some(note) = self.notes.get_mut(&id) else { return Err(CommandError("the note is not open".to_owned())) };
        let Some(question) = note.question.take() else {
            return Err(CommandError("no cell of this note asks for anything".to_owned()));
        };
        turn.effects.push(Effect::Answer { note: id, text });
        if let Some(seconds) = question.limit {
            let at = turn.now.plus_ms(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2));
            note.limit = Some((at, question.execution, seconds));
            self.wake_at(turn, at);
        }
        Ok(())
    }

    /// Clears the outputs of a running cell.
    pub(super) fn clear_outputs(&mut self, id: DocId, execution: ExecutionId) {
        if let Some(current) = self.current_execution(id, execution) {
            current.outputs.clear();
            let cell = current.cell;
            self.output_changed(id, cell);
        }
    }

    /// Something that was shown becomes something else, also after the end of its cell.
    pub(super) fn update_output(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        execution: ExecutionId,
        at: usize,
        output: CellOutput,
    ) {
        let Some(note) = self.notes.get_mut(&id) else { return };
        let Some(run) = note.executions.values_mut().find(|run| run.id == execution) else { return };
        let Some(shown) = run.outputs.get_mut(at) else { return };
        *shown = output;
        let cell = run.cell;
        self.output_changed(id, cell);
        self.wake_at(turn, turn.now.plus_ms(super::cells::OUTPUT_SAVE_INTERVAL_MS));
    }

    fn output_changed(&mut self, id: DocId, cell: store::BlockId) {
        if let Some(note) = self.notes.get_mut(&id) {
            note.unsaved_outputs.insert(cell);
            note.outputs_changed += 1;
        }
    }
}
