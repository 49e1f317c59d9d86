//! `@on_event` through the program: functions of plugins that events call.

use super::agents::house;
use super::schedules::Watch;
use crate::program::{House, pass, until};
use serde_json::Value;
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
