//! Reads and writes sessions and runs as `agent.json` and `execution-state.json` of `llmbox.md` (shared/reference),
//! version 1, and writes sessions as Markdown for people. Content of other programs survives field by field: unknown
//! fields are stored and exported again unchanged.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{AgentState, ExecutionStep, MessageId, MessageRole, RunAbout, SessionMessage, StepId, StepKind, TodoItem};

/// Version of the format that is written, and the only one that is read.
pub const SESSION_FILE_VERSION: u64 = 1;
/// Maximum number of messages or steps of an imported file.
const MAX_IMPORTED_ITEMS: usize = 100_000;
/// Names of todo priorities, starting with priority 0.
const TODO_PRIORITY_NAMES: [&str; 6] = ["lowest", "low", "normal", "medium", "high", "highest"];

/// A conversation imported from `agent.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedContext {
    /// Messages of the conversation, oldest first, each the parent of the next.
    pub messages: Vec<SessionMessage>,
    /// Other content of the file, for [`session_to_json`].
    pub imported: String,
}

/// A run imported from `execution-state.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRun {
    /// When the file was saved, in milliseconds since 1970.
    pub saved_at: i64,
    /// URI of the file that the run is about.
    pub file_uri: String,
    /// The user's message.
    pub prompt: String,
    /// When the run started, in milliseconds since 1970.
    pub start_time: i64,
    /// Number of model calls.
    pub iteration: u64,
    /// State of the agent when the file was saved.
    pub agent_state: AgentState,
    /// The todos of the run.
    pub todos: Vec<TodoItem>,
    /// The steps of the run.
    pub steps: Vec<ExecutionStep>,
    /// Other content of the file, for [`run_to_json`].
    pub imported: Option<Box<Value>>,
}

/// Content of an imported conversation that a session doesn't store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct PreservedContext {
    /// The file without its messages.
    file: Map<String, Value>,
    /// The messages in order: id, and fields other than role and content.
    messages: Vec<(MessageId, Map<String, Value>)>,
}

/// Content of an imported run that a run doesn't store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct PreservedRun {
    /// The file without its todos and steps.
    file: Map<String, Value>,
    /// The run's own fields as imported, without todos and steps. A field that differs later was changed here.
    taken: Map<String, Value>,
    /// The steps in order: id, and the step as in the file if it's written differently here.
    steps: Vec<(StepId, Option<Value>)>,
    /// The todos: each as in the file, and as imported.
    todos: Vec<(Value, TodoItem)>,
}

fn message_to_json(message: &SessionMessage) -> Value {
    json!({"role": message.role.as_str(), "content": message.content, "tracebook": message})
}

fn into_object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// Converts a session's branch to `agent.json`. `imported` is the preserved content of the file it was imported from.
pub fn session_to_json(imported: Option<&str>, branch: &[&SessionMessage], file_uri: &str, saved_at: i64) -> Value {
    let kept = imported.and_then(|text| serde_json::from_str::<PreservedContext>(text).ok());
    let own = json!({"version": SESSION_FILE_VERSION, "savedAt": saved_at, "fileUri": file_uri});
    let Some(kept) = kept else {
        let mut file = into_object(own);
        file.insert("messages".to_owned(), branch.iter().map(|message| message_to_json(message)).collect());
        return Value::Object(file);
    };
    let mut file = kept.file;
    let same = branch.iter().map(|message| message.id).eq(kept.messages.iter().map(|(id, _)| *id));
    if !same {
        file.insert("savedAt".to_owned(), Value::from(saved_at));
    }
    let more: BTreeMap<MessageId, Map<String, Value>> = kept.messages.into_iter().collect();
    let written = |message: &&SessionMessage| match more.get(&message.id) {
        None => message_to_json(message),
        Some(more) => {
            let mut one = more.clone();
            one.insert("role".to_owned(), Value::from(message.role.as_str()));
            one.insert("content".to_owned(), Value::from(message.content.as_str()));
            Value::Object(one)
        }
    };
    file.insert("messages".to_owned(), branch.iter().map(written).collect());
    Value::Object(file)
}

/// Returns the fields of a run other than its todos and steps.
fn run_header_json(prompt: &str, start_time: i64, iteration: u64, state: AgentState) -> Map<String, Value> {
    into_object(json!({"prompt": prompt, "startTime": start_time, "iteration": iteration, "agentState": state}))
}

/// Converts a run to `execution-state.json`.
pub fn run_to_json(
    about: &RunAbout,
    todos: &[TodoItem],
    steps: &[ExecutionStep],
    file_uri: &str,
    saved_at: i64,
) -> Value {
    let now = run_header_json(&about.prompt, about.start_time, about.iteration, about.agent_state);
    build_run_json(about.imported.as_deref(), now, (todos, steps), file_uri, saved_at)
}

fn build_run_json(
    imported: Option<&Value>,
    now: Map<String, Value>,
    (todos, steps): (&[TodoItem], &[ExecutionStep]),
    file_uri: &str,
    saved_at: i64,
) -> Value {
    let kept = imported.and_then(|kept| serde_json::from_value::<PreservedRun>(kept.clone()).ok());
    let Some(kept) = kept else {
        let mut file = into_object(json!({"version": SESSION_FILE_VERSION, "savedAt": saved_at, "fileUri": file_uri}));
        file.extend(now);
        file.insert("todos".to_owned(), json!(todos));
        file.insert("steps".to_owned(), json!(steps));
        return Value::Object(file);
    };
    let mut file = kept.file;
    let known: BTreeSet<StepId> = kept.steps.iter().map(|(id, _)| *id).collect();
    let by_id: BTreeMap<StepId, &ExecutionStep> = steps.iter().map(|step| (step.id, step)).collect();
    let theirs = kept.steps.iter().filter_map(|(id, theirs)| match theirs {
        Some(theirs) => Some(theirs.clone()),
        None => by_id.get(id).map(|step| json!(step)),
    });
    let new: Vec<Value> = steps.iter().filter(|step| !known.contains(&step.id)).map(|step| json!(step)).collect();
    let todos_stay = todos.iter().eq(kept.todos.iter().map(|(_, item)| item));
    let worked = !new.is_empty() || now.get("iteration") != kept.taken.get("iteration");
    for (key, value) in &now {
        // Once the run has continued here, its current state is written, too.
        if kept.taken.get(key) != Some(value) || (worked && key == "agentState") {
            file.insert(key.clone(), value.clone());
        }
    }
    if worked || !todos_stay || now != kept.taken {
        file.insert("savedAt".to_owned(), Value::from(saved_at));
    }
    let todo = |item: &TodoItem| match kept.todos.iter().find(|(_, taken)| taken.id == item.id) {
        None => json!(item),
        Some((theirs, taken)) => merge_todo_json(theirs, into_object(json!(taken)), into_object(json!(item))),
    };
    file.insert("todos".to_owned(), todos.iter().map(todo).collect());
    file.insert("steps".to_owned(), theirs.chain(new).collect());
    Value::Object(file)
}

/// Returns a todo as it was in the file, with the changes made since the import.
fn merge_todo_json(theirs: &Value, taken: Map<String, Value>, now: Map<String, Value>) -> Value {
    let Value::Object(theirs) = theirs else { return Value::Object(now) };
    let mut one = theirs.clone();
    for key in taken.keys().filter(|key| !now.contains_key(*key)) {
        one.remove(key);
    }
    for (key, value) in now.into_iter().filter(|(key, value)| taken.get(key) != Some(value)) {
        let titled = key == "content" && !one.contains_key("content") && one.contains_key("title");
        one.insert(if titled { "title".to_owned() } else { key }, value);
    }
    Value::Object(one)
}

/// Why a file isn't a valid session or run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "`what` is the usual name of such a file")]
pub enum SessionFileError {
    /// It isn't JSON.
    #[error("it isn't valid JSON ({0})")]
    NotJson(#[source] serde_json::Error),
    /// It has an unsupported version.
    #[error("it is {what} of version {version}; version {SESSION_FILE_VERSION} is understood")]
    OtherVersion { what: &'static str, version: u64 },
    /// It has no version.
    #[error("it isn't an {what}: it has no version")]
    NoVersion { what: &'static str },
    /// It has more than `MAX_IMPORTED_ITEMS` items.
    #[error("it has more than {MAX_IMPORTED_ITEMS} {items}")]
    TooMany { items: &'static str },
    /// A message has an unknown role.
    #[error("a message has the role \u{201c}{0}\u{201d}")]
    UnknownRole(String),
    /// A field is missing or has the wrong type.
    #[error("it isn't a valid {what}: {why}")]
    Invalid { what: &'static str, why: String },
    /// Its preserved content can't be written as JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
}

fn parse_versioned_json(text: &str, what: &'static str) -> Result<Map<String, Value>, SessionFileError> {
    let value: Value = serde_json::from_str(text).map_err(SessionFileError::NotJson)?;
    match value.get("version").and_then(Value::as_u64) {
        Some(SESSION_FILE_VERSION) => Ok(into_object(value)),
        Some(version) => Err(SessionFileError::OtherVersion { what, version }),
        None => Err(SessionFileError::NoVersion { what }),
    }
}

/// Parses an integer. A decimal number is rounded.
fn parse_whole_number(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    value.as_i64().or_else(|| value.as_f64().filter(|number| number.abs() < 9e15).map(|number| number.round() as i64))
}

/// Parses `agent.json`. Messages that other programs wrote get ids from `id`.
///
/// # Errors
/// Returns an error if the text isn't JSON, has another version or too many messages, or if a field is missing or a
/// role is unknown.
pub fn parse_session_json(text: &str, mut id: impl FnMut() -> u64) -> Result<ImportedContext, SessionFileError> {
    let mut file = parse_versioned_json(text, "agent.json")?;
    let wrong = |why: &str| SessionFileError::Invalid { what: "agent.json", why: why.to_owned() };
    let Some(Value::Array(all)) = file.remove("messages") else { return Err(wrong("it has no list of messages")) };
    let saved_at = parse_whole_number(file.get("savedAt")).ok_or_else(|| wrong("savedAt isn't a time"))?;
    if !file.get("fileUri").is_some_and(Value::is_string) {
        return Err(wrong("fileUri is no text"));
    }
    if all.len() > MAX_IMPORTED_ITEMS {
        return Err(SessionFileError::TooMany { items: "messages" });
    }
    let mut messages: Vec<SessionMessage> = Vec::with_capacity(all.len());
    let mut used: BTreeSet<MessageId> = BTreeSet::new();
    let mut kept = PreservedContext { file, messages: Vec::with_capacity(all.len()) };
    for (at, one) in (0..).zip(all) {
        let mut more = into_object(one);
        let (role, content) = (more.remove("role"), more.remove("content"));
        let word = role.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let role: MessageRole =
            serde_json::from_value(role.unwrap_or_default()).map_err(|_| SessionFileError::UnknownRole(word))?;
        let Some(Value::String(content)) = content else { return Err(wrong("a message has no text as its content")) };
        let before = messages.last().map(|message| message.id);
        let own = more.get("tracebook").and_then(|own| serde_json::from_value::<SessionMessage>(own.clone()).ok());
        let own = own.filter(|own| own.role == role && own.content == content);
        let mut message =
            own.unwrap_or_else(|| SessionMessage::new(MessageId(0), role, content, saved_at.saturating_add(at)));
        while message.id.0 == 0 || used.contains(&message.id) {
            message.id = MessageId(id());
        }
        used.insert(message.id);
        if message.parents.first() != before.as_ref() {
            message.parents = before.into_iter().collect();
        }
        kept.messages.push((message.id, more));
        messages.push(message);
    }
    let imported = serde_json::to_string(&kept)?;
    Ok(ImportedContext { messages, imported })
}

/// Parses a todo. `names` are the ids in use, to which the todo's id is added.
fn parse_todo(theirs: &Value, number: usize, names: &mut BTreeSet<String>) -> Result<TodoItem, &'static str> {
    let Value::Object(theirs) = theirs else { return Err("a todo is no object") };
    let text = |key: &str| theirs.get(key).and_then(Value::as_str);
    let mut id = match theirs.get("id") {
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => format!("{number}"),
    };
    while !names.insert(id.clone()) {
        id.push('x');
    }
    let content = text("content").or(text("title")).ok_or("a todo has neither content nor title")?;
    let status = text("status").unwrap_or("pending").to_lowercase().replace(['-', ' '], "_");
    let status = match status.as_str() {
        "done" | "complete" | "finished" => "completed",
        "doing" | "inprogress" | "running" | "active" => "in_progress",
        "canceled" | "skipped" => "cancelled",
        other => other,
    };
    let status = serde_json::from_value(Value::from(status)).unwrap_or_default();
    let named = text("priority").map(|word| TODO_PRIORITY_NAMES.iter().position(|known| *known == word).unwrap_or(2));
    let given =
        parse_whole_number(theirs.get("priority")).map(|number| usize::try_from(number.clamp(0, 5)).unwrap_or(2));
    let priority = u8::try_from(named.or(given).unwrap_or(2)).unwrap_or(2);
    let word = |key: &str| text(key).map(str::to_owned);
    Ok(TodoItem { id, content: content.to_owned(), status, priority, due: word("due"), repeat: word("repeat") })
}

fn parse_todos(list: &[Value]) -> Result<Vec<TodoItem>, &'static str> {
    let mut names = BTreeSet::new();
    (1..).zip(list).map(|(number, theirs)| parse_todo(theirs, number, &mut names)).collect()
}

/// Parses `execution-state.json`. Steps without an id of ours get one from `id`.
///
/// # Errors
/// Returns an error if the text isn't JSON, has another version or too many items, or if a field is missing or has the
/// wrong type.
pub fn parse_run_json(text: &str, mut id: impl FnMut() -> u64) -> Result<ImportedRun, SessionFileError> {
    let mut file = parse_versioned_json(text, "execution-state.json")?;
    let wrong = |why: &str| SessionFileError::Invalid { what: "execution-state.json", why: why.to_owned() };
    let Some(Value::Array(all_todos)) = file.remove("todos") else { return Err(wrong("it has no list of todos")) };
    let Some(Value::Array(all_steps)) = file.remove("steps") else { return Err(wrong("it has no list of steps")) };
    if all_steps.len() > MAX_IMPORTED_ITEMS || all_todos.len() > MAX_IMPORTED_ITEMS {
        return Err(SessionFileError::TooMany { items: "steps or todos" });
    }
    let taken_todos = parse_todos(&all_todos).map_err(wrong)?;
    // New ids are ascending, so that steps of the same millisecond keep their order.
    let mut new: Vec<u64> = all_steps.iter().map(|_| id().max(1)).collect();
    new.sort_unstable();
    let mut used: BTreeSet<StepId> = BTreeSet::new();
    let mut kept_steps = Vec::with_capacity(all_steps.len());
    let mut steps = Vec::with_capacity(all_steps.len());
    for (theirs, new) in all_steps.into_iter().zip(new) {
        let Value::Object(mut step) = theirs.clone() else { return Err(wrong("a step is no object")) };
        let own = step.get("id").and_then(Value::as_str).and_then(|id| id.parse::<StepId>().ok());
        let mut id = own.filter(|id| !used.contains(id)).unwrap_or(StepId(new));
        if Some(id) != own {
            step.remove("parents"); // they name steps of the other program
            while used.contains(&id) {
                id = StepId(id.0.wrapping_add(1));
            }
        }
        used.insert(id);
        step.insert("id".to_owned(), Value::String(id.to_string()));
        for key in ["timestamp", "duration"] {
            if let Some(number) = parse_whole_number(step.get(key)) {
                step.insert(key.to_owned(), Value::from(number));
            }
        }
        if step.get("duration").and_then(Value::as_i64).is_some_and(|took| took < 0) {
            step.remove("duration");
        }
        if let Some(Value::Array(list)) = step.get("todos") {
            let read = parse_todos(list).map_err(wrong)?;
            step.insert("todos".to_owned(), json!(read));
        }
        if step.get("params").is_some_and(Value::is_null) {
            step.insert("params".to_owned(), Value::Object(Map::new()));
        }
        let step: ExecutionStep =
            serde_json::from_value(Value::Object(step)).map_err(|error| wrong(&error.to_string()))?;
        let same = json!(step) == theirs;
        kept_steps.push((id, (!same).then_some(theirs)));
        steps.push(step);
    }
    let number = |key: &str| parse_whole_number(file.get(key)).ok_or_else(|| wrong(&format!("{key} is no number")));
    let text = |key: &str| {
        file.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| wrong(&format!("{key} is no text")))
    };
    let agent_state: AgentState = serde_json::from_value(file.get("agentState").cloned().unwrap_or_default())
        .map_err(|_| wrong("agentState is neither idle, thinking nor executing"))?;
    let iteration = u64::try_from(number("iteration")?).map_err(|_| wrong("iteration is below 0"))?;
    let (prompt, start_time) = (text("prompt")?, number("startTime")?);
    // An imported run isn't running here, whatever its file says.
    let taken = run_header_json(&prompt, start_time, iteration, AgentState::Idle);
    let (saved_at, file_uri) = (number("savedAt")?, text("fileUri")?);
    let kept = PreservedRun {
        file,
        taken,
        steps: kept_steps,
        todos: all_todos.into_iter().zip(taken_todos.iter().cloned()).collect(),
    };
    let imported = serde_json::to_value(&kept)?;
    Ok(ImportedRun {
        saved_at,
        file_uri,
        prompt,
        start_time,
        iteration,
        agent_state,
        todos: taken_todos,
        steps,
        imported: Some(Box::new(imported)),
    })
}

/// Arguments that calls ran with where they aren't those that the agent asked for, by the call's id.
pub type ExecutedArguments<'a> = BTreeMap<&'a str, &'a Map<String, Value>>;

/// Returns the arguments that were changed before calls ran, from the steps of the runs.
pub fn executed_arguments<'a>(steps: &[&'a ExecutionStep]) -> ExecutedArguments<'a> {
    let of_step = |step: &'a ExecutionStep| match &step.kind {
        StepKind::ToolResult { tool_call_id, .. } => {
            Some((tool_call_id.as_str(), step.tool.as_ref()?.arguments.as_ref()?))
        }
        StepKind::ToolCall { .. }
        | StepKind::Thinking { .. }
        | StepKind::Todo { .. }
        | StepKind::FinalAnswer { .. }
        | StepKind::Error { .. } => None,
    };
    steps.iter().copied().filter_map(of_step).collect()
}

/// Formats a session's branch as Markdown, with the errors in the steps of its runs.
pub fn session_to_markdown(title: &str, branch: &[&SessionMessage], steps: &[&ExecutionStep]) -> String {
    let mut text = format!("# {title}\n");
    let executed = executed_arguments(steps);
    for message in branch {
        push_message_markdown(&mut text, message, &executed);
    }
    let errors = steps.iter().filter_map(|step| match &step.kind {
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

/// Appends a message as Markdown. What the program added is a quotation, apart from what was said.
pub(crate) fn push_message_markdown(text: &mut String, message: &SessionMessage, executed: &ExecutedArguments<'_>) {
    if message.content.is_empty() && message.tool_calls.is_empty() {
        return;
    }
    let who = match message.role {
        MessageRole::User => "You",
        MessageRole::Assistant => "Assistant",
        MessageRole::System => "",
        MessageRole::Tool => message.tool_name.as_deref().unwrap_or("Tool"),
    };
    match message.role {
        MessageRole::System => {
            text.push_str("\n> *Added by Tracebook; nobody said this:*\n>\n");
            for line in message.content.trim().lines() {
                text.push_str(format!("> {line}").trim_end());
                text.push('\n');
            }
        }
        MessageRole::Tool => text.push_str(&format!("\n## {who}\n\n{}", code_block(&message.content))),
        MessageRole::User | MessageRole::Assistant => {
            text.push_str(&format!("\n## {who}\n\n{}\n", message.content.trim()));
        }
    }
    for call in &message.tool_calls {
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        text.push_str(&format!("\nCalls **{}**:\n\n{}", call.name, code_block(&arguments)));
        if let Some(used) = executed.get(call.id.as_str()) {
            let used = serde_json::to_string_pretty(used).unwrap_or_default();
            text.push_str(&format!("\nThe call was changed before it ran, to:\n\n{}", code_block(&used)));
        }
    }
    if let Some(why) = &message.partial {
        text.push_str(&format!("\n*Not whole: {why}*\n"));
    }
}

/// Formats a text as a code block, with a fence longer than any run of backticks in it.
fn code_block(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}\n{}\n{ticks}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use store::TodoStatus;

    /// Returns a generator of ascending ids.
    fn ids() -> impl FnMut() -> u64 {
        let mut next = 0;
        move || {
            next += 1;
            next
        }
    }

    /// Imports a conversation and exports it without a change.
    fn through_context(theirs: &Value) -> Result<Value, String> {
        let read = parse_session_json(&theirs.to_string(), ids()).map_err(|why| why.to_string())?;
        let branch: Vec<&SessionMessage> = read.messages.iter().collect();
        Ok(session_to_json(Some(&read.imported), &branch, "elsewhere", 99))
    }

    fn written(read: &ImportedRun, state: AgentState) -> Value {
        let now = run_header_json(&read.prompt, read.start_time, read.iteration, state);
        build_run_json(read.imported.as_deref(), now, (&read.todos, &read.steps), "elsewhere", 99)
    }

    fn foreign() -> Value {
        json!({"version": 1, "savedAt": 5, "fileUri": "file:///a.md", "prompt": "do", "startTime": 3,
            "iteration": 2, "agentState": "executing", "model": {"name": "x"},
            "todos": [{"id": "1", "title": "look", "status": "in_progress", "priority": "high", "tags": [1]},
                {"id": 7, "content": "write", "status": "done"}, {"id": "1", "content": "again"}],
            "steps": [
                {"id": "step-1", "timestamp": 1, "type": "thinking", "content": "hm", "isStreaming": false, "x": null},
                {"id": "step-2", "timestamp": 2.5, "duration": 9, "type": "tool_call", "toolCallId": "c",
                    "toolName": "ls", "params": {"a": 1}, "parents": ["step-1"]},
                {"id": "step-2", "timestamp": 3, "type": "tool_result", "toolCallId": "c", "success": true,
                    "result": [1]},
                {"id": "step-4", "timestamp": 3, "type": "todo", "todos": [{"title": "look", "priority": "low"}]},
                {"id": "step-5", "timestamp": 2, "type": "final_answer", "content": "done"},
                {"id": "step-6", "timestamp": 6, "type": "error", "message": "no", "recoverable": true}]})
    }

    #[test]
    fn files_of_other_programs_come_back_field_by_field() {
        let theirs = json!({"version": 1, "savedAt": 5, "fileUri": "file:///a.md", "more": [1.5], "messages": [
            {"role": "user", "content": "hi", "id": "m1"},
            {"role": "assistant", "content": "hello", "toolCalls": []}]});
        assert_eq!(through_context(&theirs), Ok(theirs.clone()));
        let read = parse_session_json(&theirs.to_string(), ids()).expect("read");
        assert_eq!(read.messages[1].parents, [read.messages[0].id]);
        // A later message is appended. Otherwise only `savedAt` changes.
        let more = SessionMessage::new(MessageId(9), MessageRole::User, "and?", 7);
        let branch: Vec<&SessionMessage> = read.messages.iter().chain([&more]).collect();
        let later = session_to_json(Some(&read.imported), &branch, "elsewhere", 99);
        assert_eq!(later["messages"][0], theirs["messages"][0]);
        assert_eq!(
            (&later["savedAt"], &later["fileUri"], &later["more"]),
            (&json!(99), &theirs["fileUri"], &json!([1.5]))
        );
        assert_eq!(later["messages"][2]["content"], "and?");

        let theirs = foreign();
        let read = parse_run_json(&theirs.to_string(), ids()).expect("read");
        assert_eq!(written(&read, AgentState::Idle), theirs);
        assert_eq!(
            (read.agent_state, read.todos[0].priority, read.todos[1].status),
            (AgentState::Executing, 4, TodoStatus::Completed)
        );
        let names: BTreeSet<&str> = read.todos.iter().map(|todo| todo.id.as_str()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let own: BTreeSet<StepId> = read.steps.iter().map(|step| step.id).collect();
        assert_eq!(own.len(), 6);
    }

    #[test]
    fn what_is_changed_here_changes_only_that() {
        let theirs = foreign();
        let mut read = parse_run_json(&theirs.to_string(), ids()).expect("read");
        read.todos[0].status = TodoStatus::Completed;
        read.todos[1].content = "write it".to_owned();
        let now = written(&read, AgentState::Idle);
        let mut wanted = theirs.clone();
        wanted["todos"][0]["status"] = json!("completed");
        wanted["todos"][1]["content"] = json!("write it");
        wanted["savedAt"] = json!(99);
        assert_eq!(now, wanted);
        // After the run continued, the state is ours, and the new step follows those of the file.
        let mut step = read.steps[0].clone();
        step.id = StepId(1_000);
        read.steps.push(step.clone());
        let now = written(&read, AgentState::Idle);
        wanted["agentState"] = json!("idle");
        wanted["steps"].as_array_mut().expect("steps").push(json!(step));
        assert_eq!(now, wanted);
    }

    #[test]
    fn what_is_something_else_is_refused() {
        for (text, why) in [
            ("", "valid JSON"),
            ("[]", "no version"),
            ("{\"version\": 2}", "version 2"),
            ("{\"version\": 1, \"messages\": 5}", "valid agent.json"),
        ] {
            let said = parse_session_json(text, ids()).expect_err("refused").to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
        let odd = json!({"version": 1, "savedAt": 5, "fileUri": "", "messages": [{"role": "king", "content": ""}]});
        assert!(parse_session_json(&odd.to_string(), ids()).is_err_and(|why| why.to_string().contains("king")));
        let mut odd = foreign();
        odd["steps"][0]["type"] = json!("dream");
        assert!(parse_run_json(&odd.to_string(), ids()).is_err_and(|why| why.to_string().contains("dream")));
        odd["steps"] = json!(5);
        assert!(parse_run_json(&odd.to_string(), ids()).is_err_and(|why| why.to_string().contains("steps")));
        assert!(code_block("a ```` b").starts_with("`````\n"));
    }

    /// Generates any JSON that isn't deeply nested.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-zé]{0,5}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    /// Generates unknown fields, and some that have a meaning in other objects.
    fn more() -> impl Strategy<Value = Map<String, Value>> {
        proptest::collection::btree_map("[a-z]{1,4}|tracebook|toolCalls|parents|spent_|due_", any_json(), 0..4)
            .prop_map(|map| map.into_iter().collect())
    }

    fn with(base: Value, more: Map<String, Value>) -> Value {
        let mut all = more;
        all.extend(into_object(base));
        Value::Object(all)
    }

    fn any_todo() -> impl Strategy<Value = Value> {
        let priority = prop_oneof![Just(json!("high")), Just(json!("odd")), any::<i64>().prop_map(Value::from)];
        let id = prop_oneof!["[a-c]?".prop_map(Value::from), any::<u32>().prop_map(Value::from), Just(Value::Null)];
        (id, any::<bool>(), "\\PC{0,6}", priority, "pending|done|in-progress|odd", more()).prop_map(
            |(id, titled, text, priority, status, more)| {
                let key = if titled { "title" } else { "content" };
                with(json!({"id": id, key: text, "priority": priority, "status": status}), more)
            },
        )
    }

    fn any_step() -> impl Strategy<Value = Value> {
        let kind = prop_oneof![
            "\\PC{0,6}".prop_map(|text| json!({"type": "thinking", "content": text})),
            any_json().prop_map(
                |value| json!({"type": "tool_call", "toolCallId": "c", "toolName": "ls", "params": {"a": value}})
            ),
            (any_json(), any::<bool>()).prop_map(
                |(value, good)| json!({"type": "tool_result", "toolCallId": "c", "success": good, "result": value})
            ),
            proptest::collection::vec(any_todo(), 0..3).prop_map(|todos| json!({"type": "todo", "todos": todos})),
            Just(json!({"type": "final_answer", "content": "x"})),
            Just(json!({"type": "error", "message": "x", "recoverable": false, "code": 5})),
        ];
        let extra = proptest::collection::btree_map("[a-d]{2,3}", any_json(), 0..3);
        ("step-[0-9]|[0-9a-f]{16}", -9_000_000_000_i64..9_000_000_000, kind, extra).prop_map(
            |(id, timestamp, kind, extra)| {
                let base = with(json!({"id": id, "timestamp": timestamp}), into_object(kind));
                with(base, extra.into_iter().collect())
            },
        )
    }

    proptest! {
        #[test]
        fn any_conversation_comes_back_as_it_was(
            said in proptest::collection::vec(("user|assistant|system|tool", "\\PC{0,10}", more()), 0..6),
            file in more(),
            at in any::<i32>(),
        ) {
            let message = |(role, content, more)| with(json!({"role": role, "content": content}), more);
            let messages: Vec<Value> = said.into_iter().map(message).collect();
            let theirs = with(json!({"version": 1, "savedAt": at, "fileUri": "file:///x", "messages": messages}), file);
            prop_assert_eq!(through_context(&theirs), Ok(theirs));
        }

        #[test]
        fn any_run_comes_back_as_it_was(
            steps in proptest::collection::vec(any_step(), 0..6), todos in proptest::collection::vec(any_todo(), 0..4),
            file in more(), state in "idle|thinking|executing"
        ) {
            let theirs = with(json!({"version": 1, "savedAt": 5, "fileUri": "f", "prompt": "do", "startTime": 3,
                "iteration": 2, "agentState": state, "todos": todos, "steps": steps}), file);
            let read = parse_run_json(&theirs.to_string(), ids());
            let read = read.map_err(|why| TestCaseError::fail(why.to_string()))?;
            prop_assert_eq!(written(&read, AgentState::Idle), theirs);
        }
    }
}
