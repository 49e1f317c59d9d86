//! Hotkeys of an Obsidian vault, as keys of Tracebook's commands.

use super::MAX_VALUE_BYTES;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::CommandId;
use serde_json::Value;
use std::collections::BTreeMap;
use ui::key_names::{can_be_set, key_text};

/// Maximum number of commands with hotkeys.
const MAX_HOTKEYS: usize = 2_000;

/// Obsidian's commands and those here that do the same.
const COUNTERPARTS: &[(&str, CommandId)] = &[
    ("app:delete-file", CommandId::NoteDelete),
    ("app:open-help", CommandId::HelpOpen),
    ("app:open-settings", CommandId::AppSettings),
    ("app:toggle-left-sidebar", CommandId::ViewLeft),
    ("app:toggle-right-sidebar", CommandId::ViewRight),
    ("backlink:open", CommandId::ViewLinks),
    ("backlink:open-backlinks", CommandId::ViewLinks),
    ("bookmarks:bookmark-current-view", CommandId::NoteStar),
    ("command-palette:open", CommandId::PaletteOpen),
    ("daily-notes", CommandId::NoteToday),
    ("editor:fold-all", CommandId::FoldAll),
    ("editor:insert-link", CommandId::TextLink),
    ("editor:open-search", CommandId::FindOpen),
    ("editor:open-search-replace", CommandId::FindReplace),
    ("editor:save-file", CommandId::NoteSave),
    ("editor:swap-line-down", CommandId::RowDown),
    ("editor:swap-line-up", CommandId::RowUp),
    ("editor:toggle-bold", CommandId::TextBold),
    ("editor:toggle-checklist-status", CommandId::TextTask),
    ("editor:toggle-code", CommandId::TextCode),
    ("editor:toggle-fold", CommandId::FoldHere),
    ("editor:toggle-italics", CommandId::TextItalic),
    ("editor:toggle-spellcheck", CommandId::ViewSpelling),
    ("editor:toggle-strikethrough", CommandId::TextStrike),
    ("editor:unfold-all", CommandId::FoldNone),
    ("file-explorer:duplicate-file", CommandId::NoteDuplicate),
    ("file-explorer:move-file", CommandId::NoteRename),
    ("file-explorer:new-file", CommandId::NoteNew),
    ("file-explorer:open", CommandId::ViewFiles),
    ("file-explorer:reveal-active-file", CommandId::ViewReveal),
    ("file-recovery:open", CommandId::NoteHistory),
    ("global-search:open", CommandId::SearchOpen),
    ("graph:open", CommandId::ViewGraph),
    ("graph:open-local", CommandId::ViewLocalGraph),
    ("insert-template", CommandId::TemplateInsert),
    ("switcher:open", CommandId::SwitcherOpen),
    ("tag-pane:open", CommandId::ViewTags),
    ("theme:switch", CommandId::ViewChooseTheme),
    ("theme:toggle-light-dark", CommandId::ViewTheme),
    ("window:reset-zoom", CommandId::ViewReset),
    ("window:zoom-in", CommandId::ViewLarger),
    ("window:zoom-out", CommandId::ViewSmaller),
    ("workspace:close", CommandId::NoteClose),
    ("workspace:edit-file-title", CommandId::NoteRename),
    ("workspace:export-pdf", CommandId::ExportPdf),
    ("workspace:new-tab", CommandId::TabNew),
    ("workspace:next-tab", CommandId::TabNext),
    ("workspace:previous-tab", CommandId::TabPrevious),
    ("workspace:split-horizontal", CommandId::PaneSplitDown),
    ("workspace:split-vertical", CommandId::PaneSplitRight),
    ("workspace:undo-close-pane", CommandId::TabReopen),
];

/// Keys by command, and the names of what has no counterpart.
type ReadHotkeys = (BTreeMap<CommandId, Vec<String>>, Vec<String>);

/// Reads the hotkeys of a vault. `None` if the file holds something else.
pub(super) fn read(file: &Value) -> Option<ReadHotkeys> {
    let (mut keys, mut left_out) = (BTreeMap::<CommandId, Vec<String>>::new(), Vec::new());
    if file.is_null() {
        return Some((keys, left_out));
    }
    let commands = file.as_object()?;
    if commands.len() > MAX_HOTKEYS {
        return None;
    }
    for (theirs, hotkeys) in commands {
        let hotkeys = hotkeys.as_array()?;
        if theirs.len() > MAX_VALUE_BYTES || theirs.chars().any(char::is_control) {
            return None;
        }
        let Some((_, command)) = COUNTERPARTS.iter().find(|(known, _)| known == theirs) else {
            // Taking a key from a command that doesn't exist here changes nothing.
            left_out.extend((!hotkeys.is_empty()).then(|| format!("hotkey {theirs}")));
            continue;
        };
        let usable: Vec<String> = hotkeys.iter().filter_map(key_of).collect();
        if usable.len() < hotkeys.len() {
            left_out.push(format!("a key of hotkey {theirs}"));
        }
        if hotkeys.is_empty() || !usable.is_empty() {
            keys.entry(*command).or_default().extend(usable);
        }
    }
    Some((keys, left_out))
}

/// Returns a hotkey in the notation of the command table. `None` if no command here can have it.
fn key_of(hotkey: &Value) -> Option<String> {
    let mut modifiers = Modifiers::NONE;
    for name in hotkey.get("modifiers")?.as_array()? {
        modifiers |= match name.as_str()? {
            "Mod" | "Ctrl" => Modifiers::COMMAND,
            "Shift" => Modifiers::SHIFT,
            "Alt" => Modifiers::ALT,
            _ => return None,
        };
    }
    let key = Key::from_name(hotkey.get("key")?.as_str()?)?;
    can_be_set(key, modifiers).then(|| key_text(key, modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counterpart_is_a_command_of_the_window() {
        for (theirs, command) in COUNTERPARTS {
            assert!(command.info().window, "{theirs}");
        }
        assert!(COUNTERPARTS.is_sorted_by(|one, next| one.0 < next.0), "sorted, and each once");
    }

    #[test]
    fn keys_are_written_as_in_the_table() {
        let file = serde_json::json!({
            "editor:save-file": [{"modifiers": ["Mod", "Shift"], "key": "s"}, {"modifiers": ["Meta"], "key": "S"}],
            "switcher:open": [],
            "theme:switch": [{"modifiers": [], "key": "T"}],
            "window:zoom-in": [{"modifiers": ["Ctrl"], "key": "="}],
            "other-plugin:jump": [{"modifiers": ["Alt"], "key": "J"}],
            "other-plugin:gone": [],
        });
        let (keys, left_out) = read(&file).expect("hotkeys");
        let expected = [
            (CommandId::SwitcherOpen, vec![]),
            (CommandId::NoteSave, vec!["Ctrl+Shift+S".to_owned()]),
            (CommandId::ViewLarger, vec!["Ctrl+Plus".to_owned()]),
        ];
        assert_eq!(keys, BTreeMap::from(expected));
        let mut names = left_out;
        names.sort();
        let expected = ["a key of hotkey editor:save-file", "a key of hotkey theme:switch", "hotkey other-plugin:jump"];
        assert_eq!(names, expected);
        for bad in [serde_json::json!([]), serde_json::json!({"editor:save-file": 1})] {
            assert!(read(&bad).is_none(), "{bad}");
        }
        assert!(read(&Value::Null).is_some_and(|(keys, left_out)| keys.is_empty() && left_out.is_empty()));
    }
}
