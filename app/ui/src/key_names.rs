//! Names of keys as the command table, the settings and files have them: `Ctrl+Shift+P`, `F5`.

use eframe::egui;
use egui::{Key, Modifiers};

/// Returns a key in the notation of the command table.
pub fn key_text(key: Key, modifiers: Modifiers) -> String {
    let name = match key {
        Key::Period => ".",
        Key::Comma => ",",
        Key::Equals => "Plus",
        Key::ArrowUp => "ArrowUp",
        Key::ArrowDown => "ArrowDown",
        Key::ArrowLeft => "ArrowLeft",
        Key::ArrowRight => "ArrowRight",
        key => key.name(),
    };
    let parts = [(modifiers.command, "Ctrl+"), (modifiers.alt, "Alt+"), (modifiers.shift, "Shift+")];
    parts.iter().filter(|(held, _)| *held).map(|(_, name)| *name).chain([name]).collect()
}

/// Returns whether a key can be assigned to a command. Keys that type or move the caret can't.
pub fn can_be_set(key: Key, modifiers: Modifiers) -> bool {
    let function = Key::F1 <= key && key <= Key::F35;
    function || modifiers.command || modifiers.alt || (key == Key::Enter && modifiers.shift)
}
