//! Git beside sync: two devices share a volume over a hub, and each pushes and pulls the same repository. The same text
//! reaches a note both ways, and is there once.

use super::Two;
use crate::line::git::{git, know_user, run_in_volume};
use crate::program::{House, chosen_seeds};
use std::path::PathBuf;

const PARTS: usize = 8;

/// A note of paragraphs that are far enough apart for Git to merge changes of two neighbors.
fn note() -> String {
    (0..PARTS).map(|part| format!("Part {part}.\n\nBetween.\n\n")).collect()
}

/// Two devices with the note `a.md`, each with a clone of one repository.
fn with_repositories() -> Two {
    let both = Two::new(&[("a.md", &note())]);
    // Each has the note's document before the first commit.
    both.one.edit("a.md", 0, 0, "# Mine\n\n");
    both.settle();
    both.same();
    git(&both.one.path(""), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    let remote = both.one.path("remote.git");
    for house in [&both.one, &both.two] {
        let notes = folder(house);
        git(&notes, &["init", "-q", "-b", "main"]);
        know_user(&notes);
        git(&notes, &["remote", "add", "origin", &remote.display().to_string()]);
    }
    let (one, two) = (folder(&both.one), folder(&both.two));
    git(&one, &["add", "-A"]);
    git(&one, &["commit", "-qm", "First"]);
    git(&one, &["push", "-q", "-u", "origin", "main"]);
    git(&two, &["fetch", "-q"]);
    git(&two, &["reset", "-q", "origin/main"]);
    git(&two, &["branch", "-q", "-u", "origin/main"]);
    both
}

fn folder(house: &House) -> PathBuf {
    house.path("notes")
}

fn text(house: &House) -> String {
    String::from_utf8(house.cat("a.md")).expect("text")
}

/// Types at the end of a paragraph.
fn type_into(house: &House, part: usize, words: &str) {
    let (text, begin) = (text(house), format!("Part {part}."));
    let at = text.find(&begin).unwrap_or_else(|| panic!("no “{begin}” in: {text}")) + begin.len();
    house.edit("a.md", at, 0, words);
}

/// Commits what differs, if anything does.
fn commit(house: &House, message: &str) {
    // Everything that was typed is in its file when a command has ended.
    house.run(&["ls"]).good();
    if !git(&folder(house), &["status", "--porcelain"]).is_empty() {
        git(&folder(house), &["commit", "-qam", message]);
    }
}

fn pull(house: &House) {
    git(&folder(house), &["pull", "-q", "--no-rebase", "--no-edit"]);
    house.run(&["ls"]).good();
}

fn push(house: &House) {
    git(&folder(house), &["push", "-q"]);
}

#[track_caller]
fn assert_once(both: &Two, words: &[String]) {
    assert_eq!(text(&both.one), text(&both.two));
    for house in [&both.one, &both.two] {
        let text = text(house);
        for word in words {
            assert_eq!(text.matches(word.as_str()).count(), 1, "“{word}” in: {text}");
        }
        let (from_disk, notes) = (house.read("notes/a.md"), text.as_bytes());
        assert_eq!(from_disk, notes, "the file is the note");
        house.run(&["fsck"]).code(0);
    }
}

#[test]
fn what_comes_by_git_and_then_by_sync_is_there_once() {
    let both = with_repositories();
    both.apart();
    type_into(&both.one, 1, " typed-by-one;");
    commit(&both.one, "One");
    push(&both.one);
    // The other device has typed, too, takes the commit over, and continues.
    type_into(&both.two, 5, " typed-by-two;");
    commit(&both.two, "Two");
    pull(&both.two);
    assert!(text(&both.two).contains("typed-by-one"), "{}", text(&both.two));
    push(&both.two);
    type_into(&both.two, 1, " after;");
    type_into(&both.one, 2, " later;");
    both.together();
    assert_once(&both, &[" typed-by-one;", " typed-by-two;", " after;", " later;"].map(str::to_owned));
    // The first device gets its part of the merge after sync has brought it.
    commit(&both.one, "Later");
    pull(&both.one);
    push(&both.one);
    commit(&both.two, "After");
    pull(&both.two);
    both.settle();
    assert_once(&both, &[" typed-by-one;", " typed-by-two;", " after;", " later;"].map(str::to_owned));
}

/// Two devices that both have a passage by sync, and have each committed it with an edit of their own, which the other
/// one has by sync, too. The first one's commit is pushed.
fn with_shared_passage() -> Two {
    let both = with_repositories();
    both.one.edit("a.md", 0, 0, "Alpha.\n\nBeta.\n\nGamma.\n\n");
    both.settle();
    both.apart();
    for (house, name) in [(&both.one, "Alpha"), (&both.two, "Gamma")] {
        let at = text(house).find(name).expect("it's there") + name.len();
        house.edit("a.md", at, 0, " new");
        run_in_volume(house, &["commit", "--all", "-m", name]).good();
    }
    push(&both.one);
    both.together();
    both.apart();
    both
}

/// Merges by Git alone what the other device has pushed, which is a conflict, and takes that back.
fn assert_conflict_of_git(house: &House) {
    let notes = folder(house);
    git(&notes, &["fetch", "-q"]);
    let merge = std::process::Command::new("git").args(["merge", "-q", "origin/main"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success());
    assert_eq!(git(&notes, &["diff", "--name-only", "--diff-filter=U"]), "a.md");
    git(&notes, &["merge", "--abort"]);
}

/// Brings the commits of the second device to the first one, and both together.
fn finish(both: &Two, words: &[&str]) {
    push(&both.two);
    both.together();
    align(both);
    assert_once(both, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
}

#[test]
fn what_both_have_by_sync_and_by_git_is_merged_without_a_question() {
    // The second device commits what sync has brought, so its version contains the other one.
    let both = with_shared_passage();
    run_in_volume(&both.two, &["commit", "--all", "-m", "All"]).good();
    assert_conflict_of_git(&both.two);
    let expected = text(&both.two);
    run_in_volume(&both.two, &["pull"]).good();
    assert_eq!(git(&folder(&both.two), &["log", "-1", "--format=%P"]).split(' ').count(), 2, "a merge");
    assert_eq!(text(&both.two), expected);
    finish(&both, &["Alpha new.", "Beta.", "Gamma new."]);
    // It takes its file back to its own commit instead, as Git asks for, so each version lacks the other one's edit.
    let both = with_shared_passage();
    git(&folder(&both.two), &["restore", "a.md"]);
    assert!(!text(&both.two).contains("Alpha new"), "{}", text(&both.two));
    assert_conflict_of_git(&both.two);
    run_in_volume(&both.two, &["pull"]).good();
    let merged = text(&both.two);
    assert!(merged.starts_with("Alpha new.\n\nBeta.\n\nGamma new.\n\n# Mine\n\nPart 0."), "{merged}");
    assert_eq!(both.two.read("notes/a.md"), merged.as_bytes());
    finish(&both, &["Alpha new.", "Beta.", "Gamma new."]);
}

/// Syncs both devices, and gives both repositories the same commits.
fn align(both: &Two) {
    both.settle();
    for house in [&both.one, &both.two, &both.one] {
        commit(house, "All");
        pull(house);
        push(house);
    }
}

#[test]
fn devices_that_pull_push_and_sync_in_any_order_agree_and_double_nothing() {
    // The nightly run takes others.
    for seed in chosen_seeds("TRACEBOOK_GIT_SEEDS", 3..4) {
        println!("TRACEBOOK_GIT_SEEDS={seed}..{}", seed + 1);
        let both = with_repositories();
        let (mut state, mut words, mut is_apart) = (seed, Vec::new(), false);
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for step in 0..10 {
            let (house, first) = if draw(2) == 0 { (&both.one, 0) } else { (&both.two, 4) };
            match draw(7) {
                0..=2 => {
                    if !is_apart {
                        // Otherwise sync could move the text between looking and typing.
                        both.settle();
                    }
                    let word = format!(" w{seed}-{step};");
                    type_into(house, first + usize::try_from(draw(4)).expect("small"), &word);
                    words.push(word);
                }
                3 | 4 => {
                    if !is_apart {
                        align(&both);
                        continue;
                    }
                    commit(house, &format!("Step {step}"));
                    pull(house);
                    push(house);
                }
                5 => {
                    if is_apart {
                        both.together()
                    } else {
                        both.apart()
                    }
                    is_apart = !is_apart;
                }
                _ => {
                    // Another program writes.
                    let word = format!(" x{seed}-{step};");
                    let part = format!("Part {}.", first + usize::try_from(draw(4)).expect("small"));
                    let text = String::from_utf8(house.read("notes/a.md")).expect("text");
                    house.write("notes/a.md", text.replacen(&part, &format!("{part}{word}"), 1).as_bytes());
                    words.push(word);
                }
            }
        }
        if is_apart {
            both.together();
        }
        for house in [&both.one, &both.two, &both.one] {
            both.settle();
            commit(house, "Last");
            pull(house);
            push(house);
        }
        both.settle();
        both.settle();
        assert_once(&both, &words);
    }
}
