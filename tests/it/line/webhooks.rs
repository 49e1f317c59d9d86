//! `notifications.webhook`: what is posted, what isn't, and what happens if nobody listens.

use super::agents::{Said, house, model};
use super::meaning::serve;
use crate::program::House;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Serves a webhook that answers with the next of these statuses, then with 204. Returns its address and what it got.
fn webhook(statuses: &[u16]) -> (String, Arc<Mutex<Vec<Value>>>) {
    let got: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (list, left) = (got.clone(), Mutex::new(statuses.to_vec()));
    let address = serve(move |request| {
        let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        list.lock().expect("whole").push(json!({"path": request.path, "body": body}));
        let mut left = left.lock().expect("whole");
        let status = if left.is_empty() { 204 } else { left.remove(0) };
        (status, String::new(), Vec::new())
    });
    (address, got)
}

fn configured(house: &House, line: &str) {
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    house.write("W/config.yaml", format!("{config}notifications: {{webhook: {line}}}\n").as_bytes());
}

/// A model that runs a command first, and then answers.
fn careful() -> String {
    model(|turn, _| -> Said {
        match turn {
            0 => (String::new(), vec![("fetch_url", json!({"url": "http://127.0.0.1:9/planted"}))]),
            _ => ("The planted answer.".to_owned(), Vec::new()),
        }
    })
}

#[test]
fn a_run_that_waits_and_then_finishes_is_reported_without_its_texts() {
    let (address, got) = webhook(&[]);
    let house = house(&careful(), &[("a.md", "# Planted\n")]);
    configured(&house, &format!("\"{address}/hook?key=x\""));
    let said = house.run(&["ask", "planted words", "--no-wait"]).code(1);
    assert!(said.err.contains("waits for"), "{}", said.err);
    let sent = got.lock().expect("whole").clone();
    let [waits] = sent.as_slice() else { panic!("{sent:?}") };
    let run = house.run(&["runs", "--json"]).good().lines()[0].clone();
    let body = &waits["body"];
    assert_eq!(waits["path"], "/hook?key=x");
    assert_eq!((&body["event"], &body["tool"]), (&json!("approval_pending"), &json!("fetch_url")), "{body}");
    assert_eq!(body["run"], run["id"]);
    let name = body["approval"].as_str().expect("a name");
    house.run(&["approvals", name, "--deny"]).good();
    let sent = got.lock().expect("whole").clone();
    assert_eq!(sent.len(), 2, "{sent:?}");
    let body = &sent[1]["body"];
    assert_eq!((&body["event"], &body["ending"], &body["run"]), (&json!("run_finished"), &json!("done"), &run["id"]));
    assert!(body["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{body}");
    assert!(!format!("{sent:?}").contains("planted"), "no text of the user, the model or the call: {sent:?}");
}

#[test]
fn a_failed_run_is_reported_and_a_message_is_sent_again() {
    let (address, got) = webhook(&[503, 429]);
    let house = house("http://127.0.0.1:9", &[("a.md", "# A\n")]);
    configured(&house, &format!("\"{address}\""));
    let said = house.run(&["ask", "go"]).code(1);
    assert!(!said.err.contains("webhook"), "the third time it is taken: {}", said.err);
    let sent = got.lock().expect("whole").clone();
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(sent.iter().all(|one| one == &sent[0]), "{sent:?}");
    assert_eq!((&sent[0]["body"]["event"], &sent[0]["body"]["ending"]), (&json!("run_failed"), &json!("failed")));
}

#[test]
fn a_webhook_that_fails_is_reported_once_without_its_secret() {
    let (address, got) = webhook(&[403, 403]);
    let house = house(&careful(), &[("a.md", "# A\n")]);
    configured(&house, &format!("\"{address}/secret-token\""));
    // The approval and the end of the run are both refused; what is refused isn't sent again.
    let config = String::from_utf8(house.read("W/config.yaml")).expect("text");
    house.write("W/config.yaml", format!("{config}approval: {{timeout_seconds: 1}}\n").as_bytes());
    let said = house.run(&["ask", "go"]).code(0);
    assert_eq!(got.lock().expect("whole").len(), 2);
    assert_eq!(
        said.err.matches("doesn't take messages: 127.0.0.1 answered with status 403").count(),
        1,
        "{}",
        said.err
    );
    assert!(!said.err.contains("secret-token"), "{}", said.err);
    // Redirects aren't followed, since they could lead anywhere.
    let (target, reached) = webhook(&[]);
    let away = serve(move |_| (307, format!("Location: {target}/\r\n"), Vec::new()));
    let house = self::house("http://127.0.0.1:9", &[("a.md", "# A\n")]);
    configured(&house, &format!("\"{away}\""));
    let said = house.run(&["ask", "go"]).code(1);
    assert!(said.err.contains("127.0.0.1 answered with status 307"), "{}", said.err);
    assert!(reached.lock().expect("whole").is_empty());
}

#[test]
fn other_addresses_are_refused_at_load_and_none_is_the_default() {
    for (line, why) in [
        ("\"http://example.org/hook\"", "a webhook takes https"),
        ("\"http://192.168.1.5/hook\"", "a webhook takes https"),
        ("\"ftp://example.org/\"", "a webhook begins with https://"),
        ("\"https://user:word@example.org/\"", "a webhook begins with https://"),
        ("\"nowhere\"", "a webhook begins with https://"),
        ("5", "5"),
    ] {
        let house = house(&careful(), &[("a.md", "# A\n")]);
        configured(&house, line);
        let said = house.run(&["ask", "go"]);
        assert!(said.err.contains(why) && said.err.contains("config.yaml:"), "{line}: {}", said.err);
        assert!(!said.err.contains("word@"), "{}", said.err);
    }
    for line in ["null", "\"\"", "\"http://localhost:9/hook\"", "\"https://hooks.example.org/x\""] {
        let house = house(&careful(), &[("a.md", "# A\n")]);
        configured(&house, line);
        house.run(&["providers"]).good();
    }
}
