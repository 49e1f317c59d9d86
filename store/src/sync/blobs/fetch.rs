//! What is wanted of others: who is asked for it, a few pieces at a time, and what becomes of what comes.

use super::word::{BlobMessage, BlobRefusal};
use super::{
    ANSWER_TIMEOUT_MS, BLOB_WRITE_RETRY_MS, BlobCommand, BlobExtent, BlobOrigin, BlobTransfers, CheckOutcome, LATE,
    PIECE, PeerRights, SOON, TransferPhase, VolumeBlob, WantedBlob, piece,
};
use crate::id::{BlobHash, DocId};
use crate::sync::peers::{DocumentAccess, LinkId};
use crate::sync::wire::PeerId;
use std::collections::BTreeSet;

impl BlobTransfers {
    /// This is wanted from whoever has it. `size`: how many bytes it has, if that is known. `urgent`: somebody looks at
    /// where it belongs.
    pub fn want(&mut self, item: VolumeBlob, size: Option<u64>, urgent: bool, may: PeerRights<'_>) {
        if size.is_some_and(|size| size > self.limits.largest) || self.wishes.len() >= self.limits.items {
            return;
        }
        let known = self.wishes.get_mut(&item);
        if known.as_ref().is_some_and(|wish| wish.urgent || !urgent) {
            return; // those that may have it are to be asked already
        }
        match known {
            Some(wish) => wish.urgent = true,
            None => {
                let (phase, origin) = (TransferPhase::New, BlobOrigin::Nobody);
                self.wishes.insert(item, WantedBlob { size, urgent, phase, got: 0, next: 0, source: None, origin });
            }
        }
        self.ask_around(item, may);
    }

    /// It is not wanted any more.
    pub fn unwant(&mut self, item: VolumeBlob) {
        if let Some(wish) = self.wishes.remove(&item)
            && let Some(side) = wish.source.and_then(|link| self.links.get_mut(&link))
        {
            side.active.remove(&item);
        }
    }

    /// How many are wanted of these volumes, and how many of them a peer of these connections may still give.
    pub fn coming(&self, volumes: &BTreeSet<DocId>, links: &[LinkId]) -> (usize, usize) {
        let wanted = || self.wishes.keys().filter(|item| volumes.contains(&item.volume));
        let sides = || links.iter().filter_map(|link| self.links.get(link)).filter(|side| !side.deaf);
        let may_come =
            |item: &&VolumeBlob| sides().any(|side| !side.lacks.contains(item) && !self.is_bad(&side.peer, item));
        (wanted().count(), wanted().filter(may_come).count())
    }

    pub(super) fn is_bad(&self, peer: &PeerId, item: &VolumeBlob) -> bool {
        self.bad.get(peer).is_some_and(|bad| bad.contains(item))
    }

    /// A peer has these.
    pub(super) fn offered(&mut self, link: LinkId, volume: DocId, blobs: &[(BlobHash, u64)], may: PeerRights<'_>) {
        let access = may(link, volume);
        if access == DocumentAccess::None {
            return self.say(link, "it speaks of pictures of a volume that is not shared with it");
        }
        for (hash, size) in blobs {
            let item = VolumeBlob { volume, hash: *hash };
            if self.keeps {
                let waiting = self.offers.entry(item).or_default();
                if waiting.is_empty() {
                    self.deeds.push_back(BlobCommand::Look { item });
                }
                waiting.insert(link, *size);
                continue;
            }
            let Some(side) = self.links.get_mut(&link) else { return };
            side.offered.remove(&item);
            side.offer.remove(&item);
            side.lacks.remove(&item);
            if self.wishes.contains_key(&item) {
                self.ask_of(link, item);
            }
        }
    }

    /// A piece has come.
    pub(super) fn came(
        &mut self,
        link: LinkId,
        (item, offset, size): (VolumeBlob, u64, u64),
        bytes: &[u8],
        now: i64,
        may: PeerRights<'_>,
    ) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let Some(asked) = side.under_way.remove(&(item, offset)) else {
            return self.turn_deaf(
                link,
                "it sends pictures that nobody asked for; they are not exchanged with it",
                may,
            );
        };
        side.window = match now - asked {
            ..SOON => (side.window + 1).min(self.limits.pieces),
            LATE.. => (side.window / 2).max(1),
            _ => side.window,
        };
        let Some(wish) = self.wishes.get_mut(&item) else { return };
        if wish.source != Some(link) || wish.phase != TransferPhase::Open {
            return; // it was let go meanwhile
        }
        let fits = wish.size.is_none_or(|known| known == size) && size <= self.limits.largest;
        if !fits || offset != wish.got || bytes.len() as u64 != piece(size, offset) {
            self.say(link, "it has something else under the name of a picture; it is not asked for it again");
            return self.blame(link, item, may);
        }
        wish.size = Some(size);
        wish.got += bytes.len() as u64;
        wish.origin = match wish.origin {
            BlobOrigin::Nobody => BlobOrigin::One(link),
            BlobOrigin::One(one) if one == link => BlobOrigin::One(one),
            BlobOrigin::One(_) | BlobOrigin::Several => BlobOrigin::Several,
        };
        self.deeds.push_back(BlobCommand::Write { item, offset, bytes: bytes.to_vec(), link });
        if wish.got == size {
            wish.phase = TransferPhase::Checking;
            self.deeds.push_back(BlobCommand::Check { item });
        }
        if let Some(side) = self.links.get_mut(&link).filter(|_| self.keeps) {
            side.room = side.room.saturating_sub(bytes.len() as u64);
        }
    }

    /// The answer to [`BlobCommand::Look`].
    pub fn looked(&mut self, item: VolumeBlob, found: BlobExtent, may: PeerRights<'_>) {
        for (link, size) in self.offers.remove(&item).unwrap_or_default() {
            self.answer_offer(link, item, size, found, may);
        }
        if let BlobExtent::Whole(size) = found {
            self.tell_of(item, size); // it could not be read before
        }
        let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Looking) else { return };
        match found {
            BlobExtent::Whole(size) => {
                wish.size = Some(size);
                self.done(item, may);
            }
            BlobExtent::Part(bytes) => {
                // Where a piece begins; the last one comes again, as what is whole was checked.
                let most = wish.size.unwrap_or(bytes).saturating_sub(1);
                let bytes = bytes.min(most) / PIECE * PIECE;
                (wish.got, wish.next, wish.phase) = (bytes, bytes, TransferPhase::Open);
                wish.origin = if bytes == 0 { BlobOrigin::Nobody } else { BlobOrigin::Several };
            }
        }
    }

    /// What becomes of an offer, now that it is known what is here.
    pub(super) fn answer_offer(
        &mut self,
        link: LinkId,
        item: VolumeBlob,
        size: u64,
        found: BlobExtent,
        may: PeerRights<'_>,
    ) {
        if matches!(found, BlobExtent::Whole(_)) {
            return self.word(link, &BlobMessage::Have(item.volume, vec![(item.hash, size)]));
        }
        let promised: u64 = {
            let of = |wish: &&WantedBlob| wish.source == Some(link);
            self.wishes.values().filter(of).map(|wish| wish.size.unwrap_or(0).saturating_sub(wish.got)).sum()
        };
        let Some(side) = self.links.get_mut(&link) else { return };
        let why = if may(link, item.volume) != DocumentAccess::Write {
            Some(BlobRefusal::Right)
        } else if size > self.limits.largest {
            Some(BlobRefusal::Large)
        } else if side.gives.len() >= self.limits.items || size > side.room.saturating_sub(promised) {
            Some(BlobRefusal::Room)
        } else {
            None
        };
        if let Some(why) = why {
            self.say(
                link,
                match why {
                    BlobRefusal::Right => "it brings pictures to a volume that it may only read: they are not taken",
                    BlobRefusal::Room => "it brings a picture for which no room is left: it is not taken",
                    BlobRefusal::Large => "it brings a file that is too large: it is not taken",
                },
            );
            return self.word(link, &BlobMessage::Refuse(item, why));
        }
        side.gives.insert(item);
        side.lacks.remove(&item); // it may have it again
        self.want(item, Some(size), false, may);
        self.ask_of(link, item);
    }

    /// [`BlobCommand::Write`], [`BlobCommand::Look`] or, where it is here all the same, [`BlobCommand::Read`] failed: tried again later.
    pub fn failed(&mut self, item: VolumeBlob, now: i64, may: PeerRights<'_>) {
        self.pause(item, now, may);
    }

    /// The answer to [`BlobCommand::Check`].
    pub fn checked(&mut self, item: VolumeBlob, checked: &CheckOutcome, now: i64, may: PeerRights<'_>) {
        let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Checking) else {
            return;
        };
        match checked {
            CheckOutcome::Good => self.done(item, may),
            CheckOutcome::Failed(_) => self.pause(item, now, may),
            CheckOutcome::Bad => {
                let (origin, source) = (wish.origin, wish.source);
                (wish.got, wish.next, wish.phase, wish.origin) = (0, 0, TransferPhase::Open, BlobOrigin::Nobody);
                match (origin, source) {
                    (BlobOrigin::One(link), _) if self.links.contains_key(&link) => {
                        self.say(link, "it sent something else under the name of a picture; it is not asked again");
                        self.blame(link, item, may);
                    }
                    // Nobody knows whose bytes were wrong: once more from the beginning, from one alone.
                    (_, Some(link)) => self.let_go(item, link, may),
                    (_, None) => self.ask_around(item, may),
                }
            }
        }
    }

    pub(super) fn give_up_late(&mut self, link: LinkId, now: i64, may: PeerRights<'_>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let late: BTreeSet<VolumeBlob> = side
            .under_way
            .iter()
            .filter(|(_, at)| now - **at > ANSWER_TIMEOUT_MS)
            .map(|((item, _), _)| *item)
            .collect();
        for item in late {
            if let Some(side) = self.links.get_mut(&link) {
                side.under_way.retain(|(of, _), _| *of != item);
                side.lacks.insert(item);
            }
            self.let_go(item, link, may);
        }
    }

    pub(super) fn ask(&mut self, link: LinkId, now: i64, may: PeerRights<'_>) {
        loop {
            let Some(side) = self.links.get_mut(&link).filter(|side| side.under_way.len() < side.window) else {
                return;
            };
            let more = side.active.iter().copied().find(|item| {
                let wish = self.wishes.get(item);
                wish.is_some_and(|wish| {
                    wish.phase == TransferPhase::Open
                        && match wish.size {
                            Some(0) => wish.next == 0,
                            Some(size) => wish.next < size,
                            // The first piece says how many more there are.
                            None => wish.next == wish.got,
                        }
                })
            });
            if let Some(item) = more {
                let Some(wish) = self.wishes.get_mut(&item) else { return };
                let offset = wish.next;
                wish.next = offset + piece(wish.size.unwrap_or(u64::MAX), offset).max(1);
                side.under_way.insert((item, offset), now);
                self.word(link, &BlobMessage::Want(item, offset));
                continue;
            }
            if side.active.len() >= self.limits.active {
                return;
            }
            let Some((_, item)) = side.ask.pop_first() else { return };
            let Some(wish) = self.wishes.get_mut(&item) else { continue };
            let takes = matches!(wish.phase, TransferPhase::New | TransferPhase::Open);
            if !takes || wish.source.is_some() || may(link, item.volume) == DocumentAccess::None {
                continue;
            }
            wish.source = Some(link);
            side.active.insert(item);
            wish.next = wish.got;
            if wish.phase == TransferPhase::New {
                wish.phase = TransferPhase::Looking;
                self.deeds.push_back(BlobCommand::Look { item });
            }
        }
    }

    /// It is here by now, whole and checked, though not by way of this: another program over the same store took it.
    pub fn brought(&mut self, item: VolumeBlob, size: u64, may: PeerRights<'_>) {
        if self.wishes.contains_key(&item) {
            self.done(item, may);
        }
        self.tell_of(item, size);
    }

    /// It is here and was checked.
    pub(super) fn done(&mut self, item: VolumeBlob, may: PeerRights<'_>) {
        let Some(wish) = self.wishes.remove(&item) else { return };
        for side in self.links.values_mut() {
            side.active.remove(&item);
            side.lacks.remove(&item);
        }
        let size = wish.size.unwrap_or_default(); // known by now
        self.deeds.push_back(BlobCommand::Came { item, size });
        if !self.keeps {
            self.hold(item, size, may);
            // Whoever gave it has it.
            if let Some(side) = wish.source.and_then(|link| self.links.get_mut(&link)) {
                side.offer.remove(&item);
            }
            return;
        }
        let gave: Vec<LinkId> =
            self.links.iter().filter(|(_, side)| side.gives.contains(&item)).map(|(at, _)| *at).collect();
        for link in gave {
            if let Some(side) = self.links.get_mut(&link) {
                side.gives.remove(&item);
            }
            self.word(link, &BlobMessage::Have(item.volume, vec![(item.hash, size)]));
        }
        self.tell_of(item, size);
    }

    /// Not from this peer: others are asked, if there are any.
    pub(super) fn let_go(&mut self, item: VolumeBlob, link: LinkId, may: PeerRights<'_>) {
        if let Some(side) = self.links.get_mut(&link) {
            side.active.remove(&item);
            if side.lacks.contains(&item) {
                side.gives.remove(&item);
            }
        }
        let Some(wish) = self.wishes.get_mut(&item) else { return };
        if wish.source == Some(link) {
            wish.source = None;
            wish.next = wish.got;
            if wish.phase == TransferPhase::Looking {
                wish.phase = TransferPhase::New;
            }
        }
        let unwanted = self.keeps
            && wish.source.is_none()
            && wish.phase != TransferPhase::Checking
            && !self.links.values().any(|side| side.gives.contains(&item));
        if unwanted {
            self.wishes.remove(&item); // what has come of it stays, should somebody bring the rest
            return;
        }
        self.ask_around(item, may);
    }

    /// This peer sent something else: it is not asked for it again.
    pub(super) fn blame(&mut self, link: LinkId, item: VolumeBlob, may: PeerRights<'_>) {
        if let Some(side) = self.links.get_mut(&link) {
            if self.bad.len() >= self.limits.items {
                self.bad.clear(); // at worst somebody is asked once more
            }
            let bad = self.bad.entry(side.peer.clone()).or_default();
            if bad.len() < self.limits.items {
                bad.insert(item);
            }
            side.lacks.insert(item);
        }
        self.let_go(item, link, may);
    }

    pub(super) fn pause(&mut self, item: VolumeBlob, now: i64, may: PeerRights<'_>) {
        if self.is_awaited(item) || self.wishes.contains_key(&item) {
            self.paused.insert(item, now + BLOB_WRITE_RETRY_MS);
        }
        let Some(wish) = self.wishes.get_mut(&item) else { return };
        wish.phase = TransferPhase::Paused;
        if let Some(link) = wish.source {
            self.let_go(item, link, may);
        }
    }

    /// Whether peers offer it and hear nothing, or were told that it is not here.
    fn is_awaited(&self, item: VolumeBlob) -> bool {
        self.offers.get(&item).is_some_and(|links| !links.is_empty())
            || self.links.values().any(|side| side.waits.contains(&item))
    }

    /// What was paused is tried again.
    pub(super) fn go_on(&mut self, now: i64, may: PeerRights<'_>) {
        let due: Vec<VolumeBlob> = self.paused.iter().filter(|(_, at)| **at <= now).map(|(item, _)| *item).collect();
        for item in due {
            self.paused.remove(&item);
            if let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == TransferPhase::Paused) {
                wish.phase = TransferPhase::New;
            }
            if self.is_awaited(item) {
                self.deeds.push_back(BlobCommand::Look { item });
            }
            self.ask_around(item, may);
        }
    }

    pub(super) fn ask_around(&mut self, item: VolumeBlob, may: PeerRights<'_>) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            if may(link, item.volume) != DocumentAccess::None {
                self.ask_of(link, item);
            }
        }
    }

    /// This peer may be asked for it.
    pub(super) fn ask_of(&mut self, link: LinkId, item: VolumeBlob) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let gives = !self.keeps || side.gives.contains(&item);
        if side.deaf || !gives || side.lacks.contains(&item) {
            return;
        }
        if self.bad.get(&side.peer).is_some_and(|bad| bad.contains(&item)) {
            return;
        }
        let Some(wish) = self.wishes.get(&item) else { return };
        side.ask.insert((!wish.urgent, item));
    }
}
