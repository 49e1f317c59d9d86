//! Maps keys to commands: the keys of the command table, then those of a preset, then the user's own, each overriding
//! the one before. A key belongs to one command; a later assignment takes it from the earlier command.

use crate::settings::Settings;
pub use commands::keymap_preset::KeymapPreset;
use commands::{COMMANDS, CommandId};
use std::collections::BTreeMap;

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
