//! Copies files of the read-only volume System into the workspace.

use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use agent::system_volume;
use eframe::egui;
use engine::Command;
use store::FileKind;

impl PaneState {
    /// Copies a file into the open note's volume, or else the first one, and opens the copy if it's a note.
    pub(crate) fn copy_system_file(
        &mut self,
        host: &mut HostLink,
        notices: &mut NoticeState,
        jobs: &BackgroundJobs,
        ctx: &egui::Context,
        path: &str,
    ) {
        let of_note = self.active.note.and_then(|note| host.session().locate_file(note)).map(|(volume, _)| volume);
        let first = || host.session().volumes().find(|volume| volume.root.is_some()).map(|volume| volume.id);
        let volume = of_note.or_else(first).and_then(|volume| host.session().volume(volume));
        let (Some(volume), Some(text)) = (volume, system_volume::read(path)) else {
            notices.toasts.show_message("Open a folder first. The copy goes there.");
            return;
        };
        let (id, root, target) = (volume.id, volume.root.clone(), system_volume::copy_path(path));
        if let Some(why) = host.session().read_only_reason(id) {
            notices.toasts.show_message(why);
        } else if FileKind::from_path(&target).is_text() {
            let command = Command::NewNote { volume: id, path: target.clone(), text: text.to_owned() };
            if host.send(command, notices) {
                notices.toasts.show_message(format!("Copied to {target}."));
                let copy = host.file_at(id, &target);
                copy.into_iter().for_each(|copy| self.open(host, notices, copy));
            }
        } else if let Some(root) = root {
            let (said, wake) = (jobs.saved.0.clone(), ctx.clone());
            std::thread::spawn(move || {
                let words = match host::fs::copy::write_new_inside(&root, &target, text.as_bytes()) {
                    Ok(()) => format!("Copied to {target}."),
                    Err(why) => ui::text::sentence(&why.to_string()),
                };
                let _ = said.send(words); // the window may be closed
                wake.request_repaint();
            });
        }
    }
}
