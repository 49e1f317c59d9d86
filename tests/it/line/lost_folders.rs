//! Folders whose drive isn't connected for a while, files that come back, and paths that name their volume.

use crate::program::{House, until};
use std::fs;

fn history(house: &House, note: &str) -> usize {
    house.json(&["history", note]).as_array().expect("a list").len()
}

/// Some notes, of which one has a history, and the length of that.
fn written() -> (House, usize) {
    let house = House::with(&[("a.md", "one\n"), ("b.md", "two\n"), ("sub/c.md", "three\n"), ("d.txt", "four\n")]);
    house.edit("a", 0, 0, "draft ");
    let known = history(&house, "a");
    assert!(known > 0);
    (house, known)
}

#[test]
fn a_folder_that_is_empty_for_a_while_loses_nothing() {
    let (house, known) = written();
    fs::rename(house.path("notes"), house.path("notes.disk")).expect("unmounted");
    fs::create_dir(house.path("notes")).expect("a mount point");
    house.run(&["ls"]);
    let missing = "the folder is empty, and had 4 files. If its drive isn't connected, connect it";
    house.run(&["new", "fresh"]).refused(2, missing);
    // Nor are they forgotten or written by what reads and edits them.
    house.run(&["cat", "b"]);
    house.fed(&["edit", "a"], b"{\"at\":0,\"delete\":0,\"insert\":\"more \"}\n");
    house.run(&["mv", "b", "c2"]).refused(2, missing);
    house.run(&["ls"]);
    assert_eq!(fs::read_dir(house.path("notes")).expect("a folder").count(), 0, "nothing is written into it");
    fs::remove_dir(house.path("notes")).expect("removed");
    fs::rename(house.path("notes.disk"), house.path("notes")).expect("mounted");
    assert!(history(&house, "a") >= known);
    assert_eq!(house.cat("a"), b"more draft one\n");
    assert_eq!(house.cat("b"), b"two\n");
    house.run(&["new", "fresh"]).good();
    // Another file there says that the folder is the right one.
    for gone in ["a.md", "b.md", "d.txt"] {
        fs::remove_file(house.path("notes").join(gone)).expect("removed");
    }
    until("it's seen that they are gone", || !house.run(&["ls"]).good().text().contains("b.md"));
}

#[test]
fn a_folder_that_is_missing_is_not_made_again() {
    let (house, known) = written();
    fs::rename(house.path("notes"), house.path("notes.disk")).expect("unmounted");
    house.run(&["new", "fresh"]).refused(2, "nothing can be written in notes now");
    let edited = house.fed(&["edit", "a"], b"{\"at\":0,\"delete\":0,\"insert\":\"more \"}\n");
    assert!(!house.path("notes").exists(), "{}", edited.text());
    fs::rename(house.path("notes.disk"), house.path("notes")).expect("mounted");
    assert!(history(&house, "a") >= known);
    let text = String::from_utf8(house.cat("a")).expect("UTF-8");
    assert_eq!(text, "more draft one\n", "what was typed meanwhile is kept");
}

#[test]
fn a_note_that_comes_back_has_its_history() {
    let (house, known) = written();
    let (note, kept) = (house.path("notes/a.md"), house.path("a.kept"));
    house.edit("b", 0, 0, "old ");
    let older = history(&house, "b");
    fs::rename(&note, &kept).expect("moved away");
    fs::remove_file(house.path("notes/b.md")).expect("removed");
    until("it's seen that they are gone", || {
        let listed = house.run(&["ls"]).good().text();
        !listed.contains("a.md") && !listed.contains("b.md")
    });
    fs::rename(&kept, &note).expect("moved back");
    // With other text, it's changed by another program meanwhile.
    house.write("notes/b.md", b"old two\nand three\n");
    assert_eq!(history(&house, "a"), known);
    assert_eq!(house.cat("a"), b"draft one\n");
    assert_eq!(house.cat("b"), b"old two\nand three\n");
    assert!(history(&house, "b") > older, "what changed meanwhile is in it, too");
    let before = house.run(&["history", "b", "--at", &older.to_string()]).good().text();
    assert_eq!(before, "old two\n");
}

#[test]
fn a_new_path_may_name_its_volume() {
    let house = House::with(&[("x.md", "x\n")]);
    house.write("other/y.md", b"y\n");
    house.run(&["open", "other"]).good();
    house.run(&["new", "other:z", "--text", "z"]).good();
    assert_eq!(house.read("other/z.md"), b"z");
    house.run(&["mv", "other:y.md", "other:sub/y.md"]).good();
    assert_eq!(house.read("other/sub/y.md"), b"y\n");
    house.run(&["mv", "notes:x.md", "other:x.md"]).refused(2, "inside of its volume, which is notes");
    assert_eq!(house.read("notes/x.md"), b"x\n");
    house.run(&["cp", "other:z", "notes:z2.md"]).good();
    assert_eq!(house.read("notes/z2.md"), b"z");
    // A colon that names no volume is part of the name.
    house.run(&["new", "a: b"]).good();
    assert!(house.path("notes/a: b.md").exists());
}

#[cfg(unix)]
#[test]
fn a_note_below_a_link_is_refused_before_it_is_made() {
    let house = House::with(&[("a.md", "a\n")]);
    fs::create_dir(house.path("out")).expect("a folder");
    std::os::unix::fs::symlink(house.path("out"), house.path("notes/link")).expect("linked");
    house.run(&["new", "link/x"]).refused(2, "link is there and isn't read (it is a symlink");
    house.run(&["capture", "hi"]).good();
    house.run(&["new", "other"]).good();
    assert_eq!(fs::read_dir(house.path("out")).expect("a folder").count(), 0);
}

#[test]
fn a_capture_begins_the_day_with_its_template() {
    let house = House::with(&[("Templates/Daily.md", "# {{date:%Y}}: {{title}}\n\n## Plan\n")]);
    house.run(&["capture", "Call the plumber"]).good();
    let files = crate::program::bytes(&house.path("notes/Journal"));
    let (name, text) = files.iter().next().expect("a daily note");
    let text = String::from_utf8(text.clone()).expect("UTF-8");
    let title = name.strip_suffix(".md").expect("a note");
    assert_eq!(text, format!("# {}: {title}\n\n## Plan\n- Call the plumber\n", &title[..4]));
}

#[test]
fn a_byte_order_mark_stays_first_and_hides_no_properties() {
    let text = "\u{feff}---\r\nrating: 3\r\ntags: [book]\r\n---\r\n# B\r\n\r\n```python\r\n1\r\n```\r\n";
    let house = House::with(&[("c.md", text), ("d.md", "\u{feff}# D\n\n```python\n1\n```\n")]);
    let found = house.json(&["search", "tag:book"]);
    assert_eq!(found.as_array().expect("a list").len(), 1, "{found}");
    house.run(&["cells", "c", "--mode", "automatic"]).good();
    let changed = String::from_utf8(house.read("notes/c.md")).expect("UTF-8");
    assert!(
        changed.starts_with("\u{feff}---\r\nrating: 3\r\ntags: [book]\r\ncells: automatic\r\n---\r\n"),
        "{changed:?}"
    );
    house.run(&["cells", "d", "--mode", "automatic"]).good();
    let changed = String::from_utf8(house.read("notes/d.md")).expect("UTF-8");
    assert!(changed.starts_with("\u{feff}---\ncells: automatic\n---\n"), "{changed:?}");
}
