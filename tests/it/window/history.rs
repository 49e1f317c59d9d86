//! A note's history in the window: versions, differences, restoring parts or all, and who wrote what.

use super::source_control::{commit_all, git};
use super::*;
use egui_kittest::kittest::NodeT;

const BEFORE: &str = "# Rain\n\nThe rain in Spain.\n\nA last line.\n";

/// A window with a note that both the user and another program have edited.
fn written(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    window.state_mut().place_caret(BEFORE.len() - 1);
    window.run();
    type_text(&mut window, " Mine.");
    until(&mut window, "it is in the file", |_| bench.file("Rain.md").contains("Mine."));
    until(&mut window, "all is saved", |window| session(window).is_saved());
    let theirs = bench.file("Rain.md").replace("Spain", "France");
    std::fs::write(bench.notes().join("Rain.md"), theirs).expect("another program writes");
    until(&mut window, "it is in the note", |window| text(window).is_some_and(|text| text.contains("France")));
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window
}

fn history(window: &mut Driven) {
    press(window, CTRL_SHIFT, Key::H);
    until(window, "the history is there", |window| window.query_by_label("Restore this version").is_some());
}

fn versions(window: &Driven) -> Vec<String> {
    let all = window.query_all_by_role(Role::TreeItem);
    let labels = all.filter_map(|node| node.accesskit_node().label());
    labels.filter(|label| label.contains(", ") && !label.contains("versions")).collect()
}

#[test]
fn versions_say_who_and_a_part_or_all_of_one_comes_back() {
    let bench = Bench::new(&[("Rain.md", BEFORE)]);
    let mut window = written(&bench);
    let now = text(&window).expect("a note");
    history(&mut window);
    let seen = versions(&window);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen[0].ends_with("Another program") && seen[1].ends_with("You"), "{seen:?}");
    assert!(seen[2].ends_with("As the file was found"), "{seen:?}");
    // The version before the latest is selected, so the difference is the other program's edit.
    window.get_by_label("Then: The rain in Spain.");
    window.get_by_label("Now: The rain in France.");
    window.get_by_label_contains("1 change");
    window.get_by_label_contains("As the file was found").click();
    until(&mut window, "it is compared", |window| window.query_by_label_contains("2 changes").is_some());
    window.get_by_label("Then: A last line.");
    let parts = window.get_all_by_label("Bring back this part").count();
    assert_eq!(parts, 2);
    window.get_all_by_label("Bring back this part").last().expect("a part").click();
    window.run();
    assert_eq!(text(&window).expect("a note"), now.replace(" Mine.", ""));
    until(&mut window, "it is compared", |window| window.query_by_label("Now: A last line. Mine.").is_none());
    click_label(&mut window, "Restore this version");
    assert_eq!(text(&window).as_deref(), Some(BEFORE));
    until(&mut window, "it is compared", |window| window.query_by_label_contains("No differences").is_some());
    // It's an ordinary edit that undo reverts.
    press(&mut window, CTRL, Key::Z);
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window), Some(now));
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Restore this version").is_none());
    until(&mut window, "it is in the file", |_| bench.file("Rain.md").contains("France"));
}

#[test]
fn what_comes_after_a_comparison_is_not_overwritten() {
    let bench = Bench::new(&[("Rain.md", BEFORE)]);
    let mut window = written(&bench);
    history(&mut window);
    let (now, note) = (text(&window).expect("a note"), window.state().note().expect("a note"));
    // In the frame that the button is pressed in, the comparison is still the old one.
    window.state_mut().send_command(Command::Edit { note, at: 0, delete: 0, insert: "New.\n\n".to_owned() });
    window.get_by_label("Restore this version").click_accesskit();
    window.run();
    assert_eq!(text(&window), Some(format!("New.\n\n{now}")));
}

#[test]
fn commits_are_versions_and_what_git_brings_has_its_author() {
    let bench = Bench::new(&[("Rain.md", "# Rain\n\nIt rains.\n")]);
    commit_all(&bench);
    let notes = bench.notes();
    std::fs::write(notes.join("Rain.md"), BEFORE).expect("written");
    git(&notes, &["commit", "-qam", "Spain"]);
    git(&notes, &["switch", "-qc", "grace"]);
    std::fs::write(notes.join("Rain.md"), BEFORE.replace("Spain", "France")).expect("written");
    git(&notes, &["-c", "user.name=Grace", "commit", "-qam", "France"]);
    git(&notes, &["switch", "-q", "main"]);
    let mut window = bench.opened();
    window.state_mut().place_caret(0);
    window.run();
    type_text(&mut window, "x");
    press(&mut window, NONE, Key::Backspace);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    git(&notes, &["merge", "-q", "--ff-only", "grace"]);
    until(&mut window, "it is in the note", |window| text(window).is_some_and(|text| text.contains("France")));
    until(&mut window, "all is saved", |window| session(window).is_saved());
    history(&mut window);
    let seen = versions(&window);
    assert!(seen[0].contains("Grace (commit "), "{seen:?}");
    assert!(seen.iter().any(|label| label.contains("committed as ")), "{seen:?}");
    let first = seen.iter().find(|label| label.contains("only in Git"));
    let first = first.unwrap_or_else(|| panic!("the first commit isn't in {seen:?}")).clone();
    window.get_by_label(&first).click();
    until(&mut window, "it is compared", |window| window.query_by_label("Then: It rains.").is_some());
    click_label(&mut window, "Restore this version");
    assert_eq!(text(&window).as_deref(), Some("# Rain\n\nIt rains.\n"));
}

#[test]
fn arrows_go_through_versions_and_what_one_changed_is_shown() {
    let bench = Bench::new(&[("Rain.md", BEFORE)]);
    let mut window = written(&bench);
    history(&mut window);
    window.get_by_label("In this version").click();
    until(&mut window, "what the user wrote is shown", |window| {
        window.query_by_label("Now: A last line. Mine.").is_some()
    });
    assert!(window.query_by_label("Bring back this part").is_none(), "only what is now can be edited");
    window.get_by_label_contains(", You").focus();
    window.run();
    press(&mut window, NONE, Key::ArrowUp);
    until(&mut window, "what the other program wrote is shown", |window| {
        window.query_by_label("Now: The rain in France.").is_some()
    });
    press(&mut window, NONE, Key::ArrowDown);
    until(&mut window, "what the user wrote is shown", |window| {
        window.query_by_label("Now: A last line. Mine.").is_some()
    });
}

#[test]
fn who_wrote_what_is_said_line_by_line() {
    let bench = Bench::new(&[("Rain.md", BEFORE)]);
    let mut window = written(&bench);
    history(&mut window);
    window.get_by_label("Authors").click();
    until(&mut window, "the writers are shown", |window| {
        window.query_by_label("As the file was found, Before the first edit: # Rain").is_some()
    });
    window.get_by_label_contains("The rain in Spain.");
    type_text(&mut window, "x");
    assert!(text(&window).is_some_and(|text| !text.contains('x')), "the note behind it is not written to");
}

#[test]
fn a_note_that_nobody_edited_has_no_history() {
    let bench = Bench::new(&[("Rain.md", BEFORE)]);
    let mut window = bench.opened();
    press(&mut window, CTRL_SHIFT, Key::H);
    until(&mut window, "it says so", |window| window.query_by_label_contains("has no history yet").is_some());
}
