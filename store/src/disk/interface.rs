//! What a disk is given and gives: rows to write, rows as they are read, and the two traits that each kind of disk has.

use crate::disk::error::DiskError;
use crate::id::{BlobHash, BlockId, DocId};
use crate::note::Block;
use crate::volume::FileKind;
use serde::{Deserialize, Serialize};

/// One row to write. A commit takes a list of them, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowWrite {
    /// A keystroke's record ([`crate::Record::encode`]).
    Journal {
        /// Its number, rising over the workspace. The commit fails when it, or a higher one, was given before.
        seq: u64,
        /// The note that was edited.
        note: DocId,
        /// The encoded [`JournalRecord`](crate::JournalRecord).
        record: Vec<u8>,
    },
    /// The note's records up to this number are part of a change now.
    JournalDone {
        /// The note whose records are now part of its document.
        note: DocId,
        /// Up to and including.
        upto: u64,
    },
    /// One increment of a document.
    Chunk {
        /// The document that the chunk belongs to.
        doc: DocId,
        /// The bytes of one or more changes.
        bytes: Vec<u8>,
    },
    /// The whole document, standing for all its chunks up to number `covers`. The chunks go by a later
    /// [`RowWrite::DropChunks`], once this is durable. The commit fails when `covers` was not given to a chunk yet.
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
        /// Up to and including this chunk number.
        upto: i64,
    },
    /// A materialised block; an empty text removes the row.
    Block {
        /// The note that holds the block.
        note: DocId,
        /// The block with its current text.
        block: Block,
    },
    /// A small value of this device, such as settings; `None` removes it.
    Meta {
        /// Key of the value; unique in the workspace.
        key: String,
        /// The new value; `None` deletes it.
        value: Option<Vec<u8>>,
    },
    /// Metadata of a file in a volume.
    File(FileRow),
    /// The file is gone.
    RemoveFile {
        /// The volume that held the file.
        volume: DocId,
        /// The file's path relative to the volume's root.
        path: String,
    },
    /// The note's text is ahead of its file (or no longer).
    NoteAhead {
        /// The note whose flag is set.
        note: DocId,
        /// Whether the document has changes that its file doesn't have yet.
        ahead: bool,
    },
    /// An actor that this process writes under, recorded before anything of it is sent anywhere.
    Actor {
        /// Bytes of the actor's id.
        actor: Vec<u8>,
        /// When it was first used, in milliseconds since 1970.
        at: i64,
    },
    /// Moves a chunk that cannot be read out of its document, bytes kept. Without such a chunk it does nothing.
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
        /// From this number on.
        from: u64,
        /// Why the first of them can't be read.
        why: String,
        /// When it was found, in milliseconds since 1970.
        at: i64,
    },
    /// Removes all that is kept of a document: chunks, blocks, records. For what a user deletes for good; blobs stay,
    /// since others may hold the same bytes.
    DeleteDocument {
        /// The document that's deleted with its chunks and blocks.
        doc: DocId,
    },
}

/// Metadata of a file in a volume, enough to tell without reading it that it hasn't changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// The volume that holds the file.
    pub volume: DocId,
    /// Its path inside the volume.
    pub path: String,
    /// Its id (and its document's).
    pub id: DocId,
    /// Kind of file: note, collection, script or attachment.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime: i64,
    /// Hash of the bytes that file and note agreed on last.
    pub hash: BlobHash,
    /// Blocks that a note of these bytes has.
    pub blocks: u32,
    /// Python cells among them.
    pub cells: u32,
    /// The note document's heads when they agreed, 32 bytes each; empty while the note was never edited.
    pub heads: Vec<[u8; 32]>,
}

/// One stored chunk of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentChunk {
    /// Its number, rising over the workspace.
    pub seq: i64,
    /// Whether it is a whole document.
    pub snapshot: bool,
    /// The automerge bytes: a snapshot or changes.
    pub bytes: Vec<u8>,
    /// Whether the bytes have the sum that was stored with them.
    pub intact: bool,
}

/// A damaged row that was set aside, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedRow {
    /// The table that it stood in.
    pub source: String,
    /// Its key there: document and number.
    pub key: String,
    /// Its bytes as they are.
    pub bytes: Vec<u8>,
    /// Why it was set aside.
    pub why: String,
    /// When, milliseconds since 1970.
    pub at: i64,
}

/// Read access. Several threads may read, each with its own reader, while one writes.
pub trait DiskReader: Send {
    /// A small value of this device.
    ///
    /// # Errors
    /// Any [`DiskError`], here and below.
    fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError>;
    /// All small values whose names begin so, by name; without those that are damaged.
    fn metas_with_prefix(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, DiskError>;
    /// Returns a document's chunks: the newest intact snapshot first, then chunks that it doesn't contain.
    fn chunks(&self, doc: DocId) -> Result<Vec<DocumentChunk>, DiskError>;
    /// All documents that have chunks.
    fn document_ids(&self) -> Result<Vec<DocId>, DiskError>;
    /// All documents that have chunks, each with the number of its last one.
    fn last_chunk_numbers(&self) -> Result<Vec<(DocId, i64)>, DiskError>;
    /// A note's materialised blocks, sorted, and the ids of rows whose sum does not hold (left out of the list).
    fn blocks(&self, note: DocId) -> Result<(Vec<Block>, Vec<BlockId>), DiskError>;
    /// A note's journal records that are not yet part of a change, oldest first. Ends before a record that is damaged
    /// or whose predecessor is lost.
    fn journal_records(&self, note: DocId) -> Result<Vec<(u64, Vec<u8>)>, DiskError>;
    /// Returns the number of the record that [`DiskReader::journal_records`] stops before. Records from there on can't
    /// be applied; see [`RowWrite::QuarantineJournal`].
    fn first_broken_record(&self, note: DocId) -> Result<Option<u64>, DiskError>;
    /// Notes with journal records or whose text is ahead of their file.
    fn unfinished_notes(&self) -> Result<Vec<DocId>, DiskError>;
    /// The highest journal number ever given.
    fn last_journal_seq(&self) -> Result<u64, DiskError>;
    /// Returns the rows of a volume's files, sorted by path, without damaged ones.
    fn file_rows(&self, volume: DocId) -> Result<Vec<FileRow>, DiskError>;
    /// Returns a file's row; `None` if it's missing or damaged.
    fn file_row(&self, volume: DocId, path: &str) -> Result<Option<FileRow>, DiskError>;
    /// The actors that were recorded, and when.
    fn actors(&self) -> Result<Vec<(Vec<u8>, i64)>, DiskError>;
    /// What was set aside, oldest first.
    fn quarantined_rows(&self) -> Result<Vec<QuarantinedRow>, DiskError>;
    /// A blob's bytes, checked against their name.
    fn read_blob(&self, hash: BlobHash) -> Result<Vec<u8>, DiskError>;
}

/// Writing. One at a time owns it.
pub trait Disk: Send {
    /// Makes all of `writes` durable, or none of them. Gives the numbers of the chunks and snapshots among them, in
    /// their order: a later snapshot's `covers` is such a number.
    ///
    /// # Errors
    /// Any [`DiskError`]; the state is the old one then, and the same commit may be tried again.
    fn commit(&mut self, writes: &[RowWrite]) -> Result<Vec<i64>, DiskError>;
    /// Stores bytes under their hash, durably. Storing an existing blob does nothing.
    ///
    /// # Errors
    /// Any [`DiskError`].
    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash, DiskError>;
    /// A further reader.
    ///
    /// # Errors
    /// Any [`DiskError`].
    fn open_reader(&self) -> Result<Box<dyn DiskReader>, DiskError>;
    /// Called when nothing is to be written for a while: housekeeping that would disturb a keystroke (checkpoint).
    fn run_idle_tasks(&mut self);
}
