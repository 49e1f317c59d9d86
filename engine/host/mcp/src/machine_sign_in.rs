//! Signing in at MCP servers without a person: a registered client gets tokens for its own secret or private key (OAuth
//! client credentials), or for what an identity provider says of the user. Tokens stay in memory, because they can be
//! had again at any time.

use crate::cross_app_access::IdentityExchange;
use crate::sign_in::McpSignIn;
use agent::config::McpOauthGrant;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadataSource, ClientCredentialsConfig, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;

/// How long an authorization server may take for a token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of its answer in bytes.
const MAX_TOKEN_ANSWER_BYTES: usize = 64 << 10;
/// Maximum length of what it says about a refusal, in characters.
const MAX_REFUSAL_CHARS: usize = 300;
/// How long an assertion is valid. It's used at once.
const ASSERTION_SECONDS: u64 = 300;
/// What can be signed with the key of a client, best first, with the name in assertions.
const SIGNATURES: [(SignatureScheme, &str); 3] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, "ES256"),
    (SignatureScheme::ECDSA_NISTP384_SHA384, "ES384"),
    (SignatureScheme::RSA_PKCS1_SHA256, "RS256"),
];
/// A scope that asks for refresh tokens, which a client with credentials doesn't need.
const OFFLINE_SCOPE: &str = "offline_access";

/// Why there's no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MachineSignInError {
    /// The protocol's part failed.
    #[error("{0}")]
    Auth(#[from] AuthError),
    /// The configuration is incomplete.
    #[error("client_id, and client_secret or private_key, are missing")]
    Incomplete,
    /// The configuration names no client, or nobody who vouches for the user.
    #[error("client_id, client_secret or identity_provider is missing")]
    IncompleteIdentity,
    /// The user's token can't be exchanged.
    #[error("{0}")]
    Identity(String),
    /// The server names no authorization server. The secret isn't sent to a guessed address.
    #[error("the server doesn't say where to get tokens")]
    Undescribed,
    /// The secret would be sent in the clear.
    #[error("the address for tokens isn't https: {0}")]
    PlainEndpoint(String),
    /// Anybody on the way could answer for the server, and choose where the secret goes.
    #[error("the server's address isn't https, so no secret is sent for it: {0}")]
    PlainServer(String),
    /// The private key can't be read.
    #[error("private_key isn't an RSA, P-256 or P-384 key in PEM form")]
    Key,
    /// The authorization server can't be reached.
    #[error("the authorization server can't be reached: {0}")]
    Unreachable(#[from] reqwest::Error),
    /// The authorization server refused, or its answer is unusable.
    #[error("the authorization server refused: {0}")]
    Refused(String),
}

/// How a client proves who it is.
enum ClientProof {
    Secret(ClientCredentialsConfig),
    Key(AssertionRequest),
    Identity(IdentityExchange),
}

/// What is needed for a token request that a private key signs.
struct AssertionRequest {
    client_id: String,
    key: Arc<dyn SigningKey>,
    endpoint: Url,
    audience: String,
    resource: String,
    scopes: Vec<String>,
    store: InMemoryCredentialStore,
}

/// A sign-in that renews itself.
pub(crate) struct MachineSignIn {
    manager: Arc<Mutex<AuthorizationManager>>,
    proof: ClientProof,
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the address for tokens, if a secret may be sent there.
pub(crate) fn checked_endpoint(server: &Url, endpoint: &str) -> Result<Url, MachineSignInError> {
    let plain = || MachineSignInError::PlainEndpoint(endpoint.chars().take(MAX_REFUSAL_CHARS).collect());
    if server.scheme() != "https" && !is_loopback(server) {
        return Err(MachineSignInError::PlainServer(server.origin().ascii_serialization()));
    }
    let url = Url::parse(endpoint).map_err(|_| plain())?;
    let is_local = url.scheme() == "http" && is_loopback(server) && is_loopback(&url);
    if url.scheme() == "https" || is_local { Ok(url) } else { Err(plain()) }
}

/// Reads a key in PEM form. Secrets are one line, so spaces and `\n` stand for line breaks, too.
fn signing_key(pem: &str) -> Option<Arc<dyn SigningKey>> {
    let pem = pem.replace("\\n", "\n");
    let (label, rest) = pem.split_once("-----BEGIN ")?.1.split_once("-----")?;
    let body: String = rest.split_once("-----END ")?.0.split_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    let der = match label {
        "PRIVATE KEY" => PrivateKeyDer::Pkcs8(der.into()),
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(der.into()),
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(der.into()),
        _ => return None,
    };
    let key = rustls::crypto::ring::sign::any_supported_type(&der).ok()?;
    // A key for something else than these signatures is none here.
    key.choose_scheme(&SIGNATURES.map(|(scheme, _)| scheme)).is_some().then_some(key)
}

/// Converts an ECDSA signature from ASN.1 to the two numbers of `width` bytes that assertions hold.
fn plain_signature(der: &[u8], width: usize) -> Option<Vec<u8>> {
    // Both numbers together are shorter than what needs a longer form of length.
    let [0x30, _, rest @ ..] = der else { return None };
    let (mut rest, mut plain) = (rest, Vec::with_capacity(2 * width));
    for _ in 0..2 {
        let [0x02, length, tail @ ..] = rest else { return None };
        let (number, after) = tail.split_at_checked(usize::from(*length))?;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let digits = &number[zeros..];
        plain.extend(std::iter::repeat_n(0, width.checked_sub(digits.len())?));
        plain.extend_from_slice(digits);
        rest = after;
    }
    Some(plain)
}

/// Returns a signed assertion that a client is itself (RFC 7523).
fn assertion(client: &str, audience: &str, key: &dyn SigningKey, now: u64) -> Option<String> {
    let signer = key.choose_scheme(&SIGNATURES.map(|(scheme, _)| scheme))?;
    let (scheme, name) = SIGNATURES.into_iter().find(|(scheme, _)| *scheme == signer.scheme())?;
    let mut id = [0; 16];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut id).ok()?;
    let header = json!({"alg": name, "typ": "client-authentication+jwt"});
    let claims = json!({"iss": client, "sub": client, "aud": audience, "iat": now, "exp": now + ASSERTION_SECONDS,
        "jti": URL_SAFE_NO_PAD.encode(id)});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&header), part(&claims));
    let signature = signer.sign(text.as_bytes()).ok()?;
    let signature = match scheme {
        SignatureScheme::ECDSA_NISTP256_SHA256 => plain_signature(&signature, 32)?,
        SignatureScheme::ECDSA_NISTP384_SHA384 => plain_signature(&signature, 48)?,
        _ => signature,
    };
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Returns what an authorization server says about a refusal.
fn refusal(status: reqwest::StatusCode, body: &[u8]) -> MachineSignInError {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = [&said["error"], &said["error_description"]].into_iter().filter_map(Value::as_str);
    let words = words.collect::<Vec<_>>().join(": ");
    let words = if words.is_empty() { status.to_string() } else { words };
    let clean = words.chars().filter(|letter| !letter.is_control()).take(MAX_REFUSAL_CHARS);
    MachineSignInError::Refused(clean.collect())
}

impl AssertionRequest {
    /// Gets a token, and keeps it for the requests that follow.
    async fn exchange(&self) -> Result<(), MachineSignInError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signed = assertion(&self.client_id, &self.audience, &*self.key, now).ok_or(MachineSignInError::Key)?;
        // An address encodes what is sent as a form, too.
        let mut form = self.endpoint.clone();
        form.query_pairs_mut()
            .clear()
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            .append_pair("client_assertion", &signed)
            .append_pair("resource", &self.resource);
        if !self.scopes.is_empty() {
            form.query_pairs_mut().append_pair("scope", &self.scopes.join(" "));
        }
        let body = form.query().unwrap_or_default().to_owned();
        // An assertion isn't carried to where a redirect leads.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TOKEN_TIMEOUT);
        let request = http.build()?.post(self.endpoint.clone());
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        let mut response = request.send().await?;
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            answer.extend_from_slice(&chunk);
            if answer.len() > MAX_TOKEN_ANSWER_BYTES {
                return Err(MachineSignInError::Refused("its answer is too large".to_owned()));
            }
        }
        if !response.status().is_success() {
            return Err(refusal(response.status(), &answer));
        }
        let token: OAuthTokenResponse = serde_json::from_slice(&answer)
            .map_err(|_| MachineSignInError::Refused("its answer has no token".to_owned()))?;
        let kept = StoredCredentials::new(self.client_id.clone(), Some(token), self.scopes.clone(), Some(now));
        Ok(self.store.save(kept).await?)
    }
}

impl ClientProof {
    async fn exchange(&self, manager: &AuthorizationManager) -> Result<(), MachineSignInError> {
        match self {
            ClientProof::Secret(config) => {
                manager.exchange_client_credentials(config).await?;
                Ok(())
            }
            ClientProof::Key(request) => request.exchange().await,
            ClientProof::Identity(request) => request.exchange().await,
        }
    }
}

/// Signs a client in at a server. Returns what adds tokens to requests, and what renews them.
pub(crate) async fn begin(
    url: &str,
    settings: &McpSignIn,
) -> Result<(AuthClient<reqwest::Client>, MachineSignIn), MachineSignInError> {
    let client_id = settings.client_id.clone().ok_or(MachineSignInError::Incomplete)?;
    let mut manager = AuthorizationManager::new(url).await?;
    let found = manager.resolve_metadata().await?;
    if found.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err(MachineSignInError::Undescribed);
    }
    let mut server = Url::parse(url).map_err(|_| MachineSignInError::Undescribed)?;
    server.set_fragment(None);
    let endpoint = checked_endpoint(&server, &found.metadata.token_endpoint)?;
    let audience = found.metadata.issuer.clone().unwrap_or_else(|| endpoint.origin().ascii_serialization());
    manager.set_metadata(found.metadata.clone());
    let mut scopes = settings.scopes.clone();
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
        scopes.retain(|scope| scope != OFFLINE_SCOPE);
    }
    let store = InMemoryCredentialStore::new();
    manager.set_credential_store(store.clone());
    let resource = server.to_string();
    let proof = match (settings.grant, &settings.client_secret, &settings.private_key) {
        (McpOauthGrant::CrossAppAccess, _, _) => {
            // As below: the manager renews nothing.
            manager.configure_client(OAuthClientConfig::new(&client_id, endpoint.as_str()))?;
            ClientProof::Identity(IdentityExchange::new(settings, &found.metadata, resource, scopes, store)?)
        }
        (_, Some(client_secret), None) => {
            let (client_secret, resource) = (client_secret.clone(), Some(resource));
            let config = ClientCredentialsConfig::ClientSecret { client_id, client_secret, scopes, resource };
            manager.validate_client_credentials_metadata(&config)?;
            manager.configure_client_credentials(&config)?;
            ClientProof::Secret(config)
        }
        (_, None, Some(key)) => {
            let key = signing_key(key).ok_or(MachineSignInError::Key)?;
            // The manager renews nothing; it wants to know the client to say so.
            manager.configure_client(OAuthClientConfig::new(&client_id, endpoint.as_str()))?;
            ClientProof::Key(AssertionRequest { client_id, key, endpoint, audience, resource, scopes, store })
        }
        (_, None, None) | (_, Some(_), Some(_)) => return Err(MachineSignInError::Incomplete),
    };
    proof.exchange(&manager).await?;
    let client = AuthClient::new(reqwest::Client::default(), manager);
    let manager = client.auth_manager.clone();
    Ok((client, MachineSignIn { manager, proof }))
}

impl MachineSignIn {
    /// Gets another token if the present one ends soon.
    pub(crate) async fn renew(&self) -> Result<(), MachineSignInError> {
        let manager = self.manager.lock().await;
        match manager.get_access_token().await {
            Ok(_) => Ok(()),
            Err(_) => self.proof.exchange(&manager).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a P-256 key for tests only, as `openssl genpkey` writes it.
    const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\n\
        OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n\
        1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G";

    #[test]
    fn an_assertion_names_the_client_and_is_signed() {
        let whole = format!("-----BEGIN {0}-----\n{KEY}\n-----END {0}-----\n", "PRIVATE KEY");
        for pem in [whole.clone(), whole.replace('\n', " "), whole.replace('\n', "\\n")] {
            let key = signing_key(&pem).expect("a key");
            let signed = assertion("me", "https://as.example", &*key, 1_000).expect("signed");
            let parts: Vec<Vec<u8>> =
                signed.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).expect("base64")).collect();
            let [header, claims, signature] = &parts[..] else { panic!("three parts: {signed}") };
            let header: Value = serde_json::from_slice(header).expect("JSON");
            let claims: Value = serde_json::from_slice(claims).expect("JSON");
            assert_eq!((header["alg"].as_str(), signature.len()), (Some("ES256"), 64));
            assert_eq!((&claims["iss"], &claims["sub"]), (&json!("me"), &json!("me")));
            assert_eq!((&claims["aud"], &claims["exp"]), (&json!("https://as.example"), &json!(1_300)));
        }
        for wrong in [String::new(), whole.replace("MIGH", "AAAA"), whole.replace("PRIVATE", "PUBLIC")] {
            assert!(signing_key(&wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn signatures_have_a_fixed_width() {
        let mut der = vec![0x30, 7, 2, 2, 0, 0x80, 2, 1, 5];
        assert_eq!(plain_signature(&der, 2), Some(vec![0, 0x80, 0, 5]));
        der.pop();
        assert_eq!(plain_signature(&der, 2), None);
        assert_eq!(plain_signature(&[0x30, 6, 2, 1, 1, 2, 1, 1], 0), None);
    }

    #[test]
    fn a_secret_goes_to_safe_addresses_only() {
        let checked =
            |server: &str, endpoint: &str| checked_endpoint(&Url::parse(server).expect("an address"), endpoint).is_ok();
        assert!(checked("https://mcp.example/mcp", "https://as.example/token"));
        assert!(checked("http://127.0.0.1:1/mcp", "http://localhost:2/token"));
        assert!(!checked("https://mcp.example/mcp", "http://as.example/token"));
        assert!(!checked("https://mcp.example/mcp", "http://127.0.0.1:2/token"));
        assert!(!checked("http://mcp.example/mcp", "https://as.example/token"));
        assert!(!checked("http://[::1]:1/mcp", "ftp://[::1]/token"));
    }
}
