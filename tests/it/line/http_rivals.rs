//! What clients of `tracebook serve` and `tracebook mcp` keep that write at the same time: each change is made whole,
//! or its client is told that it wasn't.

use super::http_server::{Answer, NOTE, Server, notes, token};
use super::mcp_server::Client;
use serde_json::json;

#[test]
fn notes_deleted_at_the_same_time_are_all_deleted() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let paths: Vec<String> = (0..8).map(|at| format!("{NOTE}Old {at}.md").replace(' ', "%20")).collect();
    for path in &paths {
        server.send(&write, "PUT", path, &[("If-None-Match", "*")], "text\n").code(201);
    }
    let delete = |path: &str| server.send(&write, "DELETE", path, &[], "");
    let at_once: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> = paths.iter().map(|path| scope.spawn(move || delete(path))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    // Files of one request are moved at a time, and the others wait for that.
    assert!(at_once.iter().all(|answer| answer.status == 204), "{at_once:?}");
    let left: Vec<&String> = paths.iter().filter(|path| server.get(&write, path).status != 404).collect();
    assert!(left.is_empty(), "{left:?}");
    server.end();
}

#[test]
fn of_a_change_and_a_deletion_of_the_same_version_one_is_made() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    for round in 0..6 {
        let path = format!("{NOTE}Round{round}.md");
        let made = server.send(&write, "PUT", &path, &[("If-None-Match", "*")], "first\n").code(201);
        let tag = made.header("ETag").expect("a tag");
        let (server, write, path, tag) = (&server, &write, &path, &tag);
        let (changed, deleted) = std::thread::scope(|scope| {
            let change = scope.spawn(move || server.send(write, "PUT", path, &[("If-Match", tag)], "second\n").status);
            let delete = scope.spawn(move || server.send(write, "DELETE", path, &[("If-Match", tag)], "").status);
            (change.join().expect("an answer"), delete.join().expect("an answer"))
        });
        match (changed, deleted) {
            (200, 404 | 412) => assert_eq!(server.get(write, path).code(200).body, b"second\n"),
            (404 | 412, 204) => assert_eq!(server.get(write, path).status, 404),
            both => panic!("{both:?} in round {round}"),
        }
    }
    server.end();
}

#[test]
fn texts_added_at_the_same_time_all_stand_at_the_end() {
    let house = notes();
    house.fed(&["edit", "Cells.md", "--text"], b"no line ends here").good();
    let server = Server::new(&house);
    let mut client = Client::new(&house, &["--allow-write"]);
    let call = |at: usize| json!({"name": "append_to_note", "arguments": {"note": "Cells", "text": format!("- {at}")}});
    let calls: Vec<u64> = (0..8).map(|at| client.begin("tools/call", call(at))).collect();
    for id in calls {
        let answer = match client.said.iter().position(|said| said["id"] == id) {
            Some(at) => client.said.remove(at),
            None => client.answer(id),
        };
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }
    let text = String::from_utf8(house.read("notes/Cells.md")).expect("a text");
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.remove(0), "no line ends here", "{text}");
    lines.sort_unstable();
    assert_eq!(lines, (0..8).map(|at| format!("- {at}")).collect::<Vec<_>>(), "{text}");
    server.end();
}

#[test]
fn an_edit_for_a_version_is_made_in_that_version_only() {
    let house = notes();
    let version = house.json(&["cat", "Boat.md"])["version"].as_str().expect("a version").to_owned();
    let line = |insert: &str| json!({"at": 0, "insert": insert, "version": version}).to_string();
    house.fed(&["edit", "Boat.md"], line("once ").as_bytes()).good();
    house.fed(&["edit", "Boat.md"], line("twice ").as_bytes()).refused(2, "has changed");
    assert!(house.read("notes/Boat.md").starts_with(b"once # Boat"));
}

#[test]
fn agents_of_all_volumes_are_listed_once() {
    let house = notes();
    house.write("other/Note.md", b"# Note\n");
    house.run(&["open", "other"]).code(0);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    // The interface of the seed has no parameter for this.
    let agents = server.get(&read, "/api/v1/agents").code(200).json();
    let ids: Vec<&str> = agents.as_array().expect("a list").iter().filter_map(|agent| agent["id"].as_str()).collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert!(ids.contains(&"assistant") && once.len() == ids.len(), "{ids:?}");
    assert_eq!(server.get(&read, "/api/v1/agents?project=other").code(200).json()[0]["id"], "assistant");
    server.get(&read, "/api/v1/agents?project=nowhere").refused(404, "no volume nowhere");
    server.end();
}
