//! Writes of MCP clients that wait for the user's approval, over standard input and output and over HTTP; and what a
//! client gets over HTTP when its token no longer holds, or its connection breaks.

use super::grpc;
use super::http_server::{self, Answer, Server, request_text, token};
use super::mcp_server::{Client, notes};
use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What waits, as `tracebook approvals` lists it.
pub(super) fn waiting(house: &House) -> Vec<Value> {
    house.run(&["approvals", "--json"]).good().lines()
}

/// Waits until one request of a program waits, and returns it.
fn one_waiting(house: &House) -> Value {
    let mut found = Vec::new();
    until("a request waits", || {
        found = waiting(house);
        !found.is_empty()
    });
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

pub(super) fn decide(house: &House, request: &Value, words: &[&str]) {
    let name = request["name"].as_str().unwrap_or_else(|| panic!("{request}"));
    let all: Vec<&str> = ["approvals", name].iter().chain(words).copied().collect();
    house.run(&all).good();
}

fn begin(client: &mut Client, tool: &str, arguments: Value) -> u64 {
    client.begin("tools/call", json!({"name": tool, "arguments": arguments}))
}

#[test]
fn a_write_waits_and_is_exactly_what_was_approved() {
    let house = notes();
    let before = crate::program::bytes(&house.path("notes"));
    let mut client = Client::new(&house, &["--allow-write=ask"]);
    let edit = json!({"note": "Boat.md", "old_text": "12 volts", "new_text": "24 volts"});
    let id = begin(&mut client, "edit_note", edit);
    let request = one_waiting(&house);
    assert_eq!(
        (&request["tool"], &request["path"], &request["volume"]),
        (&json!("edit_note"), &json!("Boat.md"), &json!("notes"))
    );
    let diff = request["diff"].as_str().expect("a diff");
    assert!(diff.contains("-The solar panel gives 12 volts.\n+The solar panel gives 24 volts.\n"), "{diff}");
    assert!(request["program"] == "t" && request["expires"].as_i64() > request["asked"].as_i64(), "{request}");
    // For people, too.
    let shown = house.run(&["approvals"]).good().text();
    assert!(shown.contains("Edit Boat.md in notes") && shown.contains("    +The solar panel gives 24"), "{shown}");
    assert!(house.run(&["approvals", "--find", "sails"]).good().text().is_empty());
    // A client sees what waits, and decides nothing.
    assert_eq!(client.call("list_approvals", json!({}))["approvals"][0]["name"], request["name"]);
    assert_eq!(crate::program::bytes(&house.path("notes")), before, "nothing is written yet");
    let name = request["name"].as_str().expect("a name");
    house.run(&["approvals", name]).refused(2, "say --allow or --deny");
    house.run(&["approvals", name, "--allow", "--scope", "always"]).refused(2, "decided once");
    decide(&house, &request, &["--allow"]);
    let done = client.answer(id)["result"]["structuredContent"].clone();
    assert_eq!(done["path"], "Boat.md", "{done}");
    let now = String::from_utf8(house.read("notes/Boat.md")).expect("text");
    let old = String::from_utf8(before["Boat.md"].clone()).expect("text");
    assert_eq!(now, old.replace("12 volts", "24 volts"));
    // The version is that of the note.
    let version = client.call("read_note", json!({"note": "Boat.md"}))["version"].clone();
    assert_eq!(done["version"], version);
    assert!(waiting(&house).is_empty());
    house.run(&["approvals", name, "--allow"]).refused(2, "nothing waits under the name");
    // What is denied isn't written, and the client hears why.
    let id = begin(&mut client, "create_note", json!({"path": "New/Plan", "text": "# Plan\n"}));
    let request = one_waiting(&house);
    assert_eq!((&request["path"], &request["what"]), (&json!("New/Plan.md"), &json!("Create New/Plan.md in notes")));
    assert!(request["diff"].as_str().expect("a diff").contains("+# Plan\n"), "{request}");
    decide(&house, &request, &["--deny", "--comment", "not today"]);
    let why = client.refusal(id);
    assert!(why.contains("denied") && why.contains("not today"), "{why}");
    assert!(!house.path("notes/New").exists());
    client.end();
}

#[test]
fn each_kind_of_write_waits() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write=ask"]);
    let todo = client.call("list_todos", json!({"words": "hull"}))["todos"][0].clone();
    let check = json!({"path": todo["path"], "at": todo["at"], "text": todo["text"]});
    let cases = [
        ("create_note", json!({"path": "Plan.md", "text": "# Plan\n"}), "+# Plan"),
        ("append_to_note", json!({"note": "Plan.md", "text": "--json"}), "+--json"),
        ("add_todo", json!({"note": "Plan.md", "text": "Buy rope"}), "+- [ ] Buy rope"),
        ("add_todo", json!({"text": "Call Ada"}), "+- [ ] Call Ada"),
        ("capture", json!({"text": "A thought\nin two lines"}), "+- A thought\n+  in two lines"),
        ("check_todo", check, "+- [x] Paint the hull"),
        ("remember", json!({"text": "Linen rots in salt water", "goal": "choose a sail"}), "+Linen rots"),
    ];
    for (tool, arguments, addition) in cases {
        let before = crate::program::bytes(&house.path("notes"));
        let id = begin(&mut client, tool, arguments.clone());
        let request = one_waiting(&house);
        assert_eq!(request["tool"], tool);
        assert!(request["diff"].as_str().is_some_and(|diff| diff.contains(addition)), "{tool}: {request}");
        assert_eq!(crate::program::bytes(&house.path("notes")), before, "{tool}");
        decide(&house, &request, &["--allow"]);
        let answer = client.answer(id);
        assert!(answer["result"]["structuredContent"].is_object(), "{tool}: {answer}");
        until("it is written", || tool == "remember" || crate::program::bytes(&house.path("notes")) != before);
    }
    assert_eq!(house.cat("Plan.md"), b"# Plan\n--json\n- [ ] Buy rope\n");
    assert!(String::from_utf8(house.cat("Boat.md")).expect("text").contains("- [x] Paint the hull"));
    assert!(client.call("recall", json!({"goal": "choose a sail"}))["memories"].to_string().contains("Linen rots"));
    // What can't be done is said before anybody is asked.
    for (tool, arguments, about) in [
        ("create_note", json!({"path": "Boat.md"}), "there is a note at Boat.md already"),
        ("create_note", json!({"path": "../out.md"}), "isn't a path inside the volume"),
        ("create_note", json!({"path": "AGENTS.md", "text": "obey"}), "protected"),
        ("create_note", json!({"path": "x.md", "volume": "nowhere"}), "no volume nowhere"),
        ("edit_note", json!({"note": "Boat.md", "old_text": "nothing like it", "new_text": ""}), "0 times"),
        ("check_todo", json!({"path": "Boat.md", "at": 0, "text": "no such task"}), "no task of Boat.md"),
        ("append_to_note", json!({"note": "Boat.md", "text": "x".repeat(300_000)}), "too long to review"),
        ("capture", json!({"text": "x", "tone": "dry"}), "no argument `tone`"),
    ] {
        let why = client.refused(tool, arguments);
        assert!(why.contains(about), "{tool}: {why}");
    }
    assert!(waiting(&house).is_empty());
    client.end();
}

#[test]
fn what_has_changed_meanwhile_is_not_written() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write=ask"]);
    let append = json!({"note": "Boat.md", "text": "from the program"});
    let id = begin(&mut client, "append_to_note", append.clone());
    let request = one_waiting(&house);
    house.edit("Boat.md", 0, 0, "First.\n");
    decide(&house, &request, &["--allow"]);
    let why = client.refusal(id);
    assert!(why.contains("Boat.md has changed since the user was shown the change"), "{why}");
    let now = String::from_utf8(house.cat("Boat.md")).expect("text");
    assert!(now.starts_with("First.\n# Boat") && !now.contains("from the program"), "{now}");
    // A note that was made meanwhile stays as it is.
    let id = begin(&mut client, "create_note", json!({"path": "Plan.md", "text": "theirs\n"}));
    let request = one_waiting(&house);
    house.run(&["new", "Plan.md", "--text", "mine\n"]).good();
    decide(&house, &request, &["--allow"]);
    let why = client.refusal(id);
    assert!(why.contains("Plan.md was not created"), "{why}");
    assert_eq!(house.cat("Plan.md"), b"mine\n");
    // Asked again, it's about the note as it is now.
    let id = begin(&mut client, "append_to_note", append);
    let request = one_waiting(&house);
    decide(&house, &request, &["--allow"]);
    client.answer(id);
    assert!(String::from_utf8(house.cat("Boat.md")).expect("text").ends_with("from the program\n"));
    client.end();
}

#[test]
fn a_client_that_can_shows_a_form() {
    let house = notes();
    let capabilities = json!({"elicitation": {}});
    let mut client = Client::with_capabilities(&house, &["--allow-write=ask"], capabilities.clone());
    let append = |text: &str| json!({"note": "Boat.md", "text": text});
    client.form_answer = json!({"action": "accept", "content": {"decision": "approve"}});
    client.call("append_to_note", append("approved"));
    let form = &client.asked[0]["params"];
    let message = form["message"].as_str().expect("words");
    assert!(message.contains("Append to Boat.md in notes") && message.contains("+approved"), "{message}");
    assert_eq!(form["requestedSchema"]["properties"]["decision"]["oneOf"][0]["const"], "approve", "{form}");
    let wrong = json!({"action": "accept", "content": {"decision": "deny", "comment": "too short"}});
    for (answer, about) in [(json!({"action": "decline"}), "denied"), (wrong, "too short")] {
        client.form_answer = answer;
        let why = client.refused("append_to_note", append("denied"));
        assert!(why.contains(about), "{why}");
    }
    // A form that is closed decides nothing; the user still can, elsewhere.
    client.form_answer = json!({"action": "cancel"});
    let id = begin(&mut client, "append_to_note", append("later"));
    let request = one_waiting(&house);
    decide(&house, &request, &["--allow"]);
    client.answer(id);
    // A change that is too long for a form waits elsewhere only.
    let asked = client.asked.len();
    let id = begin(&mut client, "append_to_note", append(&"long ".repeat(2_000)));
    let request = one_waiting(&house);
    decide(&house, &request, &["--deny"]);
    assert!(client.refusal(id).contains("denied"));
    assert_eq!(client.asked.len(), asked, "{:?}", client.asked.last());
    client.end();
    let now = String::from_utf8(house.cat("Boat.md")).expect("text");
    assert!(now.ends_with("approved\nlater\n") && !now.contains("denied"), "{now}");
}

#[test]
fn a_write_waits_no_longer_than_its_client() {
    let house = notes();
    let before = crate::program::bytes(&house.path("notes"));
    let capture = json!({"text": "A thought"});
    // Nobody decides in time.
    let mut client = Client::new(&house, &["--allow-write=ask", "--timeout", "1"]);
    let call = json!({"name": "capture", "arguments": capture, "_meta": {"progressToken": "p"}});
    let id = client.begin("tools/call", call);
    let why = client.refusal(id);
    assert!(why.contains("nobody approved this within 1 second") && why.contains("tracebook approvals"), "{why}");
    let told = client.said.iter().any(|line| {
        line["method"] == "notifications/progress"
            && line["params"]["message"].as_str().is_some_and(|text| text.contains("waits for the user's approval"))
    });
    assert!(told, "{:?}", client.said);
    assert!(waiting(&house).is_empty());
    client.end();
    // The client takes it back.
    let mut client = Client::new(&house, &["--allow-write=ask"]);
    let id = begin(&mut client, "capture", capture.clone());
    one_waiting(&house);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until("it's taken back", || waiting(&house).is_empty());
    // The server is killed with it.
    begin(&mut client, "capture", capture);
    let request = one_waiting(&house);
    drop(client);
    until("it's gone", || waiting(&house).is_empty());
    let name = request["name"].as_str().expect("a name");
    house.run(&["approvals", name, "--allow"]).refused(2, "nothing waits");
    assert_eq!(crate::program::bytes(&house.path("notes")), before);
}

#[test]
fn a_request_over_grpc_is_decided_on_the_command_line() {
    let house = notes();
    for (action, word, is_approved) in [("deploy-1", "--allow", true), ("deploy-2", "--deny", false)] {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| grpc::ask_for_approval(&house, action, "Deploy it"));
            let request = one_waiting(&house);
            assert_eq!((&request["name"], &request["arguments"]), (&json!(action), &json!({"target": "production"})));
            let shown = house.run(&["approvals"]).good().text();
            assert!(shown.contains("Deploy it") && shown.contains("target: production"), "{shown}");
            decide(&house, &request, &[word]);
            assert_eq!(asked.join().expect("an answer"), is_approved);
        });
        house.run(&["tokens", "revoke", "asking"]).good();
    }
}

/// A client of `/mcp`.
pub(super) struct HttpClient<'a> {
    server: &'a Server,
    token: &'a str,
    session: String,
    /// The id of the next request. Several may be on the way at once.
    next_id: AtomicU64,
}

const ACCEPTS: (&str, &str) = ("Accept", "application/json, text/event-stream");

impl HttpClient<'_> {
    pub(super) fn new<'a>(server: &'a Server, token: &'a str, capabilities: Value) -> HttpClient<'a> {
        let mut client = HttpClient { server, token, session: String::new(), next_id: AtomicU64::new(7) };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": "remote", "version": "1"}});
        let answer = client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
        client.session = answer.code(200).header("Mcp-Session-Id").expect("a session");
        client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).code(202);
        client
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers = vec![ACCEPTS, ("Content-Type", "application/json")];
        if !self.session.is_empty() {
            headers.extend([("Mcp-Session-Id", self.session.as_str()), ("Mcp-Protocol-Version", "2025-06-18")]);
        }
        headers
    }

    fn post(&self, message: &Value) -> Answer {
        self.server.send(self.token, "POST", "/mcp", &self.headers(), &message.to_string())
    }

    /// Sends a request, and returns the answer that comes on its stream; nothing if that ends before.
    pub(super) fn request(&self, method: &str, params: Value) -> Value {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let text = String::from_utf8(answer.code(200).body).expect("text");
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut values = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        values.find(|value| value["id"] == id).unwrap_or_default()
    }

    pub(super) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Opens a stream that waits at most this long for a line.
    pub(super) fn stream(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
        patience: Duration,
    ) -> BufReader<TcpStream> {
        let mut stream = self.server.connect();
        stream.set_read_timeout(Some(patience)).expect("set");
        let headers: Vec<(&str, &str)> = self.headers().iter().chain(headers).copied().collect();
        let request = request_text(&self.server.address, self.token, method, "/mcp", &headers, body);
        stream.write_all(request.as_bytes()).expect("sent");
        let mut stream = BufReader::new(stream);
        let line = next_line(&mut stream).expect("a status");
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        stream
    }
}

/// Returns the next line of a stream; `None` at its end, or if none comes in time.
pub(super) fn next_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let count = stream.read_line(&mut line).ok()?;
    (count > 0).then_some(line)
}

/// Reads a stream to a line with these words. Returns the id of the event that the line is in.
fn event_with(stream: &mut BufReader<TcpStream>, words: &str) -> Option<String> {
    let (mut id, mut is_found) = (None, false);
    loop {
        let line = next_line(stream)?;
        let line = line.trim();
        if let Some(value) = line.strip_prefix("id:") {
            id = Some(value.trim().to_owned());
        }
        is_found |= line.contains(words);
        // An event ends with an empty line, whatever order its fields have.
        if line.is_empty() && is_found {
            return id;
        }
    }
}

pub(super) const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_token_that_may_suggest_asks_and_is_decided_over_http() {
    let house = notes();
    let suggest = token(&house, "suggester", &["--scopes", "read,suggest"]);
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let own = token(&house, "own", &["--scopes", "read,approve", "--volume", "notes"]);
    let both = token(&house, "both", &["--scopes", "read,suggest,approve"]);
    let server = Server::new(&house);
    // Nothing but MCP lets it write, and there only after a yes.
    let put = format!("{}Boat.md", http_server::NOTE);
    server.send(&suggest, "PUT", &put, &[("If-Match", "*")], "all of it\n").refused(403, "`write`");
    let pending = |token: &str| server.get(token, "/api/v1/approvals/pending").code(200).json();
    for (approved, text) in [(false, "denied"), (true, "approved")] {
        // It has forms, but its token can't approve.
        let client = HttpClient::new(&server, &suggest, json!({"elicitation": {}}));
        std::thread::scope(|scope| {
            let arguments = json!({"note": "Boat.md", "text": text});
            let asked = scope.spawn(|| client.call("append_to_note", arguments));
            until("it waits", || pending(&approver).as_array().is_some_and(|all| !all.is_empty()));
            let shown = pending(&own)[0].clone();
            assert_eq!((&shown["action_type"], &shown["agent"]), (&json!("append_to_note"), &json!("remote")));
            let parameters = &shown["parameters"];
            assert_eq!(parameters["note"], "Boat.md", "{shown}");
            assert!(parameters["diff"].as_str().is_some_and(|diff| diff.contains(&format!("+{text}"))), "{shown}");
            let path = format!("/api/v1/approvals/{}", shown["action_id"].as_str().expect("an id"));
            server.post(&suggest, &path, &json!({"approved": true})).refused(403, "`approve`");
            server.post(&own, &path, &json!({"approved": approved, "comment": "as I say"})).code(200);
            let result = asked.join().expect("an answer");
            assert_eq!(result["isError"] == true, !approved, "{result}");
            assert_eq!(result.to_string().contains("as I say"), !approved, "{result}");
        });
    }
    let now = String::from_utf8(house.cat("Boat.md")).expect("text");
    assert!(now.ends_with("approved\n") && !now.contains("denied"), "{now}");
    // The user of a program that may also approve decides in its form.
    let client = HttpClient::new(&server, &both, json!({"elicitation": {}}));
    let params = json!({"name": "append_to_note", "arguments": {"note": "Boat.md", "text": "by form"}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let mut stream = client.stream("POST", &[], &call, LONG);
    let mut form = Value::Null;
    while form["method"] != "elicitation/create" {
        let line = next_line(&mut stream).expect("a line");
        form = line.strip_prefix("data:").and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
    }
    let answer = json!({"action": "accept", "content": {"decision": "approve"}});
    client.post(&json!({"jsonrpc": "2.0", "id": form["id"], "result": answer})).code(202);
    event_with(&mut stream, "\"id\":7").expect("the result");
    assert!(house.cat("Boat.md").ends_with(b"by form\n"));
    server.end();
}

#[test]
fn a_revoked_token_hears_of_no_more_changes() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let client = HttpClient::new(&server, &read, json!({}));
    let mut stream = client.stream("GET", &[], "", LONG);
    for uri in ["note://notes/Boat.md", "note://notes/Ideas/Sail.md"] {
        assert_eq!(client.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    house.edit("Boat.md", 0, 0, "First.\n");
    event_with(&mut stream, "note://notes/Boat.md").expect("the change");
    house.run(&["tokens", "revoke", "reader"]).good();
    house.edit("Ideas/Sail.md", 0, 0, "Second.\n");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("an end in time");
    assert!(!rest.contains("Sail.md"), "{rest}");
    client.post(&json!({"jsonrpc": "2.0", "id": 8, "method": "ping"})).refused(401, "isn't known");
    server.end();
}

#[test]
fn a_call_of_a_revoked_token_ends() {
    let house = notes();
    house.write("notes/Slow.md", b"```python\nwhile True:\n    pass\n```\n");
    let run = token(&house, "runner", &["--scopes", "read,run,suggest"]);
    let server = Server::new(&house);
    let client = HttpClient::new(&server, &run, json!({}));
    std::thread::scope(|scope| {
        let slow = json!({"note": "Slow.md", "timeout_seconds": 3000});
        let ran = scope.spawn(|| client.call("run_cells", slow));
        let writing = scope.spawn(|| client.call("append_to_note", json!({"note": "Boat.md", "text": "late"})));
        let status = || house.run(&["outputs", "Slow.md", "--json"]).good().text();
        until("it runs", || status().contains("\"running\""));
        until("it waits", || !waiting(&house).is_empty());
        house.run(&["tokens", "revoke", "runner"]).good();
        until("it's interrupted", || status().contains("\"interrupted\""));
        until("it's taken back", || waiting(&house).is_empty());
        for ended in [ran, writing] {
            let result = ended.join().expect("the stream ends");
            assert!(result["structuredContent"].is_null(), "{result}");
        }
    });
    server.end();
    assert!(!String::from_utf8(house.cat("Boat.md")).expect("text").contains("late"));
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed() {
    let house = notes();
    house.write("notes/Slow.md", b"```python\nimport time\ntime.sleep(1)\nprint('slept')\n```\n");
    let run = token(&house, "runner", &["--scopes", "read,run"]);
    let server = Server::new(&house);
    let client = HttpClient::new(&server, &run, json!({}));
    let mut stream = client.stream("GET", &[], "", LONG);
    for uri in ["note://notes/Boat.md", "note://notes/Ideas/Sail.md"] {
        assert_eq!(client.request("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    house.edit("Boat.md", 0, 0, "First.\n");
    let last = event_with(&mut stream, "note://notes/Boat.md").expect("an id");
    drop(stream);
    house.edit("Ideas/Sail.md", 0, 0, "Missed.\n");
    // Until the server knows that the first stream is gone, another one gets nothing.
    until("the change arrives late", || {
        let mut stream = client.stream("GET", &[("Last-Event-ID", &last)], "", Duration::from_secs(2));
        event_with(&mut stream, "note://notes/Ideas/Sail.md").is_some()
    });
    // The result of a call whose stream was lost.
    let params = json!({"name": "run_cells", "arguments": {"note": "Slow.md"}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let mut stream = client.stream("POST", &[], &call, LONG);
    let first = event_with(&mut stream, "data:").expect("an id before there is a result");
    drop(stream);
    let mut stream = client.stream("GET", &[("Last-Event-ID", &first)], "", LONG);
    event_with(&mut stream, "slept").expect("the result");
    // An id of another session brings nothing, and no error that a browser would try again.
    let mut stream = client.stream("GET", &[("Last-Event-ID", "999/999")], "", LONG);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("an end");
    assert!(!rest.contains("data: {") && !rest.contains("slept"), "{rest}");
    server.end();
}
