//! A note in conflict: the choices between both sides, above its text.

use super::{PageScene, banner, begin, conflict_list, half_done};
use eframe::egui;
use egui::accesskit::Role;
use egui::text::LayoutJob;
use egui::{Align2, Rect, Sense, Stroke, Ui, UiBuilder, pos2, vec2};
use engine::Session;
use host::source_control::{FileChangeKind, RepositoryStatus, SourceControl};
use notebook::actions::{PageAction, SourceControlAction};
use store::DocId;
use ui::icons;
use ui::theme::{self, ThemeColors, size, space};
use ui::widgets::{append_text, set_accessible_name, text_button, text_button_width};

/// Maximum fraction of a pane that the choices take; the text keeps the rest.
const MAX_PANE_FRACTION: f32 = 0.6;
/// Minimum height of the choices, in points.
const MIN_HEIGHT: f32 = 120.0;
/// Minimum width of the text that says what is wrong, in points.
const MIN_TEXT_WIDTH: f32 = 80.0;

/// The choices above a note in conflict.
#[derive(Default)]
pub struct NoteConflict {
    /// Notes whose choices the user has folded.
    folded: Vec<DocId>,
}

/// Returns whether a file, named relative to the volume's folder, is in conflict.
fn is_in_conflict(status: &RepositoryStatus, path: &str) -> bool {
    status.changes.iter().any(|change| change.path == path && change.unstaged == Some(FileChangeKind::Conflicted))
}

/// Returns the number of files in conflict in all volumes.
pub fn conflict_count(session: &Session, source: &SourceControl) -> usize {
    let is_conflict = |kind: &Option<FileChangeKind>| *kind == Some(FileChangeKind::Conflicted);
    let statuses = session.volumes().filter_map(|volume| source.status(volume.id));
    statuses.map(|status| status.changes.iter().filter(|change| is_conflict(&change.unstaged)).count()).sum()
}

impl NoteConflict {
    /// Draws the choices if the note is in conflict, and how the last one ended.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        session: &Session,
        source: &SourceControl,
        note: DocId,
        actions: &mut Vec<PageAction>,
    ) {
        let Some((volume, path)) = session.locate_file(note) else { return };
        let Some(status) = source.status(volume) else { return };
        let is_conflict = is_in_conflict(&status, path);
        let report = source.conflict_report(volume, path);
        if !is_conflict {
            self.folded.retain(|folded| *folded != note);
            if report.is_none() {
                return;
            }
        }
        let scene = PageScene { volume, status: &status, session, source, locked: session.read_only_reason(volume) };
        let is_folded = self.folded.contains(&note);
        if is_conflict && strip(ui, is_folded) {
            match is_folded {
                true => self.folded.retain(|folded| *folded != note),
                false => self.folded.push(note),
            }
        }
        if is_folded {
            return;
        }
        let all = ui.available_rect_before_wrap();
        let room = (all.height() * MAX_PANE_FRACTION).max(MIN_HEIGHT);
        let width = size::WIDE_BLOCK_WIDTH.min(all.width() - 2.0 * space::L).max(120.0);
        let margin = ((all.width() - width) / 2.0).max(space::S);
        let area =
            egui::ScrollArea::vertical().id_salt(("note conflict", note)).max_height(room).auto_shrink([false, true]);
        area.show(ui, |ui| {
            let column = Rect::from_min_size(pos2(all.left() + margin, ui.cursor().top()), vec2(width, f32::INFINITY));
            let mut child = ui.new_child(UiBuilder::new().max_rect(column).id_salt("choices"));
            child.spacing_mut().item_spacing = vec2(space::S, 0.0);
            child.add_space(space::S);
            if let Some(report) = report {
                let mark = (icons::CHECK, ThemeColors::of(&child).ok);
                match banner(&mut child, mark, &report.text, &["Undo", "Dismiss"]) {
                    Some("Undo") => report.undo.into_iter().for_each(|undo| begin(actions, volume, undo)),
                    Some(_) => actions.push(PageAction::SourceControl(SourceControlAction::Dismiss)),
                    None => {}
                }
            }
            if let Some(what) = status.branch.under_way {
                half_done(&mut child, &scene, what, actions);
            }
            if is_conflict {
                conflict_list::show(&mut child, &scene, path, actions);
            }
            let used = child.min_rect().height();
            ui.allocate_exact_size(vec2(ui.available_width(), used), Sense::hover());
        });
        let line = ui.cursor().top();
        ui.painter().hline(all.x_range(), line + 0.5, Stroke::new(1.0, ThemeColors::of(ui).line));
        ui.add_space(1.0);
    }
}

/// Draws the line that says what is wrong, with a button that folds the choices. Returns whether it was clicked.
fn strip(ui: &mut Ui, is_folded: bool) -> bool {
    let colours = ThemeColors::of(ui);
    let text = "Both sides have changed this note. Choose for each place, or edit its text.";
    let button = if is_folded { "Show choices" } else { "Hide choices" };
    let (width, left) = (ui.available_width(), space::L + space::XL);
    let mut job = LayoutJob::default();
    job.wrap.max_width = (width - left - text_button_width(ui, button) - 2.0 * space::S).max(MIN_TEXT_WIDTH);
    append_text(&mut job, text, &theme::small(), colours.ink);
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let height = (galley.size().y + 2.0 * space::S).max(size::TOOLBAR_HEIGHT);
    let (rect, response) = ui.allocate_exact_size(vec2(width, height), Sense::hover());
    ui.painter().rect_filled(rect, 0.0, colours.sunken);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, Stroke::new(1.0, colours.line));
    let at = pos2(rect.left() + space::L + 8.0, rect.center().y);
    ui.painter().text(at, Align2::CENTER_CENTER, icons::WARNING, theme::icon_font(size::ICON_SIZE), colours.bad);
    let layout = egui::Layout::right_to_left(egui::Align::Center);
    let place = rect.shrink2(vec2(space::S, (rect.height() - size::MIN_CLICK_HEIGHT) / 2.0));
    let mut child = ui.new_child(UiBuilder::new().max_rect(place).id_salt("fold conflict").layout(layout));
    let clicked = text_button(&mut child, button, false).clicked();
    let top = rect.center().y - galley.size().y / 2.0;
    ui.painter().galley(pos2(rect.left() + left, top), galley, colours.ink);
    set_accessible_name(&response, Role::Label, text);
    clicked
}
