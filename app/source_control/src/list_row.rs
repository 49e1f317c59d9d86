//! A row of a list with an icon, a title, details and a menu.

use super::ROW_HEIGHT;
use super::change_list::paint_row;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Layout, Response, Sense, Ui, UiBuilder, pos2, vec2};
use ui::icons;
use ui::menus::menu_below;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name};

/// What a row shows.
pub(crate) struct ListRow<'a> {
    pub(crate) icon: &'a str,
    pub(crate) title: &'a str,
    pub(crate) detail: &'a str,
    /// The row for screen readers.
    pub(crate) name: &'a str,
    /// Whether it can be unfolded, and is.
    pub(crate) is_open: Option<bool>,
}

impl ListRow<'_> {
    /// Draws the row, and its menu if there's something to do. Returns whether the row was clicked.
    pub(crate) fn show(&self, ui: &mut Ui, menu_name: Option<&str>, menu: impl FnOnce(&mut Ui)) -> bool {
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
