//! Memory of the last saved state, and the pages that have changed since.

use std::sync::{Mutex, PoisonError};

use crate::{PAGE_BYTES, PagePlace};

/// Memory as of the last saved state.
#[derive(Clone, Default)]
pub struct SavedMemory {
    /// The bytes, a multiple of the page size.
    pub bytes: Vec<u8>,
    /// Place of each page.
    pub places: Vec<PagePlace>,
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
    /// Returns the memory of an instance that has run nothing.
    #[must_use]
    pub fn of_fresh(memory: &[u8]) -> SavedMemory {
        SavedMemory { bytes: memory.to_vec(), places: vec![PagePlace::Fresh; memory.len() / PAGE_BYTES] }
    }

    /// Fills in the pages that are the same as in an instance that has run nothing.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this.
    pub fn fill_fresh(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        if self.bytes.len() < fresh.len() {
            return Err(FreshIsLarger);
        }
        let pages = self.bytes.chunks_exact_mut(PAGE_BYTES).zip(fresh.chunks_exact(PAGE_BYTES));
        for (_, (page, fresh)) in self.places.iter().zip(pages).filter(|(place, _)| **place == PagePlace::Fresh) {
            page.copy_from_slice(fresh);
        }
        // Pages beyond the fresh instance's memory are zero when memory grows.
        for place in self.places.iter_mut().skip(fresh.len() / PAGE_BYTES).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        Ok(())
    }

    /// Writes the saved memory over that of an instance that has run nothing. Only pages that differ are touched.
    pub fn write_over(&self, memory: &mut [u8], fresh_bytes: usize) {
        let write = |memory: &mut [u8], saved: &[u8], fresh_bytes: usize| {
            let pages = memory.chunks_exact_mut(PAGE_BYTES).zip(saved.chunks_exact(PAGE_BYTES));
            for (number, (page, saved)) in pages.enumerate() {
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
        let half = memory.len().min(self.bytes.len()) / PAGE_BYTES / 2 * PAGE_BYTES;
        let ((low, high), (saved_low, saved_high)) = (memory.split_at_mut(half), self.bytes.split_at(half));
        let high = Mutex::new(Some(high));
        let write_high = || {
            let high = high.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(high) = high {
                write(high, saved_high, fresh_bytes.saturating_sub(half));
            }
        };
        std::thread::scope(|scope| {
            // If no thread is to be had, this one writes both halves.
            let _ = std::thread::Builder::new().spawn_scoped(scope, write_high);
            write(low, saved_low, fresh_bytes);
            write_high();
        });
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
        changed.numbers = differing_pages(memory, &self.bytes);
        for number in &changed.numbers {
            let at = *number as usize * PAGE_BYTES;
            let now = &memory[at..at + PAGE_BYTES];
            self.bytes[at..at + PAGE_BYTES].copy_from_slice(now);
            changed.bytes.extend_from_slice(now);
        }
        changed
    }
}

/// Error: a fresh instance has more memory than a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fresh instance has more memory than the state")]
pub struct FreshIsLarger;

pub(crate) fn is_zero(page: &[u8]) -> bool {
    page.iter().fold(0, |all, byte| all | byte) == 0
}

/// Returns the numbers of the differing pages, ascending. The next cell waits for this, so two threads compare.
fn differing_pages(now: &[u8], before: &[u8]) -> Vec<u32> {
    let compare = |now: &[u8], before: &[u8], first: usize| {
        let pages = now.chunks_exact(PAGE_BYTES).zip(before.chunks_exact(PAGE_BYTES));
        let differ = pages.enumerate().filter(|(_, (now, before))| now != before);
        differ.filter_map(|(number, _)| u32::try_from(first + number).ok()).collect::<Vec<u32>>()
    };
    let half = now.len().min(before.len()) / PAGE_BYTES / 2;
    let ((now_low, now_high), (low, high)) = (now.split_at(half * PAGE_BYTES), before.split_at(half * PAGE_BYTES));
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, || compare(now_high, high, half));
        let mut numbers = compare(now_low, low, 0);
        match other.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => numbers.extend(more),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => numbers.extend(compare(now_high, high, half)), // no thread is to be had
        }
        numbers
    })
}
