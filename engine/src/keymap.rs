//! Maps keys to commands: the keys of the command table, then those of a preset, then the user's own, each overriding
//! the one before. A key belongs to one command; a later assignment takes it from the earlier command.

use crate::settings::Settings;
use commands::{COMMANDS, CommandId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
type CommandKeys = &'static [(CommandId, &'static [&'static str])];

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

    fn command_keys(self) -> CommandKeys {
        match self {
            KeymapPreset::Tracebook | KeymapPreset::Jupyter => &[],
            KeymapPreset::VsCode => VS_CODE_KEYS,
            KeymapPreset::Obsidian => OBSIDIAN_KEYS,
            KeymapPreset::Vim => VIM_KEYS,
        }
    }
}

/// Returns the keys of every command; the first one is displayed.
pub fn effective_keymap(settings: &Settings) -> BTreeMap<CommandId, Vec<String>> {
    let mut map: BTreeMap<CommandId, Vec<String>> = COMMANDS
        .iter()
        .map(|command| (command.id, command.keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect();
    let preset = settings.keymap_preset.command_keys().iter();
    let preset = preset.map(|(id, keys)| (*id, keys.iter().map(|key| (*key).to_owned()).collect()));
    // Commands of a newer version and removed commands are ignored.
    let own = settings.keys.iter().filter_map(|(id, keys)| Some((id.parse().ok()?, keys.clone())));
    for (id, keys) in preset.chain(own) {
        let keys: Vec<String> = keys;
        for (other, theirs) in &mut map {
            if *other == id {
                theirs.clone_from(&keys);
            } else {
                theirs.retain(|key| !keys.contains(key));
            }
        }
    }
    map
}

/// Returns the commands whose key was assigned to another command: command, key, and the command that has it now.
pub fn overridden_keys(settings: &Settings) -> Vec<(CommandId, String, CommandId)> {
    let now = effective_keymap(settings);
    let before = effective_keymap(&Settings { keys: BTreeMap::new(), ..settings.clone() });
    let mut taken = Vec::new();
    for (id, keys) in before.into_iter().filter(|(id, _)| !settings.keys.contains_key(id.as_str())) {
        for key in keys {
            let has = now.iter().find(|(other, keys)| **other != id && keys.contains(&key));
            taken.extend(has.map(|(other, _)| (id, key, *other)));
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn buttons_ask_for_commands_that_exist() {
        for button in agent::generated_view::BUTTON_COMMANDS {
            assert_eq!(button.id.parse::<CommandId>().map(CommandId::title), Ok(button.title), "{}", button.id);
        }
    }

    #[test]
    fn a_key_means_one_command_in_every_preset() {
        for preset in KeymapPreset::ALL {
            let map = effective_keymap(&Settings { keymap_preset: preset, ..Settings::default() });
            let keys: Vec<&String> = map.values().flatten().collect();
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{preset:?}");
            assert!(
                !map[&CommandId::PaletteOpen].is_empty() && !map[&CommandId::SwitcherOpen].is_empty(),
                "{preset:?}"
            );
        }
    }

    #[test]
    fn what_a_user_set_takes_the_key_from_what_had_it() {
        let mut settings = Settings { keymap_preset: KeymapPreset::Obsidian, ..Settings::default() };
        assert_eq!(effective_keymap(&settings)[&CommandId::PaletteOpen], ["Ctrl+P"]);
        settings.keys.insert("note.save".to_owned(), vec!["Ctrl+P".to_owned()]);
        settings.keys.insert("no.such".to_owned(), vec!["Ctrl+W".to_owned()]);
        let map = effective_keymap(&settings);
        assert_eq!(
            (&map[&CommandId::NoteSave][..], &map[&CommandId::PaletteOpen][..]),
            (&["Ctrl+P".to_owned()][..], &[][..])
        );
        assert_eq!(map[&CommandId::NoteClose], ["Ctrl+W"]);
        assert_eq!(overridden_keys(&settings), [(CommandId::PaletteOpen, "Ctrl+P".to_owned(), CommandId::NoteSave)]);
        settings.keys.clear();
        assert!(overridden_keys(&settings).is_empty());
    }
}
