//! The link to the host: reads the session and sends commands.

use crate::shell::notice_state::NoticeState;
use engine::{Command, FirstStep, Note, Session};
use host::Driver;
use store::DocId;

/// The window's link to its host.
pub(crate) struct HostLink {
    pub(crate) driver: Driver,
    /// First steps that were done and are not in the settings yet.
    pub(crate) done_steps: Vec<FirstStep>,
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
    pub(crate) fn command(&mut self, command: Command) -> Result<(), String> {
        let step = match &command {
            Command::Run { .. } | Command::RunAll { .. } | Command::RunCells { .. } => Some(FirstStep::RunCell),
            Command::Ask { .. } => Some(FirstStep::AskAgent),
            Command::Revert { .. } => Some(FirstStep::UndoAgent),
            _ => None, // tidy: open because any other command is no first step
        };
        self.driver.run_command(command).map_err(|reject| ui::text::sentence(&reject.0))?;
        step.into_iter().for_each(|step| self.complete_step(step));
        Ok(())
    }

    /// Remembers that a first step was done, while these are counted.
    pub(crate) fn complete_step(&mut self, step: FirstStep) {
        let settings = self.session().settings();
        if settings.show_first_steps && !settings.first_steps.contains(&step) && !self.done_steps.contains(&step) {
            self.done_steps.push(step);
        }
    }

    /// Sends a command; a refusal becomes a toast.
    pub(crate) fn send(&mut self, command: Command, notices: &mut NoticeState) -> bool {
        let sent = self.command(command);
        if let Err(why) = &sent {
            notices.toasts.show_message(why);
        }
        sent.is_ok()
    }
}
