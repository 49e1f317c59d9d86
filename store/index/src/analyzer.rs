//! Splits text into words for the index and for queries, so that both match.
//!
//! Words are Unicode letters and digits in lower case with accents folded. Identifiers are emitted whole and in parts,
//! scripts without spaces (Chinese, Thai) and Korean in pairs of characters, emoji one by one. Words also have stems,
//! by the language of their text.

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
    // The end of the last character of a script without spaces.
    let mut unspaced_end = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_unspaced(c) || is_emoji(c) {
            if let Some(from) = start.take() {
                push_word(text, from..at, &mut position, &mut out);
            }
            let end = if is_emoji(c) { emoji_end(text, at) } else { character_end(text, at) };
            let follows = unspaced_end == Some(at);
            unspaced_end = Some(end).filter(|_| is_unspaced(c));
            let next = text[end..].chars().next().filter(|next| is_unspaced(c) && is_unspaced(*next));
            // Pairs overlap; a single character is a word.
            if next.is_some() || !follows {
                let range = at..next.map_or(end, |_| character_end(text, end));
                out.push(TextWord { text: fold_text(&text[range.clone()]), position, range, whole: false });
                position += 1;
            }
            while chars.next_if(|(at, _)| *at < end).is_some() {}
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

/// Splits text into words in order, plus each character of the scripts that are split into pairs: a query for one
/// matches every word that contains it.
pub fn split_words_and_characters(text: &str) -> Vec<TextWord> {
    let mut out: Vec<TextWord> = Vec::new();
    let mut seen = 0;
    for word in split_words(text) {
        let (position, range) = (word.position, word.range.clone());
        let pair = text[range.clone()].chars().filter(|c| is_unspaced(*c)).count() == 2;
        out.push(word);
        if !pair {
            continue;
        }
        let middle = character_end(text, range.start);
        for (range, place) in [range.start..middle, middle..range.end].into_iter().zip(position..) {
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
    let plain = text.nfkd().filter(|c| !is_accent(*c) && !matches!(c, '\'' | '\u{2019}'));
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
            c if is_accent(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Whether a character belongs to a script written without spaces, or to Korean, whose words take endings. Marks don't
/// count: they belong to the character before them.
fn is_unspaced(c: char) -> bool {
    let is_cjk = matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x323AF);
    (is_cjk || (is_southeast_asian(c) && c.is_alphabetic())) && !is_combining_mark(c)
}

/// Whether a character belongs to Thai, Lao, Myanmar or Khmer.
fn is_southeast_asian(c: char) -> bool {
    matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F)
}

/// Whether a mark is folded away. The marks of Southeast Asian scripts are vowels and tones, and tell words apart.
fn is_accent(c: char) -> bool {
    is_combining_mark(c) && !is_southeast_asian(c)
}

/// Whether a symbol is a word of its own. Tones of skin aren't.
fn is_emoji(c: char) -> bool {
    let is_symbol = matches!(u32::from(c), 0x231A..=0x231B | 0x23E9..=0x23FA | 0x2600..=0x27BF | 0x2B50 | 0x2B55
        | 0x1F1E6..=0x1F1FF | 0x1F300..=0x1F3FA | 0x1F400..=0x1FAFF);
    is_symbol && !c.is_alphanumeric()
}

/// Returns the end of the emoji at a place, with its marks. Two regional indicators are a flag.
fn emoji_end(text: &str, at: usize) -> usize {
    let is_indicator = |c: &char| matches!(c, '\u{1F1E6}'..='\u{1F1FF}');
    let flag: usize = text[at..].chars().take(2).take_while(is_indicator).map(char::len_utf8).sum();
    character_end(text, at).max(at + flag)
}

/// Returns the end of the character at a place, with its marks.
fn character_end(text: &str, at: usize) -> usize {
    let next = text[at..].char_indices().skip(1).find(|(_, c)| !is_combining_mark(*c));
    next.map_or(text.len(), |(length, _)| at + length)
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
    fn thai_is_split_into_pairs_and_emoji_are_words() {
        // Vowel signs belong to their consonants, and aren't folded away.
        assert_eq!(said("กรุงเทพ 12"), "0กรุ 1รุง 2งเ 3เท 4ทพ 512");
        assert_eq!(said("ship🚀now ❤\u{fe0f}"), "0ship 1🚀 2now 3❤");
        assert_eq!(said("👍🏽 🇩🇪🇫🇷"), "0👍 1🇩🇪 2🇫🇷");
        let singles: Vec<String> = split_words_and_characters("ดีมา").into_iter().map(|word| word.text).collect();
        assert_eq!(singles, ["ดีม", "ดี", "ม", "มา", "า"]);
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
