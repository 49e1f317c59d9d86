//! The words before the documents: over any way that carries frames, two sides pair or prove their keys. Afterwards
//! binary frames are automerge-repo's protocol, and text frames are ours ([`ControlMessage`]).
//!
//! Which of both is wanted is said by the way itself: a WebSocket's path, the local network's protocol name.

use crate::challenge::{
    CallerHandshake, ChallengeError, ChallengeResponse, ChannelBinding, DeviceChallenge, ListenerHandshake,
    ListenerProof,
};
use crate::key::{DeviceId, DeviceKey};
use crate::pairing::{
    DeviceCard, DeviceRights, JoinAttempt, OfferAttempt, OneTimeCode, PairingError, PairingProof, SpakeMessage,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::Duration;

/// Path of a WebSocket on which a device that was paired connects.
pub const DEVICE_PATH: &str = "/device";
/// Path of a WebSocket on which a device is paired.
pub const PAIR_PATH: &str = "/pair";
/// A word of a handshake is at most this long, in bytes.
const MAX_HANDSHAKE_MESSAGE_BYTES: usize = 8 * 1024;
/// Each word of a handshake comes within this time.
pub const HANDSHAKE_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// What goes over a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFrame {
    /// A control message of ours, as JSON.
    Text(String),
    /// A message of automerge-repo's protocol.
    Binary(Vec<u8>),
}

/// Why a frame was not sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameSendError {
    /// It is longer than the other side takes.
    #[error("it is too long")]
    TooLong,
    /// The way has ended: what it says.
    #[error(transparent)]
    Ended(Box<dyn std::error::Error + Send + Sync>),
}

impl FrameSendError {
    /// The way has ended.
    pub fn ended(error: impl std::error::Error + Send + Sync + 'static) -> FrameSendError {
        FrameSendError::Ended(Box::new(error))
    }
}

/// Why a device that proved its key is not let in: a clause about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRefusal {
    /// It isn't on the list of devices.
    #[error("this device is not paired here; pair it with a code")]
    NotPaired,
    /// It was revoked.
    #[error("this device was revoked")]
    Revoked,
    /// A code is shown, and only who is paired by it may call.
    #[error("it is being paired")]
    PairingOnly,
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The way has ended.
    #[error(transparent)]
    Send(#[from] FrameSendError),
    /// A word of ours can't be written as JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// No word came in time.
    #[error("it does not answer")]
    Timeout,
    /// The other side closed the way.
    #[error("it hung up")]
    HungUp,
    /// Another word came than the handshake has there.
    #[error("it does not say what was asked")]
    UnexpectedMessage,
    /// The other side refused, in its words.
    #[error("{0}")]
    RefusedByPeer(String),
    /// A key is not proved.
    #[error(transparent)]
    Challenge(#[from] ChallengeError),
    /// The device is not welcome.
    #[error(transparent)]
    NotWelcome(#[from] CallRefusal),
    /// The pairing failed.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// No code is shown.
    #[error("no code is waiting; ask for one there")]
    NoCode,
    /// Another device answered than the invitation names.
    #[error("another one answered than the QR code names")]
    OtherDevice,
}

/// A way to another device: frames arrive whole and in order.
pub trait FrameTransport: Send {
    /// Sends one frame.
    fn send_frame(&mut self, frame: PeerFrame) -> impl Future<Output = Result<(), FrameSendError>> + Send;
    /// The next frame; `None` at the end.
    fn next_frame(&mut self) -> impl Future<Output = Option<PeerFrame>> + Send;
}

/// Text frames among paired devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlMessage {
    /// The sender's list of devices, an automerge document in base 16. Taken in by hubs from administrators only.
    Devices(String),
    /// It ends here, and why.
    Refused(String),
    /// Something was rejected, with the reason; the connection continues.
    Told(String),
}

impl ControlMessage {
    /// The list of devices as a frame.
    pub fn devices_frame(bytes: &[u8]) -> PeerFrame {
        ControlMessage::Devices(crate::key::hex(bytes)).to_frame()
    }

    /// Encodes the message as a frame.
    pub fn to_frame(&self) -> PeerFrame {
        PeerFrame::Text(serde_json::to_string(self).unwrap_or_default())
    }

    /// The list of devices that it holds.
    pub fn device_list_bytes(&self) -> Option<Vec<u8>> {
        let ControlMessage::Devices(text) = self else { return None };
        let digit = |letter: &u8| char::from(*letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
        text.as_bytes().chunks(2).map(pair).collect()
    }
}

async fn send_json<T: Serialize>(way: &mut impl FrameTransport, word: &T) -> Result<(), HandshakeError> {
    let text = serde_json::to_string(word)?;
    Ok(way.send_frame(PeerFrame::Text(text)).await?)
}

/// Receives the next message of a handshake, or the other side's reason for stopping.
async fn receive_json<T: DeserializeOwned>(way: &mut impl FrameTransport) -> Result<T, HandshakeError> {
    let frame = tokio::time::timeout(HANDSHAKE_STEP_TIMEOUT, way.next_frame()).await;
    let text = match frame {
        Err(_) => return Err(HandshakeError::Timeout),
        Ok(None) => return Err(HandshakeError::HungUp),
        Ok(Some(PeerFrame::Text(text))) if text.len() <= MAX_HANDSHAKE_MESSAGE_BYTES => text,
        Ok(Some(_)) => return Err(HandshakeError::UnexpectedMessage),
    };
    if let Ok(ControlMessage::Refused(why)) = serde_json::from_str(&text) {
        let why = why.chars().filter(|letter| !letter.is_control()).take(300).collect();
        return Err(HandshakeError::RefusedByPeer(why));
    }
    serde_json::from_str(&text).map_err(|_| HandshakeError::UnexpectedMessage)
}

/// Sends the reason to the other side, and returns it.
async fn send_refusal(way: &mut impl FrameTransport, why: HandshakeError) -> HandshakeError {
    // The refusal holds whether or not the other side hears it.
    let _ = way.send_frame(ControlMessage::Refused(why.to_string()).to_frame()).await;
    why
}

/// Authenticates the calling side to exactly this hub or device, and verifies the other side's key.
///
/// # Errors
/// The other one is not who it should be, refuses (its words), or does not answer.
pub async fn authenticate_to_listener(
    way: &mut impl FrameTransport,
    key: &DeviceKey,
    expected: DeviceId,
    binding: &ChannelBinding,
) -> Result<(), HandshakeError> {
    let challenge: DeviceChallenge = receive_json(way).await?;
    let (caller, answer) = CallerHandshake::respond(key, expected, &challenge, binding)?;
    send_json(way, &answer).await?;
    let welcome: ListenerProof = receive_json(way).await?;
    Ok(caller.verify_listener(&welcome)?)
}

/// The listening side: who calls, proved, and welcome by `is_welcome`.
///
/// # Errors
/// Why it was refused; the caller has been told.
pub async fn authenticate_caller(
    way: &mut impl FrameTransport,
    key: &DeviceKey,
    binding: ChannelBinding,
    is_welcome: impl FnOnce(DeviceId) -> Result<(), CallRefusal> + Send,
) -> Result<DeviceId, (Option<DeviceId>, HandshakeError)> {
    let listener = ListenerHandshake::new(binding).map_err(|why| (None, HandshakeError::from(why)))?;
    send_json(way, &listener.challenge(key)).await.map_err(|why| (None, why))?;
    let answer: ChallengeResponse = match receive_json(way).await {
        Ok(answer) => answer,
        Err(why) => return Err((None, send_refusal(way, why).await)),
    };
    let device = answer.device;
    // Verify the proof first: whether a key is known concerns only its owner.
    let welcome = listener.verify_response(key, &answer).map_err(|why| (None, HandshakeError::from(why)));
    let refused = |why| (Some(device), HandshakeError::NotWelcome(why));
    match welcome.and_then(|welcome| is_welcome(device).map(|()| welcome).map_err(refused)) {
        Ok(welcome) => send_json(way, &welcome).await.map(|()| device).map_err(|why| (Some(device), why)),
        Err((who, why)) => Err((who, send_refusal(way, why).await)),
    }
}

/// Joins by a code that the other side shows; its card.
///
/// # Errors
/// Why not: a wrong code, one that was used up, another device than expected.
pub async fn join_pairing(
    way: &mut impl FrameTransport,
    key: &DeviceKey,
    card: &DeviceCard,
    code: &str,
    expected: Option<DeviceId>,
    binding: &ChannelBinding,
) -> Result<DeviceCard, HandshakeError> {
    let (joining, half) = JoinAttempt::new(code)?;
    send_json(way, &half).await?;
    let theirs: SpakeMessage = receive_json(way).await?;
    let (joined, proof) = joining.prove(&theirs, key, card, binding)?;
    send_json(way, &proof).await?;
    let proof: PairingProof = receive_json(way).await?;
    let card = joined.verify_proof(&proof)?;
    match expected {
        Some(expected) if expected != card.device => Err(HandshakeError::OtherDevice),
        Some(_) | None => Ok(card),
    }
}

/// Lets a device with the code of `accept_pairing` join; the lock is held only while each message is computed. Returns
/// the device's card and its rights, as in the offer at the start.
///
/// # Errors
/// Why not; the other side has been told.
pub async fn accept_pairing(
    way: &mut impl FrameTransport,
    key: &DeviceKey,
    card: &DeviceCard,
    offer: &std::sync::Mutex<Option<OneTimeCode>>,
    now: i64,
    binding: &ChannelBinding,
) -> Result<(DeviceCard, DeviceRights), HandshakeError> {
    fn with<T>(
        offer: &std::sync::Mutex<Option<OneTimeCode>>,
        work: impl FnOnce(&mut OneTimeCode) -> Result<T, PairingError>,
    ) -> Result<T, HandshakeError> {
        let mut offer = offer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(work(offer.as_mut().ok_or(HandshakeError::NoCode)?)?)
    }
    let tried = async {
        let half: SpakeMessage = receive_json(way).await?;
        let begun = with(offer, |offer| Ok((OfferAttempt::new(offer, &half, now, binding)?, offer.rights())));
        let ((offering, half), rights) = begun?;
        send_json(way, &half).await?;
        let proof: PairingProof = receive_json(way).await?;
        with(offer, |offer| offering.verify_proof(offer, &proof, key, card))
            .map(|(theirs, proof)| (theirs, proof, rights))
    }
    .await;
    match tried {
        Ok((theirs, proof, rights)) => send_json(way, &proof).await.map(|()| (theirs, rights)),
        Err(why) => Err(send_refusal(way, why).await),
    }
}
