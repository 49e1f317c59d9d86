//! Organizing notes: today's note, templates, copies, stars, the tree's menus, and drag and drop in the tree.

use super::*;
use engine::Volume;

fn item(window: &mut Driven, line: &str, name: &str) {
    window.get_by_role_and_label(Role::TreeItem, line).click_secondary();
    window.run();
    window.get_by_role_and_label(Role::MenuItem, name).click();
    window.run();
}

fn choose(window: &mut Driven, title: &str) {
    press(window, CTRL_SHIFT, Key::P);
    type_text(window, title);
    press(window, NONE, Key::Enter);
}

fn lines(window: &Driven, name: &str) -> usize {
    window.query_all_by_role_and_label(Role::TreeItem, name).count()
}

#[test]
fn todays_note_comes_of_its_template() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Templates/Daily.md", "# {{title}} at {{date:%Y}}\n\n- [ ] \n")]);
    let mut window = bench.opened();
    choose(&mut window, "Today's note");
    until(&mut window, "the note is there", |window| path(window).starts_with("Journal/"));
    let name = path(&window);
    let day = name.trim_start_matches("Journal/").trim_end_matches(".md").to_owned();
    assert_eq!(day.len(), "2026-01-01".len(), "{name}");
    let year = day[..4].to_owned();
    until(&mut window, "it is read", |window| text(window).is_some());
    assert_eq!(text(&window).expect("its text"), format!("# {day} at {year}\n\n- [ ] \n"));
    type_text(&mut window, "Written.");
    assert_eq!(text(&window).expect("its text"), format!("# {day} at {year}\n\n- [ ] Written.\n"));
    // The second time it's the same note.
    window.get_by_role_and_label(Role::TreeItem, "One").click();
    window.run();
    choose(&mut window, "Today's note");
    until(&mut window, "it is shown again", |window| text(window).is_some_and(|text| text.ends_with("Written.\n")));
    until(&mut window, "it is in the file", |_| bench.notes().join(&name).exists());
}

#[test]
fn a_quick_note_becomes_an_item_of_todays_note() {
    let daily = "# {{title}}\n\nItems:";
    let bench = Bench::new(&[("One.md", "1\n"), ("Templates/Daily.md", daily)]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "One").click();
    until(&mut window, "the note is shown", |window| path(window) == "One.md");
    let journal = |bench: &Bench| {
        let files = std::fs::read_dir(bench.notes().join("Journal")).ok()?;
        let file = files.flatten().next()?.path();
        std::fs::read_to_string(file).ok()
    };
    let mut items = String::new();
    for item in ["Call Ada", "[ ] sow beans"] {
        choose(&mut window, "Quick note");
        assert!(window.query_by_label("Text of the item").is_some());
        type_text(&mut window, item);
        press(&mut window, NONE, Key::Enter);
        items += &format!("- {item}\n");
        let expected = format!("\n\nItems:\n{items}");
        until(&mut window, "it is in the file", |_| journal(&bench).is_some_and(|text| text.ends_with(&expected)));
        assert_eq!(path(&window), "One.md", "the open note stays");
    }
    // Today's note may be the open one, too.
    choose(&mut window, "Today's note");
    until(&mut window, "it is shown", |window| path(window).starts_with("Journal/"));
    until(&mut window, "it is read", |window| text(window).is_some());
    choose(&mut window, "Quick note");
    type_text(&mut window, "third");
    press(&mut window, NONE, Key::Enter);
    let end = "beans\n- third\n";
    until(&mut window, "it is in the note", |window| text(window).is_some_and(|text| text.ends_with(end)));
}

#[test]
fn a_template_goes_where_the_caret_is() {
    let bench = Bench::new(&[("One.md", "before after\n"), ("Templates/Sign.md", "«{{title}}» ")]);
    let mut window = bench.opened();
    window.state_mut().place_caret(7);
    window.run();
    choose(&mut window, "Insert template");
    type_text(&mut window, "sign");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is in the note", |window| text(window).is_some_and(|text| text.contains('«')));
    assert_eq!(with_caret(&window), "before «One» |after\n");
    press(&mut window, CTRL, Key::Z);
    assert_eq!(text(&window).as_deref(), Some("before after\n"));
}

#[test]
fn stars_and_folds_are_kept() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Folder/Two.md", "2\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "Folder").click();
    window.run();
    item(&mut window, "Two", "Star");
    assert_eq!(lines(&window, "Two"), 2, "among the starred, and in its folder");
    window.get_by_role_and_label(Role::TreeItem, "Starred");
    until(&mut window, "it is kept", |window| !session(window).settings().unfolded.is_empty());
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    until(&mut window, "the tree is there", |window| lines(window, "One") == 1);
    assert_eq!(lines(&window, "Two"), 2, "starred and unfolded as before");
}

#[test]
fn a_folder_is_deleted_from_its_menu() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Few/Two.md", "2\n"), ("Many/a.md", "a\n"), ("Many/b.md", "b\n")]);
    let mut window = bench.opened();
    let there = |path: &str| bench.notes().join(path).exists();
    item(&mut window, "Many", "Delete 2 files");
    until(&mut window, "two files are in the trash", |_| !there("Many/a.md") && !there("Many/b.md"));
    item(&mut window, "Few", "Delete 1 file");
    until(&mut window, "the third is in the trash", |_| !there("Few/Two.md"));
    assert!(there("One.md"));
}

#[test]
fn copies_and_new_notes_are_made_from_the_menu() {
    let bench = Bench::new(&[("Folder/Two.md", "two\n"), ("One.md", "1\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "Folder").click();
    window.run();
    item(&mut window, "Two", "Duplicate");
    until(&mut window, "the copy is shown", |window| path(window) == "Folder/Two 2.md");
    until(&mut window, "it is read", |window| text(window).as_deref() == Some("two\n"));
    item(&mut window, "Folder", "New note here…");
    type_text(&mut window, "Three");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the note is there", |window| path(window) == "Folder/Three.md");
    item(&mut window, "Folder", "Rename or move…");
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "Box/Inner");
    press(&mut window, NONE, Key::Enter);
    let there = |path: &str| bench.notes().join(path).exists();
    until(&mut window, "the files have moved", |_| there("Box/Inner/Two.md") && !there("Folder/Two.md"));
}

#[test]
fn a_note_is_dragged_into_a_folder() {
    let links = "[[One]] and [one](../One.md), again [one](../One.md)\n";
    let bench = Bench::new(&[("Folder/Two.md", links), ("One.md", "1\n")]);
    let mut window = bench.opened();
    until(&mut window, "the links are known", |window| session(window).volumes().all(Volume::is_indexed));
    let at = |window: &Driven, name: &str| window.get_by_role_and_label(Role::TreeItem, name).rect().center();
    let (from, to) = (at(&window, "One"), at(&window, "Folder"));
    window.hover_at(from);
    window.run();
    window.drag_at(from);
    window.run();
    window.hover_at(from.lerp(to, 0.5));
    window.run();
    window.hover_at(to);
    window.run();
    window.drop_at(to);
    window.run();
    window.get_by_label("Dismiss: Moved to Folder. 2 links updated.");
    until(&mut window, "the file has moved", |_| bench.notes().join("Folder/One.md").exists());
    until(&mut window, "it is still shown", |window| path(window) == "Folder/One.md");
    until(&mut window, "the links follow", |_| bench.file("Folder/Two.md").contains("again [one](One.md)"));
    until(&mut window, "it is over", |window| session(window).can_undo_move());
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::FilesUndo);
    until(&mut window, "it is back", |_| bench.notes().join("One.md").exists() && bench.file("Folder/Two.md") == links);
}

#[test]
fn a_new_note_is_made_at_once_and_named_in_place() {
    let bench = Bench::new(&[("Folder/Two.md", "two\n"), ("One.md", "1\n")]);
    let mut window = bench.opened();
    let before = crate::program::files(&bench.notes());
    assert_eq!(before.len(), 2, "opening a folder writes nothing");
    let two = session(&window).volumes().next().expect("one").files["Folder/Two.md"].id;
    window.state_mut().show(two);
    until(&mut window, "the note is shown", |window| text(window).as_deref() == Some("two\n"));
    press(&mut window, CTRL, Key::N);
    assert_eq!(path(&window), "Folder/Untitled.md", "beside the open note");
    type_text(&mut window, "Two");
    press(&mut window, NONE, Key::Enter);
    assert!(window.query_by_label("Title of the note").is_some(), "the name is taken");
    assert_eq!(path(&window), "Folder/Untitled.md");
    type_text(&mut window, " more");
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "Hello");
    until(&mut window, "it has its name", |window| path(window) == "Folder/Two more.md");
    assert!(window.query_by_label("Title of the note").is_none());
    until(&mut window, "what was typed is in it", |_| {
        bench.notes().join("Folder/Two more.md").exists() && bench.file("Folder/Two more.md") == "Hello"
    });
    // Without a new name it stays untitled; the next one gets a number.
    press(&mut window, CTRL, Key::N);
    press(&mut window, NONE, Key::Escape);
    type_text(&mut window, "First");
    assert_eq!((path(&window).as_str(), text(&window).as_deref()), ("Folder/Untitled.md", Some("First")));
    press(&mut window, CTRL, Key::N);
    assert_eq!(path(&window), "Folder/Untitled 2.md");
}
