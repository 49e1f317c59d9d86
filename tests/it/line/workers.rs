//! `worker` and `ask --on`: runs that another device carries out over a hub, by the policy and the decisions of the
//! device that sent them; workers that are killed, hubs that are lost, devices that nobody named.

use super::agents::{Said, model, without_events};
use crate::program::{Done, House, finish, processes_naming, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use support::hub_load::free_port;

/// Seconds after which a silent worker has lost its run. A machine under load mustn't be taken for a silent one.
const LEASE: &str = "12";
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine with a home and a workspace of its own.
pub(crate) struct Device {
    pub(crate) house: House,
}

impl Device {
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.house.command(words);
        command.env("TRACEBOOK_KEYRING", "off").env_remove("TRACEBOOK_DEVICE_KEY");
        command.env_remove("TRACEBOOK_HUB_KEY").env_remove("TRACEBOOK_PASSPHRASE");
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        finish(self.command(words), b"")
    }

    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        self.run(&words).good().json()
    }

    fn start(&self, words: &[&str]) -> Lines {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let mut child = self.command(&words).stderr(Stdio::inherit()).spawn().expect("started");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, told) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Lines { child, told, seen: Vec::new() }
    }

    /// The key by which a worker is told to trust this device.
    pub(crate) fn key(&self) -> String {
        self.json(&["devices"])["this"].as_str().expect("a key").to_owned()
    }

    /// Starts a worker for the runs of these keys, which is ready when this returns.
    pub(crate) fn worker(&self, keys: &[&str]) -> Lines {
        let words: Vec<&str> = ["worker"].into_iter().chain(keys.iter().flat_map(|key| ["--for", key])).collect();
        let mut worker = self.start(&words);
        worker.until("ready");
        worker
    }
}

/// A process with the JSON lines that it prints. Killed on drop.
pub(crate) struct Lines {
    child: Child,
    told: Receiver<String>,
    seen: Vec<Value>,
}

impl Lines {
    fn next(&mut self) -> Option<Value> {
        let line = self.told.recv_timeout(PATIENCE).ok()?;
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.seen.push(value.clone());
        Some(value)
    }

    /// Reads until a line has this type.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            match self.next() {
                Some(value) if value["type"] == kind => return value,
                Some(_) => {}
                None => panic!("no {kind}: {:#?}", self.seen),
            }
        }
    }

    /// Waits for the end; returns the exit code and all lines.
    fn end(mut self) -> (i32, Vec<Value>) {
        while self.next().is_some() {}
        let code = self.child.wait().expect("ended").code().unwrap_or(-1);
        (code, std::mem::take(&mut self.seen))
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A hub, the device that owns the volume, and the address of the shared volume.
pub(crate) struct Scene {
    at: String,
    hub: Option<Lines>,
    server: Device,
    pub(crate) desk: Device,
    address: String,
}

impl Scene {
    pub(crate) fn new(files: &[(&str, &str)]) -> Scene {
        let server = Device { house: House::new() };
        // Nothing else gets its port while the hub is stopped.
        let listen = format!("127.0.0.1:{}", free_port().expect("a port"));
        let mut hub =
            server.start(&["hub", "--folder", "H", "--listen", &listen, "--name", "the hub", "--lease", LEASE]);
        let at = hub.next().expect("a line")["listening"].as_str().expect("an address").to_owned();
        let invitation = hub.next().expect("a line")["invitation"].as_str().expect("an invitation").to_owned();
        let desk = Device { house: House::with(files) };
        desk.json(&["pair", &invitation, "--name", "desk"]);
        let address = desk.json(&["sync", "share", "notes", &at])["address"].as_str().expect("an address").to_owned();
        desk.run(&["sync", "now", "--for", "50"]).good();
        Scene { at, hub: Some(hub), server, desk, address }
    }

    /// Restarts the hub where it was.
    fn restart_hub(&mut self) {
        let listen = self.at.trim_start_matches("ws://").to_owned();
        let words = ["hub", "--folder", "H", "--listen", &listen, "--name", "the hub", "--lease", LEASE];
        let mut hub = self.server.start(&words);
        assert!(hub.next().is_some(), "the hub listens again");
        self.hub = Some(hub);
    }

    /// A paired device that has joined the volume, and whose agents use this model.
    pub(crate) fn device(&self, name: &str, model: &str) -> Device {
        let device = Device { house: House::new() };
        let code = self.server.json(&["hub", "invite", "--folder", "H"])["code"].as_str().expect("a code").to_owned();
        device.json(&["pair", &self.at, "--code", &code, "--name", name]);
        device.run(&["init"]).good();
        device.run(&["sync", "join", &self.address, "notes", "--for", "50"]).good();
        let config = format!(
            "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: openai, base_url: \
             \"{model}/v1\", model: m, context: 32000}}\napproval:\n  never_approve: [shell]\n"
        );
        device.house.write("W/config.yaml", config.as_bytes());
        device
    }
}

fn answers(steps: &[Value]) -> Vec<&str> {
    let finals = steps.iter().filter(|step| step["type"] == "final_answer");
    finals.map(|step| step["content"].as_str().expect("text")).collect()
}

#[test]
fn a_worker_carries_out_a_run_by_the_policy_and_the_decisions_of_its_owner() {
    let script = |turn: usize, body: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "report.md", "content": "# Report\n"}))]),
            1 => (String::new(), vec![("shell", json!({"command": "echo from the worker"}))]),
            _ => (format!("Seen: {}.", body["messages"].to_string().contains("from the worker\\n")), Vec::new()),
        }
    };
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let shed = scene.device("shed", &model(script));
    let mut worker = shed.worker(&[&scene.desk.key()]);
    // The worker's own configuration allows shells, and the owner's doesn't: that one counts.
    let mut asked = scene.desk.start(&["ask", "--on", "shed", "Write a report"]);
    let approval = asked.until("approval_pending");
    assert_eq!(
        (&approval["tool"], &approval["arguments"]["command"]),
        (&"shell".into(), &"echo from the worker".into())
    );
    assert_eq!(worker.until("claimed")["what"], "begins for desk: Write a report");
    worker.until("approval_pending");
    let name = approval["name"].as_str().expect("a name");
    // Nobody at the worker decides, neither there nor by a lasting rule.
    shed.run(&["approvals", name, "--allow"]).refused(2, "the device that sent the run decides");
    let done = scene.desk.run(&["approvals", name, "--allow"]).code(0);
    assert_eq!(done.err, "sent to shed\n");
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(answers(&lines), ["Seen: true."]);
    assert_eq!(scene.desk.house.read("notes/report.md"), b"# Report\n");
    assert_eq!(worker.until("ended")["what"], "done");
    // What is allowed with the question needs no decision.
    let again = scene.desk.start(&["ask", "--on", "any", "--approve", "shell: echo *", "Again"]);
    let (code, lines) = again.end();
    assert_eq!((code, answers(&without_events(lines.clone()))), (0, vec!["Seen: true."]), "{lines:#?}");
    assert!(lines.iter().all(|line| line["type"] != "approval_pending"), "{lines:#?}");
    let runs = scene.desk.run(&["worker", "list", "--json"]).good().lines();
    assert_eq!(runs.iter().map(|run| &run["ending"]).collect::<Vec<_>>(), ["done", "done"]);
    // What the worker has paid isn't among this device's costs, and the log says so.
    let log = scene.desk.run(&["budget", "--log"]).good().text();
    assert!(log.contains("this month: $0.0000, 0 tokens") && log.matches("  (paid on ").count() == 2, "{log}");
}

/// A model that calls a shell once, and says whether it's told that the call was under way.
fn one_command(command: &'static str) -> String {
    model(move |turn, body| match turn {
        0 => (String::new(), vec![("shell", json!({"command": command}))]),
        _ => (format!("Told: {}.", body["messages"].to_string().contains("It was not run again")), Vec::new()),
    })
}

#[test]
fn when_a_worker_is_killed_another_goes_on_and_nothing_is_done_twice() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = one_command("echo begun >> begun.log; sleep 60");
    let (shed, barn) = (scene.device("shed", &at), scene.device("barn", &at));
    let key = scene.desk.key();
    let mut first = shed.worker(&[&key]);
    let asked = scene.desk.start(&["ask", "--on", "any", "--approve", "shell: *", "Go"]);
    first.until("claimed");
    until("the call is under way", || shed.house.path("notes/begun.log").exists());
    let mut second = barn.worker(&[&key]);
    first.kill();
    assert_eq!(second.until("claimed")["what"], "is taken over for desk: Go");
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(answers(&lines), ["Told: true."]);
    let calls = lines.iter().filter(|line| line["type"] == "tool_call").count();
    assert_eq!(calls, 1, "{lines:#?}");
    assert_eq!(second.until("ended")["what"], "done");
    // What the first one did there has not been done again here.
    assert!(!barn.house.path("notes/begun.log").exists());
    // The first one starts again, and doesn't go on with what it was doing.
    let _again = shed.worker(&[&key]);
    shed.run(&["sync", "now", "--for", "50"]);
    let runs = shed.run(&["runs", "--json"]).good().lines();
    assert_eq!(runs.iter().map(|run| &run["standing"]).collect::<Vec<_>>(), ["done"]);
}

#[test]
fn when_the_asker_is_killed_the_worker_finishes_and_nothing_is_lost_or_done_twice() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "echo begun >> begun.log; sleep 3"}))]),
            1 => (String::new(), vec![("write_file", json!({"path": "report.md", "content": "# Report\n"}))]),
            _ => ("It is written.".to_owned(), Vec::new()),
        }
    };
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let shed = scene.device("shed", &model(script));
    let mut worker = shed.worker(&[&scene.desk.key()]);
    let asked = scene.desk.start(&["ask", "--on", "any", "--approve", "shell: *", "Go"]);
    until("the call is under way", || shed.house.path("notes/begun.log").exists());
    asked.kill();
    assert_eq!(worker.until("ended")["what"], "done");
    // All of it arrives at the asker, which does none of it again.
    scene.desk.run(&["sync", "now", "--for", "50"]).good();
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    assert_eq!((runs.len(), &runs[0]["standing"]), (1, &json!("done")), "{runs:#?}");
    let steps = scene.desk.run(&["steps", "last", "--json"]).good().lines();
    let calls = steps.iter().filter(|step| step["type"] == "tool_call").count();
    assert_eq!((calls, answers(&steps)), (2, vec!["It is written."]), "{steps:#?}");
    assert_eq!(scene.desk.house.read("notes/report.md"), b"# Report\n");
    assert_eq!(shed.house.read("notes/begun.log"), b"begun\n");
    let queue = scene.desk.run(&["worker", "list", "--json"]).good().lines();
    assert_eq!((queue.len(), &queue[0]["claims"], &queue[0]["ending"]), (1, &json!(1), &json!("done")), "{queue:#?}");
}

#[test]
fn when_a_plan_is_killed_what_a_worker_did_meanwhile_counts_for_it() {
    let script = |turn: usize, body: &Value| -> Said {
        match (goal_of(body).contains("the result of the task count"), turn) {
            (false, 0) => (String::new(), vec![("shell", json!({"command": "echo begun >> begun.log; sleep 3"}))]),
            (false, _) => ("There are 42 rows.".to_owned(), Vec::new()),
            (true, _) => (format!("Known: {}.", goal_of(body).contains("There are 42 rows")), Vec::new()),
        }
    };
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  ```\n- [ ] Write the report ^write\n  \
                ```yaml\n  agent: docs\n  needs: [count]\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let shed = scene.device("shed", &model(script));
    let mut worker = shed.worker(&[&scene.desk.key()]);
    let asked = scene.carry_out(&["--on", "any", "--approve", "shell: *"]);
    until("the call is under way", || shed.house.path("notes/begun.log").exists());
    asked.kill();
    assert_eq!(worker.until("ended")["what"], "done");
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    let is_lead = |run: &&Value| run["prompt"].as_str().is_some_and(|text| text.starts_with("Carry out the plan"));
    let lead = runs.iter().find(is_lead).and_then(|run| run["id"].as_str()).expect("an id");
    let resumed = scene.desk.run(&["runs", lead, "--resume", "--json"]).code(0).lines();
    let said = answers(&resumed).join("\n");
    assert!(said.starts_with("2 of 2 tasks are done.") && said.contains("(done): Known: true."), "{said}");
    assert_eq!(shed.house.read("notes/begun.log"), b"begun\n");
    let queue = scene.desk.run(&["worker", "list", "--json"]).good().lines();
    let claims: Vec<(&Value, &Value)> = queue.iter().map(|one| (&one["claims"], &one["ending"])).collect();
    assert_eq!(claims, [(&json!(1), &json!("done")), (&json!(1), &json!("done"))], "{queue:#?}");
}

#[test]
fn when_a_worker_is_killed_another_continues_what_was_delegated() {
    let script = |turn: usize, body: &Value| -> Said {
        let messages = body["messages"].to_string();
        let ask = |goal: &str| vec![("ask_agent", json!({"agent": "docs", "goal": goal}))];
        match (goal_of(body).contains("Write it down"), turn) {
            (true, 0) => (String::new(), vec![("shell", json!({"command": "echo begun >> begun.log; sleep 60"}))]),
            (true, _) => (format!("Part told: {}.", messages.contains("It was not run again")), Vec::new()),
            // What was begun for another goal is of no use.
            (false, 0) => (String::new(), [ask("Write it down, please"), ask("Write it down in verse")].concat()),
            (false, 1) => (String::new(), ask("Write it down, please")),
            (false, _) => (format!("Lead told: {}.", messages.contains("Part told: true.")), Vec::new()),
        }
    };
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = model(script);
    let (shed, barn) = (scene.device("shed", &at), scene.device("barn", &at));
    let key = scene.desk.key();
    let mut first = shed.worker(&[&key]);
    let asked = scene.desk.start(&["ask", "--on", "any", "--approve", "shell: *", "Go"]);
    first.until("claimed");
    until("both parts are under way", || {
        std::fs::read(shed.house.path("notes/begun.log")).is_ok_and(|log| log == b"begun\nbegun\n")
    });
    let mut second = barn.worker(&[&key]);
    first.kill();
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(answers(&without_events(lines.clone())), ["Lead told: true."], "{lines:#?}");
    assert_eq!(second.until("ended")["what"], "done");
    assert!(!barn.house.path("notes/begun.log").exists(), "nothing was done twice");
    // The part that wasn't asked for again has been ended, and no other one begun.
    scene.desk.run(&["sync", "now", "--for", "50"]).good();
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    let mut parts: Vec<(&str, &str)> = runs
        .iter()
        .map(|run| (run["prompt"].as_str().expect("text"), run["standing"].as_str().expect("text")))
        .collect();
    parts.sort_unstable();
    let expected = [("Go", "done"), ("Write it down in verse", "stopped"), ("Write it down, please", "done")];
    assert_eq!(parts, expected, "{runs:#?}");
}

/// The decision reaches the next worker before the lead has its part continued.
#[test]
fn a_decision_about_delegated_work_counts_on_the_next_worker() {
    let script = |turn: usize, body: &Value| -> Said {
        let messages = body["messages"].to_string();
        match (goal_of(body).contains("Write it down"), turn) {
            (true, 0) => (String::new(), vec![("shell", json!({"command": "echo ran >> ran.log"}))]),
            (true, _) => ("Part done.".to_owned(), Vec::new()),
            (false, _) if messages.contains("Part done.") => ("All done.".to_owned(), Vec::new()),
            (false, _) => (String::new(), vec![("ask_agent", json!({"agent": "docs", "goal": "Write it down"}))]),
        }
    };
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = model(script);
    let (shed, barn) = (scene.device("shed", &at), scene.device("barn", &at));
    let key = scene.desk.key();
    let first = shed.worker(&[&key]);
    let mut asked = scene.desk.start(&["ask", "--on", "any", "Go"]);
    let name = asked.until("approval_pending")["name"].as_str().expect("a name").to_owned();
    first.kill();
    assert_eq!(scene.desk.run(&["approvals", &name, "--allow"]).code(0).err, "sent to shed\n");
    let mut second = barn.worker(&[&key]);
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert_eq!(answers(&lines), ["All done."], "{lines:#?}");
    assert_eq!(second.until("ended")["what"], "done");
    assert_eq!(barn.house.read("notes/ran.log"), b"ran\n");
    assert!(!shed.house.path("notes/ran.log").exists());
}

#[test]
fn a_worker_that_loses_the_hub_stops_at_once_and_the_run_goes_on_later() {
    let mut scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = one_command("echo begun >> begun.log; sleep 41.375");
    let shed = scene.device("shed", &at);
    let mut worker = shed.worker(&[&scene.desk.key()]);
    let asked = scene.desk.start(&["ask", "--on", "any", "--approve", "shell: *", "Go"]);
    until("the call is under way", || shed.house.path("notes/begun.log").exists());
    assert!(!processes_naming("sleep 41.375").is_empty());
    scene.hub.take().expect("it runs").kill();
    worker.until("lost");
    until("its processes are gone", || processes_naming("sleep 41.375").is_empty());
    scene.restart_hub();
    let (code, lines) = asked.end();
    assert_eq!((code, answers(&lines)), (0, vec!["Told: true."]), "{lines:#?}");
    assert_eq!(shed.house.read("notes/begun.log"), b"begun\n");
    assert_eq!(worker.until("claimed")["what"], "is taken over for desk: Go");
}

#[test]
fn only_named_devices_are_served_and_a_waiting_run_is_stopped_from_anywhere() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = one_command("true");
    let (shed, phone) = (scene.device("shed", &at), scene.device("phone", &at));
    let mut worker = shed.worker(&[&phone.key()]);
    let sent = scene.desk.json(&["ask", "--on", "any", "--no-wait", "Go"]);
    let run = sent["run"].as_str().expect("an id").to_owned();
    let listed = phone.run(&["worker", "list"]).good().text();
    assert_eq!(listed, format!("{}  waits for a worker  Go  (of desk)\n", &run[..8]));
    // A run of a named device is served meanwhile, this one isn't.
    let (code, lines) = phone.start(&["ask", "--on", "shed", "--approve", "shell: *", "Go, too"]).end();
    assert_eq!((code, answers(&lines)), (0, vec!["Told: false."]), "{lines:#?}");
    assert_eq!(worker.until("claimed")["what"], "begins for phone: Go, too");
    phone.run(&["worker", "stop", &run[..8]]).good();
    phone.run(&["worker", "stop", &run[..8]]).refused(1, "the run is over");
    let runs = scene.desk.run(&["worker", "list", "--json"]).good().lines();
    let mine = runs.iter().find(|one| one["run"] == run.as_str()).expect("listed");
    assert_eq!((&mine["ending"], &mine["worker"], &mine["claims"]), (&"cancelled".into(), &Value::Null, &0.into()));
    // What is wrong is said in one sentence.
    let desk = &scene.desk;
    desk.run(&["worker"]).refused(2, "whose runs?");
    desk.run(&["worker", "--for", "nobody"]).refused(2, "no device “nobody” is paired with this one");
    desk.run(&["worker", "stop"]).refused(2, "which run?");
    desk.run(&["worker", "stop", "ffff"]).refused(2, "no run in the queue begins with “ffff”");
    desk.run(&["worker", "rest"]).refused(2, "`worker rest` is not known");
    desk.run(&["ask", "--on", "nowhere", "Go"]).refused(2, "the hub knows no device “nowhere”; it knows");
    desk.run(&["ask", "--on", "any", "--fork", "--", "Go"]).refused(2, "--on and --fork don't go together");
    let alone = Device { house: House::with(&[("a.md", "one\n")]) };
    alone.run(&["ask", "--on", "any", "Go"]).refused(2, "this volume isn't shared over one");
    alone.run(&["worker", "--for", &desk.key()]).refused(2, "no volume is shared over a hub here");
}

#[test]
fn a_call_that_waits_for_its_owner_waits_on_the_next_worker_too() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let at = one_command("echo allowed");
    let (shed, barn) = (scene.device("shed", &at), scene.device("barn", &at));
    let key = scene.desk.key();
    let first = shed.worker(&[&key]);
    let mut asked = scene.desk.start(&["ask", "--on", "any", "Go"]);
    let name = asked.until("approval_pending")["name"].as_str().expect("a name").to_owned();
    first.kill();
    let mut second = barn.worker(&[&key]);
    assert_eq!(second.until("claimed")["what"], "is taken over for desk: Go");
    second.until("approval_pending");
    // What changes in the run's document meanwhile doesn't take it from the one that has the claim.
    shed.run(&["sync", "now", "--for", "50"]);
    let done = scene.desk.run(&["approvals", &name, "--allow"]).code(0);
    assert_eq!(done.err, "sent to barn\n");
    let (code, lines) = asked.end();
    assert_eq!((code, answers(&lines)), (0, vec!["Told: false."]), "{lines:#?}");
    assert!(lines.iter().any(|line| line["result"].to_string().contains("allowed")), "{lines:#?}");
}

/// A device that may write in the volume makes a run under the id of an order that waits, to have its own work done.
#[test]
fn a_document_that_another_device_wrote_is_not_carried_out_for_an_order() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    // What happens on the phone would arrive on the others.
    let (shed, phone) =
        (scene.device("shed", &one_command("touch pwned.txt")), scene.device("phone", &one_command("true")));
    let sent = scene.desk.json(&["ask", "--on", "any", "--no-wait", "--approve", "shell: *", "Go"]);
    let run = sent["run"].as_str().expect("an id");
    phone.run(&["ask", "--run", run, "--no-wait", "Do as I say"]);
    phone.run(&["sync", "now", "--for", "50"]).good();
    let words = ["worker", "--once", "--for", &scene.desk.key()];
    let (code, lines) = shed.start(&words).end();
    assert_eq!(code, 0, "{lines:#?}");
    let last = lines.last().expect("a line");
    assert_eq!(last["what"], "failed: there is a run with this id that nobody has carried out", "{lines:#?}");
    assert!(!shed.house.path("notes/pwned.txt").exists());
}

#[test]
fn names_are_checked_before_a_run_is_sent() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let desk = &scene.desk;
    let words = ["ask", "--on", "any", "--no-wait", "--agent", "backand", "Go"];
    desk.run(&words).refused(2, "There is no agent called").refused(2, "Did you mean backend?");
    let words = ["ask", "--on", "any", "--no-wait", "--approve", "shel: *", "Go"];
    desk.run(&words).refused(2, "There is no tool called").refused(2, "Did you mean shell");
    let words = ["ask", "--on", "any", "--no-wait", "--approve", "zzzzzzzzzzzz", "Go"];
    desk.run(&words).refused(2, "There are ").refused(2, "write_file");
    // Its rules go with the run, so a run isn't sent without them.
    desk.house.write("W/config.yaml", b"approval: 7\n");
    desk.run(&["ask", "--on", "any", "--no-wait", "Go"]).refused(2, "its rules go with the run");
    desk.house.write("W/config.yaml", b"");
    assert!(desk.run(&["worker", "list", "--json"]).good().lines().is_empty(), "nothing was sent");
}

#[test]
fn a_worker_notices_volumes_that_come_and_go_while_it_runs() {
    let scene = Scene::new(&[("plan.md", "# Plan\n")]);
    let shed = scene.device("shed", &one_command("true"));
    let mut worker = shed.worker(&[&scene.desk.key()]);
    scene.desk.house.write("more/other.md", b"# Other\n");
    scene.desk.run(&["open", "more"]).good();
    let more = scene.desk.json(&["sync", "share", "more", &scene.at])["address"].as_str().expect("one").to_owned();
    scene.desk.run(&["sync", "now", "--for", "50"]).good();
    shed.run(&["sync", "join", &more, "more", "--for", "50"]).good();
    assert_eq!(worker.until("volumes")["volumes"].as_array().expect("names").len(), 2);
    let words = ["ask", "--on", "shed", "--project", "more", "--approve", "shell: *", "Go"];
    let (code, lines) = scene.desk.start(&words).end();
    assert_eq!((code, answers(&lines)), (0, vec!["Told: false."]), "{lines:#?}");
    shed.run(&["sync", "leave", "more"]).good();
    assert_eq!(worker.until("volumes")["volumes"].as_array().expect("names").len(), 1);
}

/// The first message of a user in a request to a model: the goal.
fn goal_of(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().find(|message| message["role"] == "user").map_or_else(String::new, |one| one["content"].to_string())
}

impl Scene {
    /// Carries out a plan at the desk, where nobody answers at the terminal.
    fn carry_out(&self, words: &[&str]) -> Lines {
        self.carry_out_with(b"", words)
    }

    /// Carries out the plan, with these answers at the terminal.
    fn carry_out_with(&self, answers: &[u8], words: &[&str]) -> Lines {
        let words: Vec<&str> = ["tasks", "run", "tasks/report.md"].iter().chain(words).copied().collect();
        let mut lines = self.desk.start(&words);
        lines.child.stdin.take().expect("piped").write_all(answers).expect("written");
        lines
    }
}

#[test]
fn a_task_of_a_plan_is_done_elsewhere_and_its_result_comes_back_into_the_plan() {
    let script = |_: usize, body: &Value| -> Said {
        let goal = goal_of(body);
        // The plan itself may be among what is recalled, so its words tell nothing.
        let said = match goal.contains("the result of the task count") {
            true => format!("Known: {}.", goal.contains("There are 42 rows")),
            false => "There are 42 rows.".to_owned(),
        };
        (said, Vec::new())
    };
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  device: shed\n  ```\n- [ ] Write the report \
                ^write\n  ```yaml\n  agent: docs\n  needs: [count]\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let shed = scene.device("shed", &model(script));
    let mut worker = shed.worker(&[&scene.desk.key()]);
    // The plan names the device of one task, and the user that of the other. Only the first is asked about.
    let mut asked = scene.carry_out_with(b"y\n", &["--on", "any"]);
    let approval = asked.until("approval_pending");
    assert_eq!(approval["reason"], "the plan has a checkpoint before this task, which runs on the device “shed”");
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    let said = answers(&lines).join("\n");
    assert!(said.starts_with("2 of 2 tasks are done.") && said.contains("(done): Known: true."), "{said}");
    worker.until("ended");
    worker.until("ended");
    let plan = String::from_utf8(scene.desk.house.read("notes/tasks/report.md")).expect("text");
    assert!(plan.contains("- [x] Count") && plan.contains("- [x] Write"), "{plan}");
}

impl Scene {
    /// A device whose model gives answers of at most 7 tokens at a dollar each, which is known before the call.
    fn paid_device(&self) -> Device {
        let shed = self.device("shed", &model(|_, _| ("Done so far.".to_owned(), Vec::new())));
        let config = String::from_utf8(shed.house.read("W/config.yaml")).expect("text");
        let price =
            "context: 32000, local: false, max_tokens: 7, price: {input: 0, output: 1000000}}\n  cost_limit: null";
        shed.house.write("W/config.yaml", config.replace("context: 32000}", price).as_bytes());
        shed
    }
}

#[test]
fn tasks_that_are_sent_at_once_share_the_budget_of_the_plan() {
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  ```\n- [ ] Write the report ^write\n  \
                ```yaml\n  agent: docs\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let shed = scene.paid_device();
    let mut worker = shed.worker(&[&scene.desk.key()]);
    let asked = scene.carry_out(&["--on", "shed", "--budget", "16"]);
    worker.until("ended");
    worker.until("ended");
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    let is_task = |run: &&Value| run["prompt"] == "Count the rows" || run["prompt"] == "Write the report";
    let tasks: Vec<(&Value, &Value)> =
        runs.iter().filter(is_task).map(|run| (&run["budget"], &run["spent"]["cost"])).collect();
    assert_eq!(tasks, [(&json!(8.0), &json!(7.0)), (&json!(8.0), &json!(7.0))], "{runs:#?}");
}

#[test]
fn what_sent_tasks_cost_counts_for_the_budget_of_the_plan() {
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  ```\n- [ ] Write the report ^write\n  \
                ```yaml\n  agent: docs\n  needs: [count]\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let shed = scene.paid_device();
    let mut worker = shed.worker(&[&scene.desk.key()]);
    let asked = scene.carry_out(&["--on", "shed", "--budget", "10"]);
    worker.until("ended");
    worker.until("ended");
    assert_eq!(asked.end().0, 1);
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    let of = |prompt: &str| {
        runs.iter().find(|run| run["prompt"].as_str().expect("text").starts_with(prompt)).expect("there")
    };
    assert_eq!(of("Count the rows")["spent"]["cost"], 7.0);
    let late = of("Write the report");
    assert_eq!((&late["budget"], &late["standing"]), (&json!(3.0), &json!("budget")), "{late}");
    let lead = of("Carry out the plan");
    assert_eq!(lead["standing"], "budget", "{lead}");
    let lead = lead["id"].as_str().expect("an id");
    let result = scene.desk.run(&["runs", lead, "--result", "--json"]).code(0).json();
    assert_eq!(result["metrics"]["costUsd"], 7.0, "{result}");
}

/// The worker is killed while a call waits, and the user allows the call before the task is taken back.
#[test]
fn a_task_whose_worker_is_killed_goes_on_here_by_what_was_decided_and_nothing_is_done_twice() {
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let at = one_command("echo ran >> ran.log");
    let shed = scene.device("shed", &at);
    super::agents::configure(&scene.desk.house, &at);
    let worker = shed.worker(&[&scene.desk.key()]);
    let mut asked = scene.carry_out(&["--on", "shed"]);
    let approval = asked.until("approval_pending");
    worker.kill();
    let name = approval["name"].as_str().expect("a name");
    assert_eq!(scene.desk.run(&["approvals", name, "--allow"]).code(0).err, "sent to shed\n");
    let (code, lines) = asked.end();
    assert_eq!(code, 0, "{lines:#?}");
    assert!(answers(&lines).join("\n").contains("(done): Told: false."), "{lines:#?}");
    assert_eq!(scene.desk.house.read("notes/ran.log"), b"ran\n");
    assert!(!shed.house.path("notes/ran.log").exists());
    let queue = scene.desk.run(&["worker", "list", "--json"]).good().lines();
    assert_eq!((queue.len(), &queue[0]["ending"]), (1, &"local".into()), "{queue:#?}");
    let runs = scene.desk.run(&["runs", "--json"]).good().lines();
    let task = runs.iter().find(|run| run["prompt"] == "Count the rows").expect("it's here");
    assert_eq!(task["standing"], "done");
}

#[test]
fn a_sent_task_is_stopped_from_any_device() {
    let plan = "- [ ] Count the rows ^count\n  ```yaml\n  agent: data\n  ```\n";
    let scene = Scene::new(&[("tasks/report.md", plan)]);
    let shed = scene.device("shed", &model(|_, _| ("Never said.".to_owned(), Vec::new())));
    // No worker runs: it waits.
    let asked = scene.carry_out(&["--on", "any"]);
    let queued = || shed.run(&["worker", "list", "--json"]).good().lines();
    until("it is in the queue", || queued().len() == 1);
    let run = queued()[0]["run"].as_str().expect("an id").to_owned();
    shed.run(&["worker", "stop", &run]).good();
    let (code, lines) = asked.end();
    assert_eq!(code, 1, "{lines:#?}");
    // The plan is tried again, and stopped where it runs.
    let asked = scene.carry_out(&["--on", "any"]);
    until("it is in the queue again", || queued().len() == 2);
    let lead = scene.desk.run(&["runs", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    scene.desk.run(&["runs", &lead, "--stop"]).good();
    assert_eq!(asked.end().0, 1);
    assert!(queued().iter().all(|run| run["ending"] == "cancelled"), "{:#?}", queued());
}
