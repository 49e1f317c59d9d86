//! What a cell printed, as plain text: terminals' codes are read and left out.

/// Text without the codes that colour it in a terminal; a line that was written over shows what it was last.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut line = 0;
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
                Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
                _ => {}
            },
            '\r' => {
                if chars.peek().is_some_and(|next| *next != '\n') {
                    out.truncate(line);
                }
            }
            '\n' => {
                out.push(c);
                line = out.len();
            }
            '\u{8}' => _ = if out.len() > line { out.pop() } else { None },
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// nbformat has text as a string or as a list of lines.
pub fn joined(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn terminals_are_read() {
        assert_eq!(plain("\u{1b}[31;1mred\u{1b}[0m\n"), "red\n");
        assert_eq!(plain("10 %\r20 %\r\nend"), "20 %\nend");
        assert_eq!(plain("ab\u{8}c\u{7}\u{1b}]0;title\u{7}!"), "ac!");
    }
}
