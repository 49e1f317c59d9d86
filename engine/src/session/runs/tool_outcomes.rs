//! Arguments and outcomes of tool calls.

use agent::tool_job::ToolOutcome;
use serde_json::{Map, Value};

/// Default time limit of a program in seconds, if the model doesn't specify one.
pub(in crate::session) const DEFAULT_TOOL_TIMEOUT_SECS: u64 = 60;

pub(in crate::session) fn string_argument<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or("")
}

pub(in crate::session) fn number_argument(arguments: &Map<String, Value>, key: &str) -> Option<u64> {
    arguments.get(key).and_then(Value::as_u64)
}

pub(in crate::session) fn failed_outcome(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { success: false, text: text.into(), ..ToolOutcome::default() }
}

pub(in crate::session) fn successful_outcome(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { success: true, text: text.into(), ..ToolOutcome::default() }
}
