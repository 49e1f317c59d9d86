//! Opens the menu behind a slash and writes what is chosen from it.

use crate::app_window::AppWindow;
use crate::overlays::slash_menu::{
    MAX_VISIBLE_SLASH_ROWS, SLASH_MENU_WIDTH, SLASH_ROW_HEIGHT, SlashMenu, filter, line, written,
};
use editor::editor_keys::KeyOutcome;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Area, Id, Key, Modifiers, Order, Sense, pos2, vec2};
use ui::theme::{CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{floating_frame, set_accessible_name};

impl AppWindow {
    /// Opens the menu behind a slash that was just typed, and closes it where it no longer fits.
    pub(crate) fn sync_slash(&mut self, ctx: &egui::Context, typed: bool) {
        if self.input.slash.is_none() && !typed {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        let words = self.with_note(ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            filter(editor, &target)
        });
        match words.flatten() {
            Some(words) if typed || self.input.slash.is_some() => {
                let slash = self.input.slash.get_or_insert_default();
                if slash.filter != words {
                    *slash = SlashMenu { chosen: 0, filter: words };
                }
                if slash.entries().is_empty() {
                    self.input.slash = None;
                }
            }
            _ => self.input.slash = None,
        }
    }

    /// Keys while the menu is open.
    pub(crate) fn slash_key(&mut self, ctx: &egui::Context, key: Key, modifiers: Modifiers) -> bool {
        // A key of this very frame may have changed what is typed.
        self.sync_slash(ctx, false);
        let Some(slash) = self.input.slash.as_mut().filter(|_| modifiers.is_none()) else { return false };
        let count = slash.entries().len().max(1);
        match key {
            Key::ArrowDown => slash.chosen = (slash.chosen + 1) % count,
            Key::ArrowUp => slash.chosen = (slash.chosen + count - 1) % count,
            Key::Escape => self.input.slash = None,
            Key::Enter | Key::Tab => self.write_entry(ctx),
            _ => return false,
        }
        ctx.request_repaint();
        true
    }

    /// Writes what is chosen in place of the slash and what is behind it.
    fn write_entry(&mut self, ctx: &egui::Context) {
        let Some(slash) = self.input.slash.take() else { return };
        let Some(entry) = slash.entries().get(slash.chosen).copied() else { return };
        let (text, caret) = written(entry);
        self.write(
            ctx,
            |editor, world| match editor.edit_target(world) {
                Some(target) => KeyOutcome::edit(target.replace(0..target.shown.len(), &text, caret)),
                None => KeyOutcome::Not,
            },
            false,
        );
    }

    /// Draws the menu below the caret.
    pub(crate) fn slash_menu(&mut self, ctx: &egui::Context) {
        self.sync_slash(ctx, false);
        let (Some(slash), Some(caret)) = (&mut self.input.slash, self.panes.active.editor.seen) else { return };
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let entries = slash.entries();
        #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
        let height = entries.len().min(MAX_VISIBLE_SLASH_ROWS) as f32 * SLASH_ROW_HEIGHT + space::S;
        let below = caret.bottom() + space::XS;
        let top = if below + height > ctx.content_rect().bottom() { caret.top() - height - space::XS } else { below };
        let first = (slash.chosen + 1).saturating_sub(MAX_VISIBLE_SLASH_ROWS);
        let mut clicked = None;
        Area::new(Id::unique("slash")).order(Order::Foreground).fixed_pos(pos2(caret.left(), top)).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.set_width(SLASH_MENU_WIDTH);
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, entry) in entries.iter().enumerate().skip(first).take(MAX_VISIBLE_SLASH_ROWS) {
                    let (rect, response) = ui.allocate_exact_size(
                        vec2(SLASH_MENU_WIDTH, SLASH_ROW_HEIGHT),
                        Sense::click() - Sense::FOCUSABLE,
                    );
                    set_accessible_name(&response, Role::MenuItem, entry.title);
                    if index == slash.chosen {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
                    } else if response.hovered() {
                        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.hover_color(colours.raised));
                    }
                    line(ui, rect, entry, colours);
                    if response.clicked() {
                        clicked = Some(index);
                    }
                }
            });
        });
        if let Some(index) = clicked {
            slash.chosen = index;
            self.write_entry(ctx);
        }
    }
}
