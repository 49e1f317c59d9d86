//! Finds the pages of the guest's memory that cells wrote, without reading memory.
//!
//! Linux (6.7 and later) notes writes to guarded pages by itself (`userfaultfd` with asynchronous write protection),
//! and lists the pages that aren't guarded any more (`PAGEMAP_SCAN`). The first write to a guarded page costs some
//! microseconds, several times as much as hashing it. So pages that cells write again and again stay unguarded, and
//! count as written.
//!
//! Elsewhere, and where a container forbids it, there is no watch, and all pages are hashed.

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use kernel_states::PAGE_BYTES;

/// Version of the interface of `userfaultfd`.
const UFFD_API: u64 = 0xaa;
/// Writes by the kernel on behalf of the process aren't intercepted. Without this flag only root may watch.
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
/// Feature: a write to a guarded page ends the guard and continues.
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1;
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
/// These three are also in the sandbox's list of allowed requests.
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const UFFDIO_WRITEPROTECT: libc::Ioctl = 0xc018_aa06_u32 as libc::Ioctl;
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
/// Flags of a scan: guard the pages that it lists; fail if a part of the range isn't watched.
const PM_SCAN_WP_MATCHING: u64 = 1;
const PM_SCAN_CHECK_WPASYNC: u64 = 2;
/// Properties of pages. A page of the compiled pack's file, or of the system's zeros, was read and never written.
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// Number of ranges that one scan lists.
const SCANNED_RANGES: usize = 1024;
/// Maximum number of looks that a page which wasn't changed stays unguarded.
const MAX_PATIENCE: u8 = 15;

#[repr(C)]
#[derive(Clone, Copy)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct UffdRegister {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct UffdWriteProtect {
    start: u64,
    bytes: u64,
    mode: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScannedRange {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PagemapScan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    ranges: u64,
    ranges_count: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// Watches which pages of the guest's memory are written.
pub(crate) struct WriteWatch {
    watched: Option<WatchedMemory>,
    pages: File,
    faults: OwnedFd,
}

/// The memory of an instance.
struct WatchedMemory {
    start: usize,
    pages: Vec<PageGuard>,
}

/// Whether a page is guarded, and how long it stays unguarded.
#[derive(Clone, Copy, Default)]
struct PageGuard {
    is_open: bool,
    /// Number of looks that it stays unguarded when it's written next. Doubles each time.
    patience: u8,
    looks_left: u8,
}

impl PageGuard {
    /// Takes note of a look, before which the page may have been written. Returns whether it stays unguarded.
    fn stays_open(&mut self, is_changed: bool) -> bool {
        self.looks_left = match (self.is_open, is_changed) {
            (false, _) => self.patience,
            (true, true) => self.patience / 2,
            (true, false) => self.looks_left.saturating_sub(1),
        };
        if !self.is_open {
            self.patience = (2 * self.patience + 1).min(MAX_PATIENCE);
        }
        self.is_open = self.looks_left > 0;
        self.is_open
    }
}

impl WriteWatch {
    /// Opens what a watch needs, before the sandbox forbids it. `None` where this system can't watch.
    pub(crate) fn open() -> Option<WriteWatch> {
        #[allow(unsafe_code, reason = "std has no wrapper for these calls")]
        // SAFETY: `sysconf` only returns a number. `userfaultfd` returns a new descriptor, which nobody else has, and
        // which watches nothing yet.
        let faults = unsafe {
            if libc::sysconf(libc::_SC_PAGESIZE) != PAGE_BYTES as libc::c_long {
                return None;
            }
            let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
            let number =
                i32::try_from(libc::syscall(libc::SYS_userfaultfd, flags)).ok().filter(|number| *number >= 0)?;
            OwnedFd::from_raw_fd(number)
        };
        let mut api = UffdApi { api: UFFD_API, features: UFFD_FEATURE_WP_ASYNC, ioctls: 0 };
        request(&faults, UFFDIO_API, &mut api)?;
        let pages = File::open("/proc/self/pagemap").ok()?;
        Some(WriteWatch { watched: None, pages, faults })
    }

    /// Begins to watch this memory, which replaces the one before. Returns whether it's watched.
    pub(crate) fn begin(&mut self, memory: &[u8]) -> bool {
        let start = memory.as_ptr().addr();
        let range = start..start + memory.len();
        self.watched = None;
        let is_watched = self.register(range.clone()).is_some()
            && self.scan(range, PM_SCAN_CHECK_WPASYNC | PM_SCAN_WP_MATCHING, |_| ()).is_some();
        if is_watched {
            let pages = vec![PageGuard::default(); memory.len() / PAGE_BYTES];
            self.watched = Some(WatchedMemory { start, pages });
        }
        is_watched
    }

    /// Returns the ranges of pages, ascending, that may have been written since they were guarded. `None` if it isn't
    /// known.
    pub(crate) fn written(&mut self, memory: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut watched = self.watched.take().filter(|watched| watched.start == memory.as_ptr().addr())?;
        let (before, now) = (watched.pages.len(), memory.len() / PAGE_BYTES);
        if now < before {
            return None;
        }
        let end = watched.start + memory.len();
        if now > before {
            self.register(watched.start + before * PAGE_BYTES..end)?;
            watched.pages.resize(now, PageGuard::default());
        }
        let (mut written, start): (Vec<Range<usize>>, usize) = (Vec::new(), watched.start);
        self.scan(start..end, PM_SCAN_CHECK_WPASYNC, |range| {
            let range = (range.start - start) / PAGE_BYTES..(range.end - start) / PAGE_BYTES;
            match written.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => written.push(range),
            }
        })?;
        self.watched = Some(watched);
        Some(written)
    }

    /// Guards pages again that were written, unless cells write them again and again. `changed` are those among them,
    /// ascending, that differ from before.
    pub(crate) fn guard(&mut self, written: &[Range<usize>], changed: &[u32]) {
        let Some(mut watched) = self.watched.take() else { return };
        let mut changed = changed.iter().map(|number| *number as usize).peekable();
        let mut closed: Vec<Range<usize>> = Vec::new();
        let mut continues = false;
        for page in written.iter().cloned().flatten() {
            while changed.next_if(|number| *number < page).is_some() {}
            let is_changed = changed.next_if_eq(&page).is_some();
            let Some(guard) = watched.pages.get_mut(page) else { continue };
            if guard.stays_open(is_changed) {
                continues = false;
                continue;
            }
            match closed.last_mut() {
                // What is between two such pages is guarded already.
                Some(last) if continues => last.end = page + 1,
                _ => closed.push(page..page + 1),
            }
            continues = true;
        }
        let is_guarded = closed.into_iter().all(|range| {
            let mut range = UffdWriteProtect {
                start: (watched.start + range.start * PAGE_BYTES) as u64,
                bytes: (range.len() * PAGE_BYTES) as u64,
                mode: UFFDIO_WRITEPROTECT_MODE_WP,
            };
            request(&self.faults, UFFDIO_WRITEPROTECT, &mut range).is_some()
        });
        // A page that could not be guarded is listed as written, so nothing is missed.
        self.watched = Some(watched).filter(|_| is_guarded);
    }

    fn register(&self, range: Range<usize>) -> Option<()> {
        let mut range = UffdRegister {
            start: range.start as u64,
            bytes: range.len() as u64,
            mode: UFFDIO_REGISTER_MODE_WP,
            ioctls: 0,
        };
        request(&self.faults, UFFDIO_REGISTER, &mut range)
    }

    /// Lists the written pages in a range of addresses.
    fn scan(&self, range: Range<usize>, flags: u64, mut found: impl FnMut(Range<usize>)) -> Option<()> {
        let mut ranges = vec![ScannedRange::default(); SCANNED_RANGES];
        let (mut at, end) = (range.start as u64, range.end as u64);
        while at < end {
            let unwritten = PAGE_IS_FILE | PAGE_IS_PFNZERO;
            let mut scan = PagemapScan {
                size: size_of::<PagemapScan>() as u64,
                flags,
                start: at,
                end,
                walk_end: 0,
                ranges: ranges.as_mut_ptr().expose_provenance() as u64,
                ranges_count: ranges.len() as u64,
                max_pages: 0,
                category_inverted: unwritten,
                category_mask: PAGE_IS_WRITTEN | unwritten,
                category_anyof_mask: 0,
                return_mask: PAGE_IS_WRITTEN,
            };
            #[allow(unsafe_code, reason = "std has no wrapper for ioctl")]
            // SAFETY: the structure has the size that it says, and `ranges` as many elements. The kernel writes only
            // these. Guarding changes no content.
            let count = unsafe { libc::ioctl(self.pages.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
            let count = usize::try_from(count).ok()?;
            for range in ranges.get(..count)? {
                found(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?);
            }
            if scan.walk_end <= at {
                return None;
            }
            at = scan.walk_end;
        }
        Some(())
    }
}

/// Makes a request whose argument is a structure. `None` if it fails.
fn request<T: Copy>(file: &OwnedFd, what: libc::Ioctl, with: &mut T) -> Option<()> {
    #[allow(unsafe_code, reason = "std has no wrapper for ioctl")]
    // SAFETY: each request of `userfaultfd` in this file has the structure that it's made with, which outlives the
    // call. They only register and guard memory, which changes no content.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), what, std::ptr::from_mut(with)) };
    (done == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of pages of the memory that these tests watch.
    const PAGES: usize = 64;

    /// Memory that begins at a page, as the guest's does.
    struct PageMemory(Vec<u8>);

    impl PageMemory {
        fn new() -> PageMemory {
            PageMemory(vec![0; (PAGES + 1) * PAGE_BYTES])
        }

        fn bytes(&mut self) -> &mut [u8] {
            let skipped = self.0.as_ptr().align_offset(PAGE_BYTES);
            &mut self.0[skipped..][..PAGES * PAGE_BYTES]
        }

        fn write(&mut self, page: usize) {
            self.bytes()[page * PAGE_BYTES + 7] ^= 1;
        }
    }

    fn pages(written: &[Range<usize>]) -> Vec<usize> {
        written.iter().cloned().flatten().collect()
    }

    #[test]
    fn written_pages_are_listed_and_no_others() {
        let Some(mut watch) = WriteWatch::open() else {
            return eprintln!("skipped: this system can't watch memory");
        };
        let mut memory = PageMemory::new();
        (0..PAGES / 2).for_each(|page| memory.write(page));
        assert!(watch.begin(memory.bytes()));
        assert_eq!(watch.written(memory.bytes()).map(|written| pages(&written)), Some(Vec::new()));
        // The upper half was never touched, and reading is no change.
        let sum: u64 = memory.bytes().iter().map(|byte| u64::from(*byte)).sum();
        assert_eq!(sum, PAGES as u64 / 2);
        assert_eq!(watch.written(memory.bytes()).map(|written| pages(&written)), Some(Vec::new()));
        for _ in 0..40 {
            [3, 4, 40].into_iter().for_each(|page| memory.write(page));
            let written = watch.written(memory.bytes()).expect("watched");
            assert_eq!(pages(&written), [3, 4, 40]);
            watch.guard(&written, &[3, 4, 40]);
        }
        // They were written often, so they are guarded only after a look at which they are the same.
        let written = watch.written(memory.bytes()).expect("watched");
        assert_eq!(pages(&written), [3, 4, 40]);
        watch.guard(&written, &[]);
        assert_eq!(watch.written(memory.bytes()).map(|written| pages(&written)), Some(Vec::new()));
        memory.write(4);
        memory.write(63);
        assert_eq!(watch.written(memory.bytes()).map(|written| pages(&written)), Some(vec![4, 63]));
        // Another memory isn't known.
        assert_eq!(watch.written(PageMemory::new().bytes()), None);
        assert_eq!(watch.written(memory.bytes()), None, "nor is this one any more");
    }

    #[test]
    fn a_page_that_is_written_once_is_guarded_at_once() {
        let mut guard = PageGuard::default();
        assert!(!guard.stays_open(true));
        assert!(guard.stays_open(true), "it was written again");
        assert!(!guard.stays_open(false));
        assert!(guard.stays_open(true), "and again");
        let looks = (0..).take_while(|_| guard.stays_open(false)).count();
        assert_eq!(looks, 2);
    }
}
