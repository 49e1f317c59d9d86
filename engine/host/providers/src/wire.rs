//! A request as crate `genai` wants it: messages, tools, address.

use agent::model_call::{ModelEndpoint, ModelRequest, WireProtocol};
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};
use genai::resolver::AuthData;
use genai::{ModelIden, ServiceTarget};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use store::{Message, Role};

/// What providers that need no key are given in its place.
const NO_KEY: &str = "none";
/// A name or a call's id that is longer is refused by providers.
const LONGEST_NAME: usize = 64;
/// Signatures of so many calls are remembered.
const SIGNATURES: usize = 1_024;

/// What Google's models sign their calls with: they want it back with the call, as long as the program runs.
#[derive(Default)]
pub(crate) struct Signatures(Mutex<VecDeque<(String, Vec<String>)>>);

impl Signatures {
    pub(crate) fn keep(&self, call: &str, signatures: Vec<String>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((call.to_owned(), signatures));
        while kept.len() > SIGNATURES {
            kept.pop_front();
        }
    }

    fn of(&self, call: &str) -> Option<Vec<String>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().find(|(id, _)| id == call).map(|(_, signatures)| signatures.clone())
    }
}

/// Where the request goes, and with which key.
///
/// # Errors
/// A sentence: the address cannot be read.
pub(crate) fn target(endpoint: &ModelEndpoint, key: Option<&str>) -> Result<ServiceTarget, String> {
    let kind = match endpoint.wire {
        WireProtocol::OpenAi => AdapterKind::OpenAI,
        WireProtocol::Responses => AdapterKind::OpenAIResp,
        WireProtocol::Anthropic => AdapterKind::Anthropic,
        WireProtocol::Google => AdapterKind::Gemini,
        WireProtocol::Ollama => AdapterKind::Ollama,
    };
    Ok(ServiceTarget {
        endpoint: genai::resolver::Endpoint::from_owned(base(endpoint)?),
        auth: AuthData::from_single(key.unwrap_or(NO_KEY)),
        model: ModelIden::new(kind, endpoint.model.as_str()),
    })
}

/// The address that paths are put behind, with a `/` at its end.
///
/// # Errors
/// A sentence: it cannot be read.
pub(crate) fn base(endpoint: &ModelEndpoint) -> Result<String, String> {
    let (own, version) = match endpoint.wire {
        WireProtocol::OpenAi | WireProtocol::Responses => ("https://api.openai.com/v1/", "v1/"),
        WireProtocol::Anthropic => ("https://api.anthropic.com/v1/", "v1/"),
        WireProtocol::Google => ("https://generativelanguage.googleapis.com/v1beta/", "v1beta/"),
        WireProtocol::Ollama => ("http://localhost:11434/", ""),
    };
    let Some(given) = &endpoint.base_url else { return Ok(own.to_owned()) };
    let url = reqwest::Url::parse(given).map_err(|why| format!("“{given}” is no address ({why})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("“{given}” is no address: it begins with http:// or https:// and names a host"));
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

/// Host and port, as failures name it.
pub(crate) fn host(endpoint: &ModelEndpoint) -> String {
    let url = base(endpoint).ok().and_then(|base| reqwest::Url::parse(&base).ok());
    let named = url.as_ref().and_then(|url| Some((url.host_str()?.to_owned(), url.port())));
    match named {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host,
        None => endpoint.provider.clone(),
    }
}

/// The messages, each tool call with its result behind it, as all providers want them: the user speaks first, nobody
/// twice in a row where it can be helped, and nothing is empty.
pub(crate) fn chat(request: &ModelRequest, signatures: &Signatures) -> ChatRequest {
    let mut system = request.system.clone();
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut rest = request.messages.iter().peekable();
    // What the program says before anybody has spoken belongs to what the model is told first; many models take it
    // nowhere else.
    while let Some(message) = rest.next_if(|message| message.role == Role::System) {
        system.push_str(if system.is_empty() { "" } else { "\n\n" });
        system.push_str(&message.content);
    }
    while let Some(message) = rest.next() {
        match message.role {
            Role::User => user(&mut messages, &message.content),
            Role::System => user(&mut messages, &format!("(From the program:) {}", message.content)),
            // A result without its call, as after a compaction.
            Role::Tool => user(&mut messages, &told(message)),
            Role::Assistant if message.tool_calls.is_empty() => {
                if !message.content.trim().is_empty() {
                    messages.push(ChatMessage::assistant(message.content.as_str()));
                }
            }
            Role::Assistant => {
                let mut answers: Vec<&Message> = Vec::new();
                while let Some(answer) = rest.next_if(|next| next.role == Role::Tool) {
                    answers.push(answer);
                }
                turn(&mut messages, message, &answers, signatures, request.endpoint.wire);
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

/// The user says something; what follows directly is the same message.
fn user(messages: &mut Vec<ChatMessage>, text: &str) {
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

/// The model asks for tools, and their results.
fn turn(
    messages: &mut Vec<ChatMessage>,
    asked: &Message,
    answers: &[&Message],
    signatures: &Signatures,
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
            fn_name: plain(&call.name),
            fn_arguments: Value::Object(call.arguments.clone()),
            thought_signatures: signatures.of(&call.id),
        }));
        let answer = answers.iter().find(|answer| answer.tool_call_id.as_deref() == Some(call.id.as_str()));
        let said = answer.map_or_else(|| "There is no result: it was interrupted.".to_owned(), |answer| result(answer));
        results
            .push(ContentPart::ToolResponse(ToolResponse::new(call.id.as_str(), said).with_fn_name(plain(&call.name))));
    }
    messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
    // Of several results in one message `genai` gives Ollama the last alone; the others want them together.
    if wire == WireProtocol::Ollama {
        messages.extend(results.into_iter().map(|result| ChatMessage::tool(MessageContent::from_parts(vec![result]))));
    } else {
        messages.push(ChatMessage::tool(MessageContent::from_parts(results)));
    }
    let asked_for = |answer: &&&Message| {
        let id = answer.tool_call_id.as_deref();
        asked.tool_calls.iter().any(|call| Some(call.id.as_str()) == id)
    };
    for stray in answers.iter().filter(|answer| !asked_for(answer)) {
        user(messages, &told(stray));
    }
}

fn tool_name(message: &Message) -> &str {
    message.tool_name.as_deref().unwrap_or("a tool")
}

/// A result that stands where a user speaks: quoted, since the user hasn't said it.
fn told(message: &Message) -> String {
    agent::prompt_quote::quote_block(&format!("the result of {}", tool_name(message)), &result(message))
}

fn result(message: &Message) -> String {
    match &message.error {
        Some(why) if message.content.trim().is_empty() => format!("Error: {why}"),
        Some(why) => format!("Error: {why}\n{}", message.content),
        None if message.content.is_empty() => "(nothing)".to_owned(),
        None => message.content.clone(),
    }
}

/// A tool's name as all providers take it: a model may have called something that cannot be sent back to it.
fn plain(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let name: String = name.chars().take(LONGEST_NAME).map(letter).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Whether a call's id can be sent back to any provider.
pub(crate) fn fit(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= LONGEST_NAME
        && id.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}
