//! The science kernel through the command line: its variables outlive its process, and can be gone back to.
//!
//! `TRACEBOOK_SCIENCE_KERNELS` names the folder of an installed pack (`.ci/run` makes it). Without it these tests fail
//! in CI and are skipped elsewhere.

use crate::program::{Done, House, finish};
use serde_json::Value;
use std::path::PathBuf;

/// A note whose cells use pandas.
const NOTE: &str = "---\nkernel: science\n---\n# A\n\n```python\nimport pandas as pd\ndf = pd.DataFrame({'a': [1, 2, \
                    3]})\n```\n\n```python\ntotal = int(df.a.sum())\n```\n\n```python\nprint('total', total)\n```\n";

pub(super) fn science_pack() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACEBOOK_SCIENCE_KERNELS").map(PathBuf::from);
    assert!(
        folder.is_some() || std::env::var_os("TRACEBOOK_CI").is_none(),
        "TRACEBOOK_SCIENCE_KERNELS must name the folder of an installed pack where TRACEBOOK_CI is set"
    );
    if folder.is_none() {
        eprintln!("skipped: TRACEBOOK_SCIENCE_KERNELS doesn't name the folder of an installed pack");
    }
    folder
}

struct Science {
    house: House,
    pack: PathBuf,
}

impl Science {
    fn with(note: &str) -> Option<Science> {
        let pack = science_pack()?;
        Some(Science { house: House::with(&[("a.md", note)]), pack })
    }

    fn run(&self, words: &[&str]) -> Done {
        let mut command = self.house.command(words);
        command.env("TRACEBOOK_KERNELS", &self.pack);
        finish(command, b"")
    }

    fn states(&self) -> Vec<Value> {
        let said = self.run(&["kernels", "states", "a", "--json"]).good().json();
        said.as_array().expect("a list").clone()
    }
}

#[test]
fn variables_outlive_the_kernel_and_a_run_is_undone() {
    let Some(science) = Science::with(NOTE) else { return };
    let said = science.run(&["run", "a"]).good().text();
    assert!(said.contains("total 6"), "{said}");
    let states = science.states();
    assert_eq!(states.len(), 3, "{states:?}");
    assert_eq!(states[0]["defined"], serde_json::json!(["df", "pd"]));
    assert_eq!(states[1]["defined"], serde_json::json!(["total"]));
    assert_eq!(states[1]["parent"], states[0]["state"]);
    for key in ["cell", "bytes", "time"] {
        assert!(!states[2][key].is_null(), "{key}: {states:?}");
    }
    // Another process, and so another kernel.
    let said = science.run(&["run", "a", "--cell", "3"]).good().text();
    assert!(said.contains("total 6"), "{said}");
    let said = science.run(&["kernels", "undo", "a"]).good().text();
    assert!(said.contains("after cell 2"), "{said}");
    let said = science.run(&["kernels", "undo", "a"]).good().text();
    assert!(said.contains("after cell 1"), "{said}");
    let said = science.run(&["kernels", "redo", "a"]).good().text();
    assert!(said.contains("after cell 2"), "{said}");
    // By the beginning of its id.
    let first = states[0]["state"].as_str().expect("an id")[..8].to_owned();
    let said = science.run(&["kernels", "undo", "a", "--state", &first]).good().text();
    assert!(said.contains("after cell 1"), "{said}");
    science.run(&["kernels", "undo", "a", "--state", "nothing"]).refused(2, "there is no state nothing");
}

#[test]
fn a_fork_does_not_spoil_the_other() {
    let Some(science) = Science::with(NOTE) else { return };
    science.run(&["run", "a"]).good();
    let said = science.run(&["kernels", "fork", "a", "--as", "try"]).good().text();
    assert!(said.contains("on try"), "{said}");
    science.run(&["kernels", "fork", "a", "--as", "try"]).refused(1, "there is a fork \"try\" already");
    science.run(&["kernels", "fork", "a"]).refused(2, "--as NAME");
    science.run(&["kernels", "fork", "a", "--as", "../x"]).refused(1, "can't name a fork");
    science.run(&["kernels", "undo", "a"]).good();
    science.run(&["kernels", "discard", "a", "--as", "try"]).refused(1, "is the current fork");
    let said = science.run(&["kernels", "switch", "a", "--as", "main"]).good().text();
    assert!(said.contains("after cell 3") && said.contains("on main"), "{said}");
    let said = science.run(&["kernels", "adopt", "a", "--as", "try"]).good().text();
    assert!(said.contains("after cell 2") && said.contains("on main"), "{said}");
    science.run(&["kernels", "switch", "a", "--as", "try"]).refused(1, "there is no fork \"try\"");
}

#[test]
fn an_edited_cell_runs_in_the_state_above_it_and_what_is_below_follows() {
    let note = "---\nkernel: science\n---\n```python\nx = [1]\n```\n\n```python\nx.append(2)\n```\n\n```python\n\
                print('x is', x)\n```\n";
    let Some(science) = Science::with(note) else { return };
    assert!(science.run(&["run", "a"]).good().text().contains("x is [1, 2]"));
    // Once more: as from top to bottom, not on top of what it did before.
    science.run(&["run", "a", "--cell", "2"]).good();
    let said = science.run(&["run", "a", "--cell", "3"]).good().text();
    assert!(said.contains("x is [1, 2]"), "{said}");
}

#[test]
fn damaged_states_are_reported_and_the_note_runs_again() {
    let Some(science) = Science::with(NOTE) else { return };
    science.run(&["run", "a"]).good();
    let states = science.house.path("W/states");
    let note = std::fs::read_dir(&states).expect("states").flatten().next().expect("one note").path();
    for segment in std::fs::read_dir(note.join("segments")).expect("segments").flatten() {
        let mut bytes = std::fs::read(segment.path()).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(segment.path(), bytes).expect("damaged");
    }
    let done = science.run(&["run", "a", "--cell", "3"]);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("could not be restored") && said.contains("Run the cells again"), "{said}");
    let said = science.run(&["run", "a"]).good().text();
    assert!(said.contains("total 6"), "{said}");
}

#[test]
fn a_cell_of_the_science_kernel_stays_inside_its_walls() {
    let note = "---\nkernel: science\n---\n```python\nimport os\nfor path in ['/etc/passwd', '/note/../../etc/passwd', \
                os.path.expanduser('~/../W/lock')]:\n    try:\n        \
                print('read', path, len(open(path).read()))\n    \
                except OSError as error:\n        print('refused', path)\ntry:\n    import socket\n    \
                socket.create_connection(('127.0.0.1', 9), 1)\n    print('connected')\nexcept Exception:\n    \
                print('no network')\ntry:\n    os.system('true')\n    print('a process')\nexcept Exception:\n    \
                print('no process')\nopen('mine.txt', 'w').write('yes')\n```\n";
    let Some(science) = Science::with(note) else { return };
    let said = science.run(&["run", "a"]).good().text();
    assert_eq!(said.matches("refused").count(), 3, "{said}");
    assert!(said.contains("no network") && said.contains("no process"), "{said}");
    assert!(!said.contains("read /") && !said.contains("connected"), "{said}");
}

#[test]
fn a_cell_that_ends_python_loses_nothing() {
    let note = "---\nkernel: science\n---\n```python\nkept = 41\n```\n\n```python\nimport os\nos._exit(3)\n```\n\n\
                ```python\nprint('kept', kept + 1)\n```\n";
    let Some(science) = Science::with(note) else { return };
    let done = science.run(&["run", "a"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("variables are as they were before it"), "{said}");
    assert!(science.run(&["run", "a", "--cell", "3"]).good().text().contains("kept 42"));
}

#[test]
fn figures_of_matplotlib_are_data() {
    let note = "---\nkernel: science\n---\n```python\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 2]);\n```\n";
    let Some(science) = Science::with(note) else { return };
    let said = science.run(&["run", "a", "--json"]).good().text();
    assert!(said.contains("application/vnd.tracebook.figure+json") && said.contains("display_list"), "{said}");
    assert!(!science.house.path("notes/.matplotlib").exists(), "what it caches lies among the notes");
}

#[test]
fn a_loop_is_stopped_and_variables_stay() {
    let note = "---\nkernel: science\n---\n```python\nkept = 1\n```\n\n```python timeout=1\nwhile True:\n    kept += \
                1\n```\n\n```python\nprint('kept', kept)\n```\n";
    let Some(science) = Science::with(note) else { return };
    let done = science.run(&["run", "a"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("TimeLimit"), "{said}");
    assert!(science.run(&["run", "a", "--cell", "3"]).good().text().contains("kept 1"));
}
