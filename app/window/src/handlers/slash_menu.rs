//! Opens the slash menu and inserts the chosen entry.

use crate::handlers::note_actions::title_of;
use crate::overlays::slash_menu::{
    MAX_VISIBLE_SLASH_ROWS, SLASH_MENU_WIDTH, SLASH_ROW_HEIGHT, SlashMenu, filter, line, line_start, slash_list,
    written,
};
use crate::shell::host_link::HostLink;
use crate::shell::input_state::InputState;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::editor_keys::KeyOutcome;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Area, Key, Modifiers, Order, Sense, pos2, vec2};
use ui::theme::{CONTROL_CORNER, ThemeColors, space};
use ui::widgets::{floating_frame, set_accessible_name};

impl InputState {
    /// Opens the menu after a slash was typed, and closes it when the text no longer matches.
    pub(crate) fn sync_slash(&mut self, host: &HostLink, panes: &mut PaneState, ctx: &egui::Context, typed: bool) {
        if self.slash.is_none() && !typed {
            return;
        }
        let dark = ctx.global_style().visuals.dark_mode;
        let words = panes.with_note(host, ctx, dark, |world, editor, _| {
            let target = editor.edit_target(world)?;
            filter(editor, &target)
        });
        match words.flatten() {
            Some(words) if typed || self.slash.is_some() => {
                if self.slash.is_none() {
                    // What is new since the last time is offered once it's read.
                    let ctx = ctx.clone();
                    host.texts.refresh(move || ctx.request_repaint());
                }
                let texts = host.texts.last();
                let is_same = self
                    .slash
                    .as_ref()
                    .is_some_and(|slash| slash.filter == words && slash.snippets.len() == texts.snippets.len());
                if !is_same {
                    self.slash = Some(SlashMenu::new(words, &texts.snippets));
                }
                let Some(slash) = &self.slash else { return };
                if slash.entries().is_empty() {
                    self.slash = None;
                }
            }
            _ => self.slash = None,
        }
    }

    /// Handles a key press while the menu is open. Returns whether it was used.
    pub(crate) fn slash_key(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        key: Key,
        modifiers: Modifiers,
    ) -> bool {
        // A key press in the same frame may have changed the typed text.
        self.sync_slash(host, panes, ctx, false);
        let Some(slash) = self.slash.as_mut().filter(|_| modifiers.is_none()) else { return false };
        let count = slash.entries().len().max(1);
        match key {
            Key::ArrowDown => slash.chosen = (slash.chosen + 1) % count,
            Key::ArrowUp => slash.chosen = (slash.chosen + count - 1) % count,
            Key::Escape => self.slash = None,
            Key::Enter | Key::Tab => self.write_entry(host, panes, notices, ctx),
            _ => return false,
        }
        ctx.request_repaint();
        true
    }

    /// Replaces the slash and the text after it with the chosen entry.
    fn write_entry(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        let Some(slash) = self.slash.take() else { return };
        let Some(entry) = slash.entries().get(slash.chosen).copied() else { return };
        let note = panes.active.note.and_then(|note| host.session().locate_file(note));
        let title = note.map(|(_, path)| title_of(path)).unwrap_or_default();
        let (text, caret) = written(entry, &title);
        panes.write(
            host,
            notices,
            ctx,
            |editor, world| match editor.edit_target(world) {
                Some(target) => {
                    let from = line_start(&target);
                    // Directly below other text, a block would continue that text's paragraph.
                    let gap = if from > 0 { "\n" } else { "" };
                    let insert = format!("{gap}{text}");
                    KeyOutcome::edit(target.replace(from..target.shown.len(), &insert, gap.len() + caret))
                }
                None => KeyOutcome::Not,
            },
            false,
        );
    }
}

impl PaneState {
    /// Draws the menu below the caret.
    pub(crate) fn slash_menu(
        &mut self,
        host: &mut HostLink,
        input: &mut InputState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        input.sync_slash(host, self, ctx, false);
        let (Some(slash), Some(caret)) = (&mut input.slash, self.active.editor.seen) else { return };
        let dark = ctx.global_style().visuals.dark_mode;
        let colours = ThemeColors::for_dark_mode(dark);
        let entries = slash.entries();
        #[allow(clippy::cast_precision_loss, reason = "a count of lines")]
        let height = entries.len().min(MAX_VISIBLE_SLASH_ROWS) as f32 * SLASH_ROW_HEIGHT + space::S;
        let below = caret.bottom() + space::XS;
        let top = if below + height > ctx.content_rect().bottom() { caret.top() - height - space::XS } else { below };
        let first = (slash.chosen + 1).saturating_sub(MAX_VISIBLE_SLASH_ROWS);
        let mut clicked = None;
        Area::new(slash_list()).order(Order::Foreground).fixed_pos(pos2(caret.left(), top)).show(ctx, |ui| {
            floating_frame(colours, dark).inner_margin(egui::Margin::same(4)).show(ui, |ui| {
                ui.set_width(SLASH_MENU_WIDTH);
                ui.spacing_mut().item_spacing.y = 0.0;
                for (index, entry) in entries.iter().enumerate().skip(first).take(MAX_VISIBLE_SLASH_ROWS) {
                    let (rect, response) = ui.allocate_exact_size(
                        vec2(SLASH_MENU_WIDTH, SLASH_ROW_HEIGHT),
                        Sense::click() - Sense::FOCUSABLE,
                    );
                    set_accessible_name(&response, Role::MenuItem, &entry.title);
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
            input.write_entry(host, self, notices, ctx);
        }
    }
}
