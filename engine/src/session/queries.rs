//! Read-only queries of the session for the host and views, answered by its aggregates.

use crate::note::Note;
use crate::records::forks::ForkOrigin;
use crate::records::kernels::{KernelGrant, KernelSpec};
use crate::records::moves::{PendingMove, TrashedFile};
use crate::session::runs::{BudgetScope, BudgetStatus, RunTraceError, RunVerificationError, ScopeSpending};
use crate::session::state::Session;
use crate::session::state::agent_run::AgentRun;
use crate::session::state::runs::RunsState;
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::{InstructionFile, Volume};
use crate::session::sync::{SyncProgress, SyncStatus};
use agent::agent_registry::{AgentRegistry, AgentVolume};
use agent::config::BudgetConfig;
use agent::memory::trace::RunTrace;
use agent::memory::trace_trust::TraceTrust;
use agent::run_records::EmbeddingCost;
use agent::schedule::Schedule;
use agent::tool_spec::ToolSpec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{BlockId, DocId, RegisteredTool, RunDevice};
use text::time::UnixMillis;
use user_settings::settings::Settings;

impl Session {
    /// Returns the state of agents: sessions, runs, approvals.
    pub fn agents(&self) -> &RunsState {
        &self.state.runs
    }

    /// Returns the state of sync.
    pub fn sync(&self) -> &SyncState {
        &self.state.sync
    }

    /// Returns why the note's kernel can't run a cell of another language; `None` if it can.
    pub fn other_language_reason(&self, note: &Note, cell: BlockId) -> Option<String> {
        self.state.kernels.other_language_reason(note, cell)
    }

    /// Returns the number of notes with links to files that other programs renamed.
    pub fn count_outdated_link_notes(&self) -> usize {
        self.state.files.moves.count_outdated_link_notes()
    }

    /// Returns what the cells of a note may access beyond its folder.
    pub fn kernel_grant(&self, note: DocId) -> KernelGrant {
        self.state.files.volumes.note_grant(&self.state.workspace, note)
    }

    /// Returns the Jupyter kernels found by the last search.
    pub fn kernels(&self) -> &[KernelSpec] {
        self.state.kernels.kernels()
    }

    /// Returns the number of kernel searches so far.
    pub fn kernel_searches(&self) -> u64 {
        self.state.kernels.kernel_searches()
    }

    /// Returns whether the user has allowed the kernel that this note names to run its cells.
    pub fn allows_kernel(&self, note: &Note) -> bool {
        self.state.workspace.allows_kernel(note)
    }

    /// Returns whether memory is being read for maintenance.
    pub fn is_maintaining_memory(&self) -> bool {
        self.state.schedules.is_maintaining_memory()
    }

    /// Returns the pending move, which moves files first and then updates links.
    pub fn pending_move(&self) -> Option<&PendingMove> {
        self.state.files.moves.pending_move()
    }

    /// Returns the files in the trash.
    pub fn trash(&self) -> impl Iterator<Item = (DocId, &TrashedFile)> {
        self.state.files.moves.trash()
    }

    /// Returns whether a move can be undone.
    pub fn can_undo_move(&self) -> bool {
        self.state.files.moves.can_undo_move()
    }

    /// Returns the number of edits that wait for their notes to be read.
    pub fn pending_note_jobs(&self) -> usize {
        self.state.files.notes.pending_note_jobs()
    }

    /// Returns the number of files that are being restored to their content before or after a change of a run.
    pub fn pending_restores(&self) -> usize {
        self.state.runs.pending_restores()
    }

    /// Returns the tools that agents may request, and the functions that events call.
    pub fn agent_tools(&self) -> Vec<ToolSpec> {
        self.state.runs.agent_tools()
    }

    /// Returns whether calls of a tool are asked about if no rule for their arguments says otherwise.
    pub fn tool_requires_approval(&self, tool: &ToolSpec) -> bool {
        self.state.runs.requires_approval(tool)
    }

    /// Returns whether the configuration disables the agent with this name.
    pub fn is_switched_off(&self, agent: &str) -> bool {
        self.state.runs.is_switched_off(agent)
    }

    /// Returns the names of all available agents, including the project's.
    pub fn agent_names(&self, crew: &AgentRegistry) -> Vec<String> {
        self.state.runs.agent_names(crew)
    }

    /// Returns the other volumes, whose agents can be called by name in this one, and whether the user trusts them.
    pub fn agent_volumes(&self, volume: DocId) -> Vec<AgentVolume> {
        self.state.files.volumes.agent_volumes(self.settings(), volume)
    }

    /// Returns why the agent with this name isn't available (it's disabled or doesn't exist); `None` if it is.
    pub fn agent_unavailable_reason(&self, crew: &AgentRegistry, name: &str) -> Option<String> {
        self.state.runs.agent_unavailable_reason(crew, name)
    }

    /// Returns a sentence for each rule that names an unknown tool; such rules allow nothing.
    pub fn unknown_tools(&self, rules: &[String]) -> Vec<String> {
        self.state.runs.unknown_tools(rules)
    }

    /// Returns a sentence for each name in the settings of agents that means nothing. `crew`: the project's agents.
    pub fn unknown_agent_settings(&self, crew: &AgentRegistry) -> Vec<String> {
        let runs = &self.state.runs;
        let told = |setup| agent::agent_setting_names::unknown_agent_settings(setup, crew, &runs.named_tools());
        runs.setup().map(told).unwrap_or_default()
    }

    /// Returns this month's spending, in total and by project.
    pub fn budget_statuses(&self, now: UnixMillis) -> Vec<BudgetStatus> {
        self.state.runs.budget_statuses(&self.state.files.volumes, &self.state.workspace, now)
    }

    /// Returns a warning if little is left of the month's budget or of the budget of the volume's project.
    pub fn low_budget_warning(&self, now: UnixMillis, volume: Option<DocId>) -> Option<String> {
        self.state.runs.low_budget_warning(&self.state.files.volumes, &self.state.workspace, now, volume)
    }

    /// Returns the spending per entry of a scope, latest first.
    pub fn spending_by_scope(&self, by: BudgetScope) -> Vec<ScopeSpending> {
        self.state.runs.spending_by_scope(&self.state.files.volumes, &self.state.workspace, by)
    }

    /// Returns costs outside of runs on this device: one entry per day and purpose, oldest first.
    pub fn embedding_costs(&self) -> impl DoubleEndedIterator<Item = &EmbeddingCost> {
        self.state.runs.embedding_costs()
    }

    /// Returns why search may not spend `more` US dollars, as a sentence; `None` if it may. `limits`: the current
    /// configuration.
    pub fn over_search_budget_reason(&self, limits: &BudgetConfig, now: UnixMillis, more: f64) -> Option<String> {
        self.state.runs.over_search_budget_reason(&self.state.workspace, limits, now, more)
    }

    /// Returns the note that holds the plan of a run.
    pub fn plan_note(&self, run: &AgentRun) -> Option<DocId> {
        self.state.files.volumes.plan_note(run)
    }

    /// Returns whether the device is this one.
    pub fn is_own_device(&self, device: Option<&RunDevice>) -> bool {
        self.state.workspace.is_own_device(device)
    }

    /// Returns whether all received sessions, runs and tools are in place, and all local ones are listed.
    pub fn is_agent_sync_settled(&self) -> bool {
        self.state.runs.is_agent_sync_settled(&self.state.sync)
    }

    /// Returns the user's tools; `None` until they're loaded.
    pub fn user_tools(&self) -> Option<&[RegisteredTool]> {
        self.state.runs.user_tools()
    }

    /// Returns the schema hashes of an agent's tools by tool name, as used in the steps of a trace.
    pub fn tool_schemas(&self, agent: &str) -> BTreeMap<String, String> {
        self.state.runs.tool_schemas(agent)
    }

    /// Returns how far this workspace trusts a trace: whether runs replay it without being told to.
    pub fn trace_trust(&self, trace: &RunTrace) -> TraceTrust {
        self.state.runs.trace_trust((&self.state.files.volumes, &self.state.sync), self.settings(), trace)
    }

    /// Returns the trace of a run.
    ///
    /// # Errors
    /// Returns why the run can't be replayed by rules.
    pub fn trace_of_run(&self, id: DocId) -> Result<RunTrace, RunTraceError> {
        self.state.runs.trace_of_run(&self.state.files.volumes, id)
    }

    /// Compares a trace with an open run, without repeating anything.
    ///
    /// # Errors
    /// Returns the first difference, or that the run isn't open.
    pub fn verify_trace(&self, run: DocId, trace: &RunTrace) -> Result<(), RunVerificationError> {
        self.state.runs.verify_trace(&self.state.files.volumes, run, trace)
    }

    /// Returns the schedules of this device.
    pub fn schedules(&self) -> impl Iterator<Item = (DocId, &Schedule)> {
        self.state.schedules.schedules()
    }

    /// Returns whether the last work of a schedule is still in progress or waits for the user.
    pub fn is_schedule_active(&self, schedule: DocId) -> bool {
        self.state.schedules.is_schedule_active(&self.state.runs, schedule)
    }

    /// Returns whether nothing is due and no scheduled work can continue without the user.
    pub fn are_schedules_idle(&self) -> bool {
        self.state.schedules.are_schedules_idle(&self.state.files.notes, &self.state.runs)
    }

    /// Returns the status of sync.
    pub fn sync_status(&self) -> SyncStatus {
        self.state.sync.sync_status()
    }

    /// Returns the sync progress of a volume, or of a note in it.
    pub fn sync_progress(&self, doc: DocId) -> SyncProgress {
        self.state.sync.sync_progress(&self.state.files, &self.state.runs, doc)
    }

    /// Returns whether files are being deleted permanently.
    pub fn is_deleting_trash(&self) -> bool {
        self.state.files.moves.is_deleting_trash()
    }

    /// Returns whether the workspace is open.
    pub fn is_open(&self) -> bool {
        self.state.workspace.is_open()
    }

    /// Returns this device's settings.
    pub fn settings(&self) -> &Settings {
        self.state.workspace.settings()
    }

    /// Returns whether all notes are indexed, except those whose file can't be read or written, since that
    /// can last indefinitely.
    pub fn is_indexed(&self) -> bool {
        self.state.files.is_indexed()
    }

    /// Returns the same of one volume; true if there's no such volume.
    pub fn is_volume_indexed(&self, volume: DocId) -> bool {
        let volume = self.state.files.volumes.by_id.get(&volume);
        volume.is_none_or(|volume| self.state.files.is_volume_indexed(volume))
    }

    /// Returns the volumes by id, without private memory volumes and forks.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.state.files.volumes.volumes()
    }

    /// Returns the private memory volumes by id; `Volume::memory_of` is the volume each one belongs to.
    pub fn memory_volumes(&self) -> impl Iterator<Item = &Volume> {
        self.state.files.volumes.by_id.values().filter(|volume| volume.memory_of.is_some())
    }

    /// Returns the forks by id; `Volume::fork_of` is what each one is a copy of.
    pub fn fork_volumes(&self) -> impl Iterator<Item = &Volume> {
        self.state.files.volumes.by_id.values().filter(|volume| volume.fork_of.is_some())
    }

    /// Returns what a volume is a fork of, also if the fork was discarded; `None` if it isn't one.
    pub fn fork_origin(&self, volume: DocId) -> Option<&ForkOrigin> {
        self.state.files.volumes.forks.get(&volume)
    }

    /// Returns the volume that holds the memory of this one, and its folder; either may not exist yet.
    pub fn memory_home(&self, volume: DocId) -> Option<(DocId, PathBuf)> {
        let volumes = &self.state.files.volumes;
        Some((volumes.memory_home(volume), volumes.memory_root(volume)?))
    }

    /// Returns the volume with this id.
    pub fn volume(&self, id: DocId) -> Option<&Volume> {
        self.state.files.volumes.volume(id)
    }

    /// Name of the guide's folder in the workspace's folder.
    pub const GUIDE_FOLDER: &str = "Help";

    /// Returns whether a volume is the guide, which the program writes and nobody shares or commits.
    pub fn is_guide(&self, volume: &Volume) -> bool {
        volume.root.as_ref() == Some(&self.state.workspace.folder.join(Session::GUIDE_FOLDER))
    }

    /// Returns why nothing may change in a volume, as a sentence; `None` if it may.
    pub fn read_only_reason(&self, volume: DocId) -> Option<String> {
        self.state.files.volumes.read_only_reason(volume)
    }

    /// Returns what the configuration says of a volume; `None` if that's nothing.
    pub fn volume_config(&self, volume: DocId) -> Option<&agent::config::VolumeConfig> {
        let volumes = &self.state.files.volumes;
        volumes.settings.get(&volumes.volume(volume)?.name)
    }

    /// Returns the instruction files that concern a note, or else a volume. The nearest comes last.
    pub fn instruction_files(&self, volume: DocId, note: Option<DocId>) -> Vec<InstructionFile> {
        self.state.files.volumes.list_instruction_files(self.settings(), (volume, note))
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
