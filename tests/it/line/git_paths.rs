//! Names of files for `tracebook git`: with the volume in front, as search shows them, or with `/` for its root.

use super::git::{git, know_user, with_remote};
use crate::program::{Done, House, finish};

/// Runs `tracebook git …` in a folder, for the house's workspace.
fn run_in(house: &House, folder: &str, words: &[&str]) -> Done {
    let workspace = house.path("W").display().to_string();
    let all: Vec<&str> = ["git", "--workspace", &workspace].into_iter().chain(words.iter().copied()).collect();
    let mut command = house.command(&all);
    command.current_dir(house.path(folder));
    finish(command, b"")
}

/// The volumes `notes` and `other`, each a repository with a commit.
fn two_repositories() -> House {
    let house = House::with(&[("a.md", "one\n"), ("sub/Deep Plan.md", "deep\n")]);
    with_remote(&house);
    house.write("other/Tower.md", b"tower\n");
    let other = house.path("other");
    git(&other, &["init", "-q", "-b", "main"]);
    know_user(&other);
    git(&other, &["add", "-A"]);
    git(&other, &["commit", "-qm", "Built"]);
    house.run(&["open", "other"]).good();
    house
}

#[test]
fn files_are_named_with_their_volume_or_from_its_root() {
    let house = two_repositories();
    for (folder, name, text) in [
        ("notes", "/a.md", "one"),
        ("notes", "notes/a.md", "one"),
        ("notes", "/Notes/A", "one"),
        ("notes", "notes/sub/deep_plan.md", "deep"),
        ("notes/sub", "Deep Plan.md", "deep"),
        ("notes/sub", "/a.md", "one"),
        ("notes/sub", "notes:a.md", "one"),
        ("notes", "other/Tower.md", "tower"),
        ("", "other/tower", "tower"),
        ("", "/notes/a.md", "one"),
    ] {
        let blame = run_in(&house, folder, &["blame", name]).good().text();
        assert!(blame.trim_end().ends_with(text), "{folder}: {name}: {blame}");
        let log = run_in(&house, folder, &["log", name]).good().text();
        assert!(log.ends_with(if text == "tower" { ": Built\n" } else { ": First\n" }), "{folder}: {name}: {log}");
    }
    let absolute = house.path("other/Tower.md").display().to_string();
    assert!(run_in(&house, "notes", &["blame", &absolute]).good().text().contains("tower"));
    house.run(&["git", "blame", "Notes/a", "--volume", "NOTES"]).good();
    house.write("notes/a.md", b"two\n");
    assert!(run_in(&house, "notes/sub", &["diff", "/notes/a.md"]).good().text().contains("+two"));
    assert!(run_in(&house, "", &["diff", "HEAD", "notes/a.md"]).good().text().contains("+two"));
    run_in(&house, "notes", &["diff", "HEAD", "/sub"]).good();
    run_in(&house, "notes", &["add", "Notes/a.md"]).good();
    assert_eq!(git(&house.path("notes"), &["diff", "--cached", "--name-only"]), "a.md");
    run_in(&house, "notes/sub", &["restore", "--staged", "/a.md"]).good();
    assert_eq!(git(&house.path("notes"), &["diff", "--cached", "--name-only"]), "");
    house.write("notes/sub/Deep Plan.md", b"deeper\n");
    run_in(&house, "notes/sub", &["commit", "-m", "Both", "/a.md", "Deep Plan.md"]).good();
    assert_eq!(git(&house.path("notes"), &["status", "--porcelain"]), "");
    // What older commits have is named in the same way, and what Git knows in the folder comes first.
    git(&house.path("notes"), &["rm", "-q", "a.md"]);
    git(&house.path("notes"), &["commit", "-qm", "Gone"]);
    assert!(run_in(&house, "notes", &["log", "--", "notes/a.md"]).good().text().contains(": Gone\n"));
    house.write("notes/notes/a.md", b"inner\n");
    run_in(&house, "notes", &["add", "notes/a.md"]).good();
    assert_eq!(git(&house.path("notes"), &["diff", "--cached", "--name-only"]), "notes/a.md");
}

#[test]
fn names_that_mean_no_file_or_several_volumes_are_refused() {
    let house = two_repositories();
    for (words, about) in [
        (&["blame", "notes/b.md"][..], "The closest are: a.md, "),
        (&["add", "/sub/Deep Pan.md"], "The closest are: sub/Deep Plan.md"),
        (&["diff", "other/Towr.md"], "The closest are: "),
        (&["diff", "a.md", "other/Tower.md"], "files of several volumes are named"),
        (&["blame", "system/agents/system.md"], "System has no history in Git"),
        (&["blame", "/etc/passwd"], "/etc/passwd"),
    ] {
        run_in(&house, "notes", words).refused(2, about);
    }
    house.write("notes/a.md", b"changed\n");
    run_in(&house, "notes", &["restore", "notes"]).code(2);
    assert_eq!(house.read("notes/a.md"), b"changed\n", "a volume isn't discarded by its name");
    house.write("W/config.yaml", b"volumes:\n  other: {readonly: true}\n");
    house.write("other/Tower.md", b"higher\n");
    run_in(&house, "notes", &["add", "other/Tower.md"]).refused(2, "other");
    assert_eq!(git(&house.path("other"), &["diff", "--cached", "--name-only"]), "");
}

#[test]
fn a_suggested_command_can_be_pasted() {
    let house = House::with(&[("My note's plan.md", "one\n"), ("-odd.md", "odd\n")]);
    with_remote(&house);
    for name in ["My note's plan.md", "-odd.md"] {
        house.write(&format!("notes/{name}"), b"typed\n");
        let said = run_in(&house, "notes", &["restore", "--", name]).good().text();
        let command = said.lines().find_map(|line| line.strip_prefix("To undo: tracebook git ")).expect("a command");
        let words = std::process::Command::new("sh").args(["-c", &format!("printf '%s\\n' {command}")]).output();
        let words = String::from_utf8(words.expect("a shell").stdout).expect("text");
        run_in(&house, "notes", &words.lines().collect::<Vec<_>>()).good();
        assert_eq!(house.read(&format!("notes/{name}")), b"typed\n", "{command}");
    }
}

#[test]
fn blame_shows_text_in_other_encodings() {
    let house = House::with(&[("a.md", "a\n")]);
    house.write("notes/latin.txt", b"caf\xe9\r\nth\xe9\r\n");
    with_remote(&house);
    house.write("notes/latin.txt", b"caf\xe9\r\nth\xe9\r\nmenu\xfc\n");
    let blame = run_in(&house, "notes", &["blame", "latin.txt"]).good().text();
    let lines: Vec<&str> = blame.lines().collect();
    let [first, second, third] = lines.as_slice() else { panic!("{blame}") };
    assert!(first.contains(" Ada ") && first.ends_with("1 caf\u{fffd}") && second.ends_with("2 th\u{fffd}"), "{blame}");
    assert!(third.contains("not committed") && third.ends_with("3 menu\u{fffd}"), "{blame}");
    std::os::unix::fs::symlink("a.md", house.path("notes/link.md")).expect("linked");
    git(&house.path("notes"), &["add", "link.md"]);
    std::fs::remove_file(house.path("notes/link.md")).expect("removed");
    std::os::unix::fs::symlink("latin.txt", house.path("notes/link.md")).expect("linked");
    run_in(&house, "notes", &["restore", "link.md"]).refused(2, "only with Git itself: link.md");
}
