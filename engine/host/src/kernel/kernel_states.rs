//! The saved states of a note's kernel: lists them from disk, and compares two of them in a separate process.

use crate::kernel::science::{self, states_folder};
pub use crate::kernel::state_budget::{StateBudget, workspace_state_bytes};
pub use ::kernel_states::{
    ComparedValue, DifferingVariable, LoneVariable, MAX_STATE_LANES, NoteStates, SavedState, StateComparison,
    StateError, StateFolder, StateGraphRow, folder_bytes, read_heads, state_graph,
};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use store::DocId;

/// Compares the variables of two saved states in a process that is as confined as a kernel, and sees no note. The
/// note's own kernel isn't disturbed. `program` is started as `PROGRAM kernel`; it's killed once `is_stopped` is set.
///
/// # Errors
/// Returns an error if the pack isn't installed, a state is damaged or from another pack, it takes too long, or it was
/// stopped.
pub fn compare_states(
    program: &Path,
    workspace: &Path,
    note: DocId,
    (a, b): (&str, &str),
    is_stopped: &AtomicBool,
) -> anyhow::Result<StateComparison> {
    let room = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.arg("kernel");
    science::add_arguments(&mut command, workspace, Some((note, true)))?;
    command.arg("--compare").arg(a).arg(b).arg("--shut").arg(workspace);
    command.env_clear().current_dir(room.path());
    Ok(::kernel_states::run_comparison(command, is_stopped)?)
}

/// Lists a note's saved states. Reads a file for each, so don't call it on the UI thread.
pub fn list_states(workspace: &Path, note: DocId) -> NoteStates {
    ::kernel_states::list_note_states(&states_folder(workspace, note))
}

/// Returns the notes of the workspace that have a folder of saved states.
pub fn notes_with_states(workspace: &Path) -> Vec<DocId> {
    let entries = std::fs::read_dir(workspace.join(science::STATES_FOLDER)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
