//! The audit log: one line of JSON in the workspace for each HTTP request, answered or refused.
//!
//! Requests without a token have files of their own: however many anyone sends, they push out no others. The same holds
//! for a token that has filled its share of a file.

use crate::private_list::private_options;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use utoipa::ToSchema;

/// Names of the files, without their endings: for requests with a token, for those of tokens that have filled their
/// share, and for those without a token.
const TOKEN_LOG: &str = "access-log";
const BUSY_LOG: &str = "access-busy-tokens";
const OPEN_LOG: &str = "access-without-token";
/// Beyond this size a file becomes an older one.
const MAX_AUDIT_BYTES: u64 = 8 << 20;
/// Of a file for requests with a token, one token fills at most this much. What it sends beyond that is recorded with
/// the busy tokens.
const MAX_SHARE_BYTES: u64 = MAX_AUDIT_BYTES / 8;
/// When a file is this old, in milliseconds, a token that has filled its share begins the next file. Otherwise the
/// share of a token that asks steadily would stay filled for good.
const SHARE_RENEWAL_MS: i64 = 24 * 60 * 60_000;
/// Number of older files of each kind.
const MAX_OLDER_TOKEN_FILES: usize = 8;
const MAX_OLDER_BUSY_FILES: usize = 1;
const MAX_OLDER_OPEN_FILES: usize = 1;
/// Maximum number of bytes that are kept of a request's path, and of its method.
const MAX_PATH_BYTES: usize = 1_000;
const MAX_METHOD_BYTES: usize = 32;
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

/// Where an entry is: when it was written, and the byte of its file at which it begins. It stays there when the file
/// becomes an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AuditPlace {
    at: i64,
    offset: u64,
}

impl AuditPlace {
    fn of(found: &FoundEntry) -> AuditPlace {
        AuditPlace { at: found.1.at, offset: found.0 }
    }

    /// Reads a place as [`Display`](std::fmt::Display) writes it.
    fn parse(text: &str) -> Option<AuditPlace> {
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

/// What marks the places of the kinds of files in a cursor: with a token, of busy tokens, and without a token.
const KIND_MARKS: [char; 3] = ['t', 'b', 'n'];

/// Where a page begins: at an entry of each kind. Of a kind that has no place, nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuditCursor {
    places: [Option<AuditPlace>; KIND_MARKS.len()],
}

impl AuditCursor {
    /// Reads a cursor as [`Display`](std::fmt::Display) writes it.
    pub(crate) fn parse(text: &str) -> Option<AuditCursor> {
        let (mut cursor, mut rest) = (AuditCursor::default(), text);
        for (mark, place) in KIND_MARKS.into_iter().zip(&mut cursor.places) {
            let Some(marked) = rest.strip_prefix(mark) else { continue };
            let end = marked.find(KIND_MARKS).unwrap_or(marked.len());
            *place = Some(AuditPlace::parse(&marked[..end])?);
            rest = &marked[end..];
        }
        (rest.is_empty() && cursor != AuditCursor::default()).then_some(cursor)
    }
}

impl std::fmt::Display for AuditCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (mark, place) in KIND_MARKS.into_iter().zip(self.places) {
            if let Some(place) = place {
                write!(f, "{mark}{place}")?;
            }
        }
        Ok(())
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

/// Returns the byte at which the entry at a place ends; `None` if it isn't in this file.
fn entry_end(file: &mut File, place: AuditPlace) -> std::io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(place.offset))?;
    let mut bytes = Vec::new();
    Read::take(&*file, MAX_LINE_BYTES).read_to_end(&mut bytes)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_there = serde_json::from_slice::<AuditEntry>(line).is_ok_and(|entry| entry.at == place.at);
    Ok(is_there.then_some(place.offset + line.len() as u64))
}

/// How much of a file tokens have filled.
#[derive(Default)]
struct TokenShares {
    /// Number of bytes by token.
    bytes: HashMap<String, u64>,
    /// When the first entry was written, in milliseconds since 1970.
    begun: Option<i64>,
}

impl TokenShares {
    fn count(file: &mut File) -> std::io::Result<TokenShares> {
        let (mut bytes, mut shares) = (Vec::new(), TokenShares::default());
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(AuditEntry { at, token: Some(token), .. }) = serde_json::from_slice(line) {
                shares.add(&token, line.len() as u64 + 1, at);
            }
        }
        Ok(shares)
    }

    fn add(&mut self, token: &str, size: u64, at: i64) {
        *self.bytes.entry(token.to_owned()).or_default() += size;
        self.begun = self.begun.or(Some(at));
    }

    /// Returns whether a token may add so many bytes.
    fn has_room(&self, token: &str, size: u64, most: u64) -> bool {
        self.bytes.get(token).copied().unwrap_or_default().saturating_add(size) <= most
    }
}

/// What is known about the file that entries are added to.
#[derive(Default)]
struct OpenAuditFile {
    /// The open file and its length.
    file: Option<(File, u64)>,
    /// How many of its bytes are of each token; `None` before they're counted.
    shares: Option<TokenShares>,
}

/// A file that entries are added to, and the older ones that it became when it was too long.
struct AuditFiles {
    folder: PathBuf,
    name: &'static str,
    max_bytes: u64,
    /// How many bytes of a file one token may fill; `None` for no limit.
    max_share: Option<u64>,
    max_older: usize,
    open: Mutex<OpenAuditFile>,
}

impl AuditFiles {
    fn new(
        folder: &Path,
        name: &'static str,
        (max_bytes, max_share): (u64, Option<u64>),
        max_older: usize,
    ) -> AuditFiles {
        AuditFiles { folder: folder.to_owned(), name, max_bytes, max_share, max_older, open: Mutex::default() }
    }

    /// Returns the path of a file: 0 is the one that entries are added to, and higher numbers are older.
    fn path(&self, number: usize) -> PathBuf {
        let older = match number {
            0 => String::new(),
            1 => ".old".to_owned(),
            _ => format!(".old.{number}"),
        };
        self.folder.join(format!("{}{older}.jsonl", self.name))
    }

    fn open(&self) -> std::io::Result<(File, u64)> {
        let mut file = private_options().read(true).open(self.path(0))?;
        let length = file.seek(SeekFrom::End(0))?;
        Ok((file, length))
    }

    /// Makes each file an older one. The oldest is replaced.
    fn rotate(&self) -> std::io::Result<()> {
        for number in (0..self.max_older).rev() {
            match std::fs::rename(self.path(number), self.path(number + 1)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Adds a line. Returns whether it was added: a token may have filled its share.
    fn append(&self, line: &[u8], token: Option<&str>, at: i64) -> std::io::Result<bool> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, mut length) = match open.file.take() {
            Some(known) => known,
            None => self.open()?,
        };
        if length > self.max_bytes {
            drop(file);
            self.rotate()?;
            open.shares = None;
            (file, length) = self.open()?;
        }
        let size = line.len() as u64;
        if let (Some(token), Some(most)) = (token, self.max_share) {
            // Counted in the file, so that it holds over a restart.
            let mut shares = match open.shares.take() {
                Some(shares) => shares,
                None => TokenShares::count(&mut file)?,
            };
            let is_old = shares.begun.is_some_and(|begun| at.saturating_sub(begun) >= SHARE_RENEWAL_MS);
            if is_old && !shares.has_room(token, size, most) {
                drop(file);
                self.rotate()?;
                shares = TokenShares::default();
                (file, length) = self.open()?;
            }
            let has_room = shares.has_room(token, size, most);
            if has_room {
                shares.add(token, size, at);
            }
            open.shares = Some(shares);
            if !has_room {
                open.file = Some((file, length));
                return Ok(false);
            }
        }
        file.write_all(line)?;
        open.file = Some((file, length + size));
        Ok(true)
    }

    /// Opens all files, the newest first, each with its length.
    fn open_all(&self) -> std::io::Result<Vec<(File, u64)>> {
        // Not while one becomes another.
        let _open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = Vec::new();
        for number in 0..=self.max_older {
            match File::open(self.path(number)) {
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

    /// Returns entries, newest first: from the newest on, or from the one at a place on.
    fn read(&self, limit: usize, from: Option<AuditPlace>) -> std::io::Result<Vec<FoundEntry>> {
        let mut files = self.open_all()?;
        // How many files to leave out, and where in the first one to begin.
        let mut begin = from.is_none().then_some((0, None));
        if let Some(place) = from {
            for (number, (file, length)) in files.iter_mut().enumerate() {
                // File systems refuse to look for a byte that no file of theirs can have.
                if begin.is_none()
                    && place.offset < *length
                    && let Some(end) = entry_end(file, place)?
                {
                    begin = Some((number, Some(end)));
                }
            }
        }
        // If the place is in none of them, what was before it is gone, too.
        let Some((left_out, mut end)) = begin else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (file, length) in files.iter_mut().skip(left_out) {
            let end = end.take().unwrap_or(*length);
            read_backwards(file, end, limit, &mut found)?;
        }
        Ok(found)
    }
}

/// The audit log of a workspace.
pub(crate) struct AuditLog {
    with_token: AuditFiles,
    busy_tokens: AuditFiles,
    without_token: AuditFiles,
}

impl AuditLog {
    pub(crate) fn new(workspace: &Path) -> AuditLog {
        AuditLog::with_limits(workspace, MAX_AUDIT_BYTES, MAX_SHARE_BYTES)
    }

    fn with_limits(workspace: &Path, max_bytes: u64, max_share: u64) -> AuditLog {
        let shared = (max_bytes, Some(max_share));
        AuditLog {
            with_token: AuditFiles::new(workspace, TOKEN_LOG, shared, MAX_OLDER_TOKEN_FILES),
            busy_tokens: AuditFiles::new(workspace, BUSY_LOG, (max_bytes, None), MAX_OLDER_BUSY_FILES),
            without_token: AuditFiles::new(workspace, OPEN_LOG, (max_bytes, None), MAX_OLDER_OPEN_FILES),
        }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Returns an error if it can't be written; the request then isn't answered.
    pub(crate) fn record(&self, mut entry: AuditEntry) -> std::io::Result<()> {
        entry.path.truncate(entry.path.floor_char_boundary(MAX_PATH_BYTES));
        entry.method.truncate(entry.method.floor_char_boundary(MAX_METHOD_BYTES));
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let files = match &entry.token {
            None => &self.without_token,
            Some(token) if self.with_token.append(&line, Some(token), entry.at)? => return Ok(()),
            Some(_) => &self.busy_tokens,
        };
        files.append(&line, None, entry.at).map(drop)
    }

    /// Returns requests, newest first: the newest, or those from a cursor on. If there are more, it also returns where
    /// the next page begins.
    ///
    /// # Errors
    /// Returns an error if the log can't be read.
    pub(crate) fn page(
        &self,
        limit: usize,
        from: Option<AuditCursor>,
    ) -> std::io::Result<(Vec<AuditEntry>, Option<AuditCursor>)> {
        let kinds = [&self.with_token, &self.busy_tokens, &self.without_token];
        let mut found = Vec::new();
        for (files, place) in kinds.into_iter().zip(from.unwrap_or_default().places) {
            let has_ended = from.is_some() && place.is_none();
            let read = if has_ended { Vec::new() } else { files.read(limit.saturating_add(1), place)? };
            found.push(read.into_iter().peekable());
        }
        let mut entries = Vec::new();
        while entries.len() < limit {
            let mut newest: Option<(usize, i64)> = None;
            for (kind, read) in found.iter_mut().enumerate() {
                if let Some((_, entry)) = read.peek()
                    && newest.is_none_or(|(_, at)| entry.at > at)
                {
                    newest = Some((kind, entry.at));
                }
            }
            let next = newest.and_then(|(kind, _)| found[kind].next());
            let Some((_, entry)) = next else { break };
            entries.push(entry);
        }
        let mut next = AuditCursor::default();
        for (place, read) in next.places.iter_mut().zip(&mut found) {
            *place = read.peek().map(AuditPlace::of);
        }
        Ok((entries, (next != AuditCursor::default()).then_some(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder for a log, removed at the end.
    struct LogFolder(PathBuf);

    impl LogFolder {
        fn new() -> LogFolder {
            let folder = std::env::temp_dir().join(format!("audit-{:016x}", rand::random::<u64>()));
            std::fs::create_dir(&folder).expect("made");
            LogFolder(folder)
        }

        /// A log whose files are short, and which one token may fill.
        fn short_log(&self) -> AuditLog {
            AuditLog::with_limits(&self.0, 1_000, u64::MAX)
        }

        fn write(&self, name: &str, text: String) {
            std::fs::write(self.0.join(name), text).expect("written");
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).expect("listed");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
            names.sort();
            names
        }
    }

    impl Drop for LogFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn entry(at: i64, token: Option<&str>) -> AuditEntry {
        let path = format!("/{at}/{}", "x".repeat(300));
        AuditEntry { at, token: token.map(str::to_owned), method: "GET".to_owned(), path, status: 200, millis: 0 }
    }

    fn lines(numbers: impl Iterator<Item = i64>, token: Option<&str>) -> String {
        numbers.map(|at| serde_json::to_string(&entry(at, token)).expect("JSON") + "\n").collect()
    }

    /// Reads all pages from a cursor on. `between` is called before each but the first.
    fn pages_from(log: &AuditLog, mut from: Option<AuditCursor>, limit: usize, mut between: impl FnMut()) -> Vec<i64> {
        let mut all = Vec::new();
        loop {
            let (entries, next) = log.page(limit, from).expect("a page");
            assert!(entries.len() <= limit);
            all.extend(entries.into_iter().map(|entry| entry.at));
            let Some(next) = next else { return all };
            assert_eq!(AuditCursor::parse(&next.to_string()), Some(next));
            from = Some(next);
            between();
        }
    }

    fn all_pages(log: &AuditLog, limit: usize, between: impl FnMut()) -> Vec<i64> {
        pages_from(log, None, limit, between)
    }

    fn newest_first(first: i64, end: i64) -> Vec<i64> {
        (first..end).rev().collect()
    }

    #[test]
    fn pages_go_back_through_all_files() {
        let folder = LogFolder::new();
        let log = AuditLog::new(&folder.0);
        assert_eq!(log.page(5, None).expect("a page"), (Vec::new(), None));
        // Larger than what is read at once, with a line that is none. Earlier versions had all in these files.
        let all = Some("0123456789ab");
        folder.write("access-log.old.2.jsonl", lines(0..500, None));
        folder.write("access-log.old.jsonl", lines(500..1_500, all) + "broken\n");
        folder.write("access-log.jsonl", lines((1_500..3_000).filter(|at| at % 3 != 0), all));
        folder.write("access-without-token.jsonl", lines((1_500..3_000).filter(|at| at % 3 == 0), None));
        for limit in [7, 1_000, 1_500, 2_999, 3_000, 5_000] {
            assert_eq!(all_pages(&log, limit, || {}), newest_first(0, 3_000), "{limit}");
        }
        // What is added meanwhile moves no page.
        let add = || [all, None].into_iter().for_each(|token| log.record(entry(9_999, token)).expect("recorded"));
        assert_eq!(all_pages(&log, 400, add), newest_first(0, 3_000));
        // The log becomes the older one between two pages.
        let (first, next) = log.page(10, None).expect("a page");
        assert!(first.iter().all(|entry| entry.at == 9_999) && first.len() == 10, "{first:?}");
        std::fs::rename(log.with_token.path(0), log.with_token.path(1)).expect("renamed");
        folder.write("access-log.jsonl", lines(20_000..20_003, all));
        // Seven of each kind were added; the file from 500 on was replaced.
        let rest = [vec![9_999; 4], newest_first(1_500, 3_000), newest_first(0, 500)].concat();
        assert_eq!(pages_from(&log, next, 400, || {}), rest);
        assert_eq!(log.page(4, None).expect("a page").0.len(), 4);
        // Places that are gone, and one that no file is long enough for.
        let far = AuditCursor::parse("t1-999999999999999");
        assert_eq!(log.page(1, far).expect("a page"), (Vec::new(), None));
        std::fs::remove_file(log.with_token.path(1)).expect("removed");
        std::fs::remove_file(log.without_token.path(0)).expect("removed");
        assert_eq!(log.page(1, next).expect("a page"), (Vec::new(), None));
    }

    #[test]
    fn a_cursor_names_each_file_once() {
        let place = Some(AuditPlace { at: 12, offset: 3 });
        for (text, places) in [
            ("t12-3", [place, None, None]),
            ("b12-3", [None, place, None]),
            ("n12-3", [None, None, place]),
            ("t12-3n12-3", [place, None, place]),
            ("t12-3b12-3n12-3", [place; 3]),
        ] {
            let cursor = AuditCursor { places };
            assert_eq!((AuditCursor::parse(text), cursor.to_string().as_str()), (Some(cursor), text));
        }
        for wrong in [
            "",
            "-",
            "1",
            "1-2",
            "t",
            "tn",
            "t1-",
            "t-1",
            "n1-2t1-2",
            "b1-2t1-2",
            "t1-2n",
            "t1-2t1-2",
            "n1-18446744073709551616",
        ] {
            assert_eq!(AuditCursor::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn requests_without_a_token_push_out_no_others() {
        let folder = LogFolder::new();
        let log = folder.short_log();
        // Neither a long path nor a long method hides what was before it.
        let mut first = entry(0, Some("0123456789ab"));
        first.path = "\u{1}".repeat(50_000);
        first.method = "X".repeat(50_000);
        log.record(first).expect("recorded");
        log.record(entry(1, Some("0123456789ab"))).expect("recorded");
        (2..1_000).for_each(|at| log.record(entry(at, None)).expect("recorded"));
        let all = all_pages(&log, 1, || {});
        assert!(all.ends_with(&[1, 0]) && all[0] == 999 && (4..20).contains(&all.len()), "{all:?}");
        let open = ["access-without-token.jsonl", "access-without-token.old.jsonl"];
        assert_eq!(folder.names(), [["access-log.jsonl", "access-log.old.jsonl"], open].concat());
    }

    #[test]
    fn a_busy_token_pushes_out_no_others() {
        let folder = LogFolder::new();
        // Two entries of a token fit in its share of a file, and six in a file.
        let log = || AuditLog::with_limits(&folder.0, 2_200, 900);
        let (busy, other) = (Some("0123456789ab"), Some("cdef01234567"));
        log().record(entry(0, other)).expect("recorded");
        // Its share is counted again after a restart.
        (1..4).for_each(|at| log().record(entry(at, busy)).expect("recorded"));
        let log = log();
        (4..1_000).for_each(|at| log.record(entry(at, busy)).expect("recorded"));
        assert_eq!(log.with_token.read(100, None).expect("read").len(), 3);
        let all = all_pages(&log, 2, || {});
        assert!(all.starts_with(&[999, 998, 997]) && all.ends_with(&[2, 1, 0]), "{all:?}");
        assert!((9..20).contains(&all.len()), "{all:?}");
        // Requests with other tokens go into the files that this one can't fill.
        (1_000..1_006).for_each(|at| {
            let token = format!("{at:012}");
            log.record(entry(at, Some(&token))).expect("recorded");
        });
        assert_eq!(log.with_token.read(100, None).expect("read").len(), 9);
        let busy_files = ["access-busy-tokens.jsonl", "access-busy-tokens.old.jsonl"].map(str::to_owned);
        let names = folder.names();
        assert!(busy_files.iter().all(|name| names.contains(name)) && names.len() == 4, "{names:?}");
    }

    #[test]
    fn the_share_of_a_token_is_renewed_after_a_day() {
        let folder = LogFolder::new();
        // Two entries of a token fit in its share. A day later it begins the next file, once.
        let log = || AuditLog::with_limits(&folder.0, 100_000, 900);
        let record = |at: i64| log().record(entry(at, Some("0123456789ab"))).expect("recorded");
        let kept = || log().with_token.read(100, None).expect("read").len();
        (0..10).for_each(record);
        record(SHARE_RENEWAL_MS - 1);
        assert_eq!(kept(), 2);
        (SHARE_RENEWAL_MS..SHARE_RENEWAL_MS + 10).for_each(record);
        assert_eq!(kept(), 4);
        let all = [newest_first(SHARE_RENEWAL_MS - 1, SHARE_RENEWAL_MS + 10), newest_first(0, 10)].concat();
        assert_eq!(all_pages(&log(), 3, || {}), all);
        let names = ["access-busy-tokens.jsonl", "access-log.jsonl", "access-log.old.jsonl"];
        assert_eq!(folder.names(), names);
    }

    #[test]
    fn the_oldest_file_is_replaced() {
        let folder = LogFolder::new();
        let log = folder.short_log();
        let count = |name: &str| folder.names().iter().filter(|known| *known == name).count();
        (0..200).for_each(|at| log.record(entry(at, Some("0123456789ab"))).expect("recorded"));
        let kept = all_pages(&log, 10, || {});
        assert_eq!(kept, newest_first(kept[kept.len() - 1], 200));
        // Each file has three entries: the third makes it too long.
        assert!((8 * 3..=9 * 3).contains(&kept.len()), "{kept:?}");
        assert_eq!(folder.names().len(), 9);
        assert_eq!((count("access-log.old.8.jsonl"), count("access-log.old.9.jsonl")), (1, 0));
        // A file that's missing holds up none of the others.
        std::fs::remove_file(log.with_token.path(4)).expect("removed");
        (200..210).for_each(|at| log.record(entry(at, Some("0123456789ab"))).expect("recorded"));
        assert_eq!(all_pages(&log, 10, || {})[0], 209);
    }
}
