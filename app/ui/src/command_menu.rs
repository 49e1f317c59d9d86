//! The menu of all commands: groups at the left, and the commands of the chosen group at the right.

use crate::menus::{MENU_WIDTH, menu_frame_for, menu_item};
use crate::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use crate::widgets::{paint_clipped_text, paint_focus_ring};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Popup, PopupCloseBehavior, Response, ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2};
use engine::commands::{COMMANDS, CommandId, CommandInfo};

/// Width of the list of groups, in points.
const GROUP_LIST_WIDTH: f32 = 128.0;
/// Fraction of the window's height that the commands of a group may take; they scroll beyond it.
const MAX_HEIGHT_FRACTION: f32 = 0.7;

/// A group of commands: what the ids of its commands begin with, the longest of which decides, and further commands.
struct CommandGroup {
    title: &'static str,
    beginnings: &'static [&'static str],
    commands: &'static [CommandId],
}

/// The groups, in the order of the menu.
static GROUPS: [CommandGroup; 8] = [
    CommandGroup {
        title: "Notes",
        beginnings: &["note.", "folder.", "volume.", "files.", "template.", "trash.", "collection.", "export."],
        commands: &[CommandId::ViewTrash, CommandId::ViewLinks, CommandId::ViewBroken],
    },
    CommandGroup {
        title: "Edit",
        beginnings: &["text.", "row.", "select.", "find.", "fold."],
        commands: &[CommandId::NoteUndo, CommandId::NoteRedo, CommandId::ViewSpelling],
    },
    CommandGroup {
        title: "Cells",
        beginnings: &["cell.", "cells.", "kernel.", "script.", "note.run_", "figure."],
        commands: &[CommandId::ViewVariables],
    },
    CommandGroup { title: "Search", beginnings: &["search.", "switcher.", "palette."], commands: &[] },
    CommandGroup {
        title: "Agent",
        beginnings: &["agent.", "memory."],
        commands: &[
            CommandId::ViewMemory,
            CommandId::ViewTraces,
            CommandId::ViewBudget,
            CommandId::ViewSchedule,
            CommandId::ViewAgents,
            CommandId::ViewPlans,
            CommandId::ViewPackages,
        ],
    },
    CommandGroup { title: "View", beginnings: &["view.", "tab.", "pane."], commands: &[] },
    CommandGroup {
        title: "Sync",
        beginnings: &["sync."],
        commands: &[CommandId::ViewSourceControl, CommandId::ViewForks, CommandId::NoteBlame],
    },
    CommandGroup { title: "Help", beginnings: &["help.", "app."], commands: &[] },
];

/// Returns the titles of the groups, in the order of the menu.
pub fn group_titles() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|group| group.title)
}

/// Returns the index of a command's group.
fn group_of(command: &CommandInfo) -> Option<usize> {
    let id = command.id.as_str();
    if let Some(group) = GROUPS.iter().position(|group| group.commands.contains(&command.id)) {
        return Some(group);
    }
    let length = |group: &CommandGroup| {
        group.beginnings.iter().filter(|begin| id.starts_with(**begin)).map(|begin| begin.len()).max()
    };
    let fitting = GROUPS.iter().enumerate().filter_map(|(index, group)| Some((length(group)?, index)));
    fitting.max_by_key(|(length, _)| *length).map(|(_, index)| index)
}

/// Returns the window's commands of a group, by its index.
fn commands_of(group: usize) -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(move |command| command.window && group_of(command) == Some(group))
}

/// Shows the menu of all commands beside a button. `key_of`: the key of a command. Returns the chosen command.
pub fn show_command_menu(button: &Response, key_of: impl Fn(CommandId) -> Option<String>) -> Option<CommandId> {
    let dark = button.ctx.global_style().visuals.dark_mode;
    let height = button.ctx.content_rect().height() * MAX_HEIGHT_FRACTION;
    let state = button.id.with("group");
    let mut group: usize = button.ctx.data(|data| data.get_temp(state)).unwrap_or_default();
    let mut chosen = None;
    // Choosing a group keeps the menu open; an item closes it.
    let popup = Popup::menu(button).close_behavior(PopupCloseBehavior::CloseOnClickOutside);
    let popup = popup.frame(menu_frame_for(dark)).width(GROUP_LIST_WIDTH + space::S + MENU_WIDTH);
    popup.accessible_name("All commands").show(|ui| {
        ui.spacing_mut().item_spacing = vec2(space::S, 0.0);
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| {
                ui.set_width(GROUP_LIST_WIDTH);
                for (index, title) in group_titles().enumerate() {
                    if show_group(ui, title, index == group) {
                        group = index;
                    }
                }
            });
            ui.vertical(|ui| {
                ui.set_width(MENU_WIDTH);
                ScrollArea::vertical().id_salt(("commands", group)).max_height(height).show(ui, |ui| {
                    for command in commands_of(group) {
                        let key = key_of(command.id);
                        if menu_item(ui, command.title, key.as_deref(), true) {
                            chosen = Some(command.id);
                        }
                    }
                });
            });
        });
    });
    button.ctx.data_mut(|data| data.insert_temp(state, group));
    chosen
}

/// Draws a row of the list of groups. Returns whether it's the chosen one from now on.
fn show_group(ui: &mut Ui, title: &str, is_chosen: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(GROUP_LIST_WIDTH, size::MIN_CLICK_HEIGHT), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::Tab, true, is_chosen, title));
    if is_chosen {
        ui.painter().rect_filled(rect, CONTROL_CORNER, colours.accent_ground);
    }
    let at = pos2(rect.left() + space::S, rect.center().y - theme::small().line / 2.0);
    paint_clipped_text(ui, at, rect.width() - space::XL, title, &theme::small(), colours.ink);
    let font = theme::icon_font(10.0);
    let place = rect.right_center() - vec2(space::S, 0.0);
    ui.painter().text(place, Align2::RIGHT_CENTER, crate::icons::CARET_RIGHT, font, colours.muted);
    paint_focus_ring(ui, &response, CONTROL_CORNER);
    // A pointer that rests here doesn't take the choice back from the keyboard.
    let is_pointed_at = response.hovered() && ui.input(|input| input.pointer.delta() != egui::Vec2::ZERO);
    response.clicked() || response.gained_focus() || is_pointed_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_window_is_in_one_group() {
        let left: Vec<CommandId> =
            COMMANDS.iter().filter(|command| command.window && group_of(command).is_none()).map(|one| one.id).collect();
        assert!(left.is_empty(), "give these commands a group in GROUPS: {left:?}");
        let titles = |group| commands_of(group).map(|command| command.id).collect::<Vec<_>>();
        assert!(titles(2).contains(&CommandId::NoteRunAll) && !titles(0).contains(&CommandId::NoteRunAll));
        assert!(titles(4).contains(&CommandId::ViewBudget));
    }
}
