//! Requests of MCP servers for a model's answer (`sampling/createMessage`): limits, what the user sees, what is sent.
//! The user decides about the arguments of a call of [`BuiltInTool::McpSampling`], and the request to the model is made
//! of nothing else.

use crate::model_call::{ModelEndpoint, ModelStopReason};
use crate::model_context::{estimate_message_tokens, estimate_tokens};
use crate::secrets::InstallationKeys;
use crate::tool_catalog::BuiltInTool;
use crate::tool_spec::{ToolPermissions, ToolRisk, ToolSource, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{ExecutionStep, MessageId, MessageRole, SessionMessage};

/// Maximum number of requests in a run, and in one tool call of a server.
pub const MAX_SAMPLING_REQUESTS: usize = 10;
/// Maximum size of all texts of a request together in bytes, and of an answer.
pub const MAX_SAMPLING_BYTES: usize = 64 * 1024;
/// Maximum length of an answer in tokens; a larger limit of a request counts as this one.
pub const MAX_SAMPLED_TOKENS: u32 = 8_192;
/// Maximum number of messages of a request.
const MAX_SAMPLING_MESSAGES: usize = 100;
/// Maximum number of texts that end an answer, and their maximum length in bytes.
const MAX_STOP_TEXTS: usize = 16;
const MAX_STOP_TEXT_BYTES: usize = 200;
/// Maximum temperature.
const MAX_TEMPERATURE: f64 = 2.0;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplingRole {
    /// The user, in whose place the server speaks.
    User,
    /// The model.
    Assistant,
}

/// A message of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingMessage {
    /// The author of the message.
    pub role: SamplingRole,
    /// The message's text.
    pub text: String,
}

/// What a server wants a model to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingRequest {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<SamplingMessage>,
    /// Maximum number of tokens of the answer.
    pub max_tokens: u32,
    /// Sampling temperature; `None` uses the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Texts before which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
}

/// A request with the server and the model: the arguments of the call that the user decides about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingCall {
    /// Name of the server in the configuration.
    pub server: String,
    /// The model that answers, as `PROVIDER/MODEL`.
    pub model: String,
    /// The request.
    #[serde(flatten)]
    pub request: SamplingRequest,
}

/// Why a model's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingStop {
    /// It's complete.
    EndTurn,
    /// It reached its limit.
    MaxTokens,
    /// One of the texts that end it came.
    StopText,
}

/// A model's answer for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledMessage {
    /// The text.
    pub text: String,
    /// The model's name.
    pub model: String,
    /// Why the answer ended.
    pub stop: SamplingStop,
}

/// Why a server gets no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SamplingRefusal {
    /// The user, or a rule of the user, has denied it.
    Rejected,
    /// Something else, as a sentence for the server.
    Refused(String),
}

/// What a server gets: an answer or a refusal.
pub type SamplingAnswer = Result<SampledMessage, SamplingRefusal>;

/// Why a request isn't shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// Nothing is asked.
    #[error("it has no message with a text")]
    Empty,
    /// It has too many messages.
    #[error("it has more than {MAX_SAMPLING_MESSAGES} messages")]
    TooManyMessages,
    /// Its texts are too long.
    #[error("its texts have more than {} kB", MAX_SAMPLING_BYTES / 1024)]
    TooLong,
    /// It holds something else than text.
    #[error("only text can be sent to a model, and it holds {0}")]
    NotText(&'static str),
    /// It offers tools to the model.
    #[error("the model can't be given tools")]
    Tools,
    /// It allows no answer.
    #[error("an answer has at least one token")]
    NoTokens,
    /// Its temperature is out of range.
    #[error("the temperature is from 0 to {MAX_TEMPERATURE}")]
    Temperature,
    /// It has too many or too long texts that end an answer.
    #[error("at most {MAX_STOP_TEXTS} texts end an answer, each of 1 to {MAX_STOP_TEXT_BYTES} bytes")]
    StopTexts,
    /// Arguments that don't make a request.
    #[error("it can't be read: {0}")]
    Arguments(String),
}

impl SamplingRequest {
    /// Checks the limits, and lowers the limit of tokens to what is allowed.
    ///
    /// # Errors
    /// Returns the first limit that the request exceeds.
    pub fn bounded(mut self) -> Result<SamplingRequest, SamplingError> {
        if self.messages.len() > MAX_SAMPLING_MESSAGES {
            return Err(SamplingError::TooManyMessages);
        }
        let system = self.system.as_ref().map_or(0, String::len);
        if self.messages.iter().fold(system, |sum, message| sum + message.text.len()) > MAX_SAMPLING_BYTES {
            return Err(SamplingError::TooLong);
        }
        if self.messages.iter().all(|message| message.text.trim().is_empty()) {
            return Err(SamplingError::Empty);
        }
        if self.max_tokens == 0 {
            return Err(SamplingError::NoTokens);
        }
        if self.temperature.is_some_and(|temperature| !(0.0..=MAX_TEMPERATURE).contains(&temperature)) {
            return Err(SamplingError::Temperature);
        }
        let is_long = |text: &String| text.is_empty() || text.len() > MAX_STOP_TEXT_BYTES;
        if self.stop.len() > MAX_STOP_TEXTS || self.stop.iter().any(is_long) {
            return Err(SamplingError::StopTexts);
        }
        self.max_tokens = self.max_tokens.min(MAX_SAMPLED_TOKENS);
        Ok(self)
    }

    /// Masks secrets, before the user sees the request.
    #[must_use]
    pub fn masked(mut self, own: &InstallationKeys) -> SamplingRequest {
        let texts = self.messages.iter_mut().map(|message| &mut message.text);
        texts.chain(&mut self.system).chain(&mut self.stop).for_each(|text| own.mask_in_place(text));
        self
    }

    /// Returns the messages as a model gets them.
    pub fn messages(&self, now: i64) -> Vec<SessionMessage> {
        let role = |role| match role {
            SamplingRole::User => MessageRole::User,
            SamplingRole::Assistant => MessageRole::Assistant,
        };
        let message = |message: &SamplingMessage| {
            SessionMessage::new(MessageId(0), role(message.role), message.text.clone(), now)
        };
        self.messages.iter().map(message).collect()
    }

    /// Estimates the tokens of the request.
    pub fn tokens(&self) -> u64 {
        let system = self.system.as_deref().map_or(0, estimate_tokens);
        self.messages(0).iter().fold(system, |sum, message| sum + estimate_message_tokens(message))
    }

    /// Makes the answer of what a model said, within the limits.
    pub fn sampled(&self, mut text: String, end: ModelStopReason, model: String) -> SampledMessage {
        let mut stop = match end {
            ModelStopReason::Done => SamplingStop::EndTurn,
            ModelStopReason::Length => SamplingStop::MaxTokens,
        };
        if text.len() > MAX_SAMPLING_BYTES {
            text.truncate(text.floor_char_boundary(MAX_SAMPLING_BYTES));
            stop = SamplingStop::MaxTokens;
        }
        if let Some(at) = self.stop.iter().filter_map(|stop| text.find(stop.as_str())).min() {
            text.truncate(at);
            stop = SamplingStop::StopText;
        }
        SampledMessage { text, model, stop }
    }
}

impl SamplingCall {
    /// Reads the call from arguments that the user has allowed, and perhaps changed.
    ///
    /// # Errors
    /// Returns an error if they make no request, or one that exceeds a limit.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<SamplingCall, SamplingError> {
        let call: SamplingCall = serde_json::from_value(Value::Object(arguments.clone()))
            .map_err(|error| SamplingError::Arguments(error.to_string()))?;
        Ok(SamplingCall { request: call.request.bounded()?, ..call })
    }

    /// Returns the arguments, which say all that is sent.
    pub fn arguments(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) | Err(_) => Map::new(), // a struct with names for keys is always an object
        }
    }

    /// Returns the name of the provider that answers.
    pub fn provider(&self) -> String {
        self.model.split('/').next().unwrap_or_default().to_owned()
    }
}

/// Returns the name under which a model is shown to the user.
pub fn model_name(endpoint: &ModelEndpoint) -> String {
    format!("{}/{}", endpoint.provider, endpoint.model)
}

/// Returns the tool that stands for a request of a server, for policy and records.
pub fn sampling_tool() -> ToolSpec {
    let text = || json!({"type": "string"});
    let message = json!({"type": "object", "required": ["role", "text"], "additionalProperties": false,
        "properties": {"role": {"enum": ["user", "assistant"]}, "text": text()}});
    let properties = json!({
        "server": text(),
        "model": text(),
        "system": text(),
        "messages": {"type": "array", "items": message, "minItems": 1, "maxItems": MAX_SAMPLING_MESSAGES},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": MAX_SAMPLED_TOKENS},
        "temperature": {"type": "number", "minimum": 0, "maximum": MAX_TEMPERATURE},
        "stop": {"type": "array", "items": text(), "maxItems": MAX_STOP_TEXTS},
    });
    ToolSpec {
        name: BuiltInTool::McpSampling.to_string(),
        description: "What a tool server wants a model to answer.".to_owned(),
        parameters: json!({"type": "object", "properties": properties, "additionalProperties": false,
            "required": ["server", "model", "messages", "max_tokens"]}),
        risk: ToolRisk::High,
        permissions: ToolPermissions::default(),
        idempotent: false,
        source: ToolSource::BuiltIn,
    }
}

/// Returns the provider of the last model that answered in a run.
pub fn last_provider(steps: &[ExecutionStep]) -> Option<&str> {
    let answered = steps.iter().rev().find(|step| step.spent.is_some() && step.route.is_some())?;
    answered.route.as_deref()?.split('/').next()
}

/// Says what an answer may cost, as a part of a sentence.
pub fn describe_cost(cost: Option<f64>) -> String {
    match cost {
        Some(cost) if cost > 0.0 => format!("the answer costs at most ${cost:.4}"),
        Some(_) => "the answer costs nothing".to_owned(),
        None => "the price of the answer is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(texts: &[&str]) -> SamplingRequest {
        let message = |text: &&str| SamplingMessage { role: SamplingRole::User, text: (*text).to_owned() };
        let messages = texts.iter().map(message).collect();
        SamplingRequest { system: None, messages, max_tokens: 100, temperature: None, stop: Vec::new() }
    }

    #[test]
    fn a_request_has_limits() {
        let fine = request(&["Which?"]);
        let with = |change: &dyn Fn(&mut SamplingRequest)| {
            let mut other = fine.clone();
            change(&mut other);
            other.bounded()
        };
        assert_eq!(fine.clone().bounded(), Ok(fine.clone()));
        assert_eq!(with(&|one| one.max_tokens = u32::MAX).map(|one| one.max_tokens), Ok(MAX_SAMPLED_TOKENS));
        assert_eq!(with(&|one| one.max_tokens = 0), Err(SamplingError::NoTokens));
        assert_eq!(with(&|one| one.messages.clear()), Err(SamplingError::Empty));
        assert_eq!(with(&|one| one.messages[0].text = " \n".to_owned()), Err(SamplingError::Empty));
        assert_eq!(with(&|one| one.system = Some("x".repeat(MAX_SAMPLING_BYTES))), Err(SamplingError::TooLong));
        assert!(
            with(&|one| one.system = Some("x".repeat(MAX_SAMPLING_BYTES - 6))).is_ok(),
            "6 bytes are in the message"
        );
        let many = |one: &mut SamplingRequest| one.messages = vec![one.messages[0].clone(); MAX_SAMPLING_MESSAGES + 1];
        assert_eq!(with(&many), Err(SamplingError::TooManyMessages));
        for wrong in [-0.1, 2.1, f64::NAN, f64::INFINITY] {
            assert_eq!(with(&|one| one.temperature = Some(wrong)), Err(SamplingError::Temperature), "{wrong}");
        }
        for wrong in [vec![String::new()], vec!["x".repeat(201)], vec!["x".to_owned(); 17]] {
            assert_eq!(with(&|one| one.stop = wrong.clone()), Err(SamplingError::StopTexts), "{wrong:?}");
        }
    }

    #[test]
    fn arguments_say_all_that_is_sent() {
        let request = SamplingRequest {
            system: Some("Be brief.".to_owned()),
            temperature: Some(0.5),
            stop: vec!["END".to_owned()],
            ..request(&["Which?", "Why?"])
        };
        let call = SamplingCall { server: "weather".to_owned(), model: "near/org/tiny".to_owned(), request };
        let arguments = call.arguments();
        let messages = json!([{"role": "user", "text": "Which?"}, {"role": "user", "text": "Why?"}]);
        let all = json!({"server": "weather", "model": "near/org/tiny", "system": "Be brief.", "messages": messages,
            "max_tokens": 100, "temperature": 0.5, "stop": ["END"]});
        assert_eq!(Value::Object(arguments.clone()), all);
        assert_eq!(SamplingCall::from_arguments(&arguments), Ok(call.clone()));
        assert_eq!(call.provider(), "near");
        let tool = sampling_tool();
        assert_eq!(crate::tool_call_parser::check_arguments(&tool, &arguments), Ok(()));
        for (key, wrong) in [
            ("messages", json!([])),
            ("messages", json!([{"role": "system", "text": "x"}])),
            ("max_tokens", json!(100_000)),
            ("tools", json!([])),
        ] {
            let mut arguments = arguments.clone();
            arguments.insert(key.to_owned(), wrong);
            assert!(crate::tool_call_parser::check_arguments(&tool, &arguments).is_err(), "{arguments:?}");
        }
        let mut edited = arguments;
        edited.insert("system".to_owned(), Value::from("x".repeat(MAX_SAMPLING_BYTES)));
        assert_eq!(SamplingCall::from_arguments(&edited), Err(SamplingError::TooLong));
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let own = InstallationKeys::new(["plain-looking-own-key".to_owned()]);
        let secret = "it is plain-looking-own-key";
        let request = SamplingRequest {
            system: Some(secret.to_owned()),
            stop: vec![secret.to_owned()],
            ..request(&[secret, "Which?"])
        };
        let masked = serde_json::to_string(&request.masked(&own)).expect("JSON");
        assert!(!masked.contains("plain-looking") && masked.contains("Which?"), "{masked}");
    }

    #[test]
    fn an_answer_ends_where_it_must() {
        let request = SamplingRequest { stop: vec!["END".to_owned(), "STOP".to_owned()], ..request(&["Which?"]) };
        let answer = |text: &str, end| request.sampled(text.to_owned(), end, "m".to_owned());
        let plain = answer("This.", ModelStopReason::Done);
        assert_eq!((plain.text.as_str(), plain.stop), ("This.", SamplingStop::EndTurn));
        assert_eq!(answer("This", ModelStopReason::Length).stop, SamplingStop::MaxTokens);
        let cut = answer("This STOP and END", ModelStopReason::Done);
        assert_eq!((cut.text.as_str(), cut.stop), ("This ", SamplingStop::StopText));
        let long = answer(&"ä".repeat(MAX_SAMPLING_BYTES), ModelStopReason::Done);
        assert_eq!((long.text.len(), long.stop), (MAX_SAMPLING_BYTES, SamplingStop::MaxTokens));
    }
}
