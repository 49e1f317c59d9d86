//! Which keys mean which command: those of the table, those of another editor on top, and what a user set above all.
//! A key means one command; what is set later takes it from what had it.

use crate::commands::COMMANDS;
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whose keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeymapPreset {
    /// The table's own.
    #[default]
    Tracebook,
    /// As in VS Code.
    VsCode,
    /// As in Obsidian.
    Obsidian,
    /// Vim's motions and modes in the note.
    Vim,
    /// Jupyter's command mode in cells.
    Jupyter,
}

/// Commands and their keys.
type CommandKeys = &'static [(&'static str, &'static [&'static str])];

const VS_CODE_KEYS: CommandKeys = &[
    ("palette.open", &["Ctrl+Shift+P", "F1"]),
    ("app.keys", &["Ctrl+Alt+K"]),
    ("tab.next", &["Ctrl+PageDown", "Ctrl+Tab"]),
    ("tab.previous", &["Ctrl+PageUp", "Ctrl+Shift+Tab"]),
    ("view.right", &["Ctrl+Alt+B"]),
    ("text.bold", &[]),
    ("row.duplicate", &["Alt+Shift+ArrowDown"]),
    ("note.redo", &["Ctrl+Y", "Ctrl+Shift+Z"]),
    ("note.new", &["Ctrl+N"]),
];

const OBSIDIAN_KEYS: CommandKeys = &[
    ("palette.open", &["Ctrl+P"]),
    ("switcher.open", &["Ctrl+O"]),
    ("folder.open", &["Ctrl+Shift+O"]),
    ("view.left", &["Ctrl+Alt+ArrowLeft"]),
    ("view.right", &["Ctrl+Alt+ArrowRight"]),
    ("text.bold", &["Ctrl+B"]),
    ("text.task", &["Ctrl+L"]),
];

const VIM_KEYS: CommandKeys = &[("select.next", &["Ctrl+Alt+N"])];

impl KeymapPreset {
    /// All of them.
    pub const ALL: [KeymapPreset; 5] = [
        KeymapPreset::Tracebook,
        KeymapPreset::VsCode,
        KeymapPreset::Obsidian,
        KeymapPreset::Vim,
        KeymapPreset::Jupyter,
    ];

    /// What it is called.
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

/// The keys of every command, first the one that is shown.
pub fn effective_keymap(settings: &Settings) -> BTreeMap<&'static str, Vec<String>> {
    let mut map: BTreeMap<&'static str, Vec<String>> = COMMANDS
        .iter()
        .map(|command| (command.id, command.keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect();
    let preset = settings.preset.command_keys().iter();
    let preset = preset.map(|(id, keys)| (*id, keys.iter().map(|key| (*key).to_owned()).collect()));
    let own = settings.keys.iter().map(|(id, keys)| (id.as_str(), keys.clone()));
    for (id, keys) in preset.chain(own) {
        let keys: Vec<String> = keys;
        // A command of a newer version, or one that is gone.
        if !map.contains_key(id) {
            continue;
        }
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

/// Commands that have lost a key to one to which the user gave it: which, the key, and the command that has it now.
pub fn overridden_keys(settings: &Settings) -> Vec<(&'static str, String, &'static str)> {
    let now = effective_keymap(settings);
    let before = effective_keymap(&Settings { keys: BTreeMap::new(), ..settings.clone() });
    let mut taken = Vec::new();
    for (id, keys) in before.into_iter().filter(|(id, _)| !settings.keys.contains_key(*id)) {
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
    fn a_key_means_one_command_in_every_preset() {
        for preset in KeymapPreset::ALL {
            for (id, _) in preset.command_keys() {
                assert!(
                    crate::commands::find_command(id).is_some(),
                    "{preset:?} names {id}, which the table does not have"
                );
            }
            let map = effective_keymap(&Settings { preset, ..Settings::default() });
            let keys: Vec<&String> = map.values().flatten().collect();
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{preset:?}");
            assert!(!map["palette.open"].is_empty() && !map["switcher.open"].is_empty(), "{preset:?}");
        }
    }

    #[test]
    fn what_a_user_set_takes_the_key_from_what_had_it() {
        let mut settings = Settings { preset: KeymapPreset::Obsidian, ..Settings::default() };
        assert_eq!(effective_keymap(&settings)["palette.open"], ["Ctrl+P"]);
        settings.keys.insert("note.save".to_owned(), vec!["Ctrl+P".to_owned()]);
        settings.keys.insert("no.such".to_owned(), vec!["Ctrl+W".to_owned()]);
        let map = effective_keymap(&settings);
        assert_eq!((&map["note.save"][..], &map["palette.open"][..]), (&["Ctrl+P".to_owned()][..], &[][..]));
        assert_eq!(map["note.close"], ["Ctrl+W"]);
        assert_eq!(overridden_keys(&settings), [("palette.open", "Ctrl+P".to_owned(), "note.save")]);
        settings.keys.clear();
        assert!(overridden_keys(&settings).is_empty());
    }
}
