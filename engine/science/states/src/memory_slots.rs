//! Room for copies of a kernel's memory in a nameless file, from which the memory itself is mapped (Linux).
//!
//! The mapping is private: a page stays one of the file until it's written. Then the process has its own copy of it,
//! and the system's page map tells so, without privileges, signals or faults to handle. A page that's given back is
//! the file's again.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::pages::{MAX_GUEST_MEMORY_BYTES, PAGE_BYTES};

/// Number of copies: the current state's, and that of one that's being loaded.
const SLOTS: usize = 2;
/// Room of a copy. The file has no pages until they are written.
const SLOT_BYTES: usize = MAX_GUEST_MEMORY_BYTES;
/// Length of a page's entry in the page map.
const ENTRY_BYTES: usize = 8;
/// Bits of an entry: the page is in memory, is swapped out, is one of a file.
const IS_PRESENT: u64 = 1 << 63;
const IS_SWAPPED: u64 = 1 << 62;
const IS_OF_FILE: u64 = 1 << 61;

/// Room for copies of a kernel's memory, in a nameless file.
pub struct MemorySlots {
    file: File,
    pagemap: File,
    /// Where the file is mapped for writing, until the process ends.
    start: *mut u8,
    is_free: Mutex<[bool; SLOTS]>,
}

#[allow(unsafe_code, reason = "a pointer isn't Send or Sync by itself")]
// SAFETY: `start` never changes, and each slot's bytes are only reached through its one `MemorySlot`.
unsafe impl Send for MemorySlots {}
#[allow(unsafe_code, reason = "a pointer isn't Send or Sync by itself")]
// SAFETY: as above.
unsafe impl Sync for MemorySlots {}

impl MemorySlots {
    /// Makes the file, before the sandbox forbids it. `None` where the system can't tell which pages were written.
    #[must_use]
    pub fn open() -> Option<Arc<MemorySlots>> {
        let file = nameless_file()?;
        #[allow(unsafe_code, reason = "std has no wrapper for mmap")]
        // SAFETY: the system chooses an unused place for the mapping.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_SHARED | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), SLOTS * SLOT_BYTES, access, kind, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let slots = MemorySlots {
            file,
            pagemap: File::open("/proc/self/pagemap").ok()?,
            start: start.cast(),
            is_free: Mutex::new([true; SLOTS]),
        };
        let slots = Arc::new(slots);
        slots.tells_written_pages().then_some(slots)
    }

    /// Takes a free slot, whose bytes are zero. `None`: there is none.
    pub(crate) fn take(self: &Arc<Self>) -> Option<MemorySlot> {
        let mut free = self.is_free.lock().unwrap_or_else(PoisonError::into_inner);
        let number = free.iter().position(|free| *free)?;
        free[number] = false;
        Some(MemorySlot { slots: self.clone(), number })
    }

    /// Returns whether the page map of this system tells what this module needs. Emulated systems may not.
    fn tells_written_pages(self: &Arc<Self>) -> bool {
        const PAGES: usize = 4;
        let Some(mut slot) = self.take() else { return false };
        slot.bytes_mut()[..PAGES * PAGE_BYTES].fill(1);
        #[allow(unsafe_code, reason = "std has no wrapper for mmap")]
        // SAFETY: the system chooses an unused place for the mapping, which only this function uses and then unmaps.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(std::ptr::null_mut(), PAGES * PAGE_BYTES, access, kind, -1, 0);
            if start == libc::MAP_FAILED {
                return false;
            }
            let memory = std::slice::from_raw_parts_mut(start.cast::<u8>(), PAGES * PAGE_BYTES);
            memory[0] = 2;
            let is_told = slot.written(memory).is_some_and(|written| written.first() == Some(&(0..1)))
                && slot.map_over(memory, 0..PAGES * PAGE_BYTES)
                && {
                    let read = std::hint::black_box(&mut *memory)[2 * PAGE_BYTES];
                    std::hint::black_box(&mut *memory)[PAGE_BYTES] = 2;
                    read == 1
                }
                && slot.written(memory).is_some_and(|written| matches!(written.as_slice(), [only] if *only == (1..2)))
                && slot.give_back(memory, PAGE_BYTES..2 * PAGE_BYTES)
                && std::hint::black_box(&mut *memory)[PAGE_BYTES] == 1
                && slot.written(memory).is_some_and(|written| written.is_empty());
            libc::munmap(start, PAGES * PAGE_BYTES);
            is_told
        }
    }
}

impl Drop for MemorySlots {
    fn drop(&mut self) {
        #[allow(unsafe_code, reason = "std has no wrapper for munmap")]
        // SAFETY: no slot is left, and nothing else has a pointer into the mapping.
        unsafe {
            libc::munmap(self.start.cast(), SLOTS * SLOT_BYTES);
        }
    }
}

/// Makes a file that has no name and no pages, and that no program can be started from.
fn nameless_file() -> Option<File> {
    let bytes = (SLOTS * SLOT_BYTES) as u64;
    #[allow(unsafe_code, reason = "std has no wrapper for these calls")]
    // SAFETY: `getrlimit` writes the one structure that it gets. `sysconf` returns a number. `memfd_create` reads a
    // text that ends with a zero, and returns a new descriptor, which nobody else has.
    let file = unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // A larger file than the limit would end the process.
        let is_allowed = libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 && limit.rlim_cur >= bytes;
        if !is_allowed || libc::sysconf(libc::_SC_PAGESIZE) != PAGE_BYTES as libc::c_long {
            return None;
        }
        let name = c"kernel-memory".as_ptr();
        // Before Linux 6.3, the flag isn't known.
        let number = match libc::memfd_create(name, libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL) {
            -1 => libc::memfd_create(name, libc::MFD_CLOEXEC),
            number => number,
        };
        if number < 0 {
            return None;
        }
        File::from_raw_fd(number)
    };
    file.set_len(bytes).ok()?;
    Some(file)
}

/// Room for one copy of a kernel's memory.
pub(crate) struct MemorySlot {
    slots: Arc<MemorySlots>,
    number: usize,
}

impl MemorySlot {
    /// Returns the copy. What wasn't written is zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        #[allow(unsafe_code, reason = "the mapping is reached by its pointer")]
        // SAFETY: the mapping has room for all slots and lives as long as `slots`; `&mut self` alone writes in it.
        unsafe {
            std::slice::from_raw_parts(self.slots.start.add(self.number * SLOT_BYTES), SLOT_BYTES)
        }
    }

    /// Returns the copy for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        #[allow(unsafe_code, reason = "the mapping is reached by its pointer")]
        // SAFETY: as above. No other value refers to this slot.
        unsafe {
            std::slice::from_raw_parts_mut(self.slots.start.add(self.number * SLOT_BYTES), SLOT_BYTES)
        }
    }

    /// Writes into the copy. A write to the file is faster than one to its mapping, since no page is cleared first.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if self.writer().write(at, bytes).is_err() {
            self.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Returns what several threads can write with.
    pub(crate) fn writer(&mut self) -> SlotWriter<'_> {
        SlotWriter { file: &self.slots.file, start: self.number * SLOT_BYTES }
    }

    /// Makes the pages of memory in this range of bytes those of the copy at the same place. Returns whether they are:
    /// if not, they are as they were.
    ///
    /// # Safety
    /// The memory is a mapping of its own: no allocator's. Nothing reads it when the slot is dropped.
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub(crate) unsafe fn map_over(&self, memory: &mut [u8], range: Range<usize>) -> bool {
        let Some(pages) = memory.get_mut(range.clone()).filter(|pages| !pages.is_empty()) else { return false };
        let Ok(from) = libc::off_t::try_from(self.number * SLOT_BYTES + range.start) else { return false };
        if range.end > SLOT_BYTES {
            return false;
        }
        let start = pages.as_mut_ptr().cast::<libc::c_void>();
        // SAFETY: it replaces exactly these pages, which the caller has for itself, by ones with the same access.
        let is_mapped = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // As wasmtime maps what memory grows into: no room is reserved, which the system could refuse.
            let kind = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
            libc::mmap(start, pages.len(), access, kind, self.slots.file.as_raw_fd(), from) == start
        };
        // If the system refuses to reserve room, it may already have removed the pages, and another allocation could
        // be put in their place.
        // SAFETY: this advice changes nothing. It fails if a page isn't mapped.
        if !is_mapped && unsafe { libc::madvise(start, pages.len(), libc::MADV_NORMAL) } != 0 {
            eprintln!("tracebook kernel: the system has no room for the kernel's memory");
            std::process::abort();
        }
        is_mapped
    }

    /// Drops the process's own pages in this range of bytes of memory, which [`MemorySlot::map_over`] has mapped. They
    /// are as in the copy after that. Returns whether this was done.
    ///
    /// # Safety
    /// As for [`MemorySlot::map_over`].
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub(crate) unsafe fn give_back(&self, memory: &mut [u8], range: Range<usize>) -> bool {
        let Some(pages) = memory.get_mut(range) else { return false };
        // SAFETY: it concerns exactly these pages, which the caller has for itself.
        unsafe { libc::madvise(pages.as_mut_ptr().cast(), pages.len(), libc::MADV_DONTNEED) == 0 }
    }

    /// Returns the ranges of pages, ascending, that the process has for itself. All others are as they were mapped.
    /// `None`: it can't be told.
    pub(crate) fn written(&self, memory: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut entries = vec![0; memory.len() / PAGE_BYTES * ENTRY_BYTES];
        let at = memory.as_ptr().addr() / PAGE_BYTES * ENTRY_BYTES;
        self.slots.pagemap.read_exact_at(&mut entries, at as u64).ok()?;
        let mut written: Vec<Range<usize>> = Vec::new();
        for (page, entry) in entries.as_chunks::<ENTRY_BYTES>().0.iter().enumerate() {
            let entry = u64::from_ne_bytes(*entry);
            if entry & IS_SWAPPED == 0 && (entry & IS_PRESENT == 0 || entry & IS_OF_FILE != 0) {
                continue;
            }
            match written.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => written.push(page..page + 1),
            }
        }
        Some(written)
    }
}

/// Writes into a slot, which nobody reads meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct SlotWriter<'a> {
    file: &'a File,
    start: usize,
}

impl SlotWriter<'_> {
    /// Writes bytes at this place of the slot.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> std::io::Result<()> {
        match at.checked_add(bytes.len()).is_some_and(|end| end <= SLOT_BYTES) {
            true => self.file.write_all_at(bytes, (self.start + at) as u64),
            false => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl Drop for MemorySlot {
    fn drop(&mut self) {
        let from = libc::off_t::try_from(self.number * SLOT_BYTES);
        let bytes = libc::off_t::try_from(SLOT_BYTES);
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        #[allow(unsafe_code, reason = "std has no wrapper for fallocate")]
        // SAFETY: it empties this slot's part of the file, which nobody uses any more.
        let is_empty = matches!((from, bytes), (Ok(from), Ok(bytes))
            if unsafe { libc::fallocate(self.slots.file.as_raw_fd(), how, from, bytes) } == 0);
        // A slot that could not be emptied isn't used again.
        self.slots.is_free.lock().unwrap_or_else(PoisonError::into_inner)[self.number] = is_empty;
    }
}
