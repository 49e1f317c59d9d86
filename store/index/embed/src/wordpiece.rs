//! WordPiece tokenization as in BERT's uncased models: text is cleaned, CJK characters are separated, case and accents
//! are removed, and punctuation is separated. Each word is then split greedily into the longest known pieces.

use std::collections::HashMap;
use unicode_general_category::{GeneralCategory as Category, get_general_category as category};
use unicode_normalization::UnicodeNormalization;

/// Longer words are treated as unknown.
const MAX_WORDPIECE_CHARS: usize = 100;

pub(crate) struct WordPiece {
    vocabulary: HashMap<&'static str, i32>,
    start: i32,
    end: i32,
    unknown: i32,
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2CEAF
        | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

fn is_punctuation(c: char) -> bool {
    use Category::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation, OpenPunctuation,
        OtherPunctuation,
    };
    c.is_ascii_punctuation()
        || matches!(
            category(c),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

fn is_dropped(c: char) -> bool {
    use Category::{Control, Format, PrivateUse, Surrogate, Unassigned};
    c == '\u{fffd}' || matches!(category(c), Control | Format | PrivateUse | Surrogate | Unassigned)
}

impl WordPiece {
    pub(crate) fn new(vocabulary: &'static str) -> Option<WordPiece> {
        let numbered = vocabulary.lines().zip(0_i32..);
        let vocabulary: HashMap<&str, i32> = numbered.collect();
        let known = |word: &str| vocabulary.get(word).copied();
        let (start, end, unknown) = (known("[CLS]")?, known("[SEP]")?, known("[UNK]")?);
        Some(WordPiece { vocabulary, start, end, unknown })
    }

    /// Returns the token ids of a text, at most `longest` including the start and end tokens.
    pub(crate) fn encode(&self, text: &str, longest: usize) -> Vec<i32> {
        let mut ids = vec![self.start];
        let plain = text.chars().flat_map(|c| {
            let space = c.is_whitespace();
            let cjk = is_cjk(c);
            let shown = if space { Some(' ') } else { Some(c).filter(|c| !is_dropped(*c)) };
            let gap = Some(' ').filter(|_| cjk);
            gap.into_iter().chain(shown).chain(gap)
        });
        let plain = plain.nfd().filter(|c| category(*c) != Category::NonspacingMark).flat_map(char::to_lowercase);
        let mut word = String::new();
        for c in plain {
            if ids.len() >= longest {
                break;
            }
            if c.is_whitespace() {
                self.push_pieces(&mut word, &mut ids);
            } else if is_punctuation(c) {
                self.push_pieces(&mut word, &mut ids);
                word.push(c);
                self.push_pieces(&mut word, &mut ids);
            } else if word.len() <= 4 * MAX_WORDPIECE_CHARS {
                word.push(c);
            }
        }
        self.push_pieces(&mut word, &mut ids);
        ids.truncate(longest - 1);
        ids.push(self.end);
        ids
    }

    fn push_pieces(&self, word: &mut String, ids: &mut Vec<i32>) {
        let text = std::mem::take(word);
        if text.is_empty() {
            return;
        }
        if text.chars().count() > MAX_WORDPIECE_CHARS {
            ids.push(self.unknown);
            return;
        }
        let begun = ids.len();
        let mut from = 0;
        let mut piece = String::new();
        while from < text.len() {
            let ends = text[from..].char_indices().map(|(at, c)| from + at + c.len_utf8()).rev();
            let found = ends.into_iter().find_map(|end| {
                piece.clear();
                piece.push_str(if from > 0 { "##" } else { "" });
                piece.push_str(&text[from..end]);
                self.vocabulary.get(piece.as_str()).map(|id| (*id, end))
            });
            let Some((id, end)) = found else {
                ids.truncate(begun);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_pieces() {
        let words = WordPiece::new("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncafe\nun\n##able\n!\n日\n本").expect("a vocabulary");
        assert_eq!(words.encode("Café unable! 日本 xyz", 99), [2, 4, 5, 6, 7, 8, 9, 1, 3]);
        assert_eq!(words.encode("un un un un", 4), [2, 5, 5, 3]);
        assert_eq!(words.encode("", 4), [2, 3]);
    }
}
