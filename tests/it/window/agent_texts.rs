//! How the agent's panel shows the texts of models, tools and approvals: whole, and with nothing that hides.

use super::agent::{ask, asked, ended, model, shows, soon, talk};
use super::*;
use engine::commands::CommandId;
use serde_json::{Value, json};
use store::MessageRole as Speaker;

#[test]
fn what_the_model_was_told_is_one_row() {
    let (address, _) = model(|_, _| ("Two.".to_owned(), Vec::new()));
    let bench =
        Bench::new(&[(talk(), "# Talk\n\nHerons stand in the reeds.\n"), ("Birds.md", "# Herons\n\nTwo herons.\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "How many herons are there?");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "it's one row", |window| shows(window, "Context ("));
    assert!(!shows(&mut window, "Told the model") && window.query_all_by_label_contains("Context (").count() == 1);
    let names = ["Context (1 item)", "Context (2 items)", "Context (3 items)"];
    let row = names.into_iter().find(|name| window.query_by_label(name).is_some()).expect("the row");
    click_label(&mut window, row);
    let told = session(&window).agents().session(super::agent::run(&window).about.session).expect("open");
    let first = told.branch().into_iter().find(|message| message.role == Speaker::System).expect("told");
    let beginning: String = first.content.lines().next().unwrap_or_default().chars().take(60).collect();
    assert!(shows(&mut window, &beginning), "{beginning}");
}

#[test]
fn an_approval_shows_all_of_the_code_and_nothing_that_hides() {
    let lines: String = (0..400).map(|line| format!("print({line})\n")).collect();
    let code = format!("{lines}# \u{202e}sdrawkcab\u{200b}\nimport os\nos.remove('x')\n");
    let script = move |turn: usize, _: &Value| match turn {
        0 => (String::new(), vec![("run_python", json!({"code": code}))]),
        1 => (String::new(), vec![("shell", json!({"command": "echo \u{1b}[8m\u{202e}x\necho hidden"}))]),
        2 => (String::new(), vec![("run_cell", json!({"path": "Talk.md", "cell": 1}))]),
        _ => ("Done.".to_owned(), Vec::new()),
    };
    let (address, _) = model(script);
    let bench = Bench::new(&[(talk(), "# Talk\n\n```python\nos.remove('talk')\n```\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "do it");
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Run Python in the sandbox"));
    for part in ["print(0)\n", "print(399)\n", "import os\nos.remove('x')", "\\u{202e}sdrawkcab\\u{200b}"] {
        assert!(window.query_all_by_label_contains(part).next().is_some(), "{part:?} is shown");
    }
    assert!(window.query_all_by_label_contains("\u{202e}").next().is_none());
    window.get_by_label("403 lines. Scroll to read them all.");
    let drawn = window.get_by_label_contains("print(399)\n").rect().height();
    assert!(drawn >= 403.0 * 18.0, "all of it has room: {drawn}");
    // The menu says what a permanent answer covers.
    window.get_by_label("Allow for…").click();
    window.run_steps(3);
    assert!(window.query_all_by_label_contains("A lasting answer allows exactly this").next().is_some());
    window.get_by_label("Allow for…").click();
    window.run_steps(3);
    window.get_by_label("Deny").click();
    soon(&mut window, "it asks", |window| {
        shows(window, "The agent waits: Run in the sandbox: echo ␛[8m\\u{202e}x␊echo hidden")
    });
    window.get_by_label("Deny").click();
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Run cell 1 of Talk.md"));
    assert!(window.query_all_by_label_contains("Cell 1:\nos.remove('talk')").next().is_some(), "its code is shown");
}

/// Asserts that no label, and so no visible text, contains control or invisible characters.
fn assert_plain(window: &Driven, when: &str) {
    for bad in ["\u{202e}", "\u{200b}", "\u{2066}", "\u{1b}", "\u{7}", "\u{e0041}"] {
        let found = window.query_all_by_label_contains(bad).next();
        assert!(found.is_none(), "{when}: {bad:?} in {:?}", found.map(|node| format!("{node:?}")));
    }
}

#[test]
fn nothing_that_a_model_or_a_tool_says_hides_in_a_conversation() {
    let evil = "pay \u{202e}eve\u{2066} \u{200b}now\u{1b}[8m\u{7}\u{e0041}";
    let todos = json!({"todos": [{"content": format!("todo {evil}")}]});
    let script = move |turn: usize, _: &Value| match turn {
        0 => (
            format!("# Head {evil}\n\n- item {evil}\n\n[link {evil}](https://x.y/)\n\n```\ncode {evil}\n```\n"),
            vec![
                ("todo_write", todos.clone()),
                ("read_file", json!({"path": "Z.md"})),
                ("nothing", json!({(evil): 1})),
            ],
        ),
        _ => (format!("‖ At the end: {evil}"), Vec::new()),
    };
    let (address, go) = model(script);
    let bench = Bench::new(&[(talk(), "# Talk\n"), ("Z.md", &format!("told {evil}\n"))]);
    let mut window = asked(&bench, &address);
    ask(&mut window, &format!("ask {evil}"));
    soon(&mut window, "it has called", |window| shows(window, "Head pay \\u{202e}eve"));
    for (part, safe) in [
        ("what was asked", "ask pay \\u{202e}eve\\u{2066} \\u{200b}now␛[8m␇\\u{e0041}"),
        ("an item", "item pay \\u{202e}eve"),
        ("a link", "link pay \\u{202e}eve"),
        ("code", "code pay \\u{202e}eve"),
        ("a todo", "todo pay \\u{202e}eve"),
    ] {
        soon(&mut window, part, |window| shows(window, safe));
    }
    go.send(()).expect("it waits");
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "the answer", |window| shows(window, "At the end: pay \\u{202e}eve"));
    window.get_by_label_contains("read_file  Z.md").click();
    soon(&mut window, "what the tool said", |window| shows(window, "told pay \\u{202e}eve"));
    pictured(&mut window, "hidden-characters");
    for page in [None, Some(CommandId::AgentTimeline), Some(CommandId::AgentBranches)] {
        let ctx = window.ctx.clone();
        if let Some(page) = page {
            window.state_mut().perform_command(&ctx, page);
            window.run();
        }
        assert_plain(&window, page.map_or("", CommandId::as_str));
    }
}
