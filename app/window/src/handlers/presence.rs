//! Tells other devices where the carets are.

use crate::app_window::AppWindow;
use editor::remote_cursors::SharedCarets;
use engine::Command;

impl AppWindow {
    /// Reports the carets to the session if they changed and others may need them.
    pub(crate) fn send_carets(&mut self) {
        let session = self.host.session();
        if session.sync().shares.hubs.is_empty() {
            self.panes.last_reported_carets = None;
            return;
        }
        let note = self.panes.active.note.filter(|note| session.note(*note).is_some());
        let place: SharedCarets = (note, if note.is_some() { self.carets() } else { Vec::new() });
        // Which notes are shared may change, too.
        let now = (place, session.sync().shares.hubs.iter().map(|hub| hub.volumes.len()).sum());
        if self.panes.last_reported_carets.as_ref() != Some(&now) {
            let (note, carets) = now.0.clone();
            if self.send(Command::Carets { note, carets }) {
                self.panes.last_reported_carets = Some(now);
            }
        }
    }
}
