//! Finds words or a pattern in a text, and computes the replacement of each match.

use regex_lite::{Regex, RegexBuilder};
use std::ops::Range;

/// Maximum number of matches, more than a user can look through.
pub const MAX_FIND_MATCHES: usize = 100_000;

/// A search pattern and its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindQuery {
    /// The words, or the regular expression.
    pub text: String,
    /// Whether matching is case-sensitive.
    pub case: bool,
    /// Whether only whole words match.
    pub whole: bool,
    /// Whether `text` is a regular expression.
    pub regex: bool,
}

/// Error: the regular expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid pattern: {why}")]
pub struct InvalidPattern {
    why: String,
}

impl FindQuery {
    fn pattern(&self) -> Result<Regex, InvalidPattern> {
        RegexBuilder::new(&self.text)
            .case_insensitive(!self.case)
            .multi_line(true)
            .crlf(true)
            .build()
            .map_err(|error| InvalidPattern { why: error.to_string().lines().last().unwrap_or("").to_owned() })
    }

    /// Returns the byte ranges of all matches in a text, in order.
    ///
    /// # Errors
    /// Returns an error if the regular expression is invalid.
    pub fn find(&self, text: &str) -> Result<Vec<Range<usize>>, InvalidPattern> {
        if self.text.is_empty() {
            return Ok(Vec::new());
        }
        let is_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        let fits = |range: &Range<usize>| {
            let (before, behind) = (text[..range.start].chars().next_back(), text[range.end..].chars().next());
            !range.is_empty() && !(self.whole && (is_word(before) || is_word(behind)))
        };
        if self.regex {
            let pattern = self.pattern()?;
            return Ok(pattern
                .find_iter(text)
                .map(|found| found.range())
                .filter(fits)
                .take(MAX_FIND_MATCHES)
                .collect());
        }
        Ok(plain(text, &self.text, self.case).filter(fits).take(MAX_FIND_MATCHES).collect())
    }

    /// Returns the replacement of each of these matches. In `with`, `$1` stands for the first group of a regular
    /// expression.
    pub fn replacements(&self, text: &str, ranges: &[Range<usize>], with: &str) -> Vec<String> {
        let pattern = if self.regex { self.pattern().ok() } else { None };
        let Some(pattern) = pattern else { return vec![with.to_owned(); ranges.len()] };
        let template = with.replace("\\n", "\n").replace("\\t", "\t");
        let replacement = |range: &Range<usize>| {
            let Some(found) = pattern.captures_at(text, range.start) else { return with.to_owned() };
            let mut out = String::new();
            found.expand(&template, &mut out);
            out
        };
        ranges.iter().map(replacement).collect()
    }
}

/// Returns the byte ranges of some words, ignoring case unless `case` is set.
fn plain<'a>(text: &'a str, words: &str, case: bool) -> impl Iterator<Item = Range<usize>> + 'a {
    let fold = move |letter: char| -> Vec<char> { if case { vec![letter] } else { letter.to_lowercase().collect() } };
    let wanted: Vec<char> = words.chars().flat_map(fold).collect();
    let first = wanted.first().copied();
    let mut next = 0;
    text.char_indices().filter_map(move |(start, letter)| {
        if start < next || (letter.is_ascii() && case && Some(letter) != first) {
            return None;
        }
        let mut left = wanted.as_slice();
        for (at, letter) in text[start..].char_indices() {
            for letter in fold(letter) {
                left = left.strip_prefix(&[letter])?;
            }
            if left.is_empty() {
                next = start + at + letter.len_utf8();
                return Some(start..next);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, words: &str, switches: &str) -> Vec<String> {
        let has = |mark: char| switches.contains(mark);
        let query = FindQuery { text: words.to_owned(), case: has('c'), whole: has('w'), regex: has('r') };
        query
            .find(text)
            .map_or_else(|why| vec![why.to_string()], |found| found.into_iter().map(|at| text[at].to_owned()).collect())
    }

    #[test]
    fn words_and_patterns() {
        assert_eq!(found("Über über ÜBER", "über", "").len(), 3);
        assert_eq!(found("Über über ÜBER", "über", "c"), ["über"]);
        assert_eq!(found("one onerous one_", "one", "w"), ["one"]);
        assert_eq!(found("aaaa", "aa", ""), ["aa", "aa"]);
        assert_eq!(found("a1 b22\nc333", "[a-z]\\d+$", "r"), ["b22", "c333"]);
        assert_eq!(found("abc", "x*", "r").len(), 0, "nothing is no match");
        assert!(found("abc", "(", "r")[0].starts_with("Invalid pattern: "));
        assert_eq!(found("İx", "x", ""), ["x"], "a letter that is two when small");
    }

    #[test]
    fn groups_are_put_back() {
        let query = FindQuery { text: "(\\w+) (\\w+)".to_owned(), regex: true, ..FindQuery::default() };
        assert_eq!(query.replacements("one two", std::slice::from_ref(&(0..7)), "$2 $1\\n"), ["two one\n"]);
    }
}
