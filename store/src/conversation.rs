//! What people, models and tools say to each other: messages, tool calls and steps, in the terms of `llmbox.md`
//! (shared/reference). The JSON of these types is that contract's: `camelCase` names, times in milliseconds since 1970.

use crate::id::{DocId, MessageId, StepId};
use crate::outputs::BlobRef;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// Written by the user.
    User,
    /// Written by the language model.
    Assistant,
    /// Written by Tracebook itself, such as instructions.
    System,
    /// The result of a tool call.
    Tool,
}

impl MessageRole {
    /// Returns the name used in documents and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::System => "system",
            MessageRole::Tool => "tool",
        }
    }
}

/// A tool call requested by a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's name for it, unique in its run.
    pub id: String,
    /// The tool's name, as the model gave it.
    pub name: String,
    /// What the tool is given.
    pub arguments: Map<String, Value>,
}

/// One message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMessage {
    /// Unique id of the message.
    pub id: MessageId,
    /// The author's role.
    pub role: MessageRole,
    /// The text of the message, Markdown.
    pub content: String,
    /// When, milliseconds since 1970.
    pub timestamp: i64,
    /// How long it took to come, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// What it answers, first; then the ends of branches that it brings in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<MessageId>,
    /// What the model wants run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool: which call this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Of a tool: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Of a tool: why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The whole, where `content` holds only its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobRef>,
    /// The run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<DocId>,
    /// Why it is not whole: the answer was cut or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// For a summary: the messages that it replaces, oldest first. They stay in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary_of: Vec<MessageId>,
}

impl SessionMessage {
    /// A message that says `content` and nothing else.
    pub fn new(id: MessageId, role: MessageRole, content: impl Into<String>, timestamp: i64) -> SessionMessage {
        SessionMessage {
            id,
            role,
            content: content.into(),
            timestamp,
            duration: None,
            parents: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            error: None,
            whole: None,
            run: None,
            partial: None,
            summary_of: Vec::new(),
        }
    }
}

/// Status of a run's todo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    #[default]
    Pending,
    /// In progress.
    InProgress,
    /// Completed.
    Completed,
    /// Abandoned before it was completed.
    Cancelled,
}

/// Something that a run is to do. Written as a line of a note it is a task (`text::task`), and a task is one of
/// these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// Its name in the run.
    pub id: String,
    /// The text of the todo, one line.
    pub content: String,
    /// Its progress.
    #[serde(default)]
    pub status: TodoStatus,
    /// From 0, lowest, to 5, highest; 2 where nothing is said: as of a task.
    #[serde(default = "normal")]
    pub priority: u8,
    /// The day on which it is due, `2026-11-22`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// How it comes again, such as `every week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
}

fn normal() -> u8 {
    2
}

/// What a step is about: the discriminated union of `llmbox.md`, and what else a run must keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StepKind {
    /// Reasoning of the model before its answer.
    Thinking {
        /// What it thinks or says on the way.
        content: String,
        /// Whether it still comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_streaming: Option<bool>,
    },
    /// A tool was called.
    ToolCall {
        /// Id of the call; its result has the same id.
        tool_call_id: String,
        /// Name of the tool that's called.
        tool_name: String,
        /// Arguments of the call.
        params: Map<String, Value>,
    },
    /// A tool has answered.
    ToolResult {
        /// Id of the call that this result belongs to.
        tool_call_id: String,
        /// Whether it did what was asked.
        success: bool,
        /// The tool's result as JSON; `None` if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The whole result, where `result` holds only its beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<BlobRef>,
    },
    /// The todos as they stood.
    Todo {
        /// The whole list after the change.
        todos: Vec<TodoItem>,
    },
    /// The final answer of a run.
    FinalAnswer {
        /// The text of the answer, Markdown.
        content: String,
    },
    /// An error that stopped a step or the run.
    Error {
        /// What, and what can be done.
        message: String,
        /// Whether the run can continue.
        recoverable: bool,
    },
}

impl StepKind {
    /// Returns the name of the kind.
    pub fn as_str(&self) -> &'static str {
        match self {
            StepKind::Thinking { .. } => "thinking",
            StepKind::ToolCall { .. } => "tool_call",
            StepKind::ToolResult { .. } => "tool_result",
            StepKind::Todo { .. } => "todo",
            StepKind::FinalAnswer { .. } => "final_answer",
            StepKind::Error { .. } => "error",
        }
    }
}

/// What a model call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallUsage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// US dollars; `None`: the price is not known. 0 for what runs on this machine.
    pub cost: Option<f64>,
}

/// One step of a run: a node of its execution graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStep {
    /// Unique id of the step.
    pub id: StepId,
    /// When it began, milliseconds since 1970.
    pub timestamp: i64,
    /// How long it took, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// The steps that it follows from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<StepId>,
    /// Kind and content of the step.
    #[serde(flatten)]
    pub kind: StepKind,
    /// Of a thinking step: what the model call used, and which model, chosen why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<CallUsage>,
    /// Of a thinking step: `provider/model`, and why it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}
