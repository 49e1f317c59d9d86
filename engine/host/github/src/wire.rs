//! One exchange with a server, on a thread of its own, so that a user can end it at any time.

use crate::api_client::ApiControl;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use ureq::Agent;
use ureq::http::{HeaderMap, HeaderValue, Request};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without data after which a connection counts as broken.
const STALL_TIMEOUT: Duration = Duration::from_secs(45);
/// Time limit of one exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Interval at which cancellation is checked while a server doesn't answer.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum size of the body of an answer that isn't a success, in bytes.
const MAX_ERROR_BYTES: u64 = 64 << 10;
const CHUNK_BYTES: usize = 64 << 10;

/// A request as it's sent.
pub(crate) struct WireRequest {
    pub(crate) method: &'static str,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(&'static str, HeaderValue)>,
    pub(crate) body: Option<Vec<u8>>,
    /// Maximum size of the answer's body in bytes.
    pub(crate) limit: u64,
    /// Where the body of a success is written, if not to memory.
    pub(crate) file: Option<File>,
}

/// An answer.
pub(crate) struct WireAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireFault {
    /// No connection, or it was cut.
    Unreachable(String),
    /// The answer is larger than the limit.
    TooLarge,
    /// It can't be sent or stored.
    Unusable(String),
    Canceled,
}

/// Creates a client that follows no redirect.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(STALL_TIMEOUT))
        .timeout_global(Some(EXCHANGE_TIMEOUT))
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("Tracebook/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Sends a request and returns the answer, unless the user ends it.
pub(crate) fn exchange(agent: &Agent, request: WireRequest, control: &ApiControl<'_>) -> Result<WireAnswer, WireFault> {
    let (tell, told) = sync_channel(1);
    let (agent, is_abandoned) = (agent.clone(), Arc::new(AtomicBool::new(false)));
    let is_over = is_abandoned.clone();
    // Fails to tell only if nobody waits for it.
    std::thread::spawn(move || drop(tell.send(run(&agent, request, &is_over))));
    loop {
        match told.recv_timeout(CANCEL_POLL_INTERVAL) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => return Err(WireFault::Unusable("the thread has ended".to_owned())),
            Err(RecvTimeoutError::Timeout) if control.is_canceled() => {
                is_abandoned.store(true, Ordering::Relaxed);
                return Err(WireFault::Canceled);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn run(agent: &Agent, sent: WireRequest, is_abandoned: &AtomicBool) -> Result<WireAnswer, WireFault> {
    let mut request = Request::builder().method(sent.method).uri(sent.url.as_str());
    for (name, value) in sent.headers {
        request = request.header(name, value);
    }
    let unusable = |error: ureq::http::Error| WireFault::Unusable(error.to_string());
    let answered = match sent.body {
        Some(body) => agent.run(request.body(body).map_err(unusable)?),
        None => agent.run(request.body(()).map_err(unusable)?),
    };
    let answer = answered.map_err(|error| explain(&error))?;
    let (head, body) = answer.into_parts();
    let (status, is_success) = (head.status.as_u16(), head.status.is_success());
    let mut file = sent.file.filter(|_| is_success);
    let limit = if is_success { sent.limit } else { MAX_ERROR_BYTES };
    // A compressed body has another length than what it's unpacked to.
    let length =
        head.headers.get("content-length").filter(|_| is_success && !head.headers.contains_key("content-encoding"));
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let (mut reader, mut kept, mut chunk) = (body.into_reader(), Vec::new(), vec![0; CHUNK_BYTES]);
    let mut size: u64 = 0;
    loop {
        if is_abandoned.load(Ordering::Relaxed) {
            return Err(WireFault::Canceled);
        }
        let read = reader.read(&mut chunk).map_err(|error| WireFault::Unreachable(error.to_string()))?;
        size += read as u64;
        match (read, size > limit) {
            (0, _) if length.is_some_and(|length| size < length) => {
                return Err(WireFault::Unreachable("the connection was cut".to_owned()));
            }
            (0, _) => return Ok(WireAnswer { status, headers: head.headers, body: kept }),
            (_, true) if is_success => return Err(WireFault::TooLarge),
            (_, true) => return Ok(WireAnswer { status, headers: head.headers, body: kept }),
            _ => {} // tidy: open because these bytes are wanted
        }
        match &mut file {
            Some(file) => {
                file.write_all(&chunk[..read]).map_err(|error| WireFault::Unusable(error.to_string()))?;
            }
            None => kept.extend_from_slice(&chunk[..read]),
        }
    }
}

fn explain(error: &ureq::Error) -> WireFault {
    WireFault::Unreachable(match error {
        ureq::Error::HostNotFound => "there's no such host, or no network".to_owned(),
        ureq::Error::Timeout(_) => "it doesn't answer in time".to_owned(),
        other => other.to_string(),
    })
}
