//! Paired devices of the local network, without any server: those that are there are called and heard by themselves,
//! each connection is told of by a number of its own. Of two devices the one with the lower key calls. Who is revoked
//! loses the connection within a second.

use crate::devices::{Access, Device, Devices};
use crate::key::{DeviceId, DeviceKey};
use crate::lan::{self, DEVICE, Lan, LanSender, LanWay, Reach};
use crate::link::Frame;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How often the list of devices is looked at, and those are called that are not there.
const LOOK: Duration = Duration::from_millis(400);
/// How long a call may take.
const DIAL: Duration = Duration::from_secs(5);
/// A device that did not answer is called again after this time.
const AGAIN: Duration = Duration::from_secs(3);
/// Whoever ends waits so long for the others to be told. Who is not told waits for 30 s before it calls again.
const FAREWELL: Duration = Duration::from_millis(250);
/// So many may be calling at once who have not said yet who they are.
const MAX_UNPROVEN_CALLS: usize = 64;
/// The first number of a connection: others are counted from 1.
const FIRST: u64 = 1 << 40;

/// What becomes of a connection.
#[derive(Debug)]
pub enum Told {
    /// It is there.
    Open {
        /// How the device is called.
        name: String,
        /// The most that it may do.
        access: Access,
        /// Whether this side has called.
        dialed: bool,
    },
    /// A message has come.
    Message(Vec<u8>),
    /// It is gone, and why. Nothing follows.
    Closed(String),
    /// The local network cannot be used, and why; it is tried again. Of no connection.
    Trouble(String),
}

enum Order {
    Send { link: u64, bytes: Vec<u8> },
    Close { link: u64 },
}

enum Fact {
    Met { device: DeviceId, way: Box<LanWay>, dialed: bool },
    Missed { device: DeviceId },
    Gone { link: u64, why: String },
}

/// Where this device listens, and where it looks for others beside those that it finds.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it listens.
    pub reach: Reach,
    /// Where others may be.
    pub known: Vec<SocketAddr>,
}

impl Place {
    /// What `TRACEBOOK_LAN` says, for networks on which nobody is found: `HERE,THERE,…`, each `ADDRESS:PORT`.
    ///
    /// # Errors
    /// It is no such list.
    pub fn of(said: Option<&str>) -> Result<Place, String> {
        let Some(said) = said else { return Ok(Place { reach: Reach::Local, known: Vec::new() }) };
        let places: Result<Vec<SocketAddr>, _> = said.split(',').map(|one| one.trim().parse()).collect();
        let places = places.map_err(|_| format!("TRACEBOOK_LAN wants ADDRESS:PORT,…: {said}"))?;
        let (here, known) = places.split_first().ok_or("TRACEBOOK_LAN is empty")?;
        Ok(Place { reach: Reach::At(*here), known: known.to_vec() })
    }
}

/// The connections to devices that are near. Ends when it is dropped.
pub struct Near {
    orders: Option<UnboundedSender<Order>>,
    /// Hangs up once all were told.
    ended: std::sync::mpsc::Receiver<()>,
}

impl Drop for Near {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.ended.recv_timeout(FAREWELL);
    }
}

impl std::fmt::Debug for Near {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Near")
    }
}

type Tell = Arc<dyn Fn(u64, Told) + Send + Sync>;

impl Near {
    /// Starts a thread for it. `tell` is called there, and must not wait.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        key: DeviceKey,
        devices: Devices,
        place: Place,
        tell: impl Fn(u64, Told) + Send + Sync + 'static,
    ) -> Result<Near, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (orders, queue) = unbounded_channel();
        let (ends, ended) = std::sync::mpsc::channel();
        let tell = Arc::new(tell) as Tell;
        let thread = std::thread::Builder::new().name("near".to_owned());
        let work = move || {
            runtime.block_on(serve(key, devices, place, tell, queue));
            drop(ends);
        };
        thread.spawn(work).map_err(|error| error.to_string())?;
        Ok(Near { orders: Some(orders), ended })
    }

    /// Sends a message over a connection.
    pub fn send(&self, link: u64, bytes: Vec<u8>) {
        self.order(Order::Send { link, bytes });
    }

    /// Ends a connection.
    pub fn close(&self, link: u64) {
        self.order(Order::Close { link });
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }
}

struct Open {
    device: DeviceId,
    out: UnboundedSender<Frame>,
    sender: LanSender,
}

async fn serve(key: DeviceKey, devices: Devices, place: Place, tell: Tell, mut orders: UnboundedReceiver<Order>) {
    let lan = loop {
        match Lan::open(&key, place.reach).await {
            Ok(lan) => break lan,
            Err(why) => tell(0, Told::Trouble(why)),
        }
        tokio::select! {
            order = orders.recv() => if order.is_none() { return },
            () = tokio::time::sleep(Duration::from_secs(10)) => {}
        }
    };
    let (facts, mut told) = unbounded_channel();
    let list: Arc<Mutex<BTreeMap<DeviceId, Device>>> = Arc::default();
    tokio::spawn(listen(lan.clone(), list.clone(), facts.clone()));
    let mut open: HashMap<u64, Open> = HashMap::new();
    let mut missed: HashMap<DeviceId, Instant> = HashMap::new();
    let mut last = FIRST;
    let mut stamp = None;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None => break,
                Some(Order::Send { link, bytes }) => {
                    if let Some(one) = open.get(&link) {
                        let _ = one.out.send(Frame::Binary(bytes));
                    }
                }
                Some(Order::Close { link }) => {
                    if let Some(one) = open.remove(&link) {
                        one.sender.close("it hung up");
                    }
                }
            },
            fact = told.recv() => match fact {
                None => break,
                Some(Fact::Missed { device }) => _ = missed.insert(device, Instant::now() + AGAIN),
                Some(Fact::Gone { link, why }) => {
                    if let Some(one) = open.remove(&link) {
                        missed.insert(one.device, Instant::now() + LOOK);
                        tell(link, Told::Closed(why));
                    }
                }
                Some(Fact::Met { device, way, dialed }) => {
                    let known = list.lock().unwrap_or_else(PoisonError::into_inner).get(&device).cloned();
                    let Some(known) = known.filter(Device::is_welcome) else {
                        way.close("this device is not paired here");
                        continue;
                    };
                    // Whoever calls again has lost the old connection.
                    let same = open.iter().filter(|(_, one)| one.device == device);
                    let old: Vec<u64> = same.map(|(at, _)| *at).collect();
                    for link in old {
                        if let Some(one) = open.remove(&link) {
                            one.sender.close("the same device has connected again");
                            tell(link, Told::Closed("it has connected again".to_owned()));
                        }
                    }
                    last += 1;
                    missed.insert(device, Instant::now() + AGAIN);
                    tell(last, Told::Open { name: known.name, access: known.access, dialed });
                    open.insert(last, talk(last, device, *way, tell.clone(), facts.clone()));
                }
            },
            _ = look.tick() => {
                let now = devices.stamp();
                if now != stamp {
                    stamp = now;
                    // A list that cannot be read welcomes nobody.
                    let read = devices.list().unwrap_or_default();
                    *list.lock().unwrap_or_else(PoisonError::into_inner) = read;
                }
                let list = list.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let gone = |one: &Open| list.get(&one.device).is_none_or(|device| !device.is_welcome());
                let gone: Vec<u64> = open.iter().filter(|(_, one)| gone(one)).map(|(link, _)| *link).collect();
                for link in gone {
                    if let Some(one) = open.remove(&link) {
                        one.sender.close("this device was revoked");
                        tell(link, Told::Closed("it was revoked".to_owned()));
                    }
                }
                for (id, device) in list {
                    // Hubs have addresses; of two devices the one with the lower key calls.
                    let ours = device.is_welcome() && device.address.is_none() && key.id() < id;
                    let there = open.values().any(|one| one.device == id);
                    let late = missed.get(&id).is_none_or(|again| *again <= Instant::now());
                    if ours && !there && late {
                        missed.insert(id, Instant::now() + DIAL + AGAIN);
                        tokio::spawn(dial(lan.clone(), id, place.known.clone(), facts.clone()));
                    }
                }
            }
        }
    }
    open.into_values().for_each(|one| one.sender.close("the program ends"));
    lan.close().await;
}

/// Hears those who call, each on its own.
async fn listen(lan: Lan, list: Arc<Mutex<BTreeMap<DeviceId, Device>>>, facts: UnboundedSender<Fact>) {
    let unproven = Arc::new(Semaphore::new(MAX_UNPROVEN_CALLS));
    while let Some(incoming) = lan.incoming().await {
        let Ok(permit) = Arc::clone(&unproven).try_acquire_owned() else {
            incoming.refuse();
            continue;
        };
        let (list, facts) = (Arc::clone(&list), facts.clone());
        tokio::spawn(async move {
            let judge = |id| lan::welcome(list.lock().unwrap_or_else(PoisonError::into_inner).get(&id));
            match incoming.answer(judge).await {
                Ok(call) if !call.pairs => {
                    let _ = facts.send(Fact::Met { device: call.from, way: Box::new(call.way), dialed: false });
                }
                Ok(call) => call.way.close("nothing is paired here now; ask for a code on that device"),
                Err(_) => {} // refused, or broken off: nobody waits for it
            }
            drop(permit);
        });
    }
}

async fn dial(lan: Lan, device: DeviceId, known: Vec<SocketAddr>, facts: UnboundedSender<Fact>) {
    let called = tokio::time::timeout(DIAL, lan.call(device, &known, DEVICE)).await;
    let _ = facts.send(match called {
        Ok(Ok(way)) => Fact::Met { device, way: Box::new(way), dialed: true },
        Ok(Err(_)) | Err(_) => Fact::Missed { device },
    });
}

/// Has a connection speak and listen, until it ends.
fn talk(link: u64, device: DeviceId, way: LanWay, tell: Tell, facts: UnboundedSender<Fact>) -> Open {
    let (out, mut outgoing) = unbounded_channel::<Frame>();
    let (sender, mut receiver) = way.split();
    let open = Open { device, out, sender: sender.clone() };
    tokio::spawn(async move {
        while let Some(frame) = outgoing.recv().await {
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some(frame) = receiver.next().await {
            if let Frame::Binary(bytes) = frame {
                tell(link, Told::Message(bytes));
            }
        }
        let why = receiver.why().unwrap_or_else(|| "it is not there any more".to_owned());
        let _ = facts.send(Fact::Gone { link, why });
    });
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lan::PAIR;
    use std::sync::mpsc::channel;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_calls_and_says_nothing_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = Devices::new(folder.path()).expect("chance");
        let (ours, theirs) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let known = Device {
            name: "phone".to_owned(),
            added: 0,
            revoked: None,
            access: Access::Write,
            admin: false,
            // As if it were a hub: then it is never called from here.
            address: Some("wss://localhost:1".to_owned()),
            certificate: None,
        };
        devices.pair(theirs.id(), known).expect("kept");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let at = socket.local_addr().expect("its address");
        drop(socket);
        let (tell, told) = channel();
        let place = Place { reach: Reach::At(at), known: Vec::new() };
        let near = Near::start(ours.clone(), devices, place, move |_, what| _ = tell.send(what)).expect("started");
        // Strangers that call to be paired and say nothing, one after the other.
        let strangers = Lan::open(&DeviceKey::generate().expect("key"), Reach::Loopback).await.expect("open");
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(strangers.call(ours.id(), &[at], PAIR).await.expect("called"));
        }
        let phone = Lan::open(&theirs, Reach::Loopback).await.expect("open");
        let begun = Instant::now();
        // The list of devices is read within a moment.
        let open = loop {
            let mut way = phone.call(ours.id(), &[at], DEVICE).await.expect("called");
            let _ = crate::link::Way::send(&mut way, Frame::Binary(vec![1])).await;
            match told.recv_timeout(Duration::from_millis(1_500)) {
                Ok(Told::Open { name, .. }) => break name,
                Ok(_) | Err(_) => {
                    assert!(begun.elapsed() < Duration::from_secs(6), "it waits for those who say nothing")
                }
            }
        };
        assert_eq!(open, "phone");
        drop((near, silent));
    }
}
