//! Wrong usage and impossible requests: the exit code, and one sentence on standard error that says what to do.

use super::house;
use crate::program::{House, PROGRAM, finish, line};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

#[test]
fn wrong_use_is_refused_in_a_sentence() {
    let house = house();
    house.write("file", b"not a folder\n");
    let rows: &[(&[&str], &str, &str)] = &[
        (&["cat", "nowhere.md"], "", "there is no note “nowhere.md”"),
        (&["cat", "twin"], "", "fits several notes"),
        (&["cat", "twin"], "", "notes:two/twin.md"),
        (&["cat", "data.csv"], "", "attachment"),
        (&["cat", "notes"], "", "a volume"),
        (&["cat", ""], "", "there is no note"),
        (&["history", "nowhere.md"], "", "there is no note"),
        (&["outputs", "nowhere.md"], "", "there is no note"),
        (&["run", "nowhere.md"], "", "there is no note"),
        (&["run", "cells.md", "--cell", "99"], "", "there is no cell 99; the note has 4"),
        (&["run", "cells.md", "--cell", "0"], "", "there is no cell 0"),
        (&["run", "cells.md", "--cell", "one"], "", "--cell wants a whole number"),
        (&["run", "cells.md", "--timeout", "x"], "", "--timeout wants a whole number"),
        (&["edit", "nowhere.md"], "", "there is no note"),
        (&["edit", "a.md"], "at 1\n", "line 1: not of the form"),
        (&["edit", "a.md"], "{\"insert\":\"x\"}\n", "line 1: not of the form"),
        (&["edit", "a.md"], "{\"at\":-1,\"insert\":\"x\"}\n", "line 1: not of the form"),
        (&["edit", "a.md"], "{\"at\":0,\"add\":\"x\"}\n", "line 1: not of the form"),
        (&["edit", "a.md"], "\n{\"at\":1000,\"insert\":\"x\"}\n", "line 2: "),
        (&["edit", "a.md"], "{\"at\":0,\"delete\":1000}\n", "line 1: "),
        (&["edit", "a.md"], "{\"at\":10,\"insert\":\"x\"}\n", "line 1: "),
        (&["edit", "a.md"], "{\"at\":9,\"delete\":1}\n", "line 1: "),
        (&["edit", "a.md"], "{\"at\":18446744073709551615,\"delete\":18446744073709551615}\n", "line 1: "),
        (&["open", "no folder"], "", "no such folder"),
        (&["open", "file"], "", "it is a file, not a folder; open its folder"),
        (&["import", "no file"], "", "no such file"),
        (&["import", "file", "--volume", "Other"], "", "there is no volume “Other”; there are: notes"),
        (&["new", "x", "--volume", "Other"], "", "there is no volume “Other”"),
        (&["new", "../x.md"], "", ""),
        (&["new", "/etc/x.md"], "", ""),
        (&["new", ""], "", ""),
        (&["new", ".hidden/x.md"], "", ""),
        (&["ls", "--volume", "Other"], "", "there is no volume “Other”"),
        (&["export", "nowhere", "out"], "", "there is no note"),
        (&["todos", "--check", "a.md"], "", "`tracebook todos --check Garden --words \"buy seeds\"`"),
        (&["backup", "notes"], "", "notes"),
        (&["restore", "notes", "--workspace", "R"], "", "notes"),
        (&["completions", "tcsh"], "", "no completions for “tcsh”"),
    ];
    let notes = crate::program::files(&house.path("notes"));
    for (words, input, about) in rows {
        let done = house.fed(words, input.as_bytes());
        assert_eq!(done.out, b"", "{words:?}");
        done.refused(2, about);
        let json: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let done = house.fed(&json, input.as_bytes());
        assert_eq!(done.out, b"", "{words:?}");
        done.refused(2, about);
    }
    assert_eq!(crate::program::files(&house.path("notes")), notes, "a refusal wrote");
    assert!(!house.path("R").exists() && !house.path("x.md").exists() && !house.path("out").exists());
    fs::create_dir(house.path("notes/empty.md")).expect("a folder");
    for name in ["empty.md", "empty"] {
        house.run(&["new", name]).refused(2, "a folder has that name already; choose another: empty.md");
    }
    assert!(!house.run(&["ls"]).good().text().contains("empty"), "no note was made");
    fs::remove_dir(house.path("notes/empty.md")).expect("the folder is empty");
    if cfg!(target_os = "linux") {
        // Its files have no end.
        house.run(&["import", "/proc/self"]).refused(2, "it isn't made of files that are stored");
    }
    let done = house.fed(&["edit", "a.md"], b"\xff\xfe\n");
    done.refused(2, "line 1: not of the form");
    house.fed(&["edit", "a.md", "--text"], b"\xff\xfe\n").refused(2, "not UTF-8");
    house.fed(&["new", "b.md", "--text", "-"], b"\xff\xfe\n").refused(2, "not UTF-8");
    assert_eq!(crate::program::files(&house.path("notes")), notes, "a refusal wrote");
    house.run(&[]).refused(2, "there is no display");
}

#[test]
fn the_systems_error_numbers_are_not_shown() {
    let house = house();
    house.write("file", b"not a folder\n");
    let long = format!("{}.html", "x".repeat(300));
    for (words, code, about) in [
        (&["export", "a.md", "file/sub/a.html"][..], 2, "the folder cannot be made (Not a directory)"),
        (&["export", "notes", "file/sub/out"], 3, "the folder cannot be made (Not a directory)"),
        (&["export", "a.md", &long], 2, "File name too long"),
        (&["backup", "file/sub/B"], 3, "writing failed (Not a directory)"),
        (&["init", "--workspace", "file/W2"], 3, "file/W2"),
        (&["doctor", "--report", "file/sub/report.tar.gz"], 3, "can't write the report"),
    ] {
        let done = house.run(words).refused(code, about);
        assert!(!done.err.contains("os error"), "{words:?}: {}", done.err);
    }
}

#[test]
fn what_came_before_a_wrong_line_is_kept_and_nothing_after_it() {
    let house = house();
    let input = line(0, 0, "one ") + &line(999, 0, "x") + &line(0, 0, "two ");
    let done = house.fed(&["edit", "a.md"], input.as_bytes()).refused(2, "line 2: ");
    assert_eq!(done.lines().len(), 1);
    assert_eq!(house.cat("a.md"), "one # Alpha\n\né and more\n".as_bytes());
}

#[test]
fn words_that_the_grammar_does_not_know_are_wrong_use() {
    let house = House::new();
    for words in
        [&["frobnicate"][..], &["cat"], &["cat", "a", "b"], &["ls", "--cell", "1"], &["export", "a"], &["--json=1"]]
    {
        let done = house.run(words).code(2);
        assert!(done.out.is_empty() && done.err.starts_with("error: "), "{done:?}");
    }
    let mut command = Command::new(PROGRAM);
    house.surround(&mut command, &["open"]);
    command.arg(OsStr::from_bytes(b"caf\xe9"));
    finish(command, b"").refused(2, "not UTF-8");
    assert!(!house.path("W").exists(), "wrong use made a workspace");
}

#[test]
fn a_misspelled_command_is_told_the_closest_one() {
    let house = House::new();
    for (typed, meant) in [("serach", "search"), ("exprot", "export"), ("sesions", "sessions"), ("captrue", "capture")]
    {
        let done = house.run(&[typed]).code(2);
        assert!(done.err.contains("similar subcommand") && done.err.contains(&format!("'{meant}'")), "{}", done.err);
    }
}

#[test]
fn safe_mode_is_a_flag_of_the_window_alone() {
    let house = House::with(&[("a.md", "# A\n")]);
    // There's no display here, which is said only after all words were understood.
    for words in [&["--safe"][..], &["--safe", "notes"], &["notes", "--safe"]] {
        house.run(words).refused(2, "there is no display here, so no window");
    }
    let done = house.run(&["ls", "--safe"]).code(2);
    assert!(done.err.contains("unexpected argument '--safe'"), "{}", done.err);
}

#[test]
fn a_workspace_that_is_not_there_is_wrong_use() {
    let house = House::new();
    house.write("file", b"x");
    house.write("empty/x", b"x");
    for words in
        [&["ls"][..], &["cat", "a"], &["edit", "a"], &["run", "a"], &["history", "a"], &["fsck"], &["backup", "B"]]
    {
        house.run(words).refused(2, "W");
        assert!(!house.path("W").exists(), "{words:?} made one");
    }
    for words in [&["ls", "--workspace", "empty"][..], &["cat", "a", "--workspace", "empty"]] {
        house.run(words).refused(2, "empty");
    }
    assert_eq!(crate::program::bytes(&house.path("empty")).len(), 1, "it wrote into a folder that is no workspace");
    // No workspace is created for a missing folder, either.
    house.run(&["open", "no folder"]).refused(2, "no such folder");
    house.run(&["import", "no file"]).refused(2, "no such file");
    assert!(!house.path("W").exists(), "one was made for what is not there");
}

#[test]
fn a_folder_in_a_volume_or_around_one_is_refused_with_what_to_do() {
    let house = House::with(&[("a.md", "# A\n"), ("sub/b.md", "# B\n")]);
    house.run(&["open", "notes"]).good();
    house.run(&["open", "notes/sub"]).refused(2, "the folder is in the volume “notes” already");
    house.write("around/inner/c.md", b"# C\n");
    house.run(&["open", "around/inner"]).good();
    house.run(&["open", "around"]).refused(2, "the folder contains the volume “inner”; close that volume first");
}

#[test]
fn a_damaged_workspace_is_said_and_left_as_it_is() {
    let house = house();
    house.edit("a.md", 0, 0, "x");
    for name in ["tracebook.db-wal", "tracebook.db-shm"] {
        let _ = fs::remove_file(house.path("W").join(name));
    }
    house.write("W/tracebook.db", &b"This is no database at all. ".repeat(400));
    let damaged = house.read("W/tracebook.db");
    for words in [&["ls"][..], &["cat", "a.md"], &["open", "notes"], &["run", "cells.md"], &["backup", "B"]] {
        house.run(words).refused(3, "fsck");
    }
    house.run(&["fsck", "--check"]).code(3);
    assert_eq!(house.read("W/tracebook.db"), damaged, "a damaged file was written to");
    house.run(&["fsck"]);
    let notes = house.json(&["ls"]);
    assert_eq!(notes.as_array().expect("an array").len(), 5, "fsck did not bring the volume back: {notes}");
    assert_eq!(house.cat("a.md"), "x# Alpha\n\né and more\n".as_bytes());
    house.run(&["fsck"]).good();
    let kept = crate::program::files(&house.path("W")).into_values().any(|stand| stand.0 == damaged);
    assert!(kept, "what was damaged is set aside, not deleted");
}

#[test]
fn an_owner_that_does_not_answer_is_said() {
    let house = house();
    let lock = File::options().write(true).truncate(true).open(house.path("W/lock")).expect("opened");
    lock.lock().expect("locked");
    house.run(&["cat", "a.md"]).refused(3, "another Tracebook has the workspace open");
    house.run(&["doctor"]).good();
    drop(lock);
    house.run(&["cat", "a.md"]).good();
}

/// A link that leads out of the volume is skipped. It neither becomes a note nor keeps others from being saved.
#[cfg(unix)]
#[test]
fn a_link_in_the_way_of_one_note_fails_no_other() {
    let house = House::new();
    house.write("elsewhere/L.md", b"outside\n");
    house.write("notes/a.md", b"# A\n");
    std::os::unix::fs::symlink("../elsewhere/L.md", house.path("notes/L.md")).expect("linked");
    house.run(&["open", "notes"]).code(0);
    house.run(&["new", "L"]).refused(2, "L.md is there and isn't read");
    house.run(&["new", "B"]).good();
    house.edit("a.md", 0, 0, "x");
    assert_eq!((house.read("notes/a.md"), house.read("elsewhere/L.md")), (b"x# A\n".to_vec(), b"outside\n".to_vec()));
    assert!(house.path("notes/B.md").exists());
}

/// A path through a file, or the name of a folder: refused before anything is kept, because it could never be saved.
#[test]
fn a_note_that_no_folder_can_hold_is_not_made() {
    let house = House::with(&[("a.md", "# A\n\n```python\n1 + 1\n```\n"), ("dir.md/inner.md", "inner\n")]);
    house.write("notes/data.csv", b"n\n1\n");
    house.run(&["ls"]).good();
    for (path, about) in [
        ("notes:data.csv/x.md", "this is a file, not a folder; choose another path: data.csv"),
        ("notes:a.md/deep/x", "this is a file, not a folder; choose another path: a.md"),
        ("notes:dir", "a folder has that name already; choose another: dir.md"),
    ] {
        house.run(&["new", path, "--text", "mine"]).refused(2, about);
    }
    house.write("notes/Journal", b"a file\n");
    house.run(&["ls"]).good();
    house.run(&["capture", "a thought"]).refused(2, "this is a file, not a folder; choose another path: Journal");
    let listed = house.run(&["ls"]).good().text();
    assert!(!listed.contains("data.csv/") && !listed.contains("Journal/"), "{listed}");
    assert_eq!(house.run(&["run", "a.md"]).good().text(), "2\n");
}

/// A file that isn't among the notes: the message says how it gets there, or why it can't be one.
#[test]
fn a_file_that_is_no_note_says_what_to_do_with_it() {
    let house = House::with(&[("a.md", "# A\n")]);
    house.write("analysis.ipynb", b"{}");
    house.run(&["run", "analysis.ipynb"]).refused(2, "analysis.ipynb is in no volume; `tracebook open ");
    house.run(&["run", "analysis.ipynb"]).refused(2, "`tracebook import analysis.ipynb` copies it");
    // Other programs aren't told what files there are.
    house.run(&["run", "analysis.ipynb", "--json"]).refused(2, "there is no note");
    house.write("notes/latin.md", b"# Z\xfcrich\n");
    house.run(&["cat", "latin"]).refused(2, "it is not UTF-8 text (at byte 3), so it is kept as it is: latin.md");
}

/// A time limit that can't be read is said before the cell runs with the usual one.
#[test]
fn a_time_limit_that_does_not_count_is_said() {
    let house = House::with(&[("a.md", "```python timeout=60\n1\n```\n\n```python timeout=1m\n1 + 1\n```\n")]);
    let done = house.run(&["run", "a.md"]).code(0);
    assert_eq!(done.text(), "1\n2\n");
    assert!(done.err.contains("cell 2: `timeout=1m` doesn't count") && !done.err.contains("cell 1"), "{}", done.err);
}

#[test]
fn benchmarks_are_passed_on_to_their_program_or_it_is_said_how_to_build_it() {
    let house = House::new();
    // Under its own name, and in a folder where no other program is.
    let built = Path::new(PROGRAM).parent().expect("a folder");
    let folder = tempfile::tempdir_in(built).expect("a folder");
    let program = folder.path().join("tracebook");
    fs::hard_link(PROGRAM, &program).expect("linked");
    let bench = || {
        let mut command = Command::new(&program);
        house.surround(&mut command, &["bench", "nothing", "--workspace", "W"]);
        finish(command, b"")
    };
    let why = bench();
    assert!(why.err.contains("/tracebook-bench: "), "{}", why.err);
    why.refused(2, "`cargo bench-app` builds and runs it");
    // A shell stands for the program, and reads the file `bench` as its script.
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("tracebook-bench")).expect("linked");
    house.write("bench", b"echo \"got $*\"; echo why >&2; exit 7\n");
    let done = bench().code(7);
    assert_eq!((done.text().as_str(), done.err.as_str()), ("got nothing --workspace W\n", "why\n"));
}
