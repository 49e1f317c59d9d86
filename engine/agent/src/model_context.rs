//! The context of a model call: the messages of a branch, kept within the context size.

use crate::prompt_quote;
use crate::tool_spec::ToolSpec;
use std::collections::{BTreeSet, VecDeque};
use store::{DocId, MessageId, MessageRole, MessageTree, SessionMessage, ToolCall};

/// Maximum length of older tool results in bytes. The newest ones aren't truncated.
const MAX_OLD_RESULT_BYTES: usize = 2_000;
/// Number of most recent messages that are never summarized.
const MIN_UNSUMMARIZED_MESSAGES: usize = 6;
/// Maximum length of a mention in bytes; what is longer is text.
pub const MAX_MENTION_BYTES: usize = 300;
/// Maximum number of mentions in a message; further ones are text.
const MAX_MENTIONS: usize = 20;

/// Estimates the tokens of a text: about four bytes per token in English, and fewer in other languages.
pub fn estimate_tokens(text: &str) -> u64 {
    let plain = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|letter| !letter.is_ascii()).count();
    (plain / 4 + other + 1) as u64
}

/// Estimates the tokens of a request.
pub fn estimate_request_tokens(system: &str, tools: &[ToolSpec], messages: &[SessionMessage]) -> u64 {
    let messages = messages.iter().map(estimate_message_tokens).sum::<u64>();
    estimate_tokens(system) + estimate_tool_tokens(tools) + messages
}

/// Estimates the tokens of a message.
pub fn estimate_message_tokens(message: &SessionMessage) -> u64 {
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| {
            estimate_tokens(&call.name)
                + estimate_tokens(&serde_json::to_string(&call.arguments).unwrap_or_default())
                + 8
        })
        .sum();
    estimate_tokens(&message.content) + calls + 4
}

/// Estimates the tokens of the tool specifications.
pub fn estimate_tool_tokens(tools: &[ToolSpec]) -> u64 {
    tools
        .iter()
        .map(|tool| estimate_tokens(&tool.description) + estimate_tokens(&tool.parameters.to_string()) + 12)
        .sum()
}

/// Returns the messages that a model gets for a branch: up to `head`, with summaries in place of the messages they
/// replace, and a result for every call.
pub fn context_messages(tree: &MessageTree, head: MessageId) -> Vec<SessionMessage> {
    let branch = tree.branch_to(head);
    let replaced: BTreeSet<MessageId> = branch.iter().flat_map(|message| message.summary_of.iter().copied()).collect();
    let mut kept: Vec<&SessionMessage> = Vec::new();
    for message in &branch {
        if replaced.contains(&message.id) {
            // A summary replaces the first message that it covers.
            let stands = |other: &&&SessionMessage| other.summary_of.first() == Some(&message.id);
            kept.extend(branch.iter().filter(stands).filter(|other| !replaced.contains(&other.id)));
        } else if message.summary_of.is_empty() {
            kept.push(message);
        }
    }
    let mut said: Vec<SessionMessage> = Vec::with_capacity(kept.len());
    for (at, message) in kept.iter().enumerate() {
        let mut message = (*message).clone();
        if message.role == MessageRole::Tool
            && kept.len() - at > MIN_UNSUMMARIZED_MESSAGES
            && message.content.len() > MAX_OLD_RESULT_BYTES
        {
            let cut = message.content.floor_char_boundary(MAX_OLD_RESULT_BYTES);
            message.content.truncate(cut);
            message.content.push_str("\n[The rest was left out here; call the tool again to read it.]");
        }
        said.push(message);
    }
    complete_tool_results(said)
}

/// Returns what a model was given to read on a branch, besides what the user and models have said.
pub fn given_texts(tree: &MessageTree, head: MessageId) -> Vec<String> {
    let branch = tree.branch_to(head).into_iter();
    let is_given = |message: &&SessionMessage| matches!(message.role, MessageRole::System | MessageRole::Tool);
    branch.filter(is_given).map(|message| message.content.clone()).collect()
}

/// Adds a result to every call without one, and drops results without a call: providers reject anything else.
fn complete_tool_results(messages: Vec<SessionMessage>) -> Vec<SessionMessage> {
    let mut whole: Vec<SessionMessage> = Vec::with_capacity(messages.len());
    let mut rest = VecDeque::from(messages);
    let mut open: Vec<(Option<DocId>, ToolCall)> = Vec::new();
    while let Some(message) = rest.pop_front() {
        if message.role == MessageRole::Tool {
            let at = open.iter().position(|(_, call)| Some(&call.id) == message.tool_call_id.as_ref());
            if let Some(at) = at {
                open.remove(at);
                whole.push(message);
            }
            continue;
        }
        close_open_calls(&mut whole, &mut open, &mut rest);
        open.extend(message.tool_calls.iter().map(|call| (message.run, call.clone())));
        whole.push(message);
    }
    close_open_calls(&mut whole, &mut open, &mut rest);
    whole
}

/// Adds the results of all open calls before the next message. A result that comes later, because other calls were made
/// meanwhile, is moved here; if there's none, a message says so.
fn close_open_calls(
    whole: &mut Vec<SessionMessage>,
    open: &mut Vec<(Option<DocId>, ToolCall)>,
    rest: &mut VecDeque<SessionMessage>,
) {
    for (run, call) in open.drain(..) {
        let answers = |message: &SessionMessage| {
            message.role == MessageRole::Tool && message.run == run && message.tool_call_id.as_ref() == Some(&call.id)
        };
        if let Some(answer) = rest.iter().position(answers).and_then(|at| rest.remove(at)) {
            whole.push(answer);
            continue;
        }
        let words = "There is no result: the run was interrupted before it came. It was not run again.";
        let at = whole.last().map_or(0, |message| message.timestamp);
        let mut message = SessionMessage::new(MessageId(0), MessageRole::Tool, words, at);
        (message.tool_call_id, message.tool_name) = (Some(call.id), Some(call.name));
        whole.push(message);
    }
}

/// Returns the messages to summarize, oldest first, so that the rest fits into `limit` tokens. Empty if everything
/// fits, or if nothing is old enough.
pub fn messages_to_summarize(messages: &[SessionMessage], fixed: u64, limit: u64) -> Vec<MessageId> {
    let all: u64 = fixed + messages.iter().map(estimate_message_tokens).sum::<u64>();
    if all <= limit {
        return Vec::new();
    }
    let mut left = all;
    let mut end = 0;
    // Reduces to half the limit, so that the next message doesn't need another summary.
    for (at, message) in messages.iter().enumerate().take(messages.len().saturating_sub(MIN_UNSUMMARIZED_MESSAGES)) {
        if left <= limit / 2 {
            break;
        }
        left -= estimate_message_tokens(message);
        end = at + 1;
    }
    // A call and its results must stay together.
    while end > 0 && messages.get(end).is_some_and(|message| message.role == MessageRole::Tool) {
        end -= 1;
    }
    if end > 0 && !messages[end - 1].tool_calls.is_empty() {
        end -= 1;
    }
    let ids: Vec<MessageId> = messages[..end].iter().map(|message| message.id).filter(|id| id.0 != 0).collect();
    if ids.len() < 2 { Vec::new() } else { ids }
}

/// Truncates results and texts, oldest first, until the messages fit into `limit` tokens.
pub fn truncate_to_fit(messages: &mut [SessionMessage], fixed: u64, limit: u64) {
    let mut all: u64 = fixed + messages.iter().map(estimate_message_tokens).sum::<u64>();
    for size in [1_000, 200] {
        for message in messages.iter_mut() {
            if all <= limit {
                return;
            }
            if message.content.len() > size {
                let before = estimate_message_tokens(message);
                let cut = message.content.floor_char_boundary(size);
                message.content.truncate(cut);
                message.content.push_str(" [cut]");
                all -= before.saturating_sub(estimate_message_tokens(message));
            }
        }
    }
}

/// Returns messages as text, each quoted so that none can pass for another.
pub fn transcript(messages: &[SessionMessage]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = message.role.as_str();
        let source = message.tool_name.as_ref().map_or_else(|| role.to_owned(), |tool| format!("{role} {tool}"));
        text.push_str(&format!("\n{}", prompt_quote::quote_block(&source, &message.content)));
        for call in &message.tool_calls {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            text.push_str(&format!("\n  called {} {}", call.name, &arguments[..arguments.floor_char_boundary(400)]));
        }
    }
    text
}

/// Returns the mentions in a message, without their `@`: paths of notes and files (`@notes/plan.md`, `@"my plan.md"`),
/// agents, and cells (`@plan.md#cell2`).
pub fn mentions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        if letter == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ',' | ';')) {
            let name = if let Some(quoted) = after.strip_prefix('"') {
                quoted.split_once('"').map_or("", |(name, _)| name)
            } else {
                let end = after.find(|letter: char| letter.is_whitespace() || ",;()[]\"'<>".contains(letter));
                after[..end.unwrap_or(after.len())].trim_end_matches(['.', ':', '!', '?'])
            };
            if !name.is_empty()
                && name.len() <= MAX_MENTION_BYTES
                && found.len() < MAX_MENTIONS
                && !found.iter().any(|known| known == name)
            {
                found.push(name.to_owned());
            }
        }
        before = letter;
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Map;

    fn message(id: u64, role: MessageRole, words: usize) -> SessionMessage {
        let parents = (id > 1).then(|| MessageId(id - 1)).into_iter().collect();
        let at = i64::try_from(id).expect("small");
        SessionMessage { parents, ..SessionMessage::new(MessageId(id), role, "word ".repeat(words), at) }
    }

    #[test]
    fn calls_are_always_answered() {
        let call = ToolCall { id: "c".to_owned(), name: "shell".to_owned(), arguments: Map::new() };
        let asks = SessionMessage { tool_calls: vec![call], ..message(2, MessageRole::Assistant, 1) };
        let stray = SessionMessage { tool_call_id: Some("x".to_owned()), ..message(4, MessageRole::Tool, 1) };
        let tree =
            MessageTree::new(vec![message(1, MessageRole::User, 1), asks, message(3, MessageRole::User, 1), stray]);
        let roles: Vec<MessageRole> =
            context_messages(&tree, MessageId(4)).iter().map(|message| message.role).collect();
        assert_eq!(roles, [MessageRole::User, MessageRole::Assistant, MessageRole::Tool, MessageRole::User]);
    }

    #[test]
    fn answers_that_came_after_another_call_stand_behind_their_own() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: "ask_agent".to_owned(), arguments: Map::new() };
        let (one, other) = (Some(DocId([1; 16])), Some(DocId([2; 16])));
        let asks = |id, run, calls: &[&str]| SessionMessage {
            tool_calls: calls.iter().map(|id| call(id)).collect(),
            run,
            ..message(id, MessageRole::Assistant, 0)
        };
        let says = |id, run, of: &str| SessionMessage {
            tool_call_id: Some(of.to_owned()),
            run,
            ..message(id, MessageRole::Tool, 1)
        };
        let all = vec![
            asks(1, one, &["a", "b"]),
            says(2, one, "b"),
            asks(3, one, &["c"]),
            says(4, one, "a"),
            says(5, one, "c"),
            asks(6, one, &["d"]),
            asks(7, other, &["d"]),
            says(8, other, "d"),
        ];
        let ids: Vec<u64> =
            context_messages(&MessageTree::new(all), MessageId(8)).iter().map(|message| message.id.0).collect();
        // Another run's result with the same id doesn't count. 0 marks the missing result.
        assert_eq!(ids, [1, 2, 4, 3, 5, 6, 0, 7, 8]);
    }

    #[test]
    fn a_summary_stands_for_what_it_replaces() {
        let mut all: Vec<SessionMessage> = (1..=20).map(|id| message(id, MessageRole::User, 100)).collect();
        let said = context_messages(&MessageTree::new(all.clone()), MessageId(20));
        let ids = messages_to_summarize(&said, 0, 1_000);
        assert!(ids.len() >= 10 && ids[0] == MessageId(1), "{ids:?}");
        let mut summary = SessionMessage { summary_of: ids.clone(), ..message(21, MessageRole::System, 5) };
        summary.parents = vec![MessageId(20)];
        all.push(summary);
        all.push(SessionMessage { parents: vec![MessageId(21)], ..message(22, MessageRole::User, 3) });
        let said = context_messages(&MessageTree::new(all), MessageId(22));
        assert_eq!(said[0].id, MessageId(21));
        assert_eq!(said.len(), 22 - ids.len());
        assert_eq!(messages_to_summarize(&said, 0, 100_000), []);
    }

    #[test]
    fn mentions_are_found() {
        let text = "Compare @notes/a.md, @\"my plan.md\" and (@b.md#cell2). Not me@example.org. @qa?";
        assert_eq!(mentions(text), ["notes/a.md", "my plan.md", "b.md#cell2", "qa"]);
    }

    proptest! {
        #[test]
        fn bounds_hold(sizes in proptest::collection::vec(0_usize..4_000, 1..40), limit in 100_u64..4_000) {
            let made = sizes.iter().zip(1..).map(|(size, id)| message(id, MessageRole::User, *size));
            let mut all: Vec<SessionMessage> = made.collect();
            let ids = messages_to_summarize(&all, 0, limit);
            prop_assert!(ids.len() <= all.len());
            truncate_to_fit(&mut all, 0, limit.max(80 * 60));
            let left: u64 = all.iter().map(estimate_message_tokens).sum();
            prop_assert!(left <= limit.max(80 * 60), "{left} of {limit}");
        }
    }
}
