//! Kernels as commands, events and notes speak of them: which there are, what they may reach, what they ask.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{BlockId, ExecutionId};
use text::properties;
use text::time::UnixMillis;

/// A Jupyter kernel that is installed on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// Its name: what a note's property `kernel` says.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The language of its cells.
    pub language: String,
    /// Path of its `kernel.json`.
    pub path: PathBuf,
    /// What is started: the program's whole path, and its arguments.
    pub command: Vec<String>,
    /// Fingerprint of its path, content and program.
    pub print: String,
    /// Why it needs its own approval: cells, agents or other users can change what is started.
    pub doubt: Option<String>,
}

impl KernelSpec {
    /// Returns the information that the user needs to approve it, with control characters escaped.
    pub fn approval_question(&self) -> String {
        let doubt = self.doubt.as_deref().unwrap_or("it has all your rights").escape_debug().to_string();
        format!(
            "the kernel {} runs with all your rights, and {doubt}. Its file: {}. Its command: {}",
            self.name,
            self.path.to_string_lossy().escape_debug(),
            self.command_line()
        )
    }

    /// What is started, as one line.
    pub fn command_line(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./{}=:,+@".contains(c);
        let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("\"{}\"", word.escape_debug()),
        };
        self.command.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// What a running cell asks of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdinRequest {
    /// The execution that asks.
    pub execution: ExecutionId,
    /// The prompt to show.
    pub prompt: String,
    /// Whether the answer is not to be seen.
    pub password: bool,
    /// When it asked.
    pub since: UnixMillis,
    /// The time limit of the cell, in seconds: it does not run while the user thinks.
    pub(crate) limit: Option<u64>,
}

/// Name of the built-in kernel.
pub const EMBEDDED_KERNEL: &str = "embedded";
/// Another name of the built-in kernel.
pub const INSTANT_KERNEL: &str = "instant";
/// Name of the kernel that runs the science pack. Its state is saved.
pub const SCIENCE_KERNEL: &str = "science";
/// Name of the kernel that runs this machine's Python with the note's own packages.
pub const ENVIRONMENT_KERNEL: &str = "environment";
/// Another name of the same kernel.
const ENVIRONMENT_KERNEL_SHORT: &str = "env";

/// The kinds of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// The built-in Python, which needs no installation.
    BuiltIn,
    /// CPython with numpy, pandas and more in WebAssembly.
    Science,
    /// This machine's CPython with the note's packages.
    Environment,
    /// One of the user's Jupyter kernels.
    Jupyter,
}

impl KernelKind {
    /// The kind that a kernel's name means; no name is the built-in one.
    pub fn of(name: Option<&str>) -> KernelKind {
        match name {
            None | Some(EMBEDDED_KERNEL | INSTANT_KERNEL) => KernelKind::BuiltIn,
            Some(SCIENCE_KERNEL) => KernelKind::Science,
            Some(ENVIRONMENT_KERNEL | ENVIRONMENT_KERNEL_SHORT) => KernelKind::Environment,
            Some(_) => KernelKind::Jupyter,
        }
    }

    /// Whether it runs Python in our sandbox, so that it needs no approval.
    pub fn is_confined(self) -> bool {
        self != KernelKind::Jupyter
    }

    /// Whether its variables outlive its process.
    pub fn saves_state(self) -> bool {
        self == KernelKind::Science
    }
}
/// The answer to a cell's question that says that there will be no answers: Python's `EOFError`. It is what Jupyter's
/// clients send.
pub const END_OF_INPUT: &str = "\u{4}";

/// The property that names a note's kernel.
pub(crate) const KERNEL_PROPERTY: &str = "kernel";

/// The property that says whether cells of a note with saved states run as from top to bottom.
const FAITHFUL_PROPERTY: &str = "faithful";

/// The property that says whether a note's variables are saved.
const STATE_PROPERTY: &str = "state";

/// Whether a note with this beginning says that this is not wanted.
fn is_switched_off(text: &str, key: &str) -> bool {
    let stated = properties::read(text).and_then(Result::ok).unwrap_or_default();
    let stated = stated.iter().find(|property| property.key == key).and_then(|property| property.values.first());
    stated.is_some_and(|(value, _)| matches!(value.as_str(), "false" | "off"))
}

/// Whether a cell of a note with this beginning runs in the state that the cells above it left.
pub(crate) fn is_faithful(text: &str) -> bool {
    !is_switched_off(text, FAITHFUL_PROPERTY)
}

/// Whether the variables of a note with this beginning may be saved.
pub(crate) fn may_save_states(text: &str) -> bool {
    !is_switched_off(text, STATE_PROPERTY)
}

/// Whether a text names a kernel in its properties.
pub(crate) fn names_kernel(text: &str) -> bool {
    text.starts_with("---")
        && properties::read(text)
            .and_then(Result::ok)
            .is_some_and(|stated| stated.iter().any(|property| property.key == KERNEL_PROPERTY))
}

/// The property that says which Pythons a note's cells run on, as PEP 723 calls it.
pub const REQUIRES_PYTHON_PROPERTY: &str = "requires-python";
/// The property that lists the packages of a note's cells, as PEP 723 calls it.
pub const DEPENDENCIES_PROPERTY: &str = "dependencies";

/// What a note's properties say of the environment that its cells need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotePackages {
    /// The versions of Python, such as `>=3.11`.
    pub requires_python: Option<String>,
    /// The packages with their versions, such as `polars>=1`. As written: nothing is checked.
    pub dependencies: Vec<String>,
}

impl NotePackages {
    /// Those in the properties of a note with this beginning. `None`: it needs no environment.
    pub fn read(text: &str) -> Option<NotePackages> {
        text.starts_with("---").then(|| NotePackages::of(&properties::read(text)?.ok()?)).flatten()
    }

    fn of(properties: &[properties::Property]) -> Option<NotePackages> {
        let values = |key: &str| {
            let stated = properties.iter().find(|property| property.key == key);
            stated.map(|stated| stated.values.iter().map(|(value, _)| value.clone()).collect::<Vec<_>>())
        };
        let requires_python = values(REQUIRES_PYTHON_PROPERTY).and_then(|values| values.into_iter().next());
        let dependencies = values(DEPENDENCIES_PROPERTY).unwrap_or_default();
        // A list of links is about notes.
        let is_about_notes = dependencies.iter().any(|value| value.starts_with("[["));
        let dependencies = if is_about_notes { Vec::new() } else { dependencies };
        let is_stated = requires_python.is_some() || !dependencies.is_empty();
        is_stated.then_some(NotePackages { requires_python, dependencies })
    }
}

/// The kernel that a text names in its properties, unless it is the built-in one.
pub(crate) fn named_kernel(text: &str) -> Option<String> {
    if !text.starts_with("---") {
        return None;
    }
    let properties = properties::read(text)?.ok()?;
    let Some(stated) = properties.iter().find(|property| property.key == KERNEL_PROPERTY) else {
        return NotePackages::of(&properties).map(|_| ENVIRONMENT_KERNEL.to_owned());
    };
    let (name, _) = stated.values.first()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    (KernelKind::of(Some(name)) != KernelKind::BuiltIn
        && !name.is_empty()
        && name.len() <= 200
        && name.chars().all(plain))
    .then(|| name.clone())
}

/// What cells reach beyond the folder of their note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelGrant {
    /// Whether they may use the network.
    pub network: bool,
    /// Folders and files that they may read: whole paths.
    pub read: Vec<PathBuf>,
    /// Folders and files that they may read and write: whole paths.
    pub write: Vec<PathBuf>,
}

impl KernelGrant {
    /// Whether nothing is granted.
    pub fn is_none(&self) -> bool {
        *self == KernelGrant::default()
    }

    /// What is granted, in words.
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

/// Which of a kernel's saved states is to be the current one. As JSON it is the kernel's own message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "move", rename_all = "lowercase")]
pub enum KernelStateMove {
    /// The one before the last run.
    Undo,
    /// The one that the last undo left.
    Redo,
    /// None: a kernel that has run nothing.
    Fresh,
    /// This one.
    To {
        /// Its id.
        state: String,
    },
    /// The current one, on a new branch.
    Fork {
        /// Name of the branch.
        name: String,
    },
    /// The last one of a branch.
    Switch {
        /// Name of the branch.
        name: String,
    },
    /// A branch goes.
    Discard {
        /// Name of the branch.
        name: String,
    },
    /// The current branch goes on from another one's state; that branch goes.
    Adopt {
        /// Name of the branch.
        name: String,
    },
    /// A state is never thinned.
    Pin {
        /// Its id.
        state: String,
        /// What it is called; `None`: as before.
        name: Option<String>,
    },
    /// A state may be thinned again.
    Unpin {
        /// Its id.
        state: String,
    },
}

/// Where the last move between a note's saved states led.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStateReport {
    /// Counts the note's moves.
    pub count: u64,
    /// The current state; `None`: a kernel that has run nothing.
    pub state: Option<String>,
    /// The current branch.
    pub branch: String,
    /// Cells whose effect on variables is gone.
    pub undone: Vec<BlockId>,
    /// Why it failed; then nothing has changed.
    pub problem: Option<String>,
}

/// A clean run in progress: the earlier results of the cells.
#[derive(Debug, Default)]
pub(crate) struct CleanRun {
    /// Whether the old kernel has not ended yet.
    pub(crate) awaits_kernel: bool,
    pub(crate) previous_results: BTreeMap<BlockId, String>,
}

/// What a clean run found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanRunReport {
    /// Cells with the result that they had.
    pub same: usize,
    /// Cells with another result.
    pub different: Vec<BlockId>,
    /// Cells that had none before.
    pub new: usize,
    /// Cells that didn't finish or didn't start.
    pub not_run: usize,
}

#[cfg(test)]
mod tests {
    use super::named_kernel;

    #[test]
    fn a_note_names_its_kernel_in_its_properties() {
        assert_eq!(named_kernel("---\nkernel: python3\n---\n").as_deref(), Some("python3"));
        assert_eq!(named_kernel("---\nkernel: science\n---\n").as_deref(), Some("science"));
        assert_eq!(named_kernel("---\nkernel: embedded\n---\n"), None);
        assert_eq!(named_kernel("---\nkernel: instant\n---\n"), None);
        assert_eq!(named_kernel("---\nkernel: the one of Linux\n---\n"), None);
        assert_eq!(named_kernel("kernel: python3\n"), None);
        assert_eq!(named_kernel("---\ntitle: x\n---\n"), None);
        assert_eq!(named_kernel("---\ndependencies: [six]\n---\n").as_deref(), Some("environment"));
        assert_eq!(named_kernel("---\nkernel: instant\ndependencies: [six]\n---\n"), None);
        assert_eq!(named_kernel("---\ndependencies: [\"[[Other note]]\"]\n---\n"), None);
    }
}
