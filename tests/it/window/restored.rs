//! What is there again at the next start: the window's place, and where notes were left. Notes dropped on the window.

use super::*;

#[test]
fn the_caret_and_the_scroll_position_are_there_again() {
    let long = format!("# Top\n\n{}The end is here.\n", "Words.\n\n".repeat(300));
    let bench = Bench::new(&[("A.md", long.as_str())]);
    let mut window = bench.opened();
    let at = long.find("The end").expect("the end");
    window.state_mut().place_caret(at);
    window.run();
    until(&mut window, "the top is out of sight", |window| window.query_by_label("Top").is_none());
    let viewport = window.input_mut().viewports.entry(egui::ViewportId::ROOT).or_default();
    viewport.events.push(egui::ViewportEvent::Close);
    window.run_steps(4);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    until(&mut window, "the note is shown", |window| text(window).is_some());
    until(&mut window, "the caret is there", |window| window.state().caret() == Some(at));
    until(&mut window, "the top is out of sight", |window| window.query_by_label("Top").is_none());
    type_text(&mut window, "So ");
    assert!(text(&window).is_some_and(|text| text.ends_with("So The end is here.\n")));
}

#[test]
fn the_place_of_the_window_is_kept() {
    let bench = Bench::new(&[("A.md", "1\n")]);
    let mut window = bench.opened();
    let place = egui::Rect::from_min_size(egui::pos2(120.0, 80.0), egui::vec2(1280.0, 800.0));
    let viewport = window.input_mut().viewports.entry(egui::ViewportId::ROOT).or_default();
    viewport.outer_rect = Some(place);
    until(&mut window, "it is saved", |window| session(window).settings().window_place.is_some());
    let pixels = window.ctx.pixels_per_point();
    assert_eq!(session(&window).settings().window_place, Some((120.0 * pixels, 80.0 * pixels)));
}

#[test]
fn a_dropped_note_is_opened_where_no_note_is() {
    let bench = Bench::new(&[("Dropped.md", "dropped words\n"), ("Other.md", "2\n")]);
    let mut window = bench.window();
    dropped::drop_on(&mut window, &[bench.notes().join("Dropped.md")]);
    until(&mut window, "it is shown", |window| text(window).as_deref() == Some("dropped words\n"));
    assert_eq!(session(&window).volumes().count(), 1);
    // Beside an open note it is stored, like any other file.
    let outside = bench.folder.path().join("Guest.md");
    std::fs::write(&outside, "guest\n").expect("a file");
    dropped::drop_on(&mut window, &[outside]);
    until(&mut window, "it is linked", |window| text(window).is_some_and(|text| text.contains("Guest.md")));
}
