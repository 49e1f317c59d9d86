//! Parts that pages share: headings of sections, rows of lists, lines and messages.

use crate::icons;
use crate::menus::menu_below;
use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use crate::widgets::{
    append_text, icon_button, paint_clipped_text, paint_focus_ring, set_accessible_name, text_button,
};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Layout, Rect, Response, Sense, Ui, UiBuilder, pos2, vec2};

/// Height of a row of a list.
pub const ROW_HEIGHT: f32 = 32.0;

/// Draws a page as a column of at most this width, which scrolls. `salts`: for the scroll area, and for the column.
pub fn show_column(ui: &mut Ui, max_width: f32, salts: (&str, &str), add: impl FnOnce(&mut Ui)) {
    let width = max_width.min(ui.available_width() - 2.0 * space::XL).max(120.0);
    let margin = ((ui.available_width() - width) / 2.0).max(space::S);
    let all = ui.available_rect_before_wrap();
    egui::ScrollArea::vertical().id_salt(salts.0).auto_shrink(false).show(ui, |ui| {
        let column = Rect::from_min_size(pos2(all.left() + margin, ui.cursor().top()), vec2(width, f32::INFINITY));
        let mut child = ui.new_child(UiBuilder::new().max_rect(column).id_salt(salts.1));
        child.spacing_mut().item_spacing = vec2(space::S, 0.0);
        child.add_space(space::L);
        add(&mut child);
        child.add_space(space::XL);
        let used = child.min_rect().height();
        ui.allocate_exact_size(vec2(ui.available_width(), used), Sense::hover());
    });
}

/// The content of a row in a list.
pub struct ListRow<'a> {
    /// Its icon.
    pub icon: &'a str,
    /// Its text.
    pub title: &'a str,
    /// What follows the text, less prominent.
    pub detail: &'a str,
    /// The row for screen readers.
    pub name: &'a str,
    /// Whether it can be unfolded, and is.
    pub is_open: Option<bool>,
}

impl ListRow<'_> {
    /// Draws the row, and its menu if there's something to do. Returns whether the row was clicked.
    pub fn show(&self, ui: &mut Ui, menu_name: Option<&str>, menu: impl FnOnce(&mut Ui)) -> bool {
        let (row, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
        if !ui.is_rect_visible(row) {
            return false;
        }
        let mut right = row.right();
        if let Some(menu_name) = menu_name {
            let place = row.shrink2(vec2(0.0, (row.height() - size::MIN_CLICK_HEIGHT) / 2.0));
            let builder = UiBuilder::new().max_rect(place).id_salt(("menu", self.name));
            let mut child = ui.new_child(builder.layout(Layout::right_to_left(Align::Center)));
            let button = icon_button(&mut child, icons::MORE, menu_name, None);
            menu_below(&button, menu_name, menu);
            right = child.min_rect().left() - space::S;
        }
        let rect = row.with_max_x(right);
        let sense = if self.is_open.is_some() { Sense::click() } else { Sense::hover() };
        let response = ui.interact(rect, ui.scope_id().with(("row", self.name)), sense);
        self.paint(ui, &response);
        response.clicked()
    }

    fn paint(&self, ui: &Ui, response: &Response) {
        let role = if self.is_open.is_some() { Role::Button } else { Role::Label };
        set_accessible_name(response, role, self.name);
        if let Some(is_open) = self.is_open {
            ui.ctx().accesskit_node_builder(response.id, |node| node.set_expanded(is_open));
            paint_row(ui, response, is_open);
        }
        let colours = ThemeColors::of(ui);
        let rect = response.rect;
        let at = pos2(rect.left() + space::M, rect.center().y);
        ui.painter().text(at, Align2::CENTER_CENTER, self.icon, theme::icon_font(14.0), colours.muted);
        let at = pos2(rect.left() + 28.0, rect.center().y - 10.0);
        let room = rect.width() - 28.0 - space::S;
        let used = paint_clipped_text(ui, at, room, self.title, &theme::small(), colours.ink) + space::M;
        if room > used {
            let at = pos2(rect.left() + 28.0 + used, rect.center().y - 8.0);
            paint_clipped_text(ui, at, room - used, self.detail, &theme::caption(), colours.muted);
        }
    }
}

/// Paints the background of a row.
pub fn paint_row(ui: &Ui, response: &Response, is_open: bool) {
    let colours = ThemeColors::of(ui);
    if is_open {
        ui.painter().rect_filled(response.rect, CONTROL_CORNER, colours.accent_ground);
    } else if response.hovered() {
        ui.painter().rect_filled(response.rect, CONTROL_CORNER, colours.hover_color(colours.paper));
    }
    paint_focus_ring(ui, response, CONTROL_CORNER);
}

/// Draws a section's heading with buttons at its right. Returns the clicked one.
pub fn section<'a>(ui: &mut Ui, title: &str, buttons: &[&'a str]) -> Option<&'a str> {
    ui.add_space(space::L);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::hover());
    let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::SemiBold, 13.0), line: 20.0 };
    let at = pos2(rect.left(), rect.center().y - 10.0);
    let width = paint_clipped_text(ui, at, rect.width() - 100.0, title, &style, ThemeColors::of(ui).ink);
    let place = Rect::from_min_size(rect.min, vec2(width, rect.height()));
    let response = ui.interact(place, ui.scope_id().with(("section", title)), Sense::hover());
    set_accessible_name(&response, Role::Heading, title);
    // Titles may have a number that changes while a button is pressed.
    let name = title.split(" (").next();
    let builder = UiBuilder::new().max_rect(rect).scope_id(ui.scope_id().with(("buttons", name)));
    let mut child = ui.new_child(builder.layout(egui::Layout::right_to_left(egui::Align::Center)));
    let clicked = buttons.iter().find(|name| text_button(&mut child, name, false).clicked()).copied();
    ui.add_space(space::XS);
    clicked
}

/// Draws text with an icon, in as many lines as it needs.
pub fn note_line(ui: &mut Ui, icon: &str, text: &str) {
    let colours = ThemeColors::of(ui);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = (ui.available_width() - space::XL).max(80.0);
    append_text(&mut job, text, &theme::small(), colours.muted);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let height = (galley.size().y + 2.0 * space::XS).max(size::MIN_CLICK_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let at = pos2(rect.left() + 8.0, rect.top() + size::MIN_CLICK_HEIGHT / 2.0);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(14.0), colours.muted);
    ui.painter().galley(pos2(rect.left() + space::XL, rect.top() + space::XS), galley, colours.muted);
    set_accessible_name(&response, Role::Label, text);
}

/// Draws a message with buttons below it. Returns the clicked one.
pub fn banner<'a>(
    ui: &mut Ui,
    (icon, colour): (&str, egui::Color32),
    text: &str,
    buttons: &[&'a str],
) -> Option<&'a str> {
    let colours = ThemeColors::of(ui);
    let mut job = egui::text::LayoutJob::default();
    job.wrap.max_width = (ui.available_width() - space::XL - 2.0 * space::M).max(80.0);
    job.wrap.max_rows = 8;
    append_text(&mut job, text, &theme::small(), colours.ink);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let height = galley.size().y + size::MIN_CLICK_HEIGHT + 2.0 * space::S + space::XS;
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    set_accessible_name(&response, Role::Label, text);
    ui.painter().rect_filled(rect, CONTROL_CORNER, colours.sunken);
    let at = pos2(rect.left() + space::M + 6.0, rect.top() + space::S + 10.0);
    ui.painter().text(at, Align2::CENTER_CENTER, icon, theme::icon_font(size::ICON_SIZE), colour);
    ui.painter().galley(pos2(rect.left() + space::M + space::XL, rect.top() + space::S), galley, colours.ink);
    let foot = Rect::from_min_max(
        pos2(rect.left() + space::M + space::L, rect.bottom() - size::MIN_CLICK_HEIGHT - space::XS),
        rect.max - vec2(space::S, space::XS),
    );
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    let mut child = ui.new_child(UiBuilder::new().max_rect(foot).id_salt("banner").layout(layout));
    let clicked = buttons.iter().find(|name| text_button(&mut child, name, false).clicked()).copied();
    ui.add_space(space::M);
    clicked
}

/// Draws a text field with this hint, which is its name, too.
pub fn text_field(ui: &mut Ui, text: &mut String, name: &str, width: f32) -> egui::Response {
    let style = theme::small();
    let hint = egui::RichText::new(name).font(style.font.clone()).color(ThemeColors::of(ui).muted);
    let field = egui::TextEdit::singleline(text)
        .id_salt(name)
        .font(style.font)
        .hint_text(hint)
        .margin(egui::Margin::symmetric(8, 6))
        .min_size(vec2(0.0, size::MIN_CLICK_HEIGHT))
        .desired_width(width.min(ui.available_width()));
    ui.add(field).accessible_name(name)
}
