//! What has changed in a fork since it was made, file by file and hunk by hunk.

use crate::file_versions::{FileVersion, read_version};
use crate::fork_error::ForkError;
use crate::fork_record::{BaseFiles, ForkRecord, ForkStore};
use crate::project_walk::{is_dependency_folder, walk_project};
use host::fs::atomic_write::modified_nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use store::BlobHash;
use text::diff;
use vcs::RepositoryFolder;

/// How a file of a fork has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkFileChange {
    /// It's new.
    Added,
    /// Its content differs.
    Modified,
    /// It's gone.
    Deleted,
}

/// Lines in which a file of a fork differs from what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForkHunk {
    /// Number of the hunk in its file, from 1.
    pub number: usize,
    /// Number of its first line before, from 1.
    pub old_line: usize,
    /// Number of its first line after, from 1.
    pub new_line: usize,
    /// The lines before.
    pub removed: String,
    /// The lines after.
    pub added: String,
    /// Byte range of the lines before.
    #[serde(skip)]
    pub(crate) old: Range<usize>,
}

/// A file that has changed in a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedForkFile {
    /// Path in the project, with `/` between its parts.
    pub path: String,
    /// How it has changed.
    pub change: ForkFileChange,
    /// Whether it's text, which has hunks.
    pub is_text: bool,
    /// The changed lines; none for a file that isn't text.
    pub hunks: Vec<ForkHunk>,
    /// Why other programs run it or load it as code, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_because: Option<&'static str>,
    #[serde(skip)]
    pub(crate) base: FileVersion,
    #[serde(skip)]
    pub(crate) now: FileVersion,
    #[serde(skip)]
    pub(crate) is_executable: bool,
}

impl ChangedForkFile {
    /// Returns the text after the change; empty if the file is gone, `None` if it isn't text.
    pub fn text(&self) -> Option<&str> {
        self.now.text()
    }

    /// Returns the text before the change; empty if the file is new, `None` if it isn't text.
    pub fn old_text(&self) -> Option<&str> {
        self.base.text()
    }

    /// Returns whether another fork has made the same of the file.
    pub fn has_same_content(&self, other: &ChangedForkFile) -> bool {
        self.now.hash() == other.now.hash()
    }
}

/// What has changed in a fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkChanges {
    /// The changed files by path.
    pub files: Vec<ChangedForkFile>,
    /// Files that can't be adopted, and why.
    pub skipped: Vec<(String, String)>,
}

impl ForkChanges {
    /// Returns a short name of exactly these changes, 16 hexadecimal digits: other changes have another one.
    pub fn version(&self) -> String {
        let hash = |version: &FileVersion| version.hash().map(|hash| hash.to_string());
        let files = self.files.iter().map(|file| (&file.path, hash(&file.base), hash(&file.now), file.is_executable));
        let listed = serde_json::json!([files.collect::<Vec<_>>(), self.skipped]).to_string();
        BlobHash::of(listed.as_bytes()).to_string()[..16].to_owned()
    }
}

impl ForkStore {
    /// Returns what has changed in a fork since it was made. New files that Git ignores don't count.
    ///
    /// # Errors
    /// Returns [`ForkError::Refused`] if the fork's folder or the list of its base is gone.
    pub fn changes(&self, fork: &ForkRecord) -> Result<ForkChanges, ForkError> {
        let base = self.read_base(&fork.name)?;
        let folder = self.open_files(fork)?;
        // The user's own repository says what is ignored: a run could change the fork's.
        let repository = fork.git.as_ref().and_then(|_| RepositoryFolder::open(&fork.project).ok());
        let is_ignored =
            |path: &str| repository.as_ref().is_some_and(|repository| repository.is_ignored(path).unwrap_or(false));
        let walked = walk_project(&folder, &|place, path| {
            !has_files_below(&base, path)
                && (is_ignored(&format!("{path}/")) || (repository.is_none() && is_dependency_folder(place)))
        })?;
        let mut changes = ForkChanges::default();
        let mut seen = BTreeMap::new();
        for (path, meta) in walked.files {
            let known = base.get(&path);
            let is_same =
                known.is_some_and(|known| (known.size, known.modified) == (meta.len(), modified_nanos(&meta)));
            let is_left_out = known.is_none() && is_ignored(&path);
            seen.insert(path, is_same || is_left_out);
        }
        for link in walked.links.into_iter().filter(|link| base.contains_key(link)) {
            changes.skipped.push((link.clone(), "it was replaced by a link".to_owned()));
            seen.insert(link, true);
        }
        for path in base.keys() {
            // A file in a nested repository's folder isn't listed, and isn't gone.
            seen.entry(path.clone()).or_insert(false);
        }
        for (path, _) in seen.into_iter().filter(|(_, is_settled)| !is_settled) {
            let known = base.get(&path);
            match read_version(&folder, &path) {
                Ok((now, _)) if now.hash() == known.map(|known| known.hash) => {}
                Ok((now, is_executable)) => {
                    let base = self.base_version(&fork.name, known);
                    changes.files.push(changed_file(path, base, now, is_executable));
                }
                Err(error) => changes.skipped.push((path, error.to_string())),
            }
        }
        Ok(changes)
    }
}

fn has_files_below(base: &BaseFiles, path: &str) -> bool {
    let below = format!("{path}/");
    let mut after = base.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
    after.next().is_some_and(|(first, _)| first.starts_with(&below))
}

fn changed_file(path: String, base: FileVersion, now: FileVersion, is_executable: bool) -> ChangedForkFile {
    let change = match (&base, &now) {
        (FileVersion::Missing, _) => ForkFileChange::Added,
        (_, FileVersion::Missing) => ForkFileChange::Deleted,
        (_, _) => ForkFileChange::Modified,
    };
    let hunks = match (base.text(), now.text()) {
        (Some(old), Some(new)) => text_hunks(old, new),
        (None, _) | (_, None) => Vec::new(),
    };
    let runs_because = guarded::guarded_reason(&path);
    let is_text = base.text().is_some() && now.text().is_some();
    ChangedForkFile { path, change, is_text, hunks, runs_because, base, now, is_executable }
}

fn text_hunks(old: &str, new: &str) -> Vec<ForkHunk> {
    let hunks = diff::line_hunks(old, new).into_iter().enumerate();
    hunks
        .map(|(at, hunk)| ForkHunk {
            number: at + 1,
            old_line: hunk.lines.0,
            new_line: hunk.lines.1,
            removed: old.get(hunk.old.clone()).unwrap_or_default().to_owned(),
            added: new.get(hunk.new.clone()).unwrap_or_default().to_owned(),
            old: hunk.old,
        })
        .collect()
}

/// Returns the old text with the chosen hunks only.
pub(crate) fn apply_hunks(old: &str, hunks: &[ForkHunk], chosen: &[usize]) -> String {
    let mut text = String::with_capacity(old.len());
    let mut from = 0;
    for hunk in hunks.iter().filter(|hunk| chosen.contains(&hunk.number)) {
        text.push_str(old.get(from..hunk.old.start).unwrap_or_default());
        text.push_str(&hunk.added);
        from = hunk.old.end;
    }
    text.push_str(old.get(from..).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_hunks_make_a_text_between_both() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\ng\n", "A\nb\nc\nd\ne\nf\nG\nh\n");
        let hunks = text_hunks(old, new);
        assert_eq!(hunks.len(), 2, "{hunks:?}");
        assert_eq!(apply_hunks(old, &hunks, &[1]), "A\nb\nc\nd\ne\nf\ng\n");
        assert_eq!(apply_hunks(old, &hunks, &[2]), "a\nb\nc\nd\ne\nf\nG\nh\n");
        assert_eq!(apply_hunks(old, &hunks, &[1, 2]), new);
        assert_eq!(apply_hunks(old, &hunks, &[]), old);
    }
}
