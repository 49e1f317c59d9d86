//! Layout helpers: clipped regions of the window, and the filter row above a list.

use crate::theme::{self, ThemeColors, size, space};
use eframe::egui;
use egui::{Align, Layout, Rect, Sense, Ui, UiBuilder, vec2};

/// Creates a child `Ui` for a region of the window, clipped to its visible part.
pub fn part(ui: &mut Ui, name: &str, rect: Rect, seen: Rect) -> Ui {
    let mut child = ui.new_child(UiBuilder::new().max_rect(rect).id_salt(name).layout(Layout::top_down(Align::Min)));
    child.set_clip_rect(seen.intersect(ui.clip_rect()));
    child
}

/// Draws a filter field with a button at its right. Returns whether the button was clicked.
pub fn filter(ui: &mut Ui, query: &mut String, (name, hint): (&str, &str), button: &str) -> bool {
    let colours = ThemeColors::of(ui);
    let width = size::NOTE_COLUMN_WIDTH.min(ui.available_width() - 2.0 * space::XL);
    let margin = ((ui.available_width() - width) / 2.0).max(0.0);
    ui.add_space(space::XL);
    let (line, _) =
        ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT + space::XS), Sense::hover());
    let line = Rect::from_x_y_ranges(line.left() + margin..=line.left() + margin + width, line.y_range());
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(line).id_salt("filter").layout(layout));
    child.spacing_mut().item_spacing.x = space::S;
    let clicked = crate::widgets::text_button(&mut child, button, false).clicked();
    let style = theme::small();
    let hint = egui::RichText::new(hint).font(style.font.clone()).color(colours.muted);
    let field = egui::TextEdit::singleline(query)
        .id_salt(name)
        .font(style.font)
        .hint_text(hint)
        .margin(egui::Margin::symmetric(8, 6))
        .desired_width(f32::INFINITY);
    child.add(field).accessible_name(name);
    ui.add_space(space::M);
    clicked
}
