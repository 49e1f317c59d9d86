//! Context of one call of `Session::apply`, and the error of a command that can't be carried out.

use crate::effect::Effect;
use crate::session::state::journal::{PendingBatch, SessionJournal};
use agent::notice::Notice;
use agent::schedule::ScheduleOutcome;
use rand_core::RngCore;
use std::collections::VecDeque;
use store::disk::RowWrite;
use store::{DocId, StoreError};
use text::time::UnixMillis;

/// A rejected command, with a sentence for the user that says what happened, to what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(pub String);

/// Why changes from another device are rejected: a clause for the log and for the device.
#[derive(Debug, thiserror::Error)]
pub(in crate::session) enum RemoteChangeError {
    #[error("it belongs to nothing that is shared")]
    NotShared,
    #[error("its volume is closed")]
    VolumeClosed,
    #[error("its volume has no folder on this device")]
    NoFolder,
    #[error("the note no longer exists")]
    NoteGone,
    #[error("{why}: {path}")]
    ReadOnly { why: String, path: String },
    /// The document on this device can't be read; contains the error of reading it.
    #[error("{0}")]
    Unreadable(String),
    #[error("it cannot be read")]
    NotOpen,
    #[error("it does not say what it is")]
    NoMetadata,
    #[error("a {what} names another volume than the one that lists it")]
    OtherVolume { what: &'static str },
    #[error(transparent)]
    Document(#[from] StoreError),
}

/// A request of one aggregate to another that its own handlers don't know. `Session::apply` passes it on before it
/// returns.
#[derive(Debug)]
pub(in crate::session) enum SessionRequest {
    /// Compares a volume's document, which was loaded, with what other devices have said of its files.
    SyncLoadedVolume {
        /// The volume whose document was loaded.
        volume: DocId,
    },
    /// Retries changes of files from other devices that couldn't be carried out.
    RetryRemoteChanges {
        /// The volume of the files, if it's known.
        volume: Option<DocId>,
        /// The reason.
        why: String,
    },
    /// Ensures that a volume's memory has a place, which may be outside of the volume's folder.
    OpenMemory {
        /// The volume whose memory is opened.
        volume: DocId,
    },
    /// Reports that the work started by a schedule has ended.
    FinishSchedule {
        /// The schedule that started the work.
        schedule: DocId,
        /// How the work ended.
        outcome: ScheduleOutcome,
    },
}

/// Context of one call of `apply`: time, randomness, collected effects, requests, and the journal.
pub(in crate::session) struct ApplyContext<'a> {
    pub(in crate::session) now: UnixMillis,
    pub(in crate::session) rng: &'a mut dyn RngCore,
    pub(in crate::session) effects: Vec<Effect>,
    /// Requests of aggregates to each other, in order.
    pub(in crate::session) requests: VecDeque<SessionRequest>,
    /// The journal, shared by all aggregates.
    pub(in crate::session) journal: &'a mut SessionJournal,
    /// Number of effects that the sync outbox has already processed.
    pub(in crate::session) tracked_effects: usize,
}

impl<'a> ApplyContext<'a> {
    pub(in crate::session) fn new(
        now: UnixMillis,
        rng: &'a mut dyn RngCore,
        journal: &'a mut SessionJournal,
    ) -> ApplyContext<'a> {
        ApplyContext { now, rng, effects: Vec::new(), requests: VecDeque::new(), journal, tracked_effects: 0 }
    }

    /// Returns a new id for a step or a message. Later ids sort after earlier ones, even within a millisecond.
    pub(in crate::session) fn next_id(&mut self) -> u64 {
        self.journal.last_issued_id += 1;
        let time = u64::try_from(self.now.0).unwrap_or(0) << 22;
        time | (self.journal.last_issued_id & 0x3ff) << 12 | (self.rng.next_u64() & 0xfff)
    }

    /// Sends writes to the disk. Once they're committed, the file of the note in `mirror` may be written.
    pub(in crate::session) fn append_writes(&mut self, writes: Vec<RowWrite>, mirror: Option<DocId>) {
        self.append_writes_then(writes, mirror, Vec::new());
    }

    /// Sends writes to the disk, and `then` once they're committed.
    pub(in crate::session) fn append_writes_then(
        &mut self,
        writes: Vec<RowWrite>,
        mirror: Option<DocId>,
        then: Vec<RowWrite>,
    ) {
        let batch = self.journal.next_batch;
        self.journal.next_batch += 1;
        self.journal.in_flight.push_back(PendingBatch { batch, upto: self.journal.saving.last, mirror, then });
        self.effects.push(Effect::Append { batch, writes });
    }

    /// Requests a tick at `at`, unless one is already requested.
    pub(in crate::session) fn wake_at(&mut self, at: UnixMillis) {
        if self.journal.wake.is_none_or(|wake| at < wake) {
            self.journal.wake = Some(at);
            self.effects.push(Effect::Wake { at });
        }
    }

    /// Publishes a notice.
    pub(in crate::session) fn notify(&mut self, notice: Notice) {
        self.journal.notices.publish(self.now, notice);
    }
}
