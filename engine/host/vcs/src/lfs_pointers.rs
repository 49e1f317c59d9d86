//! Files in Git LFS: whether one has the content that its pointer in the index names. No filter runs for that. And
//! files in another encoding than UTF-8: whether one has the text that is in the index.

use crate::ENCODING;
use crate::encodings::decode;
use git2::{AttrCheckFlags, Delta, Diff, Index, ObjectType, Oid, Repository};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// First line of a pointer, without its end.
const POINTER_VERSION: &str = "version https://git-lfs.github.com/spec/v1";
/// Maximum size in bytes of a pointer.
const MAX_POINTER_BYTES: usize = 1_024;
/// Maximum number of bytes that are compared for one list of changes. Files beyond count as changed until the next one.
const MAX_COMPARED_BYTES: u64 = 1 << 30;
/// Maximum size in bytes of a file in another encoding that is compared.
const MAX_ENCODED_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of files whose comparison is kept.
const MAX_KNOWN_FILES: usize = 4_096;
/// Time after its last change from which a file's comparison is kept: another change could have the same time before.
const MIN_AGE: Duration = Duration::from_secs(2);

/// The content that a pointer names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LfsContent {
    /// SHA-256 in lowercase hexadecimal digits.
    hash: String,
    bytes: u64,
}

/// A file at a time of its life, and what it was compared with.
type ComparedFile = (PathBuf, SystemTime, LfsContent);

/// Results of comparisons, so that a large file isn't read for each list.
static KNOWN_FILES: Mutex<BTreeMap<ComparedFile, bool>> = Mutex::new(BTreeMap::new());

/// Compares files with their pointers for one list of changes.
pub(crate) struct LfsComparison<'a> {
    repository: &'a Repository,
    index: &'a Index,
    /// Whether Git would run the filter; `None` until that's asked.
    has_filter: Option<bool>,
    remaining_bytes: u64,
}

impl<'a> LfsComparison<'a> {
    pub(crate) fn new(repository: &'a Repository, index: &'a Index) -> LfsComparison<'a> {
        LfsComparison { repository, index, has_filter: None, remaining_bytes: MAX_COMPARED_BYTES }
    }

    /// Returns whether a file is what its pointer in the index names. libgit2, which runs no filter, takes such a file
    /// for a changed one as soon as it has another time than the index says.
    pub(crate) fn is_unchanged(&mut self, path: &Path) -> bool {
        self.compare(path) == Some(true) || self.has_same_text(path) == Some(true)
    }

    /// Returns whether a file with Git's attribute `working-tree-encoding`, which libgit2 doesn't know, has the text
    /// that is in the index.
    fn has_same_text(&mut self, path: &Path) -> Option<bool> {
        let repository = self.repository;
        let encoding = repository.get_attr(path, ENCODING, AttrCheckFlags::default()).ok()??;
        let entry = self.index.get_path(path, 0)?;
        let place = repository.workdir()?.join(path);
        let meta = place.symlink_metadata().ok()?;
        if !meta.is_file() || meta.len() > MAX_ENCODED_FILE_BYTES || !self.has_mode(&meta, entry.mode) {
            return Some(false);
        }
        self.remaining_bytes = self.remaining_bytes.checked_sub(meta.len())?;
        let text = decode(&std::fs::read(&place).ok()?, encoding)?;
        let is_staged = |text: &str| Oid::hash_object(ObjectType::Blob, text.as_bytes()).is_ok_and(|id| id == entry.id);
        Some(is_staged(&text) || is_staged(&text.replace("\r\n", "\n")))
    }

    fn compare(&mut self, path: &Path) -> Option<bool> {
        let entry = self.index.get_path(path, 0)?;
        if self.repository.odb().ok()?.read_header(entry.id).ok()?.0 > MAX_POINTER_BYTES {
            return None;
        }
        let named = read_pointer(self.repository.find_blob(entry.id).ok()?.content())?;
        if self.repository.get_attr(path, "filter", AttrCheckFlags::default()).ok()? != Some("lfs")
            || !self.has_filter()
        {
            return None;
        }
        let place = self.repository.workdir()?.join(path);
        let meta = place.symlink_metadata().ok()?;
        if !meta.is_file() || meta.len() != named.bytes || !self.has_mode(&meta, entry.mode) {
            return Some(false);
        }
        let changed = meta.modified().ok()?;
        let key = (place, changed, named);
        if let Some(known) = KNOWN_FILES.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Some(*known);
        }
        let (place, _, named) = &key;
        self.remaining_bytes = self.remaining_bytes.checked_sub(named.bytes)?;
        let is_same = hash_file(place, named.bytes)? == named.hash;
        if changed.elapsed().is_ok_and(|age| age > MIN_AGE) {
            let mut known = KNOWN_FILES.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_KNOWN_FILES {
                known.clear();
            }
            known.insert(key, is_same);
        }
        Some(is_same)
    }

    /// Returns whether Git would run a filter for such files. Without one, it compares the pointer itself.
    fn has_filter(&mut self) -> bool {
        let is_set = || {
            let config = self.repository.config().ok()?;
            let names = ["filter.lfs.clean", "filter.lfs.process"];
            Some(names.iter().any(|name| config.get_string(name).is_ok_and(|value| !value.is_empty())))
        };
        let known = self.has_filter.unwrap_or_else(|| is_set().unwrap_or(false));
        self.has_filter = Some(known);
        known
    }

    /// Returns whether a file can be run exactly if the index says so.
    fn has_mode(&self, meta: &Metadata, mode: u32) -> bool {
        #[cfg(unix)]
        {
            let counts = self.repository.config().and_then(|config| config.get_bool("core.filemode")).unwrap_or(true);
            let runs = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
            !counts || runs == (mode & 0o100 != 0)
        }
        #[cfg(not(unix))]
        {
            let _ = (meta, mode); // there's no such bit
            true
        }
    }
}

/// Returns the files of a diff of the working tree that are what their pointers in the index name, if these aren't
/// changed themselves.
pub(crate) fn find_unchanged(repository: &Repository, index: &Index, diff: &Diff<'_>) -> BTreeSet<PathBuf> {
    let mut comparison = LfsComparison::new(repository, index);
    let mut found = BTreeSet::new();
    for delta in diff.deltas().filter(|delta| delta.status() == Delta::Modified) {
        let old = delta.old_file();
        let Some(path) = old.path() else { continue };
        let is_staged = index.get_path(path, 0).is_some_and(|entry| entry.id != old.id());
        if !is_staged && comparison.is_unchanged(path) {
            found.insert(path.to_owned());
        }
    }
    found
}

/// Returns the content that a file of the index names, if it's a pointer.
fn read_pointer(bytes: &[u8]) -> Option<LfsContent> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.lines().next()? != POINTER_VERSION {
        return None;
    }
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let hash = value("oid sha256:")?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Some(LfsContent { hash: hash.to_owned(), bytes: value("size ")?.parse().ok()? }).filter(|_| is_hash)
}

/// Returns the SHA-256 of a file in hexadecimal digits; `None` if it can't be read, or isn't as long as it was.
fn hash_file(place: &Path, bytes: u64) -> Option<String> {
    let mut file = File::open(place).ok()?.take(bytes + 1);
    let (mut digest, mut buffer, mut length) = (Sha256::new(), vec![0; 1 << 16], 0_u64);
    loop {
        let read = file.read(&mut buffer).ok()?;
        if read == 0 {
            break;
        }
        length += read as u64;
        digest.update(&buffer[..read]);
    }
    let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    (length == bytes).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pointers_name_a_content() {
        let hash = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let text = format!("{POINTER_VERSION}\next-0-foo sha256:0\noid sha256:{hash}\nsize 12345\n");
        let expected = LfsContent { hash: hash.to_owned(), bytes: 12_345 };
        assert_eq!(read_pointer(text.as_bytes()), Some(expected));
        for damaged in [
            text.replace("v1", "v9"),
            text.replace("size 12345", "size -1"),
            text.replace("4d7a", "XXXX"),
            text.replace("4d7a", ""),
            "# A note\n".to_owned(),
        ] {
            assert_eq!(read_pointer(damaged.as_bytes()), None, "{damaged}");
        }
    }
}
