//! The documents in memory: read when they are needed, changed by peers and by what is durable, let go when they rest.

use super::{Link, Output, Peers, Ticket, guarded};
use crate::id::DocId;
use crate::schema::ENCODING;
use automerge::sync::{self, SyncDoc};
use automerge::{Automerge, LoadOptions};
use std::collections::VecDeque;

/// A document in memory. It is never written to here.
pub(super) struct Document {
    pub(super) doc: Automerge,
    /// Whether it is still being read.
    loading: bool,
    /// What of it is on its way to the disk.
    ticket: Option<Ticket>,
    /// Messages that wait: from whom, what, how many bytes.
    pub(super) queue: VecDeque<(Link, sync::Message, usize)>,
    /// Changes that became durable while it was being read.
    late: Vec<Vec<u8>>,
    touched: u64,
}

impl Document {
    fn new() -> Document {
        Document {
            doc: Automerge::new_with_encoding(ENCODING),
            loading: true,
            ticket: None,
            queue: VecDeque::new(),
            late: Vec::new(),
            touched: 0,
        }
    }

    /// Whether all of it is on disk.
    pub(super) fn may_be_told(&self) -> bool {
        !self.loading && self.ticket.is_none()
    }

    fn is_resting(&self) -> bool {
        self.may_be_told() && self.queue.is_empty()
    }
}

impl Peers {
    /// The document, which is read if it is not here.
    pub(super) fn document(&mut self, doc: DocId) -> &mut Document {
        self.touches += 1;
        let touched = self.touches;
        let outputs = &mut self.outputs;
        let document = self.docs.entry(doc).or_insert_with(|| {
            outputs.push_back(Output::Load { doc });
            Box::new(Document::new())
        });
        document.touched = touched;
        document
    }

    /// Something is to be said about this document, as soon as that can be.
    pub(super) fn need(&mut self, doc: DocId) {
        if self.document(doc).may_be_told() {
            self.tell(doc);
        }
    }

    /// The answer to [`Output::Load`]: the document's chunks, none when there is no such document; or why it cannot be
    /// read, and then it is not synced until somebody connects anew.
    pub fn loaded(&mut self, doc: DocId, chunks: Result<Vec<Vec<u8>>, String>) {
        let Some(document) = self.docs.get_mut(&doc).filter(|document| document.loading) else { return };
        let late = std::mem::take(&mut document.late);
        let read = chunks.and_then(|chunks| {
            if chunks.is_empty() {
                return Ok(Automerge::new_with_encoding(ENCODING));
            }
            let options = LoadOptions::new().text_encoding(ENCODING);
            let read = guarded(|| Automerge::load_with_options(&chunks.concat(), options))?;
            read.map_err(|error| error.to_string())
        });
        match read {
            Ok(read) => {
                (document.doc, document.loading) = (read, false);
                for bytes in late {
                    self.changed(doc, &bytes);
                }
                self.note_print(doc);
                self.step(doc);
            }
            Err(why) => self.give_up(doc, &why),
        }
    }

    /// Changes of ours are on disk (or somebody else's, by another way). All that is durable has to be told of, in any
    /// order; what is known already does no harm.
    pub fn changed(&mut self, doc: DocId, bytes: &[u8]) {
        self.draw_in(doc);
        let Some(document) = self.docs.get_mut(&doc) else {
            self.forget_print(doc);
            if self.followers.contains_key(&doc) {
                self.document(doc); // read, with these changes in it
            }
            return;
        };
        if document.loading {
            document.late.push(bytes.to_vec());
            return;
        }
        match guarded(|| document.doc.load_incremental(bytes)) {
            Ok(Ok(0)) => {}
            Ok(Ok(_)) => {
                self.note_print(doc);
                self.step(doc);
            }
            Ok(Err(_)) | Err(_) => self.again(doc),
        }
    }

    /// What [`Output::Store`] asked for is on disk.
    pub fn stored(&mut self, ticket: Ticket) {
        let Some(doc) = self.tickets.remove(&ticket) else { return };
        if let Some(document) = self.docs.get_mut(&doc).filter(|document| document.ticket == Some(ticket)) {
            document.ticket = None;
            self.note_print(doc);
            self.draw_in(doc);
            self.tell(doc);
            self.step(doc);
        }
    }

    /// What [`Output::Store`] asked for will not be on disk. The document is not synced any more until somebody
    /// connects anew; on disk it is as it was.
    pub fn refused(&mut self, ticket: Ticket, why: &str) {
        if let Some(doc) = self.tickets.remove(&ticket) {
            self.give_up(doc, why);
        }
    }

    /// The document is not on disk any more: it was deleted for good. Whoever wants it again follows it again.
    pub fn forget(&mut self, doc: DocId) {
        if let Some(ticket) = self.docs.remove(&doc).and_then(|document| document.ticket) {
            self.tickets.remove(&ticket);
        }
        for link in self.followers.remove(&doc).into_iter().flatten() {
            if let Some(peer) = self.links.get_mut(&link) {
                peer.docs.remove(&doc);
            }
        }
        self.drop_print(doc);
    }

    fn give_up(&mut self, doc: DocId, why: &str) {
        self.docs.remove(&doc);
        self.forget_print(doc);
        for link in self.followers.remove(&doc).into_iter().flatten() {
            if let Some(peer) = self.links.get_mut(&link) {
                peer.docs.remove(&doc);
            }
            self.outputs.push_back(Output::Refused { link, doc, why: why.to_owned() });
        }
    }

    /// Reads the document again: what is in memory is not to be trusted.
    fn again(&mut self, doc: DocId) {
        let Some(old) = self.docs.remove(&doc) else { return };
        if let Some(ticket) = old.ticket {
            self.tickets.remove(&ticket);
        }
        self.forget_print(doc);
        self.document(doc).queue = old.queue;
    }

    /// Takes what waits for this document, unless something of it is on its way to the disk; else tells what is new.
    pub(super) fn step(&mut self, doc: DocId) {
        let Some(document) = self.docs.get(&doc).filter(|document| document.may_be_told()) else { return };
        let before = document.doc.get_heads();
        let mut taken: Vec<Link> = Vec::new();
        while let Some(document) = self.docs.get_mut(&doc) {
            let Some((link, message, size)) = document.queue.pop_front() else { break };
            let Some(peer) = self.links.get_mut(&link) else { continue };
            peer.waiting = peer.waiting.saturating_sub(size);
            let Some(between) = peer.docs.get_mut(&doc) else { continue };
            taken.push(link);
            let sent = between.state.last_sent_heads.clone();
            let received = guarded(|| document.doc.receive_sync_message(&mut between.state, message));
            // A message behind one that brought changes, with our heads and nothing new, makes automerge take those
            // heads for said. They are not, before they are on disk; unsaid, the peer would never hear that we have
            // what it sent.
            let heads = document.doc.get_heads();
            if heads != before && between.state.last_sent_heads == heads {
                between.state.last_sent_heads = sent;
            }
            match received {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail(link, &format!("changes that cannot be taken: {error}")),
                Err(why) => {
                    self.fail(link, &why);
                    // What the others sent is not to be trusted in this document any more; they send it again.
                    for link in taken.into_iter().filter(|other| *other != link) {
                        self.close(link, "a document is read again, since what another sent broke it");
                    }
                    return self.again(doc);
                }
            }
        }
        self.settle(doc, &before, taken.last().copied());
    }

    /// What came into the document since `before` goes to the disk; if nothing did, there may be an answer to give.
    fn settle(&mut self, doc: DocId, before: &[automerge::ChangeHash], last: Option<Link>) {
        let Some(document) = self.docs.get_mut(&doc) else { return };
        let (Some(link), false) = (last, document.doc.get_heads() == before) else {
            return self.tell(doc);
        };
        let Ok(bytes) = guarded(|| document.doc.save_after(before)) else { return self.again(doc) };
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        document.ticket = Some(ticket);
        self.tickets.insert(ticket, doc);
        self.outputs.push_back(Output::Store { doc, ticket, link, bytes });
    }

    /// Lets documents go that nothing is under way for, those first that were needed least lately.
    pub(super) fn rest(&mut self) {
        if self.docs.len() <= self.rest_at {
            return;
        }
        let resting = self.docs.iter().filter(|(_, document)| document.is_resting());
        let mut resting: Vec<(u64, DocId)> = resting.map(|(doc, document)| (document.touched, *doc)).collect();
        resting.sort_unstable();
        for (_, doc) in resting.iter().take(resting.len().saturating_sub(self.limits.resting)) {
            self.docs.remove(doc);
        }
        // What could not go now is not looked at again with each call.
        self.rest_at = (self.docs.len() + self.limits.resting).max(self.limits.resting * 2);
    }
}
