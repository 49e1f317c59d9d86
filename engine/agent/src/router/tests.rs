//! Tests of the chosen providers, as tables.

use super::*;
use crate::config::{ConfigLayer, merge};

fn config(text: &str) -> AgentConfig {
    merge(&[ConfigLayer::parse("c", text).expect("a good file")]).expect("fits")
}

/// Returns a context in which all keys are set. `known` has the name, price per million tokens and latency of
/// providers.
fn situation(known: &[(&str, Option<f64>, Option<u64>)]) -> RoutingContext {
    let one = |(name, price, latency): &(&str, Option<f64>, Option<u64>)| {
        let price = price.map(|price| ModelPrice { input: price, output: price });
        ((*name).to_owned(), ProviderStatus { barred: None, price, latency: *latency })
    };
    RoutingContext { providers: known.iter().map(one).collect(), ..RoutingContext::default() }
}

#[test]
fn conditions() {
    let features = RequestFeatures { tokens: 9_000, complexity: 0.85, code: true, large: false, tools: 3 };
    let table = [
        ("complexity > 0.8 and code", true),
        ("complexity > 0.9 or code", true),
        ("complexity > 0.9 and code", false),
        ("not large", true),
        ("not (code and large)", true),
        ("tokens >= 9000", true),
        ("tokens < 9000", false),
        ("tokens!=9000", false),
        ("tokens == 9000 and tools", true),
        ("large or code and complexity <= 0.85", true),
        ("(large or code) and complexity < 0.85", false),
        ("not not code", true),
        ("tools > 3", false),
    ];
    for (text, expected) in table {
        assert_eq!(RoutingCondition::parse(text).expect(text).holds(&features), expected, "{text}");
    }
    let when = RoutingCondition::parse(" complexity > 0.8 and code ").expect("good");
    assert_eq!(
        (when.text(), when.describe_features(&features).as_str()),
        ("complexity > 0.8 and code", "complexity 0.85, asks for code")
    );
}

#[test]
fn conditions_that_are_none() {
    let deep = format!("{}code", "not ".repeat(60));
    let long = "code or ".repeat(100) + "code";
    let table = [
        ("", "missing"),
        ("complexity", "compare it"),
        ("complexity > lots", "number"),
        ("complexity > NaN", "number"),
        ("code == 1", "true or false"),
        ("colour > 1", "“colour” is not known; there are tokens"),
        ("code and", "missing"),
        ("(code", "“)” is missing"),
        ("code large", "“large” is one too many"),
        ("code; rm", "“;” has no place"),
        ("tokens > > 4", "number"),
        (deep.as_str(), "too deep"),
        (long.as_str(), "at most"),
    ];
    for (text, word) in table {
        let why = RoutingCondition::parse(text).expect_err(text).to_string();
        assert!(why.contains(word), "{text}: {why}");
    }
}

#[test]
fn requests_have_features() {
    let easy = RequestFeatures::from_request("What day is it?", 20, 0, None);
    assert!(!easy.code && !easy.large && easy.complexity < 0.2, "{easy:?}");
    let hard = RequestFeatures::from_request(
        "Analyse why the parser is slow, compare three designs, implement the best as a Python function, then prove it \
         correct:\n- time\n- memory\n- readability\nWhat would you change? Why? Explain.",
        200,
        4,
        Some(8_000),
    );
    assert!(hard.code && hard.large && hard.complexity > 0.6, "{hard:?}");
    assert!(hard.complexity <= 1.0);
    assert!(RequestFeatures::from_request("Write", 40_000, 0, None).large);
    assert_eq!(estimate_prompt_tokens("abcde"), 2);
    // A prompt is truncated at a character boundary.
    let _ = RequestFeatures::from_request(&"é".repeat(MAX_CLASSIFIED_PROMPT_BYTES), 1, 0, None);
}

#[test]
fn who_is_asked_and_why() {
    let plain = "llm: {default_provider: ollama}\n";
    let rules = "llm:\n  rules:\n    - {when: code, use: openai}\n    \
                 - {when: code and complexity > 0.8, use: anthropic, priority: 5}\n";
    let far = "llm: {default_provider: openai, prefer_local: false}\n";
    let near_first = "llm: {default_provider: openai}\n";
    let easy = RequestFeatures { tokens: 1_000, ..RequestFeatures::default() };
    let code = RequestFeatures { code: true, complexity: 0.3, ..easy };
    let hard = RequestFeatures { code: true, complexity: 0.9, ..easy };
    let none: &[(&str, Option<f64>, Option<u64>)] = &[];
    let priced: &[(&str, Option<f64>, Option<u64>)] =
        &[("openai", Some(1.0), Some(500)), ("anthropic", Some(10.0), Some(900))];
    type Known = (&'static str, Option<f64>, Option<u64>);
    let table: &[(&str, &RequestFeatures, &[Known], &str, &str)] = &[
        (plain, &easy, none, "ollama", "on this machine"),
        (far, &easy, priced, "openai", "the default"),
        (near_first, &easy, priced, "ollama", "on this machine"),
        (rules, &easy, priced, "ollama", "on this machine"),
        (rules, &code, priced, "openai", "rule “code”: asks for code"),
        (rules, &hard, priced, "anthropic", "rule “code and complexity > 0.8”: asks for code, complexity 0.90"),
    ];
    for (text, features, known, who, why) in table {
        let decision = choose_provider(&config(text), features, &situation(known)).expect(text);
        assert_eq!((decision.endpoint.provider.as_str(), decision.reason.as_str()), (*who, *why), "{text}");
    }
    let wanted = RoutingContext { wanted: Some("anthropic".to_owned()), ..situation(priced) };
    let decision = choose_provider(&config(rules), &code, &wanted).expect("one");
    assert_eq!(decision.describe_route(), "anthropic/claude-sonnet-4-5: the agent's own provider");
    // What the user has chosen for a run is asked, and nothing else.
    let only = |tried: &[(&str, &str)]| RoutingContext {
        only: Some("ollama".to_owned()),
        tried: tried.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned())).collect(),
        ..wanted.clone()
    };
    let decision = choose_provider(&config(rules), &code, &only(&[])).expect("one");
    assert_eq!((decision.endpoint.provider.as_str(), decision.reason.as_str()), ("ollama", "chosen for this run"));
    let why = choose_provider(&config(rules), &code, &only(&[("ollama", "it is down")])).expect_err("no other");
    assert_eq!(why.reasons, ["ollama: it is down"]);
    let gone = RoutingContext { only: Some("gone".to_owned()), ..only(&[]) };
    let why = choose_provider(&config(rules), &code, &gone).expect_err("it isn't there");
    assert_eq!(why.reasons, ["gone, which was chosen for this run, isn't switched on"]);
}

#[test]
fn limits_of_cost() {
    // 1,000 tokens plus an answer of 1,024 cost $0.02 at a price of 10, and $0.002 at 1.
    let text = "llm:\n  default_provider: anthropic\n  prefer_local: false\n  fallback: [openai, ollama]\n  \
                request_cost_limit: 0.01\n";
    let features = RequestFeatures { tokens: 1_000, ..RequestFeatures::default() };
    let known: &[(&str, Option<f64>, Option<u64>)] = &[("openai", Some(1.0), None), ("anthropic", Some(10.0), None)];
    let decision = choose_provider(&config(text), &features, &situation(known)).expect("one");
    assert_eq!(decision.endpoint.provider, "openai");
    assert_eq!(decision.reason, "next in the fallback chain; not anthropic: $0.0202 is over the $0.0100 for a request");
    assert!(decision.cost.is_some_and(|cost| (cost - 0.002024).abs() < 1e-9));
    // The session's limit is almost reached, so only free providers remain.
    let spent = RoutingContext { spent: 0.999, ..situation(known) };
    let decision = choose_provider(&config(text), &features, &spent).expect("one");
    assert_eq!((decision.endpoint.provider.as_str(), decision.cost), ("ollama", Some(0.0)));
    // No provider remains.
    let alone = "llm: {default_provider: anthropic, prefer_local: false, cost_limit: 0.001}\n";
    let why = choose_provider(&config(alone), &features, &situation(known)).expect_err("too dear").to_string();
    assert!(
        why.starts_with("No model can be asked. anthropic: $0.0000 spent and $0.0202 more is over the $0.0010"),
        "{why}"
    );
    // A provider with an unknown price is allowed, and the reason says so.
    let decision = choose_provider(&config(alone), &features, &situation(&[])).expect("one");
    assert!(decision.cost.is_none() && decision.reason.ends_with("its price is not known, so no limit of cost holds"));
    // A price in the configuration takes precedence over the price list.
    let own = "llm:\n  default_provider: anthropic\n  prefer_local: false\n  \
               providers: {anthropic: {price: {input: 0.1, output: 0.1}}}\n";
    let decision = choose_provider(&config(own), &features, &situation(known)).expect("one");
    assert!(decision.cost.is_some_and(|cost| cost < 0.001));
}

#[test]
fn those_that_are_slow_or_do_not_answer() {
    let text = "llm:\n  latency_target: 2000\n  prefer_local: true\n  fallback: [openai]\n  cost_limit: null\n";
    let features = RequestFeatures::default();
    let slow: &[(&str, Option<f64>, Option<u64>)] = &[("ollama", None, Some(9_000)), ("openai", Some(1.0), Some(800))];
    let decision = choose_provider(&config(text), &features, &situation(slow)).expect("one");
    assert_eq!(decision.endpoint.provider, "openai");
    assert_eq!(decision.reason, "next in the fallback chain; not ollama: it takes 9000 ms, more than the target");
    // If all are slow, the first is used.
    let all: &[(&str, Option<f64>, Option<u64>)] = &[("ollama", None, Some(9_000)), ("openai", Some(1.0), Some(8_000))];
    let mut both = situation(all);
    for name in ["anthropic", "google", "openrouter"] {
        both.providers.insert(
            name.to_owned(),
            ProviderStatus { barred: Some("its key is missing".to_owned()), ..ProviderStatus::default() },
        );
    }
    assert_eq!(choose_provider(&config(text), &features, &both).expect("one").endpoint.provider, "ollama");

    let tried = vec![("ollama".to_owned(), "nobody listens at localhost:11434.".to_owned())];
    let down = RoutingContext { tried, ..situation(&[]) };
    let decision =
        choose_provider(&config("llm: {fallback: [openai], cost_limit: null}\n"), &features, &down).expect("one");
    assert_eq!(decision.endpoint.provider, "openai");
    assert_eq!(decision.reason, "next in the fallback chain; ollama did not answer: nobody listens at localhost:11434");
    // Without a chain, no other provider is used.
    let why = choose_provider(&config("llm: {default_provider: ollama}\n"), &features, &down).expect_err("nobody");
    assert_eq!(
        why.to_string(),
        "No model can be asked. ollama: nobody listens at localhost:11434. See `tracebook providers`."
    );
    // A missing key is reported.
    let mut barred = situation(&[]);
    barred.providers.insert(
        "openai".to_owned(),
        ProviderStatus { barred: Some("its key OPENAI_API_KEY is missing".to_owned()), ..ProviderStatus::default() },
    );
    let far = config("llm: {default_provider: openai, prefer_local: false}\n");
    let why = choose_provider(&far, &features, &barred).expect_err("no key").to_string();
    assert!(why.contains("openai: its key OPENAI_API_KEY is missing"), "{why}");
}

#[test]
fn latencies_are_medians_of_the_last_answers() {
    let mut latencies = ProviderLatencies::default();
    assert_eq!(latencies.median_latency("a"), None);
    for took in [100, 9_000, 300] {
        latencies.record_latency("a", took);
    }
    assert_eq!(latencies.median_latency("a"), Some(300));
    for _ in 0..MAX_LATENCY_SAMPLES {
        latencies.record_latency("a", 50);
    }
    assert_eq!(latencies.median_latency("a"), Some(50));
}

#[test]
fn a_rule_names_several_providers_or_the_cheapest() {
    let one = |line: &str, more: &str| {
        config(&format!(
            "llm:\n  default_provider: openai\n  prefer_local: false\n  fallback: [anthropic]\n{more}  rules:\n    - \
             {{when: code, use: {line}}}\n  providers: {{ollama: {{enabled: false}}}}\n"
        ))
    };
    let code = RequestFeatures { tokens: 1_000, code: true, ..RequestFeatures::default() };
    let dear = [("openai", Some(9.0), Some(100)), ("anthropic", Some(1.0), Some(900))];
    let who = |config: &AgentConfig, context: &RoutingContext| {
        let decision = choose_provider(config, &code, context).expect("one");
        (decision.endpoint.provider, decision.reason)
    };
    let in_order = one("[openai, anthropic]", "");
    assert_eq!(who(&in_order, &situation(&dear)), ("openai".to_owned(), "rule “code”: asks for code".to_owned()));
    // The second one is asked once the first one has failed.
    let tried = RoutingContext { tried: vec![("openai".to_owned(), "it is down".to_owned())], ..situation(&dear) };
    assert_eq!(who(&in_order, &tried).0, "anthropic");
    let cheaper = one("[openai, anthropic]", "  prefer_cheapest: true\n");
    let told = "rule “code”, the cheapest: asks for code".to_owned();
    assert_eq!(who(&cheaper, &situation(&dear)), ("anthropic".to_owned(), told.clone()));
    assert_eq!(who(&one("cheapest", ""), &situation(&dear)), ("anthropic".to_owned(), told));
    // One that is too slow is passed over.
    let quick = one("cheapest", "  latency_target: 500\n");
    assert_eq!(who(&quick, &situation(&dear)).0, "openai");
    for (line, why) in [("[openai, nobody]", "llm.rules, rule 1"), ("[]", "names no provider"), ("{a: b}", "cheapest")]
    {
        let text = format!("llm:\n  rules:\n    - {{when: code, use: {line}}}\n");
        let layer = ConfigLayer::parse("c", &text).map_err(|error| error.to_string());
        let refused = layer.and_then(|layer| merge(&[layer]).map_err(|error| error.to_string())).expect_err(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
}
