//! Ranges of Vim's text objects.

use super::super::motion::CharClass;
use super::motions::BufferView;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

impl BufferView<'_> {
    /// Returns the range of a text object, and whether it is whole lines. `around` includes its whitespace or
    /// delimiters.
    pub(crate) fn object(&self, name: char, around: bool, count: usize, at: usize) -> Option<(Range<usize>, bool)> {
        let pair = match name {
            '(' | ')' | 'b' => Some(('(', ')')),
            '[' | ']' => Some(('[', ']')),
            '{' | '}' | 'B' => Some(('{', '}')),
            '<' | '>' => Some(('<', '>')),
            _ => None,
        };
        if let Some((open, close)) = pair {
            return self.inside(open, close, around, count, at).map(|range| (range, false));
        }
        match name {
            'w' | 'W' => Some((self.words(name == 'W', around, count, at), false)),
            '"' | '\'' | '`' | '*' | '_' => self.quoted(name, around, at).map(|range| (range, false)),
            's' => Some((self.whole_sentence(around, count, at), false)),
            'p' => Some((self.whole_paragraph(around, count, at), true)),
            't' => self.tagged(around, count, at).map(|range| (range, false)),
            _ => None,
        }
    }

    fn inside(&self, open: char, close: char, around: bool, count: usize, at: usize) -> Option<Range<usize>> {
        let mut start = if self.text[at..].starts_with(open) { at } else { self.opening_bracket(at, open, close)? };
        for _ in 1..count {
            start = self.opening_bracket(start, open, close)?;
        }
        let end = self.closing_bracket(start + open.len_utf8(), open, close)?;
        Some(if around { start..end + close.len_utf8() } else { start + open.len_utf8()..end })
    }

    fn quoted(&self, mark: char, around: bool, at: usize) -> Option<Range<usize>> {
        let line = self.line(at);
        let marks: Vec<usize> =
            self.text[line.clone()].match_indices(mark).map(|(place, _)| line.start + place).collect();
        // Quotes are paired from the start of the line; if the caret is in no pair, the next pair is used.
        let pair = marks.chunks_exact(2).find(|pair| at <= pair[1])?;
        if !around {
            return Some(pair[0] + 1..pair[1]);
        }
        let spaces = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
        let behind = spaces(&self.text[pair[1] + 1..line.end]);
        let before = &self.text[line.start..pair[0]];
        let before = before.len() - before.trim_end_matches([' ', '\t']).len();
        Some(if behind > 0 { pair[0]..pair[1] + 1 + behind } else { pair[0] - before..pair[1] + 1 })
    }

    /// Returns the text between an HTML tag and its closing tag.
    fn tagged(&self, around: bool, count: usize, at: usize) -> Option<Range<usize>> {
        let mut open: Vec<(&str, Range<usize>)> = Vec::new();
        // Of the pairs around the caret, the innermost one is closed first.
        let mut left = count;
        let mut from = 0;
        while let Some(start) = self.text[from..].find('<').map(|found| from + found) {
            let Some(end) = self.text[start..].find('>').map(|found| start + found + 1) else { break };
            let inside = &self.text[start + 1..end - 1];
            from = start + 1;
            let (closes, body) = inside.strip_prefix('/').map_or((false, inside), |body| (true, body));
            let name =
                &body[..body.find(|letter: char| !letter.is_alphanumeric() && letter != '-').unwrap_or(body.len())];
            if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) || inside.ends_with('/') {
                continue;
            }
            from = end;
            if !closes {
                open.push((name, start..end));
                continue;
            }
            let Some(place) = open.iter().rposition(|(known, _)| known.eq_ignore_ascii_case(name)) else { continue };
            let (_, first) = open.swap_remove(place);
            open.truncate(place);
            if first.start <= at && at < end {
                left -= 1;
                if left == 0 {
                    return Some(if around { first.start..end } else { first.end..start });
                }
            }
        }
        None
    }

    fn words(&self, big: bool, around: bool, count: usize, at: usize) -> Range<usize> {
        let line = self.line(at);
        let text = &self.text[line.clone()];
        let mut runs: Vec<(Range<usize>, CharClass)> = Vec::new();
        for (place, cluster) in text.grapheme_indices(true) {
            let (class, place) = (self.class(cluster, big), line.start + place);
            match runs.last_mut() {
                Some((run, last)) if *last == class => run.end = place + cluster.len(),
                _ => runs.push((place..place + cluster.len(), class)),
            }
        }
        let Some(first) = runs.iter().position(|(run, _)| run.contains(&at)).or_else(|| runs.len().checked_sub(1))
        else {
            return line.start..line.start;
        };
        let run = |index: usize| runs[index.min(runs.len() - 1)].0.clone();
        let is_space = |index: usize| runs.get(index).is_some_and(|(_, class)| *class == CharClass::Space);
        if !around {
            return run(first).start..run(first + count - 1).end;
        }
        // A word includes the space after it, and a space the word after it. The last word includes the space before
        // it.
        let mut end = first;
        for _ in 0..count {
            end += if is_space(end) || is_space(end + 1) { 2 } else { 1 };
        }
        let end = end.min(runs.len());
        let start = if !is_space(first) && !is_space(end - 1) && first > 0 && is_space(first - 1) && end == runs.len() {
            first - 1
        } else {
            first
        };
        run(start).start..run(end - 1).end
    }

    /// Returns the lines of a paragraph, or the empty lines between two, without the final line ending.
    fn whole_paragraph(&self, around: bool, count: usize, at: usize) -> Range<usize> {
        let mut start = self.line(at).start;
        while let Some(above) = self.above(start).filter(|above| self.is_blank(*above) == self.is_blank(start)) {
            start = above;
        }
        let below = |line: usize| self.below(line).filter(|below| *below < self.text.len());
        let run_end = |mut line: usize| {
            while let Some(next) = below(line).filter(|next| self.is_blank(*next) == self.is_blank(line)) {
                line = next;
            }
            line
        };
        let mut last = run_end(self.line(at).start);
        for _ in 1..if around { 2 * count } else { count } {
            let Some(next) = below(last) else { break };
            last = run_end(next);
        }
        start..self.line(last).end
    }

    /// Returns sentences; `around` includes the whitespace after them, or before them if there's none after.
    fn whole_sentence(&self, around: bool, count: usize, at: usize) -> Range<usize> {
        let starts = self.sentences(at);
        let first = starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = starts.get(first).copied().unwrap_or(at);
        let next = starts.get(first + count).copied().unwrap_or(self.text.len());
        let bare = start + self.text[start..next.max(start)].trim_end().len();
        if !around {
            // In white space after a sentence, that space is selected.
            return if at >= bare && at < next { bare..next } else { start..bare };
        }
        let line_end = self.line(bare).end;
        let end = next.min(line_end.max(bare));
        if end > bare {
            return start..end;
        }
        let before = &self.text[self.line(start).start..start];
        start - (before.len() - before.trim_end().len())..bare
    }
}
