//! Prices and context sizes of models, from the price list in crate `genai-prices`. Models on this machine are free.

use agent::config::ModelPrice;
use agent::model_call::{ModelEndpoint, WireProtocol};
use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};

/// Token counts of one answer, as the provider reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenCounts {
    /// Number of input tokens, including cached ones.
    pub(crate) input: u64,
    /// Number of input tokens read from a cache.
    pub(crate) cache_read: u64,
    /// Number of input tokens written to a cache.
    pub(crate) cache_written: u64,
    /// Number of output tokens.
    pub(crate) output: u64,
}

/// Returns the provider's id or API address for the price list. The protocol determines the id if the endpoint has no
/// address.
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

/// Returns a model's price, for the router; `None` if unknown.
pub fn model_price(endpoint: &ModelEndpoint) -> Option<ModelPrice> {
    // Some lists charge more for long requests: use the ordinary price.
    let of = |input, output| {
        token_cost(endpoint, TokenCounts { input, output, ..TokenCounts::default() }).map(|cost| cost * 1e3)
    };
    Some(ModelPrice { input: of(1_000, 0)?, output: of(0, 1_000)? })
}

/// Returns the price of a model that reads and doesn't write; `None` if unknown.
pub fn input_only_price(endpoint: &ModelEndpoint) -> Option<ModelPrice> {
    let input = token_cost(endpoint, TokenCounts { input: 1_000, ..TokenCounts::default() })? * 1e3;
    Some(ModelPrice { input, output: 0.0 })
}

/// Returns a model's context size in tokens; `None` if unknown.
pub fn context_window(endpoint: &ModelEndpoint) -> Option<u64> {
    if endpoint.local {
        return None;
    }
    let (id, address) = price_list_key(endpoint);
    let provider = Calculator::bundled().find_provider(id, address).ok()??;
    let model = endpoint.model.to_lowercase();
    // Model names end in dates that the list doesn't always repeat.
    let fits =
        |name: &str| model.starts_with(&name.to_lowercase()) || model.ends_with(&format!("/{}", name.to_lowercase()));
    let found = provider.models().filter(|one| fits(one.id())).max_by_key(|one| one.id().len())?;
    found.context_window().filter(|tokens| *tokens > 0)
}
