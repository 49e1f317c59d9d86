//! Runs: what an agent does to answer a message, as state that outlives the program. A run calls a model, asks the
//! policy, has tools run, and goes on until there is an answer. Nothing that reaches out begins before it is on disk.

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
mod tool_registry;
mod tool_sharing;
mod trace_replay;
mod view_actions;
mod watchdog;

pub use budget::{BudgetScope, BudgetStatus, ScopeSpending};
pub use changes::revertible_parts;
pub use embedding_costs::{EMBEDDING_COSTS_KEY_PREFIX, EmbeddingCost};
pub use links::{run_address, session_address};
pub use orchestrator::PHASE_NAMES;
pub use phases::{PhaseStatus, RunPhase, phases_of};
pub use sessions::{AgentSession, SessionSummary};
use tool_calls::DEFAULT_TOOL_TIMEOUT_SECS;
pub(super) use view_actions::NOTE_COMMAND_TOOL;

use super::{ApplyContext, CommandError, Session};
use crate::effect::{BatchNumber, Effect};
use crate::notice::Notice;
use agent::agent_registry::AgentRegistry;
use agent::memory;
use agent::model_call::ModelCallId;
use agent::model_context;
use agent::policy::{CallFacts, PolicyRule, ToolPolicy};
use agent::router;
use agent::schedule::ScheduleOutcome;
use agent::task_block::TaskBlock;
use agent::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::disk::RowWrite;
use store::{
    AgentState, CallUsage, DocId, ExecutionStep, ListedDocumentKind, MessageId, MessageRole, RunAbout, RunApproval,
    RunChange, RunDevice, RunDoc, RunEnding, RunOrigin, RunWrite, SessionMessage, StepId, StepKind, TodoItem, ToolCall,
};
use text::time::UnixMillis;

/// The beginning of the names under which the disk keeps a line about each run.
pub const RUN_KEY_PREFIX: &str = "runs/";
/// The beginning of the names under which the disk keeps a line about each session.
pub const SESSION_KEY_PREFIX: &str = "sessions/";
/// Under which name the disk keeps the rules that the user's decisions have made.
pub const POLICY_RULES_KEY: &str = "policy";
/// A run calls models at most so often, until the user says more.
const DEFAULT_MAX_MODEL_CALLS: u64 = 20;
/// So many passages that bear on a question are handed to the model.
const MAX_RECALLED_PASSAGES: usize = 5;
/// A prompt has at most so many bytes.
const MAX_PROMPT_BYTES: usize = 1 << 20;

/// What agents have to work with: read by the host from files and servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSetup {
    /// The configuration.
    pub config: agent::config::AgentConfig,
    /// What is wrong with its file: runs cannot begin then.
    pub trouble: Option<String>,
    /// Why tools cannot be confined on this machine.
    pub unconfined: Option<String>,
    /// What is known of providers, by name.
    pub known: BTreeMap<String, router::ProviderStatus>,
    /// Tokens that fit into a request, as the price list has it, by provider.
    pub contexts: BTreeMap<String, u64>,
    /// The user's own agents.
    pub agents: Vec<agent::agent_definition::AgentDefinition>,
    /// Tools in the folder of plugins.
    pub plugins: Vec<store::UserTool>,
    /// What is wrong with files of plugins and with servers, for the user.
    pub problems: Vec<String>,
    /// The values of the keys of this installation, which no model and no log may hold.
    pub own_keys: agent::secrets::InstallationKeys,
    /// Tools of MCP servers: the server, its name for the tool, and the tool as models see it.
    pub servers: Vec<(String, String, ToolSpec)>,
}

/// A line about a run, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The session.
    pub session: DocId,
    /// The volume.
    pub volume: DocId,
    /// What was asked, or its beginning.
    pub prompt: String,
    /// When, milliseconds since 1970.
    pub start_time: i64,
    /// When it ended.
    pub ended: Option<i64>,
    /// How it ended; `None`: it has not.
    pub ending: Option<RunEnding>,
    /// How often a model was called.
    pub iteration: u64,
    /// How many decisions it waits for.
    pub pending: usize,
    /// What it has used.
    pub spent: CallUsage,
    /// How many steps it has.
    #[serde(default)]
    pub steps: usize,
    /// Its agent.
    #[serde(default)]
    pub agent: String,
    /// Who wanted it.
    #[serde(default)]
    pub origin: RunOrigin,
    /// The phase that it is in, from 1, where its agent works in phases; else 0.
    #[serde(default)]
    pub phase: u8,
    /// The device that it belongs to; `None`: this one.
    #[serde(default)]
    pub device: Option<RunDevice>,
    /// US dollars that it may cost, with all that it hands on; `None`: nothing was said.
    #[serde(default)]
    pub budget: Option<f64>,
}

/// What is drawn of an answer before it is whole.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveModelCall {
    /// The call.
    pub call: ModelCallId,
    /// The answer so far.
    pub text: String,
    /// The thoughts so far.
    pub thinking: String,
    /// When it was called.
    pub since: UnixMillis,
    /// When something was heard of it last.
    pub heard: UnixMillis,
    /// US dollars that it will cost, about.
    pub cost: f64,
    /// Why it is called again, if it is.
    pub again: Option<String>,
    /// Which model, chosen why.
    pub route: String,
    /// Messages that the answer will be a summary of; empty: it is an answer.
    pub summary_of: Vec<MessageId>,
}

/// How far a tool call of the current turn is.
#[derive(Clone, Debug, PartialEq)]
pub enum CallPhase {
    /// What it would run is being read, before it is judged.
    ReadingFacts,
    /// It waits for a decision.
    AwaitingApproval,
    /// It may begin.
    Ready,
    /// It runs.
    Running {
        /// Since when.
        since: UnixMillis,
    },
    /// Its result is there.
    Done,
}

/// A tool call of the current turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// The call, with the arguments that count.
    pub call: ToolCall,
    /// Its step.
    pub step: StepId,
    /// How far it is.
    pub phase: CallPhase,
    /// Whether it changes something: then it waits for those before it, and those behind wait for it.
    pub changes: bool,
    /// What was known of it when it was judged.
    pub facts: CallFacts,
}

/// What of a run's project was read: its agents and what it remembers are not in the run's document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProjectReadState {
    /// Nothing yet.
    #[default]
    Unread,
    /// It's read for a run that begins.
    ReadingToStart,
    /// It's read for a run that goes on.
    ReadingToResume,
    /// All.
    Loaded,
}

/// A run that is loaded.
#[derive(Debug)]
pub struct AgentRun {
    /// Its id.
    pub id: DocId,
    /// What is said of it.
    pub about: RunAbout,
    /// The device that it belongs to, which alone goes on with it; `None`: this one.
    pub device: Option<RunDevice>,
    /// Its steps, oldest first.
    pub steps: Vec<ExecutionStep>,
    /// What it is to do.
    pub todos: Vec<TodoItem>,
    /// What waits for the user, and what was decided.
    pub approvals: Vec<RunApproval>,
    /// What it changed.
    pub changes: Vec<RunChange>,
    /// The answer on its way.
    pub live: Option<LiveModelCall>,
    /// The tool calls of the current turn.
    pub calls: Vec<PendingCall>,
    /// Counts what happens to it.
    pub revision: u64,
    /// Batches on their way to the disk, and how many steps are there with each.
    pending_batches: VecDeque<(BatchNumber, usize)>,
    durable_step_count: usize,
    doc: Box<RunDoc>,
    is_unsaved: bool,
    next_call: u64,
    /// Providers that did not answer in this turn.
    failed_providers: Vec<(String, String)>,
    /// Ids of calls that were used.
    used_call_ids: BTreeSet<String>,
    /// What it knows of earlier ones.
    run_memory: trace_replay::RunMemory,
    /// Whether it goes on by itself: it began here, or was let go on.
    is_awake: bool,
    /// What of its project was read since it was loaded.
    project_read: ProjectReadState,
    /// Files that its message mentions and that were not read, with what is said instead.
    withheld_files: Vec<(String, String)>,
    /// The agents of its project.
    project_agents: Arc<AgentRegistry>,
    /// The project for which it works, where an agent leads one.
    project: Option<String>,
    /// What it knows where it leads.
    orchestrator: orchestrator::OrchestratorState,
}

/// What is to be kept of a run at once.
#[derive(Debug, Default)]
pub(super) struct RunRecord {
    pub(super) steps: Vec<ExecutionStep>,
    pub(super) messages: Vec<SessionMessage>,
    pub(super) approvals: Vec<String>,
    pub(super) changes: Vec<RunChange>,
    pub(super) todos: Option<Vec<TodoItem>>,
}

/// A question that waits for its session to be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunRequest {
    pub(super) run: DocId,
    pub(super) session: DocId,
    pub(super) volume: DocId,
    pub(super) note: Option<DocId>,
    pub(super) parent: Option<MessageId>,
    pub(super) text: String,
    pub(super) agent: Option<String>,
    pub(super) budget: Option<f64>,
    pub(super) allow: Vec<PolicyRule>,
    /// What a button asks for, and the title of its session: no model is called.
    pub(super) button: Option<(String, ToolCall)>,
    pub(super) recall: memory::RecallOptions,
    pub(super) origin: RunOrigin,
    /// The tasks that it is to carry out.
    pub(super) plan: Option<Vec<TaskBlock>>,
    /// The project for which it works, where an agent leads one.
    pub(super) project: Option<String>,
}

/// All that the session knows of agents.
#[derive(Debug, Default)]
pub struct RunsState {
    /// Sessions that are loaded.
    sessions: BTreeMap<DocId, AgentSession>,
    /// All sessions.
    session_summaries: BTreeMap<DocId, SessionSummary>,
    /// Runs that are loaded.
    runs: BTreeMap<DocId, AgentRun>,
    /// All runs.
    run_summaries: BTreeMap<DocId, RunSummary>,
    setup: Option<Arc<AgentSetup>>,
    /// Rules that the user's decisions have made.
    rules: Vec<PolicyRule>,
    /// Runs that go on once this batch is on disk.
    resume_after: BTreeMap<DocId, BatchNumber>,
    /// Runs that were read, and wait for their session.
    read_runs: Vec<(DocId, Box<RunDoc>)>,
    run_requests: Vec<RunRequest>,
    /// Whether the setup is being read for them.
    is_reading_setup: bool,
    /// Runs that go on once the setup and their session are there.
    stalled_runs: BTreeSet<DocId>,
    /// The user's tools, once they are read.
    registry: Option<tool_registry::ToolRegistry>,
    tool_note_jobs: Vec<tool_note_jobs::ToolNoteJob>,
    /// Runs that got work handed on: the run that waits, and the call for which.
    children: BTreeMap<DocId, (DocId, String)>,
    loading: BTreeSet<DocId>,
    /// Why documents cannot be read.
    read_errors: BTreeMap<DocId, String>,
    latencies: router::ProviderLatencies,
    /// What is known of other devices' sessions, runs and tools.
    remote_runs: remote_runs::RemoteRuns,
    revision: u64,
    /// Budgets of which was said that little is left, and in which month.
    reported_low_budgets: BTreeSet<(String, (i64, i64))>,
    /// What was spent beside runs, by day and thing.
    embedding_costs: BTreeMap<(i64, String), embedding_costs::EmbeddingCost>,
}

impl AgentRun {
    fn new(id: DocId, about: RunAbout, doc: Box<RunDoc>, fresh: bool) -> AgentRun {
        let steps = doc.steps();
        let used = steps.iter().filter_map(|step| step_call(&step.kind).map(ToOwned::to_owned)).collect();
        AgentRun {
            id,
            about,
            device: doc.device(),
            todos: doc.todos(),
            approvals: doc.approvals(),
            changes: doc.changes(),
            durable_step_count: steps.len(),
            pending_batches: VecDeque::new(),
            steps,
            live: None,
            calls: Vec::new(),
            revision: 0,
            doc,
            is_unsaved: fresh,
            next_call: 0,
            failed_providers: Vec::new(),
            used_call_ids: used,
            run_memory: trace_replay::RunMemory::default(),
            is_awake: false,
            project_read: ProjectReadState::default(),
            withheld_files: Vec::new(),
            project_agents: Arc::default(),
            project: None,
            orchestrator: orchestrator::OrchestratorState::default(),
        }
    }

    /// Whether something is under way: a model, a tool, or a decision that is waited for.
    pub fn is_busy(&self) -> bool {
        self.about.ending.is_none() && (self.live.is_some() || !self.calls.is_empty())
    }

    /// Whether it goes on by itself: it is not over, and was not only read from the disk.
    pub fn is_awake(&self) -> bool {
        self.is_awake && self.about.ending.is_none()
    }

    /// How many of its steps are on disk: those before are never lost.
    pub fn durable_steps(&self) -> usize {
        self.durable_step_count
    }

    /// Whether all that has happened to it is on disk.
    pub fn is_durable(&self) -> bool {
        self.pending_batches.is_empty()
    }

    /// The approvals that wait for a decision.
    pub fn pending(&self) -> impl Iterator<Item = &RunApproval> {
        let over = self.about.ending.is_some();
        self.approvals.iter().filter(move |approval| approval.decision.is_none() && !over)
    }

    /// The last step, which the next one follows from.
    fn last_step(&self) -> Vec<StepId> {
        self.steps.last().map(|step| step.id).into_iter().collect()
    }

    fn summary(&self) -> RunSummary {
        let about = &self.about;
        RunSummary {
            session: about.session,
            volume: about.volume,
            prompt: about.prompt.chars().take(200).collect(),
            start_time: about.start_time,
            ended: about.ended,
            ending: about.ending,
            iteration: about.iteration,
            pending: self.pending().count(),
            spent: about.spent,
            steps: self.steps.len(),
            agent: about.agent.clone(),
            origin: about.origin,
            phase: about.phase,
            device: self.device.clone(),
            budget: about.budget,
        }
    }
}

/// The call that a step is about.
fn step_call(kind: &StepKind) -> Option<&str> {
    match kind {
        StepKind::ToolCall { tool_call_id, .. } => Some(tool_call_id),
        StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    }
}

impl RunsState {
    /// What agents have to work with; `None`: it is still being read.
    pub fn setup(&self) -> Option<&AgentSetup> {
        self.setup.as_deref()
    }

    /// Whether that is being read anew.
    pub fn is_reading(&self) -> bool {
        self.is_reading_setup
    }

    /// A run that is loaded.
    pub fn run(&self, id: DocId) -> Option<&AgentRun> {
        self.runs.get(&id)
    }

    /// The runs that are loaded.
    pub fn open_runs(&self) -> impl Iterator<Item = &AgentRun> {
        self.runs.values()
    }

    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = (DocId, &RunSummary)> {
        self.run_summaries.iter().map(|(id, line)| (*id, line))
    }

    /// A session that is loaded.
    pub fn session(&self, id: DocId) -> Option<&AgentSession> {
        self.sessions.get(&id)
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (DocId, &SessionSummary)> {
        self.session_summaries.iter().map(|(id, line)| (*id, line))
    }

    /// The rules that the user's decisions have made.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Why a session or a run cannot be read.
    pub fn read_error(&self, id: DocId) -> Option<&str> {
        self.read_errors.get(&id).map(String::as_str)
    }

    /// Counts what happens to sessions and runs.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether any question waits to become a run.
    pub fn has_run_requests(&self) -> bool {
        !self.run_requests.is_empty()
    }

    /// Whether a question waits for its session to be read.
    pub fn is_request_pending(&self, run: DocId) -> bool {
        self.run_requests.iter().any(|question| question.run == run)
    }

    /// The policy as it is now.
    fn policy(&self) -> ToolPolicy {
        let setup = self.setup.as_deref();
        let mut policy = setup.map(|setup| ToolPolicy::from_config(&setup.config)).unwrap_or_default();
        policy.unconfined = setup.and_then(|setup| setup.unconfined.clone()).or(policy.unconfined);
        policy.rules.extend(self.rules.iter().cloned());
        policy
    }
}

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
            return Err(CommandError("say what is to be done".to_owned()));
        }
        if question.text.len() > MAX_PROMPT_BYTES {
            return Err(CommandError(format!(
                "a message has at most {} MB; put the rest into a note",
                MAX_PROMPT_BYTES >> 20
            )));
        }
        if self.agents.run_summaries.contains_key(&question.run) {
            return Err(CommandError("there is a run of that name already".to_owned()));
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
                "the session is at work; stop it first, or branch from an earlier message".to_owned(),
            ));
        }
        self.agents.run_requests.push(question);
        // Read anew for each question: the configuration may have been edited, a key set.
        self.request_setup(turn);
        Ok(())
    }

    /// Has what agents work with read anew.
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

    /// Lets runs go on that waited for the setup or their session.
    pub(super) fn resume_stalled_runs(&mut self, turn: &mut ApplyContext<'_>) {
        for run in std::mem::take(&mut self.agents.stalled_runs) {
            self.continue_run(turn, run);
        }
    }

    /// Begins the runs whose sessions are there by now.
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

    /// A question did not become a run: whoever wanted it is told.
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

    /// Has a run go on once this batch, the last one of it so far, is on disk.
    pub(super) fn continue_run_after(&mut self, batch: BatchNumber, id: DocId) {
        self.agents.resume_after.insert(id, batch);
    }
}

/// A step that happens now.
fn new_step(turn: &mut ApplyContext<'_>, parents: Vec<StepId>, kind: StepKind) -> ExecutionStep {
    let id = StepId(turn.next_id());
    ExecutionStep { id, timestamp: turn.now.0, duration: None, parents, kind, spent: None, route: None }
}
