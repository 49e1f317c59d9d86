//! Fast catch-up between two Tracebooks: instead of syncing each document of a volume, two devices find the few that
//! differ by set reconciliation (crate `negentropy`, over hashes of the documents' heads). The others aren't synced
//! until they change. Peers that don't announce support never get these messages.
//!
//! A side knows documents that it lacks only by hash, so it asks which documents those are. Outputs of cells that never
//! ran are then not requested one by one, and there may be very many of them.
//!
//! The dialing side starts, and follows what differs and what it lacks; the listening side answers, and follows what it
//! lacks. Documents that it has and isn't asked for are the same on both sides. Once a side has built its table, each
//! document that changes is followed separately.

use super::{DocumentAccess, LinkId, PeersOutput, SyncPeers};
use crate::id::DocId;
use crate::sync::wire;
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Hash of a document's heads: equal on two devices exactly if they have the same changes.
pub type HeadsHash = [u8; 32];

/// Topic of these messages on the wire.
pub(super) const RECONCILE_TOPIC: &str = "reconcile";
/// Target size of a message in bytes. A message of more than twice this size is rejected.
const TARGET_MESSAGE_BYTES: usize = 60_000;
/// Maximum number of messages for one volume; more are rejected.
const MAX_ROUNDS_PER_VOLUME: u32 = 2_000;
/// Maximum number of comparisons that may be started over one connection.
const MAX_COMPARISONS_PER_LINK: u32 = 10_000;
/// Maximum number of documents that are read at the same time to determine their heads.
const MAX_CONCURRENT_READS: usize = 64;
/// With fewer documents, each is requested individually. So is a volume's document if nothing is known of it here. A
/// device that has none of very many documents also compares them, and doesn't request outputs of cells that never ran.
const SMALL_DIFFERENCE: usize = 4;

/// The first byte of a message, its type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReconcileOpcode {
    /// First message, from the side that dialed.
    Begin = 0,
    /// Any later message of the comparison, from the side that dialed.
    Next = 1,
    /// The answer to `Begin` or `Next`.
    Answer = 2,
    /// The other side doesn't compare this volume.
    NotShared = 3,
    /// The side that dialed has all it needs to know.
    Done = 4,
    /// Sent before `Done`: asks for the ids of documents that the dialing side lacks or that differ there.
    QueryIds = 5,
    /// The answer to `QueryIds`.
    ReplyIds = 6,
}

impl ReconcileOpcode {
    fn from_byte(byte: u8) -> Option<ReconcileOpcode> {
        let all = [
            ReconcileOpcode::Begin,
            ReconcileOpcode::Next,
            ReconcileOpcode::Answer,
            ReconcileOpcode::NotShared,
            ReconcileOpcode::Done,
            ReconcileOpcode::QueryIds,
            ReconcileOpcode::ReplyIds,
        ];
        all.into_iter().find(|word| *word as u8 == byte)
    }
}

/// All documents of a volume.
pub type VolumeDocs = Arc<BTreeSet<DocId>>;

/// One side's snapshot of a volume.
#[derive(Debug)]
struct VolumeTable {
    storage: NegentropyStorageVector,
    /// The documents by the hashes of their heads.
    docs: HashMap<[u8; 32], DocId>,
}

/// A comparison in progress.
pub(super) struct VolumeComparison {
    docs: VolumeDocs,
    /// Documents whose heads aren't known yet.
    missing: Vec<DocId>,
    table: Option<VolumeTable>,
    /// The other side's first message, until the table is built.
    first_frame: Option<Vec<u8>>,
    /// Documents found to differ so far; only on the side that dialed.
    differing: BTreeSet<DocId>,
    /// Hashes that the other side has and this side doesn't: documents that are missing here or differ. Only on the
    /// side that dialed.
    missing_ids: Vec<Id>,
    /// Number of unanswered queries for document ids.
    open_queries: usize,
    /// Documents whose ids were sent: on the dialing side, the received ones; on the listening side, the requested
    /// ones.
    named_docs: BTreeSet<DocId>,
    rounds: u32,
    /// Number of the comparison on this connection, used to ignore answers to an earlier one.
    number: [u8; 4],
}

impl VolumeComparison {
    fn new(begun: Option<Vec<u8>>, number: [u8; 4]) -> VolumeComparison {
        VolumeComparison {
            docs: VolumeDocs::default(),
            missing: Vec::new(),
            table: None,
            first_frame: begun,
            differing: BTreeSet::new(),
            missing_ids: Vec::new(),
            open_queries: 0,
            named_docs: BTreeSet::new(),
            rounds: 0,
            number,
        }
    }
}

/// The volumes of a connection and their comparisons.
#[derive(Default)]
pub(super) struct PeerVolumes {
    /// Documents that are followed as soon as they change, by volume.
    quiet: BTreeMap<DocId, VolumeDocs>,
    comparisons: BTreeMap<DocId, VolumeComparison>,
    comparisons_begun: u32,
    /// Volumes to compare after the handshake.
    pub(super) pending: Vec<(DocId, VolumeDocs)>,
}

/// Known hashes of the heads of documents on disk.
#[derive(Default)]
pub(super) struct HeadsHashes {
    /// The hash by document. `None` if the document exists, but its heads are unknown.
    by_doc: HashMap<DocId, Option<HeadsHash>>,
    /// Documents being read to determine their heads.
    reading: BTreeSet<DocId>,
}

/// Hashes the heads of a document; `None` if there are none.
fn hash_heads(doc: DocId, heads: &[automerge::ChangeHash]) -> Option<HeadsHash> {
    if heads.is_empty() {
        return None;
    }
    let mut heads: Vec<[u8; 32]> = heads.iter().map(|head| head.0).collect();
    heads.sort_unstable();
    let mut hasher = blake3::Hasher::new_derive_key("tracebook 2026 heads of a document");
    hasher.update(&doc.0);
    heads.iter().for_each(|head| _ = hasher.update(head));
    Some(*hasher.finalize().as_bytes())
}

impl HeadsHashes {
    /// Whether these are the known heads on disk.
    pub(super) fn matches(&self, doc: DocId, heads: &[automerge::ChangeHash]) -> bool {
        let known = self.by_doc.get(&doc).copied().flatten();
        known.is_some() && known == hash_heads(doc, heads)
    }
}

impl SyncPeers {
    /// Sets the hash of a document on disk, or `None` if the caller doesn't know it. Call it for all documents before
    /// the first connection; later the state updates itself.
    pub fn set_heads_hash(&mut self, doc: DocId, print: Option<HeadsHash>) {
        self.prints.by_doc.insert(doc, print);
    }

    /// Returns the known hashes of all documents on disk, to be stored for the next start.
    pub fn heads_hashes(&self) -> impl Iterator<Item = (DocId, HeadsHash)> {
        self.prints.by_doc.iter().filter_map(|(doc, print)| Some((*doc, (*print)?)))
    }

    /// Updates the hash of a document whose state in memory is on disk.
    pub(super) fn update_heads_hash(&mut self, doc: DocId) {
        let Some(document) = self.docs.get(&doc).filter(|document| document.is_durable()) else { return };
        match hash_heads(doc, &document.heads()) {
            Some(print) => _ = self.prints.by_doc.insert(doc, Some(print)),
            None => _ = self.prints.by_doc.remove(&doc),
        }
        self.on_heads_read(doc);
    }

    /// Marks the hash of a document as unknown, because the document on disk has changed.
    pub(super) fn invalidate_heads_hash(&mut self, doc: DocId) {
        self.prints.by_doc.insert(doc, None);
        self.on_heads_read(doc);
    }

    /// Removes the hash of a document that's no longer on disk.
    pub(super) fn remove_heads_hash(&mut self, doc: DocId) {
        self.prints.by_doc.remove(&doc);
        self.on_heads_read(doc);
    }

    /// Whether both ends of a connection support comparisons.
    fn can_compare(&self, link: LinkId) -> bool {
        let ours = self.metadata.tracebook.is_some_and(|version| version >= wire::EXTENSIONS_VERSION);
        let theirs = self.links.get(&link).and_then(|peer| peer.metadata.tracebook);
        ours && theirs.is_some_and(|version| version >= wire::EXTENSIONS_VERSION)
    }

    /// Syncs a volume's documents with a peer, including the volume's own document. Can be called again when the set of
    /// documents changes.
    pub fn follow_volume(&mut self, link: LinkId, scope: DocId, docs: VolumeDocs) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        if peer.id.is_none() {
            peer.scopes.pending.retain(|(known, _)| *known != scope);
            peer.scopes.pending.push((scope, docs));
            return;
        }
        let dialed = peer.dialed;
        if !self.can_compare(link) {
            docs.iter().for_each(|doc| self.follow(link, *doc));
            return;
        }
        // With very many files, the volume's own document alone takes a second to load on both sides. If its hash is
        // known, it's compared like all others, and only loaded if it differs.
        let is_known = docs.contains(&scope) && matches!(self.prints.by_doc.get(&scope), Some(Some(_)));
        if !is_known {
            self.follow(link, scope);
        }
        if dialed && docs.len() < SMALL_DIFFERENCE {
            docs.iter().for_each(|doc| self.follow(link, *doc));
            return;
        }
        let Some(peer) = self.links.get_mut(&link) else { return };
        peer.scopes.quiet.insert(scope, docs.clone());
        if dialed {
            peer.scopes.comparisons_begun += 1;
            let number = peer.scopes.comparisons_begun.to_le_bytes();
            self.begin_comparison(link, scope, docs, number, None);
            return;
        }
        let absent: Vec<DocId> = docs.iter().copied().filter(|doc| !self.prints.by_doc.contains_key(doc)).collect();
        absent.into_iter().for_each(|doc| self.follow(link, doc));
    }

    fn begin_comparison(
        &mut self,
        link: LinkId,
        scope: DocId,
        docs: VolumeDocs,
        number: [u8; 4],
        begun: Option<Vec<u8>>,
    ) {
        let missing = docs.iter().copied().filter(|doc| self.prints.by_doc.get(doc) == Some(&None)).collect();
        let Some(peer) = self.links.get_mut(&link) else { return };
        peer.scopes
            .comparisons
            .insert(scope, VolumeComparison { docs, missing, ..VolumeComparison::new(begun, number) });
        self.advance_comparison(link, scope);
    }

    /// Continues a comparison without a table: loads missing documents, or builds the table.
    fn advance_comparison(&mut self, link: LinkId, scope: DocId) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.get_mut(&scope).filter(|talk| talk.table.is_none()) else { return };
        let mut next = Vec::new();
        while self.prints.reading.len() < MAX_CONCURRENT_READS
            && let Some(doc) = talk.missing.pop()
        {
            if self.prints.by_doc.get(&doc) != Some(&None) {
                continue;
            }
            match self.docs.get(&doc).filter(|document| document.is_durable()) {
                Some(document) => match hash_heads(doc, &document.heads()) {
                    Some(print) => _ = self.prints.by_doc.insert(doc, Some(print)),
                    None => _ = self.prints.by_doc.remove(&doc),
                },
                None if self.prints.reading.insert(doc) => next.push(doc),
                None => {}
            }
        }
        next.into_iter().for_each(|doc| _ = self.ensure_document(doc));
        let Some(peer) = self.links.get(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.get(&scope) else { return };
        if talk.missing.is_empty() && self.prints.reading.is_empty() && talk.table.is_none() {
            self.build_table(link, scope);
        }
    }

    /// Handles a document that may have been loaded to determine its heads: it's loaded now, or can't be read.
    pub(super) fn on_heads_read(&mut self, doc: DocId) {
        if !self.prints.reading.remove(&doc) {
            return;
        }
        let waits = |(link, peer): (&LinkId, &super::SyncPeer)| {
            let talks = peer.scopes.comparisons.iter().filter(|(_, talk)| talk.table.is_none());
            talks.map(|(scope, _)| (*link, *scope)).collect::<Vec<_>>()
        };
        let waiting: Vec<(LinkId, DocId)> = self.links.iter().flat_map(waits).collect();
        for (link, scope) in waiting {
            self.advance_comparison(link, scope);
        }
    }

    fn build_table(&mut self, link: LinkId, scope: DocId) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.get_mut(&scope) else { return };
        let mut storage = NegentropyStorageVector::with_capacity(talk.docs.len());
        let mut docs = HashMap::new();
        let (initiates, number) = (peer.dialed, talk.number);
        for doc in talk.docs.iter() {
            let Some(Some(print)) = self.prints.by_doc.get(doc) else { continue };
            if (peer.share)(*doc) == DocumentAccess::None || storage.insert(0, Id::from_byte_array(*print)).is_err() {
                continue;
            }
            docs.insert(*print, *doc);
        }
        if storage.seal().is_err() {
            return;
        }
        let table = VolumeTable { storage, docs };
        if initiates {
            let first =
                Negentropy::borrowed(&table.storage, TARGET_MESSAGE_BYTES as u64).and_then(|mut side| side.initiate());
            talk.table = Some(table);
            match first {
                Ok(bytes) => self.send_comparison(link, scope, ReconcileOpcode::Begin, number, &bytes),
                Err(_) => self.follow_differences(link, scope, false),
            }
            return;
        }
        talk.table = Some(table);
        if let Some(bytes) = talk.first_frame.take() {
            self.send_answer(link, scope, &bytes);
        }
    }

    fn send_comparison(&mut self, link: LinkId, scope: DocId, word: ReconcileOpcode, number: [u8; 4], bytes: &[u8]) {
        let mut data = vec![word as u8];
        data.extend(number);
        data.extend(scope.0);
        data.extend(bytes);
        self.send_extension(link, RECONCILE_TOPIC, data);
    }

    /// Handles a received message of [`RECONCILE_TOPIC`].
    pub(super) fn on_comparison(&mut self, link: LinkId, data: &[u8]) {
        if !self.can_compare(link) || data.len() > 2 * TARGET_MESSAGE_BYTES {
            return self.fail_link(link, "it compares what nobody asked it to compare");
        }
        let read = data.split_at_checked(21).and_then(|(head, bytes)| {
            let (word, head) = head.split_first()?;
            let (number, scope) = head.split_first_chunk::<4>()?;
            Some((ReconcileOpcode::from_byte(*word)?, *number, DocId(scope.try_into().ok()?), bytes))
        });
        let Some((word, number, scope, bytes)) = read else {
            return self.fail_link(link, "it compares in words that nobody knows");
        };
        let Some(peer) = self.links.get_mut(&link) else { return };
        let turn = match word {
            ReconcileOpcode::Begin | ReconcileOpcode::Next | ReconcileOpcode::Done | ReconcileOpcode::QueryIds => {
                !peer.dialed
            }
            ReconcileOpcode::Answer | ReconcileOpcode::NotShared | ReconcileOpcode::ReplyIds => peer.dialed,
        };
        if !turn {
            return self.fail_link(link, "it compares out of turn");
        }
        match word {
            ReconcileOpcode::Begin => {
                peer.scopes.comparisons_begun += 1;
                if peer.scopes.comparisons_begun > MAX_COMPARISONS_PER_LINK {
                    return self.fail_link(link, "it begins to compare again and again");
                }
                if (peer.share)(scope) == DocumentAccess::None {
                    return self.send_comparison(link, scope, ReconcileOpcode::NotShared, number, &[]);
                }
                // A running comparison is restarted.
                peer.scopes.comparisons.insert(scope, VolumeComparison::new(Some(bytes.to_vec()), number));
                self.outputs.push_back(PeersOutput::NeedVolumeDocs { link, scope });
            }
            ReconcileOpcode::Next => self.send_answer(link, scope, bytes),
            ReconcileOpcode::Done => self.on_done(link, scope),
            ReconcileOpcode::QueryIds => self.on_id_query(link, scope, bytes),
            ReconcileOpcode::NotShared | ReconcileOpcode::Answer | ReconcileOpcode::ReplyIds
                if peer.scopes.comparisons.get(&scope).is_none_or(|talk| talk.number != number) => {}
            ReconcileOpcode::NotShared => self.follow_differences(link, scope, false),
            ReconcileOpcode::Answer => self.on_answer(link, scope, bytes),
            ReconcileOpcode::ReplyIds => self.on_id_reply(link, scope, bytes),
        }
    }

    /// Handles the result of [`PeersOutput::NeedVolumeDocs`]: the volume's documents on this device. Empty if it isn't
    /// shared.
    pub fn on_volume_docs(&mut self, link: LinkId, scope: DocId, docs: VolumeDocs) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.remove(&scope).filter(|talk| talk.table.is_none()) else { return };
        let Some(begun) = talk.first_frame else { return };
        if docs.is_empty() {
            return self.send_comparison(link, scope, ReconcileOpcode::NotShared, talk.number, &[]);
        }
        peer.scopes.quiet.insert(scope, docs.clone());
        self.begin_comparison(link, scope, docs, talk.number, Some(begun));
    }

    fn send_answer(&mut self, link: LinkId, scope: DocId, bytes: &[u8]) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let talk = peer.scopes.comparisons.get_mut(&scope);
        let Some((rounds, number, table)) =
            talk.and_then(|talk| Some((&mut talk.rounds, talk.number, talk.table.as_ref()?)))
        else {
            return self.fail_link(link, "it continues a comparison that it didn't start");
        };
        *rounds += 1;
        if *rounds > MAX_ROUNDS_PER_VOLUME {
            return self.fail_link(link, "it compares without end");
        }
        let made = super::catch_panic(|| {
            let mut side = Negentropy::borrowed(&table.storage, TARGET_MESSAGE_BYTES as u64)?;
            side.reconcile(bytes)
        });
        match made.and_then(|made| Ok(made?)) {
            Ok(bytes) => self.send_comparison(link, scope, ReconcileOpcode::Answer, number, &bytes),
            Err(why) => self.fail_link(link, &why.to_string()),
        }
    }

    fn on_answer(&mut self, link: LinkId, scope: DocId, bytes: &[u8]) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.get_mut(&scope) else { return };
        let (Some(table), number) = (talk.table.as_ref(), talk.number) else { return };
        talk.rounds += 1;
        if talk.rounds > MAX_ROUNDS_PER_VOLUME {
            return self.fail_link(link, "it compares without end");
        }
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = super::catch_panic(|| {
            let mut side = Negentropy::borrowed(&table.storage, TARGET_MESSAGE_BYTES as u64)?;
            side.set_initiator();
            side.reconcile_with_ids(bytes, &mut have, &mut need)
        });
        match next.and_then(|next| Ok(next?)) {
            Ok(next) => {
                talk.differing.extend(have.iter().filter_map(|id| table.docs.get(id.as_bytes())));
                talk.missing_ids.extend(need);
                if talk.missing_ids.len() > self.limits.max_documents {
                    return self.fail_link(link, "it has more documents than a connection may be about");
                }
                match next {
                    Some(bytes) => self.send_comparison(link, scope, ReconcileOpcode::Next, number, &bytes),
                    None => self.send_id_queries(link, scope),
                }
            }
            Err(why) => self.fail_link(link, &why.to_string()),
        }
    }

    /// Requests the ids of documents that only the other side has, or that differ there.
    fn send_id_queries(&mut self, link: LinkId, scope: DocId) {
        let talk = self.links.get_mut(&link).and_then(|peer| peer.scopes.comparisons.get_mut(&scope));
        let Some(talk) = talk else { return };
        let join = |prints: &[Id]| prints.iter().flat_map(|print| *print.as_bytes()).collect();
        let asks: Vec<Vec<u8>> =
            talk.missing_ids.chunks(TARGET_MESSAGE_BYTES / size_of::<HeadsHash>()).map(join).collect();
        (talk.open_queries, talk.missing_ids) = (asks.len(), Vec::new());
        let number = talk.number;
        if asks.is_empty() {
            return self.send_done(link, scope);
        }
        asks.iter().for_each(|prints| self.send_comparison(link, scope, ReconcileOpcode::QueryIds, number, prints));
    }

    fn on_id_query(&mut self, link: LinkId, scope: DocId, bytes: &[u8]) {
        let talk = self.links.get_mut(&link).and_then(|peer| peer.scopes.comparisons.get_mut(&scope));
        let Some(VolumeComparison { rounds, named_docs: named, number, table: Some(table), .. }) = talk else {
            return self.fail_link(link, "it continues a comparison that it didn't start");
        };
        *rounds += 1;
        let (prints, rest) = bytes.as_chunks::<{ size_of::<HeadsHash>() }>();
        if *rounds > MAX_ROUNDS_PER_VOLUME || !rest.is_empty() {
            return self.fail_link(link, "it asks for documents in words that nobody knows");
        }
        let these: Vec<DocId> = prints.iter().filter_map(|print| table.docs.get(print)).copied().collect();
        named.extend(&these);
        let (number, these): (_, Vec<u8>) = (*number, these.into_iter().flat_map(|doc| doc.0).collect());
        self.send_comparison(link, scope, ReconcileOpcode::ReplyIds, number, &these);
    }

    /// Handles the end of a comparison. The dialing side has requested everything that only this side has or that
    /// differs here, so all other documents are the same.
    fn on_done(&mut self, link: LinkId, scope: DocId) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(VolumeComparison { table: Some(table), named_docs: named, .. }) =
            peer.scopes.comparisons.remove(&scope)
        else {
            return;
        };
        let same = table.docs.into_values().filter(|doc| !named.contains(doc) && !peer.docs.contains_key(doc));
        self.outputs.push_back(PeersOutput::Agreed { link, docs: same.collect() });
    }

    fn on_id_reply(&mut self, link: LinkId, scope: DocId, bytes: &[u8]) {
        let talk = self.links.get_mut(&link).and_then(|peer| peer.scopes.comparisons.get_mut(&scope));
        let Some(talk) = talk else { return };
        let (docs, rest) = bytes.as_chunks::<16>();
        let Some(left) = talk.open_queries.checked_sub(1).filter(|_| rest.is_empty()) else {
            return self.fail_link(link, "it names documents that nobody asked for");
        };
        talk.open_queries = left;
        let docs = docs.iter().map(|doc| DocId(*doc)).filter(|doc| talk.docs.contains(doc));
        talk.named_docs.extend(docs);
        if left == 0 {
            self.send_done(link, scope);
        }
    }

    /// Ends the comparison on the dialing side.
    fn send_done(&mut self, link: LinkId, scope: DocId) {
        let talk = self.links.get(&link).and_then(|peer| peer.scopes.comparisons.get(&scope));
        let Some(number) = talk.map(|talk| talk.number) else { return };
        self.send_comparison(link, scope, ReconcileOpcode::Done, number, &[]);
        self.follow_differences(link, scope, true);
    }

    /// Follows the documents that differ, but not those that are the same. Without a comparison (`compared` is false),
    /// all documents may differ.
    fn follow_differences(&mut self, link: LinkId, scope: DocId, compared: bool) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        let Some(talk) = peer.scopes.comparisons.remove(&scope) else { return };
        let table = talk.table.unwrap_or_else(|| VolumeTable { storage: Default::default(), docs: HashMap::new() });
        let compared_docs: HashSet<DocId> = table.docs.into_values().collect();
        let is_same = |doc: &DocId| compared && compared_docs.contains(doc) && !talk.differing.contains(doc);
        let (mut same, other): (Vec<DocId>, Vec<DocId>) =
            talk.docs.iter().copied().filter(|doc| !peer.docs.contains_key(doc)).partition(is_same);
        // Both sides know the note, so either side announces its outputs when they exist.
        let outputs: HashSet<DocId> = same.iter().map(|note| note.outputs_id()).collect();
        let is_nowhere =
            |doc: &DocId| outputs.contains(doc) && !compared_docs.contains(doc) && !talk.named_docs.contains(doc);
        let (nowhere, other): (Vec<DocId>, Vec<DocId>) = other.into_iter().partition(is_nowhere);
        same.extend(nowhere);
        self.outputs.push_back(PeersOutput::Agreed { link, docs: same });
        other.into_iter().for_each(|doc| self.follow(link, doc));
    }

    /// Makes peers that compared a changed document, but don't follow it yet, follow it from now on. Returns whether
    /// there are any.
    pub(super) fn follow_changed(&mut self, doc: DocId) -> bool {
        let mut any = false;
        for link in self.quiet_links(doc) {
            if self.ensure_sync_state(link, doc) {
                self.outputs.push_back(PeersOutput::SyncChanged { link, doc, same: false });
                any = true;
            }
        }
        any
    }

    /// Returns the connections whose peers compared a document, but don't follow it. They only get messages about it
    /// that go to everyone.
    pub(super) fn quiet_links(&self, doc: DocId) -> Vec<LinkId> {
        let quiet = |peer: &super::SyncPeer| {
            peer.id.is_some()
                && !peer.docs.contains_key(&doc)
                && peer.scopes.quiet.values().any(|docs| docs.contains(&doc))
                && (peer.share)(doc) != DocumentAccess::None
        };
        self.links.iter().filter(|(_, peer)| quiet(peer)).map(|(link, _)| *link).collect()
    }
}

#[cfg(test)]
mod tests;
