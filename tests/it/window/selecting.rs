//! Selecting with the pointer: across rows, by words and rows, past the page's edge; and input method composition.

use super::*;

const NOTE: &str = "# Head\n\nFirst **bold** words.\n\n- item\n- other\n\n```python\n1 + 1\n```\n\nLast words.\n";

fn at(window: &Driven, label: &str, right: f32) -> egui::Pos2 {
    let rect = window.get_by_label(label).rect();
    // Rows span the whole width; their text starts at the column.
    egui::pos2(rect.left() + (rect.width() - 720.0).max(0.0) / 2.0 + right, rect.bottom() - 12.0)
}

pub(super) fn pointer(window: &mut Driven, pos: egui::Pos2, pressed: Option<bool>, modifiers: Modifiers) {
    window.event(egui::Event::PointerMoved(pos));
    if let Some(pressed) = pressed {
        let button = egui::PointerButton::Primary;
        window.event(egui::Event::PointerButton { pos, button, pressed, modifiers });
    }
    window.step();
}

fn click(window: &mut Driven, pos: egui::Pos2, times: usize, modifiers: Modifiers) {
    for _ in 0..times {
        // A frame takes a quarter of a second here: one for the click, one for its effect.
        let button = egui::PointerButton::Primary;
        let click = |pressed| egui::Event::PointerButton { pos, button, pressed, modifiers };
        let events = [egui::Event::PointerMoved(pos), click(true), click(false)];
        window.input_mut().events.extend(events);
        window.run_steps(2);
    }
    window.run();
}

fn selected(window: &Driven) -> Vec<String> {
    let all = text(window).expect("a note is shown");
    let carets = window.state().carets();
    carets.into_iter().map(|(at, anchor)| all[at.min(anchor)..at.max(anchor)].to_owned()).collect()
}

#[test]
fn a_drag_selects_over_rows() {
    let bench = Bench::new(&[("A.md", NOTE)]);
    let mut window = bench.opened();
    let (from, to) = (at(&window, "First bold words.", -20.0), at(&window, "Last words.", 400.0));
    pointer(&mut window, from, Some(true), NONE);
    let before = window.get_by_label("First bold words.").rect();
    pointer(&mut window, from + egui::vec2(30.0, 20.0), None, NONE);
    pointer(&mut window, to, None, NONE);
    assert_eq!(window.get_by_label("First bold words.").rect(), before, "no row moves while the button is down");
    pointer(&mut window, to, Some(false), NONE);
    window.run();
    let all = selected(&window);
    assert_eq!(all, ["First **bold** words.\n\n- item\n- other\n\n```python\n1 + 1\n```\n\nLast words."]);
    window.event(egui::Event::Cut);
    window.step();
    let cut = window.output().platform_output.commands.iter().any(|command| match command {
        egui::OutputCommand::CopyText(text) => *text == all[0],
        _ => false,
    });
    assert!(cut, "the source, byte by byte");
    window.run();
    assert_eq!(with_caret(&window), "# Head\n\n|\n");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(NOTE));
}

#[test]
fn presses_select_words_rows_and_more() {
    let bench = Bench::new(&[("A.md", NOTE)]);
    let mut window = bench.opened();
    let word = at(&window, "Last words.", 50.0);
    click(&mut window, word, 2, NONE);
    assert_eq!(selected(&window), ["words"]);
    window.run_steps(60);
    click(&mut window, word, 3, NONE);
    assert_eq!(selected(&window), ["Last words."]);
    window.run_steps(60);
    let left = word - egui::vec2(70.0, 0.0);
    click(&mut window, left, 1, NONE);
    assert_eq!(selected(&window), [""]);
    let first = at(&window, "First bold words.", 400.0);
    click(&mut window, first, 1, Modifiers::SHIFT);
    assert_eq!(selected(&window), ["\n\n- item\n- other\n\n```python\n1 + 1\n```\n\n"]);
    window.run_steps(60);
    click(&mut window, left, 1, NONE);
    click(&mut window, first, 1, Modifiers::ALT);
    type_text(&mut window, "!");
    let typed = text(&window).expect("the note is shown");
    assert!(typed.contains("words.!\n") && typed.contains("\n!Last"), "{typed:?}");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(NOTE), "one step back for both");
}

#[test]
fn a_drag_past_the_edge_goes_on() {
    let long: String = (0..300).map(|number| format!("Line {number}\n\n")).collect();
    let bench = Bench::new(&[("A.md", long.as_str())]);
    let mut window = bench.opened();
    let from = at(&window, "Line 2", 0.0);
    pointer(&mut window, from, Some(true), NONE);
    for _ in 0..200 {
        pointer(&mut window, egui::pos2(from.x + 100.0, 850.0), None, NONE);
    }
    pointer(&mut window, egui::pos2(from.x + 100.0, 700.0), Some(false), NONE);
    window.run();
    let chosen = selected(&window).concat();
    assert!(chosen.starts_with("Line 2\n") && chosen.contains("Line 100\n"), "{chosen:?}");
}

#[test]
fn what_is_composed_is_shown_and_then_written() {
    let bench = Bench::new(&[("A.md", "one two\n")]);
    let mut window = bench.opened();
    window.state_mut().place_carets(&[(7, 4)]);
    window.run();
    let composing = egui::ImeEvent::Preedit { text: "にほ".to_owned(), active_range_chars: Some(0..2) };
    window.event(egui::Event::Ime(composing));
    window.step();
    assert!(window.output().platform_output.ime.is_some(), "the input method knows where to show its list");
    assert_eq!(text(&window).as_deref(), Some("one two\n"), "nothing is written yet");
    window.event(egui::Event::Ime(egui::ImeEvent::Commit("日本".to_owned())));
    window.run();
    assert_eq!(with_caret(&window), "one 日本|\n");
    window.event(egui::Event::Ime(egui::ImeEvent::DeleteSurrounding { before_chars: 1, after_chars: 0 }));
    window.run();
    assert_eq!(with_caret(&window), "one 日|\n");
}

#[test]
fn who_listens_can_read_and_write() {
    let bench = Bench::new(&[("A.md", "one two\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "one two");
    let field = window.get_by_role_and_label(Role::MultilineTextInput, "Note text");
    assert_eq!(field.value().as_deref(), Some("one two"));
    field.type_text("!");
    window.run();
    assert_eq!(with_caret(&window), "one two!|\n");
}
