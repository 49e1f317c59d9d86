//! The tables of the database, and the checksum in each row. Contains only the SQL that creates the tables. Reader,
//! writer and salvage treat a row as a list of values.

use crate::id::{BlockId, DocId};
use crate::note::Block;
use crate::volume::FileKind;

use crate::disk::interface::FileRow;

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ColumnValue<'a> {
    /// No value, or a value of a type that Tracebook never writes.
    Null,
    /// An integer. Unsigned integers are stored by their bits.
    Int(i64),
    /// Text as bytes, which may not be UTF-8 after damage.
    Text(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
}

impl<'a> ColumnValue<'a> {
    pub(crate) fn as_int(self) -> Option<i64> {
        match self {
            ColumnValue::Int(number) => Some(number),
            ColumnValue::Null | ColumnValue::Text(_) | ColumnValue::Blob(_) => None,
        }
    }

    pub(crate) fn as_text(self) -> Option<&'a str> {
        match self {
            ColumnValue::Text(text) => std::str::from_utf8(text).ok(),
            ColumnValue::Null | ColumnValue::Int(_) | ColumnValue::Blob(_) => None,
        }
    }

    pub(crate) fn as_blob(self) -> Option<&'a [u8]> {
        match self {
            ColumnValue::Blob(bytes) => Some(bytes),
            ColumnValue::Null | ColumnValue::Int(_) | ColumnValue::Text(_) => None,
        }
    }

    /// Returns the bytes of a text or a blob.
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            ColumnValue::Text(bytes) | ColumnValue::Blob(bytes) => bytes,
            ColumnValue::Null | ColumnValue::Int(_) => &[],
        }
    }

    pub(crate) fn as_doc_id(self) -> Option<DocId> {
        self.as_blob()?.try_into().ok().map(DocId)
    }
}

/// Formats the value for people to read.
impl std::fmt::Display for ColumnValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ColumnValue::Null => write!(f, "-"),
            ColumnValue::Int(number) => write!(f, "{number}"),
            ColumnValue::Text(text) => write!(f, "{}", String::from_utf8_lossy(text)),
            ColumnValue::Blob(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// A table: its columns except the last one, the row's checksum. If `numbered`, the first column is the row number.
#[derive(Debug)]
pub(crate) struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) numbered: bool,
    pub(crate) make: &'static str,
}

macro_rules! table {
    ($table:ident, $name:literal, $numbered:literal, [$($column:literal),*], $make:literal) => {
        pub(crate) const $table: TableSchema =
            TableSchema { name: $name, columns: &[$($column),*], numbered: $numbered, make: $make };
    };
}

// A row of the journal names the note's previous record that was pending when it was written (0 if none). This detects
// rows that were lost without a trace.
table!(
    JOURNAL,
    "journal",
    true,
    ["seq", "note", "prev", "record"],
    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, note BLOB, prev INTEGER, record BLOB, sum BLOB);
     CREATE INDEX journal_key ON journal (note, seq);"
);
table!(
    CHUNKS,
    "chunks",
    true,
    ["seq", "doc", "snapshot", "covers", "bytes"],
    "CREATE TABLE chunks (seq INTEGER PRIMARY KEY, doc BLOB, snapshot INTEGER, covers INTEGER, bytes BLOB, sum BLOB);
     CREATE INDEX chunks_key ON chunks (doc, seq);"
);
table!(
    BLOCKS,
    "blocks",
    false,
    ["note", "block", "pos", "text"],
    "CREATE TABLE blocks (note BLOB, block INTEGER, pos TEXT, text TEXT, sum BLOB);
     CREATE UNIQUE INDEX blocks_key ON blocks (note, block);"
);
table!(
    FILES,
    "files",
    false,
    ["volume", "path", "id", "kind", "size", "mtime", "hash", "blocks", "cells", "heads"],
    "CREATE TABLE files (volume BLOB, path TEXT, id BLOB, kind TEXT, size INTEGER, mtime INTEGER, hash BLOB,
         blocks INTEGER, cells INTEGER, heads BLOB, sum BLOB);
     CREATE UNIQUE INDEX files_key ON files (volume, path);"
);
table!(
    META,
    "meta",
    false,
    ["key", "value"],
    "CREATE TABLE meta (key TEXT, value BLOB, sum BLOB);
     CREATE UNIQUE INDEX meta_key ON meta (key);"
);
table!(
    AHEAD,
    "ahead",
    false,
    ["note"],
    "CREATE TABLE ahead (note BLOB, sum BLOB);
     CREATE UNIQUE INDEX ahead_key ON ahead (note);"
);
table!(
    ACTORS,
    "actors",
    false,
    ["actor", "at"],
    "CREATE TABLE actors (actor BLOB, at INTEGER, sum BLOB);
     CREATE UNIQUE INDEX actors_key ON actors (actor);"
);
table!(
    DAMAGED,
    "damaged",
    false,
    ["source", "key", "bytes", "why", "at"],
    "CREATE TABLE damaged (source TEXT, key TEXT, bytes BLOB, why TEXT, at INTEGER, sum BLOB);"
);
// The highest numbers ever used, for when the rows with these numbers no longer exist.
table!(
    COUNTERS,
    "counters",
    false,
    ["name", "value"],
    "CREATE TABLE counters (name TEXT, value INTEGER, sum BLOB);
     CREATE UNIQUE INDEX counters_key ON counters (name);"
);

/// All tables, in the order of their creation. The order is part of the format: a new table goes to the end.
pub(crate) const ALL_TABLES: [&TableSchema; 9] =
    [&JOURNAL, &CHUNKS, &BLOCKS, &FILES, &META, &AHEAD, &ACTORS, &DAMAGED, &COUNTERS];

/// Computes a row's checksum: the first half of BLAKE3 over the table's name and the values.
pub(crate) fn row_checksum(table: &TableSchema, values: &[ColumnValue<'_>]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(table.name.as_bytes());
    for value in values {
        let (tag, bytes) = match value {
            ColumnValue::Null => (0, &[][..]),
            ColumnValue::Int(number) => (1, &number.to_be_bytes()[..]),
            ColumnValue::Text(bytes) => (2, *bytes),
            ColumnValue::Blob(bytes) => (3, *bytes),
        };
        hasher.update(&[tag]);
        hasher.update(&(bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    }
    let mut sum = [0; 16];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

/// Returns whether a row (with its checksum as the last value) is as it was written.
pub(crate) fn is_row_intact(table: &TableSchema, row: &[ColumnValue<'_>]) -> bool {
    match row.split_last() {
        Some((ColumnValue::Blob(stored), values)) => {
            values.len() == table.columns.len() && *stored == row_checksum(table, values)
        }
        Some(_) | None => false,
    }
}

/// A note's pending records, collected one after another: the ones that can be applied, and where they end.
#[derive(Debug, Default)]
pub(crate) struct PendingRecords {
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    /// Number of the first record that can't be read or lacks its predecessor.
    pub(crate) first_broken: Option<u64>,
    last_seq: i64,
}

/// The reason for quarantining records when a note is written to.
pub(crate) const BROKEN_RECORD_REASON: &str = "it, or a record before it, cannot be read";

impl PendingRecords {
    /// Adds the next row of the journal.
    pub(crate) fn add_row(&mut self, row: &[ColumnValue<'_>]) {
        let [seq, _, prev, record, _] = row else { return };
        let (Some(seq), whole) = (seq.as_int(), is_row_intact(&JOURNAL, row)) else { return };
        if whole && prev.as_int() == Some(0) {
            // Nothing was pending when it was written: earlier records were restored by a salvage.
            *self = PendingRecords::default();
        }
        match record.as_blob().filter(|_| self.first_broken.is_none()) {
            Some(record) if whole && prev.as_int() == Some(self.last_seq) => {
                self.records.push((from_signed_bits(seq), record.to_vec()));
                self.last_seq = seq;
            }
            Some(_) | None => {
                self.first_broken.get_or_insert(from_signed_bits(seq));
            }
        }
    }
}

/// Returns an unsigned number as the signed number with the same bits.
pub(crate) fn to_signed_bits(number: u64) -> i64 {
    i64::from_be_bytes(number.to_be_bytes())
}

/// Returns the unsigned number that [`to_signed_bits`] converted.
pub(crate) fn from_signed_bits(number: i64) -> u64 {
    u64::from_be_bytes(number.to_be_bytes())
}

pub(crate) fn block_values<'a>(note: &'a DocId, block: &'a Block) -> [ColumnValue<'a>; 4] {
    [
        ColumnValue::Blob(&note.0),
        ColumnValue::Int(to_signed_bits(block.id.0)),
        ColumnValue::Text(block.pos.as_bytes()),
        ColumnValue::Text(block.text.as_bytes()),
    ]
}

pub(crate) fn read_block(row: &[ColumnValue<'_>]) -> Option<Block> {
    let [_, id, pos, text, ..] = row else { return None };
    Some(Block {
        id: BlockId(from_signed_bits(id.as_int()?)),
        pos: pos.as_text()?.to_owned(),
        text: text.as_text()?.to_owned(),
    })
}

pub(crate) fn file_values(row: &FileRow) -> [ColumnValue<'_>; 10] {
    [
        ColumnValue::Blob(&row.volume.0),
        ColumnValue::Text(row.path.as_bytes()),
        ColumnValue::Blob(&row.id.0),
        ColumnValue::Text(row.kind.as_str().as_bytes()),
        ColumnValue::Int(to_signed_bits(row.size)),
        ColumnValue::Int(row.mtime),
        ColumnValue::Blob(&row.hash.0),
        ColumnValue::Int(i64::from(row.blocks)),
        ColumnValue::Int(i64::from(row.cells)),
        ColumnValue::Blob(row.heads.as_flattened()),
    ]
}

pub(crate) fn read_file(row: &[ColumnValue<'_>]) -> Option<FileRow> {
    let [volume, path, id, kind, size, mtime, hash, blocks, cells, heads, ..] = row else { return None };
    let kinds = [FileKind::Note, FileKind::Collection, FileKind::Script, FileKind::Attachment];
    let kind = kinds.into_iter().find(|known| Some(known.as_str()) == kind.as_text())?;
    let (heads, rest) = heads.as_blob()?.as_chunks::<32>();
    rest.is_empty().then_some(())?;
    Some(FileRow {
        volume: volume.as_doc_id()?,
        path: path.as_text()?.to_owned(),
        id: id.as_doc_id()?,
        kind,
        size: from_signed_bits(size.as_int()?),
        mtime: mtime.as_int()?,
        hash: crate::id::BlobHash(hash.as_blob()?.try_into().ok()?),
        blocks: blocks.as_int()?.try_into().ok()?,
        cells: cells.as_int()?.try_into().ok()?,
        heads: heads.to_vec(),
    })
}

/// Selects the chunks to read from all chunks of a document, in ascending order: the newest intact snapshot, then those
/// that it doesn't contain. Each chunk comes with its `covers`.
pub(crate) fn select_chunks(
    all: Vec<(crate::disk::interface::DocumentChunk, i64)>,
) -> Vec<crate::disk::interface::DocumentChunk> {
    let newest = all.iter().rposition(|(chunk, _)| chunk.snapshot && chunk.intact);
    let Some(newest) = newest else { return all.into_iter().map(|(chunk, _)| chunk).collect() };
    let (first, covers) = (all[newest].0.seq, all[newest].1);
    let mut picked: Vec<_> = all.into_iter().map(|(chunk, _)| chunk).filter(|chunk| chunk.seq > covers).collect();
    if let Some(at) = picked.iter().position(|chunk| chunk.seq == first) {
        picked[..=at].rotate_right(1);
    }
    picked
}
