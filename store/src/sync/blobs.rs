//! Blobs on their way between peers: bytes too large for a document, asked for by hash, in small pieces.
//!
//! An extension of Tracebook's own, beside documents and never in front of them: a piece is sent only to whoever asked
//! for it, few are asked for at a time (fewer on a slow line), and none is sent while others wait for the line. Only
//! peers whose greeting says that they know it hear of it ([`super::Metadata::blobs`]).
//!
//! What a caller does: it tells of connections, of what it wants ([`Blobs::want`]) and has ([`Blobs::hold`]), of what
//! comes ([`Blobs::receive`]) and of time ([`Blobs::step`]), and performs what [`Blobs::take`] gives. A blob goes along
//! with a volume: whoever may read the volume may fetch it, whoever may write the volume may bring it. What has come is
//! a blob only once its hash was checked; what was fetched before a cut is not fetched again.

mod word;

use self::word::{NAMED, Why, Word};
use super::peers::{Access, Link};
use super::wire::PeerId;
use crate::id::{BlobHash, DocId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What stands on these messages.
pub const TOPIC: &str = "blobs";
/// The version of this that is spoken.
pub const VERSION: u64 = 1;
/// Bytes of a piece, but for the last one of a blob.
pub const PIECE: u64 = 64 << 10;
/// Who does not answer for so long is not waited for, in milliseconds.
const PATIENCE: i64 = 60_000;
/// What this machine's disk did not take is tried again after this time, in milliseconds.
const AGAIN: i64 = 30_000;
/// A piece that comes sooner than this lets more be asked for at once, one that comes later than the other fewer.
const SOON: i64 = 150;
const LATE: i64 = 600;

/// A blob, and the volume with which it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// The volume.
    pub volume: DocId,
    /// What it is called.
    pub hash: BlobHash,
}

/// Limits that keep one peer from using up what all share.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A blob has at most so many bytes.
    pub largest: u64,
    /// So many blobs are wanted, offered or waited for over one connection.
    pub items: usize,
    /// So many pieces may be asked for at once.
    pub pieces: usize,
    /// So many blobs are fetched over one connection at the same time.
    pub active: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { largest: 512 << 20, items: 100_000, pieces: 8, active: 4 }
    }
}

/// How much of a blob is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All of it, checked.
    Whole,
    /// So many bytes of its beginning, not checked.
    Part(u64),
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is what its name says, and durable.
    Good,
    /// It is something else; what was there of it is gone.
    Bad,
    /// This machine could not do it, and why.
    Failed(String),
}

/// What the caller is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Send this, as a message of [`TOPIC`].
    Send {
        /// Over which connection.
        link: Link,
        /// The message.
        data: Vec<u8>,
    },
    /// See how much of it is here, and call [`Blobs::looked`].
    Look {
        /// Which.
        item: Item,
    },
    /// Read a piece, and call [`Blobs::read`].
    Read {
        /// Who asks.
        link: Link,
        /// Of which.
        item: Item,
        /// From where on.
        offset: u64,
    },
    /// Put this behind what is there of it: the file ends here, whatever it held beyond. Call [`Blobs::written`] where
    /// that fails. In order, and before a [`Deed::Check`] that follows.
    Write {
        /// Of which.
        item: Item,
        /// Where.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
        /// From whom.
        link: Link,
    },
    /// Check its hash and keep it, or throw it away; call [`Blobs::checked`].
    Check {
        /// Which.
        item: Item,
    },
    /// It is here.
    Came {
        /// Which.
        item: Item,
        /// Bytes.
        size: u64,
    },
    /// For the log.
    Say {
        /// Of whom.
        link: Link,
        /// What.
        words: &'static str,
    },
    /// The peer does not take something, and why: for the log.
    Refused {
        /// Who.
        link: Link,
        /// Why.
        words: &'static str,
    },
}

/// What a peer may do with a volume.
pub type May<'a> = &'a dyn Fn(Link, DocId) -> Access;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody has looked what of it is here.
    New,
    Looking,
    /// It is being fetched, or may be.
    Open,
    Checking,
    /// The disk did not take it; tried again later.
    Paused,
}

/// Whose bytes are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Nobody,
    One(Link),
    Several,
}

/// A blob that is wanted.
struct Wish {
    size: u64,
    urgent: bool,
    phase: Phase,
    /// Bytes that have come.
    got: u64,
    /// Bytes that were asked for.
    next: u64,
    source: Option<Link>,
    origin: Origin,
}

/// One connection.
struct Side {
    peer: PeerId,
    /// Whether it keeps what it is brought: then it is offered what is here.
    keeper: bool,
    /// It broke the rules: nothing more is taken from it or said to it.
    deaf: bool,
    /// What to ask it for, the urgent first.
    ask: BTreeSet<(bool, Item)>,
    /// What it said that it does not have.
    lacks: BTreeSet<Item>,
    /// What it offered; asked for by those that keep.
    gives: BTreeSet<Item>,
    /// What is fetched from it, and the pieces that were asked for, with when.
    active: BTreeSet<Item>,
    under_way: BTreeMap<(Item, u64), i64>,
    window: usize,
    /// What it has asked for, in order; whether a piece is being read for it.
    asked: VecDeque<(Item, u64)>,
    reading: bool,
    /// What it asked for and was not here.
    waits: BTreeSet<Item>,
    /// What is to be offered to it, what was and is not answered, and how many it has refused.
    offer: BTreeSet<Item>,
    offered: BTreeSet<Item>,
    refused: usize,
    /// Bytes that it may still bring.
    room: u64,
    /// What was said of it already.
    said: BTreeSet<&'static str>,
}

/// All blobs over all connections; see the head of this file.
pub struct Blobs {
    /// Whether this side keeps what others bring, and knows only by looking what it has.
    keeps: bool,
    limits: Limits,
    links: BTreeMap<Link, Side>,
    wishes: BTreeMap<Item, Wish>,
    held: BTreeMap<Item, u64>,
    /// Offers that wait until somebody has looked.
    offers: BTreeMap<Item, BTreeMap<Link, u64>>,
    /// What the disk did not take, and when it is tried again.
    paused: BTreeMap<Item, i64>,
    /// Who sent something else under which name.
    bad: BTreeMap<PeerId, BTreeSet<Item>>,
    deeds: VecDeque<Deed>,
}

impl std::fmt::Debug for Blobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blobs: {} connections, {} wanted, {} here", self.links.len(), self.wishes.len(), self.held.len())
    }
}

/// How many bytes a piece has that begins here.
fn piece(size: u64, offset: u64) -> u64 {
    size.saturating_sub(offset).min(PIECE)
}

impl Blobs {
    /// No connections yet. `keeps`: this side keeps what those bring that may.
    pub fn new(keeps: bool, limits: Limits) -> Blobs {
        Blobs {
            keeps,
            limits,
            links: BTreeMap::new(),
            wishes: BTreeMap::new(),
            held: BTreeMap::new(),
            offers: BTreeMap::new(),
            paused: BTreeMap::new(),
            bad: BTreeMap::new(),
            deeds: VecDeque::new(),
        }
    }

    /// What is to be done, in this order.
    pub fn take(&mut self) -> Vec<Deed> {
        self.deeds.drain(..).collect()
    }

    /// A peer is here that knows this. `keeper`: it keeps what it is brought.
    pub fn connect(&mut self, link: Link, peer: PeerId, keeper: bool, may: May<'_>) {
        let shared = |item: &&Item| may(link, item.volume) != Access::None;
        let offer = if keeper { self.held.keys().filter(shared).copied().collect() } else { BTreeSet::new() };
        let side = Side {
            peer,
            keeper,
            deaf: false,
            ask: BTreeSet::new(),
            lacks: BTreeSet::new(),
            gives: BTreeSet::new(),
            active: BTreeSet::new(),
            under_way: BTreeMap::new(),
            window: 2,
            asked: VecDeque::new(),
            reading: false,
            waits: BTreeSet::new(),
            offer,
            offered: BTreeSet::new(),
            refused: 0,
            room: u64::MAX,
            said: BTreeSet::new(),
        };
        self.links.insert(link, side);
        if !self.keeps {
            let wanted: Vec<Item> = self.wishes.keys().filter(shared).copied().collect();
            wanted.into_iter().for_each(|item| self.ask_of(link, item));
        }
    }

    /// Whether the peer of this connection is here and knows this.
    pub fn knows(&self, link: Link) -> bool {
        self.links.get(&link).is_some_and(|side| !side.deaf)
    }

    /// The connection is gone.
    pub fn disconnect(&mut self, link: Link, may: May<'_>) {
        let Some(side) = self.links.remove(&link) else { return };
        self.offers.values_mut().for_each(|links| _ = links.remove(&link));
        for item in side.active.into_iter().chain(side.gives) {
            self.let_go(item, link, may);
        }
    }

    /// So many bytes a peer may still bring.
    pub fn room(&mut self, link: Link, bytes: u64) {
        if let Some(side) = self.links.get_mut(&link) {
            side.room = bytes;
        }
    }

    /// This is wanted from whoever has it. `urgent`: somebody looks at where it belongs.
    pub fn want(&mut self, item: Item, size: u64, urgent: bool, may: May<'_>) {
        if size > self.limits.largest || self.wishes.len() >= self.limits.items {
            return;
        }
        let known = self.wishes.get_mut(&item);
        if known.as_ref().is_some_and(|wish| wish.urgent || !urgent) {
            return; // those that may have it are to be asked already
        }
        match known {
            Some(wish) => wish.urgent = true,
            None => {
                let (phase, origin) = (Phase::New, Origin::Nobody);
                self.wishes.insert(item, Wish { size, urgent, phase, got: 0, next: 0, source: None, origin });
            }
        }
        self.ask_around(item, may);
    }

    /// It is not wanted any more.
    pub fn unwant(&mut self, item: Item) {
        if let Some(wish) = self.wishes.remove(&item)
            && let Some(side) = wish.source.and_then(|link| self.links.get_mut(&link))
        {
            side.active.remove(&item);
        }
    }

    /// This is here, and goes along with its volume.
    pub fn hold(&mut self, item: Item, size: u64, may: May<'_>) {
        if self.held.insert(item, size).is_some() {
            return;
        }
        self.unwant(item);
        self.tell_of(item, size);
        for (link, side) in self.links.iter_mut().filter(|(_, side)| side.keeper) {
            if may(*link, item.volume) != Access::None {
                side.offer.insert(item);
            }
        }
    }

    /// It is not here any more.
    pub fn release(&mut self, item: Item) {
        self.held.remove(&item);
        for side in self.links.values_mut() {
            side.offer.remove(&item);
            side.offered.remove(&item);
        }
    }

    /// What is here, and what is wanted.
    pub fn items(&self) -> (impl Iterator<Item = &Item>, impl Iterator<Item = &Item>) {
        (self.held.keys(), self.wishes.keys())
    }

    /// How many are wanted of these volumes, and how many of them a peer of these connections may still give.
    pub fn coming(&self, volumes: &BTreeSet<DocId>, links: &[Link]) -> (usize, usize) {
        let wanted = || self.wishes.keys().filter(|item| volumes.contains(&item.volume));
        let sides = || links.iter().filter_map(|link| self.links.get(link)).filter(|side| !side.deaf);
        let may_come = |item: &&Item| sides().any(|side| !side.lacks.contains(item) && !self.is_bad(&side.peer, item));
        (wanted().count(), wanted().filter(may_come).count())
    }

    fn is_bad(&self, peer: &PeerId, item: &Item) -> bool {
        self.bad.get(peer).is_some_and(|bad| bad.contains(item))
    }

    /// How many this peer is still to be brought, and how many it has refused.
    pub fn going(&self, link: Link) -> (usize, usize) {
        self.links.get(&link).map_or((0, 0), |side| (side.offer.len() + side.offered.len(), side.refused))
    }

    /// The connections over which this is spoken.
    pub fn links(&self) -> Vec<Link> {
        self.links.keys().copied().collect()
    }

    /// Whether peers wait for pieces.
    pub fn is_asked(&self) -> bool {
        self.links.values().any(|side| !side.asked.is_empty() && !side.reading)
    }

    /// Whether anything is under way, so that time matters.
    pub fn is_busy(&self) -> bool {
        let busy = |side: &Side| !side.under_way.is_empty() || !side.asked.is_empty() || !side.offer.is_empty();
        !self.paused.is_empty() || self.links.values().any(busy)
    }

    /// A message of [`TOPIC`] has come.
    pub fn receive(&mut self, link: Link, data: &[u8], now: i64, may: May<'_>) {
        if !self.knows(link) {
            return;
        }
        let Some(word) = Word::read(data) else {
            return self.turn_deaf(
                link,
                "what it says of pictures cannot be read; they are not exchanged with it",
                may,
            );
        };
        match word {
            Word::Have(volume, blobs) => self.offered(link, volume, &blobs, may),
            Word::Want(item, offset) => self.wanted(link, item, offset, may),
            Word::Piece(item, offset, size, bytes) => self.came(link, (item, offset, size), bytes, now, may),
            Word::Lack(item) => {
                let Some(side) = self.links.get_mut(&link) else { return };
                side.under_way.retain(|(of, _), _| *of != item);
                if self.wishes.contains_key(&item) && side.lacks.len() < self.limits.items {
                    side.lacks.insert(item);
                }
                self.let_go(item, link, may);
            }
            Word::Refuse(item, why) => {
                let Some(side) = self.links.get_mut(&link) else { return };
                if side.offered.remove(&item) {
                    side.refused += 1;
                    if side.said.insert(why.words()) {
                        self.deeds.push_back(Deed::Refused { link, words: why.words() });
                    }
                }
            }
        }
    }

    /// A peer has these.
    fn offered(&mut self, link: Link, volume: DocId, blobs: &[(BlobHash, u64)], may: May<'_>) {
        let access = may(link, volume);
        if access == Access::None {
            return self.say(link, "it speaks of pictures of a volume that is not shared with it");
        }
        for (hash, size) in blobs {
            let item = Item { volume, hash: *hash };
            if self.keeps {
                let waiting = self.offers.entry(item).or_default();
                if waiting.is_empty() {
                    self.deeds.push_back(Deed::Look { item });
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

    /// A peer wants a piece. Whether it gets it is found out when it is its turn.
    fn wanted(&mut self, link: Link, item: Item, offset: u64, may: May<'_>) {
        if may(link, item.volume) == Access::None {
            self.say(link, "it asks for a picture that is not shared with it");
        }
        let Some(side) = self.links.get_mut(&link) else { return };
        if side.asked.len() >= 2 * self.limits.pieces {
            return self.turn_deaf(link, "it asks for too many pieces of pictures at once; they go no more", may);
        }
        side.asked.push_back((item, offset));
    }

    /// A piece has come.
    fn came(&mut self, link: Link, (item, offset, size): (Item, u64, u64), bytes: &[u8], now: i64, may: May<'_>) {
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
        if wish.source != Some(link) || wish.phase != Phase::Open {
            return; // it was let go meanwhile
        }
        if size != wish.size || offset != wish.got || bytes.len() as u64 != piece(size, offset) {
            self.say(link, "it has something else under the name of a picture; it is not asked for it again");
            return self.blame(link, item, may);
        }
        wish.got += bytes.len() as u64;
        wish.origin = match wish.origin {
            Origin::Nobody => Origin::One(link),
            Origin::One(one) if one == link => Origin::One(one),
            Origin::One(_) | Origin::Several => Origin::Several,
        };
        self.deeds.push_back(Deed::Write { item, offset, bytes: bytes.to_vec(), link });
        if wish.got == wish.size {
            wish.phase = Phase::Checking;
            self.deeds.push_back(Deed::Check { item });
        }
        if let Some(side) = self.links.get_mut(&link).filter(|_| self.keeps) {
            side.room = side.room.saturating_sub(bytes.len() as u64);
        }
    }

    /// The answer to [`Deed::Look`].
    pub fn looked(&mut self, item: Item, found: Found, may: May<'_>) {
        for (link, size) in self.offers.remove(&item).unwrap_or_default() {
            self.answer_offer(link, item, size, found, may);
        }
        let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == Phase::Looking) else { return };
        match found {
            Found::Whole => self.done(item, may),
            Found::Part(bytes) => {
                // Where a piece begins; the last one comes again, as what is whole was checked.
                let bytes = bytes.min(wish.size.saturating_sub(1)) / PIECE * PIECE;
                (wish.got, wish.next, wish.phase) = (bytes, bytes, Phase::Open);
                wish.origin = if bytes == 0 { Origin::Nobody } else { Origin::Several };
            }
        }
    }

    /// What becomes of an offer, now that it is known what is here.
    fn answer_offer(&mut self, link: Link, item: Item, size: u64, found: Found, may: May<'_>) {
        if found == Found::Whole {
            return self.word(link, &Word::Have(item.volume, vec![(item.hash, size)]));
        }
        let promised: u64 = {
            let of = |wish: &&Wish| wish.source == Some(link);
            self.wishes.values().filter(of).map(|wish| wish.size - wish.got).sum()
        };
        let Some(side) = self.links.get_mut(&link) else { return };
        let why = if may(link, item.volume) != Access::Write {
            Some(Why::Right)
        } else if size > self.limits.largest {
            Some(Why::Large)
        } else if side.gives.len() >= self.limits.items || size > side.room.saturating_sub(promised) {
            Some(Why::Room)
        } else {
            None
        };
        if let Some(why) = why {
            self.say(
                link,
                match why {
                    Why::Right => "it brings pictures to a volume that it may only read: they are not taken",
                    Why::Room => "it brings a picture for which no room is left: it is not taken",
                    Why::Large => "it brings a file that is too large: it is not taken",
                },
            );
            return self.word(link, &Word::Refuse(item, why));
        }
        side.gives.insert(item);
        side.lacks.remove(&item); // it may have it again
        self.want(item, size, false, may);
        self.ask_of(link, item);
    }

    /// The answer to [`Deed::Read`]: how large the blob is and the piece; `None`: it is not here.
    pub fn read(&mut self, link: Link, item: Item, offset: u64, found: Option<(u64, Vec<u8>)>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        side.reading = false;
        match found {
            Some((size, bytes)) => self.word(link, &Word::Piece(item, offset, size, &bytes)),
            None => {
                // It lies elsewhere by now: whoever knows where says that it is here once more, and it is offered anew.
                self.release(item);
                self.lack(link, item);
            }
        }
    }

    /// [`Deed::Write`] failed.
    pub fn written(&mut self, item: Item, now: i64, may: May<'_>) {
        self.pause(item, now, may);
    }

    /// The answer to [`Deed::Check`].
    pub fn checked(&mut self, item: Item, checked: &Checked, now: i64, may: May<'_>) {
        let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == Phase::Checking) else { return };
        match checked {
            Checked::Good => self.done(item, may),
            Checked::Failed(_) => self.pause(item, now, may),
            Checked::Bad => {
                let (origin, source) = (wish.origin, wish.source);
                (wish.got, wish.next, wish.phase, wish.origin) = (0, 0, Phase::Open, Origin::Nobody);
                match (origin, source) {
                    (Origin::One(link), _) if self.links.contains_key(&link) => {
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

    /// Asks and answers, as far as lines and limits allow; to be called after whatever happened, and every second while
    /// [`Blobs::is_busy`]. `is_idle`: whether nothing else waits to be sent to a peer.
    pub fn step(&mut self, now: i64, may: May<'_>, is_idle: &dyn Fn(Link) -> bool) {
        let due: Vec<Item> = self.paused.iter().filter(|(_, at)| **at <= now).map(|(item, _)| *item).collect();
        for item in due {
            self.paused.remove(&item);
            if let Some(wish) = self.wishes.get_mut(&item).filter(|wish| wish.phase == Phase::Paused) {
                wish.phase = Phase::New;
            }
            self.ask_around(item, may);
        }
        let links: Vec<Link> = self.links.iter().filter(|(_, side)| !side.deaf).map(|(link, _)| *link).collect();
        for link in links {
            self.serve(link, may, is_idle(link));
            self.give_up_late(link, now, may);
            self.ask(link, now, may);
            self.offer(link);
        }
    }

    /// Answers one piece at a time.
    fn serve(&mut self, link: Link, may: May<'_>, is_idle: bool) {
        while let Some(side) = self.links.get_mut(&link).filter(|side| is_idle && !side.reading) {
            let Some((item, offset)) = side.asked.pop_front() else { return };
            if may(link, item.volume) == Access::None || (!self.keeps && !self.held.contains_key(&item)) {
                self.lack(link, item);
                continue;
            }
            side.reading = true;
            self.deeds.push_back(Deed::Read { link, item, offset });
        }
    }

    fn lack(&mut self, link: Link, item: Item) {
        if let Some(side) = self.links.get_mut(&link).filter(|side| side.waits.len() < self.limits.items) {
            side.waits.insert(item);
        }
        self.word(link, &Word::Lack(item));
    }

    fn give_up_late(&mut self, link: Link, now: i64, may: May<'_>) {
        let Some(side) = self.links.get_mut(&link) else { return };
        let late: BTreeSet<Item> =
            side.under_way.iter().filter(|(_, at)| now - **at > PATIENCE).map(|((item, _), _)| *item).collect();
        for item in late {
            if let Some(side) = self.links.get_mut(&link) {
                side.under_way.retain(|(of, _), _| *of != item);
                side.lacks.insert(item);
            }
            self.let_go(item, link, may);
        }
    }

    fn ask(&mut self, link: Link, now: i64, may: May<'_>) {
        loop {
            let Some(side) = self.links.get_mut(&link).filter(|side| side.under_way.len() < side.window) else {
                return;
            };
            let more = side.active.iter().copied().find(|item| {
                let wish = self.wishes.get(item);
                wish.is_some_and(|wish| {
                    wish.phase == Phase::Open && (wish.next < wish.size || (wish.size == 0 && wish.next == 0))
                })
            });
            if let Some(item) = more {
                let Some(wish) = self.wishes.get_mut(&item) else { return };
                let offset = wish.next;
                wish.next = offset + piece(wish.size, offset).max(1);
                side.under_way.insert((item, offset), now);
                self.word(link, &Word::Want(item, offset));
                continue;
            }
            if side.active.len() >= self.limits.active {
                return;
            }
            let Some((_, item)) = side.ask.pop_first() else { return };
            let Some(wish) = self.wishes.get_mut(&item) else { continue };
            let takes = matches!(wish.phase, Phase::New | Phase::Open);
            if !takes || wish.source.is_some() || may(link, item.volume) == Access::None {
                continue;
            }
            wish.source = Some(link);
            side.active.insert(item);
            wish.next = wish.got;
            if wish.phase == Phase::New {
                wish.phase = Phase::Looking;
                self.deeds.push_back(Deed::Look { item });
            }
        }
    }

    /// Names what is here to a peer that keeps it, a part at a time.
    fn offer(&mut self, link: Link) {
        while let Some(side) = self.links.get_mut(&link).filter(|side| side.offered.len() < NAMED) {
            let Some(first) = side.offer.first().copied() else { return };
            let count = NAMED - side.offered.len();
            let next = side.offer.iter().take_while(|item| item.volume == first.volume).take(count);
            let next: Vec<Item> = next.copied().collect();
            let mut named = Vec::new();
            for item in next {
                side.offer.remove(&item);
                if let Some(size) = self.held.get(&item) {
                    side.offered.insert(item);
                    named.push((item.hash, *size));
                }
            }
            if !named.is_empty() {
                self.word(link, &Word::Have(first.volume, named));
            }
        }
    }

    /// It is here and was checked.
    fn done(&mut self, item: Item, may: May<'_>) {
        let Some(wish) = self.wishes.remove(&item) else { return };
        for side in self.links.values_mut() {
            side.active.remove(&item);
            side.lacks.remove(&item);
        }
        let size = wish.size;
        self.deeds.push_back(Deed::Came { item, size });
        if !self.keeps {
            self.hold(item, size, may);
            // Whoever gave it has it.
            if let Some(side) = wish.source.and_then(|link| self.links.get_mut(&link)) {
                side.offer.remove(&item);
            }
            return;
        }
        let gave: Vec<Link> =
            self.links.iter().filter(|(_, side)| side.gives.contains(&item)).map(|(at, _)| *at).collect();
        for link in gave {
            if let Some(side) = self.links.get_mut(&link) {
                side.gives.remove(&item);
            }
            self.word(link, &Word::Have(item.volume, vec![(item.hash, size)]));
        }
        self.tell_of(item, size);
    }

    /// Those hear of it who asked for it when it was not here.
    fn tell_of(&mut self, item: Item, size: u64) {
        let waits: Vec<Link> =
            self.links.iter().filter(|(_, side)| side.waits.contains(&item)).map(|(at, _)| *at).collect();
        for link in waits {
            if let Some(side) = self.links.get_mut(&link) {
                side.waits.remove(&item);
            }
            self.word(link, &Word::Have(item.volume, vec![(item.hash, size)]));
        }
    }

    /// Not from this peer: others are asked, if there are any.
    fn let_go(&mut self, item: Item, link: Link, may: May<'_>) {
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
            if wish.phase == Phase::Looking {
                wish.phase = Phase::New;
            }
        }
        let unwanted = self.keeps
            && wish.source.is_none()
            && wish.phase != Phase::Checking
            && !self.links.values().any(|side| side.gives.contains(&item));
        if unwanted {
            self.wishes.remove(&item); // what has come of it stays, should somebody bring the rest
            return;
        }
        self.ask_around(item, may);
    }

    /// This peer sent something else: it is not asked for it again.
    fn blame(&mut self, link: Link, item: Item, may: May<'_>) {
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

    fn pause(&mut self, item: Item, now: i64, may: May<'_>) {
        let Some(wish) = self.wishes.get_mut(&item) else { return };
        wish.phase = Phase::Paused;
        self.paused.insert(item, now + AGAIN);
        if let Some(link) = wish.source {
            self.let_go(item, link, may);
        }
    }

    fn ask_around(&mut self, item: Item, may: May<'_>) {
        let links: Vec<Link> = self.links.keys().copied().collect();
        for link in links {
            if may(link, item.volume) != Access::None {
                self.ask_of(link, item);
            }
        }
    }

    /// This peer may be asked for it.
    fn ask_of(&mut self, link: Link, item: Item) {
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

    fn word(&mut self, link: Link, word: &Word<'_>) {
        if self.knows(link) {
            self.deeds.push_back(Deed::Send { link, data: word.write() });
        }
    }

    fn say(&mut self, link: Link, words: &'static str) {
        if self.links.get_mut(&link).is_some_and(|side| side.said.insert(words)) {
            self.deeds.push_back(Deed::Say { link, words });
        }
    }

    /// It broke the rules of this. Documents are not concerned.
    fn turn_deaf(&mut self, link: Link, words: &'static str, may: May<'_>) {
        self.say(link, words);
        let Some(side) = self.links.get_mut(&link) else { return };
        side.deaf = true;
        side.asked.clear();
        side.under_way.clear();
        side.offer.clear();
        side.offered.clear();
        let gives = std::mem::take(&mut side.gives);
        let active = std::mem::take(&mut side.active);
        for item in active.into_iter().chain(gives) {
            self.let_go(item, link, may);
        }
    }
}

#[cfg(test)]
mod tests;
