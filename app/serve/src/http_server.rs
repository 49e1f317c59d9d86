//! The HTTP server: a Unix socket in the workspace and an address of this machine, until the system asks it to end.

use crate::command_calls::WorkspaceCommands;
use crate::http_router::http_router;
use crate::http_state::HttpState;
use crate::pairing;
use crate::placed_connections::PlaceAcceptor;
use crate::tls_certificate::{self, CertificateError};
use axum::Router;
use axum_server::tls_rustls::RustlsConfig;
use axum_server::{Address, Handle, Server};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Name of the Unix socket in the workspace.
#[cfg(unix)]
const SOCKET_NAME: &str = "http.sock";
/// The system takes no longer paths for sockets; then there's only the address.
#[cfg(unix)]
const MAX_SOCKET_PATH_BYTES: usize = 100;
/// Maximum time to receive a request's head, and to make a TLS connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request's head in bytes.
const MAX_HEAD_BYTES: u32 = 64 << 10;
/// Maximum number of requests at the same time on one connection of HTTP/2, and time between checks that it lives.
const MAX_STREAMS: u32 = 64;
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// What a TLS connection may agree to speak.
const TLS_PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];
/// Maximum time that requests have to end when the server ends.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

const SHUTDOWN_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Files of a TLS certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain (PEM).
    pub certificate: PathBuf,
    /// The key (PEM).
    pub key: PathBuf,
}

/// Where the certificate of the server is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsSource {
    /// Files that the user names.
    Files(TlsFiles),
    /// The workspace: made at the first start.
    Workspace,
}

/// How the workspace is served over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpServerSettings {
    /// The workspace, which holds tokens, the audit log and the socket.
    pub workspace: PathBuf,
    /// The address to listen on, besides the socket.
    pub listen: Option<SocketAddr>,
    /// The certificate, without which only this machine can connect.
    pub tls: Option<TlsSource>,
    /// Names under which clients reach the server.
    pub host_names: Vec<String>,
    /// Whether the server ends when standard input does, as when the program that has started it is gone.
    pub until_input_ends: bool,
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedPlaces {
    /// Address of the server, as a URL.
    pub url: Option<String>,
    /// The address under which other machines reach it, as a URL.
    pub shared_url: Option<String>,
    /// The Unix socket.
    pub socket: Option<PathBuf>,
}

/// Why the HTTP server can't start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum HttpServeError {
    /// The system gives no threads, or no signals.
    #[error("the HTTP server doesn't start: {0}")]
    Runtime(#[from] std::io::Error),
    /// Other machines could read what is sent.
    #[error("{0} is reachable from other machines: add --tls, or --tls-cert and --tls-key, or listen on 127.0.0.1")]
    NeedsTls(SocketAddr),
    /// The address is in use, or not of this machine.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address or the socket's path.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The certificate or its key can't be used.
    #[error("can't use the certificate {path}: {source}")]
    Certificate {
        /// The certificate.
        path: PathBuf,
        /// The error in its file.
        source: std::io::Error,
    },
    /// No certificate can be made.
    #[error(transparent)]
    OwnCertificate(#[from] CertificateError),
    /// Another server has the workspace's socket.
    #[error("another `tracebook serve` has {0}; end it first")]
    Running(PathBuf),
    /// It would listen nowhere.
    #[error("there is no Unix socket on this system; leave out --no-tcp")]
    Nowhere,
}

/// Sets the limits for connections, whatever carries them. They speak HTTP/1.1 and HTTP/2: a server that is limited to
/// HTTP/1.1 would refuse WebSocket.
fn with_limits<A: Address, Acc>(mut server: Server<A, Acc>) -> Server<A, Acc> {
    server.http_builder().http1().header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES as usize);
    let mut builder = server.http_builder().http2();
    builder.timer(hyper_util::rt::TokioTimer::new()).max_concurrent_streams(MAX_STREAMS);
    builder.max_header_list_size(MAX_HEAD_BYTES).keep_alive_interval(PING_INTERVAL).keep_alive_timeout(HEAD_TIMEOUT);
    server.first_request_timeout(HEAD_TIMEOUT)
}

/// Opens the socket in the workspace, which only the user can use.
#[cfg(unix)]
fn open_socket(path: &std::path::Path) -> Result<std::os::unix::net::UnixListener, HttpServeError> {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    let failed = |source| HttpServeError::Listen { address: path.display().to_string(), source };
    if UnixStream::connect(path).is_ok() {
        return Err(HttpServeError::Running(path.to_owned()));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Waits until the system asks the program to end.
async fn wait_for_end() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut ends, mut stops) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! { _ = ends.recv() => {}, _ = stops.recv() => {} }
        Ok(())
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Waits until standard input ends. What comes there is ignored.
async fn input_end() {
    let (tell, told) = tokio::sync::oneshot::channel();
    // A thread of its own, since a read that waits holds up the end of a runtime.
    std::thread::spawn(move || {
        // An input that can't be read has ended, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = tell.send(()); // the server may have ended meanwhile
    });
    let _ = told.await; // fails only if the thread does
}

/// Listens on an address of the machine.
async fn start_tcp(
    settings: &HttpServerSettings,
    address: SocketAddr,
    router: Router,
    acceptor: PlaceAcceptor,
    handle: Handle<SocketAddr>,
) -> Result<String, HttpServeError> {
    let failed = |source| HttpServeError::Listen { address: address.to_string(), source };
    if settings.tls.is_none() && !address.ip().is_loopback() {
        return Err(HttpServeError::NeedsTls(address));
    }
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let files = match &settings.tls {
        None => None,
        Some(TlsSource::Files(files)) => Some(files.clone()),
        Some(TlsSource::Workspace) => {
            Some(tls_certificate::load_or_create(&settings.workspace, &settings.host_names, bound.ip())?)
        }
    };
    let Some(files) = files else {
        let server = with_limits(axum_server::from_tcp(listener).map_err(failed)?).handle(handle);
        tokio::spawn(server.acceptor(acceptor).serve(service));
        return Ok(format!("http://{bound}"));
    };
    // Only the first call counts, and all crates choose the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = RustlsConfig::from_pem_file(&files.certificate, &files.key).await;
    let config = config.map_err(|source| HttpServeError::Certificate { path: files.certificate.clone(), source })?;
    // It must not agree to more than the server speaks.
    let mut agreed = rustls::ServerConfig::clone(&config.get_inner());
    agreed.alpn_protocols = TLS_PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    let config = RustlsConfig::from_config(Arc::new(agreed));
    let server = with_limits(axum_server::from_tcp_rustls(listener, config).map_err(failed)?).handle(handle);
    let server = server.map(|tls| tls.handshake_timeout(HEAD_TIMEOUT).acceptor(acceptor));
    tokio::spawn(server.serve(service));
    Ok(format!("https://{bound}"))
}

/// Returns the address of the server for other machines: with its first name, or this machine's address if it listens
/// on all.
fn shared_url(url: &str, names: &[String]) -> String {
    let Some((scheme, Ok(bound))) = url.split_once("://").map(|(scheme, at)| (scheme, at.parse::<SocketAddr>())) else {
        return url.to_owned();
    };
    let host = match (names.first(), tls_certificate::local_address()) {
        _ if bound.ip().is_loopback() => return url.to_owned(),
        (Some(name), _) => name.clone(),
        (None, Some(address)) if bound.ip().is_unspecified() => address.to_string(),
        (None, _) => return url.to_owned(),
    };
    format!("{scheme}://{host}:{}", bound.port())
}

/// Serves the workspace over HTTP until the system asks the program to end. `announce` is told where.
///
/// # Errors
/// Returns an error if the server can't start.
pub fn serve_http(
    commands: Arc<dyn WorkspaceCommands>,
    settings: &HttpServerSettings,
    announce: &mut dyn FnMut(&ServedPlaces),
) -> Result<(), HttpServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let names = settings.host_names.clone();
    let state = Arc::new(HttpState::new(commands, &settings.workspace, names, settings.tls.is_some()));
    let router = http_router(state.clone());
    let done = runtime.block_on(async {
        let tcp = Handle::<SocketAddr>::new();
        let mut places = ServedPlaces { url: None, shared_url: None, socket: None };
        #[cfg(unix)]
        let local = {
            let path = settings.workspace.join(SOCKET_NAME);
            let failed = |source| HttpServeError::Listen { address: path.display().to_string(), source };
            let local = Handle::new();
            if path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES || settings.listen.is_none() {
                let server = axum_server::from_unix(open_socket(&path)?).map_err(failed)?;
                tokio::spawn(with_limits(server).handle(local.clone()).serve(router.clone().into_make_service()));
                places.socket = Some(path);
            }
            local
        };
        if let Some(address) = settings.listen {
            let acceptor = PlaceAcceptor { places: state.connection_places.clone() };
            let url = start_tcp(settings, address, router, acceptor, tcp.clone()).await?;
            let shared = shared_url(&url, &settings.host_names);
            pairing::announce_address(&settings.workspace, &shared)?;
            (places.url, places.shared_url) = (Some(url), Some(shared));
        }
        if places.url.is_none() && places.socket.is_none() {
            return Err(HttpServeError::Nowhere);
        }
        let count = tcp.clone();
        #[cfg(unix)]
        let local_count = local.clone();
        // Set once, here.
        let _ = state.connection_count.set(Box::new(move || {
            #[cfg(unix)]
            let others = local_count.connection_count();
            #[cfg(not(unix))]
            let others = 0;
            count.connection_count() + others
        }));
        announce(&places);
        match settings.until_input_ends {
            true => tokio::select! { done = wait_for_end() => done?, () = input_end() => {} },
            false => wait_for_end().await?,
        }
        tcp.graceful_shutdown(Some(SHUTDOWN_GRACE));
        #[cfg(unix)]
        local.graceful_shutdown(Some(SHUTDOWN_GRACE));
        let end = tokio::time::Instant::now() + SHUTDOWN_GRACE;
        while state.connections() > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(SHUTDOWN_CHECK_INTERVAL).await;
        }
        pairing::withdraw_address(&settings.workspace);
        if let Some(socket) = &places.socket {
            // A socket that stays is replaced at the next start.
            let _ = std::fs::remove_file(socket);
        }
        Ok(())
    });
    // A command may still be waited for.
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    done
}
