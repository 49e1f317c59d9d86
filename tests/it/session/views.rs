//! Generated views: proposed, drawn after the user's approval, with buttons subject to the policy.

use super::agents::{RUN, agent, answer, ask, fine, results, run, said};
use crate::twin::Twin;
use agent::tool_job::ToolJob;
use engine::commands::CommandId;
use engine::{AgentRun, Command, Event, generated_view};
use serde_json::{Value, json};
use store::{BlobHash, DecisionRecord, DecisionScope, DocId, RunEnding};

const PRESS: DocId = DocId([9; 16]);

fn block(view: &Value) -> String {
    format!("```view\n{}\n```\n", json!({"title": "Beds", "view": view}))
}

fn buttons() -> Value {
    let button = |label: &str, action: Value| json!({"type": "button", "label": label, "action": action});
    json!({"type": "column", "children": [
        button("Note it", json!({"tool": "write_file", "arguments": {"path": "b.md", "content": "b\n"}})),
        button("Build", json!({"tool": "shell", "arguments": {"command": "make"}})),
        button("Run", json!({"command": "note.run_all"})),
        button("Odd", json!({"tool": "shell", "arguments": {"line": "make"}})),
        button("Out", json!({"tool": "write_file", "arguments": {"path": "../x", "content": ""}}))]})
}

/// A note with a view, and the hash that names the view.
fn beds() -> (Twin, DocId, BlobHash) {
    let text = format!("# Beds\n\n```python\n6 * 7\n```\n\n{}", block(&buttons()));
    let mut twin = agent(&[("a.md", &text)], "");
    let note = twin.open("a.md");
    let name = generated_view::source_hash(generated_view::view_source(&block(&buttons())).expect("a view"));
    (twin, note, name)
}

fn show(twin: &mut Twin, note: DocId, view: BlobHash, shown: bool) {
    twin.command(Command::ShowView { note, view, shown }).expect("taken");
    twin.settle();
}

fn press(twin: &mut Twin, note: DocId, view: BlobHash, button: usize) {
    twin.command(Command::Press { run: PRESS, note, view, button }).expect("pressed");
    twin.rest();
}

fn pressed(twin: &Twin) -> &AgentRun {
    twin.session.agents().run(PRESS).expect("it is a run")
}

#[test]
fn the_users_word_is_kept_with_the_note_and_holds_for_this_very_view() {
    let (mut twin, note, name) = beds();
    assert!(!twin.note(note).shows_view(name));
    let why = twin.command(Command::Press { run: PRESS, note, view: name, button: 0 }).expect_err("not drawn");
    assert!(why.0.contains("Render preview"), "{why}");
    let why = twin.command(Command::ShowView { note, view: BlobHash([1; 32]), shown: true }).expect_err("none");
    assert!(why.0.contains("the view no longer exists"), "{why}");
    show(&mut twin, note, name, true);
    assert!(twin.note(note).shows_view(name));
    assert!(twin.sent.iter().any(|(doc, _)| *doc == note.outputs_id()), "it goes to other devices");

    // The approval survives a restart; a changed view needs another one.
    let mut twin = Twin::start(twin.crash(), 7);
    twin.settle();
    let note = twin.open("a.md");
    assert!(twin.note(note).shows_view(name));
    let at = twin.text(note).find("Note it").expect("there");
    twin.edit(note, at, 4, "Keep");
    twin.settle();
    let text = twin.text(note);
    let changed = generated_view::view_source(&text[text.find("```view").expect("there")..]).expect("a view");
    assert!(!twin.note(note).shows_view(generated_view::source_hash(changed)));
    let why = twin.command(Command::Press { run: PRESS, note, view: name, button: 0 }).expect_err("changed");
    assert!(why.0.contains("the view no longer exists"), "{why}");
    show(&mut twin, note, name, false);
    assert!(!twin.note(note).shows_view(name));
}

#[test]
fn a_button_is_a_run_of_which_the_policy_decides() {
    let (mut twin, note, name) = beds();
    show(&mut twin, note, name, true);
    press(&mut twin, note, name, 0);
    twin.settle();
    assert_eq!(pressed(&twin).about.ending, Some(RunEnding::Done));
    assert_eq!(twin.file("b.md").as_deref(), Some("b\n"));
    assert_eq!((pressed(&twin).changes.len(), twin.models.len()), (1, 0), "no model was called");
    twin.command(Command::Revert { run: PRESS, only: None, again: false }).expect("taken back");
    twin.settle();
    assert_eq!(twin.file("b.md"), None);

    // A risky action asks; a second press meanwhile starts a separate run.
    let shell = DocId([10; 16]);
    twin.command(Command::Press { run: shell, note, view: name, button: 1 }).expect("pressed");
    twin.rest();
    let command = DocId([11; 16]);
    twin.command(Command::Press { run: command, note, view: name, button: 2 }).expect("pressed");
    twin.rest();
    let what = |twin: &Twin, id: DocId| {
        let run = twin.session.agents().run(id).expect("a run");
        run.pending().map(|approval| (approval.id.clone(), approval.what.clone())).next()
    };
    let (first, said) = what(&twin, shell).expect("it waits");
    assert!(said.contains("make") && twin.tools.is_empty(), "{said}");
    let (second, said) = what(&twin, command).expect("it waits");
    assert_eq!(said, "Run all cells in a.md");
    assert!(twin.asked.is_empty(), "no cell runs yet");
    for (run, approval, allowed) in [(shell, first, false), (command, second, true)] {
        let scope = DecisionScope::Once;
        let decision = DecisionRecord::by_user(allowed, scope);
        twin.command(Command::Decide { run, approval, decision }).expect("decided");
        twin.rest();
    }
    assert!(twin.tools.is_empty());
    assert_eq!(twin.session.agents().run(shell).expect("a run").about.ending, Some(RunEnding::Failed));
    assert_eq!(twin.asked.len(), 1, "the cell runs");
    assert_eq!(twin.session.agents().run(command).expect("a run").about.ending, Some(RunEnding::Done));

    for (button, id) in [(3, 12), (4, 13)] {
        let run = DocId([id; 16]);
        twin.command(Command::Press { run, note, view: name, button }).expect("pressed");
        twin.rest();
        let run = twin.session.agents().run(run).expect("a run");
        assert_eq!(run.about.ending, Some(RunEnding::Failed), "button {button}");
        assert!(twin.tools.is_empty() && !results(run)[0].0);
    }
    assert!(twin.command(Command::Press { run: DocId([14; 16]), note, view: name, button: 5 }).is_err());
}

#[test]
fn what_an_agent_proposes_is_checked_before_it_stands_in_the_note() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    ask(&mut twin, "show the beds");
    let wrong = json!({"type": "script", "code": "rm"});
    let right = json!({"type": "text", "text": "{property:beds} beds"});
    let call = |view: &Value| ("propose_view", json!({"path": "a.md", "title": "Beds", "view": view}));
    answer(&mut twin, said("", &[call(&wrong)]));
    twin.pass(5_000);
    let told = &results(run(&twin))[0];
    assert!(!told.0 && told.1.contains("there is no \u{201c}script\u{201d}") && told.1.contains("SOURCE"), "{told:?}");
    assert_eq!(twin.file("a.md").as_deref(), Some("# A\n"));
    answer(&mut twin, said("", &[call(&right)]));
    twin.pass(5_000);
    assert!(results(run(&twin))[1].0, "{:?}", results(run(&twin)));
    let text = twin.file("a.md").expect("there");
    let source = generated_view::view_source(&text[text.find("```view").expect("it stands there")..])
        .expect("a view")
        .to_owned();
    let note = twin.id("a.md");
    twin.command(Command::OpenNote { note }).expect("opened");
    twin.rest();
    assert!(!twin.note(note).shows_view(generated_view::source_hash(&source)), "nothing is drawn by itself");
    twin.command(Command::Revert { run: RUN, only: None, again: false }).expect_err("it is at work");
    answer(&mut twin, said("There it is.", &[]));
    twin.command(Command::Revert { run: RUN, only: None, again: false }).expect("taken back");
    twin.settle();
    assert_eq!(twin.file("a.md").as_deref(), Some("# A\n"));
}

#[test]
fn a_press_that_was_interrupted_is_not_pressed_again() {
    let (mut twin, note, name) = beds();
    show(&mut twin, note, name, true);
    press(&mut twin, note, name, 1);
    let mut twin = Twin::start(twin.crash(), 8);
    twin.rest();
    let approval = pressed(&twin).pending().next().expect("it waits still").id.clone();
    let decision = DecisionRecord::by_user(true, DecisionScope::Once);
    twin.command(Command::Decide { run: PRESS, approval, decision }).expect("decided");
    twin.rest();
    let (of, call, job) = twin.tools.remove(0);
    assert!(matches!(job, ToolJob::Shell { .. }));
    twin.event(Event::ToolDone { run: of, call, outcome: Box::new(fine("built")) });
    twin.rest();
    assert_eq!(pressed(&twin).about.ending, Some(RunEnding::Done));
    assert!(twin.models.is_empty() && twin.tools.is_empty());
}

#[test]
fn buttons_ask_for_commands_that_exist() {
    for button in generated_view::BUTTON_COMMANDS {
        let command = button.id.parse::<CommandId>();
        assert_eq!(command.map(CommandId::title), Ok(button.title), "{}", button.id);
    }
}
