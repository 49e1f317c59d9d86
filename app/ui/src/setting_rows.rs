//! Rows of the settings page: one per setting, with its control.

use crate::icons;
use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use crate::widgets::{
    append_text, chip_button, icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name,
};
use eframe::egui;
use egui::accesskit::{Role, Toggled};
use egui::{Align, Align2, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use std::ops::RangeInclusive;

/// Height of a setting whose description takes one line.
const ROW_HEIGHT: f32 = 56.0;
/// Width below which the text of a setting isn't squeezed beside its control.
const MIN_TEXT_WIDTH: f32 = 180.0;

/// Draws the settings of a page, or the matching ones of all pages.
pub struct SettingsRows<'a> {
    /// Where the rows are drawn.
    pub ui: &'a mut Ui,
    /// Search text in lowercase; empty matches all settings.
    pub wanted: &'a str,
    /// Number of settings shown.
    pub shown: usize,
}

impl SettingsRows<'_> {
    /// Draws a setting if it matches the search.
    pub fn show_matching_row(&mut self, name: &str, about: &str, control: impl FnOnce(&mut Ui)) {
        let has = |text: &str| text.to_lowercase().contains(self.wanted);
        if has(name) || has(about) {
            self.shown += 1;
            show_row(self.ui, name, about, control);
        }
    }
}

/// Draws a setting: its name and description at the left, its control at the right, or below if that leaves the text
/// too little room.
pub fn show_row(ui: &mut Ui, name: &str, about: &str, control: impl FnOnce(&mut Ui)) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("{name}: {about}"));
    // The width of the control is known from the frame before.
    let id = ui.scope_id().with(("width of control", name));
    let taken = ui.data(|data| data.get_temp::<f32>(id)).unwrap_or(0.0);
    let is_below = rect.width() - taken - space::L < MIN_TEXT_WIDTH;
    let place = if is_below {
        let top = paint_setting_text(ui, rect, rect.width(), name, about) - space::S;
        Rect::from_min_max(pos2(rect.left(), top), pos2(rect.right(), top + size::MIN_CLICK_HEIGHT + space::M))
    } else {
        rect
    };
    let layout = Layout::right_to_left(Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(place).id_salt(name).layout(layout));
    control(&mut child);
    let wanted = rect.right() - child.min_rect().left();
    if (wanted - taken).abs() > 0.5 {
        ui.data_mut(|data| data.insert_temp(id, wanted));
        ui.ctx().request_repaint();
    }
    let bottom = if is_below {
        place.bottom()
    } else {
        paint_setting_text(ui, rect, rect.width() - wanted - space::L, name, about).max(rect.bottom())
    };
    ui.add_space(bottom - rect.bottom());
    ui.painter().hline(rect.x_range(), bottom - 0.5, Stroke::new(1.0, ThemeColors::of(ui).line));
}

/// Paints the name of a setting and its description, which takes as many lines as it needs. Returns where the row ends.
fn paint_setting_text(ui: &Ui, row: Rect, width: f32, name: &str, about: &str) -> f32 {
    let colours = ThemeColors::of(ui);
    let small = theme::TypeStyle { font: theme::inter_font(theme::InterCut::Regular, 13.0), line: 20.0 };
    paint_clipped_text(ui, pos2(row.left(), row.top() + 8.0), width, name, &small, colours.ink);
    let caption = theme::caption();
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = width.max(80.0);
    append_text(&mut job, about, &caption, colours.muted);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let top = row.top() + 28.0;
    let bottom = top + galley.size().y + space::M;
    ui.painter().galley(pos2(row.left(), top), galley, colours.muted);
    bottom
}

/// Draws a group of options of which one is selected. Returns the clicked one.
pub fn segmented_control(ui: &mut Ui, names: &[&str], chosen: Option<usize>) -> Option<usize> {
    let mut clicked = None;
    ui.spacing_mut().item_spacing.x = space::XS;
    for (place, name) in names.iter().enumerate().rev() {
        if chip_button(ui, name, name, Some(place) == chosen, &theme::caption()) {
            clicked = Some(place);
        }
    }
    clicked
}

/// Draws a switch. Returns whether it was clicked.
pub fn toggle_switch(ui: &mut Ui, name: &str, on: bool) -> bool {
    let (rect, response) = ui.allocate_exact_size(vec2(40.0, size::MIN_CLICK_HEIGHT), Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(Role::Switch, true, on, name));
    let toggled = if on { Toggled::True } else { Toggled::False };
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_toggled(toggled));
    let colours = ThemeColors::of(ui);
    let body = Rect::from_center_size(rect.center(), vec2(36.0, 20.0));
    ui.painter().rect_filled(body, 10.0, if on { colours.accent } else { colours.muted.gamma_multiply(0.6) });
    let x = if on { body.right() - 10.0 } else { body.left() + 10.0 };
    ui.painter().circle_filled(pos2(x, body.center().y), 7.0, colours.raised);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    response.clicked()
}

/// Draws a stepper for a percentage, in steps of ten percentage points. Returns the new value.
pub fn stepper(ui: &mut Ui, name: &str, value: f32, range: RangeInclusive<f32>) -> Option<f32> {
    stepped(ui, name, value, range, 0.1, &format!("{:.0} %", value * 100.0))
}

/// Draws a stepper for a width in points, in steps of 20. Returns the new value.
pub fn points(ui: &mut Ui, name: &str, value: f32, range: RangeInclusive<f32>) -> Option<f32> {
    stepped(ui, name, value, range, 20.0, &format!("{value:.0}"))
}

fn stepped(ui: &mut Ui, name: &str, value: f32, range: RangeInclusive<f32>, step: f32, text: &str) -> Option<f32> {
    let mut wanted = None;
    let by = |by: f32| (((value / step).round() * step) + by).clamp(*range.start(), *range.end());
    if icon_button(ui, icons::PLUS, &format!("Increase {name}"), None).clicked() {
        wanted = Some(by(step));
    }
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(52.0, size::MIN_CLICK_HEIGHT), Sense::hover());
    set_accessible_name(&response, Role::Label, &format!("{}: {text}", crate::text::sentence(name)));
    ui.painter().text(rect.center(), Align2::CENTER_CENTER, text, theme::tabular_font(13.0), colours.ink);
    if icon_button(ui, icons::MINUS, &format!("Decrease {name}"), None).clicked() {
        wanted = Some(by(-step));
    }
    wanted
}

/// Draws a text field. Returns the text once it's committed: by Enter, or when the field loses focus.
pub fn text(ui: &mut Ui, name: &str, kept: &str, hint: &str) -> Option<String> {
    let id = ui.scope_id().with(("text of", name));
    // Text being edited, until it's committed.
    let mut written: String = ui.data_mut(|data| data.get_temp(id)).unwrap_or_else(|| kept.to_owned());
    let style = theme::small();
    let hint = egui::RichText::new(hint).font(style.font.clone()).color(ThemeColors::of(ui).muted);
    let field = egui::TextEdit::singleline(&mut written).id(id.with("field")).font(style.font).hint_text(hint);
    let response = ui.add(field.desired_width(200.0).margin(egui::Margin::symmetric(8, 6)));
    let response = response.accessible_name(name);
    if response.has_focus() {
        ui.data_mut(|data| data.insert_temp(id, written));
        return None;
    }
    if response.lost_focus() {
        ui.data_mut(|data| data.remove::<String>(id));
        return (written != kept).then_some(written);
    }
    None
}
