//! Asks OpenAI's chat completions for a whole answer, of a server that doesn't stream. `genai` would read the answer
//! without a limit.

use crate::ProviderTimeouts;
use crate::error::{self, ApiKey, ProviderError};
use agent::model_call::{ModelEndpoint, ModelErrorKind, ModelRequest, ToolCallChoice};
use genai::chat::{ChatMessage, ChatRequest, ChatRole};
use serde_json::{Value, json};

/// Maximum size of a whole answer in bytes: the longest text, and as much again for the calls and the rest.
const MAX_WHOLE_ANSWER_BYTES: usize = 8 << 20;
/// Names of models that begin like this take the limit of tokens by another name.
const COMPLETION_LIMIT_MODELS: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Sends a request, and reads the JSON of its answer.
pub(crate) async fn fetch(
    client: &reqwest::Client,
    base: &str,
    (endpoint, host, key): (&ModelEndpoint, &str, Option<&ApiKey>),
    limits: &ProviderTimeouts,
    body: &Value,
) -> Result<Value, ProviderError> {
    let lost = |error: reqwest::Error| {
        let trouble = error::network_error(endpoint, host, key, &error);
        // Nothing of the answer was shown, so it can be asked for again.
        ProviderError { can_retry: trouble.can_retry || trouble.kind == ModelErrorKind::Cut, ..trouble }
    };
    let mut request = client.post(format!("{base}chat/completions")).header("Content-Type", "application/json");
    if let Some(ApiKey(key)) = key {
        request = request.bearer_auth(key);
    }
    let sent = tokio::time::timeout(limits.first_response_of(endpoint), request.body(body.to_string()).send()).await;
    let mut response = sent.map_err(|_| error::silence_error(endpoint, host, limits))?.map_err(lost)?;
    let status = response.status();
    let most = if status.is_success() { MAX_WHOLE_ANSWER_BYTES } else { error::MAX_ERROR_BODY_BYTES };
    let mut answer = Vec::new();
    loop {
        let chunk = tokio::time::timeout(limits.stream_idle, response.chunk()).await;
        let chunk = chunk.map_err(|_| error::stall_error(host, limits))?;
        let Some(chunk) = chunk.map_err(lost)? else { break };
        answer.extend_from_slice(&chunk);
        if answer.len() > most {
            if status.is_success() {
                return Err(error::excess_error(host, &format!("more than {} MB", most >> 20)));
            }
            break;
        }
    }
    if !status.is_success() {
        let text = String::from_utf8_lossy(&answer);
        return Err(error::status_error(endpoint, host, key, status.as_u16(), response.headers(), &text));
    }
    serde_json::from_slice(&answer).map_err(|_| error::unreadable_error(endpoint, host, "no JSON"))
}

/// Returns the body of a request for a whole answer; it says the same as that of `genai` for a stream.
pub(crate) fn request_body(request: &ModelRequest, chat: ChatRequest) -> Value {
    let model = &request.endpoint.model;
    let system = chat.system.map(|system| json!({"role": "system", "content": system}));
    let messages: Vec<Value> = system.into_iter().chain(chat.messages.iter().flat_map(message_values)).collect();
    let mut body = json!({"model": model, "stream": false, "messages": messages});
    if let Some(tools) = chat.tools.filter(|tools| !tools.is_empty()) {
        let tools = tools.iter().map(|tool| {
            let (name, about, schema) = (tool.name.as_str(), &tool.description, &tool.schema);
            let function = json!({"name": name, "description": about, "parameters": schema, "strict": false});
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
        if let Some(choice) = request.tool_choice {
            body["tool_choice"] = match choice {
                ToolCallChoice::Auto => "auto",
                ToolCallChoice::Required => "required",
                ToolCallChoice::None => "none",
            }
            .into();
        }
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = temperature.into();
    }
    if let Some(most) = request.max_tokens {
        let is_other = COMPLETION_LIMIT_MODELS.iter().any(|name| model.starts_with(name));
        body[if is_other { "max_completion_tokens" } else { "max_tokens" }] = most.into();
    }
    body
}

/// Returns a message as the server takes it; results of tools are a message each.
fn message_values(message: &ChatMessage) -> Vec<Value> {
    let text = message.content.joined_texts().unwrap_or_default();
    match message.role {
        ChatRole::System => vec![json!({"role": "system", "content": text})],
        ChatRole::User => vec![json!({"role": "user", "content": text})],
        ChatRole::Assistant => {
            let mut said = json!({"role": "assistant", "content": text});
            let calls = message.content.tool_calls();
            if !calls.is_empty() {
                let call = |call: &genai::chat::ToolCall| {
                    let function = json!({"name": call.fn_name, "arguments": call.fn_arguments.to_string()});
                    json!({"type": "function", "id": call.call_id, "function": function})
                };
                said["tool_calls"] = calls.into_iter().map(call).collect();
            }
            vec![said]
        }
        ChatRole::Tool => {
            let result = |result: &genai::chat::ToolResponse| {
                let (id, content) = (&result.call_id, &result.content);
                json!({"role": "tool", "tool_call_id": id, "content": content})
            };
            message.content.tool_responses().into_iter().map(result).collect()
        }
    }
}
