//! How the user, or the user's client, signs in at MCP servers with OAuth.

use super::{ConfigConflictError, is_local, values};
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
    /// An identity provider, which vouches for the user (SEP-990).
    CrossAppAccess,
}

/// What is known about the user's client at an MCP server's authorization server. Without it, the client registers
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauthConfig {
    /// The OAuth grant: a user or the program itself signs in.
    pub grant: McpOauthGrant,
    /// The id of a registered client, or the `https` address of a document that describes the client.
    pub client_id: Option<String>,
    /// The secret of a registered client, as `${NAME}`.
    pub client_secret: Option<String>,
    /// The private key of a registered client that signs in by itself, as `${NAME}`.
    pub private_key: Option<String>,
    /// The scopes to ask for; those that the server names if it's empty.
    pub scopes: Vec<String>,
    /// Who vouches for the user.
    #[serde(deserialize_with = "values::section")]
    pub identity_provider: McpIdentityConfig,
}

/// The identity provider that vouches for the user at an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpIdentityConfig {
    /// Who it is, as it writes itself into what it signs.
    #[serde(deserialize_with = "values::address")]
    pub issuer: Option<String>,
    /// Where it exchanges tokens.
    #[serde(deserialize_with = "values::address")]
    pub token_endpoint: Option<String>,
    /// The id of the client for which it issued the user's token.
    pub client_id: Option<String>,
    /// The secret of that client, as `${NAME}`.
    pub client_secret: Option<String>,
    /// The user's identity token (OpenID Connect), as `${NAME}`.
    pub id_token: Option<String>,
    /// A refresh token of the user instead, as `${NAME}`.
    pub refresh_token: Option<String>,
}

impl McpOauthConfig {
    /// Checks what must be there for its grant, and that secrets are named only.
    pub(super) fn check(&self, server: impl Fn() -> String) -> Result<(), ConfigConflictError> {
        let provider = &self.identity_provider;
        for (key, value) in [
            ("client_secret", &self.client_secret),
            ("private_key", &self.private_key),
            ("identity_provider.client_secret", &provider.client_secret),
            ("identity_provider.id_token", &provider.id_token),
            ("identity_provider.refresh_token", &provider.refresh_token),
        ] {
            if value.as_ref().is_some_and(|text| !text.starts_with("${")) {
                return Err(ConfigConflictError::PlainClientSecret { server: server(), key });
            }
        }
        for (key, value) in [("issuer", &provider.issuer), ("token_endpoint", &provider.token_endpoint)] {
            if value.as_ref().is_some_and(|text| !text.starts_with("https://") && !is_local(text)) {
                return Err(ConfigConflictError::PlainIdentityAddress { server: server(), key });
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
        let is_vouched = self.grant == McpOauthGrant::CrossAppAccess;
        let has_client = self.client_id.is_some() && self.client_secret.is_some();
        if is_vouched && !(has_client && provider.is_complete()) {
            return Err(ConfigConflictError::IncompleteIdentity { server: server() });
        }
        if !is_vouched && *provider != McpIdentityConfig::default() {
            return Err(ConfigConflictError::IdentityWithoutGrant { server: server() });
        }
        Ok(())
    }
}

impl McpIdentityConfig {
    fn is_complete(&self) -> bool {
        let has_one = self.id_token.is_some() != self.refresh_token.is_some();
        self.issuer.is_some() && self.token_endpoint.is_some() && self.client_id.is_some() && has_one
    }
}
