//! Git under faults: killed at work, locks left behind, no branch, bare and shallow repositories, hostile settings.

use super::git::{git, know_user, run_in, with_remote};
use crate::program::{Done, House, is_nightly, pass};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Number of notes that each commit of the other clone changes, so that Git works for a while.
const CHANGED_NOTES: usize = 40;

fn add_hook(folder: &Path, name: &str, script: &str) {
    let hook = folder.join(".git/hooks").join(name);
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    std::fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("set");
}

/// Runs `tracebook git …` in `notes` and in a process group of its own, and kills all of it `later` after this holds.
fn kill_at_work(house: &House, words: &[&str], is_at_work: &dyn Fn() -> bool, later: Duration) {
    let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
    kill_program(house, "notes", &all, is_at_work, later);
}

/// The same for any command, in any folder of the house.
pub(super) fn kill_program(
    house: &House,
    folder: &str,
    words: &[&str],
    is_at_work: &dyn Fn() -> bool,
    later: Duration,
) {
    let mut command = house.command(words);
    command.current_dir(house.path(folder));
    end_at_work(command, "-KILL", is_at_work, later);
}

/// Runs a command in a process group of its own, and sends a signal to all of it `later` after this holds.
pub(super) fn end_at_work(mut command: Command, signal: &str, is_at_work: &dyn Fn() -> bool, later: Duration) {
    let mut child = command.process_group(0).spawn().expect("started");
    let begun = Instant::now();
    while !is_at_work() && child.try_wait().expect("waited").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{command:?} doesn't begin");
        std::thread::park_timeout(Duration::from_micros(200));
    }
    pass(later);
    let group = format!("-{}", child.id());
    // Fails if it has ended already.
    let _ = Command::new("kill").args([signal, "--", &group]).output().expect("kill is there");
    child.wait().expect("gone");
}

/// Removes the lock that a refusal names. Returns whether it names one.
pub(super) fn remove_named_lock(house: &House, done: &Done) -> bool {
    let Some(lock) = done.err.split_whitespace().find(|word| word.ends_with(".lock")) else { return false };
    assert!(done.err.contains("If none is running, delete"), "{}", done.err);
    std::fs::remove_file(house.path("notes").join(lock)).expect("the lock that it names is there");
    true
}

/// Ends what a killed Git left: removes the locks that the program names, and takes back what is half done.
fn recover(house: &House) {
    for _ in 0..8 {
        let status = run_in(house, "notes", &["status", "--json"]).good().json();
        let done = match status["branch"]["under_way"].as_str() {
            Some(what @ ("merge" | "rebase")) => run_in(house, "notes", &[what, "--abort"]),
            _ => run_in(house, "notes", &["switch", "main"]),
        };
        if done.code == 0 {
            return;
        }
        assert!(remove_named_lock(house, &done), "{}", done.err);
    }
    panic!("it isn't over: {:?}", run_in(house, "notes", &["status"]));
}

/// Two clones: `notes` with a commit of its own, and a remote with one that changes many notes.
fn diverged() -> House {
    let house = House::with(&[("a.md", "one\n")]);
    for number in 0..CHANGED_NOTES {
        house.write(&format!("notes/n{number}.md"), b"old\n");
    }
    with_remote(&house);
    run_in(&house, "notes", &["push"]).good();
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    for number in 0..CHANGED_NOTES {
        house.write(&format!("other/n{number}.md"), format!("new {number}\n").as_bytes());
    }
    git(&house.path("other"), &["commit", "-qam", "Many"]);
    git(&house.path("other"), &["push", "-q"]);
    for (number, text) in ["two\n", "three\n", "four\n"].into_iter().enumerate() {
        house.write("notes/a.md", text.as_bytes());
        git(&house.path("notes"), &["commit", "-qam", &format!("Mine {number}")]);
    }
    git(&house.path("notes"), &["fetch", "-q"]);
    house
}

#[test]
fn a_pull_or_rebase_killed_at_any_moment_loses_nothing() {
    // More of them every night.
    let rounds = if is_nightly() { 4 } else { 2 };
    let mut rng = StdRng::seed_from_u64(48);
    for words in [&["pull"][..], &["pull", "--rebase"], &["rebase", "origin/main"], &["merge", "origin/main"]] {
        for round in 0..rounds {
            let house = diverged();
            let notes = house.path("notes");
            let mine = git(&notes, &["rev-parse", "main"]);
            let at_work = || {
                ["index.lock", "rebase-merge", "MERGE_HEAD"].iter().any(|name| notes.join(".git").join(name).exists())
            };
            kill_at_work(&house, words, &at_work, Duration::from_micros(rng.random_range(0..20_000)));
            // The text is Git's or the user's, and the program reads it as it is in the file.
            for name in ["a.md", "n0.md", "n39.md"] {
                // Git removes a file before it writes the new one.
                if notes.join(name).exists() {
                    let text = house.read(&format!("notes/{name}"));
                    assert_eq!(house.cat(&format!("notes/{name}")), text, "{words:?} {round}: {name}");
                }
            }
            recover(&house);
            assert_eq!(git(&notes, &["cat-file", "-t", &mine]), "commit", "{words:?} {round}");
            // Files that Git had begun to write are its own; they're discarded like any change.
            let status = run_in(&house, "notes", &["status", "--json"]).good().json();
            for file in status["files"].as_array().into_iter().flatten().filter_map(|file| file["path"].as_str()) {
                let is_removed = !notes.join(file).exists();
                assert!(file.starts_with('n') || is_removed, "{words:?} {round}: {file}");
                git(&notes, &["checkout", "-q", "HEAD", "--", file]);
            }
            let mut again = run_in(&house, "notes", words);
            while again.code != 0 && remove_named_lock(&house, &again) {
                again = run_in(&house, "notes", words);
            }
            assert_eq!(again.code, 0, "{words:?} {round}: {}", again.err);
            assert_eq!(house.read("notes/a.md"), b"four\n", "{words:?} {round}");
            assert_eq!(house.read("notes/n39.md"), b"new 39\n", "{words:?} {round}");
            assert_eq!(git(&notes, &["status", "--porcelain"]), "", "{words:?} {round}");
            assert_eq!(house.cat("notes/n39.md"), b"new 39\n");
            git(&notes, &["fsck", "--no-dangling"]);
        }
    }
}

#[test]
fn a_commit_killed_at_work_leaves_a_lock_that_is_explained() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    add_hook(&notes, "pre-commit", &format!("touch {}\nsleep 600", house.path("begun").display()));
    house.write("notes/a.md", b"one\ntwo\n");
    let begun = house.path("begun");
    kill_at_work(&house, &["commit", "--all", "-m", "Second"], &|| begun.exists(), Duration::ZERO);
    assert_eq!(house.read("notes/a.md"), b"one\ntwo\n");
    assert_eq!(house.cat("notes/a.md"), b"one\ntwo\n");
    std::fs::remove_file(notes.join(".git/hooks/pre-commit")).expect("removed");
    // Looking works with the lock; what changes something names it.
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert_eq!(status, "On main\n M a.md\n");
    for words in [&["commit", "--all", "-m", "Second"][..], &["add", "a.md"], &["stash"]] {
        run_in(&house, "notes", words).refused(2, "index.lock and try again");
    }
    std::fs::remove_file(notes.join(".git/index.lock")).expect("it's there");
    run_in(&house, "notes", &["commit", "--all", "-m", "Second"]).good();
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Second\nFirst");
}

#[test]
fn without_a_branch_commits_are_kept_and_pushes_explained() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "--detach", "main"]);
    let status = run_in(&house, "notes", &["status"]).good().text();
    assert!(status.starts_with("No branch, at "), "{status}");
    house.write("notes/a.md", b"one\ntwo\n");
    run_in(&house, "notes", &["commit", "-m", "Apart"]).good();
    run_in(&house, "notes", &["push"]).refused(2, "no branch is checked out");
    for pull in [&["pull"][..], &["pull", "--rebase"]] {
        run_in(&house, "notes", pull).refused(2, "No branch is checked out, so there's nothing to pull into.");
    }
    assert!(run_in(&house, "notes", &["log", "--graph"]).good().text().contains("Apart"));
    run_in(&house, "notes", &["branch", "kept"]).good();
    run_in(&house, "notes", &["switch", "main"]).good();
    assert_eq!(house.read("notes/a.md"), b"one\n");
    run_in(&house, "notes", &["merge", "kept"]).good();
    assert_eq!(house.read("notes/a.md"), b"one\ntwo\n");
}

#[test]
fn bare_and_shallow_repositories() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    run_in(&house, "notes", &["push"]).good();
    house.write("notes/a.md", b"one\ntwo\n");
    run_in(&house, "notes", &["commit", "-m", "Second", "--push"]).good();
    for words in [&["status"][..], &["log"], &["commit", "-m", "x"], &["pull"]] {
        run_in(&house, "remote.git", words).refused(2, "it is bare");
    }
    let address = format!("file://{}", house.path("remote.git").display());
    run_in(&house, "", &["clone", &address, "copy", "--depth", "1"]).good();
    know_user(&house.path("copy"));
    assert_eq!(house.cat("copy/a.md"), b"one\ntwo\n");
    for words in [&["log", "--json"][..], &["log", "--graph", "--all", "--json"]] {
        let log = run_in(&house, "copy", words).good().json();
        let subjects: Vec<&Value> = log.as_array().into_iter().flatten().map(|commit| &commit["summary"]).collect();
        assert_eq!(subjects, [&json!("Second")], "{words:?}");
    }
    assert!(run_in(&house, "copy", &["show"]).good().text().contains("+two"));
    let blame = run_in(&house, "copy", &["blame", "a.md", "--json"]).good().json();
    assert_eq!(blame.as_array().map(Vec::len), Some(2));
    house.write("copy/a.md", b"one\ntwo\nthree\n");
    run_in(&house, "copy", &["commit", "-m", "Third", "--push"]).good();
    run_in(&house, "notes", &["pull"]).good();
    assert_eq!(house.cat("notes/a.md"), b"one\ntwo\nthree\n");
    house.write("notes/a.md", b"four\n");
    run_in(&house, "notes", &["commit", "-m", "Fourth", "--push"]).good();
    run_in(&house, "copy", &["pull"]).good();
    assert_eq!(house.cat("copy/a.md"), b"four\n");
}

/// Makes the repository `notes` one whose every setting that names a program leaves a mark.
pub(crate) fn make_hostile(folder: &Path, mark: &Path) {
    let evil = format!("touch {}; false", mark.display());
    for name in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.gitProxy",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "gpg.program",
        "credential.helper",
        "sequence.editor",
        "pager.status",
        "pager.log",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
    ] {
        git(folder, &["config", name, &evil]);
    }
    for name in ["alias.status", "alias.log", "alias.diff"] {
        git(folder, &["config", name, &format!("!{evil}")]);
    }
    git(folder, &["config", "protocol.ext.allow", "always"]);
    git(folder, &["config", "core.hooksPath", ".git/evil"]);
    let hooks = folder.join(".git/evil");
    std::fs::create_dir_all(&hooks).expect("made");
    for name in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"] {
        let hook = hooks.join(name);
        std::fs::write(&hook, format!("#!/bin/sh\n{evil}\n")).expect("written");
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    std::fs::write(folder.join(".gitattributes"), "*.md filter=evil diff=evil merge=evil\n").expect("written");
}

#[test]
fn looking_at_a_hostile_repository_runs_nothing() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    house.write("notes/b.md", b"staged\n");
    git(&notes, &["add", "b.md"]);
    let mark = house.path("hacked");
    make_hostile(&notes, &mark);
    house.write("notes/a.md", b"one\ntwo\n");
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["diff"],
        &["diff", "a.md", "--json"],
        &["diff", "--staged"],
        &["diff", "--hunks"],
        &["log"],
        &["log", "--graph", "--all"],
        &["show"],
        &["blame", "a.md"],
        &["conflicts"],
        &["branch"],
        &["tag"],
        &["stash", "list"],
    ] {
        run_in(&house, "notes", words).good();
        assert!(!mark.exists(), "{words:?} ran a program of the repository");
    }
    house.run(&["open", "notes"]).good();
    assert_eq!(house.cat("notes/a.md"), b"one\ntwo\n");
    assert!(!mark.exists(), "nothing ran");
    // An address that is a program isn't used, though the repository allows it.
    git(&notes, &["config", "--unset-all", "remote.origin.uploadpack"]);
    let reached = house.path("reached");
    git(&notes, &["config", "remote.origin.url", &format!("ext::sh -c touch% {}", reached.display())]);
    let done = run_in(&house, "notes", &["fetch"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("'ext' not allowed") && !reached.exists(), "{done:?}");
}
