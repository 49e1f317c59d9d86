//! Tests with the real `@modelcontextprotocol/server-everything`, and with short scripts as misbehaving servers.

use super::*;
use serde_json::json;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of the server that `.ci/mcp` installs, if it's there.
fn everything() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("TRACEBOOK_CI_CACHE").map_or_else(|| home.join(".cache/tracebook-ci"), PathBuf::from);
    let program = cache.join("mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    if program.is_file() {
        return Some(program);
    }
    let strict = std::env::var_os("TRACEBOOK_CI").is_some_and(|value| value == "1");
    assert!(!strict, "TRACEBOOK_CI=1 and there is no {}: .ci/mcp brings it", program.display());
    println!("left out: there is no {} (.ci/mcp brings it)", program.display());
    None
}

fn program(name: &str, command: &str, args: &[&str]) -> McpServer {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let env = BTreeMap::from([("PLANTED".to_owned(), "seen".to_owned())]);
    McpServer {
        name: name.to_owned(),
        way: McpTransport::Program { command: command.to_owned(), args, env, folder: None },
    }
}

fn servers(all: Vec<McpServer>) -> McpServerPool {
    let servers = McpServerPool::default();
    servers.configure(Vec::new());
    assert!(!servers.is_started(), "there is nothing to do yet");
    servers.configure(all);
    servers
}

fn call(servers: &McpServerPool, server: &str, tool: &str, arguments: Value) -> Result<McpToolResult, McpError> {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    servers.call_tool(server, tool, arguments, PATIENCE).wait(PATIENCE).expect("an answer")
}

fn prompt_of(server: &str, prompt: &str, name: &str, value: &str) -> ServerMaterial {
    let arguments = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    ServerMaterial::Prompt { server: server.to_owned(), prompt: prompt.to_owned(), arguments }
}

fn resource_of(server: &str, uri: &str) -> ServerMaterial {
    ServerMaterial::Resource { server: server.to_owned(), uri: uri.to_owned() }
}

/// Reads one text; the error is what the user is told.
fn read(servers: &McpServerPool, wanted: &ServerMaterial) -> Result<String, String> {
    let (read, outcome) = servers.gather(vec![wanted.clone()], PATIENCE).wait().remove(0);
    assert_eq!(read, *wanted);
    if outcome.success { Ok(outcome.text) } else { Err(outcome.text) }
}

/// Checks what both transports must do.
fn speaks(servers: &McpServerPool, server: &str) {
    let listed = servers.list_tools(server).wait(PATIENCE).expect("an answer").expect("tools");
    let echo = listed.tools.iter().find(|tool| tool.name == "echo").expect("echo");
    assert!(!echo.description.is_empty() && echo.schema["properties"]["message"].is_object(), "{echo:?}");
    assert_eq!(listed.left_out, Vec::<String>::new());

    let said = call(servers, server, "echo", json!({"message": "Grüße"})).expect("said");
    assert_eq!((said.text.as_str(), said.failed), ("Echo: Grüße", false));
    let sum = call(servers, server, "get-sum", json!({"a": 2, "b": 40})).expect("said");
    assert!(sum.text.contains("42"), "{sum:?}");
    let picture = call(servers, server, "get-tiny-image", json!({})).expect("said");
    assert_eq!(picture.attached.len(), 1);
    assert_eq!(picture.attached[0].0, "image/png");
    assert!(picture.attached[0].1.starts_with(b"\x89PNG") && picture.text.contains("a picture, image/png"));
    let structured = call(servers, server, "get-structured-content", json!({"location": "Chicago"})).expect("said");
    assert!(structured.text.contains("temperature"), "{structured:?}");
    let resource = json!({"resourceType": "Text", "resourceId": 1});
    let resource = call(servers, server, "get-resource-reference", resource).expect("said");
    assert!(resource.text.contains("resource"), "{resource:?}");
    let links = call(servers, server, "get-resource-links", json!({"count": 2})).expect("said");
    assert!(links.text.lines().count() >= 3, "{links:?}");

    let offer = servers.list_offers(server).wait(PATIENCE).expect("an answer").expect("an offer");
    assert_eq!(offer.left_out, Vec::<String>::new());
    let prompt = offer.prompts.iter().find(|prompt| prompt.name == "args-prompt").expect("a prompt");
    assert!(prompt.arguments[0].is_needed && !prompt.arguments[1].is_needed, "{prompt:?}");
    assert!(!offer.resources.is_empty() && !offer.templates.is_empty(), "{offer:?}");
    assert_eq!(
        read(servers, &prompt_of(server, "args-prompt", "city", "Kiel")),
        Ok("What's weather in Kiel?".to_owned())
    );
    let document = read(servers, &resource_of(server, &offer.resources[0].uri)).expect("a text");
    assert!(document.len() > 20, "{document}");
    let page = read(servers, &resource_of(server, "demo://resource/dynamic/text/7")).expect("a text");
    assert!(page.contains('7'), "{page}");
    let blob = read(servers, &resource_of(server, "demo://resource/dynamic/blob/7")).expect_err("binary");
    assert!(blob.contains("is binary"), "{blob}");
    assert!(read(servers, &resource_of(server, "demo://none")).is_err());
    assert!(read(servers, &prompt_of(server, "none", "a", "b")).is_err());
    assert!(read(servers, &prompt_of(server, "args-prompt", "state", "SH")).is_err(), "the city is missing");

    let wrong = call(servers, server, "echo", json!({"message": 1}));
    assert!(wrong.as_ref().map_or(true, |said| said.failed), "{wrong:?}");
    let missing = call(servers, server, "no-such-tool", json!({}));
    assert!(missing.as_ref().map_or(true, |said| said.failed), "{missing:?}");

    let long = || json!({"duration": 30, "steps": 3}).as_object().cloned().expect("an object");
    let begun = Instant::now();
    let late = servers.call_tool(server, "trigger-long-running-operation", long(), Duration::from_secs(1));
    assert!(matches!(late.wait(PATIENCE), Some(Err(McpError::TimedOut { seconds: 1, .. }))));
    let dropped = servers.call_tool(server, "trigger-long-running-operation", long(), PATIENCE);
    assert!(dropped.wait(Duration::from_millis(300)).is_none());
    drop(dropped);
    assert_eq!(call(servers, server, "echo", json!({"message": "after"})).expect("said").text, "Echo: after");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn everything_over_standard_input_and_output() {
    let Some(path) = everything() else { return };
    let path = path.to_string_lossy();
    let servers = servers(vec![program("everything", "node", &[&path, "stdio"])]);
    speaks(&servers, "everything");
    let seen = call(&servers, "everything", "get-env", json!({})).expect("said").text;
    assert!(seen.contains("PLANTED") && !seen.contains("CARGO_MANIFEST_DIR"), "only what is meant for it: {seen}");
    assert!(matches!(servers.list_tools("other").wait(PATIENCE), Some(Err(McpError::UnknownServer(_)))));
    servers.configure(Vec::new());
    assert!(matches!(servers.list_tools("everything").wait(PATIENCE), Some(Err(McpError::UnknownServer(_)))));
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn everything_over_streamable_http() {
    let Some(path) = everything() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut command = Command::new("node");
    command.arg(path).arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = Ended(command.spawn().expect("started"));
    let errors = std::io::BufReader::new(server.0.stderr.take().expect("piped"));
    let mut lines = errors.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening")), "it listens");
    std::thread::spawn(move || lines.for_each(drop));
    let url = format!("http://127.0.0.1:{port}/mcp");
    let headers = BTreeMap::from([("X-Own".to_owned(), "value".to_owned())]);
    let servers = servers(vec![
        McpServer {
            name: "everything".to_owned(),
            way: McpTransport::Http { url, headers, sign_in: McpSignIn::default() },
        },
        McpServer {
            name: "file".to_owned(),
            way: McpTransport::Http {
                url: "file:///etc".to_owned(),
                headers: BTreeMap::new(),
                sign_in: McpSignIn::default(),
            },
        },
    ]);
    speaks(&servers, "everything");
    assert!(matches!(servers.list_tools("file").wait(PATIENCE), Some(Err(McpError::Start { .. }))));
    drop(server);
    let gone = call(&servers, "everything", "echo", json!({"message": "x"})).expect_err("gone");
    assert!(gone.to_string().contains("everything"), "{gone}");
}

/// A short `sh` script as a server: answers the first message, and runs `deed` for the tool list and for each call.
fn scripted(deed: &str) -> McpServer {
    let script = format!(
        r#"
        id() {{ printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }}
        while read -r line; do
            case "$line" in
            *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-06-18",' "$(id)"
                printf '"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}\n' ;;
            *'"tools/list"'*) {deed} ;;
            *'"tools/call"'*) {deed} ;;
            esac
        done"#
    );
    program("scripted", "sh", &["-c", &script])
}

#[test]
fn a_server_that_ends_is_started_once_more() {
    let dir = tempfile::tempdir().expect("a folder");
    let log = dir.path().join("starts");
    let deed = format!("echo start >> {}; echo 'no more of this' >&2; exit 3", log.display());
    let all = servers(vec![scripted(&deed)]);
    for _ in 0..2 {
        let ended = call(&all, "scripted", "x", json!({})).expect_err("it ends");
        assert!(matches!(&ended, McpError::Exited { why, .. } if why.contains("no more of this")), "{ended}");
    }
    let dead = call(&all, "scripted", "x", json!({})).expect_err("it is dead");
    assert!(matches!(&dead, McpError::ExitedTwice { .. }), "{dead}");
    let starts = || std::fs::read_to_string(&log).map_or(0, |log| log.lines().count());
    assert_eq!(starts(), 2, "no call was made twice");
    let absent = servers(vec![program("absent", "/no/such/program", &[])]);
    let why = call(&absent, "absent", "x", json!({})).expect_err("not started").to_string();
    assert!(why.contains("could not be started") && why.contains("/no/such/program"), "{why}");
}

#[test]
fn what_is_too_much_is_not_taken() {
    let large = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$(id)";
                   head -c 12000000 /dev/zero | tr '\0' x; printf '"}]}}\n'"#;
    let all = servers(vec![scripted(large)]);
    let why = call(&all, "scripted", "x", json!({})).expect_err("too large");
    assert_eq!(why, McpError::ResultTooLarge("scripted".to_owned()));

    let tools = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[' "$(id)";
                   i=0; while [ $i -lt 600 ]; do
                   printf '{"name":"t%s","description":"d","inputSchema":{"type":"object"}},' $i; i=$((i+1)); done;
                   printf '{"name":"last","inputSchema":{"type":"object"}}]}}\n'"#;
    let all = servers(vec![scripted(tools)]);
    let listed = all.list_tools("scripted").wait(PATIENCE).expect("an answer").expect("tools");
    assert_eq!((listed.tools.len(), listed.left_out.len()), (MAX_TOOLS_PER_SERVER, 1));

    let schema = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"wide","inputSchema":' "$(id)";
                    printf '{"type":"object","description":"'; head -c 70000 /dev/zero | tr '\0' x;
                    printf '"}},{"name":"well","inputSchema":{"type":"object"}}]}}\n'"#;
    let all = servers(vec![scripted(schema)]);
    let listed = all.list_tools("scripted").wait(PATIENCE).expect("an answer").expect("tools");
    assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["well"]);
    assert!(listed.left_out[0].contains("the schema of wide"), "{listed:?}");
    assert!(Path::new("/dev/zero").exists());
}

/// A server in `sh` with prompts, which runs `deed` for each request.
fn offering(deed: &str) -> McpServer {
    let script = format!(
        r#"
        id() {{ printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }}
        answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$(id)" "$1"; }}
        while read -r line; do
            case "$line" in
            *'"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"prompts":{{}}}},
                "serverInfo":{{"name":"s","version":"1"}}}}' | tr -d '\n'; echo ;;
            *'"notifications/'*) ;;
            *) {deed} ;;
            esac
        done"#
    );
    program("scripted", "sh", &["-c", &script])
}

#[test]
fn lists_without_an_end_have_one_and_silence_is_given_up() {
    let pages = r#"answer '{"nextCursor":"again","prompts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},
        {"name":"e"}]}' | tr -d '\n'; echo"#;
    let all = servers(vec![offering(pages)]);
    assert_eq!(all.list_tools("scripted").wait(PATIENCE), Some(Ok(McpToolList::default())), "it has none to list");
    let offer = all.list_offers("scripted").wait(PATIENCE).expect("an answer").expect("an offer");
    assert_eq!((offer.prompts.len(), offer.left_out.len()), (200, 1), "{:?}", offer.left_out);
    assert!(offer.left_out[0].contains("only the first 200 prompts"), "{:?}", offer.left_out);

    // A server that says nothing, and one whose answer has no end.
    for deed in [":", "yes x | tr -d '\\n'"] {
        let all = servers(vec![offering(deed)]);
        let begun = Instant::now();
        let wanted = vec![resource_of("scripted", "doc://a"), prompt_of("scripted", "p", "a", "b")];
        let late = all.gather(wanted, Duration::from_secs(1)).wait();
        assert!(
            late.iter().all(|(_, outcome)| !outcome.success && outcome.text.contains("has not answered within 1 s")),
            "{late:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}

/// Answers what servers ask in a run, or denies it.
struct Answering {
    run: String,
    answer: agent::sampling::SamplingAnswer,
    asked: std::sync::Mutex<Vec<agent::sampling::SamplingRequest>>,
}

impl Answering {
    fn new(run: &str, text: Option<&str>) -> Arc<Answering> {
        let stop = agent::sampling::SamplingStop::EndTurn;
        let message =
            |text: &str| agent::sampling::SampledMessage { text: text.to_owned(), model: "m".to_owned(), stop };
        let answer = text.map(message).ok_or(agent::sampling::SamplingRefusal::Rejected);
        Arc::new(Answering { run: run.to_owned(), answer, asked: Default::default() })
    }
}

impl ServerRequestUser for Answering {
    fn run(&self) -> &str {
        &self.run
    }

    fn ask(&self, request: agent::sampling::SamplingRequest, answer: SamplingAnswerSender) -> String {
        self.asked.lock().expect("unpoisoned").push(request);
        answer(self.answer.clone());
        "s1".to_owned()
    }

    fn fill_in(&self, _form: UserForm, answer: FormAnswerSender) -> String {
        answer(FormAnswer::Declined);
        "s2".to_owned()
    }

    fn withdraw(&self, _request: &str) {}
}

#[test]
fn a_server_asks_for_a_model_during_a_call() {
    let Some(path) = everything() else { return };
    let path = path.to_string_lossy();
    let all = McpServerPool::for_runs(None);
    all.configure(vec![program("everything", "node", &[&path, "stdio"])]);
    let listed = all.list_tools("everything").wait(PATIENCE).expect("an answer").expect("tools");
    assert!(listed.tools.iter().any(|tool| tool.name == "trigger-sampling-request"), "it offers that to us");
    let ask = |user: Option<Arc<dyn ServerRequestUser>>| {
        let arguments = json!({"prompt": "Rain?", "maxTokens": 20}).as_object().cloned().expect("an object");
        let pending = all.call_tool_for(user, ("everything", "trigger-sampling-request"), arguments, PATIENCE);
        pending.wait(PATIENCE).expect("an answer").map_or_else(|why| why.to_string(), |said| said.text)
    };
    let answering = Answering::new("r1", Some("It falls."));
    let said = ask(Some(answering.clone()));
    assert!(said.contains("It falls.") && said.contains("endTurn"), "{said}");
    let asked = answering.asked.lock().expect("unpoisoned").clone();
    assert_eq!((asked.len(), asked[0].max_tokens, asked[0].temperature), (1, 20, Some(0.7)), "{asked:?}");
    assert_eq!(asked[0].system.as_deref(), Some("You are a helpful test server."));
    assert!(asked[0].messages[0].text.ends_with("Rain?"), "{asked:?}");
    let denied = ask(Some(Answering::new("r1", None)));
    assert!(denied.contains("User rejected sampling request") && denied.contains("-1"), "{denied}");
    let outside = ask(None);
    assert!(outside.contains("nobody can decide"), "{outside}");
    // A pool for persons has no such tool at all.
    let own = servers(vec![program("everything", "node", &[&path, "stdio"])]);
    let listed = own.list_tools("everything").wait(PATIENCE).expect("an answer").expect("tools");
    assert!(listed.tools.iter().all(|tool| tool.name != "trigger-sampling-request"), "{listed:?}");
}
