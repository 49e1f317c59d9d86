//! Rows of settings that `config.yaml` holds. Below a row stands why its last change wasn't made. What a row removed
//! can be brought back until the next change.

use agent_ui::config_writer::ConfigWriter;
use anyhow::bail;
use eframe::egui;
use egui::{RichText, Ui};
use host::fs::atomic_write::{ReplaceOutcome, replace_file};
use host::fs::copy;
use host::maintenance::config_edit::{ConfigChange, change_config};
use host::maintenance::configuration::{CONFIG_FILE, MAX_CONFIG_BYTES};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use store::BlobHash;
use text::untrusted_text;
use ui::setting_rows::SettingsRows;
use ui::text::sentence;
use ui::theme::{self, ThemeColors};
use ui::widgets::text_button;

/// The configuration before and after a removal.
type ConfigTexts = (String, String);

/// What a row removed last.
struct RemovedEntry {
    /// The row below which it can be brought back.
    below: &'static str,
    what: String,
    /// The texts, once the removal was written.
    written: Receiver<ConfigTexts>,
    texts: Option<ConfigTexts>,
}

/// What rows of the configuration need beyond the session.
pub(crate) struct ConfigRows {
    workspace: PathBuf,
    writer: ConfigWriter,
    removed: Option<RemovedEntry>,
}

impl ConfigRows {
    /// Creates the state for a workspace, by its folder.
    pub(crate) fn of_workspace(workspace: &Path) -> ConfigRows {
        ConfigRows { workspace: workspace.to_owned(), writer: ConfigWriter::default(), removed: None }
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
        self.removed = None;
        self.writer.run(ctx, row, move || job(&workspace));
    }

    /// Runs a change that removes something, which `undo` names after the row below which it can be brought back.
    pub(crate) fn remove(
        &mut self,
        ctx: &egui::Context,
        row: &str,
        undo: (&'static str, String),
        job: impl FnOnce(&Path) -> anyhow::Result<()> + Send + 'static,
    ) {
        let (tell, written) = channel();
        self.run(ctx, row, move |workspace| {
            let before = config_text(workspace)?;
            let made = job(workspace);
            let after = config_text(workspace)?;
            if after != before {
                let _ = tell.send((before, after)); // the page may be closed
            }
            made
        });
        let (below, what) = undo;
        self.removed = Some(RemovedEntry { below, what, written, texts: None });
    }

    /// Draws the row that brings back what was removed last, if that belongs below this row.
    pub(crate) fn show_removed(&mut self, lines: &mut SettingsRows<'_>, below: &str) {
        let Some(removed) = self.removed.as_mut().filter(|removed| removed.below == below) else { return };
        if let Ok(texts) = removed.written.try_recv() {
            removed.texts = Some(texts);
        }
        let mut is_undone = false;
        if removed.texts.is_some() {
            lines.show_matching_row("Removed", &removed.what, |ui| {
                is_undone = text_button(ui, "Undo removal", false).clicked();
            });
        }
        if let Some(texts) = removed.texts.take_if(|_| is_undone) {
            self.run(lines.ui.ctx(), below, move |workspace| restore_config(workspace, &texts));
        }
    }

    /// Says at a row why its change can't be made.
    pub(crate) fn refuse(&mut self, row: &str, why: &str) {
        self.writer.refuse(row, sentence(why));
    }
}

/// Returns the text of the workspace's configuration, which is empty if there is none.
fn config_text(workspace: &Path) -> anyhow::Result<String> {
    let path = workspace.join(CONFIG_FILE);
    if copy::exists(&path) { copy::read_text(&path, MAX_CONFIG_BYTES) } else { Ok(String::new()) }
}

/// Writes the configuration as it was before a removal, if nothing has changed since.
fn restore_config(workspace: &Path, (before, after): &ConfigTexts) -> anyhow::Result<()> {
    let path = workspace.join(CONFIG_FILE);
    match replace_file(&path, Some(BlobHash::of(after.as_bytes())), before.as_bytes())? {
        ReplaceOutcome::Done { .. } => Ok(()),
        ReplaceOutcome::Raced { .. } | ReplaceOutcome::Gone => {
            bail!("{} has changed since. Add what you removed by hand.", path.display())
        }
    }
}
