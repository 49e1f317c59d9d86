//! The row of a folder that came from GitHub without Git: where it's from, and the buttons for the remote.

use super::{PageScene, begin, branch_label, note_line};
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align, Layout, Sense, Ui, vec2};
use host::source_control::GitRequest;
use notebook::actions::PageAction;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, set_accessible_name, text_button};

/// Draws the row, and what the user should know.
pub(crate) fn show(ui: &mut Ui, scene: &PageScene<'_>, from: &str, actions: &mut Vec<PageAction>) {
    let branch = branch_label(&scene.status.branch);
    ui.horizontal(|ui| {
        ui.set_min_height(size::MIN_CLICK_HEIGHT);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = space::S;
            for (name, request) in [("Pull", GitRequest::Pull), ("Fetch", GitRequest::Fetch)] {
                if text_button(ui, name, false).clicked() {
                    begin(actions, scene.volume, request);
                }
            }
            let (rect, response) = ui.allocate_exact_size(ui.available_size(), Sense::hover());
            let text = format!("{from}, branch {branch}");
            set_accessible_name(&response, Role::Label, &text);
            let at = rect.left_center() - vec2(0.0, 10.0);
            paint_clipped_text(ui, at, rect.width() - space::S, &text, &theme::small(), ThemeColors::of(ui).ink);
        });
    });
    ui.add_space(space::S);
    if let Some(why) = &scene.locked {
        note_line(ui, icons::LOCK, &ui::text::sentence(why));
    }
    note_line(ui, icons::INFO, "These files came from GitHub without Git. A commit goes to GitHub at once.");
    if scene.status.branch.under_way.is_some() {
        note_line(ui, icons::WARNING, "A pull has stopped halfway. Pull again to finish it.");
    }
    ui.add_space(space::S);
}
