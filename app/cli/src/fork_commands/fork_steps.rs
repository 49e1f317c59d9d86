//! Which steps of which runs have made a fork's changes.

use super::{CliError, CommandContext};
use crate::agents;
use agent::policy;
use engine::RunSummary;
use forks::ForkHunk;
use std::collections::BTreeSet;
use store::{ChangeKind, DocId, RunChange, StepKind};

/// Minimum length of a part of a line that tells a step.
const MIN_COMPARED_BYTES: usize = 3;

/// A step that has changed a file, and which lines.
#[derive(Clone, Debug)]
pub(super) struct ChangeMaker {
    pub(super) run: DocId,
    pub(super) step: String,
    /// Name of the tool.
    pub(super) tool: String,
    /// What the tool was called for.
    pub(super) what: String,
    change: RunChange,
}

/// Reads the steps of runs that have changed files, in order.
pub(super) fn read_makers(
    scene: &CommandContext<'_>,
    runs: &[(DocId, RunSummary)],
) -> Result<Vec<ChangeMaker>, CliError> {
    let mut makers = Vec::new();
    for (run, _) in runs {
        let run = agents::resolve_run(scene, &run.to_string())?;
        let found = agents::read_run(scene, run, move |loaded| {
            let maker = |change: &RunChange| {
                let step = loaded.steps.iter().find(|step| step.id == change.step);
                let (tool, what) = match step.map(|step| &step.kind) {
                    Some(StepKind::ToolCall { tool_name, params, .. }) => {
                        (tool_name.clone(), policy::main_argument(params).lines().next().unwrap_or_default().to_owned())
                    }
                    _ => (String::new(), String::new()), // tidy: open because only calls change files
                };
                ChangeMaker { run, step: change.step.to_string(), tool, what, change: change.clone() }
            };
            loaded.changes.iter().filter(|change| !is_undone(change)).map(maker).collect::<Vec<_>>()
        })?;
        makers.extend(found);
    }
    Ok(makers)
}

fn is_undone(change: &RunChange) -> bool {
    change.undone.len() >= engine::revertible_parts(change)
}

/// The steps that have changed one file, in order.
pub(super) struct FileMakers<'a>(Vec<&'a ChangeMaker>);

impl<'a> FileMakers<'a> {
    pub(super) fn of(makers: &'a [ChangeMaker], path: &str) -> FileMakers<'a> {
        FileMakers(makers.iter().filter(|maker| maker.change.path == path).collect())
    }

    pub(super) fn of_file(&self) -> Vec<&'a ChangeMaker> {
        self.0.clone()
    }

    /// Returns the steps that wrote or removed lines of a hunk. A program that wrote the file as a whole counts for
    /// each hunk, and so does the last step if none fits, since later steps may have changed its lines.
    pub(super) fn of_hunk(&self, hunk: &ForkHunk) -> Vec<&'a ChangeMaker> {
        let lines = |text: &str| -> BTreeSet<String> {
            text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        let (removed, added) = (lines(&hunk.removed), lines(&hunk.added));
        // Edits of older versions are parts of lines.
        let is_part = |part: &str, text: &str| part.trim().len() >= MIN_COMPARED_BYTES && text.contains(part.trim());
        let has_made = |maker: &&&ChangeMaker| match &maker.change.what {
            ChangeKind::Edited { hunks } => hunks.iter().enumerate().any(|(at, part)| {
                let in_added = !lines(&part.inserted).is_disjoint(&added) || is_part(&part.inserted, &hunk.added);
                let in_removed = !lines(&part.removed).is_disjoint(&removed) || is_part(&part.removed, &hunk.removed);
                !maker.change.undone.contains(&at) && (in_added || in_removed)
            }),
            ChangeKind::Created { text } => !lines(text).is_disjoint(&added),
            ChangeKind::Deleted | ChangeKind::Bytes { .. } => true,
        };
        let found: Vec<&ChangeMaker> = self.0.iter().filter(has_made).copied().collect();
        if found.is_empty() { self.0.last().copied().into_iter().collect() } else { found }
    }
}
