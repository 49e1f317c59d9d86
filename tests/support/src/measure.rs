//! What `tracebook bench` and `screenshots` need of the machine: clocks of CPU time, counters of processes, a folder
//! that goes away. Nothing else uses it, and it knows nothing of notes.

pub use crate::stub_embedder::start_stub_embedder;

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// CPU time of the calling thread so far.
#[cfg(unix)]
pub fn thread_cpu() -> Duration {
    cpu_clock(rustix::time::ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far.
#[cfg(unix)]
pub fn process_cpu() -> Duration {
    cpu_clock(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(unix)]
fn cpu_clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Where the system has no such clock, nothing is measured.
#[cfg(not(unix))]
pub fn thread_cpu() -> Duration {
    Duration::ZERO
}

/// Where the system has no such clock, nothing is measured.
#[cfg(not(unix))]
pub fn process_cpu() -> Duration {
    Duration::ZERO
}

/// How long the calling thread could have run so far and had no core to run on: other programs, or other threads of
/// this one, were on them. `None` where the system does not say.
pub fn thread_run_queue_wait() -> Option<Duration> {
    let words = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    words.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// How often the calling thread has given up its core so far to wait for something: a disk, a lock, another thread.
/// `None` where the system does not say.
pub fn thread_voluntary_switches() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

/// How often the calling thread has read or written so far, from files and pipes of any kind, and how often it has
/// touched memory that had to come from the disk. `None` where the system does not say.
pub fn thread_io_count() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    let calls = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let faults: u64 = stat.rsplit_once(')')?.1.split(' ').nth(10)?.parse().ok()?;
    Some(calls("syscr:")? + calls("syscw:")? + faults)
}

/// How many cores this process may use, and what the processor calls itself.
pub fn processor_info() -> (usize, String) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    (cores, model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned()))
}

/// Running and waiting processes per moment, over the last minute.
pub fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// What a process uses, as `/proc` counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFootprint {
    /// Memory that belongs to it alone and to no file, in bytes.
    pub anonymous: u64,
    /// All memory that it has at hand, in bytes.
    pub resident: u64,
    /// The most that it had at hand so far, in bytes.
    pub peak: u64,
    /// CPU time, in the system's ticks (100 a second nearly everywhere).
    pub ticks: u64,
}

/// Measures a process; `None` if it's gone or the system has no `/proc`.
pub fn process_footprint(pid: u32) -> Option<ProcessFootprint> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
    };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain spaces; user and system time are the 12th and 13th word after it.
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    Some(ProcessFootprint {
        anonymous: bytes("RssAnon")?,
        resident: bytes("VmRSS")?,
        peak: bytes("VmHWM")?,
        ticks: ticks(11)? + ticks(12)?,
    })
}

/// The bundled embedding model alone.
pub struct EmbeddingProbe(index::MiniLm);

impl EmbeddingProbe {
    /// Loads it.
    ///
    /// # Errors
    /// A sentence.
    pub fn load_model() -> Result<EmbeddingProbe, String> {
        index::MiniLm::load().map(EmbeddingProbe).map_err(|why| why.to_string())
    }

    /// Makes a text a vector.
    ///
    /// # Errors
    /// A sentence.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, String> {
        index::SentenceEmbedder::embed(&self.0, text).map_err(|why| why.to_string())
    }
}

/// A folder for one measurement, removed with all that is in it when dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    folder: PathBuf,
}

impl ScratchFolder {
    /// Makes one in the system's folder for temporary files.
    ///
    /// # Errors
    /// A sentence.
    pub fn new(name: &str) -> Result<ScratchFolder, String> {
        let folder = std::env::temp_dir().join(format!("tracebook-bench-{}-{name}", std::process::id()));
        let fail = |error| format!("the folder cannot be made ({error}): {}", folder.display());
        std::fs::create_dir(&folder).map_err(fail)?;
        let folder = std::fs::canonicalize(&folder).map_err(fail)?;
        Ok(ScratchFolder { folder })
    }

    /// Returns the folder's path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file in it, not durably, with the folders above it.
    ///
    /// # Errors
    /// A sentence.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| format!("the file cannot be written ({error}): {}", path.display()))
    }

    /// Has everything written so far reach the disk, so that it does not disturb what is measured.
    pub fn sync_to_disk(&self) {
        #[cfg(unix)]
        rustix::fs::sync();
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What stays of a scratch folder is removed by the system.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Keeps a disk busy: a thread writes a file of some megabytes and waits until it is on the disk, over and over.
#[derive(Debug)]
pub struct DiskLoad {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl DiskLoad {
    /// Begins, in this folder.
    ///
    /// # Errors
    /// A sentence.
    pub fn new(folder: &Path) -> Result<DiskLoad, String> {
        let path = folder.join("churn");
        let mut file = std::fs::File::create(&path)
            .map_err(|error| format!("the file cannot be made ({error}): {}", path.display()))?;
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), vec![7; 8 << 20]);
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut written = 0;
            while !stopped.load(Ordering::Relaxed) {
                let done = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&bytes));
                if done.and_then(|()| file.sync_all()).is_err() {
                    break;
                }
                written += 1;
            }
            written
        });
        Ok(DiskLoad { stop, thread })
    }

    /// Ends. Gives how often the file reached the disk.
    pub fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(0)
    }
}

/// A file's bytes.
///
/// # Errors
/// A sentence.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("it cannot be read ({error}): {}", path.display()))
}

/// How many bytes the files in a folder have, all in all.
pub fn folder_bytes(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}

/// Returns the file system type of a folder: `tmpfs` isn't a disk.
pub fn file_system_kind(folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let around = mounts.filter(|(place, _)| folder.starts_with(place));
    around.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_there() {
        let scratch = ScratchFolder::new("test").expect("made");
        let folder = scratch.folder().to_owned();
        scratch.write("a/b", b"12345").expect("written");
        assert_eq!((folder_bytes(&folder), read(&folder.join("a/b"))), (5, Ok(b"12345".to_vec())));
        assert!(file_system_kind(&folder).is_some());
        drop(scratch);
        assert!(!folder.exists());
        let footprint = process_footprint(std::process::id()).expect("this process is there");
        assert!(footprint.anonymous > 0 && footprint.peak >= footprint.resident);
        let (before, mut sum) = (thread_cpu(), 0_u64);
        (0..3_000_000_u64).for_each(|number| sum = sum.wrapping_mul(31).wrapping_add(std::hint::black_box(number)));
        assert!(sum != 0 && thread_cpu() > before && process_cpu() >= thread_cpu());
    }
}
