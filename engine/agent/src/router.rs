//! The router: decides which provider answers a request, and why, as specified in `mixos-go.md` (shared/reference).
//! Pure: the state of providers (keys, prices, latencies) is an argument.
//!
//! First, providers that can't be used are left out: switched off, without a key, already tried, or over a cost limit.
//! Then the order is: the agent's own provider, the first matching rule, a provider on this machine, the default, the
//! fallback chain; with `prefer_cheapest`, the cheapest of the last three comes first. A provider that is known to be
//! slower than the target is skipped if another is available.

mod condition;

use crate::config::{AgentConfig, ModelPrice, RuleProviders};
use crate::model_call::ModelEndpoint;
pub use condition::{RoutingCondition, RoutingConditionError, RoutingConditionFault};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A request with a limit above this many answer tokens counts as large.
const LARGE_ANSWER_TOKENS: u32 = 4_096;
/// Requests longer than this many tokens count as large.
const LARGE_REQUEST_TOKENS: u64 = 32_000;
/// Assumed length of an answer in tokens if no limit is set.
pub const DEFAULT_ANSWER_TOKENS: u64 = 1_024;
/// Tokens of an ordinary call, the request and its answer, for which `tracebook providers` says the expected cost.
pub const TYPICAL_CALL_TOKENS: (u64, u64) = (4_000, 500);
/// Number of latencies kept for each provider.
const MAX_LATENCY_SAMPLES: usize = 21;
/// Maximum length of the classified part of a prompt, in bytes.
const MAX_CLASSIFIED_PROMPT_BYTES: usize = 64 * 1024;

/// Features of a request that routing conditions can check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestFeatures {
    /// Estimated number of tokens of the whole request.
    pub tokens: u64,
    /// Estimated difficulty, 0 to 1.
    pub complexity: f64,
    /// Whether the request asks for code.
    pub code: bool,
    /// Whether the request is long, or its answer may be.
    pub large: bool,
    /// Number of offered tools.
    pub tools: u64,
}

/// Estimates the tokens of a text, with four bytes per token.
pub fn estimate_prompt_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

impl RequestFeatures {
    /// Returns the features of a request with the user's `prompt` and `tokens` in total, which offers `tools` tools and
    /// allows an answer of `max_tokens`.
    pub fn from_request(prompt: &str, tokens: u64, tools: usize, max_tokens: Option<u32>) -> RequestFeatures {
        let large = tokens > LARGE_REQUEST_TOKENS || max_tokens.is_some_and(|most| most > LARGE_ANSWER_TOKENS);
        let prompt = prompt.get(..prompt.floor_char_boundary(MAX_CLASSIFIED_PROMPT_BYTES)).unwrap_or_default();
        let code = asks_for_code(prompt);
        RequestFeatures { tokens, complexity: estimate_complexity(prompt, code), code, large, tools: tools as u64 }
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '#')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn asks_for_code(prompt: &str) -> bool {
    const CODE_REQUEST_WORDS: &[&str] = &[
        "api",
        "bug",
        "cell",
        "class",
        "code",
        "compile",
        "compiler",
        "css",
        "debug",
        "exception",
        "function",
        "html",
        "javascript",
        "json",
        "numpy",
        "pandas",
        "plot",
        "program",
        "python",
        "refactor",
        "regex",
        "rust",
        "script",
        "sql",
        "stacktrace",
        "test",
        "tests",
        "traceback",
        "typescript",
        "unittest",
    ];
    prompt.contains("```")
        || prompt.contains("def ")
        || words(prompt).any(|word| CODE_REQUEST_WORDS.contains(&word.as_str()))
}

/// Estimates the difficulty of a prompt, 0 to 1, from its length, the number of things it asks for, and words that
/// indicate hard work.
fn estimate_complexity(prompt: &str, code: bool) -> f64 {
    const HARD_WORK_WORDS: &[&str] = &[
        "analyse",
        "analyze",
        "architecture",
        "compare",
        "debug",
        "derive",
        "design",
        "evaluate",
        "explain",
        "implement",
        "investigate",
        "migrate",
        "optimise",
        "optimize",
        "plan",
        "prove",
        "refactor",
        "research",
        "review",
        "rewrite",
        "summarise",
        "summarize",
        "trade",
        "why",
    ];
    let (mut count, mut hard) = (0_u32, 0_u32);
    for word in words(prompt) {
        count += 1;
        hard += u32::from(HARD_WORK_WORDS.contains(&word.as_str()));
    }
    let begins = |line: &&str| {
        let line = line.trim_start();
        line.starts_with(['-', '*'])
            || line.split_once(['.', ')']).is_some_and(|(number, _)| number.parse::<u32>().is_ok())
    };
    let parts = prompt.lines().filter(begins).count() + prompt.matches('?').count() + prompt.matches(" then ").count();
    let long = f64::from(count.min(400)) / 400.0;
    let hard = f64::from(hard.min(4)) / 4.0;
    let parts = parts.min(6) as f64 / 6.0;
    (0.3 * long + 0.4 * hard + 0.2 * parts + if code { 0.1 } else { 0.0 }).clamp(0.0, 1.0)
}

/// Status of one provider at the time of the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderStatus {
    /// Why the provider can't be used, such as a missing key; `None` if it can.
    pub barred: Option<String>,
    /// Price from the price list. A price in the configuration takes precedence.
    pub price: Option<ModelPrice>,
    /// Median time of recent answers in milliseconds; `None` if unknown.
    pub latency: Option<u64>,
}

/// Input of a routing decision besides the configuration and the request.
#[derive(Clone, Debug, Default)]
pub struct RoutingContext {
    /// Status of providers, by name. Unlisted ones are unknown.
    pub providers: BTreeMap<String, ProviderStatus>,
    /// The only provider that may be asked; `None` for any.
    pub only: Option<String>,
    /// The provider that the agent always uses.
    pub wanted: Option<String>,
    /// Providers that failed to answer this request, with the reasons.
    pub tried: Vec<(String, String)>,
    /// Cost of the session so far, in US dollars.
    pub spent: f64,
    /// Maximum length in tokens of the agent's answers; `None` uses each provider's limit.
    pub max_tokens: Option<u32>,
}

/// The chosen endpoint, and why it was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingDecision {
    /// The endpoint to call.
    pub endpoint: ModelEndpoint,
    /// Why it was chosen, as a sentence.
    pub reason: String,
    /// Highest possible cost of the request in US dollars; `None` if the price is unknown.
    pub cost: Option<f64>,
}

impl RoutingDecision {
    /// Returns the route in the form stored in a step of a run.
    pub fn describe_route(&self) -> String {
        format!("{}/{}: {}", self.endpoint.provider, self.endpoint.model, self.reason)
    }
}

/// No provider can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("No model can be asked. {}. See `tracebook providers`.", reasons.join("; "))]
pub struct NoProviderError {
    /// The reason for each relevant provider.
    pub reasons: Vec<String>,
}

/// Chooses the provider for a request.
///
/// # Errors
/// Returns the reason for each provider if none can be used.
pub fn choose_provider(
    config: &AgentConfig,
    features: &RequestFeatures,
    situation: &RoutingContext,
) -> Result<RoutingDecision, NoProviderError> {
    let llm = &config.llm;
    let mut left_out: Vec<(&str, String)> = Vec::new();
    let mut open: Vec<(&str, ModelEndpoint, Option<f64>)> = Vec::new();
    for (name, provider) in &llm.providers {
        if !provider.is_enabled() {
            continue;
        }
        if situation.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let Some(endpoint) = config.endpoint(name) else { continue };
        let known = situation.providers.get(name);
        let listed = match endpoint.local {
            true => Some(ModelPrice { input: 0.0, output: 0.0 }),
            false => known.and_then(|known| known.price),
        };
        let price = provider.price.or(listed);
        let answer = situation.max_tokens.or(provider.max_tokens).map_or(DEFAULT_ANSWER_TOKENS, u64::from);
        let cost = price.map(|price| price.of(features.tokens, answer));
        let over = |limit: Option<f64>, spent: f64| {
            limit.zip(cost).filter(|(limit, cost)| *cost > 0.0 && spent + cost > *limit)
        };
        let why = if let Some((_, why)) = situation.tried.iter().find(|(tried, _)| tried == name) {
            Some(why.clone())
        } else if let Some(why) = known.and_then(|known| known.barred.clone()) {
            Some(why)
        } else if let Some((limit, cost)) = over(llm.request_cost_limit, 0.0) {
            Some(format!("${cost:.4} is over the ${limit:.4} for a request"))
        } else if let Some((limit, cost)) = over(llm.cost_limit, situation.spent) {
            Some(format!("${:.4} spent and ${cost:.4} more is over the ${limit:.4} for a session", situation.spent))
        } else {
            None
        };
        match why {
            Some(why) => left_out.push((name, why)),
            None => open.push((name, endpoint, cost)),
        }
    }
    let slow = slow_providers(llm.latency_target, &open, situation);
    let (name, mut reason) = apply_routing_rules(config, features, situation, &open, &slow)
        .ok_or_else(|| no_provider_error(config, situation, &left_out))?;
    // The reason includes providers that would otherwise have been chosen.
    for (tried, why) in &situation.tried {
        reason.push_str(&format!("; {tried} did not answer: {}", why.trim_end_matches('.')));
    }
    for (other, why) in left_out.iter().filter(|(other, _)| situation.tried.iter().all(|(tried, _)| tried != other)) {
        let mattered = *other == llm.default_provider
            || situation.wanted.as_deref() == Some(*other)
            || llm.rules.iter().any(|rule| rule.providers.is_named(other) && rule.when.holds(features));
        if mattered {
            reason.push_str(&format!("; not {other}: {why}"));
        }
    }
    let (_, endpoint, cost) = open
        .into_iter()
        .find(|(open, ..)| *open == name)
        .ok_or_else(|| no_provider_error(config, situation, &left_out))?;
    if cost.is_none() && (llm.cost_limit.is_some() || llm.request_cost_limit.is_some()) {
        reason.push_str("; its price is not known, so no limit of cost holds");
    }
    Ok(RoutingDecision { endpoint, reason, cost })
}

/// Returns the providers that are known to be slower than the target; none if all are.
fn slow_providers<'a>(
    target: Option<u64>,
    open: &[(&'a str, ModelEndpoint, Option<f64>)],
    situation: &RoutingContext,
) -> Vec<(&'a str, u64)> {
    let Some(target) = target else { return Vec::new() };
    let took = |name: &str| situation.providers.get(name).and_then(|known| known.latency);
    let slow: Vec<(&str, u64)> = open
        .iter()
        .filter_map(|(name, ..)| took(name).filter(|took| *took > target).map(|took| (*name, took)))
        .collect();
    if slow.len() == open.len() { Vec::new() } else { slow }
}

fn apply_routing_rules<'a>(
    config: &'a AgentConfig,
    features: &RequestFeatures,
    situation: &'a RoutingContext,
    open: &[(&'a str, ModelEndpoint, Option<f64>)],
    slow: &[(&'a str, u64)],
) -> Option<(&'a str, String)> {
    let llm = &config.llm;
    let find = |name: &str| open.iter().find(|(open, ..)| *open == name).map(|(open, ..)| *open);
    if let Some(name) = situation.only.as_deref().and_then(find) {
        return Some((name, "chosen for this run".to_owned()));
    }
    if let Some(name) = situation.wanted.as_deref().and_then(find) {
        return Some((name, "the agent's own provider".to_owned()));
    }
    let mut rules: Vec<(usize, &crate::config::RoutingRule)> = llm.rules.iter().enumerate().collect();
    rules.sort_by_key(|(at, rule)| (std::cmp::Reverse(rule.priority), *at));
    let quick = |name: &str| slow.iter().all(|(slow, _)| *slow != name);
    let cost_of = |name: &str| open.iter().find(|(open, ..)| *open == name).and_then(|(.., cost)| *cost);
    // A stable sort: of two with the same price, the earlier one stays first. An unknown price comes last.
    let by_cost = |one: &str, other: &str| {
        cost_of(one).unwrap_or(f64::INFINITY).total_cmp(&cost_of(other).unwrap_or(f64::INFINITY))
    };
    for (_, rule) in rules {
        if !rule.when.holds(features) {
            continue;
        }
        let is_cheapest = rule.providers == RuleProviders::Cheapest;
        let mut named: Vec<&str> = match is_cheapest {
            // A rule doesn't send anything to a provider that nobody has named.
            true => {
                let near = open.iter().filter(|(_, end, _)| llm.prefer_local && end.local).map(|(name, ..)| *name);
                near.chain(find(&llm.default_provider))
                    .chain(llm.fallback.iter().filter_map(|name| find(name)))
                    .collect()
            }
            false => rule.providers.names().iter().filter_map(|name| find(name)).collect(),
        };
        let sorts = named.len() > 1 && (is_cheapest || llm.prefer_cheapest && situation.tried.is_empty());
        if sorts {
            named.sort_by(|one, other| by_cost(one, other));
        }
        let Some(name) = named.iter().find(|name| quick(name) || named.len() == 1).or(named.first()) else { continue };
        let cheapest = if sorts || is_cheapest { ", the cheapest" } else { "" };
        let features = rule.when.describe_features(features);
        return Some((*name, format!("rule “{}”{cheapest}: {features}", rule.when.text())));
    }
    let passed = |name: &str| {
        let shown = |(slow, took): &(&str, u64)| format!("; not {slow}: it takes {took} ms, more than the target");
        slow.iter().filter(|(slow, _)| *slow != name).map(shown).collect::<String>()
    };
    let mut chain: Vec<(&str, &str)> = Vec::new();
    if llm.prefer_local {
        // The default provider comes first if it's on this machine.
        let mut near: Vec<&str> = open.iter().filter(|(_, end, _)| end.local).map(|(name, ..)| *name).collect();
        near.sort_by_key(|name| *name != llm.default_provider);
        chain.extend(near.into_iter().map(|name| (name, "on this machine")));
    }
    chain.extend(find(&llm.default_provider).map(|name| (name, "the default")));
    chain.extend(llm.fallback.iter().filter_map(|name| find(name)).map(|name| (name, "next in the fallback chain")));
    if llm.prefer_cheapest && situation.tried.is_empty() {
        chain.sort_by(|(one, _), (other, _)| by_cost(one, other));
        if let Some((name, why)) = chain.first_mut().filter(|(name, _)| cost_of(name).is_some_and(|cost| cost > 0.0)) {
            *why = if *name == llm.default_provider { "the default, and the cheapest" } else { "the cheapest" };
        }
    }
    // An agent or a rule may name a provider outside the chain; its failure doesn't permit others.
    let (name, why) = chain.iter().find(|(name, _)| quick(name)).or(chain.first())?;
    Some((name, format!("{why}{}", passed(name))))
}

fn no_provider_error(config: &AgentConfig, situation: &RoutingContext, left_out: &[(&str, String)]) -> NoProviderError {
    let llm = &config.llm;
    let meant = |name: &str| {
        situation.only.as_deref() == Some(name)
            || name == llm.default_provider
            || llm.fallback.iter().any(|other| other == name)
            || llm.rules.iter().any(|rule| rule.providers.is_named(name))
    };
    let mut reasons: Vec<String> = left_out
        .iter()
        .filter(|(name, _)| meant(name))
        .map(|(name, why)| format!("{name}: {}", why.trim_end_matches('.')))
        .collect();
    if let Some(only) = &situation.only {
        if reasons.is_empty() {
            reasons.push(format!("{only}, which was chosen for this run, isn't switched on"));
        }
        return NoProviderError { reasons };
    }
    if llm.providers.get(&llm.default_provider).is_some_and(|provider| !provider.is_enabled()) {
        reasons.push(format!("{} is switched off", llm.default_provider));
    }
    if reasons.is_empty() {
        reasons.push("none is switched on".to_owned());
    }
    NoProviderError { reasons }
}

/// Recent latencies of providers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProviderLatencies {
    took: BTreeMap<String, VecDeque<u64>>,
}

impl ProviderLatencies {
    /// Records the time in milliseconds that a provider took for a complete answer.
    pub fn record_latency(&mut self, provider: &str, milliseconds: u64) {
        let took = self.took.entry(provider.to_owned()).or_default();
        took.push_back(milliseconds);
        while took.len() > MAX_LATENCY_SAMPLES {
            took.pop_front();
        }
    }

    /// Returns the median latency of recent answers in milliseconds.
    pub fn median_latency(&self, provider: &str) -> Option<u64> {
        let mut took: Vec<u64> = self.took.get(provider)?.iter().copied().collect();
        took.sort_unstable();
        took.get(took.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests;
