//! The local network, without any server: QUIC between devices (crate `iroh`), each under its own key, no relay, found
//! by mDNS. Whom one speaks to is proved by QUIC itself; who is welcome is decided before a stream is opened.

use crate::devices::Device;
use crate::key::{DeviceId, DeviceKey};
use crate::link::{Frame, Way};
use futures_util::StreamExt;
use iroh::endpoint::{Connection, ConnectionError, RecvStream, SendStream, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, EndpointId, RelayMode, SecretKey};
use iroh_mdns_address_lookup::{DiscoveryEvent, MdnsAddressLookup};
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::time::Duration;

/// Devices that were paired.
pub const DEVICE: &[u8] = b"tracebook/device/1";
/// Devices that are being paired.
pub const PAIR: &[u8] = b"tracebook/pair/1";
/// How this program calls itself on the local network.
const SERVICE: &str = "tracebook";
/// A frame is at most this long, in bytes.
const LONGEST: u32 = 64 << 20;
/// The same while devices are paired.
const LONGEST_WORD: u32 = 16 << 10;
/// Reads of so many bytes at once, so that a length that somebody claims costs no memory.
const PIECE: usize = 1 << 20;

/// This device's door to the local network.
#[derive(Clone, Debug)]
pub struct Lan {
    endpoint: Endpoint,
    mdns: Option<MdnsAddressLookup>,
}

/// Whether others can find this device, and it them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By mDNS, on all addresses of this machine.
    Local,
    /// By nobody who does not know the address: this machine alone.
    Loopback,
    /// By those who know this address, which they were told.
    At(SocketAddr),
}

impl Lan {
    /// Opens the door. Calls must be taken by [`Lan::incoming`].
    ///
    /// # Errors
    /// The network does not allow it.
    pub async fn open(key: &DeviceKey, reach: Reach) -> Result<Lan, String> {
        let builder = Endpoint::builder(presets::Minimal)
            .relay_mode(RelayMode::Disabled)
            .secret_key(SecretKey::from_bytes(key.bytes()))
            .alpns(vec![DEVICE.to_vec(), PAIR.to_vec()]);
        let builder = match reach {
            Reach::Local => builder,
            Reach::Loopback => builder
                .clear_ip_transports()
                .bind_addr("127.0.0.1:0")
                .map_err(|error| format!("no address on this machine ({error})"))?,
            Reach::At(at) => builder
                .clear_ip_transports()
                .bind_addr(at)
                .map_err(|error| format!("this machine has no such address ({error}): {at}"))?,
        };
        let fail = |error: &dyn std::fmt::Display| format!("the local network cannot be used ({error})");
        let endpoint = builder.bind().await.map_err(|error| fail(&error))?;
        let mdns = match reach {
            Reach::Loopback | Reach::At(_) => None,
            Reach::Local => {
                let mdns = MdnsAddressLookup::builder().service_name(SERVICE).build(endpoint.id());
                let mdns = mdns.map_err(|error| fail(&error))?;
                endpoint.address_lookup().map_err(|error| fail(&error))?.add(mdns.clone());
                Some(mdns)
            }
        };
        Ok(Lan { endpoint, mdns })
    }

    /// Devices with Tracebook that are seen on the local network within this time.
    pub async fn nearby(&self, within: Duration) -> Vec<DeviceId> {
        let Some(mdns) = &self.mdns else { return Vec::new() };
        let mut events = mdns.subscribe().await;
        let mut seen = Vec::new();
        let until = tokio::time::Instant::now() + within;
        while let Ok(Some(event)) = tokio::time::timeout_at(until, events.next()).await {
            if let DiscoveryEvent::Discovered { endpoint_info, .. } = event {
                let id = DeviceId(*endpoint_info.endpoint_id.as_bytes());
                if !seen.contains(&id) {
                    seen.push(id);
                }
            }
        }
        seen
    }

    /// Where this device listens, for those that are told.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.endpoint.bound_sockets()
    }

    /// Calls a device: where it is known to listen, or where it is found.
    ///
    /// # Errors
    /// It is not there, or refuses (its words).
    pub async fn call(&self, id: DeviceId, at: &[SocketAddr], protocol: &[u8]) -> Result<LanWay, String> {
        let id = EndpointId::from_bytes(&id.0).map_err(|_| "this is no key of a device".to_owned())?;
        let address = at.iter().fold(EndpointAddr::new(id), |address, at| address.with_ip_addr(*at));
        let failed = |error: &dyn std::fmt::Display| format!("it is not there ({error})");
        let connection = self.endpoint.connect(address, protocol).await.map_err(|error| failed(&error))?;
        let (send, receive) = connection.open_bi().await.map_err(|error| failed(&error))?;
        Ok(LanWay { connection, send, receive, most: longest(protocol) })
    }

    /// The next call, answered.
    #[cfg(test)]
    pub async fn accept(&self, judge: impl Fn(DeviceId) -> Result<(), String>) -> Option<Result<Call, String>> {
        Some(self.incoming().await?.answer(judge).await)
    }

    /// Somebody calls of whom nothing is known yet; `None` when the door was closed. Whoever takes calls answers each
    /// on its own, so that nobody holds the others up by saying nothing.
    pub async fn incoming(&self) -> Option<Incoming> {
        self.endpoint.accept().await.map(Incoming)
    }

    /// Closes the door.
    pub async fn close(&self) {
        self.endpoint.close().await;
    }
}

/// A call that is not answered yet.
#[derive(Debug)]
pub struct Incoming(iroh::endpoint::Incoming);

impl Incoming {
    /// Hears who calls. Who calls is proved by then; `judge` says whether they are welcome (for [`DEVICE`] only), and
    /// the caller is told its words if not.
    ///
    /// # Errors
    /// It is not welcome, or takes too long.
    pub async fn answer(self, judge: impl Fn(DeviceId) -> Result<(), String>) -> Result<Call, String> {
        let connection = match tokio::time::timeout(crate::link::PATIENCE, self.0.into_future()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(format!("a call broke off ({error})")),
            Err(_) => return Err("a call took too long".to_owned()),
        };
        let from = DeviceId(*connection.remote_id().as_bytes());
        let pairs = connection.alpn() == PAIR;
        if let Err(why) = if pairs { Ok(()) } else { judge(from) } {
            connection.close(VarInt::from_u32(1), why.as_bytes());
            return Err(format!("{} was refused: {why}", from.short()));
        }
        match tokio::time::timeout(crate::link::PATIENCE, connection.accept_bi()).await {
            Ok(Ok((send, receive))) => {
                let most = longest(connection.alpn());
                Ok(Call { from, pairs, way: LanWay { connection, send, receive, most } })
            }
            Ok(Err(_)) | Err(_) => Err(format!("{} called and said nothing", from.short())),
        }
    }

    /// Does not answer: too many are being answered.
    pub fn refuse(self) {
        self.0.refuse();
    }
}

/// How long a frame may be: who is being paired has words to say, and nothing else.
fn longest(protocol: &[u8]) -> u32 {
    if protocol == PAIR { LONGEST_WORD } else { LONGEST }
}

/// Somebody calls.
#[derive(Debug)]
pub struct Call {
    /// Who, proved.
    pub from: DeviceId,
    /// Whether it is to be paired.
    pub pairs: bool,
    /// The way to it.
    pub way: LanWay,
}

/// The half of a way that sends. Several may hold it.
#[derive(Clone, Debug)]
pub struct LanSender {
    connection: Connection,
    send: std::sync::Arc<tokio::sync::Mutex<SendStream>>,
}

impl LanSender {
    /// Sends a frame.
    ///
    /// # Errors
    /// It is too long, or the way has ended.
    pub async fn send(&self, frame: Frame) -> Result<(), String> {
        write_frame(&mut *self.send.lock().await, frame).await
    }

    /// Ends the way, with a word for the other side.
    pub fn close(&self, why: &str) {
        self.connection.close(VarInt::from_u32(1), why.as_bytes());
    }
}

/// The half of a way that listens.
#[derive(Debug)]
pub struct LanReceiver {
    connection: Connection,
    receive: RecvStream,
    most: u32,
}

impl LanReceiver {
    /// The next frame; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        read_frame(&mut self.receive, &self.connection, self.most).await
    }

    /// Why it ended, if that is known.
    pub fn why(&self) -> Option<String> {
        ended(&self.connection)
    }
}

/// Why a connection ended: in the other side's words, if it said any.
fn ended(connection: &Connection) -> Option<String> {
    match connection.close_reason()? {
        ConnectionError::ApplicationClosed(close) if !close.reason.is_empty() => {
            let words = String::from_utf8_lossy(&close.reason);
            Some(words.chars().filter(|letter| !letter.is_control()).take(300).collect())
        }
        reason => Some(reason.to_string()),
    }
}

async fn write_frame(send: &mut SendStream, frame: Frame) -> Result<(), String> {
    let (kind, bytes) = match &frame {
        Frame::Text(text) => (0, text.as_bytes()),
        Frame::Binary(bytes) => (1, bytes.as_slice()),
    };
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST).ok_or("it is too long")?;
    let mut head = vec![kind];
    head.extend(length.to_le_bytes());
    send.write_all(&head).await.map_err(|error| error.to_string())?;
    send.write_all(bytes).await.map_err(|error| error.to_string())
}

async fn read_frame(receive: &mut RecvStream, connection: &Connection, most: u32) -> Option<Frame> {
    let mut head = [0; 5];
    receive.read_exact(&mut head).await.ok()?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length);
    if length > most {
        connection.close(VarInt::from_u32(1), b"a frame is too long");
        return None;
    }
    let length = length as usize;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let at = bytes.len();
        bytes.resize(length.min(at + PIECE), 0);
        receive.read_exact(bytes.get_mut(at..)?).await.ok()?;
    }
    match kind {
        0 => String::from_utf8(bytes).ok().map(Frame::Text),
        1 => Some(Frame::Binary(bytes)),
        _ => None,
    }
}

/// A way over the local network: frames with a kind (one byte) and a length (four, little endian) before each.
#[derive(Debug)]
pub struct LanWay {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    most: u32,
}

impl LanWay {
    /// Both halves of it, for those that send and listen at the same time.
    pub fn split(self) -> (LanSender, LanReceiver) {
        let LanWay { connection, send, receive, most } = self;
        let send = std::sync::Arc::new(tokio::sync::Mutex::new(send));
        (LanSender { connection: connection.clone(), send }, LanReceiver { connection, receive, most })
    }

    /// Ends it, with a word for the other side.
    pub fn close(&self, why: &str) {
        self.connection.close(VarInt::from_u32(1), why.as_bytes());
    }

    /// Why it ended, in the other side's words, if it said any.
    pub fn why(&self) -> Option<String> {
        ended(&self.connection)
    }
}

impl Way for LanWay {
    async fn send(&mut self, frame: Frame) -> Result<(), String> {
        write_frame(&mut self.send, frame).await
    }

    async fn next(&mut self) -> Option<Frame> {
        read_frame(&mut self.receive, &self.connection, self.most).await
    }
}

/// Whether a device may call: it was paired, and not revoked.
///
/// # Errors
/// Why not.
pub fn welcome(device: Option<&Device>) -> Result<(), String> {
    match device {
        None => Err("this device is not paired here; pair it with a code".to_owned()),
        Some(device) if !device.is_welcome() => Err("this device was revoked".to_owned()),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenge::Binding;
    use crate::devices::{Access, Devices, now};
    use crate::link;
    use crate::pairing::{Card, Offer};
    use std::sync::{Arc, Mutex};

    fn card(key: &DeviceKey, name: &str) -> Card {
        Card { device: key.id(), name: name.to_owned(), address: None, certificate: None, access: None, admin: false }
    }

    #[tokio::test]
    async fn two_devices_pair_and_speak_without_a_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = Devices::new(folder.path()).expect("chance");
        let (ours, theirs) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let here = Lan::open(&ours, Reach::Loopback).await.expect("open");
        let there = Lan::open(&theirs, Reach::Loopback).await.expect("open");
        let at = here.addresses();
        let code = Arc::new(Mutex::new(Some(Offer::new(now()).expect("chance"))));
        let shown = code.lock().expect("lock").as_ref().expect("one").code();
        let listen = tokio::spawn({
            let (here, devices, ours) = (here.clone(), devices.clone(), ours.clone());
            async move {
                let mut refused = Vec::new();
                for _ in 0..4 {
                    let list = devices.list().expect("list");
                    match here.accept(|id| welcome(list.get(&id))).await.expect("open") {
                        Ok(Call { mut way, pairs: true, .. }) => {
                            let card = card(&ours, "desk");
                            let joined = link::offer(&mut way, &ours, &card, &code, now(), &Binding::default()).await;
                            let (joined, rights) = joined.expect("joined");
                            assert_eq!(rights, crate::pairing::Rights::default());
                            let device = Device {
                                name: joined.name,
                                added: 0,
                                revoked: None,
                                access: Access::Write,
                                admin: false,
                                address: None,
                                certificate: None,
                            };
                            devices.pair(joined.device, device).expect("kept");
                            way.next().await;
                        }
                        Ok(Call { mut way, .. }) => {
                            let frame = way.next().await.expect("a frame");
                            way.send(frame).await.expect("sent");
                            way.next().await;
                        }
                        Err(why) => refused.push(why),
                    }
                }
                refused
            }
        });
        // Before it is paired it is refused.
        let early = there.call(ours.id(), &at, DEVICE).await;
        if let Ok(mut way) = early {
            let _ = way.send(Frame::Text("hello".to_owned())).await;
            assert_eq!(way.next().await, None);
            assert!(way.why().expect("words").contains("not paired"));
        }
        let mut way = there.call(ours.id(), &at, PAIR).await.expect("called");
        let (phone, plain) = (card(&theirs, "phone"), Binding::default());
        let met = link::join(&mut way, &theirs, &phone, &shown, Some(ours.id()), &plain).await;
        assert_eq!(met.expect("paired").name, "desk");
        way.close("done");
        let mut way = there.call(ours.id(), &at, DEVICE).await.expect("called");
        let large = Frame::Binary((0..3_000_000_u32).map(|number| number as u8).collect());
        way.send(large.clone()).await.expect("sent");
        assert_eq!(way.next().await, Some(large));
        way.close("done");
        devices.revoke(theirs.id()).expect("revoked");
        if let Ok(mut way) = there.call(ours.id(), &at, DEVICE).await {
            let _ = way.send(Frame::Text("hello".to_owned())).await;
            assert_eq!(way.next().await, None);
            assert!(way.why().expect("words").contains("revoked"));
        }
        let refused = listen.await.expect("listened");
        assert_eq!(refused.len(), 2, "{refused:?}");
        here.close().await;
        there.close().await;
    }
}
