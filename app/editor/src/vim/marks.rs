//! Positions in a note that Vim mode remembers: marks, jumps, changes and the last selection. All of them shift with
//! edits of the text.

use super::VimMode;
use std::collections::BTreeMap;
use text::text_edit::shift_offset;

/// Maximum number of remembered jumps, and of changes.
const MAX_JUMPS_AND_CHANGES: usize = 100;

/// Remembered positions of one note.
#[derive(Clone, Debug, Default)]
pub struct VimMarks {
    /// Note revision up to which the positions have been shifted.
    pub revision: u64,
    /// Marks by name:
    ///
    /// - `a` to `z`, and those of `A` to `Z` that are in this note
    /// - `'`: where the last jump began
    /// - `[`, `]`: around what was changed or copied
    /// - `<`, `>`: around the selection
    /// - `^`: where inserting ended
    /// - `.`: the last change
    marks: BTreeMap<char, usize>,
    /// The last selection: its mode and both ends.
    selection: Option<(VimMode, usize, usize)>,
    jumps: Vec<usize>,
    /// Current index in the jump list.
    jump: usize,
    changes: Vec<usize>,
    change: usize,
}

impl VimMarks {
    /// Shifts all positions after an edit that replaced `delete` bytes at `at` by `insert` bytes.
    pub fn shift_marks(&mut self, at: usize, delete: usize, insert: usize) {
        let selection = self.selection.iter_mut().flat_map(|(_, from, to)| [from, to]);
        let lists = self.jumps.iter_mut().chain(&mut self.changes);
        for place in self.marks.values_mut().chain(lists).chain(selection) {
            *place = shift_offset(*place, at, delete, insert, false);
        }
    }

    /// Returns the position of the last change.
    pub fn last_change(&self) -> Option<usize> {
        self.changes.last().copied()
    }

    /// Records the edits of one command: the first and the last changed byte, and where the edits ended. `near` says
    /// that they are in the line of the last change, and count as part of it.
    pub fn record_change(&mut self, from: usize, to: usize, last: usize, near: bool) {
        self.marks.insert('[', from);
        self.marks.insert(']', to);
        self.marks.insert('.', last);
        if near {
            self.changes.pop();
        }
        push(&mut self.changes, last);
        self.change = self.changes.len();
    }

    /// Records the range of copied text.
    pub(super) fn record_yank(&mut self, from: usize, to: usize) {
        self.marks.insert('[', from);
        self.marks.insert(']', to);
    }

    /// Sets a mark. Returns whether the name is valid.
    pub(super) fn set(&mut self, name: char, at: usize) -> bool {
        let name = if name == '`' { '\'' } else { name };
        let known = name.is_ascii_alphabetic() || matches!(name, '\'' | '^' | '<' | '>' | '[' | ']');
        if known {
            self.marks.insert(name, at);
        }
        known
    }

    /// Removes a mark.
    pub fn remove_mark(&mut self, name: char) {
        self.marks.remove(&name);
    }

    /// Returns the position of a mark.
    pub fn get(&self, name: char) -> Option<usize> {
        let name = if name == '`' { '\'' } else { name };
        // Before the first jump, `'` is the start of the note.
        self.marks.get(&name).copied().or_else(|| (name == '\'').then_some(0))
    }

    pub(super) fn keep_selection(&mut self, mode: VimMode, from: usize, to: usize) {
        self.selection = Some((mode, from, to));
        self.marks.insert('<', from.min(to));
        self.marks.insert('>', from.max(to));
    }

    pub(super) fn selection(&self) -> Option<(VimMode, usize, usize)> {
        self.selection
    }

    /// Records the position from which the caret jumps.
    pub(super) fn push_jump(&mut self, at: usize) {
        self.marks.insert('\'', at);
        self.jumps.retain(|jump| *jump != at);
        push(&mut self.jumps, at);
        self.jump = self.jumps.len();
    }

    /// Returns the position a number of jumps back or forward.
    pub(super) fn jump_target(&mut self, times: usize, back: bool, at: usize) -> Option<usize> {
        if back && self.jump == self.jumps.len() {
            // Jumping forward again must lead back here.
            self.push_jump(at);
            self.jump -= 1;
        }
        let next = if back { self.jump.checked_sub(times)? } else { self.jump.checked_add(times)? };
        let to = self.jumps.get(next).copied()?;
        self.jump = next;
        Some(to)
    }

    /// Returns the position a number of changes back or forward.
    pub(super) fn change_target(&mut self, times: usize, back: bool) -> Option<usize> {
        let next = if back { self.change.checked_sub(times)? } else { self.change.checked_add(times)? };
        let to = self.changes.get(next).copied()?;
        self.change = next;
        Some(to)
    }
}

fn push(list: &mut Vec<usize>, at: usize) {
    list.push(at);
    if list.len() > MAX_JUMPS_AND_CHANGES {
        list.remove(0);
    }
}
