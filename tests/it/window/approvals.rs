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
