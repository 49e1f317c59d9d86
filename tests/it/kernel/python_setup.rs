//! A full Python that the program sets up, with the real `python3 -m venv` and pip, and an index that is a folder of
//! wheels or unreachable. If python3 has no venv, these tests say so and are skipped.

use crate::program::House;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python script that makes wheels: a Jupyter kernel that uses the installed ipykernel, and a package `boats`.
const MAKE_WHEELS: &str = r#"
import json, os, sys, zipfile

def wheel(name, files):
    info = f"{name}-1.0.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(os.path.join(sys.argv[1], f"{name}-1.0-py3-none-any.whl"), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)

argv = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
spec = json.dumps({"argv": argv, "display_name": "Python (boats)", "language": "python"})
kernel = {"ipykernel-1.0.data/data/share/jupyter/kernels/python3/kernel.json": spec}
try:
    import ipykernel
    kernel["installed.pth"] = os.path.dirname(os.path.dirname(ipykernel.__file__)) + "\n"
except ImportError:
    pass
wheel("ipykernel", kernel)
wheel("boats", {"boats.py": "fleet = 3\n"})
"#;

/// The path of a `python3` with venv and pip, and whether it has ipykernel. `None` if it has no venv.
pub(crate) fn python_with_venv() -> Option<(PathBuf, bool)> {
    let python = std::env::var_os("TRACEBOOK_IPYKERNEL").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let has = |module: &str| {
        let asked = Command::new(&python).args(["-c", &format!("import {module}")]).output();
        asked.is_ok_and(|done| done.status.success())
    };
    if !has("venv, ensurepip") {
        let ci = std::env::var_os("TRACEBOOK_CI").is_some();
        assert!(!ci, "venv must be there where TRACEBOOK_CI is set: {}", python.display());
        eprintln!("left out: {} has no venv", python.display());
        return None;
    }
    let is_kernel = has("ipykernel");
    Some((python, is_kernel))
}

/// Environment variables for setups with this Python whose packages come from a folder of wheels made here.
pub(crate) fn variables_with_wheels(python: &Path, folder: &Path) -> Vec<(String, OsString)> {
    let wheels = folder.join("wheels");
    std::fs::create_dir_all(&wheels).expect("a folder");
    let made = Command::new(python).args(["-c", MAKE_WHEELS]).arg(&wheels).status().expect("python");
    assert!(made.success());
    let mut variables = variables_on_path(python, folder);
    for name in ["PIP_NO_INDEX", "UV_NO_INDEX"] {
        variables.push((name.to_owned(), "1".into()));
    }
    for name in ["PIP_FIND_LINKS", "UV_FIND_LINKS"] {
        variables.push((name.to_owned(), wheels.clone().into()));
    }
    variables
}

/// Environment variables for setups with this Python and an unreachable index.
pub(crate) fn variables_offline(python: &Path, folder: &Path) -> Vec<(String, OsString)> {
    let mut variables = variables_on_path(python, folder);
    for (name, value) in
        [("PIP_INDEX_URL", "http://127.0.0.1:9/simple"), ("PIP_RETRIES", "1"), ("PIP_CONFIG_FILE", "/dev/null")]
    {
        variables.push((name.to_owned(), value.into()));
    }
    variables
}

/// A `PATH` whose only program is this Python.
fn variables_on_path(python: &Path, folder: &Path) -> Vec<(String, OsString)> {
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs).expect("a folder");
    let find = Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output().expect("python");
    let real = String::from_utf8(find.stdout).expect("a path");
    // A symlink would hide the environment that this Python belongs to.
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.trim());
    let program = programs.join("python3");
    std::fs::write(&program, script).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("executable");
    vec![("PATH".to_owned(), programs.into())]
}

fn run_with(house: &House, variables: &[(String, OsString)], words: &[&str]) -> crate::program::Done {
    let mut command = house.command(words);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    crate::program::finish(command, b"")
}

#[test]
fn the_command_line_sets_up_python_and_uses_it() {
    let Some((python, is_kernel)) = python_with_venv() else { return };
    let house = House::with(&[("Note.md", "```python\nimport boats\nprint(boats.fleet)\n```\n")]);
    let done = house.run(&["run", "Note.md"]);
    assert!(done.code != 0, "the built-in Python has no boats: {done:?}");
    let variables = variables_with_wheels(&python, &house.path(""));
    let done = run_with(&house, &variables, &["kernels", "Note.md", "--setup", "--package", "boats"]).good();
    let shown = done.text();
    assert!(shown.contains("-m venv ") && shown.contains("pip install"), "what runs is shown: {shown}");
    assert!(done.text().contains("* python3  Python (boats)"), "{}", done.text());
    assert!(String::from_utf8_lossy(&house.read("notes/Note.md")).contains("kernel: python3"));
    if is_kernel {
        assert_eq!(house.run(&["run", "Note.md"]).good().text(), "3\n");
    }
    // An existing environment isn't overwritten, because it could be the user's own.
    let done = run_with(&house, &variables, &["kernels", "Note.md", "--setup"]);
    assert!(done.code == 2 && done.err.contains("is there already"), "{done:?}");
}

#[test]
fn nothing_of_the_notes_runs_during_a_setup() {
    let Some((python, _)) = python_with_venv() else { return };
    let house = House::with(&[("Note.md", "```python\nimport boats\n```\n")]);
    // Python looks for modules in the folder that it starts in before it looks among its own.
    let seen = house.path("seen");
    let code = format!("open({:?}, 'w').write('it ran')\n", seen.display().to_string());
    for name in ["venv.py", "pip.py", "ensurepip.py", "logging.py", "subprocess.py", "shutil.py"] {
        house.write(&format!("notes/{name}"), code.as_bytes());
    }
    let variables = variables_with_wheels(&python, &house.path(""));
    let workspace = house.path("W").display().to_string();
    let words = ["kernels", "Note.md", "--setup", "--package", "boats", "--workspace", &workspace];
    let mut command = house.command(&words);
    command.envs(variables).current_dir(house.path("notes"));
    crate::program::finish(command, b"").good();
    assert!(!seen.exists(), "code of the notes ran outside of the walls");
    assert!(house.path("notes/.venv/pyvenv.cfg").exists());
}

#[test]
fn a_setup_without_network_says_so_and_leaves_nothing() {
    let Some((python, _)) = python_with_venv() else { return };
    let house = House::with(&[("Note.md", "```python\nimport boats\n```\n")]);
    let variables = variables_offline(&python, &house.path(""));
    let done = run_with(&house, &variables, &["kernels", "Note.md", "--setup", "--package", "boats"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("The package index can't be reached. Check the network"), "{}", done.err);
    assert!(!house.path("notes/.venv").exists());
    let done = house.run(&["kernels", "Note.md", "--setup", "--package", "--index-url=http://x"]);
    assert!(done.code == 2 || done.err.contains("isn't the name of a package"), "{done:?}");
}
