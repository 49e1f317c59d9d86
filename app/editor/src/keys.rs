//! Keys in a note: steps of the caret, and what writes. Each key becomes at most one edit or one step of the caret;
//! what Enter, Tab and Backspace do to the marks of Markdown is in `marks.rs`.

use super::note_editor::{
    Caret, Edit, Editor, Target, World, byte_of, char_of, job_of, place_of, plain_ends, target_of,
};
use super::rows::Kind;
use super::sheet::Spot;
use super::{marks, motion, source};
use eframe::egui;
use egui::text::CCursor;
use egui::{Galley, Key, Modifiers, vec2};
use std::ops::Range;
use std::sync::Arc;

/// What a key came to.
#[derive(Debug, PartialEq)]
pub enum Done {
    /// It means nothing here.
    Not,
    /// It moved the caret, or is swallowed.
    Moved,
    /// It edits; the first edit is that of the leading caret.
    Edits(Vec<Edit>),
    /// The caret goes a screen up (-1) or down (1).
    Page(f32),
}

impl Done {
    pub fn edit(edit: Edit) -> Done {
        Done::Edits(vec![edit])
    }
}

/// The caret inside its target.
pub struct At {
    /// Bytes of `shown`, in order.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Where the caret itself is.
    pub(crate) head: usize,
    /// What is selected beyond the target, in bytes of the note.
    pub(crate) across: Option<Range<usize>>,
}

impl At {
    pub fn of(caret: Caret, target: &Target) -> At {
        let (head, tail) = (target.shown_byte(caret.at), target.shown_byte(caret.anchor));
        let range = caret.range();
        let inside = caret.is_empty() || (target.range.start <= range.start && range.end <= target.range.end);
        At { from: head.min(tail), to: head.max(tail), head, across: (!inside).then_some(range) }
    }

    fn is_empty(&self) -> bool {
        self.from == self.to && self.across.is_none()
    }
}

impl Editor {
    /// Answers a key.
    pub fn key(&mut self, key: Key, modifiers: Modifiers, world: &mut World<'_>) -> Done {
        let Some(caret) = self.caret else { return Done::Not };
        let Some(target) = self.target(world) else { return Done::Not };
        let here = At::of(caret, &target);
        let bare = Modifiers { shift: false, ..modifiers };
        let (plain, word) = (bare.is_none(), bare.matches_exact(Modifiers::COMMAND));
        if !matches!(key, Key::ArrowUp | Key::ArrowDown | Key::PageUp | Key::PageDown) {
            self.goal = None;
        }
        if plain || word {
            let done = self.step(key, word, modifiers.shift, &target, &here, world);
            if done != Done::Not {
                if let Some(now) = self.caret.as_mut().filter(|_| modifiers.shift) {
                    now.anchor = caret.anchor;
                }
                return done;
            }
        }
        match key {
            Key::A if word && !modifiers.shift => {
                self.select_all(world.sheet.bytes());
                Done::Moved
            }
            Key::Backspace if plain || word => self.backspace(&target, &here, word, world),
            Key::Delete if plain || word => self.delete(&target, &here, word, world),
            Key::Enter if modifiers.is_none() => marks::enter(&target, &here, world),
            Key::Enter if modifiers.shift_only() && !target.kind.is_mono() => self.write("\\\n", world),
            Key::Tab if plain => marks::tab(caret, &target, &here, modifiers.shift, world),
            _ => Done::Not,
        }
    }

    /// Puts text in place of what is selected.
    pub fn write(&mut self, text: &str, world: &mut World<'_>) -> Done {
        let Some(caret) = self.caret else { return Done::Not };
        let Some(target) = self.target(world) else { return Done::Not };
        let here = At::of(caret, &target);
        let text = plain_ends(text);
        Done::edit(match here.across {
            Some(range) => replace_across(range, &text, target.crlf),
            None => target.replace(here.from..here.to, &text, text.len()),
        })
    }

    /// Takes characters around the caret away, as input methods ask for it.
    pub fn delete_around(&mut self, before: usize, behind: usize, world: &mut World<'_>) -> Done {
        let (Some(caret), Some(target)) = (self.caret, self.target(world)) else { return Done::Not };
        let here = At::of(caret, &target);
        let first = char_of(&target.shown, here.from).saturating_sub(before);
        let from = motion::floor(&target.shown, byte_of(&target.shown, first));
        let to = byte_of(&target.shown, char_of(&target.shown, here.to) + behind);
        Done::edit(target.replace(from..motion::ceil(&target.shown, to), "", 0))
    }

    /// Steps of the caret.
    fn step(&mut self, key: Key, word: bool, extend: bool, target: &Target, here: &At, world: &mut World<'_>) -> Done {
        let shown = &target.shown;
        let selected = self.caret.filter(|caret| !caret.is_empty() && !extend);
        match key {
            Key::Home if word => self.step_to(0),
            Key::End if word => self.step_to(world.sheet.bytes()),
            Key::ArrowLeft if !word && selected.is_some() => {
                self.step_to(selected.map_or(0, |caret| caret.range().start))
            }
            Key::ArrowRight if !word && selected.is_some() => {
                self.step_to(selected.map_or(0, |caret| caret.range().end))
            }
            Key::ArrowLeft if here.head == 0 => self.left(target, world),
            Key::ArrowLeft if word => self.step_in(target, motion::word_before(shown, here.head)),
            Key::ArrowLeft => self.step_in(target, motion::before(shown, here.head)),
            Key::ArrowRight if here.head == shown.len() => self.right(target, world),
            Key::ArrowRight if word => self.step_in(target, motion::word_after(shown, here.head)),
            Key::ArrowRight => self.step_in(target, motion::after(shown, here.head)),
            Key::ArrowUp if !word => self.vertical(target, here.head, false, extend, world),
            Key::ArrowDown if !word => self.vertical(target, here.head, true, extend, world),
            Key::PageUp if !word => Done::Page(-1.0),
            Key::PageDown if !word => Done::Page(1.0),
            Key::Home => self.home(target, here.head, world),
            Key::End => {
                let (galley, _) = layout(target, world);
                let end = galley.cursor_end_of_row(&self.cursor(shown, here.head));
                let at = byte_of(shown, end.index.0);
                self.step_in(target, at);
                self.upstream = at < shown.len() && !shown[at..].starts_with('\n');
                Done::Moved
            }
            _ => Done::Not,
        }
    }

    fn step_to(&mut self, at: usize) -> Done {
        self.place(at);
        Done::Moved
    }

    fn step_in(&mut self, target: &Target, shown: usize) -> Done {
        let behind = self.behind;
        self.place(target.note_byte(shown));
        self.behind = behind;
        Done::Moved
    }

    /// The beginning of the line; of its words first, where marks or spaces stand in front of them.
    fn home(&mut self, target: &Target, head: usize, world: &World<'_>) -> Done {
        let shown = &target.shown;
        let (galley, _) = layout(target, world);
        let start = byte_of(shown, galley.cursor_begin_of_row(&self.cursor(shown, head)).index.0);
        let line = motion::line_around(shown, start);
        let mut at = start;
        if start == line.start {
            let text = &shown[line];
            let lead = match target.kind {
                Kind::Item { .. } if start == 0 => source::lead(text, target.kind).len(),
                Kind::Quote => source::lead(text, target.kind).len(),
                _ => text.len() - text.trim_start_matches([' ', '\t']).len(),
            };
            at = if head == start + lead { start } else { start + lead };
        }
        self.step_in(target, at)
    }

    /// The caret as the layout knows it.
    pub fn cursor(&self, shown: &str, at: usize) -> CCursor {
        CCursor { prefer_next_row: !self.upstream, ..CCursor::new(char_of(shown, at)) }
    }

    /// A line up or down, in the column that the caret came from.
    fn vertical(&mut self, target: &Target, head: usize, down: bool, extend: bool, world: &mut World<'_>) -> Done {
        let (galley, left) = layout(target, world);
        let cursor = self.cursor(&target.shown, head);
        let line = galley.layout_from_cursor(cursor).row;
        let now = left + galley.pos_from_cursor(cursor).center().x;
        let x = *self.goal.get_or_insert(now);
        let next = if down { Some(line + 1) } else { line.checked_sub(1) };
        if let Some(row) = next.and_then(|line| galley.rows.get(line)) {
            let found = galley.cursor_from_pos(vec2(x - left, row.rect().center().y));
            let at = motion::floor(&target.shown, byte_of(&target.shown, found.index.0));
            self.step_in(target, at);
            let line_end = target.shown[at..].starts_with('\n') || at == target.shown.len();
            self.upstream = !found.prefer_next_row && !line_end && at > 0;
            // Where the next line begins with the same place, it is the next line that is meant.
            self.upstream &=
                galley.layout_from_cursor(CCursor { prefer_next_row: true, ..found }).row != next.unwrap_or(0);
            self.goal = Some(x);
            return Done::Moved;
        }
        let beyond = match (target.spot, down) {
            (Some(spot), false) => world.before(spot),
            (Some(spot), true) => world.after(spot),
            (None, false) => last_row(world),
            (None, true) => None,
        };
        match beyond {
            Some(spot) => self.enter_row(spot, if down { 0.0 } else { f32::INFINITY }, x, world),
            None if !down => self.step_in(target, 0),
            None if extend || target.spot.is_none() || target.kind == Kind::Blank => {
                self.step_in(target, target.shown.len())
            }
            None => {
                self.place_behind(world.sheet.bytes());
                self.goal = Some(x);
                Done::Moved
            }
        }
    }

    /// Puts the caret into a row, in a column, at a height of the row's text.
    pub fn enter_row(&mut self, spot: Spot, y: f32, x: f32, world: &mut World<'_>) -> Done {
        let Some(target) = target_of(spot, false, false, world) else { return Done::Not };
        let (galley, left) = layout(&target, world);
        let last = galley.rows.last().map_or(0.0, |row| row.rect().center().y);
        let first = galley.rows.first().map_or(0.0, |row| row.rect().center().y);
        let cursor = galley.cursor_from_pos(vec2(x - left, y.clamp(first.min(last), last)));
        let at = motion::floor(&target.shown, byte_of(&target.shown, cursor.index.0));
        self.place(target.note_byte(at));
        self.goal = Some(x);
        Done::Moved
    }

    fn left(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        if target.code_only && !target.kind.goes_on().0 {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let before = match target.spot {
            Some(spot) => world.before(spot),
            None => last_row(world),
        };
        let Some(before) = before.and_then(|spot| target_of(spot, false, false, world)) else { return Done::Moved };
        self.step_to(before.range.end)
    }

    fn right(&mut self, target: &Target, world: &mut World<'_>) -> Done {
        let Some(spot) = target.spot else { return Done::Moved };
        match world.after(spot).and_then(|spot| target_of(spot, false, false, world)) {
            Some(after) => self.step_to(after.range.start),
            None => self.step_in(target, target.shown.len()),
        }
    }

    /// From the code of a fenced row to the fences around it.
    fn enter_fence(&mut self, target: &Target, at: usize, world: &World<'_>) -> Done {
        let Some(spot) = target.spot else { return Done::Moved };
        self.place(at);
        self.fence = Some((world.sheet.piece(spot.block).id, spot.row));
        Done::Moved
    }

    fn backspace(&mut self, target: &Target, here: &At, word: bool, world: &mut World<'_>) -> Done {
        if !here.is_empty() {
            return self.write("", world);
        }
        let at = here.head;
        let lead = source::lead(&target.shown, target.kind).len();
        if at > 0 && at == lead {
            match target.kind {
                Kind::Item { tail: false, .. } => return marks::unmark(target, lead, world),
                Kind::Quote => return Done::edit(target.replace(0..lead, "", 0)),
                _ => {}
            }
        }
        if at > 0 {
            let from = if word { motion::word_before(&target.shown, at) } else { motion::before(&target.shown, at) };
            return Done::edit(target.replace(from..at, "", 0));
        }
        if target.code_only && !target.kind.goes_on().0 {
            return self.enter_fence(target, target.range.start.saturating_sub(1), world);
        }
        let Some(spot) = target.spot else {
            let end = last_row(world).and_then(|spot| target_of(spot, false, false, world));
            return self.step_to(end.map_or(0, |end| end.range.end));
        };
        if world.unfold_beside(spot, false) {
            return Done::Moved;
        }
        let Some(before) = world.before(spot) else { return Done::Moved };
        let Some(row) = world.rows(before.block).get(before.row).cloned() else { return Done::Moved };
        let end = world.sheet.start(before.block) + row.content.end;
        let joins = row.kind.goes_on().1 || (!row.kind.is_mono() && row.kind != Kind::Rule);
        if joins || target.shown.is_empty() {
            let delete = target.range.start + lead - end;
            let caret = if joins { end } else { target_of(before, false, false, world).map_or(end, |t| t.range.end) };
            return Done::edit(Edit { at: end, delete, insert: String::new(), caret, anchor: caret });
        }
        let end = target_of(before, false, false, world).map_or(end, |target| target.range.end);
        self.step_to(end)
    }

    fn delete(&mut self, target: &Target, here: &At, word: bool, world: &mut World<'_>) -> Done {
        if !here.is_empty() {
            return self.write("", world);
        }
        let at = here.head;
        if at < target.shown.len() {
            let to = if word { motion::word_after(&target.shown, at) } else { motion::after(&target.shown, at) };
            return Done::edit(target.replace(at..to, "", 0));
        }
        let Some(spot) = target.spot else { return Done::Moved };
        if target.code_only && !target.kind.goes_on().1 {
            // The last part of long code is the way to its closing fence.
            let is_part = matches!(target.kind, Kind::Code { .. });
            return if is_part { self.enter_fence(target, target.range.end + 1, world) } else { Done::Moved };
        }
        if world.unfold_beside(spot, true) {
            return Done::Moved;
        }
        let Some(after) = world.after(spot) else { return Done::Moved };
        let Some(row) = world.rows(after.block).get(after.row).cloned() else { return Done::Moved };
        let start = world.sheet.start(after.block) + row.content.start;
        if !row.kind.goes_on().0 && (row.kind.is_mono() || row.kind == Kind::Rule) {
            if !target.shown.is_empty() {
                return Done::Moved;
            }
            let (at, delete) = (target.range.start, start - target.range.start);
            return Done::edit(Edit { at, delete, insert: String::new(), caret: at, anchor: at });
        }
        let text = world.texts.get(after.block).map_or("", |block| &block.text[row.content.clone()]);
        let start = if target.shown.is_empty() { start } else { start + source::lead(text, row.kind).len() };
        let at = target.range.end;
        Done::edit(Edit { at, delete: start - at, insert: String::new(), caret: at, anchor: at })
    }
}

/// The edit that puts text in place of a range of the note.
pub fn replace_across(range: Range<usize>, text: &str, crlf: bool) -> Edit {
    let insert = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    let caret = range.start + insert.len();
    Edit { at: range.start, delete: range.len(), insert, caret, anchor: caret }
}

/// A target laid out, and where it stands from the column's left.
pub fn layout(target: &Target, world: &World<'_>) -> (Arc<Galley>, f32) {
    let (left, width) = place_of(target, world.width, world.margin, world.pen);
    (world.pen.galley(job_of(target, &target.shown, width, world.pen)), left)
}

pub(crate) fn last_row(world: &mut World<'_>) -> Option<Spot> {
    let block = world.sheet.len().checked_sub(1)?;
    let rows = world.rows(block).len();
    Some(Spot { block, row: rows.checked_sub(1)? })
}
