//! What an agent asks for, as actions: reading and writing files, running commands, permissions. A ledger keeps which
//! request each result answers.

use crate::agent_terminals::{AgentTerminals, EndedCommand, TextMask};
use crate::external_agent::AgentEvent;
use crate::message_queue::ActionResult;
use crate::running_command::RunningCommand;
use crate::{IncomingMessage, PeerConnection, params_error};
use agent_client_protocol_schema::MethodDispatchError;
use agent_client_protocol_schema::v1::{
    AgentNotification, AgentRequest, ContentBlock, CreateTerminalRequest, CreateTerminalResponse, Diff,
    EmbeddedResourceResource, Error, ErrorCode, KillTerminalResponse, PermissionOption, PermissionOptionKind, Plan,
    PlanEntryPriority, PlanEntryStatus, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalResponse, RequestId,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionId, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
    WriteTextFileRequest, WriteTextFileResponse,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// Maximum number of actions that wait.
const MAX_WAITING_ACTIONS: usize = 64;
/// Maximum number of calls of its own that an agent can report in a turn.
const MAX_REPORTED_CALLS: usize = 500;
/// Maximum length of a written file in bytes.
const MAX_WRITTEN_BYTES: usize = 4 << 20;
/// Maximum length of a text that only describes something, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
/// Maximum length of what permission is asked for, in bytes.
const MAX_PERMISSION_BYTES: usize = 256 << 10;
/// Maximum number of files that permission is asked for at once.
const MAX_PERMISSION_FILES: usize = 1_000;
/// Maximum length of a title in bytes.
const MAX_TITLE_BYTES: usize = 500;
/// Maximum number of entries of a plan.
const MAX_PLAN_ENTRIES: usize = 100;
/// Names of arguments that hold paths, in lower case without `_` and `-`.
const PATH_ARGUMENTS: [&str; 21] = [
    "absolutepath",
    "cwd",
    "destination",
    "directory",
    "dirpath",
    "file",
    "filename",
    "filepath",
    "filepaths",
    "files",
    "folder",
    "movepath",
    "newpath",
    "notebookpath",
    "oldpath",
    "parentdir",
    "path",
    "paths",
    "targetfile",
    "workdir",
    "workingdirectory",
];

/// An entry of an agent's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanItem {
    /// The step of the plan, in words.
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
}

/// A call of a tool of the agent's own. It happened inside the agent's program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedCall {
    /// What it did, in one line.
    pub title: String,
    /// Kind of work, such as `edit`.
    pub kind: String,
    /// Its arguments, if the agent says.
    pub input: Option<Value>,
    /// Whether it succeeded.
    pub success: bool,
    /// The call's result.
    pub text: String,
    /// Paths that it says it changed, in the project; none if it doesn't say, or if they aren't all.
    pub paths: Vec<String>,
    /// Files that it changed: path, text before, text after.
    pub diffs: Vec<(String, Option<String>, String)>,
}

/// Something that an agent wants to be done or known outside of its program.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Read a file.
    ReadFile {
        /// Path inside the folder.
        path: String,
        /// The first line, from 1.
        line: Option<u32>,
        /// Number of lines.
        limit: Option<u32>,
    },
    /// Write a file.
    WriteFile {
        /// Path inside the folder.
        path: String,
        /// The whole text.
        content: String,
    },
    /// Run a command.
    Run {
        /// A line of shell.
        command: String,
        /// Path of the folder inside the folder; empty for the folder itself.
        folder: String,
        /// What the agent and who runs the command know of each other.
        running: RunningCommand,
    },
    /// Do something inside of its own program.
    Permission {
        /// The call, in one line.
        title: String,
        /// Kind of work, such as `execute`.
        kind: String,
        /// The arguments, if the agent says.
        input: Option<Value>,
        /// What the agent says about it, such as a diff.
        details: String,
        /// Files that it names: paths in the project, also where links lead, and whole paths of what is outside.
        paths: Vec<String>,
    },
    /// Its plan has changed.
    Plan(Vec<PlanItem>),
    /// It has done something inside of its own program.
    Report(ReportedCall),
}

/// What a result answers.
enum AwaitedAnswer {
    Read(RequestId),
    Write(RequestId),
    Permission(RequestId, Vec<PermissionOption>),
    Terminal(String),
    Nothing,
}

/// The requests of an agent in one turn.
pub(crate) struct RequestLedger {
    root: PathBuf,
    id_prefix: String,
    last_id: u64,
    /// Actions that weren't passed on yet.
    pub(crate) actions: Vec<(String, AgentAction)>,
    awaited: HashMap<String, AwaitedAnswer>,
    terminals: AgentTerminals,
    /// Calls of the agent's own, by the agent's id.
    calls: HashMap<String, ToolCall>,
    reported: usize,
    /// What the turn has cost so far in US dollars, if the agent says.
    pub(crate) cost: Option<f64>,
}

fn plain_error(code: ErrorCode, why: impl Into<String>) -> Error {
    Error::new(code.into(), why)
}

fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

/// Returns the name that the protocol has for a value.
fn wire_name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Quotes a word for a shell.
fn shell_word(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns the command that a terminal runs as a line of shell. A command without arguments is a line already.
fn command_line(request: &CreateTerminalRequest) -> Result<String, Error> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let mut words = Vec::new();
    for variable in &request.env {
        if !is_name(&variable.name) || variable.name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(plain_error(ErrorCode::InvalidParams, "a variable has a name of letters, digits and _"));
        }
        words.push(format!("{}={}", variable.name, shell_word(&variable.value)));
    }
    if request.args.is_empty() {
        // Variables before a line hold only for its first command.
        let line = &request.command;
        words = if words.is_empty() {
            vec![line.clone()]
        } else {
            vec![format!("export {};", words.join(" ")), line.clone()]
        };
    } else {
        words.push(shell_word(&request.command));
        words.extend(request.args.iter().map(|word| shell_word(word)));
    }
    Ok(words.join(" "))
}

impl RequestLedger {
    pub(crate) fn new(root: PathBuf, id_prefix: String, mask: TextMask) -> RequestLedger {
        RequestLedger {
            root,
            id_prefix,
            last_id: 0,
            actions: Vec::new(),
            awaited: HashMap::new(),
            terminals: AgentTerminals::new(mask),
            calls: HashMap::new(),
            reported: 0,
            cost: None,
        }
    }

    /// Returns a path inside the folder. What is outside is refused; links are checked where the file is opened.
    fn inside(&self, path: &Path) -> Result<String, Error> {
        let outside = || plain_error(ErrorCode::InvalidParams, format!("{} is outside of the project", path.display()));
        path_inside(&self.root, path).ok_or_else(outside)
    }

    fn add(&mut self, action: AgentAction, answer: AwaitedAnswer) {
        self.last_id += 1;
        let id = format!("{}{}", self.id_prefix, self.last_id);
        self.awaited.insert(id.clone(), answer);
        self.actions.push((id, action));
    }

    /// Refuses a request that comes at the wrong time.
    pub(crate) fn refuse(&self, peer: &PeerConnection, message: &IncomingMessage) {
        if let IncomingMessage::Request { id, .. } = message {
            let early = plain_error(ErrorCode::InvalidRequest, "there is no prompt yet");
            peer.respond(id, Err::<Value, Error>(early));
        }
    }

    /// Takes a message. Returns what it says at once; what it asks for becomes an action.
    pub(crate) fn take(
        &mut self,
        peer: &PeerConnection,
        session: &SessionId,
        message: IncomingMessage,
    ) -> Vec<AgentEvent> {
        match message {
            IncomingMessage::Notification { method, params } => {
                match AgentNotification::from_method_and_params(&method, &params) {
                    Ok(AgentNotification::SessionNotification(update)) if update.session_id == *session => {
                        self.take_update(update.update)
                    }
                    // Others are about nothing that's shown, or can't be read.
                    _ => Vec::new(),
                }
            }
            IncomingMessage::Request { id, method, params } => {
                let request = AgentRequest::from_method_and_params(&method, &params);
                let done = match request {
                    Ok(request) => self.take_request(peer, session, &id, request),
                    Err(error) => Err(request_error(&error)),
                };
                if let Err(error) = done {
                    peer.respond(&id, Err::<Value, Error>(error));
                }
                Vec::new()
            }
        }
    }

    fn take_update(&mut self, update: SessionUpdate) -> Vec<AgentEvent> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => vec![AgentEvent::Text(content_text(&chunk.content))],
            SessionUpdate::AgentThoughtChunk(chunk) => vec![AgentEvent::Thought(content_text(&chunk.content))],
            SessionUpdate::Plan(plan) => {
                self.take_plan(&plan);
                Vec::new()
            }
            SessionUpdate::ToolCall(call) => {
                let id = call.tool_call_id.0.to_string();
                if self.calls.len() < MAX_REPORTED_CALLS {
                    self.calls.insert(id.clone(), call);
                    self.report_if_ended(&id);
                }
                Vec::new()
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let id = self.note_update(update);
                self.report_if_ended(&id);
                Vec::new()
            }
            SessionUpdate::UsageUpdate(usage) => {
                let dollars = usage.cost.filter(|cost| cost.currency == "USD").map(|cost| cost.amount);
                self.cost = dollars.filter(|cost| cost.is_finite() && *cost >= 0.0).or(self.cost);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn take_plan(&mut self, plan: &Plan) {
        let item = |entry: &agent_client_protocol_schema::v1::PlanEntry| PlanItem {
            content: cut(entry.content.trim(), MAX_TITLE_BYTES).to_owned(),
            status: match entry.status {
                PlanEntryStatus::InProgress => "in_progress",
                PlanEntryStatus::Completed => "completed",
                _ => "pending",
            },
            priority: match entry.priority {
                PlanEntryPriority::High => "high",
                PlanEntryPriority::Low => "low",
                _ => "medium",
            },
        };
        let items: Vec<PlanItem> = plan.entries.iter().take(MAX_PLAN_ENTRIES).map(item).collect();
        let items: Vec<PlanItem> = items.into_iter().filter(|item| !item.content.is_empty()).collect();
        // Of plans that come at the same time, only the last one counts.
        self.actions.retain(|(_, action)| !matches!(action, AgentAction::Plan(_)));
        self.add(AgentAction::Plan(items), AwaitedAnswer::Nothing);
    }

    /// Adds to a call what an update says. Returns the call's id.
    fn note_update(&mut self, update: ToolCallUpdate) -> String {
        let id = update.tool_call_id.0.to_string();
        if self.calls.contains_key(&id) || self.calls.len() < MAX_REPORTED_CALLS {
            let call = self.calls.entry(id.clone()).or_insert_with(|| ToolCall::new(id.clone(), ""));
            call.update(update.fields);
        }
        id
    }

    fn report_if_ended(&mut self, id: &str) {
        let ended = |call: &ToolCall| matches!(call.status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        if !self.calls.get(id).is_some_and(ended) || self.reported >= MAX_REPORTED_CALLS {
            return;
        }
        let Some(call) = self.calls.remove(id) else { return };
        self.reported += 1;
        let mut diffs = diffs_of(&call.content);
        diffs.truncate(MAX_WAITING_ACTIONS);
        let report = ReportedCall {
            title: call_title(&call),
            kind: wire_name(&call.kind),
            input: call.raw_input.clone().filter(|input| input.to_string().len() <= MAX_DESCRIPTION_BYTES),
            success: call.status == ToolCallStatus::Completed,
            text: call_text(&call),
            paths: self.changed_paths(&call, &diffs),
            diffs: diffs
                .iter()
                .map(|diff| {
                    let path = self.inside(&diff.path).unwrap_or_else(|_| diff.path.display().to_string());
                    let short = |text: &str| cut(text, MAX_DESCRIPTION_BYTES).to_owned();
                    (path, diff.old_text.as_deref().map(short), short(&diff.new_text))
                })
                .collect(),
        };
        self.add(AgentAction::Report(report), AwaitedAnswer::Nothing);
    }

    /// Returns the paths that a call of the agent's own says it changed; none if it may have changed others, too.
    fn changed_paths(&self, call: &ToolCall, diffs: &[Diff]) -> Vec<String> {
        if !matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            return Vec::new();
        }
        let places = call.locations.iter().map(|location| &location.path);
        let named = diffs.iter().map(|diff| &diff.path).chain(places);
        let mut paths: Vec<String> =
            named.take(MAX_WAITING_ACTIONS).filter_map(|path| self.inside(path).ok()).collect();
        // The folder itself says nothing.
        paths.retain(|path| !path.is_empty());
        paths.sort();
        paths.dedup();
        paths
    }

    fn take_request(
        &mut self,
        peer: &PeerConnection,
        session: &SessionId,
        id: &RequestId,
        request: AgentRequest,
    ) -> Result<(), Error> {
        if self.awaited.len() >= MAX_WAITING_ACTIONS {
            return Err(plain_error(ErrorCode::InternalError, "too many requests wait; wait for their answers"));
        }
        let known = |named: &SessionId| match named == session {
            true => Ok(()),
            false => Err(plain_error(ErrorCode::ResourceNotFound, "the session has another id")),
        };
        match request {
            AgentRequest::ReadTextFileRequest(ReadTextFileRequest { session_id, path, line, limit, .. }) => {
                known(&session_id)?;
                let path = self.inside(&path)?;
                self.add(AgentAction::ReadFile { path, line, limit }, AwaitedAnswer::Read(id.clone()));
            }
            AgentRequest::WriteTextFileRequest(WriteTextFileRequest { session_id, path, content, .. }) => {
                known(&session_id)?;
                if content.len() > MAX_WRITTEN_BYTES {
                    let why = format!("a file that is written has at most {} MB", MAX_WRITTEN_BYTES >> 20);
                    return Err(plain_error(ErrorCode::InvalidParams, why));
                }
                let path = self.inside(&path)?;
                self.add(AgentAction::WriteFile { path, content }, AwaitedAnswer::Write(id.clone()));
            }
            AgentRequest::RequestPermissionRequest(request) => {
                known(&request.session_id)?;
                self.take_permission(id, request)?;
            }
            AgentRequest::CreateTerminalRequest(request) => {
                known(&request.session_id)?;
                self.create_terminal(peer, id, &request)?;
            }
            AgentRequest::TerminalOutputRequest(request) => {
                known(&request.session_id)?;
                let output = self.terminals.output(&request.terminal_id.0).ok_or_else(no_terminal)?;
                peer.respond(id, Ok(output));
            }
            AgentRequest::WaitForTerminalExitRequest(request) => {
                known(&request.session_id)?;
                if !self.terminals.answer_at_end(peer, &request.terminal_id.0, id) {
                    return Err(no_terminal());
                }
            }
            AgentRequest::KillTerminalRequest(request) => {
                known(&request.session_id)?;
                if !self.terminals.kill(peer, &request.terminal_id.0) {
                    return Err(no_terminal());
                }
                peer.respond(id, Ok(KillTerminalResponse::new()));
            }
            AgentRequest::ReleaseTerminalRequest(request) => {
                known(&request.session_id)?;
                self.terminals.release(peer, &request.terminal_id.0);
                peer.respond(id, Ok(ReleaseTerminalResponse::new()));
            }
            other => {
                let why = format!("{} isn't served here", other.method());
                return Err(plain_error(ErrorCode::MethodNotFound, why));
            }
        }
        Ok(())
    }

    fn create_terminal(
        &mut self,
        peer: &PeerConnection,
        id: &RequestId,
        request: &CreateTerminalRequest,
    ) -> Result<(), Error> {
        let command = command_line(request)?;
        let folder = match &request.cwd {
            Some(cwd) => self.inside(cwd)?,
            None => String::new(),
        };
        let terminal = format!("t{}", self.last_id + 1);
        let running = self
            .terminals
            .add(&terminal, &command, request.output_byte_limit)
            .map_err(|why| plain_error(ErrorCode::InternalError, why))?;
        self.add(AgentAction::Run { command, folder, running }, AwaitedAnswer::Terminal(terminal.clone()));
        peer.respond(id, Ok(CreateTerminalResponse::new(terminal)));
        Ok(())
    }

    /// Drops commands that were ended before anything was asked about them.
    pub(crate) fn drop_killed(&mut self) {
        let is_killed =
            |action: &AgentAction| matches!(action, AgentAction::Run { running, .. } if running.is_kill_wanted());
        for (id, _) in self.actions.iter().filter(|(_, action)| is_killed(action)) {
            self.awaited.remove(id);
        }
        self.actions.retain(|(_, action)| !is_killed(action));
    }

    /// Returns whether there are terminals that requests can be about.
    pub(crate) fn has_terminals(&self) -> bool {
        !self.terminals.is_empty()
    }

    /// Lets commands continue in the background if the agent waits for other answers, too.
    pub(crate) fn make_way(&self, has_new_request: bool) {
        let is_awaited_beside = |terminal: &str| {
            self.awaited.values().any(|awaited| match awaited {
                AwaitedAnswer::Terminal(other) => other != terminal && self.terminals.is_expected(other),
                AwaitedAnswer::Read(_) | AwaitedAnswer::Write(_) | AwaitedAnswer::Permission(..) => true,
                AwaitedAnswer::Nothing => false,
            })
        };
        self.terminals.send_to_background(|terminal| has_new_request || is_awaited_beside(terminal));
    }

    /// Notices which commands have ended in the background, and reports them: what they have changed is found then.
    pub(crate) fn follow_commands(&mut self, peer: &PeerConnection) {
        for EndedCommand { line, success, text } in self.terminals.take_ends(peer) {
            let report = ReportedCall {
                title: cut(&format!("In the background: {}", line.lines().next().unwrap_or_default()), MAX_TITLE_BYTES)
                    .to_owned(),
                kind: wire_name(&ToolKind::Execute),
                input: Some(json!({"command": cut(&line, MAX_DESCRIPTION_BYTES)})),
                success,
                text,
                ..ReportedCall::default()
            };
            self.add(AgentAction::Report(report), AwaitedAnswer::Nothing);
        }
    }

    /// Ends all commands. Returns whether one still runs in the background.
    pub(crate) fn end_commands(&mut self) -> bool {
        self.terminals.kill_all();
        self.terminals.has_background_command()
    }

    fn take_permission(&mut self, id: &RequestId, request: RequestPermissionRequest) -> Result<(), Error> {
        // The agent may have said more about the call before.
        let fields = request.tool_call.fields.clone();
        let call_id = self.note_update(request.tool_call);
        let call = self.calls.get(&call_id).cloned().unwrap_or_else(|| {
            // Too many calls are known to keep this one.
            let mut call = ToolCall::new(call_id, "");
            call.update(fields);
            call
        });
        let paths = self.permission_paths(&call)?;
        let mut details = whole_call_text(&call);
        let title = call.title.trim();
        if !title.is_empty() && title != call_title(&call) {
            details = format!("{title}\n\n{details}");
        }
        for diff in diffs_of(&call.content) {
            let path = self.inside(&diff.path).unwrap_or_else(|_| diff.path.display().to_string());
            let old = diff.old_text.as_deref().map(|old| format!("--- before\n{old}\n")).unwrap_or_default();
            details.push_str(&format!("\n{path}\n{old}+++ after\n{}\n", diff.new_text));
        }
        let input_bytes = call.raw_input.as_ref().map_or(0, |input| input.to_string().len());
        let path_bytes: usize = paths.iter().map(String::len).sum();
        // What is allowed must be seen as a whole.
        if details.len() + input_bytes + path_bytes > MAX_PERMISSION_BYTES {
            let why = format!("a request for permission has at most {MAX_PERMISSION_BYTES} bytes");
            return Err(plain_error(ErrorCode::InvalidParams, why));
        }
        let action = AgentAction::Permission {
            title: call_title(&call),
            kind: wire_name(&call.kind),
            input: call.raw_input,
            details,
            paths,
        };
        self.add(action, AwaitedAnswer::Permission(id.clone(), request.options));
        Ok(())
    }

    /// Returns the paths of all files that a call of the agent's own names.
    fn permission_paths(&self, call: &ToolCall) -> Result<Vec<String>, Error> {
        let named = named_files(call);
        if named.len() > MAX_PERMISSION_FILES {
            let why = format!("a request for permission names at most {MAX_PERMISSION_FILES} files");
            return Err(plain_error(ErrorCode::InvalidParams, why));
        }
        let mut paths: Vec<String> = named.iter().flat_map(|path| project_paths(&self.root, path)).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Answers the agent's requests with the results of its actions.
    pub(crate) fn apply(&mut self, peer: &PeerConnection, results: Vec<(String, ActionResult)>) {
        for (id, result) in results {
            let Some(awaited) = self.awaited.remove(&id) else { continue };
            let failed = || result.error();
            match awaited {
                AwaitedAnswer::Nothing => {}
                AwaitedAnswer::Read(request) => {
                    let read = || ReadTextFileResponse::new(result.text.clone());
                    peer.respond(&request, if result.success { Ok(read()) } else { Err(failed()) });
                }
                AwaitedAnswer::Write(request) => {
                    peer.respond(
                        &request,
                        if result.success { Ok(WriteTextFileResponse::new()) } else { Err(failed()) },
                    );
                }
                AwaitedAnswer::Permission(request, options) => {
                    let outcome = chosen_outcome(&options, result.success);
                    peer.respond(&request, Ok(RequestPermissionResponse::new(outcome)));
                }
                AwaitedAnswer::Terminal(terminal) => self.terminals.take_result(peer, &terminal, result),
            }
        }
    }
}

/// Returns the error for a request that isn't served or can't be read, without what the request holds.
fn request_error(error: &MethodDispatchError) -> Error {
    params_error(error)
}

/// Returns the error for a terminal that isn't there.
fn no_terminal() -> Error {
    plain_error(ErrorCode::ResourceNotFound, "the terminal isn't known, or was released")
}

/// Returns the option that is allowed or denied once. An option that lasts isn't chosen: our own rules last.
fn chosen_outcome(options: &[PermissionOption], is_allowed: bool) -> RequestPermissionOutcome {
    let wanted = if is_allowed { PermissionOptionKind::AllowOnce } else { PermissionOptionKind::RejectOnce };
    match options.iter().find(|option| option.kind == wanted) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())),
        None => RequestPermissionOutcome::Cancelled,
    }
}

fn call_title(call: &ToolCall) -> String {
    let title = cut(call.title.trim(), MAX_TITLE_BYTES);
    let title = title.lines().next().unwrap_or_default();
    if title.is_empty() { wire_name(&call.kind) } else { title.to_owned() }
}

fn diffs_of(content: &[ToolCallContent]) -> Vec<Diff> {
    let diff = |part: &ToolCallContent| match part {
        ToolCallContent::Diff(diff) => Some(diff.clone()),
        _ => None,
    };
    content.iter().filter_map(diff).collect()
}

/// Returns the beginning of the text of a call.
fn call_text(call: &ToolCall) -> String {
    cut(&whole_call_text(call), MAX_DESCRIPTION_BYTES).to_owned()
}

/// Returns the text of a call's content, or of its raw output if it has none.
fn whole_call_text(call: &ToolCall) -> String {
    let mut text = String::new();
    for part in &call.content {
        if let ToolCallContent::Content(part) = part {
            text.push_str(&content_text(&part.content));
            text.push('\n');
        }
    }
    if text.trim().is_empty() && call.kind != ToolKind::Edit {
        text = match &call.raw_output {
            Some(Value::String(output)) => output.clone(),
            Some(output) => output["output"].as_str().map_or_else(|| output.to_string(), str::to_owned),
            None => String::new(),
        };
    }
    text.trim().to_owned()
}

fn content_text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ResourceLink(link) => link.uri.clone(),
        ContentBlock::Resource(part) => match &part.resource {
            EmbeddedResourceResource::TextResourceContents(resource) => resource.text.clone(),
            _ => "(binary content)".to_owned(),
        },
        ContentBlock::Image(_) => "(a picture)".to_owned(),
        ContentBlock::Audio(_) => "(a recording)".to_owned(),
        _ => String::new(),
    }
}

/// Returns the files that a call names: those of its diffs and locations, or else of its arguments.
fn named_files(call: &ToolCall) -> Vec<PathBuf> {
    let diffs = call.content.iter().filter_map(|part| match part {
        ToolCallContent::Diff(diff) => Some(diff.path.clone()),
        _ => None,
    });
    let mut named: Vec<PathBuf> = diffs.chain(call.locations.iter().map(|location| location.path.clone())).collect();
    if named.is_empty()
        && let Some(input) = &call.raw_input
    {
        collect_paths(input, false, &mut named);
    }
    named
}

/// Collects the paths in arguments.
fn collect_paths(value: &Value, is_path: bool, found: &mut Vec<PathBuf>) {
    match value {
        Value::String(text) if is_path && !text.is_empty() => found.push(text.into()),
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, is_path, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace(['_', '-'], "").to_ascii_lowercase();
                collect_paths(value, PATH_ARGUMENTS.contains(&name.as_str()), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a path below `root` as it's written, without following links; `None` if it isn't inside.
fn path_inside(root: &Path, path: &Path) -> Option<String> {
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

/// Returns the paths in the project that a path means: as it's written, and where links lead. `.` is the project's
/// folder. What is outside, or may be, is a whole path.
fn project_paths(root: &Path, path: &Path) -> Vec<String> {
    let whole = root.join(path);
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let real = resolve_links(&whole);
    let in_project = real.as_ref().and_then(|real| path_inside(&real_root, real));
    let real = in_project.unwrap_or_else(|| real.unwrap_or(whole).display().to_string());
    let mut paths = vec![real];
    paths.extend(path_inside(root, path));
    for path in paths.iter_mut().filter(|path| path.is_empty()) {
        path.push('.');
    }
    paths.dedup();
    paths
}

/// Returns where a path leads, which may not exist yet; `None` if that can't be known.
fn resolve_links(path: &Path) -> Option<PathBuf> {
    for folder in path.ancestors() {
        match folder.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(folder).ok()?;
                let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
                return is_plain.then(|| real.components().chain(rest.components()).collect());
            }
            // A link whose target is missing: writing to it would create that.
            Err(_) if folder.symlink_metadata().is_ok() => return None,
            Err(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_files_only_where_nothing_else_does() {
        let call = |call: Value| -> Vec<String> {
            let call: ToolCall = serde_json::from_value(call).expect("a call");
            named_files(&call).iter().map(|path| path.display().to_string()).collect()
        };
        let input = json!({"file_path": "/n/a.md", "files": [{"movePath": "b.md", "patch": "c.md"}, "d.md"], "n": 1});
        let mut named = call(json!({"toolCallId": "1", "title": "", "rawInput": input}));
        named.sort();
        assert_eq!(named, ["/n/a.md", "b.md", "d.md"]);
        let diff = json!({"type": "diff", "path": "/n/e.md", "newText": ""});
        let located = json!({"toolCallId": "1", "title": "", "rawInput": input, "content": [diff],
            "locations": [{"path": "/n/f.md"}]});
        assert_eq!(call(located), ["/n/e.md", "/n/f.md"]);
    }

    #[test]
    fn a_path_is_what_it_leads_to() {
        let house = tempfile::tempdir().expect("a folder");
        let house = house.path().canonicalize().expect("there");
        let root = house.join("notes");
        std::fs::create_dir_all(root.join("sub")).expect("created");
        let paths = |path: &str| project_paths(&root, Path::new(path));
        let whole = |path: &str| house.join(path).display().to_string();
        assert_eq!(paths("sub/new/a.md"), ["sub/new/a.md"]);
        assert_eq!(paths(&whole("notes/a.md")), ["a.md"]);
        assert_eq!(paths("sub/../a.md"), ["a.md"]);
        assert_eq!(paths(&whole("notes")), ["."]);
        assert_eq!(paths("sub/../../b.md"), [whole("b.md")]);
        assert_eq!(paths(&whole("b.md")), [whole("b.md")]);
        assert!(Path::new(&paths("none/../../b.md")[0]).is_absolute());
        #[cfg(unix)]
        {
            let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("linked");
            link("../missing.md", "hanging.md");
            link("sub", "inside");
            link("..", "up");
            assert_eq!(paths("inside/a.md"), ["sub/a.md", "inside/a.md"]);
            assert_eq!(paths("up/b.md"), [whole("b.md"), "up/b.md".to_owned()]);
            assert_eq!(paths("hanging.md"), [whole("notes/hanging.md"), "hanging.md".to_owned()]);
        }
    }
}
