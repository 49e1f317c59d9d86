//! Compares a trace with recorded runs, without calling a tool or a model: a replay with a run's values and results
//! has to make exactly the calls that the run made, under conditions that held. Equal calls leave equal files,
//! because tools depend on nothing but their arguments and the project.

use super::goal::ParsedGoal;
use super::result_check::ResultDifference;
use super::slots::{self, TemplateError};
use super::trace::{GoalMismatch, RunTrace, short_hash};
use super::trace_edits::CONTENT_ARGUMENT;
use super::trace_extraction::CompletedCall;
use crate::tool_catalog::BuiltInTool;
use serde_json::Value;
use std::collections::BTreeMap;

/// How a trace differs from a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceVerificationError {
    /// The run's goal isn't one of the trace.
    #[error("the trace doesn't fit the goal of the run: {0}")]
    Goal(#[from] GoalMismatch),
    /// The tool isn't the one that the trace was learned with.
    #[error("the tool {0} has changed since, so the trace is no longer replayed")]
    ChangedTool(String),
    /// The numbers of calls differ.
    #[error("the trace has {own} steps, and the run made {recorded} calls")]
    StepCount {
        /// Number of steps of the trace.
        own: usize,
        /// Number of calls of the run.
        recorded: usize,
    },
    /// A step calls another tool.
    #[error("step {step} calls {own}, where the run called {recorded}")]
    OtherTool {
        /// Number of the step, from 1.
        step: usize,
        /// Tool of the trace.
        own: String,
        /// Tool of the run.
        recorded: String,
    },
    /// A step has another argument.
    #[error("step {step} gives {tool} another “{argument}” than the run did")]
    OtherArgument {
        /// Number of the step, from 1.
        step: usize,
        /// The called tool.
        tool: String,
        /// Name of the argument.
        argument: String,
    },
    /// A step doesn't give the text that the user made of what the run wrote.
    #[error("step {step} doesn't give {tool} the text as you corrected it after the run")]
    OtherCorrection {
        /// Number of the step, from 1.
        step: usize,
        /// The called tool.
        tool: String,
    },
    /// A step can't be filled in with the run's values and results.
    #[error("step {step} can't be filled in: {source}")]
    Template {
        /// Number of the step, from 1.
        step: usize,
        /// Why its values can't be filled in.
        source: TemplateError,
    },
    /// A step expects another result.
    #[error("step {step} wouldn't accept what the run got: {source}")]
    Result {
        /// Number of the step, from 1.
        step: usize,
        /// How the result differs.
        source: ResultDifference,
    },
    /// A step doesn't make sure that the file that it creates is new.
    #[error("step {step} would replace {path} if it's there; in the run it was new")]
    NotNew {
        /// Number of the step, from 1.
        step: usize,
        /// Path of the created file.
        path: String,
    },
}

/// Compares the version of a trace in use with what a run did. `calls` are the run's calls without redundant ones, and
/// `schemas` maps each tool's name to its current schema hash. With `is_origin`, it's the run after which the user
/// corrected texts: there the version has to give the corrected ones.
///
/// # Errors
/// Returns the first difference.
pub fn verify_trace(
    trace: &RunTrace,
    (goal, note): (&str, Option<&str>),
    calls: &[CompletedCall],
    schemas: &BTreeMap<String, String>,
    is_origin: bool,
) -> Result<(), TraceVerificationError> {
    let values = trace.match_goal(&ParsedGoal::parse(goal), note)?;
    if let Some(tool) = trace.changed_tool(schemas) {
        return Err(TraceVerificationError::ChangedTool(tool.to_owned()));
    }
    let results: Vec<String> = calls.iter().map(|call| call.result.clone()).collect();
    for (at, (step, call)) in trace.steps.iter().zip(calls).enumerate() {
        let number = at + 1;
        if step.tool != call.tool {
            let (own, recorded) = (step.tool.clone(), call.tool.clone());
            return Err(TraceVerificationError::OtherTool { step: number, own, recorded });
        }
        let filled = slots::fill_arguments(&step.input, &values, &results[..at])
            .map_err(|source| TraceVerificationError::Template { step: number, source })?;
        let corrections = &trace.version.corrections;
        let correction = corrections.iter().find(|correction| is_origin && correction.step == number);
        if let Some(correction) = correction {
            let text = filled.get(CONTENT_ARGUMENT).and_then(Value::as_str).unwrap_or_default();
            if short_hash(text.as_bytes()) != correction.text {
                return Err(TraceVerificationError::OtherCorrection { step: number, tool: call.tool.clone() });
            }
        }
        let is_compared = |name: &&String| correction.is_none() || name.as_str() != CONTENT_ARGUMENT;
        let mut names = filled.keys().chain(call.arguments.keys()).filter(is_compared);
        if let Some(name) = names.find(|name| filled.get(*name) != call.arguments.get(*name)) {
            let (tool, argument) = (call.tool.clone(), name.clone());
            return Err(TraceVerificationError::OtherArgument { step: number, tool, argument });
        }
        step.expect
            .check(&call.result, &values)
            .map_err(|source| TraceVerificationError::Result { step: number, source })?;
        let path = call.arguments.get("path").and_then(Value::as_str);
        if let Some(path) = path.filter(|_| call.created && BuiltInTool::WriteFile.is_named(&call.tool)) {
            let is_checked = step
                .free
                .iter()
                .any(|place| slots::fill_template(place, &values, &results[..at]).is_ok_and(|free| free == path));
            if !is_checked {
                return Err(TraceVerificationError::NotNew { step: number, path: path.to_owned() });
            }
        }
    }
    if trace.steps.len() != calls.len() {
        let (own, recorded) = (trace.steps.len(), calls.len());
        return Err(TraceVerificationError::StepCount { own, recorded });
    }
    Ok(())
}
