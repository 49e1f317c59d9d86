//! Metadata of states, and which of them are current.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Name of a note's first branch.
pub const MAIN_BRANCH: &str = "main";
/// Maximum length of a branch's name.
const MAX_BRANCH_BYTES: usize = 100;

/// Metadata of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// ID of the state, a hash of its content: 32 hexadecimal digits.
    pub state: String,
    /// The previous state; `None` is a fresh kernel.
    pub parent: Option<String>,
    /// Label of the cell that made it, as in tracebacks.
    pub cell: String,
    /// ID of the execution that made it.
    pub execution: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Existing names that the cell changed.
    pub changed: Vec<String>,
    /// Number of bytes that the state added to the disk.
    pub bytes: u64,
    /// Time of saving, in milliseconds since 1970.
    pub time: u64,
    /// Code of the cell.
    pub code: String,
    /// Number of cells that had run.
    pub count: u64,
    /// Names that were removed before the cell ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// Path of the script that the cell is, as the guest sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Current branch and states, undone states and pins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHeads {
    /// The current branch.
    pub branch: String,
    /// Each branch's state; `None` is a fresh kernel.
    pub branches: BTreeMap<String, Option<String>>,
    /// Undone states by branch, the last undone one last.
    pub redo: BTreeMap<String, Vec<String>>,
    /// States that are never thinned.
    pub pinned: BTreeSet<String>,
    /// Names of pinned states, by ID.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Branches that visits have made and that the user hasn't switched to. Their states may be thinned.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub visited: BTreeSet<String>,
}

impl StateHeads {
    /// Returns the current state; `None` is a fresh kernel.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.branches.get(&self.branch)?.as_deref()
    }
}

/// Returns whether `name` is a valid name for a branch.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty() && name.len() <= MAX_BRANCH_BYTES && name.chars().all(plain) && name.trim() == name
}
