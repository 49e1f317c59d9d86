//! Default store of the hub: SQLite like the app's, in the hub's folder. One thread writes; pending appends become one
//! commit. When idle, long lists of chunks are compacted into one snapshot.

use crate::HubLog;
use crate::error::{HubFileError, HubStartError};
use crate::storage::{HubStore, LoadedChunks, SharedBytes, StoreCallback, StoreFailure};
use crate::work::{VersionedBytes, WorkStore};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::DocId;
use store::disk::{Disk, DiskError, DiskReader, RowWrite, SqliteDisk};
use store::sync::ChunksReadError;

/// Maximum number of requests before pending appends are committed.
const MAX_APPENDS_PER_COMMIT: usize = 256;
/// Idle time after which disk maintenance runs.
const HOUSEKEEPING_PAUSE: Duration = Duration::from_millis(500);
/// A document with more chunks than this is folded into one snapshot.
const MAX_CHUNKS_UNFOLDED: u32 = 256;
/// Maximum number of retries of a commit that the disk refuses for now, and the interval between them.
const MAX_COMMIT_TRIES: u32 = 20;
const COMMIT_RETRY_INTERVAL: Duration = Duration::from_millis(250);

enum StorageWork {
    Load(DocId, LoadedChunks),
    Append(DocId, SharedBytes, StoreCallback),
    /// Reads the records whose key starts with this text.
    ReadRecords(String, Sender<Result<Vec<Vec<u8>>, StoreFailure>>),
    /// Writes a record, or removes it.
    WriteRecord(String, Option<Vec<u8>>, Sender<Result<(), StoreFailure>>),
    Close,
}

/// Document store in an SQLite database.
pub(crate) struct SqliteStorage {
    work: Mutex<Sender<StorageWork>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    documents: Arc<AtomicU64>,
    refused: Arc<AtomicBool>,
    /// Documents that existed when the database was opened, until they're requested.
    all: Mutex<Vec<DocId>>,
}

impl SqliteStorage {
    /// Opens the database in this folder, or creates it.
    pub(crate) fn open(folder: &Path, log: HubLog) -> Result<SqliteStorage, HubStartError> {
        store::disk::create_folder(folder).map_err(HubFileError::io(folder))?;
        let create = !folder.join(store::disk::DATABASE_FILE).exists();
        let disk = SqliteDisk::open(folder, create)?;
        let reader = disk.open_reader()?;
        let all = reader.document_ids()?;
        let documents = Arc::new(AtomicU64::new(all.len() as u64));
        let (tell, told) = channel();
        let known = all.iter().copied().collect();
        let chunks = HashMap::new();
        let refused = Arc::new(AtomicBool::new(false));
        let mut keeper = StorageThread {
            disk,
            reader,
            known,
            chunks,
            log,
            documents: Arc::clone(&documents),
            refused: Arc::clone(&refused),
        };
        let thread = std::thread::Builder::new().name("hub-store".to_owned());
        let thread = thread.spawn(move || keeper.run(&told))?;
        let (work, thread, all) = (Mutex::new(tell), Mutex::new(Some(thread)), Mutex::new(all));
        Ok(SqliteStorage { work, thread, documents, refused, all })
    }

    fn send_work(&self, work: StorageWork) {
        // The thread ends only after `close`; requests after that get no answer, since the hub is ending.
        let _ = self.work.lock().unwrap_or_else(PoisonError::into_inner).send(work);
    }
}

impl HubStore for SqliteStorage {
    fn load(&self, doc: DocId, loaded: LoadedChunks) {
        self.send_work(StorageWork::Load(doc, loaded));
    }

    fn append(&self, doc: DocId, bytes: SharedBytes, done: StoreCallback) {
        self.send_work(StorageWork::Append(doc, bytes, done));
    }

    fn list_documents(&self) -> Option<Vec<DocId>> {
        Some(std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn document_count(&self) -> Option<u64> {
        Some(self.documents.load(Ordering::Relaxed))
    }

    fn check_health(&self) -> Result<(), &'static str> {
        if self.refused.load(Ordering::Relaxed) { Err("the disk does not store what comes") } else { Ok(()) }
    }

    fn close(&self) {
        self.send_work(StorageWork::Close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the hub's store failed");
        }
    }
}

/// Beginning of the keys under which runs that devices send to each other are stored.
const WORK_KEY_PREFIX: &str = "work/";

impl SqliteStorage {
    /// Sends a request that has an answer, and waits for it.
    fn ask<T>(&self, work: impl FnOnce(Sender<Result<T, StoreFailure>>) -> StorageWork) -> Result<T, StoreFailure> {
        let (answer, answered) = channel();
        self.send_work(work(answer));
        answered.recv().unwrap_or_else(|_| Err(StoreFailure("the hub is ending".to_owned())))
    }
}

// Only this process writes, one request after the other, so versions aren't needed.
impl WorkStore for SqliteStorage {
    fn read_record(&self, run: DocId) -> Result<Option<VersionedBytes>, StoreFailure> {
        let mut found = self.ask(|answer| StorageWork::ReadRecords(format!("{WORK_KEY_PREFIX}{run}"), answer))?;
        Ok(found.pop().map(|bytes| (bytes, 0)))
    }

    fn read_records(&self) -> Result<Vec<VersionedBytes>, StoreFailure> {
        let found = self.ask(|answer| StorageWork::ReadRecords(WORK_KEY_PREFIX.to_owned(), answer))?;
        Ok(found.into_iter().map(|bytes| (bytes, 0)).collect())
    }

    fn write_record(&self, run: DocId, bytes: Vec<u8>, _expected: u64) -> Result<bool, StoreFailure> {
        let key = format!("{WORK_KEY_PREFIX}{run}");
        self.ask(|answer| StorageWork::WriteRecord(key, Some(bytes), answer)).map(|()| true)
    }

    fn remove_record(&self, run: DocId) -> Result<(), StoreFailure> {
        self.ask(|answer| StorageWork::WriteRecord(format!("{WORK_KEY_PREFIX}{run}"), None, answer))
    }
}

struct StorageThread {
    disk: SqliteDisk,
    reader: Box<dyn DiskReader>,
    /// All documents that are stored.
    known: HashSet<DocId>,
    /// Number of chunks of each document that was used.
    chunks: HashMap<DocId, u32>,
    log: HubLog,
    documents: Arc<AtomicU64>,
    /// Whether the disk refused the last write.
    refused: Arc<AtomicBool>,
}

impl StorageThread {
    fn run(&mut self, told: &Receiver<StorageWork>) {
        loop {
            let first = match told.recv_timeout(HOUSEKEEPING_PAUSE) {
                Ok(work) => work,
                Err(RecvTimeoutError::Timeout) => {
                    self.fold_document();
                    self.disk.run_idle_tasks();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut appends: Vec<(DocId, SharedBytes, StoreCallback)> = Vec::new();
            let mut next = Some(first);
            let mut taken = 0;
            while let Some(work) = next {
                match work {
                    StorageWork::Append(doc, bytes, done) => appends.push((doc, bytes, done)),
                    StorageWork::Load(doc, loaded) => {
                        // The load must include earlier appends to this document. Appends to others needn't be on disk
                        // yet: under many simultaneous reads and writes, each would otherwise be a commit of its own.
                        if appends.iter().any(|(of, ..)| *of == doc) {
                            self.commit(&mut appends);
                        }
                        self.load(doc, loaded);
                    }
                    StorageWork::ReadRecords(prefix, answer) => {
                        let read = self.reader.metas_with_prefix(&prefix);
                        let read = read.map(|all| all.into_iter().map(|(_, value)| value).collect());
                        // Nobody waits if the connection has ended.
                        let _ = answer.send(read.map_err(|error| StoreFailure(error.to_string())));
                    }
                    StorageWork::WriteRecord(key, value, answer) => {
                        let written = self.disk.commit(&[RowWrite::Meta { key, value }]);
                        // The same here.
                        let _ = answer.send(written.map(|_| ()).map_err(|error| StoreFailure(error.to_string())));
                    }
                    StorageWork::Close => {
                        self.commit(&mut appends);
                        self.disk.run_idle_tasks();
                        return;
                    }
                }
                taken += 1;
                next = if taken < MAX_APPENDS_PER_COMMIT { told.try_recv().ok() } else { None };
            }
            self.commit(&mut appends);
        }
    }

    fn load(&mut self, doc: DocId, loaded: LoadedChunks) {
        if !self.known.contains(&doc) {
            return loaded(Ok(Vec::new()));
        }
        let read = self.reader.chunks(doc).map_err(|error| ChunksReadError(error.to_string()));
        let read = read.and_then(|chunks| match chunks.iter().find(|chunk| !chunk.intact) {
            Some(_) => Err(ChunksReadError(format!(
                "a stored part is damaged; run `tracebook fsck` on the hub's folder: {doc}"
            ))),
            None => Ok(chunks),
        });
        if let Ok(chunks) = &read
            && !chunks.is_empty()
        {
            self.chunks.insert(doc, chunks.len() as u32);
        }
        loaded(read.map(|chunks| chunks.into_iter().map(|chunk| chunk.bytes).collect()));
    }

    fn commit(&mut self, appends: &mut Vec<(DocId, SharedBytes, StoreCallback)>) {
        if appends.is_empty() {
            return;
        }
        let writes: Vec<RowWrite> =
            appends.iter().map(|(doc, bytes, _)| RowWrite::Chunk { doc: *doc, bytes: bytes.to_vec() }).collect();
        let mut tries = 0;
        let done = loop {
            let committed = self.disk.commit(&writes);
            self.refused.store(committed.is_err(), Ordering::Relaxed);
            match committed {
                Ok(_) => break Ok(()),
                // A refusal or damage is permanent, so retrying doesn't help.
                Err(error @ (DiskError::Refused { .. } | DiskError::Damaged { .. })) => break Err(error),
                Err(error) if tries >= MAX_COMMIT_TRIES => break Err(error),
                Err(error) => {
                    if tries == 0 {
                        (self.log)(&format!("the disk refuses for now: {error}"));
                    }
                    tries += 1;
                    std::thread::sleep(COMMIT_RETRY_INTERVAL);
                }
            }
        };
        let done = done.map_err(|error| StoreFailure(error.to_string()));
        if let Err(why) = &done {
            (self.log)(&format!("{} changes could not be stored: {why}", appends.len()));
        }
        for (doc, _, tell) in appends.drain(..) {
            if done.is_ok() {
                if self.known.insert(doc) {
                    self.documents.fetch_add(1, Ordering::Relaxed);
                    self.chunks.insert(doc, 0);
                }
                // For a document that wasn't used before, the chunks just committed are counted too.
                let stored = || self.reader.chunks(doc).map_or(0, |chunks| (chunks.len() as u32).saturating_sub(1));
                *self.chunks.entry(doc).or_insert_with(stored) += 1;
            }
            tell(done.clone());
        }
    }

    /// Folds one document with many chunks into a snapshot; called once per idle pause.
    fn fold_document(&mut self) {
        let Some(doc) = self.chunks.iter().find(|(_, count)| **count > MAX_CHUNKS_UNFOLDED).map(|(doc, _)| *doc) else {
            return;
        };
        self.chunks.insert(doc, 1);
        let folded = self.reader.chunks(doc).map_err(|error| error.to_string()).and_then(|chunks| {
            let covers = chunks.iter().map(|chunk| chunk.seq).max().unwrap_or_default();
            if chunks.iter().any(|chunk| !chunk.intact) {
                return Err("a stored part is damaged".to_owned());
            }
            let chunks: Vec<Vec<u8>> = chunks.into_iter().map(|chunk| chunk.bytes).collect();
            let bytes = store::compact_chunks(&chunks).map_err(|why| why.to_string())?;
            // The snapshot is durable before the chunks that it replaces are dropped.
            self.disk.commit(&[RowWrite::Snapshot { doc, bytes, covers }]).map_err(|error| error.to_string())?;
            self.disk.commit(&[RowWrite::DropChunks { doc, upto: covers }]).map_err(|error| error.to_string())
        });
        if let Err(why) = folded {
            (self.log)(&format!("a document could not be folded: {why}: {doc}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const DOCS: [DocId; 3] = [DocId([1; 16]), DocId([2; 16]), DocId([3; 16])];

    #[test]
    fn reading_one_document_commits_only_what_was_appended_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = SqliteDisk::open(folder.path(), true).expect("made");
        let reader = disk.open_reader().expect("a reader");
        let documents = Arc::new(AtomicU64::new(0));
        let mut keeper = StorageThread {
            disk,
            reader,
            known: HashSet::new(),
            chunks: HashMap::new(),
            log: Arc::new(|_: &str| ()),
            documents: documents.clone(),
            refused: Arc::default(),
        };
        let (tell, told) = channel();
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let append = |doc: usize, bytes: &[u8]| {
            let said = said.clone();
            let done: StoreCallback =
                Box::new(move |done| said.lock().expect("lock").push(format!("stored {doc} {done:?}")));
            tell.send(StorageWork::Append(DOCS[doc], Arc::new(bytes.to_vec()), done)).expect("sent");
        };
        let load = |doc: usize| {
            let said = said.clone();
            let loaded: LoadedChunks = Box::new(move |chunks| {
                said.lock().expect("lock").push(format!("read {doc} {}", chunks.map_or(99, |chunks| chunks.len())));
            });
            tell.send(StorageWork::Load(DOCS[doc], loaded)).expect("sent");
        };
        append(0, b"one");
        load(1);
        append(2, b"two");
        load(1);
        append(0, b"three");
        load(0);
        append(1, b"four");
        load(2);
        tell.send(StorageWork::Close).expect("sent");
        keeper.run(&told);
        let said = said.lock().expect("lock").clone();
        let expected = [
            "read 1 0",
            "read 1 0",
            "stored 0 Ok(())",
            "stored 2 Ok(())",
            "stored 0 Ok(())",
            "read 0 2",
            "read 2 1",
            "stored 1 Ok(())",
        ];
        assert_eq!(said, expected);
        assert_eq!(documents.load(Ordering::Relaxed), 3);
        assert_eq!(keeper.chunks.get(&DOCS[0]), Some(&2));
        // After reopening, all documents are known, and their chunks are counted when used.
        drop(keeper);
        let again = SqliteStorage::open(folder.path(), Arc::new(|_: &str| ())).expect("opened");
        assert_eq!((again.document_count(), again.list_documents().map(|all| all.len())), (Some(3), Some(3)));
        let (answer, wait) = channel();
        again.load(DOCS[0], Box::new(move |chunks| _ = answer.send(chunks)));
        let chunks = wait.recv().expect("an answer").expect("read");
        assert_eq!(chunks, [b"one".to_vec(), b"three".to_vec()]);
        again.close();
    }
}
