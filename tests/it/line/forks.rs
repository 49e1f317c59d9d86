//! Runs in forks: what they change stays in the copy until it's adopted, in repositories and without one. The model is
//! a scripted server, Git is the real one, and the program is killed in the middle of making, adopting and discarding.

use super::agents::{Said, house, model};
use super::git::{git, know_user};
use crate::program::{House, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Makes the folder `notes` a repository, and commits what is there.
fn repository(house: &House) -> PathBuf {
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "First"]);
    notes
}

/// A model that makes the calls that belong to the goal, each call in a turn of its own, and then ends.
pub(super) fn script(goals: Vec<(&'static str, Vec<(&'static str, Value)>)>) -> String {
    model(move |turn, body| -> Said {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let said: Vec<&str> = messages
            .iter()
            .filter(|message| message["role"] == "user")
            .filter_map(|message| message["content"].as_str())
            .collect();
        let said = said.join("\n");
        // Memory may quote an earlier goal before or after the question itself, which has lines of its own.
        let is_line = |goal: &str| said.lines().any(|line| line == goal);
        let asked = goals.iter().filter(|(goal, _)| said.contains(goal));
        let asked = asked.max_by_key(|(goal, _)| (is_line(goal), said.rfind(goal)));
        let calls = asked.map(|(_, calls)| calls);
        match calls.and_then(|calls| calls.get(turn)) {
            Some(call) => (String::new(), vec![call.clone()]),
            None => ("Done.".to_owned(), Vec::new()),
        }
    })
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

pub(super) fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": path, "old_content": old, "new_content": new}))
}

/// The bytes of all files below a folder, without `.git`.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("listed") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name() != ".git" && !is_temporary(&entry.path()) {
                let path = entry.path().strip_prefix(folder).expect("below").to_string_lossy().into_owned();
                found.insert(path, std::fs::read(entry.path()).expect("read"));
            }
        }
    }
    found
}

/// Returns whether a crash has left this file, which the next check removes.
fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".tracebook-"))
}

/// The status of a repository, without temporary files of a crash.
fn status_lines(folder: &Path) -> Vec<String> {
    let status = git(folder, &["status", "--porcelain"]);
    status.lines().filter(|line| !line.contains(".tracebook-")).map(str::to_owned).collect()
}

fn fork_of(house: &House, name: &str) -> Value {
    let all = house.json(&["forks"]);
    all.as_array().into_iter().flatten().find(|fork| fork["name"] == name).cloned().unwrap_or_default()
}

fn folder_of(house: &House, name: &str) -> PathBuf {
    PathBuf::from(fork_of(house, name)["folder"].as_str().expect("a folder"))
}

#[test]
fn a_run_in_a_worktree_is_shown_adopted_as_one_commit_undone_and_discarded() {
    let ten: String = (1..=10).map(|line| format!("line {line}\n")).collect();
    let house = house(
        &script(vec![(
            "improve",
            vec![
                ("read_file", json!({"path": "new.md"})),
                edit("b.md", "line 2\n", "line two\n"),
                edit("b.md", "line 9\n", "line nine\n"),
                write("made.md", "# Made\n"),
                ("delete_file", json!({"path": "old.md"})),
                ("git_status", json!({})),
            ],
        )]),
        &[
            ("a.md", "one\n"),
            ("b.md", &ten),
            ("gone.md", "gone\n"),
            ("old.md", "old\n"),
            (".gitignore", "*.log\nnode_modules/\n"),
        ],
    );
    let notes = repository(&house);
    // What the user hasn't committed is in the fork, what Git ignores and secrets aren't.
    house.write("notes/a.md", b"one\nuncommitted\n");
    house.write("notes/new.md", b"untracked\n");
    std::fs::remove_file(house.path("notes/gone.md")).expect("removed");
    for left_out in ["debug.log", "node_modules/x/index.js", ".env"] {
        house.write(&format!("notes/{left_out}"), b"SECRET=1\n");
    }
    std::os::unix::fs::symlink("../W/config.yaml", notes.join("out.md")).expect("linked");
    std::os::unix::fs::symlink("a.md", notes.join("in.md")).expect("linked");
    git(&notes, &["add", "in.md"]);
    git(&notes, &["commit", "-qm", "Link"]);
    house.run(&["ls"]).good();
    let before = files(&notes);
    let done = house.run(&["ask", "improve it", "--fork", "try-1", "--approve", "delete_file", "--json"]).good();
    let lines = done.lines();
    assert_eq!((&lines[0]["type"], &lines[0]["branch"]), (&json!("fork"), &json!("tracebook/fork-try-1")), "{lines:?}");
    let left = &lines[0]["left_out"];
    assert_eq!(left["ignored"], json!(["debug.log", "node_modules/"]), "{left}");
    assert_eq!((&left["secret"], &left["links"]), (&json!([".env"]), &json!(["out.md"])), "{left}");
    assert!(done.text().contains("untracked"), "the agent reads what isn't committed: {}", done.text());
    assert_eq!(files(&notes), before, "the user's folder is as it was");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md\n D gone.md\n?? .env\n?? new.md\n?? out.md");

    let fork = folder_of(&house, "try-1");
    assert!(fork.starts_with(house.path("W").canonicalize().expect("W").join("forks")), "{}", fork.display());
    let copied = files(&fork);
    assert_eq!(copied["a.md"], b"one\nuncommitted\n");
    assert_eq!(std::fs::read_link(fork.join("in.md")).expect("a link"), Path::new("a.md"));
    for left_out in ["debug.log", ".env", "gone.md", "out.md", "old.md"] {
        assert!(!copied.contains_key(left_out), "{left_out}");
    }
    assert_eq!(git(&fork, &["branch", "--show-current"]), "tracebook/fork-try-1");
    assert_eq!(git(&fork, &["status", "--porcelain"]), "M b.md\n D old.md\n?? made.md", "only what the run changed");
    let log = "Files as they were when the fork try-1 began\nLink\nFirst";
    assert_eq!(git(&fork, &["log", "--format=%s"]), log);

    let row = fork_of(&house, "try-1");
    assert_eq!((&row["state"], &row["changed"], &row["tokens"]), (&json!("done"), &json!(3), &json!(7 * 18)), "{row}");
    let shown = house.json(&["forks", "show", "try-1"]);
    let file = |path: &str| {
        let all = shown["files"].as_array().expect("files");
        all.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path}: {shown}")).clone()
    };
    let b = file("b.md");
    assert_eq!(b["hunks"].as_array().map(Vec::len), Some(2), "{b}");
    assert_eq!((&b["hunks"][1]["removed"], &b["hunks"][1]["added"]), (&json!("line 9\n"), &json!("line nine\n")));
    let steps = |hunk: usize| b["hunks"][hunk]["steps"].as_array().cloned().unwrap_or_default();
    assert_eq!((steps(0).len(), steps(1).len()), (1, 1), "each hunk has the step that made it: {b}");
    assert_ne!(steps(0)[0]["step"], steps(1)[0]["step"]);
    assert_eq!((&steps(0)[0]["tool"], &steps(0)[0]["run"]), (&json!("edit_file"), &row["runs"][0]["id"]));
    assert_eq!((&file("made.md")["change"], &file("old.md")["change"]), (&json!("added"), &json!("deleted")));
    assert!(house.run(&["forks", "show", "try-1"]).good().text().contains("+line nine"));
    // Forks aren't listed among the volumes, and no search finds them.
    assert_eq!(house.json(&["volumes"]).as_array().map(Vec::len), Some(1));
    assert!(!house.run(&["search", "in:prose nine"]).text().contains("line nine"));

    // What changes after it was shown isn't adopted.
    let seen = shown["version"].as_str().expect("a version").to_owned();
    assert!(house.run(&["forks", "show", "try-1"]).good().text().contains(&format!("--seen {seen}")));
    std::fs::write(fork.join("b.md"), "slipped in\n").expect("changed");
    house.run(&["forks", "adopt", "try-1", "--seen", &seen]).refused(1, "tracebook forks show try-1");
    assert_eq!(files(&notes), before, "nothing is adopted");
    let b_text = ten.replace("line 2\n", "line two\n").replace("line 9\n", "line nine\n");
    std::fs::write(fork.join("b.md"), &b_text).expect("changed back");

    // Adopted in one commit, which has only these files; the user's own changes stay uncommitted.
    let adopted = house.json(&["forks", "adopt", "try-1", "--seen", &seen]);
    assert_eq!(adopted["files"], json!(["b.md", "made.md", "old.md"]), "{adopted}");
    let log = git(&notes, &["log", "--format=%H %s", "-2"]);
    assert!(log.starts_with(adopted["commit"].as_str().expect("a commit")), "{log}");
    assert!(log.contains("Adopt fork try-1: improve it"), "{log}");
    let message = git(&notes, &["log", "-1", "--format=%B"]);
    assert!(message.contains(row["runs"][0]["id"].as_str().expect("a run")), "{message}");
    assert_eq!(git(&notes, &["show", "--name-status", "--format=", "HEAD"]), "M\tb.md\nA\tmade.md\nD\told.md");
    let after = files(&notes);
    assert_eq!(after["b.md"], b_text.as_bytes());
    assert!(!after.contains_key("old.md"));
    assert_eq!(house.cat("made.md"), b"# Made\n", "the session has it, too");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md\n D gone.md\n?? .env\n?? new.md\n?? out.md");
    assert_eq!(fork_of(&house, "try-1")["state"], "adopted");
    assert!(house.run(&["forks", "adopt", "try-1"]).good().text().contains("has all of it already"));

    // One step takes it back, with a commit of its own.
    house.run(&["forks", "undo", "try-1"]).good();
    assert_eq!(files(&notes), before);
    assert_eq!(git(&notes, &["log", "-1", "--format=%s"]), "Undo the adoption of fork try-1");
    house.run(&["forks", "undo", "try-1"]).refused(2, "nothing of the fork try-1 is adopted");

    house.run(&["forks", "discard", "try-1"]).good();
    assert!(!fork.exists() && !house.path("W/forks/try-1").exists());
    assert_eq!(git(&notes, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&notes, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(house.json(&["forks"]), json!([]));
    let runs = house.run(&["runs", "--json"]).good().lines();
    assert_eq!((runs.len(), &runs[0]["standing"]), (1, &json!("done")), "the record of the run stays");
    assert!(house.run(&["steps", "last"]).good().text().contains("write_file: made.md"));
    house.run(&["fsck"]).code(0);
}

#[test]
fn several_forks_of_a_plain_folder_are_compared_and_adopted_one_after_the_other() {
    let lines: String = (1..=12).map(|line| format!("line {line}\n")).collect();
    let first = vec![edit("a.md", "line 2\n", "first\n"), edit("a.md", "line 11\n", "first 11\n")];
    let second =
        vec![edit("a.md", "line 5\n", "second\n"), edit("a.md", "line 11\n", "second 11\n"), write("s.md", "s\n")];
    let house = house(
        &script(vec![("first goal", first), ("second goal", second)]),
        &[("a.md", &lines), ("p.bin", "\0\u{1}picture"), ("node_modules/x.js", "x")],
    );
    let notes = house.path("notes");
    // Both at once, each in its fork: one process owns the workspace, the other asks it.
    let start = |words: &[&str]| house.command(words).spawn().expect("started");
    let runs = [start(&["ask", "first goal", "--fork", "one"]), start(&["ask", "second goal", "--fork"])];
    let ended = runs.map(|child| child.wait_with_output().expect("ended"));
    assert!(ended.iter().all(|done| done.status.success()), "{ended:?}");
    let done = String::from_utf8(ended[1].stdout.clone()).expect("text");
    assert!(done.starts_with("Fork second-goal of notes: 2 files"), "{done}");
    assert!(done.contains("dependencies and caches: node_modules/"), "{done}");
    house.run(&["ask", "again", "--fork", "ONE"]).refused(2, "there is a fork ONE already");
    assert_eq!(files(&notes)["a.md"], lines.as_bytes());
    assert_eq!(house.json(&["forks", "notes"]).as_array().map(Vec::len), Some(2));
    house.run(&["forks", "nowhere"]).refused(2, "there is no volume");

    let compared = house.json(&["forks", "compare", "one", "second-goal"]);
    let paths: Vec<&str> =
        compared["files"].as_array().into_iter().flatten().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(paths, ["a.md", "s.md"], "{compared}");
    assert_eq!((&compared["files"][0]["same"], &compared["files"][1]["a"]), (&json!(false), &Value::Null));
    assert!(compared["files"][0]["diff"].as_str().is_some_and(|diff| diff.contains("-first\n")), "{compared}");
    let text = house.run(&["forks", "compare", "one", "second-goal"]).good().text();
    assert!(text.lines().any(|line| line.starts_with("+first 11 ") && line.ends_with("| +second 11")), "{text}");

    // What the user changed meanwhile stays.
    house.run(&["forks", "adopt", "one", "--only", "a.md:9"]).refused(2, "no hunk 9");
    house.run(&["forks", "adopt", "one", "--only", "b.md"]).refused(2, "hasn't changed b.md");
    house.edit("a.md", 0, 0, "mine\n");
    let adopted = house.json(&["forks", "adopt", "one", "--only", "a.md:1"]);
    assert_eq!((&adopted["commit"], &adopted["not_committed"]), (&Value::Null, &Value::Null));
    let expected = format!("mine\n{}", lines.replace("line 2\n", "first\n"));
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), expected);
    assert_eq!(house.cat("a.md"), expected.as_bytes());
    assert_eq!(fork_of(&house, "one")["state"], "adopted in part");
    house.run(&["forks", "adopt", "one"]).good();
    let expected = expected.replace("line 11\n", "first 11\n");
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), expected);

    // The second fork has changed one line that the first has, too: nothing of it is adopted.
    let before = files(&notes);
    let refused = house.run(&["forks", "adopt", "second-goal"]).code(1);
    assert!(refused.err.contains("nothing was adopted: a.md (1 place)"), "{}", refused.err);
    assert!(refused.text().contains("project | first 11") && refused.text().contains("fork | second 11"));
    let conflicts = house.run(&["forks", "adopt", "second-goal", "--json"]).code(1).json();
    assert_eq!(conflicts["conflicts"][0]["regions"][0]["ours"], "first 11\n");
    assert_eq!(files(&notes), before);
    house.run(&["forks", "adopt", "second-goal", "--ours", "--theirs"]).refused(2, "--ours");
    house.run(&["forks", "adopt", "second-goal", "--theirs"]).good();
    let expected = expected.replace("line 5\n", "second\n").replace("first 11", "second 11");
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), expected);
    assert_eq!(house.read("notes/s.md"), b"s\n");
    // Undone in the other order than adopted: the later text stays, the rest is merged.
    house.write("notes/s.md", b"s\nand mine\n");
    house.run(&["forks", "undo", "second-goal"]).code(1);
    house.run(&["forks", "undo", "second-goal", "--ours"]).good();
    assert_eq!(
        String::from_utf8(house.read("notes/a.md")).expect("text"),
        expected.replace("second 11", "first 11").replace("second\n", "line 5\n")
    );
    assert_eq!(house.read("notes/s.md"), b"s\nand mine\n", "what the user wrote stays");
    for name in ["one", "second-goal"] {
        house.run(&["forks", "discard", name]).good();
    }
    house.run(&["forks", "show", "one"]).refused(2, "there is no fork");
}

#[test]
fn a_fork_has_its_own_cells_searches_and_rules_and_never_more() {
    let goal = vec![
        ("run_cell", json!({"path": "calc.md", "cell": 1})),
        ("search", json!({"query": "zebra"})),
        write("zebra.md", "A zebra only in the fork.\n"),
        ("write_file", json!({"path": "x.md", "content": "no\n", "volume": "other"})),
        ("read_file", json!({"path": "notes/zoo.md"})),
        ("shell", json!({"command": "ls; echo more >> zoo.md; echo escaped > ../../../../notes/escaped.txt"})),
        ("search", json!({"query": "zebra"})),
    ];
    let house = house(
        &script(vec![("look around", goal)]),
        &[
            ("zoo.md", "A zebra in the zoo.\n"),
            ("calc.md", "```python\nopen('made.txt', 'w').write('x')\nprint(6 * 7)\n```\n"),
        ],
    );
    house.write("other/o.md", b"Another zebra.\n");
    house.run(&["open", "other"]).good();
    let before = files(&house.path("notes"));
    let words = [
        "ask",
        "look around",
        "--project",
        "notes",
        "--fork",
        "f",
        "--approve",
        "run_cell",
        "--approve",
        "shell: *",
        "--json",
    ];
    let done = house.run(&words).good();
    let results: Vec<String> =
        done.lines().iter().filter(|line| line["type"] == "tool_result").map(ToString::to_string).collect();
    assert_eq!(results.len(), 7, "{results:?}");
    assert!(results[0].contains("42"), "{}", results[0]);
    assert!(results[1].contains("notes (fork f)/zoo.md"), "{}", results[1]);
    assert!(!results[1].contains("notes/zoo.md"), "{}", results[1]);
    assert!(results[1].contains("Another zebra"), "other volumes can be read: {}", results[1]);
    assert!(results[3].contains("changes only its fork"), "{}", results[3]);
    assert!(results[4].contains("A zebra in the zoo"), "the project's name means the fork: {}", results[4]);
    assert_eq!(files(&house.path("notes")), before, "the user's folder is as it was");
    assert_eq!(files(&house.path("other")).len(), 1);
    let fork = folder_of(&house, "f");
    assert_eq!(std::fs::read(fork.join("zoo.md")).expect("read"), b"A zebra in the zoo.\nmore\n");
    let shown = house.json(&["forks", "show", "f"]);
    let zoo = shown["files"].as_array().into_iter().flatten().find(|file| file["path"] == "zoo.md").expect("zoo.md");
    assert_eq!(zoo["hunks"][0]["steps"][0]["tool"], "shell", "{zoo}");
    // The run's cost counts for the project.
    let budget = house.run(&["budget", "--by", "project", "--json"]).good().text();
    assert!(budget.contains("\"notes\"") && !budget.contains("fork f"), "{budget}");
}

#[test]
fn names_sizes_repositories_and_volumes_that_do_not_fit_are_refused() {
    let house = house(&script(Vec::new()), &[("a.md", "one\n")]);
    for name in ["../evil", "..", "a/b", ".hidden", "-x", "a..b", "x.lock", "with space"] {
        let done = house.run(&["ask", "go", &format!("--fork={name}")]).refused(2, "a fork's name has");
        assert!(done.out.is_empty());
    }
    assert!(!house.path("evil").exists() && !house.path("W/evil").exists());
    for words in [["show", "../W"], ["adopt", ".."], ["discard", "../../notes"]] {
        house.run(&["forks", words[0], words[1]]).refused(2, "a fork's name has");
    }
    assert!(house.path("notes/a.md").exists());
    house.run(&["forks", "show"]).refused(2, "the fork is missing");
    house.run(&["ask", "go", "--fork-limit", "5"]).refused(2, "needs --fork");
    house.write("notes/big.bin", &vec![7; 1_500_000]);
    house.run(&["ask", "go", "--fork", "--fork-limit", "1"]).refused(2, "--fork-limit 2");
    assert_eq!(house.json(&["forks"]), json!([]));

    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    house.run(&["ask", "go", "--fork"]).refused(2, "has no commit yet");
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "First"]);
    git(&notes, &["branch", "tracebook/fork-x"]);
    house.run(&["ask", "go", "--fork", "x"]).refused(2, "has a branch tracebook/fork-x already");
    git(&notes, &["switch", "-qc", "side"]);
    house.write("notes/a.md", b"side\n");
    git(&notes, &["commit", "-qam", "Side"]);
    git(&notes, &["switch", "-q", "main"]);
    house.write("notes/a.md", b"main\n");
    git(&notes, &["commit", "-qam", "Main"]);
    let merged = std::process::Command::new("git").args(["merge", "side"]).current_dir(&notes).output().expect("git");
    assert!(!merged.status.success());
    house.run(&["ask", "go", "--fork"]).refused(2, "a merge is under way");
    git(&notes, &["merge", "--abort"]);
    assert_eq!(house.json(&["forks"]), json!([]), "nothing is left of what was refused");
    assert_eq!(git(&notes, &["worktree", "list"]).lines().count(), 1);

    // Without a branch a fork begins at the commit, and its adoption isn't committed. A nested repository is left out.
    git(&notes, &["checkout", "-q", "--detach"]);
    git(&notes, &["init", "-q", "nested"]);
    house.write("notes/nested/n.md", b"nested\n");
    let done = house.run(&["ask", "go", "--fork", "d", "--json"]).good().lines();
    assert_eq!(done[0]["left_out"]["nested"], json!(["nested"]));
    std::fs::write(folder_of(&house, "d").join("a.md"), "by hand\n").expect("written");
    let adopted = house.json(&["forks", "adopt", "d"]);
    assert!(adopted["not_committed"].as_str().is_some_and(|why| why.contains("no branch is checked out")), "{adopted}");
    assert_eq!(house.read("notes/a.md"), b"by hand\n");
    // A read-only volume can be forked, but nothing is adopted.
    std::fs::write(folder_of(&house, "d").join("a.md"), "again\n").expect("written");
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    let locked = format!("{config}volumes:\n  notes: {{readonly: true}}\n");
    house.write("W/config.yaml", locked.as_bytes());
    house.run(&["forks", "adopt", "d"]).refused(2, "read-only");
    assert_eq!(house.read("notes/a.md"), b"by hand\n");
    house.run(&["forks", "discard", "d"]).good();
}

#[test]
fn uncommitted_changes_in_touched_files_stay_uncommitted() {
    let goal = vec![edit("a.md", "five\n", "5\n"), write("b.md", "b\n")];
    let house = house(&script(vec![("digits", goal)]), &[("a.md", "one\ntwo\nthree\nfour\nfive\n")]);
    let notes = repository(&house);
    house.write("notes/a.md", b"1\ntwo\nthree\nfour\nfive\n");
    house.run(&["ask", "digits", "--fork", "d"]).good();
    let adopted = house.json(&["forks", "adopt", "d"]);
    assert_eq!(adopted["not_committed"], "a.md has uncommitted changes of yours", "{adopted}");
    assert_eq!(house.read("notes/a.md"), b"1\ntwo\nthree\nfour\n5\n");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "First");
    house.run(&["forks", "undo", "d"]).good();
    assert_eq!(house.read("notes/a.md"), b"1\ntwo\nthree\nfour\nfive\n");
    assert!(!house.path("notes/b.md").exists());
    house.run(&["forks", "discard", "d"]).good();
}

#[test]
fn an_agents_commits_in_a_fork_have_only_its_own_changes() {
    let ten: String = (1..=10).map(|line| format!("line {line}\n")).collect();
    let goal = vec![
        ("git_status", json!({})),
        edit("a.md", "line 9\n", "line nine\n"),
        write("made.md", "made\n"),
        ("git_commit", json!({"message": "One file", "files": ["a.md"]})),
        ("git_commit", json!({"message": "The rest"})),
        ("git_push", json!({})),
    ];
    let merge = vec![("git_merge", json!({"branch": "tracebook/fork-f"}))];
    let goals = vec![("commit it", goal), ("another", Vec::new()), ("take over the branch", merge)];
    let house = house(&script(goals), &[("a.md", &ten), ("b.md", "b\n"), ("gone.md", "gone\n")]);
    let notes = repository(&house);
    git(&house.path(""), &["init", "-q", "--bare", "remote.git"]);
    git(&notes, &["remote", "add", "origin", "../remote.git"]);
    // The user's own changes: of the same file, of others, staged and not.
    house.write("notes/a.md", ten.replace("line 2\n", "line two\n").as_bytes());
    house.write("notes/b.md", b"b\nstaged\n");
    git(&notes, &["add", "b.md"]);
    house.write("notes/new.md", b"new\n");
    std::fs::remove_file(house.path("notes/gone.md")).expect("removed");
    let before = (files(&notes), git(&notes, &["status", "--porcelain"]));
    let done = house.run(&["ask", "commit it", "--fork", "f", "--approve", "git_push", "--json"]).good();
    let results: Vec<String> =
        done.lines().iter().filter(|line| line["type"] == "tool_result").map(ToString::to_string).collect();
    assert!(results[0].contains("nothing has changed since the last commit"), "{}", results[0]);
    assert!(results[5].contains("wasn't committed when the fork f began"), "{}", results[5]);
    assert_eq!(git(&house.path("remote.git"), &["for-each-ref"]), "", "nothing is pushed");

    let fork = folder_of(&house, "f");
    let log = "The rest\nOne file\nFiles as they were when the fork f began\nFirst";
    assert_eq!(git(&fork, &["log", "--format=%s"]), log);
    assert_eq!(git(&fork, &["show", "--format=", "--name-status", "HEAD"]), "A\tmade.md");
    let one = git(&fork, &["show", "--format=", "-U0", "HEAD~1"]);
    assert!(one.contains("+line nine") && !one.contains("two"), "{one}");
    let kept = git(&fork, &["show", "--format=", "--name-status", "HEAD~2"]);
    assert_eq!(kept, "M\ta.md\nM\tb.md\nD\tgone.md\nA\tnew.md");
    assert_eq!(git(&fork, &["status", "--porcelain"]), "");

    // The user's folder has nothing of it, and neither has the commit of an adoption.
    assert_eq!((files(&notes), git(&notes, &["status", "--porcelain"])), before);
    let adopted = house.json(&["forks", "adopt", "f", "--only", "made.md"]);
    assert_eq!((&adopted["files"], adopted["commit"].is_string()), (&json!(["made.md"]), true), "{adopted}");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Adopt fork f: commit it\nFirst");
    assert_eq!(git(&notes, &["show", "--format=", "--name-only", "HEAD"]), "made.md");
    assert_eq!(git(&notes, &["status", "--porcelain"]), before.1);
    house.run(&["forks", "adopt", "f"]).good();
    let both = ten.replace("line 2\n", "line two\n").replace("line 9\n", "line nine\n");
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), both);
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Adopt fork f: commit it\nFirst", "a.md has changes of the user");
    // Nor does an agent merge the branch as it is.
    let done = house.run(&["ask", "take over the branch", "--approve", "git_merge", "--json"]).good().text();
    assert!(done.contains("so it isn't merged; adopt the fork's changes instead"), "{done}");
    // Without commits of an agent there's nothing to bring back.
    house.run(&["ask", "another", "--fork", "idle"]).good();
    let discarded = house.run(&["forks", "discard", "idle", "--json"]).good().json();
    assert_eq!(discarded["last_commit"], Value::Null, "{discarded}");
    let last = git(&fork, &["rev-parse", "HEAD"]);
    let discarded = house.run(&["forks", "discard", "f", "--json"]).good().json();
    assert_eq!(discarded["last_commit"], json!(last), "{discarded}");
}

#[test]
fn a_folder_of_a_repository_and_submodules() {
    let house =
        house(&script(vec![("go", vec![("git_status", json!({})), write("x.md", "x\n")])]), &[("a.md", "one\n")]);
    let notes = house.path("notes");
    git(&house.path(""), &["init", "-q", "-b", "main", "."]);
    know_user(&house.path(""));
    git(&house.path(""), &["init", "-q", "-b", "main", "library"]);
    know_user(&house.path("library"));
    house.write("library/l.md", b"l\n");
    git(&house.path("library"), &["add", "-A"]);
    git(&house.path("library"), &["commit", "-qm", "Library"]);
    house.write("beside.txt", b"beside\n");
    git(&house.path(""), &["add", "notes", "beside.txt"]);
    let library = house.path("library").display().to_string();
    git(&house.path(""), &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &library, "notes/sub"]);
    git(&house.path(""), &["commit", "-qm", "First"]);
    let done = house.run(&["ask", "go", "--fork", "part", "--json"]).good();
    let lines = done.lines();
    assert_eq!(lines[0]["left_out"]["nested"], json!(["sub"]), "{}", lines[0]);
    let status = lines.iter().find(|line| line["type"] == "tool_result").map(ToString::to_string).unwrap_or_default();
    assert!(!status.contains("beside") && !status.contains("sub"), "the rest counts as unchanged: {status}");
    let fork = folder_of(&house, "part");
    assert!(fork.ends_with("part/notes") && fork.join("a.md").exists() && !fork.join("../beside.txt").exists());
    assert_eq!(git(&fork, &["status", "--porcelain"]), "?? notes/x.md");
    let adopted = house.json(&["forks", "adopt", "part"]);
    assert_eq!((&adopted["files"], adopted["commit"].is_string()), (&json!(["x.md"]), true), "{adopted}");
    assert!(notes.join("sub/l.md").exists());
    assert_eq!(git(&house.path(""), &["show", "--name-only", "--format=", "HEAD"]), "notes/x.md");
    house.run(&["forks", "discard", "part"]).good();
}

#[test]
fn branches_and_worktrees_that_were_removed_by_hand() {
    let house = house(&script(vec![("go", vec![write("x.md", "x\n")])]), &[("a.md", "one\n")]);
    let notes = repository(&house);
    for name in ["branchless", "folderless", "pruned"] {
        house.run(&["ask", "go", "--fork", name]).good();
    }
    // Its branch was deleted: what it changed can be adopted still.
    let fork = folder_of(&house, "branchless");
    git(&fork, &["checkout", "-q", "--detach"]);
    git(&notes, &["branch", "-D", "tracebook/fork-branchless"]);
    assert_eq!(house.json(&["forks", "adopt", "branchless"])["files"], json!(["x.md"]));
    house.run(&["forks", "discard", "branchless"]).good();
    // Its folder was deleted: it's listed, and can be discarded.
    let fork = folder_of(&house, "folderless");
    std::fs::remove_dir_all(&fork).expect("removed");
    assert_eq!(fork_of(&house, "folderless")["state"], "missing");
    house.run(&["forks", "adopt", "folderless"]).refused(2, "folder of the fork folderless is gone");
    house.run(&["forks", "show", "folderless"]).refused(2, "is gone");
    house.run(&["forks", "discard", "folderless"]).good();
    // Git itself removed the worktree.
    let fork = folder_of(&house, "pruned");
    git(&notes, &["worktree", "remove", "--force", &fork.display().to_string()]);
    house.run(&["forks", "discard", "pruned"]).good();
    assert_eq!(git(&notes, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&notes, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(house.json(&["forks"]), json!([]));
}

#[test]
fn text_typed_during_an_adoption_stays() {
    let lines: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    let house = house(&script(vec![("go", vec![edit("a.md", "line 18\n", "eighteen\n")])]), &[("a.md", &lines)]);
    house.run(&["ask", "go", "--fork", "f"]).good();
    let mut owner = house.owner("a.md");
    owner.types(0, 0, "typed before\n");
    house.run(&["forks", "adopt", "f"]).good();
    owner.types(0, 0, "typed after\n");
    owner.end();
    let expected = format!("typed after\ntyped before\n{}", lines.replace("line 18\n", "eighteen\n"));
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), expected);
    house.run(&["forks", "undo", "f"]).good();
    let expected = expected.replace("eighteen\n", "line 18\n");
    assert_eq!(String::from_utf8(house.read("notes/a.md")).expect("text"), expected);
}

#[test]
fn a_crash_while_a_fork_is_made_leaves_nothing_half() {
    let house = house(&script(Vec::new()), &[("a.md", "one\n")]);
    for number in 0..3_000 {
        house.write(&format!("notes/files/{number}.txt"), format!("{number}\n").repeat(50).as_bytes());
    }
    let notes = repository(&house);
    let mut child = house.command(&["ask", "go", "--fork", "half"]).spawn().expect("started");
    until("it copies", || house.path("W/forks/half/half/files").exists());
    child.kill().expect("killed");
    child.wait().expect("gone");
    let next = house.run(&["runs"]).code(0);
    assert!(next.err.contains("the fork half was not finished"), "{}", next.err);
    assert_eq!(fork_of(&house, "half")["state"], "unfinished");
    house.run(&["forks", "adopt", "half"]).refused(2, "isn't complete");
    house.run(&["ask", "go", "--fork", "half"]).code(2);
    house.run(&["forks", "discard", "half"]).good();
    assert_eq!(git(&notes, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&notes, &["worktree", "list"]).lines().count(), 1);
    house.run(&["ls"]).good();
}

#[test]
fn a_crash_during_an_adoption_is_reported_and_finished_or_taken_back() {
    let house = house(&script(Vec::new()), &[("a.md", "one\n")]);
    for number in 0..300 {
        house.write(&format!("notes/f/{number:03}.txt"), b"before\n");
    }
    let notes = repository(&house);
    for (name, takes_back) in [("first", true), ("second", false)] {
        house.run(&["ask", "go", "--fork", name]).code(0);
        let fork = folder_of(&house, name);
        for number in 0..300 {
            std::fs::write(fork.join(format!("f/{number:03}.txt")), format!("{name}\n")).expect("written");
        }
        let before = files(&notes);
        let mut child = house.command(&["forks", "adopt", name]).spawn().expect("started");
        until("it writes", || house.read("notes/f/020.txt") == format!("{name}\n").as_bytes());
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert_eq!(house.read("notes/f/299.txt"), before["f/299.txt"], "killed in the middle");
        let next = house.run(&["runs"]).code(0);
        assert!(next.err.contains(&format!("`tracebook forks adopt {name}` finishes it")), "{}", next.err);
        assert_eq!(fork_of(&house, name)["state"], "interrupted");
        house.run(&["forks", "discard", name]).code(1);
        if takes_back {
            house.run(&["forks", "undo", name]).good();
            assert_eq!(files(&notes), before, "wholly taken back");
            assert_eq!(status_lines(&notes), [""; 0]);
        } else {
            house.run(&["forks", "adopt", name]).good();
            assert!(files(&notes).iter().all(|(path, bytes)| !path.starts_with("f/") || bytes == b"second\n"));
            assert_eq!(status_lines(&notes), [""; 0], "and committed");
            assert_eq!(git(&notes, &["log", "-1", "--format=%s"]), "Adopt fork second: go");
        }
        assert_eq!(house.run(&["runs"]).code(0).err, "");
        house.run(&["forks", "discard", name]).good();
    }
}

#[test]
fn an_adoption_writes_through_no_link_and_stays_whole() {
    let house = house(&script(Vec::new()), &[("a.md", "one\n"), ("d/b.md", "two\n")]);
    house.run(&["ask", "go", "--fork", "f"]).good();
    let fork = folder_of(&house, "f");
    std::fs::write(fork.join("a.md"), "1\n").expect("written");
    std::fs::write(fork.join("d/b.md"), "2\n").expect("written");
    // A link that the project has in the place of a file is no file to write.
    std::fs::remove_file(house.path("notes/d/b.md")).expect("removed");
    std::os::unix::fs::symlink("../../W/config.yaml", house.path("notes/d/b.md")).expect("linked");
    let refused = house.run(&["forks", "adopt", "f"]).code(1);
    assert!(refused.err.contains("d/b.md (it is a link"), "{}", refused.err);
    assert_eq!(house.read("notes/a.md"), b"one\n", "nothing is half adopted");
    std::fs::remove_file(house.path("notes/d/b.md")).expect("removed");
    house.write("notes/d/b.md", b"two\n");
    house.run(&["forks", "adopt", "f"]).good();
    assert_eq!(house.read("notes/d/b.md"), b"2\n");
}
