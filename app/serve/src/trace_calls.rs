//! Tool calls about traces: steps of runs that others repeat without a model.

use crate::command_calls::CommandCall;
use crate::tool_arguments::ToolCallError;
use crate::tool_calls::ToolCallContext;
use serde_json::Value;

/// Returns the name of a trace: that of its note.
fn trace_name(trace: &Value) -> &str {
    let path = trace["path"].as_str().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

impl ToolCallContext<'_> {
    /// Returns the traces of a volume, or of all.
    pub(crate) fn traces(&self, project: Option<&str>) -> Result<Vec<Value>, ToolCallError> {
        let project = self.reached_volume(project)?;
        let call = CommandCall::json("traces").option("project", project).operands(["list"]);
        let mut traces = self.perform_ok(call)?.lines();
        for trace in &mut traces {
            trace["name"] = trace_name(trace).into();
        }
        Ok(traces)
    }

    /// Returns the trace that has exactly this name, with its steps as YAML in `text`.
    pub(crate) fn read_trace(&self, name: &str, project: Option<&str>) -> Result<Value, ToolCallError> {
        let mut named = self.traces(project)?.into_iter().filter(|trace| trace["name"] == name);
        let mut trace = match (named.next(), named.next()) {
            (Some(trace), None) => trace,
            (None, _) => return Err(ToolCallError(format!("there is no trace {name}; list_traces lists them"))),
            (Some(_), Some(_)) => {
                return Err(ToolCallError(format!("several volumes have a trace {name}; send its `project`")));
            }
        };
        let path = trace["path"].as_str().unwrap_or_default().to_owned();
        let call = CommandCall::json("traces").option("project", trace["project"].as_str());
        trace["text"] = self.perform_ok(call.operands(["export", &path]))?.text().into();
        Ok(trace)
    }
}
