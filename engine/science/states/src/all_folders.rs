//! The folders of all notes: their size, and thinning those that weren't used for the longest time.

use crate::errors::StateError;
use crate::files::folder_bytes;
use crate::retention::thin_folder;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Budget to which the least recently used notes are thinned while all states exceed theirs. Data that must stay, such
/// as the last variables, stays whatever its size.
const UNUSED_NOTE_BYTES: u64 = 0;
/// Size of all states after thinning, in tenths of their budget.
const TARGET_TENTHS: u64 = 9;

/// Returns the notes' folders, least recently used first: last use, size in bytes, path.
fn folders_by_use(states: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let folders = std::fs::read_dir(states).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = folders
        .filter(|path| path.is_dir() && !path.is_symlink())
        .map(|path| {
            let used = std::fs::metadata(path.join("heads")).and_then(|about| about.modified());
            (used.unwrap_or(SystemTime::UNIX_EPOCH), folder_bytes(&path), path)
        })
        .collect();
    found.sort();
    found
}

/// Returns the size in bytes of the states in all notes' folders, which are in `states`.
#[must_use]
pub fn all_folders_bytes(states: &Path) -> u64 {
    folders_by_use(states).iter().map(|(_, bytes, _)| bytes).sum()
}

/// Thins the least recently used folders in `states`, except for `own`, until all are within the budget. Returns the
/// errors of folders that couldn't be thinned, for example because a kernel uses them.
pub fn thin_least_used(states: &Path, own: &Path, budget_bytes: u64) -> Vec<StateError> {
    let folders = folders_by_use(states);
    let mut used: u64 = folders.iter().map(|(_, bytes, _)| bytes).sum();
    let mut errors = Vec::new();
    if used <= budget_bytes {
        return errors;
    }
    let target = budget_bytes / 10 * TARGET_TENTHS;
    for (_, before, folder) in folders {
        if used <= target {
            break;
        }
        if folder == own {
            continue;
        }
        match thin_folder(&folder, UNUSED_NOTE_BYTES) {
            Ok(after) => used = used.saturating_sub(before.saturating_sub(after)),
            Err(why) => errors.push(why),
        }
    }
    errors
}
