//! Kernels in commands, events and notes: kernel specs, access grants, input requests and saved states.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::{BlockId, ExecutionId};
use text::properties;
use text::time::UnixMillis;

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

/// Name of the built-in kernel.
pub const EMBEDDED_KERNEL: &str = "embedded";
/// Another name of the built-in kernel.
pub const INSTANT_KERNEL: &str = "instant";
/// Name of the kernel that runs the science pack. It can save its state.
pub const SCIENCE_KERNEL: &str = "science";
/// Name of the kernel that runs this machine's Python with the note's own packages.
pub const ENVIRONMENT_KERNEL: &str = "environment";
/// Short name of [`ENVIRONMENT_KERNEL`].
const ENVIRONMENT_KERNEL_SHORT: &str = "env";

/// Kind of a kernel.
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
    /// Returns the kind of the kernel with this name; `None` means the built-in kernel.
    pub fn of(name: Option<&str>) -> KernelKind {
        match name {
            None | Some(EMBEDDED_KERNEL | INSTANT_KERNEL | "builtin" | "built-in") => KernelKind::BuiltIn,
            Some(SCIENCE_KERNEL) => KernelKind::Science,
            Some(ENVIRONMENT_KERNEL | ENVIRONMENT_KERNEL_SHORT) => KernelKind::Environment,
            Some(_) => KernelKind::Jupyter,
        }
    }

    /// Returns whether the kernel runs Python in Tracebook's sandbox, so that it needs no approval.
    pub fn is_confined(self) -> bool {
        self != KernelKind::Jupyter
    }

    /// Returns whether the kernel's variables outlive its process.
    pub fn saves_state(self) -> bool {
        self == KernelKind::Science
    }
}
/// Answer to a cell's input request that signals the end of input and raises Python's `EOFError`. Jupyter clients send
/// the same.
pub const END_OF_INPUT: &str = "\u{4}";

/// The property that names a note's kernel.
pub(crate) const KERNEL_PROPERTY: &str = "kernel";

/// The property that sets whether cells of a note with saved states run as if from top to bottom.
const FAITHFUL_PROPERTY: &str = "faithful";

/// The property that sets whether a note's variables are saved.
const STATE_PROPERTY: &str = "state";

/// Returns whether the front matter of this text switches the property off.
fn is_switched_off(text: &str, key: &str) -> bool {
    let stated = properties::read(text).and_then(Result::ok).unwrap_or_default();
    let stated = stated.iter().find(|property| property.key == key).and_then(|property| property.values.first());
    stated.is_some_and(|(value, _)| matches!(value.as_str(), "false" | "off"))
}

/// Returns whether the cells of a note with this front matter run in the state that the cells above left.
pub(crate) fn is_faithful(text: &str) -> bool {
    !is_switched_off(text, FAITHFUL_PROPERTY)
}

/// Returns whether the front matter of this text allows the note's variables to be saved.
pub(crate) fn may_save_states(text: &str) -> bool {
    !is_switched_off(text, STATE_PROPERTY)
}

/// Returns whether the properties of this text name a kernel.
pub(crate) fn names_kernel(text: &str) -> bool {
    text.starts_with("---")
        && properties::read(text)
            .and_then(Result::ok)
            .is_some_and(|stated| stated.iter().any(|property| property.key == KERNEL_PROPERTY))
}

/// The property that sets the Python versions for a note's cells, named as in PEP 723.
pub const REQUIRES_PYTHON_PROPERTY: &str = "requires-python";
/// The property that lists the packages for a note's cells, named as in PEP 723.
pub const DEPENDENCIES_PROPERTY: &str = "dependencies";

/// The environment that a note's cells need, as declared in its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotePackages {
    /// Required Python versions, such as `>=3.11`.
    pub requires_python: Option<String>,
    /// Packages with their versions, such as `polars>=1`; as written, without validation.
    pub dependencies: Vec<String>,
}

impl NotePackages {
    /// Reads the packages from the front matter of this text. `None` if the note needs no environment.
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
        // A list of links refers to notes, not packages.
        let is_about_notes = dependencies.iter().any(|value| value.starts_with("[["));
        let dependencies = if is_about_notes { Vec::new() } else { dependencies };
        let is_stated = requires_python.is_some() || !dependencies.is_empty();
        is_stated.then_some(NotePackages { requires_python, dependencies })
    }
}

/// Returns the kernel that the properties of this text name, unless it's the built-in one.
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
