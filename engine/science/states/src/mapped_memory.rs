//! Memory of the last saved state in a slot, from which the kernel's memory is mapped. Only pages that were written
//! since are compared.

use std::ops::Range;

use crate::memory_slots::MemorySlot;
use crate::page_hasher::PageHasher;
use crate::pages::{MAX_GUEST_MEMORY_BYTES, PAGE_BYTES, PagePlace};
use crate::saved_memory::{ChangedPages, FreshIsLarger, is_zero, run_halves};

/// Number of pages that are mapped together, as many as WebAssembly's memory grows by. So there are at most 32,768
/// mappings, half of what the system allows.
const BLOCK_PAGES: usize = 16;
const BLOCK_BYTES: usize = BLOCK_PAGES * PAGE_BYTES;
/// Number of written pages above which two threads compare them.
const PAGES_FOR_TWO_THREADS: usize = 1_024;
/// Maximum number of looks for which a page that is written again and again isn't given back.
const MAX_PATIENCE: u8 = 15;

/// Memory of the last saved state, from which the kernel's memory is mapped.
pub struct MappedMemory {
    slot: MemorySlot,
    /// Size of the memory in bytes.
    bytes: usize,
    /// Place of each page when the memory was loaded.
    places: Vec<PagePlace>,
    /// Blocks that the slot has. Others are as in an instance that has run nothing, and zero beyond its memory.
    is_held: Vec<bool>,
    habits: Vec<WriteHabit>,
    /// Address of the kernel's memory if its held blocks are mapped from the slot.
    mapped_at: Option<usize>,
    /// What a debug build knows of an instance that has run nothing, to check what the system tells.
    fresh: FreshHashes,
}

/// Hashes of the pages of an instance that has run nothing. Only a debug build has them.
#[derive(Default)]
struct FreshHashes {
    hasher: PageHasher,
    hashes: Vec<std::num::NonZeroU64>,
}

/// How often a page was written. The first write to a page that was given back takes longer than some comparisons.
#[derive(Clone, Copy, Default)]
struct WriteHabit {
    /// Whether the page wasn't given back when it was last written.
    is_kept: bool,
    /// Number of looks that it's kept when it's written next. Doubles each time.
    patience: u8,
    looks_left: u8,
}

impl WriteHabit {
    /// Takes note of a look, before which the page was written. Returns whether it's kept.
    fn keeps(&mut self, is_changed: bool) -> bool {
        self.looks_left = match (self.is_kept, is_changed) {
            (false, _) => self.patience,
            (true, true) => self.patience / 2,
            (true, false) => self.looks_left.saturating_sub(1),
        };
        if !self.is_kept {
            self.patience = (2 * self.patience + 1).min(MAX_PATIENCE);
        }
        self.is_kept = self.looks_left > 0;
        self.is_kept
    }
}

impl MappedMemory {
    /// Returns whether memory of this size can be mapped.
    pub(crate) fn fits(bytes: usize) -> bool {
        bytes.is_multiple_of(BLOCK_BYTES) && bytes <= MAX_GUEST_MEMORY_BYTES
    }

    /// Returns the memory of an instance that has run nothing. It isn't copied.
    pub(crate) fn of_fresh(slot: MemorySlot, memory: &[u8]) -> MappedMemory {
        let mut saved = MappedMemory::of_pages(slot, vec![PagePlace::Fresh; memory.len() / PAGE_BYTES]);
        saved.fresh = FreshHashes::of(memory);
        saved.mapped_at = Some(memory.as_ptr().addr());
        saved
    }

    /// Returns the memory of a state, whose pages are in the slot, except for those that are as in a fresh instance.
    pub(crate) fn of_pages(slot: MemorySlot, places: Vec<PagePlace>) -> MappedMemory {
        let bytes = places.len() * PAGE_BYTES;
        MappedMemory {
            slot,
            bytes,
            is_held: vec![false; places.len().div_ceil(BLOCK_PAGES)],
            habits: vec![WriteHabit::default(); places.len()],
            places,
            mapped_at: None,
            fresh: FreshHashes::default(),
        }
    }

    pub(crate) fn places(&self) -> &[PagePlace] {
        &self.places
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_fresh(&self) -> bool {
        !self.is_held.contains(&true)
    }

    /// Completes a state's memory by the pages of an instance that has run nothing, where the slot has others of the
    /// same block.
    pub(crate) fn complete(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        if self.bytes < fresh.len() {
            return Err(FreshIsLarger);
        }
        let fresh_pages = fresh.len() / PAGE_BYTES;
        for place in self.places.iter_mut().skip(fresh_pages).filter(|place| **place == PagePlace::Fresh) {
            *place = PagePlace::Zero;
        }
        let (inside, beyond) = self.places.split_at(fresh_pages);
        let slot = self.slot.bytes_mut();
        let mut blocks = self.is_held.iter_mut();
        for ((block, fresh), (places, is_held)) in slot
            .chunks_exact_mut(BLOCK_BYTES)
            .zip(fresh.chunks(BLOCK_BYTES))
            .zip(inside.chunks(BLOCK_PAGES).zip(&mut blocks))
        {
            *is_held = places.iter().any(|place| *place != PagePlace::Fresh);
            if *is_held {
                let pages = block.chunks_exact_mut(PAGE_BYTES).zip(fresh.chunks_exact(PAGE_BYTES)).zip(places);
                for ((page, fresh), _) in pages.filter(|(_, place)| **place == PagePlace::Fresh) {
                    page.copy_from_slice(fresh);
                }
            }
        }
        for (places, is_held) in beyond.chunks(BLOCK_PAGES).zip(blocks) {
            *is_held = places.iter().any(|place| *place != PagePlace::Zero);
        }
        self.fresh = FreshHashes::of(fresh);
        Ok(())
    }

    /// Takes note that the kernel's memory is another one, of an instance that has run nothing.
    pub(crate) fn forget_mapping(&mut self) {
        self.mapped_at = None;
    }

    /// Gives the memory of an instance that has run nothing, which was grown to this size, the saved content.
    ///
    /// # Safety
    /// The memory is a mapping of its own: no allocator's. Nothing reads it when `self` is dropped.
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub(crate) unsafe fn write_over(&mut self, memory: &mut [u8]) {
        self.habits.fill(WriteHabit::default());
        // SAFETY: as required of the caller.
        let is_mapped = unsafe { self.map_blocks(memory, 0..self.is_held.len()) };
        if !is_mapped {
            let blocks = memory.chunks_mut(BLOCK_BYTES).zip(self.slot.bytes().chunks(BLOCK_BYTES)).zip(&self.is_held);
            for ((block, saved), _) in blocks.filter(|(_, is_held)| **is_held) {
                block.copy_from_slice(&saved[..block.len()]);
            }
        }
        self.mapped_at = is_mapped.then(|| memory.as_ptr().addr());
        debug_assert!(self.is_same(memory), "restored memory differs from what was saved");
    }

    /// Maps the held ones of these blocks. Returns whether all are mapped.
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    unsafe fn map_blocks(&self, memory: &mut [u8], blocks: Range<usize>) -> bool {
        let mut is_mapped = true;
        for run in runs(blocks.filter(|block| self.is_held.get(*block) == Some(&true))) {
            // SAFETY: as required of the caller.
            is_mapped &= unsafe { self.slot.map_over(memory, run.start * BLOCK_BYTES..run.end * BLOCK_BYTES) };
        }
        is_mapped
    }

    /// Finds the pages that differ from the saved memory, copies them into it and returns them.
    ///
    /// # Safety
    /// As for [`MappedMemory::write_over`].
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub(crate) unsafe fn take_changes(&mut self, memory: &mut [u8]) -> ChangedPages {
        let (pages, address) = (memory.len() / PAGE_BYTES, memory.as_ptr().addr());
        if self.bytes < memory.len() {
            // Memory that is added by growing is zero.
            self.bytes = memory.len();
            self.places.resize(pages, PagePlace::Zero);
            self.habits.resize(pages, WriteHabit::default());
            self.is_held.resize(pages.div_ceil(BLOCK_PAGES), false);
        }
        let is_mapped = self.mapped_at == Some(address);
        let written = if is_mapped { self.slot.written(memory) } else { None };
        let written = written.unwrap_or_else(|| std::iter::once(0..pages).collect());
        debug_assert!(self.is_same_outside(memory, &written), "a page was written, and the system didn't tell");
        let numbers = self.find_changes(memory, &written);
        let mut bytes = Vec::with_capacity(numbers.len() * PAGE_BYTES);
        let mut new_blocks: Vec<usize> = Vec::new();
        for number in &numbers {
            let page = *number as usize * PAGE_BYTES..(*number as usize + 1) * PAGE_BYTES;
            bytes.extend_from_slice(&memory[page.clone()]);
            let block = *number as usize / BLOCK_PAGES;
            if new_blocks.last() == Some(&block) {
                continue; // it was written as a whole
            }
            if self.is_held[block] {
                self.slot.write(page.start, &memory[page]);
            } else {
                let block_bytes = block * BLOCK_BYTES..((block + 1) * BLOCK_BYTES).min(memory.len());
                self.slot.write(block_bytes.start, &memory[block_bytes]);
                self.is_held[block] = true;
                new_blocks.push(block);
            }
        }
        // SAFETY: as required of the caller.
        let is_mapped = unsafe {
            match is_mapped {
                true => self.give_back_pages(memory, &written, (&numbers, &new_blocks)),
                false => self.map_blocks(memory, 0..self.is_held.len()),
            }
        };
        self.mapped_at = is_mapped.then_some(address);
        debug_assert!(self.is_same(memory), "memory differs from what was saved");
        ChangedPages { memory: memory.len(), numbers, bytes }
    }

    /// Returns the numbers of the pages among these that differ, ascending. The next cell waits for this, so two
    /// threads compare many pages.
    fn find_changes(&self, memory: &[u8], written: &[Range<usize>]) -> Vec<u32> {
        let differs = |number: &usize| {
            let page = number * PAGE_BYTES..(number + 1) * PAGE_BYTES;
            let now = &memory[page.clone()];
            match (self.is_held[number / BLOCK_PAGES], self.places[*number]) {
                (true, _) => *now != self.slot.bytes()[page],
                (false, PagePlace::Zero) => !is_zero(now),
                (false, _) => true, // there is nothing to compare it with
            }
        };
        let find = |numbers: &[usize]| {
            let found = numbers.iter().copied().filter(differs);
            found.filter_map(|number| u32::try_from(number).ok()).collect::<Vec<u32>>()
        };
        let numbers: Vec<usize> = written.iter().cloned().flatten().collect();
        if numbers.len() < PAGES_FOR_TWO_THREADS {
            return find(&numbers);
        }
        let (low, high) = numbers.split_at(numbers.len() / 2);
        run_halves(low, high, find).concat()
    }

    /// Makes written pages those of the slot again, which has the same content, unless cells write them again and
    /// again. `changed` are those that differed, and the blocks that the slot didn't have before. Returns whether all
    /// held blocks are mapped.
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    unsafe fn give_back_pages(
        &mut self,
        memory: &mut [u8],
        written: &[Range<usize>],
        (changed, new_blocks): (&[u32], &[usize]),
    ) -> bool {
        let (mut back, mut changed) = (Vec::new(), changed.iter().map(|number| *number as usize).peekable());
        for page in written.iter().cloned().flatten() {
            while changed.next_if(|number| *number < page).is_some() {}
            let is_changed = changed.next_if_eq(&page).is_some();
            let block = page / BLOCK_PAGES;
            let was_held = self.is_held[block] && new_blocks.binary_search(&block).is_err();
            if was_held && !self.habits[page].keeps(is_changed) {
                back.push(page);
            }
        }
        for run in runs(back.into_iter()) {
            // A page that can't be given back counts as written at the next look.
            // SAFETY: as required of the caller. These pages are mapped.
            let _ = unsafe { self.slot.give_back(memory, run.start * PAGE_BYTES..run.end * PAGE_BYTES) };
        }
        let mut is_mapped = true;
        for run in runs(new_blocks.iter().copied()) {
            // SAFETY: as required of the caller.
            is_mapped &= unsafe { self.map_blocks(memory, run) };
        }
        is_mapped
    }

    /// Returns whether memory is the saved one. A debug build checks all of it.
    fn is_same(&self, memory: &[u8]) -> bool {
        self.is_same_outside(memory, &[])
    }

    /// Returns whether memory is the saved one but for these pages.
    fn is_same_outside(&self, memory: &[u8], written: &[Range<usize>]) -> bool {
        let written: std::collections::HashSet<usize> = written.iter().cloned().flatten().collect();
        let pages = memory.chunks_exact(PAGE_BYTES).enumerate();
        let mut pages = pages.filter(|(number, _)| !written.contains(number));
        pages.all(|(number, page)| match (self.is_held[number / BLOCK_PAGES], self.places[number]) {
            (true, _) => *page == self.slot.bytes()[number * PAGE_BYTES..(number + 1) * PAGE_BYTES],
            (false, PagePlace::Zero) => is_zero(page),
            (false, _) => self.fresh.hashes.get(number).is_none_or(|hash| *hash == self.fresh.hasher.hash(page)),
        })
    }
}

impl FreshHashes {
    fn of(memory: &[u8]) -> FreshHashes {
        let mut fresh = FreshHashes::default();
        if cfg!(debug_assertions) {
            fresh.hashes = memory.chunks_exact(PAGE_BYTES).map(|page| fresh.hasher.hash(page)).collect();
        }
        fresh
    }
}

/// Joins ascending numbers to ranges.
fn runs(numbers: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::Arc;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::memory_slots::MemorySlots;

    const FRESH_PAGES: usize = 12 * BLOCK_PAGES;
    const MAX_PAGES: usize = 40 * BLOCK_PAGES;

    /// Memory that's mapped as the guest's is: it doesn't move when it grows.
    struct GuestMemory(*mut u8);

    impl GuestMemory {
        fn new(fresh: &[u8]) -> GuestMemory {
            #[allow(unsafe_code, reason = "std has no wrapper for mmap")]
            // SAFETY: the system chooses an unused place.
            let start = unsafe {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                libc::mmap(std::ptr::null_mut(), MAX_PAGES * PAGE_BYTES, access, kind, -1, 0)
            };
            assert!(start != libc::MAP_FAILED, "mapped");
            let mut memory = GuestMemory(start.cast());
            memory.bytes(fresh.len() / PAGE_BYTES).copy_from_slice(fresh);
            memory
        }

        fn bytes(&mut self, pages: usize) -> &mut [u8] {
            #[allow(unsafe_code, reason = "the mapping is reached by its pointer")]
            // SAFETY: the mapping has so many pages, and lives as long as `self`.
            unsafe {
                std::slice::from_raw_parts_mut(self.0, pages.min(MAX_PAGES) * PAGE_BYTES)
            }
        }
    }

    impl Drop for GuestMemory {
        fn drop(&mut self) {
            #[allow(unsafe_code, reason = "std has no wrapper for munmap")]
            // SAFETY: nobody else has the mapping.
            unsafe {
                libc::munmap(self.0.cast(), MAX_PAGES * PAGE_BYTES);
            }
        }
    }

    fn open() -> Option<Arc<MemorySlots>> {
        let slots = MemorySlots::open();
        if slots.is_none() {
            eprintln!("skipped: this system doesn't tell which pages were written");
        }
        slots
    }

    #[allow(unsafe_code, reason = "memory is mapped")]
    fn take(saved: &mut MappedMemory, memory: &mut [u8]) -> ChangedPages {
        // SAFETY: tests drop the memory before what was saved of it, and it's a mapping of its own.
        unsafe { saved.take_changes(memory) }
    }

    #[allow(unsafe_code, reason = "memory is mapped")]
    fn restore(saved: &mut MappedMemory, memory: &mut [u8]) {
        // SAFETY: as above.
        unsafe { saved.write_over(memory) }
    }

    #[test]
    fn no_change_is_missed_whatever_is_written() {
        let Some(slots) = open() else { return };
        let fresh: Vec<u8> = (0..FRESH_PAGES * PAGE_BYTES).map(|at| (at / PAGE_BYTES % 5) as u8).collect();
        for seed in 0..20 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut saved = None;
            let mut guest = GuestMemory::new(&fresh);
            let mut pages = FRESH_PAGES;
            let mut model = fresh.clone();
            for _ in 0..40 {
                let saved = saved.get_or_insert_with(|| {
                    MappedMemory::of_fresh(slots.take().expect("a free slot"), guest.bytes(pages))
                });
                if rng.random_bool(0.2) {
                    pages = (pages + BLOCK_PAGES * rng.random_range(1..4)).min(MAX_PAGES);
                }
                let memory = guest.bytes(pages);
                for _ in 0..rng.random_range(0..60) {
                    let page = rng.random_range(0..pages);
                    let bytes = &mut memory[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
                    match rng.random_range(0..5) {
                        0 => bytes.fill(0),
                        1 => bytes[7] = bytes[7].wrapping_add(1),
                        2 => bytes[9] = std::hint::black_box(bytes[9]),
                        3 => _ = std::hint::black_box(bytes[11]),
                        _ => rng.fill(bytes),
                    }
                }
                let changes = take(saved, memory);
                model.resize(changes.memory, 0);
                for (number, page) in changes.numbers.iter().zip(changes.bytes.chunks_exact(PAGE_BYTES)) {
                    let at = *number as usize * PAGE_BYTES;
                    model[at..at + PAGE_BYTES].copy_from_slice(page);
                }
                assert!(model == memory, "seed {seed}: a change was missed");
                assert!(take(saved, memory).numbers.is_empty(), "seed {seed}: nothing has changed since");
                if rng.random_bool(0.2) {
                    // The cell is lost: a new instance gets what was saved.
                    memory[5 * PAGE_BYTES] ^= 1;
                    guest = GuestMemory::new(&fresh);
                    saved.forget_mapping();
                    restore(saved, guest.bytes(pages));
                    assert!(guest.bytes(pages) == model, "seed {seed}: it isn't what was saved");
                }
            }
            drop(guest);
        }
    }

    #[test]
    fn loaded_pages_are_completed_by_those_of_a_fresh_instance() {
        let Some(slots) = open() else { return };
        let fresh: Vec<u8> = (0..FRESH_PAGES * PAGE_BYTES).map(|at| (at / PAGE_BYTES % 5) as u8).collect();
        let pages = FRESH_PAGES + 2 * BLOCK_PAGES;
        let mut places = vec![PagePlace::Fresh; pages];
        let mut slot = slots.take().expect("a free slot");
        let mut wanted = [fresh.as_slice(), &vec![0; 2 * BLOCK_BYTES]].concat();
        for (page, place) in
            [(3, PagePlace::Segment(0, 0)), (20, PagePlace::Zero), (pages - 1, PagePlace::Segment(0, 1))]
        {
            let byte = u8::from(place != PagePlace::Zero) * 9;
            places[page] = place;
            slot.write(page * PAGE_BYTES, &[byte; PAGE_BYTES]);
            wanted[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(byte);
        }
        let mut saved = MappedMemory::of_pages(slot, places);
        assert!(saved.complete(&vec![0; (pages + BLOCK_PAGES) * PAGE_BYTES]).is_err(), "a larger instance");
        saved.complete(&fresh).expect("as large");
        let mut guest = GuestMemory::new(&fresh);
        restore(&mut saved, guest.bytes(pages));
        assert!(guest.bytes(pages) == wanted);
        guest.bytes(pages)[21 * PAGE_BYTES] = 77;
        // Of the other blocks nothing is known: this memory isn't mapped from a file, as the pack's is.
        let mut changed = take(&mut saved, guest.bytes(pages)).numbers;
        changed.retain(|number| !(2 * BLOCK_PAGES..FRESH_PAGES).contains(&(*number as usize)));
        assert_eq!(changed, [21]);
        drop(guest);
    }

    #[test]
    fn a_slot_is_empty_when_it_is_taken_again() {
        let Some(slots) = open() else { return };
        let (mut one, two) = (slots.take().expect("a free slot"), slots.take().expect("another one"));
        assert!(slots.take().is_none(), "there are two");
        one.bytes_mut()[..PAGE_BYTES].fill(1);
        one.write(2 * PAGE_BYTES, &[2; PAGE_BYTES]);
        assert!(is_zero(&two.bytes()[..3 * PAGE_BYTES]), "slots are apart");
        drop(one);
        let one = slots.take().expect("a free slot");
        assert!(is_zero(&one.bytes()[..3 * PAGE_BYTES]));
    }

    #[test]
    fn a_page_that_is_written_again_and_again_is_kept() {
        let mut habit = WriteHabit::default();
        assert!(!habit.keeps(true));
        assert!(habit.keeps(true), "it was written again");
        assert!(!habit.keeps(false));
        assert!(habit.keeps(true), "and again");
        assert_eq!((0..).take_while(|_| habit.keeps(false)).count(), 2);
    }
}
