//! Sends the positions of the carets to other devices.

use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use editor::remote_cursors::SharedCarets;
use engine::Command;

impl PaneState {
    /// Reports the carets to the session if they changed and others may need them.
    pub(crate) fn send_carets(&mut self, host: &mut HostLink, notices: &mut NoticeState) {
        let session = host.session();
        if session.sync().shares.hubs.is_empty() {
            self.last_reported_carets = None;
            return;
        }
        let note = self.active.note.filter(|note| session.note(*note).is_some());
        let place: SharedCarets = (note, if note.is_some() { self.carets() } else { Vec::new() });
        // The set of shared notes may change, too.
        let now = (place, session.sync().shares.hubs.iter().map(|hub| hub.volumes.len()).sum());
        if self.last_reported_carets.as_ref() != Some(&now) {
            let (note, carets) = now.0.clone();
            if host.send(Command::Carets { note, carets }, notices) {
                self.last_reported_carets = Some(now);
            }
        }
    }
}
