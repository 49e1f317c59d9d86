//! The only entry point for parsing Markdown: limits how deep quotes and lists nest, and contains a parser's panic to
//! this text.

use pulldown_cmark::{Options, Parser};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Maximum nesting depth of quotes and lists. The cost of each line grows with the number of them around it.
const MAX_CONTAINER_DEPTH: usize = 100;

/// Reason why a text is shown as plain text: a clause for a sentence that names the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkdownLimitError {
    /// Quotes and lists nest too deep.
    #[error("its quotes and lists nest more than {MAX_CONTAINER_DEPTH} levels deep, line {line}")]
    NestedTooDeep {
        /// Line, from 1, on which the limit is exceeded.
        line: usize,
    },
    /// The parser panicked.
    #[error("the Markdown reader fails on it")]
    ReaderPanicked,
}

/// Parses a text within the limits and calls `read` with the parser.
///
/// # Errors
/// Returns an error if quotes and lists nest too deep, or the parser panics. The text is then shown as plain text.
pub fn parse<'a, R>(
    text: &'a str,
    options: Options,
    read: impl FnOnce(Parser<'a>) -> R,
) -> Result<R, MarkdownLimitError> {
    let has_front = options.contains(Options::ENABLE_YAML_STYLE_METADATA_BLOCKS);
    // YAML has its own limits.
    let front = crate::outline::front_matter_range(text).filter(|_| has_front);
    check_from(text, front.map_or(0, |front| front.end))?;
    catch_unwind(AssertUnwindSafe(|| read(Parser::new_ext(text, options))))
        .map_err(|_| MarkdownLimitError::ReaderPanicked)
}

/// Checks whether a text is within the limits. Only markers at the starts of lines are checked, and levels are never
/// undercounted: markers in code count, too.
///
/// # Errors
/// Returns an error if quotes and lists nest too deep.
pub fn check(text: &str) -> Result<(), MarkdownLimitError> {
    check_from(text, 0)
}

/// Checks a text from a byte on, which must begin a line.
fn check_from(text: &str, from: usize) -> Result<(), MarkdownLimitError> {
    // Columns of the markers that may be open.
    let mut open: Vec<usize> = Vec::new();
    let before = text[..from].matches('\n').count();
    let lines = text[from..].split('\n').zip(before + 1..);
    for (line, number) in lines.flat_map(|(line, number)| line.split('\r').map(move |line| (line, number))) {
        let (mut rest, mut column) = (line, 0);
        loop {
            let body = rest.trim_start_matches([' ', '\t']);
            for blank in rest[..rest.len() - body.len()].bytes() {
                column = if blank == b'\t' { (column / 4 + 1) * 4 } else { column + 1 };
            }
            let Some(length) = marker_length(body) else { break };
            while open.last().is_some_and(|last| *last >= column) {
                open.pop();
            }
            open.push(column);
            if open.len() > MAX_CONTAINER_DEPTH {
                return Err(MarkdownLimitError::NestedTooDeep { line: number });
            }
            column += length;
            rest = &body[length..];
        }
    }
    Ok(())
}

/// Returns the length of the quote, item or footnote marker at the start of a text.
fn marker_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let ends = |at: usize| bytes.get(at).is_none_or(|next| matches!(next, b' ' | b'\t'));
    match bytes.first()? {
        b'>' => Some(1),
        b'-' | b'+' | b'*' => ends(1).then_some(1),
        b'0'..=b'9' => {
            let digits = bytes.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
            (matches!(bytes.get(digits), Some(b'.' | b')')) && ends(digits + 1)).then_some(digits + 1)
        }
        b'[' if bytes.get(1) == Some(&b'^') => text.find("]:").map(|at| at + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_limited() {
        for mark in ["> ", ">", "- ", "* ", "1. ", "12) ", "+\t", "> - ", "[^a]: ", ">1. "] {
            assert!(check(&mark.repeat(MAX_CONTAINER_DEPTH + 1)).is_err(), "{mark}");
            assert!(check(&format!("a\n\n{}x\n", mark.repeat(45))).is_ok(), "{mark}");
        }
        let list = |depth: usize| (0..depth).map(|depth| format!("{}- a\n", "  ".repeat(depth))).collect::<String>();
        assert!(check(&list(MAX_CONTAINER_DEPTH)).is_ok());
        assert_eq!(
            check(&list(MAX_CONTAINER_DEPTH + 1)).map_err(|why| why.to_string()),
            Err("its quotes and lists nest more than 100 levels deep, line 101".to_owned())
        );
        // The same column isn't another level.
        assert!(check(&"- a\n  - b\n".repeat(10_000)).is_ok());
        assert!(check(&"> a\n".repeat(10_000)).is_ok());
        for rule in ["- - - -", "* * *", "---", "-a", "1.a", "1234567890. a", "[^a]"] {
            assert!(check(&format!("{rule}\n").repeat(200)).is_ok(), "{rule}");
        }
    }

    #[test]
    fn a_parser_that_panics_fails_alone() {
        let read = parse("a", Options::empty(), |_| -> usize { panic!("on purpose") });
        assert_eq!(read, Err(MarkdownLimitError::ReaderPanicked));
        assert_eq!(parse("a", Options::empty(), |parser| parser.count()), Ok(3));
    }
}
