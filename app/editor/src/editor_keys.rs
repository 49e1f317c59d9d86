//! Key handling in a note: caret movement and typing. Each key results in at most one edit or one caret movement.
//! `markdown_keys.rs` handles Enter, Tab and Backspace at Markdown markup.

use super::bidi_text::{caret_at_point, caret_place};
use super::display_map::RowIndex;
use super::note_editor::{
    Caret, EditContext, EditTarget, Editor, NoteEdit, byte_of, char_of, job_of, place_of, plain_ends, target_of,
};
use super::row_splitter::RowKind;
use super::{markdown_keys, motion, source_layout};
use eframe::egui;
use egui::text::CCursor;
use egui::{Galley, Key, Modifiers, vec2};
use std::ops::Range;
use std::sync::Arc;

/// Result of a key press.
#[derive(Debug, PartialEq)]
pub enum KeyOutcome {
    /// The key isn't handled here.
    Not,
    /// The key moved the caret or was consumed.
    Moved,
    /// The key edits the note; the first edit belongs to the primary caret.
    Edits(Vec<NoteEdit>),
    /// The caret moves one screen up (-1) or down (1).
    Page(f32),
}

impl KeyOutcome {
    /// Returns the outcome for a single edit at the primary caret.
    pub fn edit(edit: NoteEdit) -> KeyOutcome {
        KeyOutcome::Edits(vec![edit])
    }
}

/// The caret and its selection, relative to the edit target.
pub struct CaretRange {
    /// Start of the selection in `shown`, in bytes; `to` is its end.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Position of the caret itself, in bytes of `shown`.
    pub(crate) head: usize,
    /// The selection in bytes of the note, if it extends beyond the target.
    pub(crate) across: Option<Range<usize>>,
}

impl CaretRange {
    /// Maps a caret of the note into the target's shown text. A selection that extends beyond the target is kept in
    /// `across`.
    pub fn in_target(caret: Caret, target: &EditTarget) -> CaretRange {
        let (head, tail) = (target.shown_byte(caret.at), target.shown_byte(caret.anchor));
        let range = caret.range();
        let inside = caret.is_empty() || (target.range.start <= range.start && range.end <= target.range.end);
        CaretRange { from: head.min(tail), to: head.max(tail), head, across: (!inside).then_some(range) }
    }

    fn is_empty(&self) -> bool {
        self.from == self.to && self.across.is_none()
    }
}

impl Editor {
    /// Handles a key press in the focused note.
    pub fn key(&mut self, key: Key, modifiers: Modifiers, world: &mut EditContext<'_>) -> KeyOutcome {
        let Some(caret) = self.caret else { return KeyOutcome::Not };
        let Some(target) = self.edit_target(world) else { return KeyOutcome::Not };
        let here = CaretRange::in_target(caret, &target);
        let bare = Modifiers { shift: false, ..modifiers };
        let (plain, word) = (bare.is_none(), bare.matches_exact(Modifiers::COMMAND));
        if !matches!(key, Key::ArrowUp | Key::ArrowDown | Key::PageUp | Key::PageDown) {
            self.goal = None;
        }
        if plain || word {
            let done = self.step(key, word, modifiers.shift, &target, &here, world);
            if done != KeyOutcome::Not {
                if let Some(now) = self.caret.as_mut().filter(|_| modifiers.shift) {
                    now.anchor = caret.anchor;
                }
                return done;
            }
        }
        match key {
            Key::A if word && !modifiers.shift => {
                self.select_code_or_all(&target, world.sheet.bytes());
                KeyOutcome::Moved
            }
            Key::Backspace if plain || word => self.backspace(&target, &here, word, world),
            Key::Delete if plain || word => self.delete(&target, &here, word, world),
            Key::Enter if modifiers.is_none() => markdown_keys::insert_line(&target, &here, world),
            Key::Enter if modifiers.shift_only() => markdown_keys::break_line(&target, &here),
            Key::Tab if plain => markdown_keys::indent_or_next_cell(caret, &target, &here, modifiers.shift, world),
            _ => KeyOutcome::Not,
        }
    }

    /// Replaces the selection with text.
    pub fn write(&mut self, text: &str, world: &mut EditContext<'_>) -> KeyOutcome {
        let Some(caret) = self.caret else { return KeyOutcome::Not };
        let Some(target) = self.edit_target(world) else { return KeyOutcome::Not };
        let here = CaretRange::in_target(caret, &target);
        let text = plain_ends(text);
        KeyOutcome::edit(match here.across {
            Some(range) => replace_across(range, &text, target.crlf),
            None => target.replace(here.from..here.to, &text, text.len()),
        })
    }

    /// Deletes a number of characters before and after the caret, as input methods request.
    pub fn delete_surrounding(&mut self, before: usize, behind: usize, world: &mut EditContext<'_>) -> KeyOutcome {
        let (Some(caret), Some(target)) = (self.caret, self.edit_target(world)) else { return KeyOutcome::Not };
        let here = CaretRange::in_target(caret, &target);
        let first = char_of(&target.shown, here.from).saturating_sub(before);
        let from = motion::floor_grapheme(&target.shown, byte_of(&target.shown, first));
        let to = byte_of(&target.shown, char_of(&target.shown, here.to) + behind);
        KeyOutcome::edit(target.replace(from..motion::ceil_grapheme(&target.shown, to), "", 0))
    }

    /// Moves the caret for a navigation key.
    fn step(
        &mut self,
        key: Key,
        word: bool,
        extend: bool,
        target: &EditTarget,
        here: &CaretRange,
        world: &mut EditContext<'_>,
    ) -> KeyOutcome {
        let shown = &target.shown;
        let selected = self.caret.filter(|caret| !caret.is_empty() && !extend);
        match key {
            Key::Home if word => self.step_to(0),
            Key::End if word => {
                let end = last_row(world).and_then(|spot| target_of(spot, false, false, world));
                self.step_to(end.map_or(0, |end| end.range.end))
            }
            Key::ArrowLeft if !word && selected.is_some() => {
                self.step_to(selected.map_or(0, |caret| caret.range().start))
            }
            Key::ArrowRight if !word && selected.is_some() => {
                self.step_to(selected.map_or(0, |caret| caret.range().end))
            }
            Key::ArrowLeft if here.head == 0 => self.left(target, world),
            Key::ArrowLeft if word => self.step_in(target, motion::word_before(shown, here.head)),
            Key::ArrowLeft => self.step_in(target, motion::previous_grapheme(shown, here.head)),
            Key::ArrowRight if here.head == shown.len() => self.right(target, world),
            Key::ArrowRight if word => self.step_in(target, motion::word_after(shown, here.head)),
            Key::ArrowRight => self.step_in(target, motion::next_grapheme(shown, here.head)),
            Key::ArrowUp if !word => self.vertical(target, here.head, false, extend, world),
            Key::ArrowDown if !word => self.vertical(target, here.head, true, extend, world),
            Key::PageUp if !word => KeyOutcome::Page(-1.0),
            Key::PageDown if !word => KeyOutcome::Page(1.0),
            Key::Home => self.home(target, here.head, world),
            Key::End => {
                let (galley, _) = layout_target(target, world);
                let end = galley.cursor_end_of_row(&self.display_cursor(shown, here.head));
                let at = byte_of(shown, end.index.0);
                self.step_in(target, at);
                self.upstream = at < shown.len() && !shown[at..].starts_with('\n');
                KeyOutcome::Moved
            }
            _ => KeyOutcome::Not,
        }
    }

    fn step_to(&mut self, at: usize) -> KeyOutcome {
        self.place_caret(at);
        KeyOutcome::Moved
    }

    fn step_in(&mut self, target: &EditTarget, shown: usize) -> KeyOutcome {
        let behind = self.behind;
        self.place_caret(target.note_byte(shown));
        self.behind = behind;
        KeyOutcome::Moved
    }

    /// Moves the caret to the start of the line's text after markup and spaces, or to the line's start if it's there.
    fn home(&mut self, target: &EditTarget, head: usize, world: &EditContext<'_>) -> KeyOutcome {
        let shown = &target.shown;
        let (galley, _) = layout_target(target, world);
        let start = byte_of(shown, galley.cursor_begin_of_row(&self.display_cursor(shown, head)).index.0);
        let line = motion::line_around(shown, start);
        let mut at = start;
        if start == line.start {
            let text = &shown[line];
            let lead = match target.kind {
                RowKind::Item { .. } if start == 0 => source_layout::row_marks(text, target.kind).len(),
                RowKind::Quote => source_layout::row_marks(text, target.kind).len(),
                _ => text.len() - text.trim_start_matches([' ', '\t']).len(),
            };
            at = if head == start + lead { start } else { start + lead };
        }
        self.step_in(target, at)
    }

    /// Returns the layout's cursor for a byte of the shown text.
    pub fn display_cursor(&self, shown: &str, at: usize) -> CCursor {
        CCursor { prefer_next_row: !self.upstream, ..CCursor::new(char_of(shown, at)) }
    }

    /// Moves the caret one line up or down, and keeps the horizontal position that the movement started from.
    fn vertical(
        &mut self,
        target: &EditTarget,
        head: usize,
        down: bool,
        extend: bool,
        world: &mut EditContext<'_>,
    ) -> KeyOutcome {
        let (galley, left) = layout_target(target, world);
        let cursor = self.display_cursor(&target.shown, head);
        let line = galley.layout_from_cursor(cursor).row;
        let now = left + caret_place(&galley, cursor).center().x;
        let x = *self.goal.get_or_insert(now);
        let next = if down { Some(line + 1) } else { line.checked_sub(1) };
        if let Some(row) = next.and_then(|line| galley.rows.get(line)) {
            let found = caret_at_point(&galley, vec2(x - left, row.rect().center().y));
            let at = motion::floor_grapheme(&target.shown, byte_of(&target.shown, found.index.0));
            self.step_in(target, at);
            let line_end = target.shown[at..].starts_with('\n') || at == target.shown.len();
            self.upstream = !found.prefer_next_row && !line_end && at > 0;
            // If the next line starts at the same byte, the caret belongs to that line.
            self.upstream &=
                galley.layout_from_cursor(CCursor { prefer_next_row: true, ..found }).row != next.unwrap_or(0);
            self.goal = Some(x);
            return KeyOutcome::Moved;
        }
        let beyond = match (target.spot, down) {
            (Some(spot), false) => world.previous_row(spot),
            (Some(spot), true) => world.following_row(spot),
            (None, false) => last_row(world),
            (None, true) => None,
        };
        match beyond {
            Some(spot) => self.enter_row(spot, if down { 0.0 } else { f32::INFINITY }, x, world),
            None if !down => self.step_in(target, 0),
            None if extend || target.spot.is_none() || target.kind == RowKind::Blank => {
                self.step_in(target, target.shown.len())
            }
            None => {
                self.move_caret_after(world.sheet.bytes());
                self.goal = Some(x);
                KeyOutcome::Moved
            }
        }
    }

    /// Places the caret in a row, at horizontal position `x` and height `y` of the row's text.
    pub fn enter_row(&mut self, spot: RowIndex, y: f32, x: f32, world: &mut EditContext<'_>) -> KeyOutcome {
        let Some(target) = target_of(spot, false, false, world) else { return KeyOutcome::Not };
        let (galley, left) = layout_target(&target, world);
        let last = galley.rows.last().map_or(0.0, |row| row.rect().center().y);
        let first = galley.rows.first().map_or(0.0, |row| row.rect().center().y);
        let cursor = caret_at_point(&galley, vec2(x - left, y.clamp(first.min(last), last)));
        let at = motion::floor_grapheme(&target.shown, byte_of(&target.shown, cursor.index.0));
        self.place_caret(target.note_byte(at));
        self.goal = Some(x);
        KeyOutcome::Moved
    }

    fn left(&mut self, target: &EditTarget, world: &mut EditContext<'_>) -> KeyOutcome {
        if target.code_only && !target.kind.continues().0 {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let before = match target.spot {
            Some(spot) => world.previous_row(spot),
            None => last_row(world),
        };
        let Some(before) = before.and_then(|spot| target_of(spot, false, false, world)) else {
            return KeyOutcome::Moved;
        };
        self.step_to(before.range.end)
    }

    fn right(&mut self, target: &EditTarget, world: &mut EditContext<'_>) -> KeyOutcome {
        let Some(spot) = target.spot else { return KeyOutcome::Moved };
        match world.following_row(spot).and_then(|spot| target_of(spot, false, false, world)) {
            Some(after) => self.step_to(after.range.start),
            None => self.step_in(target, target.shown.len()),
        }
    }

    /// Moves the caret from the code of a fenced row to its fences.
    fn enter_fence(&mut self, target: &EditTarget, at: usize, world: &EditContext<'_>) -> KeyOutcome {
        let Some(spot) = target.spot else { return KeyOutcome::Moved };
        self.place_caret(at);
        self.fence = Some((world.sheet.block_rows(spot.block).id, spot.row));
        KeyOutcome::Moved
    }

    fn backspace(
        &mut self,
        target: &EditTarget,
        here: &CaretRange,
        word: bool,
        world: &mut EditContext<'_>,
    ) -> KeyOutcome {
        if !here.is_empty() {
            return self.write("", world);
        }
        let at = here.head;
        let lead = source_layout::row_marks(&target.shown, target.kind).len();
        if at > 0 && at == lead {
            match target.kind {
                RowKind::Item { tail: false, .. } => return markdown_keys::remove_list_marker(target, lead, world),
                RowKind::Quote => return KeyOutcome::edit(target.replace(0..lead, "", 0)),
                _ => {}
            }
        }
        if at > 0 {
            let from = if word {
                motion::word_before(&target.shown, at)
            } else {
                motion::previous_grapheme(&target.shown, at)
            };
            return KeyOutcome::edit(target.replace(from..at, "", 0));
        }
        if target.code_only && !target.kind.continues().0 {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let Some(spot) = target.spot else {
            let end = last_row(world).and_then(|spot| target_of(spot, false, false, world));
            return self.step_to(end.map_or(0, |end| end.range.end));
        };
        if world.unfold_beside(spot, false) {
            return KeyOutcome::Moved;
        }
        let Some(before) = world.previous_row(spot) else { return KeyOutcome::Moved };
        let Some(row) = world.rows(before.block).get(before.row).cloned() else { return KeyOutcome::Moved };
        let end = world.sheet.start(before.block) + row.content.end;
        let joins = row.kind.continues().1 || (!row.kind.is_mono() && row.kind != RowKind::Rule);
        if joins || target.shown.is_empty() {
            let delete = target.range.start + lead - end;
            let caret = if joins { end } else { target_of(before, false, false, world).map_or(end, |t| t.range.end) };
            return KeyOutcome::edit(NoteEdit { at: end, delete, insert: String::new(), caret, anchor: caret });
        }
        let end = target_of(before, false, false, world).map_or(end, |target| target.range.end);
        self.step_to(end)
    }

    fn delete(
        &mut self,
        target: &EditTarget,
        here: &CaretRange,
        word: bool,
        world: &mut EditContext<'_>,
    ) -> KeyOutcome {
        if !here.is_empty() {
            return self.write("", world);
        }
        let at = here.head;
        if at < target.shown.len() {
            let to =
                if word { motion::word_after(&target.shown, at) } else { motion::next_grapheme(&target.shown, at) };
            return KeyOutcome::edit(target.replace(at..to, "", 0));
        }
        let Some(spot) = target.spot else { return KeyOutcome::Moved };
        if target.code_only && !target.kind.continues().1 {
            // From the last part of long code, Delete moves to the closing fence.
            let is_part = matches!(target.kind, RowKind::Code { .. });
            return if is_part { self.enter_fence(target, target.range.end + 1, world) } else { KeyOutcome::Moved };
        }
        if world.unfold_beside(spot, true) {
            return KeyOutcome::Moved;
        }
        let Some(after) = world.following_row(spot) else { return KeyOutcome::Moved };
        let Some(row) = world.rows(after.block).get(after.row).cloned() else { return KeyOutcome::Moved };
        let start = world.sheet.start(after.block) + row.content.start;
        if !row.kind.continues().0 && (row.kind.is_mono() || row.kind == RowKind::Rule) {
            if !target.shown.is_empty() {
                return KeyOutcome::Moved;
            }
            let (at, delete) = (target.range.start, start - target.range.start);
            return KeyOutcome::edit(NoteEdit { at, delete, insert: String::new(), caret: at, anchor: at });
        }
        let text = world.texts.get(after.block).map_or("", |block| &block.text[row.content.clone()]);
        let start =
            if target.shown.is_empty() { start } else { start + source_layout::row_marks(text, row.kind).len() };
        let at = target.range.end;
        KeyOutcome::edit(NoteEdit { at, delete: start - at, insert: String::new(), caret: at, anchor: at })
    }
}

/// Returns the edit that replaces a range of the note with text.
pub fn replace_across(range: Range<usize>, text: &str, crlf: bool) -> NoteEdit {
    let insert = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    let caret = range.start + insert.len();
    NoteEdit { at: range.start, delete: range.len(), insert, caret, anchor: caret }
}

/// Lays out a target. Returns the layout and its offset from the column's left edge.
pub fn layout_target(target: &EditTarget, world: &EditContext<'_>) -> (Arc<Galley>, f32) {
    let (left, width) = place_of(target, world.width, world.margin, world.pen);
    (world.pen.galley(job_of(target, &target.shown, width, world.pen)), left)
}

pub(crate) fn last_row(world: &mut EditContext<'_>) -> Option<RowIndex> {
    let block = world.sheet.len().checked_sub(1)?;
    let rows = world.rows(block).len();
    Some(RowIndex { block, row: rows.checked_sub(1)? })
}
