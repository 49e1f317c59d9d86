//! Search: one thread keeps the index in step with what is on disk and fills in meanings when nothing else is to do,
//! another answers questions. The index is never the truth: what is damaged is thrown away and made again.
//!
//! It follows the writer: a batch is told of here once it is durable, so nothing is indexed before it is on disk. What
//! happened while nobody looked is seen by comparing, for each note, the key that stands in the index with the row of
//! its file.

mod beside;
mod desk;
mod elsewhere;
mod keeper;
pub(crate) mod mentions;
mod model;
pub(crate) mod passages;
mod recall;
mod till;

pub use index::{
    Answer, Ask, Counts, Hit, Kind, Mode, NoteText, Passage, Query, Tuning, Why, excerpt, marks, vocabulary,
};

pub(crate) use beside::Beside;
pub use model::Wanted;
pub use models::{Choice, Download, Known, Runtime, known, known_rerankers};
pub use recall::{Filters, Further, Recalled};

use crate::driver::Inbox;
use index::{Index, IndexError};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use store::DocId;
use store::disk::{FileRow, Reader, Write};

/// The index lies in this folder of the workspace.
pub const FOLDER: &str = "index";

/// How the index stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freshness {
    /// Whether it has seen all that is on disk once.
    pub complete: bool,
    /// Notes that wait to be indexed.
    pub waiting: usize,
    /// Notes in it.
    pub notes: usize,
    /// Counts its changes: who asked before one may ask again.
    pub revision: u64,
    /// Passages without a meaning yet, and all of them.
    pub meanings: (usize, usize),
    /// What is wrong with it, with what to do.
    pub trouble: Option<String>,
    /// What was found wrong and mended.
    pub mended: Option<String>,
    /// The sentence model whose vectors answer.
    pub answering: Choice,
    /// The one that is wanted, while its vectors are being made.
    pub growing: Option<Choice>,
    /// What of a model is being downloaded.
    pub download: Option<Download>,
    /// Whether no vectors are made for now.
    pub paused: bool,
    /// Why hits are not read once more, although that is wanted.
    pub reranker: Option<String>,
    /// Why questions are answered by words alone, although meanings are there.
    pub words_alone: Option<String>,
}

/// A volume as the index knows it: id, name, folder.
type Mounted = (DocId, String, PathBuf);

/// What the thread of the index is told.
enum Task {
    Volumes(Vec<Mounted>),
    Written(Vec<Written>),
    /// Answer once all that was told before is found.
    Settle(Sender<Result<(), String>>),
    /// Answer once every meaning is there.
    Meanings(Sender<Result<(), String>>),
    Rebuild(Sender<Result<(), String>>),
    Verify(Sender<Result<Vec<String>, String>>),
    /// The model was loaded for a question: look when it is to be given back.
    Loaded,
    /// The settings say this about meaning.
    Want(Wanted),
    /// Documents beside notes that are to be found.
    Further(Box<dyn Further>),
    Close(Sender<()>),
}

/// What of a durable batch concerns the index.
enum Written {
    File(FileRow),
    FileGone { volume: DocId, path: String },
    Note(DocId),
    Doc(DocId),
}

/// A question and where its answer goes.
struct Question {
    ask: Ask,
    related: Option<DocId>,
    answer: Sender<Result<Answer, String>>,
    told: Box<dyn Fn() + Send>,
}

/// What both threads have in common.
struct Common {
    index: RwLock<Option<Arc<Index>>>,
    freshness: Arc<Mutex<Freshness>>,
    models: model::Models,
    /// The notes that the user starred.
    starred: Mutex<Arc<HashSet<DocId>>>,
    /// Set when an answer met damage: the index is to be looked at.
    suspect: Mutex<Option<String>>,
    /// Who pays for endpoints.
    till: Arc<till::Till>,
}

impl Common {
    fn new(till: till::Till) -> Common {
        Common {
            index: RwLock::default(),
            freshness: Arc::default(),
            models: model::Models::default(),
            starred: Mutex::default(),
            suspect: Mutex::default(),
            till: Arc::new(till),
        }
    }

    fn index(&self) -> Option<Arc<Index>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn starred(&self) -> Arc<HashSet<DocId>> {
        self.starred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn freshness(&self, change: impl FnOnce(&mut Freshness)) {
        change(&mut self.freshness.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The way to the index.
#[derive(Clone)]
pub struct Search {
    tasks: Sender<Task>,
    questions: Sender<Question>,
    common: Arc<Common>,
}

impl Search {
    /// Starts both threads; they do nothing of note until something is asked or a moment has passed. With the
    /// workspace's folder, and whether the index is copied elsewhere, as nothing can be written there.
    pub(crate) fn start(
        (folder, elsewhere): (PathBuf, bool),
        reader: Box<dyn Reader>,
        volumes: Vec<Mounted>,
        settings: &engine::Settings,
        inbox: Inbox,
    ) -> Search {
        let common = Arc::new(Common::new(till::Till::new(folder.clone(), inbox)));
        let (tasks, queue) = channel();
        let (questions, asked) = channel();
        let search = Search { tasks, questions, common: common.clone() };
        search.volumes(volumes);
        search.settings(settings);
        let keeper = keeper::Keeper::new((folder, elsewhere), reader, common.clone());
        std::thread::spawn(move || keeper.run(&queue));
        let tasks = search.tasks.clone();
        std::thread::spawn(move || desk::answer(&asked, &tasks, &common));
        search
    }

    /// The volumes are these now.
    pub(crate) fn volumes(&self, volumes: Vec<Mounted>) {
        let _ = self.tasks.send(Task::Volumes(volumes));
    }

    /// The settings are these now.
    pub(crate) fn settings(&self, settings: &engine::Settings) {
        let (wanted, wrong) = Wanted::of(settings);
        if let Some(why) = wrong {
            self.common.freshness(|fresh| fresh.trouble = Some(why));
        }
        let starred = Arc::new(settings.starred.iter().copied().collect());
        *self.common.starred.lock().unwrap_or_else(PoisonError::into_inner) = starred;
        let _ = self.tasks.send(Task::Want(wanted));
    }

    /// These writes are on disk.
    pub(crate) fn written(&self, writes: &[Write]) {
        let concerns = |write: &Write| match write {
            Write::Journal { note, .. } | Write::Block { note, .. } => Some(Written::Note(*note)),
            Write::Chunk { doc, .. } => Some(Written::Doc(*doc)),
            Write::File(row) => Some(Written::File(row.clone())),
            Write::FileGone { volume, path } => Some(Written::FileGone { volume: *volume, path: path.clone() }),
            Write::JournalDone { .. }
            | Write::Snapshot { .. }
            | Write::DropChunks { .. }
            | Write::Meta { .. }
            | Write::Ahead { .. }
            | Write::Actor { .. }
            | Write::SetAside { .. }
            | Write::SetAsideJournal { .. }
            | Write::Forget { .. } => None,
        };
        let concerned: Vec<Written> = writes.iter().filter_map(concerns).collect();
        if !concerned.is_empty() {
            let _ = self.tasks.send(Task::Written(concerned));
        }
    }

    /// Asks; the answer comes by the receiver, and `told` is called when it is there. While the last word is being
    /// typed there may be two: by words at once, by meaning too a moment later.
    pub fn ask(&self, ask: Ask, told: impl Fn() + Send + 'static) -> Receiver<Result<Answer, String>> {
        let (answer, wait) = channel();
        let _ = self.questions.send(Question { ask, related: None, answer, told: Box::new(told) });
        wait
    }

    /// Asks for notes that are related to one.
    pub fn related(
        &self,
        note: DocId,
        limit: usize,
        told: impl Fn() + Send + 'static,
    ) -> Receiver<Result<Answer, String>> {
        let (answer, wait) = channel();
        let ask = Ask { limit, ..Ask::default() };
        let _ = self.questions.send(Question { ask, related: Some(note), answer, told: Box::new(told) });
        wait
    }

    /// Asks and waits.
    ///
    /// # Errors
    /// A sentence: the index is damaged and being made again, or cannot be made.
    pub fn find(&self, ask: Ask) -> Result<Answer, String> {
        self.ask(ask, || {}).recv().unwrap_or_else(|_| Err(closing()))
    }

    /// How it stands.
    pub fn freshness(&self) -> Freshness {
        self.common.freshness.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much is in it.
    ///
    /// # Errors
    /// A sentence: it is damaged.
    pub fn counts(&self) -> Result<Counts, String> {
        let index = self.common.index().ok_or_else(|| "the search index is not open".to_owned())?;
        index.counts().map_err(|error| error.to_string())
    }

    /// Waits until all that is on disk now is found.
    ///
    /// # Errors
    /// A sentence: the index cannot be made or written, or it takes longer than `limit`.
    pub fn settle(&self, limit: Duration) -> Result<(), String> {
        self.wait(Task::Settle, limit)
    }

    /// Waits until every passage is found by its meaning.
    ///
    /// # Errors
    /// As for [`Search::settle`].
    pub fn meanings(&self, limit: Duration) -> Result<(), String> {
        self.wait(Task::Meanings, limit)
    }

    /// Throws the index away and makes it again.
    ///
    /// # Errors
    /// As for [`Search::settle`].
    pub fn rebuild(&self, limit: Duration) -> Result<(), String> {
        self.wait(Task::Rebuild, limit)
    }

    /// Brings a reranker here, with a download if it must be; blocks.
    ///
    /// # Errors
    /// A sentence: no such reranker, no ONNX Runtime, no network.
    pub fn fetch_reranker(&self, name: &str) -> Result<(), String> {
        self.common.fetch_reranker(name)
    }

    /// Looks at every byte of it. What is wrong, in words; it is mended afterwards.
    ///
    /// # Errors
    /// As for [`Search::settle`].
    pub fn verify(&self, limit: Duration) -> Result<Vec<String>, String> {
        self.wait(Task::Verify, limit)
    }

    fn wait<R>(&self, task: impl FnOnce(Sender<Result<R, String>>) -> Task, limit: Duration) -> Result<R, String> {
        let (answer, wait) = channel();
        let _ = self.tasks.send(task(answer));
        match wait.recv_timeout(limit) {
            Ok(result) => result,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                Err("the search index is still being made; try again in a while".to_owned())
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Err(closing()),
        }
    }

    /// From now on no endpoint is called. Returns whether a call is still under way.
    pub(crate) fn stop_paying(&self) -> bool {
        self.common.till.close()
    }

    /// Ends, leaving an index that need not be looked through at the next start.
    pub(crate) fn close(&self) {
        let (answer, wait) = channel();
        let _ = self.tasks.send(Task::Close(answer));
        let _ = wait.recv_timeout(Duration::from_secs(3)); // without it the next start looks through the index
    }
}

fn closing() -> String {
    "the program is closing".to_owned()
}

/// Runs what reads the index: what a damaged file makes of it is an error like others.
fn guarded<R>(what: impl FnOnce() -> Result<R, IndexError>) -> Result<R, IndexError> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
    caught.unwrap_or_else(|_| Err(IndexError { what: "cannot be read", why: "it is damaged".to_owned(), disk: false }))
}
