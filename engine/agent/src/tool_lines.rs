//! Lines of a text that a tool call asks for.

use serde_json::{Map, Value};

/// Number of lines if a call names only the first one.
const DEFAULT_LINES: usize = 2_000;

/// A text has no line of this number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file has {lines} lines, none of that number")]
pub struct MissingLineError {
    lines: usize,
}

/// Returns the first line that a call asks for, from 1, and the number of lines; `None` for all of them.
pub fn requested_lines(arguments: &Map<String, Value>) -> Option<(usize, usize)> {
    let number = |key: &str| arguments.get(key)?.as_u64().and_then(|number| usize::try_from(number).ok());
    let count = number("lines");
    let first = number("from_line").or(count.map(|_| 1))?;
    Some((first, count.unwrap_or(DEFAULT_LINES)))
}

/// Returns these lines of a text, counted from 1. There may be fewer of them, or none.
pub fn line_range(text: &str, lines: Option<(usize, usize)>) -> String {
    match lines {
        None => text.to_owned(),
        Some((from, count)) => text.split_inclusive('\n').skip(from.saturating_sub(1)).take(count).collect(),
    }
}

/// Returns these lines of a text, counted from 1.
///
/// # Errors
/// Returns an error if the text doesn't have the first of them.
pub fn select_lines(text: &str, lines: Option<(usize, usize)>) -> Result<&str, MissingLineError> {
    let Some((first, count)) = lines else { return Ok(text) };
    let first = first.max(1);
    let starts: Vec<usize> =
        text.split_inclusive('\n').scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
    let start = *starts.get(first - 1).ok_or(MissingLineError { lines: starts.len() })?;
    let end = starts.get((first - 1).saturating_add(count)).copied().unwrap_or(text.len());
    Ok(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_counted_from_one() {
        let asked = |arguments: Value| requested_lines(arguments.as_object().expect("an object"));
        assert_eq!(asked(json!({"path": "a.md"})), None);
        assert_eq!(asked(json!({"from_line": 3})), Some((3, DEFAULT_LINES)));
        assert_eq!(asked(json!({"lines": 2})), Some((1, 2)));
        let text = "one\ntwo\nthree";
        for (lines, part) in
            [(Some((1, 1)), "one\n"), (Some((0, 2)), "one\ntwo\n"), (Some((3, 9)), "three"), (None, text)]
        {
            assert_eq!(select_lines(text, lines), Ok(part));
            assert_eq!(line_range(text, lines), part);
        }
        let why = select_lines(text, Some((4, 1))).expect_err("there are three");
        assert_eq!(why.to_string(), "the file has 3 lines, none of that number");
    }
}
