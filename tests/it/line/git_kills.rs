//! Each step of Git is killed, at the moments that a hook marks and at random ones. Afterwards no text is lost, the
//! repository is whole, and the same command works or says what to delete first.

use super::agents::{Said, house, model};
use super::git::{git, know_user, run_in, with_remote};
use super::git_faults::{kill_program, remove_named_lock};
use crate::program::{House, noise};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a command is repeated until all that a kill has left is gone.
pub(super) const MAX_REPEATS: usize = 8;
/// Number of notes that a branch changes, each of which takes a while to write.
const SLOW_NOTES: usize = 8;

/// When a command is killed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// While a hook of the repository runs.
    Hook(&'static str),
    /// While a reference with this text in its name is locked (`prepared`), or once it's written (`committed`).
    Reference(&'static str, &'static str),
    /// So many microseconds after Git has locked the index.
    AfterIndexLock(u64),
    /// So many microseconds after the program was started.
    AfterStart(u64),
}

/// Kills `tracebook git …` in `notes` at a moment.
pub(super) fn kill_git(house: &House, words: &[&str], moment: Moment) {
    kill_git_of(house, "notes", words, moment);
}

/// The same with a hook or lock of another repository, such as the remote.
fn kill_git_of(house: &House, repository: &str, words: &[&str], moment: Moment) {
    let all: Vec<&str> = ["git"].iter().chain(words).copied().collect();
    kill_command(house, repository, &all, moment);
}

/// The same for any command that starts Git.
pub(super) fn kill_command(house: &House, repository: &str, words: &[&str], moment: Moment) {
    let begun = house.path("begun");
    let folder = house.path(repository);
    let git_folder = if folder.join(".git").exists() { folder.join(".git") } else { folder };
    let stop = format!("{{ touch {}; exec sleep 600; }}", begun.display());
    let mut hook = None;
    let later = match moment {
        Moment::Hook(name) => {
            hook = Some((name, stop));
            0
        }
        Moment::Reference(name, phase) => {
            let script = format!("if [ \"$1\" = {phase} ] && grep -q {name}; then {stop}; fi; exit 0");
            hook = Some(("reference-transaction", script));
            0
        }
        Moment::AfterIndexLock(later) | Moment::AfterStart(later) => later,
    };
    let hooks = git_folder.join("hooks");
    if let Some((name, script)) = &hook {
        std::fs::create_dir_all(&hooks).expect("made");
        std::fs::write(hooks.join(name), format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(hooks.join(name), std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let is_at_work = || match moment {
        Moment::Hook(_) | Moment::Reference(..) => begun.exists(),
        Moment::AfterIndexLock(_) => git_folder.join("index.lock").exists(),
        Moment::AfterStart(_) => true,
    };
    kill_program(house, "notes", words, &is_at_work, Duration::from_micros(later));
    if let Some((name, _)) = hook {
        std::fs::remove_file(hooks.join(name)).expect("removed");
        std::fs::remove_file(&begun).unwrap_or_else(|_| panic!("{words:?} never came to {moment:?}"));
    }
}

/// Asserts that the repository is whole, and that these texts are in files or in what Git still reaches.
#[track_caller]
pub(super) fn keeps(house: &House, when: &str, texts: &[&str]) {
    let notes = house.path("notes");
    git(&notes, &["fsck", "--no-dangling"]);
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&notes).expect("listed").flatten().filter(|entry| entry.path().is_file()) {
        // Git may remove a file between.
        all.extend(std::fs::read(entry.path()).unwrap_or_default());
    }
    let script = "git rev-list --objects --all --reflog --indexed-objects | cut -d' ' -f1 | git cat-file --batch";
    let done = Command::new("sh").args(["-c", script]).current_dir(&notes).output().expect("sh is there");
    all.extend(done.stdout);
    for text in texts {
        assert!(has(&all, text), "{when}: {text:?} is lost");
    }
}

pub(super) fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Asserts that the program reads a note as it is in its file, if Git has written it.
#[track_caller]
pub(super) fn is_read(house: &House, when: &str, note: &str) {
    if house.path("notes").join(note).exists() {
        assert_eq!(house.cat(&format!("notes/{note}")), house.read(&format!("notes/{note}")), "{when}: {note}");
    }
}

/// Runs a command again until its end is reached, and does what its refusals say.
#[track_caller]
pub(super) fn repeat(house: &House, when: &str, words: &[&str], is_done: &dyn Fn() -> bool) {
    for _ in 0..MAX_REPEATS {
        if is_done() {
            return;
        }
        let done = run_in(house, "notes", words);
        if done.code == 0 || remove_named_lock(house, &done) {
            continue;
        }
        assert!(done.err.contains("Commit or stash them first"), "{when}: {}", done.err);
        // Files that Git had begun to write count as changes of the user's.
        let status = run_in(house, "notes", &["status", "--json"]).good().json();
        let changed = status["files"].as_array().cloned().unwrap_or_default();
        let begun: Vec<&str> = changed.iter().filter_map(|file| file["path"].as_str()).collect();
        let begun: Vec<&str> = begun.into_iter().filter(|path| path.starts_with("slow")).collect();
        assert!(!begun.is_empty(), "{when}: {} {status}", done.err);
        discard(house, when, &begun);
    }
    panic!("{when}: {words:?} comes to no end: {}", run_in(house, "notes", &["status"]).text());
}

#[track_caller]
fn discard(house: &House, when: &str, files: &[&str]) {
    let words: Vec<&str> = ["restore"].iter().chain(files).copied().collect();
    insist(house, when, &words);
}

/// Runs a command until nothing is in its way but locks that it names.
#[track_caller]
pub(super) fn insist(house: &House, when: &str, words: &[&str]) {
    for _ in 0..MAX_REPEATS {
        let done = run_in(house, "notes", words);
        if done.code == 0 {
            return;
        }
        assert!(remove_named_lock(house, &done), "{when}: {words:?}: {}", done.err);
    }
    panic!("{when}: {words:?} comes to no end");
}

/// Makes a commit and a tag, so that no lock is left afterwards.
#[track_caller]
pub(super) fn settle(house: &House, when: &str) {
    let head = git(&house.path("notes"), &["rev-parse", "HEAD"]);
    house.write("notes/probe.md", format!("after {when}, {head}\n").as_bytes());
    run_in(house, "notes", &["status"]).good();
    for words in [
        &["add", "probe.md"][..],
        &["commit", "-m", "Probe", "probe.md"],
        &["tag", "probe"],
        &["tag", "probe", "--delete"],
    ] {
        insist(house, when, words);
    }
}

/// A repository `notes` with a remote, in which all is committed and pushed.
pub(super) fn pushed(files: &[(&str, &str)]) -> House {
    let house = House::with(files);
    with_remote(&house);
    git(&house.path("notes"), &["push", "-q", "-u", "origin", "main"]);
    house
}

pub(super) fn random(rng: &mut StdRng, most: u64) -> u64 {
    rng.random_range(0..most)
}

#[test]
fn a_killed_clone_leaves_no_folder_that_looks_whole() {
    let house = pushed(&[("a.md", "one\n")]);
    let notes = house.path("notes");
    for number in 0..300 {
        house.write(&format!("notes/n{number}.md"), format!("note {number}\n").as_bytes());
    }
    house.write("notes/large.bin", &noise(7, 6 << 20));
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "Many"]);
    git(&notes, &["push", "-q"]);
    let address = format!("file://{}", house.path("remote.git").display());
    let mut rng = StdRng::seed_from_u64(24);
    let mut killed = 0;
    for round in 0..6 {
        let name = format!("copy{round}");
        let (copy, hidden) = (house.path(&name), house.path(&format!(".{name}.tracebook-clone")));
        let words = ["git", "clone", address.as_str(), name.as_str()];
        let later = Duration::from_micros(random(&mut rng, 150_000));
        kill_program(&house, "", &words, &|| hidden.exists(), later);
        if !copy.exists() {
            killed += 1;
            run_in(&house, "", &words[1..]).good();
        }
        // It's whole: made by the second clone, or by the first, which had come to its end.
        assert_eq!(git(&copy, &["status", "--porcelain"]), "", "{round}");
        assert_eq!(house.read(&format!("{name}/large.bin")).len(), 6 << 20, "{round}");
        git(&copy, &["fsck"]);
        assert!(!hidden.join("files").exists(), "{round}: what was left is removed");
    }
    assert!(killed >= 2, "only {killed} clones were killed at work");
}

#[test]
fn a_killed_fetch_or_push_is_repeated() {
    let house = pushed(&[("a.md", "one\n")]);
    let (notes, remote) = (house.path("notes"), house.path("remote.git"));
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house.write("notes/mine.md", b"not committed\n");
    let mut rng = StdRng::seed_from_u64(25);
    let moments = [
        Moment::Reference("origin/main", "prepared"),
        Moment::Reference("origin/main", "committed"),
        Moment::AfterStart(random(&mut rng, 120_000)),
    ];
    for moment in moments {
        let when = format!("fetch at {moment:?}");
        house.write("other/a.md", format!("{when}\n").as_bytes());
        house.write("other/large.bin", &noise(8, 2 << 20));
        git(&house.path("other"), &["add", "-A"]);
        git(&house.path("other"), &["commit", "-qm", "More"]);
        git(&house.path("other"), &["push", "-q"]);
        kill_git(&house, &["fetch"], moment);
        keeps(&house, &when, &["not committed", "one\n"]);
        let newest = git(&house.path("other"), &["rev-parse", "HEAD"]);
        repeat(&house, &when, &["fetch"], &|| git(&notes, &["rev-parse", "origin/main"]) == newest);
        assert_eq!(house.read("notes/a.md"), b"one\n", "{when}");
    }
    git(&notes, &["pull", "-q"]);

    for (repository, moment) in [
        ("notes", Moment::Hook("pre-push")),
        ("notes", Moment::Reference("origin/main", "prepared")),
        ("remote.git", Moment::Hook("pre-receive")),
        ("remote.git", Moment::Reference("refs/heads/main", "committed")),
        ("notes", Moment::AfterStart(random(&mut rng, 120_000))),
    ] {
        let when = format!("push at {moment:?} of {repository}");
        let text = format!("pushed: {when}\n");
        house.write("notes/a.md", text.as_bytes());
        git(&notes, &["commit", "-qm", &when, "a.md"]);
        kill_git_of(&house, repository, &["push"], moment);
        keeps(&house, &when, &["not committed", &text]);
        git(&remote, &["fsck", "--no-dangling"]);
        let newest = git(&notes, &["rev-parse", "HEAD"]);
        repeat(&house, &when, &["push"], &|| git(&remote, &["rev-parse", "main"]) == newest);
        // A push that finds nothing to send doesn't mind the lock of what is known of the remote.
        repeat(&house, &when, &["fetch"], &|| git(&notes, &["rev-parse", "origin/main"]) == newest);
        is_read(&house, &when, "a.md");
    }
    // A lock that is left in the remote is reported, and the branch stays ahead.
    house.write("notes/a.md", b"last\n");
    git(&notes, &["commit", "-qm", "Last", "a.md"]);
    kill_git_of(&house, "remote.git", &["push"], Moment::Reference("refs/heads/main", "prepared"));
    let lock = remote.join("refs/heads/main.lock");
    assert!(lock.exists(), "the kill leaves it");
    let done = run_in(&house, "notes", &["push"]).refused(2, "main.lock and try again");
    assert!(done.err.contains("remote.git"), "{}", done.err);
    // The branch that `HEAD` names is locked with it.
    insist(&house, "push", &["push"]);
    assert_eq!(git(&remote, &["show", "main:a.md"]), "last");
    settle(&house, "push");
}

/// Notes that a filter makes slow to read and to write, on `main` and changed on `idea`; the user has changed others.
fn slow_branches() -> House {
    let house = House::with(&[("a.md", "one\n"), ("mine.md", "mine\n")]);
    for number in 0..SLOW_NOTES {
        house.write(&format!("notes/slow{number}.md"), b"on main\n");
    }
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "-c", "idea"]);
    for number in 0..SLOW_NOTES {
        house.write(&format!("notes/slow{number}.md"), b"on idea\n");
    }
    git(&notes, &["commit", "-qam", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    for name in ["filter.slow.smudge", "filter.slow.clean"] {
        git(&notes, &["config", name, "sleep 0.01; cat"]);
    }
    house.write("notes/.git/info/attributes", b"slow*.md filter=slow\n");
    house.write("notes/mine.md", b"mine, changed\n");
    house.write("notes/new.md", b"new and nowhere else\n");
    house
}

#[test]
fn a_killed_switch_leaves_the_users_changes() {
    let house = slow_branches();
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(26);
    let slow = 20_000 * SLOW_NOTES as u64;
    let moments = [
        Moment::Reference("HEAD", "prepared"),
        Moment::Hook("post-checkout"),
        Moment::AfterIndexLock(random(&mut rng, slow)),
        Moment::AfterIndexLock(random(&mut rng, slow)),
        Moment::AfterIndexLock(random(&mut rng, slow)),
    ];
    for (round, moment) in moments.into_iter().enumerate() {
        let branch = if round % 2 == 0 { "idea" } else { "main" };
        let when = format!("switch to {branch} at {moment:?}");
        kill_git(&house, &["switch", branch], moment);
        keeps(&house, &when, &["mine, changed", "new and nowhere else"]);
        assert_eq!(house.read("notes/mine.md"), b"mine, changed\n", "{when}");
        is_read(&house, &when, "slow0.md");
        repeat(&house, &when, &["switch", branch], &|| {
            git(&notes, &["branch", "--show-current"]) == branch && !notes.join(".git/index.lock").exists()
        });
        // Files that Git hadn't written before the branch was moved are its own, too.
        let left = git(&notes, &["diff", "--name-only", "HEAD"]);
        let left: Vec<&str> = left.lines().filter(|name| name.starts_with("slow")).collect();
        if !left.is_empty() {
            discard(&house, &when, &left);
        }
        let expected = format!("on {branch}\n");
        for number in 0..SLOW_NOTES {
            assert_eq!(house.read(&format!("notes/slow{number}.md")), expected.as_bytes(), "{when}: {number}");
        }
        assert_eq!(house.cat("notes/slow0.md"), expected.as_bytes(), "{when}");
    }
    assert_eq!(house.read("notes/new.md"), b"new and nowhere else\n");
    settle(&house, "switch");
}

/// Text of a file that Git knows, and of one that is new, for a stash.
pub(super) const STASHED: [&str; 2] = ["a that was stashed", "new that was stashed"];

/// Changes a known file and makes a new one. Nothing else has changed, and there's no stash.
pub(super) fn change_for_stash(house: &House) {
    let notes = house.path("notes");
    git(&notes, &["reset", "-q", "--hard"]);
    git(&notes, &["clean", "-qfd"]);
    git(&notes, &["stash", "clear"]);
    house.write("notes/a.md", format!("{}\n", STASHED[0]).as_bytes());
    house.write("notes/new.md", format!("{}\n", STASHED[1]).as_bytes());
}

/// Returns whether the files have what was stashed.
pub(super) fn has_stashed(house: &House) -> bool {
    let text = |name: &str| std::fs::read(house.path("notes").join(name)).unwrap_or_default();
    has(&text("a.md"), STASHED[0]) && has(&text("new.md"), STASHED[1])
}

#[test]
fn a_killed_stash_has_the_text_in_the_files_or_in_the_stash() {
    let house = pushed(&[("a.md", "one\n"), ("b.md", "b\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(27);
    for moment in [
        Moment::Reference("refs/stash", "prepared"),
        Moment::Reference("refs/stash", "committed"),
        Moment::AfterIndexLock(random(&mut rng, 20_000)),
        Moment::AfterIndexLock(random(&mut rng, 60_000)),
    ] {
        let when = format!("stash push at {moment:?}");
        change_for_stash(&house);
        kill_git(&house, &["stash", "push"], moment);
        keeps(&house, &when, &STASHED);
        is_read(&house, &when, "a.md");
        repeat(&house, &when, &["stash", "push"], &|| git(&notes, &["status", "--porcelain"]).is_empty());
        assert_eq!(house.read("notes/a.md"), b"one\n", "{when}");
        // What was killed after the first stash was made has put the rest into a second one.
        let oldest = git(&notes, &["stash", "list"]).lines().count() - 1;
        insist(&house, &when, &["stash", "pop", &oldest.to_string()]);
        assert!(has_stashed(&house), "{when}: the oldest stash has it");
        settle(&house, &when);
    }
}

#[test]
fn a_killed_pop_of_a_stash_has_the_text_in_the_files_or_in_the_stash() {
    let house = pushed(&[("a.md", "one\n"), ("b.md", "b\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(32);
    for moment in [
        Moment::Reference("refs/stash", "prepared"),
        Moment::Reference("refs/stash", "committed"),
        Moment::AfterIndexLock(random(&mut rng, 20_000)),
        Moment::AfterIndexLock(random(&mut rng, 60_000)),
    ] {
        let when = format!("stash pop at {moment:?}");
        change_for_stash(&house);
        git(&notes, &["stash", "push", "-q", "--include-untracked"]);
        kill_git(&house, &["stash", "pop"], moment);
        keeps(&house, &when, &STASHED);
        is_read(&house, &when, "a.md");
        for _ in 0..MAX_REPEATS {
            if has_stashed(&house) {
                break;
            }
            let done = run_in(&house, "notes", &["stash", "pop"]);
            if done.code == 0 || remove_named_lock(&house, &done) {
                continue;
            }
            // What is there already of the stash is in its way, and still in the stash.
            let is_in_the_way = ["Commit or stash them first", "already exists"].iter().any(|it| done.err.contains(it));
            assert!(is_in_the_way, "{when}: {}", done.err);
            git(&notes, &["reset", "-q", "--hard"]);
            git(&notes, &["clean", "-qfd"]);
        }
        assert!(has_stashed(&house), "{when}");
        insist(&house, &when, &["stash", "push"]);
        settle(&house, &when);
    }
}

/// A text of two hunks, before and after.
fn two_hunks() -> [String; 2] {
    let old: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let new = old.replace("line 2\n", "second line\n").replace("line 28\n", "line 28, changed\n");
    [old, new]
}

#[test]
fn a_killed_add_leaves_the_file_as_it_is() {
    let [old, new] = two_hunks();
    let house = pushed(&[("a.md", &old), ("b.md", "b\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(28);
    let staged = || git(&notes, &["diff", "--cached", "-U0"]);
    for (words, wanted) in
        [(&["add", "a.md"][..], "+second line"), (&["add", "--hunk", "2", "a.md"], "+line 28, changed")]
    {
        for moment in [
            Moment::Hook("post-index-change"),
            Moment::AfterIndexLock(random(&mut rng, 3_000)),
            Moment::AfterStart(random(&mut rng, 120_000)),
        ] {
            let when = format!("{words:?} at {moment:?}");
            git(&notes, &["reset", "-q"]);
            house.write("notes/a.md", new.as_bytes());
            kill_git(&house, words, moment);
            keeps(&house, &when, &["second line", "line 28, changed"]);
            assert_eq!(house.read("notes/a.md"), new.as_bytes(), "{when}");
            repeat(&house, &when, words, &|| staged().contains(wanted));
            assert_eq!(staged().contains("+second line"), words.len() == 2, "{when}: only what was chosen is staged");
            assert_eq!(house.read("notes/a.md"), new.as_bytes(), "{when}");
        }
    }
    settle(&house, "add");
}

#[test]
fn a_killed_restore_keeps_what_is_discarded() {
    let [old, new] = two_hunks();
    let house = pushed(&[("a.md", &old), ("b.md", "b\n")]);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(33);
    for (words, kept) in [(&["restore", "a.md"][..], ""), (&["restore", "--hunk", "1", "a.md"], "line 28, changed")] {
        let mut moments =
            vec![Moment::AfterStart(random(&mut rng, 120_000)), Moment::AfterStart(random(&mut rng, 60_000))];
        if kept.is_empty() {
            moments.extend([Moment::Hook("post-checkout"), Moment::AfterIndexLock(random(&mut rng, 3_000))]);
        }
        for moment in moments {
            let when = format!("{words:?} at {moment:?}");
            house.write("notes/a.md", new.as_bytes());
            kill_git(&house, words, moment);
            git(&notes, &["fsck", "--no-dangling"]);
            let all = Command::new("git")
                .args(["cat-file", "--batch-all-objects", "--batch", "--unordered"])
                .current_dir(&notes)
                .output()
                .expect("git is there");
            // Git takes the old file away before it writes the other.
            let file = std::fs::read(notes.join("a.md")).unwrap_or_default();
            assert!(has(&all.stdout, "second line") || has(&file, "second line"), "{when}: the text is kept");
            is_read(&house, &when, "a.md");
            repeat(&house, &when, words, &|| {
                let file = std::fs::read(notes.join("a.md")).unwrap_or_default();
                !file.is_empty() && !has(&file, "second line")
            });
            assert!(has(&house.read("notes/a.md"), if kept.is_empty() { "line 28\n" } else { kept }), "{when}");
        }
    }
    settle(&house, "restore");
}

/// What both sides of a conflict have.
const SIDES: [&str; 2] = ["theirs of idea", "ours of main"];

/// A repository whose branches `main` and `idea` have changed the same line. The tag `start` is where `main` is.
fn conflicting() -> House {
    let house = pushed(&[("a.md", "one\n"), ("b.md", "b\n")]);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "-c", "idea"]);
    house.write("notes/a.md", format!("{}\n", SIDES[0]).as_bytes());
    git(&notes, &["commit", "-qam", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    house.write("notes/a.md", format!("{}\n", SIDES[1]).as_bytes());
    git(&notes, &["commit", "-qam", "Main"]);
    git(&notes, &["tag", "start"]);
    house
}

/// Begins a merge with `idea`, or a rebase onto it, that stops at the conflict.
fn conflict(house: &House, verb: &str) {
    let notes = house.path("notes");
    git(&notes, &["reset", "-q", "--hard"]);
    git(&notes, &["checkout", "-q", "-B", "main", "start"]);
    run_in(house, "notes", &[verb, "idea", "--keep-conflicts"]).code(1);
    assert_eq!(under_way(house), json!(verb));
}

fn under_way(house: &House) -> Value {
    let status = run_in(house, "notes", &["status", "--json"]).good().json();
    status["branch"]["under_way"].clone()
}

/// Ends a merge or rebase with `--continue` or `--abort`.
#[track_caller]
fn end_half_done(house: &House, when: &str, words: &[&str]) {
    for _ in 0..MAX_REPEATS {
        if under_way(house) == Value::Null {
            return;
        }
        let done = run_in(house, "notes", words);
        assert!(done.code == 0 || remove_named_lock(house, &done), "{when}: {}", done.err);
    }
    panic!("{when}: it isn't over");
}

#[test]
fn a_killed_resolve_is_repeated() {
    let house = conflicting();
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(29);
    let conflicts = || git(&notes, &["ls-files", "--unmerged"]);
    let resolve = ["resolve", "a.md", "--both"];
    for moment in [
        Moment::Hook("post-index-change"),
        Moment::AfterIndexLock(random(&mut rng, 3_000)),
        Moment::AfterStart(random(&mut rng, 120_000)),
        Moment::AfterStart(random(&mut rng, 60_000)),
    ] {
        let when = format!("resolve at {moment:?}");
        conflict(&house, "merge");
        kill_git(&house, &resolve, moment);
        keeps(&house, &when, &SIDES);
        assert_eq!(under_way(&house), json!("merge"), "{when}");
        // Once a side is chosen, only staging is left.
        for _ in 0..MAX_REPEATS {
            if conflicts().is_empty() {
                break;
            }
            let file = run_in(&house, "notes", &["conflicts", "a.md", "--json"]).good().json()["file"].clone();
            let words = if file["regions"] != json!([]) { &resolve[..] } else { &["add", "a.md"] };
            let done = run_in(&house, "notes", words);
            assert!(done.code == 0 || remove_named_lock(&house, &done), "{when}: {}", done.err);
        }
        assert_eq!(conflicts(), "", "{when}");
        let text = house.read("notes/a.md");
        assert_eq!(String::from_utf8_lossy(&text), format!("{}\n{}\n", SIDES[1], SIDES[0]), "{when}");
        assert_eq!(house.cat("notes/a.md"), text, "{when}");
        insist(&house, &when, &["merge", "--continue"]);
    }
    settle(&house, "resolve");
}

#[test]
fn a_killed_continue_is_repeated() {
    let house = conflicting();
    let notes = house.path("notes");
    for (verb, moment) in [
        ("merge", Moment::Hook("prepare-commit-msg")),
        ("merge", Moment::Reference("refs/heads/main", "prepared")),
        ("merge", Moment::Reference("refs/heads/main", "committed")),
        ("rebase", Moment::Hook("prepare-commit-msg")),
        ("rebase", Moment::Reference("refs/heads/main", "prepared")),
    ] {
        let when = format!("{verb} --continue at {moment:?}");
        conflict(&house, verb);
        house.write("notes/a.md", b"theirs of idea and ours of main\n");
        git(&notes, &["add", "a.md"]);
        kill_git(&house, &[verb, "--continue"], moment);
        keeps(&house, &when, &["theirs of idea and ours of main"]);
        end_half_done(&house, &when, &[verb, "--continue"]);
        assert_eq!(git(&notes, &["branch", "--show-current"]), "main", "{when}");
        assert_eq!(git(&notes, &["show", "HEAD:a.md"]), "theirs of idea and ours of main", "{when}");
        is_read(&house, &when, "a.md");
        settle(&house, &when);
    }
}

#[test]
fn a_killed_abort_is_repeated() {
    let house = conflicting();
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(34);
    for (verb, moment) in [
        ("merge", Moment::AfterIndexLock(random(&mut rng, 3_000))),
        ("merge", Moment::Hook("post-index-change")),
        ("rebase", Moment::AfterIndexLock(random(&mut rng, 3_000))),
        ("rebase", Moment::Reference("HEAD", "prepared")),
    ] {
        let when = format!("{verb} --abort at {moment:?}");
        conflict(&house, verb);
        kill_git(&house, &[verb, "--abort"], moment);
        keeps(&house, &when, &SIDES);
        end_half_done(&house, &when, &[verb, "--abort"]);
        assert_eq!(git(&notes, &["rev-parse", "HEAD"]), git(&notes, &["rev-parse", "start"]), "{when}");
        if std::fs::read(notes.join("a.md")).ok().as_deref() != Some(b"ours of main\n") {
            // Git was killed between the branch and the files.
            discard(&house, &when, &["a.md"]);
        }
        assert_eq!(house.cat("notes/a.md"), b"ours of main\n", "{when}");
        settle(&house, &when);
    }
}

#[test]
fn a_killed_branch_or_tag_is_there_or_not() {
    let house = pushed(&[("a.md", "one\n")]);
    let notes = house.path("notes");
    house.write("notes/a.md", b"not committed\n");
    let exists = |name: &str| {
        let words = ["show-ref", "--verify", "--quiet", name];
        Command::new("git").args(words).current_dir(&notes).status().expect("git is there").success()
    };
    for phase in ["prepared", "committed"] {
        for (words, name, is_made) in [
            (&["branch", "next"][..], "refs/heads/next", true),
            (&["branch", "next", "--delete"], "refs/heads/next", false),
            (&["switch", "other", "--create"], "refs/heads/other", true),
            (&["tag", "v1", "-m", "The first"], "refs/tags/v1", true),
            (&["tag", "v1", "--delete"], "refs/tags/v1", false),
        ] {
            let when = format!("{words:?} at {phase}");
            kill_git(&house, words, Moment::Reference(name, phase));
            keeps(&house, &when, &["not committed"]);
            repeat(&house, &when, words, &|| exists(name) == is_made);
            assert_eq!(house.read("notes/a.md"), b"not committed\n", "{when}");
        }
        for words in [&["switch", "main"][..], &["branch", "other", "--delete"]] {
            insist(&house, phase, words);
        }
        settle(&house, phase);
    }
    assert_eq!(git(&notes, &["tag"]), "");
}

#[test]
fn a_killed_discard_of_a_fork_leaves_the_project_and_is_repeated() {
    let house = house(&model(|_, _| -> Said { ("Done.".to_owned(), Vec::new()) }), &[("a.md", "one\n")]);
    let notes = house.path("notes");
    for number in 0..400 {
        house.write(&format!("notes/f/{number:03}.txt"), b"before\n");
    }
    with_remote(&house);
    house.write("notes/a.md", b"not committed\n");
    let mut rng = StdRng::seed_from_u64(30);
    for (round, most) in [30_000, 120_000, 400_000].into_iter().enumerate() {
        let name = format!("fork-{round}");
        house.run(&["ask", "go", "--fork", &name]).code(0);
        let branch = format!("tracebook/fork-{name}");
        assert!(git(&notes, &["branch", "--list", &branch]).contains(&branch), "{round}");
        let find = || {
            let all = house.run(&["forks", "--json"]).code(0).json();
            all.as_array().into_iter().flatten().find(|fork| fork["name"] == name.as_str()).cloned()
        };
        let copied = PathBuf::from(find().expect("it's there")["folder"].as_str().expect("a folder")).join("f");
        let files = || std::fs::read_dir(&copied).map_or(0, |all| all.count());
        let all = files();
        assert_eq!(all, 400, "{round}");
        let words = ["forks", "discard", name.as_str()];
        let later = Duration::from_micros(random(&mut rng, most));
        kill_program(&house, "", &words, &|| files() < all, later);
        keeps(&house, &name, &["not committed"]);
        assert_eq!(house.read("notes/a.md"), b"not committed\n", "{round}");
        for _ in 0..MAX_REPEATS {
            if find().is_none() {
                break;
            }
            house.run(&words).code(0);
        }
        assert!(find().is_none() && !copied.exists() && !house.path("W/forks").join(&name).exists(), "{round}");
        assert_eq!(git(&notes, &["branch", "--format=%(refname:short)"]), "main", "{round}");
        assert_eq!(git(&notes, &["worktree", "list"]).lines().count(), 1, "{round}");
        assert_eq!(git(&notes, &["ls-files", "f"]).lines().count(), 400, "{round}");
        assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md", "{round}");
    }
    settle(&house, "discard");
}

#[test]
fn a_killed_commit_of_an_agent_is_whole_or_not_there() {
    let asked = Arc::new(AtomicBool::new(false));
    let heard = asked.clone();
    let address = model(move |turn, _| -> Said {
        match turn {
            0 => {
                heard.store(true, Ordering::Release);
                (String::new(), vec![("git_commit", json!({"volume": "notes", "message": "By the agent"}))])
            }
            _ => ("Done.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let mut rng = StdRng::seed_from_u64(31);
    for round in 0..5 {
        for number in 0..60 {
            house.write(&format!("notes/n{number}.txt"), format!("round {round}, number {number}\n").as_bytes());
        }
        let before = git(&notes, &["rev-parse", "HEAD"]);
        asked.store(false, Ordering::Release);
        let at_work = || asked.load(Ordering::Acquire);
        let later = Duration::from_micros(random(&mut rng, 120_000));
        kill_program(&house, "", &["ask", "commit", "--approve", "git_commit", "--json"], &at_work, later);
        let when = format!("an agent's commit, {round}");
        let texts = [format!("round {round}, number 0\n"), format!("round {round}, number 59\n")];
        keeps(&house, &when, &[&texts[0], &texts[1]]);
        let head = git(&notes, &["rev-parse", "HEAD"]);
        if head != before {
            assert_eq!(git(&notes, &["rev-parse", "HEAD~1"]), before, "{when}: one commit");
            assert_eq!(git(&notes, &["diff", "--name-only", "HEAD"]), "", "{when}: all of it");
        }
        is_read(&house, &when, "a.md");
        house.run(&["runs", "--json"]).code(0);
        repeat(&house, &when, &["commit", "-m", "By the user"], &|| git(&notes, &["status", "--porcelain"]).is_empty());
        assert_eq!(git(&notes, &["show", "HEAD:n59.txt"]), texts[1].trim(), "{when}");
    }
    settle(&house, "an agent's commit");
}
