//! The request of a form for a new branch or tag. The form stays until Git has done it, so that a name that Git refuses
//! can be corrected.

use super::{PageScene, begin, note_line};
use eframe::egui;
use egui::Ui;
use host::source_control::{GitRequest, SourceControl};
use notebook::actions::{PageAction, SourceControlAction};
use ui::icons;

/// The request of a form, and why Git refused it.
#[derive(Default)]
pub(crate) struct FormRequest {
    /// Number of the frame in which it was sent, until it has ended.
    sent: Option<u64>,
    error: Option<String>,
    /// Whether the name's field has been given the keyboard.
    pub(crate) has_focus: bool,
}

impl FormRequest {
    /// Sends the request.
    pub(crate) fn send(&mut self, ui: &Ui, scene: &PageScene<'_>, request: GitRequest, actions: &mut Vec<PageAction>) {
        // While another operation runs, this one is refused, and what ends next isn't this one.
        self.sent = scene.source.job().is_none().then(|| ui.ctx().cumulative_frame_nr());
        self.error = None;
        actions.push(PageAction::SourceControl(SourceControlAction::Dismiss));
        begin(actions, scene.volume, request);
        ui.ctx().request_repaint();
    }

    /// Follows the request. Returns whether it succeeded, once it has ended.
    pub(crate) fn take_outcome(&mut self, ui: &Ui, source: &SourceControl) -> Option<bool> {
        let sent = self.sent?;
        if source.job().is_some() {
            return None;
        }
        if ui.ctx().cumulative_frame_nr() <= sent + 1 {
            // It may not have started yet.
            ui.ctx().request_repaint();
            return None;
        }
        self.sent = None;
        let report = source.report()?;
        // The name is typed again.
        self.has_focus = false;
        if report.is_error {
            self.error = Some(report.text);
        }
        Some(self.error.is_none())
    }

    /// Forgets why Git refused the request, since another one is being typed.
    pub(crate) fn clear_error(&mut self) {
        self.error = None;
    }

    /// Draws why Git refused the request.
    pub(crate) fn show_error(&self, ui: &mut Ui) {
        if let Some(why) = &self.error {
            note_line(ui, icons::WARNING_CIRCLE, why);
        }
    }
}
