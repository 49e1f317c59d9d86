//! Generated views in notes: trees of a few controls proposed by an agent (`engine::generated_view`), drawn by this
//! window only after the user has allowed them. Sliders and fields set a property of the note; buttons start runs that
//! the policy checks.

use crate::actions::PageAction;
use editor::figure::{FigureSlot, PageFigures};
use editor::note_editor::EditContext;
use editor::render::TextStyleContext;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Sense, Ui, pos2, vec2};
use engine::generated_view::{
    self, AgentView, FieldInput, FormField, PlotCurves, PlotKind, TextLook, ValueSource, ViewNode, ViewValues, WordGrid,
};
use engine::{Command, Session};
use host::InquiryAnswer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use store::{BlobHash, CellOutput, DocId, ExecutionId, OutputBody, RunEnding, StepKind};
use text::untrusted_text;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{check_box, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button, word_button};

/// Number of table rows visible without scrolling.
const MAX_VISIBLE_VIEW_ROWS: usize = 12;
/// Height of a table row.
const VIEW_TABLE_ROW_HEIGHT: f32 = 26.0;
const VIEW_PLOT_HEIGHT: f32 = 240.0;
/// Minimum width of columns side by side; narrower ones are stacked.
const MIN_VIEW_COLUMN_WIDTH: f32 = 150.0;

/// State of a generated view.
#[derive(Default)]
pub struct GeneratedView {
    source: String,
    /// The hash of the source, and the parsed view or the parse error.
    pub read: Option<(BlobHash, Rc<anyhow::Result<AgentView>>)>,
    values: ViewValues,
    /// Revision of the note, and number of kernel answers, that the values are from.
    of: Option<(u64, u64)>,
    grids: HashMap<usize, WordGrid>,
    slots: HashMap<usize, Option<FigureSlot>>,
    /// The width for which the plots were made.
    wide: f32,
    figures: PageFigures,
    /// Uncommitted input of text fields and sliders.
    edits: BTreeMap<String, String>,
    moved: BTreeMap<String, f64>,
    /// Runs started by buttons here.
    pressed: BTreeMap<usize, DocId>,
    /// Whether it was drawn, so that its note's kernel may be queried.
    pub drawn: bool,
    /// The kernel execution after which values were last requested.
    pub asked: Option<u64>,
    /// Pending answer of the kernel.
    pub waits: Option<Receiver<InquiryAnswer>>,
    answers: u64,
    /// Whether the kernel can report values.
    tells: bool,
    /// Height of the view.
    pub high: f32,
}

/// Context of a control.
struct ControlContext<'a> {
    session: &'a Session,
    pub note: DocId,
    name: BlobHash,
    pen: TextStyleContext<'a>,
}

/// Number of nodes and buttons drawn so far.
#[derive(Default)]
struct ControlCounts {
    nodes: usize,
    buttons: usize,
}

impl GeneratedView {
    /// Draws the view. `source`: the code block's text.
    pub fn show(&mut self, ui: &mut Ui, world: &EditContext<'_>, source: &str, actions: &mut Vec<PageAction>) {
        if self.read.is_none() || self.source != source {
            source.clone_into(&mut self.source);
            self.read = Some((
                generated_view::source_hash(source),
                Rc::new(AgentView::parse(source).map_err(anyhow::Error::from)),
            ));
            (self.of, self.asked) = (None, None);
            self.pressed.clear();
        }
        let Some((name, read)) = self.read.clone() else { return };
        let around = ControlContext { session: world.session, note: world.note.id, name, pen: world.pen };
        self.drawn = world.note.shows_view(name) && read.is_ok();
        egui::Frame::NONE.inner_margin(egui::Margin::same(16)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.spacing_mut().item_spacing = vec2(space::S, space::S);
            match &*read {
                Err(why) => {
                    words(ui, &format!("Can't draw this view: {why}."), TextLook::Body, ThemeColors::of(ui).warn)
                }
                Ok(read) if !self.drawn => self.preview(ui, &around, read, actions),
                Ok(read) => {
                    self.refresh(ui, world, read);
                    self.title(ui, &around, read, actions);
                    let mut count = ControlCounts::default();
                    self.node(ui, &around, &read.root, &mut count, actions);
                }
            }
        });
        self.high = ui.min_rect().height().ceil();
    }

    /// Draws a preview of content and actions, with the button that allows the view.
    fn preview(&mut self, ui: &mut Ui, around: &ControlContext<'_>, read: &AgentView, actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let title = if read.title.is_empty() { "A view was proposed for this note" } else { read.title.as_str() };
        words(ui, title, TextLook::Heading, colours.ink);
        words(ui, &read.summary(), TextLook::Caption, colours.muted);
        if text_button(ui, "Render preview", true).clicked() {
            let command = Command::ShowView { note: around.note, view: around.name, shown: true };
            actions.push(PageAction::Do(command));
            ui.ctx().request_repaint();
        }
    }

    fn title(&mut self, ui: &mut Ui, around: &ControlContext<'_>, read: &AgentView, actions: &mut Vec<PageAction>) {
        let colours = ThemeColors::of(ui);
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
        let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 };
        let place = pos2(rect.left(), rect.center().y - style.line / 2.0);
        paint_clipped_text(ui, place, rect.width() - 64.0, &read.title, &style, colours.ink);
        if !read.title.is_empty() {
            set_accessible_name(&response, Role::Heading, &read.title);
        }
        let at = egui::Rect::from_min_max(pos2(rect.right() - 56.0, rect.top()), rect.max);
        let id = ui.scope_id().with("hide this view");
        if word_button(ui, at, id, "Hide", "Hide this view").clicked() {
            actions.push(PageAction::Do(Command::ShowView { note: around.note, view: around.name, shown: false }));
        }
    }

    /// Updates the values from the note and its kernel.
    fn refresh(&mut self, ui: &Ui, world: &EditContext<'_>, read: &AgentView) {
        if let Some(waits) = &self.waits {
            match waits.try_recv() {
                Ok(InquiryAnswer::Values(values)) => {
                    self.tells = values.is_some();
                    self.values.variables = values.unwrap_or_default().into_iter().collect();
                    (self.waits, self.answers) = (None, self.answers + 1);
                }
                Ok(_) | Err(TryRecvError::Disconnected) => self.waits = None,
                Err(TryRecvError::Empty) => {}
            }
        }
        let wide = ui.available_width();
        let key = (world.note.revision(), self.answers);
        if self.of == Some(key) && (self.wide - wide).abs() < 1.0 {
            return;
        }
        if self.of.map(|(revision, _)| revision) != Some(key.0) {
            self.values.properties = ViewValues::from_note(&world.note.text()).properties;
            self.moved.clear();
        }
        (self.of, self.wide) = (Some(key), wide);
        self.grids.clear();
        self.slots.clear();
        for (at, node) in read.all_nodes().into_iter().enumerate() {
            if let ViewNode::Table { rows, columns } = node
                && let Some(value) = self.values.source_value(rows)
            {
                self.grids.insert(at, generated_view::to_grid(value, columns));
            }
        }
    }

    fn node(
        &mut self,
        ui: &mut Ui,
        around: &ControlContext<'_>,
        node: &ViewNode,
        count: &mut ControlCounts,
        actions: &mut Vec<PageAction>,
    ) {
        let at = count.nodes;
        count.nodes += 1;
        let colours = ThemeColors::of(ui);
        match node {
            ViewNode::Column(children) => {
                ui.vertical(|ui| children.iter().for_each(|child| self.node(ui, around, child, count, actions)));
            }
            ViewNode::Row(children) => {
                #[allow(clippy::cast_precision_loss, reason = "a few")]
                let room = ui.available_width() / children.len().max(1) as f32;
                if children.len() < 2 || room < MIN_VIEW_COLUMN_WIDTH {
                    ui.vertical(|ui| children.iter().for_each(|child| self.node(ui, around, child, count, actions)));
                    return;
                }
                ui.columns(children.len(), |columns| {
                    for (ui, child) in columns.iter_mut().zip(children) {
                        self.node(ui, around, child, count, actions);
                    }
                });
            }
            ViewNode::Text { pieces, look } => {
                let colour = if *look == TextLook::Caption { colours.muted } else { colours.ink };
                words(ui, &self.values.fill_text(pieces), *look, colour);
            }
            ViewNode::Table { rows, .. } => match self.grids.get(&at) {
                Some(grid) => table(ui, grid, at),
                None => self.missing(ui, rows),
            },
            ViewNode::Plot { kind, x, y, title } => match self.values.source_value(y) {
                Some(values) => {
                    let width = ui.available_width();
                    let slot = self.slots.entry(at).or_insert_with(|| {
                        let x = x.as_ref().and_then(|x| self.values.source_value(x));
                        plotted(at, *kind, &generated_view::to_curves(x, values), title, around, width)
                    });
                    if let Some(slot) = slot {
                        let (rect, _) = ui.allocate_exact_size(slot.size, Sense::hover());
                        self.figures.show(ui, slot, rect.min, at, around.pen);
                    }
                }
                None => self.missing(ui, y),
            },
            ViewNode::Form { title, fields } => {
                if !title.is_empty() {
                    words(ui, title, TextLook::Caption, colours.muted);
                }
                for field in fields {
                    self.field(ui, around, field, actions);
                }
            }
            ViewNode::Slider { property, label, from, to, step } => {
                self.slider(ui, around, (property, label), (*from, *to, *step), actions);
            }
            ViewNode::Button { label, .. } => {
                let button = count.buttons;
                count.buttons += 1;
                self.button(ui, around, label, button, actions);
            }
        }
    }

    /// Draws the placeholder of a missing value.
    fn missing(&self, ui: &mut Ui, source: &ValueSource) {
        let said = match source.bound_name() {
            Some(generated_view::ValueName::Property(name)) => format!("The note has no property {name} yet."),
            Some(generated_view::ValueName::Variable(name)) if self.asked.is_none() => {
                format!("Run the note's cells to see {name}.")
            }
            Some(generated_view::ValueName::Variable(_)) if self.waits.is_some() => "Asking the kernel…".to_owned(),
            Some(generated_view::ValueName::Variable(name)) if self.tells => {
                format!("The cells haven't created {name}.")
            }
            Some(generated_view::ValueName::Variable(_)) => "This kernel doesn't list its variables.".to_owned(),
            None => String::new(),
        };
        words(ui, &said, TextLook::Caption, ThemeColors::of(ui).muted);
    }

    fn slider(
        &mut self,
        ui: &mut Ui,
        around: &ControlContext<'_>,
        (property, label): (&str, &str),
        (from, to, step): (f64, f64, f64),
        actions: &mut Vec<PageAction>,
    ) {
        let set = self.values.properties.get(property).and_then(Value::as_f64);
        let mut value = self.moved.get(property).copied().or(set).unwrap_or(from).clamp(from, to);
        words(ui, label, TextLook::Caption, ThemeColors::of(ui).muted);
        let response = ui
            .scope(|ui| {
                ui.spacing_mut().slider_width = (ui.available_width() - 88.0).max(80.0);
                ui.spacing_mut().interact_size.y = size::MIN_CLICK_HEIGHT;
                ui.add(egui::Slider::new(&mut value, from..=to).step_by(step))
                    .accessible_name(untrusted_text::escape_line(label))
            })
            .inner;
        if response.changed() {
            self.moved.insert(property.to_owned(), value);
        }
        // The note is set once, when the drag ends.
        let rests = !response.dragged() && !response.is_pointer_button_down_on();
        if rests && let Some(value) = self.moved.get(property).copied().filter(|value| Some(*value) != set) {
            let value = rounded(value, step);
            let before = self.moved.insert(property.to_owned(), value);
            if before != Some(value) || response.changed() || response.drag_stopped() {
                set_property(around, property, Some(number(value)), actions);
            }
        }
    }

    fn field(&mut self, ui: &mut Ui, around: &ControlContext<'_>, field: &FormField, actions: &mut Vec<PageAction>) {
        let set = self.values.properties.get(&field.property).cloned().unwrap_or_default();
        match &field.input {
            FieldInput::Check => {
                let mut on = set.as_bool().unwrap_or(false);
                if check_box(ui, &mut on, untrusted_text::escape_line(&field.label)).changed() {
                    set_property(around, &field.property, Some(Value::Bool(on)), actions);
                }
            }
            FieldInput::Choice(choices) => {
                words(ui, &field.label, TextLook::Caption, ThemeColors::of(ui).muted);
                let now = generated_view::value_text(&set);
                let shown = if set.is_null() { "Choose…".into() } else { untrusted_text::escape_line(&now) };
                let mut chosen = None;
                let picked = egui::ComboBox::from_id_salt(("choice", &field.property)).width(200.0);
                let picked = picked.selected_text(shown).show_ui(ui, |ui| {
                    for choice in choices {
                        if ui.selectable_label(*choice == now, untrusted_text::escape_line(choice)).clicked() {
                            chosen = Some(choice.clone());
                        }
                    }
                });
                set_accessible_name(&picked.response, Role::ComboBox, &field.label);
                if let Some(chosen) = chosen {
                    set_property(around, &field.property, Some(Value::String(chosen)), actions);
                }
            }
            FieldInput::Text | FieldInput::Number => {
                words(ui, &field.label, TextLook::Caption, ThemeColors::of(ui).muted);
                let now = if set.is_null() { String::new() } else { generated_view::value_text(&set) };
                let mut text = self.edits.get(&field.property).cloned().unwrap_or_else(|| now.clone());
                let edit = egui::TextEdit::singleline(&mut text)
                    .id_salt(("field", &field.property))
                    .font(theme::small().font)
                    .margin(egui::Margin::symmetric(8, 6))
                    .desired_width(ui.available_width().min(320.0));
                let response = ui.add(edit).accessible_name(untrusted_text::escape_line(&field.label));
                if response.changed() {
                    self.edits.insert(field.property.clone(), text);
                }
                if response.lost_focus()
                    && let Some(text) = self.edits.remove(&field.property).filter(|text| *text != now)
                {
                    let read = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
                    if text.trim().is_empty() {
                        set_property(around, &field.property, None, actions);
                    } else if field.input == FieldInput::Text {
                        set_property(around, &field.property, Some(Value::String(text)), actions);
                    } else if let Some(value) = read {
                        set_property(around, &field.property, Some(number(value)), actions);
                    } else {
                        actions.push(PageAction::Say(format!("{}: “{text}” isn't a number.", field.label)));
                    }
                }
            }
        }
    }

    fn button(
        &mut self,
        ui: &mut Ui,
        around: &ControlContext<'_>,
        label: &str,
        button: usize,
        actions: &mut Vec<PageAction>,
    ) {
        ui.horizontal_wrapped(|ui| {
            if text_button(ui, label, false).clicked() {
                let run = DocId::random(rand::random());
                let (note, view) = (around.note, around.name);
                self.pressed.insert(button, run);
                actions.push(PageAction::Do(Command::Press { run, note, view, button }));
            }
            let Some(run) = self.pressed.get(&button).and_then(|run| around.session.agents().run(*run)) else { return };
            let colours = ThemeColors::of(ui);
            if run.pending().next().is_some() {
                if text_button(ui, "Waiting for approval", false).clicked() {
                    actions.push(PageAction::ShowAgent);
                }
                return;
            }
            let said = run.steps.iter().rev().find_map(|step| match &step.kind {
                StepKind::FinalAnswer { content } => Some(content.as_str()),
                StepKind::Error { message, .. } => Some(message.as_str()),
                _ => None,
            });
            match run.about.ending {
                None => words(ui, "At work…", TextLook::Caption, colours.muted),
                Some(RunEnding::Done) => words(ui, first_line(said), TextLook::Caption, colours.ok),
                Some(_) => words(ui, first_line(said), TextLook::Caption, colours.bad),
            }
        });
    }
}

fn first_line(text: Option<&str>) -> &str {
    text.unwrap_or_default().lines().find(|line| !line.trim().is_empty()).unwrap_or("Done.")
}

fn set_property(around: &ControlContext<'_>, key: &str, value: Option<Value>, actions: &mut Vec<PageAction>) {
    actions.push(PageAction::Do(Command::SetProperty { note: around.note, key: key.to_owned(), value }));
}

/// Returns a number in its usual form: as an integer if it's whole.
fn number(value: f64) -> Value {
    #[allow(clippy::cast_possible_truncation, reason = "far below the largest")]
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

/// Rounds to the nearest multiple of a step, without binary rounding noise.
fn rounded(value: f64, step: f64) -> f64 {
    let near = (value / step).round() * step;
    format!("{near:.9}").parse().unwrap_or(near)
}

/// Draws wrapped text.
fn words(ui: &mut Ui, text: &str, look: TextLook, colour: egui::Color32) {
    let (style, role) = match look {
        TextLook::Heading => {
            (theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 15.0), line: 24.0 }, Role::Heading)
        }
        TextLook::Body => (theme::body(), Role::Label),
        TextLook::Caption => (theme::caption(), Role::Label),
    };
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = ui.available_width();
    job.append(&untrusted_text::escape_block(text), 0.0, ui::widgets::format(style.font, style.line, colour));
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let (rect, response) = ui.allocate_exact_size(galley.size(), Sense::hover());
    ui.painter().galley(rect.min, galley, colour);
    set_accessible_name(&response, role, text);
}

/// Draws a table with a fixed header and scrolling rows.
fn table(ui: &mut Ui, grid: &WordGrid, salt: usize) {
    let colours = ThemeColors::of(ui);
    if grid.rows.is_empty() {
        return words(ui, "This table is empty.", TextLook::Caption, colours.muted);
    }
    #[allow(clippy::cast_precision_loss, reason = "a few hundred letters")]
    let wide = |column: usize| {
        let head = grid.columns.get(column).map_or(0, |name| name.chars().count());
        let cells = grid.rows.iter().take(100).filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        (cells.max().unwrap_or(0).max(head) as f32 * 7.5 + 2.0 * space::S).clamp(56.0, 260.0)
    };
    let widths: Vec<f32> = (0..grid.numbers.len()).map(wide).collect();
    let all: f32 = widths.iter().sum();
    egui::ScrollArea::horizontal().id_salt(("table", salt)).auto_shrink([false, true]).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        let line = |ui: &mut Ui, cells: &[String], head: bool, name: &str| {
            let (rect, response) = ui.allocate_exact_size(vec2(all, VIEW_TABLE_ROW_HEIGHT), Sense::hover());
            let style = if head { theme::caption() } else { theme::small() };
            let colour = if head { colours.muted } else { colours.ink };
            let mut x = rect.left();
            for (at, cell) in cells.iter().enumerate().take(widths.len()) {
                let room = widths[at] - 2.0 * space::S;
                let top = rect.center().y - style.line / 2.0;
                if grid.numbers[at] {
                    let galley = ui.painter().layout_no_wrap(
                        untrusted_text::escape_line(cell).into_owned(),
                        style.font.clone(),
                        colour,
                    );
                    let left = x + space::S + (room - galley.size().x).max(0.0);
                    paint_clipped_text(ui, pos2(left, top), room, cell, &style, colour);
                } else {
                    paint_clipped_text(ui, pos2(x + space::S, top), room, cell, &style, colour);
                }
                x += widths[at];
            }
            ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, egui::Stroke::new(1.0, colours.line));
            paint_focus_ring(ui, &response, CONTROL_CORNER);
            set_accessible_name(&response, Role::Row, name);
        };
        if !grid.columns.is_empty() {
            line(ui, &grid.columns, true, &grid.columns.join(", "));
        }
        #[allow(clippy::cast_precision_loss, reason = "a dozen")]
        let high = grid.rows.len().min(MAX_VISIBLE_VIEW_ROWS) as f32 * VIEW_TABLE_ROW_HEIGHT;
        let rows = egui::ScrollArea::vertical().id_salt(("rows", salt)).max_height(high).auto_shrink([true, true]);
        rows.show_rows(ui, VIEW_TABLE_ROW_HEIGHT, grid.rows.len(), |ui, range| {
            for row in &grid.rows[range] {
                line(ui, row, false, &row.join(", "));
            }
        });
        if grid.more > 0 {
            words(ui, &format!("And {} more.", grid.more), TextLook::Caption, colours.muted);
        }
    });
}

/// Builds a figure from numbers.
fn plotted(
    at: usize,
    kind: PlotKind,
    curves: &PlotCurves,
    title: &str,
    around: &ControlContext<'_>,
    width: f32,
) -> Option<FigureSlot> {
    let several = curves.y.len() > 1;
    let mark = |(index, (name, y)): (usize, &(String, Vec<f64>))| {
        let x: Vec<Value> = curves.x.iter().take(y.len()).map(|x| json!(x)).collect();
        let y: Vec<Value> = y.iter().map(|y| if y.is_finite() { json!(y) } else { Value::Null }).collect();
        let (color, label) = (format!("C{index}"), name.as_str());
        match kind {
            PlotKind::Bar => {
                let share = 0.8 / f64::from(u32::try_from(curves.y.len()).unwrap_or(1));
                let shift = -0.4 + share * f64::from(u32::try_from(index).unwrap_or(0));
                let left: Vec<f64> = curves.x.iter().take(y.len()).map(|x| x + shift).collect();
                let zeros = vec![0.0; y.len()];
                json!({"kind": "bars", "x": left, "y": zeros, "width": vec![share; y.len()], "height": y,
                    "colors": [color], "edge": "", "alpha": 1.0, "label": label})
            }
            PlotKind::Line => json!({"kind": "line", "x": x, "y": y, "color": color, "width": 1.6, "dash": "",
                "marker": "", "size": 6.0, "alpha": 1.0, "label": label}),
            PlotKind::Points => json!({"kind": "line", "x": x, "y": y, "color": color, "width": 0.0, "dash": "none",
                "marker": "o", "size": 6.0, "alpha": 1.0, "label": label}),
        }
    };
    let marks: Vec<Value> = curves.y.iter().enumerate().map(mark).collect();
    let mut x = json!({});
    if !curves.labels.is_empty() {
        let places: Vec<f64> = curves.x.iter().take(curves.labels.len()).copied().collect();
        x["ticks"] = json!({"at": places, "labels": curves.labels});
    }
    let (place, sides) = ([0.0, 0.0, 1.0, 1.0], [x, json!({"grid": true})]);
    let mut axes = json!({"place": place, "title": title, "sides": sides, "open": "tr", "marks": marks});
    if several {
        axes["legend"] = json!({"place": "best"});
    }
    let figure = json!({"width": width.max(160.0), "height": VIEW_PLOT_HEIGHT, "title": "", "axes": [axes]});
    let mut data = serde_json::Map::new();
    data.insert(plot::FIGURE_MIME.to_owned(), figure);
    let body = OutputBody::DisplayData { data, metadata: serde_json::Map::new() };
    let hash = u64::from_le_bytes(around.name.0[..8].try_into().unwrap_or_default());
    FigureSlot::from_output((ExecutionId(hash), at), &CellOutput { body, whole: None }, width, around.pen)
}
