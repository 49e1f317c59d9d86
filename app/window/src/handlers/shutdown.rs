//! Ends the program once all is saved, or asks.

use crate::app_window::AppWindow;
use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::shutdown::ShutdownState;
use eframe::egui;
use egui::ViewportCommand;
use engine::Command;
use std::time::Duration;

/// How long to wait for the disk, in seconds.
const SHUTDOWN_SAVE_TIMEOUT_SECONDS: f64 = 3.0;

impl AppWindow {
    /// Continues closing.
    pub(crate) fn close_step(&mut self, ctx: &egui::Context) {
        let (wished, now) = ctx.input(|input| (input.viewport().close_requested(), input.time));
        if wished && self.shutdown != ShutdownState::Yes {
            if self.shutdown == ShutdownState::No {
                // What cannot be saved shows below; the command itself is only refused before the workspace is open.
                let _ = self.host.driver.run_command(Command::Save);
                self.host.driver.pump(Duration::from_millis(4));
            }
            if self.host.session().is_saved() {
                self.shutdown = ShutdownState::Yes;
                return;
            }
            ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            if self.shutdown == ShutdownState::No {
                self.shutdown = ShutdownState::Saving(now);
                self.panes.active.editor.end_editing();
            }
        }
        let ShutdownState::Saving(since) = self.shutdown else { return };
        let session = self.host.session();
        if session.is_saved() {
            self.shutdown = ShutdownState::Yes;
            ctx.send_viewport_cmd(ViewportCommand::Close);
            return;
        }
        let disk = session
            .saving()
            .trouble
            .as_ref()
            .map(|why| format!("The disk refuses: {why}. What is not saved is lost if the window closes now."));
        let file = session.notes().find_map(|note| note.file.trouble.as_ref()).map(|why| {
            let rest = "Its text is safe in the workspace and is written when the program runs again.";
            format!("A file cannot be written: {why}. {rest}")
        });
        let trouble = disk.or(file);
        if trouble.is_some() || now - since >= SHUTDOWN_SAVE_TIMEOUT_SECONDS {
            let why = trouble.unwrap_or_else(|| "The disk isn't responding.".to_owned());
            self.shutdown = ShutdownState::Asked;
            self.overlay = WindowOverlay::Dialog(Dialog::Closing { why });
        }
        ctx.request_repaint_after(Duration::from_millis(50));
    }

    /// Whether the window is waiting for the disk to close.
    pub(crate) fn is_saving(&self) -> bool {
        matches!(self.shutdown, ShutdownState::Saving(_))
    }
}
