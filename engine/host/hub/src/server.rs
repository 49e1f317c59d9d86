//! Endpoints of the hub: WebSockets for devices, for pairing and, if the settings allow it, for other programs;
//! `/metrics` and `/healthz`. Each connection is a task that forwards frames within its limits.

mod work_endpoint;

use self::work_endpoint::serve_work;
use crate::blobs::BlobFolder;
use crate::certificate::{load_certificate, load_or_create_metrics_token};
use crate::connections::{ConnectionLimits, HubPeer, OpenConnections, TcpAcceptor, address_network};
use crate::error::{HubFileError, HubStartError};
use crate::hub_core::{CoreInput, FrameOutbox, HubCore, OutgoingFrame, PeerIdentity};
use crate::invitation::{InvitationGrant, write_hub_address};
use crate::metrics::{HubMetrics, render_page};
use crate::policy::{HubPolicy, POLICY_FILE as SHARE, SharedVolumes};
use crate::settings::{HubSettings, OpenAccess, TlsMode};
use crate::sqlite_storage::SqliteStorage;
use crate::storage::{HubBus, HubStorage, HubStore, ReplicaNews, SingleReplica};
use crate::work::{WorkQueue, WorkStore};
use crate::{HubLog, nats};
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use futures_util::future::OptionFuture;
use futures_util::{SinkExt, StreamExt};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use peers::challenge::ChannelBinding;
use peers::devices::{DeviceList, PairedDevice, now_millis};
use peers::handshake::{
    self, CallRefusal, ControlMessage, DEVICE_PATH, FrameSendError, FrameTransport, PAIR_PATH, PeerFrame,
};
use peers::pairing::{DeviceCard, Invitation, OneTimeCode};
use peers::work::WORK_PATH;
use peers::{DeviceId, DeviceKey};
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use store::DeviceAccess;
use store::sync::{PeerId, wire};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How often the hub checks the files in its folder for changes; a revoked device is disconnected within this time.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A silent connection is pinged after this time, and closed after twice as long.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Maximum number of pairing attempts per minute from one address, and in total.
const MAX_PAIRINGS_PER_ADDRESS: u32 = 30;
const MAX_PAIRINGS_PER_MINUTE: u32 = 300;
/// Maximum KiB of messages queued for the core thread; beyond it, nothing more is read.
const MAX_QUEUED_KIB: usize = 128 << 10;
/// Time limit for a TLS handshake.
const TLS_DEADLINE: Duration = Duration::from_secs(10);
/// Size of a connection's read buffer.
const READ_BUFFER_BYTES: usize = 32 << 10;
/// Maximum time that a device waits until its replica has received everything that others acknowledged before.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of frames before a client is accepted: the greeting, and messages sent without waiting.
const MAX_EARLY_FRAMES: usize = 4;
/// How often the log reports the number of connections closed without a proven key.
const CLOSED_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Time limit for a clean shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// Starts hubs; see [`HubServer::start`].
#[derive(Debug)]
pub struct HubServer;

/// A running hub, until [`RunningHub::stop`].
pub struct RunningHub {
    runtime: Option<tokio::runtime::Runtime>,
    handle: Handle<SocketAddr>,
    shared: Arc<ServerState>,
    core: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl std::fmt::Debug for RunningHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Running on {}", self.address)
    }
}

/// State shared by all connections.
struct ServerState {
    settings: HubSettings,
    key: DeviceKey,
    binding: ChannelBinding,
    /// The address at which others reach the hub.
    public_address: String,
    devices: DeviceList,
    list: RwLock<BTreeMap<DeviceId, PairedDevice>>,
    offer: Mutex<Option<OneTimeCode>>,
    inputs: Sender<CoreInput>,
    store: Arc<dyn HubStore>,
    bus: Arc<dyn HubBus>,
    metrics: HubMetrics,
    registry: Registry,
    log: HubLog,
    links: AtomicU64,
    connections: Arc<OpenConnections>,
    /// Permits for messages queued for the core thread, in KiB.
    queue: Arc<Semaphore>,
    /// Number of bytes queued for sending, for all connections.
    outgoing: Arc<AtomicUsize>,
    /// What devices may do with each volume.
    volumes: Arc<SharedVolumes>,
    /// The runs that devices send to each other.
    work: Arc<WorkQueue>,
    /// The bearer token for `/metrics`.
    metrics_token: String,
    pairings_from: DefaultKeyedRateLimiter<IpAddr>,
    pairings: RateLimiter<
        governor::state::NotKeyed,
        governor::state::InMemoryState,
        DefaultClock,
        governor::middleware::NoOpMiddleware<<DefaultClock as Clock>::Instant>,
    >,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HubServer {
    /// Starts a hub, which listens when this returns.
    ///
    /// # Errors
    /// Returns an error if the folder, the address, the certificate or the store can't be used.
    pub fn start(settings: HubSettings, key: DeviceKey, log: HubLog) -> Result<RunningHub, HubStartError> {
        if settings.tls == TlsMode::Plain && !settings.listen.ip().is_loopback() {
            return Err(HubStartError::PlainAddress(settings.listen));
        }
        let fail = || HubFileError::io(&settings.folder);
        store::disk::create_folder(&settings.folder).map_err(fail())?;
        // One hub per folder: the system releases the lock when the process ends, however it ends.
        let lock_file = std::fs::File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(settings.folder.join("hub.lock"))
            .map_err(fail())?;
        lock_file.try_lock().map_err(|_| HubStartError::AlreadyRuns { folder: settings.folder.clone() })?;
        let certificate = load_certificate(&settings)?;
        let binding = certificate.as_ref().map(|one| ChannelBinding::from_certificate(&one.der)).unwrap_or_default();
        let listener = std::net::TcpListener::bind(settings.listen)
            .map_err(|source| HubStartError::Listen { address: settings.listen, source })?;
        listener.set_nonblocking(true).map_err(fail())?;
        let address = listener.local_addr().map_err(fail())?;
        let scheme = if settings.tls == TlsMode::Plain { "ws" } else { "wss" };
        let at = settings.address.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("hub")
            .enable_all()
            .build()
            .map_err(fail())?;
        let (inputs, told) = channel();
        let (metrics, registry) = HubMetrics::new();
        let devices = DeviceList::new(&settings.folder)?;
        let ((store, files, bus), work): (HubStorage, Arc<dyn WorkStore>) = match &settings.nats {
            None => {
                let store = Arc::new(SqliteStorage::open(&settings.folder, Arc::clone(&log))?);
                let files = Arc::new(BlobFolder::new(&settings.folder));
                ((Arc::clone(&store) as Arc<dyn HubStore>, files, Arc::new(SingleReplica)), store)
            }
            Some(servers) => {
                let (hear, list) = (inputs.clone(), devices.clone());
                let heard = move |news| match news {
                    // Another replica's list: the changed file is read shortly.
                    ReplicaNews::Devices(bytes) => drop(list.merge(&bytes)),
                    ReplicaNews::Changed { .. }
                    | ReplicaNews::BlobAdded { .. }
                    | ReplicaNews::BlobLost { .. }
                    | ReplicaNews::Ephemeral(_) => drop(hear.send(CoreInput::ReplicaNews(news))),
                };
                let replicas =
                    runtime.block_on(nats::NatsReplicas::open(servers, Arc::new(heard), Arc::clone(&log)))?;
                let replicas = Arc::new(replicas);
                let work = runtime.block_on(replicas.open_work())?;
                ((Arc::clone(&replicas) as Arc<dyn HubStore>, replicas.hub_files(), replicas as Arc<dyn HubBus>), work)
            }
        };
        let me = key.id().to_string();
        let kept = Arc::clone(&store);
        let parts = ((Arc::clone(&store), files, Arc::clone(&bus)), metrics.clone());
        let core = HubCore::new(me, parts, settings.clone(), inputs.clone(), Arc::clone(&log))?;
        let (volumes, work) = (core.shared_volumes(), Arc::new(WorkQueue::new(work, key.id(), settings.lease)));
        let thread = std::thread::Builder::new().name("hub-core".to_owned());
        let core = thread.spawn(move || {
            core.run(&told);
            store.close();
            drop(lock_file);
        });
        let core = core.map_err(fail())?;
        // Stamps are taken before reading, so that later changes are noticed.
        let stamps = (devices.file_stamp(), modified_time(&settings.folder.join(SHARE)));
        let policy = HubPolicy::load(&settings.folder)?;
        // Here and below: sending fails only when the program or the connection ends.
        let _ = inputs.send(CoreInput::Policy(policy));
        let list = devices.list()?;
        let _ = inputs.send(CoreInput::Devices(list.clone()));
        let minute = |count| Quota::per_minute(NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN));
        let connections = OpenConnections::new(ConnectionLimits::new(settings.files, settings.connections));
        let shared = Arc::new(ServerState {
            key,
            binding,
            public_address: at,
            list: RwLock::new(list),
            devices,
            offer: Mutex::default(),
            inputs,
            store: kept,
            bus,
            metrics,
            registry,
            log,
            links: AtomicU64::new(1),
            connections: Arc::clone(&connections),
            queue: Arc::new(Semaphore::new(MAX_QUEUED_KIB)),
            outgoing: Arc::default(),
            metrics_token: load_or_create_metrics_token(&settings.folder)?,
            volumes,
            work,
            pairings_from: RateLimiter::keyed(minute(MAX_PAIRINGS_PER_ADDRESS)),
            pairings: RateLimiter::direct(minute(MAX_PAIRINGS_PER_MINUTE)),
            settings,
        });
        shared.bus.announce(ReplicaNews::Devices(Arc::new(shared.devices.to_bytes()?)));
        let router = Router::new()
            .route("/", get(serve_open_client))
            .route(DEVICE_PATH, get(serve_device))
            .route(PAIR_PATH, get(serve_pairing))
            .route(WORK_PATH, get(serve_work))
            .route("/metrics", get(metrics_page))
            .route("/healthz", get(health_page))
            .with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let handle = Handle::new();
        let _inside = runtime.enter();
        let acceptor = TcpAcceptor(connections);
        match certificate {
            None => {
                let server = axum_server::from_tcp(listener)?.acceptor(acceptor);
                runtime.spawn(server.handle(handle.clone()).serve(service));
            }
            Some(certificate) => {
                let config = RustlsConfig::from_config(certificate.config);
                let server = axum_server::from_tcp_rustls(listener, config)?;
                let server = server.map(|tls| tls.handshake_timeout(TLS_DEADLINE).acceptor(acceptor));
                runtime.spawn(server.handle(handle.clone()).serve(service));
            }
        }
        runtime.spawn(poll_config_files(Arc::clone(&shared), stamps));
        write_hub_address(&shared.settings.folder, Some((&shared.public_address, shared.key.id())))?;
        drop(_inside);
        Ok(RunningHub { runtime: Some(runtime), handle, shared, core: Some(core), address })
    }
}

impl RunningHub {
    /// Returns the address that the hub listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address at which others reach the hub.
    pub fn public_address(&self) -> &str {
        &self.shared.public_address
    }

    /// Offers a code to pair one device, replacing the previous one.
    pub fn invite(&self, invited: InvitationGrant) -> Invitation {
        let (code, rights) = (invited.offer.code(), Some(invited.rights()));
        self.shared.invite(invited);
        Invitation { at: self.shared.public_address.clone(), code, key: self.shared.key.id(), rights }
    }

    /// Blocks until the system asks the program to end (SIGTERM, SIGINT).
    pub fn wait(&self) {
        let Some(runtime) = &self.runtime else { return };
        runtime.block_on(async {
            #[cfg(unix)]
            {
                use tokio::signal::unix::{SignalKind, signal};
                if let (Ok(mut ends), Ok(mut stops)) =
                    (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
                {
                    tokio::select! { _ = ends.recv() => {}, _ = stops.recv() => {} }
                    return;
                }
            }
            if tokio::signal::ctrl_c().await.is_err() {
                tracing::error!("the system reports no Ctrl+C; the hub ends");
            }
        });
    }

    /// Stops the hub: no new clients, accepted changes become durable, and clients are notified.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if write_hub_address(&self.shared.settings.folder, None).is_err() {
            tracing::warn!("the file that says where the hub is reached could not be removed");
        }
        self.handle.graceful_shutdown(Some(SHUTDOWN_GRACE));
        let _ = self.shared.inputs.send(CoreInput::Stop);
        if let Some(core) = self.core.take()
            && core.join().is_err()
        {
            tracing::error!("the hub's core failed");
        }
        // Send the queued messages before the connections close.
        runtime.block_on(async {
            for _ in 0..20 {
                if self.handle.connection_count() == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.end();
    }
}

impl ServerState {
    fn invite(&self, invited: InvitationGrant) {
        let rights = invited.rights();
        *lock(&self.offer) = Some(invited.offer.with_rights(rights));
    }

    fn log_line(&self, words: &str) {
        (self.log)(words);
    }

    fn log_refusal(&self, words: &str) {
        self.metrics.refused.inc();
        self.log_line(words);
    }

    /// Returns a paired device's entry, or the reason why the device isn't admitted.
    fn find_paired_device(&self, id: DeviceId) -> Result<PairedDevice, CallRefusal> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        peers::lan::check_is_paired(list.get(&id))?;
        list.get(&id).cloned().ok_or(CallRefusal::NotPaired)
    }

    /// Reads the list of devices from its file, and applies it.
    fn read_list(&self) {
        match self.devices.list() {
            Ok(list) => {
                // In this order, so that a device on the list is known to all later components.
                let _ = self.inputs.send(CoreInput::Devices(list.clone()));
                *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
                if let Ok(bytes) = self.devices.to_bytes() {
                    self.bus.announce(ReplicaNews::Devices(Arc::new(bytes)));
                }
            }
            // An unreadable list admits no devices: connected ones are dropped, too.
            Err(why) => {
                self.log_line(&why.to_string());
                self.list.write().unwrap_or_else(PoisonError::into_inner).clear();
                let _ = self.inputs.send(CoreInput::Devices(BTreeMap::new()));
            }
        }
    }
}

/// Modification stamps of the list of devices and of the policy, as last read.
type ConfigStamps = (Option<(SystemTime, u64)>, Option<SystemTime>);

fn modified_time(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// Polls the files in the hub's folder for changes by other processes of the same user.
async fn poll_config_files(shared: Arc<ServerState>, stamps: ConfigStamps) {
    let share = shared.settings.folder.join(SHARE);
    let (mut list, mut policy) = stamps;
    let (mut closed, mut said) = (0, Instant::now());
    loop {
        tokio::time::sleep(CONFIG_POLL_INTERVAL).await;
        let now = shared.devices.file_stamp();
        if now != list {
            list = now;
            shared.read_list();
        }
        let now = modified_time(&share);
        if now != policy {
            policy = now;
            match HubPolicy::load(&shared.settings.folder) {
                Ok(policy) => drop(shared.inputs.send(CoreInput::Policy(policy))),
                Err(why) => shared.log_line(&format!("what is shared stays as it was: {why}")),
            }
        }
        if let Some(invited) = InvitationGrant::take_saved(&shared.settings.folder) {
            shared.invite(invited);
        }
        closed += shared.connections.close_overdue();
        if closed > 0 && said.elapsed() > CLOSED_LOG_INTERVAL {
            let words = if closed == 1 { "connection was" } else { "connections were" };
            shared.log_refusal(&format!("{closed} {words} closed without having proven a key"));
            shared.pairings_from.retain_recent();
            (closed, said) = (0, Instant::now());
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
}

/// Compares tokens by their hashes, in constant time.
fn is_same_token(given: &str, token: &str) -> bool {
    blake3::hash(given.as_bytes()) == blake3::hash(token.as_bytes())
}

async fn metrics_page(State(shared): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    if !bearer_token(&headers).is_some_and(|given| is_same_token(given, &shared.metrics_token)) {
        let words = "this page needs the token in the file metrics-token in the hub's folder\n";
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")], words).into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", kind)], render_page(&shared.registry)).into_response()
}

/// Serves the health check: a load balancer sends no clients to a replica that can't store.
async fn health_page(State(shared): State<Arc<ServerState>>) -> Response {
    match shared.store.check_health() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

fn over_capacity_response(shared: &ServerState) -> Response {
    shared.log_refusal("a call was refused: there are too many connections");
    (StatusCode::SERVICE_UNAVAILABLE, "the hub has too many connections; try again later\n").into_response()
}

fn limit_upgrade(shared: &ServerState, upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    let most = shared.settings.largest_message;
    upgrade.max_message_size(most).max_frame_size(most).read_buffer_size(READ_BUFFER_BYTES)
}

/// Serves WebSocket clients without a device key.
async fn serve_open_client(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let given = bearer_token(&headers).or_else(|| query.get("token").map(String::as_str));
    let is_in = match &shared.settings.open {
        OpenAccess::Closed => false,
        OpenAccess::Loopback => from.ip().is_loopback(),
        OpenAccess::Token(token) => given.is_some_and(|given| is_same_token(given, token)),
    };
    if !is_in {
        shared.log_refusal(&format!("refused {}: it isn't a paired device and has no token", from.ip()));
        return (StatusCode::FORBIDDEN, "this hub accepts paired devices and clients with its token\n").into_response();
    }
    let Some(there) =
        shared.connections.find_peer(from).filter(|there| shared.connections.mark_proven(there, None).is_ok())
    else {
        return over_capacity_response(&shared);
    };
    let name = format!("a program at {}", from.ip());
    limit_upgrade(&shared, upgrade).on_upgrade(move |socket| {
        run_connection(shared, there, socket, PeerIdentity { device: None, name, max_access: DeviceAccess::Write })
    })
}

/// Serves paired devices.
async fn serve_device(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(there) = shared.connections.find_peer(from).filter(|_| shared.connections.has_room()) else {
        return over_capacity_response(&shared);
    };
    limit_upgrade(&shared, upgrade).on_upgrade(move |socket| async move {
        let mut door = PendingSocket(socket);
        if let Some((id, device)) = admit_device(&shared, &there, &mut door, from).await {
            let (name, most) = (format!("{} ({})", device.name, id.short_id()), device.access);
            run_connection(shared, there, door.0, PeerIdentity { device: Some(id), name, max_access: most }).await;
        }
    })
}

/// Verifies the key of a device that calls; `None` if it was refused.
async fn admit_device(
    shared: &Arc<ServerState>,
    there: &Arc<HubPeer>,
    door: &mut PendingSocket,
    from: SocketAddr,
) -> Option<(DeviceId, PairedDevice)> {
    let known = |id| shared.find_paired_device(id).map(|_| ());
    let answered = handshake::authenticate_caller(door, &shared.key, shared.binding.clone(), known).await;
    let proved = answered.map_err(|(id, why)| (id, why.to_string())).and_then(|id| {
        let device = shared.find_paired_device(id).map_err(|why| (Some(id), why.to_string()))?;
        Ok((id, device))
    });
    let let_in = proved.and_then(|(id, device)| {
        let room = shared.connections.mark_proven(there, Some(id));
        room.map(|()| (id, device)).map_err(|why| (Some(id), why.to_owned()))
    });
    match let_in {
        Ok(admitted) => Some(admitted),
        Err((id, why)) => {
            let who = id.map_or_else(|| from.ip().to_string(), |id| format!("{} at {}", id.short_id(), from.ip()));
            shared.log_refusal(&format!("{who} was refused: {why}"));
            None
        }
    }
}

/// Serves devices with a pairing code.
async fn serve_pairing(
    State(shared): State<Arc<ServerState>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if shared.pairings_from.check_key(&address_network(from.ip())).is_err() || shared.pairings.check().is_err() {
        shared.log_refusal(&format!("{} was refused: too many want to be paired at once", from.ip()));
        return (StatusCode::TOO_MANY_REQUESTS, "too many want to be paired; try again in a minute\n").into_response();
    }
    limit_upgrade(&shared, upgrade).on_upgrade(move |socket| async move {
        let mut door = PendingSocket(socket);
        let certificate = (!shared.binding.0.is_empty())
            .then(|| shared.binding.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let card = DeviceCard {
            device: shared.key.id(),
            name: shared.settings.name.clone(),
            address: Some(shared.public_address.clone()),
            certificate,
            // Both come from the offer that is used.
            access: None,
            admin: false,
        };
        match handshake::accept_pairing(&mut door, &shared.key, &card, &shared.offer, now_millis(), &shared.binding)
            .await
        {
            Ok((theirs, rights)) => {
                let device = PairedDevice {
                    name: theirs.name,
                    added: 0,
                    revoked: None,
                    access: rights.access,
                    admin: rights.admin,
                    address: None,
                    certificate: None,
                };
                let name = device.name.clone();
                match shared.devices.pair(theirs.device, device) {
                    Ok(()) => {
                        shared.read_list();
                        let may = rights.describe();
                        shared.log_line(&format!("{name} ({}) was paired: it {may}", theirs.device.short_id()));
                    }
                    Err(why) => shared.log_line(&why.to_string()),
                }
                // The client gets the last message before the connection closes.
                let _ = tokio::time::timeout(SHUTDOWN_GRACE, door.next_frame()).await;
            }
            Err(why) => shared.log_refusal(&format!("{} was not paired: {why}", from.ip())),
        }
    })
}

/// A WebSocket during the handshake, before its connection runs.
struct PendingSocket(WebSocket);

impl FrameTransport for PendingSocket {
    async fn send_frame(&mut self, frame: PeerFrame) -> Result<(), FrameSendError> {
        self.0.send(to_websocket_message(frame)).await.map_err(FrameSendError::ended)
    }

    async fn next_frame(&mut self) -> Option<PeerFrame> {
        loop {
            match self.0.recv().await?.ok()? {
                Message::Text(text) => return Some(PeerFrame::Text(text.as_str().to_owned())),
                Message::Binary(bytes) => return Some(PeerFrame::Binary(bytes.to_vec())),
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    }
}

fn to_websocket_message(frame: PeerFrame) -> Message {
    match frame {
        PeerFrame::Text(text) => Message::text(text),
        PeerFrame::Binary(bytes) => Message::binary(bytes),
    }
}

/// Parses the name in a greeting. A device key is reserved as a name for that device, and replicas' names for replicas.
fn check_greeting(bytes: &[u8], device: Option<DeviceId>) -> Result<PeerId, &'static str> {
    let Ok(wire::WireMessage::Join { sender, .. }) = wire::decode(bytes) else { return Err("it does not greet") };
    let reserved = sender.0.get(..64).and_then(|key| key.parse::<DeviceId>().ok());
    match reserved {
        Some(key) if Some(key) != device => Err("it claims to be another device"),
        _ if sender.0.starts_with("replicas ") => Err("it claims to be a replica"),
        _ => Ok(sender),
    }
}

/// Waits until this replica has everything that any replica has acknowledged to a device, so that each serves it.
async fn wait_until_caught_up(shared: Arc<ServerState>) {
    let (done, wait) = tokio::sync::oneshot::channel();
    shared.bus.notify_when_caught_up(Box::new(move || _ = done.send(())));
    if tokio::time::timeout(CATCH_UP_TIMEOUT, wait).await.is_err() {
        shared.log_line("a device is let in while this replica does not hear the others: it gets what is known here");
    }
}

/// Reserves room in the queue for a message, waiting until there is some.
async fn reserve_queue_space(queue: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let size = u32::try_from((bytes >> 10).clamp(1, MAX_QUEUED_KIB)).unwrap_or(u32::MAX);
    Arc::clone(queue).acquire_many_owned(size).await.ok()
}

/// Forwards frames between a client and the core thread until either side ends the connection.
async fn run_connection(shared: Arc<ServerState>, there: Arc<HubPeer>, socket: WebSocket, who: PeerIdentity) {
    let link = shared.links.fetch_add(1, Ordering::Relaxed);
    let (sender, mut outbox) = tokio::sync::mpsc::unbounded_channel();
    let (name, has_key) = (who.name.clone(), who.device);
    let outgoing = Arc::clone(&shared.outgoing);
    // Set until the client has greeted.
    let mut new =
        Some((who, FrameOutbox { sender, waiting: Arc::default(), all: outgoing, connection: Arc::clone(&there) }));
    // Set from the greeting until the client is admitted.
    let (mut waits, mut greeted, mut early) = (OptionFuture::default(), None, Vec::new());
    let rate = NonZeroU32::new(shared.settings.rate).unwrap_or(NonZeroU32::MAX);
    let limiter = RateLimiter::direct(Quota::per_second(rate));
    let clock = DefaultClock::default();
    let (mut to, mut from) = socket.split();
    let (mut asked, mut received) = (false, 0);
    let why = loop {
        tokio::select! {
            out = outbox.recv() => match out {
                Some(OutgoingFrame::Frame(frame, _waits)) => {
                    if to.send(to_websocket_message(frame)).await.is_err() {
                        break None;
                    }
                }
                Some(OutgoingFrame::Close(why)) => break Some(why),
                None => break None,
            },
            Some(()) = &mut waits => {
                waits = OptionFuture::default();
                if let Some((who, peer, outbox)) = greeted.take() {
                    let _ = shared.inputs.send(CoreInput::Connect { link, who, peer, outbox });
                }
                for (bytes, held) in early.drain(..) {
                    let _ = shared.inputs.send(CoreInput::Frame { link, bytes, held });
                }
            }
            frame = tokio::time::timeout(PING_INTERVAL, from.next()), if early.len() < MAX_EARLY_FRAMES => {
                let frame = match frame {
                    Ok(Some(Ok(frame))) => frame,
                    // The device was switched off or lost its network: there is nothing to report.
                    Ok(Some(Err(error))) if error.to_string().contains("without closing handshake") => break None,
                    Ok(Some(Err(error))) => {
                        shared.metrics.ended.inc();
                        shared.log_line(&format!("{name} goes: {error}"));
                        break Some(error.to_string());
                    }
                    Ok(None) => break None,
                    // A long message is arriving over a slow connection.
                    Err(_) if there.received_bytes() > received => {
                        received = there.received_bytes();
                        continue;
                    }
                    Err(_) if asked => {
                        shared.log_line(&format!("{name} goes: it does not answer"));
                        break None;
                    }
                    Err(_) => {
                        asked = true;
                        let _ = to.send(Message::Ping(Vec::new().into())).await;
                        continue;
                    }
                };
                (asked, received) = (false, there.received_bytes());
                match frame {
                    Message::Binary(bytes) => {
                        shared.connections.finish_message(&there);
                        let held = reserve_queue_space(&shared.queue, bytes.len()).await;
                        if let Some((who, outbox)) = new.take() {
                            match check_greeting(&bytes, has_key) {
                                Ok(peer) => {
                                    greeted = Some((who, peer, outbox));
                                    waits = Some(Box::pin(wait_until_caught_up(Arc::clone(&shared)))).into();
                                }
                                Err(why) => {
                                    shared.log_refusal(&format!("{name} was refused: {why}"));
                                    break Some(why.to_owned());
                                }
                            }
                        }
                        if let Err(soon) = limiter.check() {
                            // The client is slowed down to its rate; nothing is lost.
                            shared.metrics.slowed.inc();
                            tokio::time::sleep(soon.wait_time_from(clock.now())).await;
                        }
                        if greeted.is_some() {
                            early.push((bytes.to_vec(), held));
                        } else if shared.inputs.send(CoreInput::Frame { link, bytes: bytes.to_vec(), held }).is_err() {
                            break None;
                        }
                    }
                    Message::Text(text) => {
                        shared.connections.finish_message(&there);
                        handle_control_message(&shared, has_key, &name, text.as_str());
                    }
                    Message::Close(_) => break None,
                    Message::Ping(_) | Message::Pong(_) => {}
                }
            }
        }
    };
    let _ = shared.inputs.send(CoreInput::Gone { link });
    if let Some(why) = why {
        // A close frame has room for 123 bytes.
        let mut reason = why;
        while reason.len() > 120 {
            reason.pop();
        }
        let close =
            axum::extract::ws::CloseFrame { code: axum::extract::ws::close_code::POLICY, reason: reason.into() };
        let _ = tokio::time::timeout(SHUTDOWN_GRACE, to.send(Message::Close(Some(close)))).await;
    }
}

/// Handles a text frame: a paired device's control message.
fn handle_control_message(shared: &ServerState, device: Option<DeviceId>, name: &str, text: &str) {
    let Some(list) = serde_json::from_str::<ControlMessage>(text).ok().and_then(|control| control.device_list_bytes())
    else {
        return;
    };
    let is_admin = device.and_then(|id| shared.find_paired_device(id).ok()).is_some_and(|device| device.admin);
    if !is_admin {
        shared.log_refusal(&format!("{name} may not change the list of devices"));
        return;
    }
    match shared.devices.merge(&list) {
        Ok(true) => {
            shared.log_line(&format!("{name} has changed the list of devices"));
            shared.read_list();
        }
        Ok(false) => {}
        Err(why) => shared.log_refusal(&format!("{name} sent an invalid list of devices: {why}")),
    }
}
