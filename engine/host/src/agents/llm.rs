//! Language models of the host: providers, and what the router knows about each of them: keys, prices, latencies.

use crate::maintenance::secrets::{SecretValue, UserSecrets};
use agent::config::{AgentConfig, DEFAULT_CONTEXT_TOKENS, OLLAMA_CONTEXT_TOKENS};
use agent::model_call::{ModelEndpoint, WireProtocol};
use agent::router::{ProviderLatencies, ProviderStatus};
use anyhow::anyhow;
pub use providers::{
    ModelUpdate, ProviderClient, ProviderTestReport, ProviderTimeouts, context_window, model_price, wire_name,
};
use std::collections::BTreeMap;

/// Returns the key of an endpoint; `None` if it needs none. May block on the keyring.
///
/// # Errors
/// Returns a message if the key is missing or can't be read now.
pub fn read_endpoint_key(endpoint: &ModelEndpoint, secrets: &UserSecrets) -> anyhow::Result<Option<SecretValue>> {
    let Some(name) = &endpoint.key else { return Ok(None) };
    match secrets.get(name) {
        Ok(Some((secret, _))) => Ok(Some(secret)),
        Ok(None) => Err(anyhow!("its key {name} is missing: `tracebook secrets set {name}`")),
        Err(why) => Err(why.into()),
    }
}

/// Returns the status of all enabled providers, by name. May block on the keyring, so don't call it on the UI thread.
pub fn provider_statuses(
    config: &AgentConfig,
    secrets: &UserSecrets,
    latencies: &ProviderLatencies,
) -> BTreeMap<String, ProviderStatus> {
    let mut known = BTreeMap::new();
    for (name, provider) in &config.llm.providers {
        let Some(endpoint) = config.endpoint(name).filter(|_| provider.is_enabled()) else { continue };
        let one = ProviderStatus {
            barred: read_endpoint_key(&endpoint, secrets).err().map(|why| why.to_string()),
            price: model_price(&endpoint),
            latency: latencies.median_latency(name),
        };
        known.insert(name.clone(), one);
    }
    known
}

/// Returns the context size in tokens: from the configuration, otherwise the price list, otherwise a default. The
/// server's own figure is in [`ProviderTestReport`].
pub fn context_window_tokens(config: &AgentConfig, endpoint: &ModelEndpoint) -> u64 {
    stated_context_tokens(config, endpoint).unwrap_or(match endpoint.wire {
        WireProtocol::Ollama => OLLAMA_CONTEXT_TOKENS,
        WireProtocol::OpenAi | WireProtocol::Responses | WireProtocol::Anthropic | WireProtocol::Google => {
            DEFAULT_CONTEXT_TOKENS
        }
    })
}

/// Returns the context size in tokens that the configuration or the price list states.
pub(crate) fn stated_context_tokens(config: &AgentConfig, endpoint: &ModelEndpoint) -> Option<u64> {
    let own = config.llm.providers.get(&endpoint.provider).and_then(|provider| provider.context);
    own.or_else(|| context_window(endpoint))
}
