//! What the hub stands on: something that lasts, and a line to other replicas over the same store. Both answer by
//! calling back, from whatever thread they have. Files are kept by a third, which is asked on a thread of its own.

use std::sync::Arc;
use std::time::Duration;
use store::DocId;
use store::sync::blobs::{BlobExtent, VolumeBlob};

/// Bytes that several hold.
pub type SharedBytes = Arc<Vec<u8>>;
/// A document's chunks, or why they cannot be read.
pub type LoadedChunks = Box<dyn FnOnce(Result<Vec<Vec<u8>>, String>) + Send>;
/// What was asked for is durable, or why it will not be.
pub type StoreCallback = Box<dyn FnOnce(Result<(), StoreFailure>) + Send>;

/// Why something will not be durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFailure(pub String);

/// Keeps documents as chunks. PostgreSQL or an object store would be two more of these.
pub trait HubStore: Send + Sync {
    /// Reads all chunks of a document, none when there is no such document. What was appended before this call, here,
    /// is among them, or will be told by [`ReplicaNews::Changed`].
    fn load(&self, doc: DocId, loaded: LoadedChunks);

    /// Appends changes to a document. `done` is called once they are durable, and not before; whoever reads the
    /// document afterwards, at whichever replica, gets them.
    fn append(&self, doc: DocId, bytes: SharedBytes, done: StoreCallback);

    /// All documents, where one program alone writes them; `None`: others may write them too, and what is known of
    /// them is known to nobody.
    fn all(&self) -> Option<Vec<DocId>> {
        None
    }

    /// How many documents there are, if that is known cheaply.
    fn documents(&self) -> Option<u64>;

    /// Whether what is asked for now will be done, as far as that is known without asking; why not, in words that may
    /// be told to anybody.
    ///
    /// # Errors
    /// Nothing can be stored for now.
    fn well(&self) -> Result<(), &'static str>;

    /// Finishes what was asked for; nothing is asked for afterwards.
    fn close(&self);
}

/// Keeps what devices bring beside documents, by hash under the volume with which it was brought. Called on one
/// thread, one call at a time; none keeps more than a few pieces in memory. What cannot be done says why, and is tried
/// again.
pub trait HubFiles: Send + Sync {
    /// How much of it is here.
    ///
    /// # Errors
    /// It cannot be found out now.
    fn look(&self, item: VolumeBlob) -> Result<BlobExtent, String>;

    /// How large it is, and the piece that begins at `offset`; `None`: it is not here whole.
    ///
    /// # Errors
    /// It cannot be read now.
    fn read(&self, item: VolumeBlob, offset: u64) -> Result<Option<(u64, Vec<u8>)>, String>;

    /// Puts a piece behind what has come before; what was there beyond it goes.
    ///
    /// # Errors
    /// It is not taken, and what stands behind it neither before [`HubFiles::look`] was called again.
    fn write(&self, item: VolumeBlob, offset: u64, bytes: Vec<u8>) -> Result<(), String>;

    /// All of it has come: if it is what its name says, it is kept, and durable; if not, what has come goes. Says
    /// which.
    ///
    /// # Errors
    /// It cannot be found out now; what has come is still there then.
    fn finish(&self, item: VolumeBlob) -> Result<bool, String>;

    /// Removes what nobody has brought more of for so long.
    fn remove_old(&self, age: Duration);

    /// The hub is ending: what is under way is given up, as soon as that is possible.
    fn close(&self);
}

/// All that a hub stands on.
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
    Brought {
        /// The attachment that arrived.
        item: VolumeBlob,
        /// Size in bytes.
        size: u64,
    },
    /// A file that was whole is not any more: the store has lost of it.
    Lost {
        /// The attachment that was lost.
        item: VolumeBlob,
    },
    /// An ephemeral message, as it came off the wire at another replica.
    Said(SharedBytes),
    /// The list of devices, an automerge document.
    Devices(SharedBytes),
}

/// Tells other replicas. Changes need not be told by it: a store that several share tells of them by itself.
pub trait HubBus: Send + Sync {
    /// Tells the others, soon, at best effort: all that must not be lost is in the store.
    fn tell(&self, news: ReplicaNews);

    /// Calls back once all is told here that any replica acknowledged before this call. Late, or never, where the
    /// others cannot be heard.
    fn catch_up(&self, done: Box<dyn FnOnce() + Send>);
}

/// There is no other replica.
#[derive(Debug)]
pub(crate) struct SingleReplica;

impl HubBus for SingleReplica {
    fn tell(&self, _news: ReplicaNews) {}

    fn catch_up(&self, done: Box<dyn FnOnce() + Send>) {
        done();
    }
}
