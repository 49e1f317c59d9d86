//! Movement within a text by grapheme clusters, words and lines. Works on text only; positions are bytes, and no
//! function returns one inside a cluster (what a reader takes for one letter).

use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// Returns the end of the cluster that begins at a position.
pub fn next_grapheme(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at.min(text.len()), text.len(), true);
    cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

/// Returns the start of the cluster that ends at a position.
pub fn previous_grapheme(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at.min(text.len()), text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// Returns the position itself, or the start of the cluster that contains it.
pub fn floor_grapheme(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    if cursor.is_boundary(text, 0).unwrap_or(true) { at } else { previous_grapheme(text, at) }
}

/// Returns the position itself, or the end of the cluster that contains it.
pub(crate) fn ceil_grapheme(text: &str, at: usize) -> usize {
    let low = floor_grapheme(text, at);
    if low < at { next_grapheme(text, low) } else { low }
}

/// Character classes that delimit words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CharClass {
    Space,
    Word,
    Ideograph,
    Hiragana,
    Katakana,
    Mark,
}

pub(crate) fn char_class(cluster: &str) -> CharClass {
    let Some(first) = cluster.chars().next() else { return CharClass::Space };
    match first {
        c if c.is_whitespace() => CharClass::Space,
        '\u{3040}'..='\u{309f}' => CharClass::Hiragana,
        '\u{30a0}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => CharClass::Katakana,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}' => {
            CharClass::Ideograph
        }
        c if c.is_alphanumeric() || c == '_' => CharClass::Word,
        _ => CharClass::Mark,
    }
}

/// Splits a text into runs of one character class; the apostrophe of "don't" counts as part of its word.
fn runs(text: &str) -> Vec<(Range<usize>, CharClass)> {
    let mut runs: Vec<(Range<usize>, CharClass)> = Vec::new();
    let mut clusters = text.grapheme_indices(true).peekable();
    while let Some((at, cluster)) = clusters.next() {
        let mut here = char_class(cluster);
        let inside = matches!(runs.last(), Some((run, CharClass::Word)) if run.end == at);
        let goes_on = clusters.peek().is_some_and(|(_, next)| char_class(next) == CharClass::Word);
        if matches!(cluster, "'" | "’") && inside && goes_on {
            here = CharClass::Word;
        }
        match runs.last_mut() {
            Some((run, class)) if *class == here => run.end = at + cluster.len(),
            _ => runs.push((at..at + cluster.len(), here)),
        }
    }
    runs
}

/// Returns the end of the word at or after a position.
pub(crate) fn word_after(text: &str, at: usize) -> usize {
    let runs = runs(text);
    let ends = runs.iter().filter(|(run, class)| *class != CharClass::Space && run.end > at);
    ends.map(|(run, _)| run.end).next().unwrap_or(text.len())
}

/// Returns the start of the word at or before a position.
pub(crate) fn word_before(text: &str, at: usize) -> usize {
    let runs = runs(text);
    let starts = runs.iter().rev().filter(|(run, class)| *class != CharClass::Space && run.start < at);
    starts.map(|(run, _)| run.start).next().unwrap_or(0)
}

/// Returns the word at a position, or the one that ends there if none begins there.
pub fn word_around(text: &str, at: usize) -> Range<usize> {
    let runs = runs(text);
    let here = runs.iter().position(|(run, _)| run.contains(&at)).or_else(|| runs.len().checked_sub(1));
    let Some(mut index) = here else { return at..at };
    let is_word = |class: CharClass| !matches!(class, CharClass::Space | CharClass::Mark);
    if !is_word(runs[index].1) && index > 0 && runs[index].0.start == at && is_word(runs[index - 1].1) {
        index -= 1;
    }
    let (run, class) = &runs[index];
    if *class != CharClass::Space {
        return run.clone();
    }
    // Whitespace is selected only within its line.
    let line = line_around(text, at);
    run.start.max(line.start)..run.end.min(line.end)
}

/// Returns the line that contains a position, without its line ending.
pub fn line_around(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_whole() {
        for cluster in ["a", "e\u{301}", "👩\u{200d}👩\u{200d}👧", "🇩🇪", "각", "न\u{93f}"] {
            let text = format!("x{cluster}y");
            assert_eq!(next_grapheme(&text, 1), 1 + cluster.len(), "{cluster}");
            assert_eq!(previous_grapheme(&text, 1 + cluster.len()), 1, "{cluster}");
            for at in 1..1 + cluster.len() {
                assert_eq!(floor_grapheme(&text, at), 1, "{cluster}");
            }
        }
        assert_eq!(
            (next_grapheme("", 0), previous_grapheme("", 0), floor_grapheme("é", 1), ceil_grapheme("é", 1)),
            (0, 0, 0, 2)
        );
    }

    #[test]
    fn words() {
        let text = "don't stop,  日本語のテスト ==> x_1";
        let ends: Vec<usize> =
            std::iter::successors(Some(0), |at| Some(word_after(text, *at)).filter(|next| next > at)).collect();
        let words: Vec<&str> = ends.windows(2).map(|pair| text[pair[0]..pair[1]].trim()).collect();
        assert_eq!(words, ["don't", "stop", ",", "日本語", "の", "テスト", "==>", "x_1"]);
        let back: Vec<usize> =
            std::iter::successors(Some(text.len()), |at| Some(word_before(text, *at)).filter(|next| next < at))
                .collect();
        assert_eq!(back.len(), ends.len());
        assert_eq!(word_around(text, 2), 0..5);
        assert_eq!(word_around(text, 5), 0..5, "at its end");
        assert_eq!(word_around("a  b", 2), 1..3);
        assert_eq!(word_around("", 0), 0..0);
    }
}
