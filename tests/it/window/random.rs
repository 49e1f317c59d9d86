//! Random actions in any order: the caret is after the typed text, and everything can be undone.

use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Pieces from which random notes are made.
const PIECES: &[&str] = &[
    "# Head\n",
    "\n",
    "\n\n",
    "- item\n",
    "  - in\n",
    "1. one\n",
    "> q\n",
    "```python\nx = 1\n```\n",
    "```js\ncode\n",
    "```\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "text **b** `c`\n",
    "日本 é 😀\n",
    "---\n",
    "    ind\n",
    "[^1]: n\n",
    "[a]: b\n",
    "<div>\n",
    "\ttab\n",
    "a\u{301}\u{200d}\n",
];
const KEYS: &[Key] = &[
    Key::Enter,
    Key::Backspace,
    Key::Delete,
    Key::ArrowUp,
    Key::ArrowDown,
    Key::ArrowLeft,
    Key::ArrowRight,
    Key::Home,
    Key::End,
    Key::PageUp,
    Key::PageDown,
    Key::Tab,
    Key::Escape,
    Key::A,
    Key::Z,
    Key::B,
    Key::D,
    Key::E,
    Key::I,
    Key::K,
];
const TEXTS: &[&str] =
    &["a", " ", "-", "`", "#", "|", ">", "*", "é", "😀", "1", ".", "[", "x\ny\n\nz", "```python\n1\n```\n", "\r\n"];

fn any<T: Copy>(rng: &mut StdRng, all: &[T]) -> T {
    all[rng.random_range(0..all.len())]
}

/// Performs a random user action. Returns the text if it was typed.
fn do_something(window: &mut Driven, rng: &mut StdRng) -> Option<&'static str> {
    let mut typed = None;
    match rng.random_range(0..10) {
        0..4 => {
            let (shift, ctrl) = (Modifiers::SHIFT, Modifiers::CTRL | CTRL);
            let modifiers = any(rng, &[NONE, NONE, NONE, NONE, shift, ctrl, ctrl | shift, Modifiers::ALT]);
            let key = any(rng, KEYS);
            // This key opens today's note, which is another note.
            if !(key == Key::D && modifiers.ctrl && modifiers.shift) {
                window.key_press_modifiers(modifiers, key);
            }
        }
        4..8 => match any(rng, TEXTS) {
            text if text.contains('\n') => window.event(egui::Event::Paste(text.to_owned())),
            text => {
                typed = Some(text);
                window.event(egui::Event::Text(text.to_owned()));
            }
        },
        _ => {
            let pos = egui::pos2(rng.random_range(250.0..1270.0), rng.random_range(40.0..770.0));
            window.event(egui::Event::PointerMoved(pos));
            for pressed in [true, false] {
                let button = egui::PointerButton::Primary;
                window.event(egui::Event::PointerButton { pos, button, pressed, modifiers: NONE });
            }
        }
    }
    window.step();
    typed
}

#[test]
fn whatever_is_done_the_caret_stands_behind_what_was_typed() {
    // To test more seeds: SEEDS=100..200.
    let seeds = std::env::var("SEEDS").ok();
    let seeds = seeds.as_deref().and_then(|seeds| seeds.split_once("..")).unwrap_or(("0", "5"));
    let [from, to] = [seeds.0, seeds.1].map(|seed| seed.parse::<u64>().expect("a number"));
    for seed in from..to {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut note: String = (0..rng.random_range(0..25)).map(|_| any(&mut rng, PIECES)).collect();
        if rng.random_bool(0.3) {
            note = note.replace('\n', "\r\n");
        }
        if rng.random_bool(0.3) {
            note.truncate(note.trim_end().len());
        }
        let bench = Bench::new(&[("A.md", note.as_str())]);
        let mut window = bench.opened();
        for step in 0..120 {
            let before = text(&window).expect("the note is shown");
            let typed = do_something(&mut window, &mut rng);
            let after = text(&window).expect("the note is shown");
            let caret = window.state().caret();
            let at = format!("seed {seed}, step {step}, caret {caret:?}: {before:?} became {after:?}");
            assert!(caret.is_none_or(|caret| after.is_char_boundary(caret)), "{at}");
            if let (Some(typed), Some(caret)) = (typed, caret) {
                assert!(before == after || after[..caret].ends_with(typed), "typed {typed:?}, {at}");
            }
        }
        window.run();
        let end = text(&window).expect("the note is shown");
        until(&mut window, "all is saved", |window| session(window).is_saved());
        assert_eq!(bench.file("A.md"), end, "seed {seed}");
        // Every action is undone, down to the first byte.
        let id = window.state().note().expect("a note is shown");
        for _ in 0..300 {
            window.state_mut().send_command(Command::Undo { note: id });
        }
        assert_eq!(text(&window).as_deref(), Some(note.as_str()), "seed {seed}, all undone");
    }
}
