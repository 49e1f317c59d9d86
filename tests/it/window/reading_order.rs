//! Bidirectional text: Hebrew and Arabic are drawn in reading order, and edited where they're seen.

use super::{Bench, Driven, NONE, press, text, type_text, with_caret};
use egui::accesskit::Role;
use egui::{Galley, Key, Pos2, Rect, vec2};
use egui_kittest::kittest::Queryable;
use std::sync::Arc;

const LINE: &str = "שלום עולם 123 (abc).";

fn note(line: &str) -> String {
    format!("First row.\n\n{line}\n\nLatin (words) 123.\n")
}

/// The position and layout of a drawn text.
fn drawn(window: &Driven, words: &str) -> (Pos2, Arc<Galley>) {
    let found = window.output().shapes.iter().find_map(|clipped| match &clipped.shape {
        egui::Shape::Text(shape) if shape.galley.text() == words => Some((shape.pos, shape.galley.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{words} isn't drawn"))
}

/// The rectangles of a text's characters, line by line.
fn letters(window: &Driven, words: &str) -> Vec<Vec<(char, Rect)>> {
    let (at, galley) = drawn(window, words);
    let rows = galley.rows.iter().map(|row| {
        let one = |glyph: &egui::epaint::text::Glyph| {
            let x = glyph.pos.x.min(glyph.max_x());
            let corner = at + row.pos.to_vec2() + vec2(x, 0.0);
            (glyph.chr, Rect::from_min_size(corner, vec2(glyph.advance_width.abs(), row.size.y)))
        };
        row.glyphs.iter().map(one).collect()
    });
    rows.collect()
}

fn click(window: &mut Driven, pos: Pos2) {
    let button = egui::PointerButton::Primary;
    let click = |pressed| egui::Event::PointerButton { pos, button, pressed, modifiers: NONE };
    let events = [egui::Event::PointerMoved(pos), click(true), click(false)];
    window.input_mut().events.extend(events);
    window.run_steps(2);
    window.run();
}

/// A line's characters by drawn position, from left to right.
fn seen(line: &[(char, Rect)]) -> String {
    let mut line: Vec<&(char, Rect)> = line.iter().collect();
    line.sort_by(|a, b| a.1.left().total_cmp(&b.1.left()));
    line.iter().map(|(letter, _)| letter).collect()
}

#[test]
fn words_stand_in_the_order_in_which_they_are_read() {
    let bench = Bench::new(&[("A.md", &note(LINE))]);
    let mut window = bench.opened();
    window.state_mut().place_caret(0);
    window.run();
    let line = letters(&window, LINE).remove(0);
    assert_eq!(line.iter().map(|(letter, _)| letter).collect::<String>(), LINE, "one glyph for each character");
    assert_eq!(seen(&line), ".)abc( 123 םלוע םולש");
    let (at, galley) = drawn(&window, LINE);
    let edge = at.x + galley.job.wrap.max_width;
    assert!((line[0].1.right() - edge).abs() <= 1.0, "it begins at the right edge: {} {edge}", line[0].1.right());
    let latin = letters(&window, "Latin (words) 123.").remove(0);
    assert_eq!(seen(&latin), "Latin (words) 123.");
    assert!((latin[0].1.left() - at.x).abs() <= 1.0, "a row of Latin letters stays at the left");
    // Letters are painted where their rectangles say.
    let row = &galley.rows[0];
    let (first, last) = (line[0].1, line[line.len() - 1].1);
    let painted = row.visuals.mesh_bounds.translate(at.to_vec2() + row.pos.to_vec2());
    assert!(painted.right() <= first.right() + 2.0 && painted.right() > first.left(), "{painted:?} {first:?}");
    assert!(painted.left() >= last.left() - 2.0 && painted.left() < last.right() + 1.0, "{painted:?} {last:?}");
}

#[test]
fn a_click_puts_the_caret_where_the_letter_is_seen() {
    let bench = Bench::new(&[("A.md", &note(LINE))]);
    let mut window = bench.opened();
    for (letter, right, shown) in [
        (0, true, "|שלום עולם 123 (abc)."),
        (0, false, "ש|לום עולם 123 (abc)."),
        (5, true, "שלום |עולם 123 (abc)."),
        (11, true, "שלום עולם 12|3 (abc)."),
        (19, false, "שלום עולם 123 (abc).|"),
    ] {
        for editing in [false, true] {
            if !editing {
                window.state_mut().place_caret(0);
                window.run();
            }
            let mut at = letters(&window, LINE)[0][letter].1;
            at = at.shrink2(vec2(at.width() / 8.0, 0.0));
            let point = if right { at.right_center() } else { at.left_center() };
            click(&mut window, point);
            assert_eq!(with_caret(&window), note(shown), "{letter} {right} {editing}");
        }
    }
    press(&mut window, NONE, Key::End);
    type_text(&mut window, " טוב");
    assert_eq!(text(&window), Some(note(&format!("{LINE} טוב"))));
    press(&mut window, NONE, Key::Home);
    press(&mut window, NONE, Key::Delete);
    assert_eq!(with_caret(&window), note("|לום עולם 123 (abc). טוב"));
}

#[test]
fn long_paragraphs_go_on_below_from_the_right() {
    let words: Vec<String> = (0..60).map(|number| format!("מילה{number}")).collect();
    let line = words.join(" ");
    let bench = Bench::new(&[("A.md", &note(&line))]);
    let mut window = bench.opened();
    window.state_mut().place_caret(0);
    window.run();
    let rows = letters(&window, &line);
    assert!(rows.len() > 2, "{}", rows.len());
    assert_eq!(rows.iter().flatten().map(|(letter, _)| letter).collect::<String>(), line);
    for row in &rows {
        assert!((row[0].1.right() - rows[0][0].1.right()).abs() <= 1.0, "{:?} {:?}", row[0], rows[0][0]);
        assert_eq!(row[0].0, 'מ', "lines are cut between words");
    }
    let second = rows[1][0].1;
    click(&mut window, second.right_center() - vec2(1.0, 0.0));
    let before: usize = rows[0].iter().map(|(letter, _)| letter.len_utf8()).sum();
    let start = "First row.\n\n".len();
    assert_eq!(window.state().caret(), Some(start + before));
    press(&mut window, NONE, Key::ArrowDown);
    let below: usize = rows[1].iter().map(|(letter, _)| letter.len_utf8()).sum();
    assert_eq!(window.state().caret(), Some(start + before + below), "a line down, at the same edge");
}

#[test]
fn markers_of_lists_are_to_the_right_of_words_read_from_the_right() {
    let note = "First row.\n\n- ראשון\n  - שני\n\n1. שלישי\n\n- [ ] רביעי\n\n* latin\n";
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    window.state_mut().place_caret(0);
    window.run();
    let span = |window: &Driven, words: &str| {
        letters(window, words).into_iter().flatten().map(|(_, rect)| rect).reduce(Rect::union).expect("letters")
    };
    for (marker, words) in [("•", "ראשון"), ("•", "שני"), (".1", "שלישי"), ("•", "latin")] {
        let words_at = span(&window, words);
        let at = window.output().shapes.iter().find_map(|clipped| match &clipped.shape {
            egui::Shape::Text(shape) if shape.galley.text() == marker => {
                Some(shape.visual_bounding_rect()).filter(|rect| (rect.center().y - words_at.center().y).abs() < 12.0)
            }
            _ => None,
        });
        let at = at.unwrap_or_else(|| panic!("{words}: no {marker}"));
        let gap = if words == "latin" { words_at.left() - at.right() } else { at.left() - words_at.right() };
        assert!((0.0..24.0).contains(&gap), "{words}: {at:?} {words_at:?}");
    }
    let task = window.get_by_role_and_label(Role::CheckBox, "רביעי").rect();
    assert!(task.center().x > span(&window, "רביעי").right(), "{task:?}");
    let first = span(&window, "ראשון");
    assert!(first.right() > span(&window, "שני").right() + 12.0, "an inner list is indented from the right");
    assert!(span(&window, "latin").left() < first.left(), "a Latin item stays at the left");
    // The words stay where they are when the row shows its source.
    window.state_mut().place_caret(note.find("ראשון").expect("an item"));
    window.run();
    let source = &letters(&window, "- ראשון")[0];
    assert!((source[2].1.right() - first.right()).abs() <= 1.5, "{:?} {first:?}", source[2]);
}

#[test]
fn bars_of_quotes_are_where_their_lines_begin() {
    let bench = Bench::new(&[("A.md", "First row.\n\n> ציטוט\n\nbetween\n\n> latin\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(0);
    window.run();
    for (words, is_from_right) in [("ציטוט", true), ("latin", false)] {
        let letters = letters(&window, words).into_iter().flatten().map(|(_, rect)| rect);
        let at = letters.reduce(Rect::union).expect("letters");
        let has_bar = window.output().shapes.iter().any(|clipped| match &clipped.shape {
            egui::Shape::Rect(shape) => {
                let bar = shape.rect;
                let gap = if is_from_right { bar.left() - at.right() } else { at.left() - bar.right() };
                bar.width() <= 4.0 && bar.y_range().contains(at.center().y) && (4.0..24.0).contains(&gap)
            }
            _ => false,
        });
        assert!(has_bar, "{words} at {at:?}");
    }
}
