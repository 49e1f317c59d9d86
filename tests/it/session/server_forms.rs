//! A tool server has the user fill in a form during a call: the run waits, the server gets exactly the answers, a
//! refusal or the end, and the run's model learns nothing of it.

use super::agents::{RUN, answer, decide, done, fine, run, said, setup};
use super::sampling::{at_work, decide_with, waits};
use crate::twin::Twin;
use agent::server_form::{FormAnswer, UserForm, with_answers};
use agent::server_request::ServerRequest;
use engine::{Command, Event};
use serde_json::{Map, Value, json};
use store::{DecisionScope, RunEnding};

fn asks(twin: &mut Twin, name: &str) {
    let properties = json!({"city": {"type": "string", "title": "City"}, "days": {"type": "integer", "default": 3}});
    let schema = json!({"type": "object", "properties": properties, "required": ["city"]});
    let form = UserForm::from_schema("weather", "Where to?", &schema).expect("a form");
    let (call, request, server) = ("c0".to_owned(), name.to_owned(), "weather".to_owned());
    let asked = Box::new(ServerRequest::Form(form));
    twin.event(Event::ServerAsked { run: RUN, call, request, server, asked });
    twin.rest();
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

/// The answers of the servers' forms since the last look.
fn told(twin: &mut Twin) -> Vec<FormAnswer> {
    std::mem::take(&mut twin.filled_forms).into_iter().map(|(_, answer)| answer).collect()
}

#[test]
fn a_default_that_the_user_empties_is_not_sent() {
    let mut twin = at_work("");
    asks(&mut twin, "f1");
    let emptied = with_answers(&waits(&twin)[0].arguments, object(json!({"city": "Bonn", "days": null})));
    decide_with(&mut twin, "f1", emptied).expect("sent");
    assert_eq!(told(&mut twin), [FormAnswer::Filled(object(json!({"city": "Bonn"})))]);
}

#[test]
fn a_form_waits_for_answers_that_fit() {
    let mut twin = at_work("approval: {never_approve: [mcp_form]}\n");
    asks(&mut twin, "f1");
    let shown = waits(&twin);
    assert_eq!((shown.len(), shown[0].tool.as_str(), shown[0].reach.as_str()), (1, "mcp_form", ""));
    assert_eq!(shown[0].what, "The tool server weather asks you: Where to?");
    assert_eq!(shown[0].arguments["answers"], json!({"days": 3}));
    // What is missing, wrong, unknown, or not an answer is refused, and the form waits on.
    let with = |answers: Value| with_answers(&shown[0].arguments, object(answers));
    let mut forged = with(json!({"city": "Bonn"}));
    forged.insert("server".to_owned(), json!("bank"));
    for (arguments, why) in [
        (with(json!({})), "city has no answer"),
        (with(json!({"city": "Bonn", "days": "many"})), "it takes a whole number"),
        (with(json!({"city": "Bonn", "other": 1})), "no field other"),
        (forged, "only the answers"),
    ] {
        let refused = decide_with(&mut twin, "f1", arguments).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
    assert!(told(&mut twin).is_empty() && waits(&twin).len() == 1);
    decide_with(&mut twin, "f1", with(json!({"city": "Bonn"}))).expect("sent");
    assert_eq!(told(&mut twin), [FormAnswer::Filled(object(json!({"city": "Bonn", "days": 3})))]);
    // The tool continues, and the model sees its result only.
    done(&mut twin, fine("It rains."));
    let (_, next) = answer(&mut twin, said("It rains.", &[]));
    assert!(next.messages.iter().all(|message| !message.content.contains("Bonn")), "{:?}", next.messages);
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

#[test]
fn a_form_is_declined_closed_and_bounded() {
    let mut twin = at_work("approval: {timeout_seconds: 300}\n");
    asks(&mut twin, "f1");
    decide(&mut twin, "f1", false, DecisionScope::Once);
    assert_eq!(told(&mut twin), [FormAnswer::Declined]);
    asks(&mut twin, "f2");
    twin.pass(301_000);
    assert_eq!(told(&mut twin), [FormAnswer::Closed], "nobody said no");
    for number in 3..=10 {
        asks(&mut twin, &format!("f{number}"));
    }
    assert_eq!(waits(&twin).len(), 8);
    asks(&mut twin, "f11");
    assert_eq!((told(&mut twin), waits(&twin).len()), (vec![FormAnswer::Closed], 8), "a run has ten");
    twin.command(Command::CancelRun { run: RUN }).expect("stopped");
    twin.rest();
    assert_eq!(told(&mut twin), vec![FormAnswer::Closed; 8]);
    assert!(waits(&twin).is_empty());
    // A rule says no for the user.
    let mut twin = at_work("approval: {deny: [mcp_form]}\n");
    asks(&mut twin, "f1");
    assert_eq!((told(&mut twin), waits(&twin).len()), (vec![FormAnswer::Declined], 0));
}

#[test]
fn a_crash_leaves_no_form_without_a_server() {
    let mut twin = at_work("");
    asks(&mut twin, "f1");
    let mut twin = Twin::start(twin.crash(), 2);
    twin.setup = setup("");
    twin.command(Command::OpenRun { run: RUN }).expect("opened");
    twin.settle();
    assert!(waits(&twin).is_empty() && told(&mut twin).is_empty());
}
