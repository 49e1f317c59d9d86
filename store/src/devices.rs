//! The devices document: which devices may connect to this device or hub. Each device is identified by its public key.
//! Its entry is one scalar under that key, and the time of its revocation another, so that merging two lists never
//! restores a revoked device by accident.

use crate::document::{self, LoadedDocument};
use crate::error::StoreError;
use crate::id::DocId;
use crate::keys;
use crate::note::find_container;
use crate::schema::DocumentKind;
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{ActorId, Automerge, AutomergeError, ObjId, ReadDoc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum size of a device list in bytes. A larger one is rejected.
const MAX_DEVICE_LIST_BYTES: usize = 4 << 20;
/// Maximum length of a device's name in characters. A longer one is truncated.
const MAX_DEVICE_NAME_CHARS: usize = 64;
/// Fixed id of the devices document. It doesn't belong to a workspace, and has the same id everywhere.
const DEVICES_DOC_ID: DocId = DocId([0; 16]);

/// A device's access to documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceAccess {
    /// No access: the volume is hidden from the device.
    None,
    /// Read access only.
    Read,
    /// Read and write access.
    #[default]
    Write,
}

/// A paired device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedDevice {
    /// The displayed name, at most 64 characters.
    pub name: String,
    /// When it was paired, in milliseconds since 1970.
    pub added: i64,
    /// When it was revoked, in milliseconds since 1970; `None` if it's authorized.
    #[serde(skip)]
    pub revoked: Option<i64>,
    /// The maximum access that the device can have.
    #[serde(default)]
    pub access: DeviceAccess,
    /// Whether it may change this list.
    #[serde(default)]
    pub admin: bool,
    /// Address that it listens on, as `wss://host:port`, if it's a hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// BLAKE3 hash of the certificate that it presents at `address`, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

impl PairedDevice {
    /// Whether the device may connect: it isn't revoked.
    pub fn is_authorized(&self) -> bool {
        self.revoked.is_none()
    }
}

/// Sanitizes a device's name: one line, limited length.
fn sanitize_device_name(name: &str) -> String {
    let name: String = name.trim().chars().filter(|letter| !letter.is_control()).take(MAX_DEVICE_NAME_CHARS).collect();
    if name.is_empty() { "a device".to_owned() } else { name }
}

/// The list of devices.
pub struct DevicesDoc {
    doc: Automerge,
    devices: ObjId,
    revoked: ObjId,
}

impl std::fmt::Debug for DevicesDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DevicesDoc with {} devices", self.doc.length(&self.devices))
    }
}

impl DevicesDoc {
    /// Loads the list from its chunks. Further changes are written under `actor`.
    ///
    /// # Errors
    /// Returns an error if the document is damaged, has a newer schema, or is of another kind.
    pub fn load(chunks: &[Vec<u8>], actor: ActorId) -> Result<LoadedDocument<DevicesDoc>, StoreError> {
        let LoadedDocument { doc, bad_chunks: bad } =
            document::load_document(DEVICES_DOC_ID, DocumentKind::Devices, chunks, actor)?;
        let devices = find_container(&doc, DEVICES_DOC_ID, keys::DEVICES)?;
        let revoked = find_container(&doc, DEVICES_DOC_ID, keys::REVOKED)?;
        Ok(LoadedDocument { doc: DevicesDoc { doc, devices, revoked }, bad_chunks: bad })
    }

    /// Saves the whole document as one chunk.
    pub fn save(&self) -> Vec<u8> {
        self.doc.save()
    }

    /// Returns all devices by public key (64 hexadecimal digits), including revoked ones.
    pub fn devices(&self) -> BTreeMap<String, PairedDevice> {
        let read = |key: String| {
            // Two lists that were changed independently may conflict about a device. The one that grants less access
            // counts.
            let said = self.doc.get_all(&self.devices, key.as_str()).ok()?;
            let one = |(value, _): &(automerge::Value<'_>, ObjId)| serde_json::from_str(value.as_str()?).ok();
            let mut all: Vec<PairedDevice> = said.iter().filter_map(one).collect();
            all.sort_by_key(|device| (device.added, std::cmp::Reverse(device.access), !device.admin));
            let mut device = all.pop()?;
            device.name = sanitize_device_name(&device.name);
            let revoked = self.doc.get_all(&self.revoked, key.as_str()).ok()?;
            device.revoked = revoked.iter().filter_map(|(value, _)| value.as_i64()).max();
            // A revocation counts only until the device is paired again.
            device.revoked = device.revoked.filter(|revoked| *revoked >= device.added);
            Some((key, device))
        };
        self.doc.keys(&self.devices).filter_map(read).collect()
    }

    /// Returns the device with this public key.
    pub fn device(&self, key: &str) -> Option<PairedDevice> {
        self.devices().remove(key)
    }

    /// Adds a device, or updates its entry. A revoked device is accepted only if it was paired again, with `added`
    /// later than its revocation.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn put_device(&mut self, key: &str, device: &PairedDevice, time: i64) -> Result<(), StoreError> {
        let device = PairedDevice { name: sanitize_device_name(&device.name), ..device.clone() };
        let json = serde_json::to_string(&device).map_err(|error| StoreError::Record(error.to_string()))?;
        self.edit_devices(time, |tx, devices, _| tx.put(devices, key, json))
    }

    /// Adds a newly paired device and sets `device.added`. The device may connect from now on, even if it was revoked
    /// before.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn pair_device(&mut self, key: &str, mut device: PairedDevice, time: i64) -> Result<(), StoreError> {
        let before = self.device(key).and_then(|device| device.revoked);
        device.added = before.map_or(time, |revoked| time.max(revoked.saturating_add(1)));
        self.put_device(key, &device, time)
    }

    /// Revokes a device.
    ///
    /// # Errors
    /// Returns automerge's error if the change fails.
    pub fn revoke_device(&mut self, key: &str, time: i64) -> Result<(), StoreError> {
        // Also revokes a device whose clock was ahead when it was paired.
        let at = self.device(key).map_or(time, |device| time.max(device.added));
        self.edit_devices(time, |tx, _, revoked| tx.put(revoked, key, at))
    }

    /// Merges another device list.
    ///
    /// # Errors
    /// Returns an error if the bytes can't be read completely, are too long, or hold something else. Nothing is merged
    /// then.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() > MAX_DEVICE_LIST_BYTES {
            return Err(StoreError::Record("the list of devices is too long".to_owned()));
        }
        // It must be a valid list by itself. Otherwise foreign content would stay in this list permanently.
        DevicesDoc::load(std::slice::from_ref(&bytes.to_vec()), self.doc.get_actor().clone())?;
        document::merge_changes(DEVICES_DOC_ID, &mut self.doc, bytes, None, |_| {}).map(|_| ())
    }

    fn edit_devices(
        &mut self,
        time: i64,
        work: impl FnOnce(&mut automerge::transaction::Transaction<'_>, &ObjId, &ObjId) -> Result<(), AutomergeError>,
    ) -> Result<(), StoreError> {
        let (devices, revoked) = (&self.devices, &self.revoked);
        let made = self.doc.transact_with::<_, _, AutomergeError, _>(
            |()| CommitOptions::default().with_time(time / 1000),
            |tx| work(tx, devices, revoked),
        );
        made.map(|_| ()).map_err(|failure| StoreError::Automerge(failure.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(actor: u8) -> DevicesDoc {
        DevicesDoc::load(&[], ActorId::from([actor; 16])).expect("made").doc
    }

    fn device(name: &str) -> PairedDevice {
        PairedDevice {
            name: name.to_owned(),
            added: 0,
            revoked: None,
            access: DeviceAccess::Write,
            admin: false,
            address: None,
            certificate: None,
        }
    }

    #[test]
    fn who_was_revoked_in_one_list_is_revoked_in_both() {
        let (mut one, mut other) = (list(1), list(2));
        let key = "ab".repeat(32);
        one.pair_device(&key, device("laptop"), 1_000).expect("paired");
        other.pair_device(&key, device("laptop of Eva"), 1_200).expect("paired");
        one.revoke_device(&key, 1_100).expect("revoked");
        // It was paired with the other list later, so that counts.
        one.merge(&other.save()).expect("merged");
        assert!(one.device(&key).expect("there").is_authorized());
        other.revoke_device(&key, 1_300).expect("revoked");
        one.merge(&other.save()).expect("merged");
        other.merge(&one.save()).expect("merged");
        assert!(!one.device(&key).expect("there").is_authorized());
        assert_eq!(one.devices(), other.devices());
        // Pairing again restores it, even if the clock is behind.
        one.pair_device(&key, device("laptop"), 900).expect("paired");
        assert!(one.device(&key).expect("there").is_authorized());
    }

    #[test]
    fn bytes_that_are_no_list_are_not_taken() {
        let mut ours = list(1);
        ours.pair_device(&"cd".repeat(32), device("phone"), 5).expect("paired");
        let before = ours.devices();
        assert!(ours.merge(b"nonsense").is_err());
        let note = crate::schema::first_change_document(DocumentKind::Note).expect("made").save();
        assert!(ours.merge(&note).is_err());
        assert!(ours.merge(&vec![0; MAX_DEVICE_LIST_BYTES + 1]).is_err());
        assert_eq!(ours.devices(), before);
    }

    #[test]
    fn names_are_one_bounded_line() {
        let mut ours = list(1);
        ours.pair_device("k", device(&format!("a\nb\u{1b}[31m{}", "x".repeat(500))), 5).expect("paired");
        let name = ours.device("k").expect("there").name;
        assert_eq!(name.chars().count(), MAX_DEVICE_NAME_CHARS);
        assert!(!name.chars().any(char::is_control));
    }
}
