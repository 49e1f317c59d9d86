//! Desktop notifications: shown while the window isn't in use, and only then.

use super::agent::{ask, asked, ended, model, soon};
use super::*;
use serde_json::json;
use std::sync::mpsc::{Receiver, channel};

/// Collects the notifications of a window: title and text.
fn notified(window: &mut Driven) -> Receiver<(String, String)> {
    let (send, shown) = channel();
    window.state_mut().use_notifier(std::sync::Arc::new(move |title, body| {
        send.send((title.to_owned(), body.to_owned()))?;
        Ok(())
    }));
    shown
}

#[test]
fn a_run_that_ends_in_the_background_is_notified() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let (address, go) = model(|_, _| ("I think ‖ so.".to_owned(), Vec::new()));
    let mut window = asked(&bench, &address);
    let shown = notified(&mut window);
    // With the focus in the window, nothing is shown.
    ask(&mut window, "First?");
    go.send(()).expect("the model waits");
    soon(&mut window, "it is done", ended);
    assert!(shown.recv_timeout(Duration::from_millis(300)).is_err());
    ask(&mut window, "Second?");
    window.input_mut().focused = false;
    window.step();
    go.send(()).expect("the model waits");
    soon(&mut window, "it is done", |window| session(window).agents().runs().count() == 2 && ended(window));
    let (title, body) = shown.recv_timeout(Duration::from_secs(60)).expect("a notification");
    assert_eq!((title.as_str(), body.as_str()), ("The agent is done", "Second?"));
    // Switched off, there are none.
    let settings = engine::Settings { notifications: false, ..session(&window).settings().clone() };
    window.state_mut().send_command(Command::Set { settings: Box::new(settings) });
    window.input_mut().focused = true;
    window.step();
    ask(&mut window, "Third?");
    window.input_mut().focused = false;
    window.step();
    go.send(()).expect("the model waits");
    soon(&mut window, "it is done", |window| session(window).agents().runs().count() == 3 && ended(window));
    assert!(shown.recv_timeout(Duration::from_millis(300)).is_err());
}

#[test]
fn a_run_that_waits_for_approval_in_the_background_is_notified() {
    let bench = Bench::new(&[("Talk.md", "# Talk\n")]);
    let calls = || vec![("shell", json!({"command": "make install"}))];
    let (address, go) = model(move |_, _| ("I build ‖ it.".to_owned(), calls()));
    let mut window = asked(&bench, &address);
    let shown = notified(&mut window);
    ask(&mut window, "Build it");
    window.input_mut().focused = false;
    window.step();
    go.send(()).expect("the model waits");
    soon(&mut window, "it waits", |window| session(window).agents().open_runs().any(|run| run.pending().count() == 1));
    let (title, body) = shown.recv_timeout(Duration::from_secs(60)).expect("a notification");
    assert_eq!(title, "The agent needs your approval");
    assert!(body.contains("make install"), "{body}");
    assert!(shown.try_recv().is_err(), "once");
}

#[test]
fn long_cells_that_end_in_the_background_are_notified() {
    let bench = Bench::new(&[("Long.md", "```python\nimport time\ntime.sleep(6)\n```\n")]);
    let mut window = bench.opened();
    let shown = notified(&mut window);
    window.get_by_label("Run cell 1").click();
    window.run_steps(4);
    window.input_mut().focused = false;
    // The test's clock goes faster than the kernel's: each frame counts as a quarter of a second.
    soon(&mut window, "it has run", |window| {
        session(window)
            .notes()
            .any(|note| note.cells().any(|cell| note.latest_execution(cell).is_some_and(|run| run.status.is_final())))
    });
    let (title, body) = shown.recv_timeout(Duration::from_secs(60)).expect("a notification");
    assert_eq!(title, "Cells finished");
    assert!(body.starts_with("Long, after "), "{body}");
}
