//! Indexing thread, which owns the write side of the index: it reads changes from disk and indexes them. When idle, it
//! embeds texts.

use super::embedding_models::LoadedModel;
use super::index_copy::IndexCopy;
use super::{
    EmbeddingChoice, INDEX_FOLDER, IndexTask, IndexedVolume, IndexedWrite, SearchSource, SharedIndex, catch_index_panic,
};
use crate::fs::confined_dir::ConfinedPath;
use crate::fs::read::{self, FoundFile};
use crate::{loader, search::index_documents, workers};
use anyhow::anyhow;
use engine::event::FileText;
use index::{FullTextIndex, IndexError, MissingVectors, SentenceEmbedder};
use models::EmbedderChoice;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use store::disk::{DiskReader, FileRow};
use store::{ActorId, DocId, Execution, FileKind, OutputsDoc};

/// Delay before the index is opened, unless it's used earlier: short commands don't need it.
const INDEX_OPEN_DELAY: Duration = Duration::from_millis(800);
/// Delay before a change is indexed, so that a burst of keystrokes is one change.
const INDEX_DEBOUNCE: Duration = Duration::from_millis(500);
/// Number of notes indexed between two checks of the queue.
const NOTES_PER_SLICE: usize = 16;
/// Maximum number of indexed notes between two commits.
const NOTES_PER_COMMIT: usize = 2_000;
/// Embedding starts when nothing has changed for this long.
const EMBEDDING_IDLE_DELAY: Duration = Duration::from_millis(1_500);
/// Maximum number of vectors written together.
const MAX_VECTORS_PER_WRITE: usize = 32;
/// Delay before an index is tried again that its disk refused.
const INDEX_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of automatic rebuilds of a damaged index.
const MAX_INDEX_REBUILDS: usize = 3;
/// Format of the passages, which is part of every key: a new one causes all notes to be indexed again.
const PASSAGES_FORMAT: &[u8] = b"tracebook 2026 passages 5";
/// Delay before a failed model is tried again.
const MODEL_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Interval of checks while a model is loading.
const MODEL_POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Indexer {
    folder: PathBuf,
    /// A copy of the index, if the workspace's disk isn't writable or is full.
    index_copy: Option<IndexCopy>,
    /// Whether to make the copy at once.
    needs_copy: bool,
    reader: Box<dyn DiskReader>,
    common: Arc<SharedIndex>,
    index: Option<Arc<FullTextIndex>>,
    volumes: HashMap<DocId, (String, PathBuf)>,
    /// Whether the volumes' rows were read.
    listed: bool,
    rows: HashMap<DocId, FileRow>,
    by_path: HashMap<(DocId, String), DocId>,
    /// Notes by the ids of their outputs' documents.
    outputs: HashMap<DocId, DocId>,
    docs: HashSet<DocId>,
    sources: Vec<Box<dyn SearchSource>>,
    known: HashMap<DocId, u64>,
    dirty_notes: BTreeSet<DocId>,
    dirty_since: Option<Instant>,
    /// Number of indexed but uncommitted notes.
    uncommitted: usize,
    /// Notes indexed since the last commit, which are indexed again if it fails.
    pending: Vec<DocId>,
    changed: Instant,
    missing: Option<MissingVectors>,
    all_meanings: usize,
    fresh: Vec<(u64, Vec<f32>)>,
    /// Whether vectors were stored since completion was last reported.
    kept: bool,
    index_waiters: Vec<Sender<anyhow::Result<()>>>,
    embedding_waiters: Vec<Sender<anyhow::Result<()>>>,
    retry: Option<Instant>,
    rebuilds: usize,
    /// The model whose vectors are being computed, once the index knows it.
    embedded_model: Option<String>,
    /// The chosen model, while it's being loaded.
    loading: Option<Receiver<LoadedModel<dyn SentenceEmbedder>>>,
    /// Whether the settings were received.
    has_settings: bool,
    /// When to try a failed model again.
    embed_at: Option<Instant>,
}

impl Indexer {
    pub(super) fn new(
        (folder, away): (PathBuf, bool),
        reader: Box<dyn DiskReader>,
        common: Arc<SharedIndex>,
    ) -> Indexer {
        Indexer {
            folder: folder.join(INDEX_FOLDER),
            index_copy: None,
            needs_copy: away,
            reader,
            common,
            index: None,
            volumes: HashMap::new(),
            listed: false,
            rows: HashMap::new(),
            by_path: HashMap::new(),
            outputs: HashMap::new(),
            docs: HashSet::new(),
            sources: Vec::new(),
            known: HashMap::new(),
            dirty_notes: BTreeSet::new(),
            dirty_since: None,
            uncommitted: 0,
            pending: Vec::new(),
            changed: Instant::now(),
            missing: None,
            all_meanings: 0,
            fresh: Vec::new(),
            kept: false,
            index_waiters: Vec::new(),
            embedding_waiters: Vec::new(),
            retry: None,
            rebuilds: 0,
            embedded_model: None,
            loading: None,
            has_settings: false,
            embed_at: None,
        }
    }

    pub(super) fn run(mut self, tasks: &Receiver<IndexTask>) {
        workers::lower_thread_priority();
        let begun = Instant::now();
        loop {
            let open = self.index.is_some();
            let asked = !self.index_waiters.is_empty() || !self.embedding_waiters.is_empty();
            let wait = if let Some(at) = self.retry {
                at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
            } else if !open {
                if asked { Duration::ZERO } else { INDEX_OPEN_DELAY.saturating_sub(begun.elapsed()) }
            } else if let Some(since) = self.dirty_since {
                if asked { Duration::ZERO } else { INDEX_DEBOUNCE.saturating_sub(since.elapsed()) }
            } else if self.loading.is_some() {
                MODEL_POLL_INTERVAL
            } else if self.has_pending_embeddings() {
                if self.embedding_waiters.is_empty() {
                    EMBEDDING_IDLE_DELAY.saturating_sub(self.changed.elapsed())
                } else {
                    Duration::ZERO
                }
            } else {
                let again = self.embed_at.map(|at| at.saturating_duration_since(Instant::now()));
                again
                    .into_iter()
                    .chain(self.common.models.time_until_unload())
                    .min()
                    .unwrap_or(Duration::from_secs(3_600))
            };
            let mut next = tasks.recv_timeout(wait);
            let mut any = false;
            loop {
                match next {
                    Ok(IndexTask::Close(answer)) => {
                        self.finish();
                        // Here and below: if the receiver is gone, the answer isn't needed.
                        let _ = answer.send(());
                        return;
                    }
                    Ok(task) => self.handle_task(task),
                    Err(RecvTimeoutError::Disconnected) => return self.finish(),
                    Err(RecvTimeoutError::Timeout) => break,
                }
                any = true;
                next = tasks.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            let asked = !self.index_waiters.is_empty() || !self.embedding_waiters.is_empty();
            if any && !open && !asked && begun.elapsed() < INDEX_OPEN_DELAY {
                continue;
            }
            // Each commit starts threads and waits for the disk several times, so don't commit after each keystroke.
            if any && open && !asked && self.dirty_since.is_some_and(|since| since.elapsed() < INDEX_DEBOUNCE) {
                self.publish_freshness();
                continue;
            }
            if self.embed_at.is_some_and(|at| at <= Instant::now()) {
                self.embed_at = None;
            }
            if !self.has_pending_embeddings() && self.loading.is_none() && self.common.models.unload_idle() {
                crate::allocator::trim_heap();
            }
            let done = self.run_step();
            if let Err(error) = done {
                self.handle_index_error(&error);
            }
            self.publish_freshness();
        }
    }

    fn has_pending_embeddings(&self) -> bool {
        let left = self.missing.as_ref().is_none_or(|missing| !missing.is_empty()) || !self.fresh.is_empty();
        left && self.embed_at.is_none() && !self.common.models.wanted_model().paused
    }

    fn handle_task(&mut self, task: IndexTask) {
        match task {
            IndexTask::Volumes(volumes) => {
                let volumes: HashMap<DocId, (String, PathBuf)> =
                    volumes.into_iter().map(|(id, name, folder): IndexedVolume| (id, (name, folder))).collect();
                if volumes != self.volumes {
                    self.volumes = volumes;
                    self.listed = false;
                    self.mark_changed();
                }
            }
            IndexTask::Written(written) => written.into_iter().for_each(|written| self.record_write(written)),
            IndexTask::WaitUntilIndexed(answer) => {
                self.retry = None;
                self.index_waiters.push(answer);
                self.mark_changed();
            }
            IndexTask::WaitUntilEmbedded(answer) => {
                self.embedding_waiters.push(answer);
                self.mark_changed();
            }
            IndexTask::Rebuild(answer) => {
                self.rebuilds = 0;
                self.retry = None;
                match self.delete_index() {
                    Ok(()) => self.index_waiters.push(answer),
                    Err(error) => _ = answer.send(Err(error.into())),
                }
                self.mark_changed();
            }
            IndexTask::Verify(answer) => {
                let opened = self.open_index();
                let found = opened.and_then(|index| catch_index_panic(|| index.verify()));
                match found {
                    Ok(found) if found.is_empty() => _ = answer.send(Ok(found)),
                    Ok(found) => {
                        self.handle_index_error(&IndexError { what: "is damaged", why: found.join("; "), disk: false });
                        let _ = answer.send(Ok(found));
                    }
                    Err(error) => {
                        self.handle_index_error(&error);
                        let _ = answer.send(if error.disk { Err(error.into()) } else { Ok(vec![error.to_string()]) });
                    }
                }
            }
            IndexTask::Loaded => {}
            IndexTask::SetChoice(wanted) => {
                let before = self.common.models.set_wanted(wanted.clone());
                let told = std::mem::replace(&mut self.has_settings, true);
                if (&before.choice, &before.library) != (&wanted.choice, &wanted.library) {
                    (self.embedded_model, self.loading, self.missing, self.embed_at) = (None, None, None, None);
                    self.fresh.clear();
                }
                if before.unsearched != wanted.unsearched {
                    self.listed = false;
                    self.mark_changed();
                }
                if before.reranker != wanted.reranker || before.library != wanted.library {
                    self.common.update_freshness(|fresh| fresh.reranker = None);
                    // Nothing is loaded at the start: the first query loads it.
                    if told && !wanted.reranker.is_empty() {
                        self.common.start_loading_reranker();
                    }
                }
            }
            IndexTask::AddSource(further) => {
                self.sources.push(further);
                self.listed = false;
                self.mark_changed();
            }
            IndexTask::Close(answer) => _ = answer.send(()),
        }
    }

    fn mark_changed(&mut self) {
        self.dirty_since.get_or_insert_with(Instant::now);
    }

    fn record_write(&mut self, written: IndexedWrite) {
        match written {
            IndexedWrite::File(row) => {
                if is_searchable(row.kind) && !self.common.models.wanted_model().is_excluded(&row.path) {
                    self.track_note(row.clone());
                    self.dirty_notes.insert(row.id);
                } else if self.rows.contains_key(&row.id) {
                    self.forget_note(row.id);
                }
            }
            IndexedWrite::FileGone { volume, path } => {
                let Some(note) = self.by_path.get(&(volume, path.clone())).copied() else { return };
                // A rename arrives as the removal of the old path and then the new one, in this order.
                self.by_path.remove(&(volume, path));
                self.forget_note(note);
            }
            IndexedWrite::Note(note) => _ = self.dirty_notes.insert(note),
            IndexedWrite::Doc(doc) => {
                self.docs.insert(doc);
                let is_note = self.rows.contains_key(&doc);
                let mut further = self.sources.iter_mut().filter(|_| !is_note);
                let of = self.outputs.get(&doc).copied();
                let Some(found) = of.or_else(|| further.find_map(|further| further.document_key(doc)).map(|_| doc))
                else {
                    return;
                };
                self.dirty_notes.insert(found);
            }
        }
        self.mark_changed();
    }

    fn track_note(&mut self, row: FileRow) {
        self.outputs.insert(row.id.outputs_id(), row.id);
        self.by_path.insert((row.volume, row.path.clone()), row.id);
        self.rows.insert(row.id, row);
    }

    fn forget_note(&mut self, note: DocId) {
        self.rows.remove(&note);
        self.dirty_notes.insert(note);
    }

    /// Opens the index, or creates it.
    fn open_index(&mut self) -> Result<Arc<FullTextIndex>, IndexError> {
        if let Some(index) = &self.index {
            return Ok(index.clone());
        }
        let wanted = self.common.models.wanted_model().choice.key();
        let open = |folder: &Path| {
            catch_index_panic(|| {
                let index = FullTextIndex::open(folder, &wanted)?;
                if index.is_unclean() {
                    let found = index.verify()?;
                    if let Some(first) = found.into_iter().next() {
                        return Err(IndexError { what: "is damaged", why: first, disk: false });
                    }
                }
                let known = index.indexed_notes()?;
                Ok((index, known))
            })
        };
        let opened = if self.needs_copy {
            Err(IndexError { what: "cannot be written", why: "its disk takes nothing".to_owned(), disk: true })
        } else {
            open(self.index_copy.as_ref().map_or(self.folder.as_path(), IndexCopy::folder))
        };
        let (index, known) = match opened {
            // Queries are still answered, by a copy that lasts as long as this program.
            Err(error) if error.disk && self.index_copy.is_none() => {
                let copy = IndexCopy::make_copy(&self.folder).ok_or(error)?;
                let opened = open(copy.folder())?;
                (self.index_copy, self.needs_copy) = (Some(copy), false);
                opened
            }
            opened => opened?,
        };
        if self.common.models.wanted_model().choice == EmbedderChoice::Embedded && index.dimensions() == 0 {
            // The first query may store vectors before the first passage is embedded here.
            index.grow_vectors(&wanted, index::VECTOR_DIMENSIONS)?;
        }
        let index = Arc::new(index);
        self.known = known;
        self.index = Some(index.clone());
        *self.common.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index.clone());
        Ok(index)
    }

    /// Performs one unit of work.
    fn run_step(&mut self) -> Result<(), IndexError> {
        let suspect = self.common.suspected_damage.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(why) = suspect {
            return Err(IndexError { what: "is damaged", why, disk: false });
        }
        if self.retry.is_some_and(|at| at > Instant::now()) {
            return Ok(());
        }
        self.retry = None;
        let index = self.open_index()?;
        if !self.listed {
            self.compare_with_disk()?;
        }
        if !self.dirty_notes.is_empty() || self.uncommitted > 0 {
            if !index.files_exist() {
                return Err(IndexError { what: "is damaged", why: "its files were removed".to_owned(), disk: false });
            }
            for note in std::iter::from_fn(|| self.dirty_notes.pop_first()).take(NOTES_PER_SLICE).collect::<Vec<_>>() {
                self.index_note(&index, note)?;
            }
            if self.dirty_notes.is_empty() || self.uncommitted >= NOTES_PER_COMMIT {
                catch_index_panic(|| index.commit())?;
                self.uncommitted = 0;
                self.pending.clear();
                self.changed = Instant::now();
                self.missing = None;
                self.common.update_freshness(|fresh| {
                    fresh.error = None;
                    fresh.revision += 1;
                });
            }
        }
        if self.dirty_notes.is_empty() && self.uncommitted == 0 {
            self.dirty_since = None;
            // Waiting callers read the freshness again.
            self.publish_freshness();
            self.index_waiters.drain(..).for_each(|answer| _ = answer.send(Ok(())));
            let due = !self.embedding_waiters.is_empty() || self.changed.elapsed() >= EMBEDDING_IDLE_DELAY;
            if due {
                self.embed_pending(&index)?;
            }
        }
        Ok(())
    }

    /// Compares the notes on disk with those in the index, and marks differences as dirty.
    fn compare_with_disk(&mut self) -> Result<(), IndexError> {
        let say =
            |error: store::disk::DiskError| IndexError { what: "cannot be made", why: error.to_string(), disk: true };
        self.rows.clear();
        self.by_path.clear();
        self.docs = self.reader.document_ids().map_err(say)?.into_iter().collect();
        let volumes: Vec<DocId> = self.volumes.keys().copied().collect();
        let wanted = self.common.models.wanted_model();
        for volume in volumes {
            let rows = self.reader.file_rows(volume).map_err(say)?;
            let unsearched = |row: &FileRow| wanted.is_excluded(&row.path);
            for row in rows.into_iter().filter(|row| is_searchable(row.kind) && !unsearched(row)) {
                self.track_note(row);
            }
        }
        let stale: Vec<DocId> = self
            .rows
            .values()
            .filter(|row| self.known.get(&row.id) != Some(&self.note_key(row)))
            .map(|row| row.id)
            .collect();
        self.dirty_notes.extend(stale);
        let mut others: HashMap<DocId, u64> = HashMap::new();
        for further in &mut self.sources {
            let all = further.list_documents().map_err(say)?;
            others.extend(all.into_iter().filter_map(|doc| Some((doc, further.document_key(doc)?))));
        }
        self.dirty_notes
            .extend(others.iter().filter(|(doc, key)| self.known.get(doc) != Some(key)).map(|(doc, _)| *doc));
        let there = |doc: &DocId| self.rows.contains_key(doc) || others.contains_key(doc);
        let gone: Vec<DocId> = self.known.keys().filter(|doc| !there(doc)).copied().collect();
        self.dirty_notes.extend(gone);
        // Keystrokes that aren't in the file yet don't show in its row.
        self.dirty_notes.extend(self.reader.unfinished_notes().map_err(say)?);
        self.listed = true;
        Ok(())
    }

    /// Returns the key of a note's state.
    fn note_key(&self, row: &FileRow) -> u64 {
        let volume = self.volumes.get(&row.volume).map_or("", |(name, _)| name.as_str());
        let mut bytes = PASSAGES_FORMAT.to_vec();
        for part in [volume.as_bytes(), row.path.as_bytes(), &row.hash.0, &row.mtime.to_le_bytes()] {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        let outputs = row.id.outputs_id();
        if self.docs.contains(&outputs)
            && let Ok(chunks) = self.reader.chunks(outputs)
        {
            bytes.extend(chunks.iter().map(|chunk| chunk.seq).max().unwrap_or(0).to_le_bytes());
        }
        let hash = store::BlobHash::of(&bytes);
        u64::from_le_bytes(hash.0[..8].try_into().unwrap_or_default())
    }

    fn index_note(&mut self, index: &Arc<FullTextIndex>, note: DocId) -> Result<(), IndexError> {
        let Some(row) = self.rows.get(&note).cloned() else {
            if let Some(text) = self.sources.iter_mut().find_map(|further| further.read_document(note)) {
                catch_index_panic(|| index.put_note(&text))?;
                self.known.insert(note, text.key);
                self.uncommitted += 1;
                self.pending.push(note);
            } else if self.known.remove(&note).is_some() {
                index.remove_note(note);
                self.uncommitted += 1;
                self.pending.push(note);
            }
            return Ok(());
        };
        let Some((volume, root)) = self.volumes.get(&row.volume).cloned() else { return Ok(()) };
        let key = self.note_key(&row);
        let file = ConfinedPath::new(&root, &row.path);
        let read = || match read::read_note_file(&file) {
            Ok(FoundFile::Text(text)) => Ok::<Option<FileText>, anyhow::Error>(Some(text)),
            Ok(FoundFile::Missing | FoundFile::Other { .. }) => Ok(None),
            Err(why) => Err(why),
        };
        // A note that can't be read now is found by its name, and is read again when it changes.
        let content = loader::load_note_content(self.reader.as_ref(), note, row.volume, &row.path, read);
        let blocks = content.map(|content| content.blocks).unwrap_or_default();
        let executions = self.read_executions(note);
        let mut text =
            catch_index_panic(|| Ok(index_documents::build_note_text(&volume, &row, key, &blocks, &executions)))?;
        let private = self.volumes.keys().any(|owner| owner.memory_id() == row.volume);
        text.passages.iter_mut().for_each(|passage| passage.private = private);
        catch_index_panic(|| index.put_note(&text))?;
        self.known.insert(note, key);
        self.uncommitted += 1;
        self.pending.push(note);
        Ok(())
    }

    fn read_executions(&self, note: DocId) -> Vec<Execution> {
        let outputs = note.outputs_id();
        if !self.docs.contains(&outputs) {
            return Vec::new();
        }
        let chunks = self.reader.chunks(outputs).unwrap_or_default();
        let whole: Vec<Vec<u8>> = chunks.into_iter().filter(|chunk| chunk.intact).map(|chunk| chunk.bytes).collect();
        let loaded = OutputsDoc::load(outputs, &whole, ActorId::from([0_u8; 16]));
        loaded.map(|loaded| loaded.doc.latest_executions()).unwrap_or_default()
    }

    /// Embeds a batch of texts, or stores the computed vectors.
    fn embed_pending(&mut self, index: &Arc<FullTextIndex>) -> Result<(), IndexError> {
        let wanted = self.common.models.wanted_model();
        let key = wanted.choice.key();
        if self.embedded_model.as_ref() != Some(&key) && !self.begin_embedding(index, &wanted)? {
            return Ok(());
        }
        if self.missing.is_none() {
            let missing = catch_index_panic(|| index.missing_vectors())?;
            self.all_meanings = catch_index_panic(|| index.counts())?.meanings;
            self.missing = Some(missing);
        }
        let Some(missing) = &mut self.missing else { return Ok(()) };
        if !wanted.paused && self.embed_at.is_none() && !missing.is_empty() {
            let model = self.common.load_if_present(&key);
            let mut texts = Vec::new();
            for _ in 0..model.as_ref().map_or(0, |model| model.batch_size().max(1)) {
                texts.extend(catch_index_panic(|| missing.pop())?);
            }
            let vectors = model.and_then(|model| {
                if texts.is_empty() {
                    return Ok(Vec::new());
                }
                let all: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
                let vectors = catch_index_panic(|| Ok(workers::run_at_low_priority(|| model.embed_all(&all))));
                match vectors {
                    Ok(vectors) => vectors.map_err(|why| Arc::new(anyhow::Error::from(why))),
                    Err(_) => Err(Arc::new(anyhow!("the model failed"))),
                }
            });
            match vectors {
                Ok(vectors) => self.fresh.extend(texts.into_iter().map(|(hash, _)| hash).zip(vectors)),
                Err(why) => {
                    self.missing = None;
                    self.pause_embedding(&why);
                }
            }
        }
        let left = self.missing.as_ref().map_or(usize::MAX, MissingVectors::len);
        if self.fresh.len() >= MAX_VECTORS_PER_WRITE || left == 0 {
            let fresh = std::mem::take(&mut self.fresh);
            if !fresh.is_empty() {
                index.store_vectors(&fresh)?;
                self.kept = true;
            }
            if left == 0 {
                index.activate_grown_vectors();
                catch_index_panic(|| index.compact_vectors())?;
                if std::mem::take(&mut self.kept) {
                    // More can be found by meaning now, so open searches run again.
                    self.common.update_freshness(|fresh| fresh.revision += 1);
                }
                self.publish_freshness();
                self.embedding_waiters.drain(..).for_each(|answer| _ = answer.send(Ok(())));
            }
        }
        if wanted.paused {
            let why = "indexing by meaning is paused; run `tracebook index resume` to continue";
            self.embedding_waiters.drain(..).for_each(|answer| _ = answer.send(Err(anyhow!(why))));
        }
        Ok(())
    }

    /// Tells the index which model's vectors follow. Returns `false` if the model isn't loaded yet.
    fn begin_embedding(&mut self, index: &Arc<FullTextIndex>, wanted: &EmbeddingChoice) -> Result<bool, IndexError> {
        let key = wanted.choice.key();
        let dimensions = if index.answering_model() == key && index.dimensions() > 0 {
            // Don't load a model if its vectors may already be complete.
            index.dimensions()
        } else if wanted.choice == EmbedderChoice::Embedded {
            index::VECTOR_DIMENSIONS
        } else if wanted.paused || self.embed_at.is_some() {
            return Ok(false);
        } else {
            let loading = self.loading.get_or_insert_with(|| self.common.start_loading(&key));
            let loaded = match loading.try_recv() {
                Ok(loaded) => loaded,
                Err(TryRecvError::Empty) => return Ok(false),
                Err(TryRecvError::Disconnected) => Err(Arc::new(anyhow!("the model could not be loaded"))),
            };
            self.loading = None;
            match loaded {
                Ok(model) => model.dimensions(),
                Err(why) => {
                    self.pause_embedding(&why);
                    return Ok(false);
                }
            }
        };
        index.grow_vectors(&key, dimensions)?;
        self.common.update_freshness(|fresh| fresh.error = None);
        self.embedded_model = Some(key);
        self.missing = None;
        Ok(true)
    }

    /// Uses only existing vectors until the model is tried again.
    fn pause_embedding(&mut self, why: &anyhow::Error) {
        self.embed_at = Some(Instant::now() + MODEL_RETRY_INTERVAL);
        let sentence = format!("no new passage is found by its meaning for now: {why}");
        self.embedding_waiters.drain(..).for_each(|answer| _ = answer.send(Err(anyhow!("{sentence}"))));
        self.common.update_freshness(|fresh| fresh.error = Some(sentence));
    }

    /// Handles an index error: a damaged index is rebuilt; an operation that the disk refused is retried.
    fn handle_index_error(&mut self, error: &IndexError) {
        let mut sentence = error.to_string();
        let again: Vec<DocId> = std::mem::take(&mut self.pending);
        for note in &again {
            self.known.remove(note);
        }
        self.dirty_notes.extend(again);
        self.uncommitted = 0;
        if error.disk {
            self.retry = Some(Instant::now() + INDEX_RETRY_INTERVAL);
            sentence.push_str("; Tracebook tries again automatically, and your notes are safe");
        } else if self.rebuilds < MAX_INDEX_REBUILDS {
            self.rebuilds += 1;
            match self.delete_index() {
                Ok(()) => {
                    let mended = format!("{sentence}; it's being rebuilt, and your notes are safe");
                    self.common.update_freshness(|fresh| fresh.repair_notice = Some(mended));
                    return;
                }
                Err(error) => sentence = error.to_string(),
            }
            self.retry = Some(Instant::now() + INDEX_RETRY_INTERVAL);
        } else {
            self.retry = Some(Instant::now() + Duration::from_secs(3_600));
            sentence.push_str("; `tracebook index rebuild` makes it again, notes are safe");
        }
        self.common.update_freshness(|fresh| fresh.error = Some(sentence.clone()));
        for answer in self.index_waiters.drain(..).chain(self.embedding_waiters.drain(..)) {
            let _ = answer.send(Err(anyhow!("{sentence}")));
        }
    }

    fn delete_index(&mut self) -> Result<(), IndexError> {
        *self.common.index.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.index = None;
        self.missing = None;
        self.embedded_model = None;
        self.known.clear();
        self.listed = false;
        self.mark_changed();
        FullTextIndex::remove_files(self.index_copy.as_ref().map_or(self.folder.as_path(), IndexCopy::folder))
    }

    fn publish_freshness(&self) {
        let complete = self.listed && self.dirty_notes.is_empty() && self.uncommitted == 0;
        let left = self.missing.as_ref().map_or(0, MissingVectors::len) + self.fresh.len();
        let wanted = self.common.models.wanted_model();
        let answering = self.index.as_ref().and_then(|index| EmbedderChoice::from_key(&index.answering_model()));
        self.common.update_freshness(|fresh| {
            fresh.answering_model = answering.unwrap_or_else(|| wanted.choice.clone());
            fresh.pending_model = Some(wanted.choice).filter(|choice| *choice != fresh.answering_model);
            fresh.paused = wanted.paused;
            fresh.complete = complete;
            fresh.waiting = self.dirty_notes.len();
            fresh.notes = self.known.len();
            fresh.meanings = (left, self.all_meanings);
        });
    }

    fn finish(&mut self) {
        let Some(index) = self.index.take() else { return };
        if !self.fresh.is_empty()
            && let Err(error) = index.store_vectors(&self.fresh)
        {
            let why = crate::logging::content_field(error.why);
            tracing::warn!(what = error.what, why, "vectors were not stored; they are computed again");
        }
        // Committing is worth the milliseconds; notes not yet indexed are found at the next start.
        if self.uncommitted == 0 || catch_index_panic(|| index.commit()).is_ok() {
            index.mark_clean();
        }
        *self.common.index.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Returns whether files of this kind are indexed.
fn is_searchable(kind: FileKind) -> bool {
    match kind {
        FileKind::Note | FileKind::Script => true,
        FileKind::Collection | FileKind::Attachment => false,
    }
}
