//! The user guide as a volume: written into the workspace's folder, then opened like any folder.

use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use eframe::egui;
use host::desktop::{TypedPath, inspect_path};
use host::fs::shipped_files::refresh_shipped_files;

impl BackgroundJobs {
    /// Writes the guide into the workspace's folder and opens it. The user's changes to it are kept.
    pub(crate) fn open_help(&self, host: &HostLink, ctx: &egui::Context) {
        let workspace = host.driver.folder().to_owned();
        let (tell, wake) = (self.named_paths.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let folder = workspace.join("Help");
            let written = refresh_shipped_files(&folder, &workspace.join("help.json"), system::GUIDE_FILES);
            let path = match written {
                Ok(()) => inspect_path(&folder),
                Err(why) => TypedPath::Unreadable(folder, why.to_string()),
            };
            let _ = tell.send(path); // the window may be closed
            wake.request_repaint();
        });
    }
}
