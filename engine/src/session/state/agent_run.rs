//! A run that is loaded: its document, its calls, and what it knows beyond its document.

use crate::records::saving::BatchNumber;
use crate::session::apply_context::ApplyContext;
use agent::agent_registry::AgentRegistry;
use agent::memory;
use agent::memory::ProjectMemory;
use agent::memory::slots::SlotValues;
use agent::memory::trace::RunTrace;
use agent::model_call::ModelCallId;
use agent::policy::CallFacts;
use agent::run_records::RunSummary;
use agent::task_block::TaskBlock;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use store::{
    DocId, ExecutionStep, MessageId, RunAbout, RunApproval, RunChange, RunDevice, RunDoc, StepId, StepKind, TodoItem,
    ToolCall,
};
use text::time::UnixMillis;

/// What is drawn of an answer before it is whole.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveModelCall {
    /// Id of the call.
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
    /// The call can start.
    Ready,
    /// The tool is running.
    Running {
        /// When it started.
        since: UnixMillis,
    },
    /// The result has arrived.
    Done,
}

/// A tool call of the current turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// The call, with the arguments that count.
    pub call: ToolCall,
    /// The step that shows the call.
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
pub(in crate::session) enum ProjectReadState {
    /// Nothing was requested yet.
    #[default]
    Unread,
    /// It's read for a run that begins.
    ReadingToStart,
    /// Reading for a run that's resumed.
    ReadingToResume,
    /// Everything is loaded.
    Loaded,
}

/// A run that is loaded.
#[derive(Debug)]
pub struct AgentRun {
    /// Document id of the run.
    pub id: DocId,
    /// Metadata of the run.
    pub about: RunAbout,
    /// The device that owns the run and alone may continue it; `None` for this one.
    pub device: Option<RunDevice>,
    /// Its steps, oldest first.
    pub steps: Vec<ExecutionStep>,
    /// The todos in their order.
    pub todos: Vec<TodoItem>,
    /// What waits for the user, and what was decided.
    pub approvals: Vec<RunApproval>,
    /// Changes that the run made to files.
    pub changes: Vec<RunChange>,
    /// The answer on its way.
    pub live: Option<LiveModelCall>,
    /// The tool calls of the current turn.
    pub calls: Vec<PendingCall>,
    /// Counts what happens to it.
    pub revision: u64,
    /// Batches not yet on disk, and the number of steps each one completes.
    pub(in crate::session) pending_batches: VecDeque<(BatchNumber, usize)>,
    pub(in crate::session) durable_step_count: usize,
    pub(in crate::session) doc: Box<RunDoc>,
    pub(in crate::session) is_unsaved: bool,
    pub(in crate::session) next_call: u64,
    /// Providers that did not answer in this turn.
    pub(in crate::session) failed_providers: Vec<(String, String)>,
    /// Ids of calls that were used.
    pub(in crate::session) used_call_ids: BTreeSet<String>,
    /// What it knows of earlier ones.
    pub(in crate::session) run_memory: RunMemory,
    /// Whether it continues automatically, because it started here or was resumed.
    pub(in crate::session) is_awake: bool,
    /// What of its project was read since it was loaded.
    pub(in crate::session) project_read: ProjectReadState,
    /// Mentioned files that weren't read, with the text given instead.
    pub(in crate::session) withheld_files: Vec<(String, String)>,
    /// The agents of its project.
    pub(in crate::session) project_agents: Arc<AgentRegistry>,
    /// The project for which it works, where an agent leads one.
    pub(in crate::session) project: Option<String>,
    /// What it knows where it leads.
    pub(in crate::session) orchestrator: OrchestratorState,
}

impl AgentRun {
    pub(in crate::session) fn new(id: DocId, about: RunAbout, doc: Box<RunDoc>, fresh: bool) -> AgentRun {
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
            run_memory: RunMemory::default(),
            is_awake: false,
            project_read: ProjectReadState::default(),
            withheld_files: Vec::new(),
            project_agents: Arc::default(),
            project: None,
            orchestrator: OrchestratorState::default(),
        }
    }

    /// Whether a model, a tool or a decision is pending.
    pub fn is_busy(&self) -> bool {
        self.about.ending.is_none() && (self.live.is_some() || !self.calls.is_empty())
    }

    /// Whether it's active: not ended, and not only read from disk.
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
    pub(in crate::session) fn last_step(&self) -> Vec<StepId> {
        self.steps.last().map(|step| step.id).into_iter().collect()
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

/// A step that happens now.
pub(in crate::session) fn new_step(turn: &mut ApplyContext<'_>, parents: Vec<StepId>, kind: StepKind) -> ExecutionStep {
    let id = StepId(turn.next_id());
    ExecutionStep { id, timestamp: turn.now.0, duration: None, parents, kind, spent: None, route: None }
}

/// A trace that is being replayed.
#[derive(Clone, Debug)]
pub(in crate::session) struct TraceReplay {
    /// Path of the trace.
    pub(in crate::session) path: String,
    pub(in crate::session) trace: RunTrace,
    pub(in crate::session) values: SlotValues,
    /// The step that comes next.
    pub(in crate::session) at: usize,
    /// The call whose result is waited for.
    pub(in crate::session) call: Option<String>,
    /// What its steps have said.
    pub(in crate::session) results: Vec<String>,
    pub(in crate::session) since: UnixMillis,
}

/// What a run knows of memory.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct RunMemory {
    /// What it may use.
    pub(in crate::session) recall: memory::RecallOptions,
    /// What the project remembers.
    pub(in crate::session) memory: Arc<ProjectMemory>,
    /// What is being replayed.
    pub(in crate::session) replay: Option<Box<TraceReplay>>,
    /// The trace whose replay stopped in this run.
    pub(in crate::session) stopped: Option<String>,
}

/// What a run that leads knows beyond its document.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct OrchestratorState {
    /// The plan that it is to carry out.
    pub(in crate::session) plan: Option<Vec<TaskBlock>>,
    /// Whether the run was given a plan.
    pub(in crate::session) was_given: bool,
    /// How often a model was asked for a plan.
    pub(in crate::session) plan_attempts: u8,
    /// What the next call of a model is for.
    pub(in crate::session) next_query: Option<OrchestratorQuery>,
    /// What the last one was for.
    pub(in crate::session) last_query: Option<OrchestratorQuery>,
    /// Whether a model was asked to assign the tasks that rules can't assign.
    pub(in crate::session) was_assignment_asked: bool,
    /// Tasks started since the run was last resumed.
    pub(in crate::session) started_tasks: BTreeSet<String>,
    /// Why the budget is used up.
    pub(in crate::session) budget_stop_reason: Option<String>,
}

/// What a run that leads asks a model for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum OrchestratorQuery {
    /// A plan for the goal.
    Plan,
    /// Who does which task.
    Assignments,
}
