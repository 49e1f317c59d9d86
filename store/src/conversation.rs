//! Messages, tool calls and run steps, in the terms of `llmbox.md` (shared/reference). The JSON of these types follows
//! that contract: `camelCase` names, times in milliseconds since 1970.

use crate::id::{DocId, ExecutionId, MessageId, StepId};
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
    /// Id of the call, given by the model and unique in its run.
    pub id: String,
    /// The tool's name, as the model gave it.
    pub name: String,
    /// Arguments of the call.
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
    /// When the message was created, in milliseconds since 1970.
    pub timestamp: i64,
    /// How long the message took to arrive, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// The message that this one answers, followed by the ends of branches that it merges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<MessageId>,
    /// Tool calls that the model requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For a tool's message: the id of the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// For a tool's message: the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// For a tool's message: why the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The full content, if `content` holds only its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobRef>,
    /// The run that the message belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<DocId>,
    /// Why the message is incomplete: the answer was cut off or canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// For a summary: the messages that it replaces, oldest first. They stay in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary_of: Vec<MessageId>,
}

impl SessionMessage {
    /// Creates a message with this content and no optional fields.
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

/// A todo of a run. In a note it is written as a task (`text::task`), and a task has the same fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// Id of the todo, unique in its run.
    pub id: String,
    /// The text of the todo, one line.
    pub content: String,
    /// Progress of the todo.
    #[serde(default)]
    pub status: TodoStatus,
    /// Priority from 0 (lowest) to 5 (highest). The default is 2, as for tasks.
    #[serde(default = "normal")]
    pub priority: u8,
    /// Due date, such as `2026-11-22`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Recurrence rule, such as `every week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
}

fn normal() -> u8 {
    2
}

/// Maximum number of files in a result, since steps are kept and synced.
pub const MAX_RESULT_FILES: usize = 100;

/// The kind of file that a path names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolFileType {
    /// A file.
    #[default]
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// What is known of a file that a tool has read, written or listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFileInfo {
    /// Path in its volume.
    pub path: String,
    /// Whether it's a file, a folder or a link.
    #[serde(rename = "type")]
    pub file_type: ToolFileType,
    /// Size in bytes.
    pub size: u64,
    /// When it was created, in milliseconds since 1970; `None` if the file system doesn't know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<i64>,
    /// When it was last changed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// Whether the file or its volume can't be changed.
    pub read_only: bool,
}

impl ToolFileInfo {
    /// Returns what the path and the size of a file say.
    pub fn new(path: &str, size: u64) -> ToolFileInfo {
        ToolFileInfo { path: path.to_owned(), size, ..ToolFileInfo::default() }
    }
}

/// Kind and content of a step: the discriminated union of `llmbox.md`, plus what else a run must store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StepKind {
    /// Reasoning of the model before its answer.
    Thinking {
        /// The model's reasoning or intermediate text.
        content: String,
        /// Whether it's still being streamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_streaming: Option<bool>,
    },
    /// A call of a tool.
    ToolCall {
        /// Id of the call; its result has the same id.
        tool_call_id: String,
        /// Name of the tool that's called.
        tool_name: String,
        /// Arguments of the call.
        params: Map<String, Value>,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call that this result belongs to.
        tool_call_id: String,
        /// Whether the call succeeded.
        success: bool,
        /// The tool's result as JSON; `None` if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The full result, if `result` holds only its beginning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<BlobRef>,
        /// Pictures and files of the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attached: Vec<BlobRef>,
        /// What is known of the files that the call read, wrote or listed: at most [`MAX_RESULT_FILES`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<ToolFileInfo>,
    },
    /// A snapshot of the todo list.
    Todo {
        /// The complete list after the change.
        todos: Vec<TodoItem>,
    },
    /// The final answer of a run.
    FinalAnswer {
        /// The text of the answer, Markdown.
        content: String,
    },
    /// An error that stopped a step or the run.
    Error {
        /// What happened and what can be done.
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

/// Tokens and cost of a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallUsage {
    /// Number of input tokens.
    pub input_tokens: u64,
    /// Number of output tokens.
    pub output_tokens: u64,
    /// Cost in US dollars. `None` if the price is unknown; 0 for models on this machine.
    pub cost: Option<f64>,
}

/// One step of a run: a node of its execution graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStep {
    /// Unique id of the step.
    pub id: StepId,
    /// When the step began, in milliseconds since 1970.
    pub timestamp: i64,
    /// How long the step took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// The steps that this step follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<StepId>,
    /// Kind and content of the step.
    #[serde(flatten)]
    pub kind: StepKind,
    /// For a thinking step: tokens and cost of the model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<CallUsage>,
    /// For a thinking step: the model as `provider/model`, and why it was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// For a tool's step: which tool it is about.
    #[serde(default, rename = "usedTool", skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<StepTool>>,
}

/// The tool that a step is about: on a call, as it was requested; on a result, as it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTool {
    /// Id of the tool: of a user's tool its own, otherwise `system:NAME` or `mcp:SERVER/NAME`.
    pub id: String,
    /// Version of the tool; empty if it has none, as tools of servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Hash of the tool's definition, including its code.
    pub hash: String,
    /// On a result: the arguments that it ran with, if they aren't those of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Map<String, Value>>,
    /// On a result: the execution of the cell that it ran. If the kernel saves states, one has this execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
}
