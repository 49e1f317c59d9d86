//! Other programs that write, rename and delete the same files, while Tracebook runs and while it doesn't.

use crate::program::{House, until};
use serde_json::Value;
use std::fs;

/// How another program saves a file.
#[derive(Clone, Copy, Debug)]
enum Way {
    Truncate,
    Rename,
}

/// Loads, changes and saves the file as another program would.
fn outside(house: &House, name: &str, way: Way, from: &str, to: &str) {
    let path = house.path(name);
    let text = fs::read_to_string(&path).expect("read");
    assert!(text.contains(from), "{from} is not in {text:?}");
    let text = text.replace(from, to);
    match way {
        Way::Truncate => fs::write(&path, text).expect("written"),
        Way::Rename => {
            let other = path.with_extension("swp");
            fs::write(&other, text).expect("written");
            fs::rename(&other, &path).expect("renamed");
        }
    }
}

fn text(house: &House, note: &str) -> String {
    String::from_utf8(house.cat(note)).expect("UTF-8")
}

/// The hashes of a note's changes.
fn changes(house: &House, note: &str) -> Vec<String> {
    let changes = house.json(&["history", note]);
    let hash = |change: &Value| change["hash"].as_str().expect("a hash").to_owned();
    changes.as_array().expect("an array").iter().map(hash).collect()
}

#[test]
fn what_another_program_writes_merges_with_what_is_typed() {
    for way in [Way::Truncate, Way::Rename] {
        let house = House::with(&[("a.md", "alpha\r\n\r\nbeta\r\n\r\ngamma\r\n"), ("b.md", "other\n")]);
        let mut owner = house.owner("a.md");
        owner.types(5, 0, " one");
        until("typed text reaches the file", || house.read("notes/a.md").starts_with(b"alpha one\r\n"));
        // The other program saves, and we type before Tracebook can have seen that.
        outside(&house, "notes/a.md", way, "gamma", "gamma outside");
        owner.types(9, 0, " two");
        let both = "alpha one two\r\n\r\nbeta\r\n\r\ngamma outside\r\n";
        until("both are in the note", || text(&house, "a.md") == both);
        until("both are in the file", || house.read("notes/a.md") == both.as_bytes());
        // We type, and the other program saves before that can have reached the file.
        owner.types(13, 0, " three");
        outside(&house, "notes/a.md", way, "beta", "beta outside");
        let all = "alpha one two three\r\n\r\nbeta outside\r\n\r\ngamma outside\r\n";
        until("all is in the note", || text(&house, "a.md") == all);
        until("all is in the file", || house.read("notes/a.md") == all.as_bytes());
        owner.end();
        assert_eq!(text(&house, "a.md"), all, "{way:?}");
        assert_eq!(house.read("notes/a.md"), all.as_bytes(), "{way:?}");
        assert_eq!(house.read("notes/b.md"), b"other\n");
    }
}

#[test]
fn what_another_program_wrote_meanwhile_is_there_at_the_next_start() {
    let house = House::with(&[("a.md", "alpha\n\nbeta\n"), ("b.md", "b\n")]);
    house.edit("a.md", 5, 0, " one");
    let before = changes(&house, "a.md");
    outside(&house, "notes/a.md", Way::Truncate, "beta", "beta outside");
    outside(&house, "notes/b.md", Way::Rename, "b", "never edited here");
    house.write("notes/new.md", b"new\n");
    assert_eq!(text(&house, "a.md"), "alpha one\n\nbeta outside\n");
    assert_eq!(text(&house, "b.md"), "never edited here\n");
    assert_eq!(text(&house, "new.md"), "new\n");
    let after = changes(&house, "a.md");
    assert!(after.len() > before.len() && before.iter().all(|hash| after.contains(hash)), "{before:?} {after:?}");
    house.edit("a.md", 0, 5, "ALPHA");
    assert_eq!(house.read("notes/a.md"), b"ALPHA one\n\nbeta outside\n");
}

#[test]
fn a_new_file_shows_while_the_program_runs() {
    let house = House::with(&[("a.md", "alpha\n")]);
    let owner = house.owner("a.md");
    house.write("notes/sub/new.md", b"new\n");
    until("the new file is listed", || house.json(&["ls"]).to_string().contains("sub/new.md"));
    assert_eq!(text(&house, "sub/new.md"), "new\n");
    owner.end();
}

#[test]
fn a_renamed_file_keeps_its_history() {
    let house = House::with(&[("a.md", "alpha\n"), ("b.md", "beta\n")]);
    house.edit("a.md", 0, 5, "ALPHA");
    house.edit("b.md", 0, 4, "BETA");
    let (a, b) = (changes(&house, "a.md"), changes(&house, "b.md"));
    assert!(!a.is_empty() && !b.is_empty() && a != b);
    fs::create_dir(house.path("notes/sub")).expect("made");
    // A rename while no process runs.
    fs::rename(house.path("notes/a.md"), house.path("notes/sub/c.md")).expect("renamed");
    assert_eq!(changes(&house, "sub/c.md"), a);
    house.run(&["cat", "a.md"]).refused(2, "there is no note");
    // A rename while another process owns the workspace.
    let owner = house.owner("sub/c.md");
    fs::rename(house.path("notes/b.md"), house.path("notes/sub/d.md")).expect("renamed");
    until("the new name is listed", || {
        let listed = house.json(&["ls"]).to_string();
        listed.contains("sub/d.md") && !listed.contains("b.md")
    });
    assert_eq!(changes(&house, "sub/d.md"), b);
    owner.end();
    house.edit("sub/c.md", 0, 0, "more ");
    assert_eq!(house.read("notes/sub/c.md"), b"more ALPHA\n");
    assert!(changes(&house, "sub/c.md").starts_with(&a));
    assert!(!house.path("notes/a.md").exists() && !house.path("notes/b.md").exists());
}

#[test]
fn a_note_that_is_renamed_while_it_is_edited_goes_on_under_its_new_name() {
    let house = House::with(&[("a.md", "alpha\n")]);
    let mut owner = house.owner("a.md");
    owner.types(5, 0, " one");
    until("it is in the file", || house.read("notes/a.md") == b"alpha one\n");
    fs::rename(house.path("notes/a.md"), house.path("notes/c.md")).expect("renamed");
    until("the new name is listed", || house.json(&["ls"]).to_string().contains("c.md"));
    owner.types(9, 0, " two");
    until("it is in the new file", || house.read("notes/c.md") == b"alpha one two\n");
    owner.end();
    assert!(!house.path("notes/a.md").exists(), "the old name came back");
}

#[test]
fn a_file_that_is_deleted_while_its_note_is_open_comes_back_by_typing() {
    let house = House::with(&[("a.md", "alpha\n"), ("b.md", "b\n")]);
    let mut owner = house.owner("a.md");
    owner.types(5, 0, " one");
    until("it is in the file", || house.read("notes/a.md") == b"alpha one\n");
    fs::remove_file(house.path("notes/a.md")).expect("removed");
    fs::remove_file(house.path("notes/b.md")).expect("removed");
    // When b's deletion is noticed, a's has been, too.
    until("the deletion is seen", || !house.json(&["ls"]).to_string().contains("b.md"));
    assert!(!house.path("notes/a.md").exists(), "the file came back by itself");
    assert_eq!(text(&house, "a.md"), "alpha one\n", "the text is kept");
    owner.types(9, 0, " two");
    until("typing makes the file again", || house.path("notes/a.md").exists());
    until("all of it", || house.read("notes/a.md") == b"alpha one two\n");
    owner.end();
    assert_eq!(text(&house, "a.md"), "alpha one two\n");
}

#[test]
fn a_file_that_is_deleted_while_nothing_runs_is_gone() {
    let house = House::with(&[("a.md", "alpha\n"), ("b.md", "b\n")]);
    house.edit("a.md", 0, 0, "x");
    fs::remove_file(house.path("notes/a.md")).expect("removed");
    let listed = house.json(&["ls"]);
    assert_eq!(listed.as_array().expect("an array").len(), 1, "{listed}");
    house.run(&["cat", "a.md"]).refused(2, "there is no note");
    assert!(!house.path("notes/a.md").exists());
    assert_eq!(text(&house, "b.md"), "b\n");
}
