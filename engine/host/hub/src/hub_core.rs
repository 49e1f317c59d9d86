//! Core thread of the hub, the only one that owns the protocol. It receives everything over one channel: frames,
//! results of the store, news from other replicas, changed lists. It never waits for anything else.

use crate::blobs::{self, BlobKeeping};
use crate::connections::HubPeer;
use crate::error::HubStartError;
use crate::metrics::HubMetrics;
use crate::policy::{HubPolicy, SharedVolumes};
use crate::storage::{HubBus, HubStorage, HubStore, ReplicaNews, SharedBytes, StoreFailure};
use crate::{HubLog, HubSettings};
use peers::DeviceId;
use peers::devices::PairedDevice;
use peers::handshake::{ControlMessage, PeerFrame};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use store::sync::blobs::BLOBS_VERSION;
use store::sync::{
    self, ChunksReadError, DiskTicket, LinkId, PeerId, PeerMetadata, PeersOutput, SyncPeers, VolumeDocs, wire,
};
use store::{ActorId, DeviceAccess, DocId, VolumeDoc};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedSender;

/// Maximum number of bytes queued for one connection.
const MAX_CLIENT_QUEUE_BYTES: usize = 128 << 20;
/// Maximum number of bytes queued for all connections; beyond it, the connection with the longest queue is closed.
const MAX_TOTAL_QUEUE_BYTES: usize = 512 << 20;
/// How often each device's storage usage is saved.
const USAGE_SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// Name of the file with storage usage, in the hub's folder.
const USAGE_FILE: &str = "usage.json";
/// Link over which other replicas' ephemeral messages arrive.
const BUS_LINK: LinkId = 0;

/// Identity and rights of the peer of a connection.
#[derive(Clone, Debug)]
pub(crate) struct PeerIdentity {
    /// The device, whose key is proven; `None`: the peer was admitted without one.
    pub(crate) device: Option<DeviceId>,
    /// The peer's name in the log.
    pub(crate) name: String,
    /// The peer's maximum access.
    pub(crate) max_access: DeviceAccess,
}

/// Message to a connection's task: a frame to send, or the request to close.
#[derive(Debug)]
pub(crate) enum OutgoingFrame {
    Frame(PeerFrame, WaitingBytes),
    Close(String),
}

/// Queue of frames to a connection's task.
#[derive(Clone, Debug)]
pub(crate) struct FrameOutbox {
    pub(crate) sender: UnboundedSender<OutgoingFrame>,
    /// Number of bytes in this queue.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// Number of bytes in the queues of all connections.
    pub(crate) all: Arc<AtomicUsize>,
    pub(crate) connection: Arc<HubPeer>,
}

impl FrameOutbox {
    /// Appends a frame to the queue.
    fn enqueue(&self, frame: PeerFrame) {
        let size = match &frame {
            PeerFrame::Binary(bytes) => bytes.len(),
            PeerFrame::Text(text) => text.len(),
        };
        self.waiting.fetch_add(size, Ordering::Relaxed);
        self.all.fetch_add(size, Ordering::Relaxed);
        let waits = WaitingBytes { size, own: Arc::clone(&self.waiting), all: Arc::clone(&self.all) };
        // Here and below: sending fails only when the program or the connection ends.
        let _ = self.sender.send(OutgoingFrame::Frame(frame, waits));
    }
}

/// Counts a frame's bytes as queued until it's dropped.
#[derive(Debug)]
pub(crate) struct WaitingBytes {
    size: usize,
    own: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.own.fetch_sub(self.size, Ordering::Relaxed);
        self.all.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// Input of the core thread.
pub(crate) enum CoreInput {
    /// A client has greeted with this name; the greeting itself follows as a frame.
    Connect {
        link: LinkId,
        who: PeerIdentity,
        peer: PeerId,
        outbox: FrameOutbox,
    },
    Frame {
        link: LinkId,
        bytes: Vec<u8>,
        /// The frame's permit in the input queue.
        held: Option<OwnedSemaphorePermit>,
    },
    Gone {
        link: LinkId,
    },
    Loaded {
        doc: DocId,
        chunks: Result<Vec<Vec<u8>>, ChunksReadError>,
    },
    Volume {
        doc: DocId,
        chunks: Result<Vec<Vec<u8>>, ChunksReadError>,
    },
    Scope {
        link: LinkId,
        scope: DocId,
        docs: VolumeDocs,
    },
    Stored {
        ticket: DiskTicket,
        doc: DocId,
        size: u64,
        by: Option<DeviceId>,
        since: Instant,
        /// The stored chunk, if it belongs to a volume that's being compared.
        named: Option<SharedBytes>,
        done: Result<(), StoreFailure>,
    },
    Blob(blobs::BlobResult),
    ReplicaNews(ReplicaNews),
    Policy(HubPolicy),
    Devices(BTreeMap<DeviceId, PairedDevice>),
    Stop,
}

struct CoreClient {
    who: PeerIdentity,
    /// The name that the client greeted with.
    peer: PeerId,
    outbox: FrameOutbox,
    /// Whether the client's device has used up its quota.
    full: bool,
}

/// The documents of a volume. Finding them loads its whole document, so later changes are added incrementally. Deleted
/// ones may stay: no other peer lists them, so they aren't compared.
#[derive(Default)]
struct VolumeScope {
    /// The documents that are known; `None`: they are being loaded.
    docs: Option<VolumeDocs>,
    /// Documents added since the scope was created.
    new: BTreeSet<DocId>,
}

pub(crate) struct HubCore {
    peers: SyncPeers,
    clients: HashMap<LinkId, CoreClient>,
    shares: Arc<SharedVolumes>,
    store: Arc<dyn HubStore>,
    bus: Arc<dyn HubBus>,
    inputs: Sender<CoreInput>,
    metrics: HubMetrics,
    log: HubLog,
    settings: HubSettings,
    /// Number of bytes that each device has stored; the empty name covers all peers without a key.
    usage: BTreeMap<String, u64>,
    usage_kept: (Instant, u64),
    /// Documents of volumes that are being compared, by volume.
    scopes: HashMap<DocId, VolumeScope>,
    /// The current list of devices.
    devices: BTreeMap<DeviceId, PairedDevice>,
    bus_name: String,
    /// State of blob transfers, if the hub stores blobs.
    pub(crate) blobs: Option<BlobKeeping>,
}

/// Converts a device's access into the sync protocol's type.
fn document_access(access: DeviceAccess) -> sync::DocumentAccess {
    match access {
        DeviceAccess::None => sync::DocumentAccess::None,
        DeviceAccess::Read => sync::DocumentAccess::Read,
        DeviceAccess::Write => sync::DocumentAccess::Write,
    }
}

/// Returns the key of a device in the usage table.
fn account_name(device: Option<DeviceId>) -> String {
    device.map(|device| device.to_string()).unwrap_or_default()
}

impl HubCore {
    pub(crate) fn new(
        me: String,
        ((store, files, bus), metrics): (HubStorage, HubMetrics),
        settings: HubSettings,
        inputs: Sender<CoreInput>,
        log: HubLog,
    ) -> Result<HubCore, HubStartError> {
        // Volumes can be compared only if the store knows all stored documents.
        let all = store.list_documents();
        let tracebook = all.is_some().then_some(wire::EXTENSIONS_VERSION);
        let blobs = Some(BlobKeeping::start(files, inputs.clone())?);
        let known = Some(BLOBS_VERSION);
        let metadata = PeerMetadata { storage: Some(me.clone()), ephemeral: false, tracebook, blobs: known };
        let chance: [u8; 16] = peers::key::random_bytes()?;
        let usage = std::fs::read_to_string(settings.folder.join(USAGE_FILE)).ok();
        let mut core = HubCore {
            peers: SyncPeers::new(PeerId(me), metadata, sync::peers::SyncLimits::default()),
            clients: HashMap::new(),
            shares: Arc::default(),
            store,
            bus,
            inputs,
            metrics,
            log,
            settings,
            usage: usage.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            usage_kept: (Instant::now(), 0),
            scopes: HashMap::new(),
            devices: BTreeMap::new(),
            // No client can use this name.
            bus_name: format!("replicas {}", chance.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            blobs,
        };
        for doc in all.into_iter().flatten() {
            core.peers.set_heads_hash(doc, None);
        }
        core.join_bus();
        Ok(core)
    }

    /// Connects the bus as a peer that follows no documents, so that other replicas' ephemeral messages arrive through
    /// it.
    fn join_bus(&mut self) {
        let name = PeerId(self.bus_name.clone());
        self.peers.connect(BUS_LINK, false, Some(name.clone()), Box::new(|_| sync::DocumentAccess::Read));
        let versions = vec![wire::PROTOCOL_VERSION.to_owned()];
        let metadata = PeerMetadata { ephemeral: true, ..PeerMetadata::default() };
        self.peers.receive(BUS_LINK, &wire::encode(&wire::WireMessage::Join { sender: name, versions, metadata }));
        self.perform(None);
    }

    /// Returns what devices may do with each volume, which this thread keeps up to date.
    pub(crate) fn shared_volumes(&self) -> Arc<SharedVolumes> {
        Arc::clone(&self.shares)
    }

    pub(crate) fn run(mut self, told: &Receiver<CoreInput>) {
        loop {
            let input = match self.blobs_timeout() {
                None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => told.recv_timeout(wait),
            };
            match input {
                Ok(CoreInput::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(input) => {
                    self.handle_input(input);
                    self.step_blobs(false);
                }
                Err(RecvTimeoutError::Timeout) => self.step_blobs(true),
            }
        }
        let names: Vec<LinkId> = self.clients.keys().copied().collect();
        for link in names {
            self.end_connection(link, "the hub is ending; it will be back");
        }
        if let Some(keeping) = self.blobs.take() {
            keeping.end();
        }
        self.save_usage();
    }

    fn handle_input(&mut self, input: CoreInput) {
        match input {
            CoreInput::Connect { link, who, peer, outbox } => {
                // A name belongs to its connected client. The same device may reconnect before its old connection ends.
                let other = |client: &CoreClient| client.peer == peer && client.who.device != who.device;
                if self.clients.values().any(other) {
                    let why = "it uses the name of another connected device";
                    return self.reject_client(
                        &who.name,
                        &outbox,
                        why,
                        "another device is already connected under that name",
                    );
                }
                // The key was proven before the greeting, which may be long ago, so the current list decides.
                let mut who = who;
                if let Some(id) = who.device {
                    let device = self.devices.get(&id);
                    if let Err(why) = peers::lan::check_is_paired(device) {
                        let why = why.to_string();
                        return self.reject_client(&who.name, &outbox, &why, &why);
                    }
                    who.max_access = device.map_or(DeviceAccess::None, |device| device.access);
                }
                let expected = Some(peer.clone());
                let full = self.is_full(who.device);
                let share = self.share_policy(&who, full);
                self.metrics.connections.inc();
                self.metrics.connected.inc();
                self.clients.insert(link, CoreClient { who, peer, outbox, full });
                self.peers.connect(link, false, expected, share);
                self.perform(None);
            }
            CoreInput::Frame { link, bytes, held } => {
                self.metrics.received.inc();
                self.metrics.received_bytes.inc_by(bytes.len() as u64);
                self.peers.receive(link, &bytes);
                self.perform(Some(bytes));
                drop(held);
            }
            CoreInput::Gone { link } => {
                self.peers.disconnect(link);
                self.perform(None);
                self.remove_client(link);
            }
            CoreInput::Loaded { doc, chunks } => {
                self.peers.on_loaded(doc, chunks);
                self.perform(None);
            }
            CoreInput::Volume { doc, chunks } => {
                if chunks.is_ok_and(|chunks| self.shares.update_volume(doc, &chunks)) {
                    self.refresh_shares(|_| true);
                }
            }
            CoreInput::Scope { link, scope, docs } => {
                if docs.is_empty() {
                    // The document isn't a volume, or can't be loaded.
                    self.scopes.remove(&scope);
                } else if let Some(known) = self.scopes.get_mut(&scope) {
                    known.docs.get_or_insert_with(|| docs.clone());
                }
                let docs = self.loaded_scope(scope).unwrap_or(docs);
                self.peers.on_volume_docs(link, scope, docs);
                self.perform(None);
            }
            CoreInput::Stored { ticket, doc, size, by, since, named, done } => {
                if let Some(bytes) = named {
                    self.update_scope(doc, &bytes);
                }
                self.handle_stored(ticket, doc, size, by, since, done);
            }
            CoreInput::Blob(told) => self.handle_blob_result(told),
            CoreInput::ReplicaNews(news) => self.handle_replica_news(news),
            CoreInput::Policy(policy) => {
                for volume in self.shares.replace_policy(policy) {
                    self.read_volume(volume);
                }
                self.refresh_shares(|_| true);
            }
            CoreInput::Devices(list) => self.update_devices(list),
            CoreInput::Stop => {}
        }
    }

    /// Performs the protocol's outputs. `frame` is the received frame that caused them.
    fn perform(&mut self, frame: Option<Vec<u8>>) {
        let mut frame = frame;
        for output in self.peers.take_outputs() {
            match output {
                PeersOutput::Send { link, bytes } => self.send(link, bytes),
                PeersOutput::Close { link: BUS_LINK, .. } => self.join_bus(),
                PeersOutput::Close { link, why } => {
                    self.metrics.ended.inc();
                    self.end_connection(link, &why);
                }
                PeersOutput::Greeted { link, peer, metadata } => {
                    self.connect_blob_peer(link, peer, &metadata);
                    if let Some(client) = self.clients.get(&link) {
                        (self.log)(&format!("{} is here", client.who.name));
                    }
                }
                PeersOutput::Load { doc } => {
                    let inputs = self.inputs.clone();
                    let loaded = Box::new(move |chunks| {
                        let _ = inputs.send(CoreInput::Loaded { doc, chunks });
                    });
                    self.store.load(doc, loaded);
                }
                PeersOutput::Store { doc, ticket, link, parcel } => {
                    let bytes = parcel.bytes;
                    let (inputs, since, size) = (self.inputs.clone(), Instant::now(), bytes.len() as u64);
                    let by = self.clients.get(&link).and_then(|client| client.who.device);
                    let bytes = Arc::new(bytes);
                    let named = self.scopes.contains_key(&doc).then(|| Arc::clone(&bytes));
                    let done = Box::new(move |done| {
                        let _ = inputs.send(CoreInput::Stored { ticket, doc, size, by, since, named, done });
                    });
                    self.store.append(doc, bytes, done);
                }
                PeersOutput::Ephemeral { link, .. } => {
                    // Changes of another replica aren't sent back to it.
                    if let Some(frame) = frame.take().filter(|_| link != BUS_LINK) {
                        self.bus.announce(ReplicaNews::Ephemeral(Arc::new(frame)));
                    }
                }
                PeersOutput::Refused { link, doc, why } => {
                    self.metrics.refused.inc();
                    if let Some(client) = self.clients.get(&link) {
                        (self.log)(&format!("{}: {why}: {doc}", client.who.name));
                        // The device's user may not know the reason. Other programs don't understand this message.
                        if client.who.device.is_some() {
                            let words = match self.peers.access(link, doc) {
                                sync::DocumentAccess::Read if client.full => {
                                    "changes made here aren't accepted: the hub is full"
                                }
                                sync::DocumentAccess::Read => {
                                    "changes made here aren't accepted: this device has read access only"
                                }
                                sync::DocumentAccess::None | sync::DocumentAccess::Write => {
                                    "some of it isn't shared with this device"
                                }
                            };
                            client.outbox.enqueue(ControlMessage::Told(words.to_owned()).to_frame());
                        }
                    }
                }
                PeersOutput::NeedVolumeDocs { link, scope } => self.load_scope(link, scope),
                PeersOutput::Extension { link, topic, data } => self.receive_blob_message(link, &topic, &data),
                PeersOutput::Absent { .. } | PeersOutput::SyncChanged { .. } | PeersOutput::Agreed { .. } => {}
            }
        }
    }

    fn send(&mut self, link: LinkId, bytes: Vec<u8>) {
        let Some(client) = self.clients.get(&link) else { return };
        let size = bytes.len();
        self.metrics.sent.inc();
        self.metrics.sent_bytes.inc_by(size as u64);
        client.outbox.enqueue(PeerFrame::Binary(bytes));
        if client.outbox.waiting.load(Ordering::Relaxed) > MAX_CLIENT_QUEUE_BYTES {
            self.drop_slow_client(link);
        } else if client.outbox.all.load(Ordering::Relaxed) > MAX_TOTAL_QUEUE_BYTES {
            let waiting = |client: &CoreClient| client.outbox.waiting.load(Ordering::Relaxed);
            let most = self.clients.iter().max_by_key(|(_, client)| waiting(client)).map(|(link, _)| *link);
            most.into_iter().for_each(|link| self.drop_slow_client(link));
        }
    }

    /// Closes a connection that doesn't accept data, and drops its queue.
    fn drop_slow_client(&mut self, link: LinkId) {
        let connection = self.clients.get(&link).map(|client| Arc::clone(&client.outbox.connection));
        self.peers.disconnect(link);
        self.end_connection(link, "it doesn't receive what it's sent");
        connection.iter().for_each(|connection| connection.close());
    }

    /// Rejects a client, and reports the reason to the log and the client.
    fn reject_client(&self, name: &str, outbox: &FrameOutbox, why: &str, words: &str) {
        self.metrics.refused.inc();
        (self.log)(&format!("{name} was refused: {why}"));
        outbox.enqueue(ControlMessage::Refused(words.to_owned()).to_frame());
        let _ = outbox.sender.send(OutgoingFrame::Close(words.to_owned()));
    }

    /// Ends a connection, and reports the reason to the log and the client.
    fn end_connection(&mut self, link: LinkId, why: &str) {
        let Some(client) = self.clients.get(&link) else { return };
        (self.log)(&format!("{} goes: {why}", client.who.name));
        client.outbox.enqueue(ControlMessage::Refused(why.to_owned()).to_frame());
        let _ = client.outbox.sender.send(OutgoingFrame::Close(why.to_owned()));
        self.remove_client(link);
    }

    fn remove_client(&mut self, link: LinkId) {
        if self.clients.remove(&link).is_some() {
            self.metrics.connections.dec();
            self.mark_blobs_stale();
        }
    }

    fn share_policy(&self, who: &PeerIdentity, full: bool) -> store::sync::SharePolicy {
        let shares = Arc::clone(&self.shares);
        let most = if full { who.max_access.min(DeviceAccess::Read) } else { who.max_access };
        let device = who.device;
        Box::new(move |doc| document_access(shares.access(device, most, doc)))
    }

    /// Applies rights to the selected clients again after they may have changed.
    fn refresh_shares(&mut self, of: impl Fn(&CoreClient) -> bool) {
        let links: Vec<LinkId> = self.clients.iter().filter(|(_, client)| of(client)).map(|(link, _)| *link).collect();
        for link in links {
            let Some(client) = self.clients.get(&link) else { continue };
            let share = self.share_policy(&client.who, client.full);
            self.peers.set_share(link, share);
            self.perform(None);
        }
    }

    /// Loads the list of a volume's documents, on the store's thread.
    fn load_scope(&mut self, link: LinkId, scope: DocId) {
        let inputs = self.inputs.clone();
        if let Some(docs) = self.loaded_scope(scope) {
            let _ = inputs.send(CoreInput::Scope { link, scope, docs });
            return;
        }
        self.scopes.entry(scope).or_default();
        let loaded = Box::new(move |chunks: Result<Vec<Vec<u8>>, ChunksReadError>| {
            let volume = chunks.ok().filter(|chunks| !chunks.is_empty()).and_then(|chunks| {
                VolumeDoc::load(scope, &chunks, ActorId::from([0; 16])).ok().map(|loaded| loaded.doc)
            });
            let docs = volume.map_or_else(BTreeSet::new, |volume| volume.all_documents(scope));
            let _ = inputs.send(CoreInput::Scope { link, scope, docs: Arc::new(docs) });
        });
        self.store.load(scope, loaded);
    }

    /// Returns the documents of a volume, if they are known.
    fn loaded_scope(&mut self, scope: DocId) -> Option<VolumeDocs> {
        let known = self.scopes.get_mut(&scope)?;
        let docs = known.docs.as_mut()?;
        if !known.new.is_empty() {
            Arc::make_mut(docs).append(&mut known.new);
        }
        Some(docs.clone())
    }

    /// Updates the list of a compared volume's documents after a change of its document.
    fn update_scope(&mut self, doc: DocId, bytes: &[u8]) {
        let Some(known) = self.scopes.get_mut(&doc) else { return };
        match VolumeDoc::documents_in_changes(bytes) {
            Some(named) => known.new.extend(named),
            None => _ = self.scopes.remove(&doc),
        }
    }

    fn read_volume(&self, doc: DocId) {
        let inputs = self.inputs.clone();
        let loaded = Box::new(move |chunks| {
            let _ = inputs.send(CoreInput::Volume { doc, chunks });
        });
        self.store.load(doc, loaded);
    }

    fn handle_stored(
        &mut self,
        ticket: DiskTicket,
        doc: DocId,
        size: u64,
        by: Option<DeviceId>,
        since: Instant,
        done: Result<(), StoreFailure>,
    ) {
        match done {
            Ok(()) => {
                self.metrics.stored.inc();
                self.metrics.stored_bytes.inc_by(size);
                self.metrics.store_seconds.observe(since.elapsed().as_secs_f64());
                if let Some(count) = self.store.document_count() {
                    self.metrics.documents.set(i64::try_from(count).unwrap_or(i64::MAX));
                }
                self.peers.on_stored(ticket);
                self.perform(None);
                if self.shares.names_volume(doc) {
                    self.read_volume(doc);
                }
                self.charge(by, size);
            }
            Err(StoreFailure(why)) => {
                self.peers.on_refused(ticket, &why);
                self.perform(None);
            }
        }
    }

    /// Returns how many bytes a device may still store.
    pub(crate) fn remaining_quota(&self, device: Option<DeviceId>) -> u64 {
        let used = self.usage.get(&account_name(device)).copied().unwrap_or_default();
        if self.settings.quota == 0 { u64::MAX } else { self.settings.quota.saturating_sub(used) }
    }

    /// Returns whether a connection is still open.
    pub(crate) fn is_connected(&self, link: LinkId) -> bool {
        self.clients.contains_key(&link)
    }

    pub(crate) fn device_of(&self, link: LinkId) -> Option<DeviceId> {
        self.clients.get(&link).and_then(|client| client.who.device)
    }

    /// Returns the number of bytes queued for a connection.
    pub(crate) fn waiting_bytes(&self, link: LinkId) -> usize {
        self.clients.get(&link).map_or(0, |client| client.outbox.waiting.load(Ordering::Relaxed))
    }

    /// Sends a message of our protocol extension to a peer that supports it.
    pub(crate) fn send_extension(&mut self, link: LinkId, topic: &str, data: Vec<u8>) {
        self.peers.send_extension(link, topic, data);
        self.perform(None);
    }

    /// Logs that a client's data was rejected.
    pub(crate) fn log_refusal(&self, link: LinkId, words: &str) {
        self.metrics.refused.inc();
        if let Some(client) = self.clients.get(&link) {
            (self.log)(&format!("{}: {words}", client.who.name));
        }
    }

    pub(crate) fn log_line(&self, words: &str) {
        (self.log)(words);
    }

    /// Returns a client's access to a volume, regardless of quotas.
    pub(crate) fn client_access(&self, link: LinkId, volume: DocId) -> sync::DocumentAccess {
        let client = self.clients.get(&link);
        client.map_or(sync::DocumentAccess::None, |client| {
            document_access(self.shares.access(client.who.device, client.who.max_access, volume))
        })
    }

    fn is_full(&self, device: Option<DeviceId>) -> bool {
        let used = self.usage.get(&account_name(device)).copied().unwrap_or_default();
        self.settings.quota > 0 && used >= self.settings.quota
    }

    /// Adds stored bytes to a device's account. A device over its quota keeps read access.
    pub(crate) fn charge(&mut self, by: Option<DeviceId>, size: u64) {
        *self.usage.entry(account_name(by)).or_default() += size;
        self.usage_kept.1 += size;
        if self.is_full(by) {
            let mut names = Vec::new();
            for client in self.clients.values_mut().filter(|client| client.who.device == by && !client.full) {
                client.full = true;
                names.push(client.who.name.clone());
            }
            for name in names {
                self.metrics.refused.inc();
                let quota = self.settings.quota;
                (self.log)(&format!("{name} has used up its {quota} bytes: it can read, but its changes are refused"));
            }
            self.refresh_shares(|client| client.who.device == by);
        }
        if self.usage_kept.0.elapsed() > USAGE_SAVE_INTERVAL {
            self.save_usage();
        }
    }

    fn save_usage(&mut self) {
        if std::mem::take(&mut self.usage_kept.1) > 0 {
            let text = serde_json::to_vec(&self.usage).unwrap_or_default();
            if let Err(why) = crate::certificate::write_private_file(&self.settings.folder.join(USAGE_FILE), &text) {
                (self.log)(&format!("the record of each device's storage can't be written: {why}"));
            }
        }
        self.usage_kept.0 = Instant::now();
    }

    fn handle_replica_news(&mut self, news: ReplicaNews) {
        match news {
            ReplicaNews::Changed { doc, bytes } => {
                self.update_scope(doc, &bytes);
                self.peers.on_changed(doc, &bytes);
                self.perform(None);
                if self.shares.names_volume(doc) {
                    self.read_volume(doc);
                }
            }
            ReplicaNews::Ephemeral(frame) => {
                self.peers.receive(BUS_LINK, &SharedBytes::unwrap_or_clone(frame));
                self.perform(None);
            }
            ReplicaNews::BlobAdded { item, size } => self.handle_blob_added(item, size),
            ReplicaNews::BlobLost { item } => self.handle_blob_lost(item),
            // The server handles these.
            ReplicaNews::Devices(_) => {}
        }
    }

    /// Applies a changed list of devices: removed devices are disconnected, others may have other rights.
    fn update_devices(&mut self, list: BTreeMap<DeviceId, PairedDevice>) {
        let mut gone = Vec::new();
        for (link, client) in &mut self.clients {
            let Some(id) = client.who.device else { continue };
            match list.get(&id) {
                Some(device) if device.is_authorized() => client.who.max_access = device.access,
                Some(_) | None => gone.push(*link),
            }
        }
        self.devices = list;
        for link in gone {
            self.metrics.refused.inc();
            self.peers.disconnect(link);
            self.perform(None);
            self.end_connection(link, "this device was revoked");
        }
        self.refresh_shares(|client| client.who.device.is_some());
    }
}
