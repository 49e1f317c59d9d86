//! Execution of tool calls. The session itself carries out calls that concern notes, as if the user had acted; others
//! are jobs for the host. Each call ends with a result, a step and a message.

use super::call_volumes::CallVolume;
use super::external_agents;
use crate::effect::Effect;
use crate::session::apply_context::{ApplyContext, CommandError};
use crate::session::state::FilesState;
use crate::session::state::agent_run::{AgentRun, CallPhase, PendingCall, new_step};
use crate::session::state::runs::{RunRecord, RunsState, ToolNoteJob, ToolNoteJobKind};
use crate::session::state::sync::SyncState;
use crate::session::state::workspace::WorkspaceState;
use agent::component_file::ComponentFile;
use agent::config::{SandboxLimits, SandboxPaths};
use agent::git_calls::{GitCallJob, git_call_job};
use agent::policy::CallFacts;
use agent::sampling::MAX_SAMPLING_BYTES;
use agent::script_tool::{ScriptToolCall, detect_language};
use agent::secrets::mask_guard::mask_write_refusal;
use agent::server_request::is_server_request;
use agent::tool_catalog::BuiltInTool;
use agent::tool_file;
use agent::tool_job::{GitJob, MAX_TOOL_RESULT_BYTES, ToolJob, ToolOutcome, ToolPackages, WebAccess};
use agent::tool_lines::{line_range, requested_lines};
use agent::tool_outcomes::{
    DEFAULT_TOOL_TIMEOUT_SECS, failed_outcome, number_argument, string_argument, successful_outcome,
};
use agent::tool_program::{missing_argument_sentence, tool_program};
use agent::tool_spec::{ToolRisk, ToolSpec};
use agent::web_address::WebAddress;
use commands::UnknownCommand;
use serde_json::{Map, Value};
use std::path::PathBuf;
use store::{
    ChangeKind, DocId, ExecutionStep, FileKind, MessageId, MessageRole, SessionMessage, StepId, StepKind, StepTool,
    TodoItem, TodoStatus, ToolCall, ToolFileInfo, ToolGrants, ToolLanguage, UserTool,
};

/// Maximum length of a text that a tool writes, in bytes.
const MAX_WRITTEN_TEXT_BYTES: usize = 4 << 20;
/// Maximum size in bytes of an open note that is masked as a whole before lines of it are read.
const MAX_FULLY_MASKED_NOTE_BYTES: usize = 1 << 20;

impl AgentRun {
    /// Adds tool calls requested by a model or a phase. Returns their steps, which all follow from `parents`.
    pub(super) fn open_tool_calls(
        &mut self,
        turn: &mut ApplyContext<'_>,
        asked: Vec<ToolCall>,
        parents: &[StepId],
        tools: &[ToolSpec],
    ) -> Vec<ExecutionStep> {
        let mut steps = Vec::with_capacity(asked.len());
        for call in asked {
            let kind = StepKind::ToolCall {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                params: call.arguments.clone(),
            };
            let mut made = new_step(turn, parents.to_vec(), kind);
            let tool = tools.iter().find(|tool| tool.name == call.name);
            made.tool = tool.map(|tool| Box::new(tool.step_tool()));
            let changes = tool.is_some_and(|tool| tool.risk > ToolRisk::None);
            self.calls.push(PendingCall { changes, ..PendingCall::new(call, made.id) });
            steps.push(made);
        }
        steps
    }
}

impl RunsState {
    /// Starts the calls that are ready: read-only calls at once, calls that change something one after another.
    pub(super) fn start_tools(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
    ) {
        if self.begin_free_tasks(turn, files, sync, workspace, id) {
            return; // it goes on once that is on disk
        }
        let parallel = self.setup().map_or(4, |setup| setup.config.runtime.profile.max_parallel_tools());
        loop {
            let Some(run) = self.runs.get_mut(&id).filter(|run| run.about.ending.is_none()) else { return };
            if run.calls.iter().all(|pending| pending.phase == CallPhase::Done) {
                // An immediate result is being written to disk; the run continues once it's there.
                if self.resume_after.contains_key(&id) {
                    return;
                }
                run.calls.clear();
                return self.call_model(turn, files, sync, workspace, id);
            }
            let running = |phase: &CallPhase| matches!(phase, CallPhase::Running { .. });
            // A server's tool does nothing while it waits for a model or the user.
            let at_work = |pending: &&PendingCall| running(&pending.phase) && !run.waits_for_reply(&pending.call.id);
            let busy = run.calls.iter().filter(at_work).count();
            let mut next = None;
            for (at, pending) in run.calls.iter().enumerate() {
                let before = &run.calls[..at];
                let free = if pending.changes {
                    before.iter().all(|other| other.phase == CallPhase::Done)
                } else {
                    before.iter().all(|other| other.phase == CallPhase::Done || !other.changes)
                };
                if pending.phase == CallPhase::Ready && free {
                    next = Some(at);
                    break;
                }
            }
            let Some(at) = next.filter(|_| busy < parallel) else { return };
            let call = run.calls[at].call.clone();
            if self.waits_for_delivery(sync, id) {
                return;
            }
            // Only what was allowed may run; if it has changed, the user is asked again.
            if let Some(why) = self.changed_since_approval(files, id, &call.id) {
                self.recheck_call(turn, files, sync, workspace, (id, &call.id), (&[], Some(why)));
                return;
            }
            let ran = self.all_tools().iter().find(|tool| tool.name == call.name).map(ToolSpec::step_tool);
            let Some(run) = self.runs.get_mut(&id) else { return };
            run.calls[at].ran = ran;
            run.calls[at].phase = CallPhase::Running { since: turn.now };
            run.revision += 1;
            self.watch_call(turn, id, &call);
            if let Some(mut outcome) = self.begin_tool_call(turn, files, sync, workspace, id, &call) {
                let own = self.runs.get(&id).map(|run| run.about.volume);
                own.into_iter().for_each(|own| files.complete_file_info(own, &call, turn.now, &mut outcome));
                if self.ask_about_masked_content(turn, files, sync, workspace, (id, &call.id), &outcome) {
                    continue;
                }
                let mut record = RunRecord::default();
                self.answer_call(turn, id, &call.id, outcome, &mut record);
                let batch = self.record_run(turn, sync, id, record);
                self.continue_run_after(batch, id);
            }
        }
    }

    /// Starts a call. Returns its outcome if it can be done at once.
    fn begin_tool_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        id: DocId,
        call: &ToolCall,
    ) -> Option<ToolOutcome> {
        let ToolCall { id: call, name: tool, arguments, .. } = call;
        let (call, tool) = (call.as_str(), tool.as_str());
        let own = self.runs.get(&id)?.about.volume;
        // The user may have changed the arguments, or the configuration, since the call was checked.
        if let Some(refused) = files.volumes.refuse_call(own, tool, arguments) {
            return Some(refused);
        }
        let volume = match files.volumes.call_volume(own, arguments) {
            Ok(CallVolume::Known(volume)) => volume,
            Ok(CallVolume::System) if agent::system_volume::reads_memory_log(tool, arguments) => {
                let volumes = &files.volumes;
                let roots = volumes.volumes().filter_map(|volume| volumes.memory_root(volume.id)).collect();
                let job = ToolJob::MemoryLog { roots, lines: requested_lines(arguments) };
                self.waiting_jobs.push((id, call.to_owned(), Box::new(job)));
                self.step_waiting_jobs(turn, files);
                return None;
            }
            Ok(CallVolume::System) => return Some(agent::system_volume::perform_call(tool, arguments)),
            Err(refused) => return Some(*refused),
        };
        let Some(root) = files.volumes.by_id.get(&volume).and_then(|volume| volume.root.clone()) else {
            return Some(failed_outcome("the project's folder is not on this device"));
        };
        if let Some(why) = mask_write_refusal(tool, arguments) {
            return Some(failed_outcome(why));
        }
        let path = string_argument(arguments, "path").trim_start_matches("./").to_owned();
        let limits = self.sandbox_limits(id);
        if let Some(refused) = sandbox_refusal(&limits.paths, tool, arguments) {
            return Some(refused);
        }
        let most = self.runs.get(&id).map_or(u64::MAX, |run| self.watchdog_limits(run).tool / 1_000);
        let seconds = number_argument(arguments, "seconds").unwrap_or(DEFAULT_TOOL_TIMEOUT_SECS).min(most.max(1));
        let chore = |note: DocId, what: ToolNoteJobKind| ToolNoteJob {
            run: id,
            call: call.to_owned(),
            note,
            what,
            begun: false,
        };
        let job = match BuiltInTool::from_name(tool) {
            Some(BuiltInTool::ReadFile) => {
                let lines = requested_lines(arguments);
                let note = files.volumes.find_file(volume, &path);
                if let Some(note) = note {
                    files.notes.record_notes_read(turn, id, &[note]);
                }
                // An open note may be ahead of its file.
                if let Some(text) = note.and_then(|note| files.notes.open_text(note)) {
                    // Mask before taking lines, because a truncated key isn't recognized.
                    let text = if text.len() <= MAX_FULLY_MASKED_NOTE_BYTES { self.mask_secrets(text) } else { text };
                    return Some(successful_outcome(line_range(&text, lines)));
                }
                ToolJob::Read { root, path: files.volumes.resolve_path(volume, &path), lines }
            }
            Some(BuiltInTool::WriteFile) => {
                let text = string_argument(arguments, "content").to_owned();
                if text.len() > MAX_WRITTEN_TEXT_BYTES {
                    return Some(failed_outcome(format!(
                        "a file that is written has at most {} MB",
                        MAX_WRITTEN_TEXT_BYTES >> 20
                    )));
                }
                match files.volumes.find_note(volume, &path) {
                    Some(note) => {
                        return self.begin_tool_note_job(turn, files, sync, chore(note, ToolNoteJobKind::Write(text)));
                    }
                    None if FileKind::from_path(&path).is_text() => {
                        let place = (volume, path.as_str());
                        return Some(self.create_note_for_call(turn, files, sync, (id, call), place, &text));
                    }
                    None => ToolJob::Replace { root, path, text, expected: None },
                }
            }
            Some(BuiltInTool::EditFile) => {
                let (old, new) = (
                    string_argument(arguments, "old_content").to_owned(),
                    string_argument(arguments, "new_content").to_owned(),
                );
                match files.volumes.find_note(volume, &path) {
                    Some(note) => {
                        let edit = chore(note, ToolNoteJobKind::Edit { old, new });
                        return self.begin_tool_note_job(turn, files, sync, edit);
                    }
                    None => ToolJob::Amend { root, path, old, new },
                }
            }
            Some(BuiltInTool::DeleteFile) => match files.volumes.find_file(volume, &path) {
                Some(file) => {
                    self.tool_note_jobs.push(chore(file, ToolNoteJobKind::Delete));
                    return None;
                }
                None => ToolJob::Remove { root, path },
            },
            Some(BuiltInTool::RunCell) => {
                let Some(note) = files.volumes.find_note(volume, &path) else {
                    let near = files.volumes.closest_sentence(own, arguments);
                    return Some(failed_outcome(format!("There is no note {path}.{near}")));
                };
                let number = number_argument(arguments, "cell").unwrap_or(1) as usize;
                let run_cell = chore(note, ToolNoteJobKind::RunCell { number, execution: None });
                return self.begin_tool_note_job(turn, files, sync, run_cell);
            }
            Some(BuiltInTool::NoteCommand) => {
                let Some(note) = files.volumes.find_note(volume, &path) else {
                    return Some(failed_outcome(format!("there is no note {path}")));
                };
                let command = match string_argument(arguments, "name").parse() {
                    Ok(command) => command,
                    Err(UnknownCommand) => return Some(failed_outcome(UnknownCommand.to_string())),
                };
                return self.begin_tool_note_job(turn, files, sync, chore(note, ToolNoteJobKind::RunCommand(command)));
            }
            Some(BuiltInTool::AgentPermission) => return Some(successful_outcome("Allowed.")),
            Some(BuiltInTool::McpSampling) => {
                return self.begin_sampling(turn, &files.volumes, workspace, (id, call), arguments);
            }
            Some(BuiltInTool::McpForm) => return self.answer_form((id, call), arguments),
            Some(BuiltInTool::AgentReport) => match agent::program_reports::report_job(id, root, arguments) {
                Some(job) => job,
                None => return Some(agent::program_reports::report_outcome(arguments)),
            },
            Some(BuiltInTool::Plan) => return Some(self.accept_plan(turn, sync, id, arguments)),
            Some(BuiltInTool::Assign) => return Some(self.accept_assignments(id, arguments)),
            Some(BuiltInTool::AskAgent) => {
                return self.delegate(turn, files, sync, workspace, (id, call), arguments);
            }
            Some(BuiltInTool::RunAgent) => match self.python_job(id, root, arguments) {
                Some(job) => job,
                None => return Some(failed_outcome("the agent's file has to be read again; ask once more")),
            },
            Some(BuiltInTool::MessageAgent) => return Some(self.send_message(id, arguments)),
            Some(BuiltInTool::TodoWrite) => return Some(self.write_todos(turn, sync, id, arguments)),
            Some(BuiltInTool::ListFiles) => {
                ToolJob::List { root, path: string_argument(arguments, "directory").trim_matches('/').to_owned() }
            }
            Some(BuiltInTool::Search) => ToolJob::Search {
                query: string_argument(arguments, "query").to_owned(),
                limit: number_argument(arguments, "limit").unwrap_or(8) as usize,
                fork: files.volumes.fork_name(volume),
            },
            Some(BuiltInTool::Shell) => {
                let command = string_argument(arguments, "command").to_owned();
                let folder = string_argument(arguments, "workdir").trim_start_matches("./").trim_end_matches('/');
                let path = if folder == "." { String::new() } else { folder.to_owned() };
                ToolJob::Shell { root, path, command, seconds, network: false }
            }
            Some(BuiltInTool::RunPython) => {
                let (code, grants) = (string_argument(arguments, "code").to_owned(), ToolGrants::default());
                ToolJob::Python { root, code, seconds, web: None, grants, packages: None }
            }
            Some(BuiltInTool::GitStatus) => ToolJob::Git { root, what: GitJob::Status },
            Some(BuiltInTool::GitDiff) => ToolJob::Git { root, what: GitJob::diff_of(path, arguments) },
            Some(BuiltInTool::GitLog) => ToolJob::Git { root, what: GitJob::log_of(path, arguments) },
            Some(BuiltInTool::GitBlame) => ToolJob::Git { root, what: GitJob::Blame { path } },
            Some(git) if git.is_for_git() => match git_call_job(git, arguments) {
                Some(GitCallJob::InProcess(what)) => ToolJob::Git { root, what },
                Some(GitCallJob::ByProgram(what)) => ToolJob::GitProgram { root, what, web: self.web_access(id) },
                None => return Some(failed_outcome(format!("{tool} cannot be used yet"))),
            },
            Some(opens) if opens == BuiltInTool::FetchUrl || opens.is_for_browser() => {
                self.page_job((id, call), opens, tool, arguments)?
            }
            Some(container) if container.is_for_containers() => {
                let socket = self.setup().and_then(|setup| setup.config.containers.socket.clone());
                let (tool, arguments, restricted) = (tool.to_owned(), arguments.clone(), self.policy_of(id).restricted);
                ToolJob::Container { run: id, project: own, root, tool, arguments, socket, restricted }
            }
            Some(BuiltInTool::CreateTool) => return Some(self.create_tool(turn, sync, workspace, arguments)),
            Some(BuiltInTool::ProposeView) => {
                let Some(note) = files.volumes.find_note(volume, &path) else {
                    return Some(failed_outcome(format!("there is no note {path}")));
                };
                let view = arguments.get("view").cloned().unwrap_or_default();
                let title = string_argument(arguments, "title").replace(['\n', '`'], " ");
                let json = serde_json::to_string_pretty(&serde_json::json!({"title": title, "view": view}));
                let json = json.unwrap_or_default();
                if let Err(why) = agent::generated_view::AgentView::parse(&json) {
                    return Some(failed_outcome(format!(
                        "The view does not hold: {why}. {}",
                        agent::tool_catalog::VIEW_GUIDE
                    )));
                }
                let text = format!("\n```{}\n{json}\n```\n", agent::generated_view::VIEW_LANGUAGE);
                return self.begin_tool_note_job(turn, files, sync, chore(note, ToolNoteJobKind::Append(text)));
            }
            Some(BuiltInTool::ProposeComponent) => {
                let component = match ComponentFile::from_arguments(&Value::Object(arguments.clone())) {
                    Ok(component) => component,
                    Err(why) => return Some(failed_outcome(why.to_string())),
                };
                let path = component.path();
                if let Some(why) = limits.paths.refusal(&path, true) {
                    return Some(failed_outcome(format!("{path} is closed: {why}. Do not try it again.")));
                }
                ToolJob::Replace { root, path, text: component.to_text(), expected: None }
            }
            _ => match self.approved_tool(tool) {
                Some(own) => match self.own_tool_job(id, root, own, arguments, seconds) {
                    Ok(job) => job,
                    Err(refused) => return Some(*refused),
                },
                None => match self.setup()?.servers.iter().find(|(_, _, spec)| spec.name == tool) {
                    Some((server, name, spec)) => {
                        let (server, tool, arguments) = (server.clone(), name.clone(), arguments.clone());
                        let definition = spec.definition_hash().unwrap_or_default();
                        ToolJob::Mcp { run: id, root, call: call.to_owned(), server, tool, arguments, definition }
                    }
                    None => return Some(failed_outcome(format!("{tool} cannot be used yet"))),
                },
            },
        };
        let job = match limits == SandboxLimits::default() {
            true => job,
            false => ToolJob::Limited { limits: Box::new(limits), job: Box::new(job) },
        };
        self.waiting_jobs.push((id, call.to_owned(), Box::new(job)));
        self.step_waiting_jobs(turn, files);
        None
    }

    /// Returns what a run may reach in the network.
    fn web_access(&self, id: DocId) -> WebAccess {
        let policy = self.policy_of(id);
        WebAccess { hosts: policy.hosts, restricted: policy.restricted }
    }

    /// Returns the job of a call that opens a page; `None` if the call is gone.
    fn page_job(
        &self,
        (id, call): (DocId, &str),
        tool: BuiltInTool,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Option<ToolJob> {
        let pending = self.runs.get(&id)?.calls.iter().find(|pending| pending.call.id == call)?;
        let url = string_argument(arguments, "url").to_owned();
        let (inside, web) = (allowed_private_addresses(&url, &pending.facts), self.web_access(id));
        if tool == BuiltInTool::FetchUrl {
            return Some(ToolJob::Fetch { url, hosts: web.hosts, inside });
        }
        let program = self.setup().and_then(|setup| setup.config.browser.program.clone()).map(PathBuf::from);
        let (tool, arguments) = (name.to_owned(), arguments.clone());
        Some(ToolJob::Browser { run: id, tool, arguments, inside, web, program })
    }

    /// Returns the job of a call of the user's own tool, or the outcome that says why it can't run.
    fn own_tool_job(
        &self,
        id: DocId,
        root: PathBuf,
        tool: &UserTool,
        arguments: &Map<String, Value>,
        seconds: u64,
    ) -> Result<ToolJob, Box<ToolOutcome>> {
        let (web, grants) = (tool.network.then(|| self.web_access(id)), tool.grants);
        if tool.language == ToolLanguage::JavaScript {
            let call = Box::new(ScriptToolCall::new(tool, arguments));
            return Ok(ToolJob::JavaScript { root, call, seconds, web, grants });
        }
        if let Some(why) = missing_argument_sentence(tool, arguments) {
            return Err(Box::new(failed_outcome(why)));
        }
        let packages = ToolPackages::of(tool).map_err(|why| Box::new(failed_outcome(why.to_string())))?;
        let code = tool_program(tool, arguments);
        Ok(ToolJob::Python { root, code, seconds, web, grants, packages: packages.map(Box::new) })
    }

    /// Starts the jobs that find what their runs wrote in notes on disk.
    pub(in crate::session) fn step_waiting_jobs(&mut self, turn: &mut ApplyContext<'_>, files: &FilesState) {
        for (run, call, job) in std::mem::take(&mut self.waiting_jobs) {
            match self.runs.get(&run) {
                Some(at_work)
                    if !at_work.changes.iter().all(|change| files.is_file_current(change.volume, &change.path)) =>
                {
                    self.waiting_jobs.push((run, call, job));
                }
                _ => turn.effects.push(Effect::RunTool { run, call, job }),
            }
        }
    }

    /// Returns the limits of the sandbox for a run: those of the configuration, tightened by its agent's.
    fn sandbox_limits(&self, id: DocId) -> SandboxLimits {
        let Some((run, setup)) = self.runs.get(&id).zip(self.setup()) else { return SandboxLimits::default() };
        let agents = &setup.config.agents;
        let choice = agents.specialists.get(&run.about.agent).unwrap_or(&agents.lead);
        SandboxLimits::combine(&[&setup.config.sandbox, &choice.sandbox, &self.definition_of(run).sandbox])
    }

    /// Creates a note for a tool call.
    fn create_note_for_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        (id, call): (DocId, &str),
        (volume, path): (DocId, &str),
        text: &str,
    ) -> ToolOutcome {
        if let Err(CommandError(why)) = files.new_note(turn, sync, volume, path, text) {
            return failed_outcome(why);
        }
        let Some(note) = files.volumes.find_file(volume, path) else { return failed_outcome("the note was not made") };
        files.notes.record_notes_read(turn, id, &[note]);
        if let Some(note) = files.notes.open.get_mut(&note) {
            note.shown = false; // it is not looked at; it closes once it is saved
            note.by_agent = true;
        }
        files.notes.end_burst(turn, note);
        self.record_note_change(turn, files, sync, (id, call), note, ChangeKind::Created { text: text.to_owned() });
        let place = files.volumes.locate_file(note).map_or(path, |(_, place)| place);
        let is_at = |one: &str| place.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut skipped = files.volumes.by_id.get(&volume).into_iter().flat_map(|volume| &volume.skipped);
        let said = match skipped.find(|one| is_at(&one.path)) {
            // The file can't replace what is there, such as a symlink, nor be behind it.
            Some(crate::event::SkippedFile { why, .. }) => format!(
                "{place} isn't written to the folder, because that name is taken: {why}. What is there stays as it \
                 is. The text is kept in the workspace only. Tell the user to rename or delete {place} in the folder; \
                 then the file is written there. Or write under another name."
            ),
            None => format!("Created {path}."),
        };
        let (now, info) = (Some(turn.now.0), ToolFileInfo::new(place, text.len() as u64));
        ToolOutcome {
            files: vec![ToolFileInfo { created: now, modified: now, ..info }],
            ..successful_outcome(format!("{said}\n{}", text::diff::unified_diff(path, None, Some(text))))
        }
    }

    /// Proposes a tool written by the model; it waits for the user's approval.
    fn create_tool(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &SyncState,
        workspace: &WorkspaceState,
        arguments: &Map<String, Value>,
    ) -> ToolOutcome {
        let words: Option<Vec<String>> = arguments
            .get("permissions")
            .and_then(Value::as_array)
            .map(|words| words.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect());
        let (network, grants) = match words.as_deref().map(tool_file::parse_permissions) {
            Some(Ok(granted)) => granted,
            Some(Err(word)) => return failed_outcome(format!("there is no permission {word}")),
            None => (false, ToolGrants::default()),
        };
        let tool = UserTool {
            name: string_argument(arguments, "name").to_owned(),
            description: string_argument(arguments, "description").to_owned(),
            parameters: arguments.get("parameters").cloned().unwrap_or_else(|| Value::Object(Map::new())),
            language: detect_language(string_argument(arguments, "code")),
            code: string_argument(arguments, "code").to_owned(),
            network: arguments.get("network").and_then(Value::as_bool).unwrap_or(false) || network,
            grants,
            author: "an agent".to_owned(),
            ..UserTool::default()
        };
        let name = tool.name.clone();
        match self.propose_tool(turn, sync, workspace, tool) {
            Ok(()) => successful_outcome(format!(
                "{name} waits for the user, who reads it and may approve it. Go on without it."
            )),
            Err(CommandError(why)) => failed_outcome(why),
        }
    }

    /// Handles the end of a job or of work on a note.
    pub(in crate::session) fn on_tool_done(
        &mut self,
        turn: &mut ApplyContext<'_>,
        files: &mut FilesState,
        sync: &mut SyncState,
        workspace: &WorkspaceState,
        (id, call): (DocId, &str),
        outcome: ToolOutcome,
    ) {
        let Some(run) = self.runs.get(&id) else { return };
        if run.about.ending.is_some() {
            return self.on_restored(turn, sync, id, call, &outcome);
        }
        let waits = |pending: &&crate::session::state::agent_run::PendingCall| {
            let is_withdrawn = is_server_request(&pending.call.name) && pending.phase != CallPhase::Done;
            pending.call.id == call && (is_withdrawn || matches!(pending.phase, CallPhase::Running { .. }))
        };
        if run.calls.iter().find(waits).is_none() {
            return self.on_restored(turn, sync, id, call, &outcome);
        }
        let mut outcome = outcome;
        if let Some(asks) = outcome.asks.take() {
            return self.request_more_access(turn, files, sync, workspace, (id, call), asks);
        }
        if outcome.outdated {
            self.request_setup(turn, workspace); // what its server offers now
        }
        let Some(run) = self.runs.get(&id) else { return };
        let volume = run.about.volume;
        let made = run.calls.iter().find(|pending| pending.call.id == call).map(|pending| &pending.call);
        made.into_iter().for_each(|made| files.complete_file_info(volume, made, turn.now, &mut outcome));
        let arguments = made.map(|made| &made.arguments);
        if outcome.is_missing
            && let Some(arguments) = arguments
        {
            outcome.text = format!("{}.{}", outcome.text, files.volumes.closest_sentence(volume, arguments));
        }
        let volume = match arguments.map(|arguments| files.volumes.call_volume(volume, arguments)) {
            Some(Ok(CallVolume::Known(volume))) => volume,
            Some(Ok(CallVolume::System) | Err(_)) | None => volume,
        };
        if self.ask_about_masked_content(turn, files, sync, workspace, (id, call), &outcome) {
            return;
        }
        let since = self.runs.get(&id).and_then(|run| {
            run.calls.iter().filter(|pending| pending.call.id == call).find_map(|pending| match pending.phase {
                CallPhase::Running { since } => Some(since),
                _ => None,
            })
        });
        for changed in &outcome.changed {
            let note = files.volumes.find_file(volume, &changed.path).filter(|file| files.volumes.is_note(*file));
            let open = note.filter(|_| changed.hunks.is_empty()).and_then(|note| files.notes.open.get(&note));
            // What the user types meanwhile is no change of the run.
            if open.zip(since).is_some_and(|(note, since)| note.file.is_own_save(changed.after, since)) {
                continue;
            }
            let (file, what) = changed.kind(note);
            self.record_change(turn, sync, id, call, (volume, file, changed.path.clone()), what);
        }
        self.hold_ordered_changes(id, call, std::mem::take(&mut outcome.ordered));
        let mut record = RunRecord::default();
        self.end_server_requests_of(turn, id, call, &mut record);
        self.answer_call(turn, id, call, outcome, &mut record);
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
    }

    /// Records the result of a call as a step and a message for the model.
    pub(super) fn answer_call(
        &mut self,
        turn: &mut ApplyContext<'_>,
        id: DocId,
        call: &str,
        outcome: ToolOutcome,
        record: &mut RunRecord,
    ) {
        // The user's own answers aren't masked: the user decides what to disclose.
        let asked = |pending: &crate::session::state::agent_run::PendingCall| {
            pending.call.id == call && BuiltInTool::AskUser.is_named(&pending.call.name)
        };
        let by_user = self.runs.get(&id).is_some_and(|run| run.calls.iter().any(asked));
        let own = (!by_user).then(|| self.own_keys());
        let is_program = self.runs.get(&id).is_some_and(|run| self.is_program_run(run));
        let max = if is_program { external_agents::MAX_PROGRAM_RESULT_BYTES } else { MAX_TOOL_RESULT_BYTES };
        let is_asked = |run: &AgentRun| run.server_requests.iter().any(|asked| asked.call == call);
        let max = if self.runs.get(&id).is_some_and(is_asked) { MAX_SAMPLING_BYTES } else { max };
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(pending) = run.calls.iter_mut().find(|pending| pending.call.id == call) else { return };
        let since = match pending.phase {
            CallPhase::Running { since } => Some(since),
            CallPhase::ReadingFacts | CallPhase::AwaitingApproval | CallPhase::Ready | CallPhase::Done => None,
        };
        pending.phase = CallPhase::Done;
        let (name, parent) = (pending.call.name.clone(), pending.step);
        let ran = pending.ran.take().filter(|_| since.is_some()).map(|ran| {
            let changed = (pending.requested != pending.call.arguments).then(|| pending.call.arguments.clone());
            Box::new(StepTool { arguments: changed, execution: outcome.execution, ..ran })
        });
        let mut text = outcome.text;
        // More is checked for secrets than is shown.
        let cut = text.floor_char_boundary(max * 2);
        let longer = cut < text.len();
        text.truncate(cut);
        if let Some(own) = own {
            own.mask_in_place(&mut text);
        }
        if text.len() > max || longer {
            let cut = text.floor_char_boundary(max);
            text.truncate(cut);
            text.push_str("\n[The rest was left out.]");
        }
        let (result, error) = match outcome.success {
            true => (Some(Value::String(text.clone())), None),
            false => (None, Some(text.clone())),
        };
        let kind = StepKind::ToolResult {
            tool_call_id: call.to_owned(),
            success: outcome.success,
            result,
            error: error.clone(),
            whole: outcome.whole.clone(),
            attached: outcome.attached,
            files: outcome.files,
        };
        let mut made = new_step(turn, vec![parent], kind);
        made.tool = ran;
        made.duration = since.map(|since| u64::try_from(turn.now.ms_since(since)).unwrap_or(0));
        if is_server_request(&name) {
            // The model of the run has not asked for this.
            record.approvals.extend(run.end_server_request(turn, call, error.as_deref(), &mut made));
            record.steps.push(made);
            return;
        }
        record.steps.push(made);
        let head = record.messages.last().map_or(run.about.head, |message| message.id);
        let content = if outcome.success { text } else { format!("Error: {text}") };
        record.messages.push(SessionMessage {
            parents: vec![head],
            run: Some(id),
            tool_call_id: Some(call.to_owned()),
            tool_name: Some(name),
            error,
            whole: outcome.whole,
            ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::Tool, content, turn.now.0)
        });
    }

    /// Replaces the run's todos with the model's list. Todos that the user has completed stay completed.
    fn write_todos(
        &mut self,
        turn: &mut ApplyContext<'_>,
        sync: &mut SyncState,
        id: DocId,
        arguments: &Map<String, Value>,
    ) -> ToolOutcome {
        let Some(run) = self.runs.get(&id) else { return failed_outcome("the run is not open") };
        let mut todos: Vec<TodoItem> = Vec::new();
        for (at, item) in arguments.get("todos").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let content = item.get("content").and_then(Value::as_str).unwrap_or("").trim().to_owned();
            let given = item.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
            let same = |todo: &&TodoItem| Some(&todo.id) == given.as_ref() || todo.content == content;
            let known = run.todos.iter().find(same);
            let mut name = known.map(|todo| todo.id.clone()).or(given).unwrap_or_else(|| format!("{}", at + 1));
            while todos.iter().any(|todo| todo.id == name) {
                name.push('x');
            }
            let status = item.get("status").cloned().and_then(|word| serde_json::from_value(word).ok());
            let status = match known.map(|todo| todo.status) {
                Some(TodoStatus::Completed) => TodoStatus::Completed,
                known => status.or(known).unwrap_or_default(),
            };
            let words = ["lowest", "low", "normal", "medium", "high", "highest"];
            let priority = item.get("priority").and_then(Value::as_str);
            let priority = priority.and_then(|word| words.iter().position(|known| *known == word));
            todos.push(TodoItem {
                id: name,
                content,
                status,
                priority: priority
                    .and_then(|at| u8::try_from(at).ok())
                    .or(known.map(|todo| todo.priority))
                    .unwrap_or(2),
                due: item.get("due").and_then(Value::as_str).map(ToOwned::to_owned),
                repeat: known.and_then(|todo| todo.repeat.clone()),
            });
        }
        let open = todos.iter().filter(|todo| todo.status != TodoStatus::Completed).count();
        let words = format!("{} todos, {open} of them open.", todos.len());
        let parents = run.last_step();
        let made = new_step(turn, parents, StepKind::Todo { todos: todos.clone() });
        self.record_run(turn, sync, id, RunRecord { steps: vec![made], todos: Some(todos), ..RunRecord::default() });
        successful_outcome(words)
    }
}

/// Returns the refusal of a call whose paths the sandbox hides, or doesn't let it change.
fn sandbox_refusal(paths: &SandboxPaths, tool: &str, arguments: &Map<String, Value>) -> Option<ToolOutcome> {
    let writes = matches!(
        BuiltInTool::from_name(tool),
        Some(
            BuiltInTool::WriteFile
                | BuiltInTool::EditFile
                | BuiltInTool::DeleteFile
                | BuiltInTool::ProposeView
                | BuiltInTool::GitClone
        )
    );
    BuiltInTool::from_name(tool)?;
    ["path", "directory", "workdir"].into_iter().find_map(|key| {
        let path = arguments.get(key)?.as_str()?;
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let why = paths.refusal(&parts.join("/"), writes)?;
        Some(failed_outcome(format!("{path} is closed: {why}. Do not try it again.")))
    })
}

/// Returns the addresses outside of the public internet that were allowed for a URL.
fn allowed_private_addresses(url: &str, facts: &CallFacts) -> Vec<String> {
    let mut all: Vec<String> = facts.ips.iter().map(ToString::to_string).collect();
    if let Ok(address) = WebAddress::read(url) {
        all.extend(address.ip.map(|ip| ip.to_string()));
        // `localhost` is this machine under both protocols.
        all.extend(address.ip.filter(|ip| ip.to_string() != address.site.host).map(|_| "::1".to_owned()));
    }
    all
}
