//! What the user approves about kernels: the Jupyter kernels that may run a note's cells, and what cells may access.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
    /// Absolute path of the Python that runs the cells where their kernel is an environment; `None`: the one of the
    /// note's own environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<PathBuf>,
}

impl KernelGrant {
    /// Returns whether nothing is granted.
    pub fn is_none(&self) -> bool {
        *self == KernelGrant::default()
    }

    /// Describes for the user what the cells may access.
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
