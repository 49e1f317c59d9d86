//! Fetches blobs: decides which pieces are requested from which peer, and handles the answers.

use super::codec::{BlobMessage, BlobRefusal};
use super::{
    ANSWER_TIMEOUT_MS, BLOB_WRITE_RETRY_MS, BlobCommand, BlobExtent, BlobOrigin, BlobTransfers, CheckOutcome,
    FAST_PIECE_MS, PIECE_BYTES, PeerRights, SLOW_PIECE_MS, TransferPhase, VolumeBlob, WantedBlob, piece_len,
};
use crate::id::{BlobHash, DocId};
use crate::sync::peers::{DocumentAccess, LinkId};
use crate::sync::wire::PeerId;
use std::collections::BTreeSet;

impl BlobTransfers {
    /// Requests a blob from any peer that has it. `size` is its size in bytes, if known. `urgent` means that the user
    /// is looking at the place where it's shown.
    pub fn want(&mut self, item: VolumeBlob, size: Option<u64>, urgent: bool, may: PeerRights<'_>) {
        if size.is_some_and(|size| size > self.limits.max_blob_bytes) || self.wanted.len() >= self.limits.max_blobs {
            return;
        }
        let known = self.wanted.get_mut(&item);
        if known.as_ref().is_some_and(|wish| wish.urgent || !urgent) {
            return; // those that may have it are to be asked already
        }
        match known {
            Some(wish) => wish.urgent = true,
            None => {
                let wish = WantedBlob {
                    size,
                    urgent,
                    phase: TransferPhase::New,
                    received: 0,
                    requested: 0,
                    source: None,
                    origin: BlobOrigin::Nobody,
                    is_state: false,
                };
                self.wanted.insert(item, wish);
            }
        }
        self.request_from_all(item, may);
    }

    /// Cancels a request.
    pub fn cancel_want(&mut self, item: VolumeBlob) {
        if let Some(wish) = self.wanted.remove(&item)
            && let Some(side) = wish.source.and_then(|link| self.links.get_mut(&link))
        {
            side.active.remove(&item);
        }
    }

    /// Returns how many blobs of these volumes are wanted, and how many of them may still come over these connections.
    pub fn wanted_counts(&self, volumes: &BTreeSet<DocId>, links: &[LinkId]) -> (usize, usize) {
        let wanted = || self.wanted.keys().filter(|item| volumes.contains(&item.volume));
        let sides = || links.iter().filter_map(|link| self.links.get(link)).filter(|side| !side.is_banned);
        let may_come = |item: &&VolumeBlob| {
            sides().any(|side| !side.lacks.contains(item) && !self.is_bad_source(&side.peer, item))
        };
        (wanted().count(), wanted().filter(may_come).count())
    }

    /// Returns whether a connected peer may still give this blob.
    pub fn may_come(&self, item: &VolumeBlob, may: PeerRights<'_>) -> bool {
        self.links.iter().any(|(link, side)| {
            let gives = !side.is_banned && !side.lacks.contains(item) && !self.is_bad_source(&side.peer, item);
            gives && may(*link, item.volume) != DocumentAccess::None
        })
    }

    pub(super) fn is_bad_source(&self, peer: &PeerId, item: &VolumeBlob) -> bool {
        self.bad_sources.get(peer).is_some_and(|bad| bad.contains(item))
    }

    /// Handles a peer's offer of blobs: their volume, and whether they are files of states.
    pub(super) fn on_offer(
        &mut self,
        link: LinkId,
        (volume, is_state): (DocId, bool),
        blobs: &[(BlobHash, u64)],
        may: PeerRights<'_>,
    ) {
        let access = may(link, volume);
        if access == DocumentAccess::None {
            return self.log_once(link, "it speaks of pictures of a volume that is not shared with it");
        }
        // A reader's word makes nothing an attachment, because it may change nothing of the volume.
        let is_state = is_state || (self.is_keeper && access != DocumentAccess::Write);
        for (hash, size) in blobs {
            let item = VolumeBlob { volume, hash: *hash };
            if self.is_keeper {
                let waiting = self.offers.entry(item).or_default();
                // An attachment stays, even if it's here as the file of a state, so it's looked for as an attachment.
                let is_looked_for =
                    if is_state { !waiting.is_empty() } else { waiting.values().any(|(_, is_state)| !is_state) };
                if !is_looked_for {
                    self.commands.push_back(BlobCommand::Probe { item, keeps: !is_state });
                }
                waiting.insert(link, (*size, is_state));
                continue;
            }
            let Some(side) = self.links.get_mut(&link) else { return };
            side.offered.remove(&item);
            side.to_offer.remove(&item);
            side.lacks.remove(&item);
            if self.wanted.contains_key(&item) {
                self.request_from(link, item);
            }
        }
    }

    /// Handles a received piece.
    pub(super) fn on_piece(
        &mut self,
        link: LinkId,
        (item, offset, size): (VolumeBlob, u64, u64),
        bytes: &[u8],
        now: i64,
        may: PeerRights<'_>,
    ) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let Some(asked) = side.in_flight.remove(&(item, offset)) else {
            return self.ban_peer(link, "it sends pictures that nobody asked for; they are not exchanged with it", may);
        };
        side.window = match now - asked {
            ..FAST_PIECE_MS => (side.window + 1).min(self.limits.max_pieces),
            SLOW_PIECE_MS.. => (side.window / 2).max(1),
            _ => side.window,
        };
        let Some(wish) = self.wanted.get_mut(&item) else { return };
        if wish.source != Some(link) || wish.phase != TransferPhase::Open {
            return; // it was let go meanwhile
        }
        let fits = wish.size.is_none_or(|known| known == size) && size <= self.limits.max_blob_bytes;
        if !fits || offset != wish.received || bytes.len() as u64 != piece_len(size, offset) {
            self.log_once(link, "it has something else under the name of a picture; it is not asked for it again");
            return self.mark_bad_source(link, item, may);
        }
        wish.size = Some(size);
        wish.received += bytes.len() as u64;
        wish.origin = match wish.origin {
            BlobOrigin::Nobody => BlobOrigin::One(link),
            BlobOrigin::One(one) if one == link => BlobOrigin::One(one),
            BlobOrigin::One(_) | BlobOrigin::Several => BlobOrigin::Several,
        };
        self.commands.push_back(BlobCommand::Write { item, offset, bytes: bytes.to_vec(), link });
        if wish.received == size {
            wish.phase = TransferPhase::Checking;
            let is_state = wish.is_state;
            self.commands.push_back(BlobCommand::Check { item, is_state });
        }
        if let Some(side) = self.links.get_mut(&link).filter(|_| self.is_keeper) {
            side.quota_bytes = side.quota_bytes.saturating_sub(bytes.len() as u64);
        }
    }

    /// Handles the result of [`BlobCommand::Probe`].
    pub fn on_probed(&mut self, item: VolumeBlob, found: BlobExtent, may: PeerRights<'_>) {
        for (link, offer) in self.offers.remove(&item).unwrap_or_default() {
            self.answer_offer(link, item, offer, found, may);
        }
        if let BlobExtent::Whole(size) = found {
            self.announce_to_waiting(item, size); // it could not be read before
        }
        let Some(wish) = self.wanted.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Looking) else { return };
        match found {
            BlobExtent::Whole(size) => {
                wish.size = Some(size);
                self.finish_blob(item, may);
            }
            BlobExtent::Part(bytes) => {
                // Continue at the start of a piece. The last piece is fetched again even if it's there, because a
                // complete blob would have been checked.
                let most = wish.size.unwrap_or(bytes).saturating_sub(1);
                let bytes = bytes.min(most) / PIECE_BYTES * PIECE_BYTES;
                (wish.received, wish.requested, wish.phase) = (bytes, bytes, TransferPhase::Open);
                wish.origin = if bytes == 0 { BlobOrigin::Nobody } else { BlobOrigin::Several };
            }
        }
    }

    /// Accepts or refuses an offered blob (its size, and whether it's the file of a state), now that it's known how
    /// much of it is here.
    pub(super) fn answer_offer(
        &mut self,
        link: LinkId,
        item: VolumeBlob,
        (size, is_state): (u64, bool),
        found: BlobExtent,
        may: PeerRights<'_>,
    ) {
        if matches!(found, BlobExtent::Whole(_)) {
            return self.send_message(link, &BlobMessage::Have(item.volume, vec![(item.hash, size)]));
        }
        let promised: u64 = {
            let of = |wish: &&WantedBlob| wish.source == Some(link);
            self.wanted.values().filter(of).map(|wish| wish.size.unwrap_or(0).saturating_sub(wish.received)).sum()
        };
        let Some(side) = self.links.get_mut(&link) else { return };
        let why = if may(link, item.volume) != DocumentAccess::Write {
            Some(BlobRefusal::ReadOnly)
        } else if size > self.limits.max_blob_bytes {
            Some(BlobRefusal::TooLarge)
        } else if side.offers.len() >= self.limits.max_blobs || size > side.quota_bytes.saturating_sub(promised) {
            Some(BlobRefusal::NoRoom)
        } else {
            None
        };
        if let Some(why) = why {
            self.log_once(
                link,
                match why {
                    BlobRefusal::ReadOnly => "it brings pictures to a volume that it may only read: they are not taken",
                    BlobRefusal::NoRoom => "it brings a picture for which no room is left: it is not taken",
                    BlobRefusal::TooLarge => "it brings a file that is too large: it is not taken",
                },
            );
            return self.send_message(link, &BlobMessage::Refuse(item, why));
        }
        side.offers.insert(item);
        side.lacks.remove(&item); // it may have it again
        let is_new = !self.wanted.contains_key(&item);
        self.want(item, Some(size), false, may);
        if let Some(wish) = self.wanted.get_mut(&item) {
            wish.is_state = is_state && (is_new || wish.is_state); // an attachment stays one, whatever others call it
        }
        self.request_from(link, item);
    }

    /// Handles a failed [`BlobCommand::Write`], [`BlobCommand::Probe`], or [`BlobCommand::Read`] of an existing blob:
    /// it's retried later.
    pub fn on_failed(&mut self, item: VolumeBlob, now: i64, may: PeerRights<'_>) {
        self.pause_blob(item, now, may);
    }

    /// Handles the result of [`BlobCommand::Check`].
    pub fn on_checked(&mut self, item: VolumeBlob, checked: &CheckOutcome, now: i64, may: PeerRights<'_>) {
        let Some(wish) = self.wanted.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Checking) else {
            return;
        };
        match checked {
            CheckOutcome::Good => self.finish_blob(item, may),
            CheckOutcome::Failed(_) => self.pause_blob(item, now, may),
            CheckOutcome::Bad => {
                let (origin, source) = (wish.origin, wish.source);
                (wish.received, wish.requested, wish.phase, wish.origin) =
                    (0, 0, TransferPhase::Open, BlobOrigin::Nobody);
                match (origin, source) {
                    (BlobOrigin::One(link), _) if self.links.contains_key(&link) => {
                        self.log_once(
                            link,
                            "it sent something else under the name of a picture; it is not asked again",
                        );
                        self.mark_bad_source(link, item, may);
                    }
                    // It's unknown whose bytes were wrong: start again, from one peer only.
                    (_, Some(link)) => self.drop_source(item, link, may),
                    (_, None) => self.request_from_all(item, may),
                }
            }
        }
    }

    pub(super) fn give_up_overdue(&mut self, link: LinkId, now: i64, may: PeerRights<'_>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let late: BTreeSet<VolumeBlob> = side
            .in_flight
            .iter()
            .filter(|(_, at)| now - **at > ANSWER_TIMEOUT_MS)
            .map(|((item, _), _)| *item)
            .collect();
        for item in late {
            if let Some(side) = self.links.get_mut(&link) {
                side.in_flight.retain(|(of, _), _| *of != item);
                side.lacks.insert(item);
            }
            self.drop_source(item, link, may);
        }
    }

    pub(super) fn request_pieces(&mut self, link: LinkId, now: i64, may: PeerRights<'_>) {
        loop {
            let Some(side) = self.links.get_mut(&link).filter(|side| side.in_flight.len() < side.window) else {
                return;
            };
            let more = side.active.iter().copied().find(|item| {
                let wish = self.wanted.get(item);
                wish.is_some_and(|wish| {
                    wish.phase == TransferPhase::Open
                        && match wish.size {
                            Some(0) => wish.requested == 0,
                            Some(size) => wish.requested < size,
                            // The size is unknown until the first piece arrives.
                            None => wish.requested == wish.received,
                        }
                })
            });
            if let Some(item) = more {
                let Some(wish) = self.wanted.get_mut(&item) else { return };
                let offset = wish.requested;
                wish.requested = offset + piece_len(wish.size.unwrap_or(u64::MAX), offset).max(1);
                side.in_flight.insert((item, offset), now);
                self.send_message(link, &BlobMessage::Want(item, offset));
                continue;
            }
            if side.active.len() >= self.limits.max_active {
                return;
            }
            let Some((_, item)) = side.to_request.pop_first() else { return };
            let Some(wish) = self.wanted.get_mut(&item) else { continue };
            let takes = matches!(wish.phase, TransferPhase::New | TransferPhase::Open);
            if !takes || wish.source.is_some() || may(link, item.volume) == DocumentAccess::None {
                continue;
            }
            wish.source = Some(link);
            side.active.insert(item);
            wish.requested = wish.received;
            if wish.phase == TransferPhase::New {
                wish.phase = TransferPhase::Looking;
                let keeps = !wish.is_state;
                self.commands.push_back(BlobCommand::Probe { item, keeps });
            }
        }
    }

    /// Handles a complete, checked blob that was stored by another program with access to the same store.
    pub fn on_stored_elsewhere(&mut self, item: VolumeBlob, size: u64, may: PeerRights<'_>) {
        if self.wanted.contains_key(&item) {
            self.finish_blob(item, may);
        }
        self.announce_to_waiting(item, size);
    }

    /// Handles a blob that is now here and checked.
    pub(super) fn finish_blob(&mut self, item: VolumeBlob, may: PeerRights<'_>) {
        let Some(wish) = self.wanted.remove(&item) else { return };
        for side in self.links.values_mut() {
            side.active.remove(&item);
            side.lacks.remove(&item);
        }
        let size = wish.size.unwrap_or_default(); // known by now
        self.commands.push_back(BlobCommand::Arrived { item, size });
        if !self.is_keeper {
            self.add_held(item, size, may);
            // The peer that sent it already has it, and a state is offered only by devices that share it.
            let is_state = self.state_files.contains(&item);
            for (_, side) in self.links.iter_mut().filter(|(link, _)| is_state || wish.source == Some(**link)) {
                side.to_offer.remove(&item);
            }
            return;
        }
        let gave: Vec<LinkId> =
            self.links.iter().filter(|(_, side)| side.offers.contains(&item)).map(|(at, _)| *at).collect();
        for link in gave {
            if let Some(side) = self.links.get_mut(&link) {
                side.offers.remove(&item);
            }
            self.send_message(link, &BlobMessage::Have(item.volume, vec![(item.hash, size)]));
        }
        self.announce_to_waiting(item, size);
    }

    /// Stops fetching a blob from this peer, and requests it from others if there are any.
    pub(super) fn drop_source(&mut self, item: VolumeBlob, link: LinkId, may: PeerRights<'_>) {
        if let Some(side) = self.links.get_mut(&link) {
            side.active.remove(&item);
            if side.lacks.contains(&item) {
                side.offers.remove(&item);
            }
        }
        let Some(wish) = self.wanted.get_mut(&item) else { return };
        if wish.source == Some(link) {
            wish.source = None;
            wish.requested = wish.received;
            if wish.phase == TransferPhase::Looking {
                wish.phase = TransferPhase::New;
            }
        }
        let unwanted = self.is_keeper
            && wish.source.is_none()
            && wish.phase != TransferPhase::Checking
            && !self.links.values().any(|side| side.offers.contains(&item));
        if unwanted {
            self.wanted.remove(&item); // what has come of it stays, should somebody bring the rest
            return;
        }
        self.request_from_all(item, may);
    }

    /// Records that this peer sent wrong bytes for a blob. It isn't asked for this blob again.
    pub(super) fn mark_bad_source(&mut self, link: LinkId, item: VolumeBlob, may: PeerRights<'_>) {
        if let Some(side) = self.links.get_mut(&link) {
            if self.bad_sources.len() >= self.limits.max_blobs {
                self.bad_sources.clear(); // at worst somebody is asked once more
            }
            let bad = self.bad_sources.entry(side.peer.clone()).or_default();
            if bad.len() < self.limits.max_blobs {
                bad.insert(item);
            }
            side.lacks.insert(item);
        }
        self.drop_source(item, link, may);
    }

    pub(super) fn pause_blob(&mut self, item: VolumeBlob, now: i64, may: PeerRights<'_>) {
        if self.is_awaited(item) || self.wanted.contains_key(&item) {
            self.paused.insert(item, now + BLOB_WRITE_RETRY_MS);
        }
        let Some(wish) = self.wanted.get_mut(&item) else { return };
        wish.phase = TransferPhase::Paused;
        if let Some(link) = wish.source {
            self.drop_source(item, link, may);
        }
    }

    /// Whether a peer waits for a blob: it offered the blob without an answer yet, or requested it while it wasn't
    /// here.
    fn is_awaited(&self, item: VolumeBlob) -> bool {
        self.offers.get(&item).is_some_and(|links| !links.is_empty())
            || self.links.values().any(|side| side.unmet_requests.contains(&item))
    }

    /// Retries blobs whose disk operation failed.
    pub(super) fn resume_paused(&mut self, now: i64, may: PeerRights<'_>) {
        let due: Vec<VolumeBlob> = self.paused.iter().filter(|(_, at)| **at <= now).map(|(item, _)| *item).collect();
        for item in due {
            self.paused.remove(&item);
            if let Some(wish) = self.wanted.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Paused) {
                wish.phase = TransferPhase::New;
            }
            if self.is_awaited(item) {
                let offered = self.offers.get(&item);
                let keeps = offered.is_some_and(|links| links.values().any(|(_, is_state)| !is_state));
                self.commands.push_back(BlobCommand::Probe { item, keeps });
            }
            self.request_from_all(item, may);
        }
    }

    pub(super) fn request_from_all(&mut self, item: VolumeBlob, may: PeerRights<'_>) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            if may(link, item.volume) != DocumentAccess::None {
                self.request_from(link, item);
            }
        }
    }

    /// Queues a request for a blob to this peer, if the peer may have it.
    pub(super) fn request_from(&mut self, link: LinkId, item: VolumeBlob) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let gives = !self.is_keeper || side.offers.contains(&item);
        if side.is_banned || !gives || side.lacks.contains(&item) {
            return;
        }
        if self.bad_sources.get(&side.peer).is_some_and(|bad| bad.contains(&item)) {
            return;
        }
        let Some(wish) = self.wanted.get(&item) else { return };
        side.to_request.insert((!wish.urgent, item));
    }
}
