//! Runs that the window sends to a worker over a hub: chosen, sent, followed, decided and stopped in the agent panel.
//! And runs of another device that the window carries out.
//!
//! A device's key and its list of devices are in the user's folder, which a running process doesn't change; so each
//! test runs itself again in a process whose home is the device's.

use super::agent::{ask, ended, run, shows, soon};
use super::safety::{click_and_close, close};
use super::*;
use crate::line::agents::model;
use crate::line::workers::{Device, Scene};
use crate::program::finish;
use serde_json::json;
use std::path::Path;
use std::process::Command as Process;
use store::RunEnding;

/// Variable of the inner process: the workspace of its device.
const DESK: &str = "TRACEBOOK_TEST_DESK";
/// Variable of the inner process: the key of the device that sends runs to it.
const OWNER_KEY: &str = "TRACEBOOK_TEST_OWNER_KEY";

/// Runs a test again in a process with the home of this device, which has a model that nobody can reach.
fn run_inside(test: &str, desk: &Device) {
    let config = "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {wire: openai, \
                  base_url: \"http://127.0.0.1:9/v1\", model: m, context: 32000}\n";
    desk.house.write("W/config.yaml", config.as_bytes());
    run_at(test, desk, "");
}

/// Runs a test again in a process with the home and the configuration of this device.
fn run_at(test: &str, device: &Device, owner_key: &str) {
    let mut command = Process::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture"]);
    device.house.enclose(&mut command);
    command.env(DESK, device.house.path("W")).env(OWNER_KEY, owner_key);
    command.env("TRACEBOOK_KEYRING", "off").env_remove("TRACEBOOK_DEVICE_KEY");
    let done = command.output().expect("started");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

/// The window on the desk's workspace, with the agent panel open.
fn at_desk(workspace: &Path) -> Driven {
    let mut window = window_on(workspace, |_| ());
    until(&mut window, "the hub is reached", |window| {
        session(window).sync_status() == engine::SyncStatus::Synced { away: 0 } && session(window).sync().is_settled()
    });
    until(&mut window, "the note is shown", |window| text(window).is_some());
    press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::I);
    window
}

/// Chooses where the next message is carried out.
fn run_on(window: &mut Driven, place: &str) {
    window.get_by_label("Run on: This device").click();
    soon(window, "the hub's devices are listed", |window| window.query_by_label("Use shed").is_some());
    window.get_by_label(&format!("Use {place}")).click();
    soon(window, "it is chosen", |window| window.query_by_label(&format!("Run on: {place}")).is_some());
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
}

/// Runs a test in a process at the desk, once `around` has set the scene. Returns the desk's window in that process.
fn desk_window(test: &str, around: impl FnOnce(&str)) -> Option<Driven> {
    let Some(workspace) = std::env::var_os(DESK) else {
        around(&format!("window::remote_runs::{test}"));
        return None;
    };
    Some(at_desk(Path::new(&workspace)))
}

#[test]
fn a_message_is_sent_to_a_worker_and_its_call_is_allowed_in_the_window() {
    let around = |test: &str| {
        let scene = Scene::new(&[("plan.md", "# Plan\n")]);
        let model = model(|turn, body| match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "report.md", "content": "# Report\n"}))]),
            1 => (String::new(), vec![("shell", json!({"command": "echo from the worker"}))]),
            _ => (format!("Seen: {}.", body["messages"].to_string().contains("from the worker\\n")), Vec::new()),
        });
        let shed = scene.device("shed", &model);
        let mut worker = shed.worker(&[&scene.desk.key()]);
        run_inside(test, &scene.desk);
        assert_eq!(worker.until("claimed")["what"], "begins for desk: Write a report");
        // The worker's own configuration allows shells: the desk's policy counts, and the desk decides.
        worker.until("approval_pending");
        assert_eq!(worker.until("ended")["what"], "done");
        assert_eq!(scene.desk.house.read("notes/report.md"), b"# Report\n");
    };
    let test = "a_message_is_sent_to_a_worker_and_its_call_is_allowed_in_the_window";
    let Some(mut window) = desk_window(test, around) else { return };
    run_on(&mut window, "shed");
    ask(&mut window, "Write a report");
    soon(&mut window, "it's sent", |window| shows(window, "Sent run: "));
    soon(&mut window, "the call waits here", |window| shows(window, "echo from the worker"));
    assert!(!session(&window).is_own_device(run(&window).device.as_ref()), "another device carries it out");
    window.get_by_label("Allow").click();
    soon(&mut window, "the decision is sent", |window| {
        shows(window, "Your decision was sent to shed.") || run(window).about.ending.is_some()
    });
    soon(&mut window, "the run is over", |window| run(window).about.ending == Some(RunEnding::Done));
    soon(&mut window, "its answer is shown", |window| shows(window, "Seen: true."));
    let file = |window: &Driven| session(window).volumes().any(|volume| volume.files.contains_key("report.md"));
    soon(&mut window, "what it wrote has come", |window| file(window));
    soon(&mut window, "nothing waits", |window| {
        !shows(window, "Sent run: ") && window.query_by_label("Allow").is_none()
    });
    until(&mut window, "all is saved", |window| session(window).is_saved());
}

#[test]
fn a_message_that_no_worker_has_begun_is_stopped_in_the_window() {
    let around = |test: &str| {
        let scene = Scene::new(&[("plan.md", "# Plan\n")]);
        let _shed = scene.device("shed", &model(|_, _| ("Never said.".to_owned(), Vec::new())));
        run_inside(test, &scene.desk);
        let listed = finish(scene.desk.command(&["worker", "list", "--json"]), b"").good().lines();
        assert_eq!(listed.len(), 1, "{listed:#?}");
        assert_eq!((&listed[0]["prompt"], &listed[0]["ending"]), (&"Wait".into(), &"cancelled".into()));
    };
    let Some(mut window) = desk_window("a_message_that_no_worker_has_begun_is_stopped_in_the_window", around) else {
        return;
    };
    run_on(&mut window, "Any worker");
    ask(&mut window, "Wait");
    soon(&mut window, "it waits", |window| shows(window, "Sent run: waits for a worker."));
    window.get_by_label("Stop agent").click();
    soon(&mut window, "it's stopped", |window| {
        !shows(window, "Sent run: ") && window.query_by_label("Stop agent").is_none()
    });
    assert!(session(&window).agents().runs().next().is_none(), "nothing was carried out");
}

#[test]
fn a_task_of_a_plan_is_sent_to_a_worker_from_the_page_of_plans() {
    let around = |test: &str| {
        let plan = "- [ ] Count the beds ^beds\n  ```yaml\n  agent: data\n  ```\n";
        let scene = Scene::new(&[("plan.md", "# Plan\n"), ("tasks/beds.md", plan)]);
        let shed = scene.device("shed", &model(|_, _| ("There are nine beds.".to_owned(), Vec::new())));
        let mut worker = shed.worker(&[&scene.desk.key()]);
        run_inside(test, &scene.desk);
        assert_eq!(worker.until("claimed")["what"], "begins for desk: Count the beds");
        let plan = String::from_utf8(scene.desk.house.read("notes/tasks/beds.md")).expect("text");
        assert!(plan.contains("- [x] Count the beds"), "{plan}");
    };
    let test = "a_task_of_a_plan_is_sent_to_a_worker_from_the_page_of_plans";
    let Some(mut window) = desk_window(test, around) else { return };
    press(&mut window, Modifiers::COMMAND | Modifiers::ALT, Key::P);
    soon(&mut window, "the plan is read", |window| shows(window, "Plan: beds, 0 of 1 done"));
    window.get_by_label("Device that does the tasks").focus();
    window.run_steps(3);
    type_text(&mut window, "shed");
    window.get_by_label("Begin: Count the beds").click();
    soon(&mut window, "its plan is done", |window| shows(window, "Plan: beds, 1 of 1 done"));
    soon(&mut window, "the plan is over", |window| {
        let mut runs = session(window).agents().open_runs();
        runs.any(|run| run.about.agent == "lead" && run.about.ending == Some(RunEnding::Done))
    });
    until(&mut window, "all is saved", |window| session(window).is_saved());
}

#[test]
fn a_window_carries_out_runs_of_a_device_that_its_user_named() {
    let around = |test: &str| {
        let scene = Scene::new(&[("plan.md", "# Plan\n")]);
        let model = model(|turn, _| match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "report.md", "content": "# Report\n"}))]),
            _ => ("It is written.".to_owned(), Vec::new()),
        });
        let shed = scene.device("shed", &model);
        finish(scene.desk.command(&["ask", "--on", "shed", "--no-wait", "Write a report"]), b"").good();
        run_at(test, &shed, &scene.desk.key());
        let listed = finish(scene.desk.command(&["worker", "list", "--json"]), b"").good().lines();
        assert_eq!(listed[0]["ending"], "done", "{listed:#?}");
        finish(scene.desk.command(&["sync", "now", "--for", "50"]), b"").good();
        assert_eq!(scene.desk.house.read("notes/report.md"), b"# Report\n");
    };
    let test = "a_window_carries_out_runs_of_a_device_that_its_user_named";
    let Some(mut window) = desk_window(test, around) else { return };
    let field = "Carry out runs of a device";
    let enter = |window: &mut Driven, key: &str| {
        window.get_by_label(field).focus();
        window.run_steps(3);
        type_text(window, key);
        window.key_press(Key::Enter);
        window.run_steps(3);
    };
    window.get_by_label("Settings").click_accesskit();
    window.run();
    window.get_by_role_and_label(Role::Tab, "Devices").click();
    soon(&mut window, "the devices are listed", |window| window.query_by_label(field).is_some());
    enter(&mut window, "12-34");
    soon(&mut window, "a slip is told", |window| shows(window, "That's not a key."));
    // By default, the window carries out nothing.
    assert!(session(&window).settings().carries_out_runs_of.is_empty());
    assert!(session(&window).agents().runs().next().is_none());
    enter(&mut window, &std::env::var(OWNER_KEY).expect("a key"));
    soon(&mut window, "it begins", |window| shows(window, "begins for desk: Write a report"));
    soon(&mut window, "it is over here", ended);
    assert_eq!(run(&window).about.ending, Some(RunEnding::Done));
    soon(&mut window, "it is over at the hub", |window| shows(window, "A run of another device has ended: done."));
    window.get_by_label_contains("Stop runs of ").click_accesskit();
    soon(&mut window, "no device is named", |window| session(window).settings().carries_out_runs_of.is_empty());
    soon(&mut window, "all is saved", |window| session(window).is_saved());
}

#[test]
fn a_window_that_is_closed_gives_back_what_another_device_sent() {
    let around = |test: &str| {
        let scene = Scene::new(&[("plan.md", "# Plan\n")]);
        let model = model(|turn, _| match turn {
            0 => (String::new(), vec![("shell", json!({"command": "echo waits for the desk"}))]),
            _ => ("It is done.".to_owned(), Vec::new()),
        });
        let shed = scene.device("shed", &model);
        finish(scene.desk.command(&["ask", "--on", "shed", "--no-wait", "Say it"]), b"").good();
        run_at(test, &shed, &scene.desk.key());
        let listed = finish(scene.desk.command(&["worker", "list", "--json"]), b"").good().lines();
        assert_eq!((&listed[0]["ending"], &listed[0]["free"]), (&json!(null), &json!(true)), "{listed:#?}");
    };
    let test = "a_window_that_is_closed_gives_back_what_another_device_sent";
    let Some(mut window) = desk_window(test, around) else { return };
    let mut settings = session(&window).settings().clone();
    let key = std::env::var(OWNER_KEY).expect("a key");
    settings.carries_out_runs_of = vec![host::peers::devices::trusted_key_digits(&key).expect("digits")];
    window.state_mut().send_command(engine::Command::Set { settings: Box::new(settings) });
    soon(&mut window, "its call waits for the desk", |window| {
        session(window).agents().open_runs().any(|run| run.pending().next().is_some())
    });
    close(&mut window);
    window.run_steps(3);
    click_and_close(&mut window, "Stop and close");
    assert_eq!(run(&window).about.ending, None, "the owner's run isn't over");
    soon(&mut window, "it's given back", |window| shows(window, "A run of another device was given back: "));
    assert!(!session(&window).agents().open_runs().any(engine::AgentRun::is_awake), "nothing works on it here");
}
