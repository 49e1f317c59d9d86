//! REST: volumes, notes, search and todos.

use crate::command_calls::{CommandCall, CommandOutcome, text_version};
use crate::entity_tags::{ReadCondition, names_tag, read_condition};
use crate::http_state::{ApiCaller, JsonBody, TextBody, UrlPath, UrlQuery};
use crate::list_pages::{
    MAX_PAGE_ITEMS, PagePosition, PageQuery, cursor_after, cursor_position, keyed_page, keyed_page_within, page_cursor,
    page_limit, page_start,
};
use crate::problem::ProblemDetails;
use crate::tool_calls::ToolCallContext;
use crate::whole_numbers;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Number of hits, if the client doesn't say, and at most.
pub(crate) const DEFAULT_HITS: u64 = 10;
pub(crate) const MAX_HITS: u64 = 100;
/// Maximum number of hits on all pages of a search.
const MAX_LISTED_HITS: u64 = 1_000;
/// Maximum length of a note's path in bytes, and of each of its parts, as file systems have it.
const MAX_PATH_BYTES: usize = 1_024;
const MAX_NAME_BYTES: usize = 255;
/// What a command says if the note is on its way to the trash.
const LEAVING_NOTE: &str = "is being deleted";
/// What a command says if the note has its new text, and the file isn't written in time.
const SLOW_SAVE_MESSAGE: &str = "saving takes longer than it should";

/// A volume: a folder of notes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct VolumeInfo {
    /// Its id, which stays.
    pub(crate) id: String,
    /// Its name, by which other requests name it.
    pub(crate) name: String,
    /// Its folder; `null` if it isn't on this device.
    pub(crate) folder: Option<String>,
    /// Number of notes.
    pub(crate) notes: u64,
    /// Number of files, notes among them.
    pub(crate) files: u64,
}

/// A page of volumes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct VolumeList {
    volumes: Vec<VolumeInfo>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists volumes.
#[utoipa::path(
    get, path = "/volumes", tag = "notes", params(PageQuery), responses((status = 200, body = VolumeList)),
)]
pub(crate) async fn list_volumes(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<VolumeList>, ProblemDetails> {
    let all = reachable_volumes(&caller).await?;
    let per_page = (MAX_PAGE_ITEMS, MAX_PAGE_ITEMS);
    let (volumes, page) = keyed_page_within(all, query.limit, query.cursor, per_page, |volume| volume.id.clone())?;
    Ok(Json(VolumeList { volumes, page }))
}

/// Returns the volumes that the token reaches.
pub(crate) async fn reachable_volumes(caller: &ApiCaller) -> Result<Vec<VolumeInfo>, ProblemDetails> {
    let volumes = caller.volumes().await?.into_iter().filter_map(|row| serde_json::from_value(row).ok());
    Ok(volumes.collect())
}

/// Which notes are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotesQuery {
    /// Only paths that begin like this, such as `Journal/`.
    prefix: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// A note in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct NoteInfo {
    /// The path inside the volume.
    pub(crate) path: String,
    /// The volume.
    pub(crate) volume: String,
    /// Number of cells.
    pub(crate) cells: u64,
}

/// A page of notes, by path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NoteList {
    notes: Vec<NoteInfo>,
    /// Number of notes on all pages.
    total: u64,
    /// Where the next page begins; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<u64>,
}

/// Lists the notes of a volume.
#[utoipa::path(
    get, path = "/volumes/{volume}/notes", tag = "notes",
    params(("volume" = String, Path, description = "name of the volume"), NotesQuery),
    responses((status = 200, body = NoteList)),
)]
pub(crate) async fn list_notes(
    caller: ApiCaller,
    UrlPath(volume): UrlPath<String>,
    UrlQuery(query): UrlQuery<NotesQuery>,
) -> Result<Json<NoteList>, ProblemDetails> {
    let notes = find_notes(&caller, volume, query.prefix.unwrap_or_default()).await?;
    let (notes, position) = keyed_page(notes, query.limit, query.cursor, |note| note.path.clone())?;
    Ok(Json(NoteList { notes, total: position.total, next_cursor: position.next_cursor }))
}

/// Returns the notes of a volume with paths that begin with `prefix`, by path.
pub(crate) async fn find_notes(
    caller: &ApiCaller,
    volume: String,
    prefix: String,
) -> Result<Vec<NoteInfo>, ProblemDetails> {
    caller.needed_volume(&volume).await?;
    let notes = caller.perform_tool(move |calls| calls.notes(Some(volume.as_str()), &prefix)).await?;
    Ok(notes.into_iter().filter_map(|row| serde_json::from_value(row).ok()).collect())
}

/// A note that a request names: a volume, and a path inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoteAddress {
    volume: String,
    path: String,
}

impl NoteAddress {
    /// Checks that the token reaches the volume, and that the path is one that a note can have.
    pub(crate) fn new(caller: &ApiCaller, volume: String, path: String) -> Result<NoteAddress, ProblemDetails> {
        caller.volume(Some(volume.clone()))?;
        let is_plain = |part: &str| {
            !matches!(part, "" | "." | "..") && part.len() <= MAX_NAME_BYTES && !part.contains(['\\', '\0'])
        };
        let fits = path.len() <= MAX_PATH_BYTES && path.split('/').all(is_plain) && !path.contains(char::is_control);
        if !fits || volume.is_empty() || volume.contains(char::is_control) {
            let why = if path.split('/').any(|part| part.len() > MAX_NAME_BYTES) {
                "a part of the path is longer than 255 bytes; choose a shorter one"
            } else {
                "a note has a path inside its volume, without `..`, empty parts and control characters"
            };
            return Err(ProblemDetails::unprocessable(why));
        }
        Ok(NoteAddress { volume, path })
    }

    /// Returns the name of the volume.
    pub(crate) fn volume(&self) -> &str {
        &self.volume
    }

    /// Returns the path inside the volume.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the name under which commands know the note.
    pub(crate) fn word(&self) -> String {
        format!("{}:{}", self.volume, self.path)
    }

    /// Reads exactly this note, and no other that its name could mean to a command.
    fn read(&self, calls: &ToolCallContext<'_>) -> Result<Option<NoteText>, ProblemDetails> {
        let outcome = calls.perform(CommandCall::json("cat").operands([&self.word()]));
        match outcome.code {
            0 if !outcome.is_cut => {}
            2 => return Ok(None),
            _ => return Err(ProblemDetails::of_outcome(&outcome)),
        }
        let found: Option<NoteText> = serde_json::from_slice(&outcome.output).ok();
        Ok(found.filter(|note| note.path == self.path && note.volume == self.volume))
    }

    /// Returns whether a file of any kind has this path, but for the case of its letters.
    fn is_taken(&self, calls: &ToolCallContext<'_>) -> Result<bool, ProblemDetails> {
        let listed = calls.perform(CommandCall::json("ls").option("volume", Some(&self.volume)));
        let Some(Value::Array(rows)) = listed.value().filter(|_| listed.code == 0 && !listed.is_cut) else {
            return Err(ProblemDetails::of_outcome(&listed));
        };
        let path = self.path.to_lowercase();
        let is_path = |row: &Value| row["path"].as_str().is_some_and(|other| other.to_lowercase() == path);
        let is_here = |row: &Value| is_path(row) && row["volume"] == self.volume.as_str();
        Ok(rows.iter().any(|row| is_here(row) && row["kind"] != "skipped"))
    }

    pub(crate) fn needed(&self, calls: &ToolCallContext<'_>) -> Result<NoteText, ProblemDetails> {
        self.read(calls)?.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> ProblemDetails {
        ProblemDetails::not_found(format!("there is no note {} in {}", self.path, self.volume))
    }

    pub(crate) fn ensure_unguarded(&self, calls: &ToolCallContext<'_>) -> Result<(), ProblemDetails> {
        calls.ensure_unguarded(&self.path).map_err(|error| ProblemDetails::new(StatusCode::FORBIDDEN, error.0))
    }
}

/// A note's text as `cat --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct NoteText {
    pub(crate) text: String,
    path: String,
    volume: String,
    /// Its entity tag, without quotes.
    pub(crate) version: String,
}

impl NoteText {
    fn etag(&self) -> String {
        format!("\"{}\"", self.version)
    }

    /// Returns what an answer says of a note that was written.
    pub(crate) fn written(self) -> WrittenNote {
        let NoteText { text, path, volume, version } = self;
        WrittenNote { volume, path, version, bytes: text.len() as u64 }
    }
}

pub(crate) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Reads a note: exactly the bytes of its file.
#[utoipa::path(
    get, path = "/volumes/{volume}/notes/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the note inside the volume"),
        ("If-Match" = Option<String>, Header, description = "answer 412 if the note has another entity tag"),
        ("If-None-Match" = Option<String>, Header, description = "answer 304 if the note still has this entity tag"),
    ),
    responses(
        (status = 200, body = String, content_type = "text/markdown", description = "the note's text",
            headers(("ETag" = String, description = "changes with every byte of the note"))),
        (status = 304, description = "the note still has that entity tag"),
        (status = 412, body = ProblemDetails, content_type = "application/problem+json",
            description = "the note has another entity tag"),
    ),
)]
pub(crate) async fn read_note(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let note = read_text(&caller, NoteAddress::new(&caller, volume, path)?).await?;
    let tag = note.etag();
    match read_condition(&headers, &tag) {
        ReadCondition::Send => {}
        ReadCondition::NotModified => return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response()),
        ReadCondition::Changed => return Err(changed()),
    }
    let headers = [(header::ETAG, tag), (header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned())];
    Ok((headers, note.text).into_response())
}

/// Reads a note.
pub(crate) async fn read_text(caller: &ApiCaller, address: NoteAddress) -> Result<NoteText, ProblemDetails> {
    caller.perform_calls(move |calls| address.needed(calls)).await?
}

/// A note that was written.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WrittenNote {
    volume: String,
    path: String,
    /// The new entity tag, without quotes.
    pub(crate) version: String,
    /// Length of the text in bytes.
    bytes: u64,
}

/// Writes a note: a new one with `If-None-Match: *`, or a new text for the version that `If-Match` names.
#[utoipa::path(
    put, path = "/volumes/{volume}/notes/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the note inside the volume"),
        ("If-Match" = Option<String>, Header, description = "entity tag of the text that is replaced"),
        ("If-None-Match" = Option<String>, Header, description = "`*` to create a note"),
    ),
    request_body(content = String, content_type = "text/markdown"),
    responses(
        (status = 200, body = WrittenNote, description = "the text was replaced"),
        (status = 201, body = WrittenNote, description = "the note was created"),
        (status = 202, body = WrittenNote, description = "the note has the text, and its file is still being written"),
        (status = 412, body = ProblemDetails, content_type = "application/problem+json",
            description = "the note has another text, or exists"),
        (status = 428, body = ProblemDetails, content_type = "application/problem+json",
            description = "neither If-Match nor If-None-Match was sent"),
    ),
)]
pub(crate) async fn write_note(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    headers: HeaderMap,
    TextBody(text): TextBody,
) -> Result<Response, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    let replaces = header_text(&headers, header::IF_MATCH).map(str::to_owned);
    let condition = match (replaces, header_text(&headers, header::IF_NONE_MATCH)) {
        (Some(tags), None) => WriteCondition::Replaces(tags),
        (None, Some("*")) => WriteCondition::Creates,
        (None, None) => {
            let why = "send If-Match with the note's entity tag, or If-None-Match: * to create it";
            return Err(ProblemDetails::new(StatusCode::PRECONDITION_REQUIRED, why));
        }
        (Some(_), Some("*")) => {
            let why = "If-Match wants the note, and If-None-Match: * wants none; send one of them";
            return Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, why));
        }
        (_, Some(_)) => {
            let why = "If-None-Match is * here, or missing";
            return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, why));
        }
    };
    let volume = address.volume().to_owned();
    if condition == WriteCondition::Creates {
        // Commands know volumes by their ids, too, under which the note wouldn't be read again.
        caller.needed_volume(&volume).await?;
    }
    let written = write_text(&caller, address, condition, text).await;
    if written.as_ref().is_err_and(|problem| problem.status() == StatusCode::PRECONDITION_FAILED) {
        // Without the volume, there's nothing to read again.
        caller.needed_volume(&volume).await?;
    }
    let (status, written) = written?;
    Ok((status, [(header::ETAG, written.etag())], Json(written.written())).into_response())
}

/// What must hold for a note to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteCondition {
    /// There is no such note yet.
    Creates,
    /// The note's entity tag is one of these, as in the header `If-Match`.
    Replaces(String),
}

/// Writes a note. Returns whether it's new, as a status, and what it is now.
pub(crate) async fn write_text(
    caller: &ApiCaller,
    address: NoteAddress,
    condition: WriteCondition,
    text: String,
) -> Result<(StatusCode, NoteText), ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            let status = match condition {
                WriteCondition::Creates => create_note(calls, &address, text)?,
                WriteCondition::Replaces(tags) => replace_text(calls, &address, &tags, text)?,
            };
            Ok((status, address.needed(calls)?))
        })
        .await?
}

fn changed() -> ProblemDetails {
    ProblemDetails::new(StatusCode::PRECONDITION_FAILED, "the note has another text now; read it again")
}

fn replace_text(
    calls: &ToolCallContext<'_>,
    address: &NoteAddress,
    tags: &str,
    text: String,
) -> Result<StatusCode, ProblemDetails> {
    let old = address.read(calls)?.ok_or_else(changed)?;
    address.ensure_unguarded(calls)?;
    if !names_tag(tags, &old.etag()) {
        return Err(changed());
    }
    // The owner compares again, in the moment in which it edits.
    let version = text_version(&text);
    let call = CommandCall::json("edit").flag("text", true).option("if-version", Some(&old.version));
    let outcome = calls.perform(call.operands([&address.word()]).with_input(text));
    match outcome.code {
        0 => Ok(StatusCode::OK),
        2 if outcome.reason().contains(LEAVING_NOTE) => Err(changed()),
        2 if address.read(calls)?.is_none_or(|now| now.version != old.version) => Err(changed()),
        // It was deleted meanwhile.
        3 if address.read(calls)?.is_none() => Err(changed()),
        3 => unsaved_write(calls, address, &version, &outcome),
        _ => Err(ProblemDetails::of_outcome(&outcome)),
    }
}

fn create_note(calls: &ToolCallContext<'_>, address: &NoteAddress, text: String) -> Result<StatusCode, ProblemDetails> {
    if !address.path.to_lowercase().ends_with(".md") {
        return Err(ProblemDetails::unprocessable("a note's path ends with .md"));
    }
    address.ensure_unguarded(calls)?;
    let exists = || ProblemDetails::new(StatusCode::PRECONDITION_FAILED, "a note with this path exists already");
    if address.read(calls)?.is_some() {
        return Err(exists());
    }
    let call = CommandCall::json("new").option("volume", Some(&address.volume)).option("text", Some("-"));
    let version = text_version(&text);
    // The address is exact: a folder may be called as the volume.
    let outcome = calls.perform(call.operands([&format!("./{}", address.path)]).with_input(text));
    match outcome.code {
        0 => Ok(StatusCode::CREATED),
        2 if address.read(calls)?.is_some() => Err(exists()),
        // A file that isn't a note, such as one that isn't UTF-8.
        2 if address.is_taken(calls)? => Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, outcome.reason())),
        3 => unsaved_write(calls, address, &version, &outcome),
        _ => Err(ProblemDetails::of_outcome(&outcome)),
    }
}

/// Returns the answer to a write that isn't known to be on disk. Sent again, it would find another text than expected.
fn unsaved_write(
    calls: &ToolCallContext<'_>,
    address: &NoteAddress,
    version: &str,
    outcome: &CommandOutcome,
) -> Result<StatusCode, ProblemDetails> {
    let is_there = matches!(address.read(calls), Ok(Some(now)) if text_version(&now.text) == version);
    let why = outcome.reason();
    match is_there {
        // Nothing has failed: the file of a very large note takes its time.
        true if why.contains(SLOW_SAVE_MESSAGE) => Ok(StatusCode::ACCEPTED),
        true => {
            let why =
                format!("{why}. The note has the text; it's written when that's possible, so don't send it again");
            Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, why))
        }
        false => Err(ProblemDetails::of_outcome(outcome)),
    }
}

/// Moves a note to the trash.
#[utoipa::path(
    delete, path = "/volumes/{volume}/notes/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the note inside the volume"),
        ("If-Match" = Option<String>, Header, description = "only if the note has this entity tag"),
    ),
    responses((status = 204, description = "the note is in the trash")),
)]
pub(crate) async fn delete_note(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    let tags = header_text(&headers, header::IF_MATCH).map(str::to_owned);
    remove_note(&caller, address, tags).await.map(|()| StatusCode::NO_CONTENT)
}

/// Moves a note to the trash, if its entity tag is one of these.
pub(crate) async fn remove_note(
    caller: &ApiCaller,
    address: NoteAddress,
    tags: Option<String>,
) -> Result<(), ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            let note = address.needed(calls)?;
            address.ensure_unguarded(calls)?;
            if tags.as_ref().is_some_and(|tags| !names_tag(tags, &note.etag())) {
                return Err(changed());
            }
            // The owner compares again in the moment in which it deletes.
            let expected = tags.map(|_| note.version);
            let call = CommandCall::json("rm").option("if-version", expected.as_ref());
            let outcome = calls.perform(call.operands([&address.word()]));
            if outcome.code != 2 {
                return ProblemDetails::unless_done(&outcome);
            }
            // Another client may have been faster.
            match (expected, address.read(calls)?) {
                (Some(expected), now) if now.as_ref().is_none_or(|now| now.version != expected) => Err(changed()),
                (None, None) => Err(address.missing()),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

/// What is searched.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// Words, "phrases", -not, OR, tag: path: title: in:code is:todo by: before: after:
    #[param(min_length = 1, pattern = r"^[^\x00]*$")]
    query: String,
    /// How many at most.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// A page of what was found, best first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SearchHits {
    /// Each with its address, volume, title, text, score and the parts of the score.
    #[schema(value_type = Vec<Object>)]
    pub(crate) hits: Vec<Value>,
    /// Where the next page begins; missing on the last one. At most 1,000 hits are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<u64>,
    /// What the search says besides, such as a filter that it doesn't know; missing if there's nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    messages: String,
}

fn hit_key(hit: &Value) -> String {
    format!("{}\n{}", hit["volume"].as_str().unwrap_or_default(), hit["address"].as_str().unwrap_or_default())
}

/// Searches notes, code and outputs by words and by meaning.
#[utoipa::path(
    get, path = "/search", tag = "notes", params(SearchQuery), responses((status = 200, body = SearchHits)),
)]
pub(crate) async fn search_notes(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<SearchQuery>,
) -> Result<Json<SearchHits>, ProblemDetails> {
    let limit = page_limit(query.limit, DEFAULT_HITS, MAX_HITS)?;
    if query.query.is_empty() {
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, "`query` says what is searched"));
    }
    find_hit_page(&caller, &query.query, limit, page_cursor(query.cursor)?).await.map(Json)
}

/// Returns a page of what a search finds.
pub(crate) async fn find_hit_page(
    caller: &ApiCaller,
    query: &str,
    limit: u64,
    cursor: u64,
) -> Result<SearchHits, ProblemDetails> {
    let before = cursor_position(cursor);
    // One more says whether there is another page, and as many again find the place if better ones were added.
    let spare = if before == 0 { 1 } else { limit + 1 };
    let wanted = before.saturating_add(limit + spare).min(MAX_LISTED_HITS);
    let (mut hits, messages) = find_hits(caller, query, wanted).await?;
    let start = page_start(&hits, cursor, &hit_key).min(hits.len());
    let end = start.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX)).min(hits.len());
    let next_cursor = (end < hits.len()).then(|| cursor_after(end as u64, &hit_key(&hits[end - 1])));
    Ok(SearchHits { hits: hits.drain(start..end).collect(), next_cursor, messages })
}

/// Searches what the token reaches. Returns the hits, and what the search says besides.
pub(crate) async fn find_hits(
    caller: &ApiCaller,
    query: &str,
    limit: u64,
) -> Result<(Vec<Value>, String), ProblemDetails> {
    // A command would name all volumes if the token's isn't here.
    if caller.token.volume.is_some() && caller.volumes().await?.is_empty() {
        return Ok((Vec::new(), String::new()));
    }
    let call = CommandCall::json("search").flag("explain", true).option("limit", Some(limit));
    let call = call.option("volume", caller.token.volume.clone());
    let found = caller.perform(call.operands([query])).await?;
    let hits = match found.code {
        0 if !found.is_cut => found.value().unwrap_or_default(),
        // A search that is kept under a name, and isn't there.
        2 if query.starts_with('@') => return Err(ProblemDetails::not_found(found.reason())),
        _ => return Err(ProblemDetails::of_outcome(&found)),
    };
    let hits = if let Value::Array(hits) = hits { hits } else { Vec::new() };
    let own = hits.into_iter().filter(|hit| caller.reaches(&hit["volume"]));
    Ok((own.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect(), found.said()))
}

/// Which todos are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodosQuery {
    /// Only those with these words.
    #[param(pattern = r"^[^\x00]*$")]
    words: Option<String>,
    /// Also those that are done.
    all: Option<bool>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// Todos of notes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TodoList {
    /// Each with its volume, path and byte offset, text, whether it's done, and its days.
    #[schema(value_type = Vec<Object>)]
    todos: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists todos of notes.
#[utoipa::path(get, path = "/todos", tag = "notes", params(TodosQuery), responses((status = 200, body = TodoList)))]
pub(crate) async fn list_todos(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<TodosQuery>,
) -> Result<Json<TodoList>, ProblemDetails> {
    let all = find_todos(&caller, query.words, query.all.unwrap_or(false)).await?;
    let per_page = (MAX_PAGE_ITEMS, MAX_PAGE_ITEMS);
    let (todos, page) = keyed_page_within(all, query.limit, query.cursor, per_page, todo_key)?;
    Ok(Json(TodoList { todos, page }))
}

/// Returns what a page names a todo by. A todo keeps its text while others move it.
pub(crate) fn todo_key(todo: &Value) -> String {
    let [volume, path, text] = ["volume", "path", "text"].map(|name| todo[name].as_str().unwrap_or_default());
    format!("{volume}\n{path}\n{text}")
}

/// Returns the todos that the token reaches.
pub(crate) async fn find_todos(
    caller: &ApiCaller,
    words: Option<String>,
    all: bool,
) -> Result<Vec<Value>, ProblemDetails> {
    let call = CommandCall::json("todos").option("words", words).flag("all", all);
    let todos = caller.perform_ok(call).await?.lines();
    Ok(todos.into_iter().filter(|todo| caller.reaches(&todo["volume"])).collect())
}

/// The todo to check or uncheck.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoCheck {
    #[schema(min_length = 1)]
    volume: String,
    #[schema(min_length = 1)]
    path: String,
    /// Its text, as the list has it.
    #[schema(min_length = 1, pattern = r"^[^\x00]*$")]
    text: String,
    /// Its byte offset, as the list has it: of several with that text, the nearest is meant.
    #[serde(deserialize_with = "whole_numbers::needed")]
    at: u64,
}

/// A todo after it was checked or unchecked.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CheckedTodo {
    path: String,
    /// Whether it's done now.
    pub(crate) done: bool,
}

/// Checks a todo, or unchecks it if it's done.
#[utoipa::path(
    post, path = "/todos/check", tag = "notes", request_body = TodoCheck,
    responses((status = 200, body = CheckedTodo)),
)]
pub(crate) async fn check_todo(
    caller: ApiCaller,
    JsonBody(check): JsonBody<TodoCheck>,
) -> Result<Json<CheckedTodo>, ProblemDetails> {
    let address = NoteAddress::new(&caller, check.volume, check.path)?;
    if check.text.is_empty() || check.text.contains('\0') {
        return Err(ProblemDetails::unprocessable("`text` is the text of a todo, without NUL characters"));
    }
    let checked = toggle_todo(&caller, address, check.text, check.at).await;
    // A note without that todo is like a path without a note.
    let missing = |problem: ProblemDetails| match problem.status() {
        StatusCode::UNPROCESSABLE_ENTITY => ProblemDetails::not_found(problem.detail()),
        _ => problem,
    };
    checked.map(Json).map_err(missing)
}

/// Checks a todo, or unchecks it if it's done.
pub(crate) async fn toggle_todo(
    caller: &ApiCaller,
    address: NoteAddress,
    text: String,
    at: u64,
) -> Result<CheckedTodo, ProblemDetails> {
    if text.contains('\0') {
        return Err(ProblemDetails::unprocessable("a todo's text has no NUL characters"));
    }
    caller
        .perform_calls(move |calls| {
            let note = address.needed(calls)?;
            address.ensure_unguarded(calls)?;
            let call = CommandCall::json("todos").option("check", Some(address.word())).option("at", Some(at));
            let outcome = calls.perform(call.option("words", Some(text)));
            let done = outcome.value().and_then(|value| value["done"].as_bool());
            match (outcome.code, done) {
                (0, Some(done)) => Ok(CheckedTodo { path: note.path, done }),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_calls::WorkspaceCommands;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A workspace that makes notes, and doesn't save them.
    struct UnsavedNotes {
        why: &'static str,
        is_made: AtomicBool,
    }

    impl WorkspaceCommands for UnsavedNotes {
        fn perform(&self, call: &CommandCall, _: &mut dyn FnMut(&str)) -> CommandOutcome {
            let (code, output, messages) = match call.words[0].as_str() {
                "new" => {
                    self.is_made.store(true, Ordering::Relaxed);
                    (3, "", self.why)
                }
                _ if self.is_made.load(Ordering::Relaxed) => {
                    (0, r#"{"text": "hi", "path": "a.md", "volume": "v", "version": "1"}"#, "")
                }
                _ => (2, "", "there is no note"),
            };
            CommandOutcome { code, output: output.into(), messages: messages.to_owned(), is_cut: false }
        }
    }

    #[test]
    fn a_write_that_is_not_on_disk_says_that_the_note_has_it() {
        let write = |why: &'static str, text: &str| {
            let commands = UnsavedNotes { why, is_made: AtomicBool::new(false) };
            let calls = ToolCallContext {
                commands: &commands,
                only_volume: None,
                cancelled: Arc::default(),
                on_news: &mut |_| {},
            };
            let address = NoteAddress { volume: "v".to_owned(), path: "a.md".to_owned() };
            create_note(&calls, &address, text.to_owned())
        };
        let slow = "tracebook: saving takes longer than it should; `tracebook doctor` looks at the disk";
        assert_eq!(write(slow, "hi"), Ok(StatusCode::ACCEPTED));
        let full = write("tracebook: the disk is full", "hi").expect_err("it isn't saved");
        assert!(full.status() == StatusCode::SERVICE_UNAVAILABLE && full.detail().contains("don't send it again"));
        let other = write(slow, "another text").expect_err("the note has another text");
        assert!(!other.detail().contains("don't send it again"), "{}", other.detail());
    }
}
