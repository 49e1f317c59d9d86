//! The commands of the table that the window offers: which key means which, and what each is here. What they do is in
//! `window.rs`; what they are called is in `engine::commands`.

use super::exports::{Exporting, exporting};
use super::figure::Turn;
use super::filing::{Filing, filing};
use super::jupyter::Cells;
use super::views::Go;
use super::writing::Writing;
use agent_ui::agent::{Asked, asked};
use agent_ui::memory::{Remembering, remembering};
use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::{COMMANDS, CommandInfo};
use engine::keymap::keymap;
use engine::{Reactivity, Settings};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A command of the table, as the window knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
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
    File(Filing),
    /// It writes notes to a new place.
    Export(Exporting),
    /// A figure, looked at in another way.
    Figure(Turn),
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
    Write(Writing),
    /// It concerns links or files.
    Go(Go),
    /// It concerns whole cells.
    Cells(Cells),
    /// It concerns the agent.
    Agent(Asked),
    /// It concerns what is remembered.
    Remember(Remembering),
}

/// What a command of the table is here.
pub(super) fn what(id: &str) -> Option<What> {
    let what = match id {
        "palette.open" => What::Palette,
        "switcher.open" => What::Switcher,
        "search.open" => What::Search,
        "note.new" => What::NewNote,
        "collection.new" => What::NewCollection,
        "collection.next_view" => What::TurnView { back: false },
        "collection.previous_view" => What::TurnView { back: true },
        "figure.closer" => What::Figure(Turn::In),
        "figure.farther" => What::Figure(Turn::Out),
        "figure.reset" => What::Figure(Turn::Reset),
        "folder.open" => What::OpenFolder,
        "folder.rescan" => What::Rescan,
        "volume.close" => What::CloseVolume,
        "note.save" => What::Save,
        "note.undo" => What::Undo,
        "note.redo" => What::Redo,
        "note.close" => What::CloseNote,
        "tab.new" => What::NewTab,
        "tab.reopen" => What::ReopenTab,
        "tab.next" => What::NextTab,
        "tab.previous" => What::PreviousTab,
        "pane.split_right" => What::SplitRight,
        "pane.split_down" => What::SplitDown,
        "cell.run" => What::RunCell { on: false },
        "note.run_all" => What::RunAll,
        "note.run_stale" => What::RunStale,
        "note.run_clean" => What::RunClean,
        "cells.manual" => What::React(Reactivity::Manual),
        "cells.marks" => What::React(Reactivity::Marks),
        "cells.automatic" => What::React(Reactivity::Automatic),
        "view.variables" => What::Variables,
        "kernel.choose" => What::Kernel,
        "kernel.grant" => What::Grant,
        "cell.stop" => What::Stop,
        "kernel.restart" => What::Restart,
        "view.left" => What::Left,
        "view.right" => What::Right,
        "view.theme" => What::Theme,
        "view.spelling" => What::Spelling,
        "script.runs" => What::ScriptRuns,
        "text.spelling" => What::Correct,
        "view.larger" => What::Larger,
        "view.smaller" => What::Smaller,
        "view.reset" => What::NormalSize,
        "app.keys" => What::Keys,
        "app.settings" => What::Settings,
        "view.contrast" => What::Contrast,
        "text.paste_plain" => What::PastePlain,
        "app.quit" => What::Quit,
        "find.open" => What::Find,
        "find.replace" => What::Replace,
        "find.next" => What::NextMatch,
        "find.previous" => What::PreviousMatch,
        "fold.here" => What::Fold,
        "fold.all" => What::FoldAll,
        "fold.none" => What::UnfoldAll,
        "select.next" => What::SelectNext,
        "select.all" => What::SelectAll,
        "row.up" => What::Write(Writing::Up),
        "row.down" => What::Write(Writing::Down),
        "row.duplicate" => What::Write(Writing::Duplicate),
        "text.bold" => What::Write(Writing::Bold),
        "text.italic" => What::Write(Writing::Italic),
        "text.code" => What::Write(Writing::Code),
        "text.strike" => What::Write(Writing::Strike),
        "text.link" => What::Write(Writing::Link),
        "text.task" => What::Write(Writing::Task),
        _ => {
            let file = || filing(id).map(What::File);
            let cells = || super::jupyter::cells(id).map(What::Cells);
            let agent = || asked(id).map(What::Agent);
            let memory = || remembering(id).map(What::Remember);
            let export = || exporting(id).map(What::Export);
            let go = super::views::go(id).map(What::Go);
            return go.or_else(file).or_else(cells).or_else(export).or_else(agent).or_else(memory);
        }
    };
    Some(what)
}

/// The commands that the window offers.
pub(super) fn offered() -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(|command| command.window)
}

/// The keys of commands.
type Spelled = BTreeMap<&'static str, Vec<&'static str>>;

thread_local! {
    /// The keys of each command, as they are set at the moment. One thread draws.
    static KEYS: RefCell<Spelled> = const { RefCell::new(BTreeMap::new()) };
    /// Every key that was ever set; each is kept for good, since there are few.
    static SPELLINGS: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// The keys of a command.
pub(super) fn keys_of(id: &str) -> Vec<&'static str> {
    KEYS.with_borrow(|keys| keys.get(id).cloned()).unwrap_or_default()
}

/// The key that is shown for a command.
pub(super) fn key_of(id: &str) -> Option<&'static str> {
    keys_of(id).first().copied()
}

/// A key and the command that it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortcut {
    modifiers: Modifiers,
    key: Key,
    pub(super) what: What,
}

/// All keys, as they are set. From now on they are shown beside their commands.
pub(super) fn shortcuts(settings: &Settings) -> Vec<Shortcut> {
    let map = keymap(settings);
    let spelling = |key: &String| {
        SPELLINGS.with_borrow_mut(|known| {
            let key = known.get(key.as_str()).copied().unwrap_or_else(|| String::leak(key.clone()));
            known.insert(key);
            key
        })
    };
    let spelled: Spelled = map.iter().map(|(id, keys)| (*id, keys.iter().map(spelling).collect())).collect();
    KEYS.set(spelled);
    let mut all = Vec::new();
    for command in offered() {
        for (place, keys) in map.get(command.id).into_iter().flatten().enumerate() {
            if let (Some((modifiers, key)), Some(what)) = (parse(keys), what(command.id)) {
                // Of the two keys that run a cell, the first moves on.
                let what = if let What::RunCell { .. } = what { What::RunCell { on: place == 0 } } else { what };
                all.push(Shortcut { modifiers, key, what });
            }
        }
    }
    all
}

/// A key as the table writes it.
pub(super) fn spell(key: Key, modifiers: Modifiers) -> String {
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

impl Shortcut {
    /// Whether this key press is meant.
    pub(super) fn fits(&self, key: Key, modifiers: Modifiers) -> bool {
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
        for command in offered() {
            assert!(what(command.id).is_some(), "not wired: {}", command.id);
            for keys in command.keys {
                assert!(parse(keys).is_some(), "not a key: {keys}");
            }
        }
        let keys: usize = offered().map(|command| command.keys.len()).sum();
        assert_eq!(shortcuts(&Settings::default()).len(), keys);
        for preset in engine::keymap::Preset::ALL {
            let settings = Settings { preset, ..Settings::default() };
            for key in keymap(&settings).values().flatten() {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // As a press would be written down.
                let (pressed, again) = parse(&spell(code, modifiers)).expect("a key");
                assert_eq!((pressed, again), (modifiers, code), "{key}");
            }
        }
    }

    #[test]
    fn every_key_of_every_preset_means_its_command() {
        for preset in engine::keymap::Preset::ALL {
            let settings = Settings { preset, ..Settings::default() };
            let all = shortcuts(&settings);
            let map = keymap(&settings);
            for (id, key) in offered().flat_map(|info| map[info.id].iter().map(|key| (info.id, key))) {
                let (modifiers, code) = parse(key).unwrap_or_else(|| panic!("not a key: {key}"));
                // As the keyboard reports it: the command key is Ctrl, too.
                let ctrl = if modifiers.command { Modifiers::CTRL } else { Modifiers::NONE };
                let meant = all.iter().find(|shortcut| shortcut.fits(code, modifiers | ctrl)).map(|found| found.what);
                let meant = match meant {
                    Some(What::RunCell { .. }) => Some(What::RunCell { on: false }),
                    meant => meant,
                };
                assert_eq!(meant, what(id), "{preset:?}: {key} for {id}");
            }
        }
    }

    #[test]
    fn keys_are_exact() {
        let all = shortcuts(&Settings::default());
        assert_eq!(key_of("switcher.open"), Some("Ctrl+P"));
        let find = |key, modifiers| all.iter().find(|shortcut| shortcut.fits(key, modifiers)).map(|found| found.what);
        let ctrl = Modifiers { ctrl: true, command: true, ..Modifiers::NONE };
        assert_eq!(find(Key::P, ctrl), Some(What::Switcher));
        assert_eq!(find(Key::P, ctrl | Modifiers::SHIFT), Some(What::Palette));
        assert_eq!(find(Key::Equals, ctrl | Modifiers::SHIFT), Some(What::Larger));
        assert_eq!(find(Key::Enter, Modifiers::SHIFT), Some(What::RunCell { on: true }));
        assert_eq!(find(Key::Enter, ctrl), Some(What::RunCell { on: false }));
        assert_eq!(find(Key::P, Modifiers::NONE), None);
    }
}
