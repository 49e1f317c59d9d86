//! Exchange of blobs (attachments and large outputs of shared volumes) with hubs and devices.
//!
//! `store::sync::blobs` decides what to send and when; `blob_io` reads and writes the bytes.

use super::blob_io::{
    AnnouncedState, AttachmentPlacement, BlobPiece, BlobTask, BlobTaskOutcome, BlobThreads, NamedBlob,
};
use super::shared_states::StateFetch;
use super::withdrawn_states::WithdrawnStates;
use super::{LAN_HUB_ADDRESS, SyncTask, SyncThread};
use crate::fs::confined_dir::ConfinedPath;
use engine::event::FileStamp;
use engine::{AttachmentAction, Event, HubBlobState, VolumeAttachments};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use store::disk::DiskReader;
use store::sync::blobs::{
    BLOBS_TOPIC, BLOBS_VERSION, BlobCommand, BlobLimits, BlobTransfers, CheckOutcome, MIN_BLOBS_VERSION, VolumeBlob,
};
use store::sync::{LinkId, PeerId, PeerMetadata, SyncPeers};
use store::{BlobHash, DocId};

/// Minimum interval between two computations of wanted and available blobs.
const WANTED_REFRESH_INTERVAL: Duration = Duration::from_millis(50);
/// Polling interval while pieces wait to be sent. The next constant applies while other transfers are active.
const SEND_POLL_INTERVAL: Duration = Duration::from_millis(10);
const EXCHANGE_TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum interval between two reads of an active run.
const RUN_REREAD_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of unsent bytes on a connection at which further pieces are sent.
const MAX_UNSENT_PIECE_BYTES: usize = 64 << 10;

/// State of all blob exchange.
pub(super) struct BlobExchange {
    protocol: BlobTransfers,
    blob_threads: BlobThreads,
    volumes: BTreeMap<DocId, VolumeAttachments>,
    /// Blobs that outputs and runs refer to, as far as those were read.
    named: HashMap<DocId, BTreeMap<BlobHash, NamedBlob>>,
    /// The announced states, by outputs.
    shared_states: HashMap<DocId, AnnouncedState>,
    /// Files of states that this device no longer shares, and that hubs may still have.
    withdrawn: WithdrawnStates,
    /// States of other devices that are being fetched, by note.
    state_fetches: BTreeMap<DocId, StateFetch>,
    /// Runs that have changed, and when to read them again.
    changed: BTreeMap<DocId, Instant>,
    /// Paths of attachments that others may fetch.
    files: HashMap<VolumeBlob, (ConfinedPath, FileStamp)>,
    /// Completely received blobs that are being written to files.
    whole: BTreeSet<VolumeBlob>,
    /// Documents being read. The next two are files being hashed and written.
    reading: BTreeSet<DocId>,
    hashing: BTreeSet<DocId>,
    placing: BTreeSet<DocId>,
    /// Attachments being copied to the workspace's blobs. `unkept` are those that couldn't be copied.
    keeping: BTreeSet<VolumeBlob>,
    unkept: BTreeSet<VolumeBlob>,
    /// Files that couldn't be written, with the failed action.
    stuck: BTreeMap<DocId, AttachmentAction>,
    reported_lines: BTreeSet<String>,
    /// Lines for the sync log.
    lines: Vec<String>,
    stale: bool,
    due: Option<Instant>,
    started_at: Instant,
    /// Number of received outputs that weren't reported yet.
    received_count: u64,
    has_news: bool,
}

impl BlobExchange {
    pub(super) fn new(folder: &Path, reader: Box<dyn DiskReader>, tasks: Sender<SyncTask>) -> BlobExchange {
        BlobExchange {
            protocol: BlobTransfers::new(false, BlobLimits::default()),
            blob_threads: BlobThreads::start(folder, reader, tasks),
            volumes: BTreeMap::new(),
            named: HashMap::new(),
            shared_states: HashMap::new(),
            withdrawn: WithdrawnStates::load(folder),
            state_fetches: BTreeMap::new(),
            changed: BTreeMap::new(),
            files: HashMap::new(),
            whole: BTreeSet::new(),
            reading: BTreeSet::new(),
            hashing: BTreeSet::new(),
            placing: BTreeSet::new(),
            keeping: BTreeSet::new(),
            unkept: BTreeSet::new(),
            stuck: BTreeMap::new(),
            reported_lines: BTreeSet::new(),
            lines: Vec::new(),
            stale: false,
            due: None,
            started_at: Instant::now(),
            received_count: 0,
            has_news: false,
        }
    }

    /// Returns the version of the blob protocol.
    pub(super) fn protocol_version() -> Option<u64> {
        Some(BLOBS_VERSION)
    }

    fn elapsed_millis(&self) -> i64 {
        i64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn report_once(&mut self, line: String) {
        if self.reported_lines.len() < 1_000 && self.reported_lines.insert(line.clone()) {
            self.lines.push(line);
        }
    }

    /// Returns when the next action is due without further input; `None` if nothing is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let tick = match (self.protocol.has_requests(), self.protocol.is_busy()) {
            (true, _) => Some(now + SEND_POLL_INTERVAL),
            (false, true) => Some(now + EXCHANGE_TICK_INTERVAL),
            (false, false) => (!self.state_fetches.is_empty()).then(|| now + EXCHANGE_TICK_INTERVAL),
        };
        let stale = self.stale.then(|| self.due.unwrap_or(now).max(now));
        let changed = self.changed.values().min().copied();
        tick.into_iter().chain(stale).chain(changed).min()
    }

    /// Sets the attachments and documents with blobs of the shared volumes.
    pub(super) fn set_attachments(&mut self, volumes: BTreeMap<DocId, VolumeAttachments>) {
        self.volumes = volumes;
        self.stale = true;
        self.has_news = true;
        for (volume, belongings) in &self.volumes {
            for (file, (path, attached)) in &belongings.files {
                if *attached == AttachmentAction::Read && self.hashing.insert(*file) {
                    let path = ConfinedPath::new(&belongings.root, path);
                    // Here and below: the receiver ends only with the program or the connection.
                    let _ = self.blob_threads.tasks.send(BlobTask::Hash { file: *file, path });
                }
            }
            for (doc, is_run) in blob_documents(belongings) {
                if !self.named.contains_key(&doc) && self.reading.insert(doc) {
                    let owner = belongings.notes_of_outputs.get(&doc).map(|note| (*note, *volume));
                    let _ = self.blob_threads.tasks.send(BlobTask::Named { doc, is_run, owner });
                }
            }
        }
    }

    /// Reads outputs or a run again whose document has changed on disk, because it may refer to other blobs.
    pub(super) fn mark_document_changed(&mut self, doc: DocId) {
        let is_known = self.named.contains_key(&doc) || self.reading.contains(&doc);
        if is_known && self.volumes.values().any(|one| one.runs.contains_key(&doc)) {
            // Each step of a run is a change, so wait before reading it again.
            self.changed.entry(doc).or_insert_with(|| Instant::now() + RUN_REREAD_INTERVAL);
        } else if self.named.remove(&doc).is_some() && self.reading.insert(doc) || self.reading.contains(&doc) {
            // The document may have been read before its change.
            let owner = self.volumes.iter().find_map(|(volume, one)| Some((*one.notes_of_outputs.get(&doc)?, *volume)));
            let _ = self.blob_threads.tasks.send(BlobTask::Named { doc, is_run: false, owner });
        }
    }

    /// Reads changed runs again.
    fn reread_changed_runs(&mut self) {
        let now = Instant::now();
        let due: Vec<DocId> = self.changed.iter().filter(|(_, at)| **at <= now).map(|(doc, _)| *doc).collect();
        for doc in due {
            self.changed.remove(&doc);
            self.reading.insert(doc);
            let _ = self.blob_threads.tasks.send(BlobTask::Named { doc, is_run: true, owner: None });
        }
    }

    fn handle_task_outcome(&mut self, done: BlobTaskOutcome, peers: &SyncPeers, tell: impl Fn(Event)) {
        let (now, may) = (self.elapsed_millis(), |link: LinkId, doc: DocId| peers.access(link, doc));
        match done {
            BlobTaskOutcome::Named { doc, blobs, state } => {
                self.reading.remove(&doc);
                self.shared_states.remove(&doc);
                self.shared_states.extend(state.map(|state| (doc, state)));
                self.named.insert(doc, blobs);
                (self.stale, self.has_news) = (true, true);
            }
            BlobTaskOutcome::Kept { item, size } => {
                self.keeping.remove(&item);
                match size {
                    Some(size) => self.record_kept(item, size),
                    None => _ = self.unkept.insert(item), // others are asked for it
                }
                self.stale = true;
            }
            BlobTaskOutcome::Hashed { file, stamp } => {
                self.hashing.remove(&file);
                tell(Event::AttachmentRead { file, stamp });
            }
            BlobTaskOutcome::Placed { volume, file, path, result } => {
                self.placing.remove(&file);
                self.stale = true;
                match result {
                    Ok(stamp) => tell(Event::AttachmentPlaced { volume, file, path, stamp }),
                    Err(why) => {
                        let was = self.volumes.get(&volume).and_then(|volume| volume.files.get(&file));
                        self.stuck.extend(was.map(|(_, attached)| (file, attached.clone())));
                        self.report_once(format!("a file from another device could not be put into its place: {why}"));
                    }
                }
            }
            BlobTaskOutcome::Dropped => {}
            BlobTaskOutcome::Looked { item, found } => self.protocol.on_probed(item, found, &may),
            BlobTaskOutcome::Read { link, item, offset, piece } => self.protocol.on_read(link, item, offset, piece),
            BlobTaskOutcome::Failed { item, why } => {
                self.protocol.on_failed(item, now, &may);
                self.report_once(why);
            }
            BlobTaskOutcome::Checked { item, checked } => {
                if let CheckOutcome::Failed(why) = &checked {
                    self.report_once(why.clone());
                }
                self.protocol.on_checked(item, &checked, now, &may);
            }
        }
    }

    /// Updates the available and wanted blobs in the protocol.
    fn update_wanted(&mut self, peers: &SyncPeers) {
        let (mut holds, mut wants) = (BTreeMap::new(), BTreeMap::new());
        let (mut needed, mut places) = (BTreeSet::new(), Vec::new());
        // Files of states that are nothing else, and those that any device announces.
        let (mut state_files, mut announced) = (BTreeSet::new(), BTreeSet::new());
        let mut too_large = Vec::new();
        self.files.clear();
        for (volume, belongings) in &self.volumes {
            for (file, (path, attached)) in &belongings.files {
                match attached {
                    AttachmentAction::Read => {}
                    AttachmentAction::Offer(stamp) => {
                        let item = VolumeBlob { volume: *volume, hash: stamp.hash };
                        if stamp.size > BlobLimits::default().max_blob_bytes {
                            too_large.push(path.clone());
                            continue;
                        }
                        holds.insert(item, stamp.size);
                        self.files.insert(item, (ConfinedPath::new(&belongings.root, path), *stamp));
                    }
                    AttachmentAction::Fetch { bytes, urgent, .. } => {
                        let item = VolumeBlob { volume: *volume, hash: bytes.hash };
                        needed.insert(item);
                        if bytes.size > BlobLimits::default().max_blob_bytes {
                            too_large.push(path.clone());
                        }
                        places.push((item, *file, bytes.size, *urgent));
                    }
                }
            }
            // A note that was moved to another volume is shared with other devices, and its state with nobody.
            let states = belongings.outputs.keys().filter_map(|doc| self.shared_states.get(doc));
            for AnnouncedState { files, named, .. } in states.filter(|state| state.volume == *volume) {
                announced.extend(named.iter().map(|hash| VolumeBlob { volume: *volume, hash: *hash }));
                for (path, stamp) in files {
                    let item = VolumeBlob { volume: *volume, hash: stamp.hash };
                    if holds.insert(item, stamp.size).is_none() {
                        state_files.insert(item);
                    }
                    self.files.insert(item, (path.clone(), *stamp));
                }
            }
            for (doc, urgent) in belongings.outputs.iter().chain(&belongings.runs) {
                for (hash, NamedBlob { size, here }) in self.named.get(doc).into_iter().flatten() {
                    let item = VolumeBlob { volume: *volume, hash: *hash };
                    match (here, size) {
                        (true, Some(size)) => {
                            holds.insert(item, *size);
                            state_files.remove(&item);
                        }
                        (true, None) | (false, _) => {
                            let wish = wants.entry(item).or_insert((*size, false));
                            wish.1 |= *urgent;
                        }
                    }
                }
            }
        }
        // A run has created files that are attachments, so their bytes are already here.
        for (item, from) in &self.files {
            if wants.contains_key(item) && !self.unkept.contains(item) {
                wants.remove(item);
                if self.keeping.insert(*item) {
                    let _ = self.blob_threads.tasks.send(BlobTask::Keep { item: *item, from: from.clone() });
                }
            }
        }
        for (item, file, size, urgent) in places {
            if self.whole.contains(&item) || self.files.contains_key(&item) {
                holds.insert(item, size);
                state_files.remove(&item);
                self.place_file(item, file);
            } else {
                let wish = wants.entry(item).or_insert((Some(size), false));
                wish.1 |= urgent;
            }
        }
        for (item, size) in self.state_fetches.values().flat_map(StateFetch::items) {
            needed.insert(item);
            if !holds.contains_key(&item) && !wants.contains_key(&item) {
                state_files.insert(item); // it's no attachment, also once it has come
            }
            if !self.whole.contains(&item) {
                wants.insert(item, (Some(size), true));
            }
        }
        for item in self.whole.clone() {
            if !needed.contains(&item) && self.placing.is_empty() {
                self.whole.remove(&item);
                let _ = self.blob_threads.tasks.send(BlobTask::Drop { hash: item.hash });
            }
        }
        for path in too_large {
            let most = BlobLimits::default().max_blob_bytes >> 20;
            self.report_once(format!("{path} has more than {most} MB: it stays where it is, and does not go along"));
        }
        let (held, wanted) = self.protocol.held_and_wanted();
        let gone: Vec<VolumeBlob> = held.filter(|item| !holds.contains_key(item)).copied().collect();
        let given_up: Vec<VolumeBlob> = wanted.filter(|item| !wants.contains_key(item)).copied().collect();
        gone.into_iter().for_each(|item| self.protocol.remove_held(item));
        given_up.into_iter().for_each(|item| self.protocol.cancel_want(item));
        let may = |link: LinkId, doc: DocId| peers.access(link, doc);
        self.protocol.set_state_files(state_files, &may);
        if self.reading.is_empty() {
            let is_gone = |item: &&VolumeBlob| {
                self.volumes.contains_key(&item.volume) && !holds.contains_key(*item) && !announced.contains(*item)
            };
            let gone = self.withdrawn.files().filter(is_gone).copied().collect();
            self.protocol.set_withdrawn(gone, &may);
        }
        holds.into_iter().for_each(|(item, size)| self.protocol.add_held(item, size, &may));
        for (item, (size, urgent)) in wants {
            self.protocol.want(item, size, urgent, &may);
        }
    }

    /// Adds or removes the fetch of a note's state.
    pub(super) fn set_state_fetch(&mut self, note: DocId, fetch: Option<StateFetch>) {
        self.state_fetches.remove(&note);
        self.state_fetches.extend(fetch.map(|fetch| (note, fetch)));
        self.stale = true;
    }

    /// Sets the files of a note's states that are no longer shared.
    pub(super) fn set_withdrawn(&mut self, note: DocId, files: BTreeSet<VolumeBlob>) {
        self.withdrawn.set(note, files);
        self.stale = true;
    }

    /// Removes withdrawn files that all hubs have deleted from their notes' lists.
    fn remove_done_files(&mut self) {
        let is_deleting = self.protocol.links().into_iter().any(|link| self.protocol.forget_count(link) > 0);
        for (note, files) in self.withdrawn.take_done(is_deleting) {
            let _ = self.blob_threads.tasks.send(BlobTask::RemoveDone { note, files });
        }
    }

    /// Reports fetches of states that are complete, or that no connected device can complete.
    fn report_state_fetches(&mut self, peers: &SyncPeers) {
        let may = |link: LinkId, doc: DocId| peers.access(link, doc);
        let has_peers = !self.protocol.links().is_empty();
        for fetch in self.state_fetches.values_mut() {
            fetch.report(has_peers, &|item| self.whole.contains(item), &|item| self.protocol.may_come(item, &may));
        }
    }

    /// Starts writing a blob that's here to an attachment's file.
    fn place_file(&mut self, item: VolumeBlob, file: DocId) {
        let Some(belongings) = self.volumes.get(&item.volume) else { return };
        let Some((path, attached)) = belongings.files.get(&file) else { return };
        let AttachmentAction::Fetch { bytes, over, kept, .. } = attached else { return };
        if self.stuck.get(&file) == Some(attached) || !self.placing.insert(file) {
            return;
        }
        let placing = AttachmentPlacement {
            volume: item.volume,
            file,
            root: belongings.root.clone(),
            path: path.clone(),
            hash: bytes.hash,
            over: *over,
            kept: kept.clone(),
            like: self.files.get(&item).cloned(),
        };
        let _ = self.blob_threads.tasks.send(BlobTask::Place(Box::new(placing)));
    }

    /// Records a blob that was received completely.
    fn record_received(&mut self, item: VolumeBlob, size: u64) {
        self.record_kept(item, size);
        self.whole.insert(item);
        (self.stale, self.has_news) = (true, true);
    }

    /// Marks a blob as stored in the workspace, if outputs or runs refer to it.
    fn record_kept(&mut self, item: VolumeBlob, size: u64) {
        let docs: Vec<DocId> = self
            .volumes
            .get(&item.volume)
            .map(|one| blob_documents(one).map(|(doc, _)| doc).collect())
            .unwrap_or_default();
        let mut kept = false;
        for doc in docs {
            if let Some(named) = self.named.get_mut(&doc).and_then(|blobs| blobs.get_mut(&item.hash)) {
                (*named, kept) = (NamedBlob { size: Some(size), here: true }, true);
            }
        }
        self.received_count += u64::from(kept);
    }

    /// Returns whether outputs or runs refer to a blob, which makes it a blob of the workspace.
    fn is_referenced(&self, item: VolumeBlob) -> bool {
        let docs = self.volumes.get(&item.volume).into_iter().flat_map(blob_documents);
        docs.filter_map(|(doc, _)| self.named.get(&doc)).any(|blobs| blobs.contains_key(&item.hash))
    }

    /// Returns the state of blob exchange over these connections.
    pub(super) fn hub_blob_state(&self, volumes: &BTreeSet<DocId>, links: &[LinkId], is_online: bool) -> HubBlobState {
        let knows: Vec<LinkId> = links.iter().copied().filter(|link| self.protocol.has_peer(*link)).collect();
        let (coming, there) = self.protocol.wanted_counts(volumes, &knows);
        let going = knows.iter().map(|link| self.protocol.offer_counts(*link));
        let (going, refused) = going.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let busy = usize::from(self.stale) + self.reading.len() + self.hashing.len() + self.placing.len();
        let busy = busy + self.keeping.len() + self.changed.len();
        let busy = busy + knows.iter().map(|link| self.protocol.forget_count(*link)).sum::<usize>();
        let on_way = self.whole.iter().filter(|item| volumes.contains(&item.volume)).count();
        HubBlobState {
            kept: is_online.then_some(!knows.is_empty()),
            coming: coming + on_way,
            there: there + on_way,
            going,
            refused,
            busy,
        }
    }
}

/// Returns the documents of a volume that may refer to blobs, and whether each is a run.
fn blob_documents(belongings: &VolumeAttachments) -> impl Iterator<Item = (DocId, bool)> {
    let outputs = belongings.outputs.keys().map(|doc| (*doc, false));
    outputs.chain(belongings.runs.keys().map(|doc| (*doc, true)))
}

impl SyncThread {
    /// Starts blob exchange with a peer after its greeting, if its version supports that.
    pub(super) fn connect_blob_peer(&mut self, link: LinkId, peer: &PeerId, metadata: &PeerMetadata) {
        if let Some(version) = metadata.blobs.filter(|version| *version >= MIN_BLOBS_VERSION) {
            let peers = &self.peers;
            let may = |link: LinkId, doc: DocId| peers.access(link, doc);
            self.blobs.protocol.connect(link, peer.clone(), !metadata.ephemeral, &may);
            self.blobs.protocol.set_peer_version(link, version, &may);
        }
        self.blobs.has_news = true;
    }

    pub(super) fn receive_blob_message(&mut self, link: LinkId, topic: &str, data: &[u8]) {
        if topic == BLOBS_TOPIC {
            let (peers, now) = (&self.peers, self.blobs.elapsed_millis());
            self.blobs.protocol.receive(link, data, now, &|link, doc| peers.access(link, doc));
            self.blobs.has_news = true;
        }
    }

    pub(super) fn handle_blob_outcome(&mut self, done: BlobTaskOutcome) {
        let inbox = self.inbox.clone();
        self.blobs.handle_task_outcome(done, &self.peers, |event| inbox.send_event(event));
    }

    /// Performs due work, and returns whether there was any.
    pub(super) fn step_blobs(&mut self) -> bool {
        let peers = &self.peers;
        let may = |link: LinkId, doc: DocId| peers.access(link, doc);
        for link in self.blobs.protocol.links() {
            if peers.peer_id(link).is_none() {
                self.blobs.protocol.disconnect(link, &may);
                self.blobs.has_news = true;
            }
        }
        self.blobs.reread_changed_runs();
        let now = Instant::now();
        if self.blobs.stale && self.blobs.due.is_none_or(|due| due <= now) {
            (self.blobs.stale, self.blobs.due, self.blobs.has_news) =
                (false, Some(now + WANTED_REFRESH_INTERVAL), true);
            self.blobs.update_wanted(peers);
        }
        self.blobs.report_state_fetches(peers);
        let (client, clock) = (&self.client, self.blobs.elapsed_millis());
        let is_idle =
            |link: LinkId| client.as_ref().is_none_or(|client| client.queued_bytes(link) < MAX_UNSENT_PIECE_BYTES);
        self.blobs.protocol.advance(clock, &may, &is_idle);
        let deeds = self.blobs.protocol.take_commands();
        let any = !deeds.is_empty();
        deeds.into_iter().for_each(|deed| self.perform_blob_command(deed));
        self.blobs.remove_done_files();
        if self.blobs.received_count > 0 {
            let count = std::mem::take(&mut self.blobs.received_count);
            self.inbox.send_event(Event::BlobsCame { count });
        }
        let lines = std::mem::take(&mut self.blobs.lines);
        let news = std::mem::take(&mut self.blobs.has_news) || any;
        for (at, hub) in self.hubs.values_mut().enumerate() {
            hub.has_news |= news;
            if at == 0 {
                hub.log_lines.extend(lines.iter().cloned());
                hub.has_news |= !lines.is_empty();
            }
        }
        any
    }

    fn perform_blob_command(&mut self, deed: BlobCommand) {
        let threads = &self.blobs.blob_threads;
        match deed {
            BlobCommand::Send { link, data } => self.peers.send_extension(link, BLOBS_TOPIC, data),
            BlobCommand::Probe { item, .. } => _ = threads.pieces.send(BlobPiece::Look { item }),
            BlobCommand::Read { link, item, offset } => {
                let file = self.blobs.files.get(&item).cloned();
                _ = threads.pieces.send(BlobPiece::Read { link, item, offset, file });
            }
            BlobCommand::Write { item, offset, bytes, .. } => {
                _ = threads.pieces.send(BlobPiece::Write { item, offset, bytes })
            }
            BlobCommand::Check { item, .. } => {
                let keep = self.blobs.is_referenced(item);
                _ = threads.pieces.send(BlobPiece::Check { item, keep });
            }
            BlobCommand::Arrived { item, size } => self.blobs.record_received(item, size),
            BlobCommand::Forgotten { link, item } => {
                let hubs = self
                    .hubs
                    .iter()
                    .filter(|(url, hub)| *url != LAN_HUB_ADDRESS && hub.volumes.contains_key(&item.volume));
                if let Some(hub) = self.links.get(&link) {
                    self.blobs.withdrawn.record_deleted(item, hub, hubs.map(|(url, _)| url.as_str()));
                }
            }
            BlobCommand::Remove { .. } => {} // only peers that store blobs are asked for it
            BlobCommand::Log { link, words } | BlobCommand::Refused { link, words } => {
                let name = self.nearby.devices.get(&link).map(|(name, _)| name.clone());
                if let Some((url, hub)) = self.hub_of_link(link) {
                    let who = name.filter(|_| url == LAN_HUB_ADDRESS).unwrap_or_else(|| url.clone());
                    hub.log_lines.push(format!("{who}: {words}"));
                    hub.has_news = true;
                }
            }
        }
    }
}
