//! The link to the host: reads the session and sends commands.

use crate::shell::desktop_look::DesktopLookWatch;
use crate::shell::notice_state::NoticeState;
use anyhow::{anyhow, bail};
use engine::{Command, FirstStep, Note, Session};
use host::Driver;
use host::desktop::{DesktopNotifier, FileChooser, FileOpener, FolderChooser, PdfPrinter};
use host::fs::user_texts::UserTextReader;
use host::science_pack::SciencePack;
use host::source_control::SourceControl;
use package_page::package_desk::PackageDesk;
use program_approvals::ApprovalWatch;
use program_server::ProgramServer;
use sent_runs::SentQuestion;
use sent_runs::run_worker_desk::RunWorkerDesk;
use sent_runs::sent_run_desk::SentRunDesk;
use source_control::forks_page::fork_desk::ForkDesk;
use std::ffi::OsString;
use store::DocId;

/// Safe mode: nothing starts that may have made the last start fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SafeMode {
    #[default]
    Off,
    /// The user is asked, since the last start failed.
    Asked,
    On,
}

/// Returns whether a command starts a kernel or a run.
fn starts_work(command: &Command) -> bool {
    matches!(
        command,
        Command::Run { .. }
            | Command::RunWithin { .. }
            | Command::RunAll { .. }
            | Command::RunCells { .. }
            | Command::RunStale { .. }
            | Command::RunClean { .. }
            | Command::MoveState { .. }
            | Command::Ask { .. }
            | Command::Press { .. }
            | Command::ResumeRun { .. }
            | Command::RunSchedule { .. }
            | Command::RunTasks { .. }
    )
}

/// The window's link to its host.
pub(crate) struct HostLink {
    pub(crate) driver: Driver,
    /// The system's folder chooser, if it has one.
    pub(crate) folder_chooser: Option<FolderChooser>,
    /// The system's dialog for new files, if it has one.
    pub(crate) new_file_chooser: Option<FileChooser>,
    /// The system's dialog for existing files, if it has one.
    pub(crate) file_chooser: Option<FileChooser>,
    /// Opens files with other programs, if there's a desktop.
    pub(crate) file_opener: Option<FileOpener>,
    /// Shows notifications of the desktop, if there's one.
    pub(crate) notifier: Option<DesktopNotifier>,
    /// Follows how the desktop looks, if there's one.
    pub(crate) look: DesktopLookWatch,
    /// Whether cells, runs and schedules may start, and tabs are restored and saved.
    pub(crate) safe_mode: SafeMode,
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
    /// What other programs ask and wait for.
    pub(crate) approvals: ApprovalWatch,
    /// Runs on other devices, and decisions about their calls.
    pub(crate) sent_runs: SentRunDesk,
    /// Runs of other devices that are carried out here.
    pub(crate) run_worker: RunWorkerDesk,
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

    /// Lets schedules start when they are due.
    pub(crate) fn start_schedules(&mut self, notices: &mut NoticeState) {
        let zones = host::clock::load_zones(host::clock::schedule_zone_names(self.session()));
        self.send(Command::MindSchedules { zones }, notices);
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
        if self.safe_mode != SafeMode::Off && starts_work(&command) {
            bail!("Safe mode starts no cells, runs or schedules. Quit and start Tracebook again to leave it.");
        }
        if let Command::Decide { run, approval, decision } = &command
            && sent_runs::is_for_others(self.session(), *run)
        {
            self.sent_runs.decide(*run, approval, decision.clone());
            return Ok(());
        }
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

    /// Sends a message to an agent on another device. Returns an error with a message for the user if it isn't sent.
    pub(crate) fn send_away(&mut self, question: SentQuestion) -> anyhow::Result<()> {
        if self.safe_mode != SafeMode::Off {
            bail!("Safe mode starts no cells, runs or schedules. Quit and start Tracebook again to leave it.");
        }
        self.sent_runs.send(question);
        self.complete_step(FirstStep::AskAgent);
        Ok(())
    }

    /// Stops a run, on whichever device it is.
    pub(crate) fn stop_run(&mut self, run: DocId, volume: Option<DocId>, notices: &mut NoticeState) {
        let session = self.session();
        let known = session.agents().run(run).map(|known| known.about.volume);
        let is_away = sent_runs::is_for_others(session, run) || self.sent_runs.is_followed(run);
        if let Some(volume) = known.or(volume).filter(|_| is_away) {
            self.sent_runs.stop(volume, run);
        }
        if known.is_some() || !is_away {
            self.send(Command::CancelRun { run }, notices);
        }
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
