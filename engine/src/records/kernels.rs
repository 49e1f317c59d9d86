//! Kernels in commands, events and notes: kernel specs, access grants, input requests and saved states.

use std::collections::BTreeMap;
use store::{BlockId, ExecutionId};
use text::time::UnixMillis;

pub use commands::kernel_states::{KernelStateMove, SharedStateJob, SharedStateOutcome, SharedStateProgress};
pub use text::clean_run::CleanRunReport;
pub use text::kernel_properties::{
    DEPENDENCIES_PROPERTY, EMBEDDED_KERNEL, ENVIRONMENT_KERNEL, INSTANT_KERNEL, KernelKind, NotePackages,
    REQUIRES_PYTHON_PROPERTY, SCIENCE_KERNEL,
};
pub(crate) use text::kernel_properties::{KERNEL_PROPERTY, is_faithful, may_save_states, named_kernel, names_kernel};
pub use user_settings::kernel_access::{KernelGrant, KernelSpec};

/// A running cell's request for a line of input from the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdinRequest {
    /// The execution that requests the input.
    pub execution: ExecutionId,
    /// The prompt to show.
    pub prompt: String,
    /// Whether to hide the answer, as for a password.
    pub password: bool,
    /// Time of the request.
    pub since: UnixMillis,
    /// Time limit of the cell in seconds. It's paused while the user is answering.
    pub(crate) limit: Option<u64>,
}

/// Answer to a cell's input request that signals the end of input and raises Python's `EOFError`. Jupyter clients send
/// the same.
pub const END_OF_INPUT: &str = "\u{4}";

/// Result of the last move between a note's saved states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStateReport {
    /// Number of moves so far in the note.
    pub count: u64,
    /// Id of the current state; `None` for a kernel that has run nothing.
    pub state: Option<String>,
    /// Name of the current branch.
    pub branch: String,
    /// Cells whose effect on variables was undone.
    pub undone: Vec<BlockId>,
    /// Why the move failed; nothing has changed in that case.
    pub problem: Option<String>,
}

/// A clean run in progress, with the earlier results of the cells.
#[derive(Debug, Default)]
pub(crate) struct CleanRun {
    /// Whether the old kernel has yet to end.
    pub(crate) awaits_kernel: bool,
    pub(crate) previous_results: BTreeMap<BlockId, String>,
}
