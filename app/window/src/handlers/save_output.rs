//! Saves a cell's output as a file.

use crate::overlays::dialogs::Dialog;
use crate::overlays::file_path_field::FilePathField;
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
    /// Opens the dialog that asks where to save the output of a cell.
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
        let cells = &self.active.page.cells;
        let save = OutputFile::richest_output(run, |output| cells.fetched_rows(run, output));
        let number = note.cells().position(|other| other == cell).unwrap_or(0) + 1;
        let name = host.session().locate_file(note.id).map_or("Note", |(_, path)| path);
        let name = shown_name(name.rsplit('/').next().unwrap_or(name));
        let dest = proposed_path(host, &format!("{name} {number}.{}", save.ending));
        *overlay = WindowOverlay::Dialog(Dialog::SaveOutput { save, dest, trouble: None });
    }

    /// Opens the dialog that asks where to save a picture of the open note.
    pub(crate) fn ask_save_picture(
        &mut self,
        host: &HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        name: &str,
    ) {
        let file = self.active.note.and_then(|note| assets::picture_file(host.session(), note, name));
        let Some(file) = file else {
            notices.toasts.show_message(NO_PICTURE);
            return;
        };
        let dest = proposed_path(host, file.path.rsplit('/').next().unwrap_or(&file.path));
        let save = OutputFile::of_file(&file);
        *overlay = WindowOverlay::Dialog(Dialog::SaveOutput { save, dest, trouble: None });
    }
}

/// Message for a picture that isn't a file in the volume.
const NO_PICTURE: &str = "This image isn't a file in the note's folder; open its link instead.";

/// Returns the field for a new file, with its suggested path.
fn proposed_path(host: &HostLink, name: &str) -> FilePathField {
    let home = std::env::home_dir().unwrap_or_default();
    let documents = home.join("Documents");
    let folder = if host::fs::copy::is_folder(&documents) { documents } else { home };
    FilePathField::new(folder.join(name).display().to_string(), host.new_file_chooser.clone())
}

impl BackgroundJobs {
    /// Writes the output on a thread. Returns an error if the destination already exists.
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

    /// Copies a picture of the open note to the clipboard, once it's read.
    pub(crate) fn copy_picture(
        &mut self,
        host: &HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
        name: &str,
    ) {
        let file = panes.active.note.and_then(|note| assets::picture_file(host.session(), note, name));
        let Some(file) = file else {
            notices.toasts.show_message(NO_PICTURE);
            return;
        };
        let (wake, scale) = (ctx.clone(), ctx.pixels_per_point());
        let (copied, said) = (self.copied.0.clone(), self.saved.0.clone());
        std::thread::spawn(move || {
            // Sending fails if the window is closed.
            match assets::read_picture(&file, scale) {
                Ok(image) => _ = copied.send(image),
                Err(why) => _ = said.send(ui::text::sentence(why.message())),
            }
            wake.request_repaint();
        });
    }

    /// Reports saved files, and puts copied pictures on the clipboard.
    pub(crate) fn report_saved_output(&mut self, notices: &mut NoticeState, ctx: &egui::Context) {
        while let Ok(image) = self.copied.1.try_recv() {
            ctx.copy_image(image);
            notices.toasts.show_message("Copied the image.");
        }
        while let Ok(words) = self.saved.1.try_recv() {
            notices.toasts.show_message(words);
        }
    }
}
