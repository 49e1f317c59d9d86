//! An agent at work: its text and calls become steps, nothing happens twice, and its changes can be undone.

use crate::twin::{Step, Twin};
use agent::config::{AgentConfig, BudgetConfig, ConfigLayer, merge};
use agent::memory::place::MemoryPlace;
use agent::model_call::{
    ModelCallId, ModelDelta, ModelError, ModelErrorKind, ModelRequest, ModelResponse, ModelStopReason,
};
use agent::tool_job::{FileChange, ToolJob, ToolOutcome};
use engine::{AgentRun, AgentSetup, BudgetScope, Command, Event};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use store::{
    BlobHash, CallUsage, DecisionRecord, DecisionScope, DocId, MessageId, MessageRole, RunEnding, StepKind, TodoItem,
    TodoStatus, ToolCall,
};

pub(super) const RUN: DocId = DocId([7; 16]);
pub(super) const SESSION: DocId = DocId([8; 16]);

pub(super) fn config(more: &str) -> AgentConfig {
    let text = format!(
        "llm:\n  default_provider: near\n  cost_limit: null\n  providers:\n    near: {{wire: openai, base_url: \
         \"http://localhost:1/v1\", model: tiny, context: 4000}}\n    far: {{wire: openai, base_url: \
         \"https://far.example/v1\", model: big, price: {{input: 1.0, output: 1.0}}}}\n{more}"
    );
    merge(&[ConfigLayer::parse("config.yaml", &text).expect("read")]).expect("whole")
}

/// The agents' setup, with memory in the project's folder.
pub(super) fn setup(more: &str) -> AgentSetup {
    let mut config = config(more);
    config.memory.place.get_or_insert(MemoryPlace::Folder);
    AgentSetup { config, ..AgentSetup::default() }
}

pub(super) fn agent(files: &[(&str, &str)], more: &str) -> Twin {
    let mut twin = Twin::with(files);
    twin.setup = setup(more);
    twin
}

pub(super) fn ask_in(twin: &mut Twin, run: DocId, text: &str, parent: Option<MessageId>) {
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (session, text) = (SESSION, text.to_owned());
    let command = Command::Ask {
        run,
        session,
        volume,
        note: None,
        parent,
        text,
        agent: None,
        budget: None,
        allow: Vec::new(),
        recall: agent::memory::RecallOptions::default(),
        provider: None,
    };
    twin.command(command).expect("asked");
    twin.rest();
}

pub(super) fn ask(twin: &mut Twin, text: &str) {
    ask_in(twin, RUN, text, None);
}

pub(super) fn run(twin: &Twin) -> &AgentRun {
    twin.session.agents().run(RUN).expect("the run is open")
}

pub(super) fn said(text: &str, calls: &[(&str, Value)]) -> ModelResponse {
    let call = |(at, (name, arguments)): (usize, &(&str, Value))| ToolCall {
        id: format!("c{at}"),
        name: (*name).to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    };
    ModelResponse {
        text: text.to_owned(),
        thinking: String::new(),
        calls: calls.iter().enumerate().map(call).collect(),
        malformed: Vec::new(),
        spent: CallUsage { input_tokens: 10, output_tokens: 5, cost: Some(0.0) },
        stop: ModelStopReason::Done,
    }
}

/// Answers the oldest pending model call and returns it.
pub(super) fn answer(twin: &mut Twin, answer: ModelResponse) -> (ModelCallId, ModelRequest) {
    assert!(!twin.models.is_empty(), "no model is called");
    let (call, request) = twin.models.remove(0);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(answer)) });
    twin.rest();
    (call, request)
}

/// Ends the oldest pending job with this outcome and returns it.
pub(super) fn done(twin: &mut Twin, outcome: ToolOutcome) -> ToolJob {
    assert!(!twin.tools.is_empty(), "no tool runs");
    let (run, call, job) = twin.tools.remove(0);
    twin.event(Event::ToolDone { run, call, outcome: Box::new(outcome) });
    twin.rest();
    job
}

pub(super) fn fine(text: &str) -> ToolOutcome {
    ToolOutcome { success: true, text: text.to_owned(), ..ToolOutcome::default() }
}

pub(super) fn decide(twin: &mut Twin, approval: &str, allowed: bool, scope: DecisionScope) {
    let decision = DecisionRecord::by_user(allowed, scope);
    let command = Command::Decide { run: RUN, approval: approval.to_owned(), decision };
    twin.command(command).expect("decided");
    twin.rest();
}

pub(super) fn kinds(run: &AgentRun) -> Vec<&'static str> {
    run.steps.iter().map(|step| step.kind.as_str()).collect()
}

pub(super) fn results(run: &AgentRun) -> Vec<(bool, String)> {
    let result = |kind: &StepKind| match kind {
        StepKind::ToolResult { success, result, error, .. } => {
            let text = result.as_ref().and_then(Value::as_str).map(ToOwned::to_owned).or(error.clone());
            Some((*success, text.unwrap_or_default()))
        }
        _ => None,
    };
    run.steps.iter().filter_map(|step| result(&step.kind)).collect()
}

#[test]
fn an_answer_is_kept_with_its_way() {
    let mut twin = agent(&[("a.md", "# A\n")], "");
    ask(&mut twin, "what is in @a.md?");
    let (call, request) = twin.models[0].clone();
    assert_eq!(request.endpoint.model, "tiny");
    assert_eq!(request.messages.last().map(|message| message.role), Some(MessageRole::User));
    twin.event(Event::ModelDelta { call, delta: ModelDelta::Text("A head".to_owned()) });
    assert_eq!(run(&twin).live.as_ref().map(|live| live.text.as_str()), Some("A head"));
    answer(&mut twin, said("A heading.", &[]));
    assert_eq!(kinds(run(&twin)), ["thinking", "final_answer"]);
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    assert_eq!(run(&twin).about.spent.input_tokens, 10);

    // Everything is there after a crash, and the session can continue.
    let mut twin = Twin::start(twin.crash(), 2);
    twin.setup = setup("");
    twin.settle();
    let line = twin.session.agents().sessions().next().expect("a session").1;
    assert_eq!((line.title.as_str(), line.messages), ("what is in @a.md?", 2));
    ask_in(&mut twin, DocId([9; 16]), "and else?", None);
    let words: Vec<String> = twin.models[0].1.messages.iter().map(|message| message.content.clone()).collect();
    assert_eq!(words, ["what is in @a.md?", "A heading.", "and else?"]);
}

#[test]
fn tools_run_and_the_model_reads_what_they_say() {
    let mut twin = agent(&[("a.md", "one\ntwo\n"), ("data.csv", "1,2\n")], "");
    let note = twin.open("a.md");
    ask(&mut twin, "work");
    // Reads run in parallel; the call that changes something waits for them.
    let calls = [
        ("read_file", json!({"path": "data.csv"})),
        ("list_files", json!({})),
        ("edit_file", json!({"path": "a", "old_content": "two", "new_content": "three"})),
        ("read_file", json!({"path": "a.md"})),
    ];
    answer(&mut twin, said("I look.", &calls));
    assert_eq!(twin.tools.len(), 2);
    assert!(matches!(&twin.tools[0].2, ToolJob::Read { path, .. } if path == "data.csv"), "{:?}", twin.tools[0]);
    done(&mut twin, fine("1,2\n"));
    assert_eq!(twin.text(note), "one\ntwo\n");
    done(&mut twin, fine("a.md\n"));
    assert_eq!(twin.text(note), "one\nthree\n");
    let (_, request) =
        answer(&mut twin, said("", &[("write_file", json!({"path": "notes/new.md", "content": "hello\n"}))]));
    let last: Vec<&str> = request.messages.iter().rev().take(4).map(|message| message.content.as_str()).collect();
    assert_eq!(last[0], "one\nthree\n", "an open note is read as it is");
    assert!(last[1].contains("-two\n+three\n"), "{}", last[1]);
    answer(&mut twin, said("Done.", &[]));
    twin.settle();
    assert_eq!(twin.file("notes/new.md").as_deref(), Some("hello\n"));
    assert_eq!(twin.file("a.md").as_deref(), Some("one\nthree\n"));
    assert_eq!(run(&twin).changes.len(), 2);
    let parents = |at: usize| run(&twin).steps[at].parents.clone();
    assert_eq!(parents(1), [run(&twin).steps[0].id], "calls follow from the turn");
    assert_eq!(parents(2), parents(1));
}

#[test]
fn what_carries_risk_waits_for_the_user() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "build");
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    assert!(twin.tools.is_empty() && twin.models.is_empty(), "nothing runs");
    let pending: Vec<String> = run(&twin).pending().map(|approval| approval.what.clone()).collect();
    assert_eq!(pending, ["Run in the sandbox: make"]);

    // The approval survives a crash and is decided afterwards.
    let mut twin = Twin::start(twin.crash(), 3);
    twin.setup = setup("");
    twin.pass(100_000);
    assert_eq!(run(&twin).pending().count(), 1);
    decide(&mut twin, "c0", true, DecisionScope::Run);
    let job = done(&mut twin, fine("built"));
    assert!(matches!(job, ToolJob::Shell { command, network: false, .. } if command == "make"));
    // The same command needs no further approval in this run; another command does.
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    done(&mut twin, fine("built"));
    answer(&mut twin, said("", &[("shell", json!({"command": "make install"}))]));
    let id = run(&twin).pending().next().expect("asked").id.clone();
    decide(&mut twin, &id, false, DecisionScope::Once);
    let (_, request) = answer(&mut twin, said("I stop.", &[]));
    assert!(request.messages.last().is_some_and(|message| message.content.contains("denied")));
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    let reject = twin.command(Command::Decide {
        run: RUN,
        approval: id,
        decision: DecisionRecord::by_user(true, DecisionScope::Once),
    });
    assert!(reject.expect_err("over").0.contains("over"));
}

#[test]
fn nobody_decides_is_a_no() {
    let mut twin = agent(&[("a.md", "x\n")], "approval: {timeout_seconds: 60}\n");
    ask(&mut twin, "build");
    answer(&mut twin, said("", &[("shell", json!({"command": "make"}))]));
    twin.pass(59_000);
    assert_eq!(run(&twin).pending().count(), 1);
    twin.pass(2_000);
    assert_eq!(run(&twin).pending().count(), 0);
    let (_, request) = answer(&mut twin, said("I stop.", &[]));
    assert!(request.messages.last().is_some_and(|message| message.content.contains("Nobody decided")));
}

#[test]
fn an_approval_can_be_edited_and_a_question_answered() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "build");
    let calls = [("shell", json!({"command": "rm -rf build"})), ("ask_user", json!({"question": "Which target?"}))];
    answer(&mut twin, said("", &calls));
    let edit = |command: &str| {
        let arguments = json!({"command": command}).as_object().cloned();
        let decision = DecisionRecord { arguments, ..DecisionRecord::by_user(true, DecisionScope::Once) };
        Command::Decide { run: RUN, approval: "c0".to_owned(), decision }
    };
    assert!(twin.command(edit("")).expect_err("checked").0.contains("called wrongly"));
    twin.command(edit("rm -rf build/tmp")).expect("decided");
    let comment = Some("release".to_owned());
    let decision = DecisionRecord { comment, ..DecisionRecord::by_user(true, DecisionScope::Once) };
    twin.command(Command::Decide { run: RUN, approval: "c1".to_owned(), decision }).expect("answered");
    twin.rest();
    let job = done(&mut twin, fine(""));
    assert!(matches!(job, ToolJob::Shell { command, .. } if command == "rm -rf build/tmp"));
    let all = results(run(&twin));
    assert!(all.contains(&(true, "release".to_owned())), "{all:?}");
}

#[test]
fn wrong_calls_are_answered_and_never_run() {
    let mut twin = agent(&[("a.md", "x\nx\n")], "");
    ask(&mut twin, "work");
    let calls = [
        ("frobnicate", json!({})),
        ("read_file", json!({"file": "a.md"})),
        ("read_file", json!({"path": "../../etc/passwd"})),
        ("edit_file", json!({"path": "a.md", "old_content": "x", "new_content": "y"})),
        ("edit_file", json!({"path": "a.md", "old_content": "q", "new_content": "y"})),
        ("run_cell", json!({"path": "a.md", "cell": 3})),
        ("fetch_url", json!({"url": "file:///etc/passwd"})),
    ];
    answer(&mut twin, said("", &calls));
    twin.settle();
    let all = results(run(&twin));
    assert_eq!(all.len(), calls.len(), "{all:?}");
    assert!(all.iter().all(|(success, _)| !success), "{all:?}");
    for (part, (_, text)) in ["no tool frobnicate", "called wrongly", "outside", "called wrongly"].iter().zip(&all) {
        assert!(text.contains(part) || text.contains("not allowed"), "{text}");
    }
    assert!(all.iter().any(|(_, text)| text.contains("is in the note 2 times")), "{all:?}");
    assert!(twin.tools.is_empty());
    assert_eq!(twin.file("a.md").as_deref(), Some("x\nx\n"));
}

#[test]
fn calls_in_fences_and_broken_ones_are_understood() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    let text = "First:\n```tool\n{\"tool\": \"read-file\", \"inputs\": {\"path\": \"a.md\"}}\n```\n";
    answer(&mut twin, said(text, &[]));
    done(&mut twin, fine("x\n"));
    answer(&mut twin, said("```tool\n{\"tool\": \"read\n```", &[]));
    let (_, request) = answer(&mut twin, said("Done.", &[]));
    assert!(request.messages.last().is_some_and(|message| message.content.contains("could not be read")));
    let malformed = ModelResponse { malformed: vec![("shell".to_owned(), "{".to_owned())], ..said("", &[]) };
    ask_in(&mut twin, DocId([10; 16]), "more", None);
    answer(&mut twin, malformed);
    assert_eq!(twin.models.len(), 1, "it is told, and goes on");
}

#[test]
fn a_run_is_stopped_at_any_point_and_resumed() {
    for point in 0..4 {
        let mut twin = agent(&[("a.md", "x\n")], "");
        ask(&mut twin, "work");
        if point >= 1 {
            let calls = [("list_files", json!({})), ("shell", json!({"command": "make"}))];
            answer(&mut twin, said("", &calls));
        }
        if point >= 2 {
            done(&mut twin, fine("a.md"));
        }
        if point >= 3 {
            decide(&mut twin, "c1", true, DecisionScope::Once);
        }
        if let Some((call, _)) = twin.models.first() {
            twin.event(Event::ModelDelta { call: *call, delta: ModelDelta::Text("half a".to_owned()) });
        }
        twin.command(Command::CancelRun { run: RUN }).expect("stopped");
        twin.rest();
        assert_eq!(run(&twin).about.ending, Some(RunEnding::Cancelled), "point {point}");
        assert_eq!(twin.cancelled.len(), usize::from(point != 2), "point {point}: {:?}", twin.cancelled);
        // Late results are ignored.
        let steps = run(&twin).steps.len();
        if let Some((call, _)) = twin.models.pop() {
            twin.event(Event::ModelDone { call, result: Ok(Box::new(said("late", &[]))) });
        }
        if let Some((run, call, _)) = twin.tools.pop() {
            twin.event(Event::ToolDone { run, call, outcome: Box::new(fine("late")) });
        }
        twin.rest();
        assert_eq!(run(&twin).steps.len(), steps);
        assert_eq!(run(&twin).pending().count(), 0);
        twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect("resumed");
        twin.rest();
        let (_, request) = answer(&mut twin, said("Done.", &[]));
        let open = |request: &ModelRequest| {
            let calls: usize = request.messages.iter().map(|message| message.tool_calls.len()).sum();
            calls - request.messages.iter().filter(|message| message.role == MessageRole::Tool).count()
        };
        assert_eq!(open(&request), 0, "every call is answered");
        if point == 0 {
            assert!(request.messages.iter().any(|message| message.partial.is_some()), "the half is kept");
        }
        assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
    }
}

#[test]
fn limits_end_a_run_which_can_be_resumed_with_more() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    for turn in 0..20 {
        answer(&mut twin, said("", &[("todo_write", json!({"todos": [{"content": format!("more {turn}")}]}))]));
    }
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Limit));
    assert!(twin.models.is_empty());
    let why = twin.command(Command::ResumeRun { run: RUN, more: None, budget: None }).expect_err("no more");
    assert!(why.0.contains("20 iterations"), "{why}");
    twin.command(Command::ResumeRun { run: RUN, more: Some(5), budget: None }).expect("resumed");
    twin.rest();
    answer(&mut twin, said("Done.", &[]));
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Done));
}

#[test]
fn money_ends_a_run() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    let mut config = config("");
    (config.llm.default_provider, config.llm.prefer_local) = ("far".to_owned(), false);
    twin.setup = AgentSetup { config, ..AgentSetup::default() };
    let volume = twin.session.volumes().next().expect("a volume").id;
    let (text, budget) = ("work".to_owned(), Some(0.01));
    let command = Command::Ask {
        run: RUN,
        session: SESSION,
        volume,
        note: None,
        parent: None,
        text,
        agent: None,
        budget,
        allow: Vec::new(),
        recall: agent::memory::RecallOptions::default(),
        provider: None,
    };
    twin.command(command).expect("asked");
    twin.rest();
    let spent = CallUsage { input_tokens: 9_000, output_tokens: 2_000, cost: Some(0.011) };
    let calls = [("todo_write", json!({"todos": [{"content": "more"}]}))];
    answer(&mut twin, ModelResponse { spent, ..said("", &calls) });
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Budget));
    let last = run(&twin).steps.last().expect("a step");
    assert!(matches!(&last.kind, StepKind::Error { message, .. } if message.contains("$0.01")), "{last:?}");
    twin.command(Command::ResumeRun { run: RUN, more: None, budget: Some(1.0) }).expect("resumed");
    twin.rest();
    assert_eq!(twin.models.len(), 1);
}

#[test]
fn a_paid_call_is_counted_if_the_program_is_killed_in_it() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    let mut config = config("");
    (config.llm.default_provider, config.llm.prefer_local) = ("far".to_owned(), false);
    twin.setup = AgentSetup { config, ..AgentSetup::default() };
    ask(&mut twin, "work");
    assert_eq!(twin.models.len(), 1, "the model is at work");
    let sums = |twin: &Twin| {
        let month = &twin.session.budget_statuses(twin.now)[0];
        let task = &twin.session.spending_by_scope(BudgetScope::Task)[0];
        [(month.spent, month.tokens), (task.spent, task.tokens)]
    };
    let counted = sums(&twin);
    assert!(counted[0] == counted[1] && counted[0].0 > 0.0 && counted[0].1 > 0, "{counted:?}");
    // While the call is under way, its whole expected cost counts, and no part of it twice.
    let expected = run(&twin).live.as_ref().expect("at work").cost;
    let limits = |month| BudgetConfig { month: Some(month), ..BudgetConfig::default() };
    let over = |month: f64| twin.session.over_search_budget_reason(&limits(month), twin.now, 0.0);
    assert_eq!(over(expected * 1.001), None);
    assert!(over(expected * 0.999).is_some());
    // It's counted once, also if the program is killed again.
    let mut twin = Twin::start(twin.crash(), 2);
    assert_eq!(sums(&twin), counted, "before the run is read");
    twin.settle();
    assert_eq!(sums(&twin), counted);
    let mut twin = Twin::start(twin.crash(), 3);
    twin.settle();
    twin.command(Command::OpenRun { run: RUN }).expect("opened");
    twin.rest();
    let spent = run(&twin).about.spent;
    assert!(spent.input_tokens > 0 && spent.cost.is_some_and(|cost| cost > 0.0), "{spent:?}");
    let counted: Vec<CallUsage> = run(&twin).steps.iter().filter_map(|step| step.spent).collect();
    assert_eq!(counted, [spent]);
}

#[test]
fn a_model_that_fails_is_said_and_the_next_is_asked() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    let mut config = config("");
    (config.llm.fallback, config.llm.prefer_local) = (vec!["far".to_owned()], false);
    twin.setup = AgentSetup { config, ..AgentSetup::default() };
    ask(&mut twin, "work");
    let fail = |kind, partial: &str| ModelError {
        kind,
        why: "localhost:1 refuses connections; start it".to_owned(),
        partial: partial.to_owned(),
    };
    let (call, _) = twin.models.remove(0);
    twin.event(Event::ModelDone { call, result: Err(fail(ModelErrorKind::Unreachable, "")) });
    twin.rest();
    let (call, request) = twin.models.remove(0);
    assert_eq!(request.endpoint.provider, "far");
    twin.event(Event::ModelDone { call, result: Err(fail(ModelErrorKind::Cut, "so far")) });
    twin.rest();
    assert_eq!(run(&twin).about.ending, Some(RunEnding::Failed));
    let session = twin.session.agents().session(SESSION).expect("open");
    let last = session.branch().last().map(|message| (message.content.clone(), message.partial.is_some()));
    assert_eq!(last, Some(("so far".to_owned(), true)), "what came is kept, and marked");
    let reasons: Vec<String> = run(&twin).steps.iter().filter_map(|step| step.route.clone()).collect();
    assert!(reasons[0].starts_with("near/tiny: ") && reasons[1].contains("near did not answer"), "{reasons:?}");
}

#[test]
fn todos_are_the_models_and_the_users() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "work");
    let todos = json!({"todos": [{"content": "read"}, {"content": "write", "priority": "high"}]});
    answer(&mut twin, said("", &[("todo_write", todos)]));
    let mut mine = run(&twin).todos.clone();
    assert_eq!(mine[1].priority, 4);
    mine[0].status = TodoStatus::Completed;
    mine.push(TodoItem {
        id: "mine".to_owned(),
        content: "rest".to_owned(),
        status: TodoStatus::Pending,
        priority: 2,
        due: Some("2026-11-22".to_owned()),
        repeat: None,
    });
    twin.command(Command::SetTodos { run: RUN, todos: mine }).expect("set");
    // Todos that the user has completed stay completed.
    let todos = json!({"todos": [{"content": "write"}, {"content": "read", "status": "pending"}]});
    answer(&mut twin, said("", &[("todo_write", todos)]));
    let now: Vec<(&str, TodoStatus)> =
        run(&twin).todos.iter().map(|todo| (todo.content.as_str(), todo.status)).collect();
    assert_eq!(now, [("write", TodoStatus::Pending), ("read", TodoStatus::Completed)]);
    assert_eq!(kinds(run(&twin)).iter().filter(|kind| **kind == "todo").count(), 2);
    assert!(twin.models[0].1.system.contains("write"), "the model reads them");
}

#[test]
fn all_that_a_run_changed_is_taken_back_and_made_again() {
    let text = "# Plan\n\nfirst\n\nsecond\n\nthird\n";
    let mut twin = agent(
        &[("a.md", text), ("old.md", "old\n")],
        "approval: {auto_approve_level: medium, never_approve: [delete_file]}\n",
    );
    ask(&mut twin, "work");
    let new = "# The plan\n\nfirst\n\nsecond!\n\n";
    let calls = [
        ("write_file", json!({"path": "a.md", "content": new})),
        ("write_file", json!({"path": "b.md", "content": "new\n"})),
        ("delete_file", json!({"path": "old.md"})),
        ("write_file", json!({"path": "d.csv", "content": "1\n"})),
    ];
    answer(&mut twin, said("", &calls));
    twin.pass(5_000);
    let (before, after) = (None, Some(BlobHash::of(b"1\n")));
    let changed = vec![FileChange { path: "d.csv".to_owned(), before, after, hunks: Vec::new() }];
    done(&mut twin, ToolOutcome { changed, ..fine("Created d.csv") });
    answer(&mut twin, said("Done.", &[]));
    twin.settle();
    let state = |twin: &Twin| [twin.file("a.md"), twin.file("b.md"), twin.file("old.md")];
    let words = |text: &str| Some(text.to_owned());
    assert_eq!(state(&twin), [words(new), words("new\n"), None]);

    // The user's edits made meanwhile stay.
    let note = twin.open("a.md");
    twin.edit(note, 0, 0, "mine\n\n");
    twin.command(Command::Revert { run: RUN, only: None, again: false }).expect("taken back");
    twin.settle();
    assert_eq!(twin.file("a.md"), words(&format!("mine\n\n{text}")));
    assert!(matches!(&twin.tools[0].2, ToolJob::Restore { to: None, expected: Some(_), .. }), "{:?}", twin.tools);
    done(&mut twin, fine(""));
    twin.command(Command::Revert { run: RUN, only: None, again: false }).expect_err("all of it is");
    twin.settle();
    assert_eq!(state(&twin)[1..], [None, words("old\n")]);
    twin.command(Command::Revert { run: RUN, only: None, again: true }).expect("made again");
    twin.settle();
    assert_eq!(state(&twin), [words(&format!("mine\n\n{new}")), words("new\n"), None]);

    // Only one hunk is reverted.
    let hunks = engine::revertible_parts(&run(&twin).changes[0]);
    assert!(hunks >= 2, "{hunks}");
    twin.command(Command::Revert { run: RUN, only: Some((0, Some(0))), again: false }).expect("taken back");
    twin.settle();
    assert_eq!(twin.file("a.md"), words("mine\n\n# Plan\n\nfirst\n\nsecond!\n\n"));
}

#[test]
fn a_job_finds_what_its_run_wrote_and_is_not_said_to_have_written_it() {
    let mut twin = agent(&[("a.md", "one\n"), ("b.md", "mine\n")], "approval: {auto_approve_level: medium}\n");
    let note = twin.open("b.md");
    twin.open("a.md");
    ask(&mut twin, "work");
    let edit = json!({"path": "a.md", "old_content": "one", "new_content": "two"});
    let calls = said("", &[("edit_file", edit), ("write_file", json!({"path": "d.csv", "content": "1\n"}))]);
    let (call, _) = twin.models.remove(0);
    twin.event(Event::ModelDone { call, result: Ok(Box::new(calls)) });
    // The worker that writes files is slower than all others.
    while let Some(step) = twin.steps().into_iter().find(|step| !matches!(step, Step::Work)) {
        twin.step(step);
    }
    assert_eq!((twin.tools.len(), twin.file("a.md").as_deref()), (0, Some("one\n")), "the job waits");
    twin.pass(5_000);
    assert_eq!((twin.tools.len(), twin.file("a.md").as_deref()), (1, Some("two\n")), "the job finds it");
    // Meanwhile the user types, and the job writes to another note.
    twin.edit(note, 0, 0, "and ");
    twin.pass(5_000);
    let change = |path: &str, before: &str, after: &str| FileChange {
        path: path.to_owned(),
        before: Some(BlobHash::of(before.as_bytes())),
        after: Some(BlobHash::of(after.as_bytes())),
        hunks: Vec::new(),
    };
    let changed = vec![change("b.md", "mine\n", "and mine\n"), change("a.md", "two\n", "three\n")];
    done(&mut twin, ToolOutcome { changed, ..fine("made") });
    answer(&mut twin, said("Done.", &[]));
    twin.settle();
    let paths: Vec<&str> = run(&twin).changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["a.md", "a.md"]);
}

#[test]
fn branches_grow_are_brought_together_and_forked() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "one");
    answer(&mut twin, said("first", &[]));
    let session = twin.session.agents().session(SESSION).expect("open");
    let branch: Vec<MessageId> = session.branch().iter().map(|message| message.id).collect();
    ask_in(&mut twin, DocId([2; 16]), "two", Some(branch[1]));
    answer(&mut twin, said("second", &[]));
    // The first message is sent again in other words, which starts a branch at its place.
    ask_in(&mut twin, DocId([3; 16]), "one, but better", None);
    answer(&mut twin, said("third", &[]));
    ask_in(&mut twin, DocId([4; 16]), "other", Some(branch[0]));
    let (_, request) = answer(&mut twin, said("fourth", &[]));
    let words: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(words, ["one", "other"], "the ancestry of the branch is the context");
    let session = twin.session.agents().session(SESSION).expect("open");
    let leaves = session.tree().branch_ends();
    assert_eq!(leaves.len(), 2);
    let (from, into) = (leaves[0], leaves[1]);
    twin.command(Command::MergeBranch { session: SESSION, from, into }).expect("merged");
    let session = twin.session.agents().session(SESSION).expect("open");
    let last = session.branch().last().map(|message| (message.parents.clone(), message.content.clone()));
    let (parents, content) = last.expect("a message");
    assert_eq!(parents, [into, from]);
    assert!(content.contains("fourth"), "{content}");
    let new = DocId([5; 16]);
    twin.command(Command::ForkSession { session: SESSION, at: branch[1], new }).expect("forked");
    twin.command(Command::GoTo { session: SESSION, message: from }).expect("there");
    twin.settle();
    let mut twin = Twin::start(twin.crash(), 9);
    twin.setup = setup("");
    for session in [SESSION, new] {
        twin.command(Command::OpenSession { session }).expect("known");
    }
    twin.settle();
    let agents = twin.session.agents();
    let ends = |session| agents.session(session).expect("open").branch().len();
    assert_eq!((ends(SESSION), ends(new)), (3, 2));
}

#[test]
fn two_devices_append_to_a_session_at_once() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "one");
    answer(&mut twin, said("first", &[]));
    twin.settle();
    let mut other = Twin::start(twin.crash(), 77);
    other.setup = setup("");
    other.command(Command::OpenSession { session: SESSION }).expect("known");
    other.settle();
    let (mine, theirs) = (twin.sent.len(), other.sent.len());
    ask_in(&mut twin, DocId([2; 16]), "here", None);
    answer(&mut twin, said("from here", &[]));
    ask_in(&mut other, DocId([3; 16]), "there", None);
    answer(&mut other, said("from there", &[]));
    let of = |sent: &[(DocId, Vec<u8>)]| -> Vec<Vec<u8>> {
        sent.iter().filter(|(doc, _)| *doc == SESSION).map(|(_, bytes)| bytes.clone()).collect()
    };
    let (mine, theirs) = (of(&twin.sent[mine..]), of(&other.sent[theirs..]));
    for bytes in &theirs {
        twin.event(Event::Received { doc: SESSION, ticket: 1, parcel: bytes.clone().into() });
        twin.event(Event::Received { doc: SESSION, ticket: 1, parcel: bytes.clone().into() });
    }
    for bytes in mine {
        other.event(Event::Received { doc: SESSION, ticket: 1, parcel: bytes.into() });
    }
    let all = |twin: &Twin| {
        let tree = twin.session.agents().session(SESSION).expect("open").tree();
        tree.messages().cloned().collect::<Vec<_>>()
    };
    assert_eq!(all(&twin), all(&other));
    assert_eq!(all(&twin).len(), 6);
}

#[test]
fn a_long_session_is_summarised_and_nothing_is_lost() {
    let mut twin = agent(&[("a.md", "x\n")], "");
    ask(&mut twin, "start");
    let long = "words and words ".repeat(150);
    for round in 0..40 {
        let (_, request) = twin.models[0].clone();
        let summary = request.system.starts_with("You shorten");
        let size: usize = request.messages.iter().map(|message| message.content.len()).sum();
        assert!(size < 16_000, "round {round}: {size} bytes for a model of 4,000 tokens");
        if summary {
            assert!(request.tools.is_empty());
            answer(&mut twin, said("They said words.", &[]));
            let (_, next) = twin.models[0].clone();
            assert!(next.messages[0].content.starts_with("Summary of "), "{:?}", next.messages[0]);
            let session = twin.session.agents().session(SESSION).expect("open");
            let kept = session.tree().messages().find(|message| !message.summary_of.is_empty()).expect("a summary");
            assert!(kept.summary_of.iter().all(|id| session.tree().get(*id).is_some()), "the way back");
            return;
        }
        let todos = json!({"todos": [{"content": format!("{round} {long}")}]});
        answer(&mut twin, said(&long, &[("todo_write", todos)]));
        if run(&twin).about.ending.is_some() {
            twin.command(Command::ResumeRun { run: RUN, more: Some(20), budget: None }).expect("resumed");
            twin.rest();
        }
    }
    panic!("no summary was asked for");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a model says, the session stays consistent and every call is answered once.
    #[test]
    fn whatever_a_model_says(
        turns in proptest::collection::vec(
            (".{0,40}", proptest::collection::vec((0..6_usize, "[a-z./~]{0,12}", any::<bool>()), 0..4)), 1..6),
    ) {
        let mut twin = agent(&[("a.md", "x\n")], "");
        ask(&mut twin, "work");
        let names = ["read_file", "write_file", "shell", "todo_write", "nothing", "edit_file"];
        for (text, calls) in turns {
            if twin.models.is_empty() {
                break;
            }
            let mut all: Vec<(&str, Value)> = Vec::new();
            for (name, word, odd) in &calls {
                let mut arguments = Map::new();
                let key = if *odd { "path" } else { "command" };
                arguments.insert(key.to_owned(), json!(word));
                arguments.insert("content".to_owned(), json!(word));
                if *odd {
                    arguments.remove("command");
                }
                all.push((names[*name], Value::Object(arguments)));
            }
            answer(&mut twin, said(&text, &all));
            twin.settle();
            while !twin.tools.is_empty() {
                done(&mut twin, fine("ok"));
            }
            let waiting: Vec<String> = run(&twin).pending().map(|approval| approval.id.clone()).collect();
            for approval in waiting {
                decide(&mut twin, &approval, false, DecisionScope::Once);
            }
            twin.settle();
        }
        let calls = run(&twin).steps.iter().filter(|step| step.kind.as_str() == "tool_call").count();
        prop_assert_eq!(calls, results(run(&twin)).len());
    }
}
