//! The MCP servers of the configuration: how they are reached, their tools, and the tokens of those where the user has
//! signed in.

use crate::maintenance::configuration;
use crate::maintenance::secrets::{SecretValue, UserSecrets};
use agent::config::{AgentConfig, McpServerConfig};
use agent::server_material::ServerOffer;
use agent::tool_spec::ToolSpec;
use agent::web_address::{WebAddress, is_listed};
use anyhow::{Context, bail};
use mcp::{McpServer, McpServerPool, McpSignIn, McpTransport, TokenVault, TokenVaultError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long tool servers may take to list their tools; later answers count for the next question.
const MCP_SERVERS_TIMEOUT: Duration = Duration::from_secs(15);
/// How the names of secrets begin that hold the tokens of servers.
const TOKEN_NAME_PREFIX: &str = "MCP_LOGIN_";
/// Number of letters of a host in the name of a secret.
const MAX_HOST_NAME_CHARS: usize = 60;

/// The user's secrets as the place of tokens.
pub struct SecretTokens(Arc<UserSecrets>);

impl SecretTokens {
    /// Keeps tokens among these secrets.
    pub fn new(secrets: Arc<UserSecrets>) -> SecretTokens {
        SecretTokens(secrets)
    }
}

/// Returns the name of the secret with the tokens for an address: the host, for people, and a hash of the whole.
fn token_name(url: &str) -> String {
    let host = WebAddress::read(url).map(|address| address.site.host).unwrap_or_default();
    let letters = host.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let host: String = letters.take(MAX_HOST_NAME_CHARS).collect();
    let hash = store::BlobHash::of(url.as_bytes()).to_string();
    format!("{TOKEN_NAME_PREFIX}{}_{}", host.to_uppercase(), &hash[..16])
}

impl TokenVault for SecretTokens {
    fn read(&self, url: &str) -> Result<Option<String>, TokenVaultError> {
        let found = self.0.get(&token_name(url)).map_err(|error| TokenVaultError(error.to_string()))?;
        Ok(found.map(|(value, _)| value.expose().to_owned()))
    }

    fn write(&self, url: &str, value: Option<&str>) -> Result<(), TokenVaultError> {
        let name = token_name(url);
        let written = match value {
            Some(value) => SecretValue::new(value.to_owned()).and_then(|value| self.0.set(&name, &value)).map(drop),
            None => self.0.remove(&name).map(drop),
        };
        written.map_err(|error| TokenVaultError(format!("the sign-in can't be kept: {error}")))
    }
}

/// Returns the tokens in a secret that [`SecretTokens`] wrote, so that no model and no log gets them.
pub(crate) fn tokens_in_secret(name: &str, value: &str) -> Vec<String> {
    if !name.starts_with(TOKEN_NAME_PREFIX) {
        return Vec::new();
    }
    let kept: serde_json::Value = serde_json::from_str(value).unwrap_or_default();
    let response = &kept["credentials"]["token_response"];
    let tokens = [&response["access_token"], &response["refresh_token"], &kept["client_secret"]];
    tokens.into_iter().filter_map(|token| token.as_str().map(str::to_owned)).collect()
}

/// Returns how a server of the configuration is reached; `None` if it has neither a command nor an address.
fn configured_server(
    name: &str,
    server: &McpServerConfig,
    config: &AgentConfig,
    secrets: Option<&UserSecrets>,
) -> anyhow::Result<Option<McpServer>> {
    let filled = |values: &BTreeMap<String, String>| -> anyhow::Result<BTreeMap<String, String>> {
        values.iter().map(|(key, value)| Ok((key.clone(), expand_secrets(value, secrets)?))).collect()
    };
    let way = match (&server.command, &server.url) {
        (Some(command), _) => McpTransport::Program {
            command: command.clone(),
            args: server.args.clone(),
            env: filled(&server.env)?,
            folder: None,
        },
        (None, Some(url)) => {
            check_server_address(url, config)?;
            if let Some(address) = &server.oauth.identity_provider.token_endpoint {
                check_server_address(address, config)?;
            }
            let sign_in = McpSignIn::configured(&server.oauth, |value| expand_secrets(value, secrets))?;
            McpTransport::Http { url: url.clone(), headers: filled(&server.headers)?, sign_in }
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(McpServer { name: name.to_owned(), way }))
}

/// Returns the server of this name in the configuration of a workspace, or at this address.
///
/// # Errors
/// Returns an error if the configuration can't be read, or has no such server.
pub fn find_mcp_server(workspace: &Path, name: &str, secrets: &UserSecrets) -> anyhow::Result<McpServer> {
    let config = configuration::load_config(workspace)?;
    if name.starts_with("http://") || name.starts_with("https://") {
        check_server_address(name, &config)?;
        let way = McpTransport::Http { url: name.to_owned(), headers: BTreeMap::new(), sign_in: McpSignIn::default() };
        return Ok(McpServer { name: name.to_owned(), way });
    }
    let known = config.mcp.servers.get(name).with_context(|| {
        let names: Vec<&str> = config.mcp.servers.keys().map(String::as_str).collect();
        match names.is_empty() {
            true => format!("there is no MCP server {name}: the configuration names none"),
            false => format!("there is no MCP server {name}; there are {}", names.join(", ")),
        }
    })?;
    configured_server(name, known, &config, Some(secrets))?.with_context(|| format!("{name} has no address"))
}

/// Lists the tools of the configured MCP servers, and what else they offer. They have the user's rights, so each call
/// of a tool needs approval.
pub(super) fn list_mcp_tools(
    servers: &McpServerPool,
    config: &AgentConfig,
    secrets: Option<&UserSecrets>,
    problems: &mut Vec<String>,
) -> (Vec<(String, String, ToolSpec)>, Vec<ServerOffer>) {
    let mut wanted = Vec::new();
    for (name, server) in config.mcp.servers.iter().filter(|(_, server)| server.enabled.unwrap_or(true)) {
        match configured_server(name, server, config, secrets) {
            Ok(server) => wanted.extend(server),
            Err(why) => problems.push(format!("the MCP server {name}: {why}")),
        }
    }
    let names: Vec<String> = wanted.iter().map(|server| server.name.clone()).collect();
    servers.configure(wanted);
    let ask = |name: String| (servers.list_tools(&name), servers.list_offers(&name), name);
    let pending: Vec<_> = names.into_iter().map(ask).collect();
    let (mut found, mut offers) = (Vec::new(), Vec::new());
    let until = Instant::now() + MCP_SERVERS_TIMEOUT;
    for (pending, offer, server) in pending {
        match pending.wait(until.saturating_duration_since(Instant::now())) {
            Some(Ok(listed)) => {
                problems.extend(listed.left_out);
                found.extend(listed.tools.into_iter().map(|tool| {
                    let spec = tool.specification(&server);
                    (server.clone(), tool.name, spec)
                }));
            }
            Some(Err(error)) => problems.push(error.to_string()),
            None => problems.push(format!("the MCP server {server} does not answer yet; its tools come later")),
        }
        // A server that can't be started has said so above.
        if let Some(Ok(mut offer)) = offer.wait(until.saturating_duration_since(Instant::now())) {
            problems.append(&mut offer.left_out);
            offers.push(offer);
        }
    }
    (found, offers)
}

/// Checks whether a server's address is allowed: if the network is restricted, its host must be on the list.
fn check_server_address(url: &str, config: &AgentConfig) -> anyhow::Result<()> {
    let address = WebAddress::read(url)?;
    let host = &address.site.host;
    if config.security.network_restricted && !is_listed(host, &config.security.allowed_hosts) {
        bail!("{host} is not on the list of hosts; add it to allowed_hosts to use this server");
    }
    Ok(())
}

/// Replaces `${NAME}` in a configuration value by the secret.
pub(super) fn expand_secrets(value: &str, secrets: Option<&UserSecrets>) -> anyhow::Result<String> {
    let mut filled = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').context("a ${ has no }")?;
        let key = secrets.map(|secrets| secrets.get(name)).transpose()?.flatten();
        let (key, _) = key.with_context(|| format!("{name} is missing: `tracebook secrets set {name}`"))?;
        filled.push_str(before);
        filled.push_str(key.expose());
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_names_that_secrets_may_have() {
        let name = token_name("https://mcp.example.org/mcp?x=1");
        assert!(name.starts_with("MCP_LOGIN_MCP_EXAMPLE_ORG_"), "{name}");
        assert_ne!(name, token_name("https://mcp.example.org/mcp?x=2"));
        assert!(token_name(&format!("https://{}.org/", "a".repeat(200))).len() <= 128);
        let kept = r#"{"credentials": {"token_response": {"access_token": "a1", "refresh_token": "r1"}}}"#;
        assert_eq!(tokens_in_secret(&name, kept), ["a1", "r1"]);
        assert!(tokens_in_secret("OPENAI_API_KEY", kept).is_empty());
    }
}
