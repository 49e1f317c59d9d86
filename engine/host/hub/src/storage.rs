//! What the hub stands on: something that lasts, and a line to other replicas over the same store. Both answer by
//! calling back, from whatever thread they have.

use std::sync::Arc;
use store::DocId;

/// Bytes that several hold.
pub type Bytes = Arc<Vec<u8>>;
/// A document's chunks, or why they cannot be read.
pub type Loaded = Box<dyn FnOnce(Result<Vec<Vec<u8>>, String>) + Send>;
/// What was asked for is durable, or why it will not be.
pub type Done = Box<dyn FnOnce(Result<(), Failed>) + Send>;

/// Why something will not be durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// Keeps documents as chunks. PostgreSQL or an object store would be two more of these.
pub trait HubStore: Send + Sync {
    /// Reads all chunks of a document, none when there is no such document. What was appended before this call, here,
    /// is among them, or will be told by [`News::Changed`].
    fn load(&self, doc: DocId, loaded: Loaded);

    /// Appends changes to a document. `done` is called once they are durable, and not before; whoever reads the
    /// document afterwards, at whichever replica, gets them.
    fn append(&self, doc: DocId, bytes: Bytes, done: Done);

    /// All documents, where one program alone writes them; `None`: others may write them too, and what is known of
    /// them is known to nobody.
    fn all(&self) -> Option<Vec<DocId>> {
        None
    }

    /// How many documents there are, if that is known cheaply.
    fn documents(&self) -> Option<u64>;

    /// Finishes what was asked for; nothing is asked for afterwards.
    fn close(&self);
}

/// What replicas tell each other.
#[derive(Clone, Debug)]
pub enum News {
    /// Changes of a document that another replica has stored. Known ones may come again.
    Changed {
        /// Which.
        doc: DocId,
        /// A chunk.
        bytes: Bytes,
    },
    /// An ephemeral message, as it came off the wire at another replica.
    Said(Bytes),
    /// The list of devices, an automerge document.
    Devices(Bytes),
}

/// Tells other replicas. Changes need not be told by it: a store that several share tells of them by itself.
pub trait HubBus: Send + Sync {
    /// Tells the others, soon, at best effort: all that must not be lost is in the store.
    fn tell(&self, news: News);
}

/// There is no other replica.
#[derive(Debug)]
pub(crate) struct Alone;

impl HubBus for Alone {
    fn tell(&self, _news: News) {}
}
