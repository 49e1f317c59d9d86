//! Saves the window's settings once they rest.

use crate::app_window::AppWindow;
use eframe::egui;
use engine::Command;

/// Widths and sizes are kept once they have been still for this long, in seconds.
const SETTINGS_DEBOUNCE_SECONDS: f64 = 0.5;

impl AppWindow {
    /// Keeps what was set.
    pub(crate) fn save_window_state(&mut self, ctx: &egui::Context) {
        let inner = ctx.input(|input| input.viewport().inner_rect);
        if let Some(inner) = inner.filter(|inner| inner.width() > 100.0) {
            let size = inner.size() * ctx.zoom_factor();
            self.prefs.window = (size.x.round(), size.y.round());
        }
        if !self.host.session().is_open() {
            return;
        }
        let kept = self.host.session().settings();
        let mut wanted = kept.clone();
        self.prefs.store_settings(&mut wanted);
        self.dock.tree.store_settings(&mut wanted);
        (wanted.panes, wanted.pane) = self
            .panes
            .layout
            .saved_arrangement(self.panes.active.id, self.panes.active.note.or(self.panes.pending_note));
        let wanted = wanted.clamped();
        if wanted == *kept {
            self.prefs.since = None;
            return;
        }
        let choice = wanted.theme != kept.theme
            || wanted.scale != kept.scale
            || (wanted.contrast, wanted.calm, wanted.text) != (kept.contrast, kept.calm, kept.text)
            || (wanted.left_open, wanted.right_open) != (kept.left_open, kept.right_open);
        let now = ctx.input(|input| input.time);
        let since = *self.prefs.since.get_or_insert(now);
        if choice || now - since >= SETTINGS_DEBOUNCE_SECONDS {
            self.prefs.since = None;
            if let Err(reject) = self.host.driver.run_command(Command::Set { settings: Box::new(wanted) }) {
                self.notices.toasts.show_message(reject.0);
            }
        } else {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(SETTINGS_DEBOUNCE_SECONDS));
        }
    }
}
