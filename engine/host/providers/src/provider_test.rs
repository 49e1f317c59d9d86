//! Tests whether a provider is reachable and accepts the key, and which models it has.

use crate::ProviderTestReport;
use crate::error::{self, ApiKey, ProviderError};
use crate::genai_request;
use crate::http_clients::HttpClients;
use agent::model_call::{ModelEndpoint, ModelError, ModelErrorKind, WireProtocol};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Maximum size of a model list in bytes; longer ones aren't read.
const MAX_MODEL_LIST_BYTES: usize = 8 << 20;
/// Valid context sizes in tokens; other values are ignored.
const CONTEXT_TOKENS: std::ops::RangeInclusive<u64> = 256..=100_000_000;
/// Maximum number of listed models.
const MAX_LISTED_MODELS: usize = 5_000;

/// Tests a provider by requesting its list of models.
pub(crate) async fn test_endpoint(
    clients: &HttpClients,
    endpoint: &ModelEndpoint,
    key: Option<&ApiKey>,
    within: Duration,
) -> Result<ProviderTestReport, ModelError> {
    let began = Instant::now();
    let host = genai_request::host_label(endpoint);
    let listed = tokio::time::timeout(within, list_models(clients, endpoint, key, &host)).await.unwrap_or_else(|_| {
        let why = format!("{host} does not answer within {} s. Is it the right address?", within.as_secs());
        Err(ProviderError::new(ModelErrorKind::Unreachable, why))
    });
    let models = listed.map_err(|trouble| ModelError {
        kind: trouble.kind,
        why: error::redact_key(&trouble.why, key),
        partial: String::new(),
    })?;
    // Ollama's names end in `:latest` by default.
    let is = |(name, _): &&ListedModel| *name == endpoint.model || *name == format!("{}:latest", endpoint.model);
    let listed = models.as_ref().map(|models| models.iter().any(|model| is(&model)));
    // A server with one model uses that one for any model name.
    let one = models.as_ref().and_then(|models| match models.as_slice() {
        [one] => Some(one),
        models => models.iter().find(is),
    });
    let context = one.and_then(|(_, context)| *context);
    let models = models.map(|models| models.into_iter().map(|(name, _)| name).collect());
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(ProviderTestReport { host, milliseconds, models, listed, context })
}

/// A model's name, and its context size in tokens, if known.
type ListedModel = (String, Option<u64>);

/// Returns the models; `None` if the provider is reachable but has no such list.
async fn list_models(
    clients: &HttpClients,
    endpoint: &ModelEndpoint,
    key: Option<&ApiKey>,
    host: &str,
) -> Result<Option<Vec<ListedModel>>, ProviderError> {
    let refused = |why: String| ProviderError::new(ModelErrorKind::Refused, why);
    let base = genai_request::base_url(endpoint).map_err(|why| refused(format!("{why}.")))?;
    let client = clients.http_client(&base).map_err(|why| refused(why.to_string()))?;
    let path = match endpoint.wire {
        WireProtocol::Ollama => "api/tags",
        WireProtocol::Google => "models?pageSize=1000",
        WireProtocol::Anthropic => "models?limit=1000",
        WireProtocol::OpenAi | WireProtocol::Responses => "models",
    };
    let mut request = client.get(format!("{base}{path}"));
    if let Some(ApiKey(key)) = key {
        request = match endpoint.wire {
            WireProtocol::Anthropic => request.header("x-api-key", key),
            WireProtocol::Google => request.header("x-goog-api-key", key),
            WireProtocol::OpenAi | WireProtocol::Responses | WireProtocol::Ollama => request.bearer_auth(key),
        };
    }
    if endpoint.wire == WireProtocol::Anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    let mut response = request.send().await.map_err(|error| error::network_error(endpoint, host, key, &error))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error::network_error(endpoint, host, key, &error))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_MODEL_LIST_BYTES {
            return Err(ProviderError::new(
                ModelErrorKind::Malformed,
                format!("{host} lists more than {} MB of models.", MAX_MODEL_LIST_BYTES >> 20),
            ));
        }
    }
    let text = String::from_utf8_lossy(&body);
    match status.as_u16() {
        200..=299 => {}
        404 | 405 | 501 => return Ok(None),
        code => return Err(error::status_error(endpoint, host, key, code, response.headers(), &text)),
    }
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        let word = error::wire_name(endpoint.wire);
        let why =
            format!("{host} answers, but not like a provider of models. Is its wire “{word}”, and its base_url right?");
        return Err(ProviderError::new(ModelErrorKind::Malformed, why));
    };
    let list = ["data", "models"].iter().find_map(|name| value.get(name)?.as_array());
    let name = |model: &Value| {
        let name = ["id", "model", "name"].iter().find_map(|name| model.get(name)?.as_str())?;
        let name = name.strip_prefix("models/").unwrap_or(name);
        (name.len() <= 300 && !name.chars().any(char::is_control)).then(|| (name.to_owned(), context_of(model)))
    };
    Ok(list.map(|list| list.iter().filter_map(name).take(MAX_LISTED_MODELS).collect()))
}

/// Returns a listed model's context size in tokens. Servers report it in different places: the loaded size takes
/// precedence over the model's training size.
fn context_of(model: &Value) -> Option<u64> {
    let meta = model.get("meta").unwrap_or(&Value::Null);
    let said = [
        meta.get("n_ctx"),
        model.get("loaded_context_length"),
        model.get("context_length"),
        model.get("max_model_len"),
        model.get("context_window"),
        model.get("max_context_length"),
        model.get("inputTokenLimit"),
        meta.get("n_ctx_train"),
    ];
    said.into_iter().flatten().filter_map(Value::as_u64).find(|tokens| CONTEXT_TOKENS.contains(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn servers_say_how_much_they_read() {
        let of = |model: Value| context_of(&model);
        assert_eq!(of(json!({"id": "llama.cpp", "meta": {"n_ctx": 16_384, "n_ctx_train": 131_072}})), Some(16_384));
        assert_eq!(of(json!({"id": "llama.cpp", "meta": {"n_ctx_train": 131_072}})), Some(131_072));
        assert_eq!(of(json!({"id": "vllm", "max_model_len": 32_768})), Some(32_768));
        assert_eq!(of(json!({"id": "openrouter", "context_length": 262_144})), Some(262_144));
        assert_eq!(of(json!({"id": "odd", "context_length": 0, "max_model_len": "many"})), None);
    }
}
