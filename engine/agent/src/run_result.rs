//! The result of a finished run as data, for programs: success, output, artifacts, errors and metrics, as in
//! `mixos-go.md` (shared/reference).

use crate::memory::experience::RunOutcome;
use crate::memory::trace_extraction::{completed_calls, final_answer};
use serde::Serialize;
use std::collections::BTreeSet;
use store::{ChangeKind, ExecutionStep, RunAbout, RunChange, StepKind};

/// Maximum number of errors in a result; the last ones are kept.
const MAX_RESULT_ERRORS: usize = 50;

/// Numbers about a run, with the runs that it delegated.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunMetrics {
    /// Calls of a model.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Calls of tools that failed.
    pub failed_tool_calls: u64,
    /// Tokens of all requests.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// US dollars; `None` if the price of a call isn't known.
    pub cost_usd: Option<f64>,
    /// Milliseconds from the question to the end.
    pub duration_ms: i64,
    /// Runs that took part: the run itself and those it delegated.
    pub runs: usize,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// Whether the run ended with an answer, and its calls didn't fail for good: some worked, and later ones made up
    /// for those that failed.
    pub success: bool,
    /// The answer; empty if there's none.
    pub output: String,
    /// Paths of files that it made or changed and that weren't taken back, sorted.
    pub artifacts: Vec<String>,
    /// What failed, oldest first: errors of the run and of tool calls.
    pub errors: Vec<String>,
    /// Numbers about the run.
    pub metrics: RunMetrics,
}

/// A run with what its result is made from.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRun<'a> {
    /// Metadata of the run.
    pub about: &'a RunAbout,
    /// Steps of the run, oldest first.
    pub steps: &'a [ExecutionStep],
    /// Changes that it made to files.
    pub changes: &'a [RunChange],
}

impl RunResult {
    /// Returns the result of a run that has ended and came to this, with the runs that it delegated; `None` while it
    /// continues.
    pub fn of_run(
        run: RecordedRun<'_>,
        outcome: Option<RunOutcome>,
        delegated: &[RecordedRun<'_>],
    ) -> Option<RunResult> {
        let outcome = outcome?;
        let whole: Vec<RecordedRun<'_>> = [&[run], delegated].concat();
        let mut metrics = RunMetrics {
            cost_usd: Some(0.0),
            duration_ms: run.about.ended.unwrap_or(run.about.start_time).saturating_sub(run.about.start_time),
            runs: whole.len(),
            ..RunMetrics::default()
        };
        let (mut artifacts, mut errors) = (BTreeSet::new(), Vec::new());
        for one in &whole {
            let spent = one.about.spent;
            metrics.model_calls += one.about.iteration;
            metrics.input_tokens = metrics.input_tokens.saturating_add(spent.input_tokens);
            metrics.output_tokens = metrics.output_tokens.saturating_add(spent.output_tokens);
            metrics.cost_usd = metrics.cost_usd.zip(spent.cost).map(|(sum, cost)| sum + cost);
            for call in completed_calls(one.steps, &[], one.changes) {
                metrics.tool_calls += 1;
                if call.success == Some(false) {
                    metrics.failed_tool_calls += 1;
                    let first = call.result.lines().next().unwrap_or_default();
                    errors.push(format!("{}: {first}", call.tool));
                }
            }
            errors.extend(one.steps.iter().filter_map(|step| match &step.kind {
                StepKind::Error { message, .. } => Some(message.clone()),
                _ => None,
            }));
            // The last change of a file decides whether it's there.
            for change in one.changes.iter().filter(|change| change.undone.is_empty()) {
                match &change.what {
                    ChangeKind::Deleted | ChangeKind::Bytes { after: None, .. } => artifacts.remove(&change.path),
                    ChangeKind::Created { .. } | ChangeKind::Edited { .. } | ChangeKind::Bytes { .. } => {
                        artifacts.insert(change.path.clone())
                    }
                };
            }
        }
        errors.drain(..errors.len().saturating_sub(MAX_RESULT_ERRORS));
        Some(RunResult {
            success: outcome != RunOutcome::Failure,
            output: final_answer(run.steps).unwrap_or_default().to_owned(),
            artifacts: artifacts.into_iter().collect(),
            errors,
            metrics,
        })
    }
}
