//! Requests to language models and their answers: the contract between the loop and `engine/host/providers`.

use crate::tool_spec::ToolSpec;
use serde::{Deserialize, Serialize};
use store::{CallUsage, DocId, SessionMessage, ToolCall};

/// Names one call of a model. A call that is made again (a retry after a crash) has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelCallId {
    /// The run that makes it.
    pub run: DocId,
    /// Rising inside the run.
    pub number: u64,
}

/// Which wire form a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireProtocol {
    /// OpenAI's chat completions: OpenRouter, llama.cpp, LM Studio, vLLM and many more.
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

/// Where a model is to be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelEndpoint {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The API that the endpoint speaks.
    pub wire: WireProtocol,
    /// Its address, such as `http://localhost:11434`; `None`: the one that everybody uses.
    pub base_url: Option<String>,
    /// The model's name at the provider.
    pub model: String,
    /// The name under which its key is kept (never the key); `None`: it needs none.
    pub key: Option<String>,
    /// Whether it runs on this machine, and so costs nothing.
    pub local: bool,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The endpoint to call.
    pub endpoint: ModelEndpoint,
    /// What the model is and is to do.
    pub system: String,
    /// What was said, oldest first. Tool results follow the calls that they answer.
    pub messages: Vec<SessionMessage>,
    /// Tools that it may ask for.
    pub tools: Vec<ToolSpec>,
    /// Maximum number of tokens of the answer.
    pub max_tokens: Option<u32>,
    /// From 0 (always the likeliest) to 2; `None`: the provider's default.
    pub temperature: Option<f64>,
}

/// A piece of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    /// A piece of the answer's text.
    Text(String),
    /// A piece of the model's reasoning.
    Thinking(String),
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
    /// The model's reasoning, as far as the provider sends it.
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

/// What kind of failure it was: what can be done about it depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No server answers at the address.
    Unreachable,
    /// Too many requests (429), also after waiting.
    RateLimited,
    /// The provider's own trouble (5xx), also after trying again.
    Server,
    /// The key is missing or wrong (401, 403).
    Key,
    /// The provider refuses (another 4xx); to try it again is of no use.
    Refused,
    /// The answer can't be parsed.
    Malformed,
    /// It broke off in the middle.
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
