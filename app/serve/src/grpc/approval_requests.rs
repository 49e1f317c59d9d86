//! Approvals that programs ask for. Whoever has a token with the scope `approve` decides them, over REST or gRPC.

use crate::clock::unix_millis;
use crate::pending_approval::PendingApproval;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a request waits for a decision.
const DECISION_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Maximum number of requests that wait.
const MAX_WAITING_REQUESTS: usize = 200;

/// A decision and its comment.
pub(super) type TakenDecision = (bool, String);

struct WaitingRequest {
    /// Tells it from a later one with the same id.
    serial: u64,
    /// The only volume of the asking token.
    volume: Option<String>,
    about: PendingApproval,
    answer: oneshot::Sender<TakenDecision>,
}

/// Why a request was not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestRefusal {
    /// A request with its id waits.
    #[error("a request with this action_id waits already")]
    Taken,
    /// Too many wait.
    #[error("{MAX_WAITING_REQUESTS} requests wait for a decision; try again later")]
    Full,
    /// Time is over.
    #[error("nobody decided within an hour")]
    TimedOut,
}

/// The requests that wait. They don't survive the server.
#[derive(Clone, Default)]
pub(crate) struct ApprovalRequests(Arc<Mutex<Vec<WaitingRequest>>>);

/// Takes a request back when the program that asked is gone.
struct RequestHold {
    requests: ApprovalRequests,
    serial: u64,
}

impl Drop for RequestHold {
    fn drop(&mut self) {
        self.requests.waiting().retain(|request| request.serial != self.serial);
    }
}

impl ApprovalRequests {
    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the decision.
    pub(super) async fn ask(
        &self,
        volume: Option<String>,
        mut about: PendingApproval,
    ) -> Result<TakenDecision, RequestRefusal> {
        let (answer, decided) = oneshot::channel();
        about.asked = unix_millis();
        about.expires = about.asked.saturating_add(i64::try_from(DECISION_TIMEOUT.as_millis()).unwrap_or(i64::MAX));
        let serial = rand::random();
        {
            let mut waiting = self.waiting();
            if waiting.iter().any(|request| request.about.action_id == about.action_id) {
                return Err(RequestRefusal::Taken);
            }
            if waiting.len() >= MAX_WAITING_REQUESTS {
                return Err(RequestRefusal::Full);
            }
            waiting.push(WaitingRequest { serial, volume, about, answer });
        }
        let _hold = RequestHold { requests: self.clone(), serial };
        match tokio::time::timeout(DECISION_TIMEOUT, decided).await {
            Ok(Ok(decision)) => Ok(decision),
            Ok(Err(_)) | Err(_) => Err(RequestRefusal::TimedOut),
        }
    }

    /// Returns the requests that a token with this volume can see.
    pub(crate) fn list(&self, volume: Option<&str>) -> Vec<PendingApproval> {
        let waiting = self.waiting();
        let seen = waiting.iter().filter(|request| volume.is_none() || request.volume.as_deref() == volume);
        seen.map(|request| request.about.clone()).collect()
    }

    /// Decides a request that a token with this volume can see. Returns whether there was one.
    pub(crate) fn decide(&self, volume: Option<&str>, id: &str, approved: bool, comment: &str) -> bool {
        let mut waiting = self.waiting();
        let is_meant = |request: &WaitingRequest| {
            request.about.action_id == id && (volume.is_none() || request.volume.as_deref() == volume)
        };
        let Some(at) = waiting.iter().position(is_meant) else { return false };
        let request = waiting.remove(at);
        drop(waiting);
        request.answer.send((approved, comment.to_owned())).is_ok()
    }
}
