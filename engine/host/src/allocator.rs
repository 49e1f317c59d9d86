//! How the system's allocator shares memory out among threads, and gives it back. Other allocators than glibc's do it
//! by themselves.

/// Number of memory arenas, more than there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENA_COUNT: i32 = 64;

/// Has every thread take memory from a part of its own. On a machine of few cores glibc has fewer parts than there are
/// threads: then the thread that draws waits for one that steps back and holds their common part.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn set_arena_count() {
    #[allow(unsafe_code, reason = "std has no wrapper for mallopt")]
    // SAFETY: it takes no pointer, and may be called at any time (mallopt(3)); what does not hold is refused.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENA_COUNT);
    }
}

/// Gives memory that was freed back to the system; glibc keeps much of it for itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn trim_heap() {
    #[allow(unsafe_code, reason = "std has no wrapper for malloc_trim; it is safe to call at any time")]
    // SAFETY: it takes no pointer, and other threads may allocate meanwhile (malloc_trim(3), MT-Safe).
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
