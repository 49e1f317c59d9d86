//! Vim's normal-mode keys other than motions and operators.

use super::motions::{BufferView, MotionSpan, VimMotion};
use super::operators::{LetterCase, VimOperator, change_case};
use super::{PendingKey, VimAction, VimMachine, VimMode, VimStroke, is_digit};
use crate::motion;
use engine::commands::CommandId;
use std::ops::Range;

impl VimMachine {
    /// Handles a normal-mode key other than motions and operators.
    pub(super) fn handle_normal_key(&mut self, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let (line, count) = (ground.line(at), self.count.take());
        let times = count.unwrap_or(1);
        let right = |times: usize| {
            let (to, _) =
                ground.motion_target(VimMotion::Right, Some(times), at, false).unwrap_or((at, MotionSpan::Open));
            at..to
        };
        let place = |at: usize| vec![VimAction::Place { at, anchor: at }];
        match letter {
            'i' | 'I' | 'a' | 'A' => {
                self.insert(times);
                place(match letter {
                    'i' => at,
                    'I' => ground.indent(at),
                    'a' => right(1).end,
                    _ => line.end,
                })
            }
            'o' | 'O' => {
                self.insert(1);
                let to = if letter == 'o' { line.end } else { line.start };
                vec![VimAction::Place { at: to, anchor: to }, VimAction::Open { below: letter == 'o' }]
            }
            'x' => self.apply_operator(VimOperator::Delete, right(times), false, ground, at),
            'X' => {
                let (from, _) =
                    ground.motion_target(VimMotion::Left, Some(times), at, false).unwrap_or((at, MotionSpan::Open));
                self.apply_operator(VimOperator::Delete, from..at, false, ground, at)
            }
            's' => self.apply_operator(VimOperator::Change, right(times), false, ground, at),
            'D' | 'C' => {
                let (to, _) =
                    ground.motion_target(VimMotion::End, count, at, false).unwrap_or((line.end, MotionSpan::Open));
                let operator = if letter == 'D' { VimOperator::Delete } else { VimOperator::Change };
                self.apply_operator(operator, at..to, false, ground, at)
            }
            'S' | 'Y' => {
                let operator = if letter == 'S' { VimOperator::Change } else { VimOperator::Yank };
                self.operator = Some((operator, count));
                self.operate(operator, letter, ground, at)
            }
            'r' => {
                (self.waits, self.count) = (Some(PendingKey::Replace), count);
                Vec::new()
            }
            '~' => {
                let range = right(times);
                let with = change_case(&ground.text[range.clone()], LetterCase::Other);
                self.changes = true;
                let to = (range.start + with.len()).min(line.end + with.len() - range.len());
                let at = if range.end >= line.end {
                    motion::previous_grapheme(ground.text, line.end).max(line.start)
                } else {
                    to
                };
                vec![VimAction::Replace { range, with, at }]
            }
            'R' => {
                self.insert(1);
                self.mode = VimMode::Replace;
                Vec::new()
            }
            'J' => self.join(ground, at, times.max(2), true),
            'p' | 'P' => self.paste_register(letter == 'p', times, ground, at),
            'u' => vec![VimAction::Undo(times)],
            '.' => {
                let mut keys = self.last.clone();
                // Repeating `"1p` pastes the next older deletion.
                if let [VimStroke::Text(mark), VimStroke::Text(name), ..] = keys.as_mut_slice()
                    && mark == "\""
                    && let Some(number) = name.parse::<u8>().ok().filter(|number| (1..9).contains(number))
                {
                    *name = (number + 1).to_string();
                    self.last.clone_from(&keys);
                }
                if let Some(count) = count {
                    let digits = keys.iter().take_while(|stroke| is_digit(stroke)).count();
                    keys.splice(..digits, count.to_string().chars().map(|digit| VimStroke::Text(digit.to_string())));
                }
                vec![VimAction::Again(keys)]
            }
            'v' => self.enter_visual(VimMode::Visual, ground, at),
            'V' => self.enter_visual(VimMode::Lines, ground, at),
            '&' => vec![VimAction::ExAgain],
            ':' => vec![VimAction::Ex { visual: false }],
            _ => self.nothing(),
        }
    }

    /// Scrolls the page below the caret, or folds (the keys after `z`).
    pub(super) fn handle_scroll_key(&mut self, letter: char, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let part = match letter {
            't' | '\n' => 0.0,
            'z' | '.' => 0.5,
            'b' | '-' => 1.0,
            'a' | 'o' | 'c' => return vec![VimAction::Run(CommandId::FoldHere)],
            'M' => return vec![VimAction::Run(CommandId::FoldAll)],
            'R' => return vec![VimAction::Run(CommandId::FoldNone)],
            _ => return self.nothing(),
        };
        if !matches!(letter, '\n' | '.' | '-') {
            return vec![VimAction::Seat { part }];
        }
        let mut deeds = self.arrive(ground.indent(at), ground);
        deeds.push(VimAction::Seat { part });
        deeds
    }

    /// Moves back or forward in the jump list.
    pub(super) fn jump_in_list(&mut self, back: bool, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let times = self.count.take().unwrap_or(1);
        match self.places.jump_target(times, back, at) {
            Some(to) => self.arrive(motion::floor_grapheme(ground.text, to), ground),
            None => self.nothing(),
        }
    }

    /// Increments or decrements the number at the caret, or the next one in its line; in a selection, the first number
    /// of each line.
    pub(super) fn count_up(&mut self, down: bool, ground: &BufferView<'_>, at: usize) -> Vec<VimAction> {
        let times = i128::try_from(self.count.take().unwrap_or(1)).unwrap_or(1);
        let by = if down { -times } else { times };
        let from = if self.is_visual() { self.selected(ground).start } else { at };
        let edits: Vec<(Range<usize>, String)> = match self.is_visual() {
            true => {
                let ranges = self.selected_in_lines(ground);
                self.remember_count(down, ground);
                self.mode = VimMode::Normal;
                ranges.into_iter().filter_map(|range| counted(ground.text, range, by)).collect()
            }
            false => counted(ground.text, at..ground.line(at).end, by).into_iter().collect(),
        };
        let Some((range, with)) = edits.first() else { return self.nothing() };
        self.changes = true;
        // The caret ends at the number's last digit, or at the start of a selection.
        let at = if from == at && edits.len() == 1 { range.start + with.len().saturating_sub(1) } else { from };
        vec![VimAction::Splices { edits, at }]
    }
}

/// Returns the first number that ends in a part of a line, incremented.
fn counted(text: &str, part: Range<usize>, by: i128) -> Option<(Range<usize>, String)> {
    let line = motion::line_around(text, part.start);
    let bytes = text.as_bytes();
    let digits = |from: usize, is: fn(&u8) -> bool| from + bytes[from..line.end].iter().take_while(|b| is(b)).count();
    let mut at = line.start;
    while at < part.end {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let hexadecimal = bytes[at..line.end].starts_with(b"0x") && digits(at + 2, u8::is_ascii_hexdigit) > at + 2;
        let end = if hexadecimal { digits(at + 2, u8::is_ascii_hexdigit) } else { digits(at, u8::is_ascii_digit) };
        if end <= part.start {
            at = end;
            continue;
        }
        let own = &text[at..end];
        if hexadecimal {
            let value = u64::from_str_radix(&own[2..], 16).ok()?;
            let value = value.wrapping_add_signed(i64::try_from(by).ok()?);
            let width = own.len() - 2;
            return Some((at..end, format!("0x{value:0width$x}")));
        }
        let minus = at > line.start && bytes[at - 1] == b'-';
        let value: i128 = own.parse().ok()?;
        let value = (if minus { -value } else { value }).checked_add(by)?;
        let width = if own.starts_with('0') { own.len() } else { 0 };
        let sign = if value < 0 { "-" } else { "" };
        return Some((at - usize::from(minus)..end, format!("{sign}{:0width$}", value.unsigned_abs())));
    }
    None
}
