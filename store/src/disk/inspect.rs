//! Inspects a whole database for damage, and moves damaged rows out of it. Doesn't repair content.

use super::batch;
use super::rows::{self, ALL_TABLES, ColumnValue};
use super::sqlite::{self, SqliteDisk};
use crate::disk::error::DiskError;
use crate::disk::reader::SqliteReader;
use serde::{Deserialize, Serialize};

/// A row with a wrong checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRow {
    /// The table that holds the row.
    pub table: String,
    /// Its first columns, in readable form.
    pub key: String,
    /// Row number in the table.
    row: i64,
}

/// The damage found in a database.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InspectionReport {
    /// SQLite's messages about damaged pages; empty if there are none.
    pub pages: Vec<String>,
    /// Rows with a wrong checksum.
    pub rows: Vec<BadRow>,
}

impl SqliteReader {
    /// Inspects the whole database: its pages and the checksum of every row. Takes as long as reading all of it.
    ///
    /// # Errors
    /// Returns the error if the database can't be read. Damage is reported as a result, not as an error.
    pub fn inspect(&self) -> Result<InspectionReport, DiskError> {
        let mut inspected = InspectionReport::default();
        match self.check_pages() {
            Ok(pages) => inspected.pages = pages,
            Err(error) => match sqlite::disk_error(&self.path, "checking", &error) {
                DiskError::Damaged { why, .. } => inspected.pages.push(why),
                error => return Err(error),
            },
        }
        for table in ALL_TABLES {
            let sums = self.for_each_numbered_row(table, |row, values| {
                if !rows::is_row_intact(table, values) {
                    let key: Vec<String> = values.iter().take(2).map(ColumnValue::to_string).collect();
                    inspected.rows.push(BadRow { table: table.name.to_owned(), key: key.join(" "), row });
                }
            });
            match sums {
                Err(DiskError::Damaged { why, .. }) => inspected.pages.push(format!("{}: {why}", table.name)),
                other => other?,
            }
        }
        Ok(inspected)
    }

    fn check_pages(&self) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.conn.prepare("PRAGMA integrity_check(20)")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        let lines = lines.collect::<rusqlite::Result<Vec<String>>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }
}

impl SqliteDisk {
    /// Moves damaged rows out of their tables into quarantine.
    ///
    /// # Errors
    /// Any [`DiskError`]. Nothing was changed then.
    pub fn quarantine_rows(&mut self, bad: &[BadRow], at: i64) -> Result<(), DiskError> {
        if bad.is_empty() {
            return Ok(());
        }
        let tables =
            bad.iter().filter_map(|bad| Some((bad, ALL_TABLES.into_iter().find(|table| table.name == bad.table)?)));
        let tables: Vec<_> = tables.collect();
        self.alter_rows(|tx| {
            for (bad, table) in tables {
                let columns: String = table.columns.iter().map(|column| format!(", {column}")).collect();
                let mut statement =
                    tx.prepare_cached(&format!("SELECT rowid{columns} FROM {} WHERE rowid = ?1", table.name))?;
                let mut found = statement.query([bad.row])?;
                let Some(row) = found.next()? else { continue };
                let mut bytes = Vec::new();
                for at in 1..=table.columns.len() {
                    if let Ok(value) = row.get_ref(at)?.as_bytes()
                        && value.len() > bytes.len()
                    {
                        bytes = value.to_vec();
                    }
                }
                let aside = [
                    ColumnValue::Text(table.name.as_bytes()),
                    ColumnValue::Text(bad.key.as_bytes()),
                    ColumnValue::Blob(&bytes),
                    ColumnValue::Text(b"its sum does not hold"),
                    ColumnValue::Int(at),
                ];
                batch::upsert_row(tx, &rows::DAMAGED, &aside)?;
                tx.prepare_cached(&format!("DELETE FROM {} WHERE rowid = ?1", table.name))?.execute([bad.row])?;
            }
            Ok(())
        })
    }
}
