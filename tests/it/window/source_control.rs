//! Source control in the window, on real repositories with bare remotes on the local disk.

use super::*;
use crate::program::start_import;
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;
use std::path::Path;

pub(super) fn git(folder: &Path, words: &[&str]) -> String {
    let done = std::process::Command::new("git").args(words).current_dir(folder).output().expect("git is there");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Makes the folder of notes a repository with a commit of all that's in it.
pub(super) fn commit_all(bench: &Bench) {
    let notes = bench.notes();
    git(&notes, &["init", "-q", "-b", "main"]);
    git(&notes, &["config", "user.name", "Ada"]);
    git(&notes, &["config", "user.email", "ada@example.org"]);
    git(&notes, &["add", "-A"]);
    git(&notes, &["commit", "-qm", "First"]);
}

/// Adds a bare remote and pushes to it.
pub(super) fn add_remote(bench: &Bench) {
    git(bench.folder.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
    git(&bench.notes(), &["remote", "add", "origin", "../remote.git"]);
    git(&bench.notes(), &["push", "-qu", "origin", "main"]);
}

pub(super) fn has(window: &Driven, label: &str) -> bool {
    window.query_all_by_label_contains(label).next().is_some()
}

pub(super) fn wait(window: &mut Driven, label: &str) {
    until(window, label, |window| has(window, label));
}

pub(super) fn click(window: &mut Driven, label: &str) {
    click_label(window, label);
}

/// Clicks a control wherever it is: lists move while the repository is read, and a pointer would miss it.
pub(super) fn activate(window: &mut Driven, label: &str) {
    window.get_by_label(label).click_accesskit();
    window.run();
}

/// How a row of the tree is marked.
pub(super) fn mark(window: &Driven, name: &str) -> Option<String> {
    let rows = window.query_all_by_role_and_label(Role::TreeItem, name);
    rows.filter_map(|row| row.accesskit_node().description()).next()
}

pub(super) fn open_page(window: &mut Driven) {
    window.get_by_role_and_label(Role::Button, "Open source control").click();
    window.run();
}

#[test]
fn a_change_is_marked_staged_committed_and_pushed() {
    let bench = Bench::new(&[("One.md", "one\n"), ("Folder/Two.md", "two\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let mut window = bench.opened();
    wait(&mut window, "Branch: main, even with origin/main");
    assert_eq!(mark(&window, "One"), None, "nothing has changed");
    std::fs::write(bench.notes().join("Folder/New.md"), "new\n").expect("written");
    window.state_mut().place_caret(3);
    window.run();
    type_text(&mut window, " more");
    until(&mut window, "the note is marked", |window| mark(window, "One").as_deref() == Some("modified"));
    until(&mut window, "so is the folder", |window| mark(window, "Folder").as_deref() == Some("untracked"));

    // The branch in the status bar leads to the page.
    click(&mut window, "Branch: main, even with origin/main");
    window.get_by_role_and_label(Role::Heading, "Source control");
    wait(&mut window, "Folder/New.md, untracked, not staged");
    click(&mut window, "One.md, modified, not staged");
    wait(&mut window, "-one\n+one more\n");
    pictured(&mut window, "source-control");
    click(&mut window, "Stage One.md");
    wait(&mut window, "One.md, modified, staged");
    assert_eq!(git(&bench.notes(), &["diff", "--cached", "--name-only"]), "One.md");
    click(&mut window, "Unstage One.md");
    wait(&mut window, "One.md, modified, not staged");
    assert_eq!(git(&bench.notes(), &["diff", "--cached", "--name-only"]), "");
    click(&mut window, "Stage One.md");
    wait(&mut window, "One.md, modified, staged");

    click(&mut window, "Commit");
    wait(&mut window, "Write a message first");
    click(&mut window, "Commit message");
    type_text(&mut window, "Say more");
    click(&mut window, "Commit");
    wait(&mut window, "Branch: main, 1 commit ahead of and 0 commits behind origin/main");
    assert_eq!(git(&bench.notes(), &["log", "-1", "--format=%s", "--name-only"]), "Say more\n\nOne.md");
    until(&mut window, "the note has no mark", |window| mark(window, "One").is_none());
    wait(&mut window, "Folder/New.md, untracked, not staged");
    // The message is used up; without staged files, all changes are committed.
    click(&mut window, "Commit message");
    type_text(&mut window, "Add a note");
    click(&mut window, "Commit all");
    wait(&mut window, "Nothing has changed since the last commit.");
    click(&mut window, "Push");
    wait(&mut window, "Pushed to origin/main.");
    wait(&mut window, "Branch: main, even with origin/main");
    assert_eq!(git(&bench.folder.path().join("remote.git"), &["log", "--format=%s"]), "Add a note\nSay more\nFirst");
    let row = window.get_all_by_label_contains("Say more, by Ada").next().expect("the commit is listed");
    row.click();
    window.run();
    wait(&mut window, "-one\n+one more\n");
}

#[test]
fn the_message_keeps_the_keyboard_while_the_page_changes() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "Branch: main, even with origin/main");
    std::fs::write(bench.notes().join("One.md"), "two\n").expect("written");
    wait(&mut window, "One.md, modified, not staged");
    click(&mut window, "Commit message");
    type_text(&mut window, "From be");
    // A message appears above the field.
    activate(&mut window, "Fetch");
    wait(&mut window, "Fetched.");
    type_text(&mut window, "ginning ");
    // What stopped halfway is shown above the field, too.
    let head = git(&bench.notes(), &["rev-parse", "HEAD"]);
    std::fs::write(bench.notes().join(".git/MERGE_HEAD"), format!("{head}\n")).expect("written");
    wait(&mut window, "A merge is in progress.");
    type_text(&mut window, "to end");
    let written = window.get_by_label("Commit message").value();
    assert_eq!(written.as_deref(), Some("From beginning to end"));
}

#[test]
fn commits_of_others_are_pulled_and_branches_switched() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let other = bench.folder.path().join("other");
    git(bench.folder.path(), &["clone", "-q", "remote.git", "other"]);
    git(&other, &["config", "user.name", "Bob"]);
    git(&other, &["config", "user.email", "bob@example.org"]);
    std::fs::write(other.join("One.md"), "one\nfrom Bob\n").expect("written");
    git(&other, &["commit", "-qam", "Bob's words"]);
    git(&other, &["push", "-q"]);
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "Branch: main, even with origin/main");
    click(&mut window, "Fetch");
    wait(&mut window, "Fetched. 1 commit to pull.");
    wait(&mut window, "Branch: main, 0 commits ahead of and 1 commit behind origin/main");
    click(&mut window, "Pull");
    wait(&mut window, "Pulled.");
    until(&mut window, "the note has Bob's words", |window| text(window).as_deref() == Some("one\nfrom Bob\n"));
    wait(&mut window, "Bob's words, by Bob");

    let branch = |window: &mut Driven, name: &str| {
        window.get_all_by_label_contains("Branch: ").next().expect("the branch's button").click();
        window.run();
        window.get_by_role_and_label(Role::MenuItem, name).click();
        window.run();
    };
    branch(&mut window, "New branch…");
    type_text(&mut window, "idea..");
    click(&mut window, "Create branch");
    // A name that Git refuses stays, with the reason, and is corrected.
    wait(&mut window, "'idea..' is not a valid branch name");
    until(&mut window, "one can type on", |window| window.get_by_label("Name of the new branch").is_focused());
    press(&mut window, NONE, Key::Backspace);
    assert!(!has(&window, "is not a valid branch name"), "another name is typed");
    press(&mut window, NONE, Key::Backspace);
    click(&mut window, "Create branch");
    wait(&mut window, "Switched to idea.");
    until(&mut window, "the form is gone", |window| !has(window, "Name of the new branch"));
    assert_eq!(git(&bench.notes(), &["branch", "--show-current"]), "idea");
    wait(&mut window, "Branch: idea");
    // Another program's switch is seen, too.
    git(&bench.notes(), &["switch", "-q", "main"]);
    wait(&mut window, "Branch: main");
    window.get_all_by_label_contains("Branch: main").next().expect("the branch's button").click();
    window.run();
    window.get_by_role_and_label(Role::MenuItemRadio, "idea").click();
    wait(&mut window, "Branch: idea");
    until(&mut window, "it's done", |window| window.query_by_label("Dismiss").is_some());

    // What both sides have changed isn't merged, and the reason stays on the page.
    git(&bench.notes(), &["switch", "-q", "main"]);
    std::fs::write(other.join("One.md"), "one\nfrom Bob again\n").expect("written");
    git(&other, &["commit", "-qam", "Again"]);
    git(&other, &["push", "-q"]);
    std::fs::write(bench.notes().join("One.md"), "one\nfrom me\n").expect("written");
    git(&bench.notes(), &["commit", "-qam", "Mine"]);
    wait(&mut window, "Branch: main, 1 commit ahead");
    click(&mut window, "Push");
    wait(&mut window, "The remote has commits that aren't here, so nothing was pushed.");
    click(&mut window, "Pull");
    wait(&mut window, "Both sides have changed the same lines of One.md. Nothing was merged");
    click(&mut window, "Dismiss");
    assert!(!has(&window, "Both sides"));
    assert_eq!(bench.file("One.md"), "one\nfrom me\n");
}

#[test]
fn discarded_changes_can_be_brought_back() {
    let bench = Bench::new(&[("One.md", "one\n"), ("data.bin", "\u{0}old")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "one changed\n").expect("written");
    std::fs::write(bench.notes().join("data.bin"), "\u{0}new\r\n").expect("written");
    std::fs::write(bench.notes().join("New.md"), "new\n").expect("written");
    let mut window = bench.opened();
    open_page(&mut window);
    for (path, old, new) in [("One.md", "one\n", "one changed\n"), ("data.bin", "\u{0}old", "\u{0}new\r\n")] {
        wait(&mut window, &format!("{path}, modified, not staged"));
        click(&mut window, &format!("Discard changes in {path}"));
        wait(&mut window, &format!("Discarded the changes in {path}."));
        assert_eq!(bench.file(path), old);
        until(&mut window, "it isn't listed", |window| !has(window, &format!("{path}, modified")));
        click(&mut window, "Undo discard");
        wait(&mut window, &format!("Restored the changes in {path}."));
        assert_eq!(bench.file(path), new);
        wait(&mut window, &format!("{path}, modified, not staged"));
    }
    // A new note goes into the trash, like any note that's deleted.
    until(&mut window, "the note is known", |window| {
        session(window).volumes().all(|volume| volume.files.contains_key("New.md"))
    });
    click(&mut window, "Discard changes in New.md");
    until(&mut window, "it is in the trash", |window| session(window).trash().count() == 1);
    until(&mut window, "it isn't listed", |window| !has(window, "New.md, untracked"));
    // Discarded changes aren't brought back over newer ones.
    click(&mut window, "Discard changes in One.md");
    wait(&mut window, "Discarded the changes in One.md.");
    std::fs::write(bench.notes().join("One.md"), "newer\n").expect("written");
    click(&mut window, "Undo discard");
    wait(&mut window, "One.md has changed since, so it wasn't restored.");
    assert_eq!(bench.file("One.md"), "newer\n");
}

#[test]
fn hunks_and_lines_are_staged_unstaged_and_discarded() {
    let old: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let bench = Bench::new(&[("One.md", &old)]);
    commit_all(&bench);
    let new = old.replace("line 2\n", "second\nand more\n").replace("line 28\n", "line 28, changed\n");
    std::fs::write(bench.notes().join("One.md"), &new).expect("written");
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "One.md, modified, not staged");
    activate(&mut window, "One.md, modified, not staged");
    wait(&mut window, "Stage hunk 2");
    pictured(&mut window, "source-control-hunks");
    let staged = |wanted: &str| {
        let text = git(&bench.notes(), &["diff", "--cached", "-U0"]);
        let lines = text
            .lines()
            .filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---"));
        lines.collect::<Vec<_>>().join(" ") == wanted
    };
    let listed = |name: &str| {
        let row = format!("One.md, modified, {name}");
        move |window: &Driven| window.query_by_label(&row).is_some()
    };
    activate(&mut window, "Stage hunk 2");
    until(&mut window, "the hunk is staged", |window| staged("-line 28 +line 28, changed") && listed("staged")(window));
    assert_eq!(bench.file("One.md"), new, "the file stays as it is");
    until(&mut window, "one hunk is left", |window| window.query_by_label("Stage hunk 2").is_none());

    // Of the other hunk, only an added line.
    activate(&mut window, "Choose lines of hunk 1");
    activate(&mut window, "Stage lines of hunk 1");
    wait(&mut window, "Choose at least one line first.");
    activate(&mut window, "Line 3: +and more");
    pictured(&mut window, "source-control-lines");
    activate(&mut window, "Stage lines of hunk 1");
    until(&mut window, "the line is staged", |_| staged("+and more -line 28 +line 28, changed"));
    // Its place in what is staged is a hunk of its own, which is taken out again.
    activate(&mut window, "One.md, modified, staged");
    wait(&mut window, "Unstage hunk 2");
    activate(&mut window, "Unstage hunk 1");
    until(&mut window, "the line is unstaged", |_| staged("-line 28 +line 28, changed"));

    // A discarded hunk comes back, though the file has other changes.
    activate(&mut window, "One.md, modified, not staged");
    wait(&mut window, "Discard hunk 1");
    activate(&mut window, "Discard hunk 1");
    wait(&mut window, "Discarded these changes in One.md.");
    let without = old.replace("line 28\n", "line 28, changed\n");
    assert_eq!(bench.file("One.md"), without);
    until(&mut window, "the note has it, too", |window| text(window).as_deref() == Some(without.as_str()));
    activate(&mut window, "Undo discard");
    wait(&mut window, "Restored the changes in One.md.");
    assert_eq!(bench.file("One.md"), new);
    assert!(staged("-line 28 +line 28, changed"), "what is staged stays");
}

#[test]
fn branches_are_merged_rebased_and_deleted() {
    let bench = Bench::new(&[("One.md", "one\n"), ("Two.md", "two\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let notes = bench.notes();
    let commit_on = |branch: &str, file: &str, text: &str| {
        git(&notes, &["switch", "-q", branch]);
        std::fs::write(notes.join(file), text).expect("written");
        git(&notes, &["commit", "-qam", &format!("{text} on {branch}")]);
    };
    git(&notes, &["branch", "idea"]);
    git(&notes, &["branch", "clash"]);
    commit_on("idea", "Two.md", "second");
    commit_on("clash", "One.md", "clashing");
    commit_on("main", "One.md", "first");
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "Branches");
    wait(&mut window, "Branch idea: second on idea");
    wait(&mut window, "Branch origin/main: First");
    pictured(&mut window, "source-control-branches");
    let choose = |window: &mut Driven, branch: &str, item: &str| {
        click(window, &format!("Actions for {branch}"));
        window.get_by_role_and_label(Role::MenuItem, item).click();
        window.run();
    };
    choose(&mut window, "idea", "Delete branch");
    wait(&mut window, "The branch has commits that aren't merged, so it wasn't deleted.");
    choose(&mut window, "idea", "Rebase main onto it");
    wait(&mut window, "Rebased onto idea.");
    assert_eq!(git(&notes, &["log", "--format=%s"]), "first on main\nsecond on idea\nFirst");
    choose(&mut window, "clash", "Merge into main");
    wait(&mut window, "Both sides have changed the same lines of One.md. Nothing was merged");
    choose(&mut window, "clash", "Rebase main onto it");
    wait(&mut window, "Both sides have changed the same lines of One.md. Nothing was merged");
    assert_eq!(bench.file("One.md"), "first");
    choose(&mut window, "idea", "Merge into main");
    wait(&mut window, "idea has nothing that isn't here.");
    until(&mut window, "idea counts as merged", |window| has(window, "Branch idea"));
    choose(&mut window, "idea", "Delete branch");
    wait(&mut window, "Deleted the branch idea.");
    until(&mut window, "it isn't listed", |window| !has(window, "Branch idea"));
    click(&mut window, "Undo");
    wait(&mut window, "Created the branch idea.");
    wait(&mut window, "Branch idea: second on idea");

    // Tags.
    wait(&mut window, "No tags yet");
    click(&mut window, "New tag…");
    click(&mut window, "Create tag");
    wait(&mut window, "Name the tag first.");
    click(&mut window, "Name of the tag");
    type_text(&mut window, "v1~");
    click(&mut window, "Message of the tag, if it has one");
    type_text(&mut window, "The first one");
    click(&mut window, "Create tag");
    wait(&mut window, "'v1~' is not a valid tag name");
    until(&mut window, "one can type on", |window| window.get_by_label("Name of the tag").is_focused());
    press(&mut window, NONE, Key::Backspace);
    click(&mut window, "Create tag");
    wait(&mut window, "Tag v1: The first one");
    let tag = git(&notes, &["rev-parse", "v1"]);
    pictured(&mut window, "source-control-tags");
    choose(&mut window, "tag v1", "Delete tag");
    wait(&mut window, "Deleted the tag v1.");
    click(&mut window, "Undo");
    wait(&mut window, "Tag v1: The first one");
    assert_eq!(git(&notes, &["rev-parse", "v1"]), tag, "its message is there again, too");

    // What another program left halfway.
    click(&mut window, "Changes");
    let merge = std::process::Command::new("git").args(["merge", "clash"]).current_dir(&notes).output().expect("git");
    assert!(!merge.status.success());
    wait(&mut window, "A merge is in progress.");
    pictured(&mut window, "source-control-merge");
    click(&mut window, "Continue merge");
    wait(&mut window, "Files are still in conflict.");
    wait(&mut window, "Aborting discards the sides you have chosen. There’s no undo.");
    click(&mut window, "Abort merge");
    wait(&mut window, "The merge was undone.");
    assert_eq!(bench.file("One.md"), "first");
    until(&mut window, "it's over", |window| !has(window, "A merge is in progress."));
}

/// Makes a history of this many commits, where every tenth is a merge of a branch.
fn import_history(bench: &Bench, count: usize) {
    use std::io::Write;
    let notes = bench.notes();
    git(&notes, &["init", "-q", "-b", "main"]);
    let mut import = start_import(&notes);
    let mut to = std::io::BufWriter::new(import.stdin.take().expect("a pipe"));
    for number in 1..=count {
        let is_side = number % 10 == 5;
        let branch = if is_side { "side" } else { "main" };
        let message = format!("Change {number}");
        writeln!(
            to,
            "commit refs/heads/{branch}\nmark :{number}\ncommitter Ada <ada@example.org> {} +0000",
            1_600_000_000 + 60 * number
        )
        .expect("written");
        writeln!(to, "data {}\n{message}", message.len()).expect("written");
        match number % 10 {
            _ if number == 1 => {}
            5 | 6 => writeln!(to, "from :{}", number - number % 10 + 4).expect("written"),
            0 => writeln!(to, "from :{}\nmerge :{}", number - 1, number - 5).expect("written"),
            _ => writeln!(to, "from :{}", number - 1).expect("written"),
        }
        writeln!(to, "M 100644 inline One.md\ndata {}\n{message}\n", message.len() + 1).expect("written");
    }
    writeln!(to, "done").expect("written");
    drop(to);
    assert!(import.wait().expect("ended").success());
    git(&notes, &["reset", "-q", "--hard", "main"]);
}

#[test]
fn the_history_is_a_graph_and_a_commit_shows_its_changes() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    import_history(&bench, 25);
    git(&bench.notes(), &["tag", "v1", "main~3"]);
    for branch in ["one", "two", "three"] {
        git(&bench.notes(), &["branch", &format!("feature/the-long-name-of-branch-{branch}")]);
    }
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "History");
    wait(&mut window, "Change 25, by Ada");
    wait(&mut window, "Change 15, by Ada");
    pictured(&mut window, "source-control-history");
    press(&mut window, CTRL_SHIFT, Key::L);
    pictured(&mut window, "source-control-history-dark");
    let row = |window: &mut Driven, label: &str| {
        window.get_all_by_label_contains(label).next().expect("the commit is listed").click();
        window.run();
    };
    row(&mut window, "Change 24, by Ada");
    wait(&mut window, "-Change 23\n+Change 24\n");
    wait(&mut window, "Change 22, by Ada");
    row(&mut window, "Change 24, by Ada");
    assert!(!has(&window, "-Change 23"), "it's folded again");
    // Long names of branches leave room for the commit in a small window, too.
    window.set_size(egui::vec2(800.0, 600.0));
    window.run();
    let id = git(&bench.notes(), &["rev-parse", "main"]);
    let commit = window.get_by_label_contains("Change 25, by Ada").rect();
    let hash = window.output().shapes.iter().find_map(|clipped| match &clipped.shape {
        egui::Shape::Text(shape) if shape.galley.text() == &id[..8] => Some(shape.pos.x),
        _ => None,
    });
    assert!(hash.is_some_and(|x| x < commit.center().x + 60.0), "{hash:?} in {commit:?}");
    window.set_size(egui::vec2(1280.0, 800.0));
    window.run();
    // A new commit of another program comes in.
    git(
        &bench.notes(),
        &["-c", "user.name=Bob", "-c", "user.email=b@example.org", "commit", "-q", "--allow-empty", "-m", "From Bob"],
    );
    wait(&mut window, "From Bob, by Bob");
}

#[test]
fn blame_in_the_margin_follows_the_text() {
    let bench = Bench::new(&[("One.md", "# Ada's heading\n\nAda's words\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "# Ada's heading\n\nAda's words\n\nBob's words\n").expect("written");
    git(&bench.notes(), &["-c", "user.name=Bob", "-c", "user.email=b@example.org", "commit", "-qam", "Bob's commit"]);
    let mut window = bench.opened();
    wait(&mut window, "Branch: main");
    assert!(!has(&window, "Blame:"), "it's off by default");
    let ctx = window.ctx.clone();
    let toggle = |window: &mut Driven| {
        window.state_mut().perform_command(&ctx, CommandId::NoteBlame);
        window.run();
    };
    toggle(&mut window);
    wait(&mut window, "Blame: Bob,");
    window.run();
    // The margin is as wide as its longest text, so nothing in it is cut.
    let shown = window.get_all_by_label_contains("Blame: ").next().expect("a commit").rect().width();
    assert!(shown > 95.0, "{shown}");
    assert!(has(&window, ": Bob's commit (") && has(&window, "Blame: Ada,") && has(&window, ": First ("));
    pictured(&mut window, "blame");
    // What is typed isn't committed; the rest keeps its commits.
    let end = text(&window).expect("a note").len();
    window.state_mut().place_caret(end);
    window.run();
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "New words");
    wait(&mut window, "Blame: Not committed");
    assert!(has(&window, "Blame: Bob,") && has(&window, "Blame: Ada,"));
    // A commit of another program is taken over.
    until(&mut window, "it's in the file", |_| bench.file("One.md").contains("New words"));
    git(&bench.notes(), &["-c", "user.name=Cleo", "-c", "user.email=c@example.org", "commit", "-qam", "Cleo's commit"]);
    wait(&mut window, "Blame: Cleo,");
    toggle(&mut window);
    assert!(!has(&window, "Blame:"));
    // A note that isn't committed says so.
    std::fs::write(bench.notes().join("Two.md"), "two\n").expect("written");
    until(&mut window, "it's known", |window| {
        session(window).volumes().all(|volume| volume.files.contains_key("Two.md"))
    });
    let two = session(&window).volumes().next().expect("a volume").files["Two.md"].id;
    window.state_mut().show(two);
    until(&mut window, "it's shown", |window| text(window).as_deref() == Some("two\n"));
    toggle(&mut window);
    wait(&mut window, "The file isn't committed yet");
}

#[cfg(unix)]
#[test]
fn a_hostile_repository_runs_nothing_while_it_is_shown() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "one changed\n").expect("written");
    let mark = bench.folder.path().join("hacked");
    crate::line::git_faults::make_hostile(&bench.notes(), &mark);
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "One.md, modified, not staged");
    click(&mut window, "One.md, modified, not staged");
    wait(&mut window, "-one\n+one changed\n");
    click(&mut window, "History");
    wait(&mut window, "First, by Ada");
    click(&mut window, "Branches");
    wait(&mut window, "Current branch main");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::NoteBlame);
    let note = session(&window).volumes().next().expect("a volume").files["One.md"].id;
    window.state_mut().show(note);
    wait(&mut window, "Blame: Not committed");
    assert!(!mark.exists(), "nothing ran");
}

#[test]
fn a_hundred_thousand_commits_scroll_smoothly() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    import_history(&bench, 100_000);
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "History");
    let begun = Instant::now();
    wait(&mut window, "Change 100000, by Ada");
    let first = begun.elapsed();
    until(&mut window, "all is read", |window| !has(window, "Reading older commits") && has(window, "Change 99999"));
    let all = begun.elapsed();
    let scroll = |window: &mut Driven, by: f32| {
        window.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::vec2(0.0, by),
            modifiers: NONE,
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Wheel,
        });
        window.step();
    };
    window.hover_at(egui::pos2(640.0, 500.0));
    let mut frames = Vec::new();
    for _ in 0..120 {
        let begun = support::measure::thread_cpu();
        scroll(&mut window, -20_000.0);
        frames.push(support::measure::thread_cpu() - begun);
    }
    frames.sort_unstable();
    let (median, worst) = (frames[60], frames[114]);
    eprintln!("first rows {first:?}, all {all:?}, frame {median:?}, 95 % {worst:?}");
    assert!(!has(&window, "Change 100000,"), "it has scrolled");
    assert!(window.query_all_by_label_contains("Commit ").count() < 100, "only what is in sight is drawn");
    // CPU time of a debug build.
    assert!(median < Duration::from_millis(60) && worst < Duration::from_millis(150), "{median:?}, {worst:?}");
    window.run_steps(30);
    pictured(&mut window, "source-control-history-long");
    for _ in 0..40 {
        scroll(&mut window, -200_000.0);
    }
    window.run_steps(30);
    wait(&mut window, "Change 1, by Ada");
}

#[test]
fn changes_are_stashed_applied_and_signed_off() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    std::fs::write(bench.notes().join("One.md"), "one changed\n").expect("written");
    std::fs::write(bench.notes().join("data.txt"), "new\n").expect("written");
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "Stashes");
    wait(&mut window, "Stash all changes");
    // With the right panel, a small window has room for neither row of controls.
    window.set_size(egui::vec2(800.0, 600.0));
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewRight);
    window.run_steps(8);
    let right = window.get_by_label("Close this page").rect().right();
    let stash = window.get_by_label("Stash all changes").rect();
    assert!(stash.right() <= right, "{stash:?} ends after {right}");
    window.state_mut().perform_command(&ctx, CommandId::ViewRight);
    window.set_size(egui::vec2(1280.0, 800.0));
    window.run_steps(8);
    click(&mut window, "Description of the stash");
    type_text(&mut window, "for later");
    click(&mut window, "Stash all changes");
    wait(&mut window, "Stash 0: On main: for later");
    assert!(bench.file("One.md") == "one\n" && !bench.notes().join("data.txt").exists());
    until(&mut window, "the note is as it was", |window| text(window).as_deref() == Some("one\n"));
    click(&mut window, "Stash 0: On main: for later");
    wait(&mut window, "-one\n+one changed\n");
    wait(&mut window, "+new");
    pictured(&mut window, "source-control-stashes");
    let choose = |window: &mut Driven, item: &str| {
        click(window, "Actions for stash 0");
        window.get_by_role_and_label(Role::MenuItem, item).click();
        window.run();
    };
    choose(&mut window, "Delete stash");
    wait(&mut window, "Deleted the stash.");
    wait(&mut window, "Nothing is stashed.");
    click(&mut window, "Undo");
    wait(&mut window, "Stash 0: On main: for later");
    choose(&mut window, "Apply");
    wait(&mut window, "Applied the stash.");
    assert!(bench.file("One.md") == "one changed\n" && bench.file("data.txt") == "new\n");
    until(&mut window, "so is the note", |window| text(window).as_deref() == Some("one changed\n"));
    // Applied over other changes, it's refused, and stays.
    std::fs::remove_file(bench.notes().join("data.txt")).expect("removed");
    std::fs::write(bench.notes().join("One.md"), "one otherwise\n").expect("written");
    choose(&mut window, "Apply and delete");
    wait(&mut window, "Changes that aren't committed would be lost");
    assert_eq!(bench.file("One.md"), "one otherwise\n");
    wait(&mut window, "Stash 0: On main: for later");

    click(&mut window, "Changes");
    click(&mut window, "Sign off");
    click(&mut window, "Commit message");
    type_text(&mut window, "Otherwise");
    click(&mut window, "Commit all");
    wait(&mut window, "Otherwise, by Ada");
    let message = git(&bench.notes(), &["log", "-1", "--format=%B"]);
    assert_eq!(message, "Otherwise\n\nSigned-off-by: Ada <ada@example.org>");
}

#[test]
fn a_folder_becomes_a_repository() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewSourceControl);
    wait(&mut window, "notes is not a Git repository.");
    pictured(&mut window, "source-control-none");
    assert!(!has(&window, "Branch:"), "the status bar has no branch");
    click(&mut window, "Create repository");
    wait(&mut window, "This folder is a Git repository now.");
    wait(&mut window, "One.md, untracked, not staged");
    assert!(bench.notes().join(".git").is_dir());
    click(&mut window, "Stage all");
    wait(&mut window, "One.md, added, staged");
    click(&mut window, "Unstage all");
    wait(&mut window, "One.md, untracked, not staged");
    click(&mut window, "Push");
    wait(&mut window, "This repository has no remote.");
}

#[cfg(unix)]
#[test]
fn a_push_that_hangs_is_canceled() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    add_remote(&bench);
    let hook = bench.notes().join(".git/hooks/pre-push");
    std::fs::create_dir_all(hook.parent().expect("a folder")).expect("made");
    std::fs::write(&hook, "#!/bin/sh\necho Checking all 12 notes >&2\nsleep 600\n").expect("written");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("set");
    std::fs::write(bench.notes().join("One.md"), "one\ntwo\n").expect("written");
    git(&bench.notes(), &["commit", "-qam", "Second"]);
    let mut window = bench.opened();
    open_page(&mut window);
    wait(&mut window, "Branch: main, 1 commit ahead");
    click(&mut window, "Push");
    wait(&mut window, "Pushing… Checking all 12 notes");
    click(&mut window, "Pull");
    wait(&mut window, "Pushing is still running.");
    click(&mut window, "Cancel");
    wait(&mut window, "Cancelled.");
    assert_eq!(git(&bench.folder.path().join("remote.git"), &["log", "--format=%s"]), "First");
}

#[test]
fn a_locked_volume_shows_its_repository_and_changes_nothing() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    commit_all(&bench);
    bench.opened().into_state().close().expect("all is saved");
    let config = bench.folder.path().join("workspace/config.yaml");
    std::fs::write(config, "volumes:\n  notes: {readonly: true}\n").expect("written");
    std::fs::write(bench.notes().join("One.md"), "one\ntwo\n").expect("written");
    let mut window = bench.window();
    open_page(&mut window);
    wait(&mut window, "One.md, modified, not staged");
    assert!(window.query_by_label("Stage One.md").is_none() && window.query_by_label("Stage all").is_none());
    click(&mut window, "Commit message");
    type_text(&mut window, "No");
    click(&mut window, "Commit all");
    wait(&mut window, "Dismiss: Notes is read-only. Remove `readonly` of notes from config.yaml to change it.");
    assert_eq!(git(&bench.notes(), &["log", "--format=%s"]), "First");
}

#[test]
fn the_volume_system_is_read_and_copied() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    let mut window = bench.opened();
    let row = |window: &mut Driven, name: &str| {
        until(window, name, |window| window.query_by_role_and_label(Role::TreeItem, name).is_some());
        window.get_by_role_and_label(Role::TreeItem, name).click();
        window.run();
    };
    assert!(window.query_by_role_and_label(Role::TreeItem, "agents").is_none(), "it's folded at first");
    row(&mut window, "System (read-only)");
    row(&mut window, "config.yaml");
    wait(&mut window, "Copy to workspace");
    click(&mut window, "Copy to workspace");
    wait(&mut window, "Copied to config.yaml.");
    assert_eq!(Some(bench.file("config.yaml").as_str()), ::agent::system_volume::read("config.yaml"));
    // What is there already isn't overwritten.
    std::fs::write(bench.notes().join("config.yaml"), "mine: 1\n").expect("written");
    click(&mut window, "Copy to workspace");
    wait(&mut window, "already exists");
    assert_eq!(bench.file("config.yaml"), "mine: 1\n");
    // Its row moves those below, which are clicked next.
    let rows = |window: &Driven| window.query_all_by_role_and_label(Role::TreeItem, "config.yaml").count();
    until(&mut window, "the copy is in the tree", |window| rows(window) == 2);
    row(&mut window, "agents");
    row(&mut window, "qa");
    until(&mut window, "its page", |window| {
        window.query_by_role_and_label(Role::Heading, "system/agents/qa.md").is_some()
    });
    window.get_by_label("System is read-only. Copy it to your workspace to change it.");
    pictured(&mut window, "system-file");
    click(&mut window, "Copy to workspace");
    until(&mut window, "the copy is shown", |window| path(window) == "components/agents/qa.md");
    let original = ::agent::system_volume::read("agents/qa.md").expect("it's there");
    until(&mut window, "it has the text", |window| text(window).as_deref() == Some(original));
    until(&mut window, "so has its file", |_| {
        std::fs::read_to_string(bench.notes().join("components/agents/qa.md")).is_ok_and(|text| text == original)
    });
}
