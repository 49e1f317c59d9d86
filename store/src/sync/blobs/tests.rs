//! Blob transfers between peers without sockets: complete, interrupted, wrong, forbidden and oversized ones.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const V: DocId = DocId([1; 16]);
const LINE: LinkId = 1;

fn writes(_: LinkId, _: DocId) -> DocumentAccess {
    DocumentAccess::Write
}

/// Generates bytes that depend on `seed`.
fn bytes(seed: u8, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

fn item(bytes: &[u8]) -> VolumeBlob {
    VolumeBlob { volume: V, hash: BlobHash::of(bytes) }
}

/// A peer with a simulated disk.
struct Peer {
    blobs: BlobTransfers,
    whole: HashMap<VolumeBlob, Vec<u8>>,
    parts: HashMap<VolumeBlob, Vec<u8>>,
    /// The blobs in `whole` that came as files of states only.
    states: BTreeSet<VolumeBlob>,
    /// The files that a peer has forgotten.
    forgot: BTreeSet<VolumeBlob>,
    said: Vec<&'static str>,
    came: Vec<VolumeBlob>,
    /// Number of bytes sent in pieces.
    sent: usize,
    /// Whether it sends wrong bytes.
    lies: bool,
    may: DocumentAccess,
    full: bool,
}

impl Peer {
    fn new(keeps: bool) -> Peer {
        Peer {
            blobs: BlobTransfers::new(keeps, BlobLimits::default()),
            whole: HashMap::new(),
            parts: HashMap::new(),
            states: BTreeSet::new(),
            forgot: BTreeSet::new(),
            said: Vec::new(),
            came: Vec::new(),
            sent: 0,
            lies: false,
            may: DocumentAccess::Write,
            full: false,
        }
    }

    fn with(keeps: bool, all: &[&[u8]]) -> Peer {
        let mut peer = Peer::new(keeps);
        for bytes in all {
            peer.whole.insert(item(bytes), bytes.to_vec());
            if !keeps {
                peer.blobs.add_held(item(bytes), bytes.len() as u64, &writes);
            }
        }
        peer
    }

    /// Holds these files of states and no others; those that it held before are withdrawn.
    fn share_states(&mut self, all: &[&[u8]]) {
        let items: BTreeSet<VolumeBlob> = all.iter().map(|bytes| item(bytes)).collect();
        let gone: BTreeSet<VolumeBlob> = self.states.difference(&items).copied().collect();
        gone.iter().for_each(|item| self.blobs.remove_held(*item));
        self.states.clone_from(&items);
        self.blobs.set_state_files(items, &writes);
        for bytes in all {
            self.whole.insert(item(bytes), bytes.to_vec());
            self.blobs.add_held(item(bytes), bytes.len() as u64, &writes);
        }
        self.blobs.set_withdrawn(gone, &writes);
    }

    fn want(&mut self, bytes: &[u8]) {
        self.blobs.want(item(bytes), Some(bytes.len() as u64), false, &writes);
    }

    /// Performs all commands and returns the messages.
    fn perform(&mut self, now: i64) -> Vec<(LinkId, Vec<u8>)> {
        let mut out = Vec::new();
        let access = self.may;
        let may = move |_: LinkId, _: DocId| access;
        loop {
            self.blobs.advance(now, &may, &|_| true);
            let deeds = self.blobs.take_commands();
            if deeds.is_empty() {
                return out;
            }
            for deed in deeds {
                match deed {
                    BlobCommand::Send { link, data } => out.push((link, data)),
                    BlobCommand::Probe { item, keeps } => {
                        if keeps {
                            self.states.remove(&item);
                        }
                        let part = self.parts.get(&item).map_or(0, |part| part.len() as u64);
                        let whole = self.whole.get(&item).map(|all| BlobExtent::Whole(all.len() as u64));
                        let found = whole.unwrap_or(BlobExtent::Part(part));
                        self.blobs.on_probed(item, found, &may);
                    }
                    BlobCommand::Read { link, item, offset } => {
                        let found = self.whole.get(&item).map(|all| {
                            let at = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                            let mut piece = all[at..].iter().take(PIECE_BYTES as usize).copied().collect::<Vec<u8>>();
                            if let Some(first) = piece.first_mut().filter(|_| self.lies) {
                                *first ^= 1;
                            }
                            (all.len() as u64, piece)
                        });
                        self.sent += found.as_ref().map_or(0, |(_, piece)| piece.len());
                        self.blobs.on_read(link, item, offset, found);
                    }
                    BlobCommand::Write { item, .. } if self.full => self.blobs.on_failed(item, now, &may),
                    BlobCommand::Write { item, offset, bytes, .. } => {
                        let part = self.parts.entry(item).or_default();
                        assert!(part.len() as u64 >= offset, "nothing is left out");
                        part.truncate(offset as usize);
                        part.extend(bytes);
                    }
                    BlobCommand::Check { item, is_state } => {
                        let part = self.parts.remove(&item).unwrap_or_default();
                        let good = BlobHash::of(&part) == item.hash;
                        if good {
                            self.whole.insert(item, part);
                        }
                        if good && is_state {
                            self.states.insert(item);
                        }
                        let checked = if good { CheckOutcome::Good } else { CheckOutcome::Bad };
                        self.blobs.on_checked(item, &checked, now, &may);
                    }
                    BlobCommand::Remove { link, item } => {
                        let is_state = self.states.remove(&item);
                        if is_state {
                            self.whole.remove(&item);
                        }
                        self.blobs.on_removed(link, item, Some(is_state), &may);
                    }
                    BlobCommand::Forgotten { item, .. } => _ = self.forgot.insert(item),
                    BlobCommand::Arrived { item, .. } => self.came.push(item),
                    BlobCommand::Log { words, .. } | BlobCommand::Refused { words, .. } => self.said.push(words),
                }
            }
        }
    }
}

fn connect(one: &mut Peer, two: &mut Peer, link: LinkId) {
    let access = two.may;
    one.blobs.connect(link, PeerId("two".to_owned()), two.blobs.is_keeper, &writes);
    two.blobs.connect(link, PeerId("one".to_owned()), one.blobs.is_keeper, &move |_, _| access);
    one.blobs.set_peer_version(link, BLOBS_VERSION, &writes);
    two.blobs.set_peer_version(link, BLOBS_VERSION, &move |_, _| access);
}

/// Exchanges messages until none is left, or `most` messages were sent.
fn talk(one: &mut Peer, two: &mut Peer, most: usize) -> usize {
    let mut count = 0;
    loop {
        let mut quiet = true;
        for back in [false, true] {
            let (from, to) = if back { (&mut *two, &mut *one) } else { (&mut *one, &mut *two) };
            for (link, data) in from.perform(0) {
                quiet = false;
                count += 1;
                let access = to.may;
                to.blobs.receive(link, &data, 0, &move |_, _| access);
                if count >= most {
                    return count;
                }
            }
        }
        if quiet {
            return count;
        }
    }
}

const ALL: usize = usize::MAX;

#[test]
fn what_is_wanted_comes_and_nothing_else() {
    let sizes = [0, 1, PIECE_BYTES as usize - 1, PIECE_BYTES as usize, PIECE_BYTES as usize + 1, 3_000_000];
    let all: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(seed, size)| bytes(seed as u8, *size)).collect();
    let other = bytes(99, 1_000);
    let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).chain([other.as_slice()]).collect();
    let (mut one, mut two) = (Peer::new(false), Peer::with(false, &slices));
    all.iter().for_each(|bytes| one.want(bytes));
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, ALL);
    for bytes in &all {
        assert_eq!(one.whole.get(&item(bytes)), Some(bytes));
    }
    assert!(!one.whole.contains_key(&item(&other)));
    assert_eq!((one.came.len(), one.blobs.wanted_counts(&BTreeSet::from([V]), &[LINE])), (all.len(), (0, 0)));
    assert_eq!(two.sent, sizes.iter().sum::<usize>(), "nothing goes twice");
}

#[test]
fn whoever_keeps_is_brought_what_it_lacks_and_says_so() {
    let (known, new) = (bytes(1, 100_000), bytes(2, 300_000));
    let (mut device, mut hub) = (Peer::with(false, &[&known, &new]), Peer::with(true, &[&known]));
    connect(&mut device, &mut hub, LINE);
    assert_eq!(device.blobs.offer_counts(LINE), (2, 0));
    talk(&mut device, &mut hub, ALL);
    assert_eq!(hub.whole.get(&item(&new)), Some(&new));
    assert_eq!((device.sent, device.blobs.offer_counts(LINE)), (new.len(), (0, 0)));
    // Another device fetches the blobs from the hub, and gets a message when a missing one arrives.
    let later = bytes(3, 70_000);
    let mut other = Peer::new(false);
    [&known, &new, &later].into_iter().for_each(|bytes| other.want(bytes));
    connect(&mut other, &mut hub, 2);
    talk(&mut other, &mut hub, ALL);
    assert_eq!((other.came.len(), other.blobs.wanted_counts(&BTreeSet::from([V]), &[2])), (2, (1, 0)));
    device.whole.insert(item(&later), later.clone());
    device.blobs.add_held(item(&later), later.len() as u64, &writes);
    let mut waiting: Vec<(LinkId, Vec<u8>)> = Vec::new();
    loop {
        let mut quiet = true;
        for (link, data) in device.perform(0).into_iter().chain(other.perform(0)) {
            hub.blobs.receive(link, &data, 0, &writes);
            quiet = false;
        }
        waiting.extend(hub.perform(0));
        for (link, data) in waiting.drain(..) {
            let to = if link == LINE { &mut device } else { &mut other };
            to.blobs.receive(link, &data, 0, &writes);
            quiet = false;
        }
        if quiet {
            break;
        }
    }
    assert_eq!(other.whole.get(&item(&later)), Some(&later));
}

#[test]
fn a_cut_and_a_restart_go_on_where_they_were() {
    let large = bytes(7, 40 * PIECE_BYTES as usize + 5);
    let (mut one, mut two) = (Peer::new(false), Peer::with(false, &[&large]));
    one.want(&large);
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, 60);
    assert!(one.came.is_empty() && one.parts[&item(&large)].len() > 10 * PIECE_BYTES as usize);
    one.blobs.disconnect(LINE, &writes);
    two.blobs.disconnect(LINE, &writes);
    connect(&mut one, &mut two, 2);
    talk(&mut one, &mut two, 20);
    // Simulate a restart: the peer knows only what is on disk.
    let had = one.parts[&item(&large)].len();
    let mut again = Peer { parts: one.parts, ..Peer::new(false) };
    again.want(&large);
    two.blobs.disconnect(2, &writes);
    let before = two.sent;
    connect(&mut again, &mut two, 3);
    talk(&mut again, &mut two, ALL);
    assert_eq!(again.whole.get(&item(&large)), Some(&large));
    assert_eq!(two.sent - before, large.len() - had / PIECE_BYTES as usize * PIECE_BYTES as usize);
}

#[test]
fn wrong_bytes_are_refused_and_their_sender_is_not_asked_again() {
    let right = bytes(5, 200_000);
    let (mut one, mut liar) = (Peer::new(false), Peer::with(false, &[&right]));
    liar.lies = true;
    one.want(&right);
    connect(&mut one, &mut liar, LINE);
    talk(&mut one, &mut liar, ALL);
    assert!(one.whole.is_empty() && one.parts.is_empty());
    assert_eq!(one.said, ["it sent something else under the name of a picture; it is not asked again"]);
    assert_eq!((liar.sent, one.blobs.wanted_counts(&BTreeSet::from([V]), &[LINE])), (right.len(), (1, 0)));
    // The liar isn't asked again, even after it reconnects or offers the blob.
    one.blobs.disconnect(LINE, &writes);
    liar.blobs.disconnect(LINE, &writes);
    connect(&mut one, &mut liar, 2);
    one.blobs.receive(2, &BlobMessage::Have(V, vec![(item(&right).hash, 200_000)]).encode(), 0, &writes);
    talk(&mut one, &mut liar, ALL);
    assert_eq!(liar.sent, right.len());
    // Another peer has the right bytes.
    let mut honest = Peer::with(false, &[&right]);
    one.blobs.connect(3, PeerId("three".to_owned()), false, &writes);
    honest.blobs.connect(3, PeerId("one".to_owned()), false, &writes);
    talk(&mut one, &mut honest, ALL);
    assert_eq!(one.whole.get(&item(&right)), Some(&right));
}

#[test]
fn what_was_resumed_and_is_wrong_is_fetched_anew_before_anybody_is_blamed() {
    let right = bytes(5, 5 * PIECE_BYTES as usize);
    let (mut one, mut two) = (Peer::new(false), Peer::with(false, &[&right]));
    one.parts.insert(item(&right), vec![0; 2 * PIECE_BYTES as usize]); // as a power cut leaves it
    one.want(&right);
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, ALL);
    assert_eq!((one.whole.get(&item(&right)), one.said.len()), (Some(&right), 0));
}

#[test]
fn readers_bring_nothing_and_strangers_get_nothing() {
    let (theirs, ours) = (bytes(1, 10_000), bytes(2, 10_000));
    let (mut device, mut hub) = (Peer::with(false, &[&ours]), Peer::with(true, &[&theirs]));
    hub.may = DocumentAccess::Read;
    device.want(&theirs);
    connect(&mut device, &mut hub, LINE);
    talk(&mut device, &mut hub, ALL);
    assert!(device.whole.contains_key(&item(&theirs)) && !hub.whole.contains_key(&item(&ours)));
    assert_eq!(hub.said, ["it brings pictures to a volume that it may only read: they are not taken"]);
    assert_eq!((device.blobs.offer_counts(LINE), device.said.len()), ((0, 1), 1));
    let (mut stranger, mut hub) = (Peer::new(false), Peer::with(true, &[&theirs]));
    hub.may = DocumentAccess::None;
    stranger.want(&theirs);
    connect(&mut stranger, &mut hub, LINE);
    talk(&mut stranger, &mut hub, ALL);
    assert!(stranger.whole.is_empty());
    assert_eq!(hub.said, ["it asks for a picture that is not shared with it"]);
    // Between devices, only blobs that a volume's documents refer to are shared.
    let (mut one, mut two) = (Peer::new(false), Peer::new(false));
    two.whole.insert(item(&theirs), theirs.clone());
    one.want(&theirs);
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, ALL);
    assert!(one.whole.is_empty());
}

#[test]
fn without_room_nothing_is_taken() {
    let (small, large) = (bytes(1, 10_000), bytes(2, 100_000));
    let (mut device, mut hub) = (Peer::with(false, &[&small, &large]), Peer::new(true));
    connect(&mut device, &mut hub, LINE);
    hub.blobs.set_quota(LINE, 50_000);
    talk(&mut device, &mut hub, ALL);
    assert!(hub.whole.contains_key(&item(&small)) && !hub.whole.contains_key(&item(&large)));
    assert_eq!(hub.said, ["it brings a picture for which no room is left: it is not taken"]);
    assert_eq!(device.said, ["pictures and large outputs of this device are not taken: no room is left"]);
    // A blob over the size limit isn't even requested.
    device.blobs.want(VolumeBlob { volume: V, hash: BlobHash([9; 32]) }, Some(u64::MAX), true, &writes);
    assert_eq!(device.blobs.held_and_wanted().1.count(), 0);
}

#[test]
fn a_disk_that_is_full_is_tried_again() {
    let right = bytes(1, 100_000);
    let (mut one, mut two) = (Peer::new(false), Peer::with(false, &[&right]));
    one.full = true;
    one.want(&right);
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, ALL);
    assert!(one.whole.is_empty() && one.blobs.is_busy());
    one.full = false;
    for (link, data) in one.perform(BLOB_WRITE_RETRY_MS + 1) {
        two.blobs.receive(link, &data, 0, &writes);
    }
    talk(&mut one, &mut two, ALL);
    assert_eq!(one.whole.get(&item(&right)), Some(&right));
}

#[test]
fn whoever_does_not_answer_is_not_waited_for() {
    let right = bytes(1, 100_000);
    let mut one = Peer::new(false);
    one.want(&right);
    one.blobs.connect(LINE, PeerId("mute".to_owned()), false, &writes);
    assert!(!one.perform(0).is_empty());
    let mut two = Peer::with(false, &[&right]);
    one.blobs.connect(2, PeerId("two".to_owned()), false, &writes);
    two.blobs.connect(2, PeerId("one".to_owned()), false, &writes);
    for (link, data) in one.perform(ANSWER_TIMEOUT_MS + 1) {
        assert_eq!(link, 2);
        two.blobs.receive(link, &data, 0, &writes);
    }
    talk(&mut one, &mut two, ALL);
    assert_eq!(one.whole.get(&item(&right)), Some(&right));
}

#[test]
fn few_pieces_are_under_way_and_fewer_on_a_slow_line() {
    let large = bytes(1, 100 * PIECE_BYTES as usize);
    let mut one = Peer::new(false);
    one.want(&large);
    one.blobs.connect(LINE, PeerId("two".to_owned()), false, &writes);
    let (mut now, mut asked) = (0, 0_u64);
    let mut most = BTreeMap::new();
    let mut under_way = one.perform(now).len();
    for round in 0..60 {
        now += if round < 30 { 10 } else { 2_000 };
        let at = asked as usize * PIECE_BYTES as usize;
        let piece =
            BlobMessage::Piece(item(&large), at as u64, large.len() as u64, &large[at..at + PIECE_BYTES as usize])
                .encode();
        one.blobs.receive(LINE, &piece, now, &writes);
        asked += 1;
        under_way = under_way - 1 + one.perform(now).len();
        most.insert(round, under_way);
    }
    assert_eq!((most[&29], most[&59]), (8, 1));
}

#[test]
fn what_cannot_be_read_now_is_told_of_once_it_can_be() {
    let all = bytes(9, 100_000);
    let (mut device, mut hub) = (Peer::new(false), Peer::with(true, &[&all]));
    device.want(&all);
    connect(&mut device, &mut hub, LINE);
    for (link, data) in device.perform(0) {
        hub.blobs.receive(link, &data, 0, &writes);
    }
    hub.blobs.advance(0, &writes, &|_| true);
    assert_eq!(hub.blobs.take_commands(), [BlobCommand::Read { link: LINE, item: item(&all), offset: 0 }]);
    hub.blobs.on_read(LINE, item(&all), 0, None);
    hub.blobs.on_failed(item(&all), 0, &writes);
    for (link, data) in hub.perform(1) {
        device.blobs.receive(link, &data, 0, &writes);
    }
    assert!(device.perform(1).is_empty(), "it does not ask again by itself");
    for (link, data) in hub.perform(BLOB_WRITE_RETRY_MS) {
        device.blobs.receive(link, &data, 0, &writes);
    }
    talk(&mut device, &mut hub, usize::MAX);
    assert_eq!(device.came, [item(&all)]);
}

#[test]
fn what_is_wanted_by_its_hash_alone_comes_too() {
    let sizes = [0, 1, PIECE_BYTES as usize, PIECE_BYTES as usize + 1, 3_000_000];
    let all: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(seed, size)| bytes(50 + seed as u8, *size)).collect();
    let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let (mut one, mut two) = (Peer::new(false), Peer::with(false, &slices));
    all.iter().for_each(|bytes| one.blobs.want(item(bytes), None, false, &writes));
    connect(&mut one, &mut two, LINE);
    talk(&mut one, &mut two, 40);
    // The connection is lost during the transfer.
    one.blobs.disconnect(LINE, &writes);
    two.blobs.disconnect(LINE, &writes);
    connect(&mut one, &mut two, 2);
    talk(&mut one, &mut two, ALL);
    for bytes in &all {
        assert_eq!(one.whole.get(&item(bytes)), Some(bytes));
    }
    assert_eq!(one.blobs.wanted_counts(&BTreeSet::from([V]), &[2]), (0, 0));
    // A blob that's too large is rejected in every way.
    let mut small = Peer::new(false);
    small.blobs = BlobTransfers::new(false, BlobLimits { max_blob_bytes: 1_000_000, ..BlobLimits::default() });
    small.blobs.want(item(&all[4]), None, false, &writes);
    connect(&mut small, &mut two, 3);
    talk(&mut small, &mut two, ALL);
    assert!(small.whole.is_empty() && small.parts.is_empty() && small.said.len() == 1, "{:?}", small.said);
}

#[test]
fn what_another_program_over_the_same_store_took_is_told_of() {
    let all = bytes(7, 300_000);
    let size = all.len() as u64;
    let (mut device, mut hub) = (Peer::new(false), Peer::new(true));
    device.want(&all);
    connect(&mut device, &mut hub, LINE);
    talk(&mut device, &mut hub, usize::MAX);
    assert!(device.came.is_empty(), "it is not here");
    hub.whole.insert(item(&all), all.clone());
    hub.blobs.on_stored_elsewhere(item(&all), size, &writes);
    talk(&mut device, &mut hub, usize::MAX);
    assert_eq!(device.came, [item(&all)]);
    // A device that's sending a blob learns that it already exists, and stops.
    let (mut device, mut hub) = (Peer::with(false, &[&all]), Peer::new(true));
    connect(&mut device, &mut hub, LINE);
    talk(&mut device, &mut hub, 5);
    hub.whole.insert(item(&all), all.clone());
    hub.blobs.on_stored_elsewhere(item(&all), size, &writes);
    talk(&mut device, &mut hub, usize::MAX);
    assert!(device.sent < all.len() && device.blobs.offer_counts(LINE) == (0, 0), "{} bytes", device.sent);
    assert_eq!(hub.said, [""; 0]);
}

#[test]
fn what_a_keeper_has_lost_is_brought_again_by_whoever_is_there_and_has_it() {
    let all = bytes(6, 200_000);
    let (mut device, mut hub) = (Peer::with(false, &[&all]), Peer::new(true));
    connect(&mut device, &mut hub, LINE);
    talk(&mut device, &mut hub, ALL);
    assert_eq!((hub.came.len(), device.sent), (1, all.len()));
    hub.whole.clear();
    // Peers without access learn nothing.
    hub.blobs.announce_loss(item(&all), &|_, _| DocumentAccess::None);
    assert!(hub.perform(0).is_empty());
    hub.blobs.announce_loss(item(&all), &writes);
    talk(&mut device, &mut hub, ALL);
    assert_eq!((hub.whole.get(&item(&all)), device.sent), (Some(&all), 2 * all.len()));
    // A peer gets no information about unshared blobs. A peer that stores no blobs gets no offers.
    for (access, keeps) in [(DocumentAccess::None, true), (DocumentAccess::Write, false)] {
        let mut device = Peer::with(false, &[&all]);
        device.may = access;
        device.blobs.connect(LINE, PeerId("two".to_owned()), keeps, &|_, _| DocumentAccess::None);
        device.blobs.receive(LINE, &BlobMessage::Lack(item(&all)).encode(), 0, &move |_, _| access);
        assert!(device.perform(0).is_empty());
    }
}

#[test]
fn what_cannot_be_looked_for_now_is_looked_for_later() {
    let all = bytes(8, 100_000);
    let (mut device, mut hub) = (Peer::with(false, &[&all]), Peer::new(true));
    connect(&mut device, &mut hub, LINE);
    let offers = device.perform(0);
    assert_eq!(offers.len(), 1);
    hub.blobs.receive(LINE, &offers[0].1, 0, &writes);
    let looks = hub.blobs.take_commands();
    assert_eq!(looks, [BlobCommand::Probe { item: item(&all), keeps: true }]);
    hub.blobs.on_failed(item(&all), 0, &writes);
    assert!(hub.blobs.is_busy() && hub.perform(BLOB_WRITE_RETRY_MS - 1).is_empty(), "not at once");
    for (link, data) in hub.perform(BLOB_WRITE_RETRY_MS) {
        device.blobs.receive(link, &data, 0, &writes);
    }
    talk(&mut device, &mut hub, usize::MAX);
    assert_eq!(hub.came, [item(&all)]);
}

#[test]
fn a_piece_far_beyond_the_end_is_empty_and_others_still_get_the_picture() {
    for offset in [100_001, i64::MAX as u64 + 1, u64::MAX] {
        let all = bytes(9, 100_000);
        let mut one = Peer::with(false, &[&all]);
        one.blobs.connect(9, PeerId("hostile".to_owned()), false, &writes);
        one.blobs.receive(9, &BlobMessage::Want(item(&all), offset).encode(), 0, &writes);
        let answers = one.perform(0);
        let empty = BlobMessage::Piece(item(&all), offset, all.len() as u64, &[]).encode();
        assert!(answers.contains(&(9, empty)), "{offset}: {answers:?}");
        let mut two = Peer::new(false);
        two.want(&all);
        connect(&mut two, &mut one, LINE);
        talk(&mut two, &mut one, usize::MAX);
        assert_eq!(two.came, [item(&all)]);
    }
}

/// Passes messages between a hub and devices, each at its link, until none is left.
fn talk_to_hub(hub: &mut Peer, devices: &mut [(LinkId, &mut Peer)]) {
    loop {
        let mut quiet = true;
        for (link, device) in devices.iter_mut() {
            for (_, data) in device.perform(0) {
                quiet = false;
                let access = hub.may;
                hub.blobs.receive(*link, &data, 0, &move |_, _| access);
            }
        }
        for (to, data) in hub.perform(0) {
            quiet = false;
            if let Some((link, device)) = devices.iter_mut().find(|(link, _)| *link == to) {
                device.blobs.receive(*link, &data, 0, &writes);
            }
        }
        if quiet {
            return;
        }
    }
}

#[test]
fn withdrawn_files_of_states_go_and_what_is_an_attachment_too_stays() {
    let (pages, picture, kept) = (bytes(1, 100_000), bytes(2, 100_000), bytes(3, 100_000));
    let (mut one, mut two, mut hub) = (Peer::new(false), Peer::with(false, &[&picture]), Peer::with(true, &[&kept]));
    one.share_states(&[&pages, &picture, &kept]);
    connect(&mut one, &mut hub, LINE);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one)]);
    assert_eq!(hub.states, BTreeSet::from([item(&pages), item(&picture)]), "the hub had the other one before");
    connect(&mut two, &mut hub, 2);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    one.share_states(&[]);
    assert_eq!(one.blobs.forget_count(LINE), 3);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    assert!(!hub.whole.contains_key(&item(&pages)));
    assert!(hub.whole.contains_key(&item(&picture)) && hub.whole.contains_key(&item(&kept)));
    assert_eq!((one.forgot.len(), one.blobs.forget_count(LINE), hub.said.len()), (3, 0, 0));
    // They may come again.
    one.share_states(&[&pages]);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    assert_eq!(hub.whole.get(&item(&pages)), Some(&pages));
    // What becomes an attachment here is offered as one, and stays.
    one.blobs.set_state_files(BTreeSet::new(), &writes);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    one.share_states(&[]);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    assert!(hub.whole.contains_key(&item(&pages)) && hub.states.is_empty());
}

#[test]
fn a_device_that_still_shares_a_deleted_file_brings_it_again() {
    let pages = bytes(1, 100_000);
    let (mut one, mut two, mut hub) = (Peer::new(false), Peer::new(false), Peer::new(true));
    one.share_states(&[&pages]);
    two.share_states(&[&pages]);
    connect(&mut one, &mut hub, LINE);
    connect(&mut two, &mut hub, 2);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    let sent = one.sent + two.sent;
    one.share_states(&[]);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    assert_eq!((hub.whole.get(&item(&pages)), one.sent + two.sent), (Some(&pages), sent + pages.len()));
    assert_eq!(one.forgot.len(), 1);
    // In the middle of an upload: nothing of it is finished once nobody shares it.
    let more = bytes(2, 10 * PIECE_BYTES as usize);
    one.share_states(&[&more]);
    for _ in 0..20 {
        for (_, data) in one.perform(0) {
            hub.blobs.receive(LINE, &data, 0, &writes);
        }
        for (link, data) in hub.perform(0) {
            let device = if link == LINE { &mut one } else { &mut two };
            device.blobs.receive(link, &data, 0, &writes);
        }
        if hub.parts.contains_key(&item(&more)) {
            break;
        }
    }
    assert!(hub.parts.contains_key(&item(&more)), "it is on its way");
    one.share_states(&[]);
    talk_to_hub(&mut hub, &mut [(LINE, &mut one), (2, &mut two)]);
    assert!(!hub.whole.contains_key(&item(&more)) && hub.said.is_empty(), "{:?}", hub.said);
}

#[test]
fn readers_delete_nothing_and_older_peers_are_not_asked() {
    let pages = bytes(1, 100_000);
    let (mut device, mut hub) = (Peer::new(false), Peer::new(true));
    device.share_states(&[&pages]);
    connect(&mut device, &mut hub, LINE);
    talk(&mut device, &mut hub, ALL);
    hub.may = DocumentAccess::Read;
    device.share_states(&[]);
    talk(&mut device, &mut hub, ALL);
    assert!(hub.whole.contains_key(&item(&pages)) && device.forgot.is_empty());
    assert_eq!(device.blobs.forget_count(LINE), 0, "it isn't waited for");
    assert_eq!(hub.said, ["it asks to delete variables of a volume that it may not change: they stay"]);
    // A device is asked for nothing that it has.
    let mut other = Peer::new(false);
    other.share_states(&[&pages]);
    connect(&mut device, &mut other, 2);
    other.blobs.receive(2, &BlobMessage::Forget(item(&pages)).encode(), 0, &writes);
    assert!(other.perform(0).is_empty() && other.whole.contains_key(&item(&pages)));
    // Version 1 knows neither message.
    let mut device = Peer::new(false);
    device.share_states(&[&pages]);
    device.blobs.connect(LINE, PeerId("old".to_owned()), true, &writes);
    let offers = device.perform(0);
    assert_eq!(offers, [(LINE, BlobMessage::Have(V, vec![(item(&pages).hash, 100_000)]).encode())]);
    device.share_states(&[]);
    assert!(device.perform(0).is_empty());
    // Too many requests at once end the exchange.
    let mut hub = Peer::new(true);
    hub.blobs.connect(9, PeerId("hostile".to_owned()), false, &writes);
    for number in 0..1_000_u32 {
        let item = VolumeBlob { volume: V, hash: BlobHash::of(&number.to_le_bytes()) };
        hub.blobs.receive(9, &BlobMessage::Forget(item).encode(), 0, &writes);
    }
    assert!(!hub.blobs.has_peer(9));
}

proptest! {
    /// Whatever a peer sends as blob messages, only its own blob transfers are affected; other peers get what they
    /// request.
    #[test]
    fn hostile_words_do_no_harm(
        words in proptest::collection::vec((0..9_u8, any::<bool>(), any::<[u8; 8]>(),
            proptest::collection::vec(any::<u8>(), 0..200)), 1..40),
        keeps in any::<bool>(),
    ) {
        let (here, wanted) = (bytes(1, 100_000), bytes(2, 100_000));
        let mut one = Peer::with(keeps, &[&here]);
        one.want(&wanted);
        one.blobs.connect(9, PeerId("hostile".to_owned()), true, &writes);
        for (kind, known, number, tail) in words {
            let mut data = vec![kind];
            data.extend(V.0);
            data.extend(if known { item(&wanted).hash.0 } else { item(&here).hash.0 });
            data.extend(if number[0] % 2 == 0 { [0; 8] } else { number });
            data.extend(tail);
            one.blobs.receive(9, &data, 0, &writes);
            one.perform(0);
        }
        prop_assert!(one.whole.iter().all(|(item, bytes)| BlobHash::of(bytes) == item.hash));
        let mut two = Peer::with(false, &[&wanted]);
        if keeps {
            connect(&mut two, &mut one, LINE);
        } else {
            connect(&mut one, &mut two, LINE);
        }
        // Requests to the hostile peer time out.
        for (link, data) in one.perform(ANSWER_TIMEOUT_MS + 1) {
            if link == LINE {
                two.blobs.receive(link, &data, 0, &writes);
            }
        }
        for _ in 0..200 {
            for (link, data) in two.perform(0) {
                one.blobs.receive(link, &data, 0, &writes);
            }
            for (link, data) in one.perform(ANSWER_TIMEOUT_MS + 1) {
                if link == LINE {
                    two.blobs.receive(link, &data, 0, &writes);
                }
            }
        }
        prop_assert_eq!(one.whole.get(&item(&wanted)), Some(&wanted));
    }
}
