//! Benchmarks of agents without their models: a step of the loop, opening a long run, opening a session with many
//! branches.

use super::remote_typing::HostlessSession;
use super::report::{BenchReport, FigureGoal};
use super::{drive_until, open_workspace, to_ms};
use crate::headless_window::HeadlessWindow;
use agent::config;
use agent::model_call::{ModelResponse, ModelStopReason};
use eframe::egui::vec2;
use engine::commands::CommandId;
use engine::{AgentSetup, Command, Event, SessionInput};
use serde_json::json;
use std::time::{Duration, Instant};
use store::{
    AgentState, CallUsage, DocId, ExecutionStep, MessageId, MessageRole, RunAbout, RunEnding, SessionMessage, StepId,
    StepKind, ToolCall,
};
use support::measure::{self, ScratchFolder};

const RUN_STEPS: u64 = 10_000;
const SESSION_MESSAGES: u64 = 5_000;
const SESSION_BRANCHES: u64 = 200;
const MODEL_TURNS: usize = 1_000;
/// Number of frames of each kind.
const TIMELINE_FRAMES: usize = 200;

/// Runs all benchmarks of agents.
pub(super) fn measure(report: &mut BenchReport) -> Result<(), String> {
    measure_turns(report)?;
    measure_opening(report)
}

/// Measures turns of a run in which the model calls a tool that finishes immediately.
fn measure_turns(report: &mut BenchReport) -> Result<(), String> {
    let mut bare = HostlessSession::open()?;
    bare.open_note_with_text("# A\n".to_owned())?;
    bare.setup = AgentSetup { config: config::merge(&[]).map_err(|error| error.to_string())?, ..AgentSetup::default() };
    let volume = bare.session.volumes().next().ok_or("the volume is not there")?.id;
    let run = DocId([5; 16]);
    bare.apply_and_settle(SessionInput::Command(Command::Ask {
        run,
        session: DocId([6; 16]),
        volume,
        note: None,
        parent: None,
        text: "work".to_owned(),
        agent: None,
        budget: None,
        allow: Vec::new(),
        recall: agent::memory::RecallOptions::default(),
        provider: None,
    }))?;
    let mut times = Vec::new();
    for turn in 0..MODEL_TURNS {
        let Some(call) = bare.calls.pop() else {
            // The run reached its iteration limit.
            bare.apply_and_settle(SessionInput::Command(Command::ResumeRun { run, more: Some(100), budget: None }))?;
            continue;
        };
        let todos = json!({"todos": [{"content": format!("step {turn}")}]});
        let asked = ToolCall {
            id: format!("c{turn}"),
            name: "todo_write".to_owned(),
            arguments: todos.as_object().cloned().unwrap_or_default(),
        };
        let answer = ModelResponse {
            text: "I go on.".to_owned(),
            thinking: String::new(),
            calls: vec![asked],
            malformed: Vec::new(),
            spent: CallUsage::default(),
            stop: ModelStopReason::Done,
        };
        let begun = measure::thread_cpu();
        bare.apply_and_settle(SessionInput::Event(Event::ModelDone { call, result: Ok(Box::new(answer)) }))?;
        // Each turn adds four steps: thinking, a call, a result and a todo step.
        times.push(to_ms(measure::thread_cpu().saturating_sub(begun)) / 4.0);
    }
    let steps = bare.session.agents().run(run).map_or(0, |run| run.steps.len());
    if steps < MODEL_TURNS {
        report.add_error("the run has fewer steps than turns");
    }
    report.add_figure("agent loop, steps of the run", steps as f64, "", FigureGoal::None);
    report.add_percentiles(
        "agent loop, one step without model and disk, CPU",
        &mut times,
        "ms",
        FigureGoal::Under(2.0),
    );
    Ok(())
}

fn make_step(number: u64) -> ExecutionStep {
    let id = number.to_string();
    let kind = match number % 4 {
        0 => StepKind::Thinking { content: "I look at the next file and compare.".repeat(3), is_streaming: None },
        1 => StepKind::ToolCall {
            tool_call_id: id,
            tool_name: "read_file".to_owned(),
            params: json!({"path": format!("notes/{number}.md")}).as_object().cloned().unwrap_or_default(),
        },
        2 => StepKind::ToolResult {
            tool_call_id: id,
            success: true,
            result: Some(json!("a line of the file\n".repeat(20))),
            error: None,
            whole: None,
            attached: Vec::new(),
            files: Vec::new(),
        },
        _ => StepKind::Todo { todos: Vec::new() },
    };
    let parents = (number > 0).then(|| StepId(number - 1)).into_iter().collect();
    let timestamp = i64::try_from(number).unwrap_or(0);
    ExecutionStep {
        id: StepId(number),
        timestamp,
        duration: Some(5),
        parents,
        kind,
        spent: None,
        route: None,
        tool: None,
    }
}

/// Measures opening a long run and a session with many branches, read from disk as the window reads them.
fn measure_opening(report: &mut BenchReport) -> Result<(), String> {
    let scratch = ScratchFolder::new("agent")?;
    let (run, session) = (DocId([5; 16]), DocId([6; 16]));
    {
        scratch.write("notes/a.md", b"# A\n")?;
        let folder = scratch.folder().join("notes");
        let mut driver = open_workspace(&scratch)?;
        driver.run_command(Command::OpenFolder { folder, name: None }).map_err(|reject| reject.0)?;
        let volume = driver.session().volumes().next().ok_or("the volume is not there")?.id;
        let messages = (1..=SESSION_MESSAGES).map(|number| {
            let branch = SESSION_MESSAGES / SESSION_BRANCHES;
            // Each branch forks from the first one, before its end.
            let parent = match number {
                1 => 0,
                _ if number % branch == 1 => (number / branch) % (branch - 1) + 1,
                _ => number - 1,
            };
            let parents = (parent > 0).then_some(MessageId(parent)).into_iter().collect();
            let role = if number % 2 == 1 { MessageRole::User } else { MessageRole::Assistant };
            let at = i64::try_from(number).unwrap_or(0);
            SessionMessage {
                parents,
                ..SessionMessage::new(MessageId(number), role, "What was said, in a line or two. ".repeat(6), at)
            }
        });
        let messages = messages.collect();
        let title = "long".to_owned();
        driver
            .run_command(Command::ImportSession { session, volume, title, messages, imported: None })
            .map_err(|reject| reject.0)?;
        let about = RunAbout {
            session,
            asked: MessageId(1),
            head: MessageId(1),
            volume,
            note: None,
            prompt: "work".to_owned(),
            agent: "assistant".to_owned(),
            start_time: 0,
            ended: Some(1),
            ending: Some(RunEnding::Done),
            iteration: 1,
            limit: 20,
            agent_state: AgentState::Idle,
            spent: CallUsage::default(),
            budget: None,
            origin: store::RunOrigin::User,
            phase: 0,
            imported: None,
            provider: None,
            deadline: None,
            is_follower: false,
        };
        let steps = (0..RUN_STEPS).map(make_step).collect();
        let import =
            Command::ImportRun { run, about: Box::new(about), todos: Vec::new(), steps, approvals: Vec::new() };
        driver.run_command(import).map_err(|reject| reject.0)?;
        driver.close().map_err(|why| why.to_string())?;
    }
    let (mut runs, mut sessions) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let mut driver = open_workspace(&scratch)?;
        let begun = Instant::now();
        driver.run_command(Command::OpenRun { run }).map_err(|reject| reject.0)?;
        drive_until(&mut driver, "the run is read", |session| session.agents().run(run).is_some())?;
        runs.push(to_ms(begun.elapsed()));
        let steps = driver.session().agents().run(run).map_or(0, |run| run.steps.len());
        let begun = Instant::now();
        driver.run_command(Command::OpenSession { session }).map_err(|reject| reject.0)?;
        drive_until(&mut driver, "the session is read", |state| state.agents().session(session).is_some())?;
        sessions.push(to_ms(begun.elapsed()));
        let tree = driver.session().agents().session(session).map(engine::AgentSession::tree);
        let (messages, branches) = tree.map_or((0, 0), |tree| (tree.len() as u64, tree.branch_ends().len() as u64));
        if (steps as u64, messages, branches) != (RUN_STEPS, SESSION_MESSAGES, SESSION_BRANCHES) {
            report.add_error(format!("{steps} steps, {messages} messages and {branches} branches were read"));
        }
        driver.close().map_err(|why| why.to_string())?;
    }
    report.add_percentiles("a run of 10,000 steps is opened", &mut runs, "ms", FigureGoal::Under(100.0));
    report.add_percentiles("a session of 5,000 messages is opened", &mut sessions, "ms", FigureGoal::Under(100.0));
    measure_timeline(report, &scratch, run)
}

/// Measures frames of the long run's timeline while it's panned and zoomed.
fn measure_timeline(report: &mut BenchReport, scratch: &ScratchFolder, run: DocId) -> Result<(), String> {
    let mut stage = HeadlessWindow::new(open_workspace(scratch)?);
    stage.send_command(Command::OpenRun { run });
    stage.draw_until("the run is read", |session| session.agents().run(run).is_some())?;
    stage.run_command(CommandId::AgentTimeline);
    stage.draw_for(Duration::from_secs(1));
    stage.press_pointer(true);
    let mut moved: Vec<f64> = (0..TIMELINE_FRAMES).map(|_| to_ms(stage.drag_pointer(vec2(-40.0, 0.0)).cpu)).collect();
    stage.press_pointer(false);
    report.add_percentiles("timeline of 10,000 steps, moved, CPU", &mut moved, "ms", FigureGoal::Under(16.0));
    let mut zoomed: Vec<f64> =
        (0..TIMELINE_FRAMES).map(|at| to_ms(stage.turn_wheel(if at / 50 % 2 == 0 { 60.0 } else { -60.0 }))).collect();
    report.add_percentiles("timeline of 10,000 steps, zoomed, CPU", &mut zoomed, "ms", FigureGoal::Under(16.0));
    stage.close();
    Ok(())
}
