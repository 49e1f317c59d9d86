//! The handshake between two peers: their ids and the protocol version.

use super::{LinkId, PeersOutput, SyncPeers};
use crate::sync::wire::{self, PeerId, PeerMetadata, WireMessage};

impl SyncPeers {
    /// Handles a `Join` or `Peer` message.
    pub(super) fn on_greeting(&mut self, link: LinkId, message: WireMessage) {
        let Some(peer) = self.links.get(&link) else { return };
        let (dialed, again) = (peer.dialed, peer.id.is_some());
        if again {
            return self.fail_link(link, "it greeted twice");
        }
        match message {
            WireMessage::Join { sender, versions, metadata } if !dialed => {
                if !versions.iter().any(|version| version == wire::PROTOCOL_VERSION) {
                    return self.fail_link(
                        link,
                        &format!("it does not speak version {} of the protocol", wire::PROTOCOL_VERSION),
                    );
                }
                if self.is_expected(link, &sender) {
                    let (me, ours) = (self.me.clone(), self.metadata.clone());
                    let version = wire::PROTOCOL_VERSION.to_owned();
                    let answer = WireMessage::Peer { sender: me, target: sender.clone(), version, metadata: ours };
                    self.send(link, &answer);
                    self.accept_peer(link, sender, metadata);
                }
            }
            WireMessage::Peer { sender, version, metadata, .. } if dialed => {
                if version != wire::PROTOCOL_VERSION {
                    return self.fail_link(link, &format!("it chose version {version} of the protocol"));
                }
                if self.is_expected(link, &sender) {
                    self.accept_peer(link, sender, metadata);
                }
            }
            _ => self.fail_link(link, "it greeted out of turn"),
        }
    }

    fn is_expected(&mut self, link: LinkId, sender: &PeerId) -> bool {
        let expected = self.links.get(&link).and_then(|peer| peer.expected.clone());
        let why = match expected {
            Some(expected) if expected != *sender => format!("it is {expected} and claims to be {sender}"),
            _ if *sender == self.me => "it calls itself as we do".to_owned(),
            _ => return true,
        };
        self.fail_link(link, &why);
        false
    }

    fn accept_peer(&mut self, link: LinkId, id: PeerId, metadata: PeerMetadata) {
        // A peer that connects again has lost its old connection, even if that isn't detected here yet.
        let old: Vec<LinkId> =
            self.links.iter().filter(|(_, peer)| peer.id.as_ref() == Some(&id)).map(|(link, _)| *link).collect();
        for old in old {
            self.close_link(old, "the same peer has connected again");
        }
        let Some(peer) = self.links.get_mut(&link) else { return };
        peer.id = Some(id.clone());
        peer.metadata = metadata.clone();
        let wanted = std::mem::take(&mut peer.pending_docs);
        let scopes = std::mem::take(&mut peer.scopes.pending);
        self.outputs.push_back(PeersOutput::Greeted { link, peer: id, metadata });
        for doc in wanted {
            self.follow(link, doc);
        }
        for (scope, docs) in scopes {
            self.follow_volume(link, scope, docs);
        }
    }
}
