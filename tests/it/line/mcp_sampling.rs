//! A tool server asks for a model's answer (`sampling/createMessage`) while a run calls its tool: over standard input
//! and output, and over streamable HTTP. The user decides, and the server gets the answer or a refusal.

use super::agents::{Said, house, model, without_events};
use super::mcp_client::request_of;
use crate::program::{Done, House, finish, until};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

/// A server whose tools ask for a model. The tool's result is what came back, without quotation marks. What it gets is
/// also in the file `$1`.
const ASKING_SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }
say() { answer "$1" '{"content":[{"type":"text","text":"'"$2"'"}]}'; }
sample() { printf '{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":%s}\n' "$1" "$2"; }
text() { printf '{"messages":[{"role":"user","content":{"type":"text","text":"%s"}}],"maxTokens":%s%s}' "$@"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
back() { printf '%s' "$line" | tr -d '"\\'; }
count=0
while read -r line; do
    printf '%s\n' "$line" >>"$1"
    case "$line" in
    *'"initialize"'*) answer "$(id)" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}'
        sample 899 "$(text 'before any call' 10)" ;;
    *'"tools/list"'*) answer "$(id)" "{\"tools\":[$(for name in poem many odd huge slow; do tool $name; printf ,; done
        tool last)]}" ;;
    *'"name":"poem"'*) asked=$(id); sample 900 "$(text 'Write of rain.' 77 ',"systemPrompt":"You are a poet.",
        "temperature":0.5,"stopSequences":["END"],"includeContext":"thisServer","modelPreferences":{"speedPriority":1},
        "metadata":{"x":1}' | tr -d '\n')" ;;
    *'"name":"slow"'*) asked=$(id); sample 900 "$(text 'Slowly.' 77)" ;;
    *'"name":"many"'*) asked=$(id); results=; count=1; sample 1001 "$(text 'number 1' 10)" ;;
    *'"name":"huge"'*) asked=$(id); sample 900 "$(text "$(head -c 70000 /dev/zero | tr '\0' x)" 10)" ;;
    *'"name":"odd"'*) asked=$(id); results=; count=1
        sample 2001 '{"messages":[{"role":"user","content":{"type":"image","data":"iVBORw==","mimeType":"image/png"}}],
            "maxTokens":10}' | tr -d '\n'; echo ;;
    *'"id":900'*) say "$asked" "$(back)" ;;
    *'"id":100'*|*'"id":101'*) results="$results $(back)"; count=$((count+1))
        if [ $count -gt 12 ]; then say "$asked" "$results"
        else sample $((1000+count)) "$(text "number $count" 10)"; fi ;;
    *'"id":2001'*) results="$(back)"
        sample 2002 '{"messages":[{"role":"user","content":[{"type":"text","text":"x"},
            {"type":"audio","data":"","mimeType":"audio/wav"}]}],"maxTokens":1}' | tr -d '\n'; echo ;;
    *'"id":2002'*) results="$results $(back)"
        sample 2003 "$(text 'Hi' 10 ',"tools":[{"name":"t","inputSchema":{"type":"object"}}]')" ;;
    *'"id":2003'*) results="$results $(back)"; sample 2004 "$(text 'Hi' 0)" ;;
    *'"id":2004'*) results="$results $(back)"; sample 2005 '{"messages":[],"maxTokens":5}' ;;
    *'"id":2005'*) results="$results $(back)"; sample 2006 '{"messages":7}' ;;
    *'"id":2006'*) say "$asked" "$results $(back)" ;;
    esac
done"#;

/// What the model got for the server: the requests whose last message isn't of the run.
type Sampled = Arc<Mutex<Vec<Value>>>;

/// A house with the server `own`, whose agent calls one of its tools and says what came back.
fn asking(tool: &'static str) -> (House, Sampled) {
    let sampled = Sampled::default();
    let kept = sampled.clone();
    let script = move |turn: usize, body: &Value| -> Said {
        let all = body["messages"].to_string();
        if !all.contains("Call the tool") {
            kept.lock().expect("unpoisoned").push(body.clone());
            return ("Rain falls. END of it".to_owned(), Vec::new());
        }
        match turn {
            0 => (String::new(), vec![(tool, json!({}))]),
            _ => {
                let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
                (format!("It says: {}", last["content"]), Vec::new())
            }
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    add_asking_server(&house.path(""), &house.path("W/config.yaml"));
    (house, sampled)
}

/// Adds the server `own` to the configuration.
pub(crate) fn add_asking_server(folder: &Path, config: &Path) {
    let (script, log) = (folder.join("server.sh"), folder.join("server.log"));
    std::fs::write(&script, ASKING_SERVER).expect("written");
    add_server(config, &format!("    own: {{command: sh, args: ['{}', '{}']}}\n", script.display(), log.display()));
}

fn add_server(config: &Path, server: &str) {
    let mut text = std::fs::read_to_string(config).expect("text");
    text.push_str(&format!("mcp:\n  servers:\n{server}"));
    std::fs::write(config, text).expect("written");
}

fn text_of(content: &Value) -> &str {
    content.as_str().or(content[0]["text"].as_str()).unwrap_or_default()
}

/// Waits until the server works for the run. Before, another command could own the workspace.
fn until_called(house: &House) {
    let log = house.path("server.log");
    until("the tool is called", || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("tools/call")));
}

/// Asks the agent; the user types these lines.
fn ask(house: &House, tool: &str, lines: &str) -> Done {
    let pattern = format!("own_{tool}");
    house.fed(&["ask", "Call the tool", "--approve", &pattern, "--json"], lines.as_bytes())
}

/// What the server's tool said at the end.
fn result(done: &Done) -> String {
    let steps = without_events(done.lines());
    let is_own = |step: &&Value| step["type"] == "tool_result" && step["toolCallId"] == "t0c0";
    let results: Vec<&Value> = steps.iter().filter(is_own).collect();
    assert_eq!(results.len(), 1, "{}", done.text());
    results[0]["result"].as_str().unwrap_or_default().to_owned()
}

/// A replay calls the tool, whose server asks for a model again.
#[test]
fn a_replay_says_that_a_server_may_ask_for_a_model() {
    let (house, sampled) = asking("own_poem");
    ask(&house, "poem", "y\n").code(0);
    let words = ["ask", "Call the tool", "--approve", "own_poem", "--mode", "follower"];
    let replayed = house.fed(&words, b"y\n").code(0).text();
    assert!(
        replayed.contains("No model is asked while it fits, unless the server of a tool asks for one"),
        "{replayed}"
    );
    assert_eq!(sampled.lock().expect("unpoisoned").len(), 2);
    let trace = house.run(&["traces", "--json"]).good().lines().remove(0);
    assert_eq!((&trace["usage_count"], &trace["saved_tokens"]), (&json!(1), &json!(0)), "{trace}");
}

#[test]
fn an_allowed_request_is_sent_as_it_was_shown() {
    let (house, sampled) = asking("own_poem");
    // A lasting answer isn't one here.
    let done = ask(&house, "poem", "a\nr\ny\n").code(0);
    assert!(done.err.contains("Let the tool server own ask the model test/m"), "{}", done.err);
    assert!(done.err.contains("[y]es, [n]o: y or n: y or n: "), "{}", done.err);
    for part in
        ["system: You are a poet.", "Write of rain.", "max_tokens: 77", "temperature: 0.5", "END", "server: own"]
    {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    let sent = sampled.lock().expect("unpoisoned").clone();
    let [sent] = &sent[..] else { panic!("one request: {sent:?}") };
    let messages: Vec<(&str, &str)> = sent["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|one| (one["role"].as_str().unwrap_or_default(), text_of(&one["content"])))
        .collect();
    assert_eq!(messages, [("system", "You are a poet."), ("user", "Write of rain.")]);
    let limit = [&sent["max_tokens"], &sent["max_completion_tokens"]].into_iter().find(|limit| !limit.is_null());
    assert_eq!((limit, &sent["temperature"]), (Some(&json!(77)), &json!(0.5)));
    assert!(sent["tools"].is_null() || sent["tools"] == json!([]), "{sent}");
    let said = result(&done);
    assert!(said.contains("text:Rain falls. ") && !said.contains("of it"), "{said}");
    for part in ["role:assistant", "type:text", "model:m", "stopReason:stopSequence"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The request before any call was refused, and the capability declared.
    let log = String::from_utf8(house.read("server.log")).expect("text");
    let first = log.lines().find(|line| line.contains("\"id\":899")).expect("an answer");
    assert!(first.contains("nobody can decide"), "{first}");
    assert!(log.lines().next().is_some_and(|line| line.contains("\"sampling\":{}")), "{log}");
    // The run keeps what was sent, answered and spent.
    let steps = house.run(&["steps", "last", "--json"]).good().lines();
    let call = steps.iter().find(|step| step["toolName"] == "mcp_sampling").expect("a step");
    assert_eq!((&call["params"]["model"], &call["params"]["max_tokens"]), (&json!("test/m"), &json!(77)));
    let kept =
        steps.iter().find(|step| step["usedTool"]["id"] == "system:mcp_sampling" && step["type"] == "tool_result");
    let kept = kept.expect("a result");
    assert_eq!(kept["result"], "Rain falls. ");
    assert_eq!(kept["spent"], json!({"inputTokens": 11, "outputTokens": 7, "cost": 0.0}));
    assert!(kept["route"].as_str().expect("a route").starts_with("test/m"), "{kept}");
    let runs = house.run(&["runs", "--json"]).good().lines();
    assert_eq!(runs[0]["spent"]["inputTokens"], 33, "two calls of the run, and one for the server");
    let decided = house.run(&["approvals", "--all", "--json"]).good().text();
    assert!(decided.contains("mcp_sampling"), "{decided}");
    assert!(house.run(&["approvals", "--rules", "--json"]).good().lines().is_empty());
}

#[test]
fn a_denied_request_is_rejected() {
    let (house, sampled) = asking("own_poem");
    let done = ask(&house, "poem", "n\n").code(0);
    let said = result(&done);
    assert!(said.contains("code:-1") && said.contains("User rejected sampling request"), "{said}");
    assert!(sampled.lock().expect("unpoisoned").is_empty());
}

#[test]
fn another_terminal_decides_and_changes_what_is_sent() {
    let (house, sampled) = asking("own_slow");
    let command = house.command(&["ask", "Call the tool", "--approve", "own_slow", "--json"]);
    let done = std::thread::scope(|scope| {
        let running = scope.spawn(move || finish(command, b""));
        until_called(&house);
        let waiting = || house.run(&["approvals", "--json"]).good().lines();
        until("it waits for the user", || waiting().iter().any(|one| one["tool"] == "mcp_sampling"));
        let waits = waiting();
        let name = waits[0]["name"].as_str().unwrap_or_else(|| panic!("{waits:?}"));
        let mut arguments = waits[0]["arguments"].clone();
        arguments["messages"][0]["text"] = json!("Quickly.");
        let arguments = arguments.to_string();
        house.run(&["approvals", name, "--allow", "--arguments", &arguments]).good();
        running.join().expect("ended")
    })
    .code(0);
    let sent = sampled.lock().expect("unpoisoned").clone();
    assert_eq!((sent.len(), text_of(&sent[0]["messages"][0]["content"])), (1, "Quickly."), "{sent:?}");
    assert!(result(&done).contains("Rain falls."), "{}", done.text());
}

#[test]
fn a_run_has_ten_requests() {
    let (house, sampled) = asking("own_many");
    let done = ask(&house, "many", &"y\n".repeat(12)).code(0);
    let said = result(&done);
    assert_eq!(said.matches("Rain falls.").count(), 10, "{said}");
    assert_eq!(said.matches("too many requests for a model").count(), 2, "{said}");
    assert_eq!(sampled.lock().expect("unpoisoned").len(), 10);
}

#[test]
fn what_cannot_be_sent_is_refused_without_asking() {
    let (house, sampled) = asking("own_odd");
    let done = ask(&house, "odd", "").code(0);
    let said = result(&done);
    for why in [
        "only text can be sent to a model, and it holds an image",
        "only text can be sent to a model, and it holds a sound",
        "the model can't be given tools",
        "an answer has at least one token",
        "it has no message with a text",
    ] {
        assert!(said.contains(why), "{why}: {said}");
    }
    assert_eq!(said.matches("error:{code:").count(), 6, "{said}");
    assert!(!done.text().contains("mcp_sampling") && sampled.lock().expect("unpoisoned").is_empty());
    let (house, sampled) = asking("own_huge");
    let done = ask(&house, "huge", "").code(0);
    assert!(result(&done).contains("its texts have more than 64 kB"), "{}", done.text());
    assert!(sampled.lock().expect("unpoisoned").is_empty());
}

#[test]
fn stopping_the_run_ends_the_request() {
    let (house, sampled) = asking("own_slow");
    let command = house.command(&["ask", "Call the tool", "--approve", "own_slow", "--json"]);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || finish(command, b""));
        until_called(&house);
        let waits = || house.run(&["approvals", "--json"]).good().text().contains("mcp_sampling");
        until("it waits for the user", waits);
        house.run(&["runs", "last", "--stop"]).good();
        running.join().expect("ended");
        assert!(!waits());
    });
    assert!(sampled.lock().expect("unpoisoned").is_empty());
}

#[test]
fn a_person_who_calls_a_tool_has_no_model() {
    let (house, _) = asking("own_poem");
    let said = house.run(&["mcp", "call", "own", "poem"]).good().text();
    assert!(said.contains("code:-32601"), "{said}");
    let log = String::from_utf8(house.read("server.log")).expect("text");
    assert!(!log.lines().next().is_some_and(|line| line.contains("sampling")), "{log}");
}

/// A server over HTTP. The answer of its tool is a stream with the request, which ends once the client has posted the
/// answer to that.
fn serve_http() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let waiting: Arc<Mutex<Option<Sender<String>>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let waiting = waiting.clone();
            std::thread::spawn(move || converse(stream, &waiting));
        }
    });
    url
}

fn converse(mut stream: TcpStream, waiting: &Mutex<Option<Sender<String>>>) {
    let Some((_, body)) = request_of(&mut stream) else { return };
    let mut send = |head: &str, body: &str| {
        let length = body.len();
        let said = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(said.as_bytes()).is_ok()
    };
    let Ok(message) = serde_json::from_str::<Value>(&body) else {
        send("405 Method Not Allowed", "");
        return;
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "poem", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let (tell, told) = channel();
            *waiting.lock().expect("unpoisoned") = Some(tell);
            let content = json!({"type": "text", "text": "Write of rain."});
            let params = json!({"messages": [{"role": "user", "content": [content]}], "maxTokens": 5});
            let request = json!({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": params});
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}data: {request}\n\n").as_bytes());
            let answer = told.recv().unwrap_or_default();
            let result = json!({"content": [{"type": "text", "text": answer.replace('"', "")}]});
            let last = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let _ = stream.write_all(format!("data: {last}\n\n").as_bytes());
            return;
        }
        _ => {
            send("202 Accepted", "");
            if message["id"] == 7 {
                let waiting = waiting.lock().expect("unpoisoned").take();
                waiting.into_iter().for_each(|tell| _ = tell.send(body.clone()));
            }
            return;
        }
    };
    send(
        "200 OK\r\nContent-Type: application/json",
        &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    );
}

#[test]
fn a_server_over_http_asks_in_the_stream_of_its_call() {
    for (typed, about) in [("y\n", "text:Rain falls."), ("n\n", "code:-1")] {
        let (house, sampled) = asking("far_poem");
        let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
        let config = config.split("mcp:").next().expect("the rest").to_owned();
        house.write("W/config.yaml", config.as_bytes());
        add_server(&house.path("W/config.yaml"), &format!("    far: {{url: \"{}\"}}\n", serve_http()));
        let done = house.fed(&["ask", "Call the tool", "--approve", "far_poem", "--json"], typed.as_bytes()).code(0);
        assert!(done.err.contains("Let the tool server far ask"), "{}", done.err);
        assert!(result(&done).contains(about), "{}", done.text());
        assert_eq!(sampled.lock().expect("unpoisoned").len(), usize::from(typed == "y\n"));
    }
}
