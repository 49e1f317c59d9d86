//! A program that works as an agent: it's started for one prompt, and asks for what it does outside of itself.

use crate::agent_process::AgentProcess;
use crate::agent_requests::{AgentAction, RequestLedger};
use crate::agent_terminals::{TextMask, is_terminal_request};
use crate::message_queue::{ActionResult, MessageQueue, QueueEvent};
use crate::{IncomingMessage, PeerConnection, SentRequest};
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, ClientCapabilities, ContentBlock, Error, FileSystemCapabilities,
    Implementation, InitializeRequest, InitializeResponse, LoadSessionRequest, NewSessionRequest, NewSessionResponse,
    PromptRequest, PromptResponse, ResumeSessionRequest, SessionId, StopReason,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum time until the program answers that it's ready. Some install themselves at their first start.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a program has to end its turn after it was canceled, before it's killed.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for further requests before those that came are passed on together.
const BATCH_DELAY: Duration = Duration::from_millis(30);
/// How long to wait for the ends of commands at the end of a turn.
const COMMAND_END_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of actions that are passed on together.
const MAX_BATCH_ACTIONS: usize = 16;
/// Settings in a project by which agents' programs start others, without asking where they work for another program.
const PROGRAM_SETTINGS: [&str; 12] = [
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".qwen",
    ".kiro",
    ".roo",
    "crush.json",
    ".crush.json",
];
/// Maximum length of all text of a turn in bytes.
const MAX_TURN_TEXT_BYTES: usize = 4 << 20;
/// Maximum number of messages of a turn.
const MAX_TURN_MESSAGES: usize = 200_000;

/// Returns why a program must not start in a folder that the user doesn't trust: there are settings that it could obey.
pub fn settings_refusal(name: &str, folder: &Path) -> Option<String> {
    let settings = PROGRAM_SETTINGS.iter().find(|settings| folder.join(settings).symlink_metadata().is_ok())?;
    Some(format!(
        "{name} would obey {settings} in this volume, which can start programs with your rights. Look at it. If you \
         trust its author: `tracebook volumes trust NAME`."
    ))
}

/// A program that speaks the protocol as an agent, and the folder in which it works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentProgram {
    /// Its name, for the user.
    pub name: String,
    /// The command.
    pub command: String,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Environment variables, besides the usual ones.
    pub env: BTreeMap<String, String>,
    /// The folder: paths outside of it are refused.
    pub folder: PathBuf,
}

/// A session that the program keeps from an earlier turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumedSession {
    /// Its id.
    pub id: String,
    /// What is new since then.
    pub prompt: String,
}

/// What an agent is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentPrompt {
    /// The prompt for a new session, with all that the agent has to know.
    pub text: String,
    /// The session in which it can go on instead. A program that can't take it up gets a new one.
    pub resumed: Option<ResumedSession>,
}

/// An event of an external agent's turn.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// It has begun, in a session with this id that it can take up later.
    Begun(String),
    /// A piece of its answer.
    Text(String),
    /// A piece of what it thinks.
    Thought(String),
    /// What it wants to be done, each with an id. It waits for the results.
    Actions(Vec<(String, AgentAction)>),
    /// The turn has ended.
    Ended(Result<AgentTurnEnd, AgentFailure>),
}

/// Why a program's work ended without an answer, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent}: {what}{printed}")]
pub struct AgentFailure {
    /// The agent's name.
    pub agent: String,
    /// The failure, in words.
    pub what: String,
    /// What the program printed about it, as a sentence; empty if it printed nothing.
    pub printed: String,
}

/// What can go wrong with a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExternalAgentError {
    #[error("the program does not start ({0})")]
    Start(std::io::Error),
    #[error("it was stopped")]
    Stopped,
    #[error("it can't be reached ({0})")]
    Connection(#[from] std::io::Error),
    #[error("it ended before it was ready")]
    EndedEarly,
    #[error("it ended in the middle of its work")]
    Ended,
    #[error("it did not answer {0} in {seconds} s", seconds = START_TIMEOUT.as_secs())]
    Silent(&'static str),
    #[error("its answer to {method} can't be read: {source}")]
    Unreadable { method: &'static str, source: serde_json::Error },
    #[error("{}", error_text(.0))]
    Refused(Error),
    #[error("it speaks version {0} of the protocol, not 1")]
    Version(ProtocolVersion),
    #[error("it sent more than a turn can hold")]
    TooMuch,
    #[error("it refused the task")]
    Unwilling,
    #[error("it stopped by itself")]
    StoppedItself,
}

/// How a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentTurnEnd {
    /// Whether the answer was cut off by a limit.
    pub is_cut: bool,
    /// What the turn has cost in US dollars, if the agent says.
    pub cost: Option<f64>,
}

/// A running agent. Its program is killed when this is dropped.
pub struct ExternalAgent {
    queue: Arc<MessageQueue>,
    worker: Option<JoinHandle<()>>,
}

impl Drop for ExternalAgent {
    fn drop(&mut self) {
        self.queue.cancel();
    }
}

impl ExternalAgent {
    /// Starts a program in a thread of its own, and gives it a prompt. `on_event` gets what it does, in order; the last
    /// event is [`AgentEvent::Ended`]. `mask` hides secrets in what commands print.
    pub fn start(
        program: AgentProgram,
        prompt: AgentPrompt,
        id_prefix: String,
        mask: impl Fn(&str) -> String + Send + 'static,
        on_event: impl FnMut(AgentEvent) + Send + 'static,
    ) -> ExternalAgent {
        let queue = Arc::new(MessageQueue::default());
        let own = queue.clone();
        let worker = std::thread::spawn(move || {
            let mut on_event = on_event;
            let ended = match AgentProcess::start(&program) {
                Err(error) => Err(AgentFailure {
                    agent: program.name.clone(),
                    what: ExternalAgentError::Start(error).to_string(),
                    printed: String::new(),
                }),
                Ok(mut process) => {
                    let ledger = RequestLedger::new(program.folder.clone(), id_prefix, Box::new(mask) as TextMask);
                    let ended = run_turn(&mut process, &queue, &program, prompt, ledger, &mut on_event);
                    process.kill();
                    ended.map_err(|why| process.failure(&program.name, &why))
                }
            };
            // The reader may wait for room in the queue.
            queue.cancel();
            on_event(AgentEvent::Ended(ended));
        });
        ExternalAgent { queue: own, worker: Some(worker) }
    }

    /// Gives the results of the actions that the agent waits for.
    pub fn give_results(&self, results: Vec<(String, ActionResult)>) {
        self.queue.give_results(results);
    }

    /// Cancels the turn. Its program is killed a moment later, unless it ends by itself.
    pub fn cancel(&self) {
        self.queue.cancel();
    }

    /// Returns whether the program and all that it has started have ended.
    pub fn has_ended(&self) -> bool {
        self.worker.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Cancels the turn, and waits until the program and all that it has started have ended.
    pub fn end(mut self) {
        self.queue.cancel();
        if let Some(worker) = self.worker.take() {
            // A worker that failed has killed its program, too.
            let _ = worker.join();
        }
    }
}

/// Sends a request at the start, and waits for its answer.
fn ask<R: DeserializeOwned>(
    peer: &PeerConnection,
    queue: &MessageQueue,
    ledger: &mut RequestLedger,
    method: &'static str,
    params: &impl Serialize,
) -> Result<R, ExternalAgentError> {
    let sent = peer.request(method, params)?;
    let until = Instant::now() + START_TIMEOUT;
    loop {
        if let Some(answer) = sent.wait(Duration::ZERO) {
            let answer = answer.map_err(ExternalAgentError::Refused)?;
            return serde_json::from_value(answer).map_err(|source| ExternalAgentError::Unreadable { method, source });
        }
        match queue.next(BATCH_DELAY) {
            // What it sends before its first turn is of no use, but it may wait for answers.
            QueueEvent::Message(message) => ledger.refuse(peer, &message),
            QueueEvent::Cancelled => return Err(ExternalAgentError::Stopped),
            QueueEvent::Closed => return Err(ExternalAgentError::EndedEarly),
            QueueEvent::Idle | QueueEvent::Results(_) if Instant::now() > until => {
                return Err(ExternalAgentError::Silent(method));
            }
            QueueEvent::Idle | QueueEvent::Results(_) => {}
        }
    }
}

/// Returns what an error says, with its details.
fn error_text(error: &Error) -> String {
    match error.data.as_ref().and_then(|data| data.as_str().or_else(|| data["details"].as_str())) {
        Some(details) => format!("{} ({})", error.message, details.lines().next().unwrap_or_default()),
        None => error.message.clone(),
    }
}

fn run_turn(
    process: &mut AgentProcess,
    queue: &Arc<MessageQueue>,
    program: &AgentProgram,
    prompt: AgentPrompt,
    mut ledger: RequestLedger,
    on_event: &mut dyn FnMut(AgentEvent),
) -> Result<AgentTurnEnd, ExternalAgentError> {
    let peer = process.connect(queue);
    let capabilities = ClientCapabilities::new()
        .fs(FileSystemCapabilities::new().read_text_file(true).write_text_file(true))
        .terminal(true);
    let about = Implementation::new("tracebook", env!("CARGO_PKG_VERSION")).title("Tracebook".to_owned());
    let hello = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities).client_info(about);
    let ready: InitializeResponse = ask(&peer, queue, &mut ledger, "initialize", &hello)?;
    if ready.protocol_version != ProtocolVersion::V1 {
        return Err(ExternalAgentError::Version(ready.protocol_version));
    }
    let AgentCapabilities { load_session, session_capabilities, .. } = ready.agent_capabilities;
    let can_resume = session_capabilities.resume.is_some();
    let resumed = match prompt.resumed {
        Some(known) => {
            let id = SessionId::from(known.id);
            let is_there = take_up(&peer, queue, &mut ledger, &id, &program.folder, (can_resume, load_session))?;
            is_there.then_some((id, known.prompt))
        }
        None => None,
    };
    let (session, text) = match resumed {
        Some(resumed) => resumed,
        None => {
            let new = NewSessionRequest::new(program.folder.clone());
            let session: NewSessionResponse = ask(&peer, queue, &mut ledger, "session/new", &new)?;
            (session.session_id, prompt.text)
        }
    };
    if can_resume || load_session {
        on_event(AgentEvent::Begun(session.to_string()));
    }
    let prompt = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
    let sent = peer.request("session/prompt", &prompt)?;
    let (mut turn, mut text_bytes, mut message_count) = (PromptTurn::new(&peer, queue, &session, sent), 0, 0);
    loop {
        let mut is_idle = false;
        ledger.follow_commands(&peer);
        match queue.next(BATCH_DELAY) {
            QueueEvent::Message(message) => {
                message_count += 1;
                let events = ledger.take(&peer, &session, message);
                // What was done before it's spoken of comes first.
                if !events.is_empty() && !ledger.actions.is_empty() && !turn.pass_on(&mut ledger, on_event) {
                    return turn.cancel();
                }
                for event in events {
                    if let AgentEvent::Text(text) | AgentEvent::Thought(text) = &event {
                        text_bytes += text.len();
                    }
                    on_event(event);
                }
                if text_bytes > MAX_TURN_TEXT_BYTES || message_count > MAX_TURN_MESSAGES {
                    return Err(ExternalAgentError::TooMuch);
                }
            }
            QueueEvent::Idle | QueueEvent::Results(_) => is_idle = true,
            QueueEvent::Closed => {
                turn.look_for_answer();
                if !matches!(turn.answer, Some(Ok(_))) {
                    return Err(ExternalAgentError::Ended);
                }
                is_idle = true;
            }
            QueueEvent::Cancelled => return turn.cancel(),
        }
        if is_idle || ledger.actions.len() >= MAX_BATCH_ACTIONS {
            if !ledger.actions.is_empty() {
                if !turn.pass_on(&mut ledger, on_event) {
                    return turn.cancel();
                }
                continue;
            }
            // The answer was read after everything that it follows: one more look at the queue finds all of it.
            if turn.answer.is_some() {
                // What commands did in the background is reported before the turn ends.
                turn.end_commands(&mut ledger);
                if ledger.actions.is_empty() {
                    break;
                }
                continue;
            }
            turn.look_for_answer();
        }
    }
    let answer = turn.answer.unwrap_or_else(|| Err(Error::internal_error())).map_err(ExternalAgentError::Refused)?;
    let method = "session/prompt";
    let answer: PromptResponse =
        serde_json::from_value(answer).map_err(|source| ExternalAgentError::Unreadable { method, source })?;
    match answer.stop_reason {
        StopReason::Refusal => Err(ExternalAgentError::Unwilling),
        StopReason::Cancelled => Err(ExternalAgentError::StoppedItself),
        StopReason::MaxTokens | StopReason::MaxTurnRequests => Ok(AgentTurnEnd { is_cut: true, cost: ledger.cost }),
        _ => Ok(AgentTurnEnd { is_cut: false, cost: ledger.cost }),
    }
}

/// Takes up a session that the program may keep. Returns whether it does.
fn take_up(
    peer: &PeerConnection,
    queue: &MessageQueue,
    ledger: &mut RequestLedger,
    id: &SessionId,
    folder: &Path,
    (can_resume, can_load): (bool, bool),
) -> Result<bool, ExternalAgentError> {
    let taken_up = match (can_resume, can_load) {
        (true, _) => {
            let resume = ResumeSessionRequest::new(id.clone(), folder);
            ask::<Value>(peer, queue, ledger, "session/resume", &resume)
        }
        (false, true) => {
            let load = LoadSessionRequest::new(id.clone(), folder);
            ask::<Value>(peer, queue, ledger, "session/load", &load)
        }
        (false, false) => return Ok(false),
    };
    match taken_up {
        // What was said before is told again ahead of the answer, and known here.
        Ok(_) => loop {
            match queue.next(BATCH_DELAY) {
                QueueEvent::Message(message) => ledger.refuse(peer, &message),
                QueueEvent::Idle | QueueEvent::Results(_) => return Ok(true),
                QueueEvent::Closed => return Err(ExternalAgentError::EndedEarly),
                QueueEvent::Cancelled => return Err(ExternalAgentError::Stopped),
            }
        },
        Err(ExternalAgentError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A prompt that the agent works on.
struct PromptTurn<'a> {
    peer: &'a PeerConnection,
    queue: &'a MessageQueue,
    session: &'a SessionId,
    sent: SentRequest,
    answer: Option<Result<Value, Error>>,
}

impl<'a> PromptTurn<'a> {
    fn new(
        peer: &'a PeerConnection,
        queue: &'a MessageQueue,
        session: &'a SessionId,
        sent: SentRequest,
    ) -> PromptTurn<'a> {
        PromptTurn { peer, queue, session, sent, answer: None }
    }

    fn look_for_answer(&mut self) {
        if self.answer.is_none() {
            self.answer = self.sent.wait(Duration::ZERO);
        }
    }

    /// Passes on what the agent asks for, and answers it with the results. Returns `false` if the turn was canceled.
    fn pass_on(&mut self, ledger: &mut RequestLedger, on_event: &mut dyn FnMut(AgentEvent)) -> bool {
        ledger.drop_killed();
        while !ledger.actions.is_empty() {
            let rest = ledger.actions.len().min(MAX_BATCH_ACTIONS);
            on_event(AgentEvent::Actions(ledger.actions.drain(..rest).collect()));
            match self.wait_for_results(ledger) {
                Some(results) => ledger.apply(self.peer, results),
                None => return false,
            }
        }
        true
    }

    /// Waits for the results of actions. Requests about terminals are served meanwhile. Returns `None` if the turn was
    /// canceled.
    fn wait_for_results(&mut self, ledger: &mut RequestLedger) -> Option<Vec<(String, ActionResult)>> {
        loop {
            let event = match ledger.has_terminals() {
                true => self.queue.next_while_busy(BATCH_DELAY, is_terminal_request),
                false => self.queue.wait_for_results(),
            };
            match event {
                QueueEvent::Results(results) => return Some(results),
                QueueEvent::Message(message) => {
                    // Requests about terminals say nothing.
                    let _ = ledger.take(self.peer, self.session, message);
                }
                QueueEvent::Idle => {
                    self.look_for_answer();
                    if self.answer.is_some() || self.queue.is_closed() {
                        ledger.end_commands();
                    }
                }
                QueueEvent::Closed | QueueEvent::Cancelled => return None,
            }
            let is_other = |message: &IncomingMessage| {
                matches!(message, IncomingMessage::Request { .. }) && !is_terminal_request(message)
            };
            ledger.make_way(self.queue.has(is_other));
            ledger.follow_commands(self.peer);
        }
    }

    /// Ends the commands that still run, and waits for their ends.
    fn end_commands(&self, ledger: &mut RequestLedger) {
        let until = Instant::now() + COMMAND_END_TIMEOUT;
        while ledger.end_commands() && Instant::now() < until {
            std::thread::sleep(BATCH_DELAY);
            ledger.follow_commands(self.peer);
        }
    }

    /// Tells the agent that its turn is canceled, and gives it a moment to end.
    fn cancel(&self) -> Result<AgentTurnEnd, ExternalAgentError> {
        self.peer.notify("session/cancel", &CancelNotification::new(self.session.clone()));
        // The program is killed next, whatever it answers.
        let _ = self.sent.wait(CANCEL_TIMEOUT);
        Err(ExternalAgentError::Stopped)
    }
}

/// Reads until the program closes its output.
pub(crate) fn read_into(queue: &MessageQueue, peer: &PeerConnection, output: std::process::ChildStdout) {
    let mut output = std::io::BufReader::new(output);
    let mut on_message = |message: IncomingMessage| queue.push(message);
    // A program that sends no messages is treated like one that has ended.
    let _ = peer.read(&mut output, &mut on_message);
    queue.close();
}
