//! Cells that an agent runs in a note whose variables are saved: they run on a branch, and the user's state stays.

use super::agents::{agent, answer, ask, decide, results, run, said};
use super::cells::{began, finished};
use super::cells_of;
use crate::twin::Twin;
use engine::{Command, Event, KernelStateMove};
use serde_json::json;
use store::{DecisionScope, DocId, ExecutionId, ExecutionStatus};

const NOTE: &str = "---\nkernel: science\n---\n\n```python\nx = 1\n```\n\n```python\nx\n```\n";
/// Named after the session of the agent's run.
const BRANCH: Option<&str> = Some("session-08080808");

/// Has the agent run a cell, which the user allows.
fn agent_runs(twin: &mut Twin, cell: usize) {
    answer(twin, said("", &[("run_cell", json!({"path": "a.md", "cell": cell}))]));
    let approval = run(twin).pending().next().expect("it asks").id.clone();
    decide(twin, &approval, true, DecisionScope::Once);
}

/// Returns a note whose two cells the user has run, with these executions.
fn ran() -> (Twin, DocId, [ExecutionId; 2]) {
    let mut twin = agent(&[("a.md", NOTE)], "");
    let note = twin.open("a.md");
    twin.command(Command::RunAll { note }).expect("run");
    twin.pass(10); // what the cells above left stands in the note's document
    let all = [(); 2].map(|()| {
        let execution = began(&mut twin, note);
        finished(&mut twin, note, execution, ExecutionStatus::Ok);
        execution
    });
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (None, Some(&all[..1])));
    (twin, note, all)
}

fn moved(note: DocId, undone: &[ExecutionId], rerun: bool) -> Event {
    let (state, branch, undone) = (Some("s".to_owned()), "main".to_owned(), undone.to_vec());
    Event::StateMoved { note, state, branch, undone, rerun, problem: None }
}

#[test]
fn an_agents_cells_run_on_a_branch_that_the_user_adopts() {
    let (mut twin, note, own) = ran();
    let cells = cells_of(&twin, note);
    ask(&mut twin, "work");
    agent_runs(&mut twin, 1);
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (BRANCH, Some(&[][..])));
    let theirs = began(&mut twin, note);
    // On the branch, the cell undoes what is below it, which runs there again.
    twin.event(moved(note, &own, true));
    finished(&mut twin, note, theirs, ExecutionStatus::Ok);
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (BRANCH, Some(&[theirs][..])));
    let below = began(&mut twin, note);
    finished(&mut twin, note, below, ExecutionStatus::Ok);
    assert_eq!(results(run(&twin)), [(true, "The cell printed nothing.".to_owned())]);
    let open = twin.note(note);
    assert_eq!(open.state_move().count, 0, "the user's state hasn't moved");
    assert!(own.iter().all(|execution| open.is_of_running_kernel(*execution)));
    assert!(![theirs, below].iter().any(|execution| open.is_of_running_kernel(*execution)));

    // The user's cell continues with the user's own run of the cell above.
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (None, Some(&own[..1])));
    let next = began(&mut twin, note);
    finished(&mut twin, note, next, ExecutionStatus::Ok);
    assert!(twin.note(note).is_of_running_kernel(next));
    let adopt = KernelStateMove::Adopt { name: BRANCH.unwrap_or_default().to_owned() };
    twin.command(Command::MoveState { note, to: adopt }).expect("asked");
    twin.event(moved(note, &[own[0], next], false));
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (None, Some(&[theirs][..])), "it's the user's now");
}

#[test]
fn a_cell_that_the_user_requests_too_runs_in_the_users_state() {
    let (mut twin, note, _) = ran();
    let cells = cells_of(&twin, note);
    twin.command(Command::Run { note, cell: cells[0] }).expect("run");
    let first = began(&mut twin, note);
    ask(&mut twin, "work");
    agent_runs(&mut twin, 2); // it waits for its turn
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    let both = began(&mut twin, note);
    assert_eq!((twin.branch.as_deref(), twin.after.as_deref()), (None, Some(&[first][..])));
    finished(&mut twin, note, both, ExecutionStatus::Ok);
    assert!(results(run(&twin))[0].0 && twin.note(note).is_of_running_kernel(both));

    // A cell that runs for the agent runs again for the user.
    agent_runs(&mut twin, 1);
    let theirs = began(&mut twin, note);
    assert_eq!(twin.branch.as_deref(), BRANCH);
    twin.command(Command::Run { note, cell: cells[0] }).expect("run");
    finished(&mut twin, note, theirs, ExecutionStatus::Ok);
    assert!(began(&mut twin, note) != theirs && twin.branch.is_none());
}

#[test]
fn other_kernels_have_one_state() {
    let mut twin = agent(&[("a.md", "```python\nx = 1\n```\n")], "");
    ask(&mut twin, "work");
    agent_runs(&mut twin, 1);
    let note = twin.id("a.md");
    let execution = began(&mut twin, note);
    finished(&mut twin, note, execution, ExecutionStatus::Ok);
    assert_eq!((twin.branch.as_deref(), results(run(&twin)).len()), (None, 1));
}
