//! Folders opened as volumes: by path, with the system's chooser, from recent ones and from the command line.

use super::source_control::{git, has};
use super::*;
use host::desktop::PathChoice;
use std::sync::Arc;

/// A folder beside the volume, with a note to start with.
fn other(bench: &Bench) -> PathBuf {
    let folder = bench.folder.path().join("other");
    std::fs::create_dir_all(folder.join("deep")).expect("a folder");
    for (path, text) in [("a.md", "a\n"), ("README.md", "begin here\n"), ("deep/b.md", "b\n"), ("data.csv", "1\n")] {
        std::fs::write(folder.join(path), text).expect("a file");
    }
    folder
}

fn volumes(window: &Driven) -> usize {
    session(window).volumes().count()
}

fn type_path(window: &mut Driven, path: &std::path::Path) {
    press(window, CTRL, Key::O);
    type_text(window, &path.display().to_string());
    press(window, NONE, Key::Enter);
}

fn shown(window: &mut Driven, wanted: &str) {
    until(window, wanted, |window| text(window).as_deref() == Some(wanted));
}

#[test]
fn a_wrong_path_keeps_the_dialog_open_and_adds_nothing() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    let missing = bench.folder.path().join("nope/nothing");
    type_path(&mut window, &missing);
    let says = format!("There's no folder at {}.", missing.display());
    until(&mut window, "it is said", |window| window.query_by_label(&says).is_some());
    assert!(window.query_by_label("Path of the folder").is_some(), "the dialog is still open");
    assert_eq!(volumes(&window), 1);
    window.get_by_label("Create folder").click();
    until(&mut window, "the folder is a volume", |window| volumes(window) == 2);
    assert!(missing.is_dir());
    until(&mut window, "it is said", |window| window.query_by_label("Dismiss: Opened nothing: 0 notes").is_some());
}

#[test]
fn the_path_of_a_file_offers_its_folder() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    type_path(&mut window, &folder.join("a.md"));
    let says = format!("That's a file, not a folder: {}", folder.join("a.md").display());
    until(&mut window, "it is said", |window| window.query_by_label(&says).is_some());
    assert_eq!(volumes(&window), 1);
    window.get_by_label("Open its folder").click();
    shown(&mut window, "begin here\n");
    assert!(window.query_by_label("Path of the folder").is_none());
}

#[test]
fn the_chosen_folder_shows_the_note_it_begins_with() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    let chosen = folder.clone();
    window.state_mut().use_folder_chooser(Arc::new(move || PathChoice::Chosen(chosen.clone())));
    press(&mut window, CTRL, Key::O);
    let edge = |label: &str| window.get_by_role_and_label(Role::Button, label).rect().right();
    assert!((edge("Browse…") - edge("Open")).abs() < 1.0, "the buttons end at the same edge");
    window.get_by_label("Browse…").click();
    let says = "Dismiss: Opened other: 3 notes, 1 attachment";
    until(&mut window, "it is said", |window| window.query_by_label(says).is_some());
    shown(&mut window, "begin here\n");
    window.get_by_role_and_label(Role::TreeItem, "README");
    // The folder is already open, so a note inside the subfolder is shown.
    type_path(&mut window, &folder.join("deep"));
    shown(&mut window, "b\n");
    assert_eq!(volumes(&window), 2);
}

#[test]
fn without_a_chooser_the_path_is_typed_and_completed() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::O);
    window.get_by_label("There's no folder chooser on this desktop. Type the path.");
    assert!(window.query_by_label("Browse…").is_none(), "a button would do nothing");
    press(&mut window, NONE, Key::Escape);
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    window.state_mut().use_folder_chooser(Arc::new(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        PathChoice::Unavailable
    }));
    press(&mut window, CTRL, Key::O);
    window.get_by_label("Browse…").click();
    until(&mut window, "it is said", |window| {
        window.query_by_label("There's no folder chooser on this desktop. Type the path.").is_some()
    });
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1);
    let typed = folder.display().to_string();
    type_text(&mut window, typed.strip_suffix("her").expect("its name"));
    let completed = format!("Complete: {typed}");
    until(&mut window, "its name is offered", |window| window.query_by_label(&completed).is_some());
    click_label(&mut window, &completed);
    type_text(&mut window, "deep");
    press(&mut window, NONE, Key::Enter);
    shown(&mut window, "b\n");
}

#[test]
fn recent_folders_are_offered_again() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    type_path(&mut window, &folder);
    shown(&mut window, "begin here\n");
    press(&mut window, CTRL, Key::O);
    let offer = format!("Open {}", folder.display());
    assert!(window.query_by_label(&offer).is_none(), "it is open");
    press(&mut window, NONE, Key::Escape);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    let volume = session(&window).volumes().find(|volume| volume.name == "other").expect("it").id;
    window.state_mut().send_command(Command::CloseVolume { volume });
    window.run();
    press(&mut window, CTRL, Key::O);
    window.get_by_label(&offer).click();
    shown(&mut window, "begin here\n");
}

#[test]
fn a_new_note_goes_into_the_chosen_volume() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    type_path(&mut window, &folder);
    shown(&mut window, "begin here\n");
    for volume in ["notes", "other"] {
        let ctx = window.ctx.clone();
        window.state_mut().perform_command(&ctx, engine::commands::CommandId::NoteNewIn);
        window.run();
        type_text(&mut window, "New");
        window.get_by_role_and_label(Role::RadioButton, &format!("In {volume}")).click();
        window.run();
        window.get_by_role_and_label(Role::Button, "Create note").click();
        let file = bench.folder.path().join(volume).join("New.md");
        until(&mut window, "the note is in its folder", |_| file.exists());
    }
}

#[test]
fn a_path_of_the_command_line_is_opened() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.window();
    let ctx = window.ctx.clone();
    window.state_mut().open_path(&ctx, folder.join("deep/b.md"));
    shown(&mut window, "b\n");
    assert_eq!(path(&window), "b.md", "its own folder is the volume");
    window.state_mut().open_path(&ctx, bench.notes());
    shown(&mut window, "1\n");
    window.state_mut().open_path(&ctx, bench.folder.path().join("nope"));
    until(&mut window, "it is said", |window| {
        window.query_by_label_contains("Dismiss: There's no file or folder at").is_some()
    });
    assert_eq!(volumes(&window), 2);
}

#[test]
fn a_later_start_of_the_program_shows_its_path_in_the_open_window() {
    let bench = Bench::new(&[("One.md", "1\n"), ("sub/Two.md", "2\n")]);
    let mut window = bench.opened();
    let (tell, requests) = std::sync::mpsc::channel();
    let ctx = window.ctx.clone();
    window.state_mut().follow_requests(&ctx, requests);
    shown(&mut window, "1\n");
    tell.send(Some(bench.notes().join("sub/Two.md"))).expect("the window follows");
    shown(&mut window, "2\n");
    assert_eq!((path(&window).as_str(), volumes(&window)), ("sub/Two.md", 1), "in the volume that has it");
    tell.send(None).expect("the window follows");
    until(&mut window, "it asks to come to the front", |window| {
        let output = window.output().viewport_output.get(&egui::ViewportId::ROOT);
        output.is_some_and(|output| output.commands.contains(&egui::ViewportCommand::Focus))
    });
}

#[test]
fn volumes_to_choose_from_are_in_the_order_of_the_tree() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let names = ["Beta", "alpha", "delta", "Gamma"];
    let mut window = bench.window();
    let ctx = window.ctx.clone();
    for name in names {
        let folder = bench.folder.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("Note.md"), format!("{name}\n")).expect("a file");
        window.state_mut().open_path(&ctx, folder);
        shown(&mut window, &format!("{name}\n"));
    }
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::ViewSourceControl);
    window.run();
    let left = |name: &str| window.get_by_label(&format!("Repository: {name}")).rect().left();
    let places = ["alpha", "Beta", "delta", "Gamma"].map(left);
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn settings_of_an_obsidian_vault_are_offered_and_taken_over() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    std::fs::create_dir(folder.join(".obsidian")).expect("a folder");
    let daily = r#"{"format": "YYYY-MM-DD", "template": "Templates/Day"}"#;
    std::fs::write(folder.join(".obsidian/daily-notes.json"), daily).expect("a file");
    std::fs::write(folder.join(".obsidian/app.json"), r#"{"attachmentFolderPath": "Files"}"#).expect("a file");
    let bookmarks = r#"{"items": [{"type": "group", "title": "Often", "items": [
        {"type": "file", "path": "deep/b.md"}, {"type": "folder", "path": "deep"}]}]}"#;
    std::fs::write(folder.join(".obsidian/bookmarks.json"), bookmarks).expect("a file");
    let hotkeys = r#"{"editor:save-file": [{"modifiers": ["Mod", "Alt"], "key": "W"}], "x:y": [{"modifiers": []}]}"#;
    std::fs::write(folder.join(".obsidian/hotkeys.json"), hotkeys).expect("a file");
    std::fs::write(folder.join(".obsidian/templates.json"), "[".repeat(100_000)).expect("a file");
    let mut window = bench.opened();
    let before = session(&window).settings().clone();
    type_path(&mut window, &folder);
    shown(&mut window, "begin here\n");
    until(&mut window, "they are offered", |window| window.query_by_label("Use them").is_some());
    assert_eq!(session(&window).settings().daily_folder, before.daily_folder, "nothing is taken over unasked");
    window.get_by_label("Use them").click_accesskit();
    let says = "Not taken over: bookmark deep (folder); hotkey x:y; templates.json, which can't be read.";
    until(&mut window, "what has no counterpart is named", |window| {
        window.query_all_by_label_contains(says).next().is_some()
    });
    let says = "daily notes go to the volume's own folder, and";
    assert!(window.query_all_by_label_contains(says).next().is_some());
    let settings = session(&window).settings();
    assert_eq!(settings.daily_folder, "", "Obsidian makes daily notes at the vault's root");
    assert_eq!((&*settings.daily_format, &*settings.daily_template), ("YYYY-MM-DD", "Templates/Day.md"));
    assert_eq!(settings.attachment_folder, "/Files");
    let starred = settings.starred.iter().filter_map(|note| session(&window).locate_file(*note)).map(|(_, path)| path);
    assert_eq!(starred.collect::<Vec<_>>(), ["deep/b.md"]);
    assert_eq!(settings.keys["note.save"], ["Ctrl+Alt+W"]);
}

#[test]
fn a_closed_volume_comes_back_as_it_was() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    let mut window = bench.opened();
    type_path(&mut window, &folder);
    shown(&mut window, "begin here\n");
    let note = window.state().note().expect("a note");
    let files = crate::program::files(&folder);
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.get_by_role_and_label(Role::TreeItem, "other").click_secondary();
    window.run();
    window.get_by_role_and_label(Role::MenuItem, "Close volume").click();
    // Not until nothing happens: background work may draw frames for longer than the offer lasts.
    for _ in 0..20 {
        window.step();
        if window.query_by_label("Undo").is_some() {
            break;
        }
    }
    assert_eq!(volumes(&window), 1);
    window.get_by_label("Dismiss: Closed other. Files are untouched.");
    window.get_by_label("Undo").click_accesskit();
    until(&mut window, "it is back", |window| volumes(window) == 2);
    shown(&mut window, "begin here\n");
    assert_eq!(window.state().note(), Some(note), "its notes are those that they were, with their history");
    until(&mut window, "its files are known", |window| {
        session(window).volumes().all(|volume| volume.scans > 0 && volume.scanning == engine::ScanState::Idle)
    });
    let ids: Vec<_> = session(&window).volumes().flat_map(|volume| volume.files.values().map(|row| row.id)).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(crate::program::files(&folder), files, "nothing was written into it");
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::VolumeReopen);
    window.run();
    window.get_by_label("Dismiss: No volume was closed.");
}

/// Types into a field of the dialog, over what is there.
fn fill(window: &mut Driven, field: &str, words: &str) {
    window.get_by_label(field).focus();
    window.run();
    press(window, CTRL, Key::A);
    type_text(window, words);
}

#[test]
fn a_repository_is_cloned_and_opened() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = other(&bench);
    git(&folder, &["init", "-q", "-b", "main"]);
    for words in [&["add", "-A"][..], &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "First"]] {
        git(&folder, words);
    }
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::O);
    click_label(&mut window, "Open repository…");
    // The folder is proposed by the address, until another one is typed.
    type_text(&mut window, "owner/name.git");
    assert_eq!(window.get_by_label("New folder").value().as_deref(), Some("~/name"));
    fill(&mut window, "Address of the repository", "ext::sh -c true");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it's refused", |window| {
        has(window, "Repositories are reached by https, ssh, http, git or file")
    });
    fill(&mut window, "Address of the repository", &folder.display().to_string());
    fill(&mut window, "New folder", &folder.display().to_string());
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "there's one", |window| has(window, "There is something at"));
    let clone = bench.folder.path().join("new/clone");
    fill(&mut window, "New folder", "clone");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it isn't whole", |window| has(window, "Give the whole path of the new folder"));
    fill(&mut window, "New folder", &clone.display().to_string());
    window.get_by_role_and_label(Role::Switch, "Without earlier commits").click();
    window.run();
    window.get_by_label("Clone and open").click();
    shown(&mut window, "begin here\n");
    assert!(window.query_by_label("Address of the repository").is_none(), "the dialog is closed");
    assert_eq!(volumes(&window), 2);
    assert_eq!(git(&clone, &["log", "--format=%s"]), "First");
}

#[test]
fn a_clone_that_gets_no_answer_is_stopped_without_a_trace() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    silent.set_nonblocking(true).expect("set");
    let address = format!("git://{}/silent.git", silent.local_addr().expect("an address"));
    let bench = Bench::new(&[("One.md", "1\n")]);
    let clone = bench.folder.path().join("clone");
    let mut window = bench.opened();
    press(&mut window, CTRL, Key::O);
    click_label(&mut window, "Open repository…");
    type_text(&mut window, &address);
    fill(&mut window, "New folder", &clone.display().to_string());
    press(&mut window, NONE, Key::Enter);
    // Git has begun once it has connected, and it has made the folder by then.
    let mut asking = None;
    until(&mut window, "Git asks", |_| {
        asking = silent.accept().ok();
        asking.is_some()
    });
    until(&mut window, "it says what it does", |window| has(window, "Cloning git://127.0.0.1"));
    // Escape and a click beside the dialog don't lose it.
    press(&mut window, NONE, Key::Escape);
    window.get_by_label("Stop").click();
    until(&mut window, "it can be changed", |window| has(window, "Clone and open"));
    assert!(!clone.exists(), "what was begun is gone");
    assert_eq!(volumes(&window), 1);
}
