//! State of a session, one aggregate per subject. This module and its submodules don't import handlers.

pub(in crate::session) mod agent_run;
pub(in crate::session) mod agent_session;
pub(in crate::session) mod journal;
pub(in crate::session) mod kernels;
pub(in crate::session) mod moves;
pub(in crate::session) mod notes;
pub(in crate::session) mod runs;
pub(in crate::session) mod schedules;
pub(in crate::session) mod sync;
pub(in crate::session) mod volumes;
pub(in crate::session) mod workspace;

use crate::session::state::journal::SessionJournal;
use crate::session::state::kernels::KernelsState;
use crate::session::state::moves::MovesState;
use crate::session::state::notes::NotesState;
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::SchedulesState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;

/// A session: the complete state of a running Tracebook.
#[derive(Debug, Default)]
pub struct Session {
    pub(in crate::session) state: SessionState,
    /// Separate from the aggregates, so that a handler can borrow both.
    pub(in crate::session) journal: SessionJournal,
}

/// The aggregates of a session.
#[derive(Debug, Default)]
pub(in crate::session) struct SessionState {
    pub(in crate::session) workspace: WorkspaceState,
    pub(in crate::session) files: FilesState,
    pub(in crate::session) kernels: KernelsState,
    pub(in crate::session) runs: RunsState,
    pub(in crate::session) schedules: SchedulesState,
    pub(in crate::session) sync: SyncState,
}

/// State of files: their locations, open notes, and pending moves.
#[derive(Debug, Default)]
pub(in crate::session) struct FilesState {
    pub(in crate::session) volumes: VolumesState,
    pub(in crate::session) notes: NotesState,
    pub(in crate::session) moves: MovesState,
}
