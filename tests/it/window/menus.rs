//! Context menus, the menu of a cell, and that of the kernel.

use super::*;
use egui_kittest::kittest::NodeT;
use keystrokes::copied;

/// Right-clicks the label with this name.
fn open_menu(window: &mut Driven, label: &str) {
    window.get_by_role_and_label(Role::Label, label).click_secondary();
    window.run();
}

/// Right-clicks at a position.
pub(super) fn open_menu_at(window: &mut Driven, pos: egui::Pos2) {
    window.hover_at(pos);
    window.run();
    for pressed in [true, false] {
        let (button, modifiers) = (egui::PointerButton::Secondary, NONE);
        window.event(egui::Event::PointerButton { pos, button, pressed, modifiers });
        // A single frame, since a button held for long isn't a click.
        window.step();
    }
    window.run();
}

fn has_item(window: &Driven, name: &str) -> bool {
    window.query_by_role_and_label(Role::MenuItem, name).is_some()
}

/// Chooses a menu item. Returns the text that was copied, if any.
pub(super) fn choose(window: &mut Driven, name: &str) -> Option<String> {
    window.get_by_role_and_label(Role::MenuItem, name).click();
    let mut found = None;
    for _ in 0..4 {
        window.step();
        found = found.or(copied(window));
    }
    window.run();
    found
}

#[test]
fn text_is_cut_copied_and_pasted_by_the_menu() {
    let bench = Bench::new(&[("A.md", "first line\n\nsecond line\n")]);
    let mut window = bench.opened();
    // Without a selection there is nothing to copy; a paste goes to the clicked position.
    open_menu(&mut window, "second line");
    let item =
        |window: &Driven, name: &str| window.get_by_role_and_label(Role::MenuItem, name).accesskit_node().is_disabled();
    assert!(item(&window, "Cut") && item(&window, "Copy") && !item(&window, "Paste"));
    choose(&mut window, "Paste");
    assert!(!has_item(&window, "Paste"), "the menu is closed");
    window.event(egui::Event::Paste("PASTED".to_owned()));
    window.run();
    let pasted = text(&window).expect("a note");
    assert!(pasted.starts_with("first line\n\n") && pasted.contains("PASTED"), "{pasted:?}");
    press(&mut window, CTRL, Key::Z);
    // The selection stays while the menu is open.
    window.state_mut().place_carets(&[(5, 0)]);
    window.run();
    open_menu(&mut window, "second line");
    assert_eq!(choose(&mut window, "Copy").as_deref(), Some("first"));
    assert_eq!(window.state().carets(), [(5, 0)]);
    open_menu(&mut window, "second line");
    assert_eq!(choose(&mut window, "Cut").as_deref(), Some("first"));
    assert_eq!(text(&window).as_deref(), Some(" line\n\nsecond line\n"));
    open_menu(&mut window, "second line");
    choose(&mut window, "Select all");
    assert_eq!(window.state().carets(), [(" line\n\nsecond line\n".len(), 0)]);
    open_menu(&mut window, "line");
    press(&mut window, NONE, Key::Escape);
    assert!(!has_item(&window, "Paste"));
    type_text(&mut window, "x");
    assert_eq!(text(&window).as_deref(), Some("x"), "the note has the keyboard again");
}

#[test]
fn a_link_and_a_picture_have_menus_of_their_own() {
    let dot = "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='200'><rect width='200' height='200'/></svg>";
    let note = "[[Other|there]]\n\n![spot](dot.svg)\n";
    let bench = Bench::new(&[("A.md", note), ("Other.md", "other\n"), ("dot.svg", dot)]);
    let mut window = bench.opened();
    until(&mut window, "the picture is drawn", |window| {
        let spot = window.query_by_role_and_label(Role::Label, "spot");
        spot.is_some_and(|spot| spot.rect().height() > 150.0)
    });
    let link = links::link_in(&mut window, "there");
    // The row extends into the margins; its picture starts where the text does.
    let spot = egui::pos2(link.x, window.get_by_role_and_label(Role::Label, "spot").rect().bottom() - 12.0);
    open_menu_at(&mut window, spot);
    assert!(has_item(&window, "Save as…") && !has_item(&window, "Paste"));
    choose(&mut window, "Copy image");
    until(&mut window, "it is copied", |window| window.query_by_label("Copied the image.").is_some());
    open_menu_at(&mut window, spot);
    choose(&mut window, "Save as…");
    let proposed = window
        .root()
        .children_recursive()
        .any(|node| node.accesskit_node().value().is_some_and(|value| value.ends_with("dot.svg")));
    assert!(proposed, "its name is proposed");
    click_label(&mut window, "Cancel");
    assert!(window.query_by_label("Cancel").is_none(), "the dialog is closed");
    open_menu_at(&mut window, link);
    assert!(has_item(&window, "Open link") && !has_item(&window, "Paste"));
    assert_eq!(choose(&mut window, "Copy link").as_deref(), Some("Other"));
    open_menu_at(&mut window, link);
    choose(&mut window, "Open in new tab");
    until(&mut window, "the note is shown", |window| path(window) == "Other.md");
    assert_eq!(window.query_all_by_role(Role::Tab).count(), 2);
}

#[test]
fn a_link_to_another_program_opens_by_its_menu_alone() {
    let program = "file:///usr/share/applications/evil.desktop";
    let note = format!("[the invoice]({program})\n\n[the site](https://example.com/)\n");
    let bench = Bench::new(&[("A.md", &note)]);
    let mut window = bench.opened();
    until(&mut window, "the note is shown", |window| window.query_by_label("the site").is_some());
    // The address that is opened by what was done last.
    let opened = |window: &mut Driven| {
        let mut found = None;
        for _ in 0..6 {
            window.step();
            let mut commands = window.output().platform_output.commands.iter();
            found = found.or(commands.find_map(|command| match command {
                egui::OutputCommand::OpenUrl(link) => Some(link.url.clone()),
                _ => None,
            }));
        }
        found
    };
    let click = |window: &mut Driven, at: egui::Pos2| {
        window.drag_at(at);
        window.step();
        // The last event of its step, whose output is the one that is kept.
        let (button, modifiers) = (egui::PointerButton::Primary, NONE);
        window.event(egui::Event::PointerButton { pos: at, button, pressed: false, modifiers });
        opened(window)
    };
    let link = links::link_in(&mut window, "the invoice");
    assert_eq!(click(&mut window, link), None);
    let why = format!("{program} starts another program.");
    until(&mut window, "it's said why", |window| window.query_all_by_label_contains(&why).count() > 0);
    open_menu_at(&mut window, link);
    assert!(!has_item(&window, "Open link") && !has_item(&window, "Open in new tab"));
    assert!(window.query_all_by_label(program).next().is_some(), "the menu says what would be opened");
    window.get_by_role_and_label(Role::MenuItem, "Open in another program").click();
    assert_eq!(opened(&mut window).as_deref(), Some(program));
    until(&mut window, "the menu has closed", |window| window.query_by_role(Role::MenuItem).is_none());
    let site = links::link_in(&mut window, "the site");
    assert_eq!(click(&mut window, site).as_deref(), Some("https://example.com/"));
}

#[test]
fn rows_and_columns_of_a_table_come_and_go_by_the_menu() {
    let bench = Bench::new(&[("A.md", "| a | b |\n|---|---|\n| 1 | 2 |\n")]);
    let mut window = bench.opened();
    window.get_by_label_contains("1").click_secondary();
    window.run();
    choose(&mut window, "Insert column right");
    let now = text(&window).expect("a note");
    assert_eq!(now.lines().next().map(|line| line.matches('|').count()), Some(4), "{now}");
    press(&mut window, CTRL, Key::Z);
    press(&mut window, NONE, Key::Escape);
    window.get_by_label_contains("1").click_secondary();
    window.run();
    choose(&mut window, "Insert row below");
    assert_eq!(text(&window).map(|text| text.lines().count()), Some(4));
}

#[test]
fn a_cell_is_run_copied_moved_and_deleted_by_its_menu() {
    let note = "```python\n6 * 7\n```\n\ntext\n\n```python\n2\n```\n";
    let bench = Bench::new(&[("A.md", note)]);
    let mut window = bench.opened();
    window.get_by_label_contains("6 * 7").click_secondary();
    window.run();
    choose(&mut window, "Run cell");
    until(&mut window, "it has run", |window| window.query_by_label("42").is_some());
    open_menu(&mut window, "42");
    assert!(has_item(&window, "Save output…") && !has_item(&window, "Delete cell"));
    assert_eq!(choose(&mut window, "Copy output").as_deref(), Some("42"));
    let cells = |window: &Driven| text(window).map_or(0, |text| text.matches("```python").count());
    click_label(&mut window, "Menu of cell 2");
    choose(&mut window, "Move up");
    assert!(text(&window).is_some_and(|text| text.find("2\n```") < text.find("text")), "{:?}", text(&window));
    click_label(&mut window, "Insert a cell below cell 1");
    assert_eq!(cells(&window), 3);
    click_label(&mut window, "Menu of cell 2");
    choose(&mut window, "Delete cell");
    assert_eq!(cells(&window), 2);
}

#[test]
fn the_kernel_has_a_menu_in_the_header() {
    let bench = Bench::new(&[("A.md", "```python\nx = 1\n```\n\n```python\nx + 1\n```\n")]);
    let mut window = bench.opened();
    click_label(&mut window, "Kernel: Python off");
    let hint = "The kernel starts when a cell runs.";
    assert!(window.query_by_label(hint).is_some());
    choose(&mut window, "Run all");
    until(&mut window, "it has run", |window| window.query_by_label("2").is_some());
    until(&mut window, "it is idle", |window| window.query_by_label("Kernel: Python idle").is_some());
    click_label(&mut window, "Kernel: Python idle");
    assert!(window.query_by_label(hint).is_none());
    choose(&mut window, "Restart");
    until(&mut window, "it ends", |window| window.query_by_label("Kernel: Python off").is_some());
}

#[test]
fn spell_check_is_turned_off_for_one_note_by_the_menu() {
    let dictionary =
        ["en_US", "en_GB"].iter().any(|name| PathBuf::from(format!("/usr/share/hunspell/{name}.dic")).exists());
    if !dictionary {
        println!("left out: there is no English dictionary (hunspell-en-us) to check with");
        return;
    }
    let bench = Bench::new(&[("A.md", "huose\n"), ("B.md", "huose\n")]);
    let mut window = bench.opened();
    let offers = |window: &mut Driven| {
        open_menu(window, "huose");
        let found = has_item(window, "Turn off for this note");
        if !found {
            press(window, NONE, Key::Escape);
        }
        found
    };
    until(&mut window, "the word is marked", offers);
    choose(&mut window, "Turn off for this note");
    let off = "---\nspelling: false\n---\n";
    until(&mut window, "it is kept in the note", |window| text(window).is_some_and(|text| text.starts_with(off)));
    window.run();
    assert!(!offers(&mut window), "no word of this note is misspelled any more");
    window.get_by_role_and_label(Role::TreeItem, "B").click();
    until(&mut window, "the other note is shown", |window| path(window) == "B.md");
    until(&mut window, "the other note is checked", offers);
    assert!(session(&window).settings().spelling, "only this note");
}

#[test]
fn a_misspelled_word_is_corrected_and_learnt_by_the_menu() {
    let dictionary =
        ["en_US", "en_GB"].iter().any(|name| PathBuf::from(format!("/usr/share/hunspell/{name}.dic")).exists());
    if !dictionary {
        println!("left out: there is no English dictionary (hunspell-en-us) to check with");
        return;
    }
    let bench = Bench::new(&[("A.md", "huose\n\nTracebok\n")]);
    let mut window = bench.opened();
    until(&mut window, "a word can be corrected", |window| {
        open_menu(window, "huose");
        let found = has_item(window, "Add to dictionary");
        if !found {
            press(window, NONE, Key::Escape);
        }
        found
    });
    until(&mut window, "a word is suggested", |window| has_item(window, "house"));
    choose(&mut window, "house");
    assert_eq!(text(&window).as_deref(), Some("house\n\nTracebok\n"));
    open_menu(&mut window, "Tracebok");
    choose(&mut window, "Add to dictionary");
    until(&mut window, "it is kept", |window| {
        session(window).settings().spelling_dictionary.contains(&"Tracebok".to_owned())
    });
}
