//! The open note on its page: only the rows in sight are laid out and drawn, the one with the caret in a text field.
//! Where the page is scrolled to is kept as a byte of the note, so that what is read stays where it is while heights
//! above it become known or change.

use super::cells::{self, Cells, Shown};
use super::controls::named;
use super::drawn::{Drawn, Part};
use super::editor::{self, Caret, Edit, Editor, Target, World, byte_of};
use super::pane::PaneId;
use super::render;
use super::rows::{Kind, Row};
use super::sheet::{Sheet, Spot};
use super::source;
use crate::tokens::{self, Colours, size, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, CursorIcon, Pos2, Rect, Sense, Ui, Vec2, pos2, vec2};
use engine::splice::moved;
use engine::{Command, Note};
use std::collections::HashMap;
use std::rc::Rc;
use store::{Block, BlockId, DocId};

/// The room above the first row and below the last.
const TOP: f32 = space::XXL;
const BOTTOM: f32 = 160.0;
/// The margin beside the column, at least.
const MARGIN: f32 = space::XXXL;
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
    /// Show it in a tab of its own.
    OpenBeside(DocId),
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

/// The page.
#[derive(Default)]
pub(super) struct Page {
    note: Option<DocId>,
    pub(super) cells: Cells,
    drawn: HashMap<u64, (Rc<Drawn>, u64)>,
    frame: u64,
    /// Width of column, room for tables, theme and scale of the last layout.
    look: Option<(f32, f32, bool, f32)>,
    seat: Seat,
    seats: HashMap<DocId, Seat>,
    revision: u64,
    /// The offset that was shown, and the one that the user scrolled to since.
    shown: f32,
    ended: f32,
    /// To be scrolled by the program.
    nudge: f32,
    view: f32,
    pub(super) numbers: HashMap<BlockId, usize>,
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
        self.cells.clear();
        self.seat = note.and_then(|note| self.seats.get(&note).copied()).unwrap_or_default();
        (self.ended, self.shown, self.revision) = (0.0, 0.0, 0);
        *editor = Editor::default();
    }

    /// Brings a byte of the note to the top of the page.
    pub(super) fn jump(&mut self, at: usize) {
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
            self.numbers = note.cells().zip(1..).collect();
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
        let Some(target) = editor.target(world) else { return };
        let by = direction * (self.view - space::XXXL).max(space::XXXL);
        let Some(spot) = target.spot else {
            self.nudge += by;
            return;
        };
        let line = editor.last.as_ref().map_or(0.0, |last| last.galley.pos_from_cursor(last.cursor.primary).center().y);
        let y = world.sheet.top(spot) + world.sheet.above(spot) + line + by;
        let Some((spot, y)) = world.sheet.at_height(y.max(0.0), world.note, world.texts) else { return };
        let above = world.sheet.above(spot);
        editor.enter_row(spot, y - above, world);
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
        let look = (world.width, wide, ui.visuals().dark_mode, ui.ctx().pixels_per_point());
        if self.look != Some(look) {
            self.look = Some(look);
            self.drawn.clear();
            world.sheet.relayout();
        }
        let target = editor.target(world);
        if editor.reveal {
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
        let Some(row) = world.sheet.row(spot).cloned() else { return 0.0 };
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
                let mut job = source::code(code.trim_end_matches('\n'), row.kind == Kind::Cell, false, world.pen);
                job.wrap.max_width = cells::code_width(width);
                let galley = world.pen.galley(job);
                let height = galley.size().y.max(tokens::code().line) + 2.0 * cells::PAD;
                let part = Part::Text { at: vec2(0.0, cells::PAD), galley, map: Default::default(), links: Vec::new() };
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
            self.field(ui, pos2(left, page.top() + y), world, editor, target, hold, actions);
            edited = true;
        }
        while let Some(here) = spot {
            if y > viewport.bottom() {
                break;
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
                self.field(ui, origin, world, editor, target, hold, actions);
                edited = true;
            }
        }
        if let Some(target) = target.as_ref().filter(|_| !edited) {
            let y = if behind { end } else { far(target, world) };
            self.field(ui, pos2(left, page.top() + y), world, editor, target, hold, actions);
        }
    }

    /// The empty room below: a click there goes on writing.
    fn below(&mut self, ui: &mut Ui, area: Rect, world: &mut World<'_>, editor: &mut Editor) {
        let response = ui.interact(area, ui.scope_id().with("below"), Sense::click() - Sense::FOCUSABLE);
        named(&response, Role::Label, "End of the note");
        let response = response.on_hover_cursor(CursorIcon::Text);
        if pressed(ui, &response) {
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
                let inset = if boxed || row.kind == Kind::Indented { cells::PAD } else { 0.0 };
                self.field(ui, origin + vec2(0.0, inset), world, editor, target, hold, actions);
                first = editor.last.as_ref().map(|last| last.galley.clone());
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
            Kind::Cell => {
                let number = self.numbers.get(&id).copied().unwrap_or(0);
                let (first, focused) = (first.as_deref(), editing.is_some());
                self.cells.frame(ui, world.note, Shown { cell: id, number, area: frame, first, focused }, actions);
                let at = origin + vec2(0.0, code_height);
                let wide = self.output_width(world);
                self.cells.output(ui, id, number, at, wide, editor.all);
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
        drawn.paint(ui.painter(), origin, Colours::of(ui), editor.all);
        if response.has_focus() {
            let ring = Rect::from_min_max(
                pos2(origin.x - space::S, origin.y - 2.0),
                pos2(origin.x + world.width + space::S, area.bottom() + 2.0),
            );
            let stroke = egui::Stroke::new(size::RING, Colours::of(ui).accent);
            ui.painter().rect_stroke(ring, tokens::CORNER, stroke, egui::StrokeKind::Inside);
        }
        for (index, part) in drawn.parts.iter().enumerate() {
            if let Part::Task { rect, mark, done, label } = part {
                let rect = Rect::from_center_size(rect.center() + origin.to_vec2(), Vec2::splat(size::HIT));
                let task = ui.interact(rect, id.with(index), Sense::click());
                task.widget_info(|| egui::WidgetInfo::selected(Role::CheckBox, true, *done, label));
                super::controls::ring(ui, &task, tokens::CORNER);
                if task.clicked() {
                    let at = start + row.content.start + mark;
                    let insert = if *done { " " } else { "x" }.to_owned();
                    actions.push(Action::Do(Command::Edit { note: world.note.id, at, delete: 1, insert }));
                }
            }
        }
        let code = row.code.clone().filter(|_| matches!(row.kind, Kind::Cell | Kind::Fence { closed: true }));
        let content = code.unwrap_or_else(|| row.content.clone());
        let place = |point: Pos2| -> (usize, Option<String>) {
            let point = point - origin;
            if let (Kind::Cell | Kind::Fence { .. }, Some(Part::Text { at, galley, .. })) =
                (row.kind, drawn.parts.first())
            {
                let shown = byte_of(&drawn.text, galley.cursor_from_pos(point - *at).index.0);
                let lines = if text.contains('\r') { drawn.text[..shown].matches('\n').count() } else { 0 };
                let code = row.code.clone().unwrap_or_else(|| content.clone());
                return (code.start + shown + lines, None);
            }
            let (byte, link) = drawn.at(text.get(row.content.clone()).unwrap_or(""), point);
            (row.content.start + byte, link.map(str::to_owned))
        };
        let over = ui.input(|input| input.pointer.latest_pos()).filter(|_| response.hovered());
        let link = over.and_then(|point| place(point).1);
        let icon = if link.is_some() { CursorIcon::PointingHand } else { CursorIcon::Text };
        let response = response.on_hover_cursor(icon);
        if let Some(link) = link {
            if response.clicked() {
                actions.push(Action::Follow(link));
            }
            return;
        }
        if pressed(ui, &response) {
            let point = response.interact_pointer_pos().or(over);
            let at = point.map_or(content.start, |point| place(point).0);
            editor.place(start + at);
            editor.reveal = false;
            if point.is_some() && ui.input(|input| input.pointer.primary_down()) {
                // The press goes on as a selection in the field that takes this row's place.
                ui.ctx().set_dragged_id(editor::field());
            }
            ui.ctx().request_repaint();
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

/// Whether something was pressed just now, or clicked by those who do not press.
fn pressed(ui: &Ui, response: &egui::Response) -> bool {
    (response.is_pointer_button_down_on() && ui.input(|input| input.pointer.primary_pressed())) || response.clicked()
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
