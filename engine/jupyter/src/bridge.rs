//! Bridges a Jupyter kernel to the host. The bridge is a process of this program that speaks the embedded kernel's
//! protocol (JSON lines over standard input and output) to the host, and Jupyter's (ZMQ) to a kernel that it starts.
//!
//! It knows nothing about notes. It only enforces the order: a reply follows all output of its request, as the host
//! expects. The kernel is the user's own program, so it isn't restricted. When the kernel ends or the host disconnects,
//! both processes end.

use crate::kernel_json::{ConnectionFolder, JupyterKernel, KernelStartError};
use jupyter_protocol::{
    CompleteRequest, ExecuteRequest, ExecutionState, InputReply, InputRequest, InspectRequest, InterruptRequest,
    JupyterMessage, JupyterMessageContent as Content, KernelInfoRequest, Payload, ShutdownRequest,
};
use jupyter_zmq_client as zmq;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};

/// Time after which a kernel that hasn't answered counts as failed.
const KERNEL_CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay between two attempts to connect to the kernel.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// Time a kernel gets to stop after a shutdown request.
const KERNEL_STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of a request line from the host; a longer one ends the connection.
const MAX_BRIDGE_REQUEST_BYTES: u64 = 64 << 20;
/// Message ID of the bridge's own requests, which aren't reported to the host.
const BRIDGE_MESSAGE_ID: &str = "tracebook-own";

/// Why the bridge ended.
#[derive(Debug, thiserror::Error)]
enum BridgeError {
    #[error("what may be started cannot be read: {0}")]
    Allowed(#[source] serde_json::Error),
    #[error(transparent)]
    Start(#[from] KernelStartError),
    #[error("the bridge to {title} cannot start: {source}")]
    Runtime { title: String, source: std::io::Error },
    #[error(transparent)]
    Identity(zmq::RuntimeError),
    #[error("the kernel cannot be reached: {0}")]
    Unreachable(#[source] zmq::RuntimeError),
    #[error("the kernel cannot be reached: it does not answer")]
    ConnectTimeout,
    #[error("{title} does not answer")]
    Silent { title: String },
    #[error("{title} ended ({how})")]
    Ended { title: String, how: String },
    #[error("the kernel stopped responding: {0}")]
    ConnectionLost(#[from] zmq::RuntimeError),
    #[error("the host is gone")]
    HostGone,
}

/// An event that the bridge waits for.
enum BridgeEvent {
    /// The host sent this request.
    Asked(Value),
    /// The host has disconnected.
    Gone,
    /// The kernel sent this message: `Answered` on the shell channel, `Said` on any other.
    Answered(JupyterMessage),
    Said(JupyterMessage),
    /// The kernel's process has ended, with this status.
    Ended(String),
}

/// Runs the bridge to the kernel described by a `kernel.json` until either side ends; returns the process's exit code.
/// Errors go to standard error. `allowed` is JSON that describes exactly what may be started, as it was when the user
/// approved it.
#[must_use]
pub fn run_bridge(spec: &Path, allowed: Option<&str>) -> ExitCode {
    match start_bridge(spec, allowed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn start_bridge(path: &Path, allowed: Option<&str>) -> Result<(), BridgeError> {
    let allowed = allowed.map(serde_json::from_str).transpose().map_err(BridgeError::Allowed)?;
    let spec = JupyterKernel::read(path, allowed)?;
    let room = ConnectionFolder::create(&spec)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|source| BridgeError::Runtime { title: spec.title.clone(), source })?
        .block_on(serve_kernel(spec, room))
}

async fn serve_kernel(spec: JupyterKernel, room: ConnectionFolder) -> Result<(), BridgeError> {
    // An interrupt goes to the kernel's whole process group. This process belongs to it and must ignore the signal.
    #[cfg(unix)]
    let _ours = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    let (happens, mut happened) = unbounded_channel();
    let listener = happens.clone();
    std::thread::spawn(move || read_host_requests(&listener));
    let mut child = spec.spawn(&room)?;
    let pid = child.id();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let end = happens.clone();
    tokio::spawn(async move {
        let status = tokio::select! {
            status = child.wait() => status,
            _ = stopped => {
                // Fails only if the process has ended already.
                let _ = child.kill().await;
                child.wait().await
            }
        };
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        // Here and below: the receiver may be closed. Then the event isn't needed.
        let _ = end.send(BridgeEvent::Ended(how));
    });
    let connected = connect(&room, &happens);
    let mut bridge = KernelBridge {
        spec,
        pid,
        requests: HashMap::new(),
        pending_input: None,
        quiet_queries: Vec::new(),
        channels: None,
    };
    let waiting = bridge.wait_until_ready(connected, &mut happened).await?;
    drop(room); // whoever else had the file could run code as the user
    if let Some(code) = bridge.spec.startup_code() {
        let quiet = ExecuteRequest { silent: true, store_history: false, ..ExecuteRequest::new(code.to_owned()) };
        // Sent as an expression, because IPython doesn't parse its own syntax there. That would take longer than the
        // setup.
        let setup = bridge.spec.display_setup().map(|setup| HashMap::from([(SETUP_EXPRESSION.to_owned(), setup)]));
        let request = ExecuteRequest { user_expressions: setup, ..quiet };
        bridge.send_shell(JupyterMessage::new(request, None), BRIDGE_MESSAGE_ID).await?;
    }
    for request in waiting {
        bridge.handle_host_request(request).await?;
    }
    let result = bridge.forward_messages(&mut happened).await;
    bridge.shut_down_kernel(&mut happened).await;
    let _ = stop.send(());
    result
}

/// Reads the host's requests until it disconnects.
fn read_host_requests(happens: &UnboundedSender<BridgeEvent>) {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.by_ref().take(MAX_BRIDGE_REQUEST_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) if line.ends_with(b"\n") => {}
            Ok(_) | Err(_) => break,
        }
        // Invalid requests are dropped.
        if let Ok(request) = serde_json::from_slice(&line)
            && happens.send(BridgeEvent::Asked(request)).is_err()
        {
            break;
        }
    }
    let _ = happens.send(BridgeEvent::Gone);
}

/// Send halves of the channels to the kernel.
struct KernelChannels {
    shell: zmq::DealerSendConnection,
    control: zmq::DealerSendConnection,
    stdin: zmq::DealerSendConnection,
}

/// Connects to the kernel as soon as it listens, and forwards its messages.
async fn connect(
    room: &ConnectionFolder,
    happens: &UnboundedSender<BridgeEvent>,
) -> Result<KernelChannels, BridgeError> {
    let info = &room.info;
    let session = room.session.as_str();
    let identity = zmq::peer_identity_for_session(session).map_err(BridgeError::Identity)?;
    let mut iopub = retry_connect(|| zmq::create_client_iopub_connection(info, "", session)).await?;
    let shell = || zmq::create_client_shell_connection_with_identity(info, session, identity.clone());
    let (shell, mut answers) = retry_connect(shell).await?.split();
    let (control, mut replies) = retry_connect(|| zmq::create_client_control_connection(info, session)).await?.split();
    let stdin = || zmq::create_client_stdin_connection_with_identity(info, session, identity.clone());
    let (stdin, mut questions) = retry_connect(stdin).await?.split();
    // Unreadable messages are skipped. The end of the kernel is detected by its process, not here.
    macro_rules! tell {
        ($from:ident, $kind:path) => {
            let to = happens.clone();
            tokio::spawn(async move {
                loop {
                    match $from.read().await {
                        Ok(message) => {
                            if to.send($kind(message)).is_err() {
                                return;
                            }
                        }
                        Err(zmq::RuntimeError::ZmqError(_)) => sleep(CONNECT_RETRY_INTERVAL).await,
                        Err(error) => eprintln!("a message of the kernel was passed over: {error}"),
                    }
                }
            });
        };
    }
    tell!(iopub, BridgeEvent::Said);
    tell!(answers, BridgeEvent::Answered);
    tell!(replies, BridgeEvent::Said);
    tell!(questions, BridgeEvent::Said);
    Ok(KernelChannels { shell, control, stdin })
}

/// Retries `attempt` until it succeeds or times out: a kernel starts to listen some time after its process starts.
async fn retry_connect<T, F: Future<Output = zmq::Result<T>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, BridgeError> {
    let until = Instant::now() + KERNEL_CONNECT_TIMEOUT;
    loop {
        let why = match tokio::time::timeout(KERNEL_CONNECT_TIMEOUT, attempt()).await {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(error)) => BridgeError::Unreachable(error),
            Err(_) => BridgeError::ConnectTimeout,
        };
        if Instant::now() >= until {
            return Err(why);
        }
        sleep(CONNECT_RETRY_INTERVAL).await;
    }
}

/// Progress of a request. The reply is held back until all output has arrived.
#[derive(Default)]
struct PendingExecution {
    reply: Option<JupyterMessage>,
    idle: bool,
}

struct KernelBridge {
    spec: JupyterKernel,
    pid: Option<u32>,
    /// Running cells by the ID of their request.
    requests: HashMap<String, PendingExecution>,
    /// The running cell's open question to the user: the ID of its request, the prompt, and whether the answer is
    /// hidden.
    pending_input: Option<(String, InputRequest)>,
    /// Pending queries that silent expressions answer, by the ID of their request.
    quiet_queries: Vec<(String, QuietQuery)>,
    channels: Option<KernelChannels>,
}

impl KernelBridge {
    /// Waits until the kernel answers and its IOPub channel delivers messages. Returns the requests that arrived
    /// meanwhile.
    async fn wait_until_ready(
        &mut self,
        connected: impl Future<Output = Result<KernelChannels, BridgeError>>,
        happened: &mut UnboundedReceiver<BridgeEvent>,
    ) -> Result<VecDeque<Value>, BridgeError> {
        let mut waiting = VecDeque::new();
        let mut connected = Box::pin(connected);
        let (mut info, mut heard) = (None, false);
        let until = Instant::now() + KERNEL_CONNECT_TIMEOUT;
        let mut asks = true;
        loop {
            if asks && self.channels.is_some() {
                // Repeated, because replies are lost until the subscription is active.
                self.send_shell(JupyterMessage::new(KernelInfoRequest {}, None), BRIDGE_MESSAGE_ID).await?;
                asks = false;
            }
            let happened = tokio::select! {
                channels = &mut connected, if self.channels.is_none() => {
                    self.channels = Some(channels?);
                    continue;
                }
                happened = happened.recv() => happened,
                () = sleep(Duration::from_millis(100)) => {
                    if Instant::now() >= until {
                        return Err(BridgeError::Silent { title: self.spec.title.clone() });
                    }
                    asks = true;
                    continue;
                }
            };
            match happened {
                Some(BridgeEvent::Asked(request)) => waiting.push_back(request),
                Some(BridgeEvent::Gone) | None => return Err(BridgeError::HostGone),
                Some(BridgeEvent::Ended(how)) => return Err(self.kernel_ended(how)),
                Some(BridgeEvent::Said(_)) => heard = true,
                Some(BridgeEvent::Answered(message)) => {
                    if matches!(message.content, Content::KernelInfoReply(_)) {
                        info = Some(message);
                    }
                }
            }
            if let Some(info) = info.as_ref().filter(|_| heard) {
                write_to_host(info);
                return Ok(waiting);
            }
        }
    }

    /// Forwards messages in both directions until one side ends. An error says why the kernel ended.
    async fn forward_messages(&mut self, happened: &mut UnboundedReceiver<BridgeEvent>) -> Result<(), BridgeError> {
        loop {
            match happened.recv().await {
                Some(BridgeEvent::Asked(request)) if request["header"]["msg_type"] == "shutdown_request" => {
                    return Ok(());
                }
                Some(BridgeEvent::Asked(request)) => self.handle_host_request(request).await?,
                Some(BridgeEvent::Gone) | None => return Ok(()),
                Some(BridgeEvent::Ended(how)) => {
                    // Wait briefly for the kernel's last messages.
                    self.channels = None;
                    while let Ok(Some(last)) = tokio::time::timeout(CONNECT_RETRY_INTERVAL, happened.recv()).await {
                        self.forward_event(last);
                    }
                    return Err(self.kernel_ended(how));
                }
                Some(other) => self.forward_event(other),
            }
        }
    }

    fn kernel_ended(&self, how: String) -> BridgeError {
        BridgeError::Ended { title: self.spec.title.clone(), how }
    }

    /// Asks the kernel to shut down, and waits up to [`KERNEL_STOP_TIMEOUT`] for its end.
    async fn shut_down_kernel(&mut self, happened: &mut UnboundedReceiver<BridgeEvent>) {
        if let Some(channels) = &mut self.channels {
            let request = JupyterMessage::new(ShutdownRequest { restart: false }, None);
            // A kernel that doesn't receive the request is killed.
            let _ = tokio::time::timeout(KERNEL_STOP_TIMEOUT, channels.control.send(request)).await;
            let ended = async { while !matches!(happened.recv().await, Some(BridgeEvent::Ended(_)) | None) {} };
            // A kernel that doesn't end in time is killed with the bridge.
            let _ = tokio::time::timeout(KERNEL_STOP_TIMEOUT, ended).await;
        }
    }

    /// Translates a request of the host and sends it to the kernel.
    async fn handle_host_request(&mut self, mut request: Value) -> Result<(), BridgeError> {
        let id = request["header"]["msg_id"].as_str().unwrap_or_default().to_owned();
        let content = request["content"].take();
        let text = |key: &str| content[key].as_str().unwrap_or_default().to_owned();
        let at = content["cursor_pos"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let kind = request["header"]["msg_type"].as_str().unwrap_or_default();
        match kind {
            "execute_request" => {
                if let Some(code) = self.spec.forget_expression(&content["forget"]) {
                    let quiet = ExecuteRequest { silent: true, store_history: false, ..ExecuteRequest::new(code) };
                    self.send_shell(JupyterMessage::new(quiet, None), BRIDGE_MESSAGE_ID).await?;
                }
                let cell = ExecuteRequest { allow_stdin: true, ..ExecuteRequest::new(text("code")) };
                self.requests.insert(id.clone(), PendingExecution::default());
                self.send_shell(JupyterMessage::new(cell, None), &id).await
            }
            "complete_request" => {
                let asked = CompleteRequest { code: text("code"), cursor_pos: at };
                self.send_shell(JupyterMessage::new(asked, None), &id).await
            }
            "inspect_request" => {
                let asked = InspectRequest { code: text("code"), cursor_pos: at, detail_level: Some(0) };
                self.send_shell(JupyterMessage::new(asked, None), &id).await
            }
            "variables_request" | "values_request" | "redraw_request" | "frame_rows_request" => {
                let (asked, code) = match kind {
                    "values_request" => (QuietQuery::Values, self.spec.variables_expression(Some(&content["names"]))),
                    "redraw_request" => (QuietQuery::Redraw, self.spec.redraw_expression(&content)),
                    "frame_rows_request" => (QuietQuery::FrameRows, self.spec.frame_rows_expression(&content)),
                    _ => (QuietQuery::Variables, self.spec.variables_expression(None)),
                };
                let Some(code) = code else {
                    write_to_host(&asked.reply(&id, None));
                    return Ok(());
                };
                let expressions = HashMap::from([(FOUND_EXPRESSION.to_owned(), code)]);
                let quiet = ExecuteRequest { silent: true, store_history: false, ..ExecuteRequest::new(String::new()) };
                let request = ExecuteRequest { user_expressions: Some(expressions), ..quiet };
                self.quiet_queries.push((id.clone(), asked));
                self.send_shell(JupyterMessage::new(request, None), &id).await
            }
            "input_reply" => {
                let reply = InputReply { value: text("value"), ..InputReply::default() };
                if let Some((id, question)) = self.pending_input.take() {
                    let answer = if question.password { "········" } else { &reply.value };
                    write_to_host(&bridge_message(
                        &id,
                        "stream",
                        json!({"name": "stdout", "text": format!("{}{answer}\n", question.prompt)}),
                    ));
                }
                let Some(channels) = &mut self.channels else { return Ok(()) };
                Ok(channels.stdin.send(JupyterMessage::new(reply, None)).await?)
            }
            "interrupt_request" => self.interrupt_kernel().await,
            _ => Ok(()), // nothing that a kernel of Jupyter's knows
        }
    }

    async fn send_shell(&mut self, mut message: JupyterMessage, id: &str) -> Result<(), BridgeError> {
        id.clone_into(&mut message.header.msg_id);
        let Some(channels) = &mut self.channels else { return Ok(()) };
        Ok(channels.shell.send(message).await?)
    }

    /// Interrupts the running cell, by signal or by message as the kernelspec asks.
    async fn interrupt_kernel(&mut self) -> Result<(), BridgeError> {
        #[cfg(unix)]
        if !self.spec.interrupts_by_message {
            use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, kill_process_group};
            if getpgrp() == getpid() {
                // Processes that the kernel started must stop, too.
                let _ = kill_process_group(getpgrp(), Signal::INT);
            } else if let Some(pid) = self.pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
                // Fails only if the kernel has ended already.
                let _ = kill_process(pid, Signal::INT);
            }
            return Ok(());
        }
        let Some(channels) = &mut self.channels else { return Ok(()) };
        Ok(channels.control.send(JupyterMessage::new(InterruptRequest {}, None)).await?)
    }

    /// Forwards a message from the kernel to the host.
    fn forward_event(&mut self, happened: BridgeEvent) {
        let parent = |message: &JupyterMessage| message.parent_header.as_ref().map(|parent| parent.msg_id.clone());
        match happened {
            BridgeEvent::Answered(message) => {
                let Some(id) = parent(&message).filter(|id| id != BRIDGE_MESSAGE_ID) else { return };
                if let Some(at) = self.quiet_queries.iter().position(|(known, _)| *known == id) {
                    let (_, asked) = self.quiet_queries.swap_remove(at);
                    write_to_host(&asked.reply(&id, Some(&message)));
                    return;
                }
                match self.requests.get_mut(&id) {
                    Some(request) if !request.idle => request.reply = Some(message),
                    Some(_) => self.finish_request(&id, &message),
                    None => write_to_host(&message),
                }
            }
            BridgeEvent::Said(message) => {
                let Some(id) = parent(&message).filter(|id| id != BRIDGE_MESSAGE_ID) else { return };
                let state = match &message.content {
                    Content::Status(status) => Some(&status.execution_state),
                    _ => None,
                };
                let idle = state == Some(&ExecutionState::Idle);
                if idle && let Some(request) = self.requests.get_mut(&id) {
                    request.idle = true;
                    if let Some(reply) = request.reply.take() {
                        self.finish_request(&id, &reply);
                    }
                    return;
                }
                if let Content::InputRequest(question) = &message.content {
                    self.pending_input = Some((id, question.clone()));
                }
                write_to_host(&message);
            }
            BridgeEvent::Asked(_) | BridgeEvent::Gone | BridgeEvent::Ended(_) => {}
        }
    }

    /// Finishes a request: sends the pager pages of its reply as display data, then the reply, then the idle status.
    fn finish_request(&mut self, id: &str, reply: &JupyterMessage) {
        self.requests.remove(id);
        if let Content::ExecuteReply(content) = &reply.content {
            for payload in &content.payload {
                if let Payload::Page { data, .. } = payload {
                    write_to_host(&bridge_message(id, "display_data", json!({"data": data, "metadata": {}})));
                }
            }
        }
        write_to_host(reply);
        write_to_host(&bridge_message(id, "status", json!({"execution_state": "idle"})));
    }
}

/// Returns a message of the bridge itself that answers the request `parent`.
fn bridge_message(parent: &str, kind: &str, content: Value) -> Value {
    json!({"header": {"msg_type": kind}, "parent_header": {"msg_id": parent}, "content": content})
}

/// Name of the user expression that sets up how values are shown.
const SETUP_EXPRESSION: &str = "setup";
/// Name of the user expression that answers a query.
const FOUND_EXPRESSION: &str = "found";

/// A query that a silent expression answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuietQuery {
    Variables,
    Values,
    Redraw,
    FrameRows,
}

impl QuietQuery {
    /// Returns the reply to the host, built from the kernel's message. Without one, or without a result, it's an error.
    fn reply(self, id: &str, said: Option<&JupyterMessage>) -> Value {
        let (kind, key) = match self {
            QuietQuery::Variables => ("variables_reply", "variables"),
            QuietQuery::Values => ("values_reply", "values"),
            QuietQuery::Redraw => ("redraw_reply", "figure"),
            QuietQuery::FrameRows => ("frame_rows_reply", "frame"),
        };
        let content = said.and_then(|said| serde_json::to_value(&said.content).ok()).unwrap_or_default();
        let found = content.pointer(&format!("/user_expressions/{FOUND_EXPRESSION}/data/application~1json/found"));
        match found {
            Some(found) => bridge_message(id, kind, json!({"status": "ok", key: found})),
            None => bridge_message(id, kind, json!({"status": "error"})),
        }
    }
}

/// Writes one message to the host. A failure means that the host has disconnected, which the end of input shows as
/// well.
fn write_to_host(message: &impl serde::Serialize) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        // Ignored: see the function's comment.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
