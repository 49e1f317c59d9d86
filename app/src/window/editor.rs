//! The caret. It is a byte of the whole note; which row it is in, and what of that row is edited, is found anew after
//! every change. Views read it; what is typed leaves as one edit, and the session's text is the truth.

use super::cells;
use super::render::Pen;
use super::rows::{Kind, Row};
use super::sheet::{Sheet, Spot};
use super::source;
use crate::tokens;
use eframe::egui;
use egui::Galley;
use egui::text::{CCursor, CCursorRange, LayoutJob};
use engine::Note;
use engine::splice::{moved, trim};
use std::ops::Range;
use std::sync::Arc;
use store::{Block, BlockId};

/// The text field that edits whichever row holds the caret.
pub(super) fn field() -> egui::Id {
    egui::Id::unique("note editor")
}

/// An edit of the note, and where the caret stands afterwards. All in bytes of the whole note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) delete: usize,
    pub(super) insert: String,
    pub(super) caret: usize,
    pub(super) anchor: usize,
}

/// Where the caret is. `anchor` is the other end of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caret {
    pub(super) at: usize,
    pub(super) anchor: usize,
}

/// What is needed to find rows and lay them out.
pub(super) struct World<'a> {
    pub(super) note: &'a Note,
    pub(super) texts: &'a [&'a Block],
    pub(super) sheet: &'a mut Sheet,
    pub(super) pen: Pen<'a>,
    /// The width of the column, and of the margin at its left.
    pub(super) width: f32,
    pub(super) margin: f32,
}

impl World<'_> {
    pub(super) fn rows(&mut self, block: usize) -> &[Row] {
        self.sheet.rows(block, self.note, self.texts)
    }

    pub(super) fn find(&mut self, at: usize) -> Option<Spot> {
        self.sheet.find(at, self.note, self.texts)
    }

    pub(super) fn before(&mut self, spot: Spot) -> Option<Spot> {
        self.sheet.before(spot, self.note, self.texts)
    }

    pub(super) fn after(&mut self, spot: Spot) -> Option<Spot> {
        self.sheet.after(spot, self.note, self.texts)
    }
}

/// What of which row is edited.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The row; `None`: the line behind the last one, which is not there yet.
    pub(super) spot: Option<Spot>,
    pub(super) kind: Kind,
    /// Whether only the code between the fences is edited.
    pub(super) code_only: bool,
    /// Its bytes in the note.
    pub(super) range: Range<usize>,
    /// What must go in front of the first thing typed, and behind it.
    pub(super) lead: &'static str,
    pub(super) trail: &'static str,
    /// Its text with the file's line ends, and with `\n` alone.
    pub(super) raw: String,
    pub(super) shown: String,
    /// How new lines end in this note.
    pub(super) crlf: bool,
}

impl Target {
    /// From a byte of `shown` to one of the note.
    pub(super) fn note_byte(&self, shown: usize) -> usize {
        self.range.start + to_raw(&self.raw, shown)
    }

    /// From a byte of the note to one of `shown`.
    pub(super) fn shown_byte(&self, at: usize) -> usize {
        let raw = at.clamp(self.range.start, self.range.end) - self.range.start;
        let mut raw = (0..=raw).rev().find(|at| self.raw.is_char_boundary(*at)).unwrap_or(0);
        // Between the two halves of a line end there is no place.
        if self.raw[..raw].ends_with('\r') && self.raw[raw..].starts_with('\n') {
            raw -= 1;
        }
        raw - self.raw[..raw].matches("\r\n").count()
    }

    /// The edit that replaces a range of `shown`; the caret goes behind `caret` bytes of what is inserted.
    pub(super) fn replace(&self, range: Range<usize>, insert: &str, caret: usize) -> Edit {
        let (at, end) = (self.note_byte(range.start), self.note_byte(range.end));
        let lines = |text: &str| if self.crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let head = lines(self.lead) + &lines(&insert[..caret]);
        let place = at + head.len();
        let insert = head + &lines(&insert[caret..]) + &lines(self.trail);
        Edit { at, delete: end - at, insert, caret: place, anchor: place }
    }
}

fn to_raw(raw: &str, shown: usize) -> usize {
    if !raw.contains('\r') {
        return shown.min(raw.len());
    }
    let mut left = shown;
    let mut at = 0;
    let bytes = raw.as_bytes();
    while left > 0 && at < bytes.len() {
        at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
        left -= 1;
    }
    at
}

/// What the text field showed last, to answer keys at its edges.
#[derive(Clone)]
pub(super) struct Last {
    pub(super) galley: Arc<Galley>,
    pub(super) cursor: CCursorRange,
    /// Where the text stands, from the column's left.
    pub(super) x: f32,
}

/// The caret and all that goes with it.
#[derive(Default)]
pub(super) struct Editor {
    pub(super) caret: Option<Caret>,
    /// The whole note is selected.
    pub(super) all: bool,
    /// The caret stands on the line behind the last row.
    pub(super) behind: bool,
    /// The row whose fences are being edited too.
    pub(super) fence: Option<(BlockId, usize)>,
    /// The text field shall have the keyboard.
    pub(super) focus: bool,
    /// The caret shall come into sight.
    pub(super) reveal: bool,
    /// Up to which revision of the note the caret was carried.
    revision: u64,
    /// The column that moving up and down keeps to.
    pub(super) goal: Option<f32>,
    pub(super) last: Option<Last>,
}

impl Editor {
    /// Puts the caret at a byte of the note.
    pub(super) fn place(&mut self, at: usize) {
        self.caret = Some(Caret { at, anchor: at });
        (self.all, self.behind, self.focus, self.reveal) = (false, false, true, true);
        self.last = None;
    }

    /// Puts the caret on the line behind the last row.
    pub(super) fn place_behind(&mut self, length: usize) {
        self.place(length);
        self.behind = true;
    }

    /// Ends editing.
    pub(super) fn leave(&mut self) {
        *self = Editor { revision: self.revision, ..Editor::default() };
    }

    /// Carries the caret through what happened to the note since it was looked at last.
    pub(super) fn carry(&mut self, note: &Note) {
        let revision = std::mem::replace(&mut self.revision, note.revision());
        if revision == note.revision() || revision == 0 {
            return;
        }
        let Some(caret) = &mut self.caret else { return };
        match note.shifts_since(revision) {
            Some(shifts) => {
                for shift in shifts {
                    caret.at = moved(caret.at, shift.at, shift.delete, shift.insert, false);
                    caret.anchor = moved(caret.anchor, shift.at, shift.delete, shift.insert, false);
                }
            }
            None => self.caret = None,
        }
        let length = note.length();
        if let Some(caret) = &mut self.caret {
            (caret.at, caret.anchor) = (caret.at.min(length), caret.anchor.min(length));
        }
    }

    /// Takes over where the caret stands after an edit of our own.
    pub(super) fn edited(&mut self, edit: &Edit, note: &Note) {
        self.revision = note.revision();
        self.caret = Some(Caret { at: edit.caret, anchor: edit.anchor });
        (self.all, self.behind) = (false, false);
        self.goal = None;
    }

    /// Puts the caret where an undo changed something.
    pub(super) fn follow(&mut self, since: u64, note: &Note) {
        let last = note.shifts_since(since).and_then(|shifts| shifts.last().copied());
        self.revision = note.revision();
        if let Some(shift) = last {
            self.place(shift.at + shift.insert);
        }
    }

    /// What the caret edits now.
    pub(super) fn target(&mut self, world: &mut World<'_>) -> Option<Target> {
        let caret = self.caret?;
        let crlf = world
            .texts
            .first()
            .is_some_and(|block| block.text.find('\n').is_some_and(|newline| block.text[..newline].ends_with('\r')));
        let length = world.sheet.bytes();
        if self.behind || world.texts.is_empty() {
            self.behind = true;
            return Some(Target {
                spot: None,
                kind: Kind::Paragraph,
                code_only: false,
                range: length..length,
                lead: missing_lines(world.texts),
                trail: "",
                raw: String::new(),
                shown: String::new(),
                crlf,
            });
        }
        let spot = world.find(caret.at.min(length))?;
        let id = world.sheet.piece(spot.block).id;
        if self.fence.is_some_and(|fence| fence != (id, spot.row)) {
            self.fence = None;
        }
        target_of(spot, self.fence.is_some(), crlf, world)
    }
}

/// What of a row is edited; `fences` too, if asked.
pub(super) fn target_of(spot: Spot, fences: bool, crlf: bool, world: &mut World<'_>) -> Option<Target> {
    let start = world.sheet.start(spot.block);
    let row = world.rows(spot.block).get(spot.row)?.clone();
    let text = &world.texts.get(spot.block)?.text;
    let whole_fence = matches!(row.kind, Kind::Cell | Kind::Fence { closed: true });
    let (mut range, mut code_only, mut trail) = (row.content.clone(), false, "");
    if let Some(code) = row.code.filter(|_| whole_fence && !fences) {
        code_only = true;
        let body = &text[code.clone()];
        let body = body.strip_suffix('\n').map(|body| body.strip_suffix('\r').unwrap_or(body)).unwrap_or(body);
        trail = if code.is_empty() { "\n" } else { "" };
        range = code.start..code.start + body.len();
    }
    let raw = text[range.clone()].to_owned();
    let shown = if raw.contains('\r') { raw.replace("\r\n", "\n") } else { raw.clone() };
    Some(Target {
        spot: Some(spot),
        kind: row.kind,
        code_only,
        range: start + range.start..start + range.end,
        lead: "",
        trail,
        raw,
        shown,
        crlf,
    })
}

/// The line ends that a paragraph behind the last text needs in front of it.
fn missing_lines(texts: &[&Block]) -> &'static str {
    let mut ends = 0;
    for block in texts.iter().rev() {
        for byte in block.text.bytes().rev().filter(|byte| *byte != b'\r') {
            if byte != b'\n' || ends == 2 {
                return ["\n\n", "\n", ""][ends.min(2)];
            }
            ends += 1;
        }
    }
    ""
}

/// Where and how wide the text field of a target is, from the column's left.
pub(super) fn place_of(target: &Target, width: f32, margin: f32, pen: Pen<'_>) -> (f32, f32) {
    match target.kind {
        Kind::Cell | Kind::Fence { .. } | Kind::Indented => (0.0, cells::code_width(width)),
        kind => {
            let x = source::hang(&target.shown, kind, margin, pen);
            (x, width - x)
        }
    }
}

/// The layout of a target's text.
pub(super) fn job_of(target: &Target, text: &str, width: f32, pen: Pen<'_>) -> LayoutJob {
    if target.code_only {
        let mut job = source::code(text, target.kind == Kind::Cell, false, pen);
        job.wrap.max_width = width;
        job.keep_trailing_whitespace = true;
        return job;
    }
    source::job(text, target.kind, width, pen)
}

/// How high the text of a target is, at least one line.
pub(super) fn text_height(galley: &Galley, kind: Kind) -> f32 {
    galley.size().y.max(line_of(kind))
}

/// The height of one line of a kind's source.
pub(super) fn line_of(kind: Kind) -> f32 {
    if kind == Kind::Blank { tokens::body().line } else { source::type_of(kind).line }
}

/// The edit that made `new` of a target's text, with the caret at a byte of `new`.
pub(super) fn difference(target: &Target, new: &str, caret: usize, anchor: usize) -> Edit {
    let old = &target.shown;
    let (from, to) = at_caret(old, new, caret).unwrap_or_else(|| trim(old, new));
    // What was pasted brings line ends of its own.
    let ends = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let typed = &new[to.clone()];
    let inserted = ends(typed);
    let mut edit = target.replace(from.clone(), &inserted, inserted.len());
    let new_byte = |byte: usize| {
        if byte <= to.start {
            target.note_byte(byte) + if byte < to.start { 0 } else { lead_len(target) }
        } else if byte <= to.end {
            let part = ends(&typed[..byte - to.start]);
            let lines = if target.crlf { part.matches('\n').count() } else { 0 };
            edit.at + lead_len(target) + part.len() + lines
        } else {
            target.note_byte(byte - to.end + from.end) - edit.delete + edit.insert.len()
        }
    };
    let (caret, anchor) = (new_byte(caret), new_byte(anchor));
    (edit.caret, edit.anchor) = (caret, anchor);
    edit
}

fn lead_len(target: &Target) -> usize {
    if target.crlf { target.lead.len() * 2 } else { target.lead.len() }
}

/// The difference as it was typed: up to the caret. Between equal letters a plain comparison would guess wrong.
fn at_caret(old: &str, new: &str, caret: usize) -> Option<(Range<usize>, Range<usize>)> {
    if new.len() >= old.len() {
        let from = caret.checked_sub(new.len() - old.len())?;
        let fits = old.get(..from)? == new.get(..from)? && old.get(from..)? == new.get(caret..)?;
        return fits.then_some((from..from, from..caret));
    }
    let gone = old.len() - new.len();
    let fits = old.get(..caret)? == new.get(..caret)? && old.get(caret + gone..)? == new.get(caret..)?;
    fits.then_some((caret..caret + gone, caret..caret))
}

/// The byte of a character.
pub(super) fn byte_of(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

/// The character at a byte.
pub(super) fn char_of(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or_else(|| text.chars().count(), |head| head.chars().count())
}

/// A cursor of the text field at a byte.
pub(super) fn cursor_at(text: &str, byte: usize) -> CCursor {
    CCursor::new(char_of(text, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(raw: &str) -> Target {
        Target {
            spot: None,
            kind: Kind::Paragraph,
            code_only: false,
            range: 10..10 + raw.len(),
            lead: "",
            trail: "",
            raw: raw.to_owned(),
            shown: raw.replace("\r\n", "\n"),
            crlf: raw.contains('\r'),
        }
    }

    #[test]
    fn edits_are_where_they_were_typed() {
        let plain = target("aa");
        let edit = difference(&plain, "aaa", 2, 2);
        assert_eq!(edit, Edit { at: 11, delete: 0, insert: "a".into(), caret: 12, anchor: 12 });
        let edit = difference(&plain, "a", 0, 0);
        assert_eq!(edit, Edit { at: 10, delete: 1, insert: String::new(), caret: 10, anchor: 10 });
        let edit = difference(&plain, "xay", 3, 3);
        assert_eq!((edit.at, edit.delete, edit.insert.as_str(), edit.caret), (10, 2, "xay", 13));
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        let windows = target("a\r\nb");
        assert_eq!(windows.note_byte(2), 13);
        assert_eq!(windows.shown_byte(13), 2);
        let edit = difference(&windows, "a\nx\nyb", 5, 5);
        assert_eq!(edit, Edit { at: 13, delete: 0, insert: "x\r\ny".into(), caret: 17, anchor: 17 });
        let edit = difference(&windows, "ab", 1, 1);
        assert_eq!((edit.at, edit.delete, edit.insert.as_str(), edit.caret), (11, 2, "", 11));
        let edit = difference(&windows, "ax\r\ny\rz\nb", 7, 7);
        assert_eq!((edit.at, edit.insert.as_str(), edit.caret), (11, "x\r\ny\r\nz", 18));
        assert_eq!(windows.shown_byte(12), 1, "between the halves of a line end");
        let edit = windows.replace(1..1, "\n  ", 1);
        assert_eq!((edit.at, edit.insert.as_str(), edit.caret), (11, "\r\n  ", 13));
    }

    #[test]
    fn what_is_missing_comes_with_the_first_letter() {
        let mut behind = target("");
        behind.lead = "\n";
        let edit = difference(&behind, "x", 1, 1);
        assert_eq!(edit, Edit { at: 10, delete: 0, insert: "\nx".into(), caret: 12, anchor: 12 });
        let mut empty_cell = target("");
        empty_cell.trail = "\n";
        let edit = difference(&empty_cell, "x", 1, 1);
        assert_eq!(edit, Edit { at: 10, delete: 0, insert: "x\n".into(), caret: 11, anchor: 11 });
    }
}
