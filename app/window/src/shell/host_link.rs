//! The link to the host: reads the session and sends commands.

use crate::shell::notice_state::NoticeState;
use anyhow::anyhow;
use engine::{Command, Note, Session};
use host::Driver;
use store::DocId;

/// The window's link to its host.
pub(crate) struct HostLink {
    pub(crate) driver: Driver,
}

impl HostLink {
    /// The session that views read.
    pub(crate) fn session(&self) -> &Session {
        self.driver.session()
    }

    /// A note that is open in the session.
    pub(crate) fn note(&self, note: Option<DocId>) -> Option<&Note> {
        self.session().note(note?)
    }

    /// The file at a path of a volume.
    pub(crate) fn file_at(&self, volume: DocId, path: &str) -> Option<DocId> {
        self.session().volume(volume)?.files.get(path).map(|row| row.id)
    }

    /// Sends a command. An error says in a sentence why it was refused.
    pub(crate) fn command(&mut self, command: Command) -> anyhow::Result<()> {
        self.driver.run_command(command).map_err(|reject| anyhow!(ui::text::sentence(&reject.0)))
    }

    /// Sends a command; a refusal becomes a toast.
    pub(crate) fn send(&mut self, command: Command, notices: &mut NoticeState) -> bool {
        let sent = self.command(command);
        if let Err(why) = &sent {
            notices.toasts.show_message(why.to_string());
        }
        sent.is_ok()
    }
}
