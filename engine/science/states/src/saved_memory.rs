//! Memory of the last saved state, and the pages that have changed since.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use crate::page_hasher::PageHasher;
use crate::pages::{PAGE_BYTES, PagePlace};

/// Memory as of the last saved state.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, a multiple of the page size. Of pages that are known to be as in a fresh instance, there may be none:
    /// they are zeros.
    pub bytes: Vec<u8>,
    /// Place of each page.
    pub places: Vec<PagePlace>,
    /// What is known of each page besides. Of pages beyond its end, nothing is.
    marks: Vec<PageMark>,
    hasher: PageHasher,
}

/// What is known of a page of the saved memory.
#[derive(Clone, Copy, Default)]
struct PageMark {
    /// Hash of the page. `None`: it's compared with the bytes.
    hash: Option<NonZeroU64>,
    /// Whether the page is as in an instance that has run nothing. Then its hash is known, and its bytes aren't copied.
    is_fresh: bool,
}

/// Pages that differ from the last saved state.
pub struct ChangedPages {
    /// Current size of the memory in bytes.
    pub memory: usize,
    /// Numbers of the pages, ascending.
    pub numbers: Vec<u32>,
    /// Content of the pages, concatenated.
    pub bytes: Vec<u8>,
}

impl SavedMemory {
    /// Returns memory of which nothing but bytes and places is known.
    #[must_use]
    pub(crate) fn of_pages(bytes: Vec<u8>, places: Vec<PagePlace>) -> SavedMemory {
        SavedMemory { bytes, places, ..SavedMemory::default() }
    }

    /// Returns the memory of an instance that has run nothing, without a copy of it.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        let places = vec![PagePlace::Fresh; memory.len() / PAGE_BYTES];
        let mut saved = SavedMemory { bytes: vec![0; memory.len()], places, ..SavedMemory::default() };
        saved.remember_fresh(memory);
        saved
    }

    /// Returns whether all of it is known to be as in an instance that has run nothing.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.marks.len() == self.places.len() && self.marks.iter().all(|mark| mark.is_fresh)
    }

    /// Remembers how the pages look that are the same as in an instance that has run nothing, without copying them.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this.
    pub fn mark_fresh(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        self.end_fresh_places(fresh)?;
        self.remember_fresh(fresh);
        Ok(())
    }

    /// Fills in the pages that are the same as in an instance that has run nothing.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this.
    pub(crate) fn fill_fresh(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        self.end_fresh_places(fresh)?;
        let pages = self.bytes.chunks_exact_mut(PAGE_BYTES).zip(fresh.chunks_exact(PAGE_BYTES));
        for (_, (page, fresh)) in self.places.iter().zip(pages).filter(|(place, _)| **place == PagePlace::Fresh) {
            page.copy_from_slice(fresh);
        }
        Ok(())
    }

    /// Sets the places of pages beyond the fresh instance's memory: they are zero when memory grows.
    fn end_fresh_places(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        if self.bytes.len() < fresh.len() {
            return Err(FreshIsLarger);
        }
        for place in self.places.iter_mut().skip(fresh.len() / PAGE_BYTES).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        Ok(())
    }

    fn remember_fresh(&mut self, fresh: &[u8]) {
        let SavedMemory { places, marks, hasher, .. } = self;
        *marks = vec![PageMark::default(); places.len()];
        let half = (fresh.len() / PAGE_BYTES).min(places.len()) / 2;
        let (fresh_low, fresh_high) = fresh.split_at(half * PAGE_BYTES);
        let (places_low, places_high) = places.split_at(half);
        let (marks_low, marks_high) = marks.split_at_mut(half);
        let remember = |(fresh, places, marks): (&[u8], &[PagePlace], &mut [PageMark])| {
            let pages = fresh.chunks_exact(PAGE_BYTES).zip(places).zip(marks);
            for ((page, _), mark) in pages.filter(|((_, place), _)| **place == PagePlace::Fresh) {
                *mark = PageMark { hash: Some(hasher.hash(page)), is_fresh: true };
            }
        };
        run_halves((fresh_low, places_low, marks_low), (fresh_high, places_high, marks_high), remember);
    }

    /// Writes the saved memory over that of an instance that has run nothing. Only pages that differ are touched.
    pub fn write_over(&self, memory: &mut [u8], fresh_bytes: usize) {
        let write = |(memory, saved, first): (&mut [u8], &[u8], usize)| {
            let pages = memory.chunks_exact_mut(PAGE_BYTES).zip(saved.chunks_exact(PAGE_BYTES));
            for (number, (page, saved)) in (first..).zip(pages) {
                if self.marks.get(number).is_some_and(|mark| mark.is_fresh) {
                    continue;
                }
                // Memory that was added by growing is zero. It isn't read, since reading alone would allocate it.
                let is_same = match number * PAGE_BYTES < fresh_bytes {
                    true => *page == *saved,
                    false => is_zero(saved),
                };
                if !is_same {
                    page.copy_from_slice(saved);
                }
            }
        };
        // Most of the time goes into the system's allocation of pages, which two threads do faster.
        let half = memory.len().min(self.bytes.len()) / PAGE_BYTES / 2;
        let (low, high) = memory.split_at_mut(half * PAGE_BYTES);
        let (saved_low, saved_high) = self.bytes.split_at(half * PAGE_BYTES);
        run_halves((low, saved_low, 0), (high, saved_high, half), write);
    }

    /// Compares memory with the saved memory, copies the differing pages into it and returns them.
    #[must_use]
    pub fn take_changes(&mut self, memory: &[u8]) -> ChangedPages {
        let mut changed = ChangedPages { memory: memory.len(), numbers: Vec::new(), bytes: Vec::new() };
        if self.bytes.len() < memory.len() {
            self.bytes.resize(memory.len(), 0);
            // Memory that is added by growing is zero.
            self.places.resize(memory.len() / PAGE_BYTES, PagePlace::Zero);
        }
        changed.numbers = self.find_changes(memory);
        changed.bytes.reserve_exact(changed.numbers.len() * PAGE_BYTES);
        for number in &changed.numbers {
            let at = *number as usize * PAGE_BYTES;
            let now = &memory[at..at + PAGE_BYTES];
            self.bytes[at..at + PAGE_BYTES].copy_from_slice(now);
            changed.bytes.extend_from_slice(now);
        }
        changed
    }

    /// Returns the numbers of the differing pages, ascending, and remembers the hashes of all pages. The next cell
    /// waits for this, so two threads compare.
    fn find_changes(&mut self, memory: &[u8]) -> Vec<u32> {
        let SavedMemory { bytes, marks, hasher, .. } = self;
        marks.resize(bytes.len() / PAGE_BYTES, PageMark::default());
        let half = memory.len().min(bytes.len()) / PAGE_BYTES / 2;
        let (now_low, now_high) = memory.split_at(half * PAGE_BYTES);
        let (before_low, before_high) = bytes.split_at(half * PAGE_BYTES);
        let (marks_low, marks_high) = marks.split_at_mut(half);
        let compare = |(now, before, marks, first): (&[u8], &[u8], &mut [PageMark], usize)| {
            let pages = now.chunks_exact(PAGE_BYTES).zip(before.chunks_exact(PAGE_BYTES)).zip(marks);
            let differ = (first..).zip(pages).filter_map(|(number, ((now, before), mark))| {
                mark.differs(hasher.hash(now), now, before).then_some(number)
            });
            differ.filter_map(|number| u32::try_from(number).ok()).collect::<Vec<u32>>()
        };
        let found = run_halves((now_low, before_low, marks_low, 0), (now_high, before_high, marks_high, half), compare);
        found.concat()
    }
}

impl PageMark {
    /// Returns whether the page `now`, which has this hash, differs from the page `before`, and remembers it.
    fn differs(&mut self, hash: NonZeroU64, now: &[u8], before: &[u8]) -> bool {
        let differs = self.hash.map_or_else(|| now != before, |known| known != hash);
        debug_assert!(self.is_fresh || differs == (now != before), "the hash of a page is another page's");
        *self = PageMark { hash: Some(hash), is_fresh: self.is_fresh && !differs };
        differs
    }
}

/// Runs `work` for two halves, on two threads if another one is to be had. The results are in this order.
pub(crate) fn run_halves<T: Send, R: Send>(low: T, high: T, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let high = Mutex::new(Some(high));
    let run_high = || {
        let high = high.lock().unwrap_or_else(PoisonError::into_inner).take();
        high.map(&work)
    };
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, run_high);
        let low = work(low);
        let high = match other.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(high)) => high,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => run_high(), // no thread is to be had
        };
        [Some(low), high].into_iter().flatten().collect()
    })
}

/// Error: a fresh instance has more memory than a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fresh instance has more memory than the state")]
pub struct FreshIsLarger;

pub(crate) fn is_zero(page: &[u8]) -> bool {
    page.iter().fold(0, |all, byte| all | byte) == 0
}
