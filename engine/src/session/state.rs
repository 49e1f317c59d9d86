//! The state of a running Tracebook, without what is done to it.

pub(in crate::session) mod agent_run;
pub(in crate::session) mod agent_session;
pub(in crate::session) mod kernels;
pub(in crate::session) mod notes;
pub(in crate::session) mod runs;
pub(in crate::session) mod schedules;
pub(in crate::session) mod sync;
pub(in crate::session) mod volumes;

use crate::note::Note;
use crate::notice::RecentNotices;
use crate::records::kernels::KernelSpec;
use crate::records::moves::{CompletedMove, ExternalRename, PendingMove, TrashedFile};
use crate::records::saving::{BatchNumber, SaveStatus};
use crate::session::state::kernels::KernelPool;
use crate::session::state::notes::NoteJob;
use crate::session::state::runs::RunsState;
use crate::session::state::schedules::{PendingMaintenance, SchedulesState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::Volume;
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use store::disk::RowWrite;
use store::{ActorId, DocId, RunDevice, WorkspaceDoc};
use text::time::UnixMillis;

/// Follow-up work for when a batch is on disk.
#[derive(Debug)]
pub(in crate::session) struct PendingBatch {
    pub(in crate::session) batch: BatchNumber,
    pub(in crate::session) upto: u64,
    pub(in crate::session) mirror: Option<DocId>,
    pub(in crate::session) then: Vec<RowWrite>,
}

/// The state of a running Tracebook.
#[derive(Debug)]
pub struct Session {
    pub(in crate::session) workspace: DocId,
    pub(in crate::session) folder: PathBuf,
    pub(in crate::session) workspace_doc: Option<Box<WorkspaceDoc>>,
    pub(in crate::session) workspace_new: bool,
    pub(in crate::session) actor: ActorId,
    pub(in crate::session) settings: Settings,
    pub(in crate::session) volumes: BTreeMap<DocId, Volume>,
    pub(in crate::session) mounts: BTreeMap<DocId, PathBuf>,
    pub(in crate::session) file_locations: HashMap<DocId, (DocId, String)>,
    pub(in crate::session) notes: BTreeMap<DocId, Note>,
    pub(in crate::session) unfinished: Vec<DocId>,
    pub(in crate::session) problems: Vec<String>,
    pub(in crate::session) trash: BTreeMap<DocId, TrashedFile>,
    /// Files of the trash that are being deleted for good.
    pub(in crate::session) deleting_from_trash: BTreeSet<DocId>,
    pub(in crate::session) pending_move: Option<PendingMove>,
    pub(in crate::session) undoable_moves: Vec<CompletedMove>,
    pub(in crate::session) external_renames: Vec<ExternalRename>,
    pub(in crate::session) outdated_link_notes: usize,
    pub(in crate::session) note_jobs: Vec<NoteJob>,
    /// Jupyter kernels that were found last.
    pub(in crate::session) kernels: Vec<KernelSpec>,
    pub(in crate::session) kernel_searches: u64,
    pub(in crate::session) kernel_pool: KernelPool,
    pub(in crate::session) agents: RunsState,
    pub(in crate::session) schedules_state: SchedulesState,
    pub(in crate::session) pending_maintenance: Vec<PendingMaintenance>,
    pub(in crate::session) notices: RecentNotices,
    pub(in crate::session) sync: SyncState,
    /// This device, as the one that runs belong to.
    pub(in crate::session) device: RunDevice,
    /// How many names of steps and messages were given.
    pub(in crate::session) last_issued_id: u64,
    pub(in crate::session) saving: SaveStatus,
    pub(in crate::session) in_flight: VecDeque<PendingBatch>,
    pub(in crate::session) next_batch: BatchNumber,
    pub(in crate::session) wake: Option<UnixMillis>,
}
