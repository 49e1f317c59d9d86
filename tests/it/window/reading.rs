//! Notes in reading view: callouts, tags, pictures, embedded notes, links between notes, highlighted code.

use super::{
    Bench, CTRL, Driven, NONE, click_label, path, pictured, pictures_folder, press, session, text, type_text, until,
};
use egui::Key;
use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};

const PROPERTIES: &str = "---
title: Reading
drops: 42
done: true
when: 2026-11-22
tags: [weather, rain/fine]
by: \"[[Other note]]\"
---

";

const NOTE: &str = "# Reading

Rain falls on [[Other note|the other note]] and on ==what is lit== %%not this%% in #weather/rain. ^first

> [!warning] Mind *the* step
> It is **high**, and `code` stands here: $E = mc^2$.

> [!tip]- Folded
> The secret.

> [!bug]
> > [!quote]+ Inside
> > a quote

> An ordinary quote.

- [/] half done
- [-] given up
- [x] done

![[pictures/dot.png|120]]

![[Other note#Two]]

```rust
/// A doc.
fn main() {
    let words = \"text\"; // 42
    println!(\"{words}\", 0x2a);
}
```

A footnote[^1] and a bare link: https://example.org/a.

[^1]: Below.
";

const OTHER: &str = "# One\n\nfirst\n\n## Two\n\nsecond **part**\n\n- a\n- b\n\n# Three\n\nthird\n";

/// A generated picture with two colors.
fn dot() -> Vec<u8> {
    let mut image = image::RgbaImage::new(160, 90);
    for (x, y, pixel) in image.enumerate_pixels_mut() {
        let wave = (f64::from(x) / 14.0).sin() * 20.0 + 45.0;
        *pixel = if f64::from(y) < wave { image::Rgba([142, 164, 255, 255]) } else { image::Rgba([59, 91, 219, 255]) };
    }
    let mut bytes = Vec::new();
    image.write_to(&mut std::io::Cursor::new(&mut bytes), image::ImageFormat::Png).expect("a picture");
    bytes
}

fn reading(before: &str) -> (Bench, Driven) {
    let note = format!("{before}{NOTE}");
    let bench = Bench::new(&[("Reading.md", &note), ("sub/Other note.md", OTHER)]);
    std::fs::create_dir_all(bench.notes().join("pictures")).expect("a folder");
    std::fs::write(bench.notes().join("pictures/dot.png"), dot()).expect("a file");
    let mut window = bench.opened();
    if before.is_empty() {
        until(&mut window, "the embedded note is shown", |window| {
            window.query_by_label_contains("second part").is_some()
        });
    }
    (bench, window)
}

#[test]
fn what_markdown_does_not_know_is_read_all_the_same() {
    let (_bench, window) = reading("");
    window.get_by_label("Rain falls on the other note and on what is lit  in #weather/rain.");
    window.get_by_label_contains("Mind the step\nIt is high, and code stands here: E = mc².");
    assert!(window.query_by_label_contains("third").is_none(), "only the part that was named is embedded");
}

#[test]
fn a_callout_is_folded_and_unfolded_by_a_click() {
    let (_bench, mut window) = reading("");
    assert!(window.query_by_label_contains("The secret.").is_none());
    click_label(&mut window, "Unfold: Folded");
    window.get_by_label_contains("The secret.");
    click_label(&mut window, "Fold: Folded");
    assert!(window.query_by_label_contains("The secret.").is_none());
    click_label(&mut window, "Fold: Inside");
    assert!(window.query_by_label_contains("a quote").is_none());
}

#[test]
fn a_click_on_a_link_between_notes_goes_there() {
    let (_bench, mut window) = reading("");
    let place = window.get_by_label_contains("Rain falls on").rect();
    // After "Rain falls on ", left of the middle of the row.
    let column = window.get_by_label_contains("Mind the step").rect().center().x - 360.0;
    let at = egui::pos2(column + 130.0, place.top() + 14.0);
    window.hover_at(at);
    window.run();
    for pressed in [true, false] {
        let (button, modifiers) = (egui::PointerButton::Primary, NONE);
        window.event(egui::Event::PointerButton { pos: at, button, pressed, modifiers });
    }
    window.run();
    until(&mut window, "the other note is shown", |window| path(window) == "sub/Other note.md");
}

#[test]
fn properties_are_a_table_that_is_edited_in_place() {
    let text_of =
        |done: &str, rest: &str| format!("---\n# kept\ntitle: Rain # here\ndone: {done}\n{rest}---\n\nText.\n");
    let bench = Bench::new(&[("P.md", &text_of("false", "tags: [a, b]\n"))]);
    let mut window = bench.opened();
    window.get_by_label_contains("title: Rain");
    window.get_by_role_and_label(Role::CheckBox, "done").click();
    window.run();
    assert_eq!(text(&window), Some(text_of("true", "tags: [a, b]\n")));
    click_label(&mut window, "Remove the property tags");
    assert_eq!(text(&window), Some(text_of("true", "")));
    click_label(&mut window, "Add a property");
    assert_eq!(super::with_caret(&window), text_of("true", "name|: \n"));
    let bench = Bench::new(&[("Bad.md", "---\na: [b\n---\n\nText.\n")]);
    let window = bench.opened();
    window.get_by_label_contains("Can't read these properties");
}

/// The texts that are drawn struck through.
fn struck(window: &Driven) -> Vec<String> {
    let mut found = Vec::new();
    for clipped in &window.output().shapes {
        let egui::Shape::Text(text) = &clipped.shape else { continue };
        let job = &text.galley.job;
        let lines = job.sections.iter().filter(|section| section.format.strikethrough.width > 0.0);
        found.extend(lines.map(|section| job.text[section.byte_range.start.0..section.byte_range.end.0].to_owned()));
    }
    found
}

#[test]
fn an_embedded_list_shows_the_states_of_its_tasks() {
    let garden =
        "# Garden\n\n## Tasks\n\n- [x] Water\n- [-] Buy gravel\n  - [ ] Measure\n- [ ] Plan compost\n- [/] Prune\n";
    let bench = Bench::new(&[("A.md", "![[Garden#Tasks]]\n"), ("Garden.md", garden)]);
    let mut window = bench.opened();
    let boxed = |window: &Driven, name: &str| {
        let found = window.query_by_role_and_label(Role::CheckBox, name);
        found.map(|node| (node.rect().width() > 8.0, node.accesskit_node().is_disabled()))
    };
    until(&mut window, "the list is embedded", |window| boxed(window, "Water").is_some());
    for name in ["Water", "Buy gravel (cancelled)", "Measure", "Plan compost", "Prune (half done)"] {
        assert_eq!(boxed(&window, name), Some((true, true)), "{name}");
    }
    assert_eq!(struck(&window), ["Buy gravel"]);
}

#[test]
fn small_elements_of_html_and_raised_and_lowered_words_are_drawn() {
    let note = "Press <kbd>Ctrl</kbd>, <mark>mark</mark> <u>under</u> <small>small</small> \
                <span style=\"color: red\">red</span> <mark class=\"x\">lit</mark> <big>big</big>\n\n\
                H~2~O is x^2^ and y<sup>3</sup>, a<sub>i</sub>, ~~gone~~<br>next\n\n\
                | a |\n|---|\n| b<br>c |\n";
    let bench = Bench::new(&[("A.md", note)]);
    let window = bench.opened();
    window.get_by_label("Press Ctrl, mark under small red lit <big>big</big>");
    window.get_by_label("H2O is x2 and y3, ai, gone\nnext");
    assert!(window.query_by_label_contains("b\nc").is_some(), "a break in a table");
    assert_eq!(struck(&window), ["gone"]);
}

#[test]
fn details_are_folded_below_their_summary() {
    let note = "First.\n\n<details>\n<summary>More <b>of</b> it</summary>\n\nThe *secret*.\n\n- one\n\n</details>\n\n\
                <details open>\n<summary>Open</summary>\n\nSeen.\n\n</details>\n\n\
                <details><summary>Whole</summary>inside</details>\n\nLast.\n";
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    let is_shown = |window: &Driven, what: &str| window.query_by_label_contains(what).is_some();
    assert!(!is_shown(&window, "The secret.") && is_shown(&window, "Seen.") && is_shown(&window, "Last."));
    click_label(&mut window, "Unfold: More of it");
    assert!(is_shown(&window, "The secret."));
    click_label(&mut window, "Fold: More of it");
    assert!(!is_shown(&window, "The secret."));
    click_label(&mut window, "Fold: Open");
    assert!(!is_shown(&window, "Seen.") && is_shown(&window, "Last."));
    assert!(!is_shown(&window, "inside"));
    click_label(&mut window, "Unfold: Whole");
    assert!(is_shown(&window, "inside"));
    // A caret that goes into folded text unfolds it. It leaves the text when that is folded again.
    window.state_mut().place_caret(note.find("one").expect("an item"));
    window.run();
    assert!(is_shown(&window, "The secret."));
    click_label(&mut window, "Fold: More of it");
    assert!(!is_shown(&window, "The secret."));
    assert_eq!(text(&window).as_deref(), Some(note), "folding edits nothing");
}

#[test]
fn details_are_folded_in_lists_quotes_and_embedded_notes() {
    let note = "First.\n\n- An item\n  <details><summary>In a list</summary>\n  its text\n  </details>\n- Another\n\n  \
                <details>\n  <summary>Deeper</summary>\n\n  The *secret*.\n\n  </details>\n\n  Behind it.\n\n\
                > <details open><summary>Quoted</summary>\n> the quote\n> </details>\n\n![[Other]]\n";
    let other = "# Other\n\n<details>\n<summary>Embedded</summary>\n\nPart *of* it.\n\n- one\n\n</details>\n\nBelow.\n";
    let bench = Bench::new(&[("A.md", note), ("Other.md", other)]);
    let mut window = bench.opened();
    let is_shown = |window: &Driven, what: &str| window.query_by_label_contains(what).is_some();
    until(&mut window, "the embedded note shows", |window| is_shown(window, "Below."));
    for (summary, folded) in [("In a list", "its text"), ("Deeper", "The secret."), ("Embedded", "Part of it.")] {
        assert!(!is_shown(&window, folded), "{summary}");
        click_label(&mut window, &format!("Unfold: {summary}"));
        assert!(is_shown(&window, folded), "{summary}");
        click_label(&mut window, &format!("Fold: {summary}"));
        assert!(!is_shown(&window, folded), "{summary}");
    }
    assert!(is_shown(&window, "Behind it.") && is_shown(&window, "Below.") && is_shown(&window, "the quote"));
    click_label(&mut window, "Fold: Quoted");
    assert!(!is_shown(&window, "the quote"));
    assert_eq!(text(&window).as_deref(), Some(note), "folding edits nothing");
}

#[test]
fn a_note_opens_with_the_caret_behind_its_properties() {
    let note = "---\nstatus: open\n---\n\nText.\n";
    let bench = Bench::new(&[("A.md", "first\n"), ("Props.md", note), ("Only.md", "---\nstatus: none\n---\n")]);
    let mut window = bench.opened();
    for (name, shown) in [("Props", "status: open"), ("Only", "status: none")] {
        press(&mut window, CTRL, Key::P);
        type_text(&mut window, name);
        press(&mut window, NONE, Key::Enter);
        until(&mut window, "the table shows", |window| window.query_by_label_contains(shown).is_some());
        window.run();
        assert_eq!(window.state().caret(), if name == "Props" { note.find("Text.") } else { Some(21) });
        assert!(window.query_by_label("Edit source of properties").is_some(), "{name}: not as YAML");
    }
    type_text(&mut window, "below");
    assert_eq!(text(&window).as_deref(), Some("---\nstatus: none\n---\n\nbelow"));
    click_label(&mut window, "Edit source of properties");
    assert_eq!(super::with_caret(&window), "---\n|status: none\n---\n\nbelow");
    assert!(window.query_by_label("Edit source of properties").is_none(), "as YAML");
}

#[test]
fn long_code_is_code_to_its_end_and_is_edited_as_one() {
    // More than one block, and many rows.
    let lines: String = (0..900).map(|line| format!("let value{line} = {line};\n")).collect();
    let bench = Bench::new(&[("Long.md", &format!("# Long\n\n```js\n{lines}```\n\nBehind.\n"))]);
    let mut window = bench.opened();
    let at = |window: &Driven, what: &str| text(window).and_then(|text| text.find(what)).expect("it is there");
    let go = |window: &mut Driven, at: usize| {
        window.state_mut().place_caret(at);
        window.run();
    };
    // At the start of each line in a stretch longer than any part: Backspace over the line end, then Enter again.
    let before = text(&window);
    for line in 700..755 {
        let start = at(&window, &format!("let value{line} "));
        go(&mut window, start);
        press(&mut window, NONE, Key::Backspace);
        assert_eq!(super::with_caret(&window).find('|'), Some(start - 1), "line {line}");
        press(&mut window, NONE, Key::Enter);
        assert_eq!(text(&window), before, "line {line}");
    }
    // Delete does the same from the other side, here across the boundary between blocks.
    let blocks = session(&window).notes().flat_map(|note| note.blocks().take(2));
    let border: usize = blocks.map(|block| block.text.len()).sum();
    go(&mut window, border - 1);
    press(&mut window, NONE, Key::Delete);
    assert_eq!(text(&window).map(|text| text.len() + 1), before.as_ref().map(String::len));
    press(&mut window, NONE, Key::Enter);
    assert_eq!(text(&window), before);
    // The Up and Down keys move through it line by line.
    let (from, to) = (at(&window, "let value760 "), at(&window, "let value800 "));
    go(&mut window, from);
    (0..40).for_each(|_| press(&mut window, NONE, Key::ArrowDown));
    assert_eq!(super::with_caret(&window).find('|'), Some(to));
    // It's code to its end, including its second block.
    let label = |window: &Driven, what: &str| window.query_by_label_contains(what).is_some();
    let end = at(&window, "Behind");
    go(&mut window, end);
    assert!(label(&window, "let value898 = 898;\nlet value899 = 899;"));
    let end = at(&window, "let value899") + "let value899 = 899;".len();
    go(&mut window, end);
    press(&mut window, NONE, Key::Delete);
    super::type_text(&mut window, "`");
    assert!(text(&window).is_some_and(|text| text.contains("\n`````\n") || text.contains("\n````\n")));
}

#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let (_bench, mut window) = reading(PROPERTIES);
    for theme in ["light", "dark"] {
        press(&mut window, super::CTRL_SHIFT, Key::L);
        window.run_steps(20);
        std::thread::sleep(std::time::Duration::from_millis(800));
        for part in 0..2 {
            window.run_steps(5);
            let image = window.render().expect("a picture");
            image.save(folder.join(format!("{theme}-reading-{part}.png"))).expect("a file");
            window.hover_at(egui::pos2(640.0, 400.0));
            window.event(egui::Event::MouseWheel {
                unit: egui::MouseWheelUnit::Point,
                delta: egui::vec2(0.0, if part == 0 { -640.0 } else { 9_000.0 }),
                phase: egui::TouchPhase::Move,
                source: egui::MouseWheelSource::Wheel,
                modifiers: NONE,
            });
        }
    }
    assert!(text(&window).is_some());
}

/// The texts that are painted, each as it's laid out.
fn painted_texts(window: &Driven) -> Vec<String> {
    fn collect(shape: &egui::Shape, texts: &mut Vec<String>) {
        match shape {
            egui::Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, texts)),
            egui::Shape::Text(text) => texts.push(text.galley.job.text.clone()),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    window.output().shapes.iter().for_each(|clipped| collect(&clipped.shape, &mut texts));
    texts
}

#[test]
fn fields_of_tasks_are_icons_and_chips() {
    let bench = Bench::new(&[("A.md", "- [ ] sow 📅 2026-11-20 🔁 every week\n- [ ] ✅ reap\n- sown 📅 2026-11-20\n")]);
    let mut window = bench.opened();
    pictured(&mut window, "task-fields");
    let texts = painted_texts(&window);
    let field = format!("sow {} 2026-11-20 {} every week", ui::icons::CALENDAR, ui::icons::SYNC);
    for shown in [field.as_str(), "✅ reap", "sown 📅 2026-11-20"] {
        assert!(texts.iter().any(|text| text == shown), "{shown}: {texts:?}");
    }
    // Screen readers get the text as it's written.
    window.get_by_role_and_label(Role::CheckBox, "sow 📅 2026-11-20 🔁 every week");
}
