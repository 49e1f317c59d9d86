//! Places in a note that Vim's keys keep: marks, where the caret jumped from, what was changed, what was selected. All
//! of them go along with what happens to the text.

use super::VimMode;
use std::collections::BTreeMap;
use text::text_edit::shift_offset;

/// Jumps and changes that are kept.
const MAX_JUMPS_AND_CHANGES: usize = 100;

/// The places of one note.
#[derive(Clone, Debug, Default)]
pub struct VimMarks {
    /// Up to which revision of the note they have gone along.
    pub revision: u64,
    /// `a` to `z`, and of `A` to `Z` those that are in this note; `'`: where the last jump began; `[`, `]`: around what
    /// was changed or copied; `<`, `>`: around the selection; `^`: where inserting ended; `.`: the last change.
    marks: BTreeMap<char, usize>,
    /// What was selected last: how, and from where to where.
    selection: Option<(VimMode, usize, usize)>,
    jumps: Vec<usize>,
    /// Where on the way over the jumps the caret is.
    jump: usize,
    changes: Vec<usize>,
    change: usize,
}

impl VimMarks {
    /// Goes along with an edit: `delete` bytes at `at` became `insert` bytes.
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

    /// Records the edits of one command: the first changed byte, the last, and where they ended. `near`: they're in the
    /// line of the last change, and count as part of it.
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

    /// Notes what was copied.
    pub(super) fn record_yank(&mut self, from: usize, to: usize) {
        self.marks.insert('[', from);
        self.marks.insert(']', to);
    }

    /// Sets a mark; whether there is one of that name.
    pub(super) fn set(&mut self, name: char, at: usize) -> bool {
        let name = if name == '`' { '\'' } else { name };
        let known = name.is_ascii_alphabetic() || matches!(name, '\'' | '^' | '<' | '>' | '[' | ']');
        if known {
            self.marks.insert(name, at);
        }
        known
    }

    /// Takes a mark away.
    pub fn remove_mark(&mut self, name: char) {
        self.marks.remove(&name);
    }

    /// Where a mark is.
    pub fn get(&self, name: char) -> Option<usize> {
        let name = if name == '`' { '\'' } else { name };
        // Where nobody jumped from, the beginning counts.
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

    /// Notes from where the caret goes far away.
    pub(super) fn push_jump(&mut self, at: usize) {
        self.marks.insert('\'', at);
        self.jumps.retain(|jump| *jump != at);
        push(&mut self.jumps, at);
        self.jump = self.jumps.len();
    }

    /// Returns the position this many jumps back or forward.
    pub(super) fn jump_target(&mut self, times: usize, back: bool, at: usize) -> Option<usize> {
        if back && self.jump == self.jumps.len() {
            // The way on leads back here.
            self.push_jump(at);
            self.jump -= 1;
        }
        let next = if back { self.jump.checked_sub(times)? } else { self.jump.checked_add(times)? };
        let to = self.jumps.get(next).copied()?;
        self.jump = next;
        Some(to)
    }

    /// Returns the position this many changes back or forward.
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
