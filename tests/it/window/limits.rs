//! Text beyond the limits, typed and pasted into the window: it keeps working, shows the plain text, and says why.

use super::*;

/// The maximum duration with such a text, on a busy machine and without optimization.
const LONGEST: Duration = Duration::from_secs(20);

fn paste(window: &mut Driven, text: &str) {
    window.event(egui::Event::Paste(text.to_owned()));
    window.run();
}

#[test]
fn front_matter_beyond_the_limits_is_pasted_typed_in_and_taken_out() {
    let bench = Bench::new(&[("One.md", "Words.\n"), ("Two.md", "Another note.\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "Words.");
    for front in [
        format!("{}x\n", "? ".repeat(28)),
        format!("{}x\n", "? ".repeat(2_000)),
        format!("a:\n{}x\n", "- ".repeat(10_000)),
        format!("a: {}\n", "[".repeat(20_000)),
    ] {
        let begun = Instant::now();
        press(&mut window, CTRL, Key::Home);
        paste(&mut window, &format!("---\n{front}---\n"));
        // Further typing at the end parses the last text again.
        type_text(&mut window, "More. ");
        let expected = format!("---\n{front}---\nMore. Words.\n");
        assert_eq!(text(&window), Some(expected.clone()));
        until(&mut window, "it is in the file", |_| bench.file("One.md") == expected);
        for _ in 0..3 {
            press(&mut window, CTRL, Key::A);
        }
        paste(&mut window, "Words.\n");
        until(&mut window, "the text is as before", |window| text(window).as_deref() == Some("Words.\n"));
        assert!(begun.elapsed() < LONGEST, "{:?}: {:.20}", begun.elapsed(), front);
    }
    click_label(&mut window, "Two");
    until(&mut window, "the other note is shown", |window| text(window).as_deref() == Some("Another note.\n"));
}

#[test]
fn a_note_with_front_matter_beyond_the_limits_says_why() {
    let bench = Bench::new(&[("One.md", &format!("---\n{}x\n---\nWords.\n", "? ".repeat(28)))]);
    let mut window = bench.opened();
    let said = |window: &mut Driven| window.query_all_by_label_contains("Can't read these properties").count();
    until(&mut window, "the reason is shown", |window| said(window) > 0);
    assert!(window.query_by_label("Words.").is_some(), "its text is read as ever");
}

#[test]
fn the_keys_of_the_shortest_hostile_front_matter_are_typed_one_by_one() {
    let bench = Bench::new(&[("One.md", "---\na: b\n---\nWords.\n")]);
    let mut window = bench.opened();
    let begun = Instant::now();
    click_label(&mut window, "Words.");
    press(&mut window, CTRL, Key::Home);
    press(&mut window, NONE, Key::ArrowDown);
    for letter in "? ".repeat(40).chars() {
        window.event(egui::Event::Text(letter.to_string()));
        window.run();
    }
    assert!(text(&window).is_some_and(|text| text.contains(&"? ".repeat(40))), "{:?}", text(&window));
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[test]
fn quotes_beyond_the_limits_are_shown_as_they_stand() {
    let whole = format!("Top.\n\n{}deep\n\n- [ ] Task\n", "> ".repeat(300));
    let bench = Bench::new(&[("One.md", &whole), ("Two.md", "Another note.\n")]);
    let begun = Instant::now();
    let mut window = bench.opened();
    let reason = "Shown as plain text: its quotes and lists nest more than 100 levels deep";
    until(&mut window, "the reason is shown", |window| window.query_all_by_label_contains(reason).next().is_some());
    window.query_all_by_label_contains(reason).next().expect("a row").click();
    window.run();
    press(&mut window, CTRL, Key::Home);
    type_text(&mut window, "Typed. ");
    assert_eq!(text(&window), Some(format!("Typed. {whole}")));
    until(&mut window, "it is in the file", |_| bench.file("One.md") == format!("Typed. {whole}"));
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[test]
fn cells_and_formulas_beyond_the_limits_are_shown_and_edited() {
    let cell = |part: &str| format!("```python\n{}1\n```\n\n", part.repeat(30_000 / part.len()));
    let cells: String = ["-", "(", "[", "f'{", "lambda:"].into_iter().map(cell).collect();
    let formulas = format!("${}$\n\n$${{{}$$\n", "\\frac".repeat(1_500), "{".repeat(9_000));
    let whole = format!("Top.\n\n{cells}{formulas}");
    let bench = Bench::new(&[("One.md", &whole), ("Two.md", "Another note.\n")]);
    let begun = Instant::now();
    let mut window = bench.opened();
    click_label(&mut window, "Top.");
    press(&mut window, NONE, Key::End);
    type_text(&mut window, " Typed.");
    until(&mut window, "it is in the file", |_| bench.file("One.md") == whole.replacen("Top.", "Top. Typed.", 1));
    press(&mut window, CTRL, Key::End);
    type_text(&mut window, "x");
    assert!(begun.elapsed() < 3 * LONGEST, "{:?}", begun.elapsed());
}
