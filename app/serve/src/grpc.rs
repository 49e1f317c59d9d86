//! gRPC on the same port as REST: the agent protocol of `proto/mixagent.proto`, health and reflection.
//!
//! Requests pass the same guard as others, so tokens, limits and the log are the same.

mod agent_mailbox;
mod agent_service;
mod approval_requests;
mod task_names;

use crate::http_state::{BODY_TIMEOUT, HttpState, receive_body};
use crate::problem::ProblemDetails;
use agent_mailbox::AgentMailbox;
use agent_service::AgentGrpcService;
pub(crate) use approval_requests::ApprovalRequests;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use generated::agent_service_server::AgentServiceServer;
use std::sync::Arc;
use task_names::TaskNames;
use tonic::{Code, Status};
use tonic_health::ServingStatus;

/// What `build.rs` makes of `proto/mixagent.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]
mod generated {
    tonic::include_proto!("mixagent");

    /// The description, for reflection.
    pub(super) const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mixagent.bin"));
}

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Content type of requests; a suffix such as `+proto` may follow.
const GRPC_TYPE: &str = "application/grpc";

/// What gRPC requests share.
#[derive(Default)]
pub(crate) struct GrpcState {
    pub(crate) approvals: ApprovalRequests,
    mailbox: AgentMailbox,
    names: TaskNames,
}

/// Returns whether these are headers of gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let rest = kind.and_then(|kind| kind.strip_prefix(GRPC_TYPE));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';', ' ']))
}

/// Returns the gRPC error for a problem.
fn problem_status(problem: &ProblemDetails) -> Status {
    let code = match problem.status() {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Code::InvalidArgument
        }
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::REQUEST_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => Code::FailedPrecondition,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, problem.detail())
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

/// Receives the one message of a request within the limits of size and time.
async fn receive_message(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let received = receive_body(body, MAX_MESSAGE_BYTES);
    let problem = match tokio::time::timeout(BODY_TIMEOUT, received).await {
        Ok(Ok(body)) => return next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(problem)) => problem,
        Err(_) => ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "the message did not arrive in time"),
    };
    problem.into_response()
}

/// Returns the routes of the gRPC services.
pub(crate) fn grpc_routes(state: Arc<HttpState>) -> Router<Arc<HttpState>> {
    let agents = AgentServiceServer::new(AgentGrpcService { state }).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let (reporter, health) = tonic_health::server::health_reporter();
    // Nothing else holds the reporter's lock yet, so this is done at once.
    let _ = reporter.set_service_status("mixagent.AgentService", ServingStatus::Serving).now_or_never();
    let mut routes = Router::new()
        .route_service("/mixagent.AgentService/{method}", agents)
        .route_layer(from_fn(receive_message))
        .route_service("/grpc.health.v1.Health/{method}", health);
    let description = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(generated::DESCRIPTION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Both descriptions are made by the compiler; tests read them through these services.
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
