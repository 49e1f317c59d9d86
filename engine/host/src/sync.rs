//! The sync service: a thread that follows the writer like search does, and communicates with hubs.
//!
//! Durable changes are sent to other devices. Received changes go to the session as events, and are confirmed once the
//! writer has them on disk.

mod blob_io;
mod blobs;
pub mod devices;
mod fingerprints;
mod lan;
pub(crate) mod merges;
pub(crate) mod presence;
pub(crate) mod shared_states;
mod withdrawn_states;

use self::blobs::BlobExchange;
use self::fingerprints::DocumentFingerprints;
use self::lan::NearbyDevices;
use crate::logging::ConnectionLog;
use crate::mailbox::{Mailbox, StoreWriter};
use crate::sync::presence::PeerPresence;
use engine::{Event, HubConnection, HubState, LAN_HUB_ADDRESS, SyncTargets};
use peers::hub_client::{CallerIdentityError, HubClient, HubEvent};
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::disk::{DiskReader, RowWrite};
use store::sync::blobs::VolumeBlob;
use store::sync::peers::SyncLimits;
use store::sync::presence::PresentPerson;
use store::sync::{
    ChunksReadError, DiskTicket, DocumentAccess, LinkId, PeerId, PeerMetadata, PeersOutput, SyncPeers, VolumeDocs, wire,
};
use store::{BlobHash, DocId};

/// Minimum interval between two reports of a hub's state to the session.
const STATUS_REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// How long closing waits until departure messages are sent.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(300);
/// Delay before the first retry of an unreachable hub. It doubles each time.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay between retries of an unreachable hub.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Maximum number of new documents of a volume that are synced one by one. With more, set reconciliation finds those
/// that differ.
const MAX_SINGLE_DOCUMENTS: usize = 2_048;

enum SyncTask {
    SetTargets(SyncTargets),
    Retry,
    /// Written chunks with their numbers (0 if unknown). A snapshot has no bytes.
    Written(Vec<(DocId, Option<Vec<u8>>, i64)>),
    /// Permanently deleted documents.
    Forgotten(Vec<DocId>),
    /// The writer, for stored sync state.
    Writer(StoreWriter),
    Refused {
        ticket: DiskTicket,
        why: String,
    },
    Present {
        doc: DocId,
        state: Option<PresentPerson>,
        volume: bool,
    },
    HubEvent(LinkId, HubEvent),
    LanEvent(LinkId, peers::lan_peers::LanPeerEvent),
    /// Attachments and blobs of volumes.
    Files(BTreeMap<DocId, engine::VolumeAttachments>),
    BlobOutcome(blob_io::BlobTaskOutcome),
    /// The state of another device to fetch for a note, or `None` once it was taken over.
    SetStateFetch(DocId, Option<Box<shared_states::StateFetch>>),
    /// The files of states of a note that are no longer shared.
    SetWithdrawn(DocId, BTreeSet<VolumeBlob>),
    /// The program is closing. The sync thread answers once departure messages are sent.
    Close(Sender<()>),
}

/// Sends tasks to the sync thread.
#[derive(Clone)]
pub(crate) struct SyncService {
    tasks: Sender<SyncTask>,
    /// Whether anything is shared.
    active: Arc<AtomicBool>,
    /// The thread for jobs on shared states that must keep their order, once there was one.
    state_tasks: Arc<OnceLock<Sender<shared_states::SharedStateTask>>>,
}

impl SyncService {
    /// Starts the sync thread. `also` is a second reader for blobs, and `folder` is the workspace's folder.
    pub(crate) fn start(
        reader: Box<dyn DiskReader>,
        also: Box<dyn DiskReader>,
        folder: PathBuf,
        inbox: Mailbox,
    ) -> SyncService {
        let (tasks, queue) = channel();
        let active = Arc::new(AtomicBool::new(false));
        let back = tasks.clone();
        std::thread::spawn(move || {
            let blobs = BlobExchange::new(&folder, also, back.clone());
            SyncThread::new(reader, inbox, back, blobs).run(&queue);
        });
        SyncService { tasks, active, state_tasks: Arc::default() }
    }

    /// Sets what to sync with which hubs.
    pub(crate) fn set_targets(&self, wanted: SyncTargets) {
        if self.active.load(Ordering::Acquire) || !wanted.hubs.is_empty() {
            self.active.store(true, Ordering::Release);
            // Here and below: the receiver ends only with the program or the connection.
            let _ = self.tasks.send(SyncTask::SetTargets(wanted));
        }
    }

    /// Sets attachments and blobs of shared volumes.
    pub(crate) fn set_attachments(&self, volumes: BTreeMap<DocId, engine::VolumeAttachments>) {
        if self.active.load(Ordering::Acquire) {
            let _ = self.tasks.send(SyncTask::Files(volumes));
        }
    }

    /// Passes on the chunks and deletions of a batch that's durable now.
    pub(crate) fn note_writes(&self, writes: &[RowWrite], numbers: &[i64]) {
        if !self.active.load(Ordering::Acquire) {
            return;
        }
        let chunk = |write: &RowWrite| match write {
            RowWrite::Chunk { doc, bytes } => Some((*doc, Some(bytes.clone()))),
            RowWrite::Snapshot { doc, .. } => Some((*doc, None)),
            _ => None,
        };
        let numbers = numbers.iter().copied().chain(std::iter::repeat(0));
        let chunks = writes.iter().filter_map(chunk).zip(numbers).map(|((doc, bytes), number)| (doc, bytes, number));
        let chunks: Vec<(DocId, Option<Vec<u8>>, i64)> = chunks.collect();
        if !chunks.is_empty() {
            let _ = self.tasks.send(SyncTask::Written(chunks));
        }
        let gone = writes
            .iter()
            .filter_map(|write| if let RowWrite::DeleteDocument { doc } = write { Some(*doc) } else { None });
        let gone: Vec<DocId> = gone.collect();
        if !gone.is_empty() {
            let _ = self.tasks.send(SyncTask::Forgotten(gone));
        }
    }

    pub(crate) fn set_writer(&self, writer: StoreWriter) {
        let _ = self.tasks.send(SyncTask::Writer(writer));
    }

    pub(crate) fn retry_now(&self) {
        let _ = self.tasks.send(SyncTask::Retry);
    }

    /// Sets this device's presence at a document.
    pub(crate) fn set_presence(&self, doc: DocId, state: Option<PresentPerson>, volume: bool) {
        let _ = self.tasks.send(SyncTask::Present { doc, state, volume });
    }

    pub(crate) fn report_disk_refusal(&self, ticket: DiskTicket, why: String) {
        let _ = self.tasks.send(SyncTask::Refused { ticket, why });
    }

    pub(crate) fn close(&self) {
        let (done, wait) = channel();
        if self.tasks.send(SyncTask::Close(done)).is_ok() && self.active.load(Ordering::Acquire) {
            let _ = wait.recv_timeout(2 * GOODBYE_TIMEOUT); // without it, others know by our silence
        }
    }
}

/// The sync thread's state of a hub.
struct HubLink {
    /// All documents synced with the hub. `volumes` has those of each volume.
    docs: Arc<BTreeSet<DocId>>,
    volumes: BTreeMap<DocId, VolumeDocs>,
    /// The same documents, shared with the policy that decides whether the hub may see a document.
    shown: Arc<Mutex<Arc<BTreeSet<DocId>>>>,
    link: Option<LinkId>,
    state: HubState,
    /// Documents that differ from the hub's. The session shares this set until it's replaced.
    unsynced: Arc<BTreeSet<DocId>>,
    failed_tries: u32,
    /// When to connect next.
    due: Option<Instant>,
    /// Whether there are changes to report to the session.
    has_news: bool,
    log_lines: Vec<String>,
    last_report: Option<Instant>,
}

struct SyncThread {
    reader: Box<dyn DiskReader>,
    inbox: Mailbox,
    tasks: Sender<SyncTask>,
    peers: SyncPeers,
    client: Option<HubClient>,
    nearby: NearbyDevices,
    hubs: BTreeMap<String, HubLink>,
    links: HashMap<LinkId, String>,
    connection_log: ConnectionLog,
    last_link: LinkId,
    /// Received changes that are being written to disk, recognized by the hash of their bytes.
    tickets: HashMap<(DocId, BlobHash), DiskTicket>,
    fingerprints: DocumentFingerprints,
    paused: bool,
    presence: PeerPresence,
    blobs: BlobExchange,
}

impl SyncThread {
    fn new(reader: Box<dyn DiskReader>, inbox: Mailbox, tasks: Sender<SyncTask>, blobs: BlobExchange) -> SyncThread {
        // The id names this run of the program, because a copy of the workspace is a different peer.
        let me = PeerId(format!("tracebook-{:016x}", rand::rng().random::<u64>()));
        let tracebook = Some(wire::EXTENSIONS_VERSION);
        let metadata =
            PeerMetadata { storage: None, ephemeral: true, tracebook, blobs: BlobExchange::protocol_version() };
        SyncThread {
            reader,
            inbox,
            tasks,
            peers: SyncPeers::new(me, metadata, SyncLimits::default()),
            client: None,
            nearby: NearbyDevices::default(),
            hubs: BTreeMap::new(),
            links: HashMap::new(),
            connection_log: ConnectionLog::default(),
            last_link: 0,
            tickets: HashMap::new(),
            fingerprints: DocumentFingerprints::default(),
            paused: false,
            presence: PeerPresence::new(),
            blobs,
        }
    }

    fn run(mut self, queue: &Receiver<SyncTask>) {
        loop {
            let task = match self.next() {
                None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => queue.recv_timeout(wait),
            };
            match task {
                Ok(SyncTask::Close(done)) => {
                    self.fingerprints.save(&self.peers);
                    self.announce_departure(queue);
                    self.nearby.near = None;
                    _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(task) => self.handle_task(task),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.dial_due_hubs();
            self.open_lan_if_due();
            self.presence_step();
            self.process_outputs();
            while self.step_blobs() {
                self.process_outputs();
            }
            self.report_hub_states();
            self.fingerprints.save_if_due(&self.peers);
        }
    }

    /// Returns the time until the next action is due; `None` if nothing is due before a task arrives.
    fn next(&self) -> Option<Duration> {
        let now = Instant::now();
        let due = self.hubs.values().flat_map(|hub| {
            let tell = hub.has_news.then(|| hub.last_report.map_or(now, |told| told + STATUS_REPORT_INTERVAL));
            hub.due.into_iter().chain(tell)
        });
        let said = self.presence.next_deadline(self.peers.has_listeners());
        due.chain(said)
            .chain(self.fingerprints.next_save())
            .chain(self.blobs.next())
            .min()
            .map(|due| due.saturating_duration_since(now))
    }

    fn handle_task(&mut self, task: SyncTask) {
        match task {
            SyncTask::SetTargets(wanted) => {
                self.fingerprints.load_fingerprints(self.reader.as_ref(), &mut self.peers);
                self.apply_targets(wanted);
            }
            SyncTask::Forgotten(docs) => docs.into_iter().for_each(|doc| self.peers.forget_document(doc)),
            SyncTask::Writer(writer) => self.fingerprints.writer = Some(writer),
            SyncTask::Retry => {
                for hub in self.hubs.values_mut().filter(|hub| hub.link.is_none()) {
                    (hub.due, hub.failed_tries) = (Some(Instant::now()), 0);
                }
            }
            SyncTask::Written(chunks) => {
                for (doc, bytes, number) in chunks {
                    self.fingerprints.record_chunk(doc, number);
                    self.blobs.mark_document_changed(doc);
                    let Some(bytes) = bytes else { continue };
                    let ticket = self.tickets.remove(&(doc, BlobHash::of(&bytes)));
                    if !ticket.is_some_and(|ticket| self.peers.on_stored(ticket)) {
                        self.peers.on_changed(doc, &bytes);
                    }
                }
            }
            SyncTask::Refused { ticket, why } => {
                self.tickets.retain(|_, known| *known != ticket);
                self.peers.on_refused(ticket, &why);
            }
            SyncTask::Present { doc, state, volume } => self.presence.set_own_state(doc, state, volume),
            SyncTask::HubEvent(link, told) => self.handle_hub_event(link, told),
            SyncTask::LanEvent(link, told) => self.handle_lan_event(link, told),
            SyncTask::Files(volumes) => self.blobs.set_attachments(volumes),
            SyncTask::BlobOutcome(done) => self.handle_blob_outcome(done),
            SyncTask::SetStateFetch(note, fetch) => self.blobs.set_state_fetch(note, fetch.map(|fetch| *fetch)),
            SyncTask::SetWithdrawn(note, files) => self.blobs.set_withdrawn(note, files),
            SyncTask::Close(_) => {}
        }
    }

    fn apply_targets(&mut self, wanted: SyncTargets) {
        self.paused = wanted.paused;
        let gone: Vec<String> =
            self.hubs.keys().filter(|url| !wanted.hubs.iter().any(|(wanted, _)| wanted == *url)).cloned().collect();
        for url in gone {
            self.disconnect_hub(&url);
            self.hubs.remove(&url);
            let state = Box::new(HubState::default());
            self.inbox.send_event(Event::HubTold { hub: url, state, said: Vec::new() });
        }
        for (url, volumes) in wanted.hubs {
            let docs: VolumeDocs = match volumes.len() {
                1 => volumes.values().next().cloned().unwrap_or_default(),
                _ => Arc::new(volumes.values().flat_map(|docs| docs.iter().copied()).collect()),
            };
            let hub = self.hubs.entry(url.clone()).or_insert_with(|| HubLink {
                docs: Arc::default(),
                volumes: BTreeMap::new(),
                shown: Arc::default(),
                link: None,
                state: HubState::default(),
                unsynced: Arc::default(),
                failed_tries: 0,
                due: Some(Instant::now()),
                has_news: true,
                log_lines: Vec::new(),
                last_report: None,
            });
            let new: Vec<DocId> = docs.difference(&hub.docs).copied().collect();
            let fewer = hub.docs.difference(&docs).next().is_some();
            let before = std::mem::replace(&mut hub.volumes, volumes.clone());
            hub.docs = docs.clone();
            *hub.shown.lock().unwrap_or_else(PoisonError::into_inner) = docs;
            if fewer {
                Arc::make_mut(&mut hub.unsynced).retain(|doc| hub.docs.contains(doc));
            }
            hub.state.documents = hub.docs.len();
            hub.has_news = true;
            if url == LAN_HUB_ADDRESS {
                match self.paused {
                    true => self.disconnect_hub(&url),
                    false if self.nearby.near.is_none() => hub.due = hub.due.or_else(|| Some(Instant::now())),
                    false => self.update_lan_targets(&new, &before, fewer),
                }
                continue;
            }
            let shown = hub.shown.clone();
            let Some(link) = hub.link else {
                if !self.paused && hub.due.is_none() {
                    hub.due = Some(Instant::now());
                }
                if self.paused {
                    (hub.due, hub.state.reach) = (None, HubConnection::Paused);
                }
                continue;
            };
            if self.paused {
                self.disconnect_hub(&url);
                continue;
            }
            Arc::make_mut(&mut hub.unsynced).extend(new.iter().copied());
            if fewer {
                self.peers.set_share(link, share_policy(shown));
            }
            self.announce_documents(link, &volumes, &before);
        }
    }

    /// Starts syncing documents with a peer that weren't shared before.
    fn announce_documents(
        &mut self,
        link: LinkId,
        volumes: &BTreeMap<DocId, VolumeDocs>,
        before: &BTreeMap<DocId, VolumeDocs>,
    ) {
        for (volume, docs) in volumes {
            match before.get(volume) {
                Some(known) if known == docs => {}
                Some(known) if docs.len() <= known.len() + MAX_SINGLE_DOCUMENTS => {
                    // These documents were just created here, or announced by another device.
                    docs.difference(known).for_each(|doc| self.peers.offer_document(link, *doc));
                }
                Some(_) | None => self.peers.follow_volume(link, *volume, docs.clone()),
            }
        }
    }

    fn disconnect_hub(&mut self, url: &str) {
        let Some(hub) = self.hubs.get_mut(url) else { return };
        (hub.due, hub.state.reach, hub.has_news) = (None, HubConnection::Paused, true);
        if url == LAN_HUB_ADDRESS {
            return self.leave_lan();
        }
        if let Some(link) = hub.link.take() {
            self.links.remove(&link);
            self.peers.disconnect(link);
            if let Some(client) = &self.client {
                client.close(link);
            }
        }
    }

    /// Dials hubs that are due.
    fn dial_due_hubs(&mut self) {
        let now = Instant::now();
        for (url, hub) in self.hubs.iter_mut().filter(|(url, _)| *url != LAN_HUB_ADDRESS) {
            if self.paused || hub.link.is_some() || hub.due.is_none_or(|due| due > now) {
                continue;
            }
            if self.client.is_none() {
                let tasks = self.tasks.clone();
                let tell = move |link, told| _ = tasks.send(SyncTask::HubEvent(link, told));
                let caller = || devices::hub_caller_identity().map_err(|why| CallerIdentityError(why.to_string()));
                let started = HubClient::start(caller, tell);
                match started {
                    Ok(client) => self.client = Some(client),
                    Err(why) => {
                        hub.state.reach = HubConnection::Offline { why: why.to_string() };
                        (hub.due, hub.has_news) = (Some(now + MAX_RETRY_DELAY), true);
                        continue;
                    }
                }
            }
            self.last_link += 1;
            (hub.link, hub.due) = (Some(self.last_link), None);
            if hub.failed_tries == 0 {
                (hub.state.reach, hub.has_news) = (HubConnection::Connecting, true);
            }
            self.links.insert(self.last_link, url.clone());
            if let Some(client) = &self.client {
                client.dial(self.last_link, url.clone());
            }
        }
    }

    fn handle_hub_event(&mut self, link: LinkId, told: HubEvent) {
        let Some(url) = self.links.get(&link).cloned() else { return };
        let Some(hub) = self.hubs.get_mut(&url) else { return };
        hub.state.seen = Some(crate::clock::unix_now());
        match told {
            HubEvent::Open => {
                self.connection_log.opened(link, &url);
                let shown = hub.shown.clone();
                hub.unsynced = hub.docs.clone();
                let volumes = hub.volumes.clone();
                self.peers.connect(link, true, None, share_policy(shown));
                for (volume, docs) in volumes {
                    self.peers.follow_volume(link, volume, docs);
                }
            }
            HubEvent::Message(bytes) => {
                hub.state.received += bytes.len() as u64;
                self.peers.receive(link, &bytes);
            }
            HubEvent::Notice(words) => {
                let words: String = words.chars().filter(|letter| !letter.is_control()).take(300).collect();
                let line = format!("{url}: {words}");
                if !hub.log_lines.contains(&line) {
                    hub.log_lines.push(line);
                    hub.has_news = true;
                }
            }
            HubEvent::Closed(why) => {
                self.peers.disconnect(link);
                self.handle_disconnect(link, why);
            }
        }
    }

    /// Handles a lost connection, which is retried automatically at growing intervals.
    fn handle_disconnect(&mut self, link: LinkId, why: String) {
        if self.nearby.devices.contains_key(&link) {
            return self.remove_lan_device(link, &why);
        }
        let Some(url) = self.links.remove(&link) else { return };
        self.connection_log.closed(link, &why);
        let Some(hub) = self.hubs.get_mut(&url) else { return };
        hub.link = None;
        let pause = FIRST_RETRY_DELAY.saturating_mul(1 << hub.failed_tries.min(10)).min(MAX_RETRY_DELAY);
        let jitter = rand::rng().random_range(0.8..1.2);
        hub.due = (!self.paused).then(|| Instant::now() + pause.mul_f64(jitter));
        hub.failed_tries += 1;
        if !matches!(hub.state.reach, HubConnection::Offline { .. }) {
            hub.log_lines.push(format!("{url} can't be reached ({why}); Tracebook tries again automatically"));
        }
        hub.state.reach = if self.paused { HubConnection::Paused } else { HubConnection::Offline { why } };
        hub.has_news = true;
    }

    fn process_outputs(&mut self) {
        loop {
            let outputs = self.peers.take_outputs();
            if outputs.is_empty() {
                return;
            }
            outputs.into_iter().for_each(|output| self.handle_output(output));
        }
    }

    fn handle_output(&mut self, output: PeersOutput) {
        match output {
            PeersOutput::Send { link, bytes } => {
                if let Some((_, hub)) = self.hub_of_link(link) {
                    hub.state.sent += bytes.len() as u64;
                }
                match (&self.nearby.near, &self.client) {
                    (Some(near), _) if self.nearby.devices.contains_key(&link) => near.send(link, bytes),
                    (_, Some(client)) => client.send(link, bytes),
                    (_, None) => {}
                }
            }
            PeersOutput::Close { link, why } => {
                if let Some(near) = self.nearby.near.as_ref().filter(|_| self.nearby.devices.contains_key(&link)) {
                    near.close(link);
                } else if let Some(client) = &self.client {
                    client.close(link);
                }
                self.handle_disconnect(link, why);
            }
            PeersOutput::Greeted { link, peer, metadata } => {
                self.connect_blob_peer(link, &peer, &metadata);
                if let Some((url, hub)) = self.hub_of_link(link) {
                    if hub.state.reach != HubConnection::Online && url != LAN_HUB_ADDRESS {
                        hub.log_lines.push(format!("connected to {url}"));
                    }
                    (hub.state.reach, hub.failed_tries, hub.has_news) = (HubConnection::Online, 0, true);
                }
                self.presence.announce_again();
            }
            PeersOutput::Load { doc } => {
                let chunks = self.reader.chunks(doc).map_err(|error| ChunksReadError(error.to_string()));
                let bytes = chunks.map(|chunks| {
                    chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect::<Vec<Vec<u8>>>()
                });
                self.peers.on_loaded(doc, bytes);
            }
            PeersOutput::Store { doc, ticket, parcel, .. } => {
                self.tickets.insert((doc, BlobHash::of(&parcel.bytes)), ticket);
                self.inbox.send_event(Event::Received { doc, ticket, parcel });
            }
            PeersOutput::SyncChanged { link, doc, same } => {
                if let Some((_, hub)) = self.hub_of_link(link) {
                    hub.has_news = true;
                    let is_shared = hub.docs.contains(&doc);
                    self.update_unsynced(link, |behind| {
                        _ = if same { behind.remove(&doc) } else { is_shared && behind.insert(doc) }
                    });
                }
            }
            PeersOutput::Refused { link, doc, why } => {
                if let Some((url, hub)) = self.hub_of_link(link) {
                    hub.log_lines.push(format!("{url}: {} is not synced: {why}", store::sync::document_address(doc)));
                    hub.has_news = true;
                }
            }
            PeersOutput::Absent { link, doc, ours } => {
                if let Some((url, hub)) = self.hub_of_link(link) {
                    if ours {
                        hub.log_lines.push(format!("{url} does not take {}", store::sync::document_address(doc)));
                    }
                    hub.has_news = true;
                    if !ours {
                        // Neither side has the document. That's the case for the outputs of cells that never ran.
                        self.update_unsynced(link, |behind| _ = behind.remove(&doc));
                    }
                }
            }
            PeersOutput::NeedVolumeDocs { link, scope } => {
                let docs =
                    self.hub_of_link(link).and_then(|(_, hub)| hub.volumes.get(&scope).cloned()).unwrap_or_default();
                self.peers.on_volume_docs(link, scope, docs);
            }
            PeersOutput::Agreed { link, docs } => {
                // Use a hash set, because nearly all documents may agree.
                let agreed: HashSet<DocId> = docs.into_iter().collect();
                let rest = |behind: &BTreeSet<DocId>| -> BTreeSet<DocId> {
                    behind.iter().filter(|doc| !agreed.contains(doc)).copied().collect()
                };
                if let Some((_, behind)) = self.nearby.devices.get_mut(&link) {
                    *behind = rest(behind);
                } else if let Some((_, hub)) = self.hub_of_link(link) {
                    hub.unsynced = Arc::new(rest(&hub.unsynced));
                }
                if let Some((_, hub)) = self.hub_of_link(link) {
                    hub.has_news = true;
                }
            }
            PeersOutput::Ephemeral { doc, from, data, .. } => {
                if let Some(here) = self.presence.receive(doc, &from, &data) {
                    self.inbox.send_event(Event::Presence { doc, here });
                }
            }
            PeersOutput::Extension { link, topic, data } => self.receive_blob_message(link, &topic, &data),
        }
    }

    /// Sends due presence messages, and removes people who have been silent for too long.
    fn presence_step(&mut self) {
        if self.peers.has_listeners() {
            for (doc, words) in self.presence.due_messages() {
                self.peers.broadcast(doc, &self.presence.session, &words);
            }
        }
        for (doc, here) in self.presence.remove_silent_peers() {
            self.inbox.send_event(Event::Presence { doc, here });
        }
    }

    /// Announces that the program is closing, so that others don't have to wait for a timeout.
    fn announce_departure(&mut self, queue: &Receiver<SyncTask>) {
        let words = self.presence.departure_messages();
        let Some(client) = self.client.as_ref().filter(|_| !words.is_empty() && self.peers.has_listeners()) else {
            return;
        };
        for (doc, words) in words {
            self.peers.broadcast(doc, &self.presence.session, &words);
        }
        for output in self.peers.take_outputs() {
            if let PeersOutput::Send { link, bytes } = output {
                client.send(link, bytes);
            }
        }
        self.links.keys().for_each(|link| client.close(*link));
        let until = Instant::now() + GOODBYE_TIMEOUT;
        while !self.links.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            match queue.recv_timeout(left) {
                Ok(SyncTask::HubEvent(link, HubEvent::Closed(_))) => _ = self.links.remove(&link),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn hub_of_link(&mut self, link: LinkId) -> Option<(&String, &mut HubLink)> {
        let url = self.links.get(&link)?;
        self.hubs.get_mut(url).map(|hub| (url, hub))
    }

    /// Changes the set of documents that differ from a peer's.
    fn update_unsynced(&mut self, link: LinkId, change: impl FnOnce(&mut BTreeSet<DocId>)) {
        match self.nearby.devices.get_mut(&link) {
            Some((_, behind)) => change(behind),
            None => {
                if let Some((_, hub)) = self.hub_of_link(link) {
                    change(Arc::make_mut(&mut hub.unsynced));
                }
            }
        }
    }

    /// Reports the hubs' states to the session.
    fn report_hub_states(&mut self) {
        let now = Instant::now();
        for (url, hub) in &mut self.hubs {
            if !hub.has_news || hub.last_report.is_some_and(|told| told + STATUS_REPORT_INTERVAL > now) {
                continue;
            }
            (hub.has_news, hub.last_report) = (false, Some(now));
            hub.state.behind =
                if url == LAN_HUB_ADDRESS { Arc::new(self.nearby.unsynced_documents()) } else { hub.unsynced.clone() };
            let links: Vec<LinkId> = match url == LAN_HUB_ADDRESS {
                true => self.nearby.devices.keys().copied().collect(),
                false => hub.link.into_iter().collect(),
            };
            let volumes = hub.volumes.keys().copied().collect();
            hub.state.blobs = self.blobs.hub_blob_state(&volumes, &links, hub.state.reach == HubConnection::Online);
            let (state, said) = (Box::new(hub.state.clone()), std::mem::take(&mut hub.log_lines));
            self.inbox.send_event(Event::HubTold { hub: url.clone(), state, said });
        }
    }
}

fn share_policy(shown: Arc<Mutex<Arc<BTreeSet<DocId>>>>) -> store::sync::SharePolicy {
    Box::new(move |doc| {
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.contains(&doc) { DocumentAccess::Write } else { DocumentAccess::None }
    })
}
