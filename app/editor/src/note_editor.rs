//! Carets and the edit target. A caret is a byte of the whole note; its row, and the edited part of that row, are
//! recomputed after every change. Views read it. Typing results in one edit, and the session's text is authoritative.

use super::bidi_text;
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

/// Returns the id of the control that has the focus while editing: the row with the caret.
pub fn field() -> egui::Id {
    egui::Id::unique("note editor")
}

/// An edit of the note and the caret after it, in bytes of the whole note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteEdit {
    /// Offset at which the edit begins.
    pub at: usize,
    /// Number of bytes deleted from there.
    pub delete: usize,
    /// Text inserted there.
    pub insert: String,
    /// Position of the caret after the edit.
    pub caret: usize,
    /// Other end of the selection after the edit; equal to `caret` if nothing is selected.
    pub anchor: usize,
}

/// A caret with its selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caret {
    /// The moving end, in bytes of the note.
    pub at: usize,
    /// The fixed end, in bytes of the note; equal to `at` if nothing is selected.
    pub anchor: usize,
}

impl Caret {
    /// Creates a caret without a selection.
    pub(crate) fn at(at: usize) -> Caret {
        Caret { at, anchor: at }
    }

    /// Returns the selected byte range.
    pub fn range(self) -> Range<usize> {
        self.at.min(self.anchor)..self.at.max(self.anchor)
    }

    /// Returns whether nothing is selected.
    pub fn is_empty(self) -> bool {
        self.at == self.anchor
    }

    fn moved(&mut self, shift: &engine::CaretShift) {
        self.at = shift_offset(self.at, shift.at, shift.delete, shift.insert, false);
        self.anchor = shift_offset(self.anchor, shift.at, shift.delete, shift.insert, false);
    }
}

/// A selection in progress by pointer. No row switches between source and rendered text until the button is released.
#[derive(Clone, Debug)]
pub struct SelectionDrag {
    /// Caret position before the drag; its row keeps showing its source.
    pub frozen: Option<usize>,
    /// Range that the press selected: empty, a word or a row.
    pub origin: Range<usize>,
    /// Number of presses, which sets the unit of selection: characters, words or rows.
    pub unit: u32,
    /// Position of the press.
    pub from: egui::Pos2,
    /// Whether the pointer has moved away from the position of the press.
    pub moved: bool,
}

/// Text that an input method hasn't committed yet, and the part of it that is being converted.
#[derive(Clone, Debug)]
pub struct ImePreedit {
    /// The uncommitted text.
    pub text: String,
    /// Character range of `text` that is being converted, if any.
    pub active: Option<Range<usize>>,
}

/// Everything needed to find rows and lay them out.
pub struct EditContext<'a> {
    /// The session that the note belongs to.
    pub session: &'a Session,
    /// The note.
    pub note: &'a Note,
    /// The note's blocks, in order.
    pub texts: &'a [&'a Block],
    /// The note's rows.
    pub sheet: &'a mut DisplayMap,
    /// Fonts and colors for text layout.
    pub pen: TextStyleContext<'a>,
    /// Width of the column, in points.
    pub width: f32,
    /// Width of the margin to the left of the column, in points.
    pub margin: f32,
}

impl EditContext<'_> {
    /// Returns the rows of a block.
    pub fn rows(&mut self, block: usize) -> &[MarkdownRow] {
        self.sheet.rows(block, self.note, self.texts)
    }

    /// Returns the row that contains a byte of the note.
    pub fn find_row(&mut self, at: usize) -> Option<RowIndex> {
        self.sheet.find_row(at, self.note, self.texts)
    }

    /// Returns whether the note's lines end with CRLF, judged by its first line.
    pub fn crlf(&self) -> bool {
        let first = self.texts.first();
        first.is_some_and(|block| block.text.find('\n').is_some_and(|newline| block.text[..newline].ends_with('\r')))
    }

    /// Returns the nearest visible row before this one; `None` for the first.
    pub fn previous_row(&mut self, spot: RowIndex) -> Option<RowIndex> {
        self.sheet.previous_row(spot, self.note, self.texts)
    }

    /// Returns the nearest visible row after this one; `None` for the last.
    pub fn following_row(&mut self, spot: RowIndex) -> Option<RowIndex> {
        self.sheet.following_row(spot, self.note, self.texts)
    }
}

/// The row being edited, and the edited part of it.
#[derive(Clone, Debug)]
pub struct EditTarget {
    /// The row; `None` for the line after the last one, which doesn't exist yet.
    pub spot: Option<RowIndex>,
    /// Id of the row's block.
    pub block: Option<BlockId>,
    /// Kind of the row.
    pub kind: RowKind,
    /// Whether the row is in a comment.
    pub(crate) dim: bool,
    /// Whether only the code between the fences is edited.
    pub code_only: bool,
    /// The language of that code.
    pub(crate) language: Rc<str>,
    /// Byte range of the edited text in the note.
    pub range: Range<usize>,
    /// Text to insert before the first typed text; `trail` is inserted after it.
    pub(crate) lead: &'static str,
    pub(crate) trail: &'static str,
    /// The edited text with the file's line endings.
    pub(crate) raw: String,
    /// The edited text with `\n` line endings, as it is laid out and edited.
    pub shown: String,
    /// Whether new lines in this note end with CRLF.
    pub(crate) crlf: bool,
}

impl EditTarget {
    /// Maps a byte of `shown` to a byte of the note.
    pub fn note_byte(&self, shown: usize) -> usize {
        self.range.start + to_raw(&self.raw, shown)
    }

    /// Extends the target by the line that Enter has just begun, up to the caret. Until text is typed there, Markdown
    /// parses it as an empty line after the row.
    fn include_new_line(&mut self, caret: usize, world: &EditContext<'_>) {
        if self.code_only || caret <= self.range.end {
            return;
        }
        let Some(behind) = world.note.slice(self.range.end, caret - self.range.end) else { return };
        let line = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n'));
        let spaces = line.filter(|line| line.bytes().all(|byte| matches!(byte, b' ' | b'\t')));
        let goes_on = match self.kind {
            RowKind::Paragraph | RowKind::Heading(_) | RowKind::Rule => spaces.is_some(),
            // A further line of an item is indented.
            RowKind::Item { .. } => spaces.is_some_and(|spaces| !spaces.is_empty()),
            _ => false,
        };
        if goes_on {
            self.range.end = caret;
            self.shown.push_str(&behind.replace("\r\n", "\n"));
            self.raw.push_str(&behind);
        } else if self.kind == RowKind::Blank && behind.trim().is_empty() {
            // If several empty lines form one row, text goes into the line with the caret.
            self.range = caret..caret;
        }
    }

    /// Maps a byte of the note to a byte of `shown`.
    pub fn shown_byte(&self, at: usize) -> usize {
        let raw = at.clamp(self.range.start, self.range.end) - self.range.start;
        let mut raw = (0..=raw).rev().find(|at| self.raw.is_char_boundary(*at)).unwrap_or(0);
        // The caret can't be inside a line ending.
        if self.raw[..raw].ends_with('\r') && self.raw[raw..].starts_with('\n') {
            raw -= 1;
        }
        raw - self.raw[..raw].matches("\r\n").count()
    }

    /// Returns the edit that replaces a range of `shown`; the caret goes after `caret` bytes of the insertion.
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

/// Shape of the caret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaretShape {
    /// A thin line between two characters.
    #[default]
    Line,
    /// Covers a character, in modes where letters are commands.
    Block,
    /// Hidden, in the mode where letters act on whole cells.
    None,
}

/// The carets and editing state of a note.
#[derive(Default)]
pub struct Editor {
    /// The primary caret; `None` until the note has one.
    pub caret: Option<Caret>,
    /// The caret's rectangle on the screen when it was last drawn with keyboard focus.
    pub stands: Option<egui::Rect>,
    /// Additional carets.
    pub more: Vec<Caret>,
    /// Whether the caret is on the line after the last row.
    pub behind: bool,
    /// At a line wrap: whether the caret is at the end of the line instead of the start of the next one.
    pub upstream: bool,
    /// The row whose fences are also being edited.
    pub fence: Option<(BlockId, usize)>,
    /// Whether the note should take the keyboard focus.
    pub focus: bool,
    /// Whether to scroll the caret into view.
    pub reveal: bool,
    /// Note revision up to which the carets have been adjusted.
    revision: u64,
    /// Horizontal position that vertical movement keeps.
    pub goal: Option<f32>,
    /// The selection in progress by pointer.
    pub drag: Option<SelectionDrag>,
    /// Text that an input method hasn't committed yet.
    pub preedit: Option<ImePreedit>,
    /// Shape of the carets.
    pub shape: CaretShape,
    /// Window time of the last caret movement; the caret stays visible right after it instead of blinking.
    pub touched: f64,
    /// The caret's rectangle on the screen at its last layout, with or without focus.
    pub seen: Option<egui::Rect>,
}

impl Editor {
    /// Moves the caret to a byte of the note.
    pub fn place_caret(&mut self, at: usize) {
        self.caret = Some(Caret::at(at));
        (self.behind, self.upstream, self.focus, self.reveal) = (false, false, true, true);
        self.goal = None;
    }

    /// Moves the caret to the line after the last row.
    pub fn move_caret_after(&mut self, length: usize) {
        self.place_caret(length);
        self.behind = true;
    }

    /// Selects a range, with the caret at `at`.
    pub fn select(&mut self, anchor: usize, at: usize) {
        self.place_caret(at);
        self.caret = Some(Caret { at, anchor });
    }

    /// Selects the whole note without scrolling.
    pub fn select_all(&mut self, length: usize) {
        self.more.clear();
        self.select(0, length);
        (self.reveal, self.fence) = (false, None);
    }

    /// Selects the code of the cell with the caret. If it's selected, or the caret is in text, selects the whole note.
    pub(crate) fn select_code_or_all(&mut self, target: &EditTarget, length: usize) {
        let code = &target.range;
        let selected = self.caret.map_or(0..0, Caret::range);
        let is_inside = code.start <= selected.start && selected.end <= code.end && selected != *code;
        if !target.code_only || !is_inside {
            return self.select_all(length);
        }
        self.more.clear();
        self.select(code.start, code.end);
        self.reveal = false;
    }

    /// Returns all carets, the primary one first.
    pub fn carets(&self) -> impl Iterator<Item = Caret> {
        self.caret.into_iter().chain(self.more.iter().copied())
    }

    /// Returns the non-empty selections.
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

    /// Sets the carets after simultaneous edits by this editor; the first edit belongs to the primary caret.
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

    /// Moves the caret to the last change of an undo.
    pub fn follow_undo(&mut self, since: u64, note: &Note) {
        let last = note.shifts_since(since).and_then(|shifts| shifts.last().copied());
        self.revision = note.revision();
        if let Some(shift) = last {
            self.more.clear();
            self.place_caret(shift.at + shift.insert);
        }
    }

    /// Runs a step for every caret in turn, and combines the edits or caret movements.
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

    /// Returns the row that shows its source: the caret's row, or during a pointer selection the row it was in before.
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

    /// Returns the target that the caret currently edits.
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

/// Returns the editable part of a row; `fences` includes its fences.
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
    // A script is a cell without a fence that names its language.
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

/// Returns the newlines that must precede a new paragraph after the last text.
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

/// Returns the offset of a target's text field from the column's left edge, and its width.
pub fn place_of(target: &EditTarget, width: f32, margin: f32, pen: TextStyleContext<'_>) -> (f32, f32) {
    match target.kind {
        kind if kind.is_fenced() || kind == RowKind::Indented => (0.0, crate::source_layout::code_width(width)),
        kind => {
            let x = source_layout::hanging_indent(&target.shown, kind, margin, pen);
            let is_item = matches!(kind, RowKind::Item { .. });
            // Its marker is at the right, where the text ends so far from the edge.
            if is_item && bidi_text::begins_right_to_left(&target.shown) { (0.0, width - x) } else { (x, width - x) }
        }
    }
}

/// Returns the layout job for a target's text.
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

/// Returns the height of a target's text, at least one line.
pub fn text_height(galley: &Galley, kind: RowKind) -> f32 {
    galley.size().y.max(line_of(kind))
}

/// Returns the line height of a row kind's source.
pub fn line_of(kind: RowKind) -> f32 {
    if kind == RowKind::Blank { theme::body().line } else { source_layout::type_of(kind).line }
}

/// Normalizes line endings from other programs to `\n`.
pub fn plain_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Drops edits that overlap earlier edits in the list.
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

/// Converts a character index to a byte offset.
pub fn byte_of(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

/// Converts a byte offset to a character index.
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
