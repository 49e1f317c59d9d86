//! Records the database's progress in a small file, so that a later loss of its data or log is detected. SQLite itself
//! can't tell a truncated log from a shorter one.
//!
//! The file is written after each commit, but not synced. After a power cut it may be older than the database, and is
//! then ignored. It's newer than the database only if a durable commit was lost.

use super::pages::{PAGE_BYTES, log_checksum, read_u32};
use super::sqlite::{DATABASE_FILE, NumberCounters, path_with_suffix};
use crate::disk::error::DiskError;
use crate::disk::reader::SqliteReader;
use rusqlite::Connection;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Suffix of the file's name, after the database's name.
const PROGRESS_SUFFIX: &str = "-progress";
/// Key under which the database records a loss until a check has reported it: the reason as text.
pub const LOST_KEY: &str = "lost";
/// Size in bytes of a frame of the log: its header and a page.
const WAL_FRAME_BYTES: u64 = 24 + PAGE_BYTES as u64;

/// The recorded progress of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogProgress {
    pub(super) journal: u64,
    pub(super) chunk: i64,
    pub(super) log: Option<LogFile>,
}

/// State of the log: its salt, the number of committed frames, the checksum of the last one, and how many are in the
/// database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogFile {
    salt: [u8; 8],
    frames: u32,
    sum: [u8; 8],
    checkpointed_frames: u32,
}

/// The result of checking a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogDamage {
    /// Description of the loss; `None` if nothing was lost.
    pub(super) lost: Option<String>,
    /// Whether the log must not be applied, because the database is newer than the readable part of the log.
    pub(super) without_log: bool,
}

impl LogProgress {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(80);
        bytes.extend(self.journal.to_le_bytes());
        bytes.extend(self.chunk.to_le_bytes());
        if let Some(log) = &self.log {
            bytes.extend(log.salt);
            bytes.extend(log.frames.to_le_bytes());
            bytes.extend(log.sum);
            bytes.extend(log.checkpointed_frames.to_le_bytes());
        }
        bytes.resize(40, 0);
        let sum = *blake3::hash(&bytes).as_bytes();
        bytes.extend(sum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<LogProgress> {
        let (body, sum) = bytes.split_at_checked(40)?;
        if blake3::hash(body).as_bytes() != sum {
            return None;
        }
        let eight = |at: usize| -> Option<[u8; 8]> { body.get(at..at + 8)?.try_into().ok() };
        let four = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let log = LogFile { salt: eight(16)?, frames: four(24)?, sum: eight(28)?, checkpointed_frames: four(36)? };
        let (journal, chunk) = (u64::from_le_bytes(eight(0)?), i64::from_le_bytes(eight(8)?));
        Some(LogProgress { journal, chunk, log: (log.frames > 0).then_some(log) })
    }

    /// Returns the file's content; `None` if it's missing or torn.
    pub(super) fn read(database: &Path) -> Option<LogProgress> {
        LogProgress::decode(&std::fs::read(path_with_suffix(database, PROGRESS_SUFFIX)).ok()?)
    }
}

/// The progress file, open for writing.
#[derive(Debug)]
pub(super) struct ProgressFile {
    file: Option<File>,
    recorded: LogProgress,
}

impl ProgressFile {
    /// Opens or creates the file. If that fails, everything else works, but losses aren't detected.
    pub(super) fn open(database: &Path) -> ProgressFile {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path_with_suffix(database, PROGRESS_SUFFIX))
            .ok();
        ProgressFile { file, recorded: LogProgress::read(database).unwrap_or_default() }
    }

    /// Returns a progress file that stores nothing.
    pub(super) fn disabled() -> ProgressFile {
        ProgressFile { file: None, recorded: LogProgress::default() }
    }

    /// Records the current progress. The recorded numbers never decrease: the difference may be a loss that isn't
    /// detected yet.
    pub(super) fn record_progress(&mut self, counters: NumberCounters, log: Option<LogFile>) {
        let journal = counters.journal.max(self.recorded.journal);
        let progress = LogProgress { journal, chunk: counters.chunk.max(self.recorded.chunk), log };
        let Some(file) = self.file.as_mut().filter(|_| progress != self.recorded) else { return };
        // If writing fails, the older progress stays in the file, which is harmless.
        if file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&progress.encode())).is_ok() {
            self.recorded = progress;
        }
    }
}

/// Returns the progress of the log that this connection has open.
pub(super) fn current_log(conn: &Connection, database: &Path) -> Option<LogFile> {
    let mut statement = conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)").ok()?;
    let (frames, folded) = statement.query_row([], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))).ok()?;
    let frames = u32::try_from(frames).ok().filter(|frames| *frames > 0)?;
    let mut file = File::open(path_with_suffix(database, "-wal")).ok()?;
    let mut bytes = [0; 32];
    file.read_exact(&mut bytes).ok()?;
    let salt = bytes[16..24].try_into().ok()?;
    file.seek(SeekFrom::Start(32 + u64::from(frames - 1) * WAL_FRAME_BYTES)).ok()?;
    file.read_exact(&mut bytes[..24]).ok()?;
    Some(LogFile {
        salt,
        frames,
        sum: bytes[16..24].try_into().ok()?,
        checkpointed_frames: u32::try_from(folded).unwrap_or_default(),
    })
}

/// The readable part of a log file.
#[derive(Debug, Default)]
struct ReadableLog {
    /// Identifies the log; `None` if its header is missing or damaged.
    salt: Option<[u8; 8]>,
    /// Number of frames up to the last readable commit.
    frames: u32,
    /// Checksums of these frames.
    sums: Vec<[u8; 8]>,
    /// Whether an unreadable frame is followed by frames of the same log.
    broken: bool,
}

fn read_log_file(path: &Path) -> io::Result<ReadableLog> {
    let mut readable = ReadableLog::default();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(readable),
        Err(error) => return Err(error),
    };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut head = [0; 32];
    if file.read_exact(&mut head).is_err() {
        return Ok(readable);
    }
    let big = read_u32(&head, 0) == Some(0x377f_0683);
    let mut sums = log_checksum((0, 0), &head[..24], big);
    if !(big || read_u32(&head, 0) == Some(0x377f_0682))
        || (read_u32(&head, 24), read_u32(&head, 28)) != (Some(sums.0), Some(sums.1))
    {
        return Ok(readable);
    }
    let salt: [u8; 8] = head[16..24].try_into().unwrap_or_default();
    readable.salt = Some(salt);
    let (mut whole, mut sums_read) = (true, Vec::new());
    let mut frame = vec![0; 24 + PAGE_BYTES];
    while file.read_exact(&mut frame).is_ok() {
        if !whole {
            readable.broken |= frame[8..16] == salt;
            continue;
        }
        sums = log_checksum(log_checksum(sums, &frame[..8], big), &frame[24..], big);
        whole = frame[8..16] == salt && (read_u32(&frame, 16), read_u32(&frame, 20)) == (Some(sums.0), Some(sums.1));
        if whole {
            sums_read.push(frame[16..24].try_into().unwrap_or_default());
            if read_u32(&frame, 4).is_some_and(|committed| committed > 0) {
                readable.frames = u32::try_from(sums_read.len()).unwrap_or(u32::MAX);
            }
        }
    }
    sums_read.truncate(readable.frames as usize);
    readable.sums = sums_read;
    Ok(readable)
}

/// Checks whether the log next to the database is complete. Call it while nothing writes to them and before SQLite
/// opens them, because SQLite treats the readable part as complete.
pub(super) fn check_log(database: &Path) -> io::Result<LogDamage> {
    let known = LogProgress::read(database);
    let log = read_log_file(&path_with_suffix(database, "-wal"))?;
    let lost = |what: &str| Some(format!("its log is damaged, and what was stored last is lost {what}"));
    let Some(known) = known.and_then(|known| known.log) else {
        // Later frames may be left over from a failed commit. That wouldn't be a loss, but it can't be told apart here.
        let lost = (log.broken && known.is_none()).then(|| lost("in part")).flatten();
        return Ok(LogDamage { lost, without_log: false });
    };
    if log.salt != Some(known.salt) {
        // A new log has begun, so the database contains all of the previous one; or there's no log, and the database's
        // counters show whether it's complete.
        return Ok(LogDamage::default());
    }
    let sum = log.sums.get(known.frames as usize - 1);
    if sum == Some(&known.sum) {
        return Ok(LogDamage::default());
    }
    let missing = known.frames.saturating_sub(known.checkpointed_frames.max(log.frames));
    Ok(LogDamage {
        lost: (missing > 0).then(|| lost("in part")).flatten(),
        without_log: known.checkpointed_frames > log.frames,
    })
}

/// Returns a description of what the database has lost, if anything. Nothing may write to it meanwhile.
///
/// # Errors
/// Any [`DiskError`].
pub fn detect_loss(dir: &Path) -> Result<Option<String>, DiskError> {
    let path = dir.join(DATABASE_FILE);
    let judged = check_log(&path).map_err(|error| DiskError::from_io("reading", &path, &error))?;
    if judged.without_log {
        return Ok(Some(judged.lost.unwrap_or_else(|| "its log is damaged; the database has all of it".to_owned())));
    }
    if judged.lost.is_some() {
        return Ok(judged.lost);
    }
    let reader = SqliteReader::open(dir)?;
    let counters = NumberCounters::read(&reader.conn).map_err(|error| error.into_disk_error(&path, "reading"))?;
    Ok(LogProgress::read(&path).and_then(|known| describe_missing(&known, counters)))
}

/// Returns a description of what the database lacks compared to the recorded progress.
pub(super) fn describe_missing(known: &LogProgress, counters: NumberCounters) -> Option<String> {
    let edits = known.journal.saturating_sub(counters.journal);
    let changes = known.chunk.saturating_sub(counters.chunk);
    (edits > 0 || changes > 0).then(|| {
        format!("it is older than it was: {edits} edits and {changes} changes that were stored in it last are lost")
    })
}

impl SqliteReader {
    /// Returns the description of an earlier loss until a check has reported it.
    ///
    /// # Errors
    /// Any [`DiskError`].
    pub fn recorded_loss(&self) -> Result<Option<String>, DiskError> {
        let found = crate::disk::interface::DiskReader::meta(self, LOST_KEY)?;
        Ok(found.map(|why| String::from_utf8_lossy(&why).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, DiskReader, RowWrite as Row, SqliteDisk};
    use crate::id::DocId;

    const NOTE: DocId = DocId([7; 16]);

    fn record(seq: u64) -> Row {
        Row::Journal { seq, note: NOTE, record: vec![b'r'; 3_000] }
    }

    /// Copies an open workspace in its current state.
    fn copied(from: &Path) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for end in ["", "-wal", "-shm", PROGRESS_SUFFIX] {
            let path = path_with_suffix(&from.join(DATABASE_FILE), end);
            if path.exists() {
                std::fs::copy(&path, path_with_suffix(&dir.path().join(DATABASE_FILE), end)).expect("copied");
            }
        }
        std::fs::copy(from.join("workspace.json"), dir.path().join("workspace.json")).expect("copied");
        dir
    }

    fn log_of(dir: &Path) -> std::path::PathBuf {
        path_with_suffix(&dir.join(DATABASE_FILE), "-wal")
    }

    fn seqs(dir: &Path) -> Vec<u64> {
        let journal = SqliteReader::open(dir).expect("opened").journal_records(NOTE).expect("read");
        journal.into_iter().map(|(seq, _)| seq).collect()
    }

    #[test]
    fn what_is_cut_off_the_log_is_seen_and_kept_in_mind_until_it_was_told() {
        let from = tempfile::tempdir().expect("a folder");
        let mut disk = SqliteDisk::open(from.path(), true).expect("made");
        (1..=10).for_each(|seq| drop(disk.commit(&[record(seq)]).expect("committed")));
        disk.commit(&[Row::Meta { key: "a".to_owned(), value: Some(b"value".to_vec()) }]).expect("committed");
        let log = std::fs::read(log_of(from.path())).expect("read");
        for cut in [0, 31, 32, 40, log.len() / 2, log.len() - 4_121, log.len() - 4_120, log.len() - 1] {
            let dir = copied(from.path());
            std::fs::write(log_of(dir.path()), &log[..cut]).expect("cut");
            assert!(detect_loss(dir.path()).expect("read").is_some(), "cut at {cut} of {}", log.len());
            let mut disk = SqliteDisk::open(dir.path(), false).expect("opened");
            let next = 1_000;
            disk.commit(&[record(next)]).expect("goes on");
            drop(disk);
            let disk = SqliteDisk::open(dir.path(), false).expect("opened");
            assert!(
                SqliteReader::open(dir.path()).expect("opened").recorded_loss().expect("read").is_some(),
                "cut at {cut}"
            );
            drop(disk);
        }
        let dir = copied(from.path());
        assert_eq!(detect_loss(dir.path()).expect("read"), None);
        drop(disk);
        assert_eq!(detect_loss(from.path()).expect("read"), None, "closed as it should be");
        let disk = SqliteDisk::open(from.path(), false).expect("opened");
        assert_eq!(SqliteReader::open(from.path()).expect("opened").recorded_loss().expect("read"), None);
        drop(disk);
    }

    #[test]
    fn an_older_log_is_not_laid_over_a_database_that_has_more() {
        let from = tempfile::tempdir().expect("a folder");
        let mut disk = SqliteDisk::open(from.path(), true).expect("made");
        (1..=10).for_each(|seq| drop(disk.commit(&[record(seq)]).expect("committed")));
        disk.run_idle_tasks();
        let log = std::fs::read(log_of(from.path())).expect("read");
        for at in [100, 5_000, log.len() / 2] {
            let dir = copied(from.path());
            let mut damaged = log.clone();
            damaged[at] ^= 1;
            std::fs::write(log_of(dir.path()), damaged).expect("damaged");
            assert!(detect_loss(dir.path()).expect("read").expect("told").contains("has all of it"), "at {at}");
            let mut disk = SqliteDisk::open(dir.path(), false).expect("opened");
            assert_eq!(seqs(dir.path()), (1..=10).collect::<Vec<_>>(), "at {at}");
            disk.commit(&[record(11)]).expect("goes on");
            assert!(disk.open_reader().expect("reader").quarantined_rows().expect("read").is_empty());
        }
    }

    #[test]
    fn progress_is_read_back_and_torn_files_say_nothing() {
        let log = Some(LogFile { salt: [1; 8], frames: 7, sum: [2; 8], checkpointed_frames: 3 });
        for log in [None, log] {
            let progress = LogProgress { journal: 5, chunk: -1, log };
            let bytes = progress.encode();
            assert_eq!(LogProgress::decode(&bytes), Some(progress));
            for cut in 0..bytes.len() {
                assert_eq!(LogProgress::decode(&bytes[..cut]), None);
            }
        }
    }
}
