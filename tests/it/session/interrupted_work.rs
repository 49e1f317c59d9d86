//! Work that was delegated when the program was killed: it continues where it stopped, and nothing is done twice.

use super::agents::{RUN, SESSION, agent, answer, ask, done, fine, results, run, said, setup};
use crate::twin::Twin;
use agent::model_call::ModelRequest;
use agent::task_block;
use engine::{AgentRun, Command};
use serde_json::json;
use store::{DecisionMaker, DecisionRecord, DecisionScope, DocId, RunEnding, RunOrigin};

const NO_APPROVAL: &str = "approval:\n  never_approve: [shell]\n";
const PLAN: &str = "- [ ] Plot the rows ^plot\n  ```yaml\n  agent: data\n  ```\n- [ ] Write the README ^docs\n  \
                    ```yaml\n  agent: docs\n  ```\n";

/// A twin that carries out this plan.
fn carrying(plan: &str, config: &str) -> Twin {
    let mut twin = agent(&[("tasks/shop.md", plan)], config);
    let note = twin.id("tasks/shop.md");
    let (tasks, problems) = task_block::parse_tasks(plan);
    assert!(problems.is_empty(), "{problems:?}");
    let (only, budget, allow) = (None, None, Vec::new());
    twin.command(Command::RunTasks { run: RUN, session: SESSION, note, tasks, only, budget, allow }).expect("begun");
    twin.rest();
    twin
}

/// The next process after this one was killed, which has read the lead.
fn after_crash(twin: &Twin, seed: u64, config: &str) -> Twin {
    let mut twin = Twin::start_at(twin.crash(), seed, twin.now.plus_ms(1_000));
    twin.setup = setup(config);
    twin.rest();
    twin.command(Command::OpenRun { run: RUN }).expect("opened");
    twin.rest();
    twin
}

fn resume(twin: &mut Twin) {
    twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
    twin.rest();
}

/// The runs whose models are asked, and what they are asked, in order of the runs.
fn asked(twin: &Twin) -> Vec<(DocId, &ModelRequest)> {
    let mut all: Vec<(DocId, &ModelRequest)> = twin.models.iter().map(|(call, request)| (call.run, request)).collect();
    all.sort_by_key(|(run, _)| *run);
    all
}

fn runs_asked(twin: &Twin) -> Vec<DocId> {
    asked(twin).into_iter().map(|(run, _)| run).collect()
}

fn count(twin: &Twin) -> usize {
    twin.session.agents().runs().count()
}

/// The only run that was delegated.
fn part(twin: &Twin) -> &AgentRun {
    let is_part = |run: &&AgentRun| matches!(run.about.origin, RunOrigin::Agent { .. });
    let mut all = twin.session.agents().open_runs().filter(is_part);
    let part = all.next().expect("one was delegated");
    assert!(all.next().is_none(), "only one was delegated");
    part
}

#[test]
fn tasks_of_a_plan_continue_after_a_crash_and_nothing_runs_twice() {
    let mut twin = carrying(PLAN, NO_APPROVAL);
    let parts = runs_asked(&twin);
    assert_eq!((parts.len(), count(&twin)), (2, 3));
    for _ in 0..2 {
        answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    }
    done(&mut twin, fine("made"));
    // One has its result, and waits for its model. The other one's call is under way.
    assert_eq!((twin.models.len(), twin.tools.len()), (1, 1));
    let mut twin = after_crash(&twin, 4, NO_APPROVAL);
    assert!(twin.models.is_empty(), "nothing continues by itself");
    resume(&mut twin);
    assert_eq!((runs_asked(&twin), count(&twin)), (parts.clone(), 3), "the same runs continue");
    assert!(twin.tools.is_empty(), "nothing runs a second time");
    let told = asked(&twin).into_iter().map(|(_, request)| request.messages.last().expect("one").content.clone());
    let mut told: Vec<String> = told.collect();
    told.sort();
    assert!(told[0].contains("It was not run again.") && told[1] == "made", "{told:?}");
    // Killed once more, they are found again.
    let mut twin = after_crash(&twin, 5, NO_APPROVAL);
    resume(&mut twin);
    assert_eq!((runs_asked(&twin), count(&twin)), (parts, 3));
    answer(&mut twin, said("It is done.", &[]));
    answer(&mut twin, said("It is done.", &[]));
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    twin.pass(5_000);
    let (tasks, _) = task_block::parse_tasks(&twin.file("tasks/shop.md").expect("there"));
    assert_eq!(tasks.iter().map(|task| task.standing.checkbox_mark()).collect::<String>(), "xx");
}

#[test]
fn an_answer_that_came_while_the_plan_was_stopped_is_taken() {
    let plan = "- [ ] Plot the rows ^plot\n  ```yaml\n  agent: data\n  ```\n";
    let mut twin = carrying(plan, "");
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    let mut twin = after_crash(&twin, 4, "");
    // The task waited for a decision. It continues by itself, and the plan doesn't.
    let (child, approval) = (part(&twin).id, part(&twin).pending().next().expect("it waits").id.clone());
    let (by, scope) = (DecisionMaker::User, DecisionScope::Once);
    let decision = DecisionRecord { allowed: true, scope, by, at: 0, arguments: None, comment: None };
    twin.command(Command::Decide { run: child, approval, decision }).expect("decided");
    twin.rest();
    done(&mut twin, fine("made"));
    answer(&mut twin, said("Plotted.", &[]));
    assert_eq!((part(&twin).about.ending, run(&twin).about.ending), (Some(RunEnding::Done), None));
    let mut twin = after_crash(&twin, 5, "");
    resume(&mut twin);
    assert!(twin.models.is_empty(), "the task is done");
    assert_eq!((run(&twin).about.ending, count(&twin)), (Some(RunEnding::Done), 2));
    assert!(results(run(&twin)).contains(&(true, "Plotted.".to_owned())), "{:?}", results(run(&twin)));
}

#[test]
fn a_task_that_waits_for_a_decision_continues_for_its_plan() {
    let plan = "- [ ] Plot the rows ^plot\n  ```yaml\n  agent: data\n  ```\n";
    let config = "approval: {timeout_seconds: 60}\n";
    let mut twin = carrying(plan, config);
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    let mut twin = after_crash(&twin, 4, config);
    resume(&mut twin);
    assert_eq!((count(&twin), part(&twin).pending().count()), (2, 1), "it waits as before");
    // Nobody decides: the task continues without, and so does its plan.
    twin.pass(120_000);
    let (_, request) = answer(&mut twin, said("I could not plot.", &[]));
    assert!(request.messages.iter().any(|message| message.content.contains("Nobody decided")));
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

#[test]
fn a_stopped_attempt_is_not_continued_after_a_crash() {
    let plan = "- [ ] Plot the rows ^plot\n  ```yaml\n  agent: data\n  ```\n";
    let mut twin = carrying(plan, "");
    let stopped = runs_asked(&twin);
    twin.command(Command::CancelRun { run: RUN }).expect("stopped");
    twin.rest();
    twin.models.clear();
    resume(&mut twin);
    let second = runs_asked(&twin);
    assert_eq!(second.len(), 1);
    assert_ne!(second, stopped, "what the user stopped is tried anew");
    let mut twin = after_crash(&twin, 4, "");
    resume(&mut twin);
    assert_eq!((runs_asked(&twin), count(&twin)), (second, 3));
}

#[test]
fn an_agent_that_was_asked_continues_when_it_is_asked_again() {
    let mut twin = agent(&[("a.md", "# A\n")], NO_APPROVAL);
    ask(&mut twin, "look after the page");
    let question = [("ask_agent", json!({"agent": "qa", "goal": "Try the page"}))];
    answer(&mut twin, said("", &question));
    let child = part(&twin).id;
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    done(&mut twin, fine("made"));
    let mut twin = after_crash(&twin, 4, NO_APPROVAL);
    resume(&mut twin);
    assert_eq!(runs_asked(&twin), [RUN], "the lead decides");
    let (_, request) = answer(&mut twin, said("", &question));
    let told = &request.messages.last().expect("one").content;
    assert!(told.contains("Ask the same agent for the same goal to have it continue."), "{told}");
    assert_eq!((runs_asked(&twin), count(&twin)), (vec![child], 2), "the same run continues");
    let (_, request) = answer(&mut twin, said("It works.", &[]));
    assert_eq!(request.messages.last().expect("one").content, "made");
    // The same question again, after its answer, is new work.
    let (_, request) = answer(&mut twin, said("", &question));
    assert_eq!(request.messages.last().expect("one").content, "It works.");
    assert_eq!(count(&twin), 3);
    assert_ne!(runs_asked(&twin), [child]);
}
