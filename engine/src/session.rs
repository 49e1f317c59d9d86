//! The session: the complete state, and [`Session::apply`], the only way to change it.

mod apply_context;
mod cells;
mod external_renames;
mod forks;
mod grants;
mod kernel_pool;
mod kernel_states;
mod kernels;
mod memory_maintenance;
mod moves;
mod note_files;
mod note_jobs;
mod notes;
mod private_memory;
mod queries;
mod reactive;
pub mod runs;
mod schedule_events;
mod schedules;
mod shared_states;
mod state;
mod sync;
mod trash;
mod volume_paths;
mod volumes;

pub use crate::records::kernels::{
    CleanRunReport, DEPENDENCIES_PROPERTY, EMBEDDED_KERNEL, END_OF_INPUT, ENVIRONMENT_KERNEL, INSTANT_KERNEL,
    KernelGrant, KernelKind, KernelSpec, KernelStateMove, KernelStateReport, NotePackages, REQUIRES_PYTHON_PROPERTY,
    SCIENCE_KERNEL, SharedStateJob, SharedStateOutcome, SharedStateProgress, StdinRequest,
};
pub use crate::records::moves::{
    CompletedMove, EXTERNAL_RENAMES_KEY, ExternalRename, FileLocation, FileMove, GONE_FILES_KEY, PENDING_MOVE_KEY,
    PendingMove, RELINK_KEY_PREFIX, TRASH_FOLDER, TRASH_KEY_PREFIX, TrashedFile, UNDO_MOVES_KEY,
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
pub use agent::run_records::{
    AgentSetup, EMBEDDING_COSTS_KEY_PREFIX, EmbeddingCost, POLICY_RULES_KEY, PROVIDER_LATENCIES_KEY, RUN_KEY_PREFIX,
    RunSummary, SESSION_KEY_PREFIX, SessionSummary,
};
pub use apply_context::CommandError;
pub use runs::PHASE_NAMES;
pub use runs::{
    BudgetScope, BudgetStatus, PhaseStatus, RunPhase, RunTraceError, RunVerificationError, ScopeSpending, phases_of,
    revertible_parts, run_address, session_address,
};
pub use state::Session;
pub use state::schedules::SCHEDULE_KEY_PREFIX;
pub use state::volumes::{InstructionFile, ScanState, Volume};
pub use sync::parse_heads;
pub use sync::{SyncProgress, SyncStatus, hub_address, read_volume_address, volume_address};

use crate::command::Command;
use crate::effect::Effect;
use crate::event::{Event, WorkspaceStart};
use crate::note::{Note, NotePhase};
use crate::records::saving::BatchNumber;
use crate::session::state::runs::RunRequest;
use crate::session::state::{FilesState, SessionState};
use agent::notice::RecentNotices;
use apply_context::{ApplyContext, SessionRequest};
use rand_core::RngCore;
use store::disk::RowWrite;
use store::{ActorId, DocId, RunDevice};
use text::time::UnixMillis;

/// An input of [`Session::apply`].
#[derive(Debug)]
pub enum SessionInput {
    /// A request of the user.
    Command(Command),
    /// Something that happened outside the session.
    Event(Event),
}

impl Session {
    /// Creates a session that waits for [`Event::Started`].
    pub fn new() -> Session {
        Session::default()
    }

    /// Applies one input; the only entry point. `now` and `rng` are the only inputs besides `input`.
    ///
    /// # Errors
    /// Returns a [`CommandError`] if the command can't be carried out; the state is then unchanged. Events are never
    /// rejected.
    pub fn apply(
        &mut self,
        now: UnixMillis,
        rng: &mut dyn RngCore,
        input: SessionInput,
    ) -> Result<Vec<Effect>, CommandError> {
        let mut turn = ApplyContext::new(now, rng, &mut self.journal);
        match input {
            SessionInput::Command(command) => self.state.apply_command(&mut turn, command)?,
            SessionInput::Event(event) => self.state.apply_event(&mut turn, event),
        }
        self.state.pass_on_requests(&mut turn);
        self.state.step(&mut turn);
        Ok(turn.effects)
    }

    /// Returns recent events that users or other programs may want to know about.
    pub fn notices(&self) -> &RecentNotices {
        &self.journal.notices
    }

    /// Returns how much of what was typed is on disk.
    pub fn saving(&self) -> &SaveStatus {
        &self.journal.saving
    }

    /// Returns whether nothing is waiting for the disk or a file.
    pub fn is_saved(&self) -> bool {
        self.are_saved(|_| true)
    }

    /// Returns whether nothing is waiting for the disk, or for the files of the notes that count.
    pub fn are_saved(&self, counts: impl Fn(&Note) -> bool) -> bool {
        let mut notes = self.state.files.notes.open.values().filter(|note| counts(note));
        self.journal.in_flight.is_empty()
            && notes.all(|note| !note.is_ahead_of_file() && note.unsaved_outputs.is_empty())
    }

    /// Returns problems found while opening the workspace, for the user.
    pub fn problems(&self) -> &[String] {
        &self.journal.problems
    }
}

impl SessionState {
    /// Runs the steps that follow every input.
    fn step(&mut self, turn: &mut ApplyContext<'_>) {
        self.files.step_move(turn, &mut self.sync, &self.workspace);
        self.pass_on_requests(turn);
        self.files.volumes.step_unreachable(turn);
        self.files.step_note_jobs(turn, &mut self.sync);
        self.schedules.step_memory_maintenance(turn, &self.files.volumes, &mut self.runs);
        let default_kernel = self.workspace.settings.default_kernel.as_deref();
        self.kernels.step_default_kernel(turn, &mut self.files, default_kernel);
        self.kernels.step_kernel_pool(turn, &self.files, &self.workspace);
        self.runs.step_tool_note_jobs(turn, &mut self.files, &self.kernels, &mut self.sync, &self.workspace);
        self.runs.step_waiting_jobs(turn, &self.files);
        self.runs.step_restores(turn, &mut self.files, &mut self.sync);
        if self.sync.is_active() {
            self.sync.step_remote_changes(turn, &mut self.files, &mut self.runs, &self.workspace);
            self.runs.step_tool_sharing(turn, &self.files.volumes, &mut self.sync, &self.workspace);
            self.runs.write_volume_lists(turn, &mut self.files.volumes, &mut self.sync);
            self.sync.step_reports(turn, &mut self.files, &self.runs, &self.workspace);
            self.runs.step_held_runs(turn, &mut self.files, &mut self.sync, &self.workspace);
        }
        self.pass_on_requests(turn);
        self.schedules.step_schedule_events(turn, &self.files.volumes, &self.runs, &self.workspace);
        self.sync.track_outbox(turn, &self.files.volumes, &self.runs);
    }

    /// Passes the aggregates' requests to each other, in order, until none is left.
    fn pass_on_requests(&mut self, turn: &mut ApplyContext<'_>) {
        while let Some(request) = turn.requests.pop_front() {
            match request {
                SessionRequest::SyncLoadedVolume { volume } => {
                    let (sync, files) = (&mut self.sync, &mut self.files);
                    sync.reconcile_files(turn, files, &self.runs, &self.workspace, volume);
                    sync.sync_volume_loaded(turn, files, &mut self.runs, &self.workspace, volume);
                }
                SessionRequest::RetryRemoteChanges { volume, why } => {
                    let (sync, files) = (&mut self.sync, &mut self.files);
                    sync.retry_remote_changes(turn, files, &self.runs, &self.workspace, volume, &why);
                }
                SessionRequest::OpenMemory { volume } => {
                    let opened = self.files.volumes.open_private_memory(turn, &mut self.workspace, volume);
                    turn.journal.problems.extend(opened.err().map(|CommandError(why)| why));
                }
                SessionRequest::FinishSchedule { schedule, outcome } => {
                    self.schedules.finish_schedule(turn, schedule, outcome);
                }
            }
        }
    }

    fn apply_command(&mut self, turn: &mut ApplyContext<'_>, command: Command) -> Result<(), CommandError> {
        if self.workspace.doc.is_none() {
            return Err(CommandError("the workspace is not open yet; try again in a moment".to_owned()));
        }
        match command {
            Command::OpenFolder { folder, name } => {
                self.files.volumes.open_folder(turn, &mut self.sync, &mut self.workspace, folder, name)
            }
            Command::OpenFork { origin, folder } => {
                self.files.volumes.open_fork(turn, &mut self.sync, &mut self.workspace, origin, folder)
            }
            Command::CloseVolume { volume } => {
                self.files.close_volume(turn, &mut self.sync, &mut self.workspace, volume)
            }
            Command::OpenMemory { volume } => self.files.volumes.open_private_memory(turn, &mut self.workspace, volume),
            Command::NewNote { volume, path, text } => {
                self.files.new_user_note(turn, &mut self.sync, volume, &path, &text)
            }
            Command::OpenNote { note } => self.files.open_note(turn, &mut self.kernels, &mut self.workspace, note),
            Command::HoldNote { note } => self.files.hold_note(turn, &mut self.sync, note, true),
            Command::ReleaseNote { note } => self.files.hold_note(turn, &mut self.sync, note, false),
            Command::CloseNote { note } => self.files.close_note(turn, &mut self.sync, note),
            Command::Edit { note, at, delete, insert } => {
                self.files.notes.edit_note(turn, &self.sync, note, at, delete, &insert)
            }
            Command::EditAll { note, edits } => self.files.notes.apply_edits(turn, &self.sync, note, edits),
            Command::EditIfUnchanged { note, expected, edits } => {
                self.files.notes.ensure_text(note, expected)?;
                if self.files.moves.is_leaving(note) {
                    return Err(CommandError("the note is being deleted".to_owned()));
                }
                self.files.notes.apply_edits(turn, &self.sync, note, edits)
            }
            Command::Undo { note } => self.files.notes.undo(turn, &self.sync, note, false),
            Command::Redo { note } => self.files.notes.undo(turn, &self.sync, note, true),
            Command::TakeNotebook { note, notebook, executions } => {
                self.files.notes.import_notebook(turn, note, &notebook, executions)
            }
            Command::TakeExecutions { note, executions } => self.files.notes.take_executions(turn, note, executions),
            Command::Run { note, cell } => {
                self.files.run_cell(turn, &self.kernels, &self.sync, &self.workspace, note, cell)
            }
            Command::RunWithin { note, cell, seconds } => self.files.run_cell_with_timeout(
                turn,
                &self.kernels,
                &self.sync,
                &self.workspace,
                note,
                (cell, seconds),
            ),
            Command::RunAll { note } => self.files.run_all(turn, &self.kernels, &self.sync, &self.workspace, note),
            Command::RunCells { note, cells } => {
                self.files.queue_cells(turn, &self.kernels, &self.sync, &self.workspace, note, cells)
            }
            Command::RunStale { note } => self.files.run_stale(turn, &self.kernels, &self.sync, &self.workspace, note),
            Command::RunClean { note } => self.files.run_clean(turn, &self.kernels, &self.sync, &self.workspace, note),
            Command::SetReactivity { note, to } => self.files.notes.set_reactivity(turn, &self.sync, note, to),
            Command::FindKernels { note } => self.files.volumes.find_kernels(turn, note),
            Command::Grant { note, grant } => self.workspace.set_kernel_grant(turn, &mut self.files.notes, note, grant),
            Command::UseKernel { note, kernel, keep, seen } => self.kernels.use_kernel(
                turn,
                &mut self.files,
                &mut self.sync,
                &mut self.workspace,
                (note, kernel),
                (keep, seen.as_deref()),
            ),
            Command::Answer { note, text } => self.files.notes.answer_stdin(turn, note, text),
            Command::Interrupt { note } => self.files.notes.interrupt_kernel(turn, note),
            Command::ShareState { note, is_shared } => self.files.share_state(turn, &self.sync, note, is_shared),
            Command::MoveState { note, to } => self.files.move_kernel_state(turn, &self.workspace, note, to),
            Command::RestartKernel { note } => self.files.notes.restart_kernel(turn, note),
            Command::MoveFiles { moves } => self.files.move_files(turn, &mut self.sync, &moves),
            Command::DeleteFiles { files } => self.files.delete_files(turn, &mut self.sync, &files),
            Command::DeleteIfUnchanged { note, expected } => {
                self.files.notes.ensure_text(note, expected)?;
                self.files.delete_files(turn, &mut self.sync, &[note])
            }
            Command::RestoreFile { file, path } => self.files.restore_file(turn, &mut self.sync, file, path.as_deref()),
            Command::Discard { files } => self.files.delete_from_trash(turn, &self.workspace, &files),
            Command::Amend { note, at, old, new } => {
                self.files.replace_note_text(turn, &mut self.sync, note, at, old, new)
            }
            Command::Check { note, at, words, today } => {
                self.files.toggle_task(turn, &mut self.sync, note, at, words, today)
            }
            Command::SetProperty { note, key, value } => {
                self.files.set_property(turn, &mut self.sync, note, key, value)
            }
            Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall, provider } => {
                if self.runs.is_for_memory(&text, agent.as_deref()) {
                    self.files.volumes.open_private_memory(turn, &mut self.workspace, volume)?;
                }
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
                    provider: provider.map(String::from),
                };
                self.runs.request_run(turn, &self.files.volumes, &self.workspace, asking)
            }
            Command::ImportSession { session, volume, title, messages, imported } => self.runs.import_session(
                turn,
                &mut self.sync,
                &self.workspace,
                session,
                (volume, &title),
                (messages, imported),
            ),
            Command::ImportRun { run, about, todos, steps, approvals } => {
                self.runs.import_run(turn, &mut self.sync, &self.workspace, run, (*about, todos, steps, approvals))
            }
            Command::ShowView { note, view, shown } => self.files.notes.set_view_shown(turn, note, view, shown),
            Command::Press { run, note, view, button } => {
                self.runs.press_button(turn, &self.files, &self.workspace, run, note, (view, button))
            }
            Command::CancelRun { run } => {
                self.runs.cancel_run(turn, &mut self.files, &mut self.sync, &self.workspace, run)
            }
            Command::ResumeRun { run, more, budget } => {
                self.runs.resume_run(turn, &mut self.sync, &self.workspace, run, more, budget)
            }
            Command::HoldRun { run, hub, policy } => {
                self.runs.hold_run(turn, &mut self.files, &mut self.sync, &self.workspace, run, (hub, policy))
            }
            Command::Decide { run, approval, decision } => self.runs.decide_approval(
                turn,
                &mut self.files,
                &mut self.sync,
                &self.workspace,
                (run, &approval),
                decision,
            ),
            Command::SetTodos { run, todos } => self.runs.set_todos(turn, &mut self.sync, run, todos),
            Command::Revert { run, only, again } => {
                self.runs.revert_changes(turn, &mut self.files, &mut self.sync, run, only, again)
            }
            Command::RateRun { run, rating } => self.runs.rate_run(turn, &mut self.files, &mut self.sync, run, rating),
            Command::OpenRun { run } => self.runs.open_run(turn, run),
            Command::OpenSession { session } => self.runs.open_session(turn, session),
            Command::GoTo { session, message } => self.runs.switch_branch(turn, &mut self.sync, session, message),
            Command::DescribeSession { session, title, closed } => {
                self.runs.update_session(turn, &mut self.sync, session, title, closed)
            }
            Command::ForkSession { session, at, new } => {
                self.runs.fork_session(turn, &mut self.sync, &self.workspace, session, at, new)
            }
            Command::MergeBranch { session, from, into } => {
                self.runs.merge_branch(turn, &mut self.sync, session, from, into)
            }
            Command::DeleteSession { session } => {
                self.runs.delete_session(turn, &mut self.sync, session, true)?;
                let runs = &self.runs.run_summaries;
                self.files.notes.forget_known_texts(turn, |run| !runs.contains_key(run));
                Ok(())
            }
            Command::ProposeTool { tool } => self.runs.propose_tool(turn, &self.sync, &self.workspace, *tool),
            Command::ApproveTool { name, version } => {
                self.runs.approve_tool(turn, &self.sync, &self.workspace, name, version)
            }
            Command::RemoveTool { name } => {
                self.runs.remove_tool(turn, &self.files.volumes, &mut self.sync, &self.workspace, name)
            }
            Command::AddSchedule { schedule, what } => {
                self.schedules.add_schedule(turn, &self.files.volumes, &mut self.runs, &self.workspace, schedule, *what)
            }
            Command::RemoveSchedule { schedule } => self.schedules.remove_schedule(turn, schedule),
            Command::PauseSchedule { schedule, paused } => self.schedules.pause_schedule(
                turn,
                &self.files.volumes,
                &mut self.runs,
                &self.workspace,
                schedule,
                paused,
            ),
            Command::RunSchedule { schedule } => {
                self.schedules.run_schedule(turn, &self.files.volumes, &mut self.runs, &self.workspace, schedule)
            }
            Command::MindSchedules { zones } => {
                self.schedules.start_scheduler(turn, &self.files.volumes, &mut self.runs, &self.workspace, zones)
            }
            Command::PublishEvent { volume, kind, data } => {
                self.schedules.publish_event(turn, &self.files.volumes, volume, (&kind, data))
            }
            Command::RunTasks { run, session, note, tasks, only, budget, allow } => self.runs.run_tasks(
                turn,
                &self.files.volumes,
                &self.workspace,
                (run, session, note),
                (tasks, only.as_deref()),
                (budget, allow),
            ),
            Command::FinishSentTask { run, ending, said } => {
                let ending = (ending, said.as_str());
                self.runs.finish_sent_task(turn, &mut self.files, &mut self.sync, &self.workspace, run, ending)
            }
            Command::TakeBackTask { run, hub } => {
                self.runs.take_back_task(turn, &mut self.files, &mut self.sync, &self.workspace, (run, hub))
            }
            Command::CancelTask { note, task } => {
                self.runs.cancel_task(turn, &mut self.files, &mut self.sync, &self.workspace, note, task)
            }
            Command::ReopenTask { note, task, failed } => {
                self.runs.reopen_task(turn, &mut self.files, &mut self.sync, &self.workspace, note, (task, failed))
            }
            Command::Upkeep { volume, what } => {
                self.schedules.begin_memory_maintenance(turn, &self.files.volumes, volume, what, None)
            }
            Command::ReadSetup => {
                self.runs.request_setup(turn, &self.workspace);
                Ok(())
            }
            Command::ForgetRule { number } => self.runs.forget_rule(turn, number),
            Command::UndoMove => self.files.undo_move(turn, &mut self.sync),
            Command::FollowRenamed => self.files.follow_external_renames(turn),
            Command::ShareVolume { volume, hub } => {
                self.sync.share_volume(turn, &self.files, &mut self.runs, &self.workspace, volume, &hub)
            }
            Command::UnshareVolume { volume, hub } => {
                self.sync.unshare_volume(turn, &self.files.volumes, &self.runs, volume, &hub)
            }
            Command::JoinVolume { address, folder } => {
                self.sync.join_volume(turn, &mut self.files.volumes, &self.runs, &mut self.workspace, &address, folder)
            }
            Command::PauseSync { paused } => {
                self.sync.pause_sync(turn, &self.files.volumes, &self.runs, paused);
                Ok(())
            }
            Command::Carets { note, carets } => {
                self.sync.set_carets(&self.files, note, &carets);
                Ok(())
            }
            Command::RetrySync => {
                self.sync.retry_sync(turn);
                Ok(())
            }
            Command::Rescan => {
                let volumes: Vec<DocId> = self.files.volumes.by_id.keys().copied().collect();
                volumes.into_iter().for_each(|volume| self.files.volumes.scan(turn, volume));
                Ok(())
            }
            Command::Save => {
                self.save_all(turn);
                Ok(())
            }
            Command::Set { settings } => {
                self.workspace.set_settings(turn, *settings);
                Ok(())
            }
        }
    }

    fn apply_event(&mut self, turn: &mut ApplyContext<'_>, event: Event) {
        match event {
            Event::Started(started) => self.on_started(turn, *started),
            Event::Tick => self.tick(turn),
            Event::VolumeRead { volume, files } => self.files.volume_read(turn, volume, *files),
            Event::VolumeLinked { volume, links } => self.files.volumes.volume_linked(turn, volume, *links),
            Event::VolumeLoaded { volume, doc } => self.files.volume_loaded(turn, &mut self.sync, volume, doc),
            Event::Scanned { volume, files, seen } => self.files.scanned(turn, &mut self.sync, volume, files, seen),
            Event::ScanDone { volume, gone, skipped, failed } => {
                self.files.scan_done(turn, &mut self.sync, volume, &gone, skipped, failed);
                self.runs.resume_stalled_runs(turn, &mut self.files, &mut self.sync, &self.workspace);
            }
            Event::FileTouched { volume, path, seen } => self.files.file_touched(turn, volume, path.as_deref(), seen),
            Event::NoteRead { note, content } => {
                self.files.note_read(turn, &mut self.sync, note, content);
                self.sync.place_remote_carets(&self.files.notes, note);
                self.kernels.find_named_kernel(turn, &self.files, note);
            }
            Event::NoteLoaded { note, docs } => {
                self.files.note_loaded(turn, &mut self.sync, note, docs);
                self.files.start_next_cell(turn, &self.workspace, note);
            }
            Event::FileRead { note, file } => self.files.file_read(turn, &mut self.sync, note, file),
            Event::FileWritten { note, stamp } => self.files.file_written(turn, &mut self.sync, note, stamp),
            Event::FileRaced { note, theirs } => self.files.file_raced(turn, &mut self.sync, note, theirs),
            Event::FileGone { note } => self.files.file_gone(turn, note),
            Event::FileFailed { note, why } => self.files.file_failed(turn, note, why),
            Event::Indexed { volume, notes } => self.files.on_indexed(turn, volume, notes),
            Event::FilesMoved { result } => self.files.on_files_moved(turn, &mut self.sync, result),
            Event::Discarded { file, result } => {
                self.files.moves.on_trash_file_deleted(turn, &mut self.sync, file, result)
            }
            Event::Durable { batch } => self.on_durable(turn, batch),
            Event::DiskTrouble { why } => turn.journal.saving.trouble = Some(why),
            Event::Remote { note, bytes } => self.files.apply_remote_changes(turn, &mut self.sync, note, bytes.into()),
            Event::Received { doc, ticket, parcel } => {
                self.sync.on_received(turn, &mut self.files, &mut self.runs, &self.workspace, (doc, ticket, parcel))
            }
            Event::HubTold { hub, state, said } => {
                self.sync.on_hub_state(turn, &self.files.volumes, &self.runs, &hub, *state, said)
            }
            Event::Presence { doc, here } => self.sync.on_presence(turn, &self.files.notes, doc, here),
            Event::AttachmentRead { file, stamp } => self.sync.attachment_read(&self.files.volumes, file, stamp),
            Event::AttachmentPlaced { volume, file, path, stamp } => {
                self.sync.attachment_placed(turn, &mut self.files.volumes, volume, file, path, stamp);
            }
            Event::BlobsCame { count } => self.sync.on_blobs_received(&mut self.files.notes, count),
            Event::KernelsFound { kernels } => self.kernels.kernels_found(kernels),
            Event::KernelReady { note } => self.files.notes.on_kernel_ready(note),
            Event::StateSaved { note, execution, problem } => {
                self.files.notes.on_state_saved(turn, &self.sync, note, execution, problem);
            }
            Event::StateUnchanged { note } => self.files.notes.on_state_unchanged(turn, &self.sync, note),
            Event::SharedStateDone { note, outcome } => {
                self.files.on_shared_state_done(turn, &mut self.sync, &self.workspace, note, outcome);
            }
            Event::StateMoved { note, state, branch, undone, rerun, problem } => {
                let report = KernelStateReport { count: 0, state, branch, undone: Vec::new(), problem };
                self.files.on_state_moved(
                    turn,
                    (&self.kernels, &self.sync, &self.workspace),
                    note,
                    report,
                    (&undone, rerun),
                );
            }
            Event::Began { note, execution } => self.files.notes.on_execution_started(turn, note, execution),
            Event::Output { note, execution, output } => self.files.notes.on_output(turn, note, execution, output),
            Event::Finished { note, execution, status, count, whole, cached, took } => {
                self.files.on_execution_finished(
                    turn,
                    &self.kernels,
                    &self.sync,
                    &self.workspace,
                    (note, execution),
                    ((status, cached, took), count, whole),
                );
            }
            Event::Updated { note, execution, at, output } => {
                self.files.notes.update_output(turn, note, execution, at, output)
            }
            Event::Cleared { note, execution } => self.files.notes.clear_outputs(note, execution),
            Event::Asked { note, execution, prompt, password } => {
                self.files.notes.on_stdin_request(turn, note, execution, prompt, password)
            }
            Event::KernelDied { note, why } => {
                self.files.on_kernel_died(turn, &self.kernels, &mut self.sync, &self.workspace, note, &why)
            }
            Event::AgentSetup(setup) => {
                self.runs.agent_setup(turn, &mut self.files, &mut self.sync, &self.workspace, *setup)
            }
            Event::SessionLoaded { session, doc } => {
                self.runs.session_loaded(turn, &mut self.files, &mut self.sync, &self.workspace, session, doc)
            }
            Event::RunLoaded { run, doc } => {
                self.runs.run_loaded(turn, &mut self.files, &mut self.sync, &self.workspace, run, doc);
                self.runs.resume_stalled_runs(turn, &mut self.files, &mut self.sync, &self.workspace)
            }
            Event::RegistryLoaded { registry, doc } => {
                self.runs.registry_loaded(turn, &mut self.files, &mut self.sync, &self.workspace, registry, doc)
            }
            Event::Gathered { run, found, material, memory, crew } => self.runs.on_context_gathered(
                turn,
                &mut self.files,
                &mut self.sync,
                &self.workspace,
                run,
                ((&found, &material), (*memory, *crew)),
            ),
            Event::Spent(outlay) => self.runs.record_embedding_cost(turn, &self.workspace, outlay),
            Event::MemoryRead { volume, memory } => {
                self.schedules.on_memory_read(turn, &mut self.files, &mut self.sync, volume, &memory)
            }
            Event::ModelDelta { call, delta } => self.runs.on_model_delta(turn, call, delta),
            Event::ModelDone { call, result } => {
                self.runs.on_model_done(turn, &mut self.files, &mut self.sync, &self.workspace, call, result)
            }
            Event::WebhookDone { failure } => self.runs.on_webhook_done(turn, failure),
            Event::ServerAsked { run, call, request, server, asked } => self.runs.on_server_asked(
                turn,
                &mut self.files,
                &mut self.sync,
                &self.workspace,
                (run, &call),
                (request, server, *asked),
            ),
            Event::ToolDone { run, call, outcome } => {
                self.runs.on_tool_done(turn, &mut self.files, &mut self.sync, &self.workspace, (run, &call), *outcome)
            }
        }
    }

    fn on_started(&mut self, turn: &mut ApplyContext<'_>, started: WorkspaceStart) {
        self.workspace.id = started.workspace;
        self.workspace.device = RunDevice { id: started.workspace, name: started.device };
        self.workspace.actor = ActorId::from(started.actor);
        self.workspace.settings = started.settings.clamped();
        self.files.volumes.mounts = started.mounts;
        (self.files.volumes.workspace_folder, self.files.volumes.memory_place) =
            (started.folder.clone(), started.memory_place);
        self.files.volumes.settings = started.volume_settings;
        self.files.volumes.forks = started.forks;
        self.workspace.folder = started.folder;
        turn.journal.saving = SaveStatus { last: started.last_seq, durable: started.last_seq, trouble: None };
        self.files.notes.unfinished = started.unfinished;
        self.files.notes.known_texts = started.known_texts;
        let is_open = |run: &DocId| started.runs.get(run).is_some_and(|line| line.ending.is_none());
        self.files.notes.forget_known_texts(turn, |run| !is_open(run)); // it may have ended on another device
        turn.journal.problems = started.problems;
        self.files.moves.trash = started.trash;
        self.files.moves.pending = started.moving;
        self.files.moves.undoable = started.moved;
        self.files.moves.external_renames = started.renamed;
        self.files.moves.gone = started.gone.into_iter().map(|row| ((row.volume, row.path.clone()), row)).collect();
        let actor = RowWrite::Actor { actor: started.actor.to_vec(), at: turn.now.0 };
        turn.append_writes(vec![actor], None);
        for (id, entry) in started.doc.volumes() {
            let root = self.files.volumes.mounts.get(&id).cloned();
            self.files.volumes.by_id.insert(id, Volume::new(id, entry.name, root));
            turn.effects.push(Effect::LoadVolume { volume: id });
        }
        self.files.volumes.mark_private_memory();
        self.files.volumes.mark_forks();
        self.workspace.is_new = started.doc.volumes().is_empty();
        self.workspace.doc = Some(started.doc);
        self.sync.load_sync_state(started.shares, started.sync_log, started.sync_kept);
        self.schedules.schedules_started(turn, started.schedules);
        self.runs.load_embedding_costs(started.outlays);
        self.runs.latencies = started.latencies;
        self.runs.agents_started(turn, started.sessions, started.runs, started.rules);
    }

    fn tick(&mut self, turn: &mut ApplyContext<'_>) {
        turn.journal.wake = None;
        self.kernels.tick_kernel_pool(turn);
        self.runs.tick_runs(turn, &mut self.files, &mut self.sync, &self.workspace);
        self.runs.watch_runs(turn, &mut self.files, &mut self.sync, &self.workspace);
        self.schedules.tick_schedules(turn, &self.files.volumes, &mut self.runs, &self.workspace);
        let open: Vec<DocId> = self.files.notes.open.keys().copied().collect();
        for note in open {
            self.files.tick_note(turn, &mut self.sync, note);
            self.files.notes.tick_kernel(turn, note);
        }
        let volumes: Vec<DocId> = self.files.volumes.by_id.keys().copied().collect();
        for volume in volumes {
            self.files.volumes.write_volume_doc(turn, &mut self.sync, volume);
        }
    }

    fn on_durable(&mut self, turn: &mut ApplyContext<'_>, batch: BatchNumber) {
        turn.journal.saving.trouble = None;
        while turn.journal.in_flight.front().is_some_and(|flight| flight.batch <= batch) {
            let Some(flight) = turn.journal.in_flight.pop_front() else { break };
            turn.journal.saving.durable = turn.journal.saving.durable.max(flight.upto);
            if !flight.then.is_empty() {
                turn.append_writes(flight.then, None);
            }
            if let Some(note) = flight.mirror {
                self.files.write_file(turn, &mut self.sync, note);
            }
        }
        self.runs.agents_durable(turn, &mut self.files, &mut self.sync, &self.workspace, batch);
    }

    fn save_all(&mut self, turn: &mut ApplyContext<'_>) {
        self.sync.save_sync_log(turn, true);
        self.sync.on_hub_left(turn, &self.files.volumes, &self.runs, None);
        let open: Vec<DocId> = self.files.notes.open.keys().copied().collect();
        for note in open {
            self.files.notes.end_burst(turn, note);
            self.files.notes.save_outputs(turn, note);
            if let Some(note) = self.files.notes.open.get_mut(&note) {
                note.file.due = note.file.due.map(|_| turn.now);
            }
            self.files.write_file(turn, &mut self.sync, note);
        }
    }
}

impl FilesState {
    /// Returns whether all notes are indexed, except those whose file can't be read or written, since that can last
    /// indefinitely.
    pub(in crate::session) fn is_indexed(&self) -> bool {
        self.volumes.by_id.values().all(|volume| self.is_volume_indexed(volume))
    }

    /// Returns the same of one volume.
    pub(in crate::session) fn is_volume_indexed(&self, volume: &Volume) -> bool {
        let is_stuck = |id: &DocId| match self.notes.open.get(id) {
            Some(note) => note.file.trouble.is_some() || matches!(note.phase, NotePhase::Failed(_)),
            None => volume.root.is_none() || volume.unreadable.contains(id),
        };
        volume.known && volume.is_linked() && volume.unindexed.iter().all(is_stuck)
    }
}
