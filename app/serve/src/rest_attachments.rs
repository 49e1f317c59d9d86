//! REST: attachments, the files of volumes that aren't notes.

use crate::byte_ranges::{WantedBytes, wanted_bytes};
use crate::command_calls::{CommandCall, CommandOutcome};
use crate::entity_tags::{ReadCondition, names_tag, read_condition};
use crate::http_state::{ApiCaller, HttpState, UrlPath, UrlQuery, ensure_whole_body, receive_body};
use crate::list_pages::{PagePosition, keyed_page};
use crate::problem::ProblemDetails;
use crate::rest_notes::{NoteAddress, WriteCondition, header_text};
use crate::tool_calls::ToolCallContext;
use agent::secrets::secret_files::secret_file_kind;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Maximum size in bytes of an attachment that is received, and the time that it may take.
pub(crate) const MAX_RECEIVED_BYTES: usize = 32 << 20;
pub(crate) const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);
/// What the command says if there's a file with the name of a new one.
const TAKEN_NAME: &str = "a file with that name already exists";
/// Number of bytes that are read and sent at once.
const SENT_PART_BYTES: u64 = 1 << 20;

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AttachmentInfo {
    /// The path inside the volume.
    pub(crate) path: String,
    /// The volume.
    pub(crate) volume: String,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// When it was changed, in milliseconds since 1970.
    pub(crate) modified: i64,
    /// The entity tag, without quotes: it changes when the file is written.
    pub(crate) version: String,
}

impl AttachmentInfo {
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.version)
    }
}

/// Which attachments are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttachmentsQuery {
    /// Only paths that begin like this, such as `Pictures/`.
    prefix: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// A page of attachments, by path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AttachmentList {
    attachments: Vec<AttachmentInfo>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists the attachments of a volume.
#[utoipa::path(
    get, path = "/volumes/{volume}/attachments", tag = "attachments",
    params(("volume" = String, Path, description = "name of the volume"), AttachmentsQuery),
    responses((status = 200, body = AttachmentList)),
)]
pub(crate) async fn list_attachments(
    caller: ApiCaller,
    UrlPath(volume): UrlPath<String>,
    UrlQuery(query): UrlQuery<AttachmentsQuery>,
) -> Result<Json<AttachmentList>, ProblemDetails> {
    let fitting = find_attachments(&caller, &volume, &query.prefix.unwrap_or_default()).await?;
    let (attachments, page) = keyed_page(fitting, query.limit, query.cursor, |found| found.path.clone())?;
    Ok(Json(AttachmentList { attachments, page }))
}

/// Returns the attachments of a volume with paths that begin with `prefix`, by path.
pub(crate) async fn find_attachments(
    caller: &ApiCaller,
    volume: &str,
    prefix: &str,
) -> Result<Vec<AttachmentInfo>, ProblemDetails> {
    caller.needed_volume(volume).await?;
    let call = CommandCall::json("attachments").option("volume", Some(volume));
    let rows = caller.perform_ok(call.operands(["list"])).await?.value().unwrap_or_default();
    let rows: Vec<AttachmentInfo> = serde_json::from_value(rows).unwrap_or_default();
    let fits = |row: &AttachmentInfo| row.path.starts_with(prefix) && secret_file_kind(&row.path).is_none();
    Ok(rows.into_iter().filter(fits).collect())
}

/// Refuses a file that commonly holds keys or passwords, as the interfaces for other programs do.
fn ensure_served(at: &NoteAddress) -> Result<(), ProblemDetails> {
    match secret_file_kind(at.path()) {
        None => Ok(()),
        Some(_) => {
            let why = format!("{} commonly holds keys or passwords, so it isn't served", at.path());
            Err(ProblemDetails::new(StatusCode::FORBIDDEN, why))
        }
    }
}

fn attachment_call(address: &NoteAddress, json: bool) -> CommandCall {
    let mut call = CommandCall::json("attachments").option("volume", Some(address.volume()));
    if !json {
        call.words.retain(|word| word != "--json");
    }
    call
}

/// Reads what is known about exactly this attachment.
fn find_attachment(calls: &ToolCallContext<'_>, at: &NoteAddress) -> Result<Option<AttachmentInfo>, ProblemDetails> {
    let outcome = calls.perform(attachment_call(at, true).operands(["get", at.path()]));
    match outcome.code {
        0 => {}
        2 => return Ok(None),
        _ => return Err(ProblemDetails::of_outcome(&outcome)),
    }
    let found: Option<AttachmentInfo> = serde_json::from_slice(&outcome.output).ok();
    Ok(found.filter(|one| one.path == at.path() && one.volume == at.volume()))
}

fn needed_attachment(calls: &ToolCallContext<'_>, at: &NoteAddress) -> Result<AttachmentInfo, ProblemDetails> {
    let missing = || ProblemDetails::not_found(format!("there is no attachment {} in {}", at.path(), at.volume()));
    find_attachment(calls, at)?.ok_or_else(missing)
}

/// Returns what is known about an attachment that may be served.
pub(crate) async fn read_about(caller: &ApiCaller, at: &NoteAddress) -> Result<AttachmentInfo, ProblemDetails> {
    ensure_served(at)?;
    let wanted = at.clone();
    caller.perform_calls(move |calls| needed_attachment(calls, &wanted)).await?
}

/// Returns the media type of a file by its name, and whether a browser must not show it as a page.
pub(crate) fn media_type(path: &str) -> (String, bool) {
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let is_active = matches!(kind.essence_str(), "text/html" | "application/xhtml+xml" | "image/svg+xml" | "text/xml")
        || kind.subtype().as_str().contains("xml")
        || kind.subtype().as_str().contains("javascript");
    match kind.type_() == mime_guess::mime::TEXT {
        true => (format!("{kind}; charset=utf-8"), is_active),
        false => (kind.to_string(), is_active),
    }
}

/// An attachment that is sent in parts, each as the same version of the file.
pub(crate) struct SentAttachment {
    pub(crate) caller: ApiCaller,
    pub(crate) address: NoteAddress,
    pub(crate) version: String,
    /// The next byte, and the one after the last.
    pub(crate) next: u64,
    pub(crate) end: u64,
}

impl SentAttachment {
    /// Reads the next part, when the client has taken the one before.
    pub(crate) async fn next_part(mut self) -> Option<(Result<Bytes, ProblemDetails>, SentAttachment)> {
        if self.next >= self.end {
            return None;
        }
        let length = SENT_PART_BYTES.min(self.end - self.next);
        let call = attachment_call(&self.address, false).option("if-version", Some(&self.version));
        let call = call.option("from", Some(self.next)).option("length", Some(length));
        let read: Result<CommandOutcome, ProblemDetails> =
            self.caller.perform_ok(call.operands(["get", self.address.path()])).await;
        let part = match read {
            Ok(outcome) if outcome.output.len() as u64 == length => Ok(Bytes::from(outcome.output)),
            Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => Err(problem),
            Ok(_) | Err(_) => {
                let why = "the attachment changed while it was sent; read it again";
                Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, why))
            }
        };
        self.next = if part.is_ok() { self.next + length } else { self.end };
        Some((part, self))
    }
}

/// Reads an attachment, or with `Range` a part of it.
#[utoipa::path(
    get, path = "/volumes/{volume}/attachments/{*path}", tag = "attachments",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the attachment inside the volume"),
        ("If-Match" = Option<String>, Header, description = "answer 412 if it has another entity tag"),
        ("If-None-Match" = Option<String>, Header, description = "answer 304 if it still has this entity tag"),
        ("Range" = Option<String>, Header, description = "one range of bytes, such as `bytes=0-99`"),
        ("If-Range" = Option<String>, Header, description = "the range only if it still has this entity tag"),
    ),
    responses(
        (status = 200, body = inline(BytesBody), content_type = "*/*", description = "the bytes of the file",
            headers(("ETag" = String, description = "changes when the file is written"))),
        (status = 206, body = inline(BytesBody), content_type = "*/*", description = "the bytes of the range"),
        (status = 304, description = "it still has that entity tag"),
        (status = 412, body = ProblemDetails, content_type = "application/problem+json",
            description = "it has another entity tag"),
        (status = 416, body = ProblemDetails, content_type = "application/problem+json",
            description = "the range begins after the end"),
    ),
)]
pub(crate) async fn read_attachment(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    let found = read_about(&caller, &address).await?;
    let tag = found.etag();
    match read_condition(&headers, &tag) {
        ReadCondition::Send => {}
        ReadCondition::NotModified => return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response()),
        ReadCondition::Changed => return Err(changed()),
    }
    let is_same = header_text(&headers, header::IF_RANGE).is_none_or(|known| known == tag);
    // Only for GET do ranges mean something.
    let range = header_text(&headers, header::RANGE).filter(|_| is_same && method == Method::GET);
    let size = found.bytes;
    let (status, first, end) = match wanted_bytes(range, size) {
        WantedBytes::Whole => (StatusCode::OK, 0, size),
        WantedBytes::Part(first, last) => (StatusCode::PARTIAL_CONTENT, first, last + 1),
        WantedBytes::Nothing => {
            let why = format!("the attachment has {size} bytes; the range begins after them");
            let mut response = ProblemDetails::new(StatusCode::RANGE_NOT_SATISFIABLE, why).into_response();
            let value = header::HeaderValue::from_str(&format!("bytes */{size}"));
            response.headers_mut().extend(value.map(|value| (header::CONTENT_RANGE, value)));
            return Ok(response);
        }
    };
    let (kind, is_active) = media_type(&found.path);
    let sent = SentAttachment { caller, address, version: found.version, next: first, end };
    // After a problem, the connection ends: what was sent is not the whole, and the client sees that.
    let parts = stream::unfold(sent, SentAttachment::next_part);
    let body = Body::from_stream(parts.map_err(|problem| std::io::Error::other(problem.detail().to_owned())));
    let known = [
        (header::ETAG, tag),
        (header::CONTENT_TYPE, kind),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CONTENT_LENGTH, (end - first).to_string()),
    ];
    let mut response = (status, known, body).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let value = header::HeaderValue::from_str(&format!("bytes {first}-{}/{size}", end - 1));
        response.headers_mut().extend(value.map(|value| (header::CONTENT_RANGE, value)));
    }
    if is_active {
        let value = header::HeaderValue::from_static("attachment");
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// The bytes of a file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(crate) struct BytesBody(Vec<u8>);

impl FromRequest<Arc<HttpState>> for BytesBody {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, _state: &Arc<HttpState>) -> Result<BytesBody, ProblemDetails> {
        ensure_whole_body(request.headers())?;
        let slow = |_| ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
        let received = receive_body(request.into_body(), MAX_RECEIVED_BYTES);
        tokio::time::timeout(RECEIVE_TIMEOUT, received).await.map_err(slow)?.map(BytesBody)
    }
}

fn changed() -> ProblemDetails {
    ProblemDetails::new(StatusCode::PRECONDITION_FAILED, "the attachment has changed; read it again")
}

/// Writes an attachment: a new one with `If-None-Match: *`, or over the version that `If-Match` names.
#[utoipa::path(
    put, path = "/volumes/{volume}/attachments/{*path}", tag = "attachments",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the attachment inside the volume"),
        ("If-Match" = Option<String>, Header, description = "entity tag of the file that is replaced"),
        ("If-None-Match" = Option<String>, Header, description = "`*` to create a file"),
    ),
    request_body(content = inline(BytesBody), content_type = "application/octet-stream"),
    responses(
        (status = 200, body = AttachmentInfo, description = "the file was replaced"),
        (status = 201, body = AttachmentInfo, description = "the file was created"),
        (status = 412, body = ProblemDetails, content_type = "application/problem+json",
            description = "the file has changed, or exists"),
        (status = 428, body = ProblemDetails, content_type = "application/problem+json",
            description = "neither If-Match nor If-None-Match was sent"),
    ),
)]
pub(crate) async fn write_attachment(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    headers: HeaderMap,
    BytesBody(bytes): BytesBody,
) -> Result<Response, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    caller.needed_volume(address.volume()).await?;
    let replaces = header_text(&headers, header::IF_MATCH).map(str::to_owned);
    let condition = match (replaces, header_text(&headers, header::IF_NONE_MATCH)) {
        (Some(tags), None) => WriteCondition::Replaces(tags),
        (None, Some("*")) => WriteCondition::Creates,
        (None, None) => {
            let why = "send If-Match with the attachment's entity tag, or If-None-Match: * to create it";
            return Err(ProblemDetails::new(StatusCode::PRECONDITION_REQUIRED, why));
        }
        (Some(_), Some("*")) => {
            let why = "If-Match wants the attachment, and If-None-Match: * wants none; send one of them";
            return Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, why));
        }
        (_, Some(_)) => {
            let why = "If-None-Match is * here, or missing";
            return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, why));
        }
    };
    let (status, written) = store_attachment(&caller, address, condition, bytes).await?;
    Ok((status, [(header::ETAG, written.etag())], Json(written)).into_response())
}

/// Writes an attachment. Returns whether it's new, as a status, and what it is now.
pub(crate) async fn store_attachment(
    caller: &ApiCaller,
    address: NoteAddress,
    condition: WriteCondition,
    bytes: Vec<u8>,
) -> Result<(StatusCode, AttachmentInfo), ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            address.ensure_unguarded(calls)?;
            ensure_served(&address)?;
            let (status, version) = match (condition, find_attachment(calls, &address)?) {
                (WriteCondition::Replaces(tags), Some(old)) if names_tag(&tags, &old.etag()) => {
                    (StatusCode::OK, Some(old.version))
                }
                (WriteCondition::Replaces(_), _) => return Err(changed()),
                (WriteCondition::Creates, None) => (StatusCode::CREATED, None),
                (WriteCondition::Creates, Some(_)) => {
                    let why = "an attachment with this path exists already";
                    return Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, why));
                }
            };
            let call = attachment_call(&address, true).option("if-version", version.as_ref());
            let outcome = calls.perform(call.operands(["put", address.path()]).with_input(bytes));
            match outcome.code {
                0 => Ok((status, needed_attachment(calls, &address)?)),
                2 if find_attachment(calls, &address)?.map(|now| now.version) != version => Err(changed()),
                // It was made meanwhile, and isn't listed yet.
                2 if version.is_none() && outcome.reason().contains(TAKEN_NAME) => {
                    Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, outcome.reason()))
                }
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

/// Moves an attachment to the trash.
#[utoipa::path(
    delete, path = "/volumes/{volume}/attachments/{*path}", tag = "attachments",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the attachment inside the volume"),
        ("If-Match" = Option<String>, Header, description = "only if it has this entity tag"),
    ),
    responses((status = 204, description = "the attachment is in the trash")),
)]
pub(crate) async fn delete_attachment(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    let tags = header_text(&headers, header::IF_MATCH).map(str::to_owned);
    remove_attachment(&caller, address, tags).await.map(|()| StatusCode::NO_CONTENT)
}

/// Moves an attachment to the trash, if its entity tag is one of these.
pub(crate) async fn remove_attachment(
    caller: &ApiCaller,
    address: NoteAddress,
    tags: Option<String>,
) -> Result<(), ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            let found = needed_attachment(calls, &address)?;
            address.ensure_unguarded(calls)?;
            ensure_served(&address)?;
            if tags.is_some_and(|tags| !names_tag(&tags, &found.etag())) {
                return Err(changed());
            }
            let call = attachment_call(&address, true).option("if-version", Some(&found.version));
            let outcome = calls.perform(call.operands(["remove", address.path()]));
            match outcome.code {
                0 => Ok(()),
                2 => Err(changed()),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_could_run_scripts_are_saved_instead_of_shown() {
        for (path, kind, is_active) in [
            ("a.png", "image/png", false),
            ("a.pdf", "application/pdf", false),
            ("b/a.TXT", "text/plain; charset=utf-8", false),
            ("a.html", "text/html; charset=utf-8", true),
            ("a.svg", "image/svg+xml", true),
            ("a", "application/octet-stream", false),
        ] {
            assert_eq!(media_type(path), (kind.to_owned(), is_active), "{path}");
        }
        assert!(media_type("a.xhtml").1 && media_type("a.js").1 && media_type("a.xml").1);
    }
}
