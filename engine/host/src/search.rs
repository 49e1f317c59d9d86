//! Search service: one thread keeps the index in sync with the disk and computes embeddings when idle, another one
//! answers queries. The index is never the source of truth: if it's damaged, it's deleted and rebuilt.
//!
//! It follows the writer: a batch is reported here once it's durable, so nothing is indexed before it's on disk.
//! Changes made in the meantime are found by comparing each note's key in the index with the row of its file.

mod agent_search;
mod embedding_models;
pub(crate) mod exact_search;
mod index_copy;
pub(crate) mod index_documents;
mod indexer;
mod query_thread;
mod run_indexing;
mod spend_guard;
pub(crate) mod unlinked_mentions;

pub use exact_search::{ExactMatch, ExactSearch, MAX_EXACT_MATCHES, NoteMatches};
pub use index::{
    FusionGate, GATE_SIGNALS, HitReason, IndexCounts, IndexedPassage, NoteHit, NoteText, ParsedQuery, PassageKind,
    RankingWeights, SearchAnswer, SearchFilters, SearchMode, SearchRequest, excerpt, highlight_ranges,
    vocabulary_words,
};

pub use agent_search::{RecalledPassage, SearchSource};
pub use embedding_models::EmbeddingChoice;
pub use models::{
    DownloadProgress, EmbedderChoice, EmbedderChoiceError, KnownModel, OnnxRuntime, known_models, known_rerankers,
    test_embedder,
};
pub(crate) use run_indexing::RunDocumentReader;

use crate::mailbox::Mailbox;
use anyhow::{Context, anyhow};
use index::{FullTextIndex, IndexError};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use store::DocId;
use store::disk::{DiskReader, FileRow, RowWrite};

/// Name of the index's folder in the workspace.
pub const INDEX_FOLDER: &str = "index";

/// State of the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexFreshness {
    /// Whether it has covered everything on disk once.
    pub complete: bool,
    /// Number of notes waiting to be indexed.
    pub waiting: usize,
    /// Number of indexed notes.
    pub notes: usize,
    /// Counter of changes: when it grows, a query may have new results.
    pub revision: u64,
    /// Number of passages without an embedding, and number of all passages.
    pub meanings: (usize, usize),
    /// An error of the index, with what to do.
    pub error: Option<String>,
    /// Problems that were found and repaired.
    pub repair_notice: Option<String>,
    /// The embedding model whose vectors answer queries.
    pub answering_model: EmbedderChoice,
    /// The chosen model, while its vectors are still being computed.
    pub pending_model: Option<EmbedderChoice>,
    /// Download progress of a model.
    pub download: Option<DownloadProgress>,
    /// Whether computing vectors is paused.
    pub paused: bool,
    /// Why hits aren't reranked although a reranker is chosen.
    pub reranker: Option<String>,
    /// Why queries use words only, although vectors exist.
    pub words_only_reason: Option<String>,
}

/// A volume in the index: id, name, folder.
type IndexedVolume = (DocId, String, PathBuf);

/// A task for the indexing thread.
enum IndexTask {
    Volumes(Vec<IndexedVolume>),
    Written(Vec<IndexedWrite>),
    /// Answers once everything reported before can be found.
    WaitUntilIndexed(Sender<anyhow::Result<()>>),
    /// Answers once all vectors are computed.
    WaitUntilEmbedded(Sender<anyhow::Result<()>>),
    Rebuild(Sender<anyhow::Result<()>>),
    Verify(Sender<anyhow::Result<Vec<String>>>),
    /// A model was loaded for a query: check when to unload it.
    Loaded,
    /// The settings' choice of embedding model and reranker.
    SetChoice(EmbeddingChoice),
    /// Documents other than notes to index.
    AddSource(Box<dyn SearchSource>),
    Close(Sender<()>),
}

/// A write of a durable batch that affects the index.
enum IndexedWrite {
    File(FileRow),
    FileGone { volume: DocId, path: String },
    Note(DocId),
    Doc(DocId),
}

/// A query, and the channel for its answer.
struct SearchQuestion {
    ask: SearchRequest,
    related: Option<DocId>,
    answer: Sender<anyhow::Result<SearchAnswer>>,
    on_answer: Box<dyn Fn() + Send>,
}

/// State shared by both threads.
struct SharedIndex {
    /// The workspace's folder.
    folder: PathBuf,
    index: RwLock<Option<Arc<FullTextIndex>>>,
    freshness: Arc<Mutex<IndexFreshness>>,
    models: embedding_models::EmbeddingModels,
    /// The notes that the user starred.
    starred: Mutex<Arc<HashSet<DocId>>>,
    /// Set if a query found damage, so that the index is rebuilt.
    suspected_damage: Mutex<Option<String>>,
    /// Names of the forks, each with the name of the volume that it's a copy of.
    forks: Mutex<Arc<BTreeMap<String, String>>>,
    /// Budget check for paid endpoints.
    spend_guard: Arc<spend_guard::SpendGuard>,
}

impl SharedIndex {
    fn new(folder: PathBuf, spend_guard: spend_guard::SpendGuard) -> SharedIndex {
        SharedIndex {
            folder,
            index: RwLock::default(),
            freshness: Arc::default(),
            models: embedding_models::EmbeddingModels::default(),
            starred: Mutex::default(),
            suspected_damage: Mutex::default(),
            forks: Mutex::default(),
            spend_guard: Arc::new(spend_guard),
        }
    }

    fn index(&self) -> Option<Arc<FullTextIndex>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn starred(&self) -> Arc<HashSet<DocId>> {
        self.starred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update_freshness(&self, change: impl FnOnce(&mut IndexFreshness)) {
        change(&mut self.freshness.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Handle to the search threads. Clones share them.
#[derive(Clone)]
pub struct SearchService {
    tasks: Sender<IndexTask>,
    questions: Sender<SearchQuestion>,
    common: Arc<SharedIndex>,
}

impl SearchService {
    /// Starts both threads; they do little until a query arrives or a moment has passed. Takes the workspace's folder,
    /// and whether the index must be copied elsewhere because the folder isn't writable.
    pub(crate) fn start(
        (folder, elsewhere): (PathBuf, bool),
        reader: Box<dyn DiskReader>,
        (volumes, forks): (Vec<IndexedVolume>, BTreeMap<String, String>),
        settings: &engine::Settings,
        inbox: Mailbox,
    ) -> SearchService {
        let common = Arc::new(SharedIndex::new(folder.clone(), spend_guard::SpendGuard::new(folder.clone(), inbox)));
        let (tasks, queue) = channel();
        let (questions, asked) = channel();
        let search = SearchService { tasks, questions, common: common.clone() };
        search.set_volumes(volumes, forks);
        search.apply_settings(settings);
        let indexer = indexer::Indexer::new((folder, elsewhere), reader, common.clone());
        std::thread::spawn(move || indexer.run(&queue));
        let tasks = search.tasks.clone();
        std::thread::spawn(move || query_thread::run_query_thread(&asked, &tasks, &common));
        search
    }

    /// Sets the volumes to index, and which of them are forks.
    pub(crate) fn set_volumes(&self, volumes: Vec<IndexedVolume>, forks: BTreeMap<String, String>) {
        *self.common.forks.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(forks);
        // Here and below: sending fails only when the program or the connection ends.
        let _ = self.tasks.send(IndexTask::Volumes(volumes));
    }

    /// Applies the settings that concern search.
    pub(crate) fn apply_settings(&self, settings: &engine::Settings) {
        let (wanted, wrong) = EmbeddingChoice::from_settings(settings);
        if let Some(why) = wrong {
            self.common.update_freshness(|fresh| fresh.error = Some(why));
        }
        let starred = Arc::new(settings.starred.iter().copied().collect());
        *self.common.starred.lock().unwrap_or_else(PoisonError::into_inner) = starred;
        let _ = self.tasks.send(IndexTask::SetChoice(wanted));
    }

    /// Queues the index updates for writes that are durable.
    pub(crate) fn note_writes(&self, writes: &[RowWrite]) {
        let concerns = |write: &RowWrite| match write {
            RowWrite::Journal { note, .. } | RowWrite::Block { note, .. } => Some(IndexedWrite::Note(*note)),
            RowWrite::Chunk { doc, .. } => Some(IndexedWrite::Doc(*doc)),
            RowWrite::File(row) => Some(IndexedWrite::File(row.clone())),
            RowWrite::RemoveFile { volume, path } => {
                Some(IndexedWrite::FileGone { volume: *volume, path: path.clone() })
            }
            RowWrite::JournalDone { .. }
            | RowWrite::Snapshot { .. }
            | RowWrite::DropChunks { .. }
            | RowWrite::Meta { .. }
            | RowWrite::NoteAhead { .. }
            | RowWrite::Actor { .. }
            | RowWrite::QuarantineChunk { .. }
            | RowWrite::QuarantineJournal { .. }
            | RowWrite::DeleteDocument { .. } => None,
        };
        let concerned: Vec<IndexedWrite> = writes.iter().filter_map(concerns).collect();
        if !concerned.is_empty() {
            let _ = self.tasks.send(IndexTask::Written(concerned));
        }
    }

    /// Sends a query; the answer arrives at the receiver, and `told` is called then. While the last word is being typed
    /// there may be two answers: by words at once, and by meaning a moment later.
    pub fn ask(&self, ask: SearchRequest, told: impl Fn() + Send + 'static) -> Receiver<anyhow::Result<SearchAnswer>> {
        let (answer, wait) = channel();
        let _ = self.questions.send(SearchQuestion { ask, related: None, answer, on_answer: Box::new(told) });
        wait
    }

    /// Searches for notes that are related to this one, in all volumes or in one.
    pub fn find_related(
        &self,
        note: DocId,
        (limit, volume): (usize, Option<String>),
        told: impl Fn() + Send + 'static,
    ) -> Receiver<anyhow::Result<SearchAnswer>> {
        let (answer, wait) = channel();
        let ask = SearchRequest { limit, volume, ..SearchRequest::default() };
        let _ = self.questions.send(SearchQuestion { ask, related: Some(note), answer, on_answer: Box::new(told) });
        wait
    }

    /// Sends a query, and waits for the answer.
    ///
    /// # Errors
    /// Returns a message if the index is damaged and being rebuilt, or can't be created.
    pub fn search_blocking(&self, ask: SearchRequest) -> anyhow::Result<SearchAnswer> {
        self.ask(ask, || {}).recv().unwrap_or_else(|_| Err(closing_error()))
    }

    /// Returns how current the index is.
    pub fn freshness(&self) -> IndexFreshness {
        self.common.freshness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the size of the index.
    ///
    /// # Errors
    /// Returns a message if the index isn't open or is damaged.
    pub fn counts(&self) -> anyhow::Result<IndexCounts> {
        let index = self.common.index().context("the search index is not open")?;
        Ok(index.counts()?)
    }

    /// Waits until everything that is on disk now can be found.
    ///
    /// # Errors
    /// Returns a message if the index can't be created or written, or if it takes longer than `limit`.
    pub fn wait_until_indexed(&self, limit: Duration) -> anyhow::Result<()> {
        self.wait_for_task(IndexTask::WaitUntilIndexed, limit)
    }

    /// Waits until every passage has an embedding.
    ///
    /// # Errors
    /// As for [`SearchService::wait_until_indexed`].
    pub fn wait_until_embedded(&self, limit: Duration) -> anyhow::Result<()> {
        self.wait_for_task(IndexTask::WaitUntilEmbedded, limit)
    }

    /// Deletes the index and builds it again.
    ///
    /// # Errors
    /// As for [`SearchService::wait_until_indexed`].
    pub fn rebuild(&self, limit: Duration) -> anyhow::Result<()> {
        self.wait_for_task(IndexTask::Rebuild, limit)
    }

    /// Loads a reranker, downloading it if necessary; blocks.
    ///
    /// # Errors
    /// Returns a message if there is no such reranker, no ONNX Runtime or no network.
    pub fn download_reranker(&self, name: &str) -> anyhow::Result<()> {
        self.common.download_reranker(name)
    }

    /// Verifies every byte and returns the problems, which are repaired afterwards.
    ///
    /// # Errors
    /// As for [`SearchService::wait_until_indexed`].
    pub fn verify(&self, limit: Duration) -> anyhow::Result<Vec<String>> {
        self.wait_for_task(IndexTask::Verify, limit)
    }

    fn wait_for_task<R>(
        &self,
        task: impl FnOnce(Sender<anyhow::Result<R>>) -> IndexTask,
        limit: Duration,
    ) -> anyhow::Result<R> {
        let (answer, wait) = channel();
        let _ = self.tasks.send(task(answer));
        match wait.recv_timeout(limit) {
            Ok(result) => result,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                Err(anyhow!("the search index is still being made; try again in a while"))
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Err(closing_error()),
        }
    }

    /// Stops calls of paid endpoints. Returns whether a call is still pending.
    pub(crate) fn stop_paid_calls(&self) -> bool {
        self.common.spend_guard.stop_calls()
    }

    /// Stops the indexing thread, leaving an index that needn't be verified at the next start.
    pub(crate) fn close(&self) {
        let (answer, wait) = channel();
        let _ = self.tasks.send(IndexTask::Close(answer));
        let _ = wait.recv_timeout(Duration::from_secs(3)); // without it the next start looks through the index
    }
}

fn closing_error() -> anyhow::Error {
    anyhow!("the program is closing")
}

/// Runs code that reads the index, and turns a panic caused by a damaged file into an error.
fn catch_index_panic<R>(what: impl FnOnce() -> Result<R, IndexError>) -> Result<R, IndexError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
    caught.unwrap_or_else(|_| Err(IndexError { what: "cannot be read", why: "it is damaged".to_owned(), disk: false }))
}
