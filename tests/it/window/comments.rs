//! Comments that span rows: hidden while reading, shown as source while the caret is in them.

use super::collections::has;
use super::{Bench, CTRL, NONE, press, text, type_text, until, with_caret};
use egui::Key;

const NOTE: &str = "Before. %%one%%\n\n%%\nA hidden line.\n\n- hidden item\n\n# Hidden head\n%%\n\nBetween %% gone\n\n\
                    gone, too %% after, %%not%% this.\n\n```python\n1 %% 2\n```\n\nCosts 5 %% here.\n";

#[test]
fn they_are_folded_away_and_opened_by_the_caret() {
    let bench = Bench::new(&[("A.md", NOTE)]);
    let mut window = bench.opened();
    for label in ["Before.", "Comment", "Between", "after,  this.", "Costs 5 %% here."] {
        until(&mut window, label, |window| has(window, label));
    }
    for hidden in ["A hidden line.", "hidden item", "Hidden head", "gone, too %% after, %%not%% this."] {
        assert!(!has(&window, hidden), "{hidden}");
    }
    // The caret enters the comment from the row above, and the whole comment is shown.
    window.state_mut().place_caret(0);
    window.run();
    press(&mut window, NONE, Key::ArrowDown);
    assert!(has(&window, "- hidden item") && has(&window, "# Hidden head"));
    press(&mut window, NONE, Key::End);
    type_text(&mut window, " Words");
    assert!(with_caret(&window).contains("%% Words|\nA hidden line."));
    for _ in 0..5 {
        press(&mut window, NONE, Key::ArrowDown);
    }
    assert!(!has(&window, "- hidden item"), "{}", with_caret(&window));
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(NOTE));
    assert!(has(&window, "- hidden item"), "what is taken back is seen");
}

#[test]
fn who_takes_a_mark_away_has_text_again() {
    let bench = Bench::new(&[("A.md", "a\n\n%%\n\nb\n\n%%\n\nc\n")]);
    let mut window = bench.opened();
    until(&mut window, "it is folded", |window| has(window, "Comment") && !has(window, "b"));
    // After the comment, the first Backspace opens it.
    window.state_mut().place_caret(14);
    window.run();
    press(&mut window, NONE, Key::Backspace);
    assert_eq!((with_caret(&window).as_str(), has(&window, "b")), ("a\n\n%%\n\nb\n\n%%\n\n|c\n", true));
    press(&mut window, NONE, Key::Backspace);
    press(&mut window, NONE, Key::Backspace);
    press(&mut window, NONE, Key::Backspace);
    window.state_mut().place_caret(0);
    window.run();
    assert!(has(&window, "b") && has(&window, "%%"), "{}", with_caret(&window));
}
