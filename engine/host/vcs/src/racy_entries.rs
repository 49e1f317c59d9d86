//! Writes Git's index so that Git itself sees each change.
//!
//! Git takes a file for unchanged if its size and time are those in the index, and compares times by the second. A file
//! that may have changed in the second in which the index was written is read once more ("racy", as in Git's
//! `Documentation/technical/racy-git.txt`). Whoever writes the index later has to mark such files. libgit2 compares by
//! the nanosecond, and marks too few.

use crate::errors::VcsError;
use git2::{Index, IndexEntry, ObjectType, Oid, Repository};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bits of a mode that say that an entry is a plain file.
const PLAIN_FILE_MODE: u32 = 0o100_000;
const FILE_TYPE_BITS: u32 = 0o170_000;
/// Bits of an entry's flags that say which side of a conflict it is.
const STAGE_FLAGS: u16 = 0x3000;

/// Writes an index, and marks files that have changed in the second of their entry's time.
pub(crate) fn write_index(repository: &Repository, index: &mut Index) -> Result<(), VcsError> {
    let written = index.path().and_then(|path| path.metadata().ok()).and_then(|meta| seconds(meta.modified().ok()?));
    if let (Some(top), Some(written)) = (repository.workdir(), written) {
        let is_racy = |entry: &IndexEntry| {
            entry.mode & FILE_TYPE_BITS == PLAIN_FILE_MODE
                && entry.flags & STAGE_FLAGS == 0
                && i64::from(entry.mtime.seconds()) >= written
                && has_changed(top, entry)
        };
        let changed: Vec<IndexEntry> = index.iter().filter(is_racy).collect();
        for mut entry in changed {
            // No file with text has this size, so Git reads it.
            entry.file_size = 0;
            index.add(&entry)?;
        }
    }
    Ok(index.write()?)
}

fn seconds(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// Whether a file looks as its entry says but has other bytes. One that can't be read is Git's to complain about.
fn has_changed(top: &Path, entry: &IndexEntry) -> bool {
    let Ok(path) = std::str::from_utf8(&entry.path).map(|path| -> PathBuf { top.join(path) }) else { return false };
    let Ok(meta) = path.symlink_metadata() else { return false };
    let time = meta.modified().ok().and_then(seconds);
    let looks_same =
        meta.is_file() && meta.len() == u64::from(entry.file_size) && time == Some(i64::from(entry.mtime.seconds()));
    looks_same && Oid::hash_file(ObjectType::Blob, &path).is_ok_and(|id| id != entry.id)
}
