//! What is shown where there is nothing yet.

use super::page::Action;
use eframe::egui;
use egui::Ui;
use ui::states::sentence;

/// The whole of a workspace without volumes.
pub(crate) fn no_volume(ui: &mut Ui, actions: &mut Vec<Action>) {
    let text = "Open a folder of Markdown, and its notes appear here.";
    if sentence(ui, text, Some("Open a folder"), "Nothing in it is changed by opening.") {
        actions.push(Action::Run("folder.open"));
    }
}

/// No note chosen.
pub(crate) fn no_note(ui: &mut Ui, actions: &mut Vec<Action>) {
    if sentence(ui, "Choose a note at the left, or find one by its name.", Some("Go to note"), "Ctrl+P") {
        actions.push(Action::Run("switcher.open"));
    }
}
