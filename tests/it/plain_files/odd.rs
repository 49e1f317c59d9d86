//! Files that aren't notes, can't be read, or have unusual names: each is reported, none is changed.

use crate::program::{House, PROGRAM, bytes, files, finish, strict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The paths that `open` skipped or took as attachments, with its reasons.
fn reasons(opened: &Value) -> BTreeMap<&str, &str> {
    let rows = opened["skipped"].as_array().expect("an array");
    rows.iter().map(|one| (one["path"].as_str().expect("a path"), one["why"].as_str().expect("why"))).collect()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("started").success());
}

#[test]
fn what_is_no_note_is_said_and_left_alone() {
    let house = House::new();
    let deep = format!("{}/deep.md", vec!["folder within"; 60].join("/"));
    for (name, text) in
        [("note.md", &b"lower\n"[..]), ("Note.md", b"upper\n"), (".note.md", b"a dot\n"), (&deep, b"deep\n")]
    {
        house.write(&format!("odd/{name}"), text);
    }
    house.write("odd/latin.md", b"caf\xe9\n");
    house.write("odd/cut.md", "whole 👍".as_bytes().split_at(8).0);
    house.write("odd/data.bin", &[0, 255]);
    house.write("odd/.hidden/secret.md", b"hidden\n");
    house.write("odd/sub/.git/config", b"hidden\n");
    house.write("elsewhere/out.md", b"not in the folder\n");
    fs::write(house.path("odd").join(OsStr::from_bytes(b"caf\xe9.md")), "its name\n").expect("written");
    let to = [
        ("note.md", "link.md"),
        ("../elsewhere", "folder"),
        ("nowhere", "dangling.md"),
        ("self", "self"),
        ("..", "sub/up"),
    ];
    for (target, link) in to {
        symlink(target, house.path("odd").join(link)).expect("linked");
    }
    pipe(&house.path("odd/pipe.md"));
    pipe(&house.path("odd/pipe"));
    File::create(house.path("odd/large.md")).and_then(|file| file.set_len(100 << 20)).expect("made");
    let before = files(&house.path("odd"));

    let begun = Instant::now();
    let opened = house.json(&["open", "odd"]);
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(5), "100 MB were read: {time:?}");
    assert_eq!(opened["notes"], 4, "the twins, the dot, the deep one");
    assert_eq!(opened["attachments"], 4, "not text, cut short, too large, data");
    let reasons = reasons(&opened);
    let expected = [
        ("latin.md", "not UTF-8 text (at byte 3)"),
        ("cut.md", "not UTF-8 text (at byte 6)"),
        ("large.md", "more than 16 MiB"),
        ("caf\u{fffd}.md", "its name is not UTF-8"),
        ("link.md", "a symlink (to note.md)"),
        ("folder", "a symlink (to ../elsewhere)"),
        ("dangling.md", "a symlink (to nowhere)"),
        ("self", "a symlink (to self)"),
        ("sub/up", "a symlink (to ..)"),
        ("pipe.md", "not an ordinary file"),
        ("pipe", "not an ordinary file"),
    ];
    for (path, why) in expected {
        assert!(reasons.get(path).is_some_and(|said| said.contains(why)), "{path}: {:?}", reasons.get(path));
    }
    assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
    assert_eq!(house.json(&["open", "odd"]), opened, "a second look says the same");

    for (note, text) in
        [("note.md", &b"lower\n"[..]), ("Note.md", b"upper\n"), (".note.md", b"a dot\n"), (&deep, b"deep\n")]
    {
        assert_eq!(house.cat(note), text, "{note}");
    }
    house.run(&["cat", "latin.md"]).refused(2, "not UTF-8 text");
    house.run(&["cat", "large.md"]).refused(2, "more than 16 MiB");
    house.run(&["cat", "pipe.md"]).refused(2, "there is no note");
    house.run(&["cat", "link.md"]).refused(2, "there is no note");
    house.edit("Note.md", 0, 0, "UP");
    assert_eq!((house.cat("note.md"), house.cat("Note.md")), (b"lower\n".to_vec(), b"UPupper\n".to_vec()));

    let exported = house.json(&["export", "odd", "out"]);
    let left_out = exported["skipped"].as_array().expect("an array").len();
    assert_eq!(left_out, 7, "five links and two pipes: {}", exported["skipped"]);
    fs::write(house.path("odd/Note.md"), "upper\n").expect("written");
    let strip = |folder| files(&house.path(folder)).into_iter().map(|(path, stand)| (path, stand.0));
    let mut out: BTreeMap<_, _> = strip("out").collect();
    out.insert("Note.md".to_owned(), b"upper\n".to_vec());
    assert_eq!(out, strip("odd").collect(), "exported");
    let unedited = |mut all: BTreeMap<String, _>| {
        all.remove("Note.md");
        all
    };
    assert_eq!(unedited(files(&house.path("odd"))), unedited(before), "a file was touched");
    let links = to
        .iter()
        .all(|(target, link)| fs::read_link(house.path("odd").join(link)).is_ok_and(|to| to == Path::new(target)));
    assert!(links, "a link was replaced");
    assert_eq!(fs::metadata(house.path("odd/large.md")).expect("there").len(), 100 << 20);
}

#[test]
fn what_may_not_be_read_is_said_and_left_alone() {
    let house = House::new();
    for name in ["a.md", "closed.md", "closed.bin", "folder/in.md", "locked/in.md"] {
        house.write(&format!("odd/{name}"), name.as_bytes());
    }
    fs::create_dir(house.path("W")).expect("made");
    // File modes don't restrict root, so as root the test runs the program as `nobody`.
    let root = fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let mut program = PROGRAM.into();
    if root {
        let setpriv = Command::new("setpriv").arg("--version").output().is_ok_and(|out| out.status.success());
        if !setpriv {
            assert!(!strict(), "TRACEBOOK_CI=1 and there is no setpriv");
            println!("left out: root may read everything, and there is no setpriv to be somebody else");
            return;
        }
        chown(house.path("W"), Some(65_534), Some(65_534)).expect("given away");
        fs::set_permissions(house.path(""), Permissions::from_mode(0o755)).expect("set");
        let starts = nobody().arg(PROGRAM).arg("--version").output().is_ok_and(|out| out.status.success());
        if !starts {
            // `nobody` can't access the build folder, so the program is copied.
            program = house.path("program");
            fs::copy(PROGRAM, &program).expect("copied");
        }
    }
    let run = |words: &[&str]| {
        let mut command = if root { nobody() } else { Command::new("env") };
        command.arg(&program);
        house.surround(&mut command, words);
        finish(command, b"")
    };
    let mode = |name: &str, mode| fs::set_permissions(house.path(name), Permissions::from_mode(mode)).expect("set");
    let closed = ["odd/closed.md", "odd/closed.bin", "odd/folder", "odd/locked"];
    for name in &closed[..3] {
        mode(name, 0);
    }
    // The folder's names can be listed, but not what they are.
    mode("odd/locked", 0o644);
    let opened = run(&["open", "odd", "--json"]).good().json();
    assert_eq!((&opened["notes"], &opened["attachments"]), (&json!(1), &json!(0)));
    let reasons = reasons(&opened);
    for path in ["closed.md", "closed.bin", "folder", "locked/in.md"] {
        let why = reasons.get(path).copied().unwrap_or_default();
        assert!(why.contains("can't be read") && why.contains("ermission denied"), "{path}: {why}");
    }
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert_eq!(run(&["cat", "a.md"]).good().out, b"a.md");
    run(&["cat", "closed.md"]).refused(2, "there is no note");

    // Made readable, the files appear; made unreadable again, known files don't count as deleted.
    for name in closed {
        mode(name, 0o755);
    }
    let opened = run(&["open", "odd", "--json"]).good().json();
    assert_eq!((&opened["notes"], &opened["attachments"], &opened["skipped"]), (&json!(4), &json!(1), &json!([])));
    assert_eq!(run(&["cat", "folder/in.md"]).good().out, b"folder/in.md");
    mode("odd/folder", 0);
    let opened = run(&["open", "odd", "--json"]).good().json();
    assert_eq!(opened["notes"], 4, "a folder that cannot be read for once is not deleted: {opened}");
    mode("odd/folder", 0o755);
    let all = bytes(&house.path("odd"));
    assert!(all.len() == 5 && all.iter().all(|(path, bytes)| path.as_bytes() == bytes), "a file was touched");
}

fn nobody() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command
}
