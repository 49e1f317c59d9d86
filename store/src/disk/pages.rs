//! Reads the pages of a SQLite database without SQLite, because parts of a database that SQLite rejects are still
//! readable. Follows https://www.sqlite.org/fileformat2.html. Never writes, and trusts no number, since any of them may
//! be damaged.

use super::rows::ColumnValue;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Page size of all Tracebook databases, in bytes.
pub(super) const PAGE_BYTES: usize = 4096;
const TABLE_LEAF: u8 = 13;
const TABLE_INNER: u8 = 5;
const INDEX_LEAF: u8 = 10;
const INDEX_INNER: u8 = 2;

/// A database file and its write-ahead log, combined into one list of pages.
pub(super) struct DatabasePages {
    file: Option<File>,
    log: Option<File>,
    /// Offset in the log of a page's newest committed version.
    log_offsets: HashMap<u32, u64>,
    count: u32,
    /// Whether the log was read completely. If not, pages may be of different ages.
    pub(super) log_whole: bool,
}

/// A record of a B-tree, with its row number (0 in an index).
pub(super) struct TreeRecord {
    pub(super) row: i64,
    pub(super) payload: Vec<u8>,
}

/// State of a walk over the trees of a database.
#[derive(Default)]
pub(super) struct TreeWalk {
    /// Every page that was reached, readable or not. No page is visited twice.
    pub(super) reached: HashSet<u32>,
    /// Number of pages that could not be read or had unexpected content.
    pub(super) unreadable: u32,
}

impl DatabasePages {
    /// Opens the database and its log. A missing file has no pages.
    pub(super) fn open(path: &Path, log: &Path) -> io::Result<DatabasePages> {
        let file = open_existing(path)?;
        let size = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|file| file.len()))?;
        // The last page may be cut off. Its missing part reads as zeros.
        let count = u32::try_from(size.div_ceil(PAGE_BYTES as u64)).unwrap_or(u32::MAX);
        let mut pages =
            DatabasePages { file, log: open_existing(log)?, log_offsets: HashMap::new(), count, log_whole: true };
        if let Some(mut log) = pages.log.take() {
            pages.read_log(&mut log)?;
            pages.log = Some(log);
        }
        Ok(pages)
    }

    /// Reads the committed frames of the log, up to the first one that doesn't match its predecessors: later ones may
    /// be left over from failed commits.
    fn read_log(&mut self, log: &mut File) -> io::Result<()> {
        let mut reader = io::BufReader::with_capacity(1 << 20, log);
        let mut head = [0; 32];
        if reader.read_exact(&mut head).is_err() {
            return Ok(());
        }
        let big = read_u32(&head, 0) == Some(0x377f_0683);
        let mut sums = log_checksum((0, 0), &head[..24], big);
        let mut salt = head[16..24].to_vec();
        // Without a readable header, each frame is still verified by the previous one. Only the first goes unchecked.
        let mut blind = read_u32(&head, 24) != Some(sums.0) || read_u32(&head, 28) != Some(sums.1);
        if blind {
            self.log_whole = false;
        }
        let (mut pending, mut at) = (HashMap::new(), 32);
        let mut frame = vec![0; 24 + PAGE_BYTES];
        while reader.read_exact(&mut frame).is_ok() {
            let stored = (read_u32(&frame, 16).unwrap_or(0), read_u32(&frame, 20).unwrap_or(0));
            if blind {
                salt = frame[8..16].to_vec();
            } else if frame[8..16] != salt {
                return Ok(()); // an older log's, which has been folded in
            } else {
                sums = log_checksum(log_checksum(sums, &frame[..8], big), &frame[24..], big);
                if sums != stored {
                    self.log_whole = false;
                    return Ok(());
                }
            }
            (sums, blind) = (stored, false);
            pending.insert(read_u32(&frame, 0).unwrap_or(0), at + 24);
            let committed = read_u32(&frame, 4).unwrap_or(0);
            if committed > 0 {
                self.log_offsets.extend(pending.drain());
                self.count = self.count.max(committed);
            }
            at += frame.len() as u64;
        }
        Ok(())
    }

    /// Returns the number of pages.
    pub(super) fn page_count(&self) -> u32 {
        self.count
    }

    /// Returns a page in its newest committed version.
    pub(super) fn read_page(&self, number: u32) -> Option<Vec<u8>> {
        let (mut file, at) = match self.log_offsets.get(&number) {
            Some(at) => (self.log.as_ref()?, *at),
            None => (self.file.as_ref()?, u64::from(number.checked_sub(1)?) * PAGE_BYTES as u64),
        };
        let mut page = vec![0; PAGE_BYTES];
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut filled = 0;
        // A bad sector makes the page unreadable. After the end of the file, the rest is zeros.
        while filled < PAGE_BYTES {
            match file.read(&mut page[filled..]) {
                Ok(0) if filled == 0 => return None,
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(page)
    }

    /// Returns the root pages of the trees in the schema, by the name of their table or index.
    pub(super) fn read_schema(&self) -> HashMap<String, u32> {
        let mut trees = HashMap::new();
        self.walk_tree(1, &mut TreeWalk::default(), &mut |record| {
            if let Some([_, name, _, root, ..]) = parse_values(&record.payload).as_deref()
                && let (Some(name), Some(root)) =
                    (name.as_text(), root.as_int().and_then(|root| u32::try_from(root).ok()))
            {
                trees.insert(name.to_owned(), root);
            }
        });
        trees
    }

    /// Returns the pages in the list of free pages, or `None` if that list is incomplete.
    pub(super) fn free_pages(&self) -> Option<HashSet<u32>> {
        let first = self.read_page(1)?;
        if !first.starts_with(b"SQLite format 3\0") {
            return None;
        }
        let (mut trunk, total) = (read_u32(&first, 32)?, read_u32(&first, 36)?);
        let mut free = HashSet::new();
        while trunk != 0 {
            let page = self.read_page(trunk)?;
            free.insert(trunk).then_some(())?;
            let leaves = usize::try_from(read_u32(&page, 4)?).ok().filter(|leaves| *leaves <= PAGE_BYTES / 4 - 2)?;
            for leaf in 0..leaves {
                free.insert(read_u32(&page, 8 + leaf * 4)?);
            }
            trunk = read_u32(&page, 0)?;
        }
        (u32::try_from(free.len()) == Ok(total)).then_some(free)
    }

    /// Passes every readable record of the tree at `root` to `take`.
    pub(super) fn walk_tree(&self, root: u32, walk: &mut TreeWalk, take: &mut impl FnMut(TreeRecord)) {
        let mut waiting = vec![root];
        while let Some(number) = waiting.pop() {
            if number == 0 || number > self.count || !walk.reached.insert(number) {
                walk.unreadable += u32::from(number == 0 || number > self.count);
                continue;
            }
            if self.read_leaf_or_inner(number, walk, &mut waiting, take).is_none() {
                walk.unreadable += 1;
            }
        }
    }

    /// Passes the records of one page to `take`, if it's a table leaf.
    pub(super) fn read_leaf(&self, number: u32, walk: &mut TreeWalk, take: &mut impl FnMut(TreeRecord)) {
        if self.read_page(number).is_some_and(|page| page[if number == 1 { 100 } else { 0 }] == TABLE_LEAF) {
            walk.reached.insert(number);
            self.read_leaf_or_inner(number, walk, &mut Vec::new(), take);
        }
    }

    /// Reads a page of a tree. Returns `None` if anything in it is damaged, after passing its readable records to
    /// `take`.
    fn read_leaf_or_inner(
        &self,
        number: u32,
        walk: &mut TreeWalk,
        waiting: &mut Vec<u32>,
        take: &mut impl FnMut(TreeRecord),
    ) -> Option<()> {
        let page = self.read_page(number)?;
        let start = if number == 1 { 100 } else { 0 };
        let kind = page[start];
        let (table, inner) = match kind {
            TABLE_LEAF => (true, false),
            TABLE_INNER => (true, true),
            INDEX_LEAF => (false, false),
            INDEX_INNER => (false, true),
            _ => return None,
        };
        let cells = usize::from(read_u16(&page, start + 3)?);
        let pointers = start + if inner { 12 } else { 8 };
        let mut whole = Some(());
        for cell in 0..cells.min(PAGE_BYTES / 2) {
            let read = (|| {
                let mut at = usize::from(read_u16(&page, pointers + cell * 2)?);
                if inner {
                    waiting.push(read_u32(&page, at)?);
                    at += 4;
                }
                if inner && table {
                    return Some(());
                }
                let length = usize::try_from(read_varint(&page, &mut at)?).ok()?;
                let row = if table { read_varint(&page, &mut at)? } else { 0 };
                let payload = self.read_payload(&page, at, length, table, walk)?;
                take(TreeRecord { row, payload });
                Some(())
            })();
            whole = whole.and(read);
        }
        if inner {
            waiting.push(read_u32(&page, start + 8)?);
        }
        whole
    }

    /// Returns a record's bytes: from its cell, and from overflow pages.
    fn read_payload(&self, page: &[u8], at: usize, length: usize, table: bool, walk: &mut TreeWalk) -> Option<Vec<u8>> {
        if length as u64 > u64::from(self.count) * PAGE_BYTES as u64 {
            return None;
        }
        let most = if table { PAGE_BYTES - 35 } else { (PAGE_BYTES - 12) * 64 / 255 - 23 };
        let least = (PAGE_BYTES - 12) * 32 / 255 - 23;
        let local = match least + length.wrapping_sub(least) % (PAGE_BYTES - 4) {
            _ if length <= most => length,
            local if local <= most => local,
            _ => least,
        };
        let mut payload = page.get(at..at + local)?.to_vec();
        let mut next = if local < length { read_u32(page, at + local)? } else { 0 };
        while payload.len() < length {
            let page = self.read_page(next).filter(|_| next != 0)?;
            walk.reached.insert(next);
            let rest = (length - payload.len()).min(PAGE_BYTES - 4);
            payload.extend_from_slice(&page[4..4 + rest]);
            next = read_u32(&page, 0)?;
        }
        Some(payload)
    }
}

fn open_existing(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a record's values, or `None` if the record is inconsistent.
pub(super) fn parse_values(payload: &[u8]) -> Option<Vec<ColumnValue<'_>>> {
    let mut at = 0;
    let head = usize::try_from(read_varint(payload, &mut at)?).ok()?;
    let (mut body, mut values) = (head, Vec::new());
    while at < head {
        let kind = read_varint(payload, &mut at)?;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            12.. => usize::try_from((kind - 12) / 2).ok()?,
            _ => return None,
        };
        let bytes = payload.get(body..body.checked_add(size)?)?;
        body += size;
        values.push(match kind {
            0 | 7 => ColumnValue::Null,
            1..=6 => ColumnValue::Int(read_signed_int(bytes)),
            8 => ColumnValue::Int(0),
            9 => ColumnValue::Int(1),
            _ if kind % 2 == 0 => ColumnValue::Blob(bytes),
            _ => ColumnValue::Text(bytes),
        });
    }
    Some(values)
}

fn read_signed_int(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
    bytes.iter().fold(sign, |number, byte| (number << 8) | i64::from(*byte))
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut number = 0_u64;
    for place in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if place == 8 {
            number = (number << 8) | u64::from(byte);
            break;
        }
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Some(i64::from_be_bytes(number.to_be_bytes()))
}

/// Computes the log's checksum over `bytes`, continuing from `sums`.
pub(super) fn log_checksum(sums: (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    let (mut one, mut two) = sums;
    // A plain loop: with closures, a fiftieth of all tests' time went into the unoptimised code.
    for [first, second] in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
        let (first, second) = if big {
            (u32::from_be_bytes(*first), u32::from_be_bytes(*second))
        } else {
            (u32::from_le_bytes(*first), u32::from_le_bytes(*second))
        };
        one = one.wrapping_add(first).wrapping_add(two);
        two = two.wrapping_add(second).wrapping_add(one);
    }
    (one, two)
}
