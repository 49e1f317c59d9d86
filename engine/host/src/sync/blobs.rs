//! Blobs beside documents: attachments and large outputs of shared volumes, exchanged with hubs and devices. What is
//! said and when is the store's (`store::sync::blobs`); where bytes lie is the shelf's.

use super::shelf::{Chore, Done, Piece, Placing, Shelf};
use super::{Desk, LAN, Task};
use engine::event::FileStamp;
use engine::{Attached, Belongings, BlobState, Event};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use store::disk::Reader;
use store::sync::blobs::{Blobs, Checked, Deed, Item, Limits, TOPIC, VERSION};
use store::sync::{Link, Metadata, PeerId, Peers};
use store::{BlobHash, DocId};

/// What is wanted and had is worked out anew this often at most.
const PAUSE: Duration = Duration::from_millis(50);
/// While pieces wait for the line, it is looked at this often; while anything else is under way, this often.
const LINE: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_secs(1);
/// Pieces wait while more bytes than this wait to be sent.
const IDLE: usize = 64 << 10;

/// All that is exchanged beside documents.
pub(super) struct Exchange {
    protocol: Blobs,
    shelf: Shelf,
    volumes: BTreeMap<DocId, Belongings>,
    /// What outputs name, as far as they were read; what of it is here.
    outputs: HashMap<DocId, BTreeMap<BlobHash, (u64, bool)>>,
    /// Where attachments lie that others may have.
    files: HashMap<Item, (PathBuf, FileStamp)>,
    /// What has come and is on its way into a file.
    whole: BTreeSet<Item>,
    /// What is being read, hashed, placed.
    reading: BTreeSet<DocId>,
    hashing: BTreeSet<DocId>,
    placing: BTreeSet<DocId>,
    /// What could not be placed, as it was to be.
    stuck: BTreeMap<DocId, Attached>,
    said: BTreeSet<String>,
    /// Lines for the log.
    lines: Vec<String>,
    stale: bool,
    due: Option<Instant>,
    began: Instant,
    /// Outputs that came and were not told of.
    came: u64,
    news: bool,
}

impl Exchange {
    pub(super) fn new(folder: &Path, reader: Box<dyn Reader>, tasks: Sender<Task>) -> Exchange {
        Exchange {
            protocol: Blobs::new(false, Limits::default()),
            shelf: Shelf::start(folder, reader, tasks),
            volumes: BTreeMap::new(),
            outputs: HashMap::new(),
            files: HashMap::new(),
            whole: BTreeSet::new(),
            reading: BTreeSet::new(),
            hashing: BTreeSet::new(),
            placing: BTreeSet::new(),
            stuck: BTreeMap::new(),
            said: BTreeSet::new(),
            lines: Vec::new(),
            stale: false,
            due: None,
            began: Instant::now(),
            came: 0,
            news: false,
        }
    }

    /// Which version of this is spoken.
    pub(super) fn version() -> Option<u64> {
        Some(VERSION)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn say_once(&mut self, line: String) {
        if self.said.len() < 1_000 && self.said.insert(line.clone()) {
            self.lines.push(line);
        }
    }

    /// When there is something to be done, though nothing comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let tick = match (self.protocol.is_asked(), self.protocol.is_busy()) {
            (true, _) => Some(now + LINE),
            (false, true) => Some(now + TICK),
            (false, false) => None,
        };
        let stale = self.stale.then(|| self.due.unwrap_or(now).max(now));
        tick.into_iter().chain(stale).min()
    }

    /// What volumes have beside documents has changed.
    pub(super) fn belongings(&mut self, volumes: BTreeMap<DocId, Belongings>) {
        self.volumes = volumes;
        self.stale = true;
        self.news = true;
        for belongings in self.volumes.values() {
            for (file, (path, attached)) in &belongings.files {
                if *attached == Attached::Read && self.hashing.insert(*file) {
                    let path = belongings.root.join(path);
                    let _ = self.shelf.chores.send(Chore::Hash { file: *file, path });
                }
            }
            for doc in belongings.outputs.keys() {
                if !self.outputs.contains_key(doc) && self.reading.insert(*doc) {
                    let _ = self.shelf.chores.send(Chore::Outputs { doc: *doc });
                }
            }
        }
    }

    /// A document has changed on the disk: if these are outputs, they may name others.
    pub(super) fn written(&mut self, doc: DocId) {
        if self.outputs.remove(&doc).is_some() && self.reading.insert(doc) {
            let _ = self.shelf.chores.send(Chore::Outputs { doc });
        } else if self.reading.contains(&doc) {
            let _ = self.shelf.chores.send(Chore::Outputs { doc }); // it may have been read before
        }
    }

    fn done(&mut self, done: Done, peers: &Peers, tell: impl Fn(Event)) {
        let (now, may) = (self.now(), |link: Link, doc: DocId| peers.may(link, doc));
        match done {
            Done::Outputs { doc, blobs } => {
                self.reading.remove(&doc);
                self.outputs.insert(doc, blobs);
                (self.stale, self.news) = (true, true);
            }
            Done::Hashed { file, stamp } => {
                self.hashing.remove(&file);
                tell(Event::AttachmentRead { file, stamp });
            }
            Done::Placed { volume, file, path, result } => {
                self.placing.remove(&file);
                self.stale = true;
                match result {
                    Ok(stamp) => tell(Event::AttachmentPlaced { volume, file, path, stamp }),
                    Err(why) => {
                        let was = self.volumes.get(&volume).and_then(|volume| volume.files.get(&file));
                        self.stuck.extend(was.map(|(_, attached)| (file, attached.clone())));
                        self.say_once(format!("a file from another device could not be put into its place: {why}"));
                    }
                }
            }
            Done::Dropped => {}
            Done::Looked { item, found } => self.protocol.looked(item, found, &may),
            Done::Read { link, item, offset, piece } => self.protocol.read(link, item, offset, piece),
            Done::Failed { item, why } => {
                self.protocol.written(item, now, &may);
                self.say_once(why);
            }
            Done::Checked { item, checked } => {
                if let Checked::Failed(why) = &checked {
                    self.say_once(why.clone());
                }
                self.protocol.checked(item, &checked, now, &may);
            }
        }
    }

    /// Works out what is here and what is wanted.
    fn work_out(&mut self, peers: &Peers) {
        let (mut holds, mut wants) = (BTreeMap::new(), BTreeMap::new());
        let (mut needed, mut places) = (BTreeSet::new(), Vec::new());
        let mut too_large = Vec::new();
        self.files.clear();
        for (volume, belongings) in &self.volumes {
            for (file, (path, attached)) in &belongings.files {
                match attached {
                    Attached::Read => {}
                    Attached::Hold(stamp) => {
                        let item = Item { volume: *volume, hash: stamp.hash };
                        if stamp.size > Limits::default().largest {
                            too_large.push(path.clone());
                            continue;
                        }
                        holds.insert(item, stamp.size);
                        self.files.insert(item, (belongings.root.join(path), *stamp));
                    }
                    Attached::Fetch { bytes, urgent, .. } => {
                        let item = Item { volume: *volume, hash: bytes.hash };
                        needed.insert(item);
                        if bytes.size > Limits::default().largest {
                            too_large.push(path.clone());
                        }
                        places.push((item, *file, bytes.size, *urgent));
                    }
                }
            }
            for (doc, urgent) in &belongings.outputs {
                for (hash, (size, here)) in self.outputs.get(doc).into_iter().flatten() {
                    let item = Item { volume: *volume, hash: *hash };
                    if *here {
                        holds.insert(item, *size);
                    } else {
                        let wish = wants.entry(item).or_insert((*size, false));
                        wish.1 |= *urgent;
                    }
                }
            }
        }
        for (item, file, size, urgent) in places {
            if self.whole.contains(&item) || self.files.contains_key(&item) {
                holds.insert(item, size);
                self.place(item, file);
            } else {
                let wish = wants.entry(item).or_insert((size, false));
                wish.1 |= urgent;
            }
        }
        for item in self.whole.clone() {
            if !needed.contains(&item) && self.placing.is_empty() {
                self.whole.remove(&item);
                let _ = self.shelf.chores.send(Chore::Drop { hash: item.hash });
            }
        }
        for path in too_large {
            let most = Limits::default().largest >> 20;
            self.say_once(format!("{path} has more than {most} MB: it stays where it is, and does not go along"));
        }
        let (held, wanted) = self.protocol.items();
        let gone: Vec<Item> = held.filter(|item| !holds.contains_key(item)).copied().collect();
        let given_up: Vec<Item> = wanted.filter(|item| !wants.contains_key(item)).copied().collect();
        gone.into_iter().for_each(|item| self.protocol.release(item));
        given_up.into_iter().for_each(|item| self.protocol.unwant(item));
        let may = |link: Link, doc: DocId| peers.may(link, doc);
        holds.into_iter().for_each(|(item, size)| self.protocol.hold(item, size, &may));
        for (item, (size, urgent)) in wants {
            self.protocol.want(item, size, urgent, &may);
        }
    }

    /// Has bytes that are here put into a file.
    fn place(&mut self, item: Item, file: DocId) {
        let Some(belongings) = self.volumes.get(&item.volume) else { return };
        let Some((path, attached)) = belongings.files.get(&file) else { return };
        let Attached::Fetch { bytes, over, kept, .. } = attached else { return };
        if self.stuck.get(&file) == Some(attached) || !self.placing.insert(file) {
            return;
        }
        let placing = Placing {
            volume: item.volume,
            file,
            root: belongings.root.clone(),
            path: path.clone(),
            hash: bytes.hash,
            over: *over,
            kept: kept.clone(),
            like: self.files.get(&item).cloned(),
        };
        let _ = self.shelf.chores.send(Chore::Place(Box::new(placing)));
    }

    /// It is here.
    fn came(&mut self, item: Item) {
        let mut kept = false;
        let docs: Vec<DocId> =
            self.volumes.get(&item.volume).map(|one| one.outputs.keys().copied().collect()).unwrap_or_default();
        for doc in docs {
            if let Some((_, here)) = self.outputs.get_mut(&doc).and_then(|blobs| blobs.get_mut(&item.hash)) {
                (*here, kept) = (true, true);
            }
        }
        self.came += u64::from(kept);
        self.whole.insert(item);
        (self.stale, self.news) = (true, true);
    }

    /// Whether outputs name it: then it is a blob of the workspace.
    fn is_output(&self, item: Item) -> bool {
        let docs = self.volumes.get(&item.volume).into_iter().flat_map(|one| one.outputs.keys());
        docs.filter_map(|doc| self.outputs.get(doc)).any(|blobs| blobs.contains_key(&item.hash))
    }

    /// How it stands over these connections.
    pub(super) fn state(&self, volumes: &BTreeSet<DocId>, links: &[Link], is_online: bool) -> BlobState {
        let knows: Vec<Link> = links.iter().copied().filter(|link| self.protocol.knows(*link)).collect();
        let (coming, there) = self.protocol.coming(volumes, &knows);
        let going = knows.iter().map(|link| self.protocol.going(*link));
        let (going, refused) = going.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let busy = usize::from(self.stale) + self.reading.len() + self.hashing.len() + self.placing.len();
        let on_way = self.whole.iter().filter(|item| volumes.contains(&item.volume)).count();
        BlobState {
            kept: is_online.then_some(!knows.is_empty()),
            coming: coming + on_way,
            there: there + on_way,
            going,
            refused,
            busy,
        }
    }
}

impl Desk {
    /// Who has greeted may know this.
    pub(super) fn blobs_welcome(&mut self, link: Link, peer: &PeerId, metadata: &Metadata) {
        if metadata.blobs.is_some_and(|version| version >= VERSION) {
            let peers = &self.peers;
            let may = |link: Link, doc: DocId| peers.may(link, doc);
            self.blobs.protocol.connect(link, peer.clone(), !metadata.ephemeral, &may);
        }
        self.blobs.news = true;
    }

    pub(super) fn blobs_received(&mut self, link: Link, topic: &str, data: &[u8]) {
        if topic == TOPIC {
            let (peers, now) = (&self.peers, self.blobs.now());
            self.blobs.protocol.receive(link, data, now, &|link, doc| peers.may(link, doc));
            self.blobs.news = true;
        }
    }

    pub(super) fn blobs_done(&mut self, done: Done) {
        let inbox = self.inbox.clone();
        self.blobs.done(done, &self.peers, |event| inbox.event(event));
    }

    /// Does what is to be done; whether messages are to be sent.
    pub(super) fn blobs_step(&mut self) -> bool {
        let peers = &self.peers;
        let may = |link: Link, doc: DocId| peers.may(link, doc);
        for link in self.blobs.protocol.links() {
            if peers.who(link).is_none() {
                self.blobs.protocol.disconnect(link, &may);
                self.blobs.news = true;
            }
        }
        let now = Instant::now();
        if self.blobs.stale && self.blobs.due.is_none_or(|due| due <= now) {
            (self.blobs.stale, self.blobs.due, self.blobs.news) = (false, Some(now + PAUSE), true);
            self.blobs.work_out(peers);
        }
        let (client, clock) = (&self.client, self.blobs.now());
        let is_idle = |link: Link| client.as_ref().is_none_or(|client| client.waiting(link) < IDLE);
        self.blobs.protocol.step(clock, &may, &is_idle);
        let deeds = self.blobs.protocol.take();
        let any = !deeds.is_empty();
        deeds.into_iter().for_each(|deed| self.blob_deed(deed));
        if self.blobs.came > 0 {
            let count = std::mem::take(&mut self.blobs.came);
            self.inbox.event(Event::BlobsCame { count });
        }
        let lines = std::mem::take(&mut self.blobs.lines);
        let news = std::mem::take(&mut self.blobs.news) || any;
        for (at, hub) in self.hubs.values_mut().enumerate() {
            hub.news |= news;
            if at == 0 {
                hub.said.extend(lines.iter().cloned());
                hub.news |= !lines.is_empty();
            }
        }
        any
    }

    fn blob_deed(&mut self, deed: Deed) {
        let shelf = &self.blobs.shelf;
        match deed {
            Deed::Send { link, data } => self.peers.extend(link, TOPIC, data),
            Deed::Look { item } => _ = shelf.pieces.send(Piece::Look { item }),
            Deed::Read { link, item, offset } => {
                let file = self.blobs.files.get(&item).cloned();
                _ = shelf.pieces.send(Piece::Read { link, item, offset, file });
            }
            Deed::Write { item, offset, bytes, .. } => _ = shelf.pieces.send(Piece::Write { item, offset, bytes }),
            Deed::Check { item } => {
                let keep = self.blobs.is_output(item);
                _ = shelf.pieces.send(Piece::Check { item, keep });
            }
            Deed::Came { item, .. } => self.blobs.came(item),
            Deed::Say { link, words } | Deed::Refused { link, words } => {
                let name = self.nearby.devices.get(&link).map(|(name, _)| name.clone());
                if let Some((url, hub)) = self.hub(link) {
                    let who = name.filter(|_| url == LAN).unwrap_or_else(|| url.clone());
                    hub.said.push(format!("{who}: {words}"));
                    hub.news = true;
                }
            }
        }
    }
}
