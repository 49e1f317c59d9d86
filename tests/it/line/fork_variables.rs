//! Variables in forks of a project, with the science pack's real kernel: a run works with a copy of them, which is
//! adopted as a fork of the note's variables or discarded.

use super::agents::house;
use super::forks::{edit, script};
use super::states::science_pack;
use crate::program::{Done, House, finish};
use serde_json::{Value, json};
use std::path::PathBuf;

const NOTE: &str = "---\nkernel: science\n---\n```python\nx = [1]\n```\n\n```python\nx.append(2)\n```\n\n\
                    ```python\nprint('x is', x)\n```\n";
const ASK: [&str; 7] = ["ask", "change it", "--fork", "try", "--approve", "run_cell", "--json"];

struct ForkedNote {
    house: House,
    pack: PathBuf,
}

impl ForkedNote {
    /// Returns a note whose cells have run, and a model that makes these calls.
    fn with(calls: Vec<(&'static str, Value)>) -> Option<ForkedNote> {
        let pack = science_pack()?;
        let house = house(&script(vec![("change it", calls)]), &[("a.md", NOTE)]);
        let forked = ForkedNote { house, pack };
        assert!(forked.run(&["run", "a"]).good().text().contains("x is [1, 2]"));
        Some(forked)
    }

    fn run(&self, words: &[&str]) -> Done {
        let mut command = self.house.command(words);
        command.env("TRACEBOOK_KERNELS", &self.pack);
        finish(command, b"")
    }

    /// Returns the number of notes that have saved states.
    fn notes_with_states(&self) -> usize {
        std::fs::read_dir(self.house.path("W/states")).expect("listed").count()
    }
}

fn run_cell(cell: usize) -> (&'static str, Value) {
    ("run_cell", json!({"path": "a.md", "cell": cell}))
}

fn results(lines: &[Value]) -> Vec<String> {
    lines.iter().filter(|line| line["type"] == "tool_result").map(ToString::to_string).collect()
}

#[test]
fn a_run_works_with_a_copy_of_the_variables_which_is_adopted_as_a_fork_of_theirs() {
    let calls = vec![run_cell(3), edit("a.md", "x.append(2)", "x.append(7)"), run_cell(2), run_cell(3)];
    let Some(forked) = ForkedNote::with(calls) else { return };
    let lines = forked.run(&ASK).good().lines();
    assert_eq!(lines[0]["variables"], 1, "{}", lines[0]);
    let said = results(&lines);
    assert!(said[0].contains("x is [1, 2]"), "the variables are there before any cell ran: {said:?}");
    // The cells above it count as run, so an edited one isn't applied to what the old one did.
    assert!(said[3].contains("x is [1, 7]"), "{said:?}");
    assert_eq!(forked.notes_with_states(), 2);
    assert!(forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 2]"), "the user's are as before");
    assert!(!forked.run(&["kernels", "states", "a"]).good().text().contains("[try]"));

    let adopted = forked.run(&["forks", "adopt", "try", "--json"]).good().json();
    assert_eq!(adopted["files"], json!(["a.md"]), "{adopted}");
    assert_eq!(adopted["variables"], json!([{"path": "a.md", "fork": "try", "problem": null}]));
    let again = forked.run(&["forks", "adopt", "try", "--json"]).good().json();
    assert_eq!(again["variables"], json!([]), "once is enough");
    let states = forked.run(&["kernels", "states", "a"]).good().text();
    assert!(states.contains("[try]") && states.contains("the current fork is main"), "{states}");
    // The run's step names the execution that left the state.
    let ran = lines.iter().rev().find(|line| line["type"] == "tool_result").expect("a result");
    let execution = &ran["usedTool"]["execution"];
    let states = forked.run(&["kernels", "states", "a", "--json"]).good().json();
    let states = states.as_array().expect("a list");
    assert!(execution.is_string() && states.iter().any(|state| state["execution"] == *execution), "{ran} {states:?}");
    let compared = forked.run(&["kernels", "compare", "a", "main", "try"]).good().text();
    assert!(compared.contains("differs: x"), "{compared}");
    assert!(
        forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 2]"),
        "not switched to by itself"
    );

    // The copy's states are deleted with it, and the note keeps what it has adopted.
    forked.run(&["forks", "discard", "try"]).good();
    assert_eq!(forked.notes_with_states(), 1);
    let switched = forked.run(&["kernels", "switch", "a", "--as", "try"]).good().text();
    assert!(switched.contains("after cell 3 ") && switched.contains("on try"), "{switched}");
    assert!(forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 7]"));
}

#[test]
fn a_discarded_copy_leaves_no_variables_and_too_large_ones_are_named() {
    let Some(forked) = ForkedNote::with(vec![run_cell(2)]) else { return };
    forked.run(&ASK).good();
    assert_eq!(forked.notes_with_states(), 2);
    let before = forked.run(&["kernels", "states", "a", "--json"]).good().json();
    forked.run(&["forks", "discard", "try"]).good();
    assert_eq!(forked.notes_with_states(), 1);
    assert_eq!(forked.run(&["kernels", "states", "a", "--json"]).good().json(), before);

    let config = String::from_utf8(forked.house.read("W/config.yaml")).expect("UTF-8");
    forked.house.write("W/config.yaml", format!("{config}kernels:\n  states_budget_mb: 0\n").as_bytes());
    let lines = forked.run(&ASK).good().lines();
    let left = lines[0]["left_out"]["variables"][0].as_str().unwrap_or_default();
    assert!(left.starts_with("a.md: they take ") && left.contains("at most 0 MB"), "{}", lines[0]);
    let shown = forked.run(&["forks", "show", "try"]).good().text();
    assert!(shown.contains("left out, variables of notes: a.md"), "{shown}");
}
