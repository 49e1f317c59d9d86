//! Journal records. A record contains one command's operations on one note. It's made durable at once, and dropped when
//! the change that contains the operations is durable.

use crate::error::StoreError;
use crate::id::DocId;
use crate::note::NoteOp;
use serde::{Deserialize, Serialize};

/// A durable edit of a note, stored until it's part of an automerge change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// Sequence number, increasing over the whole workspace and never reused.
    pub seq: u64,
    /// The edited note.
    pub note: DocId,
    /// The operations, in order.
    pub ops: Vec<NoteOp>,
}

impl JournalRecord {
    /// Encodes the record for the journal, as JSON so that people can read it after damage.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.ops).unwrap_or_default()
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// Returns [`StoreError::Record`] if the bytes aren't a valid record.
    pub fn decode(seq: u64, note: DocId, bytes: &[u8]) -> Result<JournalRecord, StoreError> {
        let ops = serde_json::from_slice(bytes).map_err(|error| StoreError::Record(error.to_string()))?;
        Ok(JournalRecord { seq, note, ops })
    }
}
