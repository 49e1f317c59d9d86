//! Events of runs: what the user wrote, and what models and tools said. `tracebook events` prints them, and schedules
//! and functions of plugins can wait for them.

use crate::event_filter::WorkspaceEvent;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{DocId, ExecutionStep, RunAbout, RunOrigin, StepKind};

/// Maximum length of a text in an event, in bytes. The run's steps hold the whole text.
const MAX_EVENT_TEXT_BYTES: usize = 64 << 10;

/// A run whose steps are events.
#[derive(Clone, Copy, Debug)]
pub struct RunEventSource<'a> {
    /// Document id of the run.
    pub run: DocId,
    /// Metadata of the run.
    pub about: &'a RunAbout,
    /// Steps of the run, oldest first.
    pub steps: &'a [ExecutionStep],
}

/// How many steps of each run were reported as events.
#[derive(Debug, Default)]
pub struct RunEventCursor {
    steps: BTreeMap<DocId, usize>,
}

impl RunEventCursor {
    /// Returns the events of a run since the last call. `has_begun` says whether the run began since then: one that was
    /// opened to be read isn't news.
    pub fn events_of(&mut self, run: &RunEventSource<'_>, has_begun: impl FnOnce() -> bool) -> Vec<WorkspaceEvent> {
        let known = self.steps.insert(run.run, run.steps.len());
        let seen = match known {
            Some(known) => known.min(run.steps.len()),
            None if has_begun() => 0,
            None => return Vec::new(),
        };
        let input = known.is_none() && matches!(run.about.origin, RunOrigin::User);
        let input = input.then(|| run.input_event());
        let new = (seen..run.steps.len()).filter(|at| has_news(&run.steps[*at])).map(|at| run.step_event(at));
        input.into_iter().chain(new).collect()
    }
}

impl RunEventSource<'_> {
    fn event(&self, kind: &str, subject: &str, at: i64, data: Value) -> WorkspaceEvent {
        let mut data = if let Value::Object(data) = data { data } else { Map::new() };
        let ids = [("run", self.run), ("session", self.about.session), ("volume", self.about.volume)];
        data.extend(ids.map(|(key, id)| (key.to_owned(), json!(id.to_string()))));
        data.insert("agent".to_owned(), json!(self.about.agent));
        WorkspaceEvent { kind: kind.to_owned(), subject: subject.to_owned(), at, data }
    }

    fn input_event(&self) -> WorkspaceEvent {
        let data = json!({"text": event_text(&self.about.prompt)});
        self.event("USER_INPUT", &self.about.agent, self.about.start_time, data)
    }

    /// Returns whether a model wrote the text of the step at this index: the step has the call's tokens, or is the
    /// answer of that call. The program itself says what is remembered, which phase begins, and how a replay ended.
    fn is_of_model(&self, at: usize) -> bool {
        let is_answer = matches!(self.steps[at].kind, StepKind::FinalAnswer { .. });
        let is_text = |step: &&ExecutionStep| matches!(step.kind, StepKind::Thinking { .. });
        // A remark of the program may be between the call and its answer.
        let mut before = self.steps[..at].iter().rev().take(2).take_while(is_text);
        self.steps[at].spent.is_some() || is_answer && before.any(|step| step.spent.is_some())
    }

    fn step_event(&self, at: usize) -> WorkspaceEvent {
        let step = &self.steps[at];
        let output = if self.is_of_model(at) { "LLM_OUTPUT" } else { "PROGRAM_OUTPUT" };
        let event = |kind: &str, subject: &str, data: Value| {
            let mut event = self.event(kind, subject, step.timestamp, data);
            event.data.insert("step".to_owned(), json!(step.id.to_string()));
            event
        };
        let agent = self.about.agent.as_str();
        match &step.kind {
            StepKind::Thinking { content, .. } => {
                event(output, agent, json!({"text": event_text(content), "final": false}))
            }
            StepKind::FinalAnswer { content } => {
                event(output, agent, json!({"text": event_text(content), "final": true}))
            }
            StepKind::ToolCall { tool_call_id, tool_name, params } => {
                let text = event_text(&serde_json::to_string(params).unwrap_or_default());
                event("TOOL_CALL", tool_name, json!({"call": tool_call_id, "tool": tool_name, "text": text}))
            }
            StepKind::ToolResult { tool_call_id, success, result, error, .. } => {
                let name = self.steps.iter().find_map(|step| match &step.kind {
                    StepKind::ToolCall { tool_call_id: call, tool_name, .. } if call == tool_call_id => Some(tool_name),
                    _ => None,
                });
                let name = name.map_or("", String::as_str);
                let text = match (result, error) {
                    (_, Some(error)) => error.clone(),
                    (Some(Value::String(text)), None) => text.clone(),
                    (Some(other), None) => other.to_string(),
                    (None, None) => String::new(),
                };
                let data = json!({"call": tool_call_id, "tool": name, "success": success, "text": event_text(&text)});
                event("TOOL_OUTPUT", name, data)
            }
            StepKind::Todo { todos } => event("TODO", agent, json!({"todos": todos})),
            StepKind::Error { message, .. } => event("ERROR", agent, json!({"text": event_text(message)})),
        }
    }
}

/// Returns a text, cut off if it's long, for an event.
fn event_text(text: &str) -> Value {
    json!(text.get(..text.floor_char_boundary(MAX_EVENT_TEXT_BYTES)).unwrap_or_default())
}

/// Returns whether a step says something: a turn that only calls tools has no text.
fn has_news(step: &ExecutionStep) -> bool {
    match &step.kind {
        StepKind::Thinking { content, .. } => !content.trim().is_empty(),
        StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => true,
    }
}
