//! A tool server asks for a model's answer during a call: the user sees what would be sent and decides, exactly that is
//! sent, and the run keeps what it was and what it cost.

use super::agents::{RUN, agent, answer, ask, decide, done, fine, kinds, results, run, said, setup};
use super::judging::served;
use crate::twin::Twin;
use agent::model_call::{ModelError, ModelErrorKind, ModelResponse, ModelStopReason};
use agent::sampling::{
    MAX_SAMPLED_TOKENS, SampledMessage, SamplingMessage, SamplingRefusal, SamplingRequest, SamplingRole, SamplingStop,
};
use agent::secrets::InstallationKeys;
use agent::server_request::ServerRequest;
use engine::{Command, Event};
use serde_json::{Map, Value, json};
use store::{CallUsage, DecisionMaker, DecisionRecord, DecisionScope, DocId, RunApproval, RunEnding, StepKind};

/// A run whose call `c0` of a server's tool is at work.
fn calling(mut twin: Twin) -> Twin {
    twin.setup.servers = vec![served("weather", "report", "Reports.")];
    ask(&mut twin, "What is the weather?");
    answer(&mut twin, said("", &[("weather_report", json!({}))]));
    decide(&mut twin, "c0", true, DecisionScope::Once);
    assert_eq!(twin.tools.len(), 1, "the tool is at work");
    twin
}

pub(super) fn at_work(more: &str) -> Twin {
    calling(agent(&[("a.md", "x\n")], more))
}

/// The same with a model that costs something.
fn at_work_for_money() -> Twin {
    let mut twin = agent(&[("a.md", "x\n")], "");
    let llm = &mut twin.setup.config.llm;
    (llm.default_provider, llm.prefer_local) = ("far".to_owned(), false);
    calling(twin)
}

fn request(text: &str) -> SamplingRequest {
    let messages = vec![SamplingMessage { role: SamplingRole::User, text: text.to_owned() }];
    SamplingRequest { system: None, messages, max_tokens: 100, temperature: None, stop: Vec::new() }
}

fn asks_in(twin: &mut Twin, (run, call): (DocId, &str), name: &str, asked: SamplingRequest) {
    let (call, request, server) = (call.to_owned(), name.to_owned(), "weather".to_owned());
    twin.event(Event::ServerAsked { run, call, request, server, asked: Box::new(ServerRequest::Model(asked)) });
    twin.rest();
}

fn asks(twin: &mut Twin, name: &str, asked: SamplingRequest) {
    asks_in(twin, (RUN, "c0"), name, asked);
}

pub(super) fn waits(twin: &Twin) -> Vec<RunApproval> {
    run(twin).pending().cloned().collect()
}

/// What the servers were told last, and nothing before it.
fn told(twin: &mut Twin) -> Vec<(String, Result<String, SamplingRefusal>)> {
    let told = std::mem::take(&mut twin.sampled);
    told.into_iter().map(|(request, answer)| (request, answer.map(|answer| answer.text))).collect()
}

/// Why the only server that was told something got no answer.
fn refusal(twin: &mut Twin) -> String {
    match &told(twin)[..] {
        [(_, Err(SamplingRefusal::Refused(why)))] => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_user_allows_is_sent_and_the_answer_goes_back() {
    let mut twin = at_work_for_money();
    let asked = SamplingRequest {
        system: Some("You are a poet.".to_owned()),
        messages: vec![
            SamplingMessage { role: SamplingRole::User, text: "Rain?".to_owned() },
            SamplingMessage { role: SamplingRole::Assistant, text: "Yes.".to_owned() },
            SamplingMessage { role: SamplingRole::User, text: "How much?".to_owned() },
        ],
        max_tokens: u32::MAX,
        temperature: Some(0.7),
        stop: vec!["END".to_owned()],
    };
    let asked = asked.bounded().expect("within the limits");
    asks(&mut twin, "s1", asked);
    assert!(twin.models.is_empty(), "nothing is sent yet");
    let shown = waits(&twin);
    assert_eq!(shown.len(), 1, "{shown:?}");
    let messages = json!([{"role": "user", "text": "Rain?"}, {"role": "assistant", "text": "Yes."},
        {"role": "user", "text": "How much?"}]);
    let all = json!({"server": "weather", "model": "far/big", "system": "You are a poet.", "messages": messages,
        "max_tokens": MAX_SAMPLED_TOKENS, "temperature": 0.7, "stop": ["END"]});
    assert_eq!(Value::Object(shown[0].arguments.clone()), all);
    assert_eq!((shown[0].tool.as_str(), shown[0].reach.as_str()), ("mcp_sampling", ""));
    assert_eq!(shown[0].what, "Let the tool server weather ask the model far/big");
    assert!(shown[0].reason.starts_with("the answer costs at most $"), "{}", shown[0].reason);
    // A lasting answer is one for this request.
    decide(&mut twin, "s1", true, DecisionScope::Always);
    assert!(twin.session.agents().rules().is_empty());
    let spent = CallUsage { input_tokens: 20, output_tokens: 10, cost: Some(0.002) };
    let before = run(&twin).about.spent;
    let (_, sent) = answer(&mut twin, ModelResponse { spent, ..said("Much. END and more", &[]) });
    assert_eq!((sent.endpoint.model.as_str(), sent.system.as_str()), ("big", "You are a poet."));
    let contents: Vec<(&str, &str)> =
        sent.messages.iter().map(|message| (message.role.as_str(), message.content.as_str())).collect();
    assert_eq!(contents, [("user", "Rain?"), ("assistant", "Yes."), ("user", "How much?")]);
    assert!(sent.tools.is_empty() && sent.program.is_none());
    assert_eq!((sent.max_tokens, sent.temperature), (Some(MAX_SAMPLED_TOKENS), Some(0.7)));
    let answered = SampledMessage { text: "Much. ".to_owned(), model: "big".to_owned(), stop: SamplingStop::StopText };
    assert_eq!(std::mem::take(&mut twin.sampled), [("s1".to_owned(), Ok(answered))]);
    // The run keeps all of it, counts the cost, and the server's tool is still at work.
    assert_eq!(kinds(run(&twin)), ["thinking", "tool_call", "tool_call", "tool_result"]);
    let [_, call, asked, result] = &run(&twin).steps[..] else { panic!("four steps") };
    assert_eq!(asked.parents, [call.id]);
    assert!(matches!(&asked.kind, StepKind::ToolCall { params, .. } if Value::Object(params.clone()) == all));
    assert_eq!((result.spent, results(run(&twin))), (Some(spent), vec![(true, "Much. ".to_owned())]));
    assert!(result.route.as_deref().is_some_and(|route| route.starts_with("far/big: ")), "{result:?}");
    assert_eq!(run(&twin).about.spent.input_tokens, before.input_tokens + 20);
    assert_eq!(run(&twin).about.spent.cost, before.cost.map(|cost| cost + 0.002));
    assert_eq!(run(&twin).about.iteration, 1, "it isn't one of the run's own calls");
    done(&mut twin, fine("It rains."));
    // The model of the run sees what the tool says, and nothing else.
    let (_, next) = answer(&mut twin, said("It rains.", &[]));
    let texts: Vec<&str> = next.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts[2..], ["It rains."], "{texts:?}");
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

#[test]
fn a_denied_request_is_rejected_and_one_decision_covers_one_request() {
    let mut twin = at_work("approval: {never_approve: [mcp_sampling], timeout_seconds: 300}\n");
    for (request_name, scope) in [("s1", DecisionScope::Once), ("s2", DecisionScope::Always)] {
        asks(&mut twin, request_name, request("Which?"));
        assert_eq!(waits(&twin).len(), 1, "each one is asked about, also what was decided before");
        decide(&mut twin, request_name, false, scope);
        assert_eq!(told(&mut twin), [(request_name.to_owned(), Err(SamplingRefusal::Rejected))]);
    }
    // Nobody decides in time.
    asks(&mut twin, "s3", request("Which?"));
    twin.pass(301_000);
    assert_eq!(told(&mut twin), [("s3".to_owned(), Err(SamplingRefusal::Rejected))]);
    assert!(twin.models.is_empty() && twin.session.agents().rules().is_empty());
    assert!(results(run(&twin)).iter().all(|(success, why)| !success && why.contains("denied")), "{:?}", run(&twin));
    done(&mut twin, fine("No answer."));
    assert_eq!(twin.models.len(), 1, "the run goes on");
    // A rule of the user denies all.
    let mut twin = at_work("approval: {deny: [mcp_sampling]}\n");
    asks(&mut twin, "s1", request("Which?"));
    assert!(waits(&twin).is_empty());
    assert_eq!(told(&mut twin), [("s1".to_owned(), Err(SamplingRefusal::Rejected))]);
    let by = run(&twin).approvals.last().and_then(|approval| approval.decision.clone()).map(|decision| decision.by);
    assert_eq!(by, Some(DecisionMaker::Policy));
}

pub(super) fn decide_with(twin: &mut Twin, name: &str, arguments: Map<String, Value>) -> Result<(), String> {
    let (scope, by) = (DecisionScope::Once, DecisionMaker::User);
    let decision = DecisionRecord { allowed: true, scope, by, at: 0, arguments: Some(arguments), comment: None };
    let command = Command::Decide { run: RUN, approval: name.to_owned(), decision };
    let decided = twin.command(command).map(drop).map_err(|why| why.0);
    twin.rest();
    decided
}

#[test]
fn what_the_user_changes_is_what_is_sent() {
    let mut twin = at_work("");
    asks(&mut twin, "s1", request("Which?"));
    let mut changed = waits(&twin)[0].arguments.clone();
    for (key, wrong) in [
        ("messages", json!([])),
        ("messages", json!([{"role": "user", "text": 7}])),
        ("max_tokens", json!(MAX_SAMPLED_TOKENS + 1)),
        ("tools", json!([])),
    ] {
        let mut arguments = changed.clone();
        arguments.insert(key.to_owned(), wrong);
        assert!(decide_with(&mut twin, "s1", arguments).is_err());
    }
    changed.insert("messages".to_owned(), json!([{"role": "user", "text": "Which one, in a word?"}]));
    changed.insert("system".to_owned(), json!("Be brief."));
    changed.insert("model".to_owned(), json!("far/big"));
    decide_with(&mut twin, "s1", changed.clone()).expect("allowed");
    let (_, sent) = answer(&mut twin, said("This.", &[]));
    assert_eq!((sent.system.as_str(), sent.messages[0].content.as_str()), ("Be brief.", "Which one, in a word?"));
    assert_eq!(sent.endpoint.model, "big");
    assert_eq!(told(&mut twin), [("s1".to_owned(), Ok("This.".to_owned()))]);
    let kept = run(&twin).steps.last().and_then(|step| step.tool.clone()).expect("its tool");
    assert_eq!(kept.arguments, Some(changed.clone()));
    // What the schema can't say is refused when it would be sent.
    for (key, wrong, about) in [
        ("system", json!("x".repeat(70_000)), "64 kB"),
        ("model", json!("far/other"), "far/other is not configured"),
        ("model", json!("nobody/x"), "No model can be asked"),
    ] {
        let name = format!("t{}", about.len());
        asks(&mut twin, &name, request("Which?"));
        let mut arguments = changed.clone();
        arguments.insert(key.to_owned(), wrong);
        decide_with(&mut twin, &name, arguments).expect("decided");
        assert!(twin.models.is_empty());
        let why = refusal(&mut twin);
        assert!(why.contains(about), "{why}");
    }
}

#[test]
fn requests_outside_of_a_call_and_too_many_are_refused() {
    let mut twin = at_work("");
    for (run, call) in [(DocId([77; 16]), "c0"), (RUN, "c1"), (RUN, "")] {
        asks_in(&mut twin, (run, call), "s0", request("Which?"));
        assert_eq!(refusal(&mut twin), "The tool call has ended.");
    }
    for number in 0..10 {
        asks(&mut twin, &format!("s{number}"), request("Which?"));
    }
    assert_eq!((waits(&twin).len(), twin.sampled.len()), (10, 0), "all wait for the user");
    asks(&mut twin, "s10", request("Which?"));
    assert_eq!(refusal(&mut twin), "A run has at most 10 requests for a model.");
    // They are decided and answered in any order, each by itself.
    for number in [3, 0, 9] {
        decide(&mut twin, &format!("s{number}"), true, DecisionScope::Once);
    }
    assert_eq!(twin.models.len(), 3);
    for (at, name) in [(2, "s9"), (0, "s3"), (0, "s0")] {
        let (call, _) = twin.models.remove(at);
        twin.event(Event::ModelDone { call, result: Ok(Box::new(said(name, &[]))) });
        twin.rest();
        assert_eq!(told(&mut twin), [(name.to_owned(), Ok(name.to_owned()))]);
    }
    // The rest ends with the call.
    done(&mut twin, fine("Fine."));
    assert!(waits(&twin).is_empty());
    let rest = told(&mut twin);
    assert_eq!(rest.len(), 7);
    assert!(rest.iter().all(|(_, answer)| matches!(answer, Err(SamplingRefusal::Refused(_)))), "{rest:?}");
    let cancelled = run(&twin).approvals.iter().filter_map(|approval| approval.decision.as_ref());
    assert_eq!(cancelled.filter(|decision| decision.by == DecisionMaker::Cancelled).count(), 7);
    asks(&mut twin, "s11", request("Which?"));
    assert_eq!(refusal(&mut twin), "The tool call has ended.");
}

#[test]
fn a_run_without_a_model_or_money_refuses() {
    let mut twin = at_work("");
    twin.setup.config.llm.providers.clear();
    twin.command(Command::ReadSetup).expect("read");
    twin.rest();
    asks(&mut twin, "s1", request("Which?"));
    assert!(waits(&twin).is_empty());
    let why = refusal(&mut twin);
    assert!(why.contains("No model can be asked"), "{why}");
    assert_eq!(results(run(&twin)), [(false, why)], "the run says so, too");

    let mut twin = at_work_for_money();
    twin.setup.config.budget.month = Some(0.000_001);
    twin.command(Command::ReadSetup).expect("read");
    twin.rest();
    asks(&mut twin, "s1", request("Which?"));
    let why = refusal(&mut twin);
    assert!(waits(&twin).is_empty() && why.contains("balance is too low"), "{why}");
    // Money that ends between the question and the answer.
    twin.setup.config.budget.month = None;
    twin.command(Command::ReadSetup).expect("read");
    twin.rest();
    asks(&mut twin, "s2", request("Which?"));
    twin.setup.config.budget.month = Some(0.000_001);
    twin.command(Command::ReadSetup).expect("read");
    twin.rest();
    decide(&mut twin, "s2", true, DecisionScope::Once);
    let why = refusal(&mut twin);
    assert!(twin.models.is_empty() && why.contains("balance is too low"), "{why}");
}

#[test]
fn a_model_that_fails_and_a_server_that_gives_up() {
    let mut twin = at_work("");
    asks(&mut twin, "s1", request("Which?"));
    decide(&mut twin, "s1", true, DecisionScope::Once);
    let (call, _) = twin.models.remove(0);
    let failure = ModelError { kind: ModelErrorKind::Server, why: "It is ill.".to_owned(), partial: String::new() };
    twin.event(Event::ModelDone { call, result: Err(failure) });
    twin.rest();
    assert_eq!(refusal(&mut twin), "It is ill.");
    assert!(run(&twin).about.ending.is_none() && twin.models.is_empty(), "the run isn't concerned");
    // An answer that reached its limit.
    asks(&mut twin, "s2", request("Which?"));
    decide(&mut twin, "s2", true, DecisionScope::Once);
    answer(&mut twin, ModelResponse { stop: ModelStopReason::Length, ..said("Thi", &[]) });
    let cut = twin.sampled.pop().and_then(|(_, answer)| answer.ok()).expect("an answer");
    assert_eq!((cut.text.as_str(), cut.stop), ("Thi", SamplingStop::MaxTokens));
    // The server withdraws one that waits for the user, and one that a model works on.
    let withdraw = |twin: &mut Twin, name: &str| {
        let outcome = Box::new(agent::tool_job::ToolOutcome { text: "withdrawn".to_owned(), ..Default::default() });
        twin.event(Event::ToolDone { run: RUN, call: name.to_owned(), outcome });
        twin.rest();
    };
    asks(&mut twin, "s3", request("Which?"));
    withdraw(&mut twin, "s3");
    assert!(waits(&twin).is_empty());
    asks(&mut twin, "s4", request("Which?"));
    decide(&mut twin, "s4", true, DecisionScope::Once);
    let (call, _) = twin.models.remove(0);
    withdraw(&mut twin, "s4");
    assert!(twin.cancelled.contains(&format!("model {}", call.number)), "{:?}", twin.cancelled);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(said("Too late.", &[]))) });
    twin.rest();
    assert!(!results(run(&twin)).iter().any(|(_, text)| text == "Too late."));
    done(&mut twin, fine("Fine."));
    assert_eq!(twin.models.len(), 1, "the run goes on");
}

#[test]
fn stopping_the_run_ends_its_requests() {
    let mut twin = at_work_for_money();
    asks(&mut twin, "s1", request("Which?"));
    asks(&mut twin, "s2", request("Which?"));
    decide(&mut twin, "s1", true, DecisionScope::Once);
    let (call, _) = twin.models.remove(0);
    let before = run(&twin).about.spent.input_tokens;
    twin.command(Command::CancelRun { run: RUN }).expect("stopped");
    twin.rest();
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Cancelled));
    assert!(twin.cancelled.contains(&format!("model {}", call.number)), "{:?}", twin.cancelled);
    assert!(twin.cancelled.contains(&"tool c0".to_owned()), "{:?}", twin.cancelled);
    assert_eq!(twin.sampled.len(), 2);
    assert!(waits(&twin).is_empty() && run(&twin).approvals.iter().all(|approval| approval.decision.is_some()));
    assert!(run(&twin).about.spent.input_tokens > before, "what was sent until then counts");
    twin.event(Event::ModelDone { call, result: Ok(Box::new(said("Too late.", &[]))) });
    twin.rest();
    asks(&mut twin, "s3", request("Which?"));
    assert_eq!(twin.sampled.len(), 3, "refused");
}

#[test]
fn the_time_of_deciding_is_not_the_tools() {
    // A tool of a server has 10 minutes.
    let mut twin = at_work("");
    twin.pass(400_000);
    asks(&mut twin, "s1", request("Which?"));
    twin.pass(250_000);
    decide(&mut twin, "s1", true, DecisionScope::Once);
    twin.pass(100_000);
    answer(&mut twin, said("This.", &[]));
    twin.pass(100_000);
    assert!(twin.cancelled.is_empty(), "it has worked for 500 s: {:?}", twin.cancelled);
    twin.pass(110_000);
    assert_eq!(twin.cancelled, ["tool c0"], "now it has had its time");
}

#[test]
fn a_crash_leaves_no_question_without_a_server() {
    let mut twin = at_work("");
    asks(&mut twin, "s1", request("Which?"));
    asks(&mut twin, "s2", request("Which?"));
    decide(&mut twin, "s2", true, DecisionScope::Once);
    assert_eq!((waits(&twin).len(), twin.models.len()), (1, 1));
    let mut twin = Twin::start(twin.crash(), 2);
    twin.setup = setup("");
    twin.command(Command::OpenRun { run: RUN }).expect("opened");
    twin.settle();
    assert!(waits(&twin).is_empty() && twin.models.is_empty() && twin.tools.is_empty());
    let ends = results(run(&twin));
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert!(ends.iter().all(|(success, why)| !success && why.contains("was not run again")), "{ends:?}");
    // The run can go on, and its model doesn't hear of the requests.
    twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
    twin.rest();
    let texts: Vec<&str> = twin.models[0].1.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
}

#[test]
fn secrets_are_shown_and_sent_masked() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    twin.setup.own_keys = InstallationKeys::new(["plain-looking-own".to_owned()]);
    let mut twin = calling(twin);
    let secret = "the key is plain-looking-own";
    asks(&mut twin, "s1", SamplingRequest { system: Some(secret.to_owned()), ..request(secret) });
    let shown = serde_json::to_string(&waits(&twin)).expect("JSON");
    assert!(!shown.contains("plain-looking") && shown.contains("the key is "), "{shown}");
    decide(&mut twin, "s1", true, DecisionScope::Once);
    let (_, sent) = answer(&mut twin, said("It is plain-looking-own.", &[]));
    assert!(!sent.system.contains("plain-looking") && !sent.messages[0].content.contains("plain-looking"), "{sent:?}");
    assert!(!format!("{:?} {:?}", twin.sampled, run(&twin).steps).contains("plain-looking"), "{:?}", twin.sampled);
}
