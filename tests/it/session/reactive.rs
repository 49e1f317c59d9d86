//! Cells that depend on each other: what is stale, what runs, which names are forgotten, and a clean run.

use super::cells::{began, finished, printed};
use super::cells_of;
use crate::twin::{Asked, Twin};
use engine::{Command, Event, Reactivity};
use store::{DocId, ExecutionStatus};

const CHAIN: &str = "```python\nx = 1\n```\n\n```python\ny = x\n```\n\n```python\nz = 1\n```\n\n```python\ny\n```\n";

/// Runs every requested cell. Returns the codes in the order in which they ran.
fn serve(twin: &mut Twin, note: DocId) -> Vec<String> {
    let mut ran = Vec::new();
    while let Some(Asked::Eval { code, .. }) = twin.asked.last().cloned() {
        let execution = began(twin, note);
        twin.asked.clear();
        printed(twin, note, execution, "1");
        finished(twin, note, execution, ExecutionStatus::Ok);
        ran.push(code.trim_end().to_owned());
    }
    ran
}

fn stale(twin: &Twin, note: DocId) -> Vec<Option<String>> {
    let open = twin.note(note);
    open.cells().map(|cell| open.stale_reason(cell).map(|stale| stale.describe())).collect()
}

fn input(name: &str) -> Option<String> {
    Some(format!("`{name}` has changed"))
}

fn code_changed() -> Option<String> {
    Some("the code has changed since".to_owned())
}

#[test]
fn a_name_that_moved_below_is_said() {
    let (mut twin, note) =
        Twin::on("```python\nimport math\n```\n\n```python\nmath\n```\n\n```python\nimport math\n```\n");
    twin.command(Command::RunAll { note }).expect("run");
    serve(&mut twin, note);
    assert_eq!(stale(&twin, note), [None, None, None]);
    twin.edit(note, "```python\n".len(), "import math".len(), "1");
    assert_eq!(stale(&twin, note)[1].as_deref(), Some("`math` is now defined further down"));
}

#[test]
fn what_depends_on_a_cell_is_marked() {
    let (mut twin, note) = Twin::on(CHAIN);
    twin.command(Command::RunAll { note }).expect("run");
    serve(&mut twin, note);
    assert_eq!(stale(&twin, note), [None, None, None, None]);
    let first = cells_of(&twin, note)[0];
    twin.edit(note, "```python\nx = 1".len(), 0, "0");
    assert_eq!(stale(&twin, note), [code_changed(), input("x"), None, input("y")]);
    twin.command(Command::Run { note, cell: first }).expect("run");
    assert_eq!(serve(&mut twin, note), ["x = 10"], "only what was asked for");
    assert_eq!(stale(&twin, note), [None, input("x"), None, input("y")]);
    // It's known after a restart, too, since each run records its inputs.
    let mut next = Twin::start(twin.crash(), 3);
    next.settle();
    next.open("a.md");
    assert_eq!(stale(&next, note), [None, input("x"), None, input("y")]);
    assert_eq!(next.asked, [], "nothing runs by itself");
    twin.command(Command::RunStale { note }).expect("run");
    assert_eq!(serve(&mut twin, note), ["y = x", "y"]);
    assert_eq!(stale(&twin, note), [None, None, None, None]);
    assert!(twin.command(Command::RunStale { note }).is_err());
    let cells = cells_of(&twin, note)[2..].to_vec();
    twin.command(Command::RunCells { note, cells }).expect("run");
    assert_eq!(serve(&mut twin, note), ["z = 1", "y"]);
}

#[test]
fn what_depends_on_a_cell_runs() {
    let (mut twin, note) = Twin::on(CHAIN);
    twin.command(Command::SetReactivity { note, to: Reactivity::Automatic }).expect("set");
    assert!(twin.text(note).starts_with("---\ncells: automatic\n---\n\n```python\n"));
    let cell = |twin: &Twin, at: usize| cells_of(twin, note)[at];
    let last = cell(&twin, 3);
    twin.command(Command::Run { note, cell: last }).expect("run");
    assert_eq!(serve(&mut twin, note), ["x = 1", "y = x", "y"], "what it needs runs first");
    let first = cell(&twin, 0);
    twin.command(Command::Run { note, cell: first }).expect("run");
    assert_eq!(serve(&mut twin, note), ["x = 1", "y = x", "y"]);
    // After an error the dependent cells don't run.
    twin.command(Command::Run { note, cell: first }).expect("run");
    let execution = began(&mut twin, note);
    twin.asked.clear();
    finished(&mut twin, note, execution, ExecutionStatus::Error);
    assert_eq!(twin.asked, []);
    twin.command(Command::SetReactivity { note, to: Reactivity::Manual }).expect("set");
    assert!(twin.text(note).starts_with("---\ncells: manual\n---\n"));
    assert_eq!(stale(&twin, note), [None, None, None, None]);
}

#[test]
fn what_a_deleted_cell_had_bound_is_forgotten() {
    let (mut twin, note) = Twin::on(CHAIN);
    twin.command(Command::RunAll { note }).expect("run");
    serve(&mut twin, note);
    twin.edit(note, 0, "```python\nx = 1\n```\n\n".len(), "");
    let cells = cells_of(&twin, note);
    assert_eq!(twin.asked, [], "not before something runs");
    twin.command(Command::Run { note, cell: cells[1] }).expect("run");
    match twin.asked.last() {
        Some(Asked::Eval { forget, .. }) => assert_eq!(forget, &["x"]),
        other => panic!("{other:?}"),
    }
    serve(&mut twin, note);
    assert_eq!(stale(&twin, note), [input_gone(), None, input("y")]);
}

/// The reason of a cell that used an `x` that no cell defines now.
fn input_gone() -> Option<String> {
    Some("no cell defines `x` now".to_owned())
}

#[test]
fn a_clean_run_says_whether_the_results_are_the_same() {
    let (mut twin, note) = Twin::on(CHAIN);
    twin.command(Command::RunAll { note }).expect("run");
    serve(&mut twin, note);
    twin.command(Command::RunClean { note }).expect("run");
    assert_eq!(twin.asked, [Asked::Kill], "a fresh kernel first");
    twin.asked.clear();
    twin.event(Event::KernelDied { note, why: "asked".to_owned() });
    for number in 1..=4 {
        let execution = began(&mut twin, note);
        twin.asked.clear();
        printed(&mut twin, note, execution, if number == 2 { "other" } else { "1" });
        finished(&mut twin, note, execution, ExecutionStatus::Ok);
    }
    let (count, verdict) = twin.note(note).clean_run_report().expect("a verdict");
    assert_eq!((count, verdict.same, verdict.different.clone()), (1, 3, vec![cells_of(&twin, note)[1]]));
    let words = "Clean run: 1 result differ: cell 2; 3 results the same".replace("1 result differ", "1 result differs");
    assert_eq!(twin.note(note).clean_run_summary().expect("words"), words);
}

#[test]
fn names_that_are_bound_twice_or_below_are_told() {
    let (twin, note) = Twin::on("```python\nx = y\n```\n\n```python\nx = 1\ny = x\n```\n");
    let cells = cells_of(&twin, note);
    let expected = ["x is bound in cell 2, too", "y is bound only below, in cell 2"];
    assert_eq!(twin.note(note).name_remarks(cells[0]), expected);
}

#[test]
fn a_widget_runs_as_its_assignment_and_names_what_depends_on_it() {
    let text =
        "```widget\nslider: n\nvalue: 3\n```\n\n```python\nm = n\n```\n\n```python\nother\n```\n\n```python\nm\n```\n";
    let (mut twin, note) = Twin::on(text);
    twin.command(Command::RunAll { note }).expect("run");
    assert_eq!(serve(&mut twin, note), ["n = 3", "m = n", "other", "m"]);
    let cells = cells_of(&twin, note);
    twin.edit(note, text.find('3').expect("there"), 1, "7");
    assert_eq!(stale(&twin, note), [code_changed(), input("n"), None, input("m")]);
    let after = twin.note(note).cells_after_change(cells[0]);
    assert_eq!(after, [cells[0], cells[1], cells[3]]);
    twin.command(Command::RunCells { note, cells: after }).expect("run");
    assert_eq!(serve(&mut twin, note), ["n = 7", "m = n", "m"]);
    twin.command(Command::SetReactivity { note, to: Reactivity::Manual }).expect("set");
    let cells = cells_of(&twin, note);
    assert_eq!(twin.note(note).cells_after_change(cells[0]), [cells[0]]);
}

#[test]
fn a_broken_widget_runs_nothing() {
    let (mut twin, note) = Twin::on("```widget\nslider: 1\n```\n\n```python\nm = n\n```\n");
    twin.command(Command::RunAll { note }).expect("run");
    assert_eq!(twin.asked, [], "nothing was sent to the kernel");
    let ended = twin.note(note).cells().filter_map(|cell| twin.note(note).latest_execution(cell).map(|run| run.status));
    assert_eq!(ended.collect::<Vec<_>>(), [ExecutionStatus::Error, ExecutionStatus::Interrupted]);
}
