//! A note's packages in the window, with the real `python3 -m venv` and pip, an index that is a folder of wheels, and
//! the real environment kernel. If python3 has no venv, these tests say so and are skipped.

use super::kernel_forks::{click, pictured_dialog, runs_with_kernels, until_label};
use super::*;
use crate::kernel::python_setup::{python_with_venv, variables_offline, variables_with_wheels};
use egui_kittest::kittest::NodeT;
use engine::commands::CommandId;

const BOATS: &str = "---\nrequires-python: '>=3.9'\n---\n```python\nimport boats\nprint('boats', boats.fleet)\n```\n";

fn commands(window: &mut Driven) -> String {
    until(window, "it's known what would run", |window| window.query_by_label_contains("Commands: ").is_some());
    window.get_by_label_contains("Commands: ").accesskit_node().label().expect("a label")
}

#[test]
fn a_missing_package_is_added_to_the_environment_and_the_cell_runs() {
    let Some((python, _)) = python_with_venv() else { return };
    let kernels = tempfile::tempdir().expect("a folder");
    let test = "window::note_packages::a_missing_package_is_added_to_the_environment_and_the_cell_runs";
    if !runs_with_kernels(test, kernels.path()) {
        return;
    }
    let bench = Bench::new(&[("Boats.md", BOATS)]);
    let mut window = bench.opened();
    window.state_mut().use_setup_variables(variables_with_wheels(&python, bench.folder.path()));
    window.get_by_label("Run cell 1").click();
    until_label(&mut window, "Install packages… for cell 1");
    pictured(&mut window, "packages-missing");
    click(&mut window, "Install packages… for cell 1");
    let shown = commands(&mut window);
    assert!(shown.contains(" -m venv ") && !shown.contains("pip install"), "{shown}");
    assert!(window.query_by_label_contains("uses the network").is_some());
    assert!(!bench.notes().join("Boats.md.lock").exists(), "nothing runs before the user says so");
    click(&mut window, "Install");
    until_label(&mut window, "Run the cell again");
    click(&mut window, "Run the cell again");

    until_label(&mut window, "Add boats to the environment… for cell 1");
    pictured(&mut window, "package-missing");
    click(&mut window, "Add boats to the environment… for cell 1");
    let shown = commands(&mut window);
    assert!(shown.contains("pip install") && shown.contains("requirements.txt: boats"), "{shown}");
    pictured_dialog(&mut window, "packages");
    click(&mut window, "Install");
    until(&mut window, "programs run", |window| window.query_by_label_contains("Output: $ ").is_some());
    let ran = window.get_by_label_contains("Output: $ ").accesskit_node().label().expect("a label");
    let first = shown.lines().next().and_then(|line| line.strip_prefix("Commands: ")).expect("a command");
    assert!(ran.contains(first), "what was shown is what runs: {shown} | {ran}");
    pictured_dialog(&mut window, "packages-installing");
    until(&mut window, "it's ready", |window| window.query_by_label_contains("with boats==1.0 is ready.").is_some());
    pictured_dialog(&mut window, "packages-ready");
    let note = text(&window).expect("a note");
    assert!(note.contains("dependencies:\n  - boats\n"), "{note}");
    assert!(bench.file("Boats.md.lock").contains("\nboats==1.0\n"));
    click(&mut window, "Run the cell again");
    until_label(&mut window, "boats 3");
}

#[test]
fn packages_are_edited_and_what_fails_says_so_at_its_place() {
    let Some((python, _)) = python_with_venv() else { return };
    let kernels = tempfile::tempdir().expect("a folder");
    let test = "window::note_packages::packages_are_edited_and_what_fails_says_so_at_its_place";
    if !runs_with_kernels(test, kernels.path()) {
        return;
    }
    let bench = Bench::new(&[("a.md", "# A\n")]);
    let mut window = bench.opened();
    window.state_mut().use_setup_variables(variables_offline(&python, bench.folder.path()));
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::KernelPackages);
    until_label(&mut window, "It lists no packages yet. Add the first one.");
    assert!(window.query_by_label("Install").is_none());
    pictured_dialog(&mut window, "packages-none");
    // Using only the keyboard.
    for (typed, listed) in [("six", "Remove six"), ("boats>=1", "Remove boats>=1")] {
        type_text(&mut window, typed);
        press(&mut window, NONE, Key::Enter);
        until_label(&mut window, listed);
    }
    click(&mut window, "Remove six");
    assert!(window.query_by_label("Remove six").is_none());
    window.get_by_label("Package to add").focus();
    window.run();
    type_text(&mut window, "-r x");
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it's no name", |window| {
        window.query_by_label_contains("“-r x” isn't the name of a package").is_some()
    });
    commands(&mut window);
    click(&mut window, "Install");
    until(&mut window, "it isn't added", |window| window.query_by_label_contains("isn't added yet").is_some());
    window.get_by_label("Package to add").focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    press(&mut window, NONE, Key::Backspace);
    window.get_by_label("Python version").focus();
    window.run();
    type_text(&mut window, "9.9");
    until(&mut window, "there's none", |window| window.query_by_label_contains("There's no Python ==9.9.*").is_some());
    pictured_dialog(&mut window, "packages-no-python");
    assert!(window.query_by_label("Install").is_none() && window.query_by_label("Look again").is_some());
    press(&mut window, CTRL, Key::A);
    press(&mut window, NONE, Key::Backspace);

    commands(&mut window);
    click(&mut window, "Install");
    until(&mut window, "programs run", |window| window.query_by_label_contains("Output: $ ").is_some());
    press(&mut window, NONE, Key::Escape);
    click(&mut window, "Cancel");
    until_label(&mut window, "The setup was stopped.");
    click(&mut window, "Try again");
    commands(&mut window);
    click(&mut window, "Install");
    until_label(&mut window, "The package index can't be reached.");
    pictured_dialog(&mut window, "packages-offline");
    click(&mut window, "Close");
    assert_eq!(text(&window).as_deref(), Some("# A\n"), "what isn't installed isn't listed");
    assert!(!bench.notes().join("a.md.lock").exists());
}
