//! Files dragged into the window.

use super::*;

/// A file as a file manager passes it.
#[derive(Debug)]
struct Held(PathBuf);

impl egui::DroppedFile for Held {
    fn path(&self) -> &std::path::Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.0).map_err(|error| error.to_string())
    }
}

pub(super) fn drop_on(window: &mut Driven, paths: &[PathBuf]) {
    for path in paths {
        window.input_mut().dropped_files.push(std::sync::Arc::new(Held(path.clone())));
    }
    window.run();
}

#[test]
fn dropped_files_lie_beside_the_note_and_are_linked_where_the_caret_is() {
    let bench = Bench::new(&[("A.md", "one\n\ntwo\n"), ("data.csv", "old")]);
    let outside = bench.folder.path().join("outside");
    std::fs::create_dir_all(&outside).expect("a folder");
    let place = |name: &str, bytes: &[u8]| {
        let path = outside.join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let files = [place("my picture.png", b"png"), place("data.csv", b"new")];
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    drop_on(&mut window, &files);
    until(&mut window, "they are linked", |window| text(window).is_some_and(|text| text.contains("csv")));
    assert_eq!(with_caret(&window), "one![](<my picture.png>)\n[data 2.csv](<data 2.csv>)|\n\ntwo\n");
    assert_eq!(bench.file("data.csv"), "old", "nothing is overwritten");
    assert_eq!((bench.file("data 2.csv"), bench.file("my picture.png")), ("new".to_owned(), "png".to_owned()));
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("one\n\ntwo\n"), "one undo");
    // The same bytes aren't copied twice.
    drop_on(&mut window, &files[1..]);
    until(&mut window, "it is linked", |window| text(window).is_some_and(|text| text.contains("[data 2.csv]")));
    assert!(!bench.notes().join("data 3.csv").exists());
    drop_on(&mut window, &[outside.join("gone.png")]);
    until(&mut window, "it is said", |window| window.query_all_by_label_contains("cannot be").count() > 0);
    drop_on(&mut window, &[outside]);
    until(&mut window, "the folder is a volume", |window| session(window).volumes().count() == 2);
}

#[test]
fn a_dropped_notebook_becomes_a_note() {
    let bench = Bench::new(&[("A.md", "one\n"), ("Trip.md", "there already\n")]);
    let outside = bench.folder.path().join("outside");
    std::fs::create_dir_all(&outside).expect("a folder");
    let output = r#"{"output_type": "stream", "name": "stdout", "text": ["41\n"]}"#;
    let cell = format!(
        r##"{{"cell_type": "code", "id": "a", "metadata": {{}}, "execution_count": 7, "source": "print(41)",
            "outputs": [{output}]}}, {{"cell_type": "markdown", "id": "b", "metadata": {{}}, "source": "# Sea"}}"##
    );
    let notebook = format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cell}]}}"#);
    std::fs::write(outside.join("Trip.ipynb"), notebook).expect("a file");
    std::fs::write(outside.join("Bad.ipynb"), "{").expect("a file");
    let mut window = bench.opened();
    drop_on(&mut window, &[outside.join("Trip.ipynb"), outside.join("Bad.ipynb")]);
    until(&mut window, "the note is shown", |window| path(window) == "Trip 2.md");
    until(&mut window, "its output is shown", |window| window.query_all_by_label("41").next().is_some());
    assert_eq!(text(&window).as_deref(), Some("```python\nprint(41)\n```\n\n# Sea\n"));
    until(&mut window, "it is said", |window| window.query_all_by_label_contains("Bad.ipynb").count() > 0);
    assert_eq!(bench.file("Trip.md"), "there already\n");
}

#[test]
fn a_pasted_picture_becomes_a_file_beside_the_note() {
    let bench = Bench::new(&[("A.md", "one\n")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(3);
    window.run();
    let picture = egui::ColorImage::new([2, 1], vec![egui::Color32::RED, egui::Color32::TRANSPARENT]);
    window.event(egui::Event::PasteImage(std::sync::Arc::new(picture)));
    window.run();
    until(&mut window, "it is linked", |window| text(window).is_some_and(|text| text.contains(".png")));
    let text = text(&window).expect("the note is shown");
    let name = text.strip_prefix("one![](").and_then(|rest| rest.strip_suffix(")\n")).expect("a link");
    assert!(name.starts_with("pasted-20"), "{name}");
    let bytes = std::fs::read(bench.notes().join(name)).expect("a file");
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!((bytes[19], bytes[23]), (2, 1), "its sides");
}

#[test]
fn a_pasted_picture_goes_to_the_folder_that_is_set() {
    let bench = Bench::new(&[("Top.md", "top\n"), ("Trips/A.md", "one\n")]);
    let mut window = bench.opened();
    let settings = session(&window).settings().clone();
    let settings = engine::Settings { attachment_folder: "/Files".to_owned(), ..settings };
    window.state_mut().send_command(engine::Command::Set { settings: Box::new(settings) });
    let note = session(&window).volumes().next().expect("a volume").files["Trips/A.md"].id;
    window.state_mut().show(note);
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("one\n"));
    window.state_mut().place_caret(3);
    window.run();
    let picture = egui::ColorImage::new([1, 1], vec![egui::Color32::RED]);
    window.event(egui::Event::PasteImage(std::sync::Arc::new(picture)));
    window.run();
    until(&mut window, "it is linked", |window| text(window).is_some_and(|text| text.contains(".png")));
    let text = text(&window).expect("the note is shown");
    let name = text.strip_prefix("one![](../Files/").and_then(|rest| rest.strip_suffix(")\n")).expect("a link");
    assert!(bench.notes().join("Files").join(name).is_file(), "{name}");
}
