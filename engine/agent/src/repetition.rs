//! Recognizes runs that go in circles.

use crate::server_request::is_server_request;
use std::collections::BTreeSet;
use store::{ExecutionStep, StepKind};

/// Number of turns without progress after which the model must answer with what it has.
const MAX_IDLE_TURNS: usize = 3;
/// The prompt that requests an answer from a model that goes in circles.
pub const FINAL_ANSWER_PROMPT: &str = "Your last calls failed or repeated earlier ones, so no more tools are \
    available. Answer the user now, without calling a tool, in one or two sentences: what was done, what \
    failed, and what was the result?";
/// Why a run ends whose model asks for tools instead of answering.
pub const UNOFFERED_CALLS_REASON: &str = "The model's last calls failed or repeated earlier ones. It was asked to \
    answer without tools, but it called tools again. None of these calls ran.";
/// Why a run ends whose model answers nothing.
pub const EMPTY_ANSWER_REASON: &str = "The model's answer was empty: it had neither text nor tool calls. Ask again, \
    choose another model, or set a higher max_tokens if the model thinks before it answers.";
/// How the message begins about tool calls that can't be read.
pub const UNREADABLE_CALLS_PREFIX: &str = "Some tool calls could not be read: ";
/// Number of answers in a row that are empty, or only call tools although none is offered; then the run ends.
pub const MAX_UNUSABLE_ANSWERS: u8 = 2;
/// Number of recent steps that are checked for loops.
const LOOP_CHECK_STEPS: usize = 60;

/// Returns whether a run is looping: in its last turns, every call was a repetition, failed, or couldn't be read.
pub fn is_looping(steps: &[ExecutionStep]) -> bool {
    let steps = &steps[steps.len().saturating_sub(LOOP_CHECK_STEPS)..];
    let failed = |call: &str| {
        steps.iter().any(|step| {
            matches!(&step.kind, StepKind::ToolResult { tool_call_id, success: false, .. } if tool_call_id == call)
        })
    };
    let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
    // For each turn with calls, whether any of them was new and successful.
    let mut turns: Vec<bool> = Vec::new();
    let mut parent = None;
    for step in steps {
        if matches!(&step.kind, StepKind::Error { message, .. } if message.starts_with(UNREADABLE_CALLS_PREFIX)) {
            // Other calls of the same answer belong to this turn.
            turns.push(false);
            parent = Some(&step.parents);
            continue;
        }
        let StepKind::ToolCall { tool_call_id, tool_name, params } = &step.kind else { continue };
        if is_server_request(tool_name) {
            continue; // a server asks this, and not the model of the run
        }
        if parent != Some(&step.parents) || turns.is_empty() {
            turns.push(false);
            parent = Some(&step.parents);
        }
        let new = seen.insert((tool_name, serde_json::to_string(params).unwrap_or_default()));
        let useful = new && !failed(tool_call_id);
        turns.last_mut().into_iter().for_each(|turn| *turn |= useful);
    }
    turns.len() > MAX_IDLE_TURNS && turns.iter().rev().take(MAX_IDLE_TURNS).all(|useful| !useful)
}
