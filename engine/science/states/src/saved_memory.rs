//! Memory of the last saved state, and the pages that have changed since.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::errors::StateError;
use crate::page_hasher::PageHasher;
use crate::pages::{PAGE_BYTES, PagePlace};
use crate::stored_pages::StoredPages;

/// Number of pages from which on two threads search them for changes: 8 MB, which one of them reads in a millisecond.
const PAGES_FOR_TWO_THREADS: usize = 2048;

/// Memory as of the last saved state.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, a multiple of the page size. Of pages that come from elsewhere, there may be none: they are zeros.
    pub bytes: Vec<u8>,
    /// Place of each page.
    pub places: Vec<PagePlace>,
    /// What is known of each page besides. Of pages beyond its end, nothing is.
    marks: Vec<PageMark>,
    hasher: PageHasher,
}

/// Where the bytes of a page come from when its memory is written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PageSource {
    /// From the copy.
    #[default]
    Copy,
    /// From an instance that has run nothing.
    Fresh,
    /// From the segment that it was restored from.
    Segment,
}

/// What is known of a page of the saved memory.
#[derive(Clone, Copy, Default)]
struct PageMark {
    /// Hash of the page. `None`: it's compared with the copy. A page without a copy then counts as changed once it's
    /// written.
    hash: Option<NonZeroU64>,
    source: PageSource,
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
    #[cfg(test)]
    pub(crate) fn of_pages(bytes: Vec<u8>, places: Vec<PagePlace>) -> SavedMemory {
        SavedMemory { bytes, places, ..SavedMemory::default() }
    }

    /// Returns the memory of an instance that has run nothing, without a copy of it.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        SavedMemory::of_restored(vec![PagePlace::Fresh; memory.len() / PAGE_BYTES], &[], PageHasher::default())
    }

    /// The same for tests of pages whose writes nobody tells.
    #[cfg(test)]
    pub(crate) fn of_hashed_fresh(memory: &[u8]) -> SavedMemory {
        let mut saved = SavedMemory::of_fresh(memory);
        saved.hash_fresh(memory);
        saved
    }

    /// Returns the memory of an instance into which pages were written that have these hashes, without a copy of it.
    pub(crate) fn of_restored(
        places: Vec<PagePlace>,
        hashes: &[Option<NonZeroU64>],
        hasher: PageHasher,
    ) -> SavedMemory {
        let zero = Some(hasher.hash(&[0; PAGE_BYTES]));
        let hashes = hashes.iter().copied().chain(std::iter::repeat(None));
        let mark = |(place, hash): (&PagePlace, Option<NonZeroU64>)| match place {
            PagePlace::Fresh => PageMark { hash: None, source: PageSource::Fresh },
            PagePlace::Zero => PageMark { hash: zero, source: PageSource::Copy },
            PagePlace::Segment(..) => PageMark { hash, source: PageSource::Segment },
        };
        let marks = places.iter().zip(hashes).map(mark).collect();
        // The system provides these zeros only once they are written.
        SavedMemory { bytes: vec![0; places.len() * PAGE_BYTES], places, marks, hasher }
    }

    /// Hashes the pages that are as in an instance that has run nothing. They have to be known where the system doesn't
    /// tell which pages are written. `memory` is the instance's, before anything has run in it.
    pub fn hash_fresh(&mut self, memory: &[u8]) {
        let SavedMemory { marks, hasher, .. } = self;
        let half = (memory.len() / PAGE_BYTES).min(marks.len()) / 2;
        let (memory_low, memory_high) = memory.split_at(half * PAGE_BYTES);
        let (marks_low, marks_high) = marks.split_at_mut(half);
        let remember = |(memory, marks): (&[u8], &mut [PageMark])| {
            let pages = memory.chunks_exact(PAGE_BYTES).zip(marks);
            for (page, mark) in pages.filter(|(_, mark)| mark.source == PageSource::Fresh && mark.hash.is_none()) {
                mark.hash = Some(hasher.hash(page));
            }
        };
        run_halves((memory_low, marks_low), (memory_high, marks_high), remember);
    }

    /// Returns whether all of it is known to be as in an instance that has run nothing.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.marks.len() == self.places.len() && self.marks.iter().all(|mark| mark.source == PageSource::Fresh)
    }

    /// Returns whether some pages have no copy, but are in segments.
    #[must_use]
    pub fn needs_stored_pages(&self) -> bool {
        self.marks.iter().any(|mark| mark.source == PageSource::Segment)
    }

    /// Writes the saved memory over that of an instance that has run nothing. Only pages that differ are touched.
    /// `stored` has the pages that are in segments, if there are any.
    ///
    /// # Errors
    /// Returns an error if the segments don't have these pages. The instance can't be used then.
    pub fn write_over(
        &self,
        memory: &mut [u8],
        fresh_bytes: usize,
        stored: Option<&StoredPages>,
    ) -> Result<(), StateError> {
        if let Some(stored) = stored {
            let is_stored = |page: usize| self.marks.get(page).is_some_and(|mark| mark.source == PageSource::Segment);
            let mut hashes = vec![None; stored.places().len()];
            stored.write_pages(memory, (&mut hashes, &self.hasher), is_stored)?;
        }
        let write = |(memory, saved, first): (&mut [u8], &[u8], usize)| {
            let pages = memory.chunks_exact_mut(PAGE_BYTES).zip(saved.chunks_exact(PAGE_BYTES));
            for (number, (page, saved)) in (first..).zip(pages) {
                if self.marks.get(number).is_some_and(|mark| mark.source != PageSource::Copy) {
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
        Ok(())
    }

    /// Finds the pages that differ from the saved memory, copies them into it and returns them.
    ///
    /// `written` are the ranges of pages, ascending, outside of which no page was written. `None`: any may have been.
    #[must_use]
    pub fn take_changes(&mut self, memory: &[u8], written: Option<&[Range<usize>]>) -> ChangedPages {
        let mut changed = ChangedPages { memory: memory.len(), numbers: Vec::new(), bytes: Vec::new() };
        if self.bytes.len() < memory.len() {
            self.bytes.resize(memory.len(), 0);
            // Memory that is added by growing is zero.
            self.places.resize(memory.len() / PAGE_BYTES, PagePlace::Zero);
        }
        let pages = memory.len() / PAGE_BYTES;
        self.marks.resize(self.bytes.len() / PAGE_BYTES, PageMark::default());
        if cfg!(debug_assertions) {
            self.check_unwritten(memory, written.unwrap_or_default(), written.map_or(0, |_| pages));
        }
        changed.numbers = self.find_changes(memory, written.unwrap_or(std::slice::from_ref(&(0..pages))));
        changed.bytes.reserve_exact(changed.numbers.len() * PAGE_BYTES);
        for number in &changed.numbers {
            let at = *number as usize * PAGE_BYTES;
            let now = &memory[at..at + PAGE_BYTES];
            self.bytes[at..at + PAGE_BYTES].copy_from_slice(now);
            changed.bytes.extend_from_slice(now);
        }
        changed
    }

    /// Checks that the first `pages` pages outside these ranges haven't changed.
    fn check_unwritten(&self, memory: &[u8], written: &[Range<usize>], pages: usize) {
        let known = self.marks.iter().zip(memory.chunks_exact(PAGE_BYTES)).take(pages).enumerate();
        for (number, (mark, page)) in known {
            if let Some(hash) = mark.hash
                && written.partition_point(|range| range.end <= number)
                    == written.partition_point(|range| range.start <= number)
            {
                assert!(hash == self.hasher.hash(page), "page {number} was written, and the system didn't tell");
            }
        }
    }

    /// Returns the numbers of the differing pages among these, ascending, and remembers their hashes. The next cell
    /// waits for this, so two threads search many pages.
    fn find_changes(&mut self, memory: &[u8], written: &[Range<usize>]) -> Vec<u32> {
        let SavedMemory { bytes, marks, hasher, .. } = self;
        let compare = |(marks, first, written): (&mut [PageMark], usize, Vec<Range<usize>>)| {
            let differs = |number: &usize| {
                let page = number * PAGE_BYTES..(number + 1) * PAGE_BYTES;
                let (Some(now), Some(before)) = (memory.get(page.clone()), bytes.get(page)) else { return false };
                marks.get_mut(number - first).is_some_and(|mark| mark.differs(hasher.hash(now), now, before))
            };
            let found = written.into_iter().flatten().filter(differs);
            found.filter_map(|number| u32::try_from(number).ok()).collect::<Vec<u32>>()
        };
        let count: usize = written.iter().map(ExactSizeIterator::len).sum();
        if count < PAGES_FOR_TWO_THREADS {
            return compare((marks, 0, written.to_vec()));
        }
        let (low, high, middle) = halve(written, count);
        let middle = middle.min(marks.len());
        let (marks_low, marks_high) = marks.split_at_mut(middle);
        run_halves((marks_low, 0, low), (marks_high, middle, high), compare).concat()
    }
}

/// Splits ranges, which have `count` pages, into halves at the returned page.
fn halve(ranges: &[Range<usize>], count: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>, usize) {
    let (mut low, mut high, mut left) = (Vec::new(), Vec::new(), count / 2);
    for range in ranges {
        let middle = range.start + left.min(range.len());
        left -= middle - range.start;
        low.extend((middle > range.start).then_some(range.start..middle));
        high.extend((middle < range.end).then_some(middle..range.end));
    }
    let middle = high.first().map_or(usize::MAX, |range| range.start);
    (low, high, middle)
}

impl PageMark {
    /// Returns whether the page `now`, which has this hash, differs from the page `before`, and remembers it.
    fn differs(&mut self, hash: NonZeroU64, now: &[u8], before: &[u8]) -> bool {
        let has_copy = self.source == PageSource::Copy;
        let differs = self.hash.map_or_else(|| !has_copy || now != before, |known| known != hash);
        debug_assert!(!has_copy || differs == (now != before), "the hash of a page is another page's");
        *self = PageMark { hash: Some(hash), source: if differs { PageSource::Copy } else { self.source } };
        differs
    }
}

/// Runs `work` for two halves, on two threads if another one is to be had. The results are in this order.
fn run_halves<T: Send, R: Send>(low: T, high: T, work: impl Fn(T) -> R + Sync) -> Vec<R> {
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

pub(crate) fn is_zero(page: &[u8]) -> bool {
    page.iter().fold(0, |all, byte| all | byte) == 0
}
