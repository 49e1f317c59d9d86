//! `events --publish` through the program: other programs follow what was published, and schedules start by it.

use super::agent_settings::{follower, read_all};
use super::agents::{Said, house, model};
use super::schedules::Watch;
use crate::program::until;
use serde_json::{Value, json};

#[test]
fn a_program_publishes_events_that_others_follow_and_that_start_schedules() {
    let script = |_: usize, _: &Value| -> Said { ("Checked.".to_owned(), Vec::new()) };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let publish = |kind: &str, data: &str| house.run(&["events", "--publish", kind, data]);
    publish("USER_INPUT", "1").refused(2, "“USER_INPUT” can't be published");
    publish("custom.", "1").refused(2, "such as custom.deployed");
    publish("custom.deployed", "{").refused(2, "the event's JSON can't be read");
    let long = format!("\"{}\"", "a".repeat(2_000));
    publish("custom.deployed", &long).refused(2, "has 2002 bytes, more than 2000");
    let deep = "[".repeat(9) + &"]".repeat(9);
    publish("custom.deployed", &deep).refused(2, "deeper than 8 levels");
    house.run(&["events", "{}"]).refused(2, "events --publish custom.NAME JSON");
    house.run(&["events", "--publish", "custom.deployed", "--follow"]).refused(2, "--publish goes with --project");
    house.run(&["schedule", "add", "on event custom.", "Check it"]).refused(2, "there is no event “custom.”");
    let alone = publish("custom.deployed", "1").code(0);
    assert!(alone.text() == "CUSTOM.DEPLOYED is published\n" && alone.err.contains("nothing receives it"), "{alone:?}");
    assert!(house.run(&["events"]).good().text().contains("CUSTOM.NAME"));

    let (mut child, told) = follower(&house, &["--count", "1", "--filter", "custom.deploy-done: si*"]);
    publish("custom.other", "{\"subject\": \"site\"}").good();
    publish("custom.deploy-done", "{\"subject\": \"docs\"}").good();
    let site = r#"{"subject": "site", "version": 7}"#;
    house.fed(&["events", "--publish", "custom.deploy-done", "-"], site.as_bytes()).good();
    until("the event is told", || child.try_wait().expect("waited").is_some());
    let event: Value = serde_json::from_str(&read_all(told)).expect("one event");
    assert_eq!((&event["kind"], &event["subject"]), (&json!("CUSTOM.DEPLOY_DONE"), &json!("site")), "{event}");
    assert!(event["data"]["version"] == 7 && event["volume"].is_string() && event["at"].is_i64(), "{event}");

    house.run(&["schedule", "add", "on event custom.deploy-done: site", "Check it", "--name", "check"]).good();
    let _watch = Watch::new(&house);
    let schedule = || house.run(&["schedule", "--json"]).good().lines().remove(0);
    until("the event starts it", || {
        publish("custom.deploy-done", "{\"subject\": \"docs\"}");
        publish("custom.deploy-done", site);
        schedule()["triggered"].is_array()
    });
    until("it has run", || schedule()["last"]["came"]["came"] == "ended");
    let runs = house.run(&["runs", "--json"]).good().lines();
    assert!(runs.iter().all(|run| run["prompt"] == "Check it" && run["standing"] == "done"), "{runs:?}");
}
