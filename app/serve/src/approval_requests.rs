//! Requests of programs that wait for the user: what gRPC's `RequestApproval` asks, and writes of MCP clients. They are
//! decided over REST and gRPC, on the web pages, with `tracebook approvals`, and in the window.

use crate::clock::unix_millis;
use crate::pending_approval::PendingApproval;
use program_approvals::{HeldApproval, ProgramApproval, ProgramApprovalError, ProgramApprovals, ProgramDecision};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How often a request that waits looks for its decision.
const DECISION_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Why a request was not decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestRefusal {
    /// It can't wait.
    #[error(transparent)]
    Held(#[from] ProgramApprovalError),
    /// Time is over.
    #[cfg(feature = "grpc")]
    #[error("nobody decided within {}", shown_time(.0))]
    TimedOut(Duration),
}

/// Returns a duration as people say it.
pub(crate) fn shown_time(time: &Duration) -> String {
    let counted = |count: u64, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match time.as_secs() {
        3_600 => "an hour".to_owned(),
        seconds if seconds >= 60 && seconds.is_multiple_of(60) => counted(seconds / 60, "minute"),
        seconds => counted(seconds, "second"),
    }
}

/// The requests that wait. They don't survive the server that asked.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRequests(ProgramApprovals);

impl ApprovalRequests {
    /// Returns the requests of the workspace in this folder.
    pub(crate) fn new(workspace: &Path) -> ApprovalRequests {
        ApprovalRequests(ProgramApprovals::new(workspace))
    }

    /// Lets a request wait for this long, from now on.
    pub(crate) fn hold(&self, mut about: ProgramApproval, time: Duration) -> Result<HeldApproval, RequestRefusal> {
        about.asked = unix_millis();
        about.expires = about.asked.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        Ok(self.0.hold(&about)?)
    }

    /// Returns the requests that a token with this volume can see. A folder that can't be read holds none.
    pub(crate) fn list(&self, volume: Option<&str>) -> Vec<PendingApproval> {
        let waiting = self.0.waiting().unwrap_or_default();
        waiting.into_iter().filter(|request| is_visible(request, volume)).map(pending_approval).collect()
    }

    /// Decides a request that a token with this volume can see. Returns whether there was one.
    pub(crate) fn decide(&self, volume: Option<&str>, id: &str, approved: bool, comment: &str) -> bool {
        let decision = ProgramDecision { approved, comment: comment.to_owned() };
        self.0.decide(id, |request| is_visible(request, volume), &decision).unwrap_or(false)
    }
}

/// Waits for the decision of a request.
pub(crate) async fn wait_for_decision(held: &HeldApproval) -> ProgramDecision {
    loop {
        if let Some(decision) = held.decision() {
            return decision;
        }
        tokio::time::sleep(DECISION_CHECK_INTERVAL).await;
    }
}

/// Waits for the decision of a request, up to a time.
#[cfg(feature = "grpc")]
pub(crate) async fn decided(held: HeldApproval, time: Duration) -> Result<ProgramDecision, RequestRefusal> {
    match tokio::time::timeout(time, wait_for_decision(&held)).await {
        Ok(decision) => Ok(decision),
        Err(_) => held.withdraw().ok_or(RequestRefusal::TimedOut(time)),
    }
}

fn is_visible(request: &ProgramApproval, volume: Option<&str>) -> bool {
    volume.is_none() || request.volume.as_deref() == volume
}

/// Returns a request as the other interfaces show it.
fn pending_approval(request: ProgramApproval) -> PendingApproval {
    let mut parameters = request.parameters;
    if let Some(path) = request.path {
        parameters.insert("note".to_owned(), path.into());
    }
    if !request.diff.is_empty() {
        parameters.insert("diff".to_owned(), request.diff.into());
    }
    PendingApproval {
        action_id: request.id,
        action_type: request.tool,
        description: request.what,
        reason: request.reason,
        run: String::new(),
        agent: request.program,
        parameters: Value::Object(parameters),
        code: Vec::new(),
        asked: request.asked,
        expires: request.expires,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_do() {
        for (seconds, said) in
            [(3_600, "an hour"), (600, "10 minutes"), (60, "1 minute"), (90, "90 seconds"), (1, "1 second")]
        {
            assert_eq!(shown_time(&Duration::from_secs(seconds)), said);
        }
    }
}
