//! Which steps of which runs have made a fork's changes.

use crate::fork_changes::ForkHunk;
use crate::fork_error::ForkError;
use crate::open_forks::OpenForks;
use agent::policy;
use engine::{Command, RunSummary, Session};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{ChangeKind, DocId, RunChange, StepKind};

/// Minimum length of a part of a line that tells a step.
const MIN_COMPARED_BYTES: usize = 3;
/// Maximum time to read a run.
const RUN_READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A step that has changed a file, and which lines.
#[derive(Clone, Debug)]
pub struct ChangeMaker {
    /// The run.
    pub run: DocId,
    /// The step's id.
    pub step: String,
    /// Name of the tool.
    pub tool: String,
    /// What the tool was called for.
    pub what: String,
    change: RunChange,
}

impl OpenForks {
    /// Reads the steps of runs that have changed files, in order.
    ///
    /// # Errors
    /// Returns an error if a run can't be read.
    pub fn read_makers(&self, runs: &[(DocId, RunSummary)]) -> Result<Vec<ChangeMaker>, ForkError> {
        let mut makers = Vec::new();
        for (run, _) in runs {
            let run = *run;
            self.handle.run_command(Command::OpenRun { run })?;
            let there = move |session: &Session| {
                let agents = session.agents();
                let unread = agents.read_error(run).map(|why| Err(ForkError::Unreadable(why.to_owned())));
                unread.or_else(|| {
                    let loaded = agents.run(run)?;
                    let changes = loaded.changes.iter().filter(|change| !is_undone(change));
                    Some(Ok(changes.map(|change| maker(run, loaded, change)).collect::<Vec<_>>()))
                })
            };
            let found = self.handle.wait(Some(RUN_READ_TIMEOUT), there)?;
            let slow = || ForkError::Unreadable("the run could not be read in a minute".to_owned());
            makers.extend(found.ok_or_else(slow)??);
        }
        Ok(makers)
    }
}

fn maker(run: DocId, loaded: &engine::AgentRun, change: &RunChange) -> ChangeMaker {
    let step = loaded.steps.iter().find(|step| step.id == change.step);
    let (tool, what) = match step.map(|step| &step.kind) {
        Some(StepKind::ToolCall { tool_name, params, .. }) => {
            (tool_name.clone(), policy::main_argument(params).lines().next().unwrap_or_default().to_owned())
        }
        _ => (String::new(), String::new()), // tidy: open because only calls change files
    };
    ChangeMaker { run, step: change.step.to_string(), tool, what, change: change.clone() }
}

fn is_undone(change: &RunChange) -> bool {
    change.undone.len() >= engine::revertible_parts(change)
}

/// The steps that have changed one file, in order.
pub struct FileMakers<'a>(Vec<&'a ChangeMaker>);

impl<'a> FileMakers<'a> {
    /// Chooses the steps that have changed the file at a path.
    pub fn of(makers: &'a [ChangeMaker], path: &str) -> FileMakers<'a> {
        FileMakers(makers.iter().filter(|maker| maker.change.path == path).collect())
    }

    /// Returns all of them.
    pub fn of_file(&self) -> Vec<&'a ChangeMaker> {
        self.0.clone()
    }

    /// Returns the steps that wrote or removed lines of a hunk. A program that wrote the file as a whole counts for
    /// each hunk, and so does the last step if none fits, since later steps may have changed its lines.
    pub fn of_hunk(&self, hunk: &ForkHunk) -> Vec<&'a ChangeMaker> {
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
