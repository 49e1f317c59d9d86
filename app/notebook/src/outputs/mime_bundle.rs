//! Selects the format of an output to show: the richest that can be drawn.

use editor::assets::AssetBytes;
use editor::output_table;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{CellOutput, OutputBody};
use typeset::ansi::{CSV_MIME, PROGRESS_MIME_TYPE, multiline_text};

/// A table in the format that pandas emits.
const DATA_RESOURCE_MIME: &str = "application/vnd.dataresource+json";
/// Bitmap image types.
const BITMAP_MIME_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// The format in which an output is shown.
pub(super) enum OutputForm<'a> {
    /// A figure, in the note's outputs, or in a blob if it's large.
    Figure,
    Table(output_table::TableFormat, AssetBytes),
    Progress(&'a Value),
    /// HTML that may have no more content than the text.
    Html(AssetBytes),
    Markdown(AssetBytes),
    Picture {
        bytes: AssetBytes,
        is_svg: bool,
    },
    Tree(&'a Value),
    Text(String),
}

/// Returns the format in which an output with data is shown.
pub(super) fn output_form<'a>(output: &'a CellOutput, data: &'a Map<String, Value>) -> OutputForm<'a> {
    if data.contains_key(plot::FIGURE_MIME)
        || output.whole.as_ref().is_some_and(|whole| whole.mime == plot::FIGURE_MIME)
    {
        return OutputForm::Figure;
    }
    if let Some(progress) = data.get(PROGRESS_MIME_TYPE) {
        return OutputForm::Progress(progress);
    }
    for (mime, form) in
        [(CSV_MIME, output_table::TableFormat::Csv), (DATA_RESOURCE_MIME, output_table::TableFormat::Resource)]
    {
        if let Some(bytes) = found(output, data, mime) {
            return OutputForm::Table(form, bytes);
        }
    }
    if let Some(bytes) = found(output, data, "text/html") {
        return OutputForm::Html(bytes);
    }
    plain_form(output, data)
}

/// Returns the data of one format, from the output or its blob.
fn found(output: &CellOutput, data: &Map<String, Value>, mime: &str) -> Option<AssetBytes> {
    match (data.get(mime), &output.whole) {
        (Some(value), _) => Some(AssetBytes::Here(Arc::from(multiline_text(value)))),
        (None, Some(whole)) if whole.mime == mime => Some(AssetBytes::Blob(whole.blob)),
        (None, _) => None,
    }
}

/// Returns the format in which an output is shown without its HTML.
pub(super) fn plain_form<'a>(output: &'a CellOutput, data: &'a Map<String, Value>) -> OutputForm<'a> {
    let found = |mime: &str| found(output, data, mime);
    if let Some(bytes) = found("image/svg+xml") {
        return OutputForm::Picture { bytes, is_svg: true };
    }
    if let Some(bytes) = BITMAP_MIME_TYPES.into_iter().find_map(found) {
        return OutputForm::Picture { bytes, is_svg: false };
    }
    if let Some(bytes) = found("text/markdown") {
        return OutputForm::Markdown(bytes);
    }
    if let Some(latex) = data.get("text/latex") {
        return OutputForm::Markdown(AssetBytes::Here(Arc::from(formula(&multiline_text(latex)))));
    }
    if let Some(value @ (Value::Object(_) | Value::Array(_))) = data.get("application/json") {
        return OutputForm::Tree(value);
    }
    match data.get("text/plain") {
        Some(text) => OutputForm::Text(multiline_text(text)),
        None => match data.iter().find(|(mime, value)| mime.ends_with("+json") && value.is_object()) {
            Some((_, value)) => OutputForm::Tree(value),
            None => {
                let names: Vec<String> = data.keys().map(|mime| format!("[{mime}]")).collect();
                OutputForm::Text(names.join(" "))
            }
        },
    }
}

/// Returns an output's MIME bundle, if it has one.
pub(super) fn mime_data(output: &CellOutput) -> Option<&Map<String, Value>> {
    match &output.body {
        OutputBody::ExecuteResult { data, .. } | OutputBody::DisplayData { data, .. } => Some(data),
        OutputBody::Stream { .. } | OutputBody::Error { .. } => None,
    }
}

/// Converts LaTeX to Markdown formulas.
fn formula(latex: &str) -> String {
    let latex = latex.trim();
    if latex.contains('$') {
        return latex.to_owned();
    }
    let bare = latex.strip_prefix("\\[").and_then(|rest| rest.strip_suffix("\\]")).unwrap_or(latex);
    format!("$${}$$", bare.trim())
}

/// Returns the references to cell lines in a traceback: byte range, cell number and line number.
pub(super) fn traceback_locations(traceback: &str) -> Vec<(std::ops::Range<usize>, usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    // The embedded kernel writes `File "cell 3", line 5`; lines may have changed since that run.
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
    use super::{formula, traceback_locations};

    #[test]
    fn tracebacks_lead_to_lines() {
        let text = "Traceback:\n  File \"cell 3\", line 12, in <module>\n  File \"cell 1 (an earlier run)\", line 2\n  \
                    File \"cell 2\", line 1";
        let found: Vec<(&str, usize, usize)> =
            traceback_locations(text).into_iter().map(|(r, c, l)| (&text[r], c, l)).collect();
        assert_eq!(found, [("cell 3\", line 12", 3, 12), ("cell 2\", line 1", 2, 1)]);
        for odd in ["\"cell ", "\"cell x\", line ", "\"cell 1\", line 99999999999999999999999", "\"cell 1\", line é"] {
            assert!(traceback_locations(odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn latex_is_set() {
        assert_eq!(formula("$x$"), "$x$");
        assert_eq!(formula("\\[ x^2 \\]"), "$$x^2$$");
        assert_eq!(formula("\\frac12"), "$$\\frac12$$");
    }
}
