//! Misspelled words, with the system's English dictionary.

use super::*;

/// The number of wavy underlines that are drawn.
fn waves(window: &Driven) -> usize {
    let is_wave = |shape: &egui::epaint::ClippedShape| match &shape.shape {
        egui::Shape::Path(path) => !path.closed && path.points.len() > 4,
        _ => false,
    };
    window.output().shapes.iter().filter(|shape| is_wave(shape)).count()
}

#[test]
fn misspelt_words_are_marked_corrected_and_learnt() {
    let dictionary =
        ["en_US", "en_GB"].iter().any(|name| PathBuf::from(format!("/usr/share/hunspell/{name}.dic")).exists());
    if !dictionary {
        assert!(std::env::var_os("TRACEBOOK_CI").is_none(), "there is no dictionary: install hunspell-en-us");
        println!("left out: there is no English dictionary (hunspell-en-us) to check with");
        return;
    }
    let note = "A huose by the sea, and Tracebok of Tracebook.\n\n`huose` and https://huose.example/huose stay.\n";
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    until(&mut window, "the words are marked", |window| waves(window) == 2);
    window.state_mut().place_caret(4);
    window.run();
    assert_eq!(waves(&window), 1, "the word that is being written is let be");
    press(&mut window, NONE, Key::F7);
    until(&mut window, "a word is suggested", |window| window.query_by_label("house").is_some());
    click_label(&mut window, "house");
    assert_eq!(with_caret(&window), note.replacen("huose", "house|", 1));
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(note), "one undo");
    press(&mut window, CTRL, Key::Y);
    window.state_mut().place_caret(note.find("bok").expect("there"));
    window.run();
    press(&mut window, NONE, Key::F7);
    until(&mut window, "it can be kept", |window| window.query_by_label("Keep “Tracebok”").is_some());
    window.get_by_label("Keep “Tracebok”").click();
    until(&mut window, "no mark is left", |window| waves(window) == 0);
    assert!(session(&window).settings().spelling_dictionary.contains(&"Tracebok".to_owned()));
}

#[test]
fn spelling_can_be_turned_off() {
    let bench = Bench::new(&[("A.md", "A huose.\n")]);
    let mut window = bench.opened();
    press(&mut window, CTRL_SHIFT, Key::P);
    type_text(&mut window, "check spelling");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is kept", |window| !session(window).settings().spelling);
    assert_eq!(waves(&window), 0);
    window.state_mut().place_caret(4);
    press(&mut window, NONE, Key::F7);
    assert!(window.query_all_by_label_contains("Spell check is off").count() > 0);
}
