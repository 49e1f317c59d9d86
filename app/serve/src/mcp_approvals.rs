//! Approvals of runs, asked through the MCP client (elicitation): a form in the program that the user works with.

use crate::command_calls::{CommandCall, WorkspaceCommands};
use agent::tool_catalog::BuiltInTool;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::ElicitationMode;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum length in bytes of what an approval shows.
const MAX_SHOWN_BYTES: usize = 4_000;

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingApproval {
    /// Under which name `tracebook approvals` knows it.
    name: String,
    /// The tool that the agent wants to call.
    tool: String,
    /// What it would do, for people.
    what: String,
    /// Whether a decision can be about more than this call.
    can_last: bool,
}

impl PendingApproval {
    /// Reads a line of a run's output.
    pub(crate) fn from_line(line: &Value) -> Option<PendingApproval> {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        (line["type"] == "approval_pending" && !text("name").is_empty()).then(|| PendingApproval {
            name: text("name"),
            tool: text("tool"),
            what: text("what"),
            can_last: !text("reach").is_empty(),
        })
    }

    fn is_question(&self) -> bool {
        BuiltInTool::AskUser.is_named(&self.tool)
    }

    /// Returns the form that the client shows.
    fn form(&self) -> Option<ElicitRequestParams> {
        let shown = self.what.get(..self.what.floor_char_boundary(MAX_SHOWN_BYTES)).unwrap_or_default();
        let (message, schema) = if self.is_question() {
            let answer = json!({"type": "string", "title": "Answer", "maxLength": MAX_SHOWN_BYTES});
            (shown.to_owned(), json!({"type": "object", "properties": {"answer": answer}, "required": ["answer"]}))
        } else {
            let mut choices = vec![json!({"const": "once", "title": "Allow once"})];
            if self.can_last {
                choices.push(json!({"const": "run", "title": "Allow in this run"}));
            }
            choices.push(json!({"const": "deny", "title": "Deny"}));
            let decision = json!({"type": "string", "title": "Decision", "oneOf": choices});
            let comment = json!({"type": "string", "title": "Comment for the agent", "maxLength": MAX_SHOWN_BYTES});
            let properties = json!({"decision": decision, "comment": comment});
            let message = format!("An agent of Tracebook wants to use {}:\n{shown}", self.tool);
            (message, json!({"type": "object", "properties": properties, "required": ["decision"]}))
        };
        let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
        Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
    }

    /// Returns the command that carries out what the user has answered; `None` if the user hasn't decided.
    fn decision(&self, answer: &ElicitResult) -> Option<CommandCall> {
        let content = answer.content.clone().unwrap_or_default();
        let text = |key: &str| content[key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let call = CommandCall::json("approvals");
        let call = match (&answer.action, self.is_question()) {
            (ElicitationAction::Accept, true) => call.flag("allow", true).option("comment", Some(text("answer")?)),
            (ElicitationAction::Accept, false) => {
                let call = match text("decision")?.as_str() {
                    "once" => call.flag("allow", true).option("scope", Some("once")),
                    "run" if self.can_last => call.flag("allow", true).option("scope", Some("run")),
                    "deny" => call.flag("deny", true).option("scope", Some("once")),
                    _ => return None,
                };
                call.option("comment", text("comment"))
            }
            (ElicitationAction::Decline, _) => call.flag("deny", true).option("scope", Some("once")),
            // The form was closed; it can still be decided in the window.
            _ => return None,
        };
        Some(call.operands([&self.name]))
    }

    /// Asks the client's user, and carries out the decision. Without one, the approval waits where it did.
    pub(crate) async fn ask(self, peer: Peer<RoleServer>, commands: Arc<dyn WorkspaceCommands>) {
        if !peer.supported_elicitation_modes().contains(&ElicitationMode::Form) {
            return;
        }
        let Some(form) = self.form() else { return };
        let Ok(answer) = peer.create_elicitation(form).await else { return };
        if let Some(call) = self.decision(&answer) {
            // What was decided elsewhere at the same time needs no second decision.
            let _ = tokio::task::spawn_blocking(move || commands.perform(&call, &mut |_| {})).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(action: ElicitationAction, content: Value) -> ElicitResult {
        ElicitResult::new(action).with_content(content)
    }

    #[test]
    fn only_a_clear_yes_allows() {
        let line = json!({"type": "approval_pending", "name": "a1", "tool": "shell", "what": "rm -r x", "reach": ""});
        let approval = PendingApproval::from_line(&line).expect("an approval");
        assert!(approval.form().is_some());
        let words = |answer: ElicitResult| approval.decision(&answer).map(|call| call.words.join(" "));
        let allowed = words(answered(ElicitationAction::Accept, json!({"decision": "once", "comment": "--deny"})));
        assert_eq!(allowed.as_deref(), Some("approvals --json --allow --scope=once --comment=--deny -- a1"));
        let denied = Some("approvals --json --deny --scope=once -- a1".to_owned());
        assert_eq!(words(answered(ElicitationAction::Accept, json!({"decision": "deny"}))), denied);
        assert_eq!(words(ElicitResult::new(ElicitationAction::Decline)), denied);
        assert_eq!(words(ElicitResult::new(ElicitationAction::Cancel)), None);
        for wrong in [json!({}), json!({"decision": "always"}), json!({"decision": "run"}), json!(["once"]), json!(7)] {
            assert_eq!(words(answered(ElicitationAction::Accept, wrong.clone())), None, "{wrong}");
        }
        assert_eq!(PendingApproval::from_line(&json!({"type": "thinking"})), None);
    }

    #[test]
    fn a_question_is_answered_with_words() {
        let line = json!({"type": "approval_pending", "name": "a2", "tool": "ask_user", "what": "Which boat?"});
        let approval = PendingApproval::from_line(&line).expect("an approval");
        let answer = answered(ElicitationAction::Accept, json!({"answer": "the red one"}));
        let call = approval.decision(&answer).expect("a decision");
        assert_eq!(call.words.join(" "), "approvals --json --allow --comment=the red one -- a2");
        assert!(approval.decision(&answered(ElicitationAction::Accept, json!({"answer": " "}))).is_none());
    }
}
