//! Placeholders for empty panes and notes.

use crate::actions::PageAction;
use eframe::egui;
use egui::Ui;
use engine::commands::CommandId;
use ui::empty_state::show_message;

/// Draws the placeholder for a workspace without volumes.
pub fn no_volume(ui: &mut Ui, actions: &mut Vec<PageAction>) {
    let text = "Open a folder of Markdown, and its notes appear here.";
    if show_message(
        ui,
        text,
        Some("Open a folder"),
        "You can also drop a folder here. Nothing in it is changed by opening.",
    ) {
        actions.push(PageAction::Run(CommandId::FolderOpen));
    }
}

/// Draws the placeholder for a pane without a note.
pub fn no_note(ui: &mut Ui, actions: &mut Vec<PageAction>) {
    if show_message(ui, "Choose a note at the left, or find one by its name.", Some("Go to note"), "Ctrl+P") {
        actions.push(PageAction::Run(CommandId::SwitcherOpen));
    }
}
