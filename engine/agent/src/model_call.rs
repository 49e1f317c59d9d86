//! Requests to language models and their responses: the contract between the loop and `engine/host/providers`.

use crate::external_program::ExternalProgram;
use crate::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::{CallUsage, DocId, SessionMessage, ToolCall};

/// Id of one call of a model. A repeated call (a retry after a crash) has a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelCallId {
    /// The run that makes the call.
    pub run: DocId,
    /// Number of the call, ascending within the run.
    pub number: u64,
}

/// API protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireProtocol {
    /// OpenAI's Chat Completions API, used by OpenRouter, llama.cpp, LM Studio, vLLM and many more.
    OpenAi,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Google,
    /// Ollama's native API.
    Ollama,
}

/// A model at a provider, and how to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelEndpoint {
    /// The provider's name in the configuration.
    pub provider: String,
    /// API protocol of the endpoint.
    pub wire: WireProtocol,
    /// Base URL, such as `http://localhost:11434`; `None` for the provider's public address.
    pub base_url: Option<String>,
    /// The model's name at the provider.
    pub model: String,
    /// Name under which the API key is stored, never the key itself; `None` if no key is needed.
    pub key: Option<String>,
    /// Whether the model runs on this machine, and so costs nothing.
    pub local: bool,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The endpoint to call.
    pub endpoint: ModelEndpoint,
    /// System prompt: the model's role and task.
    pub system: String,
    /// Messages of the conversation, oldest first. Tool results follow the calls that they answer.
    pub messages: Vec<SessionMessage>,
    /// Tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature from 0 (always the likeliest token) to 2; `None` uses the provider's default.
    pub temperature: Option<f64>,
    /// Whether the model has to call a tool; `None` leaves it to the provider. It counts only if there are tools.
    pub tool_choice: Option<ToolCallChoice>,
    /// Time limits; `None` uses the defaults.
    pub limits: Option<ModelCallLimits>,
    /// The program that answers instead of a model, if one does.
    pub program: Option<ProgramCall>,
}

/// Whether a model has to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallChoice {
    /// The model decides.
    Auto,
    /// The first answer of a run calls a tool. For later ones the model decides, so that the run can end.
    Required,
    /// No answer calls a tool.
    None,
}

impl ToolCallChoice {
    /// Returns the choice for the next answer of a run that has had this many.
    pub fn after_answers(self, answers: u64) -> ToolCallChoice {
        match self {
            ToolCallChoice::Required if answers > 0 => ToolCallChoice::Auto,
            ToolCallChoice::Auto | ToolCallChoice::Required | ToolCallChoice::None => self,
        }
    }
}

/// A program that works as an agent, in the place of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCall {
    /// The agent's name.
    pub name: String,
    /// The program that works as an agent.
    pub program: ExternalProgram,
    /// Folder of the project that it works in.
    pub folder: PathBuf,
    /// The conversation.
    pub session: DocId,
    /// Whether the user trusts the project, so that the program may obey settings there.
    pub is_trusted: bool,
}

/// Time limits of a model call, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCallLimits {
    /// Time until the answer begins.
    pub first_byte: u64,
    /// Silence in the middle of the answer.
    pub silence: u64,
    /// The whole answer.
    pub whole: u64,
}

/// A piece of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
    /// A piece of a tool call. The call itself comes with the whole answer.
    ToolCall {
        /// Size of the piece in bytes.
        bytes: u64,
    },
    /// The call failed and is retried; pieces received so far don't count.
    Retry {
        /// The reason and the time of the retry, as a sentence.
        why: String,
    },
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStopReason {
    /// The answer is complete, or tools were called.
    Done,
    /// The answer reached the token limit.
    Length,
}

/// A complete answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelResponse {
    /// The text of the answer.
    pub text: String,
    /// The model's reasoning, if the provider sends it.
    pub thinking: String,
    /// The tool calls, in the model's order.
    pub calls: Vec<ToolCall>,
    /// Calls whose arguments aren't a JSON object: tool name and raw text.
    pub malformed: Vec<(String, String)>,
    /// Tokens used and their cost.
    pub spent: CallUsage,
    /// Why the model stopped.
    pub stop: ModelStopReason,
}

/// Category of a model error, which decides what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No server answers at the address.
    Unreachable,
    /// Too many requests (429), even after waiting.
    RateLimited,
    /// The provider has a problem (5xx), even after a retry.
    Server,
    /// The key is missing or wrong (401, 403).
    Key,
    /// The provider rejects the request (another 4xx), so a retry is useless.
    Refused,
    /// The answer can't be parsed.
    Malformed,
    /// The answer was cut off.
    Cut,
    /// The user canceled the call.
    Cancelled,
}

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// Category of the error; it decides about retries.
    pub kind: ModelErrorKind,
    /// Host, cause, and what to do: a sentence for the user.
    pub why: String,
    /// The part of the answer received before the error.
    pub partial: String,
}
