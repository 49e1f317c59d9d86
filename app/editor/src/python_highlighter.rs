//! Light highlighting of Python: keywords, strings, comments and numbers. The tokenizer is linear and stateless, so it
//! can run on every keystroke.

use std::ops::Range;

/// Kind of a highlighted token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PythonToken {
    Keyword,
    Text,
    Comment,
    Number,
    /// A name that is being defined.
    Name,
}

const PYTHON_KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "match",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Returns the highlighted tokens of code, in order.
pub(crate) fn python_tokens(code: &str) -> Vec<(Range<usize>, PythonToken)> {
    let bytes = code.as_bytes();
    let mut out: Vec<(Range<usize>, PythonToken)> = Vec::new();
    let mut at = 0;
    let mut defines = false;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'#' => {
                at = code[at..].find('\n').map_or(bytes.len(), |end| at + end);
                out.push((start..at, PythonToken::Comment));
            }
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                out.push((start..at, PythonToken::Text));
            }
            b'0'..=b'9' => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'.' | b'_')) {
                    at += 1;
                }
                out.push((start..at, PythonToken::Number));
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] >= 0x80)
                {
                    at += 1;
                }
                let word = &code[start..at];
                let prefix = word.len() <= 2 && word.bytes().all(|b| b"rRbBfFuUtT".contains(&b));
                if prefix && bytes.get(at).is_some_and(|quote| matches!(quote, b'"' | b'\'')) {
                    at = string_end(bytes, at);
                    out.push((start..at, PythonToken::Text));
                } else if std::mem::take(&mut defines) {
                    out.push((start..at, PythonToken::Name));
                } else if is_keyword(code, start, word) {
                    out.push((start..at, PythonToken::Keyword));
                    defines = matches!(word, "def" | "class");
                }
            }
            byte => {
                defines &= matches!(byte, b' ' | b'\t');
                at += 1;
            }
        }
    }
    out
}

/// Returns whether a word is a keyword. `match` and `case` are keywords only at the start of a statement; no word is
/// one after a dot.
fn is_keyword(code: &str, start: usize, word: &str) -> bool {
    if PYTHON_KEYWORDS.binary_search(&word).is_err() || code[..start].ends_with('.') {
        return false;
    }
    if !matches!(word, "match" | "case") {
        return true;
    }
    let line = code[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = code[start + word.len()..].trim_start_matches(' ');
    code[line..start].trim().is_empty() && !rest.starts_with(['=', '.', '(', ',', ')']) && rest.contains(':')
}

/// Returns the end of the string whose opening quote is at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !triple => return at,
            byte if byte == quote && !triple => return at + 1,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 3,
            _ => at += 1,
        }
    }
    // A backslash at the very end must not lead past the end or into the middle of a character.
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_out() {
        let code = "def f(x): # a\n    return rb'a\\'b' + \"\"\"c\n\"d\"\"\" if x.match else 0x1f\nmatch = 1";
        let found: Vec<(&str, PythonToken)> =
            python_tokens(code).into_iter().map(|(range, token)| (&code[range], token)).collect();
        use PythonToken::*;
        assert_eq!(
            found,
            [
                ("def", Keyword),
                ("f", Name),
                ("# a", Comment),
                ("return", Keyword),
                ("rb'a\\'b'", Text),
                ("\"\"\"c\n\"d\"\"\"", Text),
                ("if", Keyword),
                ("else", Keyword),
                ("0x1f", Number),
                ("1", Number),
            ]
        );
        assert!(PYTHON_KEYWORDS.is_sorted());
        for code in ["'\\", "\"é\\é", "'''", "#", "0é", "é'é"] {
            for (range, _) in python_tokens(code) {
                assert!(code.get(range).is_some(), "{code}");
            }
        }
    }
}
