//! Signing in at MCP servers with OAuth: a page in the user's browser gives a code to a port of this computer, and the
//! server's authorization server gives tokens for the code. Tokens are kept where other secrets are.

use crate::authorization_discovery::find_authorization_server;
use crate::cross_app_access::McpIdentityProvider;
use crate::machine_sign_in::checked_endpoint;
use crate::{McpError, McpServer, McpTransport, SERVER_START_TIMEOUT};
use agent::config::{McpOauthConfig, McpOauthGrant};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, AuthorizationRequest,
    AuthorizationSession, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long the user may take in the browser.
pub const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum size in bytes of the request with which the browser comes back, and the time that it may take.
const MAX_CALLBACK_BYTES: usize = 16 << 10;
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(10);
/// Path at which the browser comes back.
const CALLBACK_PATH: &str = "/callback";
/// Name under which this program registers at authorization servers.
const CLIENT_NAME: &str = "Tracebook";
/// What the browser shows at the end.
const DONE_PAGE: &str = "You can close this page and go back to Tracebook.";

/// How this program is known to a server's authorization server, if the user has arranged that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct McpSignIn {
    /// The OAuth grant: a user or the program itself signs in.
    pub grant: McpOauthGrant,
    /// The id of a registered client, or the `https` address of a document that describes the client.
    pub client_id: Option<String>,
    /// The secret of a registered client.
    pub client_secret: Option<String>,
    /// The private key of a registered client that signs in by itself, in PEM form.
    pub private_key: Option<String>,
    /// The scopes to ask for; those that the server names if it's empty.
    pub scopes: Vec<String>,
    /// Who vouches for the user. It's never written anywhere.
    #[serde(skip)]
    pub identity_provider: Option<McpIdentityProvider>,
}

impl McpSignIn {
    /// Reads what the configuration says about a server. `expand` returns a value with the secrets that it names.
    ///
    /// # Errors
    /// Returns the error of `expand`, such as a missing secret.
    pub fn configured<E>(oauth: &McpOauthConfig, expand: impl Fn(&str) -> Result<String, E>) -> Result<McpSignIn, E> {
        let secret = |value: &Option<String>| value.as_deref().map(&expand).transpose();
        Ok(McpSignIn {
            grant: oauth.grant,
            client_id: oauth.client_id.clone(),
            client_secret: secret(&oauth.client_secret)?,
            private_key: secret(&oauth.private_key)?,
            scopes: oauth.scopes.clone(),
            identity_provider: McpIdentityProvider::configured(&oauth.identity_provider, secret)?,
        })
    }
}

/// Why tokens can't be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenVaultError(pub String);

/// Where tokens are kept, by the address of their server. Values are secrets.
pub trait TokenVault: Send + Sync + 'static {
    /// Reads what was written for a server.
    ///
    /// # Errors
    /// Returns an error if it's there but can't be read now.
    fn read(&self, url: &str) -> Result<Option<String>, TokenVaultError>;

    /// Writes what is kept for a server, or removes it.
    ///
    /// # Errors
    /// Returns an error if it can't be written.
    fn write(&self, url: &str, value: Option<&str>) -> Result<(), TokenVaultError>;
}

/// Why signing in failed.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Only servers with an address have accounts.
    #[error("{0} is a program on this computer; nobody signs in there")]
    NotRemote(String),
    /// The configuration says that nobody has to.
    #[error("{0} needs no browser: its client signs in by itself, as the configuration says")]
    NotByUser(String),
    /// The server answers without tokens.
    #[error("{0} doesn't ask anybody to sign in")]
    NotAsked(String),
    /// The server isn't there, or refuses for another reason.
    #[error("{0}")]
    Server(#[from] McpError),
    /// No port for the browser.
    #[error("no port of this computer is free for the browser's answer: {0}")]
    Port(std::io::Error),
    /// The authorization server refused, or its description is unusable.
    #[error("signing in failed: {0}")]
    Refused(String),
    /// The user hasn't finished in the browser.
    #[error("nobody signed in within {} minutes; try again", SIGN_IN_TIMEOUT.as_secs() / 60)]
    TimedOut,
    /// The tokens can't be kept.
    #[error(transparent)]
    Vault(#[from] TokenVaultError),
}

fn refused(error: &AuthError) -> SignInError {
    SignInError::Refused(error.to_string())
}

/// What is kept for a server.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptSignIn {
    /// The client as registered.
    client_id: Option<String>,
    client_secret: Option<String>,
    /// Where the browser came back; registered clients are bound to it, but for the port.
    redirect_uri: Option<String>,
    credentials: Option<StoredCredentials>,
    /// The server's last `WWW-Authenticate`, which says what the next sign-in must ask for.
    challenge: Option<String>,
    /// The `WWW-Authenticate` by which the authorization server was found. Some servers name their metadata only there.
    found_by: Option<String>,
}

/// The tokens of one server.
#[derive(Clone)]
pub(crate) struct ServerTokens {
    vault: Arc<dyn TokenVault>,
    url: String,
}

impl ServerTokens {
    pub(crate) fn new(vault: Arc<dyn TokenVault>, url: &str) -> ServerTokens {
        ServerTokens { vault, url: url.to_owned() }
    }

    async fn read(&self) -> Result<KeptSignIn, TokenVaultError> {
        let tokens = self.clone();
        // The keyring may take its time.
        let read = tokio::task::spawn_blocking(move || tokens.vault.read(&tokens.url)).await;
        let read = read.map_err(|_| TokenVaultError("the program is closing".to_owned()))??;
        // What another version wrote is as good as nothing: the user signs in again.
        Ok(read.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    async fn change(&self, change: impl FnOnce(&mut KeptSignIn)) -> Result<(), TokenVaultError> {
        let mut kept = self.read().await?;
        change(&mut kept);
        let text = serde_json::to_string(&kept).map_err(|error| TokenVaultError(error.to_string()))?;
        let tokens = self.clone();
        let written = tokio::task::spawn_blocking(move || tokens.vault.write(&tokens.url, Some(&text))).await;
        written.map_err(|_| TokenVaultError("the program is closing".to_owned()))?
    }

    /// Keeps what the server asks for.
    pub(crate) async fn keep_challenge(&self, challenge: &str) {
        // Without it, signing in asks the server again.
        let _ = self.change(|kept| kept.challenge = Some(challenge.to_owned())).await;
    }

    /// Returns what adds tokens to requests and renews them; `None` if nobody has signed in.
    pub(crate) async fn manager(&self, settings: &McpSignIn) -> Result<Option<AuthorizationManager>, AuthError> {
        let kept = self.read().await.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        let Some(credentials) = kept.credentials.filter(|known| known.token_response.is_some()) else {
            return Ok(None);
        };
        let mut manager = AuthorizationManager::new(self.url.as_str()).await?;
        let found = find_authorization_server(&manager, &self.url, kept.found_by.as_deref()).await?;
        // A refresh token of a known authorization server isn't sent to an address that is only assumed.
        let is_lost =
            credentials.issuer.is_some() && found.source == AuthorizationMetadataSource::LegacyEndpointFallback;
        if is_lost || check_addresses(&self.url, &found.metadata).is_err() {
            return Ok(None);
        }
        manager.set_metadata(found.metadata);
        manager.set_credential_store(self.clone());
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        if let (Some(id), Some(redirect)) = (&kept.client_id, &kept.redirect_uri) {
            let mut client = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = settings.client_secret.as_ref().or(kept.client_secret.as_ref()) {
                client = client.with_client_secret(secret);
            }
            manager.configure_client(client)?;
        }
        Ok(Some(manager))
    }
}

/// Checks that codes and tokens go only to safe addresses.
fn check_addresses(server: &str, metadata: &AuthorizationMetadata) -> Result<(), SignInError> {
    let server = Url::parse(server).map_err(|error| SignInError::Refused(error.to_string()))?;
    for endpoint in [&metadata.token_endpoint, &metadata.authorization_endpoint] {
        checked_endpoint(&server, endpoint).map_err(|error| SignInError::Refused(error.to_string()))?;
    }
    Ok(())
}

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

fn store_error(error: &TokenVaultError) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

// Written out as `async_trait` expands it, which this crate needs nowhere else.
impl CredentialStore for ServerTokens {
    fn load<'a, 'b>(&'a self) -> StoreFuture<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { Ok(self.read().await.map_err(|error| store_error(&error))?.credentials) })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let keep = |kept: &mut KeptSignIn| kept.credentials = Some(credentials);
            self.change(keep).await.map_err(|error| store_error(&error))
        })
    }

    fn clear<'a, 'b>(&'a self) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.change(|kept| kept.credentials = None).await.map_err(|error| store_error(&error)) })
    }
}

/// Waits for the browser, and returns the address with which it came back.
async fn browser_answer(listener: &TcpListener, redirect: &str) -> Result<String, SignInError> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(SignInError::Port)?;
        let Ok(Some(target)) = tokio::time::timeout(CALLBACK_TIMEOUT, request_target(&mut stream)).await else {
            continue;
        };
        let query = target.strip_prefix(CALLBACK_PATH).and_then(|rest| rest.strip_prefix('?'));
        let (status, page) = if query.is_some() { ("200 OK", DONE_PAGE) } else { ("404 Not Found", "") };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: \
             no-store\r\nConnection: close\r\n\r\n{page}",
            page.len()
        );
        // The code is here, whether or not the browser shows the page.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if let Some(query) = query {
            return Ok(format!("{redirect}?{query}"));
        }
    }
}

/// Reads the target of an HTTP request; `None` if it's none, or too long.
async fn request_target(stream: &mut TcpStream) -> Option<String> {
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        received.extend_from_slice(&buffer[..count]);
        if received.len() > MAX_CALLBACK_BYTES {
            return None;
        }
    }
    let head = String::from_utf8(received).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

/// Returns the error that the authorization server sent through the browser.
fn answered_error(answer: &str) -> Option<String> {
    let address = reqwest::Url::parse(answer).ok()?;
    let value = |name: &str| address.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let (error, about) = (value("error")?, value("error_description"));
    let said = about.map_or(error.clone(), |about| format!("{error}: {about}"));
    Some(said.chars().filter(|letter| !letter.is_control()).take(500).collect())
}

/// Signs in at a server that `challenge` asks to, and keeps the tokens.
async fn sign_in_at(
    url: &str,
    settings: &McpSignIn,
    tokens: &ServerTokens,
    challenge: Option<&str>,
    show_address: impl FnOnce(&str) + Send,
) -> Result<(), SignInError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(SignInError::Port)?;
    let port = listener.local_addr().map_err(SignInError::Port)?.port();
    let redirect = format!("http://127.0.0.1:{port}{CALLBACK_PATH}");
    let before = tokens.read().await?;
    let mut manager = AuthorizationManager::new(url).await.map_err(|error| refused(&error))?;
    manager.set_credential_store(tokens.clone());
    let found = find_authorization_server(&manager, url, challenge).await.map_err(|error| refused(&error))?;
    check_addresses(url, &found.metadata)?;
    let is_metadata_url = |id: &String| id.starts_with("https://");
    let takes_metadata_url = found.metadata.additional_fields.get("client_id_metadata_document_supported")
        == Some(&serde_json::Value::Bool(true));
    manager.set_metadata(found.metadata);
    // More rights are asked for together with those that are there already.
    let granted = before.credentials.map(|credentials| credentials.granted_scopes).unwrap_or_default();
    let mut scopes = settings.scopes.clone();
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
        scopes.extend(granted.into_iter().filter(|scope| !scope.is_empty()));
    }
    let mut seen = std::collections::BTreeSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    let mut request = AuthorizationRequest::new(&redirect).with_client_name(CLIENT_NAME).with_scopes(&scopes);
    let (client_id, client_secret) = match &settings.client_id {
        Some(id) if is_metadata_url(id) && takes_metadata_url => {
            request = request.with_client_metadata_url(id);
            (id.clone(), None)
        }
        Some(id) if !is_metadata_url(id) => (id.clone(), settings.client_secret.clone()),
        _ => {
            let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let client = manager.register_client(CLIENT_NAME, &redirect, &names).await;
            let client = client.map_err(|error| match &error {
                AuthError::RegistrationFailed(why) if why.contains("not supported") => SignInError::Refused(
                    "the server takes only registered clients; register one there, and name its client_id under \
                     oauth in the configuration"
                        .to_owned(),
                ),
                _ => refused(&error),
            })?;
            (client.client_id, client.client_secret)
        }
    };
    if request.client_metadata_url.is_none() {
        request = request.with_preregistered_client(&client_id);
        if let Some(secret) = &client_secret {
            request = request.with_client_secret(secret);
        }
    }
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| refused(&error))?;
    show_address(session.get_authorization_url());
    let answer = browser_answer(&listener, &redirect).await?;
    if let Some(error) = answered_error(&answer) {
        return Err(SignInError::Refused(error));
    }
    session.handle_callback_url(&answer).await.map_err(|error| refused(&error))?;
    let keep = |kept: &mut KeptSignIn| {
        (kept.client_id, kept.client_secret) = (Some(client_id), client_secret);
        (kept.redirect_uri, kept.challenge) = (Some(redirect), None);
        kept.found_by = challenge.map(str::to_owned);
    };
    Ok(tokens.change(keep).await?)
}

/// Signs in at a server: `show_address` gets the address that the user opens in a browser.
///
/// # Errors
/// Returns an error if the server doesn't ask for it, the user refuses or takes too long, or the tokens can't be kept.
pub fn sign_in(
    server: &McpServer,
    vault: Arc<dyn TokenVault>,
    show_address: impl FnOnce(&str) + Send,
) -> Result<(), SignInError> {
    let McpTransport::Http { url, sign_in: settings, .. } = &server.way else {
        return Err(SignInError::NotRemote(server.name.clone()));
    };
    if settings.grant != McpOauthGrant::AuthorizationCode {
        return Err(SignInError::NotByUser(server.name.clone()));
    }
    // The provider is installed once per process. Another part of the program may already have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SignInError::Port)?;
    let tokens = ServerTokens::new(vault, url);
    let done = runtime.block_on(async {
        let mut challenge = tokens.read().await?.challenge;
        if challenge.is_none() {
            let probe =
                crate::connection::McpConnection::new(server.clone(), Some(tokens.vault.clone()), Default::default());
            let listed = tokio::time::timeout(SERVER_START_TIMEOUT, probe.list_tools()).await;
            probe.close().await;
            match listed {
                Ok(Err(McpError::SignInNeeded { .. })) => challenge = tokens.read().await?.challenge,
                Ok(Ok(_)) => return Err(SignInError::NotAsked(server.name.clone())),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let (server, seconds) = (server.name.clone(), SERVER_START_TIMEOUT.as_secs());
                    return Err(McpError::TimedOut { server, seconds }.into());
                }
            }
        }
        let work = sign_in_at(url, settings, &tokens, challenge.as_deref(), show_address);
        tokio::time::timeout(SIGN_IN_TIMEOUT, work).await.map_err(|_| SignInError::TimedOut)?
    });
    runtime.shutdown_background();
    done
}

/// Forgets the tokens of a server. Returns whether there were any.
///
/// # Errors
/// Returns an error if they can't be removed.
pub fn sign_out(server: &McpServer, vault: &dyn TokenVault) -> Result<bool, SignInError> {
    let McpTransport::Http { url, .. } = &server.way else {
        return Err(SignInError::NotRemote(server.name.clone()));
    };
    let was_there = vault.read(url)?.is_some();
    vault.write(url, None)?;
    Ok(was_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_browser_says_is_bounded() {
        let refused = "http://127.0.0.1:1/callback?error=access_denied&error_description=not%0Atoday&state=x";
        assert_eq!(answered_error(refused).as_deref(), Some("access_denied: nottoday"));
        assert_eq!(answered_error("http://127.0.0.1:1/callback?code=x&state=y"), None);
        let long = format!("http://127.0.0.1:1/callback?error={}", "x".repeat(9_000));
        assert_eq!(answered_error(&long).map(|said| said.len()), Some(500));
    }
}
