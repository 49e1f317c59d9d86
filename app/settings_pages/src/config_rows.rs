//! Rows of settings that `config.yaml` holds. Below a row stands why its last change wasn't made.

use agent_ui::config_writer::ConfigWriter;
use eframe::egui;
use egui::{RichText, Ui};
use host::maintenance::config_edit::{ConfigChange, change_config};
use std::path::{Path, PathBuf};
use text::untrusted_text;
use ui::setting_rows::SettingsRows;
use ui::text::sentence;
use ui::theme::{self, ThemeColors};

/// What rows of the configuration need beyond the session.
pub(crate) struct ConfigRows {
    workspace: PathBuf,
    writer: ConfigWriter,
}

impl ConfigRows {
    /// Creates the state for a workspace, by its folder.
    pub(crate) fn of_workspace(workspace: &Path) -> ConfigRows {
        ConfigRows { workspace: workspace.to_owned(), writer: ConfigWriter::default() }
    }

    /// Receives results of changes. Returns whether one has just ended; the agents' setup must then be read again.
    pub(crate) fn receive(&mut self) -> bool {
        self.writer.receive()
    }

    /// Draws a row if it matches the search. Returns what its control returns.
    pub(crate) fn show_row<T>(
        &self,
        lines: &mut SettingsRows<'_>,
        name: &str,
        about: &str,
        control: impl FnOnce(&mut Ui) -> Option<T>,
    ) -> Option<T> {
        let (mut asked, shown) = (None, lines.shown);
        lines.show_matching_row(name, about, |ui| asked = control(ui));
        if let Some(why) = self.writer.trouble_of(name).filter(|_| lines.shown > shown) {
            let why = untrusted_text::escape_block(why);
            let colour = ThemeColors::of(lines.ui).bad;
            lines.ui.label(RichText::new(why).font(theme::caption().font).color(colour));
        }
        asked
    }

    /// Makes changes that a row asks for.
    pub(crate) fn change(&mut self, ctx: &egui::Context, row: &str, changes: Vec<ConfigChange>) {
        self.run(ctx, row, move |workspace| change_config(workspace, &changes).map(drop));
    }

    /// Runs a change that reads the configuration itself, by the workspace's folder. What is shown may be older than
    /// the file, so an edit of a list begins from the file.
    pub(crate) fn run(
        &mut self,
        ctx: &egui::Context,
        row: &str,
        job: impl FnOnce(&Path) -> anyhow::Result<()> + Send + 'static,
    ) {
        let workspace = self.workspace.clone();
        self.writer.run(ctx, row, move || job(&workspace));
    }

    /// Says at a row why its change can't be made.
    pub(crate) fn refuse(&mut self, row: &str, why: &str) {
        self.writer.refuse(row, sentence(why));
    }
}
