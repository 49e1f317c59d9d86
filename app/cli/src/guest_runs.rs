//! Runs that keep this process open: those that other processes have continued in it by a decision, and those that
//! `--no-wait` leaves. If this process ended first, the calls that it had begun for them would be lost.

use agent::server_request::is_server_request;
use agent::tool_catalog::BuiltInTool;
use engine::{AgentRun, CallPhase, Session};
use host::Handle;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use store::DocId;

/// Runs that may still be at work.
static HELD_RUNS: Mutex<BTreeSet<DocId>> = Mutex::new(BTreeSet::new());

/// Keeps the process open until a run is at rest.
pub(crate) fn hold_for(run: DocId) {
    HELD_RUNS.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
}

/// Waits until each of these runs has ended, or waits for a decision with no call under way.
pub(crate) fn wait_until_at_rest(handle: &Handle) {
    loop {
        let next = HELD_RUNS.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
        let Some(run) = next else { return };
        if handle.wait(None, move |session| is_at_rest(session, run).then_some(())).is_err() {
            return; // the session has ended
        }
    }
}

fn is_at_rest(session: &Session, id: DocId) -> bool {
    let agents = session.agents();
    let Some(run) = agents.run(id) else { return true };
    if run.about.ending.is_some() {
        return run.is_durable() && session.pending_note_jobs() == 0;
    }
    let family: Vec<&AgentRun> = agents.run_family(id).into_iter().filter_map(|id| agents.run(id)).collect();
    let waits = family.iter().any(|run| run.pending().next().is_some());
    (waits || !run.is_awake()) && !agents.is_reading() && !family.iter().any(|run| is_at_work(run))
}

/// Returns whether a model or a tool works for a run or is about to, or what happened in it isn't on disk yet. A call
/// that hands work to another run doesn't count, nor does a tool or a program that has asked the user.
fn is_at_work(run: &AgentRun) -> bool {
    let is_decided = run.pending().next().is_none();
    let is_asked = run.pending().any(|approval| is_server_request(&approval.tool));
    let has_call = run.calls.iter().any(|pending| match pending.phase {
        CallPhase::Running { .. } => !is_asked && !BuiltInTool::AskAgent.is_named(&pending.call.name),
        CallPhase::Ready | CallPhase::ReadingFacts => is_decided,
        CallPhase::AwaitingApproval | CallPhase::Done => false,
    });
    // One that does nothing yet is about to: what its message speaks of is being read, or a model is being chosen.
    let is_about_to = run.is_awake() && !run.is_busy();
    let is_answering = run.live.is_some() || is_about_to;
    run.about.ending.is_none() && (is_answering && is_decided || has_call || !run.is_durable())
}
