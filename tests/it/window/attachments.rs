//! Attachments in tabs: previews, and the actions for files that aren't notes.

use super::*;
use std::sync::{Arc, Mutex};

fn bench() -> Bench {
    let bench = Bench::new(&[("One.md", "[data](data.csv)\n"), ("data.csv", "day,rain\nMon,3\n")]);
    image::RgbaImage::new(2, 1).save(bench.notes().join("dot.png")).expect("a picture");
    bench
}

fn choose_file(window: &mut Driven, name: &str) {
    window.get_by_role_and_label(Role::TreeItem, name).click();
    window.run();
}

#[test]
fn pictures_and_text_are_previewed() {
    let bench = bench();
    let mut window = bench.opened();
    choose_file(&mut window, "dot.png");
    assert_eq!(path(&window), "dot.png");
    until(&mut window, "the picture is shown", |window| window.query_by_label("Preview of the picture").is_some());
    // A link leads there, too.
    choose_file(&mut window, "One");
    until(&mut window, "the note is shown", |window| text(window).is_some());
    super::links::click_link(&mut window, "data");
    until(&mut window, "the table", |window| window.query_by_label("Table of data.csv, 1 row").is_some());
    assert_eq!(path(&window), "data.csv");
    window.get_by_label("Sort by rain");
    window.get_by_label("Show as text").click();
    until(&mut window, "the text is shown", |window| window.query_by_label("day,rain").is_some());
    window.get_by_label("Mon,3");
    // Both reload when another program writes the file.
    std::fs::write(bench.notes().join("data.csv"), "day,rain\nTue,4\nWed,5\n").expect("written");
    until(&mut window, "the new text is shown", |window| window.query_by_label("Tue,4").is_some());
    window.get_by_label("Show as table").click();
    until(&mut window, "the new table", |window| window.query_by_label("Table of data.csv, 2 rows").is_some());
    // Switches to another file.
    choose_file(&mut window, "One");
    until(&mut window, "the note is shown", |window| text(window).is_some());
}

#[test]
fn a_small_file_is_no_table_of_very_many_cells() {
    // Each empty line would become a row of a thousand cells.
    let wide = format!("{}\n{}", ",".repeat(999), "\n".repeat(300_000));
    let bench = Bench::new(&[("One.md", "One.\n"), ("wide.csv", &wide)]);
    let mut window = bench.opened();
    choose_file(&mut window, "wide.csv");
    until(&mut window, "it's said why", |window| {
        window.query_by_label_contains("ost cells of the table are missing").is_some()
    });
}

#[test]
fn other_programs_open_files_on_a_click_only() {
    let bench = bench();
    std::fs::write(bench.notes().join("song.mp3"), "x").expect("a file");
    std::fs::write(bench.notes().join("start.desktop"), "[Desktop Entry]\n").expect("a file");
    let mut window = bench.opened();
    choose_file(&mut window, "song.mp3");
    click_label(&mut window, "Open in default app");
    window.get_by_label("Dismiss: There's no desktop here to open it with.");
    let opened: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let seen = opened.clone();
    window.state_mut().use_file_opener(Arc::new(move |path| {
        seen.lock().expect("not poisoned").push(path.to_owned());
        Ok(())
    }));
    window.get_by_label("Open in default app").click();
    let first = |opened: &Arc<Mutex<Vec<PathBuf>>>, count: usize| opened.lock().expect("not poisoned").len() == count;
    until(&mut window, "it is opened", |_| first(&opened, 1));
    window.get_by_label("Show in folder").click();
    until(&mut window, "its folder is shown", |_| first(&opened, 2));
    choose_file(&mut window, "start.desktop");
    window.get_by_label("Open in default app").click();
    until(&mut window, "it is refused", |window| window.query_by_label_contains("Dismiss: It's a program").is_some());
    let root = bench.notes().canonicalize().expect("a path");
    assert_eq!(*opened.lock().expect("not poisoned"), [root.join("song.mp3"), root.clone()]);
}

#[test]
fn a_notebook_of_the_volume_becomes_a_note() {
    let bench = bench();
    let cell = r##"{"cell_type": "markdown", "id": "b", "metadata": {}, "source": "# Sea"}"##;
    let notebook = format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cell}]}}"#);
    std::fs::write(bench.notes().join("Trip.ipynb"), notebook).expect("a file");
    let mut window = bench.opened();
    choose_file(&mut window, "Trip.ipynb");
    window.get_by_label("Open as note").click();
    until(&mut window, "its note is shown", |window| text(window).as_deref() == Some("# Sea\n"));
    assert_eq!(path(&window), "Trip.md");
    choose_file(&mut window, "Trip.ipynb");
    window.get_by_label("Open as note").click();
    until(&mut window, "the same note is shown", |window| path(window) == "Trip.md");
    choose_file(&mut window, "Trip.ipynb");
    window.get_by_label("Import a copy").click();
    until(&mut window, "a copy is shown", |window| path(window) == "Trip 2.md");
}

#[test]
fn a_note_in_another_encoding_is_read_and_converted() {
    let bench = bench();
    std::fs::write(bench.notes().join("Latin.md"), b"caf\xe9\n").expect("a file");
    let mut window = bench.opened();
    choose_file(&mut window, "Latin.md");
    window.get_by_label_contains("This can't be opened as a note: it is not UTF-8 text");
    window.get_by_label("Open read-only").click();
    until(&mut window, "its text is shown", |window| window.query_by_label("caf\u{fffd}").is_some());
    window.get_by_label("Convert to UTF-8").click();
    until(&mut window, "it is a note", |window| text(window).as_deref() == Some("café\n"));
    assert_eq!(path(&window), "Latin.md");
    assert_eq!(std::fs::read(bench.notes().join("Latin.md.original")).expect("the copy"), b"caf\xe9\n");
}

#[test]
fn the_switcher_finds_files_and_headings_and_opens_them_at_the_side() {
    let long = format!("{}\n## Far down\n\nHere.\n", "Words.\n\n".repeat(200));
    let bench = Bench::new(&[("One.md", "1\n"), ("Long.md", &long), ("song.mp3", "x")]);
    // This file is too large for a note.
    let file = std::fs::File::create(bench.notes().join("Big.md")).expect("a file");
    file.set_len(17 << 20).expect("made large");
    let mut window = bench.opened();
    until(&mut window, "all is known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "big");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is shown as it is", |window| path(window) == "Big.md");
    window.get_by_label_contains("This can't be opened as a note: it has more than 16 MiB");
    assert!(window.query_by_label("Convert to UTF-8").is_none());
    choose_file(&mut window, "One");
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("1\n"));
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "far down");
    press(&mut window, CTRL, Key::Enter);
    until(&mut window, "the heading is in sight", |window| window.query_by_label("Far down").is_some());
    assert_eq!(path(&window), "Long.md");
    window.get_by_label("1");
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "song");
    press(&mut window, NONE, Key::Enter);
    assert_eq!(path(&window), "song.mp3");
}
