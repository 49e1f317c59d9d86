//! A conversation with an agent and its run for the screenshots, as commands that import them. It only contains data.

use engine::Command;
use serde_json::{Map, Value, json};
use store::{
    AgentState, CallUsage, DocId, ExecutionStep, MessageId, MessageRole, RunAbout, RunEnding, SessionMessage, StepId,
    StepKind, TodoItem, TodoStatus, ToolCall,
};

const FIXTURE_SESSION: DocId = DocId([21; 16]);
const FIXTURE_RUN: DocId = DocId([22; 16]);

const FIXTURE_QUESTION: &str = "Plan the garden for this year: what is sown when, and how many weeks does it take?";
const FIXTURE_ANSWER: &str = "## The plan\n\nTwo things are **new** in [[Plan]]:\n\n1. peas come first, along the \
    wall\n2. the \
     north bed is dug in March\n\n```python\nweeks = {\"Beans\": 9, \"Peas\": 11}\nprint(sum(weeks.values()))\n```\n\n\
     | Crop | Weeks |\n|---|---:|\n| Beans | 9 |\n| Peas | 11 |\n\nThe [[Beds]] need twenty weeks in all.";
const FIXTURE_DIFF: &str = "--- Garden/Plan.md\n+++ Garden/Plan.md\n@@ -5,3 +5,4 @@\n ## Sowing\n \n-First two rows \
    of beans, \
     then peas along the wall.\n+First peas along the wall, then two rows of beans.\n+The north bed is dug in March.\n";

fn json_object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the agent's tool calls: turn, tool, arguments, result, and duration.
fn fixture_calls() -> Vec<(u64, &'static str, Value, &'static str, u64)> {
    let edit = json!({"path": "Garden/Plan.md",
        "old_content": "First two rows of beans, then peas along the wall.",
        "new_content": "First peas along the wall, then two rows of beans.\nThe north bed is dug in March."});
    vec![
        (0, "todo_write", json!({"todos": []}), "3 todos.", 2),
        (0, "read_file", json!({"path": "Garden/Plan.md"}), "# Plan for the garden\n", 4),
        (0, "search", json!({"query": "weeks until the harvest"}), "Garden/Crops: 9 notes.", 38),
        (1, "edit_file", edit, FIXTURE_DIFF, 12),
        (2, "run_python", json!({"code": "print(9 + 11)"}), "20", 310),
    ]
}

/// Returns commands that import the session and its run, starting at a time in milliseconds since 1970.
pub(super) fn import_commands(volume: DocId, start: i64) -> [Command; 2] {
    let mut messages = vec![SessionMessage {
        run: Some(FIXTURE_RUN),
        ..SessionMessage::new(MessageId(1), MessageRole::User, FIXTURE_QUESTION, start)
    }];
    let mut steps: Vec<ExecutionStep> = Vec::new();
    let mut at = start;
    let says = ["I look at what is there.", "", "", FIXTURE_ANSWER];
    for (turn, words) in (0_u64..).zip(says) {
        let called: Vec<_> = fixture_calls().into_iter().zip(0_u64..).filter(|((own, ..), _)| *own == turn).collect();
        let name = |number: &u64| format!("call{number}");
        let wishes = called.iter().map(|((_, tool, given, ..), number)| ToolCall {
            id: name(number),
            name: (*tool).to_owned(),
            arguments: json_object(given),
        });
        let id = MessageId(10 + 20 * turn);
        let parents = messages.last().map(|message| message.id).into_iter().collect();
        let (tool_calls, duration) = (wishes.collect(), Some(2_140 + 700 * turn));
        messages.push(SessionMessage {
            parents,
            tool_calls,
            duration,
            run: Some(FIXTURE_RUN),
            ..SessionMessage::new(id, MessageRole::Assistant, words, at + 1)
        });
        let step = |id: u64, parents: Vec<StepId>, timestamp: i64, duration: Option<u64>, kind: StepKind| {
            ExecutionStep { id: StepId(id), timestamp, duration, parents, kind, spent: None, route: None, tool: None }
        };
        let before = steps.last().map(|step| step.id).into_iter().collect();
        let kind = StepKind::Thinking { content: words.to_owned(), is_streaming: None };
        let spent = CallUsage { input_tokens: 1_420 + 310 * turn, output_tokens: 96 + 41 * turn, cost: Some(0.0) };
        let route = Some("ollama/qwen3: the default".to_owned());
        let thought = step(100 + turn, before, at, duration, kind);
        steps.push(ExecutionStep { spent: Some(spent), route, ..thought });
        at += 2_140;
        for ((_, tool, given, _, _), number) in &called {
            let kind = StepKind::ToolCall {
                tool_call_id: name(number),
                tool_name: (*tool).to_owned(),
                params: json_object(given),
            };
            steps.push(step(200 + number, vec![StepId(100 + turn)], at, None, kind));
        }
        for ((_, tool, _, answer, took), number) in &called {
            let kind = StepKind::ToolResult {
                tool_call_id: name(number),
                success: true,
                result: Some(Value::String((*answer).to_owned())),
                error: None,
                whole: None,
                attached: Vec::new(),
                files: Vec::new(),
            };
            steps.push(step(300 + number, vec![StepId(200 + number)], at + 5, Some(*took), kind));
            let parents = messages.last().map(|message| message.id).into_iter().collect();
            messages.push(SessionMessage {
                parents,
                run: Some(FIXTURE_RUN),
                tool_call_id: Some(name(number)),
                tool_name: Some((*tool).to_owned()),
                ..SessionMessage::new(MessageId(11 + 20 * turn + number), MessageRole::Tool, *answer, at + 6)
            });
        }
        at += 400;
    }
    let last = steps.last().map(|step| step.id).into_iter().collect();
    let answer = StepKind::FinalAnswer { content: FIXTURE_ANSWER.to_owned() };
    let (id, spent, route) = (StepId(400), None, None);
    steps.push(ExecutionStep {
        id,
        timestamp: at,
        duration: None,
        parents: last,
        kind: answer,
        spent,
        route,
        tool: None,
    });
    let about = RunAbout {
        session: FIXTURE_SESSION,
        asked: MessageId(1),
        head: messages.last().map_or(MessageId(1), |message| message.id),
        volume,
        note: None,
        prompt: FIXTURE_QUESTION.to_owned(),
        agent: "assistant".to_owned(),
        start_time: start,
        ended: Some(at),
        ending: Some(RunEnding::Done),
        iteration: 4,
        limit: 20,
        agent_state: AgentState::Idle,
        spent: CallUsage { input_tokens: 7_540, output_tokens: 630, cost: Some(0.0) },
        budget: None,
        origin: store::RunOrigin::User,
        phase: 0,
        imported: None,
        provider: None,
        deadline: None,
        is_follower: false,
    };
    let todos = ["Read what is there", "Write the plan", "Count the weeks"];
    let todos = todos.iter().zip(1..).map(|(content, number)| TodoItem {
        id: number.to_string(),
        content: (*content).to_owned(),
        status: TodoStatus::Completed,
        priority: 2,
        due: None,
        repeat: None,
    });
    let todos = todos.collect();
    let title = "The garden this year".to_owned();
    [
        Command::ImportSession { session: FIXTURE_SESSION, volume, title, messages, imported: None },
        Command::ImportRun { run: FIXTURE_RUN, about: Box::new(about), todos, steps, approvals: Vec::new() },
    ]
}
