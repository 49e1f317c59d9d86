//! The spare kernel: a process started in advance, so that the first cell of the open note doesn't wait. It runs in the
//! note's folder, which its sandbox is built for, and holds no state yet.

use crate::effect::Effect;
use crate::note::{KernelPhase, NotePhase};
use crate::session::apply_context::ApplyContext;
use crate::session::state::FilesState;
use crate::session::state::kernels::KernelsState;
use crate::session::state::workspace::WorkspaceState;

/// Time in milliseconds that a note must be open before a spare kernel is started, so that browsing starts none.
const WARM_KERNEL_DELAY_MS: i64 = 300;
/// Time in milliseconds that an unused spare kernel is kept.
const WARM_KERNEL_LIFETIME_MS: i64 = 600_000;

impl KernelsState {
    /// Decides whether the note that was opened last may soon need a kernel.
    pub(super) fn step_kernel_pool(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &FilesState,
        workspace: &WorkspaceState,
    ) {
        let Some(note) = self.pool.note.and_then(|note| files.notes.open.get(&note)) else { return };
        let usable = note.phase == NotePhase::Ready
            && note.kernel == KernelPhase::Off
            && note.kernel_name().is_none()
            && files.volumes.note_grant(workspace, note.id).is_none()
            && note.read_only().is_none();
        let state = (note.id, note.cells_revision, usable);
        if self.pool.last_decision == Some(state) {
            return;
        }
        let wants = usable && note.cells().next().is_some();
        self.pool.last_decision = Some(state);
        let folder = files.volumes.note_file_path(state.0).and_then(|file| file.parent().map(ToOwned::to_owned));
        self.pool.start_at = folder.filter(|_| wants).map(|folder| (turn.now.plus_ms(WARM_KERNEL_DELAY_MS), folder));
        if let Some((at, _)) = self.pool.start_at {
            turn.wake_at(at);
        }
    }

    pub(super) fn tick_kernel_pool(&mut self, turn: &mut ApplyContext<'_>) {
        if let Some((_, folder)) = self.pool.start_at.take_if(|(at, _)| *at <= turn.now) {
            self.pool.expires_at = Some(turn.now.plus_ms(WARM_KERNEL_LIFETIME_MS));
            turn.effects.push(Effect::Reserve { folder: Some(folder) });
        }
        if self.pool.expires_at.take_if(|until| *until <= turn.now).is_some() {
            turn.effects.push(Effect::Reserve { folder: None });
        }
        let due = self.pool.start_at.as_ref().map(|(at, _)| *at);
        for at in [due, self.pool.expires_at].into_iter().flatten() {
            turn.wake_at(at);
        }
    }
}
