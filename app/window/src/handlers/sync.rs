//! Shares and joins volumes, and opens the sync status page.

use crate::overlays::dialogs::Dialog;
use crate::overlays::settings::SettingsSection;
use crate::overlays::window_overlay::WindowOverlay;
use crate::pages::sync::SyncPage;
use crate::shell::background_jobs::BackgroundJobs;
use crate::shell::commands::{SyncCommand, SyncTab};
use crate::shell::host_link::HostLink;
use crate::shell::notice_state::NoticeState;
use crate::shell::page_view::PageView;
use crate::shell::pane_state::PaneState;
use anyhow::anyhow;
use eframe::egui;
use engine::Command;
use std::path::PathBuf;
use std::time::Duration;
use store::DocId;

impl PaneState {
    /// Performs a sync command.
    pub(crate) fn run_sync(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        wish: SyncCommand,
    ) {
        match wish {
            SyncCommand::Show(tab) => match &mut self.view {
                Some(PageView::Sync(page)) => page.tab = tab,
                _ => self.view = Some(PageView::Sync(Box::new(SyncPage::new(tab)))),
            },
            SyncCommand::Pause => {
                let paused = host.session().sync().shares.paused;
                if host.send(Command::PauseSync { paused: !paused }, notices) {
                    notices.toasts.show_message(if paused {
                        "Sync resumed."
                    } else {
                        "Sync paused. Changes stay on this device."
                    });
                }
            }
            SyncCommand::Retry => {
                if host.send(Command::RetrySync, notices) {
                    notices.toasts.show_message("Connecting to hubs…");
                }
            }
            SyncCommand::Share => {
                let here = self.active.note.and_then(|note| host.session().locate_file(note)).map(|(volume, _)| volume);
                match here.or_else(|| host.session().volumes().next().map(|volume| volume.id)) {
                    Some(volume) => overlay.ask_share(host, volume),
                    None => notices.toasts.show_message("Open a folder first, then share it."),
                }
            }
            SyncCommand::Join => {
                let (address, folder) = (String::new(), String::new());
                *overlay = WindowOverlay::Dialog(Dialog::Join { address, folder, trouble: None });
            }
            SyncCommand::Devices => overlay.open_settings(host, SettingsSection::Devices),
        }
    }

    /// Shares a volume. Returns an error that says why it can't be shared.
    pub(crate) fn share(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        volume: DocId,
        hub: String,
    ) -> anyhow::Result<()> {
        host.command(Command::ShareVolume { volume, hub })?;
        self.run_sync(host, overlay, notices, SyncCommand::Show(SyncTab::State));
        Ok(())
    }

    /// Updates the sync page with the texts it requested.
    pub(crate) fn sync_step(&mut self, host: &HostLink) {
        if let Some(PageView::Sync(page)) = &mut self.view {
            page.merges.step(&host.driver);
        }
    }
}

impl WindowOverlay {
    /// Opens the dialog that asks which hub to share a volume over.
    pub(crate) fn ask_share(&mut self, host: &HostLink, volume: DocId) {
        let session = host.session();
        let Some(known) = session.volume(volume) else { return };
        let hub = session.sync().shares.hubs.first().map_or_else(String::new, |hub| hub.url.clone());
        let name = known.name.clone();
        *self = WindowOverlay::Dialog(Dialog::Share { volume, name, hub, trouble: None });
    }
}

impl PaneState {
    /// Joins a shared volume into a folder. The result of creating the folder is shown when it arrives.
    pub(crate) fn join_volume(
        &mut self,
        host: &mut HostLink,
        overlay: &mut WindowOverlay,
        notices: &mut NoticeState,
        jobs: &BackgroundJobs,
        ctx: &egui::Context,
        (address, folder): (String, PathBuf),
    ) -> anyhow::Result<()> {
        engine::read_volume_address(&address).map_err(|reject| anyhow!(ui::text::sentence(&reject.0)))?;
        let (handle, tell, wake) = (host.driver.handle(), jobs.saved.0.clone(), ctx.clone());
        std::thread::spawn(move || {
            let made = match host::fs::copy::is_empty(&folder) {
                false => Err(anyhow!("the folder is not empty: {}", folder.display())),
                true => host::fs::copy::create_folder(&folder),
            };
            let asked = made.and_then(|()| Ok(handle.run_command(Command::JoinVolume { address, folder })?));
            // If the receiver is gone, the result is no longer needed.
            let _ = tell.send(match asked {
                Ok(_) => "Requested the volume. Its notes appear as they arrive.".to_owned(),
                Err(why) => format!("{}.", ui::text::sentence(&why.to_string())),
            });
            wake.request_repaint_after(Duration::from_millis(1));
        });
        self.run_sync(host, overlay, notices, SyncCommand::Show(SyncTab::State));
        Ok(())
    }
}
