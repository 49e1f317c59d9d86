//! A program that works as an agent over the Agent Client Protocol, in the window's panel: chosen by its name, asked,
//! allowed and denied, its changes reverted one by one, and its writing merged with what the user types. The program is
//! `tests/data/acp_agent.py`.

use super::agent::{ask, asked_with, ended, model, run, shows, soon};
use super::*;

/// A window with the program under the name `mine`, and the path of the file that the program tells of itself in.
fn with_program(bench: &Bench) -> (Driven, PathBuf) {
    let told = bench.folder.path().join("told");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/data/acp_agent.py");
    let program = format!(
        "acp_agents:\n  mine: {{command: python3, args: [{script:?}], env: {{PID_FILE: {:?}}}}}\n",
        told.display().to_string()
    );
    // Its own agents' model isn't asked.
    let (address, _go) = model(|_, _| ("Not asked.".to_owned(), Vec::new()));
    let window = asked_with(bench, &address, |config| {
        let models = std::fs::read_to_string(config).expect("a configuration");
        std::fs::write(config, format!("{models}{program}")).expect("written");
    });
    (window, told)
}

/// Chooses the program among the offered names, and asks it.
fn ask_program(window: &mut Driven, text: &str) {
    type_text(window, "@min");
    soon(window, "the program is offered", |window| window.query_by_label("mine").is_some());
    window.key_press_modifiers(NONE, Key::Enter);
    window.run_steps(3);
    ask(window, text);
}

#[test]
fn a_programs_plan_diff_and_questions_are_shown_and_one_of_two_changes_is_reverted() {
    let middle: String = (0..12).map(|line| format!("line {line}\n")).collect();
    let list = |first: &str, last: &str| format!("# List\n\n{first}\n\n{middle}\n{last}\n");
    let before = list("first", "last");
    let bench = Bench::new(&[("Talk.md", "# Talk\n"), ("List.md", &before)]);
    let (mut window, _) = with_program(&bench);
    ask_program(&mut window, "panel please");

    // It asks; all that it wants to change is shown, and its plan.
    soon(&mut window, "it asks", |window| shows(window, "The agent waits: Let the agent: Change List.md"));
    assert!(shows(&mut window, "I look at the list."), "its message is shown");
    assert!(shows(&mut window, "+++ after") && shows(&mut window, "last, changed"), "the difference is shown");
    window.get_by_label("Todos: 0 of 2").click();
    window.run_steps(3);
    for todo in ["Change the list", "Run make"] {
        window.get_by_role_and_label(Role::CheckBox, todo);
    }
    window.get_by_label("Todos: 0 of 2").click();
    window.run_steps(3);
    assert_eq!(bench.file("List.md"), before, "nothing is done before it is allowed");
    window.get_by_label("Allow").click();
    soon(&mut window, "it asks again", |window| shows(window, "The agent waits: Let the agent: Run make"));
    window.get_by_label("Deny").click();
    soon(&mut window, "it has ended", ended);
    soon(&mut window, "its answer is shown", |window| shows(window, "Chosen yes, then no."));
    assert_eq!(run(&window).about.agent, "mine");
    let answers: Vec<Option<bool>> =
        run(&window).approvals.iter().map(|one| one.decision.as_ref().map(|it| it.allowed)).collect();
    assert_eq!(answers.last(), Some(&Some(false)), "{answers:?}");
    assert!(answers.contains(&Some(true)), "{answers:?}");

    // Its step shows the difference.
    window.get_by_label_contains("agent_report").click();
    window.run();
    assert!(shows(&mut window, "-first\n+first, changed\n"), "the difference of its step is shown");

    // One of its two changes is reverted, the other stays.
    let both = list("first, changed", "last, changed");
    until(&mut window, "both are in the file", |_| bench.file("List.md") == both);
    click_label(&mut window, "1 file changed");
    window.get_by_label("Revert: List.md part 2");
    window.get_by_label("Revert: List.md part 1").click();
    let other = list("first", "last, changed");
    until(&mut window, "the first is reverted", |_| bench.file("List.md") == other);
    window.get_by_label("Bring it back: List.md part 1");
    window.get_by_label("Revert: List.md part 2").click();
    until(&mut window, "the other is reverted", |_| bench.file("List.md") == before);
    window.get_by_label("Bring it back: List.md part 1").click();
    let first = list("first, changed", "last");
    until(&mut window, "the first is there again", |_| bench.file("List.md") == first);
}

#[test]
fn what_a_program_writes_is_merged_with_what_the_user_types_meanwhile() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n\nA line of text.\n\nThe end.\n")]);
    let (mut window, told) = with_program(&bench);
    ask_program(&mut window, "live please");
    soon(&mut window, "it has read the note", |_| told.exists());
    window.get_by_label("A line of text.").click();
    window.run_steps(3);
    window.key_press_modifiers(NONE, Key::End);
    window.run_steps(3);
    for letter in " Typed.".chars() {
        window.event(egui::Event::Text(letter.to_string()));
    }
    window.run_steps(3);
    assert_eq!(text(&window).as_deref(), Some("# Talk\n\nA line of text. Typed.\n\nThe end.\n"));
    std::fs::write(bench.folder.path().join("told.go"), "go").expect("written");
    // The user types on while it writes.
    let mut letters = 0;
    let begun = Instant::now();
    while !ended(&mut window) {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not end");
        window.event(egui::Event::Text("x".to_owned()));
        window.step();
        letters += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    window.run_steps(3);
    let merged = format!("# Talk\n\nA line of text. Typed.{}\n\nThe end.\n\nFrom the agent.\n", "x".repeat(letters));
    assert_eq!(text(&window), Some(merged.clone()));
    until(&mut window, "all of it is in the file", |_| bench.file("Talk.md") == merged);
}
