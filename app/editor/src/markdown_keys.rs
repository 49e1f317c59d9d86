//! Enter, Tab and Backspace at Markdown markup: list items and their numbers, quotes, fences, tables. Each key results
//! in one edit.

use super::display_map::RowIndex;
use super::editor_keys::{CaretRange, KeyOutcome, replace_across};
use super::grid::{MarkdownTable, TablePosition};
use super::note_editor::{Caret, EditContext, EditTarget, NoteEdit};
use super::row_splitter::RowKind;
use super::{lists, motion, source_layout};
use engine::EnterInsertion;
use std::ops::Range;
use text::text_edit::{apply_edits, trim_common};

/// Handles Enter: inserts the next line of the element that contains the caret.
pub(crate) fn insert_line(target: &EditTarget, here: &CaretRange, world: &mut EditContext<'_>) -> KeyOutcome {
    let Some(range) = here.across.clone() else { return enter_in(target, here, world) };
    // The line continues from the start of the selection.
    let first =
        world.find_row(range.start).and_then(|spot| super::note_editor::target_of(spot, false, target.crlf, world));
    if let Some(first) = first {
        let at = first.shown_byte(range.start);
        let start = CaretRange { from: at, to: at, head: at, across: None };
        if let KeyOutcome::Edits(edits) = enter_in(&first, &start, world)
            && let [edit] = edits.as_slice()
            && edit.at == range.start
            && edit.caret == edit.at + edit.insert.len()
        {
            let rest = target_of_end(range.end, target.crlf, world);
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            let spaces = if spaces < rest.len() { spaces } else { 0 };
            let delete = range.end + spaces - edit.at;
            return KeyOutcome::edit(NoteEdit { delete, ..edit.clone() });
        }
    }
    KeyOutcome::edit(replace_across(range, "\n", target.crlf))
}

/// Returns the text of a row from a byte of the note to the row's end.
fn target_of_end(at: usize, crlf: bool, world: &mut EditContext<'_>) -> String {
    let target = world.find_row(at).and_then(|spot| super::note_editor::target_of(spot, false, crlf, world));
    target.map_or(String::new(), |target| target.shown[target.shown_byte(at)..].to_owned())
}

fn enter_in(target: &EditTarget, here: &CaretRange, world: &mut EditContext<'_>) -> KeyOutcome {
    let text = &target.shown;
    let range = here.from..here.to;
    let line_start = text[..here.from].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[line_start..];
    let line = &line[..line.find('\n').unwrap_or(line.len())];
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let indent = &indent[..indent.len().min(here.from - line_start)];
    let with = |insert: &str| target.replace(range.clone(), insert, insert.len());
    KeyOutcome::edit(match target.kind {
        RowKind::Fence { closed: false } if !text.contains('\n') && here.from == text.len() => {
            let fence: String = text.trim_start().chars().take_while(|c| matches!(c, '`' | '~')).collect();
            target.replace(range, &format!("\n\n{fence}"), 1)
        }
        RowKind::Cell | RowKind::Fence { .. } | RowKind::Code { .. } => {
            let opens = target.kind == RowKind::Cell && text[line_start..here.from].trim_end().ends_with(':');
            with(&format!("\n{indent}{}", if opens { "    " } else { "" }))
        }
        RowKind::Table => return enter_table(target, here),
        RowKind::Html | RowKind::Meta | RowKind::Definition | RowKind::Plain => with("\n"),
        RowKind::Indented | RowKind::Footnote => with(&format!("\n{indent}")),
        RowKind::Quote => {
            let mark = source_layout::row_marks(line, RowKind::Quote);
            if mark.len() == line.len() && here.from == text.len() {
                let from = line_start.saturating_sub(1);
                return KeyOutcome::edit(target.replace(from..here.to, "\n\n", 2));
            }
            with(&format!("\n{mark}"))
        }
        RowKind::Item { tail: false, .. } => return enter_item(target, here, world),
        RowKind::Item { tail: true, .. } => with(&format!("\n{indent}")),
        RowKind::Blank => with("\n"),
        RowKind::Paragraph | RowKind::Heading(_) | RowKind::Rule => {
            if target.spot.is_none() {
                return KeyOutcome::edit(with("\n"));
            }
            let spaces = text[here.to..].len() - text[here.to..].trim_start_matches(' ').len();
            let rest_empty = spaces == text[here.to..].find('\n').unwrap_or(text.len() - here.to);
            let to = if rest_empty { here.to } else { here.to + spaces };
            // Lines of a table that is being typed stay together, regardless of the Enter setting.
            let is_table_line = here.from > line_start && line.trim_start().starts_with('|');
            let one = is_table_line || world.session.settings().enter == EnterInsertion::Line;
            let insert = if one { "\n" } else { "\n\n" };
            target.replace(here.from..to, insert, insert.len())
        }
    })
}

/// Handles Shift+Enter: inserts a line break within the paragraph, item or quote. Does nothing on an empty line, or
/// where Markdown has no line breaks.
pub(crate) fn break_line(target: &EditTarget, here: &CaretRange) -> KeyOutcome {
    let text = &target.shown;
    if here.across.is_some() || matches!(target.kind, RowKind::Table | RowKind::Cell | RowKind::Blank) {
        return KeyOutcome::Moved;
    }
    let line_start = text[..here.from].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or("");
    let lead = source_layout::row_marks(line, target.kind);
    if line.len() <= lead.len() || target.spot.is_none() {
        return KeyOutcome::Moved;
    }
    let next = match target.kind {
        RowKind::Item { tail: false, .. } if line_start == 0 => {
            // The text of an item begins after its bullet or number; a checkbox is part of the text.
            let mark = lead.trim_end_matches("[ ] ").trim_end_matches("[x] ").trim_end_matches("[X] ");
            " ".repeat(mark.len())
        }
        RowKind::Quote => lead.to_owned(),
        _ => line[..line.len() - line.trim_start_matches([' ', '\t']).len()].to_owned(),
    };
    let insert = format!("\n{next}");
    let at = here.from.max(line_start + lead.len());
    KeyOutcome::edit(target.replace(at..here.to.max(at), &insert, insert.len()))
}

/// Handles Enter in a list: starts the next item. An empty item is outdented; at the outermost level it ends the list.
fn enter_item(target: &EditTarget, here: &CaretRange, world: &mut EditContext<'_>) -> KeyOutcome {
    let text = &target.shown;
    let lead = source_layout::row_marks(text, target.kind);
    if text.trim_end().len() <= lead.trim_end().len() {
        if is_indented(text) {
            return shift_item(target, here.head, true, world);
        }
        let before =
            target.spot.and_then(|spot| world.previous_row(spot)).and_then(|spot| world.sheet.row(spot).cloned());
        let after_item = before.is_some_and(|row| matches!(row.kind, RowKind::Item { .. }));
        let spaced = target.spot.and_then(|spot| world.sheet.row(spot)).is_some_and(|row| row.spaced);
        let insert = if after_item && !spaced { "\n" } else { "" };
        return KeyOutcome::edit(target.replace(0..text.len(), insert, insert.len()));
    }
    let at = here.from.max(lead.len().min(text.len()));
    let spaces = &lead[..lead.len() - lead.trim_start().len()];
    let mark = lead.trim_start();
    let digits = mark.bytes().take_while(u8::is_ascii_digit).count();
    let mut next = if digits > 0 {
        let number = mark[..digits].parse::<u64>().unwrap_or(0).saturating_add(1);
        format!("{number}{}", &mark[digits..])
    } else {
        mark.to_owned()
    };
    for done in ["[x] ", "[X] "] {
        next = next.replace(done, "[ ] ");
    }
    let insert = format!("\n{spaces}{next}");
    // When the caret splits a line between two words, the space between them is removed.
    let gap = text[here.to.max(at)..].len() - text[here.to.max(at)..].trim_start_matches(' ').len();
    let to = if here.to.max(at) + gap == text.len() { here.to.max(at) } else { here.to.max(at) + gap };
    let edit = target.replace(at..to, &insert, insert.len());
    KeyOutcome::edit(renumber_list(edit, false, world))
}

fn is_indented(text: &str) -> bool {
    text.starts_with([' ', '\t'])
}

/// Removes an item's marker: a nested item is outdented, others become paragraphs.
pub(crate) fn remove_list_marker(target: &EditTarget, lead: usize, world: &mut EditContext<'_>) -> KeyOutcome {
    if is_indented(&target.shown) {
        return shift_item(target, lead, true, world);
    }
    let before = target.spot.and_then(|spot| world.previous_row(spot));
    let item_before = before
        .and_then(|spot| world.sheet.row(spot))
        .is_some_and(|row| matches!(row.kind, RowKind::Item { .. } | RowKind::Paragraph));
    let spaced = target.spot.and_then(|spot| world.sheet.row(spot)).is_some_and(|row| row.spaced);
    let insert = if item_before && !spaced { "\n" } else { "" };
    KeyOutcome::edit(target.replace(0..lead, insert, insert.len()))
}

/// Handles Tab: indents or outdents items and code, and moves to the next cell in tables. Elsewhere it isn't handled.
pub(crate) fn indent_or_next_cell(
    caret: Caret,
    target: &EditTarget,
    here: &CaretRange,
    back: bool,
    world: &mut EditContext<'_>,
) -> KeyOutcome {
    if let Some(range) = here.across.clone() {
        return shift_rows(caret, range, target.crlf, back, world);
    }
    match target.kind {
        RowKind::Item { tail: false, .. } => shift_item(target, here.head, back, world),
        RowKind::Table => tab_table(target, here, back),
        RowKind::Cell | RowKind::Fence { .. } | RowKind::Code { .. } => {
            let text = &target.shown;
            let first = text[..here.from].rfind('\n').map_or(0, |newline| newline + 1);
            let several = text[here.from..here.to].contains('\n');
            if !back && !several {
                let column = text[first..here.from].chars().count();
                let spaces = " ".repeat(4 - column % 4);
                return KeyOutcome::edit(target.replace(here.from..here.to, &spaces, spaces.len()));
            }
            let last = text[here.to..].find('\n').map_or(text.len(), |newline| here.to + newline);
            let (moved, caret) = shift_lines(&text[first..last], if back { -4 } else { 4 }, here.to - first);
            let mut edit = target.replace(first..last, &moved, caret.min(moved.len()));
            if several {
                edit.anchor = edit.at;
            }
            KeyOutcome::edit(edit)
        }
        _ => KeyOutcome::Not,
    }
}

/// Indents an item and its nested items below the previous item, or outdents them to the enclosing level.
fn shift_item(target: &EditTarget, here: usize, back: bool, world: &mut EditContext<'_>) -> KeyOutcome {
    let (Some(spot), RowKind::Item { depth, .. }) = (target.spot, target.kind) else { return KeyOutcome::Moved };
    let Some(by) = step_of(spot, depth, back, world) else { return KeyOutcome::Moved };
    let (mut end, mut last) = (target.range.end, spot);
    while let Some(after) = world.following_row(last) {
        let Some(row) = world.rows(after.block).get(after.row).cloned() else { break };
        if !matches!(row.kind, RowKind::Item { depth: inner, .. } if inner > depth) {
            break;
        }
        end = world.sheet.start(after.block) + row.content.end;
        last = after;
    }
    let text = world.note.slice(target.range.start, end - target.range.start).unwrap_or_default();
    let (moved, caret) = shift_lines(&text, by, target.note_byte(here) - target.range.start);
    let caret = target.range.start + caret;
    let edit = NoteEdit { at: target.range.start, delete: text.len(), insert: moved, caret, anchor: caret };
    KeyOutcome::edit(renumber_list(edit, true, world))
}

/// Returns the spaces by which an item's indentation changes one level in or out; `None` if there's no such level.
fn step_of(spot: RowIndex, depth: u8, back: bool, world: &mut EditContext<'_>) -> Option<isize> {
    let own = indent_of(spot, world);
    let mut before = world.previous_row(spot);
    while let Some(spot) = before {
        let RowKind::Item { depth: other, tail, .. } = world.sheet.row(spot)?.kind else { break };
        let found = indent_of(spot, world);
        if !tail && !back && other <= depth {
            let content = found + mark_width(spot, world);
            return (other == depth && content > own).then(|| content.cast_signed() - own.cast_signed());
        }
        if !tail && back && other < depth {
            return Some(found.cast_signed() - own.cast_signed());
        }
        before = world.previous_row(spot);
    }
    (back && own > 0).then(|| -own.cast_signed())
}

fn line_of(spot: RowIndex, world: &mut EditContext<'_>) -> String {
    let row = world.rows(spot.block).get(spot.row).cloned();
    let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
    row.and_then(|row| text.get(row.content)).unwrap_or("").lines().next().unwrap_or("").to_owned()
}

fn indent_of(spot: RowIndex, world: &mut EditContext<'_>) -> usize {
    let line = line_of(spot, world);
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn mark_width(spot: RowIndex, world: &mut EditContext<'_>) -> usize {
    line_of(spot, world).trim_start().bytes().take_while(|byte| *byte != b' ').count() + 1
}

/// Indents or outdents all lines of a selection that spans several rows.
fn shift_rows(caret: Caret, range: Range<usize>, crlf: bool, back: bool, world: &mut EditContext<'_>) -> KeyOutcome {
    let (Some(first), Some(last)) = (world.find_row(range.start), world.find_row(range.end)) else {
        return KeyOutcome::Moved;
    };
    let (Some(first), Some(last)) = (
        super::note_editor::target_of(first, false, crlf, world),
        super::note_editor::target_of(last, false, crlf, world),
    ) else {
        return KeyOutcome::Moved;
    };
    let Some(spot) = first.spot.filter(|_| matches!(first.kind, RowKind::Item { .. })) else {
        return KeyOutcome::Moved;
    };
    let RowKind::Item { depth, .. } = first.kind else { return KeyOutcome::Moved };
    let Some(by) = step_of(spot, depth, back, world) else { return KeyOutcome::Moved };
    let (start, end) = (first.range.start, last.range.end);
    let text = world.note.slice(start, end - start).unwrap_or_default();
    let inside = |at: usize| at.clamp(start, end) - start;
    let (moved, at) = shift_lines(&text, by, inside(caret.at));
    let (_, anchor) = shift_lines(&text, by, inside(caret.anchor));
    let edit = NoteEdit { at: start, delete: text.len(), insert: moved, caret: start + at, anchor: start + anchor };
    KeyOutcome::edit(renumber_list(edit, true, world))
}

/// Extends an edit in a list so that it also corrects the list's numbers. `moved`: the edit moved items in or out.
pub fn renumber_list(edit: NoteEdit, moved: bool, world: &mut EditContext<'_>) -> NoteEdit {
    let Some(spot) = world.find_row(edit.at) else { return edit };
    let in_list = |spot: RowIndex, world: &mut EditContext<'_>| {
        world.rows(spot.block).get(spot.row).is_some_and(|row| matches!(row.kind, RowKind::Item { .. }))
    };
    let (mut first, mut last) = (spot, spot);
    while let Some(before) = world.previous_row(first).filter(|before| in_list(*before, world)) {
        first = before;
    }
    while let Some(after) = world.following_row(last).filter(|after| in_list(*after, world)) {
        last = after;
    }
    let start =
        world.sheet.start(first.block) + world.rows(first.block).get(first.row).map_or(0, |row| row.content.start);
    let end = world.sheet.start(last.block) + world.rows(last.block).get(last.row).map_or(0, |row| row.content.end);
    let (from, to) = (edit.at, edit.at + edit.delete);
    let Some(old) = world.note.slice(start, end.max(to) - start).filter(|_| from >= start) else { return edit };
    let new = format!("{}{}{}", &old[..from - start], edit.insert, &old[to - start..]);
    let line = new[..from - start].rfind('\n').map_or(0, |newline| newline + 1);
    let fixes = lists::renumbered(&old, &new, if moved { line } else { usize::MAX });
    if fixes.is_empty() {
        return edit;
    }
    let through = |at: usize| {
        let at = at - start;
        let shift: isize = fixes
            .iter()
            .filter(|fix| fix.at < at)
            .map(|fix| fix.insert.len().cast_signed() - fix.delete.cast_signed())
            .sum();
        start + at.saturating_add_signed(shift)
    };
    let (caret, anchor) = (through(edit.caret), through(edit.anchor));
    let done = apply_edits(&new, &fixes);
    let (from, to) = trim_common(&old, &done);
    NoteEdit { at: start + from.start, delete: from.len(), insert: done[to].to_owned(), caret, anchor }
}

/// Indents or outdents lines and returns the new caret; empty lines stay empty.
pub(crate) fn shift_lines(text: &str, by: isize, caret: usize) -> (String, usize) {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut at, mut place) = (0, caret);
    for line in text.split_inclusive('\n') {
        let spaces = line.bytes().take_while(|byte| *byte == b' ').count();
        let (added, removed) = match by {
            1.. if !line.trim().is_empty() => (by.unsigned_abs(), 0),
            ..=-1 if line.starts_with('\t') => (0, 1),
            ..=-1 => (0, spaces.min(by.unsigned_abs())),
            _ => (0, 0),
        };
        if at <= caret {
            place = place + added - removed.min(caret - at);
        }
        out.push_str(&" ".repeat(added));
        out.push_str(&line[removed..]);
        at += line.len();
    }
    (out, place)
}

/// Returns a changed table as an edit; if `whole`, it selects the cell at `place`.
fn table_edit(target: &EditTarget, grid: &MarkdownTable, place: TablePosition, whole: bool) -> NoteEdit {
    let (source, at) = grid.aligned_source(place);
    let (from, to) = trim_common(&target.shown, &source);
    let mut edit = target.replace(from, &source[to.clone()], to.len());
    let lines = |at: usize| if target.crlf { source[..at].matches('\n').count() } else { 0 };
    edit.caret = target.range.start + at + lines(at);
    edit.anchor = edit.caret;
    if whole {
        edit.caret += grid.cell_len(place.row, place.column);
    }
    edit
}

/// Handles Tab in a table: selects the next cell, and adds a row after the last one.
fn tab_table(target: &EditTarget, here: &CaretRange, back: bool) -> KeyOutcome {
    let mut grid = MarkdownTable::parse_table(&target.shown);
    let mut place = grid.position_at(&target.shown, here.head);
    match (back, place.column) {
        (false, column) if column + 1 < grid.columns() => place.column += 1,
        (false, _) => {
            if place.row + 1 == grid.rows() {
                grid.insert_row(place.row);
            }
            (place.row, place.column) = (place.row + 1, 0);
        }
        (true, 1..) => place.column -= 1,
        (true, 0) if place.row > 0 => (place.row, place.column) = (place.row - 1, grid.columns() - 1),
        (true, 0) => {}
    }
    place.offset = 0;
    KeyOutcome::edit(table_edit(target, &grid, place, true))
}

/// Handles Enter in a table: moves to the cell below, and adds a row after the last one. An empty last row ends the
/// table.
fn enter_table(target: &EditTarget, here: &CaretRange) -> KeyOutcome {
    let text = &target.shown;
    let mut grid = MarkdownTable::parse_table(text);
    let mut place = grid.position_at(text, here.head);
    if place.row + 1 == grid.rows() && place.row > 0 && grid.is_empty_row(place.row) {
        grid.remove_row(place.row);
        let (source, _) = grid.aligned_source(place);
        let insert = format!("{source}\n\n");
        return KeyOutcome::edit(target.replace(0..text.len(), &insert, insert.len()));
    }
    // Before and after a table, Enter inserts an ordinary line.
    if here.head == 0 && here.to == 0 {
        return KeyOutcome::edit(target.replace(0..0, "\n\n", 0));
    }
    if here.head == text.len() && !motion::line_around(text, here.head).is_empty() && text.trim_end().ends_with('|') {
        if place.row + 1 == grid.rows() {
            grid.insert_row(place.row);
        }
        let next = TablePosition { row: place.row + 1, column: 0, offset: 0 };
        return KeyOutcome::edit(table_edit(target, &grid, next, false));
    }
    if place.row + 1 == grid.rows() {
        grid.insert_row(place.row);
    }
    // From the delimiter row, the caret moves to the first cell of the next row.
    if text[..here.head].matches('\n').count() == 1 {
        place.column = 0;
    }
    place.row += 1;
    place.offset = 0;
    KeyOutcome::edit(table_edit(target, &grid, place, true))
}

/// A menu operation on the rows and columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableEdit {
    /// Inserts an empty row above.
    RowAbove,
    /// Inserts an empty row below.
    RowBelow,
    /// Deletes the row.
    DeleteRow,
    /// Inserts an empty column to the left.
    ColumnLeft,
    /// Inserts an empty column to the right.
    ColumnRight,
    /// Deletes the column.
    DeleteColumn,
}

/// Edits the row or column at a byte of a table; `None` if that isn't possible. The header is always the first row.
pub fn edit_table(target: &EditTarget, at: usize, edit: TableEdit) -> Option<NoteEdit> {
    let mut grid = MarkdownTable::parse_table(&target.shown);
    let TablePosition { mut row, mut column, .. } = grid.position_at(&target.shown, at);
    match edit {
        TableEdit::RowAbove => grid.insert_row(row.checked_sub(1)?),
        TableEdit::RowBelow => {
            grid.insert_row(row);
            row += 1;
        }
        TableEdit::DeleteRow if row > 0 => {
            grid.remove_row(row);
            row = row.min(grid.rows() - 1);
        }
        TableEdit::ColumnLeft => grid.insert_column(column.checked_sub(1)),
        TableEdit::ColumnRight => {
            grid.insert_column(Some(column));
            column += 1;
        }
        TableEdit::DeleteColumn if grid.columns() > 1 => {
            grid.remove_column(column);
            column = column.min(grid.columns() - 1);
        }
        TableEdit::DeleteRow | TableEdit::DeleteColumn => return None,
    }
    Some(table_edit(target, &grid, TablePosition { row, column, offset: 0 }, false))
}

/// Swaps the row at the caret, with its nested items, with the one above or below.
pub fn move_row(target: &EditTarget, caret: Caret, down: bool, world: &mut EditContext<'_>) -> KeyOutcome {
    let Some(spot) = target.spot else { return KeyOutcome::Moved };
    let Some((own, other)) = neighbor_rows(spot, caret, down, world) else { return KeyOutcome::Moved };
    let (upper, lower) = if down { (own, other) } else { (other, own) };
    let (a, b) = (rows_byte_range(upper, world), rows_byte_range(lower, world));
    let slice = |range: Range<usize>| world.note.slice(range.start, range.len()).unwrap_or_default();
    let (first, gap, second) = (slice(a.clone()), slice(a.end..b.start), slice(b.clone()));
    let both_items = is_item(upper.0, world) && is_item(lower.0, world);
    // Blocks stay separated by an empty line, so that none joins the text before it.
    let newline = if target.crlf { "\r\n" } else { "\n" };
    let gap = if both_items || gap.matches('\n').count() > 1 { gap } else { newline.repeat(2) };
    let shift = if down { second.len() + gap.len() } else { 0 };
    let base = if down { a.start } else { b.start };
    let place =
        |at: usize| a.start + shift + at.saturating_sub(base).min(if down { first.len() } else { second.len() });
    let (caret, anchor) = (place(caret.at), place(caret.anchor));
    let insert = format!("{second}{gap}{first}");
    let edit = NoteEdit { at: a.start, delete: b.end - a.start, insert, caret, anchor };
    KeyOutcome::edit(if both_items { renumber_list(edit, false, world) } else { edit })
}

/// Returns the first and last of the rows that a caret moves together, and of those that they swap with.
pub fn neighbor_rows(
    spot: RowIndex,
    caret: Caret,
    down: bool,
    world: &mut EditContext<'_>,
) -> Option<((RowIndex, RowIndex), (RowIndex, RowIndex))> {
    let (first, last) = (world.find_row(caret.range().start), world.find_row(caret.range().end));
    let own = match (first, last) {
        (Some(first), Some(last)) if first < last => (first, item_rows(last, world).1),
        _ => item_rows(spot, world),
    };
    let other = if down {
        world.following_row(own.1).map(|after| item_rows(after, world))
    } else {
        world.previous_row(own.0).map(|before| sibling_before(before, own.0, world))
    };
    Some((own, other?))
}

/// Returns whether a row is a list item.
pub fn is_item(spot: RowIndex, world: &mut EditContext<'_>) -> bool {
    world.rows(spot.block).get(spot.row).is_some_and(|row| matches!(row.kind, RowKind::Item { .. }))
}

/// Returns a row and the last of its nested items.
pub fn item_rows(spot: RowIndex, world: &mut EditContext<'_>) -> (RowIndex, RowIndex) {
    let depth =
        |spot: RowIndex, world: &mut EditContext<'_>| match world.rows(spot.block).get(spot.row).map(|row| row.kind) {
            Some(RowKind::Item { depth, tail, .. }) => Some(depth + u8::from(tail)),
            _ => None,
        };
    let Some(own) = depth(spot, world) else { return (spot, spot) };
    let mut last = spot;
    while let Some(after) =
        world.following_row(last).filter(|after| depth(*after, world).is_some_and(|inner| inner > own))
    {
        last = after;
    }
    (spot, last)
}

/// Returns the first and last row of the sibling item that ends directly before a row.
fn sibling_before(before: RowIndex, own: RowIndex, world: &mut EditContext<'_>) -> (RowIndex, RowIndex) {
    let depth =
        |spot: RowIndex, world: &mut EditContext<'_>| match world.rows(spot.block).get(spot.row).map(|row| row.kind) {
            Some(RowKind::Item { depth, .. }) => Some(depth),
            _ => None,
        };
    let Some(own) = depth(own, world) else { return (before, before) };
    let mut first = before;
    while depth(first, world).is_some_and(|inner| inner > own) {
        let Some(further) =
            world.previous_row(first).filter(|further| depth(*further, world).is_some_and(|d| d >= own))
        else {
            break;
        };
        first = further;
    }
    (first, before)
}

/// Returns the note's byte range from the start of the first row to the end of the last.
pub fn rows_byte_range(rows: (RowIndex, RowIndex), world: &mut EditContext<'_>) -> Range<usize> {
    let start =
        world.sheet.start(rows.0.block) + world.rows(rows.0.block).get(rows.0.row).map_or(0, |row| row.content.start);
    let end =
        world.sheet.start(rows.1.block) + world.rows(rows.1.block).get(rows.1.row).map_or(0, |row| row.content.end);
    start..end
}

/// Inserts a copy of the selection's rows below them.
pub fn duplicate_rows(target: &EditTarget, caret: Caret, world: &mut EditContext<'_>) -> KeyOutcome {
    let range = caret.range();
    let (first, last) = (world.find_row(range.start), world.find_row(range.end));
    let (Some(first), Some(last), Some(_)) = (first, last, target.spot) else { return KeyOutcome::Moved };
    let rows = rows_byte_range((first, last), world);
    let text = world.note.slice(rows.start, rows.len()).unwrap_or_default();
    let newline = if target.crlf { "\r\n" } else { "\n" };
    let gap = if is_item(last, world) { newline.to_owned() } else { newline.repeat(2) };
    let by = text.len() + gap.len();
    let insert = format!("{gap}{text}");
    let edit = NoteEdit { at: rows.end, delete: 0, insert, caret: caret.at + by, anchor: caret.anchor + by };
    KeyOutcome::edit(if is_item(last, world) { renumber_list(edit, false, world) } else { edit })
}

/// Toggles inline markup (`**`, `*`, a backtick) around the selection or the word at the caret.
pub fn toggle_inline_style(target: &EditTarget, here: &CaretRange, mark: &str) -> KeyOutcome {
    if here.across.is_some() {
        return KeyOutcome::Moved;
    }
    let text = &target.shown;
    let mut range = here.from..here.to;
    if range.is_empty() {
        let word = motion::word_around(text, here.from);
        let is_word = text[word.clone()].chars().any(char::is_alphanumeric);
        range = if is_word && word.start <= here.from && here.from <= word.end { word } else { range };
    }
    let spaces = text[range.clone()].len() - text[range.clone()].trim_start().len();
    range.start = (range.start + spaces).min(range.end);
    range.end = range.start + text[range.clone()].trim_end().len();
    let size = mark.len();
    let run = |text: &str| text.bytes().take_while(|byte| *byte == mark.as_bytes()[0]).count();
    let (outer, inner) = (
        text[..range.start].bytes().rev().take_while(|byte| *byte == mark.as_bytes()[0]).count(),
        run(&text[range.end..]),
    );
    let has = |count: usize| if mark == "*" { count == 1 || count >= 3 } else { count >= size };
    let part = &text[range.clone()];
    let (replaced, insert, lead) = if has(outer) && has(inner) {
        (range.start - size..range.end + size, part.to_owned(), 0)
    } else if part.len() > 2 * size && has(run(part)) && part.ends_with(mark) {
        (range.clone(), part[size..part.len() - size].to_owned(), 0)
    } else {
        (range.clone(), format!("{mark}{part}{mark}"), size)
    };
    let length = if lead > 0 { part.len() } else { insert.len() };
    let mut edit = target.replace(replaced.clone(), &insert, lead + length);
    if here.from == here.to {
        // The caret stays at the same character.
        let within = here.from.clamp(range.start, range.end) - range.start;
        let end = if part.is_empty() { 0 } else { length - within.min(length) };
        edit.caret -= end;
        edit.anchor = edit.caret;
    } else {
        edit.anchor = edit.caret - length;
    }
    KeyOutcome::edit(edit)
}

/// Turns the selection into a link and moves the caret to its target, or to its text if nothing is selected.
pub fn insert_link(target: &EditTarget, here: &CaretRange) -> KeyOutcome {
    if here.across.is_some() {
        return KeyOutcome::Moved;
    }
    let words = &target.shown[here.from..here.to];
    let insert = format!("[{words}]()");
    let caret = if words.is_empty() { 1 } else { insert.len() - 1 };
    KeyOutcome::edit(target.replace(here.from..here.to, &insert, caret))
}

/// Toggles the task at the caret, or turns an item or line into a task.
pub fn toggle_task(caret: Caret, target: &EditTarget) -> KeyOutcome {
    let text = &target.shown;
    let line = motion::line_around(text, target.shown_byte(caret.at)).start;
    let spaces = line + text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
    let lead = source_layout::row_marks(text, target.kind);
    let item = matches!(target.kind, RowKind::Item { tail: false, .. });
    let (range, insert) = match (item, lead) {
        (true, lead) if lead.ends_with("[ ] ") => (lead.len() - 3..lead.len() - 2, "x"),
        (true, lead) if lead.ends_with("[x] ") || lead.ends_with("[X] ") => (lead.len() - 3..lead.len() - 2, " "),
        (true, lead) if lead.ends_with(' ') => (lead.len()..lead.len(), "[ ] "),
        (false, _) if matches!(target.kind, RowKind::Paragraph | RowKind::Blank) => (spaces..spaces, "- [ ] "),
        _ => return KeyOutcome::Moved,
    };
    let mut edit = target.replace(range, insert, insert.len());
    let place = |at: usize| if at >= edit.at + edit.delete { at - edit.delete + edit.insert.len() } else { at };
    let (at, anchor) = if target.spot.is_none() {
        (edit.at + edit.insert.len(), edit.at + edit.insert.len())
    } else {
        (place(caret.at), place(caret.anchor))
    };
    (edit.caret, edit.anchor) = (at, anchor);
    KeyOutcome::edit(edit)
}

#[cfg(test)]
mod tests {
    use super::shift_lines;

    #[test]
    fn lines_move_together() {
        assert_eq!(shift_lines("a\n\n  b", 2, 1), ("  a\n\n    b".to_owned(), 3));
        assert_eq!(shift_lines("  a\n b\n\n", -2, 5), ("a\nb\n\n".to_owned(), 2));
        assert_eq!(shift_lines("  a", -2, 1), ("a".to_owned(), 0));
    }
}
