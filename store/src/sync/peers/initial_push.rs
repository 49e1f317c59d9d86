//! Sends newly created documents between two Tracebooks. Normally a side asks what the other has of a document, and
//! sends everything if the answer is nothing. For a new document, everything is sent at once, compressed, in the first
//! message.
//!
//! It's an ordinary message of automerge's sync protocol: if the other side does have part of the document, it's merged
//! as usual. With very many new notes, only a third of the messages is needed.

use super::{DocumentSyncState, LinkId, SyncPeers};
use crate::id::DocId;
use automerge::sync::{Capability, Have};

/// Whether a peer is assumed to have no part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerLack {
    /// No message about it yet.
    Unknown,
    /// The document is new, or the peer was asked and doesn't have it.
    Yes,
    /// The peer sent a message about it, or was sent all of it. Everything is sent only once: a peer that refuses a
    /// document isn't sent it again with every change.
    No,
}

impl PeerLack {
    /// Records that the peer says it doesn't have the document. `asked` says whether it was asked; otherwise it may
    /// just not want the document.
    pub(super) fn note_unavailable(&mut self, asked: bool) {
        if *self == PeerLack::Unknown && asked {
            *self = PeerLack::Yes;
        }
    }
}

impl DocumentSyncState {
    /// Makes the next message contain the whole document, if the peer is assumed to have no part of it. Returns whether
    /// that's the case; then [`DocumentSyncState::finish_full_send`] must follow.
    pub(super) fn prepare_full_send(&mut self) -> bool {
        let state = &mut self.state;
        if std::mem::replace(&mut self.lacks, PeerLack::No) != PeerLack::Yes || state.their_heads.is_some() {
            return false;
        }
        // As if the peer had said that it has nothing. Every Tracebook can read whole documents.
        state.their_heads = Some(Vec::new());
        state.their_have = Some(vec![Have::default()]);
        state.their_need = Some(Vec::new());
        state.their_capabilities.get_or_insert_with(|| vec![Capability::MessageV2]);
        true
    }

    /// Resets the assumptions about the peer after sending everything. The peer hasn't confirmed it yet: otherwise
    /// everything would be sent again with every change until it answers.
    pub(super) fn finish_full_send(&mut self) {
        let state = &mut self.state;
        (state.their_heads, state.their_have, state.their_need) = (None, None, None);
    }
}

impl SyncPeers {
    /// Syncs a newly created document with a peer, like [`SyncPeers::follow`]. The peer most likely has no part of it.
    pub fn offer_document(&mut self, link: LinkId, doc: DocId) {
        let greeted = self.links.get(&link).filter(|peer| peer.id.is_some());
        let is_new = greeted.is_some_and(|peer| !peer.docs.contains_key(&doc));
        if is_new
            && self.ensure_sync_state(link, doc)
            && let Some(between) = self.links.get_mut(&link).and_then(|peer| peer.docs.get_mut(&doc))
        {
            between.lacks = PeerLack::Yes;
        }
        self.follow(link, doc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::BlockId;
    use crate::note::{NoteDoc, NoteOp};
    use crate::sync::peers::{DocumentAccess, PeersOutput, SyncLimits};
    use crate::sync::wire::{self, PeerId, PeerMetadata, WireMessage};
    use automerge::sync::{ChunkList, Have, MessageFlags, MessageVersion, State, SyncDoc};
    use automerge::{ActorId, Automerge};

    const DOC: DocId = DocId([7; 16]);

    fn peers(name: &str, ours: bool) -> SyncPeers {
        let metadata = PeerMetadata { tracebook: ours.then_some(wire::EXTENSIONS_VERSION), ..PeerMetadata::default() };
        let mut peers = SyncPeers::new(PeerId(name.to_owned()), metadata, SyncLimits::default());
        peers.connect(1, name == "one", None, Box::new(|_| DocumentAccess::Write));
        peers
    }

    fn note(actor: u8, text: &str) -> NoteDoc {
        let mut note = NoteDoc::load(DOC, &[], ActorId::from([actor; 16])).expect("it loads").doc;
        let op = NoteOp::Insert { block: BlockId(actor.into()), pos: "n".to_owned(), text: text.to_owned() };
        note.commit(&[op], 1, None).expect("an edit");
        note
    }

    /// Delivers messages between both until none is left; `disks` has what each stores. Returns the messages about
    /// documents: sender, size in bytes, whether it's a request.
    fn talk(one: &mut SyncPeers, two: &mut SyncPeers, disks: &mut [Vec<Vec<u8>>; 2]) -> Vec<(usize, usize, bool)> {
        talk_and_read(one, two, disks).0
    }

    /// Delivers messages like [`talk`], and also returns how often each side loaded the document.
    fn talk_and_read(
        one: &mut SyncPeers,
        two: &mut SyncPeers,
        disks: &mut [Vec<Vec<u8>>; 2],
    ) -> (Vec<(usize, usize, bool)>, [usize; 2]) {
        let (mut said, mut reads) = (Vec::new(), [0; 2]);
        loop {
            let mut quiet = true;
            for at in [0, 1] {
                let (from, to) = if at == 0 { (&mut *one, &mut *two) } else { (&mut *two, &mut *one) };
                if from.limits.max_resting_documents == 0 {
                    from.evict_at = 0; // and nothing rests
                }
                for output in from.take_outputs() {
                    quiet = false;
                    match output {
                        PeersOutput::Send { bytes, .. } => {
                            match wire::decode(&bytes).expect("a message") {
                                WireMessage::Request { .. } => said.push((at, bytes.len(), true)),
                                WireMessage::Sync { .. } => said.push((at, bytes.len(), false)),
                                _ => {}
                            }
                            to.receive(1, &bytes);
                        }
                        PeersOutput::Load { doc } => {
                            reads[at] += 1;
                            from.on_loaded(doc, Ok(disks[at].clone()));
                        }
                        PeersOutput::Store { ticket, parcel, .. } => {
                            disks[at].push(parcel.bytes);
                            from.on_stored(ticket);
                        }
                        PeersOutput::Close { why, .. } | PeersOutput::Refused { why, .. } => panic!("{why}"),
                        _ => {}
                    }
                }
            }
            if quiet {
                return (said, reads);
            }
        }
    }

    fn text(disk: &[Vec<u8>]) -> String {
        let note = NoteDoc::load(DOC, disk, ActorId::from([9; 16])).expect("it loads").doc;
        note.blocks().into_iter().map(|block| block.text).collect()
    }

    /// Generates a text of words, as people write them.
    fn words() -> String {
        let word = |number: u32| usize::from(blake3::hash(&number.to_le_bytes()).as_bytes()[0] % 4);
        (0..400).map(|number| ["river ", "stone ", "light ", "because "][word(number)]).collect()
    }

    #[test]
    fn a_new_document_is_one_message_and_its_answer() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        talk(&mut one, &mut two, &mut [Vec::new(), Vec::new()]);
        let mut disks = [vec![note(1, &words()).save()], Vec::new()];
        one.offer_document(1, DOC);
        let said = talk(&mut one, &mut two, &mut disks);
        assert_eq!(said.iter().map(|(who, _, asks)| (*who, *asks)).collect::<Vec<_>>(), [(0, false), (1, false)]);
        let bytes: usize = said.iter().map(|(_, bytes, _)| bytes).sum();
        assert!(bytes < words().len() / 2, "{bytes} bytes for {}", words().len());
        assert_eq!(text(&disks[1]), words());
        assert_eq!(disks[1], disks[0], "it is kept as it came");
        assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
    }

    #[test]
    fn one_that_is_whole_on_disk_is_handed_on_as_it_is() {
        for later in [false, true] {
            let (mut one, mut two) = (peers("one", true), peers("two", true));
            let mut disks = [vec![note(1, &words()).save()], Vec::new()];
            talk(&mut one, &mut two, &mut disks);
            two.follow(1, DOC);
            let said = talk(&mut one, &mut two, &mut disks);
            // Request, answer, confirmation.
            assert_eq!(said.iter().map(|(who, ..)| *who).collect::<Vec<_>>(), [1, 0, 1]);
            assert_eq!(disks[1], disks[0]);
            for side in [&one, &two] {
                assert!(side.docs.get(&DOC).is_some_and(|document| document.is_idle_whole()), "nothing of it is read");
            }
            assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
            // Later changes on either side arrive.
            let at = usize::from(later);
            let mut note = NoteDoc::load(DOC, &disks[at], ActorId::from([5; 16])).expect("it loads").doc;
            let op = NoteOp::Insert { block: BlockId(50), pos: "z".to_owned(), text: "more ".to_owned() };
            let bytes = note.commit(&[op], 2, None).expect("an edit");
            disks[at].push(bytes.clone());
            if at == 0 { &mut one } else { &mut two }.on_changed(DOC, &bytes);
            talk(&mut one, &mut two, &mut disks);
            assert_eq!(text(&disks[0]), format!("{}more ", words()));
            assert_eq!(text(&disks[1]), text(&disks[0]));
            assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
        }
    }

    #[test]
    fn what_came_whole_was_read_once_and_is_thanked_for_in_automerges_words() {
        for is_read in [false, true] {
            let (mut one, mut two) = (peers("one", true), peers("two", true));
            let mut whole = note(1, &words());
            let mut disks = [vec![whole.save()], Vec::new()];
            if is_read {
                // In two chunks, so it's loaded; a loaded document is announced differently.
                let op = NoteOp::Insert { block: BlockId(5), pos: "o".to_owned(), text: "more ".to_owned() };
                disks[0].push(whole.commit(&[op], 2, None).expect("an edit"));
            }
            talk(&mut one, &mut two, &mut disks);
            two.follow(1, DOC);
            let mut came = None;
            for _ in 0..20 {
                for output in two.take_outputs() {
                    match output {
                        PeersOutput::Send { bytes, .. } => one.receive(1, &bytes),
                        PeersOutput::Load { doc } => two.on_loaded(doc, Ok(Vec::new())),
                        PeersOutput::Store { ticket, parcel, .. } => came = Some((ticket, parcel)),
                        _ => {}
                    }
                }
                for output in one.take_outputs() {
                    match output {
                        PeersOutput::Send { bytes, .. } => two.receive(1, &bytes),
                        PeersOutput::Load { doc } => one.on_loaded(doc, Ok(disks[0].clone())),
                        _ => {}
                    }
                }
            }
            let (ticket, parcel) = came.expect("all of it");
            let read = parcel.loaded.expect("what was read goes along");
            assert_eq!(read.get_heads(), two.heads(DOC).expect("it is here"));
            let mut state = two.links[&1].docs[&DOC].state.clone();
            let thanks = read.generate_sync_message(&mut state).expect("thanks").encode();
            assert!(two.take_outputs().is_empty(), "nothing is said before it is on disk");
            assert!(two.on_stored(ticket));
            let said = two.take_outputs().into_iter().find_map(|output| match output {
                PeersOutput::Send { bytes, .. } => Some(wire::decode(&bytes).expect("a message")),
                _ => None,
            });
            assert!(matches!(said, Some(WireMessage::Sync { data, .. }) if data == thanks), "{is_read}");
            assert_eq!(two.links[&1].docs[&DOC].state, state, "{is_read}");
            assert!(two.docs[&DOC].is_idle_whole(), "nothing of it was read again");
            assert_eq!(two.is_in_sync(1, DOC), Some(true));
        }
    }

    #[test]
    fn one_that_is_not_sound_on_disk_is_not_handed_on() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        let mut bytes = note(1, &words()).save();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let mut disks = [Vec::new(), Vec::new()];
        talk(&mut one, &mut two, &mut disks);
        one.follow(1, DOC);
        let loads = |output: &PeersOutput| matches!(output, PeersOutput::Load { .. });
        assert!(one.take_outputs().iter().any(loads));
        one.on_loaded(DOC, Ok(vec![bytes]));
        let outputs = one.take_outputs();
        assert!(outputs.iter().any(|output| matches!(output, PeersOutput::Refused { .. })), "{outputs:?}");
        assert!(!outputs.iter().any(|output| matches!(output, PeersOutput::Send { .. } | PeersOutput::Close { .. })));
    }

    #[test]
    fn one_that_was_let_go_is_not_read_again_to_hear_that_it_has_come() {
        for offers in [false, true] {
            let (mut one, mut two) = (peers("one", true), peers("two", true));
            one.limits.max_resting_documents = 0;
            let mut disks = [vec![note(1, &words()).save()], Vec::new()];
            talk(&mut one, &mut two, &mut disks);
            match offers {
                true => one.offer_document(1, DOC),
                false => two.follow(1, DOC),
            }
            let (_, reads) = talk_and_read(&mut one, &mut two, &mut disks);
            assert_eq!((reads[0], one.docs.len()), (1, 0), "{offers}");
            assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
            // Later changes on either side arrive.
            for at in [0, 1] {
                let mut note = NoteDoc::load(DOC, &disks[at], ActorId::from([5 + at as u8; 16])).expect("it loads").doc;
                let op =
                    NoteOp::Insert { block: BlockId(50 + at as u64), pos: "z".to_owned(), text: "more ".to_owned() };
                let bytes = note.commit(&[op], 2, None).expect("an edit");
                disks[at].push(bytes.clone());
                if at == 0 { &mut one } else { &mut two }.on_changed(DOC, &bytes);
                talk(&mut one, &mut two, &mut disks);
            }
            assert_eq!(text(&disks[0]), format!("{}more more ", words()));
            assert_eq!(text(&disks[1]), text(&disks[0]));
            assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
        }
    }

    #[test]
    fn one_that_is_unshared_while_changes_come_is_read_when_it_is_shared_again() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        let mut disks = [vec![note(1, &words()).save()], Vec::new()];
        talk(&mut one, &mut two, &mut disks);
        one.offer_document(1, DOC);
        let sent = one.take_outputs();
        assert!(sent.iter().any(|output| matches!(output, PeersOutput::Load { .. })));
        one.on_loaded(DOC, Ok(disks[0].clone()));
        for output in one.take_outputs() {
            if let PeersOutput::Send { bytes, .. } = output {
                two.receive(1, &bytes);
            }
        }
        assert!(two.take_outputs().iter().any(|output| matches!(output, PeersOutput::Load { .. })));
        two.on_loaded(DOC, Ok(Vec::new()));
        let store = two.take_outputs().into_iter().find_map(|output| match output {
            PeersOutput::Store { ticket, .. } => Some(ticket),
            _ => None,
        });
        // The write never reaches the disk, since the document isn't shared.
        let ticket = store.expect("it is to be kept");
        two.set_share(1, Box::new(|_| DocumentAccess::None));
        two.set_share(1, Box::new(|_| DocumentAccess::Write));
        two.follow(1, DOC);
        talk(&mut one, &mut two, &mut disks);
        assert_eq!(text(&disks[1]), words());
        assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
        assert!(!two.on_stored(ticket), "nobody waits for it");
    }

    #[test]
    fn what_only_deletes_is_said_like_everything_else() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        let mut disks = [vec![note(1, &words()).save()], Vec::new()];
        talk(&mut one, &mut two, &mut disks);
        one.offer_document(1, DOC);
        talk(&mut one, &mut two, &mut disks);
        let mut note = NoteDoc::load(DOC, &disks[0], ActorId::from([5; 16])).expect("it loads").doc;
        let op = NoteOp::Splice { block: BlockId(1), at: 0, delete: 6, insert: String::new() };
        let bytes = note.commit(&[op], 2, None).expect("an edit");
        disks[0].push(bytes.clone());
        one.on_changed(DOC, &bytes);
        talk(&mut one, &mut two, &mut disks);
        assert_eq!(text(&disks[1]), words()[6..]);
        assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
    }

    #[test]
    fn one_that_was_asked_for_before_it_was_made_is_said_at_once_too() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        let mut disks = [Vec::new(), Vec::new()];
        one.follow(1, DOC);
        talk(&mut one, &mut two, &mut disks);
        let bytes = note(1, &words()).save();
        disks[0].push(bytes.clone());
        one.on_changed(DOC, &bytes);
        let said = talk(&mut one, &mut two, &mut disks);
        assert_eq!(said.iter().map(|(who, ..)| *who).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(text(&disks[1]), words());
    }

    #[test]
    fn what_the_other_has_of_it_is_merged() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        let mut disks = [vec![note(1, "ours ").save()], vec![note(2, "theirs ").save()]];
        talk(&mut one, &mut two, &mut disks);
        one.offer_document(1, DOC);
        one.offer_document(1, DOC); // once more does nothing
        assert!(!talk(&mut one, &mut two, &mut disks).is_empty());
        assert_eq!(text(&disks[0]), "ours theirs ");
        assert_eq!(text(&disks[1]), "ours theirs ");
        assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)));
    }

    #[test]
    fn who_drops_a_document_and_takes_it_up_again_is_answered() {
        for offers in [false, true] {
            let (mut one, mut two) = (peers("one", true), peers("two", true));
            let mut disks = [vec![note(1, &words()).save()], Vec::new()];
            talk(&mut one, &mut two, &mut disks);
            one.offer_document(1, DOC);
            talk(&mut one, &mut two, &mut disks);
            one.set_share(1, Box::new(|_| DocumentAccess::None));
            talk(&mut one, &mut two, &mut disks);
            assert_eq!(one.is_in_sync(1, DOC), None);
            one.set_share(1, Box::new(|_| DocumentAccess::Write));
            if offers {
                one.offer_document(1, DOC)
            } else {
                one.follow(1, DOC)
            }
            talk(&mut one, &mut two, &mut disks);
            assert_eq!((one.is_in_sync(1, DOC), two.is_in_sync(1, DOC)), (Some(true), Some(true)), "{offers}");
        }
    }

    #[test]
    fn other_programs_are_asked_first() {
        let (mut one, mut two) = (peers("one", true), peers("two", false));
        talk(&mut one, &mut two, &mut [Vec::new(), Vec::new()]);
        let mut disks = [vec![note(1, &words()).save()], Vec::new()];
        one.offer_document(1, DOC);
        let said = talk(&mut one, &mut two, &mut disks);
        assert!(said[0].1 < 400, "the first message is a question: {} bytes", said[0].1);
        assert_eq!(text(&disks[1]), words());
    }

    #[test]
    fn who_refuses_it_is_not_sent_it_again_and_again() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        two.set_share(1, Box::new(|_| DocumentAccess::None));
        let quiet = |one: &mut SyncPeers, two: &mut SyncPeers| {
            let mut bytes_said = 0;
            loop {
                let (outs, backs) = (one.take_outputs(), two.take_outputs());
                if outs.is_empty() && backs.is_empty() {
                    return bytes_said;
                }
                for output in outs {
                    match output {
                        PeersOutput::Send { bytes, .. } => {
                            bytes_said += bytes.len();
                            two.receive(1, &bytes);
                        }
                        PeersOutput::Load { doc } => one.on_loaded(doc, Ok(vec![note(1, &words()).save()])),
                        _ => {}
                    }
                }
                for output in backs {
                    if let PeersOutput::Send { bytes, .. } = output {
                        one.receive(1, &bytes);
                    }
                }
            }
        };
        quiet(&mut one, &mut two);
        one.offer_document(1, DOC);
        assert!(quiet(&mut one, &mut two) > 500, "all of it is said once");
        let mut longer = note(1, &words());
        let op = NoteOp::Insert { block: BlockId(5), pos: "o".to_owned(), text: "more".to_owned() };
        one.on_changed(DOC, &longer.commit(&[op], 2, None).expect("an edit"));
        assert!(quiet(&mut one, &mut two) < 500, "and then only that there is something new");
    }

    #[test]
    fn a_change_that_waits_for_another_is_sent_again_when_the_document_was_let_go() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        talk(&mut one, &mut two, &mut [Vec::new(), Vec::new()]);
        two.limits.max_resting_documents = 0;
        // A peer that sent the last change first, because its filter treated the one before it as known.
        let mut whole = note(1, "");
        let mut edit = |number: u32| {
            let (block, pos) = (BlockId(50 + u64::from(number)), format!("z{number:02}"));
            let bytes = whole.commit(&[NoteOp::Insert { block, pos, text: format!("{number} ") }], 2, None);
            (bytes.expect("an edit"), whole.save())
        };
        // With this many earlier changes, automerge doesn't send everything again.
        let known = (0..10).map(|number| edit(number).1).last();
        edit(10);
        let (last, whole) = edit(11);
        let mut doc = Automerge::load(&whole).expect("it loads");
        let (mut state, heads) = (State::new(), doc.get_heads());
        state.sent_hashes.extend(heads.iter().copied());
        (state.have_responded, state.last_sent_heads) = (true, heads.clone());
        let mut flags = MessageFlags::new();
        flags.set(MessageFlags::SUPPORTS_SYNC_RESET);
        let mut next = Some(automerge::sync::Message {
            heads,
            need: Vec::new(),
            have: vec![Have::default()],
            changes: ChunkList::from(last),
            flags: Some(flags),
            version: MessageVersion::V2,
        });
        let mut disk: Vec<Vec<u8>> = known.into_iter().collect();
        for _ in 0..20 {
            if let Some(message) = next.take() {
                let (sender, target) = (PeerId("one".to_owned()), PeerId("two".to_owned()));
                two.receive(1, &wire::encode(&WireMessage::Sync { sender, target, doc: DOC, data: message.encode() }));
            }
            two.evict_at = 0; // and nothing rests
            for output in two.take_outputs() {
                match output {
                    PeersOutput::Send { bytes, .. } => {
                        let Ok(WireMessage::Sync { data, .. } | WireMessage::Request { data, .. }) =
                            wire::decode(&bytes)
                        else {
                            continue;
                        };
                        let said = automerge::sync::Message::decode(&data).expect("a message");
                        doc.receive_sync_message(&mut state, said).expect("it is taken");
                        next = doc.generate_sync_message(&mut state).or(next);
                    }
                    PeersOutput::Load { doc } => two.on_loaded(doc, Ok(disk.clone())),
                    PeersOutput::Store { ticket, parcel, .. } => {
                        disk.push(parcel.bytes);
                        two.on_stored(ticket);
                    }
                    PeersOutput::Close { why, .. } | PeersOutput::Refused { why, .. } => panic!("{why}"),
                    _ => {}
                }
            }
        }
        assert_eq!(text(&disk), "0 1 2 3 4 5 6 7 8 9 10 11 ");
    }

    #[test]
    fn what_came_whole_stays_where_something_early_waits_in_it() {
        let (mut one, mut two) = (peers("one", true), peers("two", true));
        talk(&mut one, &mut two, &mut [Vec::new(), Vec::new()]);
        let mut whole = note(1, &words());
        let all = whole.save();
        let heads = |doc: &[u8]| Automerge::load(doc).expect("it loads").get_heads();
        let first = heads(&all);
        let mut edit = |number: u64| {
            let (block, pos) = (BlockId(50 + number), format!("z{number}"));
            let bytes = whole.commit(&[NoteOp::Insert { block, pos, text: format!("{number} ") }], 2, None);
            (bytes.expect("an edit"), whole.save())
        };
        let (between, _) = edit(0);
        let (last, end) = edit(1);
        // Both wait until it's known that nothing is here; the second lacks its dependencies.
        for (heads, bytes) in [(first, all), (heads(&end), last)] {
            let mut flags = MessageFlags::new();
            flags.set(MessageFlags::SUPPORTS_SYNC_RESET);
            let message = automerge::sync::Message {
                heads,
                need: Vec::new(),
                have: vec![Have::default()],
                changes: ChunkList::from(bytes),
                flags: Some(flags),
                version: MessageVersion::V2,
            };
            let (sender, target) = (PeerId("one".to_owned()), PeerId("two".to_owned()));
            two.receive(1, &wire::encode(&WireMessage::Sync { sender, target, doc: DOC, data: message.encode() }));
        }
        two.take_outputs();
        two.on_loaded(DOC, Ok(Vec::new()));
        let mut disk = Vec::new();
        for _ in 0..3 {
            for output in two.take_outputs() {
                if let PeersOutput::Store { ticket, parcel, .. } = output {
                    assert!(parcel.loaded.is_none(), "what waits would go along with it");
                    disk.push(parcel.bytes);
                    two.on_stored(ticket);
                }
            }
            if disk.len() == 1 {
                disk.push(between.clone());
                two.on_changed(DOC, &between);
            }
        }
        assert_eq!(two.heads(DOC), Some(heads(&end)));
    }
}
