//! Makes untrusted text safe to show: control, direction and invisible characters become visible escapes. Text from a
//! model, a file, a peer or a tool passes through here before a terminal or the window shows it.

use std::borrow::Cow;

/// How an unsafe character is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapeForm {
    /// For people, such as `␛` or `\u{202e}`.
    Visible,
    /// For programs that read JSON: `\u202e` inside a string means the same character.
    Json,
}

/// Escapes untrusted text inside one line, such as a title or a file name: line breaks and tabs become visible, too.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    replace_unsafe(text, |c| c == '\n' || c == '\t' || is_unsafe_char(c))
}

/// Escapes untrusted text that may have several lines: line feeds and tabs are kept.
pub fn escape_block(text: &str) -> Cow<'_, str> {
    replace_unsafe(text, is_unsafe_char)
}

/// Escapes a piece of a longer text that may have several lines, in either form.
pub fn escape_as(text: &str, form: EscapeForm) -> Cow<'_, str> {
    match form {
        EscapeForm::Visible => escape_block(text),
        EscapeForm::Json if text.chars().any(is_unsafe_char) => {
            let mut safe = String::with_capacity(text.len() + 16);
            for c in text.chars() {
                // A carriage return can only be outside of strings, because JSON escapes it inside them.
                if is_unsafe_char(c) && c != '\r' {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
                } else {
                    safe.push(c);
                }
            }
            Cow::Owned(safe)
        }
        EscapeForm::Json => Cow::Borrowed(text),
    }
}

/// Escapes a program's output for a terminal: colors are kept, every other control sequence becomes visible.
pub fn escape_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find("\u{1b}[") {
        safe.push_str(&escape_block(&rest[..at]));
        let behind = &rest[at + 2..];
        let end = behind.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(behind.len());
        // Conceal (8) would hide text.
        let plain = behind[..end].split(';').all(|number| number.parse::<u8>().is_ok_and(|number| number != 8));
        if behind[end..].starts_with('m') && (plain || end == 0) {
            safe.push_str(&rest[at..at + 2 + end + 1]);
            rest = &behind[end + 1..];
            any = true;
        } else {
            safe.push_str("␛[");
            rest = behind;
        }
    }
    safe.push_str(&escape_block(rest));
    if any {
        safe.push_str("\u{1b}[0m");
    }
    safe
}

fn replace_unsafe(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Fast path: almost all text is plain.
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || !text.chars().any(&hides) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\r' if next == Some('\n') && !hides('\n') => {} // a line that ends as on Windows
            _ if !hides(c) || is_joining(before, c, next) => safe.push(c),
            '\0'..='\u{1f}' => safe.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => safe.push('␡'),
            _ => safe.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
        before = Some(c);
    }
    Cow::Owned(safe)
}

/// Returns whether an invisible character joins its neighbors: in emoji, and in scripts with ligatures.
fn is_joining(before: Option<char>, c: char, next: Option<char>) -> bool {
    let script = |c: char| matches!(c, '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{900}'..='\u{dff}');
    let picture = |c: char| matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}');
    let both = |fits: &dyn Fn(char) -> bool| before.is_some_and(fits) && next.is_some_and(fits);
    match c {
        '\u{200c}' => both(&script),
        '\u{200d}' => both(&script) || both(&picture),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|c| picture(c) || matches!(c, '0'..='9' | '#' | '*' | '©' | '®')),
        _ => false,
    }
}

/// Returns whether an invisible character can change how the text around it is read.
pub fn is_unsafe_char(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => false,
        _ => matches!(c,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' // controls
            | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}' // nothing to see
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' // width, lines, direction
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'), // tags and selectors, which carry hidden text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_hides_becomes_visible() {
        for (text, safe) in [
            ("plain — ünïcode 日本", "plain — ünïcode 日本"),
            ("\u{1b}[2J\u{1b}]0;x\u{7}", "␛[2J␛]0;x␇"),
            ("ok\rbad", "ok␍bad"),
            ("a\r\nb\tc", "a\nb\tc"),
            ("rm\u{202e}dm.txt", "rm\\u{202e}dm.txt"),
            ("a\u{200b}b\u{2066}c\u{2028}d\u{9b}e\u{7f}", "a\\u{200b}b\\u{2066}c\\u{2028}d\\u{9b}e␡"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            ("👩\u{200d}💻 ❤\u{fe0f}", "👩\u{200d}💻 ❤\u{fe0f}"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            assert_eq!(escape_block(text), safe, "{text:?}");
        }
        assert_eq!(escape_line("a\nb\tc\r\n"), "a␊b␉c␍␊");
    }

    #[test]
    fn colours_stay_and_nothing_else_does() {
        assert_eq!(escape_terminal("\u{1b}[31;1mred\u{1b}[m"), "\u{1b}[31;1mred\u{1b}[m\u{1b}[0m");
        assert_eq!(escape_terminal("\u{1b}[8mhidden\u{1b}[2J\u{1b}[?25l\u{1b}[31"), "␛[8mhidden␛[2J␛[?25l␛[31");
        assert_eq!(escape_terminal("plain"), "plain");
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_left(text in any::<String>()) {
            // Only characters that join emoji and letters may stay.
            let kept = |c: char| !is_unsafe_char(c) || matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
            prop_assert!(escape_block(&text).chars().all(kept));
            prop_assert!(escape_line(&text).chars().all(|c| kept(c) && c != '\n' && c != '\t'));
            let json = serde_json::to_string(&text).expect("written");
            let safe = escape_as(&json, EscapeForm::Json);
            prop_assert!(safe.chars().all(|c| !is_unsafe_char(c)));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).expect("read"), text);
        }
    }
}
