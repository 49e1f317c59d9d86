//! Vim's edits of a text: operators, joining lines, replacing characters, pasting.

use super::super::motion;
use super::motions::{BufferView, VimMotion};
use super::registers::{RegisterKind, VimRegister};
use super::{VimAction, VimMachine, VimMode};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// An operator that acts on the range of a motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VimOperator {
    Delete,
    Change,
    Yank,
    Shift {
        back: bool,
    },
    /// Re-indents lines of code.
    Indent,
    Case(LetterCase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterCase {
    Lower,
    Upper,
    Other,
}

impl VimMachine {
    /// Applies an operator to a range and stores the text in a register. `lines` says that the range is whole lines,
    /// without the final line ending.
    pub(super) fn apply_operator(
        &mut self,
        operator: VimOperator,
        range: Range<usize>,
        lines: bool,
        ground: &BufferView<'_>,
        at: usize,
    ) -> Vec<VimAction> {
        let text = ground.text;
        let (Some(held), false) = (text.get(range.clone()), range.is_empty() && !lines) else {
            if operator == VimOperator::Change {
                self.insert(1);
                return vec![VimAction::Place { at: range.start, anchor: range.start }];
            }
            return Vec::new();
        };
        self.column = None;
        self.changes = operator != VimOperator::Yank;
        let (extent, spaced) = if lines { line_extent(&range, ground) } else { (range.clone(), false) };
        let mut deeds = Vec::new();
        if matches!(operator, VimOperator::Delete | VimOperator::Change | VimOperator::Yank) {
            let cut = if lines { RegisterKind::Lines } else { RegisterKind::Letters };
            let register = VimRegister::new(held.replace("\r\n", "\n"), cut, spaced);
            deeds = self.registers.store_text(register, operator == VimOperator::Yank);
        }
        self.registers.chosen = None;
        deeds.push(self.done(operator, range, extent, lines, ground, at));
        deeds
    }

    /// Returns the action of an operator on a range; `extent` is the range with its line separators.
    fn done(
        &mut self,
        operator: VimOperator,
        range: Range<usize>,
        extent: Range<usize>,
        lines: bool,
        ground: &BufferView<'_>,
        at: usize,
    ) -> VimAction {
        let text = ground.text;
        let held = &text[range.clone()];
        match operator {
            VimOperator::Yank => {
                let to =
                    if lines && at >= range.start && !text[range.start..at].contains('\n') { at } else { range.start };
                self.places.record_yank(range.start, motion::previous_grapheme(text, range.end).max(range.start));
                VimAction::Place { at: to, anchor: to }
            }
            VimOperator::Delete if lines => {
                let after = extent.end < text.len();
                let at = if after {
                    extent.start + (ground.indent(extent.end) - extent.end)
                } else {
                    let above = ground.next_line(range.start, false).unwrap_or(extent.start);
                    ground.indent(above).min(extent.start)
                };
                VimAction::Replace { range: extent, with: String::new(), at }
            }
            VimOperator::Delete => {
                // Where the caret can be depends on what is left of the line.
                let line = ground.line(range.start);
                let gone = range.end >= ground.line(range.end).end;
                let last = gone && range.start > line.start;
                let at = if last { motion::previous_grapheme(text, range.start) } else { range.start };
                VimAction::Replace { range, with: String::new(), at }
            }
            VimOperator::Change => {
                let indent = if lines { &text[range.start..ground.indent(range.start).min(range.end)] } else { "" };
                let at = range.start + indent.len();
                self.insert(1);
                VimAction::Replace { range, with: indent.to_owned(), at }
            }
            VimOperator::Indent => VimAction::Indent(range),
            VimOperator::Shift { back } => VimAction::Shift { range, back, times: 1 },
            VimOperator::Case(case) => {
                let with = change_case(held, case);
                VimAction::Replace { at: range.start, range, with }
            }
        }
    }

    /// Replaces every character of a range by one character (`r`).
    pub(super) fn replace_chars(&mut self, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        if self.mode == VimMode::Block {
            return self.replace_block(letter, ground);
        }
        let visual = self.is_visual();
        let count = self.count.take().unwrap_or(1);
        let range = match visual {
            true => self.selected(ground),
            false => at..ground.motion_target(VimMotion::Right, Some(count), at, false).map_or(at, |(to, _)| to),
        };
        self.mode = VimMode::Normal;
        let held = &ground.text[range.clone()];
        // As in Vim, nothing happens if there are fewer characters than requested.
        if !visual && held.graphemes(true).count() < count {
            return self.nothing();
        }
        self.changes = true;
        let with: String = held
            .graphemes(true)
            .map(|cluster| if cluster.ends_with('\n') { cluster.to_owned() } else { letter.to_string() })
            .collect();
        let last = with.len().saturating_sub(letter.len_utf8());
        let at = if visual { range.start } else { range.start + last };
        vec![VimAction::Replace { range, with, at }]
    }

    /// Joins lines into one; `spaced` puts one space between them in place of the spaces that were there.
    pub(super) fn join(&mut self, ground: &BufferView<'_>, at: usize, count: usize, spaced: bool) -> Vec<VimAction> {
        let text = ground.text;
        let (start, mut end) = (ground.line(at).start, ground.line(at).end);
        let mut out = text[start..end].to_owned();
        let mut place = start;
        for _ in 1..count {
            let Some(next) = ground.next_line(end, true) else { break };
            let line = ground.line(next);
            if !spaced {
                place = start + out.len();
                out.push_str(&text[line.clone()]);
                end = line.end;
                continue;
            }
            let words = text[ground.indent(next)..line.end].trim_end();
            out.truncate(out.trim_end().len());
            place = start + out.len();
            if !words.is_empty() && !out.is_empty() && !words.starts_with(')') {
                out.push(' ');
            }
            out.push_str(words);
            end = line.end;
        }
        if end == ground.line(at).end {
            return self.nothing();
        }
        self.changes = true;
        vec![VimAction::Replace { range: start..end, with: out, at: place }]
    }

    /// Pastes the selected register after or before the caret.
    pub(super) fn paste_register(
        &mut self,
        behind: bool,
        times: usize,
        ground: &BufferView<'_>,
        at: usize,
    ) -> Vec<VimAction> {
        if matches!(self.registers.chosen, Some('+' | '*')) {
            return vec![VimAction::Fetch { behind, times }];
        }
        let VimRegister { text: held, cut, spaced, .. } = self.registers.take_selected();
        let lines = cut == RegisterKind::Lines;
        if held.is_empty() && !lines || held.len().saturating_mul(times) > 1 << 24 {
            return self.nothing();
        }
        if cut == RegisterKind::Block {
            return self.paste_block(&held, behind, times, ground, at);
        }
        self.changes = true;
        let (text, line) = (ground.text, ground.line(at));
        if !lines {
            let to = if behind && at < line.end { motion::next_grapheme(text, at) } else { at };
            let with = held.repeat(times);
            let at = if held.contains('\n') { to } else { to + motion::previous_grapheme(&with, with.len()) };
            return vec![VimAction::Replace { range: to..to, with, at }];
        }
        let gap = if spaced { "\n\n" } else { "\n" };
        let body = vec![held.as_str(); times].join(gap);
        let indent = body.len() - body.trim_start_matches([' ', '\t']).len();
        let (extent, parted) = line_extent(&line, ground);
        if !behind {
            let above = ground.above(line.start).is_some_and(|above| !ground.is_blank(above));
            let lead = if spaced && above { "\n" } else { "" };
            let (to, with) = (line.start, format!("{lead}{body}{gap}"));
            return vec![VimAction::Replace { range: to..to, with, at: to + lead.len() + indent }];
        }
        let below = ground.below(line.end).filter(|below| *below < text.len());
        match below {
            // After the last line.
            None => {
                let with = format!("{gap}{body}");
                let at = line.end + gap.len() + indent;
                vec![VimAction::Replace { range: line.end..line.end, with, at }]
            }
            Some(below) => {
                let has_gap = parted && extent.end > below;
                let to = if spaced && has_gap { extent.end } else { below };
                let lead = if spaced && !has_gap { "\n" } else { "" };
                let tail = if spaced && to < text.len() { "\n\n" } else { "\n" };
                let with = format!("{lead}{body}{tail}");
                vec![VimAction::Replace { range: to..to, with, at: to + lead.len() + indent }]
            }
        }
    }
}

/// Extends whole lines by their final line ending and the separator lines after them; at the end of the text, by those
/// before them. Also returns whether there are separator lines.
pub fn line_extent(range: &Range<usize>, ground: &BufferView<'_>) -> (Range<usize>, bool) {
    let length = ground.text.len();
    let (mut start, mut end) = (range.start, ground.below(range.end).unwrap_or(length));
    let mut spaced = false;
    while end < length && ground.is_blank_line(end) {
        spaced = true;
        end = ground.below(end).unwrap_or(length);
    }
    let before = |start: usize| ground.above(start).filter(|above| ground.is_blank_line(*above));
    if end >= length {
        while let Some(above) = before(start) {
            spaced = true;
            start = above;
        }
        // A text without a final line ending stays without one.
        if !ground.text.ends_with('\n') && start > 0 {
            start = ground.line(start - 1).end;
        }
    }
    (start..end, spaced || before(range.start).is_some())
}

pub(super) fn change_case(text: &str, case: LetterCase) -> String {
    text.chars()
        .flat_map(|letter| -> Vec<char> {
            match case {
                LetterCase::Lower => letter.to_lowercase().collect(),
                LetterCase::Upper => letter.to_uppercase().collect(),
                LetterCase::Other if letter.is_uppercase() => letter.to_lowercase().collect(),
                LetterCase::Other => letter.to_uppercase().collect(),
            }
        })
        .collect()
}
