//! What the gRPC services check in the same way: tokens and scopes, fields, and pages.

use crate::access_tokens::{AccessToken, TokenScope};
use crate::http_state::{ApiCaller, HttpState};
use crate::list_pages::{PagePosition, cursor_after, keyed_page_within, page_cursor};
use crate::problem::ProblemDetails;
use crate::rest_notes::NoteAddress;
use axum::http::StatusCode;
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Code, Request, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Maximum length of an id, a name and a kind, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 200;
/// Maximum length of an entity tag in bytes.
const MAX_ETAG_BYTES: usize = 100;
/// Beyond this size in bytes, a page of messages ends.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// How often a stream without messages looks whether its token still holds.
pub(super) const TOKEN_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Who defines the reasons of errors (`google.rpc.ErrorInfo`).
const ERROR_DOMAIN: &str = "tracebook";

/// Returns the gRPC error for a problem.
pub(super) fn problem_status(problem: &ProblemDetails) -> Status {
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

/// Returns the error for a problem.
pub(super) fn refused(problem: ProblemDetails) -> Status {
    problem_status(&problem)
}

/// Returns the error for a field with a wrong value.
pub(super) fn wrong_field(field: &str, why: impl Into<String>) -> Status {
    let why = why.into();
    let details = ErrorDetails::with_bad_request_violation(field, why.clone());
    Status::with_error_details(Code::InvalidArgument, why, details)
}

/// Returns the error for a problem with a field.
pub(super) fn refused_field(field: &'static str) -> impl Fn(ProblemDetails) -> Status {
    move |problem| {
        let status = refused(problem);
        match status.code() {
            Code::InvalidArgument => wrong_field(field, status.message()),
            _ => status,
        }
    }
}

/// Returns the error for something that wasn't written or read. `conflict` makes the one for a condition that doesn't
/// hold.
pub(super) fn unwritten(problem: ProblemDetails, conflict: impl Fn(String) -> Status) -> Status {
    match problem.status() {
        StatusCode::PRECONDITION_FAILED => conflict(problem.detail().to_owned()),
        _ => refused(problem),
    }
}

/// Returns the header of an entity tag that a program sent.
pub(super) fn tag_header(etag: &str) -> Result<String, Status> {
    let is_tag = (1..=MAX_ETAG_BYTES).contains(&etag.len()) && etag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_tag {
        true => Ok(format!("\"{etag}\"")),
        false => Err(wrong_field("if_match", "`if_match` is the `etag` of the note or file, as it was read")),
    }
}

/// Returns the header of the entity tag that a request is about; `None` if it names none.
pub(super) fn wanted_tag(if_match: &str) -> Result<Option<String>, Status> {
    (!if_match.is_empty()).then(|| tag_header(if_match)).transpose()
}

/// Returns the program that makes a request, if its token has a scope.
pub(super) fn scoped_caller<T>(
    state: &Arc<HttpState>,
    request: &Request<T>,
    scope: TokenScope,
) -> Result<ApiCaller, Status> {
    let token = scoped_token(request.extensions().get(), scope)?;
    Ok(ApiCaller { state: state.clone(), token: token.clone() })
}

/// Returns the token of a request, if it has a scope.
pub(super) fn scoped_token(token: Option<&AccessToken>, scope: TokenScope) -> Result<&AccessToken, Status> {
    let token = token.ok_or_else(|| Status::unauthenticated("send a token"))?;
    if !token.allows(scope) {
        let why = format!("the token lacks the scope `{}`", scope.name());
        let metadata = HashMap::from([("scope".to_owned(), scope.name().to_owned())]);
        let details = ErrorDetails::with_error_info("SCOPE_MISSING", ERROR_DOMAIN, metadata);
        return Err(Status::with_error_details(Code::PermissionDenied, why, details));
    }
    Ok(token)
}

/// Checks an id or a name that a program sent.
pub(super) fn checked_name(name: &str, field: &str) -> Result<(), Status> {
    match (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control) {
        true => Ok(()),
        false => {
            let why = format!("`{field}` has 1 to {MAX_NAME_BYTES} bytes and no control characters");
            Err(wrong_field(field, why))
        }
    }
}

/// Returns a text that a program may leave empty.
pub(super) fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns a number that a program may leave at 0.
pub(super) fn given_number(number: i32, field: &str) -> Result<Option<u64>, Status> {
    let number = u64::try_from(number).map_err(|_| wrong_field(field, format!("`{field}` isn't negative")))?;
    Ok((number > 0).then_some(number))
}

/// Returns the note that a request names.
pub(super) fn note_address(caller: &ApiCaller, volume: String, path: String) -> Result<NoteAddress, Status> {
    checked_name(&volume, "volume")?;
    NoteAddress::new(caller, volume, path).map_err(refused_field("path"))
}

/// A page of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageRequest {
    /// Maximum number of items.
    pub(super) limit: u64,
    /// Where the page begins, as a cursor of REST.
    pub(super) cursor: u64,
}

/// Returns the token of the page at a cursor; empty without one.
pub(super) fn page_token(cursor: Option<u64>) -> String {
    cursor.map(|cursor| cursor.to_string()).unwrap_or_default()
}

impl PageRequest {
    /// Reads the fields `page_size` and `page_token`.
    pub(super) fn new(size: i32, token: &str, default: u64, max: u64) -> Result<PageRequest, Status> {
        let limit = given_number(size, "page_size")?.unwrap_or(default).min(max);
        let cursor = match token {
            "" => Some(0),
            token => token.parse::<u64>().ok().and_then(|cursor| page_cursor(Some(cursor)).ok()),
        };
        let why = "`page_token` is empty, or the `next_page_token` of another page";
        Ok(PageRequest { limit, cursor: cursor.ok_or_else(|| wrong_field("page_token", why))? })
    }

    fn page<T>(self, items: Vec<T>, key: impl Fn(&T) -> String) -> Result<(Vec<T>, PagePosition), Status> {
        let per_page = (self.limit, self.limit);
        keyed_page_within(items, Some(self.limit), Some(self.cursor), per_page, key).map_err(refused)
    }

    /// Returns the items of the page, and where it is. `key` is what the next page names the last item by.
    pub(super) fn cut<T>(self, items: Vec<T>, key: impl Fn(&T) -> String) -> Result<ListedPage<T>, Status> {
        let (items, position) = self.page(items, key)?;
        let (next_token, total) = (page_token(position.next_cursor), whole_number(position.total));
        Ok(ListedPage { items, next_token, total })
    }

    /// Returns the same as messages. The page ends early if they are long.
    pub(super) fn cut_messages<T, M: Message>(
        self,
        items: Vec<T>,
        key: impl Fn(&T) -> String,
        message: impl Fn(T) -> M,
    ) -> Result<ListedPage<M>, Status> {
        let (items, position) = self.page(items, &key)?;
        let mut next_cursor = position.next_cursor;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        let mut last: Option<String> = None;
        for (at, item) in (position.items_before(items.len())..).zip(items) {
            if let Some(last) = last.as_deref().filter(|_| bytes > MAX_PAGE_BYTES) {
                next_cursor = Some(cursor_after(at, last));
                break;
            }
            last = Some(key(&item));
            let message = message(item);
            bytes += message.encoded_len();
            messages.push(message);
        }
        let (next_token, total) = (page_token(next_cursor), whole_number(position.total));
        Ok(ListedPage { items: messages, next_token, total })
    }
}

/// A page of a list.
pub(super) struct ListedPage<T> {
    pub(super) items: Vec<T>,
    /// What the next page is asked for with; empty on the last one.
    pub(super) next_token: String,
    /// Number of items on all pages.
    pub(super) total: i64,
}

/// Returns a number of things as messages have it.
pub(super) fn whole_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_long_messages_ends_early_and_the_next_one_has_the_rest() {
        let all = vec!["x".repeat(MAX_PAGE_BYTES), "y".to_owned(), "z".to_owned()];
        let (mut token, mut pages) = (String::new(), Vec::new());
        loop {
            let page = PageRequest::new(0, &token, 200, 1_000).expect("a page");
            let page = page.cut_messages(all.clone(), String::clone, |text| text).expect("a page");
            assert_eq!(page.total, 3);
            pages.push(page.items);
            token = page.next_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(pages.concat(), all);
    }

    #[test]
    fn pages_are_asked_for_with_what_the_page_before_says() {
        let page = |size, token| PageRequest::new(size, token, 2, 3);
        let all = vec![1, 2, 3, 4, 5, 6, 7];
        let first = page(0, "").expect("a page").cut(all.clone(), i32::to_string).expect("a page");
        assert_eq!((first.items, first.total), (vec![1, 2], 7));
        // What was added before is on no page that follows.
        let more = [vec![9], all.clone()].concat();
        let second = page(99, &first.next_token).expect("a page").cut(more, i32::to_string).expect("a page");
        assert_eq!(second.items, [3, 4, 5]);
        let last = page(3, &second.next_token).expect("a page").cut(all, i32::to_string).expect("a page");
        assert_eq!((last.items, last.next_token), (vec![6, 7], String::new()));
        for (size, token, field) in
            [(-1, "", "page_size"), (1, "x", "page_token"), (1, "18446744073709551615", "page_token")]
        {
            let refusal = page(size, token).expect_err("refused");
            let details = refusal.get_details_bad_request().expect("details");
            assert_eq!((refusal.code(), details.field_violations[0].field.as_str()), (Code::InvalidArgument, field));
        }
    }
}
