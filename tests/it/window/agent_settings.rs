//! Limits, approvals and MCP servers in the window: written into `config.yaml`, with its comments kept.

use super::*;
use engine::commands::CommandId;

fn config(bench: &Bench) -> String {
    std::fs::read_to_string(bench.folder.path().join("workspace/config.yaml")).unwrap_or_default()
}

/// A window on a workspace with this configuration.
fn configured(text: &str) -> (Bench, Driven) {
    let bench = Bench::new(&[("One.md", "1\n")]);
    let workspace = bench.folder.path().join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    std::fs::write(workspace.join("config.yaml"), text).expect("a file");
    let window = bench.opened();
    (bench, window)
}

fn go(window: &mut Driven, command: CommandId) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, command);
    window.run();
}

fn fill(window: &mut Driven, label: &str, text: &str) {
    window.get_by_role_and_label(Role::TextInput, label).focus();
    window.run();
    press(window, CTRL, Key::A);
    type_text(window, text);
    press(window, NONE, Key::Enter);
}

#[test]
fn the_budget_page_sets_the_limits() {
    let (bench, mut window) = configured("# mine\nbudget:\n  # a comment\n  month: 3\n");
    go(&mut window, CommandId::ViewBudget);
    until(&mut window, "the page", |window| window.query_by_role_and_label(Role::TextInput, "Monthly limit").is_some());
    fill(&mut window, "Monthly limit", "a lot");
    until(&mut window, "it is refused", |window| {
        window.query_all_by_label_contains("isn't an amount").next().is_some()
    });
    fill(&mut window, "Monthly limit", "12.50");
    until(&mut window, "it is written", |_| config(&bench).contains("month: 12.5"));
    until(&mut window, "it counts", |window| {
        window.query_all_by_label_contains("$12.50 of $12.50 left").next().is_some()
    });
    fill(&mut window, "Monthly limit of a project", "4");
    until(&mut window, "it is written", |_| config(&bench).contains("project: 4"));
    let written = config(&bench);
    assert!(written.starts_with("# mine\n") && written.contains("# a comment"), "{written}");
}

#[test]
fn what_runs_without_approval_is_a_setting() {
    let (bench, mut window) = configured("# mine\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    until(&mut window, "the setting", |window| window.query_by_role_and_label(Role::RadioButton, "Nothing").is_some());
    window.get_by_role_and_label(Role::RadioButton, "Nothing").click_accesskit();
    until(&mut window, "it is written", |_| config(&bench).contains("auto_approve_level: none"));
    until(&mut window, "it is said", |window| {
        window.query_all_by_label_contains("Every tool call of an agent asks first.").next().is_some()
    });
}

#[test]
fn a_missing_key_is_added_beside_its_provider() {
    let (_bench, mut window) = configured("# mine\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    let button = "Add key for anthropic…";
    until(&mut window, "the provider", |window| window.query_by_label(button).is_some());
    window.get_by_label(button).click_accesskit();
    until(&mut window, "the field", |window| window.query_by_label("API key").is_some());
}

#[test]
fn what_agents_reach_is_set_in_the_window() {
    let (bench, mut window) = configured("# mine\nsecurity:\n  # a comment\n  sandbox_enabled: true\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    let local = "Prefer models on this machine";
    until(&mut window, "the settings", |window| window.query_by_role_and_label(Role::Switch, local).is_some());
    window.get_by_role_and_label(Role::Switch, local).click_accesskit();
    until(&mut window, "it is written", |_| config(&bench).contains("prefer_local: false"));
    window.get_by_role_and_label(Role::RadioButton, "8 hours").click_accesskit();
    until(&mut window, "it is written", |_| config(&bench).contains("timeout_seconds: 28800"));
    window.get_by_role_and_label(Role::Switch, "Allowed hosts only").click_accesskit();
    until(&mut window, "it is written", |_| config(&bench).contains("network_restricted: true"));
    fill(&mut window, "Allowed hosts", "github.com, .rust-lang.org,");
    until(&mut window, "it is written", |_| config(&bench).contains(".rust-lang.org"));
    fill(&mut window, "Webhook", "http://example.org");
    until(&mut window, "it is refused", |window| {
        window.query_all_by_label_contains("a webhook takes https").next().is_some()
    });
    let written = config(&bench);
    assert!(written.starts_with("# mine\n") && written.contains("# a comment"), "{written}");
    assert!(!written.contains("webhook"), "{written}");
}

#[test]
fn limits_of_agents_are_typed_in_the_window() {
    let (bench, mut window) = configured("# mine\nmemory:\n  # a comment\n  learn: true\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    let field = "Confidence for replays";
    until(&mut window, "the field", |window| window.query_by_role_and_label(Role::TextInput, field).is_some());
    for (label, typed, written) in [
        (field, "0.8", "follow_confidence: 0.8"),
        ("Tools that always ask", "write_file; shell: cargo *", "shell: cargo *"),
        ("Tools that never ask", "read_file", "never_approve"),
        ("Cost limit of a session", "2.5", "cost_limit: 2.5"),
        ("Time limit of a run", "90 min", "run: 90 min"),
        ("Memory of the sandbox", "500", "memory_mb: 500"),
    ] {
        fill(&mut window, label, typed);
        until(&mut window, "it is written", |_| config(&bench).contains(written));
    }
    fill(&mut window, field, "2");
    until(&mut window, "it is refused", |window| {
        window.query_all_by_label_contains("2 is no share; it takes 0 to 1").next().is_some()
    });
    window.get_by_role_and_label(Role::Switch, "Prefer the cheapest model").click_accesskit();
    until(&mut window, "it is written", |_| config(&bench).contains("prefer_cheapest: true"));
    let written = config(&bench);
    assert!(written.starts_with("# mine\n") && written.contains("# a comment"), "{written}");
    assert!(written.contains("follow_confidence: 0.8"), "{written}");
}

#[test]
fn an_mcp_server_is_added_and_switched_off() {
    let (bench, mut window) = configured("# mine\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    let field = "Command or address of an MCP server";
    until(&mut window, "the field", |window| window.query_by_role_and_label(Role::TextInput, field).is_some());
    fill(&mut window, field, "http://127.0.0.1:1/mcp");
    until(&mut window, "it is written", |_| config(&bench).contains("http://127.0.0.1:1/mcp"));
    let row = "MCP server server: ";
    until(&mut window, "it has a row", |window| window.query_all_by_label_contains(row).next().is_some());
    window.get_by_role_and_label(Role::Button, "Sign in to server");
    window.get_by_role_and_label(Role::Switch, "Use server").click_accesskit();
    until(&mut window, "it is off", |_| config(&bench).contains("enabled: false"));
    until(&mut window, "it is said", |window| window.query_by_label("MCP server server: Off.").is_some());
    assert!(window.query_by_label("Sign in to server").is_none());
}
