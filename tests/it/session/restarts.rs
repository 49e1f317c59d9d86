//! An agent and the disk: no step continues before its predecessors are durable, and runs resume after a crash.

use super::agents::{RUN, SESSION, agent, answer, ask, decide, done, fine, results, run, said, setup};
use crate::twin::{Step, Twin, World};
use agent::known_texts::{KNOWN_TEXTS_KEY_PREFIX, known_text_key};
use agent::task_block;
use engine::{Command, Event};
use serde_json::json;
use store::disk::{Disk, DiskReader, RowWrite};
use store::{ActorId, DecisionRecord, DecisionScope, DocId, MessageRole, RunDoc, RunEnding, RunWrite, StepKind};

/// Whether a write to the disk is pending.
fn writes(twin: &Twin) -> bool {
    twin.steps().iter().any(|step| matches!(step, Step::Commit { .. }))
}

#[test]
fn a_model_is_called_and_tools_begin_behind_the_disk() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    // Both tools end at once: the second result arrives while the first is being written to disk.
    let todos = json!({"todos": [{"content": "read"}]});
    let calls = [("todo_write", todos), ("write_file", json!({"path": "b.md", "content": "b\n"}))];
    let (call, _) = twin.models.remove(0);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(said("", &calls))) });
    let mut turns = 0;
    for _ in 0..3 {
        while twin.models.is_empty() && twin.tools.is_empty() {
            let step = twin.steps().into_iter().find(|step| !matches!(step, Step::Commit { group: true }));
            twin.step(step.expect("it goes on"));
        }
        let crashed = twin.crash();
        let mut after = Twin::start(crashed, 3);
        after.rest();
        let _ = after.command(Command::OpenRun { run: RUN });
        after.rest();
        let kept = &after.session.agents().run(RUN).expect("it is kept").steps;
        let lost = run(&twin).steps.iter().find(|step| kept.iter().all(|kept| kept.id != step.id));
        assert!(lost.is_none(), "all that led there is on disk: {lost:?}");
        turns += 1;
        match twin.models.pop() {
            Some((call, _)) => {
                // The same holds if an answer is faster than the disk.
                let calls = [("list_files", json!({}))];
                twin.event(Event::ModelDone { call, result: Ok(Box::new(said("", &calls))) });
                assert!(twin.tools.is_empty() && writes(&twin), "the call is not on disk yet");
            }
            None => {
                let (of, call, _) = twin.tools.remove(0);
                twin.event(Event::ToolDone { run: of, call, outcome: Box::new(fine("a.md")) });
                assert!(twin.models.is_empty() && writes(&twin), "the result is not on disk yet");
            }
        }
    }
    assert_eq!(turns, 3);
}

#[test]
fn what_waited_is_decided_after_a_crash() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    answer(&mut twin, said("I build.", &[("shell", json!({"command": "make"}))]));
    let mut twin = Twin::start(twin.crash(), 4);
    twin.setup = setup("");
    twin.rest();
    assert_eq!(run(&twin).pending().count(), 1, "what waits is read by itself");
    decide(&mut twin, "c0", true, DecisionScope::Once);
    done(&mut twin, fine("built"));
    let (_, request) = answer(&mut twin, said("It is built.", &[]));
    let words: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(words, ["work", "I build.", "built"]);
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

/// A command that opens the workspace for something else pays for no run whose question nobody answered.
#[test]
fn a_question_that_expires_after_a_restart_continues_nothing() {
    let limits = "approval: {timeout_seconds: 60}\n";
    let mut twin = agent(&[("a.md", "x\n")], limits);
    ask(&mut twin, "work");
    answer(&mut twin, said("I build.", &[("shell", json!({"command": "make"}))]));
    let mut twin = Twin::start(twin.crash(), 4);
    twin.setup = setup(limits);
    twin.rest();
    twin.pass(3_600_000);
    let over = run(&twin);
    assert_eq!((over.pending().count(), over.about.ending, over.is_busy()), (0, None, false));
    assert!(twin.models.is_empty() && twin.tools.is_empty(), "nothing is asked or run");
    twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
    twin.rest();
    let (_, request) = answer(&mut twin, said("I stop.", &[]));
    assert!(request.messages.iter().any(|message| message.content.contains("Nobody decided")));
}

/// A process killed at any point of a run: no acknowledged step is lost, nothing runs twice, and pending approvals stay
/// pending.
#[test]
fn a_crash_at_any_point_of_a_run() {
    let mut worlds: Vec<(World, usize, usize)> = Vec::new();
    let mut twin = agent(&[("a.md", "x\n")], "");
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (session, text) = (SESSION, "work".to_owned());
    let command = Command::Ask {
        run: RUN,
        session,
        volume,
        note: None,
        parent: None,
        text,
        agent: None,
        budget: None,
        allow: Vec::new(),
        recall: agent::memory::RecallOptions::default(),
        provider: None,
    };
    twin.command(command).expect("asked");
    let look = |twin: &mut Twin, worlds: &mut Vec<(World, usize, usize)>| loop {
        // What is on disk at this point was acknowledged.
        let next = twin.steps().first().copied();
        worlds.push((twin.crash(), 0, 0));
        match next {
            Some(step) => twin.step(step),
            None => return,
        }
    };
    look(&mut twin, &mut worlds);
    let calls = [("read_file", json!({"path": "b.csv"})), ("shell", json!({"command": "make"}))];
    let (call, _) = twin.models.remove(0);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(said("", &calls))) });
    look(&mut twin, &mut worlds);
    let (of, call, _) = twin.tools.remove(0);
    twin.event(Event::ToolDone { run: of, call, outcome: Box::new(fine("1")) });
    look(&mut twin, &mut worlds);
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    twin.command(Command::Decide { run: RUN, approval: "c1".to_owned(), decision }).expect("decided");
    assert!(twin.tools.is_empty(), "nothing runs before the decision is on disk");
    look(&mut twin, &mut worlds);
    assert_eq!(twin.tools.len(), 1);
    let (of, call, _) = twin.tools.remove(0);
    twin.event(Event::ToolDone { run: of, call, outcome: Box::new(fine("built")) });
    look(&mut twin, &mut worlds);
    let mut seen = 0;
    let mut waiting = 0;
    let count = worlds.len();
    for (at, (world, ..)) in worlds.into_iter().enumerate() {
        let mut twin = Twin::start(world, 5 + at as u64);
        twin.setup = setup("");
        twin.pass(100_000);
        // Runs with pending approvals are read automatically, all others when opened.
        let _ = twin.command(Command::OpenRun { run: RUN }); // there may be none yet
        twin.rest();
        assert!(twin.tools.is_empty() && twin.models.is_empty(), "crash {at}: nothing begins by itself");
        let Some(run) = twin.session.agents().run(RUN) else {
            assert_eq!(seen, 0, "crash {at}: the run was there before");
            continue;
        };
        let steps = run.steps.iter().filter(|step| !matches!(step.kind, StepKind::ToolResult { .. })).count();
        assert!(steps >= seen, "crash {at}: {steps} steps, there were {seen}");
        seen = steps;
        waiting += run.pending().count();
        let answered: Vec<(bool, String)> = results(run);
        let mine = |approval: &&store::RunApproval| {
            approval.decision.as_ref().is_some_and(|one| one.by == store::DecisionMaker::User)
        };
        let decided = run.approvals.iter().any(|approval| mine(&approval));
        if decided {
            assert_eq!(answered.len(), 2, "crash {at}: what was under way is said to be interrupted");
        }
        if run.pending().count() == 0 {
            twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
            twin.rest();
            assert_eq!(twin.models.len(), 1, "crash {at}");
            let said = &twin.models[0].1.messages;
            let begun = said.iter().any(|message| message.role == MessageRole::User && message.content == "work");
            assert!(begun, "crash {at}: the model knows what it was asked: {said:?}");
            let results = said.iter().filter(|message| message.role == MessageRole::Tool).count();
            assert_eq!(results, said.iter().map(|message| message.tool_calls.len()).sum::<usize>(), "crash {at}");
            let session = twin.session.agents().session(SESSION).expect("it is open");
            assert!(session.tree().get(twin.session.agents().run(RUN).expect("open").about.head).is_some());
            assert!(twin.tools.is_empty(), "crash {at}: nothing runs twice");
        }
    }
    assert!(count > 12 && seen >= 3 && waiting >= 2, "{count} crashes, {seen} steps, {waiting} waiting");
}

/// An earlier version accepted limits of the cost that it couldn't read, and another device can write any plan.
#[test]
fn a_plan_that_can_no_longer_be_carried_out_says_why() {
    let plan = "- [ ] Write the README ^docs\n  ```yaml\n  constraints: [Max cost $0.50]\n  ```\n";
    let mut twin = agent(&[("tasks/shop.md", plan)], "");
    let note = twin.id("tasks/shop.md");
    let (tasks, _) = task_block::parse_tasks(plan);
    let (only, budget, allow) = (None, None, Vec::new());
    twin.command(Command::RunTasks { run: RUN, session: SESSION, note, tasks, only, budget, allow }).expect("begun");
    twin.rest();
    assert_eq!(twin.models.len(), 1, "the task has begun");
    let mut world = twin.crash();
    let chunks = world.disk.chunks(RUN).expect("read").into_iter().map(|chunk| chunk.bytes).collect::<Vec<_>>();
    let mut doc = RunDoc::load(RUN, &chunks, ActorId::from([99; 16])).expect("read").doc;
    let is_plan = |kind: &StepKind| matches!(kind, StepKind::ToolCall { tool_name, .. } if tool_name == "plan");
    let step = doc.steps().into_iter().find(|step| is_plan(&step.kind)).expect("the plan");
    let step = serde_json::to_string(&step).expect("text").replace("$0.50", "€1");
    let step = serde_json::from_str(&step).expect("a step");
    let bytes = doc.commit(&RunWrite { steps: vec![&step], ..RunWrite::default() }, 1).expect("written");
    world.disk.commit(&[RowWrite::Chunk { doc: RUN, bytes }]).expect("written");
    let mut twin = Twin::start(world, 4);
    twin.setup = setup("");
    twin.rest();
    twin.command(Command::OpenRun { run: RUN }).expect("opened");
    twin.rest();
    twin.command(Command::ReadSetup).expect("read");
    twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
    twin.rest();
    let over = run(&twin);
    let Some(StepKind::Error { message, .. }) = over.steps.last().map(|step| &step.kind) else { panic!("no reason") };
    assert!(message.contains("the task docs says “Max cost €1”") && message.contains("run it again"), "{message}");
    assert_eq!((over.about.ending, twin.models.len()), (Some(RunEnding::Failed), 0));
}

/// Which runs the disk has rows of known texts for.
fn known_texts(world: &World) -> usize {
    world.disk.metas_with_prefix(KNOWN_TEXTS_KEY_PREFIX).expect("read").len()
}

#[test]
fn what_runs_knew_that_ended_elsewhere_is_forgotten_at_the_next_start() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    ask(&mut twin, "work on @a.md");
    assert_eq!(known_texts(&twin.world), 1, "it has read the note");
    let mut world = twin.crash();
    let (key, value) = (known_text_key(DocId([9; 16]), twin.id("a.md")), Some(b"null".to_vec()));
    world.disk.commit(&[RowWrite::Meta { key, value }]).expect("written");
    assert_eq!(known_texts(&world), 2);
    let mut after = Twin::start(world, 3);
    after.rest();
    assert_eq!(known_texts(&after.world), 1, "the run that goes on still knows it");
}
