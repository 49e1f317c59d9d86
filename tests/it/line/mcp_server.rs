//! `tracebook mcp`: what a program gets that speaks the Model Context Protocol over standard input and output.

use super::agents;
use crate::program::{House, PROGRAM, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A server that doesn't answer in this time is considered hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of `tracebook mcp`. The server is killed on drop.
pub(crate) struct Client {
    server: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// Notifications that came before an answer.
    pub(crate) said: Vec<Value>,
    /// Requests of the server that came before an answer.
    pub(crate) asked: Vec<Value>,
    /// What the client's user enters in a form.
    pub(crate) form_answer: Value,
    /// Folders in which the client works, and how often the server has asked for them.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) roots_asked: usize,
}

impl Client {
    pub(crate) fn new(house: &House, options: &[&str]) -> Client {
        Client::with_capabilities(house, options, json!({}))
    }

    pub(crate) fn with_capabilities(house: &House, options: &[&str], capabilities: Value) -> Client {
        let words: Vec<&str> = std::iter::once("mcp").chain(options.iter().copied()).collect();
        let mut server = house.command(&words).stderr(Stdio::inherit()).spawn().expect("started");
        let out = BufReader::new(server.stdout.take().expect("piped"));
        let (told, lines) = channel();
        std::thread::spawn(move || {
            let values = out
                .lines()
                .map_while(Result::ok)
                .map(|line| serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
            for value in values {
                if told.send(value).is_err() {
                    return;
                }
            }
        });
        let input = server.stdin.take();
        let (said, asked) = (Vec::new(), Vec::new());
        let (form_answer, roots) = (Value::Null, Vec::new());
        let mut client = Client { input, server, lines, next: 0, said, asked, form_answer, roots, roots_asked: 0 };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}});
        let info = client.request("initialize", about);
        assert_eq!(info["result"]["serverInfo"]["name"], "tracebook", "{info}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("open");
        input.write_all(format!("{message}\n").as_bytes()).expect("taken");
    }

    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line["method"] == "roots/list" => {
                    let root = |folder: &PathBuf| json!({"uri": format!("file://{}", folder.display())});
                    let roots: Vec<Value> = self.roots.iter().map(root).collect();
                    self.send(&json!({"jsonrpc": "2.0", "id": line["id"], "result": {"roots": roots}}));
                    self.roots_asked += 1;
                }
                Ok(line) if line["method"].is_string() && line["id"].is_number() => {
                    self.send(&json!({"jsonrpc": "2.0", "id": line["id"], "result": self.form_answer}));
                    self.asked.push(line);
                }
                Ok(line) if line["id"] == id => return line,
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("no answer to {id}"),
            }
        }
    }

    /// Sends a batch, and returns the answer to all of it.
    pub(crate) fn batch(&mut self, messages: &Value) -> Value {
        self.send(messages);
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(answers) if answers.is_array() => return answers,
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("no answer: {:?}", self.said),
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Calls a tool that succeeds, and returns its structured output.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result["isError"] != true && result["structuredContent"].is_object(), "{tool}: {answer}");
        // Clients without structured output read the same from the text.
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(text, result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Calls a tool that fails, and returns why.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.begin("tools/call", json!({"name": tool, "arguments": arguments}));
        self.refusal(id)
    }

    /// Waits for the end of a call that fails, and returns why.
    pub(crate) fn refusal(&mut self, id: u64) -> String {
        let answer = self.answer(id);
        match answer["error"]["message"].as_str() {
            Some(why) => why.to_owned(),
            None => {
                assert_eq!(answer["result"]["isError"], true, "{answer}");
                answer["result"]["content"][0]["text"].as_str().expect("a reason").to_owned()
            }
        }
    }

    fn tools(&mut self) -> Vec<Value> {
        self.request("tools/list", json!({}))["result"]["tools"].as_array().expect("a list").clone()
    }

    /// Closes its input; the server ends by itself.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        until("the server ends with its input", || self.server.try_wait().expect("a process").is_some());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub(crate) fn notes() -> House {
    House::with(&[
        ("Boat.md", "# Boat\n\nThe solar panel gives 12 volts.\n\n- [ ] Paint the hull 📅 2026-11-20\n"),
        ("Ideas/Sail.md", "# Sail\n\nSee [[Boat]]. Cotton or linen.\n"),
        ("Cells.md", "# Cells\n\n```python\nprint('from the cell')\n6 * 7\n```\n"),
    ])
}

#[test]
fn a_client_that_may_only_read_finds_and_reads_notes() {
    let house = notes();
    let before = crate::program::bytes(&house.path("notes"));
    let mut client = Client::new(&house, &[]);
    let hits = client.call("search_notes", json!({"query": "solar panel"}));
    assert_eq!(hits["hits"][0]["title"], "Boat", "{hits}");
    let odd = client.call("search_notes", json!({"query": "before:soon"}));
    assert!(odd["messages"].as_str().is_some_and(|said| said.contains("“soon” is no day")), "{odd}");
    let address = hits["hits"][0]["address"].as_str().expect("an address");
    assert!(client.call("read_note", json!({"note": address}))["text"].as_str().expect("text").contains("12 volts"));
    let note = client.call("read_note", json!({"note": "Boat.md"}));
    assert_eq!(note["text"].as_str().expect("text").as_bytes(), house.read("notes/Boat.md"));
    assert_eq!((&note["path"], &note["volume"]), (&json!("Boat.md"), &json!("notes")));
    // A long note comes in pages that join to it.
    let (mut at, mut whole) = (json!(0), String::new());
    while !at.is_null() {
        let page = client.call("read_note", json!({"note": "Boat.md", "offset": at, "length": 10}));
        whole += page["text"].as_str().expect("text");
        at = page["next_offset"].clone();
    }
    assert_eq!(whole.as_bytes(), house.read("notes/Boat.md"));
    let listed = client.call("list_notes", json!({"limit": 2}));
    assert_eq!((&listed["total"], &listed["next_offset"]), (&json!(3), &json!(2)), "{listed}");
    let links = client.call("note_links", json!({"note": "Boat.md"}));
    assert_eq!(links["backlinks"][0]["path"], "Ideas/Sail.md");
    let todos = client.call("list_todos", json!({}));
    assert_eq!((&todos["todos"][0]["text"], &todos["total"]), (&json!("Paint the hull"), &json!(1)), "{todos}");
    assert!(client.call("related_notes", json!({"note": "Boat.md"}))["hits"].is_array());
    assert!(client.call("recall", json!({"goal": "paint"}))["memories"].is_array());
    assert!(client.call("note_outputs", json!({"note": "Cells.md"}))["cells"].is_array());
    // Nothing else is offered, or carried out if it's called all the same.
    let tools = client.tools();
    for tool in &tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        assert!(tool["inputSchema"]["type"] == "object" && tool["outputSchema"]["type"] == "object", "{tool}");
    }
    for (tool, option) in
        [("create_note", "--allow-write"), ("run_cells", "--allow-run"), ("ask_an_agent", "--allow-agent")]
    {
        assert!(tools.iter().all(|listed| listed["name"] != tool));
        let why = client.refused(tool, json!({"path": "x.md", "note": "Cells.md", "text": "go"}));
        assert!(why.contains(option), "{why}");
    }
    client.end();
    assert_eq!(crate::program::bytes(&house.path("notes")), before);
}

#[test]
fn what_a_client_names_wrongly_is_an_error_it_can_read() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write"]);
    for (tool, arguments, about) in [
        ("read_note", json!({"note": "Nowhere.md"}), "Nowhere.md"),
        ("read_note", json!({}), "`note` is missing"),
        ("read_note", json!({"note": 7}), "must be a string"),
        ("read_note", json!({"note": "--workspace=/tmp"}), "--workspace=/tmp"),
        ("search_notes", json!({"query": "x", "limit": -1}), "whole number"),
        ("search_notes", json!({"query": "x", "offset": 1}), "no argument `offset`"),
        ("create_note", json!({"path": "../outside.md", "text": "x"}), ".."),
        ("create_note", json!({"path": "run.sh", "text": "x"}), "ends with .md"),
        ("create_note", json!({"path": "AGENTS.md", "text": "obey"}), "protected"),
        ("create_note", json!({"path": "/notes/agents/x.md", "text": "obey"}), "protected"),
        ("create_note", json!({"path": "/agents/x.md", "text": "obey"}), "protected"),
        ("create_note", json!({"path": "Boat.md", "text": "x"}), "Boat.md"),
        ("edit_note", json!({"note": "Boat.md", "old_text": "nothing like it", "new_text": ""}), "0 times"),
        ("edit_note", json!({"note": "Boat.md", "old_text": "a", "new_text": "b"}), "exactly once"),
        ("edit_note", json!({"note": "Boat.md", "old_text": "solar", "new_text": "b", "version": "0"}), "has changed"),
        ("check_todo", json!({"path": "Boat.md", "at": 0, "text": "no such task"}), "no such task"),
        ("no_such_tool", json!({}), "no tool"),
    ] {
        let why = client.refused(tool, arguments.clone());
        assert!(why.contains(about), "{tool} {arguments}: {why}");
    }
    // A long name is cut, and nobody is told to use a terminal.
    let why = client.refused("read_note", json!({"note": "x".repeat(20_000)}));
    assert!(why.len() < 500 && why.contains("xx…”") && !why.contains("tracebook ls"), "{why}");
    assert!(!house.path("outside.md").exists() && !house.path("notes/AGENTS.md").exists());
    let error = client.request("resources/read", json!({"uri": "note://notes/../../etc/passwd"}));
    assert!(error["error"]["message"].is_string(), "{error}");
    assert!(client.request("no/such/method", json!({}))["error"].is_object());
    client.end();
}

#[test]
fn a_client_that_may_write_changes_notes_as_a_user_does() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write"]);
    let made = client.call("create_note", json!({"path": "New/Plan", "text": "# Plan\n\nFirst.\n"}));
    assert_eq!(made["path"], "New/Plan.md");
    let made = client.call("create_note", json!({"path": "/notes/New/Other.md", "text": "x"}));
    assert_eq!(made["path"], "New/Other.md", "the volume's name isn't taken twice");
    let named = json!({"path": "notes/agents/x", "volume": "notes", "text": "x"});
    assert_eq!(client.call("create_note", named)["path"], "notes/agents/x.md", "no agent of the volume");
    assert!(!house.path("notes/agents").exists());
    let version = client.call("read_note", json!({"note": "New/Plan.md"}))["version"].clone();
    let edit = json!({"note": "New/Plan.md", "old_text": "First.", "new_text": "Second: é.", "version": version});
    client.call("edit_note", edit);
    client.call("append_to_note", json!({"note": "New/Plan.md", "text": "--json is no option here"}));
    client.call("add_todo", json!({"note": "New/Plan.md", "text": "Buy rope"}));
    let whole = "# Plan\n\nSecond: é.\n--json is no option here\n- [ ] Buy rope\n";
    until("the file has it", || house.read("notes/New/Plan.md") == whole.as_bytes());
    let todos = client.call("list_todos", json!({"words": "rope"}));
    let todo = &todos["todos"][0];
    let check = json!({"path": todo["path"], "at": todo["at"], "text": todo["text"]});
    assert_eq!(client.call("check_todo", check.clone())["done"], true);
    until("it's checked", || house.read("notes/New/Plan.md").ends_with(b"- [x] Buy rope\n"));
    assert_eq!(client.call("check_todo", check)["done"], false);
    let today = client.call("capture", json!({"text": "A thought"}));
    let today = today["path"].as_str().expect("a path").to_owned();
    client.call("add_todo", json!({"text": "Call Ada"}));
    until("today's note", || {
        String::from_utf8_lossy(&house.read(&format!("notes/{today}"))).ends_with("- A thought\n- [ ] Call Ada\n")
    });
    client.call("remember", json!({"text": "Linen rots in salt water", "goal": "choose a sail"}));
    let found = client.call("recall", json!({"goal": "choose a sail"}));
    assert!(found["memories"].to_string().contains("Linen rots"), "{found}");
    client.end();
    // All of it is on disk, and earlier versions are kept.
    assert_eq!(house.cat("New/Plan.md"), whole.as_bytes());
    assert!(house.run(&["history", "New/Plan.md"]).good().text().lines().count() > 1);
}

#[test]
fn the_server_works_beside_others_and_through_another_owner() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write"]);
    // The server has the workspace, and a command goes through it.
    assert_eq!(client.call("list_notes", json!({}))["total"], 3);
    house.run(&["new", "Beside", "--text", "x"]).good();
    assert_eq!(client.call("list_notes", json!({}))["total"], 4);
    client.end();
    // Another process has it from the start.
    let mut owner = house.owner("Boat.md");
    let mut client = Client::new(&house, &["--allow-write"]);
    client.call("append_to_note", json!({"note": "Boat.md", "text": "from the client"}));
    owner.types(0, 0, "from the owner\n");
    let text = client.call("read_note", json!({"note": "Boat.md"}))["text"].as_str().expect("text").to_owned();
    assert!(text.starts_with("from the owner\n# Boat") && text.ends_with("from the client\n"), "{text}");
    owner.end();
    // After the owner has gone, the server opens the workspace itself.
    assert!(client.call("read_note", json!({"note": "Boat.md"}))["text"] == json!(text));
    client.end();
}

#[test]
fn cells_run_with_progress_and_a_cancelled_run_stops() {
    let house = notes();
    house.write("notes/Slow.md", b"```python\nwhile True:\n    pass\n```\n");
    let mut client = Client::new(&house, &["--allow-run"]);
    let ran = json!({"name": "run_cells", "arguments": {"note": "Cells.md"}, "_meta": {"progressToken": "p"}});
    let answer = client.request("tools/call", ran);
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["ok"], true, "{answer}");
    assert!(result["outputs"].to_string().contains("from the cell"), "{result}");
    let progress = client.said.iter().filter(|line| line["method"] == "notifications/progress");
    assert!(progress.map(|line| &line["params"]["progressToken"]).all(|token| token == "p"));
    assert!(!client.said.is_empty(), "there was no progress");
    assert_eq!(client.call("note_outputs", json!({"note": "Cells.md"}))["cells"][0]["status"], "ok");
    let slow = json!({"name": "run_cells", "arguments": {"note": "Slow.md", "timeout_seconds": 3000}});
    let id = client.begin("tools/call", slow);
    let status = || house.run(&["outputs", "Slow.md", "--json"]).good().text();
    until("it runs", || status().contains("\"running\""));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until("it's interrupted", || status().contains("\"interrupted\""));
    // Who asks again at once gets a run of its own, not the end of the one that is being stopped.
    let code =
        "import os, time\nif not os.path.exists('seen'):\n    open('seen', 'w').close()\n    time.sleep(300)\n'whole'";
    house.write("notes/Again.md", format!("```python timeout=0\n{code}\n```\n").as_bytes());
    until("it's known", || client.call("list_notes", json!({}))["total"] == 5);
    let id = client.begin("tools/call", json!({"name": "run_cells", "arguments": {"note": "Again.md"}}));
    until("it sleeps", || house.path("notes/seen").exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let again = client.call("run_cells", json!({"note": "Again.md"}));
    assert!(again["ok"] == true && again["outputs"].to_string().contains("whole"), "{again}");
    // The server is as usable as before.
    assert_eq!(client.call("list_notes", json!({}))["total"], 5);
    client.end();
}

#[test]
fn resources_prompts_and_completion() {
    let house = notes();
    let mut client = Client::new(&house, &[]);
    let listed = client.request("resources/list", json!({}));
    let resources = listed["result"]["resources"].as_array().expect("a list");
    let uri = |name: &str| resources.iter().find(|one| one["name"] == name).map(|one| one["uri"].clone());
    let sail = uri("Ideas/Sail").expect("the note");
    assert_eq!(sail, "note://notes/Ideas/Sail.md");
    let read = client.request("resources/read", json!({"uri": sail}));
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/markdown");
    let text = read["result"]["contents"][0]["text"].as_str().expect("text");
    assert_eq!(text.as_bytes(), house.read("notes/Ideas/Sail.md"));
    let gone = client.request("resources/read", json!({"uri": "note://notes/Nowhere.md"}));
    assert_eq!(gone["error"]["code"], -32_002, "{gone}");
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "note://{volume}/{+path}");
    let wanted = json!({"ref": {"type": "ref/prompt", "name": "summarize_note"},
        "argument": {"name": "note", "value": "sai"}});
    let completed = client.request("completion/complete", wanted);
    assert_eq!(completed["result"]["completion"]["values"], json!(["Ideas/Sail.md"]), "{completed}");
    let prompts = client.request("prompts/list", json!({}));
    let names: Vec<&str> = prompts["result"]["prompts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names.contains(&"ask_my_notes"), "{names:?}");
    let filled =
        client.request("prompts/get", json!({"name": "ask_my_notes", "arguments": {"question": "How many volts?"}}));
    assert!(filled["result"]["messages"][0]["content"]["text"].as_str().expect("text").contains("How many volts?"));
    let missing = client.request("prompts/get", json!({"name": "ask_my_notes"}));
    assert!(missing["error"]["message"].as_str().expect("why").contains("question"), "{missing}");
    client.end();
}

#[test]
fn an_agent_answers_and_its_policy_still_asks() {
    let model = agents::model(|turn, _| match turn {
        0 => ("I look".to_owned(), vec![("read_file", json!({"path": "Boat.md"}))]),
        _ => ("It gives 12 volts.".to_owned(), Vec::new()),
    });
    let house = agents::house(&model, &[("Boat.md", "The panel gives 12 volts.\n")]);
    let mut client = Client::new(&house, &["--allow-agent"]);
    let answer = client.call("ask_an_agent", json!({"text": "How many volts?"}));
    assert_eq!((&answer["ok"], &answer["answer"]), (&json!(true), &json!("It gives 12 volts.")), "{answer}");
    let run = answer["run"].as_str().expect("an id").to_owned();
    assert!(client.call("list_runs", json!({}))["runs"].to_string().contains(&run));
    client.end();
    assert!(house.run(&["steps", &run]).good().text().contains("read_file"));
}

/// The programs, where each has its configuration, and under which key it lists servers.
const CONFIGURATIONS: [(&str, &str, &str); 6] = [
    ("claude-code", ".claude.json", "mcpServers"),
    ("opencode", ".config/opencode/opencode.json", "mcp"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
];

#[test]
fn install_shows_the_change_of_each_program_and_writes_nothing_without_a_yes() {
    let house = notes();
    for (program, file, key) in CONFIGURATIONS {
        // There is none yet: it's shown whole, and not made.
        let shown = house.run(&["mcp", "install", program]);
        assert!(shown.code == 2 && shown.err.contains("--yes"), "{shown:?}");
        let text = shown.text();
        assert!(text.contains(file) && text.contains(&format!("\"{key}\"")), "{program}: {text}");
        assert!(text.contains("--allow-write=ask"), "{program}: {text}");
        assert!(text.contains("+++ b/") && !text.contains("+++ b//"), "{program}: {text}");
        assert!(!house.path(file).exists(), "{program}");
        // There is one: only the addition is shown, and every byte stays.
        let old = "{\n  \"mine\": [1, 2],\n  \"other\": {\"a\": true}\n}\n";
        house.write(file, old.as_bytes());
        let shown = house.run(&["mcp", "install", program, "--allow-write=no"]);
        assert!(shown.code == 2 && shown.err.contains("nothing was written"), "{shown:?}");
        let text = shown.text();
        let has_line = |sign: char, part: &str| text.lines().any(|line| line.starts_with(sign) && line.contains(part));
        assert!(has_line('+', key) && has_line(' ', "\"mine\""), "{program}: {text}");
        assert!(!has_line('-', "\"mine\"") && !text.contains("--allow-write"), "{program}: {text}");
        assert_eq!(house.read(file), old.as_bytes(), "{program}");
    }
    house.run(&["mcp", "install", "zed", "--allow-write=maybe", "--yes"]).refused(2, "not “maybe”");
    house.run(&["mcp", "--allow-write=maybe"]).refused(2, "--allow-write is ask");
    house.run(&["mcp", "serve", "zed"]).refused(2, "mcp serve takes no name");
}

#[test]
fn install_shows_the_change_and_keeps_what_is_there() {
    let house = notes();
    let old = "{\n  // my settings\n  \"theme\": \"One Dark\",\n}\n";
    house.write(".config/zed/settings.json", old.as_bytes());
    house.run(&["mcp", "install", "zed", "--allow-write", "--yes"]).good();
    let new = String::from_utf8(house.read(".config/zed/settings.json")).expect("text");
    assert!(new.contains("// my settings") && new.contains("\"--allow-write\""), "{new}");
    assert!(house.run(&["mcp", "install", "zed", "--allow-write", "--yes"]).good().text().contains("has it already"));
    for (program, file, key) in CONFIGURATIONS.into_iter().filter(|(program, ..)| *program != "zed") {
        house.run(&["mcp", "install", program, "--yes"]).good();
        let config: Value = serde_json::from_slice(&house.read(file)).expect("JSON");
        // What was written starts a server for this workspace, from any folder.
        let entry = &config[key]["tracebook"];
        let mut words: Vec<&str> = match &entry["command"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            command => command.as_str().into_iter().collect(),
        };
        words.extend(entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
        // Without another word, what it changes waits for the user.
        assert!(words.contains(&"--allow-write=ask"), "{entry}");
        let (command, arguments) = words.split_first().expect("a command");
        assert!(command.ends_with(PROGRAM.rsplit('/').next().expect("a name")), "{entry}");
        let mut started = Command::new(command);
        started.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        assert!(started.status().expect("started").success(), "{entry}");
    }
    house.write(".cursor/mcp.json", b"not JSON");
    house.run(&["mcp", "install", "cursor", "--yes"]).refused(2, "isn't JSON");
    assert_eq!(house.read(".cursor/mcp.json"), b"not JSON");
    house.run(&["mcp", "install", "emacs"]).refused(2, "claude-code");
}

/// What is no message, or a known method with other parameters, is answered with its id and the code that JSON-RPC has.
#[test]
fn a_message_that_is_none_is_answered() {
    let house = notes();
    let mut client = Client::new(&house, &[]);
    let send = |client: &mut Client, line: &str| {
        let input = client.input.as_mut().expect("open");
        input.write_all(format!("{line}\n").as_bytes()).expect("taken");
        let answer = client.lines.recv_timeout(PATIENCE).expect("an answer");
        (answer["id"].clone(), answer["error"]["code"].as_i64())
    };
    assert_eq!(send(&mut client, "garbage"), (Value::Null, Some(-32_700)));
    let params = r#"{"jsonrpc": "2.0", "id": 78, "method": "tools/call", "params": []}"#;
    assert_eq!(send(&mut client, params), (json!(78), Some(-32_602)));
    let none = r#"{"jsonrpc": "2.0", "id": "q", "method": "tools/call"}"#;
    assert_eq!(send(&mut client, none), (json!("q"), Some(-32_602)));
    let error = client.request("resources/read", json!({}))["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32_602), &json!("the parameters don't fit resources/read"))
    );
    let error = client.request("nope", json!({}))["error"].clone();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32_601), &json!("there is no method nope")));
    assert!(!client.tools().is_empty());
    client.end();
}
