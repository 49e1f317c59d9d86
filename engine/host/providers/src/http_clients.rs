//! HTTP clients, created when first needed. With TLS they trust this machine's certificates; for addresses on this
//! machine they bypass proxies.

use crate::ProviderTimeouts;
use agent::config::is_local;
use std::collections::HashMap;
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

/// The clients created so far, by whether the address uses TLS and whether it's on this machine.
pub(crate) struct HttpClients {
    clients_by_kind: Mutex<HashMap<(bool, bool), reqwest::Client>>,
    limits: ProviderTimeouts,
}

impl HttpClients {
    pub(crate) fn new(limits: ProviderTimeouts) -> HttpClients {
        HttpClients { clients_by_kind: Mutex::new(HashMap::new()), limits }
    }

    /// Returns the client for an address.
    ///
    /// # Errors
    /// Returns an error if TLS can't be set up here.
    pub(crate) fn http_client(&self, address: &str) -> Result<reqwest::Client, HttpClientError> {
        let what = (address.starts_with("https:"), is_local(address));
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
