//! Language models: providers behind one value. It owns one thread, on which all that waits for a network is done;
//! whoever asks is called back with what comes. Built on `genai`, which knows the wire forms; limits, tries, prices
//! and the words of failures are here.
//!
//! What it must not do: decide which provider is asked (the engine's router does), keep keys, or run tools.

mod call;
mod clients;
mod gather;
mod line;
mod prices;
mod probe;
mod trouble;
mod wire;

use agent::model_call::{
    ModelCallId, ModelDelta, ModelEndpoint, ModelError, ModelErrorKind, ModelRequest, ModelResponse,
};
use call::Call;
use clients::Clients;
use line::Line;
pub use prices::{context, price, reading_price};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use trouble::Key;
pub use trouble::word;
use wire::Signatures;

/// What comes of a call: deltas, then one answer or one failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A piece on its way.
    Delta(ModelDelta),
    /// The end: the whole answer.
    Answer(ModelResponse),
    /// The end: there is none.
    Failure(ModelError),
}

/// What a test of a provider found: it is there, and takes the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Host and port.
    pub host: String,
    /// How long that took.
    pub milliseconds: u64,
    /// Its models; `None`: it has no list, and so neither key nor model could be looked at.
    pub models: Option<Vec<String>>,
    /// Whether the endpoint's model is among them.
    pub listed: Option<bool>,
    /// Tokens that fit into a request to it, where the server says so (llama.cpp does).
    pub context: Option<u64>,
}

/// How long everything may take. The default is for users; tests are less patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A connection is made.
    pub connect: Duration,
    /// A provider that cannot be reached is tried again, with all pauses; with `connect` behind it less than 5 s.
    pub unreachable: Duration,
    /// Other failures are tried again, with all pauses.
    pub tries: Duration,
    /// The pause before the second try; longer before the third.
    pub pause: Duration,
    /// The first sign of an answer.
    pub first: Duration,
    /// The same of a model on this machine, which may read a long request slowly.
    pub first_local: Duration,
    /// Silence in the middle of an answer.
    pub silent: Duration,
    /// A whole answer.
    pub whole: Duration,
    /// A test of a provider.
    pub test: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_millis(3_000),
            unreachable: Duration::from_millis(1_900),
            tries: Duration::from_secs(20),
            pause: Duration::from_millis(700),
            first: Duration::from_secs(180),
            first_local: Duration::from_secs(900),
            silent: Duration::from_secs(300),
            whole: Duration::from_secs(3_600),
            test: Duration::from_millis(4_500),
        }
    }
}

enum Job {
    Call(Box<Call>),
    Test { endpoint: ModelEndpoint, key: Option<Key>, done: Box<dyn FnOnce(Result<Tested, ModelError>) + Send> },
}

type Lines = Arc<Mutex<HashMap<ModelCallId, Arc<Line>>>>;

/// All providers. Calls that are under way when it is dropped are dropped with it, without an end.
pub struct Providers {
    jobs: OnceLock<Result<UnboundedSender<Job>, String>>,
    lines: Lines,
    clients: Arc<Clients>,
    signatures: Arc<Signatures>,
    limits: Limits,
}

impl Default for Providers {
    fn default() -> Providers {
        Providers::new(Limits::default())
    }
}

impl Providers {
    /// Its thread starts with the first call.
    pub fn new(limits: Limits) -> Providers {
        Providers {
            jobs: OnceLock::new(),
            lines: Lines::default(),
            clients: Arc::new(Clients::new(limits)),
            signatures: Arc::default(),
            limits,
        }
    }

    /// Calls a model. `on` hears deltas and then exactly one end, from the thread of providers or, after a
    /// [`Providers::cancel`], from the one that cancelled; it must not wait, and must not call back. The key never
    /// appears in what it hears. A call with the id of one under way ends that one.
    pub fn call(
        &self,
        id: ModelCallId,
        request: ModelRequest,
        key: Option<String>,
        on: impl Fn(Update) + Send + 'static,
    ) {
        let line = Arc::new(Line::new(on));
        let before = self.lines().insert(id, line.clone());
        if let Some(before) = before {
            before.cancel();
        }
        let call = Call {
            id,
            request,
            key: key.map(Key),
            line: line.clone(),
            clients: self.clients.clone(),
            signatures: self.signatures.clone(),
            limits: self.limits,
        };
        if let Some((why, _)) = self.send(Job::Call(Box::new(call))) {
            self.lines().remove(&id);
            line.end(Update::Failure(ModelError { kind: ModelErrorKind::Refused, why, partial: String::new() }));
        }
    }

    /// Stops a call: its end is told before this returns. Nothing happens where there is none.
    pub fn cancel(&self, id: ModelCallId) {
        let line = self.lines().remove(&id);
        if let Some(line) = line {
            line.cancel();
        }
    }

    /// Looks whether a provider is there, takes the key and has the model; `done` hears within 5 s.
    pub fn test(
        &self,
        endpoint: ModelEndpoint,
        key: Option<String>,
        done: impl FnOnce(Result<Tested, ModelError>) + Send + 'static,
    ) {
        let job = Job::Test { endpoint, key: key.map(Key), done: Box::new(done) };
        if let Some((why, Job::Test { done, .. })) = self.send(job) {
            done(Err(ModelError { kind: ModelErrorKind::Refused, why, partial: String::new() }));
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<ModelCallId, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a job to the thread; gives it back, and why, where there is none.
    fn send(&self, job: Job) -> Option<(String, Job)> {
        let jobs = self.jobs.get_or_init(|| {
            let (jobs, wanted) = unbounded_channel();
            let (lines, clients, limits) = (self.lines.clone(), self.clients.clone(), self.limits);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|why| format!("providers cannot work: {why}."))?;
            std::thread::Builder::new()
                .name("providers".to_owned())
                .spawn(move || {
                    runtime.block_on(work(wanted, lines, clients, limits));
                    // A name that is being looked up is not waited for.
                    runtime.shutdown_background();
                })
                .map_err(|why| format!("providers cannot work: {why}."))?;
            Ok(jobs)
        });
        match jobs {
            Ok(jobs) => jobs.send(job).err().map(|back| ("providers have stopped.".to_owned(), back.0)),
            Err(why) => Some((why.clone(), job)),
        }
    }
}

/// Does what is wanted, all at the same time, until nobody can want anything more.
async fn work(mut wanted: UnboundedReceiver<Job>, lines: Lines, clients: Arc<Clients>, limits: Limits) {
    while let Some(job) = wanted.recv().await {
        match job {
            Job::Call(call) => {
                let (id, line, lines) = (call.id, call.line.clone(), lines.clone());
                let host = wire::host(&call.request.endpoint);
                let call = tokio::spawn(call.run());
                tokio::spawn(async move {
                    if call.await.is_err() {
                        let why = format!("{host} answers with something that cannot be read.");
                        let partial = line.partial();
                        line.end(Update::Failure(ModelError { kind: ModelErrorKind::Malformed, why, partial }));
                    }
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    if lines.get(&id).is_some_and(|other| Arc::ptr_eq(other, &line)) {
                        lines.remove(&id);
                    }
                });
            }
            Job::Test { endpoint, key, done } => {
                let clients = clients.clone();
                tokio::spawn(async move { done(probe::test(&clients, &endpoint, key.as_ref(), limits.test).await) });
            }
        }
    }
}

#[cfg(test)]
mod tests;
