//! Cross-app access (SEP-990): an identity provider vouches for the user. It exchanges the user's token for an
//! assertion that counts at one MCP server only (RFC 8693). The authorization server of that server gives a token for
//! the assertion (RFC 7523).

use crate::machine_sign_in::MachineSignInError;
use crate::sign_in::McpSignIn;
use agent::config::McpIdentityConfig;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAuthentication, EmaError, EmaExchangeRequest, EmaExchangeStage,
};
use rmcp::transport::auth::{
    AuthorizationMetadata, CredentialStore, InMemoryCredentialStore, OAuthTokenResponse, StoredCredentials,
    default_oauth_http_client,
};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The identity provider that vouches for the user at a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpIdentityProvider {
    /// Who it is, as it writes itself into what it signs.
    pub issuer: String,
    /// Where it exchanges tokens.
    pub token_endpoint: String,
    /// The id of the client for which it issued the user's token.
    pub client_id: String,
    /// The secret of that client, if it has one.
    pub client_secret: Option<String>,
    /// The user's identity token (OpenID Connect).
    pub id_token: Option<String>,
    /// A refresh token of the user, used if there's no identity token.
    pub refresh_token: Option<String>,
}

impl std::fmt::Debug for McpIdentityProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its tokens are the user's identity.
        f.debug_struct("McpIdentityProvider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl McpIdentityProvider {
    /// Reads what the configuration says; `None` if it names no provider. `secret` returns a value with the secrets
    /// that it names.
    pub(crate) fn configured<E>(
        config: &McpIdentityConfig,
        secret: impl Fn(&Option<String>) -> Result<Option<String>, E>,
    ) -> Result<Option<McpIdentityProvider>, E> {
        let (Some(issuer), Some(token_endpoint), Some(client_id)) =
            (&config.issuer, &config.token_endpoint, &config.client_id)
        else {
            return Ok(None);
        };
        Ok(Some(McpIdentityProvider {
            issuer: issuer.clone(),
            token_endpoint: token_endpoint.clone(),
            client_id: client_id.clone(),
            client_secret: secret(&config.client_secret)?,
            id_token: secret(&config.id_token)?,
            refresh_token: secret(&config.refresh_token)?,
        }))
    }

    fn server(&self) -> Result<EmaAuthorizationServer, MachineSignInError> {
        let server = EmaAuthorizationServer::new(&self.issuer, &self.token_endpoint, &self.client_id);
        Ok(match &self.client_secret {
            Some(secret) => server.with_client_authentication(client_authentication(secret, true)?),
            None => server,
        })
    }
}

/// Returns how a client with a secret shows who it is: in a header, or in the form that it sends.
fn client_authentication(secret: &str, in_header: bool) -> Result<EmaClientAuthentication, MachineSignInError> {
    // The type is of a crate that only `rmcp` names. It's read from any text.
    let secret = Value::from(secret);
    Ok(match in_header {
        true => EmaClientAuthentication::ClientSecretBasic(
            serde_json::from_value(secret).map_err(|_| MachineSignInError::IncompleteIdentity)?,
        ),
        false => EmaClientAuthentication::ClientSecretPost(
            serde_json::from_value(secret).map_err(|_| MachineSignInError::IncompleteIdentity)?,
        ),
    })
}

/// Whether an authorization server takes secrets of clients in a header. It does unless it names only the other way.
fn takes_header(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
    let has = |name: &str| methods.is_some_and(|known| known.iter().any(|method| method.as_str() == Some(name)));
    has("client_secret_basic") || !has("client_secret_post")
}

/// Returns what a failed exchange means for the user. It holds nothing that a server said.
fn explain(error: &EmaError) -> String {
    let who = |stage: &EmaExchangeStage| match stage {
        EmaExchangeStage::IdentityProvider => "the identity provider",
        _ => "the authorization server",
    };
    match error {
        EmaError::InvalidGrant(EmaExchangeStage::IdentityProvider)
        | EmaError::InsufficientUserAuthentication(EmaExchangeStage::IdentityProvider) => {
            "the identity provider doesn't accept the user's token, which may have expired; get a new one, and keep it \
             with `tracebook secrets set`"
                .to_owned()
        }
        EmaError::InvalidGrant(stage) => format!("{} doesn't accept the identity provider's assertion", who(stage)),
        EmaError::InsufficientUserAuthentication(stage) => format!("{} wants a stronger sign-in", who(stage)),
        EmaError::OAuthRejected { stage, status, code } => format!("{} refused: {code} (HTTP {status})", who(stage)),
        EmaError::RequestFailed(stage) => format!("{} can't be reached", who(stage)),
        EmaError::InvalidResponse { stage, message } => format!("{} gave an unusable answer: {message}", who(stage)),
        EmaError::InvalidRequest(why) => format!("nothing was sent: {why}"),
        _ => "the exchange of tokens failed".to_owned(),
    }
}

/// What is needed to get tokens for one MCP server.
pub(crate) struct IdentityExchange {
    provider: McpIdentityProvider,
    server: EmaAuthorizationServer,
    resource: String,
    scopes: Vec<String>,
    store: InMemoryCredentialStore,
}

impl IdentityExchange {
    /// Prepares an exchange for a server with this authorization server.
    pub(crate) fn new(
        settings: &McpSignIn,
        metadata: &AuthorizationMetadata,
        resource: String,
        scopes: Vec<String>,
        store: InMemoryCredentialStore,
    ) -> Result<IdentityExchange, MachineSignInError> {
        let incomplete = || MachineSignInError::IncompleteIdentity;
        let provider = settings.identity_provider.clone().ok_or_else(incomplete)?;
        let client_id = settings.client_id.as_ref().ok_or_else(incomplete)?;
        let secret = settings.client_secret.as_ref().ok_or_else(incomplete)?;
        // The assertion is for the server with this name only.
        let issuer = metadata.issuer.as_ref().ok_or(MachineSignInError::Undescribed)?;
        let server = EmaAuthorizationServer::new(issuer, &metadata.token_endpoint, client_id)
            .with_client_authentication(client_authentication(secret, takes_header(metadata))?);
        Ok(IdentityExchange { provider, server, resource, scopes, store })
    }

    /// Gets a token, and keeps it for the requests that follow.
    pub(crate) async fn exchange(&self) -> Result<(), MachineSignInError> {
        let (provider, server) = (self.provider.server()?, self.server.clone());
        let http = default_oauth_http_client()?;
        let refresh;
        let request = match (&self.provider.id_token, &self.provider.refresh_token) {
            (Some(token), _) => EmaExchangeRequest::new_with_id_token(provider, server, &self.resource, token),
            (None, Some(token)) => {
                refresh = serde_json::from_value(Value::from(token.as_str()))
                    .map_err(|_| MachineSignInError::IncompleteIdentity)?;
                EmaExchangeRequest::new(provider, server, &self.resource, &refresh)
            }
            (None, None) => return Err(MachineSignInError::IncompleteIdentity),
        };
        let exchanged = request.with_scopes(self.scopes.iter().cloned()).exchange(&http, &http).await;
        let granted = exchanged.map_err(|error| MachineSignInError::Identity(explain(&error)))?;
        let response = json!({"access_token": granted.access_token.secret(), "token_type": "bearer",
            "expires_in": granted.expires_in.map(|time| time.as_secs())});
        let token: OAuthTokenResponse = serde_json::from_value(response)
            .map_err(|_| MachineSignInError::Refused("its answer has no token".to_owned()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let scopes = granted.scopes.into_iter().collect();
        let kept = StoredCredentials::new(self.server.client_id.clone(), Some(token), scopes, Some(now));
        Ok(self.store.save(kept).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_users_are_not_printed() {
        let provider = McpIdentityProvider {
            issuer: "https://idp.example".to_owned(),
            client_secret: Some("c1".to_owned()),
            id_token: Some("t1".to_owned()),
            refresh_token: Some("t2".to_owned()),
            ..McpIdentityProvider::default()
        };
        let printed = format!("{provider:?}");
        assert!(printed.contains("idp.example"), "{printed}");
        assert!(!["c1", "t1", "t2"].iter().any(|secret| printed.contains(secret)), "{printed}");
    }

    #[test]
    fn a_secret_is_sent_in_the_form_only_where_the_server_names_no_other_way() {
        let takes = |methods: Value| {
            let metadata = json!({"authorization_endpoint": "", "token_endpoint": "",
                "token_endpoint_auth_methods_supported": methods});
            let metadata: AuthorizationMetadata = serde_json::from_value(metadata).expect("metadata");
            takes_header(&metadata)
        };
        assert!(takes(json!(["client_secret_basic", "client_secret_post"])));
        assert!(takes(json!(null)));
        assert!(!takes(json!(["client_secret_post"])));
    }
}
