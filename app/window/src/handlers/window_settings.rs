//! Saves the window's settings once they stop changing.

use crate::shell::dock_state::DockState;
use crate::shell::host_link::{HostLink, SafeMode};
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use engine::Command;

/// How long widths and sizes must stay unchanged before they are saved, in seconds.
const SETTINGS_DEBOUNCE_SECONDS: f64 = 0.5;

impl WindowState {
    /// Saves changed window settings.
    pub(crate) fn save_window_state(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        dock: &mut DockState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        let inner = ctx.input(|input| input.viewport().inner_rect);
        if let Some(inner) = inner.filter(|inner| inner.width() > 100.0) {
            let size = inner.size() * ctx.zoom_factor();
            self.window = (size.x.round(), size.y.round());
        }
        // A maximized window has the place of its screen.
        let outer = ctx.input(|input| input.viewport().outer_rect.filter(|_| input.viewport().maximized != Some(true)));
        if let Some(outer) = outer {
            let place = outer.min * ctx.pixels_per_point();
            self.place = Some((place.x.round(), place.y.round()));
        }
        if !host.session().is_open() {
            return;
        }
        let kept = host.session().settings();
        let mut wanted = kept.clone();
        self.store_settings(&mut wanted);
        dock.tree.store_settings(&mut wanted);
        // Safe mode shows no tabs; those of the last start are kept.
        if host.safe_mode == SafeMode::Off {
            (wanted.panes, wanted.pane) =
                panes.layout.saved_arrangement(panes.active.id, panes.active.note.or(panes.pending_note));
        }
        let now = ctx.input(|input| input.time);
        let saves_positions = panes.positions_are_due(now);
        if saves_positions {
            wanted.positions = panes.merged_positions(&kept.positions);
        }
        let wanted = wanted.clamped();
        if wanted == *kept {
            if saves_positions {
                panes.positions_saved = (now, panes.active.note);
            }
            self.since = None;
            return;
        }
        let choice = wanted.theme != kept.theme
            || wanted.scale != kept.scale
            || (wanted.contrast, wanted.reduce_motion, wanted.text_scale)
                != (kept.contrast, kept.reduce_motion, kept.text_scale)
            || (wanted.left_open, wanted.right_open) != (kept.left_open, kept.right_open);
        let since = *self.since.get_or_insert(now);
        if choice || now - since >= SETTINGS_DEBOUNCE_SECONDS {
            self.since = None;
            if saves_positions {
                panes.positions_saved = (now, panes.active.note);
            }
            if let Err(reject) = host.driver.run_command(Command::Set { settings: Box::new(wanted) }) {
                notices.toasts.show_message(reject.0);
            }
        } else {
            ctx.request_repaint_after(std::time::Duration::from_secs_f64(SETTINGS_DEBOUNCE_SECONDS));
        }
    }
}
