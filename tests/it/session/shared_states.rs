//! Saved states of a note on two devices: what is announced, and when a device fetches what another one announced. The
//! kernels and the transfer are played by the tests.

use super::shared::Pair;
use super::{began, cells_of, finished};
use crate::twin::{Asked, Twin};
use engine::{Command, Event, KernelStateMove, SharedStateJob, SharedStateOutcome};
use store::{DocId, ExecutionStatus};

const NOTE: &str = "---\nkernel: science\n---\n\n```python\nx = 1\n```\n\n```python\nx\n```\n";

/// Asks for a run of the cell with this index.
fn start(twin: &mut Twin, note: DocId, cell: usize) {
    let cell = cells_of(twin, note)[cell];
    twin.command(Command::Run { note, cell }).expect("asked");
    twin.pass(10);
}

/// Ends the cell that was sent to the kernel, whose state is saved.
fn end(twin: &mut Twin, note: DocId) {
    let execution = began(twin, note);
    finished(twin, note, execution, ExecutionStatus::Ok);
    twin.event(Event::StateSaved { note, execution, problem: None });
}

fn done(twin: &mut Twin, note: DocId, outcome: SharedStateOutcome) {
    twin.event(Event::SharedStateDone { note, outcome });
    twin.pass(10);
}

#[test]
fn variables_follow_to_another_device_only_once_they_are_shared() {
    let mut pair = Pair::new(&[("a.md", NOTE)]);
    let note = pair.one.open("a.md");
    start(&mut pair.one, note, 0);
    end(&mut pair.one, note);
    assert_eq!(pair.one.state_jobs, [SharedStateJob::Announce]);
    done(&mut pair.one, note, SharedStateOutcome::Announced(None));
    pair.sync();
    assert_eq!(pair.two.open("a.md"), note);
    pair.two.pass(10);
    start(&mut pair.two, note, 1);
    assert!(pair.two.state_jobs.is_empty(), "nothing was announced");
    end(&mut pair.two, note);
    done(&mut pair.two, note, SharedStateOutcome::Announced(None));
    let asked = pair.two.command(Command::MoveState { note, to: KernelStateMove::Receive });
    assert!(asked.expect_err("nothing is there").0.contains("no other device shares"));
    // The user of the first device shares them.
    pair.one.command(Command::ShareState { note, is_shared: true }).expect("asked");
    assert_eq!(pair.one.state_jobs.last(), Some(&SharedStateJob::Share));
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one".into())));
    assert_eq!((pair.one.note(note).shared_state().count, &pair.one.note(note).shared_state().problem), (2, &None));
    pair.sync();
    // The next cell there waits for them, and runs after the kernel has taken them over.
    let before = pair.two.asked.len();
    start(&mut pair.two, note, 1);
    assert_eq!(pair.two.state_jobs.last(), Some(&SharedStateJob::Fetch("of one".into())));
    assert_eq!(pair.two.asked.len(), before, "the cell waits");
    done(&mut pair.two, note, SharedStateOutcome::Fetched(true));
    assert!(
        matches!(&pair.two.asked[before..], [Asked::Move(KernelStateMove::Receive), Asked::Eval { .. }]),
        "{:?}",
        pair.two.asked
    );
    end(&mut pair.two, note);
    // Each announcement is handled once.
    let jobs = pair.two.state_jobs.len();
    start(&mut pair.two, note, 1);
    assert_eq!(pair.two.state_jobs.len(), jobs);
    end(&mut pair.two, note);
    // Without anything to take over, the cell runs with the variables that are here.
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("later".into())));
    pair.sync();
    let before = pair.two.asked.len();
    start(&mut pair.two, note, 1);
    done(&mut pair.two, note, SharedStateOutcome::Fetched(false));
    assert!(matches!(&pair.two.asked[before..], [Asked::Eval { .. }]), "{:?}", pair.two.asked);
    end(&mut pair.two, note);
    // A run that waits for them can be stopped.
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("last".into())));
    pair.sync();
    let before = pair.two.asked.len();
    start(&mut pair.two, note, 1);
    assert_eq!(pair.two.state_jobs.last(), Some(&SharedStateJob::Fetch("last".into())));
    pair.two.command(Command::Interrupt { note }).expect("stopped");
    done(&mut pair.two, note, SharedStateOutcome::Fetched(false));
    assert_eq!(pair.two.asked.len(), before, "no cell runs");
}

#[test]
fn restoring_says_why_it_failed_and_an_excluded_note_is_withdrawn() {
    let mut pair = Pair::new(&[("a.md", NOTE)]);
    let note = pair.one.open("a.md");
    start(&mut pair.one, note, 0);
    end(&mut pair.one, note);
    done(&mut pair.one, note, SharedStateOutcome::ShareFailed("they are too large".into()));
    assert_eq!(pair.one.note(note).problems, ["they are too large"], "others have old variables");
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one".into())));
    assert!(pair.one.note(note).problems.is_empty());
    pair.sync();
    pair.two.open("a.md");
    pair.two.pass(10);
    let restore = Command::MoveState { note, to: KernelStateMove::Receive };
    pair.two.command(restore.clone()).expect("asked");
    assert_eq!(pair.two.state_jobs.last(), Some(&SharedStateJob::FetchAnyway("of one".into())));
    assert!(pair.two.command(restore.clone()).expect_err("they are on their way").0.contains("already"));
    done(&mut pair.two, note, SharedStateOutcome::FetchFailed("it is damaged".into()));
    assert_eq!(pair.two.note(note).state_move().problem.as_deref(), Some("it is damaged"));
    // `state: off` takes the announcement back, for all devices.
    let at = "---\nkernel: science\n".len();
    pair.one.edit(note, at, 0, "state: off\n");
    pair.one.pass(5_000);
    assert_eq!(pair.one.state_jobs.last(), Some(&SharedStateJob::Unshare));
    done(&mut pair.one, note, SharedStateOutcome::Unshared);
    pair.sync();
    assert!(pair.two.command(restore.clone()).expect_err("excluded").0.contains("state: off"));
    let shared = Command::ShareState { note, is_shared: true };
    assert!(pair.two.command(shared).expect_err("excluded").0.contains("state: off"));
    pair.one.edit(note, at, "state: off\n".len(), "");
    pair.one.pass(5_000);
    pair.sync();
    assert!(pair.two.command(restore).expect_err("withdrawn").0.contains("no other device shares"));
}

#[test]
fn a_closed_note_that_another_program_excludes_is_withdrawn() {
    let mut pair = Pair::new(&[("a.md", NOTE)]);
    let note = pair.one.open("a.md");
    start(&mut pair.one, note, 0);
    end(&mut pair.one, note);
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one".into())));
    pair.one.settle();
    pair.one.command(Command::CloseNote { note }).expect("closed");
    pair.one.settle();
    assert!(pair.one.session.note(note).is_none());
    let text = pair.one.file("a.md").expect("there").replacen("kernel: science\n", "kernel: science\nstate: off\n", 1);
    pair.one.outside("a.md", Some(&text));
    pair.one.settle();
    assert_eq!(pair.one.state_jobs.last(), Some(&SharedStateJob::Unshare));
    done(&mut pair.one, note, SharedStateOutcome::Unshared);
    pair.one.settle();
    assert!(pair.one.session.note(note).is_none(), "it waited only for that");
    pair.one.open("a.md");
    assert_eq!(pair.one.state_jobs.len(), 2, "it is withdrawn already: {:?}", pair.one.state_jobs);
}

#[test]
fn a_cell_that_runs_again_and_again_is_announced_at_intervals() {
    let mut pair = Pair::new(&[("a.md", NOTE)]);
    let note = pair.one.open("a.md");
    for at in 0..5 {
        start(&mut pair.one, note, 0);
        end(&mut pair.one, note);
        if at == 0 {
            done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one".into())));
        }
    }
    assert_eq!(pair.one.state_jobs, [SharedStateJob::Announce], "the first is announced at once");
    assert!(pair.one.note(note).is_announcing_state(), "the last is announced later");
    pair.one.pass(10_000);
    assert_eq!(pair.one.state_jobs.len(), 2);
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one, later".into())));
    assert!(!pair.one.note(note).is_announcing_state());
    // A kernel that ends doesn't leave its last state to later.
    start(&mut pair.one, note, 0);
    end(&mut pair.one, note);
    assert_eq!(pair.one.state_jobs.len(), 2);
    pair.one.event(Event::KernelDied { note, why: "the program closes".into() });
    assert_eq!(pair.one.state_jobs.len(), 3);
}

#[test]
fn a_stopped_cell_leaves_no_state_and_the_one_before_is_announced() {
    let mut pair = Pair::new(&[("a.md", NOTE)]);
    let note = pair.one.open("a.md");
    pair.one.command(Command::RunAll { note }).expect("asked");
    pair.one.pass(10);
    let first = began(&mut pair.one, note);
    finished(&mut pair.one, note, first, ExecutionStatus::Ok);
    let second = began(&mut pair.one, note);
    pair.one.event(Event::StateSaved { note, execution: first, problem: None });
    assert!(pair.one.state_jobs.is_empty(), "a cell runs");
    finished(&mut pair.one, note, second, ExecutionStatus::Interrupted);
    assert!(pair.one.note(note).is_announcing_state());
    pair.one.event(Event::StateUnchanged { note });
    // “Undo run” would undo the first run, so it isn't offered below the second.
    let open = pair.one.note(note);
    let runs: Vec<_> = open.cells().filter_map(|cell| open.latest_execution(cell)).collect();
    assert_eq!(runs.iter().map(|run| open.is_last_saved_run(run)).collect::<Vec<_>>(), [true, false]);
    assert_eq!(pair.one.state_jobs, [SharedStateJob::Announce]);
    done(&mut pair.one, note, SharedStateOutcome::Announced(Some("of one".into())));
    assert!(!pair.one.note(note).is_announcing_state(), "the note may be closed");
    // Nothing is expected, so nothing is announced again.
    pair.one.event(Event::StateUnchanged { note });
    assert_eq!(pair.one.state_jobs.len(), 1);
}

#[test]
fn only_notes_of_shared_volumes_share_their_variables() {
    let (mut twin, note) = Twin::on(NOTE);
    let shared = Command::ShareState { note, is_shared: true };
    assert!(twin.command(shared.clone()).expect_err("with nobody").0.contains("isn't shared with other devices"));
    start(&mut twin, note, 0);
    end(&mut twin, note);
    assert!(twin.state_jobs.is_empty(), "{:?}", twin.state_jobs);
    let (mut plain, note) = Twin::on("```python\n1\n```\n");
    let shared = Command::ShareState { note, is_shared: true };
    assert!(plain.command(shared).expect_err("no states").0.contains("only the kernel science"));
}
