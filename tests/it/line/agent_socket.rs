//! The seed's message protocol over WebSocket at `/api/v1/agent`: what a front end calls and is told, and what is
//! refused.

use super::agents;
use super::http_server::{Server, notes, token};
use crate::program::{House, until};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// A server that says nothing for this time is considered hung.
const PATIENCE: Duration = Duration::from_secs(120);

const NOT_ALLOWED: i64 = -32_001;
const FAILED: i64 = -32_000;
const INVALID_PARAMS: i64 = -32_602;
const UNKNOWN: i64 = -32_601;
const PARSE: i64 = -32_700;
const INVALID: i64 = -32_600;

/// A front end.
struct FrontEnd {
    socket: WebSocket<TcpStream>,
    last: u64,
    /// What was told while an answer was awaited.
    told: VecDeque<Value>,
}

impl FrontEnd {
    /// Connects with these headers, or returns the status of the refusal.
    fn try_new(server: &Server, headers: &[(&'static str, &str)]) -> Result<FrontEnd, u16> {
        let mut request = format!("ws://{}/api/v1/agent", server.address).into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let stream = TcpStream::connect(&server.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(FrontEnd { socket, last: 0, told: VecDeque::new() }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn new(server: &Server) -> FrontEnd {
        FrontEnd::try_new(server, &[]).expect("a socket")
    }

    fn read(&mut self) -> Result<Value, tungstenite::Error> {
        let begun = Instant::now();
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(&text).expect("JSON"));
            }
            assert!(begun.elapsed() < PATIENCE, "nothing but signs of life; told: {:?}", self.told);
        }
    }

    fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).expect("sent");
    }

    /// Calls a method, and returns the whole answer.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let message = self.read().expect("a message");
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message["id"] == id {
                return message;
            }
            self.told.push_back(message);
        }
    }

    #[track_caller]
    fn good(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn refused(&mut self, method: &str, params: &Value, code: i64, about: &str) {
        let answer = self.call(method, params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        let why = answer["error"]["message"].as_str().expect("a reason");
        assert!(why.contains(about), "does not say “{about}”: {why}");
    }

    /// Waits until the client is told this, and returns what it's told.
    #[track_caller]
    fn told(&mut self, method: &str) -> Value {
        if let Some(at) = self.told.iter().position(|message| message["method"] == method) {
            return self.told.remove(at).expect("there")["params"].clone();
        }
        let begun = Instant::now();
        loop {
            let message = self.read().expect("a message");
            if message["method"] == method {
                return message["params"].clone();
            }
            self.told.push_back(message);
            assert!(begun.elapsed() < PATIENCE, "never told {method}: {:?}", self.told);
        }
    }

    /// Returns how the server ends the connection.
    fn end(&mut self) -> u16 {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => return frame.map_or(0, |frame| frame.code.into()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn init(key: &str) -> Value {
    json!({"apiKey": key})
}

/// A model that proposes a tool and a component, runs a command that asks, and answers.
fn proposing_model() -> String {
    agents::model(|turn, _| match turn {
        0 => {
            let code = "def run(n):\n    return n * 2";
            let tool = json!({"name": "double", "description": "Doubles a number", "code": code,
                "parameters": {"type": "object", "properties": {"n": {"type": "number"}}}});
            let component = json!({"tagName": "my-chart", "styles": "my-chart { color: red }",
                "script": "customElements.define('my-chart', class extends HTMLElement {})"});
            (String::new(), vec![("create_tool", tool), ("propose_component", component)])
        }
        1 => (String::new(), vec![("shell", json!({"command": "echo made > made.txt"}))]),
        _ => ("All of it is made, word for word.".to_owned(), Vec::new()),
    })
}

#[test]
fn calls_may_follow_init_without_waiting_for_its_answer() {
    let house = notes();
    let key = token(&house, "front end", &["--scopes", "read,agent"]);
    let server = Server::new(&house);
    let mut front = FrontEnd::new(&server);
    for (id, method, params) in
        [(1, "init", init(&key)), (2, "approve_tool", json!({"toolId": "none"})), (3, "cancel", json!({"nothing": 1}))]
    {
        front.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }
    let (mut answers, begun) = (Vec::new(), Instant::now());
    while answers.len() < 3 {
        let message = front.read().expect("a message");
        assert!(begun.elapsed() < PATIENCE, "no answer: {answers:?}");
        answers.extend(message["id"].is_number().then_some(message));
    }
    assert!(answers[0]["id"] == 1 && answers[0]["result"]["toolCount"].is_number(), "{answers:?}");
    let why = |at: usize| answers[at]["error"]["message"].as_str().unwrap_or_default();
    assert!((1..3).all(|at| !why(at).is_empty() && !why(at).contains("init first")), "{answers:?}");
    server.end();
}

#[test]
fn a_front_end_follows_a_run_and_decides_what_waits() {
    let house = agents::house(&proposing_model(), &[("Boat.md", "# Boat\n")]);
    let key = token(&house, "front end", &["--scopes", "read,agent,approve"]);
    let server = Server::new(&house);
    let mut front = FrontEnd::new(&server);
    front.refused("chat", &json!({"message": "go"}), NOT_ALLOWED, "call init first");
    let hello = front.good("init", &json!({"apiKey": key, "model": "m"}));
    let tools = house.run(&["tools", "--json"]).good().lines().len();
    assert_eq!((&hello["toolCount"], &hello["server"]["name"]), (&json!(tools), &json!("Tracebook")), "{hello}");
    assert_eq!(front.told("ready"), json!({"toolCount": tools}));

    let begun = front.good("chat", &json!({"message": "make it"}));
    let run = begun["run"].as_str().expect("a run").to_owned();
    assert_eq!(begun["session"], hello["session"]);
    front.refused("chat", &json!({"message": "and that"}), FAILED, "still works in this session");
    let tool = front.told("tool_pending")["toolObj"].clone();
    assert_eq!((&tool["name"], &tool["type"]), (&json!("double"), &json!("user")), "{tool}");
    let preview = front.told("preview_component");
    assert_eq!((&preview["tagName"], &preview["styles"]), (&json!("my-chart"), &json!("my-chart { color: red }")));
    assert!(preview["script"].as_str().expect("a script").starts_with("customElements.define"), "{preview}");
    let waits = front.told("approval_pending");
    assert_eq!((&waits["tool"], &waits["run"]), (&json!("shell"), &json!(run)), "{waits}");

    // What is approved is what was told.
    let approved = front.good("approve_tool", &json!({"toolId": tool["id"]}));
    assert_eq!((&approved["name"], &approved["version"]), (&json!("double"), &tool["version"]));
    let all = house.run(&["tools", "--json"]).good().lines();
    assert!(all.iter().any(|tool| tool["name"] == "double"), "{all:?}");
    let listed = house.json(&["components"]);
    assert_eq!((&listed[0]["id"], &listed[0]["approved"]), (&preview["componentId"], &json!(false)), "{listed}");
    front.good("approve_preview", &json!({"componentId": preview["componentId"]}));
    assert_eq!(house.json(&["components"])[0]["approved"], true);
    assert!(!house.path("notes/made.txt").exists());
    front.good("approve_action", &json!({"actionId": waits["actionId"], "approved": true}));
    let done = front.told("done");
    assert_eq!((&done["ending"], &done["error"]), (&json!("done"), &Value::Null), "{done}");
    assert_eq!(house.read("notes/made.txt"), b"made\n");

    // The answer, once, however it was cut into pieces.
    let steps: Vec<Value> = front.told.iter().filter(|one| one["method"] == "step").cloned().collect();
    let answer = steps.iter().filter(|one| matches!(one["params"]["type"].as_str(), Some("delta" | "final_answer")));
    let answer: String = answer.filter_map(|one| one["params"]["content"].as_str()).collect();
    assert_eq!(answer, "All of it is made, word for word.");
    assert!(steps.iter().any(|one| one["params"]["step"]["toolName"] == "shell"), "{steps:?}");
    // The next message continues the session.
    let next = front.good("chat", &json!({"message": "thanks"}));
    assert_eq!(next["session"], begun["session"]);
    assert_eq!(front.told("done")["run"], next["run"]);
    // Every call is in the audit log, with its token.
    let log = String::from_utf8(house.read("W/access-log.jsonl")).expect("text");
    assert!(log.contains("\"WEBSOCKET\"") && log.contains("agent#approve_tool"), "{log}");
    assert!(!log.contains(&key), "the token isn't written down");
}

#[test]
fn a_run_is_cancelled_and_goes_its_way_without_its_front_end() {
    let slow = agents::model(|_, body| {
        let last = body["messages"].as_array().and_then(|messages| messages.last().cloned()).unwrap_or_default();
        match last["role"] == "user" {
            true => (String::new(), vec![("shell", json!({"command": "sleep 600", "seconds": 600}))]),
            false => ("Done.".to_owned(), Vec::new()),
        }
    });
    let house = agents::house(&slow, &[("Boat.md", "# Boat\n")]);
    let key = token(&house, "front end", &["--scopes", "agent,approve,read"]);
    let server = Server::new(&house);
    let mut front = FrontEnd::try_new(&server, &[("Authorization", &format!("Bearer {key}"))]).expect("a socket");
    front.good("init", &json!({}));
    let run = front.good("chat", &json!({"message": "wait"}))["run"].clone();
    let waits = front.told("approval_pending");
    front.good("approve_action", &json!({"actionId": waits["actionId"], "approved": true}));
    front.refused("cancel", &json!({"run": "0"}), INVALID_PARAMS, "no active run");
    for _ in 0..3 {
        front.good("cancel", &json!({"run": run})); // a run is stopped once, however often
    }
    let done = front.told("done");
    assert_eq!((&done["run"], &done["ending"]), (&run, &json!("cancelled")), "{done}");

    // A front end that leaves stops nothing.
    let run = front.good("chat", &json!({"message": "again"}))["run"].as_str().expect("a run").to_owned();
    front.told("approval_pending");
    drop(front);
    let runs = || server.get(&key, &format!("/api/v1/runs/{run}")).json();
    until("the run still waits", || runs()["run"]["ending"].is_null());
}

#[test]
fn what_a_front_end_may_not_do_is_refused() {
    let house = notes();
    let reader = token(&house, "reader", &["--scopes", "read"]);
    let key = token(&house, "agent", &["--scopes", "agent"]);
    let one = token(&house, "one", &["--scopes", "agent,write,approve", "--volume", "notes"]);
    let server = Server::new(&house);
    server.get("", "/api/v1/agent").refused(426, "speaks WebSocket");
    for (headers, status) in [
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Host", "evil.example")], 403),
        (vec![("Sec-Fetch-Site", "cross-site")], 403),
        (vec![("Authorization", "Bearer tb_1_2")], 401),
    ] {
        assert_eq!(FrontEnd::try_new(&server, &headers).err(), Some(status), "{headers:?}");
    }
    let mut front = FrontEnd::new(&server);
    for text in ["{", "[]", "{\"jsonrpc\":\"2.0\",\"id\":1}", "{\"jsonrpc\":\"1.0\",\"method\":\"init\",\"id\":1}"] {
        front.send(text);
        let answer = front.read().expect("an answer");
        let code = if text == "{" { PARSE } else { INVALID };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{text}: {answer}");
    }
    front.refused("init", &json!({}), NOT_ALLOWED, "send a token");
    front.refused("init", &init("tb_1_2"), NOT_ALLOWED, "isn't known");
    front.refused("init", &init(&reader), NOT_ALLOWED, "lacks the scope `agent`");
    front.refused("init", &json!({"apiKey": key, "volume": "nowhere"}), INVALID_PARAMS, "no volume nowhere");
    front.refused("init", &json!({"apiKey": key, "modle": "m"}), INVALID_PARAMS, "unknown field");
    front.refused("init", &json!({"apiKey": key, "model": "gpt-nothing"}), INVALID_PARAMS, "no model gpt-nothing");
    front.refused("chat", &json!({"message": "go"}), NOT_ALLOWED, "call init first");
    front.good("init", &init(&key));
    front.refused("dance", &json!({}), UNKNOWN, "there is no method dance");
    front.refused("chat", &json!({"message": " "}), INVALID_PARAMS, "`message` has");
    front.refused("chat", &json!({"message": "go", "budget": -1}), INVALID_PARAMS, "US dollars");
    for method in ["approve_tool", "approve_preview", "approve_action"] {
        let params = json!({"toolId": "x", "componentId": "x", "actionId": "x", "approved": true});
        let field = match method {
            "approve_tool" => json!({"toolId": params["toolId"]}),
            "approve_preview" => json!({"componentId": params["componentId"]}),
            _ => json!({"actionId": params["actionId"], "approved": true}),
        };
        front.refused(method, &field, NOT_ALLOWED, "lacks the scope `approve`");
    }
    front.refused("load_repo", &json!({"owner": "a", "repo": "b"}), NOT_ALLOWED, "lacks the scope `write`");
    let mut limited = FrontEnd::new(&server);
    limited.good("init", &init(&one));
    limited.refused("load_repo", &json!({"owner": "a", "repo": "b"}), NOT_ALLOWED, "for one volume");
    limited.refused("chat", &json!({"message": "go", "volume": "other"}), NOT_ALLOWED, "another volume");
    let tool = json!({"toolId": "x", "version": 1});
    limited.refused("approve_tool", &tool, NOT_ALLOWED, "for all volumes");
    // What was said in a session may be about any volume.
    let elsewhere = json!({"message": "go", "session": "0123456789abcdef".repeat(2)});
    limited.refused("chat", &elsewhere, NOT_ALLOWED, "began on this connection");
    front.refused("chat", &json!({"message": "go", "session": "0"}), INVALID_PARAMS, "the whole id");
    // A token that is revoked is worth nothing from then on.
    house.run(&["tokens", "revoke", "agent"]).good();
    front.refused("chat", &json!({"message": "go"}), NOT_ALLOWED, "revoked");

    // What is no text, or too long, ends the connection; nobody else notices.
    let mut binary = FrontEnd::new(&server);
    binary.socket.send(Message::binary(vec![0, 1])).expect("sent");
    assert_eq!(binary.end(), 1_003);
    let mut long = FrontEnd::new(&server);
    long.socket.send(Message::text("x".repeat(2 << 20))).expect("sent");
    assert_eq!(long.end(), 1_009);
    limited.refused("dance", &json!({}), UNKNOWN, "there is no method dance");
    // Those who don't say who they are keep out only others like them.
    let unnamed: Vec<FrontEnd> = std::iter::from_fn(|| FrontEnd::try_new(&server, &[]).ok()).take(40).collect();
    assert!((1..=16).contains(&unnamed.len()), "{}", unnamed.len());
    let bearer = format!("Bearer {one}");
    FrontEnd::try_new(&server, &[("Authorization", &bearer)]).expect("a place").good("init", &json!({}));
    drop(unnamed);
    until("places are free again", || FrontEnd::try_new(&server, &[]).is_ok());
    // One who doesn't say who it is, is hung up on.
    let mut silent = FrontEnd::new(&server);
    assert_eq!(silent.end(), 1_008);
}

/// A front end in a browser sends its token with `init`. It isn't taken for one that hasn't called because the
/// workspace takes longer to answer than a client without a token may wait.
#[test]
fn a_front_end_that_has_called_init_is_not_cut_off_while_the_workspace_is_busy() {
    let house = notes();
    let key = token(&house, "agent", &["--scopes", "agent"]);
    let owner = house.owner("Boat.md");
    let server = Server::new(&house);
    owner.signal("-STOP");
    let mut front = FrontEnd::new(&server);
    front.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "init", "params": init(&key)}).to_string());
    let mut silent = FrontEnd::new(&server);
    assert_eq!(silent.end(), 1_008, "it never called init");
    owner.signal("-CONT");
    assert_eq!(front.read().expect("an answer")["result"]["volume"], Value::Null);
    front.told("ready");
    owner.end();
    server.end();
}

/// Makes a repository at `folder` with one note.
fn make_repository(folder: &std::path::Path) {
    let git = |words: &[&str]| {
        let git = std::process::Command::new("git").arg("-C").arg(folder).args(words).output().expect("git runs");
        assert!(git.status.success(), "{words:?}: {}", String::from_utf8_lossy(&git.stderr));
    };
    std::fs::create_dir_all(folder).expect("a folder");
    git(&["init", "-q", "-b", "main"]);
    std::fs::write(folder.join("Readme.md"), "# Sails\n").expect("written");
    git(&["add", "."]);
    git(&["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "Begin"]);
}

#[test]
fn a_repository_is_loaded_and_becomes_where_the_agent_works() {
    let model = agents::model(|turn, _| match turn {
        0 => (String::new(), vec![("write_file", json!({"path": "Made.md", "content": "# Made\n"}))]),
        _ => ("Made.".to_owned(), Vec::new()),
    });
    let house: House = agents::house(&model, &[("Boat.md", "# Boat\n")]);
    let origin = house.path("github/ada/sails.git");
    make_repository(&origin);
    // GitHub, as far as this user's Git knows.
    let github = format!("[url \"file://{}/\"]\n\tinsteadOf = https://github.com/\n", house.path("github").display());
    house.write(".gitconfig", github.as_bytes());
    let key = token(&house, "front end", &["--scopes", "agent,write,read"]);
    let server = Server::new(&house);
    let mut front = FrontEnd::new(&server);
    front.good("init", &init(&key));
    for (owner, repo) in [("..", "x"), ("ada", "../x"), ("ada", ""), ("-ada", "x"), ("ada/x", "y"), ("ada", "a b")] {
        front.refused("load_repo", &json!({"owner": owner, "repo": repo}), INVALID_PARAMS, "github.com/OWNER/REPO");
    }
    front.refused("load_repo", &json!({"owner": "ada", "repo": "nothing"}), INVALID_PARAMS, "nothing");
    let loaded = front.good("load_repo", &json!({"owner": "ada", "repo": "sails"}));
    assert_eq!(loaded["folder"], house.path("W/repos/ada_sails").display().to_string());
    assert_eq!(std::fs::read(house.path("W/repos/ada_sails/Readme.md")).expect("cloned"), b"# Sails\n");
    // Opening it adds nothing to what the repository has.
    let entries = std::fs::read_dir(house.path("W/repos/ada_sails")).expect("a folder");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, [".git", "Readme.md"]);
    front.good("chat", &json!({"message": "make it"}));
    assert_eq!(front.told("done")["ending"], "done");
    assert_eq!(std::fs::read(house.path("W/repos/ada_sails/Made.md")).expect("written"), b"# Made\n");
    // Once more: it's there already.
    assert_eq!(front.good("load_repo", &json!({"owner": "ada", "repo": "sails"}))["volume"], loaded["volume"]);
}
