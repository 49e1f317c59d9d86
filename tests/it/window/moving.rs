//! Rows moved by the grip at their left, and by keys.

use super::{Bench, CTRL, Driven, NONE, path, press, text, until};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Pos2, vec2};
use egui_kittest::kittest::Queryable;

/// Starts dragging the row with this label by its grip.
fn take(window: &mut Driven, label: &str) {
    let at = window.get_by_label(label).rect().left_center() + vec2(60.0, 0.0);
    window.hover_at(at);
    window.run();
    let grip = window.get_by_label("Move block").rect().center();
    window.hover_at(grip);
    window.run();
    window.drag_at(grip);
    window.run();
}

/// The edge between the row with this label and the one above it, or below it if `below` is set.
fn edge(window: &Driven, label: &str, below: bool) -> Pos2 {
    let rect = window.get_by_label(label).rect();
    if below { rect.center_bottom() } else { rect.center_top() }
}

fn drop(window: &mut Driven, at: Pos2) {
    window.hover_at(at);
    window.run();
    window.drop_at(at);
    window.run();
}

fn dragged(note: &str, from: &str, to: &str, below: bool) -> String {
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    take(&mut window, from);
    let at = edge(&window, to, below);
    drop(&mut window, at);
    let made = text(&window).expect("a note");
    if made != note {
        press(&mut window, CTRL, Key::Z);
        assert_eq!(text(&window).as_deref(), Some(note), "one undo takes it back");
    }
    made
}

#[test]
fn a_block_goes_where_it_is_dropped() {
    let note = "one\n\ntwo\n\n# three\n\nfour\n";
    assert_eq!(dragged(note, "one", "four", true), "two\n\n# three\n\nfour\n\none\n");
    assert_eq!(dragged(note, "four", "one", false), "four\n\none\n\ntwo\n\n# three\n");
    assert_eq!(dragged(note, "two", "four", false), "one\n\n# three\n\ntwo\n\nfour\n");
    assert_eq!(dragged(note, "two", "two", true), note, "where it is already");
    assert_eq!(dragged("a\n- b\n- c\n\nd\n", "c", "a", false), "- c\n\na\n- b\n\nd\n");
    assert_eq!(dragged("one\r\n\r\ntwo\r\n", "two", "one", false), "two\r\n\r\none\r\n");
    assert_eq!(dragged("---\nx: 1\n---\n\na\n\nb", "b", "a", false), "---\nx: 1\n---\n\nb\n\na");
}

#[test]
fn an_item_takes_what_is_inside_it_along() {
    let note = "1. one\n2. two\n   - in\n3. three\n";
    assert_eq!(dragged(note, "two", "one", false), "1. two\n   - in\n2. one\n3. three\n");
    assert_eq!(dragged(note, "one", "three", true), "1. two\n   - in\n2. three\n3. one\n");
    let deep = "- a\n- b\n  - c\n  - d\n\npara\n";
    assert_eq!(dragged(deep, "a", "d", false), "- b\n  - c\n  - a\n  - d\n\npara\n");
    assert_eq!(dragged(deep, "c", "a", false), "- c\n- a\n- b\n  - d\n\npara\n");
    assert_eq!(dragged(deep, "b", "para", true), "- a\n\npara\n\n- b\n  - c\n  - d\n");
}

#[test]
fn what_is_selected_moves_together() {
    let bench = Bench::new(&[("A.md", "one\n\ntwo\n\nthree\n\nfour\n")]);
    let mut window = bench.opened();
    window.state_mut().place_carets(&[(8, 5)]);
    window.run();
    press(&mut window, Modifiers::SHIFT, Key::ArrowDown);
    press(&mut window, Modifiers::ALT, Key::ArrowUp);
    assert_eq!(text(&window).as_deref(), Some("two\n\nthree\n\none\n\nfour\n"));
    press(&mut window, Modifiers::ALT, Key::ArrowDown);
    press(&mut window, Modifiers::ALT, Key::ArrowDown);
    assert_eq!(text(&window).as_deref(), Some("one\n\nfour\n\ntwo\n\nthree\n"));
    take(&mut window, "two");
    let at = edge(&window, "one", false);
    drop(&mut window, at);
    assert_eq!(text(&window).as_deref(), Some("two\n\nthree\n\none\n\nfour\n"));
}

#[test]
fn a_cell_keeps_what_it_printed() {
    let note = "one\n\n```python\n6 * 7\n```\n\ntwo\n\nthree\n";
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the answer is shown", |window| window.query_by_label("42").is_some());
    take(&mut window, "6 * 7\n");
    let at = edge(&window, "three", true);
    drop(&mut window, at);
    assert_eq!(text(&window).as_deref(), Some("one\n\ntwo\n\nthree\n\n```python\n6 * 7\n```\n"));
    assert!(window.query_by_label("42").is_some(), "dragged down");
    window.state_mut().place_caret(24);
    window.run();
    press(&mut window, Modifiers::ALT, Key::ArrowUp);
    assert_eq!(text(&window).as_deref(), Some("one\n\ntwo\n\n```python\n6 * 7\n```\n\nthree\n"));
    assert!(window.query_by_label("42").is_some(), "moved up by keys");
    take(&mut window, "one");
    let at = edge(&window, "three", true);
    drop(&mut window, at);
    assert_eq!(text(&window).as_deref(), Some("two\n\n```python\n6 * 7\n```\n\nthree\n\none\n"));
    assert!(window.query_by_label("42").is_some(), "something is dragged past it");
    press(&mut window, Modifiers::ALT, Key::ArrowUp);
    assert_eq!(text(&window).as_deref(), Some("```python\n6 * 7\n```\n\ntwo\n\nthree\n\none\n"), "the caret is in it");
    assert!(window.query_by_label("42").is_some());
}

#[test]
fn escape_lets_go() {
    let bench = Bench::new(&[("A.md", "one\n\ntwo\n")]);
    let mut window = bench.opened();
    take(&mut window, "one");
    let at = edge(&window, "two", true);
    window.hover_at(at);
    window.run();
    press(&mut window, NONE, Key::Escape);
    window.drop_at(at);
    window.run();
    assert_eq!(text(&window).as_deref(), Some("one\n\ntwo\n"));
}

#[test]
fn a_block_is_dragged_into_another_tab_and_into_a_pane_beside() {
    let one = "one\n\nsee [it](x/Two.md)\n\nthree\n";
    let bench = Bench::new(&[("One.md", one), ("x/Two.md", "first\n\n- item\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "x").click();
    window.run();
    window.get_by_role_and_label(Role::TreeItem, "Two").click_modifiers(CTRL);
    until(&mut window, "the other note is there", |window| text(window).as_deref() == Some("first\n\n- item\n"));
    window.get_by_role_and_label(Role::Tab, "One").click();
    until(&mut window, "the first note is in front", |window| text(window).as_deref() == Some(one));
    take(&mut window, "see it");
    let tab = window.get_by_role_and_label(Role::Tab, "Two").rect().center();
    window.hover_at(tab);
    until(&mut window, "the tab opens", |window| window.query_by_label("first").is_some());
    let at = edge(&window, "first", true);
    drop(&mut window, at);
    let two = "first\n\nsee [it](Two.md)\n\n- item\n";
    assert_eq!(text(&window).as_deref(), Some(two), "it is there, and its link leads where it led");
    assert_eq!(note_text(&window, "One.md"), "one\n\nthree\n", "and gone from here");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("first\n\n- item\n"), "each note takes back its own part");
    window.get_by_role_and_label(Role::Tab, "One").click();
    window.run();
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(one));

    window.state_mut().place_caret(0);
    window.run();
    // Two panes side by side: a drag that is canceled on the way leaves the row where it is.
    press(&mut window, CTRL | Modifiers::ALT, Key::Backslash);
    window.get_by_role_and_label(Role::TreeItem, "Two").click();
    until(&mut window, "beside it", |window| window.query_by_label("item").is_some());
    take(&mut window, "three");
    let tree = window.get_by_role_and_label(Role::TreeItem, "Two").rect().center();
    let at = edge(&window, "item", false);
    window.hover_at(tree);
    window.run();
    window.hover_at(at);
    window.run();
    press(&mut window, NONE, Key::Escape);
    window.drop_at(at);
    window.run();
    assert_eq!(note_text(&window, "x/Two.md"), "first\n\n- item\n", "Escape lets go");
    take(&mut window, "three");
    let at = edge(&window, "item", true);
    drop(&mut window, at);
    assert_eq!(note_text(&window, "x/Two.md"), "first\n\n- item\n\nthree\n");
    assert_eq!(note_text(&window, "One.md"), "one\n\nsee [it](x/Two.md)\n");
    assert_eq!(path(&window), "x/Two.md", "the caret is where the block is");
}

/// The text of the open note with this path.
fn note_text(window: &Driven, wanted: &str) -> String {
    let session = window.state().session();
    let files = session.volumes().flat_map(|volume| volume.files.values());
    let id = files.filter(|row| row.path == wanted).map(|row| row.id).next().expect("the file");
    session.note(id).expect("open").text()
}
