//! Placeholders in the main area: empty, nothing selected, loading, failed. Each has one sentence and one action.

use crate::theme::{self, ThemeColors, size, space};
use crate::widgets::{append_text, set_accessible_name, text_button};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Rect, Ui, pos2, vec2};

/// Delay before a loading skeleton is shown, in seconds.
pub const SKELETON_DELAY_SECONDS: f64 = 0.15;

/// Draws a centered message with a button below it. Returns whether the button was clicked.
pub fn show_message(ui: &mut Ui, text: &str, button: Option<&str>, hint: &str) -> bool {
    let colours = ThemeColors::of(ui);
    let area = ui.max_rect();
    let width = 420.0_f32.min(area.width() - 2.0 * space::XL);
    let place = Rect::from_center_size(area.center() - vec2(0.0, area.height() * 0.08), vec2(width, 160.0));
    let mut child =
        ui.new_child(egui::UiBuilder::new().max_rect(place).layout(egui::Layout::top_down(egui::Align::Center)));
    let mut job = egui::text::LayoutJob { halign: egui::Align::Center, ..Default::default() };
    job.wrap.max_width = width;
    append_text(&mut job, text, &theme::body(), colours.ink);
    if !hint.is_empty() {
        append_text(&mut job, &format!("\n{hint}"), &theme::small(), colours.muted);
    }
    let response = child.label(job);
    set_accessible_name(&response, Role::Label, text);
    child.add_space(space::L);
    button.is_some_and(|button| text_button(&mut child, button, true).clicked())
}

/// Draws a message in a panel: wrapped text with a button below it. Returns whether the button was clicked.
pub fn show_panel_message(ui: &mut Ui, text: &str, button: Option<&str>) -> bool {
    let colours = ThemeColors::of(ui);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = (ui.available_width() - 2.0 * space::L).max(80.0);
    append_text(&mut job, text, &theme::small(), colours.muted);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let wanted = vec2(ui.available_width(), galley.size().y + 2.0 * space::S);
    let (rect, response) = ui.allocate_exact_size(wanted, egui::Sense::hover());
    set_accessible_name(&response, Role::Label, text);
    ui.painter().galley(rect.min + vec2(space::L, space::S), galley, colours.muted);
    let Some(button) = button else { return false };
    ui.horizontal(|ui| {
        ui.add_space(space::L);
        text_button(ui, button, false).clicked()
    })
    .inner
}

/// Draws bars where text will be.
pub fn show_skeleton(ui: &Ui, column: f32, margin: f32) {
    let colours = ThemeColors::of(ui);
    let area = ui.max_rect();
    let left = area.left() + margin;
    let mut y = area.top() + space::XXL;
    for (width, height, gap) in [
        (0.4, 24.0, 24.0),
        (1.0, 12.0, 12.0),
        (0.96, 12.0, 12.0),
        (0.7, 12.0, 32.0),
        (0.98, 12.0, 12.0),
        (0.5, 12.0, 12.0),
    ] {
        let rect = Rect::from_min_size(pos2(left, y), vec2(column * width, height));
        ui.painter().rect_filled(rect, theme::CONTROL_CORNER, colours.sunken);
        y += height + gap;
    }
}

/// Draws a banner with a problem above the note. Returns whether it was dismissed.
pub fn show_banner(ui: &mut Ui, icon: &str, text: &str, colour: egui::Color32, can_go: bool) -> bool {
    let rect = draw_banner(ui, icon, text, colour, if can_go { size::MIN_CLICK_HEIGHT + space::S } else { 0.0 });
    if !can_go {
        return false;
    }
    let corner = Rect::from_min_size(
        pos2(rect.right() - space::S - size::MIN_CLICK_HEIGHT, rect.top() + space::XS),
        vec2(size::MIN_CLICK_HEIGHT, size::MIN_CLICK_HEIGHT),
    );
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(corner).id_salt(text));
    crate::widgets::icon_button(&mut child, crate::icons::X, "Dismiss", None).clicked()
}

/// Draws a banner with a problem above the note, and buttons for what can be done about it. Returns the index of the
/// clicked one.
pub fn show_action_banner(
    ui: &mut Ui,
    icon: &str,
    text: &str,
    colour: egui::Color32,
    buttons: &[&str],
) -> Option<usize> {
    let font = theme::small().font;
    let width = |button: &&str| {
        let label = ui.painter().layout_no_wrap((*button).to_owned(), font.clone(), colour);
        label.size().x + 2.0 * space::M + space::S
    };
    let room: f32 = buttons.iter().map(width).sum();
    let rect = draw_banner(ui, icon, text, colour, room);
    let place = Rect::from_min_max(pos2(rect.right() - room - space::S, rect.top()), rect.max - vec2(space::S, 0.0));
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(place).id_salt(("actions", text)).layout(layout));
    child.spacing_mut().item_spacing.x = space::S;
    let mut clicked = None;
    for (index, button) in buttons.iter().enumerate().rev() {
        if text_button(&mut child, button, false).clicked() {
            clicked = Some(index);
        }
    }
    clicked
}

/// Draws a banner's text and leaves room at its right. Returns its rectangle.
fn draw_banner(ui: &mut Ui, icon: &str, text: &str, colour: egui::Color32, room: f32) -> Rect {
    let colours = ThemeColors::of(ui);
    let width = ui.available_width();
    let inner = width - 2.0 * space::L - space::XL - room;
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = inner.max(80.0);
    append_text(&mut job, text, &theme::small(), colours.ink);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let height = (galley.size().y + space::L).max(size::TOOLBAR_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(vec2(width, height), egui::Sense::hover());
    set_accessible_name(&response, Role::Label, text);
    ui.painter().rect_filled(rect, 0.0, colours.sunken);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, egui::Stroke::new(1.0, colours.line));
    let first = rect.top() + (height - galley.size().y) / 2.0;
    let at = pos2(rect.left() + space::L + 8.0, first + 10.0);
    ui.painter().text(at, egui::Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    ui.painter().galley(pos2(rect.left() + space::L + space::XL, first), galley, colours.ink);
    rect
}
