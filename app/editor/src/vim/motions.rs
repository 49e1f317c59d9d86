//! Targets of Vim motions. Pure functions of a text and of the positions where a caret can be.

use super::super::motion::{self, CharClass};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum distance of a matching bracket in bytes.
const MAX_BRACKET_SEARCH_BYTES: usize = 1_000_000;
/// Number of bytes searched for sentences before and after the caret.
const SENTENCE_SEARCH_BYTES: usize = 20_000;
/// Maximum number of steps of a motion while no caret can be at its target.
const MAX_MOTION_RETRIES: usize = 10_000;

/// A text with the positions where a caret can be.
pub struct BufferView<'a> {
    /// The text of the note.
    pub text: &'a str,
    /// Returns whether a caret can be at a byte: not in the empty line between paragraphs, nor on a fence.
    pub stands: &'a dyn Fn(usize) -> bool,
}

/// The text that an operator covers with a motion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MotionSpan {
    /// Excludes the target character.
    Open,
    /// Includes the target character.
    Closed,
    /// Covers whole lines.
    Lines,
}

/// A motion of the caret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VimMotion {
    Left,
    Right,
    /// A number of lines down.
    Down,
    Up,
    /// A number of lines down or up, to the first word; `own` counts the current line as the first of them.
    First {
        down: bool,
        own: bool,
    },
    /// Positions in the line: first byte, first word, last character, last character that isn't a space, and a column.
    Start,
    Indent,
    End,
    LastWord,
    Column,
    Word {
        big: bool,
    },
    Back {
        big: bool,
    },
    WordEnd {
        big: bool,
    },
    BackEnd {
        big: bool,
    },
    /// The first line (`Top`) or the last line (`Bottom`); with a count, the line with that number.
    Top,
    Bottom,
    Paragraph {
        back: bool,
    },
    Sentence {
        back: bool,
    },
    Bracket,
    Letter(CharSearch),
    /// To a mark; `line` goes to the first word of its line.
    Mark {
        to: usize,
        line: bool,
    },
}

impl VimMotion {
    /// Returns whether the motion is recorded in the jump list.
    pub(crate) fn is_jump(self) -> bool {
        matches!(
            self,
            VimMotion::Top
                | VimMotion::Bottom
                | VimMotion::Paragraph { .. }
                | VimMotion::Sentence { .. }
                | VimMotion::Bracket
                | VimMotion::Mark { .. }
        )
    }
}

/// A search for a character in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CharSearch {
    pub(crate) letter: char,
    pub(crate) back: bool,
    /// Whether to stop next to the character (`t`) instead of on it (`f`).
    pub(crate) till: bool,
    /// Whether to skip a match right at the caret.
    pub(crate) again: bool,
}

impl BufferView<'_> {
    /// Returns the line that contains a byte, without its line ending.
    pub fn line(&self, at: usize) -> Range<usize> {
        let line = motion::line_around(self.text, at.min(self.text.len()));
        let end = if self.text[line.clone()].ends_with('\r') { line.end - 1 } else { line.end };
        line.start..end
    }

    /// Returns the first byte of the line below.
    pub(crate) fn below(&self, at: usize) -> Option<usize> {
        self.text[at..].find('\n').map(|newline| at + newline + 1)
    }

    /// Returns the first byte of the line above.
    pub(crate) fn above(&self, at: usize) -> Option<usize> {
        let start = motion::line_around(self.text, at).start;
        start.checked_sub(1).map(|before| motion::line_around(self.text, before).start)
    }

    pub(crate) fn is_caret_stop(&self, at: usize) -> bool {
        (self.stands)(at)
    }

    pub(crate) fn is_blank(&self, start: usize) -> bool {
        self.text[self.line(start)].trim().is_empty()
    }

    /// Returns whether a line is an empty separator where no caret can be.
    pub(crate) fn is_blank_line(&self, start: usize) -> bool {
        self.is_blank(start) && !self.is_caret_stop(start)
    }

    /// Returns the next line in a direction on which a caret can be.
    pub fn next_line(&self, at: usize, down: bool) -> Option<usize> {
        let mut start = if down { self.below(at) } else { self.above(at) };
        while let Some(line) = start {
            if self.is_caret_stop(line) {
                return Some(line);
            }
            start = if down { self.below(line) } else { self.above(line) };
        }
        None
    }

    /// Returns the first byte of a line that isn't a space.
    pub fn indent(&self, at: usize) -> usize {
        let line = self.line(at);
        let text = &self.text[line.clone()];
        line.start + (text.len() - text.trim_start_matches([' ', '\t']).len())
    }

    /// Returns the closest position on a character: Vim's caret can't be after the last one.
    pub(crate) fn on_letter(&self, at: usize) -> usize {
        let line = self.line(at);
        let at = motion::floor_grapheme(self.text, at.clamp(line.start, line.end));
        if at >= line.end && line.end > line.start { motion::previous_grapheme(self.text, line.end) } else { at }
    }

    /// Returns the number of characters in the line before a position.
    pub(crate) fn column(&self, at: usize) -> usize {
        let start = self.line(at).start;
        self.text[start..at].graphemes(true).count()
    }

    /// Returns the position in a line after this many characters.
    pub(crate) fn at_column(&self, line: usize, column: usize) -> usize {
        let line = self.line(line);
        let text = &self.text[line.clone()];
        line.start + text.grapheme_indices(true).nth(column).map_or(text.len(), |(at, _)| at)
    }

    pub(super) fn class(&self, cluster: &str, big: bool) -> CharClass {
        let class = motion::char_class(cluster);
        if big && class != CharClass::Space { CharClass::Word } else { class }
    }

    /// Returns the start of the next word.
    fn word(&self, at: usize, big: bool) -> usize {
        let mut clusters = self.text[at..].grapheme_indices(true).peekable();
        let Some(first) = clusters.peek().map(|(_, cluster)| self.class(cluster, big)) else { return at };
        while clusters.next_if(|(_, cluster)| first != CharClass::Space && self.class(cluster, big) == first).is_some()
        {
        }
        while let Some((place, cluster)) = clusters.next_if(|(_, cluster)| self.class(cluster, big) == CharClass::Space)
        {
            let next = at + place + cluster.len();
            // An empty line counts as a word.
            if cluster.ends_with('\n')
                && self.line(next).is_empty()
                && next < self.text.len()
                && self.is_caret_stop(next)
            {
                return next;
            }
        }
        clusters.next().map_or(self.end().max(at), |(place, _)| at + place)
    }

    /// Returns the start of the word before a position; inside a word, the start of that word.
    fn back(&self, at: usize, big: bool) -> usize {
        let mut clusters = self.text[..at].grapheme_indices(true).rev().peekable();
        let mut found = 0;
        while let Some((place, cluster)) = clusters.peek().copied() {
            if self.class(cluster, big) != CharClass::Space {
                break;
            }
            if cluster.ends_with('\n') && place > 0 && self.line(place).is_empty() && self.is_caret_stop(place) {
                return place;
            }
            clusters.next();
        }
        let class = clusters.peek().map(|(_, cluster)| self.class(cluster, big));
        while let Some((place, _)) = clusters.next_if(|(_, cluster)| Some(self.class(cluster, big)) == class) {
            found = place;
        }
        found
    }

    /// Returns the last character of the word at a position, or of the next word.
    fn word_end(&self, at: usize, big: bool) -> usize {
        let from = motion::next_grapheme(self.text, at);
        let mut clusters = self.text[from..].grapheme_indices(true).peekable();
        while clusters.next_if(|(_, cluster)| self.class(cluster, big) == CharClass::Space).is_some() {}
        let class = clusters.peek().map(|(_, cluster)| self.class(cluster, big));
        let mut found = None;
        while let Some((place, _)) = clusters.next_if(|(_, cluster)| Some(self.class(cluster, big)) == class) {
            found = Some(from + place);
        }
        found.unwrap_or(at)
    }

    /// Returns the last character of the previous word.
    fn back_end(&self, at: usize, big: bool) -> usize {
        let here = self.text[at..].graphemes(true).next().map(|cluster| self.class(cluster, big));
        let mut clusters = self.text[..at].grapheme_indices(true).rev().peekable();
        while clusters
            .next_if(|(_, cluster)| here != Some(CharClass::Space) && Some(self.class(cluster, big)) == here)
            .is_some()
        {}
        while clusters.next_if(|(_, cluster)| self.class(cluster, big) == CharClass::Space).is_some() {}
        clusters.peek().map_or(0, |(place, _)| *place)
    }

    /// Returns the empty line next to a paragraph; if no caret can be there, the nearest line after it.
    fn paragraph(&self, at: usize, back: bool, alone: bool) -> usize {
        let mut line = self.line(at).start;
        if back {
            let Some(mut start) = self.above(line) else { return 0 };
            if self.is_blank(start) && !self.is_blank(line) && (self.is_caret_stop(start) || at > line) {
                return if self.is_caret_stop(start) { start } else { line };
            }
            while self.is_blank(start) {
                match self.above(start) {
                    Some(above) => start = above,
                    None => return start,
                }
            }
            while let Some(above) = self.above(start) {
                if self.is_blank(above) {
                    return if self.is_caret_stop(above) { above } else { start };
                }
                start = above;
            }
            return start;
        }
        let mut seen = false;
        while let Some(below) = self.below(line) {
            seen |= !self.is_blank(line);
            if seen && self.is_blank(below) {
                let next = if !alone || self.is_caret_stop(below) { Some(below) } else { self.next_line(below, true) };
                return next.unwrap_or_else(|| self.end());
            }
            line = below;
        }
        self.end()
    }

    /// Returns the first byte of the next or previous sentence; paragraphs end sentences.
    fn sentence(&self, at: usize, back: bool) -> usize {
        let starts = self.sentences(at);
        match back {
            true => starts.into_iter().rfind(|start| *start < at).unwrap_or(0),
            false => starts.into_iter().find(|start| *start > at).unwrap_or_else(|| self.on_letter(self.end())),
        }
    }

    /// Returns the starts of the sentences around a position.
    pub(super) fn sentences(&self, at: usize) -> Vec<usize> {
        let from = self.line(motion::floor_grapheme(self.text, at.saturating_sub(SENTENCE_SEARCH_BYTES))).start;
        let to = self.line(motion::floor_grapheme(self.text, at + SENTENCE_SEARCH_BYTES)).end;
        let (mut starts, mut line, mut fresh) = (Vec::new(), from, true);
        while line <= to {
            let own = self.line(line);
            let mut letters = self.text[own.clone()].char_indices().peekable();
            if self.is_blank(line) {
                // The first of several empty lines counts as a sentence.
                if !fresh && self.is_caret_stop(line) {
                    starts.push(line);
                }
                fresh = true;
            }
            while let Some((place, letter)) = letters.next() {
                if fresh && !letter.is_whitespace() {
                    starts.push(own.start + place);
                    fresh = false;
                }
                let wide = matches!(letter, '。' | '！' | '？');
                if wide || matches!(letter, '.' | '!' | '?') {
                    while letters.next_if(|(_, letter)| matches!(letter, ')' | ']' | '"' | '\'')).is_some() {}
                    fresh = wide || letters.peek().is_none_or(|(_, letter)| letter.is_whitespace());
                }
            }
            match self.below(line).filter(|below| *below < self.text.len()) {
                Some(below) => line = below,
                None => break,
            }
        }
        starts
    }

    /// Returns the end of the text, without the line endings at its end.
    fn end(&self) -> usize {
        self.text.trim_end_matches(['\n', '\r']).len()
    }

    /// Returns the counterpart of the next bracket in the line.
    fn bracket(&self, at: usize) -> Option<usize> {
        let line = self.line(at);
        let pairs = ["()", "[]", "{}"];
        let (from, open, close, forward) = self.text[at..line.end].char_indices().find_map(|(place, letter)| {
            let pair = pairs.iter().find(|pair| pair.contains(letter))?;
            let (open, close) = (pair.chars().next()?, pair.chars().last()?);
            Some((at + place, open, close, letter == open))
        })?;
        if forward { self.closing_bracket(from + 1, open, close) } else { self.opening_bracket(from, open, close) }
    }

    /// Returns the closing bracket of the pair that is open at a position.
    pub(super) fn closing_bracket(&self, at: usize, open: char, close: char) -> Option<usize> {
        let mut depth = 0_usize;
        for (place, letter) in self.text[at..].char_indices().take_while(|(place, _)| *place < MAX_BRACKET_SEARCH_BYTES)
        {
            if letter == open {
                depth += 1;
            } else if letter == close {
                if depth == 0 {
                    return Some(at + place);
                }
                depth -= 1;
            }
        }
        None
    }

    /// Returns the opening bracket of the pair that contains a position.
    pub(super) fn opening_bracket(&self, at: usize, open: char, close: char) -> Option<usize> {
        let mut depth = 0_usize;
        for (place, letter) in
            self.text[..at].char_indices().rev().take_while(|(place, _)| at - place < MAX_BRACKET_SEARCH_BYTES)
        {
            if letter == close {
                depth += 1;
            } else if letter == open {
                if depth == 0 {
                    return Some(place);
                }
                depth -= 1;
            }
        }
        None
    }

    fn hunt(&self, at: usize, hunt: CharSearch, count: usize) -> Option<usize> {
        let line = self.line(at);
        // After `t`, `;` would find the same character again, next to the caret.
        let skip = usize::from(hunt.till && hunt.again);
        if hunt.back {
            let end = if skip == 1 { motion::previous_grapheme(self.text, at).max(line.start) } else { at };
            let found = self.text[line.start..end].rmatch_indices(hunt.letter).nth(count - 1);
            let (place, letter) = found.map(|(place, letter)| (line.start + place, letter.len()))?;
            return Some(if hunt.till { place + letter } else { place });
        }
        let mut from = motion::next_grapheme(self.text, at).min(line.end);
        if skip == 1 && from < line.end {
            from = motion::next_grapheme(self.text, from).min(line.end);
        }
        let place = from + self.text[from..line.end].match_indices(hunt.letter).nth(count - 1)?.0;
        Some(if hunt.till { motion::previous_grapheme(self.text, place) } else { place })
    }

    /// Returns the target of a motion and its span. `alone` says that only the caret moves, without an operator.
    pub(crate) fn motion_target(
        &self,
        motion: VimMotion,
        count: Option<usize>,
        at: usize,
        alone: bool,
    ) -> Option<(usize, MotionSpan)> {
        let (times, line) = (count.unwrap_or(1).max(1), self.line(at));
        // A caret moves on until it reaches a possible position; an operator ends exactly at the motion's target.
        let repeat = |step: &dyn Fn(usize) -> usize| {
            let (mut to, mut left) = (at, times);
            for _ in 0..MAX_MOTION_RETRIES {
                let next = step(to);
                if next == to {
                    return if !alone || self.is_caret_stop(to) { to } else { at };
                }
                to = next;
                left = left.saturating_sub(usize::from(!alone || self.is_caret_stop(to)));
                if left == 0 {
                    return to;
                }
            }
            at
        };
        let lines = |down: bool, times: usize| {
            let mut to = line.start;
            for _ in 0..times {
                to = self.next_line(to, down)?;
            }
            Some(to)
        };
        Some(match motion {
            VimMotion::Left => {
                let step = |at: usize| if at > line.start { motion::previous_grapheme(self.text, at) } else { at };
                ((0..times).fold(at, |at, _| step(at)), MotionSpan::Open)
            }
            VimMotion::Right => {
                let step = |at: usize| if at < line.end { motion::next_grapheme(self.text, at) } else { at };
                ((0..times.min(line.len() + 1)).fold(at, |at, _| step(at)), MotionSpan::Open)
            }
            VimMotion::Down => (lines(true, times)?, MotionSpan::Lines),
            VimMotion::Up => (lines(false, times)?, MotionSpan::Lines),
            VimMotion::First { down, own } => {
                (self.indent(lines(down, if own { times - 1 } else { times })?), MotionSpan::Lines)
            }
            VimMotion::Start => (line.start, MotionSpan::Open),
            VimMotion::Indent => (self.indent(at), MotionSpan::Open),
            VimMotion::End => (self.line(lines(true, times - 1)?).end, MotionSpan::Open),
            VimMotion::LastWord => {
                let end = self.text[line.clone()].trim_end().len();
                (self.on_letter(line.start + end.saturating_sub(1)), MotionSpan::Closed)
            }
            VimMotion::Column => (self.at_column(at, times - 1), MotionSpan::Open),
            VimMotion::Word { big } => (repeat(&|at| self.word(at, big)), MotionSpan::Open),
            VimMotion::Back { big } => (repeat(&|at| self.back(at, big)), MotionSpan::Open),
            VimMotion::WordEnd { big } => (repeat(&|at| self.word_end(at, big)), MotionSpan::Closed),
            VimMotion::BackEnd { big } => (repeat(&|at| self.back_end(at, big)), MotionSpan::Closed),
            VimMotion::Top => (self.indent(self.line_by_number(times)), MotionSpan::Lines),
            VimMotion::Bottom => {
                let line = count.map_or_else(|| self.last_line(), |count| self.line_by_number(count));
                (self.indent(line), MotionSpan::Lines)
            }
            VimMotion::Paragraph { back } => (repeat(&|at| self.paragraph(at, back, alone)), MotionSpan::Open),
            VimMotion::Sentence { back } => (repeat(&|at| self.sentence(at, back)), MotionSpan::Open),
            VimMotion::Mark { to, line: true } => (self.indent(to), MotionSpan::Lines),
            VimMotion::Mark { to, line: false } => (to, MotionSpan::Open),
            VimMotion::Bracket => (self.bracket(at)?, MotionSpan::Closed),
            VimMotion::Letter(hunt) => {
                (self.hunt(at, hunt, times)?, if hunt.back { MotionSpan::Open } else { MotionSpan::Closed })
            }
        })
    }

    /// Returns the last line on which a caret can be.
    pub fn last_line(&self) -> usize {
        let line = self.line(self.text.len()).start;
        let own = self.is_caret_stop(line) && !(line == self.text.len() && self.text.ends_with('\n'));
        if own { line } else { self.next_line(line, false).unwrap_or(line) }
    }

    /// Returns the line with this number, counted from 1 among lines on which a caret can be.
    pub fn line_by_number(&self, number: usize) -> usize {
        let mut line = if self.is_caret_stop(0) { 0 } else { self.next_line(0, true).unwrap_or(0) };
        for _ in 1..number {
            match self.next_line(line, true) {
                Some(below) => line = below,
                None => break,
            }
        }
        line.min(self.last_line())
    }
}
