//! The link to the host: reads the session and sends commands.

use crate::shell::notice_state::NoticeState;
use anyhow::anyhow;
use engine::{Command, FirstStep, Note, Session};
use host::Driver;
use host::desktop::{FileOpener, FolderChooser, PdfPrinter};
use host::fs::user_texts::UserTextReader;
use host::program_server::ProgramServer;
use host::science_pack::SciencePack;
use host::source_control::SourceControl;
use package_page::package_desk::PackageDesk;
use source_control::forks_page::fork_desk::ForkDesk;
use std::ffi::OsString;
use store::DocId;

/// The window's link to its host.
pub(crate) struct HostLink {
    pub(crate) driver: Driver,
    /// The system's folder chooser, if it has one.
    pub(crate) folder_chooser: Option<FolderChooser>,
    /// Opens files with other programs, if there's a desktop.
    pub(crate) file_opener: Option<FileOpener>,
    /// Prints a PDF file, if the system can.
    pub(crate) pdf_printer: Option<PdfPrinter>,
    /// Environment variables for the programs of **Set up Python…**, replacing the process's own ones.
    pub(crate) setup_variables: Vec<(String, OsString)>,
    /// The user's science pack.
    pub(crate) science: SciencePack,
    /// The Git repositories of the volumes.
    pub(crate) source: SourceControl,
    /// The forks of the volumes.
    pub(crate) forks: ForkDesk,
    /// The packages of the workspace.
    pub(crate) packages: PackageDesk,
    /// The server for other programs.
    pub(crate) server: ProgramServer,
    /// The user's snippets and themes.
    pub(crate) texts: UserTextReader,
    /// Completed first steps that aren't in the settings yet.
    pub(crate) done_steps: Vec<FirstStep>,
}

impl HostLink {
    /// Returns the session that views read.
    pub(crate) fn session(&self) -> &Session {
        self.driver.session()
    }

    /// Returns a note if it's open in the session.
    pub(crate) fn note(&self, note: Option<DocId>) -> Option<&Note> {
        self.session().note(note?)
    }

    /// Returns the file at a path of a volume.
    pub(crate) fn file_at(&self, volume: DocId, path: &str) -> Option<DocId> {
        self.session().volume(volume)?.files.get(path).map(|row| row.id)
    }

    /// Sends a command. Returns an error with a message for the user if it was refused.
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

    /// Records a completed first step, while first steps are shown.
    pub(crate) fn complete_step(&mut self, step: FirstStep) {
        let settings = self.session().settings();
        if settings.show_first_steps && !settings.first_steps.contains(&step) && !self.done_steps.contains(&step) {
            self.done_steps.push(step);
        }
    }

    /// Sends a command, and shows a refusal as a toast. Returns whether it was accepted.
    pub(crate) fn send(&mut self, command: Command, notices: &mut NoticeState) -> bool {
        let sent = self.command(command);
        if let Err(why) = &sent {
            notices.toasts.show_message(why.to_string());
        }
        sent.is_ok()
    }
}
