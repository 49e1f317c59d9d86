//! Storage of the hub: a durable store, and a bus to other replicas over the same store. Both answer by callbacks, from
//! any thread. A third component stores files, and is called on its own thread.

use crate::HubFilesError;
use std::sync::Arc;
use std::time::Duration;
use store::DocId;
use store::sync::ChunksReadError;
use store::sync::blobs::{BlobExtent, VolumeBlob};

/// Bytes that several hold.
pub type SharedBytes = Arc<Vec<u8>>;
/// A document's chunks, or why they cannot be read.
pub type LoadedChunks = Box<dyn FnOnce(Result<Vec<Vec<u8>>, ChunksReadError>) + Send>;
/// Called when a request is durable, or with the reason why it won't be.
pub type StoreCallback = Box<dyn FnOnce(Result<(), StoreFailure>) + Send>;

/// Why something will not be durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFailure(pub String);

/// Keeps documents as chunks. PostgreSQL or an object store would be two more of these.
pub trait HubStore: Send + Sync {
    /// Loads all chunks of a document, none if it doesn't exist. Changes appended here before this call are included,
    /// or are reported by [`ReplicaNews::Changed`].
    fn load(&self, doc: DocId, loaded: LoadedChunks);

    /// Appends changes to a document. `done` is called once they're durable; later loads at any replica include them.
    fn append(&self, doc: DocId, bytes: SharedBytes, done: StoreCallback);

    /// Returns all documents if a single program writes them; `None` if others may write them too.
    fn list_documents(&self) -> Option<Vec<DocId>> {
        None
    }

    /// How many documents there are, if that is known cheaply.
    fn document_count(&self) -> Option<u64>;

    /// Whether requests can succeed now, as far as known; if not, the reason, which may be sent to anyone.
    ///
    /// # Errors
    /// Nothing can be stored for now.
    fn check_health(&self) -> Result<(), &'static str>;

    /// Finishes pending requests; no more follow.
    fn close(&self);
}

/// Stores blobs by hash under the volume that they were sent for. Called on one thread, one call at a time; keeps only
/// a few pieces in memory. Failures return a reason and are retried.
pub trait HubFiles: Send + Sync {
    /// How much of it is here.
    ///
    /// # Errors
    /// It cannot be found out now.
    fn blob_extent(&self, item: VolumeBlob) -> Result<BlobExtent, HubFilesError>;

    /// How large it is, and the piece that begins at `offset`; `None`: it is not here whole.
    ///
    /// # Errors
    /// It cannot be read now.
    fn read_piece(&self, item: VolumeBlob, offset: u64) -> Result<Option<(u64, Vec<u8>)>, HubFilesError>;

    /// Puts a piece behind what has come before; what was there beyond it goes.
    ///
    /// # Errors
    /// It is not taken, and what stands behind it neither before [`HubFiles::blob_extent`] was called again.
    fn write_piece(&self, item: VolumeBlob, offset: u64, bytes: Vec<u8>) -> Result<(), HubFilesError>;

    /// All of it has come: if it is what its name says, it is kept, and durable; if not, what has come goes. Says
    /// which.
    ///
    /// # Errors
    /// It cannot be found out now; what has come is still there then.
    fn finish_blob(&self, item: VolumeBlob) -> Result<bool, HubFilesError>;

    /// Removes incomplete files without new data for this long.
    fn remove_stale_blobs(&self, age: Duration);

    /// The hub is ending: pending work is canceled as soon as possible.
    fn close(&self);
}

/// All storage of a hub.
pub(crate) type HubStorage = (Arc<dyn HubStore>, Arc<dyn HubFiles>, Arc<dyn HubBus>);

/// What replicas tell each other.
#[derive(Clone, Debug)]
pub enum ReplicaNews {
    /// Changes of a document that another replica has stored. Known ones may come again.
    Changed {
        /// The document that changed.
        doc: DocId,
        /// The new chunk.
        bytes: SharedBytes,
    },
    /// Another replica has taken a file, whole.
    BlobAdded {
        /// The attachment that arrived.
        item: VolumeBlob,
        /// Size in bytes.
        size: u64,
    },
    /// A complete file was damaged: the store has lost part of it.
    BlobLost {
        /// The attachment that was lost.
        item: VolumeBlob,
    },
    /// An ephemeral message, as it came off the wire at another replica.
    Ephemeral(SharedBytes),
    /// The list of devices, an automerge document.
    Devices(SharedBytes),
}

/// Sends news to other replicas. Changes needn't be sent: a shared store reports them itself.
pub trait HubBus: Send + Sync {
    /// Sends news soon, at best effort: everything important is in the store.
    fn announce(&self, news: ReplicaNews);

    /// Calls back once everything that any replica acknowledged before this call is known here. Late, or never, if the
    /// others are unreachable.
    fn notify_when_caught_up(&self, done: Box<dyn FnOnce() + Send>);
}

/// A hub without other replicas.
#[derive(Debug)]
pub(crate) struct SingleReplica;

impl HubBus for SingleReplica {
    fn announce(&self, _news: ReplicaNews) {}

    fn notify_when_caught_up(&self, done: Box<dyn FnOnce() + Send>) {
        done();
    }
}
