//! gRPC on the same port as REST: the agent protocol of `proto/mixagent.proto`, the services of `proto/tracebook/v1`,
//! health and reflection.
//!
//! Requests pass the same guard as others, so tokens, limits and the log are the same.

mod agent_mailbox;
mod agent_service;
mod attachment_service;
mod cell_service;
mod collection_service;
mod event_service;
mod generated;
pub(crate) mod grpc_state;
mod history_service;
mod json_fields;
mod memory_service;
mod note_service;
mod request_checks;
mod run_messages;
mod run_service;
mod run_watch;
mod search_service;
mod task_names;
mod todo_service;
mod trace_service;

use crate::access_tokens::TokenScope;
use crate::http_state::{BODY_TIMEOUT, HttpState, MAX_BODY_BYTES, receive_body};
use crate::problem::ProblemDetails;
use crate::rest_attachments::{MAX_RECEIVED_BYTES, RECEIVE_TIMEOUT};
use agent_service::AgentGrpcService;
use attachment_service::AttachmentGrpcService;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use cell_service::CellGrpcService;
use collection_service::CollectionGrpcService;
use event_service::EventGrpcService;
use futures_util::FutureExt;
use generated::agent_service_server::AgentServiceServer;
use generated::v1::attachment_service_server::AttachmentServiceServer;
use generated::v1::cell_service_server::CellServiceServer;
use generated::v1::collection_service_server::CollectionServiceServer;
use generated::v1::event_service_server::EventServiceServer;
use generated::v1::history_service_server::HistoryServiceServer;
use generated::v1::memory_service_server::MemoryServiceServer;
use generated::v1::note_service_server::NoteServiceServer;
use generated::v1::run_service_server::RunServiceServer;
use generated::v1::search_service_server::SearchServiceServer;
use generated::v1::todo_service_server::TodoServiceServer;
use generated::v1::trace_service_server::TraceServiceServer;
use history_service::HistoryGrpcService;
use memory_service::MemoryGrpcService;
use note_service::NoteGrpcService;
use request_checks::{problem_status, scoped_token};
use run_service::RunGrpcService;
use search_service::SearchGrpcService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use todo_service::TodoGrpcService;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use trace_service::TraceGrpcService;

/// Maximum size of a message of the agent protocol in bytes. Other services take what REST takes.
const MAX_AGENT_MESSAGE_BYTES: usize = 4 << 20;
/// Room in a request that stores an attachment for what isn't its content, in bytes.
const ATTACHMENT_FRAME_BYTES: usize = 1 << 20;
/// Content type of requests; a suffix such as `+proto` may follow.
const GRPC_TYPE: &str = "application/grpc";
/// Returns whether these are headers of gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let rest = kind.and_then(|kind| kind.strip_prefix(GRPC_TYPE));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';', ' ']))
}

/// Returns the HTTP status that says the same as the gRPC error of an answer, for the audit log.
pub(crate) fn recorded_status(headers: &HeaderMap) -> Option<StatusCode> {
    let code = headers.get(Status::GRPC_STATUS)?.to_str().ok()?.parse::<i32>().ok()?;
    Some(match Code::from_i32(code) {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::OutOfRange => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound | Code::Unimplemented => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    })
}

/// Answers gRPC requests that were refused before they reached a service in gRPC's own way.
pub(crate) async fn answer_in_grpc(request: Request, next: Next) -> Response {
    if !is_grpc(request.headers()) {
        return next.run(request).await;
    }
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<ProblemDetails>() else { return response };
    let status = match problem.status() {
        // There's no service at this path.
        StatusCode::NOT_FOUND => Status::unimplemented("no such service; reflection lists what there is"),
        _ => problem_status(problem),
    };
    status.into_http::<Body>()
}

/// What is received of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestLimits {
    /// Maximum size of all messages in bytes.
    bytes: usize,
    /// Maximum time.
    time: Duration,
}

/// Receives the messages of a request within its limits.
async fn receive_messages(State(limits): State<RequestLimits>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let received = receive_body(body, limits.bytes);
    let problem = match tokio::time::timeout(limits.time, received).await {
        Ok(Ok(body)) => return next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(problem)) => problem,
        Err(_) => ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time"),
    };
    problem.into_response()
}

/// Refuses tokens that can't store attachments before their messages are received.
async fn require_write(request: Request, next: Next) -> Response {
    match scoped_token(request.extensions().get(), TokenScope::Write) {
        Ok(_) => next.run(request).await,
        Err(status) => status.into_http::<Body>(),
    }
}

/// Returns the routes of a service, and reports that it's healthy.
fn service_routes<S>(health: &HealthReporter, service: S, limits: RequestLimits) -> Router<Arc<HttpState>>
where
    S: NamedService + Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    // Nothing else holds the reporter's lock yet, so this is done at once.
    let _ = health.set_service_status(S::NAME, ServingStatus::Serving).now_or_never();
    let path = format!("/{}/{{method}}", S::NAME);
    Router::new().route_service(&path, service).route_layer(from_fn_with_state(limits, receive_messages))
}

/// Returns the routes of the gRPC services.
pub(crate) fn grpc_routes(state: Arc<HttpState>) -> Router<Arc<HttpState>> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let agents = AgentServiceServer::new(AgentGrpcService { state: state.clone() });
    let agents = agents.max_decoding_message_size(MAX_AGENT_MESSAGE_BYTES);
    let max = MAX_BODY_BYTES;
    let notes = NoteServiceServer::new(NoteGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let search = SearchServiceServer::new(SearchGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let todos = TodoServiceServer::new(TodoGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let runs = RunServiceServer::new(RunGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let cells = CellServiceServer::new(CellGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let events = EventServiceServer::new(EventGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let history = HistoryServiceServer::new(HistoryGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let collections = CollectionServiceServer::new(CollectionGrpcService { state: state.clone() });
    let collections = collections.max_decoding_message_size(max);
    let memory = MemoryServiceServer::new(MemoryGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let traces = TraceServiceServer::new(TraceGrpcService { state: state.clone() }).max_decoding_message_size(max);
    let attachments = AttachmentServiceServer::new(AttachmentGrpcService { state }).max_decoding_message_size(max);
    let limits = RequestLimits { bytes: max, time: BODY_TIMEOUT };
    let agent_limits = RequestLimits { bytes: MAX_AGENT_MESSAGE_BYTES, time: BODY_TIMEOUT };
    // Only what stores an attachment receives this much.
    let file_limits = RequestLimits { bytes: MAX_RECEIVED_BYTES + ATTACHMENT_FRAME_BYTES, time: RECEIVE_TIMEOUT };
    let storing = Router::new()
        .route_service("/tracebook.v1.AttachmentService/WriteAttachment", attachments.clone())
        .route_layer(from_fn_with_state(file_limits, receive_messages))
        .route_layer(from_fn(require_write));
    let mut routes = service_routes(&reporter, agents, agent_limits)
        .merge(service_routes(&reporter, notes, limits))
        .merge(service_routes(&reporter, search, limits))
        .merge(service_routes(&reporter, todos, limits))
        .merge(service_routes(&reporter, runs, limits))
        .merge(service_routes(&reporter, cells, limits))
        .merge(service_routes(&reporter, events, limits))
        .merge(service_routes(&reporter, history, limits))
        .merge(service_routes(&reporter, collections, limits))
        .merge(service_routes(&reporter, memory, limits))
        .merge(service_routes(&reporter, traces, limits))
        .merge(service_routes(&reporter, attachments, limits))
        .merge(storing)
        .route_service("/grpc.health.v1.Health/{method}", health);
    let description = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(generated::DESCRIPTIONS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // The descriptions are made by the compiler; tests read them through these services.
    if let (Ok(current), Ok(older)) = (description().build_v1(), description().build_v1alpha()) {
        routes = routes
            .route_service("/grpc.reflection.v1.ServerReflection/{method}", current)
            .route_service("/grpc.reflection.v1alpha.ServerReflection/{method}", older);
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_content_types_are_grpc() {
        for (kind, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;a=b", true),
            ("application/grpc-web", false),
            ("application/json", false),
        ] {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static(kind))]);
            assert_eq!(is_grpc(&headers), expected, "{kind}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn refusals_are_recorded_as_what_they_are() {
        for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::UNPROCESSABLE_ENTITY] {
            let answer = problem_status(&ProblemDetails::new(status, "é no")).into_http::<Body>();
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(recorded_status(answer.headers()), Some(status));
        }
        assert_eq!(recorded_status(&HeaderMap::new()), None);
    }
}
