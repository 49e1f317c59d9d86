//! `schedule` through the program: created, listed, run by hand, run when due, watched by a process that stays.

use super::agents::{Said, house, model, owns};
use crate::program::House;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

fn writer() -> String {
    model(|turn, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "made.md", "content": "# Made\n"}))]),
            _ => ("It is written.".to_owned(), Vec::new()),
        }
    })
}

#[test]
fn a_schedule_is_made_begun_paused_and_removed() {
    let house = house(&writer(), &[("a.md", "# A\n\n```python\nprint(6 * 7)\n```\n")]);
    super::memory::keep_memory_in_folder(&house);
    let made =
        house.run(&["schedule", "add", "0 9 * * 1-5", "Write the note", "--utc", "--within", "30m"]).good().text();
    assert!(made.starts_with("write-the-note: next 20"), "{made}");
    let listed = house.run(&["schedule", "--json"]).good().lines();
    let known = &listed[0];
    assert_eq!((&known["when"], &known["window"], &known["offset"]), (&json!("0 9 * * 1-5"), &json!(1_800), &json!(0)));
    assert!(known["next"].is_i64() && known["last"].is_null(), "{known}");
    // Nothing is due, so the command ends at once.
    assert_eq!(house.run(&["schedule", "due"]).good().text(), "");
    let done = house.run(&["schedule", "run", "write"]).good().text();
    assert!(done.contains("It is written."), "{done}");
    assert_eq!(house.read("notes/made.md"), b"# Made\n");
    assert!(house.run(&["schedule"]).good().text().contains("done"), "what came of it is known");
    // Cells need approval unless the user has approved them in advance.
    let cells = ["schedule", "add", "@daily", "--run", "a.md", "--cell", "1", "--name", "cells"];
    assert!(house.run(&cells).code(0).err.contains("--approve run_cell"));
    house.run(&["schedule", "run", "cells"]).code(1);
    house.run(&["schedule", "remove", "cells"]).good();
    let allowed: Vec<&str> = cells.iter().copied().chain(["--approve", "run_cell"]).collect();
    house.run(&allowed).good();
    assert!(house.run(&["schedule", "run", "cells"]).good().text().contains("42"));
    house.run(&["schedule", "add", "@weekly", "--consolidate"]).good();
    house.run(&["schedule", "run", "consolidate-memory"]).good();
    assert!(house.path("notes/memory/long_term/patterns.md").exists());
    house.run(&["schedule", "pause", "write"]).good();
    assert!(house.run(&["schedule"]).good().text().contains("rests"));
    house.run(&["schedule", "remove", "write"]).good();
    assert_eq!(house.run(&["schedule", "--json"]).good().lines().len(), 2);

    house.run(&["schedule", "add", "never", "x"]).refused(2, "no cron expression");
    house.run(&["schedule", "add", "@daily"]).refused(2, "say what begins");
    house.run(&["schedule", "add", "@daily", "x", "--within", "long"]).refused(2, "--within");
    house.run(&["schedule", "show", "nobody"]).refused(2, "no schedule nobody");
    house.run(&["schedule", "dance"]).refused(2, "not “dance”");
}

#[test]
fn a_process_that_stays_tells_what_happens() {
    let house: House = house(&writer(), &[("a.md", "# A\n")]);
    house.run(&["schedule", "add", "0 0 1 1 *", "Write the note", "--name", "often", "--utc"]).good();
    let mut child = house.command(&["schedule", "watch", "--json"]).spawn().expect("started");
    owns(&house, &child);
    let out = BufReader::new(child.stdout.take().expect("piped"));
    // Another process starts it by hand; that is reported like a due run.
    house.run(&["schedule", "run", "often"]).good();
    let mut seen: Vec<String> = Vec::new();
    for line in out.lines().map_while(Result::ok) {
        let told: Value = serde_json::from_str(&line).expect("JSON");
        seen.push(told["event"].as_str().expect("a kind").to_owned());
        if seen.last().is_some_and(|last| last == "run_ended") {
            break;
        }
    }
    child.kill().expect("ended");
    child.wait().expect("ended");
    for kind in ["scheduled", "run_began", "remembered"] {
        assert!(seen.iter().any(|one| one == kind), "{kind}: {seen:?}");
    }
    let listed = house.run(&["schedule", "--json"]).good().lines();
    assert_eq!(listed[0]["last"]["came"]["came"], json!("ended"), "{}", listed[0]);
}
