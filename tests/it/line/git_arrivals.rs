//! Text that Git brings into a note keeps the author and the time of its commit, and commits are versions of the note.

use super::git::{git, know_user, with_remote};
use crate::program::{House, files, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Commits everything in a folder as another person at a time in seconds since 1970, and returns the commit's hash.
fn commit_as(folder: &Path, author: &str, time: i64, message: &str) -> String {
    git(folder, &["add", "-A"]);
    let (date, mail) = (format!("{time} +0000"), format!("{author}@example.org"));
    let done = Command::new("git")
        .args(["commit", "-qm", message])
        .current_dir(folder)
        .envs([("GIT_AUTHOR_NAME", author), ("GIT_AUTHOR_EMAIL", &mail), ("GIT_AUTHOR_DATE", &date)])
        .envs([("GIT_COMMITTER_NAME", author), ("GIT_COMMITTER_EMAIL", &mail), ("GIT_COMMITTER_DATE", &date)])
        .output()
        .expect("git is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    git(folder, &["rev-parse", "HEAD"])
}

/// A house whose note `a.md` has a document, is committed and pushed, and was cloned to `other`.
fn cloned(text: &str) -> House {
    let house = House::with(&[("a.md", text)]);
    house.edit("a.md", 0, 0, "# Mine\n\n");
    with_remote(&house);
    git(&house.path("notes"), &["push", "-q", "-u", "origin", "main"]);
    git(&house.path(""), &["clone", "-q", "remote.git", "other"]);
    know_user(&house.path("other"));
    house
}

/// Replaces a part of a file by another text.
fn rewrite(house: &House, file: &str, from: &str, to: &str) {
    let text = String::from_utf8(house.read(file)).expect("text");
    assert!(text.contains(from), "{text:?} has no {from:?}");
    house.write(file, text.replacen(from, to, 1).as_bytes());
}

fn push(house: &House) {
    git(&house.path("other"), &["push", "-q"]);
}

/// Returns who wrote each passage of a note.
fn blame(house: &House, note: &str) -> Vec<(String, String)> {
    let spans = house.run(&["history", note, "--blame", "--json"]).good().lines();
    let word = |span: &Value, key: &str| span[key].as_str().expect("a text").to_owned();
    spans.iter().map(|span| (word(span, "who"), word(span, "text"))).collect()
}

/// Returns the changes of a note that came with commits: author with commit, and time.
fn arrived(house: &House, note: &str) -> Vec<(String, i64)> {
    let all = house.json(&["history", note]);
    let changes = all.as_array().expect("a list").iter().filter(|change| !change["number"].is_null());
    let words = changes.map(|change| (change["who"].as_str().expect("who").to_owned(), change["time"].as_i64()));
    words.filter(|(who, _)| who.contains("(commit ")).map(|(who, time)| (who, time.expect("a time"))).collect()
}

fn by(author: &str, commit: &str) -> String {
    format!("{author} (commit {})", &commit[..8])
}

#[test]
fn pulled_commits_are_changes_by_their_authors_at_their_times() {
    let house = cloned("one\n\ntwo\n\nthree\n");
    let other = house.path("other");
    rewrite(&house, "other/a.md", "two", "two by Grace");
    let grace = commit_as(&other, "Grace", 1_700_000_000, "Two");
    house.write("other/b.md", b"another note\n");
    commit_as(&other, "Linus", 1_700_000_100, "Not this note");
    rewrite(&house, "other/a.md", "three", "three by Alan");
    let alan = commit_as(&other, "Alan", 1_700_000_200, "Three");
    push(&house);
    git(&house.path("notes"), &["pull", "-q"]);
    assert_eq!(
        arrived(&house, "a.md"),
        [(by("Grace", &grace), 1_700_000_000), (by("Alan", &alan), 1_700_000_200)],
        "while the note was closed"
    );
    let spans = blame(&house, "a.md");
    assert!(spans.contains(&("You".to_owned(), "# Mine\n\n".to_owned())), "{spans:?}");
    assert!(spans.contains(&(by("Grace", &grace), " by Grace".to_owned())), "{spans:?}");
    assert!(spans.contains(&(by("Alan", &alan), " by Alan".to_owned())), "{spans:?}");
    // The commit's state is a version: by the hash of the commit, and by the change's number.
    let at = house.run(&["history", "a.md", "--at", &grace[..7]]).good().text();
    assert_eq!(at, "# Mine\n\none\n\ntwo by Grace\n\nthree\n");
    // It stays so after the note is changed and read again.
    house.edit("a.md", 0, 0, "More\n");
    assert_eq!(arrived(&house, "a.md").len(), 2);
    house.write("notes/a.md", b"all of it anew\n");
    assert!(blame(&house, "a.md").iter().any(|(who, _)| who == "Another program"));
    house.run(&["fsck"]).good();
}

#[test]
fn an_open_note_takes_over_commits_while_it_is_typed_in() {
    let house = cloned("one\n\ntwo\n\nthree\n");
    let mut owner = house.owner("a.md");
    for round in 0..4_i64 {
        let (old, new) =
            (format!("two{}", "!".repeat(round as usize)), format!("two{}", "!".repeat(round as usize + 1)));
        rewrite(&house, "other/a.md", &old, &new);
        let commit = commit_as(&house.path("other"), "Grace", 1_700_000_000 + round, "Louder");
        push(&house);
        git(&house.path("notes"), &["pull", "-q", "--no-rebase", "--no-edit"]);
        until("the commit has come", || arrived(&house, "a.md").iter().any(|(who, _)| *who == by("Grace", &commit)));
        // What is typed goes to the file, is committed, and the other clone gets it.
        owner.types(0, 0, "+");
        until("it's in the file", || house.read("notes/a.md").starts_with("+".repeat(round as usize + 1).as_bytes()));
        commit_as(&house.path("notes"), "Ada", 1_700_000_000 + round, "Plus");
        git(&house.path("notes"), &["push", "-q"]);
        git(&house.path("other"), &["pull", "-q"]);
    }
    assert_eq!(house.cat("a.md"), b"++++# Mine\n\none\n\ntwo!!!!\n\nthree\n");
    assert_eq!(arrived(&house, "a.md").len(), 4, "and what was typed here is the user's");
    owner.end();
}

#[test]
fn a_merge_keeps_both_authors() {
    let house = cloned("one\n\ntwo\n\nthree\n\nfour\n\nfive\n");
    rewrite(&house, "other/a.md", "one", "one by Grace");
    let grace = commit_as(&house.path("other"), "Grace", 1_700_000_000, "One");
    rewrite(&house, "other/a.md", "two", "two by Alan");
    let alan = commit_as(&house.path("other"), "Alan", 1_700_000_001, "Two");
    push(&house);
    house.edit("a.md", "# Mine\n\none\n\ntwo\n\nthree\n\nfour\n\nfive".len(), 0, " mine");
    commit_as(&house.path("notes"), "Ada", 1_700_000_002, "Five");
    git(&house.path("notes"), &["pull", "-q", "--no-rebase", "--no-edit"]);
    let spans = blame(&house, "a.md");
    for (who, text) in [(by("Grace", &grace), " by Grace"), (by("Alan", &alan), " by Alan"), ("You".into(), " mine")] {
        assert!(spans.contains(&(who, text.to_owned())), "{spans:?}");
    }
    assert_eq!(arrived(&house, "a.md").len(), 2, "the merge itself adds nothing");
}

#[test]
fn rebased_picked_and_switched_text_has_its_author() {
    let house = cloned("one\n\ntwo\n\nthree\n\nfour\n\nfive\n");
    let notes = house.path("notes");
    // A rebase: the other's commit comes below the user's own.
    rewrite(&house, "other/a.md", "one", "one by Grace");
    let grace = commit_as(&house.path("other"), "Grace", 1_700_000_000, "One");
    push(&house);
    house.edit("a.md", "# Mine\n\none\n\ntwo\n\nthree\n\nfour\n\nfive".len(), 0, " mine");
    commit_as(&notes, "Ada", 1_700_000_002, "Five");
    git(&notes, &["pull", "-q", "--rebase"]);
    let spans = blame(&house, "a.md");
    assert!(spans.contains(&("You".to_owned(), " mine".to_owned())), "{spans:?}");
    assert!(spans.iter().any(|(who, text)| *who == by("Grace", &grace) && text == " by Grace"), "{spans:?}");
    // A picked commit.
    git(&house.path("other"), &["switch", "-q", "-c", "idea"]);
    rewrite(&house, "other/a.md", "three", "three by Alan");
    let alan = commit_as(&house.path("other"), "Alan", 1_700_000_010, "Three");
    git(&house.path("other"), &["push", "-q", "-u", "origin", "idea"]);
    git(&notes, &["fetch", "-q"]);
    git(&notes, &["cherry-pick", &alan]);
    let picked = git(&notes, &["rev-parse", "HEAD"]);
    assert!(
        blame(&house, "a.md").contains(&(by("Alan", &picked), " by Alan".to_owned())),
        "{:?}",
        blame(&house, "a.md")
    );
    // Another branch, whose history the present text isn't part of.
    git(&notes, &["switch", "-q", "idea"]);
    let before = house.json(&["history", "a.md"]);
    let last = before.as_array().and_then(|all| all.iter().rfind(|one| !one["number"].is_null())).cloned();
    assert_eq!(last.expect("changes")["who"], json!(by("Alan", &alan)));
    assert_eq!(house.cat("a.md"), house.read("notes/a.md"));
    // And back: the note is as it was before.
    git(&notes, &["switch", "-q", "main"]);
    assert_eq!(house.cat("a.md"), house.read("notes/a.md"));
    let spans = blame(&house, "a.md");
    assert!(!spans.iter().any(|(who, _)| who == "Another program"), "{spans:?}");
}

#[test]
fn what_git_did_not_bring_is_another_programs() {
    let house = cloned("one\n\ntwo\n");
    let notes = house.path("notes");
    // An edit that another program took back: HEAD never moved.
    std::thread::sleep(std::time::Duration::from_millis(1_100)); // a time in the log of HEAD has no fractions
    house.write("notes/a.md", b"# Mine\n\none\n\nanother two\n");
    house.cat("a.md");
    git(&notes, &["checkout", "-q", "--", "a.md"]);
    house.cat("a.md");
    house.write("notes/a.md", b"# Mine\n\none\n\ntwo\n\nthree\n");
    let spans = blame(&house, "a.md");
    assert!(spans.contains(&("Another program".to_owned(), "\nthree\n".to_owned())), "{spans:?}");
    assert_eq!(arrived(&house, "a.md"), []);
}

#[test]
fn rewritten_and_shallow_histories_name_the_last_author() {
    let house = cloned("one\n\ntwo\n\nthree\n");
    let (notes, other) = (house.path("notes"), house.path("other"));
    // The other clone rewrites what was there, several times.
    git(&other, &["switch", "-q", "--orphan", "anew"]);
    for (round, word) in ["first", "second", "third"].into_iter().enumerate() {
        house.write("other/a.md", format!("# Mine\n\none\n\ntwo {word}\n\nthree\n").as_bytes());
        commit_as(&other, "Grace", 1_700_000_000 + round as i64, word);
    }
    let last = git(&other, &["rev-parse", "HEAD"]);
    git(&other, &["push", "-qf", "origin", "anew:main"]);
    git(&notes, &["fetch", "-q"]);
    git(&notes, &["reset", "-q", "--hard", "origin/main"]);
    assert_eq!(arrived(&house, "a.md"), [(by("Grace", &last), 1_700_000_002)]);
    assert_eq!(house.cat("a.md"), b"# Mine\n\none\n\ntwo third\n\nthree\n");

    // A shallow clone: the commits before aren't there.
    git(
        &house.path(""),
        &["clone", "-q", "--depth=1", &format!("file://{}", house.path("remote.git").display()), "shallow"],
    );
    house.run(&["open", "shallow"]).good();
    std::thread::sleep(std::time::Duration::from_millis(1_100)); // a time in the log of HEAD has no fractions
    house.edit("shallow/a.md", 0, 0, "Here\n");
    git(&house.path("shallow"), &["checkout", "-q", "--", "a.md"]);
    house.cat("shallow/a.md");
    git(&other, &["branch", "-q", "-u", "origin/main"]);
    rewrite(&house, "other/a.md", "one", "one by Alan");
    let alan = commit_as(&other, "Alan", 1_700_000_009, "One");
    git(&other, &["push", "-q", "origin", "HEAD:main"]);
    git(&house.path("shallow"), &["pull", "-q"]);
    assert_eq!(arrived(&house, "shallow/a.md"), [(by("Alan", &alan), 1_700_000_009)]);
    let log = house.json(&["history", "shallow/a.md"]);
    assert!(log.as_array().expect("a list").len() >= 3, "{log}");
}

#[test]
fn no_commit_yet_and_a_hostile_repository() {
    let house = House::with(&[("a.md", "one\n")]);
    house.edit("a.md", 0, 0, "mine\n");
    git(&house.path("notes"), &["init", "-q", "-b", "main"]);
    know_user(&house.path("notes"));
    house.write("notes/a.md", b"mine\none\ntwo\n");
    assert!(blame(&house, "a.md").contains(&("Another program".to_owned(), "two\n".to_owned())));
    house.run(&["history", "a.md", "--restore", "HEAD~1"]).refused(2, "there is no change “HEAD~1”");
    let first = commit_as(&house.path("notes"), "Ada", 1_700_000_000, "First");
    house.write("notes/a.md", b"mine\none\ntwo\nthree\n");
    let second = commit_as(&house.path("notes"), "\u{1b}[31mEve\u{202e}", 1_700_000_001, "Red");
    // Programs of the repository, which reading it must not start.
    let evil = house.path("evil");
    let program = format!("sh -c 'touch {}'", evil.display());
    for name in
        ["core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.external", "diff.x.textconv", "core.pager"]
    {
        git(&house.path("notes"), &["config", name, &program]);
    }
    house.write("notes/.git/info/attributes", b"*.md filter=x diff=x\n");
    let spans = blame(&house, "a.md");
    assert!(
        spans.iter().any(|(who, text)| who.contains("Eve") && who.contains(&second[..8]) && text == "three\n"),
        "{spans:?}"
    );
    assert!(!spans.iter().any(|(who, _)| who.contains(['\u{1b}', '\u{202e}'])), "{spans:?}");
    let listed = house.run(&["history", "a.md"]).good().text();
    assert!(!listed.contains(['\u{1b}', '\u{202e}']) && listed.contains(&first[..8]), "{listed}");
    assert!(!evil.exists());
}

#[test]
fn commits_are_versions_of_the_note_and_are_restored() {
    let house = House::new();
    let notes = house.path("notes");
    house.write("notes/a.md", b"zero\n");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    let old = commit_as(&notes, "Grace", 1_600_000_000, "Zero");
    house.write("notes/a.md", b"one\n");
    let one = commit_as(&notes, "Grace", 1_600_000_100, "One");
    house.run(&["open", "notes"]).good();

    // Without an edit, the commits are all that is known.
    let listed = house.run(&["history", "a.md"]).good().text();
    assert!(listed.contains("no changes yet") && listed.contains("Grace: Zero"), "{listed}");
    let all = house.json(&["history", "a.md"]);
    let ids: Vec<&Value> = all.as_array().expect("a list").iter().map(|entry| &entry["commit"]).collect();
    assert_eq!(ids, [&json!(old), &json!(one)]);
    assert_eq!(house.run(&["history", "a.md", "--at", &old[..9]]).good().text(), "zero\n");

    house.edit("a.md", 4, 0, "two\n");
    git(&notes, &["commit", "-qam", "Two"]);
    let two = git(&notes, &["rev-parse", "HEAD"]);
    house.edit("a.md", 8, 0, "three\n");
    let commits_of = |commit: &str| -> Vec<u64> {
        let all = house.json(&["history", "a.md"]);
        let has = |entry: &&Value| entry["commits"].as_array().is_some_and(|all| all.contains(&json!(commit)));
        all.as_array().expect("a list").iter().filter(has).filter_map(|entry| entry["number"].as_u64()).collect()
    };
    assert_eq!((commits_of(&one), commits_of(&two)), (vec![2], vec![3]));
    let listed = house.run(&["history", "a.md"]).good().text();
    assert!(listed.contains(&format!("You; committed as {}", &two[..8])), "{listed}");

    // A version that only Git knows, and one that both know.
    let done = house.run(&["history", "a.md", "--restore", &old, "--json"]).good().json();
    assert_eq!(done["commit"], json!(old));
    assert_eq!(house.read("notes/a.md"), b"zero\n");
    house.run(&["history", "a.md", "--restore", "HEAD"]).good();
    assert_eq!(house.cat("a.md"), b"one\ntwo\n");
    let diff = house.run(&["history", "a.md", "--at", &old, "--diff"]).good().text();
    assert_eq!(diff, format!("--- in commit {}\n+++ now\n@@ -1,1 +1,2 @@\n-zero\n+one\n+two\n", &old[..8]));
    house.run(&["history", "a.md", "--restore", "feedbeef"]).refused(2, "no such commit");
    house.run(&["history", "a.md", "--restore", "--upload-pack=x"]).code(2);
    house.run(&["history", "a.md", "--at", &old, "--blame"]).refused(2, "needs a change's number");

    // An amend, a squash and a rebase make other commits of the same text.
    git(&notes, &["commit", "-q", "--amend", "-m", "Two again"]);
    let amended = git(&notes, &["rev-parse", "HEAD"]);
    let found = commits_of(&amended)[0].to_string();
    assert_eq!(house.run(&["history", "a.md", "--at", &found]).good().text(), "one\ntwo\n");
    house.edit("a.md", 8, 0, "four\n");
    git(&notes, &["commit", "-qam", "Four"]);
    git(&notes, &["reset", "-q", "--soft", "HEAD~2"]);
    git(&notes, &["commit", "-qm", "Squashed"]);
    let squashed = git(&notes, &["rev-parse", "HEAD"]);
    let found = commits_of(&squashed);
    assert_eq!(house.run(&["history", "a.md", "--at", &found[0].to_string()]).good().text(), "one\ntwo\nfour\n");
    git(&notes, &["switch", "-q", "-c", "base", &one]);
    house.write("notes/b.md", b"below\n");
    commit_as(&notes, "Grace", 1_600_000_200, "Below");
    git(&notes, &["rebase", "-q", "base", "main"]);
    let rebased = git(&notes, &["rev-parse", "HEAD"]);
    assert_ne!(rebased, squashed);
    assert!(!commits_of(&rebased).is_empty(), "the same text in another commit");
    assert!(files(&notes).contains_key("b.md"));
}
