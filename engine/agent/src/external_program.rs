//! Programs that work as agents and speak the Agent Client Protocol.

use crate::prompt_quote;
use crate::tool_catalog::{self, BuiltInTool};
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use store::{MessageRole, SessionMessage};

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
    let paths = json!({"type": "array", "items": text()});
    let permission = json!({"type": "object", "additionalProperties": false, "required": ["action"], "properties":
        {"action": text(), "kind": text(), "input": {}, "details": text(), "paths": paths}});
    let success = json!({"type": "boolean"});
    let report = json!({"type": "object", "additionalProperties": false, "required": ["action", "success"],
        "properties": {"action": text(), "kind": text(), "input": {}, "success": success, "output": text(),
        "paths": paths}});
    [
        own(BuiltInTool::AgentPermission, "What an agent's program asks permission for.", ToolRisk::High, permission),
        own(BuiltInTool::AgentReport, "What an agent's program has done inside of itself.", ToolRisk::None, report),
    ]
}

/// Returns our tools that do to files what a program asks permission for, by its kind of work.
pub(crate) fn tools_for_kind(kind: &str) -> Vec<ToolSpec> {
    let named: &[BuiltInTool] = match kind {
        "read" | "search" => &[BuiltInTool::ReadFile],
        "delete" => &[BuiltInTool::DeleteFile],
        "move" => &[BuiltInTool::WriteFile, BuiltInTool::DeleteFile],
        // The files that these name are only where they happen.
        "execute" | "fetch" | "think" | "switch_mode" => &[],
        // Other kinds of work may write, too.
        _ => &[BuiltInTool::WriteFile],
    };
    let mut tools = tool_catalog::built_in();
    tools.retain(|tool| named.iter().any(|named| named.is_named(&tool.name)));
    tools
}

/// Returns what a program is asked: the user's last message, after what was said before.
pub fn prompt_of(messages: &[SessionMessage]) -> String {
    let last = messages.iter().rposition(|message| message.role == MessageRole::User);
    let (mut earlier, mut text) = (String::new(), String::new());
    for (at, message) in messages.iter().enumerate() {
        let content = message.content.trim();
        if Some(at) == last {
            text = content.to_owned();
        } else if !content.is_empty() {
            let source = message.tool_name.as_deref().unwrap_or(message.role.as_str());
            earlier.push_str(&format!("{}\n\n", prompt_quote::quote_block(source, content)));
        }
    }
    match earlier.is_empty() {
        true => text,
        false => format!(
            "{text}\n\n---\nFor your information, what was said and found before. {}\n\n{earlier}",
            prompt_quote::QUOTED_MATERIAL_PREAMBLE
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::MessageId;

    #[test]
    fn a_prompt_says_what_came_before() {
        let message = |role: MessageRole, content: &str| SessionMessage::new(MessageId(1), role, content.to_owned(), 0);
        assert_eq!(prompt_of(&[message(MessageRole::User, "Go.")]), "Go.");
        let all = [
            message(MessageRole::User, "First."),
            message(MessageRole::Assistant, "Done."),
            message(MessageRole::User, "Second."),
        ];
        let text = prompt_of(&all);
        assert!(text.starts_with("Second.\n") && text.contains("First.") && text.contains("Done."), "{text}");
    }
}
