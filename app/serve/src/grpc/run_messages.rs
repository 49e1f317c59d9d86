//! Messages about runs, from what commands print.

use super::generated::v1::run_step::Kind;
use super::generated::v1::{
    Agent, AgentProgress, AgentStatus, FinalAnswer, PendingApproval, Run, RunChange, RunChangeKind, RunError,
    RunResult, RunState, RunStep, RunTodo, RunTodoStatus, Thinking, TodoUpdate, ToolCall, ToolResult,
};
use super::json_fields::{
    json_text, list_field, number_field, small_number_field, text_field, text_list_field, time_field, timestamp,
};
use crate::http_state::ApiCaller;
use crate::pending_approval;
use crate::problem::ProblemDetails;
use crate::rest_work::{self, AgentInfo, checked_run_id, find_run};
use crate::task_queue::QueueStatus;
use crate::tool_calls::bounded_output;
use serde_json::Value;

/// Returns whether nothing more happens in a run.
pub(super) fn is_over(state: RunState) -> bool {
    match state {
        RunState::Unspecified | RunState::Queued | RunState::Running | RunState::Waiting => false,
        RunState::Done | RunState::Canceled | RunState::Failed | RunState::LimitReached | RunState::BudgetSpent => true,
    }
}

fn run_state(standing: &str) -> RunState {
    match standing {
        "open" => RunState::Running,
        "waits" => RunState::Waiting,
        "done" => RunState::Done,
        "stopped" => RunState::Canceled,
        "failed" => RunState::Failed,
        "limit" => RunState::LimitReached,
        "budget" => RunState::BudgetSpent,
        _ => RunState::Unspecified,
    }
}

/// Returns a run of the list of runs.
pub(super) fn run_message(run: &Value) -> Run {
    let spent = &run["spent"];
    Run {
        id: text_field(run, "id"),
        state: run_state(run["standing"].as_str().unwrap_or_default()).into(),
        prompt: text_field(run, "prompt"),
        agent: text_field(run, "agent"),
        volume_id: text_field(run, "volume"),
        start_time: time_field(run, "start_time"),
        end_time: time_field(run, "ended"),
        model_call_count: number_field(run, "iteration"),
        input_token_count: number_field(spent, "inputTokens"),
        output_token_count: number_field(spent, "outputTokens"),
        cost_usd: spent["cost"].as_f64(),
        budget_usd: run["budget"].as_f64(),
        pending_approval_count: small_number_field(run, "pending"),
        error_message: String::new(),
    }
}

/// Returns a run as it is now, also one that hasn't begun.
pub(super) async fn current_run(caller: &ApiCaller, id: &str) -> Result<Run, ProblemDetails> {
    let id = checked_run_id(id.to_owned())?;
    // In this order: what leaves the queue meanwhile is among the runs.
    let queued = caller.state.tasks.status(&id);
    if let Some(run) = find_run(caller, &id).await? {
        return Ok(run_message(&run));
    }
    let (state, error_message) = match queued {
        QueueStatus::Waiting | QueueStatus::Running => (RunState::Queued, String::new()),
        QueueStatus::Failed(why) => (RunState::Failed, why),
        QueueStatus::Unknown => return Err(ProblemDetails::not_found("no such run; ListRuns lists them")),
    };
    Ok(Run { id, state: state.into(), error_message, ..Run::default() })
}

/// Returns the result of a run that is over, from what is known about it.
pub(super) fn result_message(about: &Value) -> Option<RunResult> {
    let result = Some(&about["result"]).filter(|result| result.is_object())?;
    let result = bounded_output(result.clone());
    Some(RunResult {
        answer: text_field(&result, "output"),
        changed_paths: text_list_field(&result, "artifacts"),
        errors: text_list_field(&result, "errors"),
    })
}

/// Reads the result of a run that is over.
pub(super) async fn read_result(caller: &ApiCaller, run: &str) -> Result<Option<RunResult>, ProblemDetails> {
    Ok(result_message(&rest_work::read_run(caller, run).await?))
}

pub(super) fn todo_message(todo: &Value) -> RunTodo {
    let status = match todo["status"].as_str() {
        Some("pending") => RunTodoStatus::Pending,
        Some("in_progress") => RunTodoStatus::InProgress,
        Some("completed") => RunTodoStatus::Completed,
        Some("cancelled") => RunTodoStatus::Canceled,
        _ => RunTodoStatus::Unspecified,
    };
    RunTodo {
        id: text_field(todo, "id"),
        text: text_field(todo, "content"),
        status: status.into(),
        priority: small_number_field(todo, "priority"),
    }
}

pub(super) fn change_message(change: &Value) -> RunChange {
    let what = &change["what"];
    let kind = match what["kind"].as_str() {
        Some("created") => RunChangeKind::Created,
        Some("edited") => RunChangeKind::Edited,
        Some("deleted") => RunChangeKind::Deleted,
        Some("bytes") if what["before"].is_null() => RunChangeKind::Created,
        Some("bytes") if what["after"].is_null() => RunChangeKind::Deleted,
        Some("bytes") => RunChangeKind::Edited,
        _ => RunChangeKind::Unspecified,
    };
    RunChange {
        number: number_field(change, "number"),
        step_id: text_field(change, "step"),
        path: text_field(change, "path"),
        kind: kind.into(),
        time: time_field(change, "at"),
    }
}

/// Returns a step. Long texts are cut, so that it fits into a message.
pub(super) fn step_message(whole: &Value) -> RunStep {
    let step = &bounded_output(whole.clone());
    let mut is_cut = step != whole;
    let mut json_field = |name: &str| {
        let (text, is_left_out) = json_text(&step[name]);
        is_cut |= is_left_out;
        text
    };
    let text = |name: &str| text_field(step, name);
    let kind = match step["type"].as_str() {
        Some("thinking") => Some(Kind::Thinking(Thinking { text: text("content") })),
        Some("tool_call") => Some(Kind::ToolCall(ToolCall {
            call_id: text("toolCallId"),
            tool: text("toolName"),
            // What it ran with, if that isn't what the model asked for.
            arguments_json: json_field(if step["executedParams"].is_null() { "params" } else { "executedParams" }),
        })),
        Some("tool_result") => Some(Kind::ToolResult(ToolResult {
            call_id: text("toolCallId"),
            succeeded: step["success"] == true,
            result_json: json_field("result"),
            error_message: text("error"),
        })),
        Some("todo") => Some(Kind::TodoUpdate(TodoUpdate { todos: list_field(step, "todos", todo_message) })),
        Some("final_answer") => Some(Kind::FinalAnswer(FinalAnswer { text: text("content") })),
        Some("error") => {
            Some(Kind::Error(RunError { message: text("message"), is_recoverable: step["recoverable"] == true }))
        }
        _ => None,
    };
    RunStep {
        id: text("id"),
        time: time_field(step, "timestamp"),
        duration_millis: number_field(step, "duration"),
        kind,
        is_cut,
    }
}

pub(super) fn agent_message(agent: AgentInfo) -> Agent {
    let status = match agent.status.as_str() {
        "idle" => AgentStatus::Idle,
        "busy" => AgentStatus::Busy,
        "disabled" => AgentStatus::Disabled,
        _ => AgentStatus::Unspecified,
    };
    let AgentInfo { id, name, role, status: _, capabilities, can_handle, progress } = agent;
    let progress = progress.into_iter().map(|progress| AgentProgress {
        run_id: progress.run,
        state: progress.state,
        iteration: progress.iteration,
        limit: progress.limit,
        todos_done: progress.done,
        todos: progress.of,
    });
    Agent { id, name, role, status: status.into(), capabilities, can_handle, progress: progress.collect() }
}

/// Returns a call that waits for a decision. It's whole: who decides must see all of it.
pub(super) fn approval_message(approval: pending_approval::PendingApproval) -> PendingApproval {
    PendingApproval {
        id: approval.action_id,
        tool: approval.action_type,
        description: approval.description,
        reason: approval.reason,
        run_id: approval.run,
        agent: approval.agent,
        arguments_json: approval.parameters.to_string(),
        code_json: Value::Array(approval.code).to_string(),
        create_time: Some(timestamp(approval.asked)),
        expire_time: Some(timestamp(approval.expires)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_that_is_too_long_for_a_message_is_cut() {
        let long = "é".repeat(3 << 20);
        let call = json!({"type": "tool_call", "toolName": "write_file", "params": {"content": long}});
        let step = step_message(&call);
        let Some(Kind::ToolCall(sent)) = &step.kind else { panic!("{step:?}") };
        let arguments: Value = serde_json::from_str(&sent.arguments_json).expect("JSON");
        assert!(step.is_cut && arguments["content"].as_str().is_some_and(|text| text.ends_with(" more bytes")));
        let many = json!({"type": "tool_result", "success": true, "result": vec!["text"; 1 << 20]});
        let step = step_message(&many);
        let Some(Kind::ToolResult(sent)) = &step.kind else { panic!("{step:?}") };
        assert!(step.is_cut && sent.result_json.is_empty());
        let short = step_message(&json!({"type": "final_answer", "content": "Done."}));
        assert_eq!(short.kind, Some(Kind::FinalAnswer(FinalAnswer { text: "Done.".to_owned() })));
        assert!(!short.is_cut);
    }
}
