//! A loaded run: its document, its calls, and state that isn't in its document.

use crate::records::saving::BatchNumber;
use crate::session::apply_context::ApplyContext;
use agent::agent_registry::AgentRegistry;
pub(in crate::session) use agent::budget::add_usage;
use agent::config::{ModelPrice, WatchdogLimits};
use agent::memory;
use agent::memory::ProjectMemory;
use agent::memory::slots::SlotValues;
use agent::memory::trace::{RunTrace, iso_timestamp};
use agent::memory::trace_feedback::{RatedRun, RunRating};
use agent::model_call::ModelCallId;
use agent::model_context;
use agent::policy::CallFacts;
use agent::run_records::RunSummary;
use agent::server_request::ServerReply;
use agent::task_block::TaskBlock;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::FileChange;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use store::{
    CallUsage, DocId, ExecutionStep, MessageId, RunAbout, RunApproval, RunChange, RunDevice, RunDoc, RunEnding, StepId,
    StepKind, StepTool, TodoItem, ToolCall,
};
use text::time::UnixMillis;

/// A model call in progress, with the part of the answer to display.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveModelCall {
    /// Id of the call.
    pub call: ModelCallId,
    /// The answer so far.
    pub text: String,
    /// The model's thinking so far.
    pub thinking: String,
    /// When the call was made.
    pub since: UnixMillis,
    /// When data was last received.
    pub heard: UnixMillis,
    /// Estimated cost in US dollars.
    pub cost: f64,
    /// Bytes of tool calls that have arrived.
    pub call_bytes: u64,
    /// Why the call is a retry, if it is one.
    pub again: Option<String>,
    /// The chosen model and the reason for the choice.
    pub route: String,
    /// Messages that the answer will summarize; empty if it isn't a summary.
    pub summary_of: Vec<MessageId>,
    /// Estimated tokens of the request.
    pub request_tokens: u64,
    /// Price of the model; `None` if unknown.
    pub price: Option<ModelPrice>,
    /// Estimated usage of attempts that broke off after the answer had begun, and were retried.
    pub lost: CallUsage,
    /// How long the model may be silent, and how long its answer may take, in milliseconds.
    pub patience_ms: (i64, i64),
    /// Whether tools were offered. If not, what it calls doesn't run.
    pub offers_tools: bool,
}

impl LiveModelCall {
    /// Begins a call that has received nothing yet.
    pub(in crate::session) fn new(
        call: ModelCallId,
        now: UnixMillis,
        route: String,
        patience_ms: (i64, i64),
    ) -> LiveModelCall {
        LiveModelCall {
            call,
            text: String::new(),
            thinking: String::new(),
            since: now,
            heard: now,
            cost: 0.0,
            call_bytes: 0,
            again: None,
            route,
            summary_of: Vec::new(),
            request_tokens: 0,
            price: None,
            lost: CallUsage { cost: Some(0.0), ..CallUsage::default() },
            patience_ms,
            offers_tools: true,
        }
    }

    /// Estimates what a provider bills for the call so far: the request, and what was received. Nothing is billed for a
    /// request that got no answer, unless `is_sent` says that a provider is at work on it.
    pub(in crate::session) fn received_usage(&self, is_sent: bool) -> Option<CallUsage> {
        let is_received = !self.text.is_empty() || !self.thinking.is_empty() || self.call_bytes > 0;
        let is_billed = is_received || is_sent && self.again.is_none();
        if !is_billed {
            return Some(self.lost).filter(|lost| lost.input_tokens > 0);
        }
        let output = |text: &str| if text.is_empty() { 0 } else { model_context::estimate_tokens(text) };
        let written = output(&self.text).saturating_add(output(&self.thinking));
        let output_tokens = written.saturating_add(self.call_bytes.div_ceil(4));
        let cost = self.price.map(|price| price.of(self.request_tokens, output_tokens));
        let mut usage = self.lost;
        add_usage(&mut usage, CallUsage { input_tokens: self.request_tokens, output_tokens, cost });
        Some(usage)
    }
}

/// State of a tool call in the current turn.
#[derive(Clone, Debug, PartialEq)]
pub enum CallPhase {
    /// The code that the call would run is being read, before the policy check.
    ReadingFacts,
    /// The call waits for the user's decision.
    AwaitingApproval,
    /// The call can start.
    Ready,
    /// The tool is running.
    Running {
        /// When the tool started.
        since: UnixMillis,
    },
    /// The result has arrived.
    Done,
}

/// A tool call of the current turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// The call, with the arguments that are used.
    pub call: ToolCall,
    /// The step that shows the call.
    pub step: StepId,
    /// State of the call.
    pub phase: CallPhase,
    /// Whether the call changes something; then it waits for earlier calls, and later calls wait for it.
    pub changes: bool,
    /// Facts about the call at the time of its policy check.
    pub facts: CallFacts,
    /// The arguments that were requested; the user's decision may have changed those of `call`.
    pub requested: Map<String, Value>,
    /// The tool as it runs, once the call has begun.
    pub ran: Option<StepTool>,
    /// Whether the policy was asked about it here. What a document says of that isn't believed.
    pub is_checked: bool,
}

impl PendingCall {
    /// Creates a call that waits for its check and may change something.
    pub(in crate::session) fn new(call: ToolCall, step: StepId) -> PendingCall {
        let (phase, facts, requested) = (CallPhase::Ready, CallFacts::default(), call.arguments.clone());
        PendingCall { call, step, phase, changes: true, facts, requested, ran: None, is_checked: false }
    }
}

/// A server's request for a model or for the user, until the server has its answer.
#[derive(Debug)]
pub(in crate::session) struct PendingServerRequest {
    /// Id of the request, and of the call that stands for it.
    pub(in crate::session) call: String,
    /// The tool that stands for it.
    pub(in crate::session) tool: BuiltInTool,
    /// Id of the call whose server asks.
    pub(in crate::session) owner: String,
    pub(in crate::session) since: UnixMillis,
    /// The call of the model, while it's made.
    pub(in crate::session) live: Option<LiveModelCall>,
    /// What the server gets, once that's known.
    pub(in crate::session) reply: Option<ServerReply>,
    pub(in crate::session) spent: Option<CallUsage>,
    pub(in crate::session) route: Option<String>,
}

/// How much of a run's project was read. The project's agents and memory aren't in the run's document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum ProjectReadState {
    /// Nothing was requested yet.
    #[default]
    Unread,
    /// Reading for a run that's starting.
    ReadingToStart,
    /// Reading for a run that's resumed.
    ReadingToResume,
    /// Everything is loaded.
    Loaded,
}

/// A loaded run.
#[derive(Debug)]
pub struct AgentRun {
    /// Document id of the run.
    pub id: DocId,
    /// Metadata of the run.
    pub about: RunAbout,
    /// The device that owns the run and alone may continue it; `None` for this one.
    pub device: Option<RunDevice>,
    /// Steps of the run, oldest first.
    pub steps: Vec<ExecutionStep>,
    /// Todos of the run, in order.
    pub todos: Vec<TodoItem>,
    /// Approvals that wait for the user or were decided.
    pub approvals: Vec<RunApproval>,
    /// Changes that the run made to files.
    pub changes: Vec<RunChange>,
    /// The model call in progress, if any.
    pub live: Option<LiveModelCall>,
    /// The tool calls of the current turn.
    pub calls: Vec<PendingCall>,
    /// What servers of running calls want a model or the user to answer.
    pub(in crate::session) server_requests: Vec<PendingServerRequest>,
    /// The user's rating since the run was loaded; the trace that it counts for keeps it.
    pub rating: Option<RunRating>,
    /// Counter that increases with each change to the run.
    pub revision: u64,
    /// Batches not yet on disk, and the number of steps each one completes.
    pub(in crate::session) pending_batches: VecDeque<(BatchNumber, usize)>,
    pub(in crate::session) durable_step_count: usize,
    pub(in crate::session) doc: Box<RunDoc>,
    pub(in crate::session) is_unsaved: bool,
    pub(in crate::session) next_call: u64,
    /// Number of answers in a row that were empty, or only called tools although none was offered.
    pub(in crate::session) unusable_answers: u8,
    /// Providers that didn't answer in this turn, with the reasons.
    pub(in crate::session) failed_providers: Vec<(String, String)>,
    /// Call ids that have been used.
    pub(in crate::session) used_call_ids: BTreeSet<String>,
    /// The run's access to memory and traces.
    pub(in crate::session) run_memory: RunMemory,
    /// Whether it continues automatically, because it started here or was resumed.
    pub(in crate::session) is_awake: bool,
    /// When it last began to work without a pause; `None` until it does.
    pub(in crate::session) active_since: Option<UnixMillis>,
    /// Its time limits, once its agent is known.
    pub(in crate::session) limits: Option<WatchdogLimits>,
    /// How much of the project was read since the run was loaded.
    pub(in crate::session) project_read: ProjectReadState,
    /// Mentioned files that weren't read, with the text given instead.
    pub(in crate::session) withheld_files: Vec<(String, String)>,
    /// Instruction files of the volume, until they're recorded.
    pub(in crate::session) instructions: RunInstructions,
    /// Agents of the run's project.
    pub(in crate::session) project_agents: Arc<AgentRegistry>,
    /// The project that the run works for, if an orchestrating agent leads one.
    pub(in crate::session) project: Option<String>,
    /// State of an orchestrating run.
    pub(in crate::session) orchestrator: OrchestratorState,
    /// Changes that a program or a call of it has made, until the call is done: ids of the calls, ids of the steps in
    /// which the program has told of the changes, and the changes.
    pub(in crate::session) ordered_changes: Vec<(String, StepId, FileChange)>,
    /// Files that are being restored, in the order in which they must be.
    pub(in crate::session) restores: Vec<PendingRestore>,
}

/// A change whose file is being restored to its content before or after it.
#[derive(Debug)]
pub(in crate::session) struct PendingRestore {
    /// Number of the change.
    pub(in crate::session) change: u64,
    /// Which of its parts are reverted or reapplied.
    pub(in crate::session) parts: Vec<usize>,
    /// Whether it's restored to its content after the change.
    pub(in crate::session) again: bool,
    pub(in crate::session) is_started: bool,
}

impl PendingRestore {
    /// Returns the change once these of its parts are reverted or reapplied.
    pub(in crate::session) fn applied_to(&self, mut change: RunChange, parts: &[usize]) -> RunChange {
        change.undone.retain(|undone| !parts.contains(undone));
        if !self.again {
            change.undone.extend(parts);
        }
        change
    }

    /// Returns the id under which its job reports.
    pub(in crate::session) fn call(&self) -> String {
        format!("{}-{}", if self.again { "redo" } else { "undo" }, self.change)
    }
}

impl AgentRun {
    pub(in crate::session) fn new(id: DocId, about: RunAbout, doc: Box<RunDoc>, fresh: bool) -> AgentRun {
        let steps = doc.steps();
        let approvals = doc.approvals();
        let decided = approvals.iter().map(|approval| approval.call_id().to_owned());
        let used =
            steps.iter().filter_map(|step| step_call(&step.kind).map(ToOwned::to_owned)).chain(decided).collect();
        let mode = if about.is_follower { memory::ReplayMode::Follower } else { memory::ReplayMode::Auto };
        let recall = memory::RecallOptions { mode, ..memory::RecallOptions::default() };
        AgentRun {
            id,
            about,
            device: doc.device(),
            todos: doc.todos(),
            approvals,
            changes: doc.changes(),
            durable_step_count: steps.len(),
            pending_batches: VecDeque::new(),
            steps,
            live: None,
            calls: Vec::new(),
            server_requests: Vec::new(),
            rating: None,
            revision: 0,
            doc,
            is_unsaved: fresh,
            next_call: 0,
            unusable_answers: 0,
            failed_providers: Vec::new(),
            used_call_ids: used,
            run_memory: RunMemory { recall, ..RunMemory::default() },
            is_awake: false,
            active_since: None,
            limits: None,
            project_read: ProjectReadState::default(),
            withheld_files: Vec::new(),
            ordered_changes: Vec::new(),
            instructions: RunInstructions::default(),
            project_agents: Arc::default(),
            project: None,
            orchestrator: OrchestratorState::default(),
            restores: Vec::new(),
        }
    }

    /// Returns the calls of models in progress: the run's own, and those for servers.
    pub(in crate::session) fn live_calls_mut(&mut self) -> impl Iterator<Item = &mut LiveModelCall> {
        self.live.iter_mut().chain(self.server_requests.iter_mut().filter_map(|asked| asked.live.as_mut()))
    }

    /// Returns the expected cost of the calls of models in progress in US dollars.
    pub(in crate::session) fn pending_cost(&self) -> f64 {
        let asked = self.server_requests.iter().filter_map(|asked| asked.live.as_ref());
        self.live.iter().chain(asked).map(|live| live.cost).sum()
    }

    /// Returns whether a model, a tool or a decision is pending.
    pub fn is_busy(&self) -> bool {
        self.about.ending.is_none() && (self.live.is_some() || !self.calls.is_empty())
    }

    /// Returns whether what the message speaks of is being read.
    pub(in crate::session) fn is_gathering(&self) -> bool {
        self.project_read == ProjectReadState::ReadingToStart
    }

    /// Returns the path of the trace that the run replayed; `None` if it replayed none.
    pub fn replayed_trace(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| step.route.as_deref()?.strip_prefix("trace/"))
    }

    /// Returns the run as feedback on a trace names it.
    pub fn rated_run(&self) -> RatedRun {
        let is_whole = self.about.ending == Some(RunEnding::Done) && self.about.iteration == 0;
        let is_replay = is_whole && self.replayed_trace().is_some();
        RatedRun { run: self.id.to_string(), began_at: iso_timestamp(self.about.start_time), is_replay }
    }

    /// Returns whether the run is active: it hasn't ended and wasn't only read from disk.
    pub fn is_awake(&self) -> bool {
        self.is_awake && self.about.ending.is_none()
    }

    /// Returns the number of steps on disk; these are never lost.
    pub fn durable_steps(&self) -> usize {
        self.durable_step_count
    }

    /// Returns whether everything that happened in the run is on disk.
    pub fn is_durable(&self) -> bool {
        self.pending_batches.is_empty()
    }

    /// Returns the approvals that wait for a decision.
    pub fn pending(&self) -> impl Iterator<Item = &RunApproval> {
        let over = self.about.ending.is_some();
        self.approvals.iter().filter(move |approval| approval.decision.is_none() && !over)
    }

    /// Returns the id of the last step, from which the next one follows; empty if there are no steps.
    pub(in crate::session) fn last_step(&self) -> Vec<StepId> {
        self.steps.last().map(|step| step.id).into_iter().collect()
    }

    /// Returns whether the run has called a built-in tool of this kind.
    pub(in crate::session) fn has_called(&self, is_meant: fn(BuiltInTool) -> bool) -> bool {
        self.steps.iter().any(|step| match &step.kind {
            StepKind::ToolCall { tool_name, .. } => BuiltInTool::from_name(tool_name).is_some_and(is_meant),
            StepKind::ToolResult { .. }
            | StepKind::Thinking { .. }
            | StepKind::Todo { .. }
            | StepKind::FinalAnswer { .. }
            | StepKind::Error { .. } => false,
        })
    }

    /// Returns whether the run has called a tool.
    pub fn has_tool_calls(&self) -> bool {
        self.steps.iter().any(|step| step_call(&step.kind).is_some())
    }

    /// Estimates what the model call in progress costs; `None` if it's free, or there's none.
    pub(in crate::session) fn unsettled_usage(&self) -> Option<CallUsage> {
        self.live.as_ref()?.received_usage(true).filter(|usage| usage.cost != Some(0.0))
    }

    pub(in crate::session) fn summary(&self) -> RunSummary {
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
            known_part: agent::budget::known_part(about.spent, &self.steps),
            unsettled: self.unsettled_usage(),
            steps: self.steps.len(),
            agent: about.agent.clone(),
            origin: about.origin,
            phase: about.phase,
            device: self.device.clone(),
            budget: about.budget,
            deadline: about.deadline,
            changed: RunSummary::listed_changes(self.changes.iter().map(|change| change.path.as_str())),
        }
    }
}

/// Returns the id of the tool call that a step makes, if any.
pub(in crate::session) fn step_call(kind: &StepKind) -> Option<&str> {
    match kind {
        StepKind::ToolCall { tool_call_id, .. } => Some(tool_call_id),
        StepKind::ToolResult { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    }
}

/// The instruction files of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RunInstructions {
    /// Names of the files that the run follows, with the volume.
    pub(in crate::session) followed: Vec<String>,
    /// Names of files that aren't text.
    pub(in crate::session) unreadable: Vec<String>,
    /// Names of those that it doesn't follow, because the user doesn't trust their volume.
    pub(in crate::session) untrusted: Vec<String>,
    /// Name of that volume.
    pub(in crate::session) volume: String,
}

/// Creates a step with the current time.
pub(in crate::session) fn new_step(turn: &mut ApplyContext<'_>, parents: Vec<StepId>, kind: StepKind) -> ExecutionStep {
    let id = StepId(turn.next_id());
    ExecutionStep { id, timestamp: turn.now.0, duration: None, parents, kind, spent: None, route: None, tool: None }
}

/// A trace that is being replayed.
#[derive(Clone, Debug)]
pub(in crate::session) struct TraceReplay {
    /// Path of the trace.
    pub(in crate::session) path: String,
    pub(in crate::session) trace: RunTrace,
    pub(in crate::session) values: SlotValues,
    /// Index of the next step.
    pub(in crate::session) at: usize,
    /// Id of the call whose result is awaited.
    pub(in crate::session) call: Option<String>,
    /// Results of the steps so far.
    pub(in crate::session) results: Vec<String>,
    pub(in crate::session) since: UnixMillis,
}

/// A run's access to memory and traces.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RunMemory {
    /// Which memories and traces the run may use.
    pub(in crate::session) recall: memory::RecallOptions,
    /// Memory of the project.
    pub(in crate::session) memory: Arc<ProjectMemory>,
    /// The replay in progress, if any.
    pub(in crate::session) replay: Option<Box<TraceReplay>>,
    /// Path of the trace whose replay stopped in this run.
    pub(in crate::session) stopped: Option<String>,
}

/// State of an orchestrating run that isn't in its document.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct OrchestratorState {
    /// The plan to carry out, if the run was given one.
    pub(in crate::session) plan: Option<Vec<TaskBlock>>,
    /// Whether the run was given a plan.
    pub(in crate::session) was_given: bool,
    /// Number of times that a model was asked for a plan.
    pub(in crate::session) plan_attempts: u8,
    /// Purpose of the next model call.
    pub(in crate::session) next_query: Option<OrchestratorQuery>,
    /// Purpose of the last model call.
    pub(in crate::session) last_query: Option<OrchestratorQuery>,
    /// Whether a model was asked to assign the tasks that rules can't assign.
    pub(in crate::session) was_assignment_asked: bool,
    /// Tasks started since the run was last resumed.
    pub(in crate::session) started_tasks: BTreeSet<String>,
    /// Why the run must stop before its next task, and how it ends then.
    pub(in crate::session) stop_reason: Option<(String, RunEnding)>,
}

/// What an orchestrating run asks a model for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum OrchestratorQuery {
    /// A plan for the goal.
    Plan,
    /// The agents for the tasks of a plan.
    Assignments,
}
