//! Kernel grants: what the user lets a note's cells access beyond the note's folder, on this device only.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{KernelGrant, KernelKind};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::notes::NotesState;
use crate::session::state::workspace::WorkspaceState;
use std::path::{Component, PathBuf};
use store::DocId;

/// Maximum number of notes whose grants are kept.
const MAX_REMEMBERED_GRANTS: usize = 1_000;
/// Maximum number of folders granted to one note.
const MAX_GRANTED_FOLDERS: usize = 32;

impl WorkspaceState {
    pub(super) fn set_kernel_grant(
        &mut self,
        turn: &mut ApplyContext<'_>,
        notes: &mut NotesState,
        id: DocId,
        grant: KernelGrant,
    ) -> Result<(), CommandError> {
        let Some(note) = notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready) else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if matches!(note.kernel, KernelPhase::Busy(_)) {
            return Err(CommandError("a cell is running; stop it before something else is granted".to_owned()));
        }
        if grant.read.len() + grant.write.len() > MAX_GRANTED_FOLDERS {
            return Err(CommandError(format!("at most {MAX_GRANTED_FOLDERS} folders can be granted to a note")));
        }
        let whole = |path: &PathBuf| {
            path.is_absolute()
                && !path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
        };
        if let Some(path) = grant.read.iter().chain(&grant.write).find(|path| !whole(path)) {
            return Err(CommandError(format!("{}: give the whole path of a folder to grant it", path.display())));
        }
        if let Some(path) = grant.read.iter().chain(&grant.write).find(|path| path.parent().is_none()) {
            return Err(CommandError(format!("{}: all of the machine is not granted; name a folder", path.display())));
        }
        let mut settings = self.settings.clone();
        settings.grants.retain(|(other, _)| *other != id);
        if !grant.is_none() {
            settings.grants.push((id, grant));
        }
        let over = settings.grants.len().saturating_sub(MAX_REMEMBERED_GRANTS);
        settings.grants.drain(..over);
        self.set_settings(turn, settings);
        let granted = self.kernel_grant(id);
        end_kernel_with_stale_grant(turn, notes, id, &granted);
        Ok(())
    }
}

/// Stops a kernel whose sandbox doesn't match what is granted now. Returns whether it does; queued cells run once the
/// kernel has ended.
pub(super) fn end_kernel_with_stale_grant(
    turn: &mut ApplyContext<'_>,
    notes: &mut NotesState,
    id: DocId,
    granted: &KernelGrant,
) -> bool {
    let Some(note) = notes.open.get_mut(&id) else { return false };
    let other = note.kernel == KernelPhase::Idle
        && KernelKind::of(note.kernel_is.as_deref()).is_confined()
        && note.grant_is != *granted;
    if other && !note.stopping {
        note.stopping = true;
        turn.effects.push(Effect::KillKernel { note: id });
    }
    other
}

impl Note {
    /// Returns the grant of the note's running built-in kernel, if any.
    pub fn running_grant(&self) -> Option<&KernelGrant> {
        (self.kernel != KernelPhase::Off && KernelKind::of(self.kernel_is.as_deref()).is_confined())
            .then_some(&self.grant_is)
    }
}
