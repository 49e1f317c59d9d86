//! Devices become acquainted, and tell each other who else is: the whole of it from one side, for those who may wait.
//! Each call has a runtime of its own and ends within its time.

use crate::challenge::Binding;
use crate::devices::{Access, Device, Devices, now};
use crate::key::{DeviceId, DeviceKey};
use crate::lan::{self, Call, Lan, Reach};
use crate::link::{self, Control, Way};
use crate::pairing::{Card, Invitation, Joining, Offer};
use crate::socket::{Socket, Trust};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// How long others are looked for on the local network.
const LOOK: Duration = Duration::from_secs(4);
/// How an invitation to the local network begins.
const LAN: &str = "lan";

fn run<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("nothing can be waited for here ({error})"))?.block_on(work)
}

/// This device as others see it.
pub fn card(key: &DeviceKey, name: &str) -> Card {
    Card { device: key.id(), name: name.to_owned(), address: None, certificate: None, admin: false }
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

/// Joins by a code that another device or a hub shows, and keeps it in the list.
///
/// # Errors
/// Why not.
pub fn join(
    whom: &Whom,
    expected: Option<DeviceId>,
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
        let offer = Offer::new(now())?;
        let at: Vec<String> = lan.addresses().iter().map(SocketAddr::to_string).collect();
        let at = if reach == Reach::Loopback { format!("{LAN}@{}", at.join(",")) } else { LAN.to_owned() };
        show(&Invitation { at, code: offer.code(), key: key.id() }, &offer);
        let waiting = Mutex::new(Some(offer));
        let ours = card(key, name);
        let over = || {
            let offer = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let worthless = offer.as_ref().and_then(|offer| offer.check(now()).err());
            worthless.or_else(|| cancelled().then(|| "it was cancelled".to_owned()))
        };
        let met = loop {
            let judge = |_| Err("it is being paired".to_owned());
            let accept = lan.accept(judge);
            tokio::pin!(accept);
            // A call that is half taken must not be dropped: only the looks between have an end of their own.
            let called = loop {
                tokio::select! {
                    called = &mut accept => break Ok(called),
                    () = tokio::time::sleep(Duration::from_millis(200)) => {
                        if let Some(why) = over() {
                            break Err(why);
                        }
                    }
                }
            };
            match called {
                Err(why) => break Err(why),
                Ok(Some(Ok(Call { mut way, pairs: true, from }))) => {
                    match link::offer(&mut way, key, &ours, &waiting, now(), &Binding::default()).await {
                        // The key that spoke is the key on the card.
                        Ok(met) if met.device == from => {
                            let _ = tokio::time::timeout(Duration::from_secs(2), way.next()).await;
                            break Ok(met);
                        }
                        Ok(_) => log(&format!("{} showed another's card", from.short())),
                        Err(why) => log(&format!("{} was not paired: {why}", from.short())),
                    }
                }
                Ok(Some(Ok(Call { .. }))) => {}
                Ok(Some(Err(why))) => log(&why),
                Ok(None) => break Err("the local network is gone".to_owned()),
            }
            if let Some(why) = over() {
                break Err(why);
            }
        };
        lan.close().await;
        let met = met?;
        devices.pair(key.id(), entry(&ours, Access::Write, true))?;
        devices.pair(met.device, entry(&met, Access::Write, true))?;
        Ok(met)
    })
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
