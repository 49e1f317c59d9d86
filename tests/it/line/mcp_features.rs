//! `tracebook mcp`: prompts that the user has written, completion of arguments, attachments, subscriptions, the log,
//! forms for approvals, roots and traces.

use super::agents;
use super::mcp_server::{Client, notes};
use super::memory;
use crate::program::{House, until};
use serde_json::{Value, json};

/// A picture of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn prompts(client: &mut Client) -> Vec<Value> {
    client.request("prompts/list", json!({}))["result"]["prompts"].as_array().expect("a list").clone()
}

fn house_with_prompts() -> House {
    let house = notes();
    let greet = "---\ntags: [prompt]\ndescription: Greets somebody\n---\nGreet {{name}}, who has ![[Boat]].\n\n\
                 ![[Boat]]\n\n![](red.png)\n\nBe kind to {{name}}.\n";
    house.write("notes/Prompts/Greet.md", greet.as_bytes());
    house.write("notes/Prompts/red.png", PNG);
    // A name that's taken, and a note that is none.
    house.write("notes/plan_my_day.md", b"---\ntags: [prompt]\n---\nMy own plan.\n");
    house.write("notes/Other.md", b"---\ntags: [other]\n---\n{{nothing}}\n");
    house
}

#[test]
fn notes_with_the_tag_are_prompts() {
    let house = house_with_prompts();
    let mut client = Client::new(&house, &[]);
    until("prompts are indexed", || prompts(&mut client).iter().any(|one| one["name"] == "Greet"));
    let all = prompts(&mut client);
    let greet = all.iter().find(|one| one["name"] == "Greet").expect("the prompt");
    assert_eq!(greet["description"], "Greets somebody");
    assert_eq!(greet["arguments"], json!([{"name": "name", "required": true}]));
    assert_eq!(all.iter().filter(|one| one["name"] == "plan_my_day").count(), 1, "{all:?}");
    assert!(all.iter().all(|one| one["name"] != "Other"), "{all:?}");
    let filled = client.request("prompts/get", json!({"name": "Greet", "arguments": {"name": "{{Ada}}"}}));
    let messages = filled["result"]["messages"].as_array().unwrap_or_else(|| panic!("{filled}"));
    let contents: Vec<&Value> = messages.iter().map(|one| &one["content"]).collect();
    assert_eq!(contents[0]["text"], "Greet {{Ada}}, who has ![[Boat]].");
    assert_eq!(contents[1]["resource"]["uri"], "note://notes/Boat.md");
    assert!(contents[1]["resource"]["text"].as_str().expect("text").contains("12 volts"));
    assert_eq!((&contents[2]["type"], &contents[2]["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(contents[3]["text"], "Be kind to {{Ada}}.");
    let missing = client.request("prompts/get", json!({"name": "Greet"}));
    assert!(missing["error"]["message"].as_str().expect("why").contains("needs name"), "{missing}");
    let unknown = client.request("prompts/get", json!({"name": "Nothing"}));
    assert!(unknown["error"]["message"].as_str().expect("why").contains("Nothing"), "{unknown}");
    client.end();
}

/// Completes an argument, with what the client knows of the others.
fn complete(client: &mut Client, reference: &Value, name: &str, value: &str, known: &Value) -> Value {
    let argument = json!({"name": name, "value": value});
    let params = json!({"ref": reference, "argument": argument, "context": {"arguments": known}});
    client.request("completion/complete", params)
}

#[test]
fn arguments_of_addresses_and_prompts_are_completed() {
    let house = notes();
    let review = "---\ntags: [prompt]\n---\nReview it for {{reader}} with @{{helper}} about #{{topic}}, and see \
                  {{other_note}}:\n\n![[{{chapter}}]]\n\n![]({{picture}})\n";
    house.write("notes/Prompts/Review.md", review.as_bytes());
    house.write("notes/Tagged.md", b"#garden/herbs and #Gaff, #gaff\n");
    house.write("notes/red.png", PNG);
    house.write("notes/id_rsa", b"a key");
    for number in 0..120 {
        house.write(&format!("notes/Many/{number:03}.md"), b"# One\n");
    }
    house.write("more/Boat.md", b"# Another boat\n");
    house.run(&["open", "more"]).good();
    let mut client = Client::new(&house, &[]);
    let (note, attachment) = ("note://{volume}/{+path}", "attachment://{volume}/{+path}");
    let form = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let more = json!({"volume": "more"});
    let none = json!({});
    until("the prompt is indexed", || prompts(&mut client).iter().any(|one| one["name"] == "Review"));
    let cases = [
        (form(note), "volume", "", &none, json!(["more", "notes"])),
        (form(note), "volume", "OT", &none, json!(["notes"])),
        (form(note), "path", "sai", &none, json!(["Ideas/Sail.md"])),
        (form(note), "path", "", &more, json!(["Boat.md"])),
        (form(note), "path", "", &json!({"volume": "nowhere"}), json!([])),
        (form(note), "path", "../", &none, json!([])),
        (form(note), "path", "id_rsa", &none, json!([])),
        (form(attachment), "path", "", &none, json!(["red.png"])),
        (form(attachment), "path", "", &more, json!([])),
        (form("note://notes/Boat.md"), "path", "", &none, json!([])),
        (prompt("summarize_note"), "note", "sai", &none, json!(["Ideas/Sail.md"])),
        // A path that two volumes have says which one.
        (prompt("summarize_note"), "note", "boat", &none, json!(["more:Boat.md", "notes:Boat.md"])),
        (prompt("ask_my_notes"), "question", "boat", &none, json!([])),
        (prompt("Review"), "chapter", "boat", &none, json!(["Boat.md"])),
        (prompt("Review"), "other_note", "sai", &none, json!(["Ideas/Sail.md"])),
        (prompt("Review"), "picture", "red", &none, json!(["red.png"])),
        (prompt("Review"), "topic", "#ga", &none, json!(["Gaff", "garden/herbs"])),
        (prompt("Review"), "helper", "assist", &none, json!(["assistant"])),
        (prompt("Review"), "reader", "", &none, json!([])),
    ];
    for (reference, name, value, known, expected) in cases {
        let answer = complete(&mut client, &reference, name, value, known);
        let completion = &answer["result"]["completion"];
        assert_eq!(completion["values"], expected, "{reference} {name} {value}: {answer}");
        let count = expected.as_array().map(Vec::len);
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(count), &json!(false)), "{answer}");
    }
    // More than a hundred values are counted.
    let many = complete(&mut client, &form(note), "path", "Many/", &none);
    let completion = &many["result"]["completion"];
    assert_eq!(completion["values"].as_array().map(Vec::len), Some(100));
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(120), &json!(true)), "{many}");
    assert_eq!(completion["values"][0], "Many/000.md");
    for (reference, name) in [
        (prompt("Nothing"), "note"),
        (prompt("summarize_note"), "title"),
        (prompt("Review"), "2"),
        (form(note), "size"),
        (form("file:///etc/passwd"), "path"),
        (form(&"x".repeat(5_000)), "path"),
    ] {
        let answer = complete(&mut client, &reference, name, "", &none);
        assert_eq!(answer["error"]["code"], -32_602, "{reference} {name}: {answer}");
        assert!(answer.to_string().len() < 600, "{answer}");
    }
    client.end();
}

#[test]
fn attachments_are_resources_but_keys_are_not() {
    let house = notes();
    house.write("notes/red.png", PNG);
    house.write("notes/table.csv", b"a,b\n1,2\n");
    house.write("notes/id_rsa", b"a key");
    let mut client = Client::new(&house, &[]);
    let listed = client.request("resources/list", json!({}));
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["uri"].as_str())
        .collect();
    assert!(uris.contains(&"attachment://notes/red.png") && uris.contains(&"attachment://notes/table.csv"), "{uris:?}");
    assert!(!uris.iter().any(|uri| uri.contains("id_rsa")), "{uris:?}");
    let read = |client: &mut Client, uri: &str| client.request("resources/read", json!({"uri": uri}));
    let picture = read(&mut client, "attachment://notes/red.png");
    let contents = &picture["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "image/png", "{picture}");
    assert!(contents["blob"].as_str().expect("base64").starts_with("iVBORw0KGgo"), "{picture}");
    assert_eq!(read(&mut client, "attachment://notes/table.csv")["result"]["contents"][0]["text"], "a,b\n1,2\n");
    for wrong in ["id_rsa", "none.png", "../notes/red.png", "%2e%2e/red.png"] {
        let refused = read(&mut client, &format!("attachment://notes/{wrong}"));
        assert!(refused["error"]["message"].is_string(), "{wrong}: {refused}");
    }
    client.end();
}

#[test]
fn a_watched_note_tells_of_its_changes() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-write"]);
    let boat = json!({"uri": "note://notes/Boat.md"});
    let watched = client.request("resources/subscribe", boat.clone());
    assert_eq!(watched["result"], json!({}), "{watched}");
    for wrong in ["note://notes/Nowhere.md", "file:///etc/passwd"] {
        let refused = client.request("resources/subscribe", json!({"uri": wrong}));
        assert!(refused["error"]["message"].is_string(), "{wrong}: {refused}");
    }
    let updates = |client: &Client| {
        let updated = |line: &&Value| line["method"] == "notifications/resources/updated";
        client.said.iter().filter(updated).map(|line| line["params"].clone()).collect::<Vec<_>>()
    };
    client.call("append_to_note", json!({"note": "Ideas/Sail.md", "text": "not watched"}));
    client.call("append_to_note", json!({"note": "Boat.md", "text": "watched"}));
    until("the client hears of it", || {
        client.request("ping", json!({}));
        !updates(&client).is_empty()
    });
    assert!(updates(&client).iter().all(|update| *update == boat), "{:?}", client.said);
    let ended = client.request("resources/unsubscribe", boat);
    assert_eq!(ended["result"], json!({}), "{ended}");
    client.end();
}

#[test]
fn the_log_has_the_level_that_the_client_chose() {
    let house = notes();
    let mut client = Client::new(&house, &["--allow-run"]);
    let levels = |client: &Client| {
        let logged = client.said.iter().filter(|line| line["method"] == "notifications/message");
        logged.map(|line| line["params"]["level"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    client.call("list_notes", json!({}));
    assert!(levels(&client).is_empty(), "{:?}", client.said);
    client.request("logging/setLevel", json!({"level": "warning"}));
    client.request("tools/call", json!({"name": "read_note", "arguments": {"note": "Nowhere.md"}}));
    assert_eq!(levels(&client), ["warning"]);
    client.request("logging/setLevel", json!({"level": "debug"}));
    client.call("run_cells", json!({"note": "Cells.md"}));
    assert!(levels(&client).contains(&"info".to_owned()) && levels(&client).contains(&"debug".to_owned()));
    assert!(client.request("logging/setLevel", json!({"level": "loud"}))["error"].is_object());
    client.end();
}

#[test]
fn an_approval_is_a_form_only_if_the_user_allowed_that() {
    let model = || {
        agents::model(|turn, _| match turn {
            0 => (String::new(), vec![("delete_file", json!({"path": "Boat.md"}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        })
    };
    let capabilities = json!({"elicitation": {}});
    for (action, is_deleted) in [("decline", false), ("accept", true)] {
        let model = model();
        let house = agents::house(&model, &[("Boat.md", "12 volts\n")]);
        let mut client = Client::with_capabilities(&house, &["--allow-agent", "--allow-approve"], capabilities.clone());
        client.form_answer = json!({"action": action, "content": {"decision": "once"}});
        let answer = client.call("ask_an_agent", json!({"text": "Delete the boat"}));
        assert_eq!(client.asked.len(), 1, "{answer}");
        let form = &client.asked[0]["params"];
        assert!(form["message"].as_str().expect("words").contains("delete_file"), "{form}");
        assert!(form["requestedSchema"]["properties"]["decision"]["oneOf"].is_array(), "{form}");
        client.end();
        assert_eq!(!house.path("notes/Boat.md").exists(), is_deleted, "{action}");
    }
    // Without the option nobody is asked there, and a client that can't show forms isn't asked, either.
    for (options, capabilities) in
        [(&["--allow-agent"][..], capabilities), (&["--allow-agent", "--allow-approve"], json!({}))]
    {
        let model = model();
        let house = agents::house(&model, &[("Boat.md", "12 volts\n")]);
        let mut client = Client::with_capabilities(&house, options, capabilities);
        let id = client.begin("tools/call", json!({"name": "ask_an_agent", "arguments": {"text": "Delete the boat"}}));
        until("it waits for the user", || house.run(&["approvals", "--json"]).good().text().contains("delete_file"));
        let waits = house.run(&["approvals", "--json"]).good().lines();
        let name = waits[0]["name"].as_str().unwrap_or_else(|| panic!("{waits:?}"));
        house.run(&["approvals", name, "--deny"]).good();
        client.answer(id);
        assert!(client.asked.is_empty(), "{:?}", client.asked);
        client.end();
        assert!(house.path("notes/Boat.md").exists());
    }
}

#[test]
fn a_form_shows_all_that_would_run_or_nobody_is_asked_there() {
    let tail = "import os  # \u{202e}live\n";
    for (code, fits) in [(format!("print(1)\n{tail}"), true), ("print(1)\n".repeat(600) + tail, false)] {
        let model = agents::model(move |turn, _| match turn {
            0 => (String::new(), vec![("run_python", json!({"code": code}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        });
        let house = agents::house(&model, &[("Boat.md", "12 volts\n")]);
        let options = ["--allow-agent", "--allow-approve"];
        let mut client = Client::with_capabilities(&house, &options, json!({"elicitation": {}}));
        client.form_answer = json!({"action": "decline"});
        let id = client.begin("tools/call", json!({"name": "ask_an_agent", "arguments": {"text": "Count"}}));
        if !fits {
            let waiting = || house.run(&["approvals", "--json"]).good().lines();
            until("it waits for the user", || !waiting().is_empty());
            let name = waiting()[0]["name"].as_str().expect("a name").to_owned();
            house.run(&["approvals", &name, "--deny"]).good();
        }
        client.answer(id);
        let forms: Vec<&str> = client.asked.iter().filter_map(|form| form["params"]["message"].as_str()).collect();
        assert_eq!(forms.len(), usize::from(fits), "{forms:?}");
        let says = |words: &str| forms.iter().all(|form| form.contains(words));
        assert!(says("code:\nprint(1)\nimport os  # \\u{202e}live\n"), "{forms:?}");
        assert!(says("wants to use run_python:\n```\n"), "a comment of Markdown would hide what follows: {forms:?}");
        client.end();
    }
}

#[test]
fn a_client_works_in_the_volume_that_contains_its_roots() {
    let house = notes();
    // By name, this one is the first.
    house.write("more/Other.md", b"# Other\n");
    house.run(&["open", "more"]).good();
    let create = |client: &mut Client, path: &str| {
        client.call("create_note", json!({"path": path, "text": "x"}))["volume"].clone()
    };
    let mut client = Client::new(&house, &["--allow-write"]);
    assert_eq!(create(&mut client, "Without.md"), "more");
    assert_eq!(client.roots_asked, 0, "it has said that it has none");
    client.end();
    let roots = json!({"roots": {"listChanged": true}});
    let mut client = Client::with_capabilities(&house, &["--allow-write"], roots);
    client.roots = vec![house.path("elsewhere"), house.path("notes/Ideas")];
    client.call("list_notes", json!({}));
    assert_eq!(client.roots_asked, 0, "no volume was needed");
    assert_eq!(create(&mut client, "One.md"), "notes");
    client.call("capture", json!({"text": "A thought"}));
    client.call("add_todo", json!({"text": "Call Ada"}));
    client.call("remember", json!({"text": "Linen rots in salt water", "goal": "choose a sail"}));
    assert_eq!(client.roots_asked, 1, "they are known");
    let todos = client.call("list_todos", json!({"words": "Ada"}));
    assert_eq!(todos["todos"][0]["volume"], "notes", "{todos}");
    // What a call names counts.
    let named = client.call("create_note", json!({"path": "Two.md", "volume": "more"}));
    assert_eq!(named["volume"], "more");
    client.roots = vec![house.path("more")];
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let mut number = 0;
    until("the client is asked again", || {
        number += 1;
        create(&mut client, &format!("New {number}.md")) == "more"
    });
    assert_eq!(client.roots_asked, 2);
    client.end();
    assert!(house.path("notes/One.md").exists() && house.path("more/Two.md").exists());
}

/// A server that asks for roots when it starts, when they have changed, and when its tool is called, which says them.
/// What it gets is also in the file `$1`.
const ROOTED_SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
ask() { printf '{"jsonrpc":"2.0","id":%s,"method":"roots/list"}\n' "$1"; }
while read -r line; do
    printf '%s\n' "$line" >>"$1"
    case "$line" in
    *'"initialize"'*) answer "$(id)" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'\
'"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"notifications/initialized"'*) ask 900 ;;
    *'"notifications/roots/list_changed"'*) ask 901 ;;
    *'"tools/list"'*) answer "$(id)" '{"tools":[{"name":"where","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"where"'*) asked=$(id); ask 902 ;;
    *'"id":902'*) answer "$asked" '{"content":[{"type":"text","text":"'"$(printf '%s' "$line" | tr -d '"\\')"'"}]}' ;;
    esac
done"#;

#[test]
fn a_server_gets_the_folder_of_the_run_as_its_root() {
    let model = agents::model(|turn, body| match turn {
        0 => (String::new(), vec![("own_where", json!({}))]),
        _ => {
            let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
            (format!("It says: {}", last["content"]), Vec::new())
        }
    });
    let house = agents::house(&model, &[("a.md", "# A\n")]);
    house.write("server.sh", ROOTED_SERVER.as_bytes());
    let (script, log) = (house.path("server.sh"), house.path("server.log"));
    let mut config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    config +=
        &format!("mcp:\n  servers:\n    own: {{command: sh, args: ['{}', '{}']}}\n", script.display(), log.display());
    house.write("W/config.yaml", config.as_bytes());
    let done = house.run(&["ask", "Where are you?", "--approve", "own_where"]).code(0);
    let folder = house.path("notes").canonicalize().expect("the folder");
    let root = format!("uri:file://{},name:notes", folder.display());
    assert!(done.text().contains(&root), "{root}: {}", done.text());
    let log = String::from_utf8(house.read("server.log")).expect("text");
    assert!(log.contains(r#""roots":{"listChanged":true}"#), "{log}");
    // It was started to list its tools, before there was a run.
    assert!(log.contains(r#""id":900,"result":{"roots":[]}"#), "{log}");
    assert!(log.contains("notifications/roots/list_changed"), "{log}");
}

#[test]
fn traces_are_listed_and_read() {
    let (address, _) = memory::reporter();
    let house = agents::house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", "day,sold\n1,517\n")]);
    let mut client = Client::new(&house, &[]);
    assert_eq!(client.call("list_traces", json!({})), json!({"traces": [], "total": 0}));
    client.end();
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    let mut client = Client::new(&house, &[]);
    let listed = client.call("list_traces", json!({"project": "notes"}));
    let trace = &listed["traces"][0];
    assert_eq!((&listed["total"], &trace["steps"], &trace["project"]), (&json!(1), &json!(2), &json!("notes")));
    assert_eq!(client.call("list_traces", json!({"offset": 1}))["traces"], json!([]));
    let name = trace["name"].as_str().expect("a name");
    let read = client.call("read_trace", json!({"name": name}));
    assert!(read["text"].as_str().is_some_and(|text| text.contains("reports/")), "{read}");
    assert_eq!((&read["name"], &read["path"], &read["steps"]), (&trace["name"], &trace["path"], &json!(2)), "{read}");
    let part = &name[..name.len() - 1];
    assert!(client.refused("read_trace", json!({"name": part})).contains("list_traces lists them"));
    assert!(client.refused("read_trace", json!({})).contains("`name` is missing"));
    assert!(client.refused("list_traces", json!({"project": "nowhere"})).contains("nowhere"));
    client.end();
}
