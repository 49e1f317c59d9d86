//! The session as a list of inputs and what comes of them, on a world in memory (`twin.rs`).

use crate::twin::{Asked, Step, Twin, World};
use engine::{Command, Event, KernelPhase};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use store::disk::{Fault, Reader};
use store::{BlockId, DocId, ExecutionId, Output, OutputBody, Status};

/// How many changes of this document were made durable.
fn changes(twin: &Twin, doc: DocId) -> usize {
    twin.sent.iter().filter(|(of, _)| *of == doc).count()
}

fn blocks(twin: &Twin, note: DocId) -> Vec<String> {
    twin.note(note).blocks().map(|block| block.text.clone()).collect()
}

fn cells(twin: &Twin, note: DocId) -> Vec<BlockId> {
    twin.note(note).cells().collect()
}

// ---- keystrokes ----

#[test]
fn opening_writes_nothing() {
    let (mut twin, note) = Twin::on("# A\r\n\r\n```python\r\n1\r\n```");
    assert_eq!(twin.text(note), "# A\r\n\r\n```python\r\n1\r\n```");
    twin.command(Command::CloseNote { note }).expect("closed");
    twin.settle();
    assert!(twin.session.note(note).is_none(), "a note that nobody looks at is let go");
    assert_eq!((twin.written, changes(&twin, note)), (0, 0));
    assert_eq!(twin.world.disk.blocks(note).expect("read").0, []);
}

#[test]
fn a_burst_becomes_one_change() {
    let (mut twin, note) = Twin::on("start\n");
    twin.edit(note, 5, 0, "!");
    twin.settle();
    let before = changes(&twin, note);
    for at in 0..10 {
        twin.edit(note, 6 + at, 0, "x");
        twin.pass(50);
    }
    assert_eq!(changes(&twin, note), before, "a change in the middle of a burst");
    assert_eq!(twin.world.disk.journal(note).expect("read").len(), 10, "every keystroke is in the journal");
    twin.pass(500);
    assert_eq!(changes(&twin, note), before + 1, "the pause ends the burst");
    assert_eq!(twin.world.disk.journal(note).expect("read"), []);
    twin.settle();
    assert_eq!(twin.text(note), "start!xxxxxxxxxx\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn typing_on_becomes_a_change_every_two_seconds() {
    let (mut twin, note) = Twin::on("");
    twin.edit(note, 0, 0, "a");
    twin.settle();
    let before = changes(&twin, note);
    for at in 0..61 {
        twin.edit(note, 1 + at, 0, "x");
        twin.pass(100);
    }
    assert_eq!(changes(&twin, note) - before, 3, "in six seconds of typing without a pause");
}

#[test]
fn nothing_reaches_the_file_before_it_is_durable() {
    let (mut twin, note) = Twin::on("old\n");
    twin.edit(note, 0, 0, "1 ");
    twin.settle();
    let written = twin.written;
    twin.stuck = true;
    twin.edit(note, 0, 0, "2 ");
    twin.pass(60_000);
    assert_eq!(twin.text(note), "2 1 old\n", "editing goes on in memory");
    assert_eq!((twin.written, twin.file("a.md").as_deref()), (written, Some("1 old\n")));
    assert!(twin.session.saving().durable < twin.session.saving().last);
    assert!(!twin.session.is_saved());
    twin.stuck = false;
    twin.settle();
    twin.check_settled(note, "a.md");
    assert_eq!(twin.session.saving().durable, twin.session.saving().last);
}

#[test]
fn a_disk_that_refuses_is_told_and_made_up_for() {
    let (mut twin, note) = Twin::on("old\n");
    for fault in [Fault::Full, Fault::ReadOnly, Fault::Io] {
        twin.world.disk.fail(5, fault);
        twin.edit(note, 0, 0, "new ");
        twin.step(Step::Commit { group: false });
        twin.step(Step::Take);
        let trouble = twin.session.saving().trouble.clone().expect("told");
        assert!(trouble.contains("memory"), "{trouble}");
        twin.edit(note, 0, 0, "more ");
        twin.settle();
        assert_eq!(twin.session.saving().trouble, None);
        twin.check_settled(note, "a.md");
    }
    assert_eq!(twin.text(note), "more new ".repeat(3) + "old\n");
}

#[test]
fn what_is_typed_while_the_document_loads_is_kept() {
    let (mut twin, note) = Twin::on("one\n");
    twin.edit(note, 0, 0, "zero ");
    twin.settle();
    let mut twin = Twin::start(twin.crash(), 2);
    twin.slow = true;
    let note = {
        twin.rest();
        twin.open("a.md")
    };
    assert!(twin.note(note).is_loading());
    twin.edit(note, 9, 0, "two\n");
    twin.pass(20_000);
    assert!(twin.note(note).is_loading() && !twin.note(note).is_committed());
    assert_eq!(twin.text(note), "zero one\ntwo\n");
    assert_eq!(twin.world.disk.journal(note).expect("read").len(), 1, "durable all the same");
    // A crash here loses nothing either.
    let mut other = Twin::start(twin.crash(), 3);
    other.settle();
    other.open("a.md");
    assert_eq!(other.text(note), "zero one\ntwo\n");
    other.check_settled(note, "a.md");
    twin.slow = false;
    twin.settle();
    assert_eq!(twin.text(note), "zero one\ntwo\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let (mut twin, note) = Twin::on("a \u{e4} b\n\n```python\n1\n```\n");
    let nobody = DocId([9; 16]);
    let edit = |at, delete, insert: &str| Command::Edit { note, at, delete, insert: insert.to_owned() };
    let volume = twin.session.volumes().next().expect("a volume").id;
    let new = |path: &str| Command::NewNote { volume, path: path.to_owned(), text: String::new() };
    let wrong = [
        (edit(3, 0, "x"), "the edit does not fit: bytes 3 to 3 of a note of 24 bytes"),
        (edit(2, 1, ""), "the edit does not fit"),
        (edit(25, 0, "x"), "the edit does not fit"),
        (edit(0, 25, ""), "the edit does not fit"),
        (edit(usize::MAX, 1, ""), "the edit does not fit"),
        (edit(0, 0, &"x".repeat(65 << 20)), "a note has at most"),
        (Command::Edit { note: nobody, at: 0, delete: 0, insert: "x".to_owned() }, "the note is not open"),
        (Command::OpenNote { note: nobody }, "there is no note"),
        (Command::CloseNote { note: nobody }, "the note is not open"),
        (Command::Undo { note }, "nothing to undo"),
        (Command::Redo { note }, "nothing to redo"),
        (Command::Run { note, cell: BlockId(7) }, "there is no Python cell here"),
        (Command::RunAll { note: nobody }, "the note is not open"),
        (Command::Interrupt { note }, "nothing is running"),
        (Command::RestartKernel { note }, "no kernel is running"),
        (Command::CloseVolume { volume: nobody }, "there is no volume"),
        (Command::OpenFolder { folder: "v/x".into(), name: None }, "absolute"),
        (Command::OpenFolder { folder: "/".into(), name: None }, "the workspace's own database"),
        (Command::OpenFolder { folder: "/u/v/x".into(), name: None }, "one volume"),
        (Command::OpenFolder { folder: "/u".into(), name: None }, "one volume"),
        (new(""), "needs a name"),
        (new("../x"), "inside its volume"),
        (new("/x"), "inside its volume"),
        (new("a.md"), "already"),
        (new("a"), "already"),
        (new(&"x".repeat(300)), "at most 250 bytes"),
        (new(".git/x"), "hidden"),
        (new("a\0b"), "cannot be used"),
    ];
    for (command, why) in wrong {
        let before = format!("{:?}", twin.session);
        let said = twin.command(command.clone()).expect_err("rejected");
        assert!(said.0.contains(why), "{said} for {why}");
        assert_eq!(format!("{:?}", twin.session), before, "{why}");
        assert_eq!(twin.steps(), [], "{why}");
    }
    twin.settle();
    assert_eq!(twin.written, 0);
}

// ---- crashes ----

/// A random edit that fits.
fn random_edit(twin: &mut Twin, note: DocId, chance: &mut StdRng) {
    const PIECES: &[&str] = &[
        "a",
        "b ",
        "word",
        "\n",
        "\n\n",
        "\u{e4}\u{1f600}",
        "```python\n",
        "```\n",
        "x = 1\n",
        "# T\n",
        "```",
        "`",
        "\r\n",
    ];
    let text = twin.text(note);
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let from = chance.random_range(0..boundaries.len());
    let to =
        if chance.random_ratio(1, 3) { (from + chance.random_range(0..12)).min(boundaries.len() - 1) } else { from };
    let insert = if to > from && chance.random_bool(0.5) { "" } else { PIECES[chance.random_range(0..PIECES.len())] };
    twin.edit(note, boundaries[from], boundaries[to] - boundaries[from], insert);
}

/// Runs a session with random keystrokes in a world that answers in random order, and starts a new process on what
/// every single step has left: its text is that of the last keystroke on disk, and it finishes what was begun.
fn crash_everywhere(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let first = "# Title\n\npara one\n\n```python\nx = 1\n```\n\nend\n";
    let (mut twin, note) = Twin::on(first);
    let mut texts = BTreeMap::from([(0, first.to_owned())]);
    let mut left: Vec<(World, Step)> = Vec::new();
    let mut commits = twin.world.disk.commits();
    for turn in 0..160 {
        if turn < 120 && chance.random_ratio(1, 4) {
            random_edit(&mut twin, note, &mut chance);
            twin.check(note);
            texts.insert(twin.session.saving().last, twin.text(note));
        }
        let written = twin.written;
        twin.wander(&mut chance);
        // Only what has changed outside the process can make a difference.
        if twin.world.disk.commits() != commits || twin.written != written {
            commits = twin.world.disk.commits();
            left.push((twin.crash(), Step::Take));
        }
    }
    twin.settle();
    twin.check_settled(note, "a.md");
    assert!(left.len() > 20, "the run came to only {} states", left.len());
    for (at, (world, _)) in left.into_iter().enumerate() {
        let seq = world.disk.last_seq().expect("read");
        let expected = &texts[&seq];
        let mut next = Twin::start(world, seed + 1);
        next.settle();
        assert_eq!(next.file("a.md").as_ref(), Some(expected), "seed {seed}, state {at}: the file");
        next.open("a.md");
        assert_eq!(&next.text(note), expected, "seed {seed}, state {at}");
        next.check_settled(note, "a.md");
        // And it goes on from there.
        next.edit(note, 0, 0, "on ");
        next.settle();
        next.check_settled(note, "a.md");
    }
}

#[test]
fn a_crash_anywhere_keeps_what_is_durable() {
    for seed in 0..12 {
        crash_everywhere(seed);
    }
}

#[test]
fn a_crash_between_the_first_keystroke_and_the_document() {
    let (mut twin, note) = Twin::on("one\n\n```python\n1\n```\n");
    twin.edit(note, 3, 0, "!");
    let mut states = Vec::new();
    while let Some(step) = twin.steps().first().copied() {
        twin.step(step);
        states.push(twin.crash());
    }
    for world in states {
        let typed = world.disk.last_seq().expect("read") == 1;
        let mut next = Twin::start(world, 5);
        next.settle();
        next.open("a.md");
        assert_eq!(next.text(note), if typed { "one!\n\n```python\n1\n```\n" } else { "one\n\n```python\n1\n```\n" });
        next.check_settled(note, "a.md");
    }
}

// ---- files ----

#[test]
fn an_edit_by_another_program_is_the_smallest_splice() {
    let (mut twin, note) = Twin::on("one\n\n```python\nx = 1\n```\n\nend\n");
    twin.edit(note, 0, 0, "0 ");
    twin.settle();
    let ids: Vec<BlockId> = twin.note(note).blocks().map(|block| block.id).collect();
    twin.outside("a.md", Some("0 one\n\n```python\nx = 12\n```\n\nend.\n"));
    twin.settle();
    assert_eq!(twin.text(note), "0 one\n\n```python\nx = 12\n```\n\nend.\n");
    assert_eq!(twin.note(note).blocks().map(|block| block.id).collect::<Vec<_>>(), ids);
    twin.check_settled(note, "a.md");
    let last = twin.note(note).document().expect("loaded").history().last().expect("a change").operations;
    assert_eq!(last, 2, "two characters came");
}

#[test]
fn both_sides_of_a_race_stay() {
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 3, 0, " ours");
    twin.outside("a.md", Some("one\ntwo\nthree theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "one ours\ntwo\nthree theirs\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn an_edit_by_another_program_while_closed_is_merged() {
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    let mut world = twin.crash();
    world.files.insert("/u/v/a.md".into(), (b"our one\ntwo theirs\n".to_vec(), 77));
    let mut next = Twin::start(world, 2);
    next.settle();
    assert_eq!(next.file("a.md").as_deref(), Some("our one\ntwo theirs\n"));
    next.open("a.md");
    assert_eq!(next.text(note), "our one\ntwo theirs\n");
    next.check_settled(note, "a.md");
    assert!(next.note(note).document().expect("loaded").history().len() > 3, "the history goes on");
}

#[test]
fn an_edit_by_another_program_after_a_crash_is_merged_with_what_was_typed() {
    // Typed and durable, not yet in the file; then another program wrote the file before we came back.
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 0, 0, "our ");
    let mut states = 0;
    while let Some(step) = twin.steps().first().copied() {
        twin.step(step);
        let mut world = twin.crash();
        if twin.written > 0 || world.disk.last_seq().expect("read") == 0 {
            continue;
        }
        states += 1;
        world.files.insert("/u/v/a.md".into(), (b"one\ntwo\nthree theirs\n".to_vec(), 77));
        let mut next = Twin::start(world, 2);
        next.settle();
        next.open("a.md");
        assert_eq!(next.text(note), "our one\ntwo\nthree theirs\n", "state {states}");
        next.check_settled(note, "a.md");
    }
    assert!(states > 3, "only {states} states");
}

#[test]
fn a_removed_file_is_made_again_by_typing_only() {
    let (mut twin, note) = Twin::on("text\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    twin.outside("a.md", None);
    twin.settle();
    twin.pass(60_000);
    assert_eq!(twin.file("a.md"), None, "it is not made again by itself");
    assert!(twin.note(note).file.gone);
    assert_eq!(twin.text(note), "our text\n", "the note keeps its text");
    twin.edit(note, 0, 0, "all ");
    twin.settle();
    assert_eq!(twin.file("a.md").as_deref(), Some("all our text\n"));
    assert!(!twin.note(note).file.gone);
    twin.check_settled(note, "a.md");
}

#[test]
fn a_file_that_is_removed_and_comes_back_is_no_second_text() {
    // Some editors save by removing the file and writing a new one.
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    twin.outside("a.md", None);
    twin.settle();
    assert!(twin.note(note).file.gone);
    twin.outside("a.md", Some("our one\ntwo, theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "our one\ntwo, theirs\n");
    twin.check_settled(note, "a.md");
    // The same with something typed in between.
    twin.outside("a.md", None);
    twin.settle();
    twin.edit(note, 0, 0, "all ");
    twin.outside("a.md", Some("our one\ntwo, theirs!\n"));
    twin.settle();
    assert_eq!(twin.text(note), "all our one\ntwo, theirs!\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn a_file_that_vanishes_while_it_is_written_is_no_second_text() {
    let (mut twin, note) = Twin::on("one\ntwo\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    // The file goes while the write is on its way, and is there again before the next try.
    twin.edit(note, 0, 0, "all ");
    twin.pass(499);
    twin.world.files.clear();
    twin.pass(100);
    assert_eq!(twin.file("a.md"), None);
    twin.outside("a.md", Some("our one\ntwo, theirs\n"));
    twin.settle();
    assert_eq!(twin.text(note), "all our one\ntwo, theirs\n");
    twin.check_settled(note, "a.md");
    // Without a word from the watcher the write itself finds it.
    twin.edit(note, 0, 0, "not ");
    twin.pass(499);
    twin.world.files.clear();
    twin.pass(100);
    twin.world.files.insert("/u/v/a.md".into(), (b"all our one\ntwo, theirs!\n".to_vec(), 99));
    twin.settle();
    assert_eq!(twin.text(note), "not all our one\ntwo, theirs!\n");
    twin.check_settled(note, "a.md");
}

#[test]
fn a_rename_keeps_the_note_and_its_history() {
    let (mut twin, note) = Twin::on("text\n");
    twin.edit(note, 0, 0, "our ");
    twin.settle();
    let history = twin.note(note).document().expect("loaded").history().len();
    for open in [true, false] {
        let (from, to) = if open { ("a.md", "b.md") } else { ("b.md", "sub/c.md") };
        if !open {
            twin.command(Command::CloseNote { note }).expect("closed");
            twin.settle();
        }
        let text = twin.file(from).expect("there");
        twin.outside(from, None);
        twin.outside(to, Some(&text));
        twin.command(Command::Rescan).expect("asked");
        twin.settle();
        assert_eq!(twin.id(to), note, "{to}");
        twin.open(to);
        twin.edit(note, 0, 0, "again ");
        twin.settle();
        twin.check_settled(note, to);
        assert_eq!(twin.file(from), None);
    }
    assert_eq!(twin.note(note).document().expect("loaded").history().len(), history + 2);
}

#[test]
fn an_empty_file_is_an_edit_that_can_be_taken_back() {
    let (mut twin, note) = Twin::on("# Much\n\n```python\nwork()\n```\n");
    twin.edit(note, 0, 0, "\n");
    twin.settle();
    twin.outside("a.md", Some(""));
    twin.settle();
    assert_eq!(twin.text(note), "");
    twin.check_settled(note, "a.md");
    let doc = twin.note(note).document().expect("loaded");
    let history = doc.history();
    let before: store::ChangeHash = history[history.len() - 2].hash.parse().expect("a hash");
    assert_eq!(doc.text_at(&[before]).expect("read"), "\n# Much\n\n```python\nwork()\n```\n");
}

// ---- cells ----

const THREE: &str = "```python\n1\n```\n\ntext\n\n```python\n2\n```\n```python\n3\n```\n";

fn last_eval(twin: &Twin) -> (ExecutionId, String, String) {
    match twin.asked.last() {
        Some(Asked::Eval { execution, code, label }) => (*execution, code.clone(), label.clone()),
        other => panic!("no cell was sent to the kernel: {other:?}"),
    }
}

fn began(twin: &mut Twin, note: DocId) -> ExecutionId {
    let (execution, _, _) = last_eval(twin);
    twin.event(Event::KernelReady { note });
    twin.event(Event::Began { note, execution });
    execution
}

fn printed(twin: &mut Twin, note: DocId, execution: ExecutionId, text: &str) {
    let body = OutputBody::Stream { name: "stdout".to_owned(), text: text.to_owned() };
    twin.event(Event::Output { note, execution, output: Output { body, whole: None } });
}

fn finished(twin: &mut Twin, note: DocId, execution: ExecutionId, status: Status) {
    twin.event(Event::Finished { note, execution, status, count: Some(1), whole: Vec::new() });
    twin.rest();
}

/// Status and printed text of each cell.
fn shown(twin: &Twin, note: DocId) -> Vec<(Option<Status>, String)> {
    let note = twin.note(note);
    let text = |output: &Output| match &output.body {
        OutputBody::Stream { text, .. } => text.clone(),
        OutputBody::Error { ename, .. } => format!("<{ename}>"),
        body => format!("{body:?}"),
    };
    let cell = |cell| match note.execution(cell) {
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
        finished(&mut twin, note, execution, Status::Ok);
    }
    assert_eq!(twin.note(note).kernel, KernelPhase::Idle);
    let expected: Vec<_> = (1..=3).map(|number| (Some(Status::Ok), format!("{number};"))).collect();
    assert_eq!(shown(&twin, note), expected);
    twin.settle();
    twin.check_settled(note, "a.md");
    assert_eq!(twin.written, 0, "running a cell does not touch the file");
}

#[test]
fn the_first_error_stops_the_rest() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, Status::Ok);
    let second = began(&mut twin, note);
    assert_ne!(first, second);
    finished(&mut twin, note, second, Status::Error);
    assert_eq!(twin.asked.len(), 2);
    let status: Vec<_> = shown(&twin, note).into_iter().map(|(status, _)| status).collect();
    assert_eq!(status, [Some(Status::Ok), Some(Status::Error), Some(Status::Interrupted)]);
    // The kernel lives and takes the next one.
    let cell = cells(&twin, note)[2];
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
    twin.pass(690);
    assert_eq!(twin.asked.last(), Some(&Asked::Interrupt), "it has its time");
    twin.pass(20);
    assert_eq!(twin.asked.last(), Some(&Asked::Kill));
    twin.event(Event::KernelDied { note, why: "killed".to_owned() });
    twin.rest();
    let expected = [
        (Some(Status::Interrupted), "so far<KernelStopped>".to_owned()),
        (Some(Status::Interrupted), String::new()),
        (Some(Status::Interrupted), String::new()),
    ];
    assert_eq!(shown(&twin, note), expected);
    assert_eq!(twin.note(note).kernel, KernelPhase::Off);
    let cell = cells(&twin, note)[1];
    twin.command(Command::Run { note, cell }).expect("run");
    assert_eq!(last_eval(&twin).1, "2\n", "the next run starts a new one");
}

#[test]
fn a_cell_that_stops_in_time_keeps_its_kernel() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    twin.command(Command::Interrupt { note }).expect("asked");
    twin.pass(100);
    finished(&mut twin, note, first, Status::Interrupted);
    let cell = cells(&twin, note)[1];
    twin.command(Command::Run { note, cell }).expect("run");
    twin.pass(10_000);
    assert!(!twin.asked.contains(&Asked::Kill), "{:?}", twin.asked);
}

#[test]
fn output_of_what_no_longer_runs_is_dropped() {
    let (mut twin, note) = Twin::on(THREE);
    let cell = cells(&twin, note)[0];
    twin.command(Command::Run { note, cell }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, Status::Ok);
    printed(&mut twin, note, first, "late");
    twin.command(Command::Run { note, cell }).expect("run");
    let second = began(&mut twin, note);
    printed(&mut twin, note, first, "later");
    printed(&mut twin, note, second, "new");
    finished(&mut twin, note, first, Status::Error);
    assert_eq!(twin.note(note).kernel, KernelPhase::Busy(second));
    finished(&mut twin, note, second, Status::Ok);
    assert_eq!(shown(&twin, note)[0], (Some(Status::Ok), "new".to_owned()));
}

#[test]
fn a_cell_that_runs_is_not_run_twice() {
    let (mut twin, note) = Twin::on(THREE);
    let all = cells(&twin, note);
    for cell in [all[0], all[0], all[1], all[1]] {
        twin.command(Command::Run { note, cell }).expect("run");
    }
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, Status::Ok);
    let second = began(&mut twin, note);
    finished(&mut twin, note, second, Status::Ok);
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
    assert_eq!(shown(&twin, note)[0], (Some(Status::Died), "before<KernelDied>".to_owned()));
    assert_eq!(twin.text(note), THREE);
    assert_eq!(twin.asked.len(), 1, "the rest is not run in a kernel without the first cell's work");
}

#[test]
fn outputs_are_there_after_a_restart() {
    let (mut twin, note) = Twin::on(THREE);
    twin.command(Command::RunAll { note }).expect("run");
    let first = began(&mut twin, note);
    printed(&mut twin, note, first, "one");
    finished(&mut twin, note, first, Status::Ok);
    let second = began(&mut twin, note);
    printed(&mut twin, note, second, "running");
    twin.pass(1_500);
    let mut next = Twin::start(twin.crash(), 2);
    next.settle();
    next.open("a.md");
    let expected = [
        (Some(Status::Ok), "one".to_owned()),
        (Some(Status::Interrupted), "running".to_owned()),
        (Some(Status::Interrupted), String::new()),
    ];
    assert_eq!(shown(&next, note)[..2], expected[..2]);
    assert_eq!(next.note(note).kernel, KernelPhase::Off);
    assert!(!next.note(note).is_stale(cells(&next, note)[0]));
    assert_eq!(next.asked, [], "nothing is run again by itself");
}

#[test]
fn code_that_has_changed_since_is_stale() {
    let (mut twin, note) = Twin::on(THREE);
    let cell = cells(&twin, note)[0];
    assert!(!twin.note(note).is_stale(cell));
    twin.command(Command::Run { note, cell }).expect("run");
    let first = began(&mut twin, note);
    finished(&mut twin, note, first, Status::Ok);
    assert!(!twin.note(note).is_stale(cell));
    twin.edit(note, 10, 0, "4");
    assert_eq!(twin.note(note).code(cell), Some("41\n"));
    assert!(twin.note(note).is_stale(cell));
    twin.command(Command::Undo { note }).expect("undone");
    assert!(!twin.note(note).is_stale(cell));
    twin.edit(note, 9, 0, " #");
    assert!(!twin.note(note).is_stale(cell), "only the code counts");
}

// ---- structure ----

#[test]
fn typing_a_fence_makes_a_cell() {
    let (mut twin, note) = Twin::on("before\n\nafter\n");
    let typed = "```python\nx = 1\n```\n\n";
    for (at, letter) in typed.chars().enumerate() {
        twin.edit(note, 8 + at, 0, &letter.to_string());
        twin.check(note);
        twin.pass(30);
    }
    assert_eq!(blocks(&twin, note), ["before\n\n", "```python\nx = 1\n```\n", "\nafter\n"]);
    let cell = cells(&twin, note)[0];
    assert_eq!(twin.note(note).code(cell), Some("x = 1\n"));
    twin.settle();
    twin.check_settled(note, "a.md");
    // Breaking the fence makes it text again, mending it a cell; the id is the same.
    let fence = twin.text(note).find("```\n\n").expect("the closing fence");
    twin.edit(note, fence, 1, "");
    assert_eq!(cells(&twin, note), []);
    twin.edit(note, fence, 0, "`");
    assert_eq!(cells(&twin, note), [cell]);
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn typing_around_a_cell_keeps_its_id_and_outputs() {
    let (mut twin, note) = Twin::on("before\n\n```python\n1\n```\nafter\n");
    let cell = cells(&twin, note)[0];
    twin.command(Command::Run { note, cell }).expect("run");
    let execution = began(&mut twin, note);
    printed(&mut twin, note, execution, "one");
    finished(&mut twin, note, execution, Status::Ok);
    let places: [fn(&str) -> (usize, usize, &'static str); 9] = [
        |text| (text.find("```python").expect("fence"), 0, "right before\n"),
        |text| (text.find("```python").expect("fence"), 0, "\n"),
        |text| (text.find("```\nafter").expect("fence") + 4, 0, "right behind\n"),
        |text| (text.find("right behind").expect("text"), 0, "\n"),
        |text| (text.find("1\n").expect("code"), 0, "1 + "),
        |text| (text.find("```python").expect("fence") + 9, 0, " title=x"),
        |_| (0, 0, "top\n"),
        |text| (text.find("right before\n").expect("text"), 13, ""),
        |text| (text.len(), 0, "end\n"),
    ];
    for (number, place) in places.into_iter().enumerate() {
        let text = twin.text(note);
        let (at, delete, insert) = place(&text);
        twin.edit(note, at, delete, insert);
        twin.check(note);
        assert_eq!(cells(&twin, note), [cell], "edit {number}: {:?}", blocks(&twin, note));
        assert_eq!(shown(&twin, note), [(Some(Status::Ok), "one".to_owned())]);
    }
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn typing_a_line_right_before_a_cell_letter_by_letter() {
    let (mut twin, note) = Twin::on("```python\n1\n```\n");
    let cell = cells(&twin, note)[0];
    for (at, letter) in "text\n".chars().enumerate() {
        // Without a line end the fence is not at the start of its line: for a moment there is no cell.
        twin.edit(note, at, 0, &letter.to_string());
        twin.check(note);
    }
    assert_eq!(blocks(&twin, note), ["text\n", "```python\n1\n```\n"]);
    assert_eq!(cells(&twin, note), [cell]);
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn deleting_across_blocks() {
    let text = "one\n\n```python\n1\n```\ntwo\n\n```python\n2\n```\nthree\n";
    let (mut twin, note) = Twin::on(text);
    let all = cells(&twin, note);
    let from = text.find("wo\n").expect("text");
    let to = text.find("hree").expect("text");
    twin.edit(note, from, to - from, "");
    assert_eq!(twin.text(note), "one\n\n```python\n1\n```\nthree\n");
    assert_eq!(cells(&twin, note), [all[0]]);
    twin.check(note);
    twin.command(Command::Undo { note }).expect("undone");
    assert_eq!(twin.text(note), text);
    twin.check(note);
    twin.settle();
    twin.check_settled(note, "a.md");
    let length = twin.text(note).len();
    twin.edit(note, 0, length, "");
    assert_eq!((twin.text(note).as_str(), twin.note(note).blocks().count()), ("", 0));
    twin.settle();
    twin.check_settled(note, "a.md");
    twin.edit(note, 0, 0, "new");
    twin.settle();
    assert_eq!(twin.file("a.md").as_deref(), Some("new"));
}

#[test]
fn a_large_paste_is_cut_and_a_burst_has_an_end() {
    let (mut twin, note) = Twin::on("start\n");
    let pasted = "word ".repeat(40_000);
    twin.edit(note, 6, 0, &pasted);
    twin.check(note);
    assert!(twin.note(note).blocks().all(|block| block.text.len() <= 8_192));
    twin.settle();
    twin.check_settled(note, "a.md");
}

// ---- undo ----

fn undo(twin: &mut Twin, note: DocId) -> String {
    twin.command(Command::Undo { note }).expect("undone");
    twin.check(note);
    twin.text(note)
}

fn redo(twin: &mut Twin, note: DocId) -> String {
    twin.command(Command::Redo { note }).expect("redone");
    twin.check(note);
    twin.text(note)
}

#[test]
fn undo_goes_by_what_was_typed_together() {
    let (mut twin, note) = Twin::on("");
    for (at, letter) in "one two".chars().enumerate() {
        twin.edit(note, at, 0, &letter.to_string());
        twin.pass(100);
    }
    twin.pass(3_000);
    for (at, letter) in "\nthree".chars().enumerate() {
        twin.edit(note, 7 + at, 0, &letter.to_string());
        twin.pass(100);
    }
    twin.pass(3_000);
    for at in (10..13).rev() {
        twin.edit(note, at, 1, "");
    }
    assert_eq!(twin.text(note), "one two\nth");
    assert_eq!(undo(&mut twin, note), "one two\nthree");
    assert_eq!(undo(&mut twin, note), "one two\n");
    assert_eq!(undo(&mut twin, note), "one two");
    assert_eq!(undo(&mut twin, note), "");
    assert_eq!(twin.command(Command::Undo { note }).expect_err("rejected").0, "nothing to undo");
    assert_eq!(redo(&mut twin, note), "one two");
    assert_eq!(redo(&mut twin, note), "one two\n");
    twin.edit(note, 0, 0, "x");
    assert_eq!(twin.command(Command::Redo { note }).expect_err("rejected").0, "nothing to redo");
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn undo_leaves_what_others_wrote() {
    let (mut twin, note) = Twin::on("one\ntwo\nthree\n");
    twin.edit(note, 7, 0, " ours");
    twin.settle();
    twin.outside("a.md", Some("zero\none\ntwo ours\nthree theirs\n"));
    twin.settle();
    assert_eq!(undo(&mut twin, note), "zero\none\ntwo\nthree theirs\n");
    assert_eq!(redo(&mut twin, note), "zero\none\ntwo ours\nthree theirs\n");
    twin.settle();
    twin.outside("a.md", Some("zero\none\ntwo OURS\nthree theirs\n"));
    twin.settle();
    // What they removed is a step of its own: it can be had back, and then ours below it.
    assert_eq!(undo(&mut twin, note), "zero\none\ntwo ours\nthree theirs\n");
    assert_eq!(undo(&mut twin, note), "zero\none\ntwo\nthree theirs\n");
    assert_eq!(twin.command(Command::Undo { note }).expect_err("rejected").0, "nothing to undo");
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn undo_gives_back_what_another_program_emptied() {
    let first = "# Much\n\n```python\nwork()\n```\n";
    let (mut twin, note) = Twin::on(first);
    twin.outside("a.md", Some(""));
    twin.settle();
    assert_eq!(twin.text(note), "");
    assert_eq!(undo(&mut twin, note), first);
    twin.settle();
    twin.check_settled(note, "a.md");
    assert_eq!(twin.file("a.md").as_deref(), Some(first));
    assert_eq!(redo(&mut twin, note), "");
}
