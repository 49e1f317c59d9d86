//! Conflicts of Git that the histories of notes decide, with the real `git`.

use super::git::{git, run_in_volume, with_remote};
use crate::program::House;

const TEXT: &str = "One.\nTwo.\nThree.\n";

/// Replaces a word of a note as its user.
fn retype(house: &House, note: &str, from: &str, to: &str) {
    let text = String::from_utf8(house.cat(note)).expect("text");
    let at = text.find(from).unwrap_or_else(|| panic!("no “{from}” in: {text}"));
    house.edit(note, at, from.len(), to);
}

fn commit(house: &House, message: &str) {
    run_in_volume(house, &["commit", "--all", "-m", message]).good();
}

/// Two notes that the branches `idea` and `main` have changed: neighboring lines of `a.md`, and this line of `b.md`.
fn diverged(idea: &str, main: &str) -> House {
    let house = House::with(&[("a.md", TEXT), ("b.md", TEXT)]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "-c", "idea"]);
    retype(&house, "a.md", "One", "First");
    retype(&house, "b.md", idea, "Idea");
    commit(&house, "Idea");
    git(&notes, &["switch", "-q", "main"]);
    retype(&house, "a.md", "Two", "Second");
    retype(&house, "b.md", main, "Main");
    commit(&house, "Main");
    // Git has a conflict in it.
    let merge = std::process::Command::new("git").args(["merge", "idea"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success());
    git(&notes, &["merge", "--abort"]);
    house
}

#[track_caller]
fn assert_text(house: &House, note: &str, text: &str) {
    assert_eq!(String::from_utf8(house.read(&format!("notes/{note}"))).expect("text"), text);
    assert_eq!(String::from_utf8(house.cat(note)).expect("text"), text, "the document");
}

#[test]
fn branches_that_changed_neighboring_lines_are_merged() {
    let house = diverged("One", "Three");
    let notes = house.path("notes");
    run_in_volume(&house, &["merge", "idea"]).good();
    assert_text(&house, "a.md", "First.\nSecond.\nThree.\n");
    assert_text(&house, "b.md", "Idea.\nTwo.\nMain.\n");
    assert_eq!(git(&notes, &["log", "-1", "--format=%s"]), "Merge branch 'idea'");
    assert_eq!(git(&notes, &["log", "-1", "--format=%P"]).split(' ').count(), 2);
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    // The same by a rebase, which makes the commit of the branch again.
    let house = diverged("One", "Three");
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "idea"]);
    run_in_volume(&house, &["rebase", "main"]).good();
    assert_text(&house, "a.md", "First.\nSecond.\nThree.\n");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "Idea\nMain\nFirst");
    assert_eq!(git(&notes, &["status", "--porcelain", "--branch"]), "## idea");
}

#[test]
fn what_histories_do_not_decide_is_left_to_choose() {
    // Both have changed the same line of `b.md`.
    let house = diverged("Two", "Two");
    let notes = house.path("notes");
    let (mine, before) = ("One.\nSecond.\nThree.\n", git(&notes, &["rev-parse", "HEAD"]));
    run_in_volume(&house, &["merge", "idea"]).refused(1, "Nothing was merged");
    assert_text(&house, "a.md", mine);
    assert_eq!(git(&notes, &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    // Stopped on request, only that note is in conflict.
    let done = run_in_volume(&house, &["merge", "idea", "--keep-conflicts"]).refused(1, "b.md");
    assert!(!done.err.contains("a.md"), "{}", done.err);
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M  a.md\nUU b.md");
    assert_text(&house, "a.md", "First.\nSecond.\nThree.\n");
    assert_text(&house, "b.md", "One.\nMain.\nThree.\n");
    run_in_volume(&house, &["resolve", "b.md", "--theirs", "--region", "1"]).good();
    run_in_volume(&house, &["merge", "--continue"]).good();
    assert_text(&house, "b.md", "One.\nIdea.\nThree.\n");
    // A version that no document has: another program has committed it while the program didn't see it.
    let house = House::with(&[("a.md", TEXT)]);
    with_remote(&house);
    let notes = house.path("notes");
    retype(&house, "a.md", "Two", "Second");
    commit(&house, "Main");
    git(&notes, &["switch", "-q", "-c", "idea", "main~1"]);
    house.write("notes/a.md", b"First.\nTwo.\nThree.\n");
    git(&notes, &["commit", "-qam", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    run_in_volume(&house, &["merge", "idea"]).refused(1, "Nothing was merged");
    assert_text(&house, "a.md", mine);
}

#[cfg(unix)]
#[test]
fn a_merge_that_a_hook_refuses_is_taken_back() {
    use std::os::unix::fs::PermissionsExt;
    let house = diverged("One", "Three");
    let notes = house.path("notes");
    let before = git(&notes, &["rev-parse", "HEAD"]);
    let hook = notes.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    std::fs::write(&hook, "#!/bin/sh\necho not on a Monday >&2\nexit 1\n").expect("written");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("can be run");
    run_in_volume(&house, &["merge", "idea"]).refused(2, "not on a Monday");
    assert_text(&house, "a.md", "One.\nSecond.\nThree.\n");
    assert_eq!(git(&notes, &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    assert!(!notes.join(".git/MERGE_HEAD").exists());
}

#[test]
fn a_stash_and_a_commit_of_neighboring_lines_are_merged() {
    let house = House::with(&[("a.md", TEXT)]);
    with_remote(&house);
    let notes = house.path("notes");
    retype(&house, "a.md", "One", "First");
    run_in_volume(&house, &["stash"]).good();
    retype(&house, "a.md", "Two", "Second");
    commit(&house, "Main");
    run_in_volume(&house, &["stash", "pop"]).good();
    assert_text(&house, "a.md", "First.\nSecond.\nThree.\n");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M a.md");
    assert_eq!(git(&notes, &["stash", "list"]), "");
}

#[test]
fn a_stash_whose_new_files_are_not_back_is_kept() {
    let house = House::with(&[("a.md", TEXT)]);
    with_remote(&house);
    let notes = house.path("notes");
    retype(&house, "a.md", "One", "First");
    house.write("notes/new.txt", b"put aside\n");
    run_in_volume(&house, &["stash"]).good();
    retype(&house, "a.md", "Two", "Second");
    commit(&house, "Main");
    house.write("notes/new.txt", b"other\n");
    run_in_volume(&house, &["stash", "pop"]).good();
    assert_text(&house, "a.md", "First.\nSecond.\nThree.\n");
    assert_eq!(house.read("notes/new.txt"), b"other\n");
    assert_eq!(git(&notes, &["show", "stash@{0}^3:new.txt"]), "put aside");
}

#[test]
fn a_note_in_conflict_is_named_beside_a_merged_one_of_the_same_name() {
    let house = House::with(&[("a.md", TEXT), ("sub/a.md", TEXT)]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-q", "-c", "idea"]);
    retype(&house, "a.md", "One", "First");
    retype(&house, "sub/a.md", "Two", "Idea");
    commit(&house, "Idea");
    git(&notes, &["switch", "-q", "main"]);
    retype(&house, "a.md", "Two", "Second");
    retype(&house, "sub/a.md", "Two", "Main");
    commit(&house, "Main");
    run_in_volume(&house, &["merge", "idea", "--keep-conflicts"]).refused(1, "sub/a.md");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "M  a.md\nUU sub/a.md");
}
