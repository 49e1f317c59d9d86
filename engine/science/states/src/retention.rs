//! Decides which states to keep when they exceed their budget, and frees the space of the others.
//!
//! Heads of the user's branches, pinned states, branch points and the newest states are kept. The others are thinned
//! like backups: the older, the wider apart. A thinned state keeps its record, so that its cells can run again. Then
//! segments with many pages of thinned states are rewritten without them.
//!
//! This happens in short steps between which cells are saved. Each step leaves a consistent folder: a replacement is
//! flushed and renamed before anything that it replaces is deleted, and an interrupted step is repeated.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use crate::errors::StateError;
use crate::files::{self, PageHash, StateFile, page_hash};
use crate::folder::StateFolder;
use crate::pages::{PAGE_BYTES, PagePlace};

/// Number of newest states that are kept whatever their size.
const NEWEST_KEPT_STATES: usize = 8;
/// Target size after thinning, in tenths of the budget, which leaves space for the next cells.
const TARGET_TENTHS: u64 = 8;
/// Number of states read in one step.
const STATES_A_STEP: usize = 4;
/// Number of states chosen in one step.
const VICTIMS_A_STEP: usize = 16;
/// Maximum number of pages of a segment that compaction writes: 32 MB.
const MAX_COMPACTED_PAGES: usize = 8_192;
/// Minimum percentage of unneeded pages at which a segment is rewritten.
const MIN_DEAD_PERCENT: u64 = 20;
/// Weight, in tenths, of states that aren't ancestors of a head when the next state to thin is chosen.
const OFF_LINE_TENTHS: u64 = 2;
/// Time that another kernel has to release a folder that is thinned from outside.
const THIN_LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// A state that may be thinned.
#[derive(Clone, Debug, Default)]
struct Candidate {
    id: String,
    /// Index of the nearest kept ancestor.
    parent: Option<usize>,
    /// Number of kept states whose nearest kept ancestor this is.
    children: usize,
    /// Whether it's a head, pinned, or among the newest.
    stays: bool,
    /// Whether it's an ancestor of a head.
    on_line: bool,
    thinned: bool,
}

/// Returns the next state to thin: the one closest to its neighbors for its age. `states` are sorted, oldest first.
fn next_to_thin(states: &[Candidate]) -> Option<usize> {
    let there: Vec<usize> = (0..states.len()).filter(|at| !states[*at].thinned).collect();
    let scored = there.iter().enumerate().filter_map(|(place, at)| {
        let state = &states[*at];
        if state.stays || state.children > 1 {
            return None;
        }
        let before = place.checked_sub(1).map_or(0, |place| there[place] + 1);
        let after = there.get(place + 1).map_or(states.len(), |next| next + 1);
        let (gap, age) = ((after - before) as u64, (states.len() - at) as u64);
        let part = if state.on_line { 10 } else { OFF_LINE_TENTHS };
        Some((gap * part * 1_000_000 / (age * age), *at))
    });
    scored.min().map(|(_, at)| at)
}

/// Marks a state as thinned, and gives its children its parent.
fn thin(states: &mut [Candidate], at: usize) {
    states[at].thinned = true;
    let parent = states[at].parent;
    for state in states.iter_mut().filter(|state| state.parent == Some(at)) {
        state.parent = parent;
    }
    let children = states[at].children;
    if let Some(parent) = parent {
        states[parent].children = states[parent].children + children - 1;
    }
}

/// Pages that states need.
#[derive(Default)]
struct PageUse {
    /// Number of runs in states that need each page, by segment.
    counts: HashMap<String, Vec<u32>>,
    /// Number of needed pages, by segment.
    live: HashMap<String, u64>,
}

impl PageUse {
    fn add(&mut self, file: &StateFile) {
        for (name, from, count) in file.needed_pages() {
            for at in from..from + count {
                self.add_page(name, at);
            }
        }
    }

    fn add_page(&mut self, name: &str, at: u32) {
        let at = at as usize;
        if !self.counts.contains_key(name) {
            self.counts.insert(name.to_owned(), Vec::new());
        }
        let Some(counts) = self.counts.get_mut(name) else { return };
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] += 1;
        if counts[at] == 1 {
            *self.live.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn remove(&mut self, file: &StateFile) {
        for (name, from, count) in file.needed_pages() {
            let (Some(counts), Some(live)) = (self.counts.get_mut(name), self.live.get_mut(name)) else { continue };
            for count in counts.iter_mut().skip(from as usize).take(count as usize).filter(|count| **count > 0) {
                *count -= 1;
                if *count == 0 {
                    *live -= 1;
                }
            }
        }
    }

    fn live_pages(&self, name: &str) -> u64 {
        self.live.get(name).copied().unwrap_or(0)
    }
}

enum TendingStep {
    /// Reads which pages states need.
    Scan,
    /// Chooses states to thin.
    Choose(Vec<Candidate>),
    /// Thins the chosen states.
    Thin,
    /// Deletes segments without any needed page, and rewrites others.
    Compact,
    /// Rewrites states so that they refer to the new segment instead of these.
    Rewrite { old: BTreeSet<u32>, states: Vec<String> },
}

/// Thinning in progress.
pub(crate) struct Tending {
    step: TendingStep,
    scanned: HashSet<String>,
    pages: PageUse,
    /// Total number of pages, by segment.
    totals: HashMap<String, u64>,
    chosen: Vec<String>,
    /// Segments that can't be read.
    unreadable: HashSet<String>,
}

impl Tending {
    fn new() -> Tending {
        Tending {
            step: TendingStep::Scan,
            scanned: HashSet::new(),
            pages: PageUse::default(),
            totals: HashMap::new(),
            chosen: Vec::new(),
            unreadable: HashSet::new(),
        }
    }

    /// Adds a state that was saved meanwhile.
    pub(crate) fn add_state(&mut self, file: &StateFile) {
        if self.scanned.insert(file.record.state.clone()) {
            self.pages.add(file);
        }
    }

    /// Returns how many bytes of a segment states need.
    fn live_bytes(&self, name: &str, bytes: u64) -> u64 {
        let total = self.totals.get(name).copied().unwrap_or(0);
        (bytes * self.pages.live_pages(name).min(total)).checked_div(total).unwrap_or(bytes)
    }
}

impl StateFolder {
    /// Sets the maximum size of the folder in bytes.
    pub fn set_budget(&mut self, bytes: u64) {
        self.budget_bytes = Some(bytes);
        self.tend_above_bytes = bytes;
    }

    /// Returns whether there are states to thin or space to free.
    #[must_use]
    pub fn needs_tending(&self) -> bool {
        self.tending.is_some() || self.used_bytes() > self.tend_above_bytes
    }

    /// Does a short step of thinning. `places` are the places of memory's pages. Returns whether there is more to do.
    ///
    /// # Errors
    /// Returns an error if a file operation fails. Thinning then pauses until much more is saved. No state is lost by
    /// that.
    pub fn tend(&mut self, places: &mut [PagePlace]) -> Result<bool, StateError> {
        if !self.needs_tending() {
            return Ok(false);
        }
        let mut tending = self.tending.take().unwrap_or_else(Tending::new);
        match self.take_step(&mut tending, places) {
            Ok(true) => {
                self.tending = Some(tending);
                Ok(true)
            }
            Ok(false) => {
                self.rest_until_more_is_saved();
                Ok(false)
            }
            Err(why) => {
                self.rest_until_more_is_saved();
                Err(why)
            }
        }
    }

    /// Pauses thinning: what still exceeds the budget is pinned, a head or needed by them, and must not be checked
    /// again after each cell.
    fn rest_until_more_is_saved(&mut self) {
        let budget = self.budget_bytes.unwrap_or(u64::MAX);
        self.tend_above_bytes = budget.max(self.used_bytes().saturating_add(budget / 16));
    }

    fn target_bytes(&self) -> u64 {
        self.budget_bytes.map_or(u64::MAX, |budget| budget / 10 * TARGET_TENTHS)
    }

    fn take_step(&mut self, tending: &mut Tending, places: &mut [PagePlace]) -> Result<bool, StateError> {
        match &mut tending.step {
            TendingStep::Scan => {
                let next: Vec<String> =
                    self.kept.keys().filter(|id| !tending.scanned.contains(*id)).take(STATES_A_STEP).cloned().collect();
                for id in &next {
                    // An unreadable state needs no pages, and its file is left alone.
                    if let Ok(file) = files::read_state(&self.folder, id) {
                        tending.pages.add(&file);
                    }
                    tending.scanned.insert(id.clone());
                }
                if next.is_empty() {
                    for name in self.segment_bytes.keys() {
                        match files::count_pages(&self.folder, name) {
                            Ok(count) => _ = tending.totals.insert(name.clone(), count as u64),
                            Err(_) => _ = tending.unreadable.insert(name.clone()),
                        }
                    }
                    tending.step = TendingStep::Choose(self.candidates());
                }
                Ok(true)
            }
            TendingStep::Choose(_) => {
                if self.choose(tending) {
                    tending.step = TendingStep::Thin;
                }
                Ok(true)
            }
            TendingStep::Thin => {
                if !tending.chosen.is_empty() {
                    // The records must be on disk before the files are deleted.
                    self.write_index()?;
                }
                for id in std::mem::take(&mut tending.chosen) {
                    self.thin_state(&id)?;
                }
                tending.step = TendingStep::Compact;
                Ok(true)
            }
            TendingStep::Compact => self.compact(tending, places),
            TendingStep::Rewrite { old, states } => {
                let old = old.clone();
                let names: BTreeSet<String> =
                    old.iter().filter_map(|number| self.segment_name(*number).map(ToOwned::to_owned)).collect();
                let at = states.len().saturating_sub(STATES_A_STEP);
                for id in states.split_off(at) {
                    let Ok(file) = files::read_state(&self.folder, &id) else { continue };
                    if file.segments.iter().any(|name| names.contains(name)) {
                        let places = self.places_of(&file);
                        let mut new = self.describe(&places, file.memory, file.record);
                        new.pack = file.pack;
                        let size = files::write_state(&self.folder, &new)?;
                        self.kept.insert(id, size);
                    }
                }
                if states.is_empty() {
                    for name in names {
                        // The same segment may have been written again meanwhile.
                        if tending.pages.live_pages(&name) == 0 {
                            self.delete_segment(&name)?;
                        }
                    }
                    tending.step = TendingStep::Compact;
                }
                Ok(true)
            }
        }
    }

    /// Returns the kept states, oldest first.
    fn candidates(&self) -> Vec<Candidate> {
        let heads = self.heads();
        // Each session of an agent makes a branch. Their states would leave no space for the user's; if one is thinned,
        // its cells run again when the branch is continued or adopted.
        let is_lasting = |branch: &str| branch == heads.branch || !heads.visited.contains(branch);
        let states = heads.branches.iter().filter(|(branch, _)| is_lasting(branch)).filter_map(|(_, id)| id.as_ref());
        let undone = heads.redo.iter().filter(|(branch, _)| is_lasting(branch));
        let ends: Vec<&String> = states.chain(undone.filter_map(|(_, undone)| undone.last())).collect();
        let mut line: HashSet<&str> = HashSet::new();
        for id in &ends {
            line.extend(self.ancestors(Some(id)).map(|record| record.state.as_str()));
        }
        // Unreadable states have no record and are left alone.
        let mut there: Vec<_> = self.records.values().filter(|record| self.kept.contains_key(&record.state)).collect();
        there.sort_by_key(|record| (record.time, record.count, record.state.as_str()));
        let places: HashMap<&str, usize> =
            there.iter().enumerate().map(|(at, record)| (record.state.as_str(), at)).collect();
        let newest = there.len().saturating_sub(NEWEST_KEPT_STATES);
        let mut states: Vec<Candidate> = there
            .iter()
            .enumerate()
            .map(|(at, record)| Candidate {
                id: record.state.clone(),
                parent: self
                    .ancestors(record.parent.as_deref())
                    .find_map(|before| places.get(before.state.as_str()).copied()),
                stays: at >= newest
                    || heads.pinned.contains(&record.state)
                    || ends.iter().any(|id| **id == record.state),
                on_line: line.contains(record.state.as_str()),
                ..Candidate::default()
            })
            .collect();
        for at in 0..states.len() {
            if let Some(parent) = states[at].parent {
                states[parent].children += 1;
            }
        }
        states
    }

    /// Chooses some states to thin. Returns whether enough are chosen.
    fn choose(&mut self, tending: &mut Tending) -> bool {
        let TendingStep::Choose(mut states) = std::mem::replace(&mut tending.step, TendingStep::Thin) else {
            return true;
        };
        for _ in 0..VICTIMS_A_STEP {
            let segments: u64 = self.segment_bytes.iter().map(|(name, bytes)| tending.live_bytes(name, *bytes)).sum();
            let kept: u64 = self.kept.values().sum();
            let chosen: u64 = tending.chosen.iter().filter_map(|id| self.kept.get(id)).sum();
            if segments + kept - chosen <= self.target_bytes() {
                return true;
            }
            let Some(at) = next_to_thin(&states) else { return true };
            thin(&mut states, at);
            if let Ok(file) = files::read_state(&self.folder, &states[at].id) {
                tending.pages.remove(&file);
                tending.chosen.push(states[at].id.clone());
            }
        }
        tending.step = TendingStep::Choose(states);
        false
    }

    /// Deletes segments without a needed page, then rewrites others. Returns whether there is more to do.
    fn compact(&mut self, tending: &mut Tending, places: &mut [PagePlace]) -> Result<bool, StateError> {
        // A kernel's memory may use pages of no state, if one couldn't be written.
        for place in places.iter() {
            if let PagePlace::Segment(number, at) = place
                && let Some(name) = self.segment_name(*number)
            {
                tending.pages.add_page(name, *at);
            }
        }
        let dead: Vec<String> = self
            .segment_bytes
            .keys()
            .filter(|name| tending.pages.live_pages(name) == 0 && !tending.unreadable.contains(*name))
            .cloned()
            .collect();
        for name in dead {
            self.delete_segment(&name)?;
        }
        if self.used_bytes() <= self.target_bytes() {
            return Ok(false);
        }
        let mut sparse: Vec<(u64, String)> = self
            .segment_bytes
            .iter()
            .filter_map(|(name, bytes)| {
                let dead = bytes - tending.live_bytes(name, *bytes).min(*bytes);
                let worth = dead * 100 >= bytes * MIN_DEAD_PERCENT && !tending.unreadable.contains(name);
                (worth && dead > 0).then(|| (dead, name.clone()))
            })
            .collect();
        sparse.sort_by(|a, b| b.cmp(a));
        let mut pages: Vec<(PageHash, Vec<u8>)> = Vec::new();
        let mut from: Vec<PagePlace> = Vec::new();
        let mut old = BTreeSet::new();
        for (_, name) in sparse {
            let live = usize::try_from(tending.pages.live_pages(&name)).unwrap_or(usize::MAX);
            if !old.is_empty() && pages.len().saturating_add(live) > MAX_COMPACTED_PAGES {
                break;
            }
            let number = self.add_segment(&name);
            let Ok(bytes) = self.read_segment(number) else {
                tending.unreadable.insert(name);
                continue;
            };
            let counts = tending.pages.counts.get(&name).map(Vec::as_slice).unwrap_or_default();
            for ((at, count), page) in (0u32..).zip(counts).zip(bytes.chunks_exact(PAGE_BYTES)) {
                if *count > 0 {
                    pages.push((page_hash(page), page.to_vec()));
                    from.push(PagePlace::Segment(number, at));
                }
            }
            old.insert(number);
        }
        if old.is_empty() {
            return Ok(false);
        }
        let slices: Vec<(PageHash, &[u8])> = pages.iter().map(|(hash, page)| (*hash, page.as_slice())).collect();
        let (name, size) = files::write_segment(&self.folder, &slices)?;
        self.segment_bytes.insert(name.clone(), size);
        let number = self.add_segment(&name);
        let to = (0..u32::try_from(pages.len()).unwrap_or(u32::MAX)).map(|at| PagePlace::Segment(number, at));
        let moved: HashMap<PagePlace, PagePlace> = from.iter().copied().zip(to).collect();
        for number in &old {
            if let Some(name) = self.segment_name(*number) {
                tending.pages.counts.remove(name);
                tending.pages.live.remove(name);
            }
        }
        for at in 0..u32::try_from(pages.len()).unwrap_or(u32::MAX) {
            tending.pages.add_page(&name, at);
        }
        tending.totals.insert(name, pages.len() as u64);
        self.replace_segments(&old, moved, places);
        tending.step = TendingStep::Rewrite { old, states: self.kept.keys().cloned().collect() };
        Ok(true)
    }
}

/// Thins a note's folder, whose kernel isn't running, to this many bytes. Returns the resulting size in bytes.
///
/// # Errors
/// Returns an error if a kernel uses the folder, or a file operation fails.
pub fn thin_folder(folder: &Path, budget_bytes: u64) -> Result<u64, StateError> {
    let mut states = StateFolder::open_within(folder, "", THIN_LOCK_TIMEOUT)?;
    states.set_budget(budget_bytes);
    while states.tend(&mut [])? {}
    Ok(states.used_bytes())
}

#[cfg(test)]
mod tests;
