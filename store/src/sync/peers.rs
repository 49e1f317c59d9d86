//! All connections of one program over its documents, as one state machine.
//!
//! The caller reports connections ([`SyncPeers::connect`], [`SyncPeers::receive`], [`SyncPeers::disconnect`]) and its
//! own changes **once they are on disk** ([`SyncPeers::changed`]), and after each call performs the outputs of
//! [`SyncPeers::take_outputs`]: [`PeersOutput::Load`] is answered by [`SyncPeers::loaded`], [`PeersOutput::Store`] by
//! [`SyncPeers::stored`] or [`SyncPeers::refused`]. A program that dials names the documents it wants
//! ([`SyncPeers::follow`]); one that listens needn't. A newly created document ([`SyncPeers::initial_push`]) is sent to
//! another Tracebook at once instead of comparing first.
//!
//! Nothing is sent before it's durable: while a peer's changes are being written to disk, nothing is sent about their
//! document, and further messages about it wait. So they're also written as one batch.
//!
//! A peer that breaks the protocol, or whose bytes make automerge fail, loses its connection and nothing else.

mod document;
mod ephemeral;
mod handshake;
mod initial_push;
mod reconcile;

use self::document::SyncDocument;
use super::inflate;
use super::wire::{self, PeerId, PeerMetadata, WireMessage};
use crate::document::ChangeParcel;
use crate::id::DocId;
use automerge::ChangeHash;
use automerge::sync::{self, Capability, MessageFlags};
use ephemeral::HeardMessages;
use initial_push::PeerLack;
pub use reconcile::{HeadsHash, VolumeDocs};
use reconcile::{HeadsHashes, PeerVolumes};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Id of a connection, chosen by the caller and never reused.
pub type LinkId = u64;
/// Id of a pending write to the disk.
pub type DiskTicket = u64;

/// A peer's access to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentAccess {
    /// No access: the peer isn't told that the document exists.
    None,
    /// Read access: the peer gets changes, but its own are rejected.
    Read,
    /// Read and write access.
    Write,
}

/// Returns which access a peer has to a document.
pub type SharePolicy = Box<dyn Fn(DocId) -> DocumentAccess + Send>;

/// An action for the caller to perform.
#[derive(Debug)]
pub enum PeersOutput {
    /// Send these bytes as one message. Messages must be sent in the order of these outputs.
    Send {
        /// The connection to send over.
        link: LinkId,
        /// The encoded message.
        bytes: Vec<u8>,
    },
    /// Close the connection. It's already removed here.
    Close {
        /// The connection to close.
        link: LinkId,
        /// The reason, for the log.
        why: String,
    },
    /// A peer completed the handshake and was accepted.
    Greeted {
        /// The connection that's now open.
        link: LinkId,
        /// The peer's id, as it gave it.
        peer: PeerId,
        /// Metadata that the peer announced.
        metadata: PeerMetadata,
    },
    /// Read the document from the disk and call [`SyncPeers::loaded`].
    Load {
        /// The document to read from disk.
        doc: DocId,
    },
    /// Append these changes to the document, durably, and call [`SyncPeers::stored`] or [`SyncPeers::refused`].
    Store {
        /// The document to write to disk.
        doc: DocId,
        /// Ticket to confirm the write with.
        ticket: DiskTicket,
        /// The connection that the changes came from; if there are several, the last one.
        link: LinkId,
        /// A chunk of changes (or a whole document) as automerge reads it.
        parcel: ChangeParcel,
    },
    /// A peer sent an ephemeral message about a document.
    Ephemeral {
        /// The connection that it came over.
        link: LinkId,
        /// The document that the message is about.
        doc: DocId,
        /// The peer that wrote it, which may be behind a hub.
        from: PeerId,
        /// The CBOR content.
        data: Vec<u8>,
    },
    /// The peer does not have the document, or does not share it.
    Absent {
        /// The peer that doesn't have the document.
        link: LinkId,
        /// The document that it lacks.
        doc: DocId,
        /// Whether this device has the document.
        ours: bool,
    },
    /// It changed whether both sides have the same changes of a document; see [`SyncPeers::is_in_sync`].
    SyncChanged {
        /// The connection whose state changed.
        link: LinkId,
        /// The document that was compared.
        doc: DocId,
        /// Whether both sides now have the same changes.
        same: bool,
    },
    /// Something from a peer was rejected. The peer stays connected.
    Refused {
        /// The connection that the message came from.
        link: LinkId,
        /// The document that the message was about.
        doc: DocId,
        /// The reason, for the log.
        why: String,
    },
    /// A Tracebook peer wants to compare a volume: call [`SyncPeers::scoped`] with the volume's documents.
    NeedVolumeDocs {
        /// The peer to compare with.
        link: LinkId,
        /// The volume to compare.
        scope: DocId,
    },
    /// Both sides have the same changes of these documents. They aren't synced until they change.
    Agreed {
        /// The connection over which both sides agreed.
        link: LinkId,
        /// Documents that are the same on both sides.
        docs: Vec<DocId>,
    },
    /// A Tracebook peer sent an extension message.
    Extension {
        /// The connection that it came from.
        link: LinkId,
        /// Topic of the message.
        topic: String,
        /// The content, which this crate doesn't read.
        data: Vec<u8>,
    },
}

/// Sync progress of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkProgress {
    /// Number of documents synced over the connection.
    pub documents: usize,
    /// Number of these documents that are the same on both sides.
    pub same: usize,
    /// Number of these documents that the peer doesn't have.
    pub absent: usize,
}

/// Limits that keep one peer from exhausting shared resources.
#[derive(Clone, Copy, Debug)]
pub struct SyncLimits {
    /// Maximum number of documents per connection.
    pub max_documents: usize,
    /// Maximum number of bytes of one connection's messages that may wait for documents to be loaded and written.
    pub max_waiting_bytes: usize,
    /// Maximum number of idle documents kept in memory.
    pub max_resting_documents: usize,
}

impl Default for SyncLimits {
    fn default() -> SyncLimits {
        SyncLimits { max_documents: 200_000, max_waiting_bytes: 256 << 20, max_resting_documents: 1_024 }
    }
}

/// Sync state of one document with one peer.
struct DocumentSyncState {
    state: sync::State,
    /// Whether the peer requested the document and wasn't answered yet.
    peer_requested: bool,
    /// Whether this side wants the document and has requested it.
    requested: bool,
    same: bool,
    absent: bool,
    /// Whether the peer is assumed to have no part of the document; see `offer.rs`.
    lacks: PeerLack,
    /// Whether the caller was notified that the peer may not write.
    warned: bool,
}

impl DocumentSyncState {
    /// Handles a message in which a peer only confirms that it has the same changes, if nothing follows from it.
    /// Returns whether it was such a message.
    ///
    /// It does the same as automerge, but without loading the document. With very many new documents, that's the last
    /// message about each, long after it was evicted here.
    fn absorb_acknowledgement(&mut self, message: &sync::Message) -> bool {
        let state = &mut self.state;
        let plain = message.flags.is_none_or(|flags| {
            !flags.contains(MessageFlags::SYNC_RESET) && flags.contains(MessageFlags::READ_ONLY) == state.peer_read_only
        });
        let same = message.changes.is_empty() && message.need.is_empty() && state.last_sent_heads == message.heads;
        if !plain || !same || !state.have_responded || state.needs_reset {
            return false;
        }
        if let Some(flags) = message.flags {
            let reset = flags.contains(MessageFlags::SUPPORTS_SYNC_RESET).then_some(Capability::SyncReset);
            state.their_capabilities = Some([Capability::MessageV2].into_iter().chain(reset).collect());
        }
        state.in_flight = false;
        state.sent_hashes.clear();
        state.shared_heads.clone_from(&message.heads);
        state.their_heads = Some(message.heads.clone());
        state.their_have = Some(message.have.clone());
        state.their_need = Some(Vec::new());
        true
    }
}

fn new_sync_state(read_only: bool) -> sync::State {
    if read_only { sync::State::new_read_only() } else { sync::State::new() }
}

/// State of one connection.
struct SyncPeer {
    /// Whether this side opened the connection.
    dialed: bool,
    /// The id that the peer must have, if it's known in advance.
    expected: Option<PeerId>,
    /// The peer's id, once it has completed the handshake.
    id: Option<PeerId>,
    metadata: PeerMetadata,
    share: SharePolicy,
    docs: BTreeMap<DocId, DocumentSyncState>,
    /// Documents to follow after the handshake.
    pending_docs: Vec<DocId>,
    waiting_bytes: usize,
    scopes: PeerVolumes,
}

/// The sync state of all connections and documents; see the module documentation.
pub struct SyncPeers {
    me: PeerId,
    metadata: PeerMetadata,
    limits: SyncLimits,
    links: BTreeMap<LinkId, SyncPeer>,
    docs: HashMap<DocId, Box<SyncDocument>>,
    followers: HashMap<DocId, BTreeSet<LinkId>>,
    tickets: HashMap<DiskTicket, DocId>,
    last_ticket: DiskTicket,
    touch_counter: u64,
    heard_messages: HeardMessages,
    prints: HeadsHashes,
    /// Number of documents in memory above which some are evicted.
    evict_at: usize,
    outputs: VecDeque<PeersOutput>,
}

impl std::fmt::Debug for SyncPeers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peers of {}: {} connections, {} documents", self.me, self.links.len(), self.docs.len())
    }
}

/// Why a document's chunks can't be read from storage, as a clause for the peers that follow it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ChunksReadError(pub String);

/// Why the bytes of a document or of a peer's message can't be used.
#[derive(Debug, thiserror::Error)]
enum SyncBytesError {
    #[error("its bytes make automerge fail")]
    AutomergePanicked,
    #[error(transparent)]
    Automerge(#[from] automerge::AutomergeError),
    #[error(transparent)]
    Chunks(#[from] ChunksReadError),
    #[error("it is not read")]
    NotLoaded,
    #[error("a comparison that cannot be read: {0}")]
    Comparison(#[from] negentropy::Error),
}

/// automerge has panicked on hostile bytes before, so a panic is attributed to the peer.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, SyncBytesError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| SyncBytesError::AutomergePanicked)
}

impl SyncPeers {
    /// Creates the state without connections. `me` is this program's id, which must be unique among peers.
    pub fn new(me: PeerId, metadata: PeerMetadata, limits: SyncLimits) -> SyncPeers {
        SyncPeers {
            me,
            metadata,
            limits,
            links: BTreeMap::new(),
            docs: HashMap::new(),
            followers: HashMap::new(),
            tickets: HashMap::new(),
            last_ticket: 0,
            touch_counter: 0,
            heard_messages: HeardMessages::default(),
            prints: HeadsHashes::default(),
            evict_at: limits.max_resting_documents * 2,
            outputs: VecDeque::new(),
        }
    }

    /// Returns the outputs to perform, in order. Call it after every other call.
    pub fn take_outputs(&mut self) -> Vec<PeersOutput> {
        self.evict_idle_documents();
        self.outputs.drain(..).collect()
    }

    /// Adds a connection. `dialed` means that this side opened it and sends the first message. `expected` is the proven
    /// id of the other side.
    pub fn connect(&mut self, link: LinkId, dialed: bool, expected: Option<PeerId>, share: SharePolicy) {
        let peer = SyncPeer {
            dialed,
            expected,
            id: None,
            metadata: PeerMetadata::default(),
            share,
            docs: BTreeMap::new(),
            pending_docs: Vec::new(),
            waiting_bytes: 0,
            scopes: PeerVolumes::default(),
        };
        self.links.insert(link, peer);
        if dialed {
            let (sender, metadata) = (self.me.clone(), self.metadata.clone());
            self.send(link, &WireMessage::Join { sender, versions: vec![wire::PROTOCOL_VERSION.to_owned()], metadata });
        }
    }

    /// Removes a closed connection.
    pub fn disconnect(&mut self, link: LinkId) {
        let Some(peer) = self.links.remove(&link) else { return };
        for doc in peer.docs.keys() {
            self.unfollow(link, *doc);
        }
    }

    /// Changes a peer's rights. Documents that it may no longer see aren't synced with it any longer.
    pub fn set_share(&mut self, link: LinkId, share: SharePolicy) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        peer.share = share;
        let docs: Vec<DocId> = peer.docs.keys().copied().collect();
        for doc in docs {
            let Some(peer) = self.links.get_mut(&link) else { return };
            let access = (peer.share)(doc);
            if access == DocumentAccess::None {
                peer.docs.remove(&doc);
                self.unfollow(link, doc);
                self.release_document(doc);
                self.send_unavailable(link, doc);
            } else if let Some(between) = peer.docs.get_mut(&doc) {
                between.state.set_read_only(access == DocumentAccess::Read);
                self.send_when_durable(doc);
            }
        }
    }

    /// Starts to sync a document with a peer: the local state is offered, and missing changes are requested.
    pub fn follow(&mut self, link: LinkId, doc: DocId) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        if peer.id.is_none() {
            peer.pending_docs.push(doc);
            return;
        }
        if self.ensure_sync_state(link, doc) {
            self.send_when_durable(doc);
        }
    }

    /// Handles a received message.
    pub fn receive(&mut self, link: LinkId, bytes: &[u8]) {
        if !self.links.contains_key(&link) {
            return;
        }
        match wire::decode(bytes) {
            Ok(message) => self.handle_message(link, message),
            Err(error) => self.fail_link(link, &error.to_string()),
        }
    }

    fn handle_message(&mut self, link: LinkId, message: WireMessage) {
        let id = self.links.get(&link).and_then(|peer| peer.id.clone());
        let id = match (&message, id) {
            (WireMessage::Join { .. } | WireMessage::Peer { .. }, _) => return self.on_greeting(link, message),
            (WireMessage::Error { message }, _) => return self.close_link(link, &format!("it says: {message}")),
            (WireMessage::Unknown { .. }, _) => return,
            (_, None) => return self.fail_link(link, "it spoke before it greeted"),
            (_, Some(id)) => id,
        };
        match message {
            WireMessage::Request { sender, .. }
            | WireMessage::Sync { sender, .. }
            | WireMessage::Unavailable { sender, .. }
            | WireMessage::Extension { sender, .. }
                if sender != id =>
            {
                self.fail_link(link, &format!("it is {id} and claims to be {sender}"));
            }
            WireMessage::Request { doc, data, .. } => self.handle_sync(link, doc, &data, true),
            WireMessage::Sync { doc, data, .. } => self.handle_sync(link, doc, &data, false),
            WireMessage::Unavailable { doc, .. } => {
                let between = self.links.get_mut(&link).and_then(|peer| peer.docs.get_mut(&doc));
                if let Some(between) = between {
                    between.absent = true;
                    between.lacks.note_unavailable(between.requested);
                    if between.state.their_heads.is_some() {
                        // The peer had the document and stops syncing it. If the peer starts again, it's answered.
                        between.state = new_sync_state(between.state.read_only);
                    }
                    let ours = !between.requested;
                    self.outputs.push_back(PeersOutput::Absent { link, doc, ours });
                }
            }
            WireMessage::Ephemeral { sender, count, session, doc, data, .. } => {
                self.on_ephemeral(link, doc, (sender, session, count), data);
            }
            WireMessage::Extension { topic, data, .. } if topic == reconcile::RECONCILE_TOPIC => {
                self.on_comparison(link, &data)
            }
            WireMessage::Extension { topic, data, .. } => {
                self.outputs.push_back(PeersOutput::Extension { link, topic, data })
            }
            WireMessage::Leave { .. } => self.close_link(link, "it left"),
            // These are offers and need no answer.
            WireMessage::Subscription { .. } | WireMessage::RemoteHeads { .. } => {}
            WireMessage::Join { .. }
            | WireMessage::Peer { .. }
            | WireMessage::Error { .. }
            | WireMessage::Unknown { .. } => {}
        }
    }

    /// Handles a sync message about a document.
    fn handle_sync(&mut self, link: LinkId, doc: DocId, data: &[u8], request: bool) {
        let Some(peer) = self.links.get(&link) else { return };
        let access = (peer.share)(doc);
        if access == DocumentAccess::None {
            self.send_unavailable(link, doc);
            let why = "it asks for a document that is not shared with it".to_owned();
            self.outputs.push_back(PeersOutput::Refused { link, doc, why });
            return;
        }
        let message = match catch_panic(|| sync::Message::decode(data)) {
            Ok(Ok(message)) => message,
            Ok(Err(error)) => return self.fail_link(link, &format!("a sync message that cannot be read: {error}")),
            Err(why) => return self.fail_link(link, &why.to_string()),
        };
        let mut left = inflate::MAX_INFLATED_BYTES;
        if let Some(why) = message.changes.iter().find_map(|chunk| inflate::check_unpacked_size(chunk, &mut left).err())
        {
            return self.fail_link(link, &format!("a sync message that is refused: {why}"));
        }
        if !self.ensure_sync_state(link, doc) {
            return;
        }
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(between) = peer.docs.get_mut(&doc) else { return };
        between.peer_requested |= request;
        (between.absent, between.lacks) = (false, PeerLack::No);
        if access == DocumentAccess::Read
            && !message.changes.is_empty()
            && !std::mem::replace(&mut between.warned, true)
        {
            let why = "it writes to a document that it may only read".to_owned();
            self.outputs.push_back(PeersOutput::Refused { link, doc, why });
        }
        let unread = self.docs.get(&doc).is_none_or(|document| document.is_idle_whole());
        if unread && self.prints.matches(doc, &message.heads) && between.absorb_acknowledgement(&message) {
            between.peer_requested = false;
            if !std::mem::replace(&mut between.same, true) {
                self.outputs.push_back(PeersOutput::SyncChanged { link, doc, same: true });
            }
            return;
        }
        peer.waiting_bytes += data.len();
        if peer.waiting_bytes > self.limits.max_waiting_bytes {
            return self.fail_link(link, "it sends faster than its changes can be stored");
        }
        self.ensure_document(doc).queue.push_back((link, message, data.len()));
        self.process_queue(doc);
    }

    /// Ensures that there's a sync state for a peer and a document. Returns whether there's room for it.
    fn ensure_sync_state(&mut self, link: LinkId, doc: DocId) -> bool {
        let limit = self.limits.max_documents;
        let Some(peer) = self.links.get_mut(&link) else { return false };
        if peer.docs.contains_key(&doc) {
            return true;
        }
        if peer.docs.len() >= limit {
            self.fail_link(link, "it is about too many documents");
            return false;
        }
        // A compared document may no longer be shared when it's followed.
        let access = (peer.share)(doc);
        if access == DocumentAccess::None {
            return false;
        }
        let state = new_sync_state(access == DocumentAccess::Read);
        let said = DocumentSyncState {
            state,
            peer_requested: false,
            requested: false,
            same: false,
            absent: false,
            lacks: PeerLack::Unknown,
            warned: false,
        };
        peer.docs.insert(doc, said);
        self.followers.entry(doc).or_default().insert(link);
        true
    }

    /// Sends to all peers that sync this document what they lack, if all of it is on disk.
    fn send_updates(&mut self, doc: DocId) {
        let links: Vec<LinkId> = self.followers.get(&doc).into_iter().flatten().copied().collect();
        for link in links {
            self.send_update(link, doc);
        }
    }

    fn send_update(&mut self, link: LinkId, doc: DocId) {
        let Some(document) = self.docs.get_mut(&doc).filter(|document| document.is_durable()) else { return };
        let Some(peer) = self.links.get_mut(&link) else { return };
        let (Some(id), Some(between)) = (peer.id.clone(), peer.docs.get_mut(&doc)) else { return };
        let heads = document.heads();
        let empty = heads.is_empty();
        let them = between.state.their_heads.clone();
        let offers = !empty && peer.metadata.tracebook.is_some() && between.prepare_full_send();
        if empty && between.peer_requested && them.as_ref().is_none_or(Vec::is_empty) {
            // Neither side has it. If this side wants it, it was requested before.
            between.peer_requested = false;
            self.send_unavailable(link, doc);
            self.outputs.push_back(PeersOutput::Absent { link, doc, ours: false });
            return;
        }
        let mut made = Vec::new();
        // automerge restarts by announcing an empty document first; the actual state must follow (R: samod-core).
        for _ in 0..3 {
            let message = match document.next_message(&mut between.state) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                // A problem with the data on disk isn't the peer's fault.
                Err(why) if document.is_whole() => return self.stop_syncing(doc, &why.to_string()),
                Err(why) => return self.fail_link(link, &why.to_string()),
            };
            let again = message.heads != heads;
            if again {
                between.state.last_sent_heads.clone_from(&message.heads);
            }
            let data = message.encode();
            let (sender, target) = (self.me.clone(), id.clone());
            let first = empty && them.is_none() && !std::mem::replace(&mut between.requested, true);
            made.push(if first {
                WireMessage::Request { sender, target, doc, data }
            } else {
                WireMessage::Sync { sender, target, doc, data }
            });
            if !again {
                break;
            }
        }
        between.peer_requested = false;
        if offers {
            between.finish_full_send();
        }
        let same = them.as_ref() == Some(&heads);
        if std::mem::replace(&mut between.same, same) != same {
            self.outputs.push_back(PeersOutput::SyncChanged { link, doc, same });
        }
        made.iter().for_each(|message| self.send(link, message));
    }

    /// Whether both sides have the same changes of a document, as far as they know of each other; `None` if it isn't
    /// synced.
    pub fn is_in_sync(&self, link: LinkId, doc: DocId) -> Option<bool> {
        self.links.get(&link)?.docs.get(&doc).map(|between| between.same)
    }

    /// Returns the sync progress of a connection.
    pub fn link_progress(&self, link: LinkId) -> LinkProgress {
        let Some(peer) = self.links.get(&link) else { return LinkProgress::default() };
        let mut progress =
            LinkProgress { documents: peer.docs.len() + peer.pending_docs.len(), ..LinkProgress::default() };
        for between in peer.docs.values() {
            progress.same += usize::from(between.same);
            progress.absent += usize::from(between.absent);
        }
        progress
    }

    /// Returns the peer's id, once it has completed the handshake.
    pub fn peer_id(&self, link: LinkId) -> Option<&PeerId> {
        self.links.get(&link)?.id.as_ref()
    }

    /// Returns the heads of a document in memory, for tests and statistics.
    pub fn heads(&self, doc: DocId) -> Option<Vec<ChangeHash>> {
        self.docs.get(&doc).map(|document| document.heads())
    }

    /// Sends an extension message to a Tracebook peer.
    pub fn send_extension(&mut self, link: LinkId, topic: &str, data: Vec<u8>) {
        let Some(target) = self.peer_id(link).cloned() else { return };
        self.send(link, &WireMessage::Extension { sender: self.me.clone(), target, topic: topic.to_owned(), data });
    }

    fn send_unavailable(&mut self, link: LinkId, doc: DocId) {
        let Some(target) = self.peer_id(link).cloned() else { return };
        self.send(link, &WireMessage::Unavailable { sender: self.me.clone(), target, doc });
    }

    fn send(&mut self, link: LinkId, message: &WireMessage) {
        self.outputs.push_back(PeersOutput::Send { link, bytes: wire::encode(message) });
    }

    /// Closes a connection whose peer violated the protocol, and tells it why.
    fn fail_link(&mut self, link: LinkId, why: &str) {
        if self.links.contains_key(&link) {
            self.send(link, &WireMessage::Error { message: why.chars().take(500).collect() });
            self.close_link(link, why);
        }
    }

    fn close_link(&mut self, link: LinkId, why: &str) {
        self.disconnect(link);
        self.outputs.push_back(PeersOutput::Close { link, why: why.to_owned() });
    }

    fn unfollow(&mut self, link: LinkId, doc: DocId) {
        if let Some(followers) = self.followers.get_mut(&doc) {
            followers.remove(&link);
            if followers.is_empty() {
                self.followers.remove(&doc);
            }
        }
        if let Some(document) = self.docs.get_mut(&doc) {
            document.queue.retain(|(from, ..)| *from != link);
        }
    }
}
