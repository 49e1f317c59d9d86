//! Copies a workspace's database into memory, for read-only media. There, not even the two files next to a database
//! with a write-ahead log can be created.

use super::pages::{DatabasePages, PAGE_BYTES};
use super::progress::{self, ProgressFile};
use super::sqlite::{self, DATABASE_FILE, NumberCounters, SqliteDisk, path_with_suffix};
use crate::disk::blobs::BlobStore;
use crate::disk::error::DiskError;
use crate::disk::reader::SqliteReader;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next copy in this process, for a unique name.
static NEXT_COPY_NUMBER: AtomicU64 = AtomicU64::new(1);

impl SqliteDisk {
    /// Copies the database of the workspace in `dir` into memory. Commits to the copy can be read, but are lost with
    /// it. The database must not be written to meanwhile.
    ///
    /// # Errors
    /// Any [`DiskError`], as for [`SqliteDisk::open`].
    pub fn copy_in_memory(dir: &Path) -> Result<SqliteDisk, DiskError> {
        let path = dir.join(DATABASE_FILE);
        sqlite::check_not_truncated(dir)?;
        let fail = |error: io::Error| DiskError::from_io("reading", &path, &error);
        let log = match progress::check_log(&path).map_err(fail)? {
            judged if judged.without_log => path_with_suffix(&path, "-none"),
            _ => path_with_suffix(&path, "-wal"),
        };
        let pages = DatabasePages::open(&path, &log).map_err(fail)?;
        let uri = format!("file:/tracebook-{}?vfs=memdb", NEXT_COPY_NUMBER.fetch_add(1, Ordering::Relaxed));
        let run = || {
            let conn = open_uri(&uri, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
            let mut image = Connection::open_in_memory()?;
            let size = pages.page_count() as usize * PAGE_BYTES;
            image.deserialize_read_exact(
                MAIN_DB,
                DatabaseImage { pages: &pages, next: 1, rest: Vec::new() },
                size,
                true,
            )?;
            let mut copied = Connection::open_with_flags(&uri, open_flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
            let backup = rusqlite::backup::Backup::new(&image, &mut copied)?;
            backup.step(-1)?;
            drop(backup);
            Ok(conn)
        };
        let conn = run().map_err(|error| sqlite::disk_error(&path, "reading", &error))?;
        sqlite::check_format(&conn, &path)?;
        let counters = NumberCounters::read(&conn).map_err(|error| error.into_disk_error(&path, "reading"))?;
        SqliteDisk::open_memory_copy(dir, uri, conn, counters, ProgressFile::disabled())
    }
}

impl SqliteReader {
    /// Opens a reader of a copy in memory.
    pub(super) fn open_memory_copy(dir: &Path, uri: &str) -> Result<SqliteReader, DiskError> {
        let path = dir.join(DATABASE_FILE);
        let conn = open_uri(uri, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let conn = conn.map_err(|error| sqlite::disk_error(&path, "reading", &error))?;
        Ok(SqliteReader { conn, path, blobs: BlobStore::new(dir) })
    }
}

fn open_flags(more: OpenFlags) -> OpenFlags {
    OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI | more
}

fn open_uri(uri: &str, more: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(uri, open_flags(more))?;
    sqlite::configure_connection(&conn)?;
    Ok(conn)
}

/// The database as a single file: with its log applied, and marked as having no log.
struct DatabaseImage<'a> {
    pages: &'a DatabasePages,
    next: u32,
    rest: Vec<u8>,
}

impl Read for DatabaseImage<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && self.next <= self.pages.page_count() {
            self.rest = self.pages.read_page(self.next).unwrap_or_else(|| vec![0; PAGE_BYTES]);
            if self.next == 1
                && let Some(versions) = self.rest.get_mut(18..20)
            {
                versions.fill(1);
            }
            self.next += 1;
        }
        let count = bytes.len().min(self.rest.len());
        bytes[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, DiskReader, RowWrite};
    use crate::id::DocId;

    const NOTE: DocId = DocId([7; 16]);

    fn record(seq: u64) -> RowWrite {
        RowWrite::Journal { seq, note: NOTE, record: vec![b'r'; 3_000] }
    }

    fn seqs(reader: &dyn DiskReader) -> Vec<u64> {
        reader.journal_records(NOTE).expect("read").into_iter().map(|(seq, _)| seq).collect()
    }

    #[test]
    fn a_copy_has_all_of_the_log_and_leaves_the_database_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut disk = SqliteDisk::open(dir.path(), true).expect("made");
        (1..=5).for_each(|seq| drop(disk.commit(&[record(seq)]).expect("committed")));
        disk.run_idle_tasks();
        (6..=9).for_each(|seq| drop(disk.commit(&[record(seq)]).expect("committed")));
        let bytes = || {
            ["", "-wal", "-progress"]
                .map(|end| std::fs::read(path_with_suffix(&dir.path().join(DATABASE_FILE), end)).expect("read"))
        };
        let before = bytes();
        let mut copy = SqliteDisk::copy_in_memory(dir.path()).expect("copied");
        let reader = copy.open_reader().expect("a reader");
        assert_eq!(seqs(reader.as_ref()), (1..=9).collect::<Vec<_>>());
        copy.commit(&[record(10), RowWrite::JournalDone { note: NOTE, upto: 8 }]).expect("committed");
        copy.run_idle_tasks();
        assert_eq!(seqs(reader.as_ref()), [9, 10]);
        assert!(copy.commit(&[record(10)]).is_err(), "a number is given once");
        drop(copy);
        assert!(bytes() == before);
        assert_eq!(seqs(disk.open_reader().expect("a reader").as_ref()), (1..=9).collect::<Vec<_>>());
        // A second copy is independent of the first; this one has no log.
        drop(disk);
        let copy = SqliteDisk::copy_in_memory(dir.path()).expect("copied");
        assert_eq!(seqs(copy.open_reader().expect("a reader").as_ref()), (1..=9).collect::<Vec<_>>());
    }
}
