//! The science kernel from outside: what its cells ask for, requests besides running cells, and a stop by force.
//!
//! `TRACEBOOK_SCIENCE_KERNELS` names the folder of an installed pack. Without it these tests fail in CI and are skipped
//! elsewhere.

use super::asking::outcomes_of_input;
use super::{Kernel, check_warnings};
use crate::line::states::science_pack;
use crate::program::{House, finish};
use host::science_pack::PackFolder;
use serde_json::json;
use std::path::Path;

/// Starts the kernel of the pack that is installed in `kernels`, with a pack ID and more arguments, in a folder.
fn start(kernels: &Path, id: &str, more: &[&Path], folder: &Path) -> Kernel {
    let pack = PackFolder::at(kernels.join("science")).installed().expect("the pack is installed");
    let words: [&Path; 6] =
        ["kernel".as_ref(), "--science".as_ref(), "--pack".as_ref(), &pack.folder, "--pack-id".as_ref(), id.as_ref()];
    Kernel::with(&[&words[..], more].concat(), folder)
}

/// Starts the kernel of the installed pack in a folder below this one. It saves no states.
fn science_kernel(folder: &Path) -> Option<Kernel> {
    let kernels = science_pack()?;
    let (notes, scratch) = (folder.join("notes"), folder.join("scratch"));
    std::fs::create_dir(&notes).expect("made");
    Some(start(&kernels, "test", &["--scratch".as_ref(), &scratch], &notes))
}

#[test]
fn a_cell_of_science_asks_for_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    let [answered, ended, interrupted, again] = outcomes_of_input(&mut kernel);
    assert!(answered.ends_with("[1] ('Ada ☂', 'secret', 'more\\n')\nok"), "{answered}");
    assert!(ended.contains("EOFError: EOF when reading a line"), "{ended}");
    assert!(interrupted.contains("KeyboardInterrupt"), "{interrupted}");
    assert!(again.ends_with("'in time'\nok"), "{again}");
}

#[test]
fn each_run_of_a_cell_of_science_warns() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    check_warnings(&mut kernel);
}

const BOATS: &str = "import math
class Boat:
    'Floats.'
    mast = 1
    def sail(self, to, *, fast=False): 'Sails.'
    @property
    def loud(self): print('no')
boat = Boat()
boats = {'red': 1, 'blue': 2}
öl = 3
import pandas as pd
frame = pd.DataFrame({'price': [1, 2], 'count': [3, 4]})
text = 'x' * 500
class Bad:
    def __repr__(self): 1/0
bad = Bad()
_hidden = 1";

#[test]
fn science_computes_with_symbols_and_graphs() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    let code = "import networkx\nimport sympy\nx = sympy.symbols('x')\n\
                (str(sympy.diff(x**2, x)), networkx.path_graph(3).number_of_edges())";
    let outcome = kernel.run(code);
    assert!(outcome.ends_with("('2*x', 2)\nok"), "{outcome}");
}

#[test]
fn science_completes_inspects_and_lists_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    assert_eq!(kernel.run(BOATS), "ok");
    assert_eq!(kernel.offered("x = boa|"), (vec!["boat".into(), "boats".into()], 4, 7));
    for (code, names) in [
        ("boat.|", &["loud", "mast", "sail"][..]),
        ("boat.loud.|", &[]),
        ("boat.sail(fa|", &["fast="]),
        ("boats['b|", &["blue"]),
        ("frame.pri|", &["price"]),
        ("math.sqr|", &["sqrt"]),
        ("'boa|'", &[]),
        ("ö|", &["öl"]),
        ("import statis|", &["statistics"]),
        ("from math import sqr|", &["sqrt"]),
        ("nothing.|", &[]),
    ] {
        assert_eq!(kernel.offered(code).0, names, "{code}");
    }
    assert!(kernel.described("boat.sa|il(1)").contains("Sails."));
    assert!(kernel.described("boat.sail('a', |)").starts_with("boat.sail(to, *, fast=False)"));
    assert_eq!(kernel.described("öl|"), "öl: int = 3");
    assert_eq!(kernel.described("boat.loud|"), "nothing");
    assert!(kernel.described("len|").starts_with("len("));

    kernel.send("variables_request", json!({}));
    let reply = kernel.next("variables_reply");
    let rows = reply["variables"].as_array().expect("rows").clone();
    let row =
        |name: &str| rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_else(|| panic!("{name}: {rows:?}"));
    assert_eq!(row("öl"), json!({"name": "öl", "type": "int", "size": "", "value": "3"}));
    assert_eq!((&row("frame")["type"], &row("frame")["size"]), (&json!("DataFrame"), &json!("2 × 2")));
    assert!(row("text")["value"].as_str().is_some_and(|value| value.chars().count() < 130));
    assert_eq!(row("bad")["value"], "<ZeroDivisionError>");
    assert!(rows.iter().all(|row| !["_hidden", "pd", "math"].contains(&row["name"].as_str().unwrap_or(""))));
    assert_eq!(kernel.run("öl"), "[2] 3\nok", "a request isn't an execution");
}

#[test]
fn an_interrupt_stops_a_cell_that_has_not_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    assert_eq!(kernel.run("kept = 41"), "ok");
    let cells = ["while True: pass", "kept = -1\nwhile True: pass"].map(|code| kernel.execute(code));
    kernel.send("interrupt_request", json!({}));
    for cell in cells {
        let outcome = kernel.outcome(&cell);
        assert!(outcome.contains("KeyboardInterrupt"), "{outcome}");
    }
    assert!(kernel.run("kept + 1").ends_with(" 42\nok"));
}

/// A second interrupt stops a cell that ignores the first, and the variables before it are back.
#[test]
fn a_cell_that_ignores_interrupts_is_stopped_by_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    assert_eq!(kernel.run("kept = 41"), "ok");
    let deaf = "kept = -1\nwhile True:\n    try:\n        print('runs', flush=True)\n        while True: pass\n    \
                except KeyboardInterrupt: print('ignored', flush=True)";
    let id = kernel.execute(deaf);
    for word in ["runs", "ignored"] {
        let printed = kernel.next("stream");
        assert!(printed["text"].as_str().is_some_and(|text| text.contains(word)), "{printed}");
        kernel.send("interrupt_request", json!({}));
    }
    let outcome = kernel.outcome_after(&id);
    assert!(
        outcome.contains("KeyboardInterrupt: the cell was stopped by force; variables are as they were"),
        "{outcome}"
    );
    assert_eq!(kernel.run("kept + 1"), "[2] 42\nok");
}

#[test]
fn states_of_another_pack_version_are_reported_and_cells_run_again() {
    let Some(kernels) = science_pack() else { return };
    let note = "---\nkernel: science\n---\n```python\nx = 41\n```\n\n```python\nprint('x is', x)\n```\n";
    let house = House::with(&[("a.md", note)]);
    let run = |words: &[&str]| {
        let mut command = house.command(words);
        command.env("TRACEBOOK_KERNELS", &kernels);
        finish(command, b"")
    };
    assert_eq!(run(&["run", "a"]).good().text(), "x is 41\n");
    let states = std::fs::read_dir(house.path("W/states")).expect("states").flatten().next().expect("a note").path();
    let refused = "The saved variables could not be restored: they were saved by another version of the science pack. \
                   Run the cells again";
    // A program with another pack says so, starts over and saves its own state.
    let more: [&Path; 4] = ["--states".as_ref(), &states, "--scratch".as_ref(), &states];
    let mut other = start(&kernels, "other", &more, &house.path("notes"));
    let said = other.run("x = 7");
    assert!(said.contains(refused) && said.ends_with("\nok"), "{said}");
    assert_eq!(other.next("state_saved")["status"], "ok");
    drop(other);
    // So does this one with that state.
    let done = run(&["run", "a", "--cell", "2"]);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains(refused) && !said.contains("x is 7"), "{said}");
    assert_eq!(run(&["run", "a"]).good().text(), "x is 41\n");
}

/// Returning to earlier variables takes another instance, which can't open a granted folder that is gone.
#[test]
fn variables_stay_if_no_other_instance_can_be_started() {
    let Some(kernels) = science_pack() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let [notes, states, granted] = ["notes", "states", "granted"].map(|name| place.path().join(name));
    for folder in [&notes, &states, &granted] {
        std::fs::create_dir(folder).expect("made");
    }
    let with_grant: [&Path; 6] =
        ["--states".as_ref(), &states, "--scratch".as_ref(), &states, "--read".as_ref(), &granted];
    let own = &with_grant[..4];
    let all = "(sum(first), sum(second.values()), third)";
    let values = "(4999950000, 4999950000, 100000)\nok";

    let mut kernel = start(&kernels, "test", &with_grant, &notes);
    for code in ["first = list(range(100_000))", "second = {str(n): n for n in range(100_000)}"] {
        assert_eq!(kernel.run(code), "ok");
        assert_eq!(kernel.next("state_saved")["status"], "ok");
    }
    std::fs::remove_dir(&granted).expect("removed");
    kernel.send("state_request", json!({"move": "undo"}));
    assert_eq!(kernel.next("state_reply")["status"], "error");
    // The next cell's changes are saved to the state that wasn't undone.
    assert_eq!(kernel.run("third = len(second)"), "ok");
    assert_eq!(kernel.next("state_saved")["status"], "ok");
    drop(kernel);
    let mut kernel = start(&kernels, "test", own, &notes);
    let outcome = kernel.run(all);
    assert!(outcome.ends_with(values), "{outcome}");
    drop(kernel);

    // A cell that runs again needs the state before it. Its kernel ends, and the next one has what was saved.
    std::fs::create_dir(&granted).expect("made");
    let mut kernel = start(&kernels, "test", &with_grant, &notes);
    std::fs::remove_dir(&granted).expect("removed");
    kernel.send("execute_request", json!({"code": "first = 1", "cell": "cell 1", "silent": false, "after": []}));
    assert!(!kernel.ends().success());
    let mut kernel = start(&kernels, "test", own, &notes);
    let outcome = kernel.run(all);
    assert!(outcome.ends_with(values), "{outcome}");
}
