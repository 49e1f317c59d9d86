//! Popup menus: items with their keys at the right.

use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use crate::widgets::{floating_frame, set_accessible_name};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Frame, Margin, Popup, Response, Sense, Stroke, Ui, vec2};

/// Width of a menu, in points.
pub const MENU_WIDTH: f32 = 264.0;

/// Returns the frame of a menu.
pub fn menu_frame(ui: &Ui) -> Frame {
    menu_frame_for(ui.visuals().dark_mode)
}

/// Returns the frame of a menu in these colors.
pub fn menu_frame_for(dark: bool) -> Frame {
    floating_frame(ThemeColors::for_dark_mode(dark), dark).inner_margin(Margin::same(4))
}

/// Shows a button's menu below it; `name` is the menu's accessible name.
pub fn menu_below(button: &Response, name: &str, content: impl FnOnce(&mut Ui)) {
    show_menu(Popup::menu(button), button, name, content);
}

/// Shows a menu at the pointer after a right click; `name` is the menu's accessible name.
pub fn context_menu(target: &Response, name: &str, content: impl FnOnce(&mut Ui)) {
    show_menu(Popup::context_menu(target), target, name, content);
}

fn show_menu(popup: Popup<'_>, target: &Response, name: &str, content: impl FnOnce(&mut Ui)) {
    let frame = menu_frame_for(target.ctx.global_style().visuals.dark_mode);
    popup.frame(frame).width(MENU_WIDTH).accessible_name(name).show(|ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        content(ui);
    });
}

/// Draws a menu item with its key at the right. Returns whether it was chosen. A disabled item is muted.
pub fn menu_item(ui: &mut Ui, name: &str, key: Option<&str>, enabled: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let sense = if enabled { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(MENU_WIDTH, size::MIN_CLICK_HEIGHT), sense);
    if enabled {
        set_accessible_name(&response, Role::MenuItem, name);
    } else {
        response
            .widget_info(|| egui::WidgetInfo::labeled(Role::MenuItem, false, text::untrusted_text::escape_line(name)));
    }
    if enabled && (response.hovered() || response.has_focus()) {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    }
    let inner = rect.shrink2(vec2(space::S, 0.0));
    let key = key.unwrap_or("");
    let keys = ui.painter().layout_no_wrap(key.to_owned(), theme::caption().font, colours.muted);
    let room = inner.width() - keys.size().x - space::M;
    let colour = if enabled { colours.ink } else { colours.muted };
    let at = egui::pos2(inner.left(), inner.center().y - theme::small().line / 2.0);
    crate::widgets::paint_clipped_text(ui, at, room, name, &theme::small(), colour);
    let place = Align2::RIGHT_CENTER.align_size_within_rect(keys.size(), inner);
    ui.painter().galley(place.min, keys, colours.muted);
    let chosen = response.clicked();
    if chosen {
        ui.close();
    }
    chosen
}

/// Draws a muted sentence about the item above it.
pub fn menu_note(ui: &mut Ui, text: &str) {
    let style = theme::caption();
    let (rect, response) = ui.allocate_exact_size(vec2(MENU_WIDTH, style.line + space::XS), Sense::hover());
    let inner = rect.shrink2(vec2(space::S, 0.0));
    let colour = ThemeColors::of(ui).muted;
    crate::widgets::paint_clipped_text(ui, inner.left_top(), inner.width(), text, &style, colour);
    set_accessible_name(&response, Role::Label, text);
}

/// Draws one of several mutually exclusive menu items. Returns whether it was chosen.
pub fn menu_choice(ui: &mut Ui, name: &str, is_chosen: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(MENU_WIDTH, size::MIN_CLICK_HEIGHT), Sense::click());
    response.widget_info(|| {
        egui::WidgetInfo::selected(Role::MenuItemRadio, true, is_chosen, text::untrusted_text::escape_line(name))
    });
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    }
    let inner = rect.shrink2(vec2(space::S, 0.0));
    let at = egui::pos2(inner.left(), inner.center().y - theme::small().line / 2.0);
    crate::widgets::paint_clipped_text(ui, at, inner.width() - space::XL, name, &theme::small(), colours.ink);
    if is_chosen {
        let font = theme::icon_font(size::ICON_SIZE);
        ui.painter().text(inner.right_center(), Align2::RIGHT_CENTER, crate::icons::CHECK, font, colours.accent);
    }
    let chosen = response.clicked();
    if chosen {
        ui.close();
    }
    chosen
}

/// Draws a line between groups of items.
pub fn menu_separator(ui: &mut Ui) {
    let (rect, _) = ui.allocate_exact_size(vec2(MENU_WIDTH, space::S), Sense::hover());
    ui.painter().hline(rect.x_range(), rect.center().y, Stroke::new(1.0, ThemeColors::of(ui).line));
}
