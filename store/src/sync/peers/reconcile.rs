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
mod tests {
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
            two.take_outputs()
                .iter()
                .any(|output| matches!(output, PeersOutput::Load { doc: read } if *read == doc(3)))
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
                            PeersOutput::NeedVolumeDocs { link, scope } => {
                                from.on_volume_docs(link, scope, docs.clone())
                            }
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
        one.receive(
            1,
            &wire::encode(&WireMessage::Extension { sender, target, topic: RECONCILE_TOPIC.to_owned(), data }),
        );
        assert!(one.take_outputs().iter().any(|output| matches!(output, PeersOutput::Close { link: 1, .. })));
    }
}
