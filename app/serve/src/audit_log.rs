//! The audit log: one line of JSON in the workspace for each HTTP request, answered or refused.

use crate::private_list::private_options;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use utoipa::ToSchema;

const AUDIT_FILE: &str = "access-log.jsonl";
const OLDER_AUDIT_FILE: &str = "access-log.old.jsonl";
/// Beyond this size the log becomes the older one, which replaces the one before.
const MAX_AUDIT_BYTES: u64 = 8 << 20;
/// Maximum number of bytes that are kept of a request's path.
const MAX_PATH_BYTES: usize = 1_000;
/// Number of bytes that are read at once, from the end of the log on.
const READ_BYTES: u64 = 256 << 10;
/// Maximum length of a line in bytes: each byte of the path can be escaped.
const MAX_LINE_BYTES: u64 = 16 << 10;
/// Maximum number of digits of each number of a place.
const MAX_PLACE_DIGITS: usize = 15;

/// A request in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// When it was answered, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Id of the token; missing if none was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The method.
    pub(crate) method: String,
    /// The path, as it was sent.
    pub(crate) path: String,
    /// The status that was answered.
    pub(crate) status: u16,
    /// How long it took, in milliseconds.
    pub(crate) millis: u64,
}

/// Where an entry is: when it was written, and the byte of its file at which it begins. The file is the log, or the
/// older one once the log has become that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditPlace {
    at: i64,
    offset: u64,
}

impl AuditPlace {
    /// Reads a place as [`Display`](std::fmt::Display) writes it.
    pub(crate) fn parse(text: &str) -> Option<AuditPlace> {
        let (at, offset) = text.split_once('-')?;
        let is_number =
            |text: &str| (1..=MAX_PLACE_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(at) || !is_number(offset) {
            return None;
        }
        Some(AuditPlace { at: at.parse().ok()?, offset: offset.parse().ok()? })
    }
}

impl std::fmt::Display for AuditPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.at, self.offset)
    }
}

/// An entry, and the byte of its file at which it begins.
type FoundEntry = (u64, AuditEntry);

/// Adds the last entries before the byte `end` of a file, newest first, until there are `limit`.
fn read_backwards(file: &mut File, end: u64, limit: usize, found: &mut Vec<FoundEntry>) -> std::io::Result<()> {
    // What was read and isn't parsed yet begins here. It ends with the end of a line.
    let (mut begin, mut bytes) = (end, Vec::new());
    while begin > 0 && found.len() < limit {
        let length = READ_BYTES.min(begin);
        begin -= length;
        file.seek(SeekFrom::Start(begin))?;
        let mut whole = Vec::new();
        Read::take(&*file, length).read_to_end(&mut whole)?;
        whole.append(&mut bytes);
        // The first line may be the end of one.
        let first = match begin {
            0 => 0,
            _ => whole.iter().position(|byte| *byte == b'\n').map_or(whole.len(), |newline| newline + 1),
        };
        let mut line_end = whole.len();
        for line in whole[first..].rsplit(|byte| *byte == b'\n') {
            let line_begin = line_end - line.len();
            line_end = line_begin.saturating_sub(1);
            if found.len() < limit
                && let Ok(entry) = serde_json::from_slice(line)
            {
                found.push((begin + line_begin as u64, entry));
            }
        }
        whole.truncate(first);
        bytes = whole;
    }
    Ok(())
}

/// Returns whether the entry at a place is in this file.
fn has_entry(file: &mut File, place: AuditPlace) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(place.offset))?;
    let mut bytes = Vec::new();
    Read::take(&*file, MAX_LINE_BYTES).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(serde_json::from_slice::<AuditEntry>(line).is_ok_and(|entry| entry.at == place.at))
}

/// The audit log of a workspace.
pub(crate) struct AuditLog {
    folder: PathBuf,
    /// The open file and its length.
    file: Mutex<Option<(File, u64)>>,
}

impl AuditLog {
    pub(crate) fn new(workspace: &Path) -> AuditLog {
        AuditLog { folder: workspace.to_owned(), file: Mutex::new(None) }
    }

    fn open(&self) -> std::io::Result<(File, u64)> {
        let mut file = private_options().read(true).open(self.folder.join(AUDIT_FILE))?;
        let length = file.seek(SeekFrom::End(0))?;
        Ok((file, length))
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Returns an error if it can't be written; the request then isn't answered.
    pub(crate) fn record(&self, mut entry: AuditEntry) -> std::io::Result<()> {
        entry.path.truncate(entry.path.floor_char_boundary(MAX_PATH_BYTES));
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, mut length) = match open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        if length > MAX_AUDIT_BYTES {
            drop(file);
            std::fs::rename(self.folder.join(AUDIT_FILE), self.folder.join(OLDER_AUDIT_FILE))?;
            (file, length) = self.open()?;
        }
        file.write_all(&line)?;
        *open = Some((file, length + line.len() as u64));
        Ok(())
    }

    /// Opens the log and the older one, each with its length.
    fn open_all(&self) -> std::io::Result<Vec<(File, u64)>> {
        // Not while one becomes the other.
        let _open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = Vec::new();
        for name in [AUDIT_FILE, OLDER_AUDIT_FILE] {
            match File::open(self.folder.join(name)) {
                Ok(file) => {
                    let length = file.metadata()?.len();
                    files.push((file, length));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    /// Returns requests, newest first: the newest, or those before the one at a place. If there are more, it also
    /// returns the place of the last one.
    ///
    /// # Errors
    /// Returns an error if the log can't be read.
    pub(crate) fn page(
        &self,
        limit: usize,
        before: Option<AuditPlace>,
    ) -> std::io::Result<(Vec<AuditEntry>, Option<AuditPlace>)> {
        let mut files = self.open_all()?;
        // How many files to leave out, and where in the first one to begin.
        let mut begin = before.is_none().then_some((0, None));
        if let Some(place) = before {
            for (number, (file, _)) in files.iter_mut().enumerate() {
                if begin.is_none() && has_entry(file, place)? {
                    begin = Some((number, Some(place.offset)));
                }
            }
        }
        // If the place is in neither file, what was before it is gone, too.
        let Some((left_out, mut end)) = begin else { return Ok((Vec::new(), None)) };
        let mut found = Vec::new();
        for (file, length) in files.iter_mut().skip(left_out) {
            let end = end.take().unwrap_or(*length);
            read_backwards(file, end, limit.saturating_add(1), &mut found)?;
        }
        let has_more = found.len() > limit;
        found.truncate(limit);
        let place = |(offset, entry): &FoundEntry| AuditPlace { at: entry.at, offset: *offset };
        let last = found.last().filter(|_| has_more).map(place);
        Ok((found.into_iter().map(|(_, entry)| entry).collect(), last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: i64) -> AuditEntry {
        let path = format!("/{at}/{}", "x".repeat(300));
        AuditEntry { at, token: None, method: "GET".to_owned(), path, status: 200, millis: 0 }
    }

    fn lines(numbers: std::ops::Range<i64>) -> String {
        numbers.map(|at| serde_json::to_string(&entry(at)).expect("JSON") + "\n").collect()
    }

    /// Reads all pages. `between` is called before each but the first.
    fn all_pages(log: &AuditLog, limit: usize, mut between: impl FnMut()) -> Vec<i64> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let (entries, next) = log.page(limit, before).expect("a page");
            assert!(entries.len() <= limit);
            all.extend(entries.into_iter().map(|entry| entry.at));
            let Some(next) = next else { return all };
            assert_eq!(AuditPlace::parse(&next.to_string()), Some(next));
            before = Some(next);
            between();
        }
    }

    #[test]
    fn pages_go_back_through_both_files() {
        let folder = std::env::temp_dir().join(format!("audit-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&folder).expect("made");
        let log = AuditLog::new(&folder);
        assert_eq!(log.page(5, None).expect("a page"), (Vec::new(), None));
        // Larger than what is read at once, with a line that is none.
        std::fs::write(folder.join(OLDER_AUDIT_FILE), lines(0..1_500) + "broken\n").expect("written");
        std::fs::write(folder.join(AUDIT_FILE), lines(1_500..3_000)).expect("written");
        let newest_first = |first: i64, end: i64| (first..end).rev().collect::<Vec<_>>();
        for limit in [7, 1_000, 1_500, 2_999, 3_000, 5_000] {
            assert_eq!(all_pages(&log, limit, || {}), newest_first(0, 3_000), "{limit}");
        }
        // What is added meanwhile moves no page.
        assert_eq!(all_pages(&log, 400, || log.record(entry(9_999)).expect("recorded")), newest_first(0, 3_000));
        // The log becomes the older one between two pages.
        let (first, next) = log.page(10, None).expect("a page");
        assert_eq!(first.len(), 10);
        std::fs::rename(folder.join(AUDIT_FILE), folder.join(OLDER_AUDIT_FILE)).expect("renamed");
        std::fs::write(folder.join(AUDIT_FILE), lines(20_000..20_003)).expect("written");
        let (second, _) = log.page(1, next).expect("a page");
        assert_eq!(second.iter().map(|entry| entry.at).collect::<Vec<_>>(), [first[9].at - 1]);
        assert_eq!(log.page(4, None).expect("a page").0.len(), 4);
        // A place that is gone, and none at all.
        std::fs::remove_file(folder.join(OLDER_AUDIT_FILE)).expect("removed");
        assert_eq!(log.page(1, next).expect("a page"), (Vec::new(), None));
        for wrong in ["", "-", "1", "1-", "-1", "+1-2", "1-2-3", "a-1", "1-18446744073709551616"] {
            assert_eq!(AuditPlace::parse(wrong), None, "{wrong}");
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
