//! A cell lacks a package, and the window sets up a Python that has it.

use super::*;
use crate::kernel::python_setup::{python_with_venv, variables_offline, variables_with_wheels};
use egui_kittest::kittest::NodeT;

/// A window in which the only cell has failed because of a missing module.
fn missing(module: &str) -> (Bench, Driven) {
    let bench = Bench::new(&[("Boats.md", &format!("```python\nimport {module}\nprint({module}.fleet)\n```\n"))]);
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the error is shown", |window| {
        window.query_by_label(&format!("{module} needs a full Python.")).is_some()
    });
    (bench, window)
}

fn open_setup(window: &mut Driven) {
    window.get_by_label("Set up Python… for cell 1").click();
    until(window, "it's known what would run", |window| window.query_by_label_contains("Commands: ").is_some());
}

fn pictured_once(window: &mut Driven, name: &str) {
    if let Some(folder) = pictures_folder() {
        picture(window, &folder, name);
    }
}

#[test]
fn a_missing_package_is_installed_after_a_click() {
    let Some((python, is_kernel)) = python_with_venv() else { return };
    let (bench, mut window) = missing("boats");
    pictured_once(&mut window, "python-missing");
    let variables = variables_with_wheels(&python, bench.folder.path());
    window.state_mut().use_setup_variables(variables);
    open_setup(&mut window);
    let commands = window.get_by_label_contains("Commands: ").accesskit_node().label().expect("a label");
    let environment = bench.notes().join(".venv");
    let made = format!("-m venv {}", environment.canonicalize().unwrap_or(environment.clone()).display());
    assert!(commands.contains(&made) && commands.contains(" ipykernel boats"), "{commands}");
    assert!(!environment.exists(), "nothing runs before the user says so");
    pictured_once(&mut window, "python-setup");
    window.get_by_label("Set up").click();
    until(&mut window, "programs run", |window| window.query_by_label_contains("Output: $ ").is_some());
    press(&mut window, NONE, Key::Escape);
    pictured_once(&mut window, "python-installing");
    until(&mut window, "the kernel is chosen", |window| {
        window.query_by_label("Python (boats) now runs this note’s cells.").is_some()
    });
    pictured_once(&mut window, "python-ready");
    assert!(text(&window).is_some_and(|text| text.contains("kernel: python3")), "{:?}", text(&window));
    window.get_by_label("Run the cell again").click();
    until(&mut window, "it has run", |window| {
        let note = session(window).note(window.state().note().expect("a note")).expect("it is open");
        let cell = note.cells().next().expect("a cell");
        note.latest_execution(cell).is_some_and(|run| run.status.is_final())
            && window.query_by_label_contains("needs a full Python").is_none()
    });
    if is_kernel {
        until(&mut window, "it prints", |window| window.query_by_label("3").is_some());
    }
}

#[test]
fn without_network_the_dialog_says_what_to_do() {
    let Some((python, _)) = python_with_venv() else { return };
    let (bench, mut window) = missing("boats");
    window.state_mut().use_setup_variables(variables_offline(&python, bench.folder.path()));
    open_setup(&mut window);
    window.get_by_label("Set up").click();
    until(&mut window, "it fails", |window| window.query_by_label("The package index can't be reached.").is_some());
    assert!(window.query_by_label_contains("Check the network connection").is_some());
    pictured_once(&mut window, "python-offline");
    assert!(!bench.notes().join(".venv").exists());
    window.get_by_label("Try again").click();
    until(&mut window, "it asks again", |window| window.query_by_label_contains("Commands: ").is_some());
    window.get_by_label("Set up").click();
    until(&mut window, "programs run", |window| window.query_by_label_contains("Output: $ ").is_some());
    window.get_by_label("Stop").click();
    until(&mut window, "it's stopped", |window| window.query_by_label("The setup was stopped.").is_some());
    assert!(!bench.notes().join(".venv").exists());
    click_label(&mut window, "Close");
    assert!(window.query_by_label("Set up Python").is_none());
}

#[test]
fn without_python_the_dialog_says_what_to_install() {
    let (bench, mut window) = missing("torch");
    let nowhere = bench.folder.path().join("nowhere");
    window.state_mut().use_setup_variables(vec![("PATH".to_owned(), nowhere.into())]);
    window.get_by_label("Set up Python… for cell 1").click();
    until(&mut window, "it's looked for", |window| {
        window.query_by_label("There's no Python on this computer.").is_some()
    });
    assert!(window.query_by_label("Set up").is_none() && window.query_by_label("Look again").is_some());
    pictured_once(&mut window, "python-none");
}

#[test]
fn a_kernel_that_is_there_is_offered() {
    let bench = Bench::new(&[("Boats.md", "```python\nimport boats\n```\n")]);
    let spec = bench.notes().join(".venv/share/jupyter/kernels/own/kernel.json");
    std::fs::create_dir_all(spec.parent().expect("a folder")).expect("made");
    let text = r#"{"argv": ["/bin/false"], "display_name": "Own Python", "language": "python"}"#;
    std::fs::write(spec, text).expect("written");
    let mut window = bench.opened();
    window.get_by_label("Run cell 1").click();
    until(&mut window, "the error is shown", |window| window.query_by_label("boats needs a full Python.").is_some());
    window.get_by_label("Set up Python… for cell 1").click();
    until(&mut window, "it's offered", |window| window.query_by_label("Use Own Python").is_some());
    // A folder that isn't an environment isn't changed.
    until(&mut window, "the folder is looked at", |window| {
        window.query_by_label_contains("but it's no Python environment").is_some()
    });
    pictured_once(&mut window, "python-offered");
    window.get_by_label("Use Own Python").click();
    // Cells could have written the environment, so it needs permission as everywhere.
    until(&mut window, "it has to be allowed", |window| window.query_by_label("Run the kernel own?").is_some());
}
