//! The disk as a SQLite database in the workspace folder, with a write-ahead log that's synced at every commit. It
//! never replaces an existing database.

use super::batch::{PendingCommit, removes_numbered_rows, upsert_row};
use super::progress::{self, LOST_KEY, LogProgress, ProgressFile};
use super::rows::{self, ALL_TABLES, ColumnValue};
use super::{durable, marker};
use crate::disk::blobs::BlobStore;
use crate::disk::error::DiskError;
use crate::disk::interface::{Disk, DiskReader, RowWrite};
use crate::disk::reader::SqliteReader;
use crate::disk::salvage::DAMAGED_FOLDER;
use crate::id::{BlobHash, DocId};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database's name in the workspace folder.
pub const DATABASE_FILE: &str = "tracebook.db";
/// Number of the database format that this version writes.
pub const DATABASE_FORMAT: i64 = 1;

/// `TrBk` (`PRAGMA application_id`), which distinguishes Tracebook databases from others.
const DATABASE_APPLICATION_ID: i64 = 0x5472_426b;
/// A longer log is checkpointed at once instead of in an idle moment.
const MAX_LOG_BYTES: u64 = 16 << 20;

/// The workspace's database and blobs, opened for writing.
#[derive(Debug)]
pub struct SqliteDisk {
    dir: PathBuf,
    path: PathBuf,
    conn: Connection,
    blobs: BlobStore,
    /// Device and inode of the open database. Its path may later refer to another file, or to none.
    identity: (u64, u64),
    counters: NumberCounters,
    /// Number of the last pending journal record of each note that was written to.
    journal_tails: HashMap<DocId, i64>,
    /// Whether the log may contain data that the database doesn't.
    log_may_be_ahead: bool,
    progress: ProgressFile,
    /// The URI of the copy, if the database is a copy in memory.
    memory_copy_name: Option<String>,
}

/// The highest journal and chunk numbers used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberCounters {
    pub(super) journal: u64,
    pub(super) chunk: i64,
}

/// Why a commit failed: an SQLite error or a violated rule.
#[derive(Debug)]
pub(super) enum CommitFailure {
    Sql(rusqlite::Error),
    Refused(&'static str, String),
    Damaged(String),
}

impl From<rusqlite::Error> for CommitFailure {
    fn from(error: rusqlite::Error) -> CommitFailure {
        CommitFailure::Sql(error)
    }
}

impl CommitFailure {
    pub(super) fn into_disk_error(self, path: &Path, what: &'static str) -> DiskError {
        match self {
            CommitFailure::Sql(error) => disk_error(path, what, &error),
            CommitFailure::Refused(what, why) => DiskError::Refused { what, why, path: path.to_owned() },
            CommitFailure::Damaged(why) => DiskError::Damaged { why, path: path.to_owned() },
        }
    }
}

/// Converts an SQLite error.
pub(super) fn disk_error(path: &Path, what: &'static str, error: &rusqlite::Error) -> DiskError {
    let damaged = || DiskError::Damaged { why: error.to_string(), path: path.to_owned() };
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DiskError::Full { path: path.to_owned() },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(),
        // Error code 1 also means "no such table" and "no such column": the schema isn't Tracebook's.
        Some(ErrorCode::Unknown) => damaged(),
        // SQLite doesn't report why the system refused, so find out by writing a file.
        Some(
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure,
        ) => match durable::probe_writable(path.parent().unwrap_or(Path::new(""))) {
            Err(refused) => DiskError::from_io(what, path, &refused),
            Ok(()) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
                DiskError::ReadOnly { path: path.to_owned() }
            }
            Ok(()) => DiskError::Io { what, why: error.to_string(), path: path.to_owned() },
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            DiskError::Io { what, why: "another program is writing to it".to_owned(), path: path.to_owned() }
        }
        Some(_) | None => DiskError::Io { what, why: error.to_string(), path: path.to_owned() },
    }
}

/// Returns the path with a suffix, such as `tracebook.db-wal`.
pub(super) fn path_with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(end);
    path.with_file_name(name)
}

/// Detects what SQLite ignores: a database that's missing, empty or truncated. SQLite would create a new one in the
/// first two cases, and delete the log of the second.
pub(super) fn check_not_truncated(dir: &Path) -> Result<(), DiskError> {
    use std::io::Read;
    let path = dir.join(DATABASE_FILE);
    let damaged = |why: &str| Err(DiskError::Damaged { why: why.to_owned(), path: path.clone() });
    let size = match std::fs::metadata(&path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let traces = [marker::MARKER_FILE, crate::disk::blobs::BLOBS_FOLDER, "damaged", "tracebook.db-wal"];
            return if traces.iter().any(|trace| dir.join(trace).exists()) {
                damaged("it is missing")
            } else {
                Err(DiskError::Missing { path: dir.to_owned() })
            };
        }
        Err(error) => return Err(DiskError::from_io("opening", &path, &error)),
    };
    if size == 0 {
        return damaged("it is empty");
    }
    let mut head = [0; 100];
    let read = std::fs::File::open(&path).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return damaged("its end is missing"),
        Err(error) => return Err(DiskError::from_io("reading", &path, &error)),
    }
    let pages = u64::from(u32::from_be_bytes([head[28], head[29], head[30], head[31]]));
    let page = match u64::from(u16::from_be_bytes([head[16], head[17]])) {
        1 => 65_536,
        size => size,
    };
    // If there's a log, it may contain the missing pages.
    let log = std::fs::metadata(path_with_suffix(&path, "-wal")).map_or(0, |log| log.len());
    if log == 0 && size < pages * page {
        return damaged("its end is missing");
    }
    Ok(())
}

/// Sets the options that every connection needs.
pub(super) fn configure_connection(conn: &Connection) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; PRAGMA mmap_size = 0;
         PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 16777216; PRAGMA cell_size_check = ON;
         PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;",
    )
}

/// Checks that the database belongs to Tracebook and has a supported format.
pub(super) fn check_format(conn: &Connection, path: &Path) -> Result<(), DiskError> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let fail = |error| disk_error(path, "opening", &error);
    if number("PRAGMA application_id").map_err(fail)? != DATABASE_APPLICATION_ID {
        return Err(DiskError::Damaged { why: "it is not Tracebook's".to_owned(), path: path.to_owned() });
    }
    match number("PRAGMA user_version").map_err(fail)? {
        found if found > DATABASE_FORMAT => {
            Err(DiskError::Newer { found, known: DATABASE_FORMAT, path: path.to_owned() })
        }
        found if found < 1 => Err(DiskError::Damaged { why: "it has no format".to_owned(), path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Creates an empty database at an unused `path` and closes it. Its root pages always have the same numbers; `salvage`
/// relies on that if the schema is lost.
pub(super) fn create_database(path: &Path) -> Result<(), DiskError> {
    let run = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        configure_connection(&conn)?;
        conn.execute_batch("PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE; PRAGMA encoding = 'UTF-8'; BEGIN;")?;
        ALL_TABLES.iter().try_for_each(|table| conn.execute_batch(table.make))?;
        conn.execute_batch(&format!(
            "PRAGMA application_id = {DATABASE_APPLICATION_ID}; PRAGMA user_version = {DATABASE_FORMAT}; COMMIT; \
                PRAGMA journal_mode = WAL;"
        ))?;
        conn.close().map_err(|(_, error)| error)
    };
    run().map_err(|error| disk_error(path, "making the database", &error))?;
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| DiskError::from_io("making the database", path, &error))
}

impl SqliteDisk {
    /// Opens the workspace in `dir`. With `create`, creates one if there is none and never was one.
    ///
    /// # Errors
    /// Returns [`DiskError::Missing`], [`DiskError::Damaged`], [`DiskError::Newer`], [`DiskError::ReadOnly`], or the
    /// I/O error.
    pub fn open(dir: &Path, create: bool) -> Result<SqliteDisk, DiskError> {
        let path = dir.join(DATABASE_FILE);
        match check_not_truncated(dir) {
            Err(DiskError::Missing { .. }) if create => create_workspace(dir, &path)?,
            looked => looked?,
        }
        let fail = |error| DiskError::from_io("opening", &path, &error);
        let judged = progress::check_log(&path).map_err(fail)?;
        if judged.without_log {
            move_damaged_log(dir, &path).map_err(fail)?;
        }
        let conn = open_connection(&path)?;
        if !dir.join(marker::MARKER_FILE).exists() {
            let mounts = SqliteReader::open(dir)?.mounts();
            marker::write_marker(dir, &mounts)?;
        }
        let counters = NumberCounters::read(&conn).map_err(|error| error.into_disk_error(&path, "reading"))?;
        let known = LogProgress::read(&path);
        let lost = judged.lost.or_else(|| known.and_then(|known| progress::describe_missing(&known, counters)));
        let mut disk = SqliteDisk {
            dir: dir.to_owned(),
            identity: file_identity(&path)?,
            conn,
            blobs: BlobStore::new(dir),
            counters,
            journal_tails: HashMap::new(),
            log_may_be_ahead: true,
            progress: ProgressFile::open(&path),
            memory_copy_name: None,
            path,
        };
        if let Some(why) = lost {
            // Used numbers must not be reused. The loss is recorded so that a later check reports it.
            let known = known.unwrap_or_default();
            disk.counters =
                NumberCounters { journal: known.journal.max(counters.journal), chunk: known.chunk.max(counters.chunk) };
            let key = ColumnValue::Text(LOST_KEY.as_bytes());
            disk.alter_rows(|tx| upsert_row(tx, &rows::META, &[key, ColumnValue::Blob(why.as_bytes())]))?;
        }
        Ok(disk)
    }

    /// Returns the disk for a copy in memory.
    pub(super) fn open_memory_copy(
        dir: &Path,
        uri: String,
        conn: Connection,
        counters: NumberCounters,
        progress: ProgressFile,
    ) -> Result<SqliteDisk, DiskError> {
        let path = dir.join(DATABASE_FILE);
        Ok(SqliteDisk {
            dir: dir.to_owned(),
            identity: file_identity(&path)?,
            conn,
            blobs: BlobStore::new(dir),
            counters,
            journal_tails: HashMap::new(),
            log_may_be_ahead: false,
            progress,
            memory_copy_name: Some(uri),
            path,
        })
    }

    /// Opens a reader. A copy in memory lives as long as any of its readers.
    pub(super) fn open_sqlite_reader(&self) -> Result<SqliteReader, DiskError> {
        match &self.memory_copy_name {
            Some(uri) => SqliteReader::open_memory_copy(&self.dir, uri),
            None => SqliteReader::open(&self.dir),
        }
    }

    /// Returns the blobs of this workspace.
    pub fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// Opens the database again if its file was moved or replaced. SQLite would keep writing to the old file, and that
    /// data would be lost.
    fn check_same_file(&mut self) -> Result<(), DiskError> {
        if self.memory_copy_name.is_none() && file_identity(&self.path).ok() != Some(self.identity) {
            check_not_truncated(&self.dir)?;
            *self = SqliteDisk::open(&self.dir, false)?;
        }
        Ok(())
    }

    /// Changes rows outside of commits, then reads the counters again.
    pub(super) fn alter_rows(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), DiskError> {
        let run = || {
            let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
            change(&tx)?;
            // The change may have removed a damaged counter, so the known values count too.
            let known = NumberCounters::read(&tx)?;
            let journal = known.journal.max(self.counters.journal);
            let counters = NumberCounters { journal, chunk: known.chunk.max(self.counters.chunk) };
            counters.write(&tx)?;
            tx.commit()?;
            Ok::<_, CommitFailure>(counters)
        };
        self.counters = run().map_err(|error| error.into_disk_error(&self.path, "repairing"))?;
        self.journal_tails.clear();
        self.log_may_be_ahead = true;
        self.record_progress();
        Ok(())
    }

    fn checkpoint(&mut self) -> rusqlite::Result<()> {
        if self.memory_copy_name.is_some() {
            return Ok(());
        }
        self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        self.record_progress();
        Ok(())
    }

    fn record_progress(&mut self) {
        self.progress.record_progress(self.counters, progress::current_log(&self.conn, &self.path));
    }
}

fn create_workspace(dir: &Path, path: &Path) -> Result<(), DiskError> {
    let fail = |error| DiskError::from_io("making the workspace", dir, &error);
    durable::create_folder(dir).map_err(fail)?;
    // Created under another name, so that a file with the database's name is always complete.
    let new = path_with_suffix(path, ".new");
    for end in ["", "-journal", "-wal", "-shm"] {
        match std::fs::remove_file(path_with_suffix(&new, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            Ok(()) | Err(_) => {}
        }
    }
    create_database(&new)?;
    std::fs::rename(&new, path).and_then(|()| durable::sync_folder(dir)).map_err(fail)?;
    marker::write_marker(dir, &[])
}

/// Moves a log that must not be applied, and its index, into the folder of damaged files.
fn move_damaged_log(dir: &Path, path: &Path) -> std::io::Result<()> {
    let folder = dir.join(DAMAGED_FOLDER);
    durable::create_folder(&folder)?;
    let free = |number: &u32| !folder.join(format!("{number}-{DATABASE_FILE}-wal")).exists();
    let number = (1..=u32::MAX).find(free).unwrap_or_default();
    for end in ["-wal", "-shm"] {
        let from = path_with_suffix(path, end);
        if from.exists() {
            std::fs::rename(from, folder.join(format!("{number}-{DATABASE_FILE}{end}")))?;
        }
    }
    durable::sync_folder(&folder)?;
    durable::sync_folder(dir)
}

fn open_connection(path: &Path) -> Result<Connection, DiskError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let run = || {
        let conn = Connection::open_with_flags(path, flags)?;
        configure_connection(&conn)?;
        let readonly = conn.is_readonly("main")?;
        if !readonly {
            conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        }
        Ok((conn, readonly))
    };
    let (conn, readonly) = run().map_err(|error| disk_error(path, "opening", &error))?;
    if readonly {
        return Err(DiskError::ReadOnly { path: path.to_owned() });
    }
    check_format(&conn, path)?;
    Ok(conn)
}

fn file_identity(path: &Path) -> Result<(u64, u64), DiskError> {
    let file = std::fs::metadata(path).map_err(|error| DiskError::from_io("opening", path, &error))?;
    #[cfg(unix)]
    return Ok((std::os::unix::fs::MetadataExt::dev(&file), std::os::unix::fs::MetadataExt::ino(&file)));
    #[cfg(not(unix))]
    return Ok((0, u64::from(file.is_file())));
}

impl NumberCounters {
    pub(super) fn read(conn: &Connection) -> Result<NumberCounters, CommitFailure> {
        let stored = |name: &'static str| {
            let mut statement = conn.prepare_cached("SELECT value, sum FROM counters WHERE name = ?1")?;
            let mut found = statement.query([name])?;
            let Some(row) = found.next()? else { return Ok(0) };
            let value = row.get_ref(0)?.as_i64().unwrap_or_default();
            let sum =
                rows::row_checksum(&rows::COUNTERS, &[ColumnValue::Text(name.as_bytes()), ColumnValue::Int(value)]);
            match row.get_ref(1)?.as_blob() {
                Ok(stored) if stored == sum => Ok(value),
                Ok(_) | Err(_) => Err(CommitFailure::Damaged(format!("its counter {name}"))),
            }
        };
        let highest = |sql| conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, Option<i64>>(0));
        let journal = highest("SELECT max(seq) FROM journal")?.unwrap_or_default().max(stored("journal")?);
        let chunk = highest("SELECT max(seq) FROM chunks")?.unwrap_or_default().max(stored("chunks")?);
        Ok(NumberCounters { journal: rows::from_signed_bits(journal), chunk })
    }

    /// Skips many numbers after the known ones, since unknown higher ones may have been used.
    pub(super) fn skip_numbers(conn: &Connection) -> Result<(), CommitFailure> {
        let known = NumberCounters::read(conn)?;
        NumberCounters { journal: known.journal + (1 << 20), chunk: known.chunk + (1 << 20) }.write(conn)?;
        Ok(())
    }

    fn write(self, conn: &Connection) -> rusqlite::Result<()> {
        for (name, value) in [("journal", rows::to_signed_bits(self.journal)), ("chunks", self.chunk)] {
            upsert_row(conn, &rows::COUNTERS, &[ColumnValue::Text(name.as_bytes()), ColumnValue::Int(value)])?;
        }
        Ok(())
    }
}

impl Drop for SqliteDisk {
    /// SQLite checkpoints and removes the log when the last connection closes. From then on, the numbers in the
    /// database show whether it's complete.
    fn drop(&mut self) {
        self.progress.record_progress(self.counters, None);
    }
}

impl Disk for SqliteDisk {
    fn commit(&mut self, writes: &[RowWrite]) -> Result<Vec<i64>, DiskError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        self.check_same_file()?;
        let before = self.counters;
        let run = || {
            let tx = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
            let mut batch = PendingCommit::new(&tx, before, &self.journal_tails);
            writes.iter().try_for_each(|write| batch.apply(write))?;
            let PendingCommit { counters, tails, assigned_numbers: given, .. } = batch;
            if writes.iter().any(removes_numbered_rows) {
                counters.write(&tx)?;
            }
            tx.commit()?;
            Ok::<_, CommitFailure>((counters, tails, given))
        };
        let (counters, tails, given) = run().map_err(|error| error.into_disk_error(&self.path, "saving"))?;
        self.counters = counters;
        self.journal_tails.extend(tails);
        self.log_may_be_ahead = true;
        self.record_progress();
        if std::fs::metadata(path_with_suffix(&self.path, "-wal")).is_ok_and(|log| log.len() > MAX_LOG_BYTES) {
            // The commit is already durable. A checkpoint that fails now is repeated later.
            let _ = self.checkpoint();
        }
        Ok(given)
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobHash, DiskError> {
        self.blobs.put(bytes)
    }

    fn open_reader(&self) -> Result<Box<dyn DiskReader>, DiskError> {
        Ok(Box::new(self.open_sqlite_reader()?))
    }

    fn run_idle_tasks(&mut self) {
        if self.log_may_be_ahead {
            self.log_may_be_ahead = self.checkpoint().is_err();
        }
    }
}
