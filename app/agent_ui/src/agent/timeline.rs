//! The page with a run's steps as a graph: time runs from left to right, and parallel calls are stacked. The graph is
//! laid out once per revision, and only visible steps are drawn, also for ten thousand steps.

use super::{labels, markdown_view, phases};
use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::epaint::Mesh;
use egui::{Align2, Color32, EventFilter, Id, Key, Modifiers, Pos2, Rect, Sense, Shape, Stroke, Ui, Vec2, pos2, vec2};
use engine::commands::CommandId;
use engine::{AgentRun, RunPhase, Session};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use store::{DocId, ExecutionStep, StepId, StepKind};
use text::untrusted_text;
use ui::empty_state;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, set_accessible_name, text_button};

/// Size of a step's box, and the distance between two boxes.
const STEP_BOX_SIZE: Vec2 = vec2(184.0, 48.0);
const STEP_PITCH: Vec2 = vec2(216.0, 64.0);
/// Zoom above which boxes show their text.
const MIN_TEXT_ZOOM: f32 = 0.55;
/// Zoom above which edges between steps are drawn.
const MIN_EDGE_ZOOM: f32 = 0.1;
/// Smallest zoom.
const MIN_TIMELINE_ZOOM: f32 = 0.000_5;
/// Width of a step's details.
const STEP_DETAILS_WIDTH: f32 = 340.0;
/// Height of the line with the names of phases.
const PHASE_NAMES_HEIGHT: f32 = 24.0;

/// Position of a step: column and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepPosition {
    column: usize,
    lane: usize,
}

/// The page that shows a run's steps as a graph over time.
pub struct TimelinePage {
    run: DocId,
    /// The revision and the number of steps that the layout is for.
    made: Option<(u64, usize)>,
    places: Vec<StepPosition>,
    /// Indices of the steps in each column.
    columns: Vec<Vec<usize>>,
    parents: Vec<Vec<usize>>,
    /// The run's phases, the phase of each step (from 1), and the range of columns of each phase.
    phases: Vec<RunPhase>,
    of: Vec<usize>,
    bands: Vec<(usize, Range<usize>)>,
    lanes: usize,
    /// The point of the graph at the left edge in the middle, and the zoom in screen points per graph point.
    centre: Vec2,
    zoom: f32,
    moved: bool,
    chosen: Option<usize>,
    /// The step to show once the run is loaded.
    wanted: Option<StepId>,
    focus: bool,
}

/// Lays out steps. A call follows the step that requests it, and its result follows on the same lane. All other steps
/// follow everything before.
fn lay_out(steps: &[ExecutionStep]) -> (Vec<StepPosition>, Vec<Vec<usize>>) {
    let mut numbers: HashMap<StepId, usize> = HashMap::with_capacity(steps.len());
    let mut places: Vec<StepPosition> = Vec::with_capacity(steps.len());
    let mut parents: Vec<Vec<usize>> = Vec::with_capacity(steps.len());
    // Positions of calls and of their results.
    let mut taken: HashSet<(usize, usize)> = HashSet::new();
    let mut next = 0;
    for (at, step) in steps.iter().enumerate() {
        let from: Vec<usize> = step.parents.iter().filter_map(|parent| numbers.get(parent).copied()).collect();
        let parent = from.first().copied();
        let place = match (&step.kind, parent) {
            (StepKind::ToolCall { .. }, Some(parent)) => {
                let column = places[parent].column + 1;
                let free = |lane: &usize| !taken.contains(&(column, *lane)) && !taken.contains(&(column + 1, *lane));
                let lane = (0..).find(free).unwrap_or_default();
                taken.extend([(column, lane), (column + 1, lane)]);
                StepPosition { column, lane }
            }
            (StepKind::ToolResult { .. }, Some(parent)) => {
                StepPosition { column: places[parent].column + 1, lane: places[parent].lane }
            }
            _ => StepPosition { column: next, lane: 0 },
        };
        next = next.max(place.column + 1);
        places.push(place);
        parents.push(from);
        numbers.insert(step.id, at);
    }
    (places, parents)
}

impl TimelinePage {
    /// Creates the page for a run.
    pub fn new(run: DocId) -> TimelinePage {
        TimelinePage {
            run,
            made: None,
            places: Vec::new(),
            columns: Vec::new(),
            parents: Vec::new(),
            phases: Vec::new(),
            of: Vec::new(),
            bands: Vec::new(),
            lanes: 1,
            centre: Vec2::ZERO,
            zoom: 1.0,
            moved: false,
            chosen: None,
            wanted: None,
            focus: true,
        }
    }

    /// Creates the page for a run, scrolled to a step.
    pub fn at(run: DocId, step: Option<StepId>) -> TimelinePage {
        TimelinePage { wanted: step, ..TimelinePage::new(run) }
    }

    fn make(&mut self, run: &AgentRun) {
        let key = (run.revision, run.steps.len());
        if self.made == Some(key) {
            return;
        }
        if self.made.is_none_or(|(_, steps)| steps != run.steps.len()) {
            (self.places, self.parents) = lay_out(&run.steps);
            self.lanes = self.places.iter().map(|place| place.lane + 1).max().unwrap_or(1);
            let count = self.places.iter().map(|place| place.column + 1).max().unwrap_or(0);
            self.columns = vec![Vec::new(); count];
            for (step, place) in self.places.iter().enumerate() {
                self.columns[place.column].push(step);
            }
            self.of = run.step_phases();
            self.bands.clear();
            for (column, steps) in self.columns.iter().enumerate() {
                let phase = steps.iter().filter_map(|step| self.of.get(*step)).min().copied().unwrap_or(0);
                match self.bands.last_mut() {
                    Some((known, range)) if *known == phase => range.end = column + 1,
                    _ if phase > 0 => self.bands.push((phase, column..column + 1)),
                    _ => {}
                }
            }
        }
        self.phases = run.phases();
        self.made = Some(key);
    }

    /// Draws the page; the run may still be loading.
    pub fn show(&mut self, ui: &mut Ui, session: &Session, actions: &mut Vec<PanelAction>) {
        let Some(run) = session.agents().run(self.run) else {
            empty_state::show_message(ui, "Reading the run…", None, "");
            return;
        };
        if run.steps.is_empty() {
            empty_state::show_message(ui, "The run has no steps yet.", None, "");
            return;
        }
        self.make(run);
        let all = ui.available_rect_before_wrap();
        if let Some(wanted) = self.wanted.take()
            && let Some(at) = run.steps.iter().position(|step| step.id == wanted)
        {
            self.reveal(at, all);
            self.moved = true;
        }
        let chosen = self.chosen.and_then(|at| run.steps.get(at)).is_some();
        let beside = chosen && all.width() > 2.0 * STEP_DETAILS_WIDTH;
        let area = match (chosen, beside) {
            (false, _) => all,
            (true, true) => all.with_max_x(all.right() - STEP_DETAILS_WIDTH),
            (true, false) => all.with_max_y(all.center().y),
        };
        self.graph(ui, run, area);
        if chosen {
            let rest = if beside { all.with_min_x(area.right()) } else { all.with_min_y(area.bottom()) };
            self.details(ui, run, rest, actions);
        }
    }

    fn graph(&mut self, ui: &mut Ui, run: &AgentRun, area: Rect) {
        let colours = ThemeColors::of(ui);
        let id = Id::unique("timeline");
        let response = ui.interact(area, id, Sense::click_and_drag());
        let words = format!("Timeline of {} steps", run.steps.len());
        set_accessible_name(&response, Role::Canvas, &words);
        if std::mem::take(&mut self.focus) {
            response.request_focus();
        }
        self.steer(ui, run, &response, area);
        let painter = ui.painter().with_clip_rect(area);
        let origin = area.left_center() + vec2(space::XL, 0.0) - self.centre * self.zoom;
        let top = (self.lanes.min(8) as f32 - 1.0) * STEP_PITCH.y / 2.0;
        let place = |place: StepPosition| {
            let at = vec2(
                place.column as f32 * STEP_PITCH.x,
                place.lane as f32 * STEP_PITCH.y - top - STEP_BOX_SIZE.y / 2.0,
            );
            Rect::from_min_size(origin + at * self.zoom, STEP_BOX_SIZE * self.zoom)
        };
        let column = |x: f32| ((x - origin.x) / (STEP_PITCH.x * self.zoom)).floor().max(0.0) as usize;
        let (from, to) = (column(area.left()).saturating_sub(1), column(area.right()) + 2);
        let legible = self.zoom >= MIN_TEXT_ZOOM;
        let bands: Vec<(usize, Rect)> = self
            .bands
            .iter()
            .map(|(phase, range)| {
                let side = |column: usize| {
                    origin.x + (column as f32 * STEP_PITCH.x - (STEP_PITCH.x - STEP_BOX_SIZE.x) / 2.0) * self.zoom
                };
                (*phase, area.with_min_x(side(range.start)).with_max_x(side(range.end)))
            })
            .filter(|(_, band)| band.intersects(area))
            .collect();
        for (phase, band) in &bands {
            if phase % 2 == 0 {
                painter.rect_filled(band.intersect(area), 0.0, colours.sunken);
            }
        }
        let mut mesh = Mesh::default();
        let mut clicked = None;
        let seen = self.columns.get(from..to.min(self.columns.len())).unwrap_or_default();
        // When zoomed out, steps that would share a screen point are drawn as one.
        let stride = (1.0 / (STEP_PITCH.x * self.zoom)).ceil().max(1.0) as usize;
        for step in seen.iter().step_by(stride).flatten().copied() {
            let rect = place(self.places[step]);
            for parent in self.parents[step].iter().filter(|_| self.zoom > MIN_EDGE_ZOOM) {
                let before = place(self.places[*parent]);
                edge(&painter, before.right_center(), rect.left_center(), colours.muted.gamma_multiply(0.6));
            }
            if !rect.intersects(area) {
                continue;
            }
            let is_chosen = self.chosen == Some(step);
            if legible {
                if boxed(ui, &painter, rect, &run.steps[step], step, is_chosen, run.about.start_time) {
                    clicked = Some(step);
                }
            } else {
                let colour = if is_chosen { colours.accent } else { hue(&run.steps[step].kind, colours) };
                let rect = Rect::from_center_size(rect.center(), rect.size().max(Vec2::splat(1.0)));
                mesh.add_colored_rect(rect.intersect(area), colour);
            }
        }
        painter.add(Shape::mesh(mesh));
        if !legible
            && response.clicked()
            && let Some(pointer) = response.interact_pointer_pos()
        {
            clicked =
                seen.iter().flatten().copied().find(|step| place(self.places[*step]).expand(2.0).contains(pointer));
        }
        if clicked.is_some() {
            self.chosen = clicked;
            response.request_focus();
        } else if response.clicked() {
            self.chosen = None;
        }
        self.name_phases(ui, &painter, area, &bands);
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        let says = format!("{words}. Arrows go from step to step, the wheel zooms, dragging moves.");
        let at = area.left_bottom() + vec2(space::L, -space::M);
        painter.text(at, Align2::LEFT_BOTTOM, says, theme::caption().font, colours.muted);
        let corner =
            Rect::from_min_size(area.left_top() + vec2(space::L, space::M), vec2(320.0, size::MIN_CLICK_HEIGHT));
        let mut child = ui.new_child(
            egui::UiBuilder::new()
                .max_rect(corner)
                .id_salt("zoom")
                .layout(egui::Layout::left_to_right(egui::Align::Min)),
        );
        child.spacing_mut().item_spacing.x = space::XS;
        for (word, by) in [("Nearer", 1.25), ("Farther", 0.8)] {
            if text_button(&mut child, word, false).clicked() {
                self.zoom = (self.zoom * by).clamp(MIN_TIMELINE_ZOOM, 2.0);
                self.moved = true;
            }
        }
        if text_button(&mut child, "Fit to window", false).clicked() {
            let wide = self.columns.len() as f32 * STEP_PITCH.x;
            self.zoom = ((area.width() - 2.0 * space::XL) / wide.max(1.0)).clamp(MIN_TIMELINE_ZOOM, 1.0);
            (self.centre, self.moved) = (Vec2::ZERO, true);
        }
    }

    /// Draws the names of the phases above their visible steps.
    fn name_phases(&self, ui: &Ui, painter: &egui::Painter, area: Rect, bands: &[(usize, Rect)]) {
        let colours = ThemeColors::of(ui);
        let top = area.top() + space::M + size::MIN_CLICK_HEIGHT + space::S;
        for (at, (phase, band)) in bands.iter().enumerate() {
            let Some(phase) = phase.checked_sub(1).and_then(|at| self.phases.get(at)) else { continue };
            let seen = band.intersect(area);
            let strip = Rect::from_min_size(pos2(seen.left(), top), vec2(seen.width(), PHASE_NAMES_HEIGHT));
            let ground = if phase.number % 2 == 0 { colours.sunken } else { colours.paper };
            painter.rect_filled(strip, 0.0, ground);
            painter.vline(band.left(), area.y_range(), Stroke::new(1.0, colours.line));
            let words = phases::title(phase, self.phases.len());
            let name = format!("{}  {}", phase.number, phase.name);
            let room = strip.width() - 2.0 * space::S;
            if room > space::XL {
                let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 12.0), line: 16.0 };
                let at = strip.left_center() + vec2(space::S, -8.0);
                paint_clipped_text(ui, at, room, &name, &style, colours.muted);
            }
            let response = ui.interact(strip, Id::unique(("phase", phase.number, at)), Sense::hover());
            set_accessible_name(&response, Role::Label, &words);
            response.on_hover_text(untrusted_text::escape_line(&words).into_owned());
        }
    }

    /// Handles panning, zooming and arrow keys.
    fn steer(&mut self, ui: &Ui, run: &AgentRun, response: &egui::Response, area: Rect) {
        if response.dragged() {
            self.centre -= response.drag_delta() / self.zoom;
            self.moved = true;
        }
        if response.hovered() {
            let (scroll, pinch, pointer) =
                ui.input(|input| (input.smooth_scroll_delta(), input.zoom_delta(), input.pointer.latest_pos()));
            let zoom = (self.zoom * (scroll.y * 0.004).exp() * pinch).clamp(MIN_TIMELINE_ZOOM, 2.0);
            if scroll != Vec2::ZERO || pinch != 1.0 {
                let pointer = pointer.unwrap_or(area.center()) - (area.left_center() + vec2(space::XL, 0.0));
                // The point under the pointer stays in place.
                self.centre += pointer / self.zoom - pointer / zoom;
                self.centre.x -= scroll.x / zoom;
                (self.zoom, self.moved) = (zoom, true);
            }
        }
        if !self.moved && super::works(run) {
            // Follow the latest step while the run works.
            let wide = self.columns.len() as f32 * STEP_PITCH.x;
            self.centre.x = (wide - (area.width() - 2.0 * space::XL) / self.zoom).max(0.0);
        }
        if !response.has_focus() {
            return;
        }
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        let pressed = |key| super::key(ui, key, Modifiers::NONE);
        let next = match self.chosen {
            None if pressed(Key::ArrowRight) || pressed(Key::ArrowDown) => Some(0),
            None => None,
            Some(at) if pressed(Key::ArrowLeft) => self.parents.get(at).and_then(|parents| parents.first().copied()),
            Some(at) if pressed(Key::ArrowRight) => self.after(at),
            Some(at) if pressed(Key::ArrowUp) => self.beside(at, true),
            Some(at) if pressed(Key::ArrowDown) => self.beside(at, false),
            Some(_) if pressed(Key::Home) => Some(0),
            Some(_) if pressed(Key::End) => run.steps.len().checked_sub(1),
            Some(_) => None,
        };
        if let Some(next) = next {
            self.reveal(next, area);
        }
    }

    /// Returns the step that follows: a child if there is one, otherwise the first step of the next column.
    fn after(&self, at: usize) -> Option<usize> {
        let place = self.places.get(at)?;
        let column = self.columns.get(place.column + 1)?;
        let child = column.iter().find(|step| self.parents[**step].contains(&at));
        child.or(column.first()).copied()
    }

    /// Returns the parallel step above or below this one.
    fn beside(&self, at: usize, up: bool) -> Option<usize> {
        let place = *self.places.get(at)?;
        let column = self.columns.get(place.column)?.iter().copied();
        let lane = |step: &usize| self.places[*step].lane;
        if up {
            column.filter(|step| lane(step) < place.lane).max_by_key(lane)
        } else {
            column.filter(|step| lane(step) > place.lane).min_by_key(lane)
        }
    }

    /// Selects a step and scrolls to it.
    fn reveal(&mut self, step: usize, area: Rect) {
        self.chosen = Some(step);
        let Some(place) = self.places.get(step) else { return };
        let (left, wide) = (place.column as f32 * STEP_PITCH.x, (area.width() - 2.0 * space::XL) / self.zoom);
        // The open details take up some of the width.
        let wide = (wide - STEP_DETAILS_WIDTH / self.zoom).max(STEP_BOX_SIZE.x);
        if left < self.centre.x {
            self.centre.x = left;
            self.moved = true;
        } else if left + STEP_BOX_SIZE.x > self.centre.x + wide {
            self.centre.x = left + STEP_BOX_SIZE.x - wide;
            self.moved = true;
        }
    }

    /// Draws details of the selected step.
    fn details(&mut self, ui: &mut Ui, run: &AgentRun, rect: Rect, actions: &mut Vec<PanelAction>) {
        let Some((at, step)) = self.chosen.and_then(|at| Some((at, run.steps.get(at)?))) else { return };
        let colours = ThemeColors::of(ui);
        ui.painter().rect_filled(rect, 0.0, colours.paper);
        ui.painter().vline(rect.left() + 0.5, rect.y_range(), Stroke::new(1.0, colours.line));
        let mut panel = ui::layout::part(ui, "step", rect.shrink2(vec2(space::L, 0.0)), rect);
        let ui = &mut panel;
        let (kind, _) = labels::step_label(step);
        ui.add_space(space::M);
        let title = match &step.kind {
            StepKind::ToolCall { tool_name, .. } => format!("{}. {kind}: {tool_name}", at + 1),
            _ => format!("{}. {kind}", at + 1),
        };
        text(
            ui,
            &title,
            &theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 },
            colours.ink,
            Role::Heading,
        );
        let mut facts = vec![format!(
            "At {}, {} after the start",
            labels::time_label(step.timestamp),
            since(step, run.about.start_time)
        )];
        facts.extend(step.duration.map(|duration| format!("Took {}", labels::duration_label(duration))));
        if let Some(spent) = &step.spent {
            facts.push(format!(
                "{} read, {} written, {}",
                spent.input_tokens,
                spent.output_tokens,
                labels::cost_label(spent)
            ));
        }
        let phase = self.of.get(at).and_then(|phase| self.phases.get(phase.checked_sub(1)?));
        match phase {
            // The route of a program step only repeats the phase.
            Some(phase) => {
                facts.push(phases::title(phase, self.phases.len()));
                facts.extend(step.route.clone().filter(|route| !route.starts_with("phase/")));
            }
            None => facts.extend(step.route.clone()),
        }
        for fact in &facts {
            text(ui, fact, &theme::caption(), colours.muted, Role::Label);
        }
        let parents = self.parents.get(at).cloned().unwrap_or_default();
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = space::XS;
            for parent in parents {
                if text_button(ui, &format!("Follows from step {}", parent + 1), false).clicked() {
                    self.chosen = Some(parent);
                }
            }
            let changed = run.changes.iter().any(|change| change.step == step.id);
            if changed && text_button(ui, "Changes", false).clicked() {
                actions.push(PanelAction::Run(CommandId::AgentChanges));
            }
        });
        ui.add_space(space::S);
        let whole = labels::step_text(step);
        let whole = &whole[..whole.floor_char_boundary(markdown_view::MAX_MESSAGE_BYTES)];
        if whole.is_empty() {
            return;
        }
        egui::ScrollArea::vertical().id_salt(("step", at)).auto_shrink(false).show(ui, |ui| {
            let width = ui.available_width();
            let height = markdown_view::height(ui, width, whole) + 2.0 * space::S;
            let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
            ui.painter().rect_filled(rect, CONTROL_CORNER, colours.sunken);
            markdown_view::paint_mono(ui, rect.min + vec2(0.0, space::S), width, whole);
            set_accessible_name(&response, Role::Label, whole);
            ui.add_space(space::L);
        });
    }
}

fn since(step: &ExecutionStep, start: i64) -> String {
    labels::duration_label(u64::try_from(step.timestamp.saturating_sub(start)).unwrap_or(0))
}

fn hue(kind: &StepKind, colours: &ThemeColors) -> Color32 {
    match kind {
        StepKind::Thinking { .. } => colours.thought,
        StepKind::ToolCall { .. } | StepKind::ToolResult { success: true, .. } => colours.tool,
        StepKind::ToolResult { success: false, .. } | StepKind::Error { .. } => colours.bad,
        StepKind::Todo { .. } => colours.muted,
        StepKind::FinalAnswer { .. } => colours.ok,
    }
}

fn glyph(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Thinking { .. } => icons::BRAIN,
        StepKind::ToolCall { .. } => icons::WRENCH,
        StepKind::ToolResult { success: true, .. } => icons::ARROW_LEFT,
        StepKind::ToolResult { success: false, .. } => icons::X_CIRCLE,
        StepKind::Todo { .. } => icons::LIST_BULLETS,
        StepKind::FinalAnswer { .. } => icons::CHECK_CIRCLE,
        StepKind::Error { .. } => icons::WARNING,
    }
}

/// Draws a step's box. Returns whether it was clicked.
fn boxed(
    ui: &Ui,
    painter: &egui::Painter,
    rect: Rect,
    step: &ExecutionStep,
    number: usize,
    chosen: bool,
    start: i64,
) -> bool {
    let colours = ThemeColors::of(ui);
    let response = ui.interact(rect.intersect(painter.clip_rect()), Id::unique(("step", step.id.0)), Sense::CLICK);
    let (kind, about) = labels::step_label(step);
    let ground = if chosen { colours.accent_ground } else { colours.raised };
    let line = match (chosen, response.hovered()) {
        (true, _) => Stroke::new(2.0, colours.accent),
        (false, true) => Stroke::new(1.0, colours.muted),
        (false, false) => Stroke::new(1.0, colours.line),
    };
    painter.rect(rect, CONTROL_CORNER, ground, line, egui::StrokeKind::Inside);
    let colour = hue(&step.kind, colours);
    let bar = rect.with_max_x(rect.left() + 3.0).shrink2(vec2(0.0, 6.0));
    painter.rect_filled(bar, 1.5, colour);
    let inner = rect.shrink2(vec2(space::S, 0.0));
    painter.text(
        inner.left_center() + vec2(10.0, 0.0),
        Align2::CENTER_CENTER,
        glyph(&step.kind),
        theme::icon_font(14.0),
        colour,
    );
    let took = step.duration.map(labels::duration_label).unwrap_or_default();
    let left = inner.left() + 24.0;
    let tall = rect.height() >= 40.0;
    let title = if about.is_empty() { kind } else { about.as_str() };
    let y = if tall { rect.center().y - 19.0 } else { rect.center().y - 10.0 };
    paint_clipped_text(ui, pos2(left, y), inner.right() - left, title, &theme::small(), colours.ink);
    if tall {
        let words = if took.is_empty() { since(step, start) } else { took };
        let line = format!("{kind}  ·  {words}");
        paint_clipped_text(
            ui,
            pos2(left, rect.center().y + 2.0),
            inner.right() - left,
            &line,
            &theme::caption(),
            colours.muted,
        );
    }
    let name = format!("Step {}: {kind} {about}", number + 1);
    response.widget_info(|| {
        egui::WidgetInfo::selected(Role::ListBoxOption, true, chosen, untrusted_text::escape_line(name.trim()))
    });
    response.clicked()
}

fn edge(painter: &egui::Painter, from: Pos2, to: Pos2, colour: Color32) {
    let stroke = Stroke::new(1.0, colour);
    if (from.y - to.y).abs() < 0.5 {
        painter.line_segment([from, to], stroke);
        return;
    }
    let middle = (from.x + to.x) / 2.0;
    painter.line(vec![from, pos2(middle, from.y), pos2(middle, to.y), to], stroke);
}

/// Draws wrapped text.
fn text(ui: &mut Ui, words: &str, style: &theme::TypeStyle, colour: Color32, role: Role) {
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    job.wrap.max_rows = 4;
    job.append(&untrusted_text::escape_block(words), 0.0, ui::widgets::format(style.font.clone(), style.line, colour));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), galley.size().y), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, role, words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: u64, parents: &[u64], kind: StepKind) -> ExecutionStep {
        let parents = parents.iter().map(|parent| StepId(*parent)).collect();
        ExecutionStep {
            id: StepId(id),
            timestamp: 0,
            duration: None,
            parents,
            kind,
            spent: None,
            route: None,
            tool: None,
        }
    }

    fn call(name: &str) -> StepKind {
        StepKind::ToolCall { tool_call_id: name.to_owned(), tool_name: name.to_owned(), params: serde_json::Map::new() }
    }

    fn result(name: &str) -> StepKind {
        let whole = None;
        let (tool_call_id, attached, files) = (name.to_owned(), Vec::new(), Vec::new());
        StepKind::ToolResult { tool_call_id, success: true, result: None, error: None, whole, attached, files }
    }

    #[test]
    fn calls_that_run_at_once_stand_below_each_other() {
        let think = || StepKind::Thinking { content: String::new(), is_streaming: None };
        let steps = [
            step(1, &[], think()),
            step(2, &[1], call("a")),
            step(3, &[1], call("b")),
            step(4, &[3], result("b")),
            step(5, &[2], result("a")),
            step(6, &[5], think()),
        ];
        let (places, parents) = lay_out(&steps);
        let places: Vec<(usize, usize)> = places.iter().map(|place| (place.column, place.lane)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 0), (3, 0)]);
        assert_eq!(parents[5], [4]);
    }

    #[test]
    fn calls_that_are_made_while_others_run_have_lanes_of_their_own() {
        let think = || StepKind::Thinking { content: String::new(), is_streaming: None };
        let steps = [
            step(1, &[], think()),
            step(2, &[1], call("a")),
            step(3, &[1], call("b")),
            step(4, &[2], result("a")),
            step(5, &[4], call("c")),
            step(6, &[3], result("b")),
            step(7, &[6], call("d")),
            step(8, &[5], result("c")),
            step(9, &[7], result("d")),
        ];
        let (places, _) = lay_out(&steps);
        let places: Vec<(usize, usize)> = places.iter().map(|place| (place.column, place.lane)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1), (4, 0), (4, 1)]);
        let alone: std::collections::BTreeSet<(usize, usize)> = places.iter().copied().collect();
        assert_eq!(alone.len(), places.len(), "no step stands on another");
    }
}
