//! Tests of the comparison of sets of documents between two devices.

use super::*;
use crate::sync::peers::SyncLimits;
use crate::sync::wire::{PeerId, PeerMetadata, WireMessage};
use proptest::prelude::*;

const VOLUME: DocId = DocId([255; 16]);

fn peers(name: &str) -> SyncPeers {
    let metadata = PeerMetadata { tracebook: Some(wire::EXTENSIONS_VERSION), ..PeerMetadata::default() };
    SyncPeers::new(PeerId(name.to_owned()), metadata, SyncLimits::default())
}

fn doc(number: u32) -> DocId {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    DocId(bytes)
}

fn print(number: u32, of: u8) -> HeadsHash {
    *blake3::hash(&[&number.to_be_bytes()[..], &[of]].concat()).as_bytes()
}

/// Delivers messages until none is left. Returns the bytes sent, the documents that the first device loads, and
/// those that it considers equal.
fn talk(one: &mut SyncPeers, two: &mut SyncPeers, docs: &VolumeDocs) -> (usize, BTreeSet<DocId>, usize) {
    let (bytes_said, read, [same, _]) = talk_both(one, two, docs);
    (bytes_said, read, same.len())
}

/// Delivers messages like [`talk`], and returns the documents that each side considers equal.
fn talk_both(
    one: &mut SyncPeers,
    two: &mut SyncPeers,
    docs: &VolumeDocs,
) -> (usize, BTreeSet<DocId>, [BTreeSet<DocId>; 2]) {
    one.connect(1, true, None, Box::new(|_| DocumentAccess::Write));
    two.connect(1, false, None, Box::new(|_| DocumentAccess::Write));
    one.follow_volume(1, VOLUME, docs.clone());
    let (mut bytes_said, mut read, mut same) = (0, BTreeSet::new(), [BTreeSet::new(), BTreeSet::new()]);
    loop {
        let mut quiet = true;
        for back in [false, true] {
            let (from, to) = if back { (&mut *two, &mut *one) } else { (&mut *one, &mut *two) };
            for output in from.take_outputs() {
                quiet = false;
                match output {
                    PeersOutput::Send { bytes, .. } => {
                        bytes_said += bytes.len();
                        to.receive(1, &bytes);
                    }
                    PeersOutput::Load { doc } if !back => _ = read.insert(doc),
                    PeersOutput::NeedVolumeDocs { link, scope } => from.on_volume_docs(link, scope, docs.clone()),
                    PeersOutput::Agreed { docs, .. } => same[usize::from(back)].extend(docs),
                    PeersOutput::Close { why, .. } => panic!("{why}"),
                    _ => {}
                }
            }
        }
        if quiet {
            return (bytes_said, read, same);
        }
    }
}

#[test]
fn ten_of_fifty_thousand_are_found_and_the_rest_is_left_alone() {
    let (mut one, mut two) = (peers("one"), peers("two"));
    let changed: BTreeSet<u32> = (0..10).map(|at| at * 4_999 + 7).collect();
    for number in 0..50_000 {
        one.set_heads_hash(doc(number), Some(print(number, u8::from(changed.contains(&number)))));
        two.set_heads_hash(doc(number), Some(print(number, 0)));
    }
    let docs: VolumeDocs = Arc::new((0..50_000).map(doc).chain([VOLUME]).collect());
    let (bytes, read, same) = talk(&mut one, &mut two, &docs);
    let expected: BTreeSet<DocId> = changed.iter().copied().map(doc).chain([VOLUME]).collect();
    assert_eq!(read, expected);
    assert_eq!(same, 50_000 - changed.len());
    assert!(bytes < 30_000, "{bytes} bytes");
    // Later changes are synced automatically.
    two.on_changed(doc(3), b"");
    assert!(
        two.take_outputs().iter().any(|output| matches!(output, PeersOutput::Load { doc: read } if *read == doc(3)))
    );
}

/// A change is on disk before it's reported: here the document is loaded for a comparison in between, and the
/// change is reported before or after the end of the comparison.
#[test]
fn a_change_that_was_read_to_compare_is_said() {
    for before_the_end in [true, false] {
        let mut text = support::PlainText::new("old", automerge::ActorId::from([1; 16])).expect("made");
        let old = text.save();
        let change = text.insert(3, " and new").expect("typed");
        let mut disks = [vec![old.clone(), change.clone()], vec![old]];
        let (mut one, mut two) = (peers("one"), peers("two"));
        for side in [&mut one, &mut two] {
            (0..10).for_each(|number| side.set_heads_hash(doc(number), (number != 3).then(|| print(number, 0))));
        }
        let docs: VolumeDocs = Arc::new((0..10).map(doc).collect());
        one.connect(1, true, None, Box::new(|_| DocumentAccess::Write));
        two.connect(1, false, None, Box::new(|_| DocumentAccess::Write));
        one.follow_volume(1, VOLUME, docs.clone());
        let (mut told, mut quiet) = (!before_the_end, false);
        while !std::mem::replace(&mut quiet, true) {
            for at in [0, 1] {
                let (from, to) = if at == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
                for output in from.take_outputs() {
                    quiet = false;
                    match output {
                        PeersOutput::Send { bytes, .. } => to.receive(1, &bytes),
                        PeersOutput::Load { doc: read } => {
                            let chunks = if read == doc(3) { disks[at].clone() } else { Vec::new() };
                            from.on_loaded(read, Ok(chunks));
                            if at == 0 && read == doc(3) && !std::mem::replace(&mut told, true) {
                                from.on_changed(read, &change);
                            }
                        }
                        PeersOutput::Store { doc: of, ticket, parcel, .. } => {
                            assert_eq!(of, doc(3));
                            disks[at].push(parcel.bytes);
                            from.on_stored(ticket);
                        }
                        PeersOutput::NeedVolumeDocs { link, scope } => from.on_volume_docs(link, scope, docs.clone()),
                        PeersOutput::Close { why, .. } | PeersOutput::Refused { why, .. } => panic!("{why}"),
                        _ => {}
                    }
                }
            }
        }
        let other = support::PlainText::load(&disks[1], automerge::ActorId::from([2; 16])).expect("it loads");
        assert_eq!(other.text().expect("text"), "old and new", "told of before the end: {before_the_end}");
        assert_eq!((one.is_in_sync(1, doc(3)), two.is_in_sync(1, doc(3))), (Some(true), Some(true)));
    }
}

#[test]
fn who_listens_learns_what_is_the_same_too() {
    let (mut one, mut two) = (peers("one"), peers("two"));
    for number in 0..100 {
        // One document differs, some exist only on the first device, one only on the second.
        if number != 50 && number != 51 {
            one.set_heads_hash(doc(number), Some(print(number, u8::from(number == 5))));
        }
        if number != 60 {
            two.set_heads_hash(doc(number), Some(print(number, 0)));
        }
    }
    let docs: VolumeDocs = Arc::new((0..100).map(doc).chain([VOLUME]).collect());
    let (_, _, [_, same]) = talk_both(&mut one, &mut two, &docs);
    let differ = [5, 50, 51, 60];
    assert_eq!(same, (0..100).filter(|number| !differ.contains(number)).map(doc).collect());
    // If nothing differs, nothing is requested, and that's the answer.
    let (mut one, mut two) = (peers("one"), peers("two"));
    for number in 0..100 {
        one.set_heads_hash(doc(number), Some(print(number, 0)));
        two.set_heads_hash(doc(number), Some(print(number, 0)));
    }
    assert_eq!(talk_both(&mut one, &mut two, &docs).2[1], (0..100).map(doc).collect());
}

#[test]
fn the_list_of_files_is_read_where_it_differs_and_by_neither_side_where_it_does_not() {
    let docs: VolumeDocs = Arc::new((0..50).map(doc).chain([VOLUME]).collect());
    let loads = |output: &PeersOutput| matches!(output, PeersOutput::Load { doc } if *doc == VOLUME);
    for (other, expected) in [(0, 0), (1, 1)] {
        let (mut one, mut two) = (peers("one"), peers("two"));
        for number in 0..50 {
            one.set_heads_hash(doc(number), Some(print(number, 0)));
            two.set_heads_hash(doc(number), Some(print(number, 0)));
        }
        one.set_heads_hash(VOLUME, Some(print(99, 0)));
        two.set_heads_hash(VOLUME, Some(print(99, other)));
        let (_, read, same) = talk(&mut one, &mut two, &docs);
        assert_eq!((read.len(), same), (expected, 51 - expected));
        assert_eq!((one.docs.len(), two.docs.len()), (expected, 0), "neither side has it in memory");
        if expected == 0 {
            // The side that changes it announces it.
            one.on_changed(VOLUME, b"");
            two.on_changed(VOLUME, b"");
            assert!(one.take_outputs().iter().any(loads) && two.take_outputs().iter().any(loads));
        }
    }
}

#[test]
fn outputs_that_nobody_has_are_not_asked_for() {
    let (mut one, mut two) = (peers("one"), peers("two"));
    for number in 0..100 {
        // One note differs, one exists only on the second device, and for another one only its outputs do.
        one.set_heads_hash(doc(number), Some(print(number, u8::from(number == 5))));
        two.set_heads_hash(doc(number), Some(print(number, 0)));
    }
    two.set_heads_hash(doc(100), Some(print(100, 0)));
    two.set_heads_hash(doc(7).outputs_id(), Some(print(7, 9)));
    let notes: BTreeSet<DocId> = (0..101).map(doc).collect();
    let outputs = (0..20).chain([100]).map(|number| doc(number).outputs_id());
    let docs: VolumeDocs = Arc::new(notes.iter().copied().chain(outputs).chain([VOLUME]).collect());
    let (bytes, read, same) = talk(&mut one, &mut two, &docs);
    let changed = [5, 100].map(|number| [doc(number), doc(number).outputs_id()]).concat();
    assert_eq!(read, changed.into_iter().chain([VOLUME, doc(7).outputs_id()]).collect());
    assert_eq!(same, (101 - 2) + (21 - 3), "whose note is the same, and whose outputs are nowhere");
    assert!(bytes < 5_000, "{bytes} bytes");
    // Once outputs exist on either side, they're announced.
    two.on_changed(doc(8).outputs_id(), b"");
    assert!(
        two.take_outputs()
            .iter()
            .any(|output| matches!(output, PeersOutput::Load { doc: read } if *read == doc(8).outputs_id()))
    );
    one.on_changed(doc(9).outputs_id(), b"");
    assert!(
        one.take_outputs()
            .iter()
            .any(|output| matches!(output, PeersOutput::Load { doc: read } if *read == doc(9).outputs_id()))
    );
}

#[test]
fn whoever_does_not_say_that_it_knows_this_is_never_sent_it() {
    let mut one = peers("one");
    let mut other = SyncPeers::new(PeerId("other".to_owned()), PeerMetadata::default(), SyncLimits::default());
    (0..100).for_each(|number| one.set_heads_hash(doc(number), Some(print(number, 0))));
    let docs: VolumeDocs = Arc::new((0..100).map(doc).collect());
    let (_, read, same) = talk(&mut one, &mut other, &docs);
    assert_eq!((read.len(), same), (100, 0), "each is asked for as ever");
}

proptest! {
    /// Whatever a peer sends as comparison messages, at most its own connection is closed.
    #[test]
    fn hostile_words_end_their_peer(
        words in proptest::collection::vec((0..9_u8, any::<[u8; 4]>(), any::<bool>(),
            proptest::collection::vec(any::<u8>(), 0..300)), 1..12),
        far in any::<bool>(),
    ) {
        let mut one = peers("one");
        (0..100).for_each(|number| one.set_heads_hash(doc(number), Some(print(number, 0))));
        let docs: VolumeDocs = Arc::new((0..100).map(doc).collect());
        let id = |name: &str| PeerId(name.to_owned());
        for (link, name) in [(1, "hostile"), (2, "friend")] {
            let metadata = PeerMetadata { tracebook: (!far || link == 2).then_some(9), ..PeerMetadata::default() };
            one.connect(link, false, None, Box::new(|_| DocumentAccess::Write));
            let join = WireMessage::Join { sender: id(name), versions: vec![wire::PROTOCOL_VERSION.to_owned()],
                metadata };
            one.receive(link, &wire::encode(&join));
        }
        for (word, number, ours, tail) in words {
            let mut data = vec![word];
            data.extend(number);
            data.extend(if ours { VOLUME.0 } else { [1; 16] });
            // Some begin like valid messages.
            data.extend(if number[0] % 2 == 0 { vec![0x61] } else { Vec::new() });
            data.extend(tail);
            let message = WireMessage::Extension {
                sender: id("hostile"), target: id("one"), topic: RECONCILE_TOPIC.to_owned(), data };
            one.receive(1, &wire::encode(&message));
            for output in one.take_outputs() {
                match output {
                    PeersOutput::NeedVolumeDocs { link, scope } => one.on_volume_docs(link, scope, docs.clone()),
                    PeersOutput::Close { link, .. } => prop_assert_eq!(link, 1),
                    _ => {}
                }
            }
        }
        prop_assert!(one.peer_id(2).is_some(), "the friend is still there");
        if far {
            prop_assert!(one.peer_id(1).is_none(), "who does not know this and says it is let go");
        }
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let mut one = peers("one");
    one.connect(1, false, None, Box::new(|_| DocumentAccess::Write));
    let metadata = PeerMetadata { tracebook: Some(wire::EXTENSIONS_VERSION), ..PeerMetadata::default() };
    let (sender, versions) = (PeerId("hostile".to_owned()), vec![wire::PROTOCOL_VERSION.to_owned()]);
    one.receive(1, &wire::encode(&WireMessage::Join { sender: sender.clone(), versions, metadata }));
    let data = vec![0; 2 * TARGET_MESSAGE_BYTES + 1];
    let target = PeerId("one".to_owned());
    one.receive(1, &wire::encode(&WireMessage::Extension { sender, target, topic: RECONCILE_TOPIC.to_owned(), data }));
    assert!(one.take_outputs().iter().any(|output| matches!(output, PeersOutput::Close { link: 1, .. })));
}
