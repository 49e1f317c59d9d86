//! Storage interfaces of the hub: a durable store, and a bus to other replicas over the same store. Both answer by
//! callbacks, from any thread. A third interface stores files, and is called on its own thread.

use crate::error::HubFilesError;
use std::sync::Arc;
use std::time::Duration;
use store::DocId;
use store::sync::ChunksReadError;
use store::sync::blobs::{BlobExtent, VolumeBlob};

/// Shared bytes with several owners.
pub type SharedBytes = Arc<Vec<u8>>;
/// Called with a document's chunks, or with the reason why they can't be read.
pub type LoadedChunks = Box<dyn FnOnce(Result<Vec<Vec<u8>>, ChunksReadError>) + Send>;
/// Called when a request is durable, or with the reason why it won't be.
pub type StoreCallback = Box<dyn FnOnce(Result<(), StoreFailure>) + Send>;

/// Reason why something won't become durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFailure(pub String);

/// Stores documents as chunks. PostgreSQL or an object store could be further implementations.
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

    /// Returns the number of documents; `None` if it isn't known cheaply.
    fn document_count(&self) -> Option<u64>;

    /// Checks whether requests can succeed now, as far as known.
    ///
    /// # Errors
    /// Returns the reason if nothing can be stored for now. It may be sent to anyone.
    fn check_health(&self) -> Result<(), &'static str>;

    /// Finishes pending requests; no more follow.
    fn close(&self);
}

/// Stores blobs by hash under the volume that they were sent for. Called on one thread, one call at a time; keeps only
/// a few pieces in memory. Failures return a reason and are retried.
pub trait HubFiles: Send + Sync {
    /// Returns how much of a blob is stored.
    ///
    /// # Errors
    /// Returns an error if it can't be determined now.
    fn blob_extent(&self, item: VolumeBlob) -> Result<BlobExtent, HubFilesError>;

    /// Returns a blob's size and the piece that starts at `offset`; `None`: the blob isn't complete here.
    ///
    /// # Errors
    /// Returns an error if it can't be read now.
    fn read_piece(&self, item: VolumeBlob, offset: u64) -> Result<Option<(u64, Vec<u8>)>, HubFilesError>;

    /// Writes a piece after the ones received before; anything stored beyond `offset` is dropped.
    ///
    /// # Errors
    /// Returns an error if the piece isn't stored. Later pieces fail too until [`HubFiles::blob_extent`] is called
    /// again.
    fn write_piece(&self, item: VolumeBlob, offset: u64, bytes: Vec<u8>) -> Result<(), HubFilesError>;

    /// Checks a blob whose pieces have all arrived. If they match its hash, the blob is stored durably; otherwise the
    /// pieces are dropped. Returns whether they matched. `is_state`: it came as the file of a kernel's state only, so
    /// [`HubFiles::remove_state_file`] may remove it.
    ///
    /// # Errors
    /// Returns an error if it can't be checked now; the pieces are kept then.
    fn finish_blob(&self, item: VolumeBlob, is_state: bool) -> Result<bool, HubFilesError>;

    /// Keeps a complete blob that came as the file of a state as an attachment, which is never removed. Any other blob
    /// stays as it is.
    ///
    /// # Errors
    /// Returns an error if that can't be stored now.
    fn keep_blob(&self, item: VolumeBlob) -> Result<(), HubFilesError>;

    /// Removes a complete blob that came as the file of a state only, and returns whether there was one. Any other blob
    /// stays.
    ///
    /// # Errors
    /// Returns an error if it can't be removed now.
    fn remove_state_file(&self, item: VolumeBlob) -> Result<bool, HubFilesError>;

    /// Removes incomplete files without new data for this long.
    fn remove_stale_blobs(&self, age: Duration);

    /// Cancels pending work as soon as possible, since the hub is ending.
    fn close(&self);
}

/// The store, the blob store and the bus of a hub.
pub(crate) type HubStorage = (Arc<dyn HubStore>, Arc<dyn HubFiles>, Arc<dyn HubBus>);

/// News that replicas send each other.
#[derive(Clone, Debug)]
pub enum ReplicaNews {
    /// Another replica has stored changes of a document. Known ones may be repeated.
    Changed {
        /// The document that changed.
        doc: DocId,
        /// The new chunk.
        bytes: SharedBytes,
    },
    /// Another replica has stored a complete blob.
    BlobAdded {
        /// The blob that was stored.
        item: VolumeBlob,
        /// Size in bytes.
        size: u64,
    },
    /// A complete blob is damaged: the store has lost part of it.
    BlobLost {
        /// The blob that was lost.
        item: VolumeBlob,
    },
    /// An ephemeral message, as another replica received it.
    Ephemeral(SharedBytes),
    /// The list of devices, an automerge document.
    Devices(SharedBytes),
}

/// Sends news to other replicas. Changes needn't be sent: a shared store reports them itself.
pub trait HubBus: Send + Sync {
    /// Sends news soon, at best effort: everything important is in the store.
    fn announce(&self, news: ReplicaNews);

    /// Calls back once this replica knows everything that any replica acknowledged before this call. The callback comes
    /// late, or never, if the others are unreachable.
    fn notify_when_caught_up(&self, done: Box<dyn FnOnce() + Send>);
}

/// Bus of a hub without other replicas.
#[derive(Debug)]
pub(crate) struct SingleReplica;

impl HubBus for SingleReplica {
    fn announce(&self, _news: ReplicaNews) {}

    fn notify_when_caught_up(&self, done: Box<dyn FnOnce() + Send>) {
        done();
    }
}
