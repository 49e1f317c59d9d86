//! Cells: a box for the code with a gutter at its left, what came out straight below. Draws and says what was asked
//! for; running is the session's.

use super::controls::{clipped, named, ring, word_button};
use super::icons;
use super::outputs::Outputs;
use super::page::Action;
use super::render::Pen;
use crate::tokens::{self, CORNER, space};
use eframe::egui;
use egui::accesskit::Role;
use egui::text_selection::LabelSelectionState;
use egui::{Align2, Color32, Galley, Pos2, Rect, Sense, Stroke, StrokeKind, Ui, Vec2, pos2, vec2};
use engine::{Command, Note, Question, Stale};
use std::collections::{HashMap, HashSet};
use store::{BlockId, Execution, Status};

/// The room above and below code in its box.
pub(super) const PAD: f32 = space::S;
/// The box reaches this far to the left of the column where it has a gutter, and without one.
const GUTTERED: f32 = tokens::size::GUTTER + space::L;
const BARE: f32 = space::M;
/// How often a running cell's ring turns on.
const TURN: std::time::Duration = std::time::Duration::from_millis(100);

/// The width of code in a column: the box reaches out of it, so that code stands where text stands.
pub(super) fn code_width(column: f32) -> f32 {
    column
}

/// The box around code of a height, at the column's left top.
pub(super) fn code_box(origin: Pos2, column: f32, height: f32, gutter: bool) -> Rect {
    let left = if gutter { GUTTERED } else { BARE };
    Rect::from_min_max(origin - vec2(left, 0.0), origin + vec2(column + space::M, height + 2.0 * PAD))
}

/// A cell as it is drawn now.
pub(super) struct Shown<'a> {
    /// Which.
    pub(super) cell: BlockId,
    /// Counted from 1.
    pub(super) number: usize,
    /// Its box.
    pub(super) area: Rect,
    /// The code's first line, where that is laid out already.
    pub(super) first: Option<&'a Galley>,
    /// Whether the caret is in it.
    pub(super) focused: bool,
}

/// What is kept of cells from frame to frame.
#[derive(Default)]
pub(super) struct Cells {
    outputs: HashMap<BlockId, Outputs>,
    /// Cells whose output is unfolded.
    open: HashSet<BlockId>,
    /// How often outputs had become others when they were laid out.
    changed: u64,
    /// What a cell asks, and the answer so far.
    answer: Option<(Question, String)>,
}

impl Cells {
    /// Forgets all; another note is shown.
    pub(super) fn clear(&mut self) {
        *self = Cells::default();
    }

    /// Forgets what was laid out.
    pub(super) fn relayout(&mut self) {
        self.outputs.clear();
    }

    /// How high a cell's output is, with the room above it.
    pub(super) fn output_height(&mut self, note: &Note, cell: BlockId, width: f32, pen: Pen<'_>) -> f32 {
        let Some(run) = note.execution(cell) else { return 0.0 };
        if self.changed != note.outputs_changed() {
            self.changed = note.outputs_changed();
            self.outputs.clear();
        }
        let old = self.outputs.remove(&cell);
        let outputs = Outputs::of(old, run, self.open.contains(&cell), width, pen);
        let height = taken(&outputs);
        self.outputs.insert(cell, outputs);
        let asks = if question(note, cell).is_some() { tokens::size::HIT + 2.0 * space::S } else { 0.0 };
        height + asks
    }

    /// What a running cell asks, with a field for the answer, below what it has printed.
    pub(super) fn question(
        &mut self,
        ui: &mut Ui,
        note: &Note,
        shown: (BlockId, usize),
        origin: Pos2,
        width: f32,
        actions: &mut Vec<Action>,
    ) {
        let (cell, number) = shown;
        let Some(question) = question(note, cell) else { return };
        let new = self.answer.as_ref().is_none_or(|(known, _)| known != question);
        if new {
            self.answer = Some((question.clone(), String::new()));
        }
        let Some((_, text)) = &mut self.answer else { return };
        let colours = tokens::Colours::of(ui);
        let top = origin.y + self.outputs.get(&cell).map_or(0.0, taken) + space::S;
        let line = Rect::from_min_size(pos2(origin.x, top), vec2(width.min(tokens::size::DIALOG), tokens::size::HIT));
        let style = tokens::code();
        let prompt = typeset::printed::plain(question.prompt.lines().last().unwrap_or(""));
        let at = pos2(line.left(), line.center().y - style.line / 2.0);
        let used = clipped(ui, at, line.width() * 0.6, &prompt, &style, colours.ink);
        let gap = if used > 0.0 { space::S } else { 0.0 };
        let field = Rect::from_min_max(pos2(line.left() + used + gap, line.top()), line.max);
        let edit = egui::TextEdit::singleline(text)
            .id(egui::Id::unique(("answer", cell)))
            .password(question.password)
            .font(style.font)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(field.width());
        let prompt = if prompt.trim().is_empty() { "the input".to_owned() } else { prompt };
        let stroke = std::mem::replace(&mut ui.visuals_mut().selection.stroke.color, colours.accent);
        let response = ui.put(field, edit).accessible_name(format!("Answer to cell {number}: {prompt}"));
        ui.visuals_mut().selection.stroke.color = stroke;
        if new {
            response.request_focus();
        }
        if response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) {
            actions.push(Action::Do(Command::Answer { note: note.id, text: std::mem::take(text) }));
            self.answer = None;
        }
    }

    /// The box of a cell, its gutter and its buttons.
    pub(super) fn frame(&mut self, ui: &mut Ui, note: &Note, shown: Shown<'_>, actions: &mut Vec<Action>) {
        let Shown { cell, number, area, first, focused } = shown;
        let colours = tokens::Colours::of(ui);
        let run = note.execution(cell);
        let busy = run.is_some_and(|run| matches!(run.status, Status::Running | Status::Queued));
        if focused {
            let stroke = Stroke::new(tokens::size::RING, colours.accent);
            ui.painter().rect_stroke(area, CORNER, stroke, StrokeKind::Outside);
        }
        let middle = area.min + vec2(space::S + tokens::size::GUTTER / 2.0, PAD + tokens::code().line / 2.0);
        let button = Rect::from_center_size(middle, Vec2::splat(tokens::size::HIT));
        let id = ui.scope_id().with(("run", cell));
        let response = ui.interact(button, id, Sense::click());
        let name = if busy { format!("Stop cell {number}") } else { format!("Run cell {number}") };
        named(&response, Role::Button, &name);
        let active = response.hovered() || response.has_focus() || ui.rect_contains_pointer(area);
        if response.hovered() {
            ui.painter().rect_filled(button, CORNER, colours.hover(colours.sunken));
        }
        let stale = note.staleness(cell);
        self.glyph(ui, middle, run, stale.is_some(), active, response.hovered());
        ring(ui, &response, CORNER);
        if response.clicked() {
            let note = note.id;
            actions.push(Action::Do(if busy { Command::Interrupt { note } } else { Command::Run { note, cell } }));
        }
        if response.hovered() || response.has_focus() {
            let mut words = hint(run, stale.as_ref(), &name);
            note.remarks(cell).into_iter().for_each(|remark| words = format!("{words}\n{remark}"));
            response.on_hover_text(words);
        }
        if let Some(run) = run {
            caption(ui, area, run, stale.as_ref(), first);
        }
        if busy {
            ui.ctx().request_repaint_after(TURN);
        }
    }

    fn glyph(&self, ui: &Ui, at: Pos2, run: Option<&Execution>, stale: bool, active: bool, hovered: bool) {
        let colours = tokens::Colours::of(ui);
        let icon = |icon: &str, colour: Color32| {
            ui.painter().text(at, Align2::CENTER_CENTER, icon, tokens::icon(tokens::size::ICON), colour);
        };
        match run.map(|run| run.status) {
            Some(Status::Running | Status::Queued) if hovered => icon(icons::STOP, colours.ink),
            Some(Status::Running) => turning(ui, at, colours.accent, colours.line),
            Some(Status::Queued) => icon(icons::HOURGLASS, colours.warn),
            _ if active => icon(icons::PLAY, if hovered { colours.accent } else { colours.ink }),
            None => icon(icons::PLAY, colours.muted),
            Some(_) if stale => {
                ui.painter().circle_filled(at, 4.0, colours.warn);
            }
            Some(Status::Ok) => icon(icons::CHECK, colours.ok),
            Some(Status::Error) => icon(icons::X, colours.bad),
            Some(Status::Interrupted) => icon(icons::STOP, colours.muted),
            Some(Status::Died) => icon(icons::WARNING, colours.bad),
        }
    }

    /// What came out of a cell, at a place below its box.
    pub(super) fn output(
        &mut self,
        ui: &mut Ui,
        cell: BlockId,
        number: usize,
        origin: Pos2,
        width: f32,
        selected: bool,
    ) {
        let shown = |outputs: &&Outputs| !(outputs.galleys.is_empty() && outputs.figures.is_empty());
        let Some(outputs) = self.outputs.get(&cell).filter(shown) else { return };
        let colours = tokens::Colours::of(ui);
        let origin = origin + vec2(0.0, space::S);
        for (index, (y, galley)) in outputs.galleys.iter().enumerate() {
            let at = origin + vec2(0.0, *y);
            let rect = Rect::from_min_size(at, galley.size());
            if !ui.is_rect_visible(rect) {
                continue;
            }
            if selected {
                ui.painter().rect_filled(rect, 0.0, colours.accent_ground);
            }
            let sense = Sense::click_and_drag() - Sense::FOCUSABLE;
            let response = ui.interact(rect, ui.scope_id().with(("output", cell, index)), sense);
            response.widget_info(|| egui::WidgetInfo::labeled(Role::Label, true, galley.text()));
            let response = response.on_hover_cursor(egui::CursorIcon::Text);
            LabelSelectionState::label_text_selection(ui, &response, at, galley.clone(), colours.ink, Stroke::NONE);
        }
        for (index, figure) in outputs.figures.iter().enumerate() {
            let rect = Rect::from_min_size(origin + vec2(0.0, figure.y), figure.size);
            if ui.is_rect_visible(rect) {
                let response = ui.interact(rect, ui.scope_id().with(("figure", cell, index)), Sense::hover());
                response.widget_info(|| egui::WidgetInfo::labeled(Role::Image, true, &figure.words));
                figure.paint(ui.painter(), rect.min);
            }
        }
        let bottom = origin.y + outputs.height;
        if outputs.lines > 0 {
            let open = self.open.contains(&cell);
            let text = if open { "Show less".to_owned() } else { format!("Show all {} lines", outputs.lines) };
            let rect = Rect::from_min_size(pos2(origin.x, bottom), vec2(140.0, tokens::size::HIT));
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
        let area = Rect::from_min_max(origin - vec2(BARE, 0.0), pos2(origin.x + width + BARE, bottom));
        let button =
            Rect::from_min_size(pos2(area.right() - 34.0, area.top() - space::XS), Vec2::splat(tokens::size::HIT));
        let response = ui.interact(button, ui.scope_id().with(("copy", cell)), Sense::click());
        named(&response, Role::Button, &format!("Copy output of cell {number}"));
        if ui.rect_contains_pointer(area) || response.has_focus() {
            let colour = if response.hovered() { colours.hover(colours.paper) } else { colours.paper };
            ui.painter().rect_filled(button, CORNER, colour);
            ui.painter().text(
                button.center(),
                Align2::CENTER_CENTER,
                icons::COPY,
                tokens::icon(tokens::size::ICON),
                colours.muted,
            );
        }
        ring(ui, &response, CORNER);
        if response.clicked() {
            ui.copy_text(outputs.text.clone());
        }
        response.on_hover_text("Copy output");
    }
}

/// What a cell asks, if it runs and does.
fn question(note: &Note, cell: BlockId) -> Option<&Question> {
    note.question().filter(|question| note.execution(cell).is_some_and(|run| run.id == question.execution))
}

/// The height that outputs take, with the room around them.
fn taken(outputs: &Outputs) -> f32 {
    let more = if outputs.lines > 0 { tokens::size::HIT } else { 0.0 };
    if outputs.galleys.is_empty() && outputs.figures.is_empty() {
        return 0.0;
    }
    outputs.height + 2.0 * space::S + more
}

/// A ring of which a quarter goes round.
fn turning(ui: &Ui, at: Pos2, colour: Color32, ground: Color32) {
    ui.painter().circle_stroke(at, 6.0, Stroke::new(2.0, ground));
    #[allow(clippy::cast_possible_truncation, reason = "an angle")]
    let start = (ui.input(|input| input.time).rem_euclid(1.0) * std::f64::consts::TAU) as f32;
    let arc: Vec<Pos2> = (0..=10_u8)
        .map(|step| at + Vec2::angled(start + f32::from(step) / 10.0 * std::f32::consts::FRAC_PI_2) * 6.0)
        .collect();
    ui.painter().line(arc, Stroke::new(2.0, colour));
}

fn hint(run: Option<&Execution>, stale: Option<&Stale>, name: &str) -> String {
    let Some(run) = run else { return format!("{name}   Shift+Enter") };
    let says = match run.status {
        Status::Queued => "Waits for the cell before it",
        Status::Running => "Is running",
        Status::Ok => "Done",
        Status::Error => "Raised an error",
        Status::Interrupted => "Was stopped",
        Status::Died => "The kernel ended in it",
    };
    let stale = match stale {
        Some(Stale::Code) => "; its code has changed since".to_owned(),
        Some(other) => format!("; stale: {}", other.words()),
        None => String::new(),
    };
    format!("{name}   Shift+Enter\n{says}{stale}")
}

/// How long it took, at the right of the first line where that leaves room.
fn caption(ui: &Ui, area: Rect, run: &Execution, stale: Option<&Stale>, first: Option<&Galley>) {
    let colours = tokens::Colours::of(ui);
    let (text, colour) = match (run.status, run.duration) {
        (Status::Queued, _) => ("waits".to_owned(), colours.muted),
        (Status::Running, _) => (time(elapsed(run)), colours.muted),
        (_, milliseconds) => match (stale, milliseconds) {
            (Some(stale), _) => (stale.words(), colours.warn),
            (None, Some(milliseconds)) => (time(milliseconds), colours.muted),
            (None, None) => return,
        },
    };
    let galley = ui.painter().layout_no_wrap(text, tokens::tabular(12.0), colour);
    let used = first.and_then(|first| first.rows.first()).map_or(0.0, |row| row.rect().width());
    let column = area.width() - GUTTERED - space::M;
    if used + galley.size().x + space::L > column {
        return;
    }
    let at = pos2(
        area.right() - space::M - galley.size().x,
        area.top() + PAD + (tokens::code().line - galley.size().y) / 2.0,
    );
    ui.painter().galley(at, galley, colour);
}

/// How long a cell has been running.
fn elapsed(run: &Execution) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    u64::try_from(now.saturating_sub(run.started)).unwrap_or(0)
}

#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
fn time(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}
