//! REST: tasks, agents, approvals, runs and cells.

use crate::command_calls::CommandCall;
use crate::http_state::{ApiCaller, JsonBody, UrlPath, UrlQuery};
use crate::list_pages::{MAX_PAGE_ITEMS, PagePosition, PageQuery, cursor_after, keyed_page_within};
use crate::pending_approval::PendingApproval;
use crate::problem::ProblemDetails;
use crate::rest_notes::{NoteAddress, reachable_volumes};
use crate::task_queue::{QueueStatus, QueuedTask, TaskEndAction};
use crate::tool_calls::{MAX_CELL_SECONDS, bounded_outputs, new_run_id};
use crate::tool_table::ToolRow;
use crate::whole_numbers;
use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

/// Number of runs, if the client doesn't say, and at most.
pub(crate) const DEFAULT_RUNS: u64 = 20;
pub(crate) const MAX_RUNS: u64 = 500;
/// Maximum length of a task's description in bytes.
pub(crate) const MAX_DESCRIPTION_BYTES: usize = 512 << 10;
/// Maximum length of the comment of a decision in bytes.
const MAX_COMMENT_BYTES: usize = 64 << 10;
/// Maximum size of a page of outputs, in bytes of JSON. One that is longer is a page of its own.
const MAX_OUTPUT_PAGE_BYTES: usize = 2_000_000;
/// What the command says of a cell that a note doesn't have.
const MISSING_CELL: &str = "there is no cell ";
/// Number of characters of a run's id.
const RUN_ID_CHARS: usize = 32;

/// A task for an agent.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = Task)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRequest {
    /// Kind of task, in a word of the client. The agent is told.
    #[serde(rename = "type")]
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) kind: Option<String>,
    /// What is to be done.
    #[schema(min_length = 1, pattern = r"\S")]
    pub(crate) description: String,
    /// What the agent should know besides.
    #[schema(value_type = Option<Object>)]
    pub(crate) context: Option<Map<String, Value>>,
    /// Of tasks that wait, the highest begins first.
    #[serde(default, deserialize_with = "whole_numbers::optional")]
    pub(crate) priority: Option<i32>,
    /// The agent; the usual one if left out.
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) agent: Option<String>,
    /// The volume to work in; needed if there are several.
    #[schema(pattern = r"^[^\x00]*$")]
    pub(crate) project: Option<String>,
    /// The most that it may cost, in US dollars.
    #[schema(minimum = 0)]
    pub(crate) budget: Option<f64>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskState {
    /// It waits for its turn, or for an approval.
    Pending,
    /// An agent works on it.
    Running,
    /// It's done.
    Completed,
    /// It ended without success.
    Failed,
}

/// The state of a task.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TaskStatus)]
pub(crate) struct TaskStatusReport {
    /// Its id, which is the id of its run.
    pub(crate) id: String,
    pub(crate) status: TaskState,
    /// The part that is done, from 0 to 1.
    pub(crate) progress: f64,
    /// The answer, or why it failed; `null` while it isn't over.
    #[schema(value_type = Option<Object>)]
    pub(crate) result: Option<Value>,
}

pub(crate) fn ensure_sent(text: &str, what: &str) -> Result<(), ProblemDetails> {
    match text.contains('\0') {
        true => Err(ProblemDetails::unprocessable(format!("`{what}` has no NUL characters"))),
        false => Ok(()),
    }
}

/// Checks the volume that a task names, or says which it could name if it must.
pub(crate) async fn ensure_project(caller: &ApiCaller, named: Option<String>) -> Result<(), ProblemDetails> {
    let named = caller.volume(named)?;
    let volumes = caller.volumes().await?;
    let names: Vec<&str> = volumes.iter().filter_map(|volume| volume["name"].as_str()).collect();
    match named {
        Some(name) if !names.contains(&name.as_str()) => Err(ProblemDetails::not_found(format!(
            "there is no volume “{name}” for `project`; there are {}",
            names.join(", ")
        ))),
        None if names.len() > 1 => Err(ProblemDetails::unprocessable(format!(
            "say in `project` which volume the task is about: {}",
            names.join(", ")
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Gives a task to an agent.
#[utoipa::path(
    post, path = "/tasks", tag = "agents", request_body = TaskRequest,
    responses((status = 201, body = TaskStatusReport, description = "Task created",
        headers(("Location" = String, description = "where its status is")))),
)]
pub(crate) async fn submit_task(
    caller: ApiCaller,
    JsonBody(task): JsonBody<TaskRequest>,
) -> Result<Response, ProblemDetails> {
    let id = new_run_id();
    ensure_project(&caller, task.project.clone()).await?;
    queue_task(&caller, id.clone(), task, Vec::new(), None)?;
    let place = format!("/api/v1/tasks/{id}");
    let status = TaskStatusReport { id, status: TaskState::Pending, progress: 0.0, result: None };
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(status)).into_response())
}

/// Gives a task to an agent as the run `id`, once those in `after` are completed. `on_end` gets the outcome.
pub(crate) fn queue_task(
    caller: &ApiCaller,
    id: String,
    task: TaskRequest,
    after: Vec<String>,
    on_end: Option<TaskEndAction>,
) -> Result<(), ProblemDetails> {
    if task.description.trim().is_empty() || task.description.len() > MAX_DESCRIPTION_BYTES {
        let why = format!("`description` has 1 to {MAX_DESCRIPTION_BYTES} bytes");
        return Err(ProblemDetails::unprocessable(why));
    }
    if task.budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
        return Err(ProblemDetails::unprocessable("`budget` is a number of US dollars"));
    }
    for (text, what) in [(&task.kind, "type"), (&task.agent, "agent"), (&task.project, "project")] {
        ensure_sent(text.as_deref().unwrap_or_default(), what)?;
    }
    let project = caller.volume(task.project)?;
    let mut prompt = task.description;
    for (title, text) in [
        ("Type", task.kind),
        ("Context", task.context.filter(|context| !context.is_empty()).map(|context| json!(context).to_string())),
    ] {
        if let Some(text) = text {
            prompt.push_str(&format!("\n\n{title}: {text}"));
        }
    }
    let call = CommandCall::json("ask").option("project", project).option("agent", task.agent);
    let call = call
        .option("budget", task.budget)
        .option("run", Some(&id))
        .operands(["-"])
        .with_input(caller.sent_message(&prompt));
    let queued = QueuedTask { id, priority: task.priority.unwrap_or(0), call, after, on_end };
    match caller.state.tasks.add(queued) {
        true => Ok(()),
        false => Err(ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, "too many tasks wait; try again later")),
    }
}

/// Checks that a text is an id of a run.
pub(crate) fn checked_run_id(id: String) -> Result<String, ProblemDetails> {
    let is_id = id.len() == RUN_ID_CHARS && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_id { Ok(id) } else { Err(ProblemDetails::not_found("no such run; /api/v1/runs lists them")) }
}

/// Returns the runs that the token reaches, newest first.
pub(crate) async fn reachable_runs(caller: &ApiCaller) -> Result<Vec<Value>, ProblemDetails> {
    let only = caller.only_volume_id().await?;
    let runs = caller.perform_ok(CommandCall::json("runs")).await?.lines();
    let is_own = |run: &Value| only.as_ref().is_none_or(|only| run["volume"] == only.as_str());
    Ok(runs.into_iter().filter(is_own).collect())
}

/// Returns a run that the token reaches, as it's listed.
pub(crate) async fn find_run(caller: &ApiCaller, id: &str) -> Result<Option<Value>, ProblemDetails> {
    Ok(reachable_runs(caller).await?.into_iter().find(|run| run["id"] == id))
}

/// Returns the id of a run that the token reaches.
pub(crate) async fn needed_run(caller: &ApiCaller, id: String) -> Result<String, ProblemDetails> {
    let id = checked_run_id(id)?;
    find_run(caller, &id)
        .await?
        .map(|_| id)
        .ok_or_else(|| ProblemDetails::not_found("no such run; /api/v1/runs lists them"))
}

/// Shows how far a task is.
#[utoipa::path(
    get, path = "/tasks/{taskId}", tag = "agents",
    params(("taskId" = String, Path, description = "id of the task")),
    responses((status = 200, body = TaskStatusReport, description = "Task status")),
)]
pub(crate) async fn task_status(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
) -> Result<Json<TaskStatusReport>, ProblemDetails> {
    report_task(&caller, &id).await.map(Json)
}

/// Returns how far a task is.
pub(crate) async fn report_task(caller: &ApiCaller, id: &str) -> Result<TaskStatusReport, ProblemDetails> {
    let id = checked_run_id(id.to_owned())?;
    let report = |status, progress, result| TaskStatusReport { id: id.clone(), status, progress, result };
    let queued = caller.state.tasks.status(&id);
    let Some(run) = find_run(caller, &id).await? else {
        return match queued {
            QueueStatus::Unknown => Err(ProblemDetails::not_found("no such task")),
            QueueStatus::Waiting | QueueStatus::Running => Ok(report(TaskState::Pending, 0.0, None)),
            QueueStatus::Failed(why) => Ok(report(TaskState::Failed, 0.0, Some(json!({"error": why})))),
        };
    };
    if run["ending"].is_null() {
        let about = read_run(caller, &id).await?;
        let todos = about["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
        let done = todos.iter().filter(|todo| todo["status"] == "completed").count();
        // What isn't over isn't whole.
        let progress = if todos.is_empty() { 0.0 } else { (done as f64 / todos.len() as f64).min(0.99) };
        let waits = run["pending"].as_u64().unwrap_or(0) > 0;
        return Ok(report(if waits { TaskState::Pending } else { TaskState::Running }, progress, None));
    }
    let steps = read_steps(caller, &id).await?;
    let last = |kind: &str, field: &str| {
        let step = steps.iter().rev().find(|step| step["type"] == kind);
        step.map_or(Value::Null, |step| step[field].clone())
    };
    let ending = run["standing"].clone();
    let about = read_run(caller, &id).await?;
    let mut result = about["result"].clone();
    result["answer"] = last("final_answer", "content");
    result["ending"] = ending.clone();
    result["cost"] = run["spent"]["cost"].clone();
    if ending == "done" {
        return Ok(report(TaskState::Completed, 1.0, Some(result)));
    }
    result["error"] = last("error", "message");
    Ok(report(TaskState::Failed, 1.0, Some(result)))
}

/// Cancels a task that waits or runs.
#[utoipa::path(
    delete, path = "/tasks/{taskId}", tag = "agents",
    params(("taskId" = String, Path, description = "id of the task")),
    responses((status = 204, description = "the task is canceled")),
)]
pub(crate) async fn cancel_task(caller: ApiCaller, UrlPath(id): UrlPath<String>) -> Result<StatusCode, ProblemDetails> {
    stop_task(&caller, id).await.map(|()| StatusCode::NO_CONTENT)
}

/// Takes a task out of the queue, or stops its run.
pub(crate) async fn stop_task(caller: &ApiCaller, id: String) -> Result<(), ProblemDetails> {
    let id = checked_run_id(id)?;
    if caller.token.volume.is_none() && caller.state.tasks.withdraw(&id) {
        return Ok(());
    }
    let Some(run) = find_run(caller, &id).await? else {
        // Tasks of others aren't told from none.
        let status = caller.token.volume.is_none().then(|| caller.state.tasks.status(&id));
        return match status {
            // It has ended before a run began.
            Some(QueueStatus::Failed(_)) => Ok(()),
            Some(QueueStatus::Waiting | QueueStatus::Running) => {
                Err(ProblemDetails::new(StatusCode::CONFLICT, "the task is about to begin; try again"))
            }
            Some(QueueStatus::Unknown) | None => Err(ProblemDetails::not_found("no such run; /api/v1/runs lists them")),
        };
    };
    // What is over needs no end.
    if run["ending"].is_null() {
        caller.perform_ok(CommandCall::json("runs").flag("stop", true).operands([&id])).await?;
    }
    Ok(())
}

/// In which volume agents are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentsQuery {
    /// Only agents of this volume.
    #[param(min_length = 1)]
    project: Option<String>,
}

/// An agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentInfo {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) role: String,
    /// `idle`, `busy` or `disabled`.
    pub(crate) status: String,
    pub(crate) capabilities: Vec<String>,
    /// Words of goals that the agent handles.
    #[serde(default)]
    pub(crate) can_handle: Vec<String>,
    /// What its active runs are doing, of those that the token reaches.
    #[serde(default)]
    pub(crate) progress: Vec<AgentProgress>,
}

/// What an agent is doing in a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AgentProgress {
    /// Id of the run.
    pub(crate) run: String,
    /// `thinking`, `executing` or `idle`.
    pub(crate) state: String,
    /// Calls of a model so far.
    pub(crate) iteration: u64,
    /// The most calls of a model.
    pub(crate) limit: u64,
    /// Finished items of its list of todos.
    pub(crate) done: u64,
    /// All items of its list of todos.
    pub(crate) of: u64,
}

/// Lists agents.
#[utoipa::path(
    get, path = "/agents", tag = "agents", params(AgentsQuery),
    responses((status = 200, body = [AgentInfo], description = "Agent list")),
)]
pub(crate) async fn list_agents(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<AgentsQuery>,
) -> Result<Json<Vec<AgentInfo>>, ProblemDetails> {
    find_agents(&caller, query.project).await.map(Json)
}

/// Returns the agents of a volume, or of all that the token reaches.
pub(crate) async fn find_agents(caller: &ApiCaller, volume: Option<String>) -> Result<Vec<AgentInfo>, ProblemDetails> {
    let projects = match caller.project(volume).await? {
        Some(named) => vec![named],
        None => reachable_volumes(caller).await?.into_iter().map(|volume| volume.name).collect(),
    };
    let mut agents: Vec<AgentInfo> = Vec::new();
    for project in projects {
        let call = CommandCall::json("tasks").option("project", Some(project)).operands(["agents"]);
        let found = caller.perform_ok(call).await?.lines();
        // A token of one volume doesn't show what others hold.
        let shown = found.into_iter().filter(|agent| caller.token.volume.is_none() || agent["volume"].is_null());
        for agent in shown.filter_map(|agent| serde_json::from_value::<AgentInfo>(agent).ok()) {
            // Most agents are there in every volume.
            if agents.iter().all(|known| known.id != agent.id) {
                agents.push(agent);
            }
        }
    }
    if caller.token.volume.is_some() && agents.iter().any(|agent| !agent.progress.is_empty()) {
        // An agent may work in other volumes, too.
        let runs = reachable_runs(caller).await?;
        for agent in &mut agents {
            agent.progress.retain(|progress| runs.iter().any(|run| run["id"] == progress.run.as_str()));
        }
    }
    Ok(agents)
}

/// Returns the calls that wait for a decision, of the runs that the token reaches.
pub(crate) async fn pending_approvals(caller: &ApiCaller) -> Result<Vec<PendingApproval>, ProblemDetails> {
    let runs = reachable_runs(caller).await?;
    let approvals = caller.perform_ok(CommandCall::json("approvals")).await?.lines();
    let shown = approvals.into_iter().filter_map(|approval| {
        let run = runs.iter().find(|run| run["id"] == approval["run"])?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(PendingApproval {
            // As the command line names it, without the slash that would end a part of a path.
            action_id: approval["name"].as_str()?.replacen('/', ":", 1),
            action_type: text(&approval["tool"]),
            description: text(&approval["what"]),
            reason: text(&approval["reason"]),
            run: text(&approval["run"]),
            agent: text(&run["agent"]),
            parameters: approval["arguments"].clone(),
            code: approval["code"].as_array().cloned().unwrap_or_default(),
            asked: approval["asked"].as_i64().unwrap_or(0),
            expires: approval["expires"].as_i64().unwrap_or(0),
        })
    });
    let shown = shown.chain(caller.state.approvals.list(caller.token.volume.as_deref()));
    Ok(shown.collect())
}

/// Lists calls that wait for a decision.
#[utoipa::path(
    get, path = "/approvals/pending", tag = "agents",
    responses((status = 200, body = [PendingApproval], description = "Pending approvals")),
)]
pub(crate) async fn list_pending_approvals(caller: ApiCaller) -> Result<Json<Vec<PendingApproval>>, ProblemDetails> {
    pending_approvals(&caller).await.map(Json)
}

/// A decision about a call.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = Decision)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalDecision {
    pub(crate) approved: bool,
    /// What the agent is told, in at most 64 kB.
    #[schema(pattern = r"^[^\x00]*$", max_length = 16384)]
    pub(crate) comment: Option<String>,
    /// What the form of a tool server is filled in with, by the names of its fields.
    #[schema(value_type = Option<Object>)]
    pub(crate) answers: Option<Map<String, Value>>,
}

impl ApprovalDecision {
    pub(crate) fn new(approved: bool, comment: Option<String>) -> ApprovalDecision {
        ApprovalDecision { approved, comment, answers: None }
    }
}

/// A decision that was taken.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct DecidedApproval {
    action_id: String,
    approved: bool,
}

/// Approves or denies a call, this once.
#[utoipa::path(
    post, path = "/approvals/{actionId}", tag = "agents", request_body = ApprovalDecision,
    params(("actionId" = String, Path, description = "id of the pending approval")),
    responses((status = 200, body = DecidedApproval)),
)]
pub(crate) async fn decide_approval(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
    JsonBody(decision): JsonBody<ApprovalDecision>,
) -> Result<Json<DecidedApproval>, ProblemDetails> {
    let approved = decision.approved;
    decide(&caller, &id, decision).await?;
    Ok(Json(DecidedApproval { action_id: id, approved }))
}

/// Approves or denies a call of an agent, this once, or what a program asked for. Returns the run that waited; it's
/// empty for what a program asked for.
pub(crate) async fn decide(caller: &ApiCaller, id: &str, decision: ApprovalDecision) -> Result<String, ProblemDetails> {
    let ApprovalDecision { approved: is_allowed, comment, answers } = decision;
    let said = comment.as_deref().unwrap_or_default();
    ensure_sent(said, "comment")?;
    if said.len() > MAX_COMMENT_BYTES {
        return Err(ProblemDetails::unprocessable(format!("`comment` has at most {MAX_COMMENT_BYTES} bytes")));
    }
    if caller.state.approvals.decide(caller.token.volume.as_deref(), id, is_allowed, said) {
        return Ok(String::new());
    }
    let pending = pending_approvals(caller).await?;
    let found = pending.into_iter().find(|approval| approval.action_id == id);
    let found = found.ok_or_else(|| ProblemDetails::not_found("nothing waits for a decision under this id"))?;
    let call = CommandCall::json("approvals").flag("allow", is_allowed).flag("deny", !is_allowed);
    let call = call.option("answers", answers.map(Value::Object).filter(|_| is_allowed));
    let call = call.option("comment", comment).operands([&id.replacen(':', "/", 1)]);
    caller.perform_ok(call).await?;
    Ok(found.run)
}

/// Returns what a page names a run or a step by.
pub(crate) fn value_id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_default().to_owned()
}

/// How many runs are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    /// How many at most.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// Runs of agents, newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    /// Each with its id, prompt, agent, standing and cost.
    #[schema(value_type = Vec<Object>)]
    runs: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists runs.
#[utoipa::path(get, path = "/runs", tag = "agents", params(RunsQuery), responses((status = 200, body = RunList)))]
pub(crate) async fn list_runs(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<RunsQuery>,
) -> Result<Json<RunList>, ProblemDetails> {
    let all = reachable_runs(&caller).await?;
    let (runs, page) = keyed_page_within(all, query.limit, query.cursor, (DEFAULT_RUNS, MAX_RUNS), value_id)?;
    Ok(Json(RunList { runs, page }))
}

/// Shows a run: what was asked, its todos and its changes.
#[utoipa::path(
    get, path = "/runs/{runId}", tag = "agents", params(("runId" = String, Path, description = "id of the run")),
    responses((status = 200, body = Value)),
)]
pub(crate) async fn show_run(caller: ApiCaller, UrlPath(id): UrlPath<String>) -> Result<Json<Value>, ProblemDetails> {
    let id = needed_run(&caller, id).await?;
    read_run(&caller, &id).await.map(Json)
}

/// Reads a run that the token reaches: what was asked, its todos and its changes.
pub(crate) async fn read_run(caller: &ApiCaller, id: &str) -> Result<Value, ProblemDetails> {
    let shown = caller.perform_ok(CommandCall::json("runs").operands([id])).await?.value();
    shown.ok_or_else(|| ProblemDetails::not_found("the run can't be read"))
}

/// A page of the steps of a run, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StepList {
    /// What the agent thought, called, got and answered.
    #[schema(value_type = Vec<Object>)]
    steps: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists the steps of a run.
#[utoipa::path(
    get, path = "/runs/{runId}/steps", tag = "agents",
    params(("runId" = String, Path, description = "id of the run"), PageQuery),
    responses((status = 200, body = StepList)),
)]
pub(crate) async fn list_steps(
    caller: ApiCaller,
    UrlPath(id): UrlPath<String>,
    UrlQuery(query): UrlQuery<PageQuery>,
) -> Result<Json<StepList>, ProblemDetails> {
    let id = needed_run(&caller, id).await?;
    let all = read_steps(&caller, &id).await?;
    let per_page = (MAX_PAGE_ITEMS, MAX_PAGE_ITEMS);
    let (steps, page) = keyed_page_within(all, query.limit, query.cursor, per_page, value_id)?;
    Ok(Json(StepList { steps, page }))
}

/// Reads the steps of a run that the token reaches, oldest first.
pub(crate) async fn read_steps(caller: &ApiCaller, id: &str) -> Result<Vec<Value>, ProblemDetails> {
    Ok(caller.perform_ok(CommandCall::json("steps").operands([id])).await?.lines())
}

/// The cells to run.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsRequest {
    #[schema(min_length = 1)]
    volume: String,
    #[schema(min_length = 1)]
    path: String,
    /// Only this cell, counted from 1; all in order if left out.
    #[schema(minimum = 1)]
    #[serde(default, deserialize_with = "whole_numbers::optional")]
    cell: Option<u64>,
    /// Only what is stale, and what that needs. Not together with `cell`.
    stale: Option<bool>,
    /// Stop a cell after this many seconds.
    #[schema(minimum = 1, maximum = 3600)]
    #[serde(default, deserialize_with = "whole_numbers::optional")]
    timeout_seconds: Option<u64>,
}

/// What cells printed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CellsResult {
    /// Whether all cells ran without an error.
    ok: bool,
    /// Outputs in the form of Jupyter notebooks, each with the number of its cell.
    #[schema(value_type = Vec<Object>)]
    outputs: Vec<Value>,
    /// What the command said besides.
    messages: String,
}

/// Runs cells of a note and waits for their end. They stop if the client goes away.
#[utoipa::path(
    post, path = "/cells/run", tag = "cells", request_body = CellsRequest,
    responses((status = 200, body = CellsResult)),
)]
pub(crate) async fn run_cells(
    caller: ApiCaller,
    JsonBody(request): JsonBody<CellsRequest>,
) -> Result<Json<CellsResult>, ProblemDetails> {
    if request.cell == Some(0) {
        return Err(ProblemDetails::unprocessable("`cell` is at least 1"));
    }
    let address = NoteAddress::new(&caller, request.volume, request.path)?;
    if request.timeout_seconds.is_some_and(|seconds| !(1..=MAX_CELL_SECONDS).contains(&seconds)) {
        let why = format!("`timeout_seconds` is a number from 1 to {MAX_CELL_SECONDS}");
        return Err(ProblemDetails::unprocessable(why));
    }
    if request.cell.is_some() && request.stale == Some(true) {
        return Err(ProblemDetails::unprocessable("send `cell` or `stale`, not both"));
    }
    let arguments = cell_arguments(&address, request.cell, request.stale, request.timeout_seconds);
    let result = caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let row = ToolRow::named("run_cells").ok_or_else(|| ProblemDetails::not_found("cells can't be run"))?;
            calls.call(row, &arguments).map_err(|error| match error.0.contains(MISSING_CELL) {
                true => ProblemDetails::not_found(error.0),
                false => ProblemDetails::from(error),
            })
        })
        .await??;
    let failed = |_| ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the result can't be read");
    serde_json::from_value(result).map(Json).map_err(failed)
}

/// Returns the arguments of the tool that runs cells.
pub(crate) fn cell_arguments(
    address: &NoteAddress,
    cell: Option<u64>,
    stale: Option<bool>,
    timeout_seconds: Option<u64>,
) -> Map<String, Value> {
    let arguments: [(&str, Value); 4] = [
        ("note", address.word().into()),
        ("cell", cell.into()),
        ("stale", stale.into()),
        ("timeout_seconds", timeout_seconds.into()),
    ];
    arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The note whose cells are meant.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellsQuery {
    /// Name of the volume.
    #[schema(min_length = 1)]
    volume: String,
    /// Path of the note inside the volume.
    #[schema(min_length = 1)]
    path: String,
}

/// Interrupts what runs in a note.
#[utoipa::path(
    post, path = "/cells/stop", tag = "cells", request_body = CellsQuery,
    responses((status = 204, description = "what ran was interrupted")),
)]
pub(crate) async fn stop_cells(
    caller: ApiCaller,
    JsonBody(query): JsonBody<CellsQuery>,
) -> Result<StatusCode, ProblemDetails> {
    let address = NoteAddress::new(&caller, query.volume, query.path)?;
    interrupt_cells(&caller, address).await.map(|()| StatusCode::NO_CONTENT)
}

/// Interrupts what runs in a note.
pub(crate) async fn interrupt_cells(caller: &ApiCaller, address: NoteAddress) -> Result<(), ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let outcome = calls.perform(CommandCall::json("run").flag("stop", true).operands([&address.word()]));
            ProblemDetails::unless_done(&outcome)
        })
        .await?
}

/// Which outputs are listed.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputsQuery {
    /// Name of the volume.
    #[param(min_length = 1)]
    volume: String,
    /// Path of the note inside the volume.
    #[param(min_length = 1)]
    path: String,
    /// Of how many cells at most. A page ends early if outputs are long.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Where to begin: `next_cursor` of the last page.
    #[param(minimum = 0)]
    cursor: Option<u64>,
}

/// A page of the last outputs of a note's cells.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct OutputList {
    /// The last execution of each cell, with its number, outputs, and whether it's stale.
    #[schema(value_type = Vec<Object>)]
    cells: Vec<Value>,
    #[serde(flatten)]
    page: PagePosition,
}

/// Lists the last outputs of a note's cells.
#[utoipa::path(
    get, path = "/cells/outputs", tag = "cells", params(OutputsQuery), responses((status = 200, body = OutputList)),
)]
pub(crate) async fn list_outputs(
    caller: ApiCaller,
    UrlQuery(query): UrlQuery<OutputsQuery>,
) -> Result<Json<OutputList>, ProblemDetails> {
    let address = NoteAddress::new(&caller, query.volume, query.path)?;
    let all = read_executions(&caller, address).await?;
    let per_page = (MAX_PAGE_ITEMS, MAX_PAGE_ITEMS);
    let (executions, page) = keyed_page_within(all, query.limit, query.cursor, per_page, execution_key)?;
    Ok(Json(output_page(executions, page, execution_key)))
}

/// Returns what a page of outputs names an execution by.
pub(crate) fn execution_key(execution: &Value) -> String {
    execution["cell"].to_string()
}

/// Shortens long outputs. The page ends before the outputs that would make it too long.
fn output_page(executions: Vec<Value>, mut page: PagePosition, key: impl Fn(&Value) -> String) -> OutputList {
    let begin = page.items_before(executions.len());
    let (mut cells, mut bytes) = (Vec::new(), 0_usize);
    let mut last: Option<String> = None;
    for (position, execution) in (begin..).zip(executions) {
        let key = key(&execution);
        let shortened = bounded_outputs(vec![execution]);
        bytes += shortened.iter().map(|cell| cell.to_string().len()).sum::<usize>();
        if let Some(last) = last.as_deref().filter(|_| bytes > MAX_OUTPUT_PAGE_BYTES) {
            page.next_cursor = Some(cursor_after(position, last));
            break;
        }
        cells.extend(shortened);
        last = Some(key);
    }
    OutputList { cells, page }
}

/// Reads the last execution of each cell of a note, shortened.
#[cfg(feature = "grpc")]
pub(crate) async fn read_outputs(caller: &ApiCaller, address: NoteAddress) -> Result<Vec<Value>, ProblemDetails> {
    read_executions(caller, address).await.map(bounded_outputs)
}

/// Reads the last execution of each cell of a note.
async fn read_executions(caller: &ApiCaller, address: NoteAddress) -> Result<Vec<Value>, ProblemDetails> {
    caller
        .perform_calls(move |calls| {
            address.needed(calls)?;
            let outcome = calls.perform(CommandCall::json("outputs").operands([&address.word()]));
            match outcome.code {
                0 if !outcome.is_cut => Ok(outcome.lines()),
                _ => Err(ProblemDetails::of_outcome(&outcome)),
            }
        })
        .await?
}
