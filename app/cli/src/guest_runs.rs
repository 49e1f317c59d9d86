//! Runs that other processes have continued in this one, by deciding about them. If this process ended first, the
//! calls that it had just begun for them would be lost.

use agent::tool_catalog::BuiltInTool;
use engine::{AgentRun, CallPhase, Session};
use host::Handle;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use store::DocId;

/// Runs that may still be at work.
static CONTINUED_RUNS: Mutex<BTreeSet<DocId>> = Mutex::new(BTreeSet::new());

/// Notes that another process has decided about a run.
pub(crate) fn note_decision(run: DocId) {
    CONTINUED_RUNS.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
}

/// Waits until each of these runs has ended, or waits for a decision with no call under way.
pub(crate) fn wait_until_at_rest(handle: &Handle) {
    loop {
        let next = CONTINUED_RUNS.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
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
/// that hands work to another run waits for that one.
fn is_at_work(run: &AgentRun) -> bool {
    let is_decided = run.pending().next().is_none();
    let has_call = run.calls.iter().any(|pending| match pending.phase {
        CallPhase::Running { .. } => !BuiltInTool::AskAgent.is_named(&pending.call.name),
        CallPhase::Ready | CallPhase::ReadingFacts => is_decided,
        CallPhase::AwaitingApproval | CallPhase::Done => false,
    });
    run.about.ending.is_none() && (run.live.is_some() || has_call || !run.is_durable())
}
