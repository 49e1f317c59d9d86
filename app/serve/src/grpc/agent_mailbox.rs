//! Messages between programs that work as agents: each is kept until its receiver takes it.

use super::generated::AgentMessage;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Maximum number of messages that are kept, and their bytes.
const MAX_KEPT_MESSAGES: usize = 1_000;
const MAX_KEPT_BYTES: usize = 16 << 20;

/// A receiver: the volume of its token, if that has only one, and its name.
pub(super) type MailboxOwner = (Option<String>, String);

#[derive(Default)]
struct KeptMessages {
    messages: HashMap<MailboxOwner, VecDeque<AgentMessage>>,
    count: usize,
    bytes: usize,
}

/// The messages that wait for their receivers. They don't survive the server.
pub(super) struct AgentMailbox {
    kept: Mutex<KeptMessages>,
    /// Changes with each message.
    news: watch::Sender<()>,
}

impl Default for AgentMailbox {
    fn default() -> AgentMailbox {
        AgentMailbox { kept: Mutex::default(), news: watch::Sender::new(()) }
    }
}

fn message_size(message: &AgentMessage) -> usize {
    message.payload.len() + message.from_agent.len() + message.to_agent.len() + message.r#type.len()
}

impl AgentMailbox {
    fn kept(&self) -> MutexGuard<'_, KeptMessages> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message for its receiver. Returns whether there was room.
    pub(super) fn put(&self, volume: Option<String>, message: AgentMessage) -> bool {
        let mut kept = self.kept();
        let bytes = kept.bytes + message_size(&message);
        if kept.count >= MAX_KEPT_MESSAGES || bytes > MAX_KEPT_BYTES {
            return false;
        }
        (kept.bytes, kept.count) = (bytes, kept.count + 1);
        kept.messages.entry((volume, message.to_agent.clone())).or_default().push_back(message);
        drop(kept);
        self.news.send_replace(());
        true
    }

    /// Takes the oldest message of a receiver.
    pub(super) fn take(&self, owner: &MailboxOwner) -> Option<AgentMessage> {
        let mut kept = self.kept();
        let waiting = kept.messages.get_mut(owner)?;
        let message = waiting.pop_front();
        if waiting.is_empty() {
            kept.messages.remove(owner);
        }
        let message = message?;
        kept.count -= 1;
        kept.bytes -= message_size(&message);
        Some(message)
    }

    /// Returns what changes with each new message.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(to: &str, size: usize) -> AgentMessage {
        AgentMessage { to_agent: to.to_owned(), payload: vec![0; size], ..AgentMessage::default() }
    }

    #[test]
    fn messages_wait_in_order_and_are_taken_once() {
        let mailbox = AgentMailbox::default();
        for size in [1, 2] {
            assert!(mailbox.put(None, message("a", size)));
        }
        assert!(mailbox.put(Some("notes".to_owned()), message("a", 3)));
        let (own, other) = ((None, "a".to_owned()), (Some("notes".to_owned()), "a".to_owned()));
        let sizes = |owner| std::iter::from_fn(|| mailbox.take(owner)).map(|one| one.payload.len()).collect::<Vec<_>>();
        assert_eq!((sizes(&own), sizes(&other), sizes(&own)), (vec![1, 2], vec![3], vec![]));
        let kept = mailbox.kept();
        assert_eq!((kept.count, kept.bytes, kept.messages.len()), (0, 0, 0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mailbox = AgentMailbox::default();
        assert!(!mailbox.put(None, message("a", MAX_KEPT_BYTES + 1)));
        for _ in 0..MAX_KEPT_MESSAGES {
            assert!(mailbox.put(None, message("a", 1)));
        }
        assert!(!mailbox.put(None, message("b", 1)));
        assert!(mailbox.take(&(None, "a".to_owned())).is_some() && mailbox.put(None, message("b", 1)));
    }
}
