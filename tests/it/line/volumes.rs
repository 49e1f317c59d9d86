//! Paths as models and people write them, the read-only volume System, and volumes that the configuration locks.

use super::agents::{Said, house, model};
use crate::program::House;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A model that makes these calls, one after another, and remembers their results.
fn caller(calls: Vec<(&'static str, Value)>) -> (String, Arc<Mutex<Vec<String>>>) {
    let results = Arc::new(Mutex::new(Vec::new()));
    let heard = results.clone();
    let address = model(move |turn, body| -> Said {
        if turn > 0 {
            let last = body["messages"].as_array().and_then(|all| all.last()).map(|last| last["content"].clone());
            let text = last.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            heard.lock().expect("heard").push(text);
        }
        match calls.get(turn) {
            Some(call) => (String::new(), vec![call.clone()]),
            None => ("Done.".to_owned(), Vec::new()),
        }
    });
    (address, results)
}

fn results_of(house: &House, words: &[&str], results: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    house.run(words).good();
    results.lock().expect("heard").clone()
}

#[test]
fn the_calls_of_the_seed_are_accepted() {
    let (address, results) = caller(vec![
        ("read-file", json!({"volume": "notes", "path": "Note.md"})),
        ("read_file", json!({"path": "/notes/Note.md"})),
        ("read_file", json!({"path": "note.md"})),
        ("write_file", json!({"path": "notes/new.md", "content": "# New\n"})),
        ("write_file", json!({"volume": "user", "path": "/calc.txt", "content": "1\n"})),
        ("edit_file", json!({"volume": "notes", "path": "notes/calc.txt", "old_content": "1", "new_content": "2"})),
        ("list_files", json!({"volume": "notes", "directory": "/"})),
        ("execute-python", json!({"code": "6 * 7"})),
        ("read_file", json!({"path": "Nose.md"})),
        ("read_file", json!({"volume": "nowhere", "path": "Note.md"})),
        ("delete_file", json!({"path": "/notes/calc.txt"})),
    ]);
    let house = house(&address, &[("Note.md", "# Found it\n"), ("sub/deep.md", "deep\n")]);
    let words = ["ask", "go", "--approve", "run_python", "--approve", "delete_file", "--json"];
    let results = results_of(&house, &words, &results);
    for (at, result) in results[..3].iter().enumerate() {
        assert!(result.contains("# Found it"), "{at}: {result}");
    }
    assert!(results[3].contains("Created new.md"), "{results:?}");
    assert_eq!(house.read("notes/new.md"), b"# New\n");
    assert!(!house.path("notes/notes").exists(), "no volume in a volume");
    assert!(results[5].contains("+2"), "{results:?}");
    assert!(results[6].contains("calc.txt (2 bytes, txt, changed 20") && results[6].contains("sub/"), "{results:?}");
    assert!(results[7].contains("42"), "{results:?}");
    assert!(results[8].contains("The closest are: Note.md"), "{results:?}");
    assert!(results[9].contains("There is no volume “nowhere”. There are: notes, system."), "{results:?}");
    assert!(!house.path("notes/calc.txt").exists(), "{results:?}");
}

#[test]
fn what_search_shows_of_another_volume_can_be_read_and_is_changed_only_when_allowed() {
    let (address, results) = caller(vec![
        ("search", json!({"query": "lighthouse"})),
        ("read_file", json!({"path": "other/Tower.md"})),
        ("write_file", json!({"path": "other/Mine.txt", "content": "mine\n"})),
        ("edit_file", json!({"path": "other/Tower.md", "old_content": "white", "new_content": "red"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    house.write("other/Tower.md", b"# Tower\n\nThe lighthouse is white.\n");
    house.run(&["open", &house.path("other").display().to_string()]).good();
    let asked = house.fed(&["ask", "go", "--project", "notes"], b"n\n");
    let results = results.lock().expect("heard").clone();
    assert!(results[0].contains("other/Tower.md"), "{results:?}");
    assert!(results[1].contains("The lighthouse is white."), "{results:?}");
    assert_eq!(house.read("notes/other/Mine.txt"), b"mine\n", "a folder of the project");
    assert!(asked.err.contains("it concerns other"), "{}", asked.err);
    assert_eq!(house.read("other/Tower.md"), b"# Tower\n\nThe lighthouse is white.\n");
}

#[test]
fn a_call_in_the_text_itself_is_made() {
    let script = |turn: usize, _: &Value| -> Said {
        match turn {
            0 => ("Sure: {\"tool\":\"read-file\",\"inputs\":{\"path\":\"notes/Note.md\"}}".to_owned(), Vec::new()),
            _ => ("At the end".to_owned(), Vec::new()),
        }
    };
    let house = house(&model(script), &[("Note.md", "# Found it\n")]);
    let said = house.run(&["ask", "go"]).good().text();
    assert!(
        said.contains("read_file: Note.md") && said.contains("# Found it") && said.contains("At the end"),
        "{said}"
    );
    assert!(!said.contains("{\"tool\""), "{said}");
}

#[test]
fn system_is_read_and_never_written() {
    const REFUSAL: &str = "System is read-only. Copy it to your workspace to change it.";
    let (address, results) = caller(vec![
        ("read_file", json!({"volume": "system", "path": "agents/SystemAgent.md"})),
        ("read_file", json!({"path": "/system/config.yaml", "from_line": 1, "lines": 2})),
        ("list_files", json!({"directory": "system/agents"})),
        ("write_file", json!({"volume": "system", "path": "agents/x.md", "content": "x"})),
        ("edit_file", json!({"path": "system/agents/qa.md", "old_content": "a", "new_content": "b"})),
        // After three turns without use, a model is told to answer.
        ("read_file", json!({"path": "Note.md"})),
        ("delete_file", json!({"path": "/system/agents/qa.md"})),
        ("read_file", json!({"path": "system/agents/nobody.md"})),
        ("list_files", json!({})),
        ("git_commit", json!({"volume": "system", "message": "x"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("name: system"), "{results:?}");
    assert_eq!(results[1].lines().count(), 2, "{results:?}");
    assert!(results[2].contains("agents/qa.md (") && results[2].contains("read-only"), "{results:?}");
    for at in [3, 4, 6] {
        assert!(results[at].contains(REFUSAL), "{results:?}");
    }
    assert!(results[7].contains("The closest are: agents/"), "{results:?}");
    assert!(results[9].contains("System has no history in Git"), "{results:?}");

    let text = house.run(&["cat", "system/agents/qa.md"]).good().text();
    assert!(text.contains("name: qa"), "{text}");
    let rows = house.run(&["ls", "--volume", "system", "--json"]).good().json();
    let row = rows.as_array().into_iter().flatten().find(|row| row["path"] == "agents/qa.md").expect("listed");
    assert_eq!((&row["readonly"], &row["volume"]), (&json!(true), &json!("system")));
    for words in [
        &["new", "system/agents/x.md"][..],
        &["new", "x.md", "--volume", "system"],
        &["rm", "system/agents/qa.md"],
        &["mv", "system/agents/qa.md", "qa.md"],
        &["edit", "system/agents/qa.md"],
        &["cp", "Note.md", "system/Note.md"],
    ] {
        house.run(words).refused(2, REFUSAL);
    }
    assert!(!house.path("notes/system").exists());
    // A copy is an agent of the project.
    assert_eq!(house.run(&["cp", "system/agents/qa.md"]).good().text(), "components/agents/qa.md\n");
    assert_eq!(house.read("notes/components/agents/qa.md"), text.as_bytes());
    house.run(&["cp", "system/agents/qa.md"]).refused(2, "already exists");
    house.run(&["cp", "system/config.yaml", "defaults.yaml"]).good();
    assert!(house.path("notes/defaults.yaml").exists());
    // A copy of a note is a note, as after `mv`.
    assert_eq!(house.run(&["cp", "Note", "copy"]).good().text(), "copy.md\n");
    assert_eq!(house.read("notes/copy.md"), house.read("notes/Note.md"));
    house.run(&["cp", "Note", "copy"]).refused(2, "copy.md");
    assert_eq!(house.run(&["cp", "Note", "sub/"]).good().text(), "sub/Note.md\n");
}

#[test]
fn a_read_only_volume_refuses_everyone() {
    const REFUSAL: &str = "notes is read-only.";
    let (address, results) = caller(vec![
        ("read_file", json!({"path": "Note.md"})),
        ("write_file", json!({"path": "new.md", "content": "x"})),
        ("edit_file", json!({"path": "Note.md", "old_content": "Note", "new_content": "Changed"})),
        ("list_files", json!({})),
        ("delete_file", json!({"path": "Note.md"})),
        ("shell", json!({"command": "touch x"})),
    ]);
    let house = house(&address, &[("Note.md", "# Note\n")]);
    let config = String::from_utf8(house.read("W/config.yaml")).expect("UTF-8");
    house.run(&["ls"]).good();
    house.write("W/config.yaml", format!("{config}volumes:\n  notes: {{readonly: true}}\n").as_bytes());
    let results = results_of(&house, &["ask", "go", "--json"], &results);
    assert!(results[0].contains("# Note"), "{results:?}");
    for at in [1, 2, 4, 5] {
        assert!(results[at].contains(REFUSAL), "{results:?}");
    }
    house.run(&["new", "new.md"]).refused(2, REFUSAL);
    house.run(&["rm", "Note.md"]).refused(2, REFUSAL);
    house.run(&["mv", "Note.md", "Other.md"]).refused(2, REFUSAL);
    house.run(&["cp", "system/agents/qa.md"]).refused(2, REFUSAL);
    assert_ne!(house.fed(&["edit", "Note.md"], b"{\"at\":0,\"insert\":\"x\"}\n").code, 0);
    // Other programs still change its files, and they're read.
    house.write("notes/Note.md", b"# From outside\n");
    assert_eq!(house.cat("Note.md"), b"# From outside\n");
    house.write("W/config.yaml", config.as_bytes());
    house.run(&["new", "new.md"]).good();
}
