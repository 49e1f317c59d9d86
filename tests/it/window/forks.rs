//! Forks in the window: a question that is worked on in a copy, and the page on which copies are compared, adopted in
//! parts and discarded.

use super::agent::{Said, ask, asked, ended, model, shows, soon};
use super::source_control::{click, commit_all, git, wait};
use super::*;
use engine::commands::CommandId;
use serde_json::{Value, json};

const PLAN: &str = "# Plan\n\none\n\ntwo\n\nthree\n\nfour\n\nfive\n";

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": "Plan.md", "old_content": old, "new_content": new}))
}

/// A model that shortens, or rewrites.
fn writers() -> String {
    let script = |turn: usize, body: &Value| -> Said {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let asked =
            messages.iter().rfind(|message| message["role"] == "user").map(|message| message["content"].to_string());
        let calls = match asked.is_some_and(|asked| asked.contains("rewrite the plan")) {
            true => vec![edit("two", "TWO"), edit("three", "THREE")],
            false => {
                let new = json!({"path": "New.md", "content": "new\n"});
                vec![edit("one", "1"), edit("five", "5"), ("write_file", new)]
            }
        };
        match calls.into_iter().nth(turn) {
            Some(call) => (String::new(), vec![call]),
            None => ("Done.".to_owned(), Vec::new()),
        }
    };
    model(script).0
}

fn perform(window: &mut Driven, command: CommandId) {
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, command);
}

/// Asks in a new fork, and waits until the run is over.
fn ask_in_fork(window: &mut Driven, text: &str) {
    click(window, "Work in a fork");
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
    let before = session(window).agents().runs().count();
    ask(window, text);
    soon(window, "the run began", |window| session(window).agents().runs().count() > before);
    soon(window, "the run ended", ended);
}

#[test]
fn forks_are_compared_adopted_in_parts_taken_back_and_discarded() {
    let bench = Bench::new(&[("Plan.md", PLAN), ("Other.md", "other\n")]);
    commit_all(&bench);
    let mut window = asked(&bench, &writers());
    ask_in_fork(&mut window, "shorten the plan");
    assert_eq!(bench.file("Plan.md"), PLAN, "the user's folder stays as it is");
    assert!(!bench.notes().join("New.md").exists());

    click(&mut window, "In the fork shorten-the-plan");
    window.get_by_role_and_label(Role::Heading, "Forks");
    wait(&mut window, "Fork shorten-the-plan: Done  ·  notes  ·  2 changed files");
    window.get_by_label_contains("Fork shorten-the-plan").click();
    wait(&mut window, "-one\n+1\n");
    wait(&mut window, "Show the step: edit_file Plan.md");
    window.get_by_role_and_label(Role::CheckBox, "Adopt New.md");
    pictured(&mut window, "forks");

    // What changed after it was shown isn't adopted.
    let root = session(&window).fork_volumes().next().and_then(|volume| volume.root.clone()).expect("a folder");
    std::fs::write(root.join("Late.md"), "late\n").expect("written");
    click(&mut window, "Adopt all");
    wait(&mut window, "The fork has changed since it was shown; look at its changes again");
    assert!(!bench.notes().join("Late.md").exists() && bench.file("Plan.md") == PLAN);
    window.get_by_role_and_label(Role::CheckBox, "Adopt Late.md");
    std::fs::remove_file(root.join("Late.md")).expect("removed");
    for _ in 0..2 {
        window.get_by_label_contains("Fork shorten-the-plan: ").click();
        window.run();
    }
    until(&mut window, "it is read again", |window| !shows(window, "Adopt Late.md"));

    // A part is adopted as a merge, with a commit.
    window.get_by_role_and_label(Role::CheckBox, "Adopt hunk 2 of Plan.md").click();
    window.run();
    click(&mut window, "Adopt the chosen");
    wait(&mut window, "Adopted 2 files. Committed as ");
    assert_eq!(bench.file("Plan.md"), PLAN.replace("one", "1"));
    assert_eq!(bench.file("New.md"), "new\n");
    assert!(git(&bench.notes(), &["log", "-1", "--format=%s"]).starts_with("Adopt fork shorten-the-plan: shorten the"));
    wait(&mut window, "Fork shorten-the-plan: Adopted in part");
    click(&mut window, "Undo the adoption");
    wait(&mut window, "Undid the adoption of 2 files.");
    assert_eq!(bench.file("Plan.md"), PLAN);
    assert!(!bench.notes().join("New.md").exists());

    // Where both have changed the same, the user says whose lines count.
    std::fs::write(bench.notes().join("Plan.md"), PLAN.replace("one", "uno")).expect("written");
    until(&mut window, "the project's change is read", |window| {
        perform(window, CommandId::FolderRescan);
        shows(window, "Adopt the chosen")
    });
    window.get_by_role_and_label(Role::CheckBox, "Adopt hunk 2 of Plan.md").click();
    window.run();
    click(&mut window, "Adopt all");
    wait(&mut window, "The project has changed where the fork has, so nothing was changed.");
    assert!(shows(&mut window, "Project: uno"));
    pictured(&mut window, "forks-conflict");
    click(&mut window, "Take the fork's lines");
    wait(&mut window, "Adopted 2 files.");
    assert_eq!(bench.file("Plan.md"), PLAN.replace("one", "1").replace("five", "5"));

    // A second fork is compared with the first.
    perform(&mut window, CommandId::AgentNew);
    window.run();
    ask_in_fork(&mut window, "rewrite the plan");
    wait(&mut window, "Fork rewrite-the-plan: Done");
    window.get_by_label_contains("Fork shorten-the-plan: ").click();
    window.run();
    window.get_by_label_contains("Fork rewrite-the-plan: ").click();
    window.run();
    click(&mut window, "Compare with the fork shorten-the-plan");
    wait(&mut window, "Plan.md in the fork rewrite-the-plan: changed");
    assert!(shows(&mut window, "New.md in the fork rewrite-the-plan: unchanged"));
    let head = |name: &str| window.get_by_role_and_label(Role::Heading, &format!("Fork {name}")).rect();
    assert!(head("rewrite-the-plan").right() < head("shorten-the-plan").left(), "the columns have names");
    pictured(&mut window, "forks-compared");

    click(&mut window, "Discard…");
    wait(&mut window, "there’s no undo");
    click(&mut window, "Keep it");
    click(&mut window, "Discard…");
    click(&mut window, "Discard fork");
    wait(&mut window, "The fork rewrite-the-plan is gone.");
    assert!(!shows(&mut window, "Fork rewrite-the-plan: "));
    assert_eq!(git(&bench.notes(), &["branch", "--list", "tracebook/*"]), "+ tracebook/fork-shorten-the-plan");

    // The session of a fork continues in it.
    window.get_by_label_contains("Fork shorten-the-plan: ").click();
    wait(&mut window, "Open its session");
    click(&mut window, "Open its session");
    window.get_by_label("In the fork shorten-the-plan");
    assert!(window.query_by_label("Work in a fork").is_none(), "its place is settled");
}

#[test]
fn a_fork_that_cannot_be_made_keeps_the_message() {
    let bench = Bench::new(&[("Plan.md", PLAN)]);
    // A repository without a commit has no place to begin at.
    git(&bench.notes(), &["init", "-q", "-b", "main"]);
    let mut window = asked(&bench, &writers());
    perform(&mut window, CommandId::ViewForks);
    window.run();
    wait(&mut window, "No forks yet");
    pictured(&mut window, "forks-none");
    click(&mut window, "Ask the agent");
    click(&mut window, "Work in a fork");
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
    ask(&mut window, "shorten the plan");
    soon(&mut window, "it says why", |window| shows(window, "no commit"));
    assert!(session(&window).agents().runs().next().is_none());
    let field = window.get_by_label("Message to the agent");
    assert_eq!(egui_kittest::kittest::NodeT::accesskit_node(&field).value().as_deref(), Some("shorten the plan"));
}
