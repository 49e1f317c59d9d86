//! The parts of `/api/v1` beyond notes and tasks: keys for repeated requests, history, blocks, attachments,
//! collections, pages of lists, and the documentation page.

use super::http_server::{Answer, NOTE, Server, notes, request_text, token};
use crate::program::{House, noise, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};

const ATTACHMENTS: &str = "/api/v1/volumes/notes/attachments";

/// Sends a body of any bytes.
fn put(server: &Server, token: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut request = format!(
        "PUT {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {}\r\n",
        server.address,
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    server.raw(&[format!("{request}\r\n").as_bytes(), body].concat())
}

/// Reads all pages of a list, with the items in the field `name`.
pub(super) fn pages(server: &Server, token: &str, path: &str, name: &str, limit: usize) -> Vec<Value> {
    let sign = if path.contains('?') { '&' } else { '?' };
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(token, &format!("{path}{sign}limit={limit}{cursor}")).code(200).json();
        let items = page[name].as_array().unwrap_or_else(|| panic!("no list: {page}"));
        assert!(items.len() <= limit && all.len() < 10_000, "{page}");
        all.extend(items.iter().cloned());
        cursor = match &page["next_cursor"] {
            Value::Null => return all,
            Value::String(next) => format!("&cursor={next}"),
            next => format!("&cursor={next}"),
        };
    }
}

#[test]
fn a_repeated_post_with_the_same_key_is_performed_once() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let other = token(&house, "other", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let post = |token: &str, key: &str, text: &str| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        let body = json!({"text": text, "goal": text, "project": "notes"}).to_string();
        server.send(token, "POST", "/api/v1/memory", &headers, &body)
    };
    let first = post(&write, "key-1", "paint needs two coats").code(201);
    assert_eq!(first.header("Idempotency-Replayed"), None);
    let again = post(&write, "key-1", "paint needs two coats").code(201);
    assert_eq!((again.json(), again.header("Idempotency-Replayed")), (first.json(), Some("true".to_owned())));
    let said = first.json()["said"].as_str().expect("words").to_owned();
    assert!(!said.contains("once more"), "{said}");
    // Not performed twice: a second addition would have counted once more.
    let listed = server.get(&write, "/api/v1/memory").code(200).json();
    assert_eq!((&listed["total"], &listed["memories"][0]["count"]), (&json!(1), &json!(1)), "{listed}");
    post(&write, "key-1", "something else").refused(422, "another request");
    // Another token's key is another key.
    assert!(post(&other, "key-1", "tides turn twice a day").code(201).header("Idempotency-Replayed").is_none());
    for wrong in ["", " ", "a b", "é", &"x".repeat(256)] {
        post(&write, wrong, "x").refused(400, "Idempotency-Key");
    }
    // A refusal is an answer, too.
    let wrong = [("Content-Type", "text/plain"), ("Idempotency-Key", "key-2")];
    for _ in 0..2 {
        server.send(&write, "POST", "/api/v1/memory", &wrong, "{}").refused(415, "application/json");
    }
    // Two at once are one.
    let at_once: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| post(&write, "key-3", "varnish last"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    assert!(at_once.iter().all(|answer| matches!(answer.status, 201 | 409)), "{at_once:?}");
    until("all get the first answer", || post(&write, "key-3", "varnish last").status == 201);
    assert_eq!(server.get(&write, "/api/v1/memory").code(200).json()["total"], 3);
    server.end();
    // Answers outlive the server, and only the user can read them.
    let server = Server::new(&house);
    let send = |key: &str, text: &str| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        let body = json!({"text": text, "goal": text, "project": "notes"}).to_string();
        server.send(&write, "POST", "/api/v1/memory", &headers, &body)
    };
    let again = send("key-1", "paint needs two coats").code(201);
    assert_eq!((again.json(), again.header("Idempotency-Replayed")), (first.json(), Some("true".to_owned())));
    send("key-1", "something else").refused(422, "another request");
    let mode = std::fs::metadata(house.path("W/http-answers.db")).expect("a file");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
    server.end();
}

#[test]
fn a_notes_history_is_read_and_restored() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    house.edit("Boat.md", 0, 0, "First.\n");
    house.edit("Boat.md", 0, 6, "Second");
    let history = "/api/v1/volumes/notes/history/Boat.md";
    let listed = server.get(&read, history).code(200).json();
    let total = listed["total"].as_u64().expect("a number");
    assert!(total >= 2, "{listed}");
    let page = server.get(&read, &format!("{history}?limit=1&cursor={}", total - 1)).code(200).json();
    let last = page["versions"][0]["number"].as_u64().expect("a number");
    assert_eq!((last, &page["next_cursor"]), (total, &Value::Null), "{page}");
    let version = |number: u64| format!("/api/v1/volumes/notes/versions/{number}/Boat.md");
    let now = server.get(&read, &format!("{NOTE}Boat.md")).code(200).body;
    assert_eq!(server.get(&read, &version(last)).code(200).body, now);
    let before = server.get(&read, &version(last - 1)).code(200).body;
    assert!(before.starts_with(b"First.\n"), "{}", String::from_utf8_lossy(&before));
    server.get(&read, &version(last + 1)).refused(404, "no change");
    for wrong in ["x", "-1", "+1", "1.5", "--restore=1"] {
        server.get(&read, &format!("/api/v1/volumes/notes/versions/{wrong}/Boat.md")).refused(404, "number");
    }
    server.send(&read, "POST", &version(last - 1), &[], "").refused(403, "`write`");
    server.send(&write, "POST", &version(last - 1), &[], "").code(200);
    assert_eq!(house.read("notes/Boat.md"), before);
    assert!(server.get(&read, history).code(200).json()["total"].as_u64() > Some(total), "the changes are kept");
    server.get(&read, "/api/v1/volumes/notes/history/None.md").refused(404, "no note");
    server.get(&read, "/api/v1/volumes/notes/history/..%2FBoat.md").refused(422, "path inside");
    // Blocks join to the text.
    let blocks = server.get(&read, "/api/v1/volumes/notes/blocks/Cells.md").code(200).json();
    let texts = blocks["blocks"].as_array().expect("a list").iter().map(|block| block["text"].as_str().expect("text"));
    assert_eq!(texts.collect::<String>().as_bytes(), house.read("notes/Cells.md"));
    let cells: Vec<&Value> = blocks["blocks"].as_array().expect("a list").iter().map(|block| &block["cell"]).collect();
    assert!(cells.contains(&&json!("python")) && cells.contains(&&Value::Null), "{blocks}");
    server.end();
}

#[test]
fn attachments_are_sent_in_ranges_and_never_overwritten_unseen() {
    let house = notes();
    let large = noise(7, 3_000_000);
    house.write("notes/Pictures/boat.png", &large);
    house.write("notes/page.html", b"<script>alert(1)</script>");
    house.write("other/secret.bin", b"secret");
    house.run(&["open", "other"]).good();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let own = token(&house, "own", &["--scopes", "read,write", "--volume", "notes"]);
    let server = Server::new(&house);
    let listed = server.get(&own, &format!("{ATTACHMENTS}?prefix=Pict")).code(200).json();
    assert_eq!((&listed["total"], &listed["attachments"][0]["bytes"]), (&json!(1), &json!(large.len())), "{listed}");
    let boat = format!("{ATTACHMENTS}/Pictures/boat.png");
    let whole = server.get(&own, &boat).code(200);
    assert_eq!(whole.header("Content-Type").as_deref(), Some("image/png"));
    assert_eq!(whole.header("X-Content-Type-Options").as_deref(), Some("nosniff"));
    assert!(whole.body == large, "other bytes");
    let tag = whole.header("ETag").expect("a tag");
    server.send(&own, "GET", &boat, &[("If-None-Match", &tag)], "").code(304);
    let part = |range: &str, headers: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("Range", range)]).collect();
        server.send(&own, "GET", &boat, &headers, "")
    };
    let middle = part("bytes=1048570-2097160", &[]).code(206);
    assert!(middle.body == large[1_048_570..=2_097_160], "other bytes");
    assert_eq!(middle.header("Content-Range"), Some(format!("bytes 1048570-2097160/{}", large.len())));
    assert!(part("bytes=-5", &[]).code(206).body == large[large.len() - 5..], "other bytes");
    assert_eq!(part("bytes=5-3", &[]).code(200).body.len(), large.len());
    assert_eq!(part("bytes=0-4", &[("If-Range", "\"old\"")]).code(200).body.len(), large.len());
    assert_eq!(part("bytes=0-4", &[("If-Range", &tag)]).code(206).body.len(), 5);
    part("bytes=3000000-", &[]).refused(416, "3000000 bytes");
    let head = server.send(&own, "HEAD", &boat, &[("Range", "bytes=0-4")], "").code(200);
    assert_eq!((head.header("Content-Length"), head.body.len()), (Some(large.len().to_string()), 0));
    // A page is never shown as one of the server's own.
    let page = server.get(&own, &format!("{ATTACHMENTS}/page.html")).code(200);
    assert_eq!(page.header("Content-Disposition").as_deref(), Some("attachment"));
    assert!(page.header("Content-Security-Policy").is_some_and(|policy| policy.contains("sandbox")), "{}", page.head);
    // Other volumes, notes and ways out.
    server.get(&own, "/api/v1/volumes/other/attachments/secret.bin").refused(403, "another volume");
    server.get(&own, "/api/v1/volumes/other/attachments").refused(403, "another volume");
    assert_eq!(server.get(&write, "/api/v1/volumes/other/attachments/secret.bin").code(200).body, b"secret");
    server.get(&own, &format!("{ATTACHMENTS}/Boat.md")).refused(404, "no attachment");
    for wrong in ["..%2Fother%2Fsecret.bin", "%2e%2e/other/secret.bin", "a%00b", "a%5Cb"] {
        let answer = server.get(&own, &format!("{ATTACHMENTS}/{wrong}"));
        assert!(matches!(answer.status, 404 | 422), "{wrong}: {answer:?}");
    }
    // Written only where nothing is, or over what was read.
    let new = format!("{ATTACHMENTS}/New/tide%20table.csv");
    put(&server, &own, &new, &[], b"1").refused(428, "If-None-Match");
    let made = put(&server, &own, &new, &[("If-None-Match", "*")], b"\xff\x001\n").code(201);
    assert_eq!(house.read("notes/New/tide table.csv"), b"\xff\x001\n");
    put(&server, &own, &new, &[("If-None-Match", "*")], b"2").refused(412, "exists already");
    let tag = made.header("ETag").expect("a tag");
    let written = put(&server, &own, &new, &[("If-Match", &tag)], b"12345").code(200);
    assert_eq!(house.read("notes/New/tide table.csv"), b"12345");
    put(&server, &own, &new, &[("If-Match", &tag)], b"lost").refused(412, "changed");
    house.write("notes/New/tide table.csv", b"from elsewhere");
    let tag = written.header("ETag").expect("a tag");
    put(&server, &own, &new, &[("If-Match", &tag)], b"lost").refused(412, "changed");
    assert_eq!(house.read("notes/New/tide table.csv"), b"from elsewhere");
    for guarded in [".git/hooks/pre-commit", ".vscode/tasks.json", "AGENTS.md", ".envrc"] {
        put(&server, &own, &format!("{ATTACHMENTS}/{guarded}"), &[("If-None-Match", "*")], b"x")
            .refused(403, "protected");
    }
    put(&server, &own, &format!("{ATTACHMENTS}/.hidden"), &[("If-None-Match", "*")], b"x").refused(422, "dot");
    put(&server, &own, &format!("{ATTACHMENTS}/a.py"), &[("If-None-Match", "*")], b"x").refused(422, "scripts");
    put(&server, &own, &new, &[("If-None-Match", "*")], &vec![0; 33 << 20]).refused(413, "at most");
    // Deleted ones are in the trash.
    server.send(&own, "DELETE", &new, &[("If-Match", "\"old\"")], "").refused(412, "changed");
    server.send(&own, "DELETE", &new, &[], "").code(204);
    server.get(&own, &new).refused(404, "no attachment");
    assert!(house.run(&["trash"]).good().text().contains("New/tide table.csv"));
    let read = token(&house, "reader", &[]);
    server.send(&read, "DELETE", &boat, &[], "").refused(403, "`write`");
    server.end();
}

#[test]
fn attachments_are_reached_from_the_command_line() {
    let house = House::with(&[("Boat.md", "# Boat\n")]);
    house.fed(&["attachments", "put", "a/b.bin"], b"\x00\xff1234").good();
    assert_eq!(house.run(&["attachments", "get", "a/b.bin"]).good().out, b"\x00\xff1234");
    let part = ["attachments", "get", "notes:a/b.bin", "--from", "2", "--length", "3"];
    assert_eq!(house.run(&part).good().out, b"123");
    let known = house.json(&["attachments", "get", "a/b.bin"]);
    house.fed(&["attachments", "put", "a/b.bin"], b"lost").refused(2, "already exists");
    let version = known["version"].as_str().expect("a version");
    house.fed(&["attachments", "put", "a/b.bin", "--if-version", version], b"new").good();
    house.fed(&["attachments", "put", "a/b.bin", "--if-version", version], b"lost").refused(2, "has changed");
    house.fed(&["attachments", "put", "../b.bin"], b"x").refused(2, "");
    house.fed(&["attachments", "put", "Boat.md"], b"x").refused(2, "aren't attachments");
    house.run(&["attachments", "get", "Boat.md"]).refused(2, "no attachment");
    house.run(&["attachments", "peel"]).refused(2, "list, get, put or remove");
    assert!(house.run(&["attachments"]).good().text().contains("notes:a/b.bin"));
    house.run(&["attachments", "remove", "a/b.bin"]).good();
    assert_eq!(house.run(&["attachments"]).good().text(), "");
}

/// A house with a collection of three files, and another volume with one.
pub(super) fn house_with_collections() -> House {
    let house = House::with(&[
        ("a.md", "---\nscore: 3\n---\n"),
        ("b.md", "---\nscore: 5\n---\n"),
        ("Shelf.base", "views:\n  - type: table\n    name: all\n    order: [file.name, score]\n"),
    ]);
    house.write("other/Hidden.base", b"views:\n  - type: table\n    name: all\n");
    house.run(&["open", "other"]).good();
    house
}

#[test]
fn collections_are_evaluated() {
    let house = house_with_collections();
    let own = token(&house, "own", &["--volume", "notes"]);
    let server = Server::new(&house);
    let listed = server.get(&own, "/api/v1/volumes/notes/collections").code(200).json();
    assert_eq!(listed["collections"], json!(["Shelf.base"]));
    let path = "/api/v1/volumes/notes/collections/Shelf.base";
    let rows = server.get(&own, &format!("{path}?view=all")).code(200).json();
    assert_eq!(rows["total"], 3, "{rows}");
    let one = rows["rows"].as_array().expect("a list").iter().find(|row| row["path"] == "b.md").expect("b.md");
    assert!(one["cells"].to_string().contains('5'), "{rows}");
    assert_eq!(server.get(&own, &format!("{path}?limit=1&cursor=2")).code(200).json()["rows"][0]["path"], "b.md");
    server.get(&own, &format!("{path}?view=none")).refused(422, "no view");
    server.get(&own, "/api/v1/volumes/notes/collections/Hidden.base").refused(404, "no collection");
    server.get(&own, "/api/v1/volumes/other/collections/Hidden.base").refused(403, "another volume");
    server.end();
}

#[test]
fn the_documentation_is_one_page_without_scripts() {
    let house = notes();
    let server = Server::new(&house);
    let page = server.get("", "/api/v1/docs").code(200);
    assert_eq!(page.header("Content-Type").as_deref(), Some("text/html; charset=utf-8"));
    let policy = page.header("Content-Security-Policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = String::from_utf8(page.body).expect("text");
    let described = server.get("", "/api/v1/openapi.json").code(200).json();
    for path in described["paths"].as_object().expect("paths").keys() {
        assert!(text.contains(&format!("<code>{path}</code>")), "{path}");
    }
    assert!(!text.contains("<script") && !text.contains("http://") && !text.contains("https://"), "{text}");
    server.get("", "/api/v1/docs.css").code(200);
    server.send("", "POST", "/api/v1/docs", &[], "").refused(401, "Bearer");
    let post = &described["paths"]["/api/v1/tasks"]["post"]["parameters"];
    assert!(post.to_string().contains("idempotency-key"), "{post}");
    // It says which paths a note can have.
    let parameters = &described["paths"]["/api/v1/volumes/{volume}/notes/{path}"]["get"]["parameters"];
    let path = parameters.as_array().expect("parameters").iter().find(|one| one["name"] == "path").expect("a path");
    let pattern = path["schema"]["pattern"].as_str().expect("a pattern");
    let pattern = regex_lite::Regex::new(pattern).expect("a regular expression");
    for (name, is_one) in [
        ("Ideas/..x/.a.md", true),
        ("a b", true),
        ("../a.md", false),
        ("a//b", false),
        (".", false),
        ("a\\b", false),
        ("a\n", false),
        ("", false),
    ] {
        assert_eq!(pattern.is_match(name), is_one, "{name:?}");
    }
    server.end();
}

#[test]
fn a_revoked_token_gets_no_more_events() {
    let house = notes();
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let mut stream = server.connect();
    stream.write_all(request_text(&server.address, &read, "GET", "/api/v1/events", &[], "").as_bytes()).expect("sent");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).expect("a line");
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    house.run(&["new", "One", "--volume", "notes", "--text", "x"]).good();
    while !line.contains("One.md") {
        line.clear();
        assert!(stream.read_line(&mut line).expect("a line in time") > 0, "the stream ended");
    }
    house.run(&["tokens", "revoke", "reader"]).good();
    house.run(&["new", "Two", "--volume", "notes", "--text", "x"]).good();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("an end in time");
    assert!(!rest.contains("Two.md"), "{rest}");
    server.end();
}

#[test]
fn files_that_hold_keys_are_not_served() {
    let house = notes();
    for (name, text) in [("notes/.env", "KEY=1\n"), ("notes/id_rsa", "key\n"), ("notes/plain.txt", "words\n")] {
        house.write(name, text.as_bytes());
    }
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    until("the files are listed", || {
        server.get(&write, ATTACHMENTS).code(200).json()["attachments"].to_string().contains("plain.txt")
    });
    let listed = server.get(&write, ATTACHMENTS).code(200).json()["attachments"].to_string();
    assert!(!listed.contains(".env") && !listed.contains("id_rsa"), "{listed}");
    for name in [".env", "id_rsa"] {
        let path = format!("{ATTACHMENTS}/{name}");
        server.get(&write, &path).refused(403, "commonly holds keys or passwords");
        put(&server, &write, &path, &[("If-Match", "*")], b"KEY=2\n").refused(403, "commonly holds keys");
        server.send(&write, "DELETE", &path, &[], "").refused(403, "commonly holds keys");
    }
    assert_eq!(house.read("notes/.env"), b"KEY=1\n");
    server.get(&write, &format!("{ATTACHMENTS}/plain.txt")).code(200);
}

#[test]
fn a_token_for_one_volume_sees_no_tokens_and_no_log() {
    let house = notes();
    let narrow = token(&house, "narrow", &["--volume", "notes", "--scopes", "read,admin"]);
    let wide = token(&house, "wide", &["--scopes", "admin"]);
    let server = Server::new(&house);
    let listed = server.get(&wide, "/api/v1/tokens").code(200).json();
    let ids: Vec<&str> =
        listed["tokens"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids.len(), 2, "{listed}");
    for path in ["/api/v1/tokens", "/api/v1/audit"] {
        server.get(&narrow, path).refused(403, "a token for one volume can't see or change tokens");
    }
    for id in ids {
        server.send(&narrow, "DELETE", &format!("/api/v1/tokens/{id}"), &[], "").refused(403, "a token for one volume");
    }
    server.get(&wide, "/api/v1/audit").code(200);
}

#[test]
fn a_task_that_names_no_volume_of_several_is_refused_at_once() {
    let house = notes();
    house.write("more/a.md", b"# A\n");
    house.run(&["open", "more"]).good();
    let agent = token(&house, "agent", &["--scopes", "agent"]);
    let server = Server::new(&house);
    let post = |body: Value| {
        server.send(&agent, "POST", "/api/v1/tasks", &[("Content-Type", "application/json")], &body.to_string())
    };
    post(json!({"description": "x"})).refused(422, "say in `project` which volume the task is about: ");
    post(json!({"description": "x", "project": "nope"})).refused(404, "there is no volume “nope” for `project`");
    post(json!({"description": "x", "project": "more"})).code(201);
}

#[test]
fn todos_and_runs_come_in_pages() {
    let house = House::with(&[("list.md", "- [ ] one\n- [ ] two\n- [ ] three\n")]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let page = |query: &str| server.get(&read, &format!("/api/v1/todos?{query}")).code(200).json();
    let first = page("limit=2");
    // A position is a cursor, too.
    let (second, third) = (page(&format!("limit=2&cursor={}", first["next_cursor"])), page("limit=2&cursor=2"));
    assert_eq!((&first["total"], &second["next_cursor"], &second), (&json!(3), &Value::Null, &third));
    let texts: Vec<&Value> = [&first, &second]
        .iter()
        .flat_map(|page| page["todos"].as_array().expect("a list"))
        .map(|one| &one["text"])
        .collect();
    assert_eq!(texts, ["one", "two", "three"]);
    let runs = server.get(&read, "/api/v1/runs?cursor=5&limit=500").code(200).json();
    assert_eq!((&runs["total"], &runs["runs"]), (&json!(0), &json!([])));
    server.get(&read, "/api/v1/runs?limit=501").refused(400, "`limit` is a number from 1 to 500");
}

/// Returns what `name` is in each item of a list.
pub(super) fn fields<'v>(items: &'v [Value], name: &str) -> Vec<&'v str> {
    items.iter().map(|item| item[name].as_str().unwrap_or_else(|| panic!("no {name}: {item}"))).collect()
}

#[test]
fn pages_begin_after_the_item_that_was_read_last_whatever_happens_meanwhile() {
    let house = House::with(&[("b.md", "b"), ("c.md", "c"), ("d.md", "d"), ("e.md", "e"), ("f.md", "f")]);
    for name in ["more", "other"] {
        house.write(&format!("{name}/x.md"), b"x");
        house.run(&["open", name]).good();
    }
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let admin = token(&house, "admin", &["--scopes", "admin"]);
    for name in ["one", "two", "three", "four"] {
        token(&house, name, &[]);
    }
    let server = Server::new(&house);
    let list = "/api/v1/volumes/notes/notes?limit=2";
    let first = server.get(&write, list).code(200).json();
    assert_eq!(fields(first["notes"].as_array().expect("a list"), "path"), ["b.md", "c.md"]);
    let second = || {
        let page = server.get(&write, &format!("{list}&cursor={}", first["next_cursor"])).code(200).json();
        fields(page["notes"].as_array().expect("a list"), "path").join(" ")
    };
    assert_eq!(second(), "d.md e.md");
    // One before, then none of those that were read.
    server.send(&write, "PUT", &format!("{NOTE}a.md"), &[("If-None-Match", "*")], "a").code(201);
    assert_eq!(second(), "d.md e.md");
    server.send(&write, "DELETE", &format!("{NOTE}b.md"), &[], "").code(204);
    assert_eq!(second(), "d.md e.md");
    server.send(&write, "DELETE", &format!("{NOTE}a.md"), &[], "").code(204);
    server.send(&write, "PUT", &format!("{NOTE}bb.md"), &[("If-None-Match", "*")], "b").code(201);
    server.send(&write, "DELETE", &format!("{NOTE}c.md"), &[], "").code(204);
    assert_eq!(second(), "d.md e.md");
    // Tokens: the ones that were read are revoked.
    let first = server.get(&admin, "/api/v1/tokens?limit=3").code(200).json();
    assert_eq!(first["total"], 6, "{first}");
    assert_eq!(fields(first["tokens"].as_array().expect("a list"), "name"), ["writer", "admin", "one"]);
    house.run(&["tokens", "revoke", "one"]).good();
    let rest = format!("/api/v1/tokens?limit=3&cursor={}", first["next_cursor"]);
    let rest = server.get(&admin, &rest).code(200).json();
    assert_eq!(fields(rest["tokens"].as_array().expect("a list"), "name"), ["two", "three", "four"]);
    assert_eq!(rest["next_cursor"], Value::Null);
    // Volumes, one by one, and a token that sees only one.
    let volumes = pages(&server, &write, "/api/v1/volumes", "volumes", 1);
    assert_eq!(fields(&volumes, "name"), ["more", "notes", "other"]);
    let own = token(&house, "own", &["--volume", "other"]);
    assert_eq!(fields(&pages(&server, &own, "/api/v1/volumes", "volumes", 1), "name"), ["other"]);
    for wrong in ["limit=0", "limit=1001", "cursor=-1", "cursor=x", "cursor=9223372036854775808", "page=2"] {
        server.get(&write, &format!("/api/v1/volumes?{wrong}")).refused(400, "");
    }
    server.end();
}

#[test]
fn search_comes_in_pages_and_says_what_a_score_is_made_of() {
    let house = notes();
    for number in 0..25 {
        house.write(&format!("notes/Lamp {number}.md"), format!("# Lamp {number}\n\nA paraffin lamp.\n").as_bytes());
    }
    let read = token(&house, "reader", &[]);
    let own = token(&house, "own", &["--volume", "notes"]);
    let server = Server::new(&house);
    for token in [&read, &own] {
        let found = pages(&server, token, "/api/v1/search?query=paraffin%20path:lamp", "hits", 10);
        let paths: BTreeSet<&str> = fields(&found, "path").into_iter().collect();
        assert_eq!((found.len(), paths.len()), (25, 25), "{paths:?}");
        assert!(paths.iter().all(|path| path.starts_with("Lamp ")), "{paths:?}");
    }
    let whole = server.get(&read, "/api/v1/search?query=paraffin%20path:lamp&limit=100").code(200).json();
    assert_eq!((whole["hits"].as_array().map(Vec::len), &whole["next_cursor"]), (Some(25), &Value::Null));
    server.get(&read, "/api/v1/search?query=paraffin%20path:lamp&cursor=9223372036854775808").refused(400, "`cursor`");
    // Each hit with the parts of its score, as the command line explains them.
    let found = server.get(&read, "/api/v1/search?query=solar%20panel").code(200).json();
    let hit = &found["hits"][0];
    assert_eq!(hit["path"], "Boat.md", "{hit}");
    let parts = hit["parts"].as_object().expect("parts");
    assert!(!parts.is_empty() && parts.values().all(Value::is_number), "{hit}");
    assert!(hit["score"].is_number() && hit["why"].as_str().is_some_and(|why| !why.is_empty()), "{hit}");
    let lines = house.run(&["search", "--explain", "--json", "solar panel"]).code(0).json();
    let names = |hit: &Value| hit["parts"].as_object().expect("parts").keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(hit), names(&lines[0]));
    server.end();
}

#[test]
fn outputs_come_in_pages_that_are_never_too_long() {
    const CELLS: usize = 25;
    let house = notes();
    let cells = "```python\nprint('x' * 95_000)\n```\n\n".repeat(CELLS);
    house.write("notes/Long.md", format!("# Long\n\n{cells}").as_bytes());
    let run = token(&house, "runner", &["--scopes", "read,run"]);
    let server = Server::new(&house);
    server.post(&run, "/api/v1/cells/run", &json!({"volume": "notes", "path": "Long.md"})).code(200);
    let outputs = "/api/v1/cells/outputs?volume=notes&path=Long.md";
    let first = server.get(&run, outputs).code(200);
    assert!((1_000_000..2_100_000).contains(&first.body.len()), "{} bytes", first.body.len());
    let first = first.json();
    assert!(first["next_cursor"].is_u64() && first["total"] == CELLS, "{}", first["next_cursor"]);
    for limit in [7, 1_000] {
        let all = pages(&server, &run, outputs, "cells", limit);
        let numbers: Vec<usize> = all.iter().map(|cell| cell["cell"].as_u64().expect("a number") as usize).collect();
        assert_eq!(numbers, (1..=CELLS).collect::<Vec<_>>(), "{limit}");
        assert!(all.iter().all(|cell| cell.to_string().len() > 90_000), "an output is missing");
    }
    server.end();
}

#[test]
fn the_log_of_requests_is_read_back_to_its_beginning() {
    let line = |at: u64, length: usize| {
        let path = format!("/{at}/{}", "x".repeat(length));
        json!({"at": at, "method": "GET", "path": path, "status": 200, "millis": 1}).to_string() + "\n"
    };
    // In the second case the log is full: it becomes an older one with the first request, and so between two pages.
    for length in [100, 1_900] {
        let house = notes();
        let admin = token(&house, "admin", &["--scopes", "admin"]);
        let lines = |numbers: std::ops::RangeInclusive<u64>| numbers.map(|at| line(at, length)).collect::<String>();
        house.write("W/access-log.old.jsonl", lines(1..=2_000).as_bytes());
        house.write("W/access-log.jsonl", lines(2_001..=6_500).as_bytes());
        house.write("W/access-without-token.jsonl", lines(6_501..=6_600).as_bytes());
        let server = Server::new(&house);
        let all = pages(&server, &admin, "/api/v1/audit", "entries", 1_000);
        let times: Vec<u64> = all.iter().map(|entry| entry["at"].as_u64().expect("a time")).collect();
        assert!(times.iter().copied().eq((1..=6_600).rev()), "{} entries from {:?}", times.len(), times.last());
        assert_eq!(house.path("W/access-log.old.2.jsonl").exists(), length == 1_900);
        // Requests of this server are in it, too, and come first.
        let newest = server.get(&admin, "/api/v1/audit?limit=1").code(200).json();
        let path = newest["entries"][0]["path"].as_str().expect("a path");
        assert!(path.starts_with("/api/v1/audit?") && newest["next_cursor"].is_string(), "{newest}");
        let gone = server.get(&admin, "/api/v1/audit?cursor=t1-999999999999999n1-1").code(200).json();
        assert_eq!(gone, json!({"entries": []}));
        for wrong in ["", "1-1", "t-1", "t1-x", "n-1-1", "t1-1-1", "n1-1t1-1", "t1-9223372036854775808"] {
            server.get(&admin, &format!("/api/v1/audit?cursor={wrong}")).refused(400, "`cursor`");
        }
        server.end();
    }
}

#[test]
fn blocks_have_ids_that_stay_and_join_to_the_text() {
    let house = notes();
    house.write("other/x.md", b"x\n");
    house.run(&["open", "other"]).good();
    let read = token(&house, "reader", &[]);
    let other = token(&house, "other", &["--volume", "other"]);
    let server = Server::new(&house);
    let path = "/api/v1/volumes/notes/blocks/Cells.md";
    let whole = server.get(&read, path).code(200).json();
    let blocks = whole["blocks"].as_array().expect("a list").clone();
    assert_eq!(whole["total"], blocks.len(), "{whole}");
    let (mut text, mut ids) = (String::new(), BTreeSet::new());
    for block in &blocks {
        assert_eq!(block["at"], text.len(), "{block}");
        text += block["text"].as_str().expect("a text");
        ids.insert(block["id"].as_str().expect("an id").to_owned());
    }
    assert_eq!((text.as_bytes(), ids.len()), (&*house.read("notes/Cells.md"), blocks.len()));
    let cells: Vec<&Value> = blocks.iter().filter(|block| block["cell"] == "python").collect();
    assert!(cells.len() == 1 && cells[0]["text"].as_str().is_some_and(|text| text.contains("6 * 7")), "{whole}");
    assert!(blocks.len() > 1);
    assert_eq!(pages(&server, &read, path, "blocks", 1), blocks);
    // A block that isn't changed keeps its id, wherever it is then.
    house.edit("Cells.md", 0, 0, "New.\n\n");
    let later = server.get(&read, path).code(200).json();
    let id = &cells[0]["id"];
    let same = later["blocks"].as_array().expect("a list").iter().find(|block| block["id"] == *id);
    assert!(same.is_some_and(|same| same["text"] == cells[0]["text"] && same["at"] != cells[0]["at"]), "{later}");
    server.get(&other, path).refused(403, "another volume");
    server.get(&read, "/api/v1/volumes/notes/blocks/None.md").refused(404, "no note");
    server.get(&read, "/api/v1/volumes/notes/blocks/..%2FBoat.md").refused(422, "path inside");
    server.end();
}

/// Returns the request to which a link of the description leads from an answer: its method, path and headers.
fn linked_request(
    described: &Value,
    link: &Value,
    (asked, answer): (&[(&str, &str)], &Answer),
) -> (String, String, Vec<(String, String)>) {
    let id = &link["operationId"];
    let paths = described["paths"].as_object().expect("paths").iter();
    let mut operations = paths.flat_map(|(path, all)| {
        let all = all.as_object().expect("methods");
        all.iter().map(move |(method, operation)| (path, method, operation))
    });
    let (path, method, _) = operations.find(|(.., operation)| operation["operationId"] == *id).expect("an operation");
    let (mut path, mut headers) = (path.clone(), Vec::new());
    for (name, place) in link["parameters"].as_object().expect("parameters") {
        let place = place.as_str().expect("an expression");
        let value = if let Some(pointer) = place.strip_prefix("$response.body#") {
            let body = answer.json();
            let value = body.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}: {body}"));
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        } else if let Some(header) = place.strip_prefix("$response.header.") {
            answer.header(header).unwrap_or_else(|| panic!("no {header}: {}", answer.head))
        } else {
            let name = place.strip_prefix("$request.path.").expect("an expression that the test knows");
            asked.iter().find(|(known, _)| *known == name).expect("a part of the path").1.to_owned()
        };
        match name.strip_prefix("header.") {
            Some(header) => headers.push((header.to_owned(), value)),
            None => path = path.replace(&format!("{{{name}}}"), &value.replace(' ', "%20")),
        }
    }
    assert!(!path.contains('{'), "{path}");
    (method.to_uppercase(), path, headers)
}

#[test]
fn links_of_the_description_lead_to_the_next_request() {
    let house = notes();
    let all = token(&house, "all", &["--scopes", "read,write,agent"]);
    let server = Server::new(&house);
    let described = server.get("", "/api/v1/openapi.json").code(200).json();
    let link = |path: &str, method: &str, status: &str, to: &str| {
        let links = &described["paths"][path][method]["responses"][status]["links"];
        assert!(links[to].is_object(), "{method} {path}: {links}");
        links[to].clone()
    };
    let follow = |link: &Value, asked: &[(&str, &str)], answer: &Answer, body: &str| {
        let (method, path, headers) = linked_request(&described, link, (asked, answer));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        server.send(&all, &method, &path, &headers, body)
    };
    // Volumes, the notes of one, a note, and a new text for it.
    let volumes = server.get(&all, "/api/v1/volumes").code(200);
    let listed = follow(&link("/api/v1/volumes", "get", "200", "list_notes"), &[], &volumes, "").code(200);
    let asked = [("volume", "notes"), ("path", "Boat.md")];
    let notes_path = "/api/v1/volumes/{volume}/notes";
    let note = follow(&link(notes_path, "get", "200", "read_note"), &asked, &listed, "").code(200);
    assert_eq!(note.body, house.read("notes/Boat.md"));
    let note_path = "/api/v1/volumes/{volume}/notes/{path}";
    let written = follow(&link(note_path, "get", "200", "write_note"), &asked, &note, "# New\n").code(200);
    assert_eq!(house.read("notes/Boat.md"), b"# New\n");
    let again = follow(&link(note_path, "put", "200", "read_note"), &[], &written, "").code(200);
    assert_eq!(again.body, b"# New\n");
    let versions = "/api/v1/volumes/{volume}/history/{path}";
    let history = server.get(&all, "/api/v1/volumes/notes/history/Boat.md").code(200);
    follow(&link(versions, "get", "200", "read_version"), &asked, &history, "").code(200);
    // What was added or begun.
    let new = json!({"text": "Two coats are enough", "goal": "Paint the hull"});
    let kept = server.post(&all, "/api/v1/memory", &new).code(201);
    let shown = follow(&link("/api/v1/memory", "post", "201", "show_memory"), &[], &kept, "").code(200).json();
    assert_eq!(shown["learnings_or_issues"], "Two coats are enough", "{shown}");
    let task = server.post(&all, "/api/v1/tasks", &json!({"description": "x", "project": "notes"})).code(201);
    let status = follow(&link("/api/v1/tasks", "post", "201", "task_status"), &[], &task, "").code(200).json();
    assert_eq!(status["id"], task.json()["id"]);
    server.end();
}

/// What a client sends wrong is refused in a sentence that names it, and nothing is kept of it.
#[test]
fn requests_that_do_not_fit_are_refused_by_name() {
    let house = notes();
    let all = token(&house, "all", &["--scopes", "read,write,run"]);
    let server = Server::new(&house);
    server.get(&all, "/api/v1/volumes?limit=many").refused(400, "the query doesn't fit: limit: ");
    server.get(&all, "/api/v1/search?query=hull&order=up").refused(400, "unknown field `order`");
    let json = [("Content-Type", "application/json")];
    server.send(&all, "POST", "/api/v1/todos/check", &json, "{\"volume\":").refused(400, "the body isn't JSON");
    // A search that reads a filter as a word says so, as on the command line.
    let odd = server.get(&all, "/api/v1/search?query=hull%20in:nowhere").code(200).json();
    assert!(odd["messages"].as_str().is_some_and(|said| said.contains("no “nowhere”")), "{odd}");
    let nowhere = "/api/v1/volumes/nowhere/notes/a.md";
    server.send(&all, "PUT", nowhere, &[("If-Match", "\"x\"")], "lost").refused(404, "there is no volume nowhere");
    let zipped = [("If-None-Match", "*"), ("Content-Encoding", "gzip")];
    for path in ["/api/v1/volumes/notes/notes/Zip.md", "/api/v1/volumes/notes/attachments/zip.bin"] {
        server.send(&all, "PUT", path, &zipped, "x").refused(415, "without Content-Encoding");
        server.get(&all, path).code(404);
    }
    let through = "/api/v1/volumes/notes/notes/Boat.md/inner.md";
    server.send(&all, "PUT", through, &[("If-None-Match", "*")], "lost").refused(422, "this is a file, not a folder");
    server.get(&all, through).code(404);
    let cells = |more: (&str, Value)| {
        let mut body = json!({"volume": "notes", "path": "Cells.md"});
        body[more.0] = more.1;
        server.post(&all, "/api/v1/cells/run", &body)
    };
    cells(("timeout_seconds", json!(0))).refused(422, "`timeout_seconds` is a number from 1 to 3600");
    cells(("timeout_seconds", json!(3_601))).refused(422, "`timeout_seconds` is a number from 1 to 3600");
    assert_eq!(cells(("timeout_seconds", json!(60))).code(200).json()["ok"], true);
    let described = server.get("", "/api/v1/openapi.json").code(200).json();
    let put = &described["paths"]["/api/v1/volumes/{volume}/attachments/{path}"]["put"];
    let body = &put["requestBody"]["content"]["application/octet-stream"]["schema"];
    assert_eq!((&body["type"], &body["format"]), (&json!("string"), &json!("binary")), "{body}");
    server.end();
}
