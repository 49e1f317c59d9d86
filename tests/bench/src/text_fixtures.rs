//! Texts for measurements. They're the same every time, so that results of different days are comparable.

use std::fmt::Write;

const FIXTURE_WORDS: &[&str] = &[
    "the",
    "a",
    "of",
    "and",
    "to",
    "in",
    "note",
    "river",
    "measure",
    "because",
    "light",
    "every",
    "paper",
    "small",
    "between",
    "water",
    "reads",
    "under",
    "morning",
    "without",
    "question",
    "garden",
    "slowly",
    "answer",
    "window",
    "found",
    "again",
    "letter",
    "winter",
    "number",
    "carries",
    "another",
    "house",
    "silence",
    "remembers",
    "field",
    "almost",
    "written",
    "never",
    "stone",
    "although",
    "distance",
    "season",
    "through",
    "keeps",
    "table",
    "voice",
    "clear",
    "is",
    "was",
    "has",
    "with",
    "for",
    "by",
    "on",
    "it",
    "they",
    "we",
    "which",
    "that",
    "as",
    "not",
];

/// A deterministic pseudorandom number generator.
pub(super) struct FixtureRng(u64);

impl FixtureRng {
    pub(super) fn new(seed: u64) -> FixtureRng {
        FixtureRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or(0)
    }

    fn push_sentence(&mut self, text: &mut String) {
        let count = 6 + self.below(14);
        for at in 0..count {
            let word = FIXTURE_WORDS[self.below(FIXTURE_WORDS.len())];
            let mut letters = word.chars();
            match (at, letters.next()) {
                (0, Some(first)) => text.extend(first.to_uppercase().chain(letters)),
                _ => text.push_str(word),
            }
            text.push_str(if at + 1 == count { ". " } else { " " });
        }
    }

    fn push_paragraph(&mut self, text: &mut String) {
        for _ in 0..3 + self.below(4) {
            self.push_sentence(text);
        }
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
    }

    fn push_list(&mut self, text: &mut String) {
        for _ in 0..3 + self.below(4) {
            text.push_str("- ");
            self.push_sentence(text);
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push('\n');
    }
}

/// Returns a note of `length` characters with headings, paragraphs, lists and Python cells.
pub(super) fn note_of_length(length: usize) -> String {
    let mut chance = FixtureRng::new(length as u64);
    let mut text = String::with_capacity(length + 2_000);
    text.push_str("# A note to measure with\n\n");
    let mut section = 0;
    while text.len() < length {
        section += 1;
        let _ = write!(text, "## Section {section}\n\n");
        for _ in 0..2 + chance.below(3) {
            chance.push_paragraph(&mut text);
        }
        match section % 3 {
            1 => chance.push_list(&mut text),
            2 => {
                let number = chance.below(1_000);
                let _ = write!(text, "```python\nvalues = [n * {number} for n in range(10)]\nsum(values)\n```\n\n");
            }
            _ => {}
        }
    }
    // The words are ASCII, so any position is a character boundary. A truncated cell is plain text, which is fine too.
    text.truncate(length);
    text
}

/// Returns a note of `count` Markdown blocks of every kind.
pub(super) fn note_with_blocks(count: usize) -> String {
    let mut chance = FixtureRng::new(count as u64);
    let mut text = String::new();
    for number in 0..count {
        match number % 20 {
            0 => _ = write!(text, "## Section {number}\n\n"),
            5 => _ = write!(text, "```python\nvalues = [n * {number} for n in range(10)]\nsum(values)\n```\n\n"),
            9 => text.push_str("| a | b |\n|---|--:|\n| one | 1 |\n| two | 2 |\n\n"),
            12..15 => {
                text.push_str("- ");
                chance.push_sentence(&mut text);
                text.truncate(text.trim_end().len());
                text.push_str(if number % 20 == 14 { "\n\n" } else { "\n" });
            }
            17 => text.push_str("> It is **quiet** here, and `nothing` moves.\n\n"),
            _ => chance.push_paragraph(&mut text),
        }
    }
    text
}

/// Returns one paragraph of `length` bytes, split into lines.
pub(super) fn paragraph_of_length(length: usize) -> String {
    let mut chance = FixtureRng::new(5);
    let mut text = String::with_capacity(length + 200);
    while text.len() < length {
        chance.push_sentence(&mut text);
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Returns one fenced code block of `length` bytes.
pub(super) fn code_of_length(length: usize) -> String {
    let mut text = String::with_capacity(length + 200);
    text.push_str("```js\n");
    for number in 0.. {
        let _ = writeln!(text, "const value{number} = compute({number}, \"text\"); // line {number}");
        if text.len() >= length {
            break;
        }
    }
    text.push_str("```\n");
    text
}

/// Returns a note of `count` cells, of which `plots` draw a plot and the others print.
pub(super) fn note_with_cells(count: usize, plots: usize) -> String {
    let mut text = String::from("# Outputs\n\n");
    for number in 0..count {
        if number * plots / count != (number + 1) * plots / count {
            let draws = format!("plt.plot([n * (n - {number}) for n in range(100)])\nplt.show()");
            let _ = write!(text, "```python\nimport matplotlib.pyplot as plt\n{draws}\n```\n\nText.\n\n");
            continue;
        }
        let _ = write!(text, "```python\nfor n in range(12): print({number}, n, 'x' * n)\n{number}\n```\n\nText.\n\n");
    }
    text
}

/// Returns the path of the linked note with this number.
pub(super) fn linked_note_path(number: usize) -> String {
    format!("Topic {:03}/Note {number:05}.md", number / 100)
}

/// Returns one of `count` notes that link to each other.
pub(super) fn linked_note(number: usize, count: usize) -> String {
    let mut chance = FixtureRng::new(number as u64 + 1);
    let mut text = format!("---\ntags: [topic-{:03}, generated]\n---\n\n# Note {number:05}\n\n", number / 100);
    for _ in 0..1 + chance.below(3) {
        chance.push_paragraph(&mut text);
    }
    text.push_str("See also:\n\n");
    for _ in 0..2 + chance.below(4) {
        let other = chance.below(count);
        let _ = match chance.below(2) {
            0 => writeln!(text, "- [[Note {other:05}]]"),
            _ => writeln!(text, "- [Note {other:05}](<../{}>)", linked_note_path(other)),
        };
    }
    if number.is_multiple_of(10) {
        let _ = write!(text, "\n```python\nprint({number})\n```\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_every_time_and_hold_what_they_should() {
        for length in [10_000, 100_000] {
            let text = note_of_length(length);
            assert_eq!((text.len(), text.chars().count(), text == note_of_length(length)), (length, length, true));
            let survey = text::markdown::count_blocks_and_cells(&text);
            assert!(survey.cells >= 2 && survey.blocks > 8, "{survey:?}");
        }
        assert_eq!(linked_note(3, 50), linked_note(3, 50));
        assert_ne!(linked_note(3, 50), linked_note(4, 50));
        assert!(linked_note(7, 50).contains("Note 000"));
    }
}
