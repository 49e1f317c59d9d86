//! A note's folder of states, opened for writing by one kernel.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::errors::StateError;
use crate::files::{
    self, FrameDecoder, FrameJob, PageHash, PageTarget, Segment, StateFile, damaged, is_name, page_hash, read_heads,
    read_index, read_state, write_heads,
};
use crate::kernel_memory::KernelMemory;
use crate::mapped_memory::MappedMemory;
use crate::memory_slots::MemorySlots;
use crate::pages::{PAGE_BYTES, PagePlace};
use crate::records::{StateHeads, StateRecord};
use crate::retention::Tending;
use crate::saved_memory::{ChangedPages, FreshIsLarger, SavedMemory, is_zero};

/// Time that a kernel waits for another one that is ending.
pub(crate) const LOCK_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// Interval between attempts to take the lock.
const LOCK_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(5);
/// Maximum number of variable names that a state lists.
pub(crate) const MAX_LISTED_NAMES: usize = 1_000;
/// Maximum length in bytes of a variable's name that a state lists. Code can make longer ones.
const MAX_LISTED_NAME_BYTES: usize = 200;
/// Maximum number of states that are missing in the index while cells run.
const MAX_UNINDEXED_STATES: usize = 64;
/// Maximum number of states missing in the index when the kernel ends. Each is a file to read at the next start.
const MAX_UNINDEXED_STATES_AT_END: usize = 8;

/// Maximum number of threads that read a state.
const MAX_READING_THREADS: usize = 4;
/// Maximum number of times that compaction moves a page while the folder is open.
const MAX_MOVES_OF_A_PAGE: usize = 1_000;

/// Plan for making a state current: load a base state, then run the cells of the states after it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The state to load; `None`: a fresh kernel.
    pub base: Option<String>,
    /// States whose cells run again, in this order. Empty if the state itself is kept.
    pub cells: Vec<StateRecord>,
}

/// A note's folder of states, opened for writing by one kernel.
pub struct StateFolder {
    pub(crate) folder: PathBuf,
    pub(crate) pack: String,
    /// Names of segments, indexed by their number.
    segments: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Segments whose pages are in `known`.
    learned: HashSet<u32>,
    /// Segments of loaded states whose pages aren't in `known` yet.
    loaded: Vec<(u32, Segment)>,
    /// Places of stored pages, by hash.
    known: HashMap<PageHash, PagePlace>,
    /// New places of pages that compaction moved, by old place.
    moved: HashMap<PagePlace, PagePlace>,
    heads: StateHeads,
    /// Records of states by ID, including thinned states.
    pub(crate) records: HashMap<String, StateRecord>,
    /// Size of each kept state's file in bytes, by ID.
    pub(crate) kept: HashMap<String, u64>,
    pub(crate) segment_bytes: HashMap<String, u64>,
    index_bytes: u64,
    unindexed: usize,
    /// Changed pages of a cell whose state couldn't be written. The next state includes them.
    unsaved: BTreeMap<u32, Vec<u8>>,
    /// Whether the last save failed, so that the kernel's variables aren't those of the current state.
    pub(crate) is_behind: bool,
    /// The branch to return to while another one is visited.
    pub(crate) own_branch: Option<String>,
    /// Maximum size of the folder in bytes; `None` is unlimited.
    pub(crate) budget_bytes: Option<u64>,
    /// Size in bytes above which thinning starts.
    pub(crate) tend_above_bytes: u64,
    pub(crate) tending: Option<Tending>,
    /// Why `heads` was set aside as damaged, if it was.
    set_aside: Option<StateError>,
    /// Lock held while the folder is open for writing, because an ending kernel still writes.
    _lock: Option<std::fs::File>,
}

/// Locks the folder, after waiting until no other kernel writes in it.
pub(crate) fn lock_folder(folder: &Path, timeout: std::time::Duration) -> Result<std::fs::File, StateError> {
    let path = folder.join("lock");
    let open = std::fs::OpenOptions::new().create(true).write(true).truncate(false).open(&path);
    let file = open.map_err(|source| StateError::write(&path, source))?;
    let asked = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if asked.elapsed() < timeout => {
                std::thread::sleep(LOCK_CHECK_INTERVAL);
            }
            Err(std::fs::TryLockError::WouldBlock) => return Err(StateError::InUse { path: folder.to_owned() }),
            Err(std::fs::TryLockError::Error(source)) => return Err(StateError::write(&path, source)),
        }
    }
}

impl StateFolder {
    /// Opens a note's folder, and creates it if it doesn't exist. Damaged heads are set aside, and the note starts
    /// over.
    ///
    /// # Errors
    /// Returns an error if the folder can't be created or read, or another kernel uses it.
    pub fn open(folder: &Path, pack: &str) -> Result<StateFolder, StateError> {
        StateFolder::open_within(folder, pack, LOCK_TIMEOUT)
    }

    pub(crate) fn open_within(
        folder: &Path,
        pack: &str,
        timeout: std::time::Duration,
    ) -> Result<StateFolder, StateError> {
        for part in ["segments", "states"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(|source| StateError::write(&path, source))?;
            if !std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
                return Err(damaged(&path)); // a link: states lie here and nowhere else
            }
        }
        let lock = lock_folder(folder, timeout)?;
        let (heads, set_aside) = match read_heads(folder) {
            Ok(heads) => (heads, None),
            Err(why @ StateError::Damaged { .. }) => {
                let (from, to) = (folder.join("heads"), folder.join("heads.damaged"));
                std::fs::rename(&from, &to).map_err(|source| StateError::write(&from, source))?;
                (read_heads(folder)?, Some(why))
            }
            Err(why) => return Err(why),
        };
        Ok(StateFolder { set_aside, _lock: Some(lock), ..StateFolder::read(folder, pack, heads) })
    }

    /// Opens a note's folder to load states, even while a kernel writes in it. Nothing may be saved through the result.
    ///
    /// # Errors
    /// Returns an error if the file with the current states can't be read or is damaged.
    pub fn open_for_reading(folder: &Path, pack: &str) -> Result<StateFolder, StateError> {
        Ok(StateFolder::read(folder, pack, read_heads(folder)?))
    }

    fn read(folder: &Path, pack: &str, heads: StateHeads) -> StateFolder {
        let (index, index_bytes) = read_index(folder);
        let kept = files::list_files(&folder.join("states"));
        let mut records: HashMap<String, StateRecord> =
            index.into_iter().map(|record| (record.state.clone(), record)).collect();
        let mut unindexed = 0;
        for name in kept.keys() {
            // An unreadable state gets no record. The error is returned when the state is requested.
            if !records.contains_key(name)
                && let Ok(state) = read_state(folder, name)
            {
                records.insert(name.clone(), state.record);
                unindexed += 1;
            }
        }
        StateFolder {
            folder: folder.to_owned(),
            pack: pack.to_owned(),
            segments: Vec::new(),
            numbers: HashMap::new(),
            learned: HashSet::new(),
            loaded: Vec::new(),
            known: HashMap::new(),
            moved: HashMap::new(),
            heads,
            records,
            kept,
            segment_bytes: files::list_files(&folder.join("segments")),
            index_bytes,
            unindexed,
            unsaved: BTreeMap::new(),
            is_behind: false,
            own_branch: None,
            budget_bytes: None,
            tend_above_bytes: u64::MAX,
            tending: None,
            set_aside: None,
            _lock: None,
        }
    }

    /// Returns, once, why the file with the current states was set aside, if it was.
    pub fn take_set_aside(&mut self) -> Option<StateError> {
        self.set_aside.take()
    }

    /// Returns which states are current.
    #[must_use]
    pub fn heads(&self) -> &StateHeads {
        &self.heads
    }

    /// Makes other states current.
    ///
    /// # Errors
    /// Returns an error if the heads can't be written. Nothing has changed then.
    pub fn set_heads(&mut self, heads: StateHeads) -> Result<(), StateError> {
        self.tending = None; // what may be thinned is another question now
        self.replace_heads(heads)
    }

    /// Makes other states current, without writing this until the next [`StateFolder::save`] or
    /// [`StateFolder::set_heads`]. If the process is killed before that, the previous states are still current.
    pub fn set_heads_until_saved(&mut self, heads: StateHeads) {
        self.tending = None; // as above
        self.heads = heads;
    }

    fn replace_heads(&mut self, heads: StateHeads) -> Result<(), StateError> {
        // After a crash during a visit, the next kernel continues on the own branch.
        let branch = self.own_branch.clone().unwrap_or_else(|| heads.branch.clone());
        write_heads(&self.folder, &StateHeads { branch, ..heads.clone() })?;
        self.heads = heads;
        Ok(())
    }

    /// Returns the record of a state.
    ///
    /// # Errors
    /// Returns an error if the state doesn't exist or is damaged.
    pub fn record(&self, id: &str) -> Result<StateRecord, StateError> {
        match self.records.get(id) {
            Some(record) => Ok(record.clone()),
            None if self.kept.contains_key(id) => Ok(read_state(&self.folder, id)?.record),
            None => Err(StateError::NoSuchState),
        }
    }

    /// Returns the states that led to this one, oldest first and including it.
    #[must_use]
    pub fn lineage(&self, id: Option<&str>) -> Vec<StateRecord> {
        let mut line: Vec<StateRecord> = self.ancestors(id).cloned().collect();
        line.reverse();
        line
    }

    /// Returns a state and its ancestors, newest first.
    pub(crate) fn ancestors(&self, id: Option<&str>) -> impl Iterator<Item = &StateRecord> {
        let mut seen = HashSet::new();
        let first = id.and_then(|id| self.records.get(id));
        let next = |record: &&StateRecord| record.parent.as_deref().and_then(|parent| self.records.get(parent));
        std::iter::successors(first, next).take_while(move |record| seen.insert(record.state.as_str()))
    }

    /// Returns the plan for making a state current.
    ///
    /// # Errors
    /// Returns an error if the state doesn't exist, or was thinned and its ancestors are lost.
    pub fn replay_plan(&self, id: &str) -> Result<ReplayPlan, StateError> {
        let mut plan = ReplayPlan { base: Some(id.to_owned()), cells: Vec::new() };
        while let Some(state) = &plan.base {
            if self.kept.contains_key(state) {
                break;
            }
            let missing = if plan.cells.is_empty() { StateError::NoSuchState } else { StateError::LostLineage };
            let record = self.records.get(state).filter(|_| plan.cells.len() <= self.records.len());
            let record = record.ok_or(missing)?.clone();
            plan.base.clone_from(&record.parent);
            plan.cells.push(record);
        }
        plan.cells.reverse();
        Ok(plan)
    }

    /// Saves changes as a new state after the current one, and makes it current. Updates `saved`, the places of all
    /// pages.
    ///
    /// # Errors
    /// Returns an error if a file can't be written. The previous state stays current, and the next state includes the
    /// changes.
    pub fn save(
        &mut self,
        saved: &mut Vec<PagePlace>,
        changes: &ChangedPages,
        mut record: StateRecord,
    ) -> Result<StateRecord, StateError> {
        self.is_behind = true;
        let bytes = self.write_pages(saved, changes)?;
        record.parent = self.heads.current().map(ToOwned::to_owned);
        for names in [&mut record.defined, &mut record.changed] {
            names.retain(|name| name.len() <= MAX_LISTED_NAME_BYTES);
            names.truncate(MAX_LISTED_NAMES);
        }
        record.bytes = bytes;
        let mut file = self.describe(saved, changes.memory, record);
        file.record.state = files::identify(&file)?;
        let size = self.write_state(&file)?;
        let mut heads = self.heads.clone();
        let branch = heads.branch.clone();
        heads.branches.insert(branch.clone(), Some(file.record.state.clone()));
        heads.redo.remove(&branch);
        self.replace_heads(heads)?;
        self.is_behind = false;
        self.unindexed += 1;
        if self.unindexed > MAX_UNINDEXED_STATES {
            self.write_index()?;
        }
        let mut record = file.record;
        record.bytes += size;
        Ok(record)
    }

    /// Stores a thinned state whose variables were recreated.
    ///
    /// # Errors
    /// Returns an error if the state isn't known, or a file can't be written. It stays thinned then.
    pub fn keep_again(
        &mut self,
        saved: &mut Vec<PagePlace>,
        changes: &ChangedPages,
        id: &str,
    ) -> Result<(), StateError> {
        let record = self.record(id)?;
        self.write_pages(saved, changes)?;
        let file = self.describe(saved, changes.memory, record);
        self.write_state(&file)?;
        Ok(())
    }

    /// Drops the pages that couldn't be written, because another memory is current.
    pub fn forget_unsaved(&mut self) {
        self.unsaved.clear();
        self.is_behind = false;
    }

    fn write_state(&mut self, file: &StateFile) -> Result<u64, StateError> {
        let size = files::write_state(&self.folder, file)?;
        self.add_state(file, size);
        Ok(size)
    }

    /// Records a state whose file, of this size in bytes, was written.
    pub(crate) fn add_state(&mut self, file: &StateFile, size: u64) {
        let id = &file.record.state;
        self.kept.insert(id.clone(), size);
        self.records.insert(id.clone(), file.record.clone());
        if let Some(tending) = &mut self.tending {
            tending.add_state(file);
        }
    }

    /// Writes new pages as a segment, and updates the places of all changed pages. Returns the size of its file in
    /// bytes.
    fn write_pages(&mut self, saved: &mut Vec<PagePlace>, changes: &ChangedPages) -> Result<u64, StateError> {
        self.learn_loaded();
        let mut changed: BTreeMap<u32, &[u8]> =
            self.unsaved.iter().map(|(number, page)| (*number, page.as_slice())).collect();
        changed.extend(changes.numbers.iter().copied().zip(changes.bytes.chunks_exact(PAGE_BYTES)));
        let mut all = saved.clone();
        all.resize(changes.memory / PAGE_BYTES, PagePlace::Zero);
        let mut new: Vec<(PageHash, &[u8])> = Vec::new();
        let next = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        let mut places = HashMap::new();
        for (number, page) in &changed {
            let place = if is_zero(page) {
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
            if let Some(slot) = all.get_mut(*number as usize) {
                *slot = place;
            }
        }
        let mut bytes = 0;
        if !new.is_empty() {
            match files::write_segment(&self.folder, &new) {
                Ok((name, size)) => {
                    bytes = size;
                    self.segment_bytes.insert(name.clone(), size);
                    let number = self.add_segment(&name);
                    self.learned.insert(number);
                    // The same pages in the same order already have a segment: use its number.
                    let lies = |place| match place {
                        PagePlace::Segment(_, at) => PagePlace::Segment(number, at),
                        other => other,
                    };
                    if number != next {
                        for place in
                            all.iter_mut().filter(|place| matches!(place, PagePlace::Segment(n, _) if *n == next))
                        {
                            *place = lies(*place);
                        }
                    }
                    self.known.extend(places.into_iter().map(|(hash, place)| (hash, lies(place))));
                }
                Err(why) => {
                    self.unsaved = changed.into_iter().map(|(number, page)| (number, page.to_vec())).collect();
                    return Err(why);
                }
            }
        }
        self.unsaved.clear();
        *saved = all;
        Ok(bytes)
    }

    /// Returns the number of a segment, which is added if it's new.
    pub(crate) fn add_segment(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        self.segments.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Returns the name of a segment.
    pub(crate) fn segment_name(&self, number: u32) -> Option<&str> {
        self.segments.get(number as usize).map(String::as_str)
    }

    /// Returns the content of a state's file, with the places of its pages.
    pub(crate) fn describe(&self, places: &[PagePlace], memory: usize, record: StateRecord) -> StateFile {
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

    /// Returns the place of each page in a state's file, after moves by compaction.
    pub(crate) fn places_of(&mut self, file: &StateFile) -> Vec<PagePlace> {
        let mut places = vec![PagePlace::Fresh; file.memory / PAGE_BYTES];
        let numbers: Vec<u32> = file.segments.iter().map(|name| self.add_segment(name)).collect();
        for (first, count, segment, from) in &file.runs {
            let number = usize::try_from(*segment).ok().and_then(|at| numbers.get(at));
            for (slot, at) in places.iter_mut().skip(*first as usize).take(*count as usize).zip(*from..) {
                *slot = number.map_or(PagePlace::Zero, |number| self.moved_place(PagePlace::Segment(*number, at)));
            }
        }
        places
    }

    pub(crate) fn moved_place(&self, place: PagePlace) -> PagePlace {
        let mut place = place;
        for _ in 0..MAX_MOVES_OF_A_PAGE {
            match self.moved.get(&place) {
                Some(to) if *to != place => place = *to,
                _ => break,
            }
        }
        place
    }

    /// Reads a state, with the pages of a fresh instance filled in.
    ///
    /// # Errors
    /// Returns an error if the state doesn't exist, is damaged, or belongs to another pack.
    pub fn load(&mut self, id: &str, fresh: &[u8]) -> Result<SavedMemory, StateError> {
        let mut memory = self.load_pages(id)?;
        memory.fill_fresh(fresh).map_err(|FreshIsLarger| damaged(&self.folder.join("states").join(id)))?;
        Ok(memory)
    }

    /// Reads a state's own pages. Pages that are the same as in a fresh instance are zeros. Call
    /// [`SavedMemory::mark_fresh`] before using the result.
    ///
    /// # Errors
    /// Returns an error if the state doesn't exist, is damaged, or belongs to another pack.
    pub fn load_pages(&mut self, id: &str) -> Result<SavedMemory, StateError> {
        let places = self.places_of_state(id)?;
        let mut bytes = vec![0; places.len() * PAGE_BYTES];
        let pages = bytes.chunks_exact_mut(PAGE_BYTES).map(PageTarget::Bytes);
        self.read_pages(&places, pages)?;
        Ok(SavedMemory::of_pages(bytes, places))
    }

    /// Reads a state's own pages, as [`StateFolder::load_pages`] does, for a kernel to continue with them. Call
    /// [`KernelMemory::complete`] before using the result.
    ///
    /// # Errors
    /// Returns an error if the state doesn't exist, is damaged, or belongs to another pack.
    pub fn load_for_kernel(&mut self, id: &str, slots: Option<&Arc<MemorySlots>>) -> Result<KernelMemory, StateError> {
        let places = self.places_of_state(id)?;
        let bytes = places.len() * PAGE_BYTES;
        let Some(mut slot) = slots.filter(|_| MappedMemory::fits(bytes)).and_then(MemorySlots::take) else {
            return Ok(KernelMemory::Copied(self.load_pages(id)?));
        };
        let writer = slot.writer();
        match self.read_pages(&places, (0..places.len()).map(|page| PageTarget::Slot(writer, page))) {
            // Files are limited to less than memory has.
            Err(StateError::SlotFull(_)) => return Ok(KernelMemory::Copied(self.load_pages(id)?)),
            read => read?,
        }
        Ok(KernelMemory::Mapped(MappedMemory::of_pages(slot, places)))
    }

    fn places_of_state(&mut self, id: &str) -> Result<Vec<PagePlace>, StateError> {
        if !self.kept.contains_key(id) {
            return Err(StateError::NoSuchState);
        }
        let state = read_state(&self.folder, id)?;
        if state.pack != self.pack {
            return Err(StateError::OtherPack);
        }
        Ok(self.places_of(&state))
    }

    /// Reads the pages that are in segments, each into its target, and continues with this memory.
    fn read_pages<'a>(
        &mut self,
        places: &[PagePlace],
        targets: impl Iterator<Item = PageTarget<'a>>,
    ) -> Result<(), StateError> {
        let mut wanted: BTreeMap<u32, Vec<(usize, PageTarget<'a>)>> = BTreeMap::new();
        for (place, page) in places.iter().zip(targets) {
            if let PagePlace::Segment(segment, at) = place {
                wanted.entry(*segment).or_default().push((*at as usize, page));
            }
        }
        let numbers: Vec<u32> = wanted.keys().copied().collect();
        let segments = run_parallel(numbers.clone(), || Ok(()), |number, ()| self.open_segment(number))?;
        let jobs = segments.iter().zip(wanted.into_values()).map(|(segment, pages)| segment.jobs(pages));
        let jobs: Vec<_> = jobs.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        run_parallel(jobs, FrameDecoder::new, FrameJob::run)?;
        self.loaded.extend(numbers.into_iter().zip(segments));
        self.forget_unsaved();
        Ok(())
    }

    /// Records the places of the pages of loaded states. A kernel doesn't wait for it, since only saving needs it.
    pub fn learn_loaded(&mut self) {
        for (number, segment) in std::mem::take(&mut self.loaded) {
            self.learn(number, &segment.hashes);
        }
    }

    fn open_segment(&self, number: u32) -> Result<Segment, StateError> {
        let name = self.segment_name(number).filter(|name| is_name(name)).ok_or(StateError::NoSuchState)?;
        files::read_segment(&self.folder, name)
    }

    /// Records the places of a segment's pages by their hashes.
    fn learn(&mut self, number: u32, hashes: &[PageHash]) {
        if self.learned.insert(number) {
            for (at, hash) in (0u32..).zip(hashes) {
                let place = PagePlace::Segment(number, at);
                if !self.moved.contains_key(&place) {
                    self.known.entry(*hash).or_insert(place);
                }
            }
        }
    }

    /// Reads a segment's pages, and records their places.
    pub(crate) fn read_segment(&mut self, number: u32) -> Result<Vec<u8>, StateError> {
        let segment = self.open_segment(number)?;
        self.learn(number, &segment.hashes);
        segment.pages()
    }

    /// Returns the size of all files in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.index_bytes + self.kept.values().chain(self.segment_bytes.values()).sum::<u64>()
    }

    /// Writes the records of states to the index, so that the next start reads one file. Records that no kept state
    /// descends from are dropped.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub(crate) fn write_index(&mut self) -> Result<(), StateError> {
        let heads = self.heads.branches.values().flatten().chain(self.heads.redo.values().flatten());
        let mut needed: BTreeSet<&str> = BTreeSet::new();
        for id in heads.chain(self.heads.pinned.iter()).chain(self.kept.keys()) {
            for record in self.ancestors(Some(id)) {
                if !needed.insert(&record.state) {
                    break; // what is before it is known
                }
            }
        }
        let mut records: Vec<&StateRecord> = needed.iter().filter_map(|id| self.records.get(*id)).collect();
        records.sort_by_key(|record| (std::cmp::Reverse(self.kept.contains_key(&record.state)), record.time));
        let mut room = files::MAX_INDEX_BYTES / 2;
        // Kept states come first, since missing ones are read from their files; then the newest thinned ones.
        let first_thinned = records.partition_point(|record| self.kept.contains_key(&record.state));
        records[first_thinned..].reverse();
        let fits = |record: &&&StateRecord| {
            let names =
                record.defined.iter().chain(&record.changed).chain(&record.forgotten).map(|name| name.len() + 3);
            let bytes = 400 + record.code.len() * 2 + record.cell.len() + names.sum::<usize>();
            room = room.saturating_sub(bytes);
            room > 0
        };
        let count = records.iter().take_while(fits).count();
        let written = files::write_index(&self.folder, &records[..count])?;
        let needed: HashSet<String> = needed.into_iter().map(ToOwned::to_owned).collect();
        self.index_bytes = written;
        self.unindexed = 0;
        self.records.retain(|id, _| needed.contains(id));
        Ok(())
    }

    /// Writes the index before the kernel ends, if that speeds up the next start.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn close(&mut self) -> Result<(), StateError> {
        if self.unindexed > MAX_UNINDEXED_STATES_AT_END { self.write_index() } else { Ok(()) }
    }

    /// Updates the places of moved pages. Other pages of the old segments aren't used from now on.
    pub(crate) fn replace_segments(
        &mut self,
        old: &BTreeSet<u32>,
        moved: HashMap<PagePlace, PagePlace>,
        places: &mut [PagePlace],
    ) {
        let is_old = |place: &PagePlace| matches!(place, PagePlace::Segment(number, _) if old.contains(number));
        self.known.retain(|_, place| {
            if is_old(place)
                && let Some(to) = moved.get(place)
            {
                *place = *to;
            }
            !is_old(place)
        });
        for place in places {
            if let Some(to) = moved.get(place) {
                *place = *to;
            }
        }
        // Prevents recording the old segments' other pages again.
        self.learned.extend(old);
        self.moved.extend(moved);
    }

    /// Deletes a segment that no state needs.
    pub(crate) fn delete_segment(&mut self, name: &str) -> Result<(), StateError> {
        if let Some(number) = self.numbers.remove(name) {
            self.known.retain(|_, place| !matches!(place, PagePlace::Segment(other, _) if *other == number));
        }
        let path = self.folder.join("segments").join(name);
        remove_file(&path)?;
        self.segment_bytes.remove(name);
        Ok(())
    }

    /// Deletes the file of a state, whose record stays.
    pub(crate) fn thin_state(&mut self, id: &str) -> Result<(), StateError> {
        remove_file(&self.folder.join("states").join(id))?;
        self.kept.remove(id);
        Ok(())
    }
}

/// Runs tasks on a few threads, each with its own tool. The results are in the order of the tasks.
fn run_parallel<T: Send, R: Send, Tool>(
    tasks: Vec<T>,
    new_tool: impl Fn() -> Result<Tool, StateError> + Sync,
    work: impl Fn(T, &mut Tool) -> Result<R, StateError> + Sync,
) -> Result<Vec<R>, StateError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_READING_THREADS).min(tasks.len());
    let queue = Mutex::new(tasks.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let (mut tool, mut done) = (new_tool()?, Vec::new());
        while let Some((at, task)) = next() {
            done.push((at, work(task, &mut tool)?));
        }
        Ok(done)
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut done = run()?;
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, StateError>(done)
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

fn remove_file(path: &Path) -> Result<(), StateError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StateError::write(path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
