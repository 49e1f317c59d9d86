//! Closes the program once everything is saved, or asks the user.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::host_link::HostLink;
use crate::shell::pane_state::PaneState;
use crate::shell::shutdown::ShutdownState;
use eframe::egui;
use egui::ViewportCommand;
use engine::Command;
use std::time::Duration;

/// How long to wait for saves to finish, in seconds.
const SHUTDOWN_SAVE_TIMEOUT_SECONDS: f64 = 3.0;

impl ShutdownState {
    /// Advances closing by one step.
    pub(crate) fn close_step(
        &mut self,
        host: &mut HostLink,
        panes: &mut PaneState,
        overlay: &mut WindowOverlay,
        ctx: &egui::Context,
    ) {
        let (wished, now) = ctx.input(|input| (input.viewport().close_requested(), input.time));
        if wished && *self != ShutdownState::Yes {
            if *self == ShutdownState::No {
                // Problems with saving are shown below. The command itself fails only before the workspace is open.
                let _ = host.driver.run_command(Command::Save);
                host.driver.pump(Duration::from_millis(4));
            }
            if host.session().is_saved() {
                *self = ShutdownState::Yes;
                return;
            }
            ctx.send_viewport_cmd(ViewportCommand::CancelClose);
            if *self == ShutdownState::No {
                *self = ShutdownState::Saving(now);
                panes.active.editor.end_editing();
            }
        }
        let ShutdownState::Saving(since) = *self else { return };
        let session = host.session();
        if session.is_saved() {
            *self = ShutdownState::Yes;
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
            *self = ShutdownState::Asked;
            *overlay = WindowOverlay::Dialog(Dialog::Closing { why });
        }
        ctx.request_repaint_after(Duration::from_millis(50));
    }

    /// Returns whether the window waits for saves to finish before it closes.
    pub(crate) fn is_saving(&self) -> bool {
        matches!(self, ShutdownState::Saving(_))
    }
}
