//! Computes how large automerge's chunks become before automerge unpacks them. A few bytes of deflate can expand to
//! gigabytes, and a few bytes of run-length encoding to billions of operations.

use automerge::ChangeHash;
use flate2::bufread::DeflateDecoder;
use sha2::{Digest, Sha256};
use std::io::Read;

/// Maximum unpacked size of one message, in bytes.
pub(super) const MAX_INFLATED_BYTES: u64 = 256 << 20;

/// An operation counts as this many bytes. The largest note (16 MiB, one operation per character) fits, with a margin.
///
/// Each operation costs automerge about a microsecond and a hundred bytes of memory, however compactly it's encoded. A
/// message of 10 kB with ten million characters would block a hub for ten seconds.
const BYTES_PER_OPERATION: u64 = 12;

const CHUNK_MAGIC: [u8; 4] = [0x85, 0x6f, 0x4a, 0x83];
const DOCUMENT_CHUNK: u8 = 0;
const CHANGE_CHUNK: u8 = 1;
const COMPRESSED_CHUNK: u8 = 2;
/// Flag in a column's specification: the column's bytes are deflated.
const DEFLATE_BIT: u64 = 0b1000;

/// Checks the unpacked size of a stream of chunks. `left` is the number of bytes that they may still unpack to.
///
/// # Errors
/// Returns the reason why the stream is refused.
pub(super) fn check_unpacked_size(mut bytes: &[u8], left: &mut u64) -> Result<(), &'static str> {
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(9).ok_or("a chunk ends early")?;
        if head[..4] != CHUNK_MAGIC {
            return Err("it holds something that is no chunk");
        }
        let (length, rest) = read_leb128(rest)?;
        let length = usize::try_from(length).map_err(|_| "a chunk ends early")?;
        let (content, rest) = rest.split_at_checked(length).ok_or("a chunk ends early")?;
        match head[8] {
            CHANGE_CHUNK => {
                spend_bytes(content.len() as u64, left)?;
                check_change(content, left)?;
            }
            COMPRESSED_CHUNK => {
                let content = inflate_bounded(content, left)?;
                check_change(&content, left)?;
            }
            DOCUMENT_CHUNK => check_document(content, left)?,
            _ => return Err("it holds a chunk of an unknown kind"),
        }
        bytes = rest;
    }
    Ok(())
}

/// Splits a stream into chunks, each with its kind and all its bytes. Returns `None` if the stream contains anything
/// else.
pub(crate) fn split_chunks(mut bytes: &[u8]) -> Option<Vec<(ChunkKind, &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(9)?;
        let (length, content) = read_leb128(rest).ok()?;
        let behind = content.get(usize::try_from(length).ok()?..)?;
        let kind = match head[8] {
            DOCUMENT_CHUNK => ChunkKind::Document,
            CHANGE_CHUNK | COMPRESSED_CHUNK => ChunkKind::Change,
            _ => return None,
        };
        all.push((kind, &bytes[..bytes.len() - behind.len()]));
        bytes = behind;
    }
    Some(all)
}

/// The kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    /// A whole document.
    Document,
    /// A single change.
    Change,
}

fn spend_bytes(bytes: u64, left: &mut u64) -> Result<(), &'static str> {
    *left = left.checked_sub(bytes).ok_or("it unpacks to more than a document may hold")?;
    Ok(())
}

fn inflate_bounded(packed: &[u8], left: &mut u64) -> Result<Vec<u8>, &'static str> {
    let mut content = Vec::new();
    let most = left.saturating_add(1);
    let size = DeflateDecoder::new(packed).take(most).read_to_end(&mut content);
    spend_bytes(size.map_err(|_| "it cannot be unpacked")? as u64, left)?;
    Ok(content)
}

/// Checks a change: dependencies, author, time, list of columns, columns.
fn check_change(content: &[u8], left: &mut u64) -> Result<(), &'static str> {
    let (parents, rest) = read_leb128(content)?;
    let mut rest = skip_bytes(rest, parents.checked_mul(32).ok_or("a chunk ends early")?)?;
    let named = |rest| -> Result<_, &'static str> {
        let (length, rest) = read_leb128(rest)?;
        skip_bytes(rest, length)
    };
    rest = named(rest)?; // the actor
    for _ in 0..3 {
        rest = read_leb128(rest)?.1; // its number, its first operation, its time
    }
    rest = named(rest)?; // the message
    let (others, behind) = read_leb128(rest)?;
    rest = behind;
    for _ in 0..others {
        rest = named(rest)?;
    }
    let (columns, mut rest) = read_columns(rest)?;
    let mut most = 0;
    for (specification, length) in columns {
        let length = usize::try_from(length).map_err(|_| "a chunk ends early")?;
        let (column, behind) = rest.split_at_checked(length).ok_or("a chunk ends early")?;
        most = count_rows(specification, column)?.max(most);
        rest = behind;
    }
    spend_bytes(most.saturating_mul(BYTES_PER_OPERATION), left)
}

/// The specification and the length of each column.
type ChunkColumns = Vec<(u64, u64)>;

/// Reads a chunk's list of columns. Returns it with the remaining bytes.
fn read_columns(bytes: &[u8]) -> Result<(ChunkColumns, &[u8]), &'static str> {
    let (count, mut rest) = read_leb128(bytes)?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let (specification, further) = read_leb128(rest)?;
        let (length, further) = read_leb128(further)?;
        columns.push((specification, length));
        rest = further;
    }
    Ok((columns, rest))
}

/// Counts the rows of a run-length encoded column.
fn count_rows(specification: u64, mut column: &[u8]) -> Result<u64, &'static str> {
    let kind = specification & 0b111;
    let mut rows = 0_u64;
    // Bytes of values; their lengths are in another column.
    if kind == 7 {
        return Ok(0);
    }
    while !column.is_empty() {
        let (count, rest) = read_leb128(column)?;
        // Booleans: only the lengths of runs.
        if kind == 4 {
            (rows, column) = (rows.saturating_add(count), rest);
            continue;
        }
        let width = column.len() - rest.len();
        let sign = column.get(width - 1).is_some_and(|last| last & 0x40 != 0);
        let value = |rest| -> Result<_, &'static str> {
            let (length, rest) = read_leb128(rest)?;
            if kind == 5 { skip_bytes(rest, length) } else { Ok(rest) }
        };
        column = match (count, sign) {
            // A run of nulls.
            (0, _) => {
                let (count, rest) = read_leb128(rest)?;
                rows = rows.saturating_add(count);
                rest
            }
            // A run of literals, each at least one byte.
            (count, true) => {
                let bits = u32::try_from(width * 7).unwrap_or(64);
                let literal = if bits >= 64 { count.wrapping_neg() } else { (1_u64 << bits) - count };
                let mut rest = rest;
                for _ in 0..literal {
                    rest = value(rest)?;
                }
                rows = rows.saturating_add(literal);
                rest
            }
            // A run of one value.
            (count, false) => {
                rows = rows.saturating_add(count);
                value(rest)?
            }
        };
    }
    Ok(rows)
}

/// Returns the heads of a document, sorted, if the bytes are one chunk with the whole document and its checksum is
/// correct.
pub(super) fn whole_document_heads(bytes: &[u8]) -> Option<Vec<ChangeHash>> {
    let (head, rest) = bytes.split_at_checked(9)?;
    let (length, content) = read_leb128(rest).ok()?;
    if head[..4] != CHUNK_MAGIC || head[8] != DOCUMENT_CHUNK || length != content.len() as u64 {
        return None;
    }
    // R: in automerge's binary format, four bytes of SHA-256 over everything that follows them.
    if Sha256::digest(&bytes[8..])[..4] != head[4..8] {
        return None;
    }
    let (heads, _) = split_heads(content).ok()?;
    let mut heads: Vec<ChangeHash> = heads.as_chunks().0.iter().map(|head| ChangeHash(*head)).collect();
    heads.sort_unstable();
    Some(heads)
}

/// Splits off the heads of a whole document, which follow its actors. Returns them and the rest.
fn split_heads(content: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let (actors, mut rest) = read_leb128(content)?;
    for _ in 0..actors {
        let (length, behind) = read_leb128(rest)?;
        rest = skip_bytes(behind, length)?;
    }
    let (count, rest) = read_leb128(rest)?;
    let behind = skip_bytes(rest, count.checked_mul(32).ok_or("a chunk ends early")?)?;
    Ok((&rest[..rest.len() - behind.len()], behind))
}

/// Checks a whole document: actors, heads, list of columns, columns.
fn check_document(content: &[u8], left: &mut u64) -> Result<(), &'static str> {
    spend_bytes(content.len() as u64, left)?;
    let (_, rest) = split_heads(content)?;
    let (mut all, behind) = read_columns(rest)?;
    let (operations, mut rest) = read_columns(behind)?;
    all.extend(operations);
    let mut most = 0;
    for (specification, length) in all {
        let length = usize::try_from(length).map_err(|_| "a chunk ends early")?;
        let (column, behind) = rest.split_at_checked(length).ok_or("a chunk ends early")?;
        let rows = match specification & DEFLATE_BIT {
            0 => count_rows(specification, column)?,
            _ => count_rows(specification, &inflate_bounded(column, left)?)?,
        };
        most = rows.max(most);
        rest = behind;
    }
    spend_bytes(most.saturating_mul(BYTES_PER_OPERATION), left)
}

fn skip_bytes(bytes: &[u8], count: u64) -> Result<&[u8], &'static str> {
    usize::try_from(count).ok().and_then(|count| bytes.get(count..)).ok_or("a chunk ends early")
}

/// Reads a LEB128 number. Returns it with the remaining bytes.
fn read_leb128(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let mut number = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f).checked_shl(at as u32 * 7).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[at + 1..]));
        }
    }
    Err("a chunk ends early")
}

#[cfg(test)]
mod tests {
    use super::*;
    use automerge::transaction::Transactable;
    use automerge::{ActorId, AutoCommit, ROOT};
    use flate2::Compression;
    use flate2::bufread::DeflateEncoder;

    fn limit(bytes: &[u8], mut left: u64) -> Result<u64, &'static str> {
        check_unpacked_size(bytes, &mut left).map(|()| left)
    }

    #[test]
    fn what_automerge_writes_passes_and_is_counted() {
        let mut doc = AutoCommit::new().with_actor(ActorId::from([1; 16]));
        for number in 0..200 {
            doc.put(ROOT, format!("key {number}"), "all work and no play ".repeat(40)).expect("put");
            doc.commit();
        }
        let (whole, parts) = (doc.save(), doc.save_after(&[]));
        for bytes in [&whole, &parts] {
            let left = limit(bytes, MAX_INFLATED_BYTES).expect("passes");
            assert!(MAX_INFLATED_BYTES - left > 100_000, "{}", MAX_INFLATED_BYTES - left);
            assert!(limit(bytes, 100_000).is_err(), "a limit is kept");
            for cut in 1..bytes.len().min(3_000) {
                let _ = limit(&bytes[..cut], MAX_INFLATED_BYTES); // does not panic
            }
        }
    }

    /// Checks that a note's maximum number of characters passes in each kind of chunk, and that a longer run doesn't.
    #[test]
    fn operations_are_counted_however_few_bytes_say_them() {
        let mut doc = AutoCommit::new().with_actor(ActorId::from([1; 16]));
        let text = doc.put_object(ROOT, "text", automerge::ObjType::Text).expect("a text");
        doc.splice_text(&text, 0, 0, &"all work and no play ".repeat(1_000)).expect("typed");
        doc.put(&ROOT, "a", 1.5).expect("put");
        doc.delete(ROOT, "a").expect("gone");
        for at in 0..50 {
            doc.splice_text(&text, at * 7, 3, "é").expect("typed");
            doc.commit();
        }
        for bytes in [doc.save(), doc.save_nocompress(), doc.save_after(&[])] {
            let left = limit(&bytes, MAX_INFLATED_BYTES).expect("passes");
            assert!(MAX_INFLATED_BYTES - left > 20_000 * BYTES_PER_OPERATION, "{}", MAX_INFLATED_BYTES - left);
        }
        // Runs of one value, of nulls and of booleans, and single values.
        assert_eq!(count_rows(0x42, &[0xc0, 0x84, 0x3d, 1]), Ok(1_000_000));
        assert_eq!(count_rows(0x42, &[0, 0xc0, 0x84, 0x3d]), Ok(1_000_000));
        assert_eq!(count_rows(0x34, &[0, 0xc0, 0x84, 0x3d]), Ok(1_000_000));
        assert_eq!(count_rows(0x42, &[0x7d, 1, 2, 3]), Ok(3));
        assert_eq!(count_rows(0x55, &[0x7e, 1, b'a', 2, b'b', b'c']), Ok(2));
        assert!(count_rows(0x42, &[0x7d, 1, 2]).is_err());
        assert_eq!(count_rows(0x57, &[0xff; 9]), Ok(0));
        // As many characters as in the largest note, and half as many again.
        assert!(limit(&typed(16 << 20), MAX_INFLATED_BYTES).is_ok());
        assert!(limit(&typed(24 << 20), MAX_INFLATED_BYTES).is_err());
    }

    /// Builds a change of a few bytes that claims to insert this many characters.
    fn typed(letters: u32) -> Vec<u8> {
        let leb = |mut number: u32| {
            let mut bytes = Vec::new();
            while number > 0x7f {
                bytes.push(0x80 | (number & 0x7f) as u8);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let run = leb(letters);
        let inserts = [vec![0], run].concat();
        let mut content = vec![0, 1, 7, 1, 1, 0, 0, 0, 1, 0x34, inserts.len() as u8];
        content.extend(inserts);
        let mut chunk = [&CHUNK_MAGIC[..], &[0; 4], &[CHANGE_CHUNK]].concat();
        chunk.extend(leb(content.len() as u32));
        [chunk, content].concat()
    }

    #[test]
    fn a_bomb_is_found_before_it_goes_off() {
        let zeros = std::io::repeat(0).take(2 << 20);
        let mut packed = Vec::new();
        DeflateEncoder::new(std::io::BufReader::new(zeros), Compression::fast())
            .read_to_end(&mut packed)
            .expect("packed");
        let mut chunk = CHUNK_MAGIC.to_vec();
        chunk.extend([0; 4]);
        chunk.push(COMPRESSED_CHUNK);
        let mut length = packed.len();
        while length > 0x7f {
            chunk.push(0x80 | (length & 0x7f) as u8);
            length >>= 7;
        }
        chunk.push(length as u8);
        chunk.extend(packed);
        assert!(chunk.len() < 100_000);
        assert_eq!(limit(&chunk, 1 << 20), Err("it unpacks to more than a document may hold"));
    }
}
