//! Vim's block mode: the characters of several lines between two columns.

use super::motions::BufferView;
use super::operators::{VimOperator, change_case};
use super::registers::{RegisterKind, VimRegister};
use super::{VimAction, VimMachine, VimMode, VimStroke};
use crate::motion;
use eframe::egui;
use egui::{Key, Modifiers};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum number of lines of a block selection.
const MAX_BLOCK_LINES: usize = 1_000;

impl VimMachine {
    /// Returns the lines of the block, and its first and last column.
    fn extent(&self, ground: &BufferView<'_>) -> (Vec<usize>, usize, usize) {
        let (from, to) = (self.anchor.min(self.head), self.anchor.max(self.head));
        let (one, other) = (ground.column(self.anchor), ground.column(self.head));
        let mut lines = self.lines(&(from..to + 1), ground);
        lines.retain(|line| *line <= to);
        lines.truncate(MAX_BLOCK_LINES);
        // A block up to the line ends starts at the anchor's column, wherever the head's line ends.
        (lines, if self.to_end { one } else { one.min(other) }, one.max(other))
    }

    /// Returns the range of each line that is in the block; empty if the line is too short.
    pub(super) fn block_ranges(&self, ground: &BufferView<'_>) -> Vec<Range<usize>> {
        let (lines, left, right) = self.extent(ground);
        let part = |line: &usize| {
            let end = if self.to_end { ground.line(*line).end } else { ground.at_column(*line, right + 1) };
            ground.at_column(*line, left).min(end)..end
        };
        lines.iter().map(part).collect()
    }

    pub(super) fn select_block(&self, ground: &BufferView<'_>) -> Vec<VimAction> {
        let line = ground.line(self.head);
        let backward = !self.to_end && ground.column(self.head) < ground.column(self.anchor);
        let ends = |part: Range<usize>| if backward { (part.start, part.end) } else { (part.end, part.start) };
        let (own, others): (Vec<Range<usize>>, Vec<Range<usize>>) = self
            .block_ranges(ground)
            .into_iter()
            .filter(|part| !part.is_empty() || (line.start..=line.end).contains(&part.start))
            .partition(|part| (line.start..=line.end).contains(&part.start));
        let carets: Vec<(usize, usize)> = own.into_iter().chain(others).map(ends).collect();
        if carets.is_empty() {
            vec![VimAction::Place { at: self.head, anchor: self.head }]
        } else {
            vec![VimAction::Select(carets)]
        }
    }

    /// Moves the head to the other corner in the same line.
    pub(super) fn other_corner(&mut self, ground: &BufferView<'_>) -> Vec<VimAction> {
        let (one, other) = (ground.column(self.anchor), ground.column(self.head));
        let place = |at: usize, column: usize| ground.on_letter(ground.at_column(at, column));
        (self.anchor, self.head) = (place(self.anchor, other), place(self.head, one));
        self.selection_actions(ground)
    }

    /// Returns the keys that select a block of the same size from any caret position.
    pub(super) fn block_keys(&self, ground: &BufferView<'_>) -> Vec<VimStroke> {
        let (lines, left, right) = self.extent(ground);
        let steps = |count: usize, key: char| if count > 0 { format!("{count}{key}") } else { String::new() };
        let across = if self.to_end { "$".to_owned() } else { steps(right - left, 'l') };
        let keys = steps(lines.len().saturating_sub(1), 'j') + &across;
        let begin = VimStroke::Key(Key::V, Modifiers::COMMAND);
        std::iter::once(begin).chain(keys.chars().map(|key| VimStroke::Text(key.to_string()))).collect()
    }

    /// Applies an operator to the block.
    pub(super) fn on_block(&mut self, operator: VimOperator, letter: char, ground: &BufferView<'_>) -> Vec<VimAction> {
        let range = self.selected(ground);
        let parts = self.block_ranges(ground);
        self.record_selection(letter, ground);
        if let VimOperator::Shift { .. } | VimOperator::Indent = operator {
            self.mode = VimMode::Lines;
            return self.operate(operator, letter, ground, range.start);
        }
        self.mode = VimMode::Normal;
        self.count = None;
        self.changes = operator != VimOperator::Yank;
        let Some(start) = parts.first().map(|part| part.start) else { return self.nothing() };
        let mut deeds = Vec::new();
        if matches!(operator, VimOperator::Delete | VimOperator::Change | VimOperator::Yank) {
            let text: Vec<&str> = parts.iter().map(|part| &ground.text[part.clone()]).collect();
            deeds = self.registers.store_text(
                VimRegister::new(text.join("\n"), RegisterKind::Block, false),
                operator == VimOperator::Yank,
            );
        }
        self.registers.chosen = None;
        match operator {
            VimOperator::Yank => {
                self.places.record_yank(start, parts.last().map_or(start, |part| part.end));
                deeds.push(VimAction::Place { at: start, anchor: start });
            }
            VimOperator::Case(case) => {
                let edits =
                    parts.into_iter().map(|part| (part.clone(), change_case(&ground.text[part], case))).collect();
                deeds.push(VimAction::Splices { edits, at: start });
            }
            _ => {
                let change = operator == VimOperator::Change;
                let line = ground.line(start);
                let gone = !change && parts[0].end >= line.end && start > line.start;
                let at = if gone { motion::previous_grapheme(ground.text, start) } else { start };
                // Lines that are too short stay unchanged.
                let held: Vec<Range<usize>> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                if change {
                    self.insert(1);
                }
                let mut carets = carets(held.iter().map(|part| (part.clone(), 0)));
                if carets.is_empty() {
                    carets.push(start);
                }
                let edits = held.into_iter().map(|part| (part, String::new())).collect();
                deeds.push(VimAction::Splices { edits, at });
                deeds.extend(change.then_some(VimAction::Carets(carets)));
            }
        }
        deeds
    }

    /// Starts typing before or after the block in every line.
    pub(super) fn write_block(&mut self, behind: bool, ground: &BufferView<'_>) -> Vec<VimAction> {
        let (lines, left, right) = self.extent(ground);
        let corner = lines.first().map(|line| ground.at_column(*line, left));
        self.record_selection(if behind { 'A' } else { 'I' }, ground);
        let column = if behind { right + 1 } else { left };
        let mut pads = Vec::new();
        for line in lines {
            let own = ground.line(line);
            let at = if behind && self.to_end { own.end } else { ground.at_column(line, column) };
            let missing = column - ground.column(at).min(column);
            match (behind, missing) {
                (true, _) if self.to_end => pads.push((at..at, 0)),
                (false, 1..) => {}
                _ => pads.push((at..at, missing)),
            }
        }
        if pads.is_empty() {
            return self.nothing();
        }
        self.insert(1);
        let carets = carets(pads.iter().cloned());
        self.block = corner;
        let edits: Vec<(Range<usize>, String)> = pads
            .into_iter()
            .filter(|(_, missing)| *missing > 0)
            .map(|(at, missing)| (at, " ".repeat(missing)))
            .collect();
        let at = carets.first().copied().unwrap_or(self.head);
        let pads = (!edits.is_empty()).then_some(VimAction::Splices { edits, at });
        pads.into_iter().chain([VimAction::Carets(carets)]).collect()
    }

    /// Replaces every character of the block (`r`).
    pub(super) fn replace_block(&mut self, letter: char, ground: &BufferView<'_>) -> Vec<VimAction> {
        let parts = self.block_ranges(ground);
        let mut keys = self.block_keys(ground);
        keys.extend(['r', letter].map(|key| VimStroke::Text(key.to_string())));
        self.tape = keys;
        self.mode = VimMode::Normal;
        self.changes = true;
        let Some(start) = parts.first().map(|part| part.start) else { return self.nothing() };
        let with = |part: Range<usize>| letter.to_string().repeat(ground.text[part].graphemes(true).count());
        let edits = parts.into_iter().map(|part| (part.clone(), with(part))).collect();
        vec![VimAction::Splices { edits, at: start }]
    }

    /// Pastes a block at a column of consecutive lines.
    pub(super) fn paste_block(
        &mut self,
        text: &str,
        behind: bool,
        times: usize,
        ground: &BufferView<'_>,
        at: usize,
    ) -> Vec<VimAction> {
        let to = if behind && at < ground.line(at).end { motion::next_grapheme(ground.text, at) } else { at };
        let column = ground.column(to);
        let width = text.split('\n').map(|part| part.graphemes(true).count()).max().unwrap_or(0);
        let (mut edits, mut line, mut last) = (Vec::<(Range<usize>, String)>::new(), Some(at), at);
        for part in text.split('\n') {
            let padded = format!("{part}{}", " ".repeat(width - part.graphemes(true).count()));
            match line {
                Some(start) => {
                    let place = ground.at_column(start, column);
                    let ends = place >= ground.line(place).end;
                    let pad = " ".repeat(column - ground.column(place).min(column));
                    // No padding is added at the end of a line.
                    let whole = if ends { padded.repeat(times - 1) + part } else { padded.repeat(times) };
                    edits.push((place..place, pad + &whole));
                    (last, line) = (start, ground.next_line(start, true));
                }
                // The block has more lines than the text, so lines are appended.
                None => {
                    let end = ground.line(last).end;
                    let more = format!("\n{}{}", " ".repeat(column), padded.repeat(times - 1) + part);
                    match edits.last_mut().filter(|(range, _)| range.start == end) {
                        Some((_, with)) => with.push_str(&more),
                        None => edits.push((end..end, more)),
                    }
                }
            }
        }
        self.changes = true;
        vec![VimAction::Splices { edits, at: to }]
    }
}

/// Returns the carets after edits that each replace a range by a number of bytes.
fn carets(edits: impl Iterator<Item = (Range<usize>, usize)>) -> Vec<usize> {
    let (mut gone, mut come) = (0, 0);
    let mut places = Vec::new();
    for (range, with) in edits {
        come += with;
        places.push(range.start + come - gone);
        gone += range.len();
    }
    places
}
