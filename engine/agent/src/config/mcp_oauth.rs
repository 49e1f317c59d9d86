//! How the user, or the user's client, signs in at MCP servers with OAuth.

use super::ConfigConflictError;
use serde::{Deserialize, Serialize};

/// Who signs in at an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpOauthGrant {
    /// The user, in a browser.
    #[default]
    AuthorizationCode,
    /// The client, with a secret or key of its own.
    ClientCredentials,
}

/// What is known about the user's client at an MCP server's authorization server. Without it, the client registers
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauthConfig {
    /// Who signs in.
    pub grant: McpOauthGrant,
    /// The id of a registered client, or the `https` address of a document that describes the client.
    pub client_id: Option<String>,
    /// The secret of a registered client, as `${NAME}`.
    pub client_secret: Option<String>,
    /// The private key of a registered client that signs in by itself, as `${NAME}`.
    pub private_key: Option<String>,
    /// The scopes to ask for; those that the server names if it's empty.
    pub scopes: Vec<String>,
}

impl McpOauthConfig {
    /// Checks what must be there for its grant, and that secrets are named only.
    pub(super) fn check(&self, server: impl Fn() -> String) -> Result<(), ConfigConflictError> {
        for (key, value) in [("client_secret", &self.client_secret), ("private_key", &self.private_key)] {
            if value.as_ref().is_some_and(|text| !text.starts_with("${")) {
                return Err(ConfigConflictError::PlainClientSecret { server: server(), key });
            }
        }
        let is_machine = self.grant == McpOauthGrant::ClientCredentials;
        let has_one = self.client_secret.is_some() != self.private_key.is_some();
        if is_machine && (self.client_id.is_none() || !has_one) {
            return Err(ConfigConflictError::NoClientCredentials { server: server() });
        }
        if !is_machine && self.private_key.is_some() {
            return Err(ConfigConflictError::KeyWithoutGrant { server: server() });
        }
        Ok(())
    }
}
