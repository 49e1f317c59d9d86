//! The dialog that clones a Git repository into a new folder, which is then opened as a volume.

use crate::overlays::dialogs::DialogDecision;
use eframe::egui;
use egui::Ui;
use host::source_control::{ClonePhase, RepositoryClone, repository_folder_name};
use text::untrusted_text;
use ui::dialog_parts::{at_right, field, further, head, show_trouble, words};
use ui::setting_rows::toggle_switch;
use ui::theme::space;
use ui::widgets::text_button;

/// The dialog's fields, and the clone that runs.
#[derive(Default)]
pub(crate) struct OpenRepositoryForm {
    address: String,
    folder: String,
    /// The folder that was proposed last; another one is the user's own.
    proposed: String,
    /// Whether only the newest commit is downloaded.
    is_shallow: bool,
    clone: Option<RepositoryClone>,
    trouble: Option<String>,
}

impl OpenRepositoryForm {
    /// Returns whether a clone runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.clone.is_some()
    }

    /// Shows why the folder wasn't opened.
    pub(crate) fn show_error(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// Starts to clone what was typed.
    pub(crate) fn submit(&mut self, ctx: &egui::Context) {
        let address = self.address.trim().to_owned();
        if self.is_busy() || address.is_empty() {
            return;
        }
        let Some(folder) = ui::text::absolute(self.folder.trim()) else {
            self.trouble = Some("Give the whole path of the new folder, beginning with / or ~.".to_owned());
            return;
        };
        self.trouble = None;
        let wake = ctx.clone();
        let depth = self.is_shallow.then_some(1);
        self.clone = Some(RepositoryClone::start(address, folder, depth, move || wake.request_repaint()));
    }

    /// Draws the dialog. Returns a decision once there is one.
    pub(crate) fn show(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        head(ui, "Open repository");
        match self.clone.as_ref().map(RepositoryClone::phase) {
            Some(ClonePhase::Running(progress)) => {
                self.show_progress(ui, &progress);
                return None;
            }
            Some(ClonePhase::Done(folder)) => {
                self.clone = None;
                return Some(DialogDecision::OpenFolder { folder });
            }
            Some(ClonePhase::Canceled) => self.clone = None,
            Some(ClonePhase::Failed(why)) => {
                self.clone = None;
                self.trouble = Some(ui::text::sentence(&why));
            }
            None => {}
        }
        self.show_fields(ui)
    }

    fn show_fields(&mut self, ui: &mut Ui) -> Option<DialogDecision> {
        words(
            ui,
            "Git makes a copy of the repository in a new folder, with your own Git settings and keys. Without Git, \
             files of GitHub come over its API. The folder is then opened as a volume.",
        );
        ui.add_space(space::M);
        let before = self.address.clone();
        field(ui, &mut self.address, "Address of the repository", "https://… or owner/name on GitHub");
        if self.address != before {
            self.trouble = None;
            self.propose_folder();
        }
        ui.add_space(space::S);
        further(ui, &mut self.folder, "dialog folder", "New folder", "~/name");
        ui.add_space(space::S);
        ui.horizontal(|ui| {
            if toggle_switch(ui, "Without earlier commits", self.is_shallow) {
                self.is_shallow = !self.is_shallow;
            }
            words(ui, "Without earlier commits: a smaller download, and no history");
        });
        show_trouble(ui, self.trouble.as_deref());
        let mut closes = false;
        at_right(ui, |ui| {
            if text_button(ui, "Clone and open", true).clicked() {
                self.submit(&ui.ctx().clone());
            }
            closes = text_button(ui, "Cancel", false).clicked();
        });
        closes.then_some(DialogDecision::Never)
    }

    /// Proposes a folder in the home folder, unless the user has typed another one.
    fn propose_folder(&mut self) {
        if self.folder != self.proposed {
            return;
        }
        self.proposed = match repository_folder_name(self.address.trim()) {
            Some(name) => format!("~/{name}"),
            None => String::new(),
        };
        self.folder.clone_from(&self.proposed);
    }

    fn show_progress(&self, ui: &mut Ui, progress: &str) {
        words(ui, &format!("Cloning {}…", untrusted_text::escape_line(self.address.trim())));
        ui.add_space(space::S);
        words(ui, &untrusted_text::escape_line(progress));
        show_trouble(ui, None);
        at_right(ui, |ui| {
            if text_button(ui, "Stop", false).clicked()
                && let Some(clone) = &self.clone
            {
                clone.cancel();
            }
        });
    }
}
