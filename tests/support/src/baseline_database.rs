//! The least that a durable commit costs on this disk: one row, one synced commit, none of our own work. Only
//! `tracebook bench` uses it, to have something to compare a keystroke with.

use rusqlite::Connection;
use std::path::Path;

/// A database with one table, opened as the workspace's is: write-ahead log, synced at every commit.
#[derive(Debug)]
pub struct BaselineDatabase {
    conn: Connection,
}

impl BaselineDatabase {
    /// Makes one in `dir`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(dir: &Path) -> rusqlite::Result<BaselineDatabase> {
        let conn = Connection::open(dir.join("baseline.db"))?;
        conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        conn.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
             CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;",
        )?;
        Ok(BaselineDatabase { conn })
    }

    /// Commits one row.
    ///
    /// # Errors
    /// SQLite's.
    pub fn commit(&self, bytes: &[u8]) -> rusqlite::Result<()> {
        self.conn.prepare_cached("INSERT INTO rows (bytes) VALUES (?1)")?.execute([bytes]).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_committed() {
        let dir = tempfile::tempdir().expect("made");
        let floor = BaselineDatabase::open(dir.path()).expect("opened");
        floor.commit(b"one").expect("written");
        let rows = floor.conn.query_row("SELECT count(*) FROM rows", [], |row| row.get::<_, i64>(0));
        assert_eq!(rows, Ok(1));
    }
}
