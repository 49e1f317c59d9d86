//! Language models: all providers behind one client. It owns one thread for all network work; callers get results by
//! callbacks. Built on `genai`, which implements the APIs; limits, retries, prices and error messages are here.
//!
//! This crate must not decide which provider is called (the engine's router does), store keys, or run tools.

mod call;
mod error;
mod event_sender;
mod genai_request;
mod http_clients;
mod prices;
mod provider_test;
mod reasoning_tags;
mod stream_collector;
mod whole_answer;

use agent::model_call::{
    ModelCallId, ModelCallLimits, ModelDelta, ModelEndpoint, ModelError, ModelErrorKind, ModelRequest, ModelResponse,
};
use call::ModelCallTask;
use error::ApiKey;
pub use error::wire_name;
use event_sender::ModelEventSender;
use genai_request::ThoughtSignatures;
use http_clients::HttpClients;
pub use prices::{context_window, input_only_price, model_price};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// An event of a call: deltas, then one answer or one failure.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelUpdate {
    /// A part of the answer.
    Delta(ModelDelta),
    /// The end, with the complete answer.
    Answer(ModelResponse),
    /// The end, with an error.
    Failure(ModelError),
}

/// Result of a successful provider test: the provider is reachable and accepts the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTestReport {
    /// Host and port of the provider.
    pub host: String,
    /// Duration of the test in milliseconds.
    pub milliseconds: u64,
    /// The provider's models; `None` if it has no list, so that neither key nor model could be checked.
    pub models: Option<Vec<String>>,
    /// Whether the endpoint's model is among them; `None` without a list.
    pub listed: Option<bool>,
    /// Context size in tokens, if the server reports it (llama.cpp does).
    pub context: Option<u64>,
}

/// Time limits of model calls. The defaults suit users; tests use shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderTimeouts {
    /// Time limit for opening a connection.
    pub connect: Duration,
    /// Time limit for retrying an unreachable provider, with all pauses; together with `connect` less than 5 s.
    pub unreachable_retry_window: Duration,
    /// Time limit for retrying other failures, with all pauses.
    pub retry_window: Duration,
    /// Pause before the second attempt; the third waits longer.
    pub first_retry_delay: Duration,
    /// Time limit for the first sign of an answer.
    pub first_response: Duration,
    /// The same for a model on this machine, which may read a long request slowly.
    pub first_response_local: Duration,
    /// Maximum silence in the middle of an answer.
    pub stream_idle: Duration,
    /// Time limit for a complete answer.
    pub whole_response: Duration,
    /// Time limit for a provider test.
    pub provider_test: Duration,
}

impl Default for ProviderTimeouts {
    fn default() -> ProviderTimeouts {
        ProviderTimeouts {
            connect: Duration::from_millis(3_000),
            unreachable_retry_window: Duration::from_millis(1_900),
            retry_window: Duration::from_secs(20),
            first_retry_delay: Duration::from_millis(700),
            first_response: Duration::from_secs(180),
            first_response_local: Duration::from_secs(900),
            stream_idle: Duration::from_secs(300),
            whole_response: Duration::from_secs(3_600),
            provider_test: Duration::from_millis(4_500),
        }
    }
}

impl ProviderTimeouts {
    /// Returns the time limit for the first sign of an endpoint's answer.
    fn first_response_of(&self, endpoint: &ModelEndpoint) -> Duration {
        if endpoint.local { self.first_response_local } else { self.first_response }
    }

    /// Returns these time limits with those that a request states.
    fn with_limits(self, limits: ModelCallLimits) -> ProviderTimeouts {
        let first = Duration::from_millis(limits.first_byte);
        ProviderTimeouts {
            first_response: first,
            first_response_local: first,
            stream_idle: Duration::from_millis(limits.silence),
            whole_response: Duration::from_millis(limits.whole),
            ..self
        }
    }
}

enum ProviderCall {
    Call(Box<ModelCallTask>),
    Test {
        endpoint: ModelEndpoint,
        key: Option<ApiKey>,
        done: Box<dyn FnOnce(Result<ProviderTestReport, ModelError>) + Send>,
    },
}

/// The providers' thread couldn't be started.
#[derive(Debug, thiserror::Error)]
#[error("providers cannot work: {0}.")]
struct ProviderThreadError(#[from] std::io::Error);

type ModelEventSenders = Arc<Mutex<HashMap<ModelCallId, Arc<ModelEventSender>>>>;

/// Client for all providers. Dropping it drops pending calls without an end.
pub struct ProviderClient {
    jobs: OnceLock<Result<UnboundedSender<ProviderCall>, ProviderThreadError>>,
    senders: ModelEventSenders,
    clients: Arc<HttpClients>,
    signatures: Arc<ThoughtSignatures>,
    timeouts: ProviderTimeouts,
}

impl Default for ProviderClient {
    fn default() -> ProviderClient {
        ProviderClient::new(ProviderTimeouts::default())
    }
}

impl ProviderClient {
    /// Creates a client; its thread starts with the first call.
    pub fn new(limits: ProviderTimeouts) -> ProviderClient {
        ProviderClient {
            jobs: OnceLock::new(),
            senders: ModelEventSenders::default(),
            clients: Arc::new(HttpClients::new(limits)),
            signatures: Arc::default(),
            timeouts: limits,
        }
    }

    /// Creates the client of a workspace with this folder, which remembers servers that don't stream.
    pub fn in_workspace(folder: &Path) -> ProviderClient {
        let limits = ProviderTimeouts::default();
        let clients = Arc::new(HttpClients::in_workspace(limits, folder));
        ProviderClient { clients, ..ProviderClient::new(limits) }
    }

    /// Calls a model. `on` gets deltas and then exactly one end, from the providers' thread or, after a
    /// [`ProviderClient::cancel`], from the canceling one; it must not block, and must not call back. The key never
    /// appears in its events. A call with the id of a pending one cancels that one.
    pub fn start_call(
        &self,
        id: ModelCallId,
        request: ModelRequest,
        key: Option<String>,
        on: impl Fn(ModelUpdate) + Send + 'static,
    ) {
        let line = Arc::new(ModelEventSender::new(on));
        let before = self.lock_senders().insert(id, line.clone());
        if let Some(before) = before {
            before.cancel();
        }
        let request_limits = request.limits;
        let call = ModelCallTask {
            id,
            request,
            api_key: key.map(ApiKey),
            sender: line.clone(),
            clients: self.clients.clone(),
            signatures: self.signatures.clone(),
            limits: request_limits.map_or(self.timeouts, |limits| self.timeouts.with_limits(limits)),
        };
        if let Some((why, _)) = self.submit(ProviderCall::Call(Box::new(call))) {
            self.lock_senders().remove(&id);
            line.finish(ModelUpdate::Failure(ModelError {
                kind: ModelErrorKind::Refused,
                why,
                partial: String::new(),
            }));
        }
    }

    /// Cancels a call: its end is reported before this returns. Does nothing if there's no such call.
    pub fn cancel(&self, id: ModelCallId) {
        let line = self.lock_senders().remove(&id);
        if let Some(line) = line {
            line.cancel();
        }
    }

    /// Tests whether a provider is reachable, accepts the key and has the model; `done` is called within 5 s.
    pub fn test_provider(
        &self,
        endpoint: ModelEndpoint,
        key: Option<String>,
        done: impl FnOnce(Result<ProviderTestReport, ModelError>) + Send + 'static,
    ) {
        let job = ProviderCall::Test { endpoint, key: key.map(ApiKey), done: Box::new(done) };
        if let Some((why, ProviderCall::Test { done, .. })) = self.submit(job) {
            done(Err(ModelError { kind: ModelErrorKind::Refused, why, partial: String::new() }));
        }
    }

    fn lock_senders(&self) -> MutexGuard<'_, HashMap<ModelCallId, Arc<ModelEventSender>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a job to the thread; returns the job and the reason if the thread isn't running.
    fn submit(&self, job: ProviderCall) -> Option<(String, ProviderCall)> {
        let jobs = self.jobs.get_or_init(|| {
            let (jobs, wanted) = unbounded_channel();
            let (lines, clients, limits) = (self.senders.clone(), self.clients.clone(), self.timeouts);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            std::thread::Builder::new().name("providers".to_owned()).spawn(move || {
                runtime.block_on(run_provider_calls(wanted, lines, clients, limits));
                // Don't wait for a pending DNS lookup.
                runtime.shutdown_background();
            })?;
            Ok(jobs)
        });
        match jobs {
            Ok(jobs) => jobs.send(job).err().map(|back| ("providers have stopped.".to_owned(), back.0)),
            Err(why) => Some((why.to_string(), job)),
        }
    }
}

/// Runs all requests concurrently, until all senders are gone.
async fn run_provider_calls(
    mut wanted: UnboundedReceiver<ProviderCall>,
    lines: ModelEventSenders,
    clients: Arc<HttpClients>,
    limits: ProviderTimeouts,
) {
    while let Some(job) = wanted.recv().await {
        match job {
            ProviderCall::Call(call) => {
                let (id, line, lines) = (call.id, call.sender.clone(), lines.clone());
                let host = genai_request::host_label(&call.request.endpoint);
                let call = tokio::spawn(call.run());
                tokio::spawn(async move {
                    if call.await.is_err() {
                        let why = format!("{host} answers with something that cannot be read.");
                        let partial = line.partial_text();
                        line.finish(ModelUpdate::Failure(ModelError { kind: ModelErrorKind::Malformed, why, partial }));
                    }
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    if lines.get(&id).is_some_and(|other| Arc::ptr_eq(other, &line)) {
                        lines.remove(&id);
                    }
                });
            }
            ProviderCall::Test { endpoint, key, done } => {
                let clients = clients.clone();
                tokio::spawn(async move {
                    done(provider_test::test_endpoint(&clients, &endpoint, key.as_ref(), limits.provider_test).await)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
