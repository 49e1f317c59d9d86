//! Diffs as text.

use crate::errors::VcsError;
use git2::{Delta, Diff, DiffDelta, DiffFormat};

/// How libgit2 marks the line that says that binary files differ.
const BINARY_LINE: char = 'B';

/// Maximum size of a diff in bytes.
pub const MAX_DIFF_BYTES: usize = 10 << 20;

pub(crate) fn format_diff(diff: &Diff<'_>) -> Result<(String, bool), VcsError> {
    format_some(diff, &|_| true)
}

/// Formats the diffs of those files that `is_shown` accepts.
pub(crate) fn format_some(
    diff: &Diff<'_>,
    is_shown: &dyn Fn(&DiffDelta<'_>) -> bool,
) -> Result<(String, bool), VcsError> {
    let mut text = Vec::new();
    let mut whole = true;
    let done = diff.print(DiffFormat::Patch, |delta, _, line| {
        if text.len() > MAX_DIFF_BYTES {
            whole = false;
            return false;
        }
        // A folder that's a repository itself has no text.
        if delta.status() == Delta::Unreadable || !is_shown(&delta) {
            return true;
        }
        // As in Git, nothing is said of the bytes of a file that was only moved. Of a large file that was changed,
        // libgit2 may not know the new hash.
        let is_same = delta.old_file().id() == delta.new_file().id();
        if line.origin() == BINARY_LINE && is_same && matches!(delta.status(), Delta::Renamed | Delta::Copied) {
            return true;
        }
        if line.origin() == BINARY_LINE && delta.status() == Delta::Modified {
            text.extend_from_slice(with_both_names(&String::from_utf8_lossy(line.content())).as_bytes());
            return true;
        }
        if matches!(line.origin(), '+' | '-' | ' ') {
            text.push(line.origin() as u8);
        }
        text.extend_from_slice(line.content());
        true
    });
    match done {
        Err(error) if whole => return Err(error.into()),
        _ => {}
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), whole))
}

/// Returns the line that says that a changed binary file differs. Where libgit2 hasn't read a large file, it names none
/// as the new one, as if it were deleted.
fn with_both_names(line: &str) -> String {
    let old = line.strip_prefix("Binary files ").and_then(|rest| rest.strip_suffix(" and /dev/null differ\n"));
    old.map_or_else(
        || line.to_owned(),
        |old| format!("Binary files {old} and {} differ\n", old.replacen("a/", "b/", 1)),
    )
}
