//! Files of states that this device has shared and no longer shares. Hubs are asked to delete them, which may
//! take until the hub is reachable again, so their names are kept in the note's folder.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::errors::StateError;
use crate::files::{read_bounded, write_whole};
use crate::shared_state::SharedStateFile;

/// Name of the file in a note's folder.
const WITHDRAWN_FILE: &str = "withdrawn";
/// Maximum number of names. The oldest ones are dropped, so hubs that never answered keep those files.
const MAX_WITHDRAWN_FILES: usize = 8_192;
/// Maximum length of a line: an ID, a space and a hash.
const MAX_LINE_BYTES: usize = 200;

/// Held while a list is changed: the thread that shares states and the one that answers hubs both do.
static CHANGE_LOCK: Mutex<()> = Mutex::new(());

/// A file that hubs have to delete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WithdrawnFile {
    /// ID of the volume with whose devices it was shared.
    pub volume: String,
    /// BLAKE3 hash of the file, as hexadecimal digits.
    pub hash: String,
}

/// Returns the files of a note that hubs may still have, oldest first. An unreadable list is empty.
#[must_use]
pub fn withdrawn_files(folder: &Path) -> Vec<WithdrawnFile> {
    let bytes = read_bounded(&folder.join(WITHDRAWN_FILE), MAX_WITHDRAWN_FILES * MAX_LINE_BYTES).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_default();
    let entries = text.lines().filter_map(|line| {
        let (volume, hash) = line.rsplit_once(' ')?; // a hash has no space
        Some(WithdrawnFile { volume: volume.to_owned(), hash: hash.to_owned() })
    });
    entries.take(MAX_WITHDRAWN_FILES).collect()
}

/// Adds files to a note's list, and removes those that are shared again. It's on the disk before this returns.
pub(crate) fn record_withdrawn<'a>(
    folder: &Path,
    volume: &str,
    withdrawn: impl Iterator<Item = &'a SharedStateFile>,
    shared: impl Iterator<Item = &'a SharedStateFile>,
) -> Result<(), StateError> {
    let file = |file: &SharedStateFile| WithdrawnFile { volume: volume.to_owned(), hash: file.hash.clone() };
    let (new, shared): (Vec<WithdrawnFile>, HashSet<WithdrawnFile>) =
        (withdrawn.map(file).collect(), shared.map(file).collect());
    change_list(folder, |list| {
        let again: HashSet<&WithdrawnFile> = new.iter().collect();
        list.retain(|file| !shared.contains(file) && !again.contains(file));
        list.extend(new.iter().filter(|file| !shared.contains(*file)).cloned());
    })
}

/// Removes files from a note's list that no hub has.
///
/// # Errors
/// Returns an error if this can't be written. Hubs are then asked again later.
pub fn remove_withdrawn(folder: &Path, files: &[WithdrawnFile]) -> Result<(), StateError> {
    let gone: HashSet<&WithdrawnFile> = files.iter().collect();
    change_list(folder, |list| list.retain(|file| !gone.contains(file)))
}

fn change_list(folder: &Path, change: impl FnOnce(&mut Vec<WithdrawnFile>)) -> Result<(), StateError> {
    let _lock = CHANGE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let before = withdrawn_files(folder);
    let mut list = before.clone();
    change(&mut list);
    list.drain(..list.len().saturating_sub(MAX_WITHDRAWN_FILES));
    if list == before {
        return Ok(());
    }
    let lines: String = list.iter().map(|file| format!("{} {}\n", file.volume, file.hash)).collect();
    write_whole(&folder.join(WITHDRAWN_FILE), lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: usize) -> SharedStateFile {
        SharedStateFile { hash: format!("{number:064x}"), size: 1 }
    }

    fn hashes(folder: &Path) -> Vec<String> {
        withdrawn_files(folder).into_iter().map(|file| file.hash).collect()
    }

    #[test]
    fn the_list_has_what_hubs_may_still_have_and_no_more_than_it_may() {
        let dir = tempfile::tempdir().expect("a folder");
        let record = |withdrawn: &[SharedStateFile], shared: &[SharedStateFile]| {
            record_withdrawn(dir.path(), "v", withdrawn.iter(), shared.iter()).expect("written");
        };
        record(&[], &[file(1)]);
        assert!(!dir.path().join(WITHDRAWN_FILE).exists(), "nothing is written for nothing");
        record(&[file(1), file(2), file(3)], &[]);
        record(&[file(1)], &[file(2)]);
        assert_eq!(hashes(dir.path()), [file(3).hash, file(1).hash]);
        let gone = WithdrawnFile { volume: "v".to_owned(), hash: file(3).hash };
        remove_withdrawn(dir.path(), &[gone]).expect("written");
        assert_eq!(hashes(dir.path()), [file(1).hash]);
        let many: Vec<SharedStateFile> = (10..10 + MAX_WITHDRAWN_FILES).map(file).collect();
        record(&many, &[]);
        let there = hashes(dir.path());
        assert_eq!((there.len(), &there[0]), (MAX_WITHDRAWN_FILES, &many[0].hash), "the oldest went");
        std::fs::write(dir.path().join(WITHDRAWN_FILE), "x".repeat(MAX_WITHDRAWN_FILES * MAX_LINE_BYTES + 1))
            .expect("written");
        assert!(hashes(dir.path()).is_empty());
    }
}
