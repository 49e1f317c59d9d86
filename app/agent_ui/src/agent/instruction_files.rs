//! Instruction files that concern the next message, and the button that trusts their volume.

use crate::panel_action::PanelAction;
use eframe::egui;
use egui::accesskit::Role;
use egui::{Align2, Sense, Ui, pos2, vec2};
use engine::{Command, Session};
use store::DocId;
use ui::icons;
use ui::theme::{self, CONTROL_CORNER, ThemeColors, size, space};
use ui::widgets::{paint_clipped_text, paint_focus_ring, paint_hover_fill, set_accessible_name, text_button};

/// Draws the files if there are any.
pub(super) fn show(
    ui: &mut Ui,
    session: &Session,
    (volume, note): (Option<DocId>, Option<DocId>),
    is_folded: &mut bool,
    actions: &mut Vec<PanelAction>,
) {
    let files = volume.map(|volume| session.instruction_files(volume, note)).unwrap_or_default();
    let Some(first) = files.first() else { return };
    let Some(volume) = session.volume(first.volume) else { return };
    let counted = if files.len() == 1 { "1 file".to_owned() } else { format!("{} files", files.len()) };
    let title = match first.is_trusted {
        true => format!("Instructions: {counted}"),
        false => format!("Instructions left out: you don't trust {}", volume.name),
    };
    if super::todos::show_header(ui, &title, !*is_folded) {
        *is_folded = !*is_folded;
    }
    if *is_folded {
        return;
    }
    for file in &files {
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), size::MIN_CLICK_HEIGHT), Sense::click());
        let colours = ThemeColors::of(ui);
        let state = if file.is_trusted { "agents follow it" } else { "agents don't follow it" };
        set_accessible_name(&response, Role::Link, &format!("{}: {state}", file.path));
        paint_hover_fill(ui, &response);
        paint_focus_ring(ui, &response, CONTROL_CORNER);
        if response.clicked() {
            actions.push(PanelAction::Open(file.file));
        }
        let at = pos2(rect.left() + 14.0, rect.center().y);
        ui.painter().text(at, Align2::CENTER_CENTER, icons::FILE_TEXT, theme::icon_font(14.0), colours.muted);
        let at = pos2(rect.left() + 30.0, rect.center().y - 10.0);
        let ink = if file.is_trusted { colours.ink } else { colours.muted };
        paint_clipped_text(ui, at, rect.width() - 30.0 - space::S, &file.path, &theme::small(), ink);
    }
    ui.horizontal(|ui| {
        ui.add_space(30.0);
        let label = if first.is_trusted { "Don't trust this volume" } else { "Trust this volume" };
        if text_button(ui, label, false).clicked() {
            let mut settings = session.settings().clone();
            settings.trust_volume(volume.id, !first.is_trusted);
            actions.push(PanelAction::Do(Command::Set { settings: Box::new(settings) }));
        }
    });
    ui.add_space(space::XS);
}
