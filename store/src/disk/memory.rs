//! An in-memory disk for tests: it behaves like [`super::SqliteDisk`], and fails on request.

use super::rows::{BROKEN_RECORD_REASON, select_chunks};
use crate::disk::error::{BlobFault, DiskError};
use crate::disk::interface::{Disk, DiskReader, DocumentChunk, FileRow, QuarantinedRow, RowWrite};
use crate::id::{BlobHash, BlockId, DocId};
use crate::note::{Block, sort_blocks};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error with which a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// The disk is full.
    Full,
    /// The disk is read-only.
    ReadOnly,
    /// The device reports an I/O error.
    Io,
}

impl CommitFault {
    fn to_disk_error(self) -> DiskError {
        let path = PathBuf::from("memory");
        match self {
            CommitFault::Full => DiskError::Full { path },
            CommitFault::ReadOnly => DiskError::ReadOnly { path },
            CommitFault::Io => DiskError::Io { what: "saving", why: "the device does not answer".to_owned(), path },
        }
    }
}

/// A row to damage by flipping a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultyRow {
    /// A journal record, by its number.
    Journal(u64),
    /// A chunk, by its sequence number.
    Chunk(i64),
    /// The text of one block.
    Block(DocId, BlockId),
    /// A value of the table `meta`, by its key.
    Meta(String),
    /// A file's row.
    File(DocId, String),
    /// A blob, by its hash.
    Blob(BlobHash),
}

/// A disk in memory. Clones are handles to the same disk, so a test can keep one and give another away.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    shared: Arc<Mutex<SharedTables>>,
}

#[derive(Debug, Default)]
struct SharedTables {
    state: MemoryState,
    failing: u32,
    fault: Option<CommitFault>,
    limit: Option<usize>,
    commits: u64,
}

/// A journal record and its note.
type StoredRecord = (DocId, Arc<[u8]>);

/// A value, and whether it's intact.
type KeptValue<T> = (T, bool);

/// The tables, shared with the state that a commit started from until they are written to.
#[derive(Clone, Debug, Default)]
struct MemoryState {
    journal: Arc<BTreeMap<u64, KeptValue<StoredRecord>>>,
    chunks: Arc<BTreeMap<i64, KeptValue<StoredChunk>>>,
    blocks: Arc<BTreeMap<(DocId, BlockId), KeptValue<Block>>>,
    files: Arc<BTreeMap<(DocId, String), KeptValue<FileRow>>>,
    meta: Arc<BTreeMap<String, KeptValue<Vec<u8>>>>,
    blobs: Arc<BTreeMap<BlobHash, KeptValue<Arc<[u8]>>>>,
    ahead: Arc<BTreeSet<DocId>>,
    actors: Arc<BTreeMap<Vec<u8>, i64>>,
    aside: Arc<Vec<QuarantinedRow>>,
    last_seq: u64,
    last_chunk: i64,
}

#[derive(Clone, Debug)]
struct StoredChunk {
    doc: DocId,
    snapshot: bool,
    covers: i64,
    bytes: Arc<[u8]>,
}

impl MemoryDisk {
    /// Creates an empty disk in memory.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }

    /// Makes the next `times` commits and blob writes fail; 0 makes them succeed again.
    pub fn fail_next_commits(&self, times: u32, fault: CommitFault) {
        let mut shared = self.lock_shared();
        (shared.failing, shared.fault) = (times, Some(fault));
    }

    /// Limits the total size of contents in bytes, without overhead; `None` for no limit.
    pub fn set_size_limit(&self, bytes: Option<usize>) {
        self.lock_shared().limit = bytes;
    }

    /// Returns the total size of the stored contents in bytes.
    pub fn content_bytes(&self) -> usize {
        self.lock_shared().state.content_bytes()
    }

    /// Returns the number of successful commits.
    pub fn commit_count(&self) -> u64 {
        self.lock_shared().commits
    }

    /// Flips a byte of a row. Returns whether the row exists.
    pub fn corrupt_row(&self, row: &FaultyRow) -> bool {
        self.lock_shared().state.corrupt_row(row).is_some()
    }

    /// Returns the disk as a new process finds it after a crash: everything committed, and nothing else. Faults and
    /// limits aren't copied; this disk stays independent.
    #[must_use]
    pub fn reopen_after_crash(&self) -> MemoryDisk {
        let state = self.lock_shared().state.clone();
        MemoryDisk { shared: Arc::new(Mutex::new(SharedTables { state, ..SharedTables::default() })) }
    }

    fn lock_shared(&self) -> MutexGuard<'_, SharedTables> {
        // The state is consistent even if a test panicked while holding the lock: a commit takes effect by one
        // assignment.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedTables {
    fn check_fault(&mut self) -> Result<(), DiskError> {
        match self.fault {
            Some(fault) if self.failing > 0 => {
                self.failing -= 1;
                Err(fault.to_disk_error())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn replace_state(&mut self, state: MemoryState) -> Result<(), DiskError> {
        let (before, after) = (self.state.content_bytes(), state.content_bytes());
        if after > before && self.limit.is_some_and(|limit| after > limit) {
            return Err(CommitFault::Full.to_disk_error());
        }
        self.state = state;
        self.commits += 1;
        Ok(())
    }
}

fn refused_error(what: &'static str, why: String) -> DiskError {
    DiskError::Refused { what, why, path: PathBuf::from("memory") }
}

fn flip_byte(bytes: &[u8]) -> Arc<[u8]> {
    let mut bytes = bytes.to_vec();
    match bytes.len() / 2 {
        0 => bytes.push(b'x'),
        middle => bytes[middle] ^= 1,
    }
    bytes.into()
}

impl MemoryState {
    fn content_bytes(&self) -> usize {
        self.journal.values().map(|((_, record), _)| record.len()).sum::<usize>()
            + self.chunks.values().map(|(chunk, _)| chunk.bytes.len()).sum::<usize>()
            + self.blocks.values().map(|(block, _)| block.text.len() + block.pos.len()).sum::<usize>()
            + self.meta.values().map(|(value, _)| value.len()).sum::<usize>()
            + self.blobs.values().map(|(blob, _)| blob.len()).sum::<usize>()
    }

    fn corrupt_row(&mut self, row: &FaultyRow) -> Option<()> {
        match row {
            FaultyRow::Journal(seq) => {
                let ((_, record), good) = Arc::make_mut(&mut self.journal).get_mut(seq)?;
                (*record, *good) = (flip_byte(record), false);
            }
            FaultyRow::Chunk(seq) => {
                let (chunk, good) = Arc::make_mut(&mut self.chunks).get_mut(seq)?;
                (chunk.bytes, *good) = (flip_byte(&chunk.bytes), false);
            }
            FaultyRow::Block(note, block) => {
                let (block, good) = Arc::make_mut(&mut self.blocks).get_mut(&(*note, *block))?;
                block.text.push('x');
                *good = false;
            }
            FaultyRow::Meta(key) => Arc::make_mut(&mut self.meta).get_mut(key)?.1 = false,
            FaultyRow::File(volume, path) => {
                Arc::make_mut(&mut self.files).get_mut(&(*volume, path.clone()))?.1 = false;
            }
            FaultyRow::Blob(hash) => {
                let (bytes, good) = Arc::make_mut(&mut self.blobs).get_mut(hash)?;
                (*bytes, *good) = (flip_byte(bytes), false);
            }
        }
        Some(())
    }

    fn apply_write(&mut self, write: &RowWrite, durable: i64) -> Result<Option<i64>, DiskError> {
        match write {
            RowWrite::Journal { seq, .. } if *seq <= self.last_seq => {
                let why = format!("the number {seq} was given before; the last is {}", self.last_seq);
                return Err(refused_error("writing to the journal", why));
            }
            RowWrite::Journal { seq, note, record } => {
                let broken = self.journal.iter().find(|(_, ((of, _), good))| of == note && !good);
                if let Some((from, _)) = broken {
                    self.quarantine_journal(*note, *from, (BROKEN_RECORD_REASON, 0));
                }
                self.last_seq = *seq;
                Arc::make_mut(&mut self.journal).insert(*seq, ((*note, record.as_slice().into()), true));
            }
            RowWrite::JournalDone { note, upto } => {
                Arc::make_mut(&mut self.journal).retain(|seq, ((of, _), _)| of != note || seq > upto);
            }
            RowWrite::Chunk { doc, bytes } => return Ok(Some(self.append_chunk(*doc, false, 0, bytes))),
            RowWrite::Snapshot { covers, .. } if *covers > self.last_chunk => {
                let why = format!("it says that it holds chunk {covers}, which was not given yet");
                return Err(refused_error("writing a snapshot", why));
            }
            RowWrite::Snapshot { doc, bytes, covers } => {
                return Ok(Some(self.append_chunk(*doc, true, *covers, bytes)));
            }
            RowWrite::DropChunks { doc, upto } => {
                let covered = self.chunks.iter().any(|(seq, (chunk, good))| {
                    *good && chunk.doc == *doc && chunk.snapshot && chunk.covers >= *upto && *seq <= durable
                });
                if !covered {
                    let why = format!("no durable snapshot holds what stands up to chunk {upto}");
                    return Err(refused_error("dropping chunks", why));
                }
                Arc::make_mut(&mut self.chunks).retain(|seq, (chunk, _)| chunk.doc != *doc || seq > upto);
            }
            RowWrite::Block { note, block } if block.text.is_empty() => {
                Arc::make_mut(&mut self.blocks).remove(&(*note, block.id));
            }
            RowWrite::Block { note, block } => {
                Arc::make_mut(&mut self.blocks).insert((*note, block.id), (block.clone(), true));
            }
            RowWrite::Meta { key, value: Some(value) } => {
                Arc::make_mut(&mut self.meta).insert(key.clone(), (value.clone(), true));
            }
            RowWrite::Meta { key, value: None } => {
                Arc::make_mut(&mut self.meta).remove(key);
            }
            RowWrite::File(file) => {
                Arc::make_mut(&mut self.files).insert((file.volume, file.path.clone()), (file.clone(), true));
            }
            RowWrite::RemoveFile { volume, path } => {
                Arc::make_mut(&mut self.files).remove(&(*volume, path.clone()));
            }
            RowWrite::NoteAhead { note, ahead: true } => {
                Arc::make_mut(&mut self.ahead).insert(*note);
            }
            RowWrite::NoteAhead { note, ahead: false } => {
                Arc::make_mut(&mut self.ahead).remove(note);
            }
            RowWrite::Actor { actor, at } => {
                Arc::make_mut(&mut self.actors).insert(actor.clone(), *at);
            }
            RowWrite::QuarantineChunk { doc, seq, why, at } => {
                if self.chunks.get(seq).is_some_and(|(chunk, _)| chunk.doc == *doc)
                    && let Some((chunk, _)) = Arc::make_mut(&mut self.chunks).remove(seq)
                {
                    self.quarantine_bytes("chunks", *doc, *seq, &chunk.bytes, (why, *at));
                }
            }
            RowWrite::QuarantineJournal { note, from, why, at } => {
                self.quarantine_journal(*note, *from, (why, *at));
            }
            RowWrite::DeleteDocument { doc } => {
                Arc::make_mut(&mut self.chunks).retain(|_, (chunk, _)| chunk.doc != *doc);
                Arc::make_mut(&mut self.blocks).retain(|(note, _), _| note != doc);
                Arc::make_mut(&mut self.journal).retain(|_, ((note, _), _)| note != doc);
                Arc::make_mut(&mut self.ahead).remove(doc);
            }
        }
        Ok(None)
    }

    fn append_chunk(&mut self, doc: DocId, snapshot: bool, covers: i64, bytes: &[u8]) -> i64 {
        self.last_chunk += 1;
        let chunk = StoredChunk { doc, snapshot, covers, bytes: bytes.into() };
        Arc::make_mut(&mut self.chunks).insert(self.last_chunk, (chunk, true));
        self.last_chunk
    }

    fn quarantine_journal(&mut self, note: DocId, from: u64, why: (&str, i64)) {
        let gone = Arc::make_mut(&mut self.journal).extract_if(from.., |_, ((of, _), _)| *of == note);
        for (seq, ((_, record), _)) in gone.collect::<Vec<_>>() {
            self.quarantine_bytes("journal", note, seq, &record, why);
        }
    }

    fn quarantine_bytes(
        &mut self,
        source: &str,
        doc: DocId,
        seq: impl std::fmt::Display,
        bytes: &[u8],
        note: (&str, i64),
    ) {
        Arc::make_mut(&mut self.aside).push(QuarantinedRow {
            source: source.to_owned(),
            key: format!("{doc} {seq}"),
            bytes: bytes.to_vec(),
            why: note.0.to_owned(),
            at: note.1,
        });
    }
}

impl Disk for MemoryDisk {
    fn commit(&mut self, writes: &[RowWrite]) -> Result<Vec<i64>, DiskError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let mut shared = self.lock_shared();
        shared.check_fault()?;
        let mut state = shared.state.clone();
        let (mut given, durable) = (Vec::new(), state.last_chunk);
        for write in writes {
            given.extend(state.apply_write(write, durable)?);
        }
        shared.replace_state(state)?;
        Ok(given)
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash, DiskError> {
        let hash = BlobHash::of(bytes);
        let mut shared = self.lock_shared();
        shared.check_fault()?;
        if shared.state.blobs.get(&hash).is_none_or(|(_, good)| !good) {
            let mut state = shared.state.clone();
            Arc::make_mut(&mut state.blobs).insert(hash, (bytes.into(), true));
            shared.replace_state(state)?;
        }
        Ok(hash)
    }

    fn open_reader(&self) -> Result<Box<dyn DiskReader>, DiskError> {
        Ok(Box::new(self.clone()))
    }

    fn run_idle_tasks(&mut self) {}
}

impl DiskReader for MemoryDisk {
    fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError> {
        match self.lock_shared().state.meta.get(key) {
            Some((value, true)) => Ok(Some(value.clone())),
            Some((_, false)) => {
                Err(DiskError::Damaged { why: format!("its entry {key}"), path: PathBuf::from("memory") })
            }
            None => Ok(None),
        }
    }

    fn metas_with_prefix(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, DiskError> {
        let shared = self.lock_shared();
        let all = shared.state.meta.iter().filter(|(key, (_, whole))| *whole && key.starts_with(beginning));
        Ok(all.map(|(key, (value, _))| (key.clone(), value.clone())).collect())
    }

    fn chunks(&self, doc: DocId) -> Result<Vec<DocumentChunk>, DiskError> {
        let shared = self.lock_shared();
        let all = shared.state.chunks.iter().filter(|(_, (chunk, _))| chunk.doc == doc);
        let all = all.map(|(seq, (chunk, good))| {
            let bytes = chunk.bytes.to_vec();
            (DocumentChunk { seq: *seq, snapshot: chunk.snapshot, bytes, intact: *good }, chunk.covers)
        });
        Ok(select_chunks(all.collect()))
    }

    fn last_chunk_numbers(&self) -> Result<Vec<(DocId, i64)>, DiskError> {
        let mut latest: BTreeMap<DocId, i64> = BTreeMap::new();
        for (seq, (chunk, _)) in self.lock_shared().state.chunks.iter() {
            let last = latest.entry(chunk.doc).or_insert(*seq);
            *last = (*last).max(*seq);
        }
        Ok(latest.into_iter().collect())
    }

    fn document_ids(&self) -> Result<Vec<DocId>, DiskError> {
        let docs: BTreeSet<DocId> = self.lock_shared().state.chunks.values().map(|(chunk, _)| chunk.doc).collect();
        Ok(docs.into_iter().collect())
    }

    fn blocks(&self, note: DocId) -> Result<(Vec<Block>, Vec<BlockId>), DiskError> {
        let shared = self.lock_shared();
        let (mut blocks, mut bad) = (Vec::new(), Vec::new());
        for ((_, id), (block, good)) in shared.state.blocks.range((note, BlockId(0))..=(note, BlockId(u64::MAX))) {
            if *good {
                blocks.push(block.clone());
            } else {
                bad.push(*id);
            }
        }
        sort_blocks(&mut blocks);
        Ok((blocks, bad))
    }

    fn journal_records(&self, note: DocId) -> Result<Vec<(u64, Vec<u8>)>, DiskError> {
        let shared = self.lock_shared();
        let records = shared.state.journal.iter().filter(|(_, ((of, _), _))| *of == note);
        let records = records.take_while(|(_, (_, good))| *good).map(|(seq, ((_, record), _))| (*seq, record.to_vec()));
        Ok(records.collect())
    }

    fn first_broken_record(&self, note: DocId) -> Result<Option<u64>, DiskError> {
        let shared = self.lock_shared();
        let mut records = shared.state.journal.iter().filter(|(_, ((of, _), _))| *of == note);
        Ok(records.find(|(_, (_, good))| !good).map(|(seq, _)| *seq))
    }

    fn unfinished_notes(&self) -> Result<Vec<DocId>, DiskError> {
        let shared = self.lock_shared();
        let mut notes: BTreeSet<DocId> = shared.state.journal.values().map(|((note, _), _)| *note).collect();
        notes.extend(shared.state.ahead.iter());
        Ok(notes.into_iter().collect())
    }

    fn last_journal_seq(&self) -> Result<u64, DiskError> {
        Ok(self.lock_shared().state.last_seq)
    }

    fn file_rows(&self, volume: DocId) -> Result<Vec<FileRow>, DiskError> {
        let shared = self.lock_shared();
        let files = shared.state.files.range((volume, String::new())..);
        let files = files.take_while(|((of, _), _)| *of == volume).filter(|(_, (_, good))| *good);
        Ok(files.map(|(_, (file, _))| file.clone()).collect())
    }

    fn file_row(&self, volume: DocId, path: &str) -> Result<Option<FileRow>, DiskError> {
        let shared = self.lock_shared();
        let file = shared.state.files.get(&(volume, path.to_owned()));
        Ok(file.filter(|(_, good)| *good).map(|(file, _)| file.clone()))
    }

    fn actors(&self) -> Result<Vec<(Vec<u8>, i64)>, DiskError> {
        Ok(self.lock_shared().state.actors.iter().map(|(actor, at)| (actor.clone(), *at)).collect())
    }

    fn quarantined_rows(&self) -> Result<Vec<QuarantinedRow>, DiskError> {
        Ok(self.lock_shared().state.aside.to_vec())
    }

    fn read_blob(&self, hash: BlobHash) -> Result<Vec<u8>, DiskError> {
        match self.lock_shared().state.blobs.get(&hash) {
            Some((bytes, true)) => Ok(bytes.to_vec()),
            Some((_, false)) => Err(DiskError::Blob { hash, what: BlobFault::Damaged }),
            None => Err(DiskError::Blob { hash, what: BlobFault::Missing }),
        }
    }
}
