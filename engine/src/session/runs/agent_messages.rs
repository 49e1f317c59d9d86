//! Messages between agents that work on the same task. A message is a tool call of the run that sends it, and a step
//! and an entry of the session of each run that receives it, so that both sides keep it. It's read before the next
//! call of the receiver's model, as quoted material: it gives no one more rights than they have.

use crate::session::apply_context::ApplyContext;
use crate::session::state::agent_run::{AgentRun, new_step};
use crate::session::state::runs::{RunRecord, RunsState};
use crate::session::state::sync::SyncState;
use agent::prompt_quote;
use agent::tool_catalog::BuiltInTool;
use agent::tool_job::ToolOutcome;
use agent::tool_outcomes::{failed_outcome, string_argument, successful_outcome};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::{DocId, MessageId, MessageRole, SessionMessage, StepKind};

/// Maximum number of messages that a run sends.
const MAX_SENT_MESSAGES: usize = 100;
/// The receiver that stands for all other agents of the task.
const ALL_RECEIVERS: &str = "all";
/// Prefix of the route of a step that holds a received message; the sender's run and call follow.
const MESSAGE_ROUTE_PREFIX: &str = "message/";

/// A message as its sender recorded it.
struct SentMessage {
    /// Run of the sender, and id of the call.
    route: String,
    sender: String,
    receiver: String,
    text: String,
    /// Name of the message that this one answers; empty for none.
    reply_to: String,
    /// When it was sent, in milliseconds since 1970, to keep the order.
    at: i64,
}

impl SentMessage {
    /// Returns the name by which a reply refers to the message.
    fn name(&self) -> String {
        message_name(&self.route)
    }

    /// Returns the text of the step and the session entry that hold the message.
    fn entry_text(&self) -> String {
        let SentMessage { sender, text, reply_to, .. } = self;
        let reply = if reply_to.is_empty() {
            String::new()
        } else {
            format!(" (a reply to {})", prompt_quote::single_line(reply_to, 40))
        };
        let sender = prompt_quote::single_line(sender, 60);
        let quoted = prompt_quote::quote_block(&format!("the agent {sender}"), text);
        format!(
            "Message {} from {sender}{reply}. {} A reply goes by message_agent.\n{quoted}",
            self.name(),
            prompt_quote::QUOTED_MATERIAL_PREAMBLE
        )
    }
}

/// Returns the name of a message: the beginning of its sender's run, and the call.
fn message_name(route: &str) -> String {
    let (run, call) = route.split_once('/').unwrap_or(("", route));
    format!("{}#{call}", run.chars().take(6).collect::<String>())
}

/// Returns the messages that a run has sent.
fn sent_messages(run: &AgentRun) -> impl Iterator<Item = SentMessage> {
    let is_sent = |id: &str| {
        run.steps.iter().any(
            |step| matches!(&step.kind, StepKind::ToolResult { tool_call_id, success: true, .. } if tool_call_id == id),
        )
    };
    run.steps.iter().filter_map(move |step| match &step.kind {
        StepKind::ToolCall { tool_call_id, tool_name, params }
            if BuiltInTool::MessageAgent.is_named(tool_name) && is_sent(tool_call_id) =>
        {
            Some(SentMessage {
                route: format!("{}/{tool_call_id}", run.id),
                sender: run.about.agent.clone(),
                receiver: receiver_of(params).to_owned(),
                text: string_argument(params, "text").to_owned(),
                reply_to: string_argument(params, "reply_to").to_owned(),
                at: step.timestamp,
            })
        }
        _ => None,
    })
}

fn receiver_of(arguments: &Map<String, Value>) -> &str {
    string_argument(arguments, "to").trim().trim_start_matches('@')
}

/// Returns the routes of the messages that a run has received.
fn received_routes(run: &AgentRun) -> BTreeSet<&str> {
    run.steps.iter().filter_map(|step| step.route.as_deref()?.strip_prefix(MESSAGE_ROUTE_PREFIX)).collect()
}

impl RunsState {
    /// Returns the runs that work on the same task as a run, without the run itself.
    fn companions(&self, id: DocId) -> impl Iterator<Item = &AgentRun> {
        let first = self.ancestors(id).last().copied().unwrap_or(id);
        self.run_family(first).into_iter().filter(move |one| *one != id).filter_map(|one| self.run(one))
    }

    /// Returns whether a run can send messages: it works beside others, or for one.
    pub(super) fn has_companions(&self, id: DocId) -> bool {
        self.companions(id).next().is_some()
    }

    /// Checks a message and says whom it reaches. The call and its result are the message; receivers fetch it before
    /// their next turn.
    pub(super) fn send_message(&self, id: DocId, arguments: &Map<String, Value>) -> ToolOutcome {
        let Some(run) = self.run(id) else { return failed_outcome("the run is not open") };
        let to = receiver_of(arguments);
        if string_argument(arguments, "text").trim().is_empty() {
            return failed_outcome("the message is empty; say something in “text”");
        }
        if sent_messages(run).count() >= MAX_SENT_MESSAGES {
            return failed_outcome(format!("a run sends at most {MAX_SENT_MESSAGES} messages; finish the work"));
        }
        let reply_to = string_argument(arguments, "reply_to");
        if !reply_to.is_empty() && received_routes(run).into_iter().all(|route| message_name(route) != reply_to) {
            return failed_outcome(format!(
                "no message {} has come; leave “reply_to” out",
                prompt_quote::single_line(reply_to, 40)
            ));
        }
        let is_meant = |one: &&AgentRun| to == ALL_RECEIVERS || one.about.agent == to;
        let (active, over): (Vec<&AgentRun>, Vec<&AgentRun>) =
            self.companions(id).partition(|one| one.about.ending.is_none());
        let receivers: BTreeSet<&str> =
            active.iter().copied().filter(is_meant).map(|one| one.about.agent.as_str()).collect();
        if !receivers.is_empty() {
            let receivers: Vec<&str> = receivers.into_iter().collect();
            return successful_outcome(format!("Sent to {}.", receivers.join(", ")));
        }
        if self.knows_agent(&run.project_agents, to) {
            let words = match over.iter().any(is_meant) {
                true => format!("{to} has finished. It reads the message if it gets another task of this work."),
                false => format!("{to} isn't at work yet. It reads the message when it begins a task of this work."),
            };
            return successful_outcome(words);
        }
        let names: BTreeSet<&str> = active.iter().map(|one| one.about.agent.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let there = if names.is_empty() { "nobody else works on this now".to_owned() } else { names.join(", ") };
        failed_outcome(format!("There is no agent {}. At work: {there}.", prompt_quote::single_line(to, 60)))
    }

    /// Hands a run the messages that have come since its last turn. Returns whether there were any: the run continues
    /// once they're kept.
    pub(super) fn deliver_messages(&mut self, turn: &mut ApplyContext<'_>, sync: &mut SyncState, id: DocId) -> bool {
        let Some(run) = self.run(id) else { return false };
        let received = received_routes(run);
        let is_for_run = |message: &SentMessage| {
            (message.receiver == ALL_RECEIVERS || message.receiver == run.about.agent)
                && !received.contains(message.route.as_str())
        };
        // A message to all is for those who were at work when it was sent, and for those who begin later.
        let mut messages: Vec<SentMessage> = self.companions(id).flat_map(sent_messages).filter(is_for_run).collect();
        if messages.is_empty() {
            return false;
        }
        messages.sort_by(|one, other| (one.at, &one.route).cmp(&(other.at, &other.route)));
        let (mut parents, mut head) = (run.last_step(), run.about.head);
        let mut record = RunRecord::default();
        for message in messages {
            let text = message.entry_text();
            let mut step = new_step(turn, parents, StepKind::Thinking { content: text.clone(), is_streaming: None });
            step.route = Some(format!("{MESSAGE_ROUTE_PREFIX}{}", message.route));
            parents = vec![step.id];
            let entry = SessionMessage {
                parents: vec![head],
                run: Some(id),
                ..SessionMessage::new(MessageId(turn.next_id()), MessageRole::System, text, turn.now.0)
            };
            head = entry.id;
            record.steps.push(step);
            record.messages.push(entry);
        }
        let batch = self.record_run(turn, sync, id, record);
        self.continue_run_after(batch, id);
        true
    }
}
