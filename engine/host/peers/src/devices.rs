//! The list of paired devices on this machine.
//!
//! It's an automerge document in its own file next to the secrets. Like the key, it belongs to the machine and not to
//! one workspace. Every change is on disk when the call returns.

use crate::key::{DeviceId, RandomBytesError, random_bytes};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{ActorId, DevicesDoc, StoreError};
pub use store::{DeviceAccess, PairedDevice};

/// Name of the file with the list of devices.
const DEVICES_FILE: &str = "devices.automerge";
/// Name of the lock file that admits one writer at a time.
const DEVICES_LOCK_FILE: &str = "devices.lock";
/// Maximum size of the file in bytes. A longer file isn't a list of devices.
const MAX_DEVICES_FILE_BYTES: u64 = 4 << 20;
/// Number of digits of a whole key.
const MAX_KEY_DIGITS: usize = 64;

/// Minimum number of digits of a key that stand for the device where orders of it are obeyed.
pub const MIN_TRUSTED_KEY_DIGITS: usize = 16;

/// Returns the digits of a key as people write it: in groups, in either case. `None` if they can't begin a key, or are
/// too few to trust.
pub fn trusted_key_digits(word: &str) -> Option<String> {
    let digits = word.chars().filter(|letter| *letter != ' ').collect::<String>().to_lowercase();
    let is_key = (MIN_TRUSTED_KEY_DIGITS..=MAX_KEY_DIGITS).contains(&digits.len());
    (is_key && digits.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
}

/// Returns the current time in milliseconds since 1970.
pub fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Why the list of devices can't be read, searched or changed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceListError {
    /// The system has no random bytes.
    #[error(transparent)]
    Random(#[from] RandomBytesError),
    /// The document refuses the change.
    #[error(transparent)]
    Document(#[from] Box<StoreError>),
    /// No device has this key.
    #[error("there is no device {}", id.short_id())]
    NoDevice {
        /// Id of the device.
        id: DeviceId,
    },
    /// No device has this name, or a key that starts with this text.
    #[error("there is no device “{word}”; see `tracebook devices`")]
    NotFound {
        /// The search text.
        word: String,
    },
    /// Several devices have this name, or a key that starts with this text.
    #[error("“{word}” is more than one device; give the beginning of its key")]
    Ambiguous {
        /// The search text.
        word: String,
    },
    /// The file can't be read.
    #[error("the list of devices: {source}: {}", path.display())]
    Unreadable {
        /// The I/O error.
        source: io::Error,
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is too long to be a list of devices.
    #[error("the list of devices: it is too long to be one: {}", path.display())]
    TooLong {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file isn't a list of devices.
    #[error("the list of devices: {source}: {}", path.display())]
    Invalid {
        /// The document's error.
        source: Box<StoreError>,
        /// Path of the file.
        path: PathBuf,
    },
    /// Part of the file can't be read.
    #[error(
        "the list of devices: it is damaged; restore it from a backup, or remove it and pair again: {}",
        path.display()
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file can't be written.
    #[error("the list of devices cannot be written: {source}: {}", path.display())]
    Unwritable {
        /// The I/O error.
        source: io::Error,
        /// Path of the file.
        path: PathBuf,
    },
}

/// The list of devices, as stored in its file.
#[derive(Clone, Debug)]
pub struct DeviceList {
    folder: PathBuf,
    /// Actor id under which this process writes.
    actor: ActorId,
}

impl DeviceList {
    /// Opens the list in this folder. The file is created at the first write.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub fn new(folder: &Path) -> Result<DeviceList, DeviceListError> {
        Ok(DeviceList { folder: folder.to_owned(), actor: ActorId::from(random_bytes::<16>()?) })
    }

    /// Returns all devices, including revoked ones.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn list(&self) -> Result<BTreeMap<DeviceId, PairedDevice>, DeviceListError> {
        Ok(devices_by_id(&self.read()?))
    }

    /// Returns the whole list in serialized form, for another device.
    ///
    /// # Errors
    /// Returns an error if the file can't be read.
    pub fn to_bytes(&self) -> Result<Vec<u8>, DeviceListError> {
        Ok(self.read()?.save())
    }

    /// Returns the modification time and size of the file, to detect changes; `None` if there's no file.
    pub fn file_stamp(&self) -> Option<(SystemTime, u64)> {
        let meta = std::fs::metadata(self.folder.join(DEVICES_FILE)).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    }

    /// Adds a device that was paired.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or written.
    pub fn pair(&self, id: DeviceId, device: PairedDevice) -> Result<(), DeviceListError> {
        self.edit_file(|doc| Ok(doc.pair_device(&id.to_string(), device, now_millis()).map_err(Box::new)?))
    }

    /// Changes the entry of a device.
    ///
    /// # Errors
    /// Returns an error if the device isn't listed, or the file can't be read or written.
    pub fn update_device(&self, id: DeviceId, amend: impl FnOnce(&mut PairedDevice)) -> Result<(), DeviceListError> {
        self.edit_file(|doc| {
            let key = id.to_string();
            let mut device = doc.device(&key).ok_or(DeviceListError::NoDevice { id })?;
            amend(&mut device);
            Ok(doc.put_device(&key, &device, now_millis()).map_err(Box::new)?)
        })
    }

    /// Revokes a device.
    ///
    /// # Errors
    /// Returns an error if the device isn't listed, or the file can't be read or written.
    pub fn revoke(&self, id: DeviceId) -> Result<(), DeviceListError> {
        self.edit_file(|doc| {
            let key = id.to_string();
            doc.device(&key).ok_or(DeviceListError::NoDevice { id })?;
            Ok(doc.revoke_device(&key, now_millis()).map_err(Box::new)?)
        })
    }

    /// Merges another device's list, and returns whether that changed anything.
    ///
    /// # Errors
    /// Returns an error if the bytes aren't a list, or the file can't be read or written.
    pub fn merge(&self, bytes: &[u8]) -> Result<bool, DeviceListError> {
        // Don't write if nothing changed: programs that watch the file would send it to each other forever.
        let mut doc = self.read()?;
        let before = doc.devices();
        doc.merge(bytes).map_err(Box::new)?;
        if doc.devices() == before {
            return Ok(false);
        }
        self.edit_file(|doc| Ok(doc.merge(bytes).map_err(Box::new)?))?;
        Ok(true)
    }

    /// Finds a device by the start of its key, or by its name.
    ///
    /// # Errors
    /// Returns an error if no device or more than one matches, or the file can't be read.
    pub fn find_by_name_or_key(&self, word: &str) -> Result<(DeviceId, PairedDevice), DeviceListError> {
        let word = word.trim();
        let digits: String = word.chars().filter(|letter| *letter != ' ').collect::<String>().to_lowercase();
        let is_meant = |(id, device): &(DeviceId, PairedDevice)| {
            device.name == word || (digits.len() >= 4 && id.to_string().starts_with(&digits))
        };
        let mut meant: Vec<_> = self.list()?.into_iter().filter(is_meant).collect();
        if meant.len() > 1 {
            meant.retain(|(_, device)| device.is_authorized());
        }
        match (meant.pop(), meant.is_empty()) {
            (Some(device), true) => Ok(device),
            (None, _) => Err(DeviceListError::NotFound { word: word.to_owned() }),
            (Some(_), false) => Err(DeviceListError::Ambiguous { word: word.to_owned() }),
        }
    }

    fn read(&self) -> Result<DevicesDoc, DeviceListError> {
        let path = self.folder.join(DEVICES_FILE);
        let unreadable = |source| DeviceListError::Unreadable { source, path: path.clone() };
        let chunks = match File::open(&path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(MAX_DEVICES_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
                if bytes.len() as u64 > MAX_DEVICES_FILE_BYTES {
                    return Err(DeviceListError::TooLong { path });
                }
                vec![bytes]
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unreadable(error)),
        };
        let loaded = DevicesDoc::load(&chunks, self.actor.clone());
        let loaded =
            loaded.map_err(|source| DeviceListError::Invalid { source: Box::new(source), path: path.clone() })?;
        match loaded.bad_chunks.is_empty() {
            true => Ok(loaded.doc),
            // Half a list might admit a device that was revoked in the other half.
            false => Err(DeviceListError::Damaged { path }),
        }
    }

    fn edit_file(
        &self,
        work: impl FnOnce(&mut DevicesDoc) -> Result<(), DeviceListError>,
    ) -> Result<(), DeviceListError> {
        let path = self.folder.join(DEVICES_FILE);
        let failed = |source| DeviceListError::Unwritable { source, path: path.clone() };
        store::disk::create_folder(&self.folder).map_err(failed)?;
        let lock = private_file_options().truncate(false).open(self.folder.join(DEVICES_LOCK_FILE)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut doc = self.read()?;
        work(&mut doc)?;
        let temporary = path.with_extension("tmp");
        let mut file = private_file_options().truncate(true).open(&temporary).map_err(failed)?;
        file.write_all(&doc.save()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&temporary, &path).map_err(failed)?;
        store::disk::sync_folder(&self.folder).map_err(failed)
    }
}

fn devices_by_id(doc: &DevicesDoc) -> BTreeMap<DeviceId, PairedDevice> {
    doc.devices().into_iter().filter_map(|(key, device)| Some((key.parse().ok()?, device))).collect()
}

fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::DeviceKey;

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
    fn the_list_lasts_and_is_found_by_name_or_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = DeviceList::new(folder.path()).expect("chance");
        assert!(devices.list().expect("empty").is_empty());
        let (one, two) = (DeviceKey::generate().expect("key").id(), DeviceKey::generate().expect("key").id());
        devices.pair(one, device("laptop")).expect("kept");
        devices.pair(two, device("laptop")).expect("kept");
        assert!(matches!(devices.find_by_name_or_key("laptop"), Err(DeviceListError::Ambiguous { .. })));
        devices.update_device(two, |device| device.name = "phone".to_owned()).expect("named");
        assert_eq!(devices.find_by_name_or_key("laptop").expect("one").0, one);
        assert_eq!(devices.find_by_name_or_key(&two.to_string()[..6].to_uppercase()).expect("one").0, two);
        devices.revoke(one).expect("revoked");
        let again = DeviceList::new(folder.path()).expect("chance");
        assert!(!again.list().expect("read")[&one].is_authorized());
        assert!(again.revoke(DeviceKey::generate().expect("key").id()).is_err());
        // Another device's list with newer changes.
        let other = tempfile::tempdir().expect("a folder");
        let theirs = DeviceList::new(other.path()).expect("chance");
        theirs.merge(&devices.to_bytes().expect("bytes")).expect("merged");
        assert!(!theirs.list().expect("read")[&one].is_authorized());
        theirs.revoke(two).expect("revoked");
        assert!(devices.merge(&theirs.to_bytes().expect("bytes")).expect("merged"));
        assert!(!devices.merge(&theirs.to_bytes().expect("bytes")).expect("nothing new"));
        assert!(!devices.list().expect("read")[&two].is_authorized());
    }

    #[test]
    fn a_damaged_list_welcomes_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = DeviceList::new(folder.path()).expect("chance");
        let one = DeviceKey::generate().expect("key").id();
        devices.pair(one, device("laptop")).expect("kept");
        let path = folder.path().join(DEVICES_FILE);
        let mut bytes = std::fs::read(&path).expect("read");
        bytes.truncate(bytes.len() - 7);
        std::fs::write(&path, bytes).expect("damaged");
        assert!(devices.list().is_err());
        assert!(devices.pair(one, device("laptop")).is_err());
    }
}
