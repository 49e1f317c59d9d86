//! The connection to the engine: requests by `bollard`, each over a socket of its own whose bytes are counted, and all
//! of them bounded in time and broken off when the call is canceled.

use crate::{ContainerError, ENGINE_TIMEOUT, MAX_ANSWER_BYTES};
use bollard::{BollardRequest, Docker};
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

/// How long `bollard` waits for the head of an answer, in seconds; our own limits are shorter.
const HEAD_TIMEOUT_SECS: u64 = 3_600;
/// Interval for checking whether a call was canceled.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum length of what's quoted of an engine's error, in characters.
const MAX_ERROR_CHARS: usize = 500;
/// Networks of build steps for Podman, which doesn't read `networkmode` there: they don't share the network of this
/// machine.
const PODMAN_BUILD_NETWORK: &str = "nsoptions=%5B%7B%22Name%22%3A%22network%22%2C%22Host%22%3Afalse%7D%5D";

/// The limits of a call.
#[derive(Clone, Copy)]
pub(crate) struct EngineLimit<'a> {
    /// Asked often.
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

impl EngineLimit<'_> {
    /// Awaits a request, at most as long as `limit` and until the call is canceled.
    pub(crate) async fn keep<T>(
        self,
        what: &'static str,
        limit: Duration,
        work: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, ContainerError> {
        let until = Instant::now() + limit;
        let mut work = pin!(work);
        loop {
            if (self.is_stopped)() {
                return Err(ContainerError::Cancelled);
            }
            match tokio::time::timeout(POLL_INTERVAL, &mut work).await {
                Ok(done) => return done.map_err(|error| engine_error(what, &error)),
                Err(_) if Instant::now() > until => return Err(ContainerError::TimedOut { what, limit }),
                Err(_) => {}
            }
        }
    }

    /// The same for a request that takes the engine no time.
    pub(crate) async fn quick<T>(
        self,
        what: &'static str,
        work: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, ContainerError> {
        self.keep(what, ENGINE_TIMEOUT, work).await
    }

    /// Lets time pass.
    pub(crate) async fn pause(self, time: Duration) -> Result<(), ContainerError> {
        tokio::time::sleep(time).await;
        if (self.is_stopped)() { Err(ContainerError::Cancelled) } else { Ok(()) }
    }
}

/// Returns the HTTP status of an engine's refusal.
fn status_of(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Returns whether the engine says that it has no such thing.
pub(crate) fn is_missing(error: &ContainerError) -> bool {
    matches!(error, ContainerError::Engine { why, .. } if why.starts_with("404 "))
}

fn engine_error(what: &'static str, error: &bollard::errors::Error) -> ContainerError {
    let why = match (error, status_of(error)) {
        (bollard::errors::Error::DockerResponseServerError { message, .. }, Some(status)) => {
            format!("{status} {}", said(message))
        }
        _ => {
            let mut deepest: &dyn Error = error;
            while let Some(source) = deepest.source() {
                deepest = source;
            }
            said(&deepest.to_string())
        }
    };
    ContainerError::Engine { what, why }
}

/// Returns what an engine says on one line, without what controls a terminal.
pub(crate) fn said(text: &str) -> String {
    agent::prompt_quote::single_line(text, MAX_ERROR_CHARS)
}

/// A connection that breaks off after a number of bytes.
struct CountedStream {
    stream: UnixStream,
    left: u64,
}

impl AsyncRead for CountedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let count = u64::try_from(buffer.filled().len() - before).unwrap_or(u64::MAX);
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => {
                let why = format!("its answer is larger than {} MB", MAX_ANSWER_BYTES >> 20);
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        read
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A client of the engine at one socket, used by one thread.
pub(crate) struct EngineClient {
    pub(crate) docker: Docker,
    runtime: Runtime,
    pub(crate) socket: PathBuf,
}

impl EngineClient {
    /// Connects to an engine.
    pub(crate) fn connect(socket: &Path) -> Result<EngineClient, ContainerError> {
        EngineClient::connect_within(socket, EngineLimit { is_stopped: &|| false })
    }

    /// The same within the limits of a call.
    pub(crate) fn connect_within(socket: &Path, limit: EngineLimit<'_>) -> Result<EngineClient, ContainerError> {
        let system = |what| move |source| ContainerError::System { what, source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system("starting a client of the container engine"))?;
        std::os::unix::net::UnixStream::connect(socket)
            .map_err(|error| ContainerError::Connect { socket: socket.to_owned(), why: error.to_string() })?;
        let docker = open_client(socket)?;
        run_on(&runtime, limit.quick("a first request", docker.ping()))?;
        Ok(EngineClient { docker, runtime, socket: socket.to_owned() })
    }

    /// Asks for the engine's name and version. Podman takes some seconds for that on a busy machine.
    pub(crate) async fn engine_name(&self, limit: EngineLimit<'_>) -> Result<String, ContainerError> {
        let version = limit.quick("its version", self.docker.version()).await?;
        let parts = version.components.unwrap_or_default();
        let part = parts.first().map(|part| {
            // Docker calls itself only that.
            let name = if part.name == "Engine" { "Docker Engine" } else { part.name.as_str() };
            format!("{name} {}", part.version)
        });
        Ok(said(&part.or(version.version).unwrap_or_else(|| "an unknown engine".to_owned())))
    }

    /// Runs requests to their end.
    pub(crate) fn run<T>(&self, work: impl Future<Output = Result<T, ContainerError>>) -> Result<T, ContainerError> {
        run_on(&self.runtime, work)
    }
}

/// Runs requests. `bollard` panics at frames of unknown streams, which a hostile engine may send.
fn run_on<T>(runtime: &Runtime, work: impl Future<Output = Result<T, ContainerError>>) -> Result<T, ContainerError> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(work)));
    done.unwrap_or_else(|_| {
        Err(ContainerError::Engine { what: "its protocol", why: "no such answer is known".to_owned() })
    })
}

fn open_client(socket: &Path) -> Result<Docker, ContainerError> {
    let place = socket.to_owned();
    let transport = move |mut request: BollardRequest| {
        let place = place.clone();
        async move {
            let stream = CountedStream { stream: UnixStream::connect(&place).await?, left: MAX_ANSWER_BYTES };
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection.with_upgrades());
            let mut target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
            if request.uri().path().ends_with("/build") {
                target = format!("{target}&{PODMAN_BUILD_NETWORK}");
            }
            *request.uri_mut() = target.parse()?;
            request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
            Ok(sender.send_request(request).await?)
        }
    };
    // `bollard` leaves the version out of addresses, so that each engine answers in its own.
    Docker::connect_with_custom_transport(
        transport,
        Some("http://localhost"),
        HEAD_TIMEOUT_SECS,
        bollard::API_DEFAULT_VERSION,
    )
    .map_err(|error| engine_error("its address", &error))
}
