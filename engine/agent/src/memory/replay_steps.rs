//! What the steps of a run say of a replay: which trace it follows, what its calls returned, and why it stops.

use crate::memory::result_check::ResultDifference;
use crate::memory::slots::TemplateError;
use serde_json::Value;
use store::{ExecutionStep, StepKind};

/// Prefix of the step that reports that a replay stopped.
pub const REPLAY_STOPPED_PREFIX: &str = "The replay stopped ";

/// Why a replay stops, as a clause about a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayStopError {
    /// The run was closed.
    #[error("the run was closed")]
    RunClosed,
    /// The trace has fewer steps.
    #[error("the trace has no such step")]
    NoStep,
    /// The trace isn't the one that was replayed so far.
    #[error("the trace has changed")]
    TraceChanged,
    /// The tool isn't the one that the trace was learned with.
    #[error("the tool {0} is not the one that it was")]
    ToolChanged(String),
    /// The call of the step has no result.
    #[error("the step has no result")]
    NoResult,
    /// The call of the step failed.
    #[error("it failed: {0}")]
    CallFailed(String),
    /// The user, a rule, or a timeout refused the call of the step.
    #[error("it was refused: {0}")]
    CallRefused(String),
    /// A file is there that must not be, or the other way round.
    #[error("{path} {state}")]
    Path {
        /// The file.
        path: String,
        /// What is wrong with it.
        state: &'static str,
    },
    /// The result isn't what the trace expects.
    #[error(transparent)]
    Result(#[from] ResultDifference),
    /// The arguments can't be made.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Returns the index of the step that announces a replay, and the path of the trace; `None` if there's no replay.
pub fn replayed_trace(steps: &[ExecutionStep]) -> Option<(usize, &str)> {
    let path = |step: &ExecutionStep| step.route.as_deref().is_some_and(|route| route.starts_with("trace/"));
    let at = steps.iter().rposition(path)?;
    Some((at, steps[at].route.as_deref()?.strip_prefix("trace/")?))
}

/// Returns whether a step reports that a replay stopped.
pub fn is_replay_stop(step: &ExecutionStep) -> bool {
    matches!(&step.kind, StepKind::Error { message, .. } if message.starts_with(REPLAY_STOPPED_PREFIX))
}

/// Returns whether steps belong to a replay from which no model has taken over.
pub fn has_open_replay(steps: &[ExecutionStep]) -> bool {
    let behind = replayed_trace(steps).and_then(|(begun, _)| steps.get(begun + 1..));
    behind.is_some_and(|behind| !behind.iter().any(|step| step.spent.is_some() || is_replay_stop(step)))
}

/// Returns a call's result if it has one: success and text.
pub fn call_result(steps: &[ExecutionStep], call: &str) -> Option<(bool, String)> {
    steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::ToolResult { tool_call_id, success, result, error, .. } if *tool_call_id == call => {
            let text = result.as_ref().and_then(Value::as_str).map(str::to_owned);
            Some((*success, text.or_else(|| error.clone()).unwrap_or_default()))
        }
        StepKind::ToolResult { .. }
        | StepKind::ToolCall { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    })
}
