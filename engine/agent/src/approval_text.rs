//! Text of an approval request: everything that would run, with nothing omitted.

use crate::server_form::form_text;
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use store::{CodePiece, RunApproval, StepId};
use text::untrusted_text;

/// Returns an approval from the JSON that tells of it, such as the line `approval_pending` of a run.
pub fn from_json(told: &Value) -> RunApproval {
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    let piece = |piece: &Value| {
        let text = |name: &str| piece[name].as_str().map(str::to_owned);
        Some(CodePiece { title: text("title")?, text: text("text")? })
    };
    RunApproval {
        id: text("call"),
        step: StepId(0),
        tool: text("tool"),
        arguments: told["arguments"].as_object().cloned().unwrap_or_default(),
        what: text("what"),
        reason: text("reason"),
        asked: 0,
        expires: 0,
        code: told["code"].as_array().into_iter().flatten().filter_map(piece).collect(),
        definition: None,
        addresses: Vec::new(),
        reach: text("reach"),
        decision: None,
    }
}

/// Returns the action to approve on one line. A question from the agent keeps its own lines.
pub fn title(approval: &RunApproval) -> String {
    if BuiltInTool::AskUser.is_named(&approval.tool) {
        return untrusted_text::escape_block(&approval.what).into_owned();
    }
    untrusted_text::escape_line(&approval.what).into_owned()
}

/// Returns everything that would run or be sent: the arguments, and code that they don't contain. Escaped for display.
pub fn body(approval: &RunApproval) -> String {
    let form = BuiltInTool::McpForm.is_named(&approval.tool).then(|| form_text(&approval.arguments)).flatten();
    if let Some(form) = form {
        return form;
    }
    let mut parts = Vec::new();
    let said = is_shown_in_title(approval);
    if !said {
        parts.push(format_arguments(&approval.arguments));
    }
    for piece in &approval.code {
        parts.push(format!(
            "{}:\n{}",
            untrusted_text::escape_line(&piece.title),
            untrusted_text::escape_block(piece.text.trim_end_matches('\n'))
        ));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Returns a sentence about what a lasting decision would allow; empty if only a one-time decision is possible.
pub fn lasting_scope(approval: &RunApproval) -> String {
    match approval.reach.as_str() {
        "" => String::new(),
        reach => format!("A lasting answer allows {}.", untrusted_text::escape_line(reach)),
    }
}

/// Returns whether the title already contains all arguments.
fn is_shown_in_title(approval: &RunApproval) -> bool {
    let only = (approval.arguments.len() == 1).then(|| approval.arguments.values().next()).flatten();
    let only = only.and_then(Value::as_str);
    only.is_some_and(|only| !only.is_empty() && !only.contains('\n') && approval.what.ends_with(only))
}

/// Formats arguments for display: each name with its full value.
pub fn format_arguments(arguments: &Map<String, Value>) -> String {
    let one = |(key, value): (&String, &Value)| {
        let key = untrusted_text::escape_line(key);
        match value {
            Value::String(text) if text.contains('\n') => {
                format!("{key}:\n{}", untrusted_text::escape_block(text.trim_end_matches('\n')))
            }
            Value::String(text) => format!("{key}: {}", untrusted_text::escape_line(text)),
            value => format!("{key}: {}", untrusted_text::escape_block(&format!("{value:#}"))),
        }
    };
    arguments.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn approval(what: &str, arguments: Value, code: &[&str]) -> RunApproval {
        RunApproval {
            id: "c0".to_owned(),
            step: StepId(1),
            tool: "shell".to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            what: what.to_owned(),
            reason: String::new(),
            asked: 0,
            expires: 0,
            code: code.iter().map(|text| CodePiece { title: "Cell 1".to_owned(), text: (*text).to_owned() }).collect(),
            definition: None,
            addresses: Vec::new(),
            reach: "exactly this".to_owned(),
            decision: None,
        }
    }

    #[test]
    fn all_that_would_run_is_shown() {
        let one = approval("Run in the sandbox: ls", json!({"command": "ls"}), &[]);
        assert_eq!((title(&one).as_str(), body(&one).as_str()), ("Run in the sandbox: ls", ""));
        let two = approval("Run in the sandbox: ls\nrm", json!({"command": "ls\nrm\u{1b}"}), &[]);
        assert_eq!(title(&two), "Run in the sandbox: ls␊rm");
        assert_eq!(body(&two), "command:\nls\nrm␛");
        let long = "print(1)\n".repeat(5_000) + "evil\u{202e}()";
        let python = approval("Run Python in the sandbox", json!({"code": long, "seconds": 3}), &[]);
        assert!(body(&python).contains("evil\\u{202e}()") && body(&python).contains("seconds: 3"));
        assert_eq!(body(&python).matches("print(1)").count(), 5_000);
        let cell = approval("Run cell 1 of a.md", json!({"path": "a.md", "cell": 1}), &["import os\n\rx"]);
        assert!(body(&cell).ends_with("Cell 1:\nimport os\n␍x"), "{}", body(&cell));
    }
}
