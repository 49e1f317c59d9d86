//! The search panel beside the notes: results stay while notes are read and edited.

use super::*;
use crate::recall::{Kept, document};
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;
use engine::{FirstStep, Settings};

const RIVERS: &str = "# Rivers\n\nWater runs downhill.\n\n## Birds\n\nThe **heron** waits at the weir.\n";

fn files() -> Bench {
    Bench::new(&[
        ("A first.md", "# First\n\nNothing much.\n"),
        ("Water/Rivers.md", RIVERS),
        ("Code.md", "# Code\n\nA heron in prose.\n\n```rust\nfn heron() {}\n```\n"),
    ])
}

/// Opens the panel by its button and types a query.
fn search(window: &mut Driven, query: &str) {
    if window.query_by_label("Search notes").is_none() {
        window.get_by_role_and_label(Role::Button, "Toggle search").click();
        window.run();
    }
    type_text(window, query);
}

/// The headings of the result groups, in order.
fn groups(window: &Driven) -> Vec<String> {
    let items = window.query_all_by_role(Role::TreeItem);
    items.filter_map(|node| node.accesskit_node().label()).filter(|label| label.contains(" result")).collect()
}

#[test]
fn results_by_note_stay_while_the_note_is_edited() {
    let bench = files();
    let mut window = bench.opened();
    search(&mut window, "heron");
    until(&mut window, "all is found", |window| window.query_by_label("3 results in 2 notes").is_some());
    assert_eq!(groups(&window).len(), 2);
    assert!(groups(&window).contains(&"Code, 2 results".to_owned()), "{:?}", groups(&window));
    // Results are shown without Markdown syntax.
    window.get_by_label("Rivers: The heron waits at the weir.").click();
    until(&mut window, "the caret is at the match", |window| {
        text(window).as_deref() == Some(RIVERS) && with_caret(window).contains("**|heron** waits")
    });
    let before = groups(&window);
    type_text(&mut window, "tall ");
    assert_eq!(groups(&window), before);
    until(&mut window, "the edit is in the results", |window| {
        window.query_by_label("Rivers: The tall heron waits at the weir.").is_some()
    });
    assert_eq!(groups(&window), before, "the notes keep their places");
    window.get_by_role_and_label(Role::TreeItem, "Rivers, 1 result").click();
    window.run();
    assert!(window.query_by_label_contains("Rivers: The tall heron").is_none(), "the note is folded");
}

#[test]
fn the_note_of_that_name_is_the_first_group() {
    let often = "# Rainfall\n\nrain rain rain\n\n## More rain\n\nrain rain rain rain\n\n## Again rain\n\nrain rain\n";
    let bench = Bench::new(&[
        ("Rain.md", "# Rain\n\nIt fell on the roof for days, and nobody went out until it was over at last.\n"),
        ("Rainfall.md", often),
    ]);
    let mut window = bench.opened();
    search(&mut window, "rain");
    until(&mut window, "both are found", |window| groups(window).len() == 2);
    assert!(groups(&window)[0].starts_with("Rain, "), "{:?}", groups(&window));
}

#[test]
fn results_of_the_overlay_are_kept_in_the_panel() {
    let bench = files();
    let mut window = bench.opened();
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "heron");
    click_label(&mut window, "Search in: Code");
    window.get_by_role_and_label(Role::Button, "Show in the search panel").click();
    until(&mut window, "the panel shows them", |window| groups(window) == ["Code, 1 result"]);
    assert!(window.query_by_label("Search everything").is_none(), "the overlay is closed");
}

#[test]
fn the_panel_is_used_with_keys_alone() {
    let bench = files();
    let mut window = bench.opened();
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::SearchPanel);
    window.run();
    type_text(&mut window, "heron path:water");
    until(&mut window, "it is found", |window| groups(window) == ["Rivers, 1 result"]);
    // The first passage is selected; above it is the note's heading, which folds.
    press(&mut window, NONE, Key::ArrowUp);
    press(&mut window, NONE, Key::Enter);
    assert!(window.query_by_label_contains("Rivers: The heron").is_none());
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::ArrowDown);
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the note is shown", |window| {
        text(window).as_deref() == Some(RIVERS) && with_caret(window).contains("**|heron** waits")
    });
    window.state_mut().perform_command(&ctx, CommandId::SearchPanel);
    window.run();
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, "x");
    let shown = with_caret(&window);
    assert!(shown.contains("**x|heron** waits"), "Escape gives the keyboard to the note: {shown}");
}

#[test]
fn runs_are_not_mixed_between_notes() {
    let bench = files();
    let kept = Kept::default();
    let steps = [(host::search::PassageKind::Run, "s1", "Count the herons at the weir.")];
    kept.0.lock().unwrap().push(document(1, "run-7", "Morning count", &steps));
    let mut window = bench.window_with(|driver| driver.search().add_source(Box::new(kept)));
    window.state_mut().send_command(Command::OpenFolder { folder: bench.notes(), name: None });
    until(&mut window, "the first note is shown", |window| text(window).is_some());
    search(&mut window, "heron");
    until(&mut window, "the notes are found", |window| groups(window).len() == 2);
    assert!(groups(&window).iter().all(|group| !group.starts_with("Morning")), "{:?}", groups(&window));
    window.get_by_role_and_label(Role::RadioButton, "Results: Runs").click();
    until(&mut window, "the run is found", |window| groups(window) == ["Morning count, 1 result"]);
}

#[test]
fn a_step_by_meaning_is_ticked_for_a_hit_by_meaning_only() {
    let bench = Bench::new(&[
        ("Car.md", "# Car\n\nThe automobile needs new tires and an oil change.\n"),
        ("Soup.md", "# Soup\n\nBoil the carrots for ten minutes.\n"),
    ]);
    let mut window = bench.opened();
    let settings = Settings { show_first_steps: true, ..session(&window).settings().clone() };
    window.state_mut().send_command(Command::Set { settings: Box::new(settings) });
    let is_ticked = |window: &Driven| session(window).settings().first_steps.contains(&FirstStep::FindByMeaning);
    search(&mut window, "carrots");
    until(&mut window, "the word is found", |window| groups(window).iter().any(|group| group.starts_with("Soup")));
    window.get_by_label("Soup: Boil the carrots for ten minutes.").click();
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.contains("Boil")));
    assert!(!is_ticked(&window), "it was found by its words");
    click_label(&mut window, "Search notes");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "vehicle maintenance");
    until(&mut window, "it is found by meaning", |window| window.query_by_label_contains("Car: The auto").is_some());
    window.get_by_label_contains("Car: The auto").click();
    until(&mut window, "the step is ticked", |window| is_ticked(window));
}

/// Opens the panel in replace mode and types both texts.
fn replace(window: &mut Driven, old: &str, new: &str) {
    press(window, CTRL_ALT, Key::H);
    type_text(window, old);
    click_label(window, "Replace with");
    type_text(window, new);
}

fn says(window: &Driven, text: &str) -> bool {
    window.query_all_by_label_contains(text).next().is_some()
}

#[test]
fn text_is_replaced_in_all_checked_notes_and_taken_back_at_once() {
    let files = [
        ("One.md", "# One\n\nThe colour of rain, and colours.\n"),
        ("Two.md", "Colour here\n"),
        ("Three.md", "No such word.\n"),
        ("sub/Four.md", "colour\n\ncolour\n"),
    ];
    let bench = Bench::new(&files);
    let mut window = bench.opened();
    replace(&mut window, "colour", "color");
    until(&mut window, "all are found", |window| says(window, "5 matches in 3 notes"));
    window.get_by_role_and_label(Role::Button, "Two, line 1: Colour here becomes color");
    window.get_by_role_and_label(Role::CheckBox, "Replace in Four, line 1").click();
    window.run();
    window.get_by_role_and_label(Role::CheckBox, "Replace in Two").click();
    window.run();
    window.get_by_role_and_label(Role::Button, "Replace 3 in 2 notes").click();
    until(&mut window, "it is said", |window| says(window, "Replaced 3 matches in 2 notes."));
    window.get_by_role_and_label(Role::Button, "Undo");
    let after = ["# One\n\nThe color of rain, and colors.\n", "Colour here\n", "No such word.\n", "colour\n\ncolor\n"];
    until(&mut window, "it is in the files", |_| {
        files.iter().zip(after).all(|((path, _), text)| bench.file(path) == text)
    });
    until(&mut window, "the rest is listed", |window| says(window, "2 matches in 2 notes"));
    // The notice with its button may have disappeared meanwhile; its command is still available.
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::SearchUndoReplace);
    until(&mut window, "it is said", |window| says(window, "Restored 2 notes."));
    until(&mut window, "all files are as before", |_| files.iter().all(|(path, text)| bench.file(path) == *text));
}

#[test]
fn a_note_that_has_changed_since_is_skipped() {
    let bench = Bench::new(&[("One.md", "# One\n"), ("Two.md", "a cat\n"), ("Three.md", "a cat\n\na cat\n")]);
    let mut window = bench.opened();
    replace(&mut window, "cat", "dog");
    until(&mut window, "both are found", |window| says(window, "3 matches in 2 notes"));
    // An unchecked result keeps the list unchanged while another program writes.
    window.get_by_role_and_label(Role::CheckBox, "Replace in Three, line 3").click();
    window.run();
    std::fs::write(bench.notes().join("Two.md"), "the cat\n").expect("written");
    window.state_mut().send_command(Command::Rescan);
    until(&mut window, "the change is indexed", |window| {
        let volume = session(window).volumes().next().expect("a volume");
        volume.files["Two.md"].size == 8
    });
    window.get_by_role_and_label(Role::Button, "Replace 2 in 2 notes").click();
    until(&mut window, "it is said", |window| {
        says(window, "Replaced 1 match in 1 note. Skipped 1 note that has changed since the search.")
    });
    until(&mut window, "the other is in its file", |_| bench.file("Three.md") == "a dog\n\na cat\n");
    assert_eq!(bench.file("Two.md"), "the cat\n");
}

#[test]
fn patterns_and_whole_words_are_replaced_as_the_find_bar_does() {
    let bench = Bench::new(&[("One.md", "rain 12, rainy 7\n")]);
    let mut window = bench.opened();
    replace(&mut window, "rain", "snow");
    window.get_by_role_and_label(Role::CheckBox, "Whole words").click();
    until(&mut window, "the whole word is found", |window| says(window, "1 match in 1 note"));
    window.get_by_role_and_label(Role::CheckBox, "Whole words").click();
    window.get_by_role_and_label(Role::CheckBox, "Regular expression").click();
    click_label(&mut window, "Search notes");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "(\\w+) (\\d+)");
    click_label(&mut window, "Replace with");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "$2 $1");
    until(&mut window, "the pattern is found", |window| says(window, "becomes 12 rain"));
    window.get_by_role_and_label(Role::CheckBox, "Replace in One, line 1, match 2");
    // Enter in the field replaces.
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "both are replaced", |window| text(window).as_deref() == Some("12 rain, 7 rainy\n"));
    click_label(&mut window, "12 rain, 7 rainy");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("rain 12, rainy 7\n"), "in the note it is one step, too");
}

#[test]
fn search_panel_pictures() {
    if pictures_folder().is_none() {
        return;
    }
    let bench = files();
    let mut window = bench.opened();
    search(&mut window, "heron water");
    until(&mut window, "both notes are found", |window| groups(window).len() == 2);
    pictured(&mut window, "search-panel");
    press(&mut window, CTRL_SHIFT, Key::L); // the system's, so that the next is light again
    replace(&mut window, "heron", "stork");
    until(&mut window, "all are found", |window| says(window, "3 matches in 2 notes"));
    window.get_by_role_and_label(Role::CheckBox, "Replace in Code, line 6").click();
    pictured(&mut window, "search-replace");
}
