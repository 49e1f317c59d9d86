//! Serverless connections on the local network: QUIC between devices (crate `iroh`), each with its own key, without
//! relays, with discovery by mDNS.
//!
//! QUIC proves the other side's identity. Whether it's accepted is decided before a stream is opened.

use crate::devices::PairedDevice;
use crate::handshake::{CallRefusal, FrameSendError, FrameTransport, PeerFrame};
use crate::key::{DeviceId, DeviceKey};
use futures_util::StreamExt;
use iroh::endpoint::{Connection, ConnectionError, RecvStream, SendStream, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, EndpointId, RelayMode, SecretKey};
use iroh_mdns_address_lookup::{DiscoveryEvent, MdnsAddressLookup};
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::time::Duration;

/// ALPN protocol of paired devices.
pub const DEVICE_ALPN: &[u8] = b"tracebook/device/1";
/// ALPN protocol of devices that are being paired.
pub const PAIRING_ALPN: &[u8] = b"tracebook/pair/1";
/// mDNS service name of this program.
const MDNS_SERVICE_NAME: &str = "tracebook";
/// Maximum length of a frame in bytes.
const MAX_FRAME_BYTES: u32 = 64 << 20;
/// Maximum length of a frame in bytes while devices are paired.
const MAX_PAIRING_FRAME_BYTES: u32 = 16 << 10;
/// Maximum number of bytes read at once, so that a false length in a frame's header allocates little memory.
const READ_CHUNK_BYTES: usize = 1 << 20;

/// Why the local network or a device on it can't be used. `why` is the network library's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LanError {
    /// This machine has no loopback address to listen on.
    #[error("no address on this machine ({why})")]
    NoLoopback { why: String },
    /// This machine doesn't have the given address.
    #[error("this machine has no such address ({why}): {address}")]
    NoAddress { why: String, address: SocketAddr },
    /// The endpoint or discovery can't be started.
    #[error("the local network cannot be used ({why})")]
    Unusable { why: String },
    /// The id of the called device isn't a valid key.
    #[error("this isn't a device key")]
    NotKey,
    /// The called device doesn't answer.
    #[error("it is not there ({why})")]
    NotThere { why: String },
    /// An incoming connection failed during its handshake.
    #[error("a call broke off ({why})")]
    CallBroken { why: String },
    /// An incoming connection didn't complete its handshake in time.
    #[error("a call took too long")]
    CallTimeout,
    /// The caller isn't admitted.
    #[error("{} was refused: {why}", from.short_id())]
    Refused { from: DeviceId, why: CallRefusal },
    /// The caller opened no stream in time.
    #[error("{} called and said nothing", from.short_id())]
    Silent { from: DeviceId },
}

/// This device's endpoint on the local network.
#[derive(Clone, Debug)]
pub struct LanEndpoint {
    endpoint: Endpoint,
    mdns: Option<MdnsAddressLookup>,
}

/// Whether and how this device and others find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanVisibility {
    /// By mDNS, on all addresses of this machine.
    Local,
    /// Not discoverable, and reachable only on this machine.
    Loopback,
    /// Reachable at this address, which other devices must know.
    At(SocketAddr),
}

impl LanEndpoint {
    /// Opens the endpoint. Incoming calls must be accepted with [`LanEndpoint::next_call`].
    ///
    /// # Errors
    /// Returns an error if the address can't be bound, or the endpoint or discovery can't be started.
    pub async fn open(key: &DeviceKey, reach: LanVisibility) -> Result<LanEndpoint, LanError> {
        let builder = Endpoint::builder(presets::Minimal)
            .relay_mode(RelayMode::Disabled)
            .secret_key(SecretKey::from_bytes(key.secret_bytes()))
            .alpns(vec![DEVICE_ALPN.to_vec(), PAIRING_ALPN.to_vec()]);
        let builder = match reach {
            LanVisibility::Local => builder,
            LanVisibility::Loopback => builder
                .clear_ip_transports()
                .bind_addr("127.0.0.1:0")
                .map_err(|error| LanError::NoLoopback { why: error.to_string() })?,
            LanVisibility::At(at) => builder
                .clear_ip_transports()
                .bind_addr(at)
                .map_err(|error| LanError::NoAddress { why: error.to_string(), address: at })?,
        };
        let fail = |error: &dyn std::fmt::Display| LanError::Unusable { why: error.to_string() };
        let endpoint = builder.bind().await.map_err(|error| fail(&error))?;
        let mdns = match reach {
            LanVisibility::Loopback | LanVisibility::At(_) => None,
            LanVisibility::Local => {
                let mdns = MdnsAddressLookup::builder().service_name(MDNS_SERVICE_NAME).build(endpoint.id());
                let mdns = mdns.map_err(|error| fail(&error))?;
                endpoint.address_lookup().map_err(|error| fail(&error))?.add(mdns.clone());
                Some(mdns)
            }
        };
        Ok(LanEndpoint { endpoint, mdns })
    }

    /// Returns the devices with Tracebook that are found on the local network within this time.
    pub async fn discover_devices(&self, within: Duration) -> Vec<DeviceId> {
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

    /// Returns the addresses that this device listens on.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.endpoint.bound_sockets()
    }

    /// Calls a device, at the given addresses or where discovery finds it.
    ///
    /// # Errors
    /// Returns an error if the device can't be reached, or refuses (with its reason).
    pub async fn dial(&self, id: DeviceId, at: &[SocketAddr], protocol: &[u8]) -> Result<LanConnection, LanError> {
        let id = EndpointId::from_bytes(&id.0).map_err(|_| LanError::NotKey)?;
        let address = at.iter().fold(EndpointAddr::new(id), |address, at| address.with_ip_addr(*at));
        let failed = |error: &dyn std::fmt::Display| LanError::NotThere { why: error.to_string() };
        let connection = self.endpoint.connect(address, protocol).await.map_err(|error| failed(&error))?;
        let (send, receive) = connection.open_bi().await.map_err(|error| failed(&error))?;
        Ok(LanConnection { connection, send, receive, max_frame_bytes: max_frame_bytes(protocol) })
    }

    /// Accepts the next call; `None` if the endpoint was closed.
    #[cfg(test)]
    pub async fn accept(
        &self,
        judge: impl Fn(DeviceId) -> Result<(), CallRefusal>,
    ) -> Option<Result<AcceptedCall, LanError>> {
        Some(self.next_call().await?.accept_if(judge).await)
    }

    /// Returns the next incoming call, whose caller is still unknown; `None` if the endpoint was closed.
    ///
    /// Accept each call separately, so that a silent caller doesn't block others.
    pub async fn next_call(&self) -> Option<IncomingCall> {
        self.endpoint.accept().await.map(IncomingCall)
    }

    /// Stops listening and closes all connections.
    pub async fn close(&self) {
        self.endpoint.close().await;
    }
}

/// An incoming call that isn't accepted yet.
#[derive(Debug)]
pub struct IncomingCall(iroh::endpoint::Incoming);

impl IncomingCall {
    /// Accepts a call after its caller's identity is proved.
    ///
    /// `judge` decides whether the caller is admitted (for [`DEVICE_ALPN`] only). If not, the caller gets the reason.
    ///
    /// # Errors
    /// Returns an error if the caller isn't admitted or takes too long.
    pub async fn accept_if(
        self,
        judge: impl Fn(DeviceId) -> Result<(), CallRefusal>,
    ) -> Result<AcceptedCall, LanError> {
        let connection =
            match tokio::time::timeout(crate::handshake::HANDSHAKE_STEP_TIMEOUT, self.0.into_future()).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => return Err(LanError::CallBroken { why: error.to_string() }),
                Err(_) => return Err(LanError::CallTimeout),
            };
        let from = DeviceId(*connection.remote_id().as_bytes());
        let pairs = connection.alpn() == PAIRING_ALPN;
        if let Err(why) = if pairs { Ok(()) } else { judge(from) } {
            connection.close(VarInt::from_u32(1), why.to_string().as_bytes());
            return Err(LanError::Refused { from, why });
        }
        match tokio::time::timeout(crate::handshake::HANDSHAKE_STEP_TIMEOUT, connection.accept_bi()).await {
            Ok(Ok((send, receive))) => {
                let most = max_frame_bytes(connection.alpn());
                Ok(AcceptedCall {
                    from,
                    is_pairing: pairs,
                    connection: LanConnection { connection, send, receive, max_frame_bytes: most },
                })
            }
            Ok(Err(_)) | Err(_) => Err(LanError::Silent { from }),
        }
    }

    /// Refuses the call, because too many others are being accepted.
    pub fn refuse(self) {
        self.0.refuse();
    }
}

/// Returns the maximum length of a frame. Pairing needs only short messages.
fn max_frame_bytes(protocol: &[u8]) -> u32 {
    if protocol == PAIRING_ALPN { MAX_PAIRING_FRAME_BYTES } else { MAX_FRAME_BYTES }
}

/// A call that was accepted.
#[derive(Debug)]
pub struct AcceptedCall {
    /// The caller's device id, proved by its key.
    pub from: DeviceId,
    /// Whether the device calls to be paired.
    pub is_pairing: bool,
    /// The connection to the caller.
    pub connection: LanConnection,
}

/// The sending half of a connection. Clones share it.
#[derive(Clone, Debug)]
pub struct LanSender {
    connection: Connection,
    send: std::sync::Arc<tokio::sync::Mutex<SendStream>>,
}

impl LanSender {
    /// Sends a frame.
    ///
    /// # Errors
    /// Returns an error if the frame is too long or the connection has ended.
    pub async fn send_frame(&self, frame: PeerFrame) -> Result<(), FrameSendError> {
        write_frame(&mut *self.send.lock().await, frame).await
    }

    /// Closes the connection and sends the reason to the other side.
    pub fn close(&self, why: &str) {
        self.connection.close(VarInt::from_u32(1), why.as_bytes());
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct LanReceiver {
    connection: Connection,
    receive: RecvStream,
    max_frame_bytes: u32,
}

impl LanReceiver {
    /// Receives the next frame; `None` at the end of the connection.
    pub async fn next_frame(&mut self) -> Option<PeerFrame> {
        read_frame(&mut self.receive, &self.connection, self.max_frame_bytes).await
    }

    /// Returns why the connection ended, if known.
    pub fn close_reason(&self) -> Option<String> {
        connection_close_reason(&self.connection)
    }
}

/// Returns why a connection ended: the other side's reason if it sent one, otherwise the library's.
fn connection_close_reason(connection: &Connection) -> Option<String> {
    match connection.close_reason()? {
        ConnectionError::ApplicationClosed(close) if !close.reason.is_empty() => {
            let words = String::from_utf8_lossy(&close.reason);
            Some(words.chars().filter(|letter| !letter.is_control()).take(300).collect())
        }
        reason => Some(reason.to_string()),
    }
}

async fn write_frame(send: &mut SendStream, frame: PeerFrame) -> Result<(), FrameSendError> {
    let (kind, bytes) = match &frame {
        PeerFrame::Text(text) => (0, text.as_bytes()),
        PeerFrame::Binary(bytes) => (1, bytes.as_slice()),
    };
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_FRAME_BYTES);
    let length = length.ok_or(FrameSendError::TooLong)?;
    let mut head = vec![kind];
    head.extend(length.to_le_bytes());
    send.write_all(&head).await.map_err(FrameSendError::ended)?;
    send.write_all(bytes).await.map_err(FrameSendError::ended)
}

async fn read_frame(receive: &mut RecvStream, connection: &Connection, most: u32) -> Option<PeerFrame> {
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
        bytes.resize(length.min(at + READ_CHUNK_BYTES), 0);
        receive.read_exact(bytes.get_mut(at..)?).await.ok()?;
    }
    match kind {
        0 => String::from_utf8(bytes).ok().map(PeerFrame::Text),
        1 => Some(PeerFrame::Binary(bytes)),
        _ => None,
    }
}

/// A connection over the local network. Each frame has a header of kind (one byte) and length (four bytes, little
/// endian).
#[derive(Debug)]
pub struct LanConnection {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
    max_frame_bytes: u32,
}

impl LanConnection {
    /// Splits the connection, for callers that send and receive concurrently.
    pub fn split(self) -> (LanSender, LanReceiver) {
        let LanConnection { connection, send, receive, max_frame_bytes: most } = self;
        let send = std::sync::Arc::new(tokio::sync::Mutex::new(send));
        (LanSender { connection: connection.clone(), send }, LanReceiver { connection, receive, max_frame_bytes: most })
    }

    /// Closes the connection and sends the reason to the other side.
    pub fn close(&self, why: &str) {
        self.connection.close(VarInt::from_u32(1), why.as_bytes());
    }

    /// Returns why the connection ended, if known: the other side's reason if it sent one.
    pub fn close_reason(&self) -> Option<String> {
        connection_close_reason(&self.connection)
    }
}

impl FrameTransport for LanConnection {
    async fn send_frame(&mut self, frame: PeerFrame) -> Result<(), FrameSendError> {
        write_frame(&mut self.send, frame).await
    }

    async fn next_frame(&mut self) -> Option<PeerFrame> {
        read_frame(&mut self.receive, &self.connection, self.max_frame_bytes).await
    }
}

/// Checks whether a device may call: it must be paired and not revoked.
///
/// # Errors
/// Returns why it may not.
pub fn check_is_paired(device: Option<&PairedDevice>) -> Result<(), CallRefusal> {
    match device {
        None => Err(CallRefusal::NotPaired),
        Some(device) if !device.is_authorized() => Err(CallRefusal::Revoked),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenge::ChannelBinding;
    use crate::devices::{DeviceAccess, DeviceList, now_millis};
    use crate::handshake;
    use crate::pairing::{DeviceCard, OneTimeCode};
    use std::sync::{Arc, Mutex};

    fn card(key: &DeviceKey, name: &str) -> DeviceCard {
        DeviceCard {
            device: key.id(),
            name: name.to_owned(),
            address: None,
            certificate: None,
            access: None,
            admin: false,
        }
    }

    #[tokio::test]
    async fn two_devices_pair_and_speak_without_a_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = DeviceList::new(folder.path()).expect("chance");
        let (ours, theirs) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let here = LanEndpoint::open(&ours, LanVisibility::Loopback).await.expect("open");
        let there = LanEndpoint::open(&theirs, LanVisibility::Loopback).await.expect("open");
        let at = here.addresses();
        let code = Arc::new(Mutex::new(Some(OneTimeCode::new(now_millis()).expect("chance"))));
        let shown = code.lock().expect("lock").as_ref().expect("one").code();
        let listen = tokio::spawn({
            let (here, devices, ours) = (here.clone(), devices.clone(), ours.clone());
            async move {
                let mut refused = Vec::new();
                for _ in 0..4 {
                    let list = devices.list().expect("list");
                    match here.accept(|id| check_is_paired(list.get(&id))).await.expect("open") {
                        Ok(AcceptedCall { mut connection, is_pairing: true, .. }) => {
                            let card = card(&ours, "desk");
                            let joined = handshake::accept_pairing(
                                &mut connection,
                                &ours,
                                &card,
                                &code,
                                now_millis(),
                                &ChannelBinding::default(),
                            )
                            .await;
                            let (joined, rights) = joined.expect("joined");
                            assert_eq!(rights, crate::pairing::DeviceRights::default());
                            let device = PairedDevice {
                                name: joined.name,
                                added: 0,
                                revoked: None,
                                access: DeviceAccess::Write,
                                admin: false,
                                address: None,
                                certificate: None,
                            };
                            devices.pair(joined.device, device).expect("kept");
                            connection.next_frame().await;
                        }
                        Ok(AcceptedCall { mut connection, .. }) => {
                            let frame = connection.next_frame().await.expect("a frame");
                            connection.send_frame(frame).await.expect("sent");
                            connection.next_frame().await;
                        }
                        Err(why) => refused.push(why),
                    }
                }
                refused
            }
        });
        // The device is refused before it's paired.
        let early = there.dial(ours.id(), &at, DEVICE_ALPN).await;
        if let Ok(mut way) = early {
            let _ = way.send_frame(PeerFrame::Text("hello".to_owned())).await;
            assert_eq!(way.next_frame().await, None);
            assert!(way.close_reason().expect("words").contains("not paired"));
        }
        let mut way = there.dial(ours.id(), &at, PAIRING_ALPN).await.expect("called");
        let (phone, plain) = (card(&theirs, "phone"), ChannelBinding::default());
        let met = handshake::join_pairing(&mut way, &theirs, &phone, &shown, Some(ours.id()), &plain).await;
        assert_eq!(met.expect("paired").name, "desk");
        way.close("done");
        let mut way = there.dial(ours.id(), &at, DEVICE_ALPN).await.expect("called");
        let large = PeerFrame::Binary((0..3_000_000_u32).map(|number| number as u8).collect());
        way.send_frame(large.clone()).await.expect("sent");
        assert_eq!(way.next_frame().await, Some(large));
        way.close("done");
        devices.revoke(theirs.id()).expect("revoked");
        if let Ok(mut way) = there.dial(ours.id(), &at, DEVICE_ALPN).await {
            let _ = way.send_frame(PeerFrame::Text("hello".to_owned())).await;
            assert_eq!(way.next_frame().await, None);
            assert!(way.close_reason().expect("words").contains("revoked"));
        }
        let refused = listen.await.expect("listened");
        assert_eq!(refused.len(), 2, "{refused:?}");
        here.close().await;
        there.close().await;
    }
}
