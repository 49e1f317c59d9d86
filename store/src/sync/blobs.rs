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

mod fetch;
mod serve;
mod word;

use self::word::Word;
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
    /// All of it, checked: so many bytes.
    Whole(u64),
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
    /// See how much of it is here, and call [`Blobs::looked`]; [`Blobs::failed`] where that cannot be seen.
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
    /// Put this behind what is there of it: the file ends here, whatever it held beyond. Call [`Blobs::failed`] where
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
    /// How many bytes it has, as far as that is known: the first piece tells it.
    size: Option<u64>,
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

    /// What is here, and what is wanted.
    pub fn items(&self) -> (impl Iterator<Item = &Item>, impl Iterator<Item = &Item>) {
        (self.held.keys(), self.wishes.keys())
    }

    /// The connections over which this is spoken.
    pub fn links(&self) -> Vec<Link> {
        self.links.keys().copied().collect()
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
                self.lacked(link, item, may);
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

    /// Asks and answers, as far as lines and limits allow; to be called after whatever happened, and every second while
    /// [`Blobs::is_busy`]. `is_idle`: whether nothing else waits to be sent to a peer.
    pub fn step(&mut self, now: i64, may: May<'_>, is_idle: &dyn Fn(Link) -> bool) {
        self.go_on(now, may);
        let links: Vec<Link> = self.links.iter().filter(|(_, side)| !side.deaf).map(|(link, _)| *link).collect();
        for link in links {
            self.serve(link, may, is_idle(link));
            self.give_up_late(link, now, may);
            self.ask(link, now, may);
            self.offer(link);
        }
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
