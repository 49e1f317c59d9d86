//! What governs runs besides the first policy decision: revoked rules, titles, space in the context, model response
//! times, cycles.

use super::agents::{RUN, SESSION, agent, answer, ask, ask_in, config, decide, kinds, run, said, setup};
use crate::twin::Twin;
use agent::router::ProviderStatus;
use engine::{Command, Event};
use serde_json::json;
use store::{DecisionScope, DocId, MessageRole, RunEnding, StepKind};

#[test]
fn a_rule_that_was_taken_back_asks_again() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    decide(&mut twin, "c0", true, DecisionScope::Always);
    assert_eq!(twin.session.agents().rules().len(), 1);
    let why = twin.command(Command::ForgetRule { number: 1 }).expect_err("there is one");
    assert!(why.0.contains("no rule 2"), "{why}");
    super::agents::done(&mut twin, super::agents::fine("made"));
    let allowed = run(&twin).approvals.len();
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    assert_eq!((twin.tools.len(), run(&twin).pending().count()), (1, 0), "the rule allows it");
    super::agents::done(&mut twin, super::agents::fine("made again"));
    assert!(run(&twin).approvals.len() > allowed);
    twin.command(Command::ForgetRule { number: 0 }).expect("taken back");
    twin.rest();
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    assert_eq!((twin.tools.len(), run(&twin).pending().count()), (0, 1), "it asks again");
    // The rule is still revoked after a restart.
    let twin = crate::twin::Twin::start(twin.crash(), 3);
    assert!(twin.session.agents().rules().is_empty());
}

#[test]
fn a_session_has_another_title_and_is_put_away() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "sow beans\nsoon");
    answer(&mut twin, said("Yes.", &[]));
    let line = |twin: &crate::twin::Twin| twin.session.agents().sessions().next().expect("a session").1.clone();
    assert_eq!(line(&twin).title, "sow beans");
    let describe = |title: Option<&str>, closed| {
        let title = title.map(str::to_owned);
        Command::DescribeSession { session: SESSION, title, closed }
    };
    twin.command(describe(Some(&" x ".repeat(500)), None)).expect("described");
    assert_eq!(line(&twin).title.chars().count(), 160, "a title has an end");
    twin.command(describe(Some("Beans"), Some(true))).expect("described");
    assert!(twin.command(describe(Some(" "), None)).is_err());
    twin.rest();
    let twin = crate::twin::Twin::start(twin.crash(), 3);
    assert_eq!((line(&twin).title.as_str(), line(&twin).closed), ("Beans", true));
}

#[test]
fn what_does_not_fit_even_then_is_cut_for_the_model_alone() {
    // The model's context is 4,000 tokens; a single message has more.
    let mut twin = agent(&[("a.md", "x\n")], "");
    let long = "word ".repeat(6_000);
    ask(&mut twin, &long);
    let (_, request) = answer(&mut twin, said("Much.", &[]));
    let size: usize = request.messages.iter().map(|message| message.content.len()).sum();
    assert!(size < 16_000, "{size} bytes for a model of 4,000 tokens");
    assert!(request.messages[0].content.ends_with("[cut]"));
    let kept = twin.session.agents().session(SESSION).expect("open").branch()[0].content.len();
    assert_eq!(kept, long.len(), "what was said is whole");
}

#[test]
fn who_answers_slowly_is_asked_less() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    let mut slow = setup("");
    slow.config = config("");
    slow.config.llm.latency_target = Some(1_000);
    slow.known.insert("near".to_owned(), ProviderStatus::default());
    slow.known.insert("far".to_owned(), ProviderStatus::default());
    twin.setup = slow;
    ask_in(&mut twin, DocId([20; 16]), "work", None);
    let (call, request) = twin.models.remove(0);
    assert_eq!(request.endpoint.provider, "near", "the default");
    twin.now = twin.now.plus_ms(9_000);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(said("Late.", &[]))) });
    twin.rest();
    ask_in(&mut twin, RUN, "work", None);
    assert_ne!(twin.models[0].1.endpoint.provider, "near", "it takes nine seconds");
    let route = run(&twin).live.as_ref().expect("it is asked").route.clone();
    assert!(!route.starts_with("near/"), "{route}");
}

#[test]
fn a_model_that_goes_in_circles_is_made_to_answer() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    for round in 0..4 {
        assert!(!twin.models[0].1.tools.is_empty(), "round {round}");
        answer(&mut twin, said("", &[("nothing", json!({"path": "a.md"}))]));
    }
    let (_, request) = answer(&mut twin, said("There is no such tool.", &[]));
    assert!(request.tools.is_empty(), "it is not asked to call anything");
    let [told] = &request.messages[..] else { panic!("one message: {:?}", request.messages) };
    assert!(told.role == MessageRole::User && told.content.contains("Quoted from user:\n```\nwork\n"), "{told:?}");
    assert!(told.content.contains("failed or repeated") && !told.content.contains("All steps are done"), "{told:?}");
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

#[test]
fn a_model_that_calls_tools_that_were_not_offered_is_stopped() {
    // The same with native calls and with calls that stand in the text.
    let fenced = "```tool\n{\"tool\": \"list_files\", \"inputs\": {}}\n```\n";
    let stubborn = [said("", &[("list_files", json!({}))]), said(fenced, &[])];
    for (last, first_answer) in stubborn.into_iter().enumerate() {
        let mut twin = agent(&[("a.md", "x\n")], "");
        ask(&mut twin, "work");
        for _ in 0..4 {
            answer(&mut twin, said("", &[("nothing", json!({"path": "a.md"}))]));
        }
        let calls = |twin: &Twin| kinds(run(twin)).iter().filter(|kind| **kind == "tool_call").count();
        assert_eq!(calls(&twin), 4);
        for _ in 0..2 {
            let (_, request) = answer(&mut twin, first_answer.clone());
            assert!(request.tools.is_empty(), "case {last}");
            assert!(twin.tools.is_empty() && calls(&twin) == 4, "a call that was not offered does not run");
        }
        assert!(twin.models.is_empty(), "it isn't asked up to its limit");
        let ended = run(&twin);
        assert_eq!((ended.about.ending, ended.about.iteration), (Some(RunEnding::Failed), 6), "case {last}");
        assert!(ended.steps.last().is_some_and(|step| step.spent.is_some()), "its answers are paid for");
    }
    // Text beside such calls is the answer.
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    for _ in 0..4 {
        answer(&mut twin, said("", &[("nothing", json!({"path": "a.md"}))]));
    }
    answer(&mut twin, said("It can't be done.", &[("list_files", json!({}))]));
    assert!(twin.tools.is_empty() && twin.models.is_empty());
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    assert!(matches!(&run(&twin).steps.last().expect("a step").kind, StepKind::FinalAnswer { content }
            if content == "It can't be done."));
}
