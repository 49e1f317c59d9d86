//! Help: the user guide as a volume, written into the workspace's folder and opened like any folder; and bug reports.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use eframe::egui;
use engine::Session;
use host::desktop::{TypedPath, inspect_path};
use host::fs::shipped_files::refresh_shipped_files;
use host::maintenance::bug_report;
use std::path::Path;

impl BackgroundJobs {
    /// Writes the guide into the workspace's folder and opens it. The user's changes to it are kept.
    pub(crate) fn open_help(&self, host: &HostLink, ctx: &egui::Context) {
        let workspace = host.driver.folder().to_owned();
        let (tell, wake) = (self.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let folder = workspace.join(Session::GUIDE_FOLDER);
            let written = refresh_shipped_files(&folder, &workspace.join("help.json"), system::GUIDE_FILES);
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
