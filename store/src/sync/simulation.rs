//! Simulates many devices in one process: random schedules, cut connections, duplicated messages, crashes between an
//! edit and its write, disks restored from an old backup. At the end, all devices must have the same state, with every
//! edit that was on a disk.

use super::peers::{DiskTicket, DocumentAccess, HeadsHash, LinkId, PeersOutput, SyncLimits, SyncPeers};
use super::wire::{self, PeerId, PeerMetadata};
use crate::id::{BlockId, DocId};
use crate::note::{NoteDoc, NoteOp};
use automerge::ActorId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Enough documents that volumes are compared instead of followed one by one.
const DOCS: [DocId; 8] = {
    let mut docs = [DocId([0; 16]); 8];
    let mut at = 0;
    while at < docs.len() {
        docs[at] = DocId([at as u8 + 1; 16]);
        at += 1;
    }
    docs
};
/// The volume that contains them.
const VOLUME: DocId = DOCS[0];

/// SplitMix64, a seeded random number generator.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}

type DeviceChunks = BTreeMap<DocId, Vec<Vec<u8>>>;

/// The origin of a pending write.
#[derive(Clone, Copy)]
enum DiskReason {
    /// An edit made here.
    Edit(u64),
    /// Changes received from a peer.
    Peer(DiskTicket),
}

/// A device: its disk, its pending writes, and its documents as the user sees them.
struct SimulatedDevice {
    name: String,
    disk: DeviceChunks,
    backup: DeviceChunks,
    queue: VecDeque<(DocId, Vec<u8>, DiskReason)>,
    loads: VecDeque<DocId>,
    docs: BTreeMap<DocId, NoteDoc>,
    peers: SyncPeers,
    actor: ActorId,
    /// Hashes of the documents' heads and the number of chunks at that time, stored for the next start.
    prints: BTreeMap<DocId, (usize, HeadsHash)>,
    /// Whether it compares volumes before syncing their documents.
    compares: bool,
}

/// Messages in transit between two devices.
struct SimulatedWire {
    ends: (usize, usize),
    links: (LinkId, LinkId),
    queues: (VecDeque<Vec<u8>>, VecDeque<Vec<u8>>),
}

struct SimulatedWorld {
    chance: SplitMix,
    devices: Vec<SimulatedDevice>,
    wires: Vec<SimulatedWire>,
    next_link: LinkId,
    edits: u64,
    actors: u8,
    /// Whether a disk was restored from a backup, so that edits were lost on purpose.
    restored: bool,
    durable: BTreeSet<u64>,
    /// Number of documents that two devices agreed on without syncing them.
    agreed: usize,
    /// Devices that will offer all documents over a connection after the handshake.
    offering: Vec<(usize, LinkId)>,
}

/// Starts a program on a disk with the hashes that it stored before.
fn peers(name: &str, compares: bool, disk: &DeviceChunks, prints: &BTreeMap<DocId, (usize, HeadsHash)>) -> SyncPeers {
    let limits = SyncLimits { max_resting_documents: 6, ..SyncLimits::default() }; // documents are read again and again
    let metadata = PeerMetadata { tracebook: compares.then_some(wire::EXTENSIONS_VERSION), ..PeerMetadata::default() };
    let mut peers = SyncPeers::new(PeerId(name.to_owned()), metadata, limits);
    for (doc, chunks) in disk {
        let print = prints.get(doc).filter(|(count, _)| *count == chunks.len()).map(|(_, print)| *print);
        peers.set_heads_hash(*doc, print);
    }
    peers
}

impl SimulatedWorld {
    fn new(seed: u64) -> SimulatedWorld {
        let mut chance = SplitMix(seed);
        let count = 2 + chance.below(7);
        let mut world = SimulatedWorld {
            chance,
            devices: Vec::new(),
            wires: Vec::new(),
            next_link: 1,
            edits: 0,
            actors: 0,
            restored: false,
            durable: BTreeSet::new(),
            agreed: 0,
            offering: Vec::new(),
        };
        // Most documents exist on all devices from the start.
        let actor = world.actor();
        let mut disk = DeviceChunks::new();
        for doc in &DOCS[..7] {
            world.edits += 1;
            let op = NoteOp::Insert { block: BlockId(world.edits), pos: "n".to_owned(), text: "old ".to_owned() };
            let mut note = NoteDoc::load(*doc, &[], actor.clone()).expect("it loads").doc;
            note.commit(&[op], 1, None).expect("an edit");
            disk.insert(*doc, vec![note.save()]);
            world.durable.insert(world.edits);
        }
        // In most worlds, all devices are Tracebooks. In others, some don't compare, like other programs.
        let mixed = seed % 4 == 3;
        for number in 0..count {
            let name = format!("device {number}");
            let actor = world.actor();
            let compares = !mixed || world.chance.below(2) == 0;
            world.devices.push(SimulatedDevice {
                peers: peers(&name, compares, &disk, &BTreeMap::new()),
                prints: BTreeMap::new(),
                compares,
                name,
                disk: disk.clone(),
                backup: disk.clone(),
                queue: VecDeque::new(),
                loads: VecDeque::new(),
                docs: BTreeMap::new(),
                actor,
            });
        }
        world
    }

    fn actor(&mut self) -> ActorId {
        self.actors += 1;
        ActorId::from([self.actors; 16])
    }

    /// Returns the document as the user of a device sees it, loaded from disk if it isn't open.
    fn open(&mut self, at: usize, doc: DocId) -> &mut NoteDoc {
        let device = &mut self.devices[at];
        let chunks = device.disk.get(&doc).cloned().unwrap_or_default();
        let actor = device.actor.clone();
        device.docs.entry(doc).or_insert_with(|| NoteDoc::load(doc, &chunks, actor).expect("it loads").doc)
    }

    fn edit(&mut self, at: usize) {
        let doc = DOCS[self.chance.below(DOCS.len())];
        self.edits += 1;
        let edit = self.edits;
        let first = !self.devices[at].disk.contains_key(&doc)
            && !self.devices[at].queue.iter().any(|(queued, ..)| *queued == doc);
        let pos = char::from(b'a' + self.chance.below(26) as u8).to_string();
        let note = self.open(at, doc);
        let op = NoteOp::Insert { block: BlockId(edit), pos, text: format!("{edit} ") };
        let bytes = note.commit(&[op], edit as i64, None).expect("an edit");
        let bytes = if first { note.save() } else { bytes };
        self.devices[at].queue.push_back((doc, bytes, DiskReason::Edit(edit)));
    }

    /// Performs one pending disk operation of a device.
    fn write(&mut self, at: usize) {
        let device = &mut self.devices[at];
        if let Some((doc, bytes, why)) = device.queue.pop_front() {
            device.disk.entry(doc).or_default().push(bytes.clone());
            match why {
                DiskReason::Peer(ticket) => _ = device.peers.on_stored(ticket),
                DiskReason::Edit(edit) => {
                    device.peers.on_changed(doc, &bytes);
                    self.durable.insert(edit);
                }
            }
        } else if let Some(doc) = device.loads.pop_front() {
            let chunks = device.disk.get(&doc).cloned().unwrap_or_default();
            device.peers.on_loaded(doc, Ok(chunks));
        }
        self.perform(at);
    }

    fn on_disk(&self, at: usize) -> BTreeSet<u64> {
        let read = |(doc, chunks): (&DocId, &Vec<Vec<u8>>)| {
            let note = NoteDoc::load(*doc, chunks, ActorId::from([0; 16])).expect("it loads").doc;
            note.blocks().into_iter().map(|block| block.id.0).collect::<Vec<u64>>()
        };
        self.devices[at].disk.iter().flat_map(read).collect()
    }

    fn perform(&mut self, at: usize) {
        for output in self.devices[at].peers.take_outputs() {
            match output {
                PeersOutput::Send { link, bytes } => {
                    for wire in &mut self.wires {
                        if wire.links.0 == link && wire.ends.0 == at {
                            wire.queues.0.push_back(bytes.clone());
                        } else if wire.links.1 == link && wire.ends.1 == at {
                            wire.queues.1.push_back(bytes.clone());
                        }
                    }
                }
                PeersOutput::Close { link, .. } => self.cut_link(link),
                PeersOutput::Load { doc } => self.devices[at].loads.push_back(doc),
                PeersOutput::Store { doc, ticket, mut parcel, .. } => {
                    self.open(at, doc).merge_parcel(&mut parcel).expect("it merges");
                    self.devices[at].queue.push_back((doc, parcel.bytes, DiskReason::Peer(ticket)));
                }
                PeersOutput::Refused { why, .. } => panic!("refused: {why}"),
                PeersOutput::NeedVolumeDocs { link, scope } => {
                    let docs = if scope == VOLUME { Arc::new(BTreeSet::from(DOCS)) } else { Arc::default() };
                    self.devices[at].peers.on_volume_docs(link, scope, docs);
                    self.perform(at);
                }
                PeersOutput::Agreed { docs, .. } => self.agreed += docs.len(),
                PeersOutput::Greeted { link, .. } => {
                    if let Some(found) = self.offering.iter().position(|one| *one == (at, link)) {
                        self.offering.swap_remove(found);
                        DOCS.into_iter().for_each(|doc| self.devices[at].peers.offer_document(link, doc));
                        self.perform(at);
                    }
                }
                PeersOutput::Ephemeral { .. }
                | PeersOutput::Absent { .. }
                | PeersOutput::SyncChanged { .. }
                | PeersOutput::Extension { .. } => {}
            }
        }
    }

    fn connect(&mut self, a: usize, b: usize) {
        if a == b || self.wires.iter().any(|wire| wire.ends == (a, b) || wire.ends == (b, a)) {
            return;
        }
        let links = (self.next_link, self.next_link + 1);
        self.next_link += 2;
        self.wires.push(SimulatedWire { ends: (a, b), links, queues: Default::default() });
        self.devices[a].peers.connect(links.0, true, None, Box::new(|_| DocumentAccess::Write));
        self.devices[b].peers.connect(links.1, false, None, Box::new(|_| DocumentAccess::Write));
        let docs = Arc::new(BTreeSet::from(DOCS));
        if self.chance.below(4) > 0 {
            self.devices[a].peers.follow_volume(links.0, VOLUME, docs);
        } else {
            // Some offer all documents as new after the handshake, whether or not they are.
            self.offering.push((a, links.0));
        }
        self.perform(a);
        self.perform(b);
    }

    fn cut_link(&mut self, link: LinkId) {
        if let Some(at) = self.wires.iter().position(|wire| wire.links.0 == link || wire.links.1 == link) {
            self.cut(at);
        }
    }

    fn cut(&mut self, at: usize) {
        let wire = self.wires.swap_remove(at);
        self.devices[wire.ends.0].peers.disconnect(wire.links.0);
        self.devices[wire.ends.1].peers.disconnect(wire.links.1);
    }

    /// Delivers the first waiting message in one direction of a connection, and delivers it again if `twice`.
    fn deliver(&mut self, wire: usize, back: bool, twice: bool) {
        let SimulatedWire { ends, links, queues } = &mut self.wires[wire];
        let (queue, to, link) = if back { (&mut queues.1, ends.0, links.0) } else { (&mut queues.0, ends.1, links.1) };
        let Some(bytes) = queue.pop_front() else { return };
        self.devices[to].peers.receive(link, &bytes);
        // A duplicated greeting would correctly end the connection.
        if twice && bytes.windows(4).any(|part| part == b"sync") {
            self.devices[to].peers.receive(link, &bytes);
        }
        self.perform(to);
    }

    /// Kills the program: everything that wasn't on disk is lost.
    fn crash(&mut self, at: usize) {
        while let Some(wire) = self.wires.iter().position(|wire| wire.ends.0 == at || wire.ends.1 == at) {
            self.cut(wire);
        }
        let actor = self.actor();
        let device = &mut self.devices[at];
        // Its stored hashes are from an earlier time, or lost.
        if self.chance.below(3) > 0 {
            let counted = |(doc, print)| Some((doc, (device.disk.get(&doc)?.len(), print)));
            device.prints = device.peers.heads_hashes().filter_map(counted).collect();
        }
        device.actor = actor;
        device.queue.clear();
        device.loads.clear();
        device.docs.clear();
        device.peers = peers(&device.name, device.compares, &device.disk, &device.prints);
    }

    fn chaos(&mut self) {
        let count = self.devices.len();
        let at = self.chance.below(count);
        match self.chance.below(100) {
            0..=14 => self.edit(at),
            15..=39 => self.write(at),
            40..=44 => {
                let other = self.chance.below(count);
                self.connect(at, other);
            }
            45..=46 if !self.wires.is_empty() => {
                let wire = self.chance.below(self.wires.len());
                self.cut(wire);
            }
            47 if self.actors < 250 => self.crash(at),
            48 => self.devices[at].backup = self.devices[at].disk.clone(),
            49 if self.chance.below(4) == 0 && self.actors < 250 => {
                self.crash(at);
                let device = &mut self.devices[at];
                // The backup's record of heads is as old as the backup.
                (device.disk, device.prints) = (device.backup.clone(), BTreeMap::new());
                device.peers = peers(&device.name, device.compares, &device.disk, &device.prints);
                self.restored = true;
            }
            _ if !self.wires.is_empty() => {
                let wire = self.chance.below(self.wires.len());
                let (back, twice) = (self.chance.below(2) == 0, self.chance.below(10) == 0);
                self.deliver(wire, back, twice);
            }
            _ => {}
        }
    }

    /// Connects all devices to the first one, and delivers all messages.
    fn heal(&mut self, seed: u64) {
        for at in 1..self.devices.len() {
            self.connect(at, 0);
        }
        for _ in 0..3_000 {
            let mut quiet = true;
            for at in 0..self.devices.len() {
                while !self.devices[at].queue.is_empty() || !self.devices[at].loads.is_empty() {
                    quiet = false;
                    self.write(at);
                }
            }
            for wire in 0..self.wires.len() {
                for back in [false, true] {
                    let waits = self
                        .wires
                        .get(wire)
                        .is_some_and(|wire| !if back { wire.queues.1.is_empty() } else { wire.queues.0.is_empty() });
                    if waits {
                        quiet = false;
                        self.deliver(wire, back, false);
                    }
                }
            }
            if quiet {
                return;
            }
        }
        panic!("seed {seed}: it never becomes quiet");
    }
}

/// Runs a simulation. Returns the number of documents that two devices agreed on without syncing them.
fn run(seed: u64, steps: usize) -> usize {
    let mut world = SimulatedWorld::new(seed);
    for _ in 0..steps {
        world.chaos();
    }
    for at in 0..world.devices.len() {
        while !world.devices[at].queue.is_empty() {
            world.write(at);
        }
    }
    let all: BTreeSet<u64> = (0..world.devices.len()).flat_map(|at| world.on_disk(at)).collect();
    if !world.restored {
        assert_eq!(all, world.durable, "seed {seed}: an edit that was on a disk is gone");
    }
    world.heal(seed);
    for at in 0..world.devices.len() {
        assert_eq!(world.on_disk(at), all, "seed {seed}: {} lacks something", world.devices[at].name);
        for doc in DOCS {
            let heads = |at: usize| {
                let chunks = world.devices[at].disk.get(&doc)?;
                Some(NoteDoc::load(doc, chunks, ActorId::from([0; 16])).expect("it loads").doc.heads())
            };
            assert_eq!(heads(at), heads(0), "seed {seed}: {} has another history", world.devices[at].name);
        }
    }
    for wire in &world.wires {
        for doc in DOCS.into_iter().filter(|doc| world.devices[0].disk.contains_key(doc)) {
            let device = &world.devices[wire.ends.0];
            assert_ne!(device.peers.is_in_sync(wire.links.0, doc), Some(false), "seed {seed}: {}", device.name);
        }
    }
    world.agreed
}

/// Runs a range of seeds. `SYNC_SEEDS=from..to` selects others; the nightly run takes thousands.
fn seeds(from: u64, to: u64) -> usize {
    let asked = std::env::var("SYNC_SEEDS").ok();
    let asked = asked.as_deref().and_then(|seeds| seeds.split_once(".."));
    let asked = asked.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    asked.unwrap_or(from..to).map(|seed| run(seed, 150)).sum()
}

#[test]
fn devices_agree_whatever_happens() {
    assert!(seeds(0, 100) > 0, "nobody ever compares");
}

#[test]
fn devices_agree_whatever_else_happens() {
    if std::env::var_os("SYNC_SEEDS").is_none() {
        assert!(seeds(100, 200) > 0, "nobody ever compares");
    }
}
