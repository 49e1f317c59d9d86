//! Runs: an agent's work on a message, as state that survives restarts. A run calls a model, asks the policy, runs
//! tools, and continues until there's an answer. Nothing with an outside effect starts before it's on disk.

mod agent_mentions;
mod agent_messages;
mod approvals;
mod budget;
mod call_volumes;
mod changes;
mod delegation;
mod embedding_costs;
mod external_agents;
mod held_runs;
mod instructions;
mod lifecycle;
mod links;
mod mcp_tools;
mod memory_agents;
mod model_turns;
mod orchestrated_run;
mod orchestrator;
mod phases;
mod policy_checks;
mod prompt_material;
mod recall;
mod recovery;
mod remote_runs;
mod run_report;
mod sent_tasks;
mod server_material;
mod server_requests;
mod sessions;
mod tool_calls;
mod tool_note_jobs;
mod tool_registry;
mod tool_sharing;
mod trace_replay;
mod trace_verification;
mod view_actions;
mod watchdog;
mod webhooks;

pub use agent::budget::{BudgetScope, BudgetStatus, ScopeSpending};
pub use changes::revertible_parts;
pub use links::{run_address, session_address};
pub use orchestrated_run::PHASE_NAMES;
pub use phases::{PhaseStatus, RunPhase, phases_of};
pub use trace_replay::RunTraceError;
pub use trace_verification::RunVerificationError;

use crate::effect::Effect;
use crate::records::saving::BatchNumber;
use crate::session::apply_context::{ApplyContext, CommandError, SessionRequest};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, ProjectReadState};
use crate::session::state::runs::{RunRecord, RunRequest, RunsState};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::memory;
use agent::mention_match::strip_code;
use agent::model_context;
use agent::notice::Notice;
use agent::policy::PolicyRule;
use agent::run_records::{AgentSetup, RUN_KEY_PREFIX, RunSummary, SessionSummary};
use agent::schedule::ScheduleOutcome;
use agent::secrets::secret_files;
use agent::server_material::ServerMaterial;
use agent::tool_spec::ToolSpec;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::disk::RowWrite;
use store::{
    AgentState, CallUsage, DocId, ListedDocumentKind, MessageId, MessageRole, RunAbout, RunDoc, RunOrigin, RunWrite,
    SessionMessage,
};

/// Maximum number of model calls per run, until the user allows more.
const DEFAULT_MAX_MODEL_CALLS: u64 = 20;
/// Maximum number of recalled passages given to the model.
const MAX_RECALLED_PASSAGES: usize = 5;
/// Maximum length of a prompt in bytes.
const MAX_PROMPT_BYTES: usize = 1 << 20;

impl RunsState {
    pub(super) fn agents_started(
        &mut self,
        turn: &mut ApplyContext<'_>,
        lines: BTreeMap<DocId, SessionSummary>,
        runs: BTreeMap<DocId, RunSummary>,
        rules: Vec<PolicyRule>,
    ) {
        // Only runs with pending decisions are opened now, to show the decisions and apply their timeouts, and those
        // with an uncounted model call. Others are loaded when the user opens them.
        let waits = |line: &RunSummary| line.ending.is_none() && (line.pending > 0 || line.unsettled.is_some());
        let open: Vec<DocId> = runs.iter().filter(|(_, line)| waits(line)).map(|(id, _)| *id).collect();
        (self.session_summaries, self.run_summaries, self.rules) = (lines, runs, rules);
        for run in open {
            // A run that can't be opened reports that itself.
            let _ = self.open_run(turn, run);
        }
    }

    pub(super) fn agent_setup(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        mut setup: AgentSetup,
    ) {
        agent::server_tool_names::assign_tool_names(&mut setup.servers);
        self.notify_changed_tools(turn, &setup.servers);
        if setup.trouble.is_none() {
            files.volumes.memory_place = setup.config.memory.place;
            files.volumes.settings = setup.config.volumes.clone();
            for note in files.notes.open.values_mut() {
                note.locked = files.volumes.read_only_reason(note.volume);
            }
        }
        self.setup = Some(Arc::new(setup));
        self.is_reading_setup = false;
        self.revision += 1;
        let said = self.setup().map(|setup| setup.problems.clone()).unwrap_or_default();
        let new = said.into_iter().filter(|problem| !turn.journal.problems.contains(problem));
        let new: Vec<String> = new.collect();
        turn.journal.problems.extend(new);
        self.propose_plugins(turn, sync, workspace);
        self.begin_requested_runs(turn, files, sync, workspace);
        self.resume_stalled_runs(turn, files, sync, workspace);
    }

    /// Accepts a message and queues the run that answers it.
    pub(super) fn request_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        workspace: &WorkspaceState,
        question: RunRequest,
    ) -> Result<(), CommandError> {
        if question.text.trim().is_empty() {
            return Err(CommandError("enter a goal".to_owned()));
        }
        if question.text.len() > MAX_PROMPT_BYTES {
            return Err(CommandError(format!(
                "a message has at most {} MB; put the rest into a note",
                MAX_PROMPT_BYTES >> 20
            )));
        }
        if self.run_summaries.contains_key(&question.run) {
            return Err(CommandError("a run with that id already exists".to_owned()));
        }
        match volumes.by_id.get(&question.volume) {
            None => return Err(CommandError(format!("there is no volume {}", question.volume))),
            Some(volume) if volume.root.is_none() => {
                return Err(CommandError(format!("the volume has no folder on this device: {}", volume.name)));
            }
            Some(_) => {}
        }
        let busy = |run: &&AgentRun| {
            run.about.session == question.session && (run.is_busy() || run.is_awake() && run.is_gathering())
        };
        if let Some(run) = self.runs.values().find(busy)
            && question.parent.is_none_or(|parent| parent == run.about.head)
            && question.button.is_none()
        {
            return Err(CommandError(
                "the session is active; stop it first, or branch from an earlier message".to_owned(),
            ));
        }
        self.run_requests.push(question);
        // The configuration is read again for each request, since the file or a key may have changed.
        self.request_setup(turn, workspace);
        Ok(())
    }

    /// Requests the configuration of agents.
    pub(super) fn request_setup(&mut self, turn: &mut ApplyContext<'_>, workspace: &WorkspaceState) {
        if !std::mem::replace(&mut self.is_reading_setup, true) {
            turn.effects.push(Effect::ReadSetup);
        }
        self.read_registry(turn, workspace);
    }

    /// Returns the tools that agents may request, and the functions that events call.
    pub(in crate::session) fn agent_tools(&self) -> Vec<ToolSpec> {
        self.available_tools().into_iter().chain(self.handler_tools()).collect()
    }

    /// Resumes runs that waited for the setup, their session, or the first scan of their volume.
    pub(in crate::session) fn resume_stalled_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        for run in std::mem::take(&mut self.stalled_runs) {
            self.continue_run(turn, files, sync, workspace, run);
        }
    }

    /// Starts the runs whose sessions are loaded now.
    pub(super) fn begin_requested_runs(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
    ) {
        for question in std::mem::take(&mut self.run_requests) {
            let known = self.session_summaries.contains_key(&question.session);
            let loaded = self.sessions.contains_key(&question.session);
            let ready = !self.is_reading_setup && !self.loading.contains(&workspace.id.registry_id());
            let Some(setup) = self.setup.clone().filter(|_| ready) else {
                self.run_requests.push(question);
                continue;
            };
            if let Some(trouble) = setup.trouble.clone().or_else(|| self.unknown_approval_name()) {
                self.fail_run_request(turn, files, sync, workspace, (question.run, question.origin), trouble);
                continue;
            }
            if known && !loaded {
                // If it can't be opened, the reason is found below.
                let _ = self.open_session(turn, question.session);
                if let Some(why) = self.read_errors.get(&question.session).cloned() {
                    self.fail_run_request(turn, files, sync, workspace, (question.run, question.origin), why);
                    continue;
                }
                self.run_requests.push(question);
                continue;
            }
            let (run, origin) = (question.run, question.origin);
            if let Err(CommandError(why)) = self.begin_run(turn, files, sync, workspace, question) {
                self.fail_run_request(turn, files, sync, workspace, (run, origin), why);
            }
        }
    }

    /// Reports that a request didn't become a run.
    fn fail_run_request(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (run, origin): (DocId, RunOrigin),
        why: String,
    ) {
        match origin {
            RunOrigin::Schedule { schedule } => turn.requests.push_back(SessionRequest::FinishSchedule {
                schedule,
                outcome: ScheduleOutcome::Failed { why: why.clone() },
            }),
            RunOrigin::Agent { .. } => self.on_child_ended(turn, files, sync, workspace, run, (None, &why)),
            RunOrigin::User | RunOrigin::Device => {}
        }
        turn.journal.problems.push(why);
    }

    fn begin_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        mut question: RunRequest,
    ) -> Result<(), CommandError> {
        let (plan, project) = (question.plan.take(), question.project.take());
        let RunRequest {
            run: id,
            session,
            volume,
            note,
            parent,
            text,
            agent,
            budget,
            allow,
            button,
            recall,
            origin,
            provider,
            ..
        } = question;
        let material = match button {
            None => self.requested_material(origin, &text).map_err(|why| CommandError(why.to_string()))?,
            Some(_) => Vec::new(),
        };
        let title = button.as_ref().map_or(text.as_str(), |(title, _)| title);
        self.make_session(workspace, session, volume, note, title)?;
        let Some(conversation) = self.sessions.get(&session) else { return Ok(()) };
        let parent = match parent {
            Some(MessageId::SESSION_ROOT) => None,
            parent => parent.or(conversation.head()),
        };
        let asked = MessageId(turn.next_id());
        let message = SessionMessage {
            parents: parent.into_iter().collect(),
            run: Some(id),
            ..SessionMessage::new(asked, MessageRole::User, text.clone(), turn.now.0)
        };
        let agent = agent.or_else(|| self.mentioned_agent(&text)).unwrap_or_else(|| "assistant".to_owned());
        // Memory agents read and write the notes of memory, wherever these are.
        let home = files.volumes.memory_home(volume);
        let works_in_memory = memory_agents::is_memory_agent(&agent) && files.volumes.by_id.contains_key(&home);
        let volume = if works_in_memory { home } else { volume };
        let about = RunAbout {
            session,
            asked,
            head: asked,
            volume,
            note,
            prompt: text.clone(),
            agent,
            start_time: turn.now.0,
            ended: None,
            ending: None,
            iteration: 0,
            limit: DEFAULT_MAX_MODEL_CALLS,
            agent_state: AgentState::Thinking,
            spent: CallUsage { cost: Some(0.0), ..CallUsage::default() },
            budget,
            origin: if self.held.contains_key(&id) { RunOrigin::Device } else { origin },
            phase: 0,
            imported: None,
            provider,
            deadline: recall.deadline,
            is_follower: recall.mode == memory::ReplayMode::Follower,
        };
        let (agent, goal) = (about.agent.clone(), text.lines().next().unwrap_or_default().chars().take(200).collect());
        turn.notify(Notice::RunBegan { run: id, agent, goal });
        let loaded = RunDoc::load(id, &[], workspace.actor.clone()).map_err(|error| CommandError(error.to_string()))?;
        let mut run = AgentRun::new(id, about, Box::new(loaded.doc), true);
        run.run_memory.recall = recall;
        run.is_awake = true;
        run.orchestrator.plan = plan;
        run.project = project;
        run.device = Some(workspace.device.clone());
        self.runs.insert(id, run);
        self.rules.extend(allow);
        self.record_run(turn, sync, id, RunRecord { messages: vec![message], ..RunRecord::default() });
        if let Some((_, call)) = button {
            self.begin_button_run(turn, files, sync, workspace, id, call);
            return Ok(());
        }
        self.gather_context(turn, files, workspace, id, material);
        Ok(())
    }

    /// Reads the files that a message mentions, what is remembered, and the project's agents, before the model is
    /// called.
    pub(super) fn gather_context(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        workspace: &WorkspaceState,
        id: DocId,
        material: Vec<ServerMaterial>,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        let (volume, note, text) = (run.about.volume, run.about.note, run.about.prompt.clone());
        let root = files.volumes.by_id.get(&volume).and_then(|volume| volume.root.clone()).unwrap_or_default();
        let mut paths = model_context::mentions(&strip_code(&text));
        paths.retain(|name| !self.is_server_mention(name));
        self.expand_mentions(&files.volumes, volume, &mut paths);
        paths.extend(note.and_then(|note| files.volumes.locate_file(note)).map(|(_, path)| path.to_owned()));
        paths.dedup();
        let mut withheld = secret_files::withhold_secret_files(&mut paths);
        let (mut paths, texts) = files.volumes.mentioned_files(volume, paths);
        withheld.extend(texts);
        let (instruction_files, instructions) =
            files.volumes.choose_instructions(&workspace.settings, (volume, note), &paths);
        paths.extend(instruction_files);
        let place = note.and_then(|note| files.volumes.locate_file(note)).map(|(_, path)| path.to_owned());
        let memory = (files.volumes.memory_root(volume).unwrap_or_default(), memory::memory_folders(place.as_deref()));
        if self.setup().is_some_and(|setup| setup.config.memory.learn) {
            turn.requests.push_back(SessionRequest::OpenMemory { volume });
        }
        if let Some(run) = self.runs.get_mut(&id) {
            run.project_read = ProjectReadState::ReadingToStart;
            run.withheld_files = withheld;
            run.instructions = instructions;
        }
        let read = paths.iter().filter(|file| file.root == root);
        let read: Vec<DocId> = read.filter_map(|file| files.volumes.find_file(volume, &file.path)).collect();
        files.notes.record_notes_read(turn, id, &read);
        let fork = files.volumes.fork_name(volume);
        let elsewhere = files.volumes.agent_volumes(&workspace.settings, volume);
        let limit = MAX_RECALLED_PASSAGES;
        turn.effects.push(Effect::Gather { run: id, root, paths, text, limit, memory, fork, material, elsewhere });
    }

    /// Stores what happened in a run: in its document, its session and the list of runs, as one batch.
    pub(super) fn record_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        record: RunRecord,
    ) -> BatchNumber {
        let time = turn.now.as_seconds();
        let mut writes = Vec::new();
        self.revision += 1;
        let Some(run) = self.runs.get_mut(&id) else { return turn.journal.next_batch };
        run.revision += 1;
        let RunRecord { steps, messages, approvals, changes, todos } = record;
        let old_head = run.about.head;
        if let Some(last) = messages.last() {
            run.about.head = last.id;
        }
        if let Some(todos) = todos.as_ref() {
            run.todos.clone_from(todos);
        }
        for change in &changes {
            match run.changes.iter_mut().find(|known| known.number == change.number) {
                Some(known) => known.clone_from(change),
                None => run.changes.push(change.clone()),
            }
        }
        let write = RunWrite {
            steps: steps.iter().collect(),
            todos: todos.as_deref(),
            approvals: run.approvals.iter().filter(|approval| approvals.contains(&approval.id)).collect(),
            changes: changes.iter().collect(),
            about: Some(&run.about),
            device: run.device.as_ref(),
        };
        let fresh = run.is_unsaved;
        match run.doc.commit(&write, time) {
            Ok(bytes) => {
                let bytes = if std::mem::take(&mut run.is_unsaved) { run.doc.save() } else { bytes };
                writes.push(RowWrite::Chunk { doc: id, bytes });
            }
            Err(error) => turn.journal.problems.push(error.to_string()),
        }
        run.steps.extend(steps);
        run.pending_batches.push_back((turn.journal.next_batch, run.steps.len()));
        let (line, head, session) = (run.summary(), run.about.head, run.about.session);
        if fresh {
            self.queue_volume_listing(sync, line.volume, ListedDocumentKind::Run, id, None);
        }
        if !messages.is_empty() {
            writes.extend(self.append_messages(turn, sync, session, messages, old_head, head));
        }
        let value = serde_json::to_vec(&line).ok();
        writes.push(RowWrite::Meta { key: format!("{RUN_KEY_PREFIX}{id}"), value });
        self.run_summaries.insert(id, line);
        let batch = turn.journal.next_batch;
        turn.append_writes(writes, None);
        batch
    }

    pub(super) fn agents_durable(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        batch: BatchNumber,
    ) {
        for run in self.runs.values_mut() {
            while let Some((_, steps)) = run.pending_batches.front().copied().filter(|(at, _)| *at <= batch) {
                run.pending_batches.pop_front();
                run.durable_step_count = steps;
            }
        }
        let due: Vec<DocId> = self.resume_after.iter().filter(|(_, at)| **at <= batch).map(|(run, _)| *run).collect();
        for run in due {
            self.resume_after.remove(&run);
            self.continue_run(turn, files, sync, workspace, run);
        }
    }

    /// Does the next work of a run: starts tools that are ready, or calls the model. Waits until everything before is
    /// on disk.
    pub(super) fn continue_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        if self.resume_after.contains_key(&id) {
            return;
        }
        let Some(run) = self.runs.get(&id) else { return };
        if run.about.ending.is_some() || run.live.is_some() || !self.carries_out(workspace, id) {
            return;
        }
        // Without the configuration and the user's tools, neither rules nor limits are known: after a restart they're
        // read first.
        if self.setup.is_none() || self.loading.contains(&workspace.id.registry_id()) {
            self.stalled_runs.insert(id);
            if self.setup.is_none() {
                self.request_setup(turn, workspace);
            }
            return;
        }
        let limits = self.watchdog_limits(run);
        if let Some(run) = self.runs.get_mut(&id) {
            run.is_awake = true;
            run.limits = Some(limits);
            run.about.deadline = limits.deadline_of(&run.about);
            if run.active_since.is_none() {
                run.active_since = Some(turn.now);
                if let Some((until, _)) = limits.first_stop(&run.about, run.active_since) {
                    turn.wake_at(until);
                }
            }
        }
        let Some(run) = self.runs.get(&id) else { return };
        if run.calls.is_empty() {
            self.call_model(turn, files, sync, workspace, id);
        } else {
            self.start_tools(turn, files, sync, workspace, id);
        }
    }

    /// Continues a run once this batch, currently its last, is on disk.
    pub(super) fn continue_run_after(&mut self, batch: BatchNumber, id: DocId) {
        self.resume_after.insert(id, batch);
    }
}
