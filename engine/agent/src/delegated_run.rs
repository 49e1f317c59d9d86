//! Runs of delegated work on this device. Their ids depend only on the run that delegates and on the work, so that the
//! work is found again after a crash, and isn't done twice.

use crate::run_records::RunSummary;
use crate::sent_task::{calls_of_tool, derived_ids, text_of};
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use store::{DocId, ExecutionStep, RunEnding, RunOrigin};

/// Maximum number of runs for the same work of one run.
const MAX_ATTEMPTS: usize = 100;

/// What is known of a run that may have begun some delegated work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelegatedRunState {
    /// There's no run with its id.
    Unknown,
    /// It has begun the work and can continue.
    Open,
    /// It has ended with an answer.
    Answered,
    /// It's of no use: it has failed, another call waits for it, or it's about something else.
    Unusable,
}

impl DelegatedRunState {
    /// Returns the state of a run of this device that nobody waits for. `goal`: what it's to do for `lead`.
    pub fn from_summary(line: &RunSummary, lead: DocId, session: DocId, goal: &str) -> DelegatedRunState {
        let is_asked = line.origin == RunOrigin::Agent { run: lead } && line.session == session;
        match line.ending {
            // The summary has the beginning of the goal.
            _ if !is_asked || !goal.starts_with(&line.prompt) => DelegatedRunState::Unusable,
            None => DelegatedRunState::Open,
            Some(RunEnding::Done) => DelegatedRunState::Answered,
            Some(_) => DelegatedRunState::Unusable,
        }
    }
}

/// Returns what a call delegates, as text: its task, or else agent and goal.
fn delegated_work(arguments: &Map<String, Value>) -> String {
    let (task, agent) = (text_of(arguments, "task"), text_of(arguments, "agent").trim_start_matches('@'));
    if task.is_empty() { format!("goal {agent}\n{}", text_of(arguments, "goal")) } else { format!("task {task}") }
}

/// Returns the run and the session for a call that delegates work: those that an interrupted call began, if the run can
/// continue or has an answer that its lead hasn't got; otherwise new ones. `None` if there were too many attempts.
/// `steps`: the lead's. `state_of`: what is known of the run with this id and session.
pub fn choose_delegated_run(
    lead: DocId,
    steps: &[ExecutionStep],
    arguments: &Map<String, Value>,
    state_of: impl Fn(DocId, DocId) -> DelegatedRunState,
) -> Option<[DocId; 2]> {
    let work = delegated_work(arguments);
    let mut answered = Vec::new();
    let mut fresh = None;
    for attempt in 0..MAX_ATTEMPTS {
        let ids = derived_ids(&format!("part {lead} {attempt} {work}"));
        match state_of(ids[0], ids[1]) {
            DelegatedRunState::Open => return Some(ids),
            DelegatedRunState::Answered => answered.push(ids),
            DelegatedRunState::Unusable => {}
            DelegatedRunState::Unknown => {
                fresh = Some(ids);
                break;
            }
        }
    }
    let calls = calls_of_tool(steps, BuiltInTool::AskAgent).filter(|(known, _)| delegated_work(known) == work);
    let reported = calls.filter(|(_, result)| result.is_some_and(|(is_good, _)| is_good)).count();
    answered.last().copied().filter(|_| answered.len() > reported).or(fresh)
}
