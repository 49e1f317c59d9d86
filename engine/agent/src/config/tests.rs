//! Tests of configuration files, parsed alone and merged.

use super::*;
use crate::router::RoutingCondition;
use proptest::prelude::*;

fn parse(text: &str) -> ConfigLayer {
    ConfigLayer::parse("config.yaml", text).expect("a good file")
}

fn whole(text: &str) -> AgentConfig {
    merge(&[parse(text)]).expect("fits together")
}

#[test]
fn the_embedded_file_is_good_and_names_what_the_program_does_without_it() {
    let config = merge(&[]).expect("the embedded file");
    assert_eq!(config.llm.default_provider, "ollama");
    assert_eq!(config.llm.cost_limit, Some(1.0));
    assert_eq!(config.llm.fallback, Vec::<String>::new(), "nothing leaves the machine unasked");
    assert_eq!(config.approval, ApprovalConfig::default());
    assert_eq!(config.security, SecurityConfig::default());
    assert_eq!(config.runtime, RuntimeConfig::default());
    let ollama = config.endpoint("ollama").expect("there");
    assert!(ollama.local && ollama.key.is_none());
    let anthropic = config.endpoint("anthropic").expect("there");
    assert_eq!((anthropic.wire, anthropic.key.as_deref()), (WireProtocol::Anthropic, Some("ANTHROPIC_API_KEY")));
    assert!(!anthropic.local);
    // The file contains every possible key, as text or as a comment.
    for key in [
        "profile",
        "data_dir",
        "log_level",
        "default_provider",
        "prefer_local",
        "cost_limit",
        "request_cost_limit",
        "latency_target",
        "fallback",
        "rules",
        "when",
        "use",
        "priority",
        "providers",
        "enabled",
        "wire",
        "base_url",
        "model",
        "api_key",
        "local",
        "context",
        "max_tokens",
        "temperature",
        "price",
        "lead",
        "specialists",
        "llm_provider",
        "auto_approve_level",
        "timeout_seconds",
        "always_approve",
        "never_approve",
        "sandbox_enabled",
        "network_restricted",
        "allowed_hosts",
        "servers",
        "command",
        "args",
        "env",
        "url",
        "headers",
        "oauth",
        "cross_app_access",
        "identity_provider",
    ] {
        assert!(system::DEFAULT_CONFIG.contains(key), "{key} is not explained");
    }
}

const REFERENCE: &str = "
runtime:
  profile: standard
  data_dir: ~/.mixos/data
  log_level: info
llm:
  default_provider: ollama
  prefer_local: true
  cost_limit: 1.0  # USD per session
  providers:
    ollama:
      enabled: true
      base_url: http://localhost:11434
      model: qwen2.5-coder:7b
    anthropic:
      enabled: true
      api_key: ${ANTHROPIC_API_KEY}
      model: claude-3-5-sonnet-20241022
    openai:
      enabled: false
      api_key: ${OPENAI_API_KEY}
      model: gpt-4-turbo
agents:
  lead:
    enabled: true
    llm_provider: anthropic
  specialists:
    frontend:
      enabled: true
      llm_provider: ollama
approval:
  auto_approve_level: low
  timeout_seconds: 300
  always_approve:
    - deploy_production
  never_approve:
    - read_file
security:
  sandbox_enabled: true
  network_restricted: false
  allowed_hosts:
    - github.com
";

#[test]
fn the_file_of_the_reference_is_understood() {
    let config = whole(REFERENCE);
    assert_eq!(config.llm.providers["anthropic"].model, "claude-3-5-sonnet-20241022");
    assert!(!config.llm.providers["openai"].is_enabled());
    assert_eq!(config.agents.lead.llm_provider.as_deref(), Some("anthropic"));
    assert_eq!(config.approval.never_approve, ["read_file"]);
    assert_eq!(config.security.allowed_hosts, ["github.com"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let table = [
        ("llm:\n  colour: red\n", (2, 3), "colour"),
        ("llm:\n  prefer_local: yes please\n", (2, 17), "bool"),
        ("llm:\n  prefer_local: \"true\"\n", (2, 17), ""),
        ("llm:\n  latency_target: \"5\"\n", (2, 19), ""),
        ("llm:\n  cost_limit: \"5\"\n", (2, 15), ""),
        ("llm:\n  default_provider: 5\n", (2, 21), ""),
        ("llm:\n  cost_limit: lots\n", (2, 15), ""),
        ("llm:\n  cost_limit: -1\n", (2, 15), "0 or more"),
        ("runtime:\n  profile: fast\n", (2, 12), "fast"),
        ("llm:\n  providers:\n    x:\n      api_key: sk-live-abc\n", (4, 16), "does not belong in a file"),
        ("llm:\n  providers:\n    x:\n      base_url: localhost:1\n", (4, 17), "http://"),
        ("llm:\n  providers:\n    x:\n      base_url: http://a:b@c/\n", (4, 17), "no user"),
        ("llm:\n  providers:\n    x:\n      temperature: 3\n", (4, 20), "0 to 2"),
        ("llm:\n  rules:\n    - when: complexity >\n      use: ollama\n", (3, 13), "complexity"),
        ("llm:\n  rules:\n    - when: colour > 3\n      use: ollama\n", (3, 13), "colour"),
        ("approval:\n  auto_approve_level: high\n", (2, 23), "none, low or medium"),
        ("approval:\n  timeout_seconds: 0\n", (2, 20), "1 to 604800"),
        ("llm:\n  fallback: ollama\n", (2, 13), "expected a list"),
        ("llm:\n  prefer_local: true\n  prefer_local: false\n", (3, 3), "prefer_local"),
        ("llm: [\n", (1, 6), "expected names and values"),
    ];
    for (text, place, word) in table {
        let error = ConfigLayer::parse("config.yaml", text).expect_err(text);
        assert_eq!(error.place.map(|place| place.0), Some(place.0), "{text}{error}");
        assert!(error.place.is_some_and(|(_, column)| column >= 1), "{error}");
        assert!(error.what.contains(word), "{text}{error}");
        assert!(!error.to_string().contains("sk-live"), "a key is repeated: {error}");
        assert!(error.to_string().starts_with("config.yaml:"), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn what_does_not_fit_together_is_said() {
    let table = [
        ("llm:\n  default_provider: nobody\n", "llm.default_provider"),
        ("llm:\n  fallback: [ollama, nobody]\n", "llm.fallback, entry 2"),
        ("llm:\n  rules:\n    - {when: code, use: nobody}\n", "llm.rules, rule 1"),
        ("llm:\n  providers:\n    mine:\n      base_url: http://localhost:1/v1\n", "llm.providers.mine.model"),
        ("agents:\n  lead:\n    llm_provider: nobody\n", "“lead”"),
        ("mcp:\n  servers:\n    a: {}\n", "needs a command or a url"),
        ("mcp:\n  servers:\n    a: {command: x, url: 'http://localhost/'}\n", "one of them"),
        ("mcp:\n  servers:\n    a: {command: x, headers: {A: b}}\n", "takes env"),
        ("mcp:\n  servers:\n    a: {command: x, oauth: {client_id: b}}\n", "nobody signs in"),
        ("mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {client_id: b, client_secret: c}}\n", "secrets set"),
        ("mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {client_id: b, private_key: c}}\n", "private_key must be"),
        ("mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {client_id: b, private_key: '${K}'}}\n", "is for grant"),
        ("mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {grant: client_credentials, client_id: b}}\n", "either"),
        (
            "mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {identity_provider: {client_id: b}}}\n",
            "identity_provider is for grant",
        ),
        (
            "mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {identity_provider: {id_token: c}}}\n",
            "identity_provider.id_token must be",
        ),
        (
            "mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {identity_provider: {issuer: 'http://idp.example'}}}\n",
            "identity_provider.issuer must begin with https",
        ),
        (
            "mcp:\n  servers:\n    a: {url: 'http://h/', oauth: {grant: cross_app_access, client_id: b}}\n",
            "either id_token or refresh_token",
        ),
    ];
    for (text, word) in table {
        let error = merge(&[parse(text)]).expect_err(text);
        assert!(error.to_string().contains(word), "{error}");
    }
    let error = ConfigLayer::parse("c", "mcp:\n  servers:\n    a: {url: 'http://h/', headers: {X-Api-Key: abc}}\n")
        .expect_err("a key");
    assert!(error.what.contains("X-Api-Key") && !error.what.contains("abc"), "{error}");
}

#[test]
fn later_files_win_name_by_name() {
    let user =
        parse("llm:\n  cost_limit: 5\n  fallback: [ollama, openai]\n  providers:\n    ollama:\n      model: llama3\n");
    let here =
        parse("llm:\n  cost_limit: null\n  fallback: [google]\n  providers:\n    ollama:\n      temperature: 0\n");
    let config = merge(&[user, here]).expect("fits");
    assert_eq!(config.llm.cost_limit, None);
    assert_eq!(config.llm.fallback, ["google"]);
    let ollama = &config.llm.providers["ollama"];
    assert_eq!((ollama.model.as_str(), ollama.temperature), ("llama3", Some(0.0)));
    assert_eq!(ollama.base_url.as_deref(), Some("http://localhost:11434"), "what nobody changed stays");
    // A section whose lines are all comments changes nothing.
    let config = whole("llm:\n  # default_provider: x\nmcp:\n");
    assert_eq!(config.llm.default_provider, "ollama");
    assert_eq!(whole("# nothing\n"), merge(&[]).expect("the default"));
}

#[test]
fn hostile_files_are_bounded() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let deep = "[".repeat(100_000);
    let long = "#".repeat(MAX_CONFIG_FILE_BYTES + 1);
    for text in [bomb, deep.as_str(), long.as_str(), "\u{0}", "%YAML 9.9\n---\n- \t"] {
        assert!(ConfigLayer::parse("c", text).is_err());
    }
}

#[test]
fn addresses_on_this_machine_are_known() {
    for near in [
        "http://localhost:1/v1",
        "http://127.0.0.1",
        "http://127.1.2.3:9",
        "https://[::1]:9/",
        "http://x.localhost/",
        "http://0.0.0.0:1",
    ] {
        assert!(is_local(near), "{near}");
    }
    for far in [
        "http://localhost.example.com/",
        "https://api.openai.com/v1",
        "http://192.168.1.4:1234",
        "http://127.0.0.1.example.com",
        "ftp://localhost",
    ] {
        assert!(!is_local(far), "{far}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// For any text in a file or condition, parsing terminates without a panic, and its error is one line.
    #[test]
    fn no_text_breaks_the_reading(
        text in "(?s).{0,300}",
        words in "[a-z:\\-\\[\\]{}&*!|>'\"%@,?# \n\t0-9.${}]{0,200}",
    ) {
        for text in [text, words] {
            if let Err(error) = ConfigLayer::parse("c", &text) {
                prop_assert!(!error.to_string().contains('\n'), "{error}");
            }
            let _ = RoutingCondition::parse(&text);
            let _ = is_local(&text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The default configuration, cut or changed at any place, is parsed or rejected without a panic.
    #[test]
    fn a_file_cut_anywhere_is_read_or_refused(at in 0..system::DEFAULT_CONFIG.len(), with in any::<char>()) {
        let at = system::DEFAULT_CONFIG.floor_char_boundary(at);
        let cut = &system::DEFAULT_CONFIG[..at];
        let _ = ConfigLayer::parse("c", cut).map(|layer| merge(&[layer]));
        let mended = format!("{cut}{with}{}", &system::DEFAULT_CONFIG[at..]);
        let _ = ConfigLayer::parse("c", &mended).map(|layer| merge(&[layer]));
    }
}
