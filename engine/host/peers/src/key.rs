//! The key of a device: generated once, stored as a secret by the host, and never in a document or log.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Id of a device: its Ed25519 public key. It's shown as 64 hexadecimal digits, which are also its peer name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DeviceId(pub [u8; 32]);

impl DeviceId {
    /// Returns the first 16 digits in groups of four, for people to compare.
    pub fn short_id(&self) -> String {
        let digits = self.to_string();
        [0, 4, 8, 12].map(|at| &digits[at..at + 4]).join(" ")
    }

    /// Returns whether this device signed these bytes.
    pub fn has_signed(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        // Strict verification rejects keys of low order and malleable signatures.
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok())
    }
}

/// Returns the bytes that a signature of a file covers. The purpose comes first, so that no signature for one
/// purpose, such as a greeting, holds for another.
fn file_to_sign(purpose: &str, bytes: &[u8]) -> Vec<u8> {
    [b"tracebook file\n", purpose.as_bytes(), b"\n", bytes].concat()
}

impl DeviceId {
    /// Returns whether this device signed a file for a purpose. `signature` is in hexadecimal.
    pub fn has_signed_file(&self, purpose: &str, bytes: &[u8], signature: &str) -> bool {
        unhex(signature).is_some_and(|signature| self.has_signed(&file_to_sign(purpose, bytes), &signature))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text isn't a device's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceKeyError {
    /// The text isn't a public key.
    #[error("a device's key has 64 hexadecimal digits")]
    Public,
    /// The text isn't a secret key. The error leaves the text out.
    #[error("the stored device key isn't valid; remove the secret TRACEBOOK_DEVICE_KEY and pair again")]
    Secret,
}

impl FromStr for DeviceId {
    type Err = DeviceKeyError;
    fn from_str(text: &str) -> Result<DeviceId, DeviceKeyError> {
        unhex(text).map(DeviceId).ok_or(DeviceKeyError::Public)
    }
}

impl From<DeviceId> for String {
    fn from(id: DeviceId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for DeviceId {
    type Error = DeviceKeyError;
    fn try_from(text: String) -> Result<DeviceId, DeviceKeyError> {
        text.parse()
    }
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses hexadecimal text of exactly `N` bytes; `None` if it's invalid.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != N * 2 {
        return None;
    }
    let digit = |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(*pair.first()?)? << 4 | digit(*pair.last()?)?;
    }
    Some(bytes)
}

/// The secret key of this device. It's wiped from memory on drop and never printed.
#[derive(Clone)]
pub struct DeviceKey(SigningKey);

impl DeviceKey {
    /// Generates a new key from the system's random bytes.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub fn generate() -> Result<DeviceKey, RandomBytesError> {
        Ok(DeviceKey(SigningKey::from_bytes(&Zeroizing::new(random_bytes::<32>()?))))
    }

    /// Parses a key from the 64 hexadecimal digits that [`DeviceKey::secret`] returns.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError::Secret`] if the text is anything else.
    pub fn from_secret(text: &str) -> Result<DeviceKey, DeviceKeyError> {
        let bytes = unhex(text).map(Zeroizing::new);
        bytes.map(|bytes| DeviceKey(SigningKey::from_bytes(&bytes))).ok_or(DeviceKeyError::Secret)
    }

    /// Returns the secret key in hexadecimal, to store as a secret.
    pub fn secret(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.0.as_bytes()))
    }

    /// Returns the secret key as bytes, for the local network's authentication.
    pub(crate) fn secret_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns this device's id.
    pub fn id(&self) -> DeviceId {
        DeviceId(self.0.verifying_key().to_bytes())
    }

    /// Signs a file for a purpose, such as `trace library`. Returns the signature in hexadecimal.
    pub fn sign_file(&self, purpose: &str, bytes: &[u8]) -> String {
        hex(&self.sign(&file_to_sign(purpose, bytes)))
    }

    /// Signs bytes with the device's key.
    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.0.sign(bytes).to_bytes()
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey of {}", self.id().short_id())
    }
}

/// The system has no random bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes ({0})")]
pub struct RandomBytesError(String);

/// Returns bytes from the system's random number generator.
///
/// # Errors
/// Returns an error if the system has no random bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomBytesError> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| RandomBytesError(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_and_never_shown() {
        let key = DeviceKey::generate().expect("chance");
        let again = DeviceKey::from_secret(&key.secret()).expect("the same");
        assert_eq!(key.id(), again.id());
        assert!(!format!("{key:?}").contains(&key.secret()[..8]));
        assert!(key.id().has_signed(b"words", &key.sign(b"words")));
        assert!(!key.id().has_signed(b"other", &key.sign(b"words")));
        let signature = key.sign_file("letter", b"words");
        assert!(key.id().has_signed_file("letter", b"words", &signature));
        assert!(!key.id().has_signed_file("order", b"words", &signature));
        assert!(!key.id().has_signed_file("letter", b"words", "zz") && !key.id().has_signed(b"words", &[0; 64]));
        assert_eq!(key.id().to_string().parse(), Ok(key.id()));
        for odd in ["", "zz", "é".repeat(32).as_str(), &"0".repeat(63)] {
            assert!(odd.parse::<DeviceId>().is_err());
            let why = DeviceKey::from_secret(odd).expect_err("none");
            assert!(odd.is_empty() || !why.to_string().contains(odd));
        }
    }
}
