//! Date formats: `strftime`, and the tokens of moment.js that Obsidian's settings and templates use.

/// Follows a number that becomes an ordinal, which `strftime` can't. It's a character for private use.
const ORDINAL_MARK: char = '\u{e0f0}';

/// Tokens of moment.js and their equivalents in `strftime`, longest first.
const MOMENT_TOKENS: &[(&str, &str)] = &[
    ("DDDo", "%-j\u{e0f0}"),
    ("YYYY", "%Y"),
    ("GGGG", "%G"),
    ("gggg", "%G"),
    ("MMMM", "%B"),
    ("dddd", "%A"),
    ("DDDD", "%j"),
    ("MMM", "%b"),
    ("ddd", "%a"),
    ("DDD", "%-j"),
    ("YY", "%y"),
    ("GG", "%g"),
    ("gg", "%g"),
    ("MM", "%m"),
    ("DD", "%d"),
    ("Do", "%-d\u{e0f0}"),
    ("Mo", "%-m\u{e0f0}"),
    ("Qo", "%q\u{e0f0}"),
    ("Wo", "%-V\u{e0f0}"),
    ("wo", "%-V\u{e0f0}"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("WW", "%V"),
    ("ww", "%V"),
    ("ZZ", "%z"),
    ("W", "%-V"),
    ("w", "%-V"),
    ("Q", "%q"),
    ("Z", "%:z"),
    ("X", "%s"),
    ("M", "%-m"),
    ("D", "%-d"),
    ("H", "%-H"),
    ("h", "%-I"),
    ("m", "%-M"),
    ("s", "%-S"),
    ("A", "%p"),
    ("a", "%P"),
    ("E", "%u"),
    ("d", "%w"),
];

/// Tokens that mark a format without `%` as one of moment.js. Formats without any of them are plain text.
const MOMENT_SIGNS: &[&str] =
    &["YY", "GGGG", "gggg", "MM", "DD", "Do", "dddd", "ddd", "HH", "hh", "mm", "ss", "WW", "ww"];

/// Returns a date format in `strftime` syntax. A format of moment.js (<https://momentjs.com/docs/#/displaying/format/>)
/// is translated, and text in brackets stays; any other is returned unchanged. What is written with it goes through
/// [`write_ordinals`].
pub fn strftime_format(format: &str) -> String {
    if format.contains('%') || !MOMENT_SIGNS.iter().any(|sign| format.contains(sign)) {
        return format.to_owned();
    }
    let (mut made, mut rest) = (String::new(), format);
    while let Some(c) = rest.chars().next() {
        if let Some((literal, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            made.push_str(literal);
            rest = behind;
        } else if let Some((token, sign)) = MOMENT_TOKENS.iter().find(|(token, _)| rest.starts_with(token)) {
            made.push_str(sign);
            rest = &rest[token.len()..];
        } else {
            made.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    made
}

/// Writes the ordinals in a date that was written with [`strftime_format`]: `1st`, `22nd`.
pub fn write_ordinals(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    for letter in written.chars() {
        if letter != ORDINAL_MARK {
            out.push(letter);
            continue;
        }
        let digit = |place: usize| out.chars().rev().nth(place).and_then(|digit| digit.to_digit(10));
        let ending = match (digit(1), digit(0)) {
            (Some(1), _) => "th",
            (_, Some(1)) => "st",
            (_, Some(2)) => "nd",
            (_, Some(3)) => "rd",
            _ => "th",
        };
        out.push_str(ending);
    }
    out
}

/// Returns a template with its placeholders filled: `{{title}}`, `{{date}}`, `{{time}}`, and formats as in
/// `{{date:%A}}`. `write_date` writes the time in a format, and returns `None` if that isn't one.
pub fn fill_template(template: &str, title: &str, write_date: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}").map(|end| start + end) else { break };
        let word = rest[start + 2..end].trim();
        let (name, format) = word.split_once(':').map_or((word, None), |(name, format)| (name, Some(format.trim())));
        let value = match (name.trim(), format) {
            ("title", None) => Some(title.to_owned()),
            ("date", format) => write_date(format.unwrap_or("%Y-%m-%d")),
            ("time", format) => write_date(format.unwrap_or("%H:%M")),
            _ => None,
        };
        out.push_str(&rest[..start]);
        // Unknown placeholders stay unchanged.
        out.push_str(value.as_deref().unwrap_or(&rest[start..end + 2]));
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{strftime_format, write_ordinals};

    #[test]
    fn formats_of_obsidian_are_translated_and_others_stay() {
        assert_eq!(strftime_format("YYYY-MM-DD"), "%Y-%m-%d");
        assert_eq!(strftime_format("YYYY/MM-MMMM/YYYY-MM-DD-dddd"), "%Y/%m-%B/%Y-%m-%d-%A");
        assert_eq!(strftime_format("dddd, MMMM Do YYYY"), "%A, %B %-d\u{e0f0} %Y");
        let written = "1\u{e0f0} 2\u{e0f0} 3\u{e0f0} 4\u{e0f0} 11\u{e0f0} 12\u{e0f0} 21\u{e0f0} 112\u{e0f0} 2024";
        assert_eq!(write_ordinals(written), "1st 2nd 3rd 4th 11th 12th 21st 112th 2024");
        assert_eq!(strftime_format("YYYY-[W]W, [Q]Q"), "%Y-W%-V, Q%q");
        assert_eq!(strftime_format("gggg-[W]ww"), "%G-W%V");
        assert_eq!(strftime_format("HH:mm:ss"), "%H:%M:%S");
        assert_eq!(strftime_format("%Y-%m-%d"), "%Y-%m-%d");
        assert_eq!(strftime_format("Journal"), "Journal");
        assert_eq!(strftime_format("[YYYY"), "[%Y");
    }
}
