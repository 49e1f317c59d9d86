//! File names made from goals.

/// Words that [`slug`] leaves out, because they say little about the topic.
const SLUG_STOP_WORDS: [&str; 10] = ["the", "a", "an", "of", "for", "and", "to", "in", "please", "with"];

/// Returns a file name made from the first words of a text, such as `write_the_report`.
pub fn slug(text: &str) -> String {
    let plain: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    let words: Vec<&str> = plain.split_whitespace().filter(|word| !SLUG_STOP_WORDS.contains(word)).take(4).collect();
    let name: String = words.join("_").chars().take(40).collect();
    if name.is_empty() { "project".to_owned() } else { name }
}
