//! The caret. It's a byte of the whole note; its row, and the edited part of that row, are recomputed after every
//! change. Views read it; typing results in one edit, and the session's text is authoritative.

use super::display_map::{DisplayMap, RowIndex};
use super::editor_keys::KeyOutcome;
use super::render::TextStyleContext;
use super::row_splitter::{CommentSpan, MarkdownRow, RowKind};
pub use super::source_layout;
use eframe::egui;
use egui::Galley;
use egui::text::LayoutJob;
use engine::{Note, Session};
use std::ops::Range;
use std::rc::Rc;
use store::{Block, BlockId};
use text::text_edit::shift_offset;
use ui::theme;

/// Id of the focused control while editing: the row with the caret.
pub fn field() -> egui::Id {
    egui::Id::unique("note editor")
}

/// An edit of the note, and the caret afterwards, in bytes of the whole note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteEdit {
    /// Where the edit begins.
    pub at: usize,
    /// How many bytes it deletes from there on.
    pub delete: usize,
    /// What it inserts there.
    pub insert: String,
    /// Where the caret stands afterwards.
    pub caret: usize,
    /// The other end of the selection afterwards; equal to `caret` for none.
    pub anchor: usize,
}

/// Where the caret is. `anchor` is the other end of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caret {
    /// The end that moves, in bytes of the note.
    pub at: usize,
    /// The end that stays, in bytes of the note; equal to `at` for no selection.
    pub anchor: usize,
}

impl Caret {
    /// Makes a caret without a selection.
    pub(crate) fn at(at: usize) -> Caret {
        Caret { at, anchor: at }
    }

    /// Returns the selected bytes.
    pub fn range(self) -> Range<usize> {
        self.at.min(self.anchor)..self.at.max(self.anchor)
    }

    /// Whether nothing is selected.
    pub fn is_empty(self) -> bool {
        self.at == self.anchor
    }

    fn moved(&mut self, shift: &engine::CaretShift) {
        self.at = shift_offset(self.at, shift.at, shift.delete, shift.insert, false);
        self.anchor = shift_offset(self.anchor, shift.at, shift.delete, shift.insert, false);
    }
}

/// A selection that the pointer is making. Until the button is up, no row goes from source to text or back.
#[derive(Clone, Debug)]
pub struct SelectionDrag {
    /// Where the caret was: its row stays the one that shows its source.
    pub frozen: Option<usize>,
    /// What the press selected; nothing, a word or a row.
    pub origin: Range<usize>,
    /// How often was pressed: letters, words, rows.
    pub unit: u32,
    /// Where, and whether the pointer has left that place.
    pub from: egui::Pos2,
    /// Whether the pointer has left the place of the press.
    pub moved: bool,
}

/// Text that an input method has not committed yet, and which of its characters are being chosen.
#[derive(Clone, Debug)]
pub struct ImePreedit {
    /// The text so far.
    pub text: String,
    /// The characters of `text` that are being chosen, if any.
    pub active: Option<Range<usize>>,
}

/// What is needed to find rows and lay them out.
pub struct EditContext<'a> {
    /// The session that the note belongs to.
    pub session: &'a Session,
    /// The note.
    pub note: &'a Note,
    /// The note's blocks, in their order.
    pub texts: &'a [&'a Block],
    /// The note's rows.
    pub sheet: &'a mut DisplayMap,
    /// Fonts and colours to lay text out with.
    pub pen: TextStyleContext<'a>,
    /// The width of the column, and of the margin at its left.
    pub width: f32,
    /// The margin at its left, in points.
    pub margin: f32,
}

impl EditContext<'_> {
    /// The rows of a block; none where there is no such block.
    pub fn rows(&mut self, block: usize) -> &[MarkdownRow] {
        self.sheet.rows(block, self.note, self.texts)
    }

    /// The row that holds this byte of the note.
    pub fn find_row(&mut self, at: usize) -> Option<RowIndex> {
        self.sheet.find_row(at, self.note, self.texts)
    }

    /// Whether lines of this note end as on Windows: the first one says it.
    pub fn crlf(&self) -> bool {
        let first = self.texts.first();
        first.is_some_and(|block| block.text.find('\n').is_some_and(|newline| block.text[..newline].ends_with('\r')))
    }

    /// The row before this one that is shown; `None` for the first.
    pub fn previous_row(&mut self, spot: RowIndex) -> Option<RowIndex> {
        self.sheet.previous_row(spot, self.note, self.texts)
    }

    /// The row after this one that is shown; `None` for the last.
    pub fn following_row(&mut self, spot: RowIndex) -> Option<RowIndex> {
        self.sheet.following_row(spot, self.note, self.texts)
    }
}

/// The row being edited, and the edited part of it.
#[derive(Clone, Debug)]
pub struct EditTarget {
    /// The row; `None` for the line after the last one, which doesn't exist yet.
    pub spot: Option<RowIndex>,
    /// The block that's clicked.
    pub block: Option<BlockId>,
    /// What the row is.
    pub kind: RowKind,
    /// Whether it's in a comment.
    pub(crate) dim: bool,
    /// Whether only the code between the fences is edited.
    pub code_only: bool,
    /// The language of that code.
    pub(crate) language: Rc<str>,
    /// Its bytes in the note.
    pub range: Range<usize>,
    /// What must go in front of the first thing typed, and behind it.
    pub(crate) lead: &'static str,
    pub(crate) trail: &'static str,
    /// Its text with the file's line ends, and with `\n` alone.
    pub(crate) raw: String,
    /// The same with `\n` alone as line end: what is laid out and edited.
    pub shown: String,
    /// How new lines end in this note.
    pub(crate) crlf: bool,
}

impl EditTarget {
    /// From a byte of `source_row` to one of the note.
    pub fn note_byte(&self, shown: usize) -> usize {
        self.range.start + to_raw(&self.raw, shown)
    }

    /// Makes the line that Enter has just begun part of the target, as far as the caret: until something is typed,
    /// Markdown reads it as an empty line behind the row.
    fn include_new_line(&mut self, caret: usize, world: &EditContext<'_>) {
        if self.code_only || caret <= self.range.end {
            return;
        }
        let Some(behind) = world.note.slice(self.range.end, caret - self.range.end) else { return };
        let line = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n'));
        let spaces = line.filter(|line| line.bytes().all(|byte| matches!(byte, b' ' | b'\t')));
        let goes_on = match self.kind {
            RowKind::Paragraph | RowKind::Heading(_) | RowKind::Rule => spaces.is_some(),
            // A line of an item is indented.
            RowKind::Item { .. } => spaces.is_some_and(|spaces| !spaces.is_empty()),
            _ => false,
        };
        if goes_on {
            self.range.end = caret;
            self.shown.push_str(&behind.replace("\r\n", "\n"));
            self.raw.push_str(&behind);
        } else if self.kind == RowKind::Blank && behind.trim().is_empty() {
            // Of several empty lines that are one row, that of the caret is written into.
            self.range = caret..caret;
        }
    }

    /// From a byte of the note to one of `source_row`.
    pub fn shown_byte(&self, at: usize) -> usize {
        let raw = at.clamp(self.range.start, self.range.end) - self.range.start;
        let mut raw = (0..=raw).rev().find(|at| self.raw.is_char_boundary(*at)).unwrap_or(0);
        // The caret can't be inside a line ending.
        if self.raw[..raw].ends_with('\r') && self.raw[raw..].starts_with('\n') {
            raw -= 1;
        }
        raw - self.raw[..raw].matches("\r\n").count()
    }

    /// Returns the edit that replaces a range of `source_row`; the caret goes after `caret` bytes of the insertion.
    pub fn replace(&self, range: Range<usize>, insert: &str, caret: usize) -> NoteEdit {
        let (at, end) = (self.note_byte(range.start), self.note_byte(range.end));
        let lines = |text: &str| if self.crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let head = lines(self.lead) + &lines(&insert[..caret]);
        let place = at + head.len();
        let insert = head + &lines(&insert[caret..]) + &lines(self.trail);
        NoteEdit { at, delete: end - at, insert, caret: place, anchor: place }
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

/// How the caret looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaretShape {
    /// A thin line between two letters.
    #[default]
    Line,
    /// It covers a letter: letters are commands.
    Block,
    /// It is not to be seen: letters mean whole cells.
    None,
}

/// The caret and all that goes with it.
#[derive(Default)]
pub struct Editor {
    /// The leading caret; `None` before the note had one.
    pub caret: Option<Caret>,
    /// Its rectangle on the screen when last drawn.
    pub stands: Option<egui::Rect>,
    /// Additional carets.
    pub more: Vec<Caret>,
    /// Whether the caret is on the line after the last row.
    pub behind: bool,
    /// At a line wrap: whether the caret is at the end of the line instead of the start of the next one.
    pub upstream: bool,
    /// The row whose fences are being edited too.
    pub fence: Option<(BlockId, usize)>,
    /// The note shall have the keyboard.
    pub focus: bool,
    /// The caret shall come into sight.
    pub reveal: bool,
    /// Up to which revision of the note the caret was carried.
    revision: u64,
    /// The column that moving up and down keeps to.
    pub goal: Option<f32>,
    /// The selection that the pointer is making now.
    pub drag: Option<SelectionDrag>,
    /// What an input method has not committed yet.
    pub preedit: Option<ImePreedit>,
    /// How the carets look.
    pub shape: CaretShape,
    /// When the caret was moved last, by the window's clock: it does not blink out right then.
    pub touched: f64,
    /// Where on the screen it was drawn last.
    pub seen: Option<egui::Rect>,
}

impl Editor {
    /// Puts the caret at a byte of the note.
    pub fn place_caret(&mut self, at: usize) {
        self.caret = Some(Caret::at(at));
        (self.behind, self.upstream, self.focus, self.reveal) = (false, false, true, true);
        self.goal = None;
    }

    /// Puts the caret on the line behind the last row.
    pub fn move_caret_after(&mut self, length: usize) {
        self.place_caret(length);
        self.behind = true;
    }

    /// Selects a range; the caret is at `at`.
    pub fn select(&mut self, anchor: usize, at: usize) {
        self.place_caret(at);
        self.caret = Some(Caret { at, anchor });
    }

    /// Selects the whole note; the page stays where it is.
    pub fn select_all(&mut self, length: usize) {
        self.more.clear();
        self.select(0, length);
        (self.reveal, self.fence) = (false, None);
    }

    /// All carets, the one that leads first.
    pub fn carets(&self) -> impl Iterator<Item = Caret> {
        self.caret.into_iter().chain(self.more.iter().copied())
    }

    /// What is selected, each range once.
    pub fn selected(&self) -> Vec<Range<usize>> {
        self.carets().map(Caret::range).filter(|range| !range.is_empty()).collect()
    }

    /// Ends editing and removes the caret.
    pub fn end_editing(&mut self) {
        *self = Editor { revision: self.revision, ..Editor::default() };
    }

    /// Adjusts the carets to changes of the note since the last call.
    pub fn track_note_changes(&mut self, note: &Note) {
        let revision = std::mem::replace(&mut self.revision, note.revision());
        if revision == note.revision() || revision == 0 {
            return;
        }
        let Some(shifts) = note.shifts_since(revision) else {
            (self.caret, self.drag) = (None, None);
            self.more.clear();
            return;
        };
        for shift in shifts {
            self.caret.iter_mut().chain(&mut self.more).for_each(|caret| caret.moved(shift));
            if let Some(drag) = &mut self.drag {
                let through = |at: usize| shift_offset(at, shift.at, shift.delete, shift.insert, false);
                drag.frozen = drag.frozen.map(through);
                drag.origin = through(drag.origin.start)..through(drag.origin.end);
            }
        }
        let length = note.length();
        for caret in self.caret.iter_mut().chain(&mut self.more) {
            (caret.at, caret.anchor) = (caret.at.min(length), caret.anchor.min(length));
        }
    }

    /// Sets the carets after simultaneous edits of our own; the first edit is that of the main caret.
    pub fn apply_own_edits(&mut self, edits: &[NoteEdit], note: &Note) {
        self.revision = note.revision();
        let carets: Vec<Caret> = edits
            .iter()
            .enumerate()
            .map(|(index, edit)| {
                let before = edits.iter().enumerate().filter(|(other, before)| {
                    before.at < edit.at || (before.at == edit.at && *other < index && before.delete == 0)
                });
                let (grown, gone) = before
                    .fold((0, 0), |(grown, gone), (_, before)| (grown + before.insert.len(), gone + before.delete));
                Caret { at: edit.caret + grown - gone, anchor: edit.anchor + grown - gone }
            })
            .collect();
        self.more.clear();
        for (index, caret) in carets.iter().enumerate().skip(1) {
            if !carets[..index].contains(caret) {
                self.more.push(*caret);
            }
        }
        self.caret = carets.first().copied();
        (self.behind, self.upstream) = (false, false);
        self.goal = None;
    }

    /// Puts the caret where an undo changed something.
    pub fn follow_undo(&mut self, since: u64, note: &Note) {
        let last = note.shifts_since(since).and_then(|shifts| shifts.last().copied());
        self.revision = note.revision();
        if let Some(shift) = last {
            self.more.clear();
            self.place_caret(shift.at + shift.insert);
        }
    }

    /// Does something with every caret in turn.
    pub fn for_each_caret(
        &mut self,
        world: &mut EditContext<'_>,
        mut step: impl FnMut(&mut Editor, &mut EditContext<'_>) -> KeyOutcome,
    ) -> KeyOutcome {
        if self.more.is_empty() {
            return step(self, world);
        }
        let (goal, mut edits, mut edited) = (self.goal, Vec::new(), false);
        for caret in self.carets().collect::<Vec<Caret>>() {
            self.caret = Some(caret);
            self.goal = goal.filter(|_| edits.is_empty());
            match step(self, world) {
                KeyOutcome::Edits(more) => {
                    edits.extend(more);
                    edited = true;
                }
                KeyOutcome::Not | KeyOutcome::Moved | KeyOutcome::Page(_) => {
                    let caret = self.caret.unwrap_or(caret);
                    let insert = String::new();
                    edits.push(NoteEdit { at: caret.at, delete: 0, insert, caret: caret.at, anchor: caret.anchor });
                }
            }
        }
        if edited {
            return KeyOutcome::Edits(apart(edits));
        }
        let mut carets: Vec<Caret> = Vec::new();
        for edit in &edits {
            let caret = Caret { at: edit.caret, anchor: edit.anchor };
            if !carets.contains(&caret) {
                carets.push(caret);
            }
        }
        self.caret = carets.first().copied();
        self.more = carets.split_off(1);
        self.behind = false;
        KeyOutcome::Moved
    }

    /// The row that shows its source: that of the caret, or, while the pointer selects, the one that it was in before.
    pub fn source_row(&mut self, world: &mut EditContext<'_>) -> Option<EditTarget> {
        match &self.drag {
            Some(drag) => {
                let at = drag.frozen?;
                let (caret, behind) = (self.caret.replace(Caret::at(at)), std::mem::take(&mut self.behind));
                let target = self.edit_target(world);
                (self.caret, self.behind) = (caret, behind);
                target
            }
            None => self.edit_target(world),
        }
    }

    /// What the caret edits now.
    pub fn edit_target(&mut self, world: &mut EditContext<'_>) -> Option<EditTarget> {
        let caret = self.caret?;
        let crlf = world.crlf();
        let length = world.sheet.bytes();
        if self.behind || world.texts.is_empty() {
            self.behind = true;
            return Some(EditTarget {
                spot: None,
                block: None,
                kind: RowKind::Paragraph,
                dim: false,
                code_only: false,
                language: Rc::default(),
                range: length..length,
                lead: missing_lines(world.texts),
                trail: "",
                raw: String::new(),
                shown: String::new(),
                crlf,
            });
        }
        let spot = world.find_row(caret.at.min(length))?;
        let id = world.sheet.block_rows(spot.block).id;
        if self.fence.is_some_and(|fence| fence != (id, spot.row)) {
            self.fence = None;
        }
        let mut target = target_of(spot, self.fence.is_some(), crlf, world)?;
        if caret.is_empty() {
            target.include_new_line(caret.at, world);
        }
        Some(target)
    }
}

/// What of a row is edited; `fences` too, if asked.
pub fn target_of(spot: RowIndex, fences: bool, crlf: bool, world: &mut EditContext<'_>) -> Option<EditTarget> {
    let start = world.sheet.start(spot.block);
    let row = world.rows(spot.block).get(spot.row)?.clone();
    let text = &world.texts.get(spot.block)?.text;
    let whole_fence = match row.kind {
        RowKind::Cell | RowKind::Fence { closed: true } => true,
        // Open code at the note's end is edited as is.
        RowKind::Code { .. } => row.code.as_ref().is_some_and(|code| code.end != row.content.end),
        _ => false,
    };
    // A script has no fence that names its language.
    let bare = row.kind == RowKind::Cell && row.code.as_ref().is_some_and(|code| code.start == row.content.start);
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
    Some(EditTarget {
        spot: Some(spot),
        block: world.texts.get(spot.block).map(|block| block.id),
        kind: row.kind,
        dim: row.comment == CommentSpan::Open,
        code_only,
        language: match (&row.whole, row.kind) {
            (Some((_, language)), _) => language.clone(),
            (None, _) if bare => "python".into(),
            (None, _) if code_only => source_layout::language(&text[row.content.clone()]).into(),
            (None, _) => Rc::default(),
        },
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
pub fn place_of(target: &EditTarget, width: f32, margin: f32, pen: TextStyleContext<'_>) -> (f32, f32) {
    match target.kind {
        kind if kind.is_fenced() || kind == RowKind::Indented => (0.0, crate::source_layout::code_width(width)),
        kind => {
            let x = source_layout::hanging_indent(&target.shown, kind, margin, pen);
            (x, width - x)
        }
    }
}

/// The layout of a target's text.
pub fn job_of(target: &EditTarget, text: &str, width: f32, pen: TextStyleContext<'_>) -> LayoutJob {
    if target.code_only {
        let mut job = source_layout::edited_code_job(text, &target.language, pen);
        job.wrap.max_width = width;
        job.keep_trailing_whitespace = true;
        return job;
    }
    let mut job = source_layout::source_job(text, target.kind, width, pen);
    if target.dim {
        job.sections.iter_mut().for_each(|section| section.format.color = pen.colours.muted);
    }
    job
}

/// How high the text of a target is, at least one line.
pub fn text_height(galley: &Galley, kind: RowKind) -> f32 {
    galley.size().y.max(line_of(kind))
}

/// The height of one line of a kind's source.
pub fn line_of(kind: RowKind) -> f32 {
    if kind == RowKind::Blank { theme::body().line } else { source_layout::type_of(kind).line }
}

/// Line ends as they are counted here: `\n`, whatever another program wrote.
pub fn plain_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Drops edits that overlap earlier ones in the list.
fn apart(edits: Vec<NoteEdit>) -> Vec<NoteEdit> {
    let mut kept: Vec<NoteEdit> = Vec::with_capacity(edits.len());
    for edit in edits {
        let clash = |other: &NoteEdit| {
            let (start, end) = (edit.at.max(other.at), (edit.at + edit.delete).min(other.at + other.delete));
            start < end
                || (edit.delete > 0 && (edit.at + 1..edit.at + edit.delete).contains(&other.at))
                || (other.delete > 0 && (other.at + 1..other.at + other.delete).contains(&edit.at))
        };
        if !kept.iter().any(clash) {
            kept.push(edit);
        }
    }
    kept
}

/// The byte of a character.
pub fn byte_of(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

/// The character at a byte.
pub fn char_of(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or_else(|| text.chars().count(), |head| head.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(raw: &str) -> EditTarget {
        EditTarget {
            spot: None,
            block: None,
            kind: RowKind::Paragraph,
            dim: false,
            code_only: false,
            language: Rc::default(),
            range: 10..10 + raw.len(),
            lead: "",
            trail: "",
            raw: raw.to_owned(),
            shown: raw.replace("\r\n", "\n"),
            crlf: raw.contains('\r'),
        }
    }

    #[test]
    fn line_ends_stay_what_they_are() {
        let windows = target("a\r\nb");
        assert_eq!(windows.note_byte(2), 13);
        assert_eq!(windows.shown_byte(13), 2);
        assert_eq!(windows.shown_byte(12), 1, "between the halves of a line end");
        let edit = windows.replace(2..2, "x\ny", 3);
        assert_eq!(edit, NoteEdit { at: 13, delete: 0, insert: "x\r\ny".into(), caret: 17, anchor: 17 });
        let edit = windows.replace(1..2, "", 0);
        assert_eq!((edit.at, edit.delete, edit.insert.as_str(), edit.caret), (11, 2, "", 11));
        let edit = windows.replace(1..1, "\n  ", 1);
        assert_eq!((edit.at, edit.insert.as_str(), edit.caret), (11, "\r\n  ", 13));
        assert_eq!(plain_ends("a\r\nb\rc\n"), "a\nb\nc\n");
    }

    #[test]
    fn what_is_missing_comes_with_the_first_letter() {
        let mut behind = target("");
        behind.lead = "\n";
        let edit = behind.replace(0..0, "x", 1);
        assert_eq!(edit, NoteEdit { at: 10, delete: 0, insert: "\nx".into(), caret: 12, anchor: 12 });
        let mut empty_cell = target("");
        empty_cell.trail = "\n";
        let edit = empty_cell.replace(0..0, "x", 1);
        assert_eq!(edit, NoteEdit { at: 10, delete: 0, insert: "x\n".into(), caret: 11, anchor: 11 });
    }

    #[test]
    fn several_carets_keep_their_places() {
        let edit = |at: usize, delete: usize, insert: &str| {
            let caret = at + insert.len();
            NoteEdit { at, delete, insert: insert.to_owned(), caret, anchor: caret }
        };
        assert_eq!(apart(vec![edit(4, 2, ""), edit(5, 2, ""), edit(0, 0, "x"), edit(6, 0, "y")]).len(), 3);
    }
}
