//! What is asked of a language model, and what comes back: the contract between the loop and `engine/host/providers`.

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
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Google,
    /// Ollama's own.
    Ollama,
}

/// Where a model is to be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelEndpoint {
    /// The provider's name in the configuration.
    pub provider: String,
    /// Its wire form.
    pub wire: WireProtocol,
    /// Its address, such as `http://localhost:11434`; `None`: the one that everybody uses.
    pub base_url: Option<String>,
    /// The model's name as the provider has it.
    pub model: String,
    /// The name under which its key is kept (never the key); `None`: it needs none.
    pub key: Option<String>,
    /// Whether it runs on this machine, and so costs nothing.
    pub local: bool,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Where.
    pub endpoint: ModelEndpoint,
    /// What the model is and is to do.
    pub system: String,
    /// What was said, oldest first. Tool results follow the calls that they answer.
    pub messages: Vec<SessionMessage>,
    /// Tools that it may ask for.
    pub tools: Vec<ToolSpec>,
    /// It is to stop after so many tokens.
    pub max_tokens: Option<u32>,
    /// From 0 (always the likeliest) to 2; `None`: the provider's default.
    pub temperature: Option<f64>,
}

/// A piece of an answer on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    /// Of the answer.
    Text(String),
    /// Of what the model thinks.
    Thinking(String),
    /// The call failed and is made again: what came so far is void.
    Retry {
        /// Why, and when: a sentence.
        why: String,
    },
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelStopReason {
    /// It has said what it had to say, or waits for its tools.
    Done,
    /// It came to the limit of tokens.
    Length,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelResponse {
    /// What it says.
    pub text: String,
    /// What it thought.
    pub thinking: String,
    /// Tools that it asks for, in its order.
    pub calls: Vec<ToolCall>,
    /// Calls whose arguments are no JSON object: name and text as they came.
    pub malformed: Vec<(String, String)>,
    /// Tokens and money.
    pub spent: CallUsage,
    /// Why it stopped.
    pub stop: ModelStopReason,
}

/// What kind of failure it was: what can be done about it depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// Nobody answers there.
    Unreachable,
    /// Too many requests (429), also after waiting.
    RateLimited,
    /// The provider's own trouble (5xx), also after trying again.
    Server,
    /// The key is missing or wrong (401, 403).
    Key,
    /// The provider refuses (another 4xx); to try it again is of no use.
    Refused,
    /// What came back cannot be read.
    Malformed,
    /// It broke off in the middle.
    Cut,
    /// The user cancelled.
    Cancelled,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// What kind.
    pub kind: ModelErrorKind,
    /// Host, cause, and what to do: a sentence for the user.
    pub why: String,
    /// What had come by then.
    pub partial: String,
}
