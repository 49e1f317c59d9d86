//! Vim's registers: deleted or copied text stored under a letter, and recorded keys.

use super::motions::BufferView;
use super::{MAX_REPEAT_KEYS, VimAction, VimMachine, VimStroke};
use eframe::egui;
use egui::{Key, Modifiers};
use std::collections::BTreeMap;

/// Kind of text in a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RegisterKind {
    #[default]
    Letters,
    /// Whole lines, without the final line ending.
    Lines,
    /// A block: a part of each of several lines.
    Block,
}

/// Content of a register.
#[derive(Clone, Debug, Default)]
pub(super) struct VimRegister {
    pub(super) text: String,
    pub(super) cut: RegisterKind,
    /// Whether the lines had an adjacent separator line.
    pub(super) spaced: bool,
    /// Recorded keys; empty if the text wasn't recorded.
    keys: Vec<VimStroke>,
}

impl VimRegister {
    pub(super) fn new(text: String, cut: RegisterKind, spaced: bool) -> VimRegister {
        VimRegister { text, cut, spaced, keys: Vec::new() }
    }

    /// Appends another register; if either holds lines, the appended text starts on a new line.
    fn append(&mut self, other: VimRegister) {
        if self.cut == RegisterKind::Letters && other.cut == RegisterKind::Letters {
            self.text.push_str(&other.text);
        } else if !self.text.is_empty() || self.cut == RegisterKind::Lines {
            self.cut = if self.cut == other.cut { self.cut } else { RegisterKind::Lines };
            self.text.push_str(if self.spaced && other.spaced { "\n\n" } else { "\n" });
            self.text.push_str(&other.text);
        } else {
            (self.text, self.cut, self.spaced) = (other.text, other.cut, other.spaced);
        }
        self.keys.extend(other.keys);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct VimRegisters {
    /// Registers by name:
    ///
    /// - `a` to `z`: named by the user
    /// - `0`: the last copied text
    /// - `1` to `9`: deleted text, the newest first
    /// - `-`: deleted text within a line
    /// - `+`: the clipboard, as last seen
    named: BTreeMap<char, VimRegister>,
    /// The unnamed register.
    last: VimRegister,
    /// The register named by the pending command.
    pub(super) chosen: Option<char>,
}

/// Returns whether a name is a valid register name.
pub(super) fn is_name(name: char) -> bool {
    name.is_ascii_alphanumeric() || matches!(name, '"' | '_' | '-' | '+' | '*')
}

impl VimRegisters {
    /// Stores a text in the selected or default register. `copied` says that it wasn't deleted.
    pub(super) fn store_text(&mut self, register: VimRegister, copied: bool) -> Vec<VimAction> {
        let name = self.chosen.take().filter(|name| *name != '"');
        let mut deeds = Vec::new();
        match name {
            Some('_') => return deeds,
            Some('+' | '*') => {
                deeds.push(VimAction::Copy(register.text.clone()));
                self.named.insert('+', register.clone());
            }
            Some(name) if name.is_ascii_uppercase() => {
                let whole = self.named.entry(name.to_ascii_lowercase()).or_default();
                whole.append(register);
                self.last = whole.clone();
                return deeds;
            }
            Some(name) => _ = self.named.insert(name, register.clone()),
            None if copied => _ = self.named.insert('0', register.clone()),
            None if register.cut == RegisterKind::Letters && !register.text.contains('\n') => {
                self.named.insert('-', register.clone());
            }
            None => {
                for older in ('1'..'9').rev() {
                    let newer = self.named.get(&older).cloned();
                    let name = char::from_u32(older as u32 + 1).unwrap_or('9');
                    newer.and_then(|register| self.named.insert(name, register));
                }
                self.named.insert('1', register.clone());
            }
        }
        self.last = register;
        deeds
    }

    /// Returns the content of the selected register, or of the unnamed one, and clears the selection.
    pub(super) fn take_selected(&mut self) -> VimRegister {
        match self.chosen.take() {
            None | Some('"') => self.last.clone(),
            Some(name) => self.get(name).cloned().unwrap_or_default(),
        }
    }

    fn get(&self, name: char) -> Option<&VimRegister> {
        self.named.get(&name.to_ascii_lowercase()).filter(|_| name != '_')
    }
}

impl VimMachine {
    /// Pastes the text of the system clipboard at the caret.
    pub fn paste_clipboard(
        &mut self,
        text: &str,
        (behind, times): (bool, usize),
        ground: &BufferView<'_>,
        at: usize,
    ) -> Vec<VimAction> {
        let held = self.registers.get('+').is_some_and(|register| register.text == text);
        if !held {
            // A line copied in another program is pasted as a line.
            let lines = text.strip_suffix('\n').filter(|text| !text.is_empty());
            let cut = if lines.is_some() { RegisterKind::Lines } else { RegisterKind::Letters };
            let register = VimRegister::new(lines.unwrap_or(text).to_owned(), cut, false);
            self.registers.named.insert('+', register);
        }
        self.registers.last = self.registers.get('+').cloned().unwrap_or_default();
        self.registers.chosen = None;
        let deeds = self.paste_register(behind, times, ground, at);
        self.note_placed(&deeds);
        deeds
    }

    /// Ends recording and stores the keys, without the key that ended it.
    pub(super) fn end_recording(&mut self) {
        let Some((name, mut keys)) = self.recording.take() else { return };
        keys.pop();
        let words = keys.iter().map(|key| match key {
            VimStroke::Text(text) => text.as_str(),
            VimStroke::Key(..) => "",
        });
        let register = VimRegister { text: words.collect(), keys, ..VimRegister::default() };
        if name.is_ascii_uppercase() {
            self.registers.named.entry(name.to_ascii_lowercase()).or_default().append(register);
        } else {
            self.registers.named.insert(name, register);
        }
    }

    /// Plays the recorded keys of a register, or its text as keys.
    pub(super) fn play_macro(&mut self, name: char) -> Vec<VimAction> {
        let times = self.count.take().unwrap_or(1);
        if name == ':' {
            return vec![VimAction::ExAgain];
        }
        let Some(name) = (if name == '@' { self.played } else { Some(name) }) else { return self.nothing() };
        let Some(register) = self.registers.get(name) else { return self.nothing() };
        let mut keys = register.keys.clone();
        if keys.is_empty() {
            let letters = register.text.chars().take(MAX_REPEAT_KEYS);
            let none = Modifiers::NONE;
            keys = letters
                .map(|letter| match letter {
                    '\n' => VimStroke::Key(Key::Enter, none),
                    '\u{1b}' => VimStroke::Key(Key::Escape, none),
                    letter => VimStroke::Text(letter.to_string()),
                })
                .collect();
            if register.cut == RegisterKind::Lines {
                keys.push(VimStroke::Key(Key::Enter, none));
            }
        }
        self.played = Some(name);
        vec![VimAction::Play { keys, times }]
    }
}
