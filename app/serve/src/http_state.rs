//! What the handlers of HTTP requests share, and how they perform commands.

use crate::access_tokens::{AccessToken, TokenScope, TokenStore};
use crate::approval_requests::ApprovalRequests;
use crate::audit_log::AuditLog;
use crate::client_rates::{KeyedPlaces, NetworkPlaces, NetworkRates};
use crate::command_calls::{CommandCall, CommandOutcome, WorkspaceCommands};
use crate::companion::companion_state::CompanionState;
use crate::event_feed::EventFeed;
use crate::kept_answers::KeptAnswers;
use crate::mcp_http::HttpMcpServers;
use crate::pairing::PairingCodes;
use crate::problem::ProblemDetails;
use crate::task_queue::TaskQueue;
use crate::tool_arguments::ToolCallError;
use crate::tool_calls::{CallNews, ToolCallContext};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use futures_util::StreamExt;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Maximum number of commands that run at the same time; other requests wait.
const MAX_CONCURRENT_COMMANDS: usize = 8;
/// Maximum time that a request waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a request's body in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 9 << 20;
/// Of a longer body, this much is received before the answer.
const MAX_DROPPED_BYTES: usize = 64 << 20;
/// Maximum time to receive a request's body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// Requests a second of one token, and how many may come at once.
const REQUESTS_PER_SECOND: u32 = 200;
const REQUEST_BURST: u32 = 1_000;
/// Requests a second of one network without a valid token, and how many may come at once.
const REFUSALS_PER_SECOND: u32 = 20;
const REFUSAL_BURST: u32 = 200;
/// Requests a second of one network for what needs no token, and how many may come at once.
const OPEN_REQUESTS_PER_SECOND: u32 = 50;
const OPEN_REQUEST_BURST: u32 = 400;

/// Maximum number of requests with a body at the same time, of all and of one token. A body has up to 33 MB.
const MAX_BODIES: usize = 128;
const MAX_BODIES_OF_TOKEN: usize = 64;
/// Maximum number of connections over TCP, of all and of one network. Requests are refused before.
const MAX_PLACES: usize = 8_192;
const MAX_PLACES_OF_NETWORK: usize = 2_304;
/// Maximum number of front ends that are connected at `/api/v1/agent`.
const MAX_AGENT_SOCKETS: usize = 32;
/// Maximum number of connections there that haven't shown a token yet, of all and of one network.
const MAX_UNNAMED_SOCKETS: usize = 64;
const MAX_UNNAMED_SOCKETS_OF_NETWORK: usize = 16;

/// What the handlers of HTTP requests share.
pub(crate) struct HttpState {
    pub(crate) commands: Arc<dyn WorkspaceCommands>,
    pub(crate) tokens: TokenStore,
    pub(crate) pairing: PairingCodes,
    pub(crate) companion: CompanionState,
    pub(crate) audit: AuditLog,
    /// Names under which clients reach the server.
    pub(crate) host_names: Vec<String>,
    pub(crate) has_tls: bool,
    pub(crate) rates: DefaultKeyedRateLimiter<String>,
    pub(crate) refusals: NetworkRates,
    /// The rate of requests for what needs no token.
    pub(crate) open_requests: NetworkRates,
    pub(crate) feed: Arc<EventFeed>,
    pub(crate) tasks: Arc<TaskQueue>,
    pub(crate) mcp: HttpMcpServers,
    pub(crate) answers: KeptAnswers,
    /// What programs ask and wait for.
    pub(crate) approvals: ApprovalRequests,
    #[cfg(feature = "grpc")]
    pub(crate) grpc: crate::grpc::grpc_state::GrpcState,
    pub(crate) slots: Arc<Semaphore>,
    /// One permit for each front end that may be connected at `/api/v1/agent`.
    pub(crate) sockets: Arc<Semaphore>,
    /// One place for each connection there that hasn't shown a token yet.
    pub(crate) unnamed_sockets: Arc<NetworkPlaces>,
    /// Folder of the workspace.
    pub(crate) workspace: PathBuf,
    /// One place for each request with a body, by the id of its token.
    pub(crate) body_places: Arc<KeyedPlaces<String>>,
    /// One place for each connection over TCP.
    pub(crate) connection_places: Arc<NetworkPlaces>,
    /// Counts open connections; set when the servers start.
    pub(crate) connection_count: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
}

impl HttpState {
    pub(crate) fn new(
        commands: Arc<dyn WorkspaceCommands>,
        workspace: &std::path::Path,
        host_names: Vec<String>,
        has_tls: bool,
    ) -> HttpState {
        let count = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = |rate, burst| Quota::per_second(count(rate)).allow_burst(count(burst));
        let feed = Arc::new(EventFeed::new(commands.clone()));
        let approvals = ApprovalRequests::new(workspace);
        HttpState {
            tokens: TokenStore::new(workspace),
            pairing: PairingCodes::new(workspace),
            companion: CompanionState::new(workspace),
            audit: AuditLog::new(workspace),
            host_names,
            has_tls,
            rates: RateLimiter::keyed(quota(REQUESTS_PER_SECOND, REQUEST_BURST)),
            refusals: NetworkRates::new(quota(REFUSALS_PER_SECOND, REFUSAL_BURST)),
            open_requests: NetworkRates::new(quota(OPEN_REQUESTS_PER_SECOND, OPEN_REQUEST_BURST)),
            feed: feed.clone(),
            tasks: Arc::new(TaskQueue::new(commands.clone())),
            mcp: HttpMcpServers::new(commands.clone(), feed, TokenStore::new(workspace)),
            answers: KeptAnswers::new(workspace),
            #[cfg(feature = "grpc")]
            grpc: crate::grpc::grpc_state::GrpcState::new(approvals.clone()),
            approvals,
            slots: Arc::new(Semaphore::new(MAX_CONCURRENT_COMMANDS)),
            sockets: Arc::new(Semaphore::new(MAX_AGENT_SOCKETS)),
            unnamed_sockets: NetworkPlaces::new(MAX_UNNAMED_SOCKETS, MAX_UNNAMED_SOCKETS_OF_NETWORK),
            workspace: std::path::absolute(workspace).unwrap_or_else(|_| workspace.to_owned()),
            body_places: KeyedPlaces::new(MAX_BODIES, MAX_BODIES_OF_TOKEN),
            connection_places: NetworkPlaces::new(MAX_PLACES, MAX_PLACES_OF_NETWORK),
            connection_count: OnceLock::new(),
            commands,
        }
    }

    /// Returns the number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.connection_count.get().map_or(0, |count| count())
    }
}

/// Sets its flag when it's dropped: the request has ended or was given up.
struct CancelledOnDrop(Arc<AtomicBool>);

impl Drop for CancelledOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The program that makes a request: its token, and the way to the workspace.
#[derive(Clone)]
pub(crate) struct ApiCaller {
    pub(crate) state: Arc<HttpState>,
    pub(crate) token: AccessToken,
}

impl FromRequestParts<Arc<HttpState>> for ApiCaller {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<ApiCaller, ProblemDetails> {
        let token = parts.extensions.get::<AccessToken>().cloned();
        let token = token.ok_or_else(|| ProblemDetails::new(StatusCode::UNAUTHORIZED, "send a token"))?;
        Ok(ApiCaller { state: state.clone(), token })
    }
}

impl ApiCaller {
    /// Refuses a token for one volume where the request concerns the whole server.
    pub(crate) fn ensure_all_volumes(&self) -> Result<(), ProblemDetails> {
        match self.token.volume {
            None => Ok(()),
            Some(_) => {
                let why = "a token for one volume can't see or change tokens and the log, which concern all volumes";
                Err(ProblemDetails::new(StatusCode::FORBIDDEN, why))
            }
        }
    }

    /// Returns a message for an agent. Only who may decide about approvals may call prompts and include resources of
    /// MCP servers, because these calls aren't asked about.
    pub(crate) fn sent_message(&self, text: &str) -> String {
        match self.token.allows(TokenScope::Approve) {
            true => text.to_owned(),
            false => agent::server_material::without_server_calls(text),
        }
    }

    /// Performs blocking work on a thread of its own. It's told when the client goes away.
    pub(crate) async fn perform_calls<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ToolCallContext<'_>) -> R + Send + 'static,
    ) -> Result<R, ProblemDetails> {
        let busy = || ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the workspace is busy; try again");
        let turn = tokio::time::timeout(TURN_TIMEOUT, self.state.slots.clone().acquire_owned()).await;
        let slot = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let _guard = CancelledOnDrop(cancelled.clone());
        let (commands, only) = (self.state.commands.clone(), self.token.volume.clone());
        let job = tokio::task::spawn_blocking(move || {
            // The slot stays taken until the work has ended, also if nobody waits for it.
            let _slot = slot;
            let on_news = &mut |_: CallNews| {};
            work(&mut ToolCallContext { commands: &*commands, only_volume: only.as_deref(), cancelled, on_news })
        });
        let failed = |_| ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the request failed inside Tracebook");
        job.await.map_err(failed)
    }

    /// Performs blocking work that can fail for a reason.
    pub(crate) async fn perform_tool<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ToolCallContext<'_>) -> Result<R, ToolCallError> + Send + 'static,
    ) -> Result<R, ProblemDetails> {
        Ok(self.perform_calls(work).await??)
    }

    /// Performs a command, whatever its exit code.
    pub(crate) async fn perform(&self, call: CommandCall) -> Result<CommandOutcome, ProblemDetails> {
        if call.words.iter().any(|word| word.contains('\0')) {
            return Err(ProblemDetails::unprocessable("names and texts have no NUL characters"));
        }
        self.perform_calls(move |calls| calls.perform(call)).await
    }

    /// Performs a command that must succeed.
    pub(crate) async fn perform_ok(&self, call: CommandCall) -> Result<CommandOutcome, ProblemDetails> {
        let outcome = self.perform(call).await?;
        match outcome.code {
            0 if !outcome.is_cut => Ok(outcome),
            _ => Err(ProblemDetails::of_outcome(&outcome)),
        }
    }

    /// Returns the volume that a request may use: what it names, limited by the token.
    pub(crate) fn volume(&self, named: Option<String>) -> Result<Option<String>, ProblemDetails> {
        match (&self.token.volume, named) {
            (None, named) => Ok(named),
            (Some(own), None) => Ok(Some(own.clone())),
            (Some(own), Some(named)) if *own == named => Ok(Some(named)),
            (Some(_), Some(_)) => Err(ProblemDetails::new(StatusCode::FORBIDDEN, "the token is for another volume")),
        }
    }

    /// Returns whether the token reaches a volume by its name.
    pub(crate) fn reaches(&self, volume: &Value) -> bool {
        self.token.volume.as_ref().is_none_or(|own| volume.as_str() == Some(own.as_str()))
    }

    /// Returns the volumes that the token reaches.
    pub(crate) async fn volumes(&self) -> Result<Vec<Value>, ProblemDetails> {
        let call = CommandCall::json("ls").flag("volumes", true);
        let all = self.perform_ok(call).await?.value().unwrap_or_default();
        let all = if let Value::Array(all) = all { all } else { Vec::new() };
        Ok(all.into_iter().filter(|volume| self.reaches(&volume["name"])).collect())
    }

    /// Checks that the token reaches a volume, and that there is one of this name.
    pub(crate) async fn needed_volume(&self, name: &str) -> Result<(), ProblemDetails> {
        self.volume(Some(name.to_owned()))?;
        match self.volumes().await?.iter().any(|known| known["name"] == name) {
            true => Ok(()),
            false => Err(ProblemDetails::not_found(format!("there is no volume {name}"))),
        }
    }

    /// Returns the volume of a request's `project`: what it names, limited by the token, and known.
    pub(crate) async fn project(&self, named: Option<String>) -> Result<Option<String>, ProblemDetails> {
        if let Some(name) = &named {
            self.needed_volume(name).await?;
        }
        self.volume(named)
    }

    /// Returns the id of the only volume that the token reaches; `None` if it reaches all.
    pub(crate) async fn only_volume_id(&self) -> Result<Option<String>, ProblemDetails> {
        if self.token.volume.is_none() {
            return Ok(None);
        }
        let id = self.volumes().await?.first().and_then(|volume| volume["id"].as_str().map(str::to_owned));
        id.map(Some).ok_or_else(|| ProblemDetails::new(StatusCode::FORBIDDEN, "the token's volume is not here"))
    }
}

/// Query parameters, or a problem that says what is wrong with them.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<HttpState>> for UrlQuery<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<UrlQuery<T>, ProblemDetails> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| UrlQuery(query)).map_err(|error| {
            let said = error.body_text();
            let what = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
            let why = format!("the query doesn't fit: {what}; /api/v1/docs lists its parameters");
            ProblemDetails::new(StatusCode::BAD_REQUEST, why)
        })
    }
}

/// Parts of the path, or a problem that says what is wrong with them.
pub(crate) struct UrlPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<HttpState>> for UrlPath<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<UrlPath<T>, ProblemDetails> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(path)| UrlPath(path))
            .map_err(|error| ProblemDetails::new(StatusCode::BAD_REQUEST, error.body_text()))
    }
}

/// Receives a body. Of one that is too large, more is read and dropped, so that the client gets to read why.
pub(crate) async fn receive_body(body: Body, max: usize) -> Result<Vec<u8>, ProblemDetails> {
    let (mut stream, mut bytes, mut size) = (body.into_data_stream(), Vec::new(), 0_usize);
    while let Some(part) = stream.next().await {
        let broken = |_| ProblemDetails::new(StatusCode::BAD_REQUEST, "the body did not arrive whole");
        let part = part.map_err(broken)?;
        size = size.saturating_add(part.len());
        if size <= max {
            bytes.extend_from_slice(&part);
        } else if size > MAX_DROPPED_BYTES {
            break;
        }
    }
    if size <= max {
        return Ok(bytes);
    }
    let why = format!("a body has at most {max} bytes");
    Err(ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, why))
}

/// Refuses a compressed body and a part of a body, which would be kept as the whole.
pub(crate) fn ensure_whole_body(headers: &HeaderMap) -> Result<(), ProblemDetails> {
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if !headers.get_all(header::TRANSFER_ENCODING).iter().all(is_chunked) {
        let why = "send the body without Transfer-Encoding, or with chunked alone; compressed bodies aren't read";
        return Err(ProblemDetails::new(StatusCode::NOT_IMPLEMENTED, why));
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        let why = "send the whole text or file without Content-Range; parts aren't written";
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, why));
    }
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    match headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        true => Ok(()),
        false => {
            let why = "send the body without Content-Encoding; compressed bodies aren't read";
            Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
    }
}

/// A text as a request's body.
pub(crate) struct TextBody(pub(crate) String);

impl FromRequest<Arc<HttpState>> for TextBody {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, _state: &Arc<HttpState>) -> Result<TextBody, ProblemDetails> {
        ensure_whole_body(request.headers())?;
        let slow = |_| ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
        let bytes = tokio::time::timeout(BODY_TIMEOUT, receive_body(request.into_body(), MAX_BODY_BYTES))
            .await
            .map_err(slow)??;
        String::from_utf8(bytes)
            .map(TextBody)
            .map_err(|_| ProblemDetails::new(StatusCode::BAD_REQUEST, "the body isn't UTF-8 text"))
    }
}

/// A JSON object as a request's body.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<HttpState>> for JsonBody<T> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<JsonBody<T>, ProblemDetails> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let why = "send the body as application/json";
            return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let TextBody(text) = TextBody::from_request(request, state).await?;
        let wrong = |error: serde_json::Error| match error.classify() {
            Category::Data => ProblemDetails::unprocessable(format!("the body doesn't fit: {error}")),
            Category::Io | Category::Syntax | Category::Eof => {
                ProblemDetails::new(StatusCode::BAD_REQUEST, format!("the body isn't JSON: {error}"))
            }
        };
        let body = serde_json::from_str(&text).map_err(wrong)?;
        // The library takes an array of the fields as well.
        if text.trim_start().starts_with('[') {
            return Err(ProblemDetails::unprocessable("the body doesn't fit: send a JSON object, not an array"));
        }
        Ok(JsonBody(body))
    }
}
