//! The deadline of a message's run, typed above the message.

use super::agent::{ask, asked, ended, model, run, shows, soon};
use super::*;

#[test]
fn a_message_has_a_deadline_and_a_wrong_one_sends_nothing() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let (address, _go) = model(|_, _| ("Done.".to_owned(), Vec::new()));
    let mut window = asked(&bench, &address);
    type_text(&mut window, "Count the beds");
    window.run_steps(3);
    window.get_by_label("Deadline").focus();
    window.run_steps(3);
    type_text(&mut window, "soon");
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
    window.key_press_modifiers(NONE, Key::Enter);
    window.step();
    soon(&mut window, "it says why", |window| shows(window, "“soon” is no deadline"));
    assert!(session(&window).agents().runs().next().is_none(), "nothing was sent");
    window.get_by_label("Deadline").focus();
    window.run_steps(3);
    for _ in 0.."soon".len() {
        window.key_press_modifiers(NONE, Key::Backspace);
        window.step();
    }
    type_text(&mut window, "20 min");
    window.get_by_label("Message to the agent").focus();
    window.run_steps(3);
    window.key_press_modifiers(NONE, Key::Enter);
    window.step();
    soon(&mut window, "it has ended", ended);
    let about = run(&window).about.clone();
    assert_eq!(about.prompt, "Count the beds");
    let after = about.deadline.map(|deadline| deadline - about.start_time).expect("it has one");
    assert!((1_100_000..=1_200_000).contains(&after), "{after} ms");
    // The next message has none.
    ask(&mut window, "And the rows");
    soon(&mut window, "it has ended, too", |window| session(window).agents().runs().count() == 2 && ended(window));
    assert_eq!(run(&window).about.deadline, None);
}
