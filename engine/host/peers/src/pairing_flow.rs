//! Pairing and the exchange of device lists from start to end, as blocking calls for one side.
//!
//! Each call has its own runtime and a time limit.

use crate::challenge::ChannelBinding;
use crate::devices::{DeviceAccess, DeviceList, DeviceListError, PairedDevice, now_millis};
use crate::handshake::{self, CallRefusal, ControlMessage, FrameSendError, FrameTransport, HandshakeError};
use crate::hub_socket::{CertificateTrust, HubConnectError, HubSocket};
use crate::key::{DeviceId, DeviceKey, RandomBytesError};
use crate::lan::{self, AcceptedCall, IncomingCall, LanEndpoint, LanError, LanVisibility};
use crate::pairing::{DeviceCard, DeviceRights, Invitation, JoinAttempt, OneTimeCode, PairingError};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long to search for devices on the local network.
const LAN_DISCOVERY_TIME: Duration = Duration::from_secs(4);
/// Maximum number of concurrent calls while a code is shown.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Prefix of the address in an invitation to the local network.
const LAN_ADDRESS_PREFIX: &str = "lan";

/// Why devices weren't paired, or the list of devices wasn't sent.
#[derive(Debug, thiserror::Error)]
pub enum PairingFlowError {
    /// The system can't create a runtime.
    #[error("nothing can be waited for here ({0})")]
    Runtime(#[source] std::io::Error),
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// The code can't be used.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// The other side refuses, or isn't the expected device.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The hub can't be reached.
    #[error(transparent)]
    Hub(#[from] HubConnectError),
    /// The local network or a device on it can't be reached.
    #[error(transparent)]
    Lan(#[from] LanError),
    /// The list of devices can't be changed.
    #[error(transparent)]
    List(#[from] DeviceListError),
    /// The list of devices wasn't sent.
    #[error(transparent)]
    Send(#[from] FrameSendError),
    /// The rights granted by the other device differ from those in the invitation.
    #[error(
        "the invitation says that this device {}, and {name} says that it {}; ask there for another",
        promised.describe(),
        given.describe()
    )]
    OtherRights {
        /// Name of the other device.
        name: String,
        /// Rights in the invitation.
        promised: DeviceRights,
        /// Rights that were granted.
        given: DeviceRights,
    },
    /// No device was found on the local network.
    #[error("no other device with Tracebook is seen on this network; is `tracebook pair` running there?")]
    NobodySeen,
    /// The other side closed the connection, with its reason.
    #[error("{0}")]
    ClosedByPeer(String),
    /// The endpoint on the local network was closed.
    #[error("the local network is gone")]
    NetworkGone,
    /// The user canceled.
    #[error("it was cancelled")]
    Cancelled,
    /// A device called for a normal connection instead of pairing.
    #[error("{} called, and is not being paired", from.short_id())]
    NotPairing {
        /// Id of the caller.
        from: DeviceId,
    },
    /// A device called to be paired, and failed.
    #[error("{} was not paired: {source}", from.short_id())]
    NotPaired {
        /// Id of the caller.
        from: DeviceId,
        /// Why it failed.
        source: HandshakeError,
    },
    /// A device sent a card with a different key than its own.
    #[error("{} showed another's card", from.short_id())]
    OtherCard {
        /// Id of the caller.
        from: DeviceId,
    },
    /// The list can be sent only to hubs.
    #[error("it isn't a hub")]
    NotHub,
}

fn block_on<T>(work: impl Future<Output = Result<T, PairingFlowError>>) -> Result<T, PairingFlowError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(PairingFlowError::Runtime)?.block_on(work)
}

/// Returns this device's card as other devices see it.
pub fn device_card(key: &DeviceKey, name: &str) -> DeviceCard {
    DeviceCard { device: key.id(), name: name.to_owned(), address: None, certificate: None, access: None, admin: false }
}

/// Converts a card to its entry in the list.
pub fn device_entry(card: &DeviceCard, access: DeviceAccess, admin: bool) -> PairedDevice {
    PairedDevice {
        name: card.name.clone(),
        added: 0,
        revoked: None,
        access,
        admin,
        address: card.address.clone(),
        certificate: card.certificate.clone(),
    }
}

/// The device or hub to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingTarget {
    /// A hub at this address.
    Hub(String),
    /// A device on the local network at these addresses; empty for any device that shows the code.
    Lan(Vec<SocketAddr>),
}

/// A text that isn't a valid address for pairing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("“{text}” is no place on the local network")]
pub struct PairingTargetError {
    /// The invalid text.
    pub text: String,
}

impl std::str::FromStr for PairingTarget {
    type Err = PairingTargetError;
    fn from_str(text: &str) -> Result<PairingTarget, PairingTargetError> {
        let Some(rest) = text.strip_prefix(LAN_ADDRESS_PREFIX) else { return Ok(PairingTarget::Hub(text.to_owned())) };
        let addresses = rest.strip_prefix('@').unwrap_or(rest).split(',').filter(|one| !one.is_empty());
        let addresses: Result<Vec<SocketAddr>, _> = addresses.map(str::parse).collect();
        addresses.map(PairingTarget::Lan).map_err(|_| PairingTargetError { text: text.to_owned() })
    }
}

/// Rights that devices paired on the local network give each other. They're full, because one person is at both
/// devices.
pub const LAN_PAIRING_RIGHTS: DeviceRights = DeviceRights { access: DeviceAccess::Write, admin: true };

/// Joins with a code that another device or a hub shows, and adds the other side to the list. `rights` are those of the
/// invitation.
///
/// # Errors
/// Returns an error if the code is malformed or wrong, the other side can't be reached, or the list can't be written.
/// Returns [`PairingFlowError::OtherRights`] if the other side grants other rights than the invitation.
pub fn join_by_code(
    whom: &PairingTarget,
    (expected, rights): (Option<DeviceId>, Option<DeviceRights>),
    code: &str,
    key: &DeviceKey,
    name: &str,
    devices: &DeviceList,
) -> Result<DeviceCard, PairingFlowError> {
    // Check the code for typos before searching.
    JoinAttempt::new(code)?;
    let ours = device_card(key, name);
    let met = block_on(async {
        match whom {
            PairingTarget::Hub(address) => {
                let (mut way, binding) =
                    HubSocket::connect(address, handshake::PAIR_PATH, &CertificateTrust::Any).await?;
                let mut met = handshake::join_pairing(&mut way, key, &ours, code, expected, &binding).await?;
                // Keep the address that was reached, no matter what the hub calls itself.
                met.address = Some(address.trim_end_matches('/').to_owned());
                let hash = binding.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                met.certificate = Some(hash).filter(|hash| !hash.is_empty());
                Ok(met)
            }
            PairingTarget::Lan(at) => join_on_lan(at, expected, code, key, &ours).await,
        }
    })?;
    if let (Some(promised), Some(given)) = (rights, met.rights())
        && promised != given
    {
        return Err(PairingFlowError::OtherRights { name: met.name, promised, given });
    }
    devices.pair(key.id(), device_entry(&ours, DeviceAccess::Write, true))?;
    // On the local network one person is at both devices, so each device may change the other's list.
    devices.pair(met.device, device_entry(&met, DeviceAccess::Write, met.address.is_none()))?;
    Ok(met)
}

async fn join_on_lan(
    at: &[SocketAddr],
    expected: Option<DeviceId>,
    code: &str,
    key: &DeviceKey,
    ours: &DeviceCard,
) -> Result<DeviceCard, PairingFlowError> {
    let reach = if at.iter().all(|at| at.ip().is_loopback()) && !at.is_empty() {
        LanVisibility::Loopback
    } else {
        LanVisibility::Local
    };
    let lan = LanEndpoint::open(key, reach).await?;
    let there = match expected {
        Some(expected) => vec![expected],
        None => lan.discover_devices(LAN_DISCOVERY_TIME).await,
    };
    let mut why = PairingFlowError::NobodySeen;
    for id in there {
        let joined = async {
            let mut way = lan.dial(id, at, lan::PAIRING_ALPN).await?;
            let joined = handshake::join_pairing(&mut way, key, ours, code, Some(id), &ChannelBinding::default()).await;
            // A device that offers no code closes the connection and gives the reason.
            let joined =
                joined.map_err(|why| way.close_reason().map_or_else(|| why.into(), PairingFlowError::ClosedByPeer));
            way.close("done");
            joined
        };
        match joined.await {
            Ok(met) => {
                lan.close().await;
                return Ok(met);
            }
            Err(said) => why = said,
        }
    }
    lan.close().await;
    Err(why)
}

/// Shows a code and lets one device on the local network join with it.
///
/// `show` gets the invitation. The call returns when a device has joined, when the code has expired or is used up, or
/// when `cancelled` returns true.
///
/// # Errors
/// Returns why no device was paired.
pub fn offer_code(
    key: &DeviceKey,
    name: &str,
    devices: &DeviceList,
    reach: LanVisibility,
    show: impl FnOnce(&Invitation, &OneTimeCode),
    cancelled: impl Fn() -> bool,
    log: impl Fn(&str),
) -> Result<DeviceCard, PairingFlowError> {
    block_on(async {
        let lan = LanEndpoint::open(key, reach).await?;
        let offer = OneTimeCode::new(now_millis())?.with_rights(LAN_PAIRING_RIGHTS);
        let at: Vec<String> = lan.addresses().iter().map(SocketAddr::to_string).collect();
        let at = if reach == LanVisibility::Loopback {
            format!("{LAN_ADDRESS_PREFIX}@{}", at.join(","))
        } else {
            LAN_ADDRESS_PREFIX.to_owned()
        };
        let rights = Some(offer.rights());
        show(&Invitation { at, code: offer.code(), key: key.id(), rights }, &offer);
        let waiting = Arc::new(Mutex::new(Some(offer)));
        let ours = device_card(key, name);
        let over = || {
            let offer = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let worthless = offer.as_ref().and_then(|offer| offer.check_usable(now_millis()).err());
            worthless.map(PairingFlowError::from).or_else(|| cancelled().then_some(PairingFlowError::Cancelled))
        };
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let under_way = Arc::new(tokio::sync::Semaphore::new(MAX_CONCURRENT_CALLS));
        let met = loop {
            tokio::select! {
                incoming = lan.next_call() => {
                    let Some(incoming) = incoming else { break Err(PairingFlowError::NetworkGone) };
                    let Ok(permit) = Arc::clone(&under_way).try_acquire_owned() else {
                        incoming.refuse();
                        continue;
                    };
                    // Each call has its own task, so that a silent caller doesn't block others.
                    let (waiting, key, ours, tell) = (Arc::clone(&waiting), key.clone(), ours.clone(), tell.clone());
                    tokio::spawn(async move {
                        // If the receiver is gone, nobody needs the result.
                        let _ = tell.send(handle_offer_call(incoming, &key, &ours, &waiting).await);
                        drop(permit);
                    });
                }
                tried = told.recv() => match tried {
                    Some(Ok(met)) => break Ok(met),
                    Some(Err(why)) => log(&why.to_string()),
                    None => {}
                },
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    // While a call is pending, wait: it may be the one that used the code.
                    if under_way.available_permits() == MAX_CONCURRENT_CALLS && let Some(why) = over() {
                        break Err(why);
                    }
                }
            }
            if cancelled() {
                break Err(PairingFlowError::Cancelled);
            }
        };
        lan.close().await;
        let (met, rights) = met?;
        devices.pair(key.id(), device_entry(&ours, DeviceAccess::Write, true))?;
        devices.pair(met.device, device_entry(&met, rights.access, rights.admin))?;
        Ok(met)
    })
}

/// Handles one incoming call while a code is shown.
async fn handle_offer_call(
    incoming: IncomingCall,
    key: &DeviceKey,
    ours: &DeviceCard,
    waiting: &Mutex<Option<OneTimeCode>>,
) -> Result<(DeviceCard, DeviceRights), PairingFlowError> {
    let AcceptedCall { from, is_pairing: pairs, connection: mut way } =
        incoming.accept_if(|_| Err(CallRefusal::PairingOnly)).await?;
    if !pairs {
        return Err(PairingFlowError::NotPairing { from });
    }
    let tried = handshake::accept_pairing(&mut way, key, ours, waiting, now_millis(), &ChannelBinding::default()).await;
    let (met, rights) = tried.map_err(|source| PairingFlowError::NotPaired { from, source })?;
    // The connection's proven key must be the key on the card.
    if met.device != from {
        return Err(PairingFlowError::OtherCard { from });
    }
    // Let the other side close first if it can. The pairing is complete either way.
    let _ = tokio::time::timeout(Duration::from_secs(2), way.next_frame()).await;
    Ok((met, rights))
}

/// Sends our list of devices to a hub, for example after a revocation. The hub merges it if we may change its list.
///
/// # Errors
/// Returns an error if the target isn't a hub, can't be reached, or refuses.
pub fn push_device_list(
    hub: DeviceId,
    entry: &PairedDevice,
    key: &DeviceKey,
    list: &[u8],
) -> Result<(), PairingFlowError> {
    let address = entry.address.as_deref().ok_or(PairingFlowError::NotHub)?;
    let trust = match &entry.certificate {
        Some(hash) => CertificateTrust::Pinned(hash.clone()),
        // Without a certificate the connection is unencrypted. `connect` allows that only on this machine.
        None => CertificateTrust::Pinned("00".repeat(32)),
    };
    block_on(async {
        let (mut way, binding) = HubSocket::connect(address, handshake::DEVICE_PATH, &trust).await?;
        handshake::authenticate_to_listener(&mut way, key, hub, &binding).await?;
        way.send_frame(ControlMessage::devices_frame(list)).await?;
        way.close_after_drain().await;
        Ok(())
    })
}
