//! `/mcp` with a token for one volume: it does there what other tokens do, and nothing that a client names, lists or
//! watches leads into another volume.

use super::agents;
use super::http_server::{Server, token};
use super::mcp_approvals::{HttpClient, LONG, decide, next_line, waiting};
use super::mcp_server::notes;
use crate::program::{House, bytes, until};
use serde_json::{Map, Value, json};

/// What all files of the volume hold that the token doesn't reach, and some of their names.
const FOREIGN_TEXT: &str = "foreign-4e1f";
/// Arguments of tools that name nothing.
const CONTENT_ARGUMENTS: [&str; 6] = ["text", "old_text", "new_text", "outcome", "version", "goal"];
const BEYOND: &str = "this token is for the volume notes, and reaches no other volume";

/// A house with two volumes. By name, the one that the token doesn't reach is the first.
fn two_volumes() -> House {
    let house = notes();
    house.write("notes/Prompts/Greet.md", b"---\ntags: [prompt]\n---\nGreet {{name}}.\n\n![[Boat]]\n");
    house.write("notes/AGENTS.md", b"# Rules\n\n- [ ] Obey\n");
    house.write("notes/table.csv", b"a,b\n1,2\n");
    let note = format!("# Solar {FOREIGN_TEXT}\n\n#{FOREIGN_TEXT} [[Only]] [[Boat]]\n\n- [ ] Paint {FOREIGN_TEXT}\n");
    for path in ["Boat.md", "Only.md", "Ideas/Sail.md", &*format!("{FOREIGN_TEXT}.md")] {
        house.write(&format!("another/{path}"), note.as_bytes());
    }
    let prompt = format!("---\ntags: [prompt]\ndescription: {FOREIGN_TEXT}\n---\n{FOREIGN_TEXT} {{{{name}}}}\n");
    for name in ["Greet", "Alien"] {
        house.write(&format!("another/Prompts/{name}.md"), prompt.as_bytes());
    }
    house.write("another/only.bin", FOREIGN_TEXT.as_bytes());
    house.write(&format!("another/{FOREIGN_TEXT}.csv"), FOREIGN_TEXT.as_bytes());
    house.run(&["open", "another"]).code(0);
    let learned = format!("Remember {FOREIGN_TEXT} when you paint");
    house.run(&["memory", "add", &learned, "--project", "another", "--goal", "Paint the shed"]).code(0);
    house
}

/// Returns the texts that are tried.
fn tried_texts(house: &House) -> Vec<String> {
    let volumes = house.json(&["ls", "--volumes"]);
    let another = volumes.as_array().expect("a list").iter().find(|volume| volume["name"] == "another");
    let id = another.and_then(|volume| volume["id"].as_str()).expect("the other volume");
    let fixed = ["another", "another:Only.md", "/another/Only.md", "Only", "../another/Only.md", "notes:another:Boat"];
    let mut texts = fixed.map(str::to_owned).to_vec();
    texts.push(house.path("another/Only.md").display().to_string());
    texts.push(format!("{id}:Only.md"));
    texts
}

/// Returns what a tool that is tried gets for an argument that it needs.
fn plain_value(name: &str) -> Value {
    match name {
        "note" | "path" => "Boat.md".into(),
        "query" | "words" => "solar".into(),
        "goal" => "Paint the shed".into(),
        "old_text" => "12 volts".into(),
        "at" => 0.into(),
        _ => "none".into(),
    }
}

/// Returns all calls in which one text that a tool takes is one of these.
fn tried_calls(tools: &[Value], texts: &[String]) -> Vec<(String, String, Value)> {
    let mut calls = Vec::new();
    for tool in tools {
        let name = tool["name"].as_str().expect("a name");
        let schema = &tool["inputSchema"];
        let needed = schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let plain: Map<String, Value> = needed.map(|name| (name.to_owned(), plain_value(name))).collect();
        for (argument, about) in schema["properties"].as_object().expect("properties") {
            // An agent that is asked works; where it works is tried.
            let is_tried = name != "ask_an_agent" || argument == "project";
            if about["type"] != "string" || CONTENT_ARGUMENTS.contains(&argument.as_str()) || !is_tried {
                continue;
            }
            for text in texts {
                let mut arguments = plain.clone();
                arguments.insert(argument.clone(), text.as_str().into());
                calls.push((name.to_owned(), argument.clone(), Value::Object(arguments)));
            }
        }
    }
    calls
}

const ALL_SCOPES: &str = "read,write,run,agent,approve";

#[test]
fn no_name_in_any_tool_leads_into_another_volume() {
    let house = two_volumes();
    let texts = tried_texts(&house);
    let own = token(&house, "own", &["--scopes", ALL_SCOPES, "--volume", "notes"]);
    let all = token(&house, "all", &["--scopes", ALL_SCOPES]);
    let server = Server::new(&house);
    // What is tried would be noticed: a token for all volumes gets to the other one.
    let free = HttpClient::new(&server, &all, json!({}));
    for (tool, arguments) in [
        ("search_notes", json!({"query": "solar"})),
        ("read_note", json!({"note": "another:Only.md"})),
        ("read_note", json!({"note": texts[6]})),
        ("list_notes", json!({"volume": "another"})),
        ("list_todos", json!({"words": "paint"})),
        ("note_links", json!({"note": "another/Only.md"})),
        ("recall", json!({"goal": "Paint the shed"})),
    ] {
        let said = free.call(tool, arguments.clone()).to_string();
        assert!(said.contains(FOREIGN_TEXT), "{tool} {arguments}: {said}");
    }
    let before = bytes(&house.path("another"));
    let client = HttpClient::new(&server, &own, json!({}));
    let mut tools = client.request("tools/list", json!({}))["result"]["tools"].as_array().expect("a list").clone();
    // What is created has the names that are tried, so it's the last.
    tools.sort_by_key(|tool| tool["name"] == "create_note");
    let calls = tried_calls(&tools, &texts);
    for tool in ["read_note", "list_notes", "read_trace", "append_to_note", "check_todo", "run_cells", "create_note"] {
        assert!(calls.iter().any(|(name, ..)| name == tool), "{tool} isn't tried");
    }
    for (tool, argument, arguments) in calls {
        let result = client.call(&tool, arguments.clone());
        let said = result.to_string();
        assert!(result["content"].is_array() && !said.contains(FOREIGN_TEXT), "{tool} {arguments}: {said}");
        if argument == "volume" || argument == "project" {
            assert!(result["isError"] == true && said.contains(BEYOND), "{tool} {arguments}: {said}");
        }
    }
    // Nor do lists, which name nothing.
    for tool in ["list_notes", "list_todos", "list_traces", "list_runs", "list_approvals"] {
        let said = client.call(tool, json!({})).to_string();
        assert!(said.contains("structuredContent") && !said.contains(FOREIGN_TEXT), "{tool}: {said}");
    }
    let recalled = client.call("recall", json!({"goal": "Paint the shed"}));
    assert_eq!(recalled["structuredContent"], json!({"memories": []}));
    assert_eq!(bytes(&house.path("another")), before, "the other volume was changed");
    server.end();
}

#[test]
fn no_address_prompt_or_completion_leads_into_another_volume() {
    let house = two_volumes();
    let texts = tried_texts(&house);
    let own = token(&house, "own", &["--volume", "notes"]);
    let all = token(&house, "all", &[]);
    let server = Server::new(&house);
    let (client, free) = (HttpClient::new(&server, &own, json!({})), HttpClient::new(&server, &all, json!({})));
    // Resources.
    let listed = |client: &HttpClient<'_>| client.request("resources/list", json!({}))["result"]["resources"].clone();
    let uris: Vec<String> = listed(&client)
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["uri"].as_str().expect("an address").to_owned())
        .collect();
    assert!(uris.iter().all(|uri| uri.starts_with("note://notes/") || uri.starts_with("attachment://notes/")));
    for uri in ["note://notes/Boat.md", "note://notes/Ideas/Sail.md", "attachment://notes/table.csv"] {
        assert!(uris.iter().any(|known| known == uri), "{uri} isn't in {uris:?}");
        let read = client.request("resources/read", json!({"uri": uri}));
        assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
        assert!(!read.to_string().contains(FOREIGN_TEXT), "{read}");
    }
    assert!(listed(&free).to_string().contains(FOREIGN_TEXT));
    let id = texts[7].split(':').next().expect("an id");
    let mut addresses: Vec<String> = [
        "note://another/Only.md",
        "note://another/Boat.md",
        "note:///another:Only.md",
        "note://another%2F/Only.md",
        "note://notes/..%2Fanother%2FOnly.md",
        "note://notes/another%3AOnly.md",
        "note://notes/Only.md",
        "note://Notes/Boat.md",
        "attachment://another/only.bin",
        "attachment:///another:only.bin",
        "attachment://notes/another%3Aonly.bin",
        "attachment://notes/..%2Fanother%2Fonly.bin",
    ]
    .map(str::to_owned)
    .to_vec();
    addresses.push(format!("note://{id}/Only.md"));
    for uri in &addresses {
        for method in ["resources/read", "resources/subscribe"] {
            let answer = client.request(method, json!({"uri": uri}));
            assert!(answer["error"]["message"].is_string(), "{method} {uri}: {answer}");
            assert!(!answer.to_string().contains(FOREIGN_TEXT), "{method} {uri}: {answer}");
        }
    }
    let beyond = client.request("resources/read", json!({"uri": addresses[0]}));
    assert_eq!(beyond["error"]["message"], BEYOND);
    let read = free.request("resources/read", json!({"uri": addresses[0]}));
    assert!(read.to_string().contains(FOREIGN_TEXT), "{read}");
    // Prompts: both volumes have one at the same path.
    let prompts = |client: &HttpClient<'_>| client.request("prompts/list", json!({}))["result"]["prompts"].to_string();
    until("prompts are indexed", || prompts(&free).contains("Alien") && prompts(&client).contains("Greet"));
    let (known, all_known) = (prompts(&client), prompts(&free));
    assert!(all_known.contains("\"Greet\"") && all_known.contains("\"Prompts/Greet\""), "{all_known}");
    assert!(!known.contains("Alien") && !known.contains(FOREIGN_TEXT), "{known}");
    let greet = client.request("prompts/get", json!({"name": "Greet", "arguments": {"name": "Ada"}}));
    let messages = &greet["result"]["messages"];
    assert_eq!(messages[0]["content"]["text"], "Greet Ada.", "{greet}");
    assert_eq!(messages[1]["content"]["resource"]["uri"], "note://notes/Boat.md", "{greet}");
    assert!(!greet.to_string().contains(FOREIGN_TEXT), "{greet}");
    let names = ["Alien", "Prompts/Alien", "another:Alien", "another:Greet", "another:Prompts/Greet"];
    for name in names.map(str::to_owned).iter().chain(&texts) {
        let answer = client.request("prompts/get", json!({"name": name, "arguments": {"name": "Ada"}}));
        assert!(answer["error"].is_object() && !answer.to_string().contains(FOREIGN_TEXT), "{name}: {answer}");
    }
    // Completions.
    let complete = |client: &HttpClient<'_>, reference: &Value, name: &str, known: &Value| {
        let argument = json!({"name": name, "value": ""});
        let params = json!({"ref": reference, "argument": argument, "context": {"arguments": known}});
        client.request("completion/complete", params)["result"]["completion"]["values"].clone()
    };
    let note = json!({"type": "ref/resource", "uri": "note://{volume}/{+path}"});
    let attachment = json!({"type": "ref/resource", "uri": "attachment://{volume}/{+path}"});
    let summarize = json!({"type": "ref/prompt", "name": "summarize_note"});
    let (none, another) = (json!({}), json!({"volume": "another"}));
    assert_eq!(complete(&client, &note, "volume", &none), json!(["notes"]));
    assert_eq!(complete(&client, &attachment, "path", &none), json!(["table.csv"]));
    for reference in [&note, &attachment] {
        assert_eq!(complete(&client, reference, "path", &another), json!([]), "{reference}");
        assert!(complete(&free, reference, "path", &another).to_string().contains(FOREIGN_TEXT), "{reference}");
    }
    for reference in [&note, &summarize] {
        let name = if *reference == note { "path" } else { "note" };
        let values = complete(&client, reference, name, &none);
        // In its volume, each path is there once.
        assert!(values.as_array().is_some_and(|all| all.contains(&json!("Boat.md"))), "{values}");
        assert!(!values.to_string().contains(FOREIGN_TEXT), "{values}");
    }
    server.end();
}

#[test]
fn a_token_for_one_volume_works_in_it() {
    let house = two_volumes();
    let own = token(&house, "own", &["--scopes", "read,write,run", "--volume", "notes"]);
    let server = Server::new(&house);
    let before = bytes(&house.path("another"));
    let client = HttpClient::new(&server, &own, json!({}));
    let call = |tool: &str, arguments: Value| {
        let result = client.call(tool, arguments);
        assert!(result["isError"] != true && result["structuredContent"].is_object(), "{tool}: {result}");
        assert!(!result.to_string().contains(FOREIGN_TEXT), "{tool}: {result}");
        result["structuredContent"].clone()
    };
    // A path that both volumes have is that of its own, however it's named.
    for name in ["Boat.md", "Boat", "/Boat.md", "notes:Boat.md", "notes/Boat", "boat"] {
        let note = call("read_note", json!({"note": name}));
        assert_eq!((&note["path"], &note["volume"]), (&json!("Boat.md"), &json!("notes")), "{name}");
        assert_eq!(note["text"].as_str().expect("text").as_bytes(), house.read("notes/Boat.md"));
    }
    assert_eq!(call("read_note", json!({"note": "sail"}))["path"], "Ideas/Sail.md");
    let hits = call("search_notes", json!({"query": "solar panel", "limit": 1}));
    let hit = &hits["hits"][0];
    assert_eq!((hits["hits"].as_array().map(Vec::len), &hit["title"]), (Some(1), &json!("Boat")), "{hits}");
    let passage = call("read_note", json!({"note": hit["address"]}));
    assert!(passage["text"].as_str().is_some_and(|text| text.contains("12 volts")), "{passage}");
    assert_eq!((&passage["path"], &passage["volume"]), (&json!("Boat.md"), &json!("notes")), "{passage}");
    let listed = call("list_notes", json!({"prefix": "Ideas/"}));
    assert_eq!((&listed["total"], &listed["notes"][0]["path"]), (&json!(1), &json!("Ideas/Sail.md")), "{listed}");
    assert_eq!(call("list_notes", json!({"volume": "notes", "prefix": "Ideas/"})), listed);
    let links = call("note_links", json!({"note": "Boat.md"}));
    assert!(links["backlinks"].to_string().contains("Ideas/Sail.md"), "{links}");
    call("related_notes", json!({"note": "Boat.md"}));
    let todos = call("list_todos", json!({"words": "hull"}));
    let todo = &todos["todos"][0];
    assert_eq!((&todos["total"], &todo["volume"]), (&json!(1), &json!("notes")), "{todos}");
    let check = json!({"path": todo["path"], "at": todo["at"], "text": todo["text"]});
    assert_eq!(call("check_todo", check)["done"], true);
    assert!(call("run_cells", json!({"note": "Cells.md"}))["outputs"].to_string().contains("from the cell"));
    assert!(call("note_outputs", json!({"note": "cells"})).to_string().contains("from the cell"));
    // What is new goes into its volume, and nothing else is written to.
    let made = call("create_note", json!({"path": "New/Plan", "text": "# Plan\n\nFirst.\n"}));
    assert_eq!((&made["path"], &made["volume"]), (&json!("New/Plan.md"), &json!("notes")), "{made}");
    call("edit_note", json!({"note": "Plan", "old_text": "First.", "new_text": "Second."}));
    call("append_to_note", json!({"note": "notes:New/Plan.md", "text": "Third."}));
    call("add_todo", json!({"note": "New/Plan.md", "text": "Buy rope"}));
    assert_eq!(house.cat("notes:New/Plan.md"), b"# Plan\n\nSecond.\nThird.\n- [ ] Buy rope\n");
    assert_eq!(call("capture", json!({"text": "A thought"}))["volume"], "notes");
    call("add_todo", json!({"text": "Call Ada"}));
    assert_eq!(call("list_todos", json!({"words": "Ada"}))["todos"][0]["volume"], "notes");
    call("remember", json!({"text": "Linen rots in salt water", "goal": "choose a sail"}));
    let recalled = call("recall", json!({"goal": "choose a sail"}));
    assert_eq!(recalled["memories"][0]["learned"], "Linen rots in salt water", "{recalled}");
    assert_eq!(call("list_traces", json!({"project": "notes"}))["total"], 0);
    assert_eq!(bytes(&house.path("another")), before, "the other volume was changed");
    let refused = |tool: &str, arguments: Value| {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().expect("a reason").to_owned()
    };
    let missing = "there is no note “Only” in notes, the only volume that this token reaches";
    assert_eq!(refused("read_note", json!({"note": "Only"})), missing);
    assert_eq!(refused("create_note", json!({"path": "x.md", "volume": "another"})), BEYOND);
    assert!(refused("create_note", json!({"path": "/another/x.md"})).contains("isn't a path inside the volume"));
    // A protected file is one after the name of its volume, too.
    let why = refused("check_todo", json!({"path": "notes:AGENTS.md", "at": 9, "text": "Obey"}));
    assert!(why.starts_with("AGENTS.md is protected"), "{why}");
    assert_eq!(house.read("notes/AGENTS.md"), b"# Rules\n\n- [ ] Obey\n");
    server.end();
}

#[test]
fn a_search_in_one_volume_finds_what_another_has_a_thousand_better_hits_for() {
    let house = notes();
    let log = format!("# Log\n\n{}A lighthouse.\n", "Words that say nothing of it. ".repeat(30));
    house.write("notes/Log.md", log.as_bytes());
    for number in 0..1_100 {
        let text = format!("# Lighthouse {number}\n\nA lighthouse, and a lighthouse.\n");
        house.write(&format!("another/Lighthouse {number}.md"), text.as_bytes());
    }
    house.run(&["open", "another"]).code(0);
    let all = house.json(&["search", "lighthouse", "--limit", "1000"]);
    assert!(all.as_array().is_some_and(|all| all.iter().all(|hit| hit["volume"] == "another")), "{all}");
    let one = house.json(&["search", "lighthouse", "--volume", "notes"]);
    assert_eq!(one[0]["title"], "Log", "{one}");
    house.run(&["search", "lighthouse", "--volume", "nowhere"]).refused(2, "no volume “nowhere”");
    let related = house.json(&["related", "another:Lighthouse 7.md", "--volume", "notes"]);
    assert!(related.as_array().is_some_and(|all| all.iter().all(|hit| hit["volume"] == "notes")), "{related}");
    let own = token(&house, "own", &["--volume", "notes"]);
    let server = Server::new(&house);
    let found = server.get(&own, "/api/v1/search?query=lighthouse").code(200).json();
    assert_eq!(found["hits"][0]["title"], "Log", "{found}");
    let client = HttpClient::new(&server, &own, json!({}));
    let found = client.call("search_notes", json!({"query": "lighthouse"}));
    assert_eq!(found["structuredContent"]["hits"][0]["title"], "Log", "{found}");
    server.end();
}

#[test]
fn runs_and_what_they_wait_for_are_those_of_the_volume() {
    let model = agents::model(|turn, body| {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let asked = messages.iter().rev().find(|message| message["role"] == "user").map(Value::to_string);
        match turn {
            0 if asked.is_some_and(|asked| asked.contains("Scuttle")) => {
                (String::new(), vec![("delete_file", json!({"path": "Boat.md"}))])
            }
            _ => ("All done.".to_owned(), Vec::new()),
        }
    });
    let house = agents::house(&model, &[("Boat.md", "12 volts\n")]);
    house.write("another/Boat.md", b"their boat\n");
    house.run(&["open", "another"]).good();
    for (volume, prompt) in [("notes", "Scuttle ours"), ("another", "Scuttle theirs, foreign-4e1f")] {
        house.run(&["ask", prompt, "--project", volume, "--no-wait"]);
    }
    assert_eq!(waiting(&house).len(), 2);
    let own = token(&house, "own", &["--scopes", "read,agent", "--volume", "notes"]);
    let all = token(&house, "all", &[]);
    let server = Server::new(&house);
    let client = HttpClient::new(&server, &own, json!({}));
    let call = |client: &HttpClient<'_>, tool: &str| client.call(tool, json!({}))["structuredContent"].clone();
    let runs = call(&client, "list_runs");
    assert_eq!((&runs["total"], &runs["runs"][0]["prompt"]), (&json!(1), &json!("Scuttle ours")), "{runs}");
    let approvals = call(&client, "list_approvals");
    assert_eq!(approvals["approvals"].as_array().map(Vec::len), Some(1), "{approvals}");
    assert_eq!(approvals["approvals"][0]["run"], runs["runs"][0]["id"]);
    let free = HttpClient::new(&server, &all, json!({}));
    assert!(call(&free, "list_runs")["total"] == 2 && call(&free, "list_runs").to_string().contains(FOREIGN_TEXT));
    assert_eq!(call(&free, "list_approvals")["approvals"].as_array().map(Vec::len), Some(2));
    // An agent works in the volume of the token, also if none is named.
    let refused = client.call("ask_an_agent", json!({"text": "Say hello", "project": "another"}));
    assert_eq!(refused["content"][0]["text"], BEYOND, "{refused}");
    let asked = client.call("ask_an_agent", json!({"text": "Say hello"}));
    assert_eq!(asked["structuredContent"]["answer"], "All done.", "{asked}");
    let runs = call(&client, "list_runs");
    assert_eq!((&runs["total"], &runs["runs"][0]["id"]), (&json!(2), &asked["structuredContent"]["run"]), "{runs}");
    server.end();
}

#[test]
fn suggestions_and_changes_of_another_volume_are_not_seen() {
    let house = two_volumes();
    let ours = token(&house, "ours", &["--scopes", "read,suggest", "--volume", "notes"]);
    let theirs = token(&house, "theirs", &["--scopes", "read,suggest", "--volume", "another"]);
    let server = Server::new(&house);
    let (own, other) = (HttpClient::new(&server, &ours, json!({})), HttpClient::new(&server, &theirs, json!({})));
    let before = bytes(&house.path("another"));
    std::thread::scope(|scope| {
        let append = |text: &str| json!({"note": "Boat.md", "text": text});
        let (first, second) = (append("from ours"), append("from theirs"));
        let first = scope.spawn(|| own.call("append_to_note", first));
        let second = scope.spawn(|| other.call("append_to_note", second));
        until("both wait", || waiting(&house).len() == 2);
        let seen = own.call("list_approvals", json!({}))["structuredContent"]["approvals"].clone();
        assert_eq!((seen.as_array().map(Vec::len), &seen[0]["volume"]), (Some(1), &json!("notes")), "{seen}");
        for request in waiting(&house) {
            decide(&house, &request, if request["volume"] == "notes" { &["--allow"] } else { &["--deny"] });
        }
        let (first, second) = (first.join().expect("an answer"), second.join().expect("an answer"));
        assert!(first["isError"] != true && second["isError"] == true, "{first} {second}");
    });
    assert!(house.cat("notes:Boat.md").ends_with(b"from ours\n"));
    assert_eq!(bytes(&house.path("another")), before);
    // A note is watched in the own volume only, also if another has one at its path.
    let mut stream = own.stream("GET", &[], "", LONG);
    let watched = own.request("resources/subscribe", json!({"uri": "note://notes/Boat.md"}));
    assert_eq!(watched["result"], json!({}), "{watched}");
    let refused = own.request("resources/subscribe", json!({"uri": "note://another/Boat.md"}));
    assert_eq!(refused["error"]["message"], BEYOND);
    house.edit("another:Boat.md", 0, 0, "Theirs.\n");
    house.edit("notes:Boat.md", 0, 0, "Ours.\n");
    let mut heard = String::new();
    while !heard.contains("note://notes/Boat.md") {
        heard += &next_line(&mut stream).expect("the change");
    }
    assert!(!heard.contains("note://another"), "{heard}");
    server.end();
}
