//! What scripts rely on: with `--json`, what a command has done is JSON; what a variable that isn't set makes of a
//! command line does nothing; and input that is cut or isn't text isn't taken for the whole.

use super::agents::{house, model};
use crate::program::{House, PROGRAM, finish};
use serde_json::json;
use std::process::Command;

#[test]
fn what_a_command_has_done_is_json_for_programs() {
    let house = House::with(&[("a.md", "[[b]]\n"), ("b.md", "# B\n")]);
    house.run(&["rm", "a"]).good();
    assert_eq!(house.json(&["undo"]), json!({"undone": true}));
    std::fs::rename(house.path("notes/b.md"), house.path("notes/c.md")).expect("renamed");
    assert_eq!(house.json(&["follow"]), json!({"notes": 1}));

    let added = house.json(&["schedule", "add", "@daily", "--consolidate", "--name", "tidy"]);
    assert_eq!((&added["name"], &added["when"]), (&json!("tidy"), &json!("@daily")));
    assert_eq!(house.json(&["schedule", "pause", "tidy"])["paused"], true);
    assert_eq!(house.json(&["schedule", "resume", "tidy"])["paused"], false);
    assert_eq!(house.json(&["schedule", "remove", "tidy"])["removed"], true);

    let plan = house.json(&["tasks", "plan", "Test the page, then write the README"]);
    let path = plan["plan"].as_str().expect("a path").to_owned();
    assert_eq!(plan["tasks"].as_array().map(Vec::len), Some(2));
    let task = house.json(&["tasks", "add", "Deploy the page", "--plan", &path]);
    assert_eq!((&task["id"], &task["plan"]), (&json!("t3"), &json!(path)));
    let third = format!("{path}#t3");
    assert_eq!(house.json(&["tasks", "show", &third])["goal"], "Deploy the page");
    assert_eq!(house.json(&["tasks", "cancel", &third])["standing"], "cancelled");
    assert_eq!(house.json(&["tasks", "reopen", &third]), json!({"id": "t3", "standing": "open"}));

    let known = house.json(&["memory", "add", "The file uses semicolons", "--goal", "read the export"]);
    let id = known["experience_id"].as_str().expect("an id");
    assert_eq!(known["new"], true);
    assert_eq!(house.json(&["memory", "forget", id])["forgotten"], true);

    assert_eq!(house.json(&["index", "pause"]), json!({"paused": true}));
    assert_eq!(house.json(&["index", "resume"]), json!({"paused": false}));
    assert_eq!(house.json(&["index", "reranker", "none"]), json!({"reranker": null}));
}

#[test]
fn an_imported_or_forked_session_is_named_in_json() {
    let house = house(&model(|_, _| ("It is done.".to_owned(), Vec::new())), &[("a.md", "# A\n")]);
    house.run(&["ask", "Do it"]).good();
    let session = house.run(&["sessions", "--json"]).good().lines().remove(0);
    let session = session["id"].as_str().expect("an id");
    let file = house.run(&["sessions", session, "--export", "json"]).good().out;
    house.write("s.json", &file);
    let imported = house.json(&["sessions", "--import", "s.json"])["session"].clone();
    let message = house.run(&["sessions", session, "--json"]).good().lines()[0]["id"].clone();
    let forked = house.json(&["sessions", session, "--fork", message.as_str().expect("an id")])["session"].clone();
    let listed = house.run(&["sessions", "--json"]).good().lines();
    for id in [imported, forked] {
        assert!(listed.iter().any(|one| one["id"] == id), "{id}: {listed:?}");
    }
}

/// Each id begins with an empty word, so the only one would be meant.
#[test]
fn an_empty_name_does_not_mean_the_only_one() {
    let house = house(&model(|_, _| ("It is done.".to_owned(), Vec::new())), &[("a.md", "# A\n")]);
    house.run(&["ask", "Do it"]).good();
    house.run(&["schedule", "add", "@daily", "--consolidate", "--name", "tidy"]).good();
    house.run(&["memory", "add", "The file uses semicolons", "--goal", "read the export"]).good();
    let kept = || {
        let count = |name: &str| house.run(&[name, "--json"]).good().lines().len();
        ["sessions", "runs", "schedule", "memory"].map(count)
    };
    let before = kept();
    assert!(before.iter().all(|count| *count > 0), "{before:?}");
    for words in [
        &["sessions", "", "--delete"][..],
        &["sessions", "session-", "--delete"],
        &["runs", "", "--undo"],
        &["runs", "run-"],
        &["steps", ""],
        &["schedule", "remove", ""],
        &["schedule", "pause", ""],
        &["memory", "forget", ""],
    ] {
        house.run(words).refused(2, "there is no ");
    }
    assert_eq!(kept(), before, "something was deleted");
}

/// An empty path would be the current folder, which nobody has named.
#[test]
fn an_empty_path_is_refused() {
    let house = House::with(&[("a.md", "# A\n\n```python\n1\n```\n")]);
    house.run(&["run", "a"]).good();
    for words in [
        &["open", ""][..],
        &["import", ""],
        &["backup", ""],
        &["restore", "", "--workspace", "R"],
        &["export", "a", ""],
        &["outputs", "a", "--save", ""],
        &["grant", "a", "--read", ""],
        &["grant", "a", "--write="],
        &["ls", "--workspace", ""],
    ] {
        house.run(words).refused(2, " is empty; name ");
    }
    assert_eq!(house.json(&["volumes"]).as_array().map(Vec::len), Some(1), "a folder was opened");
    assert_eq!(house.json(&["grant", "a"])["read"], json!([]));
    assert!(!house.path("R").exists() && !house.path("tracebook.db").exists());
}

/// Without a current folder, `.` isn't the root of the file system.
#[cfg(unix)]
#[test]
fn no_other_folder_stands_for_one_that_is_gone() {
    let house = House::with(&[("a.md", "# A\n")]);
    let workspace = house.path("W");
    let mut shell = Command::new("sh");
    shell.args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" --workspace \"$1\" open ."]);
    shell.arg(PROGRAM).arg(&workspace);
    house.enclose(&mut shell);
    finish(shell, b"").refused(2, "the current folder can't be read");
    assert_eq!(house.json(&["volumes"]).as_array().map(Vec::len), Some(1), "a folder was opened");
}

#[test]
fn input_that_is_too_long_or_not_text_is_refused_whole() {
    let house = House::with(&[("a.md", "# A\n")]);
    let long = vec![b'x'; (1 << 20) + 1];
    house.fed(&["capture", "-"], &long).refused(2, "more than 1 MB");
    house.fed(&["events", "--publish", "custom.made", "-"], &long).refused(2, "more than 64 KB");
    for words in [&["capture", "-"][..], &["ask", "-"], &["new", "b", "--text", "-"], &["sessions", "--import", "-"]] {
        house.fed(words, b"caf\xe9\n").refused(2, "not UTF-8 text (at byte 3)");
    }
    assert_eq!(house.json(&["ls"]).as_array().map(Vec::len), Some(1), "a part of the input was kept");
}

#[test]
fn an_unknown_action_is_told_those_that_there_are() {
    let house = House::with(&[("a.md", "# A\n")]);
    for (words, about) in [
        (["schedule", "remvoe"], "did you mean remove?"),
        (["tasks", "lst"], "did you mean list?"),
        (["memory", "forgte"], "did you mean forget?"),
        (["traces", "exprot"], "did you mean export?"),
        (["index", "statsu"], "`tracebook index` takes status, rebuild, "),
        (["sync", "dance"], "retry or now, not “dance”"),
    ] {
        house.run(&words).refused(2, about);
    }
}

/// What there is no note for is told with what helps.
#[test]
fn a_name_that_is_no_note_is_told_what_to_do() {
    let house = House::with(&[("a.md", "# A\n"), ("data.csv", "1,2\n")]);
    house.run(&["cat", "notes"]).refused(2, "`tracebook ls --volume notes` lists its notes");
    house.run(&["cat", "data.csv"]).refused(2, "`tracebook attachments get` prints it: data.csv");
    house.run(&["tasks", "--project", "nowhere"]).refused(2, "there is no project “nowhere”; there are: notes");
    house.run(&["tasks", "--project", "NOTES"]).good();
    let empty = House::new();
    empty.run(&["init"]).good();
    empty.run(&["cat", "a"]).refused(2, "`tracebook open FOLDER` makes one");
    empty.run(&["ls", "--volume", "x"]).refused(2, "`tracebook open FOLDER` makes one");
}
