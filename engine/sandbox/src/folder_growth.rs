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
/// Maximum duration of a measurement for a limit that nobody has chosen.
const MAX_USUAL_MEASUREMENT: Duration = Duration::from_secs(1);
/// Number of entries after which the time is looked at.
const ENTRIES_PER_LOOK: usize = 256;

/// Unit in which the system says what a file takes, in bytes.
#[cfg(unix)]
const BLOCK_BYTES: u64 = 512;

/// The growth of folders from now on, with a limit.
pub struct FolderGrowth {
    folders: Vec<PathBuf>,
    /// Their size in bytes at the start.
    before: u64,
    /// Maximum growth in bytes; `None` if it isn't limited.
    max_growth: Option<u64>,
    /// How long a measurement may take, if the limit holds only where it's quick.
    patience: Option<Duration>,
    /// When they are measured again.
    next: Instant,
}

impl FolderGrowth {
    /// Measures folders, which may grow by this many bytes.
    pub fn new(folders: Vec<PathBuf>, max_growth: u64) -> FolderGrowth {
        FolderGrowth::measured(folders, max_growth, None)
    }

    /// Measures folders, which may grow by `chosen` bytes, or by `usual` if nothing was chosen: then only folders that
    /// are measured in a second are limited.
    pub fn limited(folders: Vec<PathBuf>, chosen: Option<u64>, usual: u64) -> FolderGrowth {
        match chosen {
            Some(most) => FolderGrowth::new(folders, most),
            None => FolderGrowth::measured(folders, usual, Some(MAX_USUAL_MEASUREMENT)),
        }
    }

    fn measured(folders: Vec<PathBuf>, max_growth: u64, patience: Option<Duration>) -> FolderGrowth {
        let known = measure(&folders, patience);
        let max_growth = known.is_some().then_some(max_growth);
        FolderGrowth { folders, before: known.unwrap_or(0), max_growth, patience, next: Instant::now() + MIN_PAUSE }
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
        let Some(most) = self.max_growth else { return false };
        measure(&self.folders, self.patience).is_some_and(|now| now.saturating_sub(self.before) > most)
    }

    /// Returns what the result of a tool says that added too much.
    pub fn excess_note(&self) -> String {
        let megabytes = self.max_growth.unwrap_or(0) >> 20;
        match self.patience {
            None => format!("(stopped: it added more than {megabytes} MB to the folder)"),
            Some(_) => format!(
                "(over the usual limit: it added more than {megabytes} MB to the folder, or another program did; \
                 sandbox.disk_mb sets the limit)"
            ),
        }
    }
}

/// Returns the bytes that everything in these folders takes; `None` if that takes longer than `patience`. Links aren't
/// followed.
fn measure(folders: &[PathBuf], patience: Option<Duration>) -> Option<u64> {
    let begun = Instant::now();
    let (mut total, mut count) = (0u64, 0);
    let mut open = folders.to_vec();
    while let Some(folder) = open.pop() {
        // What can't be read, or is gone meanwhile, isn't counted.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            count += 1;
            if count > MAX_MEASURED_ENTRIES {
                return Some(total);
            }
            if count % ENTRIES_PER_LOOK == 0 && patience.is_some_and(|patience| begun.elapsed() > patience) {
                return None;
            }
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                open.push(entry.path());
            } else {
                total = total.saturating_add(allocated_bytes(&found));
            }
        }
    }
    Some(total)
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
    use super::*;

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
        // Folders that take too long to measure aren't limited, unless someone has set a limit.
        for number in 0..2 * ENTRIES_PER_LOOK {
            std::fs::write(root.join(format!("deep/{number}")), "").expect("written");
        }
        assert!(measure(std::slice::from_ref(&root), Some(Duration::ZERO)).is_none());
        let growth = FolderGrowth::measured(vec![root.clone()], 0, Some(Duration::ZERO));
        std::fs::write(root.join("new"), "x").expect("written");
        assert!(!growth.has_grown_too_much());
        assert!(FolderGrowth::limited(vec![root.clone()], None, 10).excess_note().contains("disk_mb"));
        std::fs::remove_dir_all(root).expect("removed");
    }
}
