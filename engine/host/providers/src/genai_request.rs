//! Converts a request for the `genai` crate: messages, tools, address.

use agent::model_call::{ModelEndpoint, ModelRequest, WireProtocol};
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};
use genai::resolver::AuthData;
use genai::{ModelIden, ServiceTarget};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use store::{MessageRole, SessionMessage};

/// Key for providers that need none.
const PLACEHOLDER_KEY: &str = "none";
/// Maximum length of a tool name or a call id; providers refuse longer ones.
const MAX_TOOL_NAME_BYTES: usize = 64;
/// Maximum number of calls whose signatures are cached.
const MAX_KEPT_SIGNATURES: usize = 1_024;

/// Signatures of Google models' tool calls, which must be sent back with the call. Kept while the program runs.
#[derive(Default)]
pub(crate) struct ThoughtSignatures(Mutex<VecDeque<(String, Vec<String>)>>);

impl ThoughtSignatures {
    pub(crate) fn remember(&self, call: &str, signatures: Vec<String>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((call.to_owned(), signatures));
        while kept.len() > MAX_KEPT_SIGNATURES {
            kept.pop_front();
        }
    }

    fn signatures_of(&self, call: &str) -> Option<Vec<String>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().find(|(id, _)| id == call).map(|(_, signatures)| signatures.clone())
    }
}

/// Reason why a provider's address can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BaseUrlError {
    #[error("“{given}” is no address ({source})")]
    Invalid { given: String, source: <reqwest::Url as std::str::FromStr>::Err },
    #[error("“{given}” is no address: it begins with http:// or https:// and names a host")]
    NotHttp { given: String },
}

/// Returns the address, key and model of a request.
///
/// # Errors
/// Returns an error if the address isn't valid.
pub(crate) fn service_target(endpoint: &ModelEndpoint, key: Option<&str>) -> Result<ServiceTarget, BaseUrlError> {
    let kind = match endpoint.wire {
        WireProtocol::OpenAi => AdapterKind::OpenAI,
        WireProtocol::Responses => AdapterKind::OpenAIResp,
        WireProtocol::Anthropic => AdapterKind::Anthropic,
        WireProtocol::Google => AdapterKind::Gemini,
        WireProtocol::Ollama => AdapterKind::Ollama,
    };
    Ok(ServiceTarget {
        endpoint: genai::resolver::Endpoint::from_owned(base_url(endpoint)?),
        auth: AuthData::from_single(key.unwrap_or(PLACEHOLDER_KEY)),
        model: ModelIden::new(kind, endpoint.model.as_str()),
    })
}

/// Returns the base URL that API paths are appended to, with a trailing `/`.
///
/// # Errors
/// Returns an error if the address isn't valid.
pub(crate) fn base_url(endpoint: &ModelEndpoint) -> Result<String, BaseUrlError> {
    let (own, version) = match endpoint.wire {
        WireProtocol::OpenAi | WireProtocol::Responses => ("https://api.openai.com/v1/", "v1/"),
        WireProtocol::Anthropic => ("https://api.anthropic.com/v1/", "v1/"),
        WireProtocol::Google => ("https://generativelanguage.googleapis.com/v1beta/", "v1beta/"),
        WireProtocol::Ollama => ("http://localhost:11434/", ""),
    };
    let Some(given) = &endpoint.base_url else { return Ok(own.to_owned()) };
    let url = reqwest::Url::parse(given).map_err(|source| BaseUrlError::Invalid { given: given.clone(), source })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(BaseUrlError::NotHttp { given: given.clone() });
    }
    let mut whole = url.to_string();
    if !whole.ends_with('/') {
        whole.push('/');
    }
    // A bare host means the usual path.
    if url.path() == "/" {
        whole.push_str(version);
    }
    Ok(whole)
}

/// Returns the host and port, as error messages show them.
pub(crate) fn host_label(endpoint: &ModelEndpoint) -> String {
    let url = base_url(endpoint).ok().and_then(|base| reqwest::Url::parse(&base).ok());
    let named = url.as_ref().and_then(|url| Some((url.host_str()?.to_owned(), url.port())));
    match named {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host,
        None => endpoint.provider.clone(),
    }
}

/// Builds the messages, each tool call followed by its result, as all providers require: the user speaks first, roles
/// alternate if possible, and no message is empty.
pub(crate) fn chat_request(request: &ModelRequest, signatures: &ThoughtSignatures) -> ChatRequest {
    let mut system = request.system.clone();
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut rest = request.messages.iter().peekable();
    // System messages before the first user message belong to the system prompt; many models accept them nowhere else.
    while let Some(message) = rest.next_if(|message| message.role == MessageRole::System) {
        system.push_str(if system.is_empty() { "" } else { "\n\n" });
        system.push_str(&message.content);
    }
    while let Some(message) = rest.next() {
        match message.role {
            MessageRole::User => push_user_text(&mut messages, &message.content),
            MessageRole::System => push_user_text(&mut messages, &format!("(From the program:) {}", message.content)),
            // A result without its call, for example after a compaction.
            MessageRole::Tool => push_user_text(&mut messages, &quoted_tool_result(message)),
            MessageRole::Assistant if message.tool_calls.is_empty() => {
                if !message.content.trim().is_empty() {
                    messages.push(ChatMessage::assistant(message.content.as_str()));
                }
            }
            MessageRole::Assistant => {
                let mut answers: Vec<&SessionMessage> = Vec::new();
                while let Some(answer) = rest.next_if(|next| next.role == MessageRole::Tool) {
                    answers.push(answer);
                }
                push_tool_turn(&mut messages, message, &answers, signatures, request.endpoint.wire);
            }
        }
    }
    if messages.first().is_none_or(|first| !matches!(first.role, genai::chat::ChatRole::User)) {
        messages.insert(0, ChatMessage::user("(What was said before is left out.)"));
    }
    let mut chat = ChatRequest::new(messages);
    if !system.trim().is_empty() {
        chat = chat.with_system(system);
    }
    if !request.tools.is_empty() {
        let tool = |spec: &agent::tool_spec::ToolSpec| {
            Tool::new(spec.name.as_str())
                .with_description(spec.description.as_str())
                .with_schema(spec.parameters.clone())
        };
        chat = chat.with_tools(request.tools.iter().map(tool).collect::<Vec<_>>());
    }
    chat
}

/// Appends a user message; directly consecutive ones are merged.
fn push_user_text(messages: &mut Vec<ChatMessage>, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if let Some(last) = messages.last_mut().filter(|last| matches!(last.role, genai::chat::ChatRole::User)) {
        let before = last.content.joined_texts().unwrap_or_default();
        last.content = MessageContent::from_text(format!("{before}\n\n{text}"));
        return;
    }
    messages.push(ChatMessage::user(text));
}

/// Appends the model's tool calls and their results.
fn push_tool_turn(
    messages: &mut Vec<ChatMessage>,
    asked: &SessionMessage,
    answers: &[&SessionMessage],
    signatures: &ThoughtSignatures,
    wire: WireProtocol,
) {
    let mut parts = Vec::new();
    if !asked.content.trim().is_empty() {
        parts.push(ContentPart::from_text(asked.content.as_str()));
    }
    let mut results = Vec::new();
    for call in &asked.tool_calls {
        parts.push(ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: sanitize_tool_name(&call.name),
            fn_arguments: Value::Object(call.arguments.clone()),
            thought_signatures: signatures.signatures_of(&call.id),
        }));
        let answer = answers.iter().find(|answer| answer.tool_call_id.as_deref() == Some(call.id.as_str()));
        let said = answer
            .map_or_else(|| "There is no result: it was interrupted.".to_owned(), |answer| tool_result_text(answer));
        results.push(ContentPart::ToolResponse(
            ToolResponse::new(call.id.as_str(), said).with_fn_name(sanitize_tool_name(&call.name)),
        ));
    }
    messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
    // If one message holds several results, `genai` sends Ollama only the last; other providers want them together.
    if wire == WireProtocol::Ollama {
        messages.extend(results.into_iter().map(|result| ChatMessage::tool(MessageContent::from_parts(vec![result]))));
    } else {
        messages.push(ChatMessage::tool(MessageContent::from_parts(results)));
    }
    let asked_for = |answer: &&&SessionMessage| {
        let id = answer.tool_call_id.as_deref();
        asked.tool_calls.iter().any(|call| Some(call.id.as_str()) == id)
    };
    for stray in answers.iter().filter(|answer| !asked_for(answer)) {
        push_user_text(messages, &quoted_tool_result(stray));
    }
}

fn tool_name(message: &SessionMessage) -> &str {
    message.tool_name.as_deref().unwrap_or("a tool")
}

/// Quotes a tool result as a user message, since the user hasn't written it.
fn quoted_tool_result(message: &SessionMessage) -> String {
    agent::prompt_quote::quote_block(&format!("the result of {}", tool_name(message)), &tool_result_text(message))
}

fn tool_result_text(message: &SessionMessage) -> String {
    match &message.error {
        Some(why) if message.content.trim().is_empty() => format!("Error: {why}"),
        // Runs put the reason into the content, too; it's sent once.
        Some(why) if message.content.contains(why.as_str()) => message.content.clone(),
        Some(why) => format!("Error: {why}\n{}", message.content),
        None if message.content.is_empty() => "(nothing)".to_owned(),
        None => message.content.clone(),
    }
}

/// Returns a tool's name in a form that all providers accept: a model may have called a name that can't be sent back.
fn sanitize_tool_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let name: String = name.chars().take(MAX_TOOL_NAME_BYTES).map(letter).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns whether a call's id can be sent back to any provider.
pub(crate) fn is_valid_call_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= MAX_TOOL_NAME_BYTES
        && id.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::tool_result_text;
    use store::{MessageId, MessageRole, SessionMessage};

    #[test]
    fn a_failure_is_told_once() {
        let told = |content: &str, why: Option<&str>| {
            let mut message = SessionMessage::new(MessageId(1), MessageRole::Tool, content.to_owned(), 0);
            message.error = why.map(ToOwned::to_owned);
            tool_result_text(&message)
        };
        assert_eq!(told("Error: no such folder", Some("no such folder")), "Error: no such folder");
        assert_eq!(told(" ", Some("no such folder")), "Error: no such folder");
        assert_eq!(told("a.md", Some("no such folder")), "Error: no such folder\na.md");
        assert_eq!((told("", None), told("a.md", None)), ("(nothing)".to_owned(), "a.md".to_owned()));
    }
}
