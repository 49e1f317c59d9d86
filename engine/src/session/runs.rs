//! Runs: an agent's work on a message, as state that survives restarts. A run calls a model, asks the policy, runs
//! tools, and continues until there's an answer. Nothing with an outside effect starts before it's on disk.

mod agent_mentions;
mod approvals;
mod budget;
mod changes;
mod delegation;
mod embedding_costs;
mod lifecycle;
mod links;
mod mcp_tools;
mod memory_agents;
mod model_turns;
mod orchestrator;
mod phases;
mod policy_checks;
mod prompt_material;
mod recall;
mod recovery;
mod remote_runs;
mod run_report;
pub mod session_files;
mod sessions;
mod tool_calls;
mod tool_note_jobs;
mod tool_outcomes;
mod tool_registry;
mod tool_sharing;
mod trace_replay;
mod view_actions;
mod watchdog;

pub use budget::{BudgetScope, BudgetStatus, ScopeSpending};
pub use changes::revertible_parts;
pub use links::{run_address, session_address};
pub use orchestrator::PHASE_NAMES;
pub use phases::{PhaseStatus, RunPhase, phases_of};
pub(super) use view_actions::NOTE_COMMAND_TOOL;

use crate::effect::Effect;
use crate::notice::Notice;
use crate::records::runs::{AgentSetup, RunSummary};
use crate::records::runs::{RUN_KEY_PREFIX, SessionSummary};
use crate::records::saving::BatchNumber;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::Session;
use crate::session::state::agent_run::{AgentRun, ProjectReadState};
use crate::session::state::runs::{RunRecord, RunRequest, RunsState};
use agent::memory;
use agent::model_context;
use agent::policy::PolicyRule;
use agent::schedule::ScheduleOutcome;
use agent::tool_spec::ToolSpec;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::disk::RowWrite;
use store::{
    AgentState, CallUsage, DocId, ListedDocumentKind, MessageId, MessageRole, RunAbout, RunDoc, RunOrigin, RunWrite,
    SessionMessage,
};

/// A run calls models at most so often, until the user says more.
const DEFAULT_MAX_MODEL_CALLS: u64 = 20;
/// Maximum number of recalled passages given to the model.
const MAX_RECALLED_PASSAGES: usize = 5;
/// Maximum length of a prompt in bytes.
const MAX_PROMPT_BYTES: usize = 1 << 20;

impl Session {
    /// Agents: sessions, runs, approvals.
    pub fn agents(&self) -> &RunsState {
        &self.agents
    }

    pub(super) fn agents_started(
        &mut self,
        turn: &mut ApplyContext<'_>,
        lines: BTreeMap<DocId, SessionSummary>,
        runs: BTreeMap<DocId, RunSummary>,
        rules: Vec<PolicyRule>,
    ) {
        // Decisions that are still waited for: they are shown, and have their time. Others are read when opened.
        let waits = |line: &RunSummary| line.ending.is_none() && line.pending > 0;
        let open: Vec<DocId> = runs.iter().filter(|(_, line)| waits(line)).map(|(id, _)| *id).collect();
        (self.agents.session_summaries, self.agents.run_summaries, self.agents.rules) = (lines, runs, rules);
        for run in open {
            let _ = self.open_run(turn, run);
        }
    }

    pub(super) fn agent_setup(&mut self, turn: &mut ApplyContext<'_>, mut setup: AgentSetup) {
        mcp_tools::assign_tool_names(&mut setup.servers);
        self.notify_changed_tools(&setup.servers);
        self.agents.setup = Some(Arc::new(setup));
        self.agents.is_reading_setup = false;
        self.agents.revision += 1;
        let said = self.agents.setup().map(|setup| setup.problems.clone()).unwrap_or_default();
        let new = said.into_iter().filter(|problem| !self.problems.contains(problem));
        let new: Vec<String> = new.collect();
        self.problems.extend(new);
        self.propose_plugins(turn);
        self.begin_requested_runs(turn);
        self.resume_stalled_runs(turn);
    }

    /// Asks: a message, and a run that answers it.
    pub(super) fn request_run(
        &mut self,
        turn: &mut ApplyContext<'_>,
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
        if self.agents.run_summaries.contains_key(&question.run) {
            return Err(CommandError("a run with that id already exists".to_owned()));
        }
        match self.volumes.get(&question.volume) {
            None => return Err(CommandError(format!("there is no volume {}", question.volume))),
            Some(volume) if volume.root.is_none() => {
                return Err(CommandError(format!("the volume has no folder on this device: {}", volume.name)));
            }
            Some(_) => {}
        }
        let busy = |run: &&AgentRun| run.about.session == question.session && run.is_busy();
        if let Some(run) = self.agents.runs.values().find(busy)
            && question.parent.is_none_or(|parent| parent == run.about.head)
            && question.button.is_none()
        {
            return Err(CommandError(
                "the session is active; stop it first, or branch from an earlier message".to_owned(),
            ));
        }
        self.agents.run_requests.push(question);
        // The configuration is read for each question, since the file or a key may have changed.
        self.request_setup(turn);
        Ok(())
    }

    /// Requests the configuration of agents.
    pub(super) fn request_setup(&mut self, turn: &mut ApplyContext<'_>) {
        if !std::mem::replace(&mut self.agents.is_reading_setup, true) {
            turn.effects.push(Effect::ReadSetup);
        }
        self.read_registry(turn);
    }

    /// The tools that agents may ask for.
    pub fn agent_tools(&self) -> Vec<ToolSpec> {
        self.available_tools()
    }

    /// Resumes runs that waited for the setup or their session.
    pub(super) fn resume_stalled_runs(&mut self, turn: &mut ApplyContext<'_>) {
        for run in std::mem::take(&mut self.agents.stalled_runs) {
            self.continue_run(turn, run);
        }
    }

    /// Starts the runs whose sessions are loaded now.
    pub(super) fn begin_requested_runs(&mut self, turn: &mut ApplyContext<'_>) {
        for question in std::mem::take(&mut self.agents.run_requests) {
            let known = self.agents.session_summaries.contains_key(&question.session);
            let loaded = self.agents.sessions.contains_key(&question.session);
            let ready = !self.agents.is_reading_setup && !self.agents.loading.contains(&self.workspace.registry_id());
            let Some(setup) = self.agents.setup.clone().filter(|_| ready) else {
                self.agents.run_requests.push(question);
                continue;
            };
            if let Some(trouble) = &setup.trouble {
                self.fail_run_request(turn, question.run, question.origin, trouble.clone());
                continue;
            }
            if known && !loaded {
                let _ = self.open_session(turn, question.session);
                if let Some(why) = self.agents.read_errors.get(&question.session).cloned() {
                    self.fail_run_request(turn, question.run, question.origin, why);
                    continue;
                }
                self.agents.run_requests.push(question);
                continue;
            }
            let (run, origin) = (question.run, question.origin);
            if let Err(CommandError(why)) = self.begin_run(turn, question) {
                self.fail_run_request(turn, run, origin, why);
            }
        }
    }

    /// Reports that a question didn't become a run.
    fn fail_run_request(&mut self, turn: &mut ApplyContext<'_>, run: DocId, origin: RunOrigin, why: String) {
        match origin {
            RunOrigin::Schedule { schedule } => {
                self.finish_schedule(turn, schedule, ScheduleOutcome::Failed { why: why.clone() })
            }
            RunOrigin::Agent { .. } => self.on_child_ended(turn, run, None, &why),
            RunOrigin::User => {}
        }
        self.problems.push(why);
    }

    fn begin_run(&mut self, turn: &mut ApplyContext<'_>, mut question: RunRequest) -> Result<(), CommandError> {
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
            ..
        } = question;
        let title = button.as_ref().map_or(text.as_str(), |(title, _)| title);
        self.make_session(session, volume, note, title)?;
        let Some(conversation) = self.agents.sessions.get(&session) else { return Ok(()) };
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
        let about = RunAbout {
            session,
            asked,
            head: asked,
            volume,
            note,
            prompt: text.clone(),
            agent: agent.or_else(|| self.mentioned_agent(&text)).unwrap_or_else(|| "assistant".to_owned()),
            start_time: turn.now.0,
            ended: None,
            ending: None,
            iteration: 0,
            limit: DEFAULT_MAX_MODEL_CALLS,
            agent_state: AgentState::Thinking,
            spent: CallUsage { cost: Some(0.0), ..CallUsage::default() },
            budget,
            origin,
            phase: 0,
            imported: None,
        };
        let (agent, goal) = (about.agent.clone(), text.lines().next().unwrap_or_default().chars().take(200).collect());
        self.notify(turn, Notice::RunBegan { run: id, agent, goal });
        let loaded = RunDoc::load(id, &[], self.actor.clone()).map_err(|error| CommandError(error.to_string()))?;
        let mut run = AgentRun::new(id, about, Box::new(loaded.doc), true);
        run.run_memory.recall = recall;
        run.is_awake = true;
        run.orchestrator.plan = plan;
        run.project = project;
        run.device = Some(self.device.clone());
        self.agents.runs.insert(id, run);
        self.agents.rules.extend(allow);
        self.record_run(turn, id, RunRecord { messages: vec![message], ..RunRecord::default() });
        if let Some((_, call)) = button {
            self.begin_button_run(turn, id, call);
            return Ok(());
        }
        // What the message speaks of is read before the model is called.
        let root = self.volumes.get(&volume).and_then(|volume| volume.root.clone()).unwrap_or_default();
        let mut paths = model_context::mentions(&text);
        paths.extend(note.and_then(|note| self.locate_file(note)).map(|(_, path)| path.to_owned()));
        paths.dedup();
        let withheld = prompt_material::withhold_secret_files(&mut paths);
        let place = note.and_then(|note| self.locate_file(note)).map(|(_, path)| path.to_owned());
        let memory = memory::memory_folders(place.as_deref());
        if let Some(run) = self.agents.runs.get_mut(&id) {
            run.project_read = ProjectReadState::ReadingToStart;
            run.withheld_files = withheld;
        }
        turn.effects.push(Effect::Gather { run: id, root, paths, text, limit: MAX_RECALLED_PASSAGES, memory });
        Ok(())
    }

    /// Keeps what has happened in a run, in its document, in its session and in the list of runs: one batch.
    pub(super) fn record_run(&mut self, turn: &mut ApplyContext<'_>, id: DocId, record: RunRecord) -> BatchNumber {
        let time = turn.now.as_seconds();
        let mut writes = Vec::new();
        self.agents.revision += 1;
        let Some(run) = self.agents.runs.get_mut(&id) else { return self.next_batch };
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
            Err(error) => self.problems.push(error.to_string()),
        }
        run.steps.extend(steps);
        run.pending_batches.push_back((self.next_batch, run.steps.len()));
        let (line, head, session) = (run.summary(), run.about.head, run.about.session);
        if fresh {
            self.queue_volume_listing(line.volume, ListedDocumentKind::Run, id, None);
        }
        if !messages.is_empty() {
            writes.extend(self.append_messages(turn, session, messages, old_head, head));
        }
        let value = serde_json::to_vec(&line).ok();
        writes.push(RowWrite::Meta { key: format!("{RUN_KEY_PREFIX}{id}"), value });
        self.agents.run_summaries.insert(id, line);
        let batch = self.next_batch;
        self.append_writes(turn, writes, None);
        batch
    }

    pub(super) fn agents_durable(&mut self, turn: &mut ApplyContext<'_>, batch: BatchNumber) {
        for run in self.agents.runs.values_mut() {
            while let Some((_, steps)) = run.pending_batches.front().copied().filter(|(at, _)| *at <= batch) {
                run.pending_batches.pop_front();
                run.durable_step_count = steps;
            }
        }
        let due: Vec<DocId> =
            self.agents.resume_after.iter().filter(|(_, at)| **at <= batch).map(|(run, _)| *run).collect();
        for run in due {
            self.agents.resume_after.remove(&run);
            self.continue_run(turn, run);
        }
    }

    /// Does what is next in a run: tools that may begin, or the model. Not before all that led there is on disk.
    pub(super) fn continue_run(&mut self, turn: &mut ApplyContext<'_>, id: DocId) {
        if self.agents.resume_after.contains_key(&id) {
            return;
        }
        let Some(run) = self.agents.runs.get(&id) else { return };
        if run.about.ending.is_some() || run.live.is_some() || !self.is_own_device(run.device.as_ref()) {
            return;
        }
        if let Some(run) = self.agents.runs.get_mut(&id) {
            run.is_awake = true;
        }
        let Some(run) = self.agents.runs.get(&id) else { return };
        if run.calls.is_empty() {
            self.call_model(turn, id);
        } else {
            self.start_tools(turn, id);
        }
    }

    /// Continues a run once this batch, its last one so far, is on disk.
    pub(super) fn continue_run_after(&mut self, batch: BatchNumber, id: DocId) {
        self.agents.resume_after.insert(id, batch);
    }
}
