//! What threads send one another: messages to the session's thread, jobs to the workers, tasks to the writer. It
//! imports none of those threads, so that all of them can import it.

use crate::fs::confined_dir::ConfinedPath;
use anyhow::anyhow;
use engine::{BatchNumber, Command, CommandError, Event, Session};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use store::disk::{DiskError, FileRow, RowWrite};
use store::{ActorId, BlobHash, DocId};

/// Looks at the session after each event, until it has its answer.
pub(crate) type SessionQuery = Box<dyn FnMut(&Session) -> bool + Send>;
type WakeCallback = Arc<dyn Fn() + Send + Sync>;

/// What other threads put into the session's mailbox.
pub(crate) enum MailboxMessage {
    Event(Event),
    Command {
        command: Command,
        answer: Option<Sender<Result<u64, CommandError>>>,
    },
    Read(Box<dyn FnOnce(&Session) + Send>),
    Wait(SessionQuery),
    Job(Box<DiskJob>),
    /// The process of this number has ended. It has no note while it is a spare one.
    KernelEnded {
        note: Arc<OnceLock<DocId>>,
        number: u64,
        why: String,
    },
    Close,
}

/// Inbox of events; wakes the session's owner.
#[derive(Clone)]
pub(crate) struct Mailbox {
    sender: Sender<MailboxMessage>,
    wake_callback: Arc<Mutex<Option<WakeCallback>>>,
}

impl Mailbox {
    /// Makes an inbox with its receiver.
    pub(crate) fn channel() -> (Mailbox, Receiver<MailboxMessage>) {
        let (sender, messages) = channel();
        (Mailbox { sender, wake_callback: Arc::default() }, messages)
    }

    pub(crate) fn send(&self, message: MailboxMessage) {
        // Here and below: the receiver is gone only if the program ends.
        let _ = self.sender.send(message);
        self.wake();
    }

    /// Has this called, from any thread, with each message.
    pub(crate) fn set_wake_callback(&self, wake: impl Fn() + Send + Sync + 'static) {
        if let Ok(mut slot) = self.wake_callback.lock() {
            *slot = Some(Arc::new(wake));
        }
    }

    /// Wakes the window: something has arrived.
    pub(crate) fn wake(&self) {
        let wake = self.wake_callback.lock().ok().and_then(|wake| wake.clone());
        if let Some(wake) = wake {
            wake();
        }
    }

    pub(crate) fn send_event(&self, event: Event) {
        self.send(MailboxMessage::Event(event));
    }
}

/// One piece of work for the workers.
pub(crate) enum DiskJob {
    Volume { volume: DocId },
    Files { volume: DocId, answer: Sender<Result<Vec<FileRow>, DiskError>> },
    ReadNote { note: DocId, volume: DocId, path: String, file: ConfinedPath },
    LoadNote { note: DocId },
    LoadSession { session: DocId },
    LoadRun { run: DocId },
    LoadRegistry { registry: DocId },
    ReadFile { note: DocId, file: ConfinedPath },
    WriteFile { note: DocId, file: ConfinedPath, expected: Option<BlobHash>, text: Arc<str> },
    Index { volume: DocId, note: DocId, text: Arc<str> },
    MoveFiles { moves: Vec<(ConfinedPath, ConfinedPath)>, emptied: Vec<ConfinedPath> },
    Discard { file: DocId, path: ConfinedPath },
    Marker { folder: PathBuf, volumes: Vec<(DocId, String, PathBuf)>, done: Sender<()> },
    Blob { hash: BlobHash, answer: Sender<Result<Vec<u8>, DiskError>> },
    Actors { answer: Sender<Result<BTreeSet<ActorId>, DiskError>> },
}

/// A task for the writer.
pub(crate) enum WriterTask {
    /// Commit this after all before it.
    Append { batch: BatchNumber, writes: Vec<RowWrite> },
    /// Give this job to the workers once everything before it is on disk.
    RunAfter(Box<DiskJob>),
    /// Commits these writes too; nobody waits for them, and failures are ignored.
    AppendBestEffort { writes: Vec<RowWrite> },
    /// Stores a blob and answers with its hash.
    Blob { bytes: Vec<u8>, answer: Sender<anyhow::Result<BlobHash>> },
    /// Commit what waits, trying `patience` long, then end.
    Close { patience: Duration },
}

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct StoreWriter {
    work: Sender<WriterTask>,
}

impl StoreWriter {
    /// Over the queue that the writer takes from.
    pub(crate) fn new(work: Sender<WriterTask>) -> StoreWriter {
        StoreWriter { work }
    }

    /// Sends a task; after the writer's end, tasks are dropped.
    pub(crate) fn send(&self, work: WriterTask) {
        let _ = self.work.send(work);
    }

    /// Stores a blob and waits for it.
    pub(crate) fn store_blob(&self, bytes: Vec<u8>) -> anyhow::Result<BlobHash> {
        let (answer, wait) = channel();
        self.send(WriterTask::Blob { bytes, answer });
        wait.recv().unwrap_or_else(|_| Err(anyhow!("the program is closing")))
    }
}
