//! The merge driver under the real `git`: fewer conflicts than by lines, and never another result where Git has one.

use super::agents::house;
use super::git::{caller, git, know_user, run_in, with_remote};
use crate::program::{Done, House, PROGRAM};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Two branches of a note with these versions. Merges the second into the first, and returns whether Git could.
fn merge(folder: &Path, [base, ours, theirs]: [&[u8]; 3]) -> bool {
    let write = |bytes: &[u8], message: &str| {
        std::fs::write(folder.join("a.md"), bytes).expect("written");
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "--allow-empty", "-m", message]);
    };
    // The last merge may have ended in a conflict.
    git(folder, &["reset", "-q", "--hard"]);
    git(folder, &["update-ref", "-d", "refs/heads/start"]);
    git(folder, &["switch", "-qf", "--orphan", "start"]);
    let attributes = folder.join(".gitattributes");
    let lines = std::fs::read(&attributes).ok().or_else(|| std::fs::read(folder.join(".git/kept")).ok());
    if let Some(lines) = lines {
        std::fs::write(folder.join(".git/kept"), &lines).expect("written");
        std::fs::write(&attributes, lines).expect("written");
    }
    write(base, "base");
    for (branch, bytes) in [("theirs", theirs), ("ours", ours)] {
        git(folder, &["switch", "-q", "-C", branch, "start"]);
        write(bytes, branch);
    }
    let done =
        Command::new("git").args(["merge", "-q", "--no-edit", "theirs"]).current_dir(folder).output().expect("git");
    let unmerged = git(folder, &["ls-files", "--unmerged"]);
    assert_eq!(done.status.success(), unmerged.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    let merged = done.status.success();
    git(folder, &["branch", "-qD", "theirs"]);
    merged
}

/// A repository in `notes`, with the driver if it's wanted.
fn repository(has_driver: bool) -> House {
    let house = House::new();
    let notes = house.path("notes");
    std::fs::create_dir_all(&notes).expect("made");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    if has_driver {
        run_in(&house, "", &["merge-driver", "--install", "notes", "--yes"]).good();
    }
    assert!(!house.path("W").exists(), "it needs no workspace");
    house
}

fn driver(house: &House, words: &[&str]) -> Done {
    let mut all = vec!["merge-driver"];
    all.extend(words);
    run_in(house, "", &all)
}

/// A note with twenty cells; these have another line.
fn cells(changed: impl Fn(usize) -> bool) -> String {
    let cell = |at: usize| format!("```python\nx{at} = {}\n```\n", if changed(at) { "'new'" } else { "'old'" });
    (0..20).map(cell).collect()
}

#[test]
fn disjoint_edits_and_neighbors_merge_and_the_same_line_does_not() {
    let (by_lines, by_parts) = (repository(false), repository(true));
    let both = |versions: [&str; 3]| {
        let versions = versions.map(str::as_bytes);
        let merged = [merge(&by_lines.path("notes"), versions), merge(&by_parts.path("notes"), versions)];
        assert!(!merged[0] || by_lines.read("notes/a.md") == by_parts.read("notes/a.md"), "Git's own where it has one");
        merged
    };
    let text = || String::from_utf8(by_parts.read("notes/a.md")).expect("text");
    // Twenty edits of twenty cells, ten on each side.
    let versions = [cells(|_| false), cells(|at| at % 2 == 0), cells(|at| at % 2 == 1)];
    assert!(both([&versions[0], &versions[1], &versions[2]])[1]);
    assert_eq!(text(), cells(|_| true));
    // Neighboring lines, which Git calls a conflict.
    assert_eq!(both(["one\ntwo\n", "1\ntwo\n", "one\n2\n"]), [false, true]);
    assert_eq!(text(), "1\n2\n");
    let prose = ["First. Second. Third.\n", "First! Second. Third.\n", "First. Second. Third!\n"];
    assert_eq!(both(prose), [false, true]);
    assert_eq!(text(), "First! Second. Third!\n");
    // The same line, or sentence, is a conflict with Git's own text.
    for versions in [
        ["one\ntwo\n", "one\n2\n", "one\nzwei\n"],
        ["First. Second.\n", "First. 2nd.\n", "First. Other.\n"],
        ["```python\nx = 1\n```\n", "```python\nx = 2\n```\n", "```python\nx = 3\n```\n"],
        ["one\n", "one\nmore\n", "one\nless\n"],
        ["one\ntwo\nthree\n", "one\nthree\n", "one\ntwo\nmore\nthree\n"],
    ] {
        assert_eq!(both(versions), [false, false], "{versions:?}");
        let unlabeled = |house: &House| {
            let text = String::from_utf8(house.read("notes/a.md")).expect("text");
            let is_label = |line: &&str| line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>");
            text.lines().map(|line| if is_label(&line) { &line[..7] } else { line }).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(unlabeled(&by_parts), unlabeled(&by_lines));
    }
    // Line ends stay.
    assert_eq!(both(["one\r\ntwo\r\n", "1\r\ntwo\r\n", "one\r\n2\r\n"]), [false, true]);
    assert_eq!(text(), "1\r\n2\r\n");
    // What isn't text is a conflict, and the user's file stays.
    assert!(!merge(&by_parts.path("notes"), [b"\xff\0one\n", b"\xff\0two\n", b"\xff\0three\n"]));
    assert_eq!(by_parts.read("notes/a.md"), b"\xff\0two\n");
    assert!(!merge(&by_parts.path("notes"), [b"caf\xe9 one\n", b"caf\xe9 two\n", b"caf\xe9 three\n"]));
    assert_eq!(by_parts.read("notes/a.md"), b"caf\xe9 two\n");
}

#[test]
fn it_is_called_with_files_and_says_what_is_wrong() {
    let house = House::new();
    for (name, text) in [("base", "one\ntwo\n"), ("ours", "1\ntwo\n"), ("theirs", "one\n2\n")] {
        house.write(name, text.as_bytes());
    }
    driver(&house, &["base", "ours", "theirs", "My notes.md", "7"]).good();
    assert_eq!(house.read("ours"), b"1\n2\n");
    house.write("ours", b"eins\ntwo\n");
    house.write("theirs", b"un\ntwo\n");
    driver(&house, &["base", "ours", "theirs", "a.md", "11"]).code(1);
    let expected = "<<<<<<<<<<< ours\neins\n===========\nun\n>>>>>>>>>>> theirs\ntwo\n";
    assert_eq!(String::from_utf8(house.read("ours")).expect("text"), expected);
    assert_eq!(
        run_in(&house, "", &["merge-driver", "base", "base", "base", "--json"]).good().json()["conflicts"],
        json!(0)
    );
    driver(&house, &["base", "ours"]).refused(2, "takes BASE OURS THEIRS");
    driver(&house, &["base", "ours", "theirs", "a.md", "0"]).refused(2, "takes BASE OURS THEIRS");
    driver(&house, &["base", "ours", "nothing"]).refused(2, "there is no file");
    house.write("theirs", b"\xff\n");
    driver(&house, &["base", "ours", "theirs", "a.md"]).refused(2, "a.md isn't UTF-8 text");
    assert_eq!(String::from_utf8(house.read("ours")).expect("text"), expected, "it stays as it was");
    run_in(&house, "", &["status", "--yes"]).refused(2, "go with merge-driver");
    assert!(!house.path("W").exists());
}

#[test]
fn it_is_installed_on_request_and_once() {
    let house = House::with(&[("a.md", "one\ntwo\n")]);
    run_in(&house, "", &["merge-driver", "--install", "notes", "--yes"]).refused(2, "there is no git repository");
    with_remote(&house);
    run_in(&house, "notes", &["push"]).good();
    house.write("notes/.gitattributes", b"*.png binary");
    let shown = run_in(&house, "", &["merge-driver", "--install", "notes"]);
    let said = String::from_utf8_lossy(&shown.out).into_owned();
    assert!(said.contains("+*.md merge=tracebook") && said.contains("git config merge.tracebook.driver"), "{said}");
    assert!(said.contains("+++ b/") && !said.contains("+++ b//"), "{said}");
    shown.refused(2, "nothing was written");
    assert_eq!(house.read("notes/.gitattributes"), b"*.png binary");
    // By the volume's name, too.
    let done = house.json(&["git", "merge-driver", "--install", "notes", "--yes"]);
    assert_eq!(done["written"], json!(true), "{done}");
    assert_eq!(house.read("notes/.gitattributes"), b"*.png binary\n*.md merge=tracebook\n");
    let command = git(&house.path("notes"), &["config", "merge.tracebook.driver"]);
    assert_eq!(command, format!("'{PROGRAM}' git merge-driver %O %A %B %P %L"));
    let done = run_in(&house, "", &["merge-driver", "--install", "notes", "--json"]).good().json();
    assert_eq!(done["written"], json!(false));
}

#[test]
fn agents_pull_with_this_driver_and_no_other_one() {
    let pulls = |evil: Option<&str>| -> (String, bool, bool) {
        let (address, heard) = caller(vec![("git_pull", json!({}))]);
        let house = house(&address, &[("a.md", "one\n")]);
        with_remote(&house);
        run_in(&house, "notes", &["push"]).good();
        run_in(&house, "", &["merge-driver", "--install", "notes", "--yes"]).good();
        git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
        know_user(&house.path("other"));
        house.write("other/b.md", b"new\n");
        run_in(&house, "other", &["commit", "-m", "New", "--push"]).good();
        if let Some(evil) = evil {
            let command = git(&house.path("notes"), &["config", "merge.tracebook.driver"]);
            git(&house.path("notes"), &["config", "merge.tracebook.driver", &format!("{command}{evil}")]);
        }
        house.run(&["ask", "pull", "--approve", "git_pull", "--json"]).good();
        let said = heard.lock().expect("heard").first().cloned().unwrap_or_default();
        (said, house.path("notes/b.md").exists(), house.path("notes/evil").exists())
    };
    let (said, is_pulled, _) = pulls(None);
    assert!(said.contains("on main") && is_pulled, "{said}");
    let (said, is_pulled, has_run) = pulls(Some("; touch evil"));
    assert!(said.contains("merge.tracebook.driver") && !is_pulled && !has_run, "{said}");
}
