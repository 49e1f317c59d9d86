//! The session as a sequence of inputs and their results, on an in-memory world (`twin.rs`).

mod agents;
mod attached;
pub(crate) mod cells;
mod crashes;
mod files;
mod governing;
mod held;
mod interrupted_work;
mod judging;
mod memory;
mod moves;
mod outcomes;
mod prompts;
mod reactive;
mod restarts;
mod sampling;
mod schedules;
mod sent_tasks;
mod server_forms;
mod shared;
mod shared_edits;
mod shared_states;
mod state_branches;
mod team;
mod trace_versions;
mod views;

use crate::twin::{Step, Twin};
use cells::{began, finished, printed, shown};
use engine::Command;
use store::disk::{CommitFault, DiskReader};
use store::{BlockId, DocId, ExecutionStatus};

/// The number of changes of this document that were made durable.
fn changes(twin: &Twin, doc: DocId) -> usize {
    twin.sent.iter().filter(|(of, _)| *of == doc).count()
}

fn blocks(twin: &Twin, note: DocId) -> Vec<String> {
    twin.note(note).blocks().map(|block| block.text.clone()).collect()
}

fn cells_of(twin: &Twin, note: DocId) -> Vec<BlockId> {
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
    assert_eq!(twin.world.disk.journal_records(note).expect("read").len(), 10, "every keystroke is in the journal");
    twin.pass(500);
    assert_eq!(changes(&twin, note), before + 1, "the pause ends the burst");
    assert_eq!(twin.world.disk.journal_records(note).expect("read"), []);
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
    for fault in [CommitFault::Full, CommitFault::ReadOnly, CommitFault::Io] {
        twin.world.disk.fail_next_commits(5, fault);
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
    assert!(twin.note(note).is_document_loading());
    twin.edit(note, 9, 0, "two\n");
    twin.pass(20_000);
    assert!(twin.note(note).is_document_loading() && !twin.note(note).is_committed());
    assert_eq!(twin.text(note), "zero one\ntwo\n");
    assert_eq!(twin.world.disk.journal_records(note).expect("read").len(), 1, "durable all the same");
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
        (Command::OpenFolder { folder: "/u/v/x".into(), name: None }, "is in the volume “v” already"),
        (Command::OpenFolder { folder: "/u".into(), name: None }, "contains the volume “v”"),
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
    let cell = cells_of(&twin, note)[0];
    assert_eq!(twin.note(note).cell_code(cell), Some("x = 1\n"));
    twin.settle();
    twin.check_settled(note, "a.md");
    // Breaking the fence turns the cell into text; repairing it restores the cell with the same id.
    let fence = twin.text(note).find("```\n\n").expect("the closing fence");
    twin.edit(note, fence, 1, "");
    assert_eq!(cells_of(&twin, note), []);
    twin.edit(note, fence, 0, "`");
    assert_eq!(cells_of(&twin, note), [cell]);
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn typing_around_a_cell_keeps_its_id_and_outputs() {
    let (mut twin, note) = Twin::on("before\n\n```python\n1\n```\nafter\n");
    let cell = cells_of(&twin, note)[0];
    twin.command(Command::Run { note, cell }).expect("run");
    let execution = began(&mut twin, note);
    printed(&mut twin, note, execution, "one");
    finished(&mut twin, note, execution, ExecutionStatus::Ok);
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
        assert_eq!(cells_of(&twin, note), [cell], "edit {number}: {:?}", blocks(&twin, note));
        assert_eq!(shown(&twin, note), [(Some(ExecutionStatus::Ok), "one".to_owned())]);
    }
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn typing_a_line_right_before_a_cell_letter_by_letter() {
    let (mut twin, note) = Twin::on("```python\n1\n```\n");
    let cell = cells_of(&twin, note)[0];
    for (at, letter) in "text\n".chars().enumerate() {
        // Before the line end is typed, the fence isn't at the start of a line, so there is no cell.
        twin.edit(note, at, 0, &letter.to_string());
        twin.check(note);
    }
    assert_eq!(blocks(&twin, note), ["text\n", "```python\n1\n```\n"]);
    assert_eq!(cells_of(&twin, note), [cell]);
    twin.settle();
    twin.check_settled(note, "a.md");
}

#[test]
fn deleting_across_blocks() {
    let text = "one\n\n```python\n1\n```\ntwo\n\n```python\n2\n```\nthree\n";
    let (mut twin, note) = Twin::on(text);
    let all = cells_of(&twin, note);
    let from = text.find("wo\n").expect("text");
    let to = text.find("hree").expect("text");
    twin.edit(note, from, to - from, "");
    assert_eq!(twin.text(note), "one\n\n```python\n1\n```\nthree\n");
    assert_eq!(cells_of(&twin, note), [all[0]]);
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
    // Their deletion is an undo step of its own; below it is ours.
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
