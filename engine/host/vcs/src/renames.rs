//! Finds under which name a new file was there before, as Git does: by its content, of which at least half is the same.

use crate::errors::VcsError;
use crate::repository_folder::RepositoryFolder;
use git2::{Delta, Diff, DiffDelta, DiffFindOptions, DiffOptions, FileMode, ObjectType, Oid, Repository, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The similarity of two files with the same content.
const FULL_SIMILARITY: usize = 60_000;
/// Minimum similarity of a renamed file: half of the larger of both contents, as in Git.
const MIN_SIMILARITY: usize = FULL_SIMILARITY / 2;
/// Minimum similarity of a file that was moved to another folder and kept its name, which nothing else outdoes then.
const MIN_MOVED_SIMILARITY: usize = FULL_SIMILARITY / 4 * 3;
/// Maximum number of bytes in a chunk of a text; a line that is longer has several.
const MAX_CHUNK_BYTES: usize = 64;
/// Number of different hashes of chunks.
const CHUNK_HASHES: u32 = 107_927;
/// Number of bytes at the beginning of a file in which a NUL byte shows that it isn't text.
pub(crate) const BINARY_CHECK_BYTES: usize = 8_000;
/// Maximum number of files of a diff among which renamed ones are found.
pub(crate) const MAX_RENAME_FILES: usize = 1_000;
/// Maximum number of deleted files of a commit whose contents are compared.
const MAX_COMPARED_FILES: usize = 10_000;
/// Maximum size in bytes of a file whose content is compared.
const MAX_COMPARED_FILE_BYTES: usize = 16 << 20;
/// Maximum total size in bytes of the files that are compared for one rename.
const MAX_COMPARED_BYTES: usize = 256 << 20;

/// The chunks of a file: hash and number of bytes of each, in the order of hashes.
pub(crate) struct ContentChunks {
    sizes: BTreeMap<u32, usize>,
    length: usize,
}

impl ContentChunks {
    /// Splits a file's content at line ends, and long lines into parts.
    pub(crate) fn of(content: &[u8]) -> ContentChunks {
        let is_text = !content.iter().take(BINARY_CHECK_BYTES).any(|byte| *byte == 0);
        let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
        let (mut first, mut second, mut length) = (0_u32, 0_u32, 0_usize);
        for (at, byte) in content.iter().enumerate() {
            // Line ends of other systems make no difference.
            if is_text && *byte == b'\r' && content.get(at + 1) == Some(&b'\n') {
                continue;
            }
            let old = first;
            first = ((first << 7) ^ (second >> 25)).wrapping_add(u32::from(*byte));
            second = (second << 7) ^ (old >> 25);
            length += 1;
            if length == MAX_CHUNK_BYTES || *byte == b'\n' {
                *sizes.entry(chunk_hash(first, second)).or_default() += length;
                (first, second, length) = (0, 0, 0);
            }
        }
        if length > 0 {
            *sizes.entry(chunk_hash(first, second)).or_default() += length;
        }
        ContentChunks { sizes, length: content.len() }
    }

    /// Returns how similar two contents are: how much of the larger one is in the other one, too.
    pub(crate) fn similarity(&self, other: &ContentChunks) -> usize {
        let common = |(hash, size): (&u32, &usize)| other.sizes.get(hash).map_or(0, |other| (*size).min(*other));
        let common: usize = self.sizes.iter().map(common).sum();
        match self.length.max(other.length) {
            0 => FULL_SIMILARITY,
            longest => common.saturating_mul(FULL_SIMILARITY) / longest,
        }
    }
}

fn chunk_hash(first: u32, second: u32) -> u32 {
    first.wrapping_add(second.wrapping_mul(0x61)) % CHUNK_HASHES
}

/// Returns whether sizes differ so much that no contents with them are similar enough.
fn are_too_different(one: usize, other: usize) -> bool {
    one.abs_diff(other).saturating_mul(2) > one.max(other)
}

/// A new file, of which the old name is searched.
pub(crate) struct NewFile<'a> {
    /// Its path in the repository.
    pub(crate) path: &'a Path,
    /// Hash of its content.
    pub(crate) blob: Oid,
    /// Its content, if the repository's store doesn't have it.
    pub(crate) content: Option<&'a [u8]>,
}

/// A file that is gone.
struct GoneFile {
    path: PathBuf,
    blob: Oid,
    is_link: bool,
}

/// Returns whether the new and the deleted files among these are small enough for their contents to be compared.
/// libgit2 reads two of them at a time as a whole, however large they are.
pub(crate) fn are_comparable<'a>(
    repository: &Repository,
    deltas: impl Iterator<Item = DiffDelta<'a>>,
) -> Result<bool, git2::Error> {
    let store = repository.odb()?;
    let mut all_bytes = 0_usize;
    for delta in deltas {
        let file = match delta.status() {
            Delta::Added => delta.new_file(),
            Delta::Deleted => delta.old_file(),
            _ => continue, // tidy: open because no other file is renamed.
        };
        let stored = store.read_header(file.id()).map_or(0, |(size, _)| size);
        let size = usize::try_from(file.size()).unwrap_or(usize::MAX).max(stored);
        all_bytes = all_bytes.saturating_add(size);
        if size > MAX_COMPARED_FILE_BYTES || all_bytes > MAX_COMPARED_BYTES {
            return Ok(false);
        }
    }
    Ok(true)
}

impl RepositoryFolder {
    /// Marks the renamed files of a diff. If it has many files, or some are large, only those with the same content
    /// count.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub(crate) fn mark_renames(&self, diff: &mut Diff<'_>) -> Result<(), VcsError> {
        let is_exact = diff.deltas().len() > MAX_RENAME_FILES || !are_comparable(&self.repository, diff.deltas())?;
        diff.find_similar(Some(DiffFindOptions::new().renames(true).exact_match_only(is_exact)))?;
        Ok(())
    }

    /// Returns the path that a file had in the tree before, if it's one that this tree doesn't have. If the time is up,
    /// only contents that are the same count.
    ///
    /// # Errors
    /// Returns libgit2's error, such as for a content that the repository's store doesn't have.
    pub(crate) fn find_old_path(
        &self,
        old: &Tree<'_>,
        new: &Tree<'_>,
        file: &NewFile<'_>,
        until: Option<Instant>,
    ) -> Result<Option<PathBuf>, VcsError> {
        let mut options = DiffOptions::new();
        options.ignore_submodules(true).include_typechange(true);
        let diff = self.repository.diff_tree_to_tree(Some(old), Some(new), Some(&mut options))?;
        let is_link = new.get_path(file.path).is_ok_and(|entry| entry.filemode() == i32::from(FileMode::Link));
        self.choose_old_path(&gone_files(&diff), file, is_link, until)
    }

    /// Returns the path that a staged file had in the last commit, if it's one that isn't staged.
    ///
    /// # Errors
    /// Returns libgit2's error.
    pub(crate) fn find_unstaged_path(&self, head: &Tree<'_>, file: &NewFile<'_>) -> Result<Option<PathBuf>, VcsError> {
        let mut options = DiffOptions::new();
        options.ignore_submodules(true).include_typechange(true);
        let diff = self.repository.diff_tree_to_index(Some(head), None, Some(&mut options))?;
        self.choose_old_path(&gone_files(&diff), file, false, None)
    }

    fn choose_old_path(
        &self,
        gone: &[GoneFile],
        file: &NewFile<'_>,
        is_link: bool,
        until: Option<Instant>,
    ) -> Result<Option<PathBuf>, VcsError> {
        let has_same_name = |one: &GoneFile| one.path.file_name() == file.path.file_name();
        let same: Vec<&GoneFile> = gone
            .iter()
            .filter(|one| one.blob == file.blob && one.is_link == is_link)
            .take(MAX_COMPARED_FILES)
            .collect();
        if let Some(found) = same.iter().find(|one| has_same_name(one)).or_else(|| same.first()) {
            return Ok(Some(found.path.clone()));
        }
        // Links are renamed only as they are.
        if is_link || gone.len() > MAX_COMPARED_FILES || !gone.iter().any(|one| !one.is_link) {
            return Ok(None);
        }
        let stored;
        let content = match file.content {
            Some(content) => content,
            None if self.blob_size(file.blob)? > MAX_COMPARED_FILE_BYTES => return Ok(None),
            None => {
                stored = self.repository.find_blob(file.blob)?;
                stored.content()
            }
        };
        let chunks = ContentChunks::of(content);
        let mut read_bytes = 0_usize;
        let mut similarity = |one: &GoneFile| -> Result<usize, VcsError> {
            let size = self.blob_size(one.blob)?;
            if are_too_different(size, content.len()) || size > MAX_COMPARED_FILE_BYTES {
                return Ok(0);
            }
            read_bytes = read_bytes.saturating_add(size);
            if read_bytes > MAX_COMPARED_BYTES || until.is_some_and(|until| Instant::now() > until) {
                return Ok(0);
            }
            Ok(ContentChunks::of(self.repository.find_blob(one.blob)?.content()).similarity(&chunks))
        };
        let mut named = gone.iter().filter(|one| !one.is_link && has_same_name(one));
        if let (Some(one), None) = (named.next(), named.next())
            && similarity(one)? >= MIN_MOVED_SIMILARITY
        {
            return Ok(Some(one.path.clone()));
        }
        let mut best: Option<((usize, bool), &GoneFile)> = None;
        for one in gone.iter().filter(|one| !one.is_link) {
            let rank = (similarity(one)?, has_same_name(one));
            // Of several that are as similar, the first one counts.
            if rank.0 >= MIN_SIMILARITY && best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = Some((rank, one));
            }
        }
        Ok(best.map(|(_, one)| one.path.clone()))
    }

    fn blob_size(&self, blob: Oid) -> Result<usize, VcsError> {
        let (size, kind) = self.repository.odb()?.read_header(blob)?;
        Ok(if kind == ObjectType::Blob { size } else { 0 })
    }
}

/// Returns the files that a diff lists as deleted, in the order of their paths.
fn gone_files(diff: &Diff<'_>) -> Vec<GoneFile> {
    let mut gone: Vec<GoneFile> = Vec::new();
    for delta in diff.deltas().filter(|delta| delta.status() == Delta::Deleted) {
        let old = delta.old_file();
        let is_file = matches!(
            old.mode(),
            FileMode::Blob | FileMode::BlobGroupWritable | FileMode::BlobExecutable | FileMode::Link
        );
        if let Some(path) = old.path().filter(|_| is_file) {
            gone.push(GoneFile { path: path.to_owned(), blob: old.id(), is_link: old.mode() == FileMode::Link });
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_part_of_the_larger_content_counts() {
        let similarity =
            |one: &str, other: &str| ContentChunks::of(one.as_bytes()).similarity(&ContentChunks::of(other.as_bytes()));
        let lines = |numbers: std::ops::Range<usize>| -> String {
            numbers.map(|number| format!("this is line {number:02}\n")).collect()
        };
        assert_eq!(similarity(&lines(0..10), &lines(0..10)), FULL_SIMILARITY);
        assert_eq!(similarity(&lines(0..10), &lines(5..15)), MIN_SIMILARITY);
        assert_eq!(similarity(&lines(0..10), &lines(0..20)), MIN_SIMILARITY);
        assert!(similarity(&lines(0..10), &lines(6..16)) < MIN_SIMILARITY);
        // Order and line ends make no difference; how often a line occurs does.
        assert_eq!(similarity("one\ntwo\n", "two\none\n"), FULL_SIMILARITY);
        assert_eq!(similarity("one\none\ntwo\n", "one\ntwo\ntwo\n"), FULL_SIMILARITY * 8 / 12);
        assert_eq!(similarity("one\r\ntwo\r\n", "one\ntwo\n"), FULL_SIMILARITY * 8 / 10);
        // A last line without an end, and parts of a long line.
        assert_eq!(similarity("one\ntwo", "one\nten"), FULL_SIMILARITY * 4 / 7);
        // Not the same letter again and again: Git's hash is the same for all of those.
        let long =
            |numbers: std::ops::Range<usize>| -> String { numbers.map(|number| format!("{number:02}")).collect() };
        assert_eq!(similarity(&long(0..64), &format!("{}{}", long(0..32), long(64..96))), MIN_SIMILARITY);
        assert!(are_too_different(10, 21) && !are_too_different(10, 20) && are_too_different(0, 1));
    }
}
