//! MCP over streamable HTTP at `/mcp`: the same server as on standard input and output, with what the token allows.

use crate::access_tokens::{AccessToken, TokenScope, TokenStore};
use crate::approval_requests::ApprovalRequests;
use crate::command_calls::WorkspaceCommands;
use crate::event_feed::EventFeed;
use crate::http_state::{ApiCaller, HttpState, MAX_BODY_BYTES, TextBody};
use crate::mcp_batches::MAX_BATCH_MESSAGES;
use crate::mcp_server::{McpPermissions, NotebookMcpServer, WritePermission};
use crate::mcp_stdio::{INVALID_REQUEST, PARSE_ERROR};
use crate::problem::ProblemDetails;
use crate::token_lease::TokenLease;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of sessions of one token that are open at the same time. One without requests ends by itself.
const MAX_TOKEN_SESSIONS: usize = 100;

/// The last version of the protocol that has batches, and the header that says which one a client speaks.
const LAST_BATCH_VERSION: &str = "2025-03-26";
const VERSION_HEADER: &str = "mcp-protocol-version";
const EVENT_STREAM_TYPE: &str = "text/event-stream";
/// What clients must accept.
const ACCEPTED_TYPES: &str = "application/json, text/event-stream";

/// The service of a token, with its sessions.
#[derive(Clone)]
struct TokenMcpService {
    service: StreamableHttpService<NotebookMcpServer, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

/// Returns the service that speaks MCP over HTTP, with a new server for each session. It answers under names of this
/// machine only (`Host`). What is in front of it must check `Origin` and the token.
pub fn mcp_http_service<H: ServerHandler>(
    new_server: impl Fn() -> H + Send + Sync + 'static,
) -> StreamableHttpService<H, LocalSessionManager> {
    StreamableHttpService::new(move || Ok(new_server()), Arc::new(LocalSessionManager::default()), http_config())
}

fn http_config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default().with_max_request_body_bytes(MAX_BODY_BYTES)
}

/// The services by the id of their token.
type ServicesByToken = Arc<Mutex<HashMap<String, TokenMcpService>>>;

/// One MCP service for each token, so that no token reaches the sessions of another. It ends with its token.
pub(crate) struct HttpMcpServers {
    commands: Arc<dyn WorkspaceCommands>,
    feed: Arc<EventFeed>,
    tokens: TokenStore,
    services: ServicesByToken,
}

fn lock(services: &ServicesByToken) -> MutexGuard<'_, HashMap<String, TokenMcpService>> {
    services.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpMcpServers {
    pub(crate) fn new(
        commands: Arc<dyn WorkspaceCommands>,
        feed: Arc<EventFeed>,
        tokens: TokenStore,
    ) -> HttpMcpServers {
        HttpMcpServers { commands, feed, tokens, services: Arc::default() }
    }

    fn service(&self, token: &AccessToken, approvals: &ApprovalRequests) -> TokenMcpService {
        let mut services = lock(&self.services);
        services.entry(token.id.clone()).or_insert_with(|| self.new_service(token, approvals)).clone()
    }

    /// Starts the service of a token. When the token no longer holds, its sessions and streams end.
    fn new_service(&self, token: &AccessToken, approvals: &ApprovalRequests) -> TokenMcpService {
        let write = match (token.allows(TokenScope::Write), token.allows(TokenScope::Suggest)) {
            (true, _) => WritePermission::Yes,
            (false, true) => WritePermission::AfterApproval,
            (false, false) => WritePermission::No,
        };
        let permissions = McpPermissions {
            write,
            approve_writes: token.allows(TokenScope::Approve),
            approval_timeout: None,
            run: token.allows(TokenScope::Run),
            agent: token.allows(TokenScope::Agent),
            approve: token.allows(TokenScope::Approve),
        };
        let lease = TokenLease::new(self.tokens.clone(), token.id.clone());
        let server = NotebookMcpServer::new(self.commands.clone(), self.feed.clone(), permissions)
            .with_approvals(approvals.clone())
            .with_lease(lease.clone())
            .with_volume(token.volume.clone());
        // The guard has checked the names, of which users may add some.
        let config = http_config().disable_allowed_hosts();
        let (end, services, id) = (config.cancellation_token.clone(), self.services.clone(), token.id.clone());
        tokio::spawn(async move {
            lease.follow_token().await;
            lock(&services).remove(&id);
            end.cancel();
        });
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(server.new_session()), sessions.clone(), config);
        TokenMcpService { service, sessions }
    }
}

/// Returns whether a message begins a session.
fn begins_session(message: &str) -> bool {
    serde_json::from_str::<Value>(message).is_ok_and(|message| message["method"] == "initialize")
}

/// Returns the messages of a batch; `None` if the body is something else, or the client's version has no batches.
fn batch_messages(headers: &HeaderMap, body: &str) -> Option<Vec<Value>> {
    let version = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    if !body.trim_start().starts_with('[') || version.is_some_and(|version| version > LAST_BATCH_VERSION) {
        return None;
    }
    serde_json::from_str(body).ok().filter(|messages: &Vec<Value>| !messages.is_empty())
}

/// Names what the library sends for clients that accept everything.
fn name_accepted_types(headers: &mut HeaderMap) {
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_any = |range: &str| range.split(';').next().is_some_and(|range| range.trim() == "*/*");
    if ranges.flat_map(|value| value.split(',')).any(is_any) {
        headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPTED_TYPES));
    }
}

fn has_json_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json"))
}

/// Returns the answer to a body that isn't a message, as JSON-RPC has it.
fn unreadable_message(body: &[u8]) -> Response {
    let (code, message) = match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => (PARSE_ERROR, format!("the body isn't JSON: {error}")),
        Ok(_) => (INVALID_REQUEST, "the body isn't a message of JSON-RPC 2.0".to_owned()),
    };
    let answer = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    (StatusCode::BAD_REQUEST, Json(answer)).into_response()
}

/// Serves the messages of a batch. The answers to its requests come in one stream, in the order in which they're ready.
async fn serve_batch(
    service: &StreamableHttpService<NotebookMcpServer, LocalSessionManager>,
    parts: Parts,
    messages: Vec<Value>,
) -> Response {
    let refused = |why: String| ProblemDetails::new(StatusCode::BAD_REQUEST, why).into_response();
    if messages.len() > MAX_BATCH_MESSAGES {
        return refused(format!("a batch has at most {MAX_BATCH_MESSAGES} messages"));
    }
    if messages.iter().any(|message| message["method"] == "initialize") {
        return refused("`initialize` can't be in a batch; send it alone".to_owned());
    }
    let mut answers = Vec::new();
    for message in messages {
        let mut parts = parts.clone();
        // It's the length of the batch.
        parts.headers.remove(header::CONTENT_LENGTH);
        let request = Request::from_parts(parts, Body::from(message.to_string()));
        let response = service.handle(request).await.map(Body::new);
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes() == EVENT_STREAM_TYPE.as_bytes());
        match response.status() {
            StatusCode::ACCEPTED => {}
            StatusCode::OK if is_stream => answers.push(response.into_body().into_data_stream()),
            _ => return response,
        }
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    // Each part of a body is a whole event.
    let body = Body::from_stream(stream::select_all(answers));
    ([(header::CONTENT_TYPE, EVENT_STREAM_TYPE)], body).into_response()
}

/// Serves a request of an MCP client.
pub(crate) async fn serve_mcp_request(
    State(state): State<Arc<HttpState>>,
    caller: ApiCaller,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    name_accepted_types(&mut parts.headers);
    // The body is received here, within the limits of size and time.
    let body = match TextBody::from_request(Request::from_parts(parts.clone(), body), &state).await {
        Ok(TextBody(body)) => body,
        Err(problem) => return problem.into_response(),
    };
    let TokenMcpService { service, sessions } = state.mcp.service(&caller.token, &state.approvals);
    if sessions.sessions.read().await.len() >= MAX_TOKEN_SESSIONS && begins_session(&body) {
        let why = "too many MCP sessions of this token are open; end one with DELETE, or wait";
        return ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, why).into_response();
    }
    if parts.method == Method::POST
        && let Some(messages) = batch_messages(&parts.headers, &body)
    {
        return serve_batch(&service, parts, messages).await;
    }
    let ends_session = parts.method == Method::DELETE;
    let body = Bytes::from(body);
    let mut response =
        service.handle(Request::from_parts(parts.clone(), Body::from(body.clone()))).await.map(Body::new);
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && has_json_type(&parts.headers) {
        // The library says so of messages that it can't read.
        return unreadable_message(&body);
    }
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // Clients take 202 for a session that may still be there.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
