//! The Python that the user chooses for a note in the window, run by the real environment kernel.

use super::kernel_forks::{click, until_label};
use super::*;
use engine::KernelPhase;
use engine::commands::CommandId;
use host::desktop::PathChoice;
use std::path::Path;
use std::process::Command as Program;
use std::sync::Arc;

/// Creates an environment, whose Python the program doesn't find by itself.
fn make_environment(folder: &Path) -> PathBuf {
    let made = Program::new("python3").args(["-m", "venv", "--without-pip"]).arg(folder).status();
    assert!(made.is_ok_and(|made| made.success()), "there is a python3 with venv");
    folder.join("bin/python")
}

/// Opens the dialog by its row in the list of kernels.
fn open_dialog(window: &mut Driven) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelChoose);
    until_label(window, "Choose an interpreter…");
    click(window, "Choose an interpreter…");
    until_label(window, "Path of the interpreter");
}

fn is_open(window: &Driven) -> bool {
    window.query_by_label("Path of the interpreter").is_some()
}

fn chosen(window: &Driven) -> Option<PathBuf> {
    let note = window.state().note().expect("a note is shown");
    session(window).kernel_grant(note).interpreter
}

#[test]
fn an_interpreter_chosen_in_the_systems_dialog_runs_the_note() {
    let bench = Bench::new(&[("a.md", "```python\nimport sys\nprint(sys.prefix)\n```\n")]);
    let folder = tempfile::tempdir().expect("a folder");
    let (shared, python) =
        (make_environment(&bench.notes().join("env")), make_environment(&folder.path().join("data")));
    let mut window = bench.opened();

    // What cells could have changed isn't started, and the dialog stays.
    let browsed = shared.clone();
    window.state_mut().use_file_chooser(Arc::new(move |_: &Path| PathChoice::Chosen(browsed.clone())));
    open_dialog(&mut window);
    click(&mut window, "Browse…");
    let refused = "is in a folder that cells and agents can write";
    until(&mut window, refused, |window| window.query_by_label_contains(refused).is_some());
    assert!(is_open(&window) && chosen(&window).is_none());
    click(&mut window, "Cancel");

    let browsed = python.clone();
    window.state_mut().use_file_chooser(Arc::new(move |_: &Path| PathChoice::Chosen(browsed.clone())));
    open_dialog(&mut window);
    click(&mut window, "Browse…");
    until(&mut window, "the dialog is closed", |window| !is_open(window));
    assert_eq!(chosen(&window), Some(python.clone()));
    until(&mut window, "the note names its kernel", |window| {
        text(window).is_some_and(|text| text.contains("kernel: environment"))
    });
    window.get_by_label("Run cell 1").click();
    until_label(&mut window, &folder.path().join("data").display().to_string());
    until(&mut window, "the cell has ended", |window| {
        let note = window.state().note().and_then(|note| session(window).note(note));
        note.is_some_and(|note| note.kernel == KernelPhase::Idle)
    });

    // Without a path, it's the note's own environment again.
    open_dialog(&mut window);
    window.get_by_label("Path of the interpreter").focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    press(&mut window, NONE, Key::Backspace);
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "the dialog is closed", |window| !is_open(window));
    assert_eq!(chosen(&window), None);
}
