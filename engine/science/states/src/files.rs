//! Files of a note's states. They are read as untrusted input and written atomically.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zstd::zstd_safe;

use crate::errors::StateError;
use crate::memory_slots::SlotWriter;
use crate::pages::{MAX_GUEST_MEMORY_BYTES, PAGE_BYTES};
use crate::records::{MAIN_BRANCH, StateHeads, StateRecord};

/// Length of a page's hash.
pub(crate) const HASH_BYTES: usize = 16;
/// First bytes of a segment.
const SEGMENT_MAGIC: &[u8; 8] = b"TBpages1";
/// Length of a segment's header: the magic and the number of pages. Hashes follow.
const SEGMENT_HEADER_BYTES: usize = 12;
/// Maximum number of pages of a segment, as many as the guest's memory can have.
const MAX_SEGMENT_PAGES: usize = MAX_GUEST_MEMORY_BYTES / PAGE_BYTES;
/// Number of pages that are compressed together. A state that needs one of them decompresses at most 128 kB for it.
const FRAME_PAGES: usize = 32;
/// Maximum number of bytes per page that zstd adds to incompressible data.
const MAX_PAGE_OVERHEAD_BYTES: usize = 64;
/// Maximum size of a state's file, decompressed.
pub(crate) const MAX_STATE_BYTES: usize = 64 << 20;
/// Maximum size of the index, decompressed. The oldest thinned states are dropped first.
pub(crate) const MAX_INDEX_BYTES: usize = 32 << 20;
/// Compression level of zstd.
const COMPRESSION_LEVEL: i32 = 1;
/// Compression level of pages. A kernel that starts waits for them: they take half the time of level 1 to decompress,
/// and up to a third more room.
const PAGE_COMPRESSION_LEVEL: i32 = -5;

pub(crate) type PageHash = [u8; HASH_BYTES];

pub(crate) fn page_hash(page: &[u8]) -> PageHash {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&blake3::hash(page).as_bytes()[..HASH_BYTES]);
    hash
}

/// Returns whether `name` is a valid file name in `states` or `segments`: 32 hexadecimal digits.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Content of a state's file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StateFile {
    /// Hash of the pack. A state can't be used with another pack.
    pub(crate) pack: String,
    /// Size of the memory in bytes.
    pub(crate) memory: usize,
    pub(crate) segments: Vec<String>,
    /// Runs of pages, ascending: first page, number of pages, segment (-1: zeros), first page in the segment.
    pub(crate) runs: Vec<(u32, u32, i64, u32)>,
    pub(crate) record: StateRecord,
}

impl StateFile {
    /// Returns the pages that the state needs of segments: segment name, first page in it, number of pages.
    pub(crate) fn needed_pages(&self) -> impl Iterator<Item = (&str, u32, u32)> {
        self.runs.iter().filter_map(|(_, count, segment, from)| {
            let name = usize::try_from(*segment).ok().and_then(|at| self.segments.get(at))?;
            Some((name.as_str(), *from, *count))
        })
    }
}

/// Writes a file atomically, through a temporary file.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let fail = |source| StateError::write(path, source);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_data().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    // Flush the new name, too. Where folders can't be flushed (Windows), renaming is durable by itself.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all(); // the file system may not be able to
    }
    Ok(())
}

pub(crate) fn damaged(path: &Path) -> StateError {
    StateError::Damaged { path: path.to_owned() }
}

/// Opens a regular file and returns its length. Links, devices and pipes are refused.
pub(crate) fn open_plain(path: &Path) -> Result<(std::fs::File, u64), StateError> {
    let fail = |source| StateError::read(path, source);
    let about = std::fs::symlink_metadata(path).map_err(fail)?;
    if !about.is_file() {
        return Err(damaged(path));
    }
    Ok((std::fs::File::open(path).map_err(fail)?, about.len()))
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read_bounded(path: &Path, most: usize) -> Result<Vec<u8>, StateError> {
    let (file, length) = open_plain(path)?;
    let mut bytes = Vec::new();
    if length <= most as u64 {
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|source| StateError::read(path, source))?;
        if bytes.len() <= most {
            return Ok(bytes);
        }
    }
    Err(damaged(path))
}

fn decompress(bytes: &[u8], most: usize, path: &Path) -> Result<Vec<u8>, StateError> {
    let mut whole = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|source| StateError::read(path, source))?;
    decoder.take(most as u64 + 1).read_to_end(&mut whole).map_err(|_| damaged(path))?;
    if whole.len() > most { Err(damaged(path)) } else { Ok(whole) }
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, StateError> {
    serde_json::to_vec(value).map_err(|error| StateError::Encode(error.to_string()))
}

/// Writes compressed JSON, preceded by its hash. Returns the size of the file in bytes.
fn write_hashed(path: &Path, value: &impl Serialize) -> Result<u64, StateError> {
    let text = encode(value)?;
    let body =
        zstd::encode_all(text.as_slice(), COMPRESSION_LEVEL).map_err(|source| StateError::write(path, source))?;
    let bytes = [page_hash(&body).as_slice(), &body].concat();
    write_whole(path, &bytes)?;
    Ok(bytes.len() as u64)
}

/// Returns the JSON, still compressed, in the bytes of a file of `write_hashed`, whose hash is checked.
fn hashed_body<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a [u8], StateError> {
    let (hash, body) = bytes.split_at_checked(HASH_BYTES).ok_or_else(|| damaged(path))?;
    if hash == page_hash(body) { Ok(body) } else { Err(damaged(path)) }
}

/// Reads a file of `write_hashed` and checks its hash. Returns the JSON, still compressed.
fn read_hashed(path: &Path) -> Result<Vec<u8>, StateError> {
    let mut bytes = read_bounded(path, MAX_STATE_BYTES)?;
    hashed_body(path, &bytes)?;
    bytes.drain(..HASH_BYTES);
    Ok(bytes)
}

/// Reads which states are current. In a folder without states, a fresh kernel is.
///
/// # Errors
/// Returns an error if the file can't be read or is damaged.
pub fn read_heads(folder: &Path) -> Result<StateHeads, StateError> {
    let path = folder.join("heads");
    let fresh = StateHeads {
        branch: MAIN_BRANCH.to_owned(),
        branches: BTreeMap::from([(MAIN_BRANCH.to_owned(), None)]),
        ..StateHeads::default()
    };
    match read_bounded(&path, MAX_STATE_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| damaged(&path)),
        Err(StateError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(fresh),
        Err(why) => Err(why),
    }
}

/// Writes which states are current.
///
/// # Errors
/// Returns an error if the file can't be written.
pub fn write_heads(folder: &Path, heads: &StateHeads) -> Result<(), StateError> {
    write_whole(&folder.join("heads"), &encode(heads)?)
}

/// Returns the ID of a state, a hash of its content.
pub(crate) fn identify(file: &StateFile) -> Result<String, StateError> {
    Ok(blake3::hash(&encode(file)?).to_hex()[..32].to_owned())
}

/// Writes a state and returns the size of its file in bytes.
pub(crate) fn write_state(folder: &Path, file: &StateFile) -> Result<u64, StateError> {
    write_hashed(&folder.join("states").join(&file.record.state), file)
}

/// Reads a state and checks that its runs of pages are ascending and within its memory.
pub(crate) fn read_state(folder: &Path, id: &str) -> Result<StateFile, StateError> {
    if !is_name(id) {
        return Err(StateError::NoSuchState);
    }
    let path = folder.join("states").join(id);
    parse_state(&path, id, &read_bounded(&path, MAX_STATE_BYTES)?)
}

/// Parses the bytes of a state's file at this path, with the same checks.
pub(crate) fn parse_state(path: &Path, id: &str, bytes: &[u8]) -> Result<StateFile, StateError> {
    let text = decompress(hashed_body(path, bytes)?, MAX_STATE_BYTES, path)?;
    let state: StateFile = serde_json::from_slice(&text).map_err(|_| damaged(path))?;
    let mut next = 0;
    let ascending = state.runs.iter().all(|(first, count, segment, from)| {
        let (first, count, from) = (u64::from(*first), u64::from(*count), u64::from(*from));
        let fits = first >= next && *segment < state.segments.len() as i64 && from + count <= MAX_SEGMENT_PAGES as u64;
        next = first + count;
        fits
    });
    let fits = state.memory <= MAX_GUEST_MEMORY_BYTES
        && state.memory.is_multiple_of(PAGE_BYTES)
        && state.record.state == id
        && state.segments.iter().all(|name| is_name(name))
        && ascending
        && next <= (state.memory / PAGE_BYTES) as u64;
    if fits { Ok(state) } else { Err(damaged(path)) }
}

/// Reads the index of states and its size in bytes. A damaged index counts as empty; missing records are read from the
/// states.
pub(crate) fn read_index(folder: &Path) -> (Vec<StateRecord>, u64) {
    let path = folder.join("index");
    let read = read_hashed(&path).and_then(|body| {
        let text = decompress(&body, MAX_INDEX_BYTES, &path)?;
        let records: Vec<StateRecord> = serde_json::from_slice(&text).map_err(|_| damaged(&path))?;
        Ok((records, (HASH_BYTES + body.len()) as u64))
    });
    let (mut records, bytes) = read.unwrap_or_default();
    records.retain(|record| is_name(&record.state));
    (records, bytes)
}

pub(crate) fn write_index(folder: &Path, records: &[&StateRecord]) -> Result<u64, StateError> {
    write_hashed(&folder.join("index"), &records)
}

/// Returns names and sizes of the files in a folder of states or segments. Other files, such as one that was being
/// written when the power failed, are ignored.
pub(crate) fn list_files(folder: &Path) -> HashMap<String, u64> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_name(name))?;
            Some((name, entry.metadata().ok()?.len()))
        })
        .collect()
}

/// Returns the size in bytes of a folder's states, without the caches of packages.
#[must_use]
pub fn folder_bytes(folder: &Path) -> u64 {
    let index = std::fs::symlink_metadata(folder.join("index")).map_or(0, |about| about.len());
    let files = ["states", "segments"].map(|part| list_files(&folder.join(part)));
    index + files.iter().flat_map(HashMap::values).sum::<u64>()
}

/// List of a folder's states.
#[derive(Clone, Debug, Default)]
pub struct ListedStates {
    /// States that can be restored at once, oldest first.
    pub kept: Vec<StateRecord>,
    /// Number of states that can't be read.
    pub damaged: usize,
    /// Number of thinned states. Restoring one of them runs cells again.
    pub thinned: usize,
    /// The state before each thinned one.
    thinned_parents: HashMap<String, Option<String>>,
    /// Size of all files in bytes.
    pub used_bytes: u64,
}

impl ListedStates {
    /// Returns the nearest state before each kept one that is kept, too.
    pub(crate) fn kept_ancestors(&self) -> Vec<Option<String>> {
        let kept: HashSet<&str> = self.kept.iter().map(|record| record.state.as_str()).collect();
        let nearest = |record: &StateRecord| {
            let mut at = record.parent.as_deref();
            // Damaged records may form a circle.
            for _ in 0..=self.thinned_parents.len() {
                let id = at?;
                if kept.contains(id) {
                    return Some(id.to_owned());
                }
                at = self.thinned_parents.get(id)?.as_deref();
            }
            None
        };
        self.kept.iter().map(nearest).collect()
    }
}

/// Lists the states of a folder, and checks each file's hash.
#[must_use]
pub fn list_states(folder: &Path) -> ListedStates {
    let (index, index_bytes) = read_index(folder);
    let (states, segments) = (list_files(&folder.join("states")), list_files(&folder.join("segments")));
    let used_bytes = index_bytes + states.values().chain(segments.values()).sum::<u64>();
    let mut listed = ListedStates { used_bytes, ..ListedStates::default() };
    let mut known = HashSet::new();
    for record in index {
        known.insert(record.state.clone());
        if !states.contains_key(&record.state) {
            listed.thinned += 1;
            listed.thinned_parents.insert(record.state, record.parent);
        } else if read_hashed(&folder.join("states").join(&record.state)).is_ok() {
            listed.kept.push(record);
        } else {
            listed.damaged += 1;
        }
    }
    let others: BTreeSet<&String> = states.keys().filter(|name| !known.contains(*name)).collect();
    for name in others {
        match read_state(folder, name) {
            Ok(state) => listed.kept.push(state.record),
            Err(_) => listed.damaged += 1,
        }
    }
    listed.kept.sort_by(|a, b| (a.time, a.count, &a.state).cmp(&(b.time, b.count, &b.state)));
    listed
}

/// Writes pages as a segment. Returns its name and the size of its file in bytes.
pub(crate) fn write_segment(folder: &Path, pages: &[(PageHash, &[u8])]) -> Result<(String, u64), StateError> {
    let path = folder.join("segments");
    let fail = |source| StateError::write(&path, source);
    let mut bytes = Vec::with_capacity(pages.len() * (HASH_BYTES + PAGE_BYTES / 3));
    bytes.extend_from_slice(SEGMENT_MAGIC);
    bytes.extend_from_slice(&u32::try_from(pages.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (hash, _) in pages {
        bytes.extend_from_slice(hash);
    }
    let mut compressor = zstd::bulk::Compressor::new(PAGE_COMPRESSION_LEVEL).map_err(fail)?;
    let mut frame = Vec::with_capacity(FRAME_PAGES * PAGE_BYTES);
    for part in pages.chunks(FRAME_PAGES) {
        frame.clear();
        part.iter().for_each(|(_, page)| frame.extend_from_slice(page));
        bytes.extend_from_slice(&compressor.compress(&frame).map_err(fail)?);
    }
    let name = blake3::hash(&bytes).to_hex()[..32].to_owned();
    write_whole(&path.join(&name), &bytes)?;
    Ok((name, bytes.len() as u64))
}

/// Returns the number of pages that a segment's header says, and the maximum length of such a segment in bytes.
fn read_segment_header(path: &Path, header: &[u8]) -> Result<(usize, usize), StateError> {
    let count = header.strip_prefix(SEGMENT_MAGIC).and_then(|rest| rest.first_chunk::<4>());
    let count = u32::from_le_bytes(*count.ok_or_else(|| damaged(path))?) as usize;
    if count > MAX_SEGMENT_PAGES {
        return Err(damaged(path));
    }
    Ok((count, SEGMENT_HEADER_BYTES + (count + 1) * (HASH_BYTES + PAGE_BYTES + MAX_PAGE_OVERHEAD_BYTES)))
}

/// Opens a segment. Returns the number of pages in its header, the file after the header, its length, and the header.
fn open_segment(path: &Path) -> Result<(usize, std::fs::File, u64, Vec<u8>), StateError> {
    let (mut file, length) = open_plain(path)?;
    let mut header = vec![0; SEGMENT_HEADER_BYTES];
    file.read_exact(&mut header).map_err(|_| damaged(path))?;
    let (count, most) = read_segment_header(path, &header)?;
    if length > most as u64 { Err(damaged(path)) } else { Ok((count, file, length, header)) }
}

/// Returns the number of pages of a segment.
pub(crate) fn count_pages(folder: &Path, name: &str) -> Result<usize, StateError> {
    Ok(open_segment(&folder.join("segments").join(name))?.0)
}

/// A segment whose hash was checked and whose pages are still compressed.
pub(crate) struct Segment {
    path: PathBuf,
    /// Hash of each page.
    pub(crate) hashes: Vec<PageHash>,
    frames: Vec<SegmentFrame>,
    /// The whole file.
    bytes: Vec<u8>,
    /// Start of the frames in the file.
    body_start: usize,
}

/// Pages that are compressed together.
struct SegmentFrame {
    pages: Range<usize>,
    bytes: Range<usize>,
}

/// Memory that pages are decompressed into.
pub(crate) enum PageTarget<'a> {
    /// The memory of a page.
    Bytes(&'a mut [u8]),
    /// The page with this number in a slot.
    Slot(SlotWriter<'a>, usize),
}

/// Task that decompresses pages of one frame into memory.
pub(crate) struct FrameJob<'a> {
    segment: &'a Segment,
    frame: &'a SegmentFrame,
    /// Index of each page in the frame, ascending, and where to write it.
    wanted: Vec<(usize, PageTarget<'a>)>,
}

impl Segment {
    /// Returns the frames after the hashes, or `None` if they don't have exactly `count` pages in total.
    fn frames(body: &[u8], count: usize) -> Option<Vec<SegmentFrame>> {
        let (mut frames, mut at, mut page) = (Vec::new(), 0, 0);
        while at < body.len() {
            let rest = body.get(at..)?;
            let length = zstd_safe::find_frame_compressed_size(rest).ok().filter(|length| *length > 0)?;
            let pages = match zstd_safe::get_frame_content_size(rest).ok()? {
                Some(bytes) if bytes % PAGE_BYTES as u64 == 0 => usize::try_from(bytes).ok()? / PAGE_BYTES,
                Some(_) => return None,
                // Segments of the first version have one frame, which doesn't contain its length.
                None => count - page,
            };
            let end = page.checked_add(pages).filter(|end| *end <= count)?;
            if frames.len() > count {
                return None; // empty ones, which would take more memory than the pages
            }
            frames.push(SegmentFrame { pages: page..end, bytes: at..at.checked_add(length)? });
            (at, page) = (at + length, end);
        }
        (page == count).then_some(frames)
    }

    /// Returns the tasks that decompress these pages: the page's index in the segment, and where to write it.
    pub(crate) fn jobs<'a>(
        &'a self,
        mut wanted: Vec<(usize, PageTarget<'a>)>,
    ) -> Result<Vec<FrameJob<'a>>, StateError> {
        wanted.sort_by_key(|(at, _)| *at);
        let mut jobs: Vec<FrameJob<'a>> = Vec::new();
        for (at, to) in wanted {
            let number = self.frames.partition_point(|frame| frame.pages.end <= at);
            let frame = self.frames.get(number).ok_or_else(|| damaged(&self.path))?;
            let place = at - frame.pages.start;
            match jobs.last_mut() {
                Some(job) if job.frame.pages == frame.pages => job.wanted.push((place, to)),
                _ => jobs.push(FrameJob { segment: self, frame, wanted: vec![(place, to)] }),
            }
        }
        Ok(jobs)
    }

    /// Decompresses each page and compares it with its hash, so that no page passes for another one later. A frame has
    /// at most `most_frame_pages` pages.
    pub(crate) fn check_pages(&self, most_frame_pages: usize) -> Result<(), StateError> {
        let mut decoder = FrameDecoder::new()?;
        for frame in &self.frames {
            if frame.pages.len() > most_frame_pages {
                return Err(damaged(&self.path));
            }
            let mut pages = vec![0; frame.pages.len() * PAGE_BYTES];
            let wanted = pages.chunks_exact_mut(PAGE_BYTES).map(PageTarget::Bytes).enumerate().collect();
            FrameJob { segment: self, frame, wanted }.run(&mut decoder)?;
            let hashes = self.hashes.get(frame.pages.clone()).unwrap_or_default();
            if pages.chunks_exact(PAGE_BYTES).zip(hashes).any(|(page, hash)| page_hash(page) != *hash) {
                return Err(damaged(&self.path));
            }
        }
        Ok(())
    }

    /// Returns all pages, concatenated.
    pub(crate) fn pages(&self) -> Result<Vec<u8>, StateError> {
        let mut pages = vec![0; self.hashes.len() * PAGE_BYTES];
        let jobs = self.jobs(pages.chunks_exact_mut(PAGE_BYTES).map(PageTarget::Bytes).enumerate().collect())?;
        let mut decoder = FrameDecoder::new()?;
        jobs.into_iter().try_for_each(|job| job.run(&mut decoder))?;
        Ok(pages)
    }
}

/// Decompresses frames one after the other.
pub(crate) struct FrameDecoder {
    decompressor: zstd::bulk::Decompressor<'static>,
    buffer: Vec<u8>,
}

impl FrameDecoder {
    pub(crate) fn new() -> Result<FrameDecoder, StateError> {
        let decompressor = zstd::bulk::Decompressor::new().map_err(StateError::Decompressor)?;
        Ok(FrameDecoder { decompressor, buffer: Vec::new() })
    }
}

impl FrameJob<'_> {
    /// Decompresses the frame, and copies its pages into memory.
    pub(crate) fn run(self, decoder: &mut FrameDecoder) -> Result<(), StateError> {
        let FrameDecoder { decompressor, buffer } = decoder;
        let length = self.frame.pages.len() * PAGE_BYTES;
        buffer.resize(length, 0);
        let fail = || damaged(&self.segment.path);
        let body = self.segment.bytes.get(self.segment.body_start..).ok_or_else(fail)?;
        let compressed = body.get(self.frame.bytes.clone()).ok_or_else(fail)?;
        // Writes at most the length of `buffer`: the length in the frame isn't trusted.
        let read = decompressor.decompress_to_buffer(compressed, buffer.as_mut_slice()).map_err(|_| fail())?;
        if read != length {
            return Err(fail());
        }
        let mut wanted = self.wanted.into_iter().peekable();
        while let Some((at, to)) = wanted.next() {
            match to {
                PageTarget::Bytes(to) => {
                    to.copy_from_slice(buffer.get(at * PAGE_BYTES..(at + 1) * PAGE_BYTES).ok_or_else(fail)?);
                }
                PageTarget::Slot(writer, page) => {
                    // Pages that follow each other in both are written together.
                    let mut count = 1;
                    while wanted
                        .next_if(|(next, to)| {
                            *next == at + count && matches!(to, PageTarget::Slot(_, other) if *other == page + count)
                        })
                        .is_some()
                    {
                        count += 1;
                    }
                    let pages = buffer.get(at * PAGE_BYTES..(at + count) * PAGE_BYTES).ok_or_else(fail)?;
                    writer.write(page * PAGE_BYTES, pages).map_err(StateError::SlotFull)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a segment, and checks its hash.
pub(crate) fn read_segment(folder: &Path, name: &str) -> Result<Segment, StateError> {
    let path = folder.join("segments").join(name);
    let (count, file, length, mut bytes) = open_segment(&path)?;
    bytes.reserve_exact(usize::try_from(length).unwrap_or_default());
    let most = (count + 1) * (HASH_BYTES + PAGE_BYTES + MAX_PAGE_OVERHEAD_BYTES);
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|source| StateError::read(&path, source))?;
    parse_segment(path, name, bytes)
}

/// Parses the bytes of a segment's file at this path, and checks that its hash is its name.
pub(crate) fn parse_segment(path: PathBuf, name: &str, bytes: Vec<u8>) -> Result<Segment, StateError> {
    if blake3::hash(&bytes).to_hex()[..32] != *name {
        return Err(damaged(&path));
    }
    let (count, _) = read_segment_header(&path, &bytes)?;
    let rest = bytes.get(SEGMENT_HEADER_BYTES..).unwrap_or_default();
    let (hashes, _) = rest.split_at_checked(count * HASH_BYTES).ok_or_else(|| damaged(&path))?;
    let (hashes, _) = hashes.as_chunks::<HASH_BYTES>();
    let hashes = hashes.to_vec();
    // The frames aren't copied: a large data frame's are tens of megabytes.
    let body_start = SEGMENT_HEADER_BYTES + count * HASH_BYTES;
    let body = bytes.get(body_start..).unwrap_or_default();
    let frames = Segment::frames(body, count).ok_or_else(|| damaged(&path))?;
    Ok(Segment { path, hashes, frames, bytes, body_start })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of pages, more than one frame has.
    const PAGES: usize = 2 * FRAME_PAGES + 5;

    fn pages() -> Vec<Vec<u8>> {
        (0..PAGES).map(|number| vec![u8::try_from(number).expect("a byte"); PAGE_BYTES]).collect()
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("segments")).expect("made");
        folder
    }

    fn header(count: usize) -> Vec<u8> {
        let mut bytes = SEGMENT_MAGIC.to_vec();
        bytes.extend_from_slice(&u32::try_from(count).expect("a count").to_le_bytes());
        bytes.resize(SEGMENT_HEADER_BYTES + count * HASH_BYTES, 7);
        bytes
    }

    /// Writes a segment file under the name that matches its content.
    fn write(folder: &Path, bytes: &[u8]) -> String {
        let name = blake3::hash(bytes).to_hex()[..32].to_owned();
        std::fs::write(folder.join("segments").join(&name), bytes).expect("written");
        name
    }

    #[test]
    fn only_frames_with_wanted_pages_are_decompressed() {
        let (folder, pages) = (folder(), pages());
        let hashed: Vec<(PageHash, &[u8])> = pages.iter().map(|page| (page_hash(page), page.as_slice())).collect();
        let (name, _) = write_segment(folder.path(), &hashed).expect("written");
        let segment = read_segment(folder.path(), &name).expect("read");
        assert_eq!(segment.pages().expect("decompressed"), pages.concat());
        // In any order, with one page twice.
        let wanted = [PAGES - 1, FRAME_PAGES - 1, 0, PAGES - 1];
        let mut places = vec![vec![0; PAGE_BYTES]; wanted.len()];
        let to = wanted.iter().copied().zip(places.iter_mut().map(|page| PageTarget::Bytes(page))).collect();
        let jobs = segment.jobs(to).expect("pages of it");
        assert_eq!(jobs.len(), 2, "the frame in the middle isn't needed");
        let mut decoder = FrameDecoder::new().expect("memory");
        jobs.into_iter().try_for_each(|job| job.run(&mut decoder)).expect("decompressed");
        assert!(wanted.iter().zip(&places).all(|(number, page)| *page == pages[*number]));
        assert!(
            segment.jobs(vec![(PAGES, PageTarget::Bytes(&mut [0; PAGE_BYTES]))]).is_err(),
            "a page that it doesn't have"
        );
    }

    #[test]
    fn a_segment_of_one_frame_without_its_length_is_read() {
        let (folder, pages) = (folder(), pages());
        let mut encoder = zstd::Encoder::new(header(PAGES), COMPRESSION_LEVEL).expect("an encoder");
        pages.iter().for_each(|page| encoder.write_all(page).expect("compressed"));
        let name = write(folder.path(), &encoder.finish().expect("compressed"));
        let segment = read_segment(folder.path(), &name).expect("read");
        assert_eq!(segment.pages().expect("decompressed"), pages.concat());
    }

    #[test]
    fn frames_that_do_not_fit_are_refused() {
        let frame = |bytes: usize| zstd::bulk::compress(&vec![1; bytes], COMPRESSION_LEVEL).expect("compressed");
        let pages = |count: usize| frame(count * PAGE_BYTES);
        let refused: [&[Vec<u8>]; 7] = [
            &[],                                        // no frame at all
            &[pages(2)],                                // too few pages
            &[pages(2), pages(2)],                      // too many
            &[pages(3), vec![1; 9]],                    // something else behind them
            &[frame(3 * PAGE_BYTES - 1), frame(1)],     // no whole pages
            &[pages(3)[..pages(3).len() - 1].to_vec()], // cut
            &[vec![0; 40]],                             // nothing of zstd's
        ];
        let folder = folder();
        for (number, frames) in refused.into_iter().enumerate() {
            let name = write(folder.path(), &[header(3), frames.concat()].concat());
            let read = read_segment(folder.path(), &name).and_then(|segment| segment.pages());
            assert!(matches!(read, Err(StateError::Damaged { .. })), "forgery {number}");
        }
        // A frame with more pages than it claims, and one with fewer.
        for (says, holds) in [(3, 4), (4, 3)] {
            let mut lies = pages(holds);
            // The length comes after magic, descriptor and an optional window, so search for it.
            let length = u32::try_from(holds * PAGE_BYTES).expect("a length");
            let field = [length - 256, length].iter().find_map(|value| {
                let width = if *value == length { 4 } else { 2 };
                let bytes = value.to_le_bytes();
                let at = lies[4..14].windows(width).position(|part| *part == bytes[..width])? + 4;
                Some((at, width, length - value))
            });
            let (at, width, less) = field.expect("the length of the frame");
            let other = u32::try_from(says * PAGE_BYTES).expect("a length") - less;
            lies[at..at + width].copy_from_slice(&other.to_le_bytes()[..width]);
            let name = write(folder.path(), &[header(says), lies].concat());
            let read = read_segment(folder.path(), &name).and_then(|segment| segment.pages());
            assert!(matches!(read, Err(StateError::Damaged { .. })), "{holds} pages that say {says}");
        }
    }
}
