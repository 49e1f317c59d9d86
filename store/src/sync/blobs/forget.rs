//! Forgets files of saved states: a device that no longer shares them asks the peers that store blobs to delete
//! them.
//!
//! Only what came as the file of a state can be deleted, at the request of a peer that may change its volume. A blob
//! that any device has offered as an attachment or output stays. A device that still shares a deleted file learns of
//! it and offers it again. Peers of version 1 never get these messages.

use super::codec::{BlobMessage, BlobRefusal, MAX_NAMED_BLOBS};
use super::{BlobCommand, BlobPeer, BlobTransfers, PeerRights, VolumeBlob};
use crate::sync::peers::{DocumentAccess, LinkId};
use std::collections::BTreeSet;

/// First version of the protocol in which files of states can be forgotten.
const FORGETTING_VERSION: u64 = 2;

impl BlobPeer {
    /// Whether the peer stores blobs, and deletes files of states on request.
    pub(super) fn forgets_states(&self) -> bool {
        self.keeper && self.version >= FORGETTING_VERSION
    }
}

impl BlobTransfers {
    /// Sets the version that a connected peer announced. Without this call, it counts as the oldest one.
    pub fn set_peer_version(&mut self, link: LinkId, version: u64, may: PeerRights<'_>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        side.version = version;
        if side.forgets_states() {
            let shared = |item: &&VolumeBlob| may(link, item.volume) != DocumentAccess::None;
            side.to_forget = self.withdrawn.iter().filter(shared).copied().collect();
        }
    }

    /// Sets which blobs are here as files of states only. Call it before [`BlobTransfers::add_held`] adds them.
    pub fn set_state_files(&mut self, items: BTreeSet<VolumeBlob>, may: PeerRights<'_>) {
        let before = std::mem::replace(&mut self.state_files, items);
        // What is an attachment from now on must not be forgotten, so it's offered as one.
        let kept: Vec<VolumeBlob> = before
            .into_iter()
            .filter(|item| !self.state_files.contains(item) && self.held.contains_key(item))
            .collect();
        for (link, side) in self.links.iter_mut().filter(|(_, side)| side.forgets_states()) {
            side.to_offer.extend(kept.iter().filter(|item| may(*link, item.volume) != DocumentAccess::None));
        }
    }

    /// Sets the files of states that this device has offered and no longer shares. Peers that store blobs are
    /// asked to forget them, each one once while it's connected, and again after it reconnects.
    pub fn set_withdrawn(&mut self, items: BTreeSet<VolumeBlob>, may: PeerRights<'_>) {
        let new: Vec<VolumeBlob> = items.difference(&self.withdrawn).copied().collect();
        for (link, side) in self.links.iter_mut().filter(|(_, side)| side.forgets_states() && !side.is_banned) {
            side.to_forget.retain(|item| items.contains(item));
            side.to_forget.extend(new.iter().filter(|item| may(*link, item.volume) != DocumentAccess::None));
        }
        self.withdrawn = items;
    }

    /// Returns how many files this peer must still be asked to forget, or hasn't answered for.
    pub fn forget_count(&self, link: LinkId) -> usize {
        self.links.get(&link).map_or(0, |side| side.to_forget.len() + side.unanswered_forgets.len())
    }

    /// Asks a peer to forget withdrawn files, a limited number at a time.
    pub(super) fn send_forgets(&mut self, link: LinkId) {
        while let Some(side) = self.links.get_mut(&link).filter(|side| side.unanswered_forgets.len() < MAX_NAMED_BLOBS)
        {
            let Some(item) = side.to_forget.pop_first() else { return };
            if self.held.contains_key(&item) {
                continue; // it's shared again
            }
            side.unanswered_forgets.insert(item);
            self.send_message(link, &BlobMessage::Forget(item));
        }
    }

    /// Handles a peer's message that it has forgotten a file.
    pub(super) fn on_forgotten(&mut self, link: LinkId, item: VolumeBlob) {
        let Some(side) = self.links.get_mut(&link) else { return };
        if side.unanswered_forgets.remove(&item) {
            self.commands.push_back(BlobCommand::Forgotten { link, item });
        }
    }

    /// Handles a peer's request to forget the file of a state.
    pub(super) fn on_forget(&mut self, link: LinkId, item: VolumeBlob, may: PeerRights<'_>) {
        if !self.is_keeper {
            return;
        }
        if may(link, item.volume) != DocumentAccess::Write {
            self.log_once(link, "it asks to delete variables of a volume that it may not change: they stay");
            return self.send_message(link, &BlobMessage::Refuse(item, BlobRefusal::ReadOnly));
        }
        let is_coming = self.wanted.get(&item).is_some_and(|wish| wish.is_state);
        let Some(side) = self.links.get_mut(&link) else { return };
        if side.removals.len() >= 2 * MAX_NAMED_BLOBS {
            return self.ban_peer(link, "it asks to delete too many files at once; files are not exchanged", may);
        }
        if !side.removals.insert(item) {
            return;
        }
        if is_coming {
            // Its own upload ends. That of another device, which still shares the file, continues.
            side.offers.remove(&item);
            self.drop_source(item, link, may);
        }
        self.commands.push_back(BlobCommand::Remove { link, item });
    }

    /// Handles the result of [`BlobCommand::Remove`]: whether a complete file was removed, or `None` if that failed.
    /// The peer then asks again after it reconnects.
    pub fn on_removed(&mut self, link: LinkId, item: VolumeBlob, removed: Option<bool>, may: PeerRights<'_>) {
        if let Some(side) = self.links.get_mut(&link) {
            side.removals.remove(&item);
        }
        let answer = match removed {
            None => BlobMessage::Refuse(item, BlobRefusal::NoRoom),
            Some(was_here) => {
                if was_here {
                    self.announce_loss(item, may);
                }
                BlobMessage::Forgotten(item)
            }
        };
        self.send_message(link, &answer);
    }
}
