//! Turns automatic runs of scripts on and off.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use engine::Command;

impl HostLink {
    /// Toggles whether scripts run automatically after edits.
    pub(crate) fn toggle_script_runs(&mut self, notices: &mut NoticeState) {
        let session = self.session();
        let mut settings = session.settings().clone();
        settings.script_runs = !settings.script_runs;
        let said = if settings.script_runs {
            "Scripts run half a second after the last key."
        } else {
            "Scripts run only when you run them."
        };
        if self.send(Command::Set { settings: Box::new(settings) }, notices) {
            notices.toasts.show_message(said);
        }
    }
}
