//! Saved states that notes share: announces them with a note's outputs, and takes over those of another device before
//! the next cell runs.

use crate::effect::Effect;
use crate::note::{KernelPhase, Note, NotePhase};
use crate::records::kernels::{KernelStateMove, SharedStateJob, SharedStateOutcome, SharedStateProgress};
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::notes::NotesState;
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use store::DocId;
use store::disk::RowWrite;
use text::time::UnixMillis;

impl Note {
    /// Returns what this device does about the state that the note shares.
    pub fn shared_state(&self) -> &SharedStateProgress {
        &self.shared_state
    }

    /// Returns whether variables are still being saved or announced.
    pub fn is_announcing_state(&self) -> bool {
        self.shared_state.is_due
    }

    /// Returns whether the variables of another device are on their way.
    pub fn is_fetching_state(&self) -> bool {
        self.shared_state.is_fetching
    }

    fn announced_state(&self) -> Option<String> {
        self.outputs.as_ref()?.shared_state()
    }

    fn push_shared_state_job(&self, turn: &mut ApplyContext<'_>, job: SharedStateJob) {
        turn.effects.push(Effect::ShareState { note: self.id, volume: self.volume, job });
    }

    /// Announces the current state, unless cells are still to run.
    pub(in crate::session) fn announce_state(&mut self, turn: &mut ApplyContext<'_>) {
        if self.queue.is_empty() && !matches!(self.kernel, KernelPhase::Busy(_)) {
            match self.shared_state.begin_announcement(turn.now.0) {
                None => self.push_shared_state_job(turn, SharedStateJob::Announce),
                Some(later) => turn.wake_at(UnixMillis(later)),
            }
        }
    }

    /// Fetches the variables that another device announced, once for each announcement. Returns whether cells must
    /// wait for them.
    pub(in crate::session) fn awaits_shared_state(&mut self, turn: &mut ApplyContext<'_>) -> bool {
        if self.shared_state.is_fetching || !self.saves_states() {
            return self.shared_state.is_fetching;
        }
        let new = self.announced_state().filter(|announced| self.shared_state.handled.as_ref() != Some(announced));
        let Some(announced) = new else { return false };
        self.shared_state.handled = Some(announced.clone());
        self.shared_state.is_fetching = true;
        self.push_shared_state_job(turn, SharedStateJob::Fetch(announced));
        true
    }

    /// Records the end of a job that shares, announces or unshares. Without a share, other devices would go on with old
    /// variables, so the user is told why it failed.
    fn end_shared_state_job(&mut self, problem: Option<String>) {
        let before = self.shared_state.end_job(problem.clone());
        self.problems.retain(|known| Some(known) != before.as_ref());
        self.problems.extend(problem);
    }

    /// Doesn't take over what was announced so far, because the user starts over.
    pub(in crate::session) fn ignore_announced_state(&mut self) {
        self.shared_state.handled = self.announced_state();
    }
}

impl NotesState {
    /// Withdraws the announcement of a note whose variables aren't to be saved any more (`state: off`).
    pub(super) fn withdraw_excluded_state(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        let Some(note) = self.open.get_mut(&id) else { return };
        let is_excluded = !note.may_save_states() && note.announced_state().is_some();
        if is_excluded && !note.shared_state.is_withdrawn {
            note.shared_state.is_due = true; // the note stays open until then
            note.push_shared_state_job(turn, SharedStateJob::Unshare);
        }
        note.shared_state.is_withdrawn = is_excluded;
    }

    /// Writes the announcement of a note's state to its outputs, for other devices.
    fn set_announced_state(&mut self, turn: &mut ApplyContext<'_>, id: DocId, announcement: Option<String>) {
        let Some(note) = self.open.get_mut(&id) else { return };
        note.shared_state.handled.clone_from(&announcement);
        let Some(doc) = note.outputs.as_mut().filter(|doc| doc.shared_state() != announcement) else { return };
        match doc.set_shared_state(announcement.as_deref(), turn.now.as_seconds()) {
            Ok(bytes) => {
                let bytes = if std::mem::take(&mut note.outputs_new) { doc.save() } else { bytes };
                turn.append_writes(vec![RowWrite::Chunk { doc: id.outputs_id(), bytes }], None);
            }
            Err(error) => note.problems.push(error.to_string()),
        }
    }
}

impl FilesState {
    /// Shares the note's states from this device, or no longer, at the user's request.
    pub(super) fn share_state(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        id: DocId,
        is_shared: bool,
    ) -> Result<(), CommandError> {
        let note = self.notes.open.get(&id).filter(|note| note.phase == NotePhase::Ready);
        let Some(note) = note else {
            return Err(CommandError("the note is not open yet; try again in a moment".to_owned()));
        };
        if is_shared {
            note.ensure_states_are_saved()?;
            if !sync.is_shared(note.volume) {
                let why = "the note's volume isn't shared with other devices; share that first (Share volume…, or \
                           `tracebook sync share`)";
                return Err(CommandError(why.to_owned()));
            }
        }
        note.push_shared_state_job(turn, if is_shared { SharedStateJob::Share } else { SharedStateJob::Unshare });
        Ok(())
    }

    /// Fetches the state that another device announced, at the user's request.
    pub(super) fn fetch_shared_state(&mut self, turn: &mut ApplyContext<'_>, id: DocId) -> Result<(), CommandError> {
        let Some(note) = self.notes.open.get_mut(&id) else { return Ok(()) };
        if note.shared_state.is_fetching {
            return Err(CommandError("the variables of another device are already being fetched".to_owned()));
        }
        let Some(announced) = note.announced_state() else {
            return Err(CommandError("no other device shares this note's variables".to_owned()));
        };
        note.shared_state.handled = Some(announced.clone());
        note.shared_state.is_fetching = true;
        note.push_shared_state_job(turn, SharedStateJob::FetchAnyway(announced));
        Ok(())
    }

    pub(super) fn on_shared_state_done(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        outcome: SharedStateOutcome,
    ) {
        let folder = self.volumes.note_file_path(id).and_then(|file| file.parent().map(ToOwned::to_owned));
        let grant = self.volumes.note_grant(workspace, id);
        let Some(note) = self.notes.open.get_mut(&id) else { return };
        match outcome {
            SharedStateOutcome::Announced(announcement) => {
                note.end_shared_state_job(None);
                if announcement.is_some() {
                    self.notes.set_announced_state(turn, id, announcement);
                }
            }
            SharedStateOutcome::Unshared => {
                note.end_shared_state_job(None);
                self.notes.set_announced_state(turn, id, None);
            }
            SharedStateOutcome::ShareFailed(why) => note.end_shared_state_job(Some(why)),
            SharedStateOutcome::Fetched(is_ready) => {
                note.shared_state.is_fetching = false;
                // A cell that runs by now keeps its variables, and the note may have another kernel by now.
                let is_busy = matches!(note.kernel, KernelPhase::Busy(_)) || note.stopping;
                let may_receive = is_ready && !is_busy && note.saves_states();
                match folder.filter(|_| may_receive) {
                    Some(folder) => note.send_state_move(turn, folder, grant, KernelStateMove::Receive),
                    None if is_ready => {
                        let why = "the kernel was busy or changed meanwhile, so its variables stay; try again";
                        (note.state_move.count, note.state_move.problem) =
                            (note.state_move.count + 1, Some(why.to_owned()));
                    }
                    None => {}
                }
                self.start_next_cell(turn, workspace, id);
            }
            SharedStateOutcome::FetchFailed(why) => {
                note.shared_state.is_fetching = false;
                (note.state_move.count, note.state_move.problem) = (note.state_move.count + 1, Some(why));
                self.start_next_cell(turn, workspace, id);
            }
        }
        self.release_note(turn, sync, id); // it may have waited for this
    }
}
