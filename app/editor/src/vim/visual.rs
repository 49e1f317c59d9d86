//! Vim's visual modes: what is selected, and the keys there that are no motions and no operators.

use super::deeds::{Case, Operator};
use super::registers::{Cut, Register};
use super::travel::Ground;
use super::{Deed, Mode, Stroke, Vim, Waits, operator};
use crate::motion;
use eframe::egui;
use egui::{Key, Modifiers};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

impl Vim {
    /// Goes to a visual mode, or out of it.
    pub(super) fn enter_visual(&mut self, mode: Mode, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        self.count = None;
        if self.mode == mode {
            return self.escape(ground, at);
        }
        if !self.is_visual() {
            (self.anchor, self.head) = (at, at);
        }
        self.mode = mode;
        self.to_end = false;
        self.select(ground)
    }

    /// Selects what was selected last.
    pub(super) fn reselect(&mut self, ground: &Ground<'_>) -> Vec<Deed> {
        let Some((mode, from, to)) = self.places.selection() else { return self.nothing() };
        if self.is_visual() {
            self.places.keep_selection(self.mode, self.anchor, self.head);
        }
        self.mode = mode;
        (self.anchor, self.head) = (motion::floor(ground.text, from), motion::floor(ground.text, to));
        self.select(ground)
    }

    /// The letters, or lines, that visual mode has selected.
    pub(super) fn selected(&self, ground: &Ground<'_>) -> Range<usize> {
        let (from, to) = (self.anchor.min(self.head), self.anchor.max(self.head));
        match self.mode {
            Mode::Lines | Mode::Block => ground.line(from).start..ground.line(to).end,
            _ => from..motion::after(ground.text, to),
        }
    }

    pub(super) fn select(&self, ground: &Ground<'_>) -> Vec<Deed> {
        if self.mode == Mode::Block {
            return self.select_block(ground);
        }
        let range = self.selected(ground);
        let (at, anchor) = if self.head >= self.anchor { (range.end, range.start) } else { (range.start, range.end) };
        vec![Deed::Place { at, anchor }]
    }

    /// Puts keys on the tape that select as much from wherever the caret will be.
    pub(super) fn remember(&mut self, letter: char, ground: &Ground<'_>) {
        if self.mode == Mode::Block {
            self.tape = self.block_keys(ground);
            self.tape.push(Stroke::Text(letter.to_string()));
            return;
        }
        let range = self.selected(ground);
        let text = ground.text.get(range).unwrap_or("");
        let (opens, steps, step) = match self.mode {
            Mode::Lines => {
                let lines = text.split('\n').filter(|line| !line.trim().is_empty()).count();
                ("V", lines.saturating_sub(1), "j")
            }
            _ => ("v", text.graphemes(true).count().saturating_sub(1), "l"),
        };
        let steps = if steps > 0 { format!("{steps}{step}") } else { String::new() };
        let keys = format!("{opens}{steps}{letter}");
        self.tape = keys.chars().map(|letter| Stroke::Text(letter.to_string())).collect();
    }

    /// Puts keys on the tape that select as much and count.
    pub(super) fn remember_count(&mut self, down: bool, ground: &Ground<'_>) {
        self.remember(' ', ground);
        self.tape.pop();
        self.tape.push(Stroke::Key(if down { Key::X } else { Key::A }, Modifiers::COMMAND));
    }

    /// What is selected of each line.
    pub(super) fn selected_in_lines(&self, ground: &Ground<'_>) -> Vec<Range<usize>> {
        if self.mode == Mode::Block {
            return self.block(ground);
        }
        let range = self.selected(ground);
        let mut parts = Vec::new();
        for line in self.lines(&range, ground) {
            let own = ground.line(line);
            parts.push(own.start.max(range.start)..own.end.min(range.end));
        }
        parts
    }

    /// The lines of a range on which a caret can stand.
    pub(super) fn lines(&self, range: &Range<usize>, ground: &Ground<'_>) -> Vec<usize> {
        let first = ground.line(range.start).start;
        let lines = std::iter::successors(Some(first), |at| ground.step(*at, true));
        lines.take_while(|at| *at < range.end || *at == first).take(super::MOST).collect()
    }

    /// Makes one line of all that are selected.
    pub(super) fn join_selected(&mut self, spaced: bool, ground: &Ground<'_>) -> Vec<Deed> {
        let range = self.selected(ground);
        self.remember('J', ground);
        self.count = None;
        let count = self.lines(&range, ground).len();
        self.mode = Mode::Normal;
        self.join(ground, range.start, count.max(2), spaced)
    }

    /// A key of visual mode that is no motion and no operator.
    pub(super) fn visual(&mut self, letter: char, ground: &Ground<'_>, at: usize) -> Vec<Deed> {
        let lines = self.mode == Mode::Lines;
        if !matches!(letter, 'r' | 'J') && operator(letter).is_none() {
            self.count = None;
        }
        match letter {
            'v' | 'V' => {
                let wanted = if letter == 'v' { Mode::Visual } else { Mode::Lines };
                self.enter_visual(wanted, ground, at)
            }
            'o' => {
                std::mem::swap(&mut self.anchor, &mut self.head);
                self.select(ground)
            }
            'O' if self.mode == Mode::Block => self.other_corner(ground),
            'O' => {
                std::mem::swap(&mut self.anchor, &mut self.head);
                self.select(ground)
            }
            'I' | 'A' if self.mode == Mode::Block => self.write_block(letter == 'A', ground),
            'D' | 'C' if self.mode == Mode::Block => {
                self.to_end = true;
                self.operate(if letter == 'D' { Operator::Delete } else { Operator::Change }, letter, ground, at)
            }
            'I' | 'A' => {
                let range = self.selected(ground);
                self.mode = Mode::Normal;
                self.insert(1);
                let to = if letter == 'I' { range.start } else { range.end };
                vec![Deed::Place { at: to, anchor: to }]
            }
            'x' | 's' | 'D' | 'X' | 'C' | 'S' | 'R' | 'Y' | 'u' | 'U' | '~' => {
                if matches!(letter, 'D' | 'X' | 'C' | 'S' | 'R' | 'Y') {
                    self.mode = Mode::Lines;
                }
                let operator = match letter {
                    'x' | 'D' | 'X' => Operator::Delete,
                    's' | 'C' | 'S' | 'R' => Operator::Change,
                    'Y' => Operator::Yank,
                    'u' => Operator::Case(Case::Lower),
                    'U' => Operator::Case(Case::Upper),
                    _ => Operator::Case(Case::Other),
                };
                self.operate(operator, letter, ground, at)
            }
            'r' => {
                self.waits = Some(Waits::Replace);
                Vec::new()
            }
            'J' => self.join_selected(true, ground),
            'p' | 'P' => {
                let old = self.registers.take();
                let range = self.selected(ground);
                self.mode = Mode::Normal;
                self.changes = true;
                let held = ground.text.get(range.clone()).unwrap_or("").to_owned();
                // What was there is kept, unless `P` was pressed.
                if letter == 'p' {
                    let cut = if lines { Cut::Lines } else { Cut::Letters };
                    self.registers.keep(Register::new(held, cut, false), false);
                }
                let parted = old.cut == Cut::Lines && !lines;
                let with = if parted { format!("\n{}\n", old.text) } else { old.text };
                let at = if parted || lines { range.start } else { range.start + motion::before(&with, with.len()) };
                vec![Deed::Replace { at: at + usize::from(parted), range, with }]
            }
            ':' => {
                self.mode = Mode::Normal;
                vec![Deed::Ex { visual: true }]
            }
            _ => self.nothing(),
        }
    }
}
