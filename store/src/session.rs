//! The session document: a tree of messages. Any message can start a new branch; the path from the root to a message is
//! its context. Messages never change and are never removed, so concurrent writes of several devices lose nothing.

use crate::conversation::SessionMessage;
use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::{DocId, MessageId};
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Metadata of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAbout {
    /// The title: the beginning of the first message, until the user sets another.
    pub title: String,
    /// The volume that the session works in.
    pub volume: Option<DocId>,
    /// The note in which the session was started.
    pub note: Option<DocId>,
    /// The current message: the end of the current branch; `None` for the newest message.
    pub head: Option<MessageId>,
    /// Whether the user has closed the session.
    #[serde(default)]
    pub closed: bool,
    /// For an imported session: other content of its file as JSON, kept for export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
}

/// The automerge document of a session.
pub struct SessionDoc {
    doc: Automerge,
    messages: ObjId,
    about: ObjId,
}

impl std::fmt::Debug for SessionDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionDoc")
    }
}

impl SessionDoc {
    /// Loads a session from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(id: DocId, chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<SessionDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } =
            document::load_document(id, DocumentKind::Session, chunks, actor)?;
        let messages = find_container(&doc, id, keys::MESSAGES)?;
        let about = find_container(&doc, id, keys::ABOUT)?;
        Ok(LoadedDocument { doc: SessionDoc { doc, messages, about }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns the document's heads in hexadecimal, sorted and separated by spaces.
    pub fn heads(&self) -> String {
        let mut heads: Vec<String> = self.doc.get_heads().iter().map(ToString::to_string).collect();
        heads.sort_unstable();
        heads.join(" ")
    }

    /// Returns all messages, oldest first, without unreadable ones.
    pub fn messages(&self) -> Vec<SessionMessage> {
        let messages = self.doc.map_range(&self.messages, ..);
        let mut all: Vec<SessionMessage> = messages.filter_map(|item| document::parse_json_value(&item)).collect();
        all.sort_by_key(|message| (message.timestamp, message.id));
        all
    }

    /// Returns the session's metadata.
    pub fn about(&self) -> SessionAbout {
        let word = |key: &str| {
            let (value, _) = self.doc.get(&self.about, key).ok()??;
            value.as_str().map(str::to_owned)
        };
        SessionAbout {
            title: word("title").unwrap_or_default(),
            volume: word("volume").and_then(|id| id.parse().ok()),
            note: word("note").and_then(|id| id.parse().ok()),
            head: word("head").and_then(|id| id.parse().ok()),
            closed: word("closed").is_some_and(|word| word == "yes"),
            imported: word("imported"),
        }
    }

    /// Adds messages and sets the metadata. Returns the chunk to append.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn commit(
        &mut self,
        messages: &[&SessionMessage],
        about: &SessionAbout,
        time: i64,
    ) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        let (container, object) = (&self.messages, &self.about);
        let fields: [(&str, Option<String>); 6] = [
            ("title", Some(about.title.clone())),
            ("volume", about.volume.map(|id| id.to_string())),
            ("note", about.note.map(|id| id.to_string())),
            ("head", about.head.map(|id| id.to_string())),
            ("closed", about.closed.then(|| "yes".to_owned())),
            ("imported", about.imported.clone()),
        ];
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time),
            |tx| {
                for message in messages {
                    let json = serde_json::to_string(message).unwrap_or_default();
                    tx.put(container, message.id.to_string(), json)?;
                }
                for (key, value) in &fields {
                    let old = tx.get(object, *key)?.and_then(|(value, _)| value.as_str().map(str::to_owned));
                    match value {
                        Some(value) if old.as_ref() != Some(value) => tx.put(object, *key, value.as_str())?,
                        None if old.is_some() => tx.delete(object, *key)?,
                        Some(_) | None => {}
                    }
                }
                Ok(())
            },
        );
        made.map_err(|failure| StoreError::Automerge(failure.error))?;
        Ok(document::save_since(&self.doc, &before))
    }

    /// Merges changes from another device and returns the chunk to append.
    ///
    /// # Errors
    /// Returns [`StoreError::Damaged`] if the bytes can't be read completely. Nothing is merged then.
    pub fn merge(&mut self, id: DocId, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let before = self.doc.get_heads();
        document::merge_changes(id, &mut self.doc, bytes, None, |_| {})?;
        Ok(document::save_since(&self.doc, &before))
    }
}

/// The messages of a session as a tree.
#[derive(Clone, Debug, Default)]
pub struct MessageTree {
    messages: BTreeMap<MessageId, SessionMessage>,
    children: BTreeMap<Option<MessageId>, Vec<MessageId>>,
}

impl MessageTree {
    /// Builds the tree of these messages. A message with an unknown parent becomes a root.
    pub fn new(messages: Vec<SessionMessage>) -> MessageTree {
        let mut tree = MessageTree::default();
        let known: BTreeSet<MessageId> = messages.iter().map(|message| message.id).collect();
        for message in messages {
            let parent = message.parents.first().copied().filter(|parent| known.contains(parent));
            tree.children.entry(parent).or_default().push(message.id);
            tree.messages.insert(message.id, message);
        }
        tree
    }

    /// Adds a message to the tree.
    pub fn add(&mut self, message: SessionMessage) {
        let parent = message.parents.first().copied().filter(|parent| self.messages.contains_key(parent));
        self.children.entry(parent).or_default().push(message.id);
        self.messages.insert(message.id, message);
    }

    /// Returns the message with this id.
    pub fn get(&self, id: MessageId) -> Option<&SessionMessage> {
        self.messages.get(&id)
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the session has no messages yet.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns all messages, sorted by id.
    pub fn messages(&self) -> impl Iterator<Item = &SessionMessage> {
        self.messages.values()
    }

    /// Returns the answers to a message, oldest first. `None` stands for the root and returns the first messages.
    pub fn children(&self, of: Option<MessageId>) -> &[MessageId] {
        self.children.get(&of).map_or(&[], Vec::as_slice)
    }

    /// Returns the path from the root to a message, including both.
    pub fn branch_to(&self, end: MessageId) -> Vec<&SessionMessage> {
        let mut way = Vec::new();
        let mut seen = BTreeSet::new();
        let mut at = Some(end);
        while let Some(message) = at.and_then(|id| self.messages.get(&id)).filter(|message| seen.insert(message.id)) {
            way.push(message);
            at = message.parents.first().copied();
        }
        way.reverse();
        way
    }

    /// Returns the last messages of all branches, newest first.
    pub fn branch_ends(&self) -> Vec<MessageId> {
        let mut leaves: Vec<&SessionMessage> =
            self.messages.values().filter(|message| self.children(Some(message.id)).is_empty()).collect();
        leaves.sort_by_key(|message| std::cmp::Reverse((message.timestamp, message.id)));
        leaves.into_iter().map(|message| message.id).collect()
    }

    /// Returns the newest message at or below a message; the message itself if nothing answers it.
    pub fn newest_end_below(&self, from: MessageId) -> MessageId {
        let mut best = from;
        let mut waiting = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop().filter(|id| seen.insert(*id)) {
            let newer = |id: MessageId| self.messages.get(&id).map(|message| (message.timestamp, message.id));
            if newer(id) > newer(best) {
                best = id;
            }
            waiting.extend(self.children(Some(id)));
        }
        best
    }

    /// Returns the last message that two branches share.
    pub fn last_shared_message(&self, one: MessageId, other: MessageId) -> Option<MessageId> {
        let ids = |end| self.branch_to(end).into_iter().map(|message| message.id).collect::<Vec<_>>();
        let (one, other) = (ids(one), ids(other));
        one.iter().zip(&other).take_while(|(one, other)| one == other).last().map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::MessageRole;

    const ID: DocId = DocId([7; 16]);

    fn device(actor: u8) -> SessionDoc {
        SessionDoc::load(ID, &[], ActorId::from([actor; 16])).expect("made").doc
    }

    fn message(id: u64, parent: Option<u64>) -> SessionMessage {
        let at = i64::try_from(id).expect("small");
        let parents = parent.map(MessageId).into_iter().collect();
        SessionMessage { parents, ..SessionMessage::new(MessageId(id), MessageRole::User, format!("message {id}"), at) }
    }

    #[test]
    fn two_devices_that_append_at_once_lose_and_double_nothing() {
        let (mut one, mut other) = (device(1), device(2));
        let about = SessionAbout { title: "plan".to_owned(), ..SessionAbout::default() };
        let root = one.commit(&[&message(1, None)], &about, 0).expect("kept");
        other.merge(ID, &root).expect("merged");
        let left = one.commit(&[&message(2, Some(1)), &message(4, Some(2))], &about, 1).expect("kept");
        let right = other.commit(&[&message(3, Some(1))], &about, 1).expect("kept");
        one.merge(ID, &right).expect("merged");
        other.merge(ID, &left).expect("merged");
        other.merge(ID, &left).expect("what is known already changes nothing");
        assert_eq!(one.messages(), other.messages());
        assert_eq!(one.messages().len(), 4);
        let again = SessionDoc::load(ID, &[one.save()], ActorId::from([3; 16])).expect("read").doc;
        assert_eq!((again.messages(), again.about()), (one.messages(), about));

        let tree = MessageTree::new(one.messages());
        let ids = |branch: Vec<&SessionMessage>| branch.iter().map(|message| message.id.0).collect::<Vec<_>>();
        assert_eq!(ids(tree.branch_to(MessageId(4))), [1, 2, 4]);
        assert_eq!(tree.branch_ends(), [MessageId(4), MessageId(3)]);
        assert_eq!(tree.last_shared_message(MessageId(4), MessageId(3)), Some(MessageId(1)));
        assert_eq!(tree.newest_end_below(MessageId(1)), MessageId(4));
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let tree = MessageTree::new(vec![message(1, Some(2)), message(2, Some(1))]);
        assert_eq!(tree.branch_to(MessageId(1)).len(), 2);
        assert_eq!(tree.newest_end_below(MessageId(1)), MessageId(2));
    }
}
