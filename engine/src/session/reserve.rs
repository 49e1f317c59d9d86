//! The kernel in reserve: a process that has started before it is needed, so that the first cell of the note that is
//! looked at does not wait. It runs in the note's folder, which its sandbox is built around, and holds nothing yet.

use super::{Session, Turn};
use crate::effect::Effect;
use crate::note::{KernelPhase, Phase};
use std::path::PathBuf;
use store::DocId;
use text::time::Time;

/// Who leafs through notes starts none: milliseconds that one is looked at.
const AFTER: i64 = 300;
/// One that nobody has needed for so long, in milliseconds, is given back.
const KEPT: i64 = 600_000;

/// What is known of the reserve.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    /// The note that was opened last.
    pub(super) note: Option<DocId>,
    /// The state for which it was decided: the note, its cells, whether it could use one.
    decided: Option<(DocId, u64, bool)>,
    due: Option<(Time, PathBuf)>,
    until: Option<Time>,
}

impl Session {
    /// Looks whether the note that was opened last could need a kernel soon.
    pub(super) fn reserve_step(&mut self, turn: &mut Turn<'_>) {
        let Some(note) = self.reserve.note.and_then(|note| self.notes.get(&note)) else { return };
        let usable = note.phase == Phase::Ready
            && note.kernel == KernelPhase::Off
            && note.kernel_name().is_none()
            && self.granted(note.id).is_none()
            && note.read_only().is_none();
        let state = (note.id, note.cells_revision, usable);
        if self.reserve.decided == Some(state) {
            return;
        }
        let wants = usable && note.cells().next().is_some();
        self.reserve.decided = Some(state);
        let folder = self.file(state.0).and_then(|file| file.parent().map(ToOwned::to_owned));
        self.reserve.due = folder.filter(|_| wants).map(|folder| (turn.now.plus(AFTER), folder));
        if let Some((at, _)) = self.reserve.due {
            self.wake_at(turn, at);
        }
    }

    pub(super) fn tick_reserve(&mut self, turn: &mut Turn<'_>) {
        if let Some((_, folder)) = self.reserve.due.take_if(|(at, _)| *at <= turn.now) {
            self.reserve.until = Some(turn.now.plus(KEPT));
            turn.effects.push(Effect::Reserve { folder: Some(folder) });
        }
        if self.reserve.until.take_if(|until| *until <= turn.now).is_some() {
            turn.effects.push(Effect::Reserve { folder: None });
        }
        let due = self.reserve.due.as_ref().map(|(at, _)| *at);
        for at in [due, self.reserve.until].into_iter().flatten() {
            self.wake_at(turn, at);
        }
    }
}
