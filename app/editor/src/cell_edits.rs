//! Edits of whole cells: create, delete, merge, split, convert to text and back. Works on text only: a cell is a fenced
//! block of the note's Markdown, and each operation is one edit of it.

use std::ops::Range;

/// An operation on cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellEdit {
    /// Inserts an empty code cell above this one.
    Above,
    /// Inserts an empty code cell below this one.
    Below,
    /// Deletes the cell with its fences.
    Delete,
    /// Converts the cell to text by removing its fences.
    Prose,
    /// Converts the row with the caret to a code cell.
    Code,
    /// Merges the cell with the one below it.
    Merge,
    /// Splits the cell in two at the caret.
    Split,
}

/// An edit of the note, and the caret position after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellEditResult {
    /// Byte range of the note's text that is replaced.
    pub range: Range<usize>,
    /// The replacement text.
    pub with: String,
    /// Byte offset of the caret in the new text.
    pub caret: usize,
}

/// Byte ranges of a cell in the note's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedCell {
    /// The cell with its fences, without the line ending after it.
    pub whole: Range<usize>,
    /// The code, without its final line ending.
    pub code: Range<usize>,
}

/// Opening fence of a new cell.
const CELL_FENCE_START: &str = "```python\n";
const EMPTY_CELL_TEXT: &str = "```python\n\n```";

/// Returns the cells of a note, from the top.
pub fn cells(text: &str) -> Vec<FencedCell> {
    let trim = |range: Range<usize>| {
        let held = text.get(range.clone()).unwrap_or("");
        range.start..range.start + held.trim_end_matches(['\n', '\r']).len()
    };
    let fenced = |range: Range<usize>| {
        let whole = trim(range);
        let held = &text[whole.clone()];
        let opens = held.find('\n').map_or(held.len(), |newline| newline + 1);
        let last = held.rfind('\n').map_or(0, |newline| newline + 1);
        let closed = last >= opens && held[last..].trim_start().starts_with(['`', '~']);
        let end = if closed { last } else { held.len() };
        let code = trim(whole.start + opens..whole.start + end.max(opens));
        FencedCell { whole, code }
    };
    text::markdown::cell_ranges(text).into_iter().map(fenced).collect()
}

/// Returns the index of the cell that contains a byte of the note.
pub fn cell_index_at(cells: &[FencedCell], at: usize) -> Option<usize> {
    cells.iter().position(|cell| (cell.whole.start..=cell.whole.end).contains(&at))
}

/// Computes the edit for an operation. `row` is the row with the caret, which is a cell or text.
///
/// # Errors
/// Returns a sentence that tells the user why the operation isn't possible here.
pub fn apply_cell_edit(
    text: &str,
    work: CellEdit,
    row: &Range<usize>,
    caret: usize,
) -> Result<CellEditResult, &'static str> {
    let all = cells(text);
    let index = cell_index_at(&all, caret);
    let place = index.and_then(|index| all.get(index)).map_or(row, |cell| &cell.whole).clone();
    let cell = index.and_then(|index| all.get(index)).ok_or("Put the caret into a Python cell first.");
    match work {
        CellEdit::Above => {
            let (with, caret) = insert_above(text, place.start, EMPTY_CELL_TEXT);
            Ok(CellEditResult { range: place.start..place.start, with, caret: caret + CELL_FENCE_START.len() })
        }
        CellEdit::Below => {
            let (with, caret) = insert_below(text, place.end, EMPTY_CELL_TEXT);
            Ok(CellEditResult { range: place.end..place.end, with, caret: caret + CELL_FENCE_START.len() })
        }
        CellEdit::Delete => cell.map(|cell| delete(text, &all, cell)),
        CellEdit::Prose => {
            let cell = cell?;
            let code = text[cell.code.clone()].trim_matches('\n').to_owned();
            if code.trim().is_empty() {
                return Ok(delete(text, &all, cell));
            }
            Ok(CellEditResult { range: cell.whole.clone(), with: code, caret: cell.whole.start })
        }
        CellEdit::Code if index.is_some() => Err("It is a cell already."),
        CellEdit::Code => {
            let words = text.get(row.clone()).unwrap_or("").trim_end_matches('\n');
            // Code that contains fences needs longer ones around it.
            let longest = words.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            let with = format!("{fence}python\n{words}\n{fence}");
            let caret = row.start + fence.len() + "python\n".len() + caret.clamp(row.start, row.end) - row.start;
            Ok(CellEditResult { range: row.clone(), with, caret })
        }
        CellEdit::Merge => {
            let cell = cell?;
            let next = all.get(index.unwrap_or(0) + 1).ok_or("No cell below this one")?;
            if !text[cell.whole.end..next.whole.start].trim().is_empty() {
                return Err("There's text between this cell and the next one.");
            }
            let code = &text[next.code.clone()];
            let with = if code.is_empty() { String::new() } else { format!("\n{code}") };
            // The next cell's closing fence closes the merged cell, so the edit covers the end of this code to the end
            // of that.
            Ok(CellEditResult { range: cell.code.end..next.code.end, caret: cell.code.end, with })
        }
        CellEdit::Split => {
            let cell = cell?;
            let opening = text[cell.whole.start..cell.code.start.max(cell.whole.start)].trim_end();
            let fence: String = opening.chars().take_while(|letter| matches!(letter, '`' | '~')).collect();
            let at = caret.clamp(cell.code.start, cell.code.end);
            let before = if text[..at].ends_with('\n') { "" } else { "\n" };
            let behind = usize::from(text[at..cell.code.end].starts_with('\n'));
            let with = format!("{before}{fence}\n\n{opening}\n");
            Ok(CellEditResult { caret: at + with.len(), range: at..at + behind, with })
        }
    }
}

/// Returns the text that inserts a cell before an offset, and the offset where the cell then begins.
pub(crate) fn insert_above(text: &str, at: usize, cell: &str) -> (String, usize) {
    let before = &text[..at];
    let lead = if before.is_empty() || before.ends_with("\n\n") || before.ends_with("\n\r\n") { "" } else { "\n" };
    (format!("{lead}{cell}\n\n"), at + lead.len())
}

/// Returns the text that inserts a cell after an offset, and the offset where the cell then begins.
pub fn insert_below(text: &str, at: usize, cell: &str) -> (String, usize) {
    let behind = text[at..].replace('\r', "");
    let tail = if behind.is_empty() || behind == "\n" || behind.starts_with("\n\n") { "" } else { "\n" };
    (format!("\n\n{cell}{tail}"), at + 2)
}

/// Deletes a cell with the empty line after it, and moves the caret to the next cell, or else to the previous one.
fn delete(text: &str, all: &[FencedCell], cell: &FencedCell) -> CellEditResult {
    let (mut start, mut end) = (cell.whole.start, cell.whole.end);
    let newline = |at: usize| ["\r\n", "\n"].into_iter().find(|end| text[at..].starts_with(end)).map_or(0, str::len);
    for _ in 0..2 {
        end += newline(end);
    }
    if end >= text.len() {
        let before = text[..start].trim_end_matches(['\n', '\r']);
        let keeps = newline(before.len()) * usize::from(text.ends_with('\n'));
        start = (before.len() + keeps).min(start);
    }
    let next = all.iter().find(|other| other.whole.start >= end).map(|other| other.code.start - (end - start));
    let before = || all.iter().rev().find(|other| other.whole.end <= start).map(|other| other.code.start);
    let caret = next.or_else(before).unwrap_or(start);
    CellEditResult { range: start..end, with: String::new(), caret }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks an operation on a text; `|` marks the caret.
    #[track_caller]
    fn check(work: CellEdit, before: &str, after: &str) {
        let caret = before.find('|').expect("a caret");
        let text = before.replacen('|', "", 1);
        let line = super::super::motion::line_around(&text, caret);
        let CellEditResult { range, with, caret } = apply_cell_edit(&text, work, &line, caret).expect("made");
        let mut got = text.clone();
        got.replace_range(range, &with);
        got.insert(caret, '|');
        assert_eq!(got, after, "{work:?} {before:?}");
    }

    #[test]
    fn cells_come_and_go() {
        check(CellEdit::Below, "```python\n|a\n```\n", "```python\na\n```\n\n```python\n|\n```\n");
        check(CellEdit::Below, "```python\n|a\n```\ntext\n", "```python\na\n```\n\n```python\n|\n```\n\ntext\n");
        check(CellEdit::Above, "text\n\n```python\n|a\n```\n", "text\n\n```python\n|\n```\n\n```python\na\n```\n");
        check(CellEdit::Above, "on|e\n", "```python\n|\n```\n\none\n");
        check(CellEdit::Delete, "one\n\n```python\n|a\n```\n\n```python\nb\n```\n", "one\n\n```python\n|b\n```\n");
        check(CellEdit::Delete, "```python\nb\n```\n\n```python\n|a\n```\n", "```python\n|b\n```\n");
        check(CellEdit::Delete, "```python\n|a\n```", "|");
        check(CellEdit::Delete, "one\n\n```python\n|a\n```\n\ntwo\n", "one\n\n|two\n");
    }

    #[test]
    fn cells_become_prose_and_back() {
        check(CellEdit::Prose, "```python\na = |1\n```\n", "|a = 1\n");
        check(CellEdit::Code, "on|e\n\ntwo\n", "```python\non|e\n```\n\ntwo\n");
        check(CellEdit::Code, "a ```` b|\n", "`````python\na ```` b|\n`````\n");
        assert!(apply_cell_edit("one\n", CellEdit::Prose, &(0..3), 1).is_err());
    }

    #[test]
    fn cells_are_merged_and_split() {
        check(CellEdit::Merge, "```python\n|a\n```\n\n```python\nb\n```\n", "```python\na|\nb\n```\n");
        check(CellEdit::Split, "```python\na\n|b\n```\n", "```python\na\n```\n\n```python\n|b\n```\n");
        check(CellEdit::Split, "```python\na|\nb\n```\n", "```python\na\n```\n\n```python\n|b\n```\n");
        check(CellEdit::Split, "````python\na|b\n````\n", "````python\na\n````\n\n````python\n|b\n````\n");
        let apart = "```python\na\n```\n\ntext\n\n```python\nb\n```\n";
        assert!(apply_cell_edit(apart, CellEdit::Merge, &(0..3), 10).is_err());
    }
}
