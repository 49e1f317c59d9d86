//! Which model is asked and why, through the program: rules, limits of cost, models on this machine, the next one where
//! one fails; and each kind of provider, by recorded answers of a real server where there are any.

use super::agents::model;
use crate::program::{Done, House, finish};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

const HEAD: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: ";
/// What the recorded answer says.
const RECORDED: &str = "Three colours are red, blue, and green.";

/// The configuration of `mixos-go.md`, whole.
const REFERENCE: &str = "
runtime:
  profile: standard
  data_dir: ~/.mixos/data
  log_level: info
llm:
  default_provider: ollama
  prefer_local: true
  cost_limit: 1.0  # USD per session
  providers:
    ollama:
      enabled: true
      base_url: http://localhost:11434
      model: qwen2.5-coder:7b
    anthropic:
      enabled: true
      api_key: ${ANTHROPIC_API_KEY}
      model: claude-3-5-sonnet-20241022
    openai:
      enabled: false
      api_key: ${OPENAI_API_KEY}
      model: gpt-4-turbo
agents:
  lead:
    enabled: true
    llm_provider: anthropic
  specialists:
    frontend:
      enabled: true
      llm_provider: ollama
approval:
  auto_approve_level: low
  timeout_seconds: 300
  always_approve:
    - deploy_production
  never_approve:
    - read_file
security:
  sandbox_enabled: true
  network_restricted: false
  allowed_hosts:
    - github.com
";

/// The path and the body of each request.
type Heard = Arc<Mutex<Vec<(String, String)>>>;

/// A server of all kinds of providers: it calls `read_file`, and answers once it has the result.
fn provider() -> (String, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let heard = Heard::default();
    let all = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let all = Arc::clone(&all);
            std::thread::spawn(move || converse(stream, &all));
        }
    });
    (address, heard)
}

fn converse(mut stream: TcpStream, heard: &Mutex<Vec<(String, String)>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let results = ["tool_result", "function_call_output", "functionResponse", "\"role\":\"tool\""];
    let answer = answer(&path, results.iter().any(|result| body.contains(result)));
    heard.lock().ok()?.push((path, body));
    stream.write_all(&answer).ok()
}

/// The answer to a request: the call, or what is said once it's done.
fn answer(path: &str, is_done: bool) -> Vec<u8> {
    let recorded = |name: &str| {
        let kind = if is_done { "text" } else { "tool" };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/cassettes/{name}-{kind}.http"));
        std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {}", file.display()))
    };
    match path {
        "/v1/messages" => recorded("anthropic"),
        "/v1/responses" => recorded("responses"),
        "/v1/chat/completions" => recorded("openai"),
        "/api/chat" => {
            let function = json!({"name": "read_file", "arguments": {"path": "notes/plan.md"}});
            let message = match is_done {
                true => json!({"role": "assistant", "content": RECORDED}),
                false => json!({"role": "assistant", "content": "", "tool_calls": [{"function": function}]}),
            };
            let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
                "prompt_eval_count": 12, "eval_count": 3});
            format!("{HEAD}application/x-ndjson\r\n\r\n{}\n{end}\n", json!({"message": message, "done": false})).into()
        }
        _ if path.contains(":streamGenerateContent") => {
            let part = match is_done {
                true => json!({"text": RECORDED}),
                false => json!({"functionCall": {"name": "read_file", "args": {"path": "notes/plan.md"}}}),
            };
            let candidate = json!({"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"});
            let usage = json!({"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15});
            let chunk = json!({"candidates": [candidate], "usageMetadata": usage});
            format!("{HEAD}text/event-stream\r\n\r\ndata: {chunk}\n\n").into()
        }
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    }
}

#[test]
fn each_kind_of_provider_is_asked_in_its_form_and_calls_tools() {
    let (address, heard) = provider();
    for (wire, path) in [
        ("openai", "/v1/chat/completions"),
        ("responses", "/v1/responses"),
        ("anthropic", "/v1/messages"),
        ("google", "/v1beta/models/small:streamGenerateContent?alt=sse"),
        ("ollama", "/api/chat"),
    ] {
        let house = House::with(&[("notes/plan.md", "# Plan\n\nSow kale.\n")]);
        let config = format!(
            "llm:\n  default_provider: own\n  prefer_local: false\n  providers:\n    own: {{wire: {wire}, base_url: \
             \"{address}\", model: small, context: 32000, api_key: \"${{MY_KEY}}\"}}\n"
        );
        house.write("W/config.yaml", config.as_bytes());
        let mut command = house.command(&["ask", "What is the plan?", "--json"]);
        command.env("TRACEBOOK_KEYRING", "off").env("MY_KEY", "planted");
        let done = finish(command, b"").code(0).lines();
        assert!(done.iter().any(|step| step["toolName"] == "read_file"), "{wire}: {done:#?}");
        assert_eq!(done.last().expect("a step")["content"], RECORDED, "{wire}: {done:#?}");
        let asked = std::mem::take(&mut *heard.lock().expect("whole"));
        assert!(asked.iter().all(|(at, _)| at.starts_with(path)) && asked.len() == 2, "{wire}: {asked:?}");
        assert!(asked[1].1.contains("Sow kale."), "{wire}: the result is sent back");
        let run = house.run(&["runs", "--json"]).good().lines().remove(0);
        assert!(run["spent"]["outputTokens"].as_u64() >= Some(6), "{wire}: {run}");
    }
}

/// Two models that say which they are. `one` and `two` are more keys of each.
fn two_models(llm: &str, one: &str, two: &str) -> House {
    let first = model(|_, _| ("I am the first.".to_owned(), Vec::new()));
    let second = model(|_, _| ("I am the second.".to_owned(), Vec::new()));
    let house = House::with(&[("a.md", "# A\n")]);
    let config = format!(
        "llm:\n  default_provider: one\n{llm}  providers:\n    ollama: {{enabled: false}}\n    \
         one: {{wire: openai, base_url: \"{first}/v1\", model: alpha, context: 32000, {one}}}\n    \
         two: {{wire: openai, base_url: \"{second}/v1\", model: beta, context: 32000, {two}}}\n"
    );
    house.write("W/config.yaml", config.as_bytes());
    house
}

/// The answer to a question, and which model was asked and why.
fn asked(house: &House, words: &[&str]) -> (String, String) {
    let done: Done = house.run(&[&["ask"][..], words, &["--json"]].concat()).code(0);
    let steps = done.lines();
    let route = steps.iter().rev().find_map(|step| step["route"].as_str()).unwrap_or_default().to_owned();
    let answer = steps.last().and_then(|step| step["content"].as_str()).unwrap_or_default().to_owned();
    (answer, route)
}

#[test]
fn rules_and_agents_choose_their_model_and_the_run_says_why() {
    let house = two_models(
        "  prefer_local: false\n  rules:\n    - {when: code and tokens > 10, use: two}\n",
        "local: true",
        "local: true",
    );
    let (answer, route) = asked(&house, &["What day is it?"]);
    assert_eq!((answer.as_str(), route.as_str()), ("I am the first.", "one/alpha: the default"));
    let (answer, route) = asked(&house, &["Implement a Python function that parses a date"]);
    assert_eq!(answer, "I am the second.", "{route}");
    assert!(route.starts_with("two/beta: rule “code and tokens > 10”: asks for code"), "{route}");
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let own = format!("{config}agents:\n  specialists:\n    docs: {{llm_provider: two}}\n");
    house.write("W/config.yaml", own.as_bytes());
    let (answer, route) = asked(&house, &["What day is it?", "--agent", "docs"]);
    assert_eq!((answer.as_str(), route.as_str()), ("I am the second.", "two/beta: the agent's own provider"));
    let wrong = config.replace("tokens > 10", "tokens > > 10");
    house.write("W/config.yaml", wrong.as_bytes());
    house.run(&["providers"]).refused(2, "config.yaml:5:");
}

#[test]
fn what_costs_too_much_goes_to_a_cheaper_model() {
    // An answer costs at most $10, and $7 in fact.
    let dear = "local: false, max_tokens: 10, price: {input: 0, output: 1000000}";
    let cheap = "local: false, price: {input: 0.001, output: 0.001}";
    let request = "  prefer_local: false\n  fallback: [two]\n  cost_limit: null\n  request_cost_limit: 5\n";
    let (answer, route) = asked(&two_models(request, dear, cheap), &["What day is it?"]);
    assert_eq!(answer, "I am the second.");
    let why = "two/beta: next in the fallback chain; not one: $10.0000 is over the $5.0000 for a request";
    assert_eq!(route, why);
    let house = two_models("  prefer_local: false\n  fallback: [two]\n  cost_limit: 15\n", dear, cheap);
    assert_eq!(asked(&house, &["What day is it?"]).0, "I am the first.");
    let session = house.run(&["sessions", "--json"]).good().lines()[0]["id"].as_str().expect("an id").to_owned();
    let (answer, route) = asked(&house, &["And tomorrow?", "--session", &session]);
    assert_eq!(answer, "I am the second.");
    assert!(route.contains("not one: $7.0000 spent and $10.0000 more is over the $15.0000 for a session"), "{route}");
    assert_eq!(asked(&house, &["What day is it?"]).0, "I am the first.", "another session");
}

#[test]
fn a_model_on_this_machine_goes_first_and_the_chain_follows() {
    let llm = "  prefer_local: true\n  fallback: [one]\n  cost_limit: null\n";
    let house = two_models(llm, "local: false", "local: true");
    let (answer, route) = asked(&house, &["What day is it?"]);
    assert_eq!((answer.as_str(), route.as_str()), ("I am the second.", "two/beta: on this machine"));
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    let at = config.find("two: {").and_then(|two| Some(two + config[two..].find("http://")?)).expect("an address");
    let end = at + config[at..].find("/v1").expect("a path");
    house.write("W/config.yaml", format!("{}http://127.0.0.1:9{}", &config[..at], &config[end..]).as_bytes());
    let (answer, route) = asked(&house, &["What day is it?"]);
    assert_eq!(answer, "I am the first.");
    assert!(route.starts_with("one/alpha: the default; two did not answer: 127.0.0.1:9"), "{route}");
}

#[test]
fn the_configuration_of_the_reference_is_read() {
    let house = House::with(&[("a.md", "# A\n")]);
    house.write("W/config.yaml", REFERENCE.as_bytes());
    let mut command = house.command(&["providers", "--json"]);
    command.env("TRACEBOOK_KEYRING", "off").env_remove("ANTHROPIC_API_KEY").env_remove("OPENAI_API_KEY");
    let listed = finish(command, b"").code(0).json();
    assert_eq!(listed["default"], "ollama");
    let all = listed["providers"].as_array().expect("a list");
    let find = |name: &str| -> &Value { all.iter().find(|one| one["name"] == name).expect("listed") };
    let (ollama, anthropic, openai) = (find("ollama"), find("anthropic"), find("openai"));
    assert_eq!((&ollama["model"], &ollama["local"]), (&json!("qwen2.5-coder:7b"), &json!(true)));
    assert_eq!((&anthropic["key"], &anthropic["ready"]), (&json!("ANTHROPIC_API_KEY"), &json!(false)));
    assert_eq!((&openai["enabled"], &openai["model"]), (&json!(false), &json!("gpt-4-turbo")));
    let agents = house.run(&["tasks", "agents", "--json"]).good().lines();
    let provider =
        |name: &str| agents.iter().find(|agent| agent["name"] == name).expect("listed")["llm_provider"].clone();
    assert_eq!((provider("lead"), provider("frontend")), (json!("anthropic"), json!("ollama")));
}
