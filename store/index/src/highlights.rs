//! Highlights: the words of a passage that match a query, and the excerpt that shows most of them.

use crate::analyzer;
use crate::language::{LanguageStemmer, StemLanguage};
use std::collections::HashSet;
use std::ops::Range;

/// Returns the ranges of words in a text that match a query: the same word or the same stem. `terms` are those of
/// [`crate::SearchAnswer::terms`].
pub fn highlight_ranges(text: &str, terms: &HashSet<String>) -> Vec<Range<usize>> {
    let of_terms = |language: &StemLanguage| {
        let is_own = |term: &String| term.strip_prefix(language.code()).is_some_and(|rest| rest.starts_with(':'));
        terms.iter().any(is_own)
    };
    let languages: Vec<StemLanguage> = StemLanguage::all().filter(of_terms).collect();
    // The text may be the whole note or a part of a passage: if its language isn't clear, it can be any of them.
    let detected = StemLanguage::detect(text).filter(|language| languages.len() > 1 && languages.contains(language));
    let stemmers: Vec<LanguageStemmer> =
        detected.map_or(languages, |language| vec![language]).into_iter().map(StemLanguage::stemmer).collect();
    let mut found: Vec<Range<usize>> = Vec::new();
    for word in analyzer::split_words_and_characters(text) {
        let source = &text[word.range.clone()];
        if terms.contains(&word.text) || stemmers.iter().any(|stemmer| terms.contains(&stemmer.stem_term(source))) {
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
            highlight_ranges(text, &terms(&["en:run", "err_0x1f"])).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(said, ["runs", "running", "ERR_0x1F"]);
        let text = "東京都、京";
        let said: Vec<&str> = highlight_ranges(text, &terms(&["京"])).into_iter().map(|mark| &text[mark]).collect();
        assert_eq!(said, ["京", "京"]);
        let text = "Die Häuser am See";
        let said = highlight_ranges(text, &terms(&["en:hous", "de:haus"])).into_iter().map(|mark| &text[mark]);
        assert_eq!(said.collect::<Vec<_>>(), ["Häuser"]);
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
