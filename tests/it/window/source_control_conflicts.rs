//! Conflicts of Git as choices on the page of source control and in the note.

use super::source_control::{click, commit_all, git, has, open_page, wait};
use super::*;

/// Thirty lines, of which two have other words.
fn lines(word: &str) -> String {
    let line = |number: usize| match number {
        2 | 28 => format!("{word} {number}\n"),
        _ => format!("line {number}\n"),
    };
    (1..=30).map(line).collect()
}

/// Two branches that have changed the same lines of a note; one of them has deleted another note.
fn diverged() -> Bench {
    let bench = Bench::new(&[("One.md", &lines("old")), ("Two.md", "two\n")]);
    commit_all(&bench);
    let notes = bench.notes();
    git(&notes, &["switch", "-q", "-c", "idea"]);
    std::fs::write(notes.join("One.md"), lines("idea")).expect("written");
    std::fs::remove_file(notes.join("Two.md")).expect("removed");
    git(&notes, &["commit", "-qam", "Change on idea"]);
    git(&notes, &["switch", "-q", "main"]);
    std::fs::write(notes.join("One.md"), lines("main")).expect("written");
    std::fs::write(notes.join("Two.md"), "two, changed\n").expect("written");
    git(&notes, &["commit", "-qam", "Change on main"]);
    bench
}

fn choose(window: &mut Driven, branch: &str, item: &str) {
    click(window, &format!("Actions for {branch}"));
    window.get_by_role_and_label(Role::MenuItem, item).click();
    window.run();
}

#[test]
fn a_merge_is_resolved_side_by_side() {
    let bench = diverged();
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "Branches");
    wait(&mut window, "Branch idea: Change on idea");
    choose(&mut window, "idea", "Merge into main");
    wait(&mut window, "Nothing was merged");
    assert_eq!(bench.file("One.md"), lines("main"));
    click(&mut window, "Resolve conflicts");
    wait(&mut window, "Choose a side for each conflict");
    wait(&mut window, "Choose a side in each file in conflict, then continue.");
    wait(&mut window, "One.md, in conflict, not staged");
    let kept = lines("main");
    assert_eq!(bench.file("One.md"), kept, "there are no markers in it");
    assert!(git(&bench.notes(), &["status", "--porcelain"]).contains("UU One.md"));
    until(&mut window, "the note shows the same text", |window| text(window).as_deref() == Some(kept.as_str()));

    // Staging would take one side without a choice.
    click(&mut window, "Stage all");
    wait(&mut window, "is in conflict. Choose a side for each of its conflicts first.");
    click(&mut window, "Dismiss");
    click(&mut window, "One.md, in conflict, not staged");
    wait(&mut window, "Your change (main): main 28");
    wait(&mut window, "From idea: idea 28");
    window.get_by_role_and_label(Role::Heading, "Conflict 1 of 2, line 2");
    pictured(&mut window, "source-control-conflicts");
    click(&mut window, "Keep theirs in conflict 1 of One.md");
    wait(&mut window, "Kept “From idea” in One.md. 1 conflict is left in it.");
    let chosen = kept.replace("main 2\n", "idea 2\n");
    until(&mut window, "the note has it", |window| text(window).as_deref() == Some(chosen.as_str()));
    click(&mut window, "Undo");
    wait(&mut window, "Restored the conflicts in One.md.");
    assert_eq!(bench.file("One.md"), kept);
    wait(&mut window, "Conflict 2 of 2");

    // A choice for a text that another program has changed since is refused.
    let edited = format!("{kept}typed elsewhere\n");
    // The click is taken in the next frame, so the page can't have read the file again before.
    window.get_by_label("Keep theirs in conflict 1 of One.md").click();
    std::fs::write(bench.notes().join("One.md"), &edited).expect("written");
    window.run();
    wait(&mut window, "One.md has changed meanwhile, so nothing was done. Look at its conflicts again.");
    assert_eq!(bench.file("One.md"), edited);
    until(&mut window, "the note has it", |window| text(window).is_some_and(|text| text.contains("typed elsewhere")));
    click(&mut window, "Dismiss");
    // The page has read the file again once the choice is taken.
    until(&mut window, "it's kept", |window| {
        window.get_by_label("Keep both in conflict 1 of One.md").click();
        window.run();
        until(window, "it's done", |window| has(window, "One.md has changed") || has(window, "Kept both sides"));
        has(window, "Kept both sides in One.md. 1 conflict is left in it.")
    });
    wait(&mut window, "Conflict 1 of 1");
    click(&mut window, "Keep yours in conflict 1 of One.md");
    wait(&mut window, "No conflicts are left in it, so it's staged.");
    let resolved = lines("main").replace("main 2\n", "main 2\nidea 2\n") + "typed elsewhere\n";
    assert_eq!(bench.file("One.md"), resolved);
    until(&mut window, "the note has it, too", |window| text(window).as_deref() == Some(resolved.as_str()));
    wait(&mut window, "One.md, modified, staged");
    // The last choice is undone, too: the file is in conflict again.
    click(&mut window, "Undo");
    wait(&mut window, "Restored the conflicts in One.md.");
    wait(&mut window, "One.md, in conflict, not staged");
    wait(&mut window, "Keep yours in conflict 1 of One.md");
    click(&mut window, "Keep yours in conflict 1 of One.md");
    wait(&mut window, "One.md, modified, staged");
    assert_eq!(bench.file("One.md"), resolved);

    click(&mut window, "Two.md, in conflict, not staged");
    wait(&mut window, "From idea: doesn't have the file");
    click(&mut window, "Delete the file: Two.md");
    wait(&mut window, "The file is deleted, and that is staged.");
    assert!(!bench.notes().join("Two.md").exists());
    click(&mut window, "Undo");
    wait(&mut window, "Restored the conflicts in Two.md.");
    assert_eq!(bench.file("Two.md"), "two, changed\n");
    wait(&mut window, "Keep the file: Two.md");
    click(&mut window, "Keep the file: Two.md");
    wait(&mut window, "No file is in conflict, so continue.");
    assert_eq!(bench.file("Two.md"), "two, changed\n");
    click(&mut window, "Continue merge");
    wait(&mut window, "The merge is done.");
    let notes = bench.notes();
    assert_eq!(git(&notes, &["status", "--porcelain"]), "");
    assert_eq!(git(&notes, &["show", "HEAD:One.md"]), resolved.trim_end());
}

#[test]
fn a_note_that_git_left_in_conflict_is_resolved_in_its_pane() {
    let bench = diverged();
    let notes = bench.notes();
    let merge = std::process::Command::new("git").args(["merge", "idea"]).current_dir(&notes).output();
    assert!(!merge.expect("git is there").status.success());
    let marked = bench.file("One.md");
    let mut window = bench.opened();
    wait(&mut window, "Both sides have changed this note. Choose for each place, or edit its text.");
    wait(&mut window, "Your change (main): main 28");
    wait(&mut window, "From idea: idea 28");
    wait(&mut window, "Choose a side in each file in conflict, then continue.");
    pictured(&mut window, "note-in-conflict");
    // The text is below, and can be edited as always.
    until(&mut window, "the text is there", |window| text(window).as_deref() == Some(marked.as_str()));
    click(&mut window, "Hide choices");
    assert!(!has(&window, "Your change (main): main 28"));
    // In a narrow window, the message has several lines, and nothing of it is cut.
    let size = window.ctx.content_rect().size();
    window.set_size(egui::vec2(560.0, 700.0));
    window.run();
    let message = "Both sides have changed this note. Choose for each place, or edit its text.";
    let shown = window.output().shapes.iter().find_map(|clipped| match &clipped.shape {
        egui::Shape::Text(shape) if shape.galley.text() == message => {
            Some((shape.galley.rows.len(), shape.galley.elided))
        }
        _ => None,
    });
    assert!(shown.is_some_and(|(rows, is_cut)| rows > 1 && !is_cut), "{shown:?}");
    window.set_size(size);
    window.run();
    click(&mut window, "Show choices");
    wait(&mut window, "Your change (main): main 28");

    click(&mut window, "Keep theirs in conflict 1 of One.md");
    wait(&mut window, "Kept “From idea” in One.md. 1 conflict is left in it.");
    until(&mut window, "the note has it", |window| {
        text(window).is_some_and(|text| text.contains("line 1\nidea 2\nline 3\n") && text.contains(">>>>>>> idea"))
    });
    click(&mut window, "Undo");
    wait(&mut window, "Conflict 2 of 2");
    assert_eq!(bench.file("One.md"), marked);
    click(&mut window, "Keep theirs in conflict 1 of One.md");
    wait(&mut window, "Conflict 1 of 1");
    click(&mut window, "Keep yours in conflict 1 of One.md");
    wait(&mut window, "No conflicts are left in it, so it's staged.");
    let resolved = lines("main").replace("main 2\n", "idea 2\n");
    assert_eq!(bench.file("One.md"), resolved);
    until(&mut window, "the note has it, too", |window| text(window).as_deref() == Some(resolved.as_str()));
    assert!(!has(&window, "Both sides have changed this note."));
    pictured(&mut window, "note-in-conflict-resolved");
    // The other note is in conflict still, and the merge continues once it's resolved, too.
    wait(&mut window, "Choose a side in each file in conflict, then continue.");
    git(&notes, &["add", "Two.md"]);
    wait(&mut window, "No file is in conflict, so continue.");
    click(&mut window, "Continue merge");
    until(&mut window, "the merge is done", |_| git(&notes, &["status", "--porcelain"]).is_empty());
    assert_eq!(git(&notes, &["show", "HEAD:One.md"]), resolved.trim_end());
    assert_eq!(git(&notes, &["log", "-1", "--format=%P"]).split(' ').count(), 2);
}

#[test]
fn a_note_that_was_edited_is_staged_as_it_is() {
    let bench = diverged();
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "Branches");
    wait(&mut window, "Branch idea: Change on idea");
    choose(&mut window, "idea", "Merge into main");
    wait(&mut window, "Nothing was merged");
    click(&mut window, "Resolve conflicts");
    wait(&mut window, "One.md, in conflict, not staged");
    click(&mut window, "One.md, in conflict, not staged");
    wait(&mut window, "From idea: idea 28");
    assert!(!has(&window, "Keep the text as it is: One.md"));
    std::fs::write(bench.notes().join("One.md"), lines("both")).expect("written");
    wait(&mut window, "The text of 2 conflicts was edited, so stage it if it's as you want it.");
    assert!(!has(&window, "From idea: idea 28"));
    click(&mut window, "Keep the text as it is: One.md");
    wait(&mut window, "One.md, modified, staged");
    assert_eq!(git(&bench.notes(), &["show", ":One.md"]), lines("both").trim_end());
}

#[test]
fn yours_is_your_own_change_in_a_rebase() {
    let bench = diverged();
    let mut window = bench.opened();
    open_page(&mut window);
    click(&mut window, "Branches");
    wait(&mut window, "Branch idea: Change on idea");
    choose(&mut window, "idea", "Rebase main onto it");
    wait(&mut window, "Nothing was merged");
    click(&mut window, "Resolve conflicts");
    wait(&mut window, "One.md, in conflict, not staged");
    click(&mut window, "One.md, in conflict, not staged");
    wait(&mut window, "Your change: Change on main: main 2");
    wait(&mut window, "From idea: idea 2");
    assert_eq!(bench.file("One.md"), lines("main"), "the user's own text stays");
    pictured(&mut window, "source-control-rebase-conflicts");
    click(&mut window, "Use your whole file: One.md");
    wait(&mut window, "Kept “Your change: Change on main” in One.md.");
    assert_eq!(bench.file("One.md"), lines("main"));
    click(&mut window, "Two.md, in conflict, not staged");
    wait(&mut window, "Keep the file: Two.md");
    click(&mut window, "Keep the file: Two.md");
    wait(&mut window, "No file is in conflict, so continue.");
    click(&mut window, "Continue rebase");
    wait(&mut window, "The rebase is done.");
    assert_eq!(git(&bench.notes(), &["log", "--format=%s"]), "Change on main\nChange on idea\nFirst");
    assert_eq!((bench.file("One.md"), bench.file("Two.md")), (lines("main"), "two, changed\n".to_owned()));
    until(&mut window, "the note has it", |window| text(window).as_deref() == Some(lines("main").as_str()));
}
