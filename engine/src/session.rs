//! The session: all state, and [`Session::apply`], the only way it changes.

mod apply_context;
mod cells;
mod external_renames;
mod grants;
mod kernel_pool;
mod kernels;
mod memory_maintenance;
mod moves;
mod note_files;
mod note_jobs;
mod notes;
mod reactive;
pub mod runs;
mod schedules;
mod state;
mod sync;
mod trash;
mod volume_paths;
mod volumes;

pub use crate::records::kernels::{
    CleanRunReport, EMBEDDED_KERNEL, END_OF_INPUT, KernelGrant, KernelSpec, StdinRequest,
};
pub use crate::records::moves::{
    CompletedMove, EXTERNAL_RENAMES_KEY, ExternalRename, FileLocation, FileMove, PENDING_MOVE_KEY, PendingMove,
    RELINK_KEY_PREFIX, TRASH_FOLDER, TRASH_KEY_PREFIX, TrashedFile, UNDO_MOVES_KEY,
};
pub use crate::records::runs::{
    AgentSetup, EMBEDDING_COSTS_KEY_PREFIX, EmbeddingCost, POLICY_RULES_KEY, RUN_KEY_PREFIX, RunSummary,
    SESSION_KEY_PREFIX, SessionSummary,
};
pub use crate::records::saving::SaveStatus;
pub use crate::records::sync::{
    AGREED_BYTES_KEY_PREFIX, AgreedBytes, AttachmentAction, DeliveryState, DocumentsByVolume, HubBlobState,
    HubConnection, HubOutbox, HubState, LAN_HUB_ADDRESS, MERGES_KEY, MergeKind, MergeRecord, OUTBOX_KEY,
    SEEN_DEVICES_KEY, SYNC_LOG_KEY, SYNC_SHARES_KEY, SavedSyncState, SeenDevice, SharedHub, SyncShares, SyncTargets,
    VolumeAttachments,
};
pub use crate::session::state::agent_run::{AgentRun, CallPhase, LiveModelCall, PendingCall};
pub use crate::session::state::agent_session::AgentSession;
pub use crate::session::state::runs::RunsState;
pub use crate::session::state::sync::{RemotePeer, SyncState};
pub use crate::session::volume_paths::{LINKS_KEY_PREFIX, links_key};
pub use apply_context::CommandError;
pub use runs::{
    BudgetScope, BudgetStatus, PHASE_NAMES, PhaseStatus, RunPhase, ScopeSpending, phases_of, revertible_parts,
    run_address, session_address,
};
pub use schedules::SCHEDULE_KEY_PREFIX;
pub use state::Session;
pub use state::volumes::{ScanState, Volume};
pub use sync::parse_heads;
pub use sync::{SyncProgress, SyncStatus, hub_address, read_volume_address, volume_address};

use crate::command::Command;
use crate::effect::Effect;
use crate::event::{Event, WorkspaceStart};
use crate::note::Note;
use crate::notice::{Notice, RecentNotices};
use crate::records::saving::BatchNumber;
use crate::session::state::kernels::KernelPool;
use crate::session::state::runs::RunRequest;
use crate::session::state::schedules::SchedulesState;
use crate::settings::Settings;
use apply_context::ApplyContext;
use rand_core::RngCore;
use state::PendingBatch;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use store::disk::RowWrite;
use store::{ActorId, DocId, RunDevice};
use text::time::UnixMillis;

/// An input of [`Session::apply`].
#[derive(Debug)]
pub enum SessionInput {
    /// A request of the user.
    Command(Command),
    /// A fact from the world.
    Event(Event),
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

impl Session {
    /// A session that waits for [`Event::WorkspaceStart`].
    pub fn new() -> Session {
        Session {
            workspace: DocId([0; 16]),
            folder: PathBuf::new(),
            workspace_doc: None,
            workspace_new: false,
            actor: ActorId::from([0_u8; 16]),
            settings: Settings::default(),
            volumes: BTreeMap::new(),
            mounts: BTreeMap::new(),
            file_locations: HashMap::new(),
            notes: BTreeMap::new(),
            unfinished: Vec::new(),
            problems: Vec::new(),
            trash: BTreeMap::new(),
            deleting_from_trash: BTreeSet::new(),
            pending_move: None,
            undoable_moves: Vec::new(),
            external_renames: Vec::new(),
            outdated_link_notes: 0,
            note_jobs: Vec::new(),
            kernels: Vec::new(),
            kernel_searches: 0,
            kernel_pool: KernelPool::default(),
            agents: RunsState::default(),
            schedules_state: SchedulesState::default(),
            pending_maintenance: Vec::new(),
            notices: RecentNotices::default(),
            sync: SyncState::default(),
            device: RunDevice { id: DocId([0; 16]), name: String::new() },
            last_issued_id: 0,
            saving: SaveStatus::default(),
            in_flight: VecDeque::new(),
            next_batch: 1,
            wake: None,
        }
    }

    /// The only entry point. `now` and `rng` are the only inputs besides `input`.
    ///
    /// # Errors
    /// [`CommandError`] when the wish cannot be fulfilled; the state is as before then. Facts are never rejected.
    pub fn apply(
        &mut self,
        now: UnixMillis,
        rng: &mut dyn RngCore,
        input: SessionInput,
    ) -> Result<Vec<Effect>, CommandError> {
        let mut turn = ApplyContext { now, rng, effects: Vec::new(), last_issued_id: self.last_issued_id };
        match input {
            SessionInput::Command(command) => {
                let done = self.apply_command(&mut turn, command);
                self.last_issued_id = turn.last_issued_id;
                done?;
            }
            SessionInput::Event(event) => self.apply_event(&mut turn, event),
        }
        self.step_move(&mut turn);
        self.step_note_jobs(&mut turn);
        self.step_kernel_pool(&mut turn);
        self.step_tool_note_jobs(&mut turn);
        self.step_sync(&mut turn);
        self.last_issued_id = turn.last_issued_id;
        Ok(turn.effects)
    }

    fn apply_command(&mut self, turn: &mut ApplyContext<'_>, command: Command) -> Result<(), CommandError> {
        if self.workspace_doc.is_none() {
            return Err(CommandError("the workspace is not open yet; try again in a moment".to_owned()));
        }
        match command {
            Command::OpenFolder { folder, name } => self.open_folder(turn, folder, name),
            Command::CloseVolume { volume } => self.close_volume(turn, volume),
            Command::NewNote { volume, path, text } => self.new_note(turn, volume, &path, &text),
            Command::OpenNote { note } => self.open_note(turn, note),
            Command::HoldNote { note } => self.hold_note(turn, note, true),
            Command::ReleaseNote { note } => self.hold_note(turn, note, false),
            Command::CloseNote { note } => self.close_note(turn, note),
            Command::Edit { note, at, delete, insert } => self.edit_note(turn, note, at, delete, &insert),
            Command::EditAll { note, edits } => self.apply_edits(turn, note, edits),
            Command::Undo { note } => self.undo(turn, note, false),
            Command::Redo { note } => self.undo(turn, note, true),
            Command::TakeNotebook { note, notebook, executions } => {
                self.import_notebook(turn, note, &notebook, executions)
            }
            Command::Run { note, cell } => self.run_cell(turn, note, cell),
            Command::RunWithin { note, cell, seconds } => self.run_cell_with_timeout(turn, note, cell, seconds),
            Command::RunAll { note } => self.run_all(turn, note),
            Command::RunCells { note, cells } => self.run_cells(turn, note, cells),
            Command::RunStale { note } => self.run_stale(turn, note),
            Command::RunClean { note } => self.run_clean(turn, note),
            Command::SetReactivity { note, to } => self.set_reactivity(turn, note, to),
            Command::FindKernels { note } => self.find_kernels(turn, note),
            Command::Grant { note, grant } => self.set_kernel_grant(turn, note, grant),
            Command::UseKernel { note, kernel, keep, seen } => {
                self.use_kernel(turn, note, kernel, keep, seen.as_deref())
            }
            Command::Answer { note, text } => self.answer_stdin(turn, note, text),
            Command::Interrupt { note } => self.interrupt_kernel(turn, note),
            Command::RestartKernel { note } => self.restart_kernel(turn, note),
            Command::MoveFiles { moves } => self.move_files(turn, &moves),
            Command::DeleteFiles { files } => self.delete_files(turn, &files),
            Command::RestoreFile { file, path } => self.restore_file(turn, file, path.as_deref()),
            Command::Discard { files } => self.delete_from_trash(turn, &files),
            Command::Amend { note, at, old, new } => self.replace_note_text(turn, note, at, old, new),
            Command::Check { note, at, words, today } => self.toggle_task(turn, note, at, words, today),
            Command::SetProperty { note, key, value } => self.set_property(turn, note, key, value),
            Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall } => {
                let asking = RunRequest {
                    run,
                    session,
                    volume,
                    note,
                    parent,
                    text,
                    agent,
                    budget,
                    allow: agent::policy::ToolPolicy::rules_for_question(&allow, run),
                    button: None,
                    recall,
                    origin: store::RunOrigin::User,
                    plan: None,
                    project: None,
                };
                self.request_run(turn, asking)
            }
            Command::ImportSession { session, volume, title, messages, imported } => {
                self.import_session(turn, session, volume, &title, (messages, imported))
            }
            Command::ImportRun { run, about, todos, steps } => self.import_run(turn, run, *about, todos, steps),
            Command::ShowView { note, view, shown } => self.set_view_shown(turn, note, view, shown),
            Command::Press { run, note, view, button } => self.press_button(turn, run, note, view, button),
            Command::CancelRun { run } => self.cancel_run(turn, run),
            Command::ResumeRun { run, more, budget } => self.resume_run(turn, run, more, budget),
            Command::Decide { run, approval, decision } => self.decide_approval(turn, run, &approval, decision),
            Command::SetTodos { run, todos } => self.set_todos(turn, run, todos),
            Command::Revert { run, only, again } => self.revert_changes(turn, run, only, again),
            Command::OpenRun { run } => self.open_run(turn, run),
            Command::OpenSession { session } => self.open_session(turn, session),
            Command::GoTo { session, message } => self.switch_branch(turn, session, message),
            Command::DescribeSession { session, title, closed } => self.update_session(turn, session, title, closed),
            Command::ForkSession { session, at, new } => self.fork_session(turn, session, at, new),
            Command::MergeBranch { session, from, into } => self.merge_branch(turn, session, from, into),
            Command::DeleteSession { session } => self.delete_session(turn, session, true),
            Command::ProposeTool { tool } => self.propose_tool(turn, *tool),
            Command::ApproveTool { name, version } => self.approve_tool(turn, name, version),
            Command::RemoveTool { name } => self.remove_tool(turn, name),
            Command::AddSchedule { schedule, what } => self.add_schedule(turn, schedule, *what),
            Command::RemoveSchedule { schedule } => self.remove_schedule(turn, schedule),
            Command::PauseSchedule { schedule, paused } => self.pause_schedule(turn, schedule, paused),
            Command::RunSchedule { schedule } => self.run_schedule(turn, schedule),
            Command::MindSchedules { zones } => self.start_scheduler(turn, zones),
            Command::RunTasks { run, session, note, tasks, only, budget, allow } => {
                self.run_tasks(turn, (run, session, note), tasks, only.as_deref(), (budget, allow))
            }
            Command::CancelTask { note, task } => self.cancel_task(turn, note, task),
            Command::ReopenTask { note, task, failed } => self.reopen_task(turn, note, task, failed),
            Command::Upkeep { volume, what } => self.begin_memory_maintenance(turn, volume, what, None),
            Command::ReadSetup => {
                self.request_setup(turn);
                Ok(())
            }
            Command::ForgetRule { number } => self.forget_rule(turn, number),
            Command::UndoMove => self.undo_move(turn),
            Command::FollowRenamed => self.follow_external_renames(turn),
            Command::ShareVolume { volume, hub } => self.share_volume(turn, volume, &hub),
            Command::UnshareVolume { volume, hub } => self.unshare_volume(turn, volume, &hub),
            Command::JoinVolume { address, folder } => self.join_volume(turn, &address, folder),
            Command::PauseSync { paused } => {
                self.pause_sync(turn, paused);
                Ok(())
            }
            Command::Carets { note, carets } => {
                self.set_carets(note, &carets);
                Ok(())
            }
            Command::RetrySync => {
                self.retry_sync(turn);
                Ok(())
            }
            Command::Rescan => {
                let volumes: Vec<DocId> = self.volumes.keys().copied().collect();
                volumes.into_iter().for_each(|volume| self.scan(turn, volume));
                Ok(())
            }
            Command::Save => {
                self.save_all(turn);
                Ok(())
            }
            Command::Set { settings } => {
                self.set_settings(turn, *settings);
                Ok(())
            }
        }
    }

    fn apply_event(&mut self, turn: &mut ApplyContext<'_>, event: Event) {
        match event {
            Event::Started(started) => self.on_started(turn, *started),
            Event::Tick => self.tick(turn),
            Event::VolumeRead { volume, files } => self.volume_read(turn, volume, *files),
            Event::VolumeLinked { volume, links } => self.volume_linked(turn, volume, *links),
            Event::VolumeLoaded { volume, doc } => self.volume_loaded(turn, volume, doc),
            Event::Scanned { volume, files, seen } => self.scanned(turn, volume, files, seen),
            Event::ScanDone { volume, gone, skipped, failed } => self.scan_done(turn, volume, &gone, skipped, failed),
            Event::FileTouched { volume, path, seen } => self.file_touched(turn, volume, path.as_deref(), seen),
            Event::NoteRead { note, content } => {
                self.note_read(turn, note, content);
                self.place_remote_carets(note);
                self.find_named_kernel(turn, note);
            }
            Event::NoteLoaded { note, docs } => self.note_loaded(turn, note, docs),
            Event::FileRead { note, file } => self.file_read(turn, note, file),
            Event::FileWritten { note, stamp } => self.file_written(turn, note, stamp),
            Event::FileRaced { note, theirs } => self.file_raced(turn, note, theirs),
            Event::FileGone { note } => self.file_gone(turn, note),
            Event::FileFailed { note, why } => self.file_failed(turn, note, why),
            Event::Indexed { volume, notes } => self.on_indexed(turn, volume, notes),
            Event::FilesMoved { result } => self.on_files_moved(turn, result),
            Event::Discarded { file, result } => self.on_trash_file_deleted(turn, file, result),
            Event::Durable { batch } => self.on_durable(turn, batch),
            Event::DiskTrouble { why } => self.saving.trouble = Some(why),
            Event::Remote { note, bytes } => self.apply_remote_changes(turn, note, bytes.into()),
            Event::Received { doc, ticket, parcel } => self.on_received(turn, doc, ticket, parcel),
            Event::HubTold { hub, state, said } => self.on_hub_state(turn, &hub, *state, said),
            Event::Presence { doc, here } => self.on_presence(turn, doc, here),
            Event::AttachmentRead { file, stamp } => self.attachment_read(file, stamp),
            Event::AttachmentPlaced { volume, file, path, stamp } => {
                self.attachment_placed(turn, volume, file, path, stamp);
            }
            Event::BlobsCame { count } => self.on_blobs_received(count),
            Event::KernelsFound { kernels } => self.kernels_found(kernels),
            Event::KernelReady { note } => self.on_kernel_ready(note),
            Event::Began { note, execution } => self.on_execution_started(turn, note, execution),
            Event::Output { note, execution, output } => self.on_output(turn, note, execution, output),
            Event::Finished { note, execution, status, count, whole, cached, took } => {
                self.on_execution_finished(turn, note, execution, (status, cached, took), count, whole);
            }
            Event::Updated { note, execution, at, output } => self.update_output(turn, note, execution, at, output),
            Event::Cleared { note, execution } => self.clear_outputs(note, execution),
            Event::Asked { note, execution, prompt, password } => {
                self.on_stdin_request(note, execution, prompt, password)
            }
            Event::KernelDied { note, why } => self.on_kernel_died(turn, note, &why),
            Event::AgentSetup(setup) => self.agent_setup(turn, *setup),
            Event::SessionLoaded { session, doc } => self.session_loaded(turn, session, doc),
            Event::RunLoaded { run, doc } => self.run_loaded(turn, run, doc),
            Event::RegistryLoaded { registry, doc } => self.registry_loaded(turn, registry, doc),
            Event::Gathered { run, found, memory, crew } => {
                self.on_context_gathered(turn, run, &found, (*memory, *crew))
            }
            Event::Spent(outlay) => self.record_embedding_cost(turn, outlay),
            Event::MemoryRead { volume, memory } => self.on_memory_read(turn, volume, &memory),
            Event::ModelDelta { call, delta } => self.on_model_delta(turn, call, delta),
            Event::ModelDone { call, result } => self.on_model_done(turn, call, result),
            Event::ToolDone { run, call, outcome } => self.on_tool_done(turn, run, &call, *outcome),
        }
    }

    fn on_started(&mut self, turn: &mut ApplyContext<'_>, started: WorkspaceStart) {
        self.workspace = started.workspace;
        self.folder = started.folder;
        self.device = RunDevice { id: started.workspace, name: started.device };
        self.actor = ActorId::from(started.actor);
        self.settings = started.settings.clamped();
        self.mounts = started.mounts;
        self.saving = SaveStatus { last: started.last_seq, durable: started.last_seq, trouble: None };
        self.unfinished = started.unfinished;
        self.problems = started.problems;
        self.trash = started.trash;
        self.pending_move = started.moving;
        self.undoable_moves = started.moved;
        self.external_renames = started.renamed;
        let actor = RowWrite::Actor { actor: started.actor.to_vec(), at: turn.now.0 };
        self.append_writes(turn, vec![actor], None);
        for (id, entry) in started.doc.volumes() {
            let root = self.mounts.get(&id).cloned();
            self.volumes.insert(id, Volume::new(id, entry.name, root));
            turn.effects.push(Effect::LoadVolume { volume: id });
        }
        self.workspace_new = started.doc.volumes().is_empty();
        self.workspace_doc = Some(started.doc);
        self.load_sync_state(started.shares, started.sync_log, started.sync_kept);
        self.schedules_started(turn, started.schedules);
        self.load_embedding_costs(started.outlays);
        self.agents_started(turn, started.sessions, started.runs, started.rules);
    }

    fn set_settings(&mut self, turn: &mut ApplyContext<'_>, settings: Settings) {
        let settings = settings.clamped();
        if settings != self.settings {
            let value = serde_json::to_vec(&settings).unwrap_or_default();
            self.settings = settings;
            self.append_writes(turn, vec![RowWrite::Meta { key: "settings".to_owned(), value: Some(value) }], None);
        }
    }

    fn tick(&mut self, turn: &mut ApplyContext<'_>) {
        self.wake = None;
        self.tick_kernel_pool(turn);
        self.tick_runs(turn);
        self.watch_runs(turn);
        self.tick_schedules(turn);
        let open: Vec<DocId> = self.notes.keys().copied().collect();
        for note in open {
            self.tick_note(turn, note);
            self.tick_kernel(turn, note);
        }
        let volumes: Vec<DocId> = self.volumes.keys().copied().collect();
        for volume in volumes {
            self.write_volume_doc(turn, volume);
        }
    }

    fn on_durable(&mut self, turn: &mut ApplyContext<'_>, batch: BatchNumber) {
        self.saving.trouble = None;
        while self.in_flight.front().is_some_and(|flight| flight.batch <= batch) {
            let Some(flight) = self.in_flight.pop_front() else { break };
            self.saving.durable = self.saving.durable.max(flight.upto);
            if !flight.then.is_empty() {
                self.append_writes(turn, flight.then, None);
            }
            if let Some(note) = flight.mirror {
                self.write_file(turn, note);
            }
        }
        self.agents_durable(turn, batch);
    }

    fn save_all(&mut self, turn: &mut ApplyContext<'_>) {
        self.save_sync_log(turn, true);
        self.on_hub_left(turn, None);
        let open: Vec<DocId> = self.notes.keys().copied().collect();
        for note in open {
            self.end_burst(turn, note);
            self.save_outputs(turn, note);
            if let Some(note) = self.notes.get_mut(&note) {
                note.file.due = note.file.due.map(|_| turn.now);
            }
            self.write_file(turn, note);
        }
    }

    /// Sends writes to the disk. `mirror`: once they're there, the note's file may be written.
    pub(in crate::session) fn append_writes(
        &mut self,
        turn: &mut ApplyContext<'_>,
        writes: Vec<RowWrite>,
        mirror: Option<DocId>,
    ) {
        self.append_writes_then(turn, writes, mirror, Vec::new());
    }

    pub(in crate::session) fn append_writes_then(
        &mut self,
        turn: &mut ApplyContext<'_>,
        mut writes: Vec<RowWrite>,
        mirror: Option<DocId>,
        then: Vec<RowWrite>,
    ) {
        writes.extend(self.track_outbox_writes(turn.now, &writes));
        let batch = self.next_batch;
        self.next_batch += 1;
        self.in_flight.push_back(PendingBatch { batch, upto: self.saving.last, mirror, then });
        turn.effects.push(Effect::Append { batch, writes });
    }

    /// Asks to be called again at `at`, unless that is already so.
    pub(in crate::session) fn wake_at(&mut self, turn: &mut ApplyContext<'_>, at: UnixMillis) {
        if self.wake.is_none_or(|wake| at < wake) {
            self.wake = Some(at);
            turn.effects.push(Effect::Wake { at });
        }
    }

    /// What happened that others may want to know of.
    pub fn notices(&self) -> &RecentNotices {
        &self.notices
    }

    fn notify(&mut self, turn: &ApplyContext<'_>, notice: Notice) {
        self.notices.publish(turn.now, notice);
    }

    /// Whether the workspace is open.
    pub fn is_open(&self) -> bool {
        self.workspace_doc.is_some()
    }

    /// Returns this device's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether all is on disk.
    pub fn saving(&self) -> &SaveStatus {
        &self.saving
    }

    /// Whether nothing waits for the disk or a file.
    pub fn is_saved(&self) -> bool {
        self.in_flight.is_empty()
            && self.notes.values().all(|note| !note.is_ahead_of_file() && note.unsaved_outputs.is_empty())
    }

    /// Whether all notes are indexed, except those whose file can't be written: nobody knows when that ends.
    pub fn is_indexed(&self) -> bool {
        let stuck = |note: &DocId| self.notes.get(note).is_some_and(|note| note.file.trouble.is_some());
        self.volumes.values().all(|volume| volume.known && volume.is_linked() && volume.unindexed.iter().all(stuck))
    }

    /// The volumes, by id.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.values()
    }

    /// Returns the volume with this id.
    pub fn volume(&self, id: DocId) -> Option<&Volume> {
        self.volumes.get(&id)
    }

    /// Returns the note if it's open.
    pub fn note(&self, id: DocId) -> Option<&Note> {
        self.notes.get(&id)
    }

    /// Returns all open notes.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.values()
    }

    /// Returns a file's volume and its path in the volume.
    pub fn locate_file(&self, file: DocId) -> Option<(DocId, &str)> {
        self.file_locations.get(&file).map(|(volume, path)| (*volume, path.as_str()))
    }

    /// What was found wrong while opening, for the user.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
