//! Environments of notes that list their packages, through the command line, with the real `python3 -m venv` and pip
//! and an index that is a folder of wheels. If python3 has no venv, these tests say so and are skipped.

use super::agents::{house, without_events};
use super::own_tools::one_call;
use crate::kernel::python_setup::{python_with_venv, variables_offline, variables_with_wheels};
use crate::program::{Done, House, finish};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOTE: &str = "# A\n\n```python\nimport boats\nprint('boats', boats.fleet)\n```\n";

struct Notes {
    house: House,
    variables: Vec<(String, OsString)>,
    offline: Vec<(String, OsString)>,
}

impl Notes {
    fn with(files: &[(&str, &str)]) -> Option<Notes> {
        let (python, _) = python_with_venv()?;
        let house = House::with(files);
        let variables = variables_with_wheels(&python, &house.path(""));
        let offline = variables_offline(&python, &house.path(""));
        Some(Notes { house, variables, offline })
    }

    fn run_with(&self, variables: &[(String, OsString)], words: &[&str]) -> Done {
        let mut command = self.house.command(words);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.env("TRACEBOOK_KERNELS", self.house.path("kernels"));
        finish(command, b"")
    }

    fn run(&self, words: &[&str]) -> Done {
        self.run_with(&self.variables, words)
    }

    fn note(&self, name: &str) -> String {
        String::from_utf8(self.house.read(&format!("notes/{name}"))).expect("text")
    }

    /// The number of environments on disk, complete or not.
    fn environments(&self) -> usize {
        self.house.path("kernels/environments").read_dir().map_or(0, Iterator::count)
    }
}

#[test]
fn packages_are_installed_locked_and_shared() {
    let Some(notes) = Notes::with(&[("a.md", NOTE), ("b.md", NOTE)]) else { return };
    let done = notes.run(&["run", "a"]);
    assert!(done.code == 1 && notes.environments() == 0, "{done:?}");
    let done = notes.run(&["kernels", "env", "a", "--add", "boats"]).good();
    let said = done.text();
    assert!(said.contains("Installing boats") && said.contains("pip install"), "what runs is shown: {said}");
    assert!(said.contains("with boats==1.0 is ready"), "{said}");
    assert!(notes.note("a.md").starts_with("---\ndependencies:\n  - boats\n---\n"), "{}", notes.note("a.md"));
    assert!(notes.note("a.md.lock").contains("\nboats==1.0\n"), "{}", notes.note("a.md.lock"));
    assert_eq!(notes.run(&["run", "a"]).good().text(), "boats 3\n");
    let listed = notes.run(&["kernels", "a"]).good().text();
    assert!(listed.contains("* environment") && listed.contains("kernels/environments/"), "{listed}");

    // A note with the same lock file shares the environment.
    let done = notes.run(&["kernels", "env", "b", "--add", "boats>=1", "--json"]).good().json();
    assert_eq!((&done["was_installed"], &done["packages"][0]), (&false.into(), &"boats==1.0".into()), "{done}");
    assert_eq!(notes.environments(), 1);
    let done = notes.run_with(&notes.offline, &["kernels", "env", "b", "--sync", "--json"]).good().json();
    assert_eq!(done["was_installed"], true, "{done}");
    assert_eq!(notes.run(&["run", "b"]).good().text(), "boats 3\n");

    // A missing environment is installed again from the lock file.
    std::fs::remove_dir_all(notes.house.path("kernels/environments")).expect("removed");
    let done = notes.run(&["run", "b"]);
    let told = format!("{}{}", done.text(), done.err);
    assert!(done.code == 1 && told.contains("aren't installed on this computer"), "{told}");
    let before = notes.note("b.md.lock");
    notes.run(&["kernels", "env", "b", "--sync"]).good();
    assert_eq!(notes.note("b.md.lock"), before);
    assert_eq!(notes.run(&["run", "b"]).good().text(), "boats 3\n");

    notes.run(&["kernels", "env", "a", "--remove", "Boats"]).good();
    assert!(
        !notes.note("a.md").contains("boats>") && !notes.note("a.md.lock").contains("=="),
        "{}",
        notes.note("a.md")
    );
}

/// A wheel whose `.pth` file runs code at each start of the environment's Python.
const MAKE_STARTING_WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/starts-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("starts.py", "x = 7\n")
    code = "try:\n    open(" + repr(sys.argv[2]) + ", 'a').write('outside')\nexcept OSError:\n    pass"
    wheel.writestr("starts.pth", "import os; exec(" + repr(code) + ")\n")
    info = "starts-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: starts\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    names = ["starts.py", "starts.pth", info + "METADATA", info + "WHEEL", info + "RECORD"]
    wheel.writestr(info + "RECORD", "".join(name + ",,\n" for name in names))
"#;

#[test]
fn what_a_package_runs_at_each_start_runs_behind_the_walls_only() {
    let code = "```python\nimport starts\nprint(starts.x)\n```\n";
    let Some(notes) = Notes::with(&[("a.md", code)]) else { return };
    let (python, _) = python_with_venv().expect("a Python");
    let mark = notes.house.path("mark");
    let made =
        Command::new(python).args(["-c", MAKE_STARTING_WHEEL]).arg(notes.house.path("wheels")).arg(&mark).status();
    assert!(made.expect("python").success());
    let said = notes.run(&["kernels", "env", "a", "--add", "starts"]).good().text();
    assert!(said.contains("with starts==1.0 is ready"), "{said}");
    assert!(notes.note("a.md.lock").contains("\nstarts==1.0\n"), "{}", notes.note("a.md.lock"));
    assert!(!mark.exists(), "the installation has run the package's code outside of the walls");
    assert_eq!(notes.run(&["run", "a"]).good().text(), "7\n");
    assert!(!mark.exists(), "a run has let the package's code out");
}

/// With the real uv, which `TRACEBOOK_UV` names (`.ci/run` brings it). Without it this fails in CI and is skipped
/// elsewhere.
#[test]
fn uv_installs_and_locks_with_hashes_where_it_is_found() {
    let uv = std::env::var_os("TRACEBOOK_UV");
    let is_ci = std::env::var_os("TRACEBOOK_CI").is_some();
    assert!(uv.is_some() || !is_ci, "TRACEBOOK_UV must name uv where TRACEBOOK_CI is set");
    let Some(uv) = uv else {
        eprintln!("skipped: TRACEBOOK_UV isn't set");
        return;
    };
    let Some(mut notes) = Notes::with(&[("a.md", NOTE)]) else { return };
    std::os::unix::fs::symlink(uv, notes.house.path("programs/uv")).expect("linked");
    // Packages come from the folder of wheels only.
    notes.variables.push(("UV_OFFLINE".to_owned(), "1".into()));
    let said = notes.run(&["kernels", "env", "a", "--add", "boats"]).good().text();
    for part in ["/uv venv ", "/uv pip compile ", "/uv pip install ", "with boats==1.0 is ready"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let lock = notes.note("a.md.lock");
    assert!(lock.contains("\nboats==1.0 \\\n    --hash=sha256:"), "{lock}");
    assert_eq!(notes.run(&["run", "a"]).good().text(), "boats 3\n");
    // From the lock file.
    std::fs::remove_dir_all(notes.house.path("kernels/environments")).expect("removed");
    let said = notes.run(&["kernels", "env", "a", "--sync"]).good().text();
    assert!(said.contains("/uv pip install ") && !said.contains("/uv pip compile "), "{said}");
    assert_eq!((notes.note("a.md.lock"), notes.run(&["run", "a"]).good().text()), (lock, "boats 3\n".to_owned()));
}

/// Creates an environment, whose Python the program doesn't find by itself.
fn make_environment(folder: &Path) -> PathBuf {
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(folder).output();
    let made = made.expect("there is a python3");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder.join("bin/python")
}

fn write_script(house: &House, name: &str, text: &str) -> PathBuf {
    house.write(name, text.as_bytes());
    let path = house.path(name);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    path
}

#[test]
fn any_interpreter_of_the_users_runs_a_note_for_which_it_is_chosen() {
    let text = "```python\nimport sys\nprint(sys.prefix)\n```\n";
    let house = House::with(&[("a.md", text), ("b.md", text)]);
    let python = make_environment(&house.path("elsewhere/env"));
    let python = python.to_str().expect("text");
    let prefix = "elsewhere/env\n";
    let choose = |note: &str, path: &str| house.run(&["kernels", note, "--use", "env", "--interpreter", path]);
    let said = choose("a", python).good().text();
    assert!(said.contains("* environment") && said.contains(&format!("runs {python}")), "{said}");
    assert!(house.run(&["run", "a"]).good().text().ends_with(prefix));
    // It's kept for this note, also when folders are granted, and for no other.
    house.run(&["grant", "a", "--network"]).good();
    house.run(&["grant", "a", "--none"]).good();
    assert!(house.run(&["run", "a"]).good().text().ends_with(prefix));
    house.run(&["kernels", "b", "--use", "env"]).good();
    let done = house.run(&["run", "b"]).code(1);
    assert!(format!("{}{}", done.text(), done.err).contains("no environment yet"), "{done:?}");
    // Its cells stay behind the walls.
    house.write("secret.txt", b"PRIVATE");
    house.write("notes/a.md", b"---\nkernel: env\n---\n```python\nopen('../secret.txt').read()\n```\n");
    let done = house.run(&["run", "a"]).code(1);
    assert!(done.text().contains("PermissionError") && !done.text().contains("PRIVATE"), "{done:?}");
    // A shim, such as those of pyenv, leads to the Python itself.
    let shim = write_script(&house, "shims/python", &format!("#!/bin/sh\nexec '{python}' \"$@\"\n"));
    let said = choose("b", shim.to_str().expect("text")).good().text();
    assert!(said.contains(&format!("runs {python}")), "{said}");
    assert!(house.run(&["run", "b"]).good().text().ends_with(prefix));
    // Without one, it's the note's own environment again.
    house.run(&["kernels", "b", "--use", "env"]).good();
    house.run(&["run", "b"]).code(1);
    std::fs::remove_dir_all(house.path("elsewhere")).expect("removed");
    let said = house.run(&["kernels", "a"]).good().text();
    assert!(said.contains("can't run yet: ") && said.contains("it's gone; choose another"), "{said}");
}

#[test]
fn what_is_no_interpreter_is_not_chosen() {
    let house = House::with(&[("a.md", "# A\n")]);
    make_environment(&house.path("notes/env"));
    house.write("plain.txt", b"text");
    write_script(&house, "old", "#!/bin/sh\nprintf '\\ttracebook\\t3\\t7\\t/usr/bin/python3.7\\n'\n");
    write_script(&house, "other", "#!/bin/sh\necho hello\n");
    for (path, why) in [
        ("nowhere/python", "there's no such program"),
        ("notes", "is a folder; name the Python in it"),
        ("plain.txt", "can't be started"),
        ("old", "is Python 3.7; cells need 3.9 or newer"),
        ("other", "isn't a Python that answers"),
        ("notes/env/bin/python", "is in a folder that cells and agents can write"),
    ] {
        house.run(&["kernels", "a", "--use", "env", "--interpreter", path]).refused(2, why);
    }
    for words in [&["kernels", "a", "--interpreter", "old"][..], &["kernels", "--use", "env", "--interpreter", "old"]] {
        house.run(words).refused(2, "--interpreter needs a note and --use env");
    }
    assert_eq!(house.read("notes/a.md"), b"# A\n");
}

#[test]
fn a_run_of_a_strangers_note_installs_nothing_and_names_the_command() {
    let listing = format!("---\ndependencies: [boats]\n---\n{NOTE}");
    let changed = format!("---\ndependencies: [boats, six]\n---\n{NOTE}");
    let Some(notes) = Notes::with(&[("c.md", &listing), ("d.md", &changed)]) else { return };
    let locked = "# python = 3.11\n# dependencies = [\"boats\"]\n--index-url http://127.0.0.1:9\nboats==1.0\n";
    notes.house.write("notes/d.md.lock", locked.as_bytes());
    for (note, why) in [("c", "(boats) aren't installed"), ("d", "line 3 isn't a package with its version")] {
        let done = notes.run(&["run", note]);
        let told = format!("{}{}", done.text(), done.err);
        assert!(done.code == 1 && told.contains(why), "{told}");
        assert!(told.contains(&format!("`tracebook kernels env {note}.md`")), "{told}");
    }
    let done = notes.run(&["kernels", "env", "d"]);
    assert!(done.code == 1 && done.err.contains("d.md.lock can't be used"), "{done:?}");
    assert_eq!(notes.environments(), 0);
}

#[test]
fn what_cant_be_installed_is_said_and_changes_nothing() {
    let Some(notes) = Notes::with(&[("a.md", NOTE), ("x.md", "---\na: [\n---\n# X\n")]) else { return };
    for (words, why) in [
        (&["a", "--add", "nope"][..], "There's no package nope"),
        (&["a", "--add", "http://x/boats.whl"], "isn't the name of a package"),
        (&["a", "--python", "3.1"], "There's no Python ==3.1.*"),
        (&["a", "--python", "newest"], "isn't a version of Python"),
        (&["a", "--remove", "boats"], "doesn't list boats"),
        (&["a", "--add", "boats", "--sync"], "give no --python, --add or --remove"),
        (&["a"], "lists no packages"),
        (&["x", "--add", "boats"], "front matter can't be read"),
    ] {
        let done = notes.run(&[&["kernels", "env"], words].concat());
        assert!(done.code != 0 && done.err.contains(why), "{words:?}: {done:?}");
    }
    let done = notes.run_with(&notes.offline, &["kernels", "env", "a", "--add", "six"]);
    assert!(done.code == 1 && done.err.contains("The package index can't be reached"), "{done:?}");
    assert_eq!(notes.note("a.md"), NOTE);
    assert!(!notes.house.path("notes/a.md.lock").exists());
    assert_eq!(notes.environments(), 0, "nothing half made stays");
}

#[test]
fn a_tool_runs_with_the_packages_that_it_lists() {
    let Some((python, _)) = python_with_venv() else { return };
    let house = house(&one_call("count_boats", json!({"more": 1})), &[("a.md", "# A\n")]);
    let variables = variables_with_wheels(&python, &house.path(""));
    let offline = variables_offline(&python, &house.path(""));
    let notes = Notes { house, variables, offline };
    let code = "# /// script\n# dependencies = [\n#   \"boats\", # ours\n# ]\n# ///\nimport boats, socket\n\n\
        @llm_tool(\"count_boats\", \"Counts boats.\", {\"more\": \"integer\"}, permissions=[\"fs\", \"process\"])\n\
        async def count(more):\n    try:\n        socket.create_connection((\"127.0.0.1\", 9))\n    \
        except OSError as error:\n        \
        return [boats.fleet + more, shell(\"echo ahoy\"), type(error).__name__]\n";
    notes.house.write("W/plugins/count_boats.py", code.as_bytes());
    let wrong = "# /// script\n# dependencies = boats\n# ///\n@llm_tool(\"wrong\", \"x\")\ndef wrong(): pass\n";
    notes.house.write("W/plugins/wrong.py", wrong.as_bytes());
    let said = notes.run(&["tools"]).code(0).err;
    assert!(said.contains("line 4: wrong: the packages of wrong can't be read: dependencies in the block"), "{said}");
    std::fs::remove_file(notes.house.path("W/plugins/wrong.py")).expect("removed");
    let ask = || {
        let steps = notes.run(&["ask", "go", "--approve", "count_boats", "--json"]).code(0).lines();
        let steps = without_events(steps);
        steps.last().and_then(|step| step["content"].as_str()).unwrap_or_default().to_owned()
    };
    // Nothing is installed for code that nobody has read, nor by a call.
    notes.run(&["tools", "count_boats", "--install"]).refused(2, "isn't approved");
    notes.run(&["tools", "count_boats", "--approve"]).good();
    let said = ask();
    assert!(said.contains("its packages (boats) aren't installed"), "{said}");
    assert!(said.contains("`tracebook tools count_boats --install`") && notes.environments() == 0, "{said}");

    let done = notes.run(&["tools", "count_boats", "--install"]).code(0).text();
    assert!(done.contains("pip install") && done.contains("with boats==1.0 is ready for count_boats"), "{done}");
    let lock = String::from_utf8(notes.house.read("W/plugins/count_boats.py.lock")).expect("text");
    assert!(lock.contains("\nboats==1.0\n"), "{lock}");
    assert_eq!(ask(), "[4, \"ahoy\\n\", \"PermissionError\"]");
    let shown = notes.run(&["tools", "count_boats"]).code(0);
    assert!(shown.text().contains("Packages, installed: boats==1.0") && !shown.err.contains(".lock"), "{shown:?}");
}
