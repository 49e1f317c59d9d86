//! Git on the command line and as tools of agents, with the real `git` and bare remotes on the local disk.

use super::agents::{Said, house, model};
use crate::program::{Done, House, finish};
use host::source_control::{GitRequest, perform};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    let done = std::process::Command::new("git").args(words).current_dir(folder).output().expect("git is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Makes the folder `notes` a repository with a bare remote, and commits and pushes what is there.
pub(super) fn with_remote(house: &House) {
    git(&house.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    git(&notes, &["remote", "add", "origin", "../remote.git"]);
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "First"]);
}

pub(crate) fn know_user(folder: &Path) {
    git(folder, &["config", "user.name", "Ada"]);
    git(folder, &["config", "user.email", "ada@example.org"]);
}

/// Runs `tracebook git …` in a folder.
pub(super) fn run_in(house: &House, folder: &str, words: &[&str]) -> Done {
    let mut all = vec!["git"];
    all.extend(words);
    let mut command = house.command(&all);
    command.current_dir(house.path(folder));
    finish(command, b"")
}

/// Runs `tracebook git …` in the folder `notes`, which is a volume of the workspace.
pub(crate) fn run_in_volume(house: &House, words: &[&str]) -> Done {
    let workspace = house.path("W").display().to_string();
    let mut command = house.command(&[&["--workspace", &workspace, "git"], words].concat());
    command.current_dir(house.path("notes"));
    finish(command, b"")
}

/// A model that makes these calls, one after another, and remembers their results.
pub(super) fn caller(calls: Vec<(&'static str, Value)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let results = Arc::new(Mutex::new(Vec::new()));
    let heard = results.clone();
    let address = model(move |turn, body| -> Said {
        if turn > 0 {
            let last = body["messages"].as_array().and_then(|all| all.last()).map(|last| last["content"].clone());
            let text = last.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            heard.lock().expect("heard").push(text);
        }
        match calls.get(turn) {
            Some(call) => (String::new(), vec![call.clone()]),
            None => ("Done.".to_owned(), Vec::new()),
        }
    });
    (address, results)
}

#[test]
fn from_a_change_to_the_remote_and_back() {
    let house = House::with(&[("a.md", "one\ntwo\n")]);
    with_remote(&house);
    let status = run_in(&house, "notes", &["status", "--json"]).good().json();
    assert_eq!((&status["branch"]["branch"], &status["files"]), (&json!("main"), &json!([])));
    run_in(&house, "notes", &["push"]).good();
    house.write("notes/a.md", b"one\ntwo\nthree\n");
    house.write("notes/new.md", b"new\n");
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert_eq!(status, "On main, even with origin/main\n M a.md\n?? new.md\n");
    assert!(run_in(&house, "notes", &["diff", "a.md"]).good().text().contains("+three\n"));
    assert_eq!(run_in(&house, "notes", &["diff", "--staged"]).good().text(), "");
    run_in(&house, "notes", &["add", "new.md"]).good();
    assert!(
        run_in(&house, "notes", &["diff", "--staged", "--json"]).good().json()["diff"].to_string().contains("+new")
    );
    // What is staged is committed; without anything staged, all of it.
    let done = run_in(&house, "notes", &["commit", "-m", "Add a file", "--signoff"]).good().text();
    assert!(done.contains("Ada: Add a file") && done.contains("1 ahead of and 0 behind origin/main"), "{done}");
    assert!(git(&house.path("notes"), &["log", "-1", "--format=%B"]).contains("Signed-off-by: Ada <ada@example.org>"));
    run_in(&house, "notes", &["commit", "-m", "Count to three", "--push"]).good();
    assert_eq!(git(&house.path("remote.git"), &["log", "--format=%s", "main"]), "Count to three\nAdd a file\nFirst");
    run_in(&house, "notes", &["commit", "-m", "Nothing"]).refused(1, "Nothing has changed");

    let log = run_in(&house, "notes", &["log", "--limit", "1", "--json"]).good().json();
    assert_eq!((log.as_array().map(Vec::len), &log[0]["summary"]), (Some(1), &json!("Count to three")));
    let shown = run_in(&house, "notes", &["show", "HEAD~1"]).good().text();
    assert!(shown.contains("Add a file") && shown.contains("+new\n"), "{shown}");
    run_in(&house, "notes", &["show", "nowhere"]).refused(2, "no such commit");
    house.write("notes/a.md", b"one\ntwo\nthree\nfour\n");
    let blame = run_in(&house, "notes", &["blame", "a.md", "--json"]).good().json();
    assert_eq!((&blame[2]["id"], &blame[3]["id"]), (&log[0]["id"], &Value::Null), "{blame}");
    assert!(blame[2]["author_time"].is_i64() && blame[3]["author_time"].is_null(), "{blame}");
    let shown = run_in(&house, "notes", &["blame", "a.md"]).good().text();
    assert!(shown.contains("-------- ---------- not committed") && !shown.contains("1970"), "{shown}");

    // The same for a volume by its name, from anywhere.
    let status = house.run(&["git", "status", "--volume", "notes", "--json"]).good().json();
    assert_eq!(status["files"], json!([{"status": " M", "path": "a.md"}]));
    house.run(&["git", "status", "--volume", "system"]).refused(2, "System is read-only");
    run_in(&house, "W", &["status"]).refused(2, "there is no git repository");
    run_in(&house, "notes", &["fly"]).refused(2, "not “fly”");
}

#[test]
fn branches_stashes_conflicts_and_rejected_pushes() {
    let house = House::with(&[("a.md", "one\ntwo\nthree\n")]);
    with_remote(&house);
    run_in(&house, "notes", &["push"]).good();
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house.write("other/a.md", b"one\n2\nthree\n");
    run_in(&house, "other", &["commit", "-m", "Digits", "--push"]).good();
    house.write("notes/a.md", b"one\nzwei\nthree\n");
    run_in(&house, "notes", &["commit", "-m", "German"]).good();
    run_in(&house, "notes", &["push"]).refused(1, "Pull first");
    run_in(&house, "notes", &["pull"]).refused(1, "a.md. Nothing was merged");
    assert_eq!(house.read("notes/a.md"), b"one\nzwei\nthree\n", "no markers");

    run_in(&house, "notes", &["switch", "idea", "--create"]).good();
    house.write("notes/b.md", b"idea\n");
    run_in(&house, "notes", &["stash", "-m", "for later"]).good();
    assert!(!house.path("notes/b.md").exists());
    let stashes = run_in(&house, "notes", &["stash", "list", "--json"]).good().json();
    assert!(stashes[0]["message"].as_str().is_some_and(|message| message.contains("for later")), "{stashes}");
    run_in(&house, "notes", &["stash", "apply", "0"]).good();
    assert_eq!(house.read("notes/b.md"), b"idea\n");
    std::fs::remove_file(house.path("notes/b.md")).expect("removed");
    house.write("notes/c.md", b"another\n");
    run_in(&house, "notes", &["stash", "push"]).good();
    run_in(&house, "notes", &["stash", "drop", "0"]).good();
    run_in(&house, "notes", &["stash", "pop", "x"]).refused(2, "a stash has a number");
    run_in(&house, "notes", &["stash", "pop", "7"]).refused(2, "stash");
    run_in(&house, "notes", &["stash", "pop"]).good();
    assert!(!house.path("notes/c.md").exists());
    run_in(&house, "notes", &["commit", "-m", "Idea"]).good();
    run_in(&house, "notes", &["switch", "main"]).good();
    run_in(&house, "notes", &["merge", "idea"]).good();
    run_in(&house, "notes", &["branch", "idea", "--delete"]).good();
    run_in(&house, "notes", &["branch", "next"]).good();
    let branches = run_in(&house, "notes", &["branch", "--json"]).good().json();
    let names: Vec<&str> = branches.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["main", "next", "origin/main"]);

    run_in(&house, "notes", &["tag", "v1", "-m", "The first\nof many"]).good();
    run_in(&house, "notes", &["tag", "draft"]).good();
    let tags = run_in(&house, "notes", &["tag", "--json"]).good().json();
    assert_eq!((&tags[0]["name"], &tags[0]["summary"]), (&json!("draft"), &json!("Idea")));
    assert_eq!((&tags[1]["name"], &tags[1]["summary"]), (&json!("v1"), &json!("The first")));
    run_in(&house, "notes", &["tag", "draft", "--delete"]).good();
    run_in(&house, "notes", &["tag", "v1"]).refused(2, "already exists");
    assert_eq!(git(&house.path("notes"), &["tag"]), "v1");

    run_in(&house, "notes", &["tag", "list"]).good();
    run_in(&house, "notes", &["tag", "old", "HEAD~1"]).good();
    assert_eq!(git(&house.path("notes"), &["rev-parse", "old"]), git(&house.path("notes"), &["rev-parse", "HEAD~1"]));
    run_in(&house, "notes", &["tag", "bad name"]).refused(2, "not a valid tag name");
    run_in(&house, "notes", &["tag", "--delete", "nowhere"]).refused(2, "No branch, tag or commit is called nowhere.");

    // A lock that a killed program left is explained, and nothing is lost.
    house.write("notes/.git/index.lock", b"");
    house.write("notes/b.md", b"more\n");
    run_in(&house, "notes", &["commit", "-m", "More"]).refused(2, "index.lock and try again");
    std::fs::remove_file(house.path("notes/.git/index.lock")).expect("removed");
    run_in(&house, "notes", &["commit", "-m", "More"]).good();

    // Without `git`, reads still work and the rest says what is missing.
    let empty = house.path("no-programs");
    std::fs::create_dir(&empty).expect("made");
    let without = |words: &[&str]| {
        let mut command = house.command(words);
        command.current_dir(house.path("notes")).env("PATH", &empty);
        finish(command, b"")
    };
    without(&["git", "log"]).good();
    without(&["git", "fetch"]).refused(2, "Git isn't installed");
}

#[test]
fn rebase_and_what_stops_halfway() {
    let house = House::with(&[("a.md", "one\n"), ("b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    run_in(&house, "notes", &["switch", "idea", "--create"]).good();
    house.write("notes/b.md", b"idea\n");
    run_in(&house, "notes", &["commit", "-m", "Idea"]).good();
    run_in(&house, "notes", &["switch", "main"]).good();
    house.write("notes/a.md", b"main\n");
    run_in(&house, "notes", &["commit", "-m", "Main"]).good();
    run_in(&house, "notes", &["branch", "idea", "--delete"]).refused(1, "aren't merged");
    run_in(&house, "notes", &["switch", "idea"]).good();
    run_in(&house, "notes", &["rebase", "main"]).good();
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Idea\nMain\nFirst");
    run_in(&house, "notes", &["rebase", "nowhere"]).refused(2, "nowhere");
    run_in(&house, "notes", &["rebase"]).refused(2, "the branch");

    // A rebase with conflicts is taken back.
    house.write("notes/a.md", b"idea\n");
    run_in(&house, "notes", &["commit", "-m", "Idea for a"]).good();
    run_in(&house, "notes", &["switch", "main"]).good();
    house.write("notes/a.md", b"main again\n");
    run_in(&house, "notes", &["commit", "-m", "Main again"]).good();
    let before = git(&notes, &["rev-parse", "HEAD"]);
    run_in(&house, "notes", &["rebase", "idea"]).refused(1, "a.md. Nothing was merged");
    assert_eq!((git(&notes, &["rev-parse", "HEAD"]), house.read("notes/a.md")), (before, b"main again\n".to_vec()));
    for verb in ["merge", "rebase"] {
        run_in(&house, "notes", &[verb, "--continue"]).refused(2, &format!("no {verb} is under way"));
        run_in(&house, "notes", &[verb, "--abort"]).refused(2, &format!("no {verb} is under way"));
        run_in(&house, "notes", &[verb, "--abort", "--continue"]).refused(2, "--continue or --abort");
    }
    run_in(&house, "notes", &["push", "--abort"]).refused(2, "goes with merge and rebase");

    // What another program left halfway is ended here.
    for (verb, last) in [("merge", "Merge branch 'idea'"), ("rebase", "Main again")] {
        let conflict = || std::process::Command::new("git").args([verb, "idea"]).current_dir(&notes).output();
        git(&notes, &["reset", "-q", "--hard", "main"]);
        assert!(!conflict().expect("git").status.success());
        let status = run_in(&house, "notes", &["status", "--json"]).good().json();
        assert_eq!(status["branch"]["under_way"], json!(verb));
        run_in(&house, "notes", &[verb, "--continue"]).refused(1, "still in conflict");
        run_in(&house, "notes", &[verb, "--continue", "idea"]).refused(2, "take no name");
        run_in(&house, "notes", &[verb, "--abort"]).good();
        assert_eq!(house.read("notes/a.md"), b"main again\n");
        git(&notes, &["switch", "-q", "-c", &format!("test-{verb}")]);
        assert!(!conflict().expect("git").status.success());
        house.write("notes/a.md", b"both\n");
        run_in(&house, "notes", &["add", "a.md"]).good();
        let done = run_in(&house, "notes", &[verb, "--continue", "--json"]).good().json();
        assert_eq!(done["branch"]["under_way"], Value::Null);
        assert_eq!(git(&notes, &["log", "-1", "--format=%s"]).split(" into").next(), Some(last));
        assert_eq!(house.read("notes/a.md"), b"both\n");
        git(&notes, &["switch", "-q", "main"]);
    }
}

#[test]
fn the_graph_of_branches_is_drawn() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "-c", "idea"]);
    git(&notes, &["commit", "-q", "--allow-empty", "-m", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    git(&notes, &["commit", "-q", "--allow-empty", "-m", "Main"]);
    git(&notes, &["commit", "-q", "--allow-empty", "-m", "\u{1b}[2JMore"]);
    let graph = |words: &[&str]| {
        let all: Vec<&str> = ["log", "--graph"].iter().chain(words).copied().collect();
        run_in(&house, "notes", &all).good().text()
    };
    let signs = |text: &str| {
        text.lines()
            .map(|line| line.split(|c: char| c.is_alphanumeric()).next().unwrap_or("").trim().to_owned())
            .collect::<Vec<_>>()
    };
    let own = graph(&[]);
    assert_eq!(signs(&own), ["*", "*", "*"]);
    assert!(!own.contains('\u{1b}') && !own.contains("Idea"), "{own}");
    let all = graph(&["--all"]);
    assert!(
        all.contains("Idea") && all.lines().any(|line| line.starts_with("| *") || line.starts_with("* |")),
        "{all}"
    );
    git(&notes, &["merge", "-q", "--no-edit", "idea"]);
    let merged = graph(&[]);
    assert!(merged.starts_with("* ") && merged.lines().nth(1) == Some("|\\"), "{merged}");
    let rows = run_in(&house, "notes", &["log", "--graph", "--json", "--limit", "2"]).good().json();
    assert_eq!((rows.as_array().map(Vec::len), rows[0]["parents"].as_array().map(Vec::len)), (Some(2), Some(2)));
    run_in(&house, "notes", &["log", "--all"]).refused(2, "log --graph");
    let empty = house.path("empty");
    std::fs::create_dir(&empty).expect("made");
    git(&empty, &["init", "-q"]);
    assert_eq!(run_in(&house, "empty", &["log", "--graph", "--all"]).good().text(), "");
}

#[test]
fn hunks_and_lines_are_listed_staged_and_discarded() {
    let old: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let house = House::with(&[("a.md", &old)]);
    with_remote(&house);
    let new = old.replace("line 2\n", "second\nand more\n").replace("line 28\n", "line 28, changed\n");
    house.write("notes/a.md", new.as_bytes());
    let listed = run_in(&house, "notes", &["diff", "--json", "a.md"]).good().json();
    assert_eq!(listed["files"][0]["path"], "a.md");
    let hunks = &listed["files"][0]["hunks"];
    assert_eq!(hunks.as_array().map(Vec::len), Some(2));
    assert_eq!(hunks[1]["lines"][3], json!({"number": 1, "sign": "-", "text": "line 28"}));
    let text = run_in(&house, "notes", &["diff", "--hunks"]).good().text();
    assert!(text.contains("  hunk 2 @@ -25,6 +26,6 @@\n") && text.contains("     3 +and more\n"), "{text}");

    let file = || String::from_utf8(house.read("notes/a.md")).expect("text");
    let staged = || git(&house.path("notes"), &["diff", "--cached", "-U0"]);
    run_in(&house, "notes", &["add", "--hunk", "2", "a.md"]).good();
    assert!(staged().contains("+line 28, changed") && !staged().contains("second"), "{}", staged());
    run_in(&house, "notes", &["add", "--hunk", "1:3", "a.md"]).good();
    assert!(staged().contains("+and more") && !staged().contains("second"), "{}", staged());
    run_in(&house, "notes", &["restore", "--staged", "--hunk", "1", "a.md"]).good();
    assert!(staged().contains("+line 28, changed") && !staged().contains("and more"), "{}", staged());
    let done = run_in(&house, "notes", &["restore", "--hunk", "1", "a.md"]).good().text();
    assert_eq!(file(), old.replace("line 28\n", "line 28, changed\n"));
    let undo = done.lines().find_map(|line| line.strip_prefix("To undo: tracebook git ")).expect("it says how");
    run_in(&house, "notes", &undo.split(' ').collect::<Vec<_>>()).good();
    assert_eq!(file(), new);
    let done = run_in(&house, "notes", &["restore", "a.md", "--json"]).good().json();
    let kept = done["discarded"][0]["kept"].as_str().expect("it's kept").to_owned();
    assert_eq!(file(), old.replace("line 28\n", "line 28, changed\n"), "as it is staged");
    run_in(&house, "notes", &["restore", "--from", &kept, "a.md"]).good();
    assert_eq!(file(), new);

    for (wrong, why) in [
        (&["add", "--hunk", "9", "a.md"][..], "no hunk 9"),
        (&["add", "--hunk", "1:9", "a.md"], "not line 9"),
        (&["add", "--hunk", "x", "a.md"], "--hunk wants numbers"),
        (&["add", "--hunk", "1"], "needs one file"),
        (&["commit", "--hunk", "1", "a.md"], "goes with add and restore"),
        (&["restore"], "name the files"),
        (&["restore", "--from", "0123456789012345678901234567890123456789", "a.md"], "no discarded bytes"),
        (&["add", "--hunk", "1", "../remote.git/config"], "leads out of the volume"),
    ] {
        run_in(&house, "notes", wrong).refused(2, why);
    }
    assert_eq!(file(), new);
}

#[test]
fn a_clone_is_opened_as_a_volume() {
    let house = House::with(&[("a.md", "cloned words\n")]);
    with_remote(&house);
    run_in(&house, "notes", &["push"]).good();
    let address = format!("file://{}", house.path("remote.git").display());
    let done = run_in(&house, "", &["clone", &address, "copy", "--depth", "1"]).good().text();
    assert!(done.contains("On main, even with origin/main") && done.contains("copy: 1 note"), "{done}");
    assert_eq!(house.cat("copy/a.md"), b"cloned words\n");
    run_in(&house, "", &["clone", &address, "copy"]).refused(2, "already exists");
    run_in(&house, "", &["clone", "ext::sh -c touch% hacked", "x"]).refused(2, "not by this address");
    run_in(&house, "", &["clone", "--", "--upload-pack=touch hacked", "x"]).refused(2, "address");
    assert!(!house.path("hacked").exists() && !house.path("x").exists());
}

#[test]
fn an_agent_commits_freely_and_pushes_when_allowed() {
    let commit = json!({"volume": "notes", "message": "By the agent", "files": ["notes/new.txt"]});
    let push = json!({"volume": "notes", "message": "And pushed", "push": true});
    let (address, results) = caller(vec![
        ("write-file", json!({"volume": "notes", "path": "new.txt", "content": "new\n"})),
        ("git_commit", commit),
        ("write_file", json!({"path": "/notes/more.txt", "content": "more\n"})),
        ("git_commit", push),
        ("git_log", json!({})),
        ("git_blame", json!({"path": "notes/new.txt"})),
        ("git_branch", json!({})),
    ]);
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    let allowed = ["ask", "commit it", "--approve", "git_commit", "--approve", "git_branch", "--json"];
    house.run(&allowed).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[1].contains("By the agent") && results[1].contains("new.txt"), "{results:?}");
    assert!(results[3].contains("pushed; on main, even with origin/main"), "{results:?}");
    assert!(results[4].contains("Ada: By the agent") && results[5].contains("Ada 1: new"), "{results:?}");
    assert!(results[6].contains("* main"), "{results:?}");
    assert_eq!(git(&house.path("remote.git"), &["log", "-2", "--format=%s", "main"]), "And pushed\nBy the agent");

    // Nobody allows the push: it waits, and nothing leaves the device.
    let (address, _) = caller(vec![("git_push", json!({}))]);
    let asking = self::house(&address, &[("a.md", "# A\n")]);
    with_remote(&asking);
    assert_eq!(asking.fed(&["ask", "push", "--no-wait"], b"").code, 1);
    assert!(asking.run(&["approvals"]).good().text().contains("Push the branch to its remote"));
    assert_eq!(git(&asking.path("remote.git"), &["branch"]), "");
}

#[cfg(unix)]
#[test]
fn a_hostile_repository_runs_nothing_through_an_agent() {
    use std::os::unix::fs::PermissionsExt;
    let calls = || vec![("git_status", json!({})), ("git_fetch", json!({})), ("git_push", json!({}))];
    let words = ["ask", "look", "--approve", "git_fetch", "--approve", "git_push", "--json"];
    let (address, results) = caller(calls());
    let house = house(&address, &[("a.md", "# A\n")]);
    with_remote(&house);
    for name in ["pre-push", "reference-transaction", "post-checkout", "pre-commit"] {
        let hook = house.path(&format!("notes/.git/hooks/{name}"));
        std::fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", house.path("hacked").display())).expect("written");
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    house.run(&words).good();
    assert!(!house.path("hacked").exists(), "no hook ran");
    assert!(results.lock().expect("heard")[2].contains("pushed"), "{results:?}");

    let (address, results) = caller(calls());
    let hostile = self::house(&address, &[("a.md", "# A\n")]);
    with_remote(&hostile);
    let evil = format!("touch {}; false", hostile.path("hacked").display());
    for name in ["core.sshCommand", "core.fsmonitor", "remote.origin.uploadpack", "remote.origin.receivepack"] {
        git(&hostile.path("notes"), &["config", name, &evil]);
    }
    hostile.run(&words).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[1].contains("core.sshcommand") && results[2].contains("tracebook git"), "{results:?}");
    assert!(!hostile.path("hacked").exists(), "no setting ran");
}

/// Returns the message of the last commit and the files that it changed.
fn last_commit(folder: &Path) -> String {
    git(folder, &["show", "--format=%s", "--name-only"])
}

#[test]
fn a_folder_of_a_repository_is_committed_and_stashed_on_its_own() {
    let house = House::with(&[("P.md", "a\n"), ("sub/b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let in_sub = |words: &[&str]| run_in(&house, "notes/sub", words);
    house.write("notes/sub/b.md", b"b\nx\n");
    for name in ["other", "page", "quote", "rest"] {
        house.write(&format!("notes/{name}.md"), b"s\n");
    }
    git(&notes, &["add", "other.md", "page.md", "quote.md", "rest.md"]);
    assert_eq!(in_sub(&["status"]).good().text(), "On main\n M b.md\n");
    for words in [&["commit", "-m", "m"][..], &["commit", "-m", "m", "--amend"]] {
        let done = in_sub(words).refused(2, "other.md, page.md, quote.md and 1 more");
        assert!(done.err.contains("commit or unstage them with Git itself"), "{}", done.err);
    }
    let request = GitRequest::Commit { message: "By the window".to_owned(), amend: false, signoff: false };
    let why = perform((&notes.join("sub"), Some(&house.path("W"))), &request, &mut |_| {}, &|| false);
    let why = why.expect_err("files outside are staged");
    assert!(why.to_string().starts_with("Files outside of this folder are staged"), "{why}");
    let staged = || git(&notes, &["diff", "--cached", "--name-only"]);
    assert_eq!(
        (git(&notes, &["log", "--format=%s"]).as_str(), staged().as_str()),
        ("First", "other.md\npage.md\nquote.md\nrest.md")
    );

    // Named files, and all of the folder, are committed without them.
    in_sub(&["commit", "-m", "Named", "b.md"]).good();
    assert_eq!(last_commit(&notes), "Named\n\nsub/b.md");
    house.write("notes/P.md", b"changed\n");
    house.write("notes/sub/b.md", b"b\ny\n");
    in_sub(&["commit", "-m", "All", "--all"]).good();
    assert_eq!(last_commit(&notes), "All\n\nsub/b.md");
    assert_eq!(staged(), "other.md\npage.md\nquote.md\nrest.md");

    let changed = || git(&notes, &["diff", "--name-only"]);
    house.write("notes/sub/b.md", b"b\nz\n");
    house.write("notes/sub/new.md", b"new\n");
    in_sub(&["stash", "-m", "later"]).good();
    assert!(!notes.join("sub/new.md").exists());
    assert_eq!((changed().as_str(), staged().as_str()), ("P.md", "other.md\npage.md\nquote.md\nrest.md"));
    in_sub(&["stash", "pop"]).good();
    assert_eq!(house.read("notes/sub/new.md"), b"new\n");
    assert_eq!(changed(), "P.md\nsub/b.md");

    git(&notes, &["reset", "-q"]);
    in_sub(&["commit", "-m", "Sub"]).good();
    assert_eq!(last_commit(&notes), "Sub\n\nsub/b.md\nsub/new.md");
    // At the top, all of the repository is put aside.
    run_in(&house, "notes", &["stash"]).good();
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
}

#[test]
fn staged_changes_of_submodules_are_listed_and_committed() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let stage = || {
        let head = git(&notes, &["rev-parse", "HEAD"]);
        git(&notes, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},lib")]);
        head
    };
    let status = || run_in(&house, "notes", &["status"]).good().text();
    let head = stage();
    house.write("notes/a.md", b"one\ntwo\n");
    assert_eq!(status(), "On main\n M a.md\nA  lib\n");
    let diff = run_in(&house, "notes", &["diff", "--staged"]).good().text();
    assert!(diff.contains(&format!("+Subproject commit {head}")), "{diff}");
    assert_eq!(run_in(&house, "notes", &["diff", "--staged", "--hunks"]).good().text(), "");
    run_in(&house, "notes", &["restore", "--staged", "--hunk", "1", "lib"]).refused(2, "a link or a repository");
    run_in(&house, "notes", &["restore", "lib"]).refused(2, "no longer has changes");
    run_in(&house, "notes", &["commit", "-m", "Library"]).good();
    assert_eq!(last_commit(&notes), "Library\n\nlib");
    assert_eq!(status(), "On main\n M a.md\n");

    // What isn't staged of it isn't listed, since its repository isn't opened.
    git(&notes, &["init", "-q", "lib"]);
    know_user(&notes.join("lib"));
    git(&notes.join("lib"), &["commit", "-q", "--allow-empty", "-m", "Another"]);
    assert_eq!(status(), "On main\n M a.md\n");
    stage();
    assert_eq!(status(), "On main\n M a.md\nM  lib\n");
    run_in(&house, "notes", &["restore", "--staged", "lib"]).good();
    assert_eq!(status(), "On main\n M a.md\n");
}

#[test]
fn a_commit_is_shown_with_its_message_and_renames() {
    let house = House::with(&[("a.md", "one\ntwo\nthree\n"), ("empty.md", "")]);
    with_remote(&house);
    let notes = house.path("notes");
    std::fs::create_dir(notes.join("sub")).expect("made");
    git(&notes, &["mv", "a.md", "sub/b.md"]);
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert_eq!(status, "On main\nR  a.md -> sub/b.md\n");
    let files = run_in(&house, "notes", &["status", "--json"]).good().json()["files"].clone();
    assert_eq!(files, json!([{"status": "R ", "path": "sub/b.md", "old_path": "a.md"}]));
    git(&notes, &["commit", "-qm", "Move it\n\nIt's easier to find there.\n\nFixes #1"]);
    let shown = run_in(&house, "notes", &["show"]).good().text();
    assert!(shown.contains("Move it\n\n    It's easier to find there.\n\n    Fixes #1\n\ndiff --git"), "{shown}");
    assert!(shown.contains("rename from a.md\nrename to sub/b.md\n") && !shown.contains("-one"), "{shown}");
    let message = run_in(&house, "notes", &["show", "--json"]).good().json()["message"].clone();
    assert_eq!(message, "Move it\n\nIt's easier to find there.\n\nFixes #1");

    assert_eq!(run_in(&house, "notes", &["blame", "empty.md"]).good().text(), "");
    run_in(&house, "notes", &["blame", "gone.md"]).refused(2, "there's no file gone.md");
    git(&notes, &["switch", "-q", "--orphan", "new"]);
    house.write("notes/a.md", b"one\n");
    run_in(&house, "notes", &["show"]).refused(2, "there is no commit yet");
    run_in(&house, "notes", &["blame", "a.md"]).refused(2, "isn't committed yet");
}

#[cfg(target_os = "linux")]
#[test]
fn a_changed_file_whose_name_is_not_utf8_is_listed() {
    use std::os::unix::ffi::OsStrExt;
    let house = House::with(&[("a.md", "one\n")]);
    let latin = house.path("notes").join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt"));
    std::fs::write(&latin, "one\n").expect("written");
    with_remote(&house);
    std::fs::write(&latin, "two\n").expect("written");
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert!(status.starts_with("On main\n M caf\u{fffd}.txt  (its name isn't UTF-8 text"), "{status}");
    let files = run_in(&house, "notes", &["status", "--json"]).good().json()["files"].clone();
    assert_eq!(files, json!([{"status": " M", "path": "caf\u{fffd}.txt", "is_inexact": true}]));
}

#[test]
fn a_log_has_as_many_commits_as_are_asked_for() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let mut commits = String::new();
    for number in 1..=250 {
        commits += &format!("commit refs/heads/main\ncommitter Ada <a@example.org> {} +0000\n", 1_700_000_000 + number);
        commits += &format!("data <<END\nCommit {number}\nEND\n");
        commits += if number == 1 { "from refs/heads/main^0\n" } else { "" };
        commits += &format!("M 644 inline a.md\ndata <<END\n{number}\nEND\n\n");
    }
    house.write("commits", commits.as_bytes());
    let import = std::process::Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(house.path("notes"))
        .stdin(std::fs::File::open(house.path("commits")).expect("there"))
        .status();
    assert!(import.expect("git is there").success());
    git(&house.path("notes"), &["reset", "-q", "--hard"]);
    for words in [&["log", "--limit", "300", "--json"][..], &["log", "a.md", "--limit", "300", "--json"]] {
        let log = run_in(&house, "notes", words).good().json();
        assert_eq!(log.as_array().map(Vec::len), Some(251), "{words:?}");
    }
    // What was in the file before its history here is by the authors of its commits.
    let spans = house.run(&["history", "a.md", "--blame", "--json"]).good().lines();
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert!(spans[0]["who"].as_str().is_some_and(|who| who.starts_with("Ada (commit ")), "{spans:?}");
    house.edit("a.md", 0, 0, "mine\n");
    let blame = house.run(&["history", "a.md", "--blame"]).good().text();
    let who: Vec<&str> = blame.lines().map(|line| line[..11].trim()).collect();
    assert_eq!(who, ["You", "Ada (commit"], "{blame}");
}

#[test]
fn a_clone_without_all_objects_says_so() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    house.write("notes/a.md", b"two\n");
    git(&house.path("notes"), &["commit", "-qam", "Second"]);
    git(&house.path("notes"), &["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{}", house.path("notes").display());
    git(&house.path(""), &["clone", "-q", "--filter=blob:none", &address, "part"]);
    run_in(&house, "part", &["status"]).good();
    run_in(&house, "part", &["show"]).refused(2, "this clone lacks a part of the history");
    house.run(&["open", &house.path("part").display().to_string()]).good();
    house.run(&["history", "part:a.md", "--at", "HEAD~1"]).refused(2, "this clone lacks a part of the history");
    git(&house.path("part"), &["fetch", "-q", "--refetch", "--no-filter"]);
    assert!(run_in(&house, "part", &["show"]).good().text().contains("-one\n+two\n"));
}

#[test]
fn the_log_of_a_file_and_names_that_mean_nothing() {
    let house = House::with(&[("a.md", "one\n"), ("sub/b.md", "b\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    house.write("notes/a.md", b"two\n");
    run_in(&house, "notes", &["commit", "-m", "Second"]).good();
    let log = |folder: &str, words: &[&str]| {
        let all: Vec<&str> = ["log", "--json"].iter().chain(words).copied().collect();
        let log = run_in(&house, folder, &all).good().json();
        let commits = log.as_array().into_iter().flatten();
        commits.filter_map(|commit| commit["summary"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(log("notes", &["a.md"]), ["Second", "First"]);
    assert_eq!(log("notes", &["a.md", "--limit", "1"]), ["Second"]);
    assert_eq!(log("notes", &["sub/b.md"]), ["First"]);
    assert_eq!(log("notes/sub", &["b.md"]), ["First"]);
    // A file that is gone is known as long as the index or the last commit has it.
    std::fs::remove_file(notes.join("sub/b.md")).expect("removed");
    assert_eq!(log("notes", &["sub/b.md"]), ["First"]);
    git(&notes, &["add", "-A"]);
    assert_eq!(log("notes", &["sub/b.md"]), ["First"]);
    for path in ["sub/b.md", "sub", "."] {
        assert!(run_in(&house, "notes", &["diff", path]).good().text().contains("-b\n"), "{path}");
    }
    for (words, why) in [
        (&["log", "nope.md"][..], "no file or folder"),
        (&["log", "sub"], "this is a folder"),
        (&["log", "--graph", "a.md"], "only without --graph"),
        (&["diff", "nope.md"], "no file or folder"),
        (&["diff", "HEAD~9"], "no branch, tag or commit is called HEAD~9"),
        (&["diff", "--staged", "nope.md"], "no file or folder"),
        (&["diff", "--hunks", "nope.md"], "no file or folder"),
        (&["status", "a.md"], "`tracebook git status` takes no name here, so not “a.md”"),
        (&["fetch", "origin"], "takes no name"),
        (&["pull", "origin"], "takes no name"),
        (&["push", "origin", "main"], "takes no name"),
        (&["log", "a.md", "sub/b.md"], "takes one file, so not “sub/b.md”"),
        (&["diff", "a.md", "b.md"], "no file or folder b.md"),
        (&["show", "HEAD", "a.md"], "takes one name"),
        (&["blame", "a.md", "b.md"], "takes one name"),
        (&["switch", "x", "y"], "takes one name"),
        (&["merge", "x", "y"], "takes one name"),
        (&["rebase", "x", "y"], "takes one name"),
        (&["branch", "x", "y", "--delete"], "takes one name"),
        (&["branch", "x", "HEAD", "y"], "takes 2 names"),
        (&["tag", "x", "HEAD", "y"], "takes 2 names"),
        (&["stash", "push", "a.md"], "takes one name"),
        (&["stash", "pop", "0", "1"], "takes 2 names"),
    ] {
        run_in(&house, "notes", words).refused(2, why);
    }
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_deleted() {
    let commit = json!({"volume": "notes", "message": "By the agent"});
    let (address, results) = caller(vec![("git_commit", commit)]);
    let house = house(&address, &[("a.md", "one\n"), ("b.md", "left out\n"), ("c.md", "c\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["sparse-checkout", "set", "--no-cone", "/*", "!/b.md"]);
    assert!(!notes.join("b.md").exists());
    let status = || run_in(&house, "notes", &["status"]).good().text();
    assert_eq!(status(), "On main\nNothing has changed since the last commit.\n");
    assert_eq!(run_in(&house, "notes", &["diff"]).good().text(), "");
    house.write("notes/a.md", b"one\ntwo\n");
    assert_eq!(status(), "On main\n M a.md\n");
    let diff = run_in(&house, "notes", &["diff"]).good().text();
    assert!(diff.contains("+two") && !diff.contains("b.md"), "{diff}");
    house.run(&["ask", "commit it", "--approve", "git_commit", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("By the agent"), "{results:?}");
    assert_eq!(last_commit(&notes), "By the agent\n\na.md");
    house.write("notes/a.md", b"three\n");
    run_in(&house, "notes", &["commit", "-m", "By the user"]).good();
    assert_eq!(last_commit(&notes), "By the user\n\na.md");
    assert_eq!(git(&notes, &["show", "HEAD:b.md"]), "left out");
    assert!(!notes.join("b.md").exists());
    // Other files that are gone are still listed.
    std::fs::remove_file(notes.join("c.md")).expect("removed");
    assert_eq!(status(), "On main\n D c.md\n");
}

#[test]
fn a_folder_is_restored_without_its_new_files() {
    let house = House::with(&[("a.md", "a\n"), ("sub/b.md", "b\n"), ("sub/c.md", "c\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    for name in ["a.md", "sub/b.md", "sub/c.md", "sub/new.md", "fresh/x.md"] {
        house.write(&format!("notes/{name}"), b"changed\n");
    }
    let restore = |words: &[&str]| {
        let all: Vec<&str> = ["restore"].iter().chain(words).copied().collect();
        run_in(&house, "notes", &all)
    };
    let changed = || git(&notes, &["diff", "--name-only"]);
    let done = restore(&["sub/"]).good().text();
    assert!(done.starts_with("Discarded the changes in 2 files.\n"), "{done}");
    assert_eq!(changed(), "a.md");
    let undo = done.lines().find_map(|line| line.strip_prefix("To undo: tracebook git restore ")).expect("it says how");
    restore(&undo.split(' ').collect::<Vec<_>>()).good();
    assert_eq!(changed(), "a.md\nsub/b.md");
    restore(&["fresh"]).refused(2, "only new files");
    restore(&["nowhere"]).refused(2, "no longer has changes");
    restore(&["/"]).refused(2, "no longer has changes");
    assert_eq!(changed(), "a.md\nsub/b.md");
    let done = restore(&["."]).good().text();
    assert!(done.starts_with("Discarded the changes in 2 files.\n"), "{done}");
    assert_eq!(changed(), "");
    restore(&["."]).refused(2, "only new files");
    for name in ["sub/new.md", "fresh/x.md"] {
        assert_eq!(house.read(&format!("notes/{name}")), b"changed\n");
    }
    restore(&["./fresh/x.md"]).good();
    assert!(!notes.join("fresh/x.md").exists());
}

#[test]
fn kinds_of_repositories_that_cannot_be_read_are_named() {
    let house = House::with(&[("a.md", "one\n")]);
    git(&house.path(""), &["init", "-q", "--object-format=sha256", "other"]);
    for words in [&["status"][..], &["log"], &["commit", "-m", "x"]] {
        let done = run_in(&house, "other", words).refused(2, "isn't supported yet");
        assert!(done.err.contains("sha256") && done.err.contains("use Git itself"), "{}", done.err);
    }
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["update-index", "--split-index"]);
    run_in(&house, "notes", &["status"]).refused(2, "after `git update-index --no-split-index`, this works");
    git(&notes, &["update-index", "--no-split-index"]);
    run_in(&house, "notes", &["status"]).good();
}
