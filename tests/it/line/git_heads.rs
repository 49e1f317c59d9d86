//! A commit made here records which version of a note it has. It's a hint: without it, the text decides.

use super::git::{git, know_user, with_remote};
use crate::program::{House, finish};
use serde_json::{Value, json};

/// Commits all changes in one of the two ways, at a time after all edits: so it doesn't tell versions apart. Returns
/// the commit's hash.
fn commit(house: &House, by_volume: bool, message: &str) -> String {
    let notes = house.path("notes");
    let workspace = house.path("W").display().to_string();
    let mut words = vec!["--workspace", &workspace, "git", "commit", "-m", message];
    if by_volume {
        words.extend(["--volume", "notes"]);
    }
    let mut command = house.command(&words);
    command.current_dir(&notes).env("GIT_COMMITTER_DATE", "@4000000000 +0000");
    finish(command, b"").good();
    git(&notes, &["rev-parse", "HEAD"])
}

/// Returns the numbers of the note's changes after which it's as in a commit.
fn version_of(house: &House, commit: &str) -> Vec<u64> {
    let all = house.json(&["history", "a.md"]);
    let has = |entry: &&Value| entry["commits"].as_array().is_some_and(|all| all.contains(&json!(commit)));
    let found: Vec<u64> =
        all.as_array().expect("a list").iter().filter(has).filter_map(|entry| entry["number"].as_u64()).collect();
    for number in &found {
        let text = house.run(&["history", "a.md", "--at", &number.to_string()]).good().text();
        assert_eq!(text, git(&house.path("notes"), &["show", &format!("{commit}:a.md")]) + "\n", "{number}");
    }
    found
}

#[test]
fn versions_with_the_same_text_are_told_apart() {
    let house = House::with(&[("a.md", "zero\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    house.edit("a.md", 0, 4, "one");
    let first = commit(&house, false, "One");
    house.edit("a.md", 0, 3, "two");
    let second = commit(&house, true, "Two");
    house.edit("a.md", 0, 3, "one");
    let last = commit(&house, true, "One again");
    let (found, found_last) = (version_of(&house, &first), version_of(&house, &last));
    assert!(found.len() == 1 && found_last.len() == 1 && found < found_last, "{found:?} {found_last:?}");
    let record = git(&notes, &["notes", "--ref=tracebook", "show", &first]);
    assert!(record.ends_with(" a.md") && record.len() == 64 + " a.md".len(), "{record}");
    git(&notes, &["push", "-q", "-u", "origin", "main"]);
    assert!(!git(&house.path("remote.git"), &["for-each-ref"]).contains("refs/notes"), "it stays here");

    // A wrong record, and none, as after an amend and a rebase: the text decides.
    git(&notes, &["notes", "--ref=tracebook", "copy", "-f", &second, &first]);
    assert_eq!(version_of(&house, &first).len(), 1);
    git(&notes, &["commit", "-q", "--amend", "-m", "Amended"]);
    let amended = git(&notes, &["rev-parse", "HEAD"]);
    assert_eq!(version_of(&house, &amended).len(), 1);
    git(&notes, &["switch", "-q", "-c", "base", "main~3"]);
    house.write("notes/b.md", b"below\n");
    git(&notes, &["add", "b.md"]);
    git(&notes, &["commit", "-qm", "Below"]);
    git(&notes, &["rebase", "-q", "base", "main"]);
    let rebased = git(&notes, &["rev-parse", "HEAD", "HEAD~1"]);
    let (rebased, before) = rebased.split_once('\n').expect("two commits");
    assert_ne!(rebased, amended);
    assert_eq!((version_of(&house, rebased).len(), version_of(&house, before).len()), (1, 1));
}

#[test]
fn a_commit_is_made_though_its_version_can_t_be_recorded() {
    let house = House::with(&[("a.md", "zero\n")]);
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main"]);
    know_user(&notes);
    std::fs::create_dir_all(notes.join(".git/refs/notes")).expect("made");
    std::fs::write(notes.join(".git/refs/notes/tracebook.lock"), "").expect("written");
    house.edit("a.md", 0, 4, "one");
    let made = commit(&house, false, "One");
    assert_eq!(git(&notes, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    assert_eq!(version_of(&house, &made).len(), 1);
    // What has no document has no version, and nothing is recorded of it.
    std::fs::remove_file(notes.join(".git/refs/notes/tracebook.lock")).expect("removed");
    house.write("notes/new.md", b"new\n");
    commit(&house, true, "New");
    assert_eq!(git(&notes, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}
