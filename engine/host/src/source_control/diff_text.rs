//! Diffs as text, and what a page shows of them.

use super::{DiffReading, DiffTarget, FileDiff};
use std::path::Path;
use store::{BlobHash, TextHunk};
use vcs::{RepositoryFolder, VcsError};

/// Maximum number of hunks of a file that are shown, and of their bytes.
const MAX_DIFF_HUNKS: usize = 200;
const MAX_DIFF_TEXT_BYTES: usize = 400_000;

pub(super) fn diff_text(root: &Path, target: &DiffTarget) -> Result<(String, bool), VcsError> {
    let repository = RepositoryFolder::open(root)?;
    match target {
        DiffTarget::Staged(path) => repository.staged_file_diff(path),
        DiffTarget::Unstaged(path) | DiffTarget::Conflict(path) => repository.unstaged_diff(path),
        DiffTarget::Stash(id) => repository.stash_diff(id),
        DiffTarget::Commit(id) => repository.show(id).map(|(_, text, is_complete)| (text, is_complete)),
    }
}

/// Reads a unified diff. Each hunk holds its unchanged lines on both sides.
pub(super) fn parse_diff(text: &str, is_complete: bool) -> DiffReading {
    let hash = Some(BlobHash::of(text.as_bytes()));
    let mut reading = DiffReading { is_complete, hash, ..DiffReading::default() };
    let (mut hunks, mut bytes) = (0, 0);
    // Numbers of lines of the hunk that are still to come, on both sides.
    let mut left = (0_u32, 0_u32);
    for line in text.split_inclusive('\n') {
        if left == (0, 0) {
            if let Some(paths) = line.strip_prefix("diff --git a/") {
                let path = paths.trim_end().rsplit_once(" b/").map_or("", |(_, path)| path).to_owned();
                reading.files.push(FileDiff { path, ..FileDiff::default() });
            } else if line.starts_with("Binary files ")
                && let Some(file) = reading.files.last_mut()
            {
                file.is_binary = true;
            } else if let (Some((old, new)), Some(file)) = (hunk_lines(line), reading.files.last_mut()) {
                hunks += 1;
                if hunks > MAX_DIFF_HUNKS || bytes > MAX_DIFF_TEXT_BYTES {
                    reading.is_complete = false;
                    return reading;
                }
                left = (old.1, new.1);
                file.hunks.push(TextHunk { lines: Some((old.0, new.0)), ..TextHunk::default() });
                file.changed_lines.push(Vec::new());
            }
            continue;
        }
        let Some(file) = reading.files.last_mut() else { continue };
        let (Some(hunk), Some(changed)) = (file.hunks.last_mut(), file.changed_lines.last_mut()) else { continue };
        let Some(body) = line.get(1..) else { continue };
        bytes += body.len();
        if line.starts_with(['+', '-']) {
            changed.push(line.trim_end_matches(['\r', '\n']).to_owned());
        }
        if line.starts_with([' ', '-']) {
            hunk.removed.push_str(body);
            left.0 = left.0.saturating_sub(1);
        }
        if line.starts_with([' ', '+']) {
            hunk.inserted.push_str(body);
            left.1 = left.1.saturating_sub(1);
        }
    }
    reading
}

/// Reads the numbers of `@@ -12,3 +12,4 @@`: the first line and the count, in the old and in the new text.
fn hunk_lines(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((range(old)?, range(new)?))
}
