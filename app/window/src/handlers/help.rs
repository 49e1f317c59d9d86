//! Help: the user guide and the sample as volumes, written into the workspace's folder and opened like any folder; and
//! bug reports.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::{HostLink, SafeMode};
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use eframe::egui;
use engine::{Command, Session};
use host::desktop::{TypedPath, inspect_path};
use host::fs::shipped_files::refresh_shipped_files;
use host::maintenance::bug_report;
use std::path::Path;
use store::DocId;

/// Name of the sample's folder in the workspace's folder.
pub(crate) const SAMPLE_FOLDER: &str = "Sample";

impl BackgroundJobs {
    /// Opens the guide.
    pub(crate) fn open_help(&self, host: &HostLink, ctx: &egui::Context) {
        self.open_shipped(host, ctx, (Session::GUIDE_FOLDER, "help.json"), system::GUIDE_FILES);
    }

    /// Opens the sample. Its first figure is drawn once its note is shown.
    pub(crate) fn open_sample(&self, host: &HostLink, panes: &mut PaneState, ctx: &egui::Context) {
        panes.draws_sample = true;
        self.open_shipped(host, ctx, (SAMPLE_FOLDER, "sample.json"), system::SAMPLE_FILES);
    }

    /// Writes files that ship with the program into the workspace's folder and opens them. The user's changes to them
    /// are kept. `names`: of their folder, and of the record of what was written.
    fn open_shipped(
        &self,
        host: &HostLink,
        ctx: &egui::Context,
        names: (&'static str, &'static str),
        files: &'static [system::EmbeddedFile],
    ) {
        let workspace = host.driver.folder().to_owned();
        let (tell, wake) = (self.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let folder = workspace.join(names.0);
            let written = refresh_shipped_files(&folder, &workspace.join(names.1), files);
            let path = match written {
                Ok(()) => inspect_path(&folder),
                Err(why) => TypedPath::Unreadable(folder, why.to_string()),
            };
            let _ = tell.send(path); // the window may be closed
            wake.request_repaint();
        });
    }

    /// Writes a bug report on a separate thread.
    pub(crate) fn write_bug_report(&self, host: &HostLink, notices: &mut NoticeState, ctx: &egui::Context) {
        notices.toasts.show_message("Writing a bug report. This takes a few seconds.");
        let (program, workspace) = (host.driver.program().to_owned(), host.driver.folder().to_owned());
        let (tell, wake) = (self.reports.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let written = bug_report::write_in_workspace(&program, &workspace);
            let _ = tell.send(written.map_err(anyhow::Error::from)); // the window may be closed
            wake.request_repaint();
        });
    }

    /// Shows a file in the desktop's file manager.
    pub(crate) fn show_in_folder(&self, host: &HostLink, notices: &mut NoticeState, path: &Path) {
        let (Some(opener), Some(folder)) = (host.file_opener.clone(), path.parent().map(Path::to_owned)) else {
            notices.toasts.show_message("There's no desktop here to open it with.");
            return;
        };
        let say = self.saved.0.clone();
        std::thread::spawn(move || {
            if let Err(why) = opener(&folder) {
                let _ = say.send(ui::text::sentence(&why.to_string())); // the window may be closed
            }
        });
    }

    /// Shows a written bug report.
    pub(crate) fn show_bug_report(&self, overlay: &mut WindowOverlay, notices: &mut NoticeState) {
        match self.reports.1.try_recv() {
            Ok(Ok(path)) => *overlay = WindowOverlay::Dialog(Dialog::BugReport { path }),
            Ok(Err(why)) => notices.toasts.show_message(format!("The bug report can't be written: {why}")),
            Err(_) => {} // none is being written, or not yet finished
        }
    }
}

impl HostLink {
    /// Runs the first cell of a note of the sample, which draws a figure, unless the note was changed or the cell has
    /// run. It's no first step of the user.
    pub(crate) fn draw_sample_figure(&mut self, note: DocId, text: &str) {
        let is_shipped = system::SAMPLE_FILES.iter().any(|(_, bytes)| *bytes == text.as_bytes());
        let open = self.session().note(note).filter(|_| is_shipped && self.safe_mode == SafeMode::Off);
        let cell = open.and_then(|note| {
            let first = note.cells().next()?;
            (note.kernel_name().is_none() && note.latest_execution(first).is_none()).then_some(first)
        });
        if let Some(cell) = cell {
            let _ = self.driver.run_command(Command::Run { note, cell }); // the cell shows that it hasn't run
        }
    }
}
