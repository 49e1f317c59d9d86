//! Language models as the host has them: providers, and what the router may know of each: keys, prices, how long
//! answers took.

use crate::maintenance::secrets::{SecretValue, UserSecrets};
use agent::config::{AgentConfig, DEFAULT_CONTEXT_TOKENS, LOCAL_CONTEXT_TOKENS};
use agent::model_call::ModelEndpoint;
use agent::router::{ProviderLatencies, ProviderStatus};
use anyhow::anyhow;
pub use providers::{
    ModelUpdate, ProviderClient, ProviderTestReport, ProviderTimeouts, context_window, model_price, wire_name,
};
use std::collections::BTreeMap;

/// The key of an endpoint; `None`: it needs none. May wait for the keyring.
///
/// # Errors
/// A sentence: its key is missing, or cannot be read now.
pub fn read_endpoint_key(endpoint: &ModelEndpoint, secrets: &UserSecrets) -> anyhow::Result<Option<SecretValue>> {
    let Some(name) = &endpoint.key else { return Ok(None) };
    match secrets.get(name) {
        Ok(Some((secret, _))) => Ok(Some(secret)),
        Ok(None) => Err(anyhow!("its key {name} is missing: `tracebook secrets set {name}`")),
        Err(why) => Err(why.into()),
    }
}

/// Returns the status of all enabled providers, by name. May wait for the keyring: not for the thread that draws.
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

/// Returns the context size in tokens: from the configuration, otherwise the price list, otherwise a low default. The
/// server's own figure is in [`ProviderTestReport`].
pub fn context_window_tokens(config: &AgentConfig, endpoint: &ModelEndpoint) -> u64 {
    let own = config.llm.providers.get(&endpoint.provider).and_then(|provider| provider.context);
    let unknown = if endpoint.local { LOCAL_CONTEXT_TOKENS } else { DEFAULT_CONTEXT_TOKENS };
    own.or_else(|| context_window(endpoint)).unwrap_or(unknown)
}
