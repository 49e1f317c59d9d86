//! Formatting of texts, numbers and paths in the window.

use std::path::PathBuf;

/// Formats a number of bytes in bytes, kB or MB, each 1,000 times the one before: `1.5 kB`.
#[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
pub fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Capitalizes a rejection's first letter, so that it can be a sentence.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns an absolute path, with a leading `~` expanded; `None` if the path is relative.
pub fn absolute(path: &str) -> Option<PathBuf> {
    let path = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            std::env::home_dir()?.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    };
    // `/a/b/` and `/a/b` are the same folder.
    path.is_absolute().then(|| path.components().collect())
}

/// Formats a number with narrow no-break spaces between thousands.
pub fn format_thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with a noun whose plural adds an s: `1 note`, `2 notes`.
pub fn counted(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", format_thousands(number), if number == 1 { "" } else { "s" })
}

/// Returns a note's display name, without the extension.
pub fn shown_name(file: &str) -> &str {
    let short = file.strip_suffix(".md").or_else(|| file.strip_suffix(".markdown"));
    short.filter(|short| !short.is_empty()).unwrap_or(file)
}
