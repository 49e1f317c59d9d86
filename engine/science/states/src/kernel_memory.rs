//! Memory of a kernel's last saved state: mapped where the system tells which pages were written, or a copy.

use std::sync::Arc;

use crate::mapped_memory::MappedMemory;
use crate::memory_slots::MemorySlots;
use crate::pages::PagePlace;
use crate::saved_memory::{ChangedPages, FreshIsLarger, SavedMemory};

/// Memory of a kernel's last saved state.
pub enum KernelMemory {
    /// The kernel's memory is mapped from it, so the system tells which pages were written.
    Mapped(MappedMemory),
    /// A copy. All pages are hashed to find those that changed.
    Copied(SavedMemory),
}

impl Default for KernelMemory {
    fn default() -> KernelMemory {
        KernelMemory::Copied(SavedMemory::default())
    }
}

impl KernelMemory {
    /// Returns the memory of an instance that has run nothing.
    #[must_use]
    pub fn of_fresh(memory: &[u8], slots: Option<&Arc<MemorySlots>>) -> KernelMemory {
        let slot = slots.filter(|_| MappedMemory::fits(memory.len())).and_then(MemorySlots::take);
        match slot {
            Some(slot) => KernelMemory::Mapped(MappedMemory::of_fresh(slot, memory)),
            None => KernelMemory::Copied(SavedMemory::of_fresh(memory)),
        }
    }

    /// Returns whether all of it is known to be as in an instance that has run nothing.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        match self {
            KernelMemory::Mapped(mapped) => mapped.is_fresh(),
            KernelMemory::Copied(copied) => copied.is_fresh(),
        }
    }

    /// Returns the size of the memory in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self {
            KernelMemory::Mapped(mapped) => mapped.len(),
            KernelMemory::Copied(copied) => copied.bytes.len(),
        }
    }

    /// Returns the place of each page when the memory was loaded.
    #[must_use]
    pub fn places(&self) -> &[PagePlace] {
        match self {
            KernelMemory::Mapped(mapped) => mapped.places(),
            KernelMemory::Copied(copied) => &copied.places,
        }
    }

    /// Completes loaded memory by an instance that has run nothing.
    ///
    /// # Errors
    /// Returns an error if a fresh instance has more memory than this.
    pub fn complete(&mut self, fresh: &[u8]) -> Result<(), FreshIsLarger> {
        match self {
            KernelMemory::Mapped(mapped) => mapped.complete(fresh),
            KernelMemory::Copied(copied) => copied.mark_fresh(fresh),
        }
    }

    /// Takes note that another instance has replaced the one whose memory this is.
    pub fn forget_mapping(&mut self) {
        if let KernelMemory::Mapped(mapped) = self {
            mapped.forget_mapping();
        }
    }

    /// Gives the memory of an instance that has run nothing, which was grown from `fresh_bytes` to this size, the saved
    /// content.
    ///
    /// # Safety
    /// The memory is a mapping of its own: no allocator's. Nothing reads it when `self` is dropped.
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub unsafe fn write_over(&mut self, memory: &mut [u8], fresh_bytes: usize) {
        match self {
            // SAFETY: as required of the caller.
            KernelMemory::Mapped(mapped) => unsafe { mapped.write_over(memory) },
            KernelMemory::Copied(copied) => copied.write_over(memory, fresh_bytes),
        }
    }

    /// Finds the pages that differ from the saved memory, copies them into it and returns them.
    ///
    /// # Safety
    /// As for [`KernelMemory::write_over`].
    #[must_use]
    #[allow(unsafe_code, reason = "the caller knows where memory comes from")]
    pub unsafe fn take_changes(&mut self, memory: &mut [u8]) -> ChangedPages {
        match self {
            // SAFETY: as required of the caller.
            KernelMemory::Mapped(mapped) => unsafe { mapped.take_changes(memory) },
            KernelMemory::Copied(copied) => copied.take_changes(memory),
        }
    }
}
