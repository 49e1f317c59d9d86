//! The guide in the window: opened as a volume, found by search, and never written over the user's changes.

use super::*;
use engine::commands::CommandId;
use std::collections::BTreeMap;

/// The guide's pages in the source, by file name.
fn pages() -> BTreeMap<String, String> {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    let files = std::fs::read_dir(guide).expect("the guide").flatten();
    let page = |file: std::fs::DirEntry| {
        (file.file_name().into_string().expect("a name"), std::fs::read_to_string(file.path()).expect("a page"))
    };
    files.map(page).collect()
}

#[test]
fn help_opens_the_guide_and_keeps_what_was_changed_in_it() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let help = bench.folder.path().join("workspace/Help");
    let mut window = bench.opened();
    assert!(!help.exists(), "nothing is written before it is needed");
    press(&mut window, NONE, Key::F1);
    let pages = pages();
    until(&mut window, "the guide is shown", |window| text(window).as_ref() == Some(&pages["index.md"]));
    let volume = session(&window).volumes().find(|volume| volume.name == "Help").expect("a volume");
    let files: Vec<String> = volume.files.keys().cloned().collect();
    assert_eq!(files, pages.keys().cloned().collect::<Vec<_>>(), "the program holds each page of docs/guide");
    let shows = |window: &Driven, role, label| window.query_all_by_role_and_label(role, label).next().is_some();
    assert!(shows(&window, Role::TreeItem, "Tracebook guide"), "pages are listed by their titles");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::SyncStatus);
    window.run();
    assert!(shows(&window, Role::Button, "Share notes") && !shows(&window, Role::Button, "Share Help"));
    window.state_mut().perform_command(&ctx, CommandId::ViewSourceControl);
    until(&mut window, "the user's folder", |window| {
        window.query_all_by_label_contains("notes is not a Git repository").next().is_some()
    });
    assert!(!shows(&window, Role::RadioButton, "Repository: Help"));
    press(&mut window, NONE, Key::Escape);
    for (name, page) in &pages {
        assert_eq!(std::fs::read_to_string(help.join(name)).ok().as_ref(), Some(page), "{name}");
    }
    // A link leads to a page, and search finds one.
    until(&mut window, "the links are known", |window| session(window).volumes().all(engine::Volume::is_indexed));
    links::click_link(&mut window, "First steps: the window, a note, a cell, in ten minutes");
    until(&mut window, "the page is shown", |window| text(window).as_ref() == Some(&pages["first-steps.md"]));
    press(&mut window, CTRL_SHIFT, Key::F);
    type_text(&mut window, "path:hub certificate prometheus");
    until(&mut window, "it is found", |window| window.query_all_by_label_contains(": has").next().is_some());
    press(&mut window, NONE, Key::Escape);
    // Tabs, the title of the window and the quick switcher name a page by its title, too.
    press(&mut window, CTRL, Key::P);
    type_text(&mut window, "questions and answers");
    // The title is sent in a single frame, so that frames are stepped one by one.
    let (key, modifiers, physical_key) = (Key::Enter, CTRL, None);
    window.input_mut().events.push(egui::Event::Key { key, physical_key, pressed: true, repeat: false, modifiers });
    let title = egui::ViewportCommand::Title("Tracebook — Questions and answers".to_owned());
    until(&mut window, "the title of the window", |window| {
        window.output().viewport_output[&egui::ViewportId::ROOT].commands.contains(&title)
    });
    assert_eq!(path(&window), "faq.md");
    assert!(shows(&window, Role::Tab, "Questions and answers") && shows(&window, Role::Tab, "First steps"));
    // The user's changes stay when the guide is opened again; deleted pages are restored.
    std::fs::write(help.join("faq.md"), "# Mine\n").expect("written");
    std::fs::remove_file(help.join("hub.md")).expect("removed");
    press(&mut window, NONE, Key::F1);
    until(&mut window, "the start is shown again", |window| path(window) == "index.md");
    until(&mut window, "the page is back", |_| std::fs::read_to_string(help.join("hub.md")).is_ok());
    assert_eq!(std::fs::read_to_string(help.join("faq.md")).expect("a file"), "# Mine\n");
}
