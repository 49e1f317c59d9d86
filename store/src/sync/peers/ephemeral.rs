//! Ephemeral messages, which aren't stored: carets and running cells.

use super::{DocumentAccess, LinkId, PeersOutput, SyncPeers};
use crate::id::DocId;
use crate::sync::wire::{PeerId, WireMessage};
use std::collections::BTreeMap;

/// Maximum number of sessions whose last message number is remembered.
const MAX_HEARD_SESSIONS: usize = 10_000;
/// Maximum size of an ephemeral message in bytes.
const MAX_EPHEMERAL_BYTES: usize = 64 << 10;

/// The messages already received, because the same message may arrive over several paths.
#[derive(Default)]
pub(super) struct HeardMessages {
    heard: BTreeMap<(PeerId, String), u64>,
    count: u64,
}

impl HeardMessages {
    /// Returns whether a message is new, and remembers it.
    fn is_new(&mut self, sender: &PeerId, session: &str, count: u64) -> bool {
        if self.heard.len() >= MAX_HEARD_SESSIONS {
            self.heard.clear(); // at worst something is heard twice
        }
        let last = self.heard.entry((sender.clone(), session.to_owned())).or_default();
        let new = count > *last;
        *last = count.max(*last);
        new
    }
}

impl SyncPeers {
    /// Sends an ephemeral message to all peers that sync this document. `session` identifies this run of the program;
    /// `data` is CBOR.
    pub fn broadcast(&mut self, doc: DocId, session: &str, data: &[u8]) {
        self.heard_messages.count += 1;
        let (sender, count) = (self.me.clone(), self.heard_messages.count);
        self.forward(doc, &(sender, session.to_owned(), count), data, None);
    }

    /// Returns a peer's access to a document.
    pub fn access(&self, link: LinkId, doc: DocId) -> DocumentAccess {
        self.links.get(&link).map_or(DocumentAccess::None, |peer| (peer.share)(doc))
    }

    /// Whether any peer that completed the handshake would receive ephemeral messages.
    pub fn has_listeners(&self) -> bool {
        self.links.values().any(|peer| peer.id.is_some())
    }

    pub(super) fn on_ephemeral(&mut self, link: LinkId, doc: DocId, by: (PeerId, String, u64), data: Vec<u8>) {
        let Some(peer) = self.links.get(&link) else { return };
        if data.len() > MAX_EPHEMERAL_BYTES || by.0 == self.me || (peer.share)(doc) == DocumentAccess::None {
            return;
        }
        if self.heard_messages.is_new(&by.0, &by.1, by.2) {
            self.forward(doc, &by, &data, Some(link));
            self.outputs.push_back(PeersOutput::Ephemeral { link, doc, from: by.0, data });
        }
    }

    fn forward(&mut self, doc: DocId, by: &(PeerId, String, u64), data: &[u8], but: Option<LinkId>) {
        let followers = self.followers.get(&doc).into_iter().flatten().copied();
        let links: Vec<LinkId> = followers.chain(self.quiet_links(doc)).collect();
        for link in links.into_iter().filter(|link| Some(*link) != but) {
            let Some(target) = self.peer_id(link).filter(|id| **id != by.0).cloned() else { continue };
            let (sender, session, count) = by.clone();
            self.send(link, &WireMessage::Ephemeral { sender, target, count, session, doc, data: data.to_vec() });
        }
    }
}
