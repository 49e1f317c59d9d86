//! The status bar: what it shows, where its parts lead, and which parts a narrow window hides.

use super::*;
use engine::ColorTheme;
use engine::commands::CommandId;

const NOTE: &str = "# Rain\n\nSome words über rain.\n\n```python\n1+1\n```\n";

fn on() -> (Bench, Driven) {
    let bench = Bench::new(&[("Rain.md", NOTE)]);
    let window = bench.opened();
    (bench, window)
}

#[test]
fn the_place_of_the_caret_and_the_selection_are_told() {
    let (_bench, mut window) = on();
    assert!(window.query_by_label_contains("Line ").is_none(), "there's no caret yet");
    let at = NOTE.find(" rain.").expect("words");
    window.state_mut().place_caret(at);
    window.run();
    assert!(window.query_by_label("Line 3, column 16").is_some(), "columns count characters");
    let begin = NOTE.find("über").expect("words");
    window.state_mut().place_carets(&[(at, begin)]);
    window.run();
    assert!(window.query_by_label("Line 3, column 16, 4 characters selected").is_some());
    pictured(&mut window, "status");
    window.state_mut().place_carets(&[(begin, begin), (at, at)]);
    window.run();
    assert!(window.query_by_label("2 carets").is_some());
}

#[test]
fn the_theme_is_chosen_in_a_menu() {
    let (_bench, mut window) = on();
    click_label(&mut window, "Theme: system");
    assert_eq!(session(&window).settings().theme, ColorTheme::System, "a click chooses nothing yet");
    for name in ["System", "Light", "Dark"] {
        window.get_by_role_and_label(Role::MenuItemRadio, name);
    }
    if let Some(folder) = pictures_folder() {
        picture(&mut window, &folder, "status-theme");
    }
    window.get_by_role_and_label(Role::MenuItemRadio, "Dark").click();
    window.run();
    assert_eq!(session(&window).settings().theme, ColorTheme::Dark);
    assert!(window.query_by_label("Theme: dark").is_some());
    assert!(window.query_by_role_and_label(Role::MenuItemRadio, "Dark").is_none(), "the menu is closed");
}

#[test]
fn the_systems_theme_is_followed_while_the_window_is_open() {
    let (_bench, mut window) = on();
    let changed_to = |window: &mut Driven, theme: egui::Theme| {
        window.input_mut().system_theme = Some(theme);
        window.run();
        window.ctx.global_style().visuals.dark_mode
    };
    for theme in [egui::Theme::Dark, egui::Theme::Light, egui::Theme::Dark] {
        assert_eq!(changed_to(&mut window, theme), theme == egui::Theme::Dark, "{theme:?}");
    }
    click_label(&mut window, "Theme: system");
    window.get_by_role_and_label(Role::MenuItemRadio, "Light").click();
    window.run();
    for theme in [egui::Theme::Light, egui::Theme::Dark] {
        assert!(!changed_to(&mut window, theme), "the user's own choice stays: {theme:?}");
    }
}

#[test]
fn the_kernel_has_a_menu() {
    let (_bench, mut window) = on();
    click_label(&mut window, "Python off");
    if let Some(folder) = pictures_folder() {
        picture(&mut window, &folder, "status-kernel");
    }
    window.get_by_role_and_label(Role::MenuItem, "Run all").click();
    until(&mut window, "the cell has run", |window| window.query_by_label("Python idle").is_some());
    click_label(&mut window, "Python idle");
    window.get_by_label("Variables are lost. There’s no undo.");
    window.get_by_role_and_label(Role::MenuItem, "Restart").click();
    // The message may be gone before the kernel is.
    let mut is_told = false;
    until(&mut window, "the kernel is off", |window| {
        is_told |= window.query_by_label_contains("Dismiss: The kernel restarts. Its variables are lost").is_some();
        window.query_by_label("Python off").is_some()
    });
    assert!(is_told);
}

#[test]
fn the_menu_of_a_kernel_that_saves_variables_says_where_a_restart_leaves_them() {
    let bench = Bench::new(&[("A.md", "---\nkernel: science\n---\n```python\n1\n```\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "Menu of cell 1");
    window.get_by_role_and_label(Role::MenuItem, "Restart kernel");
    window.get_by_label("“Saved states…” brings variables back.");
}

#[test]
fn the_save_state_has_a_menu_and_the_words_show_the_outline() {
    let (_bench, mut window) = on();
    until(&mut window, "all is saved", |window| window.query_by_label("All saved").is_some());
    window.get_by_role_and_label(Role::Button, "All saved").click();
    window.run();
    window.state_mut().take_ran();
    window.get_by_role_and_label(Role::MenuItem, "Save now").click();
    window.run();
    assert!(window.state_mut().take_ran().contains(&CommandId::NoteSave));
    until(&mut window, "all is saved", |window| window.query_by_label("All saved").is_some());
    window.get_by_role_and_label(Role::Button, "All saved").click();
    window.run();
    window.get_by_role_and_label(Role::MenuItem, "History of this note").click();
    let empty = "This note has no history yet.";
    until(&mut window, "the history is shown", |window| window.query_by_label(empty).is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(!session(&window).settings().right_open);
    for is_open in [true, false] {
        window.get_by_role_and_label(Role::Button, "7 words").click();
        window.run();
        assert_eq!(window.query_by_label("Panel: Outline").is_some(), is_open);
    }
}

#[test]
fn what_matters_least_makes_room() {
    let (_bench, mut window) = on();
    let at = NOTE.find(" rain.").expect("words");
    window.state_mut().place_carets(&[(at, at - 5)]);
    window.run();
    let caret = "Line 3, column 16, 4 characters selected";
    let shown = |window: &Driven, label: &str| window.query_by_label(label).is_some();
    let words = window.query_by_label_contains(" words").is_some();
    assert!(words && shown(&window, caret) && shown(&window, "Python off"));
    window.set_size(egui::vec2(440.0, 600.0));
    window.run();
    assert!(!shown(&window, "7 words") && shown(&window, "Python off"), "words are the first to go");
    let saved = window.get_by_label("All saved").rect();
    assert!(saved.right() < window.get_by_label("Python off").rect().left());
    if let Some(folder) = pictures_folder() {
        picture(&mut window, &folder, "status-narrow");
    }
    window.set_size(egui::vec2(340.0, 600.0));
    window.run();
    assert!(!shown(&window, caret) && shown(&window, "Python off"));
}

#[test]
fn the_outline_tells_the_characters_and_times_of_a_note() {
    let bench = Bench::new(&[("Rain.md", "---\ncreated: 2026-01-02\n---\nÜber\n"), ("Other.md", "other\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "Rain").click();
    until(&mut window, "the note is shown", |window| path(window) == "Rain.md");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewRight);
    until(&mut window, "its characters are counted", |window| window.query_by_label("Characters: 33").is_some());
    until(&mut window, "its properties are known", |window| window.query_by_label("Created: 2026-01-02").is_some());
    assert!(window.query_by_label_contains("Modified: Today, ").is_some());
    window.get_by_role_and_label(Role::TreeItem, "Other").click();
    until(&mut window, "the other note's are counted", |window| window.query_by_label("Characters: 6").is_some());
    assert!(window.query_by_label_contains("Created: ").is_none(), "the note doesn't say");
}
