//! The link to the host: reads the session and sends commands.

use crate::shell::notice_state::NoticeState;
use anyhow::anyhow;
use engine::{Command, FirstStep, Note, Session};
use host::Driver;
use host::desktop::{FileOpener, FolderChooser, PdfPrinter};
use host::science_pack::SciencePack;
use std::ffi::OsString;
use store::DocId;

/// The window's link to its host.
pub(crate) struct HostLink {
    pub(crate) driver: Driver,
    /// The system's folder chooser, if it has one.
    pub(crate) folder_chooser: Option<FolderChooser>,
    /// What opens files with other programs, if there is a desktop.
    pub(crate) file_opener: Option<FileOpener>,
    /// Prints a PDF file, where that can be done.
    pub(crate) pdf_printer: Option<PdfPrinter>,
    /// Environment variables for the programs of **Set up Python…**, in the place of the own ones.
    pub(crate) setup_variables: Vec<(String, OsString)>,
    /// The user's science pack.
    pub(crate) science: SciencePack,
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
    pub(crate) fn command(&mut self, command: Command) -> anyhow::Result<()> {
        let step = match &command {
            Command::Run { .. } | Command::RunAll { .. } | Command::RunCells { .. } => Some(FirstStep::RunCell),
            Command::Ask { .. } => Some(FirstStep::AskAgent),
            Command::Revert { .. } => Some(FirstStep::UndoAgent),
            _ => None, // tidy: open because any other command is no first step
        };
        self.driver.run_command(command).map_err(|reject| anyhow!(ui::text::sentence(&reject.0)))?;
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
            notices.toasts.show_message(why.to_string());
        }
        sent.is_ok()
    }
}
