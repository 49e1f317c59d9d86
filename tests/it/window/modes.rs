//! Keys of modal editors: the status line for Vim's modes, and Jupyter's command mode in cells.

use super::*;
use engine::KernelPhase;

fn says(window: &Driven, word: &str) -> bool {
    window.query_by_label(word).is_some()
}

#[test]
fn vims_mode_is_said_and_a_click_keeps_it() {
    let bench = Bench::new(&[("A.md", "one two\n\nthree\n")]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Vim");
    assert!(!says(&window, "Normal"), "nobody writes yet");
    // The first letter places a caret.
    type_text(&mut window, "w");
    assert!(says(&window, "Normal"));
    type_text(&mut window, "2");
    assert!(says(&window, "Normal 2"));
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, "v");
    assert!(says(&window, "Visual"));
    type_text(&mut window, "V");
    assert!(says(&window, "Visual line"));
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, "i");
    assert!(says(&window, "Insert"));
    click_label(&mut window, "three");
    type_text(&mut window, "x");
    assert!(says(&window, "Insert") && text(&window).is_some_and(|text| text.contains('x')));
    press(&mut window, NONE, Key::Escape);
    assert!(says(&window, "Normal"));
    type_text(&mut window, "/two");
    assert!(says(&window, "1 of 1"), "a slash looks for something");
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "x");
    assert!(text(&window).is_some_and(|text| text.starts_with("one wo")), "{:?}", text(&window));
    type_text(&mut window, ":");
    assert!(says(&window, "Command palette"));
}

const CELLS: &str = "Words.\n\n```python\na = 1\n```\n\n```python\na + 1\n```\n";

fn in_cell(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    choose_preset(&mut window, "Jupyter");
    window.state_mut().place_caret(CELLS.find("a = 1").expect("a cell"));
    window.run();
    press(&mut window, NONE, Key::Escape);
    assert!(says(&window, "Command"));
    window
}

#[test]
fn letters_mean_cells_in_command_mode() {
    let bench = Bench::new(&[("A.md", CELLS)]);
    let mut window = in_cell(&bench);
    let holds = |window: &Driven, wanted: &str, keys: &str| assert_eq!(text(window).as_deref(), Some(wanted), "{keys}");
    for (keys, after) in [
        ("b", "Words.\n\n```python\na = 1\n```\n\n```python\n\n```\n\n```python\na + 1\n```\n"),
        ("dd", CELLS),
        ("kM", "Words.\n\n```python\na = 1\na + 1\n```\n"),
        ("z", CELLS),
        ("kkm", "Words.\n\na = 1\n\n```python\na + 1\n```\n"),
        ("y", CELLS),
        ("x", "Words.\n\n```python\na + 1\n```\n"),
        ("v", "Words.\n\n```python\na + 1\n```\n\n```python\na = 1\n```\n"),
        ("ka", "Words.\n\n```python\n\n```\n\n```python\na + 1\n```\n\n```python\na = 1\n```\n"),
        (
            "jcv",
            "Words.\n\n```python\n\n```\n\n```python\na + 1\n```\n\n```python\na + 1\n```\n\n```python\na = 1\n```\n",
        ),
    ] {
        type_text(&mut window, keys);
        holds(&window, after, keys);
        assert!(says(&window, "Command"), "{keys}");
    }
    press(&mut window, NONE, Key::Enter);
    assert!(!says(&window, "Command"));
    type_text(&mut window, "b");
    assert!(text(&window).is_some_and(|text| text.contains("ba + 1")), "{:?}", text(&window));
}

#[test]
fn cells_run_and_go_on() {
    let bench = Bench::new(&[("A.md", CELLS)]);
    let mut window = in_cell(&bench);
    press(&mut window, Modifiers::SHIFT, Key::Enter);
    assert_eq!(window.state().caret(), CELLS.find("a + 1"), "the next cell");
    assert!(says(&window, "Command"));
    press(&mut window, Modifiers::ALT, Key::Enter);
    assert!(!says(&window, "Command"), "the new cell is written into");
    assert_eq!(text(&window), Some(format!("{}\n```python\n\n```\n", CELLS)));
    until(&mut window, "both have run", |window| window.query_by_label("2").is_some());
    type_text(&mut window, "a = 5");
    press(&mut window, CTRL, Key::Enter);
    assert!(says(&window, "Command"));
    until(&mut window, "it has run", |window| session(window).notes().all(|note| note.kernel == KernelPhase::Idle));
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::Home);
    press(&mut window, NONE, Key::End);
    press(&mut window, CTRL_SHIFT, Key::Minus);
    assert!(
        text(&window).is_some_and(|text| text.ends_with("a = 5\n```\n\n```python\n\n```\n")),
        "{:?}",
        text(&window)
    );
}

#[test]
fn vims_page_goes_where_the_keys_say() {
    let note: String = (1..=200).map(|number| format!("line {number}\n\n")).collect();
    let bench = Bench::new(&[("A.md", note.as_str())]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Vim");
    let at = |window: &Driven| note[..window.state().caret().expect("a caret")].matches("line").count();
    let seen = |window: &Driven, number: usize| window.query_by_label(&format!("line {number}")).is_some();
    type_text(&mut window, "100G");
    // The caret's line is an editable field, not a row that is only read.
    let place = |window: &Driven| {
        let top = (1..=200).find(|number| seen(window, *number)).expect("a row");
        let bottom = (1..=200).rev().find(|number| seen(window, *number)).expect("a row");
        (top.min(at(window) + 1), bottom.max(at(window) + 1), at(window) + 1)
    };
    type_text(&mut window, "zt");
    let (top, bottom, caret) = place(&window);
    assert!(caret == 100 && caret - top <= 2 && bottom > caret + 5, "{top} {caret} {bottom}");
    type_text(&mut window, "zb");
    let (top, bottom, caret) = place(&window);
    assert!(caret == 100 && bottom - caret <= 2 && top < caret - 5, "{top} {caret} {bottom}");
    type_text(&mut window, "zz");
    let (top, bottom, caret) = place(&window);
    assert!(caret == 100 && (caret - top).abs_diff(bottom - caret) <= 2, "{top} {caret} {bottom}");
    type_text(&mut window, "H");
    let (high, _, caret) = place(&window);
    assert!(caret - high <= 2, "{high} {caret}");
    type_text(&mut window, "L");
    let (_, low, caret) = place(&window);
    assert!(low - caret <= 2 && caret > 100, "{low} {caret}");
    type_text(&mut window, "M");
    assert!(at(&window).abs_diff(99) <= 2, "{}", at(&window));
    let before = at(&window);
    press(&mut window, CTRL, Key::F);
    assert!(at(&window) > before + 5, "a page down, and not the bar to find something");
    press(&mut window, CTRL, Key::B);
    assert!(at(&window).abs_diff(before) <= 2, "{} {before}", at(&window));
    press(&mut window, CTRL, Key::D);
    assert!(at(&window) > before + 2);
    type_text(&mut window, "vggy");
    assert!(!says(&window, "Visual"), "copied");
    assert_eq!(window.state().caret(), Some(0));
}

#[test]
fn what_plays_itself_can_be_stopped() {
    let bench = Bench::new(&[("A.md", "one\n")]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Vim");
    window.state_mut().place_caret(0);
    window.run();
    // The macro types a letter and then plays itself, endlessly.
    type_text(&mut window, "qaq");
    type_text(&mut window, "qaix");
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, "@aq");
    let text_event = |text: &str| egui::Event::Text(text.to_owned());
    window.input_mut().events.extend([text_event("@"), text_event("a")]);
    window.step();
    let begun = text(&window).expect("a note").len();
    window.step();
    assert!(text(&window).expect("a note").len() > begun, "it plays on in the next frame");
    press(&mut window, NONE, Key::Escape);
    let ended = text(&window).expect("a note").len();
    window.step();
    assert_eq!(text(&window).expect("a note").len(), ended, "Escape has ended it");
    type_text(&mut window, "u");
    assert_eq!(text(&window).as_deref(), Some("xone\n"), "and all of it is taken back at once");
}

#[test]
fn lines_behind_vims_colon_are_offered_by_what_they_do() {
    let bench = Bench::new(&[("A.md", "one two\n\nthree\n"), ("B.md", "b\n")]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Vim");
    window.state_mut().place_caret(0);
    window.run();
    type_text(&mut window, ":");
    type_text(&mut window, "%s/o/0/g");
    assert!(says(&window, "Replace “o” in the whole note"));
    press(&mut window, NONE, Key::Enter);
    assert_eq!(text(&window).as_deref(), Some("0ne tw0\n\nthree\n"));
    type_text(&mut window, ":%s/(/x/q");
    assert!(window.query_by_label_contains("Unknown flag").is_some(), "what is wrong is said");
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, ":wq");
    assert!(says(&window, "Save now, then: Close tab"));
    press(&mut window, NONE, Key::Enter);
    assert!(window.state().note().is_none(), "the tab is closed");
}
