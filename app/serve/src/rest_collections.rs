//! REST: collections, which are tables over the properties of notes.

use crate::command_calls::CommandCall;
use crate::http_state::{ApiCaller, UrlPath, UrlQuery};
use crate::list_pages::{PagePosition, PageQuery, keyed_page};
use crate::problem::ProblemDetails;
use crate::rest_notes::NoteAddress;
use crate::rest_work::ensure_sent;
use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A page of the collections of a volume.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CollectionList {
    /// Their paths inside the volume.
    collections: Vec<String>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Returns the paths of the collections of a volume.
pub(crate) async fn collection_paths(caller: &ApiCaller, volume: &str) -> Result<Vec<String>, ProblemDetails> {
    caller.needed_volume(volume).await?;
    let rows = caller.perform_ok(CommandCall::json("ls").option("volume", Some(volume))).await?.value();
    let rows = if let Some(Value::Array(rows)) = rows { rows } else { Vec::new() };
    let collections = rows.iter().filter(|row| row["kind"].as_str() == Some("collection"));
    Ok(collections.filter_map(|row| row["path"].as_str().map(str::to_owned)).collect())
}

/// Lists the collections of a volume.
#[utoipa::path(
    get, path = "/volumes/{volume}/collections", tag = "collections",
    params(("volume" = String, Path, description = "name of the volume"), PageQuery),
    responses((status = 200, body = CollectionList)),
)]
pub(crate) async fn list_collections(
    caller: ApiCaller,
    UrlPath(volume): UrlPath<String>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<CollectionList>, ProblemDetails> {
    let paths = collection_paths(&caller, &volume).await?;
    let (collections, page) = keyed_page(paths, query.limit, query.cursor, String::clone)?;
    Ok(Json(CollectionList { collections, page }))
}

/// Which rows of a collection are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionQuery {
    /// The view; the first one if left out.
    #[param(pattern = r"^[^\x00]*$")]
    view: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// A row of a collection: a note.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CollectionRow {
    /// Path of the note.
    pub(crate) path: String,
    /// The group that it's in; empty if the view has none.
    pub(crate) group: Option<Value>,
    /// What the view shows of it, by the names of the columns.
    #[schema(value_type = Object)]
    pub(crate) cells: Map<String, Value>,
}

/// A page of the rows of a collection, in the order of the view.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CollectionRows {
    rows: Vec<CollectionRow>,
    /// What the view couldn't evaluate, as sentences; empty if all is well.
    problems: String,
    #[serde(flatten)]
    page: PagePosition,
}

/// Evaluates a view of a collection.
#[utoipa::path(
    get, path = "/volumes/{volume}/collections/{*path}", tag = "collections",
    params(
        ("volume" = String, Path, description = "name of the volume"),
        ("path" = String, Path, description = "path of the collection inside the volume"),
        CollectionQuery,
    ),
    responses((status = 200, body = CollectionRows)),
)]
pub(crate) async fn read_collection(
    caller: ApiCaller,
    UrlPath((volume, path)): UrlPath<(String, String)>,
    UrlQuery(query): UrlQuery<CollectionQuery>,
) -> Result<Json<CollectionRows>, ProblemDetails> {
    let address = NoteAddress::new(&caller, volume, path)?;
    let (rows, problems) = evaluate_view(&caller, address, query.view).await?;
    let (rows, page) = keyed_page(rows, query.limit, query.cursor, row_key)?;
    Ok(Json(CollectionRows { rows, problems, page }))
}

/// Returns what a page names a row by. A note is in several groups if its property has several values.
pub(crate) fn row_key(row: &CollectionRow) -> String {
    format!("{}\n{}", row.path, row.group.clone().unwrap_or_default())
}

/// Returns the rows of a view of a collection, in its order, and what it couldn't evaluate.
pub(crate) async fn evaluate_view(
    caller: &ApiCaller,
    address: NoteAddress,
    view: Option<String>,
) -> Result<(Vec<CollectionRow>, String), ProblemDetails> {
    if !collection_paths(caller, address.volume()).await?.iter().any(|known| known == address.path()) {
        let why = format!("there is no collection {} in {}", address.path(), address.volume());
        return Err(ProblemDetails::not_found(why));
    }
    ensure_sent(view.as_deref().unwrap_or_default(), "view")?;
    let call = CommandCall::json("base").option("view", view).operands([&address.word()]);
    let outcome = caller.perform(call).await?;
    // A view that can't be evaluated is answered, with its problems.
    if outcome.is_cut || !matches!(outcome.code, 0 | 1) {
        return Err(ProblemDetails::of_outcome(&outcome));
    }
    let rows = outcome
        .lines()
        .into_iter()
        .filter(|row| row.get("problem").is_none())
        .filter_map(|row| serde_json::from_value(row).ok())
        .collect();
    let problems = if outcome.messages.is_empty() { String::new() } else { outcome.reason() };
    Ok((rows, problems))
}
