//! Tabs and splits: each pane has its caret, a note can be in two panes, and a restart restores everything.

use super::*;
use egui_kittest::kittest::NodeT;

const CTRL_TAB: (Modifiers, Key) = (CTRL, Key::Tab);

/// The names of all tabs, from left to right; the one with the caret is in brackets.
fn tabs(window: &Driven) -> String {
    let mut tabs: Vec<(f32, String)> = Vec::new();
    for tab in window.query_all_by_role(Role::Tab) {
        let at = tab.rect().left() + tab.rect().top() / 1_000.0;
        tabs.push((at, tab.accesskit_node().label().unwrap_or_default()));
    }
    tabs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    tabs.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

fn open_beside(window: &mut Driven, name: &str) {
    window.get_by_role_and_label(Role::TreeItem, name).click_modifiers(CTRL);
    window.run();
}

fn shows(window: &mut Driven, wanted: &str) {
    until(window, &format!("the note is shown: {wanted}"), |window| text(window).as_deref() == Some(wanted));
}

fn three() -> Bench {
    Bench::new(&[("One.md", "first\n"), ("Two.md", "second\n"), ("Three.md", "third\n")])
}

#[test]
fn tabs_open_turn_close_and_come_back() {
    let bench = three();
    let mut window = bench.opened();
    assert_eq!(path(&window), "One.md");
    assert_eq!(tabs(&window), "", "one note alone has no tabs");
    open_beside(&mut window, "Two");
    shows(&mut window, "second\n");
    open_beside(&mut window, "Three");
    shows(&mut window, "third\n");
    assert_eq!(tabs(&window), "One Two Three");
    press(&mut window, CTRL_TAB.0, CTRL_TAB.1);
    assert_eq!(path(&window), "One.md");
    press(&mut window, CTRL_SHIFT, Key::Tab);
    assert_eq!(path(&window), "Three.md");
    press(&mut window, CTRL, Key::W);
    assert_eq!((tabs(&window), path(&window)), ("One Two".to_owned(), "Two.md".to_owned()));
    press(&mut window, CTRL_SHIFT, Key::T);
    shows(&mut window, "third\n");
    assert_eq!(tabs(&window), "One Two Three");
    // A note that is already open in a tab is switched to, not opened again.
    window.get_by_role_and_label(Role::TreeItem, "One").click();
    window.run();
    assert_eq!((tabs(&window), path(&window)), ("One Two Three".to_owned(), "One.md".to_owned()));
    click_label(&mut window, "Close tab Two");
    assert_eq!(tabs(&window), "One Three");
    window.get_by_role_and_label(Role::Tab, "Three").click();
    window.run();
    assert_eq!(path(&window), "Three.md");
    press(&mut window, CTRL, Key::W);
    press(&mut window, CTRL, Key::W);
    window.get_by_label_contains("Choose a note at the left");
    press(&mut window, CTRL, Key::T);
    type_text(&mut window, "two");
    press(&mut window, NONE, Key::Enter);
    shows(&mut window, "second\n");
}

#[test]
fn a_tab_has_a_menu() {
    let bench = three();
    let mut window = bench.opened();
    open_beside(&mut window, "Two");
    shows(&mut window, "second\n");
    open_beside(&mut window, "Three");
    shows(&mut window, "third\n");
    let choose = |window: &mut Driven, tab: &str, item: &str| {
        window.get_by_role_and_label(Role::Tab, tab).click_secondary();
        window.run();
        window.get_by_role_and_label(Role::MenuItem, item).click();
        window.run();
    };
    choose(&mut window, "Three", "Close");
    assert_eq!((tabs(&window), path(&window)), ("One Two".to_owned(), "Two.md".to_owned()));
    choose(&mut window, "One", "Split right");
    assert_eq!((tabs(&window), path(&window)), ("One Two One".to_owned(), "One.md".to_owned()));
    choose(&mut window, "Two", "Close other tabs");
    assert_eq!((tabs(&window), path(&window)), (String::new(), "Two.md".to_owned()), "one note alone has no tabs");
}

/// The part of the tab bar in which tabs can be seen, from its left to its right end.
fn seen_tabs(window: &Driven) -> (f32, f32) {
    let edges = |names: &[&'static str], edge: fn(egui::Rect) -> f32| -> Vec<f32> {
        let nodes = names.iter().flat_map(|name| window.query_all_by_role_and_label(Role::Button, name));
        nodes.map(|node| edge(node.rect())).collect()
    };
    let left = edges(&["Hide the tree", "Scroll tabs left"], |rect| rect.right()).into_iter().reduce(f32::max);
    let right = edges(&["Scroll tabs right", "Note history", "Show right panel"], |rect| rect.left());
    (left.expect("a button at the left"), right.into_iter().reduce(f32::min).expect("a button at the right"))
}

fn is_tab_in_sight(window: &Driven, name: &str) -> bool {
    let (left, right) = seen_tabs(window);
    let tab = window.get_by_role_and_label(Role::Tab, name).rect();
    tab.left() >= left - 1.0 && tab.right() <= right + 1.0
}

#[test]
fn the_active_tab_is_scrolled_into_sight() {
    let names: Vec<String> = (1..=12).map(|number| format!("Note {number:02}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "text\n")).collect();
    let bench = Bench::new(&files);
    let mut window = bench.opened();
    for name in &names[1..] {
        open_beside(&mut window, name.trim_end_matches(".md"));
        until(&mut window, "the note is shown", |window| path(window) == *name && text(window).is_some());
    }
    window.set_size(egui::vec2(800.0, 600.0));
    window.run();
    let sight = |window: &Driven| (is_tab_in_sight(window, "Note 01"), is_tab_in_sight(window, "Note 12"));
    assert_eq!(sight(&window), (false, true), "a narrower window still shows the last tab, which is active");
    press(&mut window, CTRL_TAB.0, CTRL_TAB.1);
    assert_eq!(path(&window), "Note 01.md");
    assert_eq!(sight(&window), (true, false));
    press(&mut window, CTRL_SHIFT, Key::Tab);
    assert_eq!(path(&window), "Note 12.md");
    assert_eq!(sight(&window), (false, true));
    click_label(&mut window, "Scroll tabs left");
    assert_eq!(sight(&window), (false, false), "one can scroll away from the active tab");
}

#[test]
fn each_pane_has_its_caret_even_in_one_note() {
    let bench = three();
    let mut window = bench.opened();
    click_label(&mut window, "first");
    press(&mut window, NONE, Key::End);
    press(&mut window, CTRL | Modifiers::ALT, Key::Backslash);
    shows(&mut window, "first\n");
    assert_eq!(tabs(&window), "One One");
    assert_eq!(window.state().caret(), None, "the new pane has no caret yet");
    let rows = window.query_all_by_label("first").map(|node| node.rect());
    let row = rows.max_by(|a, b| a.left().total_cmp(&b.left())).expect("the row at the right");
    window.hover_at(row.center());
    window.run();
    window.drag_at(row.center());
    window.run();
    window.drop_at(row.center());
    window.run();
    press(&mut window, NONE, Key::Home);
    type_text(&mut window, "the ");
    assert_eq!(with_caret(&window), "the |first\n");
    press(&mut window, CTRL_TAB.0, CTRL_TAB.1);
    assert_eq!(with_caret(&window), "the first|\n", "carried through what was typed in the other pane");
    type_text(&mut window, " line");
    assert_eq!(with_caret(&window), "the first line|\n");
    press(&mut window, CTRL_TAB.0, CTRL_TAB.1);
    assert_eq!(with_caret(&window), "the |first line\n");
}

#[test]
fn a_tab_is_dragged_to_the_other_side_of_a_split() {
    let bench = three();
    let mut window = bench.opened();
    open_beside(&mut window, "Two");
    shows(&mut window, "second\n");
    let from = window.get_by_role_and_label(Role::Tab, "Two").rect().left_center() + egui::vec2(20.0, 0.0);
    window.hover_at(from);
    window.drag_at(from);
    for to in [egui::pos2(900.0, 300.0), egui::pos2(1_150.0, 420.0), egui::pos2(1_240.0, 420.0)] {
        window.hover_at(to);
        window.run_steps(2);
    }
    window.drop_at(egui::pos2(1_240.0, 420.0));
    window.run();
    let left = |window: &Driven, name: &str| window.get_by_role_and_label(Role::Tab, name).rect().left();
    assert!(left(&window, "Two") > left(&window, "One") + 300.0, "side by side");
    window.get_by_role_and_label(Role::Label, "first");
    window.get_by_role_and_label(Role::Label, "second");
}

#[test]
fn tabs_and_splits_are_there_again_after_a_restart() {
    let bench = three();
    let mut window = bench.opened();
    open_beside(&mut window, "Two");
    shows(&mut window, "second\n");
    press(&mut window, CTRL_SHIFT, Key::P);
    type_text(&mut window, "split down");
    press(&mut window, NONE, Key::Enter);
    window.get_by_role_and_label(Role::TreeItem, "Three").click();
    window.run();
    shows(&mut window, "third\n");
    let before = tabs(&window);
    until(&mut window, "the layout is kept", |window| session(window).settings().panes.is_some());
    std::thread::sleep(Duration::from_millis(600));
    window.run_steps(3);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    shows(&mut window, "third\n");
    assert_eq!(tabs(&window), before);
    until(&mut window, "the other pane is read", |window| window.query_by_label("second").is_some());
    press(&mut window, CTRL_TAB.0, CTRL_TAB.1);
    shows(&mut window, "first\n");
}

/// Saves screenshots of tabs and splits for people to look at.
#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench =
        Bench::new(&[("Rain.md", NOTE), ("Plan.md", "# Plan\n\n- [ ] pick\n- [x] wash\n"), ("Log.md", "log\n")]);
    let mut window = bench.opened();
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        if theme == "light" {
            open_beside(&mut window, "Rain");
            open_beside(&mut window, "Plan");
            press(&mut window, CTRL | Modifiers::ALT, Key::Backslash);
        }
        until(&mut window, "all is there", |window| text(window).is_some());
        window.run_steps(3);
        let image = window.render().expect("a picture");
        image.save(folder.join(format!("{theme}-panes")).with_extension("png")).expect("a file");
    }
}
