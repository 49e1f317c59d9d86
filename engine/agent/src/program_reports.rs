//! What programs that work as agents ask for, and what they report of their own steps.

use crate::external_program::program_own_tools;
use crate::tool_catalog::{self, BuiltInTool};
use crate::tool_job::{ToolJob, ToolOutcome};
use crate::tool_outcomes::{failed_outcome, string_argument, successful_outcome};
use crate::tool_spec::ToolSpec;
use serde_json::{Map, Value};
use std::path::PathBuf;
use store::DocId;

/// Kinds of steps that change nothing, as the protocol names them.
const LOOKING_KINDS: [&str; 5] = ["read", "search", "think", "fetch", "switch_mode"];

/// Returns the tools that a program's requests are calls of.
pub fn program_tools() -> Vec<ToolSpec> {
    let used = [BuiltInTool::ReadFile, BuiltInTool::WriteFile, BuiltInTool::Shell, BuiltInTool::TodoWrite];
    let mut tools = tool_catalog::built_in();
    tools.retain(|tool| used.iter().any(|used| used.is_named(&tool.name)));
    tools.extend(program_own_tools());
    tools
}

/// Returns the job that finds what a program has changed in a step of its own; `None` if the step only looked.
pub fn report_job(run: DocId, root: PathBuf, arguments: &Map<String, Value>) -> Option<ToolJob> {
    if LOOKING_KINDS.contains(&string_argument(arguments, "kind")) {
        return None;
    }
    let ToolOutcome { success, text, .. } = report_outcome(arguments);
    let paths = arguments.get("paths").and_then(Value::as_array).into_iter().flatten();
    let paths = paths.filter_map(|path| path.as_str().map(ToOwned::to_owned)).collect();
    Some(ToolJob::ProgramReport { root, run, paths, success, text })
}

/// Returns the outcome of what a program has reported.
pub fn report_outcome(arguments: &Map<String, Value>) -> ToolOutcome {
    let text = string_argument(arguments, "output");
    match arguments.get("success").and_then(Value::as_bool) {
        Some(true) => successful_outcome(text),
        Some(false) | None => failed_outcome(text),
    }
}
