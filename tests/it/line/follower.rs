//! Replays, time limits and costs through the program: a replay runs under the policy of a model's calls, is trusted
//! as far as the user says, and what a stopped call has cost is counted.

use super::agents::{Said, house, model, owns};
use super::meaning::serve;
use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(super) const CSV: &str = "day,sold\n1,517\n";
/// What a stalling model sends before it stalls.
const NOTHING: &[&str] = &[];
const ONE_WORD: &[&str] = &["one "];
/// What the model is asked first, from which a trace is learned.
pub(super) const OCTOBER: &str = "Count the lines of October 2026 into reports/2026-10.txt";
pub(super) const NOVEMBER: &str = "Count the lines of November 2026 into reports/2026-11.txt";

fn shell_command(month: &str) -> String {
    format!("mkdir -p reports && wc -l < data/{month}.csv > reports/{month}.txt")
}

/// A model that counts lines by a shell command, which needs approval, and the number of its calls.
fn counter() -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let address = model(move |turn, _: &Value| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "data/2026-10.csv"}))]),
            1 => (String::new(), vec![("shell", json!({"command": shell_command("2026-10")}))]),
            _ => ("It is counted.".to_owned(), Vec::new()),
        }
    });
    (address, count)
}

/// A house that has learned to count lines, and the number of the model's calls so far.
pub(super) fn learned() -> (House, Arc<AtomicUsize>, usize) {
    let (address, count) = counter();
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", CSV), ("data/2026-11.csv", CSV)]);
    house.run(&["ask", OCTOBER, "--approve", "shell"]).good();
    let asked = count.load(Ordering::SeqCst);
    assert_eq!((asked, house.run(&["traces", "--json"]).good().lines().len()), (3, 1));
    (house, count, asked)
}

/// Adds lines to the workspace's configuration.
pub(super) fn add_config(house: &House, more: &str) {
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    house.write("W/config.yaml", format!("{config}{more}").as_bytes());
}

/// The newest run as it's listed.
fn newest(house: &House) -> Value {
    house.run(&["runs", "--json"]).good().lines().remove(0)
}

fn counted(house: &House) -> bool {
    house.path("notes/reports/2026-11.txt").exists()
}

#[test]
fn a_replay_has_the_leave_of_a_model_and_no_more() {
    let (house, count, asked) = learned();
    let next = ["ask", NOVEMBER, "--mode", "follower"];
    // What a model would be asked about is asked about.
    let waits: Vec<&str> = next.iter().copied().chain(["--no-wait"]).collect();
    house.run(&waits).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    assert!(waiting[0]["reason"].as_str().is_some_and(|why| why.contains("risk")), "{waiting:?}");
    let run = newest(&house)["id"].as_str().expect("an id").to_owned();
    house.run(&["runs", &run, "--stop"]).good();
    assert!(!counted(&house));
    // Leave for one run counts, and only for what it names.
    let other: Vec<&str> = next.iter().copied().chain(["--approve", "shell: rm *", "--no-wait"]).collect();
    house.run(&other).code(1);
    let run = newest(&house)["id"].as_str().expect("an id").to_owned();
    house.run(&["runs", &run, "--stop"]).good();
    assert!(!counted(&house));
    let with: Vec<&str> = next.iter().copied().chain(["--approve", "shell"]).collect();
    house.run(&with).good();
    assert!(counted(&house));
    let over = newest(&house);
    assert_eq!((&over["iteration"], &over["spent"]["cost"]), (&json!(0), &json!(0.0)), "{over}");
    // So does a list in the configuration, and the list that asks goes before it.
    add_config(&house, "approval:\n  never_approve: [shell]\n");
    std::fs::remove_file(house.path("notes/reports/2026-11.txt")).expect("removed");
    house.run(&next).good();
    assert!(counted(&house));
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    house.write("W/config.yaml", format!("{config}  always_approve: [read_file]\n").as_bytes());
    let waits: Vec<&str> = next.iter().copied().chain(["--no-wait"]).collect();
    house.run(&waits).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    assert_eq!((waiting.len(), &waiting[0]["tool"]), (1, &json!("read_file")), "{waiting:?}");
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    // Every replay that ended is counted, however it was approved; those that were stopped aren't.
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["usage_count"], &known["verified_count"]), (&json!(2), &json!(2)), "{known}");
}

/// Rows that sum up the others are found by their labels, which stand in the report as well.
#[test]
fn a_report_of_a_total_is_repeated_for_other_data() {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let address = model(move |turn, _: &Value| -> Said {
        calls.fetch_add(1, Ordering::SeqCst);
        let report = json!({"path": "reports/2026-10.md", "content": "# October 2026\n\nTotal: 517\n"});
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "data/2026-10.csv"}))]),
            1 => (String::new(), vec![("write_file", report)]),
            _ => ("The report is written.".to_owned(), Vec::new()),
        }
    });
    let data = [
        ("data/2026-10.csv", "shop,sold\nnorth,10\ntotal,517\n"),
        ("data/2026-11.csv", "shop,sold\nsouth,4\neast,5\ntotal,9\n"),
        ("data/2026-12.csv", "shop,sold,back\nsouth,4,0\n"),
    ];
    let house = house(&address, &data);
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let priced = "context: 32000, local: false, price: {input: 1000, output: 1000}}";
    let config = config.replace("context: 32000}", priced) + "  cost_limit: null\n";
    house.write("W/config.yaml", config.as_bytes());
    let goal = |month: &str, number: &str| format!("Write the report of {month} 2026 into reports/2026-{number}.md");
    let known = || {
        let traces = house.run(&["traces", "--json"]).good().lines();
        traces.into_iter().find(|trace| trace["goal_text"] == goal("October", "10")).expect("learned")
    };
    house.run(&["ask", &goal("October", "10")]).good();
    let asked = count.load(Ordering::SeqCst);
    // What others hear of it says that no model wrote it.
    let filters = ["--filter", "LLM_OUTPUT", "--filter", "PROGRAM_OUTPUT", "--filter", "RUN_ENDED"];
    let (mut follower, said) = super::agent_settings::follower(&house, &filters);
    let done = house.run(&["ask", &goal("November", "11"), "--mode", "follower"]).good().text();
    assert!(done.contains("The report is written."), "{done}");
    let mut heard: Vec<Value> = Vec::new();
    for line in BufReader::new(said).lines() {
        heard.push(serde_json::from_str(&line.expect("a line")).expect("JSON"));
        if heard.last().is_some_and(|event| event["kind"] == "RUN_ENDED") {
            break;
        }
    }
    follower.kill().expect("killed");
    follower.wait().expect("ended");
    assert!(heard.iter().all(|event| event["kind"] != "LLM_OUTPUT"), "{heard:#?}");
    let is_answer = |event: &&Value| event["kind"] == "PROGRAM_OUTPUT" && event["final"] == true;
    assert_eq!(heard.iter().find(is_answer).map(|event| &event["text"]), Some(&json!("The report is written.")));
    assert_eq!(house.read("notes/reports/2026-11.md"), b"# November 2026\n\nTotal: 9\n");
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    let trace = known();
    assert_eq!((&trace["usage_count"], &trace["verified_count"]), (&json!(1), &json!(1)), "{trace}");
    let (learned, saved) = (trace["learned_usd"].as_f64(), trace["saved_usd"].as_f64());
    assert!(learned == saved && learned.is_some_and(|cost| (cost - 0.054).abs() < 1e-9), "three calls: {trace}");
    // Data of another form stop it, and a model continues.
    let stopped = house.run(&["ask", &goal("December", "12"), "--mode", "follower"]);
    assert!(stopped.err.contains("The replay stopped at step"), "{stopped:?}");
    assert!(!house.path("notes/reports/2026-12.md").exists() && count.load(Ordering::SeqCst) > asked);
    let trace = known();
    assert_eq!((&trace["usage_count"], &trace["verified_count"]), (&json!(2), &json!(1)), "{trace}");
}

#[test]
fn a_schedule_that_follows_a_trace_ends_by_itself() {
    let (house, count, asked) = learned();
    let schedule =
        ["schedule", "add", "@daily", NOVEMBER, "--name", "daily", "--mode", "follower", "--approve", "shell"];
    house.run(&schedule).good();
    let done = house.run(&["schedule", "run", "daily"]).good().text();
    assert!(done.contains("No model is asked") && counted(&house), "{done}");
    assert_eq!((count.load(Ordering::SeqCst), newest(&house)["standing"].clone()), (asked, json!("done")));
}

#[test]
fn a_replay_that_waited_is_approved_elsewhere_counted_and_free() {
    let (house, count, asked) = learned();
    house.run(&["ask", NOVEMBER, "--mode", "follower", "--no-wait"]).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    let name = waiting[0]["name"].as_str().expect("it waits").to_owned();
    house.run(&["approvals", &name, "--allow"]).good();
    until("it goes on by itself or is resumed", || {
        house.run(&["runs", "last", "--resume"]);
        newest(&house)["standing"] == "done"
    });
    assert!(counted(&house));
    let over = newest(&house);
    assert_eq!((&over["iteration"], &over["spent"]["cost"]), (&json!(0), &json!(0.0)), "{over}");
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
    let known = &house.run(&["traces", "--json"]).good().lines()[0];
    assert_eq!((&known["usage_count"], &known["verified_count"]), (&json!(1), &json!(1)), "{known}");
}

/// The process that takes a replay up again reads the configuration before it continues.
#[test]
fn a_replay_goes_on_by_the_configuration_after_a_restart() {
    let (house, count, asked) = learned();
    add_config(&house, "approval:\n  always_approve: [read_file]\n  never_approve: [shell]\n");
    house.run(&["ask", NOVEMBER, "--mode", "follower", "--no-wait"]).code(1);
    let waiting = house.run(&["approvals", "--json"]).good().lines();
    assert_eq!((waiting.len(), &waiting[0]["tool"]), (1, &json!("read_file")), "{waiting:?}");
    let name = waiting[0]["name"].as_str().expect("it waits").to_owned();
    house.run(&["approvals", &name, "--allow"]).good();
    until("it goes on by itself or is resumed", || {
        house.run(&["runs", "last", "--resume"]);
        newest(&house)["standing"] == "done"
    });
    assert!(counted(&house) && house.run(&["approvals", "--json"]).good().lines().is_empty());
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called");
}

#[test]
fn trust_is_shown_set_and_pinned() {
    let (house, count, asked) = learned();
    let known = house.run(&["traces", "--json"]).good().lines().remove(0);
    assert_eq!(
        (&known["effects"], &known["follows"], &known["threshold"]),
        (&json!("other"), &json!(false), &json!(0.9))
    );
    assert_eq!(
        (&known["pinned"], &known["learned_here"], &known["confidence"]),
        (&json!(false), &json!(true), &json!(0.5))
    );
    let listed = house.run(&["traces"]).good().text();
    assert!(listed.contains("0 of 0 replays were good, so 50 % sure; more than 90 % is needed"), "{listed}");
    let name = known["path"].as_str().and_then(|path| path.rsplit('/').next()).expect("a name").to_owned();
    let shown = house.run(&["traces", &name]).good().text();
    assert!(shown.contains("wc -l") && shown.contains("Runs replay it when told to"), "{shown}");
    // The threshold is the user's, within its range.
    add_config(&house, "memory:\n  follow_confidence: 0.4\n");
    let known = house.run(&["traces", "--json"]).good().lines().remove(0);
    assert_eq!((&known["follows"], &known["threshold"]), (&json!(true), &json!(0.4)), "{known}");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let at = config.lines().count();
    house.write("W/config.yaml", config.replace("0.4", "1.5").as_bytes());
    let refused = house.run(&["ask", NOVEMBER]);
    assert!(refused.err.contains(&format!("config.yaml:{at}:")) && refused.err.contains("0 to 1"), "{}", refused.err);
    house.write("W/config.yaml", config.replace("0.4", "1").as_bytes());
    // At 1 only what is pinned is followed; the policy still decides about each call.
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["follows"], json!(false));
    let pinned = house.run(&["traces", "show", &name, "--pin"]).good().text();
    assert!(pinned.contains("Runs replay it by themselves") && pinned.contains("you pinned it"), "{pinned}");
    house.run(&["ask", NOVEMBER, "--approve", "shell"]).good();
    assert!(counted(&house));
    assert_eq!(count.load(Ordering::SeqCst), asked, "no model was called, and no mode was given");
    house.run(&["traces", "show", &name, "--unpin"]).good();
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["follows"], json!(false));
}

/// A model that sends these words of its answer and then nothing more, with the connection open.
fn stalling(words: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let held: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let held = Arc::clone(&held);
            std::thread::spawn(move || stall(stream, words, &held));
        }
    });
    address
}

fn stall(mut stream: TcpStream, words: &[&str], held: &Mutex<Vec<TcpStream>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if let Some(stated) = line.to_lowercase().strip_prefix("content-length:") {
            length = stated.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    if !words.is_empty() {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").ok()?;
    }
    for word in words {
        let choice = json!({"index": 0, "delta": {"content": word}, "finish_reason": null});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
        write!(stream, "data: {chunk}\n\n").ok()?;
    }
    stream.flush().ok()?;
    held.lock().ok()?.push(stream);
    Some(())
}

/// A house whose model costs 10 and 30 US dollars for a million tokens.
fn paid(address: &str, more: &str) -> House {
    let house = House::with(&[("a.md", "# A\n")]);
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  cost_limit: null\n  providers:\n    test: {{wire: \
         openai, base_url: \"{address}/v1\", model: m, context: 32000, local: false, price: {{input: 10, output: \
         30}}}}\n{more}"
    );
    house.write("W/config.yaml", config.as_bytes());
    house
}

#[test]
fn a_call_that_is_stopped_midway_is_counted_by_estimate() {
    let house = paid(&stalling(&["one\n", "two\n", "three\n", "four\n", "five\n", "six\n"]), "");
    let child = house.command(&["ask", "Count slowly"]).spawn().expect("started");
    owns(&house, &child);
    let mut child = child;
    until("it streams", || house.run(&["runs", "--json"]).lines().first().is_some_and(|run| run["standing"] == "open"));
    // Open until the end: a program that can't print ends before it's stopped.
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let heard: Vec<String> = lines.by_ref().map_while(Result::ok).take(4).collect();
    assert_eq!(heard, ["one", "two", "three", "four"]);
    house.run(&["runs", "last", "--stop"]).good();
    child.wait().expect("ended");
    drop(lines);
    let over = newest(&house);
    let (input, output) = (&over["spent"]["inputTokens"], &over["spent"]["outputTokens"]);
    assert!(input.as_u64() > Some(500) && output.as_u64() >= Some(4), "{over}");
    let cost = over["spent"]["cost"].as_f64().expect("known");
    let (input, output) = (input.as_f64().expect("a number"), output.as_f64().expect("a number"));
    assert!((cost - (input * 10.0 + output * 30.0) / 1e6).abs() < 1e-9, "{over}");
    assert!(!house.run(&["runs"]).good().text().contains("free"));
    let steps = house.run(&["steps", "last"]).code(0).err;
    assert!(steps.contains("Stopped by the user.") && steps.contains("counted by estimate"), "{steps}");
    let spent = house.run(&["budget", "--json"]).good().text();
    assert!(spent.contains("\"spent\":0.0"), "{spent}");
}

#[test]
fn a_call_whose_program_was_killed_is_in_every_sum_at_once() {
    let house = paid(&stalling(NOTHING), "");
    let mut child = house.command(&["ask", "Count slowly"]).spawn().expect("started");
    owns(&house, &child);
    let under_way = || house.run(&["runs", "--json"]).lines().first().map(|run| run["unsettled"].clone());
    until("the call is under way", || under_way().is_some_and(|usage| usage["cost"].as_f64() > Some(0.0)));
    let lost = under_way().expect("under way");
    house.edit("a.md", 0, 0, "x"); // what was recorded before this is on disk then
    child.kill().expect("killed");
    child.wait().expect("ended");
    let tokens = lost["inputTokens"].as_u64().zip(lost["outputTokens"].as_u64()).map(|(input, output)| input + output);
    let is_lost = |cost: &Value| {
        let both = cost.as_f64().zip(lost["cost"].as_f64());
        both.is_some_and(|(cost, lost)| (cost - lost).abs() < 1e-9)
    };
    let month = house.run(&["budget", "--json"]).good().lines().remove(0);
    let task = house.run(&["budget", "--by", "task", "--json"]).good().lines().remove(0);
    for sum in [&month, &task] {
        assert!(is_lost(&sum["spent"]) && sum["tokens"].as_u64() == tokens, "{sum} {lost}");
    }
    let log = house.run(&["budget", "--log", "--json"]).good().lines();
    let logged = log.iter().find(|line| line["run"].is_string()).expect("the run");
    assert!(is_lost(&logged["spent"]["cost"]), "{logged} {lost}");
}

#[test]
fn words_of_an_answer_are_printed_as_json_while_the_model_says_them() {
    // The model never finishes, so the words can come only from what it streams.
    let house = paid(&stalling(&["one ", "two "]), "watchdog: {silence: 1 s}\n");
    let lines = house.run(&["ask", "Count slowly", "--json"]).code(1).lines();
    let parts = lines.iter().filter(|line| line["type"] == "delta").filter_map(|line| line["content"].as_str());
    assert!(parts.collect::<String>().starts_with("one two "), "{lines:?}");
}

#[test]
fn a_tool_call_that_breaks_off_is_counted_by_estimate() {
    let house = paid(
        &serve(|_| {
            let arguments = format!("{{\"path\": \"b.md\", \"content\": \"{}", "x".repeat(400));
            let function = json!({"name": "write_file", "arguments": arguments});
            let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
            let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null});
            let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
            (200, "Content-Type: text/event-stream\r\n".to_owned(), format!("data: {chunk}\n\n").into_bytes())
        }),
        "",
    );
    let said = house.run(&["ask", "Write it"]).code(1).err;
    assert!(said.contains("counted by estimate"), "{said}");
    let over = newest(&house);
    assert!(over["spent"]["outputTokens"].as_u64() > Some(100) && over["spent"]["cost"].as_f64() > Some(0.0), "{over}");
    assert!(!house.run(&["runs"]).good().text().contains("free"));
    assert!(!house.path("notes/b.md").exists());
}

#[test]
fn an_unknown_price_is_unknown_and_never_free() {
    let house = paid(&stalling(&["one "]), "watchdog: {silence: 1 s}\n");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).replace(", price: {input: 10, output: 30}", "");
    house.write("W/config.yaml", config.as_bytes());
    house.run(&["ask", "Count slowly"]).code(1);
    let over = newest(&house);
    assert!(over["spent"]["cost"].is_null() && over["spent"]["outputTokens"].as_u64() > Some(0), "{over}");
    let listed = house.run(&["runs"]).good().text();
    assert!(listed.contains("unknown") && !listed.contains("free"), "{listed}");
    assert!(house.run(&["steps", "last"]).code(0).err.contains("at an unknown price"));
}

#[test]
fn what_a_replay_saves_is_unknown_if_the_price_is() {
    let address = model(|turn, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("It is read.".to_owned(), Vec::new()),
        }
    });
    let house = paid(&address, "");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).replace(", price: {input: 10, output: 30}", "");
    house.write("W/config.yaml", config.as_bytes());
    house.run(&["ask", "Read a.md"]).code(0);
    house.run(&["ask", "Read a.md", "--mode", "follower"]).code(0);
    let listed = house.run(&["traces"]).good().text();
    assert!(listed.contains("Saved so far: 36 tokens, $0.0000 and an unknown cost"), "{listed}");
    assert_eq!(house.run(&["traces", "--json"]).good().lines()[0]["is_cost_unknown"], true);
}

#[test]
fn the_watchdog_keeps_the_limits_of_the_configuration() {
    // A model that never begins, and one that stops in the middle.
    for (words, limit) in [(NOTHING, "first_byte: 1 s"), (ONE_WORD, "silence: 1 s"), (ONE_WORD, "call: 2 s")] {
        let house = paid(&stalling(words), &format!("watchdog: {{{limit}}}\n"));
        let began = std::time::Instant::now();
        house.run(&["ask", "Count slowly"]).code(1);
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{limit}");
        let over = newest(&house);
        assert_eq!(over["standing"], "failed", "{limit}: {over}");
        assert_eq!(over["spent"]["cost"].as_f64() > Some(0.0), !words.is_empty(), "{limit}: {over}");
    }
    // A tool ends at the limit, whatever it asks for; an agent's own limit goes before the configuration's.
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "sleep 50", "seconds": 60}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let house = paid(&model(script), "watchdog: {tool: 1 s}\n");
    let done = house.run(&["ask", "Sleep", "--approve", "shell"]).good().text();
    assert!(done.contains("stopped after 1 s"), "{done}");
    house.write(
        "W/agents/hasty.md",
        b"---\nname: hasty\ndescription: Works fast.\nwatchdog: {run: 1 s, tool: 1 min}\n---\nYou hurry.\n",
    );
    let began = std::time::Instant::now();
    let said = house.run(&["ask", "Sleep", "--agent", "hasty", "--approve", "shell"]).code(1).err;
    assert!(said.contains("stopped the run after 1 s of work"), "{said}");
    assert!(began.elapsed() < std::time::Duration::from_secs(40));
    assert_eq!(newest(&house)["standing"], "limit");
    // Values are checked with their place.
    for wrong in ["tool: 5", "tool: 0 s", "tool: 25 h", "tool: soon", "tools: 5 s"] {
        let house = paid("http://127.0.0.1:9", &format!("watchdog:\n  {wrong}\n"));
        let said = house.run(&["ask", "x"]).err;
        assert!(said.contains("config.yaml:8:"), "{wrong}: {said}");
    }
}

#[test]
fn the_configuration_limits_the_time_of_any_agent() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "sleep 50", "seconds": 60}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let more = "agents:\n  specialists:\n    slow: {watchdog: {tool: 1 s}}\n    qa: {deadline: 2 s}\n";
    let house = paid(&model(script), more);
    // It wins over the agent's own file, and reaches built-in agents, which have no file.
    house.write("W/agents/slow.md", b"---\nname: slow\nwatchdog: {tool: 1 min}\ndeadline: 1 h\n---\nYou wait.\n");
    let done = house.run(&["ask", "Sleep", "--agent", "slow", "--approve", "shell"]).good().text();
    assert!(done.contains("stopped after 1 s"), "{done}");
    let said = house.run(&["ask", "Sleep", "--agent", "qa", "--approve", "shell"]).code(1).err;
    assert!(said.contains("The run ended at its deadline"), "{said}");
    let agents = house.run(&["tasks", "agents", "--json"]).code(0).lines();
    let deadline = |name: &str| agents.iter().find(|one| one["name"] == name).map(|one| one["deadline"].clone());
    assert_eq!((deadline("slow"), deadline("qa")), (Some(json!("1 h")), Some(json!("2 s"))));
    // Values are checked with their place.
    for wrong in ["deadline: soon", "watchdog: {tool: soon}"] {
        let house = paid("http://127.0.0.1:9", &format!("agents:\n  lead:\n    {wrong}\n"));
        let said = house.run(&["ask", "x"]).err;
        assert!(said.contains("config.yaml:9:"), "{wrong}: {said}");
    }
}

#[test]
fn a_run_ends_at_its_deadline() {
    // While a model says nothing.
    let house = paid(&stalling(NOTHING), "");
    let began = std::time::Instant::now();
    let said = house.run(&["ask", "Count slowly", "--deadline", "2 s"]).code(1).err;
    assert!(said.contains("The run ended at its deadline, 20"), "{said}");
    assert!(began.elapsed() < std::time::Duration::from_secs(60));
    let over = newest(&house);
    let (start, deadline) = (over["start_time"].as_i64().expect("a time"), over["deadline"].as_i64().expect("one"));
    assert!(over["standing"] == "limit" && deadline - start <= 2_000, "{over}");
    // Its agent's deadline counts if it's earlier.
    let hasty = b"---\nname: hasty\ndescription: Works fast.\ndeadline: 2 s\n---\nYou hurry.\n";
    house.write("W/agents/hasty.md", hasty);
    let words = ["ask", "Count slowly", "--agent", "hasty", "--deadline", "2 h"];
    assert!(house.run(&words).code(1).err.contains("The run ended at its deadline"));
    // While a call waits for the user.
    let script = |_: usize, _: &Value| -> Said { (String::new(), vec![("shell", json!({"command": "echo a > b"}))]) };
    let house = paid(&model(script), "");
    let said = house.run(&["ask", "Do it", "--deadline", "5 s"]).code(1).err;
    assert!(said.contains("waits for") && said.contains("The run ended at its deadline"), "{said}");
    assert!(house.run(&["approvals", "--json"]).good().lines().is_empty(), "nothing waits any more");
    // What is no deadline, or has passed, is refused before anything begins.
    for (wrong, why) in [("soon", "“soon” is no deadline"), ("2020-01-01", "--deadline has passed: 2020-01-01")] {
        house.run(&["ask", "Do it", "--deadline", wrong]).refused(2, why);
    }
    house.run(&["tasks", "add", "Do it", "--plan", "tasks/do.md", "--deadline", "30 min"]).good();
    assert_eq!(house.run(&["tasks", "show", "tasks/do.md#t1"]).good().json()["deadline"], "30 min");
    house.run(&["tasks", "add", "Do it", "--plan", "tasks/do.md", "--deadline", "soon"]).refused(2, "is no deadline");
}

#[test]
fn a_run_says_when_little_of_its_budget_is_left() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    // The first call costs $0.0070, 82 % of the budget; the next one is estimated to cost $0.0010.
    let house = paid(&model(script), "");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml"))
        .replace("price: {input: 10, output: 30}", "max_tokens: 1, price: {input: 0, output: 1000}");
    house.write("W/config.yaml", config.as_bytes());
    let done = house.run(&["ask", "Read it", "--budget", "0.0085"]).text();
    assert!(done.contains("Low balance: $0.0015 of $0.01 for this run are left."), "{done}");
    // A cheaper model is offered before the run stops.
    let small = "    small: {wire: openai, base_url: \"http://127.0.0.1:9/v1\", model: s, local: false, max_tokens: 1, \
                 price: {input: 0, output: 100}}\n    test:";
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).replace("    test:", small);
    house.write("W/config.yaml", config.as_bytes());
    let refused = house.run(&["ask", "Read it", "--budget", "0.0005"]).code(1);
    assert!(
        refused.err.contains("of its $0.0005") && refused.err.contains("small would cost about $"),
        "{}",
        refused.err
    );
}

#[test]
fn the_mode_follower_asks_no_model_if_no_trace_fits() {
    let (house, count, asked) = learned();
    let done = house.run(&["ask", "Compute the zebra quotient", "--mode", "follower"]).code(1);
    let said = done.text() + &done.err;
    assert!(said.contains("No trace fits this, and in the mode follower no model is asked."), "{said}");
    assert_eq!(count.load(Ordering::SeqCst), asked);
    assert_eq!(newest(&house)["standing"], "failed");
    let shown = house.run(&["runs", "last"]).good().text();
    assert!(shown.contains("failed: No trace fits this"), "{shown}");
    // The user may go on with a model.
    house.run(&["ask", "Compute the zebra quotient", "--mode", "auto", "--approve", "shell"]).good();
    assert!(count.load(Ordering::SeqCst) > asked);
}

#[test]
fn a_trace_that_the_user_names_is_repeated_for_a_goal_in_other_words() {
    let (house, count, asked) = learned();
    let path = house.run(&["traces", "--json"]).good().lines()[0]["path"].as_str().expect("a path").to_owned();
    let other = "Tally November 2026 for reports/2026-11.txt";
    house.run(&["ask", other, "--mode", "follower", "--approve", "shell"]).code(1);
    assert!(!counted(&house), "the words alone fit no trace");
    house.run(&["ask", other, "--trace", &path, "--approve", "shell"]).good();
    assert!(counted(&house) && count.load(Ordering::SeqCst) == asked);
    let over = newest(&house);
    assert_eq!((&over["standing"], &over["spent"]["cost"]), (&json!("done"), &json!(0.0)), "{over}");
    let few = house.run(&["ask", "Tally it", "--trace", &path, "--approve", "shell"]);
    few.refused(2, "can't be repeated for this: it takes month, path, and this names no value");
    house.run(&["ask", other, "--trace", "nosuch"]).refused(2, "there is no trace “nosuch”");
    house.run(&["ask", other, "--trace", &path, "--mode", "learner"]).refused(2, "it takes no --mode");
}

#[test]
fn a_stated_price_counts_for_a_provider_on_this_machine() {
    let (address, _) = counter();
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", CSV)]);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    let priced = config.replace("context: 32000", "context: 32000, price: {input: 10, output: 30}");
    house.write("W/config.yaml", priced.as_bytes());
    house.run(&["ask", OCTOBER, "--approve", "shell"]).good();
    let cost = newest(&house)["spent"]["cost"].as_f64().expect("a cost");
    // Three calls of 11 tokens in and 7 out, at 10 and 30 dollars for a million.
    assert!((cost - 3.0 * (11.0 * 10.0 + 7.0 * 30.0) / 1e6).abs() < 1e-9, "{cost}");
    let done = house.run(&["ask", "And now?", "--budget", "0.000001"]).code(1);
    let said = done.text() + &done.err;
    assert!(said.contains("the next call costs about $0.0"), "{said}");
}

#[test]
fn what_the_user_says_to_a_denial_stands_apart_from_what_the_program_says() {
    let (address, _) = counter();
    let house = house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", CSV)]);
    house.run(&["ask", OCTOBER, "--no-wait"]).code(1);
    let waits = house.run(&["approvals", "--json"]).good().lines();
    let name = waits[0]["name"].as_str().expect("a name");
    house.run(&["approvals", name, "--deny", "--comment", "no way"]).code(0);
    let said = house.run(&["steps", "last", "--json"]).good().text();
    assert!(said.contains("The user denied it. They say: “no way”. Do not try it again."), "{said}");
}

/// The provider that is asked first works once. Then another one is asked, whose price nobody knows.
#[test]
fn what_is_known_of_a_cost_stays_known_beside_an_unknown_price() {
    let count = AtomicUsize::new(0);
    let paid = serve(move |_| {
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            return (401, String::new(), b"{}".to_vec());
        }
        let function = json!({"name": "read_file", "arguments": "{\"path\": \"a.md\"}"});
        let delta = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 100}});
        let body = format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes();
        (200, "Content-Type: text/event-stream\r\n".to_owned(), body)
    });
    let other = model(|_, _| -> Said { ("It is read.".to_owned(), Vec::new()) });
    let house = House::with(&[("a.md", "# A\n")]);
    let provider = |address: &str, more: &str| {
        format!("{{wire: openai, base_url: \"{address}/v1\", model: nobody-knows, context: 32000, local: false{more}}}")
    };
    let config = format!(
        "llm:\n  default_provider: paid\n  prefer_local: false\n  fallback: [other]\n  providers:\n    paid: {}\n    \
         other: {}\n",
        provider(&paid, ", price: {input: 10, output: 30}"),
        provider(&other, "")
    );
    house.write("W/config.yaml", config.as_bytes());
    let said = house.run(&["ask", "read the note a"]).code(0);
    assert!(said.text().contains("It is read.") && said.err.contains("wants a key"), "{said:?}");
    assert_eq!(newest(&house)["spent"]["cost"], Value::Null, "the whole isn't known");
    for scope in ["task", "session", "project", "month"] {
        let spent = house.run(&["budget", "--by", scope, "--json"]).good().lines().remove(0);
        let known = spent["spent"].as_f64().expect("a number");
        assert!((known - 0.013).abs() < 1e-9 && spent["unknown"] == 1, "{scope}: {spent}");
    }
    // So limits hold.
    let limit = config.replace("  fallback: [other]", "  fallback: []\n  cost_limit: 0.01");
    house.write("W/config.yaml", limit.as_bytes());
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let more = house.run(&["ask", "and now?", "--session", &session, "--json"]).code(1).text();
    assert!(more.contains("$0.0130 spent"), "{more}");
}
