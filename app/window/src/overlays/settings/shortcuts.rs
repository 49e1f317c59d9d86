//! The keys page: the shortcuts of every command, how to change them, and which commands lost a shortcut.

use super::super::command_palette::keys as caps;
use super::{SECTION_ROW_HEIGHT, SettingsChange, SettingsPage, ShortcutCapture};
use crate::shell::commands;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Align2, Layout, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::Settings;
use engine::commands::{CommandId, CommandInfo};
use engine::keymap::{KeymapPreset, effective_keymap, overridden_keys};
use settings_pages::sections::clear_button;
use ui::icons;
use ui::setting_rows::{segmented_control, show_row};
use ui::theme::{self, ThemeColors, space};
use ui::widgets::{icon_button, paint_clipped_text, set_accessible_name, text_button};

/// Width of the button that resets or restores all keys, in points.
const RESET_ALL_WIDTH: f32 = 132.0;

impl SettingsPage {
    pub(super) fn keys(&mut self, ui: &mut Ui, settings: &Settings, changes: &mut Vec<SettingsChange>) {
        show_row(ui, "Keys as in", "Keys that you set yourself take precedence.", |ui| {
            let names: Vec<&str> = KeymapPreset::ALL.iter().map(|preset| preset.name()).collect();
            let chosen = KeymapPreset::ALL.iter().position(|preset| *preset == settings.keymap_preset);
            if let Some(place) = segmented_control(ui, &names, chosen) {
                changes.push(SettingsChange::Preset(KeymapPreset::ALL[place]));
            }
        });
        ui.add_space(space::S);
        ui.horizontal(|ui| {
            let room = ui.available_width() - RESET_ALL_WIDTH;
            let hint = egui::RichText::new("Find a command or a key").color(ThemeColors::of(ui).muted);
            let field = egui::TextEdit::singleline(&mut self.query)
                .id_salt("find a key")
                .hint_text(hint)
                .desired_width(room - space::L);
            ui.add(field.margin(egui::Margin::symmetric(8, 6))).accessible_name("Find a command or a key");
            if let Some(keys) = clear_button(ui, ("Reset all keys", "Restore keys"), &settings.keys) {
                changes.push(SettingsChange::AllKeys(keys));
            }
        });
        ui.add_space(space::S);
        let map = effective_keymap(settings);
        let wanted = self.query.to_lowercase();
        let lost = overridden_keys(settings);
        if !lost.is_empty() {
            let words = match lost.len() {
                1 => "1 command has lost a key to another.".to_owned(),
                many => format!("{many} commands have lost keys to others."),
            };
            conflicts(ui, &words);
        }
        let found = |command: &&CommandInfo| {
            let keys = map.get(&command.id).map(|keys| keys.join(" ").to_lowercase()).unwrap_or_default();
            command.title.to_lowercase().contains(&wanted) || keys.contains(&wanted)
        };
        egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            for info in commands::available_commands().filter(found) {
                let keys = map.get(&info.id).map_or(&[][..], Vec::as_slice);
                let lost = lost.iter().find(|(id, ..)| *id == info.id).map(|(_, key, other)| (key.as_str(), *other));
                self.command(ui, info, keys, (settings.keys.contains_key(info.id.as_str()), lost), changes);
            }
        });
    }

    /// Draws commands whose title or key matches the search in all settings.
    pub(super) fn found_keys(
        &mut self,
        ui: &mut Ui,
        settings: &Settings,
        wanted: &str,
        changes: &mut Vec<SettingsChange>,
    ) {
        let map = effective_keymap(settings);
        let lost = overridden_keys(settings);
        let fits = |info: &&CommandInfo| {
            let keys = map.get(&info.id).is_some_and(|keys| keys.join(" ").to_lowercase().contains(wanted));
            keys || info.title.to_lowercase().contains(wanted)
        };
        for info in commands::available_commands().filter(fits) {
            let keys = map.get(&info.id).map_or(&[][..], Vec::as_slice);
            let lost = lost.iter().find(|(id, ..)| *id == info.id).map(|(_, key, other)| (key.as_str(), *other));
            self.command(ui, info, keys, (settings.keys.contains_key(info.id.as_str()), lost), changes);
        }
    }

    /// Draws a command with its keys and the buttons that change them.
    fn command(
        &mut self,
        ui: &mut Ui,
        info: &'static CommandInfo,
        keys: &[String],
        (own, lost): (bool, Option<(&str, CommandId)>),
        changes: &mut Vec<SettingsChange>,
    ) {
        let colours = ThemeColors::of(ui);
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), SECTION_ROW_HEIGHT), Sense::hover());
        set_accessible_name(&response, Role::Label, &format!("{}: {}", info.title, keys.join(", ")));
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
        let asks = self.asking.as_ref().is_some_and(|asking| asking.id == info.id);
        let mut ui =
            ui.new_child(UiBuilder::new().max_rect(rect).id_salt(info.id).layout(Layout::right_to_left(Align::Center)));
        ui.spacing_mut().item_spacing.x = space::XS;
        ui.add_space(space::S);
        if asks {
            let says = match self.asking.as_ref().and_then(|asking| asking.taken.clone()) {
                Some((key, other)) => {
                    if text_button(&mut ui, "Take it", true).clicked() {
                        changes.extend(self.set(key.clone()));
                    }
                    format!("{key} means “{}” now.", other.title)
                }
                None => {
                    let trouble = self.asking.as_ref().and_then(|asking| asking.trouble);
                    trouble.unwrap_or("Press the new key…").to_owned()
                }
            };
            if text_button(&mut ui, "Cancel", false).clicked() {
                self.asking = None;
            }
            let right = ui.cursor().right();
            let style = theme::small();
            let galley = ui.painter().layout_no_wrap(says.clone(), style.font, colours.accent);
            let at = pos2(right - galley.size().x - space::S, rect.center().y - galley.size().y / 2.0);
            ui.painter().galley(at, galley, colours.accent);
            let heard = ui.interact(rect, ui.scope_id().with("asks"), Sense::hover());
            set_accessible_name(&heard, Role::Label, &says);
            paint_clipped_text(
                &ui,
                rect.left_center() - vec2(0.0, 10.0),
                at.x - rect.left() - space::M,
                info.title,
                &theme::TypeStyle { font: theme::inter_font(theme::InterCut::Regular, 13.0), line: 20.0 },
                colours.ink,
            );
            return;
        }
        if icon_button(&mut ui, icons::PENCIL, &format!("Change the key of {}", info.title), None).clicked() {
            self.asking = Some(ShortcutCapture { id: info.id, taken: None, trouble: None });
        }
        if own && icon_button(&mut ui, icons::UNDO, &format!("Reset the key of {}", info.title), None).clicked() {
            changes.push(SettingsChange::Keys(info.id, None));
        }
        let mut right = ui.cursor().right() - space::S;
        if let Some((key, other)) = lost {
            let other = other.title();
            let words = format!("{key} means “{other}” now");
            let galley = ui.painter().layout_no_wrap(words.clone(), theme::caption().font, colours.warn);
            let at = pos2(right - galley.size().x, rect.center().y - galley.size().y / 2.0);
            ui.painter().galley(at, galley, colours.warn);
            let icon = pos2(at.x - space::M, rect.center().y);
            ui.painter().text(icon, Align2::CENTER_CENTER, icons::WARNING, theme::icon_font(13.0), colours.warn);
            let heard = Rect::from_min_max(pos2(at.x, rect.top()), pos2(right, rect.bottom()));
            let heard = ui.interact(heard, ui.scope_id().with("lost"), Sense::hover());
            set_accessible_name(&heard, Role::Label, &format!("{}: {words}", info.title));
            right = at.x - space::XL;
        }
        for key in keys.iter().rev() {
            right -= caps(&ui, pos2(right, rect.center().y), key) + space::M;
        }
        let style = theme::TypeStyle { font: theme::inter_font(theme::InterCut::Regular, 13.0), line: 20.0 };
        let at = rect.left_center() - vec2(0.0, 10.0);
        paint_clipped_text(&ui, at, right - rect.left() - space::M, info.title, &style, colours.ink);
        response.on_hover_text(info.help);
    }
}

/// Draws the notice above the list that some commands lost their keys.
fn conflicts(ui: &mut Ui, words: &str) {
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 28.0), Sense::hover());
    set_accessible_name(&response, Role::Label, words);
    let icon = rect.left_center() + vec2(7.0, 0.0);
    ui.painter().text(icon, Align2::CENTER_CENTER, icons::WARNING, theme::icon_font(14.0), colours.warn);
    let at = rect.left_center() + vec2(space::XL, -10.0);
    paint_clipped_text(ui, at, rect.width() - space::XL, words, &theme::small(), colours.warn);
}
