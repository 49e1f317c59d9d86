//! REST: versions and blocks of a note.

use crate::command_calls::CommandCall;
use crate::http_state::{ApiCaller, UrlPath, UrlQuery};
use crate::list_pages::{PagePosition, PageQuery, keyed_page};
use crate::problem::ProblemDetails;
use crate::rest_notes::{NoteAddress, WrittenNote};
use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A change of a note. The text after it is a version.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct NoteVersion {
    /// Its number, counted from 1: the `version` of other requests.
    pub(crate) number: u64,
    /// Hash of the change.
    pub(crate) hash: String,
    /// When it was made, in seconds since 1970.
    pub(crate) time: i64,
    /// Number of elementary edits.
    pub(crate) operations: u64,
    /// Who made it.
    pub(crate) who: String,
    /// Hashes of the commits of Git that have this version.
    pub(crate) commits: Vec<String>,
}

/// A page of a note's history, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct VersionList {
    versions: Vec<NoteVersion>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists the versions of a note.
#[utoipa::path(
    get, path = "/volumes/{volume}/history/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the note inside the volume"),
        PageQuery,
    ),
    responses((status = 200, body = VersionList)),
)]
pub(crate) async fn list_versions(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<VersionList>, ProblemDetails> {
    let versions = find_versions(&caller, NoteAddress::new(&caller, volume, path)?).await?;
    let (versions, page) = keyed_page(versions, query.limit, query.cursor, |version| version.hash.clone())?;
    Ok(Json(VersionList { versions, page }))
}

/// Returns the versions of a note, oldest first.
pub(crate) async fn find_versions(
    caller: &ApiCaller,
    address: NoteAddress,
) -> Result<Vec<NoteVersion>, ProblemDetails> {
    let versions = caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let outcome = calls.perform(CommandCall::json("history").operands([&address.word()]));
            match outcome.code {
                0 if !outcome.is_cut => Ok(outcome.value().unwrap_or_default()),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await??;
    let unreadable = |_| ProblemDetails::not_found("the note's history can't be read");
    let mut versions: Vec<Value> = serde_json::from_value(versions).map_err(unreadable)?;
    // Commits that only Git has aren't versions of the note's document.
    versions.retain(|version| !version["number"].is_null());
    serde_json::from_value(versions.into()).map_err(unreadable)
}

fn checked_version(version: &str) -> Result<u64, ProblemDetails> {
    let number = version.parse::<u64>().ok().filter(|_| !version.starts_with('+'));
    number.ok_or_else(|| ProblemDetails::not_found("a version is a number; the note's history lists them"))
}

/// Reads the text of a note as it was after a change; version 0 is the text before the first.
#[utoipa::path(
    get, path = "/volumes/{volume}/versions/{version}/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("version" = u64, Path, description = "number of the version"),
        ("path" = String, Path, description = "path of the note inside the volume"),
    ),
    responses((status = 200, body = String, content_type = "text/markdown", description = "the text of that version")),
)]
pub(crate) async fn read_version(
    caller: ApiCaller,
    UrlPath((volume, version, path)): UrlPath<(String, String, String)>,
) -> Result<Response, ProblemDetails> {
    let number = checked_version(&version)?;
    let text = version_text(&caller, NoteAddress::new(&caller, volume, path)?, number).await?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response())
}

/// Returns the text of a note as it was after a change.
pub(crate) async fn version_text(
    caller: &ApiCaller,
    address: NoteAddress,
    number: u64,
) -> Result<String, ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let call = CommandCall::json("history").option("at", Some(number)).operands([&address.word()]);
            let outcome = calls.perform(call);
            let shown = outcome.value().filter(|shown| shown["text"].is_string());
            match (outcome.code, shown) {
                (0, Some(shown)) if !outcome.is_cut => Ok(shown["text"].as_str().unwrap_or_default().to_owned()),
                (2, _) => Err(ProblemDetails::not_found(outcome.reason())),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

/// Gives a note the text that it had in a version. The changes since then stay in its history.
#[utoipa::path(
    post, path = "/volumes/{volume}/versions/{version}/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("version" = u64, Path, description = "number of the version"),
        ("path" = String, Path, description = "path of the note inside the volume"),
    ),
    responses((status = 200, body = WrittenNote, description = "the note has that text again")),
)]
pub(crate) async fn restore_version(
    caller: ApiCaller,
    UrlPath((volume, version, path)): UrlPath<(String, String, String)>,
) -> Result<Json<WrittenNote>, ProblemDetails> {
    let number = checked_version(&version)?;
    restore_text(&caller, NoteAddress::new(&caller, volume, path)?, number).await.map(Json)
}

/// Gives a note the text that it had after a change.
pub(crate) async fn restore_text(
    caller: &ApiCaller,
    address: NoteAddress,
    number: u64,
) -> Result<WrittenNote, ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            address.ensure_unguarded(calls)?;
            let call = CommandCall::json("history").option("restore", Some(number)).operands([&address.word()]);
            let outcome = calls.perform(call);
            match outcome.code {
                0 => Ok(address.needed(calls)?.written()),
                2 => Err(ProblemDetails::not_found(outcome.reason())),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}

/// A block of a note: a paragraph, a heading, a list, a cell, and so on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct NoteBlock {
    /// Its id in the note.
    pub(crate) id: String,
    /// Where it begins, in bytes of the note's text.
    pub(crate) at: u64,
    /// Its text.
    pub(crate) text: String,
    /// Language of the cell; `null` if the block isn't one.
    pub(crate) cell: Option<String>,
}

/// A page of a note's blocks, in their order.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BlockList {
    blocks: Vec<NoteBlock>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists the blocks of a note. Their texts join to the note's text.
#[utoipa::path(
    get, path = "/volumes/{volume}/blocks/{*path}", tag = "notes",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the note inside the volume"),
        PageQuery,
    ),
    responses((status = 200, body = BlockList)),
)]
pub(crate) async fn list_blocks(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<BlockList>, ProblemDetails> {
    let blocks = find_blocks(&caller, NoteAddress::new(&caller, volume, path)?).await?;
    let (blocks, page) = keyed_page(blocks, query.limit, query.cursor, |block| block.id.clone())?;
    Ok(Json(BlockList { blocks, page }))
}

/// Returns the blocks of a note, in their order.
pub(crate) async fn find_blocks(caller: &ApiCaller, address: NoteAddress) -> Result<Vec<NoteBlock>, ProblemDetails> {
    let rows: Vec<Value> = caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let outcome = calls.perform(CommandCall::json("cat").flag("blocks", true).operands([&address.word()]));
            match outcome.code {
                0 if !outcome.is_cut => Ok(outcome.lines()),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await??;
    Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row).ok()).collect())
}
