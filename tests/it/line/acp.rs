//! `tracebook acp`: what an editor gets that speaks the Agent Client Protocol over standard input and output.

use super::agents;
use crate::program::{House, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that doesn't answer in this time is considered hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// An editor. The server is killed on drop.
pub(super) struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// What the server sent, in order, without answers.
    said: Vec<Value>,
}

impl Editor {
    pub(super) fn new(house: &House) -> Editor {
        let mut server = house.command(&["acp"]).stderr(Stdio::inherit()).spawn().expect("started");
        let out = BufReader::new(server.stdout.take().expect("piped"));
        let (told, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if told.send(value).is_err() {
                    return;
                }
            }
        });
        let mut editor = Editor { input: server.stdin.take(), server, lines, next: 0, said: Vec::new() };
        let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        let info = editor.good("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        assert_eq!((&info["protocolVersion"], &info["agentInfo"]["name"]), (&json!(1), &json!("tracebook")), "{info}");
        assert_eq!(info["agentCapabilities"]["loadSession"], true, "{info}");
        editor
    }

    fn write(&mut self, line: &str) {
        self.input.as_mut().expect("open").write_all(format!("{line}\n").as_bytes()).expect("taken");
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}).to_string());
        self.next
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Waits for the next message that fits. The others are kept.
    fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else { panic!("{what} did not come: {:?}", self.said) };
            if fits(&line) {
                return line;
            }
            self.said.push(line);
        }
    }

    pub(super) fn answer(&mut self, id: u64) -> Value {
        self.wait("an answer", |line| line["id"] == id && line["method"].is_null())
    }

    pub(super) fn good(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.answer(id);
        assert!(answer["error"].is_null() && answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that fails. Returns its code and why.
    fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.begin(method, params);
        let answer = self.answer(id);
        let error = &answer["error"];
        (error["code"].as_i64().unwrap_or(0), error["message"].as_str().expect("a reason").to_owned())
    }

    pub(super) fn session(&mut self, house: &House) -> String {
        let made = self.good("session/new", json!({"cwd": house.path("notes"), "mcpServers": []}));
        made["sessionId"].as_str().expect("an id").to_owned()
    }

    pub(super) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.begin("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for a request for permission. Returns its id and parameters.
    fn asked(&mut self) -> (Value, Value) {
        let asked = self.wait("a question", |line| line["method"] == "session/request_permission");
        (asked["id"].clone(), asked["params"].clone())
    }

    fn choose(&mut self, request: &Value, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.write(&json!({"jsonrpc": "2.0", "id": request, "result": outcome}).to_string());
    }

    /// Returns the updates of one kind so far.
    fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.said.iter().filter(|line| line["method"] == "session/update");
        updates.map(|line| line["params"]["update"].clone()).filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Returns the agent's words so far.
    pub(super) fn words(&self) -> String {
        self.updates("agent_message_chunk").iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Returns what the agent thinks so far.
    pub(super) fn thoughts(&self) -> String {
        self.updates("agent_thought_chunk").iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Closes its input; the server ends by itself.
    pub(super) fn end(mut self) {
        drop(self.input.take());
        until("the server ends with its input", || self.server.try_wait().expect("a process").is_some());
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_reached_over_a_link_is_in_its_volume() {
    let asked: Arc<Mutex<String>> = Arc::default();
    let heard = asked.clone();
    let model = agents::model(move |_, body| {
        *heard.lock().expect("unpoisoned") = body["messages"].to_string();
        ("Done.".to_owned(), Vec::new())
    });
    let house = agents::house(&model, &[("Boat.md", "It has 12 volts.\n")]);
    let link = house.path("link");
    std::os::unix::fs::symlink(house.path("notes"), &link).expect("linked");
    let mut editor = Editor::new(&house);
    let made = editor.good("session/new", json!({"cwd": link, "mcpServers": []}));
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    // A file of the volume is mentioned as such.
    let uri = format!("file://{}", link.join("Boat.md").display());
    let prompt = json!([{"type": "text", "text": "Look at"}, {"type": "resource_link", "name": "Boat.md", "uri": uri}]);
    editor.good("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    let asked = asked.lock().expect("unpoisoned").clone();
    assert!(asked.contains("Look at @Boat.md") && asked.contains("12 volts"), "{asked}");
    let listed = editor.good("session/list", json!({"cwd": link}));
    assert_eq!(listed["sessions"][0]["sessionId"], session, "{listed}");
    editor.end();
}

/// A model that plans, writes a note, runs a command, and answers.
fn worker(turn: usize, body: &Value) -> agents::Said {
    match turn {
        0 => {
            let todos = json!({"todos": [{"content": "write", "status": "in_progress", "priority": "high"}]});
            let write = json!({"path": "report.md", "content": "# Report\n\nFine.\n"});
            ("I write it.".to_owned(), vec![("todo_write", todos), ("write_file", write)])
        }
        1 => {
            let edit = json!({"path": "report.md", "old_content": "Fine.", "new_content": "Good."});
            (String::new(), vec![("edit_file", edit), ("shell", json!({"command": "head -1 report.md"}))])
        }
        _ => (format!("Seen: {}.", body["messages"].to_string().contains("# Report")), Vec::new()),
    }
}

#[test]
fn an_editor_follows_a_run_and_decides_what_it_asks() {
    let house = agents::house(&agents::model(worker), &[("a.md", "# A\n"), ("sub/b.md", "# B\n")]);
    let mut editor = Editor::new(&house);
    let made = editor.good("session/new", json!({"cwd": house.path("notes/sub"), "mcpServers": []}));
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(made["modes"]["currentModeId"], "default", "{made}");
    let prompt = editor.prompt(&session, "make a report");
    let (request, asked) = editor.asked();
    assert_eq!((&asked["sessionId"], &asked["toolCall"]["kind"]), (&json!(session), &json!("execute")), "{asked}");
    assert_eq!(asked["toolCall"]["rawInput"]["command"], "head -1 report.md", "{asked}");
    let kinds: Vec<&str> =
        asked["options"].as_array().expect("options").iter().filter_map(|option| option["kind"].as_str()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "allow_always", "allow_always", "reject_once", "reject_always"]);
    // A second prompt has to wait.
    let other = editor.prompt(&session, "and another");
    assert!(editor.answer(other)["error"]["message"].as_str().expect("a reason").contains("still working"));
    editor.choose(&request, "once");
    let ended = editor.answer(prompt);
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert_eq!(house.read("notes/report.md"), b"# Report\n\nGood.\n");
    assert_eq!(editor.words(), "I write it.Seen: true.");
    let plan = editor.updates("plan");
    assert_eq!(plan[0]["entries"][0], json!({"content": "write", "priority": "high", "status": "in_progress"}));

    // Calls are announced once and end once; changes of files are shown as diffs.
    let calls = editor.updates("tool_call");
    let titles: Vec<&str> = calls.iter().filter_map(|call| call["title"].as_str()).collect();
    assert_eq!(titles, ["Write report.md", "Edit report.md", "Run head -1 report.md"]);
    let path = house.path("notes/report.md");
    assert_eq!(calls[0]["locations"][0]["path"], json!(path));
    let ends = editor.updates("tool_call_update");
    let end_of = |call: &Value| {
        let ends: Vec<&Value> = ends.iter().filter(|end| end["toolCallId"] == call["toolCallId"]).collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends[0].clone()
    };
    assert_eq!(
        end_of(&calls[0])["content"][0],
        json!({"type": "diff", "path": path, "newText": "# Report\n\nFine.\n"})
    );
    let edited = end_of(&calls[1])["content"][0].clone();
    assert_eq!((&edited["type"], &edited["path"]), (&json!("diff"), &json!(path)), "{edited}");
    assert!(edited["oldText"].as_str().expect("old").contains("Fine") && edited["newText"] != edited["oldText"]);
    let shell = end_of(&calls[2]);
    assert_eq!(shell["status"], "completed");
    assert!(shell["content"][0]["content"]["text"].as_str().expect("text").contains("# Report"), "{shell}");
    editor.end();

    // The session is the workspace's own; another editor loads it.
    let mut editor = Editor::new(&house);
    let listed = editor.good("session/list", json!({"cwd": house.path("notes")}));
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session), "{listed}");
    assert_eq!(listed["sessions"][0]["cwd"], json!(house.path("notes")));
    let load = json!({"sessionId": session, "cwd": house.path("notes"), "mcpServers": []});
    editor.good("session/load", load);
    assert_eq!(editor.updates("user_message_chunk")[0]["content"]["text"], "make a report");
    assert_eq!(editor.words(), "I write it.Seen: true.");
    assert_eq!(editor.updates("tool_call").len(), 3);
    assert_eq!(editor.updates("tool_call_update").len(), 3);
    house.run(&["runs", "last", "--undo"]).good();
    assert!(!house.path("notes/report.md").exists());
    // A deleted session takes its runs with it.
    editor.good("session/delete", json!({"sessionId": session}));
    assert_eq!(editor.good("session/list", json!({}))["sessions"], json!([]));
    editor.end();
    assert!(house.run(&["runs", "last"]).code(2).err.contains("nothing was asked yet"));
}

#[test]
fn thoughts_are_told_from_answers_and_nothing_is_said_twice() {
    let script = |turn: usize, _: &Value| -> agents::Said {
        match turn {
            0 => ("I look.".to_owned(), vec![("read_file", json!({"path": "a.md"}))]),
            _ => ("It is A.".to_owned(), Vec::new()),
        }
    };
    let house = agents::house(&agents::thinking_model("I ponder.", script), &[("a.md", "# A\n")]);
    let mut editor = Editor::new(&house);
    let session = editor.session(&house);
    for round in 1..=3 {
        let prompt = editor.prompt(&session, "what is it?");
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
        let (words, thoughts) = (editor.words(), editor.thoughts());
        assert_eq!(words.matches("It is A.").count(), round, "{words}");
        assert!(thoughts.matches("I ponder.").count() >= round, "{thoughts}");
        assert!(words.ends_with("It is A.") && !thoughts.contains("It is A."), "{words}: {thoughts}");
    }
    assert_eq!(editor.words().matches("I look.").count() + editor.thoughts().matches("I look.").count(), 1);
    editor.end();
}

#[test]
fn answers_that_last_are_rules_of_the_workspace() {
    let script = |turn: usize, _: &Value| -> agents::Said {
        match turn {
            0 => (String::new(), vec![("shell", json!({"command": "pwd"}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let house = agents::house(&agents::model(script), &[("a.md", "# A\n")]);
    let mut editor = Editor::new(&house);
    for option in ["never", "always"] {
        let session = editor.session(&house);
        let prompt = editor.prompt(&session, "where are you?");
        let (request, asked) = editor.asked();
        // What the title says is here, too: it's Markdown in some editors, where a comment hides what follows.
        let shown = asked["toolCall"]["content"][0]["content"]["text"].as_str().unwrap_or_default();
        assert!(shown.starts_with("```\n") && shown.contains("pwd\n```"), "{shown}");
        editor.choose(&request, option);
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
        let end = editor.updates("tool_call_update").pop().expect("an end");
        assert_eq!(end["status"], if option == "never" { "failed" } else { "completed" }, "{end}");
        let rules = house.run(&["approvals", "--rules", "--json"]).good().lines();
        let word = if option == "never" { "deny" } else { "allow" };
        assert_eq!((rules.len(), rules[0]["word"].as_str()), (1, Some(word)), "{rules:?}");
        house.run(&["approvals", "--forget", "1"]).good();
    }
    // The policy allows it by itself once it's a rule, as in the window.
    let session = editor.session(&house);
    let prompt = editor.prompt(&session, "again");
    let (request, _) = editor.asked();
    editor.choose(&request, "project");
    editor.answer(prompt);
    let session = editor.session(&house);
    let prompt = editor.prompt(&session, "and again");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    editor.end();
}

#[test]
fn a_request_for_permission_shows_all_that_would_run() {
    // Drawn as Markdown, what follows the fence in this code would be a comment that nobody sees.
    let code = "print(1)\n\"\"\"\n```\n<!--\n\"\"\"\nimport os  # \u{202e}live\n# -->\n";
    let script = move |turn: usize, _: &Value| -> agents::Said {
        match turn {
            0 => (String::new(), vec![("run_python", json!({"code": code}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    };
    let house = agents::house(&agents::model(script), &[("a.md", "# A\n")]);
    let mut editor = Editor::new(&house);
    let session = editor.session(&house);
    let prompt = editor.prompt(&session, "count");
    let (request, asked) = editor.asked();
    let parts = asked["toolCall"]["content"].as_array().expect("what would run");
    let shown: String = parts.iter().filter_map(|part| part["content"]["text"].as_str()).collect();
    assert!(shown.starts_with("````\ncode:\nprint(1)\n"), "{shown}");
    assert!(shown.contains("import os  # \\u{202e}live\n# -->\n````\n"), "{shown}");
    editor.choose(&request, "deny");
    editor.answer(prompt);
    editor.end();
}

#[test]
fn a_prompt_is_cancelled_and_a_question_is_answered_by_the_next() {
    let script = |turn: usize, body: &Value| -> agents::Said {
        let words = body["messages"].to_string();
        match turn {
            0 if words.contains("ask me") => (String::new(), vec![("ask_user", json!({"question": "Which color?"}))]),
            0 => (String::new(), vec![("shell", json!({"command": "pwd"}))]),
            _ => (format!("Blue: {}.", words.contains("navy blue")), Vec::new()),
        }
    };
    let house = agents::house(&agents::model(script), &[("a.md", "# A\n")]);
    let mut editor = Editor::new(&house);
    let session = editor.session(&house);
    let prompt = editor.prompt(&session, "go");
    let (request, _) = editor.asked();
    editor.notify("session/cancel", json!({"sessionId": session}));
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    editor.write(&json!({"jsonrpc": "2.0", "id": request, "result": outcome}).to_string());
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "stopped");

    let session = editor.session(&house);
    let prompt = editor.prompt(&session, "ask me");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(editor.words().ends_with("Which color?"), "{}", editor.words());
    let prompt = editor.prompt(&session, "navy blue");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(editor.words().ends_with("Blue: true."), "{}", editor.words());
    assert_eq!(house.run(&["runs", "--json"]).good().lines().len(), 2);
    // An editor that goes away leaves no run behind.
    let session = editor.session(&house);
    editor.prompt(&session, "go");
    editor.asked();
    editor.end();
    let standings: Vec<Value> =
        house.run(&["runs", "--json"]).good().lines().iter().map(|run| run["standing"].clone()).collect();
    assert_eq!(standings, ["stopped", "done", "stopped"]);
}

#[test]
fn wrong_requests_get_a_reason() {
    let house = agents::house("http://127.0.0.1:9", &[("a.md", "# A\n")]);
    let mut editor = Editor::new(&house);
    editor.write("not JSON");
    assert_eq!(
        editor.wait("an error", |line| line["id"].is_null() && line["error"].is_object())["error"]["code"],
        -32700
    );
    assert_eq!(editor.refused("session/fly", json!({})).0, -32601);
    assert_eq!(editor.refused("session/new", json!({"cwd": 7})).0, -32602);
    let (code, why) = editor.refused("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert!(code == -32602 && why.contains("tracebook open /"), "{why}");
    let (code, why) = editor.refused("session/new", json!({"cwd": "notes", "mcpServers": []}));
    assert!(code == -32602 && why.contains("absolute"), "{why}");
    let prompt = |id: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": "go"}]});
    assert_eq!(editor.refused("session/prompt", prompt("nobody")).0, -32002);
    let load = json!({"sessionId": "0".repeat(32), "cwd": house.path("notes"), "mcpServers": []});
    assert_eq!(editor.refused("session/load", load).0, -32002);
    let session = editor.session(&house);
    let (_, why) = editor.refused("session/set_mode", json!({"sessionId": session, "modeId": "poet"}));
    assert!(why.contains("no agent called poet"), "{why}");
    let option = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    assert!(editor.refused("session/set_config_option", option("memory", "much")).1.contains("no mode called much"));
    let options = editor.good("session/set_config_option", option("memory", "learner"));
    assert_eq!(options["configOptions"][1]["currentValue"], "learner", "{options}");
    let picture = json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]);
    let (code, why) = editor.refused("session/prompt", json!({"sessionId": session, "prompt": picture}));
    assert!(code == -32602 && why.contains("pictures"), "{why}");
    // No model: the run fails, and the editor says why.
    let (code, why) = editor.refused("session/prompt", prompt(&session));
    assert!(code == -32603 && why.contains("127.0.0.1:9"), "{why}");
    editor.end();
    let nowhere = House::new();
    nowhere.run(&["acp"]).refused(2, "there is no workspace");
}
