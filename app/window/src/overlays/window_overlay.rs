//! What floats above the rest: at most one thing at a time.

use crate::overlays::command_palette::CommandPalette;
use crate::overlays::dialogs::Dialog;
use crate::overlays::{search, settings};

/// What floats above the rest.
pub(crate) enum WindowOverlay {
    None,
    Palette(CommandPalette),
    Search(Box<search::SearchOverlay>),
    Dialog(Dialog),
    Settings(Box<settings::SettingsPage>),
}
