//! A commit as SQL: what each [`Write`] does to the tables. Knows nothing of files, and nothing of what the bytes mean.

use super::Write;
use super::reader::select;
use super::rows::{self, Pending, Table, Value};
use super::sqlite::{Counters, Failure};
use crate::id::DocId;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Transaction, params_from_iter};
use std::collections::HashMap;

/// A value as SQLite takes it.
pub(super) fn bound(value: Value<'_>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match value {
        Value::Null => ValueRef::Null,
        Value::Int(number) => ValueRef::Integer(number),
        Value::Text(text) => ValueRef::Text(text),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
    })
}

/// Writes a row: a new one, or in the place of the one with the same key.
pub(super) fn put(conn: &Connection, table: &Table, values: &[Value<'_>]) -> rusqlite::Result<()> {
    let sum = rows::sum(table, values);
    let all = values.iter().copied().chain([Value::Blob(&sum)]).map(bound);
    conn.prepare_cached(&put_sql(table))?.execute(params_from_iter(all))?;
    Ok(())
}

/// A row that takes the place of another keeps its number: rows of one note stay together.
fn put_sql(table: &Table) -> String {
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

/// A commit on its way: what becomes of the numbers if it comes about.
pub(super) struct Batch<'a> {
    tx: &'a Transaction<'a>,
    before: Counters,
    pub(super) counters: Counters,
    known: &'a HashMap<DocId, i64>,
    pub(super) tails: HashMap<DocId, i64>,
    pub(super) given: Vec<i64>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(tx: &'a Transaction<'a>, before: Counters, known: &'a HashMap<DocId, i64>) -> Batch<'a> {
        Batch { tx, before, counters: before, known, tails: HashMap::new(), given: Vec::new() }
    }

    pub(super) fn write(&mut self, write: &Write) -> Result<(), Failure> {
        match write {
            Write::Journal { seq, note, record } => self.journal(*seq, *note, record)?,
            Write::JournalDone { note, upto } => self.journal_done(*note, *upto)?,
            Write::Chunk { doc, bytes } => self.chunk(*doc, false, 0, bytes)?,
            Write::Snapshot { doc, bytes, covers } => {
                if *covers > self.counters.chunk {
                    let why = format!("it says that it holds chunk {covers}, which was not given yet");
                    return Err(Failure::Refused("writing a snapshot", why));
                }
                self.chunk(*doc, true, *covers, bytes)?;
            }
            Write::DropChunks { doc, upto } => self.drop_chunks(*doc, *upto)?,
            Write::Block { note, block } if block.text.is_empty() => {
                self.run("DELETE FROM blocks WHERE note = ?1 AND block = ?2", (note.0, rows::bits(block.id.0)))?;
            }
            Write::Block { note, block } => put(self.tx, &rows::BLOCKS, &rows::block(note, block))?,
            Write::Meta { key, value: Some(value) } => {
                put(self.tx, &rows::META, &[Value::Text(key.as_bytes()), Value::Blob(value)])?;
            }
            Write::Meta { key, value: None } => self.run("DELETE FROM meta WHERE key = ?1", [key])?,
            Write::File(file) => put(self.tx, &rows::FILES, &rows::file(file))?,
            Write::FileGone { volume, path } => {
                self.run("DELETE FROM files WHERE volume = ?1 AND path = ?2", (volume.0, path))?;
            }
            Write::Ahead { note, ahead: true } => put(self.tx, &rows::AHEAD, &[Value::Blob(&note.0)])?,
            Write::Ahead { note, ahead: false } => self.run("DELETE FROM ahead WHERE note = ?1", [note.0])?,
            Write::Actor { actor, at } => put(self.tx, &rows::ACTORS, &[Value::Blob(actor), Value::Int(*at)])?,
            Write::SetAside { doc, seq, why, at } => {
                let condition = "doc = ?1 AND seq = ?2 ORDER BY seq";
                self.set_aside("chunks", "doc", "bytes", condition, (*doc, *seq), (why, *at))?;
                self.run("DELETE FROM chunks WHERE doc = ?1 AND seq = ?2", (doc.0, *seq))?;
            }
            Write::SetAsideJournal { note, from, why, at } => self.set_aside_journal(*note, *from, (why, *at))?,
            Write::Forget { doc } => {
                for (table, key) in [("chunks", "doc"), ("blocks", "note"), ("journal", "note"), ("ahead", "note")] {
                    self.run(&format!("DELETE FROM {table} WHERE {key} = ?1"), [doc.0])?;
                }
                self.refresh_tail(*doc)?;
            }
        }
        Ok(())
    }

    fn run(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.tx.prepare_cached(sql)?.execute(params).map(|_| ())
    }

    fn journal(&mut self, seq: u64, note: DocId, record: &[u8]) -> Result<(), Failure> {
        if seq <= self.counters.journal {
            let why = format!("the number {seq} was given before; the last is {}", self.counters.journal);
            return Err(Failure::Refused("writing to the journal", why));
        }
        let prev = match self.tails.get(&note).or_else(|| self.known.get(&note)) {
            Some(tail) => *tail,
            None => {
                // The first record of this process: it goes behind those that can be read.
                let mut pending = Pending::default();
                let condition = "WHERE note = ?1 ORDER BY seq";
                select(self.tx, &rows::JOURNAL, condition, [note.0], |_, row| pending.take(row))?;
                if let Some(from) = pending.broken {
                    self.set_aside_journal(note, from, (rows::BROKEN, 0))?;
                }
                self.refresh_tail(note)?
            }
        };
        let number = rows::bits(seq);
        let row = [Value::Int(number), Value::Blob(&note.0), Value::Int(prev), Value::Blob(record)];
        put(self.tx, &rows::JOURNAL, &row)?;
        self.counters.journal = seq;
        self.tails.insert(note, number);
        Ok(())
    }

    fn set_aside_journal(&mut self, note: DocId, from: u64, why: (&str, i64)) -> rusqlite::Result<()> {
        let from = rows::bits(from);
        self.set_aside("journal", "note", "record", "note = ?1 AND seq >= ?2 ORDER BY seq", (note, from), why)?;
        self.run("DELETE FROM journal WHERE note = ?1 AND seq >= ?2", (note.0, from))?;
        self.refresh_tail(note)?;
        Ok(())
    }

    /// Looks up the note's last pending record.
    fn refresh_tail(&mut self, note: DocId) -> rusqlite::Result<i64> {
        let mut statement = self.tx.prepare_cached("SELECT max(seq) FROM journal WHERE note = ?1")?;
        let tail = statement.query_row([note.0], |row| row.get::<_, Option<i64>>(0))?.unwrap_or_default();
        self.tails.insert(note, tail);
        Ok(tail)
    }

    fn journal_done(&mut self, note: DocId, upto: u64) -> Result<(), Failure> {
        self.run("DELETE FROM journal WHERE note = ?1 AND seq <= ?2", (note.0, rows::bits(upto)))?;
        self.refresh_tail(note)?;
        // What was typed meanwhile stays, and its first record has no predecessor from now on. A damaged one is left
        // as it is: a new sum would hide the damage.
        let sql = "SELECT seq, note, prev, record, sum FROM journal WHERE note = ?1 ORDER BY seq LIMIT 1";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut found = statement.query([note.0])?;
        let Some(row) = found.next()? else { return Ok(()) };
        let (Ok(seq), Ok(prev), Ok(record), Ok(sum)) =
            (row.get::<_, i64>(0), row.get::<_, i64>(2), row.get::<_, Vec<u8>>(3), row.get::<_, Vec<u8>>(4))
        else {
            return Ok(());
        };
        let values = [Value::Int(seq), Value::Blob(&note.0), Value::Int(prev), Value::Blob(&record)];
        let whole = sum == rows::sum(&rows::JOURNAL, &values) && rows::unbits(prev) <= upto;
        if prev != 0 && whole {
            let values = [Value::Int(seq), Value::Blob(&note.0), Value::Int(0), Value::Blob(&record)];
            let sum = rows::sum(&rows::JOURNAL, &values);
            self.run("UPDATE journal SET prev = 0, sum = ?2 WHERE seq = ?1", (seq, sum))?;
        }
        Ok(())
    }

    fn chunk(&mut self, doc: DocId, snapshot: bool, covers: i64, bytes: &[u8]) -> rusqlite::Result<()> {
        let seq = self.counters.chunk + 1;
        let row = [
            Value::Int(seq),
            Value::Blob(&doc.0),
            Value::Int(i64::from(snapshot)),
            Value::Int(covers),
            Value::Blob(bytes),
        ];
        put(self.tx, &rows::CHUNKS, &row)?;
        self.counters.chunk = seq;
        self.given.push(seq);
        Ok(())
    }

    fn drop_chunks(&mut self, doc: DocId, upto: i64) -> Result<(), Failure> {
        let sql = "SELECT seq, covers, bytes, sum FROM chunks
                   WHERE doc = ?1 AND snapshot = 1 AND covers >= ?2 AND seq <= ?3 ORDER BY seq DESC";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut found = statement.query((doc.0, upto, self.before.chunk))?;
        let mut covered = false;
        while let Some(row) = found.next()?.filter(|_| !covered) {
            let (seq, covers): (i64, i64) = (row.get(0)?, row.get(1)?);
            let bytes = row.get_ref(2)?.as_blob().unwrap_or_default();
            let values = [Value::Int(seq), Value::Blob(&doc.0), Value::Int(1), Value::Int(covers), Value::Blob(bytes)];
            covered = row.get_ref(3)?.as_blob().is_ok_and(|sum| sum == rows::sum(&rows::CHUNKS, &values));
        }
        if !covered {
            let why = format!("no durable snapshot holds what stands up to chunk {upto}");
            return Err(Failure::Refused("dropping chunks", why));
        }
        Ok(self.run("DELETE FROM chunks WHERE doc = ?1 AND seq <= ?2", (doc.0, upto))?)
    }

    /// Copies rows into the table of what was set aside.
    fn set_aside(
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
                Value::Text(table.as_bytes()),
                Value::Text(name.as_bytes()),
                Value::Blob(row.get_ref(2)?.as_bytes().unwrap_or_default()),
                Value::Text(note.0.as_bytes()),
                Value::Int(note.1),
            ];
            put(self.tx, &rows::DAMAGED, &row)?;
        }
        Ok(())
    }
}

/// Whether rows that bear numbers go by it, so that the highest number must be kept elsewhere.
pub(super) fn removes_numbers(write: &Write) -> bool {
    matches!(
        write,
        Write::JournalDone { .. }
            | Write::DropChunks { .. }
            | Write::SetAside { .. }
            | Write::SetAsideJournal { .. }
            | Write::Forget { .. }
    )
}
