//! More steps that are killed: amending, applying and dropping a stash, commits with outputs, commits over GitHub's
//! API, and undoing an adoption. Every night, at more random moments.

use super::agents::{Said, house, model};
use super::git::{git, run_in, with_remote};
use super::git_faults::{kill_program, remove_named_lock};
use super::git_kills::{
    MAX_REPEATS, Moment, STASHED, change_for_stash, has, has_stashed, insist, is_read, keeps, kill_command, kill_git,
    pushed, random, repeat, settle,
};
use super::github_api::Hub;
use crate::program::{House, is_nightly, until};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Number of files that a fork changes.
const FORK_FILES: usize = 400;

/// Moments at which a commit is killed: those that hooks mark, and random ones.
fn commit_moments(seed: u64) -> Vec<Moment> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut moments = vec![
        Moment::Hook("pre-commit"),
        Moment::Reference("refs/heads/main", "prepared"),
        Moment::Reference("refs/heads/main", "committed"),
    ];
    let random_moments = if is_nightly() { 12 } else { 1 };
    for _ in 0..random_moments {
        moments.push(Moment::AfterIndexLock(random(&mut rng, 20_000)));
        moments.push(Moment::AfterStart(random(&mut rng, 150_000)));
    }
    moments
}

/// Number of times that an operation on a stash is killed.
fn stash_rounds() -> u32 {
    if is_nightly() { 20 } else { 4 }
}

/// The text of a file in the last commit; `None` if it isn't there.
fn committed(notes: &Path, path: &str) -> Option<String> {
    let done = Command::new("git").args(["show", &format!("HEAD:{path}")]).current_dir(notes).output();
    let done = done.expect("git is there");
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn a_killed_amend_leaves_the_old_commit_or_the_new_one() {
    let house = pushed(&[("a.md", "one\n"), ("mine.md", "mine\n")]);
    let notes = house.path("notes");
    let base = git(&notes, &["rev-parse", "HEAD"]);
    let mut text = "second\n".to_owned();
    house.write("notes/a.md", text.as_bytes());
    git(&notes, &["commit", "-qam", "Second"]);
    for (round, moment) in commit_moments(40).into_iter().enumerate() {
        let when = format!("amend at {moment:?}, {round}");
        let (old, message) = (text.clone(), format!("Amended, {round}"));
        text = format!("amended, {round}\n");
        house.write("notes/a.md", text.as_bytes());
        let words = ["commit", "--amend", "--all", "-m", message.as_str()];
        kill_git(&house, &words, moment);
        keeps(&house, &when, &[&old, &text]);
        assert_eq!(git(&notes, &["rev-parse", "HEAD~1"]), base, "{when}: one commit takes the place of another");
        let now = committed(&notes, "a.md").expect("it's there");
        assert!(now == old || now == text, "{when}: {now}");
        is_read(&house, &when, "a.md");
        repeat(&house, &when, &words, &|| {
            let is_locked = notes.join(".git/index.lock").exists();
            !is_locked && git(&notes, &["show", "-s", "--format=%s", "HEAD"]) == message
        });
        assert_eq!(committed(&notes, "a.md").as_ref(), Some(&text), "{when}");
        assert_eq!(git(&notes, &["rev-parse", "HEAD~1"]), base, "{when}");
        assert_eq!(house.read("notes/a.md"), text.as_bytes(), "{when}");
    }
    settle(&house, "amend");
}

#[test]
fn a_killed_apply_of_a_stash_keeps_the_stash() {
    let house = pushed(&[("a.md", "one\n"), ("b.md", "b\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(41);
    for round in 0..stash_rounds() {
        let moment = match round % 2 {
            0 => Moment::AfterIndexLock(random(&mut rng, 40_000)),
            _ => Moment::AfterStart(random(&mut rng, 150_000)),
        };
        let when = format!("stash apply at {moment:?}");
        change_for_stash(&house);
        git(&notes, &["stash", "push", "-q", "--include-untracked"]);
        let stash = git(&notes, &["rev-parse", "refs/stash"]);
        kill_git(&house, &["stash", "apply"], moment);
        keeps(&house, &when, &STASHED);
        is_read(&house, &when, "a.md");
        for _ in 0..MAX_REPEATS {
            let done = run_in(&house, "notes", &["stash", "apply"]);
            if done.code == 0 {
                break;
            }
            if !remove_named_lock(&house, &done) {
                // What is there already of the stash is in its way.
                let is_in_the_way = ["Commit or stash them first", "already exists"];
                assert!(is_in_the_way.iter().any(|it| done.err.contains(it)), "{when}: {}", done.err);
                git(&notes, &["reset", "-q", "--hard"]);
                git(&notes, &["clean", "-qfd"]);
            }
        }
        assert!(has_stashed(&house), "{when}");
        assert_eq!(git(&notes, &["rev-parse", "refs/stash"]), stash, "{when}");
        insist(&house, &when, &["stash", "drop"]);
        assert_eq!(git(&notes, &["stash", "list"]), "", "{when}");
    }
    git(&notes, &["reset", "-q", "--hard"]);
    settle(&house, "stash apply");
}

#[test]
fn a_killed_drop_of_a_stash_drops_no_other_one() {
    let house = pushed(&[("a.md", "one\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(42);
    let stashes = || git(&notes, &["stash", "list"]).lines().count();
    for round in 0..stash_rounds() {
        let moment = Moment::AfterStart(random(&mut rng, 200_000));
        let when = format!("stash drop at {moment:?}, {round}");
        git(&notes, &["stash", "clear"]);
        for name in ["kept", "dropped"] {
            house.write("notes/a.md", format!("{name}, {round}\n").as_bytes());
            git(&notes, &["stash", "push", "-q", "-m", name]);
        }
        kill_git(&house, &["stash", "drop", "0"], moment);
        let kept = format!("kept, {round}\n");
        keeps(&house, &when, &[&kept]);
        assert!((1..=2).contains(&stashes()), "{when}");
        repeat(&house, &when, &["stash", "drop", "0"], &|| stashes() == 1);
        insist(&house, &when, &["stash", "apply"]);
        assert_eq!(house.read("notes/a.md"), kept.as_bytes(), "{when}");
        git(&notes, &["reset", "-q", "--hard"]);
    }
    settle(&house, "stash drop");
}

#[test]
fn a_killed_commit_with_outputs_has_all_of_them_or_none() {
    let cell = |number: usize| format!("```python\nprint('tide', {number})\n```\n");
    let house = pushed(&[("a.md", &cell(0))]);
    let notes = house.path("notes");
    let output = "a.md.outputs/cell-1.txt";
    let workspace = house.path("W").display().to_string();
    for (round, moment) in commit_moments(43).into_iter().enumerate() {
        let number = round + 1;
        let when = format!("commit with outputs at {moment:?}, {number}");
        house.write("notes/a.md", cell(number).as_bytes());
        house.run(&["run", "a.md"]).good();
        let words = ["--workspace", &workspace, "commit", "a.md", "-m", &when, "--with-outputs"];
        kill_git(&house, &words, moment);
        keeps(&house, &when, &[&cell(number)]);
        // Each file is wholly the old one or the new one.
        let (old, new) = (format!("tide {round}\n"), format!("tide {number}\n"));
        let file = std::fs::read(notes.join(output)).unwrap_or_default();
        assert!(file.is_empty() && round == 0 || file == old.as_bytes() || file == new.as_bytes(), "{when}");
        let both = || (committed(&notes, "a.md"), committed(&notes, output));
        if both().0 == Some(cell(number)) {
            assert_eq!(both().1.as_ref(), Some(&new), "{when}: the note and its outputs are one commit");
        }
        is_read(&house, &when, "a.md");
        repeat(&house, &when, &words, &|| {
            !notes.join(".git/index.lock").exists() && both() == (Some(cell(number)), Some(new.clone()))
        });
    }
    settle(&house, "a commit with outputs");
}

#[test]
fn a_commit_over_the_api_that_is_killed_is_there_once_or_not_at_all() {
    let hub = Hub::with(&[("a.md", "one\n"), ("b.md", "other\n")]);
    hub.clone();
    let kill_at = |request: &str| {
        let (arrived, open) = hub.server.gate(request);
        let mut child = hub.command("copy", &["git", "commit", "-m", "Mine", "--push"]).spawn().expect("started");
        arrived.recv_timeout(Duration::from_secs(60)).expect("it asks");
        child.kill().expect("killed");
        child.wait().expect("gone");
        // The server does what it was asked for.
        drop(open);
    };
    let status = || hub.run_in("copy", &["status"]).good().text();
    hub.house.write("copy/a.md", b"one\ntwo\n");
    for request in
        ["POST /repos/ada/notes/git/blobs", "POST /repos/ada/notes/git/trees", "POST /repos/ada/notes/git/commits"]
    {
        kill_at(request);
        assert_eq!(hub.log(), "First", "{request}");
        assert!(status().ends_with(" M a.md\n"), "{request}: {}", status());
    }
    // The branch is moved, and nothing here knows it.
    kill_at("PATCH");
    until("the branch is moved", || hub.log() == "Mine\nFirst");
    assert!(status().ends_with(" M a.md\n"), "{}", status());
    hub.run_in("copy", &["commit", "-m", "Again", "--push"]).refused(1, "Pull first");
    hub.run_in("copy", &["pull"]).good();
    assert_eq!(hub.text("copy/a.md"), "one\ntwo\n");
    assert!(status().ends_with("\nNothing has changed since the last pull or commit.\n"), "{}", status());
    hub.run_in("copy", &["commit", "-m", "Again", "--push"]).refused(1, "Nothing has changed");
    assert_eq!(hub.log(), "Mine\nFirst", "there's one commit");

    // What is written after the kill isn't lost either, and others may be faster.
    hub.house.write("copy/a.md", b"one\ntwo\nthree\n");
    kill_at("PATCH");
    until("the branch is moved", || hub.log() == "Mine\nMine\nFirst");
    hub.house.write("copy/b.md", b"other\nmore\n");
    hub.elsewhere(&[("c.md", Some("theirs\n"))], "Theirs");
    hub.run_in("copy", &["pull"]).good();
    assert_eq!(hub.text("copy/a.md"), "one\ntwo\nthree\n");
    assert!(status().ends_with("\n M b.md\n"), "{}", status());
    hub.run_in("copy", &["commit", "-m", "More", "--push"]).good();
    assert_eq!(hub.log(), "More\nTheirs\nMine\nMine\nFirst");
    let remote = hub.house.path("remote.git");
    git(&remote, &["fsck", "--no-dangling"]);
    assert_eq!(git(&remote, &["show", "main:b.md"]), "other\nmore");
}

/// What `tracebook forks` says of a fork.
fn fork_of(house: &House, name: &str) -> Value {
    let all = house.run(&["forks", "--json"]).code(0).json();
    all.as_array().into_iter().flatten().find(|fork| fork["name"] == name).cloned().unwrap_or_default()
}

/// The changes that Git lists, without temporary files that a kill has left.
fn changes(notes: &Path) -> Vec<String> {
    let status = git(notes, &["status", "--porcelain"]);
    status.lines().filter(|line| !line.contains(".tracebook-")).map(str::to_owned).collect()
}

#[test]
fn a_killed_undo_of_an_adoption_is_finished_or_taken_back() {
    let house = house(&model(|_, _| -> Said { ("Done.".to_owned(), Vec::new()) }), &[("a.md", "one\n")]);
    let notes = house.path("notes");
    let workspace = house.path("W").display().to_string();
    let path = |number: usize| format!("f/{number:04}.txt");
    for number in 0..FORK_FILES {
        house.write(&format!("notes/{}", path(number)), b"before\n");
    }
    with_remote(&house);
    let all_are =
        |text: &str| (0..FORK_FILES).all(|number| house.read(&format!("notes/{}", path(number))) == text.as_bytes());
    // The first two are killed while files are written.
    let moments = [
        (None, true),
        (None, false),
        (Some(Moment::Hook("pre-commit")), false),
        (Some(Moment::Reference("refs/heads/main", "committed")), false),
    ];
    for (round, (moment, takes_back)) in moments.into_iter().enumerate() {
        let (name, text) = (format!("fork-{round}"), format!("fork {round}\n"));
        let when = format!("undo at {moment:?}");
        house.run(&["ask", "go", "--fork", &name]).code(0);
        let fork = PathBuf::from(fork_of(&house, &name)["folder"].as_str().expect("a folder"));
        for number in 0..FORK_FILES {
            std::fs::write(fork.join(path(number)), &text).expect("written");
        }
        house.run(&["forks", "adopt", &name]).code(0);
        assert!(all_are(&text), "{when}: it's adopted");
        let words = ["--workspace", &workspace, "forks", "undo", &name];
        match moment {
            Some(moment) => kill_command(&house, "notes", &words, moment),
            None => {
                let is_begun = || has(&std::fs::read(notes.join(path(20))).unwrap_or_default(), "before");
                kill_program(&house, "", &words, &is_begun, Duration::ZERO);
                assert!(!all_are("before\n"), "{when}: it's killed in the middle");
            }
        }
        let next = house.run(&["runs"]).code(0);
        assert!(next.err.contains(&format!("`tracebook forks adopt {name}` finishes it")), "{when}: {}", next.err);
        assert_eq!(fork_of(&house, &name)["state"], "interrupted", "{when}");
        // A lock of the killed Git would be in the way of the commit.
        insist(&house, &when, &["add", "a.md"]);
        if takes_back {
            house.run(&words).code(0);
            assert!(all_are(&text), "{when}: it's still adopted");
            assert_eq!(changes(&notes), [""; 0], "{when}");
            assert_eq!(fork_of(&house, &name)["state"], "adopted", "{when}");
            house.run(&words).code(0);
        } else {
            house.run(&["forks", "adopt", &name]).code(0);
        }
        assert!(all_are("before\n"), "{when}: it's undone");
        assert_eq!(changes(&notes), [""; 0], "{when}");
        let subject = format!("Undo the adoption of fork {name}");
        let log = git(&notes, &["log", "--format=%s"]);
        assert_eq!(log.lines().filter(|line| **line == subject).count(), 1, "{when}: {log}");
        house.run(&words).refused(2, "is adopted");
        assert_eq!(house.run(&["runs"]).code(0).err, "", "{when}");
        house.run(&["forks", "discard", &name]).code(0);
        git(&notes, &["fsck", "--no-dangling"]);
    }
    settle(&house, "undo");
}
