//! Programs that work as agents and speak the Agent Client Protocol.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a program that works as an agent is started. It has the user's rights, so nothing but the user's own
/// configuration and the built-in list names one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalProgram {
    /// The command: a path, or a name on `PATH`.
    pub command: String,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Environment variables; values may contain `${NAME}`.
    pub env: BTreeMap<String, String>,
}

/// Names of known programs, each with its title and the commands that start it. The first that is there is used.
pub(crate) const KNOWN_PROGRAMS: [(&str, &str, &[&[&str]]); 5] = [
    ("claude-code", "Claude Code", &[&["claude-agent-acp"], &["claude-code-acp"]]),
    ("codex", "Codex", &[&["codex-acp"]]),
    ("gemini", "Gemini CLI", &[&["gemini", "--acp"]]),
    ("opencode", "opencode", &[&["opencode", "acp"]]),
    ("goose", "goose", &[&["goose", "acp"]]),
];

/// Returns whether a program is known by this name, so that the configuration needs no command for it.
pub(crate) fn is_known_program(name: &str) -> bool {
    KNOWN_PROGRAMS.iter().any(|(known, ..)| *known == name)
}
