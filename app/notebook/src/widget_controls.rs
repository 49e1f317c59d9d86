//! Controls of widgets: cells that set a variable. A change becomes an edit of the note, and then the cells that depend
//! on the variable run. This module only draws and returns actions.

use crate::actions::PageAction;
use editor::render::TextStyleContext;
use editor::row_layout::{RowLayout, RowPart, SourceMap, SourceRun};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Layout, Pos2, Rect, Ui, UiBuilder, Vec2, vec2};
use engine::{Command, Note};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use store::BlockId;
use text::cell_form::CellForm;
use text::task::CalendarDay;
use text::text_edit::trim_common;
use text::untrusted_text;
use text::widget::{self, WidgetControl, WidgetSpec};
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{check_box, icon_button, set_accessible_name};

/// Height of a widget's box.
const WIDGET_BOX_HEIGHT: f32 = size::MIN_CLICK_HEIGHT + 2.0 * crate::cells::CELL_PADDING;
/// Maximum share of the column that a label takes.
const MAX_LABEL_SHARE: f32 = 0.35;
/// Space at the right for the caption of the cell's last run.
const CAPTION_WIDTH: f32 = 120.0;
/// Maximum width of a control.
const MAX_CONTROL_WIDTH: f32 = 320.0;

/// State of a note's controls that's kept between frames.
#[derive(Default)]
pub struct WidgetControls {
    /// Sliders being dragged, and their values.
    moved: HashMap<BlockId, f64>,
    /// Fields being edited, and their text.
    typed: HashMap<BlockId, String>,
    /// Changed widgets whose dependents haven't run since.
    changed: BTreeSet<BlockId>,
}

/// Parses a cell as a widget. Returns `None` if it isn't one.
pub fn widget_of(block: &str) -> Option<Result<WidgetSpec, widget::WidgetError>> {
    let parts = text::markdown::parse_cell(block).filter(|parts| parts.form == CellForm::Widget)?;
    Some(WidgetSpec::parse(&block[parts.code]))
}

/// Lays out a widget's row: its control is drawn later.
pub fn widget_row(source: &str, spec: &WidgetSpec, pen: TextStyleContext<'_>) -> RowLayout {
    let galley = pen.text("", &theme::body(), pen.colours.ink, f32::INFINITY);
    let map = SourceMap { runs: vec![SourceRun { chars: 0, source: 0..source.len(), exact: false }] };
    let parts = vec![RowPart::Text { at: Vec2::ZERO, galley, map, links: Vec::new() }];
    let text = format!("Widget {}: {}", spec.name, widget::option_text(&spec.value()));
    RowLayout { height: WIDGET_BOX_HEIGHT, parts, bare: false, text }
}

/// Shows an error below a widget's source.
pub fn add_error(drawn: &mut RowLayout, why: &widget::WidgetError, width: f32, pen: TextStyleContext<'_>) {
    let said = untrusted_text::escape_line(&why.to_string()).into_owned();
    let galley = pen.text(&said, &theme::caption(), pen.colours.bad, width);
    let at = vec2(0.0, drawn.height - crate::cells::CELL_PADDING);
    drawn.height += galley.size().y + space::XS;
    drawn.parts.push(RowPart::Text { at, galley, map: SourceMap::default(), links: Vec::new() });
    drawn.text.push_str(&said);
}

impl WidgetControls {
    /// Runs the dependents of changed widgets as soon as nothing else runs, so that changes in quick succession cause
    /// one run.
    pub fn run_dependents(&mut self, note: &Note, actions: &mut Vec<PageAction>) {
        if self.changed.is_empty() || !note.pending_cells().is_empty() {
            return;
        }
        let order: Vec<BlockId> = note.cells().collect();
        let changed = std::mem::take(&mut self.changed);
        let needed: BTreeSet<BlockId> = changed.iter().flat_map(|cell| note.cells_after_change(*cell)).collect();
        let cells: Vec<BlockId> = order.into_iter().filter(|cell| needed.contains(cell)).collect();
        if !cells.is_empty() {
            actions.push(PageAction::Do(Command::RunCells { note: note.id, cells }));
        }
    }

    /// Draws a widget's control into its box, which begins at `origin` in a column of this width.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        note: &Note,
        (cell, spec): (BlockId, &WidgetSpec),
        (origin, width): (Pos2, f32),
        actions: &mut Vec<PageAction>,
    ) {
        let place = origin + vec2(0.0, crate::cells::CELL_PADDING);
        let rect = Rect::from_min_size(place, vec2((width - CAPTION_WIDTH).max(120.0), size::MIN_CLICK_HEIGHT));
        let layout = Layout::left_to_right(Align::Center);
        let mut row = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(("widget", cell)).layout(layout));
        row.spacing_mut().item_spacing.x = space::S;
        let label = untrusted_text::escape_line(&spec.label).into_owned();
        if !matches!(spec.control, WidgetControl::Checkbox { .. }) {
            let style = theme::small();
            let text = egui::RichText::new(&label).font(style.font).color(ThemeColors::of(&row).ink);
            row.scope(|ui| {
                ui.set_max_width(width * MAX_LABEL_SHARE);
                ui.add(egui::Label::new(text).truncate().selectable(false));
            });
        }
        let value = self.control(&mut row, (cell, spec), &label);
        if icon_button(&mut row, icons::PENCIL, &format!("Edit widget {}", spec.name), None).clicked()
            && let (Some(start), Some(parts)) = (note.block_start(cell), note.cell_parts(cell))
        {
            actions.push(PageAction::Place(start + parts.code.start));
        }
        if let Some(value) = value.filter(|value| *value != spec.value()) {
            self.set(note, cell, &value, actions);
        }
    }

    /// Draws the control. Returns its new value.
    fn control(&mut self, ui: &mut Ui, (cell, spec): (BlockId, &WidgetSpec), label: &str) -> Option<Value> {
        let room = (ui.available_width() - size::MIN_CLICK_HEIGHT - space::S).clamp(80.0, MAX_CONTROL_WIDTH);
        match &spec.control {
            WidgetControl::Slider { min, max, step, value, whole } => {
                let set = value.as_f64().unwrap_or(*min);
                let mut now = self.moved.get(&cell).copied().unwrap_or(set);
                let slider = egui::Slider::new(&mut now, *min..=*max).step_by(*step);
                let slider = if *whole { slider.fixed_decimals(0) } else { slider };
                ui.spacing_mut().slider_width = (room - 64.0).max(60.0);
                ui.spacing_mut().interact_size.y = size::MIN_CLICK_HEIGHT;
                let response = ui.add(slider).accessible_name(label);
                if response.changed() {
                    self.moved.insert(cell, now);
                }
                // The note is edited once, when the drag ends.
                let rests = !response.dragged() && !response.is_pointer_button_down_on();
                let moved = self.moved.remove(&cell)?;
                if rests {
                    return spec.slider_value(moved).map(Value::Number);
                }
                self.moved.insert(cell, moved);
                None
            }
            WidgetControl::Select { options, value } => {
                let mut chosen = None;
                let shown = untrusted_text::escape_line(&widget::option_text(value)).into_owned();
                let picked = egui::ComboBox::from_id_salt("options").width(room.min(200.0)).selected_text(shown);
                let picked = picked.show_ui(ui, |ui| {
                    for option in options {
                        let words = widget::option_text(option);
                        if ui.selectable_label(option == value, untrusted_text::escape_line(&words)).clicked() {
                            chosen = Some(option.clone());
                        }
                    }
                });
                set_accessible_name(&picked.response, Role::ComboBox, label);
                chosen
            }
            WidgetControl::Checkbox { value } => {
                let mut on = *value;
                check_box(ui, &mut on, label).changed().then_some(Value::Bool(on))
            }
            WidgetControl::Text { value } => self.field(ui, cell, value, room, label).map(Value::String),
            WidgetControl::Date { value } => {
                let day = |days: i64| {
                    let (year, month, day) = *value;
                    CalendarDay(CalendarDay::from_date(year, month, day).0 + days).date()
                };
                let is_before = icon_button(ui, icons::CARET_LEFT, &format!("{label}: day before"), None).clicked();
                let typed = self.field(ui, cell, &widget::day_text(*value), 110.0, label);
                let is_after = icon_button(ui, icons::CARET_RIGHT, &format!("{label}: day after"), None).clicked();
                let day = match (is_before, is_after) {
                    (true, _) => widget::parse_day(&widget::day_text(day(-1))),
                    (_, true) => widget::parse_day(&widget::day_text(day(1))),
                    // An invalid date is ignored, and the field shows the old one again.
                    _ => typed.and_then(|typed| widget::parse_day(typed.trim())),
                };
                day.map(|day| Value::String(widget::day_text(day)))
            }
        }
    }

    /// Draws a text field. Returns its text when it loses focus.
    fn field(&mut self, ui: &mut Ui, cell: BlockId, value: &str, width: f32, label: &str) -> Option<String> {
        let mut text = self.typed.get(&cell).cloned().unwrap_or_else(|| value.to_owned());
        let edit = egui::TextEdit::singleline(&mut text)
            .id_salt("field")
            .font(theme::small().font)
            .margin(egui::Margin::symmetric(8, 6))
            .desired_width(width);
        let response = ui.add(edit).accessible_name(label);
        if response.changed() {
            self.typed.insert(cell, text);
        }
        if response.lost_focus() { self.typed.remove(&cell) } else { None }
    }

    /// Edits the note to set the widget's value.
    fn set(&mut self, note: &Note, cell: BlockId, value: &Value, actions: &mut Vec<PageAction>) {
        let place = note.block_start(cell).zip(note.cell_parts(cell)).zip(note.cell_code(cell));
        let Some(((start, parts), code)) = place else { return };
        match widget::with_value(code, value) {
            Ok(new) => {
                let (old, range) = trim_common(code, &new);
                let (at, delete) = (start + parts.code.start + old.start, old.len());
                let insert = new[range].to_owned();
                actions.push(PageAction::Do(Command::Edit { note: note.id, at, delete, insert }));
                self.changed.insert(cell);
            }
            Err(why) => actions.push(PageAction::Say(format!("{why}."))),
        }
    }
}
