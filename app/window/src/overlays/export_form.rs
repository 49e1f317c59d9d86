//! The dialog that asks where to export a note or folder, and the state of running exports.

use crate::overlays::file_path_field::FilePathField;
use export::error::ExportError;
use export::{ExportProgress, ExportReport, ExportScope};
use notebook::actions::ExportCommand;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use typeset::pdf::PaperSize;

/// The fields of the export dialog.
pub(crate) struct ExportForm {
    pub(crate) kind: ExportCommand,
    /// The scopes to choose from, with their names.
    pub(crate) choices: Vec<(ExportScope, String)>,
    pub(crate) chosen: usize,
    pub(crate) paper: PaperSize,
    pub(crate) dest: FilePathField,
}

impl ExportForm {
    /// Returns the dialog's title.
    pub(crate) fn title(&self) -> &'static str {
        match self.kind {
            ExportCommand::Html => "Export to HTML",
            ExportCommand::Pdf => "Export to PDF",
            ExportCommand::Notebook => "Export to Jupyter notebook",
            ExportCommand::Folder | ExportCommand::Open | ExportCommand::Print => "Export to a Markdown folder",
        }
    }

    /// Describes the result in one sentence.
    pub(crate) fn summary(&self) -> &'static str {
        let note = matches!(self.choices.get(self.chosen), Some((ExportScope::Note(_), _)));
        match (self.kind, note) {
            (ExportCommand::Html, true) => "A single self-contained HTML page.",
            (ExportCommand::Html, false) => "A folder of pages that link to each other.",
            (ExportCommand::Pdf, true) => "One document.",
            (ExportCommand::Pdf, false) => "One document in which each note begins on a page of its own.",
            (ExportCommand::Notebook, true) => "A notebook with the outputs of its cells.",
            (ExportCommand::Notebook, false) => "A folder with a notebook for each note.",
            (_, true) => "A folder with the note and the files that it shows.",
            (_, false) => "A folder with all files, byte for byte.",
        }
    }

    /// Chooses what to export, and derives the new file's name from it.
    pub(crate) fn choose_note(&mut self, chosen: usize) {
        self.chosen = chosen;
        let Some((what, name)) = self.choices.get(chosen) else { return };
        let ending = match (self.kind, what) {
            (ExportCommand::Pdf, _) => ".pdf",
            (ExportCommand::Html, ExportScope::Note(_)) => ".html",
            (ExportCommand::Notebook, ExportScope::Note(_)) => ".ipynb",
            _ => "",
        };
        let home = std::env::home_dir().unwrap_or_default();
        let documents = home.join("Documents");
        let folder = if host::fs::copy::is_folder(&documents) { documents } else { home };
        self.dest.path = folder.join(format!("{name}{ending}")).display().to_string();
    }
}

/// The running export, and the result of the last one.
#[derive(Default)]
pub(crate) struct ExportState {
    pub(crate) running: Option<RunningExport>,
    pub(crate) last: Option<PathBuf>,
}

pub(crate) struct RunningExport {
    pub(crate) progress: Arc<ExportProgress>,
    pub(crate) answer: Receiver<Result<ExportReport, ExportError>>,
    pub(crate) name: String,
    /// Whether the written file is then printed.
    pub(crate) prints: bool,
    pub(crate) since: f64,
}
