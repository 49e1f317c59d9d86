//! Revisions, times and renames of Git on the command line: what the program shows is what Git shows.

use super::agents::house;
use super::git::{caller, git, know_user, run_in, with_remote};
use crate::program::{House, start_import};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// When the first commit of a test is made, in seconds since 1970.
const FIRST_TIME: i64 = 1_700_000_000;

/// Runs Git at a time, so that the order of commits is known.
fn git_at(folder: &Path, time: i64, words: &[&str]) {
    let date = format!("{time} +0000");
    let mut command = Command::new("git");
    command.args(words).current_dir(folder).env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
    let done = command.output().expect("git is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Commits all of a folder at a time.
fn commit_at(folder: &Path, time: i64, message: &str) {
    git_at(folder, time, &["add", "-A"]);
    git_at(folder, time, &["commit", "-q", "--allow-empty", "-m", message]);
}

/// Makes the folder `notes` a repository, with nothing committed.
fn init(house: &House) -> std::path::PathBuf {
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    notes
}

/// The hashes that `tracebook git log … --json` lists.
#[track_caller]
fn log(house: &House, folder: &str, words: &[&str]) -> Vec<String> {
    let all: Vec<&str> = ["log", "--json", "--limit", "1000"].iter().chain(words).copied().collect();
    let commits = run_in(house, folder, &all).good().json();
    let id = |commit: &Value| commit["id"].as_str().expect("a hash").to_owned();
    commits.as_array().expect("a list").iter().map(id).collect()
}

/// The hashes that `git log …` lists.
#[track_caller]
fn git_log(folder: &Path, words: &[&str]) -> Vec<String> {
    let all: Vec<&str> = ["log", "--format=%H"].iter().chain(words).copied().collect();
    git(folder, &all).lines().map(str::to_owned).collect()
}

/// Asserts that a file's lines are from the same commits as in `git blame`.
#[track_caller]
fn is_blamed_as_by_git(house: &House, path: &str) {
    let notes = house.path("notes");
    let lines = run_in(house, "notes", &["blame", path, "--json"]).good().json();
    let id = |line: &Value| line["id"].as_str().map(str::to_owned);
    let ours: Vec<Option<String>> = lines.as_array().expect("a list").iter().map(id).collect();
    let is_hash = |word: &&str| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let porcelain = git(&notes, &["blame", "--porcelain", "--", path]);
    let theirs = porcelain.lines().filter_map(|line| line.split(' ').next().filter(is_hash));
    let theirs: Vec<Option<String>> =
        theirs.map(|id| (!id.bytes().all(|byte| byte == b'0')).then(|| id.to_owned())).collect();
    assert_eq!(ours, theirs, "{path}");
}

/// Two branches: `main` with the tag `v1`, and `idea`, which parted from it.
fn branched() -> House {
    let house = House::with(&[("a.md", "one\ntwo\nthree\n"), ("c.md", "gone\n"), ("d.md", "moved\nas it is\n")]);
    let notes = init(&house);
    commit_at(&notes, FIRST_TIME, "First");
    git(&notes, &["tag", "-a", "v1", "-m", "The first"]);
    git(&notes, &["switch", "-q", "-c", "idea"]);
    house.write("notes/a.md", b"one\n2\nthree\n");
    house.write("notes/b.md", b"new\n");
    commit_at(&notes, FIRST_TIME + 10, "Idea");
    std::fs::remove_file(notes.join("c.md")).expect("removed");
    git(&notes, &["mv", "d.md", "e.md"]);
    commit_at(&notes, FIRST_TIME + 30, "More of it");
    git(&notes, &["switch", "-q", "main"]);
    house.write("notes/a.md", b"one\ntwo\nthree\nfour\n");
    commit_at(&notes, FIRST_TIME + 20, "Main");
    house.write("notes/sub/f.md", b"f\n");
    commit_at(&notes, FIRST_TIME + 40, "Main again");
    house
}

#[test]
fn a_log_takes_revisions_as_git_does() {
    let house = branched();
    let notes = house.path("notes");
    let short = git(&notes, &["rev-parse", "--short=8", "idea"]);
    for words in [
        &["idea"][..],
        &["v1"],
        &["HEAD~1"],
        &["main@{0}"],
        &[short.as_str()],
        &["main..idea"],
        &["idea..main"],
        &["main...idea"],
        &["..idea"],
        &["idea.."],
        &["idea..."],
        &["main..main"],
        &["^main", "idea"],
        &["idea", "main"],
        &["idea", "^v1"],
        &["idea^!"],
        &["idea^@"],
        &["idea^-"],
        &["idea", "--"],
        &["idea", "--", "b.md"],
        &["main..idea", "a.md"],
        &["idea", "a.md"],
        &["idea", "--", "c.md"],
        &["--", "a.md"],
        &["--", "sub/f.md"],
    ] {
        assert_eq!(log(&house, "notes", words), git_log(&notes, words), "{words:?}");
    }
    assert_eq!(log(&house, "notes/sub", &["main", "--", "f.md"]), git_log(&notes, &["main", "--", "sub/f.md"]));
    assert_eq!(run_in(&house, "notes", &["log", "idea", "--limit", "1"]).good().text().lines().count(), 1);
    // No line leads from the range to what is left out.
    let graph = run_in(&house, "notes", &["log", "--graph", "main..idea"]).good().text();
    assert_eq!(graph.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["* ", "* "], "{graph}");
    let rows = run_in(&house, "notes", &["log", "--graph", "idea", "--json"]).good().json();
    assert_eq!(rows.as_array().map(Vec::len), Some(3));

    for (words, why) in [
        (&["log", "idae"][..], "no branch, tag or commit is called idae; the closest one is idea"),
        (&["log", "mian..idea"], "no branch, tag or commit is called mian; the closest one is main"),
        (&["log", "main..V2"], "called V2; the closest one is v1"),
        (&["log", "HEAD~99"], "no branch, tag or commit is called HEAD~99"),
        (&["log", "HEAD:a.md"], "names something other than a commit"),
        (&["log", "nope", "--"], "no branch, tag or commit is called nope; `git branch` lists the branches"),
        (&["log", "--", "nope.md"], "no file or folder nope.md"),
        (&["log", "idea", "--", "a.md", "b.md"], "takes one file, so not “b.md”"),
        (&["log", "--graph", "--all", "idea"], "name no commit"),
        (&["log", "--", "../a.md"], "leads out of the volume"),
        (&["log", "../a.md"], "leads out of the volume"),
        (&["diff", "idae"], "the closest one is idea"),
    ] {
        run_in(&house, "notes", words).refused(2, why);
    }
    let empty = house.path("empty");
    std::fs::create_dir(&empty).expect("made");
    git(&empty, &["init", "-q"]);
    run_in(&house, "empty", &["log", "HEAD"]).refused(2, "there is no commit yet");
}

#[test]
fn ranges_of_a_tangled_history_are_those_of_git() {
    const COUNT: usize = 60;
    let house = House::with(&[("a.md", "one\n")]);
    let notes = init(&house);
    let mut import = start_import(&notes);
    let mut to = import.stdin.take().expect("a pipe");
    // Numbers that look random, and are the same each time.
    let mut state = 7_usize;
    let mut below = |end: usize| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
        (state >> 8) % end
    };
    for number in 1..=COUNT {
        let mut parents: Vec<usize> = (0..1 + below(3)).map(|_| number.saturating_sub(1 + below(7))).collect();
        parents.sort_unstable();
        parents.dedup();
        parents.retain(|parent| *parent > 0);
        let time = FIRST_TIME + i64::try_from(number * 10).expect("small");
        write!(to, "commit refs/heads/n{number}\nmark :{number}\ncommitter Ada <a@example.org> {time} +0000\n")
            .expect("written");
        write!(to, "data 2\n{number:02}\n").expect("written");
        for (at, parent) in parents.iter().enumerate() {
            writeln!(to, "{} :{parent}", if at == 0 { "from" } else { "merge" }).expect("written");
        }
        writeln!(to).expect("written");
    }
    drop(to);
    assert!(import.wait().expect("ended").success());
    git(&notes, &["symbolic-ref", "HEAD", &format!("refs/heads/n{COUNT}")]);
    for _ in 0..25 {
        let mut name = || format!("n{}", 1 + below(COUNT));
        for range in [format!("{}..{}", name(), name()), format!("{}...{}", name(), name())] {
            let theirs = git_log(&notes, &["--date-order", range.as_str()]);
            assert_eq!(log(&house, "notes", &[range.as_str()]), theirs, "{range}");
        }
        let (left, right, kept) = (format!("^{}", name()), format!("^{}", name()), name());
        let words = [left.as_str(), right.as_str(), kept.as_str()];
        assert_eq!(log(&house, "notes", &words), git_log(&notes, &[&["--date-order"], &words[..]].concat()));
    }
    let graph = run_in(&house, "notes", &["log", "--graph", "--json", "--limit", "1000"]).good().json();
    let ids: Vec<&str> = graph.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, git_log(&notes, &["--date-order"]));
}

#[test]
fn a_name_of_a_file_and_a_commit_is_refused_until_it_is_clear() {
    let house = branched();
    let notes = house.path("notes");
    house.write("notes/idea", b"a file\n");
    commit_at(&notes, FIRST_TIME + 50, "A file called idea");
    for verb in ["log", "diff"] {
        run_in(&house, "notes", &[verb, "idea"])
            .refused(2, "write `idea --` for the commit, or `-- idea` for the file");
    }
    assert_eq!(log(&house, "notes", &["idea", "--"]), git_log(&notes, &["idea", "--"]));
    assert_eq!(log(&house, "notes", &["--", "idea"]), git_log(&notes, &["--", "idea"]));
    assert_eq!(log(&house, "notes", &["idea", "--", "a.md"]), git_log(&notes, &["idea", "--", "a.md"]));
    house.write("notes/idea", b"changed\n");
    house.write("notes/a.md", b"changed, too\n");
    let diff = run_in(&house, "notes", &["diff", "--", "idea"]).good().text();
    assert!(diff.contains("-a file\n+changed\n") && !diff.contains("a.md"), "{diff}");
    let diff = run_in(&house, "notes", &["diff", "idea", "--"]).good().text();
    assert!(diff.contains("+++ b/idea") && diff.contains("+++ b/a.md"), "{diff}");
    // Other commands have no use for it.
    run_in(&house, "notes", &["add", "--", "idea"]).good();
    assert_eq!(git(&notes, &["diff", "--cached", "--name-only"]), "idea");
    // The same for a volume by its name.
    let log = house.run(&["git", "log", "--volume", "notes", "--json", "--", "idea"]).good().json();
    assert_eq!(log.as_array().map(Vec::len), Some(1));
}

/// A diff without the lines of hashes, whose length depends on the repository.
fn without_hashes(diff: &str) -> String {
    diff.lines().filter(|line| !line.starts_with("index ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_diff_takes_revisions_as_git_does() {
    let house = branched();
    let notes = house.path("notes");
    house.write("notes/a.md", b"one\ntwo\nthree\nfour\nfive\n");
    house.write("notes/c.md", b"staged\n");
    git(&notes, &["add", "c.md"]);
    for words in [
        &["main", "idea"][..],
        &["idea", "main"],
        &["main..idea"],
        &["main...idea"],
        &["..idea"],
        &["idea.."],
        &["v1", "HEAD~1"],
        &["main", "main"],
        &["main", "idea", "--", "a.md"],
        &["main", "idea", "--", "a.md", "b.md"],
        &["main..idea", "--", "b.md", "c.md"],
        &["v1"],
        &["HEAD~1"],
        &["v1", "--", "a.md"],
        &["idea", "a.md"],
        &["v1", "sub"],
        &["a.md", "c.md"],
        &["--staged", "v1"],
        &["--staged", "HEAD~1", "--", "c.md"],
    ] {
        let ours: Vec<&str> = ["diff"].iter().chain(words).copied().collect();
        // Without a revision, the last commit counts here.
        let theirs = if words[0] == "a.md" { [&["diff", "HEAD"][..], words].concat() } else { ours.clone() };
        let expected = without_hashes(&git(&notes, &theirs));
        assert_eq!(without_hashes(&run_in(&house, "notes", &ours).good().text()), expected, "{words:?}");
    }
    // As without a commit, new files are in it.
    house.write("notes/new.md", b"unknown to Git\n");
    let diff = |words: &[&str]| run_in(&house, "notes", words).good().text();
    assert_eq!(diff(&["diff", "HEAD"]), diff(&["diff"]));
    assert!(diff(&["diff", "v1", "new.md"]).contains("+unknown to Git"));

    let found = run_in(&house, "notes", &["diff", "main", "idea", "--json"]).good().json();
    assert_eq!((&found["diff"], &found["complete"]), (&json!(diff(&["diff", "main", "idea"])), &json!(true)));
    let files = found["files"].as_array().expect("a list");
    let paths: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(paths, ["a.md", "b.md", "c.md", "sub/f.md"]);
    let lines = files[1]["hunks"][0]["lines"].clone();
    assert_eq!(lines, json!([{"number": 1, "sign": "+", "text": "new"}]));
    // In a folder of the repository, only what is in it is compared.
    let diff = run_in(&house, "notes/sub", &["diff", "main", "v1"]).good().text();
    assert!(diff.contains("-f\n") && !diff.contains("a.md"), "{diff}");

    for (words, why) in [
        (&["diff", "main", "idea", "v1"][..], "compares two commits, or one"),
        (&["diff", "main..idea", "v1"], "compares two commits, or one"),
        (&["diff", "--staged", "main", "idea"], "can be compared with one commit only"),
        (&["diff", "--hunks", "main"], "name no commit"),
        (&["diff", "main", "idea", "--", "nope.md"], "no file or folder nope.md"),
        (&["diff", "main", "idea", "--", "../a.md"], "leads out of the volume"),
        (&["diff", "main", "nope.md"], "no branch, tag or commit is called nope.md"),
        (&["diff", "a.md", "nope.md"], "no file or folder nope.md"),
    ] {
        run_in(&house, "notes", words).refused(2, why);
    }
    git(&notes, &["reset", "-q", "--hard"]);
    git(&notes, &["switch", "-q", "--orphan", "apart"]);
    commit_at(&notes, FIRST_TIME + 60, "Apart");
    run_in(&house, "notes", &["diff", "main...apart"]).refused(2, "have no commit in common");
}

#[test]
fn the_time_of_the_author_is_shown_and_that_of_the_commit_is_known() {
    let house = House::with(&[("a.md", "one\n")]);
    let notes = init(&house);
    commit_at(&notes, FIRST_TIME, "First");
    house.write("notes/a.md", b"one\ntwo\n");
    git(&notes, &["commit", "-qam", "Second", "--date", "2001-02-03T12:00:00 +0000"]);
    let time =
        |format: &str| git(&notes, &["log", "-1", &format!("--format={format}")]).parse::<i64>().expect("a time");
    let (author_time, commit_time) = (time("%at"), time("%ct"));
    assert!(author_time < FIRST_TIME && FIRST_TIME < commit_time);
    let of = |value: &Value| (value["author_time"].as_i64(), value["commit_time"].as_i64());
    let both = (Some(author_time), Some(commit_time));
    // The order is still that of the commits.
    assert_eq!(log(&house, "notes", &[]), git_log(&notes, &[]));
    for words in [&["log"][..], &["log", "a.md"], &["log", "--graph"]] {
        let all: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        assert_eq!(of(&run_in(&house, "notes", &all).good().json()[0]), both, "{words:?}");
        let shown = run_in(&house, "notes", words).good().text();
        assert!(shown.lines().next().is_some_and(|line| line.contains(" 2001-02-03 Ada: Second")), "{shown}");
    }
    assert_eq!(of(&run_in(&house, "notes", &["show", "--json"]).good().json()["commit"]), both);
    assert_eq!(of(&run_in(&house, "notes", &["blame", "a.md", "--json"]).good().json()[1]), both);
    assert!(run_in(&house, "notes", &["blame", "a.md"]).good().text().contains(" 2001-02-03 Ada "));
    let history = house.json(&["history", "a.md"]);
    let version = history.as_array().into_iter().flatten().find(|version| version["message"] == "Second");
    let version = version.expect("the commit is in it");
    assert_eq!((version["time"].as_i64(), version["commit_time"].as_i64()), both);
    let spans = house.run(&["history", "a.md", "--blame", "--json"]).good().lines();
    assert_eq!(spans.last().and_then(|span| span["time"].as_i64()), Some(author_time), "{spans:?}");
    assert!(house.run(&["history", "a.md"]).good().text().contains("2001-02-03"));
}

#[test]
fn text_of_a_commit_is_read_in_its_encoding() {
    let house = House::with(&[("a.md", "one\n")]);
    let notes = init(&house);
    // “Ärger” by “Zoë” as Latin-1.
    house.write("message", b"\xc4rger\n\nGr\xfc\xdfe\n");
    let message = house.path("message").display().to_string();
    git(&notes, &["add", "-A"]);
    git(
        &notes,
        &["-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-qF", &message, "--author", "Zoë <z@example.org>"],
    );
    let show = run_in(&house, "notes", &["show"]).good().text();
    assert!(show.contains("Ärger") && show.contains("Grüße") && show.contains("Zoë"), "{show}");
    assert!(run_in(&house, "notes", &["log"]).good().text().contains(" Zoë: Ärger"));
}

/// Lines that no other part of a test has.
fn lines(of: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| format!("{of} wrote line {number:03} of this text.\n")).collect()
}

#[test]
fn a_renamed_and_rewritten_file_is_followed_as_by_git() {
    let house = House::with(&[("a.md", &lines("Ada", 0..20)), ("other.md", "something else\n")]);
    let notes = init(&house);
    commit_at(&notes, FIRST_TIME, "First");
    house.write("notes/a.md", (lines("Ada", 0..19) + &lines("Bob", 19..20)).as_bytes());
    commit_at(&notes, FIRST_TIME + 10, "Second");
    house.write("notes/other.md", b"something else\nand more\n");
    commit_at(&notes, FIRST_TIME + 20, "Not this file");
    // Nearly half is new, and so is the name.
    git(&notes, &["mv", "a.md", "b.md"]);
    house.write("notes/b.md", (lines("Ada", 0..11) + &lines("Cleo", 0..9)).as_bytes());
    commit_at(&notes, FIRST_TIME + 30, "Rewritten as b");
    house.write("notes/b.md", (lines("Ada", 0..11) + &lines("Cleo", 0..9) + &lines("Dan", 0..2)).as_bytes());
    commit_at(&notes, FIRST_TIME + 40, "Longer");
    std::fs::create_dir(notes.join("sub")).expect("made");
    git(&notes, &["mv", "b.md", "sub/b.md"]);
    commit_at(&notes, FIRST_TIME + 50, "Moved as it is");
    let is_followed = |path: &str, count: usize| {
        let ids = log(&house, "notes", &["--", path]);
        assert_eq!(ids, git_log(&notes, &["--follow", "--", path]), "{path}");
        assert_eq!(ids.len(), count, "{path}");
        is_blamed_as_by_git(&house, path);
        ids
    };
    let ids = is_followed("sub/b.md", 5);
    assert_eq!(log(&house, "notes/sub", &["b.md"]), ids);
    assert_eq!(log(&house, "notes", &["HEAD~1", "--", "b.md"]), ids[1..]);
    // What was deleted can be asked for, too.
    assert_eq!(log(&house, "notes", &["--", "a.md"]), git_log(&notes, &["--follow", "--", "a.md"]));

    // A note's history has the commits before the rename, with the text that they have.
    let versions = house.json(&["history", "sub/b.md"]);
    let found: Vec<&str> = versions.as_array().into_iter().flatten().filter_map(|one| one["commit"].as_str()).collect();
    let expected: Vec<&str> = ids.iter().rev().map(String::as_str).collect();
    assert_eq!(found, expected, "{versions}");
    let old = house.run(&["history", "sub/b.md", "--at", &ids[4]]).good().text();
    assert_eq!(old, lines("Ada", 0..20));

    // What isn't committed yet is known by its staged name.
    git(&notes, &["mv", "sub/b.md", "now.md"]);
    let text = lines("Ada", 0..11) + &lines("Cleo", 0..9) + &lines("Eve", 0..2);
    house.write("notes/now.md", text.as_bytes());
    is_blamed_as_by_git(&house, "now.md");
    commit_at(&notes, FIRST_TIME + 60, "Now");
    is_followed("now.md", 6);
    // More than half is new: for Git, it's another file.
    git(&notes, &["mv", "now.md", "last.md"]);
    house.write("notes/last.md", (lines("Ada", 0..9) + &lines("Fay", 0..13)).as_bytes());
    commit_at(&notes, FIRST_TIME + 70, "Another file");
    is_followed("last.md", 1);
}

#[test]
fn the_most_similar_of_several_deleted_files_is_followed() {
    let (one, two) = (lines("Ada", 0..20), lines("Bob", 0..20));
    let house = House::with(&[("x/one.md", &one), ("x/two.md", &two), ("y/three.md", &lines("Cleo", 0..20))]);
    let notes = init(&house);
    commit_at(&notes, FIRST_TIME, "First");
    house.write("notes/x/two.md", (two.clone() + "more\n").as_bytes());
    commit_at(&notes, FIRST_TIME + 10, "Second");
    for name in ["x/one.md", "x/two.md", "y/three.md"] {
        std::fs::remove_file(notes.join(name)).expect("removed");
    }
    // Some of each, most of it from the second one.
    let text = lines("Ada", 0..5) + &lines("Bob", 0..14) + &lines("Cleo", 0..2);
    house.write("notes/z/new.md", text.as_bytes());
    // CRLF instead of LF, and the same name elsewhere.
    house.write("notes/z/three.md", lines("Cleo", 0..18).replace('\n', "\r\n").as_bytes());
    commit_at(&notes, FIRST_TIME + 20, "Third");
    for (path, count) in [("z/new.md", 3), ("z/three.md", 2)] {
        assert_eq!(log(&house, "notes", &[path]), git_log(&notes, &["--follow", "--", path]), "{path}");
        assert_eq!(log(&house, "notes", &[path]).len(), count, "{path}");
        is_blamed_as_by_git(&house, path);
    }
}

#[test]
fn lines_from_both_sides_of_a_merge_are_blamed_through_a_rename() {
    let house = House::with(&[("a.md", &lines("Ada", 0..20))]);
    let notes = init(&house);
    commit_at(&notes, FIRST_TIME, "First");
    git(&notes, &["switch", "-q", "-c", "side"]);
    house.write("notes/a.md", (lines("Ada", 0..18) + &lines("Bob", 0..2)).as_bytes());
    commit_at(&notes, FIRST_TIME + 10, "Changed on the side");
    git(&notes, &["switch", "-q", "main"]);
    git(&notes, &["mv", "a.md", "b.md"]);
    house.write("notes/b.md", (lines("Cleo", 0..5) + &lines("Ada", 5..20)).as_bytes());
    commit_at(&notes, FIRST_TIME + 20, "Renamed on main");
    git_at(&notes, FIRST_TIME + 30, &["merge", "-q", "--no-edit", "side"]);
    assert_eq!(house.read("notes/b.md"), (lines("Cleo", 0..5) + &lines("Ada", 5..18) + &lines("Bob", 0..2)).as_bytes());
    is_blamed_as_by_git(&house, "b.md");
    house.write("notes/b.md", (lines("Dan", 0..1) + &lines("Ada", 5..18) + &lines("Bob", 0..2)).as_bytes());
    is_blamed_as_by_git(&house, "b.md");
    // All that ever touched it, and the merge that brought both together.
    let subjects = run_in(&house, "notes", &["log", "b.md"]).good().text();
    assert_eq!(subjects.lines().count(), 4, "{subjects}");
}

#[test]
fn a_picture_that_was_only_moved_has_no_changed_bytes() {
    let house = House::with(&[("a.md", "one\n")]);
    let notes = init(&house);
    house.write("notes/a.png", b"\x89PNG\0\0first");
    commit_at(&notes, 1_700_000_000, "First");
    git(&notes, &["mv", "a.png", "b.png"]);
    commit_at(&notes, 1_700_000_100, "Move");
    let moved = run_in(&house, "notes", &["show", "HEAD"]).good().text();
    assert!(moved.contains("rename to b.png") && !moved.contains("Binary"), "{moved}");
    house.write("notes/b.png", b"\x89PNG\0\0other");
    for words in [["diff", "b.png"], ["show", "HEAD"]] {
        let changed = run_in(&house, "notes", &words).good().text();
        assert!(changed.contains("Binary files a/b.png and b/b.png differ"), "{words:?}: {changed}");
        commit_at(&notes, 1_700_000_200, "Change");
    }
}

#[test]
fn agents_read_revisions_of_git() {
    let (address, results) = caller(vec![
        ("git_log", json!({"revision": "main..idea"})),
        ("git_log", json!({"revision": "idea", "path": "notes/b.md", "limit": 5})),
        ("git_diff", json!({"revision": "main...idea", "path": "a.md"})),
        ("git_diff", json!({"revision": "v1 idea"})),
        ("git_diff", json!({"revision": "HEAD"})),
        ("git_log", json!({"revision": "idae"})),
        ("git_log", json!({"path": "sub"})),
    ]);
    let house = house(&address, &[("a.md", "one\n"), ("sub/c.md", "c\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["tag", "v1"]);
    git(&notes, &["switch", "-q", "-c", "idea"]);
    house.write("notes/a.md", b"two\n");
    house.write("notes/b.md", b"new\n");
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    house.run(&["ask", "look at it", "--json"]).good();
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("Ada: Idea") && !results[0].contains("First"), "{results:?}");
    assert!(results[1].contains("Ada: Idea") && !results[1].contains("First"), "{results:?}");
    assert!(results[2].contains("-one\n+two") && !results[2].contains("b.md"), "{results:?}");
    assert!(results[3].contains("+two") && results[3].contains("+new"), "{results:?}");
    assert!(results[4].contains("nothing differs"), "{results:?}");
    assert!(results[5].contains("called idae; the closest one is idea"), "{results:?}");
    assert!(results[6].contains("this is a folder"), "{results:?}");
}
