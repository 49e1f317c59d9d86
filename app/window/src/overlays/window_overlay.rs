//! The overlay above the window's content: at most one at a time.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::{search, settings};

/// The overlay above the window's content.
pub(crate) enum WindowOverlay {
    None,
    Palette(CommandPalette),
    Search(Box<search::SearchOverlay>),
    Dialog(Dialog),
    Settings(Box<settings::SettingsPage>),
}
