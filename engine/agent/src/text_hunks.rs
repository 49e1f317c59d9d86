//! Changes of texts as hunks of whole lines, which are readable and can be reverted separately.

use store::TextHunk;
use text::diff;

/// Number of bytes before a change that are stored to find its place again.
const HUNK_CONTEXT_BYTES: usize = 40;

/// Returns the differing lines of two texts.
pub fn line_hunks(old: &str, new: &str) -> Vec<TextHunk> {
    let hunk = |hunk: diff::LineHunk| {
        let from = new.floor_char_boundary(hunk.new.start.saturating_sub(HUNK_CONTEXT_BYTES));
        let part = |text: &str, range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
        let number = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        TextHunk {
            at: hunk.new.start,
            before: part(new, from..hunk.new.start),
            removed: part(old, hunk.old),
            inserted: part(new, hunk.new),
            lines: Some((number(hunk.lines.0), number(hunk.lines.1))),
            lines_before: part(new, hunk.before),
            lines_after: part(new, hunk.after),
        }
    };
    diff::line_hunks(old, new).into_iter().map(hunk).collect()
}
