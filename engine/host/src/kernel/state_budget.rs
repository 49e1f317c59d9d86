//! Disk budgets for saved kernel states: one per note, which its kernel enforces, and one for the workspace.

use crate::kernel::science::{STATES_FOLDER, states_folder};
use crate::maintenance::configuration;
use agent::config::KernelsConfig;
use std::path::Path;
use std::process::Command;
use store::DocId;

/// Number of bytes in a megabyte.
const MEGABYTE_BYTES: u64 = 1_000_000;

/// Disk budgets for saved states, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBudget {
    /// Budget for the states of one note.
    pub note_bytes: u64,
    /// Budget for the states of all notes of the workspace.
    pub workspace_bytes: u64,
}

impl StateBudget {
    /// Returns the budgets from the configuration; an unreadable configuration counts as the default one.
    pub fn of(workspace: &Path) -> StateBudget {
        let config = configuration::load_config(workspace).map(|config| config.kernels);
        let KernelsConfig { states_budget_mb, workspace_states_budget_mb } = config.unwrap_or_default();
        let workspace_bytes = workspace_states_budget_mb.saturating_mul(MEGABYTE_BYTES);
        StateBudget {
            note_bytes: states_budget_mb.saturating_mul(MEGABYTE_BYTES).min(workspace_bytes),
            workspace_bytes,
        }
    }
}

/// Passes the note's budget to a kernel that is about to start, and thins the workspace's states if they exceed theirs.
pub(crate) fn limit_states(command: &mut Command, workspace: &Path, note: DocId) {
    let budget = StateBudget::of(workspace);
    command.arg("--states-budget").arg(budget.note_bytes.to_string());
    let (workspace, own) = (workspace.to_owned(), states_folder(workspace, note));
    std::thread::spawn(move || {
        for why in ::kernel_states::thin_least_used(&workspace.join(STATES_FOLDER), &own, budget.workspace_bytes) {
            // A kernel of that note is running: it thins the states itself, or they are thinned another time.
            tracing::debug!(%why, "saved states of a note were not thinned");
        }
    });
}

/// Returns the size of all notes' saved states in bytes.
pub fn workspace_state_bytes(workspace: &Path) -> u64 {
    ::kernel_states::all_folders_bytes(&workspace.join(STATES_FOLDER))
}
