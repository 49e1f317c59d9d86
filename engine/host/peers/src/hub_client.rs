//! WebSocket connections to hubs, on a separate thread: messages of bytes, in order, both ways.
//!
//! The client decides nothing. Its user decides when a hub is dialed and interprets the bytes.

use crate::devices::PairedDevice;
use crate::handshake::ControlMessage;
use crate::hub_socket::{self, HubConnectError, HubSocket};
use crate::key::{DeviceId, DeviceKey};
use futures_util::{SinkExt, StreamExt};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::tungstenite::Message;

/// How long connecting to a hub may take, including the handshake.
const HUB_DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of pings that check whether a hub still responds.
const HUB_PING_INTERVAL: Duration = Duration::from_secs(3);
/// How long a hub may be silent before the connection counts as lost.
const HUB_SILENCE_TIMEOUT: Duration = Duration::from_secs(9);

/// An event of a connection to a hub.
#[derive(Debug)]
pub enum HubEvent {
    /// The connection is open.
    Open,
    /// A message was received.
    Message(Vec<u8>),
    /// The hub sent a notice for the log.
    Notice(String),
    /// The connection was closed or failed, with the reason. It's the last event of the connection.
    Closed(String),
}

enum HubCommand {
    Dial { link: u64, url: String },
    Send { link: u64, bytes: Vec<u8> },
    Close { link: u64 },
    Gone { link: u64 },
}

/// The connections of this program to hubs.
pub struct HubClient {
    commands: UnboundedSender<HubCommand>,
    queued_bytes: QueuedBytes,
}

/// Number of bytes queued for sending, per connection.
type QueuedBytes = Arc<Mutex<HashMap<u64, usize>>>;

fn update_queued_bytes(waiting: &QueuedBytes, link: u64, change: impl FnOnce(&mut usize)) {
    change(waiting.lock().unwrap_or_else(PoisonError::into_inner).entry(link).or_default());
}

impl std::fmt::Debug for HubClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client")
    }
}

type HubEventHandler = Arc<dyn Fn(u64, HubEvent) + Send + Sync>;
/// This device's key, if a hub was paired, and the list of devices.
pub type CallerIdentity = (Option<DeviceKey>, BTreeMap<DeviceId, PairedDevice>);

/// Provides this device's key and the list of devices.
///
/// It's called for every connection, because the list changes, and on a thread that may block, because a keyring is
/// slow.
type CallerIdentitySource = Arc<dyn Fn() -> Result<CallerIdentity, CallerIdentityError> + Send + Sync>;

/// Why this device's key or the list of devices can't be read, as the secrets or the list report it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallerIdentityError(pub String);

/// Why a hub couldn't be reached.
#[derive(Debug, thiserror::Error)]
enum HubDialError {
    #[error(transparent)]
    Identity(#[from] CallerIdentityError),
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Connect(#[from] HubConnectError),
    #[error("it did not answer in 10 seconds")]
    Timeout,
}

impl HubClient {
    /// Starts the client's thread, which ends when the client is dropped.
    ///
    /// `tell` is called on that thread and must not block. `caller` provides the identity used with paired hubs.
    ///
    /// # Errors
    /// Returns the I/O error if the system can't create a thread or sockets.
    pub fn start(
        caller: impl Fn() -> Result<CallerIdentity, CallerIdentityError> + Send + Sync + 'static,
        tell: impl Fn(u64, HubEvent) + Send + Sync + 'static,
    ) -> std::io::Result<HubClient> {
        let (orders, queue) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let waiting = QueuedBytes::default();
        let sent = waiting.clone();
        let (back, tell) = (orders.downgrade(), Arc::new(tell) as HubEventHandler);
        let caller = Arc::new(caller) as CallerIdentitySource;
        let thread = std::thread::Builder::new().name("hubs".to_owned());
        thread.spawn(move || {
            runtime.block_on(async move {
                let tell_closed = tell.clone();
                let gone = move |link, why: String| {
                    tell_closed(link, HubEvent::Closed(why));
                    if let Some(orders) = back.upgrade() {
                        // Here and below: the receiver ends only with the program or the connection.
                        let _ = orders.send(HubCommand::Gone { link });
                    }
                };
                run_hub_connections(queue, caller, tell, Arc::new(gone), sent).await;
            });
        })?;
        Ok(HubClient { commands: orders, queued_bytes: waiting })
    }

    /// Opens a connection to a hub. The caller chooses the number `link`.
    pub fn dial(&self, link: u64, url: String) {
        let _ = self.commands.send(HubCommand::Dial { link, url });
    }

    /// Sends a message over a connection. Messages are queued until it's open.
    pub fn send(&self, link: u64, bytes: Vec<u8>) {
        update_queued_bytes(&self.queued_bytes, link, |waiting| *waiting += bytes.len());
        let _ = self.commands.send(HubCommand::Send { link, bytes });
    }

    /// Returns the number of bytes queued for sending over a connection.
    pub fn queued_bytes(&self, link: u64) -> usize {
        self.queued_bytes.lock().unwrap_or_else(PoisonError::into_inner).get(&link).copied().unwrap_or_default()
    }

    /// Closes a connection after the messages queued before.
    pub fn close(&self, link: u64) {
        let _ = self.commands.send(HubCommand::Close { link });
    }
}

async fn run_hub_connections(
    mut queue: UnboundedReceiver<HubCommand>,
    caller: CallerIdentitySource,
    tell: HubEventHandler,
    gone: Arc<dyn Fn(u64, String) + Send + Sync>,
    waiting: QueuedBytes,
) {
    let mut links: HashMap<u64, UnboundedSender<Message>> = HashMap::new();
    while let Some(order) = queue.recv().await {
        match order {
            HubCommand::Dial { link, url } => {
                let (out, outgoing) = unbounded_channel();
                links.insert(link, out.clone());
                let (caller, tell, gone, waiting) = (caller.clone(), tell.clone(), gone.clone(), waiting.clone());
                tokio::spawn(async move {
                    let why = match dial_hub(&url, caller).await {
                        Ok(socket) => run_hub_connection(link, socket, out, outgoing, &tell, waiting).await,
                        Err(why) => why.to_string(),
                    };
                    gone(link, why);
                });
            }
            HubCommand::Send { link, bytes } => {
                if let Some(out) = links.get(&link) {
                    let _ = out.send(Message::binary(bytes));
                }
            }
            HubCommand::Close { link } => {
                if let Some(out) = links.remove(&link) {
                    let _ = out.send(Message::Close(None));
                }
            }
            HubCommand::Gone { link } => {
                links.remove(&link);
                waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&link);
            }
        }
    }
}

/// Dials a hub, as the device that was paired with it or else without authentication.
async fn dial_hub(url: &str, caller: CallerIdentitySource) -> Result<HubSocket, HubDialError> {
    let (key, list) = tokio::task::spawn_blocking(move || caller()).await??;
    let dialed = hub_socket::connect_to_hub(url, key.as_ref(), &list);
    Ok(tokio::time::timeout(HUB_DIAL_TIMEOUT, dialed).await.map_err(|_| HubDialError::Timeout)??)
}

/// Runs one open connection until it ends, and returns the reason.
async fn run_hub_connection(
    link: u64,
    socket: HubSocket,
    out: UnboundedSender<Message>,
    mut outgoing: UnboundedReceiver<Message>,
    tell: &HubEventHandler,
    waiting: QueuedBytes,
) -> String {
    tell(link, HubEvent::Open);
    let (mut sink, mut stream) = socket.into_stream().split();
    // The writer is a separate task: when it waits for the other side, it must not block reading.
    let writer = tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let (last, size) = (message.is_close(), if message.is_binary() { message.len() } else { 0 });
            if sink.send(message).await.is_err() || last {
                break;
            }
            update_queued_bytes(&waiting, link, |waiting| *waiting = waiting.saturating_sub(size));
        }
        // Closing fails only if the connection is already broken.
        let _ = sink.close().await;
    });
    let mut beat = tokio::time::interval(HUB_PING_INTERVAL);
    let mut heard = Instant::now();
    let why = loop {
        tokio::select! {
            message = stream.next() => {
                heard = Instant::now();
                match message {
                    Some(Ok(Message::Binary(bytes))) => tell(link, HubEvent::Message(bytes.to_vec())),
                    // Hubs send the reason before they close a connection.
                    Some(Ok(Message::Text(text))) => {
                        match serde_json::from_str(text.as_str()) {
                            Ok(ControlMessage::Refused(why)) => break why,
                            Ok(ControlMessage::Told(words)) => tell(link, HubEvent::Notice(words)),
                            Ok(ControlMessage::Devices(_)) | Err(_) => {}
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => break "it was closed".to_owned(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error.to_string(),
                }
            }
            _ = beat.tick() => {
                if heard.elapsed() > HUB_SILENCE_TIMEOUT {
                    break format!("nothing was heard for {} seconds", HUB_SILENCE_TIMEOUT.as_secs());
                }
                let _ = out.send(Message::Ping(Default::default()));
            }
        }
    };
    writer.abort();
    why
}
