//! Which of an output's forms is shown: the richest that can be drawn.

use editor::output_table;
use editor::sights::Bytes;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{Output, OutputBody};
use typeset::printed::{PROGRESS, TABLE, joined};

/// A table as pandas hands it over.
const RESOURCE: &str = "application/vnd.dataresource+json";
/// Pictures that are made of pixels.
const BITMAPS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// What of an output is shown.
pub(super) enum Form<'a> {
    /// In the note's outputs, or a blob where it has much data.
    Figure,
    Table(output_table::Form, Bytes),
    Progress(&'a Value),
    /// HTML that may turn out to say no more than the text beside it.
    Html(Bytes),
    Markdown(Bytes),
    Picture {
        bytes: Bytes,
        is_svg: bool,
    },
    Tree(&'a Value),
    Text(String),
}

/// The form in which an output with data is shown.
pub(super) fn form<'a>(output: &'a Output, data: &'a Map<String, Value>) -> Form<'a> {
    if data.contains_key(plot::MIME) || output.whole.as_ref().is_some_and(|whole| whole.mime == plot::MIME) {
        return Form::Figure;
    }
    if let Some(progress) = data.get(PROGRESS) {
        return Form::Progress(progress);
    }
    for (mime, form) in [(TABLE, output_table::Form::Csv), (RESOURCE, output_table::Form::Resource)] {
        if let Some(bytes) = found(output, data, mime) {
            return Form::Table(form, bytes);
        }
    }
    if let Some(bytes) = found(output, data, "text/html") {
        return Form::Html(bytes);
    }
    plain_form(output, data)
}

/// One form of an output, wherever it is.
fn found(output: &Output, data: &Map<String, Value>, mime: &str) -> Option<Bytes> {
    match (data.get(mime), &output.whole) {
        (Some(value), _) => Some(Bytes::Here(Arc::from(joined(value)))),
        (None, Some(whole)) if whole.mime == mime => Some(Bytes::Blob(whole.blob)),
        (None, _) => None,
    }
}

/// The same, without its HTML.
pub(super) fn plain_form<'a>(output: &'a Output, data: &'a Map<String, Value>) -> Form<'a> {
    let found = |mime: &str| found(output, data, mime);
    if let Some(bytes) = found("image/svg+xml") {
        return Form::Picture { bytes, is_svg: true };
    }
    if let Some(bytes) = BITMAPS.into_iter().find_map(found) {
        return Form::Picture { bytes, is_svg: false };
    }
    if let Some(bytes) = found("text/markdown") {
        return Form::Markdown(bytes);
    }
    if let Some(latex) = data.get("text/latex") {
        return Form::Markdown(Bytes::Here(Arc::from(formula(&joined(latex)))));
    }
    if let Some(value @ (Value::Object(_) | Value::Array(_))) = data.get("application/json") {
        return Form::Tree(value);
    }
    match data.get("text/plain") {
        Some(text) => Form::Text(joined(text)),
        None => match data.iter().find(|(mime, value)| mime.ends_with("+json") && value.is_object()) {
            Some((_, value)) => Form::Tree(value),
            None => {
                let names: Vec<String> = data.keys().map(|mime| format!("[{mime}]")).collect();
                Form::Text(names.join(" "))
            }
        },
    }
}

/// The data of an output, if it has some.
pub(super) fn data(output: &Output) -> Option<&Map<String, Value>> {
    match &output.body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => Some(data),
        OutputBody::Stream { .. } | OutputBody::Error { .. } => None,
    }
}

/// LaTeX as formulas of Markdown.
fn formula(latex: &str) -> String {
    let latex = latex.trim();
    if latex.contains('$') {
        return latex.to_owned();
    }
    let bare = latex.strip_prefix("\\[").and_then(|rest| rest.strip_suffix("\\]")).unwrap_or(latex);
    format!("$${}$$", bare.trim())
}

/// Of a traceback: where it names a line of a cell (in bytes), which cell and which line.
pub(super) fn places(traceback: &str) -> Vec<(std::ops::Range<usize>, usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    // As the embedded kernel writes it: `File "cell 3", line 5`; of an earlier run the lines may be others.
    while let Some(at) = traceback[from..].find("\"cell ") {
        let start = from + at + 1;
        from = start;
        let rest = &traceback[start + 5..];
        let Some((cell, rest)) = rest.split_once("\", line ") else { break };
        let line: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let (Ok(number), Ok(place)) = (cell.parse(), line.parse()) else { continue };
        let end = start + 5 + cell.len() + "\", line ".len() + line.len();
        found.push((start..end, number, place));
        from = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{formula, places};

    #[test]
    fn tracebacks_lead_to_lines() {
        let text = "Traceback:\n  File \"cell 3\", line 12, in <module>\n  File \"cell 1 (an earlier run)\", line 2\n  \
                    File \"cell 2\", line 1";
        let found: Vec<(&str, usize, usize)> = places(text).into_iter().map(|(r, c, l)| (&text[r], c, l)).collect();
        assert_eq!(found, [("cell 3\", line 12", 3, 12), ("cell 2\", line 1", 2, 1)]);
        for odd in ["\"cell ", "\"cell x\", line ", "\"cell 1\", line 99999999999999999999999", "\"cell 1\", line é"] {
            assert!(places(odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn latex_is_set() {
        assert_eq!(formula("$x$"), "$x$");
        assert_eq!(formula("\\[ x^2 \\]"), "$$x^2$$");
        assert_eq!(formula("\\frac12"), "$$\\frac12$$");
    }
}
