//! Programs that work as agents and speak the Agent Client Protocol.

use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;
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

/// Returns the tools that stand for what a program does inside of itself: what it asks permission for, and what it
/// reports.
pub fn program_own_tools() -> [ToolSpec; 2] {
    let own = |tool: BuiltInTool, description: &str, risk, parameters| ToolSpec {
        name: tool.to_string(),
        description: description.to_owned(),
        parameters,
        risk,
        permissions: ToolPermissions::default(),
        idempotent: false,
        source: ToolSource::BuiltIn,
    };
    let text = || json!({"type": "string"});
    let permission = json!({"type": "object", "additionalProperties": false, "required": ["action"], "properties":
        {"action": text(), "kind": text(), "input": {}, "details": text()}});
    let success = json!({"type": "boolean"});
    let paths = json!({"type": "array", "items": text()});
    let report = json!({"type": "object", "additionalProperties": false, "required": ["action", "success"],
        "properties": {"action": text(), "kind": text(), "input": {}, "success": success, "output": text(),
        "paths": paths}});
    [
        own(BuiltInTool::AgentPermission, "What an agent's program asks permission for.", ToolRisk::High, permission),
        own(BuiltInTool::AgentReport, "What an agent's program has done inside of itself.", ToolRisk::None, report),
    ]
}
