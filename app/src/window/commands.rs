//! The commands of the table that the window offers: which key means which, and what each is here. What they do is in
//! `window.rs`; what they are called is in `engine::commands`.

use super::views::Go;
use super::writing::Writing;
use eframe::egui;
use egui::{Key, Modifiers};
use engine::commands::{COMMANDS, CommandInfo};

/// A command of the table, as the window knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Palette,
    Switcher,
    NewNote,
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
    Stop,
    Restart,
    Left,
    Right,
    Theme,
    Spelling,
    Correct,
    Larger,
    Smaller,
    NormalSize,
    Keys,
    Quit,
    Find,
    Replace,
    NextMatch,
    PreviousMatch,
    SelectNext,
    SelectAll,
    /// It writes at the caret.
    Write(Writing),
    /// It concerns links or files.
    Go(Go),
}

/// What a command of the table is here.
pub(super) fn what(id: &str) -> Option<What> {
    let what = match id {
        "palette.open" => What::Palette,
        "switcher.open" => What::Switcher,
        "note.new" => What::NewNote,
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
        "cell.stop" => What::Stop,
        "kernel.restart" => What::Restart,
        "view.left" => What::Left,
        "view.right" => What::Right,
        "view.theme" => What::Theme,
        "view.spelling" => What::Spelling,
        "text.spelling" => What::Correct,
        "view.larger" => What::Larger,
        "view.smaller" => What::Smaller,
        "view.reset" => What::NormalSize,
        "app.keys" => What::Keys,
        "app.quit" => What::Quit,
        "find.open" => What::Find,
        "find.replace" => What::Replace,
        "find.next" => What::NextMatch,
        "find.previous" => What::PreviousMatch,
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
        _ => return super::views::go(id).map(What::Go),
    };
    Some(what)
}

/// The commands that the window offers.
pub(super) fn offered() -> impl Iterator<Item = &'static CommandInfo> {
    COMMANDS.iter().filter(|command| command.window)
}

/// The key that is shown for a command.
pub(super) fn key_of(id: &str) -> Option<&'static str> {
    engine::commands::command(id)?.keys.first().copied()
}

/// A key and the command that it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortcut {
    modifiers: Modifiers,
    key: Key,
    pub(super) what: What,
}

/// All keys of the table.
pub(super) fn shortcuts() -> Vec<Shortcut> {
    let mut all = Vec::new();
    for command in offered() {
        for (place, keys) in command.keys.iter().enumerate() {
            if let (Some((modifiers, key)), Some(what)) = (parse(keys), what(command.id)) {
                // Of the two keys that run a cell, the first moves on.
                let what = if let What::RunCell { .. } = what { What::RunCell { on: place == 0 } } else { what };
                all.push(Shortcut { modifiers, key, what });
            }
        }
    }
    all
}

impl Shortcut {
    /// Whether this key press is meant.
    pub(super) fn fits(&self, key: Key, modifiers: Modifiers) -> bool {
        // `+` stands behind shift on many keyboards, and behind `=` on others.
        let symbol = matches!(self.key, Key::Plus);
        let same = key == self.key || (symbol && key == Key::Equals);
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
        assert_eq!(shortcuts().len(), keys);
    }

    #[test]
    fn keys_are_exact() {
        let all = shortcuts();
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
