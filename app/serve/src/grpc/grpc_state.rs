//! What gRPC requests share.

use super::agent_mailbox::AgentMailbox;
use super::task_names::TaskNames;
use crate::approval_requests::ApprovalRequests;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

/// Maximum number of runs and event feeds that are followed at the same time.
const MAX_WATCH_STREAMS: usize = 64;

/// What gRPC requests share.
pub(crate) struct GrpcState {
    pub(crate) approvals: ApprovalRequests,
    pub(super) mailbox: AgentMailbox,
    pub(super) names: TaskNames,
    /// One permit for each run or event feed that is followed.
    watches: Arc<Semaphore>,
}

impl GrpcState {
    pub(crate) fn new(approvals: ApprovalRequests) -> GrpcState {
        GrpcState {
            approvals,
            mailbox: AgentMailbox::default(),
            names: TaskNames::default(),
            watches: Arc::new(Semaphore::new(MAX_WATCH_STREAMS)),
        }
    }

    /// Returns the permit to follow a run or events.
    pub(super) fn watch_permit(&self) -> Result<OwnedSemaphorePermit, Status> {
        let why = format!("{MAX_WATCH_STREAMS} runs and events are followed already; end one, and try again");
        self.watches.clone().try_acquire_owned().map_err(|_| Status::resource_exhausted(why))
    }
}
