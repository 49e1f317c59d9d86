//! Saves what a cell printed as a file.

use crate::overlays::dialogs::Dialog;
use crate::overlays::window_overlay::WindowOverlay;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use anyhow::bail;
use editor::assets;
use eframe::egui;
use notebook::outputs::save_file::OutputFile;
use std::path::PathBuf;
use store::BlockId;
use ui::text::shown_name;

impl PaneState {
    /// Asks where the output of a cell shall be saved.
    pub(crate) fn ask_save(
        &mut self,
        host: &HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        cell: BlockId,
    ) {
        let Some(note) = self.open_note(host) else { return };
        let Some(run) = note.latest_execution(cell).filter(|run| !run.outputs.is_empty()) else {
            notices.toasts.show_message("This cell has no output yet.");
            return;
        };
        let save = OutputFile::richest_output(run);
        let number = note.cells().position(|other| other == cell).unwrap_or(0) + 1;
        let name = host.session().locate_file(note.id).map_or("Note", |(_, path)| path);
        let name = shown_name(name.rsplit('/').next().unwrap_or(name));
        let home = std::env::home_dir().unwrap_or_default();
        let documents = home.join("Documents");
        let folder = if host::fs::copy::is_folder(&documents) { documents } else { home };
        let dest = folder.join(format!("{name} {number}.{}", save.ending)).display().to_string();
        *overlay = WindowOverlay::Dialog(Dialog::SaveOutput { save, dest, trouble: None });
    }
}

impl BackgroundJobs {
    /// Writes it. Gives why not, where that is known at once.
    pub(crate) fn save_output(&mut self, ctx: &egui::Context, save: OutputFile, dest: PathBuf) -> anyhow::Result<()> {
        if host::fs::copy::exists(&dest) {
            bail!("A file or folder with that name already exists. Choose another name.");
        }
        let (handle, wake, said) = (assets::host_handle(ctx), ctx.clone(), self.saved.0.clone());
        std::thread::spawn(move || {
            let made = save.file(handle.as_ref()).and_then(|bytes| host::fs::copy::write_new(&dest, &bytes));
            let words = match made {
                Ok(()) => format!("Saved as {}", dest.display()),
                Err(why) => ui::text::sentence(&why.to_string()),
            };
            let _ = said.send(words); // the window may be closed
            wake.request_repaint();
        });
        Ok(())
    }

    /// Says what was saved.
    pub(crate) fn report_saved_output(&mut self, notices: &mut NoticeState) {
        while let Ok(words) = self.saved.1.try_recv() {
            notices.toasts.show_message(words);
        }
    }
}
