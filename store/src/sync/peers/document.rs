//! Documents in memory: loaded when needed, changed by peers and by durable writes, evicted when idle.

use super::{
    ChunksReadError, DiskTicket, DocumentSyncState, LinkId, PeersOutput, SyncBytesError, SyncPeers, catch_panic,
};
use crate::document::ChangeParcel;
use crate::id::DocId;
use crate::schema::TEXT_ENCODING;
use crate::sync::inflate;
use automerge::sync::{self, Capability, ChunkList, Have, MessageFlags, MessageVersion, SyncDoc};
use automerge::{Automerge, ChangeHash, LoadOptions, ReadDoc};
use std::collections::VecDeque;

/// The form of a document in memory.
enum DocumentForm {
    /// The saved document as it is on disk, or will be once pending writes are done: one chunk with all of it, and its
    /// heads. New peers get these bytes, since loading and saving a document is nearly all of the cost of a first sync.
    Whole(Vec<u8>, Vec<ChangeHash>),
    /// The document loaded by automerge.
    Loaded(Box<Automerge>),
}

fn load_automerge(bytes: &[u8]) -> Result<Automerge, SyncBytesError> {
    let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
    Ok(catch_panic(|| Automerge::load_with_options(bytes, options))??)
}

/// A document in memory. It is never edited here.
pub(super) struct SyncDocument {
    form: DocumentForm,
    /// Whether it's still being read from disk.
    loading: bool,
    /// The pending write of its changes, if any.
    ticket: Option<DiskTicket>,
    /// Queued messages: sender, message, size in bytes.
    pub(super) queue: VecDeque<(LinkId, sync::Message, usize)>,
    /// Changes that became durable while it was being read from disk.
    late_changes: Vec<Vec<u8>>,
    last_touch: u64,
}

impl SyncDocument {
    fn new() -> SyncDocument {
        SyncDocument {
            form: DocumentForm::Loaded(Box::new(Automerge::new_with_encoding(TEXT_ENCODING))),
            loading: true,
            ticket: None,
            queue: VecDeque::new(),
            late_changes: Vec::new(),
            last_touch: 0,
        }
    }

    /// Whether all of its changes are on disk.
    pub(super) fn is_durable(&self) -> bool {
        !self.loading && self.ticket.is_none()
    }

    fn is_idle(&self) -> bool {
        self.is_durable() && self.queue.is_empty()
    }

    /// Whether it's idle and in the form in which it was on disk.
    pub(super) fn is_idle_whole(&self) -> bool {
        self.is_whole() && self.is_idle()
    }

    /// Whether it contains changes that wait for their predecessors. These are neither on disk nor part of the heads.
    fn has_early_changes(&self) -> bool {
        matches!(&self.form, DocumentForm::Loaded(doc) if !doc.get_missing_deps(&[]).is_empty())
    }

    pub(super) fn heads(&self) -> Vec<ChangeHash> {
        match &self.form {
            DocumentForm::Whole(_, heads) => heads.clone(),
            DocumentForm::Loaded(doc) => doc.get_heads(),
        }
    }

    fn load(&mut self) -> Result<&mut Automerge, SyncBytesError> {
        if let DocumentForm::Whole(bytes, _) = &self.form {
            self.form = DocumentForm::Loaded(Box::new(load_automerge(bytes)?));
        }
        match &mut self.form {
            DocumentForm::Loaded(doc) => Ok(doc),
            DocumentForm::Whole(..) => Err(SyncBytesError::NotLoaded),
        }
    }

    /// Applies a sync message. A message from a peer that has nothing and sends nothing needs no loaded document.
    ///
    /// # Errors
    /// The outer error means that the document can't be read; the inner one, that the message can't be applied.
    fn apply_message(
        &mut self,
        state: &mut sync::State,
        message: sync::Message,
    ) -> Result<Result<(), MessageRefusal>, SyncBytesError> {
        let mut nothing = Automerge::new_with_encoding(TEXT_ENCODING);
        let asks = message.heads.is_empty() && message.changes.is_empty();
        let doc = if asks && self.is_whole() { &mut nothing } else { self.load()? };
        Ok(match catch_panic(|| doc.receive_sync_message(state, message)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(MessageRefusal::Refused(error)),
            Err(why) => Err(MessageRefusal::Broken(why)),
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self.form, DocumentForm::Whole(..))
    }

    /// Returns the next message for a peer, or `None` if there's nothing to send.
    ///
    /// # Errors
    /// Returns an error if the document can't be loaded, or if automerge fails to build the message.
    pub(super) fn next_message(&mut self, state: &mut sync::State) -> Result<Option<sync::Message>, SyncBytesError> {
        if let DocumentForm::Whole(bytes, heads) = &self.form {
            let has = |known: &[ChangeHash]| state.their_heads.as_deref() == Some(known);
            let wants = state.their_need.as_ref().is_none_or(|need| !need.is_empty());
            if has(heads) && state.last_sent_heads == *heads && state.have_responded && !wants {
                return Ok(None);
            }
            let plain = !state.read_only && !state.peer_read_only && !state.needs_reset;
            let new = state.their_capabilities.as_ref().is_some_and(|all| all.contains(&Capability::MessageV2));
            if has(&[]) && !wants && plain && new && state.last_sent_heads.is_empty() {
                // The same message as automerge would generate for a loaded document.
                return Ok(Some(message_with_changes(state, heads, ChunkList::from(bytes.clone()))));
            }
            // A peer that sent the whole document gets a confirmation, as from automerge.
            let sent_it = matches!(state.their_have.as_deref(), Some([have]) if have.last_sync == *heads);
            if has(heads) && sent_it && state.shared_heads == *heads && !wants && plain && new {
                return Ok(Some(message_with_changes(state, heads, ChunkList::empty())));
            }
        }
        let doc = self.load()?;
        catch_panic(|| doc.generate_sync_message(state))
    }
}

/// Builds the message for a peer that will have these heads after applying `changes`, and updates the sync state. The
/// message's `have` announces what this side has beyond these heads.
fn message_with_changes(state: &mut sync::State, heads: &[ChangeHash], changes: ChunkList) -> sync::Message {
    (state.have_responded, state.in_flight) = (true, true);
    state.last_sent_heads = heads.to_vec();
    let mut flags = MessageFlags::new();
    flags.set(MessageFlags::SUPPORTS_SYNC_RESET);
    sync::Message {
        heads: heads.to_vec(),
        need: Vec::new(),
        have: vec![Have { last_sync: heads.to_vec(), ..Have::default() }],
        changes,
        flags: Some(flags),
        version: MessageVersion::V2,
    }
}

/// Why a message was rejected.
#[derive(Debug, thiserror::Error)]
enum MessageRefusal {
    /// automerge can't apply the message.
    #[error("changes that cannot be taken: {0}")]
    Refused(automerge::AutomergeError),
    /// automerge failed, and its state of the document can't be trusted.
    #[error(transparent)]
    Broken(SyncBytesError),
}

/// A chunk that contains a whole document.
struct WholeDocument {
    /// The connection that sent it.
    from: LinkId,
    bytes: Vec<u8>,
    heads: Vec<ChangeHash>,
}

/// Returns the whole document that a message contains, if it consists of exactly that.
fn whole_document(from: LinkId, message: &sync::Message) -> Option<WholeDocument> {
    let mut chunks = message.changes.iter();
    let (chunk, None) = (chunks.next()?, chunks.next()) else { return None };
    Some(WholeDocument { from, bytes: chunk.to_vec(), heads: inflate::whole_document_heads(chunk)? })
}

impl SyncPeers {
    /// Returns the document, and starts to load it if it isn't in memory.
    pub(super) fn ensure_document(&mut self, doc: DocId) -> &mut SyncDocument {
        self.touch_counter += 1;
        let touched = self.touch_counter;
        let outputs = &mut self.outputs;
        let document = self.docs.entry(doc).or_insert_with(|| {
            outputs.push_back(PeersOutput::Load { doc });
            Box::new(SyncDocument::new())
        });
        document.last_touch = touched;
        document
    }

    /// Sends updates about this document now, if all of it is on disk, or as soon as that's the case.
    pub(super) fn send_when_durable(&mut self, doc: DocId) {
        if self.ensure_document(doc).is_durable() {
            self.send_updates(doc);
        }
    }

    /// Handles the result of [`PeersOutput::Load`]: the document's chunks, empty if it doesn't exist, or why it can't
    /// be read. In the latter case it isn't synced until a peer reconnects.
    pub fn on_loaded(&mut self, doc: DocId, chunks: Result<Vec<Vec<u8>>, ChunksReadError>) {
        let Some(document) = self.docs.get_mut(&doc).filter(|document| document.loading) else { return };
        let late = std::mem::take(&mut document.late_changes);
        let form = chunks.map_err(SyncBytesError::from).and_then(|mut chunks| {
            if let [chunk] = chunks.as_mut_slice()
                && let Some(heads) = inflate::whole_document_heads(chunk).filter(|heads| !heads.is_empty())
            {
                return Ok(DocumentForm::Whole(std::mem::take(chunk), heads));
            }
            let doc = match chunks.is_empty() {
                true => Automerge::new_with_encoding(TEXT_ENCODING),
                false => load_automerge(&chunks.concat())?,
            };
            Ok(DocumentForm::Loaded(Box::new(doc)))
        });
        match form {
            Ok(form) => {
                (document.form, document.loading) = (form, false);
                for bytes in late {
                    self.on_changed(doc, &bytes);
                }
                self.update_heads_hash(doc);
                self.process_queue(doc);
            }
            Err(why) => self.stop_syncing(doc, &why.to_string()),
        }
    }

    /// Reports changes on disk that were made locally or received in another way. All durable changes must be reported,
    /// in any order. Repeated ones are harmless.
    pub fn on_changed(&mut self, doc: DocId, bytes: &[u8]) {
        let is_followed_anew = self.follow_changed(doc);
        let Some(document) = self.docs.get_mut(&doc) else {
            self.invalidate_heads_hash(doc);
            if self.followers.contains_key(&doc) {
                self.ensure_document(doc); // read, with these changes in it
            }
            return;
        };
        if document.loading {
            document.late_changes.push(bytes.to_vec());
            return;
        }
        let read = match document.load() {
            Ok(read) => read,
            Err(why) => return self.stop_syncing(doc, &why.to_string()),
        };
        let before = read.get_heads();
        match catch_panic(|| read.load_incremental(bytes)) {
            // Heads are compared, because the returned value is the number of operations, and a change that only
            // deletes adds none. To compare a volume, the change may have been read from disk before this call. Peers
            // that follow the document only from this call on have not been sent it yet.
            Ok(Ok(_)) if read.get_heads() == before && !is_followed_anew => {}
            Ok(Ok(_)) => {
                self.update_heads_hash(doc);
                self.process_queue(doc);
            }
            Ok(Err(_)) | Err(_) => self.reload_document(doc),
        }
    }

    /// Reports that the write of [`PeersOutput::Store`] is on disk. Returns `false` if it was dropped because the
    /// document was reloaded; then call [`SyncPeers::on_changed`] as for other writes.
    pub fn on_stored(&mut self, ticket: DiskTicket) -> bool {
        let Some(doc) = self.tickets.remove(&ticket) else { return false };
        if let Some(document) = self.docs.get_mut(&doc).filter(|document| document.ticket == Some(ticket)) {
            document.ticket = None;
            self.update_heads_hash(doc);
            self.follow_changed(doc);
            self.send_updates(doc);
            self.process_queue(doc);
        }
        true
    }

    /// Drops a document that no peer syncs, if it has a pending write. That write may never reach the disk, because the
    /// document isn't shared. If it's shared again, it's loaded again.
    pub(super) fn release_document(&mut self, doc: DocId) {
        if !self.followers.contains_key(&doc)
            && let Some(ticket) = self.docs.get(&doc).and_then(|document| document.ticket)
        {
            self.docs.remove(&doc);
            self.tickets.remove(&ticket);
        }
    }

    /// Reports that the write of [`PeersOutput::Store`] failed. The document isn't synced until a peer reconnects; on
    /// disk it's unchanged.
    pub fn on_refused(&mut self, ticket: DiskTicket, why: &str) {
        if let Some(doc) = self.tickets.remove(&ticket) {
            self.stop_syncing(doc, why);
        }
    }

    /// Removes a document that was deleted permanently. Peers that want it must follow it again.
    pub fn forget_document(&mut self, doc: DocId) {
        if let Some(ticket) = self.docs.remove(&doc).and_then(|document| document.ticket) {
            self.tickets.remove(&ticket);
        }
        for link in self.followers.remove(&doc).into_iter().flatten() {
            if let Some(peer) = self.links.get_mut(&link) {
                peer.docs.remove(&doc);
            }
        }
        self.remove_heads_hash(doc);
    }

    pub(super) fn stop_syncing(&mut self, doc: DocId, why: &str) {
        self.docs.remove(&doc);
        self.invalidate_heads_hash(doc);
        for link in self.followers.remove(&doc).into_iter().flatten() {
            if let Some(peer) = self.links.get_mut(&link) {
                peer.docs.remove(&doc);
            }
            self.outputs.push_back(PeersOutput::Refused { link, doc, why: why.to_owned() });
        }
    }

    /// Loads the document from disk again, because its state in memory can't be trusted.
    fn reload_document(&mut self, doc: DocId) {
        let Some(old) = self.docs.remove(&doc) else { return };
        if let Some(ticket) = old.ticket {
            self.tickets.remove(&ticket);
        }
        self.invalidate_heads_hash(doc);
        self.reset_sync_states(doc);
        self.ensure_document(doc).queue = old.queue;
    }

    /// Resets the sync states, because received changes that weren't on disk are lost. Peers then send them again.
    fn reset_sync_states(&mut self, doc: DocId) {
        for link in self.followers.get(&doc).into_iter().flatten() {
            let between = self.links.get_mut(link).and_then(|peer| peer.docs.get_mut(&doc));
            if let Some(DocumentSyncState { state, .. }) = between {
                (state.needs_reset, state.have_responded, state.in_flight) = (true, false, false);
            }
        }
    }

    /// Processes queued messages of this document, unless a write is pending; otherwise announces new changes.
    pub(super) fn process_queue(&mut self, doc: DocId) {
        let Some(document) = self.docs.get(&doc).filter(|document| document.is_durable()) else { return };
        let before = document.heads();
        let mut taken: Vec<LinkId> = Vec::new();
        let mut whole = None;
        while let Some(document) = self.docs.get_mut(&doc) {
            let Some((link, message, size)) = document.queue.pop_front() else { break };
            let Some(peer) = self.links.get_mut(&link) else { continue };
            peer.waiting_bytes = peer.waiting_bytes.saturating_sub(size);
            let Some(between) = peer.docs.get_mut(&doc) else { continue };
            taken.push(link);
            let sent = between.state.last_sent_heads.clone();
            if before.is_empty() && whole.is_none() {
                whole = whole_document(link, &message);
            }
            let received = match document.apply_message(&mut between.state, message) {
                Ok(received) => received,
                Err(why) => return self.stop_syncing(doc, &why.to_string()),
            };
            // A message with our heads and nothing new may follow one that brought changes. It makes automerge treat
            // those heads as already sent, but they can't be sent before they're on disk. Without this correction, the
            // peer would never learn that its changes arrived.
            let heads = document.heads();
            if heads != before && between.state.last_sent_heads == heads {
                between.state.last_sent_heads = sent;
            }
            match received {
                Ok(()) => {}
                Err(why @ MessageRefusal::Refused(_)) => self.fail_link(link, &why.to_string()),
                Err(why @ MessageRefusal::Broken(_)) => {
                    self.fail_link(link, &why.to_string());
                    // Other peers' changes in this document can't be trusted; they send them again.
                    for link in taken.into_iter().filter(|other| *other != link) {
                        self.close_link(link, "a document is read again, since what another sent broke it");
                    }
                    return self.reload_document(doc);
                }
            }
        }
        self.store_received(doc, &before, taken.last().copied(), whole);
    }

    /// Writes changes received since `before` to disk. If there are none, an answer may be due.
    ///
    /// `whole` is a received whole document. If it has the document's heads, its bytes are stored as received, and the
    /// loaded document is passed along.
    fn store_received(
        &mut self,
        doc: DocId,
        before: &[ChangeHash],
        last: Option<LinkId>,
        whole: Option<WholeDocument>,
    ) {
        let Some(document) = self.docs.get_mut(&doc) else { return };
        let heads = document.heads();
        let (Some(link), false) = (last, heads == before) else {
            return self.send_updates(doc);
        };
        // Changes that wait for their predecessors in the loaded document are stored nowhere else.
        let written = match whole.filter(|whole| whole.heads == heads && !document.has_early_changes()) {
            Some(whole) => {
                let between = self.links.get_mut(&whole.from).and_then(|peer| peer.docs.get_mut(&doc));
                if let Some(between) = between.filter(|between| between.state.their_heads.as_ref() == Some(&heads)) {
                    // The peer that sent the document has it, whatever its message said, so the answer needs no loaded
                    // document.
                    between.state.their_have = Some(vec![Have { last_sync: heads.clone(), ..Have::default() }]);
                }
                let form = std::mem::replace(&mut document.form, DocumentForm::Whole(whole.bytes.clone(), heads));
                let read = if let DocumentForm::Loaded(read) = form { Some(read) } else { None };
                Ok(ChangeParcel { bytes: whole.bytes, loaded: read })
            }
            None => document.load().and_then(|doc| catch_panic(|| doc.save_after(before))).map(ChangeParcel::from),
        };
        let Ok(parcel) = written else { return self.reload_document(doc) };
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        document.ticket = Some(ticket);
        self.tickets.insert(ticket, doc);
        self.outputs.push_back(PeersOutput::Store { doc, ticket, link, parcel });
    }

    /// Evicts idle documents, least recently used first.
    pub(super) fn evict_idle_documents(&mut self) {
        if self.docs.len() <= self.evict_at {
            return;
        }
        let resting = self.docs.iter().filter(|(_, document)| document.is_idle());
        let mut resting: Vec<(u64, DocId)> = resting.map(|(doc, document)| (document.last_touch, *doc)).collect();
        resting.sort_unstable();
        for (_, doc) in resting.iter().take(resting.len().saturating_sub(self.limits.max_resting_documents)) {
            if self.docs.remove(doc).is_some_and(|document| document.has_early_changes()) {
                self.reset_sync_states(*doc);
            }
        }
        // Documents that couldn't be evicted aren't checked again at each call.
        self.evict_at =
            (self.docs.len() + self.limits.max_resting_documents).max(self.limits.max_resting_documents * 2);
    }
}
