//! Saved states that a note shares: its variables continue on another device, after the first one was stopped.

use super::{Two, now};
use crate::line::states::science_pack;
use crate::program::{Done, House, bytes, finish};
use std::collections::BTreeMap;

const NOTE: &str = "---\nkernel: science\n---\n# A\n\n```python\nsecret = 41\n```\n\n```python\nprint('secret is', \
                    secret + 1)\n```\n";

/// The files that the hub has.
fn files_of_hub(house: &House) -> BTreeMap<String, Vec<u8>> {
    let folder = house.path("H/volumes");
    if folder.is_dir() { bytes(&folder) } else { BTreeMap::new() }
}

/// Flips the last bit of each file that the hub has and `known` hasn't. Returns their number.
fn damage_new_files(house: &House, known: &BTreeMap<String, Vec<u8>>) -> usize {
    let new: Vec<String> = files_of_hub(house).into_keys().filter(|path| !known.contains_key(path)).collect();
    for path in &new {
        let path = house.path("H/volumes").join(path);
        let mut bytes = std::fs::read(&path).expect("there");
        *bytes.last_mut().expect("bytes") ^= 1;
        std::fs::write(&path, bytes).expect("damaged");
    }
    new.len()
}

#[test]
fn variables_continue_on_another_device_and_damaged_ones_are_refused() {
    let Some(pack) = science_pack() else { return };
    let both = Two::new(&[("a.md", NOTE)]);
    let run = |house: &House, words: &[&str]| -> Done {
        let mut command = house.command(words);
        command.env("TRACEBOOK_KERNELS", &pack);
        finish(command, b"")
    };
    run(&both.one, &["run", "a", "--cell", "1"]).code(0);
    both.settle();
    // Nothing goes before the user says so.
    let hub = || files_of_hub(&both.one);
    assert!(hub().is_empty(), "{:?}", hub().keys());
    run(&both.two, &["kernels", "restore", "a"]).refused(2, "no other device shares");
    assert!(run(&both.one, &["kernels", "share", "a"]).good().text().starts_with("shared"));
    assert!(run(&both.one, &["kernels", "states", "a"]).good().text().contains("shared: other devices"));
    both.settle();
    let first = hub();
    assert!(first.len() >= 2, "a state and its pages: {:?}", first.keys());
    // The first device isn't running. Pages come when a cell needs them, and not before.
    assert!(!both.two.path("W/states").exists());
    let done = run(&both.two, &["run", "a", "--cell", "2"]).code(0);
    let said = format!("{}{}", done.text(), done.err);
    assert!(said.contains("secret is 42") && said.contains("come from another device"), "{said}");
    let states = run(&both.two, &["kernels", "states", "a", "--json"]).good().json();
    assert_eq!(
        (states[0]["cell"].as_str(), states[1]["parent"].as_str()),
        (Some("cell 1"), states[0]["state"].as_str())
    );
    let cells = run(&both.two, &["cells", "a", "--json"]).good().json();
    assert_eq!(cells["cells"][1]["state"], states[1]["state"], "a run names the state that it left");
    // The second device shares nothing by itself.
    now(&both.two);
    assert_eq!(hub().len(), first.len());
    // Damaged on the way: they are refused in a sentence, and the variables that are here stay.
    run(&both.one, &["run", "a", "--cell", "1"]).code(0);
    now(&both.one);
    assert!(damage_new_files(&both.one, &first) > 0, "a new state went to the hub");
    assert!(first.keys().any(|path| !hub().contains_key(path)), "the hub deleted the state before, which nobody needs");
    now(&both.two);
    run(&both.two, &["kernels", "restore", "a"]).refused(1, "not all of them came from the other device");
    assert!(run(&both.two, &["kernels", "undo", "a"]).good().text().contains("after cell 1"));
    // Shared no longer: what is new stays here, and the hub deletes what it had, but no attachment.
    both.one.write("notes/picture.png", b"not a state");
    run(&both.one, &["kernels", "unshare", "a"]).good();
    run(&both.one, &["run", "a", "--cell", "2"]).code(0);
    both.settle();
    let left: Vec<Vec<u8>> = hub().into_values().collect();
    assert_eq!(left, [b"not a state".to_vec()]);
    run(&both.two, &["kernels", "restore", "a"]).refused(2, "no other device shares");
    // A hub that can't be reached is asked later.
    run(&both.one, &["kernels", "share", "a"]).good();
    now(&both.one);
    assert!(hub().len() > 1);
    both.one.run(&["sync", "pause"]).good();
    run(&both.one, &["kernels", "unshare", "a"]).good();
    assert!(hub().len() > 1, "sync is paused");
    both.one.run(&["sync", "resume"]).good();
    both.settle();
    assert_eq!(hub().into_values().collect::<Vec<_>>(), [b"not a state".to_vec()]);
}
