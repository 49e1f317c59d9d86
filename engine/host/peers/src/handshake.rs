//! Handshakes between devices: over any frame transport, two sides either pair or prove their keys.
//!
//! Afterwards, binary frames are automerge-repo's protocol, and text frames are Tracebook's own ([`ControlMessage`]).
//! The transport itself says which handshake is wanted: by the WebSocket's path, or by the protocol name on the local
//! network.

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

/// WebSocket path on which a paired device connects.
pub const DEVICE_PATH: &str = "/device";
/// WebSocket path on which a device is paired.
pub const PAIR_PATH: &str = "/pair";
/// Maximum length of a handshake message in bytes.
const MAX_HANDSHAKE_MESSAGE_BYTES: usize = 8 * 1024;
/// How long each side waits for the next handshake message.
pub const HANDSHAKE_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// A frame sent over a [`FrameTransport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFrame {
    /// A control message of Tracebook, as JSON.
    Text(String),
    /// A message of automerge-repo's protocol.
    Binary(Vec<u8>),
}

/// Why a frame was not sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameSendError {
    /// The frame is longer than the other side accepts.
    #[error("it is too long")]
    TooLong,
    /// The connection has ended, with the transport's error.
    #[error(transparent)]
    Ended(Box<dyn std::error::Error + Send + Sync>),
}

impl FrameSendError {
    /// Converts the error of a connection that has ended.
    pub fn ended(error: impl std::error::Error + Send + Sync + 'static) -> FrameSendError {
        FrameSendError::Ended(Box::new(error))
    }
}

/// Why a device that proved its key isn't admitted. The message is a clause about the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRefusal {
    /// The device isn't on the list.
    #[error("this device is not paired here; pair it with a code")]
    NotPaired,
    /// The device was revoked.
    #[error("this device was revoked")]
    Revoked,
    /// A pairing code is shown, and only the device that uses it may call.
    #[error("it is being paired")]
    PairingOnly,
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The connection has ended.
    #[error(transparent)]
    Send(#[from] FrameSendError),
    /// Our message can't be written as JSON.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// The other side sent no message in time.
    #[error("it does not answer")]
    Timeout,
    /// The other side closed the connection.
    #[error("it hung up")]
    HungUp,
    /// The handshake expects a different message at this point.
    #[error("it does not say what was asked")]
    UnexpectedMessage,
    /// The other side refused, with its reason.
    #[error("{0}")]
    RefusedByPeer(String),
    /// A key isn't proved.
    #[error(transparent)]
    Challenge(#[from] ChallengeError),
    /// The device isn't admitted.
    #[error(transparent)]
    NotWelcome(#[from] CallRefusal),
    /// The pairing failed.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// No pairing code is shown.
    #[error("no code is waiting; ask for one there")]
    NoCode,
    /// A different device answered than the invitation names.
    #[error("another one answered than the QR code names")]
    OtherDevice,
}

/// A connection to another device that delivers whole frames in order.
pub trait FrameTransport: Send {
    /// Sends one frame.
    fn send_frame(&mut self, frame: PeerFrame) -> impl Future<Output = Result<(), FrameSendError>> + Send;
    /// Receives the next frame; `None` at the end of the connection.
    fn next_frame(&mut self) -> impl Future<Output = Option<PeerFrame>> + Send;
}

/// A text frame between paired devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlMessage {
    /// The sender's list of devices: an automerge document in hexadecimal. Hubs accept it from administrators only.
    Devices(String),
    /// The sender ends the connection for this reason.
    Refused(String),
    /// Something was rejected for this reason. The connection continues.
    Told(String),
}

impl ControlMessage {
    /// Encodes a list of devices as a frame.
    pub fn devices_frame(bytes: &[u8]) -> PeerFrame {
        ControlMessage::Devices(crate::key::hex(bytes)).to_frame()
    }

    /// Encodes the message as a frame.
    pub fn to_frame(&self) -> PeerFrame {
        PeerFrame::Text(serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the list of devices in the message; `None` for other messages and invalid hexadecimal.
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

/// Sends the reason to the other side and returns it.
async fn send_refusal(way: &mut impl FrameTransport, why: HandshakeError) -> HandshakeError {
    // The refusal holds whether or not the other side receives it.
    let _ = way.send_frame(ControlMessage::Refused(why.to_string()).to_frame()).await;
    why
}

/// Authenticates this device to the expected hub or device, and verifies the other side's key.
///
/// # Errors
/// Returns an error if the other side isn't the expected one, refuses (with its reason), or doesn't answer.
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

/// Authenticates a caller on the listening side: verifies its key, then admits it if `is_welcome` allows.
///
/// # Errors
/// Returns the reason for the refusal, with the caller's id if its proof was valid. A refused caller is notified.
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
    // Verify the proof first, because only its owner may learn whether a key is known.
    let welcome = listener.verify_response(key, &answer).map_err(|why| (None, HandshakeError::from(why)));
    let refused = |why| (Some(device), HandshakeError::NotWelcome(why));
    match welcome.and_then(|welcome| is_welcome(device).map(|()| welcome).map_err(refused)) {
        Ok(welcome) => send_json(way, &welcome).await.map(|()| device).map_err(|why| (Some(device), why)),
        Err((who, why)) => Err((who, send_refusal(way, why).await)),
    }
}

/// Joins with a code that the other side shows, and returns the other side's card.
///
/// # Errors
/// Returns an error if the code is wrong or used up, a different device than `expected` answers, or the connection
/// ends.
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

/// Lets a device with the code of `offer` join, and returns the device's card and its rights as in the offer at the
/// start. The lock is held only while each message is computed.
///
/// # Errors
/// Returns the reason why it failed; the other side is notified.
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
