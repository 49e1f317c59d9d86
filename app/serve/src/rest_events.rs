//! REST: events as they happen, tokens, and the audit log.

use crate::access_tokens::{AccessToken, TokenStore, TokenStoreError};
use crate::audit_log::{AuditCursor, AuditEntry};
use crate::clock::unix_millis;
use crate::event_feed::EventFeed;
use crate::http_state::{ApiCaller, UrlPath, UrlQuery};
use crate::list_pages::{MAX_PAGE_ITEMS, PagePosition, PageQuery, keyed_page_within, page_limit};
use crate::problem::ProblemDetails;
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use futures_util::{Stream, StreamExt};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Time between signs of life on a stream without events.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Number of requests of the audit log, if the client doesn't say, and at most.
const DEFAULT_ENTRIES: u64 = 100;
const MAX_ENTRIES: u64 = 1_000;

/// Where a client is in the feed.
struct StreamPosition {
    feed: Arc<EventFeed>,
    number: u64,
    /// Id of the only volume whose events are sent.
    only: Option<String>,
    /// What is sent before the next event.
    first: VecDeque<SentEvent>,
    /// The client's token, without which nothing more is sent.
    token: String,
    tokens: TokenStore,
}

/// An event for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentEvent {
    /// Under which a client resumes; `None` before the first event of the feed.
    pub(crate) id: Option<String>,
    pub(crate) kind: String,
    /// Id of the volume that it's about, if any.
    pub(crate) volume: Option<String>,
    /// The event as JSON.
    pub(crate) data: String,
}

/// An event that says that others are missing.
fn gap_event(why: &str) -> SentEvent {
    let data = serde_json::json!({"kind": "GAP", "why": why}).to_string();
    SentEvent { id: None, kind: "GAP".to_owned(), volume: None, data }
}

async fn next_event(mut position: StreamPosition) -> Option<(SentEvent, StreamPosition)> {
    loop {
        if let Some(first) = position.first.pop_front() {
            return Some((first, position));
        }
        let (event, has_gap) = position.feed.next_after(position.number).await;
        if !position.tokens.holds(&position.token, unix_millis()) {
            return None;
        }
        position.number = event.number;
        if has_gap {
            position.first.push_back(gap_event("events came faster than they were read"));
        }
        let is_gap = event.kind == "GAP";
        if is_gap || position.only.is_none() || event.volume == position.only {
            let id = Some(position.feed.event_id(event.number));
            position.first.push_back(SentEvent { id, kind: event.kind, volume: event.volume, data: event.data });
        }
    }
}

/// Returns the events that the token reaches, from now on, or those after the one with the id `resumed`. Before them is
/// the id of the place where they begin, unless the first one has it.
pub(crate) async fn follow_events(
    caller: ApiCaller,
    resumed: Option<String>,
) -> Result<(Option<String>, impl Stream<Item = SentEvent> + Send), ProblemDetails> {
    let only = caller.only_volume_id().await?;
    let feed = caller.state.feed.clone();
    feed.begin().await?;
    let mut first = VecDeque::new();
    let number = match resumed.map(|id| feed.resumed_number(&id)) {
        None => feed.last_number(),
        Some(Some(number)) => number,
        Some(None) => {
            let number = feed.last_number();
            // Who has read it resumes after it.
            let id = Some(feed.event_id(number));
            first.push_back(SentEvent { id, ..gap_event("events after that id are no longer known") });
            number
        }
    };
    let begin = first.is_empty().then(|| feed.event_id(number));
    let tokens = caller.state.tokens.clone();
    let position = StreamPosition { feed, number, only, first, token: caller.token.id, tokens };
    Ok((begin, stream::unfold(position, next_event)))
}

/// Sends events as they happen (`text/event-stream`). With `Last-Event-ID`, begins with those after it.
///
/// An event `GAP` says that events are missing: read again what you show.
#[utoipa::path(
    get, path = "/events", tag = "events",
    params(("Last-Event-ID" = Option<String>, Header, description = "id of the last event that was received")),
    responses((status = 200, body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn stream_events(
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ProblemDetails> {
    let resumed = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default().to_owned());
    let (begin, events) = follow_events(caller, resumed).await?;
    let events = events.map(|sent| {
        let event = Event::default().event(&sent.kind).data(&sent.data);
        Ok(if let Some(id) = sent.id { event.id(id) } else { event })
    });
    // An id without data is no event for clients, but they resume after it if the connection is lost before the first.
    let begin = stream::iter(begin.map(|id| Ok::<_, Infallible>(Event::default().id(id))));
    Ok(Sse::new(begin.chain(events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)))
}

/// A page of access tokens, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TokenList {
    tokens: Vec<AccessToken>,
    #[serde(flatten)]
    page: PagePosition,
}

fn store_problem(error: TokenStoreError) -> ProblemDetails {
    let status = match error {
        TokenStoreError::Missing(_) => StatusCode::NOT_FOUND,
        TokenStoreError::Name | TokenStoreError::Taken(_) | TokenStoreError::Full => StatusCode::UNPROCESSABLE_ENTITY,
        TokenStoreError::List(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    ProblemDetails::new(status, error.to_string())
}

/// Lists access tokens, without their secrets.
#[utoipa::path(
    get, path = "/tokens", tag = "admin", params(PageQuery), responses((status = 200, body = TokenList)),
)]
pub(crate) async fn list_tokens(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<TokenList>, ProblemDetails> {
    caller.ensure_all_volumes()?;
    let all = caller.state.tokens.list().map_err(store_problem)?;
    let per_page = (MAX_PAGE_ITEMS, MAX_PAGE_ITEMS);
    let (tokens, page) = keyed_page_within(all, query.limit, query.cursor, per_page, |token| token.id.clone())?;
    Ok(Json(TokenList { tokens, page }))
}

/// Revokes an access token.
#[utoipa::path(
    delete, path = "/tokens/{tokenId}", tag = "admin",
    params(("tokenId" = String, Path, description = "id of the token")),
    responses((status = 204, description = "the token is revoked")),
)]
pub(crate) async fn revoke_token(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
) -> Result<StatusCode, ProblemDetails> {
    caller.ensure_all_volumes()?;
    caller.state.tokens.revoke(&id).map(|_| StatusCode::NO_CONTENT).map_err(store_problem)
}

/// Which requests of the audit log are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page. Older requests follow.
    #[param(pattern = "^(t[0-9]{1,15}-[0-9]{1,15}(b[0-9]{1,15}-[0-9]{1,15})?(n[0-9]{1,15}-[0-9]{1,15})?|\
                       b[0-9]{1,15}-[0-9]{1,15}(n[0-9]{1,15}-[0-9]{1,15})?|n[0-9]{1,15}-[0-9]{1,15})$")]
    cursor: Option<String>,
}

/// A page of requests in the audit log, newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    entries: Vec<AuditEntry>,
    /// Where the next page begins; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists requests of the audit log, newest first.
#[utoipa::path(get, path = "/audit", tag = "admin", params(AuditQuery), responses((status = 200, body = AuditList)))]
pub(crate) async fn list_audit(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<AuditQuery>,
) -> Result<Json<AuditList>, ProblemDetails> {
    caller.ensure_all_volumes()?;
    let limit = page_limit(query.limit, DEFAULT_ENTRIES, MAX_ENTRIES)?;
    let wrong = || ProblemDetails::new(StatusCode::BAD_REQUEST, "`cursor` is the `next_cursor` of another page");
    let from = query.cursor.map(|cursor| AuditCursor::parse(&cursor).ok_or_else(wrong)).transpose()?;
    let page = caller.state.audit.page(usize::try_from(limit).unwrap_or(usize::MAX), from);
    let unreadable =
        |_| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "the audit log in the workspace can't be read");
    let (entries, next) = page.map_err(unreadable)?;
    Ok(Json(AuditList { entries, next_cursor: next.map(|cursor| cursor.to_string()) }))
}
