//! The science kernel through the command line: its variables outlive its process, and earlier states can be restored.
//!
//! `TRACEBOOK_SCIENCE_KERNELS` names the folder of an installed pack (`.ci/run` makes it). Without it these tests fail
//! in CI and are skipped elsewhere.

use crate::program::{Done, House, finish};
use serde_json::Value;
use std::path::PathBuf;

/// A note whose cells use pandas.
const NOTE: &str = "---\nkernel: science\n---\n# A\n\n```python\nimport pandas as pd\ndf = pd.DataFrame({'a': [1, 2, \
                    3]})\n```\n\n```python\ntotal = int(df.a.sum())\n```\n\n```python\nprint('total', total)\n```\n";

pub(crate) fn science_pack() -> Option<PathBuf> {
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
    // Another process, with a new kernel.
    let said = science.run(&["run", "a", "--cell", "3"]).good().text();
    assert!(said.contains("total 6"), "{said}");
    let said = science.run(&["kernels", "undo", "a"]).good().text();
    assert!(said.contains("after cell 2"), "{said}");
    let said = science.run(&["kernels", "undo", "a"]).good().text();
    assert!(said.contains("after cell 1"), "{said}");
    let said = science.run(&["kernels", "redo", "a"]).good().text();
    assert!(said.contains("after cell 2"), "{said}");
    // Selects a state by the beginning of its id.
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
    // A fork of an earlier state, which the list shows as a line of its own.
    let first = science.states()[0]["state"].as_str().expect("an id").to_owned();
    let said = science.run(&["kernels", "fork", "a", "--as", "early", "--state", &first[..9]]).good().text();
    assert!(said.contains("after cell 1") && said.contains("on early"), "{said}");
    science.run(&["run", "a", "--cell", "2"]).good();
    let said = science.run(&["kernels", "states", "a"]).good().text();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with(&format!("o─╮ {}", &first[..10])), "{said}");
    assert!(lines.iter().any(|line| line.starts_with("* ") && line.contains("[early]")), "{said}");
    assert!(lines.iter().any(|line| line.starts_with("│ o ") && line.contains("cell 2")), "{said}");
    let states = science.states();
    let children = states.iter().filter(|state| state["parent"] == first.as_str()).count();
    assert_eq!(children, 2, "{states:?}");
}

#[test]
fn an_edited_cell_runs_in_the_state_above_it_and_what_is_below_follows() {
    let note = "---\nkernel: science\n---\n```python\nx = [1]\n```\n\n```python\nx.append(2)\n```\n\n```python\n\
                print('x is', x)\n```\n";
    let Some(science) = Science::with(note) else { return };
    assert!(science.run(&["run", "a"]).good().text().contains("x is [1, 2]"));
    // Running the cell again gives the result of a run from top to bottom, without applying it twice.
    let said = science.run(&["run", "a", "--cell", "2"]).good().text();
    assert!(said.contains("x is [1, 2]"), "the cell below it runs, too: {said}");
    // So does an edited one, in the default mode and with a limit of time.
    let edited = note.replace("x = [1]", "x = [7]");
    science.house.write("notes/a.md", edited.as_bytes());
    let said = science.run(&["run", "a", "--cell", "1"]).good().text();
    assert!(said.contains("x is [7, 2]"), "{said}");
    science.house.write("notes/a.md", edited.replace("append(2)", "append(8)").as_bytes());
    let said = science.run(&["run", "a", "--cell", "2", "--timeout", "100"]).good().text();
    assert!(said.contains("x is [7, 8]"), "{said}");
    // Their results are there afterwards, and none is out of date.
    let notebook = science.house.path("a.ipynb");
    science.run(&["export", "a", notebook.to_str().expect("UTF-8")]).good();
    let shown = String::from_utf8(science.house.read("a.ipynb")).expect("UTF-8");
    assert!(shown.contains("x is [7, 8]") && !shown.contains("Error"), "{shown}");
    let cells = science.run(&["cells", "a", "--json"]).good().json();
    assert!(cells["cells"].as_array().expect("cells").iter().all(|cell| cell["stale"].is_null()), "{cells}");
    // A cell that fails ends the command; what is below it doesn't keep a result of other variables.
    science.house.write("notes/a.md", edited.replace("append(2)", "append(1 / 0)").as_bytes());
    science.run(&["run", "a", "--cell", "1"]).code(1);
    let said = science.run(&["run", "a", "--cell", "1"]).text();
    assert!(!said.contains("x is"), "{said}");
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
fn states_are_thinned_to_a_budget_and_thinned_ones_are_made_again() {
    let mut note = "---\nkernel: science\n---\n".to_owned();
    for number in 1..=24 {
        // Each cell makes 400 kB that can't be compressed, and replaces those of the cell before.
        note += &format!(
            "```python\nimport os\nx{number} = {number}\nbig = os.urandom(400_000)\nseen = \
             globals().get('seen', []) + [{number}]\nprint('seen', seen)\n```\n\n"
        );
    }
    let Some(science) = Science::with(&note) else { return };
    science.house.write("W/config.yaml", b"kernels:\n  states_budget_mb: 12\n");
    science.run(&["run", "a", "--cell", "1"]).good();
    science.run(&["run", "a", "--cell", "2"]).good();
    let said = science.run(&["run", "a", "--cell", "3"]).good().text();
    assert!(said.contains("seen [1, 2, 3]"), "{said}");
    let third = science.states()[2]["state"].as_str().expect("an id").to_owned();
    let said = science.run(&["kernels", "pin", "a", &third[..9], "--name", "the third"]).good().text();
    assert!(said.starts_with("pinned "), "{said}");
    science.run(&["kernels", "pin", "a", "ffff"]).refused(2, "there is no state ffff");
    science.run(&["kernels", "pin", "a"]).refused(2, "which state?");
    science.run(&["kernels", "pin", "a", &third, "--name", "../x"]).refused(1, "can't name a state");
    science
        .run(&["kernels", "unpin", "a", &science.states()[0]["state"].as_str().expect("an id")[..9]])
        .refused(1, "isn't pinned");
    science.run(&["run", "a"]).good();
    let said = science.run(&["kernels", "states", "a"]).good().text();
    assert!(said.contains("(pinned: the third)") && said.contains("older states were thinned"), "{said}");
    assert!(said.contains(" of 12.0 MB; all notes: "), "{said}");
    let states = science.states();
    assert!(states.len() >= 8 && states.len() < 24, "{}", states.len());
    assert!(states.iter().any(|state| state["name"] == "the third" && state["pinned"] == true), "{said}");
    let used: f64 =
        said.split("uses ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a size").parse().expect("MB");
    assert!(used <= 12.0, "{said}");
    // Selects a state by its name, and restores its variables.
    let said = science.run(&["kernels", "undo", "a", "--state", "the third"]).good().text();
    assert!(said.contains("after cell 3"), "{said}");
    // The state above this cell was thinned: its variables are computed again, and the cells below follow.
    let cells: Vec<&str> = states.iter().filter_map(|state| state["cell"].as_str()).collect();
    let thinned = (5..20).find(|cell| !cells.contains(&format!("cell {cell}").as_str())).expect("a thinned one");
    science
        .run(&["kernels", "redo", "a", "--state", states[states.len() - 1]["state"].as_str().expect("an id")])
        .good();
    let done = science.run(&["run", "a", "--cell", &(thinned + 1).to_string()]).code(0);
    let said = format!("{}{}", done.text(), done.err);
    let line: Vec<String> = (1..=thinned + 1).map(|number| number.to_string()).collect();
    assert!(said.contains("thinned") && said.contains("ran again first"), "{said}");
    assert!(said.contains(&format!("seen [{}]", line.join(", "))), "{said}");
    science.run(&["kernels", "unpin", "a", "the third"]).good();
}

#[test]
fn two_states_are_compared_by_variable() {
    let note = "---\nkernel: science\n---\n```python\nimport pandas as pd\nimport numpy as np\nn = 1\nxs = [1, {'a': \
                2}]\ndf = pd.DataFrame({'a': [1, 2]})\nar = np.arange(6)\ndef f(x): return x\nold = 1\nclass C: \
                pass\nc = C()\n```\n\n```python\nn = 2\nxs.append(3)\ndf = pd.DataFrame({'a': [1, 2]})\nar[2] = \
                9\ndef f(x): return x\nnew = 'yes'\ndel old\n```\n";
    let Some(science) = Science::with(note) else { return };
    science.run(&["run", "a"]).good();
    let states = science.states();
    let ids: Vec<&str> = states.iter().map(|state| state["state"].as_str().expect("an id")).collect();
    let said = science.run(&["kernels", "compare", "a", ids[0], &ids[1][..8], "--json"]).good().json();
    let names = |key: &str| -> Vec<String> {
        let list = said[key].as_array().expect("a list").iter();
        list.map(|one| one["name"].as_str().or(one.as_str()).expect("a name").to_owned()).collect()
    };
    assert_eq!(names("only_a"), ["old"], "{said}");
    assert_eq!(names("only_b"), ["new"], "{said}");
    assert_eq!(names("differ"), ["ar", "n", "xs"], "{said}");
    assert_eq!([names("equal"), names("unclear")].concat(), ["C", "c", "df", "f"], "{said}");
    let said = science.run(&["kernels", "compare", "a", ids[0], "main"]).good().text();
    assert!(said.contains("differs: n: int 1 | int 2") && said.contains("only in "), "{said}");
    science.run(&["kernels", "compare", "a", ids[0]]).refused(2, "which states?");
    science.run(&["kernels", "compare", "a", ids[0], "zz"]).refused(2, "there is no state zz");
}

#[test]
fn a_note_may_keep_its_variables_to_itself() {
    let note = "---\nkernel: science\nstate: off\n---\n```python\nx = 41\n```\n\n```python\nprint('x is', x + \
                1)\n```\n";
    let Some(science) = Science::with(note) else { return };
    assert!(science.run(&["run", "a"]).good().text().contains("x is 42"));
    let said = science.run(&["kernels", "states", "a"]).good().text();
    assert!(said.contains("state: off"), "{said}");
    assert!(science.states().is_empty());
    science.run(&["kernels", "undo", "a"]).refused(2, "state: off");
    let states = science.house.path("W/states");
    for note in std::fs::read_dir(&states).into_iter().flatten().flatten() {
        for part in ["states", "segments", "heads", "index"] {
            assert!(!note.path().join(part).exists(), "{part} is there");
        }
    }
}

#[test]
fn a_full_disk_is_reported_and_cells_still_run() {
    let note = "---\nkernel: science\n---\n```python\nkept = 1\n```\n\n```python\nimport random\nbig = \
                random.Random(1).randbytes(60_000_000)\nprint('big is', len(big))\n```\n\n\
                ```python\nprint('kept', kept, 'big' in globals())\n```\n";
    let Some(science) = Science::with(note) else { return };
    std::fs::create_dir_all(science.house.path("W/states")).expect("made");
    // A disk of 24 MB that only these commands see.
    let program = crate::program::PROGRAM;
    let script = format!(
        "mount -t tmpfs -o size=24m tmpfs W/states || exit 77\n\
         {program} --workspace W run a\n{program} --workspace W kernels states a\n\
         {program} --workspace W run a --cell 3\n"
    );
    let mut command = std::process::Command::new("unshare");
    // The `--workspace` of `surround` becomes the shell's `$0` and `$1`.
    command.args(["-r", "-m", "sh", "-c", &script]);
    science.house.surround(&mut command, &[]);
    command.env("TRACEBOOK_KERNELS", &science.pack);
    let done = finish(command, b"");
    let said = format!("{}{}", done.text(), done.err);
    if done.code == 77 || said.contains("unshare:") {
        eprintln!("skipped: no disk can be mounted here: {said}");
        return;
    }
    assert!(said.contains("big is 60000000"), "{said}");
    assert!(said.contains("aren't saved") && said.contains("No space left"), "{said}");
    assert!(said.contains("cell 1") && said.contains("kept 1 False"), "{said}");
}

#[test]
fn hostile_files_of_states_are_reported_and_cells_run_anew() {
    let Some(science) = Science::with(NOTE) else { return };
    science.run(&["run", "a"]).good();
    let states = science.house.path("W/states");
    let note = std::fs::read_dir(&states).expect("states").flatten().next().expect("one note").path();
    let current = science.states()[2]["state"].as_str().expect("an id").to_owned();
    let state = note.join("states").join(&current);
    let good = std::fs::read(&state).expect("read");
    let damages: [&dyn Fn(); 5] = [
        &|| std::fs::write(&state, &good[..good.len() / 2]).expect("written"),
        &|| std::fs::write(&state, b"").expect("written"),
        &|| {
            std::fs::remove_file(&state).expect("removed");
            std::os::unix::fs::symlink("/dev/zero", &state).expect("linked");
        },
        &|| std::fs::write(note.join("heads"), b"{\"branch\": 7").expect("written"),
        &|| {
            std::fs::remove_file(note.join("heads")).expect("removed");
            std::os::unix::fs::symlink("/etc/passwd", note.join("heads")).expect("linked");
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let heads = std::fs::read(note.join("heads")).expect("read");
        damage();
        let done = science.run(&["run", "a", "--cell", "3"]);
        let said = format!("{}{}", done.text(), done.err);
        assert!(said.contains("could not be restored") && said.contains("Run the cells again"), "{number}: {said}");
        assert!(!said.contains("panicked"), "{number}: {said}");
        let said = science.run(&["run", "a"]).good().text();
        assert!(said.contains("total 6"), "{number}: {said}");
        // Restores the files for the next round.
        std::fs::remove_file(&state).ok();
        std::fs::write(&state, &good).expect("written");
        std::fs::remove_file(note.join("heads")).ok();
        std::fs::write(note.join("heads"), heads).expect("written");
    }
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

/// A script has its path, also after its variables were restored; cells of a note have relative paths.
#[test]
fn scripts_and_notes_find_files_beside_them() {
    let note = "---\nkernel: science\n---\n```python\nprint(open('data.txt').read(), __name__, '__file__' in \
                globals())\n```\n";
    let Some(science) = Science::with(note) else { return };
    science.house.write("notes/sub/data.txt", b"below");
    science.house.write("notes/data.txt", b"beside");
    assert_eq!(science.run(&["run", "a"]).good().text(), "beside __main__ False\n");
    let script = b"import pathlib\nhere = pathlib.Path(__file__)\nprint(here.name, (here.parent / \
                   'data.txt').read_text())\n";
    science.house.write("notes/sub/work.py", script);
    for _ in 0..2 {
        let said = science.run(&["run", "sub/work.py", "--kernel", "science"]).good().text();
        assert_eq!(said, "work.py below\n");
    }
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
fn the_null_device_is_empty_and_takes_everything() {
    let code = "import contextlib, os, pathlib\nwith open(os.devnull, 'w') as null, \
                contextlib.redirect_stdout(null):\n    print('hidden')\n\
                wrote = pathlib.Path('/dev/null').write_bytes(b'abc')\n\
                print(repr(open('/dev/null').read()), wrote, null.closed)";
    let again = "print(open(os.devnull, 'rb').read())\nopen('/dev/null', 'x')";
    let note = format!("---\nkernel: science\n---\n```python\n{code}\n```\n\n```python\n{again}\n```\n");
    let Some(science) = Science::with(&note) else { return };
    assert_eq!(science.run(&["run", "a", "--cell", "1"]).good().text().trim(), "'' 3 True");
    // In a new process, from its saved state.
    let done = science.run(&["run", "a", "--cell", "2"]).code(1);
    assert!(done.text().starts_with("b''") && done.text().contains("FileNotFoundError"), "{}", done.text());
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
fn figures_of_seaborn_are_data() {
    let note = "---\nkernel: science\n---\n```python\nimport pandas as pd\nimport seaborn as sns\n\
                frame = pd.DataFrame({'dose': [1, 2, 3, 4] * 2, 'effect': [1, 3, 2, 5, 2, 4, 4, 6], \
                'group': list('aaaabbbb')})\n\
                sns.scatterplot(data=frame, x='dose', y='effect', hue='group');\n```\n";
    let Some(science) = Science::with(note) else { return };
    let said = science.run(&["run", "a", "--json"]).good().text();
    assert!(said.contains("application/vnd.tracebook.figure+json") && said.contains("display_list"), "{said:.2000}");
    assert!(said.contains("image/png"), "{said:.2000}");
}

/// Files that were open are open again where they were. One that's gone is closed, so that no other is taken for it.
#[test]
fn open_files_are_open_again_after_a_restore() {
    let note = "---\nkernel: science\n---\n```python\nlog = open('log.txt', 'a')\nlog.write('one\\n')\n\
                lines = open('lines.txt', 'rb', buffering=0)\nprint(lines.read(4))\n```\n\n```python\n\
                log.write('two\\n')\nlog.flush()\nprint(lines.read(4), lines.tell(), \
                open('log.txt').read().split())\n```\n\n```python\nother = open('log.txt')\n\
                try: print(lines.read(4))\nexcept ValueError as error: print(error)\n\
                log.write('three\\n')\nlog.close()\nprint(other.read().split())\n```\n";
    let Some(science) = Science::with(note) else { return };
    science.house.write("notes/lines.txt", b"one\ntwo\nthree\n");
    assert_eq!(science.run(&["run", "a", "--cell", "1"]).good().text(), "b'one\\n'\n");
    // Each command is a process of its own.
    let said = science.run(&["run", "a", "--cell", "2"]).good().text();
    assert_eq!(said, "b'two\\n' 8 ['one', 'two']\n");
    std::fs::remove_file(science.house.path("notes/lines.txt")).expect("removed");
    let done = science.run(&["run", "a", "--cell", "3"]).code(0);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("Files that were open are closed now: /note/lines.txt."), "{said}");
    assert!(said.contains("I/O operation on closed file\n['one', 'two', 'three']\n"), "{said}");
    assert_eq!(science.house.read("notes/log.txt"), b"one\ntwo\nthree\n");
}

/// SQLite opens its files itself. After a restore it has them again, also within a transaction, unless somebody has
/// changed them. Then it can't write, least of all into another file that would have got the same descriptor.
#[test]
fn databases_are_open_again_after_a_restore_unless_they_changed() {
    let note = "---\nkernel: science\n---\n```python\nimport sqlite3\ndb = sqlite3.connect('rooms.db')\n\
                db.execute('create table room (name)')\n```\n\n```python\n\
                other = open('other.csv', 'w')\ndb.execute(\"insert into room values ('Lab')\")\nother.write('a,b')\n\
                ```\n\n```python\ndb.commit()\nother.close()\nprint(open('other.csv').read(), *db.execute(\
                'select * from room'))\n```\n\n```python\nother = open('other.csv', 'w')\n\
                try:\n    db.execute(\"insert into room values ('Hall')\")\n    db.commit()\n\
                except sqlite3.Error:\n    print('refused')\n\
                other.write('c,d')\nother.close()\nprint(open('other.csv').read())\n```\n\n```python\n\
                db.close()\nagain = sqlite3.connect('rooms.db')\nprint(*again.execute('select * from room'))\n```\n";
    let Some(science) = Science::with(note) else { return };
    // Each command is a process of its own.
    let run = |cell: &str| science.run(&["run", "a", "--cell", cell]);
    run("1").good();
    run("2").good();
    assert_eq!(run("3").good().text(), "a,b ('Lab',)\n");
    let whole = science.house.read("notes/rooms.db");
    let mut changed = whole.clone();
    changed.extend([0; 4096]);
    science.house.write("notes/rooms.db", &changed);
    let done = run("4").code(0);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("refused\nc,d\n"), "{said}");
    assert!(said.contains("Files that were open are closed now: /note/rooms.db."), "{said}");
    assert_eq!(science.house.read("notes/rooms.db"), changed);
    science.house.write("notes/rooms.db", &whole);
    assert_eq!(run("5").good().text(), "('Lab',)\n");
}

#[test]
fn a_loop_is_stopped_and_variables_stay() {
    let note = "---\nkernel: science\n---\n```python\nkept = 1\n```\n\n```python timeout=1\nwhile True:\n    kept += \
                1\n```\n\n```python\nprint('kept', kept)\n```\n";
    let Some(science) = Science::with(note) else { return };
    let done = science.run(&["run", "a"]).code(1);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("TimeLimit"), "{said}");
    let kept = science.run(&["run", "a", "--cell", "3"]).good().text();
    let kept = kept.trim().strip_prefix("kept ").and_then(|kept| kept.parse::<u64>().ok());
    assert!(kept > Some(1), "what it did before it was stopped holds: {kept:?}");
}

#[test]
fn a_stopped_cell_ends_as_keyboard_interrupt() {
    let caught =
        "try:\n    while True:\n        kept += 1\nexcept KeyboardInterrupt:\n    kept = -1\n    print('cleaned up')";
    let cell = |info: &str, code: &str| format!("```python {info}\n{code}\n```\n\n");
    let cells = [
        cell("", "kept = 1"),
        cell("timeout=1", caught),
        cell("timeout=1", "import time\ntime.sleep(60)"),
        cell("", "print('kept', kept)"),
    ];
    let note = &format!("---\nkernel: science\n---\n{}", cells.concat());
    let Some(science) = Science::with(note) else { return };
    science.run(&["run", "a", "--cell", "1"]).good();
    let caught = science.run(&["run", "a", "--cell", "2"]);
    let said = format!("{}{}", caught.text(), caught.err);
    assert!(said.contains("cleaned up"), "{said}");
    let slept = science.run(&["run", "a", "--cell", "3"]);
    let said = format!("{}{}", slept.text(), slept.err);
    assert!(said.contains("TimeLimit") && !said.contains("by force"), "{said}");
    assert!(science.run(&["run", "a", "--cell", "4"]).good().text().contains("kept -1"));
}
