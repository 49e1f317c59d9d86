//! The state of runs, sessions and tools.

use crate::commands::CommandId;
use crate::records::saving::BatchNumber;
use crate::session::state::agent_run::AgentRun;
use crate::session::state::agent_session::AgentSession;
use agent::policy::{PolicyRule, ToolPolicy};
use agent::run_records::{AgentSetup, EmbeddingCost, RunSummary, SessionSummary};
use agent::task_block::TaskBlock;
use agent::{memory, router};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{
    DocId, ExecutionId, ExecutionStep, ListedDocumentKind, MessageId, RegisteredTool, RegistryDoc, RunChange, RunDoc,
    RunOrigin, SessionMessage, TodoItem, ToolCall,
};

/// What is to be kept of a run at once.
#[derive(Debug, Default)]
pub(in crate::session) struct RunRecord {
    pub(in crate::session) steps: Vec<ExecutionStep>,
    pub(in crate::session) messages: Vec<SessionMessage>,
    pub(in crate::session) approvals: Vec<String>,
    pub(in crate::session) changes: Vec<RunChange>,
    pub(in crate::session) todos: Option<Vec<TodoItem>>,
}

/// A question that waits for its session to be read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct RunRequest {
    pub(in crate::session) run: DocId,
    pub(in crate::session) session: DocId,
    pub(in crate::session) volume: DocId,
    pub(in crate::session) note: Option<DocId>,
    pub(in crate::session) parent: Option<MessageId>,
    pub(in crate::session) text: String,
    pub(in crate::session) agent: Option<String>,
    pub(in crate::session) budget: Option<f64>,
    pub(in crate::session) allow: Vec<PolicyRule>,
    /// What a button asks for, and the title of its session: no model is called.
    pub(in crate::session) button: Option<(String, ToolCall)>,
    pub(in crate::session) recall: memory::RecallOptions,
    pub(in crate::session) origin: RunOrigin,
    /// The tasks that it is to carry out.
    pub(in crate::session) plan: Option<Vec<TaskBlock>>,
    /// The project for which it works, where an agent leads one.
    pub(in crate::session) project: Option<String>,
}

/// All that the session knows of agents.
#[derive(Debug, Default)]
pub struct RunsState {
    /// Sessions that are loaded.
    pub(in crate::session) sessions: BTreeMap<DocId, AgentSession>,
    /// Summaries of all sessions.
    pub(in crate::session) session_summaries: BTreeMap<DocId, SessionSummary>,
    /// Runs that are loaded.
    pub(in crate::session) runs: BTreeMap<DocId, AgentRun>,
    /// Summaries of all runs.
    pub(in crate::session) run_summaries: BTreeMap<DocId, RunSummary>,
    pub(in crate::session) setup: Option<Arc<AgentSetup>>,
    /// Rules that the user's decisions have made.
    pub(in crate::session) rules: Vec<PolicyRule>,
    /// Runs that continue once this batch is on disk.
    pub(in crate::session) resume_after: BTreeMap<DocId, BatchNumber>,
    /// Runs that were read, and wait for their session.
    pub(in crate::session) read_runs: Vec<(DocId, Box<RunDoc>)>,
    pub(in crate::session) run_requests: Vec<RunRequest>,
    /// Whether the setup is being read for them.
    pub(in crate::session) is_reading_setup: bool,
    /// Runs that continue once the setup and their session are loaded.
    pub(in crate::session) stalled_runs: BTreeSet<DocId>,
    /// The user's tools, once they are read.
    pub(in crate::session) registry: Option<ToolRegistry>,
    pub(in crate::session) tool_note_jobs: Vec<ToolNoteJob>,
    /// Runs that got work handed on: the run that waits, and the call for which.
    pub(in crate::session) children: BTreeMap<DocId, (DocId, String)>,
    pub(in crate::session) loading: BTreeSet<DocId>,
    /// Why documents cannot be read.
    pub(in crate::session) read_errors: BTreeMap<DocId, String>,
    pub(in crate::session) latencies: router::ProviderLatencies,
    /// State of other devices' sessions, runs and tools.
    pub(in crate::session) remote_runs: RemoteRuns,
    pub(in crate::session) revision: u64,
    /// Budgets that were reported as low, and in which month.
    pub(in crate::session) reported_low_budgets: BTreeSet<(String, (i64, i64))>,
    /// Cost outside runs, by day and purpose.
    pub(in crate::session) embedding_costs: BTreeMap<(i64, String), EmbeddingCost>,
}

impl RunsState {
    /// Returns the documents of a volume besides those of its files.
    pub(in crate::session) fn agent_docs(&self, volume: DocId) -> Vec<DocId> {
        let sessions = self.session_summaries.iter().filter(|(_, line)| line.volume == Some(volume)).map(|(id, _)| *id);
        let runs = self.run_summaries.iter().filter(|(_, line)| line.volume == volume).map(|(id, _)| *id);
        let expected = self.remote_runs.expected.iter().filter(|(_, (of, _))| *of == volume).map(|(id, _)| *id);
        sessions.chain(runs).chain(expected).chain([volume.tools_id()]).collect()
    }

    /// Whether it is a session or a run of this device.
    pub(in crate::session) fn is_agent_doc(&self, id: DocId) -> bool {
        self.session_summaries.contains_key(&id) || self.run_summaries.contains_key(&id)
    }

    /// What agents have to work with; `None`: it is still being read.
    pub fn setup(&self) -> Option<&AgentSetup> {
        self.setup.as_deref()
    }

    /// Whether the setup is being read again.
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

    /// Returns all runs of this workspace.
    pub fn runs(&self) -> impl Iterator<Item = (DocId, &RunSummary)> {
        self.run_summaries.iter().map(|(id, line)| (*id, line))
    }

    /// A session that is loaded.
    pub fn session(&self, id: DocId) -> Option<&AgentSession> {
        self.sessions.get(&id)
    }

    /// Returns all sessions of this workspace.
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

    /// Returns the current policy.
    pub(in crate::session) fn policy(&self) -> ToolPolicy {
        let setup = self.setup.as_deref();
        let mut policy = setup.map(|setup| ToolPolicy::from_config(&setup.config)).unwrap_or_default();
        policy.unconfined = setup.and_then(|setup| setup.unconfined.clone()).or(policy.unconfined);
        policy.rules.extend(self.rules.iter().cloned());
        policy
    }
}

/// The tools of a workspace, once they are read.
#[derive(Debug)]
pub(in crate::session) struct ToolRegistry {
    pub(in crate::session) doc: Box<RegistryDoc>,
    pub(in crate::session) tools: Vec<RegisteredTool>,
    pub(in crate::session) fresh: bool,
}

/// Work on a note that need not be open.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) struct ToolNoteJob {
    pub(in crate::session) run: DocId,
    pub(in crate::session) call: String,
    pub(in crate::session) note: DocId,
    pub(in crate::session) what: ToolNoteJobKind,
    pub(in crate::session) begun: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::session) enum ToolNoteJobKind {
    /// Its cells are read, and the call is judged by them; `again`: why it is judged once more.
    ReadForCheck { again: Option<String> },
    /// The note becomes this text.
    Write(String),
    /// Appends this text.
    Append(String),
    /// One passage becomes another.
    Edit { old: String, new: String },
    /// A cell runs; once it has begun, which execution is waited for.
    RunCell { number: usize, execution: Option<ExecutionId> },
    /// A command of the window on its cells.
    RunCommand(CommandId),
    /// The file goes into the trash.
    Delete,
}

/// An entry of a volume's list: kind, id, and the heads if it was deleted.
pub(in crate::session) type VolumeListEntry = (ListedDocumentKind, DocId, Option<String>);

/// Received changes, each with its ticket.
pub(in crate::session) type EarlyChanges = Vec<(u64, Vec<u8>)>;

/// State of other devices' sessions, runs and tools.
#[derive(Debug, Default)]
pub(in crate::session) struct RemoteRuns {
    /// What the lists of volumes do not say yet.
    pub(in crate::session) unlisted: Vec<(DocId, VolumeListEntry)>,
    /// Listed documents that haven't arrived: volume and kind.
    pub(in crate::session) expected: BTreeMap<DocId, (DocId, ListedDocumentKind)>,
    /// Changes of documents that are being read.
    pub(in crate::session) early_changes: BTreeMap<DocId, EarlyChanges>,
    /// Documents loaded only for such changes, and closed afterwards.
    pub(in crate::session) temporary_docs: BTreeSet<DocId>,
    /// The tools that go along with shared volumes, by volume.
    pub(in crate::session) shared_tools: BTreeMap<DocId, SharedTools>,
    /// Whether tools are to be compared.
    pub(in crate::session) is_tool_sharing_due: bool,
}

impl RemoteRuns {
    /// Keeps a document loaded that may have been loaded only for a merge.
    pub(in crate::session) fn keep_loaded(&mut self, id: DocId) {
        self.temporary_docs.remove(&id);
    }
}

/// The tools that go along with a volume.
#[derive(Debug)]
pub(in crate::session) struct SharedTools {
    pub(in crate::session) doc: Box<RegistryDoc>,
    /// Nothing of it is on disk.
    pub(in crate::session) fresh: bool,
}
