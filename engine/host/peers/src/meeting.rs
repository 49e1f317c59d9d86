//! Devices become acquainted, and tell each other who else is: the whole of it from one side, for those who may wait.
//! Each call has a runtime of its own and ends within its time.

use crate::challenge::Binding;
use crate::devices::{Access, Device, Devices, now};
use crate::key::{DeviceId, DeviceKey};
use crate::lan::{self, Call, Incoming, Lan, Reach};
use crate::link::{self, Control, Way};
use crate::pairing::{Card, Invitation, Joining, Offer, Rights};
use crate::socket::{Socket, Trust};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long others are looked for on the local network.
const LOOK: Duration = Duration::from_secs(4);
/// So many may call at once while a code is shown.
const MAX_CALLS: usize = 16;
/// How an invitation to the local network begins.
const LAN: &str = "lan";

fn run<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("nothing can be waited for here ({error})"))?.block_on(work)
}

/// This device as others see it.
pub fn card(key: &DeviceKey, name: &str) -> Card {
    Card { device: key.id(), name: name.to_owned(), address: None, certificate: None, access: None, admin: false }
}

/// A card's owner as it stands in the list.
pub fn entry(card: &Card, access: Access, admin: bool) -> Device {
    Device {
        name: card.name.clone(),
        added: 0,
        revoked: None,
        access,
        admin,
        address: card.address.clone(),
        certificate: card.certificate.clone(),
    }
}

/// Whom somebody wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A hub at this address.
    Hub(String),
    /// A device on the local network; empty: whoever shows the code.
    Lan(Vec<SocketAddr>),
}

impl std::str::FromStr for Whom {
    type Err = String;
    fn from_str(text: &str) -> Result<Whom, String> {
        let Some(rest) = text.strip_prefix(LAN) else { return Ok(Whom::Hub(text.to_owned())) };
        let addresses = rest.strip_prefix('@').unwrap_or(rest).split(',').filter(|one| !one.is_empty());
        let addresses: Result<Vec<SocketAddr>, _> = addresses.map(str::parse).collect();
        addresses.map(Whom::Lan).map_err(|_| format!("“{text}” is no place on the local network"))
    }
}

/// What devices may do with each other that are paired on the local network: who sits before both is the same one.
pub const BOTH: Rights = Rights { access: Access::Write, admin: true };

/// Joins by a code that another device or a hub shows, and keeps it in the list. `rights`: what the invitation says.
///
/// # Errors
/// Why not.
pub fn join(
    whom: &Whom,
    (expected, rights): (Option<DeviceId>, Option<Rights>),
    code: &str,
    key: &DeviceKey,
    name: &str,
    devices: &Devices,
) -> Result<Card, String> {
    // A slip of the finger is told before anybody is looked for.
    Joining::new(code)?;
    let ours = card(key, name);
    let met = run(async {
        match whom {
            Whom::Hub(address) => {
                let (mut way, binding) = Socket::connect(address, link::PAIR_PATH, &Trust::Any).await?;
                let mut met = link::join(&mut way, key, &ours, code, expected, &binding).await?;
                // What we reached is what we keep, whatever it calls itself.
                met.address = Some(address.trim_end_matches('/').to_owned());
                let hash = binding.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                met.certificate = Some(hash).filter(|hash| !hash.is_empty());
                Ok(met)
            }
            Whom::Lan(at) => join_nearby(at, expected, code, key, &ours).await,
        }
    })?;
    if let (Some(promised), Some(given)) = (rights, met.rights())
        && promised != given
    {
        return Err(format!(
            "the invitation says that this device {}, and {} says that it {}; ask there for another",
            promised.words(),
            met.name,
            given.words()
        ));
    }
    devices.pair(key.id(), entry(&ours, Access::Write, true))?;
    // Who sits before both devices is the same one: on the local network each may change the list.
    devices.pair(met.device, entry(&met, Access::Write, met.address.is_none()))?;
    Ok(met)
}

async fn join_nearby(
    at: &[SocketAddr],
    expected: Option<DeviceId>,
    code: &str,
    key: &DeviceKey,
    ours: &Card,
) -> Result<Card, String> {
    let reach =
        if at.iter().all(|at| at.ip().is_loopback()) && !at.is_empty() { Reach::Loopback } else { Reach::Local };
    let lan = Lan::open(key, reach).await?;
    let there = match expected {
        Some(expected) => vec![expected],
        None => lan.nearby(LOOK).await,
    };
    if there.is_empty() {
        return Err(
            "no other device with Tracebook is seen on this network; is `tracebook pair` running there?".to_owned()
        );
    }
    let mut why = String::new();
    for id in there {
        let joined = async {
            let mut way = lan.call(id, at, lan::PAIR).await?;
            let joined = link::join(&mut way, key, ours, code, Some(id), &Binding::default()).await;
            // Who offers no code hangs up, and says so.
            let joined = joined.map_err(|why| way.why().unwrap_or(why));
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

/// Lets one device of the local network join by a code that `show` is given. Waits until it has, until the code is
/// worth nothing any more, or until `cancelled`.
///
/// # Errors
/// Why nobody did.
pub fn offer(
    key: &DeviceKey,
    name: &str,
    devices: &Devices,
    reach: Reach,
    show: impl FnOnce(&Invitation, &Offer),
    cancelled: impl Fn() -> bool,
    log: impl Fn(&str),
) -> Result<Card, String> {
    run(async {
        let lan = Lan::open(key, reach).await?;
        let offer = Offer::new(now())?.with(BOTH);
        let at: Vec<String> = lan.addresses().iter().map(SocketAddr::to_string).collect();
        let at = if reach == Reach::Loopback { format!("{LAN}@{}", at.join(",")) } else { LAN.to_owned() };
        let rights = Some(offer.rights());
        show(&Invitation { at, code: offer.code(), key: key.id(), rights }, &offer);
        let waiting = Arc::new(Mutex::new(Some(offer)));
        let ours = card(key, name);
        let over = || {
            let offer = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let worthless = offer.as_ref().and_then(|offer| offer.check(now()).err());
            worthless.or_else(|| cancelled().then(|| "it was cancelled".to_owned()))
        };
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let under_way = Arc::new(tokio::sync::Semaphore::new(MAX_CALLS));
        let met = loop {
            tokio::select! {
                incoming = lan.incoming() => {
                    let Some(incoming) = incoming else { break Err("the local network is gone".to_owned()) };
                    let Ok(permit) = Arc::clone(&under_way).try_acquire_owned() else {
                        incoming.refuse();
                        continue;
                    };
                    // Each on its own: who says nothing holds nobody up.
                    let (waiting, key, ours, tell) = (Arc::clone(&waiting), key.clone(), ours.clone(), tell.clone());
                    tokio::spawn(async move {
                        let _ = tell.send(try_offer(incoming, &key, &ours, &waiting).await);
                        drop(permit);
                    });
                }
                tried = told.recv() => match tried {
                    Some(Ok(met)) => break Ok(met),
                    Some(Err(why)) => log(&why),
                    None => {}
                },
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    // One that is under way may be the one that has used it.
                    if under_way.available_permits() == MAX_CALLS && let Some(why) = over() {
                        break Err(why);
                    }
                }
            }
            if cancelled() {
                break Err("it was cancelled".to_owned());
            }
        };
        lan.close().await;
        let (met, rights) = met?;
        devices.pair(key.id(), entry(&ours, Access::Write, true))?;
        devices.pair(met.device, entry(&met, rights.access, rights.admin))?;
        Ok(met)
    })
}

/// One call while a code is shown.
async fn try_offer(
    incoming: Incoming,
    key: &DeviceKey,
    ours: &Card,
    waiting: &Mutex<Option<Offer>>,
) -> Result<(Card, Rights), String> {
    let Call { from, pairs, mut way } = incoming.answer(|_| Err("it is being paired".to_owned())).await?;
    if !pairs {
        return Err(format!("{} called, and is not being paired", from.short()));
    }
    let tried = link::offer(&mut way, key, ours, waiting, now(), &Binding::default()).await;
    let (met, rights) = tried.map_err(|why| format!("{} was not paired: {why}", from.short()))?;
    // The key that spoke is the key on the card.
    if met.device != from {
        return Err(format!("{} showed another's card", from.short()));
    }
    let _ = tokio::time::timeout(Duration::from_secs(2), way.next()).await;
    Ok((met, rights))
}

/// Tells a hub our list of devices, for example that one was revoked. It takes it in if we may change its list.
///
/// # Errors
/// It is not there, or refuses.
pub fn tell(hub: DeviceId, entry: &Device, key: &DeviceKey, list: &[u8]) -> Result<(), String> {
    let address = entry.address.as_deref().ok_or("it is no hub")?;
    let trust = match &entry.certificate {
        Some(hash) => Trust::Pinned(hash.clone()),
        // Plain, on this machine alone: `connect` sees to that.
        None => Trust::Pinned("00".repeat(32)),
    };
    run(async {
        let (mut way, binding) = Socket::connect(address, link::DEVICE_PATH, &trust).await?;
        link::call(&mut way, key, hub, &binding).await?;
        way.send(Control::devices(list)).await?;
        way.finish().await;
        Ok(())
    })
}
