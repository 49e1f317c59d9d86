//! Sessions and limits of runs through the program: titles, summaries of long sessions, models in circles, and what a
//! command of an agent reaches.

use super::agents::{Said, configure, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Tries to reach a port and files outside of the project.
const REACHING: &str = "
try:
    import socket
    socket.create_connection(('127.0.0.1', PORT), 3)
    print('connected')
except Exception as why:
    print('no network')
for path in ['../secret.txt', '/etc/shadow']:
    try:
        print(open(path).read())
    except Exception as why:
        print('no file')
";

/// The session that was used last.
fn last_session(house: &House) -> Value {
    house.run(&["sessions", "--json"]).good().lines().remove(0)
}

#[test]
fn a_session_gets_another_title_and_is_deleted() {
    let house = house(&model(|_, _| ("Yes.".to_owned(), Vec::new())), &[("a.md", "# A\n")]);
    house.run(&["ask", "sow beans\nsoon"]).good();
    let session = last_session(&house);
    assert_eq!(session["title"], "sow beans");
    let id = session["id"].as_str().expect("an id").to_owned();
    house.run(&["sessions", &id, "--title", "Beans"]).good();
    assert_eq!(last_session(&house)["title"], "Beans");
    house.run(&["sessions", &id, "--title", " "]).code(2);
    house.run(&["sessions", "nosuch", "--delete"]).refused(2, "no session “nosuch”");
    house.run(&["sessions", &id, "--delete"]).good();
    assert!(house.run(&["sessions", "--json"]).good().lines().is_empty());
}

#[test]
fn a_long_session_is_summarized_and_no_message_is_lost() {
    let summaries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&summaries);
    let long = "words and words ".repeat(400);
    let address = model(move |_, body| -> Said {
        if body["messages"][0]["content"].as_str().is_some_and(|system| system.starts_with("You shorten")) {
            count.fetch_add(1, Ordering::SeqCst);
            return ("They spoke of beans.".to_owned(), Vec::new());
        }
        let told = body["messages"].to_string().contains("They spoke of beans.");
        (format!("{long} Told: {told}."), Vec::new())
    });
    let house = House::with(&[("a.md", "# A\n")]);
    configure(&house, &address);
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).replace("context: 32000", "context: 9000");
    house.write("W/config.yaml", config.as_bytes());
    let mut said = house.run(&["ask", "sow beans"]).code(0).text();
    let id = last_session(&house)["id"].as_str().expect("an id").to_owned();
    for round in 0..12 {
        if summaries.load(Ordering::SeqCst) > 0 {
            break;
        }
        said = house.run(&["ask", &format!("and then {round}?"), "--session", &id]).code(0).text();
    }
    assert!(summaries.load(Ordering::SeqCst) > 0);
    assert!(said.contains("Told: true."), "{said}");
    let file = house.run(&["sessions", &id, "--export", "json"]).good().json();
    assert!(file.to_string().contains("sow beans") && file.to_string().contains("They spoke of beans."), "{file}");
}

#[test]
fn a_model_that_goes_in_circles_answers_in_its_own_words_or_the_run_fails() {
    let asked = Arc::new(AtomicUsize::new(0));
    let stubborn = Arc::new(Mutex::new(false));
    let (count, is_stubborn) = (Arc::clone(&asked), Arc::clone(&stubborn));
    let address = model(move |_, body| -> Said {
        count.fetch_add(1, Ordering::SeqCst);
        let may_call = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        match may_call || *is_stubborn.lock().expect("whole") {
            true => (String::new(), vec![("nothing", json!({"path": "a.md"}))]),
            false => ("There is no such tool.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    let done = house.run(&["ask", "work"]).code(0).text();
    assert!(done.ends_with("There is no such tool.\n"), "{done}");
    assert_eq!(asked.swap(0, Ordering::SeqCst), 5, "four rounds, and the answer");
    *stubborn.lock().expect("whole") = true;
    house.run(&["ask", "work again"]).code(1);
    assert_eq!(asked.load(Ordering::SeqCst), 6, "it isn't asked up to its limit");
    assert_eq!(house.run(&["runs", "--json"]).good().lines()[0]["standing"], "failed");
}

#[test]
fn wrong_calls_are_answered_and_change_nothing() {
    let results: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&results);
    let address = model(move |turn, body| -> Said {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let said = messages.iter().filter(|message| message["role"] == "tool").map(|one| one["content"].to_string());
        *heard.lock().expect("whole") = said.collect();
        let tool = |name: &str| json!({"name": name, "description": "x", "parameters": {}, "code": "def run(): pass"});
        let calls = vec![
            ("frobnicate", json!({})),
            ("read_file", json!({"file": "a.md"})),
            ("read_file", json!({"path": "../../etc/passwd"})),
            ("edit_file", json!({"path": "a.md", "old_content": "x", "new_content": "y"})),
            ("create_tool", tool("X Bad")),
            ("create_tool", tool("read_file")),
        ];
        if turn == 0 { (String::new(), calls) } else { ("Nothing worked.".to_owned(), Vec::new()) }
    });
    let house = house(&address, &[("a.md", "x\nx\n")]);
    let before = house.run(&["tools", "--json"]).good().lines().len();
    let done = house.run(&["ask", "go", "--approve", "create_tool", "--json"]).code(0).lines();
    let failed = done.iter().filter(|step| step["type"] == "tool_result" && step["success"] == false).count();
    let results = results.lock().expect("whole");
    assert_eq!((failed, results.len()), (6, 6), "{done:#?}");
    for part in ["no tool frobnicate", "called wrongly", "outside", "is in the note 2 times"] {
        assert!(results.iter().any(|result| result.contains(part)), "{part}: {results:?}");
    }
    assert_eq!(house.read("notes/a.md"), b"x\nx\n");
    assert_eq!(house.run(&["tools", "--json"]).good().lines().len(), before, "no tool was made");
}

#[test]
fn the_budget_of_a_month_stops_runs_before_it_is_overdrawn() {
    let house = house(&model(|_, _| ("Yes.".to_owned(), Vec::new())), &[("a.md", "# A\n")]);
    let config = String::from_utf8_lossy(&house.read("W/config.yaml")).into_owned();
    // An answer costs seven dollars, which is known before the call.
    let known = "context: 32000, local: false, max_tokens: 7, price: {input: 0, output: 1000000}}";
    let priced = config.replace("context: 32000}", known);
    house.write("W/config.yaml", format!("{priced}  cost_limit: null\nbudget:\n  month: 20\n").as_bytes());
    assert!(house.run(&["budget"]).good().text().contains("this month: $0.0000, 0 tokens, $20.0000 of $20.00 left"));
    for _ in 0..2 {
        house.run(&["ask", "Is it so?"]).code(0);
    }
    let refused = house.run(&["ask", "Is it so?"]).code(1);
    assert!(refused.err.contains("The balance is too low") || refused.text().contains("The balance is too low"));
    assert!(house.run(&["budget"]).good().text().contains("this month: $14.0000, 36 tokens, $6.0000 of $20.00 left"));
}

#[test]
fn a_program_of_an_agent_reaches_no_network_and_no_other_files() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    listener.set_nonblocking(true).expect("set");
    let code = REACHING.replace("PORT", &port.to_string());
    let address = model(move |turn, _| -> Said {
        let command = json!({"command": "cat ../secret.txt; echo over"});
        match turn {
            0 => (String::new(), vec![("shell", command), ("run_python", json!({"code": code}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    });
    let house = house(&address, &[("a.md", "# A\n")]);
    house.write("secret.txt", b"planted\n");
    let done = house.fed(&["ask", "go", "--approve", "run_python", "--json"], b"y\ny\n").code(0).lines();
    let results = done.iter().filter(|step| step["type"] == "tool_result").map(|step| step["result"].to_string());
    let said = results.collect::<Vec<_>>().concat();
    assert!(said.contains("over") && said.contains("no network"), "{done:#?}");
    assert_eq!(said.matches("no file").count(), 2, "{done:#?}");
    assert!(!said.contains("planted") && !said.contains("root:") && !said.contains("connected"), "{done:#?}");
    assert!(listener.accept().is_err(), "nobody connected");
}
