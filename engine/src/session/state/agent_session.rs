//! A loaded session with an agent.

use agent::model_context;
use agent::run_records::SessionSummary;
use store::{DocId, MessageId, MessageTree, SessionAbout, SessionDoc, SessionMessage};

/// A loaded session.
#[derive(Debug)]
pub struct AgentSession {
    /// Document id of the session.
    pub id: DocId,
    /// Metadata of the session.
    pub about: SessionAbout,
    /// Counter that increases with each change to the session.
    pub revision: u64,
    pub(in crate::session) tree: MessageTree,
    pub(in crate::session) doc: Box<SessionDoc>,
    pub(in crate::session) fresh: bool,
}

impl AgentSession {
    pub(in crate::session) fn new(id: DocId, doc: Box<SessionDoc>, fresh: bool) -> AgentSession {
        let tree = MessageTree::new(doc.messages());
        AgentSession { id, about: doc.about(), revision: 0, tree, doc, fresh }
    }

    /// Returns all messages of the session as a tree.
    pub fn tree(&self) -> &MessageTree {
        &self.tree
    }

    /// Returns the last message of the current branch; `None` if the session has no messages.
    pub fn head(&self) -> Option<MessageId> {
        self.about
            .head
            .filter(|head| self.tree.get(*head).is_some())
            .or_else(|| self.tree.branch_ends().first().copied())
    }

    /// Returns the messages of the current branch.
    pub fn branch(&self) -> Vec<&SessionMessage> {
        self.head().map(|head| self.tree.branch_to(head)).unwrap_or_default()
    }

    /// Returns the context: the messages of the current branch that a model reads.
    pub fn context(&self) -> Vec<SessionMessage> {
        self.head().map(|head| model_context::context_messages(&self.tree, head)).unwrap_or_default()
    }

    pub(in crate::session) fn summary(&self) -> SessionSummary {
        SessionSummary {
            title: self.about.title.clone(),
            volume: self.about.volume,
            note: self.about.note,
            updated: self.tree.messages().map(|message| message.timestamp).max().unwrap_or(0),
            messages: self.tree.len(),
            branches: self.tree.branch_ends().len(),
            closed: self.about.closed,
            heads: self.doc.heads(),
        }
    }
}
