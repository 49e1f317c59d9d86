//! Traces that improve, in the window: runs and traces are rated, an edited result is proposed, compared and used.

use super::agent::{ask, asked, ended, model, run, shows, soon};
use super::*;
use engine::commands::CommandId;
use serde_json::{Value, json};

const GOAL: &str = "Write the report for October 2026 into reports/2026-10.md";
const CSV: &str = "day,sold\n1,517\n";

/// A window in which a report was learned and replayed for November.
fn replayed(bench: &Bench) -> Driven {
    let (address, _) = model(|turn, _: &Value| match turn {
        0 => (String::new(), vec![("read_file", json!({"path": "data/2026-10.csv"}))]),
        1 => {
            let content = "# October 2026\n\nSee data/2026-10.csv\n";
            (String::new(), vec![("write_file", json!({"path": "reports/2026-10.md", "content": content}))])
        }
        _ => ("The report for October 2026 is written.".to_owned(), Vec::new()),
    });
    let mut window = asked(bench, &address);
    ask(&mut window, GOAL);
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "it is learned", |window| {
        let mut volumes = session(window).memory_volumes();
        volumes.any(|volume| volume.files.keys().any(|path| path.starts_with("memory/traces/")))
    });
    let ctx = window.ctx.clone();
    window.state_mut().perform_command(&ctx, CommandId::AgentNew);
    window.run();
    type_text(&mut window, "Write the report for November 2026 into reports/2026-11.md");
    soon(&mut window, "it is offered", |window| shows(window, "From memory: 1 experience, 1 trace"));
    click_label(&mut window, &format!("Replay without a model: {GOAL}"));
    window.get_by_label("Message to the agent").focus();
    window.run();
    window.key_press_modifiers(NONE, Key::Enter);
    window.step();
    soon(&mut window, "it has ended", ended);
    until(&mut window, "it is written", |_| bench.notes().join("reports/2026-11.md").exists());
    assert_eq!(run(&window).about.iteration, 0, "no model was called");
    window
}

fn bench() -> Bench {
    Bench::new(&[("Talk.md", "# Talk\n"), ("data/2026-10.csv", CSV), ("data/2026-11.csv", CSV)])
}

/// Shows the page of traces with the trace unfolded.
fn unfolded(window: &mut Driven) {
    press(window, Modifiers::COMMAND | Modifiers::ALT, Key::R);
    until(window, "it is listed", |window| shows(window, &format!("Trace: {GOAL}")));
    click_label(window, &format!("Trace: {GOAL}"));
}

#[test]
fn a_run_and_a_trace_are_rated_and_the_rating_is_removed() {
    let bench = bench();
    let mut window = replayed(&bench);
    window.get_by_label("Rate as good").click();
    soon(&mut window, "it is rated", |window| shows(window, "Remove rating: good"));
    pictured(&mut window, "run-rated");
    unfolded(&mut window);
    until(&mut window, "it counts", |window| shows(window, "86 % sure"));
    until(&mut window, "it is seen", |window| shows(window, "was rated good"));
    window.get_by_label("Remove rating: good").click();
    until(&mut window, "it is removed", |window| shows(window, "80 % sure"));
    window.get_by_label("Rate as bad").click();
    until(&mut window, "it counts", |window| shows(window, "40 % sure"));
    window.get_by_label_contains("Remove rating: bad").click();
    until(&mut window, "it is removed", |window| shows(window, "80 % sure"));
    // The trace as a whole.
    window.get_by_label("Rate bad").click();
    until(&mut window, "it counts", |window| shows(window, "57 % sure"));
    assert!(shows(&mut window, "the trace was rated bad"));
    window.get_by_label("Remove rating: bad").click();
    until(&mut window, "it is removed", |window| shows(window, "80 % sure"));
}

#[test]
fn an_edited_result_is_proposed_compared_and_used() {
    let bench = bench();
    let mut window = replayed(&bench);
    let note = "reports/2026-11.md";
    assert_eq!(bench.file(note), "# November 2026\n\nSee data/2026-11.csv\n");
    let edited = "# Report: November 2026\n\nSee data/2026-11.csv\n";
    std::fs::write(bench.notes().join(note), edited).expect("written");
    let hash = store::BlobHash::of(edited.as_bytes());
    until(&mut window, "it is seen", |window| {
        let mut volumes = session(window).volumes();
        volumes.any(|volume| volume.files.get(note).is_some_and(|row| row.hash == hash))
    });
    unfolded(&mut window);
    until(&mut window, "it is proposed", |window| shows(window, "2. edited after run"));
    assert!(shows(&mut window, "proposed and not used") && shows(&mut window, "1. learned on"));
    assert!(shows(&mut window, "40 % sure"), "the edited replay wasn't good");
    if window.query_by_label("Compare version 2").is_some() {
        window.get_by_label("Compare version 2").click();
        window.run();
    }
    assert!(shows(&mut window, "from version 1 to version 2"), "what differs");
    assert!(shows(&mut window, "+       # Report: {month1:words}"), "line by line");
    pictured(&mut window, "trace-versions");
    // They may be below what is visible.
    window.get_by_label("Use version 2").click_accesskit();
    until(&mut window, "it is used", |window| shows(window, "67 % sure"));
    assert!(!shows(&mut window, "proposed and not used"));
    // And back again.
    window.get_by_label("Compare version 1").click_accesskit();
    window.run();
    assert!(shows(&mut window, "-       # {month1:words}"));
    window.get_by_label("Use version 1").click_accesskit();
    until(&mut window, "it is rolled back", |window| shows(window, "3. rolled back to version 1"));
    assert!(shows(&mut window, "40 % sure"), "with its counts");
}
