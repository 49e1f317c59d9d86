//! Find and replace in a note.

use super::*;

const RAIN: &str = "# Rain\n\nRain, rain and **rain**.\n\n- drops of rain\n- raining\n";

fn open(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::Label, "Rain, rain and rain.").click();
    window.run();
    press(&mut window, CTRL, Key::Home);
    window
}

fn selected(window: &Driven) -> (usize, usize) {
    *window.state().carets().first().expect("a caret")
}

#[test]
fn words_are_found_one_after_the_other() {
    let bench = Bench::new(&[("A.md", RAIN)]);
    let mut window = open(&bench);
    press(&mut window, CTRL, Key::F);
    type_text(&mut window, "rain");
    window.get_by_label("1 of 6");
    assert_eq!(selected(&window), (6, 2));
    press(&mut window, NONE, Key::Enter);
    window.get_by_label("2 of 6");
    press(&mut window, Modifiers::SHIFT, Key::F3);
    press(&mut window, Modifiers::SHIFT, Key::Enter);
    window.get_by_label("6 of 6");
    press(&mut window, NONE, Key::F3);
    window.get_by_label("1 of 6");
    click_label(&mut window, "Match case");
    window.get_by_label("1 of 4");
    click_label(&mut window, "Whole words");
    window.get_by_label("1 of 3");
    click_label(&mut window, "Regular expression");
    click_label(&mut window, "Find in note");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "(rain");
    window.get_by_label_contains("Invalid pattern");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "d.*s");
    window.get_by_label("1 of 1");
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Find in note").is_none());
    type_text(&mut window, "mist");
    assert!(text(&window).expect("the note is shown").contains("- mist of rain\n"), "{:?}", text(&window));
}

#[test]
fn what_is_found_is_replaced_and_undone_at_once() {
    let bench = Bench::new(&[("A.md", RAIN)]);
    let mut window = open(&bench);
    press(&mut window, CTRL, Key::H);
    type_text(&mut window, "rain");
    click_label(&mut window, "Replace with");
    type_text(&mut window, "snow");
    press(&mut window, NONE, Key::Enter);
    assert_eq!(text(&window).as_deref(), Some(RAIN.replacen("Rain", "snow", 1).as_str()));
    window.get_by_label("1 of 5");
    click_label(&mut window, "Replace all");
    let all = "# snow\n\nsnow, snow and **snow**.\n\n- drops of snow\n- snowing\n";
    assert_eq!(text(&window).as_deref(), Some(all));
    window.get_by_label("Dismiss: Replaced 5 matches.");
    window.get_by_label("No matches");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(RAIN.replacen("Rain", "snow", 1).as_str()), "one step");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some(RAIN));
}

#[test]
fn what_is_selected_is_what_is_looked_for() {
    let bench = Bench::new(&[("A.md", RAIN)]);
    let mut window = open(&bench);
    window.state_mut().place_carets(&[(55, 50)]);
    window.run();
    let words = text(&window).expect("the note is shown")[50..55].to_owned();
    press(&mut window, CTRL, Key::F);
    let field = window.get_by_role_and_label(Role::TextInput, "Find in note");
    assert_eq!(field.value(), Some(words));
}

/// Saves screenshots for people to look at, as in `window::pictures`.
#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench = Bench::new(&[("Rain.md", NOTE)]);
    let mut window = bench.opened();
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        window.state_mut().place_carets(&[(0, 0)]);
        window.run();
        press(&mut window, CTRL, Key::H);
        press(&mut window, CTRL, Key::A);
        type_text(&mut window, "the");
        let picture = |window: &mut Driven, name: &str| {
            window.run_steps(3);
            let image = window.render().expect("a picture");
            image.save(folder.join(format!("{theme}-{name}")).with_extension("png")).expect("a file");
        };
        picture(&mut window, "find");
        press(&mut window, NONE, Key::Escape);
        window.state_mut().place_carets(&[(700, 60)]);
        picture(&mut window, "selection");
        window.state_mut().place_carets(&[(0, 0)]);
        window.run();
        window.get_by_label("Fold What to do").click();
        window.run();
        picture(&mut window, "fold");
        window.get_by_label("Unfold What to do").click();
        window.run();
        window.state_mut().place_carets(&[(60, 60), (140, 140), (210, 200)]);
        picture(&mut window, "carets");
        let end = text(&window).expect("a note is shown").find("## What").expect("a heading");
        window.state_mut().place_carets(&[(end - 2, end - 2)]);
        press(&mut window, NONE, Key::Enter);
        type_text(&mut window, "/");
        picture(&mut window, "slash");
        press(&mut window, NONE, Key::Escape);
        press(&mut window, NONE, Key::Backspace);
    }
}
