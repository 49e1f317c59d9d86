//! The seed's message protocol at `/api/v1/agent`: JSON-RPC 2.0 over WebSocket, for other front ends of the agent.
//!
//! A client calls `init`, `load_repo`, `chat`, `cancel`, `approve_tool`, `approve_preview` and `approve_action`. It
//! gets `ready`, `step`, `tool_pending`, `preview_component`, `approval_pending` and `done`. Browsers can't send a
//! token with a WebSocket, so `init` can bring it as `apiKey`.

use crate::access_tokens::AccessToken;
use crate::agent_socket_calls::{FrontEndPlace, SocketCalls, TOO_MANY_FRONT_ENDS};
use crate::client_rates::ClientNetwork;
use crate::clock::unix_millis;
use crate::http_state::HttpState;
use crate::problem::ProblemDetails;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Maximum length of a client's message in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Longer ones are received up to this length, so that the client gets to read why it's disconnected.
const MAX_RECEIVED_BYTES: usize = 4 << 20;
/// Number of messages that may wait to be sent. A client that reads more slowly is disconnected.
const MAX_QUEUED_MESSAGES: usize = 4_096;
/// Maximum number of calls of a client that are performed at the same time.
const MAX_CONCURRENT_CALLS: usize = 8;
/// Time that a message may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Time in which a client without a token in its request must call `init` with one.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between signs of life, and the silence after which a client is gone.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const MAX_SILENCE: Duration = Duration::from_secs(90);

/// JSON-RPC 2.0's codes, and our own.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The token is missing, unknown, or lacks a scope.
pub(crate) const NOT_ALLOWED: i64 = -32_001;
/// The workspace refused, or the work failed.
pub(crate) const CALL_FAILED: i64 = -32_000;

/// The failure of a call, as the protocol answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SocketCallError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl SocketCallError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> SocketCallError {
        SocketCallError { code, message: message.into() }
    }
}

impl From<ProblemDetails> for SocketCallError {
    fn from(problem: ProblemDetails) -> SocketCallError {
        let code = match problem.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => NOT_ALLOWED,
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => INVALID_PARAMS,
            _ => CALL_FAILED,
        };
        SocketCallError::new(code, problem.detail())
    }
}

/// A call of a client. Without an id it's a notification, which gets no answer.
#[derive(Debug, Deserialize)]
pub(crate) struct SocketCall {
    jsonrpc: String,
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default)]
    id: Option<Value>,
}

#[derive(Serialize)]
struct SocketAnswer<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a SocketCallError>,
}

#[derive(Serialize)]
struct SocketEvent<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a Value,
}

/// The way to a client. What it's told waits in a bounded queue; a client that doesn't read is disconnected.
#[derive(Clone)]
pub(crate) struct SocketSender {
    queue: mpsc::Sender<Message>,
    is_slow: Arc<AtomicBool>,
}

impl SocketSender {
    fn send(&self, message: &impl Serialize) {
        let text = serde_json::to_string(message).unwrap_or_default();
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(Message::Text(text.into())) {
            self.is_slow.store(true, Ordering::Relaxed);
        }
    }

    /// Tells the client what has happened.
    pub(crate) fn tell(&self, method: &str, params: &Value) {
        self.send(&SocketEvent { jsonrpc: "2.0", method, params });
    }

    fn answer(&self, id: &Value, result: &Result<Value, SocketCallError>) {
        let (result, error) = (result.as_ref().ok(), result.as_ref().err());
        self.send(&SocketAnswer { jsonrpc: "2.0", id, result, error });
    }
}

/// Reads a client's message.
fn parse_call(text: &str) -> Result<SocketCall, SocketCallError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| SocketCallError::new(PARSE_ERROR, format!("the message isn't JSON: {error}")))?;
    let wrong =
        |why: &str| SocketCallError::new(INVALID_REQUEST, format!("the message isn't a JSON-RPC 2.0 call: {why}"));
    if !value.is_object() {
        return Err(wrong("a call is an object"));
    }
    let call: SocketCall = serde_json::from_value(value).map_err(|error| wrong(&error.to_string()))?;
    if call.jsonrpc != "2.0" {
        return Err(wrong("`jsonrpc` is \"2.0\""));
    }
    if call.id.as_ref().is_some_and(|id| !id.is_string() && !id.is_number() && !id.is_null()) {
        return Err(wrong("`id` is a string or a number"));
    }
    Ok(call)
}

/// Opens a socket.
pub(crate) async fn open_agent_socket(
    State(state): State<Arc<HttpState>>,
    token: Option<Extension<AccessToken>>,
    Extension(network): Extension<ClientNetwork>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(_) => {
            let why = "this path speaks WebSocket; the guide's page on serving describes the messages";
            return ProblemDetails::new(StatusCode::UPGRADE_REQUIRED, why)
                .with_header(header::CONNECTION, "upgrade")
                .with_header(header::UPGRADE, "websocket")
                .with_header(header::SEC_WEBSOCKET_VERSION, "13")
                .into_response();
        }
    };
    // Who doesn't say who it is takes no place from those who do.
    let place: Option<FrontEndPlace> = match token {
        Some(_) => state.sockets.clone().try_acquire_owned().ok().map(|place| Box::new(place) as FrontEndPlace),
        None => state.unnamed_sockets.take(network).map(|place| Box::new(place) as FrontEndPlace),
    };
    let Some(place) = place else {
        return ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_FRONT_ENDS).into_response();
    };
    upgrade
        .max_message_size(MAX_RECEIVED_BYTES)
        .max_frame_size(MAX_RECEIVED_BYTES)
        .on_upgrade(move |socket| serve_socket(state, (token.map(|Extension(token)| token), network), socket, place))
}

async fn serve_socket(
    state: Arc<HttpState>,
    client: (Option<AccessToken>, ClientNetwork),
    socket: WebSocket,
    place: FrontEndPlace,
) {
    let (mut sink, mut stream) = socket.split();
    let (queue, mut queued) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let is_slow = Arc::new(AtomicBool::new(false));
    let sender = SocketSender { queue: queue.clone(), is_slow: is_slow.clone() };
    let calls = Arc::new(SocketCalls::new(state.clone(), client, sender.clone(), place));
    let writer = tokio::spawn(async move {
        while let Some(message) = queued.recv().await {
            let is_last = matches!(message, Message::Close(_));
            let sent = tokio::time::timeout(SEND_TIMEOUT, sink.send(message)).await;
            if is_last || !matches!(sent, Ok(Ok(()))) {
                break;
            }
        }
    });
    let (opened, mut heard) = (Instant::now(), Instant::now());
    // Calls end with the connection, so that a clone isn't waited for by nobody.
    let mut running = JoinSet::new();
    // Closed when the last `init` is over.
    let mut last_init: Option<watch::Receiver<()>> = None;
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let (code, why) = loop {
        let message = tokio::select! {
            message = stream.next() => message,
            Some(_) = running.join_next(), if !running.is_empty() => continue,
            _ = pings.tick() => {
                match calls.token_id() {
                    None if opened.elapsed() >= INIT_TIMEOUT && !calls.is_beginning() => {
                        break (close_code::POLICY, "call init with a token as apiKey first");
                    }
                    Some(token) if !state.tokens.holds(&token, unix_millis()) => {
                        break (close_code::POLICY, "the token was revoked or has expired");
                    }
                    _ => {}
                }
                if heard.elapsed() > MAX_SILENCE || writer.is_finished() {
                    break (close_code::AWAY, "the client doesn't answer");
                }
                if is_slow.load(Ordering::Relaxed) {
                    break (close_code::AGAIN, "messages came faster than they were read");
                }
                // A full queue is noticed at the next message.
                let _ = queue.try_send(Message::Ping(Vec::new().into()));
                continue;
            }
        };
        heard = Instant::now();
        match message {
            Some(Ok(Message::Text(text))) if text.len() > MAX_MESSAGE_BYTES => {
                break (close_code::SIZE, "a message has at most 1 MiB");
            }
            Some(Ok(Message::Text(text))) => {
                let call = match parse_call(&text) {
                    Ok(call) => call,
                    Err(error) => {
                        sender.answer(&Value::Null, &Err(error));
                        continue;
                    }
                };
                while running.len() >= MAX_CONCURRENT_CALLS {
                    running.join_next().await;
                }
                let (calls, sender) = (calls.clone(), sender.clone());
                let before = last_init.clone();
                let ending = (call.method == "init").then(|| {
                    let (ending, end) = watch::channel(());
                    last_init = Some(end);
                    ending
                });
                running.spawn(async move {
                    // Clients may send what follows `init` without waiting for its answer.
                    if let Some(mut before) = before {
                        while before.changed().await.is_ok() {}
                    }
                    let result = calls.perform(&call).await;
                    if let Some(id) = &call.id {
                        sender.answer(id, &result);
                    }
                    if let Ok(result) = &result {
                        calls.tell_after(&call, result);
                    }
                    drop(ending);
                });
            }
            Some(Ok(Message::Binary(_))) => break (close_code::UNSUPPORTED, "messages are text"),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) | None => break (close_code::NORMAL, ""),
            // Far too long, no UTF-8, or against the protocol in another way.
            Some(Err(_)) => break (close_code::PROTOCOL, "that is no message of WebSocket, or it's far too long"),
        }
    };
    running.shutdown().await;
    // Nobody is left to read it if the queue is full.
    let _ = queue.try_send(Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(why) })));
    let _ = tokio::time::timeout(SEND_TIMEOUT, writer).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_call_is_told_with_its_code() {
        for (text, code) in [
            ("{", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("[\"2.0\", \"init\", {}, 1]", INVALID_REQUEST),
            ("{\"jsonrpc\":\"1.0\",\"method\":\"init\"}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"id\":1}", INVALID_REQUEST),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"init\",\"id\":{}}", INVALID_REQUEST),
        ] {
            assert_eq!(parse_call(text).expect_err(text).code, code, "{text}");
        }
        let call = parse_call("{\"jsonrpc\":\"2.0\",\"method\":\"init\",\"params\":{\"a\":1}}").expect("a call");
        assert!(call.method == "init" && call.id.is_none() && call.params["a"] == 1);
    }
}
