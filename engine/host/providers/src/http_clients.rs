//! HTTP clients, made when first needed: with trust in this machine's certificates where there is TLS, past proxies
//! where the address is on this machine.

use crate::ProviderTimeouts;
use agent::config::is_local;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Why there is no HTTP client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpClientError {
    /// With the cause alone: what is around it says nothing to a user.
    #[error("TLS cannot be set up: {cause}. Install this system's certificates (`ca-certificates`).")]
    Tls { cause: String },
    #[error("the client cannot be made.")]
    Genai,
}

/// The clients that were made so far, by whether there is TLS and whether the address is on this machine.
pub(crate) struct HttpClients {
    clients_by_kind: Mutex<HashMap<(bool, bool), reqwest::Client>>,
    limits: ProviderTimeouts,
}

impl HttpClients {
    pub(crate) fn new(limits: ProviderTimeouts) -> HttpClients {
        HttpClients { clients_by_kind: Mutex::new(HashMap::new()), limits }
    }

    /// The client for an address.
    ///
    /// # Errors
    /// TLS cannot be set up here.
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
            // Keys are in headers that a redirect would carry to anybody.
            .redirect(reqwest::redirect::Policy::none())
            .no_gzip();
        if what.1 {
            builder = builder.no_proxy();
        }
        if !what.0 {
            // Without TLS a machine needs no certificates.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let client = builder.build().map_err(|why| {
            let cause = std::error::Error::source(&why).map_or_else(|| why.to_string(), ToString::to_string);
            HttpClientError::Tls { cause }
        })?;
        made.insert(what, client.clone());
        Ok(client)
    }

    /// The same client in the dress of `genai_client`.
    ///
    /// # Errors
    /// Like [`HttpClients::http_client`].
    pub(crate) fn genai_client(&self, address: &str) -> Result<genai::Client, HttpClientError> {
        let client = self.http_client(address)?;
        genai::Client::builder().with_reqwest(client).build().map_err(|_| HttpClientError::Genai)
    }
}
