//! Result of a clean run: all cells of a note in a fresh kernel, compared with their earlier results.

use std::collections::BTreeMap;
use store::{BlockId, Execution, ExecutionStatus};

/// Result of a clean run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanRunReport {
    /// Number of cells with the same result as before.
    pub same: usize,
    /// Cells with a different result.
    pub different: Vec<BlockId>,
    /// Number of cells that had no result before.
    pub new: usize,
    /// Number of cells that didn't finish or didn't start.
    pub not_run: usize,
}

impl CleanRunReport {
    /// Compares the executions of a note's cells with the results before ([`Execution::comparable_result`]).
    pub fn compare(
        cells: impl Iterator<Item = BlockId>,
        executions: &BTreeMap<BlockId, Execution>,
        before: &BTreeMap<BlockId, String>,
    ) -> CleanRunReport {
        let mut report = CleanRunReport::default();
        for cell in cells {
            match (executions.get(&cell), before.get(&cell)) {
                (Some(run), Some(old)) if *old == run.comparable_result() => report.same += 1,
                (Some(run), _) if !matches!(run.status, ExecutionStatus::Ok | ExecutionStatus::Error) => {
                    report.not_run += 1
                }
                (Some(_), Some(_)) => report.different.push(cell),
                (Some(run), None) if run.status == ExecutionStatus::Ok => report.new += 1,
                (Some(_) | None, None) | (None, Some(_)) => report.not_run += 1,
            }
        }
        report
    }

    /// Describes the report for the user. `cells` are those of the note.
    pub fn summary(&self, cells: impl Iterator<Item = BlockId>) -> String {
        let CleanRunReport { same, different, new, not_run: left } = self;
        let numbers: Vec<String> = cells
            .enumerate()
            .filter(|(_, cell)| different.contains(cell))
            .map(|(at, _)| (at + 1).to_string())
            .collect();
        let results = |count: usize| if count == 1 { "1 result".to_owned() } else { format!("{count} results") };
        let mut words = Vec::new();
        if !different.is_empty() {
            let cells = if numbers.len() == 1 { "cell" } else { "cells" };
            let differ = if different.len() == 1 { "differs" } else { "differ" };
            words.push(format!("{} {differ}: {cells} {}", results(different.len()), numbers.join(", ")));
        }
        if *same > 0 {
            let all = if words.is_empty() && *new == 0 && *left == 0 { "all " } else { "" };
            words.push(format!("{all}{} the same", results(*same)));
        }
        if *new > 0 {
            words.push(format!("{} new", results(*new)));
        }
        if *left > 0 {
            let cells = if *left == 1 { "1 cell".to_owned() } else { format!("{left} cells") };
            words.push(format!("{cells} failed or did not run"));
        }
        format!("Clean run: {}", words.join("; "))
    }
}
