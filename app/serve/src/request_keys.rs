//! Idempotency keys: a client that repeats a POST with the same `Idempotency-Key` gets the first answer again.
//!
//! Answers are kept in the workspace ([`crate::kept_answers`]), so they survive the server.

use crate::access_tokens::AccessToken;
use crate::clock::unix_millis;
use crate::http_state::{BODY_TIMEOUT, HttpState, MAX_BODY_BYTES, receive_body};
use crate::kept_answers::{KeptAnswer, KeyOwner, KeyUse};
use crate::problem::ProblemDetails;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The header with the client's key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";
/// Maximum length of a key in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 255;
/// Tells a repeated answer from the first one.
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// Maximum size of one answer.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Returns the key of a request.
fn request_key(headers: &HeaderMap) -> Result<Option<String>, ProblemDetails> {
    let mut keys = headers.get_all(KEY_HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let key = key.to_str().unwrap_or_default();
    let is_key = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match (is_key, keys.next()) {
        (true, None) => Ok(Some(key.to_owned())),
        _ => {
            let why = format!("send one Idempotency-Key of 1 to {MAX_KEY_BYTES} visible ASCII characters");
            Err(ProblemDetails::new(StatusCode::BAD_REQUEST, why))
        }
    }
}

/// Returns whether a request with this answer was not performed, so that it may be tried again with the same key.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
    )
}

/// Performs a request to its end, also if its client goes away, and keeps the answer.
async fn perform_keyed(state: Arc<HttpState>, owner: KeyOwner, request: Request, next: Next) -> Response {
    let work = tokio::spawn(async move {
        let (parts, body) = next.run(request).await.into_parts();
        let body = to_bytes(body, MAX_ANSWER_BYTES).await;
        body.map(|body| KeptAnswer { status: parts.status, headers: parts.headers, body })
    });
    let kept = tokio::spawn(async move {
        let answer = match work.await {
            Ok(Ok(answer)) => answer,
            // It may have done something, so it isn't repeated.
            Ok(Err(_)) | Err(_) => failed_answer(),
        };
        let kept = (!is_refusal(answer.status)).then(|| answer.clone());
        // Without it, the key counts as one whose request was interrupted.
        let _ = tokio::task::spawn_blocking(move || state.answers.end(&owner, kept.as_ref())).await;
        answer
    });
    kept.await.unwrap_or_else(|_| failed_answer()).into_response()
}

fn failed_answer() -> KeptAnswer {
    let why = "the request failed inside Tracebook; look at what it did, and send it with another key";
    let problem = ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, why);
    let body = Bytes::from(serde_json::to_vec(&problem).unwrap_or_default());
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/problem+json"));
    KeptAnswer { status: StatusCode::INTERNAL_SERVER_ERROR, headers, body }
}

/// Answers a POST whose key is known with the first answer, and others as usual.
pub(crate) async fn replay_answers(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    let key = match request_key(request.headers()) {
        Ok(Some(key)) if request.method() == Method::POST => key,
        Ok(_) => return next.run(request).await,
        Err(problem) => return problem.into_response(),
    };
    let Some(token) = request.extensions().get::<AccessToken>().map(|token| token.id.clone()) else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_TIMEOUT, receive_body(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(problem)) => return problem.into_response(),
        Err(_) => {
            let why = "the body did not arrive in time";
            return ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, why).into_response();
        }
    };
    let mut hash = blake3::Hasher::new();
    hash.update(parts.uri.to_string().as_bytes()).update(b"\n").update(&body);
    let owner = (token, key);
    let (keys, asked, fingerprint) = (state.clone(), owner.clone(), hash.finalize());
    let begun = tokio::task::spawn_blocking(move || keys.answers.begin(&asked, fingerprint, unix_millis())).await;
    let key_use = match begun {
        Ok(Ok(key_use)) => key_use,
        Ok(Err(error)) => {
            let why = format!("the request was not performed, because its key can't be kept: {error}");
            return ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        }
        Err(_) => return failed_answer().into_response(),
    };
    match key_use {
        KeyUse::First => {
            let request = Request::from_parts(parts, Body::from(body));
            perform_keyed(state, owner, request, next).await
        }
        KeyUse::Answered(answer) => {
            let mut response = answer.into_response();
            response.headers_mut().insert(REPLAYED_HEADER, header::HeaderValue::from_static("true"));
            response
        }
        KeyUse::Running => {
            let why = "the request with this Idempotency-Key is still being performed; try again";
            ProblemDetails::new(StatusCode::CONFLICT, why).with_header(header::RETRY_AFTER, "1").into_response()
        }
        KeyUse::Interrupted => {
            let why =
                "the server ended while it performed this request; look at what it did, and send it with another key";
            ProblemDetails::new(StatusCode::CONFLICT, why).into_response()
        }
        KeyUse::Other => {
            let why = "this Idempotency-Key was sent with another request; choose a new one";
            ProblemDetails::unprocessable(why).into_response()
        }
        KeyUse::Full => {
            let why = "too many requests with an Idempotency-Key are being performed; try again";
            ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}
