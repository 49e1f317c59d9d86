//! Variables of agents' runs, with the science pack's real kernel. In a fork of a project, a run works with a copy of
//! them, which is adopted as a fork of the note's variables or discarded. Without one, it works in a fork of them.

use super::agents::house;
use super::forks::{edit, script};
use super::states::science_pack;
use crate::program::{Done, House, finish, until};
use serde_json::{Value, json};
use std::path::PathBuf;

const NOTE: &str = "---\nkernel: science\n---\n```python\nx = [1]\n```\n\n```python\nx.append(2)\n```\n\n\
                    ```python\nprint('x is', x)\n```\n";
const ASK: [&str; 7] = ["ask", "change it", "--fork", "try", "--approve", "run_cell", "--json"];
const ASK_PLAIN: [&str; 7] = ["ask", "change it", "--approve", "run_cell", "--approve", "edit_file", "--json"];

struct ForkedNote {
    house: House,
    pack: PathBuf,
}

impl ForkedNote {
    /// Returns a note whose cells have run, and a model that makes these calls.
    fn with(calls: Vec<(&'static str, Value)>) -> Option<ForkedNote> {
        ForkedNote::of(NOTE, calls)
    }

    fn of(note: &str, calls: Vec<(&'static str, Value)>) -> Option<ForkedNote> {
        let pack = science_pack()?;
        let house = house(&script(vec![("change it", calls)]), &[("a.md", note)]);
        let forked = ForkedNote { house, pack };
        assert!(forked.run(&["run", "a"]).good().text().contains("x is [1, 2]"));
        Some(forked)
    }

    fn run(&self, words: &[&str]) -> Done {
        let mut command = self.house.command(words);
        command.env("TRACEBOOK_KERNELS", &self.pack);
        finish(command, b"")
    }

    /// Returns the forks of the note's variables that are named after sessions.
    fn session_forks(&self) -> Vec<String> {
        let states = self.run(&["kernels", "states", "a"]).good().text();
        assert!(states.contains("the current fork is main") || !states.contains("[session-"), "{states}");
        let names = states.split('[').skip(1).filter_map(|rest| rest.split(']').next());
        names.filter(|name| name.starts_with("session-")).map(str::to_owned).collect()
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

#[test]
fn cells_of_a_plain_run_leave_the_users_variables_as_they_are() {
    let calls = vec![edit("a.md", "x.append(2)", "x.append(7)"), run_cell(2), run_cell(3)];
    let Some(forked) = ForkedNote::with(calls) else { return };
    let said = results(&forked.run(&ASK_PLAIN).good().lines());
    assert!(said[1].contains("run in the fork session-") && said[2].contains("x is [1, 7]"), "{said:?}");
    assert_eq!(forked.notes_with_states(), 1);
    let forks = forked.session_forks();
    assert_eq!(forks.len(), 1, "{forks:?}");
    assert!(forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 2]"), "the user's are as before");
    let compared = forked.run(&["kernels", "compare", "a", "main", &forks[0]]).good().text();
    assert!(compared.contains("differs: x"), "{compared}");
    // An undone run has changed nothing of them, either.
    forked.run(&["runs", "last", "--undo"]).good();
    assert!(forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 2]"));
    forked.run(&["runs", "last", "--redo"]).good();

    let adopted = forked.run(&["kernels", "adopt", "a", "--as", &forks[0]]).good().text();
    assert!(adopted.contains("after cell 3 ") && adopted.contains("on main"), "{adopted}");
    assert!(forked.run(&["run", "a", "--cell", "3"]).good().text().contains("x is [1, 7]"));
    assert!(forked.session_forks().is_empty());
}

#[test]
fn variables_that_cannot_be_read_after_an_agents_cell_are_read_by_the_next_kernel() {
    let waits = "import os, time\nwhile os.path.exists('wait'):\n    open('begun', 'w').close()\n    time.sleep(0.01)";
    let note = NOTE.replace("print('x is', x)", &format!("print('x is', x)\n{waits}"));
    let Some(forked) = ForkedNote::of(&note, vec![run_cell(3)]) else { return };
    let folder = std::fs::read_dir(forked.house.path("W/states")).expect("listed").next().expect("a note's");
    let folder = folder.expect("an entry").path();
    let heads: Value = serde_json::from_slice(&std::fs::read(folder.join("heads")).expect("read")).expect("JSON");
    let own = folder.join("states").join(heads["branches"]["main"].as_str().expect("a state"));
    let away = folder.join("away");
    forked.house.write("notes/wait", b"");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| forked.run(&ASK_PLAIN));
        until("the cell runs", || forked.house.path("notes/begun").exists());
        std::fs::rename(&own, &away).expect("moved away");
        std::fs::remove_file(forked.house.path("notes/wait")).expect("removed");
        asked.join().expect("it ends").code(0);
    });
    std::fs::rename(&away, &own).expect("moved back");
    let again = forked.run(&["run", "a", "--cell", "3"]).good().text();
    assert!(again.contains("x is [1, 2]"), "{again}");
}

#[test]
fn a_session_continues_its_fork_of_variables_until_the_user_discards_it() {
    let Some(forked) = ForkedNote::with(vec![run_cell(3)]) else { return };
    // Each question begins the conversation again, in the same session.
    let ask = || {
        let session = ["--session", "5e55105e55105e55105e55105e55105e", "--from", "begin"];
        let words: Vec<&str> = ASK_PLAIN.into_iter().chain(session).collect();
        results(&forked.run(&words).good().lines())
    };
    let said = ask();
    assert!(said[0].contains("x is [1, 2]") && said[0].contains("run in the fork session-5e55105e"), "{said:?}");
    let said = ask();
    assert!(said[0].contains("x is [1, 2]") && !said[0].contains("run in the fork"), "it's the same one: {said:?}");
    assert_eq!(forked.session_forks(), ["session-5e55105e"]);
    forked.run(&["kernels", "discard", "a", "--as", "session-5e55105e"]).good();
    assert!(forked.session_forks().is_empty());
    assert!(ask()[0].contains("run in the fork session-5e55105e"), "it begins again");
}
