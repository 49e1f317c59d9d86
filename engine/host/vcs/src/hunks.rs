//! Hunks and lines of a file's changes: what a file would be if only some of them were staged, unstaged or discarded.
//!
//! Hunks and the changed lines in them have numbers from 1. They belong to the file as it is now, so a caller that has
//! shown them checks that the file is still the same.

use crate::ignore_rules::follow_rules_of;
use crate::{RepositoryFolder, VcsError, slash_path};
use git2::{AttrCheckFlags, AttrValue, Delta, Diff, DiffOptions, FileMode, Patch};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum size in bytes of a file whose hunks are told apart.
const MAX_HUNK_FILE_BYTES: i64 = 10 << 20;

/// What to do with hunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HunkAction {
    /// Add them to what is staged.
    Stage,
    /// Take them out of what is staged.
    Unstage,
    /// Take them out of the file.
    Discard,
}

impl HunkAction {
    /// Returns whether the hunks are those between the last commit and what is staged.
    pub fn is_of_staged(self) -> bool {
        self == HunkAction::Unstage
    }
}

/// A chosen hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkChoice {
    /// Number of the hunk in the file, from 1.
    pub hunk: usize,
    /// Numbers of the changed lines in the hunk, from 1; empty for all.
    pub lines: Vec<usize>,
}

/// A hunk of a file's changes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileHunk {
    /// Number of the hunk in the file, from 1.
    pub number: usize,
    /// First line and number of lines in the old text.
    pub old: (u32, u32),
    /// First line and number of lines in the new text.
    pub new: (u32, u32),
    /// The changed lines, with the unchanged ones around them.
    pub lines: Vec<FileHunkLine>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileHunkLine {
    /// Number among the changed lines of the hunk, from 1; `None` if the line is unchanged.
    pub number: Option<usize>,
    /// `+`, `-` or a space.
    pub sign: char,
    /// The line without its end; bytes that aren't UTF-8 are replaced.
    pub text: String,
}

/// How an entry of the index is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexUpdate {
    /// A file with this content.
    Set {
        /// Path in the repository.
        repository_path: String,
        /// Hash of the content, which is in the repository's store.
        id: String,
        /// Mode as Git writes it, such as `100644`.
        mode: String,
    },
    /// No file.
    Remove,
}

/// The changes of a file, and where they come from.
struct FilePatch<'a> {
    patch: Patch<'a>,
    status: Delta,
    old_mode: FileMode,
    new_mode: FileMode,
}

impl RepositoryFolder {
    /// Returns the hunks of a file: what is staged of it, or what isn't.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder, or if the file is in conflict, isn't text, is
    /// too large, is a link or a repository, or hasn't changed.
    pub fn hunks(&self, path: &str, is_staged: bool) -> Result<Vec<FileHunk>, VcsError> {
        read_hunks(&self.file_patch(path, is_staged)?.patch)
    }

    /// Returns what is staged of a file as a unified diff, and whether it's complete. A renamed file is compared with
    /// the file that it was.
    ///
    /// # Errors
    /// Returns [`VcsError::Refused`] if the path leads out of the folder.
    pub fn staged_file_diff(&self, path: &str) -> Result<(String, bool), VcsError> {
        match self.file_patch(path, true) {
            Ok(mut found) => Ok((String::from_utf8_lossy(&found.patch.to_buf()?).into_owned(), true)),
            Err(VcsError::Refused(_)) => self.staged_diff(Some(path)),
            Err(error) => Err(error),
        }
    }

    /// Stages or unstages hunks of a file: returns how its entry in the index is to be. The content is in the
    /// repository's store then; the index itself isn't written.
    ///
    /// # Errors
    /// As [`RepositoryFolder::hunks`]; also if there's no such hunk or line, or a filter changes the file's bytes.
    pub fn choose_staged(
        &self,
        path: &str,
        is_unstaging: bool,
        choices: &[HunkChoice],
    ) -> Result<IndexUpdate, VcsError> {
        let found = self.file_patch(path, is_unstaging)?;
        let inside = self.repository_path(path)?;
        let entry = self.repository.index()?.get_path(Path::new(&inside), 0);
        let base = match &entry {
            Some(entry) => self.repository.find_blob(entry.id)?.content().to_vec(),
            None => Vec::new(),
        };
        let (bytes, is_all) = apply_choices(&found.patch, &base, is_unstaging, choices, path)?;
        let ends = if is_unstaging { Delta::Added } else { Delta::Deleted };
        if is_all && found.status == ends {
            return Ok(IndexUpdate::Remove);
        }
        let mode = match &entry {
            Some(entry) => entry.mode,
            None => u32::from(if is_unstaging { found.old_mode } else { found.new_mode }),
        };
        let id = self.repository.blob(&bytes)?.to_string();
        Ok(IndexUpdate::Set { repository_path: inside, id, mode: format!("{mode:o}") })
    }

    /// Returns a file's bytes without some of its unstaged hunks. `bytes` are its current ones.
    ///
    /// # Errors
    /// As [`RepositoryFolder::choose_staged`]; also if the file is new or gone, because then it's discarded as a whole.
    pub fn without_hunks(&self, path: &str, bytes: &[u8], choices: &[HunkChoice]) -> Result<Vec<u8>, VcsError> {
        let found = self.file_patch(path, false)?;
        if found.status != Delta::Modified {
            return refuse("it's new or deleted, so its changes can only be discarded as a whole", path);
        }
        Ok(apply_choices(&found.patch, bytes, true, choices, path)?.0)
    }

    fn file_patch(&self, path: &str, is_staged: bool) -> Result<FilePatch<'_>, VcsError> {
        let inside = self.repository_path(path)?;
        if slash_path(Path::new(path)).is_none_or(|path| path.is_empty()) {
            return refuse("name a file", path);
        }
        let index = self.repository.index()?;
        if (1..=3).any(|stage| index.get_path(Path::new(&inside), stage).is_some()) {
            return refuse("it's in conflict, so resolve that first", path);
        }
        for name in ["filter", "working-tree-encoding"] {
            let value = self.repository.get_attr_bytes(Path::new(&inside), name, AttrCheckFlags::default())?;
            if matches!(AttrValue::from_bytes(value), AttrValue::String(_) | AttrValue::Bytes(_)) {
                return refuse(&format!("its bytes go through its attribute {name}, so take the whole file"), path);
            }
        }
        let mut options = DiffOptions::new();
        options.disable_pathspec_match(true).max_size(MAX_HUNK_FILE_BYTES);
        let diff = if is_staged {
            let head = self.head_tree()?;
            options.pathspec(&inside);
            let mut diff = self.repository.diff_tree_to_index(head.as_ref(), None, Some(&mut options))?;
            if diff.deltas().any(|delta| delta.status() == Delta::Added) {
                // What it was before is in the diff of all files.
                let mut options = DiffOptions::new();
                options.max_size(MAX_HUNK_FILE_BYTES);
                diff = self.repository.diff_tree_to_index(head.as_ref(), None, Some(&mut options))?;
                self.mark_renames(&mut diff)?;
            }
            diff
        } else {
            options.include_untracked(true).recurse_untracked_dirs(true).show_untracked_content(true);
            options.ignore_submodules(true).pathspec(&inside);
            follow_rules_of(&self.repository, &inside)?;
            self.repository.diff_index_to_workdir(None, Some(&mut options))?
        };
        let Some(at) = position_of(&diff, &inside) else { return refuse("nothing has changed there", path) };
        let delta = diff.get_delta(at);
        let Some(delta) = delta else { return refuse("nothing has changed there", path) };
        let (status, old_mode, new_mode) = (delta.status(), delta.old_file().mode(), delta.new_file().mode());
        let is_file = |mode| matches!(mode, FileMode::Blob | FileMode::BlobExecutable | FileMode::Unreadable);
        if !is_file(old_mode) || !is_file(new_mode) {
            return refuse("it's a link or a repository, so take it as a whole", path);
        }
        let patch = Patch::from_diff(&diff, at)?;
        let Some(patch) = patch.filter(|patch| !patch.delta().flags().is_binary()) else {
            return refuse("it isn't text, or is too large, so take the whole file", path);
        };
        if patch.num_hunks() == 0 {
            return refuse("no text has changed", path);
        }
        Ok(FilePatch { patch, status, old_mode, new_mode })
    }
}

fn refuse<T>(why: &str, path: &str) -> Result<T, VcsError> {
    Err(VcsError::Refused(format!("{why}: {path}")))
}

/// Returns the hunks of a file's changes.
pub(crate) fn read_hunks(patch: &Patch<'_>) -> Result<Vec<FileHunk>, VcsError> {
    let mut hunks = Vec::new();
    for at in 0..patch.num_hunks() {
        let (hunk, count) = patch.hunk(at)?;
        let (old, new) = ((hunk.old_start(), hunk.old_lines()), (hunk.new_start(), hunk.new_lines()));
        let mut lines = Vec::new();
        let mut changed = 0;
        for line in 0..count {
            let line = patch.line_in_hunk(at, line)?;
            let sign = line.origin();
            if !matches!(sign, '+' | '-' | ' ') {
                continue;
            }
            changed += usize::from(sign != ' ');
            let text = String::from_utf8_lossy(bare_line(line.content())).into_owned();
            lines.push(FileHunkLine { number: (sign != ' ').then_some(changed), sign, text });
        }
        hunks.push(FileHunk { number: at + 1, old, new, lines });
    }
    Ok(hunks)
}

/// Returns the place of a file's change in a diff.
fn position_of(diff: &Diff<'_>, path: &str) -> Option<usize> {
    let is_it = |delta: &git2::DiffDelta<'_>| {
        let name = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes());
        name == Some(path.as_bytes())
    };
    diff.deltas().position(|delta| is_it(&delta))
}

/// Returns a line without its end.
fn bare_line(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Applies chosen changes to a text: to the old one, or taken back from the new one. Also returns whether all changes
/// were chosen.
fn apply_choices(
    patch: &Patch<'_>,
    base: &[u8],
    is_reverse: bool,
    choices: &[HunkChoice],
    path: &str,
) -> Result<(Vec<u8>, bool), VcsError> {
    // The lines of each chosen hunk; none for all of them.
    let mut chosen: BTreeMap<usize, Option<BTreeSet<usize>>> = BTreeMap::new();
    for choice in choices {
        if choice.hunk == 0 || choice.hunk > patch.num_hunks() {
            let count = patch.num_hunks();
            return refuse(&format!("there is no hunk {}; the last one is {count}", choice.hunk), path);
        }
        let lines = chosen.entry(choice.hunk).or_insert_with(|| Some(BTreeSet::new()));
        match lines {
            Some(known) if !choice.lines.is_empty() => known.extend(&choice.lines),
            _ => *lines = None, // tidy: open because all lines are chosen in any other case
        }
    }
    if chosen.is_empty() {
        return refuse("no hunk is chosen", path);
    }
    let lines: Vec<&[u8]> = base.split_inclusive(|byte| *byte == b'\n').collect();
    let (gone, new) = if is_reverse { ('+', '-') } else { ('-', '+') };
    let mut result: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    let mut is_all = true;
    // Git may compare the text with other line ends than those of the file.
    let mut has_added_returns = false;
    for number in 1..=patch.num_hunks() {
        let (hunk, count) = patch.hunk(number - 1)?;
        let (start, length) = match is_reverse {
            true => (hunk.new_start(), hunk.new_lines()),
            false => (hunk.old_start(), hunk.old_lines()),
        };
        // The start of an empty range is the line before it.
        let first = usize::try_from(start).unwrap_or(usize::MAX).saturating_sub(usize::from(length > 0));
        if first < at || first > lines.len() {
            return refuse("it has changed meanwhile", path);
        }
        result.extend(lines[at..first].iter().map(|line| line.to_vec()));
        at = first;
        let picked = chosen.get(&number);
        let (mut changed, mut places) = (0, Vec::new());
        for line in 0..count {
            let line = patch.line_in_hunk(number - 1, line)?;
            let sign = line.origin();
            if !matches!(sign, '+' | '-' | ' ') {
                continue;
            }
            changed += usize::from(sign != ' ');
            let is_picked = match picked {
                Some(Some(lines)) => lines.contains(&changed),
                Some(None) => true,
                None => false,
            };
            let is_chosen = is_picked && sign != ' ';
            is_all &= is_chosen || sign == ' ';
            if sign == new {
                if is_chosen {
                    places.push(result.len());
                    result.push(line.content().to_vec());
                }
                continue;
            }
            let known = lines.get(at).filter(|known| bare_line(known) == bare_line(line.content()));
            let Some(known) = known else { return refuse("it has changed meanwhile, or a filter changes it", path) };
            has_added_returns |= known.ends_with(b"\r\n") && !line.content().ends_with(b"\r\n");
            at += 1;
            if !(sign == gone && is_chosen) {
                result.push(known.to_vec());
            }
        }
        if has_added_returns {
            for place in places {
                let line = &mut result[place];
                if line.ends_with(b"\n") && !line.ends_with(b"\r\n") {
                    line.insert(line.len() - 1, b'\r');
                }
            }
        }
        let is_line = |line: &&usize| **line == 0 || **line > changed;
        if let Some(wrong) = picked.and_then(Option::as_ref).and_then(|lines| lines.iter().find(is_line)) {
            return refuse(&format!("hunk {number} has {changed} changed lines, so not line {wrong}"), path);
        }
    }
    result.extend(lines[at..].iter().map(|line| line.to_vec()));
    // A last line without an end gets one if another line follows it now.
    let end: &[u8] =
        if base.split_inclusive(|byte| *byte == b'\n').any(|line| line.ends_with(b"\r\n")) { b"\r\n" } else { b"\n" };
    let count = result.len();
    for line in result.iter_mut().take(count.saturating_sub(1)) {
        if !line.ends_with(b"\n") {
            line.extend_from_slice(end);
        }
    }
    Ok((result.concat(), is_all))
}

#[cfg(test)]
mod tests;
