//! The page of the open note: only visible rows are laid out and drawn; the row with the caret is a text field. The
//! scroll position is stored as a byte of the note, so that the text stays in place while heights above it become known
//! or change.

mod agent_marks;
mod blame_gutter;
mod context_menu;
mod drag;
mod draw;
mod pointer;

use super::cells::{self, CellViews};
use super::collection::CollectionEmbeds;
use crate::actions::{PageAction, RowDrag};
use crate::link_targets::UnresolvedLinks;
use crate::widget_controls::WidgetControls;
pub use drag::past_cell;
use editor::assets;
use editor::bidi_text::caret_place;
use editor::display_map::{DisplayMap, RowIndex};
use editor::editor_keys;
use editor::note_editor::{self, Caret, EditContext, EditTarget, Editor};
use editor::row_layout::RowLayout;
use editor::row_splitter::{MarkdownRow, RowKind};
use eframe::egui;
use egui::{Color32, Pos2, Rect, Ui};
use engine::{Note, NotePosition};
use host::source_control::BlameReading;
pub use pointer::is_pressed;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use store::{Block, BlockId, DocId};
use text::text_edit::shift_offset;
use ui::theme::{self, ThemeColors, size, space};

/// Space above the first row and below the last.
const PAGE_TOP_PADDING: f32 = space::XXL;
const PAGE_BOTTOM_PADDING: f32 = 160.0;
/// Minimum margin at both sides of the column.
const MIN_PAGE_MARGIN: f32 = space::XXXL;
/// Minimum width of the column beside a margin that shows commits.
const MIN_WIDTH_BESIDE_BLAME: f32 = 440.0;
/// Time without movement after which the pointer counts as resting, in seconds.
const POINTER_REST_SECONDS: f32 = 0.4;
/// How long the target row of a link is highlighted, in seconds.
const LINK_TARGET_HIGHLIGHT_SECONDS: f64 = 1.5;
/// Maximum number of cached row layouts.
const MAX_CACHED_ROW_LAYOUTS: usize = 400;
/// Maximum number of rows evicted per frame.
const MAX_EVICTED_ROWS_PER_FRAME: usize = 40;

/// Where a note was left: the byte at the top of the page, the distance from its row's top, and the caret.
#[derive(Clone, Copy, Debug)]
struct ScrollPosition {
    pub at: usize,
    y: f32,
    pub caret: Option<Caret>,
}

impl Default for ScrollPosition {
    fn default() -> Self {
        ScrollPosition { at: 0, y: -PAGE_TOP_PADDING, caret: None }
    }
}

/// A row drawn in this frame.
struct VisibleRow {
    spot: RowIndex,
    origin: Pos2,
    area: Rect,
}

/// A cached row layout.
struct CachedRow {
    drawn: Rc<RowLayout>,
    /// The frame in which it was last used.
    used: u64,
    /// If code colors were pending: the number of results that had arrived.
    waits: Option<u64>,
    /// Rectangles of misspelled words, and the dictionaries' revision.
    spelt: Option<(u64, Vec<Rect>)>,
}

/// The page of a note: cached layouts, scroll position, and pointer state.
#[derive(Default)]
pub struct NotePage {
    /// The displayed note.
    pub note: Option<DocId>,
    /// Outputs and other state of its cells.
    pub cells: CellViews,
    /// Collections embedded in the note.
    pub insets: CollectionEmbeds,
    /// State of its widgets' controls.
    controls: WidgetControls,
    drawn: HashMap<u64, CachedRow>,
    frame: u64,
    /// What rows were last laid out for: column width, width of wide blocks, background, scale, and revision of fonts
    /// and images.
    look: Option<(f32, f32, Color32, f32, u64)>,
    /// Whether the note's properties turn spell check off for it.
    pub(crate) is_spelling_off: bool,
    /// Fill ratio of the font atlas, and when it was checked.
    letters: (f32, u64),
    seat: ScrollPosition,
    seats: HashMap<DocId, ScrollPosition>,
    /// Carets of earlier starts, until their notes are loaded.
    left_carets: HashMap<DocId, usize>,
    revision: u64,
    /// The scroll offset last drawn, and the one after the user's scrolling.
    shown: f32,
    ended: f32,
    /// Whether the user jumped to the current position.
    jumped: bool,
    /// The target of a link, and since when its row is highlighted.
    pub pointed: Option<(usize, Option<f64>)>,
    /// Whether the caret was placed at the start, and moves past the properties once they are known.
    skips_properties: bool,
    /// Distance to scroll in the next frame.
    nudge: f32,
    view: f32,
    /// The number of each cell, from 1.
    pub numbers: HashMap<BlockId, usize>,
    /// The cells from top to bottom, as last numbered.
    order: Vec<BlockId>,
    /// Whether outputs are shown elsewhere, next to a script.
    pub apart: bool,
    /// Time and position of the last press, and the number of presses there.
    presses: (f64, Pos2, u32),
    /// The visible rows, from the top.
    seen: Vec<VisibleRow>,
    /// The drag handle of a row, and the rows being dragged.
    grip: Option<drag::DragHandle>,
    held: Option<RowDrag>,
    /// Rows dragged here from another page, and whether the pointer is over another page.
    guest: Option<RowDrag>,
    away: bool,
    /// The page's last rectangle, and the pass in which it was drawn.
    area: Option<Rect>,
    drawn_in: u64,
    /// Cache of the note's unresolved links.
    pub unresolved_links: UnresolvedLinks,
    /// The link under the pointer, and the pointer's position.
    pub over: Option<(String, Pos2)>,
    /// The byte on which the pointer rests, and the pointer's position.
    pub resting: Option<(usize, Pos2)>,
    /// The last drawn cell, until its button for inserting a cell below is drawn.
    cell_end: Option<context_menu::CellEnd>,
    /// The open context menu.
    menu: Option<context_menu::ContextMenu>,
    /// Changes by agents that the user hasn't seen.
    agent_marks: agent_marks::AgentMarks,
    /// Which commit each part is from, if the user wants to see that.
    blame: blame_gutter::BlameGutter,
    /// Search matches in order.
    pub found: Rc<[Range<usize>]>,
    /// The selected search match.
    pub current: Option<Range<usize>>,
}

impl NotePage {
    /// Shows another note, and remembers where this one was left.
    pub fn show_note(&mut self, note: Option<DocId>, editor: &mut Editor) {
        if self.note == note {
            return;
        }
        if let Some(old) = self.note {
            self.seat.caret = editor.caret;
            self.seats.insert(old, self.seat);
        }
        self.note = note;
        self.menu = None;
        // Links and images of equal rows may have other targets in another note.
        self.drawn.clear();
        self.cells.clear();
        self.insets.clear();
        self.controls = WidgetControls::default();
        self.seat = note.and_then(|note| self.seats.get(&note).copied()).unwrap_or_default();
        (self.ended, self.shown, self.revision) = (0.0, 0.0, 0);
        *editor = Editor::default();
    }

    /// Sets where a note was left at an earlier start. Its caret is restored once its text is known.
    pub fn remember_position(&mut self, note: DocId, position: NotePosition) {
        let y = if position.top == 0 { -PAGE_TOP_PADDING } else { -space::L };
        let seat = ScrollPosition { at: position.top, y, caret: None };
        self.seats.insert(note, seat);
        if self.note == Some(note) {
            self.seat = seat;
        }
        if let Some(caret) = position.caret {
            self.left_carets.insert(note, caret);
        }
    }

    /// Returns where each note is that the page has shown, the displayed one last.
    pub fn positions(&self, editor: &Editor) -> Vec<(DocId, NotePosition)> {
        let position = |note: DocId, seat: &ScrollPosition, caret: Option<Caret>| {
            let caret = self.left_carets.get(&note).copied().or(caret.map(|caret| caret.at));
            (note, NotePosition { top: seat.at, caret })
        };
        let left = self.seats.iter().filter(|(note, _)| Some(**note) != self.note);
        let left = left.map(|(note, seat)| position(*note, seat, seat.caret));
        let shown = self.note.map(|note| position(note, &self.seat, editor.caret.or(self.seat.caret)));
        left.chain(shown).collect()
    }

    /// Places the caret where it was at an earlier start.
    fn restore_left_caret(&mut self, note: &Note, editor: &mut Editor) {
        let Some(at) = self.left_carets.remove(&note.id) else { return };
        if editor.caret.is_some() {
            return;
        }
        // Another program may have changed the note meanwhile.
        let text = note.text();
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        editor.place_caret(at);
        editor.reveal = false;
    }

    /// Shows in the margin which commit each part of the note is from; `None` doesn't.
    pub fn show_blame(&mut self, note: &Note, reading: Option<Arc<BlameReading>>) {
        self.blame.follow(note, reading);
    }

    /// Returns whether the page is at a point, in this pass or the previous one.
    pub fn is_at(&self, ctx: &egui::Context, point: Pos2) -> bool {
        self.drawn_in + 1 >= ctx.cumulative_pass_nr() && self.area.is_some_and(|area| area.contains(point))
    }

    /// Scrolls so that a byte of the note is at the top of the page.
    pub fn scroll_to_byte(&mut self, at: usize) {
        self.jumped = true;
        (self.seat.at, self.seat.y) = (at, if at == 0 { -PAGE_TOP_PADDING } else { -space::L });
    }

    /// Scrolls so that a byte of the note is at the top of the page, and highlights its row for a moment.
    pub fn point_out(&mut self, at: usize) {
        self.scroll_to_byte(at);
        self.pointed = Some((at, None));
    }

    /// Ends the highlight of a link's target when its time is over, or immediately with reduced motion.
    fn fade(&mut self, ui: &Ui) {
        let Some((_, since)) = &mut self.pointed else { return };
        let now = ui.input(|input| input.time);
        let left = *since.get_or_insert(now) + LINK_TARGET_HIGHLIGHT_SECONDS - now;
        if left <= 0.0 || ui.style().animation_time == 0.0 {
            self.pointed = None;
        } else {
            ui.ctx().request_repaint_after(std::time::Duration::from_secs_f64(left));
        }
    }

    /// Scrolls by this many screens.
    pub fn turn_by(&mut self, screens: f32) {
        self.nudge += screens * (self.view - space::XXXL).max(space::XXXL);
    }

    /// Remembers the caret's position, for when focus returns.
    pub fn keep_caret(&mut self, editor: &Editor) {
        self.seat.caret = editor.caret.or(self.seat.caret);
    }

    /// Restores the caret to where it was when the note was left, otherwise to the start of its text.
    pub fn restore_caret(&mut self, editor: &mut Editor) {
        self.skips_properties = self.seat.caret.is_none();
        editor.place_caret(self.seat.caret.map_or(0, |caret| caret.at));
        editor.reveal = false;
    }

    /// Applies changes of the note since the last frame.
    pub fn sync_layout(&mut self, note: &Note, sheet: &mut DisplayMap, texts: &[&Block], editor: &mut Editor) {
        let revision = std::mem::replace(&mut self.revision, note.revision());
        // A page that has just switched notes has no earlier revision to compare with.
        if revision != note.revision() && revision != 0 {
            // The position may be beyond the end after a jump to the very end.
            self.seat.at = self.seat.at.min(sheet.bytes());
            for shift in note.shifts_since(revision).into_iter().flatten() {
                let carried = |at| shift_offset(at, shift.at, shift.delete, shift.insert, false);
                self.seat.at = carried(self.seat.at);
                self.seat.caret = self.seat.caret.map(|it| Caret { at: carried(it.at), anchor: carried(it.anchor) });
            }
        }
        self.seat.at = self.seat.at.min(note.length());
        if (sheet.sync(note, texts) || revision != note.revision()) && !sheet.cell_ids().eq(self.order.iter().copied())
        {
            self.order = sheet.cell_ids().collect();
            self.numbers = self.order.iter().copied().zip(1..).collect();
        }
        self.restore_left_caret(note, editor);
        editor.track_note_changes(note);
        if std::mem::take(&mut self.skips_properties)
            && editor.caret == Some(Caret { at: 0, anchor: 0 })
            && let Some(start) = sheet.start_of_text(note, texts)
        {
            if start < sheet.bytes() {
                editor.place_caret(start)
            } else {
                editor.move_caret_after(start)
            }
            editor.reveal = false;
        }
    }

    /// Returns the width and the margin of the text column for a page width.
    pub fn column_metrics(available: f32) -> (f32, f32) {
        let width = size::NOTE_COLUMN_WIDTH.min(available - 2.0 * MIN_PAGE_MARGIN).max(200.0);
        (width, (available - width) / 2.0)
    }

    /// Returns the width and the margin of the text column for a page width, with room for commits in the margin if
    /// they're shown.
    pub fn own_column_metrics(&mut self, ui: &Ui, available: f32) -> (f32, f32) {
        let usual = NotePage::column_metrics(available);
        let Some(margin) = self.blame.wanted_margin(ui) else { return usual };
        let width = usual.0.min((available - 2.0 * margin).max(MIN_WIDTH_BESIDE_BLAME));
        (width, (available - width) / 2.0)
    }

    /// Moves the caret up or down by a screen.
    pub fn move_caret_by_page(&mut self, direction: f32, editor: &mut Editor, world: &mut EditContext<'_>) {
        let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else { return };
        let by = direction * (self.view - space::XXXL).max(space::XXXL);
        let Some(spot) = target.spot else {
            self.nudge += by;
            return;
        };
        let (galley, left) = editor_keys::layout_target(&target, world);
        let cursor = caret_place(&galley, editor.display_cursor(&target.shown, target.shown_byte(caret.at))).center();
        let x = editor.goal.unwrap_or(left + cursor.x);
        let y = world.sheet.top(spot) + world.sheet.space_above_row(spot) + cursor.y + by;
        let Some((spot, y)) = world.sheet.at_height(y.max(0.0), world.note, world.texts) else { return };
        let above = world.sheet.space_above_row(spot);
        editor.enter_row(spot, y - above, x, world);
        self.nudge += by;
    }

    /// Scrolls so that the caret's line is at this share of the page: 0 at the top, 1 at the bottom.
    pub fn scroll_caret_to(&mut self, part: f32, editor: &mut Editor, world: &mut EditContext<'_>) {
        let (Some(caret), Some(target)) = (editor.caret, editor.edit_target(world)) else { return };
        let Some(spot) = target.spot else { return };
        let (galley, _) = editor_keys::layout_target(&target, world);
        let line = caret_place(&galley, editor.display_cursor(&target.shown, target.shown_byte(caret.at)));
        let room = (self.view - 2.0 * space::L - line.height()).max(0.0);
        self.seat.at = row_start(spot, world);
        self.seat.y = world.sheet.space_above_row(spot) + line.top() - space::L - part * room;
        (self.ended, self.nudge, self.jumped) = (self.shown, 0.0, true);
        editor.reveal = false;
    }

    /// Scrolls by this distance in points.
    pub fn scroll_by(&mut self, by: f32) {
        self.nudge += by;
    }

    /// Moves the caret to the line at this share of the page: 0 at the top, 1 at the bottom.
    pub fn go_to_part(&mut self, part: f32, editor: &mut Editor, world: &mut EditContext<'_>) {
        let line = theme::body().line;
        let y = self.shown - PAGE_TOP_PADDING + line + part * (self.view - 2.0 * line).max(0.0);
        let Some((spot, y)) = world.sheet.at_height(y.max(0.0), world.note, world.texts) else { return };
        let above = world.sheet.space_above_row(spot);
        editor.enter_row(spot, y - above, 0.0, world);
        editor.goal = None;
    }

    /// Draws the note. `hold` keeps the caret although another widget has focus.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        world: &mut EditContext<'_>,
        editor: &mut Editor,
        hold: bool,
        actions: &mut Vec<PageAction>,
    ) {
        self.frame += 1;
        // A menu takes the focus for a moment, but the caret stays.
        let right = egui::PointerButton::Secondary;
        let opens = ui.input(|input| input.pointer.button_down(right) || input.pointer.button_released(right));
        let hold = hold || opens || self.has_menu();
        self.insets.begin_frame();
        self.agent_marks.follow(world.session, world.note, editor.carets().map(|caret| caret.at).collect());
        self.fade(ui);
        let available = ui.available_size();
        self.view = available.y;
        (self.area, self.drawn_in) = (Some(ui.available_rect_before_wrap()), ui.ctx().cumulative_pass_nr());
        let wide = size::WIDE_BLOCK_WIDTH.min(available.x - space::XXXL).max(world.width);
        let (paper, scale) = (ThemeColors::of(ui).paper, ui.ctx().pixels_per_point() * theme::text_scale());
        let look = (world.width, wide, paper, scale, assets::version(ui.ctx()));
        // If egui has rebuilt the font atlas, it's emptier than before, and laid-out text refers to outdated positions.
        // A hidden page may have missed that.
        let letters = (ui.ctx().fonts(|fonts| fonts.font_atlas_fill_ratio()), ui.ctx().cumulative_pass_nr());
        let anew = letters.0 < self.letters.0 || letters.1 > self.letters.1 + 1;
        self.letters = letters;
        if anew {
            self.cells.relayout();
        }
        if self.look != Some(look) || anew {
            self.look = Some(look);
            self.drawn.clear();
            world.sheet.relayout();
        }
        // Expand collapsed text that the caret or a jump goes to.
        let jumped = std::mem::take(&mut self.jumped).then_some(self.seat.at);
        world.open_comments(editor, jumped);
        for at in editor.carets().map(|caret| caret.at).chain(jumped).collect::<Vec<usize>>() {
            if let Some(spot) = world.find_row(at.min(world.sheet.bytes()))
                && world.sheet.is_hidden(spot)
            {
                world.unfold_to(spot);
            }
        }
        let target = editor.source_row(world);
        if editor.reveal && editor.drag.is_none() {
            self.approach(target.as_ref(), world);
        }
        let offset = self.offset(target.as_ref(), world);
        let offset = self.measure_view(offset, target.as_ref(), world);
        let behind = target.as_ref().is_some_and(|target| target.spot.is_none());
        let tail = if behind || world.sheet.bytes() == 0 { space::M + theme::body().line } else { 0.0 };
        let height = PAGE_TOP_PADDING + world.sheet.height() + tail + PAGE_BOTTOM_PADDING;
        let source = egui::containers::scroll_area::ScrollSource {
            drag: egui::containers::scroll_area::DragScroll::OnTouch,
            ..Default::default()
        };
        let output = egui::ScrollArea::vertical()
            .id_salt("page")
            .auto_shrink(false)
            .animated(false)
            .scroll_source(source)
            .vertical_scroll_offset(offset)
            .show_viewport(ui, |ui, viewport| {
                ui.set_height(height.max(available.y));
                self.shown = viewport.min.y;
                self.rows(ui, viewport, world, editor, target, hold, actions);
            });
        self.ended = output.state.clamped_offset().y;
        self.show_menu(ui, world, editor, actions);
        self.forget_rows();
    }

    /// Evicts the least recently used rows if there are too many: a few per frame, since freeing text layouts takes
    /// time.
    fn forget_rows(&mut self) {
        let over = self.drawn.len().saturating_sub(MAX_CACHED_ROW_LAYOUTS).min(MAX_EVICTED_ROWS_PER_FRAME);
        if over == 0 {
            return;
        }
        let frame = self.frame;
        let mut old: Vec<(u64, u64)> = self.drawn.iter().map(|(look, kept)| (kept.used, *look)).collect();
        old.select_nth_unstable(over - 1);
        for (_, look) in old.into_iter().take(over).filter(|(used, _)| used + 2 < frame) {
            self.drawn.remove(&look);
        }
    }

    /// Returns the page's scroll offset after the user's scrolling.
    fn offset(&mut self, target: Option<&EditTarget>, world: &mut EditContext<'_>) -> f32 {
        let by = self.ended - self.shown + std::mem::take(&mut self.nudge);
        if by.abs() > 3.0 * self.view
            && let Some((spot, y)) = world.sheet.at_height(self.ended - PAGE_TOP_PADDING, world.note, world.texts)
        {
            self.seat.at = row_start(spot, world);
            self.seat.y = y;
        } else {
            self.seat.y += by;
        }
        let Some(mut spot) = world.find_row(self.seat.at) else {
            self.seat.y = self.seat.y.clamp(-PAGE_TOP_PADDING, 0.0);
            return PAGE_TOP_PADDING + self.seat.y;
        };
        let mut y = self.seat.y;
        while y < 0.0 {
            let Some(before) = world.previous_row(spot) else { break };
            y += self.extent(before, target, world);
            spot = before;
        }
        while y > 0.0 {
            let extent = self.extent(spot, target, world);
            if y < extent {
                break;
            }
            let Some(after) = world.following_row(spot) else { break };
            y -= extent;
            spot = after;
        }
        if spot == RowIndex::default() {
            y = y.max(-PAGE_TOP_PADDING);
        }
        (self.seat.at, self.seat.y) = (row_start(spot, world), y);
        (PAGE_TOP_PADDING + world.sheet.top(spot) + y).max(0.0)
    }

    /// Scrolls near the caret's row if it's far away.
    fn approach(&mut self, target: Option<&EditTarget>, world: &mut EditContext<'_>) {
        let Some(spot) = target.and_then(|target| target.spot) else {
            self.nudge = world.sheet.height();
            return;
        };
        let top = PAGE_TOP_PADDING + world.sheet.top(spot);
        if top < self.shown - self.view || top > self.shown + 2.0 * self.view {
            (self.seat.at, self.seat.y) = (row_start(spot, world), -self.view / 3.0);
            (self.ended, self.nudge) = (self.shown, 0.0);
        }
    }

    /// Measures the rows that will be visible, so that nothing moves while it's drawn.
    fn measure_view(&mut self, offset: f32, target: Option<&EditTarget>, world: &mut EditContext<'_>) -> f32 {
        let Some(mut spot) = world.find_row(self.seat.at) else { return offset };
        let mut y = -self.seat.y;
        while y < self.view {
            y += self.extent(spot, target, world);
            match world.following_row(spot) {
                Some(after) => spot = after,
                None => break,
            }
        }
        offset
    }

    /// Returns the height of a row, with the space above it.
    fn extent(&mut self, spot: RowIndex, target: Option<&EditTarget>, world: &mut EditContext<'_>) -> f32 {
        world.rows(spot.block);
        let Some(row) = world.sheet.row(spot).filter(|row| !row.hidden).cloned() else { return 0.0 };
        let above = world.sheet.space_above_row(spot);
        let editing = target.filter(|target| target.spot == Some(spot));
        // A row with the caret, or with changing outputs, is measured in every frame.
        let alone = row.kind != RowKind::Cell && !row.base;
        let height = match editing {
            None if alone => match world.sheet.measured_height(spot) {
                Some(height) => height,
                None => self.drawn_row(spot, &row, world).height,
            },
            editing => self.row_height(spot, &row, editing, world),
        };
        world.sheet.set_height(spot, height, editing.is_none() && alone);
        above + height
    }

    fn row_height(
        &mut self,
        spot: RowIndex,
        row: &MarkdownRow,
        editing: Option<&EditTarget>,
        world: &mut EditContext<'_>,
    ) -> f32 {
        let mut height = match editing {
            Some(target) => source_height(target, world),
            None => self.drawn_row(spot, row, world).height,
        };
        if row.kind == RowKind::Cell && !self.apart {
            let id = world.sheet.block_rows(spot.block).id;
            height += self.cells.output_height(world.note, id, self.output_width(world), world.pen);
        }
        if row.base {
            height += self.insets.height(inset_of(spot, world));
        }
        height
    }

    /// Returns the maximum width of outputs: from the column's left edge, possibly beyond its right one.
    fn output_width(&self, world: &EditContext<'_>) -> f32 {
        (world.width + world.margin - space::XL).min(size::WIDE_BLOCK_WIDTH).max(world.width)
    }

    /// Returns the note's cells from top to bottom, with their numbers.
    pub fn cells_in_order(&self) -> Vec<(BlockId, usize)> {
        self.order.iter().copied().zip(1..).collect()
    }

    /// Returns the number of the cell that a target edits.
    pub fn cell_at(&self, target: &EditTarget) -> Option<usize> {
        self.numbers.get(&target.block?).copied()
    }
}

/// Returns the key of the embed that a row shows.
fn inset_of(spot: RowIndex, world: &mut EditContext<'_>) -> (BlockId, usize) {
    let before = world.rows(spot.block).iter().take(spot.row).filter(|row| row.base).count();
    (world.sheet.block_rows(spot.block).id, before)
}

/// Returns the height of a row's source, without its outputs.
fn source_height(target: &EditTarget, world: &EditContext<'_>) -> f32 {
    let (_, width) = note_editor::place_of(target, world.width, world.margin, world.pen);
    let galley = world.pen.galley(note_editor::job_of(target, &target.shown, width, world.pen));
    let (above, below) = pads(target.kind);
    note_editor::text_height(&galley, target.kind) + above + below
}

/// Returns the padding above and below a row's source inside its box.
fn pads(kind: RowKind) -> (f32, f32) {
    let (above, below) = kind.has_padding();
    (if above { cells::CELL_PADDING } else { 0.0 }, if below { cells::CELL_PADDING } else { 0.0 })
}

/// Moves the caret after the last row: onto an existing empty line, or one that's created when the user types.
pub fn move_caret_after_last_row(world: &mut EditContext<'_>, editor: &mut Editor) {
    let bytes = world.sheet.bytes();
    let last = world.find_row(bytes).and_then(|spot| world.sheet.row(spot));
    if last.is_some_and(|row| row.kind == RowKind::Blank) {
        editor.place_caret(bytes);
    } else {
        editor.move_caret_after(bytes);
    }
}

fn row_start(spot: RowIndex, world: &mut EditContext<'_>) -> usize {
    let start = world.sheet.start(spot.block);
    start + world.rows(spot.block).get(spot.row).map_or(0, |row| row.range.start)
}
