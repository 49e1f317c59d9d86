//! Access to the session from other threads. The command line and local socket connections use it.

use crate::kernel::kernel_requests::{InquiryAnswer, KernelInquiry};
use crate::mailbox::{Mailbox, MailboxMessage};
use engine::{Command, CommandError, Note, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use store::DocId;
use store::disk::{BlobFault, DiskError};

/// The program that owned the workspace has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerGone;

impl std::fmt::Display for OwnerGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program that has the workspace open is closing; try again")
    }
}

impl std::error::Error for OwnerGone {}

/// How long to wait for a disk that rejects writes.
const DISK_REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to write everything.
const SAVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval of checks for a rejected write.
const DISK_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Why waiting for an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The program that owned the workspace has ended.
    Gone,
    /// The disk rejects writes, with the reason.
    Refused(String),
}

impl From<OwnerGone> for WaitError {
    fn from(_: OwnerGone) -> WaitError {
        WaitError::Gone
    }
}

/// Why not everything is saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The session refused to save.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The program that owned the workspace has ended.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
    /// The disk rejects writes, or a note's file can't be written, with the reason.
    #[error("not everything could be saved yet: {0}")]
    Refused(String),
    /// It isn't saved yet.
    #[error("saving takes longer than it should; `tracebook doctor` looks at the disk")]
    Slow,
}

/// Why a blob can't be read.
#[derive(Debug, thiserror::Error)]
pub enum BlobReadError {
    /// The blob isn't on disk, or the disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The program that owned the workspace has ended.
    #[error(transparent)]
    Gone(#[from] OwnerGone),
}

impl BlobReadError {
    /// Returns whether the blob isn't on this device. Another device may have it.
    pub fn is_missing(&self) -> bool {
        matches!(self, BlobReadError::Disk(DiskError::Blob { what: BlobFault::Missing, .. }))
    }
}

/// Sends commands to the session and reads its state, from any thread.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inbox: Mailbox,
    pub(crate) folder: std::path::PathBuf,
    pub(crate) search: crate::search::SearchService,
    pub(crate) writer: crate::mailbox::StoreWriter,
    /// Whether a command was refused because the session is read-only.
    pub(crate) has_refused_writes: Arc<AtomicBool>,
    /// Notes that couldn't be saved before this handle's command began, with their revision at that time.
    pub(crate) stuck_notes: Arc<BTreeMap<DocId, u64>>,
}

impl Handle {
    /// Returns a handle for one command. Notes that can't be saved already, and that the command doesn't change, don't
    /// make it fail.
    ///
    /// # Errors
    /// Returns [`OwnerGone`] if the program is closing.
    pub fn for_command(&self) -> Result<Handle, OwnerGone> {
        let stuck = self.read(|session| {
            let stuck = session.notes().filter(|note| note.file.trouble.is_some());
            stuck.map(|note| (note.id, note.revision())).collect()
        })?;
        Ok(Handle { stuck_notes: Arc::new(stuck), ..self.clone() })
    }

    /// Returns whether a command was refused because the session is read-only.
    pub fn has_refused_writes(&self) -> bool {
        self.has_refused_writes.load(Ordering::Acquire)
    }

    /// Returns the workspace's folder.
    pub fn workspace_folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns the search service.
    pub fn search(&self) -> &crate::search::SearchService {
        &self.search
    }

    /// Performs a command. Returns the number of the last keystroke that it made, to wait for.
    ///
    /// # Errors
    /// Returns the session's rejection, or an error if the program is closing.
    pub fn run_command(&self, command: Command) -> Result<u64, CommandError> {
        let (answer, wait) = channel();
        self.inbox.send(MailboxMessage::Command { command, answer: Some(answer) });
        wait.recv().unwrap_or_else(|_| Err(CommandError(OwnerGone.to_string())))
    }

    /// Reads the session's state on its thread. Keep it short, because the window waits meanwhile.
    ///
    /// # Errors
    /// Returns [`OwnerGone`] if the program is closing.
    pub fn read<R: Send + 'static>(&self, read: impl FnOnce(&Session) -> R + Send + 'static) -> Result<R, OwnerGone> {
        self.inbox.read(read).ok_or(OwnerGone)
    }

    /// Calls `look` on the session now and after every event until it returns a value; `None` after `limit`.
    ///
    /// # Errors
    /// Returns [`OwnerGone`] if the program is closing.
    pub fn wait<R: Send + 'static>(
        &self,
        limit: Option<Duration>,
        look: impl FnMut(&Session) -> Option<R> + Send + 'static,
    ) -> Result<Option<R>, OwnerGone> {
        self.inbox.wait(limit, look).map_err(|_| OwnerGone)
    }

    /// Waits like [`Handle::wait`] for an operation that needs the disk, but not while the disk keeps rejecting writes.
    ///
    /// # Errors
    /// Returns [`WaitError`] if the disk rejects writes or the program is closing.
    pub fn wait_on_disk<R: Send + 'static>(
        &self,
        limit: Option<Duration>,
        look: impl Fn(&Session) -> Option<R> + Clone + Send + 'static,
    ) -> Result<Option<R>, WaitError> {
        let begun = Instant::now();
        let mut refused: Option<Instant> = None;
        loop {
            if let Some(found) = self.wait(Some(DISK_POLL_INTERVAL), look.clone())? {
                return Ok(Some(found));
            }
            let since = match self.read(|session| session.saving().trouble.clone())? {
                Some(why) if refused.is_some_and(|since| since.elapsed() > DISK_REFUSAL_TIMEOUT) => {
                    return Err(WaitError::Refused(why));
                }
                Some(_) => refused.or_else(|| Some(Instant::now())),
                None => None,
            };
            refused = since;
            if limit.is_some_and(|limit| begun.elapsed() > limit) {
                return Ok(None);
            }
        }
    }

    /// Waits until everything is saved in the database and in files.
    ///
    /// # Errors
    /// Returns [`SaveError`] if something can't be saved.
    pub fn wait_until_saved(&self) -> Result<(), SaveError> {
        self.run_command(Command::Save)?;
        let known = Arc::clone(&self.stuck_notes);
        let look = move |session: &Session| {
            let is_new = |note: &Note| known.get(&note.id) != Some(&note.revision());
            let trouble = session.saving().trouble.clone();
            let stuck = session.notes().filter(|note| is_new(note)).find_map(|note| note.file.trouble.clone());
            match trouble.or(stuck) {
                Some(why) => Some(Err(SaveError::Refused(why))),
                None => session.are_saved(is_new).then_some(Ok(())),
            }
        };
        self.wait(Some(SAVE_TIMEOUT), look)?.unwrap_or(Err(SaveError::Slow))
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// Returns an error if the blob is missing or damaged, or the program is closing.
    pub fn read_blob(&self, hash: store::BlobHash) -> Result<Vec<u8>, BlobReadError> {
        let (answer, wait) = channel();
        self.inbox.send(MailboxMessage::Job(Box::new(crate::mailbox::DiskJob::Blob { hash, answer })));
        Ok(wait.recv().map_err(|_| OwnerGone)??)
    }

    /// Asks a note's kernel a question that changes nothing; `None` if the note has no kernel.
    ///
    /// The answer arrives later, or never.
    ///
    /// # Errors
    /// Returns [`OwnerGone`] if the program is closing.
    pub fn ask_kernel(
        &self,
        note: DocId,
        inquiry: KernelInquiry,
    ) -> Result<Option<Receiver<InquiryAnswer>>, OwnerGone> {
        let (answer, wait) = channel();
        self.inbox.send(MailboxMessage::AskKernel { note, inquiry, answer });
        wait.recv().map_err(|_| OwnerGone)
    }

    /// Stores a blob, which is on disk when this returns.
    ///
    /// # Errors
    /// Returns an error if the disk fails or the program is closing.
    pub fn store_blob(&self, bytes: Vec<u8>) -> anyhow::Result<store::BlobHash> {
        self.writer.store_blob(bytes)
    }

    /// Converts an output to the form stored in a note. Parts too large for a document are stored as a blob.
    pub fn offload_large_output(&self, body: store::OutputBody) -> store::CellOutput {
        crate::kernel::kernel_messages::offload_large_output(&self.writer, body)
    }

    /// Asks the program that owns the workspace to close.
    pub fn close(&self) {
        self.inbox.send(MailboxMessage::Close);
    }
}
