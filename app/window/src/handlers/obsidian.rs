//! Obsidian vault settings: offered when the vault's folder is opened, and applied when the user agrees.

use crate::shell::background_jobs::{BackgroundJobs, VaultSettings};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::pane_state::PaneState;
use crate::shell::window_state::WindowState;
use eframe::egui;
use engine::Command;
use engine::commands::CommandId;
use host::fs::obsidian_settings::read_obsidian_settings;
use std::path::PathBuf;

impl BackgroundJobs {
    /// Reads the vault's settings in a folder on a thread. `takes_over`: they are then applied rather than offered.
    pub(crate) fn read_obsidian(&self, ctx: &egui::Context, root: PathBuf, takes_over: bool) {
        let (tell, wake) = (self.obsidian.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let read = read_obsidian_settings(&root);
            let _ = tell.send(VaultSettings { read, takes_over }); // the window may be closed
            wake.request_repaint();
        });
    }

    /// Applies the settings of the vault that contains the open note.
    pub(crate) fn use_obsidian(
        &self,
        host: &HostLink,
        panes: &PaneState,
        notices: &mut NoticeState,
        ctx: &egui::Context,
    ) {
        let session = host.session();
        let volume = panes.active.note.and_then(|note| session.locate_file(note)).map(|(volume, _)| volume);
        match volume.and_then(|volume| session.volume(volume)?.root.clone()) {
            Some(root) => self.read_obsidian(ctx, root, true),
            None => notices.toasts.show_message("Open a note of the Obsidian vault first."),
        }
    }

    /// Offers or applies the settings that were read.
    pub(crate) fn take_obsidian_settings(&self, host: &mut HostLink, prefs: &WindowState, notices: &mut NoticeState) {
        while let Ok(VaultSettings { read, takes_over }) = self.obsidian.1.try_recv() {
            let mut settings = host.session().settings().clone();
            match (read.differs_from(&settings), takes_over) {
                (true, false) => notices.toasts.show_with_action(
                    "This folder has Obsidian settings for daily notes, templates or attachments.",
                    "Use them",
                    CommandId::FolderObsidian,
                ),
                (true, true) => {
                    prefs.store_settings(&mut settings);
                    read.apply_to(&mut settings);
                    let (daily, templates) = (settings.daily_folder.clone(), settings.templates.clone());
                    if host.send(Command::Set { settings: Box::new(settings) }, notices) {
                        notices.toasts.show_message(format!(
                            "As in Obsidian, daily notes go to {daily}, and templates are in {templates}. To change \
                             that, see Settings, Notes and files."
                        ));
                    }
                }
                (false, true) => {
                    notices.toasts.show_message("This folder has no Obsidian settings that differ from yours.");
                }
                (false, false) => {}
            }
        }
    }
}
