//! The journal, which all aggregates write to: batches for the disk, notices, problems, and the next wake-up.

use crate::records::saving::{BatchNumber, SaveStatus};
use agent::notice::RecentNotices;
use std::collections::VecDeque;
use store::DocId;
use store::disk::RowWrite;
use text::time::UnixMillis;

/// Follow-up work for when a batch is on disk.
#[derive(Debug)]
pub(in crate::session) struct PendingBatch {
    pub(in crate::session) batch: BatchNumber,
    pub(in crate::session) upto: u64,
    pub(in crate::session) mirror: Option<DocId>,
    pub(in crate::session) then: Vec<RowWrite>,
}

/// Batches, notices and problems of all aggregates.
#[derive(Debug)]
pub(in crate::session) struct SessionJournal {
    pub(in crate::session) saving: SaveStatus,
    pub(in crate::session) in_flight: VecDeque<PendingBatch>,
    pub(in crate::session) next_batch: BatchNumber,
    /// Time of the requested wake-up, if any.
    pub(in crate::session) wake: Option<UnixMillis>,
    pub(in crate::session) notices: RecentNotices,
    /// Problems to report to the user.
    pub(in crate::session) problems: Vec<String>,
    /// Number of ids given to steps and messages so far.
    pub(in crate::session) last_issued_id: u64,
}

impl Default for SessionJournal {
    fn default() -> Self {
        SessionJournal {
            saving: SaveStatus::default(),
            in_flight: VecDeque::new(),
            next_batch: 1,
            wake: None,
            notices: RecentNotices::default(),
            problems: Vec::new(),
            last_issued_id: 0,
        }
    }
}
