//! HTTP clients, created when first needed. With TLS they trust this machine's certificates; for addresses on this
//! machine they bypass proxies.

use crate::ProviderTimeouts;
use agent::config::is_local;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// Reason why no HTTP client can be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpClientError {
    /// TLS can't be set up. Only the innermost cause is shown, because the rest wouldn't help a user.
    #[error("TLS cannot be set up: {cause}. Install this system's certificates (`ca-certificates`).")]
    Tls { cause: String },
    #[error("the client cannot be made.")]
    Genai,
}

/// The clients created so far, by whether the address uses TLS, whether it's on this machine, and whether it's that of
/// OpenRouter.
pub(crate) struct HttpClients {
    clients_by_kind: Mutex<HashMap<(bool, bool, bool), reqwest::Client>>,
    /// Addresses of servers that answer in one piece, though they were asked for a stream.
    without_stream: Mutex<HashSet<String>>,
    limits: ProviderTimeouts,
}

impl HttpClients {
    pub(crate) fn new(limits: ProviderTimeouts) -> HttpClients {
        HttpClients { clients_by_kind: Mutex::default(), without_stream: Mutex::default(), limits }
    }

    /// Returns whether a server is known to answer in one piece.
    pub(crate) fn is_known_not_to_stream(&self, base: &str) -> bool {
        self.without_stream.lock().unwrap_or_else(PoisonError::into_inner).contains(base)
    }

    /// Remembers that a server answers in one piece, while the program runs.
    pub(crate) fn remember_not_to_stream(&self, base: String) {
        self.without_stream.lock().unwrap_or_else(PoisonError::into_inner).insert(base);
    }

    /// Returns the client for an address.
    ///
    /// # Errors
    /// Returns an error if TLS can't be set up here.
    pub(crate) fn http_client(&self, address: &str) -> Result<reqwest::Client, HttpClientError> {
        let what = (address.starts_with("https:"), is_local(address), is_open_router(address));
        let mut made = self.clients_by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&what) {
            return Ok(client.clone());
        }
        // The first caller sets it for the process; it's always the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("tracebook/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.limits.connect)
            // Keys are in headers, which a redirect would carry to any host.
            .redirect(reqwest::redirect::Policy::none())
            .no_gzip();
        if what.1 {
            builder = builder.no_proxy();
        }
        if !what.0 {
            // Without TLS no certificates are needed.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if what.2 {
            builder = builder.default_headers(title_headers());
        }
        let client = builder.build().map_err(|why| {
            let cause = std::error::Error::source(&why).map_or_else(|| why.to_string(), ToString::to_string);
            HttpClientError::Tls { cause }
        })?;
        made.insert(what, client.clone());
        Ok(client)
    }

    /// Returns the same client, wrapped for `genai`.
    ///
    /// # Errors
    /// Fails like [`HttpClients::http_client`], or if `genai` can't wrap the client.
    pub(crate) fn genai_client(&self, address: &str) -> Result<genai::Client, HttpClientError> {
        let client = self.http_client(address)?;
        genai::Client::builder().with_reqwest(client).build().map_err(|_| HttpClientError::Genai)
    }
}

/// Returns whether an address is OpenRouter's, which lists programs by the name in their requests.
fn is_open_router(address: &str) -> bool {
    let rest = address.strip_prefix("https://openrouter.ai");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}

/// Returns the headers that name this program to OpenRouter.
fn title_headers() -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("x-title"), HeaderValue::from_static("Tracebook"))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_openrouter_is_told_the_name_of_the_program() {
        for address in ["https://openrouter.ai", "https://openrouter.ai/api/v1/", "https://openrouter.ai:443/api"] {
            assert!(is_open_router(address), "{address}");
        }
        for address in
            ["http://openrouter.ai/", "https://openrouter.ai.example.org/", "https://x/?https://openrouter.ai"]
        {
            assert!(!is_open_router(address), "{address}");
        }
        assert_eq!(title_headers()["X-Title"], "Tracebook");
    }
}
