//! Words of commands that messages suggest.

/// Returns a word as a shell takes it, so that a suggested command can be pasted.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = word.chars().all(|letter| letter.is_alphanumeric() || "-_./:@~".contains(letter));
    if is_plain && !word.is_empty() { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
