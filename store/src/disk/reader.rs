//! Reads the workspace's database over its own connection. Never writes, and never returns a row with a wrong checksum
//! as intact.

use super::rows::{self, ColumnValue, PendingRecords, TableSchema};
use super::sqlite::{self, DATABASE_FILE};
use crate::disk::blobs::BlobStore;
use crate::disk::error::DiskError;
use crate::disk::interface::{DiskReader, DocumentChunk, FileRow, QuarantinedRow};
use crate::id::{BlobHash, BlockId, DocId};
use crate::note::{Block, sort_blocks};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Params};
use std::path::{Path, PathBuf};

/// A reader of the database in a workspace folder.
#[derive(Debug)]
pub struct SqliteReader {
    pub(super) conn: Connection,
    pub(super) path: PathBuf,
    pub(super) blobs: BlobStore,
}

impl SqliteReader {
    /// Opens the workspace in `dir` for reading, even if the folder is read-only.
    ///
    /// # Errors
    /// Returns [`DiskError::Missing`], [`DiskError::Damaged`], [`DiskError::Newer`], or the I/O error.
    pub fn open(dir: &Path) -> Result<SqliteReader, DiskError> {
        let path = dir.join(DATABASE_FILE);
        sqlite::check_not_truncated(dir)?;
        let conn = match open_connection(&path, "mode=ro") {
            Ok(conn) => conn,
            // If the two files next to the database can't be created, it's read without them. If a log exists, it's
            // read as a copy in memory that includes the log.
            Err(error) => match std::fs::metadata(sqlite::path_with_suffix(&path, "-wal")) {
                Ok(wal) if wal.len() > 0 => {
                    let copied =
                        crate::disk::sqlite::SqliteDisk::copy_in_memory(dir).and_then(|copy| copy.open_sqlite_reader());
                    return copied.map_err(|_| sqlite::disk_error(&path, "opening", &error));
                }
                Ok(_) | Err(_) => {
                    open_connection(&path, IMMUTABLE_MODE).map_err(|_| sqlite::disk_error(&path, "opening", &error))?
                }
            },
        };
        sqlite::check_format(&conn, &path)?;
        Ok(SqliteReader { conn, path, blobs: BlobStore::new(dir) })
    }

    /// Opens a database that nothing writes to, such as a copy. Creates no files next to it.
    ///
    /// # Errors
    /// As for [`SqliteReader::open`].
    pub fn open_immutable(dir: &Path) -> Result<SqliteReader, DiskError> {
        let path = dir.join(DATABASE_FILE);
        sqlite::check_not_truncated(dir)?;
        let conn =
            open_connection(&path, IMMUTABLE_MODE).map_err(|error| sqlite::disk_error(&path, "opening", &error))?;
        sqlite::check_format(&conn, &path)?;
        Ok(SqliteReader { conn, path, blobs: BlobStore::new(dir) })
    }

    /// Copies the current database to a new file while others may write to it. The copy is durable on return.
    ///
    /// # Errors
    /// Any [`DiskError`], for example if the file exists.
    pub fn copy_to(&self, path: &Path) -> Result<(), DiskError> {
        let fail = |error: std::io::Error| DiskError::from_io("copying the database", path, &error);
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(fail)?;
        let run = || {
            let mut copy = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            let backup = rusqlite::backup::Backup::new(&self.conn, &mut copy)?;
            // In one step: with several steps, each write by others would restart the copy.
            let step = backup.step(-1)?;
            drop(backup);
            if step != rusqlite::backup::StepResult::Done {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
            // No separate log: the copy is a single file.
            copy.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            copy.close().map_err(|(_, error)| error)
        };
        run().map_err(|error| sqlite::disk_error(path, "copying the database", &error))?;
        file.sync_all().map_err(fail)
    }

    /// Runs a query that selects all columns of `table`, and passes each row to a callback, with its checksum as the
    /// last value.
    pub(super) fn for_each_row(
        &self,
        table: &TableSchema,
        condition: &str,
        params: impl Params,
        mut take: impl FnMut(&[ColumnValue<'_>]),
    ) -> Result<(), DiskError> {
        self.select_rows(table, condition, params, |_, row| take(row))
    }

    /// Passes each row of a table and its number to a callback.
    pub(super) fn for_each_numbered_row(
        &self,
        table: &TableSchema,
        take: impl FnMut(i64, &[ColumnValue<'_>]),
    ) -> Result<(), DiskError> {
        self.select_rows(table, "NOT INDEXED ORDER BY rowid", [], take)
    }

    fn select_rows(
        &self,
        table: &TableSchema,
        condition: &str,
        params: impl Params,
        take: impl FnMut(i64, &[ColumnValue<'_>]),
    ) -> Result<(), DiskError> {
        select_rows(&self.conn, table, condition, params, take)
            .map_err(|error| sqlite::disk_error(&self.path, "reading", &error))
    }

    /// Returns the ids that `sql` selects.
    fn select_ids(&self, sql: &str) -> Result<Vec<DocId>, DiskError> {
        let run = || {
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut found = statement.query([])?;
            let mut ids = Vec::new();
            while let Some(row) = found.next()? {
                // An id of another length is damage, which `inspect` reports; ignore it here.
                ids.extend(row.get_ref(0)?.as_blob().ok().and_then(|id| id.try_into().ok()).map(DocId));
            }
            Ok(ids)
        };
        run().map_err(|error| sqlite::disk_error(&self.path, "reading", &error))
    }

    fn pending_records(&self, note: DocId) -> Result<PendingRecords, DiskError> {
        let mut pending = PendingRecords::default();
        self.for_each_row(&rows::JOURNAL, "WHERE note = ?1 ORDER BY seq", [note.0], |row| pending.add_row(row))?;
        Ok(pending)
    }
}

/// Passes the number and the values of each row of a table to a callback. The last value is the checksum.
pub(super) fn select_rows(
    conn: &Connection,
    table: &TableSchema,
    condition: &str,
    params: impl Params,
    mut take: impl FnMut(i64, &[ColumnValue<'_>]),
) -> rusqlite::Result<()> {
    let columns = table.columns.join(", ");
    let mut statement =
        conn.prepare_cached(&format!("SELECT {columns}, sum, rowid FROM {} {condition}", table.name))?;
    let mut found = statement.query(params)?;
    let width = table.columns.len() + 1;
    while let Some(row) = found.next()? {
        let mut values = [ColumnValue::Null; 11];
        for (at, value) in values.iter_mut().enumerate().take(width) {
            *value = match row.get_ref(at)? {
                ValueRef::Null | ValueRef::Real(_) => ColumnValue::Null,
                ValueRef::Integer(number) => ColumnValue::Int(number),
                ValueRef::Text(text) => ColumnValue::Text(text),
                ValueRef::Blob(bytes) => ColumnValue::Blob(bytes),
            };
        }
        take(row.get(width)?, &values[..width]);
    }
    Ok(())
}

/// URI parameters to open the database without a log and without locks.
const IMMUTABLE_MODE: &str = "mode=ro&immutable=1";

fn open_connection(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(sqlite_uri(path, how), flags)?;
    sqlite::configure_connection(&conn)?;
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(conn)
}

/// Returns the path as an SQLite URI. Only a URI can specify `immutable`.
fn sqlite_uri(path: &Path, how: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?" + how
}

impl DiskReader for SqliteReader {
    fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let mut found = None;
        self.for_each_row(&rows::META, "WHERE key = ?1", [key], |row| {
            found = Some(row[1].as_blob().filter(|_| rows::is_row_intact(&rows::META, row)).map(<[u8]>::to_vec));
        })?;
        match found {
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(DiskError::Damaged { why: format!("its entry {key}"), path: self.path.clone() }),
            None => Ok(None),
        }
    }

    fn metas_with_prefix(&self, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, DiskError> {
        let mut found = Vec::new();
        let end = format!("{beginning}\u{10ffff}");
        self.for_each_row(
            &rows::META,
            "WHERE key >= ?1 AND key < ?2 ORDER BY key",
            [beginning, end.as_str()],
            |row| {
                let whole = row[0].as_text().zip(row[1].as_blob()).filter(|_| rows::is_row_intact(&rows::META, row));
                found.extend(whole.map(|(key, value)| (key.to_owned(), value.to_vec())));
            },
        )?;
        Ok(found)
    }

    fn chunks(&self, doc: DocId) -> Result<Vec<DocumentChunk>, DiskError> {
        let mut all = Vec::new();
        self.for_each_row(&rows::CHUNKS, "WHERE doc = ?1 ORDER BY seq", [doc.0], |row| {
            let [seq, _, snapshot, covers, bytes, _] = row else { return };
            let chunk = DocumentChunk {
                seq: seq.as_int().unwrap_or_default(),
                snapshot: snapshot.as_int() == Some(1),
                bytes: bytes.as_blob().unwrap_or_default().to_vec(),
                intact: rows::is_row_intact(&rows::CHUNKS, row),
            };
            all.push((chunk, covers.as_int().unwrap_or_default()));
        })?;
        Ok(rows::select_chunks(all))
    }

    fn document_ids(&self) -> Result<Vec<DocId>, DiskError> {
        self.select_ids("SELECT DISTINCT doc FROM chunks ORDER BY doc")
    }

    fn last_chunk_numbers(&self) -> Result<Vec<(DocId, i64)>, DiskError> {
        let run = || {
            let mut statement = self.conn.prepare_cached("SELECT doc, max(seq) FROM chunks GROUP BY doc")?;
            let mut found = statement.query([])?;
            let mut all = Vec::new();
            while let Some(row) = found.next()? {
                let doc = row.get_ref(0)?.as_blob().ok().and_then(|id| id.try_into().ok()).map(DocId);
                all.extend(doc.zip(row.get(1)?));
            }
            Ok(all)
        };
        run().map_err(|error| sqlite::disk_error(&self.path, "reading", &error))
    }

    fn blocks(&self, note: DocId) -> Result<(Vec<Block>, Vec<BlockId>), DiskError> {
        let (mut blocks, mut bad) = (Vec::new(), Vec::new());
        self.for_each_row(&rows::BLOCKS, "WHERE note = ?1", [note.0], |row| match rows::read_block(row) {
            Some(block) if rows::is_row_intact(&rows::BLOCKS, row) => blocks.push(block),
            Some(_) | None => bad.push(BlockId(rows::from_signed_bits(row[1].as_int().unwrap_or_default()))),
        })?;
        sort_blocks(&mut blocks);
        bad.sort_unstable();
        Ok((blocks, bad))
    }

    fn journal_records(&self, note: DocId) -> Result<Vec<(u64, Vec<u8>)>, DiskError> {
        Ok(self.pending_records(note)?.records)
    }

    fn first_broken_record(&self, note: DocId) -> Result<Option<u64>, DiskError> {
        Ok(self.pending_records(note)?.first_broken)
    }

    fn unfinished_notes(&self) -> Result<Vec<DocId>, DiskError> {
        self.select_ids("SELECT note FROM journal UNION SELECT note FROM ahead ORDER BY note")
    }

    fn last_journal_seq(&self) -> Result<u64, DiskError> {
        let counters =
            sqlite::NumberCounters::read(&self.conn).map_err(|error| error.into_disk_error(&self.path, "reading"))?;
        Ok(counters.journal)
    }

    fn file_rows(&self, volume: DocId) -> Result<Vec<FileRow>, DiskError> {
        let mut files = Vec::new();
        self.for_each_row(&rows::FILES, "WHERE volume = ?1 ORDER BY path", [volume.0], |row| {
            files.extend(rows::read_file(row).filter(|_| rows::is_row_intact(&rows::FILES, row)));
        })?;
        Ok(files)
    }

    fn file_row(&self, volume: DocId, path: &str) -> Result<Option<FileRow>, DiskError> {
        let mut file = None;
        self.for_each_row(&rows::FILES, "WHERE volume = ?1 AND path = ?2", (volume.0, path), |row| {
            file = rows::read_file(row).filter(|_| rows::is_row_intact(&rows::FILES, row));
        })?;
        Ok(file)
    }

    fn actors(&self) -> Result<Vec<(Vec<u8>, i64)>, DiskError> {
        let mut actors = Vec::new();
        self.for_each_row(&rows::ACTORS, "ORDER BY actor", [], |row| {
            let actor = row[0].as_blob().zip(row[1].as_int()).filter(|_| rows::is_row_intact(&rows::ACTORS, row));
            actors.extend(actor.map(|(actor, at)| (actor.to_vec(), at)));
        })?;
        Ok(actors)
    }

    fn quarantined_rows(&self) -> Result<Vec<QuarantinedRow>, DiskError> {
        let mut rows = Vec::new();
        self.for_each_row(&rows::DAMAGED, "ORDER BY rowid", [], |row| {
            rows.push(QuarantinedRow {
                source: row[0].as_text().unwrap_or_default().to_owned(),
                key: row[1].as_text().unwrap_or_default().to_owned(),
                bytes: row[2].as_blob().unwrap_or_default().to_vec(),
                why: row[3].as_text().unwrap_or_default().to_owned(),
                at: row[4].as_int().unwrap_or_default(),
            });
        })?;
        Ok(rows)
    }

    fn read_blob(&self, hash: BlobHash) -> Result<Vec<u8>, DiskError> {
        self.blobs.read(hash)
    }
}
