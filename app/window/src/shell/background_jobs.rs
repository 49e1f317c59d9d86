//! Background jobs of the window, and their results.

use crate::overlays::export_form::ExportState;
use crate::shell::notes_replacement::NotesReplacement;
use eframe::egui::ColorImage;
use host::desktop::TypedPath;
use settings_pages::obsidian::ObsidianSettings;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;

/// Settings read from an Obsidian vault.
pub(crate) struct VaultSettings {
    /// The vault's folder.
    pub(crate) root: PathBuf,
    pub(crate) read: ObsidianSettings,
    /// Whether to apply the settings; otherwise they are only offered.
    pub(crate) takes_over: bool,
}

/// Background jobs of the window.
pub(crate) struct BackgroundJobs {
    pub(crate) exports: ExportState,
    /// The replacement of text in many notes.
    pub(crate) replacement: NotesReplacement,
    /// Paths from the command line, once they are inspected.
    pub(crate) named_paths: (Sender<TypedPath>, Receiver<TypedPath>),
    /// Settings of Obsidian vaults, once they are read.
    pub(crate) obsidian: (Sender<VaultSettings>, Receiver<VaultSettings>),
    /// Bug reports, once they are written.
    pub(crate) reports: (Sender<anyhow::Result<PathBuf>>, Receiver<anyhow::Result<PathBuf>>),
    /// Messages about saved outputs.
    pub(crate) saved: (Sender<String>, Receiver<String>),
    /// Pictures to copy to the clipboard.
    pub(crate) copied: (Sender<ColorImage>, Receiver<ColorImage>),
    /// Number of kernel searches when the user requested the list.
    pub(crate) kernels_asked: Option<u64>,
    /// Number of reported moves between saved states, for each note.
    pub(crate) state_moves: HashMap<DocId, u64>,
}

impl Default for BackgroundJobs {
    fn default() -> Self {
        BackgroundJobs {
            exports: ExportState::default(),
            replacement: NotesReplacement::default(),
            named_paths: channel(),
            obsidian: channel(),
            reports: channel(),
            saved: channel(),
            copied: channel(),
            kernels_asked: None,
            state_moves: HashMap::new(),
        }
    }
}
