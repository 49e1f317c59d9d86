//! What programs and editors get over the Agent Client Protocol beyond a turn: commands in the background, which a
//! program looks at and ends, or which end with its turn, and what earlier sessions have done. The program is
//! `tests/data/acp_agent.py`.

use super::acp::Editor;
use super::agents::{self, Said, without_events};
use super::external_agents::{calls, house};
use crate::program::{House, processes_naming, until};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex};

/// Returns how long a command would sleep: no other process of this machine does so for the same time.
fn seconds(test: u32) -> String {
    (test * 10_000_000 + std::process::id()).to_string()
}

/// Returns how many lines of the last run's list say that a file was created.
fn created(house: &House, path: &str) -> usize {
    let ending = format!(": created {path}");
    house.run(&["runs", "last"]).good().text().lines().filter(|line| line.ends_with(&ending)).count()
}

/// Asks the program, and returns the steps with its answer.
fn ask(house: &House, text: &str) -> (Vec<Value>, String) {
    let words = ["ask", text, "--agent", "mine", "--approve", "shell", "--json"];
    let steps = without_events(house.run(&words).good().lines());
    let answer = steps.last().expect("an answer")["content"].as_str().expect("a text").to_owned();
    (steps, answer)
}

#[test]
fn a_program_looks_at_its_server_and_ends_it_while_it_does_other_things() {
    let house = house();
    let seconds = seconds(1);
    let (steps, answer) = ask(&house, &format!("background {seconds}"));
    let said: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    // What it has printed is there before it ends, and other requests are answered meanwhile.
    assert_eq!(said["first"]["output"], "started\n", "{said}");
    assert!(said["first"]["exitStatus"].is_null() && said["first"]["truncated"] == false, "{said}");
    assert!(said["text"] == "# A\n" && said["seen"] == "up", "{said}");
    assert!(said["running"]["output"] == "started\n" && said["running"]["exitStatus"].is_null(), "{said}");
    // It ends when the program wants it to.
    assert!(said["ended"]["signal"] == "SIGKILL" && said["ended"]["exitCode"].is_null(), "{said}");
    assert_eq!(said["last"]["output"], "started\n(cancelled)", "{said}");
    assert_eq!(said["last"]["exitStatus"]["signal"], "SIGKILL", "{said}");
    assert!(said["gone"].as_str().is_some_and(|why| why.contains("was released")), "{said}");
    assert_eq!(processes_naming(&format!("sleep {seconds}")), Vec::<String>::new());
    // The end of a long output is kept.
    assert!(said["code"]["exitCode"] == 0 && said["long"]["truncated"] == true, "{said}");
    let long = said["long"]["output"].as_str().expect("a text");
    assert!(long.len() <= 20 && long.trim().ends_with("2000"), "{said}");

    // The server is a step of its own when it ends; each change is in one step, and can be undone.
    let ended: Vec<Value> = calls(&steps, "agent_report");
    assert_eq!(ended.len(), 1, "{steps:?}");
    let title = ended[0]["action"].as_str().expect("a text");
    assert!(title.starts_with("In the background: echo up"), "{ended:?}");
    assert_eq!((created(&house, "fg.txt"), created(&house, "up.txt")), (1, 1));
    house.run(&["runs", "last", "--undo"]).good();
    assert!(!house.path("notes/fg.txt").exists() && !house.path("notes/up.txt").exists());
}

#[test]
fn what_a_program_leaves_running_ends_with_its_turn() {
    let house = house();
    let seconds = seconds(2);
    let (steps, answer) = ask(&house, &format!("leave {seconds}"));
    assert_eq!(answer, "I leave it: started.");
    let ended = calls(&steps, "agent_report");
    let is_killed = ended.first().and_then(|one| one["output"].as_str()).is_some_and(|it| it.ends_with("(cancelled)"));
    assert!(ended.len() == 1 && is_killed, "{ended:?}");
    assert_eq!(processes_naming(&format!("sleep {seconds}")), Vec::<String>::new());
    assert_eq!(created(&house, "up.txt"), 1);
    house.run(&["runs", "last", "--undo"]).good();
    assert!(!house.path("notes/up.txt").exists());
}

#[test]
fn stopping_a_run_ends_what_its_program_runs_in_the_background() {
    let house = house();
    let seconds = seconds(3);
    let text = format!("stay {seconds}");
    let mut asked = house.command(&["ask", &text, "--agent", "mine", "--approve", "shell"]).spawn().expect("started");
    let told = house.path("pids");
    until("the server runs", || fs::read_to_string(&told).is_ok_and(|text| text == "up and running"));
    let marker = format!("sleep {seconds}");
    assert!(!processes_naming(&marker).is_empty());
    house.run(&["runs", "last", "--stop"]).good();
    until("the server has ended", || processes_naming(&marker).is_empty());
    assert_eq!(asked.wait().expect("ended").code(), Some(1));
}

#[test]
fn a_command_that_the_user_has_not_allowed_can_be_ended() {
    let house = house();
    let done = house.fed(&["ask", "early end", "--agent", "mine"], b"n\n");
    assert_eq!(done.code, 0, "{}", done.err);
    let text = done.text();
    let line = text.lines().last().expect("an answer");
    let ended: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(ended["signal"], "SIGKILL", "{text}");
    assert!(!house.path("notes/never.txt").exists());
}

/// A prompt of an editor gets what an earlier session has done: the model is told, the editor sees it, and the same
/// work is repeated without a model if the editor wants that.
#[test]
fn an_editors_prompt_recalls_what_an_earlier_session_has_done() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = asked.clone();
    let script = move |turn: usize, body: &Value| -> Said {
        let messages = body["messages"].to_string();
        let (name, month) =
            if messages.contains("for 2026-11") { ("November", "2026-11") } else { ("October", "2026-10") };
        told.lock().expect("unpoisoned").push(messages);
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": format!("data/{month}.csv")}))]),
            1 => {
                let content = format!("# {name} 2026\n\nSee data/{month}.csv\n");
                let write = json!({"path": format!("reports/{month}.md"), "content": content});
                (String::new(), vec![("write_file", write)])
            }
            _ => (format!("The report for {name} 2026 is written."), Vec::new()),
        }
    };
    let csv = "day,sold\n1,517\n";
    let files = [("a.md", "# A\n"), ("data/2026-10.csv", csv), ("data/2026-11.csv", csv), ("data/2026-12.csv", csv)];
    let house = agents::house(&agents::model(script), &files);
    const RECALLED: &str = "Results of earlier work that are relevant here";
    const GOAL: &str = "Write the report for October 2026 into reports/2026-10.md";

    let mut editor = Editor::new(&house);
    let session = editor.session(&house);
    let prompt = editor.prompt(&session, GOAL);
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(!asked.lock().expect("unpoisoned")[0].contains(RECALLED), "nothing was done before");
    assert!(!editor.thoughts().contains("What is remembered of this:"), "{}", editor.thoughts());
    editor.end();

    // Another editor, another session: a model does it, and is told what was done before.
    let mut editor = Editor::new(&house);
    let ask = |editor: &mut Editor, mode: &str, text: &str| {
        let session = editor.session(&house);
        editor.good("session/set_config_option", json!({"sessionId": session, "configId": "memory", "value": mode}));
        let prompt = editor.prompt(&session, text);
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    };
    let before = asked.lock().expect("unpoisoned").len();
    ask(&mut editor, "learner", "Please write a report for 2026-11 into reports/2026-11.md");
    let messages = asked.lock().expect("unpoisoned").get(before).cloned().expect("a model was asked");
    let recalled = messages.split_once(RECALLED).unwrap_or_else(|| panic!("nothing was recalled: {messages}")).1;
    assert!(recalled.contains(GOAL), "{recalled}");
    let thoughts = editor.thoughts();
    assert!(thoughts.contains("What is remembered of this:") && thoughts.contains(GOAL), "{thoughts}");
    assert_eq!(house.read("notes/reports/2026-11.md"), b"# November 2026\n\nSee data/2026-11.csv\n");

    // The same from memory alone.
    let before = asked.lock().expect("unpoisoned").len();
    ask(&mut editor, "follower", "Please write a report for 2026-12 into reports/2026-12.md");
    assert_eq!(asked.lock().expect("unpoisoned").len(), before, "no model was asked");
    assert_eq!(house.read("notes/reports/2026-12.md"), b"# December 2026\n\nSee data/2026-12.csv\n");
    assert!(editor.words().contains("The report for December 2026 is written."), "{}", editor.words());
    editor.end();
}
