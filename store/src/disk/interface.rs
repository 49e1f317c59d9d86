//! The interface of a disk: rows to write, rows as they are read, and the two traits that each disk implements.

use crate::disk::error::DiskError;
use crate::id::{BlobHash, BlockId, DocId};
use crate::note::Block;
use crate::volume::FileKind;
use serde::{Deserialize, Serialize};

/// One row to write. A commit takes a list of them, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowWrite {
    /// One edit in the journal ([`crate::Record::encode`]).
    Journal {
        /// Sequence number, increasing over the whole workspace. The commit fails if this or a higher number was used
        /// before.
        seq: u64,
        /// The note that was edited.
        note: DocId,
        /// The encoded [`JournalRecord`](crate::JournalRecord).
        record: Vec<u8>,
    },
    /// The note's journal records up to a number are now part of a change.
    JournalDone {
        /// The note whose records are now part of its document.
        note: DocId,
        /// The last record that's included.
        upto: u64,
    },
    /// One increment of a document.
    Chunk {
        /// The document that the chunk belongs to.
        doc: DocId,
        /// The bytes of one or more changes.
        bytes: Vec<u8>,
    },
    /// The whole document, replacing all its chunks up to number `covers`. A later [`RowWrite::DropChunks`] removes
    /// these chunks, once this snapshot is durable. The commit fails if no chunk has the number `covers` yet.
    Snapshot {
        /// The document that's replaced by its snapshot.
        doc: DocId,
        /// The whole document as automerge saves it.
        bytes: Vec<u8>,
        /// The highest chunk number that it contains.
        covers: i64,
    },
    /// Removes chunks that a durable snapshot contains. The commit fails if there's no intact snapshot from an earlier
    /// commit.
    DropChunks {
        /// The document whose chunks are deleted.
        doc: DocId,
        /// The last chunk number that's deleted.
        upto: i64,
    },
    /// A materialized block; an empty text removes the row.
    Block {
        /// The note that holds the block.
        note: DocId,
        /// The block with its current text.
        block: Block,
    },
    /// A small value that belongs to this device, such as a setting; `None` removes it.
    Meta {
        /// Key of the value; unique in the workspace.
        key: String,
        /// The new value; `None` deletes it.
        value: Option<Vec<u8>>,
    },
    /// Metadata of a file in a volume.
    File(FileRow),
    /// The file no longer exists.
    RemoveFile {
        /// The volume that held the file.
        volume: DocId,
        /// The file's path relative to the volume's root.
        path: String,
    },
    /// Whether the note's document is ahead of its file.
    NoteAhead {
        /// The note whose flag is set.
        note: DocId,
        /// Whether the document has changes that its file doesn't have yet.
        ahead: bool,
    },
    /// An actor that this process writes under. It's recorded before any of its changes is sent to others.
    Actor {
        /// Bytes of the actor's id.
        actor: Vec<u8>,
        /// When it was first used, in milliseconds since 1970.
        at: i64,
    },
    /// Moves an unreadable chunk out of its document and keeps its bytes. Does nothing if the chunk doesn't exist.
    QuarantineChunk {
        /// The document that the damaged chunk belongs to.
        doc: DocId,
        /// Sequence number of the chunk.
        seq: i64,
        /// Why the chunk can't be read.
        why: String,
        /// When it was found, in milliseconds since 1970.
        at: i64,
    },
    /// Moves a note's records from this number on out of the journal and keeps their bytes: the ones that
    /// [`DiskReader::first_broken_record`] names. The first record that a process writes to a note does this implicitly
    /// (with time 0), because that record couldn't be read otherwise.
    QuarantineJournal {
        /// The note whose records are moved.
        note: DocId,
        /// The first record that's moved.
        from: u64,
        /// Why the first of them can't be read.
        why: String,
        /// When it was found, in milliseconds since 1970.
        at: i64,
    },
    /// Removes a document's chunks, blocks and journal records, for content that a user deletes permanently. Blobs
    /// stay, since other documents may use the same bytes.
    DeleteDocument {
        /// The document that's deleted with its chunks and blocks.
        doc: DocId,
    },
}

/// Metadata of a file in a volume, sufficient to detect that it hasn't changed without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// The volume that holds the file.
    pub volume: DocId,
    /// Path in its volume.
    pub path: String,
    /// Id of the file and of its document.
    pub id: DocId,
    /// Kind of file: note, collection, script or attachment.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub mtime: i64,
    /// Hash of the bytes when the file and the note last agreed.
    pub hash: BlobHash,
    /// Number of blocks in a note with these bytes.
    pub blocks: u32,
    /// Number of Python cells among them.
    pub cells: u32,
    /// The note document's heads when it and the file last agreed, 32 bytes each. Empty while the note was never
    /// edited.
    pub heads: Vec<[u8; 32]>,
}

impl FileRow {
    /// Returns the row of a file that isn't on disk yet.
    pub fn of_unwritten(volume: DocId, path: String, id: DocId, kind: FileKind) -> FileRow {
        let (hash, heads) = (BlobHash::of(b""), Vec::new());
        FileRow { volume, path, id, kind, size: 0, mtime: 0, hash, blocks: 0, cells: 0, heads }
    }
}

/// One stored chunk of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChunk {
    /// Sequence number, increasing over the whole workspace.
    pub seq: i64,
    /// Whether it contains the whole document.
    pub snapshot: bool,
    /// The automerge bytes: a snapshot or changes.
    pub bytes: Vec<u8>,
    /// Whether the bytes match their stored checksum.
    pub intact: bool,
}

/// A damaged row in quarantine, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedRow {
    /// The table that it came from.
    pub source: String,
    /// Its key in that table: document and number.
    pub key: String,
    /// The unchanged bytes.
    pub bytes: Vec<u8>,
    /// Why it was quarantined.
    pub why: String,
    /// When it was quarantined, in milliseconds since 1970.
    pub at: i64,
}

/// Read access to a disk. Several threads can read, each with its own reader, while one writes.
pub trait DiskReader: Send {
    /// Returns a small value of this device.
    ///
    /// # Errors
    /// Any [`DiskError`], here and below.
    fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError>;
    /// Returns all small values whose keys start with a prefix, sorted by key, without damaged ones.
    fn metas_with_prefix(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, DiskError>;
    /// Returns a document's chunks: the newest intact snapshot first, then chunks that it doesn't contain.
    fn chunks(&self, doc: DocId) -> Result<Vec<DocumentChunk>, DiskError>;
    /// Returns all documents that have chunks.
    fn document_ids(&self) -> Result<Vec<DocId>, DiskError>;
    /// Returns all documents that have chunks, each with the number of its last chunk.
    fn last_chunk_numbers(&self) -> Result<Vec<(DocId, i64)>, DiskError>;
    /// Returns a note's materialized blocks, sorted, and the ids of blocks with a wrong checksum, which the list omits.
    fn blocks(&self, note: DocId) -> Result<(Vec<Block>, Vec<BlockId>), DiskError>;
    /// Returns a note's journal records that aren't yet part of a change, oldest first. Stops before a record that is
    /// damaged or whose predecessor is lost.
    fn journal_records(&self, note: DocId) -> Result<Vec<(u64, Vec<u8>)>, DiskError>;
    /// Returns the number of the record that [`DiskReader::journal_records`] stops before. Records from there on can't
    /// be applied; see [`RowWrite::QuarantineJournal`].
    fn first_broken_record(&self, note: DocId) -> Result<Option<u64>, DiskError>;
    /// Returns the notes that have journal records or whose text is ahead of their file.
    fn unfinished_notes(&self) -> Result<Vec<DocId>, DiskError>;
    /// Returns the highest journal number ever used.
    fn last_journal_seq(&self) -> Result<u64, DiskError>;
    /// Returns the rows of a volume's files, sorted by path, without damaged ones.
    fn file_rows(&self, volume: DocId) -> Result<Vec<FileRow>, DiskError>;
    /// Returns a file's row; `None` if it's missing or damaged.
    fn file_row(&self, volume: DocId, path: &str) -> Result<Option<FileRow>, DiskError>;
    /// Returns the recorded actors, each with the time of its first use.
    fn actors(&self) -> Result<Vec<(Vec<u8>, i64)>, DiskError>;
    /// Returns the quarantined rows, oldest first.
    fn quarantined_rows(&self) -> Result<Vec<QuarantinedRow>, DiskError>;
    /// Reads a blob and checks its bytes against its hash.
    fn read_blob(&self, hash: BlobHash) -> Result<Vec<u8>, DiskError>;
}

/// Write access to a disk, exclusive to one owner.
pub trait Disk: Send {
    /// Makes all `writes` durable, or none of them. Returns the numbers of the chunks and snapshots among them, in
    /// order. The `covers` of a later snapshot is such a number.
    ///
    /// # Errors
    /// Any [`DiskError`]. The state is unchanged then, and the same commit can be tried again.
    fn commit(&mut self, writes: &[RowWrite]) -> Result<Vec<i64>, DiskError>;
    /// Stores bytes under their hash, durably. Storing an existing blob does nothing.
    ///
    /// # Errors
    /// Any [`DiskError`].
    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash, DiskError>;
    /// Opens another reader.
    ///
    /// # Errors
    /// Any [`DiskError`].
    fn open_reader(&self) -> Result<Box<dyn DiskReader>, DiskError>;
    /// Does housekeeping that would slow down a keystroke (a checkpoint). Called when nothing needs to be written for a
    /// while.
    fn run_idle_tasks(&mut self);
}
