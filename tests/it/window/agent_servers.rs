//! Prompts and resources of MCP servers in the agent's panel: completed, filled in, refused and sent. Requests of
//! servers for a model, and their forms, among the approvals.

use super::agent::{ask, ended, model, run, shows, soon};
use super::*;
use crate::line::mcp_forms::{add_form_server, add_script_server};
use crate::line::mcp_messages::offer;
use crate::line::mcp_pages::{PAGE, PAGE_SERVER};
use crate::line::mcp_sampling::add_asking_server;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A window whose agents have the server `hub`, and what the model was told.
fn offered() -> (Bench, Driven, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    let (address, _go) = model(move |_, body: &Value| {
        heard.lock().expect("unpoisoned").push(body["messages"].to_string());
        ("Done.".to_owned(), Vec::new())
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let workspace = bench.folder.path().join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    let folder = bench.folder.path().to_owned();
    let window = super::agent::asked_with(&bench, &address, |config| offer(&folder, config, &["hub"]));
    (bench, window, told)
}

fn told_count(told: &Mutex<Vec<String>>) -> usize {
    told.lock().expect("unpoisoned").len()
}

#[test]
fn a_prompt_is_completed_filled_in_and_sent() {
    let (_bench, mut window, told) = offered();
    window.get_by_label("Message to the agent").focus();
    window.step();
    type_text(&mut window, "/rev");
    soon(&mut window, "the prompt is offered", |window| shows(window, "hub:review – Review code"));
    assert!(!shows(&mut window, "\u{202e}"), "what a server says is clean");
    window.key_press_modifiers(NONE, Key::Enter);
    window.run_steps(3);
    // Its arguments have fields; one is missing, so nothing is sent.
    window.get_by_label("Argument code");
    window.get_by_label("Argument tone");
    window.key_press_modifiers(NONE, Key::Enter);
    window.run_steps(3);
    assert!(shows(&mut window, "needs code (What to read)"), "it says what is missing");
    assert!(session(&window).agents().runs().next().is_none());
    window.get_by_label("Argument code").focus();
    window.step();
    type_text(&mut window, "a = b");
    window.key_press_modifiers(NONE, Key::Enter);
    soon(&mut window, "the run ends", ended);
    let prompt = run(&window).about.prompt.clone();
    assert_eq!(prompt, "/hub:review code=\"a = b\"");
    assert_eq!(told_count(&told), 1);
    let said = told.lock().expect("unpoisoned")[0].clone();
    assert!(said.contains("Quoted from the prompt review of the MCP server hub"), "{said}");
}

#[test]
fn a_resource_is_mentioned_like_a_note() {
    let (_bench, mut window, told) = offered();
    window.get_by_label("Message to the agent").focus();
    window.step();
    type_text(&mut window, "Read @First");
    soon(&mut window, "the resource is offered", |window| shows(window, "hub:doc://a – First"));
    window.key_press_modifiers(NONE, Key::Enter);
    window.run_steps(3);
    window.key_press_modifiers(NONE, Key::Enter);
    soon(&mut window, "the run ends", ended);
    assert_eq!(run(&window).about.prompt, "Read @hub:doc://a");
    let said = told.lock().expect("unpoisoned")[0].clone();
    assert!(said.contains("Quoted from doc://a, a resource of the MCP server hub") && said.contains("Twelve volts."));
    // One that can't be included ends the run before a model is asked.
    window.get_by_label("Message to the agent").focus();
    window.step();
    ask(&mut window, "And @hub:doc://pic?");
    soon(&mut window, "it says why", |window| shows(window, "is binary (image/png)"));
    assert_eq!(told_count(&told), 1);
}

#[test]
fn a_request_for_a_model_is_shown_and_decided_once() {
    let sampled: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = sampled.clone();
    let (address, _go) = model(move |turn, body: &Value| {
        let all = body["messages"].to_string();
        if !all.contains("Call the tool") {
            heard.lock().expect("unpoisoned").push(all);
            return ("Rain falls.".to_owned(), Vec::new());
        }
        match turn {
            0 => (String::new(), vec![("own_slow", serde_json::json!({}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let folder = bench.folder.path().to_owned();
    let mut window = super::agent::asked_with(&bench, &address, |config| add_asking_server(&folder, config));
    window.get_by_label("Message to the agent").focus();
    window.step();
    ask(&mut window, "Call the tool");
    soon(&mut window, "the tool waits", |window| shows(window, "The agent waits: Use own/slow"));
    window.get_by_label("Allow for…");
    window.get_by_label("Allow").click();
    let asks = "The agent waits: Let the tool server own ask the model test/m";
    soon(&mut window, "the server's request waits", |window| shows(window, asks));
    assert!(shows(&mut window, "Slowly.") && shows(&mut window, "max_tokens"), "all of it is shown");
    assert!(window.query_by_label("Allow for…").is_none(), "a decision is for one request");
    pictured(&mut window, "sampling-approval");
    assert_eq!(told_count(&sampled), 0);
    window.get_by_label("Allow").click();
    soon(&mut window, "the run ends", ended);
    assert_eq!(told_count(&sampled), 1);
    let answered = run(&window).steps.iter().any(|step| {
        matches!(&step.kind, store::StepKind::ToolResult { result: Some(result), .. } if result == "Rain falls.")
    });
    assert!(answered, "{:?}", run(&window).steps);
}

#[test]
fn a_form_of_a_server_is_filled_in_and_sent() {
    let (address, _go) = model(move |turn, _body: &Value| match turn {
        0 => (String::new(), vec![("own_trip", serde_json::json!({}))]),
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let folder = bench.folder.path().to_owned();
    let mut window = super::agent::asked_with(&bench, &address, |config| add_form_server(&folder, config));
    window.get_by_label("Message to the agent").focus();
    window.step();
    ask(&mut window, "Call the tool");
    soon(&mut window, "the tool waits", |window| shows(window, "The agent waits: Use own/trip"));
    window.get_by_label("Allow").click();
    let asks = "The agent waits: The tool server own asks you: Where to?";
    soon(&mut window, "the form waits", |window| shows(window, asks));
    assert!(window.query_by_label("Allow").is_none(), "it's answered, and not allowed");
    pictured(&mut window, "server-form");
    let second = window.get_by_label("Second").rect();
    let has_outline = window.output().shapes.iter().any(|clipped| match &clipped.shape {
        egui::Shape::Circle(circle) => second.contains(circle.center) && circle.stroke.width > 0.0,
        _ => false,
    });
    assert!(has_outline, "the empty circle can be seen");
    window.get_by_label("Send answers").click();
    soon(&mut window, "it says what is missing", |window| shows(window, "city has no answer"));
    window.get_by_label("City").focus();
    window.step();
    type_text(&mut window, "Bonn");
    window.get_by_label("Second").click();
    window.run_steps(2);
    window.get_by_label("By the sea").click();
    window.run_steps(2);
    window.get_by_label("Send answers").click();
    soon(&mut window, "the run ends", ended);
    let said = format!("{:?}", run(&window).steps);
    for part in ["action:accept", "city:Bonn", "class:b", "days:3", "sea:true"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_page_of_a_server_is_shown_whole_and_opened() {
    let (address, _go) = model(move |turn, _body: &Value| match turn {
        0 => (String::new(), vec![("own_trip", serde_json::json!({}))]),
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let folder = bench.folder.path().to_owned();
    let mut window =
        super::agent::asked_with(&bench, &address, |config| add_script_server(&folder, config, PAGE_SERVER));
    window.get_by_label("Message to the agent").focus();
    window.step();
    ask(&mut window, "Call the tool");
    soon(&mut window, "the tool waits", |window| shows(window, "The agent waits: Use own/trip"));
    window.get_by_label("Allow").click();
    let asks = "The agent waits: The tool server own asks you to open https://accounts.example.com: Sign in";
    soon(&mut window, "the page waits", |window| shows(window, asks));
    window.get_by_label(PAGE);
    let opens = |command: &egui::OutputCommand| match command {
        egui::OutputCommand::OpenUrl(link) => link.url == PAGE,
        _ => false,
    };
    window.get_by_label("Open page").click();
    soon(&mut window, "it opens in the browser", |window| window.output().platform_output.commands.iter().any(opens));
    soon(&mut window, "the run ends", ended);
    let log = std::fs::read_to_string(bench.folder.path().join("server.log")).expect("text");
    assert!(log.contains(r#""result":{"action":"accept"}"#), "{log}");
}
