//! Test helpers for the window, driven by the names of its controls, on a real workspace in a temporary folder.

use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use engine::{Command, NotePhase, Session};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use window::AppWindow;

/// A window under test.
pub(super) type Driven = Harness<'static, AppWindow>;

pub(super) struct Bench {
    pub(super) folder: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new(files: &[(&str, &str)]) -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let file = folder.path().join("notes").join(path);
            std::fs::create_dir_all(file.parent().expect("a folder around it")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
        Bench { folder }
    }

    pub(super) fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    pub(super) fn window(&self) -> Driven {
        self.window_with(|_| ())
    }

    /// Opens the window on a workspace that `prepare` has changed first.
    pub(super) fn window_with(&self, prepare: impl FnOnce(&host::Driver)) -> Driven {
        window_on(&self.folder.path().join("workspace"), prepare)
    }
}

/// Opens the window on the workspace in this folder, which `prepare` has changed first.
pub(super) fn window_on(workspace: &Path, prepare: impl FnOnce(&host::Driver)) -> Driven {
    let options = host::WorkspaceOptions { program: program(), create: true };
    let driver = host::open_workspace(workspace, options).expect("a workspace");
    prepare(&driver);
    let mut harness = Harness::builder()
        .with_size(egui::vec2(1280.0, 800.0))
        // What works in the background, such as a kernel that starts, has the window drawn until it's done: for long on
        // a busy machine, but not endlessly.
        .with_max_steps(20_000)
        // Notes may have any characters; a real window loads glyphs from the system that the bundled fonts lack.
        .allow_missing_glyphs()
        .build_eframe(move |creation| AppWindow::new(&creation.egui_ctx, driver));
    harness.run();
    harness
}

pub(super) fn program() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_tracebook-under-test").or(option_env!("CARGO_BIN_EXE_winlab"));
    PathBuf::from(built.unwrap_or("tracebook"))
}

/// Returns what the window shows, for the messages of tests that wait in vain.
fn labels(harness: &Driven) -> String {
    use egui_kittest::kittest::NodeT;
    // Texts that are no controls have a value instead of a label.
    let labels = harness.query_all_by(|_| true).filter_map(|node| {
        let node = node.accesskit_node();
        node.label().or_else(|| node.value())
    });
    labels.map(|label| label.chars().take(200).collect::<String>()).take(200).collect::<Vec<_>>().join("\n")
}

/// Steps frames until a condition holds.
pub(super) fn until(harness: &mut Driven, what: &str, done: impl FnMut(&mut Driven) -> bool) {
    until_by_steps(harness, what, done, |harness| harness.step());
}

/// The same, where the window takes frames for shorter ones: what it shows for some seconds outlasts the wait for a
/// disk.
pub(super) fn until_slowly(harness: &mut Driven, what: &str, done: impl FnMut(&mut Driven) -> bool) {
    until_by_steps(harness, what, done, |harness| step_taking(harness, 0.02));
}

fn until_by_steps(
    harness: &mut Driven,
    what: &str,
    mut done: impl FnMut(&mut Driven) -> bool,
    step: impl Fn(&mut Driven),
) {
    let begun = Instant::now();
    // Long enough for busy machines. A shorter time helps when debugging.
    let patience = std::env::var("TRACEBOOK_PATIENCE").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(300);
    while !done(harness) {
        assert!(begun.elapsed() < Duration::from_secs(patience), "{what}; there is:\n{}", labels(harness));
        std::thread::sleep(Duration::from_millis(10));
        step(harness);
    }
    harness.run();
}

/// Steps a frame that the window takes for one of this time.
pub(super) fn step_taking(harness: &mut Driven, seconds: f64) {
    let time = harness.ctx.input(|input| input.time);
    harness.input_mut().time = Some(time + seconds);
    harness.step();
    harness.input_mut().time = None;
}

impl Bench {
    /// A window in which the volume is open and its first note is shown.
    pub(super) fn opened(&self) -> Driven {
        let mut harness = self.window();
        harness.state_mut().send_command(Command::OpenFolder { folder: self.notes(), name: None });
        until(&mut harness, "the first note is shown", |harness| text(harness).is_some());
        harness
    }

    pub(super) fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.notes().join(path)).expect("a file of text")
    }
}

pub(super) fn session(harness: &Driven) -> &Session {
    harness.state().session()
}

pub(super) fn text(harness: &Driven) -> Option<String> {
    let window = harness.state();
    let note = window.session().note(window.note()?)?;
    (note.phase == NotePhase::Ready).then(|| note.text())
}

pub(super) fn path(harness: &Driven) -> String {
    let window = harness.state();
    let place = window.note().and_then(|note| window.session().locate_file(note));
    place.expect("a note is shown").1.to_owned()
}

/// Chooses another editor's keymap in the settings.
pub(super) fn choose_preset(window: &mut Driven, name: &str) {
    press(window, CTRL_ALT, Key::K);
    window.get_by_role_and_label(Role::RadioButton, name).click();
    window.run();
    press(window, NONE, Key::Escape);
}

/// Chooses in the settings what Enter inserts.
pub(super) fn choose_enter(window: &mut Driven, name: &str) {
    window.get_by_label("Settings").click_accesskit();
    window.run();
    window.get_by_role_and_label(Role::Tab, "Editor").click();
    window.run();
    window.get_by_role_and_label(Role::RadioButton, name).click();
    window.run();
    press(window, NONE, Key::Escape);
}

/// Clicks the control with this label.
pub(super) fn click_label(harness: &mut Driven, label: &str) {
    harness.get_by_label(label).click();
    harness.run();
}

pub(super) fn press(harness: &mut Driven, modifiers: Modifiers, key: Key) {
    harness.key_press_modifiers(modifiers, key);
    harness.run();
}

pub(super) fn type_text(harness: &mut Driven, text: &str) {
    for letter in text.chars() {
        harness.event(egui::Event::Text(letter.to_string()));
    }
    harness.run();
}

/// The note's text with `|` at the caret.
pub(super) fn with_caret(harness: &Driven) -> String {
    let mut text = text(harness).expect("a note is shown");
    if let Some(caret) = harness.state().caret() {
        text.insert(caret, '|');
    }
    text
}

pub(super) const CTRL: Modifiers = Modifiers::COMMAND;
pub(super) const CTRL_ALT: Modifiers = Modifiers::COMMAND.plus(Modifiers::ALT);
pub(super) const CTRL_SHIFT: Modifiers =
    Modifiers { alt: false, ctrl: false, shift: true, mac_cmd: false, command: true };
pub(super) const NONE: Modifiers = Modifiers::NONE;

/// The folder for screenshots: `TRACEBOOK_PICTURES=FOLDER cargo test -p tests pictures`. `None` if it isn't set.
pub(super) fn pictures_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACEBOOK_PICTURES").map(PathBuf::from)?;
    std::fs::create_dir_all(&folder).expect("a folder");
    Some(folder)
}

/// Saves screenshots of the current view in both themes, if requested.
pub(super) fn pictured(window: &mut Driven, name: &str) {
    let Some(folder) = pictures_folder() else { return };
    // The themes are system, light and dark, from whichever is set.
    for _ in 0..3 {
        press(window, CTRL_SHIFT, Key::L);
        let theme = if window.ctx.global_style().visuals.dark_mode { "dark" } else { "light" };
        picture(window, &folder, &format!("{theme}-{name}"));
    }
}

/// Saves a screenshot of the window.
pub(super) fn picture(window: &mut Driven, folder: &Path, name: &str) {
    window.run_steps(3);
    let image = window.render().expect("a picture");
    image.save(folder.join(name).with_extension("png")).expect("a file");
}
