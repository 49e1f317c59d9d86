//! Splits text into words for the index and for queries, so that both match.
//!
//! Words are Unicode letters and digits in lower case with accents folded. Identifiers are emitted whole and in parts,
//! Chinese, Japanese and Korean in pairs of characters. Words also have stems, by the language of their text.

use crate::language::{LanguageStemmer, StemLanguage};
use std::ops::Range;
use tantivy::tokenizer::{PreTokenizedString, Token, TokenStream, Tokenizer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Longer words are truncated to this many characters.
const MAX_WORD_CHARS: usize = 64;
/// What French, Italian and Catalan write with an apostrophe before another word.
const ELISIONS: [&str; 25] = [
    "l", "d", "j", "m", "n", "s", "t", "c", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu", "un", "all", "dall", "dell",
    "nell", "sull", "quest", "quell", "gl", "dagl", "degl", "negl",
];

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextWord {
    /// The word, folded for comparison: lower case, without accents.
    pub text: String,
    /// Position of the word in the text, in words. An identifier has the position of its first part.
    pub position: usize,
    /// Range of the word in the text, in bytes.
    pub range: Range<usize>,
    /// Whether it's a whole identifier, or two words with an apostrophe (`l'index`), whose parts follow as separate
    /// words.
    pub whole: bool,
}

/// Splits a text into words, in order.
pub fn split_words(text: &str) -> Vec<TextWord> {
    let mut out = Vec::new();
    let mut position = 0;
    let mut start: Option<usize> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_cjk(c) {
            if let Some(from) = start.take() {
                push_word(text, from..at, &mut position, &mut out);
            }
            let next = chars.peek().filter(|(_, next)| is_cjk(*next)).map(|(at, next)| at + next.len_utf8());
            let before = text[..at].chars().next_back().is_some_and(is_cjk);
            // Pairs overlap; a single character is a word.
            if next.is_some() || !before {
                let range = at..next.unwrap_or(at + c.len_utf8());
                out.push(TextWord { text: fold_text(&text[range.clone()]), position, range, whole: false });
                position += 1;
            }
        } else if c.is_alphanumeric() || c == '_' || is_combining_mark(c) {
            start.get_or_insert(at);
        } else if let Some(from) = start {
            let joins = matches!(c, '\'' | '\u{2019}') && chars.peek().is_some_and(|(_, next)| next.is_alphabetic());
            if !joins {
                push_word(text, from..at, &mut position, &mut out);
                start = None;
            }
        }
    }
    if let Some(from) = start {
        push_word(text, from..text.len(), &mut position, &mut out);
    }
    out
}

/// Splits text into words in order, plus each Chinese, Japanese or Korean character: a query for one matches every word
/// that contains it.
pub fn split_words_and_characters(text: &str) -> Vec<TextWord> {
    let mut out: Vec<TextWord> = Vec::new();
    let mut seen = 0;
    for word in split_words(text) {
        let (position, range) = (word.position, word.range.clone());
        let pair = text[range.clone()].chars().take(2).filter(|c| is_cjk(*c)).count() == 2;
        out.push(word);
        if !pair {
            continue;
        }
        for ((at, c), place) in text[range.clone()].char_indices().zip(position..) {
            let range = range.start + at..range.start + at + c.len_utf8();
            // Pairs overlap.
            if range.start >= seen {
                seen = range.end;
                out.push(TextWord { text: fold_text(&text[range.clone()]), position: place, range, whole: false });
            }
        }
    }
    out
}

fn push_word(text: &str, range: Range<usize>, position: &mut usize, out: &mut Vec<TextWord>) {
    let source = &text[range.clone()];
    let parts = elision_parts(source).map_or_else(|| identifier_parts(source), Vec::from);
    let whole = parts.len() > 1;
    let folded = fold_text(source);
    if folded.is_empty() {
        return;
    }
    if !folded.bytes().all(|byte| byte == b'_') {
        out.push(TextWord { text: folded, position: *position, range: range.clone(), whole });
    }
    if whole {
        let begun = *position;
        for part in parts {
            let text = fold_text(&source[part.clone()]);
            if text.is_empty() {
                continue; // marks that belong to no letter
            }
            let range = range.start + part.start..range.start + part.end;
            out.push(TextWord { text, position: *position, range, whole: false });
            *position += 1;
        }
        *position = (*position).max(begun + 1);
    } else {
        *position += 1;
    }
}

/// Returns the ranges of the two words in `l'index` or `dell'indice`.
fn elision_parts(word: &str) -> Option<[Range<usize>; 2]> {
    let (at, mark) = word.char_indices().find(|(_, c)| matches!(c, '\'' | '\u{2019}'))?;
    let (before, after) = (&word[..at], at + mark.len_utf8());
    let is_elision = ELISIONS.iter().any(|elision| before.eq_ignore_ascii_case(elision));
    (is_elision && word[after..].chars().nth(1).is_some()).then_some([0..at, after..word.len()])
}

/// Returns the ranges of an identifier's parts, for `snake_case`, `camelCase` and `HTTPServer`.
fn identifier_parts(word: &str) -> Vec<Range<usize>> {
    let chars: Vec<(usize, char)> = word.char_indices().take(4 * MAX_WORD_CHARS).collect();
    let mut found = Vec::new();
    let mut start: Option<usize> = None;
    for (place, (at, c)) in chars.iter().enumerate() {
        if *c == '_' {
            found.extend(start.take().map(|start| start..*at));
            continue;
        }
        let before = place.checked_sub(1).map(|place| chars[place].1);
        let after = chars.get(place + 1).map(|(_, c)| *c);
        let hump = before.is_some_and(char::is_lowercase) && c.is_uppercase();
        let ends_shout =
            before.is_some_and(char::is_uppercase) && c.is_uppercase() && after.is_some_and(char::is_lowercase);
        if (hump || ends_shout)
            && let Some(begun) = start
        {
            found.push(begun..*at);
            start = Some(*at);
        }
        start.get_or_insert(*at);
    }
    found.extend(start.map(|start| start..word.len()));
    found
}

/// Folds a text for comparison: lower case, without accents and apostrophes.
pub fn fold_text(text: &str) -> String {
    let text = text.strip_suffix("'s").or_else(|| text.strip_suffix("\u{2019}s")).unwrap_or(text);
    if text.is_ascii() {
        return text.chars().filter(|c| *c != '\'').take(MAX_WORD_CHARS).map(|c| c.to_ascii_lowercase()).collect();
    }
    let plain = text.nfkd().filter(|c| !is_combining_mark(*c) && !matches!(c, '\'' | '\u{2019}'));
    let mut out = String::new();
    for c in plain.take(MAX_WORD_CHARS).flat_map(char::to_lowercase) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'đ' | 'ð' => out.push('d'),
            'ł' => out.push('l'),
            'ı' => out.push('i'),
            'þ' => out.push_str("th"),
            c if is_combining_mark(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Whether a character belongs to a script written without spaces, or to Korean, whose words take endings. The voicing
/// marks of kana don't count.
fn is_cjk(c: char) -> bool {
    let script = matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x323AF);
    script && !is_combining_mark(c)
}

/// Returns a text as the index keeps it in the field of stems, by the text's language.
pub(crate) fn stemmed_text(text: &str, language: StemLanguage) -> PreTokenizedString {
    let stemmer = language.stemmer();
    let token = |word: TextWord| Token {
        offset_from: word.range.start,
        offset_to: word.range.end,
        position: word.position,
        text: stemmer.stem_term(&text[word.range]),
        position_length: 1,
    };
    let tokens = split_words_and_characters(text).into_iter().map(token).collect();
    // The text of the field isn't stored.
    PreTokenizedString { text: String::new(), tokens }
}

/// Returns the words of a text with their stems as terms of the index.
pub(crate) fn stem_words(text: &str, stemmer: &LanguageStemmer) -> Vec<(String, TextWord)> {
    let words = split_words_and_characters(text).into_iter();
    words.map(|word| (stemmer.stem_term(&text[word.range.clone()]), word)).collect()
}

/// Adapter that makes the analyzer a tantivy tokenizer.
#[derive(Clone)]
pub(crate) struct WordAnalyzer;

impl Tokenizer for WordAnalyzer {
    type TokenStream<'a> = WordTokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordTokens {
        let token = |word: TextWord| Token {
            offset_from: word.range.start,
            offset_to: word.range.end,
            position: word.position,
            text: word.text,
            position_length: 1,
        };
        let tokens: Vec<Token> = split_words(text).into_iter().map(token).collect();
        WordTokens { tokens: tokens.into_iter(), token: Token::default() }
    }
}

/// The token stream that passes words to the index.
pub(crate) struct WordTokens {
    tokens: std::vec::IntoIter<Token>,
    token: Token,
}

impl TokenStream for WordTokens {
    fn advance(&mut self) -> bool {
        match self.tokens.next() {
            Some(token) => {
                self.token = token;
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(text: &str) -> String {
        split_words(text).iter().map(|word| format!("{}{}", word.position, word.text)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_folded_and_identifiers_split() {
        assert_eq!(said("Crème brûlée, Straße!"), "0creme 1brulee 2strasse");
        assert_eq!(said("don't Newton's"), "0dont 1newton");
        assert_eq!(said("readFile HTTPServer x"), "0readfile 0read 1file 2httpserver 2http 3server 4x");
        assert_eq!(said("snake_case __init__ _"), "0snake_case 0snake 1case 2__init__");
        assert_eq!(said("ERR_0x1F v1.2"), "0err_0x1f 0err 10x1f 2v1 32");
        assert_eq!(said("東京都 a 日"), "0東京 1京都 2a 3日");
        assert_eq!(
            said("l'index Dell\u{2019}indice o'clock l'a"),
            "0lindex 0l 1index 2dellindice 2dell 3indice 4oclock 5la"
        );
        assert_eq!(said(""), "");
    }

    #[test]
    fn characters_stand_beside_their_pairs() {
        let said: Vec<String> = split_words_and_characters("東京都 a 日").into_iter().map(|word| word.text).collect();
        assert_eq!(said, ["東京", "東", "京", "京都", "都", "a", "日"]);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_ranges_hold(text in "\\PC{0,60}") {
            let mut last = 0;
            for word in split_words(&text) {
                prop_assert!(text.get(word.range.clone()).is_some());
                prop_assert!(word.position >= last);
                prop_assert!(!word.text.is_empty());
                last = word.position;
            }
            let mut last = 0;
            for word in split_words_and_characters(&text) {
                prop_assert!(text.get(word.range.clone()).is_some() && word.range.start >= last);
                last = word.range.start;
            }
        }
    }
}
