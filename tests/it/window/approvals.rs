//! Cards of approvals in the agent panel, which replace each other.

use super::agent::{ask, asked, model, run, shows, soon};
use super::*;

use serde_json::json;
use store::{DecisionMaker, DecisionRecord, DecisionScope};

#[test]
fn a_press_on_one_approval_never_counts_for_the_next() {
    let (address, _) = model(|turn, _| match turn {
        0 => {
            let calls = ["cat first", "cat second"].map(|command| ("shell", json!({ "command": command })));
            (String::new(), calls.to_vec())
        }
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "do it");
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Run in the sandbox: cat first"));
    soon(&mut window, "both are there", |window| run(window).pending().count() == 2);
    window.run_steps(3);
    let place = window.get_by_label("Allow").rect().center();
    window.hover_at(place);
    window.run_steps(2);
    window.drag_at(place);
    window.run_steps(2);
    // Meanwhile, the first one is decided elsewhere: from another client or the command line.
    let (id, first) = (run(&window).id, run(&window).pending().next().expect("the first").id.clone());
    let (scope, by) = (DecisionScope::Once, DecisionMaker::User);
    let decision = DecisionRecord { allowed: false, scope, by, at: 0, arguments: None, comment: None };
    window.state_mut().send_command(Command::Decide { run: id, approval: first, decision });
    // At once: what is held for long is no click.
    window.run_steps(2);
    window.get_by_label("The agent waits: Run in the sandbox: cat second");
    assert_eq!(window.get_by_label("Allow").rect().center(), place, "its button is at the same place");
    window.drop_at(place);
    window.run_steps(5);
    assert_eq!(run(&window).pending().count(), 1, "the second isn't decided");
    // A press of its own counts.
    window.drag_at(place);
    window.run_steps(2);
    window.drop_at(place);
    soon(&mut window, "the second is decided", |window| run(window).pending().count() == 0);
}

#[test]
fn a_long_command_leaves_its_buttons_in_sight() {
    let command = format!("echo first\n{}", "echo a long line\n".repeat(60));
    let called = command.clone();
    let (address, _) = model(move |turn, _| match turn {
        0 => (String::new(), vec![("shell", json!({ "command": called }))]),
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "do it");
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Run in the sandbox: echo first"));
    window.run_steps(5);
    let screen = window.ctx.content_rect();
    for control in ["Allow", "Deny", "Message to the agent"] {
        let rect = window.get_by_label(control).rect();
        assert!(screen.contains_rect(rect), "{control} is at {rect:?}");
    }
    // The text of the command has the room that is painted for it.
    let above = window.get_by_label_contains("Risk: ").rect().bottom();
    let below = window.get_by_label_contains("Scroll to read them all").rect().top();
    assert!(below - above >= 160.0, "from {above} to {below}");
    // A screen reader, and who scrolls, gets all of it.
    assert!(shows(&mut window, command.trim_end()));
    window.get_by_label("Deny").click();
    soon(&mut window, "it isn't said to have failed", |window| shows(window, "shell  echo first, denied"));
}

/// A card says how much harm a call can do, and the page of tools says it of all.
#[test]
fn the_risk_of_a_call_is_shown_before_it_is_allowed() {
    let (address, _) = model(|turn, _| match turn {
        0 => (String::new(), vec![("fetch_url", json!({"url": "https://example.org/"}))]),
        1 => (String::new(), vec![("delete_file", json!({"path": "Talk.md"}))]),
        _ => ("Done.".to_owned(), Vec::new()),
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    ask(&mut window, "look there");
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: "));
    let tool = session(&window).agent_tools().into_iter().find(|tool| tool.name == "fetch_url").expect("a tool");
    let risk = ::agent::policy::risk_label(tool.risk);
    window.get_by_label(&format!("Risk: {risk}"));
    assert!(shows(&mut window, "would reach https://example.org"), "and why it asks");
    window.get_by_label("Deny").click();
    soon(&mut window, "it asks again", |window| {
        run(window).pending().next().is_some_and(|approval| approval.tool == "delete_file")
    });
    window.run_steps(3);
    // Where the risk is the only reason, it's said once.
    window.get_by_label("Risk: medium");
    let reason = run(&window).pending().next().map(|approval| approval.reason.clone());
    assert_eq!(reason, Some(::agent::policy::risk_reason(::agent::tool_spec::ToolRisk::Medium)));
    assert!(!shows(&mut window, "It carries"));
    window.get_by_label("Deny").click();
    soon(&mut window, "it is decided", |window| run(window).pending().count() == 0);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::AgentTools);
    until(&mut window, "the tools are read", |window| shows(window, "File of tools"));
    let all = session(&window).agent_tools();
    assert!(all.len() > 20, "{}", all.len());
    // Those at the top of the list, which are in sight.
    for tool in all.into_iter().take(5) {
        let asks = if session(&window).tool_requires_approval(&tool) { " Asks first." } else { "" };
        let risk = match ::agent::policy::risk_label(tool.risk) {
            "no" => "none",
            other => other,
        };
        window.get_by_label(&format!("{}. Risk: {risk}.{asks}", tool.title()));
    }
}

#[test]
fn packages_of_an_approved_tool_are_installed_from_its_card() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::AgentTools);
    until(&mut window, "the tools are read", |window| shows(window, "File of tools"));
    // A name that no index is asked for.
    let tool = store::UserTool {
        name: "count".to_owned(),
        description: "Counts boats.".to_owned(),
        parameters: json!({"type": "object"}),
        code: "# /// script\n# dependencies = [\"boats @ http://x\"]\n# ///\ndef run():\n    return 1\n".to_owned(),
        author: "you".to_owned(),
        ..store::UserTool::default()
    };
    window.state_mut().send_command(Command::ProposeTool { tool: Box::new(tool) });
    until(&mut window, "it waits", |window| shows(window, "Approve count"));
    assert!(window.query_by_label("Install packages of count").is_none(), "it is read and approved first");
    window.get_by_label("Approve count").click();
    until(&mut window, "it is approved", |window| shows(window, "Install packages of count"));
    assert!(shows(&mut window, "count needs packages: boats @ http://x. Installing them uses the network."));
    window.get_by_label("Install packages of count").click();
    until(&mut window, "it is refused", |window| shows(window, "isn't the name of a package"));
}

#[test]
fn versions_of_a_tool_are_listed_compared_used_and_rolled_back() {
    let (address, _) = model(|_, _| ("Yes.".to_owned(), Vec::new()));
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let mut window = asked(&bench, &address);
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, engine::commands::CommandId::AgentTools);
    until(&mut window, "the tools are read", |window| shows(window, "File of tools"));
    for factor in [2, 3] {
        let tool = store::UserTool {
            name: "times".to_owned(),
            description: "Multiplies a number.".to_owned(),
            parameters: json!({"type": "object"}),
            code: format!("def run(x):\n    return {factor} * x\n"),
            author: "you".to_owned(),
            ..store::UserTool::default()
        };
        window.state_mut().send_command(Command::ProposeTool { tool: Box::new(tool) });
        until(&mut window, "it waits", |window| shows(window, "Approve times"));
        window.get_by_label("Approve times").click();
        until(&mut window, "it is approved", |window| {
            shows(window, &format!("times version {}: approved", factor - 1))
        });
    }
    let used = |window: &Driven| {
        let tools = session(window).user_tools().unwrap_or_default();
        tools.first().and_then(store::RegisteredTool::usable_version).map(|tool| tool.version)
    };
    assert_eq!(used(&window), Some(2));
    assert!(shows(&mut window, "times version 1: not in use, made "));
    assert!(window.query_by_label("Use times version 1").is_none(), "it is compared first");
    window.get_by_label("Compare times version 1").click();
    until(&mut window, "the difference is shown", |window| shows(window, "-    return 2 * x\n+    return 3 * x"));
    window.get_by_label("Use times version 1").click();
    until(&mut window, "it is used", |window| used(window) == Some(1));
    window.state_mut().send_command(Command::ApproveTool { name: "times".to_owned(), version: Some(2) });
    until(&mut window, "it can be rolled back", |window| shows(window, "Roll times back to version 1"));
    window.get_by_label("Roll times back to version 1").click();
    until(&mut window, "it is back", |window| used(window) == Some(1));
    assert!(!shows(&mut window, "Roll times back"), "nothing is before the first one");
}
