//! Access policy of the hub: who may do what with which document, per volume and device. A document that belongs to no
//! volume with a rule has the hub's default. A device never gets more than its own entry in the list of devices grants.

use crate::error::HubFileError;
use peers::DeviceId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use store::{ActorId, DeviceAccess, DocId, VolumeDoc};

/// Name of the policy file in the hub's folder.
pub(crate) const POLICY_FILE: &str = "share.json";

/// Access of devices to volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HubPolicy {
    /// Access to volumes without an entry.
    #[serde(default)]
    pub default: DeviceAccess,
    /// Rules for single volumes.
    #[serde(default)]
    pub volumes: BTreeMap<DocId, VolumePolicy>,
}

/// Access rules of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumePolicy {
    /// Access of devices without an entry.
    #[serde(default)]
    pub default: DeviceAccess,
    /// Access of single devices.
    #[serde(default)]
    pub devices: BTreeMap<DeviceId, DeviceAccess>,
}

impl Default for HubPolicy {
    fn default() -> HubPolicy {
        HubPolicy { default: DeviceAccess::Write, volumes: BTreeMap::new() }
    }
}

impl HubPolicy {
    /// Loads the policy of a hub's folder; without a file, the default policy.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or isn't a valid policy.
    pub fn load(folder: &Path) -> Result<HubPolicy, HubFileError> {
        let path = folder.join(POLICY_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|source| HubFileError::Json { source, path }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HubPolicy::default()),
            Err(error) => Err(HubFileError::io(path)(error)),
        }
    }

    /// Saves the policy; a running hub picks it up within a second.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn save(&self, folder: &Path) -> Result<(), HubFileError> {
        let path = folder.join(POLICY_FILE);
        let text = serde_json::to_string_pretty(self)?;
        let temporary = path.with_extension("tmp");
        let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(HubFileError::io(path))
    }
}

/// The policy, with the mapping from documents to volumes.
#[derive(Debug, Default)]
pub(crate) struct SharedVolumes {
    state: RwLock<PolicyState>,
}

#[derive(Debug, Default)]
struct PolicyState {
    policy: HubPolicy,
    /// Volume of each document in the volumes that the policy names.
    volume: HashMap<DocId, DocId>,
}

impl SharedVolumes {
    /// Replaces the policy; returns the volumes that it names, whose documents must be loaded again.
    pub(crate) fn replace_policy(&self, policy: HubPolicy) -> Vec<DocId> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let volumes = policy.volumes.keys().copied().collect();
        state.policy = policy;
        volumes
    }

    /// Returns whether the policy has a rule for this volume.
    pub(crate) fn names_volume(&self, doc: DocId) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).policy.volumes.contains_key(&doc)
    }

    /// Updates a volume that the policy names: its notes, outputs, sessions, runs and tools belong to it. Returns
    /// whether a document changed its volume.
    pub(crate) fn update_volume(&self, volume: DocId, chunks: &[Vec<u8>]) -> bool {
        let Ok(loaded) = VolumeDoc::load(volume, chunks, ActorId::from([0; 16])) else { return false };
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.volume.len();
        for (file, entry) in loaded.doc.files() {
            state.volume.insert(file, volume);
            if entry.kind.is_text() {
                state.volume.insert(file.outputs_id(), volume);
            }
        }
        for (_, id, _) in loaded.doc.listed_documents() {
            state.volume.insert(id, volume);
        }
        state.volume.insert(volume.tools_id(), volume);
        state.volume.len() != before
    }

    /// Returns the access to a document; `device` is `None` for clients without a key.
    pub(crate) fn access(&self, device: Option<DeviceId>, most: DeviceAccess, doc: DocId) -> DeviceAccess {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let volume = state.volume.get(&doc).copied().unwrap_or(doc);
        let shared = match state.policy.volumes.get(&volume) {
            None => state.policy.default,
            Some(volume) => device.and_then(|device| volume.devices.get(&device).copied()).unwrap_or(volume.default),
        };
        shared.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{FileEntry, FileKind, ListedDocumentKind};

    #[test]
    fn notes_go_with_their_volume() {
        let (volume, note, other) = (DocId([1; 16]), DocId([2; 16]), DocId([3; 16]));
        let actor = ActorId::from([9; 16]);
        let mut doc = VolumeDoc::load(volume, &[], actor).expect("made").doc;
        let entry = FileEntry { path: "a.md".to_owned(), kind: FileKind::Note };
        doc.commit(None, &[(note, Some(entry))], 0).expect("added");
        let session = DocId([6; 16]);
        doc.list_documents(&[(ListedDocumentKind::Session, session, None)], 0).expect("listed");
        let (reader, writer) = (DeviceId([4; 32]), DeviceId([5; 32]));
        let shares = SharedVolumes::default();
        let named = VolumePolicy {
            default: DeviceAccess::None,
            devices: BTreeMap::from([(reader, DeviceAccess::Read), (writer, DeviceAccess::Write)]),
        };
        let policy = HubPolicy { default: DeviceAccess::Write, volumes: BTreeMap::from([(volume, named)]) };
        assert_eq!(shares.replace_policy(policy), [volume]);
        assert!(shares.names_volume(volume) && !shares.names_volume(note));
        assert!(shares.update_volume(volume, &[doc.save()]));
        for doc in [volume, note, note.outputs_id(), session, volume.tools_id()] {
            assert_eq!(shares.access(Some(reader), DeviceAccess::Write, doc), DeviceAccess::Read);
            assert_eq!(shares.access(Some(writer), DeviceAccess::Write, doc), DeviceAccess::Write);
            assert_eq!(shares.access(Some(writer), DeviceAccess::Read, doc), DeviceAccess::Read);
            assert_eq!(shares.access(None, DeviceAccess::Write, doc), DeviceAccess::None);
        }
        assert_eq!(shares.access(None, DeviceAccess::Write, other), DeviceAccess::Write);
        assert!(!shares.update_volume(volume, &[b"damaged".to_vec()]));
    }
}
