//! What clients of `tracebook serve` and `tracebook mcp` rely on, because the standards of HTTP, server-sent events and
//! JSON-RPC say so: conditions, challenges, places of what was created, ids of events, batches, cursors.

use super::http_server::{EventClient, NOTE, Server, notes, token};
use super::mcp_server::Client;
use serde_json::{Value, json};

/// What clients of MCP accept.
const ACCEPTED: &str = "application/json, text/event-stream";
const FILE: &str = "/api/v1/volumes/notes/attachments/data.bin";

#[test]
fn a_read_has_the_conditions_of_the_standard() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    server.send(&write, "PUT", FILE, &[("If-None-Match", "*")], "0123456789").code(201);
    let note = format!("{NOTE}Boat.md");
    for path in [note.as_str(), FILE] {
        let tag = server.get(&write, path).code(200).header("ETag").expect("a tag");
        let get = |name, value: &str| server.send(&write, "GET", path, &[(name, value)], "");
        // A proxy that compresses answers makes tags weak.
        let answer = get("If-None-Match", &format!("\"x\", W/{tag}")).code(304);
        assert_eq!(answer.header("ETag").as_ref(), Some(&tag));
        get("If-Match", &tag).code(200);
        get("If-Match", &format!("W/{tag}")).refused(412, "read it again");
        get("If-Match", "\"x\"").refused(412, "read it again");
    }
    // A part of a file that was replaced meanwhile isn't sent.
    let part = [("Range", "bytes=2-3"), ("If-Match", "\"x\"")];
    server.send(&write, "GET", FILE, &part, "").refused(412, "read it again");
    server.end();
}

#[test]
fn a_note_is_deleted_only_in_the_version_that_was_read() {
    let house = notes();
    let version = || house.json(&["cat", "Boat.md"])["version"].as_str().expect("a version").to_owned();
    let old = version();
    house.edit("Boat.md", 0, 0, "more ");
    house.run(&["rm", "Boat.md", "--if-version", &old]).refused(2, "has changed");
    assert!(house.path("notes/Boat.md").exists());
    house.run(&["rm", "Boat.md", "--if-version", &version()]).good();
    assert!(!house.path("notes/Boat.md").exists());
}

#[test]
fn a_description_has_a_head_too() {
    let house = notes();
    let server = Server::new(&house);
    for path in ["/api/v1/openapi.json", "/api/v1/docs"] {
        let whole = server.get("", path).code(200);
        let head = server.send("", "HEAD", path, &[], "").code(200);
        assert!(head.body.is_empty() && !whole.body.is_empty(), "{path}");
        for name in ["Content-Type", "Content-Length"] {
            assert_eq!(head.header(name), whole.header(name), "{path} {name}");
        }
    }
    server.end();
}

#[test]
fn a_body_is_an_object_with_named_fields() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let todo = json!({"volume": "notes", "path": "Boat.md", "text": "Paint the hull", "at": 0});
    let fields = json!(["notes", "Boat.md", "Paint the hull", 0]);
    server.post(&write, "/api/v1/todos/check", &fields).refused(422, "not an array");
    assert_eq!(server.post(&write, "/api/v1/todos/check", &todo).code(200).json()["done"], true);
    server.end();
}

#[test]
fn a_refusal_says_which_token_it_wants() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let challenge = |token: &str| server.get(token, "/api/v1/tokens").header("WWW-Authenticate").expect("a challenge");
    assert_eq!(challenge(""), "Bearer realm=\"tracebook\"");
    assert_eq!(challenge("tb_nobody_0000"), "Bearer realm=\"tracebook\", error=\"invalid_token\"");
    let wanted = "Bearer realm=\"tracebook\", error=\"insufficient_scope\", scope=\"admin\"";
    assert_eq!(challenge(&read), wanted);
    server.end();
}

#[test]
fn a_program_that_looks_for_a_sign_in_finds_none() {
    let house = notes();
    let server = Server::new(&house);
    for path in ["oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"] {
        server.get("", &format!("/.well-known/{path}")).refused(404, "nothing at this path");
    }
    // A refused page names the way, and a refused upgrade what it wants.
    let page = server.get("", "/notes").code(401);
    assert_eq!(page.header("WWW-Authenticate").as_deref(), Some("Pairing realm=\"tracebook\""));
    let socket = server.get("", "/api/v1/agent").code(426);
    assert_eq!(socket.header("Upgrade").as_deref(), Some("websocket"));
    assert_eq!(socket.header("Sec-WebSocket-Version").as_deref(), Some("13"));
    server.end();
}

#[test]
fn a_part_of_a_file_is_not_taken_for_the_whole() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    server.send(&write, "PUT", FILE, &[("If-None-Match", "*")], "0123456789").code(201);
    let part = [("If-Match", "*"), ("Content-Range", "bytes 2-3/10")];
    for path in [FILE.to_owned(), format!("{NOTE}Boat.md")] {
        server.send(&write, "PUT", &path, &part, "xx").refused(400, "Content-Range");
        // Nor is a compressed body taken for the text.
        let head = format!("PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {write}\r\n", server.address);
        let body = "If-Match: *\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n";
        server.raw(format!("{head}{body}").as_bytes()).refused(501, "Transfer-Encoding");
    }
    assert_eq!(server.get(&write, FILE).code(200).body, b"0123456789");
    assert!(house.cat("Boat.md").starts_with(b"# Boat"));
    server.end();
}

#[test]
fn what_was_created_is_where_the_answer_says() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let new = json!({"text": "Two coats are enough", "goal": "Paint the hull"});
    let created = server.post(&write, "/api/v1/memory", &new).code(201);
    let place = created.header("Location").expect("a place");
    let shown = server.get(&write, &place).code(200).json();
    assert_eq!(shown["experience_id"], created.json()["id"], "{shown}");
    server.end();
}

/// Returns the id that comes before the first event.
fn first_id(client: &mut EventClient) -> String {
    loop {
        if let Some(id) = client.line().strip_prefix("id: ") {
            return id.to_owned();
        }
    }
}

#[test]
fn a_client_that_has_got_no_event_yet_can_resume_too() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let gap = |client: &mut EventClient| {
        let (id, event) = client.next();
        assert_eq!(event["kind"], "GAP", "{event}");
        id
    };
    // The id before the first event.
    let begin = first_id(&mut EventClient::over(server.connect(), &server, &read, &[]));
    house.run(&["new", "One", "--text", "x"]).good();
    let mut client = EventClient::over(server.connect(), &server, &read, &[("Last-Event-ID", &begin)]);
    let (_, event) = client.next();
    assert!(event["kind"] != "GAP", "{event}");
    // A gap is told once.
    let id = gap(&mut EventClient::over(server.connect(), &server, &read, &[("Last-Event-ID", "0-1")]));
    let mut client = EventClient::over(server.connect(), &server, &read, &[("Last-Event-ID", &id)]);
    assert_eq!(first_id(&mut client), id);
    server.end();
}

fn call(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[test]
fn batches_of_older_clients_are_answered() {
    let house = notes();
    let mut client = Client::new(&house, &[]);
    let read = json!({"name": "read_note", "arguments": {"note": "Boat.md"}});
    let batch = json!([
        call(json!("a"), "tools/list", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        5,
        call(json!("b"), "tools/call", read.clone()),
        call(json!("c"), "nothing/there", json!({})),
    ]);
    let answers = client.batch(&batch);
    let answers = answers.as_array().expect("answers");
    let answer = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{answers:?}"));
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert!(answer(json!("a"))["result"]["tools"].is_array());
    assert!(
        answer(json!("b"))["result"]["structuredContent"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("12 volts"))
    );
    assert_eq!(answer(json!("c"))["error"]["code"], -32601);
    assert_eq!(answer(Value::Null)["error"]["code"], -32600);
    client.end();

    // The same over HTTP, in one stream.
    let token = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let send = |session: &str, version: &str, message: &Value| {
        // A client that accepts everything accepts what is sent.
        let mut headers = vec![("Accept", "*/*"), ("Content-Type", "application/json")];
        if !session.is_empty() {
            headers.extend([("Mcp-Session-Id", session), ("Mcp-Protocol-Version", version)]);
        }
        server.send(&token, "POST", "/mcp", &headers, &message.to_string())
    };
    let about =
        json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let begin = call(json!(1), "initialize", about);
    let session = send("", "", &begin).code(200).header("Mcp-Session-Id").expect("a session");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(&session, "2025-03-26", &json!([initialized])).code(202);
    let batch = json!([call(json!(2), "tools/list", json!({})), call(json!(3), "tools/call", read)]);
    let answered = send(&session, "2025-03-26", &batch).code(200);
    assert_eq!(answered.header("Content-Type").as_deref(), Some("text/event-stream"));
    let text = String::from_utf8(answered.body).expect("text");
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let mut ids: Vec<u64> = events.filter_map(|event| event["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3], "{text}");
    send(&session, "2025-03-26", &json!([begin])).refused(400, "can't be in a batch");
    // A slash at the end leads to the same place.
    let headers = [("Accept", ACCEPTED), ("Content-Type", "application/json")];
    server.send(&token, "POST", "/mcp/", &headers, &begin.to_string()).code(200);
    // Newer versions have no batches.
    assert!((400..500).contains(&send(&session, "2025-06-18", &batch).status));
    // What can't be read is said as JSON-RPC has it, not as a wrong type of content.
    let own = [headers[0], headers[1], ("Mcp-Session-Id", session.as_str())];
    for (body, code) in [("{", -32700), ("[]", -32600), ("null", -32600), ("{\"id\": 1}", -32600)] {
        let answer = server.send(&token, "POST", "/mcp", &own, body).code(400).json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{body}: {answer}");
    }
    let plain = [("Accept", ACCEPTED), ("Content-Type", "text/plain")];
    server.send(&token, "POST", "/mcp", &plain, &begin.to_string()).code(415);
    server.end();
}

#[test]
fn lists_take_only_cursors_of_their_own() {
    let house = notes();
    for number in 0..250 {
        house.write(&format!("notes/Many/{number:03}.md"), b"x\n");
    }
    let mut client = Client::new(&house, &["--allow-write"]);
    let uris = |page: &Value| -> Vec<String> {
        let listed = page["result"]["resources"].as_array().unwrap_or_else(|| panic!("{page}"));
        listed.iter().map(|one| one["uri"].as_str().expect("an address").to_owned()).collect()
    };
    // Some clients begin with an empty cursor.
    let first = client.request("resources/list", json!({"cursor": ""}));
    let cursor = first["result"]["nextCursor"].clone();
    let mut all = uris(&first);
    assert!(cursor.is_string() && all.len() == 200, "{first}");
    // A note before those on the first page moves all others; none is listed twice or left out.
    client.call("create_note", json!({"path": "AAA.md", "text": "new\n"}));
    let second = client.request("resources/list", json!({"cursor": cursor}));
    assert!(second["result"]["nextCursor"].is_null(), "{second}");
    all.extend(uris(&second));
    let (listed, mut single) = (all.len(), all.clone());
    single.sort_unstable();
    single.dedup();
    assert_eq!((listed, single.len()), (253, 253));
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let refused = client.request(method, json!({"cursor": "nonsense"}));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    client.end();
}
