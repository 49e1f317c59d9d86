//! The open note on its page: only the rows in sight are laid out and drawn, the one with the caret in a text field.
//! Where the page is scrolled to is kept as a byte of the note, so that what is read stays where it is while heights
//! above it become known or change.

use super::cells::{self, Cells, Shown};
use super::controls::named;
use super::drawn::{Drawn, Map, Part, Run};
use super::editor::{self, Caret, Drag, Edit, Editor, Target, World, byte_of, target_of};
use super::pane::PaneId;
use super::rows::{Kind, Row};
use super::sheet::{Sheet, Spot};
use super::tree::Wish;
use super::{keys, motion, render, sights, source};
use crate::tokens::{self, Colours, size, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Color32, CursorIcon, Pos2, Rect, Sense, Ui, Vec2, pos2, vec2};
use engine::splice::moved;
use engine::task::Task;
use engine::{Command, Note};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use store::{Block, BlockId, DocId};

/// The room above the first row and below the last.
const TOP: f32 = space::XXL;
const BOTTOM: f32 = 160.0;
/// The margin beside the column, at least.
const MARGIN: f32 = space::XXXL;
/// A press so soon after another, in seconds, at the same place, means more: a word, a row.
const AGAIN: f64 = 0.5;
/// Laid-out rows that are kept.
const KEPT: usize = 400;

/// What a view asks for.
#[derive(Debug)]
pub(super) enum Action {
    /// A wish for the session; its rejection becomes a toast.
    Do(Command),
    /// A command of the table.
    Run(&'static str),
    /// An edit of the open note.
    Edit(Edit),
    /// Show this note.
    Open(DocId),
    /// Show this note from a byte on.
    OpenAt(DocId, usize),
    /// Ask for a file's new path.
    Rename(DocId),
    /// Put a file into the trash.
    Delete(DocId),
    /// Show it in a tab of its own.
    OpenBeside(DocId),
    /// A menu of the tree asks for this.
    Tree(Wish),
    /// The caret goes to this pane.
    Here(PaneId),
    /// Close this tab.
    CloseTab(PaneId),
    /// Follow a link in the open note.
    Follow(String),
    /// Say something.
    Say(String),
}

/// Where a note was left: the byte at the page's top and how far below its row's top that is, and the caret.
#[derive(Clone, Copy, Debug)]
struct Seat {
    at: usize,
    y: f32,
    caret: Option<Caret>,
}

impl Default for Seat {
    fn default() -> Self {
        Seat { at: 0, y: -TOP, caret: None }
    }
}

/// A row as it was drawn in this frame.
struct Seen {
    spot: Spot,
    origin: Pos2,
    area: Rect,
}

/// The page.
#[derive(Default)]
pub(super) struct Page {
    note: Option<DocId>,
    pub(super) cells: Cells,
    drawn: HashMap<u64, (Rc<Drawn>, u64)>,
    frame: u64,
    /// Width of column, room for tables, ground, scale and what else was to be seen at the last layout.
    look: Option<(f32, f32, Color32, f32, u64)>,
    /// How full the picture of all letters was, and when that was looked at.
    letters: (f32, u64),
    seat: Seat,
    seats: HashMap<DocId, Seat>,
    revision: u64,
    /// The offset that was shown, and the one that the user scrolled to since.
    shown: f32,
    ended: f32,
    /// Whether somebody went to where the page is.
    jumped: bool,
    /// To be scrolled by the program.
    nudge: f32,
    view: f32,
    pub(super) numbers: HashMap<BlockId, usize>,
    /// The cells from the top, as they were counted.
    order: Vec<BlockId>,
    /// When and where was pressed last, and how often right there.
    presses: (f64, Pos2, u32),
    /// The rows in sight, from the top.
    seen: Vec<Seen>,
    /// The link under the pointer, and where the pointer is.
    pub(super) over: Option<(String, Pos2)>,
    /// What somebody looks for, in order, and which of it is the one that was gone to.
    pub(super) found: Rc<[Range<usize>]>,
    pub(super) current: Option<Range<usize>>,
}

impl Page {
    /// Goes to another note; remembers where this one was left.
    pub(super) fn turn(&mut self, note: Option<DocId>, editor: &mut Editor) {
        if self.note == note {
            return;
        }
        if let Some(old) = self.note {
            self.seat.caret = editor.caret;
            self.seats.insert(old, self.seat);
        }
        self.note = note;
        // Links and pictures of equal rows may mean other things in another note.
        self.drawn.clear();
        self.cells.clear();
        self.seat = note.and_then(|note| self.seats.get(&note).copied()).unwrap_or_default();
        (self.ended, self.shown, self.revision) = (0.0, 0.0, 0);
        *editor = Editor::default();
    }

    /// Brings a byte of the note to the top of the page.
    pub(super) fn jump(&mut self, at: usize) {
        self.jumped = true;
        (self.seat.at, self.seat.y) = (at, if at == 0 { -TOP } else { -space::L });
    }

    /// Scrolls by screens.
    pub(super) fn turn_by(&mut self, screens: f32) {
        self.nudge += screens * (self.view - space::XXXL).max(space::XXXL);
    }

    /// Puts the caret back to where it was when the note was left, or to its beginning.
    pub(super) fn restore(&mut self, editor: &mut Editor) {
        editor.place(self.seat.caret.map_or(0, |caret| caret.at));
        editor.reveal = false;
    }

    /// Takes over what happened to the note since the last frame.
    pub(super) fn sync(&mut self, note: &Note, sheet: &mut Sheet, texts: &[&Block], editor: &mut Editor) {
        let revision = std::mem::replace(&mut self.revision, note.revision());
        // A page that was just turned to knows of no edits yet.
        if revision != note.revision() && revision != 0 {
            // It may have been sent to the very end, wherever that is.
            self.seat.at = self.seat.at.min(sheet.bytes());
            for shift in note.shifts_since(revision).into_iter().flatten() {
                self.seat.at = moved(self.seat.at, shift.at, shift.delete, shift.insert, false);
            }
        }
        self.seat.at = self.seat.at.min(note.length());
        if sheet.sync(note, texts) || revision != note.revision() {
            let cells: Vec<BlockId> = note.cells().collect();
            if cells != self.order {
                self.numbers = cells.iter().copied().zip(1..).collect();
                self.order = cells;
            }
        }
        editor.carry(note);
    }

    /// The measures of the page in a width.
    pub(super) fn measures(available: f32) -> (f32, f32) {
        let width = size::COLUMN.min(available - 2.0 * MARGIN).max(200.0);
        (width, (available - width) / 2.0)
    }

    /// Moves the caret a screen up or down.
    pub(super) fn leaf(&mut self, direction: f32, editor: &mut Editor, world: &mut World<'_>) {
        let (Some(caret), Some(target)) = (editor.caret, editor.target(world)) else { return };
        let by = direction * (self.view - space::XXXL).max(space::XXXL);
        let Some(spot) = target.spot else {
            self.nudge += by;
            return;
        };
        let (galley, left) = keys::layout(&target, world);
        let cursor = galley.pos_from_cursor(editor.cursor(&target.shown, target.shown_byte(caret.at))).center();
        let x = editor.goal.unwrap_or(left + cursor.x);
        let y = world.sheet.top(spot) + world.sheet.above(spot) + cursor.y + by;
        let Some((spot, y)) = world.sheet.at_height(y.max(0.0), world.note, world.texts) else { return };
        let above = world.sheet.above(spot);
        editor.enter_row(spot, y - above, x, world);
        self.nudge += by;
    }

    /// Draws the note. `hold` keeps the caret although something else has the keyboard.
    pub(super) fn show(
        &mut self,
        ui: &mut Ui,
        world: &mut World<'_>,
        editor: &mut Editor,
        hold: bool,
        actions: &mut Vec<Action>,
    ) {
        self.frame += 1;
        let available = ui.available_size();
        self.view = available.y;
        let wide = size::WIDE.min(available.x - space::XXXL).max(world.width);
        let (paper, scale) = (Colours::of(ui).paper, ui.ctx().pixels_per_point() * tokens::text());
        let look = (world.width, wide, paper, scale, sights::version(ui.ctx()));
        // Where egui begins that picture anew, it is emptier than it was, and laid-out text points to where its letters
        // no longer are. A page that was away may have missed it.
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
        // Where the caret goes, or somebody jumps, nothing is folded away.
        let jumped = std::mem::take(&mut self.jumped).then_some(self.seat.at);
        for at in editor.carets().map(|caret| caret.at).chain(jumped).collect::<Vec<usize>>() {
            if let Some(spot) = world.find(at.min(world.sheet.bytes()))
                && world.sheet.is_hidden(spot)
            {
                world.unfold_to(spot);
            }
        }
        let target = editor.shown(world);
        if editor.reveal && editor.drag.is_none() {
            self.approach(target.as_ref(), world);
        }
        let offset = self.offset(target.as_ref(), world);
        let offset = self.measure_view(offset, target.as_ref(), world);
        let behind = target.as_ref().is_some_and(|target| target.spot.is_none());
        let tail = if behind || world.sheet.bytes() == 0 { space::M + tokens::body().line } else { 0.0 };
        let height = TOP + world.sheet.height() + tail + BOTTOM;
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
        if self.drawn.len() > KEPT {
            let frame = self.frame;
            self.drawn.retain(|_, (_, used)| *used + 2 >= frame);
        }
    }

    /// Where the page's top is, after what the user scrolled.
    fn offset(&mut self, target: Option<&Target>, world: &mut World<'_>) -> f32 {
        let by = self.ended - self.shown + std::mem::take(&mut self.nudge);
        if by.abs() > 3.0 * self.view
            && let Some((spot, y)) = world.sheet.at_height(self.ended - TOP, world.note, world.texts)
        {
            self.seat.at = row_start(spot, world);
            self.seat.y = y;
        } else {
            self.seat.y += by;
        }
        let Some(mut spot) = world.find(self.seat.at) else {
            self.seat.y = self.seat.y.clamp(-TOP, 0.0);
            return TOP + self.seat.y;
        };
        let mut y = self.seat.y;
        while y < 0.0 {
            let Some(before) = world.before(spot) else { break };
            y += self.extent(before, target, world);
            spot = before;
        }
        while y > 0.0 {
            let extent = self.extent(spot, target, world);
            if y < extent {
                break;
            }
            let Some(after) = world.after(spot) else { break };
            y -= extent;
            spot = after;
        }
        if spot == Spot::default() {
            y = y.max(-TOP);
        }
        (self.seat.at, self.seat.y) = (row_start(spot, world), y);
        (TOP + world.sheet.top(spot) + y).max(0.0)
    }

    /// Brings the row of the caret near, when it is far away.
    fn approach(&mut self, target: Option<&Target>, world: &mut World<'_>) {
        let Some(spot) = target.and_then(|target| target.spot) else {
            self.nudge = world.sheet.height();
            return;
        };
        let top = TOP + world.sheet.top(spot);
        if top < self.shown - self.view || top > self.shown + 2.0 * self.view {
            (self.seat.at, self.seat.y) = (row_start(spot, world), -self.view / 3.0);
            (self.ended, self.nudge) = (self.shown, 0.0);
        }
    }

    /// Measures what will be in sight, so that nothing moves while it is drawn.
    fn measure_view(&mut self, offset: f32, target: Option<&Target>, world: &mut World<'_>) -> f32 {
        let Some(mut spot) = world.find(self.seat.at) else { return offset };
        let mut y = -self.seat.y;
        while y < self.view {
            y += self.extent(spot, target, world);
            match world.after(spot) {
                Some(after) => spot = after,
                None => break,
            }
        }
        offset
    }

    /// The height of a row and the room above it.
    fn extent(&mut self, spot: Spot, target: Option<&Target>, world: &mut World<'_>) -> f32 {
        world.rows(spot.block);
        let Some(row) = world.sheet.row(spot).filter(|row| !row.hidden).cloned() else { return 0.0 };
        let above = world.sheet.above(spot);
        let editing = target.filter(|target| target.spot == Some(spot));
        let height = match (editing, row.kind) {
            (None, kind) if kind != Kind::Cell => match world.sheet.measured(spot) {
                Some(height) => height,
                None => self.drawn_row(spot, &row, world).height,
            },
            (editing, _) => self.row_height(spot, &row, editing, world),
        };
        // With the caret in it, or with output, it is measured in every frame.
        let stays = editing.is_none() && row.kind != Kind::Cell;
        world.sheet.set_height(spot, height, stays);
        above + height
    }

    fn row_height(&mut self, spot: Spot, row: &Row, editing: Option<&Target>, world: &mut World<'_>) -> f32 {
        let mut height = match editing {
            Some(target) => {
                let (_, width) = editor::place_of(target, world.width, world.margin, world.pen);
                let galley = world.pen.galley(editor::job_of(target, &target.shown, width, world.pen));
                let boxed = matches!(row.kind, Kind::Cell | Kind::Fence { .. } | Kind::Indented);
                editor::text_height(&galley, row.kind) + if boxed { 2.0 * cells::PAD } else { 0.0 }
            }
            None => self.drawn_row(spot, row, world).height,
        };
        if row.kind == Kind::Cell {
            let id = world.sheet.piece(spot.block).id;
            height += self.cells.output_height(world.note, id, self.output_width(world), world.pen);
        }
        height
    }

    /// How wide outputs may be: they keep to the column's left and may go on to the right.
    fn output_width(&self, world: &World<'_>) -> f32 {
        (world.width + world.margin - space::XL).min(size::WIDE).max(world.width)
    }

    /// A row that is read, laid out.
    fn drawn_row(&mut self, spot: Spot, row: &Row, world: &World<'_>) -> Rc<Drawn> {
        if let Some((drawn, used)) = self.drawn.get_mut(&row.hash) {
            *used = self.frame;
            return drawn.clone();
        }
        let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
        let (width, wide, ..) = self.look.unwrap_or_default();
        let drawn = match (row.kind, &row.code) {
            (Kind::Cell | Kind::Fence { .. }, Some(code)) => {
                let code = text.get(code.clone()).unwrap_or("").replace("\r\n", "\n");
                let content = text.get(row.content.clone()).unwrap_or("");
                let language = if row.kind == Kind::Cell { "python" } else { source::language(content) };
                let mut job = source::code(code.trim_end_matches('\n'), language, false, world.pen);
                job.wrap.max_width = cells::code_width(width);
                let galley = world.pen.galley(job);
                let height = galley.size().y.max(tokens::code().line) + 2.0 * cells::PAD;
                let start = row.code.as_ref().map_or(0, |code| code.start) - row.content.start;
                let map = code_map(text.get(row.code.clone().unwrap_or_default()).unwrap_or(""), start);
                let part = Part::Text { at: vec2(0.0, cells::PAD), galley, map, links: Vec::new() };
                Drawn { height, parts: vec![part], text: code }
            }
            _ => render::draw(text.get(row.content.clone()).unwrap_or(""), row.kind, width, wide, world.pen),
        };
        let drawn = Rc::new(drawn);
        self.drawn.insert(row.hash, (drawn.clone(), self.frame));
        drawn
    }

    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn rows(
        &mut self,
        ui: &mut Ui,
        viewport: Rect,
        world: &mut World<'_>,
        editor: &mut Editor,
        target: Option<Target>,
        hold: bool,
        actions: &mut Vec<Action>,
    ) {
        let page = ui.max_rect();
        let left = page.left() + world.margin;
        self.seen.clear();
        let mut edited = false;
        let mut spot =
            world.sheet.at_height((viewport.top() - TOP).max(0.0), world.note, world.texts).map(|(spot, _)| spot);
        let mut y = spot.map_or(TOP, |spot| TOP + world.sheet.top(spot));
        let far = |target: &Target, world: &mut World<'_>| {
            let spot = target.spot.unwrap_or_default();
            TOP + world.sheet.top(spot) + world.sheet.above(spot)
        };
        // The field of the caret is there even out of sight: who types comes back to it.
        if let (Some(target), Some(first)) = (&target, spot)
            && target.spot.is_some_and(|spot| spot < first)
        {
            let y = far(target, world);
            self.field_out_of_sight(ui, pos2(left, page.top() + y), world, editor, target, hold);
            edited = true;
        }
        while let Some(here) = spot {
            if y > viewport.bottom() {
                break;
            }
            if world.sheet.is_hidden(here) {
                spot = world.after(here);
                continue;
            }
            let above = world.sheet.above(here);
            let height = self.extent(here, target.as_ref(), world) - above;
            let origin = pos2(left, page.top() + y + above);
            let area = Rect::from_min_max(pos2(page.left(), page.top() + y), pos2(page.right(), origin.y + height));
            let editing = target.as_ref().filter(|target| target.spot == Some(here));
            edited |= editing.is_some();
            self.row(ui, here, origin, area, world, editor, editing, hold, actions);
            y += above + height;
            spot = world.after(here);
        }
        let end = TOP + world.sheet.height();
        let behind = target.as_ref().is_some_and(|target| target.spot.is_none());
        if spot.is_none() {
            let origin = pos2(left, page.top() + end + if world.texts.is_empty() { 0.0 } else { space::M });
            self.below(ui, Rect::from_min_max(pos2(page.left(), page.top() + end), page.max), world, editor);
            if world.texts.is_empty() {
                hint(ui, origin);
            }
            if let Some(target) = target.as_ref().filter(|_| behind) {
                self.field_out_of_sight(ui, origin, world, editor, target, hold);
                edited = true;
            }
        }
        if let Some(target) = target.as_ref().filter(|_| !edited) {
            let y = if behind { end } else { far(target, world) };
            self.field_out_of_sight(ui, pos2(left, page.top() + y), world, editor, target, hold);
        }
        self.pull(ui, target.as_ref(), world, editor);
        self.drop_text(ui, target.as_ref(), world, actions);
    }

    /// The field of a row that is not drawn where the rows are: out of sight, or behind the last one.
    fn field_out_of_sight(
        &mut self,
        ui: &mut Ui,
        origin: Pos2,
        world: &mut World<'_>,
        editor: &mut Editor,
        target: &Target,
        hold: bool,
    ) {
        let area = Rect::from_min_size(origin, vec2(world.width, editor::line_of(target.kind)));
        self.field(ui, origin, area, world, editor, target, hold);
    }

    /// What was pressed at a byte of the note: a caret, a word, a row, more of a selection, one more caret.
    pub(super) fn press(&mut self, ui: &Ui, at: usize, point: Pos2, world: &mut World<'_>, editor: &mut Editor) {
        // The keys that were down when it was pressed, which need not be down any more.
        let held = |event: &egui::Event| match event {
            egui::Event::PointerButton { pressed: true, modifiers, .. } => Some(*modifiers),
            _ => None,
        };
        let (modifiers, now, down) = ui.input(|input| {
            let modifiers = input.events.iter().rev().find_map(held).unwrap_or(input.modifiers);
            (modifiers, input.time, input.pointer.primary_down())
        });
        let (last, place, presses) = self.presses;
        let again = now - last <= AGAIN + 0.001 && place.distance(point) < 6.0;
        let count = if again { presses % 3 + 1 } else { 1 };
        self.presses = (now, point, count);
        let old = editor.caret;
        let frozen = old.filter(|_| !editor.behind).map(|caret| caret.at);
        let unit = count;
        let mut origin = unit_at(at, unit, world);
        match old {
            Some(caret) if modifiers.shift => {
                origin = caret.anchor..caret.anchor;
                editor.select(caret.anchor, at);
            }
            Some(caret) if modifiers.alt => {
                editor.more.retain(|other| other.at != at);
                editor.more.push(caret);
                editor.select(origin.start, origin.end);
            }
            _ => {
                editor.more.clear();
                editor.select(origin.start, origin.end);
            }
        }
        editor.reveal = false;
        editor.preedit = None;
        editor.touched = ui.input(|input| input.time);
        if down {
            editor.drag = Some(Drag { frozen, origin, unit, from: point, moved: false });
            ui.ctx().set_dragged_id(editor::field());
        }
        ui.ctx().request_repaint();
    }

    /// Lets the selection follow the pointer while the button is down, and the page with it at its edges.
    fn pull(&mut self, ui: &Ui, target: Option<&Target>, world: &mut World<'_>, editor: &mut Editor) {
        let Some(mut drag) = editor.drag.take() else { return };
        let (down, point) = ui.input(|input| (input.pointer.primary_down(), input.pointer.latest_pos()));
        if !down {
            editor.focus = true;
            editor.reveal = drag.moved;
            let text: String =
                editor.selected().into_iter().filter_map(|range| world.note.slice(range.start, range.len())).collect();
            if !text.is_empty() {
                ui.ctx().send_cmd(egui::OutputCommand::TextSelectionSettled(text));
            }
            ui.ctx().request_repaint();
            return;
        }
        if let Some(point) = point {
            drag.moved |= point.distance(drag.from) > 3.0;
            if drag.moved
                && let Some(at) = self.hit(point, target, world)
            {
                let unit = unit_at(at, drag.unit, world);
                let backward = at < drag.origin.start;
                let anchor = if backward { drag.origin.end } else { drag.origin.start };
                let head = match drag.unit {
                    1 => at,
                    _ if backward => unit.start,
                    _ => unit.end.max(drag.origin.end),
                };
                editor.select(anchor, head);
                editor.reveal = false;
                let view = ui.clip_rect();
                let beyond = if point.y < view.top() + space::S {
                    point.y - view.top() - space::S
                } else {
                    (point.y - view.bottom() + space::S).max(0.0)
                };
                if beyond != 0.0 {
                    self.nudge += (beyond * 0.5).clamp(-60.0, 60.0);
                    ui.ctx().request_repaint();
                }
            }
        }
        editor.drag = Some(drag);
    }

    /// The byte of the note at a point of the page.
    fn hit(&mut self, point: Pos2, target: Option<&Target>, world: &mut World<'_>) -> Option<usize> {
        let index =
            self.seen.partition_point(|seen| seen.area.bottom() <= point.y).min(self.seen.len().checked_sub(1)?);
        let seen = self.seen.get(index)?;
        let (spot, origin) = (seen.spot, seen.origin);
        let row = world.sheet.row(spot)?.clone();
        if let Some(target) = target.filter(|target| target.spot == Some(spot)) {
            let (galley, left) = keys::layout(target, world);
            let inset = if has_box(row.kind) { cells::PAD } else { 0.0 };
            let cursor = galley.cursor_from_pos(point - origin - vec2(left, inset));
            let at = motion::floor(&target.shown, byte_of(&target.shown, cursor.index.0));
            return Some(target.note_byte(at));
        }
        let drawn = self.drawn_row(spot, &row, world);
        let text = world.texts.get(spot.block)?.text.get(row.content.clone())?;
        let (byte, _) = drawn.at(text, point - origin);
        Some(world.sheet.start(spot.block) + row.content.start + motion::floor(text, byte))
    }

    /// What the middle button drops, on systems where what is selected can be dropped.
    fn drop_text(&mut self, ui: &Ui, target: Option<&Target>, world: &mut World<'_>, actions: &mut Vec<Action>) {
        let dropped = ui.input(|input| {
            input.events.iter().find_map(|event| match event {
                egui::Event::MiddleClickPaste { pos, text } => Some((*pos, text.clone())),
                _ => None,
            })
        });
        let Some((point, text)) = dropped.filter(|(point, _)| ui.clip_rect().contains(*point)) else { return };
        if let Some(at) = self.hit(point, target, world) {
            let edit = keys::replace_across(at..at, &editor::plain_ends(&text), world.crlf());
            actions.push(Action::Edit(edit));
        }
    }

    /// The grounds behind parts of the note: what was found, and what is selected.
    pub(super) fn grounds(&self, ui: &Ui, editor: &Editor, own: &Range<usize>) -> Vec<(Range<usize>, Color32)> {
        let colours = Colours::of(ui);
        let first = self.found.partition_point(|range| range.end <= own.start);
        let found = self.found[first..].iter().take_while(|range| range.start < own.end);
        let mut grounds: Vec<(Range<usize>, Color32)> = found.map(|range| (range.clone(), colours.mark)).collect();
        let touches = |range: &Range<usize>| range.start <= own.end && range.end >= own.start;
        let selected = editor.selected().into_iter().filter(touches);
        grounds.extend(selected.map(|range| (range, colours.accent_ground)));
        let current = self.current.iter().filter(|range| touches(range) && self.found.contains(range));
        grounds.extend(current.map(|range| (range.clone(), colours.mark_strong)));
        grounds
    }

    /// The number of the cell that a target edits.
    pub(super) fn cell_at(&self, target: &Target) -> Option<usize> {
        self.numbers.get(&target.block?).copied()
    }

    /// The empty room below: a click there goes on writing.
    fn below(&mut self, ui: &mut Ui, area: Rect, world: &mut World<'_>, editor: &mut Editor) {
        let response = ui.interact(area, ui.scope_id().with("below"), Sense::click() - Sense::FOCUSABLE);
        named(&response, Role::Label, "End of the note");
        let response = response.on_hover_cursor(CursorIcon::Text);
        if pressed(ui, &response, editor) {
            go_behind(world, editor);
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn row(
        &mut self,
        ui: &mut Ui,
        spot: Spot,
        origin: Pos2,
        area: Rect,
        world: &mut World<'_>,
        editor: &mut Editor,
        editing: Option<&Target>,
        hold: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(row) = world.sheet.row(spot).cloned() else { return };
        let id = world.sheet.piece(spot.block).id;
        let colours = Colours::of(ui);
        self.seen.push(Seen { spot, origin, area });
        let boxed = matches!(row.kind, Kind::Cell | Kind::Fence { .. });
        let drawn = if editing.is_none() { Some(self.drawn_row(spot, &row, world)) } else { None };
        let code_height = match (&drawn, editing) {
            (Some(drawn), _) => drawn.height,
            (None, Some(target)) => {
                self.row_height(spot, &Row { kind: Kind::Fence { closed: true }, ..row.clone() }, Some(target), world)
            }
            (None, None) => 0.0,
        };
        let frame = cells::code_box(origin, world.width, code_height - 2.0 * cells::PAD, row.kind == Kind::Cell);
        if boxed || (row.kind == Kind::Indented && editing.is_some()) {
            ui.painter().rect_filled(frame, tokens::CORNER, colours.sunken);
        }
        let mut first = None;
        match (&drawn, editing) {
            (None, Some(target)) => {
                let inset = if has_box(row.kind) { cells::PAD } else { 0.0 };
                let area = if has_box(row.kind) { area.with_max_y(frame.bottom()) } else { area };
                first = self.field(ui, origin + vec2(0.0, inset), area, world, editor, target, hold);
            }
            (Some(drawn), _) => {
                self.read(ui, spot, &row, drawn, origin, area, world, editor, actions);
                if let Some(Part::Text { galley, .. }) = drawn.parts.first() {
                    first = Some(galley.clone());
                }
            }
            (None, None) => {}
        }
        match row.kind {
            Kind::Heading(_) => {
                let folded = world.sheet.is_folded(spot);
                let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
                let name = text.get(row.content.clone()).unwrap_or("").trim_start_matches(['#', ' ']);
                if super::fold::chevron(ui, spot, origin, area, name, folded, id) {
                    world.fold(spot);
                    ui.ctx().request_repaint();
                }
                if let Some(end) = drawn.as_ref().and_then(|drawn| drawn.end()).filter(|_| folded) {
                    let at = origin + end.right_center().to_vec2() + vec2(space::S, 0.0);
                    ui.painter().text(at, Align2::LEFT_CENTER, "…", tokens::body().font, colours.muted);
                }
            }
            Kind::Cell => {
                let number = self.numbers.get(&id).copied().unwrap_or(0);
                let (first, focused) = (first.as_deref(), editing.is_some());
                self.cells.frame(ui, world.note, Shown { cell: id, number, area: frame, first, focused }, actions);
                let at = origin + vec2(0.0, code_height);
                let wide = self.output_width(world);
                let own =
                    world.sheet.start(spot.block) + row.content.start..world.sheet.start(spot.block) + row.content.end;
                let whole = editor.selected().iter().any(|range| range.start <= own.start && own.end <= range.end);
                self.cells.output(ui, id, number, at, wide, whole);
            }
            Kind::Fence { .. } => {
                self.language(ui, spot, &row, frame, first.as_deref(), world, editor);
            }
            _ => {}
        }
    }

    /// A row as it is read: a press puts the caret into it, a click on a box or a link does what these say.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn read(
        &mut self,
        ui: &mut Ui,
        spot: Spot,
        row: &Row,
        drawn: &Rc<Drawn>,
        origin: Pos2,
        area: Rect,
        world: &mut World<'_>,
        editor: &mut Editor,
        actions: &mut Vec<Action>,
    ) {
        let block = world.sheet.piece(spot.block).id;
        let start = world.sheet.start(spot.block);
        let texts = world.texts;
        let text = texts.get(spot.block).map_or("", |block| block.text.as_str());
        let id = ui.scope_id().with(("row", block, spot.row));
        let response = ui.interact(area, id, Sense::click());
        let role = if matches!(row.kind, Kind::Heading(_)) { Role::Heading } else { Role::Label };
        response.widget_info(|| {
            egui::WidgetInfo::labeled(role, true, if drawn.text.is_empty() { "Empty line" } else { &drawn.text })
        });
        let source = text.get(row.content.clone()).unwrap_or("");
        let own = start + row.content.start..start + row.content.end;
        let mut grounds = self.grounds(ui, editor, &own);
        for (range, colour) in &mut grounds {
            if range.end > own.end && range.start <= own.end {
                // The line end is part of it.
                let end = drawn.end().unwrap_or(Rect::from_min_size(Pos2::ZERO, vec2(0.0, tokens::body().line)));
                let at = origin + end.right_top().to_vec2();
                ui.painter().rect_filled(Rect::from_min_size(at, vec2(space::S, end.height())), 0.0, *colour);
            }
            *range = range.start.max(own.start) - own.start..range.end.clamp(own.start, own.end) - own.start;
        }
        drawn.paint(ui.painter(), origin, Colours::of(ui), source, &grounds);
        for caret in editor.more.iter().filter(|caret| own.contains(&caret.at) || caret.at == own.end) {
            let place = drawn.place(source, caret.at - own.start).unwrap_or(Rect::ZERO).translate(origin.to_vec2());
            let since = ui.input(|input| input.time) - editor.touched;
            let line = Rect::from_min_max(place.min, pos2(place.min.x + 2.0, place.max.y.max(place.min.y + 20.0)));
            egui::text_selection::visuals::paint_text_cursor(ui, ui.painter(), line, since);
        }
        if !matches!(row.kind, Kind::Cell | Kind::Fence { .. } | Kind::Indented | Kind::Html | Kind::Meta) {
            for part in &drawn.parts {
                if let Part::Text { at, galley, .. } = part {
                    super::spelling::paint(ui.painter(), origin + *at, galley, None);
                }
            }
        }
        if response.has_focus() {
            super::field::ring(ui, origin, world.width, area.bottom());
        }
        for (index, part) in drawn.parts.iter().enumerate() {
            if let Part::Fold { rect, callout, open, label } = part {
                let fold = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::click());
                let does = if *open { "Fold" } else { "Unfold" };
                named(&fold, Role::Button, &format!("{does}: {label}"));
                super::controls::ring(ui, &fold, tokens::CORNER);
                if fold.on_hover_cursor(CursorIcon::PointingHand).clicked() {
                    sights::turn(ui.ctx(), *callout);
                }
            }
            if let Part::Edit { rect, range, insert, caret, label } = part {
                let button = ui.interact(rect.translate(origin.to_vec2()), id.with(index), Sense::click());
                named(&button, Role::Button, label);
                super::controls::ring(ui, &button, tokens::CORNER);
                if button.on_hover_cursor(CursorIcon::PointingHand).clicked() {
                    let (at, delete) = (start + row.content.start + range.start, range.len());
                    let insert = insert.clone();
                    actions.push(match caret.map(|caret| at + caret) {
                        Some(caret) => {
                            editor.focus = true;
                            Action::Edit(Edit { at, delete, insert, caret, anchor: caret })
                        }
                        None => Action::Do(Command::Edit { note: world.note.id, at, delete, insert }),
                    });
                }
            }
            if let Part::Task { rect, mark, done, label, .. } = part {
                let rect = Rect::from_center_size(rect.center() + origin.to_vec2(), Vec2::splat(size::HIT));
                let task = ui.interact(rect, id.with(index), Sense::click());
                task.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, *done, label));
                super::controls::ring(ui, &task, tokens::CORNER);
                if task.clicked() {
                    let line = source[..mark.start.min(source.len())].rfind('\n').map_or(0, |newline| newline + 1);
                    let again = source[line..].lines().next().and_then(|text| Task::of(text, own.start + line));
                    if let Some(again) = again.filter(|again| again.repeat.is_some()) {
                        // Its next one comes with it.
                        let (note, at, words, today) = (world.note.id, again.at, again.text, crate::clock::today());
                        actions.push(Action::Do(Command::Check { note, at, words, today }));
                    } else {
                        let at = start + row.content.start + mark.start;
                        let words = if mark.len() > 1 { ["false", "true"] } else { [" ", "x"] };
                        let insert = words[usize::from(!*done)].to_owned();
                        actions.push(Action::Do(Command::Edit { note: world.note.id, at, delete: mark.len(), insert }));
                    }
                }
            }
        }
        let code = row.code.clone().filter(|_| matches!(row.kind, Kind::Cell | Kind::Fence { closed: true }));
        let content = code.unwrap_or_else(|| row.content.clone());
        let place = |point: Pos2| -> (usize, Option<String>) {
            let (byte, link) = drawn.at(source, point - origin);
            (row.content.start + motion::floor(source, byte), link.map(str::to_owned))
        };
        let over = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
        let link = over.and_then(|point| place(point).1);
        let icon = if link.is_some() { CursorIcon::PointingHand } else { CursorIcon::Text };
        let response = response.on_hover_cursor(icon);
        if let Some(link) = link {
            self.over = over.map(|point| (link.clone(), point));
            if response.clicked() {
                actions.push(Action::Follow(link));
            }
            return;
        }
        if pressed(ui, &response, editor) {
            let point = response.interact_pointer_pos().or(over);
            let at = start + point.map_or(content.start, |point| place(point).0);
            self.press(ui, at, point.unwrap_or(origin), world, editor);
        }
    }

    /// The word behind an opening fence; a click on it edits the fences.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    fn language(
        &mut self,
        ui: &mut Ui,
        spot: Spot,
        row: &Row,
        frame: Rect,
        first: Option<&egui::Galley>,
        world: &World<'_>,
        editor: &mut Editor,
    ) {
        let text = world.texts.get(spot.block).map_or("", |block| block.text.as_str());
        let opening = text.get(row.content.clone()).and_then(|text| text.lines().next()).unwrap_or("");
        let word = opening.trim_start().trim_start_matches(['`', '~']).trim();
        if word.is_empty() || editor.fence.is_some() {
            return;
        }
        let galley = ui.painter().layout_no_wrap(word.to_owned(), tokens::caption().font, Colours::of(ui).muted);
        let used = first.and_then(|first| first.rows.first()).map_or(0.0, |row| row.rect().width());
        if used + galley.size().x + space::XL > world.width {
            return;
        }
        let at = pos2(frame.right() - space::M - galley.size().x, frame.top() + cells::PAD + 3.0);
        let area = Rect::from_min_size(at, galley.size()).expand2(vec2(space::XS, space::XS));
        let id = world.sheet.piece(spot.block).id;
        let response = ui.interact(area, ui.scope_id().with(("language", id, spot.row)), Sense::click());
        named(&response, Role::Button, &format!("Language: {word}"));
        super::controls::ring(ui, &response, tokens::CORNER);
        ui.painter().galley(at, galley, Colours::of(ui).muted);
        if response.clicked() {
            editor.place(world.sheet.start(spot.block) + row.content.start + opening.trim_end_matches('\r').len());
            editor.fence = Some((id, spot.row));
        }
    }
}

/// Whether something was pressed just now, or clicked by those who do not press: in one frame, or without a pointer.
pub(super) fn pressed(ui: &Ui, response: &egui::Response, editor: &Editor) -> bool {
    (response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_pressed()))
        || (response.clicked() && editor.drag.is_none())
}

/// Whether a row's source stands in a box.
fn has_box(kind: Kind) -> bool {
    matches!(kind, Kind::Cell | Kind::Fence { .. } | Kind::Indented)
}

/// What a press selects at a byte: nothing, a word, a row.
fn unit_at(at: usize, unit: u32, world: &mut World<'_>) -> Range<usize> {
    let target = world.find(at).filter(|_| unit > 1).and_then(|spot| target_of(spot, false, false, world));
    match target {
        Some(target) if unit == 2 => {
            let word = motion::word_around(&target.shown, target.shown_byte(at));
            target.note_byte(word.start)..target.note_byte(word.end)
        }
        Some(target) => target.range,
        None => at..at,
    }
}

/// From the characters of code, shown with plain line ends, to the bytes of a row whose code begins at `start`.
fn code_map(code: &str, start: usize) -> Map {
    let (mut runs, mut chars, mut at) = (Vec::new(), 0, start);
    for line in code.split_inclusive('\n') {
        let end = line.strip_suffix("\r\n").map_or(line.len(), str::len);
        runs.push(Run { chars, source: at..at + end, exact: true });
        let shown = line.chars().count() - usize::from(end < line.len());
        if end < line.len() {
            runs.push(Run { chars: chars + shown - 1, source: at + end..at + line.len(), exact: false });
        }
        chars += shown;
        at += line.len();
    }
    if runs.is_empty() {
        runs.push(Run { chars: 0, source: start..start, exact: true });
    }
    Map { runs }
}

/// Puts the caret behind the last row: onto an empty line that is there, or onto one that comes with the first letter.
pub(super) fn go_behind(world: &mut World<'_>, editor: &mut Editor) {
    let bytes = world.sheet.bytes();
    let last = world.find(bytes).and_then(|spot| world.sheet.row(spot));
    if last.is_some_and(|row| row.kind == Kind::Blank) {
        editor.place(bytes);
    } else {
        editor.place_behind(bytes);
    }
}

fn row_start(spot: Spot, world: &mut World<'_>) -> usize {
    let start = world.sheet.start(spot.block);
    start + world.rows(spot.block).get(spot.row).map_or(0, |row| row.range.start)
}

fn hint(ui: &Ui, origin: Pos2) {
    let text = "Write something, or start a cell with ```python";
    ui.painter().text(origin + vec2(0.0, 12.0), Align2::LEFT_CENTER, text, tokens::body().font, Colours::of(ui).muted);
}
