//! Commits as SQL: how each [`RowWrite`] changes the tables. Independent of files and of the meaning of the bytes.

use super::reader::select_rows;
use super::rows::{self, ColumnValue, PendingRecords, TableSchema};
use super::sqlite::{CommitFailure, NumberCounters};
use crate::disk::interface::RowWrite;
use crate::id::DocId;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, params_from_iter};
use std::collections::HashMap;

/// Converts a value for SQLite.
pub(super) fn to_sql(value: ColumnValue<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        ColumnValue::Null => ValueRef::Null,
        ColumnValue::Int(number) => ValueRef::Integer(number),
        ColumnValue::Text(text) => ValueRef::Text(text),
        ColumnValue::Blob(bytes) => ValueRef::Blob(bytes),
    })
}

/// Inserts a row, or replaces the one with the same key.
pub(super) fn upsert_row(conn: &Connection, table: &TableSchema, values: &[ColumnValue<'_>]) -> rusqlite::Result<()> {
    let sum = rows::row_checksum(table, values);
    let all = values.iter().copied().chain([ColumnValue::Blob(&sum)]).map(to_sql);
    conn.prepare_cached(&upsert_sql(table))?.execute(params_from_iter(all))?;
    Ok(())
}

/// Returns the SQL of an upsert. A replaced row keeps its row number, so that the rows of a note stay together.
fn upsert_sql(table: &TableSchema) -> String {
    let columns = table.columns.join(", ");
    let places = "?, ".repeat(table.columns.len());
    let keys = match table.name {
        "blocks" | "files" => 2,
        "meta" | "ahead" | "actors" | "counters" => 1,
        _ => return format!("INSERT INTO {} ({columns}, sum) VALUES ({places}?)", table.name),
    };
    let key = table.columns[..keys].join(", ");
    let set: String = table.columns[keys..].iter().map(|column| format!("{column} = excluded.{column}, ")).collect();
    format!(
        "INSERT INTO {} ({columns}, sum) VALUES ({places}?) ON CONFLICT ({key}) DO UPDATE SET {set}sum = excluded.sum",
        table.name
    )
}

/// A commit in progress, with the counters that apply once it succeeds.
pub(super) struct PendingCommit<'a> {
    tx: &'a Transaction<'a>,
    initial_counters: NumberCounters,
    pub(super) counters: NumberCounters,
    known_tails: &'a HashMap<DocId, i64>,
    pub(super) tails: HashMap<DocId, i64>,
    pub(super) assigned_numbers: Vec<i64>,
}

impl<'a> PendingCommit<'a> {
    pub(super) fn new(
        tx: &'a Transaction<'a>,
        before: NumberCounters,
        known: &'a HashMap<DocId, i64>,
    ) -> PendingCommit<'a> {
        PendingCommit {
            tx,
            initial_counters: before,
            counters: before,
            known_tails: known,
            tails: HashMap::new(),
            assigned_numbers: Vec::new(),
        }
    }

    pub(super) fn apply(&mut self, write: &RowWrite) -> Result<(), CommitFailure> {
        match write {
            RowWrite::Journal { seq, note, record } => self.append_journal(*seq, *note, record)?,
            RowWrite::JournalDone { note, upto } => self.clear_journal(*note, *upto)?,
            RowWrite::Chunk { doc, bytes } => self.append_chunk(*doc, false, 0, bytes)?,
            RowWrite::Snapshot { doc, bytes, covers } => {
                if *covers > self.counters.chunk {
                    let why = format!("it says that it holds chunk {covers}, which was not given yet");
                    return Err(CommitFailure::Refused("writing a snapshot", why));
                }
                self.append_chunk(*doc, true, *covers, bytes)?;
            }
            RowWrite::DropChunks { doc, upto } => self.drop_chunks(*doc, *upto)?,
            RowWrite::Block { note, block } if block.text.is_empty() => {
                self.execute(
                    "DELETE FROM blocks WHERE note = ?1 AND block = ?2",
                    (note.0, rows::to_signed_bits(block.id.0)),
                )?;
            }
            RowWrite::Block { note, block } => upsert_row(self.tx, &rows::BLOCKS, &rows::block_values(note, block))?,
            RowWrite::Meta { key, value: Some(value) } => {
                upsert_row(self.tx, &rows::META, &[ColumnValue::Text(key.as_bytes()), ColumnValue::Blob(value)])?;
            }
            RowWrite::Meta { key, value: None } => self.execute("DELETE FROM meta WHERE key = ?1", [key])?,
            RowWrite::File(file) => upsert_row(self.tx, &rows::FILES, &rows::file_values(file))?,
            RowWrite::RemoveFile { volume, path } => {
                self.execute("DELETE FROM files WHERE volume = ?1 AND path = ?2", (volume.0, path))?;
            }
            RowWrite::NoteAhead { note, ahead: true } => {
                upsert_row(self.tx, &rows::AHEAD, &[ColumnValue::Blob(&note.0)])?
            }
            RowWrite::NoteAhead { note, ahead: false } => {
                self.execute("DELETE FROM ahead WHERE note = ?1", [note.0])?
            }
            RowWrite::Actor { actor, at } => {
                upsert_row(self.tx, &rows::ACTORS, &[ColumnValue::Blob(actor), ColumnValue::Int(*at)])?
            }
            RowWrite::QuarantineChunk { doc, seq, why, at } => {
                let condition = "doc = ?1 AND seq = ?2 ORDER BY seq";
                self.quarantine_rows("chunks", "doc", "bytes", condition, (*doc, *seq), (why, *at))?;
                self.execute("DELETE FROM chunks WHERE doc = ?1 AND seq = ?2", (doc.0, *seq))?;
            }
            RowWrite::QuarantineJournal { note, from, why, at } => self.quarantine_journal(*note, *from, (why, *at))?,
            RowWrite::DeleteDocument { doc } => {
                for (table, key) in [("chunks", "doc"), ("blocks", "note"), ("journal", "note"), ("ahead", "note")] {
                    self.execute(&format!("DELETE FROM {table} WHERE {key} = ?1"), [doc.0])?;
                }
                self.reload_journal_tail(*doc)?;
            }
        }
        Ok(())
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.tx.prepare_cached(sql)?.execute(params).map(|_| ())
    }

    fn append_journal(&mut self, seq: u64, note: DocId, record: &[u8]) -> Result<(), CommitFailure> {
        if seq <= self.counters.journal {
            let why = format!("the number {seq} was given before; the last is {}", self.counters.journal);
            return Err(CommitFailure::Refused("writing to the journal", why));
        }
        let prev = match self.tails.get(&note).or_else(|| self.known_tails.get(&note)) {
            Some(tail) => *tail,
            None => {
                // This process's first record for the note: it goes after the existing readable ones.
                let mut pending = PendingRecords::default();
                let condition = "WHERE note = ?1 ORDER BY seq";
                select_rows(self.tx, &rows::JOURNAL, condition, [note.0], |_, row| pending.add_row(row))?;
                if let Some(from) = pending.first_broken {
                    self.quarantine_journal(note, from, (rows::BROKEN_RECORD_REASON, 0))?;
                }
                self.reload_journal_tail(note)?
            }
        };
        let number = rows::to_signed_bits(seq);
        let row =
            [ColumnValue::Int(number), ColumnValue::Blob(&note.0), ColumnValue::Int(prev), ColumnValue::Blob(record)];
        upsert_row(self.tx, &rows::JOURNAL, &row)?;
        self.counters.journal = seq;
        self.tails.insert(note, number);
        Ok(())
    }

    fn quarantine_journal(&mut self, note: DocId, from: u64, why: (&str, i64)) -> rusqlite::Result<()> {
        let from = rows::to_signed_bits(from);
        self.quarantine_rows("journal", "note", "record", "note = ?1 AND seq >= ?2 ORDER BY seq", (note, from), why)?;
        self.execute("DELETE FROM journal WHERE note = ?1 AND seq >= ?2", (note.0, from))?;
        self.reload_journal_tail(note)?;
        Ok(())
    }

    /// Looks up the note's last pending record and returns its number, or 0.
    fn reload_journal_tail(&mut self, note: DocId) -> rusqlite::Result<i64> {
        let mut statement = self.tx.prepare_cached("SELECT max(seq) FROM journal WHERE note = ?1")?;
        let tail = statement.query_row([note.0], |row| row.get::<_, Option<i64>>(0))?.unwrap_or_default();
        self.tails.insert(note, tail);
        Ok(tail)
    }

    fn clear_journal(&mut self, note: DocId, upto: u64) -> Result<(), CommitFailure> {
        self.execute("DELETE FROM journal WHERE note = ?1 AND seq <= ?2", (note.0, rows::to_signed_bits(upto)))?;
        self.reload_journal_tail(note)?;
        // Later records stay, and the first of them no longer has a predecessor. A damaged one is left unchanged: a new
        // checksum would hide the damage.
        let sql = "SELECT seq, note, prev, record, sum FROM journal WHERE note = ?1 ORDER BY seq LIMIT 1";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut found = statement.query([note.0])?;
        let Some(row) = found.next()? else { return Ok(()) };
        let (Ok(seq), Ok(prev), Ok(record), Ok(sum)) =
            (row.get::<_, i64>(0), row.get::<_, i64>(2), row.get::<_, Vec<u8>>(3), row.get::<_, Vec<u8>>(4))
        else {
            return Ok(());
        };
        let values =
            [ColumnValue::Int(seq), ColumnValue::Blob(&note.0), ColumnValue::Int(prev), ColumnValue::Blob(&record)];
        let whole = sum == rows::row_checksum(&rows::JOURNAL, &values) && rows::from_signed_bits(prev) <= upto;
        if prev != 0 && whole {
            let values =
                [ColumnValue::Int(seq), ColumnValue::Blob(&note.0), ColumnValue::Int(0), ColumnValue::Blob(&record)];
            let sum = rows::row_checksum(&rows::JOURNAL, &values);
            self.execute("UPDATE journal SET prev = 0, sum = ?2 WHERE seq = ?1", (seq, sum))?;
        }
        Ok(())
    }

    fn append_chunk(&mut self, doc: DocId, snapshot: bool, covers: i64, bytes: &[u8]) -> rusqlite::Result<()> {
        let seq = self.counters.chunk + 1;
        let row = [
            ColumnValue::Int(seq),
            ColumnValue::Blob(&doc.0),
            ColumnValue::Int(i64::from(snapshot)),
            ColumnValue::Int(covers),
            ColumnValue::Blob(bytes),
        ];
        upsert_row(self.tx, &rows::CHUNKS, &row)?;
        self.counters.chunk = seq;
        self.assigned_numbers.push(seq);
        Ok(())
    }

    fn drop_chunks(&mut self, doc: DocId, upto: i64) -> Result<(), CommitFailure> {
        let sql = "SELECT seq, covers, bytes, sum FROM chunks
                   WHERE doc = ?1 AND snapshot = 1 AND covers >= ?2 AND seq <= ?3 ORDER BY seq DESC";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut found = statement.query((doc.0, upto, self.initial_counters.chunk))?;
        let mut covered = false;
        while let Some(row) = found.next()?.filter(|_| !covered) {
            let (seq, covers): (i64, i64) = (row.get(0)?, row.get(1)?);
            let bytes = row.get_ref(2)?.as_blob().unwrap_or_default();
            let values = [
                ColumnValue::Int(seq),
                ColumnValue::Blob(&doc.0),
                ColumnValue::Int(1),
                ColumnValue::Int(covers),
                ColumnValue::Blob(bytes),
            ];
            covered = row.get_ref(3)?.as_blob().is_ok_and(|sum| sum == rows::row_checksum(&rows::CHUNKS, &values));
        }
        if !covered {
            let why = format!("no durable snapshot holds what stands up to chunk {upto}");
            return Err(CommitFailure::Refused("dropping chunks", why));
        }
        Ok(self.execute("DELETE FROM chunks WHERE doc = ?1 AND seq <= ?2", (doc.0, upto))?)
    }

    /// Copies rows into the quarantine table.
    fn quarantine_rows(
        &self,
        table: &str,
        owner: &str,
        bytes: &str,
        condition: &str,
        key: (DocId, i64),
        note: (&str, i64),
    ) -> rusqlite::Result<()> {
        let mut statement =
            self.tx.prepare_cached(&format!("SELECT seq, {owner}, {bytes} FROM {table} WHERE {condition}"))?;
        let mut found = statement.query((key.0.0, key.1))?;
        while let Some(row) = found.next()? {
            let name = format!("{} {}", key.0, row.get::<_, i64>(0)?);
            let row = [
                ColumnValue::Text(table.as_bytes()),
                ColumnValue::Text(name.as_bytes()),
                ColumnValue::Blob(row.get_ref(2)?.as_bytes().unwrap_or_default()),
                ColumnValue::Text(note.0.as_bytes()),
                ColumnValue::Int(note.1),
            ];
            upsert_row(self.tx, &rows::DAMAGED, &row)?;
        }
        Ok(())
    }
}

/// Whether a write removes rows with sequence numbers, so that the highest number must be stored elsewhere.
pub(super) fn removes_numbered_rows(write: &RowWrite) -> bool {
    matches!(
        write,
        RowWrite::JournalDone { .. }
            | RowWrite::DropChunks { .. }
            | RowWrite::QuarantineChunk { .. }
            | RowWrite::QuarantineJournal { .. }
            | RowWrite::DeleteDocument { .. }
    )
}
