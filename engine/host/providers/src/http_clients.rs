//! HTTP clients, created when first needed. With TLS they trust this machine's certificates; for addresses on this
//! machine they bypass proxies.

use crate::ProviderTimeouts;
use agent::config::is_local;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Name of the file in a workspace that remembers between processes which servers don't stream.
const WHOLE_ANSWERS_FILE: &str = "whole-answers.json";
/// Maximum size of that file in bytes.
const MAX_WHOLE_ANSWERS_BYTES: u64 = 64 << 10;
/// Age of that file after which its servers are asked for streams again: they may have learned it.
const WHOLE_ANSWERS_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3_600);

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
    /// Where they're kept between processes, if anywhere.
    file: Option<PathBuf>,
    limits: ProviderTimeouts,
}

impl HttpClients {
    pub(crate) fn new(limits: ProviderTimeouts) -> HttpClients {
        HttpClients { clients_by_kind: Mutex::default(), without_stream: Mutex::default(), file: None, limits }
    }

    /// Creates the clients of a workspace, which remembers servers that don't stream.
    pub(crate) fn in_workspace(limits: ProviderTimeouts, folder: &Path) -> HttpClients {
        let file = folder.join(WHOLE_ANSWERS_FILE);
        let known = read_whole_answers(&file).unwrap_or_default();
        HttpClients { without_stream: Mutex::new(known), file: Some(file), ..HttpClients::new(limits) }
    }

    /// Returns whether a server is known to answer in one piece.
    pub(crate) fn is_known_not_to_stream(&self, base: &str) -> bool {
        self.without_stream.lock().unwrap_or_else(PoisonError::into_inner).contains(base)
    }

    /// Remembers that a server answers in one piece.
    pub(crate) fn remember_not_to_stream(&self, base: String) {
        let mut known = self.without_stream.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(base);
        if let (Some(file), Ok(bytes)) = (&self.file, serde_json::to_vec(&*known)) {
            let _ = std::fs::write(file, bytes); // without it, the next process asks for a stream in vain, too
        }
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

/// Reads which servers don't stream; `None` if that isn't known, or was found out long ago.
fn read_whole_answers(file: &Path) -> Option<HashSet<String>> {
    let about = std::fs::metadata(file).ok()?;
    let is_new = about.modified().ok()?.elapsed().is_ok_and(|age| age < WHOLE_ANSWERS_LIFETIME);
    if !is_new || about.len() > MAX_WHOLE_ANSWERS_BYTES {
        return None;
    }
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
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
