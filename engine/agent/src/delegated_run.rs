//! Runs of delegated work on this device. Their ids depend only on the run that delegates and on the work, so that the
//! work is found again after a crash, and isn't done twice.

use crate::agent_definition::DEFAULT_AGENT;
use crate::memory::ReplayMode;
use crate::mention_match::{MentionMatch, match_mention};
use crate::model_context::mentions;
use crate::run_records::RunSummary;
use crate::sent_task::{calls_of_tool, derived_ids, text_of};
use crate::tool_catalog::BuiltInTool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{DocId, ExecutionStep, RunEnding, RunOrigin};

/// Maximum number of runs for the same work of one run.
const MAX_ATTEMPTS: usize = 100;

/// Returns the run whose agent delegated work to a run of this origin.
pub fn requesting_run(origin: RunOrigin) -> Option<DocId> {
    match origin {
        RunOrigin::Agent { run } => Some(run),
        RunOrigin::User | RunOrigin::Schedule { .. } | RunOrigin::Device => None,
    }
}

/// Returns a run and the runs that it was delegated from: first the run itself, then its parent, and so on.
pub fn ancestors(lines: &BTreeMap<DocId, RunSummary>, run: DocId) -> Vec<DocId> {
    let mut all = vec![run];
    let mut at = run;
    while let Some(above) = lines.get(&at).and_then(|line| requesting_run(line.origin)) {
        if all.contains(&above) {
            break;
        }
        all.push(above);
        at = above;
    }
    all
}

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

/// Returns whether a run that a worker began before it was lost is the one that a call asks for, as far as its summary
/// tells: its document isn't signed. `volume`: that of the run with the call.
pub fn is_continued_elsewhere(line: &RunSummary, volume: DocId, arguments: &Map<String, Value>) -> bool {
    let agent = text_of(arguments, "agent").trim_start_matches('@');
    // A mention may be a part of the agent's name, and in another case.
    let names = [(line.agent.clone(), line.agent.clone())];
    let is_meant = |mention: &String| match_mention(mention, &names, std::iter::empty()) != MentionMatch::Nothing;
    let is_agent =
        line.agent == agent || agent == DEFAULT_AGENT && mentions(text_of(arguments, "goal")).iter().any(is_meant);
    // What a replay has done is known only where it began.
    let is_replay = ReplayMode::from_name(text_of(arguments, "mode")) == Some(ReplayMode::Follower);
    is_agent && !is_replay && line.volume == volume && line.budget == arguments.get("budget").and_then(Value::as_f64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sent_task::tests::step;
    use serde_json::json;
    use store::StepKind;

    const LEAD: DocId = DocId([1; 16]);

    fn arguments(agent: &str, goal: &str, task: &str) -> Map<String, Value> {
        let value = json!({"agent": agent, "goal": goal, "task": task});
        value.as_object().cloned().expect("an object")
    }

    /// The steps of a call that got this answer.
    fn answered(params: Map<String, Value>) -> [ExecutionStep; 2] {
        let (tool_call_id, tool_name) = ("c0".to_owned(), "ask_agent".to_owned());
        let result = StepKind::ToolResult {
            tool_call_id: tool_call_id.clone(),
            success: true,
            result: Some(json!("Done.")),
            error: None,
            whole: None,
            attached: Vec::new(),
            files: Vec::new(),
        };
        [step(1, StepKind::ToolCall { tool_call_id, tool_name, params }), step(2, result)]
    }

    #[test]
    fn work_that_was_begun_is_found_again() {
        let task = arguments("qa", "Try it", "try");
        let choose = |steps: &[ExecutionStep], known: &[(DocId, DelegatedRunState)]| {
            let state_of = |run: DocId, _: DocId| {
                known.iter().find(|(id, _)| *id == run).map_or(DelegatedRunState::Unknown, |(_, state)| *state)
            };
            choose_delegated_run(LEAD, steps, &task, state_of).expect("not too many")[0]
        };
        let first = choose(&[], &[]);
        assert_eq!(choose(&[], &[]), first, "the id is always the same");
        assert_eq!(choose(&[], &[(first, DelegatedRunState::Open)]), first);
        let second = choose(&[], &[(first, DelegatedRunState::Unusable)]);
        assert_ne!(second, first, "a failed attempt is followed by another one");
        let both = [(first, DelegatedRunState::Unusable), (second, DelegatedRunState::Open)];
        assert_eq!(choose(&[], &both), second);
        // An answer is given to the lead once.
        let done = [(first, DelegatedRunState::Answered)];
        assert_eq!(choose(&[], &done), first);
        assert_eq!(choose(&answered(task.clone()), &done), second);
        let other = answered(arguments("qa", "Try it", "other"));
        assert_eq!(choose(&other, &done), first);
    }

    #[test]
    fn work_that_another_worker_began_is_found_by_its_agent() {
        let line: RunSummary = serde_json::from_value(json!({"session": LEAD, "volume": LEAD, "prompt": "Try it",
            "start_time": 0, "ended": null, "ending": null, "iteration": 1, "pending": 0, "agent": "Garden/poet",
            "spent": {"inputTokens": 1, "outputTokens": 1, "cost": 0.0}}))
        .expect("a run");
        let is_continued = |agent: &str, goal: &str| is_continued_elsewhere(&line, LEAD, &arguments(agent, goal, ""));
        assert!(is_continued("Garden/poet", "Try it") && is_continued("@Garden/poet", "Try it"));
        for goal in ["@Garden/poet praise it", "@garden/Poet: praise it", "Praise it, @poet!"] {
            assert!(is_continued(DEFAULT_AGENT, goal), "{goal}");
        }
        assert!(!is_continued(DEFAULT_AGENT, "Praise the poet") && !is_continued("docs", "@poet praise it"));
    }

    #[test]
    fn other_work_has_another_run() {
        let run = |lead: DocId, agent: &str, goal: &str, task: &str| {
            let unknown = |_: DocId, _: DocId| DelegatedRunState::Unknown;
            choose_delegated_run(lead, &[], &arguments(agent, goal, task), unknown).expect("not too many")
        };
        let first = run(LEAD, "qa", "Try it", "");
        assert_eq!(run(LEAD, "@qa", "Try it", ""), first);
        assert_ne!(first[0], first[1], "the session has its own id");
        assert_ne!(run(LEAD, "docs", "Try it", ""), first);
        assert_ne!(run(LEAD, "qa", "Try it again", ""), first);
        assert_ne!(run(DocId([2; 16]), "qa", "Try it", ""), first);
        assert_ne!(run(LEAD, "qa", "Try it", "a"), run(LEAD, "qa", "Try it", "b"));
    }
}
