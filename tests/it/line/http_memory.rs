//! Memory and traces over `/api/v1`.

use super::http_api::{fields, pages};
use super::http_server::{Server, notes, token};
use super::{agents, memory};
use serde_json::{Value, json};

#[test]
fn memory_is_listed_added_and_forgotten() {
    let house = notes();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let read = token(&house, "reader", &[]);
    let server = Server::new(&house);
    let new = json!({"text": "Two coats are enough", "goal": "Paint the hull", "outcome": "success"});
    server.post(&read, "/api/v1/memory", &new).refused(403, "`write`");
    let id = server.post(&write, "/api/v1/memory", &new).code(201).json()["id"].as_str().expect("an id").to_owned();
    let shown = server.get(&read, &format!("/api/v1/memory/{id}")).code(200).json();
    assert_eq!(shown["learnings_or_issues"], "Two coats are enough", "{shown}");
    // An id is the whole id: a beginning of one is none.
    let beginning = &id[..id.len() - 1];
    server.send(&write, "DELETE", &format!("/api/v1/memory/{beginning}"), &[], "").refused(404, "nothing");
    server.send(&read, "DELETE", &format!("/api/v1/memory/{id}"), &[], "").refused(403, "`write`");
    server.post(&write, "/api/v1/memory", &json!({"text": " "})).refused(409, "`text`");
    server.post(&write, "/api/v1/memory", &json!({"text": "x", "outcome": "great"})).refused(422, "`outcome`");
    server.get(&read, "/api/v1/memory?project=nowhere").refused(404, "no volume nowhere");
    server.send(&write, "DELETE", &format!("/api/v1/memory/{id}"), &[], "").code(204);
    assert_eq!(server.get(&read, "/api/v1/memory").code(200).json()["total"], 0);
    server.end();
}

#[test]
fn traces_are_listed_pinned_and_forgotten() {
    let (address, _) = memory::reporter();
    let csv = "day,sold\n1,517\n";
    let house = agents::house(&address, &[("a.md", "# A\n"), ("data/2026-10.csv", csv)]);
    house.run(&["ask", "Write the report for October 2026 into reports/2026-10.md"]).good();
    let all = token(&house, "all", &["--scopes", "read,write,approve"]);
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let server = Server::new(&house);
    let listed = server.get(&all, "/api/v1/traces").code(200).json();
    let trace = &listed["traces"][0];
    assert_eq!(
        (&listed["total"], &trace["steps"], &trace["pinned"]),
        (&json!(1), &json!(2), &json!(false)),
        "{listed}"
    );
    // The run has steps, which come in pages, too.
    let run = server.get(&all, "/api/v1/runs").code(200).json()["runs"][0]["id"].as_str().expect("an id").to_owned();
    let steps = format!("/api/v1/runs/{run}/steps");
    let whole = server.get(&all, &steps).code(200).json();
    assert!(whole["total"].as_u64() >= Some(3) && whole["next_cursor"].is_null(), "{whole}");
    assert_eq!(Value::from(pages(&server, &all, &steps, "steps", 1)), whole["steps"]);
    server.get(&all, &format!("{steps}?limit=1001")).refused(400, "from 1 to 1000");
    let name = trace["name"].as_str().expect("a name").to_owned();
    let path = format!("/api/v1/traces/{name}");
    let shown = server.get(&all, &path).code(200).json();
    assert!(shown["text"].as_str().is_some_and(|text| text.contains("reports/")), "{shown}");
    // To trust steps is a decision.
    server.send(&write, "PUT", &format!("{path}/pin"), &[], "").refused(403, "`approve`");
    let pinned = server.send(&all, "PUT", &format!("{path}/pin"), &[], "").code(200).json();
    assert_eq!((&pinned["pinned"], &pinned["follows"]), (&json!(true), &json!(true)), "{pinned}");
    let unpinned = server.send(&all, "DELETE", &format!("{path}/pin"), &[], "").code(200).json();
    assert_eq!(unpinned["pinned"], false, "{unpinned}");
    server.get(&all, &format!("/api/v1/traces/{}", &name[..name.len() - 1])).refused(404, "no such trace");
    server.send(&all, "PUT", "/api/v1/traces/none/pin", &[], "").refused(404, "no such trace");
    server.send(&write, "DELETE", &path, &[], "").code(204);
    server.get(&all, &path).refused(404, "no such trace");
    assert_eq!(server.get(&all, "/api/v1/traces").code(200).json(), json!({"traces": [], "total": 0}));
    server.end();
}

#[test]
fn what_is_remembered_is_recalled_for_a_goal() {
    let house = notes();
    house.write("other/x.md", b"x\n");
    house.run(&["open", "other"]).good();
    let write = token(&house, "writer", &["--scopes", "read,write"]);
    let own = token(&house, "own", &["--volume", "other"]);
    let run = token(&house, "runner", &["--scopes", "run"]);
    let server = Server::new(&house);
    for (goal, text) in [("Paint the hull", "Two coats are enough"), ("Water the tomatoes", "Never do it at noon")] {
        let new = json!({"text": text, "goal": goal, "outcome": "success", "project": "notes"});
        server.post(&write, "/api/v1/memory", &new).code(201);
    }
    let recall = "/api/v1/memory/recall?goal=Paint%20the%20hull%20of%20the%20boat";
    let recalled = server.get(&write, recall).code(200).json();
    let first = &recalled["memories"][0];
    assert_eq!(first["learned"], "Two coats are enough", "{recalled}");
    assert_eq!(first["kind"], "experience", "{recalled}");
    assert!(first["score"].is_number() && !first["why"].as_str().unwrap_or_default().is_empty(), "{recalled}");
    assert!(!recalled.to_string().contains("noon"), "{recalled}");
    // It's what the command line says, and the name leads to all of it.
    let lines = house.run(&["memory", "bearing", "Paint the hull of the boat", "--json"]).good().lines();
    assert_eq!(fields(&lines, "name"), fields(recalled["memories"].as_array().expect("a list"), "name"));
    let name = first["name"].as_str().expect("a name");
    let shown = server.get(&write, &format!("/api/v1/memory/{name}")).code(200).json();
    assert_eq!(shown["primary_goal"], "Paint the hull", "{shown}");
    // Of one volume, and of none that the token doesn't reach.
    let nothing = json!({"memories": []});
    assert_eq!(server.get(&write, &format!("{recall}&project=other")).code(200).json(), nothing);
    assert_eq!(server.get(&own, recall).code(200).json(), nothing);
    server.get(&own, &format!("{recall}&project=notes")).refused(403, "another volume");
    server.get(&write, &format!("{recall}&project=nowhere")).refused(404, "no volume nowhere");
    server.get(&run, recall).refused(403, "`read`");
    server.get(&write, "/api/v1/memory/recall").refused(400, "goal");
    for wrong in ["", "%20", "a%00b"] {
        server.get(&write, &format!("/api/v1/memory/recall?goal={wrong}")).refused(422, "`goal`");
    }
    server.end();
}
