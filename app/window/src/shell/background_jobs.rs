//! Work in the background, and its results.

use crate::overlays::export_form::ExportState;
use crate::shell::notes_replacement::NotesReplacement;
use eframe::egui::ColorImage;
use host::desktop::TypedPath;
use host::fs::obsidian_settings::ObsidianSettings;
use host::kernel_states::NoteStates;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use store::DocId;

/// A note and its saved states.
pub(crate) type StatesOfNote = (DocId, NoteStates);

/// What a vault of Obsidian says.
pub(crate) struct VaultSettings {
    pub(crate) read: ObsidianSettings,
    /// Whether it is taken over, else offered.
    pub(crate) takes_over: bool,
}

/// Background work of the window.
pub(crate) struct BackgroundJobs {
    pub(crate) exports: ExportState,
    /// Text that is being replaced in many notes.
    pub(crate) replacement: NotesReplacement,
    /// Paths that the command line named, once they were looked at.
    pub(crate) named_paths: (Sender<TypedPath>, Receiver<TypedPath>),
    /// What vaults of Obsidian say, once that was read.
    pub(crate) obsidian: (Sender<VaultSettings>, Receiver<VaultSettings>),
    /// Results of saving outputs.
    pub(crate) saved: (Sender<String>, Receiver<String>),
    /// Pictures for the clipboard.
    pub(crate) copied: (Sender<ColorImage>, Receiver<ColorImage>),
    /// Number of kernel searches when the user asked for the list.
    pub(crate) kernels_asked: Option<u64>,
    /// Saved states that were read from the disk.
    pub(crate) states: (Sender<StatesOfNote>, Receiver<StatesOfNote>),
    /// How many moves between saved states each note has reported.
    pub(crate) state_moves: HashMap<DocId, u64>,
}

impl Default for BackgroundJobs {
    fn default() -> Self {
        BackgroundJobs {
            exports: ExportState::default(),
            replacement: NotesReplacement::default(),
            named_paths: channel(),
            obsidian: channel(),
            saved: channel(),
            copied: channel(),
            kernels_asked: None,
            states: channel(),
            state_moves: HashMap::new(),
        }
    }
}
