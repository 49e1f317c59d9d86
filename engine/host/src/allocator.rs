//! Settings of glibc's allocator: the number of arenas, and returning memory to the system.
//!
//! Other allocators need neither.

/// Number of memory arenas, more than there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENA_COUNT: i32 = 64;

/// Gives every thread its own memory arena.
///
/// On a machine with few cores, glibc has fewer arenas than there are threads. The drawing thread then waits for a
/// preempted thread that holds the lock of their shared arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn set_arena_count() {
    #[allow(unsafe_code, reason = "std has no wrapper for mallopt")]
    // SAFETY: `mallopt` takes no pointer and may be called at any time (mallopt(3)). It refuses invalid values.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENA_COUNT);
    }
}

/// Returns freed memory to the system. glibc keeps much of it otherwise.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn trim_heap() {
    #[allow(unsafe_code, reason = "std has no wrapper for malloc_trim; it is safe to call at any time")]
    // SAFETY: `malloc_trim` takes no pointer, and other threads may allocate meanwhile (malloc_trim(3), MT-Safe).
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing on this system.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn set_arena_count() {}

/// Does nothing on this system.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn trim_heap() {}
