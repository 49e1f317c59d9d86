//! Paired devices on the local network without a server: found and connected automatically.
//!
//! Each connection has its own number. Of two devices, the one with the lower key calls. A revoked device loses its
//! connection within a second.

use crate::devices::{DeviceAccess, DeviceList, PairedDevice};
use crate::handshake::PeerFrame;
use crate::key::{DeviceId, DeviceKey};
use crate::lan::{self, DEVICE_ALPN, LanConnection, LanEndpoint, LanSender, LanVisibility};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Interval of checking the list and calling devices that aren't connected.
const DEVICE_SCAN_INTERVAL: Duration = Duration::from_millis(400);
/// How long connecting to a device may take.
const LAN_DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay before a device that didn't answer is called again.
const LAN_REDIAL_DELAY: Duration = Duration::from_secs(3);
/// How long closing waits until other devices are notified. A device that isn't waits 30 s before it calls again.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum number of concurrent calls without a proven identity.
const MAX_UNPROVEN_CALLS: usize = 64;
/// Base of the connection numbers here. Connections elsewhere count from 1, so the numbers don't collide.
const FIRST_LINK_ID: u64 = 1 << 40;

/// An event of a connection, or of the local network as a whole.
#[derive(Debug)]
pub enum LanPeerEvent {
    /// A connection was opened.
    Open {
        /// Name of the device.
        name: String,
        /// The device's maximum access to documents.
        access: DeviceAccess,
        /// Whether this side made the call.
        dialed: bool,
    },
    /// A message was received.
    Message(Vec<u8>),
    /// The connection ended, with the reason. It's the last event of the connection.
    Closed(String),
    /// The local network can't be used, with the reason. It's retried. The event has no connection.
    Unavailable(String),
}

enum LanPeerCommand {
    Send { link: u64, bytes: Vec<u8> },
    Close { link: u64 },
}

enum LanConnectionEvent {
    Connected { device: DeviceId, way: Box<LanConnection>, dialed: bool },
    DialFailed { device: DeviceId },
    Disconnected { link: u64, why: String },
}

/// Where this device listens, and additional addresses to call.
#[derive(Clone, Debug)]
pub struct LanConfig {
    /// Whether and how this device is visible.
    pub visibility: LanVisibility,
    /// Addresses where other devices may listen.
    pub known_addresses: Vec<SocketAddr>,
}

/// Why the value of `TRACEBOOK_LAN` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LanConfigError {
    /// The value isn't a list of addresses.
    #[error("TRACEBOOK_LAN wants ADDRESS:PORT,…: {text}")]
    NotAddresses {
        /// The invalid value.
        text: String,
    },
    /// The value has no address.
    #[error("TRACEBOOK_LAN is empty")]
    Empty,
}

impl LanConfig {
    /// Parses `TRACEBOOK_LAN`, for networks without discovery: `HERE,THERE,…`, each `ADDRESS:PORT`.
    ///
    /// # Errors
    /// Returns an error if the value isn't such a list.
    pub fn from_env_value(said: Option<&str>) -> Result<LanConfig, LanConfigError> {
        let Some(said) = said else {
            return Ok(LanConfig { visibility: LanVisibility::Local, known_addresses: Vec::new() });
        };
        let places: Result<Vec<SocketAddr>, _> = said.split(',').map(|one| one.trim().parse()).collect();
        let places = places.map_err(|_| LanConfigError::NotAddresses { text: said.to_owned() })?;
        let (here, known) = places.split_first().ok_or(LanConfigError::Empty)?;
        Ok(LanConfig { visibility: LanVisibility::At(*here), known_addresses: known.to_vec() })
    }
}

/// The connections to devices on the local network. Dropping it closes them.
pub struct LanPeers {
    commands: Option<UnboundedSender<LanPeerCommand>>,
    /// Disconnects after all devices are notified.
    ended: std::sync::mpsc::Receiver<()>,
}

impl Drop for LanPeers {
    fn drop(&mut self) {
        self.commands = None;
        // Tasks that are still running after the timeout end with the process.
        let _ = self.ended.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

impl std::fmt::Debug for LanPeers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Near")
    }
}

type LanPeerEventHandler = Arc<dyn Fn(u64, LanPeerEvent) + Send + Sync>;

impl LanPeers {
    /// Starts the thread that finds and connects devices. `tell` is called there and must not block.
    ///
    /// # Errors
    /// Returns the I/O error if the system can't create a thread or runtime.
    pub fn start(
        key: DeviceKey,
        devices: DeviceList,
        place: LanConfig,
        tell: impl Fn(u64, LanPeerEvent) + Send + Sync + 'static,
    ) -> std::io::Result<LanPeers> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (orders, queue) = unbounded_channel();
        let (ends, ended) = std::sync::mpsc::channel();
        let tell = Arc::new(tell) as LanPeerEventHandler;
        let thread = std::thread::Builder::new().name("near".to_owned());
        let work = move || {
            runtime.block_on(run_lan_peers(key, devices, place, tell, queue));
            drop(ends);
        };
        thread.spawn(work)?;
        Ok(LanPeers { commands: Some(orders), ended })
    }

    /// Sends a message over a connection.
    pub fn send(&self, link: u64, bytes: Vec<u8>) {
        self.send_command(LanPeerCommand::Send { link, bytes });
    }

    /// Closes a connection.
    pub fn close(&self, link: u64) {
        self.send_command(LanPeerCommand::Close { link });
    }

    fn send_command(&self, order: LanPeerCommand) {
        if let Some(orders) = &self.commands {
            // Here and below: the receiver is gone only if the program ends or nobody waits.
            let _ = orders.send(order);
        }
    }
}

struct OpenLanLink {
    device: DeviceId,
    out: UnboundedSender<PeerFrame>,
    sender: LanSender,
}

async fn run_lan_peers(
    key: DeviceKey,
    devices: DeviceList,
    place: LanConfig,
    tell: LanPeerEventHandler,
    mut orders: UnboundedReceiver<LanPeerCommand>,
) {
    let lan = loop {
        match LanEndpoint::open(&key, place.visibility).await {
            Ok(lan) => break lan,
            Err(why) => tell(0, LanPeerEvent::Unavailable(why.to_string())),
        }
        tokio::select! {
            order = orders.recv() => if order.is_none() { return },
            () = tokio::time::sleep(Duration::from_secs(10)) => {}
        }
    };
    let (facts, mut told) = unbounded_channel();
    let list: Arc<Mutex<BTreeMap<DeviceId, PairedDevice>>> = Arc::default();
    tokio::spawn(accept_calls(lan.clone(), list.clone(), facts.clone()));
    let mut open: HashMap<u64, OpenLanLink> = HashMap::new();
    let mut missed: HashMap<DeviceId, Instant> = HashMap::new();
    let mut last = FIRST_LINK_ID;
    let mut stamp = None;
    let mut look = tokio::time::interval(DEVICE_SCAN_INTERVAL);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None => break,
                Some(LanPeerCommand::Send { link, bytes }) => {
                    if let Some(one) = open.get(&link) {
                        let _ = one.out.send(PeerFrame::Binary(bytes));
                    }
                }
                Some(LanPeerCommand::Close { link }) => {
                    if let Some(one) = open.remove(&link) {
                        one.sender.close("it hung up");
                    }
                }
            },
            fact = told.recv() => match fact {
                None => break,
                Some(LanConnectionEvent::DialFailed { device }) => _ = missed.insert(device,
                    Instant::now() + LAN_REDIAL_DELAY),
                Some(LanConnectionEvent::Disconnected { link, why }) => {
                    if let Some(one) = open.remove(&link) {
                        missed.insert(one.device, Instant::now() + DEVICE_SCAN_INTERVAL);
                        tell(link, LanPeerEvent::Closed(why));
                    }
                }
                Some(LanConnectionEvent::Connected { device, way, dialed }) => {
                    let known = list.lock().unwrap_or_else(PoisonError::into_inner).get(&device).cloned();
                    let Some(known) = known.filter(PairedDevice::is_authorized) else {
                        way.close("this device is not paired here");
                        continue;
                    };
                    // A device that calls again has lost its old connection.
                    let same = open.iter().filter(|(_, one)| one.device == device);
                    let old: Vec<u64> = same.map(|(at, _)| *at).collect();
                    for link in old {
                        if let Some(one) = open.remove(&link) {
                            one.sender.close("the same device has connected again");
                            tell(link, LanPeerEvent::Closed("it has connected again".to_owned()));
                        }
                    }
                    last += 1;
                    missed.insert(device, Instant::now() + LAN_REDIAL_DELAY);
                    tell(last, LanPeerEvent::Open { name: known.name, access: known.access, dialed });
                    open.insert(last, start_link(last, device, *way, tell.clone(), facts.clone()));
                }
            },
            _ = look.tick() => {
                let now = devices.file_stamp();
                if now != stamp {
                    stamp = now;
                    // An unreadable list admits nobody.
                    let read = devices.list().unwrap_or_default();
                    *list.lock().unwrap_or_else(PoisonError::into_inner) = read;
                }
                let list = list.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let gone = |one: &OpenLanLink| list.get(&one.device).is_none_or(|device| !device.is_authorized());
                let gone: Vec<u64> = open.iter().filter(|(_, one)| gone(one)).map(|(link, _)| *link).collect();
                for link in gone {
                    if let Some(one) = open.remove(&link) {
                        one.sender.close("this device was revoked");
                        tell(link, LanPeerEvent::Closed("it was revoked".to_owned()));
                    }
                }
                for (id, device) in list {
                    // Hubs have addresses and are dialed elsewhere. Of two other devices, the one with the lower key
                    // calls.
                    let ours = device.is_authorized() && device.address.is_none() && key.id() < id;
                    let there = open.values().any(|one| one.device == id);
                    let late = missed.get(&id).is_none_or(|again| *again <= Instant::now());
                    if ours && !there && late {
                        missed.insert(id, Instant::now() + LAN_DIAL_TIMEOUT + LAN_REDIAL_DELAY);
                        tokio::spawn(dial_device(lan.clone(), id, place.known_addresses.clone(), facts.clone()));
                    }
                }
            }
        }
    }
    open.into_values().for_each(|one| one.sender.close("the program ends"));
    lan.close().await;
}

/// Accepts incoming calls, each in its own task.
async fn accept_calls(
    lan: LanEndpoint,
    list: Arc<Mutex<BTreeMap<DeviceId, PairedDevice>>>,
    facts: UnboundedSender<LanConnectionEvent>,
) {
    let unproven = Arc::new(Semaphore::new(MAX_UNPROVEN_CALLS));
    while let Some(incoming) = lan.next_call().await {
        let Ok(permit) = Arc::clone(&unproven).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (list, facts) = (Arc::clone(&list), facts.clone());
        tokio::spawn(async move {
            let judge = |id| lan::check_is_paired(list.lock().unwrap_or_else(PoisonError::into_inner).get(&id));
            match incoming.accept_if(judge).await {
                Ok(call) if !call.is_pairing => {
                    let _ = facts.send(LanConnectionEvent::Connected {
                        device: call.from,
                        way: Box::new(call.connection),
                        dialed: false,
                    });
                }
                Ok(call) => call.connection.close("nothing is paired here now; ask for a code on that device"),
                Err(_) => {} // refused, or broken off: nobody waits for it
            }
            drop(permit);
        });
    }
}

async fn dial_device(
    lan: LanEndpoint,
    device: DeviceId,
    known: Vec<SocketAddr>,
    facts: UnboundedSender<LanConnectionEvent>,
) {
    let called = tokio::time::timeout(LAN_DIAL_TIMEOUT, lan.dial(device, &known, DEVICE_ALPN)).await;
    let _ = facts.send(match called {
        Ok(Ok(way)) => LanConnectionEvent::Connected { device, way: Box::new(way), dialed: true },
        Ok(Err(_)) | Err(_) => LanConnectionEvent::DialFailed { device },
    });
}

/// Starts the tasks that send and receive on a connection until it ends.
fn start_link(
    link: u64,
    device: DeviceId,
    way: LanConnection,
    tell: LanPeerEventHandler,
    facts: UnboundedSender<LanConnectionEvent>,
) -> OpenLanLink {
    let (out, mut outgoing) = unbounded_channel::<PeerFrame>();
    let (sender, mut receiver) = way.split();
    let open = OpenLanLink { device, out, sender: sender.clone() };
    tokio::spawn(async move {
        while let Some(frame) = outgoing.recv().await {
            if sender.send_frame(frame).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(frame) = receiver.next_frame().await {
            if let PeerFrame::Binary(bytes) = frame {
                tell(link, LanPeerEvent::Message(bytes));
            }
        }
        let why = receiver.close_reason().unwrap_or_else(|| "it disconnected".to_owned());
        let _ = facts.send(LanConnectionEvent::Disconnected { link, why });
    });
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lan::PAIRING_ALPN;
    use std::sync::mpsc::channel;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_calls_and_says_nothing_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = DeviceList::new(folder.path()).expect("chance");
        let (ours, theirs) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let known = PairedDevice {
            name: "phone".to_owned(),
            added: 0,
            revoked: None,
            access: DeviceAccess::Write,
            admin: false,
            // With an address it counts as a hub, so this side never calls it.
            address: Some("wss://localhost:1".to_owned()),
            certificate: None,
        };
        devices.pair(theirs.id(), known).expect("kept");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let at = socket.local_addr().expect("its address");
        drop(socket);
        let (tell, told) = channel();
        let place = LanConfig { visibility: LanVisibility::At(at), known_addresses: Vec::new() };
        let near = LanPeers::start(ours.clone(), devices, place, move |_, what| _ = tell.send(what)).expect("started");
        // Strangers call to be paired, one after the other, and send nothing.
        let strangers =
            LanEndpoint::open(&DeviceKey::generate().expect("key"), LanVisibility::Loopback).await.expect("open");
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(strangers.dial(ours.id(), &[at], PAIRING_ALPN).await.expect("called"));
        }
        let phone = LanEndpoint::open(&theirs, LanVisibility::Loopback).await.expect("open");
        let begun = Instant::now();
        // The list of devices is read at the next scan.
        let open = loop {
            let mut way = phone.dial(ours.id(), &[at], DEVICE_ALPN).await.expect("called");
            let _ = crate::handshake::FrameTransport::send_frame(&mut way, PeerFrame::Binary(vec![1])).await;
            match told.recv_timeout(Duration::from_millis(1_500)) {
                Ok(LanPeerEvent::Open { name, .. }) => break name,
                Ok(_) | Err(_) => {
                    assert!(begun.elapsed() < Duration::from_secs(6), "it waits for those who say nothing")
                }
            }
        };
        assert_eq!(open, "phone");
        drop((near, silent));
    }
}
