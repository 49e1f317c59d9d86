//! What a person reads: errors that say what to do, without names and numbers of the inside, and lists that say why
//! they are empty.

use crate::program::House;
#[cfg(target_os = "linux")]
use crate::program::{PROGRAM, finish};
use serde_json::json;
#[cfg(target_os = "linux")]
use std::process::Command;

/// Runs a command at a terminal by Linux's `script`, and returns what it showed.
#[cfg(target_os = "linux")]
fn at_terminal(house: &House, words: &str) -> String {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &format!("{PROGRAM} --workspace W {words}"), "/dev/null"]);
    house.enclose(&mut command);
    let done = finish(command, b"");
    String::from_utf8_lossy(&done.code(0).out).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_is_told_why_a_list_is_empty() {
    let house = House::new();
    house.run(&["init"]).good();
    for (words, about) in [
        ("ls", "`tracebook open FOLDER` opens a folder of notes"),
        ("todos", "A task is a line such as `- [ ] Order seeds`"),
        ("trash", "The trash is empty."),
        ("runs", "`tracebook ask TEXT` starts one"),
        ("sessions", "`tracebook ask TEXT` begins one"),
        ("approvals", "Nothing waits for your approval."),
        ("schedule", "No schedules."),
        ("attachments", "No attachments."),
        ("components", "No components."),
        ("links --broken", "Every link leads to a note or file."),
        ("ls --tags", "No tags."),
        ("tasks", "`tracebook tasks plan GOAL` makes one"),
        ("memory", "Nothing is remembered yet."),
        ("memory --outcome failure", "No matching memories."),
        ("traces", "A successful run becomes a trace."),
        ("approvals --rules", "No rules."),
        ("worker list", "No runs in the queues."),
        ("packages", "No packages are installed."),
    ] {
        let shown = at_terminal(&house, words);
        assert!(shown.contains(about), "{words}: {shown}");
        let piped: Vec<&str> = words.split(' ').collect();
        assert_eq!(house.run(&piped).good().text(), "", "{words}: programs get the empty list");
    }
}

#[test]
fn errors_name_nothing_of_the_inside() {
    let house = House::with(&[("a.md", "# A\n\n```python\n1\n```\n")]);
    let died = house.run(&["run", "a", "--kernel", "env"]).code(1);
    let shown = died.text() + &died.err;
    assert!(shown.contains("the note has no environment yet") && !shown.contains("KernelDied"), "{shown}");
    for (words, code, about) in [
        (&["schedule", "add", "99 7 * * *", "x"][..], 2, "is no cron expression"),
        (&["schedule", "add", "", "x"], 2, "it is empty"),
        (&["kernels", "install", "science", "--from", "nosuch.whl"], 1, "No such file or directory"),
        (&["index", "use", "http://127.0.0.1:1/v1#m"], 1, "(Connection refused; is it running?)"),
        (&["pair", "ws://127.0.0.1:1", "--code", "1234-5678"], 1, "(Connection refused); check its address"),
        (&["serve", "--tls-cert", "nosuch", "--tls-key", "nosuch"], 2, "can't use the certificate nosuch"),
    ] {
        let said = house.run(words).code(code).err;
        assert!(said.contains(about), "{words:?}: {said}");
        for inside in ["os error", "IO error", "io: ", "Component error", "CronPattern"] {
            assert!(!said.contains(inside), "{words:?}: {said}");
        }
    }
}

#[test]
fn an_error_says_what_the_command_takes() {
    let house = House::with(&[("a.md", "# A\n\n- [ ] Order seeds\n")]);
    for (words, about) in [
        (&["todos", "--check", "a", "--words", "Order"][..], "a has no task “Order”; give its whole text"),
        (&["search", "x", "--limit", "0"], "--limit wants a whole number from 1"),
        (&["history", "a", "--at", "9"], "the note hasn't been changed here yet"),
        (&["devices", "name", "this", ""], "which name?"),
        (&["providers", "add"], "tracebook providers add NAME, with one of "),
        (&["memory", "add", "a b c", "--tier", "x"], "not “x”"),
        (&["mv", "a", ""], "PATH is empty"),
        (&["base", "a.md"], "there is no collection “a.md”; its file ends in .base"),
    ] {
        house.run(words).refused(2, about);
    }
    assert_eq!(house.cat("a"), b"# A\n\n- [ ] Order seeds\n");
    house.run(&["todos", "--check", "a", "--words", "Order seeds"]).good();
}

/// A workspace among notes would put its database there, and the folder could no longer be opened.
#[test]
fn a_folder_of_notes_does_not_become_a_workspace() {
    let house = House::new();
    house.write("notes/a.md", b"# A\n");
    for words in [&["init", "--workspace", "notes"][..], &["open", "notes", "--workspace", "notes"]] {
        house.run(words).refused(2, "`tracebook open` opens it as a volume");
    }
    assert_eq!(crate::program::bytes(&house.path("notes")).len(), 1);
    house.run(&["ls", "--workspace", "notes/a.md"]).refused(2, "a workspace is a folder, and this is a file");
    house.run(&["open", "notes"]).good();
}

#[test]
fn the_state_of_the_index_names_folders_that_are_left_out() {
    let house = House::with(&[("a.md", "# A\n"), ("Archive/b.md", "# B\n")]);
    house.run(&["index", "exclude", "Archive"]).good();
    assert_eq!(house.json(&["index", "status"])["excluded"], json!(["Archive"]));
    assert!(house.run(&["index", "status"]).good().text().contains("left out: Archive\n"));
    house.run(&["index", "include", "Archive"]).good();
    assert_eq!(house.json(&["index", "status"])["excluded"], json!([]));
}

/// A command doesn't wait for ever for a process that has the workspace and was stopped.
#[test]
fn an_owner_that_was_stopped_is_said() {
    let house = House::with(&[("a.md", "# A\n")]);
    let owner = house.owner("a");
    owner.signal("-STOP");
    let done = house.run(&["ls"]);
    owner.signal("-CONT");
    done.refused(3, "does not answer (no answer in 20 seconds); close it and try again");
    assert!(house.run(&["ls"]).good().text().contains("a.md"));
    owner.end();
}

/// The help of a subcommand says what it does in full, without an empty line between all options.
#[test]
fn the_help_of_a_subcommand_is_short_enough_to_be_read() {
    let house = House::new();
    for (name, about) in [
        ("git", "OWNER/NAME is a repository of GitHub"),
        ("ask", "It asks before it does anything risky."),
        ("hub", "`share` sets who may read or write a volume."),
        ("tasks", "Independent tasks run in parallel."),
        ("kernels", "or a Jupyter kernel with all your rights."),
    ] {
        let text = house.run(&["help", name]).good().text();
        let (one_line, options) = text.split_once("\nOptions:\n").unwrap_or_else(|| panic!("{text}"));
        let one_line = one_line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(about), "{name}: {text}");
        let (options, _) = options.split_once("\n\nExamples:\n").unwrap_or_else(|| panic!("{text}"));
        assert!(!options.contains("\n\n"), "{name}: {text}");
    }
    let completions = house.run(&["completions", "zsh"]).good().text();
    assert!(completions.contains("See, commit, push and pull changes"), "a line for each subcommand");
    assert!(!completions.contains("A merge or pull with conflicts is undone"));
}

/// `import` makes a volume *Notes*, and many have a folder *notes*: each of both has to be reachable by its name.
#[cfg(target_os = "linux")]
#[test]
fn volumes_whose_names_differ_in_case_are_told_apart() {
    let house = House::with(&[("a.md", "lower\n")]);
    house.write("Notes/a.md", b"upper\n");
    house.run(&["open", "Notes"]).good();
    for (name, text) in
        [("notes:a", "lower\n"), ("notes:A.md", "lower\n"), ("Notes:a", "upper\n"), ("Notes:A", "upper\n")]
    {
        assert_eq!(house.run(&["cat", name]).good().text(), text, "{name}");
    }
    house.run(&["cat", "NOTES:a"]).refused(2, "fits several notes, name one: Notes:a.md, notes:a.md");
}
