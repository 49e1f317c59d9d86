//! Keys of editors with modes: what the status line says of Vim's, and Jupyter's command mode in cells.

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
    // The first letter finds a caret.
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
    window.get_by_label("three").click();
    window.run();
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
