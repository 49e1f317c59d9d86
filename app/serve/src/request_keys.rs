//! Idempotency keys: a client that repeats a POST with the same `Idempotency-Key` gets the first answer again.
//!
//! Answers are kept in memory, so they don't survive the server. What a request did is in the workspace; waiting tasks
//! end with the server, too.

use crate::access_tokens::AccessToken;
use crate::http_state::{BODY_TIMEOUT, HttpState, MAX_BODY_BYTES, receive_body};
use crate::problem::ProblemDetails;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The header with the client's key.
pub(crate) const KEY_HEADER: &str = "idempotency-key";
/// Maximum length of a key in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 255;
/// Tells a repeated answer from the first one.
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// Maximum number of answers that are kept, their bytes, and how long.
const MAX_KEPT_ANSWERS: usize = 1_000;
const MAX_KEPT_BYTES: usize = 32 << 20;
const KEEP_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// Maximum size of one answer.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// A token's id and a key. Tokens don't see each other's keys.
type KeyOwner = (String, String);

/// An answer as it's sent again.
#[derive(Clone, Debug)]
struct KeptAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl KeptAnswer {
    fn into_response(self) -> Response {
        let mut response = (self.status, Body::from(self.body)).into_response();
        *response.headers_mut() = self.headers;
        response
    }
}

#[derive(Debug)]
struct KeyedRequest {
    /// Hash of the path and the body.
    fingerprint: blake3::Hash,
    begun: Instant,
    /// `None` while the request runs.
    answer: Option<KeptAnswer>,
}

#[derive(Default)]
struct KeyedRequests {
    requests: HashMap<KeyOwner, KeyedRequest>,
    /// Those that have an answer, the oldest first.
    answered: VecDeque<KeyOwner>,
    bytes: usize,
}

/// What a key means for the request that has it.
#[derive(Debug)]
enum KeyUse {
    /// It's new: the request is to be performed.
    First,
    /// The request was performed, with this answer.
    Answered(KeptAnswer),
    /// The request with this key is being performed.
    Running,
    /// Another request has had this key.
    Other,
    /// Too many requests with keys are being performed.
    Full,
}

/// The answers that are kept for repeated requests.
#[derive(Default)]
pub(crate) struct KeptAnswers(Mutex<KeyedRequests>);

impl KeptAnswers {
    fn requests(&self) -> MutexGuard<'_, KeyedRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, owner: &KeyOwner, fingerprint: blake3::Hash) -> KeyUse {
        let mut known = self.requests();
        while let Some(oldest) = known.answered.front() {
            let is_old = known.requests.get(oldest).is_none_or(|request| request.begun.elapsed() > KEEP_TIMEOUT);
            if !is_old {
                break;
            }
            known.drop_oldest();
        }
        if let Some(request) = known.requests.get(owner) {
            return match &request.answer {
                _ if request.fingerprint != fingerprint => KeyUse::Other,
                Some(answer) => KeyUse::Answered(answer.clone()),
                None => KeyUse::Running,
            };
        }
        if known.requests.len() >= MAX_KEPT_ANSWERS {
            known.drop_oldest();
        }
        if known.requests.len() >= MAX_KEPT_ANSWERS {
            return KeyUse::Full;
        }
        let request = KeyedRequest { fingerprint, begun: Instant::now(), answer: None };
        known.requests.insert(owner.clone(), request);
        KeyUse::First
    }

    /// Keeps the answer, or forgets the key if the request was not performed.
    fn end(&self, owner: KeyOwner, answer: Option<KeptAnswer>) {
        let mut known = self.requests();
        let Some(answer) = answer else {
            known.requests.remove(&owner);
            return;
        };
        known.bytes += answer.body.len();
        if let Some(request) = known.requests.get_mut(&owner) {
            request.answer = Some(answer);
        }
        known.answered.push_back(owner);
        while known.bytes > MAX_KEPT_BYTES {
            known.drop_oldest();
        }
    }
}

impl KeyedRequests {
    fn drop_oldest(&mut self) {
        let oldest = self.answered.pop_front().and_then(|owner| self.requests.remove(&owner));
        self.bytes -= oldest.and_then(|request| request.answer).map_or(0, |answer| answer.body.len());
    }
}

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
        state.answers.end(owner, (!is_refusal(answer.status)).then(|| answer.clone()));
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
    match state.answers.begin(&owner, hash.finalize()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(size: usize) -> Option<KeptAnswer> {
        Some(KeptAnswer { status: StatusCode::OK, headers: HeaderMap::new(), body: Bytes::from(vec![0; size]) })
    }

    #[test]
    fn a_key_is_for_one_request_of_one_token() {
        let kept = KeptAnswers::default();
        let owner = ("token".to_owned(), "key".to_owned());
        let (one, other) = (blake3::hash(b"one"), blake3::hash(b"other"));
        assert!(matches!(kept.begin(&owner, one), KeyUse::First));
        assert!(matches!(kept.begin(&owner, one), KeyUse::Running));
        assert!(matches!(kept.begin(&owner, other), KeyUse::Other));
        assert!(matches!(kept.begin(&("second".to_owned(), "key".to_owned()), other), KeyUse::First));
        kept.end(owner.clone(), answer(3));
        assert!(matches!(kept.begin(&owner, one), KeyUse::Answered(answer) if answer.body.len() == 3));
        assert!(matches!(kept.begin(&owner, other), KeyUse::Other));
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_size() {
        let kept = KeptAnswers::default();
        let owner = |number: usize| ("token".to_owned(), number.to_string());
        let hash = blake3::hash(b"");
        for number in 0..MAX_KEPT_ANSWERS + 50 {
            assert!(matches!(kept.begin(&owner(number), hash), KeyUse::First), "{number}");
            kept.end(owner(number), answer(1));
        }
        assert_eq!(kept.requests().requests.len(), MAX_KEPT_ANSWERS);
        assert!(matches!(kept.begin(&owner(MAX_KEPT_ANSWERS), hash), KeyUse::Answered(_)));
        for number in 5_000..5_010 {
            assert!(matches!(kept.begin(&owner(number), hash), KeyUse::First));
            kept.end(owner(number), answer(MAX_ANSWER_BYTES));
            assert!(kept.requests().bytes <= MAX_KEPT_BYTES);
        }
        // What was not performed can be tried again.
        assert!(matches!(kept.begin(&owner(9_000), hash), KeyUse::First));
        kept.end(owner(9_000), None);
        assert!(matches!(kept.begin(&owner(9_000), hash), KeyUse::First));
        let known = kept.requests();
        assert_eq!(known.answered.len() + 1, known.requests.len());
    }
}
