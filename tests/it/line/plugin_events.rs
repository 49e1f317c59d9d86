//! `@on_event` through the program: functions of plugins that events call.

use super::agents::{Said, house, model};
use super::schedules::Watch;
use crate::program::{House, pass, until};
use serde_json::{Value, json};
use std::time::Duration;

/// Functions of a plugin. The first one changes files that start it.
const PLUGIN: &str = r#"from llm_os.plugins import on_event

INBOX = "FILE_CHANGED: Inbox/*"


@on_event(INBOX, permissions=["fs"])
def file_it(event):
    """Lists what is new."""
    with open("Inbox/list.md", "a") as file:
        file.write(event["change"] + " " + event["path"] + "\n")
    print("seen", event["kind"])
    return event["path"]


@on_event(INBOX)
async def fails(event):
    if "bad" in event["path"]:
        raise ValueError("no " + event["path"])
    return "fine " + event["path"]


@on_event(INBOX, "RUN_BEGAN")
def never_seen(event):
    return "never"
"#;

/// The runs that called a function and have ended.
fn calls(house: &House, name: &str) -> Vec<Value> {
    let prompt = format!("Schedule {name}: call {name}.");
    let mut runs = house.run(&["runs", "--json"]).good().lines();
    runs.retain(|run| run["prompt"] == prompt && (run["standing"] == "done" || run["standing"] == "failed"));
    runs
}

fn steps(house: &House, run: &Value) -> String {
    house.run(&["steps", run["id"].as_str().expect("an id"), "--json"]).good().text()
}

#[test]
fn events_call_approved_functions_once_and_failures_are_reported() {
    let house = house("http://127.0.0.1:9", &[("a.md", "# A\n"), ("Inbox/first.md", "1\n")]);
    house.write("W/plugins/inbox.py", PLUGIN.as_bytes());
    house.write("W/plugins/wrong.py", b"@on_event('SCHEDULED')\ndef never(event): pass\n");
    let listed = house.run(&["tools"]).code(0);
    assert!(listed.err.contains("plugins/wrong.py, line 1: never: SCHEDULED starts nothing"), "{}", listed.err);
    let waiting = house.run(&["tools"]).code(0).text();
    for name in ["file_it", "fails", "never_seen"] {
        assert!(waiting.contains(&format!("{name} (version 1) waits")), "{waiting}");
    }
    let shown = house.run(&["tools", "file_it"]).code(0).text();
    assert!(shown.contains("Handles FILE_CHANGED: Inbox/*. Lists what is new."), "{shown}");
    for name in ["file_it", "fails"] {
        house.run(&["tools", name, "--approve"]).code(0);
    }
    let watch = Watch::new(&house);
    // It knows the files before they change.
    house.run(&["tasks", "agents"]).good();
    pass(Duration::from_secs(2));
    for name in ["bad", "good"] {
        house.write(&format!("notes/Inbox/{name}.md"), b"new\n");
    }
    until("both were called", || !calls(&house, "file_it").is_empty() && !calls(&house, "fails").is_empty());
    let list = String::from_utf8(house.read("notes/Inbox/list.md")).expect("text");
    assert!(list.contains("created Inbox/bad.md\n") && list.contains("created Inbox/good.md\n"), "{list}");
    let filed = calls(&house, "file_it").remove(0);
    let said = steps(&house, &filed);
    assert!(filed["standing"] == "done" && said.contains("seen FILE_CHANGED"), "{said}");
    // One event fails, and the function is still called with the other.
    let failed = calls(&house, "fails").remove(0);
    let said = steps(&house, &failed);
    assert!(failed["standing"] == "failed" && said.contains("ValueError: no Inbox/bad.md"), "{said}");
    assert!(said.contains("fine Inbox/good.md"), "{said}");
    let schedules = house.run(&["schedule"]).good().text();
    let line = schedules.lines().find(|line| line.starts_with("fails  on event FILE_CHANGED: Inbox/*  waits"));
    assert!(line.is_some_and(|line| line.contains("call fails") && line.contains("failed")), "{schedules}");
    // What a function writes doesn't start it again, after the time that lies between two starts.
    pass(Duration::from_secs(13));
    assert_eq!(calls(&house, "file_it").len(), 1, "{}", house.run(&["runs"]).text());
    assert!(calls(&house, "never_seen").is_empty(), "what isn't approved isn't called");
    assert!(!house.run(&["schedule"]).good().text().contains("never_seen"));
    // A function that is switched off is no schedule.
    house.run(&["tools", "file_it", "--disable"]).code(0);
    let schedules = house.run(&["schedule"]).good().text();
    assert!(schedules.contains("fails") && !schedules.contains("file_it"), "{schedules}");
    drop(watch);
}

/// Functions for what is said in runs, and one that shows that events call functions by now.
const LISTENERS: &str = r#"from llm_os.plugins import on_event


@on_event("TOOL_OUTPUT: read_file")
def saw_tool(event):
    return f"{event['kind']} {event['tool']}: {event['text']}"


@on_event("USER_INPUT", "LLM_OUTPUT")
def saw_words(event):
    return f"{event['kind']}: {event['text']}"


@on_event("custom.ready")
def is_ready(event):
    return f"{event['kind']} {event['data']}"
"#;

#[test]
fn what_is_said_in_the_users_runs_calls_functions_and_what_schedules_do_calls_none() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("It says one.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "one\n")]);
    house.write("W/plugins/listeners.py", LISTENERS.as_bytes());
    house.run(&["tools"]).code(0);
    for name in ["saw_tool", "saw_words", "is_ready"] {
        house.run(&["tools", name, "--approve"]).code(0);
    }
    // Its own run reads a file, too.
    house.run(&["schedule", "add", "on event TOOL_OUTPUT: read_*", "Look again", "--name", "again"]).good();
    let watch = Watch::new(&house);
    until("events call functions", || {
        house.run(&["events", "--publish", "custom.ready", "[1]"]);
        house.run(&["schedule"]).text().contains("is_ready")
    });
    house.run(&["ask", "What does a.md say?"]).code(0);
    let all_steps = |name: &str| calls(&house, name).iter().map(|run| steps(&house, run)).collect::<String>();
    until("both are called with all", || {
        let said = all_steps("saw_words");
        let words = ["USER_INPUT: What does a.md say?", "LLM_OUTPUT: It says one."];
        words.iter().all(|one| said.contains(one)) && all_steps("saw_tool").contains("TOOL_OUTPUT read_file: ")
    });
    assert!(all_steps("saw_tool").contains("one"), "{}", all_steps("saw_tool"));
    until("the schedule has run", || {
        let runs = house.run(&["runs", "--json"]).good().lines();
        runs.iter().any(|run| run["prompt"] == "Look again" && run["standing"] == "done")
    });
    // An event makes a schedule due at once, so the end of the run shows that it started nothing.
    let schedules = house.run(&["schedule", "--json"]).good().lines();
    for name in ["saw_tool", "again"] {
        let one = schedules.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {schedules:?}"));
        assert_eq!(one["triggered"].as_array().map(Vec::len), Some(1), "{one}");
    }
    until("a published event arrives", || all_steps("is_ready").contains("CUSTOM.READY [1]"));
    drop(watch);
}
