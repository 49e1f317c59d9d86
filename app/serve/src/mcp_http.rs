//! MCP over streamable HTTP at `/mcp`: the same server as on standard input and output, with what the token allows.

use crate::access_tokens::{AccessToken, TokenScope, TokenStore};
use crate::approval_requests::ApprovalRequests;
use crate::command_calls::WorkspaceCommands;
use crate::event_feed::EventFeed;
use crate::http_state::{ApiCaller, HttpState, MAX_BODY_BYTES, TextBody};
use crate::mcp_server::{McpPermissions, NotebookMcpServer, WritePermission};
use crate::problem::ProblemDetails;
use crate::token_lease::TokenLease;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of sessions of one token that are open at the same time. One without requests ends by itself.
const MAX_TOKEN_SESSIONS: usize = 100;

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

/// Serves a request of an MCP client.
pub(crate) async fn serve_mcp_request(
    State(state): State<Arc<HttpState>>,
    caller: ApiCaller,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
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
    let ends_session = parts.method == Method::DELETE;
    let mut response = service.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new);
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // Clients take 202 for a session that may still be there.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
