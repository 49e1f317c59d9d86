//! Messages to the webhook of the configuration: a run finished, failed or waits for an approval. They name runs,
//! agents and tools, and hold nothing of notes, messages or arguments.

use crate::effect::Effect;
use crate::session::apply_context::ApplyContext;
use crate::session::state::runs::RunsState;
use agent::tool_file::format_iso_time;
use serde_json::{Value, json};
use store::{DocId, RunEnding};

impl RunsState {
    /// Returns whether messages to the webhook are on their way.
    pub fn has_pending_webhooks(&self) -> bool {
        self.pending_webhooks > 0
    }

    /// Returns the first failure of the webhook, as a sentence.
    pub fn webhook_failure(&self) -> Option<&str> {
        self.webhook_failure.as_deref()
    }

    /// Reports the end of a run that finished or failed. One that the user stopped, or that works for another run, is
    /// no news.
    pub(super) fn report_run_end(&mut self, turn: &mut ApplyContext<'_>, id: DocId, ending: RunEnding) {
        let event = match ending {
            RunEnding::Done => "run_finished",
            RunEnding::Failed | RunEnding::Limit | RunEnding::Budget => "run_failed",
            RunEnding::Cancelled => return,
        };
        if !self.children.contains_key(&id) {
            let ending = serde_json::to_value(ending).unwrap_or_default();
            self.send_webhook(turn, id, event, &[("ending", ending)]);
        }
    }

    /// Reports that a run waits for the user's approval.
    pub(super) fn report_approval(&mut self, turn: &mut ApplyContext<'_>, id: DocId, approval: &str) {
        let Some(known) = self.runs.get(&id).and_then(|run| run.approvals.iter().find(|known| known.id == approval))
        else {
            return;
        };
        // The name that `tracebook approvals` takes.
        let run = id.to_string();
        let name = format!("{}/{approval}", run.get(..8).unwrap_or(&run));
        let tool = Value::from(known.tool.clone());
        let more =
            [("approval", Value::from(name)), ("tool", tool), ("expires", format_iso_time(known.expires).into())];
        self.send_webhook(turn, id, "approval_pending", &more);
    }

    fn send_webhook(&mut self, turn: &mut ApplyContext<'_>, id: DocId, event: &str, more: &[(&str, Value)]) {
        let Some(url) = self.setup().and_then(|setup| setup.config.notifications.webhook.clone()) else { return };
        let Some(run) = self.runs.get(&id) else { return };
        let mut body = json!({
            "event": event,
            "at": format_iso_time(turn.now.0),
            "run": id.to_string(),
            "session": run.about.session.to_string(),
            "agent": run.about.agent,
        });
        for (key, value) in more {
            body[*key] = value.clone();
        }
        self.pending_webhooks += 1;
        turn.effects.push(Effect::SendWebhook { url, body });
    }

    /// Notes that a message was sent, or why it couldn't be. Only the first failure is reported to the user.
    pub(in crate::session) fn on_webhook_done(&mut self, turn: &mut ApplyContext<'_>, failure: Option<String>) {
        self.pending_webhooks = self.pending_webhooks.saturating_sub(1);
        if let Some(why) = failure.filter(|_| self.webhook_failure.is_none()) {
            let told = format!("the webhook of config.yaml (notifications) doesn't take messages: {why}");
            turn.journal.problems.push(told.clone());
            self.webhook_failure = Some(told);
        }
    }
}
