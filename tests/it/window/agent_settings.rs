//! Limits, rules, approvals, agents and MCP servers in the window: written into `config.yaml`, with its comments kept.

use super::agent::{ask, asked_with, ended, model, shows};
use super::*;
use ::agent::agent_registry::AgentRegistry;
use ::agent::config::AgentConfig;
use engine::commands::CommandId;
use serde_json::json;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

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
        ("New rule", "shell: cargo *", "shell: cargo *"),
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
fn the_space_for_saved_variables_is_a_setting_of_notes() {
    let (bench, mut window) = configured("# mine\n");
    go(&mut window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Notes and files").click();
    let field = "Space for a note's saved variables";
    until(&mut window, "the field", |window| window.query_by_role_and_label(Role::TextInput, field).is_some());
    for (label, typed, written) in [
        (field, "100", "states_budget_mb: 100"),
        ("Space for all saved variables", "900", "workspace_states_budget_mb: 900"),
    ] {
        fill(&mut window, label, typed);
        until(&mut window, "it is written", |_| config(&bench).contains(written));
    }
    fill(&mut window, field, "much");
    until(&mut window, "it is refused", |window| window.query_all_by_label_contains("much").next().is_some());
    assert!(config(&bench).starts_with("# mine\n") && loaded(&bench).kernels.states_budget_mb == 100);
    // An empty field is the default.
    window.get_by_role_and_label(Role::TextInput, field).focus();
    window.run();
    press(&mut window, CTRL, Key::A);
    press(&mut window, NONE, Key::Delete);
    press(&mut window, NONE, Key::Enter);
    until(&mut window, "it is the default", |_| loaded(&bench).kernels.states_budget_mb == 512);
    assert_eq!(loaded(&bench).kernels.workspace_states_budget_mb, 900);
}

/// The configuration as another program reads it.
fn loaded(bench: &Bench) -> AgentConfig {
    let workspace = bench.folder.path().join("workspace");
    host::maintenance::configuration::load_config(&workspace).expect("a configuration")
}

fn is_field(window: &mut Driven, label: &str) -> bool {
    window.query_by_role_and_label(Role::TextInput, label).is_some()
}

/// Takes a removal back by the button at its row.
fn undo_removal(window: &mut Driven, row: &str) {
    until(window, "the removal can be undone", |window| shows(window, row) && shows(window, "Undo removal"));
    window.get_by_label("Undo removal").click_accesskit();
    until(window, "it is undone", |window| !shows(window, "Undo removal"));
}

fn open_agents(window: &mut Driven) {
    go(window, CommandId::AppSettings);
    window.get_by_role_and_label(Role::Tab, "Agents and models").click();
    until(window, "the settings", |window| is_field(window, "New rule"));
}

#[test]
fn a_rule_about_tools_is_added_edited_and_obeyed() {
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = heard.clone();
    let (address, _) = model(move |turn, body| {
        *hears.lock().expect("no panic") = body["messages"].to_string();
        match turn {
            0 => (String::new(), vec![("read_file", json!({"path": "Talk.md"}))]),
            _ => ("Done.".to_owned(), Vec::new()),
        }
    });
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let rules = "approval:\n  # by hand\n  deny:\n    # for good\n    - git_push\n    - 'shell: a; b' # two\n";
    let mut window = asked_with(&bench, &address, |path| {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file");
        file.write_all(rules.as_bytes()).expect("written");
    });
    open_agents(&mut window);
    window.get_by_role_and_label(Role::RadioButton, "Deny a new rule").click_accesskit();
    window.run();
    fill(&mut window, "New rule", "raed_file");
    until(&mut window, "it is refused", |window| shows(window, "There is no tool “raed_file”. Did you mean"));
    assert!(!config(&bench).contains("raed_file"));
    fill(&mut window, "New rule", "read_file");
    until(&mut window, "it is written", |_| config(&bench).contains("- read_file"));
    assert!(config(&bench).contains("# two\n    - read_file\n"), "{}", config(&bench));
    // A semicolon is a part of the rule.
    fill(&mut window, "Rule shell: a; b", "shell: a; c");
    until(&mut window, "it is edited", |_| config(&bench).contains("shell: a; c"));
    assert!(config(&bench).contains("- 'shell: a; c' # two"), "{}", config(&bench));
    until(&mut window, "it is shown", |window| is_field(window, "Rule shell: a; c"));
    let before = config(&bench);
    for is_undone in [true, false] {
        window.get_by_role_and_label(Role::Button, "Remove the rule Deny git_push").click_accesskit();
        until(&mut window, "it is gone", |window| {
            !config(&bench).contains("git_push") && !shows(window, "Remove the rule Deny git_push")
        });
        if is_undone {
            undo_removal(&mut window, "Removed: Deny git_push");
            until(&mut window, "it is back", |window| shows(window, "Remove the rule Deny git_push"));
            assert_eq!(config(&bench), before);
        }
    }
    window.get_by_role_and_label(Role::RadioButton, "Ask shell: a; c").click_accesskit();
    until(&mut window, "it asks", |_| loaded(&bench).approval.always_approve == ["shell: a; c"]);
    assert_eq!(loaded(&bench).approval.deny, ["read_file"]);
    let written = config(&bench);
    assert!(written.contains("# by hand") && written.contains("# for good"), "{written}");
    until(&mut window, "it holds", |window| is_field(window, "Rule read_file"));
    press(&mut window, NONE, Key::Escape);
    window.get_by_label("Message to the agent").focus();
    window.run();
    ask(&mut window, "read it");
    until(&mut window, "it ends", ended);
    let heard = heard.lock().expect("no panic").clone();
    assert!(heard.contains("the rule “read_file” (from the configuration) denies it"), "{heard}");
}

#[test]
fn which_model_is_asked_is_set_in_the_window() {
    let fallback = "  fallback:\n    - openai # first\n    - google\n";
    let rules = "  rules:\n    # by hand\n    - when: large # long\n      use: anthropic\n";
    let (bench, mut window) = configured(&format!("# mine\nllm:\n{fallback}{rules}"));
    open_agents(&mut window);
    fill(&mut window, "Fallback models", "nosuch");
    until(&mut window, "it is refused", |window| shows(window, "there is no provider “nosuch”"));
    fill(&mut window, "Fallback models", "google, openai");
    until(&mut window, "it is written", |_| config(&bench).contains("    - google\n    - openai # first\n"));
    fill(&mut window, "Condition of a new rule", "complexity >");
    until(&mut window, "it is refused", |window| shows(window, "“complexity >” is no condition"));
    fill(&mut window, "Condition of a new rule", "code");
    let providers = "Providers of rule 2";
    until(&mut window, "it is added", |window| is_field(window, providers));
    fill(&mut window, providers, "openai, google");
    until(&mut window, "it is written", |_| loaded(&bench).llm.rules[1].providers.names() == ["openai", "google"]);
    fill(&mut window, "Priority of rule 2", "soon");
    until(&mut window, "it is refused", |window| shows(window, "“soon” isn't a whole number."));
    until(&mut window, "the rule is read", |window| shows(window, "Model rule 2: code: openai, google. Priority 0."));
    fill(&mut window, "Priority of rule 2", "10");
    until(&mut window, "it is written", |_| loaded(&bench).llm.rules[1].priority == 10);
    let written = config(&bench);
    assert!(written.contains("    # by hand\n    - when: large # long\n"), "{written}");
    window.get_by_role_and_label(Role::Button, "Remove model rule 1").click_accesskit();
    until(&mut window, "it is gone", |_| loaded(&bench).llm.rules.len() == 1);
    assert!(config(&bench).starts_with("# mine\n") && config(&bench).contains("# by hand"), "{}", config(&bench));
    undo_removal(&mut window, "Removed: Model rule 1: large: anthropic.");
    until(&mut window, "it is back", |_| loaded(&bench).llm.rules.len() == 2);
    assert_eq!(config(&bench), written);
}

#[test]
fn settings_of_an_agent_are_made_in_the_window() {
    let (bench, mut window) = configured("# mine\nagents:\n  # a comment\n  lead: {temperature: 0.5}\n");
    open_agents(&mut window);
    fill(&mut window, "Name of an agent", "@qa");
    let provider = "Provider of qa";
    until(&mut window, "it has fields", |window| is_field(window, provider));
    fill(&mut window, provider, "nosuch");
    until(&mut window, "it is refused", |window| shows(window, "there is no provider “nosuch”"));
    fill(&mut window, provider, "openai");
    until(&mut window, "it is written", |_| config(&bench).contains("llm_provider: openai"));
    fill(&mut window, "Answer length of qa", "0");
    until(&mut window, "it is refused", |window| shows(window, "no answer fits into 0 tokens"));
    fill(&mut window, "Answer length of qa", "900");
    until(&mut window, "it is written", |_| config(&bench).contains("max_tokens: 900"));
    fill(&mut window, "Deadline of qa", "soon");
    until(&mut window, "it is refused", |window| shows(window, "“soon” is no deadline"));
    fill(&mut window, "Deadline of qa", "20 min");
    until(&mut window, "it is written", |_| config(&bench).contains("deadline: 20 min"));
    fill(&mut window, "Tools of qa", "read_file, raed_file");
    until(&mut window, "it is refused", |window| shows(window, "There is no tool “raed_file”. Did you mean"));
    window.get_by_role_and_label(Role::Switch, "Use the agent qa").click_accesskit();
    let off = |window: &mut Driven| {
        let why = session(window).agent_unavailable_reason(&AgentRegistry::default(), "qa");
        why.is_some_and(|why| why.contains("is switched off"))
    };
    until(&mut window, "it is off", off);
    let written = config(&bench);
    assert!(written.starts_with("# mine\nagents:\n  # a comment\n  lead: {temperature: 0.5}\n"), "{written}");
    window.get_by_role_and_label(Role::Button, "Remove the settings of qa").click_accesskit();
    until(&mut window, "it is on", |window| !off(window));
    assert!(!config(&bench).contains("qa"), "{}", config(&bench));
    undo_removal(&mut window, "Removed: Agent qa: ");
    until(&mut window, "it is off again", off);
    assert_eq!(config(&bench), written);
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
