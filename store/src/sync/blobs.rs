//! Transfer of blobs between peers: bytes too large for a document, requested by hash, in small pieces.
//!
//! A Tracebook extension with lower priority than documents: a piece is sent only on request, few are requested at a
//! time (fewer on a slow connection), and none is sent while other messages wait. Only peers that announce support get
//! these messages ([`super::Metadata::blobs`]).
//!
//! The caller reports connections, wanted blobs ([`BlobTransfers::want`]) and available ones ([`BlobTransfers::hold`]),
//! messages ([`BlobTransfers::receive`]) and time ([`BlobTransfers::advance`]), and performs the commands of
//! [`BlobTransfers::take_commands`]. A blob belongs to a volume: peers with read access may fetch it, peers with write
//! access may send it. Received bytes become a blob only after their hash was checked; an interrupted transfer is
//! resumed.
//!
//! Files of saved kernel states are offered as such, and peers that store blobs delete them once they aren't shared any
//! more ([`BlobTransfers::set_withdrawn`]). Nothing else is ever deleted.

mod codec;
mod fetch;
mod forget;
mod serve;

use self::codec::BlobMessage;
use super::peers::{DocumentAccess, LinkId};
use super::wire::PeerId;
use crate::id::{BlobHash, DocId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Topic of blob messages.
pub const BLOBS_TOPIC: &str = "blobs";
/// Version of the blob protocol. Since version 2, files of saved states are offered as such and can be forgotten.
pub const BLOBS_VERSION: u64 = 2;
/// Oldest version of a peer that blobs are exchanged with.
pub const MIN_BLOBS_VERSION: u64 = 1;
/// Size of a piece in bytes. The last piece of a blob may be smaller.
pub const PIECE_BYTES: u64 = 64 << 10;
/// A request without an answer times out after this time, in milliseconds.
const ANSWER_TIMEOUT_MS: i64 = 60_000;
/// A failed disk operation is retried after this time, in milliseconds.
const BLOB_WRITE_RETRY_MS: i64 = 30_000;
/// A piece that arrives faster than this (in milliseconds) raises the number of parallel requests. One slower than
/// `SLOW_PIECE_MS` lowers it.
const FAST_PIECE_MS: i64 = 150;
const SLOW_PIECE_MS: i64 = 600;

/// A blob, and the volume that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeBlob {
    /// The volume that the attachment belongs to.
    pub volume: DocId,
    /// Hash of the blob.
    pub hash: BlobHash,
}

/// Limits that keep one peer from exhausting shared resources.
#[derive(Clone, Copy, Debug)]
pub struct BlobLimits {
    /// Maximum size of a blob in bytes.
    pub max_blob_bytes: u64,
    /// Maximum number of blobs wanted, offered or awaited over one connection.
    pub max_blobs: usize,
    /// Maximum number of pieces requested at once.
    pub max_pieces: usize,
    /// Maximum number of blobs fetched over one connection at once.
    pub max_active: usize,
}

impl Default for BlobLimits {
    fn default() -> BlobLimits {
        BlobLimits { max_blob_bytes: 512 << 20, max_blobs: 100_000, max_pieces: 8, max_active: 4 }
    }
}

/// How much of a blob is on this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobExtent {
    /// Complete and checked, with its size in bytes.
    Whole(u64),
    /// The first bytes, unchecked, with their number.
    Part(u64),
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The bytes match the hash and are durable.
    Good,
    /// The bytes don't match the hash, and were deleted.
    Bad,
    /// The check failed on this device, with the reason.
    Failed(String),
}

/// A command for the caller to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobCommand {
    /// Send this as a message of [`BLOBS_TOPIC`].
    Send {
        /// The connection to send over.
        link: LinkId,
        /// The encoded message.
        data: Vec<u8>,
    },
    /// Find out how much of a blob is here, and call [`BlobTransfers::looked`], or [`BlobTransfers::failed`] if that's
    /// not possible.
    Probe {
        /// The attachment to look for on this device.
        item: VolumeBlob,
        /// Whether it's an attachment or output, so that [`BlobCommand::Remove`] must not remove it from now on, even
        /// if it's here as the file of a state.
        keeps: bool,
    },
    /// Read a piece of a blob, and call [`BlobTransfers::decode`].
    Read {
        /// The connection that asked for it.
        link: LinkId,
        /// The attachment to read.
        item: VolumeBlob,
        /// Where to start reading, in bytes.
        offset: u64,
    },
    /// Write these bytes at the offset and truncate the file after them. Call [`BlobTransfers::failed`] if that fails.
    /// Writes must be performed in order, and before a following [`BlobCommand::Check`].
    Write {
        /// The attachment to write.
        item: VolumeBlob,
        /// Where to write, in bytes.
        offset: u64,
        /// The bytes to write.
        bytes: Vec<u8>,
        /// The connection that they came from.
        link: LinkId,
    },
    /// Check the blob's hash, and store or delete it. Then call [`BlobTransfers::checked`].
    Check {
        /// The attachment whose hash is to be checked.
        item: VolumeBlob,
        /// Whether it came as the file of a state only.
        is_state: bool,
    },
    /// Remove a blob that came as the file of a state only, and call [`BlobTransfers::on_removed`]. Any other blob
    /// stays.
    Remove {
        /// The connection that asked for it.
        link: LinkId,
        /// The file to remove.
        item: VolumeBlob,
    },
    /// A peer that stores blobs has no withdrawn file with this name.
    Forgotten {
        /// The connection of the peer.
        link: LinkId,
        /// The file that was withdrawn.
        item: VolumeBlob,
    },
    /// An attachment is complete and checked.
    Arrived {
        /// The attachment that arrived.
        item: VolumeBlob,
        /// Its size in bytes.
        size: u64,
    },
    /// A line for the sync log.
    Log {
        /// The connection that the line is about.
        link: LinkId,
        /// The text of the line.
        words: &'static str,
    },
    /// The peer refused something, with the reason for the log.
    Refused {
        /// The connection of the peer that refused.
        link: LinkId,
        /// The reason, for the log.
        words: &'static str,
    },
}

/// Returns the access that a peer has to a volume.
pub type PeerRights<'a> = &'a dyn Fn(LinkId, DocId) -> DocumentAccess;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferPhase {
    /// The disk hasn't been checked for it.
    New,
    Looking,
    /// It's being fetched or can be.
    Open,
    Checking,
    /// A disk operation failed and is retried later.
    Paused,
}

/// The peers that sent the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlobOrigin {
    Nobody,
    One(LinkId),
    Several,
}

/// A blob that is wanted.
struct WantedBlob {
    /// Size in bytes, if known: the first piece gives it.
    size: Option<u64>,
    urgent: bool,
    phase: TransferPhase,
    /// Number of received bytes.
    received: u64,
    /// Number of requested bytes.
    requested: u64,
    source: Option<LinkId>,
    origin: BlobOrigin,
    /// Whether it was offered as the file of a state only.
    is_state: bool,
}

/// State of one connection.
struct BlobPeer {
    peer: PeerId,
    /// Whether the peer stores blobs. If so, blobs are offered to it.
    keeper: bool,
    /// Version of its blob protocol.
    version: u64,
    /// The peer broke the protocol: its messages are ignored, and none are sent to it.
    is_banned: bool,
    /// Blobs to request from it, urgent ones first.
    to_request: BTreeSet<(bool, VolumeBlob)>,
    /// Blobs that it said it doesn't have.
    lacks: BTreeSet<VolumeBlob>,
    /// Blobs that it offered. Peers that store blobs request them.
    offers: BTreeSet<VolumeBlob>,
    /// Blobs being fetched from it, and requested pieces with their times.
    active: BTreeSet<VolumeBlob>,
    in_flight: BTreeMap<(VolumeBlob, u64), i64>,
    window: usize,
    /// Its pending requests in order, and whether a piece is being read for it.
    requests: VecDeque<(VolumeBlob, u64)>,
    is_reading: bool,
    /// Its requests for blobs that aren't here.
    unmet_requests: BTreeSet<VolumeBlob>,
    /// Blobs to offer to it, offered ones without an answer, and the number of refused ones.
    to_offer: BTreeSet<VolumeBlob>,
    offered: BTreeSet<VolumeBlob>,
    refused: usize,
    /// Withdrawn files that it must still be asked to forget, and those that it hasn't answered for.
    to_forget: BTreeSet<VolumeBlob>,
    unanswered_forgets: BTreeSet<VolumeBlob>,
    /// Files that are being removed at its request.
    removals: BTreeSet<VolumeBlob>,
    /// Number of bytes that it may still send.
    quota_bytes: u64,
    /// Messages that were already logged about it.
    logged: BTreeSet<&'static str>,
}

/// Blob transfers over all connections; see the module documentation.
pub struct BlobTransfers {
    /// Whether this side stores all blobs it gets, and must check the disk to know what it has.
    is_keeper: bool,
    limits: BlobLimits,
    links: BTreeMap<LinkId, BlobPeer>,
    wanted: BTreeMap<VolumeBlob, WantedBlob>,
    held: BTreeMap<VolumeBlob, u64>,
    /// Blobs that are here as files of states only.
    state_files: BTreeSet<VolumeBlob>,
    /// Files of states that this device no longer shares, and that peers may still store.
    withdrawn: BTreeSet<VolumeBlob>,
    /// Offers that wait for a disk check: size in bytes, and whether it's the file of a state.
    offers: BTreeMap<VolumeBlob, BTreeMap<LinkId, (u64, bool)>>,
    /// Blobs whose disk operation failed, with the time of the retry.
    paused: BTreeMap<VolumeBlob, i64>,
    /// Blobs for which each peer has sent wrong bytes.
    bad_sources: BTreeMap<PeerId, BTreeSet<VolumeBlob>>,
    commands: VecDeque<BlobCommand>,
}

impl std::fmt::Debug for BlobTransfers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blobs: {} connections, {} wanted, {} here", self.links.len(), self.wanted.len(), self.held.len())
    }
}

/// Returns the length of the piece at an offset, in bytes.
fn piece_len(size: u64, offset: u64) -> u64 {
    size.saturating_sub(offset).min(PIECE_BYTES)
}

impl BlobTransfers {
    /// Creates the state without connections. `is_keeper` says whether this side stores the blobs that authorized peers
    /// offer.
    pub fn new(keeps: bool, limits: BlobLimits) -> BlobTransfers {
        BlobTransfers {
            is_keeper: keeps,
            limits,
            links: BTreeMap::new(),
            wanted: BTreeMap::new(),
            held: BTreeMap::new(),
            state_files: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            offers: BTreeMap::new(),
            paused: BTreeMap::new(),
            bad_sources: BTreeMap::new(),
            commands: VecDeque::new(),
        }
    }

    /// Returns the commands to perform, in order.
    pub fn take_commands(&mut self) -> Vec<BlobCommand> {
        self.commands.drain(..).collect()
    }

    /// Adds a peer that supports blobs. `keeper` says whether it stores offered blobs.
    pub fn connect(&mut self, link: LinkId, peer: PeerId, keeper: bool, may: PeerRights<'_>) {
        let shared = |item: &&VolumeBlob| may(link, item.volume) != DocumentAccess::None;
        let offer = if keeper { self.held.keys().filter(shared).copied().collect() } else { BTreeSet::new() };
        let side = BlobPeer {
            peer,
            keeper,
            version: MIN_BLOBS_VERSION,
            is_banned: false,
            to_request: BTreeSet::new(),
            lacks: BTreeSet::new(),
            offers: BTreeSet::new(),
            active: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            window: 2,
            requests: VecDeque::new(),
            is_reading: false,
            unmet_requests: BTreeSet::new(),
            to_offer: offer,
            offered: BTreeSet::new(),
            refused: 0,
            to_forget: BTreeSet::new(),
            unanswered_forgets: BTreeSet::new(),
            removals: BTreeSet::new(),
            quota_bytes: u64::MAX,
            logged: BTreeSet::new(),
        };
        self.links.insert(link, side);
        if !self.is_keeper {
            let wanted: Vec<VolumeBlob> = self.wanted.keys().filter(shared).copied().collect();
            wanted.into_iter().for_each(|item| self.request_from(link, item));
        }
    }

    /// Whether this connection's peer supports blobs and isn't banned.
    pub fn has_peer(&self, link: LinkId) -> bool {
        self.links.get(&link).is_some_and(|side| !side.is_banned)
    }

    /// Removes a closed connection.
    pub fn disconnect(&mut self, link: LinkId, may: PeerRights<'_>) {
        let Some(side) = self.links.remove(&link) else { return };
        self.offers.values_mut().for_each(|links| _ = links.remove(&link));
        for item in side.active.into_iter().chain(side.offers) {
            self.drop_source(item, link, may);
        }
    }

    /// Sets how many bytes a peer may still send.
    pub fn set_quota(&mut self, link: LinkId, bytes: u64) {
        if let Some(side) = self.links.get_mut(&link) {
            side.quota_bytes = bytes;
        }
    }

    /// Returns the blobs that are here and the wanted ones.
    pub fn held_and_wanted(&self) -> (impl Iterator<Item = &VolumeBlob>, impl Iterator<Item = &VolumeBlob>) {
        (self.held.keys(), self.wanted.keys())
    }

    /// Returns the connections whose peers support blobs.
    pub fn links(&self) -> Vec<LinkId> {
        self.links.keys().copied().collect()
    }

    /// Whether transfers are active, so that [`BlobTransfers::advance`] must be called regularly.
    pub fn is_busy(&self) -> bool {
        let busy =
            |side: &BlobPeer| !side.in_flight.is_empty() || !side.requests.is_empty() || !side.to_offer.is_empty();
        !self.paused.is_empty() || self.links.values().any(busy)
    }

    /// Handles a received message of [`BLOBS_TOPIC`].
    pub fn receive(&mut self, link: LinkId, data: &[u8], now: i64, may: PeerRights<'_>) {
        if !self.has_peer(link) {
            return;
        }
        let Some(word) = BlobMessage::decode(data) else {
            return self.ban_peer(link, "what it says of pictures cannot be read; they are not exchanged with it", may);
        };
        match word {
            BlobMessage::Have(volume, blobs) => self.on_offer(link, (volume, false), &blobs, may),
            BlobMessage::HaveStates(volume, blobs) => self.on_offer(link, (volume, true), &blobs, may),
            BlobMessage::Forget(item) => self.on_forget(link, item, may),
            BlobMessage::Forgotten(item) => self.on_forgotten(link, item),
            BlobMessage::Want(item, offset) => self.on_request(link, item, offset, may),
            BlobMessage::Piece(item, offset, size, bytes) => self.on_piece(link, (item, offset, size), bytes, now, may),
            BlobMessage::Lack(item) => {
                let Some(side) = self.links.get_mut(&link) else { return };
                side.in_flight.retain(|(of, _), _| *of != item);
                if self.wanted.contains_key(&item) && side.lacks.len() < self.limits.max_blobs {
                    side.lacks.insert(item);
                }
                self.drop_source(item, link, may);
                self.on_lack(link, item, may);
            }
            BlobMessage::Refuse(item, why) => {
                let Some(side) = self.links.get_mut(&link) else { return };
                side.unanswered_forgets.remove(&item); // it's asked again after it reconnects
                if side.offered.remove(&item) {
                    side.refused += 1;
                    if side.logged.insert(why.reason()) {
                        self.commands.push_back(BlobCommand::Refused { link, words: why.reason() });
                    }
                }
            }
        }
    }

    /// Sends requests and answers, as far as connections and limits allow. Call it after every event, and every second
    /// while [`BlobTransfers::is_busy`]. `is_idle` says whether nothing else waits to be sent to a peer.
    pub fn advance(&mut self, now: i64, may: PeerRights<'_>, is_idle: &dyn Fn(LinkId) -> bool) {
        self.resume_paused(now, may);
        let links: Vec<LinkId> = self.links.iter().filter(|(_, side)| !side.is_banned).map(|(link, _)| *link).collect();
        for link in links {
            self.serve_requests(link, may, is_idle(link));
            self.give_up_overdue(link, now, may);
            self.request_pieces(link, now, may);
            self.send_forgets(link);
            self.send_offers(link);
        }
    }

    fn send_message(&mut self, link: LinkId, word: &BlobMessage<'_>) {
        if self.has_peer(link) {
            self.commands.push_back(BlobCommand::Send { link, data: word.encode() });
        }
    }

    fn log_once(&mut self, link: LinkId, words: &'static str) {
        if self.links.get_mut(&link).is_some_and(|side| side.logged.insert(words)) {
            self.commands.push_back(BlobCommand::Log { link, words });
        }
    }

    /// Stops exchanging blobs with a peer that broke the blob protocol. Documents aren't affected.
    fn ban_peer(&mut self, link: LinkId, words: &'static str, may: PeerRights<'_>) {
        self.log_once(link, words);
        let Some(side) = self.links.get_mut(&link) else { return };
        side.is_banned = true;
        side.requests.clear();
        side.in_flight.clear();
        side.to_offer.clear();
        side.offered.clear();
        side.to_forget.clear();
        side.unanswered_forgets.clear();
        let gives = std::mem::take(&mut side.offers);
        let active = std::mem::take(&mut side.active);
        for item in active.into_iter().chain(gives) {
            self.drop_source(item, link, may);
        }
    }
}

#[cfg(test)]
mod tests;
