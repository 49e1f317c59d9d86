//! Kernels in commands, events and notes: kernel specs, access grants, input requests and saved states.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{BlockId, ExecutionId};
use text::time::UnixMillis;

pub use text::kernel_properties::{
    DEPENDENCIES_PROPERTY, EMBEDDED_KERNEL, ENVIRONMENT_KERNEL, INSTANT_KERNEL, KernelKind, NotePackages,
    REQUIRES_PYTHON_PROPERTY, SCIENCE_KERNEL,
};
pub(crate) use text::kernel_properties::{
    KERNEL_PROPERTY, is_faithful, may_save_states, named_kernel, names_kernel,
};

/// A Jupyter kernel that is installed on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// Name of the kernel, used in a note's property `kernel`.
    pub name: String,
    /// Display name.
    pub title: String,
    /// Language of the kernel's cells.
    pub language: String,
    /// Path of the kernel's `kernel.json`.
    pub path: PathBuf,
    /// The command that starts the kernel: the program's full path and its arguments.
    pub command: Vec<String>,
    /// Fingerprint of the kernel's path, content and program.
    pub print: String,
    /// Why the kernel needs its own approval: cells, agents or other users can change what it starts. `None` if they
    /// can't.
    pub doubt: Option<String>,
}

impl KernelSpec {
    /// Returns the information that the user needs to approve the kernel, with control characters escaped.
    pub fn approval_question(&self) -> String {
        let doubt = self.doubt.as_deref().unwrap_or("it has all your rights").escape_debug().to_string();
        format!(
            "the kernel {} runs with all your rights, and {doubt}. Its file: {}. Its command: {}",
            self.name,
            self.path.to_string_lossy().escape_debug(),
            self.command_line()
        )
    }

    /// Returns the command that starts the kernel, on one line.
    pub fn command_line(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./{}=:,+@".contains(c);
        let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("\"{}\"", word.escape_debug()),
        };
        self.command.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

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

/// What a note's cells may access beyond the folder of the note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelGrant {
    /// Whether the cells may use the network.
    pub network: bool,
    /// Absolute paths of folders and files that the cells may read.
    pub read: Vec<PathBuf>,
    /// Absolute paths of folders and files that the cells may read and write.
    pub write: Vec<PathBuf>,
}

impl KernelGrant {
    /// Returns whether nothing is granted.
    pub fn is_none(&self) -> bool {
        *self == KernelGrant::default()
    }

    /// Describes the grant for the user.
    pub fn describe(&self) -> String {
        let list =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let mut words = Vec::new();
        if self.network {
            words.push("the network".to_owned());
        }
        if !self.read.is_empty() {
            words.push(format!("{} (to read)", list(&self.read)));
        }
        if !self.write.is_empty() {
            words.push(format!("{} (to read and write)", list(&self.write)));
        }
        if words.is_empty() { "nothing beyond its folder".to_owned() } else { words.join("; ") }
    }
}

/// A change of a kernel's saved states. Serialized as JSON, it's the message that the kernel expects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "move", rename_all = "lowercase")]
pub enum KernelStateMove {
    /// Switches to the state before the last run.
    Undo,
    /// Switches to the state that the last undo left.
    Redo,
    /// Switches to the initial state, that of a kernel that has run nothing.
    Fresh,
    /// Switches to this state.
    To {
        /// Id of the state.
        state: String,
    },
    /// Continues from the current state on a new branch.
    Fork {
        /// Name of the branch.
        name: String,
    },
    /// Switches to the last state of a branch.
    Switch {
        /// Name of the branch.
        name: String,
    },
    /// Deletes a branch.
    Discard {
        /// Name of the branch.
        name: String,
    },
    /// Continues the current branch from the state of another branch, and deletes that branch.
    Adopt {
        /// Name of the branch.
        name: String,
    },
    /// Pins a state, so that thinning never removes it.
    Pin {
        /// Id of the state.
        state: String,
        /// New name of the state; `None` keeps the name.
        name: Option<String>,
    },
    /// Unpins a state, so that thinning may remove it again.
    Unpin {
        /// Id of the state.
        state: String,
    },
}

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
