//! A real model instead of a stand-in: a local llama.cpp with half a billion parameters, named by `TRACEBOOK_MODEL_URL`
//! (`.ci/model` starts it). On the project's own machine it must be there; elsewhere these tests say so and are
//! skipped.

use crate::line::agents::owns;
use crate::program::{House, strict};
use agent::model_call::{
    ModelCallId, ModelDelta, ModelEndpoint, ModelError, ModelRequest, ModelResponse, ModelStopReason, WireProtocol,
};
use agent::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use host::agents::llm::{ModelUpdate, ProviderClient, ProviderTimeouts};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use store::{DocId, MessageId, MessageRole, SessionMessage};

/// The maximum wait for a model that has one thread of a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The server's address, or `None` with a message if there is no server.
fn address() -> Option<String> {
    let address = std::env::var("TRACEBOOK_MODEL_URL").ok().filter(|address| !address.is_empty());
    assert!(
        address.is_some() || !strict(),
        "TRACEBOOK_CI=1 and TRACEBOOK_MODEL_URL names no model (.ci/model starts one)"
    );
    if address.is_none() {
        println!("left out: TRACEBOOK_MODEL_URL names no model (.ci/model starts one)");
    }
    address
}

fn request(wire: WireProtocol, address: &str, system: &str, prompt: &str, tools: &[ToolSpec]) -> ModelRequest {
    ModelRequest {
        endpoint: ModelEndpoint {
            provider: "llamacpp".to_owned(),
            wire,
            base_url: Some(address.to_owned()),
            model: "local-model".to_owned(),
            key: None,
            local: true,
        },
        system: system.to_owned(),
        messages: vec![SessionMessage::new(MessageId(1), MessageRole::User, prompt, 0)],
        tools: tools.to_vec(),
        max_tokens: Some(80),
        temperature: Some(0.0),
        tool_choice: None,
        limits: None,
        program: None,
    }
}

/// Returns the answer, the number of pieces in which it came, and their text; or the error.
fn call(
    providers: &ProviderClient,
    number: u64,
    request: ModelRequest,
) -> Result<(ModelResponse, usize, String), ModelError> {
    let (tell, told) = channel();
    providers.start_call(ModelCallId { run: DocId([1; 16]), number }, request, None, move |update| {
        let _ = tell.send(update);
    });
    let (mut pieces, mut said) = (0, String::new());
    loop {
        match told.recv_timeout(PATIENCE).expect("an end") {
            ModelUpdate::Delta(ModelDelta::Text(text)) => {
                pieces += 1;
                said.push_str(&text);
            }
            ModelUpdate::Delta(_) => {}
            ModelUpdate::Answer(answer) => return Ok((answer, pieces, said)),
            ModelUpdate::Failure(failure) => return Err(failure),
        }
    }
}

#[test]
fn a_real_model_streams_and_calls_over_three_wires() {
    let Some(address) = address() else { return };
    let providers = ProviderClient::new(ProviderTimeouts::default());
    for (number, wire) in (0..).zip([WireProtocol::OpenAi, WireProtocol::Anthropic, WireProtocol::Responses]) {
        let request = request(wire, &address, "You are brief.", "Name three colours.", &[]);
        let (answer, pieces, said) = call(&providers, number, request).expect("an answer");
        assert!(pieces >= 3, "{wire:?} came in {pieces} pieces");
        assert_eq!(answer.text, said, "{wire:?}");
        let low = answer.text.to_lowercase();
        assert!(["red", "blue", "green", "yellow"].iter().any(|colour| low.contains(colour)), "{wire:?}: {low}");
        assert!(answer.spent.input_tokens > 5 && answer.spent.output_tokens >= 3, "{wire:?}: {:?}", answer.spent);
        assert_eq!(answer.spent.cost, Some(0.0));
        assert!(matches!(answer.stop, ModelStopReason::Done | ModelStopReason::Length));
    }
    for (number, wire) in (10..).zip([WireProtocol::OpenAi, WireProtocol::Anthropic, WireProtocol::Responses]) {
        let prompt = "Read the file notes/plan.md.";
        let request = request(wire, &address, "You work in a notebook by calling functions.", prompt, &tools());
        let (answer, _, _) = call(&providers, number, request).expect("an answer");
        let call = answer.calls.first().unwrap_or_else(|| panic!("{wire:?}: {answer:?}"));
        assert_eq!((call.name.as_str(), &call.arguments["path"]), ("read_file", &json!("notes/plan.md")), "{wire:?}");
    }
    let (tell, told) = channel();
    providers.test_provider(request(WireProtocol::OpenAi, &address, "", "", &[]).endpoint, None, move |found| {
        let _ = tell.send(found);
    });
    let tested = told.recv_timeout(PATIENCE).expect("an end").expect("there");
    assert!(tested.models.is_some_and(|models| !models.is_empty()));
}

fn tool(name: &str, description: &str, arguments: &[(&str, &str)]) -> ToolSpec {
    let one = |(name, kind): &(&str, &str)| ((*name).to_owned(), json!({"type": kind}));
    let properties: serde_json::Map<String, Value> = arguments.iter().map(one).collect();
    let required: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
        risk: ToolRisk::Low,
        permissions: ToolPermissions::default(),
        idempotent: true,
        source: ToolSource::BuiltIn,
    }
}

fn tools() -> Vec<ToolSpec> {
    vec![
        tool("read_file", "Read a text file.", &[("path", "string")]),
        tool("write_file", "Write a new text file.", &[("path", "string"), ("content", "string")]),
        tool(
            "edit_file",
            "Replace one text in a file by another.",
            &[("path", "string"), ("old", "string"), ("new", "string")],
        ),
        tool("delete_file", "Delete a file.", &[("path", "string")]),
        tool("list_files", "List the files of a folder.", &[("path", "string")]),
        tool("search", "Search all notes for words.", &[("query", "string")]),
        tool("run_cell", "Run one Python cell of a note.", &[("note", "string"), ("cell", "integer")]),
        tool("shell", "Run a shell command.", &[("command", "string")]),
        tool("git_status", "Show what has changed in git.", &[]),
        tool("git_commit", "Commit all changes to git.", &[("message", "string")]),
        tool("fetch_url", "Fetch a web page.", &[("url", "string")]),
        tool("todo_add", "Add a todo.", &[("text", "string")]),
    ]
}

/// A prompt, the expected tool, and text that its arguments must contain.
type Prompt = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PROMPTS: [Prompt; 20] = [
    ("Read the file notes/plan.md.", "read_file", &[("path", "notes/plan.md")]),
    ("Open README.md and show me its text.", "read_file", &[("path", "readme.md")]),
    ("Read data/rainfall.csv.", "read_file", &[("path", "data/rainfall.csv")]),
    (
        "Write a new file hello.txt with the content: Hello world",
        "write_file",
        &[("path", "hello.txt"), ("content", "hello")],
    ),
    (
        "Write a new file ideas.md with the content: Buy a boat",
        "write_file",
        &[("path", "ideas.md"), ("content", "boat")],
    ),
    (
        "In config.toml replace the text debug by release.",
        "edit_file",
        &[("path", "config.toml"), ("old", "debug"), ("new", "release")],
    ),
    (
        "Edit letter.md: replace Monday by Friday.",
        "edit_file",
        &[("path", "letter.md"), ("old", "monday"), ("new", "friday")],
    ),
    ("Delete the file old/draft.md.", "delete_file", &[("path", "old/draft.md")]),
    ("List the files of the folder src.", "list_files", &[("path", "src")]),
    ("Which files are in the folder notes/2026? List them.", "list_files", &[("path", "notes/2026")]),
    ("Search my notes for sourdough.", "search", &[("query", "sourdough")]),
    ("Search all notes for the words tax return.", "search", &[("query", "tax")]),
    ("Run cell 3 of the note analysis.md.", "run_cell", &[("note", "analysis"), ("cell", "3")]),
    ("Run the shell command: ls -la", "shell", &[("command", "ls -la")]),
    ("Run the shell command: make all", "shell", &[("command", "make all")]),
    ("Show the git status.", "git_status", &[]),
    ("Commit all changes to git with the message: Fix typo", "git_commit", &[("message", "fix typo")]),
    ("Fetch the web page https://example.com/news", "fetch_url", &[("url", "https://example.com/news")]),
    ("Add a todo: call the dentist", "todo_add", &[("text", "dentist")]),
    ("Add a todo to water the plants.", "todo_add", &[("text", "water")]),
];

#[test]
fn a_real_model_calls_the_right_tool() {
    let Some(address) = address() else { return };
    let providers = ProviderClient::new(ProviderTimeouts::default());
    let (mut right, mut wrong) = (0, Vec::new());
    for (number, (prompt, name, arguments)) in (0..).zip(PROMPTS) {
        let request =
            request(WireProtocol::OpenAi, &address, "You work in a notebook by calling functions.", prompt, &tools());
        // A response that the server itself can't parse is as wrong as a wrong tool.
        let answer = match call(&providers, number, request) {
            Ok((answer, _, _)) => answer,
            Err(failure) => {
                wrong.push(format!("{prompt}: {}", failure.why));
                continue;
            }
        };
        let fits = answer.calls.first().is_some_and(|call| {
            let holds = |(name, word): &(&str, &str)| {
                let value =
                    call.arguments.get(*name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
                value.is_some_and(|value| value.to_lowercase().contains(word))
            };
            call.name == name && arguments.iter().all(holds)
        });
        if fits {
            right += 1;
        } else {
            wrong.push(format!("{prompt}: {:?} {:?} {:?}", answer.calls, answer.malformed, answer.text));
        }
    }
    println!("{right} of {} right; wrong: {wrong:#?}", PROMPTS.len());
    assert!(right >= 16, "{right} of {} right; wrong: {wrong:#?}", PROMPTS.len());
}

/// A house whose agents use the real model over this wire protocol.
fn house(address: &str, wire: &str, files: &[(&str, &str)]) -> House {
    let house = House::with(files);
    let config = format!(
        "llm:\n  default_provider: test\n  prefer_local: false\n  providers:\n    test: {{wire: {wire}, base_url: \
         \"{address}/v1\", model: local-model, context: 4096, max_tokens: 160, temperature: 0}}\napproval:\n  \
         timeout_seconds: 3000\n"
    );
    house.write("W/config.yaml", config.as_bytes());
    house
}

/// The real model in the whole loop: asked on the command line, it writes a note with its own tool call, asks to run
/// the note's cell, which another process approves, and ends with an answer. Half a billion parameters can do each
/// step; if the model repeats itself, the loop makes it answer.
#[test]
fn a_whole_run_of_the_real_model() {
    let Some(address) = address() else { return };
    let house = house(&address, "openai", &[("a.md", "# A\n")]);
    let worker =
        b"---\nname: worker\ntools: [write_file, run_cell]\n---\nYou work in a notebook by calling functions.\n";
    house.write("W/agents/worker.md", worker);
    let prompt = "Create the file sum.md with the content \"```python\\nprint(6 * 7)\\n```\"";
    let mut child = house.command(&["ask", prompt, "--agent", "worker", "--json"]).spawn().expect("started");
    drop(child.stdin.take());
    owns(&house, &child);
    // Another process approves the note's cell and nothing else.
    let (mut allowed, end) = (0, Instant::now() + 2 * PATIENCE);
    while child.try_wait().expect("looked").is_none() {
        assert!(Instant::now() < end, "it does not end");
        let waiting = house.run(&["approvals", "--json"]);
        for one in if waiting.code == 0 { waiting.lines() } else { Vec::new() } {
            let first = one["arguments"]["cell"] == 1 && one["arguments"]["path"] == "sum.md";
            let word = if first { "--allow" } else { "--deny" };
            let done = house.run(&["approvals", one["name"].as_str().unwrap_or_default(), word]);
            allowed += usize::from(first && done.code == 0);
        }
        std::thread::park_timeout(Duration::from_millis(200));
    }
    let out = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let steps: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let called = |name: &str| steps.iter().any(|step| step["type"] == "tool_call" && step["toolName"] == name);
    assert!(called("write_file") && called("run_cell"), "{text}");
    assert!(house.path("notes/sum.md").exists() && allowed >= 1, "{allowed}: {text}");
    let printed = steps.iter().any(|step| step["type"] == "tool_result" && step["result"] == "42");
    assert!(printed, "the cell ran: {text}");
    let answer = steps.last().expect("steps");
    assert_eq!(answer["type"], "final_answer", "{text}");
    assert!(answer["content"].as_str().is_some_and(|words| !words.trim().is_empty()), "{text}");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "done");
}

/// The planner asks the real model for a plan through a tool with a fixed schema. Whatever so small a model answers,
/// the kept plan can be carried out: its own, or the one made by rules.
#[test]
fn what_the_real_model_plans_holds() {
    let Some(address) = address() else { return };
    let house = house(&address, "openai", &[("a.md", "# A\n")]);
    let goal = "Write the file a.txt with the word hello, then write the file b.txt with the word world";
    let mut child = house.command(&["tasks", "plan", goal, "--model"]).spawn().expect("started");
    drop(child.stdin.take());
    let done = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    let tasks = house.run(&["tasks", "--json"]).good().lines();
    assert!(!tasks.is_empty(), "{said}");
    let tokens = house.run(&["runs", "--json"]).good().lines()[0]["spent"]["inputTokens"].as_u64();
    println!("{} tasks; {tokens:?} tokens read", tasks.len());
}

/// Plain streaming with the program's `ask`, over the server's other wire protocols.
#[test]
fn ask_streams_over_the_other_wires() {
    let Some(address) = address() else { return };
    for wire in ["anthropic", "responses"] {
        let house = house(&address, wire, &[("a.md", "# A\n")]);
        house.write("W/agents/talker.md", b"---\nname: talker\ntools: []\n---\nYou are brief.\n");
        let begun = Instant::now();
        let mut child = house.command(&["ask", "Name three colours.", "--agent", "talker"]).spawn().expect("started");
        drop(child.stdin.take());
        // The answer is printed as it arrives, in more than one piece.
        let (mut out, mut pieces, mut said) = (child.stdout.take().expect("piped"), 0, Vec::new());
        let mut buffer = [0; 4_096];
        while let Ok(count @ 1..) = out.read(&mut buffer) {
            pieces += 1;
            said.extend_from_slice(&buffer[..count]);
        }
        let done = child.wait_with_output().expect("ended");
        let low = String::from_utf8_lossy(&said).to_lowercase();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{wire} after {:?}: {low}{errors}", begun.elapsed());
        assert!(["red", "blue", "green", "yellow"].iter().any(|colour| low.contains(colour)), "{wire}: {low}");
        assert!(pieces >= 3, "{wire}: it came in {pieces} pieces: {low}");
        let run = house.run(&["runs", "--json"]).good().lines().remove(0);
        assert!(run["spent"]["outputTokens"].as_u64().is_some_and(|tokens| tokens >= 3), "{wire}: {run}");
    }
}

/// A report in six steps, one line each: half a billion parameters call the right tool for a line, but can't plan.
const REPORT: [&str; 6] = [
    "List the files of the folder data.",
    "Read the file data/{month}.csv.",
    "Read the file data/plan.md.",
    "Write a new file reports/{month}.md with the content: Report for {name}, a draft",
    "Edit reports/{month}.md: replace a draft by final.",
    "Read the file reports/{month}.md.",
];

/// The reported months, as named in the goal and in the files.
const MONTHS: [(&str, &str); 3] =
    [("October 2026", "2026-10"), ("November 2026", "2026-11"), ("December 2026", "2026-12")];

/// A proxy in front of the real model that forwards only the next step's line and the tools. The plan is the test's,
/// and every call is the model's own. Returns its address and the number of the model's answers.
fn steered(model: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let (host, count) = (model.trim_start_matches("http://").to_owned(), Arc::new(AtomicUsize::new(0)));
    let asked = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (host, asked) = (host.clone(), Arc::clone(&asked));
            std::thread::spawn(move || hand_on(stream, &host, &asked));
        }
    });
    (address, count)
}

fn hand_on(mut stream: TcpStream, host: &str, asked: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).ok()?;
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if let Ok(mut request) = serde_json::from_slice::<Value>(&body) {
        asked.fetch_add(1, Ordering::SeqCst);
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let said = |message: &&Value| message["content"].as_str().is_some_and(|text| text.contains("the report for"));
        let goal = messages.iter().rfind(said).map(|message| message["content"].to_string()).unwrap_or_default();
        let (name, month) = MONTHS.into_iter().find(|(name, _)| goal.contains(name))?;
        let done = messages.iter().filter(|message| message["tool_calls"].is_array()).count();
        let step = REPORT.get(done).map(|step| step.replace("{month}", month).replace("{name}", name));
        if step.is_none() {
            request.as_object_mut()?.remove("tools");
        }
        let step = step.unwrap_or_else(|| format!("Say in one short sentence that the report for {name} is ready."));
        let system = "You work in a notebook by calling functions.";
        request["messages"] = json!([{"role": "system", "content": system}, {"role": "user", "content": step}]);
        body = request.to_string().into_bytes();
    }
    let mut model = TcpStream::connect(host).ok()?;
    let head = format!(
        "{}\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        first.trim_end(),
        body.len()
    );
    model.write_all(head.as_bytes()).and_then(|()| model.write_all(&body)).ok()?;
    std::io::copy(&mut model, &mut stream).ok().map(|_| ())
}

/// The real model makes a report of six steps once, guided by a line for each step, since it can't plan. The next month
/// is replayed without it. A month whose data has another format stops the replay, and the model continues there.
#[test]
fn a_report_of_six_steps_is_learned_replayed_for_nothing_and_stopped_where_the_data_are_others() {
    let Some(address) = address() else { return };
    let (address, asked) = steered(&address);
    let csv = "day,sold\n1,517\n2,623\n";
    let files = [
        ("data/plan.md", "# Plan\n\nA report for each month.\n"),
        ("data/2026-10.csv", csv),
        ("data/2026-11.csv", csv),
        ("data/2026-12.csv", "day;shop;sold\n1;north;5\n2;south;7\n"),
    ];
    let house = house(&address, "openai", &files);
    let tools =
        b"---\nname: reporter\ntools: [list_files, read_file, write_file, edit_file]\n---\nYou write reports.\n";
    house.write("W/agents/reporter.md", tools);
    let ask = |month: usize, more: &[&str], input: &[u8]| {
        let (name, file) = MONTHS[month];
        let goal = format!("Write the report for {name} into reports/{file}.md");
        let words: Vec<&str> = ["ask", &goal, "--agent", "reporter"].into_iter().chain(more.iter().copied()).collect();
        let done = house.fed(&words, input);
        assert_eq!(done.code, 0, "{}{}", done.text(), done.err);
        let run = house.run(&["runs", "--json"]).good().lines().remove(0);
        // The reason for a stopped replay is on standard error.
        (format!("{}{}", done.text(), done.err), run)
    };
    let report = |month: usize| {
        let text = house.read(&format!("notes/reports/{}.md", MONTHS[month].1));
        String::from_utf8_lossy(&text).into_owned()
    };
    // The first run records the trace.
    let (said, run) = ask(0, &[], b"");
    let learned = asked.load(Ordering::SeqCst);
    assert_eq!((run["iteration"].as_u64(), learned), (Some(7), 7), "six steps and an answer: {said}");
    assert!(report(0).contains("October 2026") && report(0).contains("final"), "{}", report(0));
    let trace = house.run(&["traces", "--json"]).good().lines().remove(0);
    assert_eq!(trace["steps"], 6, "{trace}");
    assert!(trace["learned_tokens"].as_u64().is_some_and(|tokens| tokens > 500), "{trace}");

    // The second run, for another month, uses no tokens.
    let (said, run) = ask(1, &["--mode", "follower"], b"y\ny\n");
    assert_eq!(asked.load(Ordering::SeqCst), learned, "no model was called: {said}");
    assert_eq!(
        (&run["iteration"], &run["spent"]["inputTokens"], &run["spent"]["outputTokens"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(report(1), report(0).replace("October", "November"));
    let trace = house.run(&["traces", "--json"]).good().lines().remove(0);
    assert_eq!((&trace["usage_count"], &trace["verified_count"]), (&json!(1), &json!(1)));
    assert_eq!(trace["saved_tokens"], trace["learned_tokens"]);

    // The third run meets data in another format: it stops before writing, and the model continues.
    let (said, run) = ask(2, &["--mode", "follower"], b"");
    assert!(said.contains("The replay stopped at step 2 of 6: it has another form"), "{said}");
    assert_eq!((asked.load(Ordering::SeqCst) - learned, run["iteration"].as_u64()), (5, Some(5)), "{said}");
    // Which month so small a model then writes isn't checked.
    assert_eq!(run["standing"], "done", "{run}");
}
