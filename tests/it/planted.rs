//! A Jupyter kernel among a user's notes doesn't run before the user has seen what it would start, nor after it has
//! changed. The kernels here are programs of a few lines that create a marker file when they run.

use crate::program::{Done, House, until};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const NOTE: &str = "---\nkernel: python3\n---\n\n```python\n1 + 1\n```\n";

/// Installs a program that creates a marker file as the kernel `python3` of an environment.
fn plant(house: &House, environment: &str, mark: &str) {
    let program = format!("{environment}/bin/python");
    house.write(&program, format!("#!/bin/sh\ntouch {}\n", house.path(mark).display()).as_bytes());
    fs::set_permissions(house.path(&program), fs::Permissions::from_mode(0o755)).expect("set");
    let argv = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"];
    let spec = json!({"argv": argv, "display_name": "Python 3", "language": "python"});
    house.write(&format!("{environment}/share/jupyter/kernels/python3/kernel.json"), spec.to_string().as_bytes());
}

/// Runs the note until the kernel has created its marker. The program isn't a real kernel, so the command is killed.
fn runs(house: &House, mark: &str) {
    let mut running = house.command(&["run", "n.md"]).spawn().expect("started");
    until("the kernel has run", || house.path(mark).exists());
    let _ = running.kill();
    let _ = running.wait();
}

/// The entry for `python3` in the output of `kernels`.
fn listed(house: &House) -> serde_json::Value {
    let listed = house.json(&["kernels", "n.md"]);
    let kernels = listed["kernels"].as_array().expect("a list");
    kernels.iter().find(|kernel| kernel["name"] == "python3").expect("it is listed").clone()
}

fn is_asked(done: &Done, path: &str) {
    assert_ne!(done.code, 0, "{done:?}");
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains(path) && said.contains("ipykernel_launcher"), "path and command are shown: {said}");
}

#[test]
fn a_kernel_among_the_notes_asks_with_path_and_command_and_again_when_it_changes() {
    let house = House::with(&[("n.md", NOTE)]);
    plant(&house, "notes/.venv", "ran");
    assert!(listed(&house)["doubt"].as_str().is_some_and(|why| why.contains("cells and agents can write")));
    for words in [
        &["run", "n.md"][..],
        &["run", "n.md", "--kernel", "python3"],
        &["kernels", "n.md", "--use", "python3"],
        &["kernels", "n.md", "--use", "python3", "--allow", "0123456789abcdef"],
        &["kernels", "n.md", "--use", "python3", "--allow", ""],
    ] {
        let done = house.run(words);
        if words.len() > 2 {
            is_asked(&done, ".venv/share/jupyter/kernels/python3/kernel.json");
        }
        assert!(!house.path("ran").exists(), "{words:?}: {done:?}");
    }
    // After the user allows it as shown, it runs.
    let allow = |house: &House| {
        let print = listed(house)["print"].as_str().expect("a print")[..16].to_owned();
        house.run(&["kernels", "n.md", "--use", "python3", "--allow", &print]).good();
    };
    allow(&house);
    runs(&house, "ran");
    // After any change the user is asked again.
    let kernel = "notes/.venv/share/jupyter/kernels/python3/kernel.json";
    let changes: &[&dyn Fn()] = &[
        &|| plant(&house, "notes/.venv", "evil"),
        &|| {
            let touch = format!("touch {}; : ipykernel_launcher", house.path("evil").display());
            let other = json!({"argv": ["/bin/sh", "-c", touch], "language": "python"});
            house.write(kernel, other.to_string().as_bytes());
        },
        &|| {
            plant(&house, "notes/.venv", "ran");
            house.write("notes/.venv/lib/python3/site-packages/sitecustomize.py", b"evil");
        },
        &|| {
            house.write("evil.sh", format!("#!/bin/sh\ntouch {}\n", house.path("evil").display()).as_bytes());
            fs::set_permissions(house.path("evil.sh"), fs::Permissions::from_mode(0o755)).expect("set");
            fs::remove_file(house.path("notes/.venv/bin/python")).expect("removed");
            symlink(house.path("evil.sh"), house.path("notes/.venv/bin/python")).expect("linked");
        },
    ];
    for (at, change) in changes.iter().enumerate() {
        change();
        let done = house.run(&["run", "n.md"]);
        assert!(!house.path("evil").exists(), "change {at}: {done:?}");
        is_asked(&done, kernel);
    }
}

#[test]
fn a_permission_by_name_holds_for_no_kernel_among_the_notes() {
    // The user has allowed a kernel of their own; then another one with the same name appears nearer to the note.
    let house = House::with(&[("n.md", NOTE), ("deep/er/m.md", NOTE)]);
    plant(&house, ".local", "own");
    house.run(&["kernels", "n.md", "--use", "python3"]).good();
    runs(&house, "own"); // without another word
    fs::remove_file(house.path("own")).expect("removed");
    plant(&house, "notes/venv", "evil");
    let done = house.run(&["run", "n.md"]);
    is_asked(&done, "notes/venv/share/jupyter/kernels/python3/kernel.json");
    assert!(!house.path("evil").exists() && !house.path("own").exists());
    // Earlier versions stored permissions by name alone.
    house.run(&["kernels", "deep/er/m.md", "--use", "embedded"]).good();
    let done = house.run(&["run", "deep/er/m.md", "--kernel", "python3"]);
    is_asked(&done, "notes/venv");
    assert!(!house.path("evil").exists());
}

#[test]
fn a_cell_plants_a_kernel_for_another_note() {
    let spec = json!({"argv": ["/bin/sh", "-c", "touch ../evil; : ipykernel_launcher"], "language": "python"});
    let plant = |folder: &str| {
        format!(
            "```python\nimport os\nos.makedirs('{folder}/kernels/python3')\n\
             open('{folder}/kernels/python3/kernel.json', 'w').write('{spec}')\n```\n"
        )
    };
    let notes = [("venv.md", plant(".venv/share/jupyter")), ("plant.md", plant("jupyter"))];
    let house = House::with(&[("n.md", NOTE), ("venv.md", &notes[0].1), ("plant.md", &notes[1].1)]);
    house.run(&["kernels", "n.md"]).good();
    // An environment beside the note is found automatically, so no cell may create one.
    let refused = house.run(&["run", "venv.md"]).code(1);
    assert!(refused.text().contains("Permission denied: '.venv'"), "{refused:?}");
    assert!(!house.path("notes/.venv").exists());
    // Elsewhere a cell may write files, but a kernel that it wrote needs permission.
    house.run(&["run", "plant.md"]).good();
    assert!(house.path("notes/jupyter/kernels/python3/kernel.json").exists(), "the cell wrote it");
    let mut command = house.command(&["run", "n.md", "--kernel", "python3"]);
    command.env("JUPYTER_PATH", house.path("notes/jupyter"));
    is_asked(&crate::program::finish(command, b""), "notes/jupyter/kernels/python3");
    assert!(!house.path("evil").exists());
}

#[test]
fn a_relative_path_or_jupyter_path_leads_to_nothing_among_the_notes() {
    let house = House::with(&[("n.md", NOTE)]);
    house.write("notes/python", format!("#!/bin/sh\ntouch {}\n", house.path("evil").display()).as_bytes());
    fs::set_permissions(house.path("notes/python"), fs::Permissions::from_mode(0o755)).expect("set");
    let spec = json!({"argv": ["./python", "-m", "ipykernel_launcher"], "language": "python"});
    house.write(".local/share/jupyter/kernels/python3/kernel.json", spec.to_string().as_bytes());
    // A program path relative to the note's folder isn't used, and neither are empty entries of `PATH`.
    let spec = json!({"argv": ["python", "-m", "ipykernel_launcher"], "language": "python"});
    house.write("notes/jupyter/kernels/python3/kernel.json", spec.to_string().as_bytes());
    let mut command = house.command(&["run", "n.md", "--kernel", "python3"]);
    command.env("PATH", ":.:/usr/bin:/bin").env("JUPYTER_PATH", house.path("notes/jupyter"));
    is_asked(&crate::program::finish(command, b""), "notes/jupyter/kernels/python3");
    assert!(!house.path("evil").exists());
}
