//! What Git ignores and how it encodes, beside what the program says: rules in several folders, texts in encodings
//! other than UTF-8, and the letters of conflicts.

use super::agents::house as agents_house;
use super::git::{caller, git, know_user, run_in, with_remote};
use crate::program::House;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The lines of Git's own status, with each new file.
fn git_status(folder: &Path) -> BTreeSet<String> {
    let words = ["-c", "core.quotePath=false", "status", "--porcelain", "--untracked-files=all"];
    // The first line may begin with a space, which `git` trims.
    let done = std::process::Command::new("git").args(words).current_dir(folder).output().expect("git is there");
    String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect()
}

/// The lines of the program's status.
#[track_caller]
fn status(house: &House) -> BTreeSet<String> {
    let status = run_in(house, "notes", &["status", "--json"]).good().json();
    let line =
        |file: &Value| format!("{} {}", file["status"].as_str().expect("text"), file["path"].as_str().expect("text"));
    status["files"].as_array().expect("a list").iter().map(line).collect()
}

#[test]
fn a_file_that_another_folder_takes_back_is_not_ignored() {
    let (address, results) = caller(vec![("git_commit", json!({"message": "Kept"}))]);
    let house = agents_house(&address, &[("a.md", "one\n")]);
    with_remote(&house);
    house.write(".gitconfig", b"[core]\n\texcludesFile = ~/ignored\n");
    house.write("ignored", b"*.bak\n");
    house.write("notes/.git/info/exclude", b"*.tmp\n");
    house.write("notes/.gitignore", b"*.pdf\nout/\n!kept.tmp\n!kept.bak\n!inside.md\n");
    house.write("notes/figures/.gitignore", b"!plot.pdf\n");
    house.write("notes/figures/old/.gitignore", b"plot.pdf\n");
    for name in ["x.pdf", "x.tmp", "x.bak", "kept.tmp", "kept.bak", "plot.pdf", "figures/x.pdf", "figures/plot.pdf"] {
        house.write(&format!("notes/{name}"), b"x\n");
    }
    for name in ["figures/new/plot.pdf", "figures/old/plot.pdf", "out/inside.md", "out/tracked.md"] {
        house.write(&format!("notes/{name}"), b"x\n");
    }
    let notes = house.path("notes");
    git(&notes, &["add", "--force", "out/tracked.md"]);
    let words = ["-c", "core.excludesFile=../ignored", "status", "--porcelain", "--untracked-files=all"];
    let expected: BTreeSet<String> = git(&notes, &words).lines().map(str::to_owned).collect();
    assert!(expected.contains("?? figures/plot.pdf") && !expected.contains("?? out/inside.md"), "{expected:?}");
    assert_eq!(status(&house), expected);
    let diff = run_in(&house, "notes", &["diff"]).good().text();
    assert!(diff.contains("b/kept.bak") && !diff.contains("b/x.bak"), "{diff}");
    git(&notes, &["reset", "-q"]);
    house.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("figures/new/plot.pdf"), "{heard:?}");
    let committed = git(&notes, &["ls-tree", "-r", "--name-only", "HEAD"]);
    let names: Vec<&str> = committed.lines().collect();
    let kept = ["figures/new/plot.pdf", "figures/old/.gitignore", "figures/plot.pdf", "kept.bak", "kept.tmp"];
    assert_eq!(names, [".gitignore", "a.md", "figures/.gitignore"].iter().chain(&kept).copied().collect::<Vec<_>>());
}

#[test]
fn a_file_in_another_encoding_is_committed_as_git_does() {
    let (address, results) = caller(vec![("git_commit", json!({"message": "Both"}))]);
    let house = agents_house(&address, &[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    let utf_16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    house.write("notes/.gitattributes", b"*.csv text working-tree-encoding=UTF-16LE eol=crlf\n");
    house.write("notes/data.csv", &utf_16("a;b\r\n"));
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "Data"]);
    // Touched, it's the same.
    let file = std::fs::File::options().write(true).open(notes.join("data.csv")).expect("opened");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).expect("set");
    drop(file);
    assert_eq!(status(&house), BTreeSet::new());
    assert_eq!(run_in(&house, "notes", &["diff"]).good().text(), "");
    house.write("notes/data.csv", &utf_16("a;b\r\nü;1\r\n"));
    house.write("notes/a.md", b"one\ntwo\n");
    assert_eq!(status(&house), git_status(&notes));
    house.run(&["ask", "commit it", "--json"]).good();
    let heard = results.lock().expect("heard").clone();
    assert!(heard[0].contains("“Both”"), "{heard:?}");
    assert_eq!(git(&notes, &["cat-file", "blob", "HEAD:data.csv"]), "a;b\nü;1");
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
}

#[test]
fn messages_are_read_in_their_encoding_and_with_their_first_paragraph() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    house.write("japanese", b"\x1b$B$3$s\x1b(B\n");
    house.write("long", b"One idea that goes on\nin a second line\n\nThe rest.\n");
    for (file, encoding) in [("../japanese", "ISO-2022-JP"), ("../long", "UTF-8")] {
        let setting = format!("i18n.commitEncoding={encoding}");
        git(&notes, &["-c", &setting, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", file]);
    }
    let log = run_in(&house, "notes", &["log", "--json"]).good().json();
    let subjects: Vec<&str> =
        log.as_array().expect("a list").iter().filter_map(|commit| commit["summary"].as_str()).collect();
    assert_eq!(subjects, git(&notes, &["log", "--format=%s"]).lines().collect::<Vec<_>>());
    assert_eq!(subjects, ["One idea that goes on in a second line", "こん", "First"]);
    let show = run_in(&house, "notes", &["show"]).good().text();
    assert!(show.ends_with("One idea that goes on in a second line\n\n    The rest.\n\n"), "{show}");
}

#[test]
fn each_kind_of_conflict_has_the_letters_of_git() {
    let names = ["both", "deleted-there", "deleted-here", "moved"];
    let house = House::new();
    for name in names {
        house.write(&format!("notes/{name}.md"), format!("{name}\n").repeat(9).as_bytes());
    }
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-qc", "side"]);
    house.write("notes/both.md", b"side\n");
    git(&notes, &["rm", "-q", "deleted-there.md"]);
    house.write("notes/deleted-here.md", b"side\n");
    git(&notes, &["mv", "moved.md", "moved-side.md"]);
    house.write("notes/added.md", b"side\n");
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "Side"]);
    git(&notes, &["switch", "-q", "main"]);
    house.write("notes/both.md", b"main\n");
    house.write("notes/deleted-there.md", b"main\n");
    git(&notes, &["rm", "-q", "deleted-here.md"]);
    git(&notes, &["mv", "moved.md", "moved-main.md"]);
    house.write("notes/added.md", b"main\n");
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "Main"]);
    run_in(&house, "notes", &["merge", "side", "--keep-conflicts"]).refused(1, "Both sides");
    let expected = git_status(&notes);
    let letters: BTreeSet<&str> = expected.iter().filter_map(|line| line.get(..2)).collect();
    assert_eq!(letters, BTreeSet::from(["AA", "AU", "DD", "DU", "UA", "UD", "UU"]), "{expected:?}");
    assert_eq!(status(&house), expected);
    run_in(&house, "notes", &["stash"]).refused(1, "still in conflict");
    run_in(&house, "notes", &["switch", "side"]).refused(2, "is under way");
}

#[test]
fn changes_that_conflict_after_a_merge_leave_no_markers_in_a_note() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["switch", "-qc", "side"]);
    house.write("notes/a.md", b"side\n");
    git(&notes, &["commit", "-qam", "Side"]);
    git(&notes, &["switch", "-q", "main"]);
    house.write("notes/a.md", b"mine\n");
    git(&notes, &["config", "merge.autoStash", "true"]);
    run_in(&house, "notes", &["merge", "side"]).refused(1, "conflict with them in a.md");
    assert_eq!(git(&notes, &["stash", "list"]).lines().count(), 1);
    assert_eq!(git(&notes, &["log", "-1", "--format=%s"]), "Side");
    // The note has no markers, and the choice is there.
    let text = house.read("notes/a.md");
    assert!(text == b"side\n" || text == b"mine\n", "{text:?}");
    run_in(&house, "notes", &["resolve", "a.md", "--theirs"]).good();
    assert_eq!(house.cat("notes/a.md"), b"mine\n");
}

#[test]
fn a_lock_in_a_worktree_and_a_silent_hook_are_explained() {
    let house = House::with(&[("a.md", "one\n")]);
    with_remote(&house);
    let notes = house.path("notes");
    git(&notes, &["worktree", "add", "-q", "../beside", "-b", "beside"]);
    know_user(&house.path("beside"));
    house.write("beside/a.md", b"two\n");
    house.write("notes/.git/worktrees/beside/index.lock", b"");
    run_in(&house, "beside", &["stash"]).refused(2, "worktrees/beside/index.lock and try again");
    std::fs::remove_file(notes.join(".git/worktrees/beside/index.lock")).expect("it's there");
    house.write("notes/.git/refs/stash.lock", b"");
    run_in(&house, "beside", &["stash"]).refused(2, "refs/stash.lock and try again");
    std::fs::remove_file(notes.join(".git/refs/stash.lock")).expect("it's there");
    let hook = notes.join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    for (script, said) in
        [("exit 1", "hooks may have stopped it"), ("echo 'only 50% of it is new' >&2\nexit 1", "only 50% of it")]
    {
        std::fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        run_in(&house, "beside", &["commit", "-m", "Two"]).refused(2, said);
    }
}

#[test]
fn a_repository_whose_own_files_are_elsewhere_has_the_files_of_its_folder() {
    let house = House::with(&[("a.md", "one\n"), ("sub/b.md", "two\n")]);
    house.write("beside.md", b"not in the repository\n");
    let notes = house.path("notes");
    git(&notes, &["init", "-q", "-b", "main", "--separate-git-dir=../own"]);
    know_user(&notes);
    assert_eq!(status(&house), BTreeSet::from(["?? a.md".to_owned(), "?? sub/b.md".to_owned()]));
    assert_eq!(run_in(&house, "notes/sub", &["status"]).good().text(), "On main, no commit yet\n?? b.md\n");
    for words in [&["tag", "t"][..], &["branch", "b"], &["stash"]] {
        run_in(&house, "notes", words).refused(2, "there is no commit yet");
    }
    run_in(&house, "notes", &["commit", "-m", "First"]).good();
    house.write("notes/sub/b.md", b"two\nthree\n");
    assert!(run_in(&house, "notes", &["diff"]).good().text().contains("b/sub/b.md"));
    assert_eq!(run_in(&house, "notes", &["blame", "a.md", "--json"]).good().json()[0]["author"], "Ada");
}
