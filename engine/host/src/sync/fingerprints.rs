//! Hashes of all documents' heads, stored across restarts.
//!
//! With them, two devices find differences without loading everything. A stored hash is valid while the document's last
//! chunk is unchanged.

use crate::mailbox::{StoreWriter, WriterTask};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use store::DocId;
use store::disk::{DiskReader, RowWrite};
use store::sync::{HeadsHash, SyncPeers};

/// Database key of the stored hashes.
const FINGERPRINTS_KEY: &str = "sync/prints";
/// Delay between the first change of a hash and storing all of them.
const FINGERPRINTS_SAVE_DELAY: Duration = Duration::from_secs(20);
/// Bytes per document: id, number of the last chunk, hash.
const FINGERPRINT_ROW_BYTES: usize = 16 + 8 + 32;

/// Known hashes with the documents' last chunks.
#[derive(Default)]
pub(super) struct DocumentFingerprints {
    pub(super) writer: Option<StoreWriter>,
    /// Number of the last chunk of each document.
    last_chunks: HashMap<DocId, i64>,
    is_loaded: bool,
    changed_since: Option<Instant>,
}

fn parse_row(row: &[u8]) -> Option<(DocId, i64, HeadsHash)> {
    let (doc, rest) = row.split_first_chunk::<16>()?;
    let (number, print) = rest.split_first_chunk::<8>()?;
    Some((DocId(*doc), i64::from_le_bytes(*number), print.try_into().ok()?))
}

impl DocumentFingerprints {
    /// Loads the stored hashes, and sets them for all documents on disk before any document is synced.
    pub(super) fn load_fingerprints(&mut self, reader: &dyn DiskReader, peers: &mut SyncPeers) {
        if std::mem::replace(&mut self.is_loaded, true) {
            return;
        }
        let kept = reader.meta(FINGERPRINTS_KEY).ok().flatten().unwrap_or_default();
        let kept: HashMap<DocId, (i64, HeadsHash)> = kept
            .chunks_exact(FINGERPRINT_ROW_BYTES)
            .filter_map(parse_row)
            .map(|(doc, number, print)| (doc, (number, print)))
            .collect();
        for (doc, number) in reader.last_chunk_numbers().unwrap_or_default() {
            let print = kept.get(&doc).filter(|(then, _)| *then == number).map(|(_, print)| *print);
            peers.set_heads_hash(doc, print);
            self.last_chunks.insert(doc, number);
            if print.is_none() {
                self.changed_since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Records that a chunk is on disk.
    pub(super) fn record_chunk(&mut self, doc: DocId, number: i64) {
        match number {
            0 => _ = self.last_chunks.remove(&doc),
            _ => _ = self.last_chunks.insert(doc, number),
        }
        self.changed_since.get_or_insert_with(Instant::now);
    }

    pub(super) fn next_save(&self) -> Option<Instant> {
        self.changed_since.map(|changed| changed + FINGERPRINTS_SAVE_DELAY)
    }

    pub(super) fn save_if_due(&mut self, peers: &SyncPeers) {
        if self.next_save().is_some_and(|due| due <= Instant::now()) {
            self.save(peers);
        }
    }

    /// Stores the current hashes.
    pub(super) fn save(&mut self, peers: &SyncPeers) {
        let (Some(writer), Some(_)) = (&self.writer, self.changed_since.take()) else { return };
        let mut value = Vec::new();
        for (doc, print) in peers.heads_hashes() {
            if let Some(number) = self.last_chunks.get(&doc) {
                value.extend(doc.0);
                value.extend(number.to_le_bytes());
                value.extend(print);
            }
        }
        writer.send(WriterTask::AppendBestEffort {
            writes: vec![RowWrite::Meta { key: FINGERPRINTS_KEY.to_owned(), value: Some(value) }],
        });
    }
}
