//! Plain files in both directions, through the program's binary: opened files stay unchanged, edits change only the
//! edited bytes, and changes by other programs are taken in.

mod odd;
mod outside;
mod random;

use crate::program::{House, bytes, files, shared};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The vault in tests/data, and the vaults of the shared data if they're available.
fn vaults() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/vault");
    let others = shared("vaults").map(|folder| fs::read_dir(folder).expect("listed"));
    let others = others.into_iter().flatten().map(|entry| entry.expect("listed").path());
    std::iter::once(own).chain(others.filter(|path| path.is_dir())).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("listed").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => fs::write(&target, fs::read(&path).expect("read")).expect("written"),
        }
    }
}

/// The kinds that `ls` must print: UTF-8 text in .md is a note, in .base a collection, all else an attachment.
fn kinds(folder: &Path) -> BTreeMap<String, &'static str> {
    let kind = |path: &str, bytes: Vec<u8>| match (path.rsplit('.').next(), String::from_utf8(bytes)) {
        (Some("md"), Ok(_)) => "note",
        (Some("base"), Ok(_)) => "collection",
        _ => "attachment",
    };
    bytes(folder).into_iter().map(|(path, bytes)| (path.clone(), kind(&path, bytes))).collect()
}

#[test]
fn a_vault_is_opened_read_and_exported_as_it_is() {
    for vault in vaults() {
        let name = vault.file_name().expect("a name").to_string_lossy().into_owned();
        let house = House::new();
        copy(&vault, &house.path(&name));
        let before = files(&house.path(&name));
        let kinds = kinds(&house.path(&name));
        assert!(kinds.len() > 10, "{name} is no vault");

        let opened = house.json(&["open", &name]);
        let count = |kind| kinds.values().filter(|other| **other == kind).count();
        assert_eq!(opened["volume"], *name);
        let others = count("attachment") + count("collection");
        assert_eq!((&opened["notes"], &opened["attachments"]), (&json!(count("note")), &json!(others)));
        let listed = house.json(&["ls"]);
        let listed = listed.as_array().expect("an array").iter().map(|row| {
            let word = |key: &str| row[key].as_str().expect("a word").to_owned();
            (word("path"), word("kind"))
        });
        let kinds = kinds.into_iter().map(|(path, kind)| (path, kind.to_owned())).collect::<BTreeMap<_, _>>();
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), kinds);

        // Some notes are read alone, then some while another process owns the workspace.
        let notes: Vec<&String> = kinds.iter().filter(|(_, kind)| *kind == "note").map(|(path, _)| path).collect();
        let step = notes.len().div_ceil(45);
        for path in notes.iter().step_by(step * 3) {
            assert_eq!(house.cat(path), before[*path].0, "{path}");
        }
        let owner = house.owner(notes[0]);
        for path in notes.iter().step_by(step) {
            assert_eq!(house.cat(path), before[*path].0, "{path}");
        }
        owner.end();

        let exported = house.json(&["export", &name, "out"]);
        assert_eq!(exported["exported"].as_array().expect("an array").len(), kinds.len());
        assert_eq!(exported["skipped"], json!([]));
        let same = before.iter().map(|(path, stand)| (path.clone(), stand.0.clone())).collect();
        assert_eq!(bytes(&house.path("out")), same, "exported");
        assert_eq!(files(&house.path(&name)), before, "a file was touched");
    }
}

#[test]
fn an_edit_changes_the_edited_bytes_alone() {
    let notes: &[(&str, &str, usize, usize, &str)] = &[
        ("crlf.md", "# A\r\n\r\nsome text\r\n\r\n```python\r\n1 + 1\r\n```\r\nend\r\n", 12, 4, "words\r\nof mine"),
        ("bom.md", "\u{feff}# B\n\nbelow the mark\n", 8, 0, "still "),
        ("before the mark.md", "\u{feff}# B\n", 0, 3, ""),
        ("no end.md", "no final newline", 16, 0, "!"),
        ("no end either.md", "a\n\nb", 0, 1, "A"),
        ("....md", "dots\n", 0, 0, "three "),
        ("1*.md", "star\n", 4, 1, ""),
        ("😀 note.md", "family 👨‍👩‍👧 here\n", 7, 4, "👩"),
        ("empty.md", "", 0, 0, "first\n"),
        ("blank.md", "\n\n\n  \n", 3, 0, "x"),
        ("mixed.md", "a\rb\r\nc\nd\0e\n", 8, 1, ""),
        ("sub/Note.md", "upper\n", 0, 5, "UPPER"),
        ("sub/note.md", "lower\n", 5, 0, "!"),
    ];
    let house = House::new();
    for (name, text, ..) in notes {
        house.write(&format!("odd/{name}"), text.as_bytes());
    }
    house.write("odd/data.bin", &[0, 255, 13, 10]);
    let opened = house.json(&["open", "odd"]);
    assert_eq!((&opened["notes"], &opened["attachments"]), (&json!(notes.len()), &json!(1)));
    assert_eq!(opened["skipped"], json!([]));
    let mut expected = files(&house.path("odd"));
    for (name, text, at, delete, insert) in notes {
        assert_eq!(house.cat(name), text.as_bytes(), "{name}");
        house.edit(name, *at, *delete, insert);
        let mut new = text.as_bytes().to_vec();
        new.splice(at..&(at + delete), insert.bytes());
        assert_eq!(house.read(&format!("odd/{name}")), new, "the file of {name}");
        assert_eq!(house.cat(name), new, "{name}");
        // Only that file may have been replaced; the others are unchanged.
        let now = files(&house.path("odd"));
        expected.insert((*name).to_owned(), now[*name].clone());
        assert_eq!(now, expected, "after the edit of {name}");
    }
}

#[test]
fn an_edited_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::with(&[("a.md", "text\n")]);
    let path = house.path("notes/a.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
    house.edit("a.md", 0, 0, "more ");
    assert_eq!(house.read("notes/a.md"), b"more text\n");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_folder_behind_a_link_is_the_same_volume() {
    let house = House::with(&[("a.md", "text\n")]);
    symlink(house.path("notes"), house.path("short")).expect("linked");
    let (one, other) = (house.json(&["open", "notes"]), house.json(&["open", "short"]));
    assert_eq!(one, other);
    assert_eq!(house.json(&["ls"]).as_array().expect("an array").len(), 1);
}

#[test]
fn import_then_export_is_the_identity() {
    let vault = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/vault");
    let house = House::new();
    copy(&vault, &house.path("garden"));
    let before = files(&house.path("garden"));
    let imported = house.json(&["import", "garden"]);
    assert_eq!(imported["volume"], "Notes");
    assert_eq!(imported["imported"].as_array().expect("an array").len(), before.len());
    assert_eq!(imported["skipped"], json!([]));
    house.run(&["export", "Notes", "out"]).good();
    assert_eq!(bytes(&house.path("out/garden")), bytes(&vault));
    assert_eq!(files(&house.path("garden")), before, "the source was touched");
    // A single note is exported to a file name and into a folder.
    house.run(&["export", "garden/Reading/with mark.md", "one.md"]).good();
    house.run(&["export", "garden/Reading/with mark.md", "out"]).good();
    let bytes = &before["Reading/with mark.md"].0;
    assert_eq!((&house.read("one.md"), &house.read("out/with mark.md")), (bytes, bytes));
}

#[test]
fn nothing_is_overwritten() {
    let house = House::with(&[("a.md", "mine\n"), ("sub/b.md", "mine, too\n")]);
    house.write("a.md", b"another's\n");
    house.write("c.md", b"new\n");
    house.write("garden/a.md", b"garden\n");
    house.write("taken/x", b"here\n");
    house.run(&["import", "a.md", "garden"]).good();
    house.write("garden/a.md", b"changed\n");
    house.write("garden/d.md", b"new in the garden\n");
    let before = files(&house.path(""));
    let ours = |path: &String| !path.starts_with("W/") || path.starts_with("W/Notes");
    let before: BTreeMap<_, _> = before.into_iter().filter(|(path, _)| ours(path)).collect();
    for words in [
        &["new", "a.md", "--text", "x", "--volume", "notes"][..],
        &["new", "sub/b", "--text", "x", "--volume", "notes"],
        &["new", "a", "--text", "x", "--volume", "Notes"],
        &["import", "a.md"],
        &["import", "c.md", "a.md"],
        &["import", "garden"],
        &["import", "c.md", "c.md"],
        &["export", "notes:a.md", "a.md"],
        &["export", "notes:a.md", "notes"],
        &["export", "notes", "taken"],
        &["export", "notes", "a.md"],
        &["export", "notes", "notes/inside"],
    ] {
        house.run(words).refused(2, "");
        let now: BTreeMap<_, _> = files(&house.path("")).into_iter().filter(|(path, _)| ours(path)).collect();
        assert_eq!(now, before, "{words:?} wrote");
    }
}
