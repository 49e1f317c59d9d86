//! Sets of default keys: the commands whose keys differ from the command table.

use crate::CommandId;
use serde::{Deserialize, Serialize};

/// A set of default keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeymapPreset {
    /// The keys of the command table.
    #[default]
    Tracebook,
    /// Keys as in VS Code.
    VsCode,
    /// Keys as in Obsidian.
    Obsidian,
    /// Vim's motions and modes in the note.
    Vim,
    /// Jupyter's command mode in cells.
    Jupyter,
}

/// Commands and their keys.
pub type CommandKeys = &'static [(CommandId, &'static [&'static str])];

const VS_CODE_KEYS: CommandKeys = &[
    (CommandId::PaletteOpen, &["Ctrl+Shift+P", "F1"]),
    (CommandId::TabNext, &["Ctrl+PageDown", "Ctrl+Tab"]),
    (CommandId::TabPrevious, &["Ctrl+PageUp", "Ctrl+Shift+Tab"]),
    (CommandId::ViewLeft, &["Ctrl+B"]),
    (CommandId::ViewRight, &["Ctrl+Alt+B"]),
    (CommandId::PaneSplitRight, &["Ctrl+Backslash"]),
    (CommandId::TextBold, &[]),
    (CommandId::RowDuplicate, &["Alt+Shift+ArrowDown"]),
    (CommandId::NoteRedo, &["Ctrl+Y", "Ctrl+Shift+Z"]),
    (CommandId::NoteNew, &["Ctrl+N"]),
];

const OBSIDIAN_KEYS: CommandKeys = &[
    (CommandId::PaletteOpen, &["Ctrl+P"]),
    (CommandId::SwitcherOpen, &["Ctrl+O"]),
    (CommandId::FolderOpen, &["Ctrl+Shift+O"]),
    (CommandId::ViewLeft, &["Ctrl+Alt+ArrowLeft"]),
    (CommandId::ViewRight, &["Ctrl+Alt+ArrowRight"]),
    (CommandId::TextBold, &["Ctrl+B"]),
    (CommandId::TextTask, &["Ctrl+L"]),
];

const VIM_KEYS: CommandKeys = &[(CommandId::SelectNext, &["Ctrl+Alt+N"])];

impl KeymapPreset {
    /// All presets in the order of the settings page.
    pub const ALL: [KeymapPreset; 5] = [
        KeymapPreset::Tracebook,
        KeymapPreset::VsCode,
        KeymapPreset::Obsidian,
        KeymapPreset::Vim,
        KeymapPreset::Jupyter,
    ];

    /// Returns the preset's name.
    pub fn name(self) -> &'static str {
        match self {
            KeymapPreset::Tracebook => "Tracebook",
            KeymapPreset::VsCode => "VS Code",
            KeymapPreset::Obsidian => "Obsidian",
            KeymapPreset::Vim => "Vim",
            KeymapPreset::Jupyter => "Jupyter",
        }
    }

    /// Returns the commands whose keys the preset changes, and their keys.
    pub fn command_keys(self) -> CommandKeys {
        match self {
            KeymapPreset::Tracebook | KeymapPreset::Jupyter => &[],
            KeymapPreset::VsCode => VS_CODE_KEYS,
            KeymapPreset::Obsidian => OBSIDIAN_KEYS,
            KeymapPreset::Vim => VIM_KEYS,
        }
    }
}
