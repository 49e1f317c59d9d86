//! What models cost and hold, from the price list in crate `genai-prices`. What runs on this machine is free.

use agent::config::ModelPrice;
use agent::model_call::{ModelEndpoint, WireProtocol};
use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};

/// Tokens of one answer as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    /// Read, with those from a cache.
    pub(crate) input: u64,
    /// Of these, read from a cache.
    pub(crate) cache_read: u64,
    /// Of these, written into a cache.
    pub(crate) cache_written: u64,
    /// Price of output tokens.
    pub(crate) output: u64,
}

/// Who keeps the prices: the wire says it where the address is the provider's own.
fn price_list_key(endpoint: &ModelEndpoint) -> (Option<&'static str>, Option<&str>) {
    match (&endpoint.base_url, endpoint.wire) {
        (Some(address), _) => (None, Some(address)),
        (None, WireProtocol::OpenAi | WireProtocol::Responses) => (Some("openai"), None),
        (None, WireProtocol::Anthropic) => (Some("anthropic"), None),
        (None, WireProtocol::Google) => (Some("google"), None),
        (None, WireProtocol::Ollama) => (Some("ollama"), None),
    }
}

/// Returns the cost of these tokens in US dollars; `None` if unknown.
pub(crate) fn token_cost(endpoint: &ModelEndpoint, counted: TokenCounts) -> Option<f64> {
    if endpoint.local {
        return Some(0.0);
    }
    let mut usage =
        Usage::from([(UsageKey::INPUT_TOKENS, counted.input as f64), (UsageKey::OUTPUT_TOKENS, counted.output as f64)]);
    if counted.cache_read > 0 {
        usage.insert(UsageKey::CACHE_READ_TOKENS, counted.cache_read as f64);
    }
    if counted.cache_written > 0 {
        usage.insert(UsageKey::CACHE_WRITE_TOKENS, counted.cache_written as f64);
    }
    let request = PriceRequest::new(&endpoint.model, &usage);
    let request = match price_list_key(endpoint) {
        (Some(id), _) => request.with_provider_id(id),
        (None, Some(address)) => request.with_provider_api_url(address),
        (None, None) => request,
    };
    let price = genai_prices::calculate(&request).ok()?.total_price;
    (price.is_finite() && price >= 0.0).then_some(price)
}

/// What a model costs, for the router; `None`: not known.
pub fn model_price(endpoint: &ModelEndpoint) -> Option<ModelPrice> {
    // Some lists charge more for long requests: use the ordinary price.
    let of = |input, output| {
        token_cost(endpoint, TokenCounts { input, output, ..TokenCounts::default() }).map(|cost| cost * 1e3)
    };
    Some(ModelPrice { input: of(1_000, 0)?, output: of(0, 1_000)? })
}

/// What a model costs that reads and does not write; `None`: not known.
pub fn input_only_price(endpoint: &ModelEndpoint) -> Option<ModelPrice> {
    let input = token_cost(endpoint, TokenCounts { input: 1_000, ..TokenCounts::default() })? * 1e3;
    Some(ModelPrice { input, output: 0.0 })
}

/// How many tokens a model reads at most; `None`: not known.
pub fn context_window(endpoint: &ModelEndpoint) -> Option<u64> {
    if endpoint.local {
        return None;
    }
    let (id, address) = price_list_key(endpoint);
    let provider = Calculator::bundled().find_provider(id, address).ok()??;
    let model = endpoint.model.to_lowercase();
    // Models have dates behind their names that the list does not always repeat.
    let fits =
        |name: &str| model.starts_with(&name.to_lowercase()) || model.ends_with(&format!("/{}", name.to_lowercase()));
    let found = provider.models().filter(|one| fits(one.id())).max_by_key(|one| one.id().len())?;
    found.context_window().filter(|tokens| *tokens > 0)
}
