//! The settings: changes apply at once and after a restart; keys are changed by pressing them.

use super::*;
use egui_kittest::kittest::NodeT;
use engine::keymap::KeymapPreset;
use host::desktop::PathChoice;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::disk::{Disk, RowWrite, SqliteDisk};

fn settings(window: &Driven) -> engine::Settings {
    session(window).settings().clone()
}

fn click(window: &mut Driven, label: &str) {
    // Works wherever the control is scrolled to.
    window.get_by_label(label).click_accesskit();
    window.run();
}

#[test]
fn the_look_is_set_and_kept() {
    let bench = Bench::new(&[("One.md", "# Head\n\nSome text.\n")]);
    let mut window = bench.opened();
    let height = |window: &Driven| window.get_by_label("Some text.").rect().height();
    let before = height(&window);
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::RadioButton, "Dark").click();
    window.run();
    window.get_by_role_and_label(Role::Switch, "High contrast").click();
    window.run();
    window.get_by_role_and_label(Role::RadioButton, "Reduce motion: On").click();
    window.run();
    for _ in 0..4 {
        click(&mut window, "Increase text size");
    }
    click(&mut window, "Decrease zoom");
    let set = settings(&window);
    assert_eq!((set.theme, set.contrast), (engine::ColorTheme::Dark, true));
    assert_eq!(set.reduce_motion, engine::ReducedMotion::On);
    assert!((set.text_scale - 1.4).abs() < 1e-3 && (set.scale - 0.9).abs() < 1e-3, "{set:?}");
    press(&mut window, NONE, Key::Escape);
    assert!(height(&window) > before * 1.2, "the note's text has grown");
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let window = bench.window();
    assert_eq!(settings(&window), set);
}

#[test]
fn the_desktops_look_is_followed_unless_the_user_chooses() {
    let bench = Bench::new(&[("One.md", "one\n")]);
    let mut window = bench.opened();
    window.input_mut().system_theme = None;
    let look = |window: &Driven| {
        let style = window.ctx.global_style();
        (style.visuals.dark_mode, style.animation_time > 0.0)
    };
    until(&mut window, "it is light", |window| !look(window).0);
    let calm = Arc::new(AtomicBool::new(true));
    let read = calm.clone();
    let ctx = window.ctx.clone();
    let reader = move || host::desktop::DesktopLook { is_dark: true, reduces_motion: read.load(Ordering::Relaxed) };
    window.state_mut().use_desktop_look(&ctx, Arc::new(reader));
    until(&mut window, "it is dark and calm", |window| look(window) == (true, false));
    // It's read again when the window is in front again.
    for (is_calm, what) in [(false, "it moves"), (true, "it is calm again")] {
        calm.store(is_calm, Ordering::Relaxed);
        until(&mut window, what, |window| {
            window.event(egui::Event::WindowFocused(true));
            look(window) == (true, !is_calm)
        });
    }
    click(&mut window, "Settings");
    for (choice, moves) in [("Off", true), ("On", false), ("Off", true), ("System", false)] {
        window.get_by_role_and_label(Role::RadioButton, &format!("Reduce motion: {choice}")).click();
        window.run();
        assert_eq!(look(&window), (true, moves), "{choice}");
    }
}

#[test]
fn settings_that_version_0_1_saved_are_loaded() {
    let bench = Bench::new(&[("One.md", "# Head\n")]);
    bench.opened().into_state().close().expect("all is saved");
    // All fields that it had: six have other names now.
    let old = json!({
        "theme": "dark", "scale": 1.0, "contrast": true, "calm": true, "text": 1.5, "preset": "vim", "keys": {},
        "left": 300.0, "left_open": true, "right": 400.0, "right_open": false, "window": [1280.0, 800.0],
        "last_note": null, "recent": [], "spelling": false, "script_runs": false, "words": ["sloop", "yawl"],
        "starred": [], "folded": [], "unfolded": [], "recent_open": true, "daily_folder": "Log",
        "daily_format": "%Y-%m-%d", "daily_template": "", "templates": "Forms", "panes": null, "kernels": [],
        "grants": [], "pane": 0, "embedder": "embedded", "onnx_runtime": "", "reranker": "", "meaning_paused": true,
        "unsearched": ["Old"], "searches": [["Boats", "tag:boat"]],
    });
    let mut disk = SqliteDisk::open(&bench.folder.path().join("workspace"), false).expect("opened");
    let row = RowWrite::Meta { key: "settings".to_owned(), value: Some(old.to_string().into_bytes()) };
    disk.commit(&[row]).expect("committed");
    drop(disk);
    let set = settings(&bench.window());
    let expected = engine::Settings {
        theme: engine::ColorTheme::Dark,
        contrast: true,
        reduce_motion: engine::ReducedMotion::On,
        text_scale: 1.5,
        keymap_preset: KeymapPreset::Vim,
        left_panel_width: 300.0,
        right_panel_width: 400.0,
        spelling: false,
        script_runs: false,
        spelling_dictionary: vec!["sloop".to_owned(), "yawl".to_owned()],
        recent_open: true,
        daily_folder: "Log".to_owned(),
        daily_template: String::new(),
        templates: "Forms".to_owned(),
        meaning_paused: true,
        unsearched: vec!["Old".to_owned()],
        searches: vec![("Boats".to_owned(), "tag:boat".to_owned())],
        ..set.clone()
    };
    assert_eq!(set, expected);
}

#[test]
fn themes_and_snippets_of_the_users_own_are_used() {
    let bench = Bench::new(&[("One.md", "# Head\n\nText\n")]);
    let mut window = bench.opened();
    let own = |name: &str| bench.folder.path().join("workspace").join(name);
    for (path, text) in [
        ("themes/Night watch.yaml", "base: dark\ncolors:\n  paper: \"#101418\"\n  ink: \"#e8e8e8\"\n"),
        ("snippets/Signature.md", "-- {{cursor}} in {{title}}\n"),
    ] {
        std::fs::create_dir_all(own(path).parent().expect("a folder")).expect("made");
        std::fs::write(own(path), text).expect("written");
    }
    let paper = |window: &Driven| window.ctx.global_style().visuals.panel_fill;
    let light = paper(&window);
    // They are read when the window is in front again, and then offered.
    until(&mut window, "the theme is offered", |window| {
        window.event(egui::Event::WindowFocused(true));
        window.run();
        press(window, CTRL | Modifiers::SHIFT, Key::P);
        type_text(window, "Choose theme");
        press(window, NONE, Key::Enter);
        let is_offered = window.query_by_label_contains("Night watch").is_some();
        if !is_offered {
            press(window, NONE, Key::Escape);
        }
        is_offered
    });
    type_text(&mut window, "night");
    press(&mut window, NONE, Key::Enter);
    assert_eq!(settings(&window).custom_theme, "Night watch");
    assert_eq!(paper(&window), egui::Color32::from_rgb(0x10, 0x14, 0x18));

    window.state_mut().place_caret("# Head\n\nText".len());
    window.run();
    press(&mut window, NONE, Key::Enter);
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "/signat");
    until(&mut window, "the snippet is offered", |window| {
        window.query_by_role_and_label(Role::MenuItem, "Signature").is_some()
    });
    press(&mut window, NONE, Key::Enter);
    type_text(&mut window, "Ada");
    assert!(text(&window).is_some_and(|text| text.contains("-- Ada in One")), "{:?}", text(&window));

    // The choice is kept; without the file, Tracebook's own colors are used.
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let mut window = bench.window();
    until(&mut window, "the theme is read", |window| paper(window) == egui::Color32::from_rgb(0x10, 0x14, 0x18));
    std::fs::remove_file(own("themes/Night watch.yaml")).expect("removed");
    window.event(egui::Event::WindowFocused(true));
    until(&mut window, "it's light again", |window| paper(window) == light);
    assert_eq!(settings(&window).custom_theme, "Night watch");
}

#[test]
fn keys_are_changed_by_pressing_them() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    press(&mut window, CTRL_ALT, Key::K);
    window.get_by_label("Go to note: Ctrl+P");
    click(&mut window, "Change the key of Save now");
    window.get_by_label("Press the new key…");
    press(&mut window, NONE, Key::S);
    window.get_by_label_contains("A key needs Ctrl or Alt");
    press(&mut window, CTRL, Key::P);
    window.get_by_label("Ctrl+P means “Go to note” now.");
    click(&mut window, "Take it");
    window.get_by_label("Save now: Ctrl+P");
    window.get_by_label("Go to note: ");
    window.get_by_label("1 command has lost a key to another.");
    window.get_by_label("Go to note: Ctrl+P means “Save now” now");
    click(&mut window, "Change the key of Go to note");
    press(&mut window, NONE, Key::F8);
    window.get_by_label("Go to note: F8");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL, Key::P);
    assert!(window.query_by_label("Go to note").is_none(), "the key means something else now");
    press(&mut window, NONE, Key::F8);
    window.get_by_label("Go to note");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL_ALT, Key::K);
    click(&mut window, "Reset the key of Save now");
    window.get_by_label("Save now: Ctrl+S");
    click(&mut window, "Reset all keys");
    window.get_by_label("Go to note: Ctrl+P");
    assert!(settings(&window).keys.is_empty());
    click(&mut window, "Restore keys");
    window.get_by_label("Go to note: F8");
    assert!(!settings(&window).keys.is_empty());
}

#[test]
fn other_editors_keys_can_be_had() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    choose_preset(&mut window, "Obsidian");
    assert_eq!(settings(&window).keymap_preset, KeymapPreset::Obsidian);
    press(&mut window, CTRL, Key::P);
    window.get_by_label("Command palette");
    press(&mut window, NONE, Key::Escape);
    press(&mut window, CTRL, Key::O);
    window.get_by_label("Go to note");
}

fn fill(window: &mut Driven, label: &str, text: &str) {
    window.get_by_label(label).focus();
    window.run();
    press(window, CTRL, Key::A);
    type_text(window, text);
    press(window, NONE, Key::Enter);
}

#[test]
fn every_other_setting_is_set_and_found_by_its_words() {
    let bench = Bench::new(&[("One.md", "1\n"), ("Folder/Two.md", "2\n")]);
    let mut window = bench.opened();
    window.get_by_role_and_label(Role::TreeItem, "Folder").click();
    window.run();
    click(&mut window, "Settings");
    click(&mut window, "Notes and files");
    fill(&mut window, "Daily notes folder", "Log/");
    fill(&mut window, "Daily note names", "%d.%m.%Y");
    fill(&mut window, "Daily note template", "T/Day.md");
    fill(&mut window, "Templates folder", "T");
    fill(&mut window, "Attachment folder", "/Files/");
    window.get_by_label_contains("Today: ");
    click(&mut window, "Editor");
    window.get_by_role_and_label(Role::RadioButton, "New paragraph").click();
    window.run();
    click(&mut window, "Spelling");
    window.get_by_role_and_label(Role::Switch, "Check spelling").click();
    window.run();
    fill(&mut window, "Add a word", "huose");
    fill(&mut window, "Add a word", "wrod");
    click(&mut window, "Remove huose from the dictionary");
    assert_eq!(settings(&window).spelling_dictionary, ["wrod"]);
    click(&mut window, "Undo removal");
    assert_eq!(settings(&window).spelling_dictionary, ["huose", "wrod"]);
    assert!(window.query_by_label("Undo removal").is_none());
    click(&mut window, "Remove huose from the dictionary");
    click(&mut window, "Window and tree");
    window.get_by_role_and_label(Role::Switch, "Right panel").click();
    window.run();
    click(&mut window, "Increase left panel width");
    click(&mut window, "Decrease right panel width");
    click(&mut window, "Collapse all");
    click(&mut window, "Clear history");
    fill(&mut window, "Find a setting", "contrast");
    window.get_by_role_and_label(Role::Switch, "High contrast").click();
    window.run();
    assert!(window.query_by_label("Check spelling").is_none(), "only what was looked for is there");
    let set = settings(&window);
    assert_eq!(set.enter, engine::EnterInsertion::Paragraph);
    assert_eq!((set.daily_folder.as_str(), set.daily_format.as_str()), ("Log", "%d.%m.%Y"));
    assert_eq!((set.daily_template.as_str(), set.templates.as_str()), ("T/Day.md", "T"));
    assert_eq!(set.attachment_folder, "/Files");
    assert_eq!((set.spelling, set.spelling_dictionary), (false, vec!["wrod".to_owned()]));
    assert_eq!((set.right_open, set.left_panel_width, set.right_panel_width), (true, 260.0, 340.0));
    assert!(set.contrast && set.unfolded.is_empty() && set.recent.is_empty());
}

/// Serves two models, of which only one turns texts into vectors. Returns the server's address.
fn vector_server() -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    fn answer(mut stream: std::net::TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).ok()?;
        let lists = line.starts_with("GET /v1/models");
        while line.len() > 2 {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let texts = asked["input"].as_array().cloned().unwrap_or_default();
        let (status, body) = if lists {
            ("200 OK", json!({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}]}))
        } else if asked["model"] == "nomic-embed-text" {
            let vector = |text: &Value| {
                let bytes = text.as_str().unwrap_or_default().bytes();
                bytes.fold([1.0_f32; 4], |mut sum, byte| {
                    sum[usize::from(byte % 4)] += 1.0;
                    sum
                })
            };
            let data = texts.iter().enumerate().map(|(at, text)| json!({"index": at, "embedding": vector(text)}));
            ("200 OK", json!({"data": data.collect::<Vec<_>>()}))
        } else {
            ("400 Bad Request", json!({"error": "it has no vectors"}))
        };
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        write!(stream, "{head}{body}").ok()
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

#[test]
fn a_search_model_of_a_server_is_listed_tried_and_used() {
    let address = vector_server();
    let bench = Bench::new(&[("One.md", "The ship left the harbor.\n")]);
    let mut window = bench.opened();
    let shows = |window: &Driven, label: &str| window.query_all_by_label_contains(label).next().is_some();
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Search").click();
    window.run();
    window.get_by_role_and_label(Role::RadioButton, "Server").click();
    until(&mut window, "this machine was searched", |window| shows(window, "Look again"));
    fill(&mut window, "Address of a server", "127.0.0.1:1");
    until(&mut window, "it says why not", |window| shows(window, "127.0.0.1:1 cannot be reached"));
    fill(&mut window, "Address of a server", &address);
    until(&mut window, "its model is listed", |window| window.query_by_label("Use nomic-embed-text").is_some());
    assert!(window.query_by_label("Use qwen3").is_none(), "it isn't for search");
    click(&mut window, "Show other models");
    pictured(&mut window, "settings-search-model");
    click(&mut window, "Use qwen3");
    until(&mut window, "it is tried", |window| shows(window, "This model can't be used: the endpoint of"));
    assert_eq!(settings(&window).embedder, engine::Settings::default().embedder);
    click(&mut window, "Use nomic-embed-text");
    let used = format!("{address}/v1#nomic-embed-text");
    until(&mut window, "it is used", |window| settings(window).embedder == used);
    assert!(shows(&window, &format!("Sentence model: nomic-embed-text at {address}/v1.")));
    until(&mut window, "it has read the note", |window| shows(window, &format!("passages by {used}")));
    window.get_by_role_and_label(Role::RadioButton, "Embedded").click();
    until(&mut window, "the embedded one is used", |window| settings(window).embedder == "embedded");
}

#[test]
fn the_folder_of_a_search_model_is_chosen_and_tried() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let folder = bench.folder.path().join("no model");
    std::fs::create_dir(&folder).expect("a folder");
    let mut window = bench.opened();
    window.state_mut().use_folder_chooser(std::sync::Arc::new(move || PathChoice::Chosen(folder.clone())));
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Search").click();
    window.run();
    window.get_by_role_and_label(Role::RadioButton, "Folder").click();
    window.run();
    fill(&mut window, "Folder of the model", "models/mine");
    window.get_by_label("Give the whole path, beginning with / or ~.");
    click(&mut window, "Browse…");
    until(&mut window, "it is tried", |window| {
        window.query_all_by_label_contains("This model can't be used: ").next().is_some()
    });
    assert_eq!(settings(&window).embedder, engine::Settings::default().embedder, "nothing is used that doesn't work");
    fill(&mut window, "ONNX Runtime", "/nowhere/libonnxruntime.so");
    until(&mut window, "it is looked for", |window| {
        let why = "Needed for fastembed and folder models. There's no ONNX Runtime at /nowhere/libonnxruntime.so";
        window.query_all_by_label_contains(why).next().is_some()
    });
}

#[test]
fn a_removed_search_comes_back_in_its_place() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    let search = |name: &str| (name.to_owned(), format!("tag:{name}"));
    let searches = vec![search("boats"), search("rain")];
    let set = engine::Settings { searches: searches.clone(), ..settings(&window) };
    window.state_mut().send_command(Command::Set { settings: Box::new(set) });
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Search").click();
    window.run();
    click(&mut window, "Remove the search boats");
    assert_eq!(settings(&window).searches, [search("rain")]);
    window.get_by_label("Removed: boats: tag:boats");
    click(&mut window, "Undo removal");
    assert_eq!(settings(&window).searches, searches);
}

#[test]
fn volumes_have_a_page_for_what_the_configuration_says_of_them() {
    let bench = Bench::new(&[("One.md", "text\n")]);
    let mut window = bench.opened();
    let known = |window: &Driven| {
        let volume = session(window).volumes().next().expect("a volume").id;
        session(window).volume_config(volume).cloned().unwrap_or_default()
    };
    window.get_by_role_and_label(Role::TreeItem, "notes").click_secondary();
    window.run();
    click(&mut window, "Volume settings");
    click(&mut window, "Kind of notes: team");
    until(&mut window, "the kind is set", |window| known(window).kind.is_some());
    fill(&mut window, "Address of notes", "https://ada:secret@example.org/x.git");
    until(&mut window, "a password is refused", |window| {
        window.query_by_label_contains("A remote holds no password").is_some()
    });
    fill(&mut window, "Address of notes", "https://example.org/x.git");
    until(&mut window, "the remote is set", |window| known(window).remote.is_some());
    fill(&mut window, "Branch to clone of notes", "main");
    until(&mut window, "the branch is set", |window| known(window).branch.is_some());
    window.get_by_role_and_label(Role::Switch, "Make notes read-only").click_accesskit();
    until(&mut window, "it's read-only", |window| known(window).readonly);
    assert!(window.query_by_label_contains("A remote holds no password").is_none());
    press(&mut window, NONE, Key::Escape);
    let row = window.get_by_role_and_label(Role::TreeItem, "notes (read-only)");
    let about = row.accesskit_node().description().unwrap_or_default();
    assert!(about.starts_with("Volume of a team, https://example.org/x.git, branch main, read-only"), "{about}");
    // What was set is taken away again.
    window.get_by_role_and_label(Role::TreeItem, "notes (read-only)").click_secondary();
    window.run();
    click(&mut window, "Volume settings");
    click(&mut window, "Kind of notes: not set");
    until(&mut window, "the kind is gone", |window| known(window).kind.is_none());
    fill(&mut window, "Address of notes", " ");
    until(&mut window, "the remote is gone", |window| known(window).remote.is_none());
    let config = std::fs::read_to_string(bench.folder.path().join("workspace/config.yaml")).expect("written");
    assert!(config.contains("branch: main") && !config.contains("secret"), "{config}");
}

#[test]
fn devices_have_a_page_and_a_slip_is_told() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Devices").click();
    until(&mut window, "the list was read", |window| window.query_by_label("Show a code").is_some());
    window.get_by_label_contains("This device: ");
    pictured(&mut window, "settings-devices");
    // No device is searched for until the code is valid.
    window.get_by_label("Join with a code").focus();
    window.run();
    type_text(&mut window, "12-34");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is told", |window| window.query_by_label_contains("a code has eight digits").is_some());
    let typed = window.get_by_label("Join with a code").accesskit_node().value();
    assert_eq!(typed.as_deref(), Some("12-34"), "a slip can be corrected");
}

/// Saves screenshots of the settings for people to look at.
#[test]
fn pictures() {
    let Some(folder) = pictures_folder() else { return };
    let bench = Bench::new(&[("Rain.md", NOTE)]);
    let mut window = bench.opened();
    let picture = |window: &mut Driven, name: &str| picture(window, &folder, name);
    for theme in ["light", "dark"] {
        press(&mut window, CTRL_SHIFT, Key::L);
        click(&mut window, "Settings");
        picture(&mut window, &format!("{theme}-settings"));
        window.get_by_role_and_label(Role::Tab, "Keyboard shortcuts").click();
        window.run();
        click(&mut window, "Change the key of Save now");
        press(&mut window, CTRL, Key::P);
        picture(&mut window, &format!("{theme}-settings-keys"));
        press(&mut window, NONE, Key::Escape);
        press(&mut window, NONE, Key::Escape);
        press(&mut window, CTRL_SHIFT, Key::P);
        type_text(&mut window, "contrast");
        press(&mut window, NONE, Key::Enter);
        picture(&mut window, &format!("{theme}-contrast"));
        press(&mut window, CTRL_SHIFT, Key::P);
        type_text(&mut window, "contrast");
        press(&mut window, NONE, Key::Enter);
    }
}

/// Returns the status line of a request without a token.
fn status_without_token(address: &str) -> std::io::Result<String> {
    use std::io::{BufRead, BufReader, Write};
    let mut stream = std::net::TcpStream::connect(address)?;
    write!(stream, "GET /api/v1/volumes HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}

#[test]
fn the_server_for_other_programs_runs_while_it_is_switched_on() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    click(&mut window, "Settings");
    window.get_by_role_and_label(Role::Tab, "Other programs").click();
    window.run();
    let set_address = |window: &mut Driven, address: &str| {
        window.get_by_label("Server address").focus();
        window.run();
        press(window, CTRL, Key::A);
        type_text(window, address);
        press(window, NONE, Key::Enter);
    };
    let toggle = |window: &mut Driven| {
        window.get_by_role_and_label(Role::Switch, "Server for other programs").click();
        window.run();
    };
    let has = |window: &Driven, label: &str| window.query_all_by_label_contains(label).next().is_some();
    // Addresses that other machines reach need TLS, and names aren't addresses.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    set_address(&mut window, &taken.local_addr().expect("an address").to_string());
    toggle(&mut window);
    until(&mut window, "it's told", |window| has(window, "The server isn't running: "));
    assert!(has(&window, "in use"), "it says why");
    window.get_by_label("Try again");
    for wrong in ["0.0.0.0:0", "nowhere"] {
        set_address(&mut window, wrong);
        let reason = if wrong == "nowhere" { "wants ADDRESS:PORT" } else { "reachable from other machines" };
        until(&mut window, wrong, |window| has(window, "The server isn't running: ") && has(window, reason));
    }
    set_address(&mut window, "127.0.0.1:0");
    until(&mut window, "it runs", |window| has(window, "Running at: http://127.0.0.1:"));
    let row = window.query_all_by_label_contains("Running at: ").next().expect("a row").accesskit_node().value();
    let row = row.expect("an address");
    let address = row.rsplit_once("http://").expect("an address").1.to_owned();
    assert!(status_without_token(&address).expect("an answer").contains(" 401 "), "it serves nobody without a token");
    window.get_by_label("Open in browser").click();
    let page = format!("{address}/pair?code=");
    let opens = |command: &egui::OutputCommand| match command {
        egui::OutputCommand::OpenUrl(link) => link.url.contains(&page),
        _ => false,
    };
    until(&mut window, "the browser is paired", |window| window.output().platform_output.commands.iter().any(opens));
    toggle(&mut window);
    until(&mut window, "it has ended", |window| {
        status_without_token(&address).is_err() && !has(window, "Running at: ")
    });
    assert!(!settings(&window).serves_programs);

    // It begins with the window, and ends with it.
    toggle(&mut window);
    until(&mut window, "it runs again", |window| has(window, "Running at: http://127.0.0.1:"));
    until(&mut window, "all is saved", |window| session(window).is_saved());
    window.into_state().close().expect("all is saved");
    let socket = bench.folder.path().join("workspace/http.sock");
    let mut window = bench.opened();
    until(&mut window, "it runs with the window", |_| std::os::unix::net::UnixStream::connect(&socket).is_ok());
    drop(window);
    crate::program::until("the server ends", || std::os::unix::net::UnixStream::connect(&socket).is_err());
}
