//! Policy checks of tool calls: gathers the facts, asks the user, and asks again if a call is no longer what was
//! allowed.

use crate::note::{Note, NotePhase};
use crate::session::apply_context::ApplyContext;
use crate::session::runs::call_volumes::CallVolume;
use crate::session::state::FilesState;
use crate::session::state::agent_run::{CallPhase, PendingCall};
use crate::session::state::notes::NotesState;
use crate::session::state::runs::{RunRecord, RunsState, ToolNoteJob, ToolNoteJobKind};
use crate::session::state::sync::SyncState;
use crate::session::state::volumes::VolumesState;
use crate::session::state::workspace::WorkspaceState;
use agent::container_calls::describe_container_call;
use agent::git_calls::describe_git_call;
use agent::notice::Notice;
use agent::policy::{self, CallFacts, Permission, ToolPolicy};
use agent::tool_call_parser;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::{AccessRequest, ToolOutcome};
use agent::tool_outcomes::{failed_outcome, number_argument, string_argument};
use agent::tool_spec::{ToolSource, ToolSpec};
use agent::web_address::describe_ip;
use commands::CommandId;
use serde_json::{Map, Value};
use store::{
    BlobHash, BlockId, CodePiece, DecisionMaker, DecisionRecord, DecisionScope, DocId, RunApproval, RunOrigin, ToolCall,
};

/// Time that approvals of scheduled runs wait for the user, in milliseconds: a week.
pub(super) const SCHEDULED_APPROVAL_TIMEOUT_MS: i64 = 7 * 86_400_000;
/// Maximum number of policy checks per call, because redirects and names may form loops.
const MAX_POLICY_CHECKS_PER_CALL: usize = 12;

/// Facts about a call, or why they're missing.
enum FactsLookup {
    /// All facts that are required.
    Complete(CallFacts),
    /// The call would run code of a note that isn't open.
    NeedsNote(DocId),
}

/// Describes the effect of a call for the user.
fn describe_call(tool: &ToolSpec, arguments: &Map<String, Value>) -> String {
    let subject = policy::main_argument(arguments);
    let built_in = BuiltInTool::from_name(&tool.name);
    if let Some(what) = built_in.and_then(|git| describe_git_call(git, arguments)) {
        return what;
    }
    match built_in {
        Some(BuiltInTool::Shell) => match string_argument(arguments, "workdir") {
            "" | "." => format!("Run in the sandbox: {subject}"),
            folder => format!("Run in the sandbox, in {folder}: {subject}"),
        },
        Some(BuiltInTool::WriteFile) => format!("Write {subject}"),
        Some(BuiltInTool::EditFile) => format!("Change {subject}"),
        Some(BuiltInTool::DeleteFile) => format!("Put {subject} into the trash"),
        Some(BuiltInTool::RunCell) => {
            format!("Run cell {} of {subject}", number_argument(arguments, "cell").unwrap_or(1))
        }
        Some(BuiltInTool::RunPython) => "Run Python in the sandbox".to_owned(),
        Some(BuiltInTool::FetchUrl) => format!("Fetch {subject}"),
        Some(BuiltInTool::BrowserOpen) => format!("Open in a browser: {subject}"),
        Some(BuiltInTool::BrowserAct) => {
            let words = ["action", "element", "text"].map(|name| string_argument(arguments, name));
            format!("Use the page in the browser: {}", words.join(" ").trim_end())
        }
        Some(container) if container.is_for_containers() => describe_container_call(container, arguments),
        Some(BuiltInTool::AskAgent) => {
            let goal = string_argument(arguments, "goal").lines().next().unwrap_or_default();
            format!("Let {} begin: {goal}", string_argument(arguments, "agent"))
        }
        Some(BuiltInTool::ProposeComponent) => {
            format!("Propose the component {}", string_argument(arguments, "tagName"))
        }
        Some(BuiltInTool::AskUser) => string_argument(arguments, "question").to_owned(),
        Some(BuiltInTool::RunAgent) => {
            format!("Run the agent {} of this project in the sandbox", string_argument(arguments, "agent"))
        }
        Some(BuiltInTool::AgentPermission) => format!("Let the agent: {}", string_argument(arguments, "action")),
        Some(BuiltInTool::McpSampling) => {
            let text = |name: &str| string_argument(arguments, name);
            format!("Let the tool server {} ask the model {}", text("server"), text("model"))
        }
        Some(BuiltInTool::McpForm) => agent::server_form::form_title(arguments),
        Some(BuiltInTool::NoteCommand) => {
            let id = string_argument(arguments, "name");
            let title = id.parse::<CommandId>().map_or(id, |command| command.title());
            format!("{title} in {}", string_argument(arguments, "path"))
        }
        _ if subject.is_empty() => format!("Use {}", tool.title()),
        _ => format!("Use {}: {subject}", tool.title()),
    }
}

/// Returns the cells that a call would run, in order.
fn cells_to_run(note: &Note, tool: &str, arguments: &Map<String, Value>) -> Vec<BlockId> {
    let all: Vec<BlockId> = note.cells().collect();
    if BuiltInTool::NoteCommand.is_named(tool) {
        return match string_argument(arguments, "name").parse() {
            Ok(CommandId::NoteRunAll | CommandId::NoteRunClean) => all,
            Ok(CommandId::NoteRunStale) => {
                let stale: Vec<BlockId> = note.cells().filter(|cell| note.stale_reason(*cell).is_some()).collect();
                note.plan_cells(&stale)
            }
            _ => Vec::new(), // it runs nothing
        };
    }
    let at = number_argument(arguments, "cell").unwrap_or(1);
    let cell = usize::try_from(at).ok().and_then(|at| all.get(at.saturating_sub(1)).copied());
    cell.map(|cell| note.cells_run_with(cell)).unwrap_or_default()
}

/// Returns the code of these cells.
fn cell_code_pieces(note: &Note, cells: &[BlockId]) -> Vec<CodePiece> {
    let place = |cell: &BlockId| note.cells().position(|other| other == *cell).map_or(0, |at| at + 1);
    let piece = |cell: &BlockId| {
        Some(CodePiece { title: format!("Cell {}", place(cell)), text: note.cell_code(*cell)?.to_owned() })
    };
    cells.iter().filter_map(piece).collect()
}

impl RunsState {
    /// Returns the facts that are required to check a call.
    fn look_up_facts(
        &self,
        files: &FilesState,
        id: DocId,
        tool: &ToolSpec,
        arguments: &Map<String, Value>,
    ) -> FactsLookup {
        let mut facts = CallFacts::default();
        let Some(run) = self.runs.get(&id) else { return FactsLookup::Complete(facts) };
        match BuiltInTool::from_name(&tool.name) {
            Some(BuiltInTool::RunCell | BuiltInTool::NoteCommand) => {
                let path = string_argument(arguments, "path").trim_start_matches("./");
                let Ok(CallVolume::Known(volume)) = files.volumes.call_volume(run.about.volume, arguments) else {
                    return FactsLookup::Complete(facts);
                };
                let Some(id) = files.volumes.find_note(volume, path) else {
                    return FactsLookup::Complete(facts);
                };
                match files.notes.open.get(&id) {
                    Some(note) if note.is_settled() => {
                        facts.code = cell_code_pieces(note, &cells_to_run(note, &tool.name, arguments));
                    }
                    // No cell of this note can run.
                    Some(note) if matches!(note.phase, NotePhase::Failed(_)) => {}
                    Some(_) | None => return FactsLookup::NeedsNote(id),
                }
            }
            Some(BuiltInTool::RunAgent) => {
                let agent = run.project_agents.find_python_agent(string_argument(arguments, "agent"));
                let agent = agent.filter(|agent| agent.hash() == string_argument(arguments, "code"));
                facts.code.extend(agent.map(|agent| CodePiece { title: agent.path.clone(), text: agent.code.clone() }));
            }
            _ if matches!(tool.source, ToolSource::User { .. }) => {
                let own = self.approved_tool(&tool.name);
                let title = |version| format!("{}, version {version}", tool.name);
                facts.code.extend(own.map(|own| CodePiece { title: title(own.version), text: own.code.clone() }));
            }
            _ => {}
        }
        FactsLookup::Complete(facts)
    }

    /// Checks each new call of a turn: it's ready, it waits for the user, or it has already failed.
    pub(super) fn check_new_calls(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        (tools, record): (&[ToolSpec], &mut RunRecord),
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        // If some calls are already pending, only newer ones are checked.
        let new = |pending: &&PendingCall| pending.phase == CallPhase::Ready && !pending.is_checked;
        let new: Vec<ToolCall> = run.calls.iter().filter(new).map(|pending| pending.call.clone()).collect();
        for call in new {
            let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                let words = format!("there is no tool {}; there are {}", call.name, names.join(", "));
                self.answer_call(turn, id, &call.id, failed_outcome(words), record);
                continue;
            };
            if let Err(why) = tool_call_parser::check_arguments(tool, &call.arguments) {
                self.answer_call(turn, id, &call.id, failed_outcome(why.to_string()), record);
                continue;
            }
            let own = self.runs.get(&id).map(|run| run.about.volume);
            if let Some(refused) = own.and_then(|own| files.volumes.refuse_call(own, &tool.name, &call.arguments)) {
                self.answer_call(turn, id, &call.id, refused, record);
                continue;
            }
            match self.look_up_facts(files, id, tool, &call.arguments) {
                FactsLookup::Complete(facts) => {
                    self.check_call(turn, &files.volumes, (id, &call.id), tool, facts, None, record);
                }
                FactsLookup::NeedsNote(note) => {
                    if let Some(outcome) = self.read_note_for_check(turn, files, sync, (id, &call.id), note, None) {
                        self.answer_call(turn, id, &call.id, outcome, record);
                    }
                }
            }
        }
        self.tick_runs(turn, files, sync, workspace);
    }

    /// Loads a note whose code a call would run, so that the call can be checked.
    fn read_note_for_check(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        (id, call): (DocId, &str),
        note: DocId,
        again: Option<String>,
    ) -> Option<ToolOutcome> {
        let run = self.runs.get_mut(&id)?;
        let pending = run.calls.iter_mut().find(|pending| pending.call.id == call)?;
        pending.phase = CallPhase::ReadingFacts;
        let chore = ToolNoteJob {
            run: id,
            call: call.to_owned(),
            note,
            what: ToolNoteJobKind::ReadForCheck { again },
            begun: false,
        };
        self.begin_tool_note_job(turn, files, sync, chore)
    }

    /// Checks a call again, because something it depends on has become known or has changed since it was allowed.
    pub(super) fn recheck_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, call): (DocId, &str),
        (ips, why): (&[String], Option<String>),
    ) {
        let tools = self.all_tools();
        let Some(run) = self.runs.get(&id).filter(|run| run.about.ending.is_none()) else { return };
        let Some(pending) = run.calls.iter().find(|pending| pending.call.id == call) else { return };
        let (name, arguments) = (pending.call.name.clone(), pending.call.arguments.clone());
        let count = run.approvals.iter().filter(|approval| approval.call_id() == call).count();
        let mut record = RunRecord::default();
        let tool = tools.iter().find(|tool| tool.name == name);
        let known = tool.map(|tool| self.look_up_facts(files, id, tool, &arguments));
        match (tool, known) {
            (Some(tool), Some(FactsLookup::Complete(facts))) if count < MAX_POLICY_CHECKS_PER_CALL => {
                let ips = ips.iter().filter_map(|ip| ip.parse().ok()).collect();
                self.check_call(turn, &files.volumes, (id, call), tool, CallFacts { ips, ..facts }, why, &mut record);
            }
            (Some(_), Some(FactsLookup::NeedsNote(note))) if count < MAX_POLICY_CHECKS_PER_CALL => {
                let Some(outcome) =
                    self.read_note_for_check(turn, files, sync, (id, call), note, Some(why.unwrap_or_default()))
                else {
                    return;
                };
                self.answer_call(turn, id, call, outcome, &mut record);
            }
            (Some(_), _) => {
                let words = format!("{name} led somewhere else {MAX_POLICY_CHECKS_PER_CALL} times, which is too often");
                self.answer_call(turn, id, call, failed_outcome(words), &mut record);
            }
            (None, _) => {
                let words = format!("{name} no longer exists");
                self.answer_call(turn, id, call, failed_outcome(words), &mut record);
            }
        }
        self.tick_runs(turn, files, sync, workspace);
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Checks a call with all its facts. `again`: why it's checked again.
    #[allow(clippy::too_many_arguments, reason = "a call, what it is about, and where it is kept")]
    pub(super) fn check_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        volumes: &VolumesState,
        (id, call): (DocId, &str),
        tool: &ToolSpec,
        facts: CallFacts,
        again: Option<String>,
        record: &mut RunRecord,
    ) {
        let mut policy = self.policy_of(id);
        let scheduled = matches!(self.root_origin(id), Some(RunOrigin::Schedule { .. } | RunOrigin::Device));
        let Some(run) = self.runs.get_mut(&id) else { return };
        let volume = run.about.volume;
        volumes.extend_rules_to_fork(&mut policy, volume);
        let patience = match run.about.origin {
            // No user is present, so the approval waits until one is.
            RunOrigin::Schedule { .. } | RunOrigin::Device => SCHEDULED_APPROVAL_TIMEOUT_MS,
            _ if scheduled => SCHEDULED_APPROVAL_TIMEOUT_MS,
            RunOrigin::User | RunOrigin::Agent { .. } => i64::try_from(policy.timeout).unwrap_or(300) * 1_000,
        };
        let count = run.approvals.iter().filter(|approval| approval.call_id() == call).count();
        let Some(pending) = run.calls.iter_mut().find(|pending| pending.call.id == call) else { return };
        let arguments = pending.call.arguments.clone();
        let asks = policy::each_time_reason(&tool.name);
        let verdict = policy.decide(tool, &arguments, &facts, volume, id);
        // Calls of a replay are checked like those of a model: a trace grants nothing that policy wouldn't.
        let word = if asks.is_some() && verdict.word == Permission::Allow { Permission::Ask } else { verdict.word };
        let asked = turn.now.0;
        let reason = match asks {
            Some(why) if word == Permission::Ask => why.to_owned(),
            Some(_) | None => verdict.why.clone(),
        };
        let reason = match again.filter(|why| !why.is_empty()) {
            Some(why) => format!("{why}; {reason}"),
            None => reason,
        };
        // A call that is allowed without asking isn't shown anywhere, so its code isn't kept.
        let code = if word == Permission::Ask { facts.code.clone() } else { Vec::new() };
        let lasting = asks.is_none() && word == Permission::Ask;
        let mut approval = RunApproval {
            id: if count == 0 { call.to_owned() } else { format!("{call}~{}", count + 1) },
            step: pending.step,
            tool: tool.name.clone(),
            what: describe_call(tool, &arguments),
            reason,
            asked,
            expires: asked.saturating_add(patience),
            code,
            definition: tool.definition_hash(),
            addresses: facts.ips.iter().map(ToString::to_string).collect(),
            reach: if lasting { ToolPolicy::describe_reach(tool, &arguments, &facts) } else { String::new() },
            arguments,
            decision: None,
        };
        (pending.facts, pending.is_checked) = (facts, true);
        // Every decision is recorded, even if the user wasn't asked.
        let decided = |allowed| DecisionRecord {
            allowed,
            scope: DecisionScope::Once,
            by: DecisionMaker::Policy,
            at: asked,
            arguments: None,
            comment: None,
        };
        let mut denied = None;
        match word {
            Permission::Deny => {
                approval.decision = Some(decided(false));
                denied = Some(failed_outcome(format!("This is not allowed: {}. Do not try it again.", verdict.why)));
            }
            Permission::Allow => {
                approval.decision = Some(decided(true));
                pending.phase = CallPhase::Ready;
            }
            Permission::Ask => pending.phase = CallPhase::AwaitingApproval,
        }
        let waits = (word == Permission::Ask).then(|| (approval.id.clone(), approval.what.clone()));
        record.approvals.push(approval.id.clone());
        run.approvals.push(approval);
        if let Some(outcome) = denied {
            self.answer_call(turn, id, call, outcome, record);
        }
        if let Some((approval, what)) = waits {
            turn.notify(Notice::Asked { run: id, approval: approval.clone(), what });
            self.report_approval(turn, id, &approval);
        }
    }

    /// Returns why a call is no longer what was allowed, because its tool or its code has changed; `None` if it still
    /// is.
    pub(super) fn changed_since_approval(&self, files: &FilesState, id: DocId, call: &str) -> Option<String> {
        let run = self.runs.get(&id)?;
        let pending = run.calls.iter().find(|pending| pending.call.id == call)?;
        let approval = run.approvals.iter().rev().find(|approval| approval.call_id() == call)?;
        let tools = self.all_tools();
        let tool = tools.iter().find(|tool| tool.name == pending.call.name)?;
        if approval.definition != tool.definition_hash() {
            return Some("the tool has changed since it was allowed".to_owned());
        }
        match self.look_up_facts(files, id, tool, &pending.call.arguments) {
            FactsLookup::Complete(facts) if !facts.code_hashes().is_subset(&pending.facts.code_hashes()) => {
                Some("its code has changed since it was allowed".to_owned())
            }
            // Code of a note that isn't open is compared once the note is open.
            FactsLookup::Complete(_) | FactsLookup::NeedsNote(_) => None,
        }
    }

    /// Binds the cells that a call has queued to the allowed code; they don't run with any other.
    pub(super) fn bind_cells(&self, notes: &mut NotesState, id: DocId, call: &str, note: DocId) {
        let Some(run) = self.runs.get(&id) else { return };
        let Some(pending) = run.calls.iter().find(|pending| pending.call.id == call) else { return };
        let (allowed, name) = (pending.facts.code_hashes(), pending.call.name.clone());
        let arguments = pending.call.arguments.clone();
        let Some(note) = notes.open.get_mut(&note) else { return };
        let cells = cells_to_run(note, &name, &arguments);
        let hash =
            |note: &Note, cell: BlockId| note.cell_code(cell).map(|code| BlobHash::of(code.as_bytes()).to_string());
        for cell in cells {
            if let Some(hash) = hash(note, cell).filter(|hash| allowed.contains(hash)) {
                note.bound.insert(cell, hash);
            }
        }
    }

    /// Asks for approval of something that a tool found on the way and can't do without it.
    pub(super) fn request_more_access(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, call): (DocId, &str),
        asks: AccessRequest,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(pending) = run.calls.iter_mut().find(|pending| pending.call.id == call) else { return };
        let before = string_argument(&pending.call.arguments, "url").to_owned();
        let (url, ips, why) = match asks {
            AccessRequest::PrivateAddress { url, ips } => {
                let found: Vec<String> = ips.iter().filter_map(|ip| Some(describe_ip(ip.parse().ok()?))).collect();
                let host = agent::web_address::WebAddress::read(&url).map(|address| address.site.host);
                let why = format!("{} means the {}", host.unwrap_or_default(), found.join(", the "));
                (url, ips, why)
            }
            AccessRequest::Redirect { url } => (url, Vec::new(), format!("{before} redirects there")),
        };
        pending.call.arguments.insert("url".to_owned(), Value::String(url));
        self.recheck_call(turn, files, sync, workspace, (id, call), (&ips, Some(why)));
    }
}
