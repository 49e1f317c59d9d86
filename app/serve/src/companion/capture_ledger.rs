//! Keys of captures, so that one that is sent again after a lost answer isn't added twice.

use crate::private_list::{PrivateList, PrivateListError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of keys that are remembered.
const MAX_KEYS: usize = 2_000;

/// A capture as the workspace remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CaptureRecord {
    /// BLAKE3 hash of the browser's id, the key and the content, in hexadecimal.
    pub(super) hash: String,
    /// When it was first sent, in milliseconds since 1970.
    pub(super) at: i64,
    /// The note that has it; missing while it's being added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<CapturedNote>,
}

/// The note that an item was added to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CapturedNote {
    pub(super) volume: String,
    pub(super) path: String,
}

/// The captures of a workspace.
pub(super) struct CaptureLedger {
    list: PrivateList<CaptureRecord>,
    turn: Mutex<()>,
}

impl CaptureLedger {
    pub(super) fn new(workspace: &Path) -> CaptureLedger {
        CaptureLedger { list: PrivateList::new(workspace, "captures"), turn: Mutex::new(()) }
    }

    /// Waits until no other capture is being added.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a capture. Returns it, and whether it was begun before.
    ///
    /// The content counts: a browser that goes back shows the old key, with which a person may send another text.
    pub(super) fn begin(
        &self,
        (browser, key): (&str, &str),
        content: &[&[u8]],
        now: i64,
    ) -> Result<(CaptureRecord, bool), PrivateListError> {
        let mut hasher = blake3::Hasher::new();
        for part in [browser.as_bytes(), key.as_bytes()].iter().chain(content) {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let hash = hasher.finalize().to_hex().to_string();
        self.list.change(|records| {
            if let Some(known) = records.iter().find(|record| record.hash == hash) {
                return Ok((known.clone(), true));
            }
            let record = CaptureRecord { hash, at: now, note: None };
            let surplus = (records.len() + 1).saturating_sub(MAX_KEYS);
            records.drain(..surplus);
            records.push(record.clone());
            Ok((record, false))
        })
    }

    /// Notes that a capture is in a note.
    pub(super) fn finish(&self, hash: &str, note: &CapturedNote) -> Result<(), PrivateListError> {
        self.list.change(|records| {
            let record = records.iter_mut().find(|record| record.hash == hash);
            if let Some(record) = record {
                record.note = Some(note.clone());
            }
            Ok(())
        })
    }

    /// Forgets a capture that failed.
    pub(super) fn forget(&self, hash: &str) -> Result<(), PrivateListError> {
        self.list.change(|records| {
            records.retain(|record| record.hash != hash);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_again_until_it_failed() {
        let folder = std::env::temp_dir().join(format!("captures-{:08x}", rand::random::<u32>()));
        std::fs::create_dir(&folder).expect("made");
        let ledger = CaptureLedger::new(&folder);
        let (first, was_known) = ledger.begin(("a", "k"), &[b"x"], 1).expect("begun");
        assert!(!was_known && first.note.is_none());
        assert!(!ledger.begin(("b", "k"), &[b"x"], 1).expect("begun").1, "another browser's key");
        assert!(!ledger.begin(("a", "k"), &[b"y"], 1).expect("begun").1, "another text");
        let note = CapturedNote { volume: "notes".to_owned(), path: "Today.md".to_owned() };
        ledger.finish(&first.hash, &note).expect("finished");
        let (again, was_known) = ledger.begin(("a", "k"), &[b"x"], 2).expect("begun");
        assert!(was_known && again.note == Some(note) && again.at == 1);
        ledger.forget(&first.hash).expect("forgotten");
        assert!(!ledger.begin(("a", "k"), &[b"x"], 3).expect("begun").1);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
