//! Saved states of a note's kernel: pages of memory by their hash, and one file for each state.
//!
//! A folder for each note:
//! - `segments/HASH`: pages that were new with one state. Header, a hash for each page, then the pages, compressed with
//!   zstd. The name is the hash of the file.
//! - `states/ID`: one state, compressed JSON behind its own hash: parent, code, names, and where each page lies.
//! - `heads`: which state is current, on which branch, and what can be done again.
//!
//! All files are written beside their name, flushed to the disk and renamed: a crash leaves the state before. Files are
//! read as untrusted input: bounded, and checked by hash.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a kernel may use of memory.
pub const MAX_GUEST_MEMORY_BYTES: usize = 2 << 30;
/// Memory is compared and kept in pieces of this size.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a page's hash.
const HASH_BYTES: usize = 16;
/// How segments begin.
const SEGMENT_MAGIC: &[u8; 8] = b"TBpages1";
/// Pages that a segment may have: what the guest's memory can hold.
const MAX_SEGMENT_PAGES: usize = MAX_GUEST_MEMORY_BYTES / PAGE_BYTES;
/// The largest file that describes a state, decompressed.
const MAX_STATE_BYTES: usize = 64 << 20;
/// zstd's level: memory compresses to a third at any, and level 1 is the fastest.
const COMPRESSION_LEVEL: i32 = 1;
/// Names of variables that a state lists.
const MAX_LISTED_NAMES: usize = 1_000;
/// The branch on which a note begins.
pub const MAIN_BRANCH: &str = "main";
/// How long a kernel waits for another one that is ending.
const LOCK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// Longest name of a branch, in bytes.
const MAX_BRANCH_BYTES: usize = 100;

/// Why a state can't be saved, read or made the current one.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A state can't be described.
    #[error("the state can't be described: {0}")]
    Encode(String),
    /// A state was saved by another pack.
    #[error("they were saved by another version of the science pack")]
    OtherPack,
    /// A file can't be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file can't be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file's content isn't what it was when it was written.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Another kernel writes there.
    #[error("another program uses {path}; close it and run the cell again")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// There is no such state.
    #[error("this state is not there; `tracebook kernels states NOTE` lists them")]
    NoSuchState,
    /// No cell has run.
    #[error("there is no run to undo")]
    NothingToUndo,
    /// No run was undone.
    #[error("there is no undone run to redo")]
    NothingToRedo,
    /// The name of a branch can't be used.
    #[error("{name:?} can't name a fork: use up to 100 letters, digits, spaces, dots, - and _")]
    BranchName {
        /// The name.
        name: String,
    },
    /// A branch has this name already.
    #[error("there is a fork {name:?} already; choose another name")]
    BranchExists {
        /// The name.
        name: String,
    },
    /// No branch has this name.
    #[error("there is no fork {name:?}; `tracebook kernels states NOTE` lists them")]
    NoSuchBranch {
        /// The name.
        name: String,
    },
    /// The current branch can't go.
    #[error("{name:?} is the current fork; switch to another one first")]
    CurrentBranch {
        /// The name.
        name: String,
    },
}

impl StateError {
    fn read(path: &Path, source: std::io::Error) -> StateError {
        StateError::Read { path: path.to_owned(), source }
    }

    fn write(path: &Path, source: std::io::Error) -> StateError {
        StateError::Write { path: path.to_owned(), source }
    }
}

type PageHash = [u8; HASH_BYTES];

/// Where a page of memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePlace {
    /// As in an instance that has run nothing.
    Fresh,
    /// All zeros.
    Zero,
    /// In a segment: its number in `StateFolder::segments`, and the page's place in it.
    Segment(u32, u32),
}

/// What a state says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// Its id: what it is by content, 32 hexadecimal digits.
    pub state: String,
    /// The state that it came from; `None`: a fresh kernel.
    pub parent: Option<String>,
    /// The cell that made it, as tracebacks call it.
    pub cell: String,
    /// The execution that made it.
    pub execution: String,
    /// Names that the cell defined.
    pub defined: Vec<String>,
    /// Names that existed and that the cell changed.
    pub changed: Vec<String>,
    /// Bytes that it added to the disk.
    pub bytes: u64,
    /// When it was saved, in milliseconds since 1970.
    pub time: u64,
    /// The code of the cell.
    pub code: String,
    /// How many cells had run.
    pub count: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StateFile {
    /// The pack by its hash: a state fits no other one.
    pack: String,
    /// Bytes of memory.
    memory: usize,
    segments: Vec<String>,
    /// Runs of pages: first page, how many, segment (-1: zeros), first page in the segment.
    runs: Vec<(u32, u32, i64, u32)>,
    record: StateRecord,
}

/// Which states are current.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHeads {
    /// The current branch.
    pub branch: String,
    /// Each branch's state; `None` is a fresh kernel.
    pub branches: BTreeMap<String, Option<String>>,
    /// States that an undo left, the last one last, by branch.
    pub redo: BTreeMap<String, Vec<String>>,
    /// States that are never thinned.
    pub pinned: BTreeSet<String>,
}

impl StateHeads {
    /// The current state.
    #[must_use]
    pub fn current(&self) -> Option<&str> {
        self.branches.get(&self.branch)?.as_deref()
    }
}

/// What memory was when it was saved last.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, in whole pages.
    pub bytes: Vec<u8>,
    /// Where each page lies.
    pub places: Vec<PagePlace>,
}

/// Pages that differ from what was saved last.
pub struct ChangedPages {
    /// Bytes of memory now.
    pub memory: usize,
    /// Their numbers, ascending.
    pub numbers: Vec<u32>,
    /// Their bytes, one after the other.
    pub bytes: Vec<u8>,
}

impl SavedMemory {
    /// The memory of an instance that has run nothing.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        SavedMemory { bytes: memory.to_vec(), places: vec![PagePlace::Fresh; memory.len() / PAGE_BYTES] }
    }

    /// Compares memory with what was saved, and takes over what differs.
    #[must_use]
    pub fn take_changes(&mut self, memory: &[u8]) -> ChangedPages {
        let mut changed = ChangedPages { memory: memory.len(), numbers: Vec::new(), bytes: Vec::new() };
        if self.bytes.len() < memory.len() {
            self.bytes.resize(memory.len(), 0);
            // What memory grows by is zero.
            self.places.resize(memory.len() / PAGE_BYTES, PagePlace::Zero);
        }
        let pages = memory.chunks_exact(PAGE_BYTES).zip(self.bytes.chunks_exact_mut(PAGE_BYTES));
        for (number, (now, saved)) in (0u32..).zip(pages) {
            if now != saved {
                saved.copy_from_slice(now);
                changed.numbers.push(number);
                changed.bytes.extend_from_slice(now);
            }
        }
        changed
    }
}

/// A note's folder of states, opened for writing by one kernel.
pub struct StateFolder {
    folder: PathBuf,
    pack: String,
    /// Names of the segments that are known by number.
    segments: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Pages of the known segments.
    known: HashMap<PageHash, PagePlace>,
    heads: StateHeads,
    /// Held while this is open: a kernel that is ending still writes.
    _lock: std::fs::File,
}

fn page_hash(page: &[u8]) -> PageHash {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&blake3::hash(page).as_bytes()[..HASH_BYTES]);
    hash
}

fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a branch may be called so.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty() && name.len() <= MAX_BRANCH_BYTES && name.chars().all(plain) && name.trim() == name
}

/// Writes a file whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let fail = |source| StateError::write(path, source);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_data().map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    // The name is on the disk, too. Where folders can't be flushed (Windows), renaming is durable by itself.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all(); // the file system may not be able to
    }
    Ok(())
}

fn damaged(path: &Path) -> StateError {
    StateError::Damaged { path: path.to_owned() }
}

fn decompress(bytes: &[u8], most: usize, path: &Path) -> Result<Vec<u8>, StateError> {
    let mut whole = Vec::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|source| StateError::read(path, source))?;
    decoder.take(most as u64 + 1).read_to_end(&mut whole).map_err(|_| damaged(path))?;
    if whole.len() > most { Err(damaged(path)) } else { Ok(whole) }
}

/// Reads which states are current. A folder without states has none.
///
/// # Errors
/// The file can't be read or is damaged.
pub fn read_heads(folder: &Path) -> Result<StateHeads, StateError> {
    let path = folder.join("heads");
    let fresh = StateHeads {
        branch: MAIN_BRANCH.to_owned(),
        branches: BTreeMap::from([(MAIN_BRANCH.to_owned(), None)]),
        ..StateHeads::default()
    };
    match std::fs::read(&path) {
        Ok(bytes) if bytes.len() > MAX_STATE_BYTES => Err(damaged(&path)),
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| damaged(&path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(fresh),
        Err(source) => Err(StateError::read(&path, source)),
    }
}

/// Writes which states are current.
///
/// # Errors
/// The file can't be written.
pub fn write_heads(folder: &Path, heads: &StateHeads) -> Result<(), StateError> {
    let bytes = serde_json::to_vec(heads).map_err(|error| StateError::Encode(error.to_string()))?;
    write_whole(&folder.join("heads"), &bytes)
}

fn read_state(folder: &Path, id: &str) -> Result<StateFile, StateError> {
    let path = folder.join("states").join(id);
    if !is_name(id) {
        return Err(damaged(&path));
    }
    let bytes = std::fs::read(&path).map_err(|source| StateError::read(&path, source))?;
    let (hash, body) = bytes.split_at_checked(HASH_BYTES).ok_or_else(|| damaged(&path))?;
    if hash != page_hash(body) {
        return Err(damaged(&path));
    }
    let text = decompress(body, MAX_STATE_BYTES, &path)?;
    let state: StateFile = serde_json::from_slice(&text).map_err(|_| damaged(&path))?;
    let fits = state.memory <= MAX_GUEST_MEMORY_BYTES
        && state.memory.is_multiple_of(PAGE_BYTES)
        && state.record.state == id
        && state.segments.iter().all(|name| is_name(name));
    if fits { Ok(state) } else { Err(damaged(&path)) }
}

/// The states of a folder, oldest first. Damaged ones are left out and counted.
#[must_use]
pub fn list_states(folder: &Path) -> (Vec<StateRecord>, usize) {
    let mut records = Vec::new();
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder.join("states")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_name(&name) {
            continue; // one that was being written when the power failed
        }
        match read_state(folder, &name) {
            Ok(state) => records.push(state.record),
            Err(_) => damaged += 1,
        }
    }
    records.sort_by(|a, b| (a.time, a.count, &a.state).cmp(&(b.time, b.count, &b.state)));
    (records, damaged)
}

/// Waits until no other kernel writes in the folder.
fn lock_folder(folder: &Path) -> Result<std::fs::File, StateError> {
    let path = folder.join("lock");
    let file = std::fs::File::create(&path).map_err(|source| StateError::write(&path, source))?;
    let asked = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if asked.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(std::fs::TryLockError::WouldBlock) => return Err(StateError::InUse { path: folder.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => return Err(StateError::write(&path, source)),
        }
    }
}

impl StateFolder {
    /// Opens a note's folder, and makes it if it isn't there.
    ///
    /// # Errors
    /// It can't be made or read.
    pub fn open(folder: &Path, pack: &str) -> Result<StateFolder, StateError> {
        for part in ["segments", "states"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(|source| StateError::write(&path, source))?;
        }
        let lock = lock_folder(folder)?;
        Ok(StateFolder {
            folder: folder.to_owned(),
            pack: pack.to_owned(),
            segments: Vec::new(),
            numbers: HashMap::new(),
            known: HashMap::new(),
            heads: read_heads(folder)?,
            _lock: lock,
        })
    }

    /// Which states are current.
    #[must_use]
    pub fn heads(&self) -> &StateHeads {
        &self.heads
    }

    /// Makes other states current.
    ///
    /// # Errors
    /// That can't be written; then nothing has changed.
    pub fn set_heads(&mut self, heads: StateHeads) -> Result<(), StateError> {
        write_heads(&self.folder, &heads)?;
        self.heads = heads;
        Ok(())
    }

    /// A state's own words.
    ///
    /// # Errors
    /// It isn't there or is damaged.
    pub fn record(&self, id: &str) -> Result<StateRecord, StateError> {
        Ok(read_state(&self.folder, id)?.record)
    }

    /// The states that led to this one, itself last.
    #[must_use]
    pub fn lineage(&self, id: Option<&str>) -> Vec<StateRecord> {
        let mut line = Vec::new();
        let mut next = id.map(ToOwned::to_owned);
        let mut seen = BTreeSet::new();
        while let Some(id) = next.take().filter(|id| seen.insert(id.clone())) {
            let Ok(record) = self.record(&id) else { break };
            next.clone_from(&record.parent);
            line.push(record);
        }
        line.reverse();
        line
    }

    /// Keeps what has changed as a state after the current one, which it becomes. `saved` learns where pages lie.
    ///
    /// # Errors
    /// The disk refuses; then the state before stays current.
    pub fn save(
        &mut self,
        saved: &mut Vec<PagePlace>,
        changes: &ChangedPages,
        mut record: StateRecord,
    ) -> Result<StateRecord, StateError> {
        saved.resize(changes.memory / PAGE_BYTES, PagePlace::Zero);
        let mut new: Vec<(PageHash, &[u8])> = Vec::new();
        let next = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        let mut places = HashMap::new();
        for (number, page) in changes.numbers.iter().zip(changes.bytes.chunks_exact(PAGE_BYTES)) {
            let place = if page.iter().all(|byte| *byte == 0) {
                PagePlace::Zero
            } else {
                let hash = page_hash(page);
                match self.known.get(&hash).or_else(|| places.get(&hash)) {
                    Some(place) => *place,
                    None => {
                        let place = PagePlace::Segment(next, u32::try_from(new.len()).unwrap_or(u32::MAX));
                        new.push((hash, page));
                        places.insert(hash, place);
                        place
                    }
                }
            };
            if let Some(slot) = saved.get_mut(*number as usize) {
                *slot = place;
            }
        }
        let mut bytes = 0;
        if !new.is_empty() {
            let (name, size) = self.write_segment(&new)?;
            bytes += size;
            self.numbers.insert(name.clone(), next);
            self.segments.push(name);
            self.known.extend(places);
        }
        record.parent = self.heads.current().map(ToOwned::to_owned);
        record.defined.truncate(MAX_LISTED_NAMES);
        record.changed.truncate(MAX_LISTED_NAMES);
        record.bytes = bytes;
        let mut file = self.describe(saved, changes.memory, record);
        let identity = serde_json::to_vec(&file).map_err(|error| StateError::Encode(error.to_string()))?;
        file.record.state = blake3::hash(&identity).to_hex()[..32].to_owned();
        let text = serde_json::to_vec(&file).map_err(|error| StateError::Encode(error.to_string()))?;
        let path = self.folder.join("states").join(&file.record.state);
        let body =
            zstd::encode_all(text.as_slice(), COMPRESSION_LEVEL).map_err(|source| StateError::write(&path, source))?;
        write_whole(&path, &[page_hash(&body).as_slice(), &body].concat())?;
        let mut heads = self.heads.clone();
        let branch = heads.branch.clone();
        heads.branches.insert(branch.clone(), Some(file.record.state.clone()));
        heads.redo.remove(&branch);
        self.set_heads(heads)?;
        let mut record = file.record;
        record.bytes += body.len() as u64;
        Ok(record)
    }

    fn write_segment(&self, pages: &[(PageHash, &[u8])]) -> Result<(String, u64), StateError> {
        let path = self.folder.join("segments");
        let fail = |source| StateError::write(&path, source);
        let mut bytes = Vec::with_capacity(pages.len() * (HASH_BYTES + PAGE_BYTES / 3));
        bytes.extend_from_slice(SEGMENT_MAGIC);
        bytes.extend_from_slice(&u32::try_from(pages.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (hash, _) in pages {
            bytes.extend_from_slice(hash);
        }
        let mut encoder = zstd::Encoder::new(bytes, COMPRESSION_LEVEL).map_err(fail)?;
        for (_, page) in pages {
            encoder.write_all(page).map_err(fail)?;
        }
        let bytes = encoder.finish().map_err(fail)?;
        let name = blake3::hash(&bytes).to_hex()[..32].to_owned();
        write_whole(&path.join(&name), &bytes)?;
        Ok((name, bytes.len() as u64))
    }

    fn describe(&self, places: &[PagePlace], memory: usize, record: StateRecord) -> StateFile {
        let mut used: BTreeMap<u32, i64> = BTreeMap::new();
        let mut file = StateFile { pack: self.pack.clone(), memory, record, ..StateFile::default() };
        for (page, place) in (0u32..).zip(places) {
            let (segment, at) = match *place {
                PagePlace::Fresh => continue,
                PagePlace::Zero => (-1, 0),
                PagePlace::Segment(segment, at) => {
                    let number = *used.entry(segment).or_insert_with(|| {
                        file.segments.push(self.segments.get(segment as usize).cloned().unwrap_or_default());
                        file.segments.len() as i64 - 1
                    });
                    (number, at)
                }
            };
            match file.runs.last_mut() {
                Some((first, count, known, from))
                    if *first + *count == page && *known == segment && (segment < 0 || *from + *count == at) =>
                {
                    *count += 1;
                }
                _ => file.runs.push((page, 1, segment, at)),
            }
        }
        file
    }

    /// Reads a state over a fresh instance's memory.
    ///
    /// # Errors
    /// It isn't there, is damaged, or belongs to another pack.
    pub fn load(&mut self, id: &str, fresh: &[u8]) -> Result<SavedMemory, StateError> {
        let state = read_state(&self.folder, id)?;
        if state.pack != self.pack {
            return Err(StateError::OtherPack);
        }
        let path = self.folder.join("states").join(id);
        if state.memory < fresh.len() {
            return Err(damaged(&path));
        }
        let mut memory = SavedMemory::of_fresh(fresh);
        memory.bytes.resize(state.memory, 0);
        memory.places.resize(state.memory / PAGE_BYTES, PagePlace::Zero);
        let mut runs: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); state.segments.len()];
        for (first, count, segment, from) in state.runs {
            let (first, count, from) = (first as usize, count as usize, from as usize);
            let places = first.checked_add(count).and_then(|end| memory.places.get_mut(first..end));
            let places = places.ok_or_else(|| damaged(&path))?;
            if segment < 0 {
                places.fill(PagePlace::Zero);
                memory.bytes[first * PAGE_BYTES..(first + count) * PAGE_BYTES].fill(0);
            } else {
                let of = usize::try_from(segment).ok().and_then(|at| runs.get_mut(at));
                of.ok_or_else(|| damaged(&path))?.push((first, count, from));
            }
        }
        for (name, runs) in state.segments.iter().zip(runs) {
            let (number, pages) = self.read_segment(name)?;
            for (first, count, from) in runs {
                let bytes = pages.get(from * PAGE_BYTES..(from + count) * PAGE_BYTES).ok_or_else(|| damaged(&path))?;
                memory.bytes[first * PAGE_BYTES..(first + count) * PAGE_BYTES].copy_from_slice(bytes);
                for (place, at) in memory.places[first..first + count].iter_mut().zip(from..) {
                    *place = PagePlace::Segment(number, u32::try_from(at).unwrap_or(u32::MAX));
                }
            }
        }
        Ok(memory)
    }

    /// Reads a segment's pages, and learns their hashes.
    fn read_segment(&mut self, name: &str) -> Result<(u32, Vec<u8>), StateError> {
        let path = self.folder.join("segments").join(name);
        let bytes = std::fs::read(&path).map_err(|source| StateError::read(&path, source))?;
        if blake3::hash(&bytes).to_hex()[..32] != *name {
            return Err(damaged(&path));
        }
        let body = bytes.strip_prefix(SEGMENT_MAGIC).and_then(|rest| rest.split_first_chunk::<4>());
        let (count, rest) = body.ok_or_else(|| damaged(&path))?;
        let count = u32::from_le_bytes(*count) as usize;
        if count > MAX_SEGMENT_PAGES {
            return Err(damaged(&path));
        }
        let (hashes, rest) = rest.split_at_checked(count * HASH_BYTES).ok_or_else(|| damaged(&path))?;
        let pages = decompress(rest, count * PAGE_BYTES, &path)?;
        if pages.len() != count * PAGE_BYTES {
            return Err(damaged(&path));
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
                self.segments.push(name.to_owned());
                self.numbers.insert(name.to_owned(), number);
                for (at, hash) in (0u32..).zip(hashes.chunks_exact(HASH_BYTES)) {
                    let mut key = [0; HASH_BYTES];
                    key.copy_from_slice(hash);
                    self.known.entry(key).or_insert(PagePlace::Segment(number, at));
                }
                number
            }
        };
        Ok((number, pages))
    }
}

/// Which state is to be current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateMove {
    /// The one before the current one.
    Undo,
    /// The one that the last undo left.
    Redo,
    /// None: a fresh kernel.
    Fresh,
    /// This one.
    To(String),
    /// The current one, on a new branch of this name.
    Fork(String),
    /// The last one of the branch of this name.
    Switch(String),
    /// The branch of this name goes; not the current one.
    Discard(String),
    /// The current branch goes on from the state of the branch of this name, which goes.
    Adopt(String),
}

impl StateMove {
    /// Reads a move from a message: `{"move": "undo"}`, and `name` or `state` where it needs one.
    #[must_use]
    pub fn from_json(content: &serde_json::Value) -> Option<StateMove> {
        let text = |key: &str| content[key].as_str().map(ToOwned::to_owned);
        Some(match content["move"].as_str()? {
            "undo" => StateMove::Undo,
            "redo" => StateMove::Redo,
            "fresh" => StateMove::Fresh,
            "to" => StateMove::To(text("state")?),
            "fork" => StateMove::Fork(text("name")?),
            "switch" => StateMove::Switch(text("name")?),
            "discard" => StateMove::Discard(text("name")?),
            "adopt" => StateMove::Adopt(text("name")?),
            _ => return None,
        })
    }

    /// The message that `from_json` reads.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            StateMove::Undo => serde_json::json!({"move": "undo"}),
            StateMove::Redo => serde_json::json!({"move": "redo"}),
            StateMove::Fresh => serde_json::json!({"move": "fresh"}),
            StateMove::To(state) => serde_json::json!({"move": "to", "state": state}),
            StateMove::Fork(name) => serde_json::json!({"move": "fork", "name": name}),
            StateMove::Switch(name) => serde_json::json!({"move": "switch", "name": name}),
            StateMove::Discard(name) => serde_json::json!({"move": "discard", "name": name}),
            StateMove::Adopt(name) => serde_json::json!({"move": "adopt", "name": name}),
        }
    }

    /// The heads after the move. `record` reads a state.
    ///
    /// # Errors
    /// There is nothing to undo or to redo, or no such state or branch, or the name can't be used.
    pub fn apply(
        &self,
        heads: &StateHeads,
        record: &dyn Fn(&str) -> Option<StateRecord>,
    ) -> Result<StateHeads, StateError> {
        let mut heads = heads.clone();
        let branch = heads.branch.clone();
        let current = heads.current().map(ToOwned::to_owned);
        match self {
            StateMove::Undo => {
                let current = current.ok_or(StateError::NothingToUndo)?;
                let parent = record(&current).ok_or(StateError::NoSuchState)?.parent;
                heads.redo.entry(branch.clone()).or_default().push(current);
                heads.branches.insert(branch, parent);
            }
            StateMove::Redo => {
                let next = heads.redo.get_mut(&branch).and_then(Vec::pop).ok_or(StateError::NothingToRedo)?;
                heads.branches.insert(branch, Some(next));
            }
            StateMove::Fresh => {
                heads.redo.remove(&branch);
                heads.branches.insert(branch, None);
            }
            StateMove::To(id) => {
                record(id).ok_or(StateError::NoSuchState)?;
                heads.redo.remove(&branch);
                heads.branches.insert(branch, Some(id.clone()));
            }
            StateMove::Fork(name) => {
                if !is_branch_name(name) {
                    return Err(StateError::BranchName { name: name.clone() });
                }
                if heads.branches.contains_key(name) {
                    return Err(StateError::BranchExists { name: name.clone() });
                }
                heads.branches.insert(name.clone(), current);
                heads.branch.clone_from(name);
            }
            StateMove::Switch(name) => {
                if !heads.branches.contains_key(name) {
                    return Err(StateError::NoSuchBranch { name: name.clone() });
                }
                heads.branch.clone_from(name);
            }
            StateMove::Discard(name) | StateMove::Adopt(name) if *name == branch => {
                return Err(StateError::CurrentBranch { name: name.clone() });
            }
            StateMove::Discard(name) => {
                heads.branches.remove(name).ok_or_else(|| StateError::NoSuchBranch { name: name.clone() })?;
                heads.redo.remove(name);
            }
            StateMove::Adopt(name) => {
                let state = heads.branches.remove(name);
                let state = state.ok_or_else(|| StateError::NoSuchBranch { name: name.clone() })?;
                heads.redo.remove(name);
                heads.redo.remove(&branch);
                heads.branches.insert(branch, state);
            }
        }
        Ok(heads)
    }
}
