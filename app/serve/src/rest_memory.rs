//! REST: what agents remember, and the traces that runs can repeat without a model.

use crate::command_calls::CommandCall;
use crate::http_state::{ApiCaller, JsonBody, UrlPath, UrlQuery};
use crate::list_pages::{PagePosition, keyed_page};
use crate::percent_text::percent_encoded;
use crate::problem::ProblemDetails;
use crate::rest_work::ensure_sent;
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Maximum length of a text to remember, in bytes.
pub(crate) const MAX_REMEMBERED_BYTES: usize = 64 << 10;

/// Which memory is listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryListQuery {
    /// Only of this volume.
    #[param(min_length = 1)]
    project: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// The volume whose memory is meant.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryPlaceQuery {
    /// Only of this volume.
    #[param(min_length = 1)]
    project: Option<String>,
}

/// A page of what agents remember.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct MemoryList {
    /// Each with `experience_id`, `primary_goal`, `final_outcome`, `learnings_or_issues`, and whether it `counts`.
    #[schema(value_type = Vec<Object>)]
    memories: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Returns what agents remember: of a volume, or of all that the token reaches.
pub(crate) async fn read_memories(caller: &ApiCaller, project: Option<String>) -> Result<Vec<Value>, ProblemDetails> {
    let project = caller.project(project).await?;
    let call = CommandCall::json("memory").option("project", project).operands(["list"]);
    Ok(caller.perform_ok(call).await?.lines())
}

/// Lists what agents have learned from earlier work.
#[utoipa::path(
    get, path = "/memory", tag = "memory", params(MemoryListQuery), responses((status = 200, body = MemoryList)),
)]
pub(crate) async fn list_memories(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<MemoryListQuery>,
) -> Result<Json<MemoryList>, ProblemDetails> {
    let memories = read_memories(&caller, query.project).await?;
    let (memories, page) = keyed_page(memories, query.limit, query.cursor, memory_key)?;
    Ok(Json(MemoryList { memories, page }))
}

/// Returns what a page names a memory by.
pub(crate) fn memory_key(memory: &Value) -> String {
    memory["experience_id"].as_str().unwrap_or_default().to_owned()
}

/// What is to be done, about which earlier work may say something.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecallGoalQuery {
    /// What is to be done, in words.
    #[param(min_length = 1, pattern = r"^[^\x00]*[^\x00\s][^\x00]*$")]
    goal: String,
    /// Only of this volume.
    #[param(min_length = 1)]
    project: Option<String>,
}

/// Something that is remembered, and how relevant it is to a goal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RecalledMemory {
    /// The `experience_id` of a memory, or the path of a trace.
    name: String,
    /// `experience` or `trace`.
    kind: String,
    /// What it's about, in a few words.
    what: String,
    /// Why it's relevant to the goal.
    why: String,
    /// How relevant it is, from 0 to 1.
    score: f64,
    /// Whether a run with this goal repeats the trace by itself.
    follows: bool,
    /// What was learned; missing for a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learned: Option<String>,
}

/// What is remembered about a goal, the most relevant of each volume first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RecalledList {
    memories: Vec<RecalledMemory>,
}

/// Recalls what is remembered about a goal: lessons of earlier work, and traces. At most 50 of them.
#[utoipa::path(
    get, path = "/memory/recall", tag = "memory", params(RecallGoalQuery),
    responses((status = 200, body = RecalledList)),
)]
pub(crate) async fn recall_memories(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<RecallGoalQuery>,
) -> Result<Json<RecalledList>, ProblemDetails> {
    ensure_sent(&query.goal, "goal")?;
    if query.goal.trim().is_empty() || query.goal.len() > MAX_REMEMBERED_BYTES {
        return Err(ProblemDetails::unprocessable(format!("`goal` has 1 to {MAX_REMEMBERED_BYTES} bytes")));
    }
    let project = caller.project(query.project).await?;
    let found = caller.perform_tool(move |calls| calls.recalled(project.as_deref(), &query.goal)).await?;
    let memories = found.into_iter().filter_map(|memory| serde_json::from_value(memory).ok()).collect();
    Ok(Json(RecalledList { memories }))
}

/// Returns the memory that has exactly this id.
pub(crate) async fn needed_memory(
    caller: &ApiCaller,
    id: &str,
    project: Option<String>,
) -> Result<Value, ProblemDetails> {
    let found = read_memories(caller, project).await?.into_iter().find(|one| one["experience_id"] == id);
    found.ok_or_else(|| ProblemDetails::not_found("nothing is remembered under this id; /api/v1/memory lists what is"))
}

/// Shows what is remembered under an id.
#[utoipa::path(
    get, path = "/memory/{memoryId}", tag = "memory",
    params(("memoryId" = String, Path, description = "its `experience_id`"), MemoryPlaceQuery),
    responses((status = 200, body = Value)),
)]
pub(crate) async fn show_memory(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<Json<Value>, ProblemDetails> {
    needed_memory(&caller, &id, query.project).await.map(Json)
}

/// Forgets what is remembered under an id.
#[utoipa::path(
    delete, path = "/memory/{memoryId}", tag = "memory",
    params(("memoryId" = String, Path, description = "its `experience_id`"), MemoryPlaceQuery),
    responses((status = 204, description = "it's forgotten; the note's history still has it")),
)]
pub(crate) async fn forget_memory(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<StatusCode, ProblemDetails> {
    remove_memory(&caller, &id, query.project).await.map(|()| StatusCode::NO_CONTENT)
}

/// Forgets what is remembered under exactly this id.
pub(crate) async fn remove_memory(caller: &ApiCaller, id: &str, project: Option<String>) -> Result<(), ProblemDetails> {
    needed_memory(caller, id, project.clone()).await?;
    let call = CommandCall::json("memory").option("project", caller.project(project).await?);
    caller.perform_ok(call.operands(["forget", id])).await.map(|_| ())
}

/// Something for agents to remember.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMemory {
    /// What was learned.
    #[schema(min_length = 1, pattern = r"^[^\x00]*$")]
    pub(crate) text: String,
    /// What was to be done; the text if left out.
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) goal: Option<String>,
    /// `success`, `failure` or `success_with_recovery`; `success` if left out.
    #[schema(pattern = "^(success|failure|success_with_recovery)$")]
    pub(crate) outcome: Option<String>,
    /// The volume; needed if there are several.
    pub(crate) project: Option<String>,
    /// The day from which on it no longer counts, such as 2027-01-31.
    #[schema(format = "date")]
    pub(crate) expires: Option<String>,
}

/// What is remembered now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct KeptMemory {
    /// Its `experience_id`.
    pub(crate) id: String,
    /// What happened, in words.
    pub(crate) said: String,
}

/// Adds something for agents to remember.
#[utoipa::path(
    post, path = "/memory", tag = "memory", request_body = NewMemory,
    responses(
        (status = 201, body = KeptMemory, headers(("Location" = String, description = "where it is"))),
        (status = 409, body = ProblemDetails, content_type = "application/problem+json",
            description = "it is not kept, because it says too little"),
    ),
)]
pub(crate) async fn add_memory(
    caller: ApiCaller,
    JsonBody(new): JsonBody<NewMemory>,
) -> Result<Response, ProblemDetails> {
    let kept = keep_memory(&caller, new).await?;
    let place = format!("/api/v1/memory/{}", percent_encoded(&kept.id, false));
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(kept)).into_response())
}

/// Adds something for agents to remember.
pub(crate) async fn keep_memory(caller: &ApiCaller, new: NewMemory) -> Result<KeptMemory, ProblemDetails> {
    if new.text.is_empty() || new.text.len() > MAX_REMEMBERED_BYTES {
        return Err(ProblemDetails::unprocessable(format!("`text` has 1 to {MAX_REMEMBERED_BYTES} bytes")));
    }
    let call = CommandCall::json("memory")
        .option("project", caller.project(new.project).await?)
        .option("goal", new.goal)
        .option("outcome", new.outcome)
        .option("expires", new.expires)
        .option("source", Some("a program, over HTTP"));
    if new.text.trim().is_empty() {
        return Err(ProblemDetails::new(StatusCode::CONFLICT, "`text` has no words, so nothing is kept"));
    }
    let outcome = caller.perform(call.operands(["add", &new.text])).await?;
    match outcome.code {
        0 => {}
        // It says too little, or nothing new.
        1 => return Err(ProblemDetails::new(StatusCode::CONFLICT, outcome.reason())),
        _ => return Err(ProblemDetails::of_outcome(&outcome)),
    }
    let (id, said) = outcome.kept_memory();
    Ok(KeptMemory { id, said })
}

/// A page of traces.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TraceList {
    /// Each with its `name`, `path`, `project`, `goal_text`, number of `steps`, and whether runs repeat it (`follows`).
    #[schema(value_type = Vec<Object>)]
    traces: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

fn trace_name(trace: &Value) -> &str {
    let path = trace["path"].as_str().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Returns traces: of a volume, or of all that the token reaches.
pub(crate) async fn read_traces(caller: &ApiCaller, project: Option<String>) -> Result<Vec<Value>, ProblemDetails> {
    let call = CommandCall::json("traces").option("project", caller.project(project).await?).operands(["list"]);
    let mut traces = caller.perform_ok(call).await?.lines();
    for trace in &mut traces {
        trace["name"] = trace_name(trace).into();
    }
    Ok(traces)
}

/// Lists traces.
#[utoipa::path(
    get, path = "/traces", tag = "memory", params(MemoryListQuery), responses((status = 200, body = TraceList)),
)]
pub(crate) async fn list_traces(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<MemoryListQuery>,
) -> Result<Json<TraceList>, ProblemDetails> {
    let traces = read_traces(&caller, query.project).await?;
    let (traces, page) = keyed_page(traces, query.limit, query.cursor, trace_key)?;
    Ok(Json(TraceList { traces, page }))
}

/// Returns what a page names a trace by.
pub(crate) fn trace_key(trace: &Value) -> String {
    let [project, path] = ["project", "path"].map(|name| trace[name].as_str().unwrap_or_default());
    format!("{project}\n{path}")
}

/// Returns the trace that has exactly this name, and a call for it, which is still without operands.
async fn needed_trace(
    caller: &ApiCaller,
    name: &str,
    project: Option<String>,
) -> Result<(Value, String, CommandCall), ProblemDetails> {
    let named = read_traces(caller, project).await?.into_iter().filter(|trace| trace["name"] == name);
    let mut named = named.collect::<Vec<_>>().into_iter();
    let trace = match (named.next(), named.next()) {
        (Some(trace), None) => trace,
        (None, _) => return Err(ProblemDetails::not_found("no such trace; /api/v1/traces lists them")),
        (Some(_), Some(_)) => {
            return Err(ProblemDetails::unprocessable("several volumes have a trace with that name; send `project`"));
        }
    };
    let path = trace["path"].as_str().unwrap_or_default().to_owned();
    let call = CommandCall::json("traces").option("project", trace["project"].as_str());
    Ok((trace, path, call))
}

/// Shows a trace, with its steps as YAML in `text`.
#[utoipa::path(
    get, path = "/traces/{traceName}", tag = "memory",
    params(("traceName" = String, Path, description = "name of the trace"), MemoryPlaceQuery),
    responses((status = 200, body = Value)),
)]
pub(crate) async fn show_trace(
    caller: ApiCaller,
    UrlPath(name): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<Json<Value>, ProblemDetails> {
    read_trace(&caller, &name, query.project).await.map(Json)
}

/// Reads the trace that has exactly this name, with its steps as YAML in `text`.
pub(crate) async fn read_trace(
    caller: &ApiCaller,
    name: &str,
    project: Option<String>,
) -> Result<Value, ProblemDetails> {
    let (mut trace, path, call) = needed_trace(caller, name, project).await?;
    trace["text"] = caller.perform_ok(call.operands(["export", &path])).await?.text().into();
    Ok(trace)
}

/// Moves a trace to the trash.
#[utoipa::path(
    delete, path = "/traces/{traceName}", tag = "memory",
    params(("traceName" = String, Path, description = "name of the trace"), MemoryPlaceQuery),
    responses((status = 204, description = "the trace is in the trash")),
)]
pub(crate) async fn forget_trace(
    caller: ApiCaller,
    UrlPath(name): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<StatusCode, ProblemDetails> {
    remove_trace(&caller, &name, query.project).await.map(|()| StatusCode::NO_CONTENT)
}

/// Moves the trace that has exactly this name to the trash.
pub(crate) async fn remove_trace(
    caller: &ApiCaller,
    name: &str,
    project: Option<String>,
) -> Result<(), ProblemDetails> {
    let (_, path, call) = needed_trace(caller, name, project).await?;
    caller.perform_ok(call.operands(["forget", &path])).await.map(|_| ())
}

/// Trusts exactly the steps of a trace, or no longer. Returns the trace.
pub(crate) async fn set_pin(
    caller: &ApiCaller,
    name: &str,
    project: Option<String>,
    pin: bool,
) -> Result<Value, ProblemDetails> {
    let (trace, path, call) = needed_trace(caller, name, project).await?;
    let call = call.flag("pin", pin).flag("unpin", !pin).operands(["show", &path]);
    let mut shown = caller.perform_ok(call).await?.value().unwrap_or_default();
    (shown["name"], shown["project"]) = (trace["name"].clone(), trace["project"].clone());
    Ok(shown)
}

/// Trusts exactly the steps of a trace, so that runs on this device repeat them by themselves.
#[utoipa::path(
    put, path = "/traces/{traceName}/pin", tag = "memory",
    params(("traceName" = String, Path, description = "name of the trace"), MemoryPlaceQuery),
    responses((status = 200, body = Value)),
)]
pub(crate) async fn pin_trace(
    caller: ApiCaller,
    UrlPath(name): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<Json<Value>, ProblemDetails> {
    set_pin(&caller, &name, query.project, true).await.map(Json)
}

/// Takes back the trust in a trace.
#[utoipa::path(
    delete, path = "/traces/{traceName}/pin", tag = "memory",
    params(("traceName" = String, Path, description = "name of the trace"), MemoryPlaceQuery),
    responses((status = 200, body = Value)),
)]
pub(crate) async fn unpin_trace(
    caller: ApiCaller,
    UrlPath(name): UrlPath<String>,
    UrlQuery(query): UrlQuery<MemoryPlaceQuery>,
) -> Result<Json<Value>, ProblemDetails> {
    set_pin(&caller, &name, query.project, false).await.map(Json)
}
