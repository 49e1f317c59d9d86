//! Pages of a kernel's memory.

/// Maximum memory of a kernel.
pub const MAX_GUEST_MEMORY_BYTES: usize = 2 << 30;
/// Size of the pages in which memory is compared and stored.
pub const PAGE_BYTES: usize = 4096;

/// Place where a page of memory is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePlace {
    /// The page is as in an instance that has run nothing.
    Fresh,
    /// The page is all zeros.
    Zero,
    /// The page is in a segment: its number in `StateFolder::segments`, and the page's index in it.
    Segment(u32, u32),
}
