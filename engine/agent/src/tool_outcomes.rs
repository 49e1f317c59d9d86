//! Arguments and outcomes of tool calls.

use crate::tool_job::ToolOutcome;
use serde_json::{Map, Value};

/// Default time limit of a program in seconds, if the model gives none.
pub const DEFAULT_TOOL_TIMEOUT_SECS: u64 = 60;

/// Returns a text among the arguments of a call; empty if there is none with that name.
pub fn string_argument<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns a whole number among the arguments of a call.
pub fn number_argument(arguments: &Map<String, Value>, key: &str) -> Option<u64> {
    arguments.get(key).and_then(Value::as_u64)
}

/// Returns the outcome of a call that failed, for the reason given.
pub fn failed_outcome(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { success: false, text: text.into(), ..ToolOutcome::default() }
}

/// Returns the outcome of a call that succeeded, with its result.
pub fn successful_outcome(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { success: true, text: text.into(), ..ToolOutcome::default() }
}
