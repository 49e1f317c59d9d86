//! Approvals asked through the MCP client (elicitation): a form in the program that the user works with. They are about
//! calls of runs, and about writes of the client itself.

use crate::acp_updates::fenced;
use crate::command_calls::{CommandCall, WorkspaceCommands};
use crate::proposed_writes::ProposedWrite;
use agent::approval_text;
use agent::server_form::{FormCall, UserForm};
use agent::tool_catalog::BuiltInTool;
use program_approvals::ProgramDecision;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::ElicitationMode;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use std::sync::Arc;
use text::untrusted_text;

/// Maximum length in bytes of what a form shows.
const MAX_SHOWN_BYTES: usize = 4_000;

/// An approval that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingApproval {
    /// Under which name `tracebook approvals` knows it.
    name: String,
    /// The tool that the agent wants to call.
    tool: String,
    /// All that it would do, for people.
    shown: String,
    /// Whether a decision can be about more than this call.
    can_last: bool,
    /// What a tool server of the run asks the user.
    asked: Option<UserForm>,
}

impl PendingApproval {
    /// Reads a line of a run's output.
    pub(crate) fn from_line(line: &Value) -> Option<PendingApproval> {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let told = approval_text::from_json(line);
        let shown = match BuiltInTool::AskUser.is_named(&told.tool) {
            true => vec![approval_text::title(&told)],
            false => vec![
                approval_text::title(&told),
                approval_text::body(&told),
                untrusted_text::escape_line(&told.reason).into_owned(),
                approval_text::lasting_scope(&told),
            ],
        };
        let shown: Vec<String> = shown.into_iter().filter(|part| !part.is_empty()).collect();
        (line["type"] == "approval_pending" && !text("name").is_empty()).then(|| PendingApproval {
            name: text("name"),
            tool: text("tool"),
            shown: shown.join("\n"),
            can_last: !text("reach").is_empty(),
            asked: line["arguments"]
                .as_object()
                .filter(|_| BuiltInTool::McpForm.is_named(&text("tool")))
                .and_then(|arguments| Some(FormCall::from_arguments(arguments).ok()?.form)),
        })
    }

    fn is_question(&self) -> bool {
        BuiltInTool::AskUser.is_named(&self.tool)
    }

    /// Returns the form that the client shows; `None` if there's more to see than a form can hold.
    fn form(&self) -> Option<ElicitRequestParams> {
        if let Some(asked) = &self.asked {
            // The words of the server don't pass for ours.
            let message = format!("The tool server {} asks you:\n{}", asked.server, asked.message);
            let message = untrusted_text::escape_block(&message);
            let message = message[..message.floor_char_boundary(MAX_SHOWN_BYTES)].to_owned();
            if asked.page.is_some() {
                let (url, elicitation_id) = (asked.page_address()?.text, self.name.clone());
                return Some(ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id });
            }
            return form_with(message, asked.schema());
        }
        if self.shown.len() > MAX_SHOWN_BYTES {
            return None;
        }
        let shown = &self.shown;
        let (message, schema) = if self.is_question() {
            let answer = json!({"type": "string", "title": "Answer", "maxLength": MAX_SHOWN_BYTES});
            (shown.clone(), json!({"type": "object", "properties": {"answer": answer}, "required": ["answer"]}))
        } else {
            let mut choices = vec![json!({"const": "once", "title": "Allow once"})];
            if self.can_last {
                choices.push(json!({"const": "run", "title": "Allow in this run"}));
            }
            choices.push(json!({"const": "deny", "title": "Deny"}));
            let decision = json!({"type": "string", "title": "Decision", "oneOf": choices});
            // Drawn as Markdown, what a model wrote could begin a comment, which hides what follows.
            let message = format!("An agent of Tracebook wants to use {}:\n{}", self.tool, fenced(shown));
            (message, decision_schema(&decision, "Comment for the agent"))
        };
        form_with(message, schema)
    }

    /// Returns the command that carries out what the user has answered; `None` if the user hasn't decided.
    fn decision(&self, answer: &ElicitResult) -> Option<CommandCall> {
        let content = answer.content.clone().unwrap_or_default();
        let text = |key: &str| content[key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let call = CommandCall::json("approvals");
        if let Some(asked) = &self.asked
            && answer.action == ElicitationAction::Accept
        {
            if asked.page.is_some() {
                return Some(call.flag("allow", true).operands([&self.name]));
            }
            let answers = Some(content).filter(Value::is_object)?;
            return Some(call.flag("allow", true).option("answers", Some(answers)).operands([&self.name]));
        }
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
        let Some(form) = self.form() else { return };
        let mode = match form {
            ElicitRequestParams::UrlElicitationParams { .. } => ElicitationMode::Url,
            _ => ElicitationMode::Form,
        };
        // What the client can't show waits where it did.
        if !peer.supported_elicitation_modes().contains(&mode) {
            return;
        }
        let Ok(answer) = peer.create_elicitation(form).await else { return };
        if let Some(call) = self.decision(&answer) {
            // What was decided elsewhere at the same time needs no second decision.
            let _ = tokio::task::spawn_blocking(move || commands.perform(&call, &mut |_| {})).await;
        }
    }
}

/// Returns the schema of a form with a decision and a comment.
fn decision_schema(decision: &Value, comment_title: &str) -> Value {
    let comment = json!({"type": "string", "title": comment_title, "maxLength": MAX_SHOWN_BYTES});
    let properties = json!({"decision": decision, "comment": comment});
    json!({"type": "object", "properties": properties, "required": ["decision"]})
}

fn form_with(message: String, schema: Value) -> Option<ElicitRequestParams> {
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Returns the form that asks about a write of the client; `None` if the change is too long for one.
fn write_form(write: &ProposedWrite) -> Option<ElicitRequestParams> {
    if write.diff.len() > MAX_SHOWN_BYTES {
        return None;
    }
    let choices = json!([{"const": "approve", "title": "Approve"}, {"const": "deny", "title": "Deny"}]);
    let decision = json!({"type": "string", "title": "Decision", "oneOf": choices});
    let diff = fenced(untrusted_text::escape_block(&write.diff).trim_end_matches('\n'));
    let message = format!("{}\n\n{diff}", untrusted_text::escape_block(&write.what));
    form_with(message, decision_schema(&decision, "Comment for the program"))
}

/// Returns what the user has decided about a write; `None` if the user hasn't.
fn write_decision(answer: &ElicitResult) -> Option<ProgramDecision> {
    let content = answer.content.clone().unwrap_or_default();
    let comment = content["comment"].as_str().unwrap_or_default().trim().to_owned();
    let approved = match (&answer.action, content["decision"].as_str()) {
        (ElicitationAction::Accept, Some("approve")) => true,
        (ElicitationAction::Accept, Some("deny")) | (ElicitationAction::Decline, _) => false,
        // The form was closed; it can still be decided elsewhere.
        _ => return None,
    };
    Some(ProgramDecision { approved, comment })
}

/// Asks the client's user about a write of the client. Without an answer it waits forever, as for a decision elsewhere.
pub(crate) async fn ask_about_write(write: &ProposedWrite, peer: &Peer<RoleServer>) -> ProgramDecision {
    if peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
        && let Some(form) = write_form(write)
        && let Ok(answer) = peer.create_elicitation(form).await
        && let Some(decision) = write_decision(&answer)
    {
        return decision;
    }
    std::future::pending().await
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
    fn only_a_clear_yes_writes() {
        let decided = |answer: ElicitResult| write_decision(&answer).map(|decision| decision.approved);
        assert_eq!(decided(answered(ElicitationAction::Accept, json!({"decision": "approve"}))), Some(true));
        assert_eq!(decided(answered(ElicitationAction::Accept, json!({"decision": "deny"}))), Some(false));
        assert_eq!(decided(answered(ElicitationAction::Decline, json!({"decision": "approve"}))), Some(false));
        assert_eq!(decided(ElicitResult::new(ElicitationAction::Cancel)), None);
        for wrong in [json!({}), json!({"decision": "yes"}), json!({"decision": true}), json!(["approve"]), json!(7)] {
            assert_eq!(decided(answered(ElicitationAction::Accept, wrong.clone())), None, "{wrong}");
        }
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

    #[test]
    fn a_form_of_a_tool_server_is_passed_on() {
        let fields = json!([{"name": "city", "title": "City", "kind": "text", "required": true}]);
        let arguments = json!({"server": "own", "message": "Where?", "fields": fields, "answers": {}});
        let line = json!({"type": "approval_pending", "name": "a3", "tool": "mcp_form", "arguments": arguments});
        let approval = PendingApproval::from_line(&line).expect("an approval");
        let Some(ElicitRequestParams::FormElicitationParams { message, .. }) = approval.form() else {
            panic!("a form: {approval:?}")
        };
        assert_eq!(message, "The tool server own asks you:\nWhere?");
        let call =
            approval.decision(&answered(ElicitationAction::Accept, json!({"city": "Bonn"}))).expect("a decision");
        assert_eq!(call.words.join(" "), r#"approvals --json --allow --answers={"city":"Bonn"} -- a3"#);
        let declined = approval.decision(&ElicitResult::new(ElicitationAction::Decline)).expect("a decision");
        assert_eq!(declined.words.join(" "), "approvals --json --deny --scope=once -- a3");
    }

    #[test]
    fn a_page_of_a_tool_server_is_passed_on_as_an_address() {
        let about = |page: &str| {
            let arguments = json!({"server": "own", "message": "Sign in", "fields": [], "answers": {}, "page": page});
            let line = json!({"type": "approval_pending", "name": "a4", "tool": "mcp_form", "arguments": arguments});
            PendingApproval::from_line(&line).expect("an approval")
        };
        let approval = about("https://accounts.example.com/in");
        let Some(ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. }) = approval.form()
        else {
            panic!("a page: {approval:?}")
        };
        assert_eq!((message.as_str(), elicitation_id.as_str()), ("The tool server own asks you:\nSign in", "a4"));
        assert_eq!(url, "https://accounts.example.com/in");
        let call = approval.decision(&ElicitResult::new(ElicitationAction::Accept)).expect("a decision");
        assert_eq!(call.words.join(" "), "approvals --json --allow -- a4");
        assert_eq!(about("javascript:alert(1)").form(), None);
    }
}
