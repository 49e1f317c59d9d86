//! The journal's record: one command's operations on one note, made durable at once and dropped when the change that
//! holds them is.

use crate::error::StoreError;
use crate::id::DocId;
use crate::note::NoteOp;
use serde::{Deserialize, Serialize};

/// One durable edit of a note, kept until it's part of an automerge change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// Counts up over the whole workspace and never repeats.
    pub seq: u64,
    /// The note that it belongs to.
    pub note: DocId,
    /// The operations, in order.
    pub ops: Vec<NoteOp>,
}

impl JournalRecord {
    /// Encodes the record for the journal (as JSON, so that it can be read by hand after damage).
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.ops).unwrap_or_default()
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// [`StoreError::Record`] when the bytes are not ours.
    pub fn decode(seq: u64, note: DocId, bytes: &[u8]) -> Result<JournalRecord, StoreError> {
        let ops = serde_json::from_slice(bytes).map_err(|error| StoreError::Record(error.to_string()))?;
        Ok(JournalRecord { seq, note, ops })
    }
}
