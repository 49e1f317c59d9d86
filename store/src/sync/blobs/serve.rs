//! Serves blobs: offers them to peers that store blobs, and sends the pieces that peers request.

use super::codec::{BlobMessage, MAX_NAMED_BLOBS};
use super::{BlobCommand, BlobTransfers, PeerRights, VolumeBlob};
use crate::sync::peers::{DocumentAccess, LinkId};

impl BlobTransfers {
    /// Adds a blob that's here and belongs to its volume.
    pub fn add_held(&mut self, item: VolumeBlob, size: u64, may: PeerRights<'_>) {
        if self.held.insert(item, size).is_some() {
            return;
        }
        self.cancel_want(item);
        self.announce_to_waiting(item, size);
        for (link, side) in self.links.iter_mut().filter(|(_, side)| side.keeper) {
            if may(*link, item.volume) != DocumentAccess::None {
                side.to_offer.insert(item);
            }
        }
    }

    /// Removes a blob that's no longer here.
    pub fn remove_held(&mut self, item: VolumeBlob) {
        self.held.remove(&item);
        for side in self.links.values_mut() {
            side.to_offer.remove(&item);
            side.offered.remove(&item);
        }
    }

    /// Returns how many blobs are still to be offered or sent to this peer, and how many it has refused.
    pub fn offer_counts(&self, link: LinkId) -> (usize, usize) {
        self.links.get(&link).map_or((0, 0), |side| (side.to_offer.len() + side.offered.len(), side.refused))
    }

    /// Whether peers are waiting for pieces.
    pub fn has_requests(&self) -> bool {
        self.links.values().any(|side| !side.requests.is_empty() && !side.is_reading)
    }

    /// Queues a peer's request for a piece. Access is checked when the request is answered.
    pub(super) fn on_request(&mut self, link: LinkId, item: VolumeBlob, offset: u64, may: PeerRights<'_>) {
        if may(link, item.volume) == DocumentAccess::None {
            self.log_once(link, "it asks for a picture that is not shared with it");
        }
        let Some(side) = self.links.get_mut(&link) else { return };
        if side.requests.len() >= 2 * self.limits.max_pieces {
            return self.ban_peer(link, "it asks for too many pieces of pictures at once; they go no more", may);
        }
        side.requests.push_back((item, offset));
    }

    /// Handles the result of [`BlobCommand::Read`]: the blob's size and the piece, or `None` if it isn't here.
    pub fn on_read(&mut self, link: LinkId, item: VolumeBlob, offset: u64, found: Option<(u64, Vec<u8>)>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        side.is_reading = false;
        match found {
            Some((size, bytes)) => self.send_message(link, &BlobMessage::Piece(item, offset, size, &bytes)),
            None => {
                // It was moved: the caller reports its new place, and it's offered again.
                self.remove_held(item);
                self.send_lack(link, item);
            }
        }
    }

    /// Answers a peer's requests, one piece at a time.
    pub(super) fn serve_requests(&mut self, link: LinkId, may: PeerRights<'_>, is_idle: bool) {
        while let Some(side) = self.links.get_mut(&link).filter(|side| is_idle && !side.is_reading) {
            let Some((item, offset)) = side.requests.pop_front() else { return };
            if may(link, item.volume) == DocumentAccess::None || (!self.is_keeper && !self.held.contains_key(&item)) {
                self.send_lack(link, item);
                continue;
            }
            side.is_reading = true;
            self.commands.push_back(BlobCommand::Read { link, item, offset });
        }
    }

    /// Reports that a complete blob was lost, so that peers that have it send it again.
    pub fn announce_loss(&mut self, item: VolumeBlob, may: PeerRights<'_>) {
        let links: Vec<LinkId> =
            self.links.keys().copied().filter(|link| may(*link, item.volume) != DocumentAccess::None).collect();
        links.into_iter().for_each(|link| self.send_message(link, &BlobMessage::Lack(item)));
    }

    /// Handles a peer's message that it lacks a blob. If the peer stores blobs, the blob is offered to it, since the
    /// peer may have had it before.
    pub(super) fn on_lack(&mut self, link: LinkId, item: VolumeBlob, may: PeerRights<'_>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let goes = side.keeper && self.held.contains_key(&item) && may(link, item.volume) != DocumentAccess::None;
        if goes && !side.offered.contains(&item) {
            side.to_offer.insert(item);
        }
    }

    pub(super) fn send_lack(&mut self, link: LinkId, item: VolumeBlob) {
        if let Some(side) = self.links.get_mut(&link) {
            // After this message the peer expects no more pieces of this blob, and would treat one as a violation.
            side.requests.retain(|(of, _)| *of != item);
            if side.unmet_requests.len() < self.limits.max_blobs {
                side.unmet_requests.insert(item);
            }
        }
        self.send_message(link, &BlobMessage::Lack(item));
    }

    /// Offers blobs to a peer that stores them, a limited number at a time.
    pub(super) fn send_offers(&mut self, link: LinkId) {
        while let Some(side) = self.links.get_mut(&link).filter(|side| side.offered.len() < MAX_NAMED_BLOBS) {
            let Some(first) = side.to_offer.first().copied() else { return };
            let count = MAX_NAMED_BLOBS - side.offered.len();
            // An older peer gets them as any other blob, and never forgets them.
            let is_state = |item: &VolumeBlob| side.forgets_states() && self.state_files.contains(item);
            let is_first_state = is_state(&first);
            let next = side.to_offer.iter().take_while(|item| item.volume == first.volume);
            let next = next.filter(|item| is_state(item) == is_first_state).take(count);
            let next: Vec<VolumeBlob> = next.copied().collect();
            let mut named = Vec::new();
            for item in next {
                side.to_offer.remove(&item);
                if let Some(size) = self.held.get(&item) {
                    side.offered.insert(item);
                    named.push((item.hash, *size));
                }
            }
            if !named.is_empty() {
                let message = match is_first_state {
                    true => BlobMessage::HaveStates(first.volume, named),
                    false => BlobMessage::Have(first.volume, named),
                };
                self.send_message(link, &message);
            }
        }
    }

    /// Offers a blob to the peers that requested it while it wasn't here.
    pub(super) fn announce_to_waiting(&mut self, item: VolumeBlob, size: u64) {
        let waits: Vec<LinkId> =
            self.links.iter().filter(|(_, side)| side.unmet_requests.contains(&item)).map(|(at, _)| *at).collect();
        for link in waits {
            if let Some(side) = self.links.get_mut(&link) {
                side.unmet_requests.remove(&item);
            }
            self.send_message(link, &BlobMessage::Have(item.volume, vec![(item.hash, size)]));
        }
    }
}
