//! Cells: queued, running, stopped, with a dead kernel; their outputs are kept.

use super::cells_of;
use crate::twin::{Asked, Twin};
use engine::{Command, Event, KernelPhase, KernelStateMove};
use store::{CellOutput, DocId, ExecutionId, ExecutionStatus, OutputBody};
use text::text_edit::TextEdit;

const THREE: &str = "```python\n1\n```\n\ntext\n\n```python\n2\n```\n```python\n3\n```\n";

fn last_eval(twin: &Twin) -> (ExecutionId, String, String) {
    match twin.asked.last() {
        Some(Asked::Eval { execution, code, label, .. }) => (*execution, code.clone(), label.clone()),
        other => panic!("no cell was sent to the kernel: {other:?}"),
    }
}

pub(super) fn began(twin: &mut Twin, note: DocId) -> ExecutionId {
    let (execution, _, _) = last_eval(twin);
    twin.event(Event::KernelReady { note });
    twin.event(Event::Began { note, execution });
    execution
}

pub(crate) fn printed(twin: &mut Twin, note: DocId, execution: ExecutionId, text: &str) {
    let body = OutputBody::Stream { name: "stdout".to_owned(), text: text.to_owned() };
    twin.event(Event::Output { note, execution, output: CellOutput { body, whole: None } });
}

pub(crate) fn finished(twin: &mut Twin, note: DocId, execution: ExecutionId, status: ExecutionStatus) {
    twin.event(Event::Finished {
        note,
        execution,
        status,
        count: Some(1),
        whole: Vec::new(),
        cached: false,
        took: None,
    });
    twin.rest();
}

/// The status and printed text of each cell.
pub(super) fn shown(twin: &Twin, note: DocId) -> Vec<(Option<ExecutionStatus>, String)> {
    let note = twin.note(note);
    let text = |output: &CellOutput| match &output.body {
        OutputBody::Stream { text, .. } => text.clone(),
        OutputBody::Error { ename, .. } => format!("<{ename}>"),
        body => format!("{body:?}"),
    };
    let cell = |cell| match note.latest_execution(cell) {
        Some(execution) => (Some(execution.status), execution.outputs.iter().map(text).collect()),
        None => (None, String::new()),
    };
    note.cells().map(cell).collect()
}

#[test]
fn cells_run_in_order() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    for number in 1..=3 {
        assert_eq!(twin.asked.len(), number, "one at a time");
        let (execution, code, label) = last_eval(&twin);
        assert_eq!((code, label), (format!("{number}\n"), format!("cell {number}")));
        assert_eq!(twin.note(note).kernel, KernelPhase::Busy(execution));
        began(&mut twin, note);
        printed(&mut twin, note, execution, &format!("{number}"));
        printed(&mut twin, note, execution, ";");
        finished(&mut twin, note, execution, ExecutionStatus::Ok);
    }
    assert_eq!(twin.note(note).kernel, KernelPhase::Idle);
    let expected: Vec<_> = (1..=3).map(|number| (Some(ExecutionStatus::Ok), format!("{number};"))).collect();
    assert_eq!(shown(&twin, note), expected);
    twin.settle();
    twin.check_settled(note, "a.md");
    assert_eq!(twin.written, 0, "running a cell does not touch the file");
}

/// The duration is the one that the kernel's side measured, even if start and end reach the session together.
#[test]
fn a_cell_took_as_long_as_was_measured() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let execution = began(&mut twin, note);
    let (count, whole) = (Some(1), Vec::new());
    twin.event(Event::Finished {
        note,
        execution,
        status: ExecutionStatus::Ok,
        count,
        whole,
        cached: false,
        took: Some(42),
    });
    let cell = twin.note(note).cells().next().expect("a cell");
    assert_eq!(twin.note(note).latest_execution(cell).and_then(|done| done.duration), Some(42));
}

#[test]
fn the_first_error_stops_the_rest() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    let second = began(&mut twin, note);
    assert_ne!(first, second);
    finished(&mut twin, note, second, ExecutionStatus::Error);
    assert_eq!(twin.asked.len(), 2);
    let status: Vec<_> = shown(&twin, note).into_iter().map(|(status, _)| status).collect();
    assert_eq!(status, [Some(ExecutionStatus::Ok), Some(ExecutionStatus::Error), Some(ExecutionStatus::Interrupted)]);
    // The kernel is alive and runs the next cell.
    let cell = cells_of(&twin, note)[2];
    twin.command(Command::Run { note, cell }).expect("run");
    assert_eq!(last_eval(&twin).1, "3\n");
}

#[test]
fn a_cell_is_asked_to_stop_and_then_made_to() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    printed(&mut twin, note, first, "so far");
    twin.command(Command::Interrupt { note }).expect("asked");
    assert_eq!(twin.asked.last(), Some(&Asked::Interrupt));
    let status: Vec<_> = shown(&twin, note).into_iter().map(|(status, _)| status).collect();
    let [running, stopped] = [ExecutionStatus::Running, ExecutionStatus::Interrupted].map(Some);
    assert_eq!(status, [running, stopped, stopped], "what waits is not waited for");
    twin.pass(690);
    assert_eq!(twin.asked.last(), Some(&Asked::Interrupt), "it has its time");
    twin.pass(20);
    assert_eq!(twin.asked.last(), Some(&Asked::Kill));
    twin.event(Event::KernelDied { note, why: "killed".to_owned() });
    twin.rest();
    let expected = [
        (Some(ExecutionStatus::Interrupted), "so far<KernelStopped>".to_owned()),
        (Some(ExecutionStatus::Interrupted), String::new()),
        (Some(ExecutionStatus::Interrupted), String::new()),
    ];
    assert_eq!(shown(&twin, note), expected);
    assert_eq!(twin.note(note).kernel, KernelPhase::Off);
    let cell = cells_of(&twin, note)[1];
    twin.command(Command::Run { note, cell }).expect("run");
    assert_eq!(last_eval(&twin).1, "2\n", "the next run starts a new one");
}

#[test]
fn a_cell_has_its_time() {
    let text = "```python\n1\n```\n\n```python timeout=90\n2\n```\n\n```python timeout=0\n3\n```\n";
    let (mut twin, note) = Twin::on(text);
    let cells = cells_of(&twin, note);
    // The default limit, the cell's own, and none; a limit given with the run takes precedence.
    for (cell, asked, seconds) in [(0, None, 30), (1, None, 90), (0, Some(5), 5), (2, Some(7), 7)] {
        let cell = cells[cell];
        twin.command(match asked {
            Some(seconds) => Command::RunWithin { note, cell, seconds },
            None => Command::Run { note, cell },
        })
        .expect("run");
        let execution = began(&mut twin, note);
        twin.pass(seconds * 1_000 - 10);
        assert_ne!(twin.asked.last(), Some(&Asked::Interrupt), "{seconds}");
        twin.pass(20);
        assert_eq!(twin.asked.last(), Some(&Asked::Interrupt), "{seconds}");
        let body = OutputBody::Error {
            ename: "KeyboardInterrupt".to_owned(),
            evalue: String::new(),
            traceback: vec!["  line 1".to_owned(), "KeyboardInterrupt".to_owned()],
        };
        twin.event(Event::Output { note, execution, output: CellOutput { body, whole: None } });
        finished(&mut twin, note, execution, ExecutionStatus::Interrupted);
        let outputs = &twin.note(note).latest_execution(cell).expect("it ran").outputs;
        let [CellOutput { body: OutputBody::Error { ename, evalue, traceback }, .. }] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        assert_eq!((ename.as_str(), traceback.len()), ("TimeLimit", 2));
        assert!(evalue.starts_with(&format!("stopped after {seconds} s")), "{evalue}");
    }
    for (cell, asked) in [(2, None), (0, Some(0))] {
        let cell = cells[cell];
        twin.command(match asked {
            Some(seconds) => Command::RunWithin { note, cell, seconds },
            None => Command::Run { note, cell },
        })
        .expect("run");
        let execution = began(&mut twin, note);
        twin.pass(3_600_000);
        assert_ne!(twin.asked.last(), Some(&Asked::Interrupt));
        finished(&mut twin, note, execution, ExecutionStatus::Ok);
    }
}

#[test]
fn a_cell_that_stops_in_time_keeps_its_kernel() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    twin.command(Command::Interrupt { note }).expect("asked");
    twin.pass(100);
    finished(&mut twin, note, first, ExecutionStatus::Interrupted);
    let cell = cells_of(&twin, note)[1];
    twin.command(Command::Run { note, cell }).expect("run");
    twin.pass(10_000);
    assert!(!twin.asked.contains(&Asked::Kill), "{:?}", twin.asked);
}

#[test]
fn output_of_what_no_longer_runs_is_dropped() {
    let (mut twin, note) = Twin::on(THREE);
    let cell = cells_of(&twin, note)[0];
    twin.command(Command::Run { note, cell }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    printed(&mut twin, note, first, "late");
    assert_eq!(shown(&twin, note)[0], (Some(ExecutionStatus::Ok), String::new()), "it is over");
    twin.command(Command::Run { note, cell }).expect("run");
    let second = began(&mut twin, note);
    printed(&mut twin, note, first, "later");
    printed(&mut twin, note, second, "new");
    finished(&mut twin, note, first, ExecutionStatus::Error);
    assert_eq!(twin.note(note).kernel, KernelPhase::Busy(second));
    finished(&mut twin, note, second, ExecutionStatus::Ok);
    assert_eq!(shown(&twin, note)[0], (Some(ExecutionStatus::Ok), "new".to_owned()));
}

#[test]
fn a_cell_that_runs_is_not_run_twice() {
    let (mut twin, note) = Twin::on(THREE);
    let all = cells_of(&twin, note);
    for cell in [all[0], all[0], all[1], all[1]] {
        twin.command(Command::Run { note, cell }).expect("run");
    }
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    let second = began(&mut twin, note);
    finished(&mut twin, note, second, ExecutionStatus::Ok);
    assert_eq!(twin.asked.len(), 2);
}

#[test]
fn the_death_of_a_kernel_is_told() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    printed(&mut twin, note, first, "before");
    twin.event(Event::KernelDied { note, why: "signal 11".to_owned() });
    twin.rest();
    assert_eq!(shown(&twin, note)[0], (Some(ExecutionStatus::Died), "before<KernelDied>".to_owned()));
    assert_eq!(twin.text(note), THREE);
    assert_eq!(twin.asked.len(), 1, "the rest is not run in a kernel without the first cell's work");
}

#[test]
fn outputs_are_there_after_a_restart() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    printed(&mut twin, note, first, "one");
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    let second = began(&mut twin, note);
    printed(&mut twin, note, second, "running");
    twin.pass(1_500);
    let mut next = Twin::start(twin.crash(), 2);
    next.settle();
    next.open("a.md");
    let expected = [
        (Some(ExecutionStatus::Ok), "one".to_owned()),
        (Some(ExecutionStatus::Interrupted), "running".to_owned()),
        (Some(ExecutionStatus::Interrupted), String::new()),
    ];
    assert_eq!(shown(&next, note)[..2], expected[..2]);
    assert_eq!(next.note(note).kernel, KernelPhase::Off);
    assert!(!next.note(note).is_stale(cells_of(&next, note)[0]));
    assert_eq!(next.asked, [], "nothing is run again by itself");
}

#[test]
fn code_that_has_changed_since_is_stale() {
    let (mut twin, note) = Twin::on(THREE);
    let cell = cells_of(&twin, note)[0];
    assert!(!twin.note(note).is_stale(cell));
    twin.command(Command::Run { note, cell }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    assert!(!twin.note(note).is_stale(cell));
    twin.edit(note, 10, 0, "4");
    assert_eq!(twin.note(note).cell_code(cell), Some("41\n"));
    assert!(twin.note(note).is_stale(cell));
    twin.command(Command::Undo { note }).expect("undone");
    assert!(!twin.note(note).is_stale(cell));
    twin.edit(note, 9, 0, " #");
    assert!(!twin.note(note).is_stale(cell), "only the code counts");
}

#[test]
fn a_kernel_is_kept_ready_for_the_note_that_is_looked_at() {
    let mut twin = Twin::with(&[("a.md", "text\n"), ("deep/b.md", THREE)]);
    let plain = twin.id("a.md");
    twin.command(Command::OpenNote { note: plain }).expect("opened");
    twin.pass(1_000);
    assert_eq!(twin.reserve, None, "nothing to run");
    let note = twin.id("deep/b.md");
    twin.command(Command::OpenNote { note }).expect("opened");
    twin.pass(100);
    assert_eq!(twin.reserve, None, "a glance");
    twin.pass(1_000);
    assert_eq!(twin.reserve, Some(format!("{}/deep", crate::twin::ROOT).into()));
    // The reserved kernel is released when unused, and reserved again with the next edit of a cell.
    twin.pass(700_000);
    assert_eq!(twin.reserve, None);
    twin.command(Command::Edit { note, at: 10, delete: 0, insert: "1".into() }).expect("edited");
    twin.pass(1_000);
    assert!(twin.reserve.is_some());
    // The program isn't woken up forever.
    twin.pass(2_000_000);
    assert_eq!(twin.reserve, None);
}

#[test]
fn a_note_runs_in_the_kernel_that_the_user_chose() {
    let (mut twin, note) = Twin::on("---\nkernel: own\n---\n\n```python\n1\n```\n");
    let why = twin.command(Command::RunAll { note }).expect_err("not by itself").0;
    assert!(why.contains("all your rights"), "{why}");
    twin.command(Command::UseKernel { note, kernel: Some("own".into()), keep: true, seen: None }).expect("chosen");
    twin.command(Command::RunAll { note }).expect("run");
    assert_eq!(twin.kernel.as_deref(), Some("own"));
    let execution = began(&mut twin, note);
    assert!(twin.command(Command::UseKernel { note, kernel: None, keep: true, seen: None }).is_err(), "while it runs");
    // A request for input stops the clock.
    twin.event(Event::Asked { note, execution, prompt: "Who? ".into(), password: false });
    twin.pass(100_000);
    assert!(!twin.asked.contains(&Asked::Interrupt));
    twin.command(Command::Answer { note, text: "Ada".into() }).expect("answered");
    assert_eq!(twin.asked.last(), Some(&Asked::Answer("Ada".into())));
    assert!(twin.command(Command::Answer { note, text: "again".into() }).is_err());
    twin.pass(31_000);
    assert!(twin.asked.contains(&Asked::Interrupt), "it goes on afterwards");
    finished(&mut twin, note, execution, ExecutionStatus::Ok);
    let run = twin.session.note(note).and_then(|open| open.latest_execution(cells_of(&twin, note)[0])).expect("it ran");
    assert!(run.duration.is_some_and(|ms| ms < 60_000), "the wait for the answer isn't counted: {:?}", run.duration);
    // Shown output is cleared, and later updated in place.
    let cell = cells_of(&twin, note)[0];
    twin.command(Command::UseKernel { note, kernel: None, keep: true, seen: None }).expect("chosen");
    assert_eq!(twin.asked.last(), Some(&Asked::Kill), "the other one ends");
    twin.command(Command::Run { note, cell }).expect("it waits for that");
    twin.event(Event::KernelDied { note, why: "ended".into() });
    assert_eq!(twin.kernel, None, "the built-in one");
    let execution = began(&mut twin, note);
    printed(&mut twin, note, execution, "old");
    twin.event(Event::Cleared { note, execution });
    printed(&mut twin, note, execution, "1 %");
    let body = OutputBody::Stream { name: "stdout".into(), text: "2 %".into() };
    finished(&mut twin, note, execution, ExecutionStatus::Ok);
    twin.event(Event::Updated { note, execution, at: 0, output: CellOutput { body, whole: None } });
    assert_eq!(shown(&twin, note), [(Some(ExecutionStatus::Ok), "2 %".to_owned())]);
}

#[test]
fn what_is_put_before_a_cell_leaves_it_its_outputs() {
    for above in ["```python\n0\n```\n\n", "```python\n0\n```\n", "words\n\n", "```\nno cell\n```\n"] {
        let (mut twin, note) = Twin::on(THREE);
        let cells = cells_of(&twin, note);
        twin.command(Command::Run { note, cell: cells[0] }).expect("run");
        let execution = began(&mut twin, note);
        printed(&mut twin, note, execution, "one");
        finished(&mut twin, note, execution, ExecutionStatus::Ok);
        twin.command(Command::Edit { note, at: 0, delete: 0, insert: above.to_owned() }).expect("edited");
        twin.settle();
        assert_eq!(twin.note(note).text(), format!("{above}{THREE}"));
        assert_eq!(cells_of(&twin, note).iter().rev().nth(2), Some(&cells[0]), "{above:?}");
        assert_eq!(twin.note(note).cell_code(cells[0]), Some("1\n"));
        let kept = shown(&twin, note).into_iter().rev().nth(2);
        assert_eq!(kept, Some((Some(ExecutionStatus::Ok), "one".to_owned())), "{above:?}");
    }
    // A fence that swallows the cell removes it.
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::Edit { note, at: 0, delete: 0, insert: "~~~\n".to_owned() }).expect("edited");
    assert_eq!(cells_of(&twin, note).len(), 2, "{:?}", twin.note(note).text());
}

#[test]
fn a_cell_that_moves_past_another_takes_its_outputs_along() {
    let cell = |number: &str| format!("```python\n{number}\n```\n\n");
    let (first, second) = (cell("1"), cell("2"));
    let note = format!("{first}words\n\n{second}more\n");
    let splice = |at, delete, insert: &str| TextEdit { at, delete, insert: insert.to_owned() };
    let (behind, end) = (first.len() + "words\n\n".len() + second.len(), note.len());
    // As two edits, as one edit that rewrites both, and past the last line.
    let swapped = format!("{second}words\n\n{first}");
    for edits in [
        vec![splice(0, first.len(), ""), splice(behind, 0, &first)],
        vec![splice(0, behind, &swapped)],
        vec![splice(0, first.len(), ""), splice(end, 0, &format!("\n{first}"))],
    ] {
        let (mut twin, id) = Twin::on(&note);
        let cells = cells_of(&twin, id);
        for (cell, prints) in cells.iter().zip(["one", "two"]) {
            twin.command(Command::Run { note: id, cell: *cell }).expect("run");
            let execution = began(&mut twin, id);
            printed(&mut twin, id, execution, prints);
            finished(&mut twin, id, execution, ExecutionStatus::Ok);
        }
        twin.command(Command::EditAll { note: id, edits }).expect("moved");
        twin.settle();
        assert_eq!(cells_of(&twin, id), [cells[1], cells[0]], "{:?}", twin.note(id).text());
        assert_eq!((twin.note(id).cell_code(cells[0]), twin.note(id).cell_code(cells[1])), (Some("1\n"), Some("2\n")));
        let both = [(Some(ExecutionStatus::Ok), "two".to_owned()), (Some(ExecutionStatus::Ok), "one".to_owned())];
        assert_eq!(shown(&twin, id), both);
        twin.command(Command::Undo { note: id }).expect("undone");
        twin.settle();
        assert_eq!((twin.note(id).text(), cells_of(&twin, id)), (note.clone(), cells), "and back");
    }
}

#[test]
fn a_deleted_cell_that_comes_back_has_its_outputs_again() {
    let (mut twin, note) = Twin::on(THREE);
    let cells = cells_of(&twin, note);
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    let execution = began(&mut twin, note);
    printed(&mut twin, note, execution, "two");
    finished(&mut twin, note, execution, ExecutionStatus::Ok);
    let at = THREE.find("```python\n2").expect("the second");
    let delete = "```python\n2\n```\n".len();
    twin.command(Command::Edit { note, at, delete, insert: String::new() }).expect("deleted");
    twin.settle();
    assert_eq!(shown(&twin, note), [(None, String::new()), (None, String::new())]);
    twin.command(Command::Undo { note }).expect("undone");
    twin.settle();
    assert_eq!(twin.note(note).text(), THREE);
    assert_eq!(shown(&twin, note)[1], (Some(ExecutionStatus::Ok), "two".to_owned()));
}

#[test]
fn a_kernel_of_the_users_own_has_longer_to_stop() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::UseKernel { note, kernel: Some("own".into()), keep: false, seen: None }).expect("chosen");
    twin.command(Command::RunAll { note }).expect("run");
    began(&mut twin, note);
    twin.command(Command::Interrupt { note }).expect("stopped");
    twin.pass(4_000);
    assert_eq!(twin.asked.last(), Some(&Asked::Interrupt), "it may still be putting things away");
    twin.pass(2_000);
    assert_eq!(twin.asked.last(), Some(&Asked::Kill));
    twin.event(Event::KernelDied { note, why: "ended".into() });
    // A second interrupt kills it at once.
    twin.command(Command::RunAll { note }).expect("run");
    began(&mut twin, note);
    twin.command(Command::Interrupt { note }).expect("stopped");
    twin.command(Command::Interrupt { note }).expect("stopped");
    twin.pass(10);
    assert_eq!(twin.asked.last(), Some(&Asked::Kill));
}

#[test]
fn saved_states_are_moved_between_and_what_is_below_runs_again() {
    let (mut twin, note) = Twin::on("---\nkernel: science\n---\n\n```python\nx = 1\n```\n\n```python\nx\n```\n");
    twin.command(Command::RunAll { note }).expect("it needs no permission");
    twin.pass(10); // what the cells above left stands in the note's document
    assert_eq!(twin.kernel.as_deref(), Some("science"));
    let first = began(&mut twin, note);
    let busy = Command::MoveState { note, to: KernelStateMove::Undo };
    assert!(twin.command(busy.clone()).expect_err("while it runs").0.contains("stop it first"));
    finished(&mut twin, note, first, ExecutionStatus::Ok);
    let second = began(&mut twin, note);
    finished(&mut twin, note, second, ExecutionStatus::Ok);
    twin.event(Event::StateSaved { note, execution: first, problem: None });
    twin.event(Event::StateSaved { note, execution: second, problem: Some("the disk is full".into()) });
    assert!(twin.note(note).problems.iter().any(|problem| problem.contains("the disk is full")));
    // The user restores an earlier state.
    twin.command(busy).expect("asked");
    assert_eq!(twin.asked.last(), Some(&Asked::Move(KernelStateMove::Undo)));
    let moved = |undone: Vec<ExecutionId>, rerun| Event::StateMoved {
        note,
        state: Some("s".into()),
        branch: "main".into(),
        undone,
        rerun,
        problem: None,
    };
    twin.event(moved(vec![second], false));
    let cells = cells_of(&twin, note);
    let open = twin.note(note);
    assert_eq!((open.state_move().count, &open.state_move().undone), (1, &vec![cells[1]]));
    assert!(open.is_of_running_kernel(first) && !open.is_of_running_kernel(second));
    // The first cell runs again from the state above it, and the cells below follow, as from top to bottom.
    twin.command(Command::Run { note, cell: cells[0] }).expect("run");
    let again = began(&mut twin, note);
    twin.event(moved(vec![first, second], true));
    finished(&mut twin, note, again, ExecutionStatus::Ok);
    let below = began(&mut twin, note);
    assert_eq!(last_eval(&twin).1, "x\n");
    finished(&mut twin, note, below, ExecutionStatus::Ok);
    // A kernel that dies loses only the states that it hadn't saved.
    twin.event(Event::StateSaved { note, execution: again, problem: None });
    twin.event(Event::KernelDied { note, why: "killed".into() });
    assert!(twin.note(note).is_of_running_kernel(again) && !twin.note(note).is_of_running_kernel(below));
    // A restart begins with an empty state.
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    let last = began(&mut twin, note);
    finished(&mut twin, note, last, ExecutionStatus::Ok);
    twin.command(Command::RestartKernel { note }).expect("restarted");
    twin.event(Event::KernelDied { note, why: "ended".into() });
    assert_eq!(twin.asked.last(), Some(&Asked::Move(KernelStateMove::Fresh)));
    // Other kernels save no states.
    let (mut other, plain) = Twin::on(THREE);
    let refused = other.command(Command::MoveState { note: plain, to: KernelStateMove::Undo });
    assert!(refused.expect_err("the built-in kernel").0.contains("only the kernel science"));
}
