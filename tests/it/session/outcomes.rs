//! Memory records what happened in runs: failures are never remembered as successes. An interrupted replay continues as
//! a replay.

use super::agents::{agent, answer, ask, decide, done, fine, results, run, said, setup};
use crate::twin::Twin;
use agent::memory::experience::{Experience, RunOutcome, parse_entries};
use agent::memory::{MemoryMaintenance, RecallOptions, ReplayMode};
use agent::tool_job::ToolOutcome as Came;
use engine::{AgentRun, Command, Event};
use serde_json::{Value, json};
use store::{DecisionMaker, DecisionRecord, DecisionScope, DocId, RunEnding, StepKind};

const DAY_MS: i64 = 86_400_000;

fn bad(text: &str) -> Came {
    Came { success: false, text: text.to_owned(), ..Came::default() }
}

/// The project's experiences.
fn known(twin: &Twin) -> Vec<Experience> {
    let text = twin.file("memory/memory_log.md").unwrap_or_default();
    parse_entries("memory/memory_log.md", &text, &mut Vec::new()).into_iter().map(|entry| entry.experience).collect()
}

/// Consolidates memory and returns the best practices.
fn practices(twin: &mut Twin) -> String {
    let volume = twin.session.volumes().next().expect("a volume").id;
    twin.command(Command::Upkeep { volume, what: MemoryMaintenance::Consolidate }).expect("begun");
    twin.settle();
    twin.file("memory/long_term/best_practices.md").unwrap_or_default()
}

fn dos(practices: &str) -> &str {
    practices.split("## Do").nth(1).and_then(|rest| rest.split("## Avoid").next()).unwrap_or_default()
}

#[test]
fn a_run_that_only_failed_is_a_failure_although_it_ended_with_an_answer() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    ask(&mut twin, "Build the release of the shop");
    let calls = [
        ("fly_away", json!({"to": "moon"})),
        ("write_file", json!({"path": 5})),
        ("shell", json!({"command": "make"})),
    ];
    answer(&mut twin, said("", &calls));
    decide(&mut twin, "c2", true, DecisionScope::Once);
    done(&mut twin, bad("make: *** No rule to make target\n"));
    answer(&mut twin, said("All is built and well.", &[]));
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    assert!(results(run(&twin)).iter().all(|(good, _)| !good));
    twin.settle();
    let [one] = known(&twin).try_into().expect("one experience");
    assert_eq!(one.final_outcome, RunOutcome::Failure, "{one:?}");
    assert!(!one.components_used.contains(&"fly_away".to_owned()), "{one:?}");
    let lesson = &one.learnings_or_issues;
    assert!(lesson.contains("there is no tool fly_away") && lesson.contains("No rule to make target"), "{lesson}");
    assert!(
        !lesson.contains("\"type\"") && !lesson.contains("properties") && !lesson.contains("; there are"),
        "no schema: {lesson}"
    );
    let log = twin.file("memory/short_term/execution_log.md").unwrap_or_default();
    assert!(log.contains("status: failed") && !log.contains("status: completed"), "{log}");
    assert!(log.contains("3. shell: make (failed)\n"), "each action says how it ended: {log}");
    let practices = practices(&mut twin);
    assert_eq!(dos(&practices).trim(), "", "{practices}");
    let traces =
        twin.session.volumes().next().expect("a volume").files.keys().any(|path| path.contains("memory/traces/"));
    assert!(!traces);
}

#[test]
fn of_a_run_that_recovered_only_what_worked_is_praised() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    ask(&mut twin, "Write the notes of the shop");
    answer(&mut twin, said("", &[("fly_away", json!({}))]));
    answer(&mut twin, said("", &[("shell", json!({"command": "touch b.md"}))]));
    let denied = run(&twin).pending().next().map(|one| one.id.clone()).expect("it waits");
    decide(&mut twin, &denied, false, DecisionScope::Once);
    answer(&mut twin, said("", &[("write_file", json!({"path": "b.md", "content": "# B\n"}))]));
    answer(&mut twin, said("", &[("shell", json!({"command": "touch b.md"}))]));
    let again = run(&twin).pending().next().map(|one| one.id.clone()).expect("it waits");
    decide(&mut twin, &again, true, DecisionScope::Once);
    done(&mut twin, fine("ok"));
    answer(&mut twin, said("Written.", &[]));
    twin.settle();
    let [one] = known(&twin).try_into().expect("one experience");
    assert_eq!(one.final_outcome, RunOutcome::SuccessWithRecovery, "{one:?}");
    assert_eq!(one.components_used, ["assistant", "write_file", "shell"]);
    let practices = practices(&mut twin);
    assert!(dos(&practices).contains("did it"), "{practices}");
    assert!(!dos(&practices).contains("fly_away") && !dos(&practices).contains("failed"), "{practices}");
    assert!(
        practices
            .split("## Avoid")
            .nth(1)
            .is_some_and(|rest| rest.contains("fly_away failed: there is no tool fly_away")),
        "{practices}"
    );
    let patterns = twin.file("memory/long_term/patterns.md").unwrap_or_default();
    assert!(!patterns.contains("fly_away"), "{patterns}");
}

#[test]
fn a_part_that_failed_makes_the_whole_a_failure() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (id, session) = (DocId([51; 16]), DocId([52; 16]));
    let (note, parent, budget, allow) = (None, None, None, Vec::new());
    let (agent, text) = (Some("system".to_owned()), "1. Build the shop\n2. Sing a song\n".to_owned());
    let recall = RecallOptions::default();
    let command =
        Command::Ask { run: id, session, volume, note, parent, text, agent, budget, allow, recall, provider: None };
    twin.command(command).expect("asked");
    twin.settle();
    for _ in 0..20 {
        let Some((_, request)) = twin.models.first().cloned() else { break };
        let called = request.messages.iter().any(|message| message.role == store::MessageRole::Tool);
        // Each task calls a tool that doesn't exist and claims success.
        let calls: &[(&str, Value)] = &[("fly_away", json!({}))];
        answer(&mut twin, said(if called { "All is well." } else { "" }, if called { &[] } else { calls }));
        twin.settle();
    }
    let lead = twin.session.agents().run(id).expect("open");
    assert!(lead.about.ending.is_some(), "{:?}", lead.about);
    let project = lead.tasks().len();
    assert!(project > 0);
    let path = twin
        .session
        .volumes()
        .next()
        .expect("a volume")
        .files
        .keys()
        .find(|path| path.starts_with("projects/") && path.ends_with("memory_log.md"))
        .cloned();
    let text = twin.file(&path.expect("it remembers")).expect("written");
    let all: Vec<Experience> =
        parse_entries("x", &text, &mut Vec::new()).into_iter().map(|entry| entry.experience).collect();
    assert!(!all.is_empty() && all.iter().all(|one| one.final_outcome == RunOutcome::Failure), "{all:#?}");
    assert!(all.iter().all(|one| !one.learnings_or_issues.contains("went well")), "{all:#?}");
}

// ---- replays that were interrupted ----

const CSV: &str = "day,sold\n1,517\n2,623\n";

fn ask_mode(twin: &mut Twin, number: u8, text: &str, mode: ReplayMode) -> DocId {
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (run, session) = (DocId([number; 16]), DocId([number + 100; 16]));
    let (note, parent, agent, budget, allow) = (None, None, None, None, Vec::new());
    let (recall, text) = (RecallOptions { mode, ..RecallOptions::default() }, text.to_owned());
    let command =
        Command::Ask { run, session, volume, note, parent, text, agent, budget, allow, recall, provider: None };
    twin.command(command).expect("asked");
    twin.rest();
    run
}

/// A project with a trace, and a replay that waits for approval before its last step.
fn waiting() -> (Twin, DocId) {
    let files = [("a.md", "# A\n"), ("data/2026-10.csv", CSV), ("data/2026-11.csv", CSV)];
    let mut twin = agent(&files, "");
    ask_mode(&mut twin, 7, "Write the report for October 2026 into reports/2026-10.md", ReplayMode::Auto);
    answer(&mut twin, said("", &[("read_file", json!({"path": "data/2026-10.csv"}))]));
    done(&mut twin, fine(CSV));
    let write = json!({"path": "reports/2026-10.md", "content": "# October 2026\n\nSee data/2026-10.csv\n"});
    answer(&mut twin, said("", &[("write_file", write)]));
    answer(&mut twin, said("The report for October 2026 is written.", &[]));
    twin.settle();
    twin.setup = setup("approval:\n  always_approve: [write_file]\n");
    let id = ask_mode(&mut twin, 9, "Write the report for November 2026 into reports/2026-11.md", ReplayMode::Follower);
    done(&mut twin, fine("day,sold\n1,1\n"));
    assert_eq!(one(&twin, id).pending().count(), 1);
    (twin, id)
}

fn one(twin: &Twin, id: DocId) -> &AgentRun {
    twin.session.agents().run(id).expect("the run is open")
}

/// The same workspace in another process.
fn elsewhere(twin: &Twin) -> Twin {
    let mut twin = Twin::start(twin.crash(), 4);
    twin.setup = setup("");
    twin.rest();
    twin
}

fn allow(twin: &mut Twin, id: DocId) {
    let approval = one(twin, id).pending().next().map(|one| one.id.clone()).expect("it waits");
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    twin.command(Command::Decide { run: id, approval, decision }).expect("decided");
    twin.settle();
}

fn says(run: &AgentRun, words: &str) -> bool {
    run.steps.iter().any(|step| matches!(&step.kind, StepKind::Error { message, .. } if message.contains(words)))
}

#[test]
fn a_replay_that_is_approved_by_another_process_goes_on_as_a_replay() {
    let (twin, id) = waiting();
    let mut twin = elsewhere(&twin);
    allow(&mut twin, id);
    assert!(twin.models.is_empty(), "no model is called");
    assert_eq!(twin.file("reports/2026-11.md").as_deref(), Some("# November 2026\n\nSee data/2026-11.csv\n"));
    let over = one(&twin, id);
    assert_eq!((over.about.ending, over.about.iteration), (Some(RunEnding::Done), 0));
    let answer = over.steps.iter().rev().find_map(|step| match &step.kind {
        StepKind::FinalAnswer { content } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(answer, Some("The report for November 2026 is written."));
    let trace = twin
        .session
        .volumes()
        .next()
        .expect("a volume")
        .files
        .keys()
        .find(|path| path.contains("memory/traces/"))
        .cloned();
    let text = twin.file(&trace.expect("a trace")).expect("written");
    assert!(text.contains("usage_count: 1") && text.contains("verified_count: 1"), "it's counted: {text}");
}

#[test]
fn a_replay_whose_trace_is_gone_or_changed_says_so_before_a_model_is_called() {
    for change in [None, Some(("data/{month1}.csv", "data/all.csv")), Some(("read_file", "search"))] {
        let (twin, id) = waiting();
        let trace = twin
            .session
            .volumes()
            .next()
            .expect("a volume")
            .files
            .keys()
            .find(|path| path.contains("memory/traces/"))
            .cloned();
        let trace = trace.expect("a trace");
        let mut twin = elsewhere(&twin);
        let text = twin.file(&trace).expect("written");
        let new = change.map(|(old, new)| text.replace(old, new));
        assert_ne!(new.as_deref(), Some(text.as_str()));
        twin.outside(&trace, new.as_deref());
        twin.rest();
        allow(&mut twin, id);
        let over = one(&twin, id);
        assert!(says(over, "The replay stopped") && says(over, "A model continues from here"), "{:?}", over.steps);
        assert!(!twin.models.is_empty(), "it's said, and then a model is asked");
    }
}

/// Sets the clock, as a user or a server of time does.
fn jump(twin: &mut Twin, milliseconds: i64) {
    twin.now = twin.now.plus_ms(milliseconds);
    twin.event(Event::Tick);
    twin.rest();
}

#[test]
fn a_clock_that_jumps_while_a_call_waits_runs_nothing_twice() {
    let mut twin = agent(&[("a.md", "x\n")], "approval: {timeout_seconds: 60}\n");
    let asked = |twin: &Twin| run(twin).pending().next().map(|one| one.id.clone()).expect("it waits");
    ask(&mut twin, "build");
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    // Back by a day: it still waits, and runs once.
    jump(&mut twin, -DAY_MS);
    let first = asked(&twin);
    decide(&mut twin, &first, true, DecisionScope::Once);
    assert_eq!(twin.tools.len(), 1);
    done(&mut twin, fine("built"));
    answer(&mut twin, said("", &[("shell", json!({"command": "make install"}))]));
    // Forward by a year: nobody decided. Back again: that stays so.
    let second = asked(&twin);
    jump(&mut twin, 365 * DAY_MS);
    assert_eq!((run(&twin).pending().count(), twin.tools.len()), (0, 0));
    jump(&mut twin, -365 * DAY_MS);
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    let id = run(&twin).id;
    let late = twin.command(Command::Decide { run: id, approval: second, decision });
    assert!(late.expect_err("too late").0.contains("decided already"));
    let (_, request) = answer(&mut twin, said("I stop.", &[]));
    assert!(request.messages.last().is_some_and(|message| message.content.contains("Nobody decided")));
    let by: Vec<DecisionMaker> =
        run(&twin).approvals.iter().filter_map(|one| Some(one.decision.as_ref()?.by.clone())).collect();
    assert_eq!(by, [DecisionMaker::User, DecisionMaker::Timeout]);
    assert_eq!(results(run(&twin)).iter().map(|(good, _)| *good).collect::<Vec<_>>(), [true, false]);
    assert!(run(&twin).about.ending == Some(RunEnding::Done) && twin.tools.is_empty());
}

#[test]
fn a_clock_that_jumps_while_a_replay_waits_repeats_no_step() {
    let writes = |run: &AgentRun| {
        let is_write = |step: &&store::ExecutionStep| match &step.kind {
            StepKind::ToolCall { tool_name, .. } => tool_name == "write_file",
            _ => false,
        };
        run.steps.iter().filter(is_write).count()
    };
    // Back by a day: it waits as before, and continues as a replay.
    let (mut twin, id) = waiting();
    jump(&mut twin, -DAY_MS);
    assert_eq!(one(&twin, id).pending().count(), 1);
    allow(&mut twin, id);
    let over = one(&twin, id);
    assert_eq!((over.about.ending, over.about.iteration, writes(over)), (Some(RunEnding::Done), 0, 1));
    assert!(twin.models.is_empty() && twin.file("reports/2026-11.md").is_some());
    // Forward by a year: nobody decided, so the replay stops and says so, once.
    let (mut twin, id) = waiting();
    jump(&mut twin, 365 * DAY_MS);
    jump(&mut twin, -365 * DAY_MS);
    let over = one(&twin, id);
    assert!(says(over, "The replay stopped") && over.pending().count() == 0, "{:?}", over.steps);
    assert!(writes(over) == 1 && twin.file("reports/2026-11.md").is_none(), "{:?}", over.steps);
    assert_eq!(twin.models.len(), 1, "a model continues");
}

#[test]
fn a_replay_that_was_killed_at_work_says_so() {
    let (mut twin, id) = waiting();
    let approval = one(&twin, id).pending().next().map(|one| one.id.clone()).expect("it waits");
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    twin.command(Command::Decide { run: id, approval, decision }).expect("decided");
    let mut twin = elsewhere(&twin);
    if twin.session.agents().run(id).is_none() {
        twin.command(Command::OpenRun { run: id }).expect("opened");
        twin.rest();
    }
    if one(&twin, id).pending().next().is_some() {
        return allow(&mut twin, id); // the decision was not on disk yet
    }
    twin.command(Command::ReadSetup).expect("read");
    twin.command(Command::ResumeRun { run: id, more: None, budget: None }).expect("resumed");
    twin.settle();
    let steps = &one(&twin, id).steps;
    let stop = steps.iter().position(
        |step| matches!(&step.kind, StepKind::Error { message, .. } if message.starts_with("The replay stopped")),
    );
    assert!(stop.is_some() || twin.models.is_empty(), "no model is asked without a word: {steps:?}");
}
