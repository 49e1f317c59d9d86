//! Highlights: the words of a passage that match a query, and the excerpt that shows most of them.

use crate::analyzer::{self, english_stemmer, stem_word};
use std::collections::HashSet;
use std::ops::Range;

/// Returns the ranges of words in a text that match a query: the same word, the same stem, or one of `terms`.
pub fn highlight_ranges(text: &str, terms: &HashSet<String>) -> Vec<Range<usize>> {
    let stemmer = english_stemmer();
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in analyzer::split_words_and_characters(text) {
        if terms.contains(&word.text) || terms.contains(&stem_word(&stemmer, &word.text)) {
            match found.last_mut() {
                // Pairs of characters overlap, and so do the parts of an identifier that is marked whole.
                Some(last) if word.range.start <= last.end => last.end = last.end.max(word.range.end),
                Some(_) | None => found.push(word.range),
            }
        }
    }
    found
}

/// Returns an excerpt of about `length` bytes around most of the marks, cut between words, and the marks inside it.
pub fn excerpt(text: &str, marks: &[Range<usize>], length: usize) -> (String, Vec<Range<usize>>) {
    let begin = marks.iter().enumerate().max_by_key(|(place, mark)| {
        let inside = marks[*place..].iter().take_while(|other| other.end <= mark.start + length).count();
        (inside, usize::MAX - place)
    });
    let begin = begin.map_or(0, |(_, mark)| mark.start);
    let mut start = if begin < length / 3 { 0 } else { text.floor_char_boundary(begin - length / 4) };
    if start > 0 {
        let word = text[start..begin].find(char::is_whitespace).map_or(start, |space| start + space + 1);
        start = text.ceil_char_boundary(word).min(begin);
    }
    let mut end = text.floor_char_boundary((start + length).min(text.len()));
    if end < text.len() {
        end = text[start..end].rfind(char::is_whitespace).map_or(end, |space| start + space).max(start);
    }
    let mut out = String::new();
    if start > 0 {
        out.push_str("… ");
    }
    let shift = out.len();
    // The excerpt is one line: each control character becomes a space of the same length.
    out.extend(text[start..end].chars().map(|c| if c.is_ascii_control() { ' ' } else { c }));
    if end < text.len() {
        out.push_str(" …");
    }
    let inside = marks.iter().filter(|mark| mark.start >= start && mark.end <= end);
    let inside = inside.map(|mark| mark.start - start + shift..mark.end - start + shift).collect();
    (out, inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(words: &[&str]) -> HashSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_and_stems_are_marked() {
        let text = "He runs, she was running; ERR_0x1F.";
        let said: Vec<&str> =
            highlight_ranges(text, &terms(&["run", "err_0x1f"])).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(said, ["runs", "running", "ERR_0x1F"]);
        let text = "東京都、京";
        let said: Vec<&str> = highlight_ranges(text, &terms(&["京"])).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(said, ["京", "京"]);
        let long = format!("{}needle here{}", "hay ".repeat(100), " hay".repeat(100));
        let (part, inside) = excerpt(&long, &highlight_ranges(&long, &terms(&["needle"])), 60);
        assert!(part.len() < 80 && part.starts_with("… ") && part.ends_with(" …"), "{part}");
        assert_eq!(&part[inside[0].clone()], "needle");
        assert_eq!(excerpt("short", &[], 60), ("short".to_owned(), vec![]));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}", word in "\\PC{1,3}", length in 1_usize..40) {
            let found = highlight_ranges(&text, &terms(&[&analyzer::fold_text(&word)]));
            let (part, inside) = excerpt(&text, &found, length);
            prop_assert!(inside.into_iter().all(|mark| part.get(mark).is_some()));
        }
    }
}
