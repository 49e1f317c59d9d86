//! The commands of the table that the window offers: which key means which, and what each is here. What they do is in
//! `window.rs`; what they are called is in `engine::commands`.

use super::command_mode::CellCommand;
use super::exports::{ExportCommand, export_command};
use super::figure::FigureCommand;
use super::format_commands::FormatCommand;
use super::note_actions::{NoteCommand, note_command};
use super::pages::NavigationCommand;
use agent_ui::agent::{AgentCommand, agent_command};
use agent_ui::memory::{MemoryCommand, memory_command};
use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::{COMMANDS, CommandInfo};
use engine::keymap::effective_keymap;
use engine::{Reactivity, Settings};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A command of the table, as the window knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowCommand {
    Palette,
    Switcher,
    Search,
    NewNote,
    NewCollection,
    OpenFolder,
    Rescan,
    CloseVolume,
    Save,
    Undo,
    Redo,
    CloseNote,
    NewTab,
    ReopenTab,
    NextTab,
    PreviousTab,
    SplitRight,
    SplitDown,
    /// `on`: the caret moves on to the next row.
    RunCell {
        on: bool,
    },
    RunAll,
    RunStale,
    RunClean,
    React(Reactivity),
    Kernel,
    /// Say what the note's cells may reach.
    Grant,
    Variables,
    Stop,
    Restart,
    Left,
    Right,
    Theme,
    Spelling,
    /// Let scripts run while one types, or not.
    ScriptRuns,
    Correct,
    Larger,
    Smaller,
    NormalSize,
    Keys,
    Settings,
    Contrast,
    /// It keeps notes in order.
    File(NoteCommand),
    /// It writes notes to a new place.
    Export(ExportCommand),
    /// A figure, looked at in another way.
    Figure(FigureCommand),
    /// Another view of a collection.
    TurnView {
        back: bool,
    },
    Quit,
    PastePlain,
    Find,
    Replace,
    NextMatch,
    PreviousMatch,
    Fold,
    FoldAll,
    UnfoldAll,
    SelectNext,
    SelectAll,
    /// It writes at the caret.
    Write(FormatCommand),
    /// It concerns links or files.
    Go(NavigationCommand),
    /// It concerns whole cells.
    Cells(CellCommand),
    /// It concerns the agent.
    Agent(AgentCommand),
    /// It concerns what is remembered.
    Remember(MemoryCommand),
}

/// What a command of the table is here.
pub(super) fn window_command(id: &str) -> Option<WindowCommand> {
    let what = match id {
        "palette.open" => WindowCommand::Palette,
        "switcher.open" => WindowCommand::Switcher,
        "search.open" => WindowCommand::Search,
        "note.new" => WindowCommand::NewNote,
        "collection.new" => WindowCommand::NewCollection,
        "collection.next_view" => WindowCommand::TurnView { back: false },
        "collection.previous_view" => WindowCommand::TurnView { back: true },
        "figure.closer" => WindowCommand::Figure(FigureCommand::In),
        "figure.farther" => WindowCommand::Figure(FigureCommand::Out),
        "figure.reset" => WindowCommand::Figure(FigureCommand::Reset),
        "folder.open" => WindowCommand::OpenFolder,
        "folder.rescan" => WindowCommand::Rescan,
        "volume.close" => WindowCommand::CloseVolume,
        "note.save" => WindowCommand::Save,
        "note.undo" => WindowCommand::Undo,
        "note.redo" => WindowCommand::Redo,
        "note.close" => WindowCommand::CloseNote,
        "tab.new" => WindowCommand::NewTab,
        "tab.reopen" => WindowCommand::ReopenTab,
        "tab.next" => WindowCommand::NextTab,
        "tab.previous" => WindowCommand::PreviousTab,
        "pane.split_right" => WindowCommand::SplitRight,
        "pane.split_down" => WindowCommand::SplitDown,
        "cell.run" => WindowCommand::RunCell { on: false },
        "note.run_all" => WindowCommand::RunAll,
        "note.run_stale" => WindowCommand::RunStale,
        "note.run_clean" => WindowCommand::RunClean,
        "cells.manual" => WindowCommand::React(Reactivity::Manual),
        "cells.marks" => WindowCommand::React(Reactivity::Marks),
        "cells.automatic" => WindowCommand::React(Reactivity::Automatic),
        "view.variables" => WindowCommand::Variables,
        "kernel.choose" => WindowCommand::Kernel,
        "kernel.grant" => WindowCommand::Grant,
        "cell.stop" => WindowCommand::Stop,
        "kernel.restart" => WindowCommand::Restart,
        "view.left" => WindowCommand::Left,
        "view.right" => WindowCommand::Right,
        "view.theme" => WindowCommand::Theme,
        "view.spelling" => WindowCommand::Spelling,
        "script.runs" => WindowCommand::ScriptRuns,
        "text.spelling" => WindowCommand::Correct,
        "view.larger" => WindowCommand::Larger,
        "view.smaller" => WindowCommand::Smaller,
        "view.reset" => WindowCommand::NormalSize,
        "app.keys" => WindowCommand::Keys,
        "app.settings" => WindowCommand::Settings,
        "view.contrast" => WindowCommand::Contrast,
        "text.paste_plain" => WindowCommand::PastePlain,
        "app.quit" => WindowCommand::Quit,
        "find.open" => WindowCommand::Find,
        "find.replace" => WindowCommand::Replace,
        "find.next" => WindowCommand::NextMatch,
        "find.previous" => WindowCommand::PreviousMatch,
        "fold.here" => WindowCommand::Fold,
        "fold.all" => WindowCommand::FoldAll,
        "fold.none" => WindowCommand::UnfoldAll,
        "select.next" => WindowCommand::SelectNext,
        "select.all" => WindowCommand::SelectAll,
        "row.up" => WindowCommand::Write(FormatCommand::Up),
        "row.down" => WindowCommand::Write(FormatCommand::Down),
        "row.duplicate" => WindowCommand::Write(FormatCommand::Duplicate),
        "text.bold" => WindowCommand::Write(FormatCommand::Bold),
        "text.italic" => WindowCommand::Write(FormatCommand::Italic),
        "text.code" => WindowCommand::Write(FormatCommand::Code),
        "text.strike" => WindowCommand::Write(FormatCommand::Strike),
        "text.link" => WindowCommand::Write(FormatCommand::Link),
        "text.task" => WindowCommand::Write(FormatCommand::Task),
        _ => {
            let file = || note_command(id).map(WindowCommand::File);
            let cells = || super::command_mode::cell_command(id).map(WindowCommand::Cells);
            let agent = || agent_command(id).map(WindowCommand::Agent);
            let memory = || memory_command(id).map(WindowCommand::Remember);
            let export = || export_command(id).map(WindowCommand::Export);
            let go = super::pages::navigation_command(id).map(WindowCommand::Go);
            return go.or_else(file).or_else(cells).or_else(export).or_else(agent).or_else(memory);
        }
    };
    Some(what)
}

/// The commands that the window offers.
pub(super) fn available_commands() -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(|command| command.window)
}

/// The keys of commands.
type ShortcutTexts = BTreeMap<&'static str, Vec<&'static str>>;

thread_local! {
    /// The keys of each command, as they are set at the moment. One thread draws.
    static COMMAND_KEYS: RefCell<ShortcutTexts> = const { RefCell::new(BTreeMap::new()) };
    /// Every key that was ever set; each is kept for good, since there are few.
    static INTERNED_KEY_TEXTS: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// The keys of a command.
pub(super) fn keys_of(id: &str) -> Vec<&'static str> {
    COMMAND_KEYS.with_borrow(|keys| keys.get(id).cloned()).unwrap_or_default()
}

/// The key that is shown for a command.
pub(super) fn key_of(id: &str) -> Option<&'static str> {
    keys_of(id).first().copied()
}

/// A key and the command that it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyShortcut {
    modifiers: Modifiers,
    key: Key,
    pub(super) what: WindowCommand,
}

/// All keys, as they are set. From now on they are shown beside their commands.
pub(super) fn shortcuts(settings: &Settings) -> Vec<KeyShortcut> {
    let map = effective_keymap(settings);
    let spelling = |key: &String| {
        INTERNED_KEY_TEXTS.with_borrow_mut(|known| {
            let key = known.get(key.as_str()).copied().unwrap_or_else(|| String::leak(key.clone()));
            known.insert(key);
            key
        })
    };
    let spelled: ShortcutTexts = map.iter().map(|(id, keys)| (*id, keys.iter().map(spelling).collect())).collect();
    COMMAND_KEYS.set(spelled);
    let mut all = Vec::new();
    for command in available_commands() {
        for (place, keys) in map.get(command.id).into_iter().flatten().enumerate() {
            if let (Some((modifiers, key)), Some(what)) = (parse(keys), window_command(command.id)) {
                // Of the two keys that run a cell, the first moves on.
                let what = if let WindowCommand::RunCell { .. } = what {
                    WindowCommand::RunCell { on: place == 0 }
                } else {
                    what
                };
                all.push(KeyShortcut { modifiers, key, what });
            }
        }
    }
    all
}

/// A key as the table writes it.
pub(super) fn key_text(key: Key, modifiers: Modifiers) -> String {
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

/// Whether a key can be given to a command: what types or moves the caret cannot.
pub(super) fn can_be_set(key: Key, modifiers: Modifiers) -> bool {
    let function = Key::F1 <= key && key <= Key::F35;
    function || modifiers.command || modifiers.alt || (key == Key::Enter && modifiers.shift)
}

impl KeyShortcut {
    /// Whether this key press is meant.
    pub(super) fn matches_key(&self, key: Key, modifiers: Modifiers) -> bool {
        // `+` stands behind shift on many keyboards, and behind `=` on others.
        let symbol = matches!(self.key, Key::Plus);
        // With shift, some keyboards report the other sign on the key.
        let pipe = self.key == Key::Backslash && key == Key::Pipe;
        let same = key == self.key || (symbol && key == Key::Equals) || pipe;
        let modifiers = if symbol { Modifiers { shift: false, ..modifiers } } else { modifiers };
        same && modifiers.matches_exact(self.modifiers)
    }
}

/// Reads a key as the table writes it: `Ctrl+Shift+P`, `F5`, `Ctrl+Plus`.
fn parse(text: &str) -> Option<(Modifiers, Key)> {
    let mut modifiers = Modifiers::NONE;
    let mut parts = text.split('+').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return Some((modifiers, Key::from_name(part)?));
        }
        modifiers |= match part {
            "Ctrl" => Modifiers::COMMAND,
            "Shift" => Modifiers::SHIFT,
            "Alt" => Modifiers::ALT,
            _ => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_key_of_the_table_is_known() {
        for command in available_commands() {
            assert!(window_command(command.id).is_some(), "not wired: {}", command.id);
            for keys in command.keys {
                assert!(parse(keys).is_some(), "not a key: {keys}");
            }
        }
        let keys: usize = available_commands().map(|command| command.keys.len()).sum();
        assert_eq!(shortcuts(&Settings::default()).len(), keys);
        for preset in engine::keymap::KeymapPreset::ALL {
            let settings = Settings { preset, ..Settings::default() };
            for key in effective_keymap(&settings).values().flatten() {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // As a press would be written down.
                let (pressed, again) = parse(&key_text(code, modifiers)).expect("a key");
                assert_eq!((pressed, again), (modifiers, code), "{key}");
            }
        }
    }

    #[test]
    fn every_key_of_every_preset_means_its_command() {
        for preset in engine::keymap::KeymapPreset::ALL {
            let settings = Settings { preset, ..Settings::default() };
            let all = shortcuts(&settings);
            let map = effective_keymap(&settings);
            for (id, key) in available_commands().flat_map(|info| map[info.id].iter().map(|key| (info.id, key))) {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // As the keyboard reports it: the command key is Ctrl, too.
                let ctrl = if modifiers.command { Modifiers::CTRL } else { Modifiers::NONE };
                let meant =
                    all.iter().find(|shortcut| shortcut.matches_key(code, modifiers | ctrl)).map(|found| found.what);
                let meant = match meant {
                    Some(WindowCommand::RunCell { .. }) => Some(WindowCommand::RunCell { on: false }),
                    meant => meant,
                };
                assert_eq!(meant, window_command(id), "{preset:?}: {key} for {id}");
            }
        }
    }

    #[test]
    fn keys_are_exact() {
        let all = shortcuts(&Settings::default());
        assert_eq!(key_of("switcher.open"), Some("Ctrl+P"));
        let find =
            |key, modifiers| all.iter().find(|shortcut| shortcut.matches_key(key, modifiers)).map(|found| found.what);
        let ctrl = Modifiers { ctrl: true, command: true, ..Modifiers::NONE };
        assert_eq!(find(Key::P, ctrl), Some(WindowCommand::Switcher));
        assert_eq!(find(Key::P, ctrl | Modifiers::SHIFT), Some(WindowCommand::Palette));
        assert_eq!(find(Key::Equals, ctrl | Modifiers::SHIFT), Some(WindowCommand::Larger));
        assert_eq!(find(Key::Enter, Modifiers::SHIFT), Some(WindowCommand::RunCell { on: true }));
        assert_eq!(find(Key::Enter, ctrl), Some(WindowCommand::RunCell { on: false }));
        assert_eq!(find(Key::P, Modifiers::NONE), None);
    }
}
