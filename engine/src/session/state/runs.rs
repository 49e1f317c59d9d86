//! State of runs, sessions and tools.

use crate::records::saving::BatchNumber;
use crate::session::state::agent_run::AgentRun;
use crate::session::state::agent_session::AgentSession;
use agent::memory::idle_consolidation::IdleConsolidation;
use agent::policy::{PolicyRule, ToolPolicy};
use agent::router;
use agent::run_records::{AgentSetup, EmbeddingCost, RunSummary, SessionSummary};
pub(in crate::session) use agent::run_request::RunRequest;
use agent::sent_task::SentPlanTask;
use agent::tool_job::ToolJob;
use commands::CommandId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{
    DocId, ExecutionId, ExecutionStep, ListedDocumentKind, RegisteredTool, RegistryDoc, RunChange, RunDoc,
    SessionMessage, TodoItem,
};

/// Changes of a run to store in one batch.
#[derive(Debug, Default)]
pub(in crate::session) struct RunRecord {
    pub(in crate::session) steps: Vec<ExecutionStep>,
    pub(in crate::session) messages: Vec<SessionMessage>,
    pub(in crate::session) approvals: Vec<String>,
    pub(in crate::session) changes: Vec<RunChange>,
    pub(in crate::session) todos: Option<Vec<TodoItem>>,
}

/// State of agents: sessions, runs, tools and policy rules.
#[derive(Debug, Default)]
pub struct RunsState {
    /// Loaded sessions.
    pub(in crate::session) sessions: BTreeMap<DocId, AgentSession>,
    /// Summaries of all sessions.
    pub(in crate::session) session_summaries: BTreeMap<DocId, SessionSummary>,
    /// Loaded runs.
    pub(in crate::session) runs: BTreeMap<DocId, AgentRun>,
    /// Summaries of all runs.
    pub(in crate::session) run_summaries: BTreeMap<DocId, RunSummary>,
    pub(in crate::session) setup: Option<Arc<AgentSetup>>,
    /// Policy rules created by the user's decisions.
    pub(in crate::session) rules: Vec<PolicyRule>,
    /// Runs that this device carries out for others, with the hubs that lend them and their owners' policies.
    pub(in crate::session) held: BTreeMap<DocId, (String, ToolPolicy)>,
    /// Runs that continue once this batch is on disk.
    pub(in crate::session) resume_after: BTreeMap<DocId, BatchNumber>,
    /// Loaded documents of runs that wait for their session.
    pub(in crate::session) read_runs: Vec<(DocId, Box<RunDoc>)>,
    pub(in crate::session) run_requests: Vec<RunRequest>,
    /// Whether the setup is being read for the requested runs.
    pub(in crate::session) is_reading_setup: bool,
    /// Runs that continue once the setup and their session are loaded, and their volume is scanned.
    pub(in crate::session) stalled_runs: BTreeSet<DocId>,
    /// The user's tools, once loaded.
    pub(in crate::session) registry: Option<ToolRegistry>,
    pub(in crate::session) tool_note_jobs: Vec<ToolNoteJob>,
    /// Jobs, each with its run and call, that wait until what the run wrote in notes is on disk.
    pub(in crate::session) waiting_jobs: Vec<(DocId, String, Box<ToolJob>)>,
    /// Delegated runs, each with the run that waits for it and the id of its call.
    pub(in crate::session) children: BTreeMap<DocId, (DocId, String)>,
    /// Delegated runs that other devices are to carry out.
    pub(in crate::session) sent_tasks: BTreeMap<DocId, SentPlanTask>,
    pub(in crate::session) loading: BTreeSet<DocId>,
    /// Number of messages to the webhook without a result.
    pub(in crate::session) pending_webhooks: usize,
    /// The first failure of the webhook, which the user was told.
    pub(in crate::session) webhook_failure: Option<String>,
    /// Why documents can't be read, by document.
    pub(in crate::session) read_errors: BTreeMap<DocId, String>,
    pub(in crate::session) latencies: router::ProviderLatencies,
    /// State of other devices' sessions, runs and tools.
    pub(in crate::session) remote_runs: RemoteRuns,
    pub(in crate::session) revision: u64,
    /// Budgets that were already reported as low, with the month.
    pub(in crate::session) reported_low_budgets: BTreeSet<(String, (i64, i64))>,
    pub(in crate::session) idle_consolidation: IdleConsolidation,
    /// Costs outside of runs, by day and purpose.
    pub(in crate::session) embedding_costs: BTreeMap<(i64, String), EmbeddingCost>,
}

impl RunsState {
    /// Returns the documents of a volume that don't belong to its files: sessions, runs and tools.
    pub(in crate::session) fn agent_docs(&self, volume: DocId) -> Vec<DocId> {
        let sessions = self.session_summaries.iter().filter(|(_, line)| line.volume == Some(volume)).map(|(id, _)| *id);
        let runs = self.run_summaries.iter().filter(|(_, line)| line.volume == volume).map(|(id, _)| *id);
        let expected = self.remote_runs.expected.iter().filter(|(_, (of, _))| *of == volume).map(|(id, _)| *id);
        sessions.chain(runs).chain(expected).chain([volume.tools_id()]).collect()
    }

    /// Returns whether the document is a session or a run on this device.
    pub(in crate::session) fn is_agent_doc(&self, id: DocId) -> bool {
        self.session_summaries.contains_key(&id) || self.run_summaries.contains_key(&id)
    }

    /// Returns the configuration of agents; `None` until it's loaded.
    pub fn setup(&self) -> Option<&AgentSetup> {
        self.setup.as_deref()
    }

    /// Returns whether the setup is being read.
    pub fn is_reading(&self) -> bool {
        self.is_reading_setup
    }

    /// Returns the run with this id if it's loaded.
    pub fn run(&self, id: DocId) -> Option<&AgentRun> {
        self.runs.get(&id)
    }

    /// Returns the loaded runs.
    pub fn open_runs(&self) -> impl Iterator<Item = &AgentRun> {
        self.runs.values()
    }

    /// Returns all runs of this workspace.
    pub fn runs(&self) -> impl Iterator<Item = (DocId, &RunSummary)> {
        self.run_summaries.iter().map(|(id, line)| (*id, line))
    }

    /// Returns the session with this id if it's loaded.
    pub fn session(&self, id: DocId) -> Option<&AgentSession> {
        self.sessions.get(&id)
    }

    /// Returns all sessions of this workspace.
    pub fn sessions(&self) -> impl Iterator<Item = (DocId, &SessionSummary)> {
        self.session_summaries.iter().map(|(id, line)| (*id, line))
    }

    /// Returns the policy rules created by the user's decisions.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Returns why a session or a run can't be read; `None` if there was no error.
    pub fn read_error(&self, id: DocId) -> Option<&str> {
        self.read_errors.get(&id).map(String::as_str)
    }

    /// Returns a counter that increases with changes to sessions and runs.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns whether any request waits to become a run.
    pub fn has_run_requests(&self) -> bool {
        !self.run_requests.is_empty()
    }

    /// Returns whether the request for this run waits for its session to be loaded.
    pub fn is_request_pending(&self, run: DocId) -> bool {
        self.run_requests.iter().any(|question| question.run == run)
    }

    /// Returns the current policy, with the rules from the user's decisions.
    pub fn policy(&self) -> ToolPolicy {
        let setup = self.setup.as_deref();
        let mut policy = setup.map(|setup| ToolPolicy::from_config(&setup.config)).unwrap_or_default();
        let unconfined = setup.and_then(|setup| setup.unconfined.as_ref());
        let why = |why: &String| format!("programs cannot be confined here ({why}), so each one is asked about");
        policy.unconfined = unconfined.map(why).or(policy.unconfined);
        policy.rules.extend(self.rules.iter().cloned());
        policy
    }
}

/// The user tools of a workspace, once loaded.
#[derive(Debug)]
pub(in crate::session) struct ToolRegistry {
    pub(in crate::session) doc: Box<RegistryDoc>,
    pub(in crate::session) tools: Vec<RegisteredTool>,
    pub(in crate::session) fresh: bool,
}

/// Work of a tool call on a note that may be closed.
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
    /// Reads the note's cells, which the policy check of the call needs. `again`: why it's checked again.
    ReadForCheck { again: Option<String> },
    /// Replaces the text of the note.
    Write(String),
    /// Appends this text.
    Append(String),
    /// Replaces a passage.
    Edit { old: String, new: String },
    /// Runs a cell. `execution`: the awaited execution, once it has started.
    RunCell { number: usize, execution: Option<ExecutionId> },
    /// Runs a command of the window on the note's cells.
    RunCommand(CommandId),
    /// Moves the file to the trash.
    Delete,
}

/// An entry of a volume's list: kind, id, and the heads if it was deleted.
pub(in crate::session) type VolumeListEntry = (ListedDocumentKind, DocId, Option<String>);

/// Received changes, each with its ticket.
pub(in crate::session) type EarlyChanges = Vec<(u64, Vec<u8>)>;

/// State of sessions, runs and tools of other devices.
#[derive(Debug, Default)]
pub(in crate::session) struct RemoteRuns {
    /// Entries that aren't in the volumes' documents yet.
    pub(in crate::session) unlisted: Vec<(DocId, VolumeListEntry)>,
    /// Listed documents that haven't arrived, with volume and kind.
    pub(in crate::session) expected: BTreeMap<DocId, (DocId, ListedDocumentKind)>,
    /// Received changes of documents that are being read.
    pub(in crate::session) early_changes: BTreeMap<DocId, EarlyChanges>,
    /// Documents that were loaded only for such changes and are closed afterwards.
    pub(in crate::session) temporary_docs: BTreeSet<DocId>,
    /// Tools shared with volumes, by volume.
    pub(in crate::session) shared_tools: BTreeMap<DocId, SharedTools>,
    /// Whether tools must be compared with those of other devices.
    pub(in crate::session) is_tool_sharing_due: bool,
}

impl RemoteRuns {
    /// Keeps a document loaded that was possibly loaded only for a merge.
    pub(in crate::session) fn keep_loaded(&mut self, id: DocId) {
        self.temporary_docs.remove(&id);
    }
}

/// The tools shared with a volume.
#[derive(Debug)]
pub(in crate::session) struct SharedTools {
    pub(in crate::session) doc: Box<RegistryDoc>,
    /// Whether nothing of the document is on disk.
    pub(in crate::session) fresh: bool,
}
