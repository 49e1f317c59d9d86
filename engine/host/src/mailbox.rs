//! Messages between threads: to the session's thread, to the workers, and to the writer.
//!
//! This module imports none of those threads, so that all of them can import it.

use crate::fs::confined_dir::ConfinedPath;
use crate::kernel::kernel_requests::{InquiryAnswer, KernelInquiry};
use anyhow::anyhow;
use engine::event::FileStamp;
use engine::{BatchNumber, Command, CommandError, Event, Session};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use store::disk::{DiskError, FileRow, RowWrite};
use store::{ActorId, BlobHash, DocId};

/// A query that's run on the session after each event until it returns true.
pub(crate) type SessionQuery = Box<dyn FnMut(&Session) -> bool + Send>;
type WakeCallback = Arc<dyn Fn() + Send + Sync>;

/// A message to the session's thread.
pub(crate) enum MailboxMessage {
    Event(Event),
    Command {
        command: Command,
        answer: Option<Sender<Result<u64, CommandError>>>,
    },
    Read(Box<dyn FnOnce(&Session) + Send>),
    Wait(SessionQuery),
    Job(Box<DiskJob>),
    /// Ask the note's kernel. The answer is `None` if there is none.
    AskKernel {
        note: DocId,
        inquiry: KernelInquiry,
        answer: Sender<Option<Receiver<InquiryAnswer>>>,
    },
    /// A kernel's process has ended. A spare process has no note.
    KernelEnded {
        note: Arc<OnceLock<DocId>>,
        number: u64,
        why: String,
    },
    Close,
}

/// Sends messages to the session's thread and wakes it.
#[derive(Clone)]
pub(crate) struct Mailbox {
    sender: Sender<MailboxMessage>,
    wake_callback: Arc<Mutex<Option<WakeCallback>>>,
}

impl Mailbox {
    /// Creates a mailbox with its receiver.
    pub(crate) fn channel() -> (Mailbox, Receiver<MailboxMessage>) {
        let (sender, messages) = channel();
        (Mailbox { sender, wake_callback: Arc::default() }, messages)
    }

    pub(crate) fn send(&self, message: MailboxMessage) {
        // Here and below: the receiver is gone only if the program ends.
        let _ = self.sender.send(message);
        self.wake();
    }

    /// Sets a callback that's called from any thread with each message.
    pub(crate) fn set_wake_callback(&self, wake: impl Fn() + Send + Sync + 'static) {
        if let Ok(mut slot) = self.wake_callback.lock() {
            *slot = Some(Arc::new(wake));
        }
    }

    /// Wakes the session's thread, usually the window's.
    pub(crate) fn wake(&self) {
        let wake = self.wake_callback.lock().ok().and_then(|wake| wake.clone());
        if let Some(wake) = wake {
            wake();
        }
    }

    pub(crate) fn send_event(&self, event: Event) {
        self.send(MailboxMessage::Event(event));
    }

    /// Reads the session's state on its thread. Returns `None` if the program is closing.
    pub(crate) fn read<R: Send + 'static>(&self, read: impl FnOnce(&Session) -> R + Send + 'static) -> Option<R> {
        let (answer, wait) = channel();
        self.send(MailboxMessage::Read(Box::new(move |session| {
            // Here and below: if the receiver is gone, nobody needs the result.
            let _ = answer.send(read(session));
        })));
        wait.recv().ok()
    }

    /// Calls `look` on the session now and after every event until it returns a value; `None` after `limit`.
    ///
    /// # Errors
    /// Returns an error if the program is closing.
    pub(crate) fn wait<R: Send + 'static>(
        &self,
        limit: Option<Duration>,
        mut look: impl FnMut(&Session) -> Option<R> + Send + 'static,
    ) -> Result<Option<R>, RecvError> {
        let (answer, wait) = channel();
        let until = limit.map(|limit| Instant::now() + limit);
        self.send(MailboxMessage::Wait(Box::new(move |session| {
            if let Some(found) = look(session) {
                let _ = answer.send(found);
                return true;
            }
            until.is_some_and(|until| Instant::now() > until + Duration::from_secs(1))
        })));
        let Some(limit) = limit else { return wait.recv().map(Some) };
        match wait.recv_timeout(limit) {
            Ok(found) => Ok(Some(found)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(RecvError),
        }
    }
}

/// A job for the disk workers.
pub(crate) enum DiskJob {
    Volume { volume: DocId },
    Files { volume: DocId, answer: Sender<Result<Vec<FileRow>, DiskError>> },
    ReadNote { note: DocId, volume: DocId, path: String, file: ConfinedPath },
    LoadNote { note: DocId },
    LoadSession { session: DocId },
    LoadRun { run: DocId },
    LoadRegistry { registry: DocId },
    ReadFile { note: DocId, file: ConfinedPath, known: Option<FileStamp> },
    WriteFile { note: DocId, file: ConfinedPath, expected: Option<BlobHash>, text: Arc<str> },
    Index { volume: DocId, note: DocId, text: Arc<str> },
    MoveFiles { moves: Vec<(ConfinedPath, ConfinedPath)>, emptied: Vec<ConfinedPath> },
    Discard { file: DocId, path: ConfinedPath },
    Marker { folder: PathBuf, volumes: Vec<(DocId, String, PathBuf)>, done: Sender<()> },
    Blob { hash: BlobHash, answer: Sender<Result<Vec<u8>, DiskError>> },
    Actors { answer: Sender<Result<BTreeSet<ActorId>, DiskError>> },
}

/// A task for the database writer.
pub(crate) enum WriterTask {
    /// Commit these writes after all earlier ones.
    Append { batch: BatchNumber, writes: Vec<RowWrite> },
    /// Give this job to the workers once all earlier writes are on disk.
    RunAfter(Box<DiskJob>),
    /// Commit these writes too. Nobody waits for them, and failures are ignored.
    AppendBestEffort { writes: Vec<RowWrite> },
    /// Store a blob and answer with its hash.
    Blob { bytes: Vec<u8>, answer: Sender<anyhow::Result<BlobHash>> },
    /// Commit pending writes, retrying for up to `patience`, then end.
    Close { patience: Duration },
}

/// Sends tasks to the database writer.
#[derive(Clone)]
pub(crate) struct StoreWriter {
    work: Sender<WriterTask>,
}

impl StoreWriter {
    /// Creates a sender for the writer's queue.
    pub(crate) fn new(work: Sender<WriterTask>) -> StoreWriter {
        StoreWriter { work }
    }

    /// Sends a task. Tasks sent after the writer has ended are dropped.
    pub(crate) fn send(&self, work: WriterTask) {
        let _ = self.work.send(work);
    }

    /// Stores a blob, waits until it's on disk, and returns its hash.
    pub(crate) fn store_blob(&self, bytes: Vec<u8>) -> anyhow::Result<BlobHash> {
        let (answer, wait) = channel();
        self.send(WriterTask::Blob { bytes, answer });
        wait.recv().unwrap_or_else(|_| Err(anyhow!("the program is closing")))
    }
}
