//! `schedule` through the program: created, listed, run by hand, run when due, watched by a process that stays.

use super::agents::{Said, house, model, owns};
use crate::program::{House, pass, until};
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
    assert!(house.run(&["schedule"]).good().text().contains("paused"));
    house.run(&["schedule", "remove", "write"]).good();
    assert_eq!(house.run(&["schedule", "--json"]).good().lines().len(), 2);

    house.run(&["schedule", "add", "never", "x"]).refused(2, "no cron expression");
    house.run(&["schedule", "add", "@daily"]).refused(2, "say what begins");
    house.run(&["schedule", "add", "@daily", "x", "--within", "long"]).refused(2, "--within");
    house.run(&["schedule", "show", "nobody"]).refused(2, "no schedule “nobody”");
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

/// A process that keeps schedules going. Killed on drop.
pub(super) struct Watch {
    child: std::process::Child,
}

impl Watch {
    pub(super) fn new(house: &House) -> Watch {
        let mut child = house.command(&["schedule", "watch", "--json"]).spawn().expect("started");
        owns(house, &child);
        // Nobody reads what it tells; a full pipe would stop it.
        let mut out = child.stdout.take().expect("piped");
        std::thread::spawn(move || _ = std::io::copy(&mut out, &mut std::io::sink()));
        Watch { child }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The start times of runs with this prompt in milliseconds, oldest first.
fn starts(house: &House, prompt: &str) -> Vec<i64> {
    let runs = house.run(&["runs", "--json"]).good().lines();
    let mine = runs.iter().filter(|run| run["prompt"] == prompt);
    let mut starts: Vec<i64> = mine.filter_map(|run| run["start_time"].as_i64()).collect();
    starts.sort_unstable();
    starts
}

#[test]
fn a_burst_of_changes_starts_a_schedule_once_and_the_next_one_later() {
    let house = house(&writer(), &[("a.md", "# A\n"), ("Inbox/first.md", "1\n")]);
    let schedule = ["schedule", "add", "on change Inbox/*", "File it", "--name", "inbox", "--approve", "write_file"];
    house.run(&schedule).good();
    let _watch = Watch::new(&house);
    // It knows the files before they change.
    house.run(&["tasks", "agents"]).good();
    pass(std::time::Duration::from_secs(2));
    let change = |text: &str| {
        for name in ["one", "two", "three"] {
            house.write(&format!("notes/Inbox/{name}.md"), text.as_bytes());
        }
    };
    // The files that were there before start nothing.
    assert!(starts(&house, "File it").is_empty());
    change("first\n");
    until("it starts", || !starts(&house, "File it").is_empty());
    change("second\n");
    until("it starts again", || starts(&house, "File it").len() > 1);
    let both = starts(&house, "File it");
    assert_eq!(both.len(), 2, "one start for each burst: {both:?}");
    // Ten seconds, and what the clock of a busy machine may differ.
    assert!(both[1] - both[0] >= 9_000, "it waits between two starts: {both:?}");
    // What the agent wrote, and files elsewhere, start nothing.
    house.write("notes/elsewhere.md", b"no\n");
    pass(std::time::Duration::from_secs(13));
    assert_eq!(starts(&house, "File it").len(), 2);
}

#[test]
fn a_changed_file_runs_the_cells_of_a_note() {
    let cell = "open('sum.txt', 'w').write(open('Inbox/in.md').read().upper())";
    let note = format!("# Sum\n\n```python\n{cell}\n```\n");
    let house = house("http://127.0.0.1:9", &[("sum.md", &note), ("Inbox/in.md", "before\n")]);
    let schedule =
        ["schedule", "add", "on change Inbox/*", "--run", "sum.md", "--name", "sum", "--approve", "note_command"];
    assert!(house.run(&schedule[..7]).code(0).err.contains("--approve note_command"), "all cells are a command");
    house.run(&["schedule", "remove", "sum"]).good();
    house.run(&schedule).good();
    let _watch = Watch::new(&house);
    // The watcher may not know the file yet, so it's changed until its cell has run; with pauses, which end a burst.
    let mut number = 0;
    until("the cell has run", || {
        number += 1;
        house.write("notes/Inbox/in.md", format!("row {number}\n").as_bytes());
        pass(std::time::Duration::from_secs(4));
        std::fs::read(house.path("notes/sum.txt")).is_ok_and(|sum| sum.starts_with(b"ROW "))
    });
}

#[test]
fn a_failed_run_starts_a_schedule_but_a_schedule_that_fails_starts_none() {
    let house = house(&writer(), &[("a.md", "# A\n")]);
    let looks = ["schedule", "add", "on failed run", "Say what went wrong", "--name", "looks"];
    let looks: Vec<&str> = looks.into_iter().chain(["--approve", "write_file"]).collect();
    house.run(&looks).good();
    // No trace fits, so this one fails each time.
    let fails = ["schedule", "add", "on failed run", "Compute the zebra quotient", "--name", "fails"];
    let fails: Vec<&str> = fails.into_iter().chain(["--mode", "follower"]).collect();
    house.run(&fails).good();
    let _watch = Watch::new(&house);
    house.run(&["ask", "Write the note", "--approve", "write_file"]).good();
    assert!(starts(&house, "Say what went wrong").is_empty(), "what is done starts nothing");
    house.run(&["ask", "Compute the yak quotient", "--mode", "follower"]).code(1);
    until("both start", || {
        ["Say what went wrong", "Compute the zebra quotient"].iter().all(|prompt| !starts(&house, prompt).is_empty())
    });
    // Longer than the delay after an event, and the time between two starts.
    pass(std::time::Duration::from_secs(15));
    for prompt in ["Say what went wrong", "Compute the zebra quotient"] {
        assert_eq!(starts(&house, prompt).len(), 1, "{prompt}");
    }
    let runs = house.run(&["runs", "--json"]).good().lines();
    let failed = runs.iter().filter(|run| run["standing"] == "failed").count();
    assert_eq!(failed, 2, "{runs:#?}");
}
