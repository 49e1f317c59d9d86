//! Cells: a code box with a gutter on the left and the outputs below. This module only draws and returns actions; the
//! session runs the cells.

use super::outputs::{self, CutRun, OutputLayout, OutputViewState};
use crate::actions::PageAction;
use editor::figure::{FigureSlot, PageFigures};
use editor::note_editor::Editor;
use editor::output_table::{DataTable, FetchedRows};
use editor::render::TextStyleContext;
use eframe::egui;
use egui::accesskit::Role;
use egui::text_selection::LabelSelectionState;
use egui::{Align2, Color32, Galley, Pos2, Rect, Sense, Stroke, StrokeKind, Ui, Vec2, pos2, vec2};
use engine::{Command, Note, StaleReason, StdinRequest, UnixMillis};
use std::collections::{HashMap, HashSet};
use store::{BlockId, Execution, ExecutionStatus};
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name, word_button};

/// Space above and below code in its box.
pub const CELL_PADDING: f32 = space::S;
/// How far the box extends to the left of the column, with and without a gutter.
const CELL_OUTSET_WITH_GUTTER: f32 = theme::size::CELL_GUTTER_WIDTH + space::L;
const CELL_OUTSET_WITHOUT_GUTTER: f32 = space::M;
/// Repaint interval of a running cell's spinner.
const SPINNER_FRAME_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// Returns the box around code of this height; `origin` is the column's top left.
pub fn code_box(origin: Pos2, column: f32, height: f32, gutter: bool) -> Rect {
    let left = if gutter { CELL_OUTSET_WITH_GUTTER } else { CELL_OUTSET_WITHOUT_GUTTER };
    Rect::from_min_max(origin - vec2(left, 0.0), origin + vec2(column + space::M, height + 2.0 * CELL_PADDING))
}

/// A cell in the current frame.
pub struct CellFrame<'a> {
    /// The cell's block.
    pub cell: BlockId,
    /// Number of the cell in its note, from 1.
    pub number: usize,
    /// The cell's rectangle on the screen.
    pub area: Rect,
    /// The code's first line, if it's already laid out.
    pub first: Option<&'a Galley>,
    /// Whether the caret is in the cell.
    pub focused: bool,
    /// Who is running the cell on another device.
    pub elsewhere: Option<&'a str>,
}

/// A cell's input request, and the answer typed so far.
struct CellAnswer {
    question: StdinRequest,
    text: String,
    /// Where the caret was at the request, and whether it was on the line after the last row.
    caret: Option<(usize, bool)>,
    /// Whether its field has the keyboard, or had it when a dialog was opened.
    has_keyboard: bool,
    /// Whether a dialog covers it.
    is_covered: bool,
}

/// State of cells that's kept between frames.
#[derive(Default)]
pub struct CellViews {
    outputs: HashMap<BlockId, OutputLayout>,
    /// View states of their outputs.
    views: HashMap<BlockId, OutputViewState>,
    /// View state of figures.
    pub figures: PageFigures,
    /// Cells whose long output is expanded.
    open: HashSet<BlockId>,
    /// The open input request, and the answer typed so far.
    answer: Option<CellAnswer>,
}

/// Returns the figure at an offset from the bottom of a cell's box.
fn figure_at(outputs: &OutputLayout, offset: Vec2) -> Option<&FigureSlot> {
    let rect = |slot: &FigureSlot| Rect::from_min_size(pos2(0.0, slot.y + space::S), slot.size);
    outputs.figures.iter().find(|slot| rect(slot).contains(offset.to_pos2()))
}

impl CellViews {
    /// Clears everything when another note is shown.
    pub fn clear(&mut self) {
        *self = CellViews::default();
    }

    /// Returns the tables in outputs.
    pub fn tables_mut(&mut self) -> impl Iterator<Item = &mut DataTable> {
        self.views.values_mut().flat_map(OutputViewState::tables_mut)
    }

    /// Returns all rows of the data frame that a run's output at an index shows, if they were fetched.
    pub fn fetched_rows(&self, run: &Execution, index: usize) -> Option<FetchedRows> {
        self.views.get(&run.cell)?.fetched_rows(run, index)
    }

    /// Discards cached layouts.
    pub fn relayout(&mut self) {
        self.outputs.clear();
        self.figures.relayout();
    }

    /// Returns the height of a cell's outputs, including the space around them.
    pub fn output_height(&mut self, note: &Note, cell: BlockId, width: f32, pen: TextStyleContext<'_>) -> f32 {
        let Some(run) = note.latest_execution(cell) else { return 0.0 };
        let old = self.outputs.remove(&cell);
        let how = (self.open.contains(&cell), note.outputs_changed(), CutRun::of(note, run));
        let outputs = OutputLayout::layout_outputs(old, run, how, self.views.entry(cell).or_default(), width, pen);
        let height = taken(&outputs);
        self.outputs.insert(cell, outputs);
        let asks = if question(note, cell).is_some() { theme::size::MIN_CLICK_HEIGHT + 2.0 * space::S } else { 0.0 };
        height + asks
    }

    /// Draws the prompt of a running cell with its input field, below the outputs.
    pub fn show_question(
        &mut self,
        ui: &mut Ui,
        note: &Note,
        shown: (BlockId, usize),
        (origin, width): (Pos2, f32),
        editor: &mut Editor,
        actions: &mut Vec<PageAction>,
    ) {
        let (cell, number) = shown;
        let Some(question) = question(note, cell) else { return };
        let new = self.answer.as_ref().is_none_or(|answer| answer.question != *question);
        if new {
            let caret = editor.caret.map(|caret| (caret.at, editor.behind));
            let (question, text) = (question.clone(), String::new());
            self.answer = Some(CellAnswer { question, text, caret, has_keyboard: false, is_covered: false });
        }
        let Some(CellAnswer { text, caret, has_keyboard, is_covered, .. }) = &mut self.answer else { return };
        let colours = theme::ThemeColors::of(ui);
        let top = origin.y + self.outputs.get(&cell).map_or(0.0, taken) + space::S;
        let line = Rect::from_min_size(
            pos2(origin.x, top),
            vec2(width.min(theme::size::DIALOG_WIDTH), theme::size::MIN_CLICK_HEIGHT),
        );
        let style = theme::code();
        let prompt = typeset::ansi::strip_codes(question.prompt.lines().last().unwrap_or(""));
        let prompt = text::untrusted_text::escape_line(&prompt).into_owned();
        let at = pos2(line.left(), line.center().y - style.line / 2.0);
        let used = paint_clipped_text(ui, at, line.width() * 0.6, &prompt, &style, colours.ink);
        let gap = if used > 0.0 { space::S } else { 0.0 };
        let field = Rect::from_min_max(pos2(line.left() + used + gap, line.top()), line.max);
        let edit = egui::TextEdit::singleline(text)
            .id(egui::Id::unique(("answer", cell)))
            .password(question.password)
            .font(style.font)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(field.width());
        let prompt = if prompt.trim().is_empty() { "the input".to_owned() } else { prompt };
        let response = ui.put(field, edit).accessible_name(format!("Answer to cell {number}: {prompt}"));
        if new {
            response.request_focus();
        }
        // A dialog takes the keyboard, and gives it back to the note when it's closed.
        let is_covered_now = ui.memory(|memory| memory.top_modal_layer().is_some());
        if std::mem::replace(is_covered, is_covered_now) && !is_covered_now && *has_keyboard {
            editor.focus = false;
            response.request_focus();
        } else if !is_covered_now {
            *has_keyboard = response.has_focus();
        }
        if response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) {
            actions.push(PageAction::Do(Command::Answer { note: note.id, text: std::mem::take(text) }));
            // Return the caret to where it was, otherwise to the cell.
            let code = || Some((note.block_start(cell)? + note.cell_parts(cell)?.code.start, false));
            match caret.or_else(code) {
                Some((_, true)) => editor.move_caret_after(note.length()),
                Some((at, false)) => editor.place_caret(at.min(note.length())),
                None => {}
            }
            self.answer = None;
        }
    }

    /// Draws a cell's box, its gutter and its buttons.
    pub fn show_cell_frame(&mut self, ui: &mut Ui, note: &Note, shown: CellFrame<'_>, actions: &mut Vec<PageAction>) {
        let CellFrame { cell, number, area, first, focused, elsewhere } = shown;
        let colours = theme::ThemeColors::of(ui);
        let run = note.latest_execution(cell);
        let busy = note.is_running_here(cell);
        if focused {
            let stroke = Stroke::new(theme::size::FOCUS_RING_WIDTH, colours.accent);
            ui.painter().rect_stroke(area, CONTROL_CORNER, stroke, StrokeKind::Outside);
        }
        let middle =
            area.min + vec2(space::S + theme::size::CELL_GUTTER_WIDTH / 2.0, CELL_PADDING + theme::code().line / 2.0);
        let button = Rect::from_center_size(middle, Vec2::splat(theme::size::MIN_CLICK_HEIGHT));
        let id = ui.scope_id().with(("run", cell));
        let response = ui.interact(button, id, Sense::click());
        let name = match elsewhere.filter(|_| !busy) {
            Some(who) => format!("{who} runs cell {number}"),
            None if busy => format!("Stop cell {number}"),
            None => format!("Run cell {number}"),
        };
        set_accessible_name(&response, Role::Button, &name);
        let active = response.hovered() || response.has_focus() || ui.rect_contains_pointer(area);
        if response.hovered() {
            ui.painter().rect_filled(button, CONTROL_CORNER, colours.hover_color(colours.sunken));
        }
        let stale = note.stale_reason(cell);
        let elsewhere = elsewhere.filter(|_| !busy);
        // A cell that ran elsewhere and is no longer reported as running has stopped there.
        let over = !busy && elsewhere.is_none() && run.is_some_and(|run| !run.status.is_final());
        let run = run.filter(|_| !over);
        match elsewhere {
            Some(who) => turning(ui, middle, colours.person_color(who), colours.line),
            None => {
                let earlier = run.is_some_and(|run| is_earlier(note, run));
                self.glyph(ui, middle, run, (stale.is_some(), earlier), active, response.hovered());
            }
        }
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        if response.clicked() {
            let note = note.id;
            actions.push(PageAction::Do(if busy { Command::Interrupt { note } } else { Command::Run { note, cell } }));
        }
        if response.hovered() || response.has_focus() {
            let mut words = hint(run, stale.as_ref(), &name);
            run.into_iter().for_each(|run| words = format!("{words}\n{}", when(note, run)));
            note.name_remarks(cell).into_iter().for_each(|remark| words = format!("{words}\n{remark}"));
            response.on_hover_text(text::untrusted_text::escape_block(&words).into_owned());
        }
        if let Some(run) = run {
            let asked = question(note, cell).map(|question| question.since);
            let earlier = is_earlier(note, run);
            let shown = caption(ui, area, (run, asked), (stale.as_ref(), earlier), first, elsewhere);
            if let Some((rect, text)) = shown {
                let response = ui.interact(rect, ui.scope_id().with(("caption", cell)), Sense::hover());
                set_accessible_name(&response, Role::Label, &text);
                if response.hovered() {
                    response.on_hover_text(when(note, run));
                }
            }
        }
        if busy || elsewhere.is_some() {
            ui.ctx().request_repaint_after(SPINNER_FRAME_INTERVAL);
        }
    }

    fn glyph(
        &self,
        ui: &Ui,
        at: Pos2,
        run: Option<&Execution>,
        (stale, earlier): (bool, bool),
        active: bool,
        hovered: bool,
    ) {
        let colours = theme::ThemeColors::of(ui);
        let icon = |icon: &str, colour: Color32| {
            ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(theme::size::ICON_SIZE), colour);
        };
        match run.map(|run| run.status) {
            Some(ExecutionStatus::Running | ExecutionStatus::Queued) if hovered => icon(icons::STOP, colours.ink),
            Some(ExecutionStatus::Running) => turning(ui, at, colours.accent, colours.line),
            Some(ExecutionStatus::Queued) => icon(icons::HOURGLASS, colours.warn),
            _ if active => icon(icons::PLAY, if hovered { colours.accent } else { colours.ink }),
            None => icon(icons::PLAY, colours.muted),
            Some(_) if stale => {
                ui.painter().circle_filled(at, 4.0, colours.warn);
            }
            Some(ExecutionStatus::Ok) if earlier => icon(icons::CHECK, colours.muted),
            Some(ExecutionStatus::Ok) => icon(icons::CHECK, colours.ok),
            Some(ExecutionStatus::Error) => icon(icons::X, colours.bad),
            Some(ExecutionStatus::Interrupted) => icon(icons::STOP, colours.muted),
            Some(ExecutionStatus::Died) => icon(icons::WARNING, colours.bad),
        }
    }

    /// Returns a cell's output as text, or `None` if there is none.
    pub(crate) fn output_text(&self, cell: BlockId) -> Option<String> {
        self.outputs.get(&cell).map(|outputs| outputs.text.clone()).filter(|text| !text.is_empty())
    }

    /// Returns whether one of the cell's figures is at this offset from the bottom of its box.
    pub(crate) fn has_figure_at(&self, cell: BlockId, offset: Vec2) -> bool {
        self.outputs.get(&cell).is_some_and(|outputs| figure_at(outputs, offset).is_some())
    }

    /// Copies the figure at this offset from the bottom of the cell's box as an image.
    pub(crate) fn copy_figure_at(&mut self, ctx: &egui::Context, cell: BlockId, offset: Vec2) {
        if let Some(slot) = self.outputs.get(&cell).and_then(|outputs| figure_at(outputs, offset)) {
            self.figures.copy_as_image(ctx, slot);
        }
    }

    /// Selects the cell of an output table at a point of the screen. Returns the index of the table's output.
    pub(crate) fn select_table_cell(&mut self, cell: BlockId, point: Pos2) -> Option<usize> {
        self.views.get_mut(&cell)?.select_table_cell(point)
    }

    /// Returns the table of a cell's output at an index.
    pub(crate) fn shown_table(&mut self, cell: BlockId, index: usize) -> Option<&mut DataTable> {
        self.views.get_mut(&cell)?.shown_table(index)
    }

    /// Collapses or expands a cell's output.
    pub fn toggle_output_fold(&mut self, cell: BlockId) {
        let views = self.views.entry(cell).or_default();
        views.folded = !views.folded;
        views.version += 1;
    }

    /// Draws a cell's outputs below its box.
    #[allow(clippy::too_many_arguments, reason = "one frame's worth of context")]
    pub fn output(
        &mut self,
        ui: &mut Ui,
        cell: BlockId,
        number: usize,
        origin: Pos2,
        width: f32,
        selected: bool,
        actions: &mut Vec<PageAction>,
        pen: TextStyleContext<'_>,
    ) {
        let Some(outputs) = self.outputs.get(&cell).filter(|outputs| outputs.height > 0.0) else { return };
        let colours = theme::ThemeColors::of(ui);
        let origin = origin + vec2(0.0, space::S);
        for (index, text) in outputs.galleys.iter().enumerate() {
            let at = origin + vec2(0.0, text.y);
            let rect = Rect::from_min_size(at, text.galley.size());
            if !ui.is_rect_visible(rect) {
                continue;
            }
            if selected {
                ui.painter().rect_filled(rect, 0.0, colours.accent_ground);
            }
            let sense = Sense::click_and_drag() - Sense::FOCUSABLE;
            let id = ui.scope_id().with(("output", cell, index));
            let response = ui.interact(rect, id, sense);
            response.widget_info(|| egui::WidgetInfo::labeled(Role::Label, true, text.galley.text()));
            let response = response.on_hover_cursor(egui::CursorIcon::Text);
            LabelSelectionState::label_text_selection(
                ui,
                &response,
                at,
                text.galley.clone(),
                colours.ink,
                Stroke::NONE,
            );
            for (index, (place, cell, line)) in text.places.iter().enumerate() {
                let link = ui.interact(place.translate(at.to_vec2()), id.with(index), Sense::click());
                set_accessible_name(&link, Role::Link, &format!("Line {line} of cell {cell}"));
                paint_focus_ring(ui, &link, CONTROL_CORNER);
                if link.on_hover_cursor(egui::CursorIcon::PointingHand).clicked() {
                    actions.push(PageAction::ToLine { cell: *cell, line: *line });
                }
            }
        }
        for slot in &outputs.figures {
            if ui.is_rect_visible(Rect::from_min_size(origin + vec2(0.0, slot.y), slot.size)) {
                self.figures.show(ui, slot, origin, number, pen);
            }
        }
        let views = self.views.entry(cell).or_default();
        for (index, (y, piece)) in outputs.others.iter().enumerate() {
            let at = origin + vec2(0.0, *y);
            let id = ui.scope_id().with(("piece", cell, index));
            outputs::show(ui, piece, id, (cell, number), (at, width), views, actions);
        }
        let bottom = origin.y + outputs.height;
        if outputs.lines > 0 {
            let open = self.open.contains(&cell);
            let text = if open { "Show less".to_owned() } else { format!("Show all {} lines", outputs.lines) };
            let rect = Rect::from_min_size(pos2(origin.x, bottom), vec2(140.0, theme::size::MIN_CLICK_HEIGHT));
            let name = format!("{text} of cell {number}");
            let id = ui.scope_id().with(("fold", cell));
            if word_button(ui, rect, id, &text, &name).clicked() {
                if open {
                    self.open.remove(&cell)
                } else {
                    self.open.insert(cell)
                };
            }
        }
        let area = Rect::from_min_max(
            origin - vec2(CELL_OUTSET_WITHOUT_GUTTER, 0.0),
            pos2(origin.x + width + CELL_OUTSET_WITHOUT_GUTTER, bottom),
        );
        let over = ui.rect_contains_pointer(area);
        let fold = if views.folded { ("Show", icons::CARET_RIGHT) } else { ("Fold", icons::CARET_DOWN) };
        let buttons = [(fold.0, fold.1), ("Save", icons::FLOPPY), ("Copy", icons::COPY)];
        for (place, (does, icon)) in buttons.into_iter().enumerate() {
            #[allow(clippy::cast_precision_loss, reason = "one of three")]
            let right = area.right() - 34.0 - (buttons.len() - 1 - place) as f32 * theme::size::MIN_CLICK_HEIGHT;
            let button =
                Rect::from_min_size(pos2(right, area.top() - space::XS), Vec2::splat(theme::size::MIN_CLICK_HEIGHT));
            let response = ui.interact(button, ui.scope_id().with((place, "output", cell)), Sense::click());
            set_accessible_name(&response, Role::Button, &format!("{does} output of cell {number}"));
            if over || response.has_focus() || (place == 0 && views.folded) {
                let colour = if response.hovered() { colours.hover_color(colours.paper) } else { colours.paper };
                ui.painter().rect_filled(button, CONTROL_CORNER, colour);
                let font = theme::icon_font(theme::size::ICON_SIZE);
                ui.painter().text(button.center(), Align2::CENTER_CENTER, icon, font, colours.muted);
            }
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            let response = response.on_hover_text(format!("{does} output"));
            match (response.clicked(), place) {
                (true, 0) => (views.folded, views.version) = (!views.folded, views.version + 1),
                (true, 1) => actions.push(PageAction::SaveOutput(cell)),
                (true, _) => ui.copy_text(outputs.text.clone()),
                (false, _) => {}
            }
        }
    }
}

/// Returns the pending input request of a cell.
fn question(note: &Note, cell: BlockId) -> Option<&StdinRequest> {
    note.stdin_request().filter(|question| note.latest_execution(cell).is_some_and(|run| run.id == question.execution))
}

/// Returns the height of outputs with the space around them.
fn taken(outputs: &OutputLayout) -> f32 {
    let more = if outputs.lines > 0 { theme::size::MIN_CLICK_HEIGHT } else { 0.0 };
    if outputs.height == 0.0 {
        return 0.0;
    }
    outputs.height + 2.0 * space::S + more
}

/// Draws a rotating quarter ring.
fn turning(ui: &Ui, at: Pos2, colour: Color32, ground: Color32) {
    ui.painter().circle_stroke(at, 6.0, Stroke::new(2.0, ground));
    #[allow(clippy::cast_possible_truncation, reason = "an angle")]
    let start = (ui.input(|input| input.time).rem_euclid(1.0) * std::f64::consts::TAU) as f32;
    let arc: Vec<Pos2> = (0..=10_u8)
        .map(|step| at + Vec2::angled(start + f32::from(step) / 10.0 * std::f32::consts::FRAC_PI_2) * 6.0)
        .collect();
    ui.painter().line(arc, Stroke::new(2.0, colour));
}

fn hint(run: Option<&Execution>, stale: Option<&StaleReason>, name: &str) -> String {
    let Some(run) = run else { return format!("{name}   Shift+Enter") };
    let says = match run.status {
        ExecutionStatus::Queued => "Queued",
        ExecutionStatus::Running => "Is running",
        ExecutionStatus::Ok if run.cached => "Reused a cached result: code and inputs haven't changed",
        ExecutionStatus::Ok => "Done",
        ExecutionStatus::Error => "Raised an error",
        ExecutionStatus::Interrupted if run.is_canceled_in_queue() => "Not run",
        ExecutionStatus::Interrupted => "Was stopped",
        ExecutionStatus::Died => "The kernel ended in it",
    };
    let stale = match stale {
        Some(reason) => format!("\n{}", out_of_date(reason)),
        None => String::new(),
    };
    format!("{name}   Shift+Enter\n{says}{stale}")
}

/// Describes why a cell is out of date.
fn out_of_date(reason: &StaleReason) -> String {
    format!("Out of date: {}", reason.describe())
}

/// Returns whether a result's kernel is gone: it ended, or ran on another device.
fn is_earlier(note: &Note, run: &Execution) -> bool {
    run.status.is_final() && !note.is_of_running_kernel(run.id)
}

/// Describes when a cell ran, and whether its variables still exist.
fn when(note: &Note, run: &Execution) -> String {
    let (moment, now) = (host::clock::format_moment(run.started), host::clock::format_moment(host::unix_millis_now()));
    let day = |moment: &str| moment.split(' ').next().map(str::to_owned);
    let to_minutes = moment.get(..moment.len().saturating_sub(3)).unwrap_or_default();
    let at = match to_minutes.split_once(' ') {
        Some((_, time)) if day(&moment) == day(&now) => format!("Run at {time}"),
        Some((day, time)) => format!("Run on {day} at {time}"),
        None => String::new(),
    };
    match is_earlier(note, run) {
        true => format!("{at}\nFrom an earlier session: run it again to have its variables"),
        false => at,
    }
}

/// Draws the execution count and duration at the right of the first line if there's room. Returns the caption's
/// rectangle and text.
fn caption(
    ui: &Ui,
    area: Rect,
    (run, asked): (&Execution, Option<UnixMillis>),
    (stale, earlier): (Option<&StaleReason>, bool),
    first: Option<&Galley>,
    elsewhere: Option<&str>,
) -> Option<(Rect, String)> {
    let colours = theme::ThemeColors::of(ui);
    let (text, colour) = match (run.status, run.duration) {
        _ if elsewhere.is_some() => (format!("on {}", elsewhere.unwrap_or_default()), colours.muted),
        (ExecutionStatus::Queued, _) => ("queued".to_owned(), colours.muted),
        (ExecutionStatus::Running, _) => (time(elapsed(run, asked)), colours.muted),
        (_, milliseconds) => match (stale, milliseconds) {
            (Some(stale), _) => (out_of_date(stale), colours.warn),
            (None, Some(_)) if run.cached => ("cached".to_owned(), colours.muted),
            (None, Some(milliseconds)) if earlier => (format!("earlier, {}", time(milliseconds)), colours.muted),
            (None, Some(milliseconds)) => {
                let count = run.count.map(|count| format!("[{count}]  ")).unwrap_or_default();
                (format!("{count}{}", time(milliseconds)), colours.muted)
            }
            (None, None) => return None,
        },
    };
    let text = text::untrusted_text::escape_line(&text).into_owned();
    let mut galley = ui.painter().layout_no_wrap(text.clone(), theme::tabular_font(12.0), colour);
    let used = first.and_then(|first| first.rows.first()).map_or(0.0, |row| row.rect().width());
    let room = area.width() - CELL_OUTSET_WITH_GUTTER - space::M - space::L - used;
    if stale.is_some() && galley.size().x > room {
        galley = ui.painter().layout_no_wrap("Out of date".to_owned(), theme::tabular_font(12.0), colour);
    }
    if galley.size().x > room {
        return None;
    }
    let at = pos2(
        area.right() - space::M - galley.size().x,
        area.top() + CELL_PADDING + (theme::code().line - galley.size().y) / 2.0,
    );
    let rect = Rect::from_min_size(at, galley.size());
    ui.painter().galley(at, galley, colour);
    Some((rect, text))
}

/// Returns how long a cell has been running, in milliseconds, without waits for input. `asked`: the start of a pending
/// wait.
fn elapsed(run: &Execution, asked: Option<UnixMillis>) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = asked.map_or_else(|| i64::try_from(now.as_millis()).unwrap_or(i64::MAX), |asked| asked.0);
    u64::try_from(now.saturating_sub(run.started)).unwrap_or(0).saturating_sub(run.waited)
}

#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
fn time(milliseconds: u64) -> String {
    match milliseconds {
        0 => "< 1 ms".to_owned(),
        1..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}
