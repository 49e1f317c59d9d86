//! Settings of agents, approval lists and the router through the program; and what other programs see of runs.

use super::agents::{Said, house, model};
use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Request bodies that a model was sent.
type Sent = Arc<Mutex<Vec<Value>>>;

/// A model that answers after this time, and what it was sent.
fn slow_model(answer: &'static str, delay: Duration) -> (String, Sent) {
    let sent = Sent::default();
    let heard = Arc::clone(&sent);
    let address = model(move |_, body| -> Said {
        heard.lock().expect("heard").push(body.clone());
        std::thread::sleep(delay);
        (answer.to_owned(), Vec::new())
    });
    (address, sent)
}

/// Adds lines to the house's configuration.
fn configure(house: &House, lines: &str) {
    let text = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned() + lines;
    house.write("W/config.yaml", text.as_bytes());
}

#[test]
fn the_areas_of_a_goal_become_tasks_of_specialists() {
    let house = House::with(&[("a.md", "# A\n")]);
    let made = house.run(&["tasks", "plan", "REST service + React page + tests + docs"]).good().text();
    let lines: Vec<&str> = made.lines().collect();
    assert_eq!(lines.len(), 7, "{made}");
    assert!(lines[1].contains("t1  REST service") && lines[1].ends_with("@backend"), "{made}");
    assert!(lines[2].contains("t2  React page") && lines[2].ends_with("@frontend  (after t1)"), "{made}");
    assert!(lines[3].ends_with("@qa  (after t1, t2)") && lines[4].ends_with("@docs  (after t1, t2)"), "{made}");
    let review = "t5  Review what was made (of: REST service + React page + tests + docs)";
    assert!(lines[5].contains(review) && lines[5].ends_with("@qa  (after t3, t4)"), "{made}");
    assert_eq!(lines[6], "Rules made this plan; `--model` lets a model make one.");
    let tasks = house.run(&["tasks", "--json"]).good().lines();
    let types: Vec<&Value> = tasks.iter().map(|task| &task["type"]).collect();
    assert_eq!(types, [&Value::Null, &Value::Null, &Value::Null, &Value::Null, &json!("review")]);
}

#[test]
fn agents_say_what_they_are_and_what_they_do_now() {
    let own = "---\nname: tester\ntemprature: 1\nmax_tokens: 77\n---\nYou test.\n";
    let file = "---\nname: local\nllm_provider: test\n---\nYou help.\n";
    let house = House::with(&[("a.md", "# A\n"), ("components/agents/local.md", file)]);
    house.write("W/agents/tester.md", own.as_bytes());
    let config =
        "agents:\n  specialists:\n    qa: {enabled: false}\n    backend: {max_tokens: 900, temperature: 0.5}\n";
    house.write("W/config.yaml", config.as_bytes());
    let done = house.run(&["tasks", "agents", "--json"]).code(0);
    let all = done.lines();
    let find = |name: &str| all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}"));
    for role in ["lead", "frontend", "backend", "devops", "security", "qa", "docs", "data", "mobile"] {
        let one = find(role);
        assert_eq!(one["role"], role, "{one}");
        assert!(one["capabilities"].as_array().is_some_and(|all| all.len() >= 6), "{one}");
        assert_eq!(one["status"], if role == "qa" { "disabled" } else { "idle" }, "{one}");
    }
    assert!(find("backend")["capabilities"].as_array().expect("a list").contains(&json!("api_design")));
    assert_eq!((&find("backend")["max_tokens"], &find("backend")["temperature"]), (&json!(900), &json!(0.5)));
    assert_eq!((&find("tester")["max_tokens"], &find("tester")["role"]), (&json!(77), &json!("tester")));
    // A project's file may come from anybody, so it doesn't choose who reads the notes.
    assert_eq!(find("local")["llm_provider"], Value::Null);
    assert!(done.err.contains("can't choose the provider"), "{}", done.err);
}

#[test]
fn an_agent_may_have_to_call_a_tool_first() {
    let sent: Sent = Sent::default();
    let heard = Arc::clone(&sent);
    let address = model(move |turn, body| -> Said {
        heard.lock().expect("heard").push(body["tool_choice"].clone());
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    house.write("W/agents/tester.md", b"---\nname: tester\ntool_choice: required\n---\nYou test.\n");
    house.run(&["ask", "go", "--agent", "tester"]).code(0);
    configure(&house, "agents:\n  specialists:\n    tester: {tool_choice: sometimes}\n");
    house.run(&["providers"]).refused(2, "sometimes");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).replace("sometimes", "auto");
    house.write("W/config.yaml", config.as_bytes());
    house.run(&["ask", "go", "--agent", "tester"]).code(0);
    house.run(&["ask", "go"]).code(0);
    let sent = sent.lock().expect("sent");
    // A run that must call a tool each time would never end.
    let required = [json!("required"), json!("auto")];
    assert_eq!(sent[..2], required);
    assert_eq!(sent[2..], [json!("auto"), json!("auto"), Value::Null, Value::Null]);
    let agents = house.run(&["tasks", "agents", "--json"]).good().lines();
    assert!(agents.iter().any(|one| one["name"] == "tester" && one["tool_choice"] == "auto"), "{agents:?}");
}

#[test]
fn an_agent_has_its_own_length_and_temperature() {
    let (address, sent) = slow_model("Done.", Duration::ZERO);
    let house = house(&address, &[("a.md", "# A\n")]);
    let own = "---\nname: tester\ntemprature: 1\nmax_tokens: 77\ntemperature: 0.25\n---\nYou test.\n";
    house.write("W/agents/tester.md", own.as_bytes());
    let done = house.run(&["ask", "go", "--agent", "tester"]).code(0);
    let told = "“temprature” of an agent changes nothing; did you mean temperature?";
    assert!(done.err.contains(told), "{}", done.err);
    configure(&house, "agents:\n  specialists:\n    tester: {max_tokens: 99, tools: [read_file]}\n");
    house.run(&["ask", "go", "--agent", "tester"]).code(0);
    house.run(&["ask", "go"]).code(0);
    let sent = sent.lock().expect("sent");
    let limit = |body: &Value| body.get("max_tokens").or(body.get("max_completion_tokens")).cloned();
    let limits: Vec<Option<Value>> = sent.iter().map(limit).collect();
    assert_eq!(limits, [Some(json!(77)), Some(json!(99)), None]);
    let temperatures: Vec<&Value> = sent.iter().map(|body| &body["temperature"]).collect();
    assert_eq!(temperatures, [&json!(0.25), &json!(0.25), &Value::Null]);
    let tools = sent[1]["tools"].as_array().expect("tools");
    assert_eq!((tools.len(), &tools[0]["function"]["name"]), (1, &json!("read_file")));
}

#[test]
fn approval_lists_mean_what_they_say_or_nothing_runs() {
    let script = |turn: usize, body: &Value| -> Said {
        let denied = body["messages"].to_string().contains("denies it");
        match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "b.md", "content": "x"}))]),
            _ => (if denied { "It was denied." } else { "Written." }.to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let before = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let set = |lines: &str| house.write("W/config.yaml", format!("{before}{lines}").as_bytes());
    set("approval: {always_approve: [write_flie]}\n");
    house
        .run(&["ask", "go"])
        .refused(2, "approval.always_approve: there is no tool “write_flie”. Did you mean write_file?");
    set("approval: {never_approve: [deploy_production]}\n");
    house.run(&["ask", "go"]).refused(2, "“deploy_production” always needs approval");
    // The names of the reference are understood.
    set("approval: {always_approve: [deploy_production, api_key_usage], never_approve: [list_directory]}\n");
    assert!(house.run(&["ask", "go"]).good().text().contains("Written."));
    house.run(&["runs", "last", "--undo"]).good();
    // A denial wins over what is allowed on the command line.
    set("approval: {never_approve: [write_file], deny: ['write_file: *.md']}\n");
    let said = house.run(&["ask", "go", "--approve", "write_file"]).code(0).text();
    assert!(said.contains("It was denied."), "{said}");
    assert!(!house.path("notes/b.md").exists());
}

#[test]
fn a_denied_command_does_not_run_behind_another_one() {
    let script = |turn: usize, body: &Value| -> Said {
        let denied = body["messages"].to_string().contains("denies it");
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "true; env /bin/rm -f a.md"}))]),
            _ => (if denied { "It was denied." } else { "Done." }.to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    let before = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let set = |lines: &str| house.write("W/config.yaml", format!("{before}{lines}").as_bytes());
    set("approval: {never_approve: [shell], deny: ['shell: rm *']}\n");
    let said = house.run(&["ask", "go", "--approve", "shell"]).code(0).text();
    assert!(said.contains("It was denied.") && house.path("notes/a.md").exists(), "{said}");
    // A command that is to be asked about is asked about there, too.
    set("approval: {never_approve: [shell], always_approve: ['shell: rm *']}\n");
    house.run(&["ask", "go", "--no-wait"]).code(1);
    assert_eq!(house.run(&["approvals"]).good().text().lines().filter(|line| line.contains("waits")).count(), 1);
    // A rule that could never fit isn't taken.
    set("approval: {deny: ['shell:']}\n");
    house.run(&["ask", "go"]).refused(2, "approval.deny: “shell:” has nothing after its colon");
}

#[test]
fn a_slow_provider_is_remembered_and_the_cheapest_can_go_first() {
    let (slow, slow_sent) = slow_model("From slow.", Duration::from_millis(400));
    let (quick, quick_sent) = slow_model("From quick.", Duration::ZERO);
    let house = House::with(&[("a.md", "# A\n")]);
    let provider = |address: &str, price: u32| {
        let price = format!("{{input: {price}, output: {price}}}");
        format!("{{wire: openai, base_url: \"{address}/v1\", model: m, context: 32000, local: false, price: {price}}}")
    };
    let (slow, quick) = (provider(&slow, 9), provider(&quick, 1));
    let config = |more: &str| {
        format!(
            "llm:\n  default_provider: slow\n  prefer_local: false\n  fallback: [quick]\n{more}  providers:\n    slow: \
             {slow}\n    quick: {quick}\n"
        )
    };
    house.write("W/config.yaml", config("  latency_target: 200\n").as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From slow."));
    // Each command is a process of its own.
    assert!(house.run(&["ask", "go"]).good().text().contains("From quick."));
    house.write("W/config.yaml", config("").as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From slow."));
    house.write("W/config.yaml", config("  prefer_cheapest: true\n").as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From quick."));
    assert_eq!((slow_sent.lock().expect("sent").len(), quick_sent.lock().expect("sent").len()), (2, 2));

    // What a call is expected to cost and how long it takes is listed, by a process of its own.
    let listed = house.run(&["providers", "--json"]).good().json();
    let of = |name: &str| {
        let all = listed["providers"].as_array().expect("a list");
        all.iter().find(|one| one["name"] == name).cloned().expect("it is listed")
    };
    assert_eq!((&of("slow")["expected_call_usd"], &of("quick")["expected_call_usd"]), (&json!(0.0405), &json!(0.0045)));
    assert!(of("slow")["latency_ms"].as_u64() >= Some(400), "{listed}");
    assert!(of("quick")["latency_ms"].as_u64().is_some(), "{listed}");
    assert_eq!(of("ollama")["latency_ms"], Value::Null);
    let shown = house.run(&["providers"]).good().text();
    let line = shown.lines().find(|line| line.contains("slow")).expect("a line");
    assert!(line.contains(", about $0.0405 a call, answers in ") && line.ends_with(" ms"), "{shown}");

    // A rule names the cheapest, or several in order.
    house.write("W/config.yaml", config("  rules: [{when: tokens > 0, use: cheapest}]\n").as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From quick."));
    house.write("W/config.yaml", config("  rules: [{when: tokens > 0, use: [slow, quick]}]\n").as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From slow."));
    let cheapest = "  prefer_cheapest: true\n  rules: [{when: tokens > 0, use: [slow, quick]}]\n";
    house.write("W/config.yaml", config(cheapest).as_bytes());
    assert!(house.run(&["ask", "go"]).good().text().contains("From quick."));
}

#[test]
fn the_doctor_names_the_platform() {
    let house = House::new();
    let told = house.run(&["doctor", "--json"]).good().json();
    let lines: Vec<&Value> = told.as_array().expect("a list").iter().filter(|one| one["area"] == "platform").collect();
    let note = |name: &str| {
        let line = lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}: {told}"));
        line["note"].as_str().expect("a note").to_owned()
    };
    assert!(note("system").contains(std::env::consts::ARCH), "{told}");
    assert!(note("memory").contains("GiB in all") && note("disk").contains("GiB free"), "{told}");
    assert!(note("folders").contains("temporary files in "), "{told}");
    note("containers");
    note("GPU");
}

#[test]
fn another_program_follows_what_happens() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => ("I look.".to_owned(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("It says one.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "one\n")]);
    let kinds = house.run(&["events"]).good().text();
    assert!(kinds.starts_with("USER_INPUT") && kinds.contains("FILE_CHANGED"), "{kinds}");
    house.run(&["events", "--follow", "--filter", "USER_INPT"]).refused(2, "did you mean USER_INPUT?");
    house.run(&["events", "--follow", "--count", "many"]).refused(2, "--count wants a whole number");

    let (mut files, changed) = follower(&house, &["--count", "1", "--filter", "FILE_CHANGED: Inbox/*"]);
    house.write("notes/Other.md", b"other\n");
    house.write("notes/Inbox/new.md", b"new\n");
    until("a new file is told", || files.try_wait().expect("waited").is_some());
    let event: Value = serde_json::from_str(&read_all(changed)).expect("one event");
    assert_eq!((&event["kind"], &event["change"]), (&json!("FILE_CHANGED"), &json!("created")), "{event}");
    assert_eq!((&event["path"], &event["project"]), (&json!("Inbox/new.md"), &json!("notes")), "{event}");

    let filters = ["user-input", "LLM_OUTPUT", "TOOL_OUTPUT: read_*", "RUN_ENDED: done"];
    let mut words = vec!["--count", "5"];
    words.extend(filters.iter().flat_map(|filter| ["--filter", filter]));
    let (mut runs, said) = follower(&house, &words);
    house.run(&["ask", "What does a.md say?"]).good();
    until("all of the run is told", || runs.try_wait().expect("waited").is_some());
    let said = read_all(said);
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["USER_INPUT", "LLM_OUTPUT", "TOOL_OUTPUT", "LLM_OUTPUT", "RUN_ENDED"], "{said}");
    assert_eq!((&events[0]["text"], &events[0]["agent"]), (&json!("What does a.md say?"), &json!("assistant")));
    assert_eq!((&events[2]["tool"], &events[2]["success"]), (&json!("read_file"), &json!(true)), "{said}");
    assert_eq!((&events[3]["text"], &events[3]["final"]), (&json!("It says one."), &json!(true)), "{said}");
}

#[test]
fn a_changed_file_begins_work_but_not_what_agents_change() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("write_file", json!({"path": "Inbox/answer.md", "content": "seen"}))]),
            _ => ("Filed.".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("a.md", "one\n")]);
    house.run(&["schedule", "add", "on fire", "File it"]).refused(2, "“on fire” names no event");
    house.run(&["schedule", "add", "on change ../*", "File it"]).refused(2, "“on change ../*” never happens");
    house.run(&["schedule", "add", "on event SKIPPED", "File it"]).refused(2, "SKIPPED starts nothing");
    house.run(&["events", "--follow", "--count", "0"]).refused(2, "from 1, not “0”");
    let said = house.run(&["schedule", "add", "on change Inbox/*", "File it", "--name", "inbox"]).good().text();
    assert!(said.starts_with("inbox: starts on change Inbox/*, while"), "{said}");
    let listed = house.run(&["schedule"]).good().text();
    assert!(listed.starts_with("inbox  on change Inbox/*  waits  File it"), "{listed}");

    let mut command = house.command(&["schedule", "watch", "--json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("output")).lines().map_while(Result::ok);
    // The watcher says nothing until something happens, so the file is changed until it notices.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let path = house.path("notes/Inbox/letter.md");
    let writer = std::thread::spawn(move || {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let mut number = 0;
        while stopped.recv_timeout(Duration::from_millis(500)).is_err() {
            number += 1;
            std::fs::write(&path, format!("letter {number}\n")).expect("written");
        }
    });
    let first = lines.next().expect("it begins");
    stop.send(()).expect("stopped");
    writer.join().expect("written");
    let mut events: Vec<Value> = vec![serde_json::from_str(&first).expect("JSON")];
    while events.last().is_some_and(|event| event["event"] != "run_ended") {
        events.push(serde_json::from_str(&lines.next().expect("it goes on")).expect("JSON"));
    }
    assert_eq!((&events[0]["event"], &events[0]["name"]), (&json!("scheduled"), &json!("inbox")), "{events:?}");
    assert_eq!(events.last().expect("the end")["ending"], "done", "{events:?}");
    until("the agent's note is on disk", || house.path("notes/Inbox/answer.md").exists());
    // The letter's last change may begin it once more; the agent's answer begins nothing.
    std::thread::sleep(Duration::from_secs(30));
    let begun = house.run(&["runs", "--json"]).good().lines().len();
    assert!(begun <= 2, "{begun} runs: it begins itself");
    child.kill().expect("killed");
    child.wait().expect("waited");
}

/// Starts `events --follow --json` with these words, and waits until it has begun to listen.
pub(super) fn follower(house: &House, words: &[&str]) -> (Child, ChildStdout) {
    let mut all = vec!["events", "--follow", "--json"];
    all.extend(words);
    let mut command = house.command(&all);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("errors")).read_line(&mut line).expect("read");
    assert!(line.contains("waiting for events"), "{line}");
    let output = child.stdout.take().expect("output");
    (child, output)
}

pub(super) fn read_all(mut output: ChildStdout) -> String {
    let mut text = String::new();
    output.read_to_string(&mut text).expect("read");
    text
}
