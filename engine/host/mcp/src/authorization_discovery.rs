//! Finds the authorization server of an MCP server. `rmcp` does, but for servers as the protocol's revision 2025-03-26
//! describes them: those have no metadata as a protected resource, and are their own authorization server. Some of them
//! name an issuer with a path there, which RFC 8414 rules out at this address.

use reqwest::header::{HeaderValue, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a server may take for a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a document in bytes.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;
/// Parameter of a challenge that names the metadata of a protected resource.
const RESOURCE_METADATA: &str = "resource_metadata";

/// The authorization server of an MCP server, and how it was found.
pub(crate) struct FoundAuthorizationServer {
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) source: AuthorizationMetadataSource,
}

/// Finds the authorization server of the server at `url`, which has answered with this challenge.
pub(crate) async fn find_authorization_server(
    manager: &AuthorizationManager,
    url: &str,
    challenge: Option<&str>,
) -> Result<FoundAuthorizationServer, AuthError> {
    let mismatch = match manager.resolve_metadata_from_challenge(challenge).await {
        Ok(found) => {
            let is_assumed = found.source == AuthorizationMetadataSource::LegacyEndpointFallback;
            if is_assumed && challenge.is_some_and(names_resource_metadata) {
                return Err(AuthError::MetadataError(
                    "the server names metadata (resource_metadata) that can't be read".to_owned(),
                ));
            }
            return Ok(FoundAuthorizationServer { metadata: found.metadata, source: found.source });
        }
        Err(error @ AuthError::AuthorizationServerMismatch { .. }) => error,
        Err(error) => return Err(error),
    };
    let server = Url::parse(url)?;
    // A document isn't carried over to where a redirect leads.
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(DOCUMENT_TIMEOUT);
    let http = http.build()?;
    if challenge.is_some_and(names_resource_metadata) || may_be_protected_resource(&http, &server).await? {
        return Err(mismatch);
    }
    match own_metadata(&http, &server).await? {
        Some(metadata) => {
            let source = AuthorizationMetadataSource::AuthorizationServerMetadata;
            Ok(FoundAuthorizationServer { metadata, source })
        }
        None => Err(mismatch),
    }
}

fn names_resource_metadata(challenge: &str) -> bool {
    challenge.to_ascii_lowercase().contains(RESOURCE_METADATA)
}

/// Whether an answer says that a document doesn't exist. Other failures may pass.
fn is_absent(status: StatusCode) -> bool {
    let may_pass = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    status.is_client_error() && !may_pass.contains(&status)
}

fn at_path(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

fn has_resource_challenge(response: &reqwest::Response) -> bool {
    let names = |value: &HeaderValue| names_resource_metadata(&String::from_utf8_lossy(value.as_bytes()));
    response.headers().get_all(WWW_AUTHENTICATE).iter().any(names)
}

/// Whether a server has metadata as a protected resource, or may have. Such a server names its authorization server,
/// and nothing else counts.
async fn may_be_protected_resource(http: &reqwest::Client, server: &Url) -> Result<bool, reqwest::Error> {
    // The server itself may answer with a stream without an end, so only its head is read.
    let answer = http.get(server.clone()).send().await?;
    if has_resource_challenge(&answer) || !(answer.status().is_success() || is_absent(answer.status())) {
        return Ok(true);
    }
    drop(answer);
    let name = ".well-known/oauth-protected-resource";
    let path = server.path().trim_matches('/');
    let mut places = vec![format!("/{name}")];
    if !path.is_empty() {
        places.extend([format!("/{name}/{path}"), format!("/{path}/{name}")]);
    }
    for place in places {
        let answer = http.get(at_path(server, &place)).send().await?;
        let (is_challenge, status) = (has_resource_challenge(&answer), answer.status());
        if is_challenge || !(status == StatusCode::OK || is_absent(status)) {
            return Ok(true);
        }
        // Some servers answer every path with a page.
        let is_object = |text: Vec<u8>| serde_json::from_slice::<Map<String, Value>>(&text).is_ok();
        if status == StatusCode::OK && document(answer).await?.is_none_or(is_object) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a document; `None` if it's too large.
async fn document(mut answer: reqwest::Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut text = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if text.len() + chunk.len() > MAX_DOCUMENT_BYTES {
            return Ok(None);
        }
        text.extend_from_slice(&chunk);
    }
    Ok(Some(text))
}

/// Reads the metadata of the authorization server that an MCP server is itself; `None` if it has none, or they lead
/// elsewhere.
async fn own_metadata(http: &reqwest::Client, server: &Url) -> Result<Option<AuthorizationMetadata>, reqwest::Error> {
    let answer = http.get(at_path(server, "/.well-known/oauth-authorization-server")).send().await?;
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let text = document(answer).await?.unwrap_or_default();
    let metadata = serde_json::from_slice::<AuthorizationMetadata>(&text).ok();
    Ok(metadata.filter(|metadata| stays_at(server, metadata)))
}

/// Whether an authorization server and all that it names for signing in are at the origin of an MCP server. Who answers
/// there speaks for the whole origin, but for no other one.
fn stays_at(server: &Url, metadata: &AuthorizationMetadata) -> bool {
    let is_here = |address: &String| Url::parse(address).is_ok_and(|address| address.origin() == server.origin());
    metadata.issuer.as_ref().is_some_and(is_here)
        && is_here(&metadata.authorization_endpoint)
        && is_here(&metadata.token_endpoint)
        && metadata.registration_endpoint.as_ref().is_none_or(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_issuer_with_a_path_counts_only_at_its_own_origin() {
        let stays = |issuer: &str, endpoint: &str, registration: Option<&str>| {
            let metadata = json!({"issuer": issuer, "authorization_endpoint": "https://mcp.example/oauth/authorize",
                "token_endpoint": endpoint, "registration_endpoint": registration});
            let metadata: AuthorizationMetadata = serde_json::from_value(metadata).expect("metadata");
            stays_at(&Url::parse("https://mcp.example/mcp").expect("an address"), &metadata)
        };
        let (issuer, token) = ("https://mcp.example/oauth", "https://mcp.example/oauth/token");
        assert!(stays(issuer, token, None));
        assert!(stays("https://mcp.example:443/oauth", token, Some("https://mcp.example/register")));
        assert!(!stays("https://other.example/oauth", token, None));
        assert!(!stays("http://mcp.example/oauth", token, None));
        assert!(!stays("https://mcp.example.evil.example/oauth", token, None));
        assert!(!stays(issuer, "https://mcp.example:8443/token", None));
        assert!(!stays(issuer, token, Some("https://other.example/register")));
        assert!(!stays(issuer, "", None));
    }

    #[test]
    fn a_failure_that_may_pass_is_no_absence() {
        let absent = |status: u16| is_absent(StatusCode::from_u16(status).expect("a status"));
        assert!(absent(404) && absent(401) && absent(405));
        assert!(!absent(429) && !absent(500) && !absent(302) && !absent(200));
    }
}
