//! Mutual authentication at every connection.
//!
//! Each side sends 32 random bytes. Each signs both sides' bytes together with both identities and the channel. A
//! recording of one connection is therefore useless for another. A man in the middle has a different channel and gets a
//! signature that's rejected.
//!
//! This module does no I/O: bytes in, bytes out.

use crate::key::{DeviceId, DeviceKey, RandomBytesError, random_bytes, unhex};
use serde::{Deserialize, Serialize};

const CHALLENGE_DOMAIN: &[u8] = b"tracebook 2026 challenge of a device\0";

/// Identifies the channel: the BLAKE3 hash of the listener's certificate, or empty for a plain connection on this
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelBinding(pub Vec<u8>);

impl ChannelBinding {
    /// Returns the binding for a channel secured by this certificate (DER).
    pub fn from_certificate(der: &[u8]) -> ChannelBinding {
        ChannelBinding(blake3::hash(der).as_bytes().to_vec())
    }
}

/// Why one side can't verify the identity of the other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// The caller doesn't prove its key.
    #[error("the proof of the device's key does not hold")]
    CallerUnproven,
    /// The listener isn't the device that was paired.
    #[error("another one answers there ({}) than the one that was paired ({})", found.short_id(), expected.short_id())]
    OtherListener {
        /// The device that's listening.
        found: DeviceId,
        /// The device that was paired.
        expected: DeviceId,
    },
    /// The message isn't a valid challenge.
    #[error("the challenge is no challenge")]
    NotChallenge,
    /// The listener doesn't prove its key.
    #[error("the hub does not prove its key")]
    ListenerUnproven,
}

/// First message of the handshake, from the listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChallenge {
    /// Id of the listening device.
    pub hub: DeviceId,
    /// 32 random bytes in hexadecimal.
    pub nonce: String,
}

/// Second message of the handshake, from the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeResponse {
    /// Id of the calling device.
    pub device: DeviceId,
    /// 32 random bytes in hexadecimal.
    pub nonce: String,
    /// The signature: 64 bytes in hexadecimal.
    pub signature: String,
}

/// Third message of the handshake, from the listener: accepts the caller's key and proves its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerProof {
    /// The signature: 64 bytes in hexadecimal.
    pub signature: String,
}

/// Computes the digest that both sides sign.
fn challenge_digest(
    role: &[u8],
    hub: DeviceId,
    device: DeviceId,
    nonces: [&[u8; 32]; 2],
    binding: &ChannelBinding,
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(CHALLENGE_DOMAIN);
    hasher.update(role);
    hasher.update(&hub.0);
    hasher.update(&device.0);
    hasher.update(nonces[0]);
    hasher.update(nonces[1]);
    // Only the last part varies in length, so the input is unambiguous.
    hasher.update(&binding.0);
    *hasher.finalize().as_bytes()
}

const CALLER_ROLE: &[u8] = b"calls\0\0\0";
const LISTENER_ROLE: &[u8] = b"listens\0";

/// The listener's side of one handshake. Verifying a response consumes it, so no challenge is used twice.
#[derive(Debug)]
pub struct ListenerHandshake {
    nonce: [u8; 32],
    binding: ChannelBinding,
}

impl ListenerHandshake {
    /// Generates a nonce for one connection.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub fn new(binding: ChannelBinding) -> Result<ListenerHandshake, ChallengeError> {
        Ok(ListenerHandshake { nonce: random_bytes()?, binding })
    }

    /// Returns the first message of the handshake.
    pub fn challenge(&self, key: &DeviceKey) -> DeviceChallenge {
        DeviceChallenge { hub: key.id(), nonce: crate::key::hex(&self.nonce) }
    }

    /// Verifies that the response proves the caller's key, and returns the listener's own proof.
    ///
    /// # Errors
    /// Returns [`ChallengeError::CallerUnproven`] if it doesn't.
    pub fn verify_response(self, key: &DeviceKey, answer: &ChallengeResponse) -> Result<ListenerProof, ChallengeError> {
        let nonce = unhex::<32>(&answer.nonce).ok_or(ChallengeError::CallerUnproven)?;
        let signature = unhex::<64>(&answer.signature).ok_or(ChallengeError::CallerUnproven)?;
        let nonces = [&self.nonce, &nonce];
        // A caller that uses our own id only sends our own messages back.
        if answer.device == key.id() {
            return Err(ChallengeError::CallerUnproven);
        }
        if !answer
            .device
            .has_signed(&challenge_digest(CALLER_ROLE, key.id(), answer.device, nonces, &self.binding), &signature)
        {
            return Err(ChallengeError::CallerUnproven);
        }
        let ours = key.sign(&challenge_digest(LISTENER_ROLE, key.id(), answer.device, nonces, &self.binding));
        Ok(ListenerProof { signature: crate::key::hex(&ours) })
    }
}

/// The caller's side of a handshake, between its response and the listener's proof.
#[derive(Debug)]
pub struct CallerHandshake {
    expected_digest: [u8; 32],
    hub: DeviceId,
}

impl CallerHandshake {
    /// Answers a challenge, if it comes from the expected hub.
    ///
    /// # Errors
    /// Returns an error if it comes from another hub, if it's malformed, or if the system has no random bytes.
    pub fn respond(
        key: &DeviceKey,
        expected: DeviceId,
        challenge: &DeviceChallenge,
        binding: &ChannelBinding,
    ) -> Result<(CallerHandshake, ChallengeResponse), ChallengeError> {
        if challenge.hub != expected {
            return Err(ChallengeError::OtherListener { found: challenge.hub, expected });
        }
        let theirs = unhex::<32>(&challenge.nonce).ok_or(ChallengeError::NotChallenge)?;
        let ours = random_bytes::<32>()?;
        let nonces = [&theirs, &ours];
        let signature = key.sign(&challenge_digest(CALLER_ROLE, expected, key.id(), nonces, binding));
        let answer = ChallengeResponse {
            device: key.id(),
            nonce: crate::key::hex(&ours),
            signature: crate::key::hex(&signature),
        };
        Ok((
            CallerHandshake {
                expected_digest: challenge_digest(LISTENER_ROLE, expected, key.id(), nonces, binding),
                hub: expected,
            },
            answer,
        ))
    }

    /// Verifies that the listener's message proves the hub's key.
    ///
    /// # Errors
    /// Returns [`ChallengeError::ListenerUnproven`] if it doesn't.
    pub fn verify_listener(self, welcome: &ListenerProof) -> Result<(), ChallengeError> {
        let signature = unhex::<64>(&welcome.signature);
        match signature.is_some_and(|signature| self.hub.has_signed(&self.expected_digest, &signature)) {
            true => Ok(()),
            false => Err(ChallengeError::ListenerUnproven),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_prove_their_keys() {
        let (hub, device) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let binding = ChannelBinding::from_certificate(b"certificate");
        let listener = ListenerHandshake::new(binding.clone()).expect("chance");
        let (caller, answer) =
            CallerHandshake::respond(&device, hub.id(), &listener.challenge(&hub), &binding).expect("answered");
        caller.verify_listener(&listener.verify_response(&hub, &answer).expect("proved")).expect("proved");
    }

    #[test]
    fn what_was_recorded_opens_nothing() {
        let (hub, device) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let binding = ChannelBinding::from_certificate(b"certificate");
        let first = ListenerHandshake::new(binding.clone()).expect("chance");
        let (_, recorded) =
            CallerHandshake::respond(&device, hub.id(), &first.challenge(&hub), &binding).expect("answered");
        // Replayed on another connection.
        let second = ListenerHandshake::new(binding.clone()).expect("chance");
        second.challenge(&hub);
        assert!(second.verify_response(&hub, &recorded).is_err());
        // Relayed over another channel.
        let relayed = ListenerHandshake::new(ChannelBinding::from_certificate(b"another")).expect("chance");
        let (_, answer) =
            CallerHandshake::respond(&device, hub.id(), &relayed.challenge(&hub), &binding).expect("answered");
        assert!(relayed.verify_response(&hub, &answer).is_err());
        // Sent with another device's id.
        let third = ListenerHandshake::new(binding.clone()).expect("chance");
        let (_, mut answer) =
            CallerHandshake::respond(&device, hub.id(), &third.challenge(&hub), &binding).expect("answered");
        answer.device = DeviceKey::generate().expect("key").id();
        assert!(third.verify_response(&hub, &answer).is_err());
        // Reflected back to its sender.
        let fourth = ListenerHandshake::new(binding.clone()).expect("chance");
        let (_, answer) =
            CallerHandshake::respond(&hub, hub.id(), &fourth.challenge(&hub), &binding).expect("answered");
        assert!(fourth.verify_response(&hub, &answer).is_err());
    }

    #[test]
    fn a_hub_that_is_another_is_not_answered_and_not_believed() {
        let (hub, other) = (DeviceKey::generate().expect("key"), DeviceKey::generate().expect("key"));
        let device = DeviceKey::generate().expect("key");
        let listener = ListenerHandshake::new(ChannelBinding::default()).expect("chance");
        let challenge = listener.challenge(&other);
        assert!(CallerHandshake::respond(&device, hub.id(), &challenge, &ChannelBinding::default()).is_err());
        let posing = DeviceChallenge { hub: hub.id(), ..challenge };
        let (caller, answer) =
            CallerHandshake::respond(&device, hub.id(), &posing, &ChannelBinding::default()).expect("answered");
        assert!(listener.verify_response(&other, &answer).is_err());
        assert!(caller.verify_listener(&ListenerProof { signature: "00".repeat(64) }).is_err());
    }
}
