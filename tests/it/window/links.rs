//! Links, renames, the agenda: how the window shows connections between notes.

use super::*;
use engine::commands::CommandId;

const FILES: &[(&str, &str)] = &[
    ("Home.md", "# Home\n\nsee [[Sea]] and [the shore](Places/Shore.md#Tides) and [[Nowhere]]\n"),
    ("Places/Shore.md", "# Shore\n\nThe sea is near.\n\n## Tides\n\nTwice a day. [[Sea|It]] comes and goes.\n"),
    ("Places/Sea.md", "# Sea\n\n- [ ] look at it 📅 2001-02-03 🔁 every week\n- [ ] swim ⏫\n- [x] name it\n"),
];

fn file(bench: &Bench, path: &str) -> Option<String> {
    std::fs::read_to_string(bench.notes().join(path)).ok()
}

fn indexed(bench: &Bench) -> Driven {
    let mut window = bench.opened();
    until(&mut window, "the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    window
}

#[test]
fn a_note_that_macos_has_named_is_found_as_keyboards_write_it() {
    let bench = Bench::new(&[("A.md", "first\n"), ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}.md", "korean\n")]);
    let mut window = indexed(&bench);
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "\u{d55c}\u{ae00}");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text == "korean\n"));
}

#[test]
fn a_note_is_renamed_with_its_links_deleted_and_had_back() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    press(&mut window, NONE, Key::F2);
    assert!(window.query_by_label("Rename or move").is_some());
    click_label(&mut window, "Cancel");
    let sea = session(&window).volumes().next().expect("one").files["Places/Sea.md"].id;
    window.state_mut().show(sea);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("# Sea")));
    press(&mut window, NONE, Key::F2);
    press(&mut window, CTRL, Key::A);
    type_text(&mut window, "Water/Ocean");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the links follow", |_| file(&bench, "Home.md").is_some_and(|text| text.contains("[[Ocean]]")));
    until(&mut window, "all of them", |_| {
        file(&bench, "Places/Shore.md").is_some_and(|text| text.contains("[[Ocean|It]]"))
    });
    assert_eq!(path(&window), "Water/Ocean.md");
    until(&mut window, "it is over", |window| session(window).can_undo_move());
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::FilesUndo);
    until(&mut window, "all is as it was", |_| {
        FILES.iter().all(|(path, text)| file(&bench, path).as_deref() == Some(*text))
    });
    until(&mut window, "it is over", |window| session(window).pending_move().is_none());
    window.state_mut().perform_command(&ctx, CommandId::NoteDelete);
    until(&mut window, "it is gone", |_| file(&bench, "Places/Sea.md").is_none());
    assert_ne!(window.state().note(), Some(sea));
    until(&mut window, "it is over", |window| session(window).can_undo_move());
    window.state_mut().perform_command(&ctx, CommandId::FilesUndo);
    until(&mut window, "it is back", |_| file(&bench, "Places/Sea.md").as_deref() == Some(FILES[2].1));
}

#[test]
fn links_can_follow_what_another_program_renames() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    std::fs::rename(bench.notes().join("Places/Sea.md"), bench.notes().join("Places/Ocean.md")).expect("renamed");
    until(&mut window, "it is said", |window| window.query_by_label("Update").is_some());
    window.get_by_label("Update").click();
    until(&mut window, "the links follow", |_| file(&bench, "Home.md").is_some_and(|text| text.contains("[[Ocean]]")));
    until(&mut window, "all of them", |_| {
        file(&bench, "Places/Shore.md").is_some_and(|text| text.contains("[[Ocean|It]]"))
    });
}

#[test]
fn a_link_leads_to_its_heading_and_a_tag_to_what_has_it() {
    let bench = Bench::new(&[
        ("Home.md", "[[Long#Far down|there]]\n\n#water/sea\n"),
        ("Long.md", &format!("{}\n## Far down\n\nHere. #water/sea\n", "Words.\n\n".repeat(200))),
    ]);
    let mut window = indexed(&bench);
    let home = session(&window).volumes().next().expect("one").files["Home.md"].id;
    window.state_mut().show(home);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("[[Long#")));
    click_link(&mut window, "#water/sea");
    assert!(window.query_by_label("Search everything").is_some());
    until(&mut window, "both are found", |window| window.query_all_by_label_contains("Long").next().is_some());
    press(&mut window, NONE, Key::Escape);
    click_link(&mut window, "there");
    until(&mut window, "the heading is in sight", |window| window.query_by_label("Far down").is_some());
    assert_eq!(path(&window), "Long.md");
}

#[test]
fn the_panel_tells_who_links_where() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    press(&mut window, CTRL_SHIFT, Key::K);
    assert!(window.query_by_label("Backlinks (0)").is_some());
    assert!(window.query_by_label("Outgoing links (3)").is_some());
    assert!(window.query_by_label("Nowhere leads nowhere").is_some());
    click_label(&mut window, "Open Sea");
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("# Sea")));
    assert!(window.query_by_label("Backlinks (2)").is_some());
    assert!(window.query_by_label("Twice a day. It comes and goes.").is_some(), "without Markdown");
    click_label(&mut window, "Find them");
    until(&mut window, "a mention is found", |window| window.query_by_label("Link it in Shore").is_some());
    click_label(&mut window, "Link it in Shore");
    until(&mut window, "it is a link", |_| {
        file(&bench, "Places/Shore.md").is_some_and(|text| text.contains("The [[Sea|sea]] is near."))
    });
    until(&mut window, "it is counted", |window| window.query_by_label("Backlinks (3)").is_some());
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewBroken);
    window.run();
    click_label(&mut window, "Home.md: Nowhere");
    until(&mut window, "its place is shown", |window| path(window) == "Home.md");
}

#[test]
fn the_agenda_shows_plain_words() {
    let bench = Bench::new(&[("A.md", "- [ ] **Buy** [[B|rye bread]] at `noon` #food\n"), ("B.md", "b\n")]);
    let mut window = indexed(&bench);
    press(&mut window, CTRL_SHIFT, Key::A);
    until(&mut window, "the task is there", |window| {
        window.query_by_role_and_label(Role::CheckBox, "Buy rye bread at noon #food").is_some()
    });
    window.get_by_role_and_label(Role::CheckBox, "Buy rye bread at noon #food").click();
    window.run();
    let done = |text: String| text.starts_with("- [x] **Buy** [[B|rye bread]] at `noon` #food");
    until(&mut window, "it is done", |_| file(&bench, "A.md").is_some_and(done));
}

#[test]
fn a_box_is_clicked_in_the_agenda() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    press(&mut window, CTRL_SHIFT, Key::A);
    assert!(window.query_by_label("Overdue: 1").is_some());
    assert!(window.query_by_label("No date: 1").is_some());
    window.get_by_role_and_label(Role::CheckBox, "swim").click();
    window.run();
    until(&mut window, "it is done", |_| file(&bench, "Places/Sea.md").is_some_and(|text| text.contains("- [x] swim")));
    window.get_by_role_and_label(Role::CheckBox, "look at it").click();
    window.run();
    until(&mut window, "the next stands above it", |_| {
        let text = file(&bench, "Places/Sea.md").unwrap_or_default();
        let next = text.find("- [ ] look at it 📅 2001-02-10 🔁 every week\n- [x] look at it 📅 2001-02-03");
        next.is_some() && text.contains('✅')
    });
    until(&mut window, "the agenda says so", |window| window.query_by_label("No date: 1").is_none());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Overdue: 1").is_none(), "the page is closed");
}

#[test]
fn brackets_offer_notes_and_headings() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    let end = text(&window).expect("shown").len();
    window.state_mut().place_caret(end);
    window.run();
    type_text(&mut window, "[[sh");
    assert!(window.query_by_label("Shore").is_some(), "what fits is offered");
    press(&mut window, NONE, Key::Enter);
    assert!(with_caret(&window).contains("[[Shore]]|"), "{}", with_caret(&window));
    type_text(&mut window, " [[Shore#t");
    press(&mut window, NONE, Key::Enter);
    assert!(with_caret(&window).contains("[[Shore#Tides]]|"), "{}", with_caret(&window));
    type_text(&mut window, " [[sea");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, NONE, Key::Enter);
    assert!(text(&window).is_some_and(|text| text.contains("[[sea\n")), "what was put away takes no keys");
    type_text(&mut window, "[[New one");
    assert!(window.query_by_label("New one").is_some(), "what is not there can be linked to");
    press(&mut window, NONE, Key::Enter);
    assert!(with_caret(&window).contains("[[New one]]|"), "{}", with_caret(&window));
}

/// The position of a row's link, found by the pointer's cursor.
pub(super) fn link_in(window: &mut Driven, row: &str) -> egui::Pos2 {
    let left = window.get_by_label(row).rect().left_center();
    let at = (0..60).map(|step| egui::pos2(left.x + 8.0 * step as f32, left.y)).find(|at| {
        window.hover_at(*at);
        window.run_steps(2);
        window.output().platform_output.cursor_icon == egui::CursorIcon::PointingHand
    });
    at.expect("the link is under the pointer somewhere")
}

pub(super) fn click_link(window: &mut Driven, row: &str) {
    let at = link_in(window, row);
    window.drag_at(at);
    window.drop_at(at);
    window.run();
}

#[test]
fn a_link_shows_where_it_leads_and_goes_there() {
    let bench = Bench::new(&[("Home.md", "[shore](Places/Shore.md#Tides)\n"), FILES[1], FILES[2]]);
    let mut window = indexed(&bench);
    let at = link_in(&mut window, "shore");
    until(&mut window, "the card is there", |window| {
        window.hover_at(at);
        window.query_by_label("Preview of Shore").is_some()
    });
    window.drag_at(at);
    window.drop_at(at);
    window.run();
    until(&mut window, "its end is shown", |window| path(window) == "Places/Shore.md");
}

#[test]
fn a_link_may_begin_with_the_volume() {
    let bench = Bench::new(&[("Home.md", "[[notes/Places/Sea|there]]\n\n[[notes/Made here|make]]\n"), FILES[2]]);
    let mut window = indexed(&bench);
    let home = session(&window).volumes().next().expect("one").files["Home.md"].id;
    window.state_mut().show(home);
    until(&mut window, "the links are shown", |window| window.query_by_label("there").is_some());
    click_link(&mut window, "there");
    until(&mut window, "its note is shown", |window| path(window) == "Places/Sea.md");
    press(&mut window, CTRL_SHIFT, Key::K);
    until(&mut window, "it's a backlink", |window| window.query_by_label("Backlinks (1)").is_some());
    window.state_mut().show(home);
    until(&mut window, "the links are shown", |window| window.query_by_label("make").is_some());
    click_link(&mut window, "make");
    until(&mut window, "a note is made", |window| path(window) == "Made here.md");
    assert!(!bench.notes().join("notes").exists(), "no volume in a volume");
}

/// Addresses as search results give them: a block, and a cell's output.
#[test]
fn a_link_to_what_was_found_leads_to_its_block() {
    let sea = format!("# Sea\n\n{}```python\nprint(1)\n```\n", "Filler about nothing in particular.\n\n".repeat(90));
    let blocks = store::import_blocks(text::markdown::split_into_blocks(&sea).into_iter());
    let (block, cell) = (blocks[blocks.len() - 2].id, blocks[blocks.len() - 1].id);
    let home = format!("[[Sea#{block}|there]]\n\n[[Sea#{cell}/output/1|printed]]\n");
    let bench = Bench::new(&[("Home.md", &home), ("Sea.md", &sea)]);
    let mut window = indexed(&bench);
    let home = window.state().note().expect("a note is shown");
    for (name, wanted) in [("there", block), ("printed", cell)] {
        window.state_mut().show(home);
        until(&mut window, "the links are shown", |window| window.query_by_label(name).is_some());
        click_link(&mut window, name);
        until(&mut window, "the caret is at its start", |window| {
            let note = window.state().note().and_then(|note| session(window).note(note));
            path(window) == "Sea.md" && note.is_some_and(|note| note.block_start(wanted) == window.state().caret())
        });
    }
}

#[test]
fn the_graph_shows_all_and_what_is_around_a_note() {
    let bench = Bench::new(&[FILES[0], FILES[1], FILES[2], ("Alone.md", "no links\n")]);
    let mut window = indexed(&bench);
    let home = session(&window).volumes().next().expect("one").files["Home.md"].id;
    window.state_mut().show(home);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewGraph);
    window.run_steps(3);
    // The folder has a color beside that of the notes at the top.
    until(&mut window, "it is laid out", |window| painted_dots(window) > 1);
    assert!(window.query_by_label("Graph of 4 notes and 3 links").is_some());
    window.get_by_role_and_label(Role::SearchInput, "Find in the graph").focus();
    window.run_steps(2);
    let colored = |window: &Driven| painted_dots(window);
    let before = colored(&window);
    type_text(&mut window, "Alone");
    window.run_steps(3);
    assert!(colored(&window) < before, "what isn't looked for is faint");
    window.get_by_label("Only around the open note").click();
    window.run_steps(3);
    assert!(window.query_by_label("Graph of 3 notes and 3 links").is_some());
    press(&mut window, NONE, Key::Escape);
    assert!(window.query_by_label("Graph of 3 notes and 3 links").is_none());
}

#[test]
fn two_fingers_zoom_the_graph() {
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewGraph);
    until(&mut window, "all is shown", |window| window.query_by_label("Graph of 3 notes and 3 links").is_some());
    assert!(window.query_by_label("Fit to window").is_none());
    // Before it's laid out, there's nothing to zoom.
    until(&mut window, "it is zoomed", |window| {
        super::figures::pinch(window, egui::pos2(700.0, 450.0), 1.5);
        window.query_by_label("Fit to window").is_some()
    });
    click_label(&mut window, "Fit to window");
    assert!(window.query_by_label("Fit to window").is_none());
}

#[test]
fn a_volume_of_the_graph_can_be_chosen_and_left_again() {
    let bench = Bench::new(&[FILES[0]]);
    let mut window = indexed(&bench);
    let bare = bench.folder.path().join("bare");
    std::fs::create_dir(&bare).expect("a folder");
    window.state_mut().send_command(Command::OpenFolder { folder: bare, name: None });
    until(&mut window, "it is open", |window| session(window).volumes().count() == 2);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::ViewGraph);
    until(&mut window, "all is shown", |window| window.query_by_label("Graph of 1 note and 0 links").is_some());
    let choose = |window: &mut Driven, name: &str| {
        window.get_by_role_and_label(Role::RadioButton, &format!("Show in the graph: {name}")).click();
        window.run_steps(3);
    };
    choose(&mut window, "bare");
    assert!(window.query_by_label("Graph of 0 notes and 0 links").is_some());
    choose(&mut window, "All volumes");
    assert!(window.query_by_label("Graph of 1 note and 0 links").is_some(), "an empty volume can be left again");
    choose(&mut window, "bare");
    let volume = session(&window).volumes().find(|volume| volume.name == "bare").expect("it is open").id;
    window.state_mut().send_command(Command::CloseVolume { volume });
    until(&mut window, "a closed volume is no longer chosen", |window| {
        window.query_by_label("Graph of 1 note and 0 links").is_some()
    });
}

/// The number of different colors in meshes of dots and lines.
fn painted_dots(window: &Driven) -> usize {
    let mut colors = std::collections::BTreeSet::new();
    for clipped in &window.output().shapes {
        if let egui::Shape::Mesh(mesh) = &clipped.shape {
            colors.extend(mesh.vertices.iter().map(|vertex| vertex.color.to_array()));
        }
    }
    colors.len()
}

#[test]
fn links_pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench = Bench::new(FILES);
    let mut window = indexed(&bench);
    let ctx = window.ctx.clone();
    let picture = |window: &mut Driven, name: &str| picture(window, &folder, name);
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        window.state_mut().perform_command(&ctx, CommandId::ViewAgenda);
        picture(&mut window, &format!("{theme}-agenda"));
        window.state_mut().perform_command(&ctx, CommandId::ViewBroken);
        picture(&mut window, &format!("{theme}-broken"));
        let sea = session(&window).volumes().next().expect("one").files["Places/Sea.md"].id;
        window.state_mut().show(sea);
        press(&mut window, CTRL_SHIFT, Key::K);
        until(&mut window, "the note is shown", |window| text(window).is_some());
        picture(&mut window, &format!("{theme}-links"));
        press(&mut window, NONE, Key::F2);
        picture(&mut window, &format!("{theme}-rename"));
        press(&mut window, NONE, Key::Escape);
        press(&mut window, CTRL_SHIFT, Key::K);
        let home = session(&window).volumes().next().expect("one").files["Home.md"].id;
        window.state_mut().show(home);
        until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("# Home")));
        let end = text(&window).expect("shown").len();
        window.state_mut().place_caret(end);
        window.run();
        type_text(&mut window, "[[s");
        picture(&mut window, &format!("{theme}-completion"));
        press(&mut window, NONE, Key::Escape);
        window.state_mut().perform_command(&ctx, CommandId::NoteUndo);
    }
    let kepano = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/vaults/kepano");
    window.state_mut().send_command(Command::OpenFolder { folder: kepano, name: None });
    until(&mut window, "the vault is known", |window| {
        session(window).volumes().all(|volume| volume.is_indexed() && volume.scans > 0)
    });
    window.state_mut().perform_command(&ctx, CommandId::ViewGraph);
    window.run_steps(3);
    until(&mut window, "it is laid out", |window| window.query_by_label("Only around the open note").is_some());
    std::thread::sleep(Duration::from_secs(4));
    picture(&mut window, "dark-graph");
    press(&mut window, CTRL_SHIFT, Key::L);
    press(&mut window, CTRL_SHIFT, Key::L);
    picture(&mut window, "light-graph");
}

#[test]
fn a_box_on_the_page_brings_the_next_of_what_comes_again() {
    let bench = Bench::new(&[("A.md", "# A\n\n- [ ] water 🔁 every week 📅 2020-01-01\n- [ ] once\n")]);
    let mut window = bench.opened();
    for label in ["once", "water"] {
        window.query_all_by_role(Role::CheckBox).find(|node| named(node).contains(label)).expect("a box").click();
        window.run();
    }
    until(&mut window, "the next one is there", |window| {
        text(window).is_some_and(|text| text.matches("water").count() == 2)
    });
    let text = text(&window).expect("the note is shown");
    assert!(text.contains("- [x] once") && text.contains("- [ ] water") && text.contains("- [x] water"), "{text}");
}

fn named(node: &egui_kittest::Node<'_>) -> String {
    egui_kittest::kittest::NodeT::accesskit_node(node).label().unwrap_or_default()
}

#[test]
fn notes_near_in_meaning_are_listed_beside_the_open_one() {
    let bench = Bench::new(&[
        ("Cat.md", "# Cat\n\nA cat sleeps on the sofa.\n"),
        ("Kitten.md", "# Kitten\n\nThe kitten naps on the couch all afternoon.\n"),
        ("Tax.md", "# Tax\n\nThe quarterly report of the company is due.\n"),
    ]);
    let mut window = indexed(&bench);
    let cat = session(&window).volumes().next().expect("one").files["Cat.md"].id;
    window.state_mut().show(cat);
    press(&mut window, CTRL_SHIFT, Key::K);
    until(&mut window, "it is near", |window| window.query_by_label("Near: Kitten").is_some());
    assert!(window.query_by_label("Near: Tax").is_none());
    window.get_by_label("Near: Kitten").click();
    until(&mut window, "it is open", |window| path(window) == "Kitten.md");
    until(&mut window, "the way back is there", |window| window.query_by_label("Near: Cat").is_some());
}

#[test]
fn a_link_to_nowhere_makes_its_note_beside_the_linking_one() {
    let bench = Bench::new(&[("Places/Shore.md", "see [[Missing note]]\n\n[data](data.csv)\n"), ("Home.md", "home\n")]);
    let mut window = indexed(&bench);
    let shore = session(&window).volumes().next().expect("one").files["Places/Shore.md"].id;
    window.state_mut().show(shore);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("see")));
    let at = link_in(&mut window, "see Missing note");
    until(&mut window, "what a click does is said", |window| {
        window.hover_at(at);
        window.query_by_label("Create “Missing note”").is_some()
    });
    window.drag_at(at);
    window.drop_at(at);
    window.run();
    assert_eq!(path(&window), "Places/Missing note.md");
    window.get_by_label("Dismiss: Created “Missing note”.");
    window.get_by_label("Undo").click_accesskit();
    until(&mut window, "it is in the trash", |window| session(window).trash().count() == 1);
    until(&mut window, "its link is shown again", |window| path(window) == "Places/Shore.md");
    until(&mut window, "it is over", |window| session(window).pending_move().is_none());
    // A link to a file that can't be a note creates nothing.
    click_link(&mut window, "data");
    window.get_by_label("Dismiss: There's no file data.csv.");
    assert_eq!(path(&window), "Places/Shore.md");
}

#[test]
fn a_click_chooses_the_note_that_a_link_leads_to() {
    let bench = Bench::new(&[("Home.md", "# Home\n\nSee \n"), ("Places/Shore.md", "# Shore\n")]);
    let mut window = indexed(&bench);
    let home = session(&window).volumes().next().expect("one").files["Home.md"].id;
    window.state_mut().show(home);
    until(&mut window, "the note is shown", |window| text(window).is_some_and(|text| text.starts_with("# Home")));
    window.state_mut().place_caret("# Home\n\nSee ".len());
    window.run();
    type_text(&mut window, "[[Sho");
    coding::click_offered(&mut window, "Shore");
    assert_eq!(text(&window).as_deref(), Some("# Home\n\nSee [[Shore]]\n"));
    type_text(&mut window, "!");
    assert_eq!(text(&window).as_deref(), Some("# Home\n\nSee [[Shore]]!\n"), "the note has the keyboard");
    // A list closes when the keyboard goes elsewhere.
    type_text(&mut window, " [[Sho");
    assert_eq!(window.query_all_by_role(egui::accesskit::Role::ListBoxOption).count(), 2);
    let tree = window.get_by_label("Places").rect().center();
    for pressed in [None, Some(true), Some(false)] {
        selecting::pointer(&mut window, tree, pressed, NONE);
    }
    window.run();
    assert_eq!(window.query_all_by_role(egui::accesskit::Role::ListBoxOption).count(), 0);
}
