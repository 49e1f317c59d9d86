//! A hostile peer at a hub between two devices: what it sends is refused with a log line, and the devices work as if it
//! weren't there.

mod bringing;

use crate::program::{House, bytes};
use host::hub::{HubServer, HubSettings, OpenAccess, RunningHub};
use host::peers::DeviceKey;
use host::peers::hub_client::{HubClient, HubEvent};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::sync::peers::SyncLimits;
use store::sync::wire::{self, WireMessage};
use store::sync::{DocumentAccess, PeerId, PeerMetadata, PeersOutput, SyncPeers};
use store::{ActorId, Block, BlockId, DocId, FileEntry, FileKind, NoteDoc, VolumeDoc};

const SOON: Duration = Duration::from_secs(60);
const HUB: u64 = 1;

/// A hub that accepts every local connection, with its log.
struct Meeting {
    folder: tempfile::TempDir,
    hub: Option<RunningHub>,
    at: String,
    id: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Meeting {
    fn new() -> Meeting {
        let (folder, key) = (tempfile::tempdir().expect("a folder"), DeviceKey::generate().expect("a key"));
        let id = key.id().to_string();
        let mut settings = HubSettings::new(folder.path().to_owned());
        (settings.listen, settings.open) = (([127, 0, 0, 1], 0).into(), OpenAccess::Loopback);
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&log);
        let hub =
            HubServer::start(settings, key, Arc::new(move |line| lines.lock().expect("lock").push(line.to_owned())));
        let hub = hub.expect("a hub");
        let at = hub.public_address().to_owned();
        Meeting { folder, hub: Some(hub), at, id, log }
    }

    #[track_caller]
    fn logged(&self, words: &str) {
        let begun = Instant::now();
        while !self.log.lock().expect("lock").iter().any(|line| line.contains(words)) {
            assert!(begun.elapsed() < SOON, "not in the log: {words}: {:#?}", self.log.lock().expect("lock"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The hostile peer: it speaks the protocol and keeps what it receives.
struct Hostile {
    client: HubClient,
    told: Receiver<HubEvent>,
    peers: SyncPeers,
    name: String,
    chunks: HashMap<DocId, Vec<Vec<u8>>>,
    greeted: bool,
    ended: bool,
}

impl Hostile {
    fn new(at: &str, name: &str) -> Hostile {
        let (tell, told) = channel();
        let client =
            HubClient::start(|| Ok((None, BTreeMap::new())), move |_, one| _ = tell.send(one)).expect("a thread");
        client.dial(HUB, format!("{at}/"));
        let mut peers = SyncPeers::new(PeerId(name.to_owned()), PeerMetadata::default(), SyncLimits::default());
        peers.connect(HUB, true, None, Box::new(|_| DocumentAccess::Write));
        let (name, chunks) = (name.to_owned(), HashMap::new());
        Hostile { client, told, peers, name, chunks, greeted: false, ended: false }
    }

    fn perform(&mut self) {
        loop {
            let outputs = self.peers.take_outputs();
            if outputs.is_empty() {
                return;
            }
            for output in outputs {
                match output {
                    PeersOutput::Send { bytes, .. } => self.client.send(HUB, bytes),
                    PeersOutput::Load { doc } => {
                        let chunks = self.chunks.get(&doc).cloned().unwrap_or_default();
                        self.peers.on_loaded(doc, Ok(chunks));
                    }
                    PeersOutput::Store { doc, ticket, parcel, .. } => {
                        self.chunks.entry(doc).or_default().push(parcel.bytes);
                        self.peers.on_stored(ticket);
                    }
                    PeersOutput::Greeted { .. } => self.greeted = true,
                    PeersOutput::Close { .. } => self.ended = true,
                    _ => {}
                }
            }
        }
    }

    /// Exchanges messages with the hub until a condition holds.
    #[track_caller]
    fn until(&mut self, what: &str, holds: impl Fn(&Hostile) -> bool) {
        let begun = Instant::now();
        self.perform();
        while !holds(self) {
            assert!(begun.elapsed() < SOON, "{what}");
            match self.told.recv_timeout(Duration::from_millis(50)) {
                Ok(HubEvent::Message(bytes)) => self.peers.receive(HUB, &bytes),
                Ok(HubEvent::Closed(_)) => self.ended = true,
                Ok(HubEvent::Open | HubEvent::Notice(_)) | Err(_) => {}
            }
            self.perform();
        }
    }

    /// Sends a document's chunk and waits until the hub has it.
    fn offers(&mut self, doc: DocId, chunk: Vec<u8>) {
        self.chunks.entry(doc).or_default().push(chunk.clone());
        self.peers.on_changed(doc, &chunk);
        self.peers.follow(HUB, doc);
        self.until("the hub has it", |peer| peer.peers.is_in_sync(HUB, doc) == Some(true));
    }

    /// Sends raw sync data about a document and waits until the hub disconnects.
    fn throws(&mut self, hub: &str, doc: DocId, data: Vec<u8>) {
        self.until("it has greeted", |peer| peer.greeted);
        let (sender, target) = (PeerId(self.name.clone()), PeerId(hub.to_owned()));
        self.client.send(HUB, wire::encode(&WireMessage::Sync { sender, target, doc, data }));
        self.until("the hub hangs up", |peer| peer.ended);
    }
}

/// Encodes a number as LEB128.
fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// An automerge sync message without heads or needs that carries this chunk.
fn brings(chunk: &[u8]) -> Vec<u8> {
    let mut message = vec![0x42, 0, 0, 0, 1];
    message.extend(leb(chunk.len() as u64));
    message.extend(chunk);
    message
}

/// A change of a few bytes that claims to insert 100 million letters.
fn hundred_million_letters() -> Vec<u8> {
    // No dependencies, an actor, its sequence number, its first operation, no time, no message, no other actors.
    let mut content = vec![0, 16];
    content.extend([7; 16]);
    content.extend([1, 1, 0, 0, 0]);
    let run = |value: u8| {
        // A run: its length as signed LEB128, then the value.
        let mut bytes = leb(100_000_000);
        bytes.push(value);
        bytes
    };
    // Its columns: the action (`set`), and that each operation is an insertion.
    let (inserts, actions) = ([vec![0], leb(100_000_000)].concat(), run(1));
    content.push(2);
    content.extend([0x34, inserts.len() as u8, 0x42, actions.len() as u8]);
    content.extend(inserts);
    content.extend(actions);
    let mut chunk = vec![0x85, 0x6f, 0x4a, 0x83, 0, 0, 0, 0, 1];
    chunk.extend(leb(content.len() as u64));
    chunk.extend(content);
    chunk
}

const NOTES: &[(&str, &str)] = &[("plan.md", "# Plan\n\nOne.\n"), ("shop.md", "Milk\n")];

fn now(house: &House) {
    let done = house.run(&["sync", "now", "--for", "50"]);
    assert_eq!(done.code, 0, "{}{}{}", done.text(), done.err, house.run(&["sync", "log"]).text());
}

#[test]
fn what_a_hostile_peer_sends_is_refused_and_the_rest_is_unharmed() {
    let meeting = Meeting::new();
    let (one, two) = (House::with(NOTES), House::new());
    let address = one.json(&["sync", "share", "notes", &meeting.at])["address"].as_str().expect("text").to_owned();
    now(&one);
    two.run(&["init"]).good();
    two.run(&["sync", "join", &address, "notes", "--for", "50"]).good();
    let (_, volume) = engine::read_volume_address(&address).expect("an address");

    // Names that lead out of the volume, and one that doesn't.
    let mut peer = Hostile::new(&meeting.at, "hostile");
    peer.peers.follow(HUB, volume);
    peer.until("it has the volume", |peer| peer.peers.heads(volume).is_some_and(|heads| !heads.is_empty()));
    let loaded = VolumeDoc::load(volume, &peer.chunks[&volume], ActorId::from([66; 16])).expect("it is read");
    let mut doc = loaded.doc;
    let paths = ["../../evil.md", "/tmp/tracebook-evil.md", "deep/../../evil.md", "nul\0.md", "fine.md"];
    let files: Vec<(DocId, Option<FileEntry>)> = paths
        .iter()
        .zip(40_u8..)
        .map(|(path, id)| (DocId::random([id; 16]), Some(FileEntry { path: (*path).to_owned(), kind: FileKind::Note })))
        .collect();
    let chunk = doc.commit(None, &files, 0).expect("made");
    peer.offers(volume, chunk);
    for (id, entry) in &files {
        let text = format!("from the peer: {}\n", entry.as_ref().expect("it is there").path.replace('\0', " "));
        let block = Block { id: BlockId(1), pos: "a".to_owned(), text };
        let note = NoteDoc::import(*id, &[block], ActorId::from([66; 16])).expect("a note");
        peer.offers(*id, note.save());
    }
    now(&two);
    let log = two.run(&["sync", "log"]).good().text();
    for name in ["../../evil.md", "/tmp/tracebook-evil.md", "deep/../../evil.md"] {
        assert!(log.contains(&format!("a file name from another device is refused: {name:?}")), "{log}");
    }
    assert_eq!(two.read("notes/fine.md"), b"from the peer: fine.md\n");
    let inside = bytes(&two.path("notes"));
    assert!(inside.keys().all(|path| !path.contains("evil")), "{:?}", inside.keys());
    assert!(!std::path::Path::new("/tmp/tracebook-evil.md").exists());
    assert!(!two.path("evil.md").exists() && !two.path("../evil.md").exists());

    // A few bytes that expand to very many, and a message that is too long.
    let mut bomb = Hostile::new(&meeting.at, "bomb");
    bomb.throws(&meeting.id, volume, brings(&hundred_million_letters()));
    meeting.logged("unpacks to more than a document may hold");
    let mut giant = Hostile::new(&meeting.at, "giant");
    giant.throws(&meeting.id, volume, vec![0x42; 100 << 20]);
    meeting.logged("too");
    // Messages under another peer's name.
    let mut posing = Hostile::new(&meeting.at, "posing");
    posing.until("it has greeted", |peer| peer.greeted);
    posing.name = "hostile".to_owned();
    posing.throws(&meeting.id, volume, vec![0x42, 0, 0, 0, 0]);
    meeting.logged("and claims to be");

    // None of it did any harm.
    one.edit("plan.md", 0, 0, "Still. ");
    for house in [&one, &two, &one] {
        now(house);
    }
    assert_eq!(two.read("notes/plan.md"), b"Still. # Plan\n\nOne.\n");
    assert_eq!(one.read("notes/fine.md"), two.read("notes/fine.md"));
    let mut meeting = meeting;
    meeting.hub.take().expect("it runs").stop();
}
