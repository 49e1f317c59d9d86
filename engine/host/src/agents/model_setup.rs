//! Model setup for the user: finds servers on this machine, tests an address or a key, and changes `config.yaml` so
//! that agents use a model. A key is stored in the user's secrets and nowhere else.

use crate::agents::llm::{self, ProviderClient, ProviderTimeouts};
use crate::agents::mcp_servers::tokens_in_secret;
use crate::maintenance::config_edit::{ConfigChange, change_config};
use crate::maintenance::configuration;
use crate::maintenance::secrets::{SecretValue, UserSecrets};
use agent::config::{AgentConfig, is_local};
use agent::model_call::{ModelEndpoint, WireProtocol};
use agent::secrets::InstallationKeys;
use anyhow::{Context as _, anyhow};
use providers::{ProviderTestReport, wire_name};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time limit for a probe of a server that may not be running.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time limit for the connection of such a probe.
const PROBE_CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the time limits of a probe that the user hasn't requested.
fn probe_timeouts() -> ProviderTimeouts {
    ProviderTimeouts { connect: PROBE_CONNECT_TIMEOUT, provider_test: PROBE_TIMEOUT, ..ProviderTimeouts::default() }
}

/// A kind of provider that a user can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderKind {
    /// The provider's name under `llm.providers`.
    pub name: &'static str,
    /// The provider's display name.
    pub label: &'static str,
    /// The protocol that the provider uses.
    pub wire: WireProtocol,
    /// The base URL; `None`: the protocol's default.
    pub base_url: Option<&'static str>,
    /// The suggested model; empty: the user chooses.
    pub model: &'static str,
}

const fn kind(
    name: &'static str,
    label: &'static str,
    wire: WireProtocol,
    base_url: Option<&'static str>,
    model: &'static str,
) -> ProviderKind {
    ProviderKind { name, label, wire, base_url, model }
}

/// Providers that need a key.
pub const KEYED_PROVIDERS: [ProviderKind; 4] = [
    kind("anthropic", "Anthropic", WireProtocol::Anthropic, None, "claude-sonnet-4-5"),
    kind("openai", "OpenAI", WireProtocol::Responses, None, "gpt-5-mini"),
    kind("google", "Google", WireProtocol::Google, None, "gemini-2.5-flash"),
    kind("openrouter", "OpenRouter", WireProtocol::OpenAi, Some("https://openrouter.ai/api/v1"), "qwen/qwen3-coder"),
];

/// Local model servers at their default addresses.
pub const LOCAL_SERVERS: [ProviderKind; 4] = [
    kind("ollama", "Ollama", WireProtocol::Ollama, Some("http://127.0.0.1:11434"), ""),
    kind("llamacpp", "llama.cpp", WireProtocol::OpenAi, Some("http://127.0.0.1:8080/v1"), ""),
    kind("lmstudio", "LM Studio", WireProtocol::OpenAi, Some("http://127.0.0.1:1234/v1"), ""),
    kind("vllm", "vLLM", WireProtocol::OpenAi, Some("http://127.0.0.1:8000/v1"), ""),
];

/// Returns the kind of provider with this name.
pub fn provider_kind(name: &str) -> Option<ProviderKind> {
    KEYED_PROVIDERS.into_iter().chain(LOCAL_SERVERS).find(|kind| kind.name == name)
}

/// A provider as the user configures it. Has no `Debug`, because it may contain a key.
#[derive(Clone)]
pub struct NewProvider {
    /// The provider's name under `llm.providers`.
    pub name: String,
    /// The protocol that the provider uses.
    pub wire: WireProtocol,
    /// The base URL; `None`: the protocol's default.
    pub base_url: Option<String>,
    /// The key; `None`: it needs none, or the key is stored already.
    pub key: Option<SecretValue>,
}

impl NewProvider {
    /// Creates a provider of this kind.
    pub fn of_kind(kind: ProviderKind, key: Option<SecretValue>) -> NewProvider {
        NewProvider { name: kind.name.to_owned(), wire: kind.wire, base_url: kind.base_url.map(str::to_owned), key }
    }

    /// Creates a provider from an address, named after its host. It uses OpenAI's protocol unless the address is that
    /// of a known local server.
    ///
    /// # Errors
    /// Returns a message if the address isn't valid.
    pub fn at_address(address: &str, key: Option<SecretValue>) -> anyhow::Result<NewProvider> {
        let address = address.trim().trim_end_matches('/');
        let address = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let host = agent::web_address::WebAddress::read(&address)
            .map_err(|why| anyhow!("This isn't an address ({why}). It looks like http://127.0.0.1:8080/v1."))?
            .site
            .host;
        let known = LOCAL_SERVERS.into_iter().find(|kind| {
            let port = kind.base_url.and_then(|url| url.split(':').nth(2)).and_then(|rest| rest.split('/').next());
            is_local(&address)
                && port.is_some_and(|port| {
                    address.ends_with(&format!(":{port}")) || address.contains(&format!(":{port}/"))
                })
        });
        let letters = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name = known.map_or_else(|| host.chars().map(letters).collect(), |kind| kind.name.to_owned());
        let wire = known.map_or(WireProtocol::OpenAi, |kind| kind.wire);
        let path = address.splitn(4, '/').nth(3).unwrap_or_default();
        // Servers with OpenAI's protocol serve it below /v1.
        let base_url = if wire == WireProtocol::OpenAi && path.is_empty() { format!("{address}/v1") } else { address };
        Ok(NewProvider { name, wire, base_url: Some(base_url), key })
    }

    /// Returns the endpoint of one of the provider's models.
    pub fn endpoint(&self, model: &str) -> ModelEndpoint {
        let local = self.base_url.as_deref().map_or(self.wire == WireProtocol::Ollama, is_local);
        let key = self.key.as_ref().map(|_| self.key_name());
        ModelEndpoint {
            provider: self.name.clone(),
            wire: self.wire,
            base_url: self.base_url.clone(),
            model: model.to_owned(),
            key,
            local,
        }
    }

    /// Returns the name under which the provider's key is stored.
    pub fn key_name(&self) -> String {
        match self.name.as_str() {
            "google" => "GEMINI_API_KEY".to_owned(),
            name => format!("{}_API_KEY", name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
        }
    }

    /// Tests the provider by requesting its models. Blocks for a few seconds at most.
    ///
    /// # Errors
    /// Returns a message that says what to do.
    pub fn test(&self, timeouts: ProviderTimeouts) -> anyhow::Result<ProviderTestReport> {
        test_endpoint(self.endpoint(""), self.key.as_ref(), timeouts)
    }

    /// Makes one of the provider's models the one that agents use. A new key is stored in the user's secrets.
    ///
    /// # Errors
    /// Returns a message if the key can't be stored or the configuration can't be changed.
    pub fn save(
        &self,
        workspace: &Path,
        secrets: &UserSecrets,
        model: &str,
        context: Option<u64>,
    ) -> anyhow::Result<AgentConfig> {
        let mut changes = vec![
            change(&["llm", "providers", &self.name, "enabled"], json!(true)),
            change(&["llm", "providers", &self.name, "wire"], json!(wire_name(self.wire))),
            change(&["llm", "providers", &self.name, "model"], json!(model)),
        ];
        if let Some(base_url) = &self.base_url {
            changes.push(change(&["llm", "providers", &self.name, "base_url"], json!(base_url)));
        }
        if let Some(key) = &self.key {
            secrets.set(&self.key_name(), key)?;
            let named = format!("${{{}}}", self.key_name());
            changes.push(change(&["llm", "providers", &self.name, "api_key"], json!(named)));
        }
        if let Some(context) = context {
            changes.push(change(&["llm", "providers", &self.name, "context"], json!(context)));
        }
        let before = configuration::load_config(workspace)?;
        changes.extend(default_changes(&before, &self.endpoint(model)));
        change_config(workspace, &changes)
    }
}

fn change(names: &[&str], value: Value) -> ConfigChange {
    (names.iter().map(|name| (*name).to_owned()).collect(), Some(value))
}

/// Returns the changes that make an endpoint the default.
fn default_changes(before: &AgentConfig, endpoint: &ModelEndpoint) -> Vec<ConfigChange> {
    let mut changes = vec![change(&["llm", "default_provider"], json!(endpoint.provider))];
    if before.llm.prefer_local != endpoint.local {
        changes.push(change(&["llm", "prefer_local"], json!(endpoint.local)));
    }
    // An agent's own provider takes precedence over the default one.
    if before.agents.lead.llm_provider.as_ref().is_some_and(|own| *own != endpoint.provider) {
        changes.push(change(&["agents", "lead", "llm_provider"], json!(endpoint.provider)));
    }
    changes
}

/// Makes a model of a configured provider the one that agents use.
///
/// # Errors
/// Returns a message if there's no such provider or the configuration can't be changed.
pub fn choose_model(workspace: &Path, provider: &str, model: &str) -> anyhow::Result<AgentConfig> {
    let before = configuration::load_config(workspace)?;
    let endpoint = before.endpoint(provider).with_context(|| format!("there is no longer a provider “{provider}”"))?;
    let mut changes = vec![
        change(&["llm", "providers", provider, "enabled"], json!(true)),
        change(&["llm", "providers", provider, "model"], json!(model)),
    ];
    changes.extend(default_changes(&before, &endpoint));
    change_config(workspace, &changes)
}

/// Sets a provider's context size in tokens.
///
/// # Errors
/// Returns a message if the configuration can't be changed.
pub fn set_context(workspace: &Path, provider: &str, tokens: u64) -> anyhow::Result<AgentConfig> {
    change_config(workspace, &[change(&["llm", "providers", provider, "context"], json!(tokens))])
}

/// Returns the store of the user's secrets.
///
/// # Errors
/// Returns an error if there is no home folder for it.
pub fn user_secrets() -> anyhow::Result<UserSecrets> {
    let folder = configuration::user_config_folder();
    folder.map(|folder| UserSecrets::new(&folder)).context("there is no home folder to keep secrets in")
}

/// Returns the keys of this installation, for text that leaves the machine without an agent. An unreadable
/// configuration names none; the stored ones are included all the same.
pub(crate) fn installation_keys(workspace: &Path) -> InstallationKeys {
    let secrets = configuration::user_config_folder().map(|folder| UserSecrets::new(&folder));
    let config = configuration::load_config(workspace).unwrap_or_default();
    read_installation_keys(&config, secrets.as_ref())
}

/// Returns the values of all readable keys of this installation: stored ones, and those that the configuration names.
/// No model and no log may contain them.
pub(super) fn read_installation_keys(config: &AgentConfig, secrets: Option<&UserSecrets>) -> InstallationKeys {
    let Some(secrets) = secrets else { return InstallationKeys::default() };
    let kept = secrets.list().unwrap_or_default().into_iter().map(|(name, _)| name);
    let named = config.llm.providers.keys().filter_map(|name| config.endpoint(name)?.key);
    let names: BTreeSet<String> = kept.chain(named).collect();
    let read = |name: &String| {
        let value = secrets.get(name).ok()??.0.expose().to_owned();
        Some(tokens_in_secret(name, &value).into_iter().chain([value]).collect::<Vec<String>>())
    };
    InstallationKeys::new(names.iter().filter_map(read).flatten())
}

/// Requests the models of a configured provider, with its stored key. Blocks for a few seconds.
///
/// # Errors
/// Returns a message that says what to do.
pub fn list_models(endpoint: ModelEndpoint) -> anyhow::Result<ProviderTestReport> {
    let key = llm::read_endpoint_key(&endpoint, &user_secrets()?)?;
    test_endpoint(endpoint, key.as_ref(), ProviderTimeouts::default())
}

fn test_endpoint(
    endpoint: ModelEndpoint,
    key: Option<&SecretValue>,
    timeouts: ProviderTimeouts,
) -> anyhow::Result<ProviderTestReport> {
    let (tell, told) = channel();
    let client = ProviderClient::new(timeouts);
    client.test_provider(endpoint, key.map(|key| key.expose().to_owned()), move |found| {
        let _ = tell.send(found); // it has its own end
    });
    let found = told.recv().map_err(|_| anyhow!("It doesn't answer. Try again."))?;
    found.map_err(|failure| anyhow!(failure.why))
}

/// Returns the default provider's name and the context size that its server reports, if neither the configuration nor
/// the price list states one. Blocks for less than two seconds.
pub(crate) fn served_context(config: &AgentConfig, secrets: Option<&UserSecrets>) -> Option<(String, u64)> {
    let name = &config.llm.default_provider;
    let endpoint = config.endpoint(name).filter(|endpoint| matches!(endpoint.wire, WireProtocol::OpenAi))?;
    if !config.llm.providers.get(name)?.is_enabled() || llm::stated_context_tokens(config, &endpoint).is_some() {
        return None;
    }
    let key = llm::read_endpoint_key(&endpoint, secrets?).ok()?;
    let report = test_endpoint(endpoint, key.as_ref(), probe_timeouts()).ok()?;
    Some((name.clone(), report.context?))
}

/// A local server that was found, with its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The kind of server.
    pub kind: ProviderKind,
    /// The server's models, at least one.
    pub models: Vec<String>,
    /// The context size in tokens, if the server reports it for its only model.
    pub context: Option<u64>,
}

/// Probes these servers in parallel, and returns the running ones. Blocks for less than two seconds.
pub fn find_local_servers(kinds: &[ProviderKind]) -> Vec<LocalServer> {
    let probe = |kind: ProviderKind| {
        let report = NewProvider::of_kind(kind, None).test(probe_timeouts()).ok()?;
        let models = report.models.filter(|models| !models.is_empty())?;
        Some(LocalServer { kind, models, context: report.context })
    };
    std::thread::scope(|scope| {
        let probes: Vec<_> = kinds.iter().map(|kind| scope.spawn(move || probe(*kind))).collect();
        probes.into_iter().filter_map(|probe| probe.join().ok().flatten()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Starts a server that answers each request with this response, and returns its address.
    fn server(status: &'static str, body: &'static str) -> &'static str {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let _ = stream.read(&mut [0; 4_096]);
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        address.leak()
    }

    #[test]
    fn servers_that_run_are_found_with_their_models() {
        let there = server("200 OK", r#"{"data": [{"id": "qwen"}, {"id": "llama"}]}"#);
        let empty = server("200 OK", r#"{"data": []}"#);
        let kinds = [
            kind("one", "One", WireProtocol::OpenAi, Some(there), ""),
            kind("two", "Two", WireProtocol::OpenAi, Some(empty), ""),
            kind("three", "Three", WireProtocol::OpenAi, Some("http://127.0.0.1:1/v1"), ""),
        ];
        let found = find_local_servers(&kinds);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].kind.name, found[0].models.as_slice()),
            ("one", ["qwen".to_owned(), "llama".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_provider_is_tested_and_saved_without_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, "# mine\nllm:\n  # dollars\n  cost_limit: 2.0\n").expect("written");
        let secrets = UserSecrets::new(&folder.path().join("secrets")).without_keyring();
        let key = SecretValue::new("sk-planted".to_owned()).expect("a key");
        let wrong = NewProvider::at_address(server("401 Unauthorized", "{}"), Some(key.clone())).expect("an address");
        let why = wrong.test(ProviderTimeouts::default()).expect_err("refused").to_string();
        assert!(why.contains("does not accept the key") && !why.contains("planted"), "{why}");
        let provider = NewProvider { name: "work".to_owned(), ..wrong };
        let saved = provider.save(folder.path(), &secrets, "big", Some(65_536)).expect("saved");
        assert_eq!((saved.llm.default_provider.as_str(), saved.llm.cost_limit), ("work", Some(2.0)));
        let written = std::fs::read_to_string(&config).expect("there");
        assert!(written.starts_with("# mine\nllm:\n  # dollars\n  cost_limit: 2.0\n"), "{written}");
        assert!(written.contains("${WORK_API_KEY}") && !written.contains("planted"), "{written}");
        assert_eq!(
            secrets.get("WORK_API_KEY").expect("readable").map(|(key, _)| key.expose().to_owned()),
            Some("sk-planted".to_owned())
        );
        let saved = choose_model(folder.path(), "work", "small").expect("chosen");
        assert_eq!(saved.endpoint("work").map(|endpoint| endpoint.model), Some("small".to_owned()));
        assert_eq!(set_context(folder.path(), "work", 9_000).expect("set").llm.providers["work"].context, Some(9_000));
    }

    #[test]
    fn addresses_become_providers() {
        let at = |text: &str| {
            NewProvider::at_address(text, None).ok().map(|one| (one.name, one.wire, one.base_url.unwrap_or_default()))
        };
        let ollama = Some(("ollama".to_owned(), WireProtocol::Ollama, "http://localhost:11434".to_owned()));
        assert_eq!(at("localhost:11434"), ollama);
        let studio = Some(("lmstudio".to_owned(), WireProtocol::OpenAi, "http://127.0.0.1:1234/v1".to_owned()));
        assert_eq!(at("http://127.0.0.1:1234/"), studio);
        let host = Some(("api-acme-com".to_owned(), WireProtocol::OpenAi, "https://api.acme.com/openai".to_owned()));
        assert_eq!(at("https://api.acme.com/openai"), host);
        assert!(at("").is_none() && at("not an address").is_none());
    }
}
