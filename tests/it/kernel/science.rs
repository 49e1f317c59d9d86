//! The science kernel from outside: what its cells ask for, requests besides running cells, and a stop by force.
//!
//! `TRACEBOOK_SCIENCE_KERNELS` names the folder of an installed pack. Without it these tests fail in CI and are skipped
//! elsewhere.

use super::Kernel;
use crate::line::states::science_pack;
use host::science_pack::PackFolder;
use serde_json::json;
use std::path::Path;

/// Starts the kernel of the installed pack in a folder below this one. It saves no states.
fn science_kernel(folder: &Path) -> Option<Kernel> {
    let pack = PackFolder::at(science_pack()?.join("science")).installed().expect("the pack is installed");
    let (notes, scratch) = (folder.join("notes"), folder.join("scratch"));
    std::fs::create_dir(&notes).expect("made");
    let words: [&Path; 8] = [
        "kernel".as_ref(),
        "--science".as_ref(),
        "--pack".as_ref(),
        &pack.folder,
        "--pack-id".as_ref(),
        "test".as_ref(),
        "--scratch".as_ref(),
        &scratch,
    ];
    Some(Kernel::with(&words, &notes))
}

#[test]
fn a_cell_of_science_asks_for_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut kernel) = science_kernel(folder.path()) else { return };
    let cell =
        "name = input('Who? ')\nimport getpass, sys\nword = getpass.getpass()\n(name, word, sys.stdin.readline())";
    let id = kernel.execute(cell);
    assert_eq!(kernel.next("input_request"), json!({"prompt": "Who? ", "password": false}));
    kernel.send("input_reply", json!({"value": "Ada ☂"}));
    assert_eq!(kernel.next("input_request"), json!({"prompt": "Password: ", "password": true}));
    kernel.send("input_reply", json!({"value": "secret"}));
    assert_eq!(kernel.next("input_request"), json!({"prompt": "", "password": false}));
    kernel.send("input_reply", json!({"value": "more"}));
    let outcome = kernel.outcome_after(&id);
    assert!(outcome.ends_with("[1] ('Ada ☂', 'secret', 'more\\n')\nok"), "{outcome}");
    // End of input raises Python's EOFError.
    let id = kernel.execute("input('more? ')");
    kernel.next("input_request");
    kernel.send("input_reply", json!({"value": "\u{4}"}));
    assert!(kernel.outcome_after(&id).contains("EOFError: EOF when reading a line"));
    // Interrupted while it waits for input: a late answer doesn't go to the next cell.
    let id = kernel.execute("input('never ')");
    kernel.next("input_request");
    kernel.send("interrupt_request", json!({}));
    assert!(kernel.outcome_after(&id).contains("KeyboardInterrupt"));
    kernel.send("input_reply", json!({"value": "late"}));
    let id = kernel.execute("input('again ')");
    kernel.next("input_request");
    kernel.send("input_reply", json!({"value": "in time"}));
    let outcome = kernel.outcome_after(&id);
    assert!(outcome.ends_with("'in time'\nok"), "{outcome}");
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
