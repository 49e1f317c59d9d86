//! A tool server has the user fill in a form (`elicitation/create`) while a run calls its tool. The user answers in the
//! terminal of the run, in another one or over REST, and the server gets that, or a refusal.

use super::agents::{Said, house, model};
use super::http_server::{Server, token};
use crate::program::{Done, House, finish, until};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// A server whose tool `trip` shows a form. The tool's result is what came back, without quotation marks. What it gets
/// is also in the file `$1`.
const FORM_SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$(printf '%s' "$2" | tr -d '\n')"; }
while read -r line; do
    printf '%s\n' "$line" >>"$1"
    case "$line" in
    *'"initialize"'*) answer "$(id)" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
        "serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer "$(id)" '{"tools":[{"name":"trip","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"trip"'*) asked=$(id)
        printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Where to?",'
        printf '"requestedSchema":{"type":"object","required":["city"],"properties":{'
        printf '"city":{"type":"string","title":"City"},"days":{"type":"integer","default":3},'
        printf '"sea":{"type":"boolean","title":"By the sea"},'
        printf '"class":{"type":"string","title":"Class","enum":["a","b"],"enumNames":["First","Second"]}}}}}\n' ;;
    *'"id":900'*) answer "$asked" '{"content":[{"type":"text","text":"'"$(printf '%s' "$line" | tr -d '"\\')"'"}]}' ;;
    esac
done"#;

/// Adds the server `own` to the configuration.
pub(crate) fn add_form_server(folder: &Path, config: &Path) {
    add_script_server(folder, config, FORM_SERVER);
}

/// Adds a server `own` that is this script to the configuration.
pub(crate) fn add_script_server(folder: &Path, config: &Path, text: &str) {
    let (script, log) = (folder.join("server.sh"), folder.join("server.log"));
    std::fs::write(&script, text).expect("written");
    let mut text = std::fs::read_to_string(config).expect("text");
    let (script, log) = (script.display(), log.display());
    text.push_str(&format!("mcp:\n  servers:\n    own: {{command: sh, args: ['{script}', '{log}']}}\n"));
    std::fs::write(config, text).expect("written");
}

/// A house whose agent calls the tool and says what came back.
pub(super) fn travelling() -> House {
    calling("own_trip", FORM_SERVER)
}

/// A house whose agent calls a tool of a server that is this script, and says what came back.
pub(super) fn calling(tool: &'static str, server: &str) -> House {
    let script = move |turn: usize, body: &Value| -> Said {
        match turn {
            0 => (String::new(), vec![(tool, json!({}))]),
            _ => {
                let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
                (format!("It says: {}", last["content"]), Vec::new())
            }
        }
    };
    let house = house(&model(script), &[("a.md", "# A\n")]);
    add_script_server(&house.path(""), &house.path("W/config.yaml"), server);
    house
}

const ASK: [&str; 5] = ["ask", "Call the tool", "--approve", "own_trip", "--json"];

/// What the server got for its form.
pub(super) fn told(house: &House) -> Value {
    let log = String::from_utf8(house.read("server.log")).expect("text");
    let line = log.lines().find(|line| line.contains("\"id\":900")).unwrap_or_else(|| panic!("no answer: {log}"));
    serde_json::from_str::<Value>(line).expect("JSON")["result"].clone()
}

/// Starts the run, decides about its form from outside, and returns how it ended.
pub(super) fn decided(house: &House, decide: impl FnOnce(&Value)) -> Done {
    let command = house.command(&ASK);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || finish(command, b""));
        let log = house.path("server.log");
        let decided = catch_unwind(AssertUnwindSafe(|| {
            // A run that has ended asks nothing.
            let or_over = |holds: bool| holds || running.is_finished();
            let is_called = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("tools/call"));
            until("the tool is called", || or_over(is_called()));
            let waiting = || house.run(&["approvals", "--json"]).good().lines();
            until("the form waits", || or_over(waiting().iter().any(|one| one["tool"] == "mcp_form")));
            decide(waiting().first().expect("the run ended without a form"));
        }));
        if let Err(panic) = decided {
            house.run(&["runs", "last", "--stop"]); // the scope waits for the run, which waits for an answer
            resume_unwind(panic);
        }
        running.join().expect("ended")
    })
}

#[test]
fn the_terminal_of_the_run_asks_field_by_field() {
    let house = travelling();
    // In the order of the server: city, days, sea, class. What doesn't fit is asked for again.
    let done = house.fed(&ASK, b"\nBonn\nmany\n\ny\nSecond\ny\n").code(0);
    for part in ["own asks you:\nWhere to?", "what you enter goes to own", "City: ", "  1. First", "Send this? [y/N]"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    let content = json!({"city": "Bonn", "class": "b", "days": 3, "sea": true});
    assert_eq!(told(&house), json!({"action": "accept", "content": content}));
    assert!(done.text().contains("It says: "), "{}", done.text());
    let decided = house.run(&["approvals", "--all", "--json"]).good().text();
    assert!(decided.contains("mcp_form") && decided.contains("Bonn"), "the run keeps what was sent: {decided}");
}

#[test]
fn another_terminal_fills_in_or_declines_the_form() {
    let house = travelling();
    let done = decided(&house, |waits| {
        assert_eq!(waits["what"], "The tool server own asks you: Where to?");
        let name = waits["name"].as_str().expect("a name");
        let shown = house.run(&["approvals"]).good().text();
        assert!(shown.contains("city (City): a text") && shown.contains("one of: a (First), b (Second)"), "{shown}");
        let refused = house.run(&["approvals", name, "--allow"]);
        assert!(refused.code != 0 && refused.err.contains("city has no answer"), "{}", refused.err);
        house.run(&["approvals", name, "--allow", "--answers", r#"{"city": "Bonn"}"#]).good();
    });
    done.code(0);
    assert_eq!(told(&house), json!({"action": "accept", "content": {"city": "Bonn", "days": 3}}));

    let house = travelling();
    decided(&house, |waits| {
        house.run(&["approvals", waits["name"].as_str().expect("a name"), "--deny"]).good();
    })
    .code(0);
    assert_eq!(told(&house), json!({"action": "decline"}));

    let house = travelling();
    decided(&house, |_| {
        house.run(&["runs", "last", "--stop"]).good();
    });
    assert!(!house.run(&["approvals", "--json"]).good().text().contains("mcp_form"));
}

#[test]
fn a_program_fills_in_the_form_over_rest() {
    let house = travelling();
    let approver = token(&house, "approver", &["--scopes", "read,approve"]);
    let server = Server::new(&house);
    let done = decided(&house, |_| {
        let pending = server.get(&approver, "/api/v1/approvals/pending").code(200).json();
        assert_eq!(pending[0]["parameters"]["fields"][0]["title"], "City", "{pending}");
        let path = format!("/api/v1/approvals/{}", pending[0]["action_id"].as_str().expect("an id"));
        server.post(&approver, &path, &json!({"approved": true})).refused(422, "city has no answer");
        let answers = json!({"city": "Bonn", "sea": false});
        server.post(&approver, &path, &json!({"approved": true, "answers": answers})).code(200);
    });
    done.code(0);
    assert_eq!(told(&house), json!({"action": "accept", "content": {"city": "Bonn", "days": 3, "sea": false}}));
}
