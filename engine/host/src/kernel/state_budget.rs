//! Disk budgets for saved kernel states: one per note, which its kernel enforces, and one for the workspace.

use crate::kernel::science::{STATES_FOLDER, states_folder};
use crate::maintenance::configuration;
use agent::config::KernelsConfig;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use store::DocId;

/// Number of bytes in a megabyte.
const MEGABYTE_BYTES: u64 = 1_000_000;
/// Budget to which the least recently used notes are thinned while the workspace exceeds its own. Data that must stay,
/// such as the last variables, stays whatever its size.
const UNUSED_NOTE_BYTES: u64 = 0;
/// Size of a workspace's states after thinning, in tenths of its budget.
const WORKSPACE_TARGET_TENTHS: u64 = 9;

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
    std::thread::spawn(move || thin_workspace(&workspace.join(STATES_FOLDER), &own, budget.workspace_bytes));
}

/// Returns the notes' folders, least recently used first: last use, size in bytes, path.
fn folders_by_use(states: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let folders = std::fs::read_dir(states).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = folders
        .filter(|path| path.is_dir() && !path.is_symlink())
        .map(|path| {
            let used = std::fs::metadata(path.join("heads")).and_then(|about| about.modified());
            (used.unwrap_or(SystemTime::UNIX_EPOCH), ::kernel_states::folder_bytes(&path), path)
        })
        .collect();
    found.sort();
    found
}

/// Returns the size of all notes' saved states in bytes.
pub fn workspace_state_bytes(workspace: &Path) -> u64 {
    folders_by_use(&workspace.join(STATES_FOLDER)).iter().map(|(_, bytes, _)| bytes).sum()
}

/// Thins the states of the least recently used notes until the workspace is within its budget.
fn thin_workspace(states: &Path, own: &Path, budget_bytes: u64) {
    let folders = folders_by_use(states);
    let mut used: u64 = folders.iter().map(|(_, bytes, _)| bytes).sum();
    if used <= budget_bytes {
        return;
    }
    let target = budget_bytes / 10 * WORKSPACE_TARGET_TENTHS;
    for (_, before, folder) in folders {
        if used <= target {
            return;
        }
        if folder == own {
            continue;
        }
        match ::kernel_states::thin_folder(&folder, UNUSED_NOTE_BYTES) {
            Ok(after) => used = used.saturating_sub(before.saturating_sub(after)),
            // A kernel of that note is running: it thins the states itself, or they are thinned another time.
            Err(why) => tracing::debug!(%why, "saved states of a note were not thinned"),
        }
    }
}
