//! Vim's visual modes: the selection, and visual-mode keys other than motions and operators.

use super::motions::BufferView;
use super::operators::{LetterCase, VimOperator};
use super::registers::{RegisterKind, VimRegister};
use super::{PendingKey, VimAction, VimMachine, VimMode, VimStroke, operator};
use crate::motion;
use eframe::egui;
use egui::{Key, Modifiers};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

impl VimMachine {
    /// Enters a visual mode, or leaves it if it's already active.
    pub(super) fn enter_visual(&mut self, mode: VimMode, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        self.count = None;
        if self.mode == mode {
            return self.escape(ground, at);
        }
        if !self.is_visual() {
            (self.anchor, self.head) = (at, at);
        }
        self.mode = mode;
        self.to_end = false;
        self.selection_actions(ground)
    }

    /// Restores the last selection.
    pub(super) fn reselect(&mut self, ground: &BufferView<'_>) -> Vec<VimAction> {
        let Some((mode, from, to)) = self.places.selection() else { return self.nothing() };
        if self.is_visual() {
            self.places.keep_selection(self.mode, self.anchor, self.head);
        }
        self.mode = mode;
        (self.anchor, self.head) = (motion::floor_grapheme(ground.text, from), motion::floor_grapheme(ground.text, to));
        self.selection_actions(ground)
    }

    /// Returns the range of characters or lines selected in visual mode.
    pub(super) fn selected(&self, ground: &BufferView<'_>) -> Range<usize> {
        let (from, to) = (self.anchor.min(self.head), self.anchor.max(self.head));
        match self.mode {
            VimMode::Lines | VimMode::Block => ground.line(from).start..ground.line(to).end,
            _ => from..motion::next_grapheme(ground.text, to),
        }
    }

    pub(super) fn selection_actions(&self, ground: &BufferView<'_>) -> Vec<VimAction> {
        if self.mode == VimMode::Block {
            return self.select_block(ground);
        }
        let range = self.selected(ground);
        let (at, anchor) = if self.head >= self.anchor { (range.end, range.start) } else { (range.start, range.end) };
        vec![VimAction::Place { at, anchor }]
    }

    /// Sets the tape to keys that select text of the same size from any caret position, followed by `letter`.
    pub(super) fn record_selection(&mut self, letter: char, ground: &BufferView<'_>) {
        if self.mode == VimMode::Block {
            self.tape = self.block_keys(ground);
            self.tape.push(VimStroke::Text(letter.to_string()));
            return;
        }
        let range = self.selected(ground);
        let text = ground.text.get(range).unwrap_or("");
        let (opens, steps, step) = match self.mode {
            VimMode::Lines => {
                let lines = text.split('\n').filter(|line| !line.trim().is_empty()).count();
                ("V", lines.saturating_sub(1), "j")
            }
            _ => ("v", text.graphemes(true).count().saturating_sub(1), "l"),
        };
        let steps = if steps > 0 { format!("{steps}{step}") } else { String::new() };
        let keys = format!("{opens}{steps}{letter}");
        self.tape = keys.chars().map(|letter| VimStroke::Text(letter.to_string())).collect();
    }

    /// Sets the tape to keys that select text of the same size and increment or decrement its numbers.
    pub(super) fn remember_count(&mut self, down: bool, ground: &BufferView<'_>) {
        self.record_selection(' ', ground);
        self.tape.pop();
        self.tape.push(VimStroke::Key(if down { Key::X } else { Key::A }, Modifiers::COMMAND));
    }

    /// Returns the selected range of each line.
    pub(super) fn selected_in_lines(&self, ground: &BufferView<'_>) -> Vec<Range<usize>> {
        if self.mode == VimMode::Block {
            return self.block_ranges(ground);
        }
        let range = self.selected(ground);
        let mut parts = Vec::new();
        for line in self.lines(&range, ground) {
            let own = ground.line(line);
            parts.push(own.start.max(range.start)..own.end.min(range.end));
        }
        parts
    }

    /// Returns the lines of a range on which a caret can be.
    pub(super) fn lines(&self, range: &Range<usize>, ground: &BufferView<'_>) -> Vec<usize> {
        let first = ground.line(range.start).start;
        let lines = std::iter::successors(Some(first), |at| ground.next_line(*at, true));
        lines.take_while(|at| *at < range.end || *at == first).take(super::MAX_COUNT).collect()
    }

    /// Joins all selected lines into one.
    pub(super) fn join_selected(&mut self, spaced: bool, ground: &BufferView<'_>) -> Vec<VimAction> {
        let range = self.selected(ground);
        self.record_selection('J', ground);
        self.count = None;
        let count = self.lines(&range, ground).len();
        self.mode = VimMode::Normal;
        self.join(ground, range.start, count.max(2), spaced)
    }

    /// Handles a visual-mode key other than motions and operators.
    pub(super) fn handle_visual_key(&mut self, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let lines = self.mode == VimMode::Lines;
        if !matches!(letter, 'r' | 'J') && operator(letter).is_none() {
            self.count = None;
        }
        match letter {
            'v' | 'V' => {
                let wanted = if letter == 'v' { VimMode::Visual } else { VimMode::Lines };
                self.enter_visual(wanted, ground, at)
            }
            'o' => {
                std::mem::swap(&mut self.anchor, &mut self.head);
                self.selection_actions(ground)
            }
            'O' if self.mode == VimMode::Block => self.other_corner(ground),
            'O' => {
                std::mem::swap(&mut self.anchor, &mut self.head);
                self.selection_actions(ground)
            }
            'I' | 'A' if self.mode == VimMode::Block => self.write_block(letter == 'A', ground),
            'D' | 'C' if self.mode == VimMode::Block => {
                self.to_end = true;
                self.operate(if letter == 'D' { VimOperator::Delete } else { VimOperator::Change }, letter, ground, at)
            }
            'I' | 'A' => {
                let range = self.selected(ground);
                self.mode = VimMode::Normal;
                self.insert(1);
                let to = if letter == 'I' { range.start } else { range.end };
                vec![VimAction::Place { at: to, anchor: to }]
            }
            'x' | 's' | 'D' | 'X' | 'C' | 'S' | 'R' | 'Y' | 'u' | 'U' | '~' => {
                if matches!(letter, 'D' | 'X' | 'C' | 'S' | 'R' | 'Y') {
                    self.mode = VimMode::Lines;
                }
                let operator = match letter {
                    'x' | 'D' | 'X' => VimOperator::Delete,
                    's' | 'C' | 'S' | 'R' => VimOperator::Change,
                    'Y' => VimOperator::Yank,
                    'u' => VimOperator::Case(LetterCase::Lower),
                    'U' => VimOperator::Case(LetterCase::Upper),
                    _ => VimOperator::Case(LetterCase::Other),
                };
                self.operate(operator, letter, ground, at)
            }
            'r' => {
                self.waits = Some(PendingKey::Replace);
                Vec::new()
            }
            'J' => self.join_selected(true, ground),
            'p' | 'P' => {
                let old = self.registers.take_selected();
                let range = self.selected(ground);
                self.mode = VimMode::Normal;
                self.changes = true;
                let held = ground.text.get(range.clone()).unwrap_or("").to_owned();
                // The replaced text goes into a register, unless `P` was pressed.
                if letter == 'p' {
                    let cut = if lines { RegisterKind::Lines } else { RegisterKind::Letters };
                    self.registers.store_text(VimRegister::new(held, cut, false), false);
                }
                let parted = old.cut == RegisterKind::Lines && !lines;
                let with = if parted { format!("\n{}\n", old.text) } else { old.text };
                let at = if parted || lines {
                    range.start
                } else {
                    range.start + motion::previous_grapheme(&with, with.len())
                };
                vec![VimAction::Replace { at: at + usize::from(parted), range, with }]
            }
            ':' => {
                self.mode = VimMode::Normal;
                vec![VimAction::Ex { visual: true }]
            }
            _ => self.nothing(),
        }
    }
}
