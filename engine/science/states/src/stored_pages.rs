//! Pages of a state that were read from its segments and checked by hash, and are still compressed.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use crate::errors::StateError;
use crate::files::{FrameDecoder, FrameJob, PageRun, Segment};
use crate::page_hasher::PageHasher;
use crate::pages::{PAGE_BYTES, PagePlace};
use crate::saved_memory::{SavedMemory, is_zero};

/// Maximum number of threads that read a state.
const MAX_READING_THREADS: usize = 4;

/// Pages of a state that were read from its segments and checked by hash, and are still compressed.
pub struct StoredPages {
    /// Place of each page of memory.
    places: Vec<PagePlace>,
    /// Segments by their number.
    segments: BTreeMap<u32, Segment>,
}

impl StoredPages {
    pub(crate) fn new(places: Vec<PagePlace>, segments: BTreeMap<u32, Segment>) -> StoredPages {
        StoredPages { places, segments }
    }

    /// Returns the place of each page of memory.
    #[must_use]
    pub fn places(&self) -> &[PagePlace] {
        &self.places
    }

    /// Returns the size of the memory in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.places.len() * PAGE_BYTES
    }

    /// Decompresses the pages into the memory of an instance that has run nothing, which was grown from `fresh_bytes`
    /// to at least the size of this memory.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this, or a segment doesn't have the pages. The
    /// instance can't be used then.
    pub fn write_into(self, memory: &mut [u8], fresh_bytes: usize) -> Result<SavedMemory, StateError> {
        if self.memory_bytes() < fresh_bytes || memory.len() < self.memory_bytes() {
            return Err(StateError::OtherPack);
        }
        let hasher = PageHasher::default();
        let mut hashes = vec![None; self.places.len()];
        self.write_pages(memory, (&mut hashes, &hasher), |_| true)?;
        let StoredPages { mut places, .. } = self;
        let fresh_pages = fresh_bytes / PAGE_BYTES;
        // Memory that was added by growing is zero.
        for place in places.iter_mut().skip(fresh_pages).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        for (page, place) in memory.chunks_exact_mut(PAGE_BYTES).zip(&places).take(fresh_pages) {
            if *place == PagePlace::Zero && !is_zero(page) {
                page.fill(0);
            }
        }
        Ok(SavedMemory::of_restored(places, &hashes, hasher))
    }

    /// Decompresses the pages that are stored in segments and wanted, by their numbers, and their hashes.
    pub(crate) fn write_pages(
        &self,
        memory: &mut [u8],
        (hashes, hasher): (&mut [Option<NonZeroU64>], &PageHasher),
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<(), StateError> {
        let mut runs: BTreeMap<u32, Vec<PageRun<'_>>> = BTreeMap::new();
        let (mut memory, mut hashes, mut page) = (memory, hashes, 0);
        while let Some(place) = self.places.get(page) {
            let length = match *place {
                PagePlace::Segment(number, first) if is_wanted(page) => {
                    let follows = |(at, place): &(usize, &PagePlace)| {
                        let next = u32::try_from(*at).ok().and_then(|at| first.checked_add(at));
                        next.is_some_and(|next| **place == PagePlace::Segment(number, next)) && is_wanted(page + at)
                    };
                    let length = self.places[page..].iter().enumerate().take_while(follows).count();
                    let too_small = || StateError::OtherPack;
                    let (to, rest) =
                        std::mem::take(&mut memory).split_at_mut_checked(length * PAGE_BYTES).ok_or_else(too_small)?;
                    let (marks, rest_hashes) =
                        std::mem::take(&mut hashes).split_at_mut_checked(length).ok_or_else(too_small)?;
                    (memory, hashes) = (rest, rest_hashes);
                    runs.entry(number).or_default().push(PageRun { first: first as usize, to, hashes: marks });
                    length
                }
                PagePlace::Segment(..) | PagePlace::Zero | PagePlace::Fresh => {
                    memory = std::mem::take(&mut memory).get_mut(PAGE_BYTES..).unwrap_or_default();
                    hashes = std::mem::take(&mut hashes).get_mut(1..).unwrap_or_default();
                    1
                }
            };
            page += length;
        }
        let mut jobs: Vec<FrameJob<'_>> = Vec::new();
        for (number, runs) in runs {
            jobs.extend(self.segments.get(&number).ok_or(StateError::NoSuchState)?.jobs(runs)?);
        }
        run_parallel(jobs, || FrameDecoder::new(hasher.clone()), FrameJob::run)?;
        Ok(())
    }
}

/// Runs tasks on a few threads, each with its own tool. The results are in the order of the tasks.
pub(crate) fn run_parallel<T: Send, R: Send, Tool>(
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
