//! Counts from outside what a tool adds to folders. Quotas need privileges, so the folders are measured now and then; a
//! tool is ended once they have grown too much.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shortest time between two measurements.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// How many times as long as a measurement the pause after it is.
const PAUSE_FACTOR: u32 = 10;
/// Maximum number of files and folders that are measured.
const MAX_MEASURED_ENTRIES: usize = 2_000_000;

/// Unit in which the system says what a file takes, in bytes.
#[cfg(unix)]
const BLOCK_BYTES: u64 = 512;

/// The growth of folders from now on, with a limit.
pub struct FolderGrowth {
    folders: Vec<PathBuf>,
    /// Their size in bytes at the start.
    before: u64,
    /// Maximum growth in bytes.
    max_growth: u64,
    /// When they are measured again.
    next: Instant,
}

impl FolderGrowth {
    /// Measures folders, which may grow by this many bytes.
    pub fn new(folders: Vec<PathBuf>, max_growth: u64) -> FolderGrowth {
        let before = measure(&folders);
        FolderGrowth { folders, before, max_growth, next: Instant::now() + MIN_PAUSE }
    }

    /// Returns whether the folders have grown too much, by the last measurement. Measures only if it's time for it.
    pub fn is_exceeded(&mut self) -> bool {
        let begun = Instant::now();
        if begun < self.next {
            return false;
        }
        let exceeded = self.has_grown_too_much();
        self.next = Instant::now() + MIN_PAUSE.max(begun.elapsed().saturating_mul(PAUSE_FACTOR));
        exceeded
    }

    /// Measures the folders, and returns whether they have grown too much.
    pub fn has_grown_too_much(&self) -> bool {
        measure(&self.folders).saturating_sub(self.before) > self.max_growth
    }

    /// Returns what the result of a tool says that added too much.
    pub fn excess_note(&self) -> String {
        format!("(stopped: it added more than {} MB to the folder)", self.max_growth >> 20)
    }
}

/// Returns the bytes that everything in these folders takes. Links aren't followed.
fn measure(folders: &[PathBuf]) -> u64 {
    let (mut total, mut count) = (0u64, 0);
    let mut open = folders.to_vec();
    while let Some(folder) = open.pop() {
        // What can't be read, or is gone meanwhile, isn't counted.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            count += 1;
            if count > MAX_MEASURED_ENTRIES {
                return total;
            }
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                open.push(entry.path());
            } else {
                total = total.saturating_add(allocated_bytes(&found));
            }
        }
    }
    total
}

/// Returns the bytes that a file takes on disk, or its length if that is more: space may be allocated later.
fn allocated_bytes(file: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.blocks().saturating_mul(BLOCK_BYTES).max(file.len())
    }
    #[cfg(not(unix))]
    {
        file.len()
    }
}

#[cfg(test)]
mod tests {
    use super::FolderGrowth;

    #[test]
    fn only_what_is_added_counts() {
        let root = std::env::temp_dir().join(format!("tracebook-growth-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("made");
        std::fs::write(root.join("old"), vec![1; 3 << 20]).expect("written");
        let growth = FolderGrowth::new(vec![root.clone()], 1 << 20);
        std::fs::create_dir(root.join("deep")).expect("made");
        std::fs::write(root.join("deep/a"), vec![1; 600 << 10]).expect("written");
        assert!(!growth.has_grown_too_much());
        std::fs::write(root.join("deep/b"), vec![1; 600 << 10]).expect("written");
        assert!(growth.has_grown_too_much());
        std::fs::remove_file(root.join("old")).expect("removed");
        assert!(!growth.has_grown_too_much());
        std::fs::remove_dir_all(root).expect("removed");
    }
}
