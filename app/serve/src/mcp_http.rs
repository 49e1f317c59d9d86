//! MCP over streamable HTTP at `/mcp`: the same server as on standard input and output, with what the token allows.

use crate::access_tokens::{AccessToken, TokenScope};
use crate::command_calls::WorkspaceCommands;
use crate::event_feed::EventFeed;
use crate::http_state::{ApiCaller, HttpState, MAX_BODY_BYTES, TextBody};
use crate::mcp_server::{McpPermissions, NotebookMcpServer};
use crate::problem::ProblemDetails;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

type TokenMcpService = StreamableHttpService<NotebookMcpServer, LocalSessionManager>;

/// Returns the service that speaks MCP over HTTP, with a new server for each session. What is in front of it must check
/// `Host`, `Origin` and the token.
pub fn mcp_http_service<H: ServerHandler>(
    new_server: impl Fn() -> H + Send + Sync + 'static,
) -> StreamableHttpService<H, LocalSessionManager> {
    let config =
        StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(MAX_BODY_BYTES);
    StreamableHttpService::new(move || Ok(new_server()), Arc::new(LocalSessionManager::default()), config)
}

/// One MCP service for each token, so that no token reaches the sessions of another.
pub(crate) struct HttpMcpServers {
    commands: Arc<dyn WorkspaceCommands>,
    feed: Arc<EventFeed>,
    services: Mutex<HashMap<String, TokenMcpService>>,
}

impl HttpMcpServers {
    pub(crate) fn new(commands: Arc<dyn WorkspaceCommands>, feed: Arc<EventFeed>) -> HttpMcpServers {
        HttpMcpServers { commands, feed, services: Mutex::default() }
    }

    fn service(&self, token: &AccessToken) -> TokenMcpService {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let permissions = McpPermissions {
                write: token.allows(TokenScope::Write),
                run: token.allows(TokenScope::Run),
                agent: token.allows(TokenScope::Agent),
                approve: token.allows(TokenScope::Approve),
            };
            let server = NotebookMcpServer::new(self.commands.clone(), self.feed.clone(), permissions);
            mcp_http_service(move || server.new_session())
        };
        services.entry(token.id.clone()).or_insert_with(new).clone()
    }
}

/// Serves a request of an MCP client.
pub(crate) async fn serve_mcp_request(
    State(state): State<Arc<HttpState>>,
    caller: ApiCaller,
    request: Request,
) -> Response {
    if caller.token.volume.is_some() {
        let why = "a token for one volume can't be used for MCP; create one without --volume";
        return ProblemDetails::new(StatusCode::FORBIDDEN, why).into_response();
    }
    let (parts, body) = request.into_parts();
    // The body is received here, within the limits of size and time.
    let body = match TextBody::from_request(Request::from_parts(parts.clone(), body), &state).await {
        Ok(TextBody(body)) => Body::from(body),
        Err(problem) => return problem.into_response(),
    };
    let service = state.mcp.service(&caller.token);
    let ends_session = parts.method == Method::DELETE;
    let mut response = service.handle(Request::from_parts(parts, body)).await.map(Body::new);
    if ends_session && response.status() == StatusCode::ACCEPTED {
        // Clients take 202 for a session that may still be there.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
