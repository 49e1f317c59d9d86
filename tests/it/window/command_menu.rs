//! The menu of all commands, the note's toolbar, badges, and the model in the status bar.

use super::agent::{ask, asked, ended, model, soon};
use super::*;
use engine::commands::{COMMANDS, CommandId};
use std::collections::BTreeSet;

fn open_more(window: &mut Driven) {
    window.get_by_role_and_label(Role::Button, "More").click();
    window.run();
}

#[test]
fn every_command_is_two_clicks_away() {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let mut window = bench.opened();
    open_more(&mut window);
    let mut left: BTreeSet<&str> =
        COMMANDS.iter().filter(|command| command.window).map(|command| command.title).collect();
    for group in ui::command_menu::group_titles() {
        // Pointing at a group is enough.
        let place = window.get_by_role_and_label(Role::Tab, group).rect().center();
        window.hover_at(place);
        window.run_steps(4);
        left.retain(|title| window.query_all_by_role_and_label(Role::MenuItem, title).next().is_none());
    }
    assert!(left.is_empty(), "not in the menu: {left:?}");
    // The second click runs a command.
    let place = window.get_by_role_and_label(Role::Tab, "Help").rect().center();
    window.hover_at(place);
    window.run_steps(4);
    window.get_by_role_and_label(Role::MenuItem, CommandId::AppKeys.title()).click();
    window.run();
    assert!(window.query_by_label("Find a command or a key").is_some());
    assert!(window.query_by_role_and_label(Role::Tab, "Help").is_none(), "the menu is closed");
}

#[test]
fn the_toolbar_leads_to_history_and_export_and_stops_cells() {
    let bench = Bench::new(&[("Loop.md", "```python\nwhile True: pass\n```\n")]);
    let mut window = bench.opened();
    assert!(window.query_by_label("Stop running cells").is_none());
    window.get_by_label("Run cell 1").click();
    until(&mut window, "it runs", |window| window.query_by_label("Stop running cells").is_some());
    window.get_by_label("Stop running cells").click();
    until(&mut window, "it has stopped", |window| window.query_by_label("Stop running cells").is_none());
    window.get_by_role_and_label(Role::Button, "Share or export").click();
    window.run();
    for command in [CommandId::ExportHtml, CommandId::ExportPdf, CommandId::NotePrint, CommandId::SyncShare] {
        window.get_by_role_and_label(Role::MenuItem, command.title());
    }
    press(&mut window, NONE, Key::Escape);
    click_label(&mut window, "Note history");
    assert!(window.query_by_role_and_label(Role::Heading, "History").is_some());
}

#[test]
fn a_failed_run_has_a_badge_and_the_status_bar_names_the_model() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let (address, _go) = model(|_, _| ("Here.".to_owned(), Vec::new()));
    let mut window = asked(&bench, &address);
    ask(&mut window, "What is this?");
    soon(&mut window, "it is done", ended);
    let named =
        |window: &Driven| window.query_all_by_label_contains("Model: m, $0.00 spent this month").next().is_some();
    until(&mut window, "the model is named", |window| named(window));
    window.get_by_label_contains("Model: m, $0.00 spent").click();
    until(&mut window, "the budget", |window| window.query_by_label("Spent by: Task").is_some());
    press(&mut window, NONE, Key::Escape);
    // A run fails while the agent isn't in sight.
    click_label(&mut window, "Toggle agent");
    let volume = session(&window).volumes().next().expect("a volume").id;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let soon = now.as_millis() as i64 + 60_000;
    let about = serde_json::json!({"session": store::DocId([3; 16]), "asked": store::MessageId(1),
        "head": store::MessageId(1), "volume": volume, "note": null, "prompt": "a question", "agent": "assistant",
        "startTime": 0, "ended": soon, "ending": "failed", "iteration": 1, "limit": 20, "agentState": "idle",
        "spent": {"inputTokens": 1, "outputTokens": 1, "cost": null}, "budget": null});
    let about = serde_json::from_value(about).expect("what is said of a run");
    let run = store::DocId([4; 16]);
    window.state_mut().send_command(Command::ImportRun {
        run,
        about,
        todos: Vec::new(),
        steps: Vec::new(),
        approvals: Vec::new(),
    });
    until(&mut window, "it has a badge", |window| window.query_by_label("Toggle agent, 1 run failed").is_some());
    window.get_by_label("Toggle agent, 1 run failed").click();
    until(&mut window, "it was seen", |window| window.query_by_label("Toggle agent").is_some());
}
