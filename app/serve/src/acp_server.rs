//! `tracebook acp`: the agents of the workspace for editors, over the Agent Client Protocol.

use crate::acp_prompt::prompt_text;
use crate::acp_turn::{PromptTurn, fault_error, plain_error};
use crate::acp_updates::{answer_chunk, begun_call, ended_call, is_shown_otherwise, user_chunk};
use crate::client_roots::real_path;
use crate::command_calls::{CommandCall, CommandOutcome, WorkspaceCommands};
use crate::list_pages::{cursor_after, page_start};
use crate::tool_calls::new_run_id;
use acp::v1::{
    AgentCapabilities, AuthenticateResponse, CancelNotification, ClientRequest, CloseSessionResponse,
    ConfigOptionUpdate, CurrentModeUpdate, DeleteSessionResponse, Error, ErrorCode, Implementation, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionResponse, NewSessionResponse, PromptCapabilities,
    PromptRequest, RequestId, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionDeleteCapabilities, SessionInfo, SessionListCapabilities, SessionMode, SessionModeState,
    SessionNotification, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionResponse,
    SetSessionModeResponse,
};
use acp::{IncomingMessage, PeerConnection, ProtocolVersion, params_error};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of requests that are worked on at the same time.
const MAX_ACTIVE_REQUESTS: usize = 32;
/// Maximum number of sessions that are open at the same time.
const MAX_OPEN_SESSIONS: usize = 200;
/// Number of sessions in one page of the list.
const SESSIONS_PER_PAGE: usize = 50;
/// Number of attempts to stop a run when the editor cancels it, and when the editor has gone.
const CANCEL_ATTEMPTS: u32 = 200;
const END_ATTEMPTS: u32 = 10;
/// The mode in which Tracebook chooses the agent.
const DEFAULT_AGENT: &str = "default";
/// The ways in which memory is used, as `ask --mode` names them.
const MEMORY_MODES: [(&str, &str, &str); 3] = [
    ("auto", "Automatic", "Follow a trace that fits; otherwise ask a model"),
    ("learner", "Model", "Always ask a model"),
    ("follower", "Trace", "Follow a trace that fits; ask a model only where it stops"),
];

/// Why the server for editors ended.
#[derive(Debug, thiserror::Error)]
pub enum AcpServeError {
    /// The editor sends something else than the protocol, or the connection failed.
    #[error("the connection to the editor failed: {0}")]
    Connection(#[from] std::io::Error),
}

/// A volume that an editor's session works in.
#[derive(Clone, Debug)]
struct SessionVolume {
    id: String,
    root: PathBuf,
}

/// A session that an editor has open.
struct OpenSession {
    volume: SessionVolume,
    /// Name of the agent; empty if Tracebook chooses.
    agent: String,
    /// How memory is used, as `ask --mode` names it.
    memory: String,
    /// Agents that can be chosen, each with what it's for.
    agents: Vec<(String, String)>,
    turn: Option<Arc<PromptTurn>>,
}

impl OpenSession {
    fn modes(&self) -> SessionModeState {
        let first = SessionMode::new(DEFAULT_AGENT, "Default").description("Tracebook chooses the agent".to_owned());
        let named =
            |(name, about): &(String, String)| SessionMode::new(name.clone(), name.clone()).description(about.clone());
        let all = std::iter::once(first).chain(self.agents.iter().map(named)).collect();
        SessionModeState::new(self.current_agent().to_owned(), all)
    }

    fn current_agent(&self) -> &str {
        if self.agent.is_empty() { DEFAULT_AGENT } else { &self.agent }
    }

    fn config_options(&self) -> Vec<SessionConfigOption> {
        let choice = |value: &str, name: &str, about: &str| {
            SessionConfigSelectOption::new(value.to_owned(), name).description(about.to_owned())
        };
        let mut agents = vec![choice(DEFAULT_AGENT, "Default", "Tracebook chooses the agent")];
        agents.extend(self.agents.iter().map(|(name, about)| choice(name, name, about)));
        let memory: Vec<_> = MEMORY_MODES.iter().map(|(value, name, about)| choice(value, name, about)).collect();
        vec![
            SessionConfigOption::select("agent", "Agent", self.current_agent().to_owned(), agents)
                .category(SessionConfigOptionCategory::Mode),
            SessionConfigOption::select("memory", "Memory", self.memory.clone(), memory)
                .description("Whether a recorded trace may do the work without a model".to_owned()),
        ]
    }

    /// Chooses an agent by its name.
    fn choose_agent(&mut self, name: &str) -> Result<(), Error> {
        if name != DEFAULT_AGENT && !self.agents.iter().any(|(known, _)| known == name) {
            return Err(plain_error(ErrorCode::InvalidParams, format!("there is no agent called {name}")));
        }
        self.agent = if name == DEFAULT_AGENT { String::new() } else { name.to_owned() };
        Ok(())
    }
}

/// The server of one editor.
struct EditorServer {
    commands: Arc<dyn WorkspaceCommands>,
    peer: Arc<PeerConnection>,
    sessions: Mutex<BTreeMap<String, OpenSession>>,
    active: AtomicUsize,
}

/// A request that counts as active until this is dropped.
struct ActiveRequest(Arc<EditorServer>);

impl ActiveRequest {
    /// Counts a request; `None` if too many are active already.
    fn begin(server: &Arc<EditorServer>) -> Option<ActiveRequest> {
        let before = server.active.fetch_add(1, Ordering::Relaxed);
        let request = ActiveRequest(server.clone());
        (before < MAX_ACTIVE_REQUESTS).then_some(request)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves an editor until it closes the connection. Its runs are then canceled.
///
/// # Errors
/// Returns an error if the connection fails.
pub fn serve_acp(
    commands: Arc<dyn WorkspaceCommands>,
    input: &mut dyn BufRead,
    output: Box<dyn Write + Send>,
) -> Result<(), AcpServeError> {
    let peer = Arc::new(PeerConnection::new(output));
    let server = Arc::new(EditorServer {
        commands,
        peer: peer.clone(),
        sessions: Mutex::default(),
        active: AtomicUsize::new(0),
    });
    let done = peer.read(input, &mut |message| match message {
        IncomingMessage::Request { id, method, params } => server.begin(id, method, params),
        IncomingMessage::Notification { method, params } if method == "session/cancel" => server.cancel(params),
        // Other notifications, such as of extensions, may be left unread.
        IncomingMessage::Notification { .. } => {}
    });
    let turns: Vec<_> = server.sessions().values().filter_map(|session| session.turn.clone()).collect();
    for turn in turns {
        turn.cancel(END_ATTEMPTS);
    }
    Ok(done?)
}

fn invalid(why: impl Into<String>) -> Error {
    plain_error(ErrorCode::InvalidParams, why)
}

fn unknown_session(id: &str) -> Error {
    plain_error(ErrorCode::ResourceNotFound, format!("there is no session {id}"))
}

fn to_value(response: impl Serialize) -> Result<Value, Error> {
    Ok(serde_json::to_value(response)?)
}

impl EditorServer {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, OpenSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a request in a thread of its own.
    fn begin(self: &Arc<Self>, id: RequestId, method: String, params: Value) {
        let Some(active) = ActiveRequest::begin(self) else {
            let busy = plain_error(ErrorCode::InternalError, "too many requests at the same time; try again later");
            self.peer.respond(&id, Err::<Value, Error>(busy));
            return;
        };
        std::thread::spawn(move || {
            let request = active;
            let server = &request.0;
            // Nothing is answered before the last step of this, so an editor never gets two answers.
            let done = catch_unwind(AssertUnwindSafe(|| server.work_on(&id, &method, &params)));
            if done.is_err() {
                server.peer.respond(&id, Err::<Value, Error>(fault_error()));
            }
        });
    }

    fn work_on(&self, id: &RequestId, method: &str, params: &Value) {
        match ClientRequest::from_method_and_params(method, params) {
            // Its answer comes at the end of the turn.
            Ok(ClientRequest::PromptRequest(prompt)) => self.prompt(id, &prompt),
            Ok(request) => self.peer.respond(id, self.answer(request)),
            Err(error) => self.peer.respond(id, Err::<Value, Error>(params_error(&error))),
        }
    }

    fn answer(&self, request: ClientRequest) -> Result<Value, Error> {
        match request {
            ClientRequest::InitializeRequest(_) => to_value(initialize_response()),
            ClientRequest::AuthenticateRequest(_) => to_value(AuthenticateResponse::default()),
            ClientRequest::NewSessionRequest(request) => {
                let session = self.open_session(self.volume_around(&request.cwd)?)?;
                let id = new_run_id();
                let (modes, options) = (session.modes(), session.config_options());
                self.keep_session(id.clone(), session)?;
                to_value(NewSessionResponse::new(id).modes(modes).config_options(options))
            }
            ClientRequest::LoadSessionRequest(request) => {
                let id = request.session_id.0.to_string();
                let (modes, options) = self.reopen_session(&id, &request.cwd)?;
                self.replay(&id)?;
                to_value(LoadSessionResponse::new().modes(modes).config_options(options))
            }
            ClientRequest::ResumeSessionRequest(request) => {
                let (modes, options) = self.reopen_session(&request.session_id.0, &request.cwd)?;
                to_value(ResumeSessionResponse::new().modes(modes).config_options(options))
            }
            ClientRequest::ListSessionsRequest(request) => to_value(self.list_sessions(&request)?),
            ClientRequest::CloseSessionRequest(request) => {
                self.close_session(&request.session_id.0);
                to_value(CloseSessionResponse::new())
            }
            ClientRequest::DeleteSessionRequest(request) => {
                let id = request.session_id.0.to_string();
                self.close_session(&id);
                self.known_session(&id)?;
                self.perform(CommandCall::json("sessions").flag("delete", true).operands([&id]))?;
                to_value(DeleteSessionResponse::new())
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let (id, mode) = (request.session_id.0.to_string(), request.mode_id.0.to_string());
                let options = self.change_session(&id, |session| session.choose_agent(&mode))?;
                self.send(&id, SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
                to_value(SetSessionModeResponse::new())
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                let SessionConfigOptionValue::ValueId { value } = &request.value else {
                    return Err(invalid("the options have named values"));
                };
                let (id, value) = (request.session_id.0.to_string(), value.0.to_string());
                let is_agent = &*request.config_id.0 == "agent";
                let options = self.change_session(&id, |session| match &*request.config_id.0 {
                    "agent" => session.choose_agent(&value),
                    "memory" if MEMORY_MODES.iter().any(|(known, ..)| *known == value) => {
                        session.memory.clone_from(&value);
                        Ok(())
                    }
                    "memory" => Err(invalid(format!("memory has no mode called {value}"))),
                    other => Err(invalid(format!("there is no option called {other}"))),
                })?;
                if is_agent {
                    self.send(&id, SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(value)));
                }
                to_value(SetSessionConfigOptionResponse::new(options))
            }
            other => Err(plain_error(ErrorCode::MethodNotFound, format!("Tracebook doesn't serve {}", other.method()))),
        }
    }

    fn send(&self, session: &str, update: SessionUpdate) {
        self.peer.notify("session/update", &SessionNotification::new(session.to_owned(), update));
    }

    /// Performs a command that must succeed.
    fn perform(&self, call: CommandCall) -> Result<CommandOutcome, Error> {
        let outcome = self.commands.perform(&call, &mut |_| {});
        match outcome.code {
            0 => Ok(outcome),
            _ => Err(plain_error(ErrorCode::InternalError, outcome.reason())),
        }
    }

    fn volumes(&self) -> Result<Vec<SessionVolume>, Error> {
        let all = self.perform(CommandCall::json("ls").flag("volumes", true))?.value().unwrap_or_default();
        let volume = |row: &Value| {
            Some(SessionVolume { id: row["id"].as_str()?.to_owned(), root: row["folder"].as_str()?.into() })
        };
        Ok(all.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(volume).collect())
    }

    /// Returns the volume that a folder is in: the innermost one.
    fn volume_around(&self, folder: &Path) -> Result<SessionVolume, Error> {
        if !folder.is_absolute() {
            return Err(invalid(format!("cwd is an absolute path, not {}", folder.display())));
        }
        let volumes = self.volumes()?;
        // Editors name folders as they were opened, also over links.
        let real = real_path(folder);
        let is_around = |root: &Path| folder.starts_with(root) || real.starts_with(real_path(root));
        let around = volumes.iter().filter(|volume| is_around(&volume.root));
        around.max_by_key(|volume| volume.root.components().count()).cloned().ok_or_else(|| {
            let known: Vec<_> = volumes.iter().map(|volume| volume.root.display().to_string()).collect();
            let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
            invalid(format!(
                "{} is in no volume of the workspace (there are {known}); add it: tracebook open {}",
                folder.display(),
                folder.display()
            ))
        })
    }

    /// Prepares a session in a volume.
    fn open_session(&self, volume: SessionVolume) -> Result<OpenSession, Error> {
        let root = volume.root.to_string_lossy();
        let call = CommandCall::json("tasks").option("project", Some(root)).operands(["agents"]);
        let agents = self.perform(call)?.lines();
        let agents = agents.iter().filter(|agent| agent["enabled"] == true && agent["name"] != DEFAULT_AGENT);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let agents = agents.map(|agent| (text(&agent["name"]), text(&agent["description"]))).collect();
        Ok(OpenSession { volume, agent: String::new(), memory: "auto".to_owned(), agents, turn: None })
    }

    fn keep_session(&self, id: String, session: OpenSession) -> Result<(), Error> {
        let mut sessions = self.sessions();
        if sessions.len() >= MAX_OPEN_SESSIONS && !sessions.contains_key(&id) {
            return Err(plain_error(ErrorCode::InternalError, "too many sessions are open; close some"));
        }
        match sessions.get_mut(&id) {
            Some(known) if known.turn.as_ref().is_some_and(|turn| !turn.is_over()) => {
                return Err(invalid("the agent is working in this session"));
            }
            _ => sessions.insert(id, session),
        };
        Ok(())
    }

    /// Returns what the workspace knows about a session.
    fn known_session(&self, id: &str) -> Result<Value, Error> {
        let sessions = self.perform(CommandCall::json("sessions"))?.lines();
        sessions.into_iter().find(|session| session["id"] == id).ok_or_else(|| unknown_session(id))
    }

    /// Opens a session of the workspace again, in its own volume.
    fn reopen_session(&self, id: &str, cwd: &Path) -> Result<(SessionModeState, Vec<SessionConfigOption>), Error> {
        let known = self.known_session(id)?;
        let own = self.volumes()?.into_iter().find(|volume| known["volume"] == volume.id.as_str());
        let volume = match own {
            Some(volume) => volume,
            None => self.volume_around(cwd)?,
        };
        let session = self.open_session(volume)?;
        let about = (session.modes(), session.config_options());
        self.keep_session(id.to_owned(), session)?;
        Ok(about)
    }

    fn close_session(&self, id: &str) {
        let session = self.sessions().remove(id);
        if let Some(turn) = session.and_then(|session| session.turn) {
            turn.cancel(CANCEL_ATTEMPTS);
        }
    }

    /// Changes an open session. Returns its options.
    fn change_session(
        &self,
        id: &str,
        change: impl FnOnce(&mut OpenSession) -> Result<(), Error>,
    ) -> Result<Vec<SessionConfigOption>, Error> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(id).ok_or_else(|| unknown_session(id))?;
        change(session)?;
        Ok(session.config_options())
    }

    fn list_sessions(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let cursor = match request.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| invalid("the cursor is not one of ours"))?,
        };
        let volumes = self.volumes()?;
        let only = match &request.cwd {
            Some(cwd) => Some(self.volume_around(cwd)?.id),
            None => None,
        };
        let sessions = self.perform(CommandCall::json("sessions"))?.lines();
        let info = |session: &Value| {
            let volume = volumes.iter().find(|volume| session["volume"] == volume.id.as_str())?;
            if only.as_ref().is_some_and(|only| *only != volume.id) {
                return None;
            }
            let updated = session["updated"].as_i64().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
            let info = SessionInfo::new(session["id"].as_str()?.to_owned(), volume.root.clone())
                .title(session["title"].as_str().map(str::to_owned))
                .updated_at(updated.map(|at| at.to_string()));
            Some(info)
        };
        let all: Vec<SessionInfo> = sessions.iter().filter_map(info).collect();
        let key = |session: &SessionInfo| session.session_id.0.to_string();
        let start = page_start(&all, cursor, &key).min(all.len());
        let end = start.saturating_add(SESSIONS_PER_PAGE).min(all.len());
        let last = all.get(start..end).and_then(|page| page.last()).filter(|_| end < all.len());
        let next = last.map(|last| cursor_after(end as u64, &key(last)).to_string());
        Ok(ListSessionsResponse::new(all.into_iter().skip(start).take(SESSIONS_PER_PAGE).collect()).next_cursor(next))
    }

    /// Sends all messages of a session's branch.
    fn replay(&self, id: &str) -> Result<(), Error> {
        let root = self.sessions().get(id).map(|session| session.volume.root.clone()).unwrap_or_default();
        let messages = self.perform(CommandCall::json("sessions").operands([id]))?.lines();
        let mut hidden = BTreeSet::new();
        for message in messages {
            let content = message["content"].as_str().unwrap_or_default();
            match message["role"].as_str().unwrap_or_default() {
                "user" => self.send(id, user_chunk(content)),
                "assistant" => {
                    if !content.trim().is_empty() {
                        self.send(id, answer_chunk(content));
                    }
                    for call in message["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default() {
                        let (call_id, tool) =
                            (call["id"].as_str().unwrap_or_default(), call["name"].as_str().unwrap_or_default());
                        if is_shown_otherwise(tool) {
                            hidden.insert(call_id.to_owned());
                        } else {
                            self.send(id, begun_call(&root, call_id, tool, &call["arguments"], None));
                        }
                    }
                }
                "tool" => {
                    let call_id = message["toolCallId"].as_str().unwrap_or_default();
                    if !hidden.remove(call_id) {
                        let step = json!({
                            "success": message["error"].is_null(), "result": content, "error": message["error"],
                        });
                        self.send(id, ended_call(call_id, &step, Vec::new()));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Begins a turn, or passes on the answer to a question of the agent.
    fn prompt(&self, request: &RequestId, prompt: &PromptRequest) {
        match self.begin_turn(request, prompt) {
            Ok(Some((turn, call))) => turn.follow(call),
            Ok(None) => {}
            Err(error) => {
                self.peer.respond(request, Err::<Value, Error>(error));
            }
        }
    }

    fn begin_turn(
        &self,
        request: &RequestId,
        prompt: &PromptRequest,
    ) -> Result<Option<(Arc<PromptTurn>, CommandCall)>, Error> {
        let id = prompt.session_id.0.to_string();
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&id).ok_or_else(|| unknown_session(&id))?;
        let root = session.volume.root.clone();
        let text = prompt_text(&root, &prompt.prompt).map_err(|error| invalid(error.to_string()))?;
        if let Some(turn) = session.turn.clone().filter(|turn| !turn.is_over()) {
            drop(sessions);
            return turn.answer_question(request, &text).map(|()| None);
        }
        let run = new_run_id();
        let agent = (!session.agent.is_empty()).then(|| session.agent.clone());
        let call = CommandCall::json("ask")
            .option("project", Some(root.to_string_lossy()))
            .option("session", Some(&id))
            .option("agent", agent)
            .option("mode", (session.memory != "auto").then_some(&session.memory))
            .option("run", Some(&run))
            .operands(["-"])
            .with_input(text);
        let turn = PromptTurn::new(self.commands.clone(), self.peer.clone(), (id, run), root, request.clone());
        session.turn = Some(turn.clone());
        Ok(Some((turn, call)))
    }

    /// Cancels what a session's agent does. It's the reader that calls this, so it doesn't wait.
    fn cancel(&self, params: Value) {
        let Ok(cancel) = serde_json::from_value::<CancelNotification>(params) else { return };
        let turn = self.sessions().get(&*cancel.session_id.0).and_then(|session| session.turn.clone());
        if let Some(turn) = turn.filter(|turn| !turn.is_over()) {
            std::thread::spawn(move || turn.cancel(CANCEL_ATTEMPTS));
        }
    }
}

fn initialize_response() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
        .session_capabilities(sessions);
    let about = Implementation::new("tracebook", env!("CARGO_PKG_VERSION")).title("Tracebook".to_owned());
    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Panics at every command.
    struct FaultyCommands;

    impl WorkspaceCommands for FaultyCommands {
        fn perform(&self, call: &CommandCall, _on_line: &mut dyn FnMut(&str)) -> CommandOutcome {
            panic!("a fault in {:?}", call.words)
        }
    }

    /// What an editor receives.
    struct EditorInput(Sender<Value>);

    impl Write for EditorInput {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.send(serde_json::from_slice(line)?).map_err(std::io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn faulty_server() -> (Arc<EditorServer>, Receiver<Value>) {
        let (sender, received) = channel();
        let server = EditorServer {
            commands: Arc::new(FaultyCommands),
            peer: Arc::new(PeerConnection::new(Box::new(EditorInput(sender)))),
            sessions: Mutex::default(),
            active: AtomicUsize::new(0),
        };
        (Arc::new(server), received)
    }

    #[test]
    fn a_request_that_panics_is_answered_and_counts_no_longer() {
        let (server, received) = faulty_server();
        let volume = SessionVolume { id: "v".to_owned(), root: "/notes".into() };
        let session =
            OpenSession { volume, agent: String::new(), memory: "auto".to_owned(), agents: Vec::new(), turn: None };
        server.sessions().insert("s".to_owned(), session);
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Hello"}]});
        let requests = [("session/list", json!({})), ("session/prompt", prompt)];
        // More than may be active at the same time.
        let count = i64::try_from(MAX_ACTIVE_REQUESTS + 2).expect("few");
        for id in 0..count {
            for (method, params) in &requests {
                server.begin(RequestId::Number(id), (*method).to_owned(), params.clone());
                let answer = received.recv_timeout(Duration::from_secs(30)).expect("an answer");
                assert_eq!(answer["id"], id, "{answer}");
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                let why = answer["error"]["message"].as_str().unwrap_or_default();
                assert!(why.contains("a fault of Tracebook's"), "{method}: {answer}");
            }
        }
        // Each is over after its answer.
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while server.active.load(Ordering::Relaxed) > 0 {
            assert!(std::time::Instant::now() < until, "requests are still active");
            std::thread::yield_now();
        }
        assert!(received.try_recv().is_err(), "each is answered once");
    }
}
