//! What the companion knows besides the workspace: captures that were sent, and runs of cells.

use super::capture_ledger::CaptureLedger;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of notes whose last run of cells is remembered.
const MAX_CELL_RUNS: usize = 200;

/// How a run of cells, started from a page, stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CellRunState {
    Running,
    Ended { is_ok: bool, messages: String },
}

/// What the companion knows besides the workspace.
pub(crate) struct CompanionState {
    pub(super) captures: CaptureLedger,
    /// By the note's name in commands.
    cell_runs: Mutex<HashMap<String, CellRunState>>,
}

impl CompanionState {
    pub(crate) fn new(workspace: &Path) -> CompanionState {
        CompanionState { captures: CaptureLedger::new(workspace), cell_runs: Mutex::default() }
    }

    fn cell_runs(&self) -> MutexGuard<'_, HashMap<String, CellRunState>> {
        self.cell_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the last run of a note's cells stands.
    pub(super) fn cell_run(&self, note: &str) -> Option<CellRunState> {
        self.cell_runs().get(note).cloned()
    }

    /// Notes that cells of a note run. Returns whether none did before.
    pub(super) fn begin_cell_run(&self, note: &str) -> bool {
        let mut runs = self.cell_runs();
        if runs.len() >= MAX_CELL_RUNS {
            runs.retain(|_, run| *run == CellRunState::Running);
        }
        runs.insert(note.to_owned(), CellRunState::Running) != Some(CellRunState::Running)
    }

    /// Remembers how a run of cells ended.
    pub(super) fn end_cell_run(&self, note: &str, is_ok: bool, messages: String) {
        self.cell_runs().insert(note.to_owned(), CellRunState::Ended { is_ok, messages });
    }
}
