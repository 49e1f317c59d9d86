//! The words before the documents: over any way that carries frames, two sides pair or prove their keys. Afterwards
//! binary frames are automerge-repo's protocol, and text frames are ours ([`Control`]).
//!
//! Which of both is wanted is said by the way itself: a WebSocket's path, the local network's protocol name.

use crate::challenge::{Answer, Binding, Caller, Challenge, Listener, Welcome};
use crate::key::{DeviceId, DeviceKey};
use crate::pairing::{Card, Half, Joining, Offer, Offering, Proof, Rights};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::Duration;

/// Path of a WebSocket on which a device that was paired connects.
pub const DEVICE_PATH: &str = "/device";
/// Path of a WebSocket on which a device is paired.
pub const PAIR_PATH: &str = "/pair";
/// A word of a handshake is at most this long, in bytes.
const LONGEST_WORD: usize = 8 * 1024;
/// Each word of a handshake comes within this time.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What goes over a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Ours, as JSON.
    Text(String),
    /// automerge-repo's.
    Binary(Vec<u8>),
}

/// A way to another device: frames arrive whole and in order.
pub trait Way: Send {
    /// Sends a frame.
    fn send(&mut self, frame: Frame) -> impl Future<Output = Result<(), String>> + Send;
    /// The next frame; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Frame>> + Send;
}

/// Text frames among paired devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The sender's list of devices, an automerge document in base 16. Taken in by hubs from administrators only.
    Devices(String),
    /// It ends here, and why.
    Refused(String),
    /// Something is not taken or not given, and why; it goes on.
    Told(String),
}

impl Control {
    /// The list of devices as a frame.
    pub fn devices(bytes: &[u8]) -> Frame {
        Control::Devices(crate::key::hex(bytes)).frame()
    }

    /// As a frame.
    pub fn frame(&self) -> Frame {
        Frame::Text(serde_json::to_string(self).unwrap_or_default())
    }

    /// The list of devices that it holds.
    pub fn list(&self) -> Option<Vec<u8>> {
        let Control::Devices(text) = self else { return None };
        let digit = |letter: &u8| char::from(*letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        text.as_bytes().chunks(2).map(pair).collect()
    }
}

async fn say<T: Serialize>(way: &mut impl Way, word: &T) -> Result<(), String> {
    let text = serde_json::to_string(word).map_err(|error| error.to_string())?;
    way.send(Frame::Text(text)).await
}

/// The next word of a handshake, or the reason that the other side gives for not going on.
async fn hear<T: DeserializeOwned>(way: &mut impl Way) -> Result<T, String> {
    let frame = tokio::time::timeout(PATIENCE, way.next()).await;
    let text = match frame {
        Err(_) => return Err("it does not answer".to_owned()),
        Ok(None) => return Err("it hung up".to_owned()),
        Ok(Some(Frame::Text(text))) if text.len() <= LONGEST_WORD => text,
        Ok(Some(_)) => return Err("it does not say what was asked".to_owned()),
    };
    if let Ok(Control::Refused(why)) = serde_json::from_str(&text) {
        return Err(why.chars().filter(|letter| !letter.is_control()).take(300).collect());
    }
    serde_json::from_str(&text).map_err(|_| "it does not say what was asked".to_owned())
}

/// Tells the other side why, then gives the reason.
async fn refuse(way: &mut impl Way, why: String) -> String {
    let _ = way.send(Control::Refused(why.clone()).frame()).await;
    why
}

/// The calling side proves its key to just this hub or device, and has it prove its own.
///
/// # Errors
/// The other one is not who it should be, refuses (its words), or does not answer.
pub async fn call(way: &mut impl Way, key: &DeviceKey, expected: DeviceId, binding: &Binding) -> Result<(), String> {
    let challenge: Challenge = hear(way).await?;
    let (caller, answer) = Caller::answer(key, expected, &challenge, binding)?;
    say(way, &answer).await?;
    let welcome: Welcome = hear(way).await?;
    caller.check(&welcome)
}

/// The listening side: who calls, proved, and welcome by `is_welcome`.
///
/// # Errors
/// Why it was refused; the caller has been told.
pub async fn answer(
    way: &mut impl Way,
    key: &DeviceKey,
    binding: Binding,
    is_welcome: impl FnOnce(DeviceId) -> Result<(), String> + Send,
) -> Result<DeviceId, (Option<DeviceId>, String)> {
    let listener = Listener::new(binding).map_err(|why| (None, why))?;
    say(way, &listener.challenge(key)).await.map_err(|why| (None, why))?;
    let answer: Answer = match hear(way).await {
        Ok(answer) => answer,
        Err(why) => return Err((None, refuse(way, why).await)),
    };
    let device = answer.device;
    // The proof first: whether a key is known is nobody's business but its owner's.
    let welcome = listener.check(key, &answer).map_err(|why| (None, why));
    match welcome.and_then(|welcome| is_welcome(device).map(|()| welcome).map_err(|why| (Some(device), why))) {
        Ok(welcome) => say(way, &welcome).await.map(|()| device).map_err(|why| (Some(device), why)),
        Err((who, why)) => Err((who, refuse(way, why).await)),
    }
}

/// Joins by a code that the other side shows; its card.
///
/// # Errors
/// Why not: a wrong code, one that was used up, another device than expected.
pub async fn join(
    way: &mut impl Way,
    key: &DeviceKey,
    card: &Card,
    code: &str,
    expected: Option<DeviceId>,
    binding: &Binding,
) -> Result<Card, String> {
    let (joining, half) = Joining::new(code)?;
    say(way, &half).await?;
    let theirs: Half = hear(way).await?;
    let (joined, proof) = joining.prove(&theirs, key, card, binding)?;
    say(way, &proof).await?;
    let proof: Proof = hear(way).await?;
    let card = joined.check(&proof)?;
    match expected {
        Some(expected) if expected != card.device => Err("another one answered than the QR code names".to_owned()),
        Some(_) | None => Ok(card),
    }
}

/// Lets somebody join who knows the code of `offer`, which is locked only for as long as each word takes to think of.
/// Gives the other's card, and what it may do: as it stood in the offer when it began.
///
/// # Errors
/// Why not; the other side has been told.
pub async fn offer(
    way: &mut impl Way,
    key: &DeviceKey,
    card: &Card,
    offer: &std::sync::Mutex<Option<Offer>>,
    now: i64,
    binding: &Binding,
) -> Result<(Card, Rights), String> {
    fn with<T>(
        offer: &std::sync::Mutex<Option<Offer>>,
        work: impl FnOnce(&mut Offer) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut offer = offer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(offer.as_mut().ok_or("no code is waiting; ask for one there")?)
    }
    let tried = async {
        let half: Half = hear(way).await?;
        let begun = with(offer, |offer| Ok((Offering::new(offer, &half, now, binding)?, offer.rights())));
        let ((offering, half), rights) = begun?;
        say(way, &half).await?;
        let proof: Proof = hear(way).await?;
        with(offer, |offer| offering.check(offer, &proof, key, card)).map(|(theirs, proof)| (theirs, proof, rights))
    }
    .await;
    match tried {
        Ok((theirs, proof, rights)) => say(way, &proof).await.map(|()| (theirs, rights)),
        Err(why) => Err(refuse(way, why).await),
    }
}
