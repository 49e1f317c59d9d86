//! Documents of runs aren't signed: whoever may write in a shared volume may write anything into them. Nothing that
//! they say allows a call or makes a device begin work, also where it carries out another device's run.

use super::agents::{RUN, answer, ask, ask_in, config, decide, done, fine, run, said, setup};
use super::shared::Pair;
use crate::twin::Twin;
use agent::policy::ToolPolicy;
use engine::{Command, Event, HubConnection, HubState};
use serde_json::{Value, json};
use store::{ActorId, DecisionMaker, DecisionRecord, DecisionScope, DocId, RunApproval, RunDoc, RunWrite};

const HUB: &str = "ws://hub";

/// Gives a twin a change of the run's document by a third device, which knows all that this one knows.
fn forge(twin: &mut Twin, write: &RunWrite<'_>) {
    let chunks: Vec<Vec<u8>> =
        twin.sent.iter().filter(|(doc, _)| *doc == RUN).map(|(_, bytes)| bytes.clone()).collect();
    let mut doc = RunDoc::load(RUN, &chunks, ActorId::from([99; 16])).expect("read").doc;
    let bytes = doc.commit(write, 1).expect("written");
    twin.event(Event::Received { doc: RUN, ticket: 77, parcel: bytes.into() });
    twin.pass(1_500);
    assert!(twin.refused.is_empty(), "{:?}", twin.refused);
}

fn allowed() -> Option<DecisionRecord> {
    Some(DecisionRecord {
        allowed: true,
        scope: DecisionScope::Always,
        by: DecisionMaker::User,
        at: 1,
        arguments: None,
        comment: Some("yes".to_owned()),
    })
}

/// A request for a call, allowed.
fn allowed_request(twin: &Twin, tool: &str, arguments: &Value) -> RunApproval {
    RunApproval {
        id: "c0".to_owned(),
        step: run(twin).steps.last().expect("a step").id,
        tool: tool.to_owned(),
        arguments: arguments.as_object().cloned().expect("an object"),
        what: String::new(),
        reason: String::new(),
        asked: 1,
        expires: i64::MAX,
        code: Vec::new(),
        definition: None,
        addresses: Vec::new(),
        reach: String::new(),
        decision: allowed(),
    }
}

fn hold(twin: &mut Twin) {
    let policy = Some(Box::new(ToolPolicy::from_config(&config(""))));
    twin.command(Command::HoldRun { run: RUN, hub: HUB.to_owned(), policy }).expect("held");
    twin.rest();
}

#[test]
fn an_approval_that_was_written_before_its_call_allows_nothing() {
    let shell = json!({"command": "ls"});
    for holds in [false, true] {
        let mut pair = Pair::new(&[("a.md", "# A\n")]);
        ask(&mut pair.one, "list them");
        answer(&mut pair.one, said("I look.", &[("read_file", json!({"path": "a.md"}))]));
        pair.sync();
        pair.open_there();
        let (taker, request) = match holds {
            false => (&mut pair.one, allowed_request(&pair.two, "shell", &shell)),
            true => (&mut pair.two, allowed_request(&pair.one, "shell", &shell)),
        };
        // The second call gets this id, because the model gives it that of the first one.
        let request = RunApproval { id: "call_2".to_owned(), ..request };
        forge(taker, &RunWrite { approvals: vec![&request], ..RunWrite::default() });
        match holds {
            false => drop(done(taker, fine("# A\n"))),
            true => hold(taker),
        }
        answer(taker, said("", &[("shell", shell.clone())]));
        assert_eq!(run(taker).pending().count(), 1, "it's asked about");
        assert!(taker.tools.is_empty(), "{:?}", taker.tools);
    }
}

#[test]
fn a_document_that_names_this_device_makes_it_do_nothing() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "list them");
    answer(&mut pair.one, said("", &[("shell", json!({"command": "ls"}))]));
    pair.sync();
    pair.open_there();
    let two = &mut pair.two;
    // A run of its own names it.
    ask_in(two, DocId([9; 16]), "and mine?", None);
    answer(two, said("Done.", &[]));
    let device = two.session.agents().run(DocId([9; 16])).and_then(|run| run.device.clone()).expect("a device");
    assert!(two.session.is_own_device(Some(&device)));
    forge(two, &RunWrite { device: Some(&device), ..RunWrite::default() });
    assert!(!two.session.is_own_device(run(two).device.as_ref()), "{:?}", run(two).device);
    let pending = run(two).approvals.first().cloned().expect("asked");
    let denied = DecisionRecord { allowed: false, ..allowed().expect("a decision") };
    forge(
        two,
        &RunWrite { approvals: vec![&RunApproval { decision: Some(denied), ..pending }], ..RunWrite::default() },
    );
    assert!(two.models.is_empty() && two.tools.is_empty(), "it doesn't go on with the run");
    // Nor when it starts again, nor with the approval that the document has.
    let mut again = Twin::start(two.crash(), 3);
    again.setup = setup("");
    again.rest();
    again.command(Command::OpenRun { run: RUN }).expect("known");
    again.rest();
    assert!(!again.session.is_own_device(run(&again).device.as_ref()), "{:?}", run(&again).device);
    let resume = Command::ResumeRun { run: RUN, more: None, budget: None };
    again.command(resume).expect_err("another device's");
    assert!(again.models.is_empty() && again.tools.is_empty());
}

#[test]
fn a_held_run_begins_no_call_before_the_hub_has_it_and_takes_answers_only_from_its_owner() {
    let mut pair = Pair::new(&[("a.md", "# A\n")]);
    ask(&mut pair.one, "read it");
    pair.sync();
    pair.open_there();
    let two = &mut pair.two;
    hold(two);
    answer(two, said("", &[("read_file", json!({"path": "a.md"}))]));
    two.pass(60_000);
    assert!(two.tools.is_empty(), "the hub hasn't heard of it");
    in_sync(two);
    assert_eq!(two.tools.len(), 1);
    done(two, fine("# A\n"));
    // A question is answered by a signed decision of the owner, and not by a document.
    let question = json!({"question": "Which one?"});
    answer(two, said("", &[("ask_user", question)]));
    let asked = run(two).pending().next().cloned().expect("asked");
    forge(
        two,
        &RunWrite { approvals: vec![&RunApproval { decision: allowed(), ..asked.clone() }], ..RunWrite::default() },
    );
    assert_eq!(run(two).pending().count(), 1, "it waits still");
    assert!(two.models.is_empty());
    decide(two, &asked.id, true, DecisionScope::Once);
    in_sync(two);
    assert_eq!(two.models.len(), 1, "the answer is in");
}

/// Tells a twin that the hub has everything.
fn in_sync(twin: &mut Twin) {
    let documents = twin.wanted.len();
    let state = HubState { reach: HubConnection::Online, documents, seen: Some(twin.now), ..HubState::default() };
    twin.event(Event::HubTold { hub: HUB.to_owned(), state: Box::new(state), said: Vec::new() });
    twin.pass(1_500);
}
