//! Salvages the readable rows of a damaged database into a new one. Deletes nothing: the damaged files move to the
//! folder `damaged`, and only rows with a matching checksum are copied.

use super::batch;
use super::durable;
use super::pages::{DatabasePages, TreeRecord, TreeWalk, parse_values};
use super::rows::{self, ALL_TABLES, ColumnValue, TableSchema};
use super::sqlite::{self, CommitFailure, DATABASE_FILE, path_with_suffix};
use crate::disk::error::DiskError;
use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// Folder in the workspace for damaged files.
pub const DAMAGED_FOLDER: &str = "damaged";
/// Name of the new database while it's built. After a crash, the name explains what the file is.
const SALVAGE_DATABASE_FILE: &str = "tracebook.db.salvage";

/// Result for one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCount {
    /// Name of the table.
    pub table: String,
    /// Number of rows in the new database.
    pub kept: u64,
    /// Number of rows that are known to have existed and couldn't be read. If the index is lost too, there may be more.
    pub lost: u64,
    /// Number of rows that may have been deleted long ago. They're in quarantine.
    pub doubtful: u64,
}

/// The outcome of a salvage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SalvageReport {
    /// Current paths of the damaged files. The first is the database.
    pub moved: Vec<PathBuf>,
    /// Row counts per table.
    pub tables: Vec<TableCount>,
    /// Number of pages that could not be read.
    pub unreadable: u32,
}

impl SalvageReport {
    /// Whether any data is known to be lost.
    pub fn is_lossy(&self) -> bool {
        self.unreadable > 0 || self.tables.iter().any(|table| table.lost > 0)
    }
}

/// Replaces the database in `dir` with a new one that contains all readable rows. `now` is in milliseconds since 1970.
/// It can be repeated after an interruption. No other process may have the workspace open.
///
/// # Errors
/// Any [`DiskError`]. The damaged files are then in their original place or in the folder `damaged`.
pub fn salvage_database(dir: &Path, now: i64) -> Result<SalvageReport, DiskError> {
    let path = dir.join(DATABASE_FILE);
    let fail = |error: io::Error| DiskError::from_io("salvaging", &path, &error);
    let moved = move_damaged_files(dir).map_err(fail)?;
    let old = moved.first().cloned().unwrap_or_else(|| path.clone());
    let pages = DatabasePages::open(&old, &path_with_suffix(&old, "-wal")).map_err(fail)?;
    let new = dir.join(SALVAGE_DATABASE_FILE);
    for end in ["", "-journal", "-wal", "-shm"] {
        match std::fs::remove_file(path_with_suffix(&new, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            Ok(()) | Err(_) => {}
        }
    }
    sqlite::create_database(&new)?;
    let layout = DatabasePages::open(&new, &path_with_suffix(&new, "-wal")).map_err(fail)?.read_schema();
    let (tables, unreadable) =
        copy_readable_rows(&new, &pages, &layout, now).map_err(|error| error.into_disk_error(&new, "salvaging"))?;
    std::fs::File::open(&new).and_then(|file| file.sync_all()).map_err(fail)?;
    std::fs::rename(&new, &path).and_then(|()| durable::sync_folder(dir)).map_err(fail)?;
    Ok(SalvageReport { moved, tables, unreadable })
}

/// Moves the database and its log into the folder of damaged files.
fn move_damaged_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let (path, folder) = (dir.join(DATABASE_FILE), dir.join(DAMAGED_FOLDER));
    let numbered = |number: u32| folder.join(format!("{number}-{DATABASE_FILE}"));
    let mut next = 1;
    while ["", "-wal", "-shm"].iter().any(|end| path_with_suffix(&numbered(next), end).exists()) {
        next += 1;
    }
    let there: Vec<_> =
        ["", "-wal", "-shm", "-journal"].into_iter().filter(|end| path_with_suffix(&path, end).exists()).collect();
    // If there's no database, an earlier salvage was interrupted. The newest moved files then belong to that salvage,
    // and so do the files that it hadn't moved yet.
    let number = if there.contains(&"") { next } else { next.saturating_sub(1).max(1) };
    durable::create_folder(&folder)?;
    for end in &there {
        let to = path_with_suffix(&numbered(number), end);
        let to = if to.exists() { path_with_suffix(&numbered(next), end) } else { to };
        std::fs::rename(path_with_suffix(&path, end), to)?;
    }
    durable::sync_folder(&folder)?;
    durable::sync_folder(dir)?;
    let all = ["", "-wal", "-shm", "-journal"].iter().map(|end| path_with_suffix(&numbered(number), end));
    Ok(all.filter(|path| path.exists()).collect())
}

/// Copies the readable rows into the new database at `new`.
fn copy_readable_rows(
    new: &Path,
    pages: &DatabasePages,
    layout: &HashMap<String, u32>,
    now: i64,
) -> Result<(Vec<TableCount>, u32), CommitFailure> {
    let mut conn = Connection::open(new)?;
    sqlite::configure_connection(&conn)?;
    let tx = conn.transaction()?;
    let schema = pages.read_schema();
    let roots = |name: &str| {
        let roots: BTreeSet<u32> = [schema.get(name), layout.get(name)].into_iter().flatten().copied().collect();
        roots
    };
    let mut walk = TreeWalk::default();
    pages.walk_tree(1, &mut walk, &mut |_| ());
    let mut tallies = Vec::new();
    let mut failed = None;
    for table in ALL_TABLES {
        let mut tally = TableTally::default();
        for root in roots(table.name) {
            pages.walk_tree(root, &mut walk, &mut |record| {
                if let Err(error) = tally.copy_row(&tx, table, &record) {
                    failed.get_or_insert(error);
                }
            });
        }
        for root in roots(&format!("{}_key", table.name)) {
            pages.walk_tree(root, &mut walk, &mut |record| {
                let row = parse_values(&record.payload).and_then(|values| values.last()?.as_int());
                tally.known.extend(row);
            });
        }
        tallies.push(tally);
    }
    // Leaf pages that no tree refers to. Their rows are valid unless they're remnants of deleted ones.
    let free = pages.free_pages();
    let trusted = free.is_some() && pages.log_whole;
    let free = free.unwrap_or_default();
    for number in (1..=pages.page_count()).filter(|number| !free.contains(number)) {
        if walk.reached.contains(&number) {
            continue;
        }
        pages.read_leaf(number, &mut walk, &mut |record| {
            let Some((table, tally)) = find_table(&record, &mut tallies) else { return };
            // A duplicate chunk is harmless. Other deleted rows must not be restored.
            let taken = if trusted || table.name == rows::CHUNKS.name {
                tally.copy_row(&tx, table, &record)
            } else {
                tally.quarantine_doubtful_row(&tx, table, &record, now)
            };
            if let Err(error) = taken {
                failed.get_or_insert(error);
            }
        });
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    let counts: Vec<TableCount> =
        ALL_TABLES.iter().zip(&tallies).map(|(table, tally)| tally.to_table_count(table)).collect();
    if walk.unreadable > 0 || counts.iter().any(|count| count.lost > 0) {
        // The highest numbers may be lost.
        sqlite::NumberCounters::skip_numbers(&tx)?;
    }
    tx.commit()?;
    conn.close().map_err(|(_, error)| error)?;
    Ok((counts, walk.unreadable))
}

/// Row counts for a table.
#[derive(Default)]
struct TableTally {
    kept: HashSet<i64>,
    doubtful: u64,
    /// Rows that an index refers to, or that exist with a wrong checksum.
    known: HashSet<i64>,
}

impl TableTally {
    fn to_table_count(&self, table: &TableSchema) -> TableCount {
        TableCount {
            table: table.name.to_owned(),
            kept: self.kept.len() as u64,
            lost: self.known.difference(&self.kept).count() as u64,
            doubtful: self.doubtful,
        }
    }

    fn copy_row(&mut self, tx: &Connection, table: &TableSchema, record: &TreeRecord) -> rusqlite::Result<()> {
        self.known.insert(record.row);
        let Some(row) = read_row(table, record) else { return Ok(()) };
        let columns = table.columns.join(", ");
        let places = "?, ".repeat(table.columns.len());
        // If two rows have the same key, the first stays, because a tree refers to it.
        let sql = format!("INSERT OR IGNORE INTO {} ({columns}, sum) VALUES ({places}?)", table.name);
        tx.prepare_cached(&sql)?.execute(params_from_iter(row.iter().map(|value| batch::to_sql(*value))))?;
        self.kept.insert(record.row);
        Ok(())
    }

    /// Quarantines a row that may have been deleted long ago.
    fn quarantine_doubtful_row(
        &mut self,
        tx: &Connection,
        table: &TableSchema,
        record: &TreeRecord,
        now: i64,
    ) -> rusqlite::Result<()> {
        if self.kept.contains(&record.row) {
            return Ok(());
        }
        let Some(row) = read_row(table, record) else { return Ok(()) };
        // The longest value is the content; the others identify the row.
        let contents = &row[..table.columns.len()];
        let at = (0..contents.len()).max_by_key(|at| contents[*at].as_bytes().len()).unwrap_or_default();
        let others = contents.iter().enumerate().filter(|(other, _)| *other != at);
        let key: Vec<String> = others.map(|(_, value)| value.to_string()).collect();
        let key = key.join(" ");
        let aside = [
            ColumnValue::Text(table.name.as_bytes()),
            ColumnValue::Text(key.as_bytes()),
            ColumnValue::Blob(contents[at].as_bytes()),
            ColumnValue::Text(b"found by a salvage; it may have been removed before the damage"),
            ColumnValue::Int(now),
        ];
        batch::upsert_row(tx, &rows::DAMAGED, &aside)?;
        self.doubtful += 1;
        Ok(())
    }
}

/// Returns the row in a record, if it belongs to this table and its checksum matches. The checksum is the last value.
fn read_row<'a>(table: &TableSchema, record: &'a TreeRecord) -> Option<Vec<ColumnValue<'a>>> {
    let mut row = parse_values(&record.payload)?;
    if table.numbered {
        *row.first_mut()? = ColumnValue::Int(record.row);
    }
    rows::is_row_intact(table, &row).then_some(row)
}

/// Returns the table that a record of unknown origin belongs to: the one where its checksum matches.
fn find_table<'a>(
    record: &TreeRecord,
    tallies: &'a mut [TableTally],
) -> Option<(&'static TableSchema, &'a mut TableTally)> {
    ALL_TABLES.into_iter().zip(tallies).find(|(table, _)| read_row(table, record).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::conformance::{copy_tree, file_row};
    use crate::disk::{Disk, RowWrite, SqliteDisk, SqliteReader, write_marker};
    use crate::id::{BlockId, DocId};
    use crate::note::Block;
    use std::fs;

    const NOTE: DocId = DocId([0xa; 16]);

    /// Returns all rows except those that a salvage adds.
    fn dump(dir: &Path) -> BTreeSet<String> {
        let reader = SqliteReader::open(dir).expect("opened");
        let mut rows = BTreeSet::new();
        for table in ALL_TABLES.iter().filter(|table| !["damaged", "counters"].contains(&table.name)) {
            let each = |row: &[ColumnValue<'_>]| {
                let values: Vec<String> = row.iter().map(ColumnValue::to_string).collect();
                rows.insert(format!("{} {}", table.name, values.join(" ")));
            };
            reader.for_each_row(table, "", [], each).expect("read");
        }
        rows
    }

    /// Creates a workspace with rows of all kinds, some on many pages, part of them only in the log. Also returns all
    /// rows that it ever contained.
    fn workspace() -> (tempfile::TempDir, BTreeSet<String>) {
        let made = tempfile::tempdir().expect("a folder");
        let mut disk = SqliteDisk::open(made.path(), true).expect("made");
        let mut ever = BTreeSet::new();
        let text = |number: u64, size: usize| format!("{number} ").repeat(size);
        for number in 1..200_u64 {
            let size = usize::try_from(number).expect("small");
            let doc = DocId([u8::try_from(number % 7).expect("small"); 16]);
            disk.commit(&[
                RowWrite::Journal { seq: number, note: NOTE, record: text(number, 20).into_bytes() },
                RowWrite::Chunk { doc, bytes: text(number, if number == 50 { 90_000 } else { size * 3 }).into_bytes() },
                RowWrite::Block {
                    note: doc,
                    block: Block { id: BlockId(number), pos: "a".into(), text: text(number, 99) },
                },
                RowWrite::File(file_row(doc, &format!("{number}.md"), number)),
                RowWrite::Meta { key: format!("key {number}"), value: Some(vec![1; size]) },
                RowWrite::Actor { actor: number.to_be_bytes().to_vec(), at: 5 },
            ])
            .expect("committed");
            if number == 150 {
                ever = dump(made.path());
                disk.commit(&[
                    RowWrite::JournalDone { note: NOTE, upto: 100 },
                    RowWrite::Snapshot { doc: DocId([3; 16]), bytes: vec![7; 9000], covers: 140 },
                ])
                .expect("committed");
                disk.commit(&[RowWrite::DropChunks { doc: DocId([3; 16]), upto: 140 }]).expect("committed");
                disk.run_idle_tasks();
            }
        }
        ever.extend(dump(made.path()));
        let dir = tempfile::tempdir().expect("a folder");
        copy_tree(made.path(), dir.path());
        (dir, ever)
    }

    fn sound(dir: &Path) -> BTreeSet<String> {
        let inspected = SqliteReader::open(dir).expect("opened").inspect().expect("checked");
        assert!(inspected.pages.is_empty() && inspected.rows.is_empty(), "{inspected:?}");
        dump(dir)
    }

    fn lost(salvaged: &SalvageReport) -> u64 {
        salvaged.tables.iter().map(|table| table.lost).sum()
    }

    #[test]
    fn a_sound_one_is_copied() {
        let (dir, _) = workspace();
        let all = dump(dir.path());
        assert!(fs::metadata(dir.path().join("tracebook.db-wal")).expect("there").len() > 100_000);
        let salvaged = salvage_database(dir.path(), 1).expect("salvaged");
        assert_eq!(sound(dir.path()), all);
        assert!(!salvaged.is_lossy(), "{salvaged:?}");
        let again = salvage_database(dir.path(), 1).expect("salvaged");
        assert_eq!(sound(dir.path()), all);
        assert!(again.moved[0].ends_with("damaged/2-tracebook.db"), "{again:?}");
        SqliteDisk::open(dir.path(), false).expect("opened");
    }

    #[test]
    fn interrupted_while_moving() {
        for moved in 0..3 {
            let (dir, _) = workspace();
            let all = dump(dir.path());
            fs::create_dir(dir.path().join(DAMAGED_FOLDER)).expect("made");
            for end in &["", "-wal", "-shm"][..moved] {
                let from = path_with_suffix(&dir.path().join(DATABASE_FILE), end);
                fs::rename(from, dir.path().join(format!("damaged/1-tracebook.db{end}"))).expect("moved");
            }
            fs::write(dir.path().join(SALVAGE_DATABASE_FILE), "half").expect("written");
            if moved > 0 {
                assert!(matches!(SqliteDisk::open(dir.path(), true), Err(DiskError::Damaged { .. })));
            }
            salvage_database(dir.path(), 1).expect("salvaged");
            assert_eq!(sound(dir.path()), all, "{moved}");
        }
    }

    #[test]
    fn without_its_first_page() {
        let (dir, ever) = workspace();
        let all = dump(dir.path());
        drop(SqliteDisk::open(dir.path(), false).expect("opened")); // folds the log in
        let path = dir.path().join(DATABASE_FILE);
        let mut bytes = fs::read(&path).expect("read");
        bytes[..4096].fill(0x55);
        fs::write(&path, bytes).expect("written");
        assert!(matches!(SqliteDisk::open(dir.path(), false), Err(DiskError::Damaged { .. })));
        let salvaged = salvage_database(dir.path(), 1).expect("salvaged");
        assert!(salvaged.is_lossy(), "the page is lost");
        assert_eq!(lost(&salvaged), 0);
        // Without the list of free pages, dropped chunks reappear, but nothing else does.
        let found = sound(dir.path());
        assert!(all.is_subset(&found) && found.is_subset(&ever));
        assert!(found.difference(&all).all(|row| row.starts_with("chunks ")));
    }

    #[test]
    fn empty_with_and_without_log() {
        let (dir, _) = workspace();
        write_marker(dir.path(), &[]).expect("written");
        fs::write(dir.path().join(DATABASE_FILE), "").expect("emptied");
        for create in [true, false] {
            let opened = SqliteDisk::open(dir.path(), create);
            assert!(matches!(opened, Err(DiskError::Damaged { .. })), "{opened:?}");
        }
        let salvaged = salvage_database(dir.path(), 1).expect("salvaged");
        let kept: u64 = salvaged.tables.iter().map(|table| table.kept).sum();
        assert!(kept > 100, "what the log holds: {salvaged:?}");
        sound(dir.path());

        fs::write(dir.path().join(DATABASE_FILE), "").expect("emptied");
        let salvaged = salvage_database(dir.path(), 1).expect("salvaged");
        assert_eq!(salvaged.tables.iter().map(|table| table.kept).sum::<u64>(), 0);
        sound(dir.path());
    }

    /// Whatever happens to the files, a salvage ends with a database that opens and contains only rows that existed
    /// before.
    #[test]
    fn cut_and_overwritten() {
        let (first, ever) = workspace();
        let size = |name: &str| fs::metadata(first.path().join(name)).expect("there").len();
        let (main, log) = (size("tracebook.db"), size("tracebook.db-wal"));
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..30 {
            let dir = tempfile::tempdir().expect("a folder");
            copy_tree(first.path(), dir.path());
            let (name, size) = if round % 3 == 0 { ("tracebook.db-wal", log) } else { ("tracebook.db", main) };
            let path = dir.path().join(name);
            if round % 3 == 1 && round % 2 == 0 {
                drop(SqliteDisk::open(dir.path(), false).expect("opened"));
            }
            let mut bytes = fs::read(&path).expect("read");
            if round % 2 == 0 {
                bytes.truncate(usize::try_from(random(size)).expect("small"));
            } else {
                for _ in 0..=random(4) {
                    let at = usize::try_from(random(size / 4096)).expect("small") * 4096;
                    let end = bytes.len().min(at + 4096);
                    let noise = random(256).to_le_bytes()[0];
                    bytes[at..end].fill(noise);
                }
            }
            fs::write(&path, bytes).expect("written");
            let salvaged = salvage_database(dir.path(), 1).expect("salvaged");
            let mut disk = SqliteDisk::open(dir.path(), false).expect("opened");
            // The database records that something was lost; no other row is new.
            let told = |row: &&String| row.starts_with("meta lost ");
            let foreign: Vec<_> = sound(dir.path()).difference(&ever).filter(|row| !told(row)).cloned().collect();
            assert!(foreign.is_empty(), "{round} {salvaged:?} {foreign:?}");
            disk.commit(&[RowWrite::Meta { key: "k".into(), value: None }]).expect("goes on");
        }
    }

    /// Damage to one leaf page loses exactly its rows, and they are counted.
    #[test]
    fn one_page_costs_its_rows_alone() {
        let (dir, _) = workspace();
        drop(SqliteDisk::open(dir.path(), false).expect("opened"));
        let path = dir.path().join(DATABASE_FILE);
        let before = DatabasePages::open(&path, &path_with_suffix(&path, "-wal")).expect("opened");
        let mut leaves = Vec::new();
        for number in 2..=before.page_count() {
            let mut records = Vec::new();
            before.read_leaf(number, &mut TreeWalk::default(), &mut |record| records.push(record));
            let chunks = records.iter().filter(|record| super::read_row(&rows::CHUNKS, record).is_some()).count();
            if chunks > 3 {
                leaves.push((number, chunks as u64));
            }
        }
        assert!(leaves.len() > 2);
        for (number, chunks) in leaves {
            let copy = tempfile::tempdir().expect("a folder");
            copy_tree(dir.path(), copy.path());
            let path = copy.path().join(DATABASE_FILE);
            let mut bytes = fs::read(&path).expect("read");
            let at = (usize::try_from(number).expect("small") - 1) * 4096;
            bytes[at..at + 4096].fill(0);
            fs::write(&path, bytes).expect("written");
            let salvaged = salvage_database(copy.path(), 1).expect("salvaged");
            assert_eq!((lost(&salvaged), salvaged.unreadable), (chunks, 1), "{salvaged:?}");
        }
    }
}
