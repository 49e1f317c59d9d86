//! Turns on and off that scripts run by themselves.

use crate::app_window::AppWindow;
use engine::Command;

impl AppWindow {
    /// Lets scripts run by themselves while one writes, or not.
    pub(crate) fn toggle_script_runs(&mut self) {
        let session = self.host.session();
        let mut settings = session.settings().clone();
        settings.script_runs = !settings.script_runs;
        let said = if settings.script_runs {
            "Scripts run half a second after the last key."
        } else {
            "Scripts run when you ask for it."
        };
        if self.send(Command::Set { settings: Box::new(settings) }) {
            self.notices.toasts.show_message(said);
        }
    }
}
