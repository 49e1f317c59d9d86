//! More of source control in the window: read-only volumes, amended commits, marks in the tree, ways to pull, diffs
//! side by side, text from Git in an open note, and a device without Git.

use super::source_control::{activate, add_remote, click, commit_all, git, has, mark, open_page, wait};
use super::*;
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;

#[test]
fn a_read_only_volume_has_a_lock_and_takes_no_text() {
    let bench = Bench::new(&[("One.md", "one\n\n- [ ] task\n")]);
    bench.opened().into_state().close().expect("all is saved");
    let config = bench.folder.path().join("workspace/config.yaml");
    std::fs::write(&config, "volumes:\n  notes: {readonly: true}\n").expect("written");
    let mut window = bench.window();
    until(&mut window, "the volume is in the tree", |window| {
        window.query_by_role_and_label(Role::TreeItem, "notes (read-only)").is_some()
    });
    assert!(window.query_by_role_and_label(Role::TreeItem, "notes").is_none());
    until(&mut window, "the note is shown", |window| text(window).is_some());
    pictured(&mut window, "read-only-volume");
    window.state_mut().place_caret(3);
    window.run();
    type_text(&mut window, " more");
    wait(&mut window, "is read-only. Remove `readonly` of notes from config.yaml to change it.");
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::Backspace);
    window.get_by_role_and_label(Role::CheckBox, "task").click();
    window.run();
    assert_eq!(text(&window).as_deref(), Some("one\n\n- [ ] task\n"));
    assert_eq!(bench.file("One.md"), "one\n\n- [ ] task\n");
    // What other programs write is still read.
    std::fs::write(bench.notes().join("One.md"), "one\ntwo\n").expect("written");
    until(&mut window, "the note has it", |window| text(window).as_deref() == Some("one\ntwo\n"));
    window.into_state().close().expect("all is saved");
    std::fs::write(&config, "").expect("written");
    let mut window = bench.window();
    until(&mut window, "the note is shown", |window| text(window).is_some());
    window.get_by_role_and_label(Role::TreeItem, "notes");
    window.state_mut().place_caret(3);
    window.run();
    type_text(&mut window, " more");
    until(&mut window, "it's in the file", |_| bench.file("One.md") == "one more\ntwo\n");
}

#[test]
fn the_last_commit_is_amended() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "two\n").expect("written");
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "One.md, modified, not staged");
    click(&mut window, "Stage One.md");
    wait(&mut window, "One.md, modified, staged");
    click(&mut window, "Amend the last commit");
    click(&mut window, "Amend commit");
    wait(&mut window, "Nothing has changed since the last commit.");
    assert_eq!(git(&bench.notes(), &["log", "--format=%s"]), "First");
    assert_eq!(git(&bench.notes(), &["show", "HEAD:One.md"]), "two");
    until(&mut window, "the choice is used up", |window| window.query_by_label("Amend commit").is_none());
    click(&mut window, "Amend the last commit");
    click(&mut window, "Commit message");
    type_text(&mut window, "Better words");
    click(&mut window, "Amend commit");
    wait(&mut window, "Better words, by Ada");
    assert_eq!(git(&bench.notes(), &["log", "--format=%s"]), "Better words");
}

#[test]
fn all_kinds_of_changes_are_marked_and_rolled_up() {
    let long = "A line of text that is long enough to be found again.\n".repeat(5);
    let bench = Bench::new(&[
        // A window opens the first note that is in no folder.
        ("Top.md", "top\n"),
        ("Changed/kept.md", "kept\n"),
        ("Gone/kept too.md", "kept\n"),
        ("Gone/removed.md", "removed\n"),
        ("Moved/before.md", &long),
        ("Clash/Deep/both.md", "one\n"),
        ("Clash/other.md", "other\n"),
        ("Same/same.md", "same\n"),
        ("Several/a.md", "a\n"),
        ("Several/b.md", "b\n"),
    ]);
    commit_all(&bench);
    let notes = bench.notes();
    git(&notes, &["switch", "-q", "-c", "idea"]);
    std::fs::write(notes.join("Clash/Deep/both.md"), "idea\n").expect("written");
    git(&notes, &["commit", "-qam", "Idea"]);
    git(&notes, &["switch", "-q", "main"]);
    std::fs::write(notes.join("Clash/Deep/both.md"), "main\n").expect("written");
    git(&notes, &["commit", "-qam", "Main"]);
    let merge = std::process::Command::new("git").args(["merge", "-q", "idea"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success(), "a conflict");
    std::fs::write(notes.join("Changed/fresh.md"), "fresh\n").expect("written");
    git(&notes, &["add", "Changed/fresh.md"]);
    git(&notes, &["rm", "-q", "Gone/removed.md"]);
    git(&notes, &["mv", "Moved/before.md", "Moved/after.md"]);
    std::fs::write(notes.join("Clash/other.md"), "changed\n").expect("written");
    std::fs::write(notes.join("Several/new.md"), "new\n").expect("written");
    std::fs::remove_file(notes.join("Several/b.md")).expect("removed");
    let mut window = bench.opened();
    let folders = [
        ("Changed", Some("added")),
        ("Gone", Some("deleted")),
        ("Moved", Some("renamed")),
        ("Clash", Some("in conflict")),
        ("Several", Some("modified")),
        ("Same", None),
    ];
    for (name, kind) in folders {
        until(&mut window, name, |window| mark(window, name).as_deref() == kind);
    }
    for (folder, name, kind) in [
        ("Changed", "fresh", Some("added")),
        ("Changed", "kept", None),
        ("Moved", "after", Some("renamed")),
        ("Clash", "Deep", Some("in conflict")),
        ("Clash", "other", Some("modified")),
        ("Several", "new", Some("untracked")),
        ("Several", "a", None),
    ] {
        if window.query_by_role_and_label(Role::TreeItem, name).is_none() {
            window.get_by_role_and_label(Role::TreeItem, folder).click_accesskit();
            window.run();
        }
        until(&mut window, name, |window| window.query_by_role_and_label(Role::TreeItem, name).is_some());
        assert_eq!(mark(&window, name).as_deref(), kind, "{folder}/{name}");
    }
    pictured(&mut window, "source-control-marks");
    // Once all is committed, nothing is marked.
    std::fs::write(notes.join("Clash/Deep/both.md"), "both\n").expect("written");
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "All"]);
    for name in ["Changed", "Gone", "Moved", "Clash", "Several", "fresh", "after", "Deep"] {
        until(&mut window, name, |window| mark(window, name).is_none());
    }
}

#[test]
fn a_pull_merges_or_rebases() {
    let bench = Bench::new(&[("One.md", "one\n"), ("Two.md", "two\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let (notes, other) = (bench.notes(), bench.folder.path().join("other"));
    git(bench.folder.path(), &["clone", "-q", "remote.git", "other"]);
    git(&other, &["config", "user.name", "Bob"]);
    git(&other, &["config", "user.email", "bob@example.org"]);
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "Branch: main, even with origin/main");
    let merges = || git(&notes, &["rev-list", "--count", "--merges", "origin/main..HEAD"]);
    let choose = |window: &mut Driven, way: Option<&str>| match way {
        None => click(window, "Pull"),
        Some(item) => {
            click(window, "Ways to pull");
            window.get_by_role_and_label(Role::MenuItem, item).click();
            window.run();
        }
    };
    for (number, (setting, way, own_merges)) in [
        (None, None, "1"),
        (None, Some("Pull and rebase"), "0"),
        (Some("true"), None, "0"),
        (Some("true"), Some("Pull and merge"), "1"),
    ]
    .into_iter()
    .enumerate()
    {
        if let Some(value) = setting {
            git(&notes, &["config", "pull.rebase", value]);
        }
        std::fs::write(other.join("Two.md"), format!("Bob's {number}\n")).expect("written");
        git(&other, &["commit", "-qam", "Bob's"]);
        git(&other, &["push", "-q"]);
        std::fs::write(notes.join("One.md"), format!("mine {number}\n")).expect("written");
        git(&notes, &["commit", "-qam", "Mine"]);
        wait(&mut window, "Branch: main, 1 commit ahead");
        choose(&mut window, way);
        wait(&mut window, "Pulled.");
        assert_eq!(merges(), own_merges, "{setting:?} {way:?}");
        assert_eq!(bench.file("Two.md"), format!("Bob's {number}\n"));
        click(&mut window, "Dismiss");
        git(&notes, &["push", "-q"]);
        git(&other, &["pull", "-q"]);
        wait(&mut window, "Branch: main, even with origin/main");
    }
    // Both sides of a rebase are offered to choose from, too.
    std::fs::write(other.join("One.md"), "Bob's\n").expect("written");
    git(&other, &["commit", "-qam", "Bob's"]);
    git(&other, &["push", "-q"]);
    std::fs::write(notes.join("One.md"), "mine\n").expect("written");
    git(&notes, &["commit", "-qam", "Mine"]);
    wait(&mut window, "Branch: main, 1 commit ahead");
    choose(&mut window, Some("Pull and rebase"));
    wait(&mut window, "Both sides have changed the same lines of One.md. Nothing was merged");
    click(&mut window, "Resolve conflicts");
    wait(&mut window, "A rebase is in progress.");
    wait(&mut window, "One.md, in conflict, not staged");
    click(&mut window, "Abort rebase");
    wait(&mut window, "The rebase was undone.");
    assert_eq!(bench.file("One.md"), "mine\n");
}

#[test]
fn a_wide_page_shows_both_texts_beside_each_other() {
    let bench = Bench::new(&[("One.md", "The first line.\n\nThe second line.\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "The first line.\n\nThe other line.\nAnd more.\n").expect("written");
    std::fs::write(bench.notes().join("New.md"), "new\n").expect("written");
    let mut window = bench.opened();
    open_page(&mut window);
    click_when_there(&mut window, "One.md, modified, not staged");
    let changes = " The first line.\n \n-The second line.\n+The other line.\n+And more.\n";
    let is_split = |window: &Driven| {
        let shown = window.query_all_by_label_contains("-The second line.\n+The other line.\n").next();
        shown.map(|node| node.accesskit_node().description().as_deref() == Some("side by side"))
    };
    until(&mut window, "the diff is shown", |window| is_split(window).is_some());
    pictured(&mut window, "source-control-side-by-side");
    assert_eq!(is_split(&window), Some(true));
    assert!(has(&window, changes), "it's still read line by line");
    window.get_by_label("Stage hunk 1");
    // Where there's less room, each line has a row of its own.
    window.set_size(egui::vec2(600.0, 800.0));
    window.run();
    until(&mut window, "the diff is narrow", |window| is_split(window) == Some(false));
    window.set_size(egui::vec2(1280.0, 800.0));
    window.run();
    until(&mut window, "the diff is wide", |window| is_split(window) == Some(true));
    // A new file has nothing to stand beside.
    click_when_there(&mut window, "New.md, untracked, not staged");
    wait(&mut window, "+new\n");
    let new = window.query_all_by_label_contains("+new\n").next().expect("it's shown");
    assert_eq!(new.accesskit_node().description(), None);
}

fn click_when_there(window: &mut Driven, label: &str) {
    wait(window, label);
    activate(window, label);
}

#[test]
fn undo_takes_back_what_was_typed_and_keeps_what_git_brought() {
    let bench = Bench::new(&[("One.md", "one\n\ntwo\n\nthree\n\nfour\n")]);
    commit_all(&bench);
    let notes = bench.notes();
    git(&notes, &["switch", "-q", "-c", "idea"]);
    std::fs::write(notes.join("One.md"), "one\n\ntwo\n\nthree\n\nfour by Grace\n").expect("written");
    git(&notes, &["commit", "-qam", "Grace's"]);
    git(&notes, &["switch", "-q", "main"]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    type_text(&mut window, " typed");
    until(&mut window, "it's in the file", |_| bench.file("One.md").starts_with("one typed\n"));
    git(&notes, &["commit", "-qam", "Mine"]);
    git(&notes, &["merge", "-q", "--no-edit", "idea"]);
    let both = "one typed\n\ntwo\n\nthree\n\nfour by Grace\n";
    until(&mut window, "the note has both", |window| text(window).as_deref() == Some(both));
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("one\n\ntwo\n\nthree\n\nfour by Grace\n"));
    press(&mut window, CTRL_SHIFT, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(both));
    type_text(&mut window, "!");
    until(&mut window, "the file has all of it", |_| bench.file("One.md").starts_with("one typed!\n"));
    assert_eq!(git(&notes, &["diff", "--name-only"]), "One.md");
}

/// Names a folder with a repository for the test below, in a process of its own.
const REPOSITORY_VARIABLE: &str = "TRACEBOOK_TEST_REPOSITORY";

#[cfg(unix)]
#[test]
fn without_git_a_repository_is_shown_and_the_rest_says_what_is_missing() {
    let Some(repository) = std::env::var_os(REPOSITORY_VARIABLE).map(PathBuf::from) else {
        // `PATH` counts for a whole process, so the window gets one of its own.
        let bench = Bench::new(&[("One.md", "one\n")]);
        commit_all(&bench);
        let empty = bench.folder.path().join("no-programs");
        std::fs::create_dir(&empty).expect("made");
        let name = "window::source_control_more::without_git_a_repository_is_shown_and_the_rest_says_what_is_missing";
        let done = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env("PATH", &empty)
            .env(REPOSITORY_VARIABLE, bench.notes())
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&done.stderr));
        return;
    };
    let bench = Bench::new(&[("One.md", "one\n")]);
    std::fs::rename(repository.join(".git"), bench.notes().join(".git")).expect("moved");
    std::fs::write(bench.notes().join("One.md"), "one changed\n").expect("written");
    let mut window = bench.opened();
    until(&mut window, "the note is marked", |window| mark(window, "One").as_deref() == Some("modified"));
    open_page(&mut window);
    click_when_there(&mut window, "One.md, modified, not staged");
    wait(&mut window, "-one\n+one changed\n");
    wait(&mut window, "First, by Ada");
    click(&mut window, "History");
    wait(&mut window, "First, by Ada");
    click(&mut window, "Changes");
    wait(&mut window, "One.md, modified, not staged");
    activate(&mut window, "Stage One.md");
    wait(&mut window, "Git isn't installed, and this needs it.");
    click(&mut window, "Dismiss");
    click(&mut window, "Commit message");
    type_text(&mut window, "Kept");
    click(&mut window, "Commit all");
    wait(&mut window, "Git isn't installed, and this needs it.");
    assert_eq!(window.get_by_label("Commit message").value().as_deref(), Some("Kept"), "nothing is lost");
    assert_eq!(bench.file("One.md"), "one changed\n");
}

#[test]
fn the_time_of_a_commits_author_is_shown() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "one\n\ntwo\n").expect("written");
    git(&bench.notes(), &["commit", "-qam", "Late", "--date", "2001-02-03T12:00:00 +0000"]);
    let mut window = bench.opened();
    wait(&mut window, "Branch: main");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::NoteBlame);
    window.run();
    wait(&mut window, "Blame: Ada, 3 February 2001");
    open_page(&mut window);
    wait(&mut window, ": Late, by Ada, 3 February 2001");
}
