//! Files that a device signed for a purpose: who signed one, and whether it was changed afterwards.

use crate::devices::PairedDevice;
use crate::key::DeviceId;
use std::collections::BTreeMap;

/// The signer of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSigner {
    /// This device.
    ThisDevice,
    /// A device that is paired with this one.
    Paired {
        /// Its name, as it says itself.
        name: String,
    },
    /// A device that isn't paired with this one.
    Unpaired {
        /// Its key.
        id: DeviceId,
    },
}

impl FileSigner {
    /// Describes the signer, as a clause without its period. The name of a device is text of others.
    pub fn describe(&self) -> String {
        match self {
            FileSigner::ThisDevice => "signed by this device".to_owned(),
            FileSigner::Paired { name } => format!("signed by {name}, which is paired"),
            FileSigner::Unpaired { id } => {
                format!("signed by the device {}, which isn't paired with this one", id.short_id())
            }
        }
    }
}

/// Why the signature of a file isn't valid; nothing of such a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileSignatureError {
    /// The signer isn't a device's key.
    #[error("its signature names no device; nothing was imported")]
    NoDevice,
    /// The signature belongs to other content.
    #[error("it was changed after it was signed; nothing was imported")]
    Changed,
}

/// Returns who signed a file for a purpose. `device` and `signature` are what the file says; `own` is this device, and
/// `known` are those that it knows.
///
/// # Errors
/// Returns an error if the signature isn't valid.
pub fn verified_signer(
    (purpose, bytes): (&str, &[u8]),
    (device, signature): (&str, &str),
    own: Option<DeviceId>,
    known: &BTreeMap<DeviceId, PairedDevice>,
) -> Result<FileSigner, FileSignatureError> {
    let id: DeviceId = device.parse().map_err(|_| FileSignatureError::NoDevice)?;
    if !id.has_signed_file(purpose, bytes, signature) {
        return Err(FileSignatureError::Changed);
    }
    let paired = known.get(&id).filter(|device| device.is_authorized());
    Ok(match paired {
        _ if own == Some(id) => FileSigner::ThisDevice,
        Some(device) => FileSigner::Paired { name: device.name.clone() },
        None => FileSigner::Unpaired { id },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::DeviceKey;

    #[test]
    fn a_changed_file_has_no_signer() {
        let key = DeviceKey::generate().expect("key");
        let (device, signature) = (key.id().to_string(), key.sign_file("letter", b"words"));
        let none = BTreeMap::new();
        let signer =
            |bytes: &[u8], device: &str, own| verified_signer(("letter", bytes), (device, &signature), own, &none);
        assert_eq!(signer(b"words", &device, Some(key.id())), Ok(FileSigner::ThisDevice));
        assert_eq!(signer(b"words", &device, None), Ok(FileSigner::Unpaired { id: key.id() }));
        assert_eq!(signer(b"other", &device, Some(key.id())), Err(FileSignatureError::Changed));
        assert_eq!(signer(b"words", "no key", None), Err(FileSignatureError::NoDevice));
    }
}
