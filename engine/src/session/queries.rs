//! Queries of the session for host and views: its aggregates answer.

use crate::note::Note;
use crate::records::kernels::{KernelGrant, KernelSpec};
use crate::records::moves::{PendingMove, TrashedFile};
use crate::session::runs::{BudgetScope, BudgetStatus, RunTraceError, ScopeSpending};
use crate::session::state::Session;
use crate::session::state::agent_run::AgentRun;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::Volume;
use crate::session::sync::{SyncProgress, SyncStatus};
use crate::settings::Settings;
use agent::agent_registry::AgentRegistry;
use agent::config::BudgetConfig;
use agent::memory::trace::RunTrace;
use agent::run_records::EmbeddingCost;
use agent::schedule::Schedule;
use agent::tool_spec::ToolSpec;
use std::collections::BTreeMap;
use store::{BlockId, DocId, RegisteredTool, RunDevice};
use text::time::UnixMillis;

impl Session {
    /// Agents: sessions, runs, approvals.
    pub fn agents(&self) -> &RunsState {
        &self.state.runs
    }

    /// What the session knows of sync.
    pub fn sync(&self) -> &SyncState {
        &self.state.sync
    }

    /// Why the note's kernel cannot run a cell: it is of another language.
    pub fn other_language_reason(&self, note: &Note, cell: BlockId) -> Option<String> {
        self.state.kernels.other_language_reason(note, cell)
    }

    /// How many notes link to files by names that other programs took from them.
    pub fn count_outdated_link_notes(&self) -> usize {
        self.state.files.moves.count_outdated_link_notes()
    }

    /// Returns what the cells of a note may reach beyond its folder.
    pub fn kernel_grant(&self, note: DocId) -> KernelGrant {
        self.state.workspace.kernel_grant(note)
    }

    /// The Jupyter kernels that were found when that was asked last.
    pub fn kernels(&self) -> &[KernelSpec] {
        self.state.kernels.kernels()
    }

    /// Returns how often kernels were searched.
    pub fn kernel_searches(&self) -> u64 {
        self.state.kernels.kernel_searches()
    }

    /// Whether the user has allowed that this note's cells run in the kernel that it names.
    pub fn allows_kernel(&self, note: &Note) -> bool {
        self.state.workspace.allows_kernel(note)
    }

    /// Whether memory is being read to be worked over.
    pub fn is_maintaining_memory(&self) -> bool {
        self.state.schedules.is_maintaining_memory()
    }

    /// Returns the pending move: files first, then links.
    pub fn pending_move(&self) -> Option<&PendingMove> {
        self.state.files.moves.pending_move()
    }

    /// Returns the files in the trash.
    pub fn trash(&self) -> impl Iterator<Item = (DocId, &TrashedFile)> {
        self.state.files.moves.trash()
    }

    /// Whether a move can be taken back.
    pub fn can_undo_move(&self) -> bool {
        self.state.files.moves.can_undo_move()
    }

    /// How many edits wait for their notes to be read.
    pub fn pending_note_jobs(&self) -> usize {
        self.state.files.notes.pending_note_jobs()
    }

    /// The tools that agents may ask for.
    pub fn agent_tools(&self) -> Vec<ToolSpec> {
        self.state.runs.agent_tools()
    }

    /// Whether the configuration switches an agent of this name off.
    pub fn is_switched_off(&self, agent: &str) -> bool {
        self.state.runs.is_switched_off(agent)
    }

    /// The names of all who can be asked, in this project.
    pub fn agent_names(&self, crew: &AgentRegistry) -> Vec<String> {
        self.state.runs.agent_names(crew)
    }

    /// Why no agent of this name can be asked: it's switched off, or there's none. `None`: it can be.
    pub fn agent_unavailable_reason(&self, crew: &AgentRegistry, name: &str) -> Option<String> {
        self.state.runs.agent_unavailable_reason(crew, name)
    }

    /// Returns a sentence for each rule that names an unknown tool; such rules allow nothing.
    pub fn unknown_tools(&self, rules: &[String]) -> Vec<String> {
        self.state.runs.unknown_tools(rules)
    }

    /// What was spent in this month: in all, and by project.
    pub fn budget_statuses(&self, now: UnixMillis) -> Vec<BudgetStatus> {
        self.state.runs.budget_statuses(&self.state.files.volumes, &self.state.workspace, now)
    }

    /// A word before something is asked in a volume, where little is left of the month's money or of the project's.
    pub fn low_budget_warning(&self, now: UnixMillis, volume: Option<DocId>) -> Option<String> {
        self.state.runs.low_budget_warning(&self.state.files.volumes, &self.state.workspace, now, volume)
    }

    /// What was spent of each purse of a kind, the latest first.
    pub fn spending_by_scope(&self, by: BudgetScope) -> Vec<ScopeSpending> {
        self.state.runs.spending_by_scope(&self.state.files.volumes, &self.state.workspace, by)
    }

    /// Returns cost outside runs on this device: a line for each day and purpose, oldest first.
    pub fn embedding_costs(&self) -> impl DoubleEndedIterator<Item = &EmbeddingCost> {
        self.state.runs.embedding_costs()
    }

    /// Why search may not spend this much more, in US dollars: a sentence. `limits`: as the configuration has them now.
    pub fn over_search_budget_reason(&self, limits: &BudgetConfig, now: UnixMillis, more: f64) -> Option<String> {
        self.state.runs.over_search_budget_reason(&self.state.workspace, limits, now, more)
    }

    /// Returns the note with the plan that a run carries out.
    pub fn plan_note(&self, run: &AgentRun) -> Option<DocId> {
        self.state.files.volumes.plan_note(run)
    }

    /// Whether the device is this one.
    pub fn is_own_device(&self, device: Option<&RunDevice>) -> bool {
        self.state.workspace.is_own_device(device)
    }

    /// Whether all sessions, runs and tools that came are in their place, and all that are here are listed.
    pub fn is_agent_sync_settled(&self) -> bool {
        self.state.runs.is_agent_sync_settled(&self.state.sync)
    }

    /// The user's tools; `None`: they are not read yet.
    pub fn user_tools(&self) -> Option<&[RegisteredTool]> {
        self.state.runs.user_tools()
    }

    /// By what the tools of an agent are known, by name: what a trace's steps name.
    pub fn tool_schemas(&self, agent: &str) -> BTreeMap<String, String> {
        self.state.runs.tool_schemas(agent)
    }

    /// The trace that a run becomes.
    ///
    /// # Errors
    /// Why it cannot be done again by rule.
    pub fn trace_of_run(&self, id: DocId) -> Result<RunTrace, RunTraceError> {
        self.state.runs.trace_of_run(&self.state.files.volumes, id)
    }

    /// The schedules of this device.
    pub fn schedules(&self) -> impl Iterator<Item = (DocId, &Schedule)> {
        self.state.schedules.schedules()
    }

    /// Whether the last work of a schedule is still in progress or waits for the user.
    pub fn is_schedule_active(&self, schedule: DocId) -> bool {
        self.state.schedules.is_schedule_active(&self.state.runs, schedule)
    }

    /// Whether no scheduled work can continue without the user, and nothing is due.
    pub fn are_schedules_idle(&self) -> bool {
        self.state.schedules.are_schedules_idle(&self.state.files.notes, &self.state.runs)
    }

    /// Returns the status of sync.
    pub fn sync_status(&self) -> SyncStatus {
        self.state.sync.sync_status()
    }

    /// How far a volume, or a note of it, has got.
    pub fn sync_progress(&self, doc: DocId) -> SyncProgress {
        self.state.sync.sync_progress(&self.state.files, &self.state.runs, doc)
    }

    /// Whether files are being deleted for good.
    pub fn is_deleting_trash(&self) -> bool {
        self.state.files.moves.is_deleting_trash()
    }

    /// Whether the workspace is open.
    pub fn is_open(&self) -> bool {
        self.state.workspace.is_open()
    }

    /// Returns this device's settings.
    pub fn settings(&self) -> &Settings {
        self.state.workspace.settings()
    }

    /// Whether all notes are indexed, except those whose file can't be written: nobody knows when that ends.
    pub fn is_indexed(&self) -> bool {
        self.state.files.is_indexed()
    }

    /// The volumes, by id.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.state.files.volumes.volumes()
    }

    /// Returns the volume with this id.
    pub fn volume(&self, id: DocId) -> Option<&Volume> {
        self.state.files.volumes.volume(id)
    }

    /// Returns the note if it's open.
    pub fn note(&self, id: DocId) -> Option<&Note> {
        self.state.files.notes.note(id)
    }

    /// Returns all open notes.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.state.files.notes.notes()
    }

    /// Returns a file's volume and its path in the volume.
    pub fn locate_file(&self, file: DocId) -> Option<(DocId, &str)> {
        self.state.files.volumes.locate_file(file)
    }
}
