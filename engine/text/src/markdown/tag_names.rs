//! Which characters belong to the name of a tag.

/// Returns the name of a tag in the text that follows its `#`; empty if none does.
pub fn tag_name(rest: &str) -> &str {
    // What only changes how the `#` looks, such as in the emoji of a key, begins no name.
    if rest.starts_with(['\u{fe0e}', '\u{fe0f}', '\u{20e3}']) {
        return "";
    }
    &rest[..rest.find(|letter: char| !is_tag_char(letter)).unwrap_or(rest.len())]
}

/// Maximum distance of a `#` from the start of its HTML tag.
const MAX_HTML_TAG_BYTES: usize = 300;

/// Returns whether a `#` is in an HTML tag, where it begins a color.
pub fn is_in_html_tag(line: &str, at: usize) -> bool {
    let before = &line[line.floor_char_boundary(at.saturating_sub(MAX_HTML_TAG_BYTES))..at];
    let open = before.rfind('<').map(|open| &before[open + 1..]);
    open.is_some_and(|tag| tag.starts_with(|letter: char| letter.is_ascii_alphabetic()) && !tag.contains('>'))
}

/// Punctuation that ends a tag, beside that of ASCII. Other characters belong to it, as in Obsidian: emoji, and marks
/// that are written above and below letters.
const TAG_ENDS: [(char, char); 24] = [
    ('\u{a1}', '\u{bf}'),
    ('\u{d7}', '\u{d7}'),
    ('\u{f7}', '\u{f7}'),
    ('\u{37e}', '\u{37e}'),
    ('\u{387}', '\u{387}'),
    ('\u{55a}', '\u{55f}'),
    ('\u{589}', '\u{58a}'),
    ('\u{5be}', '\u{5be}'),
    ('\u{5c0}', '\u{5c0}'),
    ('\u{5c3}', '\u{5c3}'),
    ('\u{60c}', '\u{60d}'),
    ('\u{61b}', '\u{61f}'),
    ('\u{66a}', '\u{66d}'),
    ('\u{6d4}', '\u{6d4}'),
    ('\u{964}', '\u{965}'),
    ('\u{1361}', '\u{1368}'),
    ('\u{17d4}', '\u{17da}'),
    ('\u{2000}', '\u{206f}'),
    ('\u{2e00}', '\u{2e7f}'),
    ('\u{3000}', '\u{3003}'),
    ('\u{3008}', '\u{301f}'),
    ('\u{fe10}', '\u{fe19}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ff65}'),
];

fn is_tag_char(letter: char) -> bool {
    if letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/' | '\u{b7}') {
        return true;
    }
    let is_end = || TAG_ENDS.iter().any(|(first, last)| (*first..=*last).contains(&letter));
    !letter.is_ascii() && !letter.is_whitespace() && !letter.is_control() && !is_end()
}
