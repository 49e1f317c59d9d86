//! Converts a notebook to a note's text, and keeps the rest of the notebook next to it.

use crate::notebook_file::join_text;
use pulldown_cmark::{CodeBlockKind, Event, Tag};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Range;
use store::ExecutionId;
use text::markdown;

/// How a cell is represented in the note's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellShape {
    /// The source as plain Markdown.
    Prose,
    /// The source in a fence.
    Fence,
    /// The source as the note's properties.
    Properties,
}

/// Place and representation of a notebook cell in the note's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellPlacement {
    pub(crate) range: Range<usize>,
    pub(crate) shape: CellShape,
    /// The execution that the cell's outputs were imported as.
    pub(crate) execution: Option<ExecutionId>,
}

/// Error of reading a kept notebook: it is damaged, or was written by a newer version.
#[derive(Debug, thiserror::Error)]
pub enum KeptNotebookError {
    /// The bytes aren't JSON of the expected form.
    #[error("the kept notebook cannot be read ({0})")]
    Json(#[from] serde_json::Error),
    /// The cells' ranges don't cover the text.
    #[error("the kept notebook cannot be read (its cells do not fit its text)")]
    CellPlaces,
}

/// The original notebook and its layout, kept next to the note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotebookOriginal {
    pub(crate) notebook: Value,
    pub(crate) text: String,
    pub(crate) places: Vec<CellPlacement>,
}

impl NotebookOriginal {
    /// Reads the bytes that [`NotebookOriginal::to_bytes`] wrote.
    ///
    /// # Errors
    /// Returns an error if the data is damaged or was written by a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Result<NotebookOriginal, KeptNotebookError> {
        let kept: NotebookOriginal = serde_json::from_slice(bytes)?;
        let mut end = 0;
        for CellPlacement { range, .. } in &kept.places {
            if range.start != end || range.end < range.start || kept.text.get(range.clone()).is_none() {
                return Err(KeptNotebookError::CellPlaces);
            }
            end = range.end;
        }
        let cells = kept.notebook["cells"].as_array().map_or(0, Vec::len);
        if end != kept.text.len() || cells != kept.places.len() {
            return Err(KeptNotebookError::CellPlaces);
        }
        Ok(kept)
    }

    /// Serializes the notebook and its layout, for [`NotebookOriginal::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Outputs of a notebook cell that are imported into the note.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedOutputs {
    /// ID of the execution that the outputs become.
    pub execution: ExecutionId,
    /// The kernel's execution counter.
    pub count: Option<u64>,
    /// The outputs as in the notebook, with each text joined to one string.
    pub outputs: Vec<Value>,
    /// Byte offset of the cell's fence in the text.
    pub at: usize,
}

/// A notebook converted to a note.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedNotebook {
    /// The note's Markdown text.
    pub text: String,
    /// Outputs of the notebook's cells.
    pub outputs: Vec<ImportedOutputs>,
    /// The original notebook.
    pub original: NotebookOriginal,
}

/// Converts a notebook (as [`crate::read_notebook`] returns it) to a note.
pub fn import_notebook(notebook: Value) -> ImportedNotebook {
    let language = notebook_language(&notebook);
    let mut text = String::new();
    let mut places = Vec::new();
    let mut printed = Vec::new();
    let name = store::BlobHash::of(notebook.to_string().as_bytes()).to_string();
    let cells = notebook["cells"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, cell) in cells.iter().enumerate() {
        let source = join_text(&cell["source"]).unwrap_or_default();
        let at = text.len();
        let shape = match cell["cell_type"].as_str() {
            Some("code") => {
                // In braces, the language makes the fence a cell in the note, too.
                let braced = language != "python" && markdown::is_kernel_language(&language);
                let word = if braced { format!("{{{language}}}") } else { language.clone() };
                push_fenced(&mut text, &word, &source);
                CellShape::Fence
            }
            Some("raw") if index == 0 && is_properties(&source) => {
                push_with_blank_line(&mut text, &source);
                CellShape::Properties
            }
            Some("raw") => {
                push_fenced(&mut text, RAW_FENCE_LANGUAGE, &source);
                CellShape::Fence
            }
            Some("markdown") => {
                push_prose(&mut text, &source, index == 0);
                CellShape::Prose
            }
            _ => CellShape::Prose,
        };
        let outputs = joined_outputs(cell);
        let count = cell["execution_count"].as_u64();
        let ran = cell["cell_type"] == "code" && (!outputs.is_empty() || count.is_some());
        let execution = ran.then(|| {
            let hash = store::BlobHash::of(format!("{name} {index}").as_bytes()).0;
            ExecutionId(u64::from_le_bytes(std::array::from_fn(|byte| hash[byte])))
        });
        printed.extend(execution.map(|execution| ImportedOutputs { execution, count, outputs, at }));
        places.push(CellPlacement { range: at..text.len(), shape, execution });
    }
    // The text ends with one line break, not with an empty line.
    while text.ends_with("\n\n") {
        text.pop();
    }
    for place in &mut places {
        place.range.start = place.range.start.min(text.len());
        place.range.end = place.range.end.min(text.len());
    }
    ImportedNotebook { original: NotebookOriginal { notebook, text: text.clone(), places }, text, outputs: printed }
}

/// Language word of a raw cell's fence.
pub(crate) const RAW_FENCE_LANGUAGE: &str = "raw";

/// Returns the language of a notebook's cells for fences.
pub(crate) fn notebook_language(notebook: &Value) -> String {
    let metadata = &notebook["metadata"];
    let named = [&metadata["kernelspec"]["language"], &metadata["language_info"]["name"]];
    let name = named.into_iter().find_map(Value::as_str).unwrap_or("python").to_lowercase();
    let plain = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "+#-_.".contains(letter));
    match name.as_str() {
        "ipython" | "python3" => "python".to_owned(),
        _ if plain && name != RAW_FENCE_LANGUAGE => name,
        _ => "python".to_owned(),
    }
}

fn is_properties(source: &str) -> bool {
    let body = source.strip_prefix("---\n").map(|rest| rest.trim_end());
    body.is_some_and(|body| {
        let inner = body.strip_suffix("\n---");
        inner.is_some_and(|inner| !inner.lines().any(|line| line.trim_end() == "---" || line.trim_end() == "..."))
    })
}

/// Appends a text and an empty line.
fn push_with_blank_line(text: &mut String, source: &str) {
    if source.trim().is_empty() {
        return; // nothing to see: it is kept beside the text alone
    }
    text.push_str(source);
    while !text.ends_with("\n\n") {
        text.push('\n');
    }
}

fn push_fenced(text: &mut String, language: &str, source: &str) {
    let mut longest = 2;
    let mut run = 0;
    for letter in source.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    text.push_str(&fence);
    text.push_str(language);
    text.push('\n');
    if !source.is_empty() {
        text.push_str(source);
        text.push('\n');
    }
    text.push_str(&fence);
    text.push_str("\n\n");
}

/// Texts that close constructs which a piece of Markdown may leave open.
const CLOSING_MARKERS: [&str; 10] =
    ["```", "~~~", "`````", "~~~~~", "-->", "?>", "]]>", "</script>", "</pre>", "</style>"];

/// Appends Markdown so that the following text stays separate: in a notebook each cell is parsed alone.
fn push_prose(text: &mut String, source: &str, first: bool) {
    if source.trim().is_empty() {
        return;
    }
    // At the top of the note, `---` would start front matter.
    let mut whole = String::new();
    push_with_blank_line(&mut whole, source);
    let mark = "```python\nx\n```\n";
    let ends_well = |piece: &str| {
        let test = if first { format!("{piece}{mark}") } else { format!("x\n\n{piece}{mark}") };
        markdown::cell_ranges(&test).last().is_some_and(|cell| cell.start + mark.len() >= test.len())
    };
    if ends_well(&whole) {
        text.push_str(&whole);
        return;
    }
    for end in CLOSING_MARKERS {
        let mut closed = source.trim_end_matches('\n').to_owned();
        closed.push('\n');
        closed.push_str(end);
        closed.push_str("\n\n");
        if ends_well(&closed) {
            text.push_str(&closed);
            return;
        }
    }
    push_fenced(text, "markdown", source);
}

/// Returns the outputs of a cell with each text joined to one string.
fn joined_outputs(cell: &Value) -> Vec<Value> {
    let mut outputs = cell["outputs"].as_array().cloned().unwrap_or_default();
    for output in &mut outputs {
        if let Some(text) = output.get_mut("text")
            && let Some(whole) = join_text(text)
        {
            *text = whole.into();
        }
        for (mime, value) in output.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten() {
            if !is_json(mime)
                && let Some(whole) = join_text(value)
            {
                *value = whole.into();
            }
        }
    }
    outputs
}

/// Returns whether data of this media type is JSON rather than text.
pub(crate) fn is_json(mime: &str) -> bool {
    mime == "application/json" || mime.ends_with("+json")
}

/// A fence at the top level of a note.
pub(crate) struct NotebookFence<'a> {
    /// Byte range including the fence lines and the last line break.
    pub(crate) range: Range<usize>,
    /// The language word after the opening fence.
    pub(crate) language: &'a str,
    /// The content, without the last line break.
    pub(crate) code: &'a str,
}

/// Returns the closed fences at the top level of a text.
pub(crate) fn top_level_fences(text: &str) -> Vec<NotebookFence<'_>> {
    let read = markdown::parse(text, markdown::parser_options(), |parser| {
        let mut depth = 0_usize;
        let mut found = Vec::new();
        for (event, range) in parser.into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    depth += 1;
                    if let (1, Tag::CodeBlock(CodeBlockKind::Fenced(_))) = (depth, tag) {
                        found.extend(parse_fence(text, range));
                    }
                }
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        found
    });
    read.unwrap_or_default()
}

fn parse_fence(text: &str, range: Range<usize>) -> Option<NotebookFence<'_>> {
    let start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline + 1);
    let end = if text[..range.end].ends_with('\n') { range.end } else { end };
    let block = &text[start..end];
    let opening = block.lines().next()?.trim();
    let mark = opening.chars().next()?;
    let info = opening.trim_start_matches(mark);
    let head = block.find('\n')? + 1;
    let tail = block.trim_end().rfind('\n')? + 1;
    let closing = block[tail..].trim();
    let closed = closing.len() >= 3 && closing.chars().all(|letter| letter == mark);
    if !closed || tail < head {
        return None;
    }
    let code = &block[head..tail];
    let code = code.strip_suffix('\n').unwrap_or(code);
    let language = info
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}')
        .split(|c: char| c.is_whitespace() || c == '{' || c == ',')
        .next()
        .unwrap_or("");
    Some(NotebookFence { range: start..end, language, code: code.strip_suffix('\r').unwrap_or(code) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn laid(cells: Value) -> ImportedNotebook {
        import_notebook(json!({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}))
    }

    #[test]
    fn cells_become_text() {
        let laid = laid(json!([
            {"cell_type": "markdown", "source": ["# T\n", "words"]},
            {"cell_type": "markdown", "source": ""},
            {"cell_type": "code", "source": "s = '''\n```\n'''", "execution_count": 3, "outputs": []},
            {"cell_type": "raw", "source": "<b>"},
            {"cell_type": "code", "source": ""},
        ]));
        let text = "# T\nwords\n\n````python\ns = '''\n```\n'''\n````\n\n```raw\n<b>\n```\n\n```python\n```\n";
        assert_eq!(laid.text, text);
        assert_eq!(laid.outputs.len(), 1);
        assert_eq!(laid.outputs[0].at, 11);
        assert_eq!(NotebookOriginal::from_bytes(&laid.original.to_bytes()).expect("read"), laid.original);
    }

    #[test]
    fn what_a_piece_leaves_open_is_closed() {
        for open in ["```\nx", "~~~~\ny", "<!-- never", "<script>\n1", "<pre>\n\nx", "````js\n```\n", "`````\n````"] {
            let laid = laid(json!([
                {"cell_type": "markdown", "source": open},
                {"cell_type": "code", "source": "1"},
            ]));
            assert_eq!(markdown::cell_ranges(&laid.text).len(), 1, "{}", laid.text);
        }
    }
}
