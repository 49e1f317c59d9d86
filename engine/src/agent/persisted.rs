//! Sessions and runs as files: `agent.json` and `execution-state.json` of `llmbox.md` (shared/reference), version 1,
//! both ways; and a session as Markdown for people.

use crate::session::{Conversation, Run};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{AgentState, ExecutionStep, Message, MessageId, Role, StepId, StepKind, TodoItem};

/// The version that is written, and the only one that is read.
pub const VERSION: u64 = 1;
/// A file that is imported has at most so many messages or steps.
const MOST: usize = 100_000;

/// A conversation: `agent.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistedContext {
    /// 1.
    pub version: u64,
    /// Milliseconds since 1970.
    pub saved_at: i64,
    /// The file that it is about.
    pub file_uri: String,
    /// What was said on the branch that is looked at, oldest first.
    pub messages: Vec<Said>,
}

/// A message of `agent.json`: role and content, and of our own what else makes it whole again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// What was said.
    pub content: String,
    /// All of the message, for Tracebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracebook: Option<Message>,
}

/// A run: `execution-state.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistedExecutionState {
    /// 1.
    pub version: u64,
    /// Milliseconds since 1970.
    pub saved_at: i64,
    /// The file that it is about.
    pub file_uri: String,
    /// What was asked.
    pub prompt: String,
    /// Milliseconds since 1970.
    pub start_time: i64,
    /// How often a model was called.
    pub iteration: u64,
    /// What the agent was at.
    pub agent_state: AgentState,
    /// What it was to do.
    pub todos: Vec<TodoItem>,
    /// What it did.
    pub steps: Vec<ExecutionStep>,
}

/// A session as `agent.json`.
pub fn context(session: &Conversation, file_uri: &str, saved_at: i64) -> PersistedContext {
    let said = |message: &&Message| Said {
        role: message.role.word().to_owned(),
        content: message.content.clone(),
        tracebook: Some((*message).clone()),
    };
    let messages = session.branch().iter().map(said).collect();
    PersistedContext { version: VERSION, saved_at, file_uri: file_uri.to_owned(), messages }
}

/// A run as `execution-state.json`.
pub fn state(run: &Run, file_uri: &str, saved_at: i64) -> PersistedExecutionState {
    PersistedExecutionState {
        version: VERSION,
        saved_at,
        file_uri: file_uri.to_owned(),
        prompt: run.about.prompt.clone(),
        start_time: run.about.start_time,
        iteration: run.about.iteration,
        agent_state: run.about.agent_state,
        todos: run.todos.clone(),
        steps: run.steps.clone(),
    }
}

fn checked(text: &str, what: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON ({error})"))?;
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => Ok(value),
        Some(other) => Err(format!("it is {what} of version {other}; version {VERSION} is understood")),
        None => Err(format!("it is no {what}: it has no version")),
    }
}

impl PersistedContext {
    /// Reads `agent.json`.
    ///
    /// # Errors
    /// A sentence: no JSON, another version, other fields.
    pub fn parse(text: &str) -> Result<PersistedContext, String> {
        let value = checked(text, "agent.json")?;
        let read: PersistedContext =
            serde_json::from_value(value).map_err(|error| format!("it is no agent.json: {error}"))?;
        if read.messages.len() > MOST {
            return Err(format!("it has more than {MOST} messages"));
        }
        Ok(read)
    }

    /// Its messages, one behind the other. Those that other programs wrote get ids from `id`.
    ///
    /// # Errors
    /// A sentence: a role that nobody has.
    pub fn messages(&self, mut id: impl FnMut() -> u64) -> Result<Vec<Message>, String> {
        let mut messages: Vec<Message> = Vec::new();
        for (at, said) in (0..).zip(&self.messages) {
            let role: Role = serde_json::from_value(Value::String(said.role.clone()))
                .map_err(|_| format!("a message has the role \u{201c}{}\u{201d}", said.role))?;
            let before = messages.last().map(|message| message.id);
            let whole = said.tracebook.clone().filter(|whole| whole.role == role && whole.content == said.content);
            let fresh = || Message::new(MessageId(0), role, said.content.clone(), self.saved_at.saturating_add(at));
            let mut message = whole.unwrap_or_else(fresh);
            if message.id.0 == 0 || messages.iter().any(|known| known.id == message.id) {
                message.id = MessageId(id());
            }
            if message.parents.first() != before.as_ref() {
                message.parents = before.into_iter().collect();
            }
            messages.push(message);
        }
        Ok(messages)
    }
}

impl PersistedExecutionState {
    /// Reads `execution-state.json`. Steps of other programs that have no id of ours get one from `id`.
    ///
    /// # Errors
    /// A sentence: no JSON, another version, other fields.
    pub fn parse(text: &str, mut id: impl FnMut() -> u64) -> Result<PersistedExecutionState, String> {
        let mut value = checked(text, "execution-state.json")?;
        for (at, todo) in value.get_mut("todos").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            let Some(todo) = todo.as_object_mut() else { continue };
            todo.entry("id").or_insert_with(|| Value::String(format!("{}", at + 1)));
            if let Some(title) = todo.get("title").cloned() {
                todo.entry("content").or_insert(title);
            }
            // Other programs name priorities.
            let words = ["lowest", "low", "normal", "medium", "high", "highest"];
            let named = todo.get("priority").and_then(Value::as_str);
            let named = named.map(|word| words.iter().position(|known| *known == word).unwrap_or(2));
            if let Some(number) = named {
                todo.insert("priority".to_owned(), Value::from(number));
            }
        }
        for step in value.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(step) = step.as_object_mut() else { continue };
            let ours = step.get("id").and_then(Value::as_str).is_some_and(|id| id.parse::<StepId>().is_ok());
            if !ours {
                step.insert("id".to_owned(), Value::String(StepId(id()).to_string()));
                step.remove("parents");
            }
        }
        let read: PersistedExecutionState =
            serde_json::from_value(value).map_err(|error| format!("it is no execution-state.json: {error}"))?;
        if read.steps.len() > MOST || read.todos.len() > MOST {
            return Err(format!("it has more than {MOST} steps or todos"));
        }
        Ok(read)
    }
}

/// A session's branch as Markdown, with what the runs did between the messages.
pub fn markdown(session: &Conversation, runs: &[&Run]) -> String {
    let mut text = format!("# {}\n", session.about.title);
    for message in session.branch() {
        let who = match message.role {
            Role::User => "You",
            Role::Assistant => "Assistant",
            Role::System => "Tracebook",
            Role::Tool => message.tool_name.as_deref().unwrap_or("Tool"),
        };
        if message.content.is_empty() && message.tool_calls.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {who}\n\n"));
        match message.role {
            Role::Tool => text.push_str(&fence(&message.content)),
            Role::User | Role::Assistant | Role::System => {
                text.push_str(message.content.trim());
                text.push('\n');
            }
        }
        for call in &message.tool_calls {
            let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
            text.push_str(&format!("\nCalls **{}**:\n\n{}", call.name, fence(&arguments)));
        }
        if let Some(why) = &message.partial {
            text.push_str(&format!("\n*Not whole: {why}*\n"));
        }
    }
    let errors = runs.iter().flat_map(|run| &run.steps).filter_map(|step| match &step.kind {
        StepKind::Error { message, .. } => Some(message.as_str()),
        StepKind::Thinking { .. }
        | StepKind::ToolCall { .. }
        | StepKind::ToolResult { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. } => None,
    });
    let errors: Vec<&str> = errors.collect();
    if !errors.is_empty() {
        text.push_str(&format!("\n---\n\nWhat went wrong:\n\n- {}\n", errors.join("\n- ")));
    }
    text
}

/// A text as a block of code, however many ticks it holds.
fn fence(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}\n{}\n{ticks}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_of_other_programs_are_read_and_come_back() {
        let theirs = json!({"version": 1, "savedAt": 5, "fileUri": "file:///a.md", "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]});
        let read = PersistedContext::parse(&theirs.to_string()).expect("read");
        assert_eq!(serde_json::to_value(&read).expect("written"), theirs, "it comes back as it was");
        let mut next = 0;
        let messages = read.messages(|| {
            next += 1;
            next
        });
        let messages = messages.expect("read");
        assert_eq!(messages[1].parents, [MessageId(1)]);

        let theirs = json!({"version": 1, "savedAt": 5, "fileUri": "file:///a.md", "prompt": "do", "startTime": 3,
            "iteration": 2, "agentState": "executing",
            "todos": [{"id": "1", "content": "look", "status": "in_progress", "priority": "high"}],
            "steps": [
                {"id": "step-1", "timestamp": 1, "type": "thinking", "content": "hm", "isStreaming": false},
                {"id": "step-2", "timestamp": 2, "duration": 9, "type": "tool_call", "toolCallId": "c", 
                    "toolName": "ls",
                    "params": {"a": 1}},
                {"id": "step-3", "timestamp": 3, "type": "tool_result", "toolCallId": "c", 
                    "success": true, "result": [1]},
                {"id": "step-4", "timestamp": 4, "type": "todo", "todos": []},
                {"id": "step-5", "timestamp": 5, "type": "final_answer", "content": "done"},
                {"id": "step-6", "timestamp": 6, "type": "error", "message": "no", "recoverable": true}]});
        let mut next = 0;
        let read = PersistedExecutionState::parse(&theirs.to_string(), || {
            next += 1;
            next
        });
        let read = read.expect("read");
        let mut ours = serde_json::to_value(&read).expect("written");
        assert_eq!(ours["todos"][0]["priority"], 4);
        for (ours, theirs) in
            ours["steps"].as_array_mut().into_iter().flatten().zip(theirs["steps"].as_array().expect("steps"))
        {
            ours["id"] = theirs["id"].clone();
            assert_eq!(ours, theirs);
        }
        let again = PersistedExecutionState::parse(&serde_json::to_string(&read).expect("written"), || 0);
        assert_eq!(again.as_ref(), Ok(&read), "what we write comes back whole");
    }

    #[test]
    fn what_is_something_else_is_refused() {
        for (text, why) in [
            ("", "no JSON"),
            ("[]", "no version"),
            ("{\"version\": 2}", "version 2"),
            ("{\"version\": 1, \"messages\": 5}", "no agent.json"),
        ] {
            let said = PersistedContext::parse(text).expect_err("refused");
            assert!(said.contains(why), "{text}: {said}");
        }
        let odd = json!({"version": 1, "savedAt": 5, "fileUri": "", "messages": [{"role": "king", "content": ""}]});
        let read = PersistedContext::parse(&odd.to_string()).expect("read");
        assert!(read.messages(|| 1).is_err());
        assert!(fence("a ```` b").starts_with("`````\n"));
    }
}
